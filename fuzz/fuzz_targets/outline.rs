//! Any text, taken apart and put together again without some of its pieces: what was JSON stays JSON.

#![no_main]

use libfuzzer_sys::fuzz_target;
use nanobot_context::{Segments, TRIM_LINES, trim_tool_result};
use serde::de::IgnoredAny;

fuzz_target!(|case: (u64, u16, &str)| {
    let (seed, max_chars, text) = case;
    let outline = Segments::of(text);
    let mut end = 0;
    for piece in outline.pieces() {
        let range = piece.range();
        assert!(range.start == end && range.end > end && text.is_char_boundary(range.end), "{piece:?} behind {end}");
        end = range.end;
    }
    assert_eq!(end, text.len());
    assert_eq!(outline.excerpt(text, &|_| true, Some("a/b")), text);

    // Which pieces stay: few to most, by a hash of their number.
    let keep = |piece: usize| {
        let hash = (piece as u64 + 1).wrapping_mul(seed | 1).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32;
        hash % 8 < seed % 8
    };
    let shortened = outline.excerpt(text, &keep, Some("a/\"b"));
    assert!(!is_json(text) || is_json(&shortened), "{shortened}");

    let trimmed = trim_tool_result(text, usize::from(max_chars), TRIM_LINES);
    assert!(trimmed.chars().count() <= usize::from(max_chars), "{} characters of {max_chars}", trimmed.len());
});

fn is_json(text: &str) -> bool {
    text.trim_start().starts_with(['[', '{']) && serde_json::from_str::<IgnoredAny>(text).is_ok()
}
