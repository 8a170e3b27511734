//! Sessions in a file that several processes open.
//!
//! One writer at a time: every write is a transaction that takes the lock when it begins (`BEGIN IMMEDIATE`), so that what it
//! read is still so when it writes. Readers see the last state that was committed and wait for nobody (WAL).

mod locks;
mod schema;

use std::cell::RefCell;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use rusqlite::{
    Connection, ErrorCode, OpenFlags, OptionalExtension, Row, Transaction, TransactionBehavior, named_params, params,
};

use self::locks::Identity;
use super::rules::{Leaving, expires_ms, now_ms};
use super::{
    Append, Appended, Create, Delta, Event, Eviction, Head, KEPT_IDS, Kind, Loaded, NewEvent, NewSummary, Page,
    PutSummary, Scope, SessionKey, SessionStore, State, StoreError, StoreResult, StoredSummary, SummaryQuery, Ttl,
    UserKey, Window,
};

/// How long a write waits for the lock of another process.
const BUSY_SECONDS: u64 = 10;
/// Between two attempts to open a file that others open.
const PAUSE: Duration = Duration::from_millis(10);
/// Connections that are kept for readers.
const READERS: usize = 4;

const APP: u8 = 0;
const USER: u8 = 1;
const SESSION: u8 = 2;

/// Sessions in a file.
#[derive(Debug)]
pub struct Sqlite {
    path: PathBuf,
    shown: String,
    connections: Arc<Connections>,
    /// What the file was when it was opened; `None` in memory.
    identity: Option<Identity>,
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

/// The time of an operation, and what it found expired.
struct Clock {
    now: i64,
    expired: RefCell<Vec<Expired>>,
}

/// What is deleted once it has been seen expired: the clock may be set back, and it must not come back.
enum Expired {
    Session(i64),
    State(u8, String),
}

impl Clock {
    fn new() -> Self {
        Self { now: now_ms(), expired: RefCell::default() }
    }

    fn has_passed(&self, expires_ms: Option<i64>, expired: impl FnOnce() -> Expired) -> bool {
        let has_passed = expires_ms.is_some_and(|at| at < self.now);
        if has_passed {
            self.expired.borrow_mut().push(expired());
        }
        has_passed
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
            make_private(&path, &shown)?;
        }
        // SQLite does not wait for the lock where two processes switch the log on, or bring it in after a crash.
        let start = Instant::now();
        let writer = loop {
            match prepared(&path, &shown, full, is_memory) {
                Err(StoreError::Locked { .. }) if start.elapsed().as_secs() < BUSY_SECONDS => thread::sleep(PAUSE),
                outcome => break outcome?,
            }
        };
        let identity = (!is_memory).then(|| Identity::of(&path));
        let connections = Connections { readers: Mutex::default(), writer: Mutex::new(writer) };
        Ok(Self { path, shown, connections: Arc::new(connections), identity, process: std::process::id() })
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
        self.delete_expired(clock);
        done.map_err(|problem| self.told(problem))
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
            self.check_identity().map_err(|problem| self.told(problem))?;
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
        done.map_err(|problem| self.told(problem))
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

    fn told(&self, problem: Problem) -> StoreError {
        match problem {
            Problem::Sqlite(error) => self.failed(&error),
            Problem::Store(error) => error,
        }
    }
}

/// What ends a transaction.
enum Problem {
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

pub(super) fn parse(url: &str) -> StoreResult<(PathBuf, bool)> {
    let wrong = |problem: &str| StoreError::invalid("url", format!("{problem}\nhint: `sqlite:///sessions.db`"));
    let rest = url.strip_prefix("sqlite:///").ok_or_else(|| wrong("of a file must begin with `sqlite:///`"))?;
    let (path, query) = rest.split_once('?').unwrap_or((rest, ""));
    let full = match query {
        "" | "durability=normal" => false,
        "durability=full" => true,
        _ => return Err(wrong("has an unknown option; known are `durability=normal` and `durability=full`")),
    };
    if path.is_empty() {
        return Err(wrong("names no file"));
    }
    let home = path.strip_prefix("~/").zip(std::env::home_dir());
    Ok((home.map_or_else(|| PathBuf::from(path), |(rest, home)| home.join(rest)), full))
}

/// Returns a connection that writes, to a file with the newest schema.
fn prepared(path: &Path, shown: &str, full: bool, is_memory: bool) -> StoreResult<Connection> {
    let failed = |error: rusqlite::Error| classify(&error, shown);
    let mut writer = connect(path, false).map_err(failed)?;
    let level = if full { "FULL" } else { "NORMAL" };
    writer.pragma_update(None, "synchronous", level).map_err(failed)?;
    // What is deleted is overwritten.
    writer.pragma_update(None, "secure_delete", true).map_err(failed)?;
    if !is_memory {
        let mode: String =
            writer.pragma_update_and_check(None, "journal_mode", "WAL", |row| row.get(0)).map_err(failed)?;
        if !mode.eq_ignore_ascii_case("wal") {
            let problem = format!("its journal is `{mode}`, and write-ahead logging cannot be switched on");
            return Err(StoreError::ReadOnly { store: shown.to_owned(), problem });
        }
    }
    schema::migrate(&mut writer, shown)?;
    Ok(writer)
}

fn connect(path: &Path, is_reader: bool) -> rusqlite::Result<Connection> {
    let mode = if is_reader {
        OpenFlags::SQLITE_OPEN_READ_ONLY
    } else {
        OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_CREATE
    };
    let connection = Connection::open_with_flags(path, mode | OpenFlags::SQLITE_OPEN_NO_MUTEX)?;
    connection.busy_timeout(Duration::from_secs(BUSY_SECONDS))?;
    connection.pragma_update(None, "foreign_keys", true)?;
    Ok(connection)
}

/// Makes the file and its folder where they are missing, for their owner alone.
fn make_private(path: &Path, shown: &str) -> StoreResult<()> {
    let store = shown.to_owned();
    let failed = |error: std::io::Error| match error.kind() {
        std::io::ErrorKind::PermissionDenied | std::io::ErrorKind::ReadOnlyFilesystem => {
            StoreError::ReadOnly { store: store.clone(), problem: error.to_string() }
        }
        std::io::ErrorKind::StorageFull => StoreError::Full { store: store.clone(), problem: error.to_string() },
        _ => StoreError::Failed { store: store.clone(), problem: error.to_string() },
    };
    if let Some(folder) = path.parent().filter(|folder| !folder.as_os_str().is_empty()) {
        std::fs::create_dir_all(folder).map_err(failed)?;
    }
    if path.exists() {
        return Ok(());
    }
    // Not `create_new`, which does not follow a link: SQLite does, and would make the file it names for everybody.
    let mut options = std::fs::OpenOptions::new();
    options.write(true).create(true).truncate(false);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options.open(path).map(drop).map_err(failed)
}

/// File systems on which locks of one machine are not seen by another. Source: Linux, `statfs(2)` and `/proc/mounts`.
#[cfg(target_os = "linux")]
const NETWORK: [&str; 9] = ["nfs", "nfs4", "cifs", "smb3", "smbfs", "9p", "afs", "fuse.sshfs", "ceph"];

#[cfg(target_os = "linux")]
fn refuse_network(path: &Path) -> StoreResult<()> {
    let Ok(mounts) = std::fs::read_to_string("/proc/mounts") else { return Ok(()) };
    let Ok(path) = std::path::absolute(path) else { return Ok(()) };
    let folder = path.ancestors().find_map(|folder| folder.canonicalize().ok()).unwrap_or(path);
    let mounted = mounts.lines().filter_map(|line| {
        let mut fields = line.split(' ').skip(1);
        Some((fields.next()?.replace("\\040", " "), fields.next()?))
    });
    let mount = mounted.filter(|(place, _)| folder.starts_with(place)).max_by_key(|(place, _)| place.len());
    match mount {
        Some((place, kind)) if NETWORK.contains(&kind) => {
            let problem = format!(
                "is on `{place}`, a network file system ({kind}), where locks do not hold\nhint: use a local disk, or Redis"
            );
            Err(StoreError::invalid("url", problem))
        }
        _ => Ok(()),
    }
}

#[cfg(not(target_os = "linux"))]
#[allow(clippy::unnecessary_wraps)] // as on Linux
fn refuse_network(_: &Path) -> StoreResult<()> {
    Ok(())
}

/// Returns what an error of SQLite means to a user.
fn classify(error: &rusqlite::Error, store: &str) -> StoreError {
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

/// A session's row.
struct Found {
    sid: i64,
    head: Head,
    /// How many events it has.
    held: u64,
}

/// Positions of a session. Source: `event.place` in `schema.rs`.
const PLACES: u64 = 1 << 32;

impl Found {
    /// Returns where the event at `seq` is among those of all sessions, or would be.
    fn place(&self, seq: u64) -> i64 {
        (self.sid << 32) + i64::try_from(seq.min(PLACES - 1)).unwrap_or_default()
    }

    /// Returns the places behind `after` up to the last one that it can have.
    fn places_behind(&self, after: u64) -> (i64, i64) {
        (self.place(after), self.place(PLACES - 1))
    }
}

/// Returns the position in its session of the event at `place`.
fn seq_of(place: i64) -> u64 {
    place.unsigned_abs() % PLACES
}

fn event(row: &Row<'_>) -> rusqlite::Result<Event> {
    Ok(Event {
        seq: seq_of(row.get(0)?),
        id: row.get(1)?,
        time_ms: row.get(2)?,
        author: row.get(3)?,
        filter_key: row.get(4)?,
        kind: Kind::of(row.get(5)?),
        payload: row.get(6)?,
    })
}

fn find(transaction: &Transaction<'_>, key: &SessionKey, clock: &Clock) -> rusqlite::Result<Option<Found>> {
    let sql = "SELECT sid, held, gen, seq, first_seq, created_ms, updated_ms, meta, expires_ms FROM session
        WHERE app = ?1 AND user = ?2 AND id = ?3";
    let mut statement = transaction.prepare_cached(sql)?;
    let found = |row: &Row<'_>| {
        let sid = row.get(0)?;
        if clock.has_passed(row.get(8)?, || Expired::Session(sid)) {
            return Ok(None);
        }
        Ok(Some(Found { sid, held: row.get(1)?, head: head(row, key.clone(), 2)? }))
    };
    Ok(statement.query_row(params![key.owner.app, key.owner.user, key.id], found).optional()?.flatten())
}

fn found(transaction: &Transaction<'_>, key: &SessionKey, clock: &Clock) -> Result<Found, Problem> {
    find(transaction, key, clock)?.ok_or_else(|| StoreError::NotFound(key.clone()).into())
}

fn head(row: &Row<'_>, key: SessionKey, at: usize) -> rusqlite::Result<Head> {
    Ok(Head {
        key,
        generation: row.get(at)?,
        seq: row.get(at + 1)?,
        first_seq: row.get(at + 2)?,
        created_ms: row.get(at + 3)?,
        updated_ms: row.get(at + 4)?,
        meta: row.get(at + 5)?,
    })
}

/// Returns the owner of a state: a text that no other scope has.
fn owner_of_user(user: &UserKey) -> String {
    // The length keeps `a/b` + `c` apart from `a` + `b/c`.
    format!("{}:{}/{}", user.app.len(), user.app, user.user)
}

fn read_state(transaction: &Transaction<'_>, scope: u8, owner: &str, clock: &Clock) -> rusqlite::Result<State> {
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

fn change(transaction: &Transaction<'_>, scope: u8, owner: &str, delta: &Delta) -> rusqlite::Result<()> {
    for (key, value) in delta {
        match value {
            Some(value) => transaction
                .prepare_cached("INSERT OR REPLACE INTO state (scope, owner, key, value) VALUES (?1, ?2, ?3, ?4)")?
                .execute(params![scope, owner, key, value])?,
            None => transaction
                .prepare_cached("DELETE FROM state WHERE scope = ?1 AND owner = ?2 AND key = ?3")?
                .execute(params![scope, owner, key])?,
        };
    }
    Ok(())
}

fn delete_expired_state(transaction: &Transaction<'_>, scope: u8, owner: &str, now: i64) -> rusqlite::Result<()> {
    let sql = "DELETE FROM state_expiry WHERE scope = ?1 AND owner = ?2 AND expires_ms < ?3";
    if transaction.prepare_cached(sql)?.execute(params![scope, owner, now])? > 0 {
        transaction
            .prepare_cached("DELETE FROM state WHERE scope = ?1 AND owner = ?2")?
            .execute(params![scope, owner])?;
    }
    Ok(())
}

/// Changes the state of a user or an app; what has expired goes first.
fn change_owner(
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
        Some(at) => transaction
            .prepare_cached("INSERT OR REPLACE INTO state_expiry (scope, owner, expires_ms) VALUES (?1, ?2, ?3)")?
            .execute(params![scope, owner, at])?,
        None => transaction
            .prepare_cached("DELETE FROM state_expiry WHERE scope = ?1 AND owner = ?2")?
            .execute(params![scope, owner])?,
    };
    Ok(())
}

fn delete(transaction: &Transaction<'_>, sid: i64) -> rusqlite::Result<()> {
    transaction
        .prepare_cached("DELETE FROM state WHERE scope = ?1 AND owner = ?2")?
        .execute(params![SESSION, sid.to_string()])?;
    transaction
        .prepare_cached("DELETE FROM event WHERE place >= ?1 << 32 AND place < (?1 + 1) << 32")?
        .execute([sid])?;
    transaction.prepare_cached("DELETE FROM session WHERE sid = ?1")?.execute([sid])?;
    Ok(())
}

fn taken(transaction: &Transaction<'_>, sid: i64, id: &str) -> rusqlite::Result<Option<u64>> {
    let mut statement = transaction.prepare_cached("SELECT seq FROM op WHERE sid = ?1 AND id = ?2")?;
    statement.query_row(params![sid, id], |row| row.get(0)).optional()
}

/// Takes an event and returns its position; 0 for one that only changes state.
fn take(transaction: &Transaction<'_>, found: &mut Found, event: &NewEvent) -> rusqlite::Result<u64> {
    change(transaction, SESSION, &found.sid.to_string(), &event.session)?;
    let mut seq = 0;
    if let Some(payload) = &event.payload {
        found.head.seq += 1;
        found.held += 1;
        seq = found.head.seq;
        transaction
            .prepare_cached(
                "INSERT INTO event (place, id, time_ms, author, filter_key, kind, payload)
                    VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)",
            )?
            .execute(params![
                found.place(seq),
                event.id,
                event.time_ms,
                event.author,
                event.filter_key,
                event.kind as u8,
                payload
            ])?;
    }
    // An event without a position is kept as long as the one before it.
    transaction.prepare_cached("INSERT INTO op (sid, id, seq, at_seq) VALUES (?1, ?2, ?3, ?4)")?.execute(params![
        found.sid,
        event.id,
        seq,
        found.head.seq
    ])?;
    Ok(seq)
}

/// Lets the oldest events go where there are too many. Only those are read, and one more.
fn evict(transaction: &Transaction<'_>, found: &mut Found, eviction: Eviction) -> rusqlite::Result<()> {
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
            if !leaving.takes(gone, seq, Kind::of(row.get(1)?)) {
                break seq;
            }
            gone += 1;
        }
    };
    if gone > 0 {
        found.held -= gone;
        transaction
            .prepare_cached("DELETE FROM event WHERE place > ?1 AND place < ?2")?
            .execute([found.place(0), found.place(found.head.first_seq)])?;
        transaction
            .prepare_cached("DELETE FROM op WHERE sid = ?1 AND at_seq < ?2")?
            .execute(params![found.sid, found.head.first_seq.saturating_sub(KEPT_IDS)])?;
    }
    Ok(())
}

fn append(
    transaction: &Transaction<'_>,
    mut found: Found,
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
    let (Found { sid, held, .. }, Head { seq, first_seq, .. }) = (&found, &found.head);
    transaction.prepare_cached(sql)?.execute(params![
        sid,
        seq,
        first_seq,
        held,
        now,
        expires_ms(now, batch.ttls[0])
    ])?;
    Ok(Appended { seqs, repeated, head: found.head })
}

fn summary(row: &Row<'_>) -> rusqlite::Result<StoredSummary> {
    Ok(StoredSummary {
        id: row.get("id")?,
        filter_key: row.get("filter_key")?,
        version: row.get("version")?,
        first_seq: row.get("first_seq")?,
        last_seq: row.get("last_seq")?,
        text: row.get("text")?,
        record: row.get("record")?,
        created_ms: row.get("created_ms")?,
        links: Vec::new(),
    })
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
            transaction
                .prepare_cached(
                    "INSERT INTO session (app, user, id, gen, meta, created_ms, updated_ms, expires_ms)
                        VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?6, ?7)",
                )?
                .execute(params![
                    key.owner.app,
                    key.owner.user,
                    key.id,
                    create.generation,
                    create.meta,
                    now,
                    expires_ms(now, create.ttls[0])
                ])?;
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
                transaction
                    .prepare_cached("UPDATE session SET expires_ms = ?2 WHERE sid = ?1")?
                    .execute(params![sid, expires_ms(now, ttl)])?;
            }
            let sql = "SELECT place, id, time_ms, author, filter_key, kind, payload FROM event
                WHERE place > ?1 AND place <= ?2 AND time_ms >= ?3 ORDER BY place DESC LIMIT ?4";
            let (first, end) = found.places_behind(window.after);
            let since = window.since_ms.unwrap_or(i64::MIN);
            let last = window.last.map_or(-1, |last| i64::try_from(last).unwrap_or(-1));
            let mut events: Vec<Event> = transaction
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
        self.write(|transaction, clock| {
            let found = find(transaction, key, clock)?;
            if let Some(Found { sid, .. }) = &found {
                delete(transaction, *sid)?;
            }
            Ok(found.is_some())
        })
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
            found.held -= transaction
                .prepare_cached("DELETE FROM event WHERE place > ?1 AND place <= ?2")?
                .execute(found.places_behind(after))? as u64;
            for sql in [
                "DELETE FROM op WHERE sid = ?1 AND seq > ?2",
                "DELETE FROM summary WHERE sid = ?1 AND last_seq > ?2 AND version > 0",
            ] {
                transaction.prepare_cached(sql)?.execute(params![found.sid, after])?;
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
                    transaction
                        .prepare_cached("UPDATE session SET updated_ms = ?2, expires_ms = ?3 WHERE sid = ?1")?
                        .execute(params![sid, now, expires_ms(now, ttl)])?;
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
            transaction.prepare_cached("UPDATE session SET meta = ?2 WHERE sid = ?1")?.execute(params![sid, meta])?;
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
            transaction
                .prepare_cached(
                    "INSERT INTO summary (id, sid, filter_key, version, first_seq, last_seq, text, record, created_ms)
                        VALUES (:id, :sid, :filter_key, :version, :first_seq, :last_seq, :text, :record, :created_ms)",
                )?
                .execute(named_params! {
                    ":id": new.id, ":sid": found.sid, ":filter_key": new.filter_key, ":version": version,
                    ":first_seq": new.first_seq, ":last_seq": new.last_seq, ":text": new.text, ":record": new.record,
                    ":created_ms": now,
                })?;
            for (seq, id) in &new.links {
                transaction
                    .prepare_cached("INSERT INTO summary_event (summary_id, seq, event_id) VALUES (?1, ?2, ?3)")?
                    .execute(params![new.id, seq, id])?;
            }
            if new.failed {
                return Ok(PutSummary::Accepted(0));
            }
            if let Some(placeholder) = &new.placeholder
                && taken(transaction, found.sid, &placeholder.id)?.is_none()
            {
                take(transaction, &mut found, placeholder)?;
            }
            transaction
                .prepare_cached("UPDATE session SET seq = ?2, held = ?3, expires_ms = ?4 WHERE sid = ?1")?
                .execute(params![found.sid, found.head.seq, found.held, expires_ms(now, new.ttl)])?;
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
        self.write(|transaction, clock| {
            let now = clock.now;
            let expired: Vec<i64> = transaction
                .prepare_cached("SELECT sid FROM session WHERE expires_ms < ?1")?
                .query_map([now], |row| row.get(0))?
                .collect::<rusqlite::Result<_>>()?;
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
        })
    }

    fn describe(&self) -> String {
        self.shown.clone()
    }
}
