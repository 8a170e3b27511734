//! The ledger of a fit: which names and calls are written down of what is left out.

use std::sync::Arc;

use crate::message::Text;
use crate::select::scoring::{Author, LostName};
use crate::select::selector::{Kept, Selector};
use crate::text::analysis::Analysis;
use crate::text::envelope;
use crate::text::estimate::float;
use crate::text::language::Language;
use crate::text::ledger;
use crate::text::names::{is_measure, names};
use crate::text::segments::Kind;
use crate::tools::Effect;

use super::Fit;
use crate::compress::documents::Place;
use crate::compress::protection::Tier;

/// Share of a little room that a list of calls may have, and of what a room has beyond that: of those of the last round, and of
/// those before it that changed something, which have a share of what the newest group leaves, and at least one of the room.
const LITTLE_ROOM: f32 = 4_096.0;
const LAST_ROUND_SHARE: (f32, f32) = (0.6, 0.25);
const CHANGES_SHARE: (f32, f32) = (0.6, 0.1);
const LEAST_CHANGES: f32 = 0.25;

/// Share of what the newest group leaves of the room that the ledger of names and of what was looked at may have, and its most
/// tokens.
const LEDGER_SHARE: f32 = 0.08;
const MAX_LEDGER: f32 = 500.0;
/// What names have of it where there are calls to be said.
const NAMES_SHARE: f32 = 0.25;
/// Below this there would be little in it beside its frame.
const MIN_LEDGER: f32 = 48.0;
/// The same where calls are left out with more than there is room for: what was done is hardly ever as short as in its line.
/// Source: future-reference recall at 25 and 50 % of the recorded runs, .720 and .891 without, .749 and .896 with it.
const CALLS_SHARE: f32 = 0.33;
const MAX_CALLS: f32 = 192.0;
const MIN_CALLS: f32 = 32.0;
/// Names that are worth less are not worth a line: those that the next step uses once in ten thousand times.
const MIN_WORTH: f32 = 0.01;
/// Tokens of a ledger without anything in it.
pub(super) const LEDGER_FRAME: f32 = 22.0;
/// Bytes of prose in which names are looked for, and of a name.
const MAX_PROSE_BYTES: usize = 64 << 10;
const MAX_NAME_BYTES: usize = 80;
/// With less room than this for another name nothing more is looked for.
const MIN_NAME: f32 = 5.0;
/// Names, or calls, that have no room before the search ends: the next are worth less, and each is counted.
const MAX_TOO_LONG: usize = 64;
/// Bytes around a term in which the name that it is part of is looked for.
const AROUND: usize = 120;

/// What a ledger may say.
#[derive(Clone, Default)]
pub(super) struct Listed {
    /// In the order that they were listed in: the last are worth least.
    pub(super) names: Vec<Name>,
    /// The calls of the rounds before the last that changed nothing and have room, in order; those stand there whose groups
    /// are left out.
    pub(super) older: Vec<Line>,
    /// The calls of the last round and those before that changed something, the same.
    pub(super) lines: Vec<Line>,
    /// The groups of those that changed something and have no room, and how many more there were before.
    pub(super) unlisted: Vec<usize>,
    pub(super) unlisted_earlier: usize,
    /// Tokens that more names may have.
    pub(super) left: f32,
}

/// A call in a ledger.
#[derive(Clone)]
pub(super) struct Line {
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
        let rest = self.rest();
        let (tokens, calls) = ((rest * LEDGER_SHARE).min(MAX_LEDGER), (rest * CALLS_SHARE).min(MAX_CALLS).min(free));
        let has_calls = || {
            let mut entries = self.protection.tier(Tier::Older).flat_map(|(_, group)| group.start..group.end);
            entries.any(|entry| self.draft.call(entry).is_some())
        };
        if !self.by.ledger {
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

    /// Returns the tokens of the lines for the calls of a tier.
    pub(super) fn lines_tokens(&self, tier: Tier) -> f32 {
        let of_tier = |line: &&Line| line.group.is_some_and(|group| self.protection.tiers[group] == Some(tier));
        self.listed.lines.iter().filter(of_tier).map(|line| line.tokens).sum()
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

    /// Lists what was looked at before the last round in at most `room`, the newest first. Names give way to it, the last
    /// listed first, down to their share of `tokens`.
    fn list_calls(&self, selector: &mut Selector<'_>, listed: &mut Listed, tokens: f32, room: f32) {
        let names_tokens: f32 = listed.names.iter().map(|name| name.tokens).sum();
        let mut may_have = (listed.left + names_tokens - tokens * NAMES_SHARE).min(room);
        let mut too_long = 0;
        let groups = self.protection.tier(Tier::Older).rev().filter(|(position, _)| !selector.is_open(*position));
        let calls: Vec<(Option<usize>, usize)> =
            groups.flat_map(|(at, group)| (group.start..group.end).rev().map(move |entry| (Some(at), entry))).collect();
        let earlier = (0..self.earlier.lookups.len()).rev().map(|nth| (None, nth));
        for (group, at) in calls.into_iter().chain(earlier) {
            if may_have < MIN_NAME || too_long >= MAX_TOO_LONG {
                break;
            }
            let Some(line) = self.older_line(listed, group, at) else { continue };
            if line.tokens > may_have {
                too_long += 1;
                continue;
            }
            may_have -= line.tokens;
            listed.left -= line.tokens;
            while listed.left < 0.0
                && let Some(name) = listed.names.pop()
            {
                listed.left += name.tokens;
            }
            selector.cover_text(&line.text);
            listed.older.push(line);
        }
        listed.older.reverse();
        listed.older.sort_by_key(|line| line.entry);
    }

    /// Returns what a ledger says of a call before the last round that changed nothing and is not said yet: of the entry at `at`,
    /// or of the earlier one at `at` where there is no group.
    fn older_line(&self, listed: &Listed, group: Option<usize>, at: usize) -> Option<Line> {
        let earlier = || &self.earlier.lookups[at];
        let (entry, tool) = match group {
            Some(_) => (at, self.draft.call(at)?.name.as_ref()?.as_str()),
            None => (earlier().0, earlier().1.split(' ').next()?),
        };
        if Effect::of(tool).is_changing() {
            return None;
        }
        let text = if group.is_some() { self.line(at)? } else { earlier().1.clone() };
        if listed.older.iter().any(|line| line.text == text) {
            return None;
        }
        let shares = listed.older.iter().any(|line| line.shared == Some(tool.len()) && line.text.starts_with(tool));
        let tokens = if shares { self.line_tokens(&text[tool.len()..]) - 1.0 } else { self.line_tokens(&text) };
        Some(Line { group, entry, text, tokens, shared: Some(tool.len()) })
    }

    /// Lists the names of earlier ledgers that nothing else says, in at most half of the room.
    fn list_earlier_names(&self, selector: &mut Selector<'_>, listed: &mut Listed) {
        let least = listed.left / 2.0;
        for (at, name) in self.earlier.names.iter().enumerate() {
            if listed.left - least < MIN_NAME {
                break;
            }
            let tokens = float(u64::from(self.draft.counter.text(name))) + 1.0;
            if listed.left - tokens >= least && !selector.is_text_covered(name) {
                listed.left -= tokens;
                selector.cover_text(name);
                listed.names.push(Name { document: None, at, mention: None, text: name.clone(), tokens });
            }
        }
    }

    /// Returns the line of a ledger for the call that an entry answers.
    pub(super) fn line(&self, index: usize) -> Option<String> {
        let call = self.draft.call(index)?;
        let arguments = call.arguments.as_ref().map_or("", Text::as_str);
        let answer = &self.draft.entries[index];
        let result = answer.pieces.first().map(|piece| self.draft.source(index, piece));
        Some(ledger::call_line(call.name.as_ref()?.as_str(), arguments, result))
    }

    /// Returns the tokens that a line takes in a ledger.
    pub(super) fn line_tokens(&self, line: &str) -> f32 {
        float(u64::from(self.draft.counter.text(line))) + 2.0
    }

    /// Lists the calls of the last round, and those before that changed something: what was done is never invisible. The newest,
    /// as many as there is room for.
    pub(super) fn list_lines(&mut self) {
        if !self.by.ledger {
            return;
        }
        let share = |room: f32, (of_little, of_more): (f32, f32)| {
            let little = room.min(LITTLE_ROOM);
            little * of_little + (room - little) * of_more
        };
        let last_round = share(self.room, LAST_ROUND_SHARE);
        let changes = share(self.rest(), CHANGES_SHARE).max(self.room.min(LITTLE_ROOM) * LEAST_CHANGES);
        self.list_lines_of(&[Tier::Newest, Tier::LastRound], last_round);
        let mut left = self.list_lines_of(&[Tier::Older], changes);
        self.listed.unlisted_earlier = self.earlier.unlisted;
        for (entry, text) in self.earlier.changes.iter().rev() {
            if left > 0.0 {
                let tokens = self.line_tokens(text);
                left -= tokens;
                if left >= 0.0 {
                    let text = text.clone();
                    self.listed.lines.push(Line { group: None, entry: *entry, text, tokens, shared: None });
                    continue;
                }
            }
            self.listed.unlisted_earlier = self.listed.unlisted_earlier.saturating_add(1);
        }
        self.listed.lines.reverse();
        self.listed.lines.sort_by_key(|line| line.entry);
    }

    /// Lists the calls of `tiers` in at most `left` tokens, the newest first; of older ones those that changed something.
    /// Returns what is left.
    fn list_lines_of(&mut self, tiers: &[Tier], mut left: f32) -> f32 {
        let groups = tiers.iter().flat_map(|tier| self.protection.tier(*tier).rev());
        for (group, entry) in
            groups.flat_map(|(at, group)| (group.start..group.end).rev().map(move |entry| (at, entry)))
        {
            let Some(call) = self.draft.call(entry) else { continue };
            let is_changing = || call.name.as_ref().is_some_and(|name| Effect::of(name.as_str()).is_changing());
            if self.protection.tiers[group] == Some(Tier::Older) && !is_changing() {
                continue;
            }
            if left > 0.0 {
                let Some(text) = self.line(entry) else { continue };
                let tokens = self.line_tokens(&text);
                left -= tokens;
                if left >= 0.0 {
                    self.listed.lines.push(Line { group: Some(group), entry, text, tokens, shared: None });
                    continue;
                }
            }
            self.listed.unlisted.push(group);
        }
        left
    }

    /// Gives up calls that changed something, at least `tokens` of them or all there are, the oldest first: only their number is
    /// said, and at last not even that.
    pub(super) fn give_up_lines(&mut self, selector: &Selector<'_>, mut tokens: f32) {
        let listed = &mut self.listed;
        let before = listed.lines.len();
        listed.lines.retain(|line| {
            let stays = tokens <= 0.0 || line.group.is_some_and(|group| selector.is_open(group));
            if !stays {
                tokens -= line.tokens;
                listed.unlisted.extend(line.group);
                listed.unlisted_earlier = listed.unlisted_earlier.saturating_add(usize::from(line.group.is_none()));
            }
            stays
        });
        if listed.lines.len() == before {
            (listed.unlisted, listed.unlisted_earlier) = (Vec::new(), 0);
        }
    }

    /// Leaves out the names that stand in texts that were given more.
    pub(super) fn forget_names(&mut self, more: &[usize], selector: &Selector<'_>) {
        let texts = more.iter().map(|&block| (self.candidates[block].entry, self.candidates[block].piece));
        let texts: Vec<&str> = texts.map(|(entry, piece)| self.draft.text(entry, piece)).collect();
        self.listed.names.retain(|name| !texts.iter().any(|text| text.contains(&name.text)));
        self.write_ledger(selector);
    }

    /// Lists names as far as there is room: those that the user wrote, those that are likely to be used, and what else was
    /// written down in prose.
    pub(super) fn list_all_names(&self, selector: &mut Selector<'_>, listed: &mut Listed) {
        self.list_written(selector, listed, &[Author::User]);
        self.list_names(selector, listed);
        self.list_written(selector, listed, &[Author::Assistant, Author::Result]);
    }

    /// Lists the names in prose of some voices that do not stay, the newest first.
    pub(super) fn list_written(&self, selector: &mut Selector<'_>, listed: &mut Listed, of: &[Author]) {
        let mut may_read = MAX_PROSE_BYTES;
        for document in (0..self.places.len()).rev() {
            let (author, analysis) =
                (selector.document(document).author, Arc::clone(&selector.document(document).analysis));
            let Place { entry, piece, block } = self.places[document];
            let is_open = selector.is_open(self.group_of(entry));
            if !of.contains(&author)
                || !is_prose(&analysis)
                || (is_open && block.is_none_or(|block| selector.kept(block) == Kept::Whole))
            {
                continue;
            }
            let text = block.map_or_else(|| self.draft.text(entry, piece), |block| self.before(block));
            if text.len() > may_read {
                continue;
            }
            may_read -= text.len();
            let parts = &analysis.parts;
            let (mut part, mut end) = (0, parts.first().map_or(0, |part| part.bytes as usize));
            let written = written_from(author, text);
            for name in names(text).into_iter().filter(|name| name.start >= written) {
                while end <= name.start && part + 1 < parts.len() {
                    part += 1;
                    end += parts[part].bytes as usize;
                }
                let (at, name) = (name.start, &text[name]);
                let is_known = name.len() > MAX_NAME_BYTES
                    || ledger::is_heading(text, at)
                    || (is_open && block.is_some_and(|block| selector.stays(block, part)))
                    || selector.is_text_covered(name)
                    || listed.names.iter().any(|listed| listed.text.contains(name));
                if is_known {
                    continue;
                }
                let tokens = float(u64::from(self.draft.counter.text(name))) + 1.0;
                if tokens <= listed.left {
                    listed.left -= tokens;
                    selector.cover_text(name);
                    listed.names.push(Name {
                        document: Some(document),
                        at,
                        mention: None,
                        text: name.to_owned(),
                        tokens,
                    });
                }
                if listed.left < MIN_NAME {
                    return;
                }
            }
        }
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

    /// Lists the names that are lost, the likeliest first, as far as there is room for them.
    pub(super) fn list_names(&self, selector: &mut Selector<'_>, listed: &mut Listed) {
        let mut lost = selector.lost(MIN_WORTH);
        lost.sort_by(|a, b| b.worth.total_cmp(&a.worth));
        let mut too_long = 0;
        for LostName { document, mention, term, nth, .. } in lost {
            if listed.left < 2.0 || too_long >= MAX_TOO_LONG {
                break;
            }
            let Place { entry, piece, block } = self.places[document];
            let text = block.map_or_else(|| self.draft.text(entry, piece), |block| self.before(block));
            let analysis = &selector.document(document).analysis;
            let Some(name) = analysis.name(text, nth, term) else { continue };
            let at = name.as_ptr().addr() - text.as_ptr().addr();
            if ledger::is_heading(text, at) || at < written_from(selector.document(document).author, text) {
                continue;
            }
            let name = match is_prose(analysis) {
                true => as_written(text, at).unwrap_or(name),
                false if is_measure(name) => continue,
                false => name,
            };
            let tokens = float(u64::from(self.draft.counter.text(name))) + 1.0;
            if tokens > listed.left {
                too_long += 1;
            } else if !selector.is_covered(mention) {
                listed.left -= tokens;
                selector.cover_text(name);
                listed.names.push(Name {
                    document: Some(document),
                    at,
                    mention: Some(mention),
                    text: name.to_owned(),
                    tokens,
                });
            }
        }
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
        let room = float(self.budget_tokens.saturating_sub(self.tokens())) - frame;
        self.list_calls(selector, &mut listed, tokens, room);
        self.listed = listed;
        self.write_ledger(selector);
        let mut listed = std::mem::take(&mut self.listed);
        listed.left = listed.left.min(float(self.budget_tokens.saturating_sub(self.tokens())));
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

/// Returns where the words of an author begin in a text: a channel puts times and senders before those of the user.
fn written_from(author: Author, text: &str) -> usize {
    if author == Author::User { envelope::start(text) } else { 0 }
}

/// Returns whether a text is prose.
fn is_prose(analysis: &Analysis) -> bool {
    matches!(analysis.kind(), None | Some(Kind::Plain))
}

/// Returns the name around `at` as somebody wrote it.
fn as_written(text: &str, at: usize) -> Option<&str> {
    let start = text.ceil_char_boundary(at.saturating_sub(AROUND));
    let near = &text[start..text.floor_char_boundary(at + AROUND)];
    let name = names(near).into_iter().find(|name| name.contains(&(at - start)))?;
    Some(&near[name]).filter(|name| name.len() <= MAX_NAME_BYTES)
}
