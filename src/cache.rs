//! The caches of the process: one limit, and a share of it for each.
//!
//! A cache is charged for what its entries take, maps and headers included, so that the limit holds for many small
//! entries as it does for few large ones. Vocabularies are not cached but loaded: 2 to 40 MB each, for good.

use std::sync::LazyLock;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Megabytes that the caches may take together where nobody says otherwise.
///
/// Enough for what one gateway has under way: the analyses of a conversation of a million tokens (4 MB of text) take 30
/// to 48 MB, and eight conversations of 200,000 tokens have 6 MB of text. Below that a call begins to do again what the
/// call before it did; above it nothing measured gets faster.
pub const DEFAULT_MB: usize = 128;

/// The variable that names another limit, in megabytes.
pub const VARIABLE: &str = "NANOBOT_CONTEXT_CACHE_MB";

/// Read once. What is not a number of megabytes counts as not set: a cache is no reason to refuse a count.
static LIMIT: LazyLock<AtomicUsize> = LazyLock::new(|| {
    let text = std::env::var(VARIABLE).unwrap_or_default();
    AtomicUsize::new(megabytes(text.trim().parse().unwrap_or(DEFAULT_MB)))
});

fn megabytes(number: usize) -> usize {
    number.saturating_mul(1 << 20)
}

/// Returns the bytes that the caches may take together.
pub fn limit_bytes() -> usize {
    LIMIT.load(Ordering::Relaxed)
}

/// Sets the megabytes that the caches may take together. 0: no caches.
///
/// What a cache holds beyond its share by then is the caller's to clear: a cache knows its share, not the other caches.
pub fn set_limit_mb(number: usize) {
    LIMIT.store(megabytes(number), Ordering::Relaxed);
}

/// A share of the limit.
#[derive(Debug)]
pub struct Share {
    /// What it is for.
    pub name: &'static str,
    percent: usize,
}

impl Share {
    /// Returns the bytes of this share.
    pub fn max_bytes(&self) -> usize {
        limit_bytes() / 100 * self.percent
    }
}

/// The byte limit of a cache.
#[derive(Debug, Clone, Copy)]
pub enum Allowance {
    /// A share of the process limit.
    Share(&'static Share),
    /// A limit of its own.
    Bytes(usize),
}

impl Allowance {
    /// Returns the bytes.
    pub fn max_bytes(self) -> usize {
        match self {
            Self::Share(share) => share.max_bytes(),
            Self::Bytes(bytes) => bytes,
        }
    }
}

/// Texts taken apart, by content.
pub static ANALYSES: Share = Share { name: "analyses", percent: 40 };
/// What the model commits itself to, by content.
pub static COMMITMENTS: Share = Share { name: "commitments", percent: 1 };
/// What the user says, by content.
pub static SAID: Share = Share { name: "said", percent: 3 };
/// String objects and their counts.
pub static STRINGS: Share = Share { name: "strings", percent: 19 };
/// Conversations that needed nothing.
pub static CONVERSATIONS: Share = Share { name: "conversations", percent: 13 };
/// Counts, by content.
pub static COUNTS: Share = Share { name: "counts", percent: 6 };
/// Places of cuts, by content.
pub static CUTS: Share = Share { name: "cuts", percent: 6 };
/// Shortened texts, by content.
pub static SHORTENED: Share = Share { name: "shortened", percent: 6 };
/// Steps of stateless calls.
pub static STEPS: Share = Share { name: "steps", percent: 6 };

/// The operations that every cache supports.
pub trait Cache: Sync {
    /// Returns about how many bytes it takes.
    fn bytes(&self) -> usize;

    /// Forgets everything and gives its memory back.
    fn clear(&self);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_shares_are_all_of_the_limit() {
        let shares = [&ANALYSES, &COMMITMENTS, &SAID, &STRINGS, &CONVERSATIONS, &COUNTS, &CUTS, &SHORTENED, &STEPS]
            .map(|share| share.percent);
        assert_eq!(shares.iter().sum::<usize>(), 100);
    }
}
