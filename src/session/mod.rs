//! Sessions that processes share: the service, and the stores behind it.

pub mod service;
pub mod store;
