//! What an evaluation asks for: fits without one of the mechanisms, and what the trees of the usage model are learned from.

use std::collections::HashSet;

use crate::budget::Request;
use crate::error::Result;
use crate::message::Message;
pub use crate::select::{Ablation, Example, FEATURES};
use crate::text::terms;

use super::plan::Plan;
use super::{draft, fit, fitted, late};

/// As [`super::fit`], by some of the mechanisms only.
///
/// # Errors
///
/// As [`super::fit`].
pub fn fit_by(view: &[Message<'_>], request: &Request<'_>, max_tokens: u64, by: Ablation) -> Result<Plan> {
    late::planned(view, request, view.len(), |view, _| fitted(draft(view, request), request, max_tokens, by))
}

/// Returns an example for every term of the conversation that could be kept or lost: its features, and whether one of the
/// texts in `used` names it.
pub fn salience_examples(view: &[Message<'_>], request: &Request<'_>, used: &[&str]) -> Vec<Example> {
    let mut used_terms = HashSet::new();
    for text in used {
        terms::scan(text, |term, _| {
            used_terms.insert(term.short());
        });
    }
    fit::scoring(&draft(view, request)).examples(&|term| used_terms.contains(&term))
}
