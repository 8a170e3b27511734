//! Summaries: what they cover, when they are due and how they are made. Without I/O: nothing here calls a model or stores
//! anything.
//!
//! A summary covers the first messages of a conversation; those behind are shown. [`cut`] decides how far the next one
//! reaches, [`Trigger`] and [`Policy`] when it is due. [`Run`] makes it: it asks for model calls, and falls back to
//! [`local`], which works by rules. The fields, [`Structured`], are kept with every summary: later ones are merged with
//! them, and rules and names that a model drops are added back.

mod changes;
pub mod cut;
mod engine;
mod local;
mod policy;
mod prompt;
mod structured;
mod transcript;
mod trigger;

pub use changes::{Change, changes};
pub use engine::{ModelCall, Options, Previous, Run, SummaryDraft};
pub use local::local;
pub use policy::{Cause, Policy};
pub use prompt::{Format, Prompt, section, wrapped};
pub use structured::Structured;
pub use trigger::{Comparison, Observed, Trigger};
