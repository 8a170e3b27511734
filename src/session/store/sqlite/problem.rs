//! What ends a transaction, and what that means to a user.

use rusqlite::ErrorCode;

use super::super::StoreError;
use super::BUSY_SECONDS;

/// What ends a transaction.
pub enum Problem {
    Sqlite(rusqlite::Error),
    Store(StoreError),
}

impl From<rusqlite::Error> for Problem {
    fn from(error: rusqlite::Error) -> Self {
        Self::Sqlite(error)
    }
}

impl From<StoreError> for Problem {
    fn from(error: StoreError) -> Self {
        Self::Store(error)
    }
}

/// Returns what an error of SQLite means to a user.
pub fn classify(error: &rusqlite::Error, store: &str) -> StoreError {
    let (store, problem) = (store.to_owned(), error.to_string());
    match error.sqlite_error_code() {
        Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => {
            StoreError::Locked { store, seconds: BUSY_SECONDS }
        }
        Some(ErrorCode::DiskFull) => StoreError::Full { store, problem },
        Some(ErrorCode::ReadOnly | ErrorCode::PermissionDenied | ErrorCode::CannotOpen) => {
            StoreError::ReadOnly { store, problem }
        }
        Some(ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase) => StoreError::Corrupt { store, problem },
        Some(ErrorCode::SystemIoFailure) => StoreError::Unavailable { store, problem },
        _ => StoreError::Failed { store, problem },
    }
}
