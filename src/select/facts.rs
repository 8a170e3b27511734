//! What a conversation knows of its terms, by number: mentions, and whether the request is about them.

use std::collections::HashSet;

use crate::text::bytes::{Filter, usize_of};
use crate::text::estimate::index;
use crate::text::terms::ShortTerm;
use crate::tokens::BuildMixedHasher;

/// What the conversation knows of a term; 32 bytes, for facts lie all over the cache. What is counted stops at 65,535.
#[derive(Debug, Clone, Copy)]
pub struct Fact {
    pub term: ShortTerm,
    pub messages: u16,
    pub mentions: u16,
    /// Mentions by the model, in words or in calls.
    pub uses: u16,
    /// Messages in which the model named it after somebody else had.
    pub reuses: u16,
    pub last_message: u32,
    /// The last message in which the model named it.
    pub last_use: u32,
    /// The part of the last mention, among those of all documents, and that of the last mention that was not the model's.
    pub last_part: u32,
    pub source_part: u32,
    /// Whether the request is about it.
    pub is_asked: bool,
    /// Whether it is named in what stays for certain.
    pub stays: bool,
}

/// No message, no part.
pub const NONE: u32 = u32::MAX;

impl Fact {
    /// Returns what is known of a term before it is mentioned.
    pub fn new(term: ShortTerm, is_asked: bool) -> Self {
        Self {
            term,
            messages: 0,
            mentions: 0,
            uses: 0,
            reuses: 0,
            last_message: NONE,
            last_use: NONE,
            last_part: NONE,
            source_part: NONE,
            is_asked,
            stays: false,
        }
    }
}

/// How much the request is about a term, the more the rarer it is, and the relevance of the most relevant part that names
/// it.
#[derive(Debug, Clone, Copy, Default)]
pub struct QueryMatch {
    pub asked: f32,
    pub relevance: f32,
}

/// Assigns each term a dense index. Open addressing over `u32`: cold cache lines dominate.
pub struct TermIndex {
    /// Numbers from the place on that a term's hash names, [`Self::FREE`] behind the last.
    slots: Vec<u32>,
}

impl TermIndex {
    const FREE: u32 = u32::MAX;

    /// Returns an empty table with room for a quarter of `mentions`: most terms are mentioned again or count for nothing.
    pub fn of(mentions: usize) -> Self {
        Self { slots: vec![Self::FREE; (mentions / 4).max(8).next_power_of_two()] }
    }

    /// Returns the number of a term, or the slot that it should have.
    pub fn find(&self, term: ShortTerm, facts: &[Fact]) -> Result<u32, usize> {
        let mask = self.slots.len() - 1;
        let mut slot = usize_of(term.hash()) & mask;
        loop {
            match self.slots[slot] {
                Self::FREE => return Err(slot),
                number if facts[number as usize].term == term => return Ok(number),
                _ => slot = (slot + 1) & mask,
            }
        }
    }

    /// Returns the number of a term, a new one with facts of its own where it has none.
    pub fn number(&mut self, term: ShortTerm, facts: &mut Vec<Fact>, asked: &Asked) -> u32 {
        let slot = match self.find(term, facts) {
            Ok(number) => return number,
            Err(slot) => slot,
        };
        let number = index(facts.len());
        facts.push(Fact::new(term, asked.contains(term)));
        self.slots[slot] = number;
        if facts.len() * 4 > self.slots.len() * 3 {
            self.grow(facts);
        }
        number
    }

    fn grow(&mut self, facts: &[Fact]) {
        self.slots = vec![Self::FREE; self.slots.len() * 2];
        for (number, fact) in facts.iter().enumerate() {
            if let Err(slot) = self.find(fact.term, facts) {
                self.slots[slot] = index(number);
            }
        }
    }
}

/// The terms that the request is about, behind a filter that tells most others at one look.
pub struct Asked {
    terms: HashSet<ShortTerm, BuildMixedHasher>,
    filter: Filter<512>,
}

impl Asked {
    /// Returns the filter for some terms.
    pub fn of(terms: impl Iterator<Item = ShortTerm>) -> Self {
        let terms: HashSet<ShortTerm, BuildMixedHasher> = terms.collect();
        Self { filter: Filter::of(terms.iter().map(|term| term.hash())), terms }
    }

    /// Returns whether a term is one of them.
    pub fn contains(&self, term: ShortTerm) -> bool {
        self.filter.may_have(term.hash()) && self.terms.contains(&term)
    }
}
