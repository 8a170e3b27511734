//! The ledger of a fit: the names and calls that are listed of what is left out.

mod calls;
mod conclusions;
mod names;

pub(super) use conclusions::Conclusion;

use std::ops::Range;

use crate::select::scoring::Scoring;
use crate::select::selector::Selector;
use crate::select::{Mechanism, is_on};
use crate::text::language::Language;
use crate::text::ledger;

use super::Fit;
use crate::compress::documents::Place;
use crate::compress::protection::Tier;

/// Share of the room beside the newest group for names and look-ups in the ledger, and their most tokens.
const LEDGER_SHARE: f32 = 0.08;
const MAX_LEDGER: f32 = 500.0;
/// A smaller ledger would be little more than its frame.
const MIN_LEDGER: f32 = 48.0;
/// The same if more calls are left out than there is room for: a call is hardly ever as short as in its line. Source:
/// future-reference recall at 25 and 50 % of the recorded runs, .720 and .891 without, .749 and .896 with it.
const CALLS_SHARE: f32 = 0.33;
const MAX_CALLS: f32 = 192.0;
const MIN_CALLS: f32 = 32.0;
/// Share of the room beside the newest group for what stands out in the results of listed calls, and its most tokens. Of 4,040 odd lines
/// of the last 20 commands steps to 8,000, 16,000 and 32,000 lose 2,410, 1,048 and 86 without it, 1,769, 359 and 50 with it; recall at
/// 25 % is .760 without and .759 with it, at 50 % .911 with both, and .910 without the most.
const ODD_SHARE: f32 = 0.08;
const MAX_ODD: f32 = 400.0;
/// Tokens of an empty ledger.
pub(super) const LEDGER_FRAME: f32 = 22.0;
/// With less room than this no further name is searched.
const MIN_NAME: f32 = 5.0;
/// Names or calls without room after which the search ends: the next are worth less, and each is counted.
const MAX_TOO_LONG: usize = 64;

/// The contents of a ledger.
#[derive(Clone, Default)]
pub(super) struct Listed {
    /// In the order of listing: the last are worth least.
    pub(super) names: Vec<Name>,
    /// Look-ups before the last round, in order; listed if their group is left out.
    pub(super) older: Vec<CallLine>,
    /// Calls of the last round, and earlier ones that changed something, likewise.
    pub(super) lines: Vec<CallLine>,
    /// What the model concluded beside calls, likewise; what is worth least comes last.
    pub(super) concluded: Vec<CallLine>,
    /// Groups of changes without room for a line, and the number of earlier ones.
    pub(super) unlisted: Vec<usize>,
    pub(super) unlisted_earlier: usize,
    /// Tokens left for names.
    pub(super) left: f32,
}

/// A call in a ledger, or what was said beside it.
#[derive(Clone)]
pub(super) struct CallLine {
    /// `None` for one of an earlier ledger, which is always listed.
    pub(super) group: Option<usize>,
    entry: usize,
    text: String,
    pub(super) tokens: f32,
    /// Bytes of the tool's name if the call shares a line with others of that tool: a look-up before the last round.
    shared: Option<usize>,
    /// What stands out in the result, and its tokens.
    odd: Option<(String, f32)>,
}

impl CallLine {
    fn new(group: Option<usize>, entry: usize, text: String, tokens: f32) -> Self {
        Self { group, entry, text, tokens, shared: None, odd: None }
    }
}

/// A name in a ledger.
#[derive(Clone)]
pub(super) struct Name {
    /// `None` for one of an earlier ledger.
    document: Option<usize>,
    /// Where it starts in the text.
    at: usize,
    /// Its mention as a term, if it is one.
    mention: Option<usize>,
    text: String,
    tokens: f32,
}

impl Listed {
    /// Gives up `tokens` of names, then of old look-ups, then of conclusions, oldest first; returns whether there were any.
    pub(super) fn give_up(&mut self, tokens: f32) -> bool {
        if self.names.is_empty() && self.older.is_empty() && self.concluded.is_empty() {
            return false;
        }
        let mut over = tokens;
        while over > 0.0
            && let Some(name) = self.names.pop()
        {
            over -= name.tokens;
        }
        self.older.retain(|line| {
            let stays = over <= 0.0;
            over -= if stays { 0.0 } else { line.tokens };
            stays
        });
        while over > 0.0
            && let Some(line) = self.concluded.pop()
        {
            over -= line.tokens;
        }
        true
    }

    /// Gives up the names within a place of a document: another one says them.
    fn give_up_within(&mut self, document: usize, place: Range<usize>) {
        let is_within = |name: &Name| name.document == Some(document) && place.contains(&name.at);
        let given_up: f32 = self.names.iter().filter(|name| is_within(name)).map(|name| name.tokens).sum();
        self.names.retain(|name| !is_within(name));
        self.left += given_up;
    }

    /// Returns the ledger's message if the groups stay that `is_open` picks.
    fn message(&self, language: Language, is_open: impl Fn(usize) -> bool) -> Option<String> {
        let mut names: Vec<&Name> = self.names.iter().collect();
        names.sort_by_key(|name| (name.document, name.at));
        let names: Vec<&str> = names.into_iter().map(|name| &*name.text).collect();
        let mut calls: Vec<String> = Vec::new();
        let mut shared: Vec<(&str, usize)> = Vec::new();
        let mut lines: Vec<&CallLine> = self.lines.iter().chain(&self.concluded).collect();
        lines.sort_by_key(|line| line.entry);
        for line in self.older.iter().chain(lines).filter(|line| !line.group.is_some_and(&is_open)) {
            let tool = line.shared.filter(|_| line.odd.is_none()).map(|end| line.text.split_at(end));
            let before = |tool| shared.iter().find(|(name, _)| *name == tool).map(|&(_, at)| at);
            if let Some((at, rest)) = tool.and_then(|(tool, rest)| Some((before(tool)?, rest))) {
                calls[at].push(',');
                calls[at].push_str(rest);
            } else {
                shared.extend(tool.map(|(tool, _)| (tool, calls.len())));
                calls.push(ledger::told_line(&line.text, line.odd.as_ref().map(|(odd, _)| &**odd)));
            }
        }
        let unlisted = self.unlisted.iter().filter(|&&group| !is_open(group)).count();
        ledger::message(&names, &calls, self.unlisted_earlier.saturating_add(unlisted), language)
    }
}

impl Fit<'_, '_, '_> {
    /// Returns the tokens for the ledger; protected messages leave `free` tokens.
    pub(super) fn ledger_tokens(&self, free: f32) -> f32 {
        let rest = self.room_beside_newest();
        let (tokens, calls) = ((rest * LEDGER_SHARE).min(MAX_LEDGER), (rest * CALLS_SHARE).min(MAX_CALLS).min(free));
        let has_calls = || {
            let mut entries = self.protection.tier(Tier::Older).flat_map(|(_, group)| group.start..group.end);
            entries.any(|entry| self.draft.call(entry).is_some())
        };
        if !is_on(Mechanism::Ledger) {
            0.0
        } else if calls >= MIN_CALLS && self.tier_tokens(Tier::Older) > rest && has_calls() {
            tokens.max(calls)
        } else if tokens >= MIN_LEDGER {
            tokens
        } else {
            0.0
        }
    }

    /// Returns whether the request asks for what was said in a talk without calls: that stays with its sentence, and a bare name answers
    /// nothing. Of the evidence of meetings .624 and .622 stay at 25 % with this, .611 and .594 beside a ledger. For what is asked
    /// later names are .03 to .11 of the answers of an interview.
    pub(super) fn asks_in_talk(&self, scoring: &Scoring) -> bool {
        let entries = 0..self.draft.entries.len();
        !self.draft.is_for_later
            && self.protection.last_user.is_some_and(|last| last + 1 == entries.end)
            && entries.clone().any(|entry| scoring.said(entry) > 0.0)
            && entries.clone().all(|entry| self.draft.call(entry).is_none())
    }

    /// Writes the ledger for the current selection.
    pub(super) fn write_ledger(&mut self, selector: &Selector<'_>) {
        self.left_out.ledger = self.listed.message(self.draft.language(), |group| selector.is_open(group));
    }

    /// Returns the tokens for what stands out in the results of calls that are left out.
    pub(super) fn odd_tokens(&self, selector: &Selector<'_>) -> f32 {
        if !is_on(Mechanism::Classes) {
            return 0.0;
        }
        let most = (self.room_beside_newest() * ODD_SHARE).min(MAX_ODD);
        let closed = self.before_newest().rev().filter(|(position, _)| !selector.is_open(*position));
        let said = closed.flat_map(|(_, group)| group.start..group.end).filter_map(|entry| self.odd_line(entry));
        let mut tokens = 0.0;
        for said in said {
            tokens += self.line_tokens(&said);
            if tokens >= most {
                return most;
            }
        }
        tokens
    }

    /// Lists what the model should know of what is left out, in at most `tokens`, and in `odd_tokens` what stands out in results;
    /// returns the tokens of all.
    pub(super) fn list(&mut self, selector: &mut Selector<'_>, tokens: f32, odd_tokens: f32) -> f32 {
        for line in self.listed.lines.iter().chain(&self.listed.concluded) {
            if !line.group.is_some_and(|group| selector.is_open(group)) {
                selector.cover_text(&line.text);
            }
        }
        let mut listed = Listed { left: tokens - LEDGER_FRAME, ..std::mem::take(&mut self.listed) };
        self.list_earlier_names(selector, &mut listed);
        self.list_calls(selector, &mut listed, tokens, f32::INFINITY);
        let told = self.tell_odd(selector, &mut listed, odd_tokens, odd_tokens);
        self.list_all_names(selector, &mut listed);
        self.listed = listed;
        tokens - self.listed.left + told
    }

    /// Returns the group of an entry.
    pub(super) fn group_of(&self, entry: usize) -> usize {
        self.protection.groups.partition_point(|group| group.end <= entry)
    }

    /// Returns whether the part at byte `at` of a document stays.
    pub(super) fn stays(&self, selector: &Selector<'_>, document: usize, at: usize) -> bool {
        let Place { entry, block, .. } = self.places[document];
        selector.is_open(self.group_of(entry))
            && block.is_none_or(|block| {
                let part = selector.document(document).analysis.byte_ranges().position(|(_, range)| at < range.end);
                part.is_some_and(|part| selector.stays(block, part))
            })
    }

    /// Lists again, within what the budget leaves: without names that stay after all, with calls and names that were given
    /// up since.
    pub(super) fn list_again(&mut self, selector: &mut Selector<'_>, tokens: f32, odd_tokens: f32) {
        let mut listed = std::mem::take(&mut self.listed);
        let stays = |name: &Name| match name.mention {
            Some(mention) => selector.stays_named(mention),
            None => name.document.is_some_and(|document| self.stays(selector, document, name.at)),
        };
        listed.names.retain(|name| !stays(name));
        // The newest calls may have been given up.
        listed.older.clear();
        listed.left = tokens - LEDGER_FRAME - listed.names.iter().map(|name| name.tokens).sum::<f32>();
        self.listed = listed.clone();
        self.write_ledger(selector);
        let frame = if self.left_out.ledger.is_none() { LEDGER_FRAME } else { 0.0 };
        let room = (self.budget_tokens - self.tokens()).as_f32() - frame;
        self.list_calls(selector, &mut listed, tokens, room);
        self.listed = listed.clone();
        self.write_ledger(selector);
        let room = (self.budget_tokens - self.tokens()).as_f32();
        let told = self.tell_odd(selector, &mut listed, odd_tokens, room);
        listed.left = listed.left.min(room - told);
        let names = listed.names.clone();
        self.list_all_names(selector, &mut listed);
        self.listed = listed;
        self.write_ledger(selector);
        if self.tokens() > self.budget_tokens {
            self.listed.names = names;
            self.write_ledger(selector);
        }
    }
}
