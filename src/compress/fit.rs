//! The fit: a request cut to its budget, filled as far as it goes.
//!
//! What is protected is taken first ([`Protection`]), then rules and requests of the user, then what is worth most for its
//! tokens ([`Selector`], by [`Scoring`]). Estimates choose; what comes out is counted, and the last choices are taken back
//! or further ones made until the budget is met.

use std::collections::HashSet;
use std::ops::Range;
use std::sync::Arc;

use crate::conversation::{Group, is_note};
use crate::error::{Error, Floor, Result};
use crate::message::{Field, Role, Text};
use crate::select::Ablation;
use crate::select::scoring::{Author, Document, LostName, Scoring};
use crate::select::selector::{Block, Kept, Selector, shrink_steps};
use crate::select::within::within;
use crate::text::analysis::Analysis;
use crate::text::estimate::float;
use crate::text::ledger;
use crate::text::names::names;
use crate::text::rules::{Claim, normal};
use crate::text::segments::Kind;
use crate::tokens::Recount;
use crate::tools::Effect;

use super::candidates::{Candidate, candidates, shortest};
use super::documents::{Documents, Place, Stated};
use super::draft::{Draft, Entry, Slot};
use super::notes::{LeftOut, Notes};
use super::origins::Origins;
use super::plan::Reason;
use super::protection::{Protection, Tier};
use super::superseded::superseded;

/// Cuts the draft until it has at most `budget_tokens`; returns what is said of what was left out.
///
/// # Errors
///
/// [`Error::Overflow`] when what is never cut is already more.
pub fn fit(
    draft: &mut Draft<'_, '_>,
    origins: &Origins<'_>,
    budget_tokens: u64,
    model: Option<&str>,
    by: Ablation,
) -> Result<LeftOut> {
    if draft.tokens() <= budget_tokens {
        return Ok(LeftOut::default());
    }
    let protection = Protection::of(draft);
    let floor = protection.floor(draft);
    let floor_tokens: u64 = floor.iter().map(|(_, tokens)| tokens).sum();
    if floor_tokens > budget_tokens {
        return Err(overflow(floor, budget_tokens, model));
    }
    let mut left_out = Fit::new(draft, origins, &protection, (budget_tokens, floor_tokens), by).carry_out();
    // Where all goes and there is no place for the notes, they go too.
    left_out.max_note_tokens = budget_tokens.saturating_sub(draft.tokens() + left_out.ledger_tokens(draft));
    Ok(left_out)
}

/// A fit under way.
struct Fit<'f, 'v, 'a> {
    draft: &'f mut Draft<'v, 'a>,
    origins: &'f Origins<'f>,
    protection: &'f Protection,
    by: Ablation,
    left_out: LeftOut,
    listed: Listed,
    candidates: Vec<Candidate>,
    /// By candidate: what its piece was before the fit.
    before: Vec<Before>,
    /// By document: where it stands.
    places: Vec<Place>,
    /// What excerpts were counted.
    recount: Recount,
    budget_tokens: u64,
    /// Tokens for all that may go.
    room: f32,
}

/// A piece before the fit.
struct Before {
    text: Option<String>,
    tokens: u64,
    reason: Reason,
    /// Taken apart, where it is a text.
    analysis: Option<Arc<Analysis>>,
}

/// A sentence of the user that should stay.
struct Pin {
    claim: Claim,
    group: usize,
    /// The parts of a block that it lies in; without them all of its message.
    parts: Option<(usize, Range<usize>)>,
    /// As it is compared with others.
    normal: String,
    tokens: f32,
}

impl Pin {
    fn take(&self, selector: &mut Selector<'_>) {
        match &self.parts {
            Some((block, parts)) => parts.clone().for_each(|part| selector.take_part(*block, part)),
            None => selector.take_whole(self.group),
        }
    }
}

/// What a ledger may say.
#[derive(Default)]
struct Listed {
    names: Vec<Name>,
    /// What was done in the rounds before the last.
    calls: Vec<String>,
    /// The calls of the last round, in order; those stand there that are left out.
    lines: Vec<Line>,
    /// Tokens that more names may have.
    left: f32,
}

/// A call in a ledger.
struct Line {
    group: usize,
    text: String,
    tokens: f32,
}

/// A name in a ledger.
#[derive(Clone)]
struct Name {
    document: usize,
    /// Where it begins in the text.
    at: usize,
    /// Its mention as a term, where it is one.
    mention: Option<usize>,
    text: String,
    tokens: f32,
}

impl Listed {
    /// Returns the message where the groups stay that `is_open` names.
    fn message(&self, is_open: impl Fn(usize) -> bool) -> Option<String> {
        let names: Vec<&str> = self.names.iter().map(|name| &*name.text).collect();
        let lines = self.lines.iter().filter(|line| !is_open(line.group)).map(|line| &*line.text);
        let calls: Vec<&str> = self.calls.iter().map(String::as_str).chain(lines).collect();
        ledger::message(&names, &calls)
    }
}

/// What a superseded result is still worth.
const SUPERSEDED: f32 = 0.1;

impl<'f, 'v, 'a> Fit<'f, 'v, 'a> {
    fn new(
        draft: &'f mut Draft<'v, 'a>,
        origins: &'f Origins<'f>,
        protection: &'f Protection,
        (budget_tokens, floor_tokens): (u64, u64),
        by: Ablation,
    ) -> Self {
        // Before any mark is weighed, for marks name it.
        let superseded = if by.superseded { superseded(draft) } else { Vec::new() };
        let mut candidates = candidates(draft, origins, protection, &superseded);
        for candidate in candidates.iter_mut().filter(|candidate| candidate.superseded.is_some()) {
            candidate.weight *= SUPERSEDED;
        }
        Self {
            draft,
            origins,
            protection,
            by,
            left_out: LeftOut::default(),
            listed: Listed::default(),
            candidates,
            before: Vec::new(),
            places: Vec::new(),
            recount: Recount::default(),
            budget_tokens,
            room: float(budget_tokens - floor_tokens),
        }
    }

    fn carry_out(mut self) -> LeftOut {
        let Documents { documents, places, mut frames, blocks, claims, typed } =
            Documents::of(self.draft, self.protection, &self.candidates);
        self.places = places;
        self.before = self
            .candidates
            .iter()
            .zip(&blocks)
            .map(|(candidate, block)| {
                let piece = &self.draft.entries[candidate.entry].pieces[candidate.piece];
                let analysis = block.document.map(|document| Arc::clone(&documents[document].analysis));
                Before { text: piece.text.clone(), tokens: piece.tokens, reason: piece.reason, analysis }
            })
            .collect();
        let pins = self.pins(&blocks, &documents, claims);
        let mut scoring = Scoring::new(documents, self.draft.entries.len(), self.protection.last_user, self.by);
        let note = float(self.draft.note_tokens());
        let ledger = self.ledger_tokens();
        self.listed.lines = self.lines();
        for line in &self.listed.lines {
            frames[line.group].line_tokens += line.tokens;
        }
        let mut selector = Selector::new(&mut scoring, frames, blocks, note);
        let rules = pins.iter().filter(|pin| pin.claim >= Claim::Fact);
        let rules: f32 = rules.map(|pin| pin.tokens + FRAMING).sum();
        self.protect_newest(&mut selector, rules.min(FEW_TOKENS));
        if self.by.pinning {
            self.take_own_words(&mut selector, &pins, &typed);
            // Only what surely fits may not be given up: tokens are estimated here.
            if selector.used() <= self.room * SURE {
                selector.settle();
            }
        }
        self.protect(&mut selector);
        // What is left out is known from estimates already; counting comes last, for it costs most.
        selector.grow_all((self.room - ledger).max(selector.used()));
        let mut room = self.room;
        if ledger > 0.0 {
            self.list(&mut selector, ledger);
            room -= ledger - self.listed.left;
        }
        for _ in 0..ROUNDS {
            selector.grow_all(room);
            let used = self.shrink(&mut selector);
            let left = float(self.budget_tokens.saturating_sub(used));
            if left * 64.0 <= self.room {
                break;
            }
            // What was taken turned out smaller than it looked.
            room = selector.used() + left;
        }
        if ledger > 0.0 {
            self.list_again(&mut selector);
        }
        self.hold(&mut selector);
        if self.counted() > self.budget_tokens {
            // Joined texts were estimated by their parts.
            self.left_out.notes_apart = true;
            self.hold(&mut selector);
        }
        let more = self.top_up(&selector);
        if self.counted() > self.budget_tokens {
            for block in more {
                self.write(block, &selector);
            }
        }
        self.left_out
    }

    /// Holds the budget, whatever was settled: that was estimated, too. Names and what was done in earlier rounds give way
    /// first, then notes, then what was settled, and the oldest calls of the last round at the end.
    fn hold(&mut self, selector: &mut Selector<'_>) {
        if self.tokens() > self.budget_tokens {
            self.listed.names.clear();
            self.listed.calls.clear();
            self.write_ledger(selector);
        }
        if self.tokens() <= self.budget_tokens {
            return;
        }
        if self.draft.tokens() + self.left_out.ledger_tokens(self.draft) <= self.budget_tokens {
            self.left_out.notes_apart = true;
            return;
        }
        selector.unsettle();
        let used = self.shrink(selector);
        selector.grow_all(selector.used() + float(self.budget_tokens.saturating_sub(used)));
        self.shrink(selector);
        while self.tokens() > self.budget_tokens && self.left_out.ledger.is_some() {
            let mut over = float(self.tokens() - self.budget_tokens);
            self.listed.lines.retain(|line| {
                let stays = over <= 0.0 || selector.is_open(line.group);
                over -= if stays { 0.0 } else { line.tokens };
                stays
            });
            self.write_ledger(selector);
        }
    }

    /// Writes the ledger for what is left out now.
    fn write_ledger(&mut self, selector: &Selector<'_>) {
        self.left_out.ledger = self.listed.message(|group| selector.is_open(group));
    }

    /// Returns the tokens that the ledger may have.
    fn ledger_tokens(&self) -> f32 {
        let tokens = (self.rest() * LEDGER_SHARE).min(MAX_LEDGER);
        if tokens < MIN_LEDGER || !self.by.ledger { 0.0 } else { tokens }
    }

    /// Takes what the user said: first what holds from then on, then, where the user says little beside the others, all of it;
    /// the newest first, as far as each has room.
    fn take_own_words(&self, selector: &mut Selector<'_>, pins: &[Pin], typed: &[f32]) {
        let start = selector.used();
        let room = |share: f32| start + (self.room - start) * share;
        // However little the user says, so few tokens are kept of what holds from then on.
        let few = start + ((self.room - start) * RARE_SHARE).min(FEW_TOKENS);
        let requests = self.requests(typed);
        let all: f32 = self.before_newest().map(|(_, group)| self.full_tokens(group)).sum();
        let is_talk = |group| Protection::is_talk(self.draft, group);
        let talk: f32 =
            self.before_newest().filter(|(_, group)| is_talk(*group)).map(|(_, group)| self.full_tokens(group)).sum();
        let said: f32 = typed.iter().sum();
        let own: f32 = requests.iter().map(|&position| typed[position]).sum();
        let says_little = own <= all * LITTLE;
        // What was said first names the task, whatever the conversation has become.
        let (own_share, most) = if says_little && talk > all * MOSTLY_TALK {
            (OWN_SHARE, usize::MAX)
        } else if says_little || talk * 2.0 <= all {
            (OWN_SHARE_OF_WORK, usize::MAX)
        } else {
            (PINNED_SHARE, 1)
        };
        let (mut seen, mut claimed) = (HashSet::new(), 0.0);
        for claim in [Claim::Rule, Claim::Order, Claim::Fact, Claim::Trait, Claim::Wish, Claim::Told] {
            // What every other sentence is like tells nothing apart.
            claimed += pins.iter().filter(|pin| pin.claim == claim).map(|pin| pin.tokens).sum::<f32>();
            let rare = (1.0 - claimed / (said * OFTEN)).max(0.0);
            let pinned = room(PINNED_SHARE + (RARE_SHARE - PINNED_SHARE) * rare);
            let limit = match claim {
                Claim::Told if !says_little => continue,
                Claim::Told => room(own_share),
                Claim::Wish | Claim::Trait => pinned,
                Claim::Rule | Claim::Order | Claim::Fact => pinned.max(few),
            };
            for pin in pins.iter().rev().filter(|pin| pin.claim == claim) {
                if !seen.insert(&pin.normal) {
                    continue;
                }
                let before = selector.taken();
                pin.take(selector);
                if selector.used() > limit {
                    selector.back_to(before);
                }
            }
        }
        // What is long is weighed by its parts.
        let is_short = |&position: &usize| {
            self.full_tokens(self.protection.groups[position]) <= (self.room * REQUEST_SHARE).max(SHORT_REQUEST)
        };
        for position in requests.into_iter().filter(is_short).take(most) {
            let before = selector.taken();
            selector.take_whole(position);
            if selector.used() > room(own_share) {
                selector.back_to(before);
            }
        }
    }

    /// Returns the groups before the newest, in order.
    fn before_newest(&self) -> impl Iterator<Item = (usize, Group)> {
        self.protection.tier(Tier::Older).chain(self.protection.tier(Tier::LastRound))
    }

    /// Returns the groups in which the user says what is wanted, the first, which names the task, and then the newest first;
    /// without those that are mostly pasted.
    fn requests(&self, typed: &[f32]) -> Vec<usize> {
        let is_request = |(position, group): &(usize, Group)| {
            group.role == Role::User
                && self.draft.message(group.start).is_some_and(|message| !is_note(message))
                && typed[*position] * 2.0 >= self.full_tokens(*group) - FRAMING
        };
        let mut requests: Vec<usize> = self.before_newest().filter(is_request).map(|(position, _)| position).collect();
        if !requests.is_empty() {
            requests[1..].reverse();
        }
        requests
    }

    /// Returns what the user said that holds from then on, with what it takes to keep it.
    fn pins(&self, blocks: &[Block], documents: &[Document], claims: Vec<Stated>) -> Vec<Pin> {
        let mut pins = Vec::with_capacity(claims.len());
        // Sentences come in order and apart, so parts behind one are behind all before it.
        let (mut of, mut part, mut end) = (None, 0, 0);
        for Stated { claim, group, entry, piece, block, sentence } in claims {
            let text = self.draft.text(entry, piece);
            let normal = normal(&text[sentence.clone()]);
            let block = block.and_then(|block| Some((block, &documents[blocks[block].document?].analysis.parts)));
            let parts = block.map(|(block, parts)| {
                if of != Some(block) {
                    (of, part, end) = (Some(block), 0, 0);
                }
                while part < parts.len() && end + parts[part].bytes as usize <= sentence.start {
                    end += parts[part].bytes as usize;
                    part += 1;
                }
                let (first, mut last, mut last_end) = (part, part, end);
                while last < parts.len() && last_end < sentence.end {
                    last_end += parts[last].bytes as usize;
                    last += 1;
                }
                (block, first..last)
            });
            let of_piece = float(self.draft.entries[entry].pieces[piece].tokens);
            let tokens = of_piece * float(sentence.len() as u64) / float(text.len().max(1) as u64);
            pins.push(Pin { claim, group, parts, normal, tokens });
        }
        pins
    }

    /// Lists what a model should still know of what is left out, in at most `tokens`.
    fn list(&mut self, selector: &mut Selector<'_>, tokens: f32) {
        let mut left = tokens - LEDGER_FRAME;
        let mut calls = Vec::new();
        for (position, group) in self.protection.tier(Tier::Older).rev() {
            if selector.is_open(position) || left <= tokens / 2.0 {
                continue;
            }
            for index in (group.start..group.end).rev() {
                let is_changing = |name: &Text<'_>| Effect::of(name.as_str()).is_changing();
                let call = self.draft.call(index).and_then(|call| call.name.as_ref());
                let Some(line) = call.filter(|name| is_changing(name)).and_then(|_| self.line(index)) else { continue };
                let cost = self.line_tokens(&line);
                if cost <= left && left > tokens / 2.0 {
                    left -= cost;
                    selector.cover_text(&line);
                    selector.shut(position);
                    calls.push(line);
                }
            }
        }
        calls.reverse();
        for line in &self.listed.lines {
            if !selector.is_open(line.group) {
                selector.cover_text(&line.text);
            }
        }
        let mut listed = Listed { calls, left, ..std::mem::take(&mut self.listed) };
        self.list_all_names(selector, &mut listed);
        self.listed = listed;
    }

    /// Returns the line of a ledger for the call that an entry answers.
    fn line(&self, index: usize) -> Option<String> {
        let call = self.draft.call(index)?;
        let arguments = call.arguments.as_ref().map_or("", Text::as_str);
        let answer = &self.draft.entries[index];
        let result = answer.pieces.first().map(|piece| self.draft.source(index, piece));
        Some(ledger::call_line(call.name.as_ref()?.as_str(), arguments, result))
    }

    /// Returns the tokens that a line takes in a ledger.
    fn line_tokens(&self, line: &str) -> f32 {
        float(u64::from(self.draft.counter.text(line))) + 2.0
    }

    /// Returns the lines of the calls of the last round: a call that ran is never invisible. The newest, as many as there is
    /// room for; counts no others.
    fn lines(&self) -> Vec<Line> {
        let mut lines = Vec::new();
        if !self.by.ledger {
            return lines;
        }
        let little = self.room.min(LITTLE_ROOM);
        let mut left = little * CALLS_OF_LITTLE + (self.room - little) * CALLS_OF_MORE;
        let groups = [Tier::Newest, Tier::LastRound].into_iter().flat_map(|tier| self.protection.tier(tier).rev());
        for (group, index) in
            groups.flat_map(|(position, group)| (group.start..group.end).rev().map(move |index| (position, index)))
        {
            let Some(text) = self.line(index) else { continue };
            let tokens = self.line_tokens(&text);
            left -= tokens;
            if left < 0.0 {
                break;
            }
            lines.push(Line { group, text, tokens });
        }
        lines.reverse();
        lines
    }

    /// Lists names as far as there is room: those that the user wrote, those that are likely to be used, and what else was
    /// written down in prose.
    fn list_all_names(&self, selector: &mut Selector<'_>, listed: &mut Listed) {
        self.list_written(selector, listed, &[Author::User]);
        self.list_names(selector, listed);
        self.list_written(selector, listed, &[Author::Assistant, Author::Result]);
        listed.names.sort_by_key(|name| (name.document, name.at));
    }

    /// Lists the names in prose of some voices that do not stay, the newest first.
    fn list_written(&self, selector: &mut Selector<'_>, listed: &mut Listed, of: &[Author]) {
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
            for name in names(text) {
                while end <= name.start && part + 1 < parts.len() {
                    part += 1;
                    end += parts[part].bytes as usize;
                }
                let (at, name) = (name.start, &text[name]);
                let is_known = name.len() > MAX_NAME_BYTES
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
                    listed.names.push(Name { document, at, mention: None, text: name.to_owned(), tokens });
                }
                if listed.left < MIN_NAME {
                    return;
                }
            }
        }
    }

    /// Returns the group of an entry.
    fn group_of(&self, entry: usize) -> usize {
        self.protection.groups.partition_point(|group| group.end <= entry)
    }

    /// Returns whether what stands at `at` in the text of a document stays.
    fn stays(&self, selector: &Selector<'_>, document: usize, at: usize) -> bool {
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
    fn list_names(&self, selector: &mut Selector<'_>, listed: &mut Listed) {
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
            let name = if is_prose(analysis) { as_written(text, at).unwrap_or(name) } else { name };
            let tokens = float(u64::from(self.draft.counter.text(name))) + 1.0;
            if tokens > listed.left {
                too_long += 1;
            } else if !selector.is_covered(mention) {
                listed.left -= tokens;
                selector.cover_text(name);
                listed.names.push(Name { document, at, mention: Some(mention), text: name.to_owned(), tokens });
            }
        }
    }

    /// Lists anew: without names that stay after all, with those that what was given up since was the last to have.
    fn list_again(&mut self, selector: &mut Selector<'_>) {
        let mut listed = std::mem::take(&mut self.listed);
        let stays = |name: &Name| match name.mention {
            Some(mention) => selector.stays_named(mention),
            None => self.stays(selector, name.document, name.at),
        };
        listed.left += listed.names.iter().filter(|name| stays(name)).map(|name| name.tokens).sum::<f32>();
        listed.names.retain(|name| !stays(name));
        self.left_out.ledger = listed.message(|group| selector.is_open(group));
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

    /// Takes the newest group where it fits beside the `rules` and what is said of the calls before it; rather no notes than a
    /// cut in it.
    fn protect_newest(&self, selector: &mut Selector<'_>, rules: f32) {
        let lines = self.lines_tokens(Tier::LastRound);
        let said = if lines > 0.0 { lines + LEDGER_FRAME + 2.0 * float(self.draft.note_tokens()) } else { 0.0 };
        if self.tier_tokens(Tier::Newest) + said + rules <= self.room {
            self.protection.tier(Tier::Newest).for_each(|(position, _)| selector.take_whole(position));
            selector.settle();
        }
    }

    /// Takes what else is protected: the newest group where it is too large, and the rest of the last round, as far as they
    /// leave a quarter of the room to what came before, where that can use it; what of that is taken already counts.
    fn protect(&self, selector: &mut Selector<'_>) {
        let (older, last_round) = (self.tier_tokens(Tier::Older), self.tier_tokens(Tier::LastRound));
        for (tier, others) in [(Tier::Newest, older + last_round), (Tier::LastRound, older)] {
            if self.protection.tier(tier).all(|(position, _)| selector.is_open(position)) {
                continue;
            }
            // What stays needs no line.
            let used = selector.used() - self.lines_tokens(tier);
            let share = (self.rest() * 0.75).max(self.rest() - others).min(self.room - used);
            if self.tier_tokens(tier) <= share {
                self.protection.tier(tier).for_each(|(position, _)| selector.take_whole(position));
            } else {
                selector.grow(used + share, |group| self.protection.tiers[group] == Some(tier));
            }
        }
    }

    /// Returns the tokens of the lines for the calls of a tier.
    fn lines_tokens(&self, tier: Tier) -> f32 {
        let of_tier = |line: &&Line| self.protection.tiers[line.group] == Some(tier);
        self.listed.lines.iter().filter(of_tier).map(|line| line.tokens).sum()
    }

    /// Returns the room that the newest group leaves, where it fits.
    fn rest(&self) -> f32 {
        let newest = self.tier_tokens(Tier::Newest);
        if newest <= self.room { self.room - newest } else { self.room }
    }

    fn tier_tokens(&self, tier: Tier) -> f32 {
        self.protection.tier(tier).map(|(_, group)| self.full_tokens(group)).sum()
    }

    fn full_tokens(&self, group: Group) -> f32 {
        let kept = self.draft.entries[group.start..group.end].iter().filter(|entry| entry.dropped.is_none());
        float(kept.map(Entry::tokens).sum())
    }

    /// Writes what was chosen into the draft, less what must be given up for the budget, and is not settled; returns the
    /// tokens of the request.
    fn shrink(&mut self, selector: &mut Selector<'_>) -> u64 {
        let mut used = self.apply(selector);
        let mut steps = shrink_steps();
        while used > self.budget_tokens && !selector.is_settled() {
            selector.shrink(float(used - self.budget_tokens) * steps.next().unwrap_or(1.0));
            used = self.apply(selector);
        }
        used
    }

    /// Writes what was chosen into the draft, where it has changed; returns the tokens of the request.
    fn apply(&mut self, selector: &mut Selector<'_>) -> u64 {
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

    /// Returns the tokens of the request as it is now.
    fn tokens(&self) -> u64 {
        Notes::of(self.draft, &self.left_out).tokens(self.draft)
    }

    /// Returns the same, joined texts counted.
    fn counted(&self) -> u64 {
        Notes::of(self.draft, &self.left_out).carry_out(self.draft, self.budget_tokens).1
    }

    fn write(&mut self, block: usize, selector: &Selector<'_>) {
        let (candidate, before) = (&self.candidates[block], &self.before[block]);
        let (entry, piece) = (candidate.entry, candidate.piece);
        let (text, tokens, reason) = match (selector.kept(block), &before.analysis) {
            (Kept::Whole, _) => (before.text.clone(), before.tokens, before.reason),
            (Kept::Some, Some(analysis)) => {
                let origin = self.origins.path(self.draft, entry, piece);
                let source = self.before(block);
                let short = analysis.excerpt(source, &|part| selector.stays(block, part), origin.as_deref());
                let tokens = u64::from(self.draft.counter.variant(&short, &mut self.recount));
                if tokens < before.tokens {
                    (Some(short), tokens, Reason::Budget)
                } else {
                    (before.text.clone(), before.tokens, before.reason)
                }
            }
            _ => {
                let (text, tokens) = shortest(self.draft, self.origins, candidate);
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

    /// Gives what is left over to texts that were cut, the newest first; returns their candidates.
    fn top_up(&mut self, selector: &Selector<'_>) -> Vec<usize> {
        let mut used = self.counted();
        let mut more = Vec::new();
        for (block, candidate) in self.candidates.iter().enumerate().rev() {
            let left = self.budget_tokens.saturating_sub(used);
            if left * 32 <= self.budget_tokens {
                break;
            }
            let (entry, piece) = (candidate.entry, candidate.piece);
            let now = &self.draft.entries[entry].pieces[piece];
            let is_text = match now.slot {
                Slot::Content | Slot::Part(_) | Slot::Field(Field::Refusal) => true,
                Slot::Field(field) => field.is_reasoning(),
                _ => false,
            };
            if !selector.is_open(candidate.group) || !is_text || now.tokens >= candidate.full {
                continue;
            }
            let (before, may_have) = (&self.before[block], now.tokens + left);
            let (text, tokens) = if before.tokens <= may_have {
                (before.text.clone(), before.tokens)
            } else {
                let origin = self.origins.path(self.draft, entry, piece);
                let short = within(self.before(block), may_have, self.draft.counter, origin.as_deref());
                let Some((text, tokens)) = short.filter(|(_, tokens)| *tokens > now.tokens) else { continue };
                (Some(text), tokens)
            };
            used = used - now.tokens + tokens;
            let reason = if text == before.text { before.reason } else { Reason::Budget };
            let piece = &mut self.draft.entries[entry].pieces[piece];
            (piece.text, piece.tokens, piece.reason) = (text, tokens, reason);
            more.push(block);
        }
        more
    }
}

/// Share of a little room that a list of the calls of the last round may have, and of what a room has beyond that.
const LITTLE_ROOM: f32 = 4_096.0;
const CALLS_OF_LITTLE: f32 = 0.6;
const CALLS_OF_MORE: f32 = 0.25;

/// Share of the room that the ledger of names and calls may have, and its most tokens.
const LEDGER_SHARE: f32 = 0.06;
const MAX_LEDGER: f32 = 500.0;
/// Below this there would be little in it beside its frame.
const MIN_LEDGER: f32 = 48.0;
/// Names that are worth less are not worth a line: those that the next step uses once in ten thousand times.
const MIN_WORTH: f32 = 0.01;
/// Tokens of a ledger without anything in it.
const LEDGER_FRAME: f32 = 22.0;
/// Bytes of prose in which names are looked for, and of a name.
const MAX_PROSE_BYTES: usize = 64 << 10;
const MAX_NAME_BYTES: usize = 80;
/// With less room than this for another name nothing more is looked for.
const MIN_NAME: f32 = 5.0;
/// Likely names that have no room before the search ends: the next are ever less likely, and each is counted.
const MAX_TOO_LONG: usize = 64;
/// Bytes around a term in which the name that it is part of is looked for.
const AROUND: usize = 120;

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

/// Share of the room up to which what holds from then on is kept before anything else is weighed: where it is rare among
/// what the user says, and where it is [`OFTEN`] said.
const RARE_SHARE: f32 = 0.5;
const PINNED_SHARE: f32 = 0.04;
/// Tokens that what holds from then on may always have, as long as it leaves as much to all else.
const FEW_TOKENS: f32 = 200.0;
/// Share of what the user says from which on claims are usual.
const OFTEN: f32 = 0.03;

/// Who types no more than this share of a conversation says little: all of it comes before anything else is weighed, up to a
/// share of the room; of a conversation in which much is done by calls, up to a smaller one.
const LITTLE: f32 = 0.25;
const OWN_SHARE: f32 = 0.85;
const OWN_SHARE_OF_WORK: f32 = 0.25;
const MOSTLY_TALK: f32 = 0.8;

/// Share of the room that one request may have to be kept as a whole, and the tokens of one that always may.
const REQUEST_SHARE: f32 = 0.25;
const SHORT_REQUEST: f32 = 400.0;

/// Tokens of a message beside its text, about.
const FRAMING: f32 = 8.0;

/// Share of the room up to which what is estimated to fit surely does.
const SURE: f32 = 0.9;

/// Times that a selection is checked by counting, and goes on where its estimates were too high. Short messages of the user cost
/// half of what they seem to where they become one: four rounds leave a sixteenth of the room.
const ROUNDS: usize = 6;

fn overflow(mut parts: Vec<(&'static str, u64)>, limit_tokens: u64, model: Option<&str>) -> Error {
    parts.sort_by_key(|&(_, tokens)| std::cmp::Reverse(tokens));
    let needed_tokens = parts.iter().map(|(_, tokens)| tokens).sum();
    Error::Overflow { floor: Box::new(Floor { needed_tokens, limit_tokens, model: model.map(str::to_owned), parts }) }
}

/// Returns the scoring of everything in a draft.
#[cfg(feature = "evaluation")]
pub fn scoring(draft: &Draft<'_, '_>) -> Scoring {
    let protection = Protection::of(draft);
    let candidates = candidates(draft, &Origins::of(None), &protection, &[]);
    let documents = Documents::of(draft, &protection, &candidates).documents;
    Scoring::new(documents, draft.entries.len(), protection.last_user, Ablation::default())
}
