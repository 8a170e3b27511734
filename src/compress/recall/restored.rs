//! Finds the earlier result that a result behind a step refers back to, where the request shows no more than a part of it.

use crate::budget::Request;
use crate::compress::compaction::Made;
use crate::compress::superseded::referred_to;
use crate::conversation::spoken;
use crate::message::{Message, Role, ToolCall};
use crate::select::within::{Cut, Question};
use crate::text::elision::Marks;
use crate::tokens::Tokens;

use super::shown::Shown;
use super::sources::answers;

/// Returns what the result at `index`, which refers back, would say again, cut to `max_tokens`; `None` where that is nothing, or all of it
/// in the request. The step covers the messages before `at`. O(messages before it).
///
/// Files of 2,000 tokens that were read, left out and read again in windows of 16,000: nanobot 0.3.5 answers "[File unchanged since last
/// read: …]", and none of 24 stood whole in the request.
pub(super) fn restored(
    view: &[Message<'_>],
    index: usize,
    (at, made): (usize, &Made),
    max_tokens: Tokens,
    request: &Request<'_>,
) -> Option<String> {
    let result = |index: usize| Some((index, call_of(view, index)?, view[index].texts().next()?));
    let is_result = |index: &usize| view[*index].role == Role::Tool;
    let earlier = referred_to(call_of(view, index)?, (0..index).rev().filter(is_result).filter_map(result))?;
    let text = view[earlier].texts().next()?;
    if earlier >= at || Shown::of(&view[..at], made).has(earlier, text.trim()) {
        return None;
    }
    let counter = request.counter();
    if counter.text(text) <= max_tokens {
        return Some(text.to_owned());
    }
    let language = spoken(&view[..index], Role::User).unwrap_or_default();
    let archived = made.plan.archived.iter().find(|archived| archived.index == earlier);
    let archive_path = archived.zip(request.archive.as_ref()).map(|(archived, archive)| archive.path(&archived.name));
    let marks = Marks { language, archive_path: archive_path.as_deref() };
    let question = Question { asked: "", arguments: "" };
    Some(Cut { text, max_tokens, counter, marks, question }.cached()?.0)
}

/// Returns the call that a result answers.
fn call_of<'v>(view: &'v [Message<'v>], index: usize) -> Option<&'v ToolCall<'v>> {
    let is_answered = |call: &&ToolCall<'_>| answers(&view[index], call);
    view[..index].iter().rev().find_map(|message| message.tool_calls.iter().find(is_answered))
}
