//! Selects the parts of a conversation that stay: the best worth for its tokens, until the room is used.
//!
//! Everything that may go is in groups of messages. A group has a frame (its tokens with all texts at their shortest) and
//! blocks, the texts with their parts. Parts are taken in order of worth per token. The cost of a part depends on its
//! neighbours: alone it needs a mark at either side, between two others it saves one; likewise for groups and the notes
//! between them. Its worth depends on what is taken, since a name need not stay twice. So the order is lazy: a part that is
//! worth less than when it was rated is rated again and put back.

mod rating;

use std::ops::Range;

use crate::checkpoint;
use crate::text::estimate::{count, index};
use crate::text::segments::Class;

use super::queue::{Choice, Queue};
use super::scoring::{Author, Document, LostName, Scoring};

pub use rating::{CROWD, FIRST_MARK};
use rating::{Crowds, FRAME, Rating, STRIKING, TALK, TEXT, recency};

/// A text that may be cut.
#[derive(Debug, Clone, Default)]
pub struct Block {
    /// Its document; `None` without text: then it stays or goes whole.
    pub document: Option<usize>,
    /// Its group.
    pub group: usize,
    /// Tokens of the text.
    pub full: f32,
    /// Tokens of its shortest form.
    pub shortest: f32,
    /// Factor of its parts' worth.
    pub weight: f32,
    /// Tokens of the mark for its first gap.
    pub mark: f32,
    /// Whether it is taken whole, except for parts that are taken by name.
    pub is_bundle: bool,
    /// The group that answers the question at its end in a few words: it stays with that question.
    pub answer: Option<usize>,
}

/// A group of messages that stay or go together.
#[derive(Debug, Clone, Default)]
pub struct Frame {
    /// Tokens of the group with all blocks at their shortest.
    pub tokens: f32,
    /// Tokens of the lines for the group if it is left out.
    pub line_tokens: f32,
    /// Whether the group may go.
    pub may_go: bool,
    /// Documents that no selection changes.
    pub documents: Vec<usize>,
    /// Whether it is a message in words rather than a call with its results.
    pub is_talk: bool,
    /// Messages from here to the end of the conversation.
    pub age: f32,
    /// As [`Block::answer`], for a message that stays whole if it stays.
    pub answer: Option<usize>,
    /// Whether it answers a question in a few words and says nothing else: it stays with that question only.
    pub is_answer: bool,
    /// How much its short results stand out among those of their tool, from 0 to 1.
    pub strikes: f32,
}

/// What stays of a block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kept {
    Whole,
    Some,
    Nothing,
}

/// A part that may be taken.
struct Unit {
    block: u32,
    mentions: Range<u32>,
    tokens: f32,
    rating: Rating,
    /// The unit that says whose it is: see [`crate::text::analysis::Analysis::parent`].
    parent: Option<u32>,
    is_fixed: bool,
    is_taken: bool,
}

/// Most parents of a unit that are paid for; the others come with it all the same.
const MAX_PARENTS: usize = 16;

/// With less room than this the search ends.
const LEAST: f32 = 4.0;

pub struct Selector<'s> {
    scoring: &'s mut Scoring,
    frames: Vec<Frame>,
    blocks: Vec<Block>,
    units: Vec<Unit>,
    /// By block: its units.
    ranges: Vec<Range<usize>>,
    /// By block: units taken, and tokens of fixed units.
    taken: Vec<usize>,
    fixed: Vec<f32>,
    /// By group.
    is_open: Vec<bool>,
    blocks_of: Vec<Range<usize>>,
    /// By group: worth of its frame at the start.
    frame_worths: Vec<f32>,
    /// Tokens of a note between groups; gaps near each other share one.
    note: f32,
    /// Tokens of everything that stays.
    used: f32,
    /// What was taken, in order, with tokens.
    log: Vec<(Choice, f32)>,
    /// By group: whether it has changed since [`Selector::changed`] was last called.
    is_changed: Vec<bool>,
    /// The queue of [`Selector::grow_all`], and what did not fit or was given up since.
    queue: Option<Queue>,
    left: Vec<Choice>,
    /// Length of the settled start of the log.
    settled: usize,
}

/// Adds the units of a block: one for each part, or one for a block without text.
fn push_units(units: &mut Vec<Unit>, scoring: &Scoring, frame: &Frame, (b, block): (usize, &Block)) {
    let first = units.len();
    let unit = |mentions: Range<usize>, tokens: f32, rating: Rating, parent: Option<usize>, is_fixed: bool| Unit {
        block: index(b),
        mentions: index(mentions.start)..index(mentions.end),
        tokens,
        rating,
        parent: parent.map(|parent| index(first + parent)),
        is_fixed,
        is_taken: false,
    };
    let Some(document) = block.document else {
        let rating = Rating { named: 0.0, otherwise: block.weight * FRAME * block.full };
        units.push(unit(0..0, block.full, rating, None, false));
        return;
    };
    let token_worth = if frame.is_talk { TALK } else { TEXT } * recency(frame.age);
    let analysis = &scoring.documents()[document].analysis;
    let parts = &analysis.parts;
    let bytes: u32 = parts.iter().map(|part| part.bytes).sum();
    let for_byte = block.full / count(bytes as usize).max(1.0);
    let crowd = |class: Class| {
        let alike = parts.iter().filter(|part| part.class == class).count();
        (CROWD / count(alike).max(1.0)).min(1.0)
    };
    let crowds = Crowds { errors: crowd(Class::Error), outliers: crowd(Class::Outlier) };
    let author = scoring.documents()[document].author;
    let (is_result, is_users) = (author == Author::Result, author == Author::User);
    let strikes = if is_result { frame.strikes * STRIKING } else { 0.0 };
    let parts = parts.iter().zip(scoring.mentions_by_part(document)).enumerate();
    units.extend(parts.map(|(i, (part, mentions))| {
        let parent = analysis.parent(i);
        let tokens = count(part.bytes as usize) * for_byte;
        if is_users && part.is_fixed {
            // Who speaks, or when, says nothing alone.
            return unit(mentions, tokens, Rating::default(), parent, true);
        }
        let rating = Rating::of(scoring, document, (i, part.class), crowds, block.is_bundle);
        unit(mentions, tokens, rating.within(block.weight, tokens * token_worth + strikes), parent, part.is_fixed)
    }));
}

impl<'s> Selector<'s> {
    /// Starts with an empty selection. `blocks` are in the order of their groups.
    pub fn new(scoring: &'s mut Scoring, frames: Vec<Frame>, blocks: Vec<Block>, note: f32) -> Self {
        let parts =
            |block: &Block| block.document.map_or(1, |document| scoring.documents()[document].analysis.parts.len());
        let mut units = Vec::with_capacity(blocks.iter().map(parts).sum());
        let (mut ranges, mut fixed) = (Vec::new(), Vec::new());
        let mut blocks_of = vec![0..0; frames.len()];
        for (b, block) in blocks.iter().enumerate() {
            let first = units.len();
            push_units(&mut units, scoring, &frames[block.group], (b, block));
            let new = &units[first..];
            fixed.push(new.iter().filter(|unit| unit.is_fixed).map(|unit| unit.tokens).sum());
            ranges.push(first..units.len());
            let of_group = &mut blocks_of[block.group];
            *of_group = if of_group.start == of_group.end { b..b + 1 } else { of_group.start..b + 1 };
        }
        let is_open: Vec<bool> = frames.iter().map(|frame| !frame.may_go).collect();
        let is_changed = is_open.iter().map(|open| !open).collect();
        let runs = is_open.chunk_by(|a, b| a == b).filter(|run| !run[0]).count();
        let mut this = Self {
            taken: vec![0; blocks.len()],
            used: count(runs) * note
                + frames.iter().filter(|frame| frame.may_go).map(|frame| frame.line_tokens).sum::<f32>(),
            scoring,
            frames,
            blocks,
            units,
            ranges,
            fixed,
            is_open,
            blocks_of,
            note,
            log: Vec::new(),
            is_changed,
            queue: None,
            left: Vec::new(),
            settled: 0,
            frame_worths: Vec::new(),
        };
        this.frame_worths = (0..this.frames.len()).map(|group| this.frame_worth(group)).collect();
        this
    }

    /// Returns the groups that have changed since the last call, at first all that may go.
    pub fn changed(&mut self) -> Vec<usize> {
        let groups = 0..self.is_changed.len();
        groups.filter(|&group| std::mem::take(&mut self.is_changed[group])).collect()
    }

    /// See [`Scoring::lost`].
    pub fn lost(&self, min_worth: f32) -> Vec<LostName> {
        self.scoring.lost(min_worth)
    }

    /// See [`Scoring::cover_text`].
    pub fn cover_text(&mut self, text: &str) {
        self.scoring.cover_text(text);
    }

    /// See [`Scoring::is_covered`].
    pub fn is_covered(&self, mention: usize) -> bool {
        self.scoring.is_covered(mention)
    }

    /// See [`Scoring::is_text_covered`].
    pub fn is_text_covered(&self, text: &str) -> bool {
        self.scoring.is_text_covered(text)
    }

    /// See [`Scoring::stays_named`].
    pub fn stays_named(&self, mention: usize) -> bool {
        self.scoring.stays_named(mention)
    }

    /// Returns a document.
    pub fn document(&self, document: usize) -> &Document {
        &self.scoring.documents()[document]
    }

    /// Returns whether a message in words says next to nothing: see [`Scoring::says_little`].
    pub fn says_little(&self, group: usize) -> bool {
        let of_blocks = self.blocks(group).filter_map(|block| self.blocks[block].document);
        of_blocks.chain(self.frames[group].documents.iter().copied()).all(|document| self.scoring.says_little(document))
    }

    /// Returns the blocks of a group.
    pub fn blocks(&self, group: usize) -> Range<usize> {
        self.blocks_of[group].clone()
    }

    /// Returns whether a group is taken with all of its blocks whole.
    pub fn is_whole(&self, group: usize) -> bool {
        self.is_open(group) && self.blocks(group).all(|block| matches!(self.kept(block), Kept::Whole))
    }

    /// Settles the current selection; [`Self::shrink`] cannot undo it.
    pub fn settle(&mut self) {
        self.settled = self.log.len();
    }

    /// Unsettles everything.
    pub fn unsettle(&mut self) {
        self.settled = 0;
    }

    /// Returns whether the whole selection is settled.
    pub fn is_settled(&self) -> bool {
        self.log.len() == self.settled
    }

    /// Returns whether a group stays.
    pub fn is_open(&self, group: usize) -> bool {
        self.is_open[group]
    }

    /// Returns what stays of a block if its group stays.
    pub fn kept(&self, block: usize) -> Kept {
        match self.taken[block] {
            0 => Kept::Nothing,
            taken if taken == self.ranges[block].len() => Kept::Whole,
            _ => Kept::Some,
        }
    }

    /// Returns whether a part of a block stays.
    pub fn stays(&self, block: usize, part: usize) -> bool {
        let unit = &self.units[self.ranges[block].start + part];
        unit.is_taken || (unit.is_fixed && self.taken[block] > 0)
    }

    /// Returns the estimated tokens of everything that stays.
    pub fn used(&self) -> f32 {
        self.used
    }

    /// Takes a group with its texts at their shortest.
    pub fn take_frame(&mut self, group: usize) {
        if !self.is_open[group] {
            self.open(group);
        }
    }

    /// Uses tokens for what is no group.
    pub fn reserve(&mut self, tokens: f32) {
        self.used += tokens;
    }

    /// Returns the number of parts of a block.
    pub fn parts(&self, block: usize) -> usize {
        self.ranges[block].len()
    }

    /// Takes a group with all of its blocks.
    pub fn take_whole(&mut self, group: usize) {
        self.take_frame(group);
        for block in self.blocks_of[group].clone() {
            self.take_block(block);
        }
    }

    /// Takes a block with all of its parts, and its group.
    pub fn take_block(&mut self, block: usize) {
        self.take_frame(self.blocks[block].group);
        for unit in self.ranges[block].clone() {
            if !self.units[unit].is_taken {
                self.take(unit);
            }
        }
    }

    /// Takes a part of a block, and its group.
    pub fn take_part(&mut self, block: usize, part: usize) {
        let unit = self.ranges[block].start + part;
        self.take_frame(self.blocks[block].group);
        if !self.units[unit].is_taken {
            self.take(unit);
        }
    }

    /// Takes the best worth for its tokens from the groups that `may` picks, as long as it fits `room`.
    pub fn grow(&mut self, room: f32, may: impl Fn(usize) -> bool) {
        let mut queue = Queue::default();
        for group in 0..self.frames.len() {
            if may(group) {
                self.push_group(group, &mut queue);
            }
        }
        self.take_from(&mut queue, room);
    }

    /// As [`Selector::grow`] for all groups; continues when called again with more room.
    pub fn grow_all(&mut self, room: f32) {
        let mut queue = self.queue.take().unwrap_or_else(|| {
            let mut queue = Queue::default();
            for group in 0..self.frames.len() {
                self.push_group(group, &mut queue);
            }
            queue
        });
        for item in std::mem::take(&mut self.left) {
            self.push(item, &mut queue);
        }
        self.take_from(&mut queue, room);
        self.queue = Some(queue);
    }

    fn take_from(&mut self, queue: &mut Queue, room: f32) {
        while let Some((item, step)) = queue.pop() {
            checkpoint::reached();
            if self.is_taken(item) || self.is_lone_answer(item) {
                continue;
            }
            let (worth, tokens) = self.rate(item);
            let now = Queue::bucket(worth);
            if now < step {
                queue.push(item, now);
                continue;
            }
            let tokens = match item {
                Choice::Unit(unit) => {
                    tokens + self.parents(unit as usize).map(|parent| self.units[parent].tokens).sum::<f32>()
                }
                Choice::Group(_) => tokens,
            };
            // A gap of its size is cheaper than a mark, so it needs no room.
            if tokens > 0.0 {
                if self.used + LEAST > room {
                    queue.push(item, step);
                    break;
                }
                if self.used + tokens > room {
                    self.left.push(item);
                    continue;
                }
            }
            match item {
                Choice::Group(group) => {
                    self.open(group as usize);
                    self.push_units(group as usize, queue);
                }
                Choice::Unit(unit) => self.take_rated(unit as usize, queue),
            }
        }
    }

    /// Takes a unit, or all of its bundle, and requeues what has become cheaper.
    fn take_rated(&mut self, unit: usize, queue: &mut Queue) {
        let block = self.units[unit].block as usize;
        let group = self.blocks[block].group;
        let was_open = self.is_open[group];
        if !was_open {
            self.open(group);
        }
        if self.blocks[block].is_bundle {
            self.take_block(block);
        } else {
            self.take(unit);
        }
        if !was_open {
            self.push_units(group, queue);
        }
        for neighbour in [unit.wrapping_sub(1), unit + 1] {
            if self.ranges[block].contains(&neighbour) && !self.units[neighbour].is_taken {
                self.push(Choice::Unit(index(neighbour)), queue);
            }
        }
    }

    /// Undoes the last choices until `over` of the `counted` tokens of the selection are free, or only settled ones are left.
    ///
    /// What was estimated too low, as JSON of many brackets and marks, is given up in proportion, or all of it would go.
    pub fn shrink(&mut self, over: f32, counted: f32) {
        let goal = self.used - over * (self.used / counted.max(1.0)).min(1.0);
        while self.used > goal && self.log.len() > self.settled {
            self.give_up();
        }
    }

    /// Runs `take`, and reverts it if more than `limit` is used after it; returns whether it stands.
    pub fn take_within(&mut self, limit: f32, take: impl FnOnce(&mut Self)) -> bool {
        let before = self.log.len();
        take(self);
        let fits = self.used <= limit;
        while !fits && self.log.len() > before {
            self.give_up();
        }
        fits
    }

    /// Undoes the last choice.
    fn give_up(&mut self) {
        let Some((item, tokens)) = self.log.pop() else { return };
        self.used -= tokens;
        self.left.push(item);
        match item {
            Choice::Group(group) => {
                let group = group as usize;
                self.is_open[group] = false;
                self.is_changed[group] = true;
                for &document in &self.frames[group].documents {
                    self.scoring.uncover(self.scoring.mentions(document));
                }
            }
            Choice::Unit(unit) => {
                let Unit { block, ref mentions, ref mut is_taken, .. } = self.units[unit as usize];
                *is_taken = false;
                self.scoring.uncover(mentions.start as usize..mentions.end as usize);
                self.taken[block as usize] -= 1;
                self.is_changed[self.blocks[block as usize].group] = true;
            }
        }
    }

    fn push_group(&self, group: usize, queue: &mut Queue) {
        // Of a mail its frame alone says nothing.
        if !self.is_open[group] && !self.blocks(group).any(|block| self.is_mail(block)) {
            self.push(Choice::Group(index(group)), queue);
        }
        self.push_units(group, queue);
    }

    /// Returns whether a block is a result that is taken whole.
    pub fn is_mail(&self, block: usize) -> bool {
        let Block { is_bundle, document, .. } = self.blocks[block];
        is_bundle && document.is_some_and(|document| self.document(document).author == Author::Result)
    }

    fn push_units(&self, group: usize, queue: &mut Queue) {
        for block in self.blocks_of[group].clone() {
            for unit in self.ranges[block].clone().filter(|&unit| !self.units[unit].is_taken) {
                self.push(Choice::Unit(index(unit)), queue);
            }
        }
    }

    fn push(&self, item: Choice, queue: &mut Queue) {
        queue.push(item, Queue::bucket(self.rate(item).0));
    }

    fn is_lone_answer(&self, item: Choice) -> bool {
        let group = match item {
            Choice::Group(group) => group as usize,
            Choice::Unit(unit) => self.blocks[self.units[unit as usize].block as usize].group,
        };
        self.frames[group].is_answer && !self.is_open[group]
    }

    fn is_taken(&self, item: Choice) -> bool {
        match item {
            Choice::Group(group) => self.is_open[group as usize],
            Choice::Unit(unit) => self.units[unit as usize].is_taken,
        }
    }

    fn open(&mut self, group: usize) {
        if let Some(answer) = self.frames[group].answer {
            self.take_whole(answer);
        }
        let tokens = self.frame_tokens(group);
        self.is_open[group] = true;
        self.is_changed[group] = true;
        self.used += tokens;
        self.log.push((Choice::Group(index(group)), tokens));
        for document in self.frames[group].documents.clone() {
            self.scoring.cover(self.scoring.mentions(document));
        }
    }

    /// Takes a unit, with its parents first: they are paid for, but rated with nothing, for others stand under them, too. Rated
    /// with each, 28 of 60 rows that are asked for by name lose their place beside a long heading, in place of 17; recall is the same.
    fn take(&mut self, unit: usize) {
        let parents: Vec<usize> = self.parents(unit).collect();
        for unit in parents.into_iter().rev().chain([unit]) {
            if !self.units[unit].is_taken {
                self.take_alone(unit);
            }
        }
    }

    /// Iterates over the parents of a unit that are not taken, the nearest first.
    fn parents(&self, unit: usize) -> impl Iterator<Item = usize> {
        let parent = |unit: &usize| {
            let parent = self.units[*unit].parent.map(|parent| parent as usize);
            parent.filter(|&parent| !self.units[parent].is_taken && !self.units[parent].is_fixed)
        };
        std::iter::successors(parent(&unit), parent).take(MAX_PARENTS)
    }

    fn take_alone(&mut self, unit: usize) {
        let tokens = self.unit_tokens(unit);
        let Unit { block, ref mentions, .. } = self.units[unit];
        let (block, mentions) = (block as usize, mentions.start as usize..mentions.end as usize);
        if unit + 1 == self.ranges[block].end
            && let Some(answer) = self.blocks[block].answer
        {
            self.take_whole(answer);
        }
        self.used += tokens;
        self.log.push((Choice::Unit(index(unit)), tokens));
        self.taken[block] += 1;
        self.scoring.cover(mentions);
        self.units[unit].is_taken = true;
        self.is_changed[self.blocks[block].group] = true;
    }
}

/// Returns factors of the excess that successive attempts give up: 1 at first, then growing, so that attempts stay few if
/// what is given up saves nothing.
pub fn shrink_steps() -> impl Iterator<Item = f32> {
    std::iter::repeat_n(1.0, 3).chain(std::iter::successors(Some(1.5), |more| Some(more * 1.5)))
}

#[cfg(test)]
mod tests;
