//! What may be taken, the best first.

use crate::text::estimate::index;

/// A group or a unit, by its index.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Item {
    Group(u32),
    Unit(u32),
}

/// Steps of worth that there are.
const STEPS: usize = 40 * 64;

/// No item.
const NONE: u32 = u32::MAX;

/// Items in the order of their worth for a token, in steps of a hundredth or so: finer would order noise. Of those on one
/// step the newest comes first.
pub struct Queue {
    /// By step: which of the items came last.
    newest: Vec<u32>,
    /// All that were pushed, each with the one on its step that came before.
    items: Vec<(Item, u32)>,
    /// A bit for each step that has items.
    steps: [u64; STEPS / 64],
}

impl Default for Queue {
    fn default() -> Self {
        Self { newest: vec![NONE; STEPS], items: Vec::new(), steps: [0; STEPS / 64] }
    }
}

impl Queue {
    /// Returns the step of what is worth so much for a token: the exponent and six bits of the mantissa, from 2^-20 to 2^20.
    pub fn step(worth: f32) -> usize {
        const LEAST: usize = (127 - 20) * 64;
        let step = (worth.max(0.0).to_bits() >> 17) as usize;
        step.saturating_sub(LEAST).min(STEPS - 1)
    }

    /// Adds an item.
    pub fn push(&mut self, item: Item, step: usize) {
        let before = std::mem::replace(&mut self.newest[step], index(self.items.len()));
        self.items.push((item, before));
        self.steps[step / 64] |= 1 << (step % 64);
    }

    /// Takes the newest item off the highest step.
    pub fn pop(&mut self) -> Option<(Item, usize)> {
        let word = self.steps.iter().rposition(|steps| *steps != 0)?;
        let step = 64 * word + self.steps[word].ilog2() as usize;
        let (item, before) = self.items[self.newest[step] as usize];
        self.newest[step] = before;
        if before == NONE {
            self.steps[word] &= !(1 << (step % 64));
        }
        Some((item, step))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_best_come_first_and_of_a_step_the_newest() {
        let mut queue = Queue::default();
        for (unit, worth) in [(0, 0.5), (1, 0.0), (2, 7.0), (3, 0.5), (4, f32::MAX), (5, 0.5001)] {
            queue.push(Item::Unit(unit), Queue::step(worth));
        }
        let mut popped = || queue.pop().map(|(item, _)| item);
        assert_eq!([popped(), popped(), popped()], [4, 2, 5].map(|unit| Some(Item::Unit(unit))));
        queue.push(Item::Group(0), Queue::step(1.0));
        let rest: Vec<Item> = std::iter::from_fn(|| queue.pop().map(|(item, _)| item)).collect();
        assert_eq!(rest, [Item::Group(0), Item::Unit(3), Item::Unit(0), Item::Unit(1)]);
    }
}
