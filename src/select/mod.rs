//! What is worth keeping: how likely a term is to be needed, and the texts that cover the most of it within a budget.
//!
//! Knows texts and who brought them; knows no draft.

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
