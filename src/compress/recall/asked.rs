//! What a message asks for: the terms of its words or names.

use jiff::civil::Date;

use crate::select::Asked;
use crate::select::scoring::Idf;
use crate::text::codes::signs;
use crate::text::dates::spellings;
use crate::text::names::{capitals_beside, names};
use crate::text::references::RowReference;
use crate::text::sentences::questions;
use crate::text::stop_words::names_one;
use crate::text::terms::{ShortTerm, TermKind, is_han, scan};

/// Bytes up to which the names of a text ask; more is material. And most terms: a text with more is about all of them.
const TASK_BYTES: usize = 2_000;
const MAX_TERMS: usize = u128::BITS as usize;

/// What stands for the term of rows that are meant.
const ROWS: &str = "[rows]";

/// Most digits of a piece of a time or a date, which is no name by itself.
const MAX_PIECE_DIGITS: usize = 2;

/// Whose terms are looked for.
pub(super) struct Asking {
    pub(super) words: String,
    /// Whether each of the words asks, not the names alone.
    pub(super) is_question: bool,
    /// The days that are meant without their dates.
    pub(super) days: Vec<Date>,
}

impl Asking {
    /// Returns the words with the dates of the days.
    pub(super) fn with_days(&self) -> String {
        self.days.iter().fold(self.words.clone(), |words, day| format!("{words} {day}"))
    }
}

/// What a message asks for.
pub(super) struct Terms {
    pub(super) terms: Vec<ShortTerm>,
    pub(super) asked: Asked,
    /// The terms of each name, and of each other word with a capital inside a sentence.
    pub(super) names: Vec<u128>,
    /// The terms of each of several questions.
    pub(super) questions: Vec<u128>,
    /// The signs of a question with their terms, which no text has.
    pub(super) signs: Vec<(String, u128)>,
    /// The rows of a list that a question means, with their term, which no text has.
    pub(super) rows: Option<(RowReference, u128)>,
    /// The terms of the days.
    pub(super) days: u128,
    /// Those of names alone.
    weighty: u128,
    pub(super) is_question: bool,
    /// Whether it has a question mark, too.
    pub(super) asks: bool,
}

impl Terms {
    /// Returns the terms of a question, or of the names of another text; none if there are too many.
    pub(super) fn of(asking: &Asking) -> Self {
        let &Asking { words: ref text, is_question, ref days } = asking;
        let mut terms: Vec<ShortTerm> = Vec::new();
        let mut add = |text: &str| {
            scan(text, |term, start| {
                let (term, kind) = (term.short().as_word(), term.kind());
                let digits = text[start..].bytes().take_while(u8::is_ascii_digit).count();
                // The 25 of 03:25 names nothing.
                let is_of_clock = text[..start].ends_with(':') || text[start + digits..].starts_with(':');
                let is_short = kind == TermKind::Part && (1..=MAX_PIECE_DIGITS).contains(&digits);
                // Nor does that of "March 25", which is a name of its own.
                let begins_date = || !spellings(text, start).is_empty() && has(&text[start..start + digits], term);
                let is_of_date = || text[..start].ends_with('月') || begins_date();
                let is_piece = is_short && (is_of_clock || is_of_date());
                let asks = names_one(term) && !terms.contains(&term) && !is_piece;
                terms.extend(asks.then_some(term));
            });
        };
        if is_question {
            add(text);
        } else if text.len() <= TASK_BYTES {
            for name in names(text) {
                add(&text[name]);
            }
        }
        let days: Vec<ShortTerm> = days.iter().map(|day| ShortTerm::of_day(*day).as_word()).collect();
        for day in &days {
            terms.extend((!terms.contains(day)).then_some(*day));
        }
        let signs = (terms.len()..).zip(if is_question { signs(text) } else { Vec::new() });
        let signs: Vec<(usize, &str)> = signs.collect();
        terms.extend(signs.iter().map(|(_, sign)| ShortTerm::of_sign(sign)));
        let rows = RowReference::of(text).filter(|_| is_question).map(|rows| (rows, terms.len()));
        terms.extend(rows.iter().map(|_| ShortTerm::of_sign(ROWS)));
        if terms.len() > MAX_TERMS {
            terms.clear();
        }
        let rows = rows.filter(|(_, at)| *at < terms.len()).map(|(rows, at)| (rows, 1 << at));
        let known = signs.into_iter().filter(|(at, _)| *at < terms.len());
        let signs: Vec<(String, u128)> = known.map(|(at, sign)| (sign.to_owned(), 1 << at)).collect();
        let of = |name: &str| bits_of(&terms, name);
        let mut questions: Vec<u128> =
            if is_question { questions(text).into_iter().map(|range| of(&text[range])).collect() } else { Vec::new() };
        questions.retain(|&bits| bits != 0);
        if questions.len() < 2 {
            questions.clear();
        }
        let ranges = names(text);
        let mut names: Vec<u128> =
            ranges.iter().map(|name| of(&text[name.clone()])).chain(latin(text).map(of)).collect();
        let days = (0..terms.len()).filter(|&at| days.contains(&terms[at])).fold(0, |all, at| all | 1 << at);
        names.extend((0..terms.len()).map(|at| days & 1 << at));
        let weighty = names.iter().fold(0, |all, name| all | name);
        names.extend(capitals_beside(text, &ranges).into_iter().map(|word| of(&text[word])));
        names.extend(signs.iter().map(|(_, bit)| bit));
        names.extend(rows.iter().map(|(_, bit)| bit));
        names.retain(|&bits| bits != 0);
        names.sort_unstable();
        names.dedup();
        let asked = Asked::of(terms.iter().copied());
        let asks = is_question && text.contains(['?', '？']);
        Self { terms, asked, names, questions, signs, rows, days, weighty, is_question, asks }
    }

    pub(super) fn all_names(&self) -> u128 {
        self.names.iter().fold(0, |all, name| all | name)
    }

    /// Returns those of a text.
    pub(super) fn bits_of(&self, text: &str) -> u128 {
        bits_of(&self.terms, text)
    }

    /// Returns which of them are among the terms of a part.
    pub(super) fn found(&self, of_part: &[ShortTerm]) -> u128 {
        let asked = of_part.iter().map(|term| term.as_word()).filter(|&term| self.asked.contains(term));
        let bits = asked.filter_map(|term| self.terms.iter().position(|other| *other == term));
        bits.fold(0, |found, bit| found | 1 << bit)
    }

    /// Returns the weight of each term; 0 for those that no group has.
    pub(super) fn weights(&self, by_group: &[u128]) -> Vec<f32> {
        let idf = Idf::of(by_group.len());
        let weight = |bit: usize| {
            let having = by_group.iter().filter(|found| **found & 1 << bit != 0).count();
            let factor = match self.terms[bit].kind() {
                _ if having == 0 => return 0.0,
                _ if self.weighty & 1 << bit != 0 => NAME,
                TermKind::Pair => OF_PAIR,
                _ => 1.0,
            };
            factor * idf.at(having)
        };
        (0..self.terms.len()).map(weight).collect()
    }
}

/// Returns whether a text has a term.
fn has(text: &str, term: ShortTerm) -> bool {
    bits_of(&[term], text) != 0
}

fn bits_of(terms: &[ShortTerm], text: &str) -> u128 {
    let mut bits = 0;
    scan(text, |term, _| {
        bits |= terms.iter().position(|other| *other == term.short().as_word()).map_or(0, |at| 1 << at);
    });
    bits
}

/// Weight of a term of a name, and of a pair of characters, of which a word has several; that of others is 1.
const NAME: f32 = 3.0;
pub(super) const OF_PAIR: f32 = 0.5;

/// Returns the words in Latin letters of a text in a script without spaces, where they are names.
fn latin(text: &str) -> impl Iterator<Item = &str> {
    let words = text.split(|c: char| !c.is_ascii_alphanumeric()).filter(|word| word.len() > 2);
    words.filter(|_| text.contains(is_han))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_date_asks_however_it_is_written_and_its_day_does_not() {
        for question in ["What's on on 15 October?", "Was steht am 15. Oktober an?", "10月15日有什么安排?"] {
            let terms = Terms::of(&Asking { words: question.to_owned(), is_question: true, days: Vec::new() });
            assert_ne!(terms.bits_of(r#"{"title": "Choir", "start": "2026-10-15T09:45"}"#), 0, "{question}");
            assert_eq!(terms.bits_of("GET /items/15"), 0, "{question}");
        }
    }
}
