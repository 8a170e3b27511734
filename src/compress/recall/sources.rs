//! The texts of a conversation with what they have of what is asked for.

use std::ops::Range;
use std::sync::Arc;

use crate::conversation::{groups, is_note};
use crate::message::{Message, Role, Text, ToolCall};
use crate::text::analysis::{Analysis, Form};
use crate::text::segments;
use crate::text::terms::scan;

use super::asked::Terms;

/// Most bytes of a record that is quoted whole: about 200 tokens.
const RECORD_BYTES: usize = 800;

/// Most bytes of a text that is an answer, and most answers.
pub(super) const SHORT_TEXT: usize = 400;
const MAX_ANSWERS: usize = 3;

/// A text of the conversation.
pub(super) struct Source<'v> {
    /// Number of messages of the user up to it.
    pub(super) turn: usize,
    pub(super) group: usize,
    pub(super) message: usize,
    pub(super) role: Role,
    /// The call with these arguments, or with this result.
    pub(super) call: Option<&'v ToolCall<'v>>,
    pub(super) is_arguments: bool,
    pub(super) text: &'v str,
    pub(super) analysis: Arc<Analysis>,
    /// The parts that have some of the terms, and which.
    pub(super) found: Vec<(usize, u128)>,
}

impl Source<'_> {
    /// Returns which of the terms it has.
    pub(super) fn has(&self) -> u128 {
        self.found.iter().fold(0, |all, (_, found)| all | found)
    }

    pub(super) fn passage(&self, part: usize) -> &str {
        self.analysis.byte_ranges().nth(part).map_or("", |(_, range)| self.text[range].trim())
    }

    /// Returns the short record of a result, or of pasted data, that has the part's first term of these: its name alone says nothing.
    pub(super) fn record(&self, part: usize, terms: &Terms) -> Option<Range<usize>> {
        let is_record = self.role == Role::Tool || self.analysis.is_material();
        let (_, range) = self.analysis.byte_ranges().nth(part).filter(|_| is_record)?;
        let mut at = None;
        scan(&self.text[range.clone()], |term, start| {
            at = at.or_else(|| terms.asked.contains(term.short()).then_some(range.start + start));
        });
        let record = segments::record(self.text, at?)?;
        let start = record.end - self.text[record.clone()].trim_start().len();
        Some(start..start + self.text[start..record.end].trim_end().len()).filter(|record| record.len() <= RECORD_BYTES)
    }

    /// Returns whether the user asks in a part.
    pub(super) fn asks(&self, part: usize) -> bool {
        self.role == Role::User && self.passage(part).contains(['?', '？'])
    }

    /// Returns the short texts that answer this one, newest first: the result of a call's arguments, what the rest of its turn says to
    /// a short message of the user, and the results that a short message of the model sums up.
    pub(super) fn answers<'t>(&self, sources: &'t [Self]) -> Vec<&'t Self> {
        let is_own_result =
            |other: &Self| matches!((self.call, other.call), (Some(call), Some(of)) if std::ptr::eq(call, of));
        let is_of_turn = |other: &Self| self.text.len() <= SHORT_TEXT && self.turn == other.turn;
        let is_answer = |other: &&Self| {
            !other.is_arguments
                && match (self.is_arguments, self.role) {
                    (true, _) => is_own_result(other),
                    (_, Role::User) => is_of_turn(other) && other.role != Role::User,
                    (_, Role::Assistant) => is_of_turn(other) && other.role == Role::Tool,
                    _ => false,
                }
        };
        let mut answers: Vec<&Self> = sources.iter().rev().filter(is_answer).take(MAX_ANSWERS + 1).collect();
        if self.role == Role::Assistant && answers.len() > MAX_ANSWERS {
            answers.clear();
        }
        answers.truncate(MAX_ANSWERS);
        answers.retain(|answer| answer.text.len() <= SHORT_TEXT);
        answers
    }
}

/// Returns the texts of the messages with the terms that they have. O(terms).
pub(super) fn sources<'v>(view: &'v [Message<'v>], terms: &Terms) -> Vec<Source<'v>> {
    let (mut sources, mut turn) = (Vec::new(), 0);
    for (group, range) in groups(view.iter().map(|message| message.role)).into_iter().enumerate() {
        let calls = &view[range.start].tool_calls;
        for (message, of) in (range.start..range.end).map(|message| (message, &view[message])) {
            if of.role == Role::System || is_note(of) {
                continue;
            }
            turn += usize::from(of.role == Role::User);
            let answers = |call: &&ToolCall<'_>| {
                call.id.is_some() && string(call.id.as_ref()) == string(of.tool_call_id.as_ref())
            };
            let answered = calls.iter().find(answers).filter(|_| of.role == Role::Tool);
            let said = of.texts().map(|text| (text, answered, false));
            let arguments = of.tool_calls.iter().map(|call| (string(call.arguments.as_ref()), Some(call), true));
            for (text, call, is_arguments) in said.chain(arguments) {
                let analysis = Analysis::of(text, if is_arguments { Form::Arguments } else { Form::Outlined });
                let parts = analysis.ranges().map(|(_, range)| terms.found(&analysis.terms[range])).enumerate();
                let found = parts.filter(|(_, found)| *found != 0).collect();
                sources.push(Source { turn, group, message, role: of.role, call, is_arguments, text, analysis, found });
            }
        }
    }
    sources
}

pub(super) fn string<'v>(text: Option<&Text<'v>>) -> &'v str {
    text.map_or("", Text::as_str)
}
