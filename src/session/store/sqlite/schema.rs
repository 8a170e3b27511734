//! The tables, and migrations of files of earlier releases.

use rusqlite::{Connection, TransactionBehavior};

use super::super::{StoreError, StoreResult};
use super::classify;

/// What tells the file from those of other programs: "nbct", SQLite's `application_id`.
const APPLICATION: i64 = 0x6e62_6374;

/// What each version of the schema adds to the one before; the number of a file is SQLite's `user_version`.
const MIGRATIONS: [&str; 1] = ["
    CREATE TABLE session (
        -- Never given twice: the state of a session goes by it, and its events.
        sid INTEGER PRIMARY KEY AUTOINCREMENT CHECK (sid < 0x80000000),
        app TEXT NOT NULL, user TEXT NOT NULL, id TEXT NOT NULL,
        gen TEXT NOT NULL,
        seq INTEGER NOT NULL DEFAULT 0 CHECK (seq < 0x100000000), first_seq INTEGER NOT NULL DEFAULT 1,
        held INTEGER NOT NULL DEFAULT 0, -- how many events it has
        meta TEXT NOT NULL, created_ms INTEGER NOT NULL, updated_ms INTEGER NOT NULL, expires_ms INTEGER,
        UNIQUE (app, user, id)) STRICT;
    CREATE INDEX session_list ON session (app, user, updated_ms DESC, id DESC);
    CREATE INDEX session_expiry ON session (expires_ms) WHERE expires_ms IS NOT NULL;
    CREATE TABLE event (
        -- sid * 2^32 + seq: one number, so that a row is found by it alone, and long payloads stay beside each other: with
        -- both as the key of a table without rowid an event of 1 KB takes a page of 4 KB.
        place INTEGER PRIMARY KEY,
        id TEXT NOT NULL, time_ms INTEGER NOT NULL, author TEXT NOT NULL, filter_key TEXT NOT NULL,
        kind INTEGER NOT NULL, payload TEXT NOT NULL) STRICT;
    CREATE INDEX event_user ON event (place) WHERE kind = 1;
    CREATE TABLE op ( -- every id that was taken, with its position, 0 for none, and the position at that time
        sid INTEGER NOT NULL REFERENCES session ON DELETE CASCADE, id TEXT NOT NULL,
        seq INTEGER NOT NULL, at_seq INTEGER NOT NULL,
        PRIMARY KEY (sid, id)) STRICT, WITHOUT ROWID;
    CREATE INDEX op_age ON op (sid, at_seq);
    CREATE TABLE state ( -- scope: 0 app, 1 user, 2 session
        scope INTEGER NOT NULL, owner TEXT NOT NULL, key TEXT NOT NULL, value BLOB NOT NULL,
        PRIMARY KEY (scope, owner, key)) STRICT, WITHOUT ROWID;
    CREATE TABLE state_expiry (
        scope INTEGER NOT NULL, owner TEXT NOT NULL, expires_ms INTEGER NOT NULL,
        PRIMARY KEY (scope, owner)) STRICT, WITHOUT ROWID;
    CREATE TABLE summary ( -- version 0: failed
        id TEXT NOT NULL UNIQUE, sid INTEGER NOT NULL REFERENCES session ON DELETE CASCADE,
        filter_key TEXT NOT NULL, version INTEGER NOT NULL,
        first_seq INTEGER NOT NULL, last_seq INTEGER NOT NULL,
        text TEXT NOT NULL, record TEXT NOT NULL, created_ms INTEGER NOT NULL) STRICT;
    CREATE INDEX summary_newest ON summary (sid, filter_key, version);
    CREATE UNIQUE INDEX summary_version ON summary (sid, filter_key, version) WHERE version > 0;
    CREATE TABLE summary_event ( -- by id: where a summary came from outlives the events
        summary_id TEXT NOT NULL REFERENCES summary (id) ON DELETE CASCADE, seq INTEGER NOT NULL, event_id TEXT NOT NULL,
        PRIMARY KEY (summary_id, seq)) STRICT, WITHOUT ROWID;
"];

/// Brings the file to the newest schema, in one transaction.
///
/// # Errors
///
/// [`StoreError::NewerSchema`] for a file of a later release, [`StoreError::Corrupt`] for one of another program.
pub fn migrate(connection: &mut Connection, store: &str) -> StoreResult<()> {
    let known = i64::try_from(MIGRATIONS.len()).unwrap_or(i64::MAX);
    let failed = |error: rusqlite::Error| classify(&error, store);
    let number = |connection: &Connection, name: &str| {
        connection.pragma_query_value(None, name, |row| row.get::<_, i64>(0)).map_err(failed)
    };
    let found = number(connection, "user_version")?;
    if found == known {
        return Ok(());
    }
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate).map_err(failed)?;
    // Another process may have been first.
    let found = number(&transaction, "user_version")?;
    if found > known {
        return Err(StoreError::NewerSchema { store: store.to_owned(), found, known });
    }
    let tables: i64 =
        transaction.query_row("SELECT count(*) FROM sqlite_schema", [], |row| row.get(0)).map_err(failed)?;
    if number(&transaction, "application_id")? != APPLICATION && tables > 0 {
        let problem = "it is a database of another program".to_owned();
        return Err(StoreError::Corrupt { store: store.to_owned(), problem });
    }
    for migration in MIGRATIONS.iter().skip(usize::try_from(found).unwrap_or_default()) {
        transaction.execute_batch(migration).map_err(failed)?;
    }
    transaction.pragma_update(None, "application_id", APPLICATION).map_err(failed)?;
    transaction.pragma_update(None, "user_version", known).map_err(failed)?;
    transaction.commit().map_err(failed)
}
