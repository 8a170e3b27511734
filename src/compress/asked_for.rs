//! Finds the parts of a conversation that answer the last message of the user: those that have its rare terms.

use std::collections::HashMap;
use std::ops::Range;
use std::sync::Arc;

use crate::select::Asked;
use crate::select::scoring::{Author, asks_for_nothing};
use crate::text::analysis::{Analysis, Form};
use crate::text::segments::Kind;
use crate::text::sentences::sentences;
use crate::text::terms::{ShortTerm, scan};

use super::documents::{Documents, Place, SHORT_TOKENS, WHOLE_TOKENS, cuts};
use super::draft::Draft;

/// Most messages with a term for it to be asked for, the question among them.
const RARELY: usize = 3;

/// In a short conversation, at most one of so many messages.
const OF_MESSAGES: usize = 4;

/// A request with more such terms is a task, not a question.
const MOST_TERMS: usize = 16;

/// A term in more parts is the subject of the conversation.
const MOST_PARTS: usize = 4;

impl Documents {
    /// Finds the parts that have what the message `question` asks for by name. `cuts_of` has the cuts of each document.
    /// O(terms), and O(bytes) of the texts with such a term.
    pub(super) fn find_asked_for(&mut self, draft: &Draft<'_, '_>, question: usize, cuts_of: &[Vec<usize>]) {
        let rare = self.rare_terms(draft.entries.len(), question);
        if rare.is_empty() || rare.len() > MOST_TERMS {
            return;
        }
        let asked = Asked::of(rare.iter().copied());
        let mut found = Vec::new();
        for (document, cuts) in cuts_of.iter().enumerate() {
            let of = &self.documents[document];
            let is_said = matches!(of.author, Author::User | Author::Assistant);
            let Some(block) = self.places[document].block.filter(|_| !of.stays && of.message != question) else {
                continue;
            };
            // The output of a program is weighed by its lines.
            let may_answer = match of.author {
                Author::User | Author::Assistant | Author::Call => true,
                Author::Result => matches!(of.analysis.kind(), Some(Kind::Plain | Kind::Code)),
                Author::System => false,
            };
            if !may_answer || !of.analysis.terms.iter().any(|&term| asked.contains(term)) {
                continue;
            }
            let Place { entry, piece, .. } = self.places[document];
            let tokens = draft.entries[entry].pieces[piece].tokens;
            if is_said && tokens > SHORT_TOKENS {
                let Some(analysis) = cut_around(draft.text(entry, piece), &asked, cuts) else { return };
                self.documents[document].analysis = analysis;
                self.blocks[block].is_bundle |= tokens <= WHOLE_TOKENS;
            }
            let analysis = &self.documents[document].analysis;
            for (part, (_, range)) in analysis.ranges().enumerate() {
                let terms = &analysis.terms[range];
                let has = rare.iter().filter(|term| terms.contains(term)).count();
                found.extend((has * 2 >= rare.len()).then_some((has, block, part)));
            }
        }
        if found.len() > MOST_PARTS {
            return;
        }
        found.sort_unstable_by(|one, other| other.cmp(one));
        self.asked_for = found.into_iter().map(|(_, block, part)| (block, part)).collect();
    }

    /// Returns the terms of the question that are rare in the other messages.
    fn rare_terms(&self, all_messages: usize, question: usize) -> Vec<ShortTerm> {
        let of_question = self.documents.iter().filter(|document| document.message == question);
        let terms = of_question.flat_map(|document| document.analysis.terms.iter().copied());
        let asked = Asked::of(terms.filter(|&term| !asks_for_nothing(term)));
        let mut named: HashMap<ShortTerm, (usize, usize)> = HashMap::new();
        for document in self.documents.iter().filter(|document| document.author != Author::System) {
            for &term in document.analysis.terms.iter().filter(|&&term| asked.contains(term)) {
                let (messages, last) = named.entry(term).or_insert((0, usize::MAX));
                *messages += usize::from(*last != document.message);
                *last = document.message;
            }
        }
        let most = RARELY.min(all_messages / OF_MESSAGES);
        let is_rare = |messages: usize| (2..=most).contains(&messages);
        named.into_iter().filter(|&(_, (messages, _))| is_rare(messages)).map(|(term, _)| term).collect()
    }
}

/// Returns a text cut at `known` places and around the sentences with what is asked for; `None` where that is its subject.
fn cut_around(text: &str, asked: &Asked, known: &[usize]) -> Option<Arc<Analysis>> {
    let mut starts = Vec::new();
    scan(text, |term, start| starts.extend(asked.contains(term.short()).then_some(start)));
    // The parts of an identifier come behind it.
    starts.sort_unstable();
    let has_one = |sentence: &Range<usize>| {
        let first = starts.partition_point(|&start| start < sentence.start);
        starts.get(first).is_some_and(|&start| start < sentence.end)
    };
    let having: Vec<Range<usize>> = sentences(text).filter(has_one).take(MOST_PARTS + 1).collect();
    if having.len() > MOST_PARTS {
        return None;
    }
    let mut cuts = cuts(text, having.into_iter());
    cuts.extend(known);
    cuts.sort_unstable();
    cuts.dedup();
    Some(Analysis::cut_at(text, Form::Stated, &cuts))
}
