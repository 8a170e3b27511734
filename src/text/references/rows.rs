//! Finds the records of a list that a question means without their names: by place, by a month, or as the one with the most or the least.

use super::words::{Sign, WORDS};
use super::{is_ordinal, split};
use crate::text::dates::{month_asked, months_in};
use crate::text::listing::{Column, Listing};
use crate::text::sentences::QUESTION_BYTES;

/// Most columns that are looked at where the question names none, and most records with the same number.
const MAX_COLUMNS: usize = 4;
const MAX_EQUAL: usize = 2;

/// Most days in a month that is meant.
const MAX_DAYS: usize = 24;

/// Most words of a brief question.
const BRIEF_WORDS: usize = 8;

/// Fewest bytes of a part of a label for the question to name it.
const MIN_LABEL: usize = 3;

/// What a question means in a list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RowReference {
    /// The question in lower case.
    question: String,
    place: Option<usize>,
    extreme: Option<Extreme>,
    month: Option<usize>,
    /// How many rows are meant.
    count: usize,
}

/// Which end of a column is meant.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Extreme {
    Least,
    Most,
}

impl RowReference {
    /// Returns what a question means: "Which flat has the lowest rent?", "What is in row 45?", "Who is on leave in May?" O(n).
    pub fn of(question: &str) -> Option<Self> {
        if question.len() > QUESTION_BYTES {
            return None;
        }
        let lower = question.to_lowercase();
        let words: Vec<&str> = split(&lower).collect();
        let signs = |word: &str| WORDS.of_word(word).collect::<Vec<_>>();
        let (mut place, mut extreme, mut count) = (None, None, 1);
        let count_of = |word: &str| {
            signs(word).into_iter().find_map(|sign| if let Sign::Count(count) = sign { Some(count) } else { None })
        };
        for (nth, word) in words.iter().enumerate() {
            let next = words.get(nth + 1).copied().unwrap_or_default();
            let before = nth.checked_sub(1).map_or("", |before| words[before]);
            let beside = || count_of(next).or_else(|| count_of(before)).unwrap_or(1);
            place = place.or_else(|| ordinal(word));
            for sign in signs(word) {
                match sign {
                    Sign::Place(at) if !signs(next).contains(&Sign::Span) => {
                        place = place.or(Some(at));
                        count = count.max(beside());
                    }
                    Sign::Item => place = place.or_else(|| next.parse().ok().filter(|&at| at > 0)),
                    Sign::Row(end) => {
                        extreme = extreme.or(Some(end));
                        count = count.max(beside());
                    }
                    _ => {}
                }
            }
        }
        for (at, sign) in WORDS.wide_in(&lower) {
            match sign {
                // 第45行
                Sign::Place(nth) if !lower[..at.end].ends_with(|c: char| c.is_ascii_digit()) => {
                    place = place.or(Some(nth));
                }
                Sign::Row(end) => extreme = extreme.or(Some(end)),
                Sign::Count(of) => count = count.max(of),
                _ => {}
            }
        }
        if let Some((_, behind)) = lower.split_once('第') {
            let digits = behind.bytes().take_while(u8::is_ascii_digit).count();
            place = behind[..digits].parse().ok().or(place);
        }
        let month = month_asked(question);
        (place.is_some() || extreme.is_some() || month.is_some()).then_some(Self {
            question: lower,
            place,
            extreme,
            month,
            count,
        })
    }

    /// Returns where the records that are meant stand in a text, what is meant first; none where it is no list. O(bytes).
    pub fn find(&self, text: &str) -> Vec<usize> {
        if let Some(month) = self.month {
            let days = months_in(text).filter(|(of, _)| *of == month).map(|(_, at)| at);
            return days.take(MAX_DAYS).collect();
        }
        let Some(listing) = Listing::of(text) else { return Vec::new() };
        let mut found = Vec::new();
        if let Some(extreme) = self.extreme {
            for column in self.columns(&listing) {
                found.extend(ends(column, extreme, self.count));
            }
        } else if let Some(place) = self.place {
            let at = place.checked_sub(1).unwrap_or(listing.records.len().saturating_sub(self.count));
            found.extend(listing.records.iter().skip(at).take(self.count));
        }
        found
    }

    /// Returns the columns that the question names, else the first ones.
    fn columns<'l, 't>(&self, listing: &'l Listing<'t>) -> Vec<&'l Column<'t>> {
        let named: Vec<&Column<'_>> = listing.columns.iter().filter(|column| self.names(column.label)).collect();
        if named.is_empty() { listing.columns.iter().take(MAX_COLUMNS).collect() } else { named }
    }

    /// Returns whether the question has a part of a label.
    fn names(&self, label: &str) -> bool {
        let label = label.to_lowercase();
        split(&label)
            .flat_map(|part| part.split('_'))
            .any(|part| part.len() >= MIN_LABEL && self.question.contains(part))
    }

    /// Returns whether it means a place and nothing else; "the 21st" may be a day as well.
    pub fn is_place(&self) -> bool {
        self.extreme.is_none() && self.month.is_none()
    }

    /// Returns whether it is asked in a few words, which may mean the newest list without naming it: "Which one is the cheapest?"
    pub fn is_brief(&self) -> bool {
        self.question.contains(['?', '？']) && self.words().count() <= BRIEF_WORDS
    }

    /// Returns the words of the question that may name a list.
    pub fn words(&self) -> impl Iterator<Item = &str> {
        split(&self.question)
    }
}

/// Returns the place that a word with digits is: "12th", "45º".
fn ordinal(word: &str) -> Option<usize> {
    let digits = word.bytes().take_while(u8::is_ascii_digit).count();
    let end = &word[digits..];
    word[..digits].parse().ok().filter(|&place| place > 0 && (is_ordinal(end) || end == "番目"))
}

/// Returns where the `count` least or largest numbers of a column stand, and those equal to the last of them.
fn ends(column: &Column<'_>, extreme: Extreme, count: usize) -> Vec<usize> {
    let mut numbers = column.numbers.clone();
    numbers.sort_by(|(one, _), (other, _)| match extreme {
        Extreme::Least => one.total_cmp(other),
        Extreme::Most => other.total_cmp(one),
    });
    let last = numbers.get(count - 1).map_or(f64::NAN, |(number, _)| *number);
    let is_meant = |(nth, (number, _)): &(usize, (f64, usize))| *nth < count || (number - last).abs() < f64::EPSILON;
    let meant = numbers.into_iter().enumerate().take_while(is_meant);
    meant.take(count + MAX_EQUAL - 1).map(|(_, (_, at))| at).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIST: &str = "flat,rent,rooms,from\nMill Lane 3,940,2,2026-05-08\nOak Road 7,1250,4,2026-01-30\nQuay 11,655,3,2026-05-19\n\
        Elm Court 2,1980,5,2026-11-02\nHill Rise 9,1100,1,2026-02-14\nPark Row 4,870,3,2026-03-01\nDock St 6,1420,6,2026-08-23\n";

    /// Returns the rows of [`LIST`] that a question means, by their first words.
    fn meant(question: &str) -> Vec<&'static str> {
        let found = RowReference::of(question).map(|reference| reference.find(LIST)).unwrap_or_default();
        let row = |at: usize| LIST[LIST[..at].rfind('\n').map_or(0, |end| end + 1)..].split(' ').next();
        found.into_iter().filter_map(row).collect()
    }

    #[test]
    fn a_question_means_rows_by_place_by_an_end_of_a_column_and_by_month() {
        for (question, rows) in [
            ("Tell me about the first flat in the list.", vec!["Mill"]),
            ("And the last one?", vec!["Dock"]),
            ("What is in row 5?", vec!["Hill"]),
            ("How much is the 6th?", vec!["Park"]),
            ("The first two flats, please.", vec!["Mill", "Oak"]),
            ("What are the last 2?", vec!["Park", "Dock"]),
            ("第3行是什么？", vec!["Quay"]),
            ("名单里最后一家是谁？", vec!["Dock"]),
            ("Which flat has the lowest rent?", vec!["Quay"]),
            ("What are the two cheapest by rent?", vec!["Quay", "Park"]),
            ("The highest rent?", vec!["Elm"]),
            ("Which one has the most rooms?", vec!["Dock"]),
            ("¿Cuál tiene la rent más baja?", vec!["Quay"]),
            ("rent最高的是哪一个？", vec!["Elm"]),
            ("Which flats are free in May?", vec!["Mill", "Quay"]),
            ("Was ist im August frei?", vec!["Dock"]),
            ("11月有空的是哪个？", vec!["Elm"]),
            ("What begins in 2026-02?", vec!["Hill"]),
        ] {
            assert_eq!(meant(question), rows, "{question}");
        }
    }

    #[test]
    fn other_words_mean_no_rows() {
        for question in [
            "May I ask what the rent is?",
            "He may march on.",
            "What was it last week?",
            "On 3 May we met, what did we say?",
            "5月3日说了什么？",
            "Is the roof all right?",
        ] {
            assert_eq!(RowReference::of(question), None, "{question}");
        }
    }
}
