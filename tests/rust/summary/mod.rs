//! Summaries: what they cover, when they are due, how they are made.

mod engine;
