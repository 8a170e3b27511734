//! Messages that own their text, and a plan carried out on them: what the binding does with Python's dicts.

use std::collections::HashSet;

use nanobot_context::compress::{Edit, NO_REASONING, NewMessage, Output, Plan};
use nanobot_context::message::Media;
use nanobot_context::{Content, Field, Message, Part, Role, Text, ToolCall, conversation};
use serde::de::IgnoredAny;

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Says {
    Nothing,
    Text(String),
    Parts(Vec<Says>),
    Media(Media, String),
    Other(String),
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Call {
    pub id: Option<String>,
    pub name: Option<String>,
    pub arguments: Option<String>,
    pub arguments_are_text: bool,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Owned {
    pub role: Role,
    pub says: Says,
    pub calls: Vec<Call>,
    pub tool_call_id: Option<String>,
    pub name: Option<String>,
    pub fields: Vec<(Field, String)>,
}

impl Owned {
    pub fn new(role: Role, text: impl Into<String>) -> Self {
        let says = Says::Text(text.into());
        Self { role, says, calls: Vec::new(), tool_call_id: None, name: None, fields: Vec::new() }
    }

    /// A call of each of `ids`, all of the same tool with the same arguments.
    pub fn calling(ids: &[&str], name: &str, arguments: &str) -> Self {
        let call = |id: &&str| Call {
            id: Some((*id).to_owned()),
            name: Some(name.to_owned()),
            arguments: Some(arguments.to_owned()),
            arguments_are_text: true,
        };
        Self { says: Says::Nothing, calls: ids.iter().map(call).collect(), ..Self::new(Role::Assistant, "") }
    }

    pub fn result(id: &str, name: &str, text: impl Into<String>) -> Self {
        Self { tool_call_id: Some(id.to_owned()), name: Some(name.to_owned()), ..Self::new(Role::Tool, text) }
    }

    pub fn with(mut self, field: Field, text: impl Into<String>) -> Self {
        self.fields.push((field, text.into()));
        self
    }

    pub fn field(&self, field: Field) -> Option<&str> {
        self.fields.iter().find(|(other, _)| *other == field).map(|(_, text)| &**text)
    }

    /// The texts that it says, thoughts and calls left out.
    pub fn texts(&self) -> Vec<&str> {
        match &self.says {
            Says::Text(text) => vec![text],
            Says::Parts(parts) => {
                parts.iter().filter_map(|part| if let Says::Text(text) = part { Some(&**text) } else { None }).collect()
            }
            _ => Vec::new(),
        }
    }

    pub fn view(&self) -> Message<'_> {
        let calls = self.calls.iter().map(|call| ToolCall {
            id: call.id.as_deref().map(Text::new),
            name: call.name.as_deref().map(Text::new),
            arguments: call.arguments.as_deref().map(Text::new),
            arguments_are_text: call.arguments_are_text,
        });
        Message {
            role: self.role,
            content: match &self.says {
                Says::Nothing => Content::Empty,
                Says::Text(text) => Content::Text(Text::new(text)),
                Says::Parts(parts) => Content::Parts(parts.iter().map(part).collect()),
                Says::Media(..) | Says::Other(_) => Content::Parts(vec![part(&self.says)]),
            },
            tool_calls: calls.collect(),
            tool_call_id: self.tool_call_id.as_deref().map(Text::new),
            name: self.name.as_deref().map(Text::new),
            fields: self.fields.iter().map(|(field, text)| (*field, Text::new(text))).collect(),
        }
    }
}

fn part(says: &Says) -> Part<'_> {
    match says {
        Says::Text(text) => Part::Text(Text::new(text)),
        Says::Media(media, data) => Part::Media(*media, Text::new(data)),
        Says::Other(json) => Part::Other(Text::new(json)),
        Says::Nothing | Says::Parts(_) => Part::Text(Text::new("")),
    }
}

pub fn view(messages: &[Owned]) -> Vec<Message<'_>> {
    messages.iter().map(Owned::view).collect()
}

/// Carries `plan` out.
pub fn apply(messages: &[Owned], plan: &Plan) -> Vec<Owned> {
    let outputs = plan.outputs.iter().map(|output| match output {
        Output::Keep(index) => messages[*index].clone(),
        Output::Edit(index, edit) => edited(messages[*index].clone(), edit),
        Output::New(message) => new(message),
    });
    outputs.collect()
}

fn edited(mut message: Owned, edit: &Edit) -> Owned {
    if let Some(content) = &edit.content {
        message.says = Says::Text(content.clone());
    }
    for (index, text) in &edit.parts {
        match &mut message.says {
            Says::Parts(parts) => parts[*index] = Says::Text(text.clone()),
            only => *only = Says::Parts(vec![Says::Text(text.clone())]),
        }
    }
    for (index, edit) in &edit.calls {
        let call = &mut message.calls[*index];
        call.id = edit.id.clone().or(call.id.take());
        call.name = edit.name.clone().or(call.name.take());
        if let Some(arguments) = &edit.arguments {
            call.arguments = Some(arguments.clone());
            call.arguments_are_text = true;
        }
    }
    message.tool_call_id = edit.tool_call_id.clone().or(message.tool_call_id);
    for (field, text) in &edit.fields {
        message.fields.retain(|(other, _)| other != field || !text.is_empty());
        if let Some((_, old)) = message.fields.iter_mut().find(|(other, _)| other == field) {
            old.clone_from(text);
        }
    }
    message
}

fn new(message: &NewMessage) -> Owned {
    Owned {
        tool_call_id: message.tool_call_id.clone(),
        name: message.name.clone(),
        fields: message.reasoning.map(|field| (field, NO_REASONING.to_owned())).into_iter().collect(),
        ..Owned::new(message.role, message.content.clone())
    }
}

pub fn is_json(text: &str) -> bool {
    serde_json::from_str::<IgnoredAny>(text).is_ok()
}

/// Asserts that every call is answered exactly once, directly behind its message, and that nothing else is a result.
pub fn assert_paired(messages: &[Owned]) {
    let mut at = 0;
    while at < messages.len() {
        let message = &messages[at];
        at += 1;
        assert_ne!(message.role, Role::Tool, "an orphan at {}", at - 1);
        if message.role != Role::Assistant {
            continue;
        }
        let filled = |text: &Option<String>| text.as_ref().is_some_and(|text| !text.is_empty());
        let mut open = HashSet::new();
        for call in &message.calls {
            assert!(filled(&call.id) && filled(&call.name) && call.arguments_are_text, "{call:?}");
            assert!(call.arguments.as_deref().is_some_and(is_json), "{call:?}");
            assert!(open.insert(call.id.clone()), "an id twice: {call:?}");
        }
        while !open.is_empty() {
            let result = messages.get(at).filter(|message| message.role == Role::Tool);
            let result = result.unwrap_or_else(|| panic!("{open:?} not answered at {at}"));
            assert!(open.remove(&result.tool_call_id), "{:?} answers nothing of {open:?}", result.tool_call_id);
            at += 1;
        }
    }
}

/// Returns what stands in messages as paragraphs: notes and the ledger may have joined a message.
pub fn paragraphs(messages: &[Owned]) -> impl Iterator<Item = &str> {
    messages.iter().flat_map(Owned::texts).flat_map(|text| text.split("\n\n")).map(str::trim)
}

/// Returns how many messages a paragraph says to be left out; `None` where it is no note.
pub fn messages_in(paragraph: &str) -> Option<usize> {
    let message = Message::new(Role::User, paragraph);
    let messages = conversation::is_note(&message).then(|| conversation::stands_for(&message).0);
    messages.filter(|messages| *messages > 0)
}
