//! What a model writes where a summary in fields was asked for: read, merged, kept small.

#![no_main]

use libfuzzer_sys::fuzz_target;
use nanobot_context::TokenCounter;
use nanobot_context::summary::Structured;
use nanobot_context::tokens::Tokens;

// A vocabulary takes seconds to load with the sanitizer on, which is no input's fault.
fuzz_target!(init: { TokenCounter::new(None).text("a"); }, |case: (u16, &str, &str)| {
    let (max_tokens, older, newer) = case;
    let Some(older) = Structured::parse(older) else { return };
    let again = Structured::from_json(&older.to_json()).unwrap_or_default();
    assert_eq!(again, older, "fields change when they are stored and read");
    let merged = older.merged(Structured::parse(newer).unwrap_or_default());
    let small = merged.within(Tokens(max_tokens.into()), TokenCounter::new(None));
    assert_eq!(Structured::from_json(&small.to_json()).unwrap_or_default(), small);
});
