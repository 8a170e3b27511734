//! Fits a request to its budget, and fills that.
//!
//! Protected messages are taken first ([`Protection`]), then rules and requests of the user, then the best worth for its
//! tokens ([`Selector`], by [`Scoring`]). Estimates select; the selection is counted, and shrunk or grown until it meets the
//! budget.

mod commitments;
mod earlier;
mod ledger;
mod own_words;
mod taken;
mod top_up;
mod work;

use std::collections::HashSet;
use std::sync::Arc;

use crate::budget::Request;
use crate::conversation::Group;
use crate::error::{Error, Floor, Result};
use crate::select::scoring::{Document, Scoring};
use crate::select::selector::{Block, FIRST_MARK, Frame, Kept, Selector, shrink_steps};
use crate::select::{Mechanism, is_on};
use crate::text::analysis::Analysis;
use crate::text::rules::Claim;
use crate::tokens::Tokens;
use crate::tools::Effect;

use super::archive_paths::ArchivePaths;
use super::candidates::{Candidate, candidates, shortest};
use super::documents::{Documents, Place};
use super::draft::{Draft, Entry, Slot};
use super::notes::{LeftOut, Notes};
use super::plan::Reason;
use super::protection::{Protection, Tier};
use super::superseded::{Superseded, superseded};
use earlier::Earlier;
use ledger::{LEDGER_FRAME, Listed};
use own_words::Pin;

/// Cuts the draft to at most `budget_tokens`; returns what is said of the rest.
///
/// # Errors
///
/// [`Error::Overflow`] when the parts that are never cut exceed that.
pub fn fit(
    draft: &mut Draft<'_, '_>,
    archive_paths: &ArchivePaths<'_>,
    budget_tokens: Tokens,
    request: &Request<'_>,
) -> Result<LeftOut> {
    if draft.tokens() <= budget_tokens {
        return Ok(LeftOut::default());
    }
    let protection = Protection::of(draft);
    let floor = protection.floor(draft);
    let floor_tokens: Tokens = floor.iter().map(|(_, tokens)| tokens).sum();
    if floor_tokens > budget_tokens {
        return Err(overflow(floor, budget_tokens, request));
    }
    let earlier = if is_on(Mechanism::Ledger) { Earlier::lift(draft, &protection) } else { Earlier::default() };
    let mut left_out = Fit::new(draft, archive_paths, &protection, earlier, (budget_tokens, floor_tokens)).carry_out();
    // Notes get what is left: if everything goes and they do not fit, they go, too.
    left_out.max_note_tokens = budget_tokens - (draft.tokens() + left_out.ledger_tokens(draft));
    Ok(left_out)
}

/// A fit in progress.
struct Fit<'f, 'v, 'a> {
    draft: &'f mut Draft<'v, 'a>,
    archive_paths: &'f ArchivePaths<'f>,
    protection: &'f Protection,
    earlier: Earlier,
    left_out: LeftOut,
    listed: Listed,
    candidates: Vec<Candidate>,
    /// By candidate: its piece before the fit.
    before: Vec<Before>,
    /// By document: its place in the draft.
    places: Vec<Place>,
    /// By group: see [`Frame::strikes`].
    strikes: Vec<f32>,
    budget_tokens: Tokens,
    /// Tokens for everything that may go.
    room: f32,
}

/// A piece before the fit.
struct Before {
    text: Option<String>,
    tokens: Tokens,
    reason: Reason,
    /// Its parts, if it is a text.
    analysis: Option<Arc<Analysis>>,
}

/// Reasoning of the last round up to this share of the room stays whole.
const THOUGHTS_SHARE: f32 = 0.15;

/// Factor of a superseded result's weight.
const SUPERSEDED: f32 = 0.1;

/// The same of a reply that has a new version, and of the newest version, on which the user works. Of 24 requests that go on with a
/// function, between answers of 300, 1,800 and 2,500 characters, 24, 21 and 23 have it at 25 %; without either 17, 12 and 12, and in
/// 7, 4 and 4 an older one alone.
const OLDER_VERSION: f32 = 0.5;
const NEWEST_VERSION: f32 = 8.0;

/// Weighs the candidates that later messages replace, and those that replace them as a new version.
fn weigh_versions(candidates: &mut [Candidate], superseded: &[Option<Superseded>]) {
    let newest: HashSet<usize> = superseded.iter().flatten().filter_map(|why| why.version()).collect();
    for candidate in candidates {
        candidate.weight *= match candidate.superseded {
            Some(Superseded::Rewritten(_)) => OLDER_VERSION,
            Some(_) => SUPERSEDED,
            None if newest.contains(&candidate.entry) => NEWEST_VERSION,
            None => 1.0,
        };
    }
}

/// Factor of the weight of the file that one of the newest calls read last, unless one has changed it since, and the number of these
/// calls: what is about to be edited. Of 540 times that the next edit needs three lines of it, a fit to 10, 25 and 50 % has them in 276,
/// without in 211; recall of future references at 25, 50 and 75 % is .759, .912, .980 with and without. With 5 calls and 3 times the
/// weight it is .758, .910, .980.
const JUST_READ: f32 = 2.0;
const NEWEST_CALLS: usize = 3;

/// Returns the result that has the file which one of the newest calls read last, if none has changed it since.
fn just_read(draft: &Draft<'_, '_>, protection: &Protection) -> Option<usize> {
    let results = protection.groups.iter().rev().flat_map(|group| (group.start..group.end).rev());
    let newest = results.filter(|&entry| draft.call(entry).is_some()).take(NEWEST_CALLS);
    let mut changed = Vec::new();
    for entry in newest {
        let path = draft.path(entry);
        match draft.entries[entry].effect {
            Effect::ReadsFile => return Some(entry).filter(|_| path.is_none_or(|path| !changed.contains(&path))),
            Effect::EditsFile | Effect::WritesFile => changed.extend(path),
            _ => {}
        }
    }
    None
}

impl<'f, 'v, 'a> Fit<'f, 'v, 'a> {
    fn new(
        draft: &'f mut Draft<'v, 'a>,
        archive_paths: &'f ArchivePaths<'f>,
        protection: &'f Protection,
        earlier: Earlier,
        (budget_tokens, floor_tokens): (Tokens, Tokens),
    ) -> Self {
        // First, for marks name it and candidates weigh their marks.
        let superseded = if is_on(Mechanism::Superseded) { superseded(draft) } else { Vec::new() };
        let mut candidates = candidates(draft, archive_paths, protection, &superseded);
        weigh_versions(&mut candidates, &superseded);
        let just_read = just_read(draft, protection);
        for candidate in candidates.iter_mut().filter(|candidate| Some(candidate.entry) == just_read) {
            candidate.weight *= JUST_READ;
        }
        let room = (budget_tokens - floor_tokens).as_f32();
        // A little reasoning stays whole if the provider may require it.
        let wants = draft.counter.family().wants_reasoning;
        let is_thought = |candidate: &Candidate| {
            let slot = draft.entries[candidate.entry].pieces[candidate.piece].slot;
            protection.tiers[candidate.group] > Some(Tier::Older)
                && matches!(slot, Slot::Field(field) if field.is_reasoning())
        };
        let thoughts: Tokens =
            candidates.iter().filter(|&candidate| is_thought(candidate)).map(|candidate| candidate.full).sum();
        if wants && thoughts.as_f32() <= room * THOUGHTS_SHARE {
            candidates.retain(|candidate| !is_thought(candidate));
        }
        Self {
            draft,
            archive_paths,
            protection,
            earlier,
            left_out: LeftOut::default(),
            listed: Listed::default(),
            candidates,
            before: Vec::new(),
            places: Vec::new(),
            strikes: Vec::new(),
            budget_tokens,
            room,
        }
    }

    fn carry_out(mut self) -> LeftOut {
        let Documents {
            documents,
            places,
            mut frames,
            blocks,
            claims,
            commitments,
            typed,
            often,
            are_many,
            asked_for,
            asked_whole,
        } = Documents::of(self.draft, self.protection, &self.candidates);
        let asked_for = (&*asked_for, &*asked_whole);
        self.places = places;
        self.strikes = frames.iter().map(|frame| frame.strikes).collect();
        self.before = self.texts_before(&blocks, &documents);
        let pins = self.pins(&blocks, &documents, claims);
        let committed = self.committed(&blocks, &documents, commitments);
        let mut scoring = Scoring::new(documents, self.draft.entries.len(), self.protection.question);
        scoring.answer_with_records(|document| {
            let Place { entry, piece, block } = self.places[document];
            block.map_or_else(|| self.draft.text(entry, piece), |block| self.before(block))
        });
        let asks_in_talk = self.asks_in_talk(&scoring);
        let stated = self.pinned_tokens(&pins, |claim| claim >= Claim::Fact || claim == Claim::Brief);
        let concluded = self.conclusions();
        let rules = self.pinned_tokens(&pins, |claim| claim == Claim::Rule);
        self.list_lines(rules, self.conclusions_tokens(&concluded));
        self.reserve_lines(&mut frames);
        let note = self.draft.note_tokens().as_f32();
        let mut selector = Selector::new(&mut scoring, frames, blocks, note);

        self.take_pinned(&mut selector);
        let keeps_newest = self.keeps_newest(stated);
        if is_on(Mechanism::Pinning) {
            let is_work = self.take_own_words(&mut selector, &pins, (&typed, often, are_many), asked_for, keeps_newest);
            self.take_committed(&mut selector, committed);
            self.take_newest_replies(&mut selector, are_many);
            self.take_work(&mut selector, is_work, &concluded);
            self.list_conclusions(&mut selector, concluded);
        } else if keeps_newest {
            self.take_newest(&mut selector);
        }
        self.take_odd(&mut selector);
        self.protect(&mut selector);

        let free = self.room - self.room_beside_newest() * (1.0 - SURE) - selector.used();
        let ledger_tokens = if asks_in_talk { 0.0 } else { self.ledger_tokens(free) };
        self.fill(&mut selector, ledger_tokens);
        self.enforce_budget(&mut selector);
        let used = self.enforce_counted_budget(&mut selector);
        let used = self.list_more(&selector, used);
        self.top_up_counted(&selector, used);
        self.left_out
    }

    /// Returns the candidates' pieces before the fit.
    fn texts_before(&self, blocks: &[Block], documents: &[Document]) -> Vec<Before> {
        let before = |(candidate, block): (&Candidate, &Block)| {
            let piece = &self.draft.entries[candidate.entry].pieces[candidate.piece];
            let analysis = block.document.map(|document| Arc::clone(&documents[document].analysis));
            Before { text: piece.text.clone(), tokens: piece.tokens, reason: piece.reason, analysis }
        };
        self.candidates.iter().zip(blocks).map(before).collect()
    }

    /// Returns the estimated tokens of pins that `is_one` picks, each alone in its message; at most [`Self::few_tokens`].
    fn pinned_tokens(&self, pins: &[Pin], is_one: impl Fn(Claim) -> bool) -> f32 {
        let those = pins.iter().filter(|pin| is_one(pin.claim));
        those.map(|pin| pin.taken_tokens + FRAMING + 2.0 * FIRST_MARK).sum::<f32>().min(self.few_tokens())
    }

    /// Charges the lines of calls to their groups, and the lines of earlier ledgers to the room.
    fn reserve_lines(&mut self, frames: &mut [Frame]) {
        for line in &self.listed.lines {
            match line.group {
                Some(group) => frames[group].line_tokens += line.tokens,
                None => self.room -= line.tokens,
            }
        }
    }

    /// Selects the best worth for its tokens, and lists what is left out in at most `ledger_tokens`. The selection is
    /// counted, and tokens that its estimates wasted are spent.
    fn fill(&mut self, selector: &mut Selector<'_>, ledger_tokens: f32) {
        // Estimates suffice to know what is left out, and counting is the most expensive.
        let odd_tokens = if ledger_tokens > 0.0 { self.odd_tokens(selector) } else { 0.0 };
        selector.grow_all((self.room - ledger_tokens - odd_tokens).max(selector.used()));
        let mut room = self.room;
        if ledger_tokens > 0.0 {
            room -= self.list(selector, ledger_tokens, odd_tokens);
        }
        for _ in 0..ROUNDS {
            selector.grow_all(room);
            let used = self.shrink(selector, self.budget_tokens);
            let left = (self.budget_tokens - used).as_f32();
            if left * 64.0 <= self.room {
                break;
            }
            room = selector.used() + left;
        }
        if ledger_tokens > 0.0 {
            self.list_again(selector, ledger_tokens, odd_tokens);
        }
    }

    /// Enforces the budget, with joined texts estimated. Gives up [unsettled](Self::give_up_unsettled) items first, then the
    /// place of notes, then settled items, for they were estimated, too, and last the oldest calls.
    fn enforce_budget(&mut self, selector: &mut Selector<'_>) {
        if self.give_up_unsettled(selector, self.budget_tokens) {
            return;
        }
        if self.draft.tokens() + self.left_out.ledger_tokens(self.draft) <= self.budget_tokens {
            self.left_out.notes_apart = true;
            return;
        }
        selector.unsettle();
        let used = self.shrink(selector, self.budget_tokens);
        selector.grow_all(selector.used() + (self.budget_tokens - used).as_f32());
        self.shrink(selector, self.budget_tokens);
        while self.tokens() > self.budget_tokens && self.left_out.ledger.is_some() {
            self.give_up_lines(selector, (self.tokens() - self.budget_tokens).as_f32());
            self.write_ledger(selector);
        }
    }

    /// Enforces the budget with joined texts counted; returns the tokens of the request. Lowers the target by the error of
    /// the estimates; if that is not enough, joins nothing.
    fn enforce_counted_budget(&mut self, selector: &mut Selector<'_>) -> Tokens {
        let mut target = self.budget_tokens;
        let mut counted = self.counted(target);
        for _ in 0..ROUNDS {
            let over = counted - self.budget_tokens;
            if over == Tokens::ZERO {
                break;
            }
            // The estimate may be below the target already.
            target = target.min(self.tokens()) - over;
            self.give_up_unsettled(selector, target);
            counted = self.counted(target);
        }
        if counted > self.budget_tokens {
            self.left_out.notes_apart = true;
            self.enforce_budget(selector);
            counted = self.counted(self.budget_tokens);
        }
        counted
    }

    /// Gives what is left beside `used` to calls that have no line in the ledger; returns the tokens of the request.
    fn list_more(&mut self, selector: &Selector<'_>, used: Tokens) -> Tokens {
        if self.listed.unlisted.is_empty() {
            return used;
        }
        let before = self.listed.clone();
        if self.list_unlisted((self.budget_tokens - used).as_f32()) {
            self.write_ledger(selector);
            let counted = self.counted(self.budget_tokens);
            if counted <= self.budget_tokens {
                return counted;
            }
        }
        self.listed = before;
        self.write_ledger(selector);
        used
    }

    /// Gives what is left beside `used` to shortened texts; reverts that if it exceeds the budget when counted.
    fn top_up_counted(&mut self, selector: &Selector<'_>, used: Tokens) {
        let more = self.top_up(selector, used);
        if more.is_empty() {
            return;
        }
        self.forget_names(&more, selector);
        if self.counted(self.budget_tokens) > self.budget_tokens {
            for block in more {
                self.write(block, selector);
            }
        }
    }

    /// Returns the limit for a share of the room that is left.
    fn limit(&self, selector: &Selector<'_>, share: f32) -> f32 {
        selector.used() + (self.room - selector.used()) * share
    }

    /// Takes pinned messages, newest first, up to their share of the room.
    fn take_pinned(&self, selector: &mut Selector<'_>) {
        let limit = self.limit(selector, PINNED_SHARE);
        let pinned = |group: &Group| (group.start..group.end).any(|entry| self.draft.entries[entry].is_pinned);
        let groups = self.protection.groups.iter().enumerate().rev();
        for (position, _) in
            groups.filter(|(position, group)| self.protection.tiers[*position].is_some() && pinned(group))
        {
            let blocks = selector.blocks(position);
            let is_pinned = |&block: &usize| self.draft.entries[self.candidates[block].entry].is_pinned;
            selector.take_within(limit, |selector| {
                selector.take_frame(position);
                blocks.filter(is_pinned).for_each(|block| selector.take_block(block));
            });
        }
        selector.settle();
    }

    /// Gives up names, then look-ups of earlier rounds, then unsettled items, until the request has at most `max_tokens`;
    /// returns whether it has.
    fn give_up_unsettled(&mut self, selector: &mut Selector<'_>, max_tokens: Tokens) -> bool {
        loop {
            let over = self.tokens() - max_tokens;
            if over == Tokens::ZERO {
                return true;
            }
            if !self.listed.give_up(over.as_f32()) {
                return self.shrink(selector, max_tokens) <= max_tokens;
            }
            self.write_ledger(selector);
        }
    }

    /// Returns whether the newest group is small, or fits whole beside `rules` and the lines for the calls before it: dropping notes
    /// is better than cutting it.
    fn keeps_newest(&self, rules: f32) -> bool {
        let lines = self.lines_tokens(Tier::LastRound) + self.lines_tokens(Tier::Older);
        let said = if lines > 0.0 { lines + LEDGER_FRAME + 2.0 * self.draft.note_tokens().as_f32() } else { 0.0 };
        let is_sure = said + rules == 0.0 || self.room_beside_newest() < self.room;
        let newest = self.tier_tokens(Tier::Newest);
        newest <= self.room * SMALL_NEWEST || is_sure && newest + said + rules <= self.room
    }

    fn take_newest(&self, selector: &mut Selector<'_>) {
        self.protection.tier(Tier::Newest).for_each(|(position, _)| selector.take_whole(position));
        selector.settle();
    }

    /// Takes the rest of what is protected: a newest group that is too large, and the last round. They leave a quarter of
    /// the room to older messages, if these can use it; what is taken of them counts.
    fn protect(&self, selector: &mut Selector<'_>) {
        let (older, last_round) = (self.tier_tokens(Tier::Older), self.tier_tokens(Tier::LastRound));
        for (tier, others) in [(Tier::Newest, older + last_round), (Tier::LastRound, older)] {
            if self.protection.tier(tier).all(|(position, _)| selector.is_whole(position)) {
                continue;
            }
            // A kept call needs no line.
            let used = selector.used() - self.lines_tokens(tier);
            let rest = if tier == Tier::Newest { self.room } else { self.room_beside_newest() };
            let share = (rest * 0.75).max(rest - others).min(self.room - used);
            if self.tier_tokens(tier) <= share {
                self.protection.tier(tier).for_each(|(position, _)| selector.take_whole(position));
            } else {
                if tier == Tier::Newest {
                    self.take_odd_of(selector, used + share, self.protection.tier(tier));
                }
                selector.grow(used + share, |group| self.protection.tiers[group] == Some(tier));
            }
        }
    }

    /// Settles the selection if its estimate is safely within the room. Settled items are given up last.
    fn settle_if_sure(&self, selector: &mut Selector<'_>) {
        if selector.used() <= self.room * SURE {
            selector.settle();
        }
    }

    /// Returns the room beside the newest group; all of it, if that may not fit.
    fn room_beside_newest(&self) -> f32 {
        let newest = self.tier_tokens(Tier::Newest);
        if newest <= self.room * SURE { self.room - newest } else { self.room }
    }

    /// Returns the groups before the newest, in order.
    fn before_newest(&self) -> impl DoubleEndedIterator<Item = (usize, Group)> {
        self.protection.tier(Tier::Older).chain(self.protection.tier(Tier::LastRound))
    }

    fn tier_tokens(&self, tier: Tier) -> f32 {
        self.protection.tier(tier).map(|(_, group)| self.full_tokens(group)).sum()
    }

    fn full_tokens(&self, group: Group) -> f32 {
        let kept = self.draft.entries[group.start..group.end].iter().filter(|entry| entry.dropped.is_none());
        kept.map(Entry::tokens).sum::<Tokens>().as_f32()
    }

    /// Writes the selection into the draft and shrinks it to `max_tokens`, except what is settled; returns the tokens of the
    /// request.
    fn shrink(&mut self, selector: &mut Selector<'_>, max_tokens: Tokens) -> Tokens {
        let mut used = self.apply(selector);
        let mut steps = shrink_steps();
        while used > max_tokens && !selector.is_settled() {
            let counted = used.as_f32() - (self.budget_tokens.as_f32() - self.room);
            selector.shrink((used - max_tokens).as_f32() * steps.next().unwrap_or(1.0), counted);
            used = self.apply(selector);
        }
        used
    }

    /// Writes the changes of the selection into the draft; returns the tokens of the request.
    fn apply(&mut self, selector: &mut Selector<'_>) -> Tokens {
        for position in selector.changed() {
            let group = self.protection.groups[position];
            let dropped = (!selector.is_open(position)).then_some(Reason::Budget);
            for entry in &mut self.draft.entries[group.start..group.end] {
                if entry.dropped.is_none_or(|reason| reason == Reason::Budget) {
                    entry.dropped = dropped;
                }
            }
            if dropped.is_none() {
                for block in selector.blocks(position) {
                    self.write(block, selector);
                }
            }
        }
        self.write_ledger(selector);
        self.tokens()
    }

    /// Returns the current tokens of the request, with joined texts estimated.
    fn tokens(&self) -> Tokens {
        Notes::of(self.draft, &self.left_out).tokens(self.draft)
    }

    /// Returns the current tokens, with joined texts counted. Notes that stay apart are added as long as they fit
    /// `max_tokens`.
    fn counted(&self, max_tokens: Tokens) -> Tokens {
        Notes::of(self.draft, &self.left_out).carry_out(self.draft, max_tokens).1
    }

    fn write(&mut self, block: usize, selector: &Selector<'_>) {
        let (candidate, before) = (&self.candidates[block], &self.before[block]);
        let (entry, piece) = (candidate.entry, candidate.piece);
        let (text, tokens, reason) = match (selector.kept(block), &before.analysis) {
            (Kept::Whole, _) => (before.text.clone(), before.tokens, before.reason),
            (Kept::Some, Some(analysis)) => {
                let archive_path = self.archive_paths.path(self.draft, entry, piece);
                let source = self.before(block);
                let short = analysis.excerpt(
                    source,
                    &|part| selector.stays(block, part),
                    self.draft.marks(archive_path.as_deref()),
                );
                let tokens = self.draft.variant_tokens(&short);
                if tokens < before.tokens {
                    (Some(short), tokens, Reason::Budget)
                } else {
                    (before.text.clone(), before.tokens, before.reason)
                }
            }
            _ => {
                let (text, tokens) = shortest(self.draft, self.archive_paths, candidate);
                (Some(text), tokens, Reason::Budget)
            }
        };
        let piece = &mut self.draft.entries[entry].pieces[piece];
        (piece.text, piece.tokens, piece.reason) = (text, tokens, reason);
    }

    /// Returns the text of a candidate before the fit.
    fn before(&self, block: usize) -> &str {
        let Candidate { entry, piece, .. } = self.candidates[block];
        let source = || self.draft.source(entry, &self.draft.entries[entry].pieces[piece]);
        self.before[block].text.as_deref().unwrap_or_else(source)
    }
}

/// Maximum share of the room for pinned messages; a step leaves that much more room for them.
const PINNED_SHARE: f32 = 0.7;

/// A newest group up to this share of the room stays whatever rules need: it is what the model goes on from. Of 1,964 steps of recorded runs
/// three lost a last call and its result of some 70 tokens without this; recall at 25 % is .775 without and .774 with it.
const SMALL_NEWEST: f32 = 0.25;

/// Estimated tokens of a message beside its text.
const FRAMING: f32 = 8.0;

/// An estimate up to this share of the room surely fits: estimates are off by less.
const SURE: f32 = 0.9;

/// Most rounds of counting a selection and correcting it. Short messages of the user cost half of their estimate where they are
/// joined to one: four rounds leave a sixteenth of the room.
const ROUNDS: usize = 6;

/// Number of tools that an error names.
const TOOLS_NAMED: usize = 3;

fn overflow(mut parts: Vec<(&'static str, Tokens)>, limit_tokens: Tokens, request: &Request<'_>) -> Error {
    parts.sort_by_key(|&(_, tokens)| std::cmp::Reverse(tokens));
    let needed_tokens = parts.iter().map(|(_, tokens)| tokens).sum();
    let largest_tools =
        request.tools.map(|tools| request.counter().largest_tools(tools, TOOLS_NAMED)).unwrap_or_default();
    let model = request.model.map(str::to_owned);
    Error::Overflow { floor: Box::new(Floor { needed_tokens, limit_tokens, model, parts, largest_tools }) }
}

/// Returns the scoring of everything in a draft.
#[cfg(feature = "evaluation")]
pub fn scoring(draft: &Draft<'_, '_>) -> Scoring {
    let protection = Protection::of(draft);
    let candidates = candidates(draft, &ArchivePaths::of(None), &protection, &[]);
    let documents = Documents::of(draft, &protection, &candidates).documents;
    Scoring::new(documents, draft.entries.len(), protection.question)
}
