//! Plans a request that fits; the caller carries the plan out.
//!
//! [`compress`] runs before every model call. Mostly bounds and cached counts prove that there is nothing to do. A request
//! that fits changes only where calls and results need repair. Others are cut in rare large steps of [`compaction`], so that
//! a provider's prompt cache lasts between them; what the user then asks for of what a step left out is quoted ([`recall`]). A
//! step runs its passes in order on a [`draft`]: old reasoning, single results, all results, long messages, and last the
//! [`fit`]. [`emergency`] is for a request that a provider has rejected.

mod archive_paths;
mod asked_for;
mod bounds;
mod candidates;
mod compaction;
mod compaction_cache;
mod days;
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
mod mentioned;
mod notes;
mod pins;
mod plan;
mod priority;
mod protection;
mod recall;
mod repair;
mod results;
mod rows_meant;
mod said;
mod striking;
mod superseded;

pub use crate::archive::{Archive, Archived, name as archive_name, names_in};
pub use crate::budget::{Limits, Request};
use crate::cache::{self, Cache, Share};
use crate::conversation::last_user_index;
use crate::error::Result;
use crate::message::Message;
use crate::select::within;
use crate::text::{analysis, commitments, rules};
use crate::tokens::{self, Tokens};

use archive_paths::ArchivePaths;
use draft::Draft;

/// Returns the caches of the core with their shares; the binding has two more.
pub fn caches() -> [(&'static Share, &'static dyn Cache); 7] {
    let [counts, cuts] = tokens::caches();
    [
        (&cache::ANALYSES, &*analysis::MEMORY),
        (&cache::COMMITMENTS, &*commitments::MEMORY),
        (&cache::SAID, &*rules::MEMORY),
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
pub use superseded::superseded_messages;

/// Returns the plan for the next call, or `None` if the messages may be sent unchanged.
///
/// The same messages give the same plan; more of them give one that begins with the same messages, until the budget is
/// reached again, or for a turn in which the user asks for what was left out and there is no room to quote it. After a rejection, a
/// caller that wants smaller requests passes a smaller `window_tokens`.
///
/// Usual cost, with every count cached and nothing cut: one look at each message.
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
/// All reasoning goes, and what exceeds the target is cut as in [`compress`]; its other limits do not apply.
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

/// Returns the plan for the next attempt after a refusal: at most `max_tokens`.
///
/// Reasoning before the last message of the user goes, unless the provider requires it.
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

/// Returns the plan for a request of at most `max_tokens`. Calls and results are repaired; nothing else changes if that is
/// enough.
///
/// # Errors
///
/// As [`emergency`].
pub fn fit(view: &[Message<'_>], request: &Request<'_>, max_tokens: Tokens) -> Result<Plan> {
    fit_above(view, request, max_tokens, view.len())
}

/// As [`fit`]; messages from index `above` on stay unchanged, with the calls that they answer.
///
/// # Errors
///
/// As [`emergency`], with these messages counted.
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
