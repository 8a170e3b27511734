//! Quotes what a step has left out before the message of the user that asks for it, by name or in words; and behind a result that only
//! says it would be the same as an earlier one.
//!
//! The quotes follow from the messages up to that one. So the prefix that a provider has cached stays, and the requests up to the
//! next step have the same ones, as long as they have room. They are a ledger: whoever reads it takes none of it for somebody's
//! words.

mod asked;
mod passages;
mod rating;
mod restored;
mod shown;
mod sources;

use std::collections::{HashMap, VecDeque};
use std::sync::{Mutex, MutexGuard, PoisonError};

use jiff::civil::Date;

use crate::budget::Request;
use crate::conversation::{is_own, last_user_index, own_words, said};
use crate::message::{Content, Message, Part, Role, Text};
use crate::text::envelope;
use crate::text::rules::typed;
use crate::text::sentences::QUESTION_BYTES;
use crate::tokens::{REPLY, Tokens};
use crate::tools::refers_back;

use super::compaction::{CompactionStep, Made};
use super::days::days_meant_by;
use super::digest::Digest;
use super::notes::{BETWEEN, takes_words, wanted_reasoning};
use super::plan::{Cut, Edit, NewMessage, Output, Plan, Reason};
use asked::Asking;
use passages::Search;
use restored::restored;

pub(super) use sources::RECORD_BYTES;

/// Share of the budget for the quotes of a message, and their least and most tokens.
///
/// With .08, .15 and .2 .422, .436 and .456 of the evidence of meetings stays at a quarter of the tokens.
const SHARE: f64 = 0.15;
const MIN_TOKENS: Tokens = Tokens(200);
const MAX_TOKENS: Tokens = Tokens(2_000);

/// Results behind a step that refer back to earlier ones, at most: more are a loop. Each is looked for in all messages before it.
const MOST_RESTORED: usize = 16;

/// Tokens that are left to what stands above the quotes where room is short.
const HEADINGS: Tokens = Tokens(80);

/// The quotes of a request.
#[derive(Default)]
pub(super) struct Recalls {
    quoted: Vec<Quoted>,
    /// Tokens of the request with them that are over the budget.
    over: Tokens,
    /// The first request behind the step that they do not leave in the budget: that of the messages before this index.
    pub(super) exceeded_at: Option<usize>,
}

/// What is quoted before a message of the user, or behind a result.
struct Quoted {
    message: usize,
    text: String,
    tokens: Tokens,
}

/// What was quoted before messages behind a step: by a hash of all messages behind it up to one. It saves work and decides nothing.
#[derive(Debug, Default)]
pub struct Quotes(Mutex<Remembered>);

#[derive(Debug, Default)]
struct Remembered {
    quotes: HashMap<u128, Option<String>>,
    /// The keys, newest last.
    keys: VecDeque<u128>,
}

/// A step remembers the quotes of so many messages, and of twice as many as the user has behind it: with fewer than there are, each
/// request would look for all of them again.
const REMEMBERED: usize = 64;

impl Quotes {
    /// Returns what is quoted for a message with the hash `key`, one of `messages` behind the step; `make` finds it.
    fn of(&self, key: u128, messages: usize, make: impl FnOnce() -> Option<String>) -> Option<String> {
        self.known_or(key, || {
            // Outside the lock, for it is slow.
            let text = make();
            let mut all = self.all();
            if all.quotes.insert(key, text.clone()).is_none() {
                all.keys.push_back(key);
            }
            while all.keys.len() > REMEMBERED.max(2 * messages) {
                let oldest = all.keys.pop_front();
                oldest.and_then(|oldest| all.quotes.remove(&oldest));
            }
            text
        })
    }

    /// Returns what was quoted for a message with the hash `key`; where it was not looked for, what `find` finds.
    fn known_or(&self, key: u128, find: impl FnOnce() -> Option<String>) -> Option<String> {
        let known = self.all().quotes.get(&key).cloned();
        known.unwrap_or_else(find)
    }

    fn all(&self) -> MutexGuard<'_, Remembered> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns their approximate size in bytes.
    pub fn bytes(&self) -> usize {
        let all = self.all();
        let texts = all.quotes.values().flatten().map(String::len).sum::<usize>();
        texts + all.keys.len() * size_of::<(u128, u128, Option<String>)>()
    }
}

impl Recalls {
    /// Finds the quotes for each message of the user behind a step, and for results that refer back; `tokens` are those of the messages as
    /// they arrived.
    ///
    /// O(terms before the step) for each message of the user that is new.
    pub(super) fn of(
        view: &[Message<'_>],
        step: &CompactionStep,
        made: &Made,
        tokens: &[Tokens],
        request: &Request<'_>,
    ) -> Self {
        let mut this = Self::default();
        // The step leaves room at the message that it was made for, too.
        let from = step.at.saturating_sub(1);
        let last = last_user_index(view).filter(|&last| last >= from);
        let (budget, counter) = (request.budget_tokens(), request.counter());
        let most = budget.share(SHARE).max(MIN_TOKENS).min(MAX_TOKENS);
        let is_system = |index: &usize| view[*index].role == Role::System;
        let system: Tokens = (0..view.len()).filter(is_system).map(|index| tokens[index]).sum();
        let (mut used, mut quotes) = (request.tools_tokens() + REPLY + system + made.tokens, Tokens::ZERO);
        let messages = view[step.at..].iter().filter(|message| message.role == Role::User).count();
        let is_exceeded = |used: Tokens, quotes: Tokens| used <= budget && used + quotes > budget;
        let (mut digest, mut search, mut restorable) = (Digest::default(), None, MOST_RESTORED);
        for index in (from..view.len()).filter(|index| !is_system(index)) {
            let message = &view[index];
            if message.role == Role::Assistant && index > step.at && this.exceeded_at.is_none() {
                this.exceeded_at = is_exceeded(used, quotes).then_some(index);
            }
            used += if index < step.at { Tokens::ZERO } else { tokens[index] };
            let of_free = |most: Tokens| most.min((budget - used - quotes - HEADINGS).max(most / 2));
            let last = last.filter(|&last| index <= last);
            if last.is_some() {
                digest.message(message);
            }
            let text = match (message.role, last) {
                (Role::Tool, _) if restorable > 0 && message.texts().next().is_some_and(refers_back) => {
                    restorable -= 1;
                    restored(view, index, (step.at, made), of_free(request.one_result_tokens()), request)
                }
                (_, Some(last)) if is_own(message) => {
                    let max_tokens = of_free(most);
                    digest.number(max_tokens.0);
                    // Known by this alone is what means no day.
                    made.quotes.known_or(digest.finish(), || {
                        let days = days_meant_by(&view[..=last], index);
                        made.quotes.of(key(&digest, days.as_deref()), messages, || {
                            let search =
                                search.get_or_insert_with(|| Search::new(&view[..=last], step.at, made, counter));
                            let ((words, is_question), days) = (asked(message), days.unwrap_or_default());
                            search.quotes(index, &Asking { words, is_question, days }, max_tokens)
                        })
                    })
                }
                _ => None,
            };
            if let Some(text) = text.filter(|text| this.quoted.iter().all(|quoted| quoted.text != *text)) {
                let tokens = counter.message(&Message::new(Role::User, &text));
                quotes += tokens;
                this.quoted.push(Quoted { message: index, text, tokens });
            }
        }
        this.over = used + quotes - budget;
        this.exceeded_at = this.exceeded_at.or(is_exceeded(used, quotes).then_some(view.len()));
        this
    }

    /// Puts the quotes into a plan; the oldest go where there is no room.
    pub(super) fn place(self, plan: &mut Plan, view: &[Message<'_>], request: &Request<'_>) {
        let mut over = self.over;
        for quoted in self.quoted {
            if over > Tokens::ZERO {
                over -= quoted.tokens;
            } else {
                quoted.place(plan, view, request);
            }
        }
        plan.receipt.cuts.sort_by_key(|cut| cut.index);
    }
}

impl Quoted {
    /// Puts the quotes behind a result, or behind what the model says before the message of the user, or between the two as a message of
    /// their own.
    fn place(self, plan: &mut Plan, view: &[Message<'_>], request: &Request<'_>) {
        let is_message = |output: &Output| output.index() == Some(self.message);
        let Some(at) = plan.outputs.iter().position(is_message).filter(|&at| at > 0) else { return };
        let at = if view[self.message].role == Role::Tool { at + 1 } else { at };
        let counter = request.counter();
        let before = plan.outputs[at - 1].message(view);
        let tokens = counter.message(&before);
        let edited = joined(&plan.outputs[at - 1], &before, &self.text).map(|(index, edit)| Output::Edit(index, edit));
        let new = || {
            let role = if before.role == Role::Assistant { Role::User } else { Role::Assistant };
            let reasoning = wanted_reasoning(view, &counter).filter(|_| role == Role::Assistant);
            Output::New(NewMessage { role, content: self.text, tool_call_id: None, name: None, reasoning })
        };
        let output = edited.unwrap_or_else(new);
        let index = output.index();
        let more = counter.message(&output.message(view)) - if index.is_some() { tokens } else { Tokens::ZERO };
        // Where a count is an estimate, two texts have fewer tokens than what they are joined to.
        if plan.receipt.tokens_after.is_some_and(|after| after + more > request.budget_tokens()) {
            return;
        }
        plan.receipt.tokens_after = plan.receipt.tokens_after.map(|after| after + more);
        if let Some(index) = index {
            plan.outputs[at - 1] = output;
            plan.receipt.cuts.push(Cut { index, reason: Reason::Joined, tokens_before: tokens, tokens_after: tokens });
        } else {
            plan.outputs.insert(at, output);
        }
    }
}

/// Returns the edit that puts `quotes` behind the words of the model or a result, with the message's index; `None` where it takes none.
fn joined(output: &Output, message: &Message<'_>, quotes: &str) -> Option<(usize, Edit)> {
    let (index, mut edit) = match output {
        Output::Keep(index) => (*index, Edit::default()),
        Output::Edit(index, edit) => (*index, edit.clone()),
        Output::New(_) => return None,
    };
    if message.role != Role::Tool && !takes_words(message) {
        return None;
    }
    let behind = |said: &Text<'_>| [said.as_str(), BETWEEN, quotes].concat();
    match &message.content {
        Content::Empty => return None,
        Content::Text(said) => edit.content = Some(behind(said)),
        Content::Parts(parts) => {
            let words = |(at, part): (usize, &Part<'_>)| match part {
                Part::Text(said) => Some((at, behind(said))),
                _ => None,
            };
            let (at, text) = parts.iter().enumerate().rev().find_map(words)?;
            edit.parts.retain(|(other, _)| *other != at);
            edit.parts.push((at, text));
        }
    }
    Some((index, edit))
}

/// Returns the hash of what is quoted for the last of some messages: of these, and of the days that it means, for today changes them.
fn key(messages: &Digest, days: Option<&[Date]>) -> u128 {
    let mut digest = messages.clone();
    if let Some(days) = days {
        digest.number(days.len() as u64);
        for day in days {
            digest.text(&day.to_string());
        }
    }
    digest.finish()
}

/// Returns what the user asks for: the words of a short message, and of a longer one what was typed, for it may be pasted; and whether
/// the message is short.
fn asked(message: &Message<'_>) -> (String, bool) {
    let words = own_words(message);
    if words.len() <= QUESTION_BYTES {
        return (words, true);
    }
    let said = said(message);
    let said = envelope::without_host_blocks(&said);
    (typed(&said).map(|line| said[line].trim()).collect::<Vec<_>>().join("\n"), false)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_quoted_behind_a_step_is_looked_for_once_however_many_messages_there_are() {
        let quotes = Quotes::default();
        let mut searches = 0;
        for messages in 1..=300 {
            for message in 0..messages {
                quotes.of(message, messages as usize, || {
                    searches += 1;
                    None
                });
            }
        }
        assert_eq!(searches, 300);
        assert!(quotes.bytes() < 300 * 100);
    }
}
