//! Rates the record around a line that has what the user asks for: its name is of no use without its value.

use std::sync::Arc;

use crate::text::estimate::count;
use crate::text::segments::{self, Kind};
use crate::text::stop_words::is_stop_word;
use crate::text::terms::scan;

use super::relevance::Idf;
use super::{Author, Document, Scoring, mentioned};

/// Least share of what the user asks for in a part that brings its record.
pub const NAMED: f32 = 0.4;
/// Least share of what the best line has, and most such parts.
const AS_GOOD: f32 = 0.7;
const MAX_RECORDS: usize = 8;
/// Most parts whose lines are compared for that.
const MAX_ANSWERING: usize = 64;
/// A request with more words is a task, not a question.
pub const MOST_ASKED: usize = 24;

/// Shares of that part's relevance: for a part of its record that has other words of the question, for the part behind it and
/// how that fades further down, and for what stands above.
const WITH_OTHER_WORDS: f32 = 1.2;
const FOLLOWS: f32 = 1.0;
const FADES: f32 = 0.1;
const PRECEDES: f32 = 0.4;

impl Scoring {
    /// Returns whether a part may belong to a record of several parts.
    pub(super) fn has_records(&self, part: u32) -> bool {
        let Document { author, asks, ref analysis, .. } = self.documents[self.owner(part)];
        let kinds = [Kind::Log, Kind::Code, Kind::Html, Kind::Plain, Kind::Json];
        (asks == 0.0 || author == Author::Result) && analysis.kind().is_some_and(|kind| kinds.contains(&kind))
    }

    /// Returns how much a term counts among what is asked for.
    fn asked_weight(&self, id: u32, idf: &Idf) -> f32 {
        let fact = &self.facts[id as usize];
        if is_stop_word(fact.term) {
            return 0.0;
        }
        self.query_matches[id as usize].asked * idf.at(fact.mentions.into())
    }

    /// Returns how much of what is asked for the best line of a part has, where that begins, and its terms.
    fn best_line(&self, part: &str, idf: &Idf) -> (f32, usize, Vec<u32>) {
        let (mut best, mut start) = ((0.0, 0, Vec::new()), 0);
        for line in part.split_inclusive('\n') {
            let (mut sum, mut ids) = (0.0, Vec::new());
            scan(line, |term, _| {
                let id = self.terms.find(term.short(), &self.facts).ok();
                if let Some((id, weight)) =
                    id.map(|id| (id, self.asked_weight(id, idf))).filter(|(_, weight)| *weight > 0.0)
                {
                    sum += weight;
                    ids.push(id);
                }
            });
            if sum > best.0 {
                best = (sum, start, ids);
            }
            start += line.len();
        }
        best
    }

    /// Gives the records of the parts that answer best a share in their relevance: lines with other words of the question, and
    /// less and less what else follows. `text` returns that of a document. O(bytes of the texts with these parts).
    pub fn answer_with_records<'t>(&mut self, text: impl Fn(usize) -> &'t str) {
        let idf = Idf::of(self.ends.len());
        let mut answering = std::mem::take(&mut self.answering);
        answering.sort_by(|one, other| other.0.total_cmp(&one.0).then(other.1.cmp(&one.1)));
        answering.truncate(MAX_ANSWERING);
        let lines = answering.into_iter().map(|(relevance, part)| {
            let document = self.owner(part);
            let analysis = &self.documents[document].analysis;
            let at = part as usize - self.offsets[document].1;
            let range = analysis.byte_ranges().nth(at).map_or(0..0, |(_, range)| range);
            let (weight, line, own) = self.best_line(&text(document)[range.clone()], &idf);
            (weight, relevance, document, at, range.start + line, own)
        });
        let mut lines: Vec<_> = lines.collect();
        let best = lines.iter().map(|line| line.0).fold(0.0, f32::max);
        lines.retain(|line| line.0 >= best * AS_GOOD);
        if lines.len() > MAX_RECORDS {
            return;
        }
        for (_, relevance, document, at, line, own) in lines {
            let (first, analysis) = (self.offsets[document].1, Arc::clone(&self.documents[document].analysis));
            let is_json = analysis.kind() == Some(Kind::Json);
            let record = if is_json {
                analysis.json_record(at)
            } else {
                segments::record(text(document), line).map(|record| analysis.parts_in(&record).collect())
            };
            let Some(record) = record else { continue };
            self.relevance[first + at] = self.relevance[first + at].max(relevance);
            for mate in record.into_iter().filter(|&mate| mate != at) {
                let ids = mentioned(&self.numbers, &self.ends, first + mate);
                let is_other = |&id: &u32| self.asked_weight(id, &idf) > 0.0 && !own.contains(&id);
                let share = match (ids.iter().any(is_other), mate.checked_sub(at)) {
                    (true, _) => WITH_OTHER_WORDS,
                    (false, Some(behind)) => FOLLOWS / (1.0 + FADES * count(behind)),
                    // The members of an object are in any order.
                    (false, None) if is_json => FOLLOWS / (1.0 + FADES * count(at - mate)),
                    (false, None) => PRECEDES,
                };
                let of_mate = &mut self.relevance[first + mate];
                *of_mate = of_mate.max(relevance * share);
            }
        }
    }
}
