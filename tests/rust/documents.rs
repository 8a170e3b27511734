//! The acceptance criteria of document 004 (plan V3.1), phases 1 to 3, as far as they are the core's.

use nanobot_context::compress::{self, Output, Plan, Reason, Request};
use nanobot_context::message::Media;
use nanobot_context::tokens::Tokens;
use nanobot_context::{
    Content, Error, Field, Message, Part, Role, TRIM_LINES, TokenCounter, conversation, history, trim_tool_result,
    window,
};

use crate::owned::{Owned, Says, apply, view};
use crate::texts::Kind;

fn request(window_tokens: u64) -> Request<'static> {
    Request::new(None, None, Tokens(window_tokens))
}

/// One turn: a user's wish and `rounds` calls with a result of `bytes` bytes each.
fn turn(rounds: usize, bytes: usize) -> Vec<Owned> {
    let mut messages = vec![Owned::new(Role::System, "You are nanobot."), Owned::new(Role::User, "Fix the build.")];
    for i in 0..rounds {
        let id = format!("call_{i}");
        messages.push(Owned::calling(&[&id], "exec", r#"{"command": "make test"}"#));
        messages.push(Owned::result(&id, "exec", Kind::Logs.text(bytes, i as u64)));
    }
    messages
}

fn tokens(messages: &[Owned]) -> u64 {
    TokenCounter::new(None).prompt(&view(messages), None).tokens.0
}

fn edited(plan: &Plan) -> Vec<usize> {
    let index = |output: &Output| if let Output::Edit(index, _) = output { Some(*index) } else { None };
    plan.outputs.iter().filter_map(index).collect()
}

#[test]
fn windows_are_those_of_the_plan() {
    assert_eq!(window::get_context_window("anthropic/claude-opus-4-5", None), Tokens(200_000));
    assert_eq!(window::get_context_window("unknown-model", None), Tokens(128_000));
    assert_eq!(window::get_context_window("x", Some(Tokens::ZERO)), Tokens::ZERO);
}

#[test]
fn ten_thousand_lines_become_thirty_within_the_characters() {
    let result = (0..10_000).map(|i| format!("line {i}")).collect::<Vec<_>>().join("\n");
    let trimmed = trim_tool_result(&result, 15_000, TRIM_LINES);
    assert!((30..=34).contains(&trimmed.lines().count()));
    let wide = (0..10_000).map(|i| format!("{i} {}", "x".repeat(2_000))).collect::<Vec<_>>().join("\n");
    assert!(trim_tool_result(&wide, 15_000, TRIM_LINES).chars().count() <= 15_000);
    assert_eq!(trim_tool_result("short", 15_000, TRIM_LINES), "short");
    let rows = vec!["a row of it"; 500].join("\n");
    let mark = "[... 498 lines, 5,976 characters left out ...]";
    assert_eq!(trim_tool_result(&rows, 200, (0, 2)), format!("{mark}\na row of it\na row of it"));
    assert_eq!(trim_tool_result(&rows, 200, (2, 0)), format!("a row of it\na row of it\n{mark}"));
}

#[test]
fn the_last_round_begins_with_the_last_user_and_is_not_cut_for_the_older_ones_sake() {
    let mut messages = turn(8, 6_000);
    let last = messages.len();
    messages.push(Owned::new(Role::User, "And the docs?"));
    messages.push(Owned::calling(&["x"], "read_file", r#"{"path": "README.md"}"#));
    messages.push(Owned::result("x", "read_file", Kind::Prose.text(2_000, 1)));
    assert_eq!(conversation::last_user_index(&view(&messages)), Some(last));
    let window_tokens = tokens(&messages);
    let plan = compress::compress(&view(&messages), &request(window_tokens)).unwrap().unwrap();
    assert!(!edited(&plan).is_empty() && edited(&plan).iter().all(|&index| index > 1 && index < last));
}

#[test]
fn old_reasoning_goes_above_2000_characters_and_that_of_the_last_round_stays() {
    let think = |chars: usize| Owned::new(Role::Assistant, "ok").with(Field::ReasoningContent, "x".repeat(chars));
    let user = || Owned::new(Role::User, "go");
    let messages = [user(), think(2_000), user(), think(20_001), user(), think(5_000)];
    let view = view(&messages);
    let request = |window_tokens| Request::new(Some("gpt-4o"), None, Tokens(window_tokens));
    let plan = compress::compress(&view, &request(tokens(&messages))).unwrap().unwrap();
    assert_eq!(edited(&plan), [3]);
    assert_eq!(apply(&messages, &plan)[3].field(Field::ReasoningContent), None);
    // What fits is not cut.
    assert_eq!(compress::compress(&view, &request(tokens(&messages) * 2)).unwrap(), None);
    // A provider that nobody named may want to see that there was some.
    let unnamed = Request::new(None, None, Tokens(tokens(&messages)));
    let out = apply(&messages, &compress::compress(&view, &unnamed).unwrap().unwrap());
    assert!(out[3].field(Field::ReasoningContent).unwrap().starts_with("[reasoning left out: "));
}

#[test]
fn results_are_cut_only_until_they_are_within_their_share_of_the_window() {
    let mut messages = turn(10, 8_000);
    messages.push(Owned::new(Role::User, "Thanks."));
    let all: u64 = tokens(&messages);
    // All of it is 86 % of the window, 1 % too much, and nearly all of that are results.
    let window_tokens = all * 100 / 86;
    // Less than what a step leaves anyway.
    let mut third = request(window_tokens);
    third.limits.tool_result_hard_limit = 0.3;
    let plan = compress::compress(&view(&messages), &third).unwrap().unwrap();
    let reasons: Vec<Reason> = plan.receipt.cuts.iter().map(|cut| cut.reason).collect();
    assert!(reasons.contains(&Reason::ManyResults));
    assert!(reasons.iter().all(|reason| matches!(reason, Reason::ManyResults | Reason::Budget)));
    let out = apply(&messages, &plan);
    let results = out.iter().filter(|message| message.role == Role::Tool);
    let counter = TokenCounter::new(None);
    let left: u64 = results.map(|message| counter.text(message.texts()[0]).0).sum();
    assert!(left <= window_tokens * 30 / 100 && left >= window_tokens * 26 / 100, "{left} of {window_tokens}");
    // The newest results are those of the last round, and stay.
    messages.pop();
    let plan = compress::compress(&view(&messages), &request(window_tokens)).unwrap().unwrap();
    assert!(plan.receipt.cuts.iter().all(|cut| cut.reason == Reason::Budget));
    // Results alone are no reason to read everything anew: what fits stays.
    assert_eq!(compress::compress(&view(&messages), &request(all * 10 / 6)).unwrap(), None);
}

#[test]
fn an_attachment_among_many_results_stays_or_goes_whole() {
    let mut messages = turn(10, 8_000);
    messages.push(Owned::new(Role::User, "Thanks."));
    let file = Says::Media(Media::File, "file-abc".to_owned());
    messages[3].says = Says::Parts(vec![file.clone()]);
    let all = tokens(&messages);
    for percent in [86, 100, 120, 200, 400] {
        let plan = compress::compress(&view(&messages), &request(all * 100 / percent)).unwrap().unwrap();
        let says = apply(&messages, &plan).into_iter().map(|message| message.says);
        let Some(Says::Parts(parts)) = says.into_iter().find(|says| matches!(says, Says::Parts(_))) else {
            continue;
        };
        let is_mark = |says: &Says| matches!(says, Says::Text(text) if text.starts_with("[attachment left out"));
        assert!(parts[0] == file || is_mark(&parts[0]), "{percent}: {parts:?}");
    }
}

#[test]
fn a_single_result_has_at_most_three_tenths_of_the_window() {
    let messages = turn(1, 60_000);
    let view = view(&messages);
    let plan = compress::compress(&view, &request(20_000)).unwrap().unwrap();
    let out = apply(&messages, &plan);
    let left = TokenCounter::new(None).text(out[3].texts()[0]);
    assert!((5_400..=6_000).contains(&left.0), "{left}");
    // What fits is not cut, however much of the window it fills.
    let all = tokens(&messages);
    assert!(all * 10 > 40_000 * 6);
    assert_eq!(compress::compress(&view, &request(all * 100 / 84)).unwrap(), None);
}

#[test]
fn a_long_message_of_json_stays_json() {
    let rows: Vec<_> = (0..1_500).map(|i| serde_json::json!({"id": i, "name": format!("row {i}"), "v": i})).collect();
    let rows = serde_json::to_string(&rows).unwrap();
    let messages = [
        Owned::new(Role::User, "Here are the orders."),
        Owned::new(Role::User, rows.clone()),
        Owned::new(Role::Assistant, rows.clone()),
        Owned::new(Role::User, "And now?"),
    ];
    for window_tokens in [40_000, 30_000] {
        let plan = compress::compress(&view(&messages), &request(window_tokens)).unwrap().unwrap();
        let out = apply(&messages, &plan);
        for message in out.iter().filter(|message| message.texts()[0].starts_with('[')) {
            let text = message.texts()[0];
            let rows: Vec<serde_json::Value> = serde_json::from_str(text).unwrap();
            assert!(rows.len() > 100 && text.chars().count() <= 24_000, "{} rows, {} bytes", rows.len(), text.len());
        }
        assert_eq!(out.len(), messages.len());
    }
}

#[test]
fn long_messages_keep_six_tenths_and_two_tenths_of_their_limit() {
    let long = |role| Owned::new(role, Kind::Code.text(160_000, 2));
    let messages = [long(Role::User), long(Role::Assistant), long(Role::User), Owned::new(Role::Assistant, "ok")];
    // A step is due, and leaves more of each than its limit.
    let window_tokens = tokens(&messages) * 106 / 100;
    let plan = compress::compress(&view(&messages), &request(window_tokens)).unwrap().unwrap();
    assert_eq!(edited(&plan), [0, 1]);
    let out = apply(&messages, &plan);
    for (index, limit) in [(0, 30_000), (1, 20_000)] {
        let chars = out[index].texts()[0].chars().count();
        assert!(chars >= limit * 8 / 10 && chars <= limit, "{chars}");
        let source = messages[index].texts()[0];
        assert!(out[index].texts()[0].starts_with(&source[..limit * 6 / 10]));
        assert!(out[index].texts()[0].ends_with(&source[source.len() - limit * 2 / 10..]));
    }
    // What fits is not cut.
    assert_eq!(compress::compress(&view(&messages), &request(window_tokens * 2)).unwrap(), None);
}

#[test]
fn an_odd_line_in_the_middle_of_what_was_pasted_stays_however_long_it_is() {
    let odd = "10:00:01 worker-3 ERROR payment provider refused order 17: card reader unplugged\n";
    let line = |i: usize| format!("10:{:02}:{:02} worker-{} INFO finished order {i}\n", i / 60 % 60, i % 60, i % 7);
    for count in [900, 2_000, 6_000] {
        for at in [count / 10, count * 6 / 10, count * 8 / 10] {
            let log: String = (0..count).map(|i| if i == at { odd.to_owned() } else { line(i) }).collect();
            let messages = [
                Owned::new(Role::User, format!("Look at this.\n{log}")),
                Owned::new(Role::Assistant, "I see."),
                Owned::new(Role::User, "Why did it fail?"),
            ];
            for percent in [20, 60, 110] {
                let plan = compress::compress(&view(&messages), &request(tokens(&messages) * percent / 100)).unwrap();
                let out = apply(&messages, &plan.unwrap());
                assert!(out[0].texts()[0].contains(odd), "{count} {at} {percent}");
                assert!(out[0].texts()[0].chars().count() <= 30_000, "{count} {at} {percent}");
            }
        }
    }
}

#[test]
fn what_the_user_said_for_good_in_the_middle_of_a_paste_stays_whatever_its_size() {
    let line = "    let total = items.iter().map(|item| item.price).sum::<u64>();\n";
    for chars in [31_000, 50_000, 53_217, 66_000, 400_000, 3_000_000] {
        for share in [15, 45, 70, 85] {
            for (rule, fenced) in [
                ("Never run rm here.", false),
                ("Answer in French from now on.", true),
                ("以后都用中文回答。", true),
                ("My name is Ada.", false),
            ] {
                let lines = chars / line.len() + 1;
                let before = lines * share / 100;
                let (open, close) = if fenced { ("```rust\n", "```\n") } else { ("", "") };
                let text = [
                    "Review this.\n",
                    open,
                    &line.repeat(before),
                    close,
                    rule,
                    "\n",
                    open,
                    &line.repeat(lines - before),
                    close,
                    "What is wrong?",
                ]
                .concat();
                let messages = [
                    Owned::new(Role::User, text),
                    Owned::new(Role::Assistant, Kind::Prose.text(2_000, 1)),
                    Owned::new(Role::User, "Go on."),
                ];
                let case = format!("{chars} {share} {rule}");
                for percent in [110, 40, 12] {
                    let request = request((tokens(&messages) * percent / 100).max(2_000));
                    let plan = compress::compress(&view(&messages), &request).unwrap();
                    let out = apply(&messages, &plan.unwrap());
                    assert!(out.iter().any(|message| message.texts()[0].contains(rule)), "{case} {percent}");
                    let long = out.iter().find(|message| message.role == Role::User).unwrap().texts()[0];
                    assert!(long.chars().count() <= 30_000, "{case} {percent}");
                    assert_eq!(long.matches("```").count() % 2, 0, "{case} {percent}");
                }
            }
        }
    }
}

#[test]
fn twenty_rounds_of_tools_in_one_turn_stay_within_85_percent_of_the_window() {
    for window_tokens in [8_000, 32_000, 128_000] {
        for bytes in [500, 15_000, 300_000] {
            let messages = turn(20, bytes);
            let plan = compress::compress(&view(&messages), &request(window_tokens)).unwrap();
            let out = plan.map_or(messages.clone(), |plan| apply(&messages, &plan));
            assert!(tokens(&out) * 100 <= window_tokens * 85, "{window_tokens} {bytes}");
            assert_eq!(out[..2], messages[..2]);
        }
    }
}

#[test]
fn after_an_emergency_less_than_60_percent_is_left_or_the_parts_are_named() {
    let messages = turn(20, 15_000);
    let plan = compress::emergency(&view(&messages), &request(32_000)).unwrap();
    assert!(tokens(&apply(&messages, &plan)) * 100 < 32_000 * 60);
    let huge = [Owned::new(Role::System, Kind::Prose.text(200_000, 1)), Owned::new(Role::User, "go")];
    let Err(Error::Overflow { floor }) = compress::emergency(&view(&huge), &request(32_000)) else {
        panic!("it fits?")
    };
    assert_eq!(floor.parts[0].0, "system");
}

#[test]
fn lists_of_parts_are_counted_part_by_part() {
    let counter = TokenCounter::new(Some("gpt-4o"));
    let text = "Describe this image, please.";
    let image = Part::Media(Media::Image { low_detail: true }, "https://example.com/a.png".into());
    let content = Content::Parts(vec![Part::Text(text.into()), image]);
    let message = Message { content, ..Message::empty(Role::User) };
    assert_eq!(counter.message(&message), counter.framing(&message) + counter.text(text) + Tokens(85));
}

#[test]
fn only_a_system_prompt_is_left_as_it_is() {
    let messages = [Owned::new(Role::System, "You are nanobot.")];
    assert_eq!(compress::compress(&view(&messages), &request(1_000)).unwrap(), None);
    assert_eq!(compress::emergency(&view(&messages), &request(1_000)).unwrap().outputs, [Output::Keep(0)]);
}

#[test]
fn history_is_whole_rounds_within_its_tokens() {
    let mut messages = Vec::new();
    for i in 0..40 {
        messages.push(Owned::new(Role::User, Kind::Chinese.text(600, i)));
        messages.push(Owned::new(Role::Assistant, Kind::Prose.text(900, i)));
    }
    let counter = TokenCounter::new(None);
    let view = view(&messages);
    let picked = history::select(&view, Tokens(4_000), &counter);
    assert!(!picked.is_empty() && picked.len().is_multiple_of(2));
    assert_eq!(view[picked[0]].role, Role::User);
    assert_eq!(picked.last(), Some(&(messages.len() - 1)));
    let tokens: u64 = picked.iter().map(|&index| counter.message(&view[index]).0).sum();
    assert!((3_000..=4_000).contains(&tokens));
}
