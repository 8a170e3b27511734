//! Converts a draft for the selector: its texts as documents, and groups and blocks for those that may go.

use std::borrow::Cow;
use std::collections::HashMap;
use std::iter::Peekable;
use std::ops::Range;
use std::sync::Arc;
use std::{slice, vec};

use crate::conversation::Group;
use crate::message::Role;
use crate::select::scoring::{Author, Document};
use crate::select::selector::{Block, FIRST_MARK, Frame};
use crate::select::{Mechanism, is_on};
use crate::text::analysis::{Analysis, Form};
use crate::text::bytes::lines;
use crate::text::commitments::{Certainty, Commitment};
use crate::text::envelope::{blank_host_notes, heading};
use crate::text::estimate::count;
use crate::text::excerpt::is_fence;
use crate::text::rules::{Claim, Said};
use crate::text::sentences::last_sentences;
use crate::tokens::Tokens;
use crate::tools::Effect;

use super::candidates::Candidate;
use super::draft::{Draft, Piece, Slot};
use super::protection::{Protection, Tier};
use super::said::{At, Users, author};
use super::striking::striking;

/// Messages in words up to this stay or go whole: part of an answer seldom helps.
pub const WHOLE_TOKENS: Tokens = Tokens(400);

/// Messages in words up to this are not cut around a sentence: a rule, or an answer.
pub const SHORT_TOKENS: Tokens = Tokens(60);

/// How much the request is about the names in the newest group, and in the words and calls of the messages before it.
const IN_NEWEST: f32 = 0.7;
const NEAR_NEWEST: f32 = 0.3;
const NEAR: usize = 6;

/// A draft as the selector sees it.
#[derive(Default)]
pub struct Documents {
    pub documents: Vec<Document>,
    /// By document: its place in the draft.
    pub places: Vec<Place>,
    /// By group.
    pub frames: Vec<Frame>,
    /// By candidate.
    pub blocks: Vec<Block>,
    /// Sentences of the user that hold from then on, in order.
    pub claims: Vec<Stated>,
    /// Sentences in which the model commits itself, in order.
    pub commitments: Vec<(Certainty, Span)>,
    /// By group: estimated tokens that the user typed.
    pub typed: Vec<f32>,
    /// The share of these above which claims are usual.
    pub often: f32,
    /// See [`Users::are_many`].
    pub are_many: bool,
    /// Blocks and parts that have what the request asks for by name, then what the model announces: most of it first,
    /// then newest first.
    pub asked_for: Vec<(usize, usize)>,
    /// Entries with short texts of that kind, whose groups stay whole or not at all, newest first.
    pub asked_whole: Vec<usize>,
}

/// A sentence of the user that holds from then on.
#[derive(Debug, Clone)]
pub struct Stated {
    pub claim: Claim,
    pub said: Span,
    /// The question that it answers.
    pub question: Option<Span>,
}

/// A part of a text.
#[derive(Debug, Clone)]
pub struct Span {
    pub group: usize,
    pub place: Place,
    pub range: Range<usize>,
}

/// The place of a document in the draft, and its block if it may be cut.
#[derive(Debug, Clone, Copy)]
pub struct Place {
    pub entry: usize,
    pub piece: usize,
    pub block: Option<usize>,
}

impl Documents {
    /// Splits every text of the draft; O(n) in those that are new.
    pub fn of(draft: &Draft<'_, '_>, protection: &Protection, candidates: &[Candidate]) -> Self {
        let mut builder = Builder::new(draft, protection, candidates);
        for (position, group) in protection.groups.iter().enumerate() {
            builder.add_group(position, *group);
        }
        let Builder { mut documents, mut cuts_of, .. } = builder;
        if is_on(Mechanism::Relevance) {
            if let Some(question) = protection.question {
                documents.find_asked_for(draft, question, &mut cuts_of);
            }
            let mut newest = protection.tier(Tier::Newest);
            if let Some((_, announcing)) = newest.find(|(_, group)| group.role == Role::Assistant) {
                documents.find_announced(draft, announcing.start);
            }
            documents.find_referred_to(draft, protection);
        }
        documents
    }
}

/// Builds the documents group by group.
struct Builder<'r, 'v, 'a> {
    draft: &'r Draft<'v, 'a>,
    protection: &'r Protection,
    /// The first entry of the newest group.
    newest: usize,
    /// Not yet consumed, like `said`.
    candidates: Peekable<slice::Iter<'r, Candidate>>,
    said: Peekable<vec::IntoIter<(At, Said)>>,
    commitments: Peekable<vec::IntoIter<(At, Commitment)>>,
    questions: Peekable<vec::IntoIter<(At, Range<usize>, At)>>,
    /// Those that were read, by their answers.
    asked: HashMap<At, Span>,
    /// By group: how much its short results stand out.
    strikes: Vec<f32>,
    /// What the model said last, in a talk with one user, who goes on from its end: its last sentences may stay without the rest.
    answered: Option<usize>,
    /// Claims for which a text is cut around their sentence.
    rare: Vec<Claim>,
    documents: Documents,
    /// By document: where it is cut.
    cuts_of: Vec<Vec<usize>>,
}

impl<'r, 'v, 'a> Builder<'r, 'v, 'a> {
    fn new(draft: &'r Draft<'v, 'a>, protection: &'r Protection, candidates: &'r [Candidate]) -> Self {
        let Users { said, questions, commitments, rare, often, are_many } = Users::of(draft, protection);
        Self {
            draft,
            protection,
            newest: protection.tier(Tier::Newest).next().map_or(draft.entries.len(), |(_, group)| group.start),
            candidates: candidates.iter().peekable(),
            said: said.into_iter().peekable(),
            commitments: commitments.into_iter().peekable(),
            questions: questions.into_iter().peekable(),
            asked: HashMap::new(),
            strikes: striking(draft, &protection.groups),
            answered: protection
                .answered(draft)
                .filter(|_| !are_many && protection.is_asked_now())
                .map(|group| protection.groups[group].start),
            rare,
            documents: Documents { often, are_many, ..Documents::default() },
            cuts_of: Vec::new(),
        }
    }

    fn add_group(&mut self, position: usize, group: Group) {
        self.documents.frames.push(Frame {
            tokens: 0.0,
            line_tokens: 0.0,
            may_go: self.protection.tiers[position].is_some(),
            documents: Vec::new(),
            is_talk: Protection::is_talk(self.draft, group),
            age: count(self.draft.entries.len() - group.start),
            answer: None,
            is_answer: false,
            strikes: self.strikes[position],
        });
        self.documents.typed.push(0.0);
        let entries = &self.draft.entries;
        for entry in (group.start..group.end).filter(|&entry| entries[entry].dropped.is_none()) {
            self.documents.frames[position].tokens += entries[entry].fixed_tokens.as_f32();
            for piece in 0..entries[entry].pieces.len() {
                self.add_piece(position, entry, piece);
            }
        }
    }

    fn add_piece(&mut self, group: usize, entry: usize, piece: usize) {
        let candidate = self.candidates.next_if(|candidate| (candidate.entry, candidate.piece) == (entry, piece));
        let place = Place { entry, piece, block: candidate.map(|_| self.documents.blocks.len()) };
        let cuts = self.add_claims(group, place);
        let document = self.add_document(group, place, candidate, cuts);
        let tokens = self.draft.entries[entry].pieces[piece].tokens;
        let frame = &mut self.documents.frames[group];
        frame.tokens += candidate.map_or(tokens, |candidate| candidate.floor).as_f32();
        let Some(candidate) = candidate else {
            frame.documents.extend(document.map(|(document, _)| document));
            return;
        };
        self.documents.blocks.push(Block {
            document: document.map(|(document, _)| document),
            group,
            full: candidate.full.as_f32(),
            shortest: candidate.floor.as_f32(),
            weight: candidate.weight,
            mark: FIRST_MARK,
            is_bundle: tokens <= WHOLE_TOKENS
                && document.is_some_and(|(document, form)| {
                    let is_mail = || self.documents.documents[document].analysis.is_mail();
                    let is_users = self.draft.entries[entry].role == Role::User;
                    let may_be = if self.draft.is_result(entry) { is_mail() } else { is_users };
                    may_be && matches!(form, Form::Outlined | Form::Stated)
                }),
            answer: None,
        });
    }

    /// Adds what the user claims in a text, or the question that the user answers; returns where it is to be cut for that.
    fn add_claims(&mut self, group: usize, place: Place) -> Vec<usize> {
        let Place { entry, piece, .. } = place;
        let text = self.draft.text(entry, piece);
        let mut of_model = Vec::new();
        while let Some((_, Commitment { certainty, range, .. })) =
            self.commitments.next_if(|(at, _)| *at == (entry, piece))
        {
            of_model.push(range.clone());
            self.documents.commitments.push((certainty, Span { group, place, range }));
        }
        while let Some((_, range, answer)) = self.questions.next_if(|(at, ..)| *at == (entry, piece)) {
            of_model.push(range.clone());
            self.asked.insert(answer, Span { group, place, range });
        }
        if self.answered == Some(entry) && self.draft.entries[entry].pieces[piece].tokens > SHORT_TOKENS {
            of_model.extend(last_sentences(text));
            of_model.sort_unstable_by_key(|range| range.start);
        }
        if !of_model.is_empty() {
            return cuts(text, of_model.into_iter());
        }
        let said = self.said.next_if(|(at, _)| *at == (entry, piece));
        let Some((_, Said { claims, typed_bytes, .. })) = said else { return Vec::new() };
        let tokens = self.draft.entries[entry].pieces[piece].tokens.as_f32();
        self.documents.typed[group] += tokens * count(typed_bytes) / count(text.len().max(1));
        let cuts = cuts(text, claims.iter().filter(|(claim, _)| self.rare.contains(claim)).map(|(_, at)| at.clone()));
        for (claim, range) in claims {
            let question = self.asked.remove(&(entry, piece));
            if let Some(Span { group: asking, place, .. }) = &question {
                let answer = match place.block {
                    Some(block) => &mut self.documents.blocks[block].answer,
                    None => &mut self.documents.frames[*asking].answer,
                };
                *answer = Some(group);
                self.documents.frames[group].is_answer = claim == Claim::Answer;
            }
            self.documents.claims.push(Stated { claim, said: Span { group, place, range }, question });
        }
        cuts
    }

    /// Adds the document of a piece, where it has one; returns its index and form.
    fn add_document(
        &mut self,
        group: usize,
        place: Place,
        candidate: Option<&Candidate>,
        cuts: Vec<usize>,
    ) -> Option<(usize, Form)> {
        let Place { entry: index, piece, .. } = place;
        let (entry, tier) = (&self.draft.entries[index], self.protection.tiers[group]);
        let piece = &entry.pieces[piece];
        let text = self.draft.text(index, place.piece);
        let author = author(piece, entry, text)?;
        let form = form(author, piece.tokens, candidate, !cuts.is_empty());
        let cuts = if form == Form::Stated { cuts } else { Vec::new() };
        let is_question = Some(index) == self.protection.question && author == Author::User;
        let read = if is_question { blank_host_notes(text) } else { Cow::Borrowed(text) };
        let analysis = analysed(&read, author, form, &cuts);
        let is_words = matches!(author, Author::User | Author::Assistant) && !analysis.is_material();
        let is_near = is_words || author == Author::Call || index >= self.newest;
        self.documents.documents.push(Document {
            message: index,
            author,
            effect: effect(self.draft, index, piece),
            stays: tier.is_none() || tier == Some(Tier::Newest),
            asks: if is_near { asks(index, entry.role, self.protection, self.newest) } else { 0.0 },
            analysis,
        });
        self.documents.places.push(place);
        self.cuts_of.push(cuts);
        Some((self.documents.documents.len() - 1, form))
    }
}

/// Returns how much the request is about what a message names.
fn asks(index: usize, role: Role, protection: &Protection, newest: usize) -> f32 {
    match role {
        _ if Some(index) == protection.question => 1.0,
        Role::System => 0.0,
        _ if index >= newest => IN_NEWEST,
        _ if index + NEAR >= newest => NEAR_NEWEST,
        _ => 0.0,
    }
}

/// Returns what the tool does whose arguments or result a piece is, by its name: the trees were fitted to that. By what the call
/// did, recall at 25, 50, 75 % goes from .765/.900/.982 to .762/.899/.981.
fn effect(draft: &Draft<'_, '_>, entry: usize, piece: &Piece) -> Option<Effect> {
    if draft.entries[entry].role == Role::User && draft.is_result(entry) {
        return Some(draft.entries[entry].effect).filter(|effect| *effect != Effect::Unknown);
    }
    let call = match piece.slot {
        Slot::Arguments(position) => draft.message(entry)?.tool_calls.get(position),
        _ => draft.call(entry),
    };
    Some(Effect::of(call?.name.as_ref()?.as_str()))
}

/// Returns where some sentences of a text begin and end, in order; with the fences around a line, which would open or close
/// something else without it.
pub fn cuts(text: &str, sentences: impl Iterator<Item = Range<usize>>) -> Vec<usize> {
    let behind_spaces = |at: usize| at + text[at..].len() - text[at..].trim_start_matches(' ').len();
    let first = |at: usize| {
        let at = behind_spaces(at);
        let before = text[..at].strip_suffix('\n').map(|before| before.rfind('\n').map_or(0, |end| end + 1)..at);
        before.filter(|line| is_fence(&text[line.clone()])).map_or(at, |line| line.start)
    };
    let last = |at: usize| {
        let at = behind_spaces(at);
        let at = if text[..at].ends_with('\n') { at } else { at + usize::from(text[at..].starts_with('\n')) };
        // Only there: to the end of a line of many sentences it is far from each.
        let line = if text[..at].ends_with('\n') { lines(&text[at..]).next() } else { None };
        at + line.filter(|line| is_fence(line)).map_or(0, str::len)
    };
    let mut cuts: Vec<usize> = sentences.flat_map(|at| [first(at.start), last(at.end)]).collect();
    // Between two sentences there may be one fence.
    cuts.sort_unstable();
    cuts.dedup();
    cuts
}

/// Returns the analysis of a text, with further cuts; what says before the user's words who speaks, or when, stays with any of them.
pub fn analysed(text: &str, author: Author, form: Form, cuts: &[usize]) -> Arc<Analysis> {
    let heading = if author == Author::User { heading(text) } else { 0 };
    Analysis::cut_at(text, form, cuts, heading)
}

fn form(author: Author, tokens: Tokens, candidate: Option<&Candidate>, is_cut: bool) -> Form {
    match (author, candidate) {
        (Author::System, _) => Form::Dated,
        (_, None) => Form::Whole,
        (Author::Call, Some(candidate)) if candidate.by_members => Form::Members,
        (Author::Call, _) => Form::Arguments,
        (Author::User | Author::Assistant, _) if tokens > SHORT_TOKENS && is_cut => Form::Stated,
        (Author::User | Author::Assistant, _) if tokens <= WHOLE_TOKENS => Form::Whole,
        _ => Form::Outlined,
    }
}
