//! `SessionService`: sessions in a store, for threads and for asyncio.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, Once, OnceLock, PoisonError};

use pyo3::IntoPyObjectExt;
use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use pyo3::types::PyString;

use crate::session::service::{self, EventDraft, Routing, Service, ServiceOptions, UserFirst};
use crate::session::store::{
    self, Appended, EventKind, EventWindow, Head, NewEvent, NewSummary, Page, PutSummary, Scope, SessionEvent,
    SessionKey, StoreError, StoreResult, StoredSummary, SummaryQuery, Ttl, UserKey,
};

use super::convert::without_surrogates;
use super::errors::of_store;

/// Threads that wait for stores in place of event loops, at most.
const MAX_WAITING_THREADS: usize = 16;

type Bytes = BTreeMap<String, Vec<u8>>;

/// A session without its events.
#[derive(IntoPyObject)]
struct HeadOut {
    app: String,
    user: String,
    id: String,
    generation: String,
    seq: u64,
    first_seq: u64,
    created_ms: i64,
    updated_ms: i64,
    meta: String,
}

impl From<Head> for HeadOut {
    fn from(head: Head) -> Self {
        let Head { key: SessionKey { owner: UserKey { app, user }, id }, generation, seq, first_seq, .. } = head;
        let Head { created_ms, updated_ms, meta, .. } = head;
        Self { app, user, id, generation, seq, first_seq, created_ms, updated_ms, meta }
    }
}

#[derive(IntoPyObject)]
struct EventOut {
    seq: u64,
    id: String,
    time_ms: i64,
    author: String,
    filter_key: String,
    is_summary: bool,
    payload: String,
}

impl From<SessionEvent> for EventOut {
    fn from(event: SessionEvent) -> Self {
        let SessionEvent { seq, id, time_ms, author, filter_key, kind, payload } = event;
        Self { seq, id, time_ms, author, filter_key, is_summary: kind == EventKind::Summary, payload }
    }
}

#[derive(IntoPyObject)]
struct SummaryOut {
    id: String,
    filter_key: String,
    version: u64,
    first_seq: u64,
    last_seq: u64,
    text: String,
    record: String,
    created_ms: i64,
    links: Vec<(u64, String)>,
}

impl From<StoredSummary> for SummaryOut {
    fn from(summary: StoredSummary) -> Self {
        let StoredSummary { id, filter_key, version, first_seq, last_seq, text, record, created_ms, links } = summary;
        Self { id, filter_key, version, first_seq, last_seq, text, record, created_ms, links }
    }
}

#[derive(IntoPyObject)]
struct SessionOut {
    head: HeadOut,
    events: Vec<EventOut>,
    state: Bytes,
    summaries: Vec<SummaryOut>,
}

impl From<service::Session> for SessionOut {
    fn from(session: service::Session) -> Self {
        Self {
            head: session.head.into(),
            events: session.events.into_iter().map(EventOut::from).collect(),
            state: session.state,
            summaries: session.summaries.into_iter().map(SummaryOut::from).collect(),
        }
    }
}

#[derive(IntoPyObject)]
struct AppendedOut {
    seqs: Vec<Option<u64>>,
    repeated: Vec<bool>,
    head: HeadOut,
}

impl From<Appended> for AppendedOut {
    fn from(appended: Appended) -> Self {
        Self { seqs: appended.seqs, repeated: appended.repeated, head: appended.head.into() }
    }
}

/// An event as Python hands it over.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
struct EventIn {
    id: String,
    time_ms: i64,
    author: String,
    filter_key: String,
    payload: Option<String>,
    partial: bool,
    state: BTreeMap<String, Option<Vec<u8>>>,
}

impl From<EventIn> for EventDraft {
    fn from(event: EventIn) -> Self {
        let EventIn { id, time_ms, author, filter_key, payload, partial, state } = event;
        Self { id, time_ms, author, filter_key, payload, partial, state }
    }
}

/// A summary as Python hands it over.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
struct SummaryIn {
    id: String,
    generation: String,
    filter_key: String,
    expected_version: u64,
    first_seq: u64,
    last_seq: u64,
    text: String,
    record: String,
    failed: bool,
    links: Vec<(u64, String)>,
    /// Id and JSON text of an event that stands for it.
    placeholder: Option<(String, String)>,
}

/// The sessions of one store. `app`, `user` and `id` name one; times are milliseconds since 1970, state values are bytes.
///
/// Every method returns its result, or with `asynchronous` an awaitable of it; the event loop never waits for the store.
/// For the classes in `nanobot_context.sessions`, which say what the arguments mean.
#[pyclass(frozen, module = "nanobot_context._core")]
pub struct SessionStoreHandle {
    service: Mutex<Option<Arc<Service>>>,
    asynchronous: bool,
}

type Done<'py> = PyResult<Bound<'py, PyAny>>;

impl SessionStoreHandle {
    fn service(&self, py: Python<'_>) -> PyResult<Arc<Service>> {
        let service = self.service.lock().unwrap_or_else(PoisonError::into_inner).clone();
        service.ok_or_else(|| of_store(py, &StoreError::Closed))
    }

    fn run<'py, T, R>(
        &self,
        py: Python<'py>,
        work: impl FnOnce(&Service) -> StoreResult<T> + Send + 'static,
    ) -> Done<'py>
    where
        T: Into<R> + Send + 'static,
        R: for<'any> IntoPyObject<'any> + Send + 'static,
    {
        let service = self.service(py)?;
        check_process(py, self.asynchronous)?;
        if !self.asynchronous {
            let done = py.detach(|| work(&service).map(Into::into));
            return done.map_err(|error| of_store(py, &error))?.into_bound_py_any(py);
        }
        pyo3_async_runtimes::tokio::future_into_py(py, async move {
            let done = tokio::task::spawn_blocking(move || work(&service).map(Into::<R>::into)).await;
            match done {
                Ok(done) => done.map_err(|error| Python::attach(|py| of_store(py, &error))),
                Err(failure) => Err(PyRuntimeError::new_err(failure.to_string())),
            }
        })
    }
}

/// Threads do not come along into a process that is forked: what waits there for the store would wait for ever.
fn check_process(py: Python<'_>, asynchronous: bool) -> PyResult<()> {
    static STARTED: OnceLock<u32> = OnceLock::new();
    let process = std::process::id();
    if asynchronous && *STARTED.get_or_init(|| process) != process {
        let problem = "was used by asyncio before this process was forked\nhint: open it after the fork";
        return Err(of_store(py, &StoreError::invalid("store", problem)));
    }
    Ok(())
}

/// Return whether an event's filter key is a level of `wanted`, or the other way round.
///
/// An empty key belongs to all. Source: trpc-agent-go, `Event.Filter`.
#[pyfunction]
pub fn filter_key_belongs(event: &Bound<'_, PyString>, wanted: &Bound<'_, PyString>) -> bool {
    service::belongs(&without_surrogates(event), &without_surrogates(wanted))
}

fn user_first(name: &str) -> StoreResult<UserFirst> {
    match name {
        "prepend" => Ok(UserFirst::Prepend),
        "drop" => Ok(UserFirst::Drop),
        "off" => Ok(UserFirst::Off),
        other => Err(StoreError::invalid("user_first", format!("must be `prepend`, `drop` or `off`, got `{other}`"))),
    }
}

fn scope(app: String, user: Option<String>, id: Option<String>) -> Scope {
    match (user, id) {
        (Some(user), Some(id)) => Scope::Session(SessionKey::new(app, user, id)),
        (Some(user), None) => Scope::User(UserKey { app, user }),
        (None, _) => Scope::App(app),
    }
}

fn put_name(put: PutSummary) -> (&'static str, u64) {
    match put {
        PutSummary::Accepted(version) => ("accepted", version),
        PutSummary::Stale => ("stale", 0),
        PutSummary::Gone => ("gone", 0),
        PutSummary::Beyond => ("beyond", 0),
    }
}

#[pymethods]
impl SessionStoreHandle {
    #[new]
    #[pyo3(signature = (
        url, *, asynchronous, event_limit, protect_unsummarized, session_ttl_ms, user_state_ttl_ms, app_state_ttl_ms,
        refresh_on_read, raw_routing
    ))]
    #[allow(clippy::too_many_arguments, clippy::fn_params_excessive_bools)] // keywords, for the classes above it
    fn new(
        py: Python<'_>,
        url: &str,
        asynchronous: bool,
        event_limit: u64,
        protect_unsummarized: bool,
        session_ttl_ms: u64,
        user_state_ttl_ms: u64,
        app_state_ttl_ms: u64,
        refresh_on_read: bool,
        raw_routing: bool,
    ) -> PyResult<Self> {
        static RUNTIME: Once = Once::new();
        RUNTIME.call_once(|| {
            let mut builder = tokio::runtime::Builder::new_multi_thread();
            builder.worker_threads(1).max_blocking_threads(MAX_WAITING_THREADS);
            pyo3_async_runtimes::tokio::init(builder);
        });
        let options = ServiceOptions {
            event_limit,
            protect_unsummarized,
            session_ttl: Ttl(session_ttl_ms),
            user_state_ttl: Ttl(user_state_ttl_ms),
            app_state_ttl: Ttl(app_state_ttl_ms),
            refresh_on_read,
            routing: if raw_routing { Routing::Raw } else { Routing::Scoped },
        };
        let store = py.detach(|| store::open(url)).map_err(|error| of_store(py, &error))?;
        Ok(Self { service: Mutex::new(Some(Arc::new(Service::new(store, options)))), asynchronous })
    }

    /// Create a session.
    #[allow(clippy::too_many_arguments)]
    fn create<'py>(
        &self,
        py: Python<'py>,
        app: String,
        user: String,
        id: String,
        generation: String,
        state: BTreeMap<String, Option<Vec<u8>>>,
        meta: String,
        overwrite: bool,
    ) -> Done<'py> {
        let key = SessionKey::new(app, user, id);
        self.run::<_, SessionOut>(py, move |service| service.create(&key, generation, state, meta, overwrite))
    }

    /// Return a session, or `None`.
    #[allow(clippy::too_many_arguments)]
    fn get<'py>(
        &self,
        py: Python<'py>,
        app: String,
        user: String,
        id: String,
        after: u64,
        since_ms: Option<i64>,
        last: Option<u64>,
        user_first: String,
    ) -> Done<'py> {
        let key = SessionKey::new(app, user, id);
        let window = EventWindow { after, since_ms, last, ..EventWindow::default() };
        self.run::<_, Option<SessionOut>>(py, move |service| {
            let session = service.get(&key, &window, self::user_first(&user_first)?)?;
            Ok(session.map(SessionOut::from))
        })
    }

    /// Return a user's sessions without events.
    fn list<'py>(&self, py: Python<'py>, app: String, user: String, offset: u64, limit: Option<u64>) -> Done<'py> {
        self.run::<_, Vec<HeadOut>>(py, move |service| {
            let heads = service.list(&UserKey { app, user }, Page { offset, limit })?;
            Ok(heads.into_iter().map(HeadOut::from).collect::<Vec<_>>())
        })
    }

    /// Delete a session.
    fn delete<'py>(&self, py: Python<'py>, app: String, user: String, id: String) -> Done<'py> {
        let key = SessionKey::new(app, user, id);
        self.run::<_, bool>(py, move |service| service.delete(&key))
    }

    /// Append events.
    #[allow(clippy::too_many_arguments)]
    fn append<'py>(
        &self,
        py: Python<'py>,
        app: String,
        user: String,
        id: String,
        generation: Option<String>,
        expected_seq: Option<u64>,
        events: Vec<EventIn>,
    ) -> Done<'py> {
        let key = SessionKey::new(app, user, id);
        let events = events.into_iter().map(EventDraft::from).collect();
        self.run::<_, AppendedOut>(py, move |service| service.append(&key, generation, expected_seq, events))
    }

    /// Put events in the place of all behind a position.
    #[allow(clippy::too_many_arguments)]
    fn replace_tail<'py>(
        &self,
        py: Python<'py>,
        app: String,
        user: String,
        id: String,
        generation: Option<String>,
        after: u64,
        expected_seq: u64,
        events: Vec<EventIn>,
    ) -> Done<'py> {
        let key = SessionKey::new(app, user, id);
        let events = events.into_iter().map(EventDraft::from).collect();
        self.run::<_, AppendedOut>(py, move |service| {
            service.replace_tail(&key, generation, after, expected_seq, events)
        })
    }

    /// Return the state of an app, a user or a session.
    fn state<'py>(&self, py: Python<'py>, app: String, user: Option<String>, id: Option<String>) -> Done<'py> {
        let scope = scope(app, user, id);
        self.run::<_, Bytes>(py, move |service| service.state(&scope))
    }

    /// Change the state of an app, a user or a session.
    fn update_state<'py>(
        &self,
        py: Python<'py>,
        app: String,
        user: Option<String>,
        id: Option<String>,
        delta: BTreeMap<String, Option<Vec<u8>>>,
    ) -> Done<'py> {
        let scope = scope(app, user, id);
        self.run::<_, ()>(py, move |service| service.update_state(&scope, delta))
    }

    /// Replace a session's metadata.
    fn set_meta<'py>(
        &self,
        py: Python<'py>,
        app: String,
        user: String,
        id: String,
        meta: String,
        expected: Option<String>,
    ) -> Done<'py> {
        let key = SessionKey::new(app, user, id);
        self.run::<_, ()>(py, move |service| service.set_meta(&key, &meta, expected.as_deref()))
    }

    /// Store a summary; the name of what became of it, and its version.
    fn put_summary<'py>(
        &self,
        py: Python<'py>,
        app: String,
        user: String,
        id: String,
        summary: SummaryIn,
    ) -> Done<'py> {
        let key = SessionKey::new(app, user, id);
        let placeholder = summary.placeholder.map(|(id, payload)| NewEvent {
            id,
            kind: EventKind::Summary,
            payload: Some(payload),
            filter_key: summary.filter_key.clone(),
            time_ms: store::now_ms(),
            ..NewEvent::default()
        });
        let new = NewSummary {
            id: summary.id,
            generation: summary.generation,
            filter_key: summary.filter_key,
            expected_version: summary.expected_version,
            first_seq: summary.first_seq,
            last_seq: summary.last_seq,
            text: summary.text,
            record: summary.record,
            failed: summary.failed,
            links: summary.links,
            placeholder,
            ttl: Ttl(0),
        };
        self.run::<_, (&'static str, u64)>(py, move |service| service.put_summary(&key, new).map(put_name))
    }

    /// Return summaries, newest first.
    #[allow(clippy::too_many_arguments)]
    fn summaries<'py>(
        &self,
        py: Python<'py>,
        app: String,
        user: String,
        id: String,
        filter_key: Option<String>,
        failed: bool,
        links: bool,
        last: Option<u64>,
    ) -> Done<'py> {
        let key = SessionKey::new(app, user, id);
        self.run::<_, Vec<SummaryOut>>(py, move |service| {
            let found = service.summaries(&key, &SummaryQuery { filter_key, failed, links, last })?;
            Ok(found.into_iter().map(SummaryOut::from).collect::<Vec<_>>())
        })
    }

    /// Free what has expired.
    fn sweep<'py>(&self, py: Python<'py>) -> Done<'py> {
        self.run::<_, u64>(py, Service::sweep)
    }

    /// Return what is being used, without credentials.
    fn describe(&self, py: Python<'_>) -> PyResult<String> {
        Ok(self.service(py)?.store().describe())
    }

    /// Let the store go; calls that are running end.
    fn close(&self, py: Python<'_>) {
        let service = self.service.lock().unwrap_or_else(PoisonError::into_inner).take();
        py.detach(|| drop(service));
    }
}
