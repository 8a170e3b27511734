//! A store in a file that several processes open.
//!
//! One writer at a time: every write takes the lock at its start (`BEGIN IMMEDIATE`), so that what it reads cannot change.
//! Readers see the last committed state and wait for nobody (WAL).

mod locks;
mod open;
mod operations;
mod problem;
mod rows;
mod schema;

use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use rusqlite::{Connection, Transaction, TransactionBehavior, params};

use self::locks::Identity;
use self::open::{connect, free_reserve, make_private, prepared, refuse_foreign_log, refuse_network, reserve};
use self::problem::{Problem, classify};
use self::rows::{Clock, Expired, SessionRow, delete, delete_expired_state, delete_part, find, run};
use super::{SessionKey, StoreError, StoreResult};

pub(super) use self::open::parse;

/// How long a write waits for the lock of another process.
const BUSY_SECONDS: u64 = 10;
/// How long to wait for readers of the log.
const LOG_WAIT: Duration = Duration::from_secs(1);
/// Pause between attempts to open a file that others open.
const PAUSE: Duration = Duration::from_millis(10);
/// Rows of a kind that are deleted at once when the disk is full; halved until they fit into the log.
const ROWS: u32 = 1024;
/// Idle connections kept for readers.
const READERS: usize = 4;

/// Sessions in a file.
#[derive(Debug)]
pub struct Sqlite {
    path: PathBuf,
    shown: String,
    connections: Arc<Connections>,
    /// The identity of the opened file; `None` in memory.
    identity: Option<Identity>,
    /// Whether it is large enough to have a reserve on disk.
    has_grown: AtomicBool,
    process: u32,
}

#[derive(Debug)]
struct Connections {
    // Dropped before the writer: the last connection checkpoints the log, which a reader may not.
    readers: Mutex<Vec<Connection>>,
    writer: Mutex<Connection>,
}

impl Drop for Sqlite {
    fn drop(&mut self) {
        if self.process != std::process::id() {
            // A fork shares its parent's locks: closing the file would release them while the parent writes.
            std::mem::forget(Arc::clone(&self.connections));
        }
    }
}

impl Sqlite {
    /// Opens the file of `url`; creates it if missing, readable by its owner alone.
    ///
    /// `sqlite:///relative`, `sqlite:////absolute`, `sqlite:///~/home`, `sqlite:///:memory:`. With `?durability=full` every
    /// write is on disk; without it a loss of power can lose the last ones, a killed process none.
    ///
    /// # Errors
    ///
    /// [`StoreError::Invalid`] for another form, [`StoreError::NewerSchema`], and what the file system says. A folder on a
    /// network is refused: its locks do not hold.
    pub fn open(url: &str) -> StoreResult<Self> {
        let (path, full) = parse(url)?;
        let shown = format!("`{}`", path.display());
        let is_memory = path.as_os_str() == ":memory:";
        // Readers are opened later, perhaps from another working directory.
        let path = if is_memory { path } else { std::path::absolute(&path).unwrap_or(path) };
        if !is_memory {
            locks::outlive_other_descriptors();
            refuse_network(&path)?;
            refuse_foreign_log(&path, &shown)?;
            make_private(&path, &shown)?;
        }
        // SQLite does not wait for the lock when two processes enable the log, or recover it after a crash.
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

    /// Checkpoints the log. `TRUNCATE` empties it, so that deleted data is in neither file. `RESTART` keeps its space for
    /// the next writes. A reader blocks both.
    fn checkpoint(&self, mode: &str) -> StoreResult<()> {
        let writer = self.connections.writer.lock().unwrap_or_else(PoisonError::into_inner);
        let done = writer
            .busy_timeout(LOG_WAIT)
            .and_then(|()| writer.query_row(&format!("PRAGMA wal_checkpoint({mode})"), [], |_| Ok(())))
            .and(writer.busy_timeout(Duration::from_secs(BUSY_SECONDS)));
        done.map_err(|error| self.failed(&error))
    }

    /// Deletes a session when the disk is too full to log that at once: it expires, which takes next to no space, then goes
    /// in parts that fit into the log. The rest is left to those who see it expired.
    fn delete_on_full_disk(&self, key: &SessionKey) -> StoreResult<bool> {
        free_reserve(&self.path);
        drop(self.checkpoint("RESTART"));
        let expired = self.write(|transaction, clock| {
            let Some(SessionRow { sid, .. }) = find(transaction, key, clock)? else { return Ok(None) };
            run(transaction, "UPDATE session SET expires_ms = 0 WHERE sid = ?1", [sid])?;
            Ok(Some(sid))
        })?;
        expired.map(|sid| self.delete_parts(sid));
        Ok(expired.is_some())
    }

    /// Deletes an expired session in transactions that fit into the log; returns whether it is gone.
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

    /// Deletes what an operation saw expired. Ignores failures: the operation has succeeded.
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
