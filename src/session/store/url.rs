//! Which store a URL names.

use std::sync::Arc;

use super::{Memory, SessionStore, StoreError, StoreResult};

/// Opens the store that `url` names: `memory:`, `sqlite:///path`, `sqlite:///:memory:`, `redis://…` or `rediss://…`.
///
/// # Errors
///
/// [`StoreError::Invalid`] for a URL of another form, or of a store that was left out of this build; else what the store says.
/// No error holds a password.
pub fn open(url: &str) -> StoreResult<Arc<dyn SessionStore>> {
    let scheme = url.split(':').next().unwrap_or_default();
    match scheme {
        "memory" => Ok(Arc::new(Memory::new())),
        #[cfg(feature = "sqlite")]
        "sqlite" => Ok(Arc::new(super::Sqlite::open(url)?)),
        #[cfg(not(feature = "sqlite"))]
        "sqlite" => Err(StoreError::invalid("url", "names a store that this build leaves out: `sqlite`")),
        #[cfg(feature = "redis")]
        "redis" | "rediss" => Ok(Arc::new(super::Redis::open(url)?)),
        #[cfg(not(feature = "redis"))]
        "redis" | "rediss" => Err(StoreError::invalid("url", "names a store that this build leaves out: `redis`")),
        _ => Err(StoreError::invalid(
            "url",
            "must begin with `memory:`, `sqlite:///`, `redis://` or `rediss://`\nhint: `sqlite:///sessions.db` is a file",
        )),
    }
}

/// Reads `url` as [`open`] does, without opening anything, and returns what it names, without credentials.
///
/// # Errors
///
/// [`StoreError::Invalid`], as [`open`].
#[cfg(fuzzing)]
pub fn read(url: &str) -> StoreResult<String> {
    if url.starts_with("sqlite:") {
        return super::sqlite::parse(url).map(|(path, _)| path.display().to_string());
    }
    super::redis::Options::parse(url).map(|(options, _)| options.describe())
}
