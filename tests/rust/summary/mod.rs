//! Summaries: what they cover, when they are due, how they are made.

mod cut;
mod engine;
mod local;
mod policy;
mod prompt;
mod structured;
mod trigger;
