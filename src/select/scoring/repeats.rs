//! Finds messages that are repeated again and again: "Okay, I have noted that down.", "Continue."; and results that a later one
//! repeats.

use std::collections::{HashMap, HashSet};

use crate::text::terms::{ShortTerm, TermKind};

use super::{Author, Document};

/// Most terms of such a reply.
const MAX_TERMS: usize = 24;

/// Number of repetitions from which each says next to nothing.
const OFTEN: u32 = 4;

/// Returns by document whether it is such a reply, numbers aside; the newest with a number is none, for it says how things stand:
/// "You have 31 gold left." Or such a message of the user, but for the newest; or a result whose terms a later one has.
/// O(terms of messages and results).
pub fn repeats(documents: &[Document]) -> Vec<bool> {
    // By form: how often, and the newest.
    let mut known: HashMap<u64, (u32, usize)> = HashMap::new();
    let forms: Vec<Option<u64>> = documents.iter().map(form).collect();
    for (at, form) in forms.iter().enumerate().filter_map(|(at, form)| Some((at, (*form)?))) {
        let (times, newest) = known.entry(form).or_default();
        (*times, *newest) = (*times + 1, at);
    }
    let is_often = |form: &Option<u64>| form.is_some_and(|form| known[&form].0 >= OFTEN);
    let mut repeats: Vec<bool> = forms.iter().map(is_often).collect();
    for (_, newest) in known.into_values() {
        let is_reply = documents[newest].author == Author::Assistant;
        repeats[newest] &= is_reply && !documents[newest].analysis.terms.iter().any(is_number);
    }
    let mut later = HashSet::new();
    for (at, document) in documents.iter().enumerate().rev() {
        let terms = &document.analysis.terms;
        if document.author == Author::Result {
            repeats[at] = !later.insert(hash(terms.iter()));
        }
    }
    repeats
}

fn is_number(term: &ShortTerm) -> bool {
    matches!(term.kind(), TermKind::Number | TermKind::Part)
}

/// Returns a hash of a short reply without its numbers, or of a message of the user; `None` for other documents.
fn form(document: &Document) -> Option<u64> {
    let terms = &document.analysis.terms;
    match document.author {
        Author::Assistant if terms.len() <= MAX_TERMS => Some(hash(terms.iter().filter(|term| !is_number(term)))),
        Author::User => Some(!hash(terms.iter())),
        _ => None,
    }
}

fn hash<'t>(terms: impl Iterator<Item = &'t ShortTerm>) -> u64 {
    terms.fold(0, |hash: u64, term| (hash.rotate_left(5) ^ term.hash()).wrapping_mul(0x9e37_79b9_7f4a_7c15))
}
