//! Reads and writes rows of sessions, events, states and summaries within a transaction.

use std::cell::RefCell;

use rusqlite::{OptionalExtension, Params, Row, RowIndex, Transaction, params};

use super::super::rules::{Leaving, expires_ms, now_ms};
use super::super::{
    Append, Appended, Delta, EventKind, Eviction, Head, KEPT_IDS, NewEvent, SessionEvent, SessionKey, State,
    StoreError, StoredSummary, Ttl, UserKey,
};
use super::problem::Problem;

pub const APP: u8 = 0;
pub const USER: u8 = 1;
pub const SESSION: u8 = 2;

/// Runs a statement, which stays prepared; returns the number of changed rows.
pub fn run(transaction: &Transaction<'_>, sql: &str, params: impl Params) -> rusqlite::Result<usize> {
    transaction.prepare_cached(sql)?.execute(params)
}

/// The time of an operation, and what it found expired.
pub struct Clock {
    pub now: i64,
    pub expired: RefCell<Vec<Expired>>,
}

/// What is deleted once it has been seen expired: the clock may be set back, and it must not come back.
pub enum Expired {
    Session(i64),
    State(u8, String),
}

impl Clock {
    pub fn new() -> Self {
        Self { now: now_ms(), expired: RefCell::default() }
    }

    pub fn has_passed(&self, expires_ms: Option<i64>, expired: impl FnOnce() -> Expired) -> bool {
        let has_passed = expires_ms.is_some_and(|at| at < self.now);
        if has_passed {
            self.expired.borrow_mut().push(expired());
        }
        has_passed
    }
}

/// A session's row.
pub struct SessionRow {
    pub sid: i64,
    pub head: Head,
    /// Number of its events.
    pub held: u64,
}

/// Positions of a session. Source: `event.place` in `schema.rs`.
pub const PLACES: u64 = 1 << 32;

impl SessionRow {
    /// Returns where the event at `seq` is among those of all sessions, or would be.
    pub fn place(&self, seq: u64) -> i64 {
        (self.sid << 32) + i64::try_from(seq.min(PLACES - 1)).unwrap_or_default()
    }

    /// Returns the places behind `after` up to the last one that it can have.
    pub fn places_behind(&self, after: u64) -> (i64, i64) {
        (self.place(after), self.place(PLACES - 1))
    }
}

/// Returns the position in its session of the event at `place`.
pub fn seq_of(place: i64) -> u64 {
    place.unsigned_abs() % PLACES
}

/// Returns a text as far as it can be read: a damaged one costs its own bytes, and not the session that it is of.
fn text(row: &Row<'_>, at: impl RowIndex) -> rusqlite::Result<String> {
    let value = row.get_ref(at)?;
    let bytes = value
        .as_bytes()
        .map_err(|error| rusqlite::Error::FromSqlConversionFailure(0, value.data_type(), Box::new(error)))?;
    Ok(String::from_utf8_lossy(bytes).into_owned())
}

pub fn event(row: &Row<'_>) -> rusqlite::Result<SessionEvent> {
    Ok(SessionEvent {
        seq: seq_of(row.get(0)?),
        id: text(row, 1)?,
        time_ms: row.get(2)?,
        author: text(row, 3)?,
        filter_key: text(row, 4)?,
        kind: EventKind::of(row.get(5)?),
        payload: text(row, 6)?,
    })
}

pub fn find(transaction: &Transaction<'_>, key: &SessionKey, clock: &Clock) -> rusqlite::Result<Option<SessionRow>> {
    let sql = "SELECT sid, held, gen, seq, first_seq, created_ms, updated_ms, meta, expires_ms FROM session
        WHERE app = ?1 AND user = ?2 AND id = ?3";
    let mut statement = transaction.prepare_cached(sql)?;
    let found = |row: &Row<'_>| {
        let sid = row.get(0)?;
        if clock.has_passed(row.get(8)?, || Expired::Session(sid)) {
            return Ok(None);
        }
        Ok(Some(SessionRow { sid, held: row.get(1)?, head: head(row, key.clone(), 2)? }))
    };
    Ok(statement.query_row(params![key.owner.app, key.owner.user, key.id], found).optional()?.flatten())
}

pub fn found(transaction: &Transaction<'_>, key: &SessionKey, clock: &Clock) -> Result<SessionRow, Problem> {
    find(transaction, key, clock)?.ok_or_else(|| StoreError::NotFound(key.clone()).into())
}

pub fn head(row: &Row<'_>, key: SessionKey, at: usize) -> rusqlite::Result<Head> {
    Ok(Head {
        key,
        generation: row.get(at)?,
        seq: row.get(at + 1)?,
        first_seq: row.get(at + 2)?,
        created_ms: row.get(at + 3)?,
        updated_ms: row.get(at + 4)?,
        meta: text(row, at + 5)?,
    })
}

/// Returns the owner of a state: a text that no other scope has.
pub fn owner_of_user(user: &UserKey) -> String {
    // The length keeps `a/b` + `c` apart from `a` + `b/c`.
    format!("{}:{}/{}", user.app.len(), user.app, user.user)
}

pub fn read_state(transaction: &Transaction<'_>, scope: u8, owner: &str, clock: &Clock) -> rusqlite::Result<State> {
    let expires_ms = transaction
        .prepare_cached("SELECT expires_ms FROM state_expiry WHERE scope = ?1 AND owner = ?2")?
        .query_row(params![scope, owner], |row| row.get(0))
        .optional()?;
    if clock.has_passed(expires_ms, || Expired::State(scope, owner.to_owned())) {
        return Ok(State::new());
    }
    let mut statement = transaction.prepare_cached("SELECT key, value FROM state WHERE scope = ?1 AND owner = ?2")?;
    statement.query_map(params![scope, owner], |row| Ok((row.get(0)?, row.get(1)?)))?.collect()
}

pub fn change(transaction: &Transaction<'_>, scope: u8, owner: &str, delta: &Delta) -> rusqlite::Result<()> {
    for (key, value) in delta {
        match value {
            Some(value) => run(
                transaction,
                "INSERT OR REPLACE INTO state (scope, owner, key, value) VALUES (?1, ?2, ?3, ?4)",
                params![scope, owner, key, value],
            )?,
            None => run(
                transaction,
                "DELETE FROM state WHERE scope = ?1 AND owner = ?2 AND key = ?3",
                params![scope, owner, key],
            )?,
        };
    }
    Ok(())
}

pub fn expired_sessions(transaction: &Transaction<'_>, now: i64) -> rusqlite::Result<Vec<i64>> {
    let mut statement = transaction.prepare_cached("SELECT sid FROM session WHERE expires_ms < ?1")?;
    statement.query_map([now], |row| row.get(0))?.collect()
}

pub fn delete_expired_state(transaction: &Transaction<'_>, scope: u8, owner: &str, now: i64) -> rusqlite::Result<()> {
    let sql = "DELETE FROM state_expiry WHERE scope = ?1 AND owner = ?2 AND expires_ms < ?3";
    if run(transaction, sql, params![scope, owner, now])? > 0 {
        run(transaction, "DELETE FROM state WHERE scope = ?1 AND owner = ?2", params![scope, owner])?;
    }
    Ok(())
}

/// Changes the state of a user or an app; what has expired goes first.
pub fn change_owner(
    transaction: &Transaction<'_>,
    scope: u8,
    owner: &str,
    delta: &Delta,
    ttl: Ttl,
    now: i64,
) -> rusqlite::Result<()> {
    if delta.is_empty() {
        return Ok(());
    }
    delete_expired_state(transaction, scope, owner, now)?;
    change(transaction, scope, owner, delta)?;
    match expires_ms(now, ttl) {
        Some(at) => run(
            transaction,
            "INSERT OR REPLACE INTO state_expiry (scope, owner, expires_ms) VALUES (?1, ?2, ?3)",
            params![scope, owner, at],
        )?,
        None => run(transaction, "DELETE FROM state_expiry WHERE scope = ?1 AND owner = ?2", params![scope, owner])?,
    };
    Ok(())
}

pub fn delete(transaction: &Transaction<'_>, sid: i64) -> rusqlite::Result<()> {
    run(transaction, "DELETE FROM state WHERE scope = ?1 AND owner = ?2", params![SESSION, sid.to_string()])?;
    run(transaction, "DELETE FROM event WHERE place >= ?1 << 32 AND place < (?1 + 1) << 32", [sid])?;
    run(transaction, "DELETE FROM session WHERE sid = ?1", [sid])?;
    Ok(())
}

/// Deletes up to `rows` rows of each kind that a session has, or the session where none is left. Returns whether it is gone.
pub fn delete_part(transaction: &Transaction<'_>, sid: i64, rows: u32) -> rusqlite::Result<bool> {
    let mut deleted = 0;
    for sql in [
        "DELETE FROM event WHERE place IN
            (SELECT place FROM event WHERE place >= ?1 << 32 AND place < (?1 + 1) << 32 LIMIT ?2)",
        "DELETE FROM op WHERE sid = ?1 AND id IN (SELECT id FROM op WHERE sid = ?1 LIMIT ?2)",
        "DELETE FROM summary WHERE rowid IN (SELECT rowid FROM summary WHERE sid = ?1 LIMIT ?2)",
        "DELETE FROM state WHERE scope = 2 AND owner = CAST(?1 AS TEXT) AND key IN
            (SELECT key FROM state WHERE scope = 2 AND owner = CAST(?1 AS TEXT) LIMIT ?2)",
    ] {
        deleted += run(transaction, sql, params![sid, rows])?;
    }
    let is_gone = deleted == 0;
    if is_gone {
        run(transaction, "DELETE FROM session WHERE sid = ?1", [sid])?;
    }
    Ok(is_gone)
}

pub fn taken(transaction: &Transaction<'_>, sid: i64, id: &str) -> rusqlite::Result<Option<u64>> {
    let mut statement = transaction.prepare_cached("SELECT seq FROM op WHERE sid = ?1 AND id = ?2")?;
    statement.query_row(params![sid, id], |row| row.get(0)).optional()
}

/// Takes an event and returns its position; 0 for one that only changes state.
pub fn take(transaction: &Transaction<'_>, found: &mut SessionRow, event: &NewEvent) -> rusqlite::Result<u64> {
    change(transaction, SESSION, &found.sid.to_string(), &event.session)?;
    let mut seq = 0;
    if let Some(payload) = &event.payload {
        found.head.seq += 1;
        found.held += 1;
        seq = found.head.seq;
        run(
            transaction,
            "INSERT INTO event (place, id, time_ms, author, filter_key, kind, payload)
                    VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)",
            params![
                found.place(seq),
                event.id,
                event.time_ms,
                event.author,
                event.filter_key,
                event.kind as u8,
                payload
            ],
        )?;
    }
    // An event without a position is kept as long as the one before it.
    run(
        transaction,
        "INSERT INTO op (sid, id, seq, at_seq) VALUES (?1, ?2, ?3, ?4)",
        params![found.sid, event.id, seq, found.head.seq],
    )?;
    Ok(seq)
}

/// Lets the oldest events go where there are too many. Only those are read, and one more.
pub fn evict(transaction: &Transaction<'_>, found: &mut SessionRow, eviction: Eviction) -> rusqlite::Result<()> {
    if eviction.max_events == 0 || found.held <= eviction.max_events {
        return Ok(());
    }
    let covered: u64 = transaction
        .prepare_cached(
            "SELECT coalesce(max(last_seq), 0) FROM summary WHERE sid = ?1 AND filter_key = '' AND version > 0",
        )?
        .query_row([found.sid], |row| row.get(0))?;
    let leaving = Leaving { held: found.held, covered, eviction };
    let mut gone = 0;
    found.head.first_seq = {
        let sql = "SELECT place, kind FROM event WHERE place > ?1 AND place <= ?2 ORDER BY place";
        let mut oldest = transaction.prepare_cached(sql)?;
        let mut rows = oldest.query(found.places_behind(0))?;
        loop {
            let Some(row) = rows.next()? else { break found.head.seq + 1 };
            let seq = seq_of(row.get(0)?);
            if !leaving.takes(gone, seq, EventKind::of(row.get(1)?)) {
                break seq;
            }
            gone += 1;
        }
    };
    if gone > 0 {
        found.held -= gone;
        run(
            transaction,
            "DELETE FROM event WHERE place > ?1 AND place < ?2",
            [found.place(0), found.place(found.head.first_seq)],
        )?;
        run(
            transaction,
            "DELETE FROM op WHERE sid = ?1 AND at_seq < ?2",
            params![found.sid, found.head.first_seq.saturating_sub(KEPT_IDS)],
        )?;
    }
    Ok(())
}

pub fn append(
    transaction: &Transaction<'_>,
    mut found: SessionRow,
    batch: &Append,
    is_replacing: bool,
    now: i64,
) -> Result<Appended, Problem> {
    let (mut seqs, mut repeated) = (Vec::new(), Vec::new());
    let (owner, before) = (&found.head.key.owner.clone(), found.head.seq);
    for event in &batch.events {
        let known = taken(transaction, found.sid, &event.id)?;
        repeated.push(known.is_some());
        let seq = if let Some(seq) = known {
            seq
        } else {
            change_owner(transaction, USER, &owner_of_user(owner), &event.user, batch.ttls[1], now)?;
            change_owner(transaction, APP, &owner.app, &event.app, batch.ttls[2], now)?;
            take(transaction, &mut found, event)?
        };
        seqs.push((seq > 0).then_some(seq));
    }
    if is_replacing && found.head.seq == before {
        found.head.seq += 1;
    }
    evict(transaction, &mut found, batch.eviction)?;
    if found.held == 0 {
        found.head.first_seq = found.head.seq + 1;
    }
    found.head.updated_ms = now;
    let sql = "UPDATE session SET seq = ?2, first_seq = ?3, held = ?4, updated_ms = ?5, expires_ms = ?6 WHERE sid = ?1";
    let (SessionRow { sid, held, .. }, Head { seq, first_seq, .. }) = (&found, &found.head);
    run(transaction, sql, params![sid, seq, first_seq, held, now, expires_ms(now, batch.ttls[0])])?;
    Ok(Appended { seqs, repeated, head: found.head })
}

pub fn summary(row: &Row<'_>) -> rusqlite::Result<StoredSummary> {
    Ok(StoredSummary {
        id: row.get("id")?,
        filter_key: row.get("filter_key")?,
        version: row.get("version")?,
        first_seq: row.get("first_seq")?,
        last_seq: row.get("last_seq")?,
        text: text(row, "text")?,
        record: text(row, "record")?,
        created_ms: row.get("created_ms")?,
        links: Vec::new(),
    })
}
