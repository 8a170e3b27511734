//! Errors that end a transaction.

use rusqlite::{ErrorCode, ffi};

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

/// No room on the disk. What all connections share beside the file cannot grow either: SQLite calls that an I/O error.
const FULL: [i32; 2] = [ffi::SQLITE_FULL, ffi::SQLITE_IOERR_SHMSIZE];

/// Whether a value is there that nothing of ours has written.
fn is_unreadable(error: &rusqlite::Error) -> bool {
    use rusqlite::Error::{FromSqlConversionFailure, IntegralValueOutOfRange, InvalidColumnType, Utf8Error};
    matches!(error, FromSqlConversionFailure(..) | IntegralValueOutOfRange(..) | InvalidColumnType(..) | Utf8Error(..))
}

/// Returns what an error of SQLite means to a user.
pub fn classify(error: &rusqlite::Error, store: &str) -> StoreError {
    let (store, problem) = (store.to_owned(), error.to_string());
    let is_full = error.sqlite_error().is_some_and(|error| FULL.contains(&error.extended_code));
    match error.sqlite_error_code() {
        Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => {
            StoreError::Locked { store, seconds: BUSY_SECONDS }
        }
        _ if is_full => {
            let hint = "free a few megabytes on its disk; deleting sessions needs room for its log, too";
            StoreError::Full { store, problem: format!("{problem}\nhint: {hint}") }
        }
        Some(ErrorCode::ReadOnly | ErrorCode::PermissionDenied | ErrorCode::CannotOpen) => {
            StoreError::ReadOnly { store, problem }
        }
        Some(ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase) => StoreError::Corrupt { store, problem },
        Some(ErrorCode::SystemIoFailure) => StoreError::Unavailable { store, problem },
        None if is_unreadable(error) => StoreError::Corrupt { store, problem },
        _ => StoreError::Failed { store, problem },
    }
}
