//! Any operations in any order: a server and a file say what memory says.

use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};

use nanobot_context::session::store::{
    Append, Appended, Create, Delta, EventKind, EventWindow, Eviction, Loaded, Memory, NewEvent, NewSummary, Page,
    Redis, Scope, SessionKey, SessionStore, Sqlite, StoreResult, SummaryQuery, Ttl,
};

use super::redis_server::Server;

#[derive(Debug, Clone)]
enum Step {
    Create { id: u8, overwrite: bool, state: Changes },
    Delete { id: u8 },
    Append { id: u8, after: Option<u64>, is_late: bool, events: Vec<Made>, max: u64, protect: bool },
    Summarise { id: u8, filter_key: bool, lag: u64, is_late: bool, failed: bool, placeholder: bool },
    State { id: u8, scope: u8, change: Changes },
    Meta { id: u8, expected: Option<bool> },
    Load { id: u8, after: u64, since: Option<i64>, last: Option<u64>, with_user: bool },
}

type Changes = Vec<(u8, Option<u8>)>;
/// Its id, its kind, whether it has text, and what it changes.
type Made = (u8, u8, bool, Changes);

fn changes() -> impl Strategy<Value = Changes> {
    proptest::collection::vec((0..4_u8, proptest::option::of(0..3_u8)), 0..3)
}

fn step() -> impl Strategy<Value = Step> {
    let id = || 0..3_u8;
    let rarely = || proptest::bool::weighted(0.2);
    let made = (0..60_u8, 0..6_u8, proptest::bool::weighted(0.8), changes());
    let events = proptest::collection::vec(made, 0..6);
    let after = proptest::option::weighted(0.15, 0..30_u64);
    let create = (id(), any::<bool>(), changes());
    let append = (id(), after, rarely(), events, 0..12_u64, any::<bool>());
    let summary = (id(), any::<bool>(), 0..6_u64, rarely(), rarely(), any::<bool>());
    let window = (id(), 0..10_u64, proptest::option::of(0..60_i64), proptest::option::of(0..6_u64), any::<bool>());
    prop_oneof![
        1 => create.prop_map(|(id, overwrite, state)| Step::Create { id, overwrite, state }),
        1 => id().prop_map(|id| Step::Delete { id }),
        12 => append.prop_map(|(id, after, is_late, events, max, protect)| {
            Step::Append { id, after, is_late, events, max, protect }
        }),
        4 => summary.prop_map(|(id, filter_key, lag, is_late, failed, placeholder)| {
            Step::Summarise { id, filter_key, lag, is_late, failed, placeholder }
        }),
        2 => (id(), 0..3_u8, changes()).prop_map(|(id, scope, change)| Step::State { id, scope, change }),
        1 => (id(), proptest::option::of(any::<bool>())).prop_map(|(id, expected)| Step::Meta { id, expected }),
        3 => window.prop_map(|(id, after, since, last, with_user)| Step::Load { id, after, since, last, with_user }),
    ]
}

fn delta(changes: &Changes) -> Delta {
    changes.iter().map(|(name, value)| (name.to_string(), value.map(|value| vec![value]))).collect()
}

/// Takes the times out, which differ.
fn timeless(mut loaded: Loaded) -> Loaded {
    (loaded.head.created_ms, loaded.head.updated_ms) = (0, 0);
    loaded.summaries.iter_mut().for_each(|summary| summary.created_ms = 0);
    loaded
}

fn shown<T: std::fmt::Debug>(result: &StoreResult<T>) -> String {
    format!("{result:?}")
}

/// Does one step, and returns what the store said. `number` makes what is written anew different each time.
fn run(store: &dyn SessionStore, app: &str, number: usize, step: &Step) -> String {
    let key = |id: &u8| SessionKey::new(app, "u", format!("s{id}"));
    let load = |key: &SessionKey, window: &EventWindow| store.load(key, window).unwrap().map(timeless);
    match step {
        Step::Create { id, overwrite, state } => {
            let delta = delta(state);
            let (session, user, app) = (delta.clone(), delta.clone(), delta);
            let (generation, meta) = (format!("g{number}"), "{}".to_owned());
            let create = Create { generation, session, user, app, meta, overwrite: *overwrite, ..Create::default() };
            shown(&store.create(&key(id), &create).map(drop))
        }
        Step::Delete { id } => shown(&store.delete(&key(id))),
        Step::Append { id, after, is_late, events, max, protect } => {
            let made = |(id, kind, has_text, changes): &Made| NewEvent {
                id: format!("e{id}"),
                time_ms: i64::from(*id),
                kind: EventKind::of(*kind),
                payload: has_text.then(|| format!("{number} {id}")),
                session: delta(changes),
                user: delta(changes),
                app: delta(changes),
                ..NewEvent::default()
            };
            let at = load(&key(id), &EventWindow::default()).map_or(0, |loaded| loaded.head.seq);
            let batch = Append {
                expected_seq: after.map(|_| at.saturating_sub(u64::from(*is_late))),
                events: events.iter().map(made).collect(),
                eviction: Eviction { max_events: *max, protect: *protect },
                ..Append::default()
            };
            let appended = match after {
                Some(after) => store.replace_tail(&key(id), *after, &batch),
                None => store.append(&key(id), &batch),
            };
            let told =
                |appended: Appended| (appended.seqs, appended.repeated, appended.head.seq, appended.head.first_seq);
            shown(&appended.map(told))
        }
        Step::Summarise { id, filter_key, lag, is_late, failed, placeholder } => {
            let loaded = load(&key(id), &EventWindow::default());
            let filter_key = if *filter_key { "a/b".to_owned() } else { String::new() };
            let mut newest = loaded.iter().flat_map(|loaded| &loaded.summaries);
            let version = newest.find(|summary| summary.filter_key == filter_key).map_or(0, |summary| summary.version);
            let placeholder = placeholder.then(|| NewEvent {
                id: format!("p{number}"),
                kind: EventKind::Summary,
                payload: Some("…".to_owned()),
                ..NewEvent::default()
            });
            let summary = NewSummary {
                id: format!("{app}-sum{number}"),
                generation: loaded.as_ref().map_or_else(String::new, |loaded| loaded.head.generation.clone()),
                expected_version: if *is_late { version.saturating_sub(1) } else { version },
                last_seq: (loaded.as_ref().map_or(0, |loaded| loaded.head.seq) + 1).saturating_sub(*lag),
                filter_key,
                text: format!("t{number}"),
                failed: *failed,
                placeholder,
                links: vec![(1, format!("e{number}"))],
                ..NewSummary::default()
            };
            shown(&store.put_summary(&key(id), &summary))
        }
        Step::State { id, scope, change } if !change.is_empty() => {
            let scope = match scope {
                0 => Scope::App(app.to_owned()),
                1 => Scope::User(key(id).owner),
                _ => Scope::Session(key(id)),
            };
            shown(&store.update_state(&scope, &delta(change), Ttl(0)).and_then(|()| store.state(&scope)))
        }
        Step::State { .. } => String::new(),
        Step::Meta { id, expected } => {
            let expected = expected.map(|is_first| if is_first { "{}" } else { "{\"n\": 1}" });
            shown(&store.set_meta(&key(id), "{\"n\": 1}", expected))
        }
        Step::Load { id, after, since, last, with_user } => {
            let window =
                EventWindow { after: *after, since_ms: *since, last: *last, with_user: *with_user, refresh: None };
            format!("{:?}", load(&key(id), &window))
        }
    }
}

/// Everything that a store holds of an app.
fn everything(store: &dyn SessionStore, app: &str) -> Vec<String> {
    let keys = (0..3).map(|id| SessionKey::new(app, "u", format!("s{id}")));
    let of_session = |key: SessionKey| {
        let loaded = store.load(&key, &EventWindow::default()).unwrap().map(timeless);
        let told = [false, true].map(|failed| {
            let query = SummaryQuery { failed, links: true, ..SummaryQuery::default() };
            let summaries = store.summaries(&key, &query).unwrap();
            summaries.into_iter().map(|summary| (summary.id, summary.version, summary.links)).collect::<Vec<_>>()
        });
        format!("{loaded:?} {told:?}")
    };
    let owner = SessionKey::new(app, "u", "").owner;
    let mut listed: Vec<_> = store.list(&owner, Page::default()).unwrap().into_iter().map(|head| head.key.id).collect();
    listed.sort();
    keys.map(of_session).chain([format!("{listed:?}")]).collect()
}

#[test]
fn a_server_and_a_file_say_what_memory_says_whatever_they_are_asked() {
    let server = Server::new();
    let (redis, file) = (Redis::open(&server.url()).unwrap(), Sqlite::open("sqlite:///:memory:").unwrap());
    let number = std::cell::Cell::new(0);
    let mut runner = TestRunner::new(Config { cases: 80, failure_persistence: None, ..Config::default() });
    let steps = proptest::collection::vec(step(), 1..60);
    let same = |steps: Vec<Step>| {
        number.set(number.get() + 1);
        let (memory, app) = (Memory::new(), format!("app{}", number.get()));
        let begun = (0..3).map(|id| Step::Create { id, overwrite: false, state: Vec::new() });
        for (at, step) in begun.chain(steps).enumerate() {
            let expected = run(&memory, &app, at, &step);
            for store in [&redis as &dyn SessionStore, &file] {
                prop_assert_eq!(
                    run(store, &app, at, &step),
                    &*expected,
                    "{}, step {}: {:?}",
                    store.describe(),
                    at,
                    step
                );
            }
        }
        for store in [&redis as &dyn SessionStore, &file] {
            prop_assert_eq!(everything(store, &app), everything(&memory, &app));
        }
        Ok(())
    };
    runner.run(&steps, same).unwrap();
}
