//! Overflows that no error reports: the provider cut the prompt, or answered past the window.

use super::detect::{Overflow, OverflowKind};

/// Fewer tokens than this are framing and templates, not a cut prompt.
const MIN_CUT_TOKENS: u64 = 2_048;

/// No model has a smaller window. A smaller number is not of a prompt that was cut, but of what no cache held.
const MIN_WINDOW_TOKENS: u64 = 1_024;

/// What a provider reported of one call that it counts as answered.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct UsageView<'a> {
    /// Tokens of the prompt as billed, `None` where the provider reports none.
    pub input_tokens: Option<u64>,
    /// Tokens of the prompt that were read from or written to a cache and are *not* in `input_tokens` (Anthropic). Zero
    /// for providers that include them (`OpenAI`).
    pub cache_tokens: u64,
    /// Tokens of the answer, `None` where the provider reports none.
    pub output_tokens: Option<u64>,
    /// Why the answer ended, in the provider's word.
    pub finish_reason: Option<&'a str>,
}

/// Returns the overflow that a usage report gives away, if it does.
///
/// `window_tokens` is the model's window and `counted_tokens` our own count of the prompt; zero says that it is not known.
/// When the provider read far less than we counted, `limit_tokens` is what it read: a lower bound of its window, good for
/// sizing the next attempt, not for lowering the window that is known.
///
/// # Source
///
/// Usage above the window: z.ai. No output, `length`, and a prompt of at least 99 % of the window: Xiaomi `MiMo` (pi,
/// `packages/ai/src/utils/overflow.ts`). Usage far below our count: Ollama, which drops what does not fit `num_ctx`.
#[must_use]
pub fn detect_silent(usage: &UsageView<'_>, window_tokens: u64, counted_tokens: u64) -> Option<Overflow> {
    let silent = |limit_tokens, used_tokens| Some(Overflow::new(OverflowKind::Silent, limit_tokens, used_tokens));
    let window = (window_tokens > 0).then_some(window_tokens);
    let prompt = usage.input_tokens.map(|input| input.saturating_add(usage.cache_tokens)).filter(|&prompt| prompt > 0);
    let reason = usage.finish_reason.unwrap_or_default();

    if reason.contains("context_window_exceeded") || reason.contains("context_length_exceeded") {
        return silent(window, prompt.or((counted_tokens > 0).then_some(counted_tokens)));
    }
    let prompt = prompt?;
    if let Some(window) = window {
        let is_full = u128::from(prompt) * 100 >= u128::from(window) * 99;
        let is_mute = matches!(reason, "length" | "max_tokens") && usage.output_tokens.unwrap_or(0) == 0;
        if prompt > window || is_full && is_mute {
            return silent(Some(window), Some(prompt));
        }
    }
    // Half: our own count is within 40 % for every family of model, so less than half was not counted differently but cut.
    let is_cut =
        prompt >= MIN_WINDOW_TOKENS && prompt < counted_tokens / 2 && counted_tokens - prompt >= MIN_CUT_TOKENS;
    if is_cut { silent(Some(prompt), Some(counted_tokens)) } else { None }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn usage(input: u64, output: u64, finish_reason: &str) -> UsageView<'_> {
        UsageView {
            input_tokens: Some(input),
            cache_tokens: 0,
            output_tokens: Some(output),
            finish_reason: Some(finish_reason),
        }
    }

    #[allow(clippy::unnecessary_wraps, reason = "it is compared with what `detect_silent` returns")]
    fn silent(limit: u64, used: u64) -> Option<Overflow> {
        Some(Overflow::new(OverflowKind::Silent, Some(limit), Some(used)))
    }

    #[test]
    fn usage_above_the_window_is_an_overflow_with_the_cache_counted() {
        assert_eq!(detect_silent(&usage(131_073, 5, "stop"), 131_072, 131_000), silent(131_072, 131_073));
        let cached = UsageView { cache_tokens: 150_000, ..usage(60_000, 5, "stop") };
        assert_eq!(detect_silent(&cached, 200_000, 200_000), silent(200_000, 210_000));
        assert_eq!(detect_silent(&usage(131_072, 5, "stop"), 131_072, 131_000), None);
    }

    #[test]
    fn a_full_window_without_an_answer_is_an_overflow() {
        assert_eq!(detect_silent(&usage(99_000, 0, "length"), 100_000, 100_000), silent(100_000, 99_000));
        assert_eq!(detect_silent(&usage(98_999, 0, "length"), 100_000, 100_000), None);
        assert_eq!(detect_silent(&usage(99_500, 1, "length"), 100_000, 100_000), None);
        assert_eq!(detect_silent(&usage(99_500, 0, "stop"), 100_000, 100_000), None);
    }

    #[test]
    fn a_prompt_that_was_read_by_half_was_cut() {
        assert_eq!(detect_silent(&usage(4_096, 200, "stop"), 128_000, 20_000), silent(4_096, 20_000));
        assert_eq!(detect_silent(&usage(10_000, 200, "stop"), 128_000, 20_000), None);
        assert_eq!(detect_silent(&usage(500, 200, "stop"), 128_000, 1_200), None, "framing, not a cut");
        for uncached in [1, 3, 14, 1_023] {
            assert_eq!(detect_silent(&usage(uncached, 200, "stop"), 128_000, 20_000), None, "no window is so small");
        }
        assert_eq!(detect_silent(&UsageView::default(), 128_000, 20_000), None, "no report, no verdict");
        assert_eq!(detect_silent(&usage(0, 0, "stop"), 128_000, 20_000), None);
    }

    #[test]
    fn a_finish_reason_can_say_it() {
        assert_eq!(
            detect_silent(&usage(90_000, 3, "model_context_window_exceeded"), 100_000, 0),
            silent(100_000, 90_000)
        );
        assert_eq!(detect_silent(&usage(u64::MAX, 0, "length"), u64::MAX, u64::MAX), silent(u64::MAX, u64::MAX));
    }
}
