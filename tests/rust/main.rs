//! Integration tests of the core.

// A failed `unwrap` is a failed test; the lint lets it be in test functions only, not in what they share.
#![allow(clippy::unwrap_used)]

mod alternation;
mod archive;
mod bad_input;
mod conversation;
mod counting;
mod documents;
mod fields;
mod fitted;
mod generate;
mod history;
mod ledger;
mod overflow;
mod owned;
mod pasted;
mod promises;
mod recovery;
#[cfg(feature = "redis")]
mod redis_server;
mod selection;
mod service;
mod silent;
mod steady;
mod store_contract;
#[cfg(all(feature = "redis", feature = "sqlite"))]
mod store_model;
#[cfg(feature = "redis")]
mod store_redis;
#[cfg(feature = "redis")]
mod store_redis_cluster;
#[cfg(feature = "redis")]
mod store_redis_faults;
#[cfg(feature = "sqlite")]
mod store_sqlite;
mod store_url;
mod summary;
mod superseded;
mod talk;
mod texts;
mod threads;
mod views;
mod window;
mod worst_case;
