//! What a request adds up to, as far as it decides whether there is anything to do.

use crate::message::{Content, Message, Part, Role, Text};
use crate::tokens::{REPLY, TokenCounter};

use super::{Request, repair};

/// Bounds over messages, from counts that are known and lengths where none is.
///
/// The bounds of a conversation are those of its groups put together, so a caller that remembers them looks at new
/// groups only.
#[derive(Debug, Clone, Copy)]
pub struct Bounds {
    tokens: u64,
    largest_result: u64,
    longest_user: usize,
    longest_assistant: usize,
    longest_reasoning: usize,
    /// Whether calls and results are sound, and every message has a bound.
    is_sound: bool,
}

impl Default for Bounds {
    fn default() -> Self {
        Self {
            tokens: REPLY,
            largest_result: 0,
            longest_user: 0,
            longest_assistant: 0,
            longest_reasoning: 0,
            is_sound: true,
        }
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
            let longest = match message.role {
                Role::Tool => {
                    self.largest_result = self.largest_result.max(bound);
                    continue;
                }
                Role::User => &mut self.longest_user,
                Role::Assistant => &mut self.longest_assistant,
                Role::System | Role::Function => continue,
            };
            *longest = (*longest).max(longest_text(&message.content));
            for (_, reasoning) in message.reasoning() {
                self.longest_reasoning = self.longest_reasoning.max(chars(reasoning));
            }
        }
    }

    /// Returns whether a request of these messages is within its budget and calls and results are sound.
    pub fn fits(&self, request: &Request<'_>) -> bool {
        self.is_sound
            && self.largest_result <= request.single_tokens()
            && self.tokens + request.tools_tokens() <= request.budget_tokens()
    }

    /// Returns whether no message is too long for a place before the last round, wherever it stands.
    ///
    /// Where one is, `passes::are_settled` looks closer.
    pub fn is_short(&self, request: &Request<'_>) -> bool {
        let within = |chars: usize, max_chars: usize| max_chars == 0 || chars <= max_chars;
        within(self.longest_user, request.limits.max_user_message_chars)
            && within(self.longest_assistant, request.limits.max_assistant_message_chars)
            && self.longest_reasoning <= request.limits.reasoning_keep_chars
    }
}

fn longest_text(content: &Content<'_>) -> usize {
    match content {
        Content::Empty => 0,
        Content::Text(text) => chars(text),
        Content::Parts(parts) => {
            let texts = parts.iter().filter(|part| matches!(part, Part::Text(_)));
            texts.map(|part| chars(part.text())).max().unwrap_or(0)
        }
    }
}

/// Returns the characters of a text, or its bytes where they are so few that no limit asks for more.
fn chars(text: &Text<'_>) -> usize {
    const FEW: usize = 1_000;
    if text.len() <= FEW { text.len() } else { text.as_str().chars().count() }
}
