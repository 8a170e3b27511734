//! Fits conversations into a model's context window and keeps what matters.
//!
//! The core reads a *view* of the messages ([`Message`]), counts it ([`TokenCounter`]), and returns a plan of what to
//! keep, edit and drop ([`compress`]); it owns no conversation and does no I/O.

pub mod archive;
pub mod budget;
pub mod cache;
#[cfg_attr(not(feature = "python"), allow(dead_code))] // the binding runs work in it
mod checkpoint;
pub mod compress;
pub mod conversation;
pub mod error;
pub mod history;
pub mod message;
pub mod overflow;
#[cfg(feature = "python")]
mod python;
mod select;
pub mod session;
pub mod summary;
mod text;
pub mod tokens;
mod tools;
pub mod window;

pub use error::{Error, Result};
pub use message::{Content, Field, Message, Part, Role, Text, ToolCall};
pub use text::excerpt::{TRIM_LINES, trim_tool_result};
pub use text::language::Language;
pub use text::rules::{rules_left_out, standing_rules};
#[cfg(fuzzing)]
pub use text::segments::Segments;
pub use tokens::TokenCounter;
