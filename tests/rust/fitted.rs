//! Conversations made of steps, and what is left of them within a share of their tokens.

use nanobot_context::budget::Request;
use nanobot_context::compress::{self, evaluation};
use nanobot_context::tokens::Tokens;
use nanobot_context::{Role, TokenCounter};

use crate::owned::{Owned, apply, view};

/// A wish of the user, for each of `steps` a call (tool, arguments) with its result, an answer, and a question.
pub fn conversation(steps: &[(&str, &str, &str)], question: &str) -> Vec<Owned> {
    let mut messages = vec![Owned::new(Role::User, "Find out why it fails.")];
    for (i, (tool, arguments, result)) in steps.iter().enumerate() {
        let id = format!("call_{i}");
        messages.push(Owned::calling(&[&id], tool, arguments));
        messages.push(Owned::result(&id, tool, *result));
    }
    messages.push(Owned::new(Role::Assistant, "I have looked at all of it."));
    messages.push(Owned::new(Role::User, question));
    messages
}

/// `count` lines, each made of its number.
pub fn lines(count: usize, line: impl Fn(usize) -> String) -> String {
    (0..count).map(|i| line(i) + "\n").collect()
}

pub fn tokens(messages: &[Owned]) -> u64 {
    TokenCounter::new(None).prompt(&view(messages), None).tokens.0
}

pub fn percent_of(messages: &[Owned], percent: u64) -> u64 {
    tokens(messages) * percent / 100
}

pub fn fit_by(messages: &[Owned], request: &Request<'_>, max_tokens: u64) -> Vec<Owned> {
    apply(messages, &compress::fit(&view(messages), request, Tokens(max_tokens)).unwrap())
}

/// Returns what is left within `percent` of the tokens.
pub fn fit(messages: &[Owned], percent: u64) -> Vec<Owned> {
    fit_by(messages, &Request::new(None, None, Tokens::ZERO), percent_of(messages, percent))
}

/// As [`fit`], without a mechanism.
pub fn fit_without(mechanism: &str, messages: &[Owned], percent: u64) -> Vec<Owned> {
    let (request, max_tokens) = (Request::new(None, None, Tokens::ZERO), percent_of(messages, percent));
    apply(messages, &evaluation::fit_without(&view(messages), &request, Tokens(max_tokens), [mechanism]).unwrap())
}

/// Returns all that is said, the calls left out.
pub fn text(messages: &[Owned]) -> String {
    messages.iter().flat_map(Owned::texts).collect::<Vec<_>>().join("\n")
}

/// Returns what a message says.
pub fn said(messages: &[Owned], index: usize) -> &str {
    messages[index].texts()[0]
}
