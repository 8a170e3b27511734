//! The ledger of a fit: which names and calls are written down of what is left out.

mod calls;
mod names;

use crate::select::selector::Selector;
use crate::select::{Mechanism, is_on};
use crate::text::language::Language;
use crate::text::ledger;

use super::Fit;
use crate::compress::documents::Place;
use crate::compress::protection::Tier;

/// Share of what the newest group leaves of the room that the ledger of names and of what was looked at may have, and its most
/// tokens.
const LEDGER_SHARE: f32 = 0.08;
const MAX_LEDGER: f32 = 500.0;
/// Below this there would be little in it beside its frame.
const MIN_LEDGER: f32 = 48.0;
/// The same where calls are left out with more than there is room for: what was done is hardly ever as short as in its line.
/// Source: future-reference recall at 25 and 50 % of the recorded runs, .720 and .891 without, .749 and .896 with it.
const CALLS_SHARE: f32 = 0.33;
const MAX_CALLS: f32 = 192.0;
const MIN_CALLS: f32 = 32.0;
/// Tokens of a ledger without anything in it.
pub(super) const LEDGER_FRAME: f32 = 22.0;
/// With less room than this for another name nothing more is looked for.
const MIN_NAME: f32 = 5.0;
/// Names, or calls, that have no room before the search ends: the next are worth less, and each is counted.
const MAX_TOO_LONG: usize = 64;

/// What a ledger may say.
#[derive(Clone, Default)]
pub(super) struct Listed {
    /// In the order that they were listed in: the last are worth least.
    pub(super) names: Vec<Name>,
    /// The calls of the rounds before the last that changed nothing and have room, in order; those stand there whose groups
    /// are left out.
    pub(super) older: Vec<CallLine>,
    /// The calls of the last round and those before that changed something, the same.
    pub(super) lines: Vec<CallLine>,
    /// The groups of those that changed something and have no room, and how many more there were before.
    pub(super) unlisted: Vec<usize>,
    pub(super) unlisted_earlier: usize,
    /// Tokens that more names may have.
    pub(super) left: f32,
}

/// A call in a ledger.
#[derive(Clone)]
pub(super) struct CallLine {
    /// `None` for one of an earlier ledger, which is listed whatever stays.
    pub(super) group: Option<usize>,
    entry: usize,
    text: String,
    pub(super) tokens: f32,
    /// Bytes of the tool's name, where the call shares a line with others of that tool: those that changed nothing, of
    /// rounds before the last.
    shared: Option<usize>,
}

/// A name in a ledger.
#[derive(Clone)]
pub(super) struct Name {
    /// `None` for one of an earlier ledger.
    document: Option<usize>,
    /// Where it begins in the text.
    at: usize,
    /// Its mention as a term, where it is one.
    mention: Option<usize>,
    text: String,
    tokens: f32,
}

impl Listed {
    /// Gives up `tokens`, or all there are, of names and of what was looked at before the last round, names first, the oldest
    /// first. Returns whether there was anything.
    pub(super) fn give_up(&mut self, tokens: f32) -> bool {
        if self.names.is_empty() && self.older.is_empty() {
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
        true
    }

    /// Returns the message where the groups stay that `is_open` names.
    fn message(&self, language: Language, is_open: impl Fn(usize) -> bool) -> Option<String> {
        let mut names: Vec<&Name> = self.names.iter().collect();
        names.sort_by_key(|name| (name.document, name.at));
        let names: Vec<&str> = names.into_iter().map(|name| &*name.text).collect();
        let mut calls: Vec<String> = Vec::new();
        let mut shared: Vec<(&str, usize)> = Vec::new();
        for line in self.older.iter().chain(&self.lines).filter(|line| !line.group.is_some_and(&is_open)) {
            let tool = line.shared.map(|end| line.text.split_at(end));
            let before = |tool| shared.iter().find(|(name, _)| *name == tool).map(|&(_, at)| at);
            if let Some((at, rest)) = tool.and_then(|(tool, rest)| Some((before(tool)?, rest))) {
                calls[at].push(',');
                calls[at].push_str(rest);
            } else {
                shared.extend(tool.map(|(tool, _)| (tool, calls.len())));
                calls.push(line.text.clone());
            }
        }
        let unlisted = self.unlisted.iter().filter(|&&group| !is_open(group)).count();
        ledger::message(&names, &calls, self.unlisted_earlier.saturating_add(unlisted), language)
    }
}

impl Fit<'_, '_, '_> {
    /// Returns the tokens that the ledger may have beside what is protected, which leaves `free` tokens.
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

    /// Writes the ledger for what is left out now.
    pub(super) fn write_ledger(&mut self, selector: &Selector<'_>) {
        self.left_out.ledger = self.listed.message(self.draft.language(), |group| selector.is_open(group));
    }

    /// Lists what a model should still know of what is left out, in at most `tokens`.
    pub(super) fn list(&mut self, selector: &mut Selector<'_>, tokens: f32) {
        for line in &self.listed.lines {
            if !line.group.is_some_and(|group| selector.is_open(group)) {
                selector.cover_text(&line.text);
            }
        }
        let mut listed = Listed { left: tokens - LEDGER_FRAME, ..std::mem::take(&mut self.listed) };
        self.list_earlier_names(selector, &mut listed);
        self.list_calls(selector, &mut listed, tokens, f32::INFINITY);
        self.list_all_names(selector, &mut listed);
        self.listed = listed;
    }

    /// Returns the group of an entry.
    pub(super) fn group_of(&self, entry: usize) -> usize {
        self.protection.groups.partition_point(|group| group.end <= entry)
    }

    /// Returns whether what stands at `at` in the text of a document stays.
    pub(super) fn stays(&self, selector: &Selector<'_>, document: usize, at: usize) -> bool {
        let Place { entry, block, .. } = self.places[document];
        let mut end = 0;
        selector.is_open(self.group_of(entry))
            && block.is_none_or(|block| {
                let mut parts = selector.document(document).analysis.parts.iter();
                let part = parts.position(|part| {
                    end += part.bytes as usize;
                    at < end
                });
                part.is_some_and(|part| selector.stays(block, part))
            })
    }

    /// Lists anew, in what the budget leaves: without names that stay after all, with the calls and names of what was given up
    /// since.
    pub(super) fn list_again(&mut self, selector: &mut Selector<'_>, tokens: f32) {
        let mut listed = std::mem::take(&mut self.listed);
        let stays = |name: &Name| match name.mention {
            Some(mention) => selector.stays_named(mention),
            None => name.document.is_some_and(|document| self.stays(selector, document, name.at)),
        };
        listed.names.retain(|name| !stays(name));
        // The newest calls may be among what was given up.
        listed.older.clear();
        listed.left = tokens - LEDGER_FRAME - listed.names.iter().map(|name| name.tokens).sum::<f32>();
        self.listed = listed.clone();
        self.write_ledger(selector);
        let frame = if self.left_out.ledger.is_none() { LEDGER_FRAME } else { 0.0 };
        let room = (self.budget_tokens - self.tokens()).as_f32() - frame;
        self.list_calls(selector, &mut listed, tokens, room);
        self.listed = listed;
        self.write_ledger(selector);
        let mut listed = std::mem::take(&mut self.listed);
        listed.left = listed.left.min((self.budget_tokens - self.tokens()).as_f32());
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
