//! What agents, mistakes and attackers send: repaired or refused as documented, never a panic.

use nanobot_context::budget::check_ratio;
use nanobot_context::compress::{self, Limits, Output, Request};
use nanobot_context::tokens::Tokens;
use nanobot_context::{Error, Message, Role, TokenCounter, history};

use crate::owned::{Owned, apply, view};

fn request(window_tokens: u64) -> Request<'static> {
    Request::new(None, None, Tokens(window_tokens))
}

#[test]
fn no_messages_are_no_work_and_no_window_is_an_overflow() {
    assert_eq!(compress::compress(&[], &request(1000)).unwrap(), None);
    assert_eq!(compress::emergency(&[], &request(1000)).unwrap().outputs, []);
    assert_eq!(history::select(&[], Tokens(100), &TokenCounter::new(None)), Vec::<usize>::new());
    for window_tokens in [0, 1, 2] {
        let Err(Error::Overflow { floor }) = compress::compress(&[], &request(window_tokens)) else {
            panic!("the start of the reply alone is larger")
        };
        assert_eq!(floor.needed_tokens, Tokens(3));
    }
}

#[test]
fn the_largest_window_is_no_overflow_of_arithmetic() {
    let messages = [Message::new(Role::User, "go")];
    for window_tokens in [u64::MAX, u64::MAX / 2, 1 << 53] {
        assert_eq!(compress::compress(&messages, &request(window_tokens)).unwrap(), None);
    }
    let all_for_the_answer = Request { max_output_tokens: Some(Tokens::MAX), ..request(100_000) };
    assert!(matches!(compress::compress(&messages, &all_for_the_answer), Err(Error::Overflow { .. })));
}

#[test]
fn a_ratio_is_a_number_from_0_to_1() {
    for ratio in [0.0, 0.3, 1.0] {
        assert!(check_ratio("tool_result_soft_limit", ratio).is_ok_and(|same| same.to_bits() == ratio.to_bits()));
    }
    for ratio in [-0.1, 1.1, f64::NAN, f64::INFINITY, f64::NEG_INFINITY] {
        let error = check_ratio("tool_result_soft_limit", ratio).unwrap_err().to_string();
        assert!(error.starts_with("`tool_result_soft_limit` must be from 0 to 1, got "), "{error}");
    }
}

#[test]
fn limits_of_0_and_1_leave_the_promises_standing() {
    let long = "word ".repeat(20_000);
    let messages = [
        Owned::new(Role::System, "rules"),
        Owned::new(Role::User, long.clone()),
        Owned::calling(&["a"], "f", "{}"),
        Owned::result("a", "f", long.clone()),
        Owned::new(Role::User, "go on"),
    ];
    for ratio in [0.0, 1.0] {
        for chars in [0, 1, usize::MAX] {
            let limits = Limits {
                tool_result_soft_limit: ratio,
                tool_result_hard_limit: ratio,
                context_reserve_ratio: 0.5,
                reasoning_keep_chars: chars,
                max_user_message_chars: chars,
                max_assistant_message_chars: chars,
                emergency_ratio: 1.0 - ratio / 2.0,
                message_overhead_tokens: Tokens(7),
                pinned: ["*".to_owned()].into(),
            };
            let request = Request { limits, ..request(30_000) };
            let plan = compress::compress(&view(&messages), &request).unwrap().unwrap();
            let once = apply(&messages, &plan);
            assert!(request.counter().prompt(&view(&once), None).tokens <= request.budget_tokens());
            let again = compress::compress(&view(&once), &request).unwrap();
            assert!(again.is_none_or(|plan| plan.outputs.iter().all(|output| matches!(output, Output::Keep(_)))));
        }
    }
}

#[test]
fn tool_schemas_that_are_no_schemas_cost_their_text() {
    let deep = format!("{}1{}", "[".repeat(5_000), "]".repeat(5_000));
    let cases = ["", "null", "{}", "[null]", "[1, \"a\"]", "[{\"function\": 3}]", "{\"a\": ", deep.as_str()];
    for schemas in cases {
        let tokens = TokenCounter::new(None).tools(schemas);
        assert!(tokens > Tokens::ZERO || schemas.is_empty(), "{schemas:.40} costs nothing");
    }
    let of_schema = r#"[{"name": "f", "parameters": {"properties": {"a": 3, "b": {"enum": [], "type": ["x"]}}}}]"#;
    assert!(TokenCounter::new(None).tools(of_schema) > Tokens(10));
}

#[test]
fn only_results_are_nothing_to_send() {
    let messages = [Owned::result("a", "f", "ok"), Owned::result("", "f", "ok"), Owned::new(Role::Tool, "ok")];
    let plan = compress::compress(&view(&messages), &request(10_000)).unwrap().unwrap();
    assert_eq!(plan.outputs, []);
}
