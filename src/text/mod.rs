//! Reads one text: its parts, names and rules, and the marks that replace removed parts.
//!
//! Knows neither messages nor plans.

pub mod analysis;
pub mod bytes;
pub mod codes;
pub mod commitments;
pub mod conclusions;
pub mod dates;
pub mod edits;
pub mod elision;
pub mod envelope;
pub mod estimate;
pub mod excerpt;
pub mod json_string;
pub mod language;
pub mod ledger;
mod listing;
pub mod names;
pub mod partners;
mod phrases;
pub mod references;
pub mod rules;
pub mod segments;
pub mod sentences;
pub mod snapshot;
mod spelling;
pub mod stop_list;
pub mod stop_words;
pub mod terms;
