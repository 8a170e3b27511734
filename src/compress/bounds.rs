//! What a request adds up to, as far as it decides whether there is anything to do.

use crate::message::Message;
use crate::tokens::{REPLY, TokenCounter, Tokens};

use super::{Request, repair};

/// Bounds over messages, from counts that are known and lengths where none is.
///
/// The bounds of a conversation are those of its groups put together, so a caller that remembers them looks at new
/// groups only.
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
    /// Adds whole groups: no result stands before its call's message, none is missing behind the last.
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

    /// Returns whether a request of these messages is within its budget and calls and results are sound.
    pub fn fits(&self, request: &Request<'_>) -> bool {
        self.are_within(request, request.budget_tokens())
    }

    /// As [`Self::fits`], within `max_tokens`. Tool schemas are counted only where a bound of them does not decide.
    pub fn are_within(&self, request: &Request<'_>, max_tokens: Tokens) -> bool {
        let within = |tools_tokens: Tokens| self.tokens + tools_tokens <= max_tokens;
        self.is_sound && (within(request.tools_bound()) || within(request.tools_tokens()))
    }
}
