//! Triggers: checks of when a summary is due.

use std::ops::Not;

use crate::tokens::Tokens;

/// What a trigger looks at: the messages that no summary covers.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Observed {
    /// Their number.
    pub messages: u64,
    /// Their tokens, each message counted once.
    pub tokens: Tokens,
    /// Seconds of silence before the newest message, or since it if nothing follows.
    pub idle_seconds: f64,
}

/// How a number is compared with its threshold; the documents differ in that.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Comparison {
    /// `>`: document 002.
    Above,
    /// `>=`: document 003.
    AtLeast,
}

impl Comparison {
    fn holds<T: PartialOrd + Copy>(self, value: T, threshold: T) -> bool {
        match self {
            Self::Above => value > threshold,
            Self::AtLeast => value >= threshold,
        }
    }
}

/// A check, or several of them joined.
#[derive(Debug, Clone, PartialEq)]
pub enum Trigger {
    /// The number of messages.
    Messages(Comparison, u64),
    /// The tokens.
    Tokens(Comparison, Tokens),
    /// The seconds of silence.
    Idle(Comparison, f64),
    /// Any of these fires; an empty list never does.
    Any(Vec<Trigger>),
    /// All of these fire; an empty list always does.
    All(Vec<Trigger>),
    /// This one does not.
    Not(Box<Trigger>),
}

impl Trigger {
    /// Returns why a summary is due: `message_limit`, `token_limit`, `idle` or `not`, the first check that fired.
    ///
    /// Without messages nothing fires. An empty `All` is always due, and called `always`.
    pub fn fires(&self, observed: &Observed) -> Option<&'static str> {
        if observed.messages == 0 { None } else { self.reason(observed) }
    }

    /// Returns whether it checks silence, and so may fire as time passes.
    pub fn watches_silence(&self) -> bool {
        match self {
            Self::Messages(..) | Self::Tokens(..) => false,
            Self::Idle(..) => true,
            Self::Any(checks) | Self::All(checks) => checks.iter().any(Self::watches_silence),
            Self::Not(check) => check.watches_silence(),
        }
    }

    fn reason(&self, observed: &Observed) -> Option<&'static str> {
        match self {
            Self::Messages(comparison, limit) => comparison.holds(observed.messages, *limit).then_some("message_limit"),
            Self::Tokens(comparison, limit) => comparison.holds(observed.tokens, *limit).then_some("token_limit"),
            Self::Idle(comparison, limit) => comparison.holds(observed.idle_seconds, *limit).then_some("idle"),
            Self::Any(checks) => checks.iter().find_map(|check| check.reason(observed)),
            Self::All(checks) => {
                let mut reasons = checks.iter().map(|check| check.reason(observed));
                let first = reasons.next().unwrap_or(Some("always"))?;
                reasons.all(|reason| reason.is_some()).then_some(first)
            }
            Self::Not(check) => check.reason(observed).is_none().then_some("not"),
        }
    }
}

impl Not for Trigger {
    type Output = Self;

    fn not(self) -> Self {
        Self::Not(Box::new(self))
    }
}
