//! What stores are given and give back.

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
    /// Whose it is.
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

/// Whose state it is.
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

/// How long something lives after it was written, in milliseconds; 0 is for ever.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Ttl(pub u64);

/// What an event is, as far as stores care: where a conversation may be cut, and what is summarised.
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
    /// Stands for a summary that was made here; is neither counted nor summarised.
    Summary = 5,
}

impl EventKind {
    /// Returns the kind that a store wrote as a number.
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
    /// Its time in milliseconds since 1970, as its maker said; orders nothing.
    pub time_ms: i64,
    /// Who made it.
    pub author: String,
    /// Which part of the conversation it is of; levels are joined by `/`.
    pub filter_key: String,
    /// What it is.
    pub kind: EventKind,
    /// Its text, byte for byte as it came.
    pub payload: String,
}

/// An event for a store to take.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct NewEvent {
    /// Its id within the session: a second one of it is not taken.
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

/// How a session begins.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Create {
    /// Its generation, which nobody has used before.
    pub generation: String,
    /// Its state.
    pub session: Delta,
    /// Changes of the user's state.
    pub user: Delta,
    /// Changes of the app's state.
    pub app: Delta,
    /// Its metadata, JSON text.
    pub meta: String,
    /// Whether an existing one is deleted.
    pub overwrite: bool,
    /// How long session, user's state and app's state live.
    pub ttls: [Ttl; 3],
}

/// Which events leave a session that has too many.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Eviction {
    /// Events that stay at most; 0 is no limit. Calls go with their results, so that fewer may stay.
    pub max_events: u64,
    /// Whether those stay that no summary of all contents covers, up to twice as many.
    pub protect: bool,
}

/// A batch of events.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Append {
    /// The generation it is for; `None` for whichever there is.
    pub generation: Option<String>,
    /// The last position that its maker knows of; `None` where it does not matter.
    pub expected_seq: Option<u64>,
    /// The events, in their order.
    pub events: Vec<NewEvent>,
    /// What leaves the session in the same write.
    pub eviction: Eviction,
    /// How long session, user's state and app's state live from now on.
    pub ttls: [Ttl; 3],
}

/// What became of a batch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Appended {
    /// The position of each event, of those taken before too; `None` for one that only changes state.
    pub seqs: Vec<Option<u64>>,
    /// Which of them had been taken before.
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
    /// The last position that was given; 0 before the first.
    pub seq: u64,
    /// The first position that is still there, or will be next.
    pub first_seq: u64,
    /// When it was created, in milliseconds since 1970.
    pub created_ms: i64,
    /// When it was written last.
    pub updated_ms: i64,
    /// Its metadata, JSON text.
    pub meta: String,
}

/// Which events are read.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct EventWindow {
    /// Events behind this position only.
    pub after: u64,
    /// Events of this time and later only, in milliseconds since 1970.
    pub since_ms: Option<i64>,
    /// The newest of them only; 0 reads none.
    pub last: Option<u64>,
    /// The newest message of the user before them, too, where none of them is one.
    pub with_user: bool,
    /// Sets the session's time of expiry anew, where it has one.
    pub refresh: Option<Ttl>,
}

/// One picture of a session.
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

/// Which sessions of a list are read.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Page {
    /// Sessions that are left out at the start.
    pub offset: u64,
    /// Sessions at most; `None` for all.
    pub limit: Option<u64>,
}

/// A summary for a store to take.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct NewSummary {
    /// Its id, which nobody has used before.
    pub id: String,
    /// The generation it was made of.
    pub generation: String,
    /// Which part of the conversation it is of; empty for all.
    pub filter_key: String,
    /// The version it goes on from: 0 for the first of its key.
    pub expected_version: u64,
    /// The first position that it covers.
    pub first_seq: u64,
    /// The last position that it covers.
    pub last_seq: u64,
    /// The summary; what went wrong, of a failed one.
    pub text: String,
    /// Everything else that is known of it, JSON text.
    pub record: String,
    /// Whether it failed: then it is recorded and replaces nothing.
    pub failed: bool,
    /// Positions and ids of the events that it was made of.
    pub links: Vec<(u64, String)>,
    /// An event that stands for it in the session, taken in the same write.
    pub placeholder: Option<NewEvent>,
    /// How long the session lives from now on.
    pub ttl: Ttl,
}

/// What became of a summary.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PutSummary {
    /// It is the newest of its key now, with this version; 0 for a failed one.
    Accepted(u64),
    /// There is a newer one, or one that covers more.
    Stale,
    /// The session was deleted, or created anew.
    Gone,
    /// It covers positions that were not given.
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
    /// Everything else, JSON text.
    pub record: String,
    /// When it was taken, in milliseconds since 1970.
    pub created_ms: i64,
    /// Positions and ids of the events that it was made of, where they were asked for.
    pub links: Vec<(u64, String)>,
}

/// Which summaries are read.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SummaryQuery {
    /// Of this filter key only.
    pub filter_key: Option<String>,
    /// Those that failed, in place of those that did not.
    pub failed: bool,
    /// With their links.
    pub links: bool,
    /// The newest of them only.
    pub last: Option<u64>,
}
