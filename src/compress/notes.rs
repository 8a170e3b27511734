//! Where a request says what it has lost: notes for messages left out, and the ledger behind the first of them.
//!
//! Many chat templates refuse two messages of the user, or of the assistant, in a row. So roles alternate in what is left
//! wherever they did before: messages of the user become one where all between them is gone, and a note joins the message
//! beside it. It stands alone only where that gives each side its turn.

use std::collections::BTreeMap;

use crate::conversation::{groups, last_user_index, stands_for};
use crate::message::{Content, Field, Message, Role, Text};
use crate::text::elision;
use crate::text::language::Language;
use crate::tokens::Tokens;

use super::draft::{Draft, Slot};
use super::plan::{NewMessage, Reason};

/// What a request says of what it has lost, and how; what a fit leaves beside the draft.
#[derive(Debug)]
pub struct LeftOut {
    /// The message that lists names and calls.
    pub ledger: Option<String>,
    /// Whether notes are messages of their own and no messages are joined, for want of tokens.
    pub notes_apart: bool,
    /// Tokens that notes may have; one beyond that is left out too, for the budget holds first.
    pub max_note_tokens: Tokens,
}

impl Default for LeftOut {
    fn default() -> Self {
        Self { ledger: None, notes_apart: false, max_note_tokens: Tokens::MAX }
    }
}

impl LeftOut {
    /// Returns the tokens of the ledger.
    pub fn ledger_tokens(&self, draft: &Draft<'_, '_>) -> Tokens {
        self.ledger.as_ref().map_or(Tokens::ZERO, |ledger| draft.tokens_of(Role::User, ledger))
    }
}

/// The notes of a draft, and which messages become one.
pub struct Notes<'l> {
    left_out: &'l LeftOut,
    notes: Vec<Note>,
    /// By entry of a message of the user: the entry that it becomes a part of.
    merged: BTreeMap<usize, usize>,
    /// What a note of the assistant's needs beside its text.
    reasoning: Option<Field>,
}

/// A note for messages that were left out. Gaps with few messages between them share one: with one for each there would be
/// more notes than words.
struct Note {
    /// Where it belongs: behind the entries before this one.
    at: usize,
    /// 0 where there is only the ledger, or was an older one.
    messages: usize,
    /// Whether others lie between them.
    is_scattered: bool,
    place: Placement,
}

#[derive(Clone, Copy)]
enum Placement {
    /// A message of its own, of this role.
    Alone(Role),
    /// Before the text of this entry.
    Before(usize),
    /// Behind it.
    Behind(usize),
}

/// What stands on one side of a gap. An entry is given where text may be joined to its own.
#[derive(Clone, Copy)]
enum Side {
    /// Nothing, or a message of the system.
    Edge,
    User(Option<usize>),
    Assistant(Option<usize>),
    /// The last result of a call.
    Result(Option<usize>),
}

/// What a request is made of.
pub enum Placed {
    /// A message that was not there.
    New(NewMessage),
    /// An entry, left out or not; with its new content where other texts join it.
    Entry(usize, Option<String>),
    /// An entry whose text is a part of another's now.
    Merged(usize),
}

impl<'l> Notes<'l> {
    /// Returns the notes for what is left out of a draft.
    pub fn of(draft: &Draft<'_, '_>, left_out: &'l LeftOut) -> Self {
        let mut gaps = Gaps::new(draft);
        for position in 0..draft.entries.len() {
            gaps.pass(position);
        }
        gaps.close(Side::Edge);
        if gaps.notes.is_empty() && left_out.ledger.is_some() {
            gaps.place_ledger();
        }
        Self { left_out, notes: gaps.notes, merged: gaps.merged, reasoning: wanted_reasoning(draft) }
    }

    /// Returns the tokens of the request with its notes: estimated where texts are joined, unless they stay apart.
    pub fn tokens(&self, draft: &Draft<'_, '_>) -> Tokens {
        let framing = draft.tokens_of(Role::User, "") - JOINT;
        let of_notes = self.notes.iter().filter_map(|note| {
            let text = note.text(draft.language())?;
            Some(match note.place {
                Placement::Alone(role) if !self.left_out.notes_apart => {
                    draft.counter.message(&self.message(role, text).view())
                }
                _ if self.left_out.notes_apart => draft.tokens_of(Role::User, &text),
                _ => draft.tokens_of(Role::User, &text) - framing,
            })
        });
        let saved = if self.left_out.notes_apart { Tokens::ZERO } else { framing * self.merged.len() as u64 };
        draft.tokens() + self.left_out.ledger_tokens(draft) + of_notes.sum::<Tokens>() - saved
    }

    /// Returns what the request is made of, in order, and its tokens. Where notes stay apart from messages, those have a place
    /// that fit `max_tokens`.
    pub fn carry_out(&self, draft: &Draft<'_, '_>, max_tokens: Tokens) -> (Vec<Placed>, Tokens) {
        if self.left_out.notes_apart { self.apart(draft, max_tokens) } else { self.joined(draft) }
    }

    fn joined(&self, draft: &Draft<'_, '_>) -> (Vec<Placed>, Tokens) {
        let own = |entry: usize| content(draft, entry).map_or("", |(_, text)| text).to_owned();
        let mut items = Vec::with_capacity(draft.entries.len() + self.notes.len());
        // By entry of a message that others join: all of its texts.
        let mut texts: BTreeMap<usize, Vec<String>> = BTreeMap::new();
        let mut notes = self.notes.iter().peekable();
        let mut ledger = self.left_out.ledger.clone();
        let mut tokens = draft.overhead_tokens;
        for position in 0..=draft.entries.len() {
            while let Some(note) = notes.next_if(|note| note.at == position) {
                let text: Vec<String> = note.text(draft.language()).into_iter().chain(ledger.take()).collect();
                if text.is_empty() {
                    continue;
                }
                let text = text.join(BETWEEN);
                let head = |entry| self.merged.get(&entry).copied().unwrap_or(entry);
                match note.place {
                    Placement::Alone(role) => {
                        let note = self.message(role, text);
                        tokens += draft.counter.message(&note.view());
                        items.push(Placed::New(note));
                    }
                    // Its own text follows.
                    Placement::Before(entry) if head(entry) == entry => texts.entry(entry).or_default().push(text),
                    Placement::Before(entry) | Placement::Behind(entry) => {
                        texts.entry(head(entry)).or_insert_with(|| vec![own(head(entry))]).push(text);
                    }
                }
            }
            if let Some(&head) = self.merged.get(&position) {
                texts.entry(head).or_insert_with(|| vec![own(head)]).push(own(position));
                items.push(Placed::Merged(position));
            } else if position < draft.entries.len() {
                if let Some(texts) = texts.get_mut(&position) {
                    texts.push(own(position));
                }
                items.push(Placed::Entry(position, None));
            }
        }
        for item in &mut items {
            let Placed::Entry(position, joined) = item else { continue };
            let entry = &draft.entries[*position];
            if entry.dropped.is_some() {
                continue;
            }
            tokens += entry.tokens();
            if let Some(mut texts) = texts.remove(position) {
                texts.retain(|text| !text.is_empty());
                let text = texts.join(BETWEEN);
                tokens -= content(draft, *position).map_or(Tokens::ZERO, |(tokens, _)| tokens);
                tokens += draft.variant_tokens(&text);
                *joined = Some(text);
            }
        }
        (items, tokens)
    }

    fn message(&self, role: Role, content: String) -> NewMessage {
        let reasoning = self.reasoning.filter(|_| role == Role::Assistant);
        NewMessage { role, content, tool_call_id: None, name: None, reasoning }
    }

    /// Returns the same with messages as they are, and notes of their own as far as they fit.
    fn apart(&self, draft: &Draft<'_, '_>, max_tokens: Tokens) -> (Vec<Placed>, Tokens) {
        let mut items = Vec::with_capacity(draft.entries.len() + self.notes.len() + 1);
        let mut tokens = draft.tokens() + self.left_out.ledger_tokens(draft);
        let mut notes = self.notes.iter().peekable();
        let mut ledger = self.left_out.ledger.clone();
        for position in 0..=draft.entries.len() {
            if draft.entries.get(position).is_none_or(|entry| entry.role != Role::System) {
                items.extend(ledger.take().map(|ledger| Placed::New(self.message(Role::User, ledger))));
            }
            while let Some(note) = notes.next_if(|note| note.at == position) {
                let Some(text) = note.text(draft.language()) else { continue };
                let more = draft.tokens_of(Role::User, &text);
                if tokens + more <= max_tokens {
                    tokens += more;
                    items.push(Placed::New(self.message(Role::User, text)));
                }
            }
            if position < draft.entries.len() {
                items.push(Placed::Entry(position, None));
            }
        }
        (items, tokens)
    }
}

/// What stands between texts that are joined, and its tokens.
const BETWEEN: &str = "\n\n";
const JOINT: Tokens = Tokens(1);

impl Note {
    fn text(&self, language: Language) -> Option<String> {
        (self.messages > 0).then(|| elision::note(self.messages, self.is_scattered, language))
    }
}

/// Returns the field in which every message of the assistant must have thoughts, where the provider requires them: the one that
/// the conversation has them in.
fn wanted_reasoning(draft: &Draft<'_, '_>) -> Option<Field> {
    let mut given = draft.view.iter().flat_map(Message::reasoning).map(|(field, _)| field);
    if draft.counter.family().wants_reasoning { given.next() } else { None }
}

/// Returns the tokens and the text of an entry's string content as it is now.
fn content<'d>(draft: &'d Draft<'_, '_>, entry: usize) -> Option<(Tokens, &'d str)> {
    let pieces = &draft.entries[entry].pieces;
    let piece = pieces.iter().position(|piece| piece.slot == Slot::Content)?;
    Some((pieces[piece].tokens, draft.text(entry, piece)))
}

/// The gaps of a draft, one after the other.
struct Gaps<'d, 'v, 'a> {
    draft: &'d Draft<'v, 'a>,
    last_user: Option<usize>,
    /// Position of the newest group, which stays as it is.
    newest: usize,
    notes: Vec<Note>,
    merged: BTreeMap<usize, usize>,
    /// What stands before the gap that is open, or before the next one.
    before: Side,
    /// Where the last message of the user is, and what stands before it.
    fixed: (usize, Side),
    open: Option<Gap>,
    /// Messages that stay behind the last gap.
    since: usize,
}

struct Gap {
    at: usize,
    messages: usize,
    is_scattered: bool,
    /// Whether its last message is one of the user.
    is_of_user: bool,
}

impl<'d, 'v, 'a> Gaps<'d, 'v, 'a> {
    fn new(draft: &'d Draft<'v, 'a>) -> Self {
        Self {
            draft,
            last_user: last_user_index(draft.view),
            newest: groups(draft.entries.iter().map(|entry| entry.role)).last().map_or(0, |group| group.start),
            notes: Vec::new(),
            merged: BTreeMap::new(),
            before: Side::Edge,
            fixed: (0, Side::Edge),
            open: None,
            since: 0,
        }
    }

    /// Goes on by an entry; a repair is no loss that the model should be told of.
    fn pass(&mut self, position: usize) {
        let entry = &self.draft.entries[position];
        match (entry.dropped, entry.index()) {
            (Some(Reason::Budget | Reason::Joined), Some(index)) => self.leave_out(position, index),
            (Some(_), _) => {}
            (None, index) => {
                let lost = index.map_or(0, |index| self.lost(position, index));
                let side = self.side(position);
                let is_result = matches!(side, Side::Result(_));
                if !is_result {
                    self.say_again(position, lost);
                }
                self.close(side);
                if matches!(side, Side::User(None)) {
                    self.fixed = (position, self.before);
                }
                self.before = side;
                self.since += 1;
                // Nothing stands between a call and its results.
                if is_result {
                    self.say_again(position + 1, lost);
                }
            }
        }
    }

    /// Adds a message, and what notes in it stand for.
    fn leave_out(&mut self, at: usize, index: usize) {
        let (messages, is_scattered) = self.draft.stands_for(index);
        let is_of_user = self.draft.view[index].role == Role::User;
        let gap = self.gap(at);
        gap.messages = gap.messages.saturating_add(messages);
        gap.is_scattered |= is_scattered;
        gap.is_of_user = is_of_user;
    }

    /// Returns how many messages notes stood for that were cut out of a message that stays.
    fn lost(&self, position: usize, index: usize) -> usize {
        let (said, _) = self.draft.stands_for(index);
        // Without a note in it a message stands for itself, cut or not.
        if said <= 1 {
            return 0;
        }
        let pieces = &self.draft.entries[position].pieces;
        let cut = pieces.iter().find(|piece| piece.slot == Slot::Content).and_then(|piece| piece.text.as_deref());
        let still = |text| stands_for(&Message::new(Role::User, text)).0;
        cut.map_or(0, |text| said.saturating_sub(still(text)))
    }

    fn say_again(&mut self, at: usize, messages: usize) {
        if messages > 0 {
            let gap = self.gap(at);
            gap.messages = gap.messages.saturating_add(messages);
        }
    }

    fn gap(&mut self, at: usize) -> &mut Gap {
        self.open.get_or_insert(Gap { at, messages: 0, is_scattered: false, is_of_user: false })
    }

    fn side(&self, position: usize) -> Side {
        let Some(message) = self.draft.message(position) else { return Side::Result(None) };
        let index = self.draft.entries[position].index();
        let is_kept = index.is_some_and(|index| index >= self.draft.kept_from);
        let takes_text = !is_kept && matches!(&message.content, Content::Text(text) if !is_json(text));
        let is_plain = message.name.is_none() && matches!(message.content, Content::Text(_));
        match message.role {
            Role::System => Side::Edge,
            Role::User => {
                let is_last = index == self.last_user;
                Side::User((is_plain && !is_last && !is_kept).then_some(position))
            }
            Role::Assistant => {
                // A signature may be of the text; clients take the text away that stands beside calls, as nanobot does
                // since 0.1.5.
                let is_free =
                    message.tool_calls.is_empty() && !message.fields.iter().any(|(field, _)| field.is_signature());
                Side::Assistant((takes_text && is_free && position < self.newest).then_some(position))
            }
            Role::Tool | Role::Function => Side::Result(takes_text.then_some(position)),
        }
    }

    /// Ends the gap that is open, if one is: `after` stands behind it.
    fn close(&mut self, after: Side) {
        let Some(Gap { at, messages, is_scattered, is_of_user }) = self.open.take() else { return };
        let is_near = self.since <= elision::NEAR_GAPS;
        self.since = 0;
        if let (Side::User(Some(before)), Side::User(Some(after))) = (self.before, after) {
            let head = self.merged.get(&before).copied().unwrap_or(before);
            self.merged.insert(after, head);
        }
        // Neither takes a note, and one between them would be a second turn of the user: it stands before both.
        let is_moved = matches!((self.before, after), (Side::User(None), Side::Assistant(None)));
        let (at, before) = if is_moved { self.fixed } else { (at, self.before) };
        let after = if is_moved { Side::User(None) } else { after };
        let (place, is_turn) = place(before, after);
        // An older ledger stands for no message; its turn is one.
        let messages = messages.max(usize::from(is_turn));
        let note = |messages, place| Note { at, messages, is_scattered, place };
        match (self.notes.last_mut(), before, after) {
            (Some(last), ..) if is_moved || (is_near && !is_turn) => {
                last.messages = last.messages.saturating_add(messages);
                last.is_scattered = true;
            }
            // A turn of each side is missing before the last message of the user.
            (_, Side::Edge, Side::User(None)) if messages > 1 => {
                self.notes.push(note(messages - 1, Placement::Alone(Role::User)));
                self.notes.push(note(1, Placement::Alone(Role::Assistant)));
            }
            (_, Side::Edge, Side::User(None)) if !is_of_user => {
                self.notes.push(note(messages, Placement::Alone(Role::Assistant)));
            }
            _ => self.notes.push(note(messages, place)),
        }
    }

    /// Adds a note of nothing, for the ledger of a draft all of whose messages stay.
    fn place_ledger(&mut self) {
        let stays = |&position: &usize| {
            let entry = &self.draft.entries[position];
            entry.dropped.is_none() && entry.role != Role::System
        };
        let all = || (0..self.draft.entries.len()).filter(stays).map(|position| (position, self.side(position)));
        // JSON is better than nothing: where there is no other place, a message of its own would be a second turn.
        let takes_text = |&(position, side): &(usize, Side)| {
            let is_free = matches!(side, Side::Result(_)) && position < self.newest;
            is_free && self.draft.message(position).is_some() && content(self.draft, position).is_some()
        };
        let first = all().next();
        let (at, place) = match (first, all().nth(1), all().find(takes_text)) {
            (Some((at, Side::User(Some(_)))), ..)
            | (Some((_, Side::User(None))), Some((at, Side::Assistant(Some(_)))), _) => (at, Placement::Before(at)),
            (Some((_, Side::User(_))), _, Some((at, _))) => (at + 1, Placement::Behind(at)),
            _ => (first.map_or(0, |(at, _)| at), Placement::Alone(Role::User)),
        };
        self.notes.push(Note { at, messages: 0, is_scattered: false, place });
    }
}

/// Returns where the note of a gap stands, and whether a turn would be missing without it.
fn place(before: Side, after: Side) -> (Placement, bool) {
    use Side::{Assistant, Edge, Result, User};
    match (before, after) {
        (Edge | User(Some(_)) | Assistant(_), User(Some(after))) | (User(None) | Result(_), Assistant(Some(after))) => {
            (Placement::Before(after), false)
        }
        (User(_) | Result(_), User(_)) => (Placement::Alone(Role::Assistant), true),
        (Assistant(_), Assistant(_)) => (Placement::Alone(Role::User), true),
        (User(Some(before)), Assistant(_))
        | (Result(Some(before)), Assistant(_) | Result(_))
        | (Assistant(Some(before)), User(None)) => (Placement::Behind(before), false),
        (Edge, _)
        | (_, Edge | Result(_))
        | (User(None) | Result(None), Assistant(None))
        | (Assistant(None), User(None)) => (Placement::Alone(Role::User), false),
    }
}

fn is_json(text: &Text<'_>) -> bool {
    text.as_str().trim_start().starts_with(['{', '[']) && text.is_json()
}
