//! Finds what a request no longer says: names and error lines that came in and are not sent.
//!
//! It compares the messages before and after, whatever was cut and how often.

use std::collections::HashSet;
use std::ops::Range;

use crate::message::{Content, Message, Part, Role};
use crate::text::bytes::{has_digit, has_time};
use crate::text::names;
use crate::text::segments::{Class, Segments, is_error};
use crate::text::terms::{self, Term, TermKind};
use crate::tokens::BuildMixedHasher;

/// A name or error line that a request no longer says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Lost {
    /// Index of the last message that said it, in the original conversation.
    pub index: usize,
    /// What it is.
    pub kind: LostKind,
    /// Its text in that message.
    pub text: String,
}

/// What was lost.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum LostKind {
    /// Words joined by slashes.
    Path,
    /// Something with `://`.
    Url,
    /// An identifier: a word with a digit, an underscore or a hump in it, or words joined by punctuation.
    Id,
    /// A number of four digits or more, or one with a fraction.
    Number,
    /// A line of a tool result that reports an error.
    Error,
}

impl LostKind {
    /// Returns the kind as users see it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Path => "path",
            Self::Url => "url",
            Self::Id => "id",
            Self::Number => "number",
            Self::Error => "error",
        }
    }
}

/// Returns what `before` says and `after` does not, each once, at its last place, in the order of `before`.
///
/// What system messages say always stays. Ignores reasoning, dates and times. O(bytes) of both.
pub fn lost(before: &[Message<'_>], after: &[Message<'_>]) -> Vec<Lost> {
    let mut said: HashSet<Term, BuildMixedHasher> = HashSet::default();
    let (mut lines, mut spoken): (HashSet<&str>, HashSet<&str>) = (HashSet::new(), HashSet::new());
    for message in after {
        each_said(message, |text| {
            terms::scan(text, |term, _| {
                said.insert(term);
            });
            spoken.extend(spoken_names(text).map(|name| &text[name]));
            if is_result(message) {
                lines.extend(text.lines().map(str::trim));
            }
        });
        for name in message.tool_calls.iter().filter_map(|call| call.name.as_ref()) {
            terms::scan(name.as_str(), |term, _| {
                said.insert(term);
            });
        }
    }
    let mut lost = Vec::new();
    for (index, message) in before.iter().enumerate().rev().filter(|(_, message)| message.role != Role::System) {
        let mut found: Vec<(usize, LostKind, &str)> = Vec::new();
        each_said(message, |text| {
            let outer = names(text, &mut said);
            let is_gone = |name: &Range<usize>| {
                let first = outer.partition_point(|other| other.start < name.start);
                let has_gone = outer.get(first).is_some_and(|other| other.end <= name.end);
                has_gone || !has_name(&text[name.clone()])
            };
            // In rows a space may part two cells.
            let may_be = |name: &str| !is_result(message) || !name.contains(' ');
            let is_lost = |name: &Range<usize>| {
                let written = &text[name.clone()];
                may_be(written) && is_gone(name) && spoken.insert(written)
            };
            let whole: Vec<Range<usize>> = spoken_names(text).filter(is_lost).collect();
            let is_apart = |name: &Range<usize>| {
                let next = whole.partition_point(|other| other.end <= name.start);
                whole.get(next).is_none_or(|other| name.end <= other.start)
            };
            for name in outer.iter().filter(|name| is_apart(name)).chain(&whole) {
                found.push((name.start, kind(&text[name.clone()]), &text[name.clone()]));
            }
            if is_result(message) {
                for (start, line) in errors(text) {
                    if lines.insert(line) {
                        found.push((start, LostKind::Error, line));
                    }
                }
            }
        });
        found.sort_by_key(|&(start, kind, _)| (std::cmp::Reverse(start), kind));
        lost.extend(found.into_iter().map(|(_, kind, text)| Lost { index, kind, text: text.to_owned() }));
    }
    lost.reverse();
    lost
}

fn is_result(message: &Message<'_>) -> bool {
    matches!(message.role, Role::Tool | Role::Function)
}

fn each_said<'m>(message: &'m Message<'_>, mut visit: impl FnMut(&'m str)) {
    match &message.content {
        Content::Empty => {}
        Content::Text(text) => visit(text.as_str()),
        Content::Parts(parts) => {
            for part in parts {
                if let Part::Text(text) | Part::Block(_, text) | Part::Other(text) = part {
                    visit(text.as_str());
                }
            }
        }
    }
    message.tool_calls.iter().filter_map(|call| call.arguments.as_ref()).for_each(|text| visit(text.as_str()));
}

/// Iterates over the places of names with a digit in `text` that are more than a term: `+44 20 7946 0958`, 民法典第577条.
fn spoken_names(text: &str) -> impl Iterator<Item = Range<usize>> {
    let is_spoken = |name: &str| has_digit(name) && (name.contains(' ') || !name.is_ascii());
    names::names(text).into_iter().filter(move |name| is_spoken(&text[name.clone()]))
}

/// Returns whether a term of a name is one, too.
fn has_name(name: &str) -> bool {
    let mut has_name = false;
    terms::scan(name, |term, _| has_name |= term.kind().is_name());
    has_name
}

/// Returns the places of names in `text` that are not in `said`, and adds them; of nested names the outer one.
fn names(text: &str, said: &mut HashSet<Term, BuildMixedHasher>) -> Vec<Range<usize>> {
    let mut names: Vec<(Range<usize>, Term)> = Vec::new();
    terms::scan(text, |term, start| {
        if term.kind().is_name()
            && !said.contains(&term)
            && let Some(name) = terms::text_at(text, start, term.short())
        {
            names.push((start..start + name.len(), term));
        }
    });
    names.sort_by_key(|(name, _)| (name.start, std::cmp::Reverse(name.end)));
    // One table for both, said and found: with many names each look-up is a cache miss.
    let (mut end, mut outer, mut others) = (0, Vec::new(), Vec::new());
    for (name, term) in names {
        let is_outer = name.start >= end;
        end = end.max(name.end);
        let is_time = term.kind() == TermKind::Joined && has_time(text[name.clone()].as_bytes());
        if !is_outer || is_time {
            others.push(term);
        } else if said.insert(term) {
            outer.push(name);
        }
    }
    said.extend(others);
    outer
}

/// Returns the lines of a result that report an error, with their places; of similar ones only the first.
pub fn errors(text: &str) -> Vec<(usize, &str)> {
    let mut errors = Vec::new();
    let segments = Segments::of(text);
    for piece in segments.pieces().iter().filter(|piece| piece.class == Class::Error) {
        let mut at = piece.start as usize;
        // Short lines are one piece with their neighbours.
        for line in text[piece.range()].split_inclusive('\n') {
            if is_error(line) {
                errors.push((at, line.trim()));
            }
            at += line.len();
        }
    }
    errors
}

fn kind(name: &str) -> LostKind {
    match name {
        name if name.contains("://") => LostKind::Url,
        name if name.contains(['/', '\\']) => LostKind::Path,
        name if name.chars().any(char::is_alphabetic) => LostKind::Id,
        _ => LostKind::Number,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::message::{Text, ToolCall};

    fn found(before: &[Message<'_>], after: &[Message<'_>]) -> Vec<(usize, &'static str, String)> {
        lost(before, after).into_iter().map(|lost| (lost.index, lost.kind.name(), lost.text)).collect()
    }

    #[test]
    fn names_of_several_words_and_of_other_scripts_are_told_as_they_were_written() {
        let before = [
            Message::new(Role::User, "Call +44 20 7946 0958 at noon, or the pool shop, (03) 9555 0142."),
            Message::new(Role::User, "合同编号HT-2024-沪-0193寄到了，按民法典第577条退还。"),
            Message::new(Role::User, "It runs on port 48211 there."),
        ];
        let after = [Message::new(Role::User, "Behind 48211 stands (03) 9555 0142.")];
        let expected =
            [(0, "number", "+44 20 7946 0958"), (1, "id", "合同编号HT-2024-沪-0193"), (1, "id", "民法典第577条")]
                .map(|(index, kind, text)| (index, kind, text.to_owned()));
        assert_eq!(found(&before, &after), expected);
    }

    #[test]
    fn names_and_errors_that_are_gone_are_named_with_their_message() {
        let arguments = Some(Text::new(r#"{"path": "src/load_config.py"}"#));
        let call = ToolCall { id: None, name: None, arguments, arguments_are_text: true };
        let calling = Message { tool_calls: vec![call], ..Message::empty(Role::Assistant) };
        let log = "starting run_77 of build 202611\nsee https://ci.example.org/runs/77\nERROR disk full on sdb1\nat 12:30:01 it took 1.75 s\n";
        let before = [
            Message::new(Role::System, "Your id is bot_1."),
            Message::new(Role::User, "Look at run_77, please."),
            calling,
            Message::new(Role::Tool, log),
        ];
        let expected = [
            (2, "path", "src/load_config.py"),
            (3, "id", "run_77"),
            (3, "number", "202611"),
            (3, "url", "https://ci.example.org/runs/77"),
            (3, "error", "ERROR disk full on sdb1"),
            (3, "id", "sdb1"),
            (3, "number", "1.75"),
        ]
        .map(|(index, kind, text)| (index, kind, text.to_owned()));
        assert_eq!(found(&before, &before[..1]), expected);
        assert_eq!(found(&before, &before), []);
    }

    #[test]
    fn what_is_said_elsewhere_is_not_lost() {
        let before = [Message::new(Role::Tool, "wrote a/b.txt\nERROR: no a/b.txt\n"), Message::new(Role::User, "ok")];
        let short = [Message::new(Role::User, "Names: a/b.txt"), Message::new(Role::User, "ok")];
        assert_eq!(found(&before, &short), [(0, "error", "ERROR: no a/b.txt".to_owned())]);
    }

    #[test]
    fn what_the_system_message_says_is_not_lost() {
        let system = Message::new(Role::System, "The ticket is OPS-1442.");
        let before = [system.clone(), Message::new(Role::User, "OPS-1442 and OPS-77"), Message::new(Role::User, "ok")];
        assert_eq!(found(&before, &[system]), [(1, "id", "OPS-77".to_owned())]);
    }

    #[test]
    fn the_name_of_a_tool_that_is_called_is_said() {
        let before = [Message::new(Role::Tool, "use read_file or grep_files"), Message::new(Role::User, "ok")];
        let name = Some(Text::new("read_file"));
        let call = ToolCall { id: None, name, arguments: None, arguments_are_text: true };
        let calling = Message { tool_calls: vec![call], ..Message::empty(Role::Assistant) };
        assert_eq!(found(&before, &[calling]), [(0, "id", "grep_files".to_owned())]);
    }
}
