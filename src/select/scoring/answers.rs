//! Finds the parts that answer the request: those that have what it names, or much of what it asks for.

use std::collections::{BTreeMap, HashSet};

use crate::text::estimate::count;
use crate::text::stop_words::is_stop_word;
use crate::text::terms::{ShortTerm, TermKind};

use super::super::facts::{Fact, QueryMatch};
use super::records::{MOST_ASKED, NAMED};
use super::{Author, Document, Idf, Scoring, mentioned};

/// Relevance of a part with all that the request is about.
const ANSWER: f32 = 5.0;

/// Relevance of a part that has half of that.
pub const ANSWERS: f32 = 1.0;

/// Parts with a term that may answer: one in so many, and as many in a short conversation.
const ANSWERS_IN: usize = 8;
const MIN_ANSWERS: usize = 4;

/// Terms of the user's up to which each of several names is asked for on its own: of five numbers in a table of 300 rows .07 of the
/// rows stayed at 6 % without that, with it .83; recall at 50 % goes from .902 to .910.
const MOST_NAMING: usize = 64;

/// A term that so many of a document's parts have, in percent, tells nothing about which of them is asked for; and fewest parts for
/// that. Where all rows but one have what is asked ("Are all windows closed?"), that row went in 178 of 180 fits to half without
/// this, in none with it; recall is the same.
const COMMON: usize = 75;
const MIN_COMMON: usize = 4;

/// Who asks for a term.
#[derive(Clone, Copy, Default)]
struct Asking {
    /// Mentions in texts that ask.
    mentions: u16,
    is_users: bool,
}

/// What terms count as: indexes of a weight.
const ANY: usize = 0;
/// Names that few parts have.
const NAMES: usize = 1;
/// Rare words of the user's.
const RARE: usize = 2;
/// All of the user's that some part has.
const USERS: usize = 3;
/// Those of the user's that hardly any part has: names, and words of data. Of 408 rows of tables that are asked for by a word in
/// 17 languages ("Omaha") 174, 143 and 14 went at 10, 25 and 50 % without words, with them 18, 13 and 6.
const NAMING: usize = 4;

/// What is asked for.
struct Wanted {
    /// By term.
    weights: Vec<[f32; 5]>,
    /// Of all terms together, but for [`NAMING`].
    sums: [f32; 4],
}

impl Wanted {
    fn has(&self, id: u32, of: usize) -> bool {
        self.weights[id as usize][of] > 0.0
    }

    fn sum(&self, ids: &[u32], of: usize) -> f32 {
        ids.iter().map(|&id| self.weights[id as usize][of]).sum()
    }

    fn share(&self, ids: &[u32], of: usize) -> f32 {
        self.sum(ids, of) / self.sums[of].max(f32::MIN_POSITIVE)
    }

    /// Returns whether several terms count.
    fn has_several(&self, ids: &[u32], of: usize) -> bool {
        ids.iter().filter(|&&id| self.has(id, of)).count() > 1
    }
}

fn asks(document: &Document) -> bool {
    document.asks > 0.0 && document.author != Author::Result
}

impl Scoring {
    /// Adds to each of the `related` parts its share of what is asked for, rare terms weighing more: it finds the one line with
    /// the order that is asked for in a list of orders. A request with many names asks for none.
    ///
    /// The share of names that few other parts have decides, of the user's own as a share of the most that a part has, or that of
    /// the user's rare words where a part has two of them ("Ann Meyer"), or of all together: in "And now, what should I look at?"
    /// a part with "look" answers little. A result asks for nothing: the newest would answer itself.
    pub(super) fn answer(&mut self, related: &[(u32, u32)]) {
        let asking = self.asking();
        let users = asking.iter().filter(|asking| asking.is_users).count();
        let (is_question, may_name) = (users <= MOST_ASKED, users <= MOST_NAMING);
        // A part of a name that is one itself: a hash that the user shortened.
        let users_names =
            self.facts.iter().zip(&asking).filter(|(fact, asking)| asking.is_users && fact.term.kind().is_name());
        let names: HashSet<u64> = users_names.map(|(fact, _)| fact.term.hash()).collect();
        let is_name =
            |term: ShortTerm| term.kind().is_name() || term.kind() == TermKind::Part && names.contains(&term.hash());
        let is_named = |id: u32| is_name(self.facts[id as usize].term);
        // A call names the file whose content answers.
        let answers = |part: &u32| {
            let document = &self.documents[self.owner(*part)];
            !asks(document) && document.author != Author::Call
        };
        // Every part with an asked term is related.
        let of_answers = || related.iter().map(|(part, _)| *part).filter(answers);
        let mut wanted = self.wanted(&asking, is_question, &is_name);
        // A word names a row of data, but not a sentence: in "And now, what should I look at?" one may have "look".
        let is_prose = |part: &u32| !self.documents[self.owner(*part)].analysis.is_material();
        for part in of_answers().filter(|part| is_question && is_prose(part)) {
            for &id in mentioned(&self.numbers, &self.ends, part as usize).iter().filter(|&&id| !is_named(id)) {
                wanted.weights[id as usize][NAMING] = 0.0;
            }
        }
        let naming: Vec<u32> = (0..).take(self.facts.len()).filter(|&id| may_name && wanted.has(id, NAMING)).collect();
        // The most that a part has of the names: of several each is asked for on its own.
        let parts = of_answers().filter(|_| !naming.is_empty());
        let most_named =
            parts.map(|part| wanted.sum(&self.asked_with_parent(part, &wanted, NAMING), NAMING)).fold(0.0, f32::max);
        // Where no name answers pairs do.
        let has_pairs = may_name && !naming.iter().any(|&id| is_named(id));
        let pairs = if has_pairs { self.rare_pairs(of_answers, &wanted) } else { BTreeMap::new() };
        let (mut relevance, mut answering) = (vec![0.0; self.ends.len()], Vec::new());
        for of_document in related.chunk_by(|(part, _), (next, _)| self.owner(*part) == self.owner(*next)) {
            let parts = self.parts_of(self.owner(of_document[0].0));
            let common = self.common(of_document, parts.len(), &wanted);
            if !common.is_empty() {
                let of_all = ANSWER * wanted.share(&common, ANY).max(wanted.share(&common, NAMES)).powi(2);
                relevance[parts.clone()].fill(of_all / count(parts.len()));
            }
            for &(part, _) in of_document {
                let mut ids = self.asked_with_parent(part, &wanted, ANY);
                if !common.is_empty() && ids.iter().all(|id| common.contains(id)) {
                    continue;
                }
                let of_most = if most_named > 0.0 { wanted.sum(&ids, NAMING) / most_named } else { 0.0 };
                let by_name = pairs.get(&part).copied().unwrap_or_default().max(of_most).min(1.0);
                ids.extend(&common);
                ids.sort_unstable();
                ids.dedup();
                let of_words = if wanted.has_several(&ids, RARE) { wanted.share(&ids, RARE) } else { 0.0 };
                let share = wanted.share(&ids, ANY).max(wanted.share(&ids, NAMES));
                let found = ANSWER * share.max(of_words).max(by_name).powi(2);
                relevance[part as usize] = found;
                let of_users = wanted.share(&ids, USERS).max(of_words).max(by_name * NAMED);
                // One word may be in any line.
                let is_meant = wanted.share(&ids, NAMES) > 0.0 || of_most > 0.0 || wanted.has_several(&ids, USERS);
                if is_question && is_meant && of_users >= NAMED && self.has_records(part) {
                    answering.push((found.max(ANSWER * of_users.powi(2)), part));
                }
            }
        }
        self.answering = answering;
        self.answers = relevance.iter().map(|relevance| *relevance >= ANSWERS).collect();
        for (all, relevance) in self.relevance.iter_mut().zip(relevance) {
            *all += relevance;
        }
    }

    /// Returns by term who asks for it.
    fn asking(&self) -> Vec<Asking> {
        let mut asking = vec![Asking::default(); self.facts.len()];
        for (position, document) in self.documents.iter().enumerate().filter(|(_, document)| asks(document)) {
            for &id in &self.numbers[self.mentions(position)] {
                let Asking { mentions, is_users } = &mut asking[id as usize];
                *mentions = mentions.saturating_add(1);
                *is_users |= document.author == Author::User;
            }
        }
        asking
    }

    /// Returns what each term counts among what is asked for.
    fn wanted(&self, asking: &[Asking], is_question: bool, is_name: &dyn Fn(ShortTerm) -> bool) -> Wanted {
        let (idf, most) = (Idf::of(self.ends.len()), (self.ends.len() / ANSWERS_IN).max(MIN_ANSWERS));
        let weights = |((fact, query_match), asking): ((&Fact, &QueryMatch), &Asking)| {
            let has_answer = fact.mentions > asking.mentions && usize::from(fact.mentions) <= most;
            let is_asked = asking.mentions > 0 && !is_stop_word(fact.term);
            let weight = (query_match.asked * idf.at(fact.mentions.into())).max(0.0);
            let is_rare = asking.is_users && has_answer && usize::from(fact.mentions) <= most / 2;
            let elsewhere = usize::from(fact.mentions.saturating_sub(asking.mentions));
            [
                asking.is_users || has_answer,
                has_answer && is_name(fact.term),
                is_rare,
                asking.is_users && elsewhere > 0,
                asking.is_users && (is_question || is_name(fact.term)) && (1..=MIN_ANSWERS).contains(&elsewhere),
            ]
            .map(|counts| if is_asked && counts { weight } else { 0.0 })
        };
        let weights: Vec<[f32; 5]> = self.facts.iter().zip(&self.query_matches).zip(asking).map(weights).collect();
        let sums = [ANY, NAMES, RARE, USERS].map(|of| weights.iter().map(|weight| weight[of]).sum());
        Wanted { weights, sums }
    }

    /// Returns the terms of a part that have a weight, in order, each once.
    fn asked_in(&self, part: u32, wanted: &Wanted, of: usize) -> Vec<u32> {
        let of_part = mentioned(&self.numbers, &self.ends, part as usize);
        let mut ids: Vec<u32> = of_part.iter().copied().filter(|&id| wanted.has(id, of)).collect();
        ids.sort_unstable();
        ids.dedup();
        ids
    }

    /// Returns the same with those of the line that says whose the part is, if it adds to these: "Apr" below "Emden".
    fn asked_with_parent(&self, part: u32, wanted: &Wanted, of: usize) -> Vec<u32> {
        let mut ids = self.asked_in(part, wanted, of);
        let document = self.owner(part);
        let first = self.parts_of(document).start;
        let parent = self.documents[document].analysis.parent(part as usize - first);
        if let Some(parent) = parent.and_then(|parent| u32::try_from(first + parent).ok()).filter(|_| !ids.is_empty()) {
            let above = self.asked_in(parent, wanted, of);
            if ids.iter().any(|id| !above.contains(id)) {
                ids.extend(above);
                ids.sort_unstable();
                ids.dedup();
            }
        }
        ids
    }

    /// Returns the asked terms that nearly all parts of a document have: see [`COMMON`].
    fn common(&self, related: &[(u32, u32)], parts: usize, wanted: &Wanted) -> Vec<u32> {
        let are_most = |having: usize| parts >= MIN_COMMON && having * 100 >= parts * COMMON;
        if !are_most(related.len()) {
            return Vec::new();
        }
        let mut parts_with: BTreeMap<u32, usize> = BTreeMap::new();
        for id in related.iter().flat_map(|&(part, _)| self.asked_in(part, wanted, ANY)) {
            *parts_with.entry(id).or_default() += 1;
        }
        parts_with.into_iter().filter(|(_, parts)| are_most(*parts)).map(|(id, _)| id).collect()
    }

    /// Returns by part its share of the pairs of neighbouring terms of the user's that hardly any part has: "line 85",
    /// `test_discount[37]`, "Ann Meyer". Of 60 such names in 50,000 tokens, each half of which is common, 48 are lost at a tenth without
    /// those of words, with them 14.
    fn rare_pairs<I: Iterator<Item = u32>>(&self, parts: impl Fn() -> I, wanted: &Wanted) -> BTreeMap<u32, f32> {
        let is_asked = |id: u32| wanted.has(id, USERS);
        let users = |document: &Document| document.asks > 0.0 && document.author == Author::User;
        let mut having: BTreeMap<(u32, u32), Vec<u32>> = BTreeMap::new();
        for (position, _) in self.documents.iter().enumerate().filter(|(_, document)| users(document)) {
            neighbours(&self.numbers[self.mentions(position)], 2, is_asked, |pair| {
                having.insert(pair, Vec::new());
            });
        }
        if having.is_empty() {
            return BTreeMap::new();
        }
        for part in parts() {
            neighbours(mentioned(&self.numbers, &self.ends, part as usize), 1, is_asked, |pair| {
                let parts =
                    having.get_mut(&pair).filter(|parts| parts.len() <= MIN_ANSWERS && parts.last() != Some(&part));
                if let Some(parts) = parts {
                    parts.push(part);
                }
            });
        }
        let mut shares: BTreeMap<u32, f32> = BTreeMap::new();
        for (pair, parts) in having.into_iter().filter(|(_, parts)| parts.len() <= MIN_ANSWERS) {
            let weight = wanted.sum(&[pair.0, pair.1], USERS);
            for part in parts {
                *shares.entry(part).or_default() += weight;
            }
        }
        let most = shares.values().copied().fold(f32::MIN_POSITIVE, f32::max);
        shares.into_iter().map(|(part, share)| (part, share / most)).collect()
    }
}

/// Calls `found` with the pairs of asked terms with fewer than `apart` asked ones between them, in either order.
fn neighbours(mentions: &[u32], apart: usize, is_asked: impl Fn(u32) -> bool, mut found: impl FnMut((u32, u32))) {
    let mut last = [None; 2];
    for &id in mentions.iter().filter(|id| is_asked(**id)) {
        last[..apart].iter().flatten().for_each(|&before: &u32| found((id.min(before), id.max(before))));
        last = [Some(id), last[0]];
    }
}
