//! Finds whether the user now asks by name for what a step has left out.

use memchr::memmem::Finder;

use crate::message::{Message, Role};
use crate::text::names::{names, opening_person};

use super::compaction::{CompactionStep, Made};
use super::plan::Output;

/// A longer message, or one with more names, is a task, not a question.
const MOST_BYTES: usize = 240;
const MOST_NAMES: usize = 16;

/// A name in more messages is the subject of the conversation.
const RARELY: usize = 2;

/// Returns whether the message at `question` names something that the messages before `step` say and those that it left do
/// not. O(bytes) for each name.
pub(super) fn asks_for_lost(view: &[Message<'_>], question: usize, step: &CompactionStep, made: &Made) -> bool {
    let (mut asked, mut bytes) = (Vec::new(), 0);
    view[question].each_text(|text, media| {
        bytes += text.as_str().len();
        if media.is_none() && bytes <= MOST_BYTES {
            asked.extend(names(text.as_str()).into_iter().map(|name| &text.as_str()[name]));
            asked.extend(opening_person(text.as_str()));
        }
    });
    asked.sort_unstable();
    asked.dedup();
    bytes <= MOST_BYTES
        && asked.len() <= MOST_NAMES
        && asked.into_iter().any(|name| is_lost(name, &view[..step.at], made))
}

/// Returns whether few of the messages in `older` have `name`, and none of those that stay.
fn is_lost(name: &str, older: &[Message<'_>], made: &Made) -> bool {
    let finder = Finder::new(name);
    let having: Vec<usize> = (0..older.len()).filter(|&index| has(&older[index], &finder)).take(RARELY + 1).collect();
    let stays = |output: &Output| match output {
        Output::Keep(index) => having.contains(index),
        Output::Edit(index, _) => having.contains(index) && has(&output.message(older), &finder),
        // The ledger names it and does not say what it was.
        Output::New(_) => false,
    };
    (1..=RARELY).contains(&having.len())
        && having.iter().all(|&index| older[index].role != Role::System)
        && !made.plan.outputs.iter().any(stays)
}

fn has(message: &Message<'_>, name: &Finder<'_>) -> bool {
    let mut found = false;
    message.each_text(|text, media| found |= media.is_none() && name.find(text.as_str().as_bytes()).is_some());
    found
}
