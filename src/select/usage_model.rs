//! Predicts the chance that the next step uses a term: by trees fitted to recorded agent runs, or by hand.

use std::sync::LazyLock;

use crate::text::estimate::index;
use crate::text::terms::KINDS;
use crate::tools::Effect;

#[cfg(feature = "evaluation")]
use super::ablation::{Mechanism, is_on};
use super::facts::{Fact, NONE, QueryMatch};
use super::scoring::Document;
use super::trees::Trees;

/// Features of a term, in the order of [`features`]: see `training/README.md`.
pub const NAMES: [&str; FEATURES] = [
    "kind",
    "mentions",
    "uses",
    "reuses",
    "age",
    "use_age",
    "company",
    "relevance",
    "asked",
    "part_terms",
    "source_age",
    "source_names",
    "source_parts",
    "source_kind",
    "source_effect",
    "source_relevance",
    "quoted_terms",
    "quoted_age",
    "quoted_gap",
    "newest_effect",
    "is_in_turn",
];

/// Number of features.
pub const FEATURES: usize = 21;

/// How much the model has used of a text, and its relevance.
#[derive(Debug, Clone, Copy, Default)]
pub struct Uptake {
    /// Mentions by the model of terms that hardly any other text has.
    quoted_terms: u16,
    /// Last message with one of them, and its part.
    last: Option<(u32, u32)>,
    /// The relevance of the most relevant part.
    pub relevance: f32,
}

impl Uptake {
    /// Records that a message of the model uses a term of a part.
    pub fn quote(&mut self, message: u32, part: u32) {
        self.quoted_terms = self.quoted_terms.saturating_add(1);
        self.last = Some((message, part));
    }
}

/// Facts that all terms of a conversation share.
#[derive(Debug, Clone, Copy, Default)]
pub struct Conversation {
    pub messages: usize,
    /// The last message of the user.
    pub question: usize,
    /// The effect of the newest call.
    pub effect: Option<Effect>,
}

/// The text that the model has a term from: the last with it that is not the model's own, if there is one.
pub struct SourceText<'s> {
    pub document: &'s Document,
    pub uptake: &'s Uptake,
    /// The part that has it, numbered over all documents.
    pub part: u32,
}

/// Returns the features of a term, integers that saturate at 65,535. `last` is the last document with it, and the number of
/// terms in that part.
pub fn features(
    fact: &Fact,
    query_match: &QueryMatch,
    conversation: &Conversation,
    last: (&Document, usize),
    source: &SourceText<'_>,
) -> [u16; FEATURES] {
    let age = |message: u32| small(conversation.messages.saturating_sub(message as usize));
    let (from, uptake) = (source.document, source.uptake);
    [
        fact.term.kind() as u16,
        fact.mentions,
        fact.uses,
        fact.reuses,
        age(fact.last_message),
        if fact.last_use == NONE { NEVER } else { age(fact.last_use) },
        small(last.0.analysis.names()),
        hundredths(query_match.relevance),
        hundredths(query_match.asked),
        small(last.1),
        age(index(from.message)),
        small(from.analysis.names()),
        small(from.analysis.parts.len()),
        from.analysis.kind().map_or(0, |kind| kind as u16 + 1),
        effect(from.effect),
        hundredths(uptake.relevance),
        uptake.quoted_terms,
        uptake.last.map_or(NEVER, |(message, _)| age(message)),
        uptake.last.map_or(NEVER, |(_, part)| small(part.abs_diff(source.part) as usize)),
        effect(conversation.effect),
        u16::from(from.message > conversation.question),
    ]
}

/// The age of something that never happened.
const NEVER: u16 = u16::MAX;

fn small(n: usize) -> u16 {
    u16::try_from(n).unwrap_or(u16::MAX)
}

#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // saturates
fn hundredths(value: f32) -> u16 {
    (value * 100.0) as u16
}

fn effect(effect: Option<Effect>) -> u16 {
    effect.map_or(0, |effect| effect as u16 + 1)
}

/// Worths of terms by their features. Caches the last of each kind: the next one is mostly in the same part, with the same
/// features.
pub struct Worths {
    worth: fn(&[u16; FEATURES]) -> f32,
    last: [([u16; FEATURES], f32); KINDS],
}

impl Worths {
    /// Returns worths by [`learned`].
    pub fn new() -> Self {
        let none = [0; FEATURES];
        #[cfg(not(feature = "evaluation"))]
        let worth = learned;
        #[cfg(feature = "evaluation")]
        let worth = if is_on(Mechanism::Learned) { learned } else { by_hand };
        Self { worth, last: [(none, worth(&none)); KINDS] }
    }

    /// Returns the worth of a term.
    pub fn at(&mut self, features: &[u16; FEATURES]) -> f32 {
        let last = &mut self.last[usize::from(features[0]) % KINDS];
        if last.0 != *features {
            *last = (*features, (self.worth)(features));
        }
        last.1
    }
}

/// Returns the worth of a term by the learned trees.
///
/// It is the root of the chance: a step gains more from one of two things that it may need than from the same thing twice as
/// surely, and high chances are less certain. Of the powers 1, 0.7, 0.5 and 0.4 it keeps most of what later steps use.
pub fn learned(features: &[u16; FEATURES]) -> f32 {
    chance(f64::from(LEARNED.sum(features)) / LEAF_SCALE).sqrt()
}

/// Scale of leaves as integers.
const LEAF_SCALE: f64 = 1000.0;

/// Fitted to recorded agent runs: see `training/README.md`.
#[allow(clippy::expect_used)] // part of the crate, and a test reads it; without it every term would be worth the same
static LEARNED: LazyLock<Trees> = LazyLock::new(|| {
    Trees::parse(include_str!("usage_trees.txt"), &NAMES).expect("usage_trees.txt is a table of trees")
});

/// Returns a guess, the ablation of [`learned`]: names above words, recent and used terms above others.
#[cfg(feature = "evaluation")]
fn by_hand(features: &[u16; FEATURES]) -> f32 {
    let [kind, _, uses, _, age, ..] = *features;
    let bias = match kind {
        2 => -4.0,
        7 => -5.0,
        _ => -3.0,
    };
    chance(bias + 0.5 * (f64::from(uses).ln_1p() - f64::from(age).ln_1p()))
}

/// Returns the chance of log odds, rounded so that the last digit is the same on every machine.
#[allow(clippy::cast_possible_truncation)] // it is rounded
fn chance(log_odds: f64) -> f32 {
    (1.0 / (1.0 + (-log_odds).exp())) as f32
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::text::segments::Kind;
    use crate::text::terms::TermKind;

    #[test]
    fn the_table_has_trees_for_the_features_that_there_are() {
        assert!(Trees::parse(include_str!("usage_trees.txt"), &NAMES).is_some_and(|trees| trees.len() >= 10));
    }

    /// A test that fails here asks for new trees: `make train`.
    #[test]
    fn the_trees_know_kinds_and_effects_by_these_numbers() {
        let terms = [
            TermKind::Part,
            TermKind::Word,
            TermKind::LongWord,
            TermKind::Ident,
            TermKind::Joined,
            TermKind::Path,
            TermKind::Number,
            TermKind::Pair,
        ];
        assert_eq!(terms.map(|kind| kind as u16), [0, 1, 2, 3, 4, 5, 6, 7]);
        let texts = [Kind::Log, Kind::Json, Kind::Code, Kind::Diff, Kind::Table, Kind::Search, Kind::Html, Kind::Plain];
        assert_eq!(texts.map(|kind| kind as u16), [0, 1, 2, 3, 4, 5, 6, 7]);
        let effects = [
            Effect::ReadsFile,
            Effect::LooksUp,
            Effect::WritesFile,
            Effect::EditsFile,
            Effect::RunsCommand,
            Effect::Changes,
            Effect::Unknown,
        ];
        assert_eq!(effects.map(|effect| effect as u16), [0, 1, 2, 3, 4, 5, 6]);
    }

    #[test]
    fn what_was_used_lately_is_worth_more_by_trees_and_by_hand() {
        let term = |kind: u16, uses: u16, age: u16| {
            let mut features = [0; FEATURES];
            (features[0], features[1], features[2], features[3]) = (kind, 1 + uses, uses, uses);
            (features[4], features[5]) = (age, if uses == 0 { NEVER } else { age });
            (features[6], features[9], features[17], features[18]) = (50, 5, NEVER, NEVER);
            features
        };
        for worth in [learned, by_hand] {
            for kind in 2..=7 {
                let [old, recent, used] =
                    [term(kind, 0, 60), term(kind, 0, 2), term(kind, 3, 2)].map(|term| worth(&term));
                assert!(0.0 < old && old < recent && recent < used && used < 1.0, "{kind}: {old} {recent} {used}");
            }
        }
    }

    #[test]
    fn a_quote_tells_when_and_where_a_text_was_quoted_last() {
        let mut uptake = Uptake::default();
        uptake.quote(4, 11);
        uptake.quote(6, 13);
        assert_eq!((uptake.quoted_terms, uptake.last), (2, Some((6, 13))));
    }
}
