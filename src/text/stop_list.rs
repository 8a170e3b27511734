//! The list of stop words.

use std::collections::HashSet;
use std::sync::LazyLock;

use super::bytes::hash_of_name;
use crate::tokens::BuildMixedHasher;

/// Stop words of three letters and more, a language a line: English as in the usual lists, except "same", which has the stem of a name,
/// of others what questions consist of. "Wer ist Kwiatek?" asks for one word.
pub const WORDS: &str = include_str!("stop_list.txt");

/// Most bytes of a stop word that is the stem of another word.
pub const MAX_STEM: usize = 5;

static STEMS: LazyLock<HashSet<u64, BuildMixedHasher>> = LazyLock::new(|| {
    stop_words().filter(|word| word.len() <= MAX_STEM).map(|word| hash_of_name(word.as_bytes())).collect()
});

/// Iterates over the stop words.
pub fn stop_words() -> impl Iterator<Item = &'static str> {
    WORDS.split_whitespace()
}

/// Returns whether a stem of at most [`MAX_STEM`] bytes is a stop word, by its hash: `date` would be Dutch `dat`, `note` would be `not`.
pub fn is_stop_stem(stem: u64) -> bool {
    STEMS.contains(&stem)
}
