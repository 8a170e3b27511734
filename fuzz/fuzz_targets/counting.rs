//! Counts of any text: at most a token a byte, the same each time, and no read outside of it (AddressSanitizer sees that).

#![no_main]

use libfuzzer_sys::fuzz_target;
use nanobot_context::TokenCounter;

/// One model of each vocabulary that loads in a moment.
const MODELS: [&str; 4] = ["gpt-4o", "gpt-4", "qwen3.5-plus", "deepseek-chat"];

fn load() {
    for model in MODELS {
        TokenCounter::new(Some(model)).text("a");
    }
}

fuzz_target!(init: load(), |case: (u8, u8, &str)| {
    let (model, times, text) = case;
    let vocabulary = TokenCounter::new(Some(MODELS[usize::from(model) % MODELS.len()])).vocabulary();
    // Text as long as its allocation, and longer than one segment of the counters now and then.
    let text: Box<str> = text.repeat(if times < 240 { 1 } else { usize::from(times) }).into();
    let tokens = vocabulary.count(&text);
    assert!(tokens <= text.len(), "{tokens} tokens in {} bytes", text.len());
    assert_eq!(tokens == 0, text.is_empty());
    assert_eq!(tokens, vocabulary.count(&text));
});
