//! What a text says: its parts, its names, the rules in it, and what stands where some of it was left out.
//!
//! Knows no message and no plan.

pub mod analysis;
pub mod bytes;
pub mod elision;
pub mod envelope;
pub mod estimate;
pub mod excerpt;
pub mod json_string;
pub mod language;
pub mod ledger;
pub mod names;
pub mod rules;
pub mod segments;
pub mod sentences;
pub mod terms;
