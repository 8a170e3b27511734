//! Fields beside content and calls: all are counted, and each goes only where its provider can do without it.

use nanobot_context::compress::{self, Plan, Request};
use nanobot_context::message::Media;
use nanobot_context::tokens::Tokens;
use nanobot_context::{Field, Message, Role, Text, TokenCounter};

use crate::owned::{Owned, apply, view};

const ALL: [Field; 11] = [
    Field::ReasoningContent,
    Field::Reasoning,
    Field::ThinkingBlocks,
    Field::ReasoningDetails,
    Field::ExtraContent,
    Field::ProviderFields,
    Field::Call(0),
    Field::Refusal,
    Field::FunctionArguments,
    Field::FunctionName,
    Field::Audio(None),
];

fn long() -> String {
    serde_json::json!({"text": "some words of a thought and more of them. ".repeat(400)}).to_string()
}

/// A conversation whose first and last call carry `field`.
fn conversation(field: Field) -> Vec<Owned> {
    let call = |id: &str| Owned::calling(&[id], "exec", "{}").with(field, long());
    vec![
        Owned::new(Role::User, "first"),
        call("a"),
        Owned::result("a", "exec", "done"),
        Owned::new(Role::User, "second"),
        call("b"),
        Owned::result("b", "exec", "done"),
        call("c"),
        Owned::result("c", "exec", "done"),
    ]
}

fn fit(messages: &[Owned], budget_tokens: u64) -> (Plan, Vec<Owned>) {
    let view = view(messages);
    let plan = compress::fit(&view, &Request::new(Some("gpt-4o"), None, Tokens::ZERO), Tokens(budget_tokens)).unwrap();
    let out = apply(messages, &plan);
    (plan, out)
}

fn tokens(messages: &[Owned]) -> u64 {
    TokenCounter::new(Some("gpt-4o")).prompt(&view(messages), None).tokens.0
}

#[test]
fn every_field_is_counted() {
    let counter = TokenCounter::new(Some("gpt-4o"));
    let bare = counter.message(&Message::new(Role::Assistant, "a"));
    for field in ALL {
        let fields = vec![(field, Text::new("some words of a field"))];
        let framing = if field == Field::FunctionName { 8 } else { 0 };
        let with = counter.message(&Message { fields, ..Message::new(Role::Assistant, "a") });
        assert_eq!(with, bare + Tokens(framing) + counter.text("some words of a field"), "{field:?}");
    }
    let fields = vec![(Field::Audio(Some(Media::Audio)), Text::new("AAAA"))];
    assert_eq!(counter.message(&Message { fields, ..Message::new(Role::Assistant, "a") }), bare + Tokens(10));
}

#[test]
fn no_field_takes_a_request_over_its_budget() {
    for field in ALL {
        let messages = conversation(field);
        for budget_tokens in [60, 300, 2_000, 6_000] {
            let (plan, out) = fit(&messages, budget_tokens);
            assert!(tokens(&out) <= budget_tokens, "{field:?} {budget_tokens}");
            assert_eq!(plan.receipt.tokens_after, Some(Tokens(tokens(&out))), "{field:?}");
        }
    }
}

#[test]
fn what_may_go_by_itself_goes_before_its_message() {
    for field in ALL.into_iter().filter(|field| field.is_cuttable()) {
        let messages = conversation(field);
        let (_, out) = fit(&messages, tokens(&messages) - 1_000);
        assert_eq!(out.len(), messages.len(), "{field:?}");
        assert_eq!(out[1].calls, messages[1].calls, "{field:?}");
        assert_ne!(out[1].field(field), messages[1].field(field), "{field:?}");
    }
}

#[test]
fn signatures_of_the_last_round_stay_with_their_calls() {
    for field in ALL.into_iter().filter(|field| field.is_signature()) {
        let messages = conversation(field);
        let all = tokens(&messages);
        for budget_tokens in (100..all).step_by(400) {
            let (_, out) = fit(&messages, budget_tokens);
            let last_user = out.iter().rposition(|message| message.texts() == ["second"]).unwrap();
            for message in out[last_user..].iter().filter(|message| !message.calls.is_empty()) {
                assert_eq!(message.field(field), Some(&*long()), "{field:?} {budget_tokens}");
            }
        }
        let request = Request::new(Some("gpt-4o"), None, Tokens(100_000));
        let plan = compress::emergency(&view(&messages), &request).unwrap();
        let out = apply(&messages, &plan);
        assert_eq!(
            out.iter().map(|message| message.field(field).is_some()).collect::<Vec<_>>()[1..5],
            [false, false, false, true]
        );
    }
}

#[test]
fn old_reasoning_goes_by_either_of_its_names() {
    let think = |field| Owned::new(Role::Assistant, "ok").with(field, "thinks ".repeat(2_001));
    let user = || Owned::new(Role::User, "go");
    let messages = [user(), think(Field::Reasoning), think(Field::ReasoningContent), user(), think(Field::Reasoning)];
    let request = Request::new(Some("gpt-4o"), None, Tokens(6_000));
    let plan = compress::compress(&view(&messages), &request).unwrap().unwrap();
    let out = apply(&messages, &plan);
    assert_eq!(out.iter().map(|message| message.fields.len()).collect::<Vec<_>>(), [0, 0, 0, 0, 1]);
}

#[test]
fn a_refusal_is_shortened_as_a_message_is() {
    let refusal = "I cannot help with that, since it would break a rule. ".repeat(200);
    let messages = [
        Owned::new(Role::User, "q"),
        Owned::new(Role::Assistant, "").with(Field::Refusal, refusal),
        Owned::new(Role::User, "go"),
    ];
    let (_, out) = fit(&messages, 400);
    let short = out[1].field(Field::Refusal).unwrap();
    assert!(short.contains(" left out") && short.len() > 400, "{short}");
}

#[test]
fn arguments_of_the_older_form_of_a_call_stay_json() {
    let call =
        Owned::new(Role::Assistant, "").with(Field::FunctionName, "write").with(Field::FunctionArguments, long());
    let messages = [Owned::new(Role::User, "q"), call, Owned::new(Role::Function, "ok"), Owned::new(Role::User, "go")];
    let (_, out) = fit(&messages, 500);
    let arguments = out[1].field(Field::FunctionArguments).unwrap();
    assert!(
        arguments.len() < long().len() && serde_json::from_str::<serde_json::Value>(arguments).is_ok(),
        "{arguments}"
    );
}
