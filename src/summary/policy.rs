//! The settings of summaries: when to make one and how hard to try. Source: document 003.

#[cfg(doc)]
use crate::error::MAX_WHOLE;
use crate::error::{Error, Result};
use crate::message::Message;
use crate::tokens::{TokenCounter, Tokens};

use super::cut;
use super::trigger::{Comparison, Observed, Trigger};

/// What asks for a summary.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cause {
    /// Due when the trigger fires.
    Proactive,
    /// The model refused the conversation as too long: everything is summarised.
    OverflowRetry,
    /// The caller asked: everything is summarised, whatever the trigger says.
    Forced,
}

/// The settings of summaries.
///
/// # Source
///
/// The defaults and the environment names: document 003, section 5, and the server it describes (`config.rs:83`).
/// `SUMMARY_COOLDOWN_SECONDS` is read there and used nowhere, so it is left out.
#[derive(Debug, Clone, PartialEq)]
#[allow(clippy::struct_excessive_bools)] // switches, each for itself
pub struct Policy {
    /// `SUMMARY_ENABLED` and `DYNAMIC_SUMMARY_ENABLED`: whether summaries are made unasked.
    pub enabled: bool,
    /// `SUMMARY_MESSAGE_LIMIT`: number of messages that makes a summary due; 0 is no limit.
    pub message_limit: u64,
    /// `SUMMARY_MAX_CONTEXT_TOKENS`: tokens that make a summary due; 0 is no limit.
    pub max_context_tokens: Tokens,
    /// `SUMMARY_KEEP_LAST_N`: messages at the end that are not covered.
    pub keep_last: u64,
    /// `SUMMARY_TARGET_TOKENS`: tokens that a summary should have.
    pub target_tokens: Tokens,
    /// `SUMMARY_MERGE_TARGET_TOKENS`: tokens of a merged summary.
    pub merge_target_tokens: Tokens,
    /// `SUMMARY_TEMPERATURE`: handed to the model.
    pub temperature: f64,
    /// `SUMMARY_BISECT_ENABLED`: whether what the model refuses is summarised in halves.
    pub bisect_enabled: bool,
    /// `SUMMARY_BISECT_MAX_DEPTH`: how often it is halved; at least 1.
    pub bisect_max_depth: u32,
    /// `SUMMARY_BISECT_MIN_MESSAGES`: so few messages are not halved again; at least 1.
    pub bisect_min_messages: u64,
    /// `SUMMARY_RETRY_ON_CONTEXT_OVERFLOW`: whether an overflow makes a summary due.
    pub retry_on_overflow: bool,
    /// `HISTORY_LIMIT`: messages of history without a summary.
    pub history_limit: u64,
}

impl Default for Policy {
    fn default() -> Self {
        Self {
            enabled: true,
            message_limit: 40,
            max_context_tokens: Tokens(6_000),
            keep_last: 6,
            target_tokens: Tokens(700),
            merge_target_tokens: Tokens(700),
            temperature: 0.2,
            bisect_enabled: true,
            bisect_max_depth: 6,
            bisect_min_messages: 4,
            retry_on_overflow: true,
            history_limit: 20,
        }
    }
}

impl Policy {
    /// Returns the policy of the environment, which `lookup` reads.
    ///
    /// A switch is off for `false` in any case, and on otherwise, as in document 003's server; an empty value is unset. The
    /// merge target defaults to the target.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidArgument`] with the variable's name for a number that does not parse, is too small or above
    /// [`MAX_WHOLE`].
    pub fn from_env(lookup: impl Fn(&str) -> Option<String>) -> Result<Self> {
        let text = |name: &str| lookup(name).filter(|text| !text.trim().is_empty());
        let switch = |name: &str| text(name).is_none_or(|text| !text.trim().eq_ignore_ascii_case("false"));
        let whole = |name: &str, default: u64| {
            text(name).map_or(Ok(default), |text| {
                let wrong = || Error::argument(name, format!("must be a non-negative integer, got `{text}`"));
                Error::check_whole(name, text.trim().parse().map_err(|_| wrong())?)
            })
        };
        let default = Self::default();
        let tokens = |name: &str, default: Tokens| whole(name, default.0).map(Tokens);
        let target_tokens = tokens("SUMMARY_TARGET_TOKENS", default.target_tokens)?;
        let temperature = text("SUMMARY_TEMPERATURE").map_or(Ok(default.temperature), |text| {
            let wrong = || Error::argument("SUMMARY_TEMPERATURE", format!("must be a number, got `{text}`"));
            text.trim().parse().map_err(|_| wrong())
        })?;
        let max_depth = whole("SUMMARY_BISECT_MAX_DEPTH", default.bisect_max_depth.into())?;
        Self {
            enabled: switch("SUMMARY_ENABLED") && switch("DYNAMIC_SUMMARY_ENABLED"),
            message_limit: whole("SUMMARY_MESSAGE_LIMIT", default.message_limit)?,
            max_context_tokens: tokens("SUMMARY_MAX_CONTEXT_TOKENS", default.max_context_tokens)?,
            keep_last: whole("SUMMARY_KEEP_LAST_N", default.keep_last)?,
            target_tokens,
            merge_target_tokens: tokens("SUMMARY_MERGE_TARGET_TOKENS", target_tokens)?,
            temperature,
            bisect_enabled: switch("SUMMARY_BISECT_ENABLED"),
            bisect_max_depth: u32::try_from(max_depth).unwrap_or(u32::MAX).max(1),
            bisect_min_messages: whole("SUMMARY_BISECT_MIN_MESSAGES", default.bisect_min_messages)?.max(1),
            retry_on_overflow: switch("SUMMARY_RETRY_ON_CONTEXT_OVERFLOW"),
            history_limit: whole("HISTORY_LIMIT", default.history_limit)?,
        }
        .checked()
    }

    /// Returns document 003's check: messages first, then tokens, without limits of 0.
    pub fn trigger(&self) -> Trigger {
        let messages = Trigger::Messages(Comparison::AtLeast, self.message_limit);
        let tokens = Trigger::Tokens(Comparison::AtLeast, self.max_context_tokens);
        let checks = [(self.message_limit, messages), (self.max_context_tokens.0, tokens)];
        Trigger::Any(checks.into_iter().filter(|(limit, _)| *limit > 0).map(|(_, check)| check).collect())
    }

    /// Returns the cover of the next summary, and why it is due; `None` if it is not due, or would cover no more than the
    /// `covered` messages. Without a `trigger` the policy's own limits decide.
    pub fn due(
        &self,
        view: &[Message<'_>],
        covered: usize,
        cause: Cause,
        trigger: Option<&Trigger>,
        idle_seconds: f64,
        counter: TokenCounter,
    ) -> Option<(usize, &'static str)> {
        let new = view.get(covered..).filter(|new| !new.is_empty())?;
        let (reason, keep) = match cause {
            Cause::Forced => ("force", 0),
            Cause::OverflowRetry => self.retry_on_overflow.then_some(("overflow_retry", 0))?,
            Cause::Proactive if !self.enabled => return None,
            Cause::Proactive => {
                let tokens = new.iter().map(|message| counter.message(message)).sum();
                let observed = Observed { messages: new.len() as u64, tokens, idle_seconds };
                let reason = match trigger {
                    Some(trigger) => trigger.fires(&observed)?,
                    None => self.trigger().fires(&observed)?,
                };
                (reason, usize::try_from(self.keep_last).unwrap_or(usize::MAX))
            }
        };
        cut::keep_last(view, covered, keep).map(|cut| (cut, reason))
    }

    /// Returns the policy if it can be used.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidArgument`] for a target of 0, a depth or a minimum of 0, a temperature below 0, or a number above
    /// [`MAX_WHOLE`].
    pub fn checked(self) -> Result<Self> {
        let positive = [
            ("target_tokens", self.target_tokens.0),
            ("merge_target_tokens", self.merge_target_tokens.0),
            ("bisect_max_depth", self.bisect_max_depth.into()),
            ("bisect_min_messages", self.bisect_min_messages),
        ];
        if let Some((name, _)) = positive.iter().find(|(_, value)| *value == 0) {
            return Err(Error::argument(*name, "must be a positive integer, got 0"));
        }
        let others = [
            ("message_limit", self.message_limit),
            ("max_context_tokens", self.max_context_tokens.0),
            ("keep_last", self.keep_last),
            ("history_limit", self.history_limit),
        ];
        for (name, value) in positive.into_iter().chain(others) {
            Error::check_whole(name, value)?;
        }
        if !self.temperature.is_finite() || self.temperature < 0.0 {
            let problem = format!("must be a number from 0 on, got {}", self.temperature);
            return Err(Error::argument("temperature", problem));
        }
        Ok(self)
    }
}
