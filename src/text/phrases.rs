//! Phrases by their first words, to find those that start at a word.

use std::collections::HashMap;

use super::bytes::Filter;
use crate::tokens::BuildMixedHasher;

/// Phrases by the hash of their first word.
pub struct Phrases<P> {
    phrases: HashMap<u64, Vec<P>, BuildMixedHasher>,
    /// Rejects most words that start no phrase.
    known: Filter<1024>,
}

impl<P> Phrases<P> {
    pub fn new(phrases: HashMap<u64, Vec<P>, BuildMixedHasher>) -> Self {
        Self { known: Filter::of(phrases.keys().copied()), phrases }
    }

    /// Returns the phrases whose first word has this hash.
    pub fn of(&self, hash: u64) -> &[P] {
        let phrases = self.known.may_have(hash).then(|| self.phrases.get(&hash)).flatten();
        phrases.map_or(&[], Vec::as_slice)
    }
}
