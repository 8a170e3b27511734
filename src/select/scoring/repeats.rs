//! Finds replies that are repeated again and again: "Okay, I have noted that down."

use std::collections::HashMap;

use crate::text::terms::TermKind;

use super::{Author, Document};

/// Most terms of such a reply.
const MAX_TERMS: usize = 24;

/// Number of repetitions from which each says next to nothing.
const OFTEN: u32 = 4;

/// Returns by document whether it is such a reply, numbers aside; the newest with a number is none, for it says how things stand:
/// "You have 31 gold left." O(terms of short replies).
pub fn repeats(documents: &[Document]) -> Vec<bool> {
    // By form: how often, and the newest.
    let mut known: HashMap<u64, (u32, usize)> = HashMap::new();
    let forms: Vec<Option<u64>> = documents.iter().map(form).collect();
    for (at, form) in forms.iter().enumerate().filter_map(|(at, form)| Some((at, (*form)?))) {
        let (times, newest) = known.entry(form).or_default();
        (*times, *newest) = (*times + 1, at);
    }
    let says_how_things_stand = |at: usize| {
        documents[at].analysis.terms.iter().any(|term| matches!(term.kind(), TermKind::Number | TermKind::Part))
    };
    let repeats = |(at, form): (usize, &Option<u64>)| {
        let is_usual = |form: u64| {
            let (times, newest) = known[&form];
            times >= OFTEN && !(newest == at && says_how_things_stand(at))
        };
        form.is_some_and(is_usual)
    };
    forms.iter().enumerate().map(repeats).collect()
}

/// Returns a hash of a short reply without its numbers; `None` for other documents.
fn form(document: &Document) -> Option<u64> {
    let terms = &document.analysis.terms;
    if document.author != Author::Assistant || terms.len() > MAX_TERMS {
        return None;
    }
    let said = terms.iter().filter(|term| !matches!(term.kind(), TermKind::Number | TermKind::Part));
    Some(said.fold(0, |hash: u64, term| (hash.rotate_left(5) ^ term.hash()).wrapping_mul(0x9e37_79b9_7f4a_7c15)))
}
