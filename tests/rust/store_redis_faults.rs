//! Connections and servers that break: nothing that was acknowledged is lost, nothing is done twice.

use std::cell::Cell;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::{self, sleep};
use std::time::{Duration, Instant};

use nanobot_context::session::store::{
    Append, Create, EventKind, EventWindow, NewEvent, NewSummary, PutSummary, Redis, Scope, SessionKey, SessionStore,
    StoreError, SummaryQuery, Ttl,
};

use super::redis_server::{Act, Proxy, Server, Way};
use super::store_contract::{all, batch, create, delta, event, ids, key, summary};

#[test]
fn an_answer_that_is_lost_is_asked_for_again_and_nothing_is_done_twice() {
    let server = Server::new();
    let proxy = Proxy::new(server.port);
    let (store, key) = (Redis::open(&proxy.url()).unwrap(), key());
    let scope = Scope::Session(key.clone());
    let (losses, cuts) = (Cell::new(0), Arc::new(AtomicU64::new(0)));
    let lose = || {
        losses.set(losses.get() + 1);
        let (cuts, mut is_sent, mut is_cut) = (Arc::clone(&cuts), false, false);
        proxy.follow(move |way, text| {
            is_sent |= way == Way::Request && text.contains(":meta");
            if way == Way::Request || !is_sent || is_cut {
                return Act::Pass;
            }
            is_cut = true;
            cuts.fetch_add(1, Ordering::Relaxed);
            Act::Cut
        });
    };

    lose();
    let head = store.create(&key, &Create { overwrite: true, ..create() }).unwrap();
    assert_eq!(head.seq, 0);
    let other = SessionKey { id: "other".to_owned(), ..key.clone() };
    lose();
    store.create(&other, &create()).unwrap();
    assert!(matches!(store.create(&other, &create()), Err(StoreError::AlreadyExists(_))));

    let counted = NewEvent { session: delta(&[("n", Some("1"))]), ..event("a", EventKind::User) };
    let partial = NewEvent { payload: None, session: delta(&[("p", Some("1"))]), ..event("p", EventKind::Other) };
    let first = Append {
        events: vec![counted, partial, event("b", EventKind::User)],
        expected_seq: Some(0),
        ..Append::default()
    };
    lose();
    let appended = store.append(&key, &first).unwrap();
    assert_eq!((appended.seqs, appended.head.seq), (vec![Some(1), None, Some(2)], 2), "no conflict with itself");
    assert!(matches!(store.append(&key, &first), Err(StoreError::Conflict { .. })), "but when it is sent anew");

    lose();
    let put = summary(&store, &key, 0, 2);
    lose();
    assert_eq!(store.put_summary(&key, &put), Ok(PutSummary::Accepted(1)));
    assert_eq!(store.put_summary(&key, &put), Ok(PutSummary::Stale));
    let failed = NewSummary { failed: true, ..summary(&store, &key, 1, 2) };
    lose();
    assert_eq!(store.put_summary(&key, &failed), Ok(PutSummary::Accepted(0)));
    let query = SummaryQuery { failed: true, ..Default::default() };
    assert_eq!(store.summaries(&key, &query).unwrap().len(), 1);

    lose();
    let tail = Append { expected_seq: Some(2), ..batch(&["c", "d"]) };
    assert_eq!(store.replace_tail(&key, 1, &tail).unwrap().head.seq, 4);
    lose();
    store.set_meta(&key, "{\"v\": 1}", Some("{}")).unwrap();
    lose();
    assert!(matches!(store.set_meta(&key, "{\"v\": 2}", Some("{}")), Err(StoreError::Conflict { .. })));
    lose();
    store.update_state(&scope, &delta(&[("n", None)]), Ttl(0)).unwrap();
    lose();
    let loaded = all(&store, &key);
    assert_eq!((ids(&loaded), loaded.head.meta.as_str()), (vec!["a", "c", "d"], "{\"v\": 1}"));
    assert_eq!(loaded.session.keys().collect::<Vec<_>>(), ["p"]);
    lose();
    let nothing = Append { expected_seq: Some(4), ..Append::default() };
    assert_eq!(store.replace_tail(&key, 1, &nothing).unwrap().head.seq, 5, "no conflict with itself");
    assert!(
        matches!(store.replace_tail(&key, 1, &nothing), Err(StoreError::Conflict { .. })),
        "but when it is sent anew"
    );
    lose();
    store.delete(&key).unwrap();
    assert_eq!(store.load(&key, &EventWindow::default()).unwrap(), None);
    assert_eq!(cuts.load(Ordering::Relaxed), losses.get(), "each was cut once, behind the server");
}

#[test]
fn a_change_of_an_apps_state_is_made_once_whatever_breaks_in_between() {
    let server = Server::new();
    let proxy = Proxy::new(server.port);
    let (store, direct) = (Redis::open(&proxy.url()).unwrap(), Redis::open(&server.url()).unwrap());
    let set = |id: &str, value: &str| {
        let app = delta(&[("v", Some(value)), ("w", None)]);
        Append { events: vec![NewEvent { app, ..event(id, EventKind::User) }], ..Append::default() }
    };
    let to_app = |text: &str| text.contains(":applied");
    let to_ack = |text: &str| text.contains(":outbox") && !text.contains(":meta");
    let breaking = [(false, Way::Request), (false, Way::Reply), (true, Way::Reply)];
    for (at, (is_acking, way)) in breaking.into_iter().enumerate() {
        let is_breaking = move |text: &str| if is_acking { to_ack(text) } else { to_app(text) };
        let [mine, other] = ["mine", "other"].map(|user| SessionKey::new(format!("app{at}"), user, "s"));
        let app = Scope::App(mine.owner.app.clone());
        direct.create(&mine, &create()).unwrap();
        direct.create(&other, &create()).unwrap();
        let is_named = AtomicBool::new(false);
        let cut = move |now: Way, text: &str| {
            is_named.fetch_or(now == Way::Request && is_breaking(text), Ordering::Relaxed);
            if is_named.load(Ordering::Relaxed) && now == way { Act::Cut } else { Act::Pass }
        };
        proxy.follow(cut);
        let error = store.append(&mine, &set("a", "mine")).unwrap_err();
        assert!(matches!(error, StoreError::Unavailable { .. }), "{error}");
        proxy.follow(|_, _| Act::Pass);
        let was_made = !direct.state(&app).unwrap().is_empty();
        assert_eq!(was_made, way == Way::Reply, "{at}");
        if was_made {
            direct.append(&other, &set("b", "theirs")).unwrap();
        }
        let again = store.append(&mine, &set("a", "mine")).unwrap();
        assert_eq!((again.repeated, again.head.seq), (vec![true], 1));
        let expected = if was_made { "theirs" } else { "mine" };
        assert_eq!(direct.state(&app).unwrap()["v"], expected.as_bytes(), "{at}");
        direct.append(&mine, &set("c", "mine again")).unwrap();
        assert_eq!(direct.state(&app).unwrap()["v"], b"mine again");
    }
    // A reading goes on where a write stopped, too; a refused batch changes nothing.
    let mine = SessionKey {
        owner: nanobot_context::session::store::UserKey { app: "fresh".to_owned(), user: "u".to_owned() },
        ..key()
    };
    direct.create(&mine, &create()).unwrap();
    let wrong = Append { expected_seq: Some(7), ..set("a", "refused") };
    assert!(matches!(direct.append(&mine, &wrong), Err(StoreError::Conflict { .. })));
    assert!(all(&direct, &mine).app.is_empty());
    proxy.follow(|way, text| if way == Way::Request && text.contains(":applied") { Act::Cut } else { Act::Pass });
    store.append(&mine, &set("a", "left")).unwrap_err();
    assert_eq!(all(&direct, &mine).app["v"], b"left");
}

#[test]
fn scripts_that_the_server_forgot_are_sent_again() {
    let server = Server::new();
    let (store, key) = (Redis::open(&server.url()).unwrap(), key());
    store.create(&key, &create()).unwrap();
    for id in ["a", "b", "c"] {
        server.tell(&["SCRIPT", "FLUSH"]);
        store.append(&key, &batch(&[id])).unwrap();
    }
    assert_eq!(ids(&all(&store, &key)), ["a", "b", "c"]);
}

#[test]
fn connections_and_a_server_that_went_away_between_two_calls_are_not_noticed() {
    let mut server = Server::with(&["--appendonly", "yes", "--appendfsync", "always"]);
    let (store, key) = (Redis::open(&server.url()).unwrap(), key());
    store.create(&key, &create()).unwrap();
    // Several connections are idle when they are killed.
    thread::scope(|scope| {
        (0..8).for_each(|_| drop(scope.spawn(|| all(&store, &key))));
    });
    server.tell(&["CLIENT", "KILL", "TYPE", "normal"]);
    store.append(&key, &Append { expected_seq: Some(0), ..batch(&["a"]) }).unwrap();
    server.tell(&["CLIENT", "KILL", "TYPE", "normal"]);
    store.set_meta(&key, "{\"v\": 1}", Some("{}")).unwrap();
    server.kill();
    server.start_again();
    assert_eq!(store.append(&key, &Append { expected_seq: Some(1), ..batch(&["b"]) }).unwrap().repeated, [false]);
    let loaded = all(&store, &key);
    assert_eq!((ids(&loaded), loaded.head.meta.as_str()), (vec!["a", "b"], "{\"v\": 1}"));
    server.kill();
    let error = store.append(&key, &batch(&["c"])).unwrap_err();
    assert!(matches!(error, StoreError::Unavailable { .. }), "{error}");
    server.start_again();
    assert_eq!(store.append(&key, &batch(&["c"])).unwrap().repeated, [false]);
}

/// A server that is killed within a transaction cuts its log behind the last whole command, not before `MULTI`: the half of
/// the write that was never answered is run with the next one when the server starts a second time, and that next one is lost
/// (Redis 7.0.15; valkey-io/valkey#4342). A log that is rewritten after the first start has no such half.
#[test]
fn a_log_that_was_torn_within_a_write_is_whole_once_it_is_rewritten() {
    let mut server = Server::with(&["--appendonly", "yes", "--appendfsync", "always"]);
    let key = key();
    let append = |server: &Server, id: &str| {
        let event = NewEvent { session: delta(&[(id, Some("1"))]), ..event(id, EventKind::User) };
        let batch = Append { events: vec![event], ..Append::default() };
        Redis::open(&server.url()).unwrap().append(&key, &batch).unwrap();
    };
    Redis::open(&server.url()).unwrap().create(&key, &create()).unwrap();
    append(&server, "whole");
    append(&server, "torn");
    server.kill();
    let log = server.file("appendonlydir/appendonly.aof.1.incr.aof");
    let text = std::fs::read(&log).unwrap();
    assert!(text.ends_with(b"\r\nEXEC\r\n"));
    std::fs::write(&log, &text[..text.len() - 3]).unwrap();
    server.start_again();
    server.rewrite_log();
    append(&server, "next");
    server.kill();
    server.start_again();
    let loaded = all(&Redis::open(&server.url()).unwrap(), &key);
    assert_eq!(ids(&loaded), ["whole", "next"]);
    assert_eq!(loaded.session.keys().collect::<Vec<_>>(), ["next", "whole"]);
}

/// Kills the server under four writers, several times; returns how many acknowledged events were lost, and the age of the
/// oldest of them at the crash.
fn crash(fsync: &str, times: u32) -> (usize, Duration) {
    const WRITERS: usize = 4;
    let mut server = Server::with(&["--appendonly", "yes", "--appendfsync", fsync]);
    let url = server.url();
    let key = key();
    Redis::open(&url).unwrap().create(&key, &create()).unwrap();
    let acknowledged: Mutex<Vec<(String, u64, Instant)>> = Mutex::default();
    let (mut lost, mut oldest) = (0, Duration::ZERO);
    for round in 0..times {
        let is_over = AtomicBool::new(false);
        let crashed = thread::scope(|scope| {
            for writer in 0..WRITERS {
                let (store, key, is_over, acknowledged) = (Redis::open(&url).unwrap(), &key, &is_over, &acknowledged);
                scope.spawn(move || {
                    for at in 0.. {
                        let id = format!("{round}-{writer}-{at}");
                        let changed = delta(&[(id.as_str(), Some("1"))]);
                        let event = NewEvent { session: changed, ..event(&id, EventKind::User) };
                        let batch = Append { events: vec![event], ..Append::default() };
                        if let Ok(appended) = store.append(key, &batch) {
                            acknowledged.lock().unwrap().push((id, appended.head.seq, Instant::now()));
                        }
                        if is_over.load(Ordering::Relaxed) {
                            return;
                        }
                    }
                });
            }
            sleep(Duration::from_millis(400));
            server.kill();
            let crashed = Instant::now();
            is_over.store(true, Ordering::Relaxed);
            crashed
        });
        server.start_again();
        server.rewrite_log();
        let loaded = all(&Redis::open(&url).unwrap(), &key);
        let seqs: Vec<u64> = loaded.events.iter().map(|event| event.seq).collect();
        assert_eq!(seqs, (1..=loaded.head.seq).collect::<Vec<_>>(), "none is left out and none is there twice");
        let held: std::collections::HashSet<&str> = ids(&loaded).into_iter().collect();
        assert_eq!(
            (held.len(), loaded.session.len()),
            (seqs.len(), seqs.len()),
            "events and their deltas are there together"
        );
        let mut acknowledged = acknowledged.lock().unwrap();
        assert!(acknowledged.len() > 40, "{}", acknowledged.len());
        acknowledged.retain(|(id, _, at)| {
            let is_held = held.contains(id.as_str());
            if !is_held {
                (lost, oldest) = (lost + 1, oldest.max(crashed.saturating_duration_since(*at)));
            }
            is_held
        });
    }
    println!(
        "appendfsync {fsync}: {} acknowledged and held, {lost} lost, {oldest:?} old",
        acknowledged.lock().unwrap().len()
    );
    (lost, oldest)
}

#[test]
fn a_server_that_is_killed_under_load_loses_nothing_that_it_always_writes() {
    assert_eq!(crash("always", 4).0, 0);
}

#[test]
fn a_server_that_is_killed_under_load_loses_two_seconds_at_most_where_it_writes_each() {
    // The loss of power takes what the disk has not; the death of the process only what waits for the disk, 2 s at most.
    let (_, oldest) = crash("everysec", 4);
    assert!(oldest < Duration::from_secs(2), "{oldest:?}");
}

#[test]
fn a_server_that_is_killed_under_load_loses_nothing_where_the_system_writes_when_it_likes() {
    // The system has it before the answer goes out, and outlives the server; only a loss of power takes it.
    assert_eq!(crash("no", 4).0, 0);
}
