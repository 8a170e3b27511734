//! Places notes for messages that were left out, and the ledger behind the first of them.
//!
//! Many chat templates refuse two consecutive messages of the user or the assistant. So roles alternate wherever they did
//! before: messages of the user are joined if everything between them is gone, and a note joins the message beside it. It
//! stands alone only if each side gets its turn by that.

use std::collections::BTreeMap;
use std::ops::Range;

use crate::conversation::{groups, last_user_index, stands_for};
use crate::message::{Field, Message, Role, Text};
use crate::text::elision;
use crate::text::language::Language;
use crate::tokens::{TokenCounter, Tokens};

use super::draft::Draft;
use super::plan::{NewMessage, Reason};

/// Result of a fit beside the draft: the ledger, and how notes are placed.
#[derive(Debug)]
pub struct LeftOut {
    /// The message that lists names and calls.
    pub ledger: Option<String>,
    /// Whether notes are messages of their own and no messages are joined, because joining costs tokens.
    pub notes_apart: bool,
    /// Most tokens of notes; others are dropped, for the budget comes first.
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

/// The notes of a draft, and the messages that are joined.
pub struct Notes<'l> {
    left_out: &'l LeftOut,
    notes: Vec<Note>,
    /// By entry of a joined message of the user: the entry that it is joined to.
    merged: BTreeMap<usize, usize>,
    /// The field of reasoning that a note of the assistant needs.
    reasoning: Option<Field>,
}

/// A note for messages that were left out. Near gaps share one: otherwise there would be more notes than words.
struct Note {
    /// It stands before this entry.
    at: usize,
    /// 0 for the ledger alone, a new or an older one.
    messages: usize,
    /// Whether kept messages stand between them.
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

/// The message on one side of a gap, with its entry if text may be joined to it.
#[derive(Clone, Copy)]
enum Side {
    /// None, or a system message.
    Edge,
    User(Option<usize>),
    Assistant(Option<usize>),
    /// The last result of a call.
    Result(Option<usize>),
}

/// A message in its place in the request.
pub enum Placed {
    /// A new message.
    New(NewMessage),
    /// An entry, left out or not; with its new content if texts are joined to it.
    Entry(usize, Option<String>),
    /// An entry that is joined to another.
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
        gaps.notes.sort_by_key(|note| note.at);
        if gaps.notes.is_empty() && left_out.ledger.is_some() {
            gaps.place_ledger();
        }
        Self {
            left_out,
            notes: gaps.notes,
            merged: gaps.merged,
            reasoning: wanted_reasoning(draft.view, &draft.counter),
        }
    }

    /// Returns the tokens of the request with its notes; an estimate if texts are joined.
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

    /// Returns the messages of the request, in order, and its tokens. Notes that stay apart are added as long as they fit
    /// `max_tokens`.
    pub fn carry_out(&self, draft: &Draft<'_, '_>, max_tokens: Tokens) -> (Vec<Placed>, Tokens) {
        if self.left_out.notes_apart { self.apart(draft, max_tokens) } else { self.joined(draft) }
    }

    fn joined(&self, draft: &Draft<'_, '_>) -> (Vec<Placed>, Tokens) {
        let own = |entry: usize| content(draft, entry).map_or("", |(_, text)| text).to_owned();
        let mut items = Vec::with_capacity(draft.entries.len() + self.notes.len());
        // By entry that others are joined to: all of its texts.
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
        tokens += join(draft, &mut items, texts);
        (items, tokens)
    }

    fn message(&self, role: Role, content: String) -> NewMessage {
        let reasoning = self.reasoning.filter(|_| role == Role::Assistant);
        NewMessage { role, content, tool_call_id: None, name: None, reasoning }
    }

    /// As [`Self::joined`], without joining: notes are messages of their own, as far as they fit and roles alternate.
    fn apart(&self, draft: &Draft<'_, '_>, max_tokens: Tokens) -> (Vec<Placed>, Tokens) {
        let mut items = Vec::with_capacity(draft.entries.len() + self.notes.len() + 1);
        let mut tokens = draft.tokens() + self.left_out.ledger_tokens(draft);
        let mut notes = self.notes.iter().peekable();
        let mut ledger = self.left_out.ledger.clone();
        let mut before = None;
        for position in 0..=draft.entries.len() {
            let after = || {
                let kept = draft.entries[position..].iter().find(|entry| entry.dropped.is_none());
                kept.map(|entry| entry.role)
            };
            if draft.entries.get(position).is_none_or(|entry| entry.role != Role::System)
                && let Some(text) = ledger.take()
            {
                // Its tokens are those of the user's role, which needs no thoughts.
                let role = turn(before, after()).filter(|_| self.reasoning.is_none()).unwrap_or(Role::User);
                items.push(Placed::New(self.message(role, text)));
                before = Some(role);
            }
            while let Some(note) = notes.next_if(|note| note.at == position) {
                let Some((role, text)) = turn(before, after()).zip(note.text(draft.language())) else { continue };
                let note = self.message(role, text);
                let more = draft.counter.message(&note.view());
                if tokens + more <= max_tokens {
                    tokens += more;
                    items.push(Placed::New(note));
                    before = Some(role);
                }
            }
            if let Some(entry) = draft.entries.get(position) {
                items.push(Placed::Entry(position, None));
                before = entry.dropped.map_or(Some(entry.role), |_| before);
            }
        }
        (items, tokens)
    }
}

/// Returns the role of a note that is no second turn of its neighbours, the user's if either will do.
fn turn(before: Option<Role>, after: Option<Role>) -> Option<Role> {
    [Role::User, Role::Assistant].into_iter().find(|&role| before != Some(role) && after != Some(role))
}

/// The separator of joined texts, and its tokens.
pub const BETWEEN: &str = "\n\n";
const JOINT: Tokens = Tokens(1);

/// Joins the `texts` of entries that others are joined to; returns the tokens of all kept entries.
fn join(draft: &Draft<'_, '_>, items: &mut [Placed], mut texts: BTreeMap<usize, Vec<String>>) -> Tokens {
    let mut tokens = Tokens::ZERO;
    for item in items {
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
    tokens
}

impl Note {
    fn text(&self, language: Language) -> Option<String> {
        (self.messages > 0).then(|| elision::note(self.messages, self.is_scattered, language))
    }
}

/// Returns the field in which every message of the assistant must have thoughts, where the provider requires them: the one that
/// the conversation has them in.
pub fn wanted_reasoning(view: &[Message<'_>], counter: &TokenCounter) -> Option<Field> {
    let mut given = view.iter().flat_map(Message::reasoning).map(|(field, _)| field);
    if counter.family().wants_reasoning { given.next() } else { None }
}

/// Returns whether a text may be joined to what the model says in a message: a signature may cover its words, and clients remove
/// those beside calls, as nanobot does since 0.1.5.
pub fn takes_words(message: &Message<'_>) -> bool {
    let is_signed = || message.fields.iter().any(|(field, _)| field.is_signature());
    message.role == Role::Assistant && message.tool_calls.is_empty() && !is_signed()
}

/// Returns the tokens and current text of an entry's content, if that is one text.
fn content<'d>(draft: &'d Draft<'_, '_>, entry: usize) -> Option<(Tokens, &'d str)> {
    let piece = draft.sole_piece(entry)?;
    Some((draft.entries[entry].pieces[piece].tokens, draft.text(entry, piece)))
}

/// Finds the gaps of a draft.
struct Gaps<'d, 'v, 'a> {
    draft: &'d Draft<'v, 'a>,
    last_user: Option<usize>,
    /// Position of the newest group, which no note joins.
    newest: usize,
    notes: Vec<Note>,
    merged: BTreeMap<usize, usize>,
    /// The message before the open gap, or before the next one.
    before: Side,
    /// Position of the last message of the user, and the message before it.
    fixed: (usize, Side),
    open: Option<Gap>,
    /// Kept messages since the last gap.
    since: usize,
}

struct Gap {
    at: usize,
    messages: usize,
    is_scattered: bool,
    /// Whether its last message is the user's.
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

    /// Processes one entry. Repairs are not reported as losses.
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
                // Nothing may stand between a call and its results.
                if is_result {
                    self.say_again(position + 1, lost);
                }
            }
        }
    }

    /// Adds a message to the gap, and those that notes in it stand for.
    fn leave_out(&mut self, at: usize, index: usize) {
        let (messages, is_scattered) = self.draft.stands_for(index);
        let is_of_user = self.draft.view[index].role == Role::User;
        let gap = self.gap(at);
        gap.messages = gap.messages.saturating_add(messages);
        gap.is_scattered |= is_scattered;
        gap.is_of_user = is_of_user;
    }

    /// Returns the number of messages behind notes that were cut out of a kept message.
    fn lost(&self, position: usize, index: usize) -> usize {
        let (said, _) = self.draft.stands_for(index);
        // A message without a note stands for itself, cut or not.
        if said <= 1 {
            return 0;
        }
        let pieces = &self.draft.entries[position].pieces;
        let cut = self.draft.sole_piece(position).and_then(|piece| pieces[piece].text.as_deref());
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
        let text = message.sole_text();
        let takes_text = !is_kept && text.is_some_and(|text| !is_json(text));
        let is_plain = message.name.is_none() && text.is_some();
        match message.role {
            Role::System => Side::Edge,
            Role::User => {
                let is_last = index == self.last_user;
                Side::User((is_plain && !is_last && !is_kept).then_some(position))
            }
            Role::Assistant => {
                let is_free = takes_text && takes_words(message) && position < self.newest;
                Side::Assistant(is_free.then_some(position))
            }
            Role::Tool | Role::Function => {
                let takes_text = takes_text || (!is_kept && self.is_cut_to_words(position));
                Side::Result(takes_text.then_some(position))
            }
        }
    }

    /// Returns whether a result was JSON, and a few words stand for it.
    fn is_cut_to_words(&self, position: usize) -> bool {
        let piece = self.draft.sole_piece(position).map(|piece| &self.draft.entries[position].pieces[piece]);
        piece.and_then(|piece| piece.text.as_deref()).is_some_and(|text| !is_json(&Text::new(text)))
    }

    /// Closes the open gap, if there is one, before the message `after`.
    fn close(&mut self, after: Side) {
        let Some(Gap { at, messages, is_scattered, is_of_user }) = self.open.take() else { return };
        let is_near = self.since <= elision::NEAR_GAPS;
        self.since = 0;
        if let (Side::User(Some(before)), Side::User(Some(after))) = (self.before, after) {
            let head = self.merged.get(&before).copied().unwrap_or(before);
            self.merged.insert(after, head);
        }
        // Neither takes a note, and one between them, or at the end, would be a second turn of the user: the first result behind
        // them takes it, else it moves before both.
        let is_moved = matches!((self.before, after), (Side::User(None), Side::Assistant(None) | Side::Edge));
        let is_first = is_moved && self.notes.is_empty();
        let result = if is_first { self.results(at..self.newest).find(|(_, is_text)| *is_text) } else { None };
        if let Some((result, _)) = result {
            self.notes.push(Note { at: result + 1, messages, is_scattered, place: Placement::Behind(result) });
            return;
        }
        let (at, before) = if is_moved { self.fixed } else { (at, self.before) };
        let after = if is_moved { Side::User(None) } else { after };
        let (place, is_turn) = place(before, after);
        // What answers another message does not seem to answer this one.
        let is_near = is_near && !(is_of_user && matches!((before, after), (Side::User(_), Side::Assistant(_))));
        // An older ledger stands for no message, but for a turn.
        let messages = messages.max(usize::from(is_turn));
        let note = |messages, place| Note { at, messages, is_scattered, place };
        match (self.notes.last_mut(), before, after) {
            (Some(last), ..) if is_moved || (is_near && !is_turn) => {
                last.messages = last.messages.saturating_add(messages);
                last.is_scattered = true;
            }
            // Before the last message of the user a turn of each side is missing.
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

    /// Iterates over the kept results in `range` that may take text, with whether each is text by itself.
    fn results(&self, range: Range<usize>) -> impl Iterator<Item = (usize, bool)> {
        range.filter_map(|position| match self.side(position) {
            Side::Result(text) if self.draft.entries[position].dropped.is_none() => {
                content(self.draft, position).map(|_| (position, text.is_some()))
            }
            _ => None,
        })
    }

    /// Adds an empty note for the ledger of a draft that keeps all messages.
    fn place_ledger(&mut self) {
        let stays = |&position: &usize| {
            let entry = &self.draft.entries[position];
            entry.dropped.is_none() && entry.role != Role::System
        };
        let mut all = (0..self.draft.entries.len()).filter(stays).map(|position| (position, self.side(position)));
        let first = all.next();
        let results = || self.results(0..self.newest);
        // JSON takes the text if nothing else does: a message of its own would be a second turn.
        let result = results().find(|(_, is_text)| *is_text).or_else(|| results().next());
        let (at, place) = match (first, all.next(), result) {
            (Some((at, Side::User(Some(_)))), ..)
            | (Some((_, Side::User(None))), Some((at, Side::Assistant(Some(_)))), _) => (at, Placement::Before(at)),
            (Some((_, Side::User(_))), _, Some((at, _))) => (at + 1, Placement::Behind(at)),
            _ => (first.map_or(0, |(at, _)| at), Placement::Alone(Role::User)),
        };
        self.notes.push(Note { at, messages: 0, is_scattered: false, place });
    }
}

/// Returns the placement of a gap's note, and whether a turn would be missing without it.
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
