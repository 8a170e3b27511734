//! Rates the relevance of parts and messages to the current question.

use crate::text::estimate::count;
use crate::text::stop_words::is_stop_word;

use super::super::facts::QueryMatch;
use super::{Author, Scoring, mentioned};

/// BM25's `k1` and `b`. Source: Robertson and Zaragoza, "The Probabilistic Relevance Framework" (2009), section 3.
const K1: f32 = 1.2;
const B: f32 = 0.75;

/// Share of a message's relevance for its neighbours, by distance: a talk stays at a subject.
const BESIDE: [f32; 5] = [0.8, 0.7, 0.6, 0.5, 0.4];
/// Weight of the most relevant neighbourhood against the most relevant single message, which may be anywhere.
const TOGETHER: f32 = 0.75;

/// Relevance that each term of a result's part takes from the others.
const LENGTH: f32 = 0.02;

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
