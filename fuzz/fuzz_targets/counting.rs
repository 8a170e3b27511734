//! Counts of any text: at most a token a byte, the same each time, and no read outside of it (AddressSanitizer sees that).

#![no_main]

use libfuzzer_sys::fuzz_target;
use nanobot_context::TokenCounter;

/// One model of each vocabulary.
const MODELS: [&str; 10] = [
    "gpt-4o",
    "gpt-4",
    "deepseek-chat",
    "qwen3-coder",
    "qwen3.5-plus",
    "glm-4.7",
    "glm-5",
    "kimi-k2",
    "minimax-m2",
    "mistral-small",
];

fuzz_target!(|case: (u8, u8, &str)| {
    let (model, times, text) = case;
    let vocabulary = TokenCounter::new(Some(MODELS[usize::from(model) % MODELS.len()])).vocabulary();
    // Text as long as its allocation, and longer than a window of the merges now and then.
    let text: Box<str> = text.repeat(if times < 240 { 1 } else { usize::from(times) }).into();
    let tokens = vocabulary.count(&text);
    assert!(tokens <= text.len(), "{tokens} tokens in {} bytes", text.len());
    assert_eq!(tokens == 0, text.is_empty());
    assert_eq!(tokens, vocabulary.count(&text));
});
