//! Turns, rounds and groups: which messages stand or fall together, and where a conversation may be cut.

use std::borrow::Cow;
use std::collections::HashMap;

use crate::message::{Content, Message, Role, Text};
use crate::text::language::Language;
use crate::text::{elision, envelope, ledger};

/// Messages that stay or go together: a message with tool calls and its results, or any other message alone.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Group {
    /// Index of the first message.
    pub start: usize,
    /// Index behind the last message.
    pub end: usize,
    /// What the group opens with.
    pub role: Role,
}

/// Splits messages, given by their roles, into groups.
pub fn groups(roles: impl IntoIterator<Item = Role>) -> Vec<Group> {
    let mut groups: Vec<Group> = Vec::new();
    for (i, role) in roles.into_iter().enumerate() {
        match (role, groups.last_mut()) {
            (Role::Tool | Role::Function, Some(group)) if !matches!(group.role, Role::System | Role::User) => {
                group.end = i + 1;
            }
            _ => groups.push(Group { start: i, end: i + 1, role }),
        }
    }
    groups
}

/// A result that other messages part from its call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Late {
    /// Its index.
    pub result: usize,
    /// The index of the message that makes the call.
    pub call: usize,
}

/// Returns the results that came late, in order: behind a word of the user, or the next message of the assistant's.
///
/// A result answers the newest call of its id that none has answered. One that stands before all calls of its id answers none.
/// O(messages and calls).
pub fn late_results(messages: &[Message<'_>]) -> Vec<Late> {
    fn id<'t>(text: Option<&'t Text<'_>>) -> &'t str {
        text.map_or("", Text::as_str)
    }
    let mut waiting: HashMap<&str, Vec<usize>> = HashMap::new();
    let mut late = Vec::new();
    let mut opening = None;
    for (index, message) in messages.iter().enumerate() {
        if message.role == Role::Tool {
            let call = waiting.get_mut(id(message.tool_call_id.as_ref())).and_then(Vec::pop);
            late.extend(call.filter(|call| opening != Some(*call)).map(|call| Late { result: index, call }));
            continue;
        }
        opening = Some(index);
        if message.role == Role::Assistant {
            message.tool_calls.iter().for_each(|call| waiting.entry(id(call.id.as_ref())).or_default().push(index));
        }
    }
    late
}

/// Returns the indices of messages in the order in which late results stand with their calls, behind the others there.
pub fn with_calls(messages: &[Message<'_>], late: &[Late]) -> Vec<usize> {
    let groups = groups(messages.iter().map(|message| message.role));
    let mut indices: Vec<usize> = (0..messages.len()).collect();
    indices.sort_by_cached_key(|&index| {
        let Ok(at) = late.binary_search_by_key(&index, |late| late.result) else { return (index, index) };
        let group = groups.partition_point(|group| group.end <= late[at].call);
        (groups[group].end - 1, index)
    });
    indices
}

/// Returns the index of the last message that a user wrote, or `None`.
///
/// From there to the end is the last round. Notes that stand for messages left out are no messages of a user.
pub fn last_user_index(messages: &[Message<'_>]) -> Option<usize> {
    messages.iter().rposition(|message| message.role == Role::User && !is_note(message))
}

/// Returns the index of the last message that a user wrote and no agent handed over as one, else of the last message of a user.
pub fn question_index(messages: &[Message<'_>]) -> Option<usize> {
    messages.iter().rposition(is_own).or_else(|| last_user_index(messages))
}

/// Most answers to questions of the model since the user asked for something.
const MOST_ANSWERS: usize = 6;
/// Bytes at the end of a message in which it asks.
const ASKS_BYTES: usize = 240;

/// Returns the index of the message in which the user asked for what message `last` is about: "My gift card." behind "Which payment
/// method?" goes on with what was asked for before.
pub fn request_index(messages: &[Message<'_>], last: usize) -> usize {
    let asks = |message: &Message<'_>| {
        let said = said(message);
        let end = &said[said.ceil_char_boundary(said.len().saturating_sub(ASKS_BYTES))..];
        message.role == Role::Assistant && end.contains(['?', '？'])
    };
    let before = |asked: &usize| {
        let question = messages[..*asked].last().filter(|message| asks(message));
        question.and_then(|_| messages[..*asked].iter().rposition(is_own))
    };
    std::iter::successors(Some(last), before).take(MOST_ANSWERS + 1).last().unwrap_or(last)
}

/// Returns whether the user wrote `message`: it is no note, and no result of a call.
pub fn is_own(message: &Message<'_>) -> bool {
    message.role == Role::User && !is_note(message) && observed_tool(message).is_none()
}

/// Returns the tool whose result an agent hands over as `message` of the user; `None` for what the user says.
pub fn observed_tool<'a>(message: &Message<'a>) -> Option<&'a str> {
    let first = message.texts().next().filter(|_| message.role == Role::User)?;
    envelope::observed_tool(first)
}

/// Returns whether `message` stands for messages that were left out.
pub fn is_note(message: &Message<'_>) -> bool {
    let Some(text) = message.sole_text() else { return false };
    message.role == Role::User && is_notes(text.as_str())
}

/// Returns whether a text consists of notes alone.
pub fn is_notes(text: &str) -> bool {
    text.starts_with('[') && paragraphs(text).all(|paragraph| paragraph != Paragraph::Own)
}

/// Returns how many original messages disappear with `message`, counting those that its notes stand for, and whether they
/// were scattered.
pub fn stands_for(message: &Message<'_>) -> (usize, bool) {
    let Some(text) = message.sole_text() else { return (1, false) };
    if !elision::may_have_note(text.as_str()) {
        return (1, false);
    }
    let mut gone = (0_usize, false);
    let mut is_own = !message.tool_calls.is_empty();
    for paragraph in paragraphs(text.as_str()) {
        match paragraph {
            Paragraph::Note(messages, is_scattered) => gone = (gone.0.saturating_add(messages), gone.1 | is_scattered),
            Paragraph::Ledger => {}
            Paragraph::Own => is_own = true,
        }
    }
    (gone.0.saturating_add(usize::from(is_own)), gone.1)
}

/// A paragraph of a text, or a line of one.
#[derive(PartialEq)]
enum Paragraph {
    /// A note, with its number of messages and whether they are scattered.
    Note(usize, bool),
    /// A line that may follow a note and stands for no message.
    Ledger,
    Own,
}

fn paragraphs(text: &str) -> impl Iterator<Item = Paragraph> {
    text.split("\n\n").map(|paragraph| paragraph.trim_matches('\n')).flat_map(|paragraph| {
        let is_ledger = ledger::is_ledger(paragraph);
        // A cut may have taken the blank line between a note and what stands beside it.
        let lines = paragraph.split('\n').take(if is_ledger { 1 } else { usize::MAX });
        lines.map(move |line| match elision::read_note(line) {
            _ if is_ledger => Paragraph::Ledger,
            Some((messages, is_scattered)) => Paragraph::Note(messages, is_scattered),
            None => Paragraph::Own,
        })
    })
}

/// Returns the words of a message.
pub fn said<'m>(message: &'m Message<'_>) -> Cow<'m, str> {
    match &message.content {
        Content::Empty => Cow::Borrowed(""),
        Content::Text(text) => Cow::Borrowed(text.as_str()),
        Content::Parts(_) => Cow::Owned(message.texts().collect::<Vec<_>>().join("\n")),
    }
}

/// Returns the words of a message of the user, without what its host puts around them. O(bytes).
pub fn own_words(message: &Message<'_>) -> String {
    let said = said(message);
    let said = envelope::without_host_blocks(&said);
    said[envelope::start(&said)..].trim().to_owned()
}

/// Returns the language that those of `role` speak, notes left out; `None` where they say nothing.
pub fn spoken(messages: &[Message<'_>], role: Role) -> Option<Language> {
    let says = |message: &Message<'_>| if role == Role::User { is_own(message) } else { message.role == role };
    let own = messages.iter().rev().filter(|message| says(message));
    Language::of(own.map(said))
}

/// Returns where the last `keep_last` messages can be cut off without parting a tool call from its results.
///
/// Counts `keep_last` messages from the end, then goes back to a message of the user or to an assistant message without
/// tool calls. 0 when there is no such place, or nothing to cut.
///
/// Source: plan V3.1, `_find_safe_cut_point`.
pub fn safe_cut_point(messages: &[Message<'_>], keep_last: usize) -> usize {
    if keep_last >= messages.len() {
        return 0;
    }
    let candidate = messages.len() - keep_last;
    if candidate == messages.len() {
        return candidate;
    }
    let mut late = late_results(messages).into_iter().rev().peekable();
    // The first call of a late result that stands at a place or behind it.
    let mut first_call = messages.len();
    (1..=candidate)
        .rev()
        .find(|&i| {
            while let Some(late) = late.next_if(|late| late.result >= i) {
                first_call = first_call.min(late.call);
            }
            let is_safe = match messages[i].role {
                Role::User => true,
                Role::Assistant => messages[i].tool_calls.is_empty(),
                _ => false,
            };
            is_safe && first_call >= i
        })
        .unwrap_or(0)
}
