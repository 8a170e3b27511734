//! Every message the crate can give.

use crate::tokens::Tokens;

/// A result whose error is [`enum@Error`].
pub type Result<T> = std::result::Result<T, Error>;

/// Largest number that an argument or a variable may name: 2^53, up to which ratios are exact and no product of ours wraps.
pub const MAX_WHOLE: u64 = 1 << 53;

/// What can go wrong in the core.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A message is not of a shape that any provider accepts.
    #[error("`messages[{index}]{field}` {problem}")]
    InvalidMessage {
        /// Position in the list of messages, from 0.
        index: usize,
        /// Path below the message, such as `.content` or `.tool_calls[2].id`; empty for the message itself.
        field: String,
        /// What is wrong, both sides of the comparison included.
        problem: String,
    },
    /// An argument other than the messages is not usable.
    #[error("`{name}` {problem}")]
    InvalidArgument {
        /// The argument's name as the caller wrote it.
        name: String,
        /// What is wrong, both sides of the comparison included.
        problem: String,
    },
    /// What must stay is larger than the budget, so nothing that may be cut can help.
    #[error("{floor}")]
    Overflow {
        /// What must stay, part by part.
        floor: Box<Floor>,
    },
}

/// What must stay in a request, and the budget it does not fit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Floor {
    /// Tokens that the parts need together.
    pub needed_tokens: Tokens,
    /// Tokens that the request may have.
    pub limit_tokens: Tokens,
    /// The model the tokens were counted for.
    pub model: Option<String>,
    /// Tokens of each part that cannot be cut, largest first: `system`, `tools`, `last_user`, `framing`; `kept`
    /// for what the caller keeps.
    pub parts: Vec<(&'static str, Tokens)>,
    /// The largest tools with their tokens.
    pub largest_tools: Vec<(String, Tokens)>,
}

impl std::fmt::Display for Floor {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "what must stay needs {} tokens", self.needed_tokens)?;
        if let Some(model) = &self.model {
            write!(f, " for `{model}`")?;
        }
        write!(f, " but {} are allowed (", self.limit_tokens)?;
        for (i, (name, tokens)) in self.parts.iter().enumerate() {
            write!(f, "{}{name} {tokens}", if i == 0 { "" } else { ", " })?;
            if *name == "tools" && !self.largest_tools.is_empty() {
                let tools = self.largest_tools.iter().map(|(tool, tokens)| format!("`{tool}` {tokens}"));
                write!(f, " with {}", tools.collect::<Vec<_>>().join(" and "))?;
            }
        }
        write!(f, ")")
    }
}

impl Error {
    /// Returns an [`Error::InvalidMessage`].
    pub fn message(index: usize, field: impl Into<String>, problem: impl Into<String>) -> Self {
        Self::InvalidMessage { index, field: field.into(), problem: problem.into() }
    }

    /// Returns `number` if it is small enough to count tokens, characters or messages.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidArgument`] above [`MAX_WHOLE`].
    pub fn check_whole(name: impl Into<String>, number: u64) -> Result<u64> {
        if number <= MAX_WHOLE {
            return Ok(number);
        }
        Err(Self::argument(name, format!("must be at most {MAX_WHOLE}, got {number}")))
    }

    /// Returns an [`Error::InvalidArgument`].
    pub fn argument(name: impl Into<String>, problem: impl Into<String>) -> Self {
        Self::InvalidArgument { name: name.into(), problem: problem.into() }
    }
}
