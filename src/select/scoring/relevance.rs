//! Rates the relevance of parts and messages to the current question.

use std::collections::{BTreeMap, HashSet};

use crate::text::estimate::count;
use crate::text::stop_words::is_stop_word;
use crate::text::terms::{ShortTerm, TermKind};

use super::super::facts::{Fact, QueryMatch};
use super::records::{MOST_ASKED, NAMED};
use super::{Author, Document, Scoring, mentioned};

/// BM25's `k1` and `b`. Source: Robertson and Zaragoza, "The Probabilistic Relevance Framework" (2009), section 3.
const K1: f32 = 1.2;
const B: f32 = 0.75;

/// Share of a message's relevance for its neighbours, by distance: a talk stays at a subject.
const BESIDE: [f32; 5] = [0.8, 0.7, 0.6, 0.5, 0.4];
/// Weight of the most relevant neighbourhood against the most relevant single message, which may be anywhere.
const TOGETHER: f32 = 0.75;

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

/// Relevance that each term of a result's part takes from the others.
const LENGTH: f32 = 0.02;

/// Who asks for a term.
#[derive(Clone, Copy, Default)]
struct Asking {
    /// Mentions in texts that ask.
    mentions: u16,
    is_users: bool,
}

impl Scoring {
    /// Rates the `related` parts by the asked terms that they have, and these by their best part.
    pub(super) fn relate(&mut self, related: &[(u32, u32)]) -> Vec<QueryMatch> {
        let mut query_matches = vec![QueryMatch::default(); self.facts.len()];
        for (position, document) in self.documents.iter().enumerate().filter(|(_, document)| document.asks > 0.0) {
            for &id in &self.numbers[self.mentions(position)] {
                let query_match = &mut query_matches[id as usize];
                query_match.asked = query_match.asked.max(document.asks);
            }
        }
        self.relevance = vec![0.0; self.ends.len()];
        let idf = Idf::of(self.messages);
        for (query_match, fact) in
            query_matches.iter_mut().zip(&self.facts).filter(|(query_match, _)| query_match.asked > 0.0)
        {
            query_match.asked *= idf.at(fact.messages.into());
        }
        let mut seen = vec![u32::MAX; self.facts.len()];
        for &(part, terms) in related {
            let at = part as usize;
            let ids = mentioned(&self.numbers, &self.ends, at);
            let mut sum = 0.0;
            for &id in ids {
                let weight = query_matches[id as usize].asked;
                if weight > 0.0 && seen[id as usize] != part {
                    seen[id as usize] = part;
                    sum += weight;
                }
            }
            let relevance = 0.1 * sum / (1.0 + LENGTH * count(terms as usize));
            for &id in ids {
                let query_match = &mut query_matches[id as usize];
                query_match.relevance = query_match.relevance.max(relevance);
            }
            self.relevance[at] = relevance;
        }
        query_matches
    }

    /// Adds to each of the `related` parts its share of what is asked for, rare terms weighing more: it finds the one line with
    /// the order that is asked for in a list of orders. A request with many names asks for none.
    ///
    /// The share of names that few other parts have decides, of the user's own as a share of the most that a part has, or that of
    /// the user's rare words where a part has two of them ("Ann Meyer"), or of all together: in "And now, what should I look at?"
    /// a part with "look" answers little. A result asks for nothing: the newest would answer itself.
    pub(super) fn answer(&mut self, related: &[(u32, u32)]) {
        let mut asking = vec![Asking::default(); self.facts.len()];
        let asks = |document: &Document| document.asks > 0.0 && document.author != Author::Result;
        for (position, document) in self.documents.iter().enumerate().filter(|(_, document)| asks(document)) {
            for &id in &self.numbers[self.mentions(position)] {
                let Asking { mentions, is_users } = &mut asking[id as usize];
                *mentions = mentions.saturating_add(1);
                *is_users |= document.author == Author::User;
            }
        }
        // A part of a name that is one itself: a hash that the user shortened.
        let users_names =
            self.facts.iter().zip(&asking).filter(|(fact, asking)| asking.is_users && fact.term.kind().is_name());
        let names: HashSet<u64> = users_names.map(|(fact, _)| fact.term.hash()).collect();
        let is_name =
            |term: ShortTerm| term.kind().is_name() || term.kind() == TermKind::Part && names.contains(&term.hash());
        let (idf, most) = (Idf::of(self.ends.len()), (self.ends.len() / ANSWERS_IN).max(MIN_ANSWERS));
        // By term: its weight among all, among names, among the user's rare words, among all of the user's, and among names of the
        // user's that are hardly anywhere else.
        let weights = |((fact, query_match), asking): ((&Fact, &QueryMatch), &Asking)| {
            let has_answer = fact.mentions > asking.mentions && usize::from(fact.mentions) <= most;
            let is_asked = asking.mentions > 0 && !is_stop_word(fact.term);
            let weight = (query_match.asked * idf.at(fact.mentions.into())).max(0.0);
            let is_rare = asking.is_users && has_answer && usize::from(fact.mentions) <= most / 2;
            [
                asking.is_users || has_answer,
                has_answer && is_name(fact.term),
                is_rare,
                asking.is_users && fact.mentions > asking.mentions,
                asking.is_users
                    && is_name(fact.term)
                    && (1..=MIN_ANSWERS).contains(&usize::from(fact.mentions.saturating_sub(asking.mentions))),
            ]
            .map(|counts| if is_asked && counts { weight } else { 0.0 })
        };
        let weights: Vec<[f32; 5]> = self.facts.iter().zip(&self.query_matches).zip(&asking).map(weights).collect();
        // Every part with an asked term is related.
        let all = [0, 1, 2, 3].map(|of| weights.iter().map(|weight| weight[of]).sum::<f32>());
        let mut ids: Vec<u32> = Vec::new();
        // The terms of a part that have this weight, each once.
        let collect_asked = |ids: &mut Vec<u32>, part: u32, of: usize| {
            let of_part = mentioned(&self.numbers, &self.ends, part as usize);
            ids.clear();
            ids.extend(of_part.iter().filter(|&&id| weights[id as usize][of] > 0.0));
            ids.sort_unstable();
            ids.dedup();
        };
        let users = asking.iter().filter(|asking| asking.is_users).count();
        let (is_question, may_name) = (users <= MOST_ASKED, users <= MOST_NAMING);
        let answers = |part: u32| {
            let document = &self.documents[self.owners[part as usize] as usize];
            !asks(document) && document.author != Author::Call
        };
        let of_names = |ids: &[u32]| ids.iter().map(|&id| weights[id as usize][4]).sum::<f32>();
        // The most that a part has of the names: of several each is asked for on its own. A call names the file whose content
        // answers.
        let of_answers = || related.iter().map(|(part, _)| *part).filter(|part| answers(*part));
        let mut most_named = 0.0_f32;
        if may_name && weights.iter().any(|weight| weight[4] > 0.0) {
            for part in of_answers() {
                collect_asked(&mut ids, part, 4);
                most_named = most_named.max(of_names(&ids));
            }
        }
        // Where no name answers pairs do.
        let pairs = if may_name && most_named <= 0.0 { self.rare_pairs(of_answers, &weights) } else { BTreeMap::new() };
        for &(part, _) in related {
            collect_asked(&mut ids, part, 0);
            let of_most = if most_named > 0.0 { of_names(&ids) / most_named } else { 0.0 };
            let by_name = pairs.get(&part).copied().unwrap_or(of_most).min(1.0);
            let share = |of: usize| {
                ids.iter().map(|&id| weights[id as usize][of]).sum::<f32>() / all[of].max(f32::MIN_POSITIVE)
            };
            let having = |of: usize| ids.iter().filter(|&&id| weights[id as usize][of] > 0.0).count();
            let of_words = if having(2) > 1 { share(2) } else { 0.0 };
            let relevance = ANSWER * share(0).max(share(1)).max(of_words).max(by_name).powi(2);
            self.relevance[part as usize] += relevance;
            let of_users = share(3).max(of_words).max(by_name * NAMED);
            // One word may be in any line.
            let is_named = share(1) > 0.0 || having(3) > 1;
            if is_question && is_named && of_users >= NAMED && self.has_records(part) {
                self.answering.push((relevance.max(ANSWER * of_users.powi(2)), part));
            }
        }
    }

    /// Returns by part its share of the pairs of neighbouring terms of the user's that hardly any part has: "line 85",
    /// `test_discount[37]`. One of the two is no word, so that "let me know" is none. `weights` are those of [`Self::answer`].
    fn rare_pairs<I: Iterator<Item = u32>>(&self, parts: impl Fn() -> I, weights: &[[f32; 5]]) -> BTreeMap<u32, f32> {
        let is_asked = |id: u32| weights[id as usize][3] > 0.0;
        let is_word = |id: u32| {
            matches!(self.facts[id as usize].term.kind(), TermKind::Word | TermKind::LongWord | TermKind::Pair)
        };
        let users = |document: &Document| document.asks > 0.0 && document.author == Author::User;
        let mut having: BTreeMap<(u32, u32), Vec<u32>> = BTreeMap::new();
        for (position, _) in self.documents.iter().enumerate().filter(|(_, document)| users(document)) {
            neighbours(&self.numbers[self.mentions(position)], 2, is_asked, |pair| {
                if !(is_word(pair.0) && is_word(pair.1)) {
                    having.insert(pair, Vec::new());
                }
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
            let weight = weights[pair.0 as usize][3] + weights[pair.1 as usize][3];
            for part in parts {
                *shares.entry(part).or_default() += weight;
            }
        }
        let most = shares.values().copied().fold(f32::MIN_POSITIVE, f32::max);
        shares.into_iter().map(|(part, share)| (part, share / most)).collect()
    }

    /// Rates words by BM25 for the question, with their neighbours.
    pub(super) fn ask(&mut self, question: Option<usize>) {
        let mut asked = vec![false; self.facts.len()];
        let mut lengths = (0, 0_usize);
        for (position, document) in self.documents.iter().enumerate() {
            lengths = (lengths.0 + document.analysis.terms.len(), lengths.1 + 1);
            if Some(document.message) == question {
                for at in self.mentions(position) {
                    asked[self.numbers[at] as usize] = !is_stop_word(self.term(at));
                }
            }
        }
        let mean = count(lengths.0) / count(lengths.1.max(1));
        let idf = Idf::of(self.messages);
        let mut raw = vec![0.0_f32; self.messages];
        let mut found: Vec<u32> = Vec::new();
        for (position, document) in self.documents.iter().enumerate() {
            if !matches!(document.author, Author::User | Author::Assistant) || Some(document.message) == question {
                continue;
            }
            found.clear();
            found.extend(self.numbers[self.mentions(position)].iter().filter(|&&id| asked[id as usize]));
            found.sort_unstable();
            let length = count(document.analysis.terms.len()) / mean;
            for same in found.chunk_by(|a, b| a == b) {
                let frequency = count(same.len());
                let saturated = frequency * (K1 + 1.0) / (frequency + K1 * (1.0 - B + B * length));
                raw[document.message] += idf.at(self.facts[same[0] as usize].messages.into()) * saturated;
            }
        }
        let at = |index: Option<usize>| index.and_then(|index| raw.get(index)).copied().unwrap_or_default();
        let beside = |i: usize, step: usize| at(i.checked_sub(step)) + at(i.checked_add(step));
        self.said = (0..raw.len())
            .map(|i| raw[i] + (1..).zip(BESIDE).map(|(step, share)| share * beside(i, step)).sum::<f32>())
            .collect();
        let most = |all: &[f32]| all.iter().copied().fold(f32::MIN_POSITIVE, f32::max);
        let (alone, together) = (most(&raw), most(&self.said));
        for (said, raw) in self.said.iter_mut().zip(&raw) {
            *said = (TOGETHER * *said / together).max(raw / alone).powi(2);
        }
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

/// Inverse document frequency: of messages, or parts or groups of them.
pub struct Idf {
    documents: f32,
}

impl Idf {
    /// Returns that of so many documents.
    pub fn of(documents: usize) -> Self {
        Self { documents: count(documents) }
    }

    /// Returns that of a term which so many of them have.
    pub fn at(&self, with_term: usize) -> f32 {
        let with_term = count(with_term);
        (1.0 + (self.documents - with_term + 0.5) / (with_term + 0.5)).ln()
    }
}
