//! Takes the user's own words before anything else is weighed.

use std::collections::HashSet;
use std::ops::Range;

use crate::conversation::{Group, is_note};
use crate::message::Role;
use crate::select::scoring::Document;
use crate::select::selector::{Block, Selector};
use crate::text::estimate::count;
use crate::text::rules::{Claim, normal};

use super::{FRAMING, Fit};
use crate::compress::documents::{LITTLE, OFTEN, Stated};
use crate::compress::protection::{Protection, Tier};

/// Share of the room for sentences that hold from then on: if they are rare among the user's words, and if they are said
/// [`OFTEN`].
const RARE_SHARE: f32 = 0.5;
const OFTEN_SHARE: f32 = 0.04;
/// Tokens that such sentences may always have, or this share of the room, if that leaves a little for all else.
const FEW_TOKENS: f32 = 320.0;
const FEW_OF_ROOM: f32 = 0.1;
const MOST_FOR_FEW: f32 = 0.85;
/// The same in a talk with many of them.
const FEWEST: f32 = 96.0;

/// Share of the room for all that the user says, if that is [`LITTLE`]; and in a conversation mostly of calls.
const OWN_SHARE: f32 = 0.85;
const OWN_SHARE_OF_WORK: f32 = 0.25;
const MOSTLY_TALK: f32 = 0.8;

/// Share of the room left within which all that the model says in messages without calls, its decisions and answers, stays.
const CONCLUSIONS_SHARE: f32 = 0.2;

/// Share of the room for what the request asks for by name.
const ASKED_SHARE: f32 = 0.3;

/// Share of the room up to which a request stays whole, and the tokens up to which it always does.
const REQUEST_SHARE: f32 = 0.25;
const SHORT_REQUEST: f32 = 400.0;

/// A sentence of the user that should stay.
pub(super) struct Pin {
    pub(super) claim: Claim,
    group: usize,
    /// Its block and parts; without them its whole message.
    parts: Option<(usize, Range<usize>)>,
    /// Normalised for comparison: whole, and without a label.
    normal: String,
    unlabelled: String,
    tokens: f32,
    /// Estimated tokens of all that stays with it: its parts, or its message.
    pub(super) taken_tokens: f32,
}

impl Pin {
    fn take(&self, selector: &mut Selector<'_>) {
        match &self.parts {
            Some((block, parts)) => parts.clone().for_each(|part| selector.take_part(*block, part)),
            None => selector.take_whole(self.group),
        }
    }
}

/// How much of the conversation the user says.
struct Talk {
    /// Estimated tokens that the user typed.
    said: f32,
    says_little: bool,
    /// Share of the room for all requests, and how many may have it.
    own_share: f32,
    most_requests: usize,
}

/// The limit in the room for each kind of sentence.
struct ClaimLimits<'l> {
    pins: &'l [Pin],
    talk: &'l Talk,
    /// Tokens used before, and the whole room.
    start: f32,
    room: f32,
    /// Limit that holds however little the user says; the smaller one is for a talk in which much holds.
    few: f32,
    fewest: f32,
    /// Tokens of the claims so far.
    claimed: f32,
}

impl<'l> ClaimLimits<'l> {
    fn new(pins: &'l [Pin], talk: &'l Talk, (start, room): (f32, f32), few_tokens: f32) -> Self {
        let most_for_few = (room - start) * MOST_FOR_FEW;
        let (few, fewest) = (start + few_tokens.min(most_for_few), start + FEWEST.min(most_for_few));
        Self { pins, talk, start, room, few, fewest, claimed: 0.0 }
    }

    /// Advances to the next claim; `None` if nothing of it is taken.
    fn next(&mut self, claim: Claim) -> Option<f32> {
        let Talk { said, says_little, own_share, .. } = *self.talk;
        let room = |share: f32| self.start + (self.room - self.start) * share;
        let tokens_of = |is_one: &dyn Fn(Claim) -> bool| -> f32 {
            self.pins.iter().filter(|pin| is_one(pin.claim)).map(|pin| pin.tokens).sum()
        };
        let of_claim = tokens_of(&|other| other == claim);
        // A claim that every other sentence makes selects nothing. Brief sentences are rare or not by themselves.
        self.claimed = match claim {
            Claim::Brief if says_little => of_claim,
            Claim::Brief => tokens_of(&|other| other != Claim::Told),
            _ => self.claimed + of_claim,
        };
        let rare = (1.0 - self.claimed / (said * OFTEN)).max(0.0);
        let pinned = room(OFTEN_SHARE + (RARE_SHARE - OFTEN_SHARE) * rare);
        // In a talk in which much holds, hardly anything is a rule.
        let few = if says_little || self.claimed < said * OFTEN { self.few } else { self.fewest };
        Some(match claim {
            Claim::Told if !says_little => return None,
            Claim::Told => room(own_share),
            Claim::Brief if says_little => pinned.max(room(own_share)),
            Claim::Brief | Claim::Wish if of_claim >= said * OFTEN => pinned,
            Claim::Brief | Claim::Wish | Claim::Rule | Claim::Order | Claim::Fact | Claim::Trait => pinned.max(few),
        })
    }
}

impl Fit<'_, '_, '_> {
    /// Takes the user's words: first what holds from then on, then what the request asks for by name, whoever said it, then
    /// all of it, if the user says little; newest first, up to the limit of each.
    ///
    /// A newest group that is kept comes behind what holds from then on: if the estimates were too low, it is cut before that.
    pub(super) fn take_own_words(
        &self,
        selector: &mut Selector<'_>,
        pins: &[Pin],
        typed: &[f32],
        asked_for: &[(usize, usize)],
        keeps_newest: bool,
    ) {
        let mut newest = if keeps_newest { self.tier_tokens(Tier::Newest) } else { 0.0 };
        let start = selector.used() + newest;
        let room = |share: f32| start + (self.room - start) * share;
        let requests = self.requests(typed);
        let talk = self.talk(typed, &requests);
        let mut limits = ClaimLimits::new(pins, &talk, (start, self.room), self.few_tokens());
        let (mut seen, mut unlabelled, mut again) = (HashSet::new(), HashSet::new(), Vec::new());
        for claim in [Claim::Rule, Claim::Order, Claim::Fact, Claim::Trait, Claim::Wish, Claim::Brief, Claim::Told] {
            if claim == Claim::Brief {
                if keeps_newest {
                    self.take_newest(selector);
                    newest = 0.0;
                }
                self.take_asked_for(selector, asked_for);
            }
            let Some(limit) = limits.next(claim) else { continue };
            for pin in pins.iter().rev().filter(|pin| pin.claim == claim) {
                if !seen.insert(&pin.normal) {
                    continue;
                }
                if unlabelled.insert(&pin.unlabelled) {
                    selector.take_within(limit - newest, |selector| pin.take(selector));
                } else {
                    again.push((pin, limit));
                }
            }
        }
        self.settle_if_sure(selector);
        // Repetitions come last.
        for (pin, limit) in again {
            selector.take_within(limit, |selector| pin.take(selector));
        }
        // Long requests are weighed by their parts.
        let is_short = |&position: &usize| {
            self.full_tokens(self.protection.groups[position]) <= (self.room * REQUEST_SHARE).max(SHORT_REQUEST)
        };
        for position in requests.into_iter().filter(is_short).take(talk.most_requests) {
            selector.take_within(room(talk.own_share), |selector| selector.take_whole(position));
        }
        self.settle_if_sure(selector);
        self.take_conclusions(selector);
        self.settle_if_sure(selector);
    }

    /// Takes what the model says in messages without calls, if that is few tokens, as in an agent's run.
    fn take_conclusions(&self, selector: &mut Selector<'_>) {
        let says =
            |(_, group): &(usize, Group)| group.role == Role::Assistant && Protection::is_talk(self.draft, *group);
        let said: Vec<(usize, Group)> = self.before_newest().filter(says).collect();
        let tokens: f32 = said.iter().map(|(_, group)| self.full_tokens(*group)).sum();
        if tokens <= (self.room - selector.used()) * CONCLUSIONS_SHARE {
            for (position, _) in said.into_iter().rev() {
                selector.take_whole(position);
            }
        }
    }

    /// Returns how much of the conversation the user says.
    fn talk(&self, typed: &[f32], requests: &[usize]) -> Talk {
        let all: f32 = self.before_newest().map(|(_, group)| self.full_tokens(group)).sum();
        let is_talk = |group| Protection::is_talk(self.draft, group);
        let talk: f32 =
            self.before_newest().filter(|(_, group)| is_talk(*group)).map(|(_, group)| self.full_tokens(group)).sum();
        let own: f32 = requests.iter().map(|&position| typed[position]).sum();
        let says_little = own <= all * LITTLE;
        // The first request names the task, whatever came after.
        let (own_share, most_requests) = if says_little && talk > all * MOSTLY_TALK {
            (OWN_SHARE, usize::MAX)
        } else if says_little || talk * 2.0 <= all {
            (OWN_SHARE_OF_WORK, usize::MAX)
        } else {
            (OFTEN_SHARE, 1)
        };
        Talk { said: typed.iter().sum(), says_little, own_share, most_requests }
    }

    /// Takes what the request asks for by name, up to its share of the room.
    fn take_asked_for(&self, selector: &mut Selector<'_>, asked_for: &[(usize, usize)]) {
        let limit = selector.used() + (self.room - selector.used()) * ASKED_SHARE;
        for &(block, part) in asked_for {
            selector.take_within(limit, |selector| selector.take_part(block, part));
        }
    }

    /// Returns the tokens that sentences which hold from then on may always have.
    pub(super) fn few_tokens(&self) -> f32 {
        FEW_TOKENS.max(self.room * FEW_OF_ROOM)
    }

    /// Returns the groups before the newest, in order.
    pub(super) fn before_newest(&self) -> impl Iterator<Item = (usize, Group)> {
        self.protection.tier(Tier::Older).chain(self.protection.tier(Tier::LastRound))
    }

    /// Returns the groups of the user's requests, except pasted ones: the first, which names the task, then newest first.
    pub(super) fn requests(&self, typed: &[f32]) -> Vec<usize> {
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

    /// Returns the sentences that hold from then on, with their parts and tokens.
    pub(super) fn pins(&self, blocks: &[Block], documents: &[Document], claims: Vec<Stated>) -> Vec<Pin> {
        let mut pins = Vec::with_capacity(claims.len());
        // Sentences are ordered and disjoint, so the search for parts continues where the last one ended.
        let (mut of, mut part, mut end) = (None, 0, 0);
        for Stated { claim, group, entry, piece, block, sentence } in claims {
            let text = self.draft.text(entry, piece);
            let said = &text[sentence.clone()];
            let bare = without_label(said);
            let whole = normal(said);
            let unlabelled = if bare.len() == said.len() { whole.clone() } else { normal(bare) };
            let mut taken = text.len();
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
                taken = last_end - end;
                (block, first..last)
            });
            let of_piece = self.draft.entries[entry].pieces[piece].tokens.as_f32();
            let share = |bytes: usize| of_piece * count(bytes) / count(text.len().max(1));
            let (tokens, taken_tokens) = (share(sentence.len()), share(taken));
            pins.push(Pin { claim, group, parts, normal: whole, unlabelled, tokens, taken_tokens });
        }
        pins
    }
}

/// Most bytes of a label.
const LABEL_BYTES: usize = 40;

/// Returns a sentence without a numbered label or a time before it: "Task 5: …", "[10:32] …".
fn without_label(sentence: &str) -> &str {
    let head = &sentence[..sentence.floor_char_boundary(LABEL_BYTES)];
    let ends = [": ", "：", "] "].iter().filter_map(|end| Some(head.rfind(end)? + end.len()));
    let (label, said) = sentence.split_at(ends.max().unwrap_or(0));
    if label.bytes().any(|byte| byte.is_ascii_digit()) && !said.is_empty() { said } else { sentence }
}
