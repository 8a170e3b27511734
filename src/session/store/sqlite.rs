//! Sessions in a file that several processes open.
//!
//! One writer at a time: every write is a transaction that takes the lock when it begins (`BEGIN IMMEDIATE`), so that what it
//! read is still so when it writes. Readers see the last state that was committed and wait for nobody (WAL).

mod locks;
mod open;
mod problem;
mod rows;
mod schema;

use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use rusqlite::{Connection, OptionalExtension, Transaction, TransactionBehavior, named_params, params};

use self::locks::Identity;
use self::open::{connect, free_reserve, make_private, prepared, refuse_foreign_log, refuse_network, reserve};
use self::problem::{Problem, classify};
use self::rows::{
    APP, Clock, Expired, Found, SESSION, USER, append, change, change_owner, delete, delete_expired_state, delete_part,
    event, expired_sessions, find, found, head, owner_of_user, read_state, run, summary, take, taken,
};
use super::rules::expires_ms;
use super::{
    Append, Appended, Create, Delta, Head, Loaded, NewSummary, Page, PutSummary, Scope, SessionEvent, SessionKey,
    SessionStore, State, StoreError, StoreResult, StoredSummary, SummaryQuery, Ttl, UserKey, Window,
};

pub(super) use self::open::parse;

/// How long a write waits for the lock of another process.
const BUSY_SECONDS: u64 = 10;
/// How long to wait for those that read what is in the log.
const LOG_WAIT: Duration = Duration::from_secs(1);
/// Between two attempts to open a file that others open.
const PAUSE: Duration = Duration::from_millis(10);
/// Rows of a kind that are deleted at once where the disk is full; halved until they fit into the log.
const ROWS: u32 = 1024;
/// Connections that are kept for readers.
const READERS: usize = 4;

/// Sessions in a file.
#[derive(Debug)]
pub struct Sqlite {
    path: PathBuf,
    shown: String,
    connections: Arc<Connections>,
    /// What the file was when it was opened; `None` in memory.
    identity: Option<Identity>,
    /// Whether it is so large that its reserve has been taken from the disk.
    has_grown: AtomicBool,
    process: u32,
}

#[derive(Debug)]
struct Connections {
    // Closed before the writer: the last one that is closed brings the log into the file, which a reader may not.
    readers: Mutex<Vec<Connection>>,
    writer: Mutex<Connection>,
}

impl Drop for Sqlite {
    fn drop(&mut self) {
        if self.process != std::process::id() {
            // A fork shares the locks of its parent: closing the file would let go of them while the parent writes.
            std::mem::forget(Arc::clone(&self.connections));
        }
    }
}

impl Sqlite {
    /// Opens the file that `url` names, and makes it where there is none, readable by its owner alone.
    ///
    /// `sqlite:///relative`, `sqlite:////absolute`, `sqlite:///~/home`, `sqlite:///:memory:`; `?durability=full` waits until
    /// the disk has each write, without it a loss of power can take the last ones, and a killed process none.
    ///
    /// # Errors
    ///
    /// [`StoreError::Invalid`] for another form, [`StoreError::NewerSchema`], and what the file system says. A folder on a
    /// network is refused: its locks do not hold.
    pub fn open(url: &str) -> StoreResult<Self> {
        let (path, full) = parse(url)?;
        let shown = format!("`{}`", path.display());
        let is_memory = path.as_os_str() == ":memory:";
        // Readers are opened later, when the process may be in another folder.
        let path = if is_memory { path } else { std::path::absolute(&path).unwrap_or(path) };
        if !is_memory {
            locks::outlive_other_descriptors();
            refuse_network(&path)?;
            refuse_foreign_log(&path, &shown)?;
            make_private(&path, &shown)?;
        }
        // SQLite does not wait for the lock where two processes switch the log on, or bring it in after a crash.
        let start = Instant::now();
        let writer = loop {
            match prepared(&path, &shown, full, is_memory) {
                Err(StoreError::Locked { .. }) if start.elapsed().as_secs() < BUSY_SECONDS => thread::sleep(PAUSE),
                Err(StoreError::Full { .. }) if free_reserve(&path) => {}
                outcome => break outcome?,
            }
        };
        let has_grown = AtomicBool::new(reserve(&path));
        let identity = (!is_memory).then(|| Identity::of(&path));
        let connections = Connections { readers: Mutex::default(), writer: Mutex::new(writer) };
        Ok(Self { path, shown, connections: Arc::new(connections), identity, has_grown, process: std::process::id() })
    }

    fn failed(&self, error: &rusqlite::Error) -> StoreError {
        classify(error, &self.shown)
    }

    /// A connection that a process inherits by `fork` shares locks with its parent, and damages the file.
    fn check_process(&self) -> StoreResult<()> {
        if self.process == std::process::id() {
            return Ok(());
        }
        let problem = "was opened before this process was forked\nhint: open it after the fork";
        Err(StoreError::invalid("store", problem))
    }

    fn check_identity(&self) -> Result<(), Problem> {
        match &self.identity {
            Some(identity) if !identity.is_still() => Err(StoreError::Replaced { store: self.shown.clone() }.into()),
            _ => Ok(()),
        }
    }

    fn write<T>(&self, work: impl FnOnce(&Transaction<'_>, &Clock) -> Result<T, Problem>) -> StoreResult<T> {
        self.check_process()?;
        let clock = Clock::new();
        let mut writer: MutexGuard<'_, Connection> =
            self.connections.writer.lock().unwrap_or_else(PoisonError::into_inner);
        let done = (|| {
            let transaction = writer.transaction_with_behavior(TransactionBehavior::Immediate)?;
            self.check_identity()?;
            let value = work(&transaction, &clock)?;
            transaction.commit()?;
            Ok(value)
        })();
        drop(writer);
        if done.is_ok() && !self.has_grown.load(Ordering::Relaxed) {
            self.has_grown.store(reserve(&self.path), Ordering::Relaxed);
        }
        self.delete_expired(clock);
        done.map_err(|problem| self.error_of(problem))
    }

    /// Brings the log into the file. `TRUNCATE` empties it: what was deleted is in neither then. `RESTART` keeps its room on the
    /// disk for the next writes. While somebody reads on, the log stays.
    fn checkpoint(&self, mode: &str) -> StoreResult<()> {
        let writer = self.connections.writer.lock().unwrap_or_else(PoisonError::into_inner);
        let done = writer
            .busy_timeout(LOG_WAIT)
            .and_then(|()| writer.query_row(&format!("PRAGMA wal_checkpoint({mode})"), [], |_| Ok(())))
            .and(writer.busy_timeout(Duration::from_secs(BUSY_SECONDS)));
        done.map_err(|error| self.failed(&error))
    }

    /// Deletes a session where the disk has no room to log it as a whole: it expires, which takes next to none, then goes bit by
    /// bit, in the room that the log has. What cannot go now is left to those who see it expired.
    fn delete_on_full_disk(&self, key: &SessionKey) -> StoreResult<bool> {
        free_reserve(&self.path);
        drop(self.checkpoint("RESTART"));
        let expired = self.write(|transaction, clock| {
            let Some(Found { sid, .. }) = find(transaction, key, clock)? else { return Ok(None) };
            run(transaction, "UPDATE session SET expires_ms = 0 WHERE sid = ?1", [sid])?;
            Ok(Some(sid))
        })?;
        expired.map(|sid| self.delete_parts(sid));
        Ok(expired.is_some())
    }

    /// Deletes an expired session in transactions that fit into the log. Returns whether it is gone.
    fn delete_parts(&self, sid: i64) -> bool {
        let mut rows = ROWS;
        while rows > 0 {
            drop(self.checkpoint("RESTART"));
            match self.write(|transaction, _| Ok(delete_part(transaction, sid, rows)?)) {
                Ok(true) => return true,
                Ok(false) => {}
                Err(_) => rows /= 2,
            }
        }
        false
    }

    fn read<T>(&self, work: impl FnOnce(&Transaction<'_>, &Clock) -> Result<T, Problem>) -> StoreResult<T> {
        self.check_process()?;
        if self.identity.is_none() {
            return self.write(work);
        }
        let readers = || self.connections.readers.lock().unwrap_or_else(PoisonError::into_inner);
        let taken = readers().pop();
        let mut reader = if let Some(reader) = taken {
            reader
        } else {
            self.check_identity().map_err(|problem| self.error_of(problem))?;
            connect(&self.path, true).map_err(|error| self.failed(&error))?
        };
        let clock = Clock::new();
        let done = (|| {
            let transaction = reader.transaction_with_behavior(TransactionBehavior::Deferred)?;
            self.check_identity()?;
            let value = work(&transaction, &clock)?;
            transaction.finish()?;
            Ok(value)
        })();
        let mut readers = readers();
        if readers.len() < READERS {
            readers.push(reader);
        }
        drop(readers);
        self.delete_expired(clock);
        done.map_err(|problem| self.error_of(problem))
    }

    /// Deletes what an operation saw expired. A failure is not that operation's: it has said so already.
    fn delete_expired(&self, clock: Clock) {
        let Clock { now, expired } = clock;
        let expired = expired.into_inner();
        if expired.is_empty() {
            return;
        }
        drop(self.write(|transaction, _| {
            for one in &expired {
                match one {
                    Expired::Session(sid) => {
                        let sql = "SELECT 1 FROM session WHERE sid = ?1 AND expires_ms < ?2";
                        if transaction.prepare_cached(sql)?.exists(params![sid, now])? {
                            delete(transaction, *sid)?;
                        }
                    }
                    Expired::State(scope, owner) => delete_expired_state(transaction, *scope, owner, now)?,
                }
            }
            Ok(())
        }));
    }

    fn error_of(&self, problem: Problem) -> StoreError {
        match problem {
            Problem::Sqlite(error) => self.failed(&error),
            Problem::Store(error) => error,
        }
    }
}

impl SessionStore for Sqlite {
    fn create(&self, key: &SessionKey, create: &Create) -> StoreResult<Head> {
        self.write(|transaction, clock| {
            let now = clock.now;
            if !create.overwrite && find(transaction, key, clock)?.is_some() {
                return Err(StoreError::AlreadyExists(key.clone()).into());
            }
            // One that has expired and was not swept, too.
            let old = transaction
                .prepare_cached("SELECT sid FROM session WHERE app = ?1 AND user = ?2 AND id = ?3")?
                .query_row(params![key.owner.app, key.owner.user, key.id], |row| row.get(0))
                .optional()?;
            if let Some(sid) = old {
                delete(transaction, sid)?;
            }
            run(
                transaction,
                "INSERT INTO session (app, user, id, gen, meta, created_ms, updated_ms, expires_ms)
                        VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?6, ?7)",
                params![
                    key.owner.app,
                    key.owner.user,
                    key.id,
                    create.generation,
                    create.meta,
                    now,
                    expires_ms(now, create.ttls[0])
                ],
            )?;
            change(transaction, SESSION, &transaction.last_insert_rowid().to_string(), &create.session)?;
            change_owner(transaction, USER, &owner_of_user(&key.owner), &create.user, create.ttls[1], now)?;
            change_owner(transaction, APP, &key.owner.app, &create.app, create.ttls[2], now)?;
            Ok(Head {
                key: key.clone(),
                generation: create.generation.clone(),
                seq: 0,
                first_seq: 1,
                created_ms: now,
                updated_ms: now,
                meta: create.meta.clone(),
            })
        })
    }

    fn load(&self, key: &SessionKey, window: &Window) -> StoreResult<Option<Loaded>> {
        let load = |transaction: &Transaction<'_>, clock: &Clock| {
            let now = clock.now;
            let Some(found) = find(transaction, key, clock)? else { return Ok(None) };
            let sid = found.sid;
            if let Some(ttl) = window.refresh {
                run(
                    transaction,
                    "UPDATE session SET expires_ms = ?2 WHERE sid = ?1",
                    params![sid, expires_ms(now, ttl)],
                )?;
            }
            let sql = "SELECT place, id, time_ms, author, filter_key, kind, payload FROM event
                WHERE place > ?1 AND place <= ?2 AND time_ms >= ?3 ORDER BY place DESC LIMIT ?4";
            let (first, end) = found.places_behind(window.after);
            let since = window.since_ms.unwrap_or(i64::MIN);
            let last = window.last.map_or(-1, |last| i64::try_from(last).unwrap_or(-1));
            let mut events: Vec<SessionEvent> = transaction
                .prepare_cached(sql)?
                .query_map(params![first, end, since, last], event)?
                .collect::<rusqlite::Result<_>>()?;
            if let Some(first) = window.lacks_user(&events) {
                let sql = "SELECT place, id, time_ms, author, filter_key, kind, payload FROM event
                    WHERE kind = 1 AND place > ?1 AND place < ?2 ORDER BY place DESC LIMIT 1";
                let places = [found.place(0), found.place(first)];
                events.extend(transaction.prepare_cached(sql)?.query_row(places, event).optional()?);
            }
            events.reverse();
            let newest = "SELECT * FROM summary s WHERE sid = ?1 AND version > 0 AND version =
                (SELECT max(version) FROM summary n WHERE n.sid = s.sid AND n.filter_key = s.filter_key) ORDER BY filter_key";
            let summaries =
                transaction.prepare_cached(newest)?.query_map([sid], summary)?.collect::<rusqlite::Result<_>>()?;
            Ok(Some(Loaded {
                events,
                session: read_state(transaction, SESSION, &sid.to_string(), clock)?,
                user: read_state(transaction, USER, &owner_of_user(&key.owner), clock)?,
                app: read_state(transaction, APP, &key.owner.app, clock)?,
                summaries,
                head: found.head,
            }))
        };
        if window.refresh.is_some() { self.write(load) } else { self.read(load) }
    }

    fn list(&self, user: &UserKey, page: Page) -> StoreResult<Vec<Head>> {
        self.read(|transaction, clock| {
            let sql = "SELECT id, gen, seq, first_seq, created_ms, updated_ms, meta FROM session
                WHERE app = ?1 AND user = ?2 AND (expires_ms IS NULL OR expires_ms >= ?3)
                ORDER BY updated_ms DESC, id DESC LIMIT ?4 OFFSET ?5";
            let limit = page.limit.map_or(-1, |limit| i64::try_from(limit).unwrap_or(-1));
            let offset = i64::try_from(page.offset).unwrap_or(i64::MAX);
            let mut statement = transaction.prepare_cached(sql)?;
            let heads = statement.query_map(params![user.app, user.user, clock.now, limit, offset], |row| {
                head(row, SessionKey { owner: user.clone(), id: row.get(0)? }, 1)
            })?;
            let heads = heads.collect::<rusqlite::Result<_>>()?;
            let sql = "SELECT sid FROM session WHERE app = ?1 AND user = ?2 AND expires_ms < ?3";
            let mut statement = transaction.prepare_cached(sql)?;
            for sid in statement.query_map(params![user.app, user.user, clock.now], |row| row.get(0))? {
                clock.expired.borrow_mut().push(Expired::Session(sid?));
            }
            Ok(heads)
        })
    }

    fn delete(&self, key: &SessionKey) -> StoreResult<bool> {
        let deleted = self.write(|transaction, clock| {
            let found = find(transaction, key, clock)?;
            if let Some(Found { sid, .. }) = &found {
                delete(transaction, *sid)?;
            }
            Ok(found.is_some())
        });
        if let Err(StoreError::Full { .. }) = deleted { self.delete_on_full_disk(key) } else { deleted }
    }

    fn append(&self, key: &SessionKey, batch: &Append) -> StoreResult<Appended> {
        self.write(|transaction, clock| {
            let now = clock.now;
            let found = found(transaction, key, clock)?;
            batch.check(&found.head)?;
            append(transaction, found, batch, false, now)
        })
    }

    fn replace_tail(&self, key: &SessionKey, after: u64, batch: &Append) -> StoreResult<Appended> {
        self.write(|transaction, clock| {
            let now = clock.now;
            let mut found = found(transaction, key, clock)?;
            batch.check(&found.head)?;
            found.held -=
                run(transaction, "DELETE FROM event WHERE place > ?1 AND place <= ?2", found.places_behind(after))?
                    as u64;
            for sql in [
                "DELETE FROM op WHERE sid = ?1 AND seq > ?2",
                "DELETE FROM summary WHERE sid = ?1 AND last_seq > ?2 AND version > 0",
            ] {
                run(transaction, sql, params![found.sid, after])?;
            }
            if found.held == 0 {
                found.head.first_seq = found.head.seq + 1;
            }
            append(transaction, found, batch, true, now)
        })
    }

    fn state(&self, scope: &Scope) -> StoreResult<State> {
        self.read(|transaction, clock| {
            Ok(match scope {
                Scope::App(app) => read_state(transaction, APP, app, clock)?,
                Scope::User(user) => read_state(transaction, USER, &owner_of_user(user), clock)?,
                Scope::Session(key) => match find(transaction, key, clock)? {
                    Some(Found { sid, .. }) => read_state(transaction, SESSION, &sid.to_string(), clock)?,
                    None => State::new(),
                },
            })
        })
    }

    fn update_state(&self, scope: &Scope, delta: &Delta, ttl: Ttl) -> StoreResult<()> {
        self.write(|transaction, clock| {
            let now = clock.now;
            match scope {
                Scope::App(app) => change_owner(transaction, APP, app, delta, ttl, now)?,
                Scope::User(user) => change_owner(transaction, USER, &owner_of_user(user), delta, ttl, now)?,
                Scope::Session(key) => {
                    let Found { sid, .. } = found(transaction, key, clock)?;
                    change(transaction, SESSION, &sid.to_string(), delta)?;
                    run(
                        transaction,
                        "UPDATE session SET updated_ms = ?2, expires_ms = ?3 WHERE sid = ?1",
                        params![sid, now, expires_ms(now, ttl)],
                    )?;
                }
            }
            Ok(())
        })
    }

    fn set_meta(&self, key: &SessionKey, meta: &str, expected: Option<&str>) -> StoreResult<()> {
        self.write(|transaction, clock| {
            let Found { sid, head, .. } = found(transaction, key, clock)?;
            if let Some(expected) = expected.filter(|expected| *expected != head.meta) {
                let expected = expected.to_owned();
                return Err(StoreError::Conflict { key: key.clone(), expected, actual: head.meta }.into());
            }
            run(transaction, "UPDATE session SET meta = ?2 WHERE sid = ?1", params![sid, meta])?;
            Ok(())
        })
    }

    fn put_summary(&self, key: &SessionKey, new: &NewSummary) -> StoreResult<PutSummary> {
        self.write(|transaction, clock| {
            let now = clock.now;
            let Some(mut found) = find(transaction, key, clock)? else { return Ok(PutSummary::Gone) };
            let newest = "SELECT coalesce(max(version), 0), coalesce(max(last_seq), 0) FROM summary
                WHERE sid = ?1 AND filter_key = ?2 AND version > 0";
            let (version, covered): (u64, u64) = transaction
                .prepare_cached(newest)?
                .query_row(params![found.sid, new.filter_key], |row| Ok((row.get(0)?, row.get(1)?)))?;
            if let Some(refusal) = new.refusal(&found.head, version, covered) {
                return Ok(refusal);
            }
            let version = if new.failed { 0 } else { version + 1 };
            run(
                transaction,
                "INSERT INTO summary (id, sid, filter_key, version, first_seq, last_seq, text, record, created_ms)
                        VALUES (:id, :sid, :filter_key, :version, :first_seq, :last_seq, :text, :record, :created_ms)",
                named_params! {
                    ":id": new.id, ":sid": found.sid, ":filter_key": new.filter_key, ":version": version,
                    ":first_seq": new.first_seq, ":last_seq": new.last_seq, ":text": new.text, ":record": new.record,
                    ":created_ms": now,
                },
            )?;
            for (seq, id) in &new.links {
                run(
                    transaction,
                    "INSERT INTO summary_event (summary_id, seq, event_id) VALUES (?1, ?2, ?3)",
                    params![new.id, seq, id],
                )?;
            }
            if new.failed {
                return Ok(PutSummary::Accepted(0));
            }
            if let Some(placeholder) = &new.placeholder
                && taken(transaction, found.sid, &placeholder.id)?.is_none()
            {
                take(transaction, &mut found, placeholder)?;
            }
            run(
                transaction,
                "UPDATE session SET seq = ?2, held = ?3, expires_ms = ?4 WHERE sid = ?1",
                params![found.sid, found.head.seq, found.held, expires_ms(now, new.ttl)],
            )?;
            Ok(PutSummary::Accepted(version))
        })
    }

    fn summaries(&self, key: &SessionKey, query: &SummaryQuery) -> StoreResult<Vec<StoredSummary>> {
        self.read(|transaction, clock| {
            let Some(Found { sid, .. }) = find(transaction, key, clock)? else { return Ok(Vec::new()) };
            let sql = "SELECT * FROM summary WHERE sid = ?1 AND (version = 0) = ?2 AND (?3 IS NULL OR filter_key = ?3)
                ORDER BY rowid DESC LIMIT ?4";
            let limit = query.last.map_or(-1, |last| i64::try_from(last).unwrap_or(-1));
            let mut found: Vec<StoredSummary> = transaction
                .prepare_cached(sql)?
                .query_map(params![sid, query.failed, query.filter_key, limit], summary)?
                .collect::<rusqlite::Result<_>>()?;
            for summary in found.iter_mut().filter(|_| query.links) {
                let sql = "SELECT seq, event_id FROM summary_event WHERE summary_id = ?1 ORDER BY seq";
                summary.links = transaction
                    .prepare_cached(sql)?
                    .query_map([&summary.id], |row| Ok((row.get(0)?, row.get(1)?)))?
                    .collect::<rusqlite::Result<_>>()?;
            }
            Ok(found)
        })
    }

    fn sweep(&self) -> StoreResult<u64> {
        let swept = self.write(|transaction, clock| {
            let now = clock.now;
            let expired = expired_sessions(transaction, now)?;
            for sid in &expired {
                delete(transaction, *sid)?;
            }
            transaction.execute(
                "DELETE FROM state WHERE EXISTS (SELECT 1 FROM state_expiry e
                    WHERE e.scope = state.scope AND e.owner = state.owner AND e.expires_ms < ?1)",
                [now],
            )?;
            transaction.execute("DELETE FROM state_expiry WHERE expires_ms < ?1", [now])?;
            Ok(expired.len() as u64)
        });
        if let Err(StoreError::Full { .. }) = swept {
            free_reserve(&self.path);
            let expired = self.read(|transaction, clock| Ok(expired_sessions(transaction, clock.now)?))?;
            let gone = expired.iter().filter(|sid| self.delete_parts(**sid)).count();
            return if gone > 0 { Ok(gone as u64) } else { swept };
        }
        self.checkpoint("TRUNCATE")?;
        reserve(&self.path);
        swept
    }

    fn describe(&self) -> String {
        self.shown.clone()
    }
}
