//! What every store promises, as one set of functions that each of them passes.

use std::panic::{self, AssertUnwindSafe};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread::{self, sleep};
use std::time::Duration;

use nanobot_context::session::store::{
    Append, Appended, Create, Delta, EventKind, EventWindow, Eviction, KEPT_IDS, Loaded, Memory, NewEvent, NewSummary,
    Page, PutSummary, Scope, SessionKey, SessionStore, StoreError, SummaryQuery, Ttl, UserKey,
};

/// Opens the same store again, as another process would; memory is the very same one.
pub type Open = Box<dyn Fn() -> Arc<dyn SessionStore> + Send + Sync>;

static NUMBER: AtomicU64 = AtomicU64::new(0);

/// Returns a text that no other test has.
fn unique(what: &str) -> String {
    format!("{what}-{}-{}", std::process::id(), NUMBER.fetch_add(1, Ordering::Relaxed))
}

pub fn key() -> SessionKey {
    SessionKey::new("app", unique("user"), unique("session"))
}

pub fn delta(pairs: &[(&str, Option<&str>)]) -> Delta {
    pairs.iter().map(|(name, value)| ((*name).to_owned(), value.map(|value| value.as_bytes().to_vec()))).collect()
}

pub fn create() -> Create {
    Create { generation: unique("generation"), meta: "{}".to_owned(), ..Create::default() }
}

pub fn event(id: &str, kind: EventKind) -> NewEvent {
    let payload = Some(format!("{{\"text\": \"{id}\"}}"));
    NewEvent { id: id.to_owned(), kind, payload, author: "me".to_owned(), time_ms: 1_000, ..NewEvent::default() }
}

fn events(ids: &[&str]) -> Vec<NewEvent> {
    ids.iter().map(|id| event(id, EventKind::User)).collect()
}

pub fn batch(ids: &[&str]) -> Append {
    Append { events: events(ids), ..Append::default() }
}

pub fn all(store: &dyn SessionStore, key: &SessionKey) -> Loaded {
    store.load(key, &EventWindow::default()).unwrap().unwrap()
}

pub fn ids(loaded: &Loaded) -> Vec<&str> {
    loaded.events.iter().map(|event| event.id.as_str()).collect()
}

pub fn summary(store: &dyn SessionStore, key: &SessionKey, expected_version: u64, last_seq: u64) -> NewSummary {
    NewSummary {
        id: unique("summary"),
        generation: all(store, key).head.generation,
        expected_version,
        first_seq: 1,
        last_seq,
        text: format!("up to {last_seq}"),
        record: "{}".to_owned(),
        ..NewSummary::default()
    }
}

/// Runs all that a store promises.
pub fn holds(open: &Open) {
    let tests: [fn(&Open); 18] = [
        a_session_is_created_once,
        an_overwritten_session_begins_anew,
        events_keep_the_order_in_which_they_came,
        a_repeated_event_is_not_taken_again,
        an_id_far_behind_the_first_kept_event_is_forgotten,
        an_event_without_text_changes_state_only,
        an_expected_position_must_be_right,
        a_late_writer_does_not_touch_a_new_generation,
        windows_show_what_they_say,
        deltas_go_to_their_scopes,
        a_list_is_paged_and_newest_first,
        deleting_leaves_nothing_behind,
        a_session_expires_as_a_whole,
        reading_refreshes_only_where_it_is_asked_to,
        the_oldest_events_leave_and_calls_go_with_their_results,
        a_tail_is_replaced_whole,
        a_summary_is_compared_and_set,
        many_writers_lose_nothing,
    ];
    for test in tests {
        test(open);
    }
}

fn a_session_is_created_once(open: &Open) {
    let (store, key) = (open(), key());
    assert_eq!(store.load(&key, &EventWindow::default()).unwrap(), None);
    let create = Create { session: delta(&[("lang", Some("zh"))]), meta: "{\"a\": 1}".to_owned(), ..create() };
    let head = store.create(&key, &create).unwrap();
    assert_eq!((head.seq, head.first_seq, head.generation.as_str()), (0, 1, create.generation.as_str()));
    let other = open();
    let again = self::create();
    assert_eq!(other.create(&key, &again), Err(StoreError::AlreadyExists(key.clone())));
    let loaded = all(&*other, &key);
    assert_eq!((loaded.head, loaded.session["lang"].as_slice()), (head, b"zh".as_slice()));
}

fn an_overwritten_session_begins_anew(open: &Open) {
    let (store, key) = (open(), key());
    store.create(&key, &Create { session: delta(&[("old", Some("1"))]), ..create() }).unwrap();
    store.append(&key, &batch(&["a", "b"])).unwrap();
    assert_eq!(store.put_summary(&key, &summary(&*store, &key, 0, 2)), Ok(PutSummary::Accepted(1)));
    store.create(&key, &Create { overwrite: true, ..create() }).unwrap();
    let loaded = all(&*store, &key);
    assert!(loaded.events.is_empty() && loaded.session.is_empty() && loaded.summaries.is_empty(), "{loaded:?}");
    assert_eq!(loaded.head.seq, 0);
    assert_eq!(store.append(&key, &batch(&["a"])).unwrap().repeated, [false], "ids of the old one are forgotten");
}

fn events_keep_the_order_in_which_they_came(open: &Open) {
    let (store, key) = (open(), key());
    store.create(&key, &create()).unwrap();
    // Equal and decreasing times, and ids in no order.
    for (at, id) in ["m", "a", "z", "k"].into_iter().enumerate() {
        let late = NewEvent { time_ms: if at == 2 { 5 } else { 1_000 }, ..event(id, EventKind::User) };
        let appended = store.append(&key, &Append { events: vec![late], ..Append::default() }).unwrap();
        assert_eq!(appended.seqs, [Some(at as u64 + 1)]);
    }
    let appended = store.append(&key, &batch(&["c", "b"])).unwrap();
    assert_eq!((appended.seqs, appended.head.seq), (vec![Some(5), Some(6)], 6));
    let loaded = all(&*open(), &key);
    assert_eq!(ids(&loaded), ["m", "a", "z", "k", "c", "b"]);
    assert_eq!(loaded.events.iter().map(|event| event.seq).collect::<Vec<_>>(), [1, 2, 3, 4, 5, 6]);
    let text = "{\"n\": 1760000000000000123, \"a\": [], \"f\": 1.50, \"t\": \"字 \\u0000 😀\"}";
    let odd =
        NewEvent { payload: Some(text.to_owned()), filter_key: "a/b".to_owned(), ..event("odd", EventKind::Result) };
    store.append(&key, &Append { events: vec![odd], ..Append::default() }).unwrap();
    let loaded = all(&*store, &key);
    let last = loaded.events.last().unwrap();
    assert_eq!((last.payload.as_str(), last.filter_key.as_str(), last.kind), (text, "a/b", EventKind::Result));
    assert_eq!(
        store.append(&self::key(), &batch(&["x"])).map(drop).unwrap_err().retry(),
        nanobot_context::session::store::Retry::AfterReading
    );
}

fn a_repeated_event_is_not_taken_again(open: &Open) {
    let (store, key) = (open(), key());
    store.create(&key, &create()).unwrap();
    let counted = NewEvent { session: delta(&[("n", Some("1"))]), ..event("a", EventKind::User) };
    let first = Append { events: vec![counted.clone(), event("b", EventKind::User)], ..Append::default() };
    store.append(&key, &first).unwrap();
    store.update_state(&Scope::Session(key.clone()), &delta(&[("n", Some("2"))]), Ttl(0)).unwrap();
    let again =
        Append { events: vec![counted, event("b", EventKind::User), event("c", EventKind::User)], ..Append::default() };
    let Appended { seqs, repeated, head } = open().append(&key, &again).unwrap();
    assert_eq!((seqs, repeated, head.seq), (vec![Some(1), Some(2), Some(3)], vec![true, true, false], 3));
    let loaded = all(&*store, &key);
    assert_eq!(ids(&loaded), ["a", "b", "c"]);
    assert_eq!(loaded.session["n"], b"2", "neither is its delta");
    let twice = store.append(&key, &batch(&["d", "d"])).unwrap();
    assert_eq!((twice.seqs, twice.repeated), (vec![Some(4), Some(4)], vec![false, true]));
}

fn an_id_far_behind_the_first_kept_event_is_forgotten(open: &Open) {
    let (store, key) = (open(), key());
    store.create(&key, &create()).unwrap();
    let last = KEPT_IDS + 10;
    let silent = |id: &str| NewEvent { payload: None, ..event(id, EventKind::Other) };
    let mut events: Vec<NewEvent> = (1..=last).map(|at| event(&at.to_string(), EventKind::User)).collect();
    // Behind the events 9 and 8, with the same positions as these.
    events.insert(9, silent("with 9"));
    events.insert(8, silent("with 8"));
    let eviction = Eviction { max_events: 2, protect: false };
    let head = store.append(&key, &Append { events, eviction, ..Append::default() }).unwrap().head;
    assert_eq!((head.first_seq, head.seq), (last - 1, last));
    let known = head.first_seq - KEPT_IDS; // 9
    let known = [known.to_string(), format!("with {known}")];
    let again = Append { events: vec![event(&known[0], EventKind::User), silent(&known[1])], ..Append::default() };
    assert_eq!(open().append(&key, &again).unwrap().repeated, [true, true]);
    let again = Append { events: vec![event("8", EventKind::User), silent("with 8")], ..Append::default() };
    assert_eq!(store.append(&key, &again).unwrap().repeated, [false, false]);
}

fn an_event_without_text_changes_state_only(open: &Open) {
    let (store, key) = (open(), key());
    store.create(&key, &create()).unwrap();
    let partial = NewEvent { payload: None, session: delta(&[("x", Some("1"))]), ..event("p", EventKind::Other) };
    let both = Append { events: vec![partial.clone(), event("a", EventKind::User)], ..Append::default() };
    assert_eq!(store.append(&key, &both).unwrap().seqs, [None, Some(1)]);
    let again = Append { events: vec![partial], ..Append::default() };
    assert_eq!(store.append(&key, &again).unwrap().repeated, [true]);
    let loaded = all(&*store, &key);
    assert_eq!((ids(&loaded), loaded.session["x"].as_slice()), (vec!["a"], b"1".as_slice()));
    let gone = NewEvent { payload: None, session: delta(&[("x", None)]), ..event("q", EventKind::Other) };
    store.append(&key, &Append { events: vec![gone], ..Append::default() }).unwrap();
    assert!(all(&*store, &key).session.is_empty());
}

fn an_expected_position_must_be_right(open: &Open) {
    let (store, key) = (open(), key());
    store.create(&key, &create()).unwrap();
    store.append(&key, &Append { expected_seq: Some(0), ..batch(&["a"]) }).unwrap();
    let stale = store.append(&key, &Append { expected_seq: Some(0), ..batch(&["b"]) });
    let conflict = StoreError::Conflict { key: key.clone(), expected: "0".to_owned(), actual: "1".to_owned() };
    assert_eq!(stale, Err(conflict));
    assert_eq!(ids(&all(&*store, &key)), ["a"], "nothing of it was written");
    store.append(&key, &Append { expected_seq: Some(1), ..batch(&["b"]) }).unwrap();
    store.set_meta(&key, "{\"v\": 1}", Some("{}")).unwrap();
    assert!(matches!(store.set_meta(&key, "{\"v\": 2}", Some("{}")), Err(StoreError::Conflict { .. })));
    store.set_meta(&key, "{\"v\": 3}", None).unwrap();
    assert_eq!(all(&*store, &key).head.meta, "{\"v\": 3}");
    assert_eq!(
        store.set_meta(&self::key(), "{}", None).map_err(|error| matches!(error, StoreError::NotFound(_))),
        Err(true)
    );
}

fn a_late_writer_does_not_touch_a_new_generation(open: &Open) {
    let (store, key) = (open(), key());
    let old = store.create(&key, &create()).unwrap().generation;
    store.append(&key, &Append { generation: Some(old.clone()), ..batch(&["a"]) }).unwrap();
    let summary = summary(&*store, &key, 0, 1);
    assert!(store.delete(&key).unwrap());
    let late = Append { generation: Some(old), ..batch(&["b"]) };
    assert_eq!(store.append(&key, &late).map(drop), Err(StoreError::NotFound(key.clone())));
    assert_eq!(store.put_summary(&key, &summary), Ok(PutSummary::Gone));
    store.create(&key, &create()).unwrap();
    assert_eq!(store.append(&key, &late).map(drop), Err(StoreError::Gone(key.clone())));
    assert_eq!(store.put_summary(&key, &summary), Ok(PutSummary::Gone));
    assert!(all(&*store, &key).events.is_empty());
}

fn windows_show_what_they_say(open: &Open) {
    let (store, key) = (open(), key());
    store.create(&key, &create()).unwrap();
    let timed = (1..=6).map(|at| NewEvent { time_ms: at * 10, ..event(&format!("e{at}"), EventKind::User) }).collect();
    store.append(&key, &Append { events: timed, ..Append::default() }).unwrap();
    let shown = |window: EventWindow| {
        let loaded = store.load(&key, &window).unwrap().unwrap();
        loaded.events.iter().map(|event| event.seq).collect::<Vec<_>>()
    };
    assert_eq!(shown(EventWindow { last: Some(2), ..EventWindow::default() }), [5, 6]);
    assert_eq!(shown(EventWindow { last: Some(99), ..EventWindow::default() }), [1, 2, 3, 4, 5, 6]);
    assert_eq!(shown(EventWindow { last: Some(0), ..EventWindow::default() }), Vec::<u64>::new());
    assert_eq!(shown(EventWindow { since_ms: Some(40), ..EventWindow::default() }), [4, 5, 6], "inclusive");
    assert_eq!(shown(EventWindow { since_ms: Some(61), ..EventWindow::default() }), Vec::<u64>::new());
    assert_eq!(
        shown(EventWindow { since_ms: Some(20), last: Some(2), ..EventWindow::default() }),
        [5, 6],
        "time first, then the newest"
    );
    assert_eq!(shown(EventWindow { after: 3, ..EventWindow::default() }), [4, 5, 6]);
    let answers = (0..100).map(|at| event(&format!("a{at}"), EventKind::Assistant)).collect();
    store.append(&key, &Append { events: answers, ..Append::default() }).unwrap();
    let with_user = EventWindow { with_user: true, ..EventWindow::default() };
    assert_eq!(shown(EventWindow { last: Some(2), ..with_user.clone() }), [6, 105, 106], "the newest one before them");
    assert_eq!(shown(EventWindow { after: 104, last: Some(9), ..with_user.clone() }), [6, 105, 106]);
    assert_eq!(
        shown(EventWindow { after: 5, last: Some(101), ..with_user.clone() }).len(),
        101,
        "there is one among them"
    );
    assert_eq!(shown(EventWindow { last: Some(0), ..with_user.clone() }), Vec::<u64>::new());
    assert_eq!(shown(EventWindow { after: 106, ..with_user }), Vec::<u64>::new());
    store.append(&key, &batch(&["e7"])).unwrap();
    assert_eq!(ids(&all(&*store, &key)).len(), 107, "a filtered read and an append keep the history");
}

fn deltas_go_to_their_scopes(open: &Open) {
    let store = open();
    let (key, app) = (key(), unique("app"));
    let key = SessionKey { owner: UserKey { app: app.clone(), ..key.owner }, ..key };
    let start = Create { user: delta(&[("theme", Some("dark"))]), app: delta(&[("v", Some("1"))]), ..create() };
    store.create(&key, &start).unwrap();
    let other = SessionKey { id: unique("other"), ..key.clone() };
    store.create(&other, &create()).unwrap();
    let changing = NewEvent {
        session: delta(&[("s", Some("mine"))]),
        user: delta(&[("theme", None), ("font", Some("\u{0}\u{ff}"))]),
        app: delta(&[("v", Some("2"))]),
        ..event("a", EventKind::User)
    };
    store.append(&key, &Append { events: vec![changing], ..Append::default() }).unwrap();
    let loaded = all(&*open(), &other);
    assert!(loaded.session.is_empty());
    assert_eq!(loaded.user.keys().collect::<Vec<_>>(), ["font"]);
    assert_eq!(
        (loaded.user["font"].as_slice(), loaded.app["v"].as_slice()),
        ("\u{0}\u{ff}".as_bytes(), b"2".as_slice())
    );
    store.update_state(&Scope::App(app.clone()), &delta(&[("w", Some("")), ("v", None)]), Ttl(0)).unwrap();
    assert_eq!(store.state(&Scope::App(app)).unwrap().into_iter().collect::<Vec<_>>(), [("w".to_owned(), Vec::new())]);
    assert!(store.state(&Scope::User(UserKey { app: "app".to_owned(), user: unique("nobody") })).unwrap().is_empty());
    let unknown = Scope::Session(self::key());
    assert!(matches!(store.update_state(&unknown, &delta(&[("a", None)]), Ttl(0)), Err(StoreError::NotFound(_))));
    assert!(store.state(&unknown).unwrap().is_empty());
    // Names that would be one if they were merely joined.
    let [one, two] = [("a/b", "c"), ("a", "b/c")]
        .map(|(app, user)| Scope::User(UserKey { app: unique(app), user: user.to_owned() }));
    store.update_state(&one, &delta(&[("x", Some("1"))]), Ttl(0)).unwrap();
    assert!(store.state(&two).unwrap().is_empty());
}

fn a_list_is_paged_and_newest_first(open: &Open) {
    let (store, user) = (open(), UserKey { app: "app".to_owned(), user: unique("lister") });
    assert!(store.list(&user, Page::default()).unwrap().is_empty());
    for id in ["a", "b", "c"] {
        store.create(&SessionKey { owner: user.clone(), id: id.to_owned() }, &create()).unwrap();
        sleep(Duration::from_millis(3));
    }
    store.append(&SessionKey { owner: user.clone(), id: "a".to_owned() }, &batch(&["x"])).unwrap();
    let listed = |page| store.list(&user, page).unwrap().into_iter().map(|head| head.key.id).collect::<Vec<_>>();
    assert_eq!(listed(Page::default()), ["a", "c", "b"]);
    assert_eq!(listed(Page { offset: 1, limit: Some(1) }), ["c"]);
    assert_eq!(listed(Page { offset: 9, limit: None }), Vec::<String>::new());
    assert_eq!(listed(Page { offset: 0, limit: Some(0) }), Vec::<String>::new());
    store.delete(&SessionKey { owner: user.clone(), id: "c".to_owned() }).unwrap();
    assert_eq!(listed(Page::default()), ["a", "b"]);
}

fn deleting_leaves_nothing_behind(open: &Open) {
    let (store, key) = (open(), key());
    assert!(!store.delete(&key).unwrap());
    store
        .create(&key, &Create { session: delta(&[("s", Some("1"))]), user: delta(&[("u", Some("1"))]), ..create() })
        .unwrap();
    store.append(&key, &batch(&["a"])).unwrap();
    store.put_summary(&key, &summary(&*store, &key, 0, 1)).unwrap();
    assert!(store.delete(&key).unwrap());
    assert_eq!(store.load(&key, &EventWindow::default()).unwrap(), None);
    assert!(store.summaries(&key, &SummaryQuery::default()).unwrap().is_empty());
    assert!(store.state(&Scope::Session(key.clone())).unwrap().is_empty());
    store.create(&key, &create()).unwrap();
    let loaded = all(&*store, &key);
    assert!(loaded.session.is_empty() && loaded.summaries.is_empty() && loaded.events.is_empty());
    assert_eq!(loaded.user["u"], b"1", "the user's state stays");
}

/// Runs `story` with its lives and waits multiplied by 1, then by more as long as it fails.
///
/// On a busy machine what must still live may be over before it is looked at. What is wrong fails at every pace.
fn unhurried(story: impl Fn(u64)) {
    let fails = |slower| panic::catch_unwind(AssertUnwindSafe(|| story(slower))).is_err();
    if [1, 5, 25].into_iter().all(fails) {
        story(125);
    }
}

fn a_session_expires_as_a_whole(open: &Open) {
    unhurried(|slower| expires_as_a_whole(open, slower));
}

fn expires_as_a_whole(open: &Open, slower: u64) {
    let (store, key) = (open(), key());
    let ttls = [Ttl(150 * slower), Ttl(150 * slower), Ttl(0)];
    store.create(&key, &Create { ttls, user: delta(&[("u", Some("1"))]), ..create() }).unwrap();
    store.append(&key, &Append { ttls, ..batch(&["a"]) }).unwrap();
    let summary = NewSummary { ttl: Ttl(150 * slower), ..summary(&*store, &key, 0, 1) };
    store.put_summary(&key, &summary).unwrap();
    assert_eq!(ids(&all(&*store, &key)), ["a"]);
    sleep(Duration::from_millis(400 * slower));
    assert_eq!(store.load(&key, &EventWindow::default()).unwrap(), None);
    assert!(store.list(&key.owner, Page::default()).unwrap().is_empty());
    assert_eq!(store.append(&key, &batch(&["b"])).map(drop), Err(StoreError::NotFound(key.clone())));
    let user = Scope::User(key.owner.clone());
    assert!(store.state(&user).unwrap().is_empty());
    store.update_state(&user, &delta(&[("new", Some("1"))]), Ttl(0)).unwrap();
    assert_eq!(store.state(&user).unwrap().len(), 1, "what has expired is not brought back");
    store.create(&key, &create()).unwrap();
    let loaded = all(&*store, &key);
    assert!(loaded.events.is_empty() && loaded.summaries.is_empty());
    let short = self::key();
    store.create(&short, &Create { ttls: [Ttl(20), Ttl(0), Ttl(0)], ..create() }).unwrap();
    sleep(Duration::from_millis(80));
    store.sweep().unwrap();
    assert_eq!(store.load(&short, &EventWindow::default()).unwrap(), None);
    assert!(store.load(&key, &EventWindow::default()).unwrap().is_some());
}

fn reading_refreshes_only_where_it_is_asked_to(open: &Open) {
    unhurried(|slower| reading_refreshes(open, slower));
}

fn reading_refreshes(open: &Open, slower: u64) {
    let (store, read, refreshed) = (open(), key(), key());
    for key in [&read, &refreshed] {
        store.create(key, &Create { ttls: [Ttl(600 * slower), Ttl(0), Ttl(0)], ..create() }).unwrap();
        store.append(key, &Append { ttls: [Ttl(600 * slower), Ttl(0), Ttl(0)], ..batch(&["a"]) }).unwrap();
    }
    for _ in 0..4 {
        sleep(Duration::from_millis(250 * slower));
        store.load(&read, &EventWindow::default()).unwrap();
        let kept = store
            .load(&refreshed, &EventWindow { refresh: Some(Ttl(600 * slower)), ..EventWindow::default() })
            .unwrap();
        assert_eq!(ids(&kept.unwrap()), ["a"]);
    }
    assert_eq!(store.load(&read, &EventWindow::default()).unwrap(), None);
}

fn the_oldest_events_leave_and_calls_go_with_their_results(open: &Open) {
    let store = open();
    let evicting = |max_events, protect| Eviction { max_events, protect };
    let key = key();
    store.create(&key, &create()).unwrap();
    for id in ["a", "b", "c", "d", "e"] {
        store.append(&key, &Append { eviction: evicting(3, false), ..batch(&[id]) }).unwrap();
    }
    let loaded = all(&*store, &key);
    assert_eq!((ids(&loaded), loaded.head.first_seq, loaded.head.seq), (vec!["c", "d", "e"], 3, 5));
    assert_eq!(
        store.append(&key, &batch(&["a"])).unwrap().repeated,
        [true],
        "the id of an evicted event is still known"
    );
    let key = self::key();
    store.create(&key, &create()).unwrap();
    let kinds = [
        EventKind::User,
        EventKind::Calls,
        EventKind::Result,
        EventKind::Result,
        EventKind::Assistant,
        EventKind::User,
    ];
    let group = kinds.iter().enumerate().map(|(at, kind)| event(&format!("g{at}"), *kind)).collect();
    store.append(&key, &Append { events: group, eviction: evicting(4, false), ..Append::default() }).unwrap();
    assert_eq!(ids(&all(&*store, &key)), ["g4", "g5"], "the results went with their call");
    let key = self::key();
    store.create(&key, &create()).unwrap();
    let protected = |ids: &[&str]| Append { eviction: evicting(2, true), ..batch(ids) };
    store.append(&key, &protected(&["a", "b", "c"])).unwrap();
    assert_eq!(ids(&all(&*store, &key)), ["a", "b", "c"], "no summary covers them");
    store.put_summary(&key, &summary(&*store, &key, 0, 2)).unwrap();
    store.append(&key, &protected(&["d"])).unwrap();
    assert_eq!(ids(&all(&*store, &key)), ["c", "d"]);
    store.append(&key, &protected(&["e", "f", "g", "h"])).unwrap();
    assert_eq!(ids(&all(&*store, &key)), ["e", "f", "g", "h"], "twice as many at most");
}

fn a_tail_is_replaced_whole(open: &Open) {
    let (store, key) = (open(), key());
    store.create(&key, &create()).unwrap();
    store.append(&key, &batch(&["a", "b", "c"])).unwrap();
    store.put_summary(&key, &summary(&*store, &key, 0, 1)).unwrap();
    store.put_summary(&key, &summary(&*store, &key, 1, 3)).unwrap();
    let wrong = Append { expected_seq: Some(2), ..batch(&["x"]) };
    assert!(matches!(store.replace_tail(&key, 1, &wrong), Err(StoreError::Conflict { .. })));
    let appended = store.replace_tail(&key, 1, &Append { expected_seq: Some(3), ..batch(&["x", "b"]) }).unwrap();
    assert_eq!((appended.seqs, appended.repeated), (vec![Some(4), Some(5)], vec![false, false]));
    let loaded = all(&*store, &key);
    assert_eq!(ids(&loaded), ["a", "x", "b"]);
    assert_eq!(loaded.summaries.iter().map(|summary| summary.last_seq).collect::<Vec<_>>(), [1]);
    let emptied = store.replace_tail(&key, 0, &Append { expected_seq: Some(5), ..Append::default() }).unwrap();
    assert_eq!((emptied.head.seq, emptied.head.first_seq), (6, 7), "who expects 5 learns of it");
    assert!(all(&*store, &key).events.is_empty());
    let late = Append { expected_seq: Some(5), ..batch(&["late"]) };
    assert!(matches!(store.append(&key, &late), Err(StoreError::Conflict { .. })));
    assert_eq!(store.append(&key, &batch(&["new"])).unwrap().seqs, [Some(7)]);
    assert_eq!(all(&*store, &key).head.first_seq, 7);
}

fn a_summary_is_compared_and_set(open: &Open) {
    let (store, key) = (open(), key());
    store.create(&key, &create()).unwrap();
    store.append(&key, &batch(&["a", "b", "c", "d", "e"])).unwrap();
    let put = |summary: NewSummary| store.put_summary(&key, &summary).unwrap();
    let links = vec![(1, "a".to_owned()), (2, "b".to_owned())];
    let first = NewSummary {
        links: links.clone(),
        record: "{\"reason\": \"idle\"}".to_owned(),
        ..summary(&*store, &key, 0, 3)
    };
    assert_eq!(put(first.clone()), PutSummary::Accepted(1));
    assert_eq!(put(summary(&*store, &key, 0, 4)), PutSummary::Stale, "made of the same one");
    assert_eq!(put(summary(&*store, &key, 1, 2)), PutSummary::Stale, "covers less");
    assert_eq!(put(summary(&*store, &key, 1, 6)), PutSummary::Beyond);
    assert_eq!(put(NewSummary { generation: "another".to_owned(), ..summary(&*store, &key, 1, 4) }), PutSummary::Gone);
    let failed = NewSummary { failed: true, text: "timed out".to_owned(), ..summary(&*store, &key, 1, 5) };
    assert_eq!(put(failed), PutSummary::Accepted(0));
    assert_eq!(put(summary(&*store, &key, 1, 3)), PutSummary::Accepted(2), "the same reach, made again");
    let branch = NewSummary { filter_key: "a/b".to_owned(), ..summary(&*store, &key, 0, 2) };
    assert_eq!(put(branch), PutSummary::Accepted(1), "a key of its own");
    let placeholder = Some(event("placeholder", EventKind::Summary));
    assert_eq!(put(NewSummary { placeholder, ..summary(&*store, &key, 2, 5) }), PutSummary::Accepted(3));
    let loaded = all(&*open(), &key);
    assert_eq!(ids(&loaded), ["a", "b", "c", "d", "e", "placeholder"], "a summary removes nothing");
    let newest: Vec<_> = loaded.summaries.iter().map(|s| (s.filter_key.as_str(), s.version, s.last_seq)).collect();
    assert_eq!(newest, [("", 3, 5), ("a/b", 1, 2)]);
    let versions = |query: SummaryQuery| -> Vec<u64> {
        store.summaries(&key, &query).unwrap().into_iter().map(|summary| summary.version).collect()
    };
    let of_all = Some(String::new());
    assert_eq!(versions(SummaryQuery { filter_key: of_all.clone(), ..SummaryQuery::default() }), [3, 2, 1]);
    assert_eq!(versions(SummaryQuery { filter_key: of_all, last: Some(1), ..SummaryQuery::default() }), [3]);
    assert_eq!(versions(SummaryQuery::default()).len(), 4);
    let failed = store.summaries(&key, &SummaryQuery { failed: true, ..SummaryQuery::default() }).unwrap();
    assert_eq!(failed.iter().map(|s| (s.text.as_str(), s.version)).collect::<Vec<_>>(), [("timed out", 0)]);
    let linked = store.summaries(&key, &SummaryQuery { links: true, ..SummaryQuery::default() }).unwrap();
    let linked = linked.into_iter().find(|summary| summary.id == first.id).unwrap();
    assert_eq!((linked.links, linked.record, linked.first_seq), (links, first.record, 1));
}

fn many_writers_lose_nothing(open: &Open) {
    const WRITERS: usize = 4;
    const EVENTS: usize = 40;
    let key = key();
    open().create(&key, &create()).unwrap();
    thread::scope(|scope| {
        for writer in 0..WRITERS {
            let (store, key) = (open(), &key);
            scope.spawn(move || {
                for at in 0..EVENTS {
                    let id = format!("{writer}-{at:03}");
                    let state = delta(&[(id.as_str(), Some("1"))]);
                    let one = NewEvent { session: state, ..event(&id, EventKind::User) };
                    let batch = Append { events: vec![one], ..Append::default() };
                    store.append(key, &batch).unwrap();
                    if at % 5 == 0 {
                        assert_eq!(store.append(key, &batch).unwrap().repeated, [true]);
                    }
                    if at % 10 == 0 {
                        let head = all(&*store, key);
                        let version = head.summaries.first().map_or(0, |summary| summary.version);
                        store.put_summary(key, &summary(&*store, key, version, head.head.seq)).unwrap();
                    }
                }
            });
        }
    });
    let loaded = all(&*open(), &key);
    assert_eq!(
        loaded.events.iter().map(|event| event.seq).collect::<Vec<_>>(),
        (1..=(WRITERS * EVENTS) as u64).collect::<Vec<_>>()
    );
    assert_eq!(loaded.session.len(), WRITERS * EVENTS);
    for writer in 0..WRITERS {
        let own: Vec<_> = ids(&loaded).into_iter().filter(|id| id.starts_with(&format!("{writer}-"))).collect();
        assert!(own.is_sorted() && own.len() == EVENTS, "its own order");
    }
    let versions: Vec<u64> =
        open().summaries(&key, &SummaryQuery::default()).unwrap().iter().map(|summary| summary.version).collect();
    assert_eq!(versions, (1..=versions.len() as u64).rev().collect::<Vec<_>>());
}

#[test]
fn memory_holds_the_contract() {
    let store: Arc<dyn SessionStore> = Arc::new(Memory::new());
    holds(&(Box::new(move || Arc::clone(&store)) as Open));
}
