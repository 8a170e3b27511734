//! Integration tests of the core.

// A failed `unwrap` is a failed test; the lint lets it be in test functions only, not in what they share.
#![allow(clippy::unwrap_used)]

mod archive;
mod bad_input;
mod counting;
mod documents;
mod generate;
mod owned;
mod promises;
mod steady;
mod texts;
mod threads;
mod worst_case;
