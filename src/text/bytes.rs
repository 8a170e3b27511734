//! What bytes are in words, and hashes of words: for the loops that look at every byte of a conversation.
//!
//! Hashes are of this process only, and nothing but equality is asked of them.

// What a byte is in a word, a bit each, so that those of a word can be put together.
pub const LOWER: u8 = 1;
pub const UPPER: u8 = 2;
pub const DIGIT: u8 = 4;
pub const UNDERSCORE: u8 = 8;
/// A capital behind a small letter.
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

/// Returns what a byte is in a word; 0 where it is in none.
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
    /// What its bytes are, and [`HUMP`].
    pub classes: u8,
    /// As [`hash_of_name`] has it.
    pub hash: u64,
    /// What stands behind its last whole eight bytes, letters in lower case: all of most words.
    rest: u64,
}

impl Word {
    /// Returns the hash of the first `length` bytes of a word of fewer than eight, as [`hash_of_name`] has it.
    pub fn hash_of_start(&self, length: usize) -> u64 {
        mix(SEED ^ (self.rest & ((1 << (8 * length)) - 1)))
    }
}

/// Returns the word that begins at `start`, an empty one where none does.
///
/// Eight bytes at a time: most words are shorter, so that there is one branch for a word and not one for each byte.
#[inline]
pub fn word(bytes: &[u8], start: usize) -> Word {
    let mut word = Word { end: start, classes: 0, hash: SEED, rest: 0 };
    let mut before = 0;
    loop {
        let eight = match bytes.get(word.end..).and_then(|rest| rest.first_chunk()) {
            Some(chunk) => u64::from_le_bytes(*chunk),
            None => few(bytes.get(word.end..).unwrap_or_default()),
        };
        let folded = eight | LOWER_CASE;
        let digits = within(eight, b'0', b'9');
        let underscores = within(eight, b'_', b'_');
        let letters = within(folded, b'a', b'z');
        // The case of a letter is its bit 5, here moved to the high bit.
        let (lower, upper) = (letters & eight << 2, letters & !(eight << 2));
        let length = (!(digits | underscores | letters) & HIGH).trailing_zeros() / 8;
        let mask = u64::MAX.checked_shr(64 - 8 * length).unwrap_or(0);
        let humps = (lower << 8 | before) & upper;
        before = lower >> 56;
        let has = |found: u64, class: u8| if found & mask == 0 { 0 } else { class };
        word.classes |= has(digits, DIGIT)
            | has(upper, UPPER)
            | has(underscores, UNDERSCORE)
            | has(lower, LOWER)
            | has(humps, HUMP);
        word.end += length as usize;
        word.rest = folded & mask;
        word.hash = mix(word.hash ^ word.rest);
        if length < 8 {
            return word;
        }
    }
}

const EACH: u64 = 0x0101_0101_0101_0101;
const HIGH: u64 = 0x80 * EACH;

/// Sets the high bit of each of eight bytes that is within a range of ASCII.
fn within(bytes: u64, first: u8, last: u8) -> u64 {
    // Of seven bits each, so that no sum carries into the next byte.
    let low = bytes & !HIGH;
    let from = |least: u8| low + EACH * u64::from(0x80 - least);
    from(first) & !from(last + 1) & !bytes & HIGH
}

/// Things by some bits of their hashes: tells them from most others, and may take another one for one of them.
pub struct Filter<const N: usize>([u64; N]);

impl<const N: usize> Filter<N> {
    /// Returns the filter for things of such hashes.
    pub fn of(hashes: impl IntoIterator<Item = u64>) -> Self {
        let mut bits = [0; N];
        for hash in hashes {
            bits[Self::place(hash)] |= 1 << (hash % 64);
        }
        Self(bits)
    }

    /// Returns whether a thing of such a hash may be one of them.
    pub fn may_have(&self, hash: u64) -> bool {
        self.0[Self::place(hash)] >> (hash % 64) & 1 == 1
    }

    fn place(hash: u64) -> usize {
        usize_of(hash >> 6) % N
    }
}

/// Returns up to seven bytes as a number, zeros behind.
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

/// Returns where a byte of ASCII is found first, eight bytes at a time: lines are too short for what the standard library
/// does before and behind its loop.
pub fn position(bytes: &[u8], wanted: u8) -> Option<usize> {
    let (chunks, rest) = bytes.as_chunks();
    let first = |eight: u64| {
        let found = same(eight, wanted);
        (found != 0).then(|| found.trailing_zeros() as usize / 8)
    };
    for (i, chunk) in chunks.iter().enumerate() {
        if let Some(at) = first(u64::from_le_bytes(*chunk)) {
            return Some(8 * i + at);
        }
    }
    // Behind the rest are zeros.
    let at = first(few(rest)).filter(|&at| at < rest.len())?;
    Some(8 * chunks.len() + at)
}

/// Sets the high bit of the first of eight bytes that is `wanted`, and maybe of some behind it; of none where none is.
fn same(bytes: u64, wanted: u8) -> u64 {
    let zeros = bytes ^ (EACH * u64::from(wanted));
    zeros.wrapping_sub(EACH) & !zeros & HIGH
}

/// Iterates over the lines of a text, their ends included.
pub fn lines(text: &str) -> impl Iterator<Item = &str> {
    let mut rest = text;
    std::iter::from_fn(move || {
        let end = position(rest.as_bytes(), b'\n').map_or(rest.len(), |at| at + 1);
        let (line, behind) = rest.split_at(end);
        rest = behind;
        (!line.is_empty()).then_some(line)
    })
}

/// As [`str::trim`]; most lines begin and end in ASCII, which needs no table.
pub fn trim(line: &str) -> &str {
    trim_start(trim_end(line))
}

/// As [`str::trim_start`].
pub fn trim_start(line: &str) -> &str {
    let spaces = line.bytes().take_while(|&byte| is_space(byte)).count();
    let line = &line[spaces..];
    if line.as_bytes().first().is_some_and(|first| !first.is_ascii()) { line.trim_start() } else { line }
}

/// As [`str::trim_end`].
pub fn trim_end(line: &str) -> &str {
    let spaces = line.bytes().rev().take_while(|&byte| is_space(byte)).count();
    let line = &line[..line.len() - spaces];
    if line.as_bytes().last().is_some_and(|last| !last.is_ascii()) { line.trim_end() } else { line }
}

/// Returns whether a byte is a space as Unicode has it.
fn is_space(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t'..=b'\r')
}

/// Returns whether one of the `wanted` bytes, none of them 0, is among `bytes`; eight at a time.
pub fn has_any<const N: usize>(bytes: &[u8], wanted: [u8; N]) -> bool {
    let (chunks, rest) = bytes.as_chunks();
    let found = |eight: u64| wanted.iter().fold(0, |found, &byte| found | same(eight, byte)) != 0;
    chunks.iter().any(|chunk| found(u64::from_le_bytes(*chunk))) || found(few(rest))
}

/// Folds the product of 128 bits into 64, in which every bit of `value` tells.
pub fn mix(value: u64) -> u64 {
    // 2^64 divided by the golden ratio
    let product = u128::from(value) * 0x9e37_79b9_7f4a_7c15;
    (product >> 64) as u64 ^ low(product)
}

#[allow(clippy::cast_possible_truncation)] // the low half is asked for
fn low(product: u128) -> u64 {
    product as u64
}

/// Returns a hash as an index: a few bits of it are as good as all.
#[allow(clippy::cast_possible_truncation)]
pub fn usize_of(hash: u64) -> usize {
    hash as usize
}

/// Of letters, digits and what stands in paths and the like, only the two cases of a letter differ in this bit.
const LOWER_CASE: u64 = 0x20 * EACH;
/// Any odd number without a pattern.
const SEED: u64 = 0x517c_c1b7_2722_0a95;

/// Returns the hash of a name of ASCII characters, whatever their case: eight bytes at a time, and then fewer than that,
/// maybe none.
pub fn hash_of_name(name: &[u8]) -> u64 {
    let (chunks, rest) = name.as_chunks();
    let hash = chunks.iter().fold(SEED, |hash, chunk| mix(hash ^ (u64::from_le_bytes(*chunk) | LOWER_CASE)));
    let mask = (1 << (8 * rest.len())) - 1;
    mix(hash ^ (few(rest) | LOWER_CASE & mask))
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

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
                    for start in 0..end.min(8) {
                        assert!(end >= 8 || word.hash_of_start(start) == hash_of_name(&text[..start]));
                    }
                }
            }
        }
        assert_eq!(word(b"a", 1).end, 1);
    }

    #[test]
    fn lines_are_those_of_the_standard_library() {
        let texts =
            ["", "\n", "a", "a\n\nb\r\n", "日志日志\n错误\n", "one line that is longer than eight\nand another"];
        for text in texts {
            assert_eq!(lines(text).collect::<Vec<_>>(), text.split_inclusive('\n').collect::<Vec<_>>());
            for wanted in 0..0x80 {
                let expected = text.bytes().position(|byte| byte == wanted);
                assert_eq!(position(text.as_bytes(), wanted), expected, "{text:?} {wanted}");
                let is_found = wanted > 0 && has_any(text.as_bytes(), [wanted, 0x7f]);
                assert_eq!(is_found, expected.is_some(), "{text:?} {wanted}");
            }
        }
    }

    #[test]
    fn lines_are_trimmed_as_the_standard_library_does() {
        for byte in 0..0x80_u8 {
            for other in ["", "\u{3000}", "\u{85}", "é", "\u{a0} "] {
                let space = char::from(byte);
                for text in [format!("{space}{other}{space}a b{space}{other} {space}"), format!("{other}{space}")] {
                    assert_eq!((trim(&text), trim_start(&text)), (text.trim(), text.trim_start()), "{text:?}");
                    assert_eq!(trim_end(&text), text.trim_end(), "{text:?}");
                }
            }
        }
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
}
