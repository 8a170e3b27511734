//! The passes before the fit, each for one limit of its own.

use crate::message::{Content, Message, Part, Role, Text};

use super::draft::{Draft, Slot};
use super::plan::Reason;
use super::rounds::{Group, groups, last_user_index};
use super::{Limits, shorten};

/// Removes reasoning of more than `keep_chars` characters before entry `last_user`.
pub fn reasoning(draft: &mut Draft<'_, '_>, last_user: usize, keep_chars: usize) {
    remove(draft, |draft, entry, piece| {
        let is_old = draft.entries[entry].index().is_some_and(|index| index < last_user);
        let slot = draft.entries[entry].pieces[piece].slot;
        is_old && slot == Slot::Reasoning && longer_than(draft.text(entry, piece), keep_chars)
    });
}

/// Removes all reasoning, but for the signed thoughts of the newest group: they must come back with its calls.
pub fn all_reasoning(draft: &mut Draft<'_, '_>) {
    let newest = groups(draft.entries.iter().map(|entry| entry.role)).pop().map_or(0, |group: Group| group.start);
    remove(draft, |draft, entry, piece| match draft.entries[entry].pieces[piece].slot {
        Slot::Reasoning => true,
        Slot::Thinking => entry < newest,
        _ => false,
    });
}

fn remove(draft: &mut Draft<'_, '_>, goes: impl Fn(&Draft<'_, '_>, usize, usize) -> bool) {
    for entry in 0..draft.entries.len() {
        for piece in 0..draft.entries[entry].pieces.len() {
            if goes(draft, entry, piece) {
                draft.set(entry, piece, String::new(), Reason::Reasoning);
            }
        }
    }
}

/// Shortens every tool result of more than `max_tokens` to that many.
pub fn large_results(draft: &mut Draft<'_, '_>, max_tokens: u64) {
    for (entry, piece) in texts(draft, |role| role == Role::Tool) {
        if draft.entries[entry].pieces[piece].tokens > max_tokens {
            let short = shorten::to_tokens(draft.text(entry, piece), max_tokens, &draft.counter);
            // A window so small that a third of it holds no mark: the fit decides.
            if let Some(short) = short {
                draft.set(entry, piece, short, Reason::LargeResult);
            }
        }
    }
}

/// Cuts messages of the user and the assistant before `last_user` that are longer than (user, assistant) characters to
/// the first 60 % and the last 20 % of that. 0 is no limit.
///
/// Source: document 001, stage seven; document 004, step 4.
pub fn long_messages(draft: &mut Draft<'_, '_>, last_user: usize, (user, assistant): (usize, usize)) {
    for (role, max_chars) in [(Role::User, user), (Role::Assistant, assistant)] {
        for (entry, piece) in texts(draft, |entry_role| entry_role == role) {
            let is_old = draft.entries[entry].index().is_some_and(|index| index < last_user);
            let text = draft.text(entry, piece);
            if max_chars > 0 && is_old && longer_than(text, max_chars) {
                let short = shorten::head_and_tail_chars(text, max_chars * 6 / 10, max_chars * 2 / 10);
                draft.set(entry, piece, short, Reason::LongMessage);
            }
        }
    }
}

/// Returns the texts that messages of a role say, as (entry, piece).
fn texts(draft: &Draft<'_, '_>, role: impl Fn(Role) -> bool) -> Vec<(usize, usize)> {
    let entries = draft.entries.iter().enumerate().filter(|(_, entry)| entry.dropped.is_none() && role(entry.role));
    entries
        .flat_map(|(index, entry)| {
            let says = |slot| matches!(slot, Slot::Content | Slot::Part(_));
            entry.pieces.iter().enumerate().filter(move |(_, piece)| says(piece.slot)).map(move |(i, _)| (index, i))
        })
        .collect()
}

/// Returns whether [`reasoning`] and [`long_messages`] have nothing to do.
pub fn are_settled(view: &[Message<'_>], limits: &Limits) -> bool {
    let last_user = last_user_index(view).unwrap_or(view.len());
    view[..last_user].iter().all(|message| {
        let max_chars = match message.role {
            Role::User => limits.max_user_message_chars,
            Role::Assistant => limits.max_assistant_message_chars,
            _ => 0,
        };
        let fits = |text: &Text<'_>| max_chars == 0 || !longer_than(text.as_str(), max_chars);
        let says_little = match &message.content {
            Content::Empty => true,
            Content::Text(text) => fits(text),
            Content::Parts(parts) => parts.iter().all(|part| !matches!(part, Part::Text(text) if !fits(text))),
        };
        let thinks_little =
            message.reasoning().is_none_or(|text| !longer_than(text.as_str(), limits.reasoning_keep_chars));
        says_little && thinks_little
    })
}

/// Returns whether `text` has more than `chars` characters; reads it only when its bytes leave that open.
fn longer_than(text: &str, chars: usize) -> bool {
    text.len() > chars && text.chars().nth(chars).is_some()
}
