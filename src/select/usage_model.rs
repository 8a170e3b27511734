//! The chance that the next step uses a term: a linear model, learned or by hand.

use std::sync::LazyLock;

use crate::text::estimate::count;
use crate::text::segments::Class;
use crate::text::terms::KINDS;

use super::facts::{Fact, QueryMatch};
use super::scoring::Voice;

/// Features of a term.
pub const FEATURES: usize = 14;

/// Logarithms of one more than whole numbers; those of the small ones, which most are, from a table.
pub struct Logarithms([f32; 512]);

impl Logarithms {
    /// Fills the table.
    pub fn new() -> Self {
        Self(std::array::from_fn(|n| count(n).ln_1p()))
    }

    fn at(&self, n: usize) -> f32 {
        self.0.get(n).copied().unwrap_or_else(|| count(n).ln_1p())
    }
}

/// Returns what can be read off a conversation of `messages` messages about a term: see `training/README.md`.
pub fn features(fact: &Fact, bearing: &QueryMatch, messages: usize, logarithms: &Logarithms) -> [f32; FEATURES] {
    let ln = |n: u16| logarithms.at(usize::from(n));
    let is = |condition: bool| f32::from(u8::from(condition));
    let by = |voice: Voice| is(fact.voices & (1 << voice as u8) != 0);
    [
        1.0,
        ln(fact.messages),
        logarithms.at(messages.saturating_sub(fact.last_message as usize)),
        ln(fact.uses),
        by(Voice::User),
        by(Voice::Assistant),
        by(Voice::Call),
        ln(fact.company),
        bearing.relevance,
        is(bearing.asked > 0.0),
        is(matches!(fact.class, Class::Error | Class::NearError | Class::Outlier)),
        is(fact.class == Class::Header),
        is(matches!(fact.class, Class::Repeat | Class::Noise)),
        ln(fact.mentions),
    ]
}

/// Returns the chance that the next step uses a term; 0 for kinds without weights.
pub fn chance(fact: &Fact, bearing: &QueryMatch, messages: usize, weights: &Weights, logarithms: &Logarithms) -> f32 {
    let Some(weights) = &weights[fact.term.kind() as usize] else { return 0.0 };
    let sum: f32 = features(fact, bearing, messages, logarithms)
        .iter()
        .zip(weights)
        .map(|(feature, weight)| feature * weight)
        .sum();
    1.0 / (1.0 + (-sum).exp())
}

/// By kind of term, the weight of each feature; `None` for kinds that are not worth keeping for their own sake.
pub type Weights = [Option<[f32; FEATURES]>; KINDS];

/// Fitted to recorded agent runs: see `training/README.md`.
pub static LEARNED: LazyLock<Weights> = LazyLock::new(|| weights(include_str!("scoring.tsv")));

/// What one would guess: names more than words, the recent and the used more than others. The ablation of [`LEARNED`].
pub static BY_HAND: LazyLock<Weights> = LazyLock::new(|| {
    let guess = |bias: f32| {
        let mut weights = [0.0; FEATURES];
        (weights[0], weights[2], weights[3]) = (bias, -0.5, 0.5);
        Some(weights)
    };
    let name = guess(-3.0);
    [None, None, guess(-4.0), name, name, name, name, guess(-5.0)]
});

/// Reads a table of weights: a row for each kind of term, a column for each feature.
fn weights(table: &str) -> Weights {
    const NAMES: [&str; KINDS] = ["part", "word", "long_word", "ident", "joined", "path", "number", "pair"];
    let mut weights = [None; KINDS];
    for row in table.lines().filter(|line| !line.starts_with('#')) {
        let mut cells = row.split('\t');
        let kind = cells.next().and_then(|name| NAMES.iter().position(|known| *known == name));
        let row: Vec<f32> = cells.filter_map(|cell| cell.trim().parse().ok()).collect();
        if let (Some(kind), Ok(row)) = (kind, row.try_into()) {
            weights[kind] = Some(row);
        }
    }
    weights
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_that_is_salient_has_weights() {
        let salient = [false, false, true, true, true, true, true, true];
        for weights in [&*LEARNED, &*BY_HAND] {
            assert_eq!(weights.map(|row| row.is_some()), salient);
        }
    }

    #[test]
    fn the_table_has_a_number_for_every_feature_of_every_salient_kind() {
        let rows = include_str!("scoring.tsv").lines().filter(|row| !row.starts_with('#'));
        let rows: Vec<Vec<&str>> = rows.map(|row| row.split('\t').collect()).collect();
        assert_eq!(rows[0].len(), FEATURES + 1, "{:?}", rows[0]);
        assert_eq!(rows.len(), 1 + LEARNED.iter().flatten().count());
        for row in &rows[1..] {
            let numbers = row[1..].iter().filter(|cell| cell.parse().is_ok_and(f32::is_finite));
            assert_eq!(numbers.count(), FEATURES, "{row:?}");
        }
    }
}
