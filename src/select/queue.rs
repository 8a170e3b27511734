//! A priority queue of groups and units, the best worth for a token first.

use crate::text::estimate::index;

/// A group or a unit, by its index.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Choice {
    Group(u32),
    Unit(u32),
}

/// The number of buckets.
const BUCKETS: usize = 40 * 64;

/// No item.
const NONE: u32 = u32::MAX;

/// Items in buckets of about a hundredth of their worth for a token: finer would order noise. Within a bucket the newest comes
/// first.
pub struct Queue {
    /// By bucket: index of its newest item.
    newest: Vec<u32>,
    /// All items that were pushed, each with the one below it in its bucket.
    items: Vec<(Choice, u32)>,
    /// A bit for each bucket with items.
    buckets: [u64; BUCKETS / 64],
}

impl Default for Queue {
    fn default() -> Self {
        Self { newest: vec![NONE; BUCKETS], items: Vec::new(), buckets: [0; BUCKETS / 64] }
    }
}

impl Queue {
    /// Returns the bucket of a worth for a token: its exponent and six bits of the mantissa, from 2^-20 to 2^20.
    pub fn bucket(worth: f32) -> usize {
        const LEAST: usize = (127 - 20) * 64;
        let bucket = (worth.max(0.0).to_bits() >> 17) as usize;
        bucket.saturating_sub(LEAST).min(BUCKETS - 1)
    }

    /// Adds an item.
    pub fn push(&mut self, item: Choice, bucket: usize) {
        let before = std::mem::replace(&mut self.newest[bucket], index(self.items.len()));
        self.items.push((item, before));
        self.buckets[bucket / 64] |= 1 << (bucket % 64);
    }

    /// Removes the newest item of the highest bucket.
    pub fn pop(&mut self) -> Option<(Choice, usize)> {
        let word = self.buckets.iter().rposition(|buckets| *buckets != 0)?;
        let bucket = 64 * word + self.buckets[word].ilog2() as usize;
        let (item, before) = self.items[self.newest[bucket] as usize];
        self.newest[bucket] = before;
        if before == NONE {
            self.buckets[word] &= !(1 << (bucket % 64));
        }
        Some((item, bucket))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_best_come_first_and_of_a_step_the_newest() {
        let mut queue = Queue::default();
        for (unit, worth) in [(0, 0.5), (1, 0.0), (2, 7.0), (3, 0.5), (4, f32::MAX), (5, 0.5001)] {
            queue.push(Choice::Unit(unit), Queue::bucket(worth));
        }
        let mut popped = || queue.pop().map(|(item, _)| item);
        assert_eq!([popped(), popped(), popped()], [4, 2, 5].map(|unit| Some(Choice::Unit(unit))));
        queue.push(Choice::Group(0), Queue::bucket(1.0));
        let rest: Vec<Choice> = std::iter::from_fn(|| queue.pop().map(|(item, _)| item)).collect();
        assert_eq!(rest, [Choice::Group(0), Choice::Unit(3), Choice::Unit(0), Choice::Unit(1)]);
    }
}
