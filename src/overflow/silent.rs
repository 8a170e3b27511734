//! Detects overflows without an error: the provider cut the prompt, or answered past the window.

use super::detect::Overflow;
use super::kind::OverflowKind;
use crate::tokens::Tokens;

/// Fewer tokens than this are framing and templates, not a cut prompt.
const MIN_CUT_TOKENS: Tokens = Tokens(2_048);

/// No model has a smaller window. A smaller number counts only what no cache held.
const MIN_WINDOW_TOKENS: Tokens = Tokens(1_024);

/// The usage that a provider reported of a call that succeeded.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct UsageView<'a> {
    /// Tokens of the prompt as billed, `None` where the provider reports none.
    pub input_tokens: Option<Tokens>,
    /// Tokens of the prompt that were read from or written to a cache and are *not* in `input_tokens` (Anthropic). Zero
    /// for providers that include them (`OpenAI`).
    pub cache_tokens: Tokens,
    /// Tokens of the answer, `None` where the provider reports none.
    pub output_tokens: Option<Tokens>,
    /// Why the answer ended, in the provider's word.
    pub finish_reason: Option<&'a str>,
}

/// Returns the overflow that a usage report shows.
///
/// `window_tokens` is the model's window and `counted_tokens` our count of the prompt; 0 if unknown. If the provider read
/// far less than we counted, `limit_tokens` is what it read: a lower bound of its window, good for sizing the next attempt
/// but not for lowering the known window.
///
/// # Source
///
/// Usage above the window: z.ai. No output, `length`, and a prompt of at least 99 % of the window: Xiaomi `MiMo` (pi,
/// `packages/ai/src/utils/overflow.ts`). Usage far below our count: Ollama, which drops what does not fit `num_ctx`.
#[must_use]
pub fn detect_silent(usage: &UsageView<'_>, window_tokens: Tokens, counted_tokens: Tokens) -> Option<Overflow> {
    let silent = |limit_tokens, used_tokens| Some(Overflow::new(OverflowKind::Silent, limit_tokens, used_tokens));
    let known = |tokens: Tokens| (tokens > Tokens::ZERO).then_some(tokens);
    let window = known(window_tokens);
    let prompt = usage.input_tokens.and_then(|input| known(input + usage.cache_tokens));
    let reason = usage.finish_reason.unwrap_or_default();

    if reason.contains("context_window_exceeded") || reason.contains("context_length_exceeded") {
        return silent(window, prompt.or(known(counted_tokens)));
    }
    let prompt = prompt?;
    if let Some(window) = window {
        let is_full = u128::from(prompt.0) * 100 >= u128::from(window.0) * 99;
        let is_mute =
            matches!(reason, "length" | "max_tokens") && usage.output_tokens.unwrap_or_default() == Tokens::ZERO;
        if prompt > window || is_full && is_mute {
            return silent(Some(window), Some(prompt));
        }
    }
    // Our count is within 40 % for every family of models, so less than half was cut rather than counted differently.
    let is_cut =
        prompt >= MIN_WINDOW_TOKENS && prompt < counted_tokens / 2 && counted_tokens - prompt >= MIN_CUT_TOKENS;
    if is_cut { silent(Some(prompt), Some(counted_tokens)) } else { None }
}
