//! What is worth a change between two steps: old reasoning and long old messages.
//!
//! A change of a message makes the provider read everything behind it anew, which costs more than leaving a message
//! long, unless what goes is most of that. So it is weighed, once for each message of the user: when a round ends and
//! its messages become old ones.

use crate::conversation::is_note;
use crate::message::{Content, Field, Message, Part, Role, Text};
use crate::tokens::TokenCounter;

use super::limits::{are_settled, long_message, longer_than, message_chars};
use super::plan::{Cut, Edit, Output, Plan, Reason};
use super::{Limits, Request};

/// How many cached tokens cost as much as a fresh one.
///
/// Source: the price lists of Anthropic ("Prompt caching": reads cost 0.1 of the base price), of OpenAI for GPT-5 and
/// of DeepSeek (cached input at a tenth), 2026.
const CACHED_PER_FRESH: u64 = 10;

/// Cuts old reasoning and long old messages of a plan where that pays, for everything behind the first of them.
///
/// Weighed with what stands in the request, so that a request that comes in as it went out is left as it is.
pub fn weigh(plan: &mut Plan, view: &[Message<'_>], request: &Request<'_>) {
    let counter = request.counter();
    let slim = {
        let messages: Vec<Message<'_>> = plan.outputs.iter().map(|output| output.message(view)).collect();
        if are_settled(&messages, &request.limits) {
            return;
        }
        let sources = plan.outputs.iter().map(|output| match output {
            Output::Keep(index) | Output::Edit(index, _) => Some(&view[*index]),
            Output::New(_) => None,
        });
        let mut weighed: Vec<Weighed> = messages
            .iter()
            .zip(sources)
            .map(|(message, source)| Weighed::of(message, source, &request.limits, &counter))
            .collect();
        weigh_rounds(&messages, &mut weighed);
        weighed
    };
    for (output, weighed) in plan.outputs.iter_mut().zip(slim) {
        let (Some(slim), true) = (weighed.slim, weighed.is_cut) else { continue };
        let Some((index, mut edit)) = into_edit(output) else { continue };
        if let Some(after) = plan.receipt.tokens_after.as_mut() {
            *after -= slim.saved;
        }
        plan.receipt.cuts.extend(slim.cuts.into_iter().map(|(reason, tokens_before, tokens_after)| Cut {
            index,
            reason,
            tokens_before,
            tokens_after,
        }));
        slim.edit.add_to(&mut edit);
        *output = Output::Edit(index, edit);
    }
    plan.receipt.cuts.sort_by_key(|cut| cut.index);
}

/// Returns what it is worth, in cached tokens, to save `saved` tokens where `rest` tokens must be read anew for it: with
/// the change the rest is read anew once, without it what would be saved is read from the cache each time.
///
/// A round is expected to have as many requests as the one before it had, `requests`.
fn gain(requests: u64, saved: u64, rest: u64) -> u64 {
    (requests.max(1).saturating_mul(saved)).saturating_sub((CACHED_PER_FRESH - 1).saturating_mul(rest))
}

/// Decides for every round as it ends which messages are cut.
fn weigh_rounds(messages: &[Message<'_>], weighed: &mut [Weighed]) {
    let before_assistant = (1..messages.len()).filter(|&at| messages[at].role == Role::Assistant);
    let (mut from, mut requests) = (0, 0);
    // Tokens that cutting messages before `counted` would save.
    let (mut may_save, mut counted) = (0, 0);
    for at in before_assistant.chain([messages.len()]) {
        let is_user = |&index: &usize| messages[index].role == Role::User && !is_note(&messages[index]);
        let opening = (from..at).rev().find(is_user);
        from = at;
        if let Some(user) = opening {
            may_save += weighed[counted..user].iter().map(Weighed::saved).sum::<u64>();
            counted = user;
            may_save -= weigh_round(weighed, user, requests, may_save);
            requests = 0;
        }
        requests += 1;
    }
}

/// Cuts everything that may be cut from some place to that behind `before` messages, where that pays the most; cutting all
/// of them would save `may_save` tokens. Returns the tokens that it saves.
fn weigh_round(weighed: &mut [Weighed], before: usize, requests: u64, may_save: u64) -> u64 {
    let (mut tokens, mut saved, mut best) = (0, 0, (0, before));
    for (position, message) in weighed[..before].iter().enumerate().rev() {
        tokens += message.tokens;
        saved += message.saved();
        if gain(requests, may_save, tokens - saved) == 0 {
            break;
        }
        let gain = gain(requests, saved, tokens - saved);
        if message.saved() > 0 && gain > best.0 {
            best = (gain, position);
        }
    }
    let mut saved = 0;
    for message in &mut weighed[best.1..before] {
        saved += message.saved();
        message.tokens -= message.saved();
        message.is_cut |= message.saved() > 0;
    }
    saved
}

/// A message of the request, and what can be cut in it once it is old.
struct Weighed {
    tokens: u64,
    slim: Option<Slim>,
    is_cut: bool,
}

impl Weighed {
    fn of(message: &Message<'_>, source: Option<&Message<'_>>, limits: &Limits, counter: &TokenCounter) -> Self {
        let slim = source.and_then(|source| Slim::of(message, source, limits, counter));
        Self { tokens: counter.message(message), slim, is_cut: false }
    }

    /// Returns the tokens that cutting it would save.
    fn saved(&self) -> u64 {
        self.slim.as_ref().filter(|_| !self.is_cut).map_or(0, |slim| slim.saved)
    }
}

/// A shorter form of a message.
#[derive(Default)]
struct Slim {
    edit: SlimEdit,
    saved: u64,
    /// Reason, tokens before and after.
    cuts: Vec<(Reason, u64, u64)>,
}

#[derive(Default)]
struct SlimEdit {
    content: Option<String>,
    parts: Vec<(usize, String)>,
    removed: Vec<Field>,
}

impl SlimEdit {
    fn add_to(self, edit: &mut Edit) {
        edit.content = self.content.or(edit.content.take());
        for (index, text) in self.parts {
            edit.parts.retain(|(other, _)| *other != index);
            edit.parts.push((index, text));
        }
        edit.parts.sort_by_key(|(index, _)| *index);
        edit.fields.retain(|(field, _)| !self.removed.contains(field));
        edit.fields.extend(self.removed.into_iter().map(|field| (field, String::new())));
    }
}

impl Slim {
    /// Returns what `message` would become as an old one; cut from `source`, so that marks say all that is gone.
    fn of(message: &Message<'_>, source: &Message<'_>, limits: &Limits, counter: &TokenCounter) -> Option<Self> {
        let max_chars = match message.role {
            Role::User => message_chars(limits.max_user_message_chars),
            Role::Assistant => message_chars(limits.max_assistant_message_chars),
            _ => return None,
        };
        let mut slim = Self::default();
        let mut shorter = |text: &Text<'_>, source: &Text<'_>| {
            longer_than(text.as_str(), max_chars).then(|| {
                let short = long_message(source.as_str(), max_chars, *counter);
                slim.cut(Reason::LongMessage, counter.known(text, None), counter.text(&short));
                short
            })
        };
        let mut edit = SlimEdit::default();
        match (&message.content, &source.content) {
            (Content::Text(text), Content::Text(source)) => edit.content = shorter(text, source),
            (Content::Parts(parts), Content::Parts(sources)) => {
                for (index, (part, source)) in parts.iter().zip(sources).enumerate() {
                    let (Part::Text(text), Part::Text(source)) = (part, source) else { continue };
                    edit.parts.extend(shorter(text, source).map(|short| (index, short)));
                }
            }
            _ => {}
        }
        let reasoning = message.reasoning().filter(|_| message.role == Role::Assistant);
        for (field, text) in reasoning.filter(|(_, text)| longer_than(text.as_str(), limits.reasoning_keep_chars)) {
            slim.cut(Reason::Reasoning, counter.known(text, None), 0);
            edit.removed.push(field);
        }
        slim.edit = edit;
        (slim.saved > 0).then_some(slim)
    }

    fn cut(&mut self, reason: Reason, before: u32, after: u32) {
        self.saved += u64::from(before.saturating_sub(after));
        self.cuts.push((reason, before.into(), after.into()));
    }
}

fn into_edit(output: &Output) -> Option<(usize, Edit)> {
    match output {
        Output::Keep(index) => Some((*index, Edit::default())),
        Output::Edit(index, edit) => Some((*index, edit.clone())),
        Output::New(_) => None,
    }
}
