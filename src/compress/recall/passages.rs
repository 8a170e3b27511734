//! Finds the passages that have most of what a message asks for, where the request does not show them.

use std::cmp::Reverse;
use std::collections::BTreeSet;
use std::ops::Range;
use std::sync::Arc;

use crate::conversation::{groups, is_note};
use crate::message::{Message, Role, Text, ToolCall};
use crate::select::Asked;
use crate::select::scoring::{Idf, asks_for_nothing};
use crate::select::within::{Cut, Question, within};
use crate::text::analysis::{Analysis, Form};
use crate::text::elision::Marks;
use crate::text::estimate::count;
use crate::text::language::Language;
use crate::text::ledger::{self, Quote};
use crate::text::names::{capitals_beside, names};
use crate::text::references::Reference;
use crate::text::segments::{self, Kind};
use crate::text::terms::{ShortTerm, TermKind, is_han, scan};
use crate::tokens::{TokenCounter, Tokens};

use super::shown::Shown;
use crate::compress::compaction::Made;

/// Bytes up to which every word asks, and up to which names do; more is material. And most terms: a text with more is about all of
/// them.
pub(super) const QUESTION_BYTES: usize = 240;
const TASK_BYTES: usize = 2_000;
const MAX_TERMS: usize = u128::BITS as usize;

/// Most digits of a piece of a time, which is no name by itself.
const MAX_PIECE_DIGITS: usize = 2;

/// Most groups with a term for it to tell which reply a question points to, and what is about the same.
const RARE: usize = 3;

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

/// Most groups with a passage that comes near the best one, where it has no name: of more none is meant.
///
/// Of 4,000 statements of one kind .13 of the tokens were quotes without it, and .01 are with it; evidence of meetings .432 and .427.
const MAX_ABOUT: usize = 12;

/// Weight of a term in another part of the passage's group: the words of a call may name what its result says.
const NEARBY: f32 = 0.5;

/// Most tokens of a quote for each passage in it.
const PASSAGE_TOKENS: Tokens = Tokens(200);

/// Most bytes of a record that is quoted whole: about [`PASSAGE_TOKENS`].
const RECORD_BYTES: usize = 800;

/// Most bytes of a text that is an answer, and most answers.
const SHORT_TEXT: usize = 400;
const MAX_ANSWERS: usize = 3;

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
    /// Returns a ledger that quotes what the words `asked` ask for, each of them in a question, else the names; `None` where that is
    /// nothing, or in the request. O(terms).
    pub(super) fn quotes(&self, asked: &str, is_question: bool) -> Option<String> {
        let reference = Reference::of(asked).filter(|_| is_question);
        let terms = Terms::of(asked, is_question);
        if terms.terms.is_empty() && reference.is_none() {
            return None;
        }
        let sources = sources(self.view, &terms);
        let shown = Shown::of(&self.view[..self.at], self.made);
        let rating = Rating::of(&sources, &terms);
        let pointed_to = reference.and_then(|reference| self.pointed_to(reference, &rating, &shown));
        let mut quotes = Vec::from_iter(pointed_to);
        // Beside a name, its other words say what is pointed to.
        if quotes.is_empty() || !terms.names.is_empty() {
            let mut lost = Self::lost(&rating, shown);
            lost.sort_by_key(|lost| (lost.source.message, !lost.source.is_arguments));
            let share = self.max_tokens / ((lost.len() + quotes.len()) as u64).max(1);
            quotes.extend(lost.iter().filter_map(|lost| self.quote(lost, asked, &terms, share)));
        }
        (!quotes.is_empty()).then(|| ledger::quotes(&quotes, self.language))
    }

    /// Quotes what a question points to, by its place or form, in the reply with most of its rare terms, else the newest; `None` where
    /// the request shows it.
    fn pointed_to(&self, reference: Reference, rating: &Rating<'_, '_, '_>, shown: &Shown<'_>) -> Option<Quote> {
        let named = |source: &Source<'_>| {
            let found = source.found.iter().fold(0, |all, (_, found)| all | found);
            (found & rating.rare).count_ones()
        };
        let replies =
            rating.sources.iter().rev().filter(|source| source.role == Role::Assistant && !source.is_arguments);
        let meant = replies.filter_map(|source| {
            let ranges = reference.find(source.text);
            Some((source, ranges.first()?.clone(), ranges.last()?.clone()))
        });
        // Of equal ones the first, which is the newest.
        let (source, thing, all) = meant.min_by_key(|(source, ..)| Reverse(named(source)))?;
        if shown.has(source.message, source.text[thing.clone()].trim()) {
            return None;
        }
        let marks = Marks { language: self.language, archive_path: None };
        let fits = |range: Range<usize>| {
            let text = source.text[range].trim();
            (self.counter.text(text) <= self.max_tokens).then(|| text.to_owned())
        };
        let text = fits(all)
            .or_else(|| fits(thing.clone()))
            .or_else(|| Some(within(&source.text[thing], self.max_tokens, self.counter, marks)?.0))?;
        Some(Quote { heading: source.role.name().to_owned(), is_named_later: false, text })
    }

    fn quote(&self, lost: &Lost<'_, '_>, asked: &str, terms: &Terms, max_tokens: Tokens) -> Option<Quote> {
        let &Lost { source: Source { role, call, text, .. }, ref parts, is_named_later, is_meant } = lost;
        let heading = match call {
            Some(ToolCall { name, arguments, .. }) => {
                ledger::call_line(string(name.as_ref()), string(arguments.as_ref()), None)
            }
            None => role.name().to_owned(),
        };
        let counter = self.counter;
        let max_tokens = if is_meant { max_tokens } else { max_tokens.min(PASSAGE_TOKENS * parts.len() as u64) };
        let marks = Marks { language: self.language, archive_path: None };
        let tokens = counter.text(text);
        if tokens <= max_tokens {
            return Some(Quote { heading, is_named_later, text: (*text).to_owned() });
        }
        let near = lost.excerpt(terms, max_tokens.as_f32() / tokens.as_f32(), marks);
        let cut = || Cut { text, max_tokens, counter, marks, question: Question { asked, arguments: "" } }.cached();
        let text = if counter.text(&near) <= max_tokens { near } else { cut()?.0 };
        Some(Quote { heading, is_named_later, text })
    }

    /// Returns the texts that have more of the terms than any passage of the request, and for each name that is asked for the best
    /// one.
    fn lost<'t, 's>(rating: &Rating<'t, 's, '_>, shown: Shown<'_>) -> Vec<Lost<'t, 's>> {
        let &Rating { sources, terms, .. } = rating;
        let mut lost = Found { sources, shown, terms, lost: Vec::new(), known: Vec::new() };
        let best = rating.best(u128::MAX);
        if rating.is_subject(&best) {
            return Vec::new();
        }
        lost.add(best.into_iter().take(MAX_PASSAGES), MAX_GROUPS);
        for about in rating.subjects() {
            let groups = lost.groups().len() + 1;
            lost.add(rating.best(about).into_iter().take(1), groups);
        }
        lost.add_newer(rating);
        lost.lost
    }
}

/// The passages that are found, as far as the request does not show them.
struct Found<'m, 't, 's> {
    sources: &'t [Source<'s>],
    shown: Shown<'m>,
    terms: &'m Terms,
    lost: Vec<Lost<'t, 's>>,
    /// Those that the request shows, so that it needs no others.
    known: Vec<(&'t Source<'s>, usize)>,
}

impl<'t, 's> Found<'_, 't, 's> {
    /// Adds passages, best first, of at most `max_groups` groups, up to one that the request shows.
    fn add(&mut self, mut passages: impl Iterator<Item = (&'t Source<'s>, usize)>, max_groups: usize) {
        while let Some((source, part)) = passages.next() {
            let is_shown = self.shown.has(source.message, source.passage(part))
                && source
                    .record(part, self.terms)
                    .is_none_or(|record| self.shown.has(source.message, &source.text[record]));
            let answers = source.answers(self.sources);
            let is_lost = |answer: &&Source<'_>| !self.shown.has(answer.message, answer.text.trim());
            let lost: Vec<&Source<'_>> = answers.iter().copied().filter(is_lost).collect();
            let groups = self.groups();
            let has_room = |group: usize| groups.len() < max_groups || groups.contains(&group);
            // The heading of its result says a short call.
            let is_short_call = source.is_arguments && source.text.len() <= SHORT_TEXT && lost.is_empty();
            if (is_shown || is_short_call && has_room(source.group)) && self.add_meant(source, part) {
                continue;
            }
            if is_shown && lost.is_empty() {
                // Who asks again does not say the answer.
                if source.asks(part) && answers.is_empty() {
                    continue;
                }
                self.known.push((source, part));
                if self.terms.is_question {
                    self.add_summed_up(source, passages);
                }
                break;
            }
            let found = Some(source).filter(|_| !is_shown || source.role == Role::User).into_iter().chain(lost);
            for source in found.filter(|source| has_room(source.group)) {
                // Of a short answer the part does not matter.
                let part = if source.found.iter().any(|(other, _)| *other == part) { part } else { 0 };
                match self.lost.iter_mut().find(|lost| std::ptr::eq(lost.source, source)) {
                    Some(known) if known.parts.contains(&part) => {}
                    Some(known) => known.parts.push(part),
                    None => self.lost.push(Lost::of(source, part)),
                }
            }
        }
    }

    /// Adds the result of which a passage has a whole name that is asked for, where the request has but some of it: that of a call, or
    /// one by its first line. Returns whether it does.
    fn add_meant(&mut self, source: &'t Source<'s>, part: usize) -> bool {
        let found = source.found.iter().find(|(other, _)| *other == part).map_or(0, |(_, found)| *found);
        let is_named = self.terms.names.iter().any(|name| found & name == *name);
        let Some(call) = source.call.filter(|_| is_named) else { return false };
        let is_result =
            |other: &&Source<'_>| !other.is_arguments && other.call.is_some_and(|of| std::ptr::eq(of, call));
        let result =
            if source.is_arguments { self.sources.iter().find(is_result) } else { Some(source).filter(|_| part == 0) };
        let Some(result) = result.filter(|result| !self.shown.has(result.message, result.text.trim())) else {
            return false;
        };
        let most = result.found.iter().max_by_key(|(part, found)| (found.count_ones(), Reverse(*part)));
        if !self.lost.iter().any(|lost| std::ptr::eq(lost.source, result)) {
            self.lost.push(Lost { is_meant: true, ..Lost::of(result, most.map_or(0, |(part, _)| *part)) });
        }
        true
    }

    /// Adds the best of the `passages` that a short message of the model sums up: it has the same words, and less to say.
    fn add_summed_up(&mut self, summary: &Source<'s>, mut passages: impl Iterator<Item = (&'t Source<'s>, usize)>) {
        let is_summary = summary.role == Role::Assistant && !summary.is_arguments && summary.text.len() <= SHORT_TEXT;
        let is_lost = |(source, part): &(&'t Source<'s>, usize)| {
            source.turn == summary.turn
                && source.message < summary.message
                && source.analysis.is_material()
                && !self.shown.has(source.message, source.passage(*part))
        };
        let found = passages.find(is_lost).filter(|_| is_summary);
        self.lost.extend(found.map(|(source, part)| Lost::of(source, part)));
    }

    /// Returns the groups that have some of them.
    fn groups(&self) -> BTreeSet<usize> {
        self.lost.iter().map(|lost| lost.source.group).collect()
    }

    /// Adds the newest passage about what an older one is about, and says of the older one that there is a newer. It is quoted
    /// again where the request shows it, for it would stand before the older one.
    fn add_newer(&mut self, rating: &Rating<'t, 's, '_>) {
        let (mut newer, mut again) = (Vec::new(), Vec::new());
        for lost in &mut self.lost {
            let newest = rating.newest_of(lost.source, lost.parts[0]);
            lost.is_named_later = newest.is_some();
            newer.extend(newest);
            again.extend(newest.filter(|(source, part)| self.shown.has(source.message, source.passage(*part))));
        }
        newer.extend(self.known.iter().filter_map(|&(source, part)| rating.newest_of(source, part)));
        for newest in newer {
            let groups = self.groups().len() + 1;
            self.add([newest].into_iter(), groups);
        }
        for (source, part) in again {
            let is_quoted = self.lost.iter().any(|lost| std::ptr::eq(lost.source, source));
            if !is_quoted && source.role == Role::User && source.text.len() <= SHORT_TEXT {
                self.lost.push(Lost::of(source, part));
            }
        }
    }
}

/// A text with passages that the request does not show.
struct Lost<'t, 's> {
    source: &'t Source<'s>,
    /// Their parts, best first.
    parts: Vec<usize>,
    /// Whether later messages have a passage about the same name.
    is_named_later: bool,
    /// Whether all of the text is asked for, rather than the passages.
    is_meant: bool,
}

impl<'t, 's> Lost<'t, 's> {
    fn of(source: &'t Source<'s>, part: usize) -> Self {
        // Its first line says what a result is about.
        Self { source, parts: vec![part], is_named_later: false, is_meant: source.role == Role::Tool && part == 0 }
    }
}

impl Lost<'_, '_> {
    /// Returns the passages with what stands around them, up to a `share` of the text: more of what follows, which says what they
    /// are about. Of a table also the first line, of a record all of it.
    fn excerpt(&self, terms: &Terms, share: f32, marks: Marks<'_>) -> String {
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
        for record in self.parts.iter().filter_map(|&part| self.source.record(part, terms)) {
            analysis.parts_in(&record).for_each(&mut keep);
        }
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
    /// The terms of each name, and of each other word with a capital inside a sentence.
    names: Vec<u128>,
    /// Those of names alone.
    weighty: u128,
    is_question: bool,
}

impl Terms {
    /// Returns the terms of a question, or of the names of another text; none if there are too many.
    fn of(text: &str, is_question: bool) -> Self {
        let mut terms: Vec<ShortTerm> = Vec::new();
        let mut add = |text: &str| {
            scan(text, |term, start| {
                let term = term.short();
                let digits = text[start..].bytes().take_while(u8::is_ascii_digit).count();
                // The 25 of 03:25 names nothing.
                let is_of_clock = text[..start].ends_with(':') || text[start + digits..].starts_with(':');
                let is_piece = term.kind() == TermKind::Part && (1..=MAX_PIECE_DIGITS).contains(&digits) && is_of_clock;
                // The stem of a long word is a term, too.
                let asks =
                    term.kind() != TermKind::LongWord && !asks_for_nothing(term) && !terms.contains(&term) && !is_piece;
                terms.extend(asks.then_some(term));
            });
        };
        if is_question {
            add(text);
        } else if text.len() <= TASK_BYTES {
            for name in names(text) {
                add(&text[name]);
            }
        }
        if terms.len() > MAX_TERMS {
            terms.clear();
        }
        let of = |name: &str| {
            let mut bits = 0;
            scan(name, |term, _| bits |= terms.iter().position(|other| *other == term.short()).map_or(0, |at| 1 << at));
            bits
        };
        let ranges = names(text);
        let mut names: Vec<u128> =
            ranges.iter().map(|name| of(&text[name.clone()])).chain(latin(text).map(of)).collect();
        let weighty = names.iter().fold(0, |all, name| all | name);
        names.extend(capitals_beside(text, &ranges).into_iter().map(|word| of(&text[word])));
        names.retain(|&bits| bits != 0);
        names.sort_unstable();
        names.dedup();
        let asked = Asked::of(terms.iter().copied());
        Self { terms, asked, names, weighty, is_question }
    }

    fn all_names(&self) -> u128 {
        self.names.iter().fold(0, |all, name| all | name)
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
                _ if self.weighty & 1 << bit != 0 => NAME,
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
    /// Number of messages of the user up to it.
    turn: usize,
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
    fn passage(&self, part: usize) -> &str {
        self.analysis.byte_ranges().nth(part).map_or("", |(_, range)| self.text[range].trim())
    }

    /// Returns the short record of a result, or of pasted data, that has the part's first term of these: its name alone says nothing.
    fn record(&self, part: usize, terms: &Terms) -> Option<Range<usize>> {
        let is_record = self.role == Role::Tool || self.analysis.is_material();
        let (_, range) = self.analysis.byte_ranges().nth(part).filter(|_| is_record)?;
        let mut at = None;
        scan(&self.text[range.clone()], |term, start| {
            at = at.or_else(|| terms.asked.contains(term.short()).then_some(range.start + start));
        });
        let record = segments::record(self.text, at?)?;
        let start = record.end - self.text[record.clone()].trim_start().len();
        Some(start..start + self.text[start..record.end].trim_end().len()).filter(|record| record.len() <= RECORD_BYTES)
    }

    /// Returns whether the user asks in a part.
    fn asks(&self, part: usize) -> bool {
        self.role == Role::User && self.passage(part).contains(['?', '？'])
    }

    /// Returns the short texts that answer this one, newest first: the result of a call's arguments, what the rest of its turn says to
    /// a short message of the user, and the results that a short message of the model sums up.
    fn answers<'t>(&self, sources: &'t [Self]) -> Vec<&'t Self> {
        let is_own_result =
            |other: &Self| matches!((self.call, other.call), (Some(call), Some(of)) if std::ptr::eq(call, of));
        let is_of_turn = |other: &Self| self.text.len() <= SHORT_TEXT && self.turn == other.turn;
        let is_answer = |other: &&Self| {
            !other.is_arguments
                && match (self.is_arguments, self.role) {
                    (true, _) => is_own_result(other),
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

/// Returns the texts of the messages with the terms that they have. O(terms).
fn sources<'v>(view: &'v [Message<'v>], terms: &Terms) -> Vec<Source<'v>> {
    let (mut sources, mut turn) = (Vec::new(), 0);
    for (group, range) in groups(view.iter().map(|message| message.role)).into_iter().enumerate() {
        let calls = &view[range.start].tool_calls;
        for (message, of) in (range.start..range.end).map(|message| (message, &view[message])) {
            if of.role == Role::System || is_note(of) {
                continue;
            }
            turn += usize::from(of.role == Role::User);
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
                sources.push(Source { turn, group, message, role: of.role, call, is_arguments, text, analysis, found });
            }
        }
    }
    sources
}

fn string<'v>(text: Option<&Text<'v>>) -> &'v str {
    text.map_or("", Text::as_str)
}

/// What each text has of what is asked for.
struct Rating<'t, 's, 'q> {
    sources: &'t [Source<'s>],
    terms: &'q Terms,
    by_group: Vec<u128>,
    weights: Vec<f32>,
    /// The terms that few groups have.
    rare: u128,
}

impl<'t, 's, 'q> Rating<'t, 's, 'q> {
    fn of(sources: &'t [Source<'s>], terms: &'q Terms) -> Self {
        let mut by_group = vec![0; sources.last().map_or(0, |source| source.group + 1)];
        for source in sources {
            by_group[source.group] |= source.found.iter().fold(0, |all, (_, found)| all | found);
        }
        let weights = terms.weights(&by_group);
        let having = |bit: u128| by_group.iter().filter(|found| **found & bit != 0).count();
        let bits = (0..terms.terms.len()).map(|bit| 1 << bit);
        let rare = bits.filter(|&bit| (1..=RARE).contains(&having(bit))).fold(0, |all, bit: u128| all | bit);
        Self { sources, terms, by_group, weights, rare }
    }

    fn weight(&self, found: u128) -> f32 {
        (0..self.weights.len()).filter(|bit| found & 1 << bit != 0).map(|bit| self.weights[bit]).sum()
    }

    /// Returns the parts that have most of the terms `about`: best first, then newest first.
    fn best(&self, about: u128) -> Vec<(&'t Source<'s>, usize)> {
        let mut rated: Vec<(f32, &Source<'_>, usize)> = Vec::new();
        for source in self.sources {
            let rate = |&(part, found): &(usize, u128)| {
                let nearby = self.weight(self.by_group[source.group] & about & !found);
                (self.weight(found & about) + NEARBY * nearby, source, part)
            };
            rated.extend(source.found.iter().map(rate));
        }
        // Equal ones stay in order.
        rated.reverse();
        rated.sort_by(|(one, ..), (other, ..)| other.total_cmp(one));
        let best = rated.first().map_or(0.0, |(weight, ..)| *weight);
        // A word in a script without spaces may be one pair of characters.
        let is_wide = self.terms.terms.iter().all(|term| term.kind() == TermKind::Pair);
        let rarely = Idf::of(self.by_group.len()).at(RARELY) * if is_wide { OF_PAIR } else { 1.0 };
        let least = (best * BESIDE_BEST).max(self.weight(about) * MIN_SHARE).max(rarely);
        rated.into_iter().take_while(|(weight, ..)| *weight >= least).map(|(_, source, part)| (source, part)).collect()
    }

    /// Returns whether the best passages are of so many groups that what they have is the subject of the conversation.
    fn is_subject(&self, best: &[(&Source<'s>, usize)]) -> bool {
        let Some(&(source, part)) = best.first() else { return false };
        let names = self.terms.all_names();
        let has_name =
            self.terms.is_question && source.found.iter().any(|(other, found)| *other == part && found & names != 0);
        let groups: BTreeSet<usize> = best.iter().map(|(source, _)| source.group).collect();
        // A longer text has names that it does not ask for, as the heading of what is pasted.
        let most = if self.terms.is_question { MAX_ABOUT } else { MAX_GROUPS };
        !has_name && groups.len() > most
    }

    /// Returns each of several names that are asked for, with the words that belong to none.
    fn subjects(&self) -> Vec<u128> {
        let names = &self.terms.names;
        let heaviest = names.iter().map(|&name| self.weight(name)).fold(0.0, f32::max);
        let words = !self.terms.all_names();
        let subjects: Vec<u128> = names
            .iter()
            .filter(|&&name| self.weight(name) > heaviest * LIKE_HEAVIEST)
            .map(|name| name | words)
            .take(MAX_SUBJECTS)
            .collect();
        if subjects.len() > 1 { subjects } else { Vec::new() }
    }

    /// Returns the newest part behind `source` with all names of its `part`, in a group with some of its other words; of what the
    /// user said also one of the user's with much of it, or with a rare word of it. Not where the user asks.
    fn newest_of(&self, source: &Source<'_>, part: usize) -> Option<(&'t Source<'s>, usize)> {
        let (_, has) = *source.found.iter().find(|(other, _)| *other == part)?;
        let names = has & self.terms.all_names();
        let words = has & !names;
        let is_named = |later: &Source<'_>, found: u128| {
            names != 0 && found & names == names && (words == 0 || self.by_group[later.group] & words != 0)
        };
        let much = self.weight(has) * MUCH;
        let is_said = |later: &Source<'_>, found: u128| {
            (source.role, later.role) == (Role::User, Role::User)
                && !later.analysis.is_material()
                && (found & has & self.rare != 0 || self.weight(found & has) >= much)
        };
        let of = |later: &'t Source<'s>| {
            let says = |&&(part, found): &&(usize, u128)| {
                (is_named(later, found) || is_said(later, found)) && !later.asks(part)
            };
            let is_later = later.group > source.group;
            later.found.iter().rev().filter(|_| is_later).find(says).map(|(part, _)| (later, *part))
        };
        self.sources.iter().rev().find_map(of)
    }
}

/// Share of what a passage has of the question that one about the same has.
const MUCH: f32 = 0.4;

/// A name is asked for apart from others if its weight is this share of the heaviest one's; and how many are.
const LIKE_HEAVIEST: f32 = 0.5;
const MAX_SUBJECTS: usize = 6;
