//! How many tokens a request may have.

use std::ops::{Add, Sub};
use std::sync::Arc;

use crate::archive::Archive;
use crate::error::{Error, MAX_WHOLE, Result};
use crate::tokens::TokenCounter;

/// A number of tokens. Sums and differences stop at the ends; shares are those of all of it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Tokens(pub u64);

#[allow(clippy::cast_precision_loss, clippy::cast_possible_truncation, clippy::cast_sign_loss)] // tokens are < 2^53
impl Tokens {
    /// Returns a share, rounded down.
    #[must_use]
    pub fn share(self, ratio: f64) -> Self {
        Self((self.0 as f64 * ratio).floor() as u64)
    }

    /// Returns a share, rounded up.
    #[must_use]
    pub fn share_up(self, ratio: f64) -> Self {
        Self((self.0 as f64 * ratio).ceil() as u64)
    }

    /// Returns `percent` hundredths, rounded down.
    #[must_use]
    pub fn percent(self, percent: u64) -> Self {
        self.scaled(percent, 100)
    }

    /// Returns what `part` of `whole` is of it, rounded down; exact for any numbers.
    #[must_use]
    pub fn scaled(self, part: u64, whole: u64) -> Self {
        let scaled = u128::from(self.0) * u128::from(part) / u128::from(whole.max(1));
        Self(u64::try_from(scaled).unwrap_or(u64::MAX))
    }
}

impl Add for Tokens {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self(self.0.saturating_add(other.0))
    }
}

impl Sub for Tokens {
    type Output = Self;

    fn sub(self, other: Self) -> Self {
        Self(self.0.saturating_sub(other.0))
    }
}

/// The knobs of compression, all of documents 001 and 004.
#[derive(Debug, Clone, PartialEq)]
pub struct Limits {
    /// Share of the window that one tool result may have when something is cut.
    pub tool_result_soft_limit: f64,
    /// Share of the window that all tool results may have together when something is cut.
    pub tool_result_hard_limit: f64,
    /// Share of the window kept free for the answer.
    pub context_reserve_ratio: f64,
    /// Characters of `reasoning_content` that stay before the last round when something is cut; longer ones go.
    pub reasoning_keep_chars: usize,
    /// Characters of a message of the user before the last round when something is cut; 0 for no limit.
    pub max_user_message_chars: usize,
    /// Characters of a message of the assistant before the last round when something is cut; 0 for no limit.
    pub max_assistant_message_chars: usize,
    /// Share of the window that a request has after [`emergency`], at most.
    pub emergency_ratio: f64,
    /// Tokens that the provider takes for each message beside those that are counted here.
    pub message_overhead_tokens: u32,
    /// Patterns of files' names whose last read stays whole.
    pub pinned: Arc<[String]>,
}

impl Default for Limits {
    /// Source: document 001, stages one and seven; document 004, the constants of phase 1.
    fn default() -> Self {
        Self {
            tool_result_soft_limit: 0.3,
            tool_result_hard_limit: 0.5,
            context_reserve_ratio: 0.15,
            reasoning_keep_chars: 2_000,
            max_user_message_chars: 30_000,
            max_assistant_message_chars: 20_000,
            emergency_ratio: 0.6,
            message_overhead_tokens: 0,
            pinned: Arc::default(),
        }
    }
}

/// What a request is made for.
#[derive(Debug, Clone)]
pub struct Request<'r> {
    /// The model's name, for its counter and for errors.
    pub model: Option<&'r str>,
    /// Tool schemas as the JSON text of a list.
    pub tools: Option<&'r str>,
    /// The model's window.
    pub window_tokens: u64,
    /// Tokens that the answer may have, where that is set.
    pub max_output_tokens: Option<u64>,
    /// The knobs.
    pub limits: Limits,
    /// Where the originals of shortened tool results are kept, if they are.
    pub archive: Option<Archive>,
}

impl<'r> Request<'r> {
    /// Returns a request with everything else as it is by default.
    pub fn new(model: Option<&'r str>, tools: Option<&'r str>, window_tokens: u64) -> Self {
        Self { model, tools, window_tokens, max_output_tokens: None, limits: Limits::default(), archive: None }
    }

    /// Returns the counter for the model.
    pub fn counter(&self) -> TokenCounter {
        TokenCounter::new(self.model).with_overhead(self.limits.message_overhead_tokens)
    }

    /// Returns the tokens that messages and tool schemas may have: the window less the reserve for the answer.
    pub fn budget_tokens(&self) -> u64 {
        let (window, output) = self.window_and_output();
        (window - Tokens(reserve_tokens(window.0, output.0, self.limits.context_reserve_ratio))).0
    }

    /// Returns the most tokens that are still below `emergency_ratio` of the window and leave room for the answer.
    pub fn emergency_tokens(&self) -> u64 {
        let (window, output) = self.window_and_output();
        (window.share_up(self.limits.emergency_ratio) - Tokens(1)).min(window - output).0
    }

    fn window_and_output(&self) -> (Tokens, Tokens) {
        (Tokens(self.window_tokens), Tokens(self.max_output_tokens.unwrap_or(0)))
    }

    /// Returns the tokens of the tool schemas.
    pub fn tools_tokens(&self) -> u64 {
        self.tools.map_or(0, |tools| self.counter().tools(tools))
    }

    /// Returns a bound that the tokens of the tool schemas do not exceed; counts none.
    pub fn tools_bound(&self) -> u64 {
        self.tools.map_or(0, |tools| self.counter().tools_bound(tools))
    }

    /// Returns the tokens that one tool result may have when something is cut.
    pub fn single_tokens(&self) -> u64 {
        Tokens(self.window_tokens).share(self.limits.tool_result_soft_limit).0
    }

    /// Returns the tokens that all tool results may have together when something is cut.
    pub fn all_tokens(&self) -> u64 {
        Tokens(self.window_tokens).share(self.limits.tool_result_hard_limit).0
    }
}

/// Returns the tokens of a window that are kept free for the answer: `ratio` of it, rounded up, or `max_output_tokens`,
/// whichever is larger.
pub fn reserve_tokens(window_tokens: u64, max_output_tokens: u64, ratio: f64) -> u64 {
    Tokens(window_tokens).share_up(ratio).0.max(max_output_tokens)
}

/// Returns the smallest window that leaves `prompt_tokens` beside its [`reserve_tokens`]; [`MAX_WHOLE`] where none does.
#[allow(clippy::cast_precision_loss, clippy::cast_possible_truncation, clippy::cast_sign_loss)] // tokens are < 2^53
pub fn window_for(prompt_tokens: u64, max_output_tokens: u64, ratio: f64) -> u64 {
    let leaves = |window: u64| window.saturating_sub(reserve_tokens(window, max_output_tokens, ratio)) >= prompt_tokens;
    let by_share = (prompt_tokens as f64 / (1.0 - ratio)) as u64;
    // The quotient may be rounded to a window that is one too small, or two.
    (by_share.max(prompt_tokens.saturating_add(max_output_tokens))..MAX_WHOLE)
        .take(3)
        .find(|&window| leaves(window))
        .unwrap_or(MAX_WHOLE)
}

/// Checks a ratio that came from outside.
///
/// # Errors
///
/// [`Error::InvalidArgument`] when it is not a number from 0 to 1.
pub fn check_ratio(name: &str, ratio: f64) -> Result<f64> {
    if (0.0..=1.0).contains(&ratio) {
        Ok(ratio)
    } else {
        Err(Error::argument(name, format!("must be from 0 to 1, got {ratio}")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_number_of_tokens_wraps_and_shares_are_exact_where_they_are_fractions() {
        assert_eq!((Tokens(1) - Tokens(2), Tokens(u64::MAX) + Tokens(1)), (Tokens(0), Tokens(u64::MAX)));
        assert_eq!((Tokens(10).share(0.25), Tokens(10).share_up(0.25)), (Tokens(2), Tokens(3)));
        assert_eq!((Tokens(u64::MAX).percent(50), Tokens(7).scaled(3, 2)), (Tokens(u64::MAX / 2), Tokens(10)));
        assert_eq!((Tokens(u64::MAX).percent(400), Tokens(1).scaled(1, 0)), (Tokens(u64::MAX), Tokens(1)));
    }

    #[test]
    fn the_answer_has_its_reserve_whatever_it_asks_for() {
        let of =
            |window, output| Request { max_output_tokens: output, ..Request::new(None, None, window) }.budget_tokens();
        assert_eq!(
            [of(1_000, None), of(1_000, Some(100)), of(1_000, Some(400)), of(100, Some(400))],
            [850, 850, 600, 0]
        );
    }

    #[test]
    fn a_window_for_a_prompt_is_the_smallest_that_leaves_it() {
        for ratio in [0.0, 0.1, 0.15, 0.5, 0.9] {
            for output in [0, 100] {
                let budget = |window: u64| window.saturating_sub(reserve_tokens(window, output, ratio));
                for prompt in 1..2_000 {
                    let window = window_for(prompt, output, ratio);
                    assert!(budget(window) >= prompt && budget(window - 1) < prompt, "{prompt} of {window}, {ratio}");
                }
            }
        }
        assert_eq!((window_for(0, 0, 1.0), window_for(1, 0, 1.0)), (0, MAX_WHOLE));
    }
}
