//! Inputs at which something quadratic, recursive or unbounded shows: each of these ends, without a panic.
//!
//! No time is asserted: a test that runs for minutes is the failure.

use nanobot_context::compress::{self, Output, Plan, Request};
use nanobot_context::conversation::safe_cut_point;
use nanobot_context::tokens::Tokens;
use nanobot_context::tokens::counted_bytes;
use nanobot_context::{Role, TokenCounter, history};

use crate::owned::{Call, Owned, apply, view};
use crate::texts::Kind;

const MEGABYTE: usize = 1 << 20;

/// A vocabulary of each back end, and an estimate.
const MODELS: [Option<&str>; 4] = [None, Some("gpt-4"), Some("deepseek-chat"), Some("claude-opus-4-7")];

fn request(model: Option<&'static str>, window_tokens: u64) -> Request<'static> {
    Request::new(model, None, Tokens(window_tokens))
}

/// Compresses to the window, and returns what came out and its tokens, which are within the budget.
fn compressed(messages: &[Owned], request: &Request<'_>) -> (Vec<Owned>, Plan) {
    let view = view(messages);
    let all = || Plan { outputs: (0..messages.len()).map(Output::Keep).collect(), ..Plan::default() };
    let plan = compress::compress(&view, request).unwrap().unwrap_or_else(all);
    let out = apply(messages, &plan);
    let tokens = request.counter().prompt(&crate::owned::view(&out), None).tokens.0;
    assert!(Tokens(tokens) <= request.budget_tokens());
    (out, plan)
}

#[test]
fn a_megabyte_of_one_kind_is_counted_and_cut() {
    let kinds = [
        Kind::OneLetter,
        Kind::Spaces,
        Kind::Equals,
        Kind::ChineseWithoutPunctuation,
        Kind::Newlines,
        Kind::Digits,
        Kind::Base64,
        Kind::Emoji,
        Kind::Controls,
    ];
    for kind in kinds {
        let text = kind.text(MEGABYTE, 1);
        for model in MODELS {
            let messages = [
                Owned::new(Role::User, "look at this"),
                Owned::calling(&["a"], "read_file", r#"{"path": "a"}"#),
                Owned::result("a", "read_file", text.clone()),
                Owned::new(Role::User, "well?"),
            ];
            let (out, _) = compressed(&messages, &request(model, 8_000));
            assert!(out[2].texts()[0].contains("left out"), "{kind:?} {model:?}");
        }
    }
}

/// Lines up to `bytes`.
fn repeated(bytes: usize, line: &dyn Fn(usize) -> String) -> Vec<String> {
    let lines = (0..).map(line).scan(0, |length, line| {
        *length += line.len();
        (*length < bytes).then_some(line)
    });
    lines.collect()
}

/// What is looked up by name: many names, each said once, and keys that marks have.
#[test]
fn a_megabyte_of_distinct_names_and_of_chosen_keys() {
    let names = repeated(MEGABYTE, &|i| format!(r#""handle_{i:x}": "src/part_{i}.rs""#)).join(", ");
    let keys =
        repeated(MEGABYTE, &|i| format!(r#""…{}": "v {i}""#, if i == 0 { String::new() } else { (i + 1).to_string() }));
    let chains = repeated(MEGABYTE, &|i| format!("{}q{i}", "a1.".repeat(60))).join(" ");
    let joined = repeated(MEGABYTE, &|i| format!("a{i}")).join("/");
    let texts = [format!("{{{names}}}"), format!("{{{}}}", keys.join(", ")), chains, joined];
    for text in &texts {
        for messages in [
            vec![
                Owned::new(Role::User, text.clone()),
                Owned::new(Role::Assistant, "ok"),
                Owned::new(Role::User, "and?"),
            ],
            vec![
                Owned::calling(&["a"], "read_file", r#"{"path": "a"}"#),
                Owned::result("a", "read_file", text.clone()),
                Owned::new(Role::User, "and?"),
            ],
        ] {
            let tokens = TokenCounter::new(None).prompt(&view(&messages), None).tokens.0;
            for max_tokens in [2_000, tokens / 2] {
                let plan = compress::fit(&view(&messages), &request(None, 0), Tokens(max_tokens)).unwrap();
                let out = apply(&messages, &plan);
                assert!(!compress::lost(&view(&messages), &view(&out)).is_empty());
            }
        }
    }
}

/// However many rounds a fit takes, and however large a text is: what the rounds share is not counted again.
#[test]
fn a_fit_counts_each_byte_about_twice() {
    for bytes in [MEGABYTE / 8, 2 * MEGABYTE] {
        let names = repeated(bytes, &|i| format!(r#""handle_{bytes}_{i:x}": "src/part_{i}.rs""#)).join(", ");
        let log = repeated(bytes, &|i| format!("{bytes} {i}: served /item/{:x} in {} ms\n", i * 7919, i * 37 % 4001));
        let rules = repeated(bytes, &|i| format!("Never touch file_{bytes}_{i}.py. Always ask owner_{i} first. "));
        for text in [format!("{{{names}}}"), log.concat(), rules.concat()] {
            let messages = [
                Owned::new(Role::User, text.clone()),
                Owned::new(Role::Assistant, "ok"),
                Owned::new(Role::User, "and?"),
            ];
            for (model, share) in [(None, 2), (Some("claude-opus-4-7"), 3)] {
                let before = counted_bytes();
                let tokens = TokenCounter::new(model).prompt(&view(&messages), None).tokens.0;
                compress::fit(&view(&messages), &request(model, 0), Tokens(tokens / share)).unwrap();
                let counted = counted_bytes() - before;
                assert!(counted < text.len() as u64 * 9 / 4, "{counted} of {}: {text:.40}", text.len());
            }
        }
    }
}

/// What is listed of calls that have no place is not counted again for each line that there is no room for.
#[test]
fn calls_without_room_are_counted_once_each() {
    let counted = |rounds: usize| {
        let mut messages = vec![Owned::new(Role::User, "go")];
        for round in 0..rounds {
            let (id, arguments) = (format!("call_{round}"), format!(r#"{{"command": "./step-{rounds}-{round}.sh"}}"#));
            messages.push(Owned::calling(&[&id], "exec", &arguments));
            messages.push(Owned::result(&id, "exec", format!("done {round}")));
        }
        let before = counted_bytes();
        compress::fit(&view(&messages), &request(None, 0), Tokens(2_000)).unwrap();
        (counted_bytes() - before) / rounds as u64
    };
    let (few, many) = (counted(500), counted(4_000));
    assert!(many * 10 <= few * 13, "{few} bytes a call of 500, {many} of 4,000");
}

#[test]
fn two_megabytes_of_rules_of_the_user() {
    let rule = |i: usize| format!("Never touch file_{i}.py. Always ask owner_{i} first. ");
    let rules: String = (0..2 * MEGABYTE / 50).map(rule).collect();
    let messages = [
        Owned::new(Role::User, rules),
        Owned::new(Role::Assistant, "ok"),
        Owned::new(Role::User, "go on"),
        Owned::new(Role::Assistant, "done"),
        Owned::new(Role::User, "and now?"),
    ];
    for window_tokens in [2_000, 100_000, 600_000] {
        compressed(&messages, &request(None, window_tokens));
    }
}

#[test]
fn a_name_that_is_asked_for_stands_in_each_sentence_of_two_megabytes() {
    let sentence = |i: usize| format!("The zither of house {i} is out of tune. ");
    let said: String = (0..2 * MEGABYTE / 40).map(sentence).collect();
    let mut messages = vec![Owned::new(Role::User, said)];
    for _ in 0..8 {
        messages.push(Owned::new(Role::Assistant, "Noted, and what else is there to do today?"));
        messages.push(Owned::new(Role::User, "Nothing much, the weather is fine and we go on."));
    }
    messages.push(Owned::new(Role::User, "What about the zither?"));
    for window_tokens in [2_000, 100_000] {
        compressed(&messages, &request(None, window_tokens));
    }
}

#[test]
fn ids_that_are_those_of_a_repair() {
    const CALLS: usize = 20_000;
    let call = |id: String| Call {
        id: Some(id),
        name: Some("f".to_owned()),
        arguments: Some("{}".to_owned()),
        arguments_are_text: true,
    };
    let none = (0..CALLS).map(|_| call(String::new()));
    let taken = (0..CALLS).map(|i| call(format!("call_1_0_{}", i + 2)));
    let first = (0..CALLS).map(|i| call(format!("call_1_{i}")));
    let calls: Vec<Call> = none.chain(taken).chain(first).collect();
    let messages = [Owned::new(Role::User, "go"), Owned { calls, ..Owned::new(Role::Assistant, "") }];
    compressed(&messages, &request(None, 4_000_000));
    compressed(&messages, &request(None, 10_000));
}

#[test]
fn a_result_of_many_parts_to_a_call_with_long_arguments() {
    let parts =
        (0..5_000).map(|i| crate::owned::Says::Text(format!("part {i} of no great length, but there are many")));
    let arguments = serde_json::json!({"content": "word ".repeat(MEGABYTE / 5), "path": "a.txt"}).to_string();
    let messages = [
        Owned::new(Role::User, "go"),
        Owned::calling(&["a"], "write_file", &arguments),
        Owned { says: crate::owned::Says::Parts(parts.collect()), ..Owned::result("a", "write_file", "") },
        Owned::new(Role::User, "well?"),
    ];
    compressed(&messages, &request(None, 30_000));
    compressed(&messages, &request(None, 1_000));
}

#[test]
fn a_long_message_before_many_short_rounds() {
    let long = Owned::new(Role::User, "word ".repeat(10_000));
    let rounds = (0..50_000).flat_map(|_| [Owned::new(Role::Assistant, "yes"), Owned::new(Role::User, "and")]);
    let messages: Vec<Owned> = std::iter::once(long).chain(rounds).collect();
    compressed(&messages, &request(None, 2_000_000));
}

#[test]
fn fifty_megabytes_in_one_string() {
    let text = "2026-05-01T10:11:12 INFO worker-3 batch 4711 done in 312 ms\n".repeat(50 * MEGABYTE / 60);
    let messages = [Owned::new(Role::Assistant, text), Owned::new(Role::User, "well?")];
    let (out, _) = compressed(&messages, &request(None, 100_000));
    assert!(out[0].texts()[0].contains(" characters left out ...]"));
}

#[test]
fn a_hundred_thousand_messages() {
    let round = [
        Owned::new(Role::User, "do it"),
        Owned::calling(&["a"], "exec", r#"{"command": "ls -la"}"#),
        Owned::result("a", "exec", "total 4\nsrc tests Cargo.toml README.md and what else is there to be seen"),
        Owned::new(Role::Assistant, "done"),
    ];
    let messages: Vec<Owned> = round.iter().cycle().take(100_000).cloned().collect();
    for window_tokens in [20_000, 1_000_000] {
        let (_, plan) = compressed(&messages, &request(None, window_tokens));
        assert!(!plan.receipt.cuts.is_empty());
    }
    let counter = TokenCounter::new(None);
    let view = view(&messages);
    assert_eq!(history::select(&view, Tokens::MAX, &counter).len(), 100_000);
}

#[test]
fn one_message_with_twenty_thousand_calls() {
    const CALLS: usize = 20_000;
    let text = serde_json::json!({"path": "a.py", "content": "x = 1\n".repeat(60)}).to_string();
    let call = |i: usize| Call {
        id: Some(format!("call_{i}")),
        name: Some("write_file".to_owned()),
        arguments: Some(text.clone()),
        arguments_are_text: true,
    };
    let calls: Vec<Call> = (0..CALLS).map(call).collect();
    let opening = |calls| vec![Owned::new(Role::User, "go"), Owned { calls, ..Owned::new(Role::Assistant, "") }];
    let result =
        |i: usize| Owned::result(&format!("call_{i}"), "write_file", "written, and that is all there is to say of it");

    // sound, in order and in reverse; not answered; all with one id; all broken
    let mut sound = opening(calls.clone());
    sound.extend((0..CALLS).map(result));
    let mut reversed = opening(calls.clone());
    reversed.extend((0..CALLS).rev().map(result));
    let open = opening(calls.clone());
    let same = |call: Call| Call { id: Some("same".to_owned()), ..call };
    let mut same_ids = opening(calls.clone().into_iter().map(same).collect());
    same_ids.extend((0..CALLS).map(|_| Owned::result("same", "write_file", "written")));
    let broken = |call: Call| Call { name: None, arguments: Some("{\"path\": ".to_owned()), ..call };
    let broken = opening(calls.into_iter().map(broken).collect());
    for messages in [sound, reversed, open, same_ids, broken] {
        let total = TokenCounter::new(None).prompt(&view(&messages), None).tokens.0;
        for window_tokens in [total / 2, 10_000] {
            compressed(&messages, &request(None, window_tokens));
        }
        history::select(&view(&messages), Tokens::MAX, &TokenCounter::new(None));
    }
}

#[test]
fn no_place_to_cut_among_a_hundred_thousand_late_results() {
    const CALLS: usize = 100_000;
    let call = |i: usize| Call {
        id: Some(format!("call_{i}")),
        name: Some("f".to_owned()),
        arguments: Some("{}".to_owned()),
        arguments_are_text: true,
    };
    let calling = Owned { calls: (0..CALLS).map(call).collect(), ..Owned::new(Role::Assistant, "") };
    let mut messages = vec![Owned::new(Role::User, "go"), calling];
    for i in 0..CALLS {
        messages.extend([Owned::new(Role::User, "and?"), Owned::result(&format!("call_{i}"), "f", "ok")]);
    }
    assert_eq!(safe_cut_point(&view(&messages), 1), 0);
}

#[test]
fn nesting_five_thousand_deep() {
    let deep = |inner: &str| format!("{}{inner}{}", r#"{"a": ["#.repeat(2_500), "]}".repeat(2_500));
    let long = deep(&serde_json::Value::from("word ".repeat(20_000)).to_string());
    for arguments in [deep("1"), long, "[".repeat(5_000)] {
        let messages = [
            Owned::new(Role::User, "go"),
            Owned::calling(&["a", "b"], "read_file", &arguments),
            Owned::result("a", "read_file", "word ".repeat(5_000)),
            Owned::result("b", "exec", "word ".repeat(5_000)),
            Owned::new(Role::User, "well?"),
        ];
        compressed(&messages, &request(None, 40_000));
        compressed(&messages, &request(None, 1_000));
    }
}

#[test]
fn a_megabyte_of_escapes_and_quotes_in_arguments() {
    for text in [r"\ud83d\ude00".repeat(90_000), r"\\".repeat(500_000), r#"\""#.repeat(500_000)] {
        let messages = [
            Owned::new(Role::User, "go"),
            Owned::calling(&["a"], "write_file", &format!(r#"{{"content": "{text}"}}"#)),
            Owned::result("a", "write_file", "written"),
            Owned::new(Role::User, "well?"),
        ];
        let (out, _) = compressed(&messages, &request(None, 8_000));
        let arguments = out.iter().flat_map(|message| &message.calls).next().unwrap().arguments.as_deref().unwrap();
        serde_json::from_str::<serde_json::Value>(arguments).unwrap();
        assert!(arguments.contains(" characters left out"), "{arguments}");
    }
}

#[test]
fn a_message_with_ten_thousand_parts() {
    let parts = |text: &str| crate::owned::Says::Parts(vec![crate::owned::Says::Text(text.to_owned()); 10_000]);
    let messages = [
        Owned::new(Role::User, "go"),
        Owned::calling(&["a"], "read_file", "{}"),
        Owned { says: parts("a part of no great length, but there are many"), ..Owned::result("a", "read_file", "") },
        Owned { says: parts("word"), ..Owned::new(Role::Assistant, "") },
        Owned::new(Role::User, "well?"),
    ];
    compressed(&messages, &request(None, 60_000));
    compressed(&messages, &request(None, 1_000));
}
