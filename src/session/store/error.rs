//! Errors of stores.

use super::SessionKey;

/// A result whose error is [`StoreError`].
pub type StoreResult<T> = std::result::Result<T, StoreError>;

/// An error of a store. No message has a credential.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum StoreError {
    /// A key or an argument cannot be used.
    #[error("`{name}` {problem}")]
    Invalid {
        /// The argument.
        name: String,
        /// What is wrong with it.
        problem: String,
    },
    /// The session does not exist or has expired.
    #[error("there is no session `{0}`")]
    NotFound(SessionKey),
    /// The session exists.
    #[error("session `{0}` exists already\nhint: `get_or_create` takes it, `overwrite=True` deletes it first")]
    AlreadyExists(SessionKey),
    /// The session was deleted and created again since its caller read it.
    #[error("session `{0}` was deleted or created anew by another writer")]
    Gone(SessionKey),
    /// Somebody else wrote first.
    #[error("session `{key}` is at position {actual}, not at {expected}: another writer was first")]
    Conflict {
        /// The session.
        key: SessionKey,
        /// What the caller expected.
        expected: String,
        /// The actual one.
        actual: String,
    },
    /// The server does not answer, or not in time.
    #[error("{store} cannot be reached: {problem}")]
    Unavailable {
        /// The store, without credentials.
        store: String,
        /// What the system said.
        problem: String,
    },
    /// The server wants another name or password.
    #[error("{store} refused the user name or the password: {problem}")]
    Unauthorized {
        /// The store, without credentials.
        store: String,
        /// What it said.
        problem: String,
    },
    /// The user may not do this, or not from here.
    #[error("{store} does not allow it: {problem}")]
    Forbidden {
        /// The store, without credentials.
        store: String,
        /// What it said.
        problem: String,
    },
    /// Nothing can be written: the disk is full.
    #[error("{store} is full: {problem}")]
    Full {
        /// The store.
        store: String,
        /// What the system said.
        problem: String,
    },
    /// Nothing can be written: read-only.
    #[error("{store} cannot be written: {problem}")]
    ReadOnly {
        /// The store.
        store: String,
        /// What the system said.
        problem: String,
    },
    /// The stored data is damaged; `problem` names the session where one is asked for.
    #[error("{store} is damaged: {problem}")]
    Corrupt {
        /// The store.
        store: String,
        /// What is wrong.
        problem: String,
    },
    /// The file was replaced or deleted: what is written here would be lost.
    #[error(
        "{store} was deleted, renamed or replaced while it was open\nhint: close it, put the file back, then open it again"
    )]
    Replaced {
        /// The store.
        store: String,
    },
    /// A later release wrote it.
    #[error("{store} has schema {found}, and this release knows {known}\nhint: install the release that wrote it")]
    NewerSchema {
        /// The store.
        store: String,
        /// The schema's number.
        found: i64,
        /// The newest known one.
        known: i64,
    },
    /// Another process held the lock too long.
    #[error("{store} is locked by another process for more than {seconds} s")]
    Locked {
        /// The store.
        store: String,
        /// How long was waited.
        seconds: u64,
    },
    /// It has been closed.
    #[error("the store has been closed")]
    Closed,
    /// Anything else.
    #[error("{store} failed: {problem}")]
    Failed {
        /// The store.
        store: String,
        /// What it said.
        problem: String,
    },
}

/// What a caller should do after an error.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Retry {
    /// Retry later: nothing was written, or its ids will tell.
    Later,
    /// Read first.
    AfterReading,
    /// Give up: only another argument or another store helps.
    Never,
}

impl StoreError {
    /// Returns an [`StoreError::Invalid`].
    pub fn invalid(name: impl Into<String>, problem: impl Into<String>) -> Self {
        Self::Invalid { name: name.into(), problem: problem.into() }
    }

    /// Names the session that was asked for where stored data is damaged: whoever keeps many can then delete that one.
    #[must_use]
    pub(super) fn of_session(self, key: &SessionKey) -> Self {
        match self {
            Self::Corrupt { store, problem } => Self::Corrupt { store, problem: format!("session `{key}`: {problem}") },
            other => other,
        }
    }

    /// Returns what to do next. The match has no catch-all: a new variant must decide.
    pub fn retry(&self) -> Retry {
        match self {
            Self::Unavailable { .. } | Self::Full { .. } | Self::Locked { .. } => Retry::Later,
            Self::Conflict { .. } | Self::Gone(_) | Self::NotFound(_) | Self::AlreadyExists(_) => Retry::AfterReading,
            Self::Invalid { .. }
            | Self::Unauthorized { .. }
            | Self::Forbidden { .. }
            | Self::ReadOnly { .. }
            | Self::Corrupt { .. }
            | Self::Replaced { .. }
            | Self::NewerSchema { .. }
            | Self::Closed
            | Self::Failed { .. } => Retry::Never,
        }
    }
}
