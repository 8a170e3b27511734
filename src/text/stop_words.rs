//! Words that name nothing.

use std::collections::HashSet;
use std::sync::LazyLock;

use super::stop_list::WORDS;
use super::terms::{ShortTerm, TermKind, scan};

static TERMS: LazyLock<HashSet<ShortTerm>> = LazyLock::new(|| {
    let mut terms = HashSet::new();
    scan(WORDS, |term, _| {
        terms.insert(term.short());
    });
    terms
});

/// Returns whether a term is a stop word.
pub fn is_stop_word(term: ShortTerm) -> bool {
    TERMS.contains(&term)
}

/// Returns whether a word is a stop word.
pub fn is_stop(word: &str) -> bool {
    let mut is_stop = true;
    scan(word, |term, _| is_stop &= is_stop_word(term.short()));
    is_stop
}

/// Returns whether a term may name what somebody asks for. The stem of a long word is a term, too: counted twice, "appointment" alone
/// would be most of "my dentist appointment".
pub fn names_one(term: ShortTerm) -> bool {
    term.kind() != TermKind::LongWord && !is_stop_word(term)
}
