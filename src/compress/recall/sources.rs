//! The texts of a conversation with what they have of what is asked for.

use std::cell::OnceCell;
use std::ops::Range;
use std::sync::Arc;

use crate::conversation::{groups, is_note};
use crate::message::{Message, Role, Text, ToolCall};
use crate::text::analysis::{Analysis, Form};
use crate::text::codes::{codes, parts_with, parts_with_sign};
use crate::text::ledger;
use crate::text::rules::normal;
use crate::text::segments::{self, Class, Kind};
use crate::text::terms::scan;

use super::asked::Terms;
use crate::compress::rows_meant::{Listed, rows_meant};

/// Most bytes of a record that is taken whole: about 400 tokens. And of a function, which is code that somebody asks for.
pub(in crate::compress) const RECORD_BYTES: usize = 1_600;
const FUNCTION_BYTES: usize = 4_000;

/// Most parts of a text that may have a code or a sign: what more have is no name.
const MAX_PARTS: usize = 64;

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
    /// The text as [`normal`] has it, if it was needed.
    bare: OnceCell<String>,
    /// The parts that have some of the terms, and which: see [`Self::find`].
    pub(super) found: Vec<(usize, u128)>,
    /// Those of them that are signatures of functions, in code that was read or written.
    signatures: Vec<usize>,
    /// Those that the question means as rows of a list, the most wanted first.
    pub(super) rows: Vec<usize>,
}

impl Source<'_> {
    /// Finds what it has of other terms.
    pub(super) fn find(&mut self, terms: &Terms) {
        let parts = self.analysis.ranges().map(|(_, range)| terms.found(&self.analysis.terms[range])).enumerate();
        self.found.clear();
        self.found.extend(parts.filter(|(_, found)| *found != 0));
        let may_define = self.is_arguments || self.analysis.kind() == Some(Kind::Code);
        self.rows.clear();
        self.signatures = if may_define { signatures(self.text, &self.analysis, &self.found) } else { Vec::new() };
    }

    /// Returns which of the terms it has.
    pub(super) fn has(&self) -> u128 {
        self.found.iter().fold(0, |all, (_, found)| all | found)
    }

    /// Returns which of the terms a part has.
    pub(super) fn found_in(&self, part: usize) -> u128 {
        self.found.iter().find(|(other, _)| *other == part).map_or(0, |(_, found)| *found)
    }

    /// Iterates over the parts of a result in JSON that have some of the terms and a value, with these terms; over none of other texts.
    pub(super) fn members(&self) -> impl Iterator<Item = (usize, u128)> {
        let is_json = self.role == Role::Tool && !self.is_arguments && self.analysis.kind() == Some(Kind::Json);
        let found = self.found.iter().copied().filter(move |_| is_json);
        found.filter(|(part, _)| self.analysis.parts[*part].class != Class::Noise)
    }

    pub(super) fn passage(&self, part: usize) -> &str {
        self.analysis.byte_ranges().nth(part).map_or("", |(_, range)| self.text[range].trim())
    }

    /// Returns who says it, or the call whose result it is.
    pub(super) fn heading(&self) -> String {
        match self.call {
            Some(ToolCall { name, arguments, .. }) => {
                ledger::call_line(string(name.as_ref()), string(arguments.as_ref()), None)
            }
            None => self.role.name().to_owned(),
        }
    }

    /// Returns whether a part defines what it names, as the signature of a function does.
    pub(super) fn defines(&self, part: usize) -> bool {
        self.signatures.contains(&part)
    }

    /// Returns the short record of a result, or of pasted data, that has the part's first term of these: its name alone says nothing.
    /// Of a signature that is its function.
    pub(super) fn record(&self, part: usize, terms: &Terms) -> Option<Range<usize>> {
        let defines = self.defines(part);
        let is_record = self.role == Role::Tool || self.analysis.is_material() || defines;
        let (_, range) = self.analysis.byte_ranges().nth(part).filter(|_| is_record)?;
        if let Some(record) = self.json_record(part) {
            return Some(record).filter(|record| record.len() <= RECORD_BYTES);
        }
        let mut at = None;
        scan(&self.text[range.clone()], |term, start| {
            at = at.or_else(|| terms.asked.contains(term.short().as_word()).then_some(range.start + start));
        });
        // A sign, or a row that is meant, is no term.
        let at = at.unwrap_or(range.start);
        let record = if self.is_arguments { in_string(self.text, at) } else { segments::record(self.text, at)? };
        let start = record.end - self.text[record.clone()].trim_start().len();
        let most = if defines { FUNCTION_BYTES } else { RECORD_BYTES };
        Some(start..start + self.text[start..record.end].trim_end().len()).filter(|record| record.len() <= most)
    }

    /// Returns the bytes of the record that a part of a result in JSON is in.
    fn json_record(&self, part: usize) -> Option<Range<usize>> {
        let parts = self.analysis.json_record(part).filter(|_| !self.is_arguments)?;
        let mut ranges = self.analysis.byte_ranges().map(|(_, range)| range);
        let first = ranges.nth(*parts.first()?)?;
        let last = if parts.len() > 1 { ranges.nth(parts.len() - 2)? } else { first.clone() };
        Some(first.start..last.end)
    }

    /// Returns whether the user asks in a part.
    pub(super) fn asks(&self, part: usize) -> bool {
        self.role == Role::User && self.passage(part).contains(['?', '？'])
    }

    /// Returns whether both are of one call: its arguments and its result.
    pub(super) fn shares_call(&self, other: &Self) -> bool {
        matches!((self.call, other.call), (Some(call), Some(of)) if std::ptr::eq(call, of))
    }

    /// Returns the short texts that answer this one, newest first: the result of a call's arguments, what the rest of its turn says to
    /// a short message of the user, and the results that a short message of the model sums up.
    pub(super) fn answers<'t>(&self, sources: &'t [Self]) -> Vec<&'t Self> {
        let is_of_turn = |other: &Self| self.text.len() <= SHORT_TEXT && self.turn == other.turn;
        let is_answer = |other: &&Self| {
            !other.is_arguments
                && match (self.is_arguments, self.role) {
                    (true, _) => self.shares_call(other),
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

/// Returns the texts of the messages, in order. O(bytes); what was analysed is remembered.
pub(super) fn sources<'v>(view: &'v [Message<'v>]) -> Vec<Source<'v>> {
    let (mut sources, mut turn) = (Vec::new(), 0);
    for (group, range) in groups(view.iter().map(|message| message.role)).into_iter().enumerate() {
        let calls = &view[range.start].tool_calls;
        for (message, of) in (range.start..range.end).map(|message| (message, &view[message])) {
            if of.role == Role::System || is_note(of) {
                continue;
            }
            turn += usize::from(of.role == Role::User);
            let answered = calls.iter().find(|call| answers(of, call)).filter(|_| of.role == Role::Tool);
            let said = of.texts().map(|text| (text, answered, false));
            let arguments = of.tool_calls.iter().map(|call| (string(call.arguments.as_ref()), Some(call), true));
            for (text, call, is_arguments) in said.chain(arguments) {
                let analysis = Analysis::of(text, if is_arguments { Form::Arguments } else { Form::Outlined });
                let role = of.role;
                sources.push(Source {
                    turn,
                    group,
                    message,
                    role,
                    call,
                    is_arguments,
                    text,
                    analysis,
                    bare: OnceCell::new(),
                    found: Vec::new(),
                    signatures: Vec::new(),
                    rows: Vec::new(),
                });
            }
        }
    }
    sources
}

/// Returns whether a result is that of a call.
pub(super) fn answers(result: &Message<'_>, call: &ToolCall<'_>) -> bool {
    call.id.is_some() && string(call.id.as_ref()) == string(result.tool_call_id.as_ref())
}

/// Adds to what `sources` have the codes of a question that none has as it is written there: in another spelling, or one that a
/// longer one ends or begins with. O(bytes) where there is such a code.
pub(super) fn add_codes(sources: &mut [Source<'_>], terms: &Terms, question: &str) {
    let unknown = codes(question).into_iter().filter_map(|code| {
        let bits = terms.bits_of(code.word);
        let is_unknown = bits != 0 && sources.iter().all(|source| source.has() & bits == 0);
        // One bit, for the others are those of its parts.
        is_unknown.then_some((code.bare, bits & bits.wrapping_neg()))
    });
    let unknown: Vec<(String, u128)> = unknown.collect();
    for source in sources.iter_mut().take_while(|_| !unknown.is_empty()) {
        let bare = source.bare.get_or_init(|| normal(source.text));
        for (code, bit) in &unknown {
            let parts = parts_with(code, bare, source.text, &source.analysis).take(MAX_PARTS);
            parts.for_each(|part| add(&mut source.found, part, *bit));
        }
    }
}

/// Adds to what `sources` have the signs that are asked for. O(bytes) where there is one.
pub(super) fn add_signs(sources: &mut [Source<'_>], terms: &Terms) {
    for (sign, bit) in &terms.signs {
        for source in &mut *sources {
            let parts = parts_with_sign(sign, source.text, &source.analysis).take(MAX_PARTS);
            parts.for_each(|part| add(&mut source.found, part, *bit));
        }
    }
}

/// Adds to what `sources` have the rows of a list that are meant; none by place where they have the day that "the 21st" is. O(bytes) of a
/// few results where some may be.
pub(super) fn add_rows<'v>(sources: &mut [Source<'v>], terms: &Terms) {
    let Some((reference, bit)) = &terms.rows else { return };
    let has_day = |source: &Source<'v>| source.found.iter().any(|(_, found)| found & terms.days != 0);
    if reference.is_place() && sources.iter().any(has_day) {
        return;
    }
    let listed = |(place, source): (usize, &Source<'v>)| match source.role {
        Role::User => Some((place, Listed::Said(source.text))),
        Role::Tool => Some((place, Listed::Result(source.text, source.call))),
        _ => None,
    };
    let texts = sources.iter().enumerate().filter_map(listed);
    let Some((place, found)) = rows_meant(reference, texts) else { return };
    let source = &mut sources[place];
    for at in found {
        if let Some(part) = source.analysis.parts_in(&(at..at + 1)).next() {
            add(&mut source.found, part, *bit);
            source.rows.push(part);
        }
    }
}

/// Adds terms to those of a part, in the order of the parts.
fn add(found: &mut Vec<(usize, u128)>, part: usize, bits: u128) {
    match found.binary_search_by_key(&part, |(part, _)| *part) {
        Ok(at) => found[at].1 |= bits,
        Err(at) => found.insert(at, (part, bits)),
    }
}

/// Returns which of the parts `found` open with the signature of a function.
fn signatures(text: &str, analysis: &Analysis, found: &[(usize, u128)]) -> Vec<usize> {
    let mut found = found.iter().map(|(part, _)| *part).peekable();
    let is_found = |(part, _): &(usize, _)| found.next_if_eq(part).is_some();
    let signed = analysis.byte_ranges().enumerate().filter(is_found).filter(|(_, (_, range))| {
        let line = text[range.clone()].trim_start().lines().next().unwrap_or_default();
        segments::is_signature(line.trim_matches(['"', ' ']))
    });
    signed.map(|(part, _)| part).collect()
}

/// Returns the line around byte `at` of a string in JSON, with those below it that are further indented.
fn in_string(text: &str, at: usize) -> Range<usize> {
    const BREAK: &str = "\\n";
    let line = text[..at].rfind(BREAK).map_or(0, |at| at + BREAK.len());
    let start = text[line..at].rfind('"').map_or(line, |quote| line + quote + 1);
    let indent = |line: &str| line.len() - line.trim_start().len();
    let own = indent(&text[start..]);
    let (mut end, mut next) = (text.len(), start);
    while let Some(at) = text[next..].find(BREAK) {
        let behind = next + at + BREAK.len();
        let line = &text[behind..];
        let is_blank = line.starts_with(BREAK);
        if !is_blank && indent(line) <= own {
            end = next + at;
            break;
        }
        next = behind;
    }
    // The string may end before the next line break.
    let mut quotes = text[start..end].match_indices('"');
    let quote = quotes.find(|(at, _)| !text[start..start + at].ends_with('\\'));
    start..quote.map_or(end, |(at, _)| start + at)
}

pub(super) fn string<'v>(text: Option<&Text<'v>>) -> &'v str {
    text.map_or("", Text::as_str)
}
