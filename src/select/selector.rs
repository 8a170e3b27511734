//! Which parts of a conversation stay: those that are worth most for their tokens, until the room is used.
//!
//! Everything that may go lies in groups of messages; a group has a frame (what its messages cost when all their texts
//! are at their shortest) and blocks, the texts, each with its parts. Parts are taken in the order of their worth for a
//! token. What a part costs depends on its neighbours: one that stands alone needs a mark at either side, one between two
//! others saves one; the same holds for groups and the notes between them. What it is worth depends on what is taken
//! already, since a name need not stay twice. So the order is found as one goes: a part that has become worth less than
//! it was when it was rated is rated again and put back.

use std::ops::Range;

use crate::checkpoint;
use crate::text::elision::NEAR_GAPS;
use crate::text::estimate::{count, index};
use crate::text::segments::Class;

use super::queue::{Item, Queue};
use super::scoring::{Document, LostName, Scoring, Voice};

/// A text that may be cut.
#[derive(Debug, Clone)]
pub struct Block {
    /// Its document; `None` for what has no text to read, which stays or goes as a whole.
    pub document: Option<usize>,
    /// Its group.
    pub group: usize,
    /// Tokens of the text.
    pub full: f32,
    /// Tokens of what stands in its place when none of it stays.
    pub shortest: f32,
    /// What its parts are multiplied with.
    pub weight: f32,
    /// Tokens of the mark for its first gap.
    pub mark: f32,
    /// Whether it is taken as a whole, but for parts that are taken by name.
    pub is_bundle: bool,
}

/// A group of messages that stay or go together.
#[derive(Debug, Clone, Default)]
pub struct Frame {
    /// Tokens of the group when all its blocks are at their shortest.
    pub tokens: f32,
    /// Whether the group may go.
    pub may_go: bool,
    /// Documents that no selection changes.
    pub documents: Vec<usize>,
    /// Whether it is a message in words, and no call with its results.
    pub is_talk: bool,
    /// Messages from here to the end of the conversation.
    pub age: f32,
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
    is_fixed: bool,
    is_taken: bool,
}

/// What a part is worth; found out once, for parts are rated again and again.
#[derive(Clone, Copy)]
struct Rating {
    /// What the worth of what it names is multiplied with.
    named: f32,
    /// For its relevance, its class and its length.
    otherwise: f32,
}

impl Rating {
    fn of(scoring: &Scoring, document: usize, part: usize, class: Class, crowd: f32) -> Self {
        let Document { voice, message, .. } = scoring.documents()[document];
        if matches!(voice, Voice::User | Voice::Assistant) {
            let is_curt = scoring.documents()[document].analysis.terms.len() <= CURT;
            let factor = if is_curt { QUIET_TALK } else { 1.0 };
            return Self { named: NAMED_IN_TALK, otherwise: factor * (SAID * scoring.said(message) + ANY_TALK) };
        }
        let (class, factor) = match class {
            _ if !scoring.has_classes() => (0.0, 1.0),
            Class::Error | Class::Outlier => (crowd * STRIKING, 1.0),
            Class::Header if scoring.is_end(document, part) => (STRIKING, 1.0),
            Class::NearError | Class::Header => (crowd * HELPFUL, 1.0),
            Class::Repeat | Class::Noise => (0.0, QUIET),
            Class::Plain | Class::Edge => (0.0, 1.0),
        };
        Self { named: factor, otherwise: (RELEVANCE * scoring.relevance(document, part) + class) * factor }
    }

    /// Returns the rating of a part whose length is worth so much, in a text of such a weight.
    fn within(self, weight: f32, length: f32) -> Self {
        Self { named: weight * self.named, otherwise: weight * (self.otherwise + length) }
    }

    fn worth(self, named: f32) -> f32 {
        named * self.named + self.otherwise
    }
}

/// Tokens of the mark for the first gap of a text, and of one for a later gap.
pub const FIRST_MARK: f32 = 14.0;
const GAP: f32 = 7.0;

// What the following count against one term that the next step uses for certain. Found by trials on the recordings, in
// steps of two.
/// A token of a frame or of an attachment, of a result or a call, and of a message in words.
const FRAME: f32 = 0.02;
const TEXT: f32 = 0.004;
const TALK: f32 = 0.0004;
/// The relevance of a part of a result or a call.
const RELEVANCE: f32 = 0.2;
/// The relevance of what was said, what it names, and that it was said at all.
const SAID: f32 = 3.0;
const NAMED_IN_TALK: f32 = 0.001;
const ANY_TALK: f32 = 0.1;
/// Terms of a message that says next to nothing ("OK.", "Got it, thanks."), and what that is multiplied with.
const CURT: usize = 2;
const QUIET_TALK: f32 = 0.1;
/// What repeats and noise are multiplied with.
const QUIET: f32 = 0.5;
/// Errors, outliers and the ends of a log; what stands beside an error, and other headers.
const STRIKING: f32 = 0.5;
const HELPFUL: f32 = 0.1;
/// Errors and outliers of a text that count in full; of more than these each counts less.
const CROWD: f32 = 8.0;
/// With less room than this nothing more is looked for.
const LEAST: f32 = 4.0;
/// How fast a token's worth falls with the messages behind it.
const AGING: f32 = 0.05;

pub struct Selector<'s> {
    scoring: &'s mut Scoring,
    frames: Vec<Frame>,
    blocks: Vec<Block>,
    units: Vec<Unit>,
    /// By block, its units.
    ranges: Vec<Range<usize>>,
    /// By block: units taken, and tokens of those that are fixed.
    taken: Vec<usize>,
    fixed: Vec<f32>,
    /// By group.
    is_open: Vec<bool>,
    blocks_of: Vec<Range<usize>>,
    /// By group: what its frame is worth, as things were at the start.
    frame_worths: Vec<f32>,
    /// Tokens of a note between groups; gaps near each other share one.
    note: f32,
    /// Tokens of all that stays.
    used: f32,
    /// What was taken, in order, with its tokens.
    log: Vec<(Item, f32)>,
    /// By group: whether it stays out, come what may.
    is_shut: Vec<bool>,
    /// By group: whether what stays of it is not what it was when [`Selector::changed`] was last asked.
    is_changed: Vec<bool>,
    /// What [`Selector::grow_all`] goes on from, and what did not fit or was given up since.
    queue: Option<Queue>,
    left: Vec<Item>,
    /// Entries of the log that are not given up.
    settled: usize,
}

impl<'s> Selector<'s> {
    /// Starts with nothing taken. `blocks` come in the order of their groups.
    pub fn new(scoring: &'s mut Scoring, frames: Vec<Frame>, blocks: Vec<Block>, note: f32) -> Self {
        let parts =
            |block: &Block| block.document.map_or(1, |document| scoring.documents()[document].analysis.parts.len());
        let mut units = Vec::with_capacity(blocks.iter().map(parts).sum());
        let (mut ranges, mut fixed) = (Vec::new(), Vec::new());
        let mut blocks_of = vec![0..0; frames.len()];
        for (b, block) in blocks.iter().enumerate() {
            let first = units.len();
            let unit = |mentions: Range<usize>, tokens: f32, rating: Rating, is_fixed: bool| Unit {
                block: index(b),
                mentions: index(mentions.start)..index(mentions.end),
                tokens,
                rating,
                is_fixed,
                is_taken: false,
            };
            match block.document {
                None => {
                    let rating = Rating { named: 0.0, otherwise: block.weight * FRAME * block.full };
                    units.push(unit(0..0, block.full, rating, false));
                }
                Some(document) => {
                    let frame: &Frame = &frames[block.group];
                    let token_worth = if frame.is_talk { TALK } else { TEXT } * recency(frame.age);
                    let parts = &scoring.documents()[document].analysis.parts;
                    let bytes: u32 = parts.iter().map(|part| part.bytes).sum();
                    let for_byte = block.full / count(bytes as usize).max(1.0);
                    let striking = parts.iter().filter(|part| stands_out(part.class)).count();
                    let crowd = (CROWD / count(striking).max(1.0)).min(1.0);
                    let parts = parts.iter().zip(scoring.mentions_by_part(document)).enumerate();
                    units.extend(parts.map(|(i, (part, mentions))| {
                        let tokens = count(part.bytes as usize) * for_byte;
                        let rating = Rating::of(scoring, document, i, part.class, crowd);
                        unit(mentions, tokens, rating.within(block.weight, tokens * token_worth), part.is_fixed)
                    }));
                }
            }
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
            is_shut: vec![false; frames.len()],
            used: count(runs) * note,
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

    /// Returns the groups that have changed since the last time, at first all that may go.
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

    /// Returns the blocks of a group.
    pub fn blocks(&self, group: usize) -> Range<usize> {
        self.blocks_of[group].clone()
    }

    /// Makes what is taken now stay, come what may.
    pub fn settle(&mut self) {
        self.settled = self.log.len();
    }

    /// Lets what was settled be given up after all.
    pub fn unsettle(&mut self) {
        self.settled = 0;
    }

    /// Returns whether nothing can be given up.
    pub fn is_settled(&self) -> bool {
        self.log.len() == self.settled
    }

    /// Keeps a group out that does not stay now.
    pub fn shut(&mut self, group: usize) {
        self.is_shut[group] = true;
    }

    /// Returns whether a group stays.
    pub fn is_open(&self, group: usize) -> bool {
        self.is_open[group]
    }

    /// Returns what stays of a block, when its group stays.
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

    /// Returns the tokens of all that stays, about.
    pub fn used(&self) -> f32 {
        self.used
    }

    /// Takes a group with all that is in it.
    pub fn take_whole(&mut self, group: usize) {
        if !self.is_open[group] {
            self.open(group);
        }
        for block in self.blocks_of[group].clone() {
            self.take_block(block);
        }
    }

    fn take_block(&mut self, block: usize) {
        let group = self.blocks[block].group;
        if !self.is_open[group] {
            self.open(group);
        }
        for unit in self.ranges[block].clone() {
            if !self.units[unit].is_taken {
                let tokens = self.unit_tokens(unit);
                self.take(unit, tokens);
            }
        }
    }

    /// Takes a part of a block, and its group.
    pub fn take_part(&mut self, block: usize, part: usize) {
        let unit = self.ranges[block].start + part;
        if !self.is_open[self.blocks[block].group] {
            self.open(self.blocks[block].group);
        }
        if !self.units[unit].is_taken {
            let tokens = self.unit_tokens(unit);
            self.take(unit, tokens);
        }
    }

    /// Takes what is worth most for its tokens, as long as it fits `room`; of the groups that `may` names.
    pub fn grow(&mut self, room: f32, may: impl Fn(usize) -> bool) {
        let mut queue = self.empty_queue();
        for group in 0..self.frames.len() {
            if may(group) {
                self.push_group(group, &mut queue);
            }
        }
        self.take_from(&mut queue, room);
    }

    /// As [`Selector::grow`] for all groups, and goes on from there when it is called again with more room.
    pub fn grow_all(&mut self, room: f32) {
        let mut queue = self.queue.take().unwrap_or_else(|| {
            let mut queue = self.empty_queue();
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

    fn empty_queue(&self) -> Queue {
        Queue::with_room(self.units.len() + self.frames.len())
    }

    fn take_from(&mut self, queue: &mut Queue, room: f32) {
        while let Some((item, bucket)) = queue.pop() {
            checkpoint::reached();
            if self.is_taken(item) || self.is_shut[self.group_of(item)] {
                continue;
            }
            let (worth, tokens) = self.rate(item);
            let now = Queue::bucket(worth);
            if now < bucket {
                queue.push(item, now);
                continue;
            }
            // What stands in a gap of its size is cheaper than the mark for it, and needs no room.
            if tokens > 0.0 {
                if self.used + LEAST > room {
                    queue.push(item, bucket);
                    break;
                }
                if self.used + tokens > room {
                    self.left.push(item);
                    continue;
                }
            }
            match item {
                Item::Group(group) => {
                    self.open(group as usize);
                    self.push_units(group as usize, queue);
                }
                Item::Unit(unit) => self.take_rated(unit as usize, queue),
            }
        }
    }

    /// Takes a unit, or all of its bundle; what has become cheaper by it is put into the queue again.
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
            let tokens = self.unit_tokens(unit);
            self.take(unit, tokens);
        }
        if !was_open {
            self.push_units(group, queue);
        }
        for neighbour in [unit.wrapping_sub(1), unit + 1] {
            if self.ranges[block].contains(&neighbour) && !self.units[neighbour].is_taken {
                self.push(Item::Unit(index(neighbour)), queue);
            }
        }
    }

    /// Gives up what was taken last until `tokens` are free, or nothing is left.
    pub fn shrink(&mut self, tokens: f32) {
        let goal = self.used - tokens;
        while self.used > goal && self.log.len() > self.settled {
            self.give_up();
        }
    }

    /// Returns how much was taken so far: see [`Selector::back_to`].
    pub fn taken(&self) -> usize {
        self.log.len()
    }

    /// Gives up all that was taken since [`Selector::taken`] returned `taken`.
    pub fn back_to(&mut self, taken: usize) {
        while self.log.len() > taken {
            self.give_up();
        }
    }

    /// Gives up what was taken last.
    fn give_up(&mut self) {
        let Some((item, tokens)) = self.log.pop() else { return };
        self.used -= tokens;
        self.left.push(item);
        match item {
            Item::Group(group) => {
                let group = group as usize;
                self.is_open[group] = false;
                self.is_changed[group] = true;
                for &document in &self.frames[group].documents {
                    self.scoring.uncover(self.scoring.mentions(document));
                }
            }
            Item::Unit(unit) => {
                let Unit { block, ref mentions, ref mut is_taken, .. } = self.units[unit as usize];
                *is_taken = false;
                self.scoring.uncover(mentions.start as usize..mentions.end as usize);
                self.taken[block as usize] -= 1;
                self.is_changed[self.blocks[block as usize].group] = true;
            }
        }
    }

    fn push_group(&self, group: usize, queue: &mut Queue) {
        if !self.is_open[group] {
            self.push(Item::Group(index(group)), queue);
        }
        self.push_units(group, queue);
    }

    fn push_units(&self, group: usize, queue: &mut Queue) {
        for block in self.blocks_of[group].clone() {
            for unit in self.ranges[block].clone().filter(|&unit| !self.units[unit].is_taken) {
                self.push(Item::Unit(index(unit)), queue);
            }
        }
    }

    fn push(&self, item: Item, queue: &mut Queue) {
        queue.push(item, Queue::bucket(self.rate(item).0));
    }

    fn group_of(&self, item: Item) -> usize {
        match item {
            Item::Group(group) => group as usize,
            Item::Unit(unit) => self.blocks[self.units[unit as usize].block as usize].group,
        }
    }

    fn is_taken(&self, item: Item) -> bool {
        match item {
            Item::Group(group) => self.is_open[group as usize],
            Item::Unit(unit) => self.units[unit as usize].is_taken,
        }
    }

    /// Returns what an item is worth for a token, and its tokens; those of its group included where it is still closed.
    fn rate(&self, item: Item) -> (f32, f32) {
        let (worth, tokens) = match item {
            Item::Group(group) => (self.frame_worths[group as usize], self.frame_tokens(group as usize)),
            Item::Unit(unit) => {
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

    fn frame_worth(&self, group: usize) -> f32 {
        let frame = &self.frames[group];
        let of_passage = |&document: &usize| {
            let named = self.scoring.worth(self.scoring.mentions(document));
            Rating::of(self.scoring, document, 0, Class::Plain, 0.0).worth(named)
        };
        let documents: f32 = frame.documents.iter().map(of_passage).sum();
        documents + if frame.is_talk { 0.0 } else { FRAME } * recency(frame.age) * frame.tokens
    }

    /// Returns the tokens that opening a group takes: its frame, and the notes at its sides instead of the one there was.
    fn frame_tokens(&self, group: usize) -> f32 {
        let is_closed = |group: Option<usize>| group.and_then(|g| self.is_open.get(g)).is_some_and(|open| !open);
        let notes = usize::from(is_closed(group.checked_sub(1))) + usize::from(is_closed(group.checked_add(1)));
        self.frames[group].tokens + (count(notes) - 1.0) * self.note / count(NEAR_GAPS)
    }

    fn rate_bundle(&self, block: usize) -> (f32, f32) {
        let units = self.ranges[block].clone().filter(|&unit| !self.units[unit].is_taken);
        let (mut worth, mut tokens) = (0.0, 0.0);
        for unit in units {
            worth += self.unit_worth(unit);
            tokens += self.units[unit].tokens;
        }
        // What is relevant in a message is all of it, in whatever parts it lies.
        let parts = count(self.ranges[block].len());
        (worth / parts, if self.taken[block] == 0 { tokens - self.blocks[block].shortest } else { tokens - GAP })
    }

    fn unit_worth(&self, unit: usize) -> f32 {
        let Unit { ref mentions, rating, .. } = self.units[unit];
        rating.worth(self.scoring.worth(mentions.start as usize..mentions.end as usize))
    }

    /// Returns the tokens that taking a part of an open group adds, marks included.
    fn unit_tokens(&self, unit: usize) -> f32 {
        let Unit { block, tokens, is_fixed, .. } = self.units[unit];
        let (block, range) = (&self.blocks[block as usize], &self.ranges[block as usize]);
        let b = self.units[unit].block as usize;
        if range.len() == 1 {
            return tokens - block.shortest;
        }
        if self.taken[b] == 0 {
            let fixed = if is_fixed { self.fixed[b] - tokens } else { self.fixed[b] };
            return tokens + fixed + block.mark - block.shortest;
        }
        if is_fixed {
            return 0.0;
        }
        let is_taken = |other: usize| self.units[other].is_taken || self.units[other].is_fixed;
        let left = unit == range.start || is_taken(unit - 1);
        let right = unit + 1 == range.end || is_taken(unit + 1);
        tokens + GAP * (1.0 - f32::from(u8::from(left)) - f32::from(u8::from(right)))
    }

    fn open(&mut self, group: usize) {
        let tokens = self.frame_tokens(group);
        self.is_open[group] = true;
        self.is_changed[group] = true;
        self.used += tokens;
        self.log.push((Item::Group(index(group)), tokens));
        for document in self.frames[group].documents.clone() {
            self.scoring.cover(self.scoring.mentions(document));
        }
    }

    fn take(&mut self, unit: usize, tokens: f32) {
        self.used += tokens;
        self.log.push((Item::Unit(index(unit)), tokens));
        let Unit { block, ref mentions, .. } = self.units[unit];
        let mentions = mentions.start as usize..mentions.end as usize;
        self.taken[block as usize] += 1;
        self.scoring.cover(mentions);
        self.units[unit].is_taken = true;
        self.is_changed[self.blocks[block as usize].group] = true;
    }
}

/// Returns by how much more than what is over each attempt to meet a budget gives up: the first few as much, then ever
/// more, so that they are few where what is given up costs nothing.
pub fn shrink_steps() -> impl Iterator<Item = f32> {
    std::iter::repeat_n(1.0, 3).chain(std::iter::successors(Some(1.5), |more| Some(more * 1.5)))
}

fn stands_out(class: Class) -> bool {
    matches!(class, Class::Error | Class::Outlier)
}

/// Returns how much of its base worth a group of this age still has.
fn recency(age: f32) -> f32 {
    1.0 / (1.0 + age * AGING)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::select::Ablation;
    use crate::text::analysis::{Analysis, Form};

    const NOTE: f32 = 9.0;
    const LINES: usize = 12;

    /// Three groups of one text each, of lines of the same length.
    fn scoring() -> Scoring {
        let line = |i: usize| format!("worker {} reports job_{:04} as finished and waits\n", i % 7, 1_000 + i);
        let document = |message: usize| {
            let text: String = (message * LINES..(message + 1) * LINES).map(line).collect();
            let analysis = Analysis::of(&text, Form::Outlined);
            assert_eq!(analysis.parts.len(), LINES);
            Document {
                message,
                voice: Voice::Result,
                effect: None,
                stays: false,
                asks: 0.0,
                analysis: Arc::clone(&analysis),
            }
        };
        Scoring::new((0..3).map(document).collect(), 3, None, Ablation::default())
    }

    fn selector(scoring: &mut Scoring) -> Selector<'_> {
        let frame = |group: u8| Frame { tokens: 10.0, may_go: true, age: f32::from(3 - group), ..Frame::default() };
        let block = |group: usize| Block {
            document: Some(group),
            group,
            full: 180.0,
            shortest: 8.0,
            weight: 1.0,
            mark: FIRST_MARK,
            is_bundle: false,
        };
        Selector::new(scoring, (0..3).map(frame).collect(), (0..3).map(block).collect(), NOTE)
    }

    fn parts(selector: &Selector<'_>) -> usize {
        let stays = |(block, part): &(usize, usize)| selector.stays(*block, *part);
        (0..3).flat_map(|block| (0..LINES).map(move |part| (block, part))).filter(stays).count()
    }

    #[test]
    fn what_is_taken_is_within_the_room_and_grows_with_it() {
        let mut scoring = scoring();
        let mut selector = selector(&mut scoring);
        let mut before = 0;
        for room in [60.0, 120.0, 240.0, 480.0] {
            selector.grow_all(room);
            assert!(selector.used() <= room && selector.used() > room - 40.0, "{} of {room}", selector.used());
            assert!(parts(&selector) > before);
            before = parts(&selector);
        }
        selector.grow_all(1_000.0);
        assert_eq!(parts(&selector), 3 * LINES);
        assert!((0..3).all(|block| selector.kept(block) == Kept::Whole));
    }

    #[test]
    fn what_is_given_up_can_be_taken_again() {
        let mut scoring = scoring();
        let mut selector = selector(&mut scoring);
        selector.grow_all(300.0);
        let (taken, used) = (parts(&selector), selector.used());
        selector.shrink(100.0);
        assert!(parts(&selector) < taken && selector.used() <= used - 100.0);
        selector.grow_all(300.0);
        assert!(parts(&selector) + 2 >= taken && selector.used() <= 300.0);
    }

    #[test]
    fn what_is_given_up_is_named_nowhere_again() {
        let mut scoring = scoring();
        let mut selector = selector(&mut scoring);
        let lost = |selector: &Selector<'_>| selector.lost(0.0).len();
        let (all, worth) = (lost(&selector), selector.unit_worth(0));
        selector.take_part(0, 0);
        assert!(lost(&selector) < all && selector.unit_worth(0) < worth);
        selector.shrink(1_000.0);
        assert!(lost(&selector) == all && (selector.unit_worth(0) - worth).abs() < 1e-6);
    }

    #[test]
    fn what_is_settled_is_given_up_last() {
        let mut scoring = scoring();
        let mut selector = selector(&mut scoring);
        selector.take_whole(1);
        selector.settle();
        let used = selector.used();
        selector.grow_all(1_000.0);
        selector.shrink(10_000.0);
        assert!(selector.is_settled() && (selector.used() - used).abs() < 0.1);
        assert_eq!([0, 1, 2].map(|group| selector.is_open(group)), [false, true, false]);
        assert_eq!(selector.kept(1), Kept::Whole);
        selector.unsettle();
        selector.shrink(10_000.0);
        assert!((0..3).all(|group| !selector.is_open(group)));
    }

    #[test]
    fn a_part_between_two_that_stay_saves_a_mark() {
        let mut scoring = scoring();
        let mut selector = selector(&mut scoring);
        let mut cost = |part| {
            let before = selector.used();
            selector.take_part(0, part);
            selector.used() - before
        };
        let (_, apart, between) = (cost(3), cost(5), cost(4));
        assert!((apart - between - 2.0 * GAP).abs() < 0.1, "{apart} {between}");
    }

    #[test]
    fn groups_that_have_changed_are_named_once() {
        let mut scoring = scoring();
        let mut selector = selector(&mut scoring);
        assert_eq!(selector.changed(), [0, 1, 2]);
        selector.take_part(2, 0);
        assert_eq!((selector.changed(), selector.changed()), (vec![2], vec![]));
    }
}
