//! Classes of bytes and hashes of words, for loops over every byte of a conversation.
//!
//! Hashes are valid in this process only, and used for equality.

use std::ops::Range;

use memchr::{memchr_iter, memchr2_iter};

// Classes of bytes in words, a bit each, so that those of a word can be combined.
pub const LOWER: u8 = 1;
pub const UPPER: u8 = 2;
pub const DIGIT: u8 = 4;
pub const UNDERSCORE: u8 = 8;
/// An upper-case letter behind a lower-case one.
pub const HUMP: u8 = 16;

const CLASSES: [u8; 256] = {
    let mut classes = [0; 256];
    let mut byte = 0_u8;
    while byte < 0x80 {
        classes[byte as usize] = match byte {
            b'a'..=b'z' => LOWER,
            b'A'..=b'Z' => UPPER,
            b'0'..=b'9' => DIGIT,
            b'_' => UNDERSCORE,
            _ => 0,
        };
        byte += 1;
    }
    classes
};

/// Returns the class of a byte; 0 outside of words.
pub fn class(byte: u8) -> u8 {
    CLASSES[usize::from(byte)]
}

/// Returns whether a byte is an ASCII letter or digit or `_`.
pub fn is_word(byte: u8) -> bool {
    class(byte) != 0
}

/// A run of ASCII letters, digits and `_`.
pub struct Word {
    pub end: usize,
    /// The classes of its bytes, and [`HUMP`].
    pub classes: u8,
    /// See [`hash_of_name`].
    pub hash: u64,
}

/// Returns the end of the word at `start`, or `start` without one.
pub fn word_end(bytes: &[u8], start: usize) -> usize {
    let rest = bytes.get(start..).unwrap_or_default();
    start + rest.iter().take_while(|byte| is_word(**byte)).count()
}

/// Returns the word at `start`, or an empty one.
pub fn word(bytes: &[u8], start: usize) -> Word {
    let rest = bytes.get(start..).unwrap_or_default();
    let (mut length, mut classes) = (0, 0);
    for &byte in rest {
        let class = class(byte);
        if class == 0 {
            break;
        }
        classes |= class;
        length += 1;
    }
    if classes & (LOWER | UPPER) == LOWER | UPPER && has_hump(&rest[..length]) {
        classes |= HUMP;
    }
    Word { end: start + length, classes, hash: hash_within(rest, length) }
}

/// Returns whether an unescaped backslash precedes.
pub fn is_escaped(bytes: &[u8], at: usize) -> bool {
    matches!(bytes[..at], [.., b'\\']) && !matches!(bytes[..at], [.., b'\\', b'\\'])
}

/// Returns whether the letter of the escape of a line break or a tab stands here.
pub fn is_escape_letter(bytes: &[u8], at: usize) -> bool {
    matches!(bytes[at], b'n' | b'r' | b't') && is_escaped(bytes, at)
}

/// Returns whether an upper-case letter follows a lower-case one: `HandleRefund`.
pub fn has_hump(word: &[u8]) -> bool {
    word.windows(2).any(|pair| pair[0].is_ascii_lowercase() && pair[1].is_ascii_uppercase())
}

/// Characters from here on are of scripts without spaces, or of Korean.
pub const FIRST_WIDE: char = '\u{2e80}';

/// Iterates over the lines of a text with their ends: `split_inclusive('\n')`, several times as fast.
pub fn lines(text: &str) -> impl Iterator<Item = &str> {
    let mut start = 0;
    let last = (!text.is_empty() && !text.ends_with('\n')).then_some(text.len());
    let ends = memchr_iter(b'\n', text.as_bytes()).map(|at| at + 1).chain(last);
    ends.map(move |end| &text[std::mem::replace(&mut start, end)..end])
}

/// A Bloom filter with one hash: rejects most other items, with false positives.
pub struct Filter<const N: usize>([u64; N]);

impl<const N: usize> Filter<N> {
    /// Returns the filter of these hashes.
    pub fn of(hashes: impl IntoIterator<Item = u64>) -> Self {
        let mut bits = [0; N];
        for hash in hashes {
            bits[Self::place(hash)] |= 1 << (hash % 64);
        }
        Self(bits)
    }

    /// Returns whether the filter may have this hash.
    pub fn may_have(&self, hash: u64) -> bool {
        self.0[Self::place(hash)] >> (hash % 64) & 1 == 1
    }

    fn place(hash: u64) -> usize {
        usize_of(hash >> 6) % N
    }
}

/// Returns up to seven bytes as a number, padded with zeros.
fn few(bytes: &[u8]) -> u64 {
    let one = |at: usize| u64::from(bytes[at]) << (8 * at);
    let four =
        |at: usize| bytes[at..].first_chunk().map_or(0, |chunk| u64::from(u32::from_le_bytes(*chunk))) << (8 * at);
    match bytes.len() {
        0 => 0,
        length @ 1..=3 => one(0) | one(length / 2) | one(length - 1),
        length => four(0) | four(length - 4),
    }
}

/// Returns whether a text has a digit.
pub fn has_digit(text: &str) -> bool {
    text.bytes().any(|byte| byte.is_ascii_digit())
}

/// Returns whether a text has a time or a date as `12:34` or `2026-11-22`, whatever the digits.
pub fn has_time(text: &[u8]) -> bool {
    time(text).is_some()
}

/// Returns where the first such time or date stands in a text.
pub fn time(text: &[u8]) -> Option<Range<usize>> {
    let shaped = |from: usize, shape: &[u8]| {
        let bytes = text.get(from..from + shape.len())?;
        let is_like = |(byte, like): (&u8, &u8)| if *like == b'0' { byte.is_ascii_digit() } else { byte == like };
        bytes.iter().zip(shape).all(is_like).then_some(from..from + shape.len())
    };
    memchr2_iter(b':', b'-', text).find_map(|at| {
        let behind = |digits: usize, shape: &[u8]| at.checked_sub(digits).and_then(|from| shaped(from, shape));
        behind(2, b"00:00").or_else(|| behind(1, b"0:00")).or_else(|| behind(4, b"0000-00-00"))
    })
}

/// Folds a 128-bit product into 64 bits that all depend on every bit of `value`.
pub fn mix(value: u64) -> u64 {
    // 2^64 divided by the golden ratio
    let product = u128::from(value) * 0x9e37_79b9_7f4a_7c15;
    (product >> 64) as u64 ^ low(product)
}

#[allow(clippy::cast_possible_truncation)] // the low half is asked for
fn low(product: u128) -> u64 {
    product as u64
}

/// Returns a hash as an index: any of its bits will do.
#[allow(clippy::cast_possible_truncation)]
pub fn usize_of(hash: u64) -> usize {
    hash as usize
}

/// This bit separates upper from lower case; digits and punctuation of paths have it either way.
const LOWER_CASE: u64 = 0x2020_2020_2020_2020;
/// Any odd number without a pattern.
const SEED: u64 = 0x517c_c1b7_2722_0a95;

/// Returns the hash of an ASCII name, ignoring case: reads eight bytes at a time.
pub fn hash_of_name(name: &[u8]) -> u64 {
    hash_within(name, name.len())
}

/// As [`hash_of_name`], of the first `length` bytes. It may read bytes behind them: a read of eight needs no branch for each
/// length, which would be mispredicted.
#[inline]
pub fn hash_within(bytes: &[u8], length: usize) -> u64 {
    let (chunks, _) = bytes[..length].as_chunks();
    let hash = chunks.iter().fold(SEED, |hash, chunk| mix(hash ^ (u64::from_le_bytes(*chunk) | LOWER_CASE)));
    let rest = &bytes[8 * chunks.len()..];
    let last = rest.first_chunk().map_or_else(|| few(&rest[..length % 8]), |chunk| u64::from_le_bytes(*chunk));
    let mask = (1 << (8 * (length % 8))) - 1;
    mix(hash ^ ((last | LOWER_CASE) & mask))
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn lines_are_those_of_the_standard_library() {
        for text in ["", "\n", "a", "a\n", "\n\na\r\n中\nb"] {
            assert_eq!(lines(text).collect::<Vec<_>>(), text.split_inclusive('\n').collect::<Vec<_>>(), "{text:?}");
        }
    }

    #[test]
    fn a_word_is_found_whole_wherever_it_ends() {
        for byte in 0..=u8::MAX {
            for length in 0..20 {
                let before = &b"abcdefghijklmnopqrst"[..length];
                let is_in_word = class(byte) != 0;
                let hump = if length > 0 && byte.is_ascii_uppercase() { HUMP } else { 0 };
                let classes = if length > 0 { LOWER } else { 0 } | class(byte) | hump;
                let end = length + usize::from(is_in_word);
                for behind in [&b""[..], b"; x", b"; and some more, behind the end"] {
                    let text = [before, &[byte], behind].concat();
                    let word = word(&text, 0);
                    assert_eq!((word.end, word.classes), (end, classes), "{byte} {length}");
                    assert_eq!(word.hash, hash_of_name(&text[..end]));
                }
            }
        }
        assert_eq!(word(b"a", 1).end, 1);
    }

    #[test]
    fn a_filter_has_its_words_and_few_others() {
        let names: Vec<String> = (0..1_000).map(|n| format!("name_{n}")).collect();
        let hashes = || names.iter().map(|name| hash_of_name(name.as_bytes()));
        let filter = Filter::<64>::of(hashes().take(40));
        assert!(hashes().take(40).all(|hash| filter.may_have(hash)));
        assert!(hashes().skip(40).filter(|&hash| filter.may_have(hash)).count() < 30);
    }

    #[test]
    fn every_byte_tells() {
        let text = b"abcdefghijklmnopqrstuvwxyz";
        for length in 1..=text.len() {
            let word = &text[..length];
            assert_ne!(hash_of_name(word), hash_of_name(&text[..length - 1]));
            for at in 0..length {
                let mut other = word.to_vec();
                other[at] = b'_';
                assert_ne!(hash_of_name(word), hash_of_name(&other), "{length} {at}");
            }
        }
    }

    #[test]
    fn short_words_of_different_lengths_are_different() {
        let numbers: Vec<String> = (0..100_000).map(|n| n.to_string()).collect();
        let hashes: HashSet<u64> = numbers.iter().map(|number| hash_of_name(number.as_bytes())).collect();
        assert_eq!(hashes.len(), numbers.len());
    }

    #[test]
    fn names_are_the_same_in_either_case() {
        let name = b"C:\\Users\\Me/src_01.PY@v2#x~+-";
        assert_eq!(hash_of_name(name), hash_of_name(&name.to_ascii_lowercase()));
        let joins = b"./:-@#+~\\_09az";
        for (i, a) in joins.iter().enumerate() {
            assert!(joins[..i].iter().all(|b| hash_of_name(&[*a]) != hash_of_name(&[*b])), "{a}");
        }
    }

    #[test]
    fn a_clock_or_a_date_is_a_time() {
        for text in ["It is 12:34.", "at 9:05", "2026-11-22", "日期：2026-11-22"] {
            assert!(has_time(text.as_bytes()), "{text}");
        }
        for text in ["src/a.rs:12", "1:2", "12-34", "key: value", "v1.2-3", ""] {
            assert!(!has_time(text.as_bytes()), "{text}");
        }
    }
}
