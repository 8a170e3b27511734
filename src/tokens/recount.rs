//! Counts variants of a text.
//!
//! A fit tries many selections that differ in a few parts. Counting each as a whole would cost all of its text.

use std::collections::HashMap;

use xxhash_rust::xxh3::xxh3_128_with_seed;

use super::cache::{BuildMixedHasher, content_seed};
use super::{Vocabulary, cut};

/// Counts of segments by content: what variants of a text share is counted once.
///
/// Of one vocabulary. Takes about a sixth of the bytes of what was counted.
#[derive(Debug, Default)]
pub struct Recount {
    known: HashMap<u128, u32, BuildMixedHasher>,
}

impl Recount {
    /// Segments shorter than this are counted rather than looked up: both cost about the same.
    const MIN_BYTES: usize = 48;

    /// Returns the tokens of `text` under a vocabulary whose counts add up.
    pub(super) fn count(&mut self, text: &str, vocabulary: &dyn Vocabulary) -> usize {
        let count = |segment: &str| vocabulary.count(segment);
        let of_segment = |segment: &str| {
            if segment.len() < Self::MIN_BYTES {
                return count(segment);
            }
            let key = xxh3_128_with_seed(segment.as_bytes(), content_seed());
            // A segment is shorter than 4 GiB, or all that is counted is wrong.
            *self.known.entry(key).or_insert_with(|| u32::try_from(count(segment)).unwrap_or(u32::MAX)) as usize
        };
        cut::own_segments(text).map(of_segment).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Encoding, counted_bytes};
    use super::*;

    #[test]
    fn a_variant_is_counted_exactly_and_what_it_shares_only_once() {
        let line = |i: usize| match i % 4 {
            0 => format!("{{\"job\": {i}, \"path\": \"src/part_{i:x}.rs\"}}, "),
            1 => format!("worker {} served it's {i}.5 ms;\n", i % 7),
            2 => format!("  日志 {i}。 // done {i:x}\n\n"),
            _ => format!("handle_{i:x} waits for {} others, then {} more\n", i * 37 % 991, i % 13),
        };
        // Each leaves another 16 of 4,000 lines out.
        let variant = |nth: usize| (0..4_000).filter(|i| i % 250 != nth).map(line).collect::<String>();
        for encoding in [Encoding::O200kBase, Encoding::Cl100kBase] {
            let vocabulary = encoding.load();
            let mut recount = Recount::default();
            assert_eq!(recount.count(&variant(0), vocabulary), vocabulary.count(&variant(0)));
            for nth in 1..8 {
                let text = variant(nth);
                let before = counted_bytes();
                let tokens = recount.count(&text, vocabulary);
                let counted = counted_bytes() - before;
                assert_eq!(tokens, vocabulary.count(&text));
                assert!(counted < text.len() as u64 / 8, "{counted} of {}", text.len());
            }
        }
    }
}
