//! Finds replies that are repeated again and again: "Okay, I have noted that down."

use std::collections::HashMap;

use crate::text::terms::TermKind;

use super::{Author, Document};

/// Most terms of such a reply.
const MAX_TERMS: usize = 24;

/// Number of repetitions from which each says next to nothing.
const OFTEN: u32 = 4;

/// Returns by document whether it is such a reply, numbers aside. O(terms of short replies).
pub fn repeats(documents: &[Document]) -> Vec<bool> {
    let mut times: HashMap<u64, u32> = HashMap::new();
    let forms: Vec<Option<u64>> = documents.iter().map(form).collect();
    for form in forms.iter().flatten() {
        *times.entry(*form).or_default() += 1;
    }
    forms.iter().map(|form| form.is_some_and(|form| times[&form] >= OFTEN)).collect()
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
