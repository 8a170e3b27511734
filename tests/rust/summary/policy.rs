//! The knobs of document 003.

use nanobot_context::error::Result;
use nanobot_context::summary::{Cause, Comparison, Policy, Trigger};
use nanobot_context::tokens::Tokens;
use nanobot_context::{Message, Role, TokenCounter};

fn from(pairs: &[(&str, &str)]) -> Result<Policy> {
    Policy::from_env(|name| pairs.iter().find(|(key, _)| *key == name).map(|(_, value)| (*value).to_owned()))
}

#[test]
fn an_empty_environment_means_the_defaults() {
    assert_eq!(from(&[]).unwrap(), Policy::default());
    assert_eq!(from(&[("SUMMARY_KEEP_LAST_N", " ")]).unwrap(), Policy::default());
}

#[test]
fn every_name_of_document_003_is_read() {
    let policy = from(&[
        ("SUMMARY_MESSAGE_LIMIT", "10"),
        ("SUMMARY_MAX_CONTEXT_TOKENS", "0"),
        ("SUMMARY_KEEP_LAST_N", "2"),
        ("SUMMARY_TARGET_TOKENS", "300"),
        ("SUMMARY_TEMPERATURE", "0"),
        ("SUMMARY_BISECT_ENABLED", "FALSE"),
        ("SUMMARY_BISECT_MAX_DEPTH", "0"),
        ("SUMMARY_BISECT_MIN_MESSAGES", "0"),
        ("SUMMARY_RETRY_ON_CONTEXT_OVERFLOW", "no"),
        ("DYNAMIC_SUMMARY_ENABLED", "false"),
        ("HISTORY_LIMIT", "7"),
    ]);
    let expected = Policy {
        enabled: false,
        message_limit: 10,
        max_context_tokens: Tokens::ZERO,
        keep_last: 2,
        target_tokens: Tokens(300),
        merge_target_tokens: Tokens(300),
        temperature: 0.0,
        bisect_enabled: false,
        bisect_max_depth: 1,
        bisect_min_messages: 1,
        retry_on_overflow: true,
        history_limit: 7,
    };
    assert_eq!(policy.unwrap(), expected);
    assert_eq!(from(&[("SUMMARY_MERGE_TARGET_TOKENS", "50")]).unwrap().merge_target_tokens, Tokens(50));
}

#[test]
fn a_summary_is_due_as_document_003_says() {
    let counter = TokenCounter::new(None);
    let view: Vec<Message<'_>> = (0..40).map(|_| Message::new(Role::User, "hello")).collect();
    let due = |policy: &Policy, view, covered, cause| policy.due(view, covered, cause, None, 0.0, counter);
    let policy = Policy::default();
    assert_eq!(due(&policy, &view, 0, Cause::Proactive), Some((34, "message_limit")));
    assert_eq!(due(&policy, &view[..39], 0, Cause::Proactive), None);
    assert_eq!(due(&policy, &view, 1, Cause::Proactive), None, "of those that no summary covers");
    assert_eq!(due(&policy, &view[..3], 0, Cause::OverflowRetry), Some((3, "overflow_retry")));
    assert_eq!(due(&policy, &view[..3], 1, Cause::Forced), Some((3, "force")));
    assert_eq!(due(&policy, &view, 40, Cause::Forced), None, "nothing new");
    let off = Policy { enabled: false, retry_on_overflow: false, ..Policy::default() };
    assert_eq!(due(&off, &view, 0, Cause::Proactive), None);
    assert_eq!(due(&off, &view, 0, Cause::OverflowRetry), None);
    let by_tokens = Policy { message_limit: 0, max_context_tokens: Tokens(100), keep_last: 0, ..Policy::default() };
    assert_eq!(due(&by_tokens, &view, 0, Cause::Proactive), Some((40, "token_limit")));
    let never = Policy { message_limit: 0, max_context_tokens: Tokens::ZERO, ..Policy::default() };
    assert_eq!(due(&never, &view, 0, Cause::Proactive), None);
    let idle = Trigger::Idle(Comparison::Above, 300.0);
    assert_eq!(policy.due(&view, 0, Cause::Proactive, Some(&idle), 301.0, counter), Some((34, "idle")));
}

#[test]
fn what_is_no_number_is_named() {
    for (name, value) in [("SUMMARY_KEEP_LAST_N", "-1"), ("HISTORY_LIMIT", "x"), ("SUMMARY_TEMPERATURE", "hot")] {
        let error = from(&[(name, value)]).unwrap_err().to_string();
        assert!(error.contains(name) && error.contains(value), "{error}");
    }
    for value in ["9007199254740993", "9223372036854775808", "18446744073709551616"] {
        let error = from(&[("SUMMARY_TARGET_TOKENS", value)]).unwrap_err().to_string();
        assert!(error.contains("SUMMARY_TARGET_TOKENS") && error.contains(value), "{error}");
    }
    let large = Policy { keep_last: u64::MAX, ..Policy::default() };
    let error = large.checked().unwrap_err().to_string();
    assert_eq!(error, "`keep_last` must be at most 9007199254740992, got 18446744073709551615");
    let error = from(&[("SUMMARY_TARGET_TOKENS", "0")]).unwrap_err().to_string();
    assert_eq!(error, "`target_tokens` must be a positive integer, got 0");
}
