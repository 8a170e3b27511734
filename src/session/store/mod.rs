//! Stores of sessions that processes share: one contract, several stores.
//!
//! [`SessionStore`] has the guarantees. [`Memory`] keeps sessions in this process, [`Sqlite`] in a file for several
//! processes, [`Redis`] on a server for several machines. What needs no store (which events a window shows, where deltas go,
//! when a summary is due) is above it, the same for all.

mod error;
mod memory;
#[cfg(feature = "redis")]
mod redis;
mod rules;
#[cfg(feature = "sqlite")]
mod sqlite;
mod types;
mod url;

pub use error::{Retry, StoreError, StoreResult};
pub use memory::Memory;
#[cfg(feature = "redis")]
pub use redis::Redis;
pub use rules::now_ms;
#[cfg(feature = "sqlite")]
pub use sqlite::Sqlite;
pub use types::{
    Append, Appended, Create, Delta, EventKind, EventWindow, Eviction, Head, Loaded, NewEvent, NewSummary, Page,
    PutSummary, Scope, SessionEvent, SessionKey, State, StoredSummary, SummaryQuery, Ttl, UserKey,
};
#[cfg(fuzzing)]
pub use url::read as read_url;
pub use url::{mask_credentials, open, without_credentials};

/// A session knows the ids of events up to so many positions behind its first kept event.
pub const KEPT_IDS: u64 = 1_000;

/// A store of sessions.
///
/// # Guarantees
///
/// - A write happens whole or not at all, and is visible to every process before it is acknowledged.
/// - Events have the positions 1, 2, 3, … in the order in which the store took them, whatever their times say. A position is
///   never given twice, and none is left out but by [`SessionStore::replace_tail`].
/// - An event whose id the session has taken before is not taken again, and neither is its delta: a batch may be repeated
///   after an answer that was lost. An id is forgotten when events leave ([`Eviction`]) and it is more than [`KEPT_IDS`]
///   positions behind the first one that is kept; one that only changed state has the position before it.
/// - What was written for one generation of a session never touches a later one that was created under the same key.
/// - Reading changes nothing, but the time of expiry where the caller asks for that.
/// - A summary replaces an older one only: the next version, and it covers no less. It removes no event.
/// - Session, events, session state and summaries expire together, and are gone at once when they do: what was seen expired
///   stays so when the clock is set back.
///
/// Every method blocks until the store answers.
///
/// # Errors
///
/// Besides its own errors, every method returns those of reaching, reading and writing the store; see [`StoreError`].
#[allow(clippy::missing_errors_doc)] // said above for all of them
pub trait SessionStore: Send + Sync {
    /// Creates a session; `overwrite` deletes an existing one with its summaries, and starts a new generation.
    ///
    /// # Errors
    ///
    /// [`StoreError::AlreadyExists`] for an existing one that has not expired, without `overwrite`.
    fn create(&self, key: &SessionKey, create: &Create) -> StoreResult<Head>;

    /// Returns a consistent snapshot of a session, or `None` if it does not exist.
    fn load(&self, key: &SessionKey, window: &EventWindow) -> StoreResult<Option<Loaded>>;

    /// Returns the sessions of a user, last written first, then by id, descending.
    fn list(&self, user: &UserKey, page: Page) -> StoreResult<Vec<Head>>;

    /// Deletes a session with everything of it; returns whether it existed.
    fn delete(&self, key: &SessionKey) -> StoreResult<bool>;

    /// Appends a batch of events and deltas.
    ///
    /// # Errors
    ///
    /// [`StoreError::NotFound`], [`StoreError::Gone`] for another generation, [`StoreError::Conflict`] where the last position
    /// is not the expected one.
    fn append(&self, key: &SessionKey, batch: &Append) -> StoreResult<Appended>;

    /// Replaces all events behind `after`; needs an expected position.
    ///
    /// Positions continue behind the highest ever given, and summaries that cover more than `after` are deleted. A
    /// replacement without events skips one position, so that whoever expects the last one notices.
    ///
    /// # Errors
    ///
    /// As [`SessionStore::append`].
    fn replace_tail(&self, key: &SessionKey, after: u64, batch: &Append) -> StoreResult<Appended>;

    /// Returns the state of an app, a user or a session; empty if there is none.
    fn state(&self, scope: &Scope) -> StoreResult<State>;

    /// Changes the state of an app, a user or a session. Expired state does not come back.
    ///
    /// # Errors
    ///
    /// [`StoreError::NotFound`] for the state of a session that does not exist.
    fn update_state(&self, scope: &Scope, delta: &Delta, ttl: Ttl) -> StoreResult<()>;

    /// Replaces the metadata of a session if it is still `expected`; `None` matches any.
    ///
    /// # Errors
    ///
    /// [`StoreError::NotFound`]; [`StoreError::Conflict`] where it is something else by now.
    fn set_meta(&self, key: &SessionKey, meta: &str, expected: Option<&str>) -> StoreResult<()>;

    /// Stores a summary if it is the next version and covers no less than the newest; failed ones are recorded separately.
    fn put_summary(&self, key: &SessionKey, summary: &NewSummary) -> StoreResult<PutSummary>;

    /// Returns summaries, newest first.
    fn summaries(&self, key: &SessionKey, query: &SummaryQuery) -> StoreResult<Vec<StoredSummary>>;

    /// Deletes what has expired, which is invisible already; returns the number of sessions.
    fn sweep(&self) -> StoreResult<u64>;

    /// Returns the store's location without credentials, for messages and `status`.
    fn describe(&self) -> String;
}
