//! Roles alternate in what is left of a conversation in which they did: chat templates of Mistral, Gemma and others refuse
//! anything else.

use nanobot_context::compress::{self, Output, Request};
use nanobot_context::tokens::Tokens;
use nanobot_context::{Role, TokenCounter, conversation};

use crate::owned::{Owned, apply, messages_in, paragraphs, view};
use crate::texts::Kind;

/// Turns of a chat: a question, `calls` calls with their results, an answer.
fn chat(turns: usize, calls: usize, kinds: [Kind; 3]) -> Vec<Owned> {
    let mut messages = vec![Owned::new(Role::System, "You are nanobot.")];
    for turn in 0..turns {
        let ask = if turn % 3 == 0 { 900 } else { 60 };
        messages.push(Owned::new(Role::User, kinds[0].text(ask + 7 * turn, turn as u64)));
        messages.extend(steps(turn * calls..turn * calls + calls, kinds[1]));
        messages.push(Owned::new(Role::Assistant, kinds[2].text(40 + 300 * (turn % 4), turn as u64)));
    }
    messages.push(Owned::new(Role::User, "And now?"));
    messages
}

fn steps(numbers: std::ops::Range<usize>, kind: Kind) -> impl Iterator<Item = Owned> {
    numbers.flat_map(move |number| {
        let id = format!("call_{number}");
        let call = Owned::calling(&[&id], "exec", &format!(r#"{{"command": "make step-{number}"}}"#));
        [call, Owned::result(&id, "exec", kind.text(200 + 400 * (number % 5), number as u64))]
    })
}

/// One task and the calls that it takes.
fn task(calls: usize, kind: Kind) -> Vec<Owned> {
    let mut messages = vec![Owned::new(Role::System, "You are nanobot."), Owned::new(Role::User, "Fix the build.")];
    messages.extend(steps(0..calls, kind));
    messages
}

/// Returns the first pair of neighbours that a strict template refuses.
fn refused(messages: &[Owned]) -> Option<(usize, Role, Role)> {
    let mut before = Role::System;
    let mut calls = false;
    for (index, message) in messages.iter().enumerate() {
        let is_accepted = match (before, message.role) {
            (Role::Assistant, Role::User) => !calls,
            (Role::Assistant, Role::Tool) => calls,
            (before, role) => matches!(
                (before, role),
                (Role::System, Role::System | Role::User)
                    | (Role::User, Role::Assistant)
                    | (Role::Tool, Role::Tool | Role::Assistant)
            ),
        };
        if !is_accepted {
            return Some((index, before, message.role));
        }
        (before, calls) = (message.role, !message.calls.is_empty());
    }
    None
}

fn conversations() -> Vec<Vec<Owned>> {
    use Kind::{Chinese, Code, Json, Logs, Prose};
    vec![
        chat(40, 0, [Prose, Logs, Prose]),
        chat(30, 2, [Chinese, Json, Prose]),
        chat(25, 1, [Prose, Code, Chinese]),
        chat(200, 0, [Prose, Logs, Prose]),
        task(60, Logs),
        task(40, Json),
    ]
}

#[test]
fn roles_alternate_where_they_did() {
    for (number, messages) in conversations().iter().enumerate() {
        assert_eq!(refused(messages), None);
        for model in [None, Some("gpt-4o"), Some("gemma-3-27b"), Some("claude-sonnet-4-5")] {
            let request = Request::new(model, None, Tokens::ZERO);
            let all = TokenCounter::new(model).prompt(&view(messages), None).tokens.0;
            for percent in [6, 10, 17, 25, 40, 60, 80, 95] {
                let plan = compress::fit(&view(messages), &request, Tokens(all * percent / 100)).unwrap();
                let short = apply(messages, &plan);
                assert_eq!(refused(&short), None, "conversation {number}, {model:?}, {percent} %");
                let tokens = TokenCounter::new(model).prompt(&view(&short), None).tokens.0;
                assert!(tokens <= all * percent / 100 && plan.receipt.tokens_after == Some(Tokens(tokens)));
            }
        }
    }
}

#[test]
fn steps_of_a_long_conversation_alternate_too() {
    for messages in conversations() {
        let all = TokenCounter::new(None).prompt(&view(&messages), None).tokens.0;
        for end in (2..=messages.len()).filter(|&end| end == messages.len() || messages[end].role == Role::Assistant) {
            let sent = &messages[..end];
            let plan = compress::compress(&view(sent), &Request::new(None, None, Tokens(all / 4))).unwrap();
            let short = plan.map_or_else(|| sent.to_vec(), |plan| apply(sent, &plan));
            assert_eq!(refused(&short), None, "{end} messages");
        }
    }
}

#[test]
fn a_note_beside_the_last_message_of_the_user_is_no_second_turn_of_theirs_in_the_least_room() {
    for calls in [1, 3, 10] {
        let mut ends_with_a_question = task(calls, Kind::Code);
        ends_with_a_question.push(Owned::new(Role::Assistant, "I made what you said."));
        ends_with_a_question.push(Owned::new(Role::User, "Which one is the last?"));
        for messages in [ends_with_a_question, task(calls, Kind::Code)] {
            for budget in 20..200 {
                let request = Request::new(Some("gpt-4o"), None, Tokens::ZERO);
                let Ok(plan) = compress::fit(&view(&messages), &request, Tokens(budget)) else { continue };
                let short = apply(&messages, &plan);
                let twice = short.windows(2).find(|pair| pair[0].role == pair[1].role && pair[0].role == Role::User);
                assert_eq!(twice, None, "{calls} calls, {budget} tokens");
            }
        }
    }
}

#[test]
fn messages_of_the_user_that_become_one_keep_their_words_and_the_last_is_left_alone() {
    let asks = |turn: usize| Owned::new(Role::User, Kind::Prose.text(60 + 7 * turn, turn as u64));
    let answers = |turn: usize| Owned::new(Role::Assistant, Kind::Prose.text(2_000, turn as u64));
    let mut messages: Vec<Owned> = (0..40).flat_map(|turn| [asks(turn), answers(turn)]).collect();
    messages.push(Owned::new(Role::User, "And now?"));
    let all = TokenCounter::new(None).prompt(&view(&messages), None).tokens.0;
    let plan =
        compress::fit(&view(&messages), &Request::new(None, None, Tokens::ZERO), Tokens(all * 30 / 100)).unwrap();
    let short = apply(&messages, &plan);
    assert_eq!(short.last(), messages.last());
    let notes: usize = paragraphs(&short).filter_map(messages_in).sum();
    let gone = plan.receipt.cuts.iter().filter(|cut| cut.tokens_after == Tokens::ZERO).count();
    assert_eq!(notes, gone, "every message that is gone is counted");
    assert!(short.len() < messages.len() - gone, "{} of {} - {gone}", short.len(), messages.len());
}

#[test]
fn what_was_left_out_of_the_only_task_is_told_behind_it() {
    let messages = task(60, Kind::Logs);
    let all = TokenCounter::new(None).prompt(&view(&messages), None).tokens.0;
    for percent in [6, 10, 17] {
        let request = Request::new(None, None, Tokens::ZERO);
        let plan = compress::fit(&view(&messages), &request, Tokens(all * percent / 100)).unwrap();
        let short = apply(&messages, &plan);
        assert_eq!(short[..2], messages[..2], "{percent} %");
        let notes: usize = paragraphs(&short[2..]).filter_map(messages_in).sum();
        let gone = plan.receipt.cuts.iter().filter(|cut| cut.tokens_after == Tokens::ZERO).count();
        assert!(gone > 0);
        assert_eq!(notes, gone, "{percent} %");
    }
}

#[test]
fn no_note_stands_beside_calls() {
    // Clients take the text away that stands there.
    for messages in conversations() {
        let all = TokenCounter::new(None).prompt(&view(&messages), None).tokens.0;
        for percent in [6, 10, 17, 25, 40, 60, 80, 95] {
            let plan =
                compress::fit(&view(&messages), &Request::new(None, None, Tokens::ZERO), Tokens(all * percent / 100))
                    .unwrap();
            let short = apply(&messages, &plan);
            let beside = short.iter().filter(|message| !message.calls.is_empty()).flat_map(Owned::texts);
            assert_eq!(beside.collect::<Vec<_>>(), Vec::<&str>::new(), "{percent} %");
        }
    }
}

#[test]
fn what_was_fitted_and_is_fitted_again_says_all_that_is_gone() {
    for (number, messages) in conversations().iter().enumerate() {
        let all = TokenCounter::new(None).prompt(&view(messages), None).tokens.0;
        let mut list = messages.clone();
        // Messages of the user that became one are one from then on.
        let mut merged = 0;
        for percent in [60, 40, 25, 17, 10] {
            let plan =
                compress::fit(&view(&list), &Request::new(None, None, Tokens::ZERO), Tokens(all * percent / 100))
                    .unwrap();
            let short = apply(&list, &plan);
            let gone = plan.receipt.cuts.iter().filter(|cut| cut.tokens_after == Tokens::ZERO).count();
            let new = plan.outputs.iter().filter(|output| matches!(output, Output::New(_))).count();
            merged += list.len() - gone - (short.len() - new);
            list = short;
            assert_eq!(refused(&list), None, "{number}, {percent} %");
            let said: usize = view(&list).iter().map(|message| conversation::stands_for(message).0).sum();
            let least = messages.len() - merged;
            assert!((least..=messages.len()).contains(&said), "{number}, {percent} %: {said} of {least}");
        }
    }
}
