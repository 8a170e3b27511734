//! Takes how the work stands: what is done, open and running, what the model concluded and changed, and what stands out in
//! earlier results.

use std::collections::{BTreeSet, HashSet};
use std::ops::{Range, RangeInclusive};

use super::Fit;
use super::ledger::Conclusion;
use crate::compress::candidates::Candidate;
use crate::compress::draft::Slot;
use crate::compress::protection::Tier;
use crate::compress::superseded::{Superseded, run_again};
use crate::conversation::Group;
use crate::message::{Role, Text};
use crate::select::selector::Selector;
use crate::select::{Mechanism, is_on};
use crate::text::analysis::Analysis;
use crate::text::partners::{Rows, odd_rows};
use crate::text::segments::{self, Class, Kind};
use crate::tokens::Tokens;
use crate::tools::{Progress, has_failed, progress};

/// Results of the last round, before the newest group, of which what stands out is taken first; and share of the room for it.
const NEWEST_RESULTS: usize = 3;
const NEWEST_ODD_SHARE: f32 = 0.4;

/// Share of the room left for what the model says in messages without calls: its decisions and answers.
const CONCLUSIONS_SHARE: f32 = 0.3;

/// The same for what it concludes in messages with calls, newest first: these come with the frames of their calls. Of 18 decisions
/// beside 150 calls a step in 16,000 tokens keeps 9, 14 and 17 with 0.15, 0.22 and 0.3; recall at 25 % is .772, .772 and .759.
const BESIDE_CALLS_SHARE: f32 = 0.22;

/// Share of all the room for instructions that were read, up to half of what is left. Of twelve steps of a skill of 250 tokens that was
/// read before seven other files none stood in 16 and 5 of 20 fits to 25 and 50 % of the tokens without this, with it all in 19 and 20; recall
/// at 25 % is .766 without and .765 with it.
const INSTRUCTIONS_SHARE: f32 = 0.3;

/// The same for calls that say how the work stands: the newest plan of each tool, and what runs beside the conversation.
const PROGRESS_SHARE: f32 = 0.2;
/// Share of all the room that these may have, up to half of what is left: beside a large newest result a plan of 130 tokens went in
/// 151 of 360 steps of runs at a window of 8,000 without this.
const PLAN_SHARE: f32 = 0.1;

/// The same for what was done through arguments, newest first, and the share of all the room that one such call may have. Of one file
/// written among 160 that were shown, 64,000 tokens lose what it says in 33 of 34 requests without this, in none with it; recall at
/// 25, 50 and 75 % is .766, .902 and .986 without it, .766, .903 and .986 with it.
const CHANGES_SHARE: f32 = 0.1;
const CHANGE_SHARE: f32 = 0.06;
/// A line of the ledger says about as much as shorter arguments.
const LINE_TOKENS: f32 = 32.0;

/// Share of the room for what stands out in earlier results, and in how many parts of one result it does: those with few come first. Of
/// three odd lines in each of eight results 153 of 240 stand at 12 % of the tokens without the second, with it all.
const ODD_SHARE: f32 = 0.4;
const FEW_ODD: RangeInclusive<usize> = 1..=3;
const SEVERAL_ODD: RangeInclusive<usize> = 4..=8;
/// Parts in which two results of a call, or two lists, differ: more are other results.
const MOST_CHANGED: usize = 3;
/// So many tokens it has in any case, up to a larger share: of 299 odd lines a tenth of the tokens loses 29 without this, 21 with it;
/// recall at 25 % is .761 without and .760 with it, with 600 tokens or 0.8 of any room .759 and .758.
const ODD_TOKENS: f32 = 300.0;
const MAX_ODD_SHARE: f32 = 0.8;
/// Records of such parts that are taken with them, newest first, their size, and the bytes that are read before one. Of JSON that was
/// read with numbers of lines the odd value stood without the id or port beside it in 83, 50 and 14 of 120 fits to 10, 25 and 50 % of the
/// tokens and 77 of 120 windows of 8,000, with this in 11, 7, 2 and 26.
const MOST_RECORDS: usize = 8;
const BEFORE_RECORD: usize = 8 << 10;
const MAX_RECORD_BYTES: usize = 800;
/// Bytes at the end of a result that say how a run went: "Exit code: 0" may stand behind them.
const MIN_END: usize = 40;

impl Fit<'_, '_, '_> {
    /// Takes calls that say what is done or running, what the model concluded, and what it changed, each kind up to its share.
    /// `is_work`: whether calls and results are at least half of the conversation.
    pub(super) fn take_work(&self, selector: &mut Selector<'_>, is_work: bool, concluded: &[Conclusion]) {
        self.take_instructions(selector);
        self.take_progress(selector);
        self.take_conclusions(selector, is_work, concluded);
        self.take_changes(selector);
        self.settle_if_sure(selector);
    }

    /// Takes results that tell the model how to work, the newest first, each whole: of its rules none says which others it needs.
    fn take_instructions(&self, selector: &mut Selector<'_>) {
        let limit = (selector.used() + self.room * INSTRUCTIONS_SHARE).min(self.limit(selector, 0.5));
        for (position, group) in self.before_newest().rev() {
            let instructs = (group.start..group.end).any(|entry| {
                let is_replaced =
                    |block: usize| self.candidates[block].entry == entry && self.candidates[block].superseded.is_some();
                self.draft.instructs(entry) && !selector.blocks(position).any(is_replaced)
            });
            if instructs {
                selector.take_within(limit, |selector| selector.take_whole(position));
            }
        }
    }

    /// Takes calls that say what is done, open or running, the newest first, with their results.
    fn take_progress(&self, selector: &mut Selector<'_>) {
        let of_all = (self.room * PLAN_SHARE).min((self.room - selector.used()) * 0.5);
        let limit = self.limit(selector, PROGRESS_SHARE).max(selector.used() + of_all);
        let mut seen = HashSet::new();
        for (position, group) in self.before_newest().rev() {
            let said = (group.start..group.end).filter_map(|entry| {
                let call = self.draft.call(entry)?;
                let tool = call.name.as_ref()?.as_str();
                let arguments = call.arguments.as_ref().map_or("", Text::as_str);
                Some((tool, progress(tool, self.draft.path(entry), arguments)?))
            });
            // A later plan of the same tool replaces an earlier one.
            let holding = said.filter(|(tool, progress)| *progress == Progress::Running || seen.insert(*tool));
            if holding.count() > 0 {
                selector.take_within(limit, |selector| selector.take_whole(position));
            }
        }
    }

    /// Takes calls that changed something, say it in their arguments rather than in their result, and are short beside the room;
    /// newest first. What was looked up can be looked up again, and weighed by its names it would go behind a few lines of each
    /// of many results. Other calls of the same message come at their shortest.
    fn take_changes(&self, selector: &mut Selector<'_>) {
        let limit = self.limit(selector, CHANGES_SHARE);
        let most = self.room * CHANGE_SHARE;
        for (position, group) in self.before_newest().rev() {
            for entry in (group.start..group.end).rev().filter(|&entry| self.draft.entries[entry].effect.is_changing())
            {
                let Some((_, call)) = self.draft.entries[entry].answers else { continue };
                let is_arguments = |slot: Slot| slot == Slot::Arguments(call);
                let pieces = &self.draft.entries[group.start].pieces;
                let written: Tokens =
                    pieces.iter().filter(|piece| is_arguments(piece.slot)).map(|piece| piece.tokens).sum();
                let (written, answered) = (written.as_f32(), self.draft.entries[entry].tokens().as_f32());
                let is_short = written >= LINE_TOKENS && answered <= written && written + answered <= most;
                if !is_short || self.has_failed(entry) {
                    continue;
                }
                let of_call = |&block: &usize| {
                    let Candidate { entry: of, piece, .. } = self.candidates[block];
                    of == entry || (of == group.start && is_arguments(self.draft.entries[of].pieces[piece].slot))
                };
                let blocks = selector.blocks(position);
                selector.take_within(limit, |selector| {
                    selector.take_frame(position);
                    blocks.filter(of_call).for_each(|block| selector.take_block(block));
                });
            }
        }
    }

    fn has_failed(&self, entry: usize) -> bool {
        let result = self.draft.entries[entry].pieces.first().map(|piece| self.draft.source(entry, piece));
        result.is_some_and(has_failed)
    }

    /// Takes what the model says in messages without calls, then what it concludes beside calls, with these and their results
    /// at their shortest; newest first. Where talk is most of the conversation, its messages are weighed if they are many.
    fn take_conclusions(&self, selector: &mut Selector<'_>, is_work: bool, concluded: &[Conclusion]) {
        let said: Vec<(usize, Group)> = self.before_newest().filter(|(_, group)| self.is_reply(*group)).collect();
        let limit = self.limit(selector, CONCLUSIONS_SHARE);
        let tokens: f32 = said.iter().map(|(_, group)| self.full_tokens(*group)).sum();
        if is_work || selector.used() + tokens <= limit {
            for (position, _) in said.into_iter().rev() {
                selector.take_within(limit, |selector| selector.take_whole(position));
            }
        }
        let limit = self.limit(selector, BESIDE_CALLS_SHARE);
        for &Conclusion { group, entry, .. } in concluded {
            let blocks = selector.blocks(group);
            let is_said = |&block: &usize| self.candidates[block].entry == entry && self.is_content(block);
            selector.take_within(limit, |selector| {
                selector.take_frame(group);
                blocks.filter(is_said).for_each(|block| selector.take_block(block));
            });
        }
    }

    fn is_content(&self, block: usize) -> bool {
        let Candidate { entry, piece, .. } = self.candidates[block];
        self.draft.entries[entry].pieces[piece].slot.is_content()
    }

    /// Takes the few parts of each earlier result that report a failure or differ from the others, newest first: usual lines of
    /// the newest results would leave them no room, and nobody asks for what was never seen. Of 740 odd lines in six to fourteen
    /// results, steps lose 57 with this, 219 without. Of ten runs of 80 calls after the only message of the user, in which one
    /// failed, 12 % of the tokens say why in all with this, in one where the last round is left out of it.
    pub(super) fn take_odd(&self, selector: &mut Selector<'_>) {
        if !is_on(Mechanism::Classes) {
            return;
        }
        let least = (selector.used() + ODD_TOKENS).min(self.limit(selector, MAX_ODD_SHARE));
        let limit = self.limit(selector, ODD_SHARE).max(least);
        self.take_changed(selector, limit);
        self.take_unpaired(selector, limit);
        self.take_run_again(selector, limit);
        self.take_odd_of(selector, limit, self.before_newest().rev());
        // A later page of a listing replaces where an earlier one goes on.
        let mut called = HashSet::new();
        for (position, group) in self.before_newest().rev() {
            let tools = (group.start..group.end).filter_map(|entry| self.draft.call(entry)?.name.as_ref());
            if tools.filter(|tool| called.insert(tool.as_str())).count() > 0 {
                self.take_few(selector, limit, position, (FEW_ODD, |class| class == Class::Cursor));
            }
        }
        self.settle_if_sure(selector);
    }

    /// Takes the few parts of results in groups that stand out, then their records.
    pub(super) fn take_odd_of(
        &self,
        selector: &mut Selector<'_>,
        limit: f32,
        groups: impl Iterator<Item = (usize, Group)>,
    ) {
        let (mut odd, groups) = (Vec::new(), groups.collect::<Vec<_>>());
        for many in [FEW_ODD, SEVERAL_ODD] {
            for &(position, _) in &groups {
                odd.extend(self.take_few(selector, limit, position, (many.clone(), Class::stands_out)));
            }
        }
        for (block, part) in odd.into_iter().take(MOST_RECORDS) {
            self.take_record(selector, limit, block, part);
        }
    }

    /// Takes what stands out of the newest results of the last round, before the words of earlier requests: the model has not seen it.
    ///
    /// In talks of one to three results a turn whose system message leaves 700 to 2,400 tokens of a window, 112 of 756 lines that matter in
    /// these are gone in the request behind them, with it 38.
    pub(super) fn take_odd_of_newest(&self, selector: &mut Selector<'_>) {
        if is_on(Mechanism::Classes) {
            let limit = (selector.used() + self.room * NEWEST_ODD_SHARE).min(self.room);
            let newest = self.protection.tier(Tier::Newest);
            let before = self.protection.tier(Tier::LastRound).rev().take(NEWEST_RESULTS);
            self.take_odd_of(selector, limit, newest.chain(before));
            self.settle_if_sure(selector);
        }
    }

    /// Takes the record of a part that stands out: which host or file it is of, the frames of a leak.
    fn take_record(&self, selector: &mut Selector<'_>, limit: f32, block: usize, part: usize) {
        let Some(analysis) = &self.before[block].analysis else { return };
        let Some((_, range)) = analysis.byte_ranges().nth(part) else { return };
        let record = segments::record_near(self.before(block), range.start, BEFORE_RECORD);
        let Some(record) = record.filter(|record| record.len() <= MAX_RECORD_BYTES) else { return };
        selector.take_within(limit, |selector| {
            analysis.parts_in(&record).for_each(|part| selector.take_part(block, part));
        });
    }

    /// Takes the parts of results in a group whose class counts, where these are so `many`; returns them with their blocks.
    fn take_few(
        &self,
        selector: &mut Selector<'_>,
        limit: f32,
        position: usize,
        (many, counts): (RangeInclusive<usize>, impl Fn(Class) -> bool),
    ) -> Vec<(usize, usize)> {
        let mut taken = Vec::new();
        for block in selector.blocks(position) {
            let is_result = self.draft.is_result(self.candidates[block].entry);
            let Some(analysis) = self.before[block].analysis.as_ref().filter(|_| is_result) else { continue };
            let few = analysis.parts.iter().enumerate().filter(|(_, part)| counts(part.class));
            let few: Vec<usize> = few.map(|(part, _)| part).take(many.end() + 1).collect();
            if many.contains(&few.len()) {
                let fits = selector
                    .take_within(limit, |selector| few.iter().for_each(|&part| selector.take_part(block, part)));
                taken.extend(few.into_iter().filter(|_| fits).map(|part| (block, part)));
            }
        }
        taken
    }

    /// Takes how the newest run of what failed before ended: else a failure may stay that was mended since.
    fn take_run_again(&self, selector: &mut Selector<'_>, limit: f32) {
        let run_again = run_again(self.draft);
        let has_failed = |block: &usize| {
            let analysis = self.before[*block].analysis.as_ref();
            analysis.is_some_and(|analysis| analysis.parts.iter().any(|part| part.class == Class::Error))
        };
        let failed = (0..self.candidates.len()).filter(has_failed);
        let ended: BTreeSet<usize> = failed.filter_map(|block| run_again[self.candidates[block].entry]).collect();
        for entry in ended.into_iter().rev() {
            selector.take_within(limit, |selector| self.take_end(selector, entry));
        }
    }

    /// Takes the end of a result, where a run says how it went.
    fn take_end(&self, selector: &mut Selector<'_>, entry: usize) {
        let group = self.protection.groups.partition_point(|group| group.end <= entry);
        selector.take_frame(group);
        for block in selector.blocks(group).filter(|&block| self.candidates[block].entry == entry) {
            let Some(analysis) = &self.before[block].analysis else { continue };
            let ranges: Vec<Range<usize>> = analysis.byte_ranges().map(|(_, range)| range).collect();
            let mut said = 0;
            for (part, range) in ranges.into_iter().enumerate().rev() {
                selector.take_part(block, part);
                said += self.before(block)[range].trim().len();
                if said >= MIN_END {
                    break;
                }
            }
        }
    }

    /// Takes the few parts in which two results of the same call, or two drafts of the user's, differ, of both: what changed is in
    /// neither alone, and the older goes first. Not of code, which changes by calls that say how.
    fn take_changed(&self, selector: &mut Selector<'_>, limit: f32) {
        for (older, candidate) in self.candidates.iter().enumerate().rev() {
            let later = match candidate.superseded {
                Some(Superseded::AskedAgain(later)) => later,
                Some(Superseded::Rewritten(later)) if self.is_users(older) => later,
                _ => continue,
            };
            // Candidates are in the order of the messages.
            let place = |candidate: &Candidate| (candidate.entry, candidate.piece);
            let Ok(later) = self.candidates.binary_search_by_key(&(later, candidate.piece), place) else { continue };
            let changed = [(older, later), (later, older)].map(|(block, other)| self.parts_beside(block, other));
            if changed.iter().all(|parts| (1..=MOST_CHANGED).contains(&parts.len())) {
                selector.take_within(limit, |selector| {
                    for (block, parts) in [older, later].into_iter().zip(&changed) {
                        for &part in parts {
                            selector.take_part(block, part);
                        }
                    }
                });
            }
        }
    }

    fn is_users(&self, block: usize) -> bool {
        self.draft.entries[self.candidates[block].entry].role == Role::User
    }

    /// Takes the rows in which results differ that list the same things.
    fn take_unpaired(&self, selector: &mut Selector<'_>, limit: f32) {
        let results = (0..self.candidates.len()).filter(|&block| self.draft.is_result(self.candidates[block].entry));
        let lists = results.filter_map(|block| {
            let analysis = self.before[block].analysis.as_deref()?;
            Some(((block, analysis), (self.before(block), analysis.rows()?)))
        });
        let (lists, texts): (Vec<_>, Vec<(&str, &Rows)>) = lists.unzip();
        for rows in odd_rows(&texts) {
            selector.take_within(limit, |selector| {
                for (text, row) in &rows {
                    let (block, analysis) = lists[*text];
                    analysis.parts_in(row).for_each(|part| selector.take_part(block, part));
                }
            });
        }
    }

    /// Returns the parts of a block, up to one more than [`MOST_CHANGED`], that have something which another block has not.
    fn parts_beside(&self, block: usize, other: usize) -> Vec<usize> {
        let Some(analysis) =
            self.before[block].analysis.as_ref().filter(|analysis| analysis.kind() != Some(Kind::Code))
        else {
            return Vec::new();
        };
        let text = self.before(block);
        // Prose is split at other places where it changed.
        let is_users = self.is_users(block);
        let of_other: HashSet<&str> = if is_users { HashSet::new() } else { self.pieces_of(other).collect() };
        let is_new = |range: Range<usize>| {
            if is_users {
                return !self.before(other).contains(text[range].trim());
            }
            pieces(analysis, &text[range]).any(|piece| !of_other.contains(piece))
        };
        let parts = analysis.byte_ranges().enumerate().filter(|(_, (_, range))| is_new(range.clone()));
        parts.map(|(part, _)| part).take(MOST_CHANGED + 1).collect()
    }

    /// Returns what the parts of a block say.
    fn pieces_of(&self, block: usize) -> impl Iterator<Item = &str> {
        let text = self.before(block);
        let analysis = self.before[block].analysis.as_ref();
        analysis
            .into_iter()
            .flat_map(move |analysis| analysis.byte_ranges().flat_map(move |(_, range)| pieces(analysis, &text[range])))
    }
}

/// Returns what is compared of a part: its lines, of JSON all of it.
fn pieces<'t>(analysis: &Analysis, part: &'t str) -> impl Iterator<Item = &'t str> {
    let is_json = analysis.kind() == Some(Kind::Json);
    let whole = is_json.then(|| part.trim_matches([',', ' ', '\n']));
    let lines = (!is_json).then(|| part.lines().map(str::trim));
    whole.into_iter().chain(lines.into_iter().flatten())
}
