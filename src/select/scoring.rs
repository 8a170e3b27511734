//! Scores each part of a conversation by the chance that the next step needs it: learned weights for its names, and its
//! relevance to the current question.
//!
//! Later steps use mostly exact strings of earlier ones: paths, identifiers, numbers. So every term gets the chance that the
//! next step uses it, from small trees over features of the conversation ([`FEATURES`]), fitted to recorded agent runs
//! (`training/`). What people and the model say in words is ranked by its relevance (BM25) to the last message of the user,
//! together with its neighbours.

mod answers;
mod records;
mod relevance;
mod repeats;

use std::ops::Range;
use std::sync::Arc;

use crate::checkpoint;
use crate::text::analysis::Analysis;
use crate::text::estimate::index;
use crate::text::terms::ShortTerm;
use crate::tools::Effect;

pub use answers::ANSWERS;
pub use relevance::Idf;

use super::ablation::{Mechanism, is_on};
use super::facts::{Asked, Fact, NONE, QueryMatch, TermIndex};
use super::usage_model::{Conversation, FEATURES, SourceText, Uptake, Worths, features};

/// The author of a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Author {
    User,
    Assistant,
    /// Arguments of a call.
    Call,
    Result,
    /// System messages. They stay, and their terms are not mentions. Parts with a time count for nothing: a clock must not
    /// weigh.
    System,
}

/// A text of the conversation.
pub struct Document {
    /// Index of its message.
    pub message: usize,
    pub author: Author,
    /// The effect of its tool, for arguments and results.
    pub effect: Option<Effect>,
    /// Whether it is never cut, so that its names need not stay elsewhere.
    pub stays: bool,
    /// How much the request is about its terms, from 0 to 1.
    pub asks: f32,
    pub analysis: Arc<Analysis>,
}

/// A training example: the features of a term, and whether the next step used it.
#[cfg(feature = "evaluation")]
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Example {
    /// See `training/README.md`.
    pub features: [u16; FEATURES],
    /// Whether it was used.
    pub is_used: bool,
}

/// Where a term is covered.
#[derive(Debug, Clone, Copy)]
struct Covered {
    /// Mentions in kept texts.
    stays: u32,
    /// Whether a listed text has it.
    is_listed: bool,
}

impl Covered {
    fn is_nowhere(self) -> bool {
        self.stays == 0 && !self.is_listed
    }
}

/// A name that no kept text has.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct LostName {
    /// Its worth.
    pub worth: f32,
    /// The newest document with it, and its first mention there.
    pub document: usize,
    pub mention: usize,
    pub term: ShortTerm,
    /// Number of names before it in its document.
    pub nth: usize,
}

/// Scores of a conversation's parts.
pub struct Scoring {
    documents: Vec<Document>,
    /// The mentions of all documents, as numbers of terms.
    numbers: Vec<u32>,
    /// By document: where its mentions and its parts start; and where all end.
    offsets: Vec<(usize, usize)>,
    /// By part, over all documents: where its mentions end, and its relevance.
    ends: Vec<u32>,
    relevance: Vec<f32>,
    /// By part, over all documents: whether it has much of what is asked for.
    answers: Vec<bool>,
    /// Parts with much of what the user asks for, and the relevance of that.
    answering: Vec<(f32, u32)>,
    facts: Vec<Fact>,
    /// By part, over all documents: its document.
    owners: Vec<u32>,
    /// By document: how much the model has used of it.
    uptakes: Vec<Uptake>,
    conversation: Conversation,
    /// By term.
    query_matches: Vec<QueryMatch>,
    terms: TermIndex,
    /// By term: its worth, discounted once a kept or listed text has it.
    worths: Vec<f32>,
    /// By term: where it is covered.
    covered: Vec<Covered>,
    /// By message: relevance of its words, from 0 to 1.
    said: Vec<f32>,
    /// By document: whether it is a message that is repeated again and again, or a result that a later one repeats.
    repeats: Vec<bool>,
    messages: usize,
    /// Factor of a term's worth once a kept text has it.
    named_again: f32,
    /// Whether the class of a part counts.
    has_classes: bool,
}

impl Scoring {
    /// Scores a conversation of `messages` messages; `question` is the index of the last message of the user.
    pub fn new(mut documents: Vec<Document>, messages: usize, question: Option<usize>) -> Self {
        if !is_on(Mechanism::Relevance) {
            for document in &mut documents {
                document.asks = 0.0;
            }
        }
        let total: usize = documents.iter().map(|document| document.analysis.terms.len()).sum();
        let parts: usize = documents.iter().map(|document| document.analysis.parts.len()).sum();
        let mut this = Self {
            numbers: Vec::with_capacity(total),
            offsets: Vec::with_capacity(documents.len() + 1),
            ends: Vec::with_capacity(parts),
            relevance: Vec::new(),
            answers: Vec::new(),
            answering: Vec::new(),
            facts: Vec::with_capacity(total / 4),
            owners: Vec::with_capacity(parts),
            uptakes: Vec::with_capacity(documents.len()),
            repeats: repeats::repeats(&documents),
            conversation: Conversation::default(),
            documents,
            query_matches: Vec::new(),
            terms: TermIndex::of(total),
            worths: Vec::new(),
            covered: Vec::new(),
            said: vec![0.0; messages],
            messages,
            named_again: if is_on(Mechanism::Coverage) { NAMED_AGAIN } else { 1.0 },
            has_classes: is_on(Mechanism::Classes),
        };
        let related = this.gather();
        this.query_matches = this.relate(&related);
        this.ask(question.filter(|_| is_on(Mechanism::Relevance)));
        this.conversation = this.conversation(question);
        this.rate_documents();
        let mut worths = Worths::new();
        let worth = |(id, fact): (usize, &Fact)| {
            checkpoint::reached();
            let worth = this.features(id).map_or(0.0, |features| worths.at(&features));
            if fact.stays { worth * this.named_again } else { worth }
        };
        this.worths = this.facts.iter().enumerate().map(worth).collect();
        this.answer(&related);
        let covered = |fact: &Fact| Covered { stays: u32::from(fact.stays), is_listed: false };
        this.covered = this.facts.iter().map(covered).collect();
        this
    }

    /// Numbers the terms that are weighed or asked for, and gathers their facts; returns the parts that have asked terms,
    /// with their number of terms.
    fn gather(&mut self) -> Vec<(u32, u32)> {
        let asking = self.documents.iter().filter(|document| document.asks > 0.0);
        let asked = Asked::of(asking.flat_map(|document| document.analysis.terms.iter().copied()));
        let mut related = Vec::with_capacity(self.ends.capacity());
        for document in &self.documents {
            checkpoint::reached();
            self.offsets.push((self.numbers.len(), self.ends.len()));
            let message = index(document.message);
            let owner = index(self.uptakes.len());
            self.uptakes.push(Uptake::default());
            let is_system = document.author == Author::System;
            let is_use = matches!(document.author, Author::Assistant | Author::Call);
            for (part, range) in document.analysis.ranges() {
                let stays = document.stays && !(is_system && part.has_time);
                let mut is_related = false;
                for &term in &document.analysis.terms[range.clone()] {
                    // Most words are not weighed.
                    if !term.kind().is_weighed() && !asked.contains(term) {
                        continue;
                    }
                    let id = self.terms.number(term, &mut self.facts, &asked);
                    self.numbers.push(id);
                    let fact = &mut self.facts[id as usize];
                    fact.stays |= stays;
                    is_related |= fact.is_asked;
                    if is_system {
                        continue;
                    }
                    if let Some(quoted) = fact.mention(message, index(self.ends.len()), is_use) {
                        let source = self.owners[quoted as usize];
                        self.uptakes[source as usize].quote(message, quoted);
                    }
                }
                self.owners.push(owner);
                if is_related {
                    related.push((index(self.ends.len()), index(range.len())));
                }
                self.ends.push(index(self.numbers.len()));
            }
        }
        self.offsets.push((self.numbers.len(), self.ends.len()));
        related
    }

    /// Returns the facts that all terms share.
    fn conversation(&self, question: Option<usize>) -> Conversation {
        let newest_call = self.documents.iter().rev().find(|document| document.author == Author::Call);
        let effect = newest_call.and_then(|document| document.effect);
        Conversation { messages: self.messages, question: question.unwrap_or_default(), effect }
    }

    /// Returns the features of a term; `None` if it is not weighed or only system messages have it.
    fn features(&self, id: usize) -> Option<[u16; FEATURES]> {
        let fact = &self.facts[id];
        if !fact.term.kind().is_weighed() || fact.last_part == NONE {
            return None;
        }
        let last = &self.documents[self.owner(fact.last_part)];
        let part = if fact.source_part == NONE { fact.last_part } else { fact.source_part };
        let source = self.owner(part);
        let source = SourceText { document: &self.documents[source], uptake: &self.uptakes[source], part };
        let part_terms = last.analysis.terms_in(fact.last_part as usize - self.offsets[self.owner(fact.last_part)].1);
        Some(features(fact, &self.query_matches[id], &self.conversation, (last, part_terms), &source))
    }

    /// Sets each document's relevance to that of its best part.
    fn rate_documents(&mut self) {
        for (uptake, parts) in self.uptakes.iter_mut().zip(self.offsets.windows(2)) {
            let parts = &self.relevance[parts[0].1..parts[1].1];
            uptake.relevance = parts.iter().copied().fold(0.0, f32::max);
        }
    }

    /// Returns the range of a document's mentions.
    pub fn mentions(&self, document: usize) -> Range<usize> {
        self.offsets[document].0..self.offsets[document + 1].0
    }

    /// Iterates over the ranges of mentions of a document's parts.
    pub fn mentions_by_part(&self, document: usize) -> impl Iterator<Item = Range<usize>> + '_ {
        let mut start = self.offsets[document].0;
        self.ends[self.parts_of(document)].iter().map(move |&end| {
            let mentions = start..end as usize;
            start = mentions.end;
            mentions
        })
    }

    /// Returns the document of a part, over all documents.
    fn owner(&self, part: u32) -> usize {
        self.owners[part as usize] as usize
    }

    /// Returns the parts of a document, over all documents.
    fn parts_of(&self, document: usize) -> Range<usize> {
        self.offsets[document].1..self.offsets[document + 1].1
    }

    fn term(&self, mention: usize) -> ShortTerm {
        self.facts[self.numbers[mention] as usize].term
    }

    /// Returns whether the class of a part counts.
    pub fn has_classes(&self) -> bool {
        self.has_classes
    }

    /// Returns the texts.
    pub fn documents(&self) -> &[Document] {
        &self.documents
    }

    /// Returns the expected number of mentions that the next step uses and no kept text has; covered ones count
    /// [`NAMED_AGAIN`].
    pub fn worth(&self, mentions: Range<usize>) -> f32 {
        self.numbers[mentions].iter().map(|&id| self.worths[id as usize]).sum()
    }

    /// Returns the relevance of a part of a result or call.
    pub fn relevance(&self, document: usize, part: usize) -> f32 {
        let parts = &self.relevance[self.parts_of(document)];
        // An empty text has no parts.
        parts.get(part).copied().unwrap_or_default()
    }

    /// Returns whether a part has much of what is asked for.
    pub fn answers(&self, document: usize, part: usize) -> bool {
        self.answers[self.parts_of(document)].get(part).copied().unwrap_or_default()
    }

    /// Returns the relevance of a message's words, from 0 to 1.
    pub fn said(&self, message: usize) -> f32 {
        self.said[message]
    }

    /// Returns whether a message in words says next to nothing: "OK.", "Got it, thanks.", or one that is repeated again and again.
    pub fn says_little(&self, document: usize) -> bool {
        self.documents[document].analysis.terms.len() <= CURT || self.repeats[document]
    }

    /// Returns whether a later result says the same, or a message is one that is repeated again and again.
    pub fn is_repeated(&self, document: usize) -> bool {
        self.repeats[document]
    }

    /// Returns the names that no kept text has, each at its last mention. O(mentions).
    pub fn lost(&self, min_worth: f32) -> Vec<LostName> {
        // By term: whether it is a name, and whether it is lost and not found yet. Most mentions need no more.
        let names = self.facts.iter().zip(&self.covered).zip(&self.worths).map(|((fact, covered), worth)| {
            let is_name = fact.term.kind().is_name();
            (is_name, is_name && covered.is_nowhere() && *worth >= min_worth)
        });
        let mut names: Vec<(bool, bool)> = names.collect();
        let mut lost = Vec::new();
        let documents = self.documents.iter().enumerate().rev();
        for (document, _) in documents.filter(|(_, document)| document.author != Author::System) {
            let mut nth = 0;
            for (part, mentions) in self.documents[document].analysis.parts.iter().zip(self.mentions_by_part(document))
            {
                let factor = if part.class.stands_out() { OF_ODD } else { 1.0 };
                for mention in mentions {
                    let id = self.numbers[mention] as usize;
                    let (is_name, is_lost) = &mut names[id];
                    if std::mem::take(is_lost) {
                        let (worth, term) = (self.worths[id] * factor, self.term(mention));
                        lost.push(LostName { worth, document, mention, term, nth });
                    }
                    nth += usize::from(*is_name);
                }
            }
        }
        lost
    }

    /// Returns whether a kept or listed text has the mentioned term.
    pub fn is_covered(&self, mention: usize) -> bool {
        !self.covered[self.numbers[mention] as usize].is_nowhere()
    }

    /// Returns whether a kept text has the mentioned term.
    pub fn stays_named(&self, mention: usize) -> bool {
        self.covered[self.numbers[mention] as usize].stays > 0
    }

    /// Returns whether a text has names, all of which kept or listed texts have.
    pub fn is_text_covered(&self, text: &str) -> bool {
        let (mut names, mut covered) = (0, 0);
        crate::text::terms::scan(text, |term, _| {
            if term.kind().is_name() {
                names += 1;
                let known = self.terms.find(term.short(), &self.facts).ok();
                covered += usize::from(known.is_some_and(|id| !self.covered[id as usize].is_nowhere()));
            }
        });
        names > 0 && names == covered
    }

    /// Covers the terms of a listed text.
    pub fn cover_text(&mut self, text: &str) {
        crate::text::terms::scan(text, |term, _| {
            if let Ok(id) = self.terms.find(term.short(), &self.facts) {
                self.change(id as usize, |covered| covered.is_listed = true);
            }
        });
    }

    /// Covers mentions that are kept.
    pub fn cover(&mut self, mentions: Range<usize>) {
        for mention in mentions {
            self.change(self.numbers[mention] as usize, |covered| covered.stays += 1);
        }
    }

    /// Reverts one [`Scoring::cover`] of the same mentions.
    pub fn uncover(&mut self, mentions: Range<usize>) {
        for mention in mentions {
            self.change(self.numbers[mention] as usize, |covered| covered.stays -= 1);
        }
    }

    fn change(&mut self, id: usize, change: impl FnOnce(&mut Covered)) {
        let covered = &mut self.covered[id];
        let was_nowhere = covered.is_nowhere();
        change(covered);
        match (was_nowhere, covered.is_nowhere()) {
            (true, false) => self.worths[id] *= self.named_again,
            (false, true) => self.worths[id] /= self.named_again,
            _ => {}
        }
    }

    /// Returns a training example for every term that could be kept or lost.
    #[cfg(feature = "evaluation")]
    pub fn examples(&self, used: &dyn Fn(ShortTerm) -> bool) -> Vec<Example> {
        let mut seen = vec![false; self.facts.len()];
        let mut examples = Vec::new();
        let documents = self.documents.iter().enumerate();
        for (position, _) in documents.filter(|(_, document)| document.author != Author::System) {
            for mention in self.mentions(position) {
                let (id, term) = (self.numbers[mention] as usize, self.term(mention));
                let is_new = !std::mem::replace(&mut seen[id], true);
                if is_new && self.covered[id].is_nowhere() && term.kind().is_weighed() {
                    let features = self.features(id);
                    examples.extend(features.map(|features| Example { features, is_used: used(term) }));
                }
            }
        }
        examples
    }
}

/// Returns the numbers of the terms that a part mentions.
fn mentioned<'n>(numbers: &'n [u32], ends: &[u32], part: usize) -> &'n [u32] {
    let start = part.checked_sub(1).map_or(0, |before| ends[before]);
    &numbers[start as usize..ends[part] as usize]
}

/// Most terms of a message that says next to nothing.
const CURT: usize = 2;

/// Factor of the worth of a lost name in a part that stands out, as the code of an error.
///
/// Of 60 rounds of logs, JSON and code with such a code each, 345 of 772 are nowhere in a fit to a tenth of the tokens and 296 in windows of
/// 16,000 without it, with it 180 and 140; with 10 179 and 111. Recall of future references at 25 % is .775, .771 and .770.
const OF_ODD: f32 = 3.0;

/// Factor of a term's worth once a kept text has it.
const NAMED_AGAIN: f32 = 0.15;

#[cfg(test)]
mod tests;
