//! Rates parts and groups: their current worth and cost.

use crate::text::elision::NEAR_GAPS;
use crate::text::estimate::count;
use crate::text::segments::Class;

use super::super::queue::Choice;
use super::super::scoring::{ANSWERS, Author, Document, Scoring};
use super::{Selector, Unit};

/// The worth of a part; computed once, for parts are rated again and again.
#[derive(Clone, Copy, Default)]
pub struct Rating {
    /// Factor of the worth of its terms.
    pub named: f32,
    /// For its relevance, its class and its length.
    pub otherwise: f32,
}

/// What an error and an outlier of a text count, from 0 to 1: each less, the more there are.
#[derive(Clone, Copy, Default)]
pub struct Crowds {
    pub errors: f32,
    pub outliers: f32,
}

impl Rating {
    /// `is_bundle` says whether the parts stay or go together: see [`super::Block::is_bundle`].
    pub fn of(
        scoring: &Scoring,
        document: usize,
        (part, class): (usize, Class),
        crowds: Crowds,
        is_bundle: bool,
    ) -> Self {
        let Document { author, message, ref analysis, .. } = scoring.documents()[document];
        // A log or a table is rated like a result, whoever shows it, unless it is a short message.
        if matches!(author, Author::User | Author::Assistant) && (is_bundle || !analysis.is_material()) {
            let factor = match author {
                Author::User if scoring.is_repeated(document) => BARE_TURN,
                _ if scoring.says_little(document) => QUIET_TALK,
                _ => 1.0,
            };
            let length = (count(analysis.terms.len()) / SHORT_TALK).min(1.0);
            let is_users = author == Author::User && analysis.kind().is_none();
            // A message was said once, however it is split.
            let parts = if is_bundle { 1.0 } else { count(analysis.parts.len()).max(1.0) };
            let any = if is_users { USERS } else { 1.0 } * ANY_TALK * length / parts;
            return Self { named: NAMED_IN_TALK, otherwise: factor * (SAID * scoring.said(message) + any) };
        }
        let relevance = scoring.relevance(document, part);
        let (class, factor) = match class {
            _ if !scoring.has_classes() => (0.0, 1.0),
            Class::Error => (crowds.errors * STRIKING, 1.0),
            Class::Outlier => (crowds.outliers * STRIKING, 1.0),
            Class::NearError | Class::Header | Class::Cursor => (crowds.errors.min(crowds.outliers) * HELPFUL, 1.0),
            Class::Repeat | Class::Noise if !scoring.answers(document, part) => (0.0, QUIET),
            Class::Repeat | Class::Noise | Class::Plain | Class::Edge => (0.0, 1.0),
        };
        Self { named: factor, otherwise: (RELEVANCE * relevance + class) * factor }
    }

    /// Returns the rating of a part in a text of this weight; `more` is what its length adds, and that its result stands out.
    pub fn within(self, weight: f32, more: f32) -> Self {
        Self { named: weight * self.named, otherwise: weight * (self.otherwise + more) }
    }

    fn worth(self, named: f32) -> f32 {
        named * self.named + self.otherwise
    }
}

// What the following count against one term that the next step uses for certain. Found by trials on the recordings, in
// steps of two.
/// A token of a frame or of an attachment, of a result or a call, and of a message in words.
pub const FRAME: f32 = 0.02;
pub const TEXT: f32 = 0.004;
pub const TALK: f32 = 0.0004;
/// The relevance of a part of a result or a call.
const RELEVANCE: f32 = 0.2;
/// The relevance of what was said, what it names, and that it was said at all: once for a message, for with as much for each part
/// of a long one 10 of 20 statements of a line between answers of 2,000 characters stay in place of 20.
const SAID: f32 = 3.0;
const NAMED_IN_TALK: f32 = 0.001;
const ANY_TALK: f32 = 0.1;
/// Factor of the latter for what the user said in a message that stays or goes whole. Where two talk about as much, 71 of 80
/// statements of the user stay at 50 % in place of 35, and as much evidence of meetings.
const USERS: f32 = 2.0;
/// Terms of a message that says something; a shorter one says less in proportion. Or replies of three words crowd out sentences.
const SHORT_TALK: f32 = 8.0;
/// Factor of a message that says next to nothing.
const QUIET_TALK: f32 = 0.1;
/// Factor of what the user says again and again, "Continue.": taken where a mark would cost as much.
const BARE_TURN: f32 = 0.01;
/// Factor of repeats and noise.
const QUIET: f32 = 0.5;
/// Errors and outliers; what stands beside an error, and headers. With the ends of a log among the former, 110 messages stand in
/// place of 58 where 80 results have 12 % of their tokens: a call and the first line of its result each, and recall at 25, 50,
/// 75 % is .751, .909, .981 in place of .751, .911, .981.
pub const STRIKING: f32 = 0.5;
const HELPFUL: f32 = 0.1;
/// A short result that stands out among those of its tool.
const STRIKES: f32 = 1.5;
/// Errors and outliers of a text that count in full; if there are more, each counts less.
pub const CROWD: f32 = 8.0;
/// Decay of a token's worth with the messages behind it.
const AGING: f32 = 0.05;

/// Tokens of the mark for the first gap of a text.
pub const FIRST_MARK: f32 = 14.0;
/// The price of a later gap. Above its four tokens, or none between numbered lines, for lines that stand together say more:
/// with 4 and 9 the recall of future references is .760 and .744 at 25 % in place of .769, and .903 and .907 at 50 % for .903.
pub const GAP: f32 = 7.0;

impl Selector<'_> {
    /// Returns the worth of an item for a token, and its tokens; with its group's, if that is closed.
    pub(super) fn rate(&self, item: Choice) -> (f32, f32) {
        let (worth, tokens) = match item {
            Choice::Group(group) => (self.frame_worths[group as usize], self.frame_tokens(group as usize)),
            Choice::Unit(unit) => {
                let block = self.units[unit as usize].block as usize;
                let group = self.blocks[block].group;
                let (worth, tokens) = if self.blocks[block].is_bundle {
                    self.rate_bundle(block)
                } else {
                    (self.unit_worth(unit as usize), self.unit_tokens(unit as usize))
                };
                if self.is_open[group] {
                    (worth, tokens)
                } else {
                    (worth + self.frame_worths[group], tokens + self.frame_tokens(group))
                }
            }
        };
        (worth / tokens.max(0.5), tokens)
    }

    pub(super) fn frame_worth(&self, group: usize) -> f32 {
        let frame = &self.frames[group];
        let of_passage = |&document: &usize| {
            let named = self.scoring.worth(self.scoring.mentions(document));
            Rating::of(self.scoring, document, (0, Class::Plain), Crowds::default(), false).worth(named)
        };
        let documents: f32 = frame.documents.iter().map(of_passage).sum();
        // What answers stands out, too: no part of such a group can stay alone.
        let is_result = |document: &usize| self.scoring.documents()[*document].author == Author::Result;
        let results =
            frame.documents.iter().filter(|document| is_result(document) && !self.scoring.is_repeated(**document));
        let answers =
            results.map(|&document| self.scoring.relevance(document, 0) / ANSWERS).fold(0.0, f32::max).min(1.0);
        let strikes = (frame.strikes + answers) * STRIKES;
        documents + strikes + if frame.is_talk { 0.0 } else { FRAME } * recency(frame.age) * frame.tokens
    }

    /// Returns the tokens for opening a group: its frame less its line, and the change of notes beside it.
    pub(super) fn frame_tokens(&self, group: usize) -> f32 {
        let is_closed = |group: Option<usize>| group.and_then(|g| self.is_open.get(g)).is_some_and(|open| !open);
        let notes = usize::from(is_closed(group.checked_sub(1))) + usize::from(is_closed(group.checked_add(1)));
        let frame = &self.frames[group];
        frame.tokens - frame.line_tokens + (count(notes) - 1.0) * self.note / count(NEAR_GAPS)
    }

    fn rate_bundle(&self, block: usize) -> (f32, f32) {
        let units = self.ranges[block].clone().filter(|&unit| !self.units[unit].is_taken);
        let (mut worth, mut tokens) = (0.0, 0.0);
        for unit in units {
            worth += self.unit_worth(unit);
            tokens += self.units[unit].tokens;
        }
        // A message is relevant as a whole, however it is split; a mail in as many parts as are.
        let parts = if self.is_mail(block) { 1.0 } else { count(self.ranges[block].len()) };
        (worth / parts, if self.taken[block] == 0 { tokens - self.blocks[block].shortest } else { tokens - GAP })
    }

    pub(super) fn unit_worth(&self, unit: usize) -> f32 {
        let Unit { ref mentions, rating, .. } = self.units[unit];
        rating.worth(self.scoring.worth(mentions.start as usize..mentions.end as usize))
    }

    /// Returns the tokens for taking a part of an open group, marks included. With the first part of a text at its own tokens at
    /// least, recall of future references is .751 and .913 at 25 and 50 % in place of .749 and .910, and 230 of 7,197 cut results
    /// of coding agents hold no line of use in place of 362 of 7,382.
    pub(super) fn unit_tokens(&self, unit: usize) -> f32 {
        let Unit { block, tokens, is_fixed, .. } = self.units[unit];
        let (block, range) = (&self.blocks[block as usize], &self.ranges[block as usize]);
        let b = self.units[unit].block as usize;
        if range.len() == 1 {
            return tokens - block.shortest;
        }
        if self.taken[b] == 0 {
            let fixed = if is_fixed { self.fixed[b] - tokens } else { self.fixed[b] };
            // At least its own, though the mark that it replaces costs more: "    |" alone would stay of an error, for it costs nothing.
            return (tokens + fixed + block.mark - block.shortest).max(tokens);
        }
        if is_fixed {
            return 0.0;
        }
        let is_taken = |other: usize| self.units[other].is_taken || self.units[other].is_fixed;
        let left = unit == range.start || is_taken(unit - 1);
        let right = unit + 1 == range.end || is_taken(unit + 1);
        tokens + GAP * (1.0 - f32::from(u8::from(left)) - f32::from(u8::from(right)))
    }
}

/// Returns the share of its base worth that a group of this age has.
pub fn recency(age: f32) -> f32 {
    1.0 / (1.0 + age * AGING)
}
