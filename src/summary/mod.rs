//! Summaries: what they cover, when they are due, and how they are made. Nothing here calls a model or stores anything.
//!
//! A summary covers the first so many messages of a conversation; everything behind is shown. [`cut`] says how far the next
//! one reaches, [`Trigger`] and [`Policy`] when it is due, [`Run`] makes it: it asks for model calls, and where none is
//! answered what [`local`] tells by rules is the summary. Its fields, [`Structured`], are kept with every summary, whoever
//! wrote the text: later ones are merged with them, and rules and names that a model drops are added back.

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
