//! What a request shows of the messages before a step.

use crate::message::{Message, Text};

use crate::compress::compaction::Made;
use crate::compress::plan::Reason;

/// Each message before a step as it stands in the request, if it does. Those behind the step are all there.
pub(super) struct Shown<'m>(Vec<Option<Message<'m>>>);

impl<'m> Shown<'m> {
    pub(super) fn of(older: &'m [Message<'_>], made: &'m Made) -> Self {
        let mut messages: Vec<Option<Message<'m>>> = older.iter().map(|_| None).collect();
        for output in &made.plan.outputs {
            if let Some(index) = output.index() {
                messages[index] = Some(output.message(older));
            }
        }
        // What is joined stands in the message before.
        for cut in made.plan.receipt.cuts.iter().filter(|cut| cut.reason == Reason::Joined) {
            if messages[cut.index].is_none() {
                messages[cut.index] = messages[..cut.index].iter().rev().flatten().next().cloned();
            }
        }
        Self(messages)
    }

    /// Returns whether a message stands there with a passage.
    pub(super) fn has(&self, message: usize, passage: &str) -> bool {
        let Some(shown) = self.0.get(message) else { return true };
        let Some(shown) = shown else { return false };
        let arguments = shown.tool_calls.iter().map(|call| call.arguments.as_ref().map_or("", Text::as_str));
        shown.texts().chain(arguments).any(|text| text.contains(passage))
    }
}
