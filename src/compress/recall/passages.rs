//! Finds the passages that have most of what a message asks for, where the request does not show them.

use std::sync::Arc;

use crate::conversation::{groups, is_note};
use crate::message::{Message, Role, Text, ToolCall};
use crate::select::Asked;
use crate::select::scoring::{Idf, asks_for_nothing};
use crate::select::within::{Cut, Question};
use crate::text::analysis::{Analysis, Form};
use crate::text::elision::Marks;
use crate::text::estimate::count;
use crate::text::language::Language;
use crate::text::ledger::{self, Quote};
use crate::text::names::names;
use crate::text::segments::Kind;
use crate::text::terms::{ShortTerm, TermKind, is_han, scan};
use crate::tokens::{TokenCounter, Tokens};

use crate::compress::compaction::Made;
use crate::compress::plan::Reason;

/// Bytes up to which every word asks, and up to which names do; more is material. And most terms: a text with more is about all of
/// them.
pub(super) const QUESTION_BYTES: usize = 240;
const TASK_BYTES: usize = 2_000;
const MAX_TERMS: usize = u128::BITS as usize;

/// A passage has at least the weight of one term that so many groups have.
const RARELY: usize = 2;

/// Least weight, as a share of all that is asked for and of the best passage; and the most groups that are quoted.
///
/// With half of what is asked for, three quarters of the best passage's and three groups .690 of the evidence of meetings stays at
/// half of the tokens, and .438 at a quarter, with these .710 and .473.
const MIN_SHARE: f32 = 0.3;
const BESIDE_BEST: f32 = 0.6;
const MAX_GROUPS: usize = 4;

/// Most passages that are looked at: what more have is the subject of the conversation.
const MAX_PASSAGES: usize = 32;

/// Weight of a term in another part of the passage's group: the words of a call may name what its result says.
const NEARBY: f32 = 0.5;

/// Most tokens of a quote for each passage in it.
const PASSAGE_TOKENS: Tokens = Tokens(200);

/// Most bytes of a result that answers for the arguments of its call.
const SHORT_RESULT: usize = 400;

/// A search for what a message asks for.
pub(super) struct Search<'s, 'v> {
    /// The messages before the one that asks.
    pub(super) view: &'s [Message<'v>],
    /// The step covers those before this index.
    pub(super) at: usize,
    /// What it leaves of them.
    pub(super) made: &'s Made,
    pub(super) max_tokens: Tokens,
    pub(super) counter: TokenCounter,
    pub(super) language: Language,
}

impl Search<'_, '_> {
    /// Returns a ledger that quotes what the words `asked` ask for; `None` where that is nothing, or in the request. O(terms).
    pub(super) fn quotes(&self, asked: &str) -> Option<String> {
        let terms = Terms::of(asked)?;
        let sources = sources(self.view, &terms);
        let mut lost = self.lost(&sources, &terms);
        lost.sort_by_key(|lost| (lost.source.message, !lost.source.is_arguments));
        let share = self.max_tokens / (lost.len() as u64).max(1);
        let quotes: Vec<Quote> = lost.iter().filter_map(|lost| self.quote(lost, asked, share)).collect();
        (!quotes.is_empty()).then(|| ledger::quotes(&quotes, self.language))
    }

    fn quote(&self, lost: &Lost<'_, '_>, asked: &str, max_tokens: Tokens) -> Option<Quote> {
        let Lost { source: Source { role, call, text, .. }, parts } = lost;
        let heading = match call {
            Some(ToolCall { name, arguments, .. }) => {
                ledger::call_line(string(name.as_ref()), string(arguments.as_ref()), None)
            }
            None => role.name().to_owned(),
        };
        let (max_tokens, counter) = (max_tokens.min(PASSAGE_TOKENS * parts.len() as u64), self.counter);
        let marks = Marks { language: self.language, archive_path: None };
        let tokens = counter.text(text);
        if tokens <= max_tokens {
            return Some(Quote { heading, text: (*text).to_owned() });
        }
        let near = lost.excerpt(max_tokens.as_f32() / tokens.as_f32(), marks);
        let cut = || Cut { text, max_tokens, counter, marks, question: Question { asked, arguments: "" } }.cached();
        let text = if counter.text(&near) <= max_tokens { near } else { cut()?.0 };
        Some(Quote { heading, text })
    }

    /// Returns the texts that have more of the terms than any passage of the request; best first.
    fn lost<'t, 's>(&self, sources: &'t [Source<'s>], terms: &Terms) -> Vec<Lost<'t, 's>> {
        let shown = Shown::of(&self.view[..self.at], self.made);
        let mut lost: Vec<Lost<'_, '_>> = Vec::new();
        for (source, part) in rated(sources, terms).into_iter().take(MAX_PASSAGES) {
            let passage = source.analysis.byte_ranges().nth(part).map_or("", |(_, range)| source.text[range].trim());
            let is_shown = shown.has(source.message, passage);
            let answer = source.answer(sources).filter(|answer| !shown.has(answer.message, answer.text.trim()));
            if is_shown && answer.is_none() {
                // Who asks again does not say the answer.
                if source.role == Role::User && passage.contains(['?', '？']) {
                    continue;
                }
                break;
            }
            for source in Some(source).filter(|_| !is_shown).into_iter().chain(answer) {
                let mut groups: Vec<usize> = lost.iter().map(|lost| lost.source.group).collect();
                groups.dedup();
                // Of a short answer the part does not matter.
                let part = if source.found.iter().any(|(other, _)| *other == part) { part } else { 0 };
                match lost.iter_mut().find(|lost| std::ptr::eq(lost.source, source)) {
                    Some(known) => known.parts.push(part),
                    None if groups.len() < MAX_GROUPS || groups.contains(&source.group) => {
                        lost.push(Lost { source, parts: vec![part] });
                    }
                    None => {}
                }
            }
        }
        lost
    }
}

/// A text with passages that the request does not show.
struct Lost<'t, 's> {
    source: &'t Source<'s>,
    /// Their parts, best first.
    parts: Vec<usize>,
}

impl Lost<'_, '_> {
    /// Returns the passages with what stands around them, up to a `share` of the text: more of what follows, which says what they
    /// are about. Of a table also the first line.
    fn excerpt(&self, share: f32, marks: Marks<'_>) -> String {
        let Source { text, analysis, .. } = self.source;
        let parts = &analysis.parts;
        let mut left = count(text.len()) * share * FILLED;
        let mut keeps = vec![false; parts.len()];
        let mut keep = |part: usize| {
            let bytes = count(parts[part].bytes as usize);
            let fits = !keeps[part] && bytes <= left;
            if fits {
                keeps[part] = true;
                left -= bytes;
            }
        };
        if matches!(analysis.kind(), Some(Kind::Table)) {
            keep(0);
        }
        self.parts.iter().for_each(|&part| keep(part));
        for (before, behind) in [(0, 1), (0, 2), (1, 3), (2, 4), (3, 5), (4, 6), (5, 7), (6, 8)] {
            for &part in &self.parts {
                let around = [part.checked_sub(before).filter(|_| before > 0), Some(part + behind)];
                around.into_iter().flatten().filter(|&at| at < parts.len()).for_each(&mut keep);
            }
        }
        analysis.excerpt(text, &|part| keeps[part], marks)
    }
}

/// Share of its room that a quote fills: the rest is for marks, and for parts of more tokens than others.
const FILLED: f32 = 0.8;

/// What a message asks for.
struct Terms {
    terms: Vec<ShortTerm>,
    asked: Asked,
    /// By term: whether it is of a name.
    is_name: Vec<bool>,
}

impl Terms {
    /// Returns the terms of a text; `None` if there are none, or too many.
    fn of(text: &str) -> Option<Self> {
        let mut terms: Vec<ShortTerm> = Vec::new();
        let mut add = |text: &str| {
            scan(text, |term, _| {
                let term = term.short();
                // The stem of a long word is a term, too.
                let asks = term.kind() != TermKind::LongWord && !asks_for_nothing(term) && !terms.contains(&term);
                terms.extend(asks.then_some(term));
            });
        };
        if text.len() <= QUESTION_BYTES {
            add(text);
        } else if text.len() <= TASK_BYTES {
            for name in names(text) {
                add(&text[name]);
            }
        }
        let mut is_name = vec![false; terms.len()];
        for name in names(text).into_iter().map(|name| &text[name]).chain(latin(text)) {
            scan(name, |term, _| {
                if let Some(at) = terms.iter().position(|other| *other == term.short()) {
                    is_name[at] = true;
                }
            });
        }
        let asked = Asked::of(terms.iter().copied());
        (1..=MAX_TERMS).contains(&terms.len()).then_some(Self { terms, asked, is_name })
    }

    /// Returns which of them are among the terms of a part.
    fn found(&self, of_part: &[ShortTerm]) -> u128 {
        let asked = of_part.iter().filter(|&&term| self.asked.contains(term));
        let bits = asked.filter_map(|term| self.terms.iter().position(|other| other == term));
        bits.fold(0, |found, bit| found | 1 << bit)
    }

    /// Returns the weight of each term; 0 for those that no group has.
    fn weights(&self, by_group: &[u128]) -> Vec<f32> {
        let idf = Idf::of(by_group.len());
        let weight = |bit: usize| {
            let having = by_group.iter().filter(|found| **found & 1 << bit != 0).count();
            let factor = match self.terms[bit].kind() {
                _ if having == 0 => return 0.0,
                _ if self.is_name[bit] => NAME,
                TermKind::Pair => OF_PAIR,
                _ => 1.0,
            };
            factor * idf.at(having)
        };
        (0..self.terms.len()).map(weight).collect()
    }
}

/// Weight of a term of a name, and of a pair of characters, of which a word has several; that of others is 1.
const NAME: f32 = 3.0;
const OF_PAIR: f32 = 0.5;

/// Returns the words in Latin letters of a text in a script without spaces, where they are names.
fn latin(text: &str) -> impl Iterator<Item = &str> {
    let words = text.split(|c: char| !c.is_ascii_alphanumeric()).filter(|word| word.len() > 2);
    words.filter(|_| text.contains(is_han))
}

/// A text of the conversation.
struct Source<'v> {
    group: usize,
    message: usize,
    role: Role,
    /// The call with these arguments, or with this result.
    call: Option<&'v ToolCall<'v>>,
    is_arguments: bool,
    text: &'v str,
    analysis: Arc<Analysis>,
    /// The parts that have some of the terms, and which.
    found: Vec<(usize, u128)>,
}

impl Source<'_> {
    /// Returns the short result of the call, if this is its arguments.
    fn answer<'t>(&self, sources: &'t [Self]) -> Option<&'t Self> {
        let call = self.call.filter(|_| self.is_arguments)?;
        let is_answer = |other: &&Self| !other.is_arguments && other.call.is_some_and(|of| std::ptr::eq(of, call));
        sources.iter().find(is_answer).filter(|answer| answer.text.len() <= SHORT_RESULT)
    }
}

/// Returns the texts of the messages with the terms that they have. O(terms).
fn sources<'v>(view: &'v [Message<'v>], terms: &Terms) -> Vec<Source<'v>> {
    let mut sources = Vec::new();
    for (group, range) in groups(view.iter().map(|message| message.role)).into_iter().enumerate() {
        let calls = &view[range.start].tool_calls;
        for (message, of) in (range.start..range.end).map(|message| (message, &view[message])) {
            if of.role == Role::System || is_note(of) {
                continue;
            }
            let answers = |call: &&ToolCall<'_>| {
                call.id.is_some() && string(call.id.as_ref()) == string(of.tool_call_id.as_ref())
            };
            let answered = calls.iter().find(answers).filter(|_| of.role == Role::Tool);
            let said = of.texts().map(|text| (text, answered, false));
            let arguments = of.tool_calls.iter().map(|call| (string(call.arguments.as_ref()), Some(call), true));
            for (text, call, is_arguments) in said.chain(arguments) {
                let analysis = Analysis::of(text, if is_arguments { Form::Arguments } else { Form::Outlined });
                let parts = analysis.ranges().map(|(_, range)| terms.found(&analysis.terms[range])).enumerate();
                let found = parts.filter(|(_, found)| *found != 0).collect();
                sources.push(Source { group, message, role: of.role, call, is_arguments, text, analysis, found });
            }
        }
    }
    sources
}

fn string<'v>(text: Option<&Text<'v>>) -> &'v str {
    text.map_or("", Text::as_str)
}

/// Returns the parts of most weight: best first, then newest first.
fn rated<'t, 's>(sources: &'t [Source<'s>], terms: &Terms) -> Vec<(&'t Source<'s>, usize)> {
    let mut by_group = vec![0_u128; sources.last().map_or(0, |source| source.group + 1)];
    for source in sources {
        by_group[source.group] |= source.found.iter().fold(0, |all, (_, found)| all | found);
    }
    let weights = terms.weights(&by_group);
    let weight =
        |found: u128| (0..weights.len()).filter(|bit| found & 1 << bit != 0).map(|bit| weights[bit]).sum::<f32>();
    let mut rated: Vec<(f32, &Source<'_>, usize)> = Vec::new();
    for source in sources {
        let rate = |&(part, found): &(usize, u128)| {
            (weight(found) + NEARBY * weight(by_group[source.group] & !found), source, part)
        };
        rated.extend(source.found.iter().map(rate));
    }
    // Equal ones stay in order.
    rated.reverse();
    rated.sort_by(|(one, ..), (other, ..)| other.total_cmp(one));
    let best = rated.first().map_or(0.0, |(weight, ..)| *weight);
    let least = (best * BESIDE_BEST).max(weight(u128::MAX) * MIN_SHARE).max(Idf::of(by_group.len()).at(RARELY));
    rated.into_iter().take_while(|(weight, ..)| *weight >= least).map(|(_, source, part)| (source, part)).collect()
}

/// What a request has of the messages before a step: each message as it stands there, if it does. Those behind it are all there.
struct Shown<'m>(Vec<Option<Message<'m>>>);

impl<'m> Shown<'m> {
    fn of(older: &'m [Message<'_>], made: &'m Made) -> Self {
        let mut messages: Vec<Option<Message<'m>>> = older.iter().map(|_| None).collect();
        for output in &made.plan.outputs {
            if let Some(index) = output.index() {
                messages[index] = Some(output.message(older));
            }
        }
        // What is joined stands in the message before.
        for cut in made.plan.receipt.cuts.iter().filter(|cut| cut.reason == Reason::Joined) {
            if messages[cut.index].is_none() {
                messages[cut.index] = messages[..cut.index].iter().rev().flatten().next().cloned();
            }
        }
        Self(messages)
    }

    fn has(&self, message: usize, passage: &str) -> bool {
        let Some(shown) = self.0.get(message) else { return true };
        let Some(shown) = shown else { return false };
        let arguments = shown.tool_calls.iter().map(|call| string(call.arguments.as_ref()));
        shown.texts().chain(arguments).any(|text| text.contains(passage))
    }
}
