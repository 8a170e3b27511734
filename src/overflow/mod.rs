//! Detects that a request was too large, and decides what to send next.
//!
//! [`detect_overflow`] reads the text, the status and the codes of one failed call; [`detect_silent`] reads the usage of
//! one that succeeded. Neither is shown what a user, a tool or the model wrote. [`Recovery`] says what to send next. Nothing
//! here does I/O.

mod detect;
mod kind;
mod numbers;
mod patterns;
mod reading;
mod recovery;
mod scan;
mod silent;

pub use detect::{ErrorView, Overflow, detect_overflow};
pub use kind::OverflowKind;
pub use recovery::{ESSENTIAL_TOKENS, GiveUpReason, MIN_OUTPUT_TOKENS, Recovery, Step, answer_reserve};
pub use silent::{UsageView, detect_silent};
