//! What a text names: identifiers, paths, numbers, words, pairs of Chinese characters.
//!
//! A term is a hash, so that conversations are compared without keeping their text. Case is ignored. An identifier is a
//! term as a whole and in its parts: `src/loadConfig.py` is a path, `loadConfig.py`, `loadConfig`, `load`, `config`.

use super::bytes::{DIGIT, HUMP, UNDERSCORE, Word, hash_of_name as hash, is_word, mix, word};

/// What a term is. The order is that of the low bits of [`Term`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum TermKind {
    /// Part of an identifier: for relevance only.
    Part,
    /// A word of up to seven letters.
    Word,
    /// A longer word.
    LongWord,
    /// A word with a digit, an underscore or a hump.
    Ident,
    /// Words joined by `.`, `:`, `-`, `@`, `#`, `+`.
    Joined,
    /// Words joined by slashes.
    Path,
    /// Four digits or more.
    Number,
    /// Two characters of Chinese, Japanese or Korean text.
    Pair,
}

impl TermKind {
    /// Returns whether it names something exactly: no word and no pair of characters.
    pub fn is_name(self) -> bool {
        matches!(self, Self::Ident | Self::Joined | Self::Path | Self::Number)
    }

    /// Returns whether it is worth keeping for its own sake, and not only when the request asks for it.
    pub fn is_salient(self) -> bool {
        !matches!(self, Self::Part | Self::Word)
    }
}

/// Kinds of terms.
pub const KINDS: usize = 8;

const ALL: [TermKind; KINDS] = [
    TermKind::Part,
    TermKind::Word,
    TermKind::LongWord,
    TermKind::Ident,
    TermKind::Joined,
    TermKind::Path,
    TermKind::Number,
    TermKind::Pair,
];

/// The hash of a term, its kind in the low three bits.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub struct Term(pub u64);

impl Term {
    fn new(hash: u64, kind: TermKind) -> Self {
        Self((hash >> 3 << 3) | kind as u64)
    }

    /// Returns what the term is.
    pub fn kind(self) -> TermKind {
        ALL[(self.0 & 7) as usize]
    }
}

fn joins(byte: u8) -> bool {
    matches!(byte, b'.' | b'/' | b':' | b'-' | b'@' | b'#' | b'+' | b'~' | b'\\')
}

/// Calls `found` with every term of `text`, in order, and the index of its first byte. O(n).
pub fn scan(text: &str, mut found: impl FnMut(Term, usize)) {
    let bytes = text.as_bytes();
    let mut at = 0;
    while at < bytes.len() {
        let byte = bytes[at];
        if is_word(byte) {
            at = chunk(bytes, at, &mut found);
        } else if byte < 0x80 {
            at += 1;
        } else {
            at = wide(text, at, &mut found);
        }
    }
}

/// Longest identifier that is one term; what is longer is data.
const MAX_JOINED: usize = 200;

/// Scans words joined by punctuation, from `start`; returns the index behind them.
fn chunk(bytes: &[u8], start: usize, found: &mut impl FnMut(Term, usize)) -> usize {
    let mut at = start;
    let (mut words, mut slash, mut other, mut end) = (0, false, false, start);
    // where the last segment of a path starts
    let mut base = start;
    let mut base_words = 0;
    loop {
        let word = word::<true>(bytes, at);
        if word.end == at {
            break;
        }
        simple(&bytes[at..word.end], &word, at, found);
        at = word.end;
        words += 1;
        base_words += 1;
        end = at;
        while at < bytes.len() && joins(bytes[at]) && at - end < 3 {
            at += 1;
        }
        if at == end || at == bytes.len() || !is_word(bytes[at]) {
            break;
        }
        if bytes[end..at].iter().any(|&b| b == b'/' || b == b'\\') {
            slash = true;
            (base, base_words) = (at, 0);
        } else {
            other |= bytes[end..at] != *b"-" || bytes[at].is_ascii_digit();
        }
    }
    if words > 1 && (slash || other) && end - start <= MAX_JOINED {
        let kind = if slash { TermKind::Path } else { TermKind::Joined };
        found(Term::new(hash(&bytes[start..end]), kind), start);
        if slash && base_words > 1 && base > start {
            found(Term::new(hash(&bytes[base..end]), TermKind::Joined), base);
        }
    }
    end.max(start + 1)
}

/// Reports one word, and the parts of it where it is an identifier.
fn simple(word: &[u8], &Word { classes, hash: whole, .. }: &Word, start: usize, found: &mut impl FnMut(Term, usize)) {
    if word.len() < 2 || word.len() > MAX_JOINED {
        return;
    }
    if classes == DIGIT {
        let kind = if word.len() >= 4 { TermKind::Number } else { TermKind::Part };
        found(Term::new(whole, kind), start);
        return;
    }
    if classes & (UNDERSCORE | HUMP | DIGIT) == 0 {
        if word.len() > 2 {
            let kind = if word.len() < 8 { TermKind::Word } else { TermKind::LongWord };
            found(Term::new(whole, kind), start);
        }
        return;
    }
    found(Term::new(whole, if word.len() >= 4 { TermKind::Ident } else { TermKind::Part }), start);
    if classes & (UNDERSCORE | HUMP) == 0 {
        return;
    }
    let mut from = 0;
    for at in 1..=word.len() {
        let cut = at == word.len()
            || word[at] == b'_'
            || word[at - 1] == b'_'
            || (word[at].is_ascii_uppercase() && word[at - 1].is_ascii_lowercase());
        if cut {
            let part = &word[from..at];
            if part.len() >= 3 && part.len() < word.len() && part[0] != b'_' {
                found(Term::new(hash(part), TermKind::Part), start + from);
            }
            from = at;
        }
    }
}

/// Scans a run of letters that are not ASCII, from `start`; returns the index behind it.
fn wide(text: &str, start: usize, found: &mut impl FnMut(Term, usize)) -> usize {
    let mut before: Option<(char, usize)> = None;
    let mut word = (0_u64, 0_usize);
    let mut end = start;
    for (offset, c) in text[start..].char_indices() {
        if c.is_ascii() {
            break;
        }
        end = start + offset + c.len_utf8();
        if is_han(c) {
            if let Some((first, at)) = before {
                found(Term::new(of_char(of_char(0, first), c), TermKind::Pair), at);
            }
            before = Some((c, start + offset));
        } else {
            before = None;
            if c.is_alphabetic() {
                word = (of_char(word.0, c.to_lowercase().next().unwrap_or(c)), word.1 + 1);
            } else {
                break;
            }
        }
    }
    if word.1 >= 3 {
        found(Term::new(word.0, if word.1 > 6 { TermKind::LongWord } else { TermKind::Word }), start);
    }
    end
}

fn of_char(hash: u64, c: char) -> u64 {
    mix(hash ^ (u64::from(c) + 1))
}

/// Returns whether `c` is written without spaces between words.
fn is_han(c: char) -> bool {
    matches!(c, '\u{3040}'..='\u{30ff}' | '\u{3400}'..='\u{9fff}' | '\u{ac00}'..='\u{d7af}' | '\u{f900}'..='\u{faff}' | '\u{20000}'..='\u{3ffff}')
}

/// Returns the text of a term that [`scan`] found at `start`.
pub fn text_at(text: &str, start: usize, term: Term) -> Option<&str> {
    let end = text.floor_char_boundary(start + 2 * MAX_JOINED);
    let here = text.get(start..end)?;
    let length = here.bytes().position(|b| !(is_word(b) || joins(b))).unwrap_or(here.len());
    // Trailing punctuation belongs to the sentence; a name in a path ends before the next slash.
    let ends = (1..=length).rev().filter(|&at| is_word(here.as_bytes()[at - 1]));
    ends.map(|at| &here[..at]).find(|name| Term::new(hash(name.as_bytes()), term.kind()) == term)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(text: &str) -> Vec<(TermKind, usize)> {
        let mut found = Vec::new();
        scan(text, |term, at| found.push((term.kind(), at)));
        found
    }

    fn terms(text: &str) -> Vec<Term> {
        let mut terms = Vec::new();
        scan(text, |term, _| terms.push(term));
        terms
    }

    #[test]
    fn every_kind_of_term_is_found_where_it_starts() {
        use TermKind::{Ident, Joined, LongWord, Number, Pair, Part, Path, Word};
        for (text, expected) in [
            ("a word", vec![(Word, 2)]),
            ("an exception", vec![(LongWord, 3)]),
            ("job_7f3a", vec![(Ident, 0), (Part, 0), (Part, 4)]),
            ("loadConfig", vec![(Ident, 0), (Part, 0), (Part, 4)]),
            ("10.0.0.7:8080", vec![(Part, 0), (Number, 9), (Joined, 0)]),
            ("in deploy-17, well-read", vec![(Word, 3), (Part, 10), (Joined, 3), (Word, 14), (Word, 19)]),
            ("see usr/lib now", vec![(Word, 0), (Word, 4), (Word, 8), (Path, 4), (Word, 12)]),
            ("at 4711, 42 and 7", vec![(Number, 3), (Part, 9), (Word, 12)]),
            ("查日志。好", vec![(Pair, 0), (Pair, 3)]),
            ("Привет", vec![(Word, 0)]),
        ] {
            assert_eq!(found(text), expected, "{text}");
        }
    }

    #[test]
    fn a_path_is_found_whole_and_by_its_last_name() {
        let text = "open src/loadConfig.py.";
        let mut named = Vec::new();
        scan(text, |term, at| named.push(text_at(text, at, term).unwrap_or("?")));
        assert_eq!(named, ["open", "src", "loadConfig", "load", "Config", "src/loadConfig.py", "loadConfig.py"]);
    }

    #[test]
    fn a_name_is_given_back_as_it_was_written() {
        for (text, name) in [
            ("(see HTTP_Timeout)", "HTTP_Timeout"),
            ("版本v1.2.3。", "v1.2.3"),
            ("id 123456789012345678901234, ok", "123456789012345678901234"),
            (r"C:\Users\me\a.txt!", r"C:\Users\me\a.txt"),
        ] {
            let mut names = Vec::new();
            scan(text, |term, at| names.extend(text_at(text, at, term).filter(|_| term.kind().is_name())));
            assert!(names.contains(&name), "{names:?}");
        }
    }

    #[test]
    fn case_and_place_are_ignored_and_kinds_are_not() {
        assert_eq!(terms("LoadConfig"), terms("  loadConfig"));
        assert_eq!(terms("Timeout"), terms("timeout"));
        assert_ne!(terms("日志"), terms("志日"));
        assert_ne!(terms("src/a"), terms("src.a"));
    }

    #[test]
    fn data_is_no_name() {
        let data = "QUJDREVGR0hJ4/".repeat(40);
        assert!(terms(&data).iter().all(|term| term.kind() != TermKind::Path));
        assert_eq!(terms(&"a1".repeat(101)), []);
    }
}
