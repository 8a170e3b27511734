//! The arguments and results of stores.

use std::collections::BTreeMap;

/// An app and a user.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct UserKey {
    /// The app.
    pub app: String,
    /// The user.
    pub user: String,
}

/// A session of a user.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct SessionKey {
    /// Its owner.
    pub owner: UserKey,
    /// Its id among them.
    pub id: String,
}

impl SessionKey {
    /// Returns a key.
    pub fn new(app: impl Into<String>, user: impl Into<String>, id: impl Into<String>) -> Self {
        Self { owner: UserKey { app: app.into(), user: user.into() }, id: id.into() }
    }
}

impl std::fmt::Display for SessionKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}/{}/{}", self.owner.app, self.owner.user, self.id)
    }
}

/// The scope of a state.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Scope {
    /// All users of an app.
    App(String),
    /// All sessions of a user.
    User(UserKey),
    /// One session.
    Session(SessionKey),
}

/// State: bytes by name.
pub type State = BTreeMap<String, Vec<u8>>;

/// A change of state: new bytes by name, `None` deletes.
pub type Delta = BTreeMap<String, Option<Vec<u8>>>;

/// Time to live after a write, in milliseconds; 0 is for ever.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Ttl(pub u64);

/// The kind of an event: it decides where a conversation may be cut, and what is summarised.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum EventKind {
    /// Anything else; stands alone.
    Other = 0,
    /// A message of the user.
    User = 1,
    /// A message of the assistant.
    Assistant = 2,
    /// A message of the assistant with tool calls: stays with the results behind it.
    Calls = 3,
    /// The result of a tool call.
    Result = 4,
    /// A summary of this service; neither counted nor summarised.
    Summary = 5,
}

impl EventKind {
    /// Returns the kind of a stored number.
    pub fn of(number: u8) -> Self {
        match number {
            1 => Self::User,
            2 => Self::Assistant,
            3 => Self::Calls,
            4 => Self::Result,
            5 => Self::Summary,
            _ => Self::Other,
        }
    }
}

/// An event that a store holds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SessionEvent {
    /// Its position, from 1.
    pub seq: u64,
    /// Its id within the session.
    pub id: String,
    /// Its time in milliseconds since 1970, as its maker said; does not order events.
    pub time_ms: i64,
    /// Who made it.
    pub author: String,
    /// Which part of the conversation it is of; levels are joined by `/`.
    pub filter_key: String,
    /// What it is.
    pub kind: EventKind,
    /// Its text, unchanged.
    pub payload: String,
}

/// An event for a store to take.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct NewEvent {
    /// Its id within the session: an id is accepted once.
    pub id: String,
    /// Its time in milliseconds since 1970.
    pub time_ms: i64,
    /// Who made it.
    pub author: String,
    /// Which part of the conversation it is of.
    pub filter_key: String,
    /// What it is.
    pub kind: EventKind,
    /// Its text; `None` for an event that only changes state.
    pub payload: Option<String>,
    /// Changes of the session's state.
    pub session: Delta,
    /// Changes of the user's state.
    pub user: Delta,
    /// Changes of the app's state.
    pub app: Delta,
}

#[allow(clippy::derivable_impls)] // the numbers of the kinds are stored; which one is the default is not their matter
impl Default for EventKind {
    fn default() -> Self {
        Self::Other
    }
}

/// A new session.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Create {
    /// Its generation, never used before.
    pub generation: String,
    /// Its state.
    pub session: Delta,
    /// Changes of the user's state.
    pub user: Delta,
    /// Changes of the app's state.
    pub app: Delta,
    /// Its metadata, JSON text.
    pub meta: String,
    /// Whether to delete an existing one.
    pub overwrite: bool,
    /// Times to live of session, user's state and app's state.
    pub ttls: [Ttl; 3],
}

/// Which events leave a session with too many.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Eviction {
    /// Most events that stay; 0 is no limit. Calls go with their results, so fewer may stay.
    pub max_events: u64,
    /// Whether events stay that no full summary covers, up to twice as many.
    pub protect: bool,
}

/// A batch of events.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Append {
    /// The expected generation; `None` for any.
    pub generation: Option<String>,
    /// The expected last position; `None` for any.
    pub expected_seq: Option<u64>,
    /// The events, in order.
    pub events: Vec<NewEvent>,
    /// The eviction in the same write.
    pub eviction: Eviction,
    /// Times to live of session, user's state and app's state from now on.
    pub ttls: [Ttl; 3],
}

/// The result of a batch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Appended {
    /// The position of each event, with repeated ones; `None` for one that only changes state.
    pub seqs: Vec<Option<u64>>,
    /// Which of them are repeated.
    pub repeated: Vec<bool>,
    /// The session afterwards.
    pub head: Head,
}

/// A session without its events.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Head {
    /// Its key.
    pub key: SessionKey,
    /// Its generation.
    pub generation: String,
    /// The last position given; 0 before the first.
    pub seq: u64,
    /// The first position that is kept, or will be next.
    pub first_seq: u64,
    /// When it was created, in milliseconds since 1970.
    pub created_ms: i64,
    /// When it was written last.
    pub updated_ms: i64,
    /// Its metadata, JSON text.
    pub meta: String,
}

/// A selection of events.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct EventWindow {
    /// Only events behind this position.
    pub after: u64,
    /// Only events from this time on, in milliseconds since 1970.
    pub since_ms: Option<i64>,
    /// Only the newest of them; 0 reads none.
    pub last: Option<u64>,
    /// Also the newest message of the user before them, if none of them is one.
    pub with_user: bool,
    /// Extends the session's life, if it expires.
    pub refresh: Option<Ttl>,
}

/// A snapshot of a session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Loaded {
    /// The session.
    pub head: Head,
    /// The events of the window, in the order of their positions.
    pub events: Vec<SessionEvent>,
    /// The session's state.
    pub session: State,
    /// The user's state.
    pub user: State,
    /// The app's state.
    pub app: State,
    /// The newest summary of each filter key, without links.
    pub summaries: Vec<StoredSummary>,
}

/// A page of a list of sessions.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Page {
    /// Sessions skipped at the start.
    pub offset: u64,
    /// Most sessions; `None` for all.
    pub limit: Option<u64>,
}

/// A summary for a store to take.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct NewSummary {
    /// Its id, never used before.
    pub id: String,
    /// The generation it covers.
    pub generation: String,
    /// Which part of the conversation it is of; empty for all.
    pub filter_key: String,
    /// The version before it: 0 for the first of its key.
    pub expected_version: u64,
    /// The first position that it covers.
    pub first_seq: u64,
    /// The last position that it covers.
    pub last_seq: u64,
    /// The summary, or the error of a failed one.
    pub text: String,
    /// Further fields, JSON text.
    pub record: String,
    /// Whether it failed: it is recorded and replaces nothing.
    pub failed: bool,
    /// Positions and ids of the events it covers.
    pub links: Vec<(u64, String)>,
    /// An event for it in the session, in the same write.
    pub placeholder: Option<NewEvent>,
    /// Time to live of the session from now on.
    pub ttl: Ttl,
}

/// The result of storing a summary.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PutSummary {
    /// It is now the newest of its key, with this version; 0 for a failed one.
    Accepted(u64),
    /// There is a newer one, or one that covers more.
    Stale,
    /// The session was deleted, or created anew.
    Gone,
    /// It covers positions that do not exist.
    Beyond,
}

/// A summary that a store holds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredSummary {
    /// Its id.
    pub id: String,
    /// Which part of the conversation it is of.
    pub filter_key: String,
    /// Its version, from 1; 0 of a failed one.
    pub version: u64,
    /// The first position that it covers.
    pub first_seq: u64,
    /// The last position that it covers.
    pub last_seq: u64,
    /// The summary, or what went wrong.
    pub text: String,
    /// Further fields, JSON text.
    pub record: String,
    /// When it was stored, in milliseconds since 1970.
    pub created_ms: i64,
    /// Positions and ids of its events, if asked for.
    pub links: Vec<(u64, String)>,
}

/// A selection of summaries.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SummaryQuery {
    /// Only of this filter key.
    pub filter_key: Option<String>,
    /// Only failed ones instead of others.
    pub failed: bool,
    /// Whether with their links.
    pub links: bool,
    /// Only the newest of them.
    pub last: Option<u64>,
}
