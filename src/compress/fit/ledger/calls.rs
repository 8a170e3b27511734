//! Lists calls: each that changed something, and look-ups as far as there is room.

use std::cmp::Reverse;
use std::collections::HashSet;

use super::{CallLine, LEDGER_FRAME, Listed, MAX_TOO_LONG, MIN_NAME};
use crate::compress::fit::Fit;
use crate::compress::protection::Tier;
use crate::conversation::Group;
use crate::message::Text;
use crate::select::selector::Selector;
use crate::select::{Mechanism, is_on};
use crate::text::elision;
use crate::text::ledger;
use crate::text::segments::Class;
use crate::tools::{Effect, exit_code};

/// Shares for lines of calls, (of a small room, of what is beyond that): for the last round, and for earlier changes of the
/// room beside the newest group. The last is the least share for these of a small room.
const LITTLE_ROOM: f32 = 4_096.0;
const LAST_ROUND_SHARE: (f32, f32) = (0.6, 0.25);
const CHANGES_SHARE: (f32, f32) = (0.6, 0.1);
const LEAST_CHANGES: f32 = 0.25;

/// Most parts of a result that stand out, for these to be told, and most characters of all and bytes of one.
const MOST_ODD: usize = 8;
const MAX_ODD_CHARS: usize = 120;
const MAX_ODD_BYTES: usize = 500;

/// Share of the ledger for names beside calls.
const NAMES_SHARE: f32 = 0.25;

impl Fit<'_, '_, '_> {
    /// Returns the tokens of the lines for the calls of a tier.
    pub fn lines_tokens(&self, tier: Tier) -> f32 {
        let of_tier = |line: &&CallLine| line.group.is_some_and(|group| self.protection.tiers[group] == Some(tier));
        self.listed.lines.iter().filter(of_tier).map(|line| line.tokens).sum()
    }

    /// Lists look-ups before the last round in at most `room`, those that stand out first, then newest first. Names give way, last
    /// listed first, down to their share of `tokens`.
    pub fn list_calls(&self, selector: &mut Selector<'_>, listed: &mut Listed, tokens: f32, room: f32) {
        let names_tokens: f32 = listed.names.iter().map(|name| name.tokens).sum();
        let mut may_have = (listed.left + names_tokens - tokens * NAMES_SHARE).min(room);
        let mut too_long = 0;
        let groups = self.protection.tier(Tier::Older).rev().filter(|(position, _)| !selector.is_open(*position));
        let mut calls: Vec<(Option<usize>, usize)> =
            groups.flat_map(|(at, group)| (group.start..group.end).rev().map(move |entry| (Some(at), entry))).collect();
        calls.sort_by_key(|(group, _)| group.is_none_or(|group| self.strikes[group] <= 0.0));
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

    /// Returns the line of a look-up before the last round that has none yet: of entry `at`, or of the earlier one `at` if
    /// there is no group.
    fn older_line(&self, listed: &Listed, group: Option<usize>, at: usize) -> Option<CallLine> {
        let earlier = || &self.earlier.lookups[at];
        let (entry, tool) = match group {
            Some(_) if self.draft.entries[at].effect.is_changing() => return None,
            Some(_) => (at, self.draft.call(at)?.name.as_ref()?.as_str()),
            None => (earlier().0, earlier().1.split(' ').next()?),
        };
        let text = if group.is_some() { self.line(at)? } else { earlier().1.clone() };
        if listed.older.iter().any(|line| line.text == text) {
            return None;
        }
        let shares = listed.older.iter().any(|line| line.shared == Some(tool.len()) && line.text.starts_with(tool));
        let tokens = if shares { self.line_tokens(&text[tool.len()..]) - 1.0 } else { self.line_tokens(&text) };
        Some(CallLine { shared: Some(tool.len()), ..CallLine::new(group, entry, text, tokens) })
    }

    /// Returns the ledger line of the call that an entry answers.
    pub fn line(&self, index: usize) -> Option<String> {
        let call = self.draft.call(index)?;
        let arguments = call.arguments.as_ref().map_or("", Text::as_str);
        let answer = &self.draft.entries[index];
        let result = answer.pieces.first().map(|piece| self.draft.source(index, piece));
        Some(ledger::call_line(call.name.as_ref()?.as_str(), arguments, result))
    }

    /// Returns the tokens of a ledger line.
    pub fn line_tokens(&self, line: &str) -> f32 {
        self.draft.counter.text(line).as_f32() + 2.0
    }

    /// Lists the calls of the last round and earlier ones that changed something, newest first, as far as there is room
    /// beside the `rules` of the user; look-ups leave what was `concluded` its room. O(n).
    pub fn list_lines(&mut self, rules: f32, concluded: f32) {
        if !is_on(Mechanism::Ledger) {
            return;
        }
        let share = |room: f32, (of_little, of_more): (f32, f32)| {
            let little = room.min(LITTLE_ROOM);
            little * of_little + (room - little) * of_more
        };
        let free = (self.room - rules - LEDGER_FRAME).max(0.0);
        let last_round = share(self.room, LAST_ROUND_SHARE).min(free);
        let changes = share(self.room_beside_newest(), CHANGES_SHARE).max(self.room.min(LITTLE_ROOM) * LEAST_CHANGES);
        let left = self.list_lines_of(&[Tier::Newest, Tier::LastRound], last_round, concluded);
        let free = free - last_round + left;
        let mut left = self.list_lines_of(&[Tier::Older], changes.min(free), 0.0);
        self.listed.unlisted_earlier = self.earlier.unlisted;
        let mut listed = HashSet::new();
        for (entry, text) in self.earlier.changes.iter().rev() {
            if left > 0.0 {
                let tokens = if listed.insert(text.as_str()) { self.line_tokens(text) } else { 0.0 };
                left -= tokens;
                if left >= 0.0 {
                    let text = text.clone();
                    self.listed.lines.push(CallLine::new(None, *entry, text, tokens));
                    continue;
                }
            }
            let (_, times) = ledger::times_of(text);
            self.listed.unlisted_earlier = self.listed.unlisted_earlier.saturating_add(times);
        }
        self.listed.lines.reverse();
        self.listed.lines.sort_by_key(|line| line.entry);
    }

    /// Puts what stands out in its result behind the line of a call that is left out, newest first: in at most `tokens` with what stands
    /// there already, `room` of them new. Returns the tokens of the new.
    pub fn tell_odd(&self, selector: &mut Selector<'_>, listed: &mut Listed, mut tokens: f32, room: f32) -> f32 {
        let lines = listed.older.iter_mut().chain(&mut listed.lines);
        let mut lines: Vec<&mut CallLine> =
            lines.filter(|line| line.group.is_some_and(|group| !selector.is_open(group))).collect();
        lines.sort_by_key(|line| Reverse(line.entry));
        let mut told = 0.0;
        for line in lines {
            let said = if line.odd.is_none() { self.odd_line(line.entry) } else { None };
            if let Some(said) = said {
                let more = self.line_tokens(&said);
                if more <= tokens && told + more <= room {
                    told += more;
                    selector.cover_text(&said);
                    line.odd = Some((said, more));
                }
            }
            tokens -= line.odd.as_ref().map_or(0.0, |(_, tokens)| *tokens);
        }
        told
    }

    /// Returns what stands out in the few parts of a result that do, failures first. What was looked up can be looked up again.
    pub fn odd_line(&self, entry: usize) -> Option<String> {
        let tool = Effect::of(self.draft.call(entry)?.name.as_ref()?.as_str());
        let block = self.candidates.partition_point(|candidate| candidate.entry < entry);
        if matches!(tool, Effect::ReadsFile | Effect::LooksUp) || self.candidates.get(block)?.entry != entry {
            return None;
        }
        let analysis = self.before[block].analysis.as_ref()?;
        let odd = || analysis.byte_ranges().filter(|(part, _)| part.class.stands_out());
        if odd().take(MOST_ODD + 1).count() > MOST_ODD {
            return None;
        }
        let of = |is_error: bool| odd().filter(move |(part, _)| (part.class == Class::Error) == is_error);
        let said = of(true).chain(of(false)).map(|(_, range)| {
            let said = &self.before(block)[range];
            said[..said.floor_char_boundary(MAX_ODD_BYTES)].trim()
        });
        // The line of a call says it already.
        let said: Vec<&str> = said.filter(|said| exit_code(said).is_none()).collect();
        let said = ledger::on_one_line(&said.join(" / "), MAX_ODD_CHARS);
        Some(said).filter(|said| !said.is_empty() && elision::can_show(said))
    }

    /// Lists the calls of `tiers` in at most `left` tokens, newest first, of which look-ups leave some to others; returns what is left.
    fn list_lines_of(&mut self, tiers: &[Tier], left: f32, to_others: f32) -> f32 {
        let groups = tiers.iter().flat_map(|tier| self.protection.tier(*tier).rev());
        let groups: Vec<usize> = groups.map(|(at, _)| at).collect();
        self.list_lines_in(&groups, left, to_others)
    }

    /// Lists calls that had no room for a line in at most `left` tokens, newest first; returns whether there was one.
    /// A name in its line needs no place of its own.
    pub fn list_unlisted(&mut self, left: f32) -> bool {
        let before = self.listed.lines.len();
        let mut groups = std::mem::take(&mut self.listed.unlisted);
        groups.sort_unstable_by(|one, other| other.cmp(one));
        groups.dedup();
        self.list_lines_in(&groups, left, 0.0);
        let Listed { names, lines, .. } = &mut self.listed;
        names.retain(|name| !lines[before..].iter().any(|line| line.text.contains(&name.text)));
        lines.sort_by_key(|line| line.entry);
        lines.len() > before
    }

    /// Lists the calls of groups that have no line yet, of older groups those that changed something, in at most `left`
    /// tokens: first what stands out, then what changed something, then look-ups, as far as they leave `to_others`; returns what is left.
    fn list_lines_in(&mut self, groups: &[usize], mut left: f32, to_others: f32) -> f32 {
        let listed: HashSet<usize> = self.listed.lines.iter().map(|line| line.entry).collect();
        let entries = |&group: &usize| {
            let Group { start, end, .. } = self.protection.groups[group];
            (start..end).rev().map(move |entry| (group, entry))
        };
        let is_listed = |&(group, entry): &(usize, usize)| {
            let is_older = self.protection.tiers[group] == Some(Tier::Older);
            let answer = &self.draft.entries[entry];
            answer.answers.is_some() && (!is_older || answer.effect.is_changing()) && !listed.contains(&entry)
        };
        let is_lookup = |&(group, entry): &(usize, usize)| {
            self.strikes[group] <= 0.0 && !self.draft.entries[entry].effect.is_changing()
        };
        let (lookups, mut first): (Vec<_>, Vec<_>) =
            groups.iter().flat_map(entries).filter(is_listed).partition(is_lookup);
        first.sort_by_key(|(group, _)| self.strikes[*group] <= 0.0);
        let first = first.into_iter().map(|call| (call, 0.0));
        for ((group, entry), keeps) in first.chain(lookups.into_iter().map(|call| (call, to_others))) {
            if left > keeps {
                let Some(text) = self.line(entry) else { continue };
                let tokens = self.line_tokens(&text);
                if left - tokens >= keeps {
                    left -= tokens;
                    self.listed.lines.push(CallLine::new(Some(group), entry, text, tokens));
                    continue;
                }
                left = left.min(keeps);
            }
            self.listed.unlisted.push(group);
        }
        left
    }

    /// Gives up at least `tokens` of changes, oldest first: their number remains, until there are none to give up.
    pub fn give_up_lines(&mut self, selector: &Selector<'_>, mut tokens: f32) {
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
}
