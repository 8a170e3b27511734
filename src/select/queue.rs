//! What may be taken, the best first.

use std::collections::BinaryHeap;

use crate::text::bytes::usize_of;

/// A group or a unit, by its index.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Item {
    Group(u32),
    Unit(u32),
}

/// Items in the order of their worth for a token, in steps of a hundredth or so: finer would order noise. Of those on one
/// step the newest comes first.
#[derive(Default)]
pub struct Queue {
    /// By the step in the upper half, and how many were pushed before.
    items: BinaryHeap<(u64, Item)>,
    pushed: u32,
}

impl Queue {
    /// Returns the step of what is worth so much for a token: the exponent and six bits of the mantissa, from 2^-20 to 2^20.
    pub fn step(worth: f32) -> usize {
        const LEAST: usize = (127 - 20) * 64;
        const STEPS: usize = 40 * 64;
        let step = (worth.max(0.0).to_bits() >> 17) as usize;
        step.saturating_sub(LEAST).min(STEPS - 1)
    }

    /// Adds an item.
    pub fn push(&mut self, item: Item, step: usize) {
        self.pushed += 1;
        self.items.push(((step as u64) << 32 | u64::from(self.pushed), item));
    }

    /// Takes the newest item off the highest step.
    pub fn pop(&mut self) -> Option<(Item, usize)> {
        self.items.pop().map(|(key, item)| (item, usize_of(key >> 32)))
    }
}
