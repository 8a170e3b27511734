//! Decides which messages a summary covers, and where these may be split.
//!
//! A cover is the number of messages from the start of the conversation that a summary replaces; those behind it are shown.
//! No function here separates a call from its results.

use crate::conversation::is_note;
use crate::message::{Message, Role};

/// Messages behind a summary above which a static buffer is cut, and messages that stay. Source: document 000.
pub const BUFFER_LIMIT: usize = 50;
/// See [`BUFFER_LIMIT`].
pub const BUFFER_KEEP: usize = 10;
/// Rounds from which on a rolling summary is due. Source: document 001, stage eight.
pub const ROLLING_INTERVAL: usize = 10;
/// Newest rounds that a rolling summary leaves. Source: document 001, stages three and five: the last rounds stay whole.
pub const ROLLING_KEEP: usize = 2;

/// Returns the cover that leaves the last `keep` messages; `None` if it is no larger than before.
///
/// The kept messages grow backwards until they start with no result, so that no call is separated.
///
/// # Source
///
/// Document 003, `keep_tail_with_tool_boundary` (`engine.rs:49`).
pub fn keep_last(view: &[Message<'_>], covered: usize, keep: usize) -> Option<usize> {
    let mut start = view.len().saturating_sub(keep).min(answered(view));
    while start > 0 && start < view.len() && is_result(&view[start]) {
        start -= 1;
    }
    (start > covered).then_some(start)
}

/// Returns the cover of the next summary of a static buffer, or `None` while at most `limit` messages are behind the last
/// one.
///
/// It covers all but the last `keep`; the cut moves back to a message of the user, or forward if there is none before.
/// Without such a place there is no cut.
///
/// # Source
///
/// Document 000, `trim_if_needed`: more than 50 messages are cut to the last 10, at a message of the user.
pub fn static_buffer(view: &[Message<'_>], covered: usize, limit: usize, keep: usize) -> Option<usize> {
    if view.len().saturating_sub(covered) <= limit {
        return None;
    }
    let candidate = view.len().saturating_sub(keep);
    let starts_turn = |&at: &usize| at > covered && opens_round(&view[at]);
    let before = (covered + 1..=candidate.min(view.len() - 1)).rev().find(starts_turn);
    before.or_else(|| (candidate + 1..view.len()).find(starts_turn))
}

/// Returns the cover of the next rolling summary, or `None` while there are fewer than `interval` rounds to cover.
///
/// The newest `keep_rounds` rounds stay. A round is a message of the user and everything up to the next one.
///
/// # Source
///
/// Document 001, stage eight: every ten rounds, the oldest are summarised, and only what is new.
pub fn rolling(view: &[Message<'_>], covered: usize, interval: usize, keep_rounds: usize) -> Option<usize> {
    let rounds: Vec<usize> = (covered..view.len()).filter(|&at| opens_round(&view[at])).collect();
    let due = rounds.len().checked_sub(keep_rounds)?;
    if due == 0 || due < interval {
        return None;
    }
    let cut = rounds.get(due).copied().unwrap_or_else(|| answered(view));
    (cut > covered).then_some(cut)
}

/// Returns the number of messages before trailing calls that still wait for results.
fn answered(view: &[Message<'_>]) -> usize {
    let last = view.iter().rposition(|message| !is_result(message));
    let waits = |&at: &usize| view[at].tool_calls.len() > view.len() - at - 1;
    last.filter(waits).unwrap_or(view.len())
}

fn opens_round(message: &Message<'_>) -> bool {
    message.role == Role::User && !is_note(message)
}

/// Returns whether a message answers a call.
pub fn is_result(message: &Message<'_>) -> bool {
    matches!(message.role, Role::Tool | Role::Function)
}

/// Returns the split index nearest the middle of `len` messages at which no message is separated from the one it must
/// follow; both parts have at least `min` messages if possible. Of two such places the earlier; `None` if there is none.
///
/// # Source
///
/// Document 003, `splitter.rs`.
pub fn middle(len: usize, min: usize, stays_behind: impl Fn(usize) -> bool) -> Option<usize> {
    let min = min.min(len / 2).max(1);
    let nearest = |from: usize, to: usize| {
        (from..to).filter(|&at| !stays_behind(at)).min_by_key(|&at| (at.abs_diff(len / 2), at))
    };
    nearest(min, (len + 1).saturating_sub(min)).or_else(|| nearest(1, len))
}
