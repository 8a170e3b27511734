//! Tells kinds of lines of one shape apart: `INFO sent 4096 messages` and `INFO heartbeat 9ab1 ok`.

use std::collections::HashMap;

use super::column::strange;
use super::fields::FieldValue;
use super::{MIN_OF_PART, MIN_OF_SHAPE, Sample};
use crate::tokens::BuildMixedHasher;

/// Fields of a line that may tell its kind, or show that they differ.
const FIELDS: usize = 16;
/// Most words of a field that are told apart.
const WORDS: usize = OTHER as usize - 1;
/// Lines agree in a field by their kind, not by chance, if chance has odds of e to this against it.
const BY_CHANCE: f64 = 14.0;

/// What a field has: any number, one of its first words, or another.
const NUMBER: u8 = 0;
const OTHER: u8 = 33;
const CONTENTS: usize = WORDS + 2;

/// Lines of one shape by the word that tells their kinds apart.
pub(super) struct Kinds {
    /// The field with the word.
    pub at: usize,
    pub by_word: Vec<(FieldValue, Vec<usize>)>,
    /// Lines with another word, fewer than a quarter.
    pub rest: Vec<usize>,
}

/// A field of the lines.
struct Field {
    /// The fields before it that are not joined to the one behind them: the same for all parts of a word.
    word: usize,
    contents: Vec<u8>,
    words: Vec<FieldValue>,
    counts: [usize; CONTENTS],
}

impl Field {
    fn of(sample: &Sample<'_>, lines: &[usize], at: usize) -> Self {
        let contents = Vec::with_capacity(lines.len());
        let word = sample.line(lines[0]).word(at);
        let mut this = Self { word, contents, words: Vec::new(), counts: [0; CONTENTS] };
        let mut before = None;
        for &nth in lines {
            let field = sample.line(nth).field(at).unwrap_or_default();
            let content = match before {
                Some((same, content)) if same == field => content,
                _ => this.content(FieldValue::of(field)),
            };
            before = Some((field, content));
            this.contents.push(content);
            this.counts[usize::from(content)] += 1;
        }
        this
    }

    fn content(&mut self, value: FieldValue) -> u8 {
        if matches!(value, FieldValue::Number(_)) {
            return NUMBER;
        }
        let known = self.words.iter().position(|word| *word == value);
        let place = known.unwrap_or_else(|| {
            if self.words.len() < WORDS {
                self.words.push(value);
                self.words.len() - 1
            } else {
                WORDS
            }
        });
        u8::try_from(place + 1).unwrap_or(OTHER)
    }

    /// Returns whether the field has a few words, each in many lines, and little else.
    fn has_few_words(&self) -> bool {
        let frequent = || self.counts[1..=WORDS].iter().filter(|count| **count >= MIN_OF_SHAPE);
        let (words, lines) = (frequent().count(), frequent().sum::<usize>());
        words > 1 && words * MIN_OF_PART <= lines && 4 * lines >= 3 * self.contents.len()
    }

    /// Returns whether it has one content in the lines of a kind, where `other` has one of its frequent words, but not in all.
    fn agrees_in_a_kind(&self, other: &Field) -> bool {
        // By word of `other`.
        let mut counts = [[0_u16; CONTENTS]; CONTENTS];
        for (own, kind) in self.contents.iter().zip(&other.contents) {
            counts[usize::from(*kind)][usize::from(*own)] += 1;
        }
        (1..=WORDS).filter(|word| other.counts[*word] >= MIN_OF_SHAPE).any(|word| {
            let (lines, counts) = (other.counts[word], &counts[word][..=WORDS]);
            let (most, count) = counts.iter().enumerate().max_by_key(|(_, count)| **count).unwrap_or((0, &0));
            let chance = ratio(self.counts[most], self.contents.len());
            usize::from(*count) + strange(lines).max(1) >= lines && ratio(lines, 1) * -chance.ln() > BY_CHANCE
        })
    }
}

/// Returns the lines by the first word that tells kinds apart: another field has a number or the same word in all lines of a
/// kind, but not in those of others. A word as the level or the module of a log, with the same lines behind it, does not.
pub(super) fn kinds(sample: &Sample<'_>, lines: &[usize]) -> Option<Kinds> {
    if lines.len() < 2 * MIN_OF_PART {
        return None;
    }
    let count = sample.line(lines[0]).fields.len().min(FIELDS);
    let fields: Vec<Field> = (0..count).map(|at| Field::of(sample, lines, at)).collect();
    let at = fields.iter().position(|field| {
        // Parts of one word agree as a name does: `load_config`.
        let mut others = fields.iter().filter(|other| other.word != field.word);
        field.has_few_words() && others.any(|other| other.agrees_in_a_kind(field))
    })?;
    let mut kinds = Kinds { at, by_word: Vec::new(), rest: Vec::new() };
    let mut places: HashMap<u8, usize, BuildMixedHasher> = HashMap::default();
    for (&nth, &content) in lines.iter().zip(&fields[at].contents) {
        let is_word = content != NUMBER && content != OTHER;
        if is_word && fields[at].counts[usize::from(content)] >= MIN_OF_SHAPE {
            let place = *places.entry(content).or_insert_with(|| {
                kinds.by_word.push((fields[at].words[usize::from(content) - 1], Vec::new()));
                kinds.by_word.len() - 1
            });
            kinds.by_word[place].1.push(nth);
        } else {
            kinds.rest.push(nth);
        }
    }
    Some(kinds)
}

fn ratio(count: usize, of: usize) -> f64 {
    use crate::text::estimate::count as number;
    f64::from(number(count)) / f64::from(number(of))
}
