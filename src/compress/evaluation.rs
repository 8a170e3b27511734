//! What an evaluation asks for: fits without one of the mechanisms, and what the trees of the usage model are learned from.

use std::collections::HashSet;

use crate::budget::Request;
use crate::error::Result;
use crate::message::Message;
use crate::select::without;
pub use crate::select::{Example, FEATURES};
use crate::text::terms;
use crate::tokens::Tokens;

use super::plan::Plan;
use super::{draft, fit};

/// As [`super::fit`], without the mechanisms of these names.
///
/// # Errors
///
/// As [`super::fit`], and for a name that no mechanism has.
pub fn fit_without<'n>(
    view: &[Message<'_>],
    request: &Request<'_>,
    max_tokens: Tokens,
    names: impl IntoIterator<Item = &'n str>,
) -> Result<Plan> {
    without(names, || super::fit(view, request, max_tokens))
}

/// Returns an example for every term of the conversation that could be kept or lost: its features, and whether one of the
/// texts in `used` names it.
pub fn usage_examples(view: &[Message<'_>], request: &Request<'_>, used: &[&str]) -> Vec<Example> {
    let mut used_terms = HashSet::new();
    for text in used {
        terms::scan(text, |term, _| {
            used_terms.insert(term.short());
        });
    }
    fit::scoring(&draft(view, request)).examples(&|term| used_terms.contains(&term))
}
