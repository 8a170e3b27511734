//! Upper bounds of a request's tokens: most requests are shown to fit without a count.

use crate::message::Message;
use crate::tokens::{REPLY, TokenCounter, Tokens};

use super::{Request, repair};

/// Upper bounds over messages: cached counts, and lengths of texts without one.
///
/// The bounds of groups add up, so a caller that keeps them looks at new groups only.
#[derive(Debug, Clone, Copy)]
pub struct Bounds {
    tokens: Tokens,
    /// Whether calls and results are sound, and every message has a bound.
    is_sound: bool,
}

impl Default for Bounds {
    fn default() -> Self {
        Self { tokens: REPLY, is_sound: true }
    }
}

impl Bounds {
    /// Adds whole groups: every result stands behind its call, and none is missing behind the last.
    pub fn add(&mut self, messages: &[Message<'_>], counter: &TokenCounter) {
        self.is_sound &= repair::are_sound(messages);
        for message in messages {
            let Some(bound) = counter.upper_bound(message) else {
                self.is_sound = false;
                return;
            };
            self.tokens += bound;
        }
    }

    /// Returns whether the bounds prove that a request of these messages has at most `max_tokens` and needs no repair. Tool
    /// schemas are counted only where a bound of them does not decide.
    pub fn prove_fit(&self, request: &Request<'_>, max_tokens: Tokens) -> bool {
        let within = |tools_tokens: Tokens| self.tokens + tools_tokens <= max_tokens;
        self.is_sound && (within(request.tools_bound()) || within(request.tools_tokens()))
    }
}
