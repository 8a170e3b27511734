//! Finds the passages that have most of what a message asks for, where the request does not show them.

use std::cmp::Reverse;
use std::collections::BTreeSet;
use std::iter;
use std::ops::Range;

use crate::conversation::{request_index, said, spoken};
use crate::message::{Message, Role};
use crate::select::Asked;
use crate::select::within::{Cut, Question, within};
use crate::text::analysis::{Analysis, Form};
use crate::text::elision::{Marks, read_gap};
use crate::text::envelope::{heading, without_host_blocks};
use crate::text::estimate::count;
use crate::text::language::Language;
use crate::text::ledger::{self, Quote};
use crate::text::references::Reference;
use crate::text::sentences::sentences;
use crate::text::terms::ShortTerm;
use crate::tokens::{TokenCounter, Tokens};

use super::asked::{Asking, Terms};
use super::rating::Rating;
use super::shown::Shown;
use super::sources::{SHORT_TEXT, Source, add_codes, add_rows, add_signs, sources};
use crate::compress::compaction::Made;
use crate::compress::mentioned::{Other, mentioned};

/// Most passages that are looked at: what more have is the subject of the conversation.
const MAX_PASSAGES: usize = 32;

/// Groups that are quoted, as many as have so many tokens each: what is asked about a set stands in many messages.
const MIN_GROUPS: usize = 4;
const MAX_GROUPS: usize = 8;
const GROUP_TOKENS: u64 = 64;

/// Most tokens of a quote for each passage in it.
const PASSAGE_TOKENS: Tokens = Tokens(200);

/// Share of the quotes' room for what was said of names that are mentioned.
const MENTIONED_SHARE: f64 = 0.5;

/// A search in a conversation for what messages ask for.
pub(super) struct Search<'s> {
    view: &'s [Message<'s>],
    sources: Vec<Source<'s>>,
    shown: Shown<'s>,
    counter: TokenCounter,
}

/// How a message's quotes are written.
struct Quoting {
    max_tokens: Tokens,
    counter: TokenCounter,
    language: Language,
}

impl<'s> Search<'s> {
    /// Reads a conversation of which a step covers the messages before `at`; `made` is what it leaves of them. O(bytes).
    pub(super) fn new(view: &'s [Message<'s>], at: usize, made: &'s Made, counter: TokenCounter) -> Self {
        Self { view, sources: sources(view), shown: Shown::of(&view[..at], made), counter }
    }

    /// Returns a ledger that quotes what a message asks for, and what was said of others that it names, or the reply that it goes on
    /// from; `None` where that is nothing, or in the request. O(terms before it).
    pub(super) fn quotes(&mut self, message: usize, asking: &Asking, max_tokens: Tokens) -> Option<String> {
        let mut quotes = self.asked_for(message, asking, max_tokens);
        let mentioned = self.mentioned(message, quotes.is_empty(), max_tokens.share(MENTIONED_SHARE));
        quotes.extend(mentioned);
        (!quotes.is_empty()).then(|| ledger::quotes(&quotes, language(self.view, message)))
    }

    /// Quotes what a message asks for.
    fn asked_for(&mut self, message: usize, asking: &Asking, max_tokens: Tokens) -> Vec<Quote> {
        let &Asking { ref words, is_question, .. } = asking;
        let reference = Reference::of(words).filter(|_| is_question);
        let terms = Terms::of(asking);
        if terms.terms.is_empty() && reference.is_none() {
            return Vec::new();
        }
        // What answers a question of the model is looked for first in what was fetched for the request.
        let request = request_index(self.view, message);
        let of_request = Some(request).filter(|&request| is_question && request < message);
        let from = of_request.into_iter().chain([0]);
        let mut quotes =
            from.map(|from| self.quotes_from(from, message, asking, (&terms, reference.as_ref()), max_tokens));
        quotes.find(|quotes| !quotes.is_empty()).unwrap_or_default()
    }

    /// Quotes what was said of the names that a message mentions, or, where it `names_nothing`, of those in the reply before it.
    fn mentioned(&self, message: usize, names_nothing: bool, mut left: Tokens) -> Vec<Quote> {
        let at = self.sources.partition_point(|source| source.message <= message);
        if self.sources[..at].last().is_some_and(|of| of.message == message && of.analysis.is_material()) {
            return Vec::new();
        }
        let words = said(&self.view[message]);
        let words = without_host_blocks(&words);
        let before = self.sources.partition_point(|source| source.message < message);
        let others = self.sources[..before].iter().filter(|source| !source.is_arguments);
        let other = |key| {
            let &Source { message, role, text, ref analysis, .. } = key;
            Other { key, message, role, text, analysis }
        };
        let mut found = mentioned((message, &words), names_nothing, others.map(other).collect());
        found.retain(|(source, range)| !self.shown.has(source.message, source.text[range.clone()].trim()));
        found.sort_by_key(|(source, range)| (source.message, range.start));
        let of_one = |(one, _): &(&Source<'_>, _), (other, _): &(&Source<'_>, _)| one.message == other.message;
        let quote = |said: &[(&Source<'_>, Range<usize>)]| {
            let lines: Vec<&str> = said.iter().map(|(source, range)| source.text[range.clone()].trim()).collect();
            let (source, text) = (said[0].0, lines.join("\n"));
            let tokens = self.counter.text(&text);
            let is_few = tokens <= left;
            left -= if is_few { tokens } else { Tokens::ZERO };
            is_few.then(|| Quote { heading: source.heading(), is_named_later: false, text })
        };
        found.chunk_by(of_one).filter_map(quote).collect()
    }

    /// Quotes what the message asks for of those from `from`.
    fn quotes_from(
        &mut self,
        from: usize,
        message: usize,
        asking: &Asking,
        (terms, reference): (&Terms, Option<&Reference>),
        max_tokens: Tokens,
    ) -> Vec<Quote> {
        let from = self.sources.partition_point(|source| source.message < from);
        let (before, view) = (self.sources.partition_point(|source| source.message < message), self.view);
        let sources = &mut self.sources[from..before];
        for source in &mut *sources {
            source.find(terms);
        }
        if terms.is_question {
            add_codes(sources, terms, &asking.words);
            add_signs(sources, terms);
            add_rows(sources, terms);
        }
        let rating = Rating::of(sources, terms);
        // Most messages ask for nothing that is lost: then nobody needs the language.
        let quoting = || Quoting { max_tokens, counter: self.counter, language: language(view, message) };
        let meant = reference.and_then(|reference| reference.first_found(|reference| pointed_to(reference, &rating)));
        let pointed_to = meant.and_then(|meant| quoting().pointed_to(meant, &self.shown));
        let mut quotes = Vec::from_iter(pointed_to);
        // Beside a name, its other words say what is pointed to.
        if quotes.is_empty() || !terms.names.is_empty() {
            let of_set = ((max_tokens.0 / GROUP_TOKENS) as usize).clamp(MIN_GROUPS, MAX_GROUPS);
            let mut lost = lost(&rating, &self.shown, if terms.asks { of_set } else { MIN_GROUPS });
            lost.sort_by_key(|lost| (lost.source.message, !lost.source.is_arguments));
            let shares = quotes.len() as u64 + lost.iter().map(Lost::shares).sum::<u64>();
            let share = max_tokens / shares.max(1);
            if !lost.is_empty() {
                let (quoting, asked) = (quoting(), asking.with_days());
                let quote = |lost| quoting.quote(lost, &asked, &rating, share * lost.shares());
                quotes.extend(lost.iter().filter_map(quote));
            }
        }
        quotes
    }
}

impl Quoting {
    /// Quotes what a question points to; `None` where the request shows it.
    fn pointed_to(&self, (source, thing, all): Meant<'_, '_>, shown: &Shown<'_>) -> Option<Quote> {
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

    fn quote(
        &self,
        lost: &Lost<'_, '_>,
        asked: &str,
        rating: &Rating<'_, '_, '_>,
        max_tokens: Tokens,
    ) -> Option<Quote> {
        let &Lost { source, ref parts, is_named_later, is_meant, .. } = lost;
        let (heading, text) = (source.heading(), source.text);
        let counter = self.counter;
        let tokens = counter.text(text);
        let max_tokens = if is_meant || lost.defines() {
            max_tokens
        } else {
            let needed = tokens.share(lost.needs(rating)) + MARK_TOKENS;
            max_tokens.min(needed.max(PASSAGE_TOKENS * parts.len() as u64))
        };
        let marks = Marks { language: self.language, archive_path: None };
        if tokens <= max_tokens {
            return Some(Quote { heading, is_named_later, text: text.to_owned() });
        }
        let share = max_tokens.as_f32() / tokens.as_f32();
        let cut = || Cut { text, max_tokens, counter, marks, question: Question { asked, arguments: "" } }.cached();
        let fits = |text: &String| says_something(text) && counter.text(text) <= max_tokens;
        // Addresses have more tokens than their bytes promise.
        let near = || SHARES.into_iter().map(|of| lost.excerpt(rating, of * share, marks)).find(fits);
        let by_sentence = || lost.sentences(rating, share, marks).filter(fits);
        // Of a result that is asked for as a whole no part is the middle.
        let whole = || if lost.is_whole { Some(cut()?.0).filter(|text| says_something(text)) } else { None };
        let text = whole().or_else(near).or_else(by_sentence).or_else(|| Some(cut()?.0))?;
        Some(Quote { heading, is_named_later, text })
    }
}

/// Returns the language of the user before a message.
fn language(view: &[Message<'_>], message: usize) -> Language {
    spoken(&view[..message], Role::User).unwrap_or_default()
}

/// The text that a question points to, with the thing in it and all that belongs to that.
type Meant<'t, 's> = (&'t Source<'s>, Range<usize>, Range<usize>);

/// Returns what a question points to, by its place or form, in the reply with most of its rare terms, else the newest.
fn pointed_to<'t, 's>(reference: &Reference, rating: &Rating<'t, 's, '_>) -> Option<Meant<'t, 's>> {
    let named = |source: &Source<'_>| (source.has() & rating.rare).count_ones();
    let is_said = |source: &&Source<'_>| {
        !source.is_arguments
            && (source.role == Role::Assistant || reference.names_section() && source.role == Role::User)
    };
    let meant = rating.sources.iter().rev().filter(is_said).filter_map(|source| {
        let ranges = reference.find(source.text);
        Some((source, ranges.first()?.clone(), ranges.last()?.clone()))
    });
    // Of equal ones the first, which is the newest.
    meant.min_by_key(|(source, ..)| Reverse(named(source)))
}

/// Returns the texts that have more of the terms than any passage of the request, and for each name that is asked for the best
/// one.
fn lost<'t, 's>(rating: &Rating<'t, 's, '_>, shown: &Shown<'_>, max_groups: usize) -> Vec<Lost<'t, 's>> {
    let &Rating { sources, terms, .. } = rating;
    let best = rating.best(u128::MAX);
    let is_set = Rating::groups(&best) > MIN_GROUPS;
    let (rare, is_new) = (rating.rare, rating.is_new());
    let mut lost = Found { sources, shown, terms, rare, is_set, is_new, lost: Vec::new(), known: Vec::new() };
    if rating.is_subject(&best) {
        return Vec::new();
    }
    lost.add(of_named(rating, best).into_iter().take(MAX_PASSAGES), max_groups);
    for about in rating.subjects().into_iter().chain(terms.questions.iter().copied()) {
        let groups = lost.groups().len() + 1;
        lost.add(rating.best(about).into_iter().take(1), groups);
    }
    lost.add_newer(rating);
    lost.lost
}

/// Returns the passages without those in results that have none of the names, where the best one is in a result that has some: the same
/// section of another document answers nothing.
fn of_named<'t, 's>(
    rating: &Rating<'t, 's, '_>,
    mut best: Vec<(&'t Source<'s>, usize)>,
) -> Vec<(&'t Source<'s>, usize)> {
    let names = rating.terms.all_names();
    let is_result = |source: &Source<'_>| source.role == Role::Tool;
    let is_named = |source: &Source<'_>| rating.of_group(source) & names != 0;
    if best.first().is_some_and(|(source, _)| is_result(source) && is_named(source)) {
        best.retain(|(source, _)| !is_result(source) || is_named(source));
    }
    best
}

/// The passages that are found, as far as the request does not show them.
struct Found<'m, 't, 's> {
    sources: &'t [Source<'s>],
    shown: &'m Shown<'m>,
    terms: &'m Terms,
    /// Those that hardly any message has.
    rare: u128,
    /// Whether so many messages have what is asked for that they are a set, of which none needs its answer: with answers .28 and .45 of
    /// eight items stand behind a step at 12 and 25 % of the tokens in place of .50 and .85.
    is_set: bool,
    /// Whether it is about something new, so that no result as a whole is meant.
    is_new: bool,
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
                    .is_none_or(|record| self.shown.has(source.message, &source.text[record]))
                && self.shows_other_words(source, part);
            let answers = if self.is_set { Vec::new() } else { source.answers(self.sources) };
            let is_lost = |answer: &&Source<'_>| {
                !answer.text.trim().is_empty() && !self.shown.has(answer.message, answer.text.trim())
            };
            let lost: Vec<&Source<'_>> = answers.iter().copied().filter(is_lost).collect();
            let groups = self.groups();
            let has_room = |group: usize| groups.len() < max_groups || groups.contains(&group);
            // The heading of its result says a short call.
            let is_short_call = source.is_arguments && source.text.len() <= SHORT_TEXT && lost.is_empty();
            if (is_shown || is_short_call && has_room(source.group)) && self.add_meant(source, part) {
                continue;
            }
            if is_shown && lost.is_empty() {
                // Who asks again does not say the answer, and of rows that are meant each counts.
                if source.asks(part) && answers.is_empty() || source.rows.contains(&part) {
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
                let part = if source.found_in(part) == 0 { 0 } else { part };
                match self.lost.iter_mut().find(|lost| std::ptr::eq(lost.source, source)) {
                    Some(known) if known.parts.contains(&part) => {}
                    Some(known) => known.parts.push(part),
                    None => {
                        let found = source.found_in(part);
                        // Its first line says what a result is about, and so does a name.
                        let is_name = part == 0 || found & !self.terms.all_names() == 0;
                        let is_meant = !self.is_new && source.role == Role::Tool && (is_name || self.is_called(source));
                        self.lost.push(if is_meant {
                            Lost::meant(source, part, found)
                        } else {
                            Lost::of(source, part)
                        });
                    }
                }
            }
        }
    }

    /// Returns whether the request shows the members of a result in JSON that have other words of the question than `part`, as far as
    /// these are few: each is looked for in all of the message.
    fn shows_other_words(&self, source: &Source<'_>, part: usize) -> bool {
        let mut has = source.found_in(part);
        for (other, found) in source.members().filter(|(other, _)| *other != part).take(MAX_MEMBERS) {
            if found & !has != 0 {
                if !self.shown.has(source.message, source.passage(other)) {
                    return false;
                }
                has |= found;
            }
        }
        true
    }

    /// Adds the result of which a passage has a whole name that is asked for, or several words of a question, a rare one among them, where
    /// the request has but some of it: that of a call, or one by its first line. Returns whether it does.
    fn add_meant(&mut self, source: &'t Source<'s>, part: usize) -> bool {
        if self.is_new {
            return false;
        }
        let found = source.found_in(part);
        let is_named = self.terms.names.iter().any(|name| found & name == *name);
        let is_about =
            self.terms.is_question && found.count_ones() >= SEVERAL && found & self.rare != 0 && self.lost.is_empty();
        if is_about && source.role == Role::User {
            return self.add_fetched(source, found);
        }
        if source.call.is_none() || !(is_named || is_about) {
            return false;
        }
        let is_result = |other: &&Source<'_>| !other.is_arguments && source.shares_call(other);
        let result =
            if source.is_arguments { self.sources.iter().find(is_result) } else { Some(source).filter(|_| part == 0) };
        let Some(result) = result.filter(|result| !self.shown.has(result.message, result.text.trim())) else {
            return false;
        };
        if !self.lost.iter().any(|lost| std::ptr::eq(lost.source, result)) {
            self.lost.push(Lost::meant(result, 0, found));
        }
        true
    }

    /// Returns whether the call of a result has something of a question that hardly any other call has: `city=Porto`.
    fn is_called(&self, result: &Source<'s>) -> bool {
        let calls = || self.sources.iter().filter(|other| other.is_arguments);
        let named = calls().find(|other| result.shares_call(other)).map_or(0, Source::has);
        self.terms.is_question
            && named != 0
            && calls().filter(|other| other.has() & named == named).take(MOST_FETCHED + 1).count() <= MOST_FETCHED
    }

    /// Adds the result that a short request of the user's was answered with, where the calls for it are one or two. Returns whether it does.
    fn add_fetched(&mut self, request: &Source<'s>, found: u128) -> bool {
        let is_of_turn = |other: &&Source<'_>| other.turn == request.turn && other.message > request.message;
        let is_result = |other: &&Source<'_>| other.role == Role::Tool && !other.is_arguments;
        let results: Vec<&'t Source<'s>> =
            self.sources.iter().filter(|other| is_of_turn(other) && is_result(other)).collect();
        if request.text.len() > SHORT_TEXT || results.len() > MOST_FETCHED {
            return false;
        }
        let shown = self.shown;
        let lost = results.into_iter().filter(|result| !shown.has(result.message, result.text.trim()));
        let before = self.lost.len();
        self.lost.extend(lost.map(|result| Lost::meant(result, 0, found)));
        self.lost.len() > before
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
        let found = self.lost.iter().map(|lost| (lost.source, lost.parts[0])).chain(self.known.iter().copied());
        for (source, part, follows) in rating.followers(&found.collect::<Vec<_>>()) {
            let is_known = self.lost.iter().any(|lost| std::ptr::eq(lost.source, source));
            if !is_known && !self.shown.has(source.message, source.passage(part)) {
                self.lost.push(Lost { follows: Some(follows), ..Lost::of(source, part) });
            }
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
    /// Whether all of the text is asked for, rather than the passages; and by nothing that a part of it has.
    is_meant: bool,
    is_whole: bool,
    /// The terms of what it follows, if it has none of the question's.
    follows: Option<Asked>,
}

impl<'t, 's> Lost<'t, 's> {
    fn of(source: &'t Source<'s>, part: usize) -> Self {
        Self { source, parts: vec![part], is_named_later: false, is_meant: false, is_whole: false, follows: None }
    }

    /// Returns a result whose call, first line or `part` has what is `named`: that part, which may say all, and those with most of what
    /// else is asked for.
    fn meant(source: &'t Source<'s>, part: usize, named: u128) -> Self {
        if !source.rows.is_empty() {
            return Self { parts: source.rows.clone(), is_meant: true, ..Self::of(source, 0) };
        }
        let others = |found: u128| (found & !named).count_ones();
        let most = source.found.iter().map(|(_, found)| others(*found)).max().unwrap_or_default();
        let mut parts = Vec::from_iter((part > 0).then_some(part));
        if most > 0 {
            let having = source.found.iter().filter(|(_, found)| others(*found) == most);
            let mut having: Vec<usize> = having.map(|(part, _)| *part).collect();
            if part > 0 {
                // Each record has such a member: that of the one with the name is next to it.
                having.sort_by_key(|other| other.abs_diff(part));
            }
            parts.extend(having.into_iter().take(MAX_MEANT));
        } else if parts.is_empty() {
            let most = source.found.iter().max_by_key(|(part, found)| (found.count_ones(), Reverse(*part)));
            parts.push(most.map_or(0, |(part, _)| *part));
        }
        Self { parts, is_meant: true, is_whole: most == 0, ..Self::of(source, 0) }
    }
}

impl Lost<'_, '_> {
    fn defines(&self) -> bool {
        self.parts.iter().any(|&part| self.source.defines(part))
    }

    /// Returns the share of the text that its best passage needs, or the record of that: of a list of wide records each is one.
    fn needs(&self, rating: &Rating<'_, '_, '_>) -> f64 {
        let Source { text, analysis, .. } = self.source;
        let best = self.parts.first();
        let record = best.and_then(|&part| self.source.record(part, rating.terms)).map_or(0, |record| record.len());
        // An empty text has no part.
        let part = best.and_then(|&part| analysis.parts.get(part)).map_or(0, |part| part.bytes as usize);
        f64::from(count(record.max(part) + PARENT_BYTES) / (FILLED * count(text.len().max(1))))
    }

    /// Returns how many shares of the room it has.
    fn shares(&self) -> u64 {
        if self.defines() { FUNCTION_SHARES } else { 1 }
    }

    /// Returns the sentences of what somebody said that have most of the question, up to a `share` of it, with what says before them who
    /// speaks: a passage may be all of a message. `None` of what was not said. Of five questions about two things each 34 and 37 of 40
    /// sentences stand behind a step at 6 and 12 % of the tokens, without this 22 and 23, and 26 of 404 quotes are but a mark.
    fn sentences(&self, rating: &Rating<'_, '_, '_>, share: f32, marks: Marks<'_>) -> Option<String> {
        let Source { text, role, is_arguments, ref analysis, .. } = *self.source;
        if role == Role::Tool || is_arguments || analysis.is_material() {
            return None;
        }
        let starts: Vec<usize> = sentences(text).map(|sentence| sentence.start).filter(|&start| start > 0).collect();
        let heading = if role == Role::User { heading(text) } else { 0 };
        let analysis = Analysis::cut_at(text, Form::Stated, &starts, heading);
        let follows = |term: &&ShortTerm| self.follows.as_ref().is_some_and(|follows| follows.contains(**term));
        let weigh = |range: Range<usize>| {
            let terms = &analysis.terms[range];
            rating.weight(rating.terms.found(terms)) + count(terms.iter().filter(follows).count())
        };
        let weights = analysis.ranges().map(|(_, range)| weigh(range));
        let mut having: Vec<(f32, usize)> = weights.zip(0..).filter(|(weight, _)| *weight > 0.0).collect();
        having.sort_by(|(one, _), (other, _)| other.total_cmp(one));
        let mut left = count(text.len()) * share * FILLED;
        let fits = |&(_, part): &(f32, usize)| {
            left -= count(analysis.parts[part].bytes as usize);
            left >= 0.0
        };
        let kept: Vec<usize> = having.into_iter().take_while(fits).map(|(_, part)| part).collect();
        let excerpt = || analysis.excerpt(text, &|part| analysis.parts[part].is_fixed || kept.contains(&part), marks);
        (!kept.is_empty()).then(excerpt)
    }

    /// Returns the parts of a result in JSON that have other words of the question than `part`, those with most first: whose it is stands
    /// in one member, and what is asked for in another.
    fn with_other_words(&self, rating: &Rating<'_, '_, '_>, part: usize) -> Vec<usize> {
        let (mut having, mut has) = (Vec::new(), self.source.found_in(part));
        let parts: Vec<(usize, u128)> = self.source.members().collect();
        let for_bytes = |has: u128, &(part, found): &(usize, u128)| {
            rating.weight(found & !has) / (MEMBER_BYTES + count(self.source.analysis.parts[part].bytes as usize))
        };
        while let Some(&(part, found)) =
            parts.iter().max_by(|one, other| for_bytes(has, one).total_cmp(&for_bytes(has, other)))
            && found & !has != 0
        {
            has |= found;
            having.push(part);
        }
        having
    }

    /// Returns the passages with what stands around them, up to a `share` of the text: more of what follows, which says what they
    /// are about. Of a record all of it.
    fn excerpt(&self, rating: &Rating<'_, '_, '_>, share: f32, marks: Marks<'_>) -> String {
        let Source { text, analysis, .. } = self.source;
        let parts = &analysis.parts;
        let mut left = count(text.len()) * share * FILLED;
        let mut keeps = vec![false; parts.len()];
        let near = self.parts.first().into_iter().flat_map(|&best| {
            let other_words = self.with_other_words(rating, best).into_iter();
            iter::once(best).chain(other_words).chain((best..parts.len()).take(FOLLOWING))
        });
        let records = self.parts.iter().filter_map(|&part| self.source.record(part, rating.terms));
        let around = AROUND.into_iter().flat_map(|(before, behind)| {
            let beside = move |&part: &usize| [part.checked_sub(before).filter(|_| before > 0), Some(part + behind)];
            self.parts.iter().flat_map(beside).flatten().filter(|&at| at < parts.len())
        });
        let wanted = near
            .chain(self.parts.iter().copied())
            .chain(records.flat_map(|record| analysis.parts_in(&record).collect::<Vec<_>>()))
            .chain(around)
            .chain((0..parts.len()).filter(|_| self.is_meant));
        for (nth, part) in wanted.enumerate() {
            // With what it stands under.
            let with_parents = iter::successors(Some(part), |&part| analysis.parent(part));
            let new: Vec<usize> = with_parents.take_while(|&part| !keeps[part]).collect();
            let bytes = count(new.iter().map(|&part| parts[part].bytes as usize).sum());
            if bytes <= left {
                for part in new {
                    keeps[part] = true;
                }
                left -= bytes;
            } else if nth == 0 {
                // What stands around the best one says nothing of it.
                return String::new();
            }
        }
        analysis.excerpt(text, &|part| keeps[part], marks)
    }
}

/// Words of a question that tell a result as a name does: "Book the cheapest hotel near the fair."
const SEVERAL: u32 = 2;

/// Most results of a request that is asked about, and most calls with what names the result of one.
const MOST_FETCHED: usize = 2;

/// Most parts of a result that its call names.
const MAX_MEANT: usize = 3;

/// Returns whether a quote has more than marks.
fn says_something(quote: &str) -> bool {
    // In JSON marks are members and rows.
    let lines = quote.lines().map(|line| line.trim_matches([' ', ',', '{', '}']));
    lines
        .filter(|line| !matches!(*line, "" | "[" | "]"))
        .any(|line| !line.starts_with("\"…") && read_gap(line).is_none())
}

/// Shares of the room for a function that is asked for.
const FUNCTION_SHARES: u64 = 3;

/// Most members that are looked for.
const MAX_MEMBERS: usize = 64;

/// Bytes that any member costs beside its own.
const MEMBER_BYTES: f32 = 40.0;

/// Parts that come first: the best one, and what stands below it.
const FOLLOWING: usize = 3;
/// Then those so many before and behind each, the nearest first.
const AROUND: [(usize, usize); 8] = [(0, 1), (0, 2), (1, 3), (2, 4), (3, 5), (4, 6), (5, 7), (6, 8)];
/// Shares of the room that are tried.
const SHARES: [f32; 3] = [1.0, 0.6, 0.35];

/// Bytes of what a passage stands under, and tokens of the marks around it.
const PARENT_BYTES: usize = 64;
const MARK_TOKENS: Tokens = Tokens(64);

/// Share of its room that a quote fills: the rest is for marks, and for parts of more tokens than others.
const FILLED: f32 = 0.8;
