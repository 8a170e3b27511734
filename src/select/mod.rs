//! Chooses what to keep: scores terms by the chance that the next step uses them, then fills a token budget.
//!
//! Knows texts and their authors; knows no draft.

mod ablation;
mod facts;
mod queue;
pub mod scoring;
pub mod selector;
mod trees;
pub mod usage_model;
pub mod within;

#[cfg(feature = "evaluation")]
pub use ablation::without;
pub use ablation::{Mechanism, is_on};
pub use facts::Asked;
#[cfg(feature = "evaluation")]
pub use scoring::Example;
#[cfg(feature = "evaluation")]
pub use usage_model::FEATURES;
