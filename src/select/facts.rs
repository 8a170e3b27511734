//! Facts about the terms of a conversation: their mentions, and whether the request is about them.

use std::collections::HashSet;

use crate::text::bytes::{Filter, usize_of};
use crate::text::estimate::index;
use crate::text::terms::ShortTerm;
use crate::tokens::BuildMixedHasher;

/// Facts about a term. 32 bytes, for look-ups are scattered over the cache; counts saturate at 65,535.
#[derive(Debug, Clone, Copy)]
pub struct Fact {
    pub term: ShortTerm,
    pub messages: u16,
    pub mentions: u16,
    /// Mentions by the model, in words or in calls.
    pub uses: u16,
    /// Messages in which the model names it after somebody else.
    pub reuses: u16,
    pub last_message: u32,
    /// The last message in which the model names it.
    pub last_use: u32,
    /// Part of the last mention, and of the last one that is not the model's, numbered over all documents.
    pub last_part: u32,
    pub source_part: u32,
    /// Whether the request is about it.
    pub is_asked: bool,
    /// Whether a text that is never cut has it.
    pub stays: bool,
}

/// A term in at most so many messages tells which text the model has it from.
const RARE: u16 = 3;

/// No message or no part.
pub const NONE: u32 = u32::MAX;

impl Fact {
    /// Returns the facts of a term without mentions.
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

    /// Adds a mention in a message's part; returns the part that the model takes it from, if it `is_use` of a rare term.
    pub fn mention(&mut self, message: u32, part: u32, is_use: bool) -> Option<u32> {
        self.messages = self.messages.saturating_add(u16::from(self.last_message != message));
        self.last_message = message;
        self.mentions = self.mentions.saturating_add(1);
        self.last_part = part;
        if !is_use {
            self.source_part = part;
            return None;
        }
        self.uses = self.uses.saturating_add(1);
        if self.last_use == message {
            return None;
        }
        self.last_use = message;
        let source = Some(self.source_part).filter(|part| *part != NONE)?;
        self.reuses = self.reuses.saturating_add(1);
        (self.messages <= RARE).then_some(source)
    }
}

/// How much the request is about a term, weighted by rarity, and the relevance of the best part that has it.
#[derive(Debug, Clone, Copy, Default)]
pub struct QueryMatch {
    pub asked: f32,
    pub relevance: f32,
}

/// Assigns each term a dense index. Open addressing over `u32`: cold cache lines dominate.
pub struct TermIndex {
    /// By slot of a term's hash: its number, or [`Self::FREE`]. Linear probing.
    slots: Vec<u32>,
}

impl TermIndex {
    const FREE: u32 = u32::MAX;

    /// Returns an empty table with room for a quarter of `mentions`: most are repeated or not weighed.
    pub fn of(mentions: usize) -> Self {
        Self { slots: vec![Self::FREE; (mentions / 4).max(8).next_power_of_two()] }
    }

    /// Returns the number of a term, or the free slot for it.
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

    /// Returns the number of a term; adds it with new facts if it has none.
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

/// The terms that the request is about, behind a filter that rejects most others at once.
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
