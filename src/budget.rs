//! Computes the budget of a request.

use std::sync::Arc;

use crate::archive::Archive;
use crate::error::{Error, MAX_WHOLE, Result};
use crate::tokens::{TokenCounter, Tokens};

/// The settings of compression. Source: documents 001 and 004.
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
    /// Tokens that the provider adds to each message.
    pub message_overhead_tokens: Tokens,
    /// Patterns of file names whose last read is pinned.
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
            message_overhead_tokens: Tokens::ZERO,
            pinned: Arc::default(),
        }
    }
}

/// The parameters of a request.
#[derive(Debug, Clone)]
pub struct Request<'r> {
    /// The model's name, for its counter and for errors.
    pub model: Option<&'r str>,
    /// Tool schemas as the JSON text of a list.
    pub tools: Option<&'r str>,
    /// The model's window.
    pub window_tokens: Tokens,
    /// Most tokens of the answer, if set.
    pub max_output_tokens: Option<Tokens>,
    /// The settings.
    pub limits: Limits,
    /// The archive of shortened tool results, if there is one.
    pub archive: Option<Archive>,
}

impl<'r> Request<'r> {
    /// Returns a request with defaults.
    pub fn new(model: Option<&'r str>, tools: Option<&'r str>, window_tokens: Tokens) -> Self {
        Self { model, tools, window_tokens, max_output_tokens: None, limits: Limits::default(), archive: None }
    }

    /// Returns the counter for the model.
    pub fn counter(&self) -> TokenCounter {
        TokenCounter::new(self.model).with_overhead(self.limits.message_overhead_tokens)
    }

    /// Returns the tokens that messages and tool schemas may have: the window less the reserve for the answer.
    pub fn budget_tokens(&self) -> Tokens {
        let output = self.max_output_tokens.unwrap_or_default();
        self.window_tokens - reserve_tokens(self.window_tokens, output, self.limits.context_reserve_ratio)
    }

    /// Returns the most tokens that are still below `emergency_ratio` of the window and leave room for the answer.
    pub fn emergency_tokens(&self) -> Tokens {
        let below = self.window_tokens.share_up(self.limits.emergency_ratio) - Tokens(1);
        below.min(self.window_tokens - self.max_output_tokens.unwrap_or_default())
    }

    /// Returns the tokens of the tool schemas.
    pub fn tools_tokens(&self) -> Tokens {
        self.tools.map_or(Tokens::ZERO, |tools| self.counter().tools(tools))
    }

    /// Returns an upper bound of the tokens of the tool schemas; counts nothing.
    pub fn tools_bound(&self) -> Tokens {
        self.tools.map_or(Tokens::ZERO, |tools| self.counter().tools_bound(tools))
    }

    /// Returns the tokens that one tool result may have when something is cut.
    pub fn one_result_tokens(&self) -> Tokens {
        self.window_tokens.share(self.limits.tool_result_soft_limit)
    }

    /// Returns the tokens that all tool results may have together when something is cut.
    pub fn all_results_tokens(&self) -> Tokens {
        self.window_tokens.share(self.limits.tool_result_hard_limit)
    }
}

/// Returns the tokens of a window that are kept free for the answer: `ratio` of it, rounded up, or `max_output_tokens`,
/// whichever is larger.
pub fn reserve_tokens(window_tokens: Tokens, max_output_tokens: Tokens, ratio: f64) -> Tokens {
    window_tokens.share_up(ratio).max(max_output_tokens)
}

/// Returns the smallest window that leaves `prompt_tokens` beside its [`reserve_tokens`]; [`MAX_WHOLE`] where none does.
#[allow(clippy::cast_precision_loss, clippy::cast_possible_truncation, clippy::cast_sign_loss)] // tokens are < 2^53
pub fn window_for(prompt_tokens: Tokens, max_output_tokens: Tokens, ratio: f64) -> Tokens {
    let leaves = |window: Tokens| window - reserve_tokens(window, max_output_tokens, ratio) >= prompt_tokens;
    let by_share = Tokens((prompt_tokens.0 as f64 / (1.0 - ratio)) as u64);
    // The quotient may be rounded to a window that is one too small, or two.
    let least = by_share.max(prompt_tokens + max_output_tokens);
    (least.0..MAX_WHOLE).take(3).map(Tokens).find(|&window| leaves(window)).unwrap_or(Tokens(MAX_WHOLE))
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
    fn the_answer_has_its_reserve_whatever_it_asks_for() {
        let of = |window, output: Option<u64>| {
            let request = Request::new(None, None, Tokens(window));
            Request { max_output_tokens: output.map(Tokens), ..request }.budget_tokens().0
        };
        assert_eq!(
            [of(1_000, None), of(1_000, Some(100)), of(1_000, Some(400)), of(100, Some(400))],
            [850, 850, 600, 0]
        );
    }

    #[test]
    fn a_window_for_a_prompt_is_the_smallest_that_leaves_it() {
        for ratio in [0.0, 0.1, 0.15, 0.5, 0.9] {
            for output in [0, 100] {
                let budget = |window: Tokens| window - reserve_tokens(window, Tokens(output), ratio);
                for prompt in (1..2_000).map(Tokens) {
                    let window = window_for(prompt, Tokens(output), ratio);
                    let smaller = window - Tokens(1);
                    assert!(budget(window) >= prompt && budget(smaller) < prompt, "{prompt} of {window}, {ratio}");
                }
            }
        }
        let without_room = [0, 1].map(|prompt| window_for(Tokens(prompt), Tokens::ZERO, 1.0).0);
        assert_eq!(without_room, [0, MAX_WHOLE]);
    }
}
