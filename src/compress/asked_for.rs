//! Finds the parts of a conversation that answer the last message of the user: those that have its rare terms, or what it points to;
//! and those that the model is about to take.

use std::borrow::Cow;
use std::collections::{BTreeSet, HashMap, HashSet};
use std::iter;
use std::ops::Range;

use jiff::civil::Date;

use crate::message::{Role, Text};
use crate::select::Asked;
use crate::select::scoring::{Author, Document, Idf};
use crate::text::analysis::{Analysis, Form};
use crate::text::codes::{codes, parts_with, parts_with_sign, signs};
use crate::text::envelope::blank_host_notes;
use crate::text::references::{Reference, RowReference};
use crate::text::rules::normal;
use crate::text::segments::{self, Kind};
use crate::text::sentences::{QUESTION_BYTES, questions, sentences};
use crate::text::stop_words::names_one;
use crate::text::terms::{ShortTerm, is_han, scan};
use crate::tools::refers_back;

use super::days::days_meant_by;
use super::documents::{Documents, Place, SHORT_TOKENS, WHOLE_TOKENS, analysed, cuts};
use super::draft::{Draft, Slot};
use super::mentioned::{Other, mentioned};
use super::protection::Protection;
use super::recall::RECORD_BYTES;
use super::rows_meant::{Listed, rows_meant};
use super::said::LITTLE;
use super::superseded::referred_to;

/// Most messages with a term for it to be asked for, the question among them.
const RARELY: usize = 3;

/// In a short conversation, at most one of so many messages.
const OF_MESSAGES: usize = 4;

/// A request with more such terms is a task, not a question.
const MOST_TERMS: usize = 16;

/// Most results of which all is asked for, and most documents between a call and its result.
const MOST_MEANT: usize = 2;
const MOST_BETWEEN: usize = 64;

/// Most parts that are likely to answer it.
const MOST_LIKELY: usize = 2;

/// A message with more questions is a task.
const MOST_QUESTIONS: usize = 4;

/// Most results of the last round that refer back to earlier ones: more are a loop.
const MOST_REFERRING: usize = 8;

/// A term in more parts is the subject of the conversation; a day may have more entries.
const MOST_PARTS: usize = 4;
const MOST_OF_DAY: usize = 12;

impl Documents {
    /// Finds the parts that have what the message `question` asks for by name, and what it points to by place or form. `cuts_of` has
    /// the cuts of each document. O(terms), and O(bytes) of the texts with such a term, or of all replies.
    pub(super) fn find_asked_for(&mut self, draft: &Draft<'_, '_>, question: usize, cuts_of: &mut [Vec<usize>]) {
        let having = self.messages_with(&Asked::of(self.terms_said(question)));
        let rare = rare_of(&having, draft.entries.len());
        let asked = Asked::of(rare.iter().copied());
        let pointed_to = self.find_pointed_to(draft, question, &asked);
        if let Some((document, ranges)) = &pointed_to {
            self.cut(draft, *document, ranges.iter().cloned(), &mut cuts_of[*document]);
        }
        for rare in apart(draft, question, rare, &asked) {
            self.find_named(draft, question, &rare, MOST_PARTS, Some(cuts_of));
        }
        let days = draft.entries[question].index().and_then(|index| days_meant_by(draft.view, index));
        let others = (self.asked_for.len(), self.asked_whole.len());
        for day in days.unwrap_or_default() {
            self.find_day(draft, question, day, cuts_of);
        }
        let has_day = others != (self.asked_for.len(), self.asked_whole.len());
        self.find_codes(draft, question);
        if self.asked_for.is_empty() {
            self.find_characters(draft, question);
        }
        let names_nothing = self.asked_for.is_empty() && pointed_to.is_none();
        self.find_mentioned(draft, question, names_nothing, cuts_of);
        self.find_likely(draft.entries.len(), question, having);
        self.find_signs(draft, question);
        self.find_followed(draft, question, cuts_of);
        self.find_rows(draft, question, has_day);
        if let Some((document, ranges)) = pointed_to
            && let Some(block) = self.places[document].block
        {
            let analysis = &self.documents[document].analysis;
            let parts = ranges.iter().flat_map(|range| analysis.parts_in(range));
            self.asked_for.splice(..0, parts.map(|part| (block, part)));
        }
    }

    /// Finds the parts of results and calls that the model names in the message `announcing`: "Now I change `total` in agg.py." Costs
    /// what [`Self::find_asked_for`] does.
    pub(super) fn find_announced(&mut self, draft: &Draft<'_, '_>, announcing: usize) {
        let having = self.messages_with(&Asked::of(self.terms_said(announcing)));
        let rare = rare_of(&having, draft.entries.len());
        self.find_named(draft, announcing, &rare, MOST_PARTS, None);
    }

    /// Puts the results first that the newest of the last round only refer back to: "File unchanged since last read". O(messages).
    pub(super) fn find_referred_to(&mut self, draft: &Draft<'_, '_>, protection: &Protection) {
        let result = |entry: usize| Some((entry, draft.call(entry)?, draft.message(entry)?.texts().next()?));
        let is_result = |entry: &usize| draft.is_result(*entry) && draft.entries[*entry].dropped.is_none();
        let last = protection.last_user.map_or(0, |last| last + 1)..draft.entries.len();
        let newest = last.rev().filter(is_result).filter_map(result).filter(|(.., says)| refers_back(says));
        for (entry, call, _) in newest.take(MOST_REFERRING) {
            let earlier = (0..entry).rev().filter(is_result).filter_map(result);
            let Some(meant) = referred_to(call, earlier) else { continue };
            match self.places.iter().find(|place| place.entry == meant).map(|place| place.block) {
                Some(Some(block)) => {
                    let document = self.blocks[block].document;
                    let parts = document.map_or(0, |document| self.documents[document].analysis.parts.len());
                    self.asked_for.splice(..0, (0..parts).map(|part| (block, part)));
                }
                Some(None) => self.asked_whole.insert(0, meant),
                None => {}
            }
        }
    }

    /// Finds the reply that has what the question points to, that with most of its rare terms, else the newest; and where in it.
    fn find_pointed_to(
        &self,
        draft: &Draft<'_, '_>,
        question: usize,
        asked: &Asked,
    ) -> Option<(usize, Vec<Range<usize>>)> {
        let reference = words_of(draft, question).find_map(|words| Reference::of(&words))?;
        let meant = reference.first_found(|reference| self.find_meant(draft, question, asked, reference));
        meant.filter(|(document, _)| !self.documents[*document].stays)
    }

    /// Finds the reply with most of the rare terms that has what is meant; a section may be the user's, too.
    fn find_meant(
        &self,
        draft: &Draft<'_, '_>,
        question: usize,
        asked: &Asked,
        reference: &Reference,
    ) -> Option<(usize, Vec<Range<usize>>)> {
        let mut best = None;
        for (document, place) in self.places.iter().enumerate().rev() {
            let of = &self.documents[document];
            let may_be = of.author == Author::Assistant || reference.names_section() && of.author == Author::User;
            if !may_be || of.message >= question {
                continue;
            }
            let named = of.analysis.terms.iter().filter(|&&term| asked.contains(term)).count();
            if best.as_ref().is_some_and(|(most, _)| named <= *most) {
                continue;
            }
            let ranges = reference.find(draft.text(place.entry, place.piece));
            if !ranges.is_empty() {
                best = Some((named, (document, ranges)));
            }
        }
        best.map(|(_, found)| found)
    }

    /// Cuts a document around some ranges, unless it is short.
    fn cut(
        &mut self,
        draft: &Draft<'_, '_>,
        document: usize,
        ranges: impl Iterator<Item = Range<usize>>,
        known: &mut Vec<usize>,
    ) {
        let Place { entry, piece, block } = self.places[document];
        let tokens = draft.entries[entry].pieces[piece].tokens;
        let Some(block) = block.filter(|_| tokens > SHORT_TOKENS) else { return };
        let text = draft.text(entry, piece);
        known.extend(cuts(text, ranges));
        known.sort_unstable();
        known.dedup();
        let of = &mut self.documents[document];
        of.analysis = analysed(text, of.author, Form::Stated, known);
        self.blocks[block].is_bundle |= tokens <= WHOLE_TOKENS;
    }

    /// Finds what was said of the names that stand in the message, or, where it `names_nothing`, of those in the reply before it.
    fn find_mentioned(
        &mut self,
        draft: &Draft<'_, '_>,
        question: usize,
        names_nothing: bool,
        cuts_of: &mut [Vec<usize>],
    ) {
        let is_pasted = |of: &Document| of.message == question && of.analysis.is_material();
        if self.documents.iter().rev().take_while(|of| of.message >= question).any(is_pasted) {
            return;
        }
        let message: Vec<_> = words_of(draft, question).collect();
        let message = message.join("\n");
        let other = |key: usize| {
            let (of, place) = (&self.documents[key], self.places[key]);
            let role = match of.author {
                Author::User => Role::User,
                Author::Assistant => Role::Assistant,
                Author::Result => Role::Tool,
                Author::Call | Author::System => return None,
            };
            let text = draft.text(place.entry, place.piece);
            let other = Other { key, message: of.message, role, text, analysis: &of.analysis };
            Some(other).filter(|other| other.message != question)
        };
        let found =
            mentioned((question, &message), names_nothing, (0..self.documents.len()).filter_map(other).collect());
        for (document, range) in &found {
            // Parts of a text that is cut anew have other numbers.
            let is_known = self.asked_for.iter().any(|(block, _)| Some(*block) == self.places[*document].block);
            if self.documents[*document].author != Author::Result && !is_known {
                self.cut(draft, *document, iter::once(range.clone()), &mut cuts_of[*document]);
            }
        }
        for (document, range) in found {
            let Some(block) = self.places[document].block else { continue };
            self.asked_for.extend(self.documents[document].analysis.parts_in(&range).map(|part| (block, part)));
        }
    }

    /// Finds the parts that have at least half of the `rare` terms of the question; with `cuts_of` in what is said, too, which is cut
    /// around its sentences. Of a result that its call or its first line names, those with the other terms: `total` in agg.py. Of short
    /// results, which have no parts, the groups. No parts where more than `most_parts` have them.
    fn find_named(
        &mut self,
        draft: &Draft<'_, '_>,
        question: usize,
        rare: &[ShortTerm],
        most_parts: usize,
        mut cuts_of: Option<&mut [Vec<usize>]>,
    ) {
        if !(1..=MOST_TERMS).contains(&rare.len()) {
            return;
        }
        let asked = &Asked::of(rare.iter().copied());
        let (mut found, mut rows, mut meant, mut whole) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
        let has = |terms: &[ShortTerm]| most_of(rare, terms);
        for document in 0..self.documents.len() {
            let of = &self.documents[document];
            let naming = match of.author {
                Author::Call => Some(&*of.analysis.terms),
                Author::Result => of.analysis.ranges().next().map(|(_, range)| &of.analysis.terms[range]),
                _ => None,
            };
            if let Some(terms) = naming.filter(|terms| has(terms).is_some()) {
                let result = if of.author == Author::Call { self.result_of(draft, document) } else { Some(document) };
                let others: Vec<ShortTerm> = rare.iter().copied().filter(|term| !terms.contains(term)).collect();
                meant.extend(result.map(|result| (result, others)));
            }
            let author = of.author;
            let is_said = matches!(author, Author::User | Author::Assistant);
            if author == Author::User && of.message < question && cuts_of.is_some() && has(&of.analysis.terms).is_some()
            {
                meant.extend(self.result_for(draft, document).map(|result| (result, Vec::new())));
            }
            if of.stays || of.message == question {
                continue;
            }
            let Some(block) = self.places[document].block else {
                let is_found = of.author == Author::Result && has(&of.analysis.terms).is_some();
                whole.extend(is_found.then_some(document));
                continue;
            };
            let may_answer = match author {
                Author::User | Author::Assistant => cuts_of.is_some(),
                Author::Call | Author::Result => true,
                Author::System => false,
            };
            if !may_answer || !of.analysis.terms.iter().any(|&term| asked.contains(term)) {
                continue;
            }
            let Place { entry, piece, .. } = self.places[document];
            if let Some(cuts_of) = &mut cuts_of
                && is_said
                && draft.entries[entry].pieces[piece].tokens > SHORT_TOKENS
            {
                let Some(having) = sentences_with(draft.text(entry, piece), asked) else { return };
                self.cut(draft, document, having.into_iter(), &mut cuts_of[document]);
            }
            let analysis = &self.documents[document].analysis;
            let is_printed = author == Author::Result && !matches!(analysis.kind(), Some(Kind::Plain | Kind::Code));
            let found = if is_printed { &mut rows } else { &mut found };
            for (part, (_, range)) in analysis.ranges().enumerate() {
                found.extend(has(&analysis.terms[range]).map(|has| (has, document, block, part)));
            }
        }
        if whole.len() <= MOST_PARTS {
            self.asked_whole.extend(whole.into_iter().rev().map(|document| self.places[document].entry));
        }
        if found.len() > most_parts {
            return;
        }
        // A name in many lines of what programs printed is in no one of them.
        if rows.len() <= most_parts {
            found.append(&mut rows);
        }
        found.sort_unstable_by(|one, other| other.cmp(one));
        for (_, document, block, part) in found {
            self.asked_for.extend(self.part_and_below(draft, (document, block, part), asked));
        }
        // All of what a call or a first line names, the newest first.
        meant.dedup_by_key(|(document, _)| *document);
        for (document, others) in meant.into_iter().rev().take(MOST_MEANT) {
            if self.documents[document].stays {
                continue;
            }
            let Some(block) = self.places[document].block else {
                self.asked_whole.push(self.places[document].entry);
                continue;
            };
            let analysis = &self.documents[document].analysis;
            for (part, (_, range)) in analysis.ranges().enumerate().filter(|_| !others.is_empty()) {
                if most_of(&others, &analysis.terms[range]).is_some() {
                    self.asked_for.extend(self.part_and_below(draft, (document, block, part), asked));
                }
            }
            self.asked_for.extend((0..analysis.parts.len()).map(|part| (block, part)));
        }
    }

    /// Returns the last result of the few calls that were made for what the user says in a document, if it is short: what was asked for
    /// may be in the request alone. O(documents of the turn).
    fn result_for(&self, draft: &Draft<'_, '_>, document: usize) -> Option<usize> {
        let turn = (document + 1..self.documents.len()).take_while(|&of| self.documents[of].author != Author::User);
        let results: Vec<usize> = turn.filter(|&of| self.documents[of].author == Author::Result).collect();
        let last = *results.last().filter(|_| results.len() <= MOST_MEANT)?;
        let Place { entry, piece, .. } = self.places[last];
        let called = |entry: usize| {
            let call = draft.call(entry)?;
            Some((call.name.as_ref()?.as_str(), call.arguments.as_ref().map_or("", Text::as_str)))
        };
        // A later result of the same call replaces it.
        let is_replaced =
            self.places[last + 1..].iter().any(|place| place.entry > entry && called(place.entry) == called(entry));
        (draft.entries[entry].pieces[piece].tokens <= WHOLE_TOKENS && !is_replaced).then_some(last)
    }

    /// Finds what the user said later with a rare term of what they said that is asked for, and puts it first: "Bea does it, Ann has no
    /// time" behind "Ask Ann to water the plants", for "Who waters the plants?". O(terms).
    fn find_followed(&mut self, draft: &Draft<'_, '_>, question: usize, cuts_of: &mut [Vec<usize>]) {
        let typed: f32 = self.typed.iter().sum();
        if typed > draft.before.as_f32() * LITTLE {
            return;
        }
        let asked: HashSet<(usize, usize)> = self.asked_for.iter().copied().collect();
        let is_users = |document: &usize| {
            self.documents[*document].author == Author::User && self.documents[*document].message != question
        };
        let users: Vec<usize> = (0..self.documents.len()).filter(is_users).collect();
        let mut first = HashMap::new();
        for &document in &users {
            let (of, block) = (&self.documents[document], self.places[document].block);
            let Some(block) = block else { continue };
            let parts = of.analysis.ranges().enumerate().filter(|(part, _)| asked.contains(&(block, *part)));
            for term in parts.flat_map(|(_, (_, range))| &of.analysis.terms[range]).filter(|term| names_one(**term)) {
                first.entry(*term).or_insert(of.message);
            }
        }
        let having = self.messages_with(&Asked::of(first.keys().copied()));
        let rare = rare_of(&having, draft.entries.len());
        first.retain(|term, _| rare.contains(term));
        let mut followers = Vec::new();
        for document in users.into_iter().rev() {
            let of = &self.documents[document];
            let Some(block) = self.places[document].block.filter(|_| !of.stays) else { continue };
            let is_later = |term: &ShortTerm| first.get(term).is_some_and(|first| *first < of.message);
            let shared: Vec<ShortTerm> = of.analysis.terms.iter().copied().filter(is_later).collect();
            if shared.is_empty() || self.asked_for.iter().any(|(other, _)| *other == block) {
                continue;
            }
            let shared = Asked::of(shared.into_iter());
            let Place { entry, piece, .. } = self.places[document];
            if draft.entries[entry].pieces[piece].tokens > SHORT_TOKENS {
                let Some(having) = sentences_with(draft.text(entry, piece), &shared) else { continue };
                self.cut(draft, document, having.into_iter(), &mut cuts_of[document]);
            }
            let analysis = &self.documents[document].analysis;
            let has_one = |(part, (_, range)): (usize, (_, Range<usize>))| {
                analysis.terms[range].iter().any(|&term| shared.contains(term)).then_some((block, part))
            };
            followers.extend(analysis.ranges().enumerate().filter_map(has_one));
            if followers.len() >= MOST_PARTS {
                break;
            }
        }
        self.asked_for.splice(..0, followers);
    }

    /// Finds the parts with a day, and what stands below one that is a heading.
    fn find_day(&mut self, draft: &Draft<'_, '_>, question: usize, day: Date, cuts_of: &mut [Vec<usize>]) {
        let others = self.asked_for.len();
        self.find_named(draft, question, &[ShortTerm::of_day(day)], MOST_OF_DAY, Some(cuts_of));
        for (block, part) in self.asked_for.split_off(others) {
            let below = self.blocks[block].document.and_then(|document| {
                let Place { entry, piece, .. } = self.places[document];
                let (text, analysis) = (draft.text(entry, piece), &self.documents[document].analysis);
                let (_, line) = analysis.byte_ranges().nth(part)?;
                let record = segments::record(text, line.start).filter(|record| record.len() <= RECORD_BYTES)?;
                (record.start == line.start).then(|| analysis.parts_in(&(line.end..record.end)).collect::<Vec<_>>())
            });
            let below = below.into_iter().flatten();
            self.asked_for.extend(iter::once(part).chain(below).map(|part| (block, part)));
        }
    }

    /// Finds the few parts that have a code of the question in another spelling, or one that it ends or begins: no term tells it.
    fn find_codes(&mut self, draft: &Draft<'_, '_>, question: usize) {
        let others = || self.documents.iter().zip(&self.places).filter(|(of, _)| of.message != question);
        let is_known = |word| {
            let whole = first_term(word);
            others().any(|(of, _)| whole.is_some_and(|whole| of.analysis.terms.contains(&whole)))
        };
        let words: Vec<_> = words_of(draft, question).collect();
        let unknown: Vec<_> = words.iter().flat_map(|words| codes(words)).filter(|code| !is_known(code.word)).collect();
        if unknown.is_empty() {
            return;
        }
        let mut found = vec![Vec::new(); unknown.len()];
        for (of, place) in others().filter(|(of, _)| !of.stays) {
            let Some(block) = place.block else { continue };
            let text = draft.text(place.entry, place.piece);
            let all = normal(text);
            for (code, found) in unknown.iter().zip(&mut found) {
                found.extend(parts_with(&code.bare, &all, text, &of.analysis).map(|part| (block, part)));
            }
        }
        self.asked_for.extend(found.into_iter().filter(|found| found.len() <= MOST_PARTS).flatten());
    }

    /// Finds the few parts that have what the question names by a sign, a letter or a short number: "C++", "No. 5". O(bytes) for each.
    ///
    /// Of 40 such names, each in one sentence of a talk of 19,000 tokens, 241, 189 and 90 of 400 were gone at 10, 25 and 50 % without it.
    fn find_signs(&mut self, draft: &Draft<'_, '_>, question: usize) {
        let words: Vec<_> = words_of(draft, question).collect();
        for sign in words.iter().flat_map(|words| signs(words)) {
            let having = |_, text: &str, analysis: &Analysis| {
                parts_with_sign(sign, text, analysis).take(MOST_PARTS + 1).collect()
            };
            let found = self.few_parts(draft, question, having);
            self.asked_for.extend(found);
        }
    }

    /// Puts the records of a list first that the question means without their names; none by place where it `has_day`, for "the 21st" is
    /// that day. O(bytes) of a few results where it may mean some.
    fn find_rows(&mut self, draft: &Draft<'_, '_>, question: usize, has_day: bool) {
        let Some(reference) = words_of(draft, question).find_map(|words| RowReference::of(&words)) else { return };
        if has_day && reference.is_place() {
            return;
        }
        let listed = |(document, (of, place)): (usize, (&Document, &Place))| {
            let text = draft.text(place.entry, place.piece);
            match of.author {
                Author::User if of.message != question => Some((document, Listed::Said(text))),
                Author::Result => Some((document, Listed::Result(text, draft.call(place.entry)))),
                _ => None,
            }
        };
        let texts = self.documents.iter().zip(&self.places).enumerate().filter_map(listed);
        let Some((document, found)) = rows_meant(&reference, texts) else { return };
        let Place { entry, piece, block: Some(block) } = self.places[document] else { return };
        let text = draft.text(entry, piece);
        let analysis = &self.documents[document].analysis;
        let mut parts: Vec<(usize, usize)> = Vec::new();
        for at in found {
            let Some(part) = analysis.parts_in(&(at..at + 1)).next() else { continue };
            let record = analysis.json_record(part).unwrap_or_else(|| {
                let record = segments::record(text, at).filter(|record| record.len() <= RECORD_BYTES);
                record.map_or_else(|| vec![part], |record| analysis.parts_in(&record).collect())
            });
            parts.extend(record.into_iter().map(|part| (block, part)));
        }
        self.asked_for.splice(..0, parts);
    }

    /// Returns the parts of other messages than the question that `having` finds in their texts, by their authors; none where they are many.
    fn few_parts(
        &self,
        draft: &Draft<'_, '_>,
        question: usize,
        having: impl Fn(Author, &str, &Analysis) -> Vec<usize>,
    ) -> Vec<(usize, usize)> {
        let mut found = Vec::new();
        for (of, place) in self.documents.iter().zip(&self.places) {
            let Some(block) = place.block.filter(|_| !of.stays && of.message != question) else { continue };
            let parts = having(of.author, draft.text(place.entry, place.piece), &of.analysis);
            found.extend(parts.into_iter().map(|part| (block, part)));
            if found.len() > MOST_PARTS {
                return Vec::new();
            }
        }
        found
    }

    /// Finds the few parts of what was said that have a Han character of the question, which may be a word of its own ("伞在哪儿？"):
    /// terms are pairs. Of 12 such questions of 6 % of the tokens 45 of 48 answers are there, without this 14. Not beside other finds:
    /// .577 of the evidence of Chinese meetings stays at 25 % in place of .594. O(bytes) of what was said, for a question in that script.
    fn find_characters(&mut self, draft: &Draft<'_, '_>, question: usize) {
        let texts = words_of(draft, question).filter(|text| text.len() <= QUESTION_BYTES);
        let of = |text: Cow<'_, str>| text.chars().filter(|&c| is_han(c)).map(String::from).collect::<Vec<_>>();
        let characters: BTreeSet<String> = texts.flat_map(of).collect();
        for character in characters {
            let having = |author, text: &str, analysis: &Analysis| match author {
                // As such a character is, so it is in the bare text.
                Author::User | Author::Assistant => parts_with(&character, text, text, analysis).collect(),
                _ => Vec::new(),
            };
            let found = self.few_parts(draft, question, having);
            self.asked_for.extend(found);
        }
    }

    /// Finds the parts of what was said that have most of the question by the rarity of its terms, of equal ones the newest: none of
    /// these may be rare. Of the evidence of English and Chinese meetings .629 and .623 stays at 25 % with two such parts, .625 and
    /// .607 with four, .624 and .622 without; of their answers .817 and .716, .821 and .705, .798 and .710. `having` says how many
    /// messages have each term of the question. O(terms).
    fn find_likely(&mut self, all_messages: usize, question: usize, having: HashMap<ShortTerm, usize>) {
        let asked = Asked::of(having.keys().copied());
        let idf = Idf::of(all_messages);
        let having = having.into_iter().filter(|(_, messages)| *messages > 1);
        let mut weights: Vec<(ShortTerm, f32)> = having.map(|(term, messages)| (term, idf.at(messages - 1))).collect();
        // A sum of floats hangs on their order.
        weights.sort_unstable_by_key(|(term, _)| term.hash());
        if !(2..=MOST_TERMS).contains(&weights.len()) {
            return;
        }
        let mut best: Vec<(f32, usize, usize)> = Vec::new();
        for (of, place) in self.documents.iter().zip(&self.places) {
            let is_said = matches!(of.author, Author::User | Author::Assistant) && !of.stays && of.message != question;
            let Some(block) = place.block.filter(|_| is_said) else { continue };
            for (part, (_, range)) in of.analysis.ranges().enumerate() {
                let terms: Vec<&ShortTerm> =
                    of.analysis.terms[range].iter().filter(|&&term| asked.contains(term)).collect();
                let weight = weights.iter().filter(|(term, _)| terms.contains(&term)).map(|(_, weight)| weight).sum();
                if weight > 0.0 {
                    let at = best.partition_point(|(other, ..)| *other > weight);
                    best.insert(at, (weight, block, part));
                    best.truncate(MOST_LIKELY);
                }
            }
        }
        self.asked_for.extend(best.into_iter().map(|(_, block, part)| (block, part)));
    }

    /// Returns a part with what is asked for, then those of the function, of code, that it opens.
    fn part_and_below(
        &self,
        draft: &Draft<'_, '_>,
        (document, block, part): (usize, usize, usize),
        asked: &Asked,
    ) -> Vec<(usize, usize)> {
        let Place { entry, piece, .. } = self.places[document];
        let (text, analysis) = (draft.text(entry, piece), &self.documents[document].analysis);
        let mut at = None;
        if analysis.kind() == Some(Kind::Code)
            && let Some((_, range)) = analysis.byte_ranges().nth(part)
        {
            scan(&text[range.clone()], |term, start| {
                at = at.or_else(|| asked.contains(term.short()).then_some(range.start + start));
            });
        }
        let record = at.and_then(|at| segments::record(text, at)).unwrap_or_default();
        let below = analysis.parts_in(&record).filter(|&other| other != part);
        iter::once(part).chain(below).map(|part| (block, part)).collect()
    }

    /// Returns the document of the result of a call.
    fn result_of(&self, draft: &Draft<'_, '_>, call: usize) -> Option<usize> {
        let Place { entry, piece, .. } = self.places[call];
        let Slot::Arguments(position) = draft.entries[entry].pieces[piece].slot else { return None };
        let call_of = draft.message(entry)?.tool_calls.get(position)?;
        let is_result = |document: &usize| {
            self.documents[*document].author == Author::Result
                && draft.call(self.places[*document].entry).is_some_and(|of| std::ptr::eq(of, call_of))
        };
        (call + 1..self.documents.len()).take(MOST_BETWEEN).find(is_result)
    }

    /// Returns the terms of a message's words that may name something.
    fn terms_said(&self, message: usize) -> impl Iterator<Item = ShortTerm> {
        let said = move |document: &&Document| document.message == message && document.author != Author::Call;
        let terms = self.documents.iter().filter(said).flat_map(|document| &document.analysis.terms);
        terms.copied().filter(|term| names_one(*term))
    }

    /// Returns how many messages, calls with their results, have each of some terms. O(terms).
    fn messages_with(&self, asked: &Asked) -> HashMap<ShortTerm, usize> {
        let mut named: HashMap<ShortTerm, (usize, usize)> = HashMap::new();
        let mut message = 0;
        for document in self.documents.iter().filter(|document| document.author != Author::System) {
            // A result says again what its call named.
            message = if document.author == Author::Result { message } else { document.message };
            for &term in document.analysis.terms.iter().filter(|&&term| asked.contains(term)) {
                let (messages, last) = named.entry(term).or_insert((0, usize::MAX));
                *messages += usize::from(*last != message);
                *last = message;
            }
        }
        named.into_iter().map(|(term, (messages, _))| (term, messages)).collect()
    }
}

/// Returns what the question says, without what the host says of it.
fn words_of<'d>(draft: &'d Draft<'_, '_>, question: usize) -> impl Iterator<Item = Cow<'d, str>> {
    draft.contents(question).map(|text| match blank_host_notes(text) {
        Cow::Owned(blank) => Cow::Owned(blank.trim().to_owned()),
        text @ Cow::Borrowed(_) => text,
    })
}

/// Returns those of some terms that a few messages have; `having` says how many have each.
fn rare_of(having: &HashMap<ShortTerm, usize>, all_messages: usize) -> Vec<ShortTerm> {
    let most = RARELY.min(all_messages / OF_MESSAGES);
    having.iter().filter(|(_, messages)| (2..=most).contains(messages)).map(|(term, _)| *term).collect()
}

/// Returns how many of the `rare` terms are among some, if that is at least half of them.
fn most_of(rare: &[ShortTerm], terms: &[ShortTerm]) -> Option<usize> {
    let has = rare.iter().filter(|term| terms.contains(term)).count();
    (has * 2 >= rare.len()).then_some(has)
}

/// Returns the term of a word as a whole: those of its parts come behind it.
fn first_term(word: &str) -> Option<ShortTerm> {
    let mut first = None;
    scan(word, |term, _| {
        first.get_or_insert(term.short());
    });
    first
}

/// Returns the rare terms of each question in a message, all together where it has but one; `asked` tells the rare ones.
fn apart(draft: &Draft<'_, '_>, question: usize, rare: Vec<ShortTerm>, asked: &Asked) -> Vec<Vec<ShortTerm>> {
    let mut apart: Vec<Vec<ShortTerm>> = Vec::new();
    for text in words_of(draft, question) {
        for one in questions(&text) {
            let mut terms = Vec::new();
            scan(&text[one], |term, _| {
                let term = term.short();
                let is_new = asked.contains(term) && !terms.contains(&term) && rare.contains(&term);
                terms.extend(is_new.then_some(term));
            });
            if !terms.is_empty() && !apart.contains(&terms) {
                apart.push(terms);
            }
        }
    }
    if !(2..=MOST_QUESTIONS).contains(&apart.len()) {
        return vec![rare];
    }
    apart
}

/// Returns the sentences of a text with what is asked for; `None` where that is its subject.
fn sentences_with(text: &str, asked: &Asked) -> Option<Vec<Range<usize>>> {
    let mut starts = Vec::new();
    scan(text, |term, start| starts.extend(asked.contains(term.short()).then_some(start)));
    // The parts of an identifier come behind it.
    starts.sort_unstable();
    let has_one = |sentence: &Range<usize>| {
        let first = starts.partition_point(|&start| start < sentence.start);
        starts.get(first).is_some_and(|&start| start < sentence.end)
    };
    let having: Vec<Range<usize>> = sentences(text).filter(has_one).take(MOST_PARTS + 1).collect();
    (having.len() <= MOST_PARTS).then_some(having)
}
