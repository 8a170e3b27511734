//! The fit: a request cut to its budget, filled as far as it goes.
//!
//! What may be cut is given up in an order: everything before the last round first, then the last round without its
//! newest group, then that group; system messages and the last message of the user never. Within one of these tiers a
//! common level is found to which the texts are shortened, each according to its weight, so that what is left fills the
//! room: nothing is dropped whole while shortening is enough. Only when even the shortest forms are too much do groups
//! go, oldest first, and a note stands for them.

use crate::error::{Error, Floor, Result};
use crate::message::{Role, Text};
use crate::tokens::{TokenCounter, cut_by_content};

use super::archive;
use super::draft::{Draft, Entry, Origin, Piece, Slot};
use super::marks;
use super::plan::Reason;
use super::priority::{Priority, classify, is_shell_result};
use super::rounds::{Group, groups, is_note};
use super::shorten;

/// Arguments shorter than this are never cut: the marks would cost as much.
const MIN_CUT_ARGUMENTS: u64 = 96;

/// Characters that every string of cut arguments keeps at least.
const ARGUMENT_CHARS: usize = 40;

/// Cuts the draft until it has at most `budget_tokens`.
///
/// # Errors
///
/// [`Error::Overflow`] when what is never cut is already more.
pub fn fit(draft: &mut Draft<'_, '_>, budget_tokens: u64, model: Option<&str>) -> Result<()> {
    if draft.tokens() <= budget_tokens {
        return Ok(());
    }
    let layout = Layout::of(draft);
    let floor = layout.floor(draft);
    let floor_tokens: u64 = floor.iter().map(|(_, tokens)| tokens).sum();
    if floor_tokens > budget_tokens {
        return Err(overflow(floor, budget_tokens, model));
    }
    let mut division = Division::new(draft, &layout);
    division.plan(budget_tokens - floor_tokens);
    division.apply(draft);
    // No text is larger than its share, and notes for which there is no room are left out.
    draft.max_note_tokens = budget_tokens.saturating_sub(draft.tokens());
    Ok(())
}

fn overflow(mut parts: Vec<(&'static str, u64)>, limit_tokens: u64, model: Option<&str>) -> Error {
    parts.sort_by_key(|&(_, tokens)| std::cmp::Reverse(tokens));
    let needed_tokens = parts.iter().map(|(_, tokens)| tokens).sum();
    Error::Overflow { floor: Box::new(Floor { needed_tokens, limit_tokens, model: model.map(str::to_owned), parts }) }
}

/// Which entries belong to which tier.
struct Layout {
    groups: Vec<Group>,
    /// For each group, its tier, or `None` for what is never cut.
    tiers: Vec<Option<Tier>>,
    last_user: Option<usize>,
}

/// What is given up first comes first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Tier {
    Older,
    LastRound,
    Newest,
}

impl Layout {
    fn of(draft: &Draft<'_, '_>) -> Self {
        let entries = &draft.entries;
        let groups = groups(entries.iter().map(|entry| entry.role));
        let is_user = |&index: &usize| {
            entries[index].role == Role::User && draft.message(index).is_some_and(|message| !is_note(message))
        };
        let last_user = (0..entries.len()).rev().find(is_user);
        let newest = groups.iter().rposition(|group| group.role != Role::System);
        let tiers = groups
            .iter()
            .enumerate()
            .map(|(position, group)| {
                if group.role == Role::System || Some(group.start) == last_user {
                    None
                } else if last_user.is_some_and(|last| group.start < last) {
                    Some(Tier::Older)
                } else if Some(position) == newest {
                    Some(Tier::Newest)
                } else {
                    Some(Tier::LastRound)
                }
            })
            .collect();
        Self { groups, tiers, last_user }
    }

    /// Iterates over the groups of a tier, as (position, group).
    fn tier(&self, tier: Tier) -> impl DoubleEndedIterator<Item = (usize, Group)> + '_ {
        self.groups.iter().copied().enumerate().filter(move |(position, _)| self.tiers[*position] == Some(tier))
    }

    /// Returns the tokens of what is never cut, part by part.
    fn floor(&self, draft: &Draft<'_, '_>) -> Vec<(&'static str, u64)> {
        let system = draft.entries.iter().filter(|entry| entry.role == Role::System).map(Entry::tokens).sum();
        let last_user = self.last_user.map_or(0, |index| draft.entries[index].tokens());
        let reply = crate::tokens::REPLY;
        vec![("system", system), ("last_user", last_user), ("tools", draft.overhead_tokens - reply), ("framing", reply)]
    }
}

/// Something that may be cut, and what it will get.
struct Candidate {
    entry: usize,
    piece: usize,
    /// Position of its group.
    group: usize,
    full: u64,
    /// Tokens of its shortest form.
    floor: u64,
    /// Share of the common level that it may have; 0 gets only what is left over.
    weight: u64,
    /// Whether it is kept whole or not at all.
    whole: bool,
    /// Tokens it will get.
    share: u64,
}

impl Candidate {
    fn at(&self, level: u64) -> u64 {
        let share = level.saturating_mul(self.weight);
        if share >= self.full {
            self.full
        } else if self.whole {
            self.floor
        } else {
            share.max(self.floor)
        }
    }
}

/// Returns the highest level at which no more than `room` tokens are used; 0 where none is low enough.
pub fn highest(room: u64, used_at: impl Fn(u64) -> u64) -> u64 {
    let (mut low, mut high) = (0, room);
    while low < high {
        let middle = low + (high - low).div_ceil(2);
        if used_at(middle) <= room { low = middle } else { high = middle - 1 }
    }
    low
}

/// Shortens tool results before the last round until all results together have at most `max_tokens`.
///
/// The results of the last round stay, and so may keep the sum above the limit.
pub fn shrink_results(draft: &mut Draft<'_, '_>, max_tokens: u64) {
    let layout = Layout::of(draft);
    let mut candidates = Division::new(draft, &layout).candidates;
    candidates.retain(|candidate| {
        draft.entries[candidate.entry].role == Role::Tool && layout.tiers[candidate.group] == Some(Tier::Older)
    });
    let total = result_tokens(draft);
    let may_go: u64 = candidates.iter().map(|candidate| candidate.full).sum();
    let room = max_tokens.saturating_sub(total - may_go);
    let level = highest(room, |level| candidates.iter().map(|candidate| candidate.at(level)).sum());
    for candidate in &candidates {
        if candidate.at(level) < candidate.full {
            cut(draft, candidate, candidate.at(level), Reason::ManyResults);
        }
    }
}

/// Returns the tokens of all tool results, those included that a repair put in: the next time they are results like others.
pub fn result_tokens(draft: &Draft<'_, '_>) -> u64 {
    let kept = draft.entries.iter().filter(|entry| entry.role == Role::Tool && entry.dropped.is_none());
    kept.map(|entry| match &entry.origin {
        Origin::View(_) => entry.pieces.iter().map(|piece| piece.tokens).sum(),
        Origin::Backfill(message) => u64::from(draft.counter.text(&message.content)),
    })
    .sum()
}

/// The division of the room among all that may be cut.
struct Division<'l> {
    layout: &'l Layout,
    /// Tokens of a note for groups that go.
    note_tokens: u64,
    candidates: Vec<Candidate>,
    /// By group: tokens that no shortening changes.
    fixed: Vec<u64>,
    /// By group: whether it goes.
    gone: Vec<bool>,
    /// By group: whether it goes last in its tier.
    precious: Vec<bool>,
}

impl<'l> Division<'l> {
    fn new(draft: &Draft<'_, '_>, layout: &'l Layout) -> Self {
        let count = layout.groups.len();
        let mut division = Self {
            layout,
            note_tokens: draft.note_tokens(),
            candidates: Vec::new(),
            fixed: vec![0; count],
            gone: vec![false; count],
            precious: vec![false; count],
        };
        for (position, group) in layout.groups.iter().enumerate() {
            if let Some(tier) = layout.tiers[position] {
                division.add_group(draft, position, *group, tier);
            }
        }
        division
    }

    fn add_group(&mut self, draft: &Draft<'_, '_>, position: usize, group: Group, tier: Tier) {
        for index in group.start..group.end {
            let entry = &draft.entries[index];
            if entry.dropped.is_some() {
                continue;
            }
            let priority = priority(draft, index);
            self.precious[position] |= priority == Priority::High;
            self.fixed[position] += entry.fixed_tokens;
            for (i, piece) in entry.pieces.iter().enumerate() {
                let candidate = candidate(draft, (index, i), position, (tier, priority));
                match candidate {
                    Some(candidate) => self.candidates.push(candidate),
                    None => self.fixed[position] += piece.tokens,
                }
            }
        }
    }

    /// Divides `room` among the tiers.
    ///
    /// The newest group has what it needs if that is there at all. The rest of the last round has what it needs of the
    /// remainder, but a quarter is for what came before while that can be used: without it one long turn would erase
    /// the conversation.
    fn plan(&mut self, room: u64) {
        let full = |tier| self.tier_tokens(tier, |candidate| candidate.full);
        let (older, last_round, newest) = (full(Tier::Older), full(Tier::LastRound), full(Tier::Newest));
        let others = older + last_round;
        let shortest = self.tier_tokens(Tier::Newest, |candidate| candidate.floor);
        let for_newest = match () {
            () if newest <= room => newest,
            // It goes, and leaves the room to the others.
            () if shortest > room => 0,
            () => (room / 4 * 3).max(room.saturating_sub(others)).max(shortest),
        };
        let rest = room.saturating_sub(for_newest.min(newest));
        let for_last_round =
            if last_round + older <= rest { last_round } else { (rest / 4 * 3).max(rest.saturating_sub(older)) };
        let for_older = rest.saturating_sub(for_last_round.min(last_round));
        // What one tier leaves is the next one's.
        let used = self.fill(Tier::Older, for_older);
        let used = used + self.fill(Tier::LastRound, rest.saturating_sub(used));
        let used = used + self.fill(Tier::Newest, room.saturating_sub(used));
        self.top_up(room.saturating_sub(used));
    }

    fn tier_tokens(&self, tier: Tier, tokens: impl Fn(&Candidate) -> u64) -> u64 {
        let fixed: u64 =
            self.layout.tier(tier).filter(|(position, _)| !self.gone[*position]).map(|(p, _)| self.fixed[p]).sum();
        fixed + self.of_tier(tier).map(tokens).sum::<u64>()
    }

    fn of_tier(&self, tier: Tier) -> impl Iterator<Item = &Candidate> {
        self.candidates.iter().filter(move |c| self.layout.tiers[c.group] == Some(tier) && !self.gone[c.group])
    }

    /// Gives the texts of a tier their shares of `room`, and returns what they use, notes included.
    ///
    /// Where all of the tier goes and the room has no place for the notes, they go too.
    fn fill(&mut self, tier: Tier, room: u64) -> u64 {
        let notes = self.drop_until(tier, room);
        let at = |level| self.tier_tokens(tier, |candidate| candidate.at(level));
        let level = highest(room.saturating_sub(notes), at);
        let used = (at(level) + notes).min(room);
        for candidate in &mut self.candidates {
            if self.layout.tiers[candidate.group] == Some(tier) {
                candidate.share = candidate.at(level);
            }
        }
        used
    }

    /// Lets groups of a tier go until the shortest forms of the others fit `room`; returns the tokens of the notes.
    ///
    /// Oldest first, precious ones after all others, and a message of the user only when everything that answers it is
    /// gone: a conversation that opened with the user still does.
    fn drop_until(&mut self, tier: Tier, room: u64) -> u64 {
        let mut floors = vec![0; self.fixed.len()];
        for candidate in &self.candidates {
            floors[candidate.group] += candidate.floor;
        }
        let costs: Vec<u64> = self.fixed.iter().zip(&floors).map(|(fixed, floor)| fixed + floor).collect();
        let mut needed: u64 = self.layout.tier(tier).map(|(position, _)| costs[position]).sum();
        let mut runs = 0;
        let mut left = Vec::new();
        for position in self.order_of_leaving(tier) {
            if needed + runs * self.note_tokens <= room {
                break;
            }
            needed -= costs[position];
            runs = runs + 1 - self.gone_beside(position);
            self.gone[position] = true;
            left.push(position);
        }
        // The last to leave may have been large: then others that left before it have room after all.
        for position in left.into_iter().rev() {
            let runs_without = runs + self.gone_beside(position) - 1;
            let needed_with = needed + costs[position];
            if needed_with + runs_without * self.note_tokens <= room {
                (needed, runs) = (needed_with, runs_without);
                self.gone[position] = false;
            }
        }
        runs * self.note_tokens
    }

    /// Returns how many of the groups before and behind a position go.
    fn gone_beside(&self, position: usize) -> u64 {
        let gone = |position: Option<usize>| position.and_then(|p| self.gone.get(p)).copied().unwrap_or(false);
        u64::from(gone(position.checked_sub(1))) + u64::from(gone(position.checked_add(1)))
    }

    fn order_of_leaving(&self, tier: Tier) -> Vec<usize> {
        let mut order = Vec::new();
        for precious in [false, true] {
            let mut user = None;
            for (position, group) in self.layout.tier(tier) {
                let opens_round = group.role == Role::User;
                if opens_round {
                    order.extend(user.take());
                }
                if self.precious[position] == precious {
                    if opens_round { user = Some(position) } else { order.push(position) }
                }
            }
            order.extend(user);
        }
        order
    }

    /// Gives what is left over to the newest texts first.
    fn top_up(&mut self, mut room: u64) {
        for candidate in self.candidates.iter_mut().rev() {
            let wanted = candidate.full - candidate.share;
            if wanted == 0 || self.gone[candidate.group] || (candidate.whole && wanted > room) {
                continue;
            }
            let more = wanted.min(room);
            // A few tokens more change nothing that a reader would notice.
            if more == wanted || more > candidate.floor {
                candidate.share += more;
                room -= more;
            }
        }
    }

    /// Carries the division out.
    fn apply(self, draft: &mut Draft<'_, '_>) {
        for (position, group) in self.layout.groups.iter().enumerate() {
            if self.gone[position] {
                for entry in &mut draft.entries[group.start..group.end] {
                    entry.dropped = entry.dropped.or(Some(Reason::Budget));
                }
            }
        }
        let mut unused = 0;
        // Newest first, so that what a cut leaves unused goes to the next older text.
        for candidate in self.candidates.iter().rev() {
            if !self.gone[candidate.group] && candidate.share < candidate.full {
                let may_have = candidate.share + unused;
                if may_have < candidate.full {
                    cut(draft, candidate, may_have, Reason::Budget);
                }
                let has = draft.entries[candidate.entry].pieces[candidate.piece].tokens;
                unused = may_have.saturating_sub(has);
            }
        }
    }
}

fn priority(draft: &Draft<'_, '_>, entry: usize) -> Priority {
    let Some(message) = draft.message(entry) else { return Priority::Normal };
    let command = is_shell_result(message).then(|| argument(draft, entry, &["command"])).flatten();
    classify(message, command.as_deref())
}

/// Returns a piece as a candidate, or `None` where it is not to be cut.
fn candidate(
    draft: &Draft<'_, '_>,
    (entry, piece): (usize, usize),
    group: usize,
    (tier, priority): (Tier, Priority),
) -> Option<Candidate> {
    let text = draft.text(entry, piece);
    if marks::is_whole(text) || marks::is_note(text) {
        return None;
    }
    let (slot, tokens) = (draft.entries[entry].pieces[piece].slot, draft.entries[entry].pieces[piece].tokens);
    let floor = match slot {
        Slot::Reasoning | Slot::Thinking => 0,
        Slot::Arguments(_) if tokens < MIN_CUT_ARGUMENTS => return None,
        Slot::Arguments(_) => shortest_arguments(text, draft.counter),
        Slot::Content | Slot::Part(_) | Slot::Media(_) => {
            u64::from(draft.counter.text(&placeholder(draft, entry, piece)))
        }
    };
    if floor >= tokens {
        return None;
    }
    // Signed thoughts must come back with the calls that they led to, as long as these are the newest.
    if slot == Slot::Thinking && tier == Tier::Newest {
        return None;
    }
    let weight = match (slot, draft.entries[entry].role, priority) {
        (Slot::Reasoning | Slot::Thinking, _, _) if tier == Tier::Older => 0,
        // What people typed is short and says what they want.
        (_, Role::User, Priority::High) => 32,
        (_, Role::User, _) | (_, _, Priority::High) => 8,
        (_, _, Priority::Normal) => 2,
        (_, _, Priority::Low) => 1,
    };
    let whole = matches!(slot, Slot::Thinking | Slot::Media(_));
    Some(Candidate { entry, piece, group, full: tokens, floor, weight, whole, share: tokens })
}

/// Shortens a piece to at most `share` tokens, or to its shortest form.
fn cut(draft: &mut Draft<'_, '_>, candidate: &Candidate, share: u64, reason: Reason) {
    let (entry, piece) = (candidate.entry, candidate.piece);
    let source = draft.source(entry, &draft.entries[entry].pieces[piece]);
    let to_tokens = || archive::to_tokens(draft, entry, piece, share).filter(|_| share > candidate.floor);
    let whole = || {
        let text = placeholder(draft, entry, piece);
        let tokens = u64::from(draft.counter.text(&text));
        (text, tokens)
    };
    let (short, tokens) = match draft.entries[entry].pieces[piece].slot {
        Slot::Thinking => (String::new(), 0),
        Slot::Reasoning => to_tokens().unwrap_or_default(),
        Slot::Arguments(_) => arguments_within(source, share, draft.counter),
        Slot::Media(_) => whole(),
        Slot::Content | Slot::Part(_) => to_tokens().unwrap_or_else(whole),
    };
    draft.set(entry, piece, short, tokens, reason);
}

/// Tell what is cached apart; families are below.
const SHORTEST_ARGUMENTS: u8 = 0x40;
const ARGUMENTS: u8 = 0x80;

/// Returns the tokens of arguments all of whose strings are short.
fn shortest_arguments(text: &str, counter: TokenCounter) -> u64 {
    let shortest = || [u64::from(counter.text(&shorten::arguments(text, ARGUMENT_CHARS))), 0, 0];
    cut_by_content(text, 0, counter.family().id | SHORTEST_ARGUMENTS, shortest)[0]
}

/// Returns arguments with the longest strings that `share` tokens allow, and their tokens; cached by content.
fn arguments_within(text: &str, share: u64, counter: TokenCounter) -> (String, u64) {
    let cut = || {
        let (chars, tokens) = longest_strings(text, share, counter);
        [chars as u64, tokens, 0]
    };
    let [chars, tokens, _] = cut_by_content(text, share, counter.family().id | ARGUMENTS, cut);
    (shorten::arguments(text, usize::try_from(chars).unwrap_or(usize::MAX)), tokens)
}

/// Returns how many characters a string may keep, and the tokens of the arguments then.
fn longest_strings(text: &str, share: u64, counter: TokenCounter) -> (usize, u64) {
    let tokens_at = |chars: usize| u64::from(counter.text(&shorten::arguments(text, chars)));
    let mut best = (ARGUMENT_CHARS, tokens_at(ARGUMENT_CHARS));
    let mut high = ARGUMENT_CHARS * 2;
    while high < text.len() {
        let tokens = tokens_at(high);
        if tokens > share {
            break;
        }
        best = (high, tokens);
        high *= 2;
    }
    // Between the last length that fitted and its double, four steps come within a sixteenth.
    for _ in 0..4 {
        let middle = usize::midpoint(best.0, high);
        let tokens = tokens_at(middle);
        if tokens <= share {
            best = (middle, tokens);
        } else {
            high = middle;
        }
    }
    best
}

/// Returns what stands for a whole text.
fn placeholder(draft: &Draft<'_, '_>, entry: usize, piece: usize) -> String {
    let message = draft.message(entry);
    let &Piece { slot, original_tokens, .. } = &draft.entries[entry].pieces[piece];
    let what = match (slot, draft.entries[entry].role) {
        (Slot::Media(_), _) => "attachment".to_owned(),
        (_, Role::Tool | Role::Function) => {
            let name = message.and_then(|message| message.name.as_ref()).map_or("tool", Text::as_str);
            match FILE_TOOLS.contains(&name).then(|| argument(draft, entry, &shorten::PATH_KEYS)).flatten() {
                Some(path) if path.len() <= MAX_PATH_BYTES => format!("{name} {path} result"),
                _ => format!("{name} result"),
            }
        }
        _ => "message".to_owned(),
    };
    // A result that was read from the archive names its file already.
    let origin = archive::origin(draft, entry, piece).filter(|origin| !what.contains(origin));
    marks::whole(&what, original_tokens, origin.as_deref())
}

/// Tools whose path stays in whatever remains of them: DESIGN, "compress".
const FILE_TOOLS: [&str; 3] = ["read_file", "write_file", "edit_file"];

/// Longest path that a placeholder repeats; it stands in the call too.
const MAX_PATH_BYTES: usize = 200;

/// Returns the first of the arguments `keys` that the call of a result has, where it is a string.
fn argument(draft: &Draft<'_, '_>, entry: usize, keys: &[&str]) -> Option<String> {
    let (index, position) = draft.entries[entry].answers?;
    let text = draft.view[index].tool_calls[position].arguments.as_ref()?.as_str();
    let arguments: serde_json::Value = serde_json::from_str(text).ok()?;
    keys.iter().find_map(|key| arguments.get(key)?.as_str()).map(str::to_owned)
}
