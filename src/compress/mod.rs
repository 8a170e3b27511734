//! Compression: a request that fits, planned and not yet carried out.
//!
//! [`compress`] runs before every model call and mostly has nothing to do: bounds and cached counts show it. What fits stays
//! as it came, but for calls and results that must be repaired. What does not is cut in rare large steps of [`compaction`],
//! so that a provider's prompt cache lasts from one to the next. In a step the passes run in order on a [`draft`]: old
//! reasoning, single results, all results, long messages, and last the [`fit`]. [`emergency`] is for a request that a
//! provider has rejected.

mod bounds;
mod candidates;
mod compaction;
mod compaction_cache;
mod digest;
mod documents;
mod draft;
mod fit;
mod limits;
pub(crate) mod lost;
mod notes;
mod outcome;
mod plan;
mod priority;
mod protection;
mod repair;
mod results;
mod superseded;

use std::collections::HashSet;

use crate::cache::{self, Cache, Share};
use crate::conversation::{groups, last_user_index};
use crate::error::{Error, Result};
use crate::message::{Message, Role};
use crate::select::within;
pub use crate::select::{Ablation, Example, FEATURES};
use crate::text::{analysis, terms};
use crate::tokens::{self, TokenCounter, share};

use draft::Draft;

/// Returns the caches of the core, each with its share; the binding has two of its own.
pub fn caches() -> [(&'static Share, &'static dyn Cache); 6] {
    let [counts, cuts] = tokens::caches();
    [
        (&cache::ANALYSES, &*analysis::MEMORY),
        (&cache::COUNTS, counts),
        (&cache::CUTS, cuts),
        (&cache::SHORTENED, &*within::MEMORY),
        (&cache::FITS, &*outcome::MEMORY),
        (&cache::STEPS, &*compaction_cache::SHARED),
    ]
}

pub use archive::{Archive, Archived, name as archive_name, names_in};
pub use bounds::Bounds;
pub use compaction_cache::CompactionCache;
pub use lost::{Lost, LostKind, lost};
pub use plan::{CallEdit, Cut, Edit, NewMessage, Output, Plan, Reason, Receipt};
pub use priority::{Priority, classify};

/// The knobs of compression, all of documents 001 and 004.
#[derive(Debug, Clone, PartialEq)]
pub struct Limits {
    /// Share of the window that one tool result may have when something is cut.
    pub tool_result_soft_limit: f64,
    /// Share of the window that all tool results may have together when something is cut.
    pub tool_result_hard_limit: f64,
    /// Share of the window kept free for the answer.
    pub context_reserve_ratio: f64,
    /// Characters of `reasoning_content` that stay before the last round when something is cut; longer ones go.
    pub reasoning_keep_chars: usize,
    /// Characters of a message of the user before the last round when something is cut; 0 for no limit.
    pub max_user_message_chars: usize,
    /// Characters of a message of the assistant before the last round when something is cut; 0 for no limit.
    pub max_assistant_message_chars: usize,
    /// Share of the window that a request has after [`emergency`], at most.
    pub emergency_ratio: f64,
}

impl Default for Limits {
    /// Source: document 001, stages one and seven; document 004, the constants of phase 1.
    fn default() -> Self {
        Self {
            tool_result_soft_limit: 0.3,
            tool_result_hard_limit: 0.5,
            context_reserve_ratio: 0.15,
            reasoning_keep_chars: 2_000,
            max_user_message_chars: 30_000,
            max_assistant_message_chars: 20_000,
            emergency_ratio: 0.6,
        }
    }
}

/// What a request is made for.
#[derive(Debug, Clone)]
pub struct Request<'r> {
    /// The model's name, for its counter and for errors.
    pub model: Option<&'r str>,
    /// Tool schemas as the JSON text of a list.
    pub tools: Option<&'r str>,
    /// The model's window.
    pub window_tokens: u64,
    /// Tokens that the answer may have, where that is set.
    pub max_output_tokens: Option<u64>,
    /// The knobs.
    pub limits: Limits,
    /// Where the originals of shortened tool results are kept, if they are.
    pub archive: Option<Archive>,
    /// What selection goes by; all of it, but for evaluation.
    pub mechanisms: Ablation,
}

impl<'r> Request<'r> {
    /// Returns a request with everything else as it is by default.
    pub fn new(model: Option<&'r str>, tools: Option<&'r str>, window_tokens: u64) -> Self {
        Self {
            model,
            tools,
            window_tokens,
            max_output_tokens: None,
            limits: Limits::default(),
            archive: None,
            mechanisms: Ablation::default(),
        }
    }

    /// Returns the counter for the model.
    pub fn counter(&self) -> TokenCounter {
        TokenCounter::new(self.model)
    }

    /// Returns the tokens that messages and tool schemas may have: the window less the reserve for the answer, which is
    /// `context_reserve_ratio` of the window or `max_output_tokens`, whichever is larger.
    pub fn budget_tokens(&self) -> u64 {
        let reserve = share(self.window_tokens, self.limits.context_reserve_ratio, f64::ceil);
        self.window_tokens.saturating_sub(reserve.max(self.max_output_tokens.unwrap_or(0)))
    }

    /// Returns the most tokens that are still below `emergency_ratio` of the window and leave room for the answer.
    pub fn emergency_tokens(&self) -> u64 {
        let below = share(self.window_tokens, self.limits.emergency_ratio, f64::ceil).saturating_sub(1);
        below.min(self.window_tokens.saturating_sub(self.max_output_tokens.unwrap_or(0)))
    }

    fn tools_tokens(&self) -> u64 {
        self.tools.map_or(0, |tools| self.counter().tools(tools))
    }

    fn single_tokens(&self) -> u64 {
        share(self.window_tokens, self.limits.tool_result_soft_limit, f64::floor)
    }

    fn all_tokens(&self) -> u64 {
        share(self.window_tokens, self.limits.tool_result_hard_limit, f64::floor)
    }
}

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

/// Returns whether bounds and the counts that are known show that nothing is to be done. Counts nothing.
pub fn is_settled(view: &[Message<'_>], request: &Request<'_>) -> bool {
    let mut bounds = Bounds::default();
    bounds.add(view, &request.counter());
    bounds.fits(request)
}

/// Returns the plan for a request that was rejected as too long: below `emergency_ratio` of the window.
///
/// All reasoning goes, and what is over the target is cut as in [`compress`], without regard for its other limits.
///
/// # Errors
///
/// [`Error::Overflow`] when system messages, tool schemas and the last message of the user alone are above the target.
pub fn emergency(view: &[Message<'_>], request: &Request<'_>) -> Result<Plan> {
    let mut draft = draft(view, request);
    limits::all_reasoning(&mut draft);
    fit::fit(&mut draft, request.emergency_tokens(), request.model)?;
    Ok(draft.finish())
}

/// Returns the plan for the next attempt after a request was refused: at most `max_tokens`.
///
/// Reasoning before the last message of the user goes; some providers insist on the later. With `newest_only` no more
/// tokens stay than system messages, the last message of the user and the newest group need.
///
/// # Errors
///
/// As [`emergency`].
pub fn reduce(view: &[Message<'_>], request: &Request<'_>, max_tokens: u64, newest_only: bool) -> Result<Plan> {
    let last_user = last_user_index(view);
    let mut draft = draft(view, request);
    limits::reasoning(&mut draft, last_user.unwrap_or(view.len()), 0);
    let max_tokens = if newest_only { max_tokens.min(newest_tokens(&draft, last_user)) } else { max_tokens };
    fit::fit(&mut draft, max_tokens, request.model)?;
    Ok(draft.finish())
}

/// Returns the tokens of system messages, the last message of the user, the newest group, and notes for all else.
fn newest_tokens(draft: &Draft<'_, '_>, last_user: Option<usize>) -> u64 {
    let groups = groups(draft.entries.iter().map(|entry| entry.role));
    let newest = groups.iter().rfind(|group| group.role != Role::System).map_or(0..0, |group| group.start..group.end);
    let stays = |(at, entry): &(usize, &draft::Entry)| {
        entry.role == Role::System || newest.contains(at) || entry.index().is_some_and(|index| Some(index) == last_user)
    };
    let tokens: u64 = draft.entries.iter().enumerate().filter(stays).map(|(_, entry)| entry.tokens()).sum();
    // Two before the user's message, one behind it.
    draft.overhead_tokens + tokens + 3 * draft.note_tokens()
}

/// Returns the plan for a request of at most `max_tokens`, calls and results repaired; nothing else is changed where
/// that is enough.
///
/// # Errors
///
/// As [`emergency`].
pub fn fit(view: &[Message<'_>], request: &Request<'_>, max_tokens: u64) -> Result<Plan> {
    let mut draft = draft(view, request);
    fit::fit(&mut draft, max_tokens, request.model)?;
    Ok(draft.finish())
}

fn draft<'v, 'a>(view: &'v [Message<'a>], request: &Request<'_>) -> Draft<'v, 'a> {
    let counter = request.counter();
    let mut draft = Draft::new(view, counter, request.tools_tokens(), repair::entries(view, &counter));
    draft.archive.clone_from(&request.archive);
    draft.mechanisms = request.mechanisms;
    draft
}

/// Checks a ratio that came from outside.
///
/// # Errors
///
/// [`Error::InvalidArgument`] when it is not a number from 0 to 1.
pub fn check_ratio(name: &str, ratio: f64) -> Result<f64> {
    if (0.0..=1.0).contains(&ratio) {
        Ok(ratio)
    } else {
        Err(Error::argument(name, format!("must be from 0 to 1, got {ratio}")))
    }
}

/// Returns an example for every term of the conversation that could be kept or lost: its features, and whether one of the
/// texts in `used` names it. What the trees of the usage model are fitted to.
pub fn salience_examples(view: &[Message<'_>], request: &Request<'_>, used: &[&str]) -> Vec<Example> {
    let mut used_terms = HashSet::new();
    for text in used {
        terms::scan(text, |term, _| {
            used_terms.insert(term.short());
        });
    }
    fit::scoring(&draft(view, request)).examples(&|term| used_terms.contains(&term))
}
