//! Overflows without an error.

use nanobot_context::overflow::{Overflow, OverflowKind, UsageView, detect_silent};
use nanobot_context::tokens::Tokens;

fn usage(input: u64, output: u64, finish_reason: &str) -> UsageView<'_> {
    UsageView {
        input_tokens: Some(Tokens(input)),
        cache_tokens: Tokens::ZERO,
        output_tokens: Some(Tokens(output)),
        finish_reason: Some(finish_reason),
    }
}

fn detect(usage: &UsageView<'_>, window_tokens: u64, counted_tokens: u64) -> Option<Overflow> {
    detect_silent(usage, Tokens(window_tokens), Tokens(counted_tokens))
}

#[allow(clippy::unnecessary_wraps, reason = "it is compared with what `detect_silent` returns")]
fn silent(limit: u64, used: u64) -> Option<Overflow> {
    Some(Overflow::new(OverflowKind::Silent, Some(Tokens(limit)), Some(Tokens(used))))
}

#[test]
fn usage_above_the_window_is_an_overflow_with_the_cache_counted() {
    assert_eq!(detect(&usage(131_073, 5, "stop"), 131_072, 131_000), silent(131_072, 131_073));
    let cached = UsageView { cache_tokens: Tokens(150_000), ..usage(60_000, 5, "stop") };
    assert_eq!(detect(&cached, 200_000, 200_000), silent(200_000, 210_000));
    assert_eq!(detect(&usage(131_072, 5, "stop"), 131_072, 131_000), None);
}

#[test]
fn a_full_window_without_an_answer_is_an_overflow() {
    assert_eq!(detect(&usage(99_000, 0, "length"), 100_000, 100_000), silent(100_000, 99_000));
    assert_eq!(detect(&usage(98_999, 0, "length"), 100_000, 100_000), None);
    assert_eq!(detect(&usage(99_500, 1, "length"), 100_000, 100_000), None);
    assert_eq!(detect(&usage(99_500, 0, "stop"), 100_000, 100_000), None);
}

#[test]
fn a_prompt_that_was_read_by_half_was_cut() {
    assert_eq!(detect(&usage(4_096, 200, "stop"), 128_000, 20_000), silent(4_096, 20_000));
    assert_eq!(detect(&usage(10_000, 200, "stop"), 128_000, 20_000), None);
    assert_eq!(detect(&usage(500, 200, "stop"), 128_000, 1_200), None, "framing, not a cut");
    for uncached in [1, 3, 14, 1_023] {
        assert_eq!(detect(&usage(uncached, 200, "stop"), 128_000, 20_000), None, "no window is so small");
    }
    assert_eq!(detect(&UsageView::default(), 128_000, 20_000), None, "no report, no verdict");
    assert_eq!(detect(&usage(0, 0, "stop"), 128_000, 20_000), None);
}

#[test]
fn a_finish_reason_can_say_it() {
    assert_eq!(detect(&usage(90_000, 3, "model_context_window_exceeded"), 100_000, 0), silent(100_000, 90_000));
    assert_eq!(detect(&usage(u64::MAX, 0, "length"), u64::MAX, u64::MAX), silent(u64::MAX, u64::MAX));
}
