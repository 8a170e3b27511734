//! Repairs calls and results: every call is answered exactly once, directly behind its message.

use std::cell::OnceCell;
use std::collections::{HashMap, HashSet};

use crate::message::{Message, Role, Text, ToolCall};
use crate::text::elision;
use crate::tokens::{TokenCounter, Tokens};
use crate::tools::Effect;

use super::draft::{Entry, Origin, Slot, entry};
use super::plan::{CallEdit, NewMessage, Reason};

/// The name that a call without one gets.
const UNNAMED_TOOL: &str = "unknown_tool";

/// The arguments that a call without any gets.
const NO_ARGUMENTS: &str = "{}";

/// Returns whether there is nothing to repair. O(messages), and O(n) in arguments seen for the first time.
pub fn are_sound(view: &[Message<'_>]) -> bool {
    let mut at = 0;
    while at < view.len() {
        let message = &view[at];
        at += 1;
        if message.role == Role::Tool {
            return false;
        }
        let calls = &message.tool_calls;
        if message.role != Role::Assistant || calls.is_empty() {
            continue;
        }
        let results = &view[at..(at + calls.len()).min(view.len())];
        if !calls.iter().all(is_well_formed) || !are_answered(calls, results) {
            return false;
        }
        at += calls.len();
    }
    true
}

fn are_answered(calls: &[ToolCall<'_>], results: &[Message<'_>]) -> bool {
    fn id<'t>(text: Option<&'t Text<'_>>) -> &'t str {
        text.map_or("", Text::as_str)
    }
    if results.len() != calls.len() || results.iter().any(|result| result.role != Role::Tool) {
        return false;
    }
    if let ([call], [result]) = (calls, results) {
        return id(call.id.as_ref()) == id(result.tool_call_id.as_ref());
    }
    let mut open: HashSet<&str> = calls.iter().map(|call| id(call.id.as_ref())).collect();
    open.len() == calls.len() && results.iter().all(|result| open.remove(id(result.tool_call_id.as_ref())))
}

fn is_well_formed(call: &ToolCall<'_>) -> bool {
    let has = |text: &Option<Text<'_>>| text.as_ref().is_some_and(|text| !text.is_empty());
    has(&call.id) && has(&call.name) && call.arguments_are_text && call.arguments.as_ref().is_some_and(Text::is_json)
}

/// Returns the messages as entries of a request, repaired:
///
/// - a result without an open call in the message before it is left out (`drop_orphan_results` in nanobot's words); late
///   results have moved there: see [`super::late`];
/// - a call without a result gets one that says so (`backfill_missing_results`);
/// - a call without an id, or with one already used in its message, gets a new id, and its result with it; one without a
///   name is called `unknown_tool`; arguments that are not valid JSON become a JSON object.
pub fn entries(view: &[Message<'_>], counter: &TokenCounter) -> Vec<Entry> {
    let mut entries = Vec::with_capacity(view.len());
    let mut at = 0;
    while at < view.len() {
        let message = &view[at];
        let mut opening = entry(at, message, counter);
        at += 1;
        if message.role == Role::Tool {
            opening.dropped = Some(Reason::OrphanResult);
        }
        if message.role != Role::Assistant || message.tool_calls.is_empty() {
            entries.push(opening);
            continue;
        }
        let results = view[at..].iter().take_while(|message| message.role == Role::Tool).count();
        let mut calls = Calls::of(at - 1, &message.tool_calls);
        calls.repair(&mut opening, counter);
        entries.push(opening);
        let results = &view[at..at + results];
        let ids: Vec<&str> =
            results.iter().map(|result| result.tool_call_id.as_ref().map_or("", Text::as_str)).collect();
        let answers = calls.answers(&ids);
        for (((index, result), id), answer) in (at..).zip(results).zip(ids).zip(answers) {
            let mut entry = entry(index, result, counter);
            if let Some((position, new_id)) = answer {
                entry.answers = Some((at - 1, position));
                if message.tool_calls[position].name.is_some() {
                    entry.effect = message.tool_calls[position].effect();
                }
                if let Some(new_id) = new_id {
                    entry.fixed_tokens += counter.text(&new_id);
                    entry.fixed_tokens -= counter.text(id);
                    entry.tool_call_id = Some(new_id);
                }
            } else {
                entry.dropped = Some(Reason::OrphanResult);
            }
            entries.push(entry);
        }
        entries.extend(calls.unanswered(counter));
        at += results.len();
    }
    entries
}

/// The calls of one message, while their results are read.
struct Calls<'m> {
    calls: Vec<OpenCall<'m>>,
    /// By original id: position of the first call without a result; `None` when all have one.
    open: HashMap<&'m str, Option<usize>>,
}

struct OpenCall<'m> {
    given_id: &'m str,
    /// Position of the next call with the same original id.
    next: Option<usize>,
    name: &'m str,
    /// A new id and name, and arguments if there were none.
    edit: CallEdit,
    /// Replaces arguments that no provider accepts.
    arguments: Option<String>,
    answered: bool,
}

impl OpenCall<'_> {
    /// Returns its id in the request.
    fn id(&self) -> &str {
        self.edit.id.as_deref().unwrap_or(self.given_id)
    }
}

impl<'m> Calls<'m> {
    fn of(index: usize, tool_calls: &'m [ToolCall<'_>]) -> Self {
        let mut open: HashMap<&str, Option<usize>> = HashMap::with_capacity(tool_calls.len());
        let mut calls: Vec<OpenCall<'m>> = Vec::with_capacity(tool_calls.len());
        for (position, call) in tool_calls.iter().enumerate().rev() {
            let given_id = call.id.as_ref().map_or("", Text::as_str);
            let next = open.insert(given_id, Some(position)).flatten();
            let name = call.name.as_ref().map(Text::as_str).filter(|name| !name.is_empty());
            let edit = CallEdit {
                id: None,
                name: name.is_none().then(|| UNNAMED_TOOL.to_owned()),
                arguments: call.arguments.is_none().then(|| NO_ARGUMENTS.to_owned()),
            };
            let arguments = call.arguments.as_ref().and_then(|text| repaired_arguments(text, call));
            calls.push(OpenCall {
                given_id,
                next,
                name: name.unwrap_or(UNNAMED_TOOL),
                edit,
                arguments,
                answered: false,
            });
        }
        calls.reverse();
        for (position, call) in calls.iter_mut().enumerate() {
            if call.given_id.is_empty() || open[call.given_id] != Some(position) {
                // The position makes new ids unique.
                let mut id = format!("call_{index}_{position}");
                let mut number = 1;
                while open.contains_key(id.as_str()) {
                    number += 1;
                    id = format!("call_{index}_{position}_{number}");
                }
                call.edit.id = Some(id);
            }
        }
        Self { calls, open }
    }

    /// Writes the repairs into the entry of the message, tokens included.
    fn repair(&self, entry: &mut Entry, counter: &TokenCounter) {
        for piece in &mut entry.pieces {
            let Slot::Arguments(position) = piece.slot else { continue };
            if let Some(arguments) = &self.calls[position].arguments {
                piece.tokens = counter.text(arguments);
                piece.repaired = Some(arguments.clone());
                piece.reason = Reason::MalformedCall;
            }
        }
        for (position, call) in self.calls.iter().enumerate() {
            if call.edit == CallEdit::default() {
                continue;
            }
            let new_texts = [&call.edit.id, &call.edit.name].into_iter().flatten();
            entry.fixed_tokens += new_texts.map(|text| counter.text(text)).sum::<Tokens>();
            if call.edit.id.is_some() {
                entry.fixed_tokens -= counter.text(call.given_id);
            }
            if let Some(arguments) = &call.edit.arguments {
                entry.fixed_tokens += counter.text(arguments);
            }
            entry.calls.push((position, call.edit.clone()));
        }
    }

    /// Matches results with these ids to calls: position of the call and the result's new id if it changes; `None` for an
    /// orphan. If either has no readable id, a result answers the first call that nothing else does.
    fn answers(&mut self, ids: &[&str]) -> Vec<Option<(usize, Option<String>)>> {
        let by_id = |id: &&str| {
            let first = self.open.get_mut(*id)?;
            let position = (*first)?;
            *first = self.calls[position].next;
            Some(position)
        };
        let by_id: Vec<Option<usize>> = ids.iter().map(by_id).collect();
        for &position in by_id.iter().flatten() {
            self.calls[position].answered = true;
        }
        // The first calls that may be open: any, and those without an id.
        let (mut first, mut first_without_id) = (0, 0);
        let answer = |(id, position): (&&str, Option<usize>)| {
            let from = if id.is_empty() { &mut first } else { &mut first_without_id };
            let is_open = |call: &OpenCall<'_>| !call.answered && (id.is_empty() || call.given_id.is_empty());
            let position = position.or_else(|| {
                *from += self.calls[*from..].iter().take_while(|call| !is_open(call)).count();
                (*from < self.calls.len()).then_some(*from)
            })?;
            let call = &mut self.calls[position];
            call.answered = true;
            Some((position, (call.id() != *id).then(|| call.id().to_owned())))
        };
        ids.iter().zip(by_id).map(answer).collect()
    }

    fn unanswered(self, counter: &TokenCounter) -> impl Iterator<Item = Entry> {
        let open = self.calls.into_iter().filter(|call| !call.answered);
        open.map(|call| {
            let message = NewMessage {
                role: Role::Tool,
                content: elision::MISSING_RESULT.to_owned(),
                name: Some(call.name.to_owned()),
                tool_call_id: Some(call.id().to_owned()),
                reasoning: None,
            };
            Entry {
                fixed_tokens: counter.message(&message.view()),
                origin: Origin::Backfill(message),
                role: Role::Tool,
                pieces: Vec::new(),
                dropped: None,
                calls: Vec::new(),
                tool_call_id: None,
                answers: None,
                effect: Effect::of(call.name),
                path: OnceCell::new(),
                is_pinned: false,
            }
        })
    }
}

/// Returns arguments that a provider accepts, or `None` if they are.
fn repaired_arguments(arguments: &Text<'_>, call: &ToolCall<'_>) -> Option<String> {
    if arguments.as_str().trim().is_empty() {
        return Some(NO_ARGUMENTS.to_owned());
    }
    if !arguments.is_json() {
        // Keeps the model's own words: it may see its mistake.
        let raw = serde_json::Value::from(arguments.as_str());
        return Some(format!(r#"{{"invalid_json": {raw}}}"#));
    }
    (!call.arguments_are_text).then(|| arguments.as_str().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn call(id: &'static str) -> ToolCall<'static> {
        let id = (!id.is_empty()).then(|| id.into());
        ToolCall { id, name: Some("f".into()), arguments: Some("{}".into()), arguments_are_text: true }
    }

    fn calling(calls: Vec<ToolCall<'static>>) -> Message<'static> {
        Message { tool_calls: calls, ..Message::empty(Role::Assistant) }
    }

    fn result(id: &'static str) -> Message<'static> {
        Message { tool_call_id: Some(id.into()), ..Message::new(Role::Tool, "ok") }
    }

    fn repaired(view: &[Message<'_>]) -> Vec<String> {
        let counter = TokenCounter::new(None);
        assert!(!are_sound(view));
        entries(view, &counter)
            .iter()
            .filter(|entry| entry.dropped.is_none())
            .map(|entry| match &entry.origin {
                Origin::View(index) => {
                    let id = entry.tool_call_id.as_deref().map(|id| format!("={id}")).unwrap_or_default();
                    format!("{index}{id}")
                }
                Origin::Backfill(message) => format!("+{}", message.tool_call_id.as_deref().unwrap_or_default()),
            })
            .collect()
    }

    #[test]
    fn a_sound_conversation_is_left_alone() {
        let view = [
            Message::new(Role::User, "go"),
            calling(vec![call("a"), call("b")]),
            result("b"),
            result("a"),
            calling(vec![call("a")]),
            result("a"),
            Message::new(Role::Assistant, "done"),
        ];
        assert!(are_sound(&view));
        assert!(entries(&view, &TokenCounter::new(None)).iter().all(|e| e.dropped.is_none() && e.calls.is_empty()));
    }

    #[test]
    fn orphans_go_and_missing_results_come() {
        assert_eq!(repaired(&[result("a"), Message::new(Role::User, "go")]), ["1"]);
        assert_eq!(repaired(&[calling(vec![call("a"), call("b")]), result("b")]), ["0", "1", "+a"]);
        assert_eq!(repaired(&[calling(vec![call("a")]), result("a"), result("a")]), ["0", "1"]);
        assert_eq!(
            repaired(&[calling(vec![call("a")]), Message::new(Role::User, "stop"), result("a")]),
            ["0", "+a", "1"]
        );
        assert_eq!(repaired(&[result("a"), calling(vec![call("a")])]), ["1", "+a"]);
    }

    #[test]
    fn ids_that_are_missing_or_used_twice_are_made_new() {
        assert_eq!(
            repaired(&[calling(vec![call("x"), call("x")]), result("x"), result("x")]),
            ["0", "1", "2=call_0_1"]
        );
        assert_eq!(repaired(&[calling(vec![call("x"), call("x")]), result("x")]), ["0", "1", "+call_0_1"]);
        assert_eq!(repaired(&[calling(vec![call("")]), Message::new(Role::Tool, "ok")]), ["0", "1=call_0_0"]);
        assert_eq!(
            repaired(&[calling(vec![call(""), call("call_0_0")]), result("call_0_0")]),
            ["0", "1", "+call_0_0_2"]
        );
    }

    #[test]
    fn a_result_beside_its_call_is_not_lost_for_an_id_that_cannot_be_read() {
        assert_eq!(repaired(&[calling(vec![call("")]), result("7")]), ["0", "1=call_0_0"]);
        assert_eq!(repaired(&[calling(vec![call("7")]), Message::new(Role::Tool, "ok")]), ["0", "1=7"]);
        let view = [calling(vec![call("a"), call(""), call("c")]), result("b"), result("c"), result("a")];
        assert_eq!(repaired(&view), ["0", "1=call_0_1", "2", "3"]);
        let view = [calling(vec![call("a"), call("b")]), Message::new(Role::Tool, "ok"), result("a")];
        assert_eq!(repaired(&view), ["0", "1=b", "2"]);
        // Both have ids: they are not each other's.
        assert_eq!(repaired(&[calling(vec![call("a")]), result("b")]), ["0", "+a"]);
    }

    #[test]
    fn arguments_become_json_text() {
        let counter = TokenCounter::new(None);
        let repaired = |arguments: Option<&'static str>, are_text| {
            let call = ToolCall { arguments: arguments.map(Into::into), arguments_are_text: are_text, ..call("a") };
            let view = [calling(vec![call]), result("a")];
            assert!(!are_sound(&view));
            let mut entries = entries(&view, &counter);
            let new = entries[0].calls.pop().and_then(|(_, edit)| edit.arguments);
            new.or_else(|| entries[0].pieces[0].repaired.take()).unwrap()
        };
        assert_eq!(repaired(None, true), "{}");
        assert_eq!(repaired(Some("  "), true), "{}");
        assert_eq!(repaired(Some(r#"{"a": "#), true), r#"{"invalid_json": "{\"a\": "}"#);
        assert_eq!(repaired(Some(r#"{"a":1}"#), false), r#"{"a":1}"#);
        let deep = format!("{}1{}", "[".repeat(5000), "]".repeat(5000));
        let deep = ToolCall { arguments: Some(Text::new(&deep)), ..call("a") };
        assert!(is_well_formed(&deep));
    }
}
