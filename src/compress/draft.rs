//! The request being planned: every message with its pieces, and what was cut so far.

use std::borrow::Cow;
use std::cell::{OnceCell, RefCell};

use crate::conversation::{observed_tool, question_index, said, spoken, stands_for};
use crate::message::{Content, Field, Media, Message, Part, Role, Text, ToolCall};
use crate::text::elision::{self, Marks};
use crate::text::language::Language;
use crate::tokens::{REPLY, Recount, TokenCounter, Tokens};
use crate::tools::{Effect, PATH_KEYS, instructs};

use super::pins::Pins;
use super::plan::{CallEdit, NewMessage, Reason};

/// The place of a piece in its message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Slot {
    /// The string content.
    Content,
    /// A text part of a list content.
    Part(usize),
    /// An image, sound, file or unknown part of a list content.
    Media(usize),
    /// The arguments of a call.
    Arguments(usize),
    /// A field that is not content.
    Field(Field),
}

impl Slot {
    /// Returns whether it is text that the message says.
    pub fn is_content(self) -> bool {
        matches!(self, Self::Content | Self::Part(_))
    }
}

/// A piece of a message that may be cut.
#[derive(Debug)]
pub struct Piece {
    pub slot: Slot,
    /// Tokens of the current text.
    pub tokens: Tokens,
    /// The current text, where that is not the source; empty for a removed field.
    pub text: Option<String>,
    /// The text that cuts are made from, if not the original: repaired arguments.
    pub repaired: Option<String>,
    /// Tokens before any change.
    pub original_tokens: Tokens,
    pub reason: Reason,
}

/// Where a message of the request comes from.
#[derive(Debug)]
pub enum Origin {
    /// The message at this index of the view.
    View(usize),
    /// A result that a call lacked.
    Backfill(NewMessage),
}

/// A message of the request.
#[derive(Debug)]
pub struct Entry {
    pub origin: Origin,
    pub role: Role,
    /// Tokens that are never cut: framing, ids, names.
    pub fixed_tokens: Tokens,
    pub pieces: Vec<Piece>,
    /// Why it is left out, if it is.
    pub dropped: Option<Reason>,
    /// Changed calls, by their index.
    pub calls: Vec<(usize, CallEdit)>,
    /// The changed id of the call that it answers.
    pub tool_call_id: Option<String>,
    /// For a result, its call: index of the message in the view, and position in it.
    pub answers: Option<(usize, usize)>,
    /// For a result, the effect of its call; without a call, that of the tool by its name.
    pub effect: Effect,
    /// See [`Draft::path`]; asked once for each part of a result.
    pub path: OnceCell<Option<String>>,
    /// Whether it stays whole if there is room: see [`super::pins`].
    pub is_pinned: bool,
}

impl Entry {
    /// Returns the current tokens of this message, left out or not.
    pub fn tokens(&self) -> Tokens {
        self.fixed_tokens + self.pieces.iter().map(|piece| piece.tokens).sum::<Tokens>()
    }

    /// Returns the index in the view.
    pub fn index(&self) -> Option<usize> {
        match self.origin {
            Origin::View(index) => Some(index),
            Origin::Backfill(_) => None,
        }
    }
}

/// The request being planned.
pub struct Draft<'v, 'a> {
    pub view: &'v [Message<'a>],
    pub counter: TokenCounter,
    pub entries: Vec<Entry>,
    /// Messages of the view from this index on are never cut.
    pub kept_from: usize,
    /// Whether later requests begin with the result, as with that of a step.
    pub is_for_later: bool,
    /// Tokens of tool schemas and of the start of the reply.
    pub overhead_tokens: Tokens,
    /// Tokens of the request before any change.
    pub before: Tokens,
    /// Counts shared between variants of one text.
    recount: RefCell<Recount>,
    language: OnceCell<Language>,
    /// See [`Self::asked`].
    asked: OnceCell<Cow<'v, str>>,
    /// By message of the view: see [`Self::stands_for`].
    stands_for: OnceCell<Vec<(usize, bool)>>,
}

impl<'v, 'a> Draft<'v, 'a> {
    /// Starts from repaired entries: see [`super::repair::entries`]. Counts every text of the view.
    pub fn new(view: &'v [Message<'a>], counter: TokenCounter, tools_tokens: Tokens, entries: Vec<Entry>) -> Self {
        let overhead_tokens = tools_tokens + REPLY;
        let before = overhead_tokens + view.iter().map(|message| counter.message(message)).sum::<Tokens>();
        Self {
            view,
            counter,
            entries,
            kept_from: view.len(),
            is_for_later: false,
            overhead_tokens,
            before,
            recount: RefCell::default(),
            language: OnceCell::new(),
            asked: OnceCell::new(),
            stands_for: OnceCell::new(),
        }
    }

    /// Marks the pinned entries.
    pub fn pin(&mut self, patterns: &[String]) {
        let mut is_pinned = vec![false; self.view.len()];
        Pins::of(self.view, patterns).indices().for_each(|index| is_pinned[index] = true);
        for entry in &mut self.entries {
            entry.is_pinned = entry.index().is_some_and(|index| is_pinned[index]);
        }
    }

    /// Returns the current tokens of the request, without notes and ledger.
    pub fn tokens(&self) -> Tokens {
        let kept = self.entries.iter().filter(|entry| entry.dropped.is_none());
        self.overhead_tokens + kept.map(Entry::tokens).sum::<Tokens>()
    }

    /// Returns the tokens of a variant of a text, or of joined texts; what they share is counted once.
    pub fn variant_tokens(&self, text: &str) -> Tokens {
        self.counter.variant(text, &mut self.recount.borrow_mut())
    }

    /// Returns the language that marks are written in: the user's.
    pub fn language(&self) -> Language {
        *self.language.get_or_init(|| spoken(self.view, Role::User).unwrap_or_default())
    }

    /// Returns the words of the last message that the user wrote.
    pub fn asked(&self) -> &str {
        let said = || question_index(self.view).map_or(Cow::Borrowed(""), |index| said(&self.view[index]));
        self.asked.get_or_init(said)
    }

    /// Returns how many messages are gone if this message of the view is left out, and whether they are scattered.
    pub fn stands_for(&self, index: usize) -> (usize, bool) {
        self.stands_for.get_or_init(|| self.view.iter().map(stands_for).collect())[index]
    }

    /// Returns the piece of an entry whose content is one text.
    pub fn sole_piece(&self, entry: usize) -> Option<usize> {
        self.message(entry)?.sole_text()?;
        self.entries[entry].pieces.iter().position(|piece| matches!(piece.slot, Slot::Content | Slot::Part(_)))
    }

    /// Returns the style of marks: the user's language, and the file that has the original.
    pub fn marks<'o>(&self, archive_path: Option<&'o str>) -> Marks<'o> {
        Marks { language: self.language(), archive_path }
    }

    /// Returns whether an entry is the result of a call, by its role or because an agent hands it over as the user's.
    pub fn is_result(&self, entry: usize) -> bool {
        let is_observed = || self.message(entry).and_then(observed_tool).is_some();
        matches!(self.entries[entry].role, Role::Tool | Role::Function) || is_observed()
    }

    /// Returns whether a message of the model has a call in its words: the next one is what an agent hands over as its result.
    pub fn is_called_in_words(&self, entry: usize) -> bool {
        let observed =
            |next: usize| self.entries.len() > next && self.entries[next].role == Role::User && self.is_result(next);
        self.entries[entry].role == Role::Assistant && observed(entry + 1)
    }

    /// Returns the tokens of a note for 99 messages.
    pub fn note_tokens(&self) -> Tokens {
        self.tokens_of(Role::User, &elision::note(99, true, self.language()))
    }

    /// Returns the tokens of a message that is only text.
    pub fn tokens_of(&self, role: Role, text: &str) -> Tokens {
        self.counter.message(&Message::new(role, text))
    }

    /// Returns the message of an entry in the view.
    pub fn message(&self, entry: usize) -> Option<&'v Message<'a>> {
        self.entries[entry].index().map(|index| &self.view[index])
    }

    /// Returns the call that a result answers.
    pub fn call(&self, entry: usize) -> Option<&'v ToolCall<'a>> {
        let (index, position) = self.entries[entry].answers?;
        Some(&self.view[index].tool_calls[position])
    }

    /// Returns the path that the call of a result names, as spelled there.
    pub fn path(&self, entry: usize) -> Option<&str> {
        let parse = || {
            let arguments = self.call(entry)?.arguments.as_ref()?.as_str();
            let arguments: serde_json::Value = serde_json::from_str(arguments).ok()?;
            PATH_KEYS.iter().find_map(|key| arguments.get(key)?.as_str()).map(str::to_owned)
        };
        self.entries[entry].path.get_or_init(parse).as_deref()
    }

    /// Returns whether a result has instructions for the model, by what its call names.
    pub fn instructs(&self, entry: usize) -> bool {
        let Some(call) = self.call(entry).filter(|_| self.is_result(entry)) else { return false };
        let Some(tool) = call.name.as_ref().map(Text::as_str) else { return false };
        if matches!(self.entries[entry].effect, Effect::WritesFile | Effect::EditsFile | Effect::Changes) {
            return false;
        }
        instructs(tool, call.arguments.as_ref().map_or("", Text::as_str))
    }

    /// Returns the current text of a piece.
    pub fn text(&self, entry: usize, piece: usize) -> &str {
        let piece = &self.entries[entry].pieces[piece];
        piece.text.as_deref().unwrap_or_else(|| self.source(entry, piece))
    }

    /// Iterates over the current texts of what an entry says.
    pub fn contents(&self, entry: usize) -> impl Iterator<Item = &str> {
        let pieces = self.entries[entry].pieces.iter().enumerate().filter(|(_, piece)| piece.slot.is_content());
        pieces.map(move |(piece, _)| self.text(entry, piece))
    }

    /// Returns the source of a piece. Every cut is made from it, so that its marks count all that is gone.
    pub fn source<'s>(&'s self, entry: usize, piece: &'s Piece) -> &'s str {
        let original = || Some(original(self.message(entry)?, piece.slot)?.as_str());
        piece.repaired.as_deref().or_else(original).unwrap_or_default()
    }

    /// Sets the current text of a piece, and its tokens.
    pub fn set(&mut self, entry: usize, piece: usize, text: String, tokens: Tokens, reason: Reason) {
        let piece = &mut self.entries[entry].pieces[piece];
        piece.tokens = tokens;
        piece.text = Some(text);
        piece.reason = reason;
    }
}

fn original<'m, 'a>(message: &'m Message<'a>, slot: Slot) -> Option<&'m Text<'a>> {
    match (slot, &message.content) {
        (Slot::Content, Content::Text(text)) => Some(text),
        (Slot::Part(i) | Slot::Media(i), Content::Parts(parts)) => parts.get(i).map(Part::text),
        (Slot::Arguments(i), _) => message.tool_calls.get(i)?.arguments.as_ref(),
        (Slot::Field(field), _) => message.field(field),
        _ => None,
    }
}

/// Returns the entry of an unchanged message.
pub fn entry(index: usize, message: &Message<'_>, counter: &TokenCounter) -> Entry {
    let mut pieces = Vec::new();
    let mut push = |slot, text: &Text<'_>, media: Option<Media>| {
        let tokens = counter.known(text, media);
        let reason = Reason::Budget;
        pieces.push(Piece { slot, tokens, text: None, repaired: None, original_tokens: tokens, reason });
    };
    match &message.content {
        Content::Empty => {}
        Content::Text(text) => push(Slot::Content, text, None),
        Content::Parts(parts) => {
            for (i, part) in parts.iter().enumerate() {
                match part {
                    Part::Text(text) => push(Slot::Part(i), text, None),
                    Part::Block(..) => {}
                    Part::Other(text) => push(Slot::Media(i), text, None),
                    Part::Media(media, text) => push(Slot::Media(i), text, Some(*media)),
                }
            }
        }
    }
    for (i, call) in message.tool_calls.iter().enumerate() {
        if let Some(text) = &call.arguments {
            push(Slot::Arguments(i), text, None);
        }
    }
    for (field, text) in message.fields.iter().filter(|(field, _)| field.is_cuttable()) {
        push(Slot::Field(*field), text, None);
    }
    let cuttable: Tokens = pieces.iter().map(|piece| piece.tokens).sum();
    Entry {
        origin: Origin::View(index),
        role: message.role,
        fixed_tokens: counter.message(message) - cuttable,
        pieces,
        dropped: None,
        calls: Vec::new(),
        tool_call_id: None,
        answers: None,
        path: OnceCell::new(),
        effect: message
            .name
            .as_ref()
            .map(Text::as_str)
            .or_else(|| observed_tool(message))
            .map_or(Effect::Unknown, Effect::of),
        is_pinned: false,
    }
}
