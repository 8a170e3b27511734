//! Writes a conversation for the model that summarises it.

use std::borrow::Cow;
use std::fmt::Write;
use std::ops::Range;

use crate::message::{Content, Media, Message, Part, Text, ToolCall};
use crate::select::within::within;
use crate::text::elision::Marks;
use crate::tokens::{TokenCounter, Tokens};

use super::cut::is_result;

/// A message, or a part of one, as text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TranscriptItem {
    /// Its text behind its author; empty if there is none.
    pub text: String,
    /// Whether it answers a call before it, and must not be separated from that.
    pub stays_behind: bool,
    /// Results and arguments in `text` that are too long.
    long: Vec<Range<usize>>,
}

/// The separator of items.
const BREAK: &str = "\n";
/// The start of a part that continues a message.
const CONTINUED: &str = "[continued] ";
/// Bytes that are at least one token: English has four per token, Chinese three.
pub const BYTES_PER_TOKEN: usize = 3;

/// Most tokens of results and arguments; 0 is no limit.
#[derive(Debug, Clone, Copy)]
pub struct Limit {
    pub tokens: Tokens,
    pub counter: TokenCounter,
}

impl Limit {
    /// Returns bytes that are certainly within it.
    fn bytes(self) -> usize {
        let tokens = if self.tokens == Tokens::ZERO { Tokens::MAX } else { self.tokens };
        usize::try_from(tokens.0).unwrap_or(usize::MAX).saturating_mul(BYTES_PER_TOKEN)
    }
}

impl TranscriptItem {
    /// Returns an item that may stand alone.
    pub fn new(text: String) -> Self {
        Self { text, stays_behind: false, long: Vec::new() }
    }

    /// Adds a result or arguments.
    fn push(&mut self, text: &str, limit: Limit) {
        let start = self.text.len();
        self.text.push_str(text);
        if text.len() > limit.bytes() {
            self.long.push(start..self.text.len());
        }
    }

    /// Returns its shortened size in bytes, with the separator.
    fn bytes(&self, limit: Limit) -> usize {
        let gone: usize = self.long.iter().map(|range| range.len() - limit.bytes()).sum();
        self.text.len() - gone + BREAK.len()
    }

    /// Returns its text with long results and arguments shortened by content, with marks. O(bytes); counts tokens.
    fn shortened(&self, limit: Limit) -> Cow<'_, str> {
        if self.long.is_empty() {
            return Cow::Borrowed(&self.text);
        }
        let mut shortened = String::new();
        let mut at = 0;
        for range in &self.long {
            shortened.push_str(&self.text[at..range.start]);
            let long = &self.text[range.clone()];
            let is_short = limit.counter.text(long) <= limit.tokens;
            match within(long, limit.tokens, limit.counter, Marks::default()).filter(|_| !is_short) {
                Some((text, _)) => shortened.push_str(&text),
                None => shortened.push_str(long),
            }
            at = range.end;
        }
        shortened.push_str(&self.text[at..]);
        Cow::Owned(shortened)
    }
}

/// Returns an item for each message. O(bytes); counts nothing.
pub fn items(view: &[Message<'_>], limit: Limit) -> Vec<TranscriptItem> {
    let mut calls: &[ToolCall<'_>] = &[];
    let item = |message| {
        if !is_result(message) {
            calls = &message.tool_calls;
        }
        item(message, calls, limit)
    };
    view.iter().map(item).collect()
}

fn item(message: &Message<'_>, calls: &[ToolCall<'_>], limit: Limit) -> TranscriptItem {
    let said = said(message);
    if is_result(message) {
        let mut item = TranscriptItem::new(format!("{} returned: ", tool(message, calls)));
        item.push(&said, limit);
        return TranscriptItem { stays_behind: true, ..item };
    }
    let speaker = message.role.name();
    let mut item = TranscriptItem::new(if said.is_empty() { String::new() } else { format!("{speaker}: {said}") });
    for call in &message.tool_calls {
        let [name, arguments] = [&call.name, &call.arguments].map(|text| text.as_ref().map_or("", Text::as_str));
        let line_break = if item.text.is_empty() { "" } else { BREAK };
        let _ = write!(item.text, "{line_break}{speaker} called {name} with ");
        item.push(arguments, limit);
    }
    item
}

/// Returns the name of a result's tool.
pub fn tool<'n>(result: &'n Message<'_>, calls: &'n [ToolCall<'_>]) -> &'n str {
    let called = || calls.iter().find(|call| answers(result, call)).and_then(|call| call.name.as_ref());
    result.name.as_ref().or_else(called).map_or("a tool", Text::as_str)
}

/// Returns whether `result` answers `call`.
pub fn answers(result: &Message<'_>, call: &ToolCall<'_>) -> bool {
    let [id, of] = [&call.id, &result.tool_call_id].map(|text| text.as_ref().map(Text::as_str));
    id.is_some() && id == of
}

/// Returns the text of a message; images, sound and files are named.
pub fn said<'a>(message: &Message<'a>) -> Cow<'a, str> {
    match &message.content {
        Content::Empty => Cow::Borrowed(""),
        Content::Text(text) => text.as_str().trim().into(),
        Content::Parts(parts) => {
            let text = |part: &Part<'a>| match part {
                Part::Text(text) => text.as_str().trim(),
                Part::Media(Media::Image { .. }, _) => "[image]",
                Part::Media(Media::Audio, _) => "[audio]",
                Part::Media(Media::File, _) => "[file]",
                Part::Block(..) | Part::Other(_) => "[attachment]",
            };
            parts.iter().map(text).filter(|text| !text.is_empty()).collect::<Vec<_>>().join(BREAK).into()
        }
    }
}

/// Returns the items as one text, without empty ones.
pub fn joined(items: &[TranscriptItem], limit: Limit) -> String {
    let texts: Vec<Cow<'_, str>> =
        items.iter().filter(|item| !item.text.is_empty()).map(|item| item.shortened(limit)).collect();
    texts.join(BREAK)
}

/// Returns the size of the items as one text, in bytes.
pub fn bytes(items: &[TranscriptItem], limit: Limit) -> usize {
    items.iter().map(|item| item.bytes(limit)).sum()
}

/// Splits items into chunks of at most `max_bytes`.
///
/// A call stays with its results if one chunk has room for both. Otherwise, and for a long message, the text continues in
/// the next chunk behind a mark; nothing is left out. O(bytes).
pub fn chunks(items: Vec<TranscriptItem>, max_bytes: usize, limit: Limit) -> Vec<Vec<TranscriptItem>> {
    let max_bytes = max_bytes.max(4 * CONTINUED.len());
    let mut chunks: Vec<Vec<TranscriptItem>> = Vec::new();
    let mut room = 0;
    let mut place = |item: TranscriptItem, opens: bool, room: &mut usize| {
        let bytes = item.bytes(limit);
        match chunks.last_mut() {
            Some(chunk) if !opens && bytes <= *room => chunk.push(item),
            _ => {
                chunks.push(vec![TranscriptItem { stays_behind: false, ..item }]);
                *room = max_bytes;
            }
        }
        *room = room.saturating_sub(bytes);
    };
    let mut rest = items.into_iter().peekable();
    while let Some(opening) = rest.next() {
        let mut group = vec![opening];
        while let Some(result) = rest.next_if(|item| item.stays_behind) {
            group.push(result);
        }
        let group_bytes = bytes(&group, limit);
        let opens = group_bytes <= max_bytes && group_bytes > room;
        for (position, item) in group.into_iter().enumerate() {
            if item.bytes(limit) <= max_bytes {
                place(item, opens && position == 0, &mut room);
                continue;
            }
            let text = item.shortened(limit);
            for (part, text) in parts(&text, max_bytes - CONTINUED.len() - BREAK.len()).enumerate() {
                let text = if part == 0 { text.to_owned() } else { format!("{CONTINUED}{text}") };
                place(
                    TranscriptItem { stays_behind: item.stays_behind, ..TranscriptItem::new(text) },
                    false,
                    &mut room,
                );
            }
        }
    }
    chunks
}

/// Splits a text into pieces of at most `max_bytes`, between characters, and between lines if possible.
fn parts(text: &str, max_bytes: usize) -> impl Iterator<Item = &str> {
    let mut rest = text;
    std::iter::from_fn(move || {
        if rest.is_empty() {
            return None;
        }
        let end = rest.floor_char_boundary(max_bytes);
        let at_line = if end < rest.len() { rest[..end].rfind('\n').map(|at| at + 1) } else { None };
        let end = at_line.filter(|&at| at >= max_bytes / 2).unwrap_or(end);
        let (part, left) = rest.split_at(end);
        rest = left;
        Some(part)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::message::Role;

    fn text(item: &str) -> TranscriptItem {
        TranscriptItem::new(item.to_owned())
    }

    fn result(item: &str) -> TranscriptItem {
        TranscriptItem { stays_behind: true, ..text(item) }
    }

    fn limit(tokens: Tokens) -> Limit {
        Limit { tokens, counter: TokenCounter::new(None) }
    }

    #[test]
    fn calls_and_results_are_told_by_their_tools_name() {
        let [id, name, arguments] = ["c1", "exec", r#"{"command":"ls"}"#].map(|text| Some(Text::new(text)));
        let call = ToolCall { id: id.clone(), name, arguments, arguments_are_text: true };
        let view = [
            Message::new(Role::User, " list it "),
            Message { tool_calls: vec![call], ..Message::new(Role::Assistant, "Sure.") },
            Message { tool_call_id: id, ..Message::new(Role::Tool, "a.txt") },
            Message::empty(Role::Assistant),
        ];
        let items = items(&view, limit(Tokens::ZERO));
        let texts: Vec<&str> = items.iter().map(|item| item.text.as_str()).collect();
        let called = "assistant: Sure.\nassistant called exec with {\"command\":\"ls\"}";
        assert_eq!(texts, ["user: list it", called, "exec returned: a.txt", ""]);
        assert_eq!(items.iter().map(|item| item.stays_behind).collect::<Vec<_>>(), [false, false, true, false]);
        assert_eq!(joined(&items, limit(Tokens::ZERO)), format!("user: list it\n{called}\nexec returned: a.txt"));
    }

    #[test]
    fn a_long_result_is_shortened_by_its_content() {
        let log = format!("{}ERROR: disk full\n{}", "all is well\n".repeat(900), "done\n".repeat(900));
        let view = [Message { name: Some("exec".into()), ..Message::new(Role::Tool, &log) }];
        let items = items(&view, limit(Tokens(200)));
        let shown = joined(&items, limit(Tokens(200)));
        assert!(shown.contains("ERROR: disk full") && shown.len() < 2_000, "{shown}");
        assert_eq!(
            bytes(&items, limit(Tokens(200))),
            "exec returned: ".len() + 600 + BREAK.len(),
            "known before it is shortened"
        );
    }

    #[test]
    fn chunks_hold_all_and_are_no_larger_than_asked() {
        let items =
            vec![text(&"a".repeat(90)), text("call"), result(&"b".repeat(30)), text(&"字".repeat(200)), text("end")];
        for max_bytes in [60, 100, 128, 1_000] {
            let chunks = chunks(items.clone(), max_bytes, limit(Tokens::ZERO));
            assert!(
                chunks.iter().all(|chunk| bytes(chunk, limit(Tokens::ZERO)) <= max_bytes && !chunk[0].stays_behind),
                "{chunks:?}"
            );
            let all: String = chunks.iter().flatten().map(|item| item.text.replace(CONTINUED, "")).collect();
            assert_eq!(all, items.iter().map(|item| item.text.as_str()).collect::<String>());
        }
    }

    #[test]
    fn a_call_and_its_results_are_in_one_chunk() {
        let items = vec![text(&"a".repeat(70)), text("call"), result(&"b".repeat(30)), result("c")];
        let chunks = chunks(items, 80, limit(Tokens::ZERO));
        assert_eq!(chunks.iter().map(Vec::len).collect::<Vec<_>>(), [1, 3]);
    }
}
