//! The plan: keep, edit or leave out each message, with a receipt.

use crate::error::{Error, Result};
use crate::message::{BlockKind, Content, Field, Message, Part, Role, Text};
use crate::tokens::{Source, Tokens};

use crate::archive::Archived;

/// The messages of a request, in order, and what was cut.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Plan {
    /// The messages of the request.
    pub outputs: Vec<Output>,
    /// What was cut.
    pub receipt: Receipt,
    /// The texts whose archive files marks name, in the order of the conversation. They must be in the archive before this
    /// is sent.
    pub archived: Vec<Archived>,
}

impl Plan {
    /// Returns its approximate size on the heap.
    pub(super) fn heap_bytes(&self) -> usize {
        let outputs = self.outputs.iter().map(|output| match output {
            Output::Keep(_) => 0,
            Output::Edit(_, edit) => edit.heap_bytes(),
            Output::New(new) => texts_bytes([Some(&new.content), new.tool_call_id.as_ref(), new.name.as_ref()]),
        });
        outputs.sum::<usize>()
            + self.outputs.capacity() * size_of::<Output>()
            + self.receipt.cuts.capacity() * size_of::<Cut>()
            + self.archived.capacity() * size_of::<Archived>()
            + self.archived.iter().map(|archived| archived.name.capacity()).sum::<usize>()
    }

    /// Checks that every message with a call or result in Anthropic's form stays: providers refuse one without the other.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidMessage`] for the first such message.
    pub fn keeps_calls(&self, view: &[Message<'_>]) -> Result<()> {
        let is_call = |part: &Part<'_>| matches!(part, Part::Block(BlockKind::Call, _));
        let mut kept = vec![false; view.len()];
        self.outputs.iter().filter_map(Output::index).for_each(|index| kept[index] = true);
        let gone = view.iter().zip(kept).enumerate().filter(|(_, (_, is_kept))| !is_kept);
        for (index, (message, _)) in gone {
            let Content::Parts(parts) = &message.content else { continue };
            if let Some(at) = parts.iter().position(is_call) {
                let problem = "is a call or a result of Anthropic's form, which cannot be left out\n\
                    hint: use `tool_calls` and messages of the role `tool`";
                return Err(Error::message(index, format!(".content[{at}]"), problem));
            }
        }
        Ok(())
    }
}

/// Returns the bytes of strings, allocation headers included.
fn texts_bytes<'t>(texts: impl IntoIterator<Item = Option<&'t String>>) -> usize {
    texts.into_iter().flatten().map(|text| text.capacity() + 16).sum()
}

/// One message of the request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Output {
    /// The message at this index, unchanged.
    Keep(usize),
    /// The message at this index, with changes.
    Edit(usize, Edit),
    /// A new message: a missing result, or a note.
    New(NewMessage),
}

impl Output {
    /// Returns the index of the message that it keeps; `None` for a new one.
    pub fn index(&self) -> Option<usize> {
        match self {
            Self::Keep(index) | Self::Edit(index, _) => Some(*index),
            Self::New(_) => None,
        }
    }

    /// Returns the message of the request; `view` is the plan's input.
    pub fn message<'m>(&'m self, view: &'m [Message<'_>]) -> Message<'m> {
        match self {
            Self::Keep(index) => view[*index].clone(),
            Self::Edit(index, edit) => edit.of(view[*index].clone()),
            Self::New(new) => new.view(),
        }
    }
}

/// The changes to one message.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Edit {
    /// The new string content.
    pub content: Option<String>,
    /// New text of parts of a list content, by index.
    pub parts: Vec<(usize, String)>,
    /// Changed tool calls, by index.
    pub calls: Vec<(usize, CallEdit)>,
    /// The id of the call that a result answers.
    pub tool_call_id: Option<String>,
    /// New text of other fields; an empty one removes the field.
    pub fields: Vec<(Field, String)>,
}

impl Edit {
    fn heap_bytes(&self) -> usize {
        let calls = self.calls.iter().flat_map(|(_, call)| [&call.id, &call.name, &call.arguments]);
        let texts = [&self.content, &self.tool_call_id].into_iter().chain(calls).map(Option::as_ref);
        let fields = self.fields.iter().map(|(_, text)| Some(text));
        texts_bytes(texts.chain(self.parts.iter().map(|(_, text)| Some(text))).chain(fields))
            + self.fields.capacity() * size_of::<(Field, String)>()
            + self.parts.capacity() * size_of::<(usize, String)>()
            + self.calls.capacity() * size_of::<(usize, CallEdit)>()
    }

    fn of<'m>(&'m self, mut message: Message<'m>) -> Message<'m> {
        if let Some(content) = &self.content {
            message.content = Content::Text(Text::new(content));
        }
        for (index, text) in &self.parts {
            if let Content::Parts(parts) = &mut message.content {
                parts[*index] = Part::Text(Text::new(text));
            }
        }
        for (index, edit) in &self.calls {
            let call = &mut message.tool_calls[*index];
            let set = |old: &mut Option<Text<'m>>, new: &'m Option<String>| {
                if let Some(new) = new {
                    *old = Some(Text::new(new));
                }
            };
            set(&mut call.id, &edit.id);
            set(&mut call.name, &edit.name);
            set(&mut call.arguments, &edit.arguments);
            call.arguments_are_text |= edit.arguments.is_some();
        }
        if let Some(id) = &self.tool_call_id {
            message.tool_call_id = Some(Text::new(id));
        }
        for (field, new) in &self.fields {
            message.fields.retain_mut(|(other, text)| {
                if other == field {
                    *text = Text::new(new);
                }
                other != field || !new.is_empty()
            });
        }
        message
    }
}

/// The changes to one tool call.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CallEdit {
    /// The new id.
    pub id: Option<String>,
    /// The new name.
    pub name: Option<String>,
    /// The new arguments, as JSON text.
    pub arguments: Option<String>,
}

/// A message that is not in the conversation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewMessage {
    /// `tool` for a missing result, `user` or `assistant` for a note.
    pub role: Role,
    /// Its text.
    pub content: String,
    /// The call it answers.
    pub tool_call_id: Option<String>,
    /// The tool's name.
    pub name: Option<String>,
    /// The field in which [`NO_REASONING`] stands.
    pub reasoning: Option<Field>,
}

impl NewMessage {
    /// Returns it as a message of a view.
    pub fn view(&self) -> Message<'_> {
        Message {
            tool_call_id: self.tool_call_id.as_deref().map(Text::new),
            name: self.name.as_deref().map(Text::new),
            fields: self.reasoning.map(|field| (field, Text::new(NO_REASONING))).into_iter().collect(),
            ..Message::new(self.role, &self.content)
        }
    }
}

/// Replaces reasoning that is gone, for providers that require some.
pub const NO_REASONING: &str = "[reasoning left out]";

/// Why something was cut or changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Reason {
    /// A result without a call, or a second one to the same call.
    OrphanResult,
    /// A result that other messages separated from its call: it was moved, and nothing of it is gone.
    LateResult,
    /// A call without a result.
    MissingResult,
    /// A call without an id or name, with an id used twice, or with arguments that are not valid JSON.
    MalformedCall,
    /// Old reasoning.
    Reasoning,
    /// A single tool result above its share of the window.
    LargeResult,
    /// Tool results that together are above their share of the window.
    ManyResults,
    /// A long message of the user or the assistant.
    LongMessage,
    /// The request was over its budget.
    Budget,
    /// Joined with other messages: nothing of it is gone.
    Joined,
}

impl Reason {
    /// Returns its public name.
    pub fn name(self) -> &'static str {
        match self {
            Self::OrphanResult => "orphan_result",
            Self::LateResult => "late_result",
            Self::MissingResult => "missing_result",
            Self::MalformedCall => "malformed_call",
            Self::Reasoning => "reasoning",
            Self::LargeResult => "large_result",
            Self::ManyResults => "many_results",
            Self::LongMessage => "long_message",
            Self::Budget => "budget",
            Self::Joined => "joined",
        }
    }
}

/// One cut.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Cut {
    /// The message's index in the original conversation.
    pub index: usize,
    /// Why.
    pub reason: Reason,
    /// Tokens before.
    pub tokens_before: Tokens,
    /// Tokens after.
    pub tokens_after: Tokens,
}

/// What was cut, and the tokens before and after.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Receipt {
    /// Tokens of the request before; `None` if a bound made counting unnecessary.
    pub tokens_before: Option<Tokens>,
    /// Tokens of the request after.
    pub tokens_after: Option<Tokens>,
    /// How they were counted.
    pub source: Option<Source>,
    /// Everything that was cut or changed, in the order of the conversation.
    pub cuts: Vec<Cut>,
}
