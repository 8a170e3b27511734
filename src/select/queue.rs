//! What may be taken, the best first.

use crate::text::estimate::index;

/// A group or a unit, by its index.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Item {
    Group(u32),
    Unit(u32),
}

/// Items in the order of their worth for a token, in steps of a hundredth or so: finer would order noise.
///
/// Buckets rather than a heap, so that putting back and taking out cost the same however many there are. A bucket is a
/// chain through the links, which are used again.
pub struct Queue {
    /// By bucket: the newest link.
    newest: Vec<u32>,
    links: Vec<Link>,
    unused: u32,
    /// The highest bucket that may hold something.
    top: usize,
}

struct Link {
    item: Item,
    older: u32,
}

/// Where a chain ends.
const END: u32 = u32::MAX;

/// A bucket is a number's exponent and six bits of its mantissa: 64 buckets for each doubling, from 2^-20 to 2^20 a token.
const BUCKETS: usize = 40 * 64;
const LEAST: usize = (127 - 20) * 64;

impl Queue {
    /// Returns an empty queue with room for so many items.
    pub fn with_room(items: usize) -> Self {
        Self { newest: vec![END; BUCKETS], links: Vec::with_capacity(items), unused: END, top: 0 }
    }

    /// Returns the bucket of what is worth so much for a token.
    pub fn bucket(worth: f32) -> usize {
        let step = (worth.max(0.0).to_bits() >> 17) as usize;
        step.saturating_sub(LEAST).min(BUCKETS - 1)
    }

    /// Puts an item into a bucket.
    pub fn push(&mut self, item: Item, bucket: usize) {
        let link = Link { item, older: self.newest[bucket] };
        if let Some(unused) = self.links.get_mut(self.unused as usize) {
            self.newest[bucket] = std::mem::replace(&mut self.unused, unused.older);
            *unused = link;
        } else {
            self.newest[bucket] = index(self.links.len());
            self.links.push(link);
        }
        self.top = self.top.max(bucket);
    }

    /// Takes the newest item out of the highest bucket.
    pub fn pop(&mut self) -> Option<(Item, usize)> {
        while self.newest[self.top] == END {
            self.top = self.top.checked_sub(1)?;
        }
        let newest = self.newest[self.top];
        let link = &mut self.links[newest as usize];
        self.newest[self.top] = std::mem::replace(&mut link.older, self.unused);
        self.unused = newest;
        Some((link.item, self.top))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_queue_gives_back_the_highest_worth_first() {
        let mut queue = Queue::with_room(1);
        for worth in [0.5_f32, 1e-9, 40.0, 0.0, 0.001] {
            queue.push(Item::Unit(worth.to_bits()), Queue::bucket(worth));
        }
        let order = std::iter::from_fn(|| queue.pop()).map(|(item, _)| match item {
            Item::Unit(bits) | Item::Group(bits) => f32::from_bits(bits),
        });
        // What is next to nothing is in one bucket, the newest first.
        assert_eq!(order.collect::<Vec<_>>(), [40.0, 0.5, 0.001, 0.0, 1e-9]);
    }
}
