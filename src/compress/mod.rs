//! Compression: a request that fits, planned and not yet carried out.
//!
//! [`compress`] runs before every model call and mostly has nothing to do: bounds and cached counts show it. What fits stays
//! as it came, but for calls and results that must be repaired. What does not is cut in rare large steps of [`compaction`],
//! so that a provider's prompt cache lasts from one to the next. In a step the passes run in order on a [`draft`]: old
//! reasoning, single results, all results, long messages, and last the [`fit`]. [`emergency`] is for a request that a
//! provider has rejected.

mod archive_paths;
mod asked_for;
mod bounds;
mod candidates;
mod compaction;
mod compaction_cache;
mod digest;
mod documents;
mod draft;
#[cfg(feature = "evaluation")]
pub mod evaluation;
mod finish;
mod fit;
mod late;
mod limits;
pub(crate) mod lost;
mod notes;
mod pins;
mod plan;
mod priority;
mod protection;
mod repair;
mod results;
mod superseded;

pub use crate::archive::{Archive, Archived, name as archive_name, names_in};
pub use crate::budget::{Limits, Request};
use crate::cache::{self, Cache, Share};
use crate::conversation::last_user_index;
use crate::error::Result;
use crate::message::Message;
use crate::select::within;
use crate::text::analysis;
use crate::tokens::{self, Tokens};

use archive_paths::ArchivePaths;
use draft::Draft;

/// Returns the caches of the core, each with its share; the binding has two of its own.
pub fn caches() -> [(&'static Share, &'static dyn Cache); 5] {
    let [counts, cuts] = tokens::caches();
    [
        (&cache::ANALYSES, &*analysis::MEMORY),
        (&cache::COUNTS, counts),
        (&cache::CUTS, cuts),
        (&cache::SHORTENED, &*within::MEMORY),
        (&cache::STEPS, &*compaction_cache::SHARED),
    ]
}

pub use crate::tools::Effect;
pub use bounds::Bounds;
pub use compaction_cache::CompactionCache;
pub use lost::{Lost, LostKind, lost};
pub use plan::{CallEdit, Cut, Edit, NO_REASONING, NewMessage, Output, Plan, Reason, Receipt};
pub use priority::{Priority, classify};
pub use superseded::superseded_results;

/// Returns the plan for the next call, or `None` when the messages may go as they are.
///
/// The same messages give the same plan, and more of them one that begins with the same messages, until the budget is
/// reached again: see [`CompactionCache`]. After a request was rejected, a caller that wants smaller ones from now on says so by a
/// lower `window_tokens`.
///
/// Cost of the usual call, where every text's count is cached and nothing is cut: one look at each message.
///
/// # Errors
///
/// [`Error::Overflow`] when system messages, tool schemas and the last message of the user alone exceed the budget.
pub fn compress(view: &[Message<'_>], request: &Request<'_>) -> Result<Option<Plan>> {
    compaction_cache::compress(view, request)
}

/// Returns whether cached counts and bounds prove that a fit to `max_tokens` changes nothing. Counts no text.
pub fn is_no_op(view: &[Message<'_>], request: &Request<'_>, max_tokens: Tokens) -> bool {
    let mut bounds = Bounds::default();
    bounds.add(view, &request.counter());
    bounds.prove_fit(request, max_tokens)
}

/// Returns the plan for a request that was rejected as too long: below `emergency_ratio` of the window.
///
/// All reasoning goes, and what is over the target is cut as in [`compress`], without regard for its other limits.
///
/// # Errors
///
/// [`Error::Overflow`] when system messages, tool schemas and the last message of the user alone are above the target.
pub fn emergency(view: &[Message<'_>], request: &Request<'_>) -> Result<Plan> {
    late::planned(view, request, view.len(), |view, _| {
        let mut draft = draft(view, request);
        limits::all_reasoning(&mut draft);
        fitted(draft, request, request.emergency_tokens())
    })
}

/// Returns the plan for the next attempt after a request was refused: at most `max_tokens`.
///
/// Reasoning before the last message of the user goes, as far as the provider does not want it back.
///
/// # Errors
///
/// As [`emergency`].
pub fn reduce(view: &[Message<'_>], request: &Request<'_>, max_tokens: Tokens) -> Result<Plan> {
    late::planned(view, request, view.len(), |view, _| {
        let mut draft = draft(view, request);
        limits::reasoning(&mut draft, last_user_index(view).unwrap_or(view.len()), 0);
        fitted(draft, request, max_tokens)
    })
}

/// Returns the plan for a request of at most `max_tokens`, calls and results repaired; nothing else is changed where
/// that is enough.
///
/// # Errors
///
/// As [`emergency`].
pub fn fit(view: &[Message<'_>], request: &Request<'_>, max_tokens: Tokens) -> Result<Plan> {
    fit_above(view, request, max_tokens, view.len())
}

/// As [`fit`]; messages from index `above` on stay as they are, with the calls that they answer.
///
/// # Errors
///
/// As [`emergency`], for these messages, too.
pub fn fit_above(view: &[Message<'_>], request: &Request<'_>, max_tokens: Tokens, above: usize) -> Result<Plan> {
    late::planned(view, request, above, |view, above| {
        let mut draft = draft(view, request);
        draft.kept_from = above;
        fitted(draft, request, max_tokens)
    })
}

fn fitted(mut draft: Draft<'_, '_>, request: &Request<'_>, max_tokens: Tokens) -> Result<Plan> {
    draft.pin(&request.limits.pinned);
    let archive_paths = ArchivePaths::of(request.archive.as_ref());
    let left_out = fit::fit(&mut draft, &archive_paths, max_tokens, request)?;
    Ok(finish::plan(draft, &left_out, &archive_paths))
}

fn draft<'v, 'a>(view: &'v [Message<'a>], request: &Request<'_>) -> Draft<'v, 'a> {
    let counter = request.counter();
    Draft::new(view, counter, request.tools_tokens(), repair::entries(view, &counter))
}
