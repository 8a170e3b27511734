//! The session service: everything that is the same for every store.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use serde::de::IgnoredAny;
use serde_json::value::RawValue;

use super::store::{
    Append, Appended, Create, Delta, EventKind, EventWindow, Eviction, Head, Loaded, NewEvent, NewSummary, Page,
    PutSummary, Scope, SessionEvent, SessionKey, SessionStore, State, StoreError, StoreResult, StoredSummary,
    SummaryQuery, Ttl, UserKey,
};

/// Most events of a session. Source: document 002, `WithSessionEventLimit`.
pub const EVENT_LIMIT: u64 = 1_000;

/// Where state with the prefix `app:`, `user:` or `temp:` goes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Routing {
    /// To the app's state, the user's state, and nowhere.
    #[default]
    Scoped,
    /// To the session's state, under the full name: trpc-agent-go.
    Raw,
}

/// The first event that a session shows.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum UserFirst {
    /// A message of the user: the newest before the window, if there is none in it. Source: trpc-agent-go #679, #737.
    Prepend,
    /// A message of the user; no event without one in the window. Source: document 002.
    Drop,
    /// The first in the window.
    #[default]
    Off,
}

/// How sessions are kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ServiceOptions {
    /// Most events of a session; 0 is no limit.
    pub event_limit: u64,
    /// Whether events without a summary stay, up to twice the limit.
    pub protect_unsummarized: bool,
    /// Time to live of a session after a write.
    pub session_ttl: Ttl,
    /// Time to live of a user's state.
    pub user_state_ttl: Ttl,
    /// Time to live of an app's state.
    pub app_state_ttl: Ttl,
    /// Whether reading extends a session's life.
    pub refresh_on_read: bool,
    /// Where prefixed state goes.
    pub routing: Routing,
}

impl Default for ServiceOptions {
    fn default() -> Self {
        Self {
            event_limit: EVENT_LIMIT,
            protect_unsummarized: false,
            session_ttl: Ttl(0),
            user_state_ttl: Ttl(0),
            app_state_ttl: Ttl(0),
            refresh_on_read: false,
            routing: Routing::Scoped,
        }
    }
}

/// Sessions in a store.
#[derive(Clone)]
pub struct Service {
    store: Arc<dyn SessionStore>,
    options: ServiceOptions,
}

/// A session as it is shown.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Session {
    /// The session without its events.
    pub head: Head,
    /// The events of the window.
    pub events: Vec<SessionEvent>,
    /// Its state, with the app's and the user's under `app:` and `user:`.
    pub state: State,
    /// The newest summary by filter key.
    pub summaries: Vec<StoredSummary>,
}

/// An event as a caller makes it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct EventDraft {
    /// Its id within the session.
    pub id: String,
    /// Its time in milliseconds since 1970.
    pub time_ms: i64,
    /// Its author.
    pub author: String,
    /// Its filter key: the part of the conversation it belongs to.
    pub filter_key: String,
    /// Its JSON text: a chat message or any other value.
    pub payload: Option<String>,
    /// Whether it is a fragment of a streamed event: changes state only.
    pub partial: bool,
    /// Changes of state; names may have prefixes.
    pub state: Delta,
}

const PREFIXES: [&str; 3] = ["app:", "user:", "temp:"];

impl Service {
    /// Returns a service of `store`.
    pub fn new(store: Arc<dyn SessionStore>, options: ServiceOptions) -> Self {
        Self { store, options }
    }

    /// Returns the store.
    pub fn store(&self) -> &dyn SessionStore {
        &*self.store
    }

    fn ttls(&self) -> [Ttl; 3] {
        [self.options.session_ttl, self.options.user_state_ttl, self.options.app_state_ttl]
    }

    fn batch(&self) -> Append {
        let eviction = Eviction { max_events: self.options.event_limit, protect: self.options.protect_unsummarized };
        Append { eviction, ttls: self.ttls(), ..Append::default() }
    }

    /// Creates a session, and returns it with the state of its app and user.
    ///
    /// # Errors
    ///
    /// [`StoreError::AlreadyExists`] without `overwrite`; [`StoreError::Invalid`] for an empty app, user or id.
    pub fn create(
        &self,
        key: &SessionKey,
        generation: String,
        state: Delta,
        meta: String,
        overwrite: bool,
    ) -> StoreResult<Session> {
        check(key)?;
        let [session, user, app] = self.routed(state);
        self.store.create(key, &Create { generation, session, user, app, meta, overwrite, ttls: self.ttls() })?;
        let shown = self.get(key, &EventWindow { last: Some(0), ..EventWindow::default() }, UserFirst::Off)?;
        shown.ok_or_else(|| StoreError::NotFound(key.clone()))
    }

    /// Returns the session as `window` shows it; `None` if it does not exist.
    ///
    /// # Errors
    ///
    /// What the store says; [`StoreError::Invalid`] for an empty app, user or id.
    pub fn get(&self, key: &SessionKey, window: &EventWindow, user_first: UserFirst) -> StoreResult<Option<Session>> {
        check(key)?;
        let refresh = self.options.refresh_on_read.then_some(self.options.session_ttl);
        let with_user = user_first == UserFirst::Prepend;
        let Some(loaded) = self.store.load(key, &EventWindow { with_user, refresh, ..window.clone() })? else {
            return Ok(None);
        };
        let Loaded { head, mut events, session, user, app, summaries } = loaded;
        if user_first != UserFirst::Off {
            let first = events.iter().position(|event| event.kind == EventKind::User);
            events.drain(..first.unwrap_or(events.len()));
        }
        let mut state = session;
        for (prefix, scope) in [("app:", app), ("user:", user)] {
            state.extend(scope.into_iter().map(|(name, value)| (format!("{prefix}{name}"), value)));
        }
        Ok(Some(Session { head, events, state, summaries }))
    }

    /// Returns a user's sessions without events, last written first.
    ///
    /// # Errors
    ///
    /// What the store says; [`StoreError::Invalid`] for an empty app or user.
    pub fn list(&self, user: &UserKey, page: Page) -> StoreResult<Vec<Head>> {
        check_owner(user)?;
        self.store.list(user, page)
    }

    /// Deletes a session with everything of it; returns whether it existed.
    ///
    /// # Errors
    ///
    /// What the store says; [`StoreError::Invalid`] for an empty app, user or id.
    pub fn delete(&self, key: &SessionKey) -> StoreResult<bool> {
        check(key)?;
        self.store.delete(key)
    }

    /// Appends events. Partial ones, and those whose message is empty, change state only.
    ///
    /// # Errors
    ///
    /// As [`SessionStore::append`]; [`StoreError::Invalid`] for an event without an id.
    pub fn append(
        &self,
        key: &SessionKey,
        generation: Option<String>,
        expected_seq: Option<u64>,
        events: Vec<EventDraft>,
    ) -> StoreResult<Appended> {
        check(key)?;
        let batch = Append { generation, expected_seq, events: self.drafted(events)?, ..self.batch() };
        self.store.append(key, &batch)
    }

    /// Replaces all events behind the position `after`.
    ///
    /// # Errors
    ///
    /// As [`Service::append`].
    pub fn replace_tail(
        &self,
        key: &SessionKey,
        generation: Option<String>,
        after: u64,
        expected_seq: u64,
        events: Vec<EventDraft>,
    ) -> StoreResult<Appended> {
        check(key)?;
        let events = self.drafted(events)?;
        self.store.replace_tail(
            key,
            after,
            &Append { generation, expected_seq: Some(expected_seq), events, ..self.batch() },
        )
    }

    fn drafted(&self, events: Vec<EventDraft>) -> StoreResult<Vec<NewEvent>> {
        let draft = |(at, event): (usize, EventDraft)| {
            if event.id.is_empty() {
                return Err(StoreError::invalid(format!("events[{at}].id"), "must not be empty"));
            }
            let [session, user, app] = self.routed(event.state);
            let kind = event.payload.as_deref().and_then(kind).filter(|_| !event.partial);
            Ok(NewEvent {
                payload: kind.and(event.payload),
                kind: kind.unwrap_or_default(),
                id: event.id,
                time_ms: event.time_ms,
                author: event.author,
                filter_key: event.filter_key,
                session,
                user,
                app,
            })
        };
        events.into_iter().enumerate().map(draft).collect()
    }

    /// Splits a change by scope: the session's, the user's and the app's.
    fn routed(&self, delta: Delta) -> [Delta; 3] {
        if self.options.routing == Routing::Raw {
            return [delta, Delta::new(), Delta::new()];
        }
        let mut parts = [Delta::new(), Delta::new(), Delta::new()];
        for (name, value) in delta {
            if let Some(name) = name.strip_prefix("app:") {
                parts[2].insert(name.to_owned(), value);
            } else if let Some(name) = name.strip_prefix("user:") {
                parts[1].insert(name.to_owned(), value);
            } else if !name.starts_with("temp:") {
                parts[0].insert(name, value);
            }
        }
        parts
    }

    /// Returns the state of one scope, with names without its prefix.
    ///
    /// # Errors
    ///
    /// What the store says; [`StoreError::Invalid`] for an empty app, user or id.
    pub fn state(&self, scope: &Scope) -> StoreResult<State> {
        check_scope(scope)?;
        self.store.state(scope)
    }

    /// Changes the state of one scope. Its prefix is removed from names; another scope's is refused before anything is
    /// written.
    ///
    /// # Errors
    ///
    /// As [`SessionStore::update_state`]; [`StoreError::Invalid`] for a name of another scope, or an empty one.
    pub fn update_state(&self, scope: &Scope, delta: Delta) -> StoreResult<()> {
        check_scope(scope)?;
        let (own, ttl) = match scope {
            Scope::App(_) => ("app:", self.options.app_state_ttl),
            Scope::User(_) => ("user:", self.options.user_state_ttl),
            Scope::Session(_) => ("", self.options.session_ttl),
        };
        let is_raw = self.options.routing == Routing::Raw && own.is_empty();
        let mut plain = BTreeMap::new();
        for (name, value) in delta {
            let bare = name.strip_prefix(own).unwrap_or(&name);
            if bare.is_empty() {
                return Err(StoreError::invalid("state", "must have no empty name"));
            }
            if !is_raw && PREFIXES.iter().any(|prefix| bare.starts_with(prefix)) {
                return Err(StoreError::invalid("state", format!("must have no name of another scope, got `{name}`")));
            }
            plain.insert(bare.to_owned(), value);
        }
        self.store.update_state(scope, &plain, ttl)
    }

    /// Replaces the metadata of a session.
    ///
    /// # Errors
    ///
    /// As [`SessionStore::set_meta`].
    pub fn set_meta(&self, key: &SessionKey, meta: &str, expected: Option<&str>) -> StoreResult<()> {
        check(key)?;
        self.store.set_meta(key, meta, expected)
    }

    /// Stores a summary if it is newer than the newest of its key.
    ///
    /// # Errors
    ///
    /// What the store says.
    pub fn put_summary(&self, key: &SessionKey, summary: NewSummary) -> StoreResult<PutSummary> {
        check(key)?;
        self.store.put_summary(key, &NewSummary { ttl: self.options.session_ttl, ..summary })
    }

    /// Returns summaries, newest first.
    ///
    /// # Errors
    ///
    /// What the store says.
    pub fn summaries(&self, key: &SessionKey, query: &SummaryQuery) -> StoreResult<Vec<StoredSummary>> {
        check(key)?;
        self.store.summaries(key, query)
    }

    /// Deletes what has expired; returns the number of sessions.
    ///
    /// # Errors
    ///
    /// What the store says.
    pub fn sweep(&self) -> StoreResult<u64> {
        self.store.sweep()
    }
}

fn check_scope(scope: &Scope) -> StoreResult<()> {
    match scope {
        Scope::App(app) => check_part("app", app),
        Scope::User(user) => check_owner(user),
        Scope::Session(key) => check(key),
    }
}

fn check(key: &SessionKey) -> StoreResult<()> {
    check_owner(&key.owner)?;
    check_part("session_id", &key.id)
}

fn check_owner(user: &UserKey) -> StoreResult<()> {
    check_part("app", &user.app)?;
    check_part("user", &user.user)
}

fn check_part(name: &str, part: &str) -> StoreResult<()> {
    if part.is_empty() { Err(StoreError::invalid(name, "must not be empty")) } else { Ok(()) }
}

/// What an assistant says beside or in place of content: a message of nothing else is a turn, too.
const BESIDE_CONTENT: [&str; 6] =
    ["refusal", "audio", "reasoning_content", "reasoning", "thinking_blocks", "reasoning_details"];

/// Returns the kind of an event, by its JSON text; `None` for an empty chat message and for invalid JSON.
///
/// # Source
///
/// Stored events in document 002: calls, a result, or content. OpenAI, "Chat Completions": `content` is null beside `refusal`, `audio`
/// and calls, of which `function_call` is the older form.
fn kind(payload: &str) -> Option<EventKind> {
    // Raw fields: depth does not matter, nor lone surrogates.
    let Ok(fields) = serde_json::from_str::<HashMap<String, &RawValue>>(payload) else {
        return serde_json::from_str::<IgnoredAny>(payload).is_ok().then_some(EventKind::Other);
    };
    let role = fields.get("role").and_then(|role| serde_json::from_str::<String>(role.get()).ok());
    let Some(role) = role else { return Some(EventKind::Other) };
    let has = |name: &str| fields.get(name).is_some_and(|value| says_something(value.get()));
    if has("tool_call_id") || role == "tool" || role == "function" {
        return Some(EventKind::Result);
    }
    if has("tool_calls") || has("function_call") {
        return Some(EventKind::Calls);
    }
    let kind = match role.as_str() {
        "user" => EventKind::User,
        "assistant" => EventKind::Assistant,
        _ => EventKind::Other,
    };
    let says_other = kind == EventKind::Assistant && BESIDE_CONTENT.into_iter().any(has);
    (has("content") || says_other).then_some(kind)
}

/// Returns whether a JSON text is neither `null` nor an empty text, list or object.
fn says_something(json: &str) -> bool {
    match json.as_bytes() {
        b"null" => false,
        [b'"', inner @ .., _] => !inner.is_empty(),
        [b'[' | b'{', inner @ .., _] => !inner.trim_ascii().is_empty(),
        _ => true,
    }
}

/// Returns whether an event of filter key `event` matches `wanted`: one is a prefix of the other, by levels.
///
/// # Source
///
/// trpc-agent-go, `Event.Filter`: hierarchical in both directions, by `/`; an empty key belongs to all.
pub fn belongs(event: &str, wanted: &str) -> bool {
    let within = |inner: &str, outer: &str| {
        inner.strip_prefix(outer).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
    };
    event.is_empty() || wanted.is_empty() || within(event, wanted) || within(wanted, event)
}
