//! Parses `words.tsv`: words by which a user points to something.

use std::collections::HashMap;
use std::ops::Range;
use std::sync::LazyLock;

use super::rows::Extreme;
use crate::text::bytes::FIRST_WIDE;

/// What a user points to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Shape {
    Table,
    List,
    Code,
    Letter,
    Verse,
}

/// What a word says of what is meant.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sign {
    /// The place of an item, from 1 on; 0 is the last.
    Place(usize),
    Shape(Shape),
    /// Stands before the label of an item.
    Item,
    /// Behind a place: it is one in time.
    Span,
    /// How many rows are meant.
    Count(usize),
    /// The end of a column, whose row is meant.
    Row(Extreme),
    /// A day of the week, Monday is 1.
    Weekday(i8),
    /// A day so many days ahead of today.
    Ahead(i8),
    /// Stands before the number of a day.
    Dated,
}

/// The words of `words.tsv`.
pub struct Words {
    whole: HashMap<&'static str, Vec<Sign>>,
    starts: Vec<(&'static str, Sign)>,
    /// Words of scripts without spaces, and several words in a row.
    wide: Vec<Phrase>,
    /// How the first line of a letter starts.
    pub openings: Vec<&'static str>,
}

struct Phrase {
    text: &'static str,
    is_wide: bool,
    sign: Sign,
}

fn is_wide(text: &str) -> bool {
    text.contains(|c: char| c >= FIRST_WIDE)
}

impl Words {
    /// Returns the signs of a word in lower case.
    pub fn of_word<'w>(&'w self, word: &'w str) -> impl Iterator<Item = Sign> + 'w {
        let starting = self.starts.iter().filter(move |(start, _)| word.starts_with(start));
        self.whole.get(word).into_iter().flatten().chain(starting.map(|(_, sign)| sign)).copied()
    }

    /// Returns the signs in a text in lower case whose words have no spaces between them, and of several words, and where they stand.
    pub fn wide_in<'w>(&'w self, lower: &'w str) -> impl Iterator<Item = (Range<usize>, Sign)> + 'w {
        let has_wide = is_wide(lower);
        let wide = self.wide.iter().filter(move |phrase| has_wide || !phrase.is_wide);
        wide.filter_map(|&Phrase { text, sign, .. }| lower.find(text).map(|at| (at..at + text.len(), sign)))
    }
}

pub static WORDS: LazyLock<Words> = LazyLock::new(|| {
    let mut all = Words { whole: HashMap::new(), starts: Vec::new(), wide: Vec::new(), openings: Vec::new() };
    for row in include_str!("words.tsv").lines().filter(|row| !row.starts_with('#')) {
        let mut cells = row.split('\t');
        let (Some(kind), Some(name), Some(words)) = (cells.next(), cells.next(), cells.next()) else { continue };
        let sign = match (kind, name) {
            ("place", place) => place.parse().ok().map(Sign::Place),
            ("item", _) => Some(Sign::Item),
            ("span", _) => Some(Sign::Span),
            ("count", count) => count.parse().ok().map(Sign::Count),
            ("row", "least") => Some(Sign::Row(Extreme::Least)),
            ("row", "most") => Some(Sign::Row(Extreme::Most)),
            ("weekday", day) => day.parse().ok().map(Sign::Weekday),
            ("ahead", days) => days.parse().ok().map(Sign::Ahead),
            ("dated", _) => Some(Sign::Dated),
            ("shape", "table") => Some(Sign::Shape(Shape::Table)),
            ("shape", "list") => Some(Sign::Shape(Shape::List)),
            ("shape", "code") => Some(Sign::Shape(Shape::Code)),
            ("shape", "letter") => Some(Sign::Shape(Shape::Letter)),
            ("shape", "verse") => Some(Sign::Shape(Shape::Verse)),
            // An opening of a letter.
            _ => None,
        };
        for word in words.split(", ") {
            let Some(sign) = sign else {
                all.openings.push(word);
                continue;
            };
            let is_wide = is_wide(word);
            if is_wide || word.contains([' ', '-', '\'']) {
                all.wide.push(Phrase { text: word, is_wide, sign });
            } else if let Some(start) = word.strip_suffix('*') {
                all.starts.push((start, sign));
            } else {
                all.whole.entry(word).or_default().push(sign);
            }
        }
    }
    all
});
