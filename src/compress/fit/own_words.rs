//! Takes the user's own words before anything else is weighed.

use std::collections::{HashMap, HashSet};
use std::ops::Range;

use crate::conversation::{Group, is_own, said};
use crate::message::Role;
use crate::select::scoring::Document;
use crate::select::selector::{Block, Selector};
use crate::text::bytes::has_digit;
use crate::text::estimate::count;
use crate::text::rules::{self, Claim, is_firm, normal, stands_alone};

use super::taken::{Parts, Taken};
use super::{FRAMING, Fit};
use crate::compress::documents::{Place, SHORT_TOKENS, Span, Stated};
use crate::compress::protection::{Protection, Tier};
use crate::compress::said::{LITTLE, LITTLE_BESIDE_WORK, MOSTLY_TALK, RARER};

/// Share of the room for sentences that hold from then on: if they are rare among the user's words, and if they are said
/// often.
const RARE_SHARE: f32 = 0.5;
const OFTEN_SHARE: f32 = 0.04;
/// Share of the rules that stand in paragraphs of their own, as whoever means them writes them; in meetings people say "never" amid
/// others. They have [`RULES_SHARE`] of the room, however many they are: of 20, 40 in 400 turns of a few words 12, 21 stay at 25 % of
/// the tokens without this, with it all.
const APART: f32 = 0.8;
/// Claims that others do not make usual, as talk full of "never" and "must" does with rules: they have room of their own. Beside 3 to
/// 12 such sentences in talks of equals "I am allergic to walnuts." stays in 144 of 144 fits, without this in 24, and of ten answers to
/// the model's questions all, for 16 of 60; of the evidence of meetings .609 and .819 stay at 25 and 50 % in place of .611 and .821.
const ABOUT_THE_USER: [Claim; 2] = [Claim::Fact, Claim::Answer];
/// Tokens that such sentences may always have, or this share of the room, if that leaves a little for all else.
const FEW_TOKENS: f32 = 320.0;
const FEW_OF_ROOM: f32 = 0.1;
const MOST_FOR_FEW: f32 = 0.85;
/// The same in a talk with many of them.
const FEWEST: f32 = 96.0;

/// Share of the room for all that the user says, if that is [`LITTLE`]; and in a conversation mostly of calls. With 0.25 for the
/// latter, steps to 6 % of an agent's run lost half of the user's words where these had room; recall at 25 % is .765 with it, .763
/// with 0.6.
const OWN_SHARE: f32 = 0.85;
const OWN_SHARE_OF_WORK: f32 = 0.6;
/// Share of the room that all words of the users may need in a talk of several people, however much that is of it. Of 1,155
/// statements in long messages of users who type .45 to .75 of a talk 937 stay where all that they typed has room, 835 without this;
/// with .78 1,046, and .834 of the evidence of meetings at 50 % in place of .846.
const ALL_OWN: f32 = 0.7;
/// The same of one who speaks for himself: beside what does not fit into [`OWN_SHARE`], the newest of it does. Of 160 facts that a user
/// who types 45 or 60 % of a talk corrects in long messages, half of it has the newest of all, without this of 133, and the old one
/// alone of 16.
const ALL_OWN_OF_ONE: f32 = 1.3;
/// The same in a conversation with calls, of a user who says more than [`LITTLE_BESIDE_WORK`]. Where they type 31 to 48 % of the tokens
/// the newest of 300 values that they change is in 239 fits to half of these, without it in 148 and the old one alone in 44; for
/// those who say less .620 of what an airline's customers need next stays at 25 % in place of .634.
const ALL_OWN_BESIDE_WORK: f32 = 0.8;
/// How much of that rules and facts may have, before other words of the user. Of 40 in 1,500 tokens 107 of 120 stay in three talks, 80
/// without it; with half 116, and 80.5 % of what is asked of talks at 12 % in place of 81.4.
const RULES_SHARE: f32 = 0.35;
/// How much of that answers may have with their questions, before other words of the user.
const ANSWERS_SHARE: f32 = 0.5;

/// Share of the room for what the model said before the last message of the user, and the least and most tokens that it has
/// before all that the user says.
///
/// Without it 54, 57, 31 of 80 short replies ("the second one") stood behind a mark where the room was 2,000, 3,000, 8,000, with it
/// none; with a quarter and 400 tokens .586 of the evidence of Chinese meetings stays at 25 % in place of .604.
const ANSWERED_SHARE: f32 = 0.15;
const SHORT_ANSWER: (f32, f32) = (100.0, 200.0);
/// The same in a talk with one user, behind what the user says. Of 100 last replies of 60 turns 42 and 7 were wholly gone at 10 and 15 % of
/// the tokens with 0.15 and at most 200 tokens, with this none.
const ANSWERED_BY_ONE: f32 = 0.3;
/// Share of the room for the newest replies of such a talk. Of 100 replies before the last one 49 and 32 were gone at 25 and 50 % without
/// it, with it 7 and 0.
const NEWEST_REPLIES_SHARE: f32 = 0.1;

/// Share of the room that all short replies of the model may need, beside a user who says little. In rooms of 8,000 and 16,000 with
/// answers of 2,500 characters the newest of values that the model told is sent in 768 of 768 and 428 of 428 requests, without it in
/// 645 and 376; with a share of .2 .578 of the evidence of meetings stays at a quarter of the tokens in place of .599.
const SHORT_REPLIES_SHARE: f32 = 0.1;

/// Share of the room for what the request asks for by name.
const ASKED_SHARE: f32 = 0.3;

/// Most bytes of a paragraph beside a paste. Of three sentences before a table, code or a mail 58, 56, 63 of 90 stay at 30 % of the
/// tokens without these, with them 90, 84, 90.
const MAX_END_BYTES: usize = 400;

/// Share of the room up to which a request stays whole, and the tokens up to which it always does.
const REQUEST_SHARE: f32 = 0.25;
const SHORT_REQUEST: f32 = 400.0;

/// A sentence of the user that should stay, with the question that it answers.
pub(super) struct Pin {
    pub(super) claim: Claim,
    takes: Vec<Taken>,
    /// The group that says it, if that answers a question.
    answered_by: Option<usize>,
    /// Normalised for comparison: whole, and without a label.
    normal: String,
    unlabelled: String,
    tokens: f32,
    /// Whether it is a paragraph of its own: of more than have room these come first. Of ten rules in messages of 1,000 characters of
    /// manuals 5 or 6 stay at 6 to 25 % of the tokens, without this 1.
    is_alone: bool,
    /// Whether it is a rule that says it holds for good: of more than have room these come next. Of rules in 80 messages of equals of
    /// 900 characters, in which 12 other sentences seem to be some, two of two stay at 6 to 20 % of the tokens, without this none.
    is_firm: bool,
    /// Estimated tokens of all that stays with it: its parts, or its message.
    pub(super) taken_tokens: f32,
}

impl Pin {
    fn take(&self, selector: &mut Selector<'_>) {
        self.takes.iter().for_each(|taken| taken.take(selector));
    }
}

/// How much of the conversation the user says.
struct Talk {
    /// Estimated tokens that the user typed.
    said: f32,
    /// The share of that above which claims are usual.
    often: f32,
    says_little: bool,
    /// Whether calls and results are at least half of the conversation.
    is_work: bool,
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
    /// Tokens of the rare claims so far, without answers; and the share of what the user says up to which they are.
    claimed: f32,
    often: f32,
}

impl<'l> ClaimLimits<'l> {
    fn new(pins: &'l [Pin], talk: &'l Talk, (start, room): (f32, f32), few_tokens: f32) -> Self {
        let most_for_few = (room - start) * MOST_FOR_FEW;
        let (few, fewest) = (start + few_tokens.min(most_for_few), start + FEWEST.min(most_for_few));
        Self { pins, talk, start, room, few, fewest, claimed: 0.0, often: talk.often }
    }

    /// Advances to the next claim, with `used` tokens taken before; returns its limit, or `None` if nothing of it is taken.
    fn next(&mut self, claim: Claim, used: f32) -> Option<f32> {
        let Talk { said, often: talk_often, says_little, own_share, .. } = *self.talk;
        let room = |share: f32| self.start + (self.room - self.start) * share;
        let tokens_of = |is_one: &dyn Fn(Claim) -> bool| -> f32 {
            self.pins.iter().filter(|pin| is_one(pin.claim)).map(|pin| pin.tokens).sum()
        };
        let of_claim = tokens_of(&|other| other == claim);
        // A claim that every other sentence makes selects nothing, and others only if they are all the rarer.
        let is_apart_from_usual =
            ABOUT_THE_USER.contains(&claim) && self.often < talk_often && of_claim <= said * talk_often;
        let claimed = match claim {
            _ if is_apart_from_usual => of_claim,
            Claim::Brief if !says_little => tokens_of(&|other| other > Claim::Told),
            Claim::Brief | Claim::Answer | Claim::Told | Claim::Stated => of_claim,
            _ if self.claimed + of_claim > said * self.often => {
                self.often = talk_often * RARER;
                f32::INFINITY
            }
            _ => {
                self.claimed += of_claim;
                self.claimed
            }
        };
        let often = if claim == Claim::Brief { talk_often } else { self.often };
        let rare = (1.0 - claimed / (said * often)).max(0.0);
        let pinned = room(OFTEN_SHARE + (RARE_SHARE - OFTEN_SHARE) * rare);
        // In a talk in which much holds, hardly anything is a rule.
        let alone =
            || -> f32 { self.pins.iter().filter(|pin| pin.claim == claim && pin.is_alone).map(|pin| pin.tokens).sum() };
        let is_apart = claim == Claim::Rule && alone() >= of_claim * APART;
        let few = if is_apart_from_usual {
            used + (self.few - self.start)
        } else if is_apart {
            self.few.max(room(RULES_SHARE))
        } else if says_little || claimed < said * often {
            self.few
        } else {
            self.fewest
        };
        Some(match claim {
            Claim::Told if !says_little => return None,
            Claim::Stated if own_share < OWN_SHARE => return None,
            Claim::Told | Claim::Stated => room(own_share),
            Claim::Brief if says_little => pinned.max(room(own_share)),
            Claim::Answer if says_little => pinned.max(room(own_share * ANSWERS_SHARE)),
            Claim::Brief | Claim::Wish | Claim::Answer if of_claim >= said * talk_often => pinned,
            Claim::Rule | Claim::Order | Claim::Fact | Claim::Trait if says_little => {
                pinned.max(few).max(room(own_share * RULES_SHARE))
            }
            _ => pinned.max(few),
        })
    }
}

impl Fit<'_, '_, '_> {
    /// Takes the user's words: first what holds from then on, then what the request asks for by name, whoever said it, then
    /// all of it, if the user says little; newest first, up to the limit of each.
    ///
    /// A newest group that is kept comes behind what holds from then on: if the estimates were too low, it is cut before that.
    ///
    /// Returns whether calls and results are at least half of the conversation.
    pub(super) fn take_own_words(
        &self,
        selector: &mut Selector<'_>,
        pins: &[Pin],
        (typed, often, are_many): (&[f32], f32, bool),
        asked_for: (&[(usize, usize)], &[usize]),
        keeps_newest: bool,
    ) -> bool {
        let mut newest = if keeps_newest { self.tier_tokens(Tier::Newest) } else { 0.0 };
        let start = selector.used() + newest;
        let room = |share: f32| start + (self.room - start) * share;
        let requests = self.requests(typed);
        let talk = self.talk((typed, often, are_many), &requests);
        let mut limits = ClaimLimits::new(pins, &talk, (start, self.room), self.few_tokens());
        let (mut seen, mut unlabelled, mut again) = (HashSet::new(), HashSet::new(), Vec::new());
        for claim in [
            Claim::Rule,
            Claim::Order,
            Claim::Fact,
            Claim::Trait,
            Claim::Answer,
            Claim::Wish,
            Claim::Brief,
            Claim::Told,
            Claim::Stated,
        ] {
            if claim == Claim::Brief {
                if keeps_newest {
                    self.take_newest(selector);
                    newest = 0.0;
                }
                self.take_odd_of_newest(selector);
                self.take_asked_for(selector, asked_for);
                let short = (self.room * ANSWERED_SHARE).clamp(SHORT_ANSWER.0, SHORT_ANSWER.1);
                self.take_answered(selector, (selector.used() + short).min(self.room));
            }
            let Some(limit) = limits.next(claim, selector.used()) else { continue };
            let mut of_claim: Vec<&Pin> = pins.iter().rev().filter(|pin| pin.claim == claim).collect();
            of_claim.sort_by_key(|pin| (!pin.is_alone, !pin.is_firm));
            for pin in of_claim {
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
        // An answer in a few words says nothing without its question.
        let answers: HashMap<usize, &Pin> =
            pins.iter().filter_map(|pin| pin.answered_by.map(|position| (position, pin))).collect();
        let mut said_before = HashSet::new();
        let mut is_new = |&position: &usize| {
            let message = || self.draft.message(self.protection.groups[position].start);
            let text = answers.get(&position).map(|pin| pin.normal.clone());
            text.or_else(|| message().map(|message| normal(&said(message))))
                .is_some_and(|text| said_before.insert(text))
        };
        let (limit, whole) = (room(talk.own_share), requests.iter().copied().filter(is_short).collect::<HashSet<_>>());
        // In the order of `requests`.
        let first = requests.first().copied();
        let others = self.of_user().rev().map(|(position, _)| position).filter(|position| Some(*position) != first);
        let said = first.into_iter().chain(others).filter(|position| is_new(position));
        for position in said.take(talk.most_requests) {
            let is_taken = match answers.get(&position) {
                Some(pin) => selector.take_within(limit, |selector| pin.take(selector)),
                None => {
                    whole.contains(&position) && selector.take_within(limit, |selector| selector.take_whole(position))
                }
            };
            if !is_taken {
                selector.take_within(limit, |selector| self.take_typed_ends(selector, position));
            }
        }
        self.take_answered(selector, self.limit(selector, ANSWERED_SHARE));
        if talk.says_little {
            self.take_short_replies(selector);
        }
        self.settle_if_sure(selector);
        talk.is_work
    }

    /// Takes the first and the last paragraph that the user typed of a group, where these are short: what is said about a paste
    /// stands before it or behind.
    fn take_typed_ends(&self, selector: &mut Selector<'_>, position: usize) {
        for block in selector.blocks(position) {
            let Some(analysis) = &self.before[block].analysis else { continue };
            let text = self.before(block);
            let mut paragraphs: Vec<Range<usize>> = Vec::new();
            for line in rules::typed(text) {
                match paragraphs.last_mut().filter(|last| last.end == line.start) {
                    Some(last) => last.end = line.end,
                    None => paragraphs.push(line),
                }
            }
            let (first, last) = (paragraphs.first(), paragraphs.last().filter(|_| paragraphs.len() > 1));
            for range in first.into_iter().chain(last).filter(|range| range.len() <= MAX_END_BYTES) {
                analysis.parts_in(range).for_each(|part| selector.take_part(block, part));
            }
        }
    }

    /// Returns how much of the conversation the user says.
    fn talk(&self, (typed, often, are_many): (&[f32], f32, bool), requests: &[usize]) -> Talk {
        let all: f32 = self.before_newest().map(|(_, group)| self.full_tokens(group)).sum();
        let is_talk = |group| Protection::is_talk(self.draft, group);
        let talk: f32 =
            self.before_newest().filter(|(_, group)| is_talk(*group)).map(|(_, group)| self.full_tokens(group)).sum();
        let own: f32 = requests.iter().map(|&position| typed[position]).sum();
        let is_work = talk * 2.0 <= all;
        let is_mostly_talk = talk > all * MOSTLY_TALK;
        let (little, all_own) = match (is_mostly_talk, are_many) {
            (true, true) => (LITTLE, ALL_OWN),
            (true, false) => (LITTLE, ALL_OWN_OF_ONE),
            (false, _) => (LITTLE_BESIDE_WORK, ALL_OWN_BESIDE_WORK),
        };
        let (is_little, has_room) = (own <= all * little, own <= self.room * all_own);
        let says_little = is_little || has_room;
        // The first request names the task, whatever came after.
        let (own_share, most_requests) = if says_little && (is_mostly_talk || !is_little) {
            (OWN_SHARE, usize::MAX)
        } else if says_little || is_work {
            (OWN_SHARE_OF_WORK, usize::MAX)
        } else {
            (OFTEN_SHARE, 1)
        };
        Talk { said: typed.iter().sum(), often, says_little, is_work, own_share, most_requests }
    }

    /// Takes what the model said before the last message of the user, which may answer it or say "it": whole within `limit`, or
    /// its end, where the model asks.
    fn take_answered(&self, selector: &mut Selector<'_>, limit: f32) {
        let Some(position) = self.protection.answered(self.draft) else { return };
        selector.take_within(limit, |selector| selector.take_whole(position));
        for block in selector.blocks(position).rev() {
            for part in (0..selector.parts(block)).rev() {
                selector.take_within(limit, |selector| selector.take_part(block, part));
            }
        }
    }

    /// Returns whether a group is a message of the model without calls.
    pub(super) fn is_reply(&self, group: Group) -> bool {
        group.role == Role::Assistant && Protection::is_talk(self.draft, group)
    }

    /// Takes the reply from which the user goes on in a talk with one, whole or its end, and the newest before it, whole, each up to
    /// their share of the room.
    pub(super) fn take_newest_replies(&self, selector: &mut Selector<'_>, are_many: bool) {
        if are_many || !self.protection.is_asked_now() {
            return;
        }
        self.take_answered(selector, self.limit(selector, ANSWERED_BY_ONE));
        let limit = self.limit(selector, NEWEST_REPLIES_SHARE);
        let replies = self.before_newest().rev().filter(|(_, group)| self.is_reply(*group));
        for (position, _) in replies.filter(|(position, _)| !selector.says_little(*position)).collect::<Vec<_>>() {
            if !selector.is_whole(position) && !selector.take_within(limit, |selector| selector.take_whole(position)) {
                break;
            }
        }
    }

    /// Takes what the model said in a line, if that is little: decisions and values, and what the user answers in a few words.
    fn take_short_replies(&self, selector: &mut Selector<'_>) {
        let is_short = |(position, group): &(usize, Group)| {
            self.is_reply(*group)
                && self.full_tokens(*group) <= SHORT_TOKENS.as_f32()
                && !selector.says_little(*position)
        };
        let short: Vec<(usize, Group)> = self.before_newest().filter(is_short).collect();
        let tokens: f32 = short.iter().map(|(_, group)| self.full_tokens(*group)).sum();
        if tokens <= self.room * SHORT_REPLIES_SHARE {
            for (position, _) in short.into_iter().rev() {
                selector.take_within(self.room, |selector| selector.take_whole(position));
            }
        }
    }

    /// Takes what the request asks for by name, parts and the groups of entries, up to its share of the room.
    fn take_asked_for(&self, selector: &mut Selector<'_>, (parts, whole): (&[(usize, usize)], &[usize])) {
        let limit = self.limit(selector, ASKED_SHARE);
        for &(block, part) in parts {
            selector.take_within(limit, |selector| selector.take_part(block, part));
        }
        // What answers may be what a mail quotes; what replaces it stands above.
        for &(block, _) in parts {
            if selector.is_mail(block) {
                selector.take_within(limit, |selector| selector.take_block(block));
            }
        }
        let limit = limit.max((selector.used() + LEAST_ASKED).min(self.room));
        for &entry in whole {
            selector.take_within(limit, |selector| selector.take_whole(self.group_of(entry)));
        }
    }

    /// Returns the tokens that sentences which hold from then on may always have.
    pub(super) fn few_tokens(&self) -> f32 {
        FEW_TOKENS.max(self.room * FEW_OF_ROOM)
    }

    /// Iterates over what the user said, with a paste or without, in order.
    fn of_user(&self) -> impl DoubleEndedIterator<Item = (usize, Group)> {
        let is_users = |(_, group): &(usize, Group)| self.draft.message(group.start).is_some_and(is_own);
        self.before_newest().filter(is_users)
    }

    /// Returns the groups of the user's requests, except pasted ones: the first, which names the task, then newest first.
    pub(super) fn requests(&self, typed: &[f32]) -> Vec<usize> {
        let is_request =
            |(position, group): &(usize, Group)| typed[*position] * 2.0 >= self.full_tokens(*group) - FRAMING;
        let mut requests: Vec<usize> = self.of_user().filter(is_request).map(|(position, _)| position).collect();
        if !requests.is_empty() {
            requests[1..].reverse();
        }
        requests
    }

    /// Returns the sentences that hold from then on, with their parts and tokens.
    pub(super) fn pins(&self, blocks: &[Block], documents: &[Document], claims: Vec<Stated>) -> Vec<Pin> {
        let mut parts = Parts::of(blocks, documents);
        let pin = |Stated { claim, said, question }| {
            let Span { place: Place { entry, piece, .. }, ref range, .. } = said;
            let mut pin = Pin {
                claim,
                takes: Vec::new(),
                answered_by: question.is_some().then_some(said.group),
                normal: String::new(),
                unlabelled: String::new(),
                tokens: 0.0,
                is_alone: stands_alone(self.draft.text(entry, piece), range),
                is_firm: claim == Claim::Rule && is_firm(&self.draft.text(entry, piece)[range.clone()]),
                taken_tokens: 0.0,
            };
            for span in question.iter().chain([&said]) {
                let Place { entry, piece, .. } = span.place;
                let text = self.draft.text(entry, piece);
                let sentence = &text[span.range.clone()];
                let (taken, bytes) = parts.take(span);
                let tokens = |bytes: usize| self.share_tokens(span.place, bytes);
                pin.tokens += tokens(sentence.len());
                pin.taken_tokens += tokens(bytes.unwrap_or(text.len()));
                pin.takes.push(taken);
                let (whole, bare) = (normal(sentence), without_label(sentence));
                if bare.len() == sentence.len() {
                    pin.unlabelled.push_str(&whole);
                } else {
                    pin.unlabelled.push_str(&normal(bare));
                }
                pin.normal.push_str(&whole);
            }
            pin
        };
        claims.into_iter().map(pin).collect()
    }

    /// Returns the estimated tokens of some bytes of a piece.
    pub(super) fn share_tokens(&self, Place { entry, piece, .. }: Place, bytes: usize) -> f32 {
        let of_piece = self.draft.entries[entry].pieces[piece].tokens.as_f32();
        of_piece * count(bytes) / count(self.draft.text(entry, piece).len().max(1))
    }
}

/// Tokens that these groups may have in a small room, too: a call with its short result.
const LEAST_ASKED: f32 = 128.0;

/// Most bytes of a label.
const LABEL_BYTES: usize = 40;

/// Returns a sentence without a numbered label or a time before it: "Task 5: …", "[10:32] …".
fn without_label(sentence: &str) -> &str {
    let head = &sentence[..sentence.floor_char_boundary(LABEL_BYTES)];
    let ends = [": ", "：", "] "].iter().filter_map(|end| Some(head.rfind(end)? + end.len()));
    let (label, said) = sentence.split_at(ends.max().unwrap_or(0));
    if has_digit(label) && !said.is_empty() { said } else { sentence }
}
