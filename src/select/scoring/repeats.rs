//! Replies that are made again and again: "Okay, I have noted that down."

use std::collections::HashMap;

use crate::text::terms::TermKind;

use super::{Author, Document};

/// Most terms of such a reply.
const MAX_TERMS: usize = 24;

/// From how many times on it says next to nothing, each time.
const OFTEN: u32 = 4;

/// Returns by document whether it is such a reply, whatever numbers are in it. O(terms of short replies).
pub fn repeats(documents: &[Document]) -> Vec<bool> {
    let mut times: HashMap<u64, u32> = HashMap::new();
    let forms: Vec<Option<u64>> = documents.iter().map(form).collect();
    for form in forms.iter().flatten() {
        *times.entry(*form).or_default() += 1;
    }
    forms.iter().map(|form| form.is_some_and(|form| times[&form] >= OFTEN)).collect()
}

/// Returns a hash of what a short reply says but for its numbers; `None` for everything else.
fn form(document: &Document) -> Option<u64> {
    let terms = &document.analysis.terms;
    if document.author != Author::Assistant || terms.len() > MAX_TERMS {
        return None;
    }
    let said = terms.iter().filter(|term| !matches!(term.kind(), TermKind::Number | TermKind::Part));
    Some(said.fold(0, |hash: u64, term| (hash.rotate_left(5) ^ term.hash()).wrapping_mul(0x9e37_79b9_7f4a_7c15)))
}
