//! Selects the messages of a session for the next request.

use std::collections::HashMap;

use crate::conversation::{groups, last_user_index};
use crate::message::{Message, Role, Text};
use crate::tokens::{REPLY, TokenCounter, Tokens};

/// Returns the indexes of the newest whole rounds that have at most `max_tokens` together.
///
/// A round is a message of the user and everything up to the next one. Within it, results without a call and calls
/// without all their results are left out, so that no orphan comes back. Messages before the first message of a user
/// belong to no round. Empty where not even the newest round fits. O(n) in what comes back, and in one round more.
pub fn select(view: &[Message<'_>], max_tokens: Tokens, counter: &TokenCounter) -> Vec<usize> {
    let mut used = REPLY;
    let mut rounds: Vec<Vec<usize>> = Vec::new();
    let mut end = view.len();
    while let Some(start) = last_user_index(&view[..end]) {
        let round = whole_groups(&view[start..end]).map(|index| start + index).collect::<Vec<_>>();
        used += round.iter().map(|&index| counter.message(&view[index])).sum::<Tokens>();
        if used > max_tokens {
            break;
        }
        rounds.push(round);
        end = start;
    }
    rounds.into_iter().rev().flatten().collect()
}

/// Iterates over the messages of groups that are whole: the calls of one are answered, each exactly once.
fn whole_groups<'v>(view: &'v [Message<'_>]) -> impl Iterator<Item = usize> + 'v {
    groups(view.iter().map(|message| message.role)).into_iter().flat_map(|group| {
        let opening = &view[group.start];
        let is_call = opening.role == Role::Assistant && !opening.tool_calls.is_empty();
        let mut open: HashMap<&str, usize> = HashMap::new();
        for call in &opening.tool_calls {
            *open.entry(call.id.as_ref().map_or("", Text::as_str)).or_default() += 1;
        }
        let mut kept = vec![group.start];
        for (index, message) in view.iter().enumerate().take(group.end).skip(group.start + 1) {
            let id = message.tool_call_id.as_ref().map_or("", Text::as_str);
            if message.role != Role::Tool {
                kept.push(index);
            } else if let Some(left) = open.get_mut(id).filter(|left| **left > 0) {
                *left -= 1;
                kept.push(index);
            }
        }
        let is_open = open.into_values().any(|left| left > 0);
        if (is_call && is_open) || opening.role == Role::Tool {
            kept.clear();
        }
        kept
    })
}
