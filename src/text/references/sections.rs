//! Finds the section of a text that a question names by its number: "chapter 5", "Lektion drei", 第五章, 3日目.

use std::iter;
use std::ops::Range;

use xxhash_rust::xxh3::xxh3_64;

use super::lists::DIGITS;
use super::words::{Sign, WORDS};
use crate::text::bytes::lines;
use crate::text::terms::is_han;

/// Most sections that a question may name, and bytes at the start of a line that may head one.
const MOST: usize = 6;
const MAX_HEAD_BYTES: usize = 48;
/// Most bytes of a heading that goes on behind its number without a mark.
const MAX_TITLE_BYTES: usize = 80;
/// Most characters of a word of a script without spaces: 日目.
const MAX_WIDE: usize = 2;

/// What may stand before a heading in its line, and behind its number.
const MARKUP: [char; 14] = ['#', '*', '_', '>', '-', '|', '•', '【', '「', '《', '(', '[', ' ', '\t'];
const ENDS: [char; 15] = [':', '.', ')', ']', '-', '–', '—', '*', '_', '|', '】', '」', '》', '：', ','];

/// A section as it is named.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Section {
    /// The hash of its word in lower case.
    word: u64,
    number: u16,
}

/// A piece of a text in lower case: a word, a number, or a character of a script without spaces.
#[derive(Debug, Clone, Copy)]
struct Piece<'t> {
    text: &'t str,
    end: usize,
    /// Whether only a space, a hyphen or a sign of numbers stands before it.
    is_next: bool,
}

impl Section {
    /// Returns those that a question in lower case may name. O(n).
    pub fn named(lower: &str) -> Vec<Self> {
        let pieces: Vec<Piece<'_>> = pieces(lower).collect();
        let mut named: Vec<Self> = (0..pieces.len()).flat_map(|at| Self::at(&pieces[at..])).map(|(of, _)| of).collect();
        named.truncate(MOST);
        named
    }

    /// Returns what the first of some pieces name, with its end.
    fn at(pieces: &[Piece<'_>]) -> Vec<(Self, usize)> {
        let of = |word: &str, number: u16| Self { word: xxh3_64(word.as_bytes()), number };
        let next = |at: usize| pieces.get(at).filter(|piece| piece.is_next);
        let is_word = |piece: &&Piece<'_>| piece.text.starts_with(char::is_alphabetic) && number(piece.text).is_none();
        let mut found = Vec::new();
        if matches!(pieces[0].text, "第" | "제") {
            let digits =
                pieces[1..].iter().take_while(|piece| piece.is_next && wide_digit(piece.text).is_some()).count();
            let numbered = if digits > 0 {
                wide_number(&pieces[1..=digits]).map(|number| (number, digits + 1))
            } else {
                next(1).and_then(|piece| Some((piece.text.parse().ok()?, 2)))
            };
            if let Some((number, at)) = numbered {
                found.extend(next(at).filter(is_word).map(|word| (of(word.text, number), word.end)));
            }
        } else if let Some(number) = number(pieces[0].text).or_else(|| place(pieces[0].text)) {
            if let Some(word) = next(1).filter(is_word) {
                found.push((of(word.text, number), word.end));
                let is_wide = word.text.starts_with(is_han);
                if let Some(more) = next(2).filter(|more| is_wide && more.text.starts_with(is_han)) {
                    found.push((of(&[word.text, more.text].concat(), number), more.end));
                }
            }
        } else if let Some(piece) = next(1).filter(|_| is_word(&&pieces[0]) && !pieces[0].text.starts_with(is_han)) {
            let number = number(piece.text).or_else(|| counted(piece.text)).or_else(|| roman(piece.text));
            found.extend(number.map(|number| (of(pieces[0].text, number), piece.end)));
        }
        found
    }

    /// Returns the sections with which a line is headed.
    fn of_line(line: &str) -> Vec<Self> {
        let bare = line.trim_start_matches(MARKUP);
        let head = bare[..bare.floor_char_boundary(MAX_HEAD_BYTES)].to_lowercase();
        let pieces: Vec<Piece<'_>> = pieces(&head).take(3 + MAX_WIDE).collect();
        if pieces.len() < 2 {
            return Vec::new();
        }
        let is_marked = line.starts_with('#') || line.starts_with("**");
        let is_title = line.trim_end().len() <= MAX_TITLE_BYTES && !line.trim_end().ends_with(['.', '。', '?', '!']);
        let heads = |end: usize| {
            let behind = head[end..].trim_start();
            is_marked || is_title || behind.is_empty() || behind.starts_with(ENDS)
        };
        Self::at(&pieces).into_iter().filter(|(_, end)| heads(*end)).map(|(of, _)| of).collect()
    }

    /// Returns the longest section of a text that is this one. O(n).
    pub fn find(self, text: &str) -> Option<Range<usize>> {
        let (mut longest, mut open, mut at): (Range<usize>, Option<(usize, usize)>, usize) = (0..0, None, 0);
        let mut close = |open: Option<(usize, usize)>, end: usize| {
            if let Some((start, _)) = open.filter(|(start, _)| end - start > longest.len()) {
                longest = start..start + text[start..end].trim_end().len();
            }
        };
        for line in lines(text) {
            let level = line.len() - line.trim_start_matches('#').len();
            let sections = if line.len() > level { Self::of_line(line) } else { Vec::new() };
            let is_other = |of: &Self| of.word == self.word && of.number != self.number;
            if sections.contains(&self) {
                close(open, at);
                open = Some((at, level));
            } else if sections.iter().any(is_other) || open.is_some_and(|(_, of)| (1..=of).contains(&level)) {
                close(open.take(), at);
            }
            at += line.len();
        }
        close(open, at);
        (!longest.is_empty()).then_some(longest)
    }
}

/// Parts a text in lower case.
fn pieces(lower: &str) -> impl Iterator<Item = Piece<'_>> {
    let mut at = 0;
    iter::from_fn(move || {
        let start = at + lower[at..].find(char::is_alphanumeric)?;
        let between = &lower[at..start];
        let is_next = start > 0 && !between.contains('\n') && matches!(between.trim(), "" | "-" | "#" | ".");
        let first = lower[start..].chars().next()?;
        let is_like = |c: char| match first {
            _ if is_han(first) => false,
            _ if first.is_ascii_digit() => c.is_ascii_digit(),
            _ => c.is_alphabetic() && !is_han(c),
        };
        let rest = &lower[start + first.len_utf8()..];
        let mut end = lower.len() - rest.trim_start_matches(is_like).len();
        let text = &lower[start..end];
        // 5th, 5º, 5e
        if first.is_ascii_digit() {
            let ending = ORDINALS.iter().find(|ending| lower[end..].starts_with(**ending));
            end += ending.map_or(0, |ending| ending.len());
        }
        at = end;
        Some(Piece { text, end, is_next })
    })
}

/// What makes a number that of a place.
const ORDINALS: [&str; 9] = ["th ", "st ", "nd ", "rd ", "º", "ª", "ème ", "er ", "e "];

fn number(text: &str) -> Option<u16> {
    (text.len() <= 3 && text.starts_with(|c: char| c.is_ascii_digit())).then(|| text.parse().ok())?
}

/// Returns the place that a word is: fifth.
fn place(word: &str) -> Option<u16> {
    let place = |sign| if let Sign::Place(place) = sign { u16::try_from(place).ok() } else { None };
    WORDS.of_word(word).find_map(place).filter(|place| *place > 0)
}

/// Returns the number that a word counts: five.
fn counted(word: &str) -> Option<u16> {
    WORDS.of_word(word).find_map(|sign| if let Sign::Count(count) = sign { u16::try_from(count).ok() } else { None })
}

/// Returns the value of a Roman number up to 39, but one, which is a word: "did I".
fn roman(text: &str) -> Option<u16> {
    let value = |c: char| {
        Some(match c {
            'i' => 1,
            'v' => 5,
            'x' => 10,
            _ => return None,
        })
    };
    let values: Vec<u16> = text.chars().map(value).collect::<Option<_>>()?;
    if values == [1] {
        return None;
    }
    let is_less = |at: usize| values.get(at + 1).is_some_and(|next| values[at] < *next);
    let signed =
        values.iter().enumerate().map(|(at, &value)| if is_less(at) { -i32::from(value) } else { i32::from(value) });
    u16::try_from(signed.sum::<i32>()).ok()
}

/// Returns the value of a digit in Chinese; ten is 0.
fn wide_digit(text: &str) -> Option<u16> {
    let digits = iter::once(&"十").chain(&DIGITS);
    digits.zip(0..).find(|(digit, _)| **digit == text).map(|(_, value)| value)
}

/// Returns the value of digits in Chinese up to 99.
fn wide_number(pieces: &[Piece<'_>]) -> Option<u16> {
    let digits: Vec<u16> = pieces.iter().filter_map(|piece| wide_digit(piece.text)).collect();
    Some(match digits[..] {
        [0] => 10,
        [one] => one,
        [0, one] => 10 + one,
        [tens, 0] => tens * 10,
        [tens, 0, one] => tens * 10 + one,
        _ => return None,
    })
}
