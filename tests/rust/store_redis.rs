//! Sessions on a Redis server: the contract, what it says when something is wrong, sessions of any length, TLS.

use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use nanobot_context::session::store::{
    Append, Create, EventKind, EventWindow, Eviction, NewEvent, NewSummary, Page, PutSummary, Redis, Retry, Scope,
    SessionKey, SessionStore, StoreError, Ttl, UserKey, open,
};

use super::redis_server::{Act, Proxy, Server, Way, wait_until};
use super::store_contract::{Open, all, batch, create, delta, event, holds, ids, key, summary};

const PASSWORD: &str = "pa:s/s w#rd";
const ENCODED: &str = "pa%3As%2Fs%20w%23rd";

fn opened(server: &Server) -> Redis {
    Redis::open(&server.url()).unwrap()
}

fn error(url: &str) -> StoreError {
    Redis::open(url).map(drop).unwrap_err()
}

#[test]
fn a_server_holds_the_contract() {
    let server = Server::new();
    let url = server.url();
    let open: Open = Box::new(move || Arc::new(Redis::open(&url).unwrap()));
    holds(&open);
}

#[test]
fn a_url_that_cannot_be_used_is_refused_and_not_repeated() {
    for wrong in [
        "redis:",
        "redis://",
        "redis:///0",
        "redis://:hidden@/0",
        "redis://host/hidden",
        "redis://host:hidden",
        "redis://:hid#den@host",
        "redis://host?hidden=1",
        "redis://host?durability=hidden",
        "redis://host?replicas=hidden",
        "redis://host?timeout=hidden",
        "redis://host?timeout=0",
        "redis://host?timeout=-1",
        "redis://host?prefix=hid{den",
        "redis://host?prefix=",
        "redis://host?ca=hidden.pem",
        "rediss://host/#insecure",
        "redis+unix:///hidden",
    ] {
        let error = open(wrong).map(drop).unwrap_err();
        assert!(matches!(error, StoreError::Invalid { .. }), "{wrong}: {error}");
        assert!(!format!("{error} {error:?}").contains("hid"), "{error}");
    }
    let error = error("rediss://host?ca=/there/is/none.pem").to_string();
    assert!(error.contains("/there/is/none.pem"), "{error}");
}

#[test]
fn who_does_not_answer_is_told_within_the_time() {
    let silent = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = silent.local_addr().unwrap().port();
    let begun = Instant::now();
    let error = error(&format!("redis://:{ENCODED}@127.0.0.1:{port}?timeout=0.3"));
    assert!(matches!(&error, StoreError::Unavailable { problem, .. } if problem.contains("within 0.3 s")), "{error}");
    assert!(begun.elapsed() < Duration::from_mins(1));
    assert_eq!(error.retry(), Retry::Later);
    drop(silent);
    let error = self::error(&format!("redis://:{ENCODED}@127.0.0.1:{port}/3?prefix=x"));
    let StoreError::Unavailable { store, .. } = &error else { panic!("{error}") };
    assert_eq!(*store, format!("`redis://127.0.0.1:{port}/3?prefix=x`"));
}

#[test]
fn credentials_are_needed_and_never_shown() {
    let server = Server::with(&["--requirepass", PASSWORD, "--user", "poor", "on", ">poor", "~*", "+info"]);
    let at = |credentials: &str| format!("redis://{credentials}127.0.0.1:{}", server.port);
    let forbidden = error(&at("poor:poor@"));
    assert!(matches!(forbidden, StoreError::Forbidden { .. }), "{forbidden}");
    assert!(!forbidden.to_string().contains("password"), "it was right: {forbidden}");
    for wrong in ["", ":wrong-one@", "someone:wrong-one@"] {
        let error = error(&at(wrong));
        assert!(matches!(error, StoreError::Unauthorized { .. }), "{wrong}: {error}");
        assert!(!format!("{error} {error:?}").contains("wrong-one"), "{error}");
        assert_eq!(error.retry(), Retry::Never);
    }
    let store = Redis::open(&at(&format!(":{ENCODED}@"))).unwrap();
    let key = key();
    store.create(&key, &create()).unwrap();
    for shown in [store.describe(), format!("{store:?}"), format!("{store:#?}")] {
        assert!(!shown.contains(PASSWORD) && !shown.contains(ENCODED) && shown.contains("127.0.0.1"), "{shown}");
    }
    drop(server);
    let error = store.append(&key, &batch(&["a"])).unwrap_err();
    assert!(matches!(error, StoreError::Unavailable { .. }), "{error}");
    assert!(!format!("{error} {error:?}").contains(PASSWORD), "{error}");
}

#[test]
fn what_a_server_repeats_of_a_password_is_left_out() {
    let server = Server::new();
    let proxy = Proxy::new(server.port);
    proxy.follow(|_, text| {
        let is_info = text.contains("$4\r\nINFO");
        Act::Answer(if is_info { b"-ERR unknown command, with args beginning with: 'hidden'\r\n" } else { b"+OK\r\n" })
    });
    let error = error(&format!("redis://:hidden@127.0.0.1:{}", proxy.port)).to_string();
    assert!(error.contains("unknown command") && !error.contains("hidden"), "{error}");
}

#[test]
fn a_session_that_lost_a_key_is_damaged_and_not_empty() {
    let server = Server::new();
    let store = opened(&server);
    for lost in ["events", "ids", "summaries"] {
        let key = key();
        store.create(&key, &create()).unwrap();
        store.append(&key, &batch(&["a", "b"])).unwrap();
        assert_eq!(store.put_summary(&key, &summary(&store, &key, 0, 1)), Ok(PutSummary::Accepted(1)));
        let next = summary(&store, &key, 1, 2);
        // What the server does by itself when its memory is full.
        let own = server.tell(&["KEYS", &format!("*{}:{lost}", key.id)]);
        let own = own.split_whitespace().find(|word| word.starts_with("nbctx:")).unwrap();
        server.tell(&["DEL", own]);
        let errors = [
            store.load(&key, &EventWindow::default()).map(drop),
            store.append(&key, &batch(&["c"])).map(drop),
            store.put_summary(&key, &next).map(drop),
        ];
        for error in errors {
            assert!(matches!(error, Err(StoreError::Corrupt { .. })), "{lost}: {error:?}");
        }
        assert!(store.delete(&key).unwrap(), "it can be deleted");
    }
}

#[test]
fn a_server_of_a_later_release_is_refused() {
    let server = Server::new();
    drop(opened(&server));
    server.tell(&["SET", "nbctx:schema", "99"]);
    let error = error(&server.url());
    assert!(matches!(error, StoreError::NewerSchema { found: 99, known: 1, .. }), "{error}");
    Redis::open(&format!("{}?prefix=other", server.url())).unwrap();
    server.tell(&["SET", "nbctx:schema", "theirs"]);
    assert!(matches!(self::error(&server.url()), StoreError::Corrupt { .. }));
    server.tell(&["DEL", "nbctx:schema"]);
    server.tell(&["LPUSH", "nbctx:schema", "theirs"]);
    assert!(matches!(self::error(&server.url()), StoreError::Corrupt { .. }));
}

/// Gives an answer in place of the server to requests that name `what`.
fn answering(what: &'static str, answer: &'static [u8]) -> impl FnMut(Way, &str) -> Act {
    move |_, text| if text.contains(what) { Act::Answer(answer) } else { Act::Pass }
}

#[test]
fn durability_that_the_server_does_not_have_is_refused_at_once() {
    let server = Server::new();
    let url = format!("{}?durability=aof", server.url());
    let error = error(&url).to_string();
    assert!(error.contains("`durability=aof`"), "{error}");
    // What a server of Redis 7.2 says, with and without a file.
    let proxy = Proxy::new(server.port);
    let url = format!("{}?durability=aof&timeout=1", proxy.url());
    proxy.follow(answering(
        "WAITAOF",
        b"-ERR WAITAOF cannot be used when numlocal is set but appendonly is disabled.\r\n",
    ));
    assert!(self::error(&url).to_string().contains("appendonly yes"));
    proxy.follow(answering("WAITAOF", b"*2\r\n:1\r\n:0\r\n"));
    let (store, key) = (Redis::open(&url).unwrap(), key());
    store.create(&key, &create()).unwrap();
    proxy.follow(answering("WAITAOF", b"*2\r\n:0\r\n:0\r\n"));
    let error = store.append(&key, &batch(&["a"])).unwrap_err();
    assert!(error.to_string().contains("disk has it not"), "{error}");
    assert_eq!(error.retry(), Retry::Later);
    assert_eq!(ids(&all(&store, &key)), ["a"], "the write was made, and its id will tell");
}

#[test]
fn replicas_are_waited_for() {
    let server = Server::with(&["--repl-diskless-sync-delay", "0"]);
    let store = Redis::open(&format!("{}?replicas=1&timeout=1", server.url())).unwrap();
    let key = key();
    let error = store.create(&key, &create()).unwrap_err().to_string();
    assert!(error.contains("0 of 1 replicas"), "{error}");
    let replica = Server::with(&["--replicaof", "127.0.0.1", &server.port.to_string()]);
    let has_it = || store.append(&key, &batch(&["a"])).is_ok();
    wait_until("the replica has it", has_it);
    assert_eq!(ids(&all(&opened(&replica), &key)), ["a"], "what was acknowledged is there");
    let error = opened(&replica).append(&key, &batch(&["b"])).unwrap_err();
    assert!(matches!(error, StoreError::ReadOnly { .. }), "{error}");
}

#[test]
fn a_server_that_is_full_or_keeps_nothing_is_told() {
    let server = Server::with(&["--dbfilename", "gone.rdb"]);
    let (store, key) = (opened(&server), key());
    assert!(store.describe().contains("`appendonly` is off"), "{}", store.describe());
    store.create(&key, &create()).unwrap();
    server.tell(&["CONFIG", "SET", "maxmemory", "1mb"]);
    let changing = NewEvent { session: delta(&[("x", Some("1"))]), ..event("b", EventKind::User) };
    let both = Append { events: vec![event("a", EventKind::User), changing], ..Append::default() };
    let error = store.append(&key, &both).unwrap_err();
    assert!(matches!(error, StoreError::Full { .. }), "{error}");
    let loaded = all(&store, &key);
    assert!(loaded.events.is_empty() && loaded.session.is_empty(), "nothing of it was written");
    server.tell(&["CONFIG", "SET", "maxmemory", "100mb"]);
    assert_eq!(store.append(&key, &both).unwrap().repeated, [false, false]);
    assert_eq!(opened(&server).warnings().len(), 1, "it refuses when it is full");
    for (policy, part) in [("allkeys-lru", "parts of sessions when"), ("volatile-ttl", "with a time to live")] {
        server.tell(&["CONFIG", "SET", "maxmemory-policy", policy]);
        let described = opened(&server).describe();
        assert!(described.contains(policy) && described.contains(part), "{described}");
    }
    // A disk that cannot be written: no snapshot, then no write.
    server.tell(&["CONFIG", "SET", "save", "3600 1"]);
    std::fs::create_dir(server.file("gone.rdb")).unwrap();
    server.tell(&["BGSAVE"]);
    wait_until("writes are refused", || store.append(&key, &batch(&["c"])).is_err());
    let error = store.append(&key, &batch(&["c"])).unwrap_err();
    assert!(matches!(&error, StoreError::Full { problem, .. } if problem.contains("MISCONF")), "{error}");
}

#[test]
fn names_with_any_characters_are_kept_apart() {
    let server = Server::new();
    let store = opened(&server);
    let named = [
        ("a", "b|1:c", "s"),
        ("a|5:b|1:c", "", "s"),
        ("a", "x}:s:1", "sid"),
        ("a", "x", "1}:s:sid"),
        ("}", "{", ":meta"),
        ("}", "{", ":meta:meta"),
        ("", "", ""),
        ("字", "\u{0}\r\n", "*?[a]"),
    ];
    let keys: Vec<SessionKey> = named.iter().map(|(app, user, id)| SessionKey::new(*app, *user, *id)).collect();
    for (at, key) in keys.iter().enumerate() {
        let number = at.to_string();
        let own = delta(&[("n", Some(&number))]);
        let create = Create { session: own.clone(), user: own, ..create() };
        store.create(key, &create).unwrap();
        store.append(key, &batch(&[&number])).unwrap();
    }
    for (at, key) in keys.iter().enumerate() {
        let (loaded, number) = (all(&store, key), at.to_string());
        assert_eq!(ids(&loaded), [number.as_str()], "{key}");
        assert_eq!(loaded.session["n"], number.as_bytes(), "{key}");
        assert!(store.list(&key.owner, Page::default()).unwrap().iter().any(|head| head.key == *key));
    }
}

#[test]
fn a_list_that_names_expired_sessions_forgets_them() {
    let server = Server::new();
    let (store, user) = (opened(&server), UserKey { app: "app".to_owned(), user: "lister".to_owned() });
    let name = "nbctx:{3:app|6:lister}:sessions";
    let make = |id: &str, ttl| {
        let key = SessionKey { owner: user.clone(), id: id.to_owned() };
        store.create(&key, &Create { ttls: [Ttl(ttl), Ttl(0), Ttl(0)], ..create() }).unwrap();
    };
    for at in 0..1_200 {
        make(&format!("s{at:04}"), 0);
        make(&format!("gone{at:04}"), 1);
    }
    thread::sleep(Duration::from_millis(20));
    assert_eq!(server.tell(&["ZCARD", name]), "2400");
    let listed = store.list(&user, Page { offset: 700, limit: Some(2) }).unwrap();
    assert_eq!(listed.iter().map(|head| head.key.id.as_str()).collect::<Vec<_>>(), ["s0499", "s0498"]);
    let left: u64 = server.tell(&["ZCARD", name]).parse().unwrap();
    assert!((1_200..2_400).contains(&left), "{left}");
    assert_eq!(store.sweep().unwrap(), left - 1_200);
    assert_eq!(store.list(&user, Page::default()).unwrap().len(), 1_200);
    assert_eq!(store.sweep().unwrap(), 0);
    // A list of sessions that all expire expires with the last of them.
    let short = SessionKey::new("app", "short", "s");
    store.create(&short, &Create { ttls: [Ttl(60_000), Ttl(0), Ttl(0)], ..create() }).unwrap();
    store
        .create(&SessionKey::new("app", "short", "t"), &Create { ttls: [Ttl(1), Ttl(0), Ttl(0)], ..create() })
        .unwrap();
    let [list, meta] = ["sessions", "s:s:meta"].map(|end| format!("nbctx:{{3:app|5:short}}:{end}"));
    assert_eq!(server.tell(&["PEXPIRETIME", &list]), server.tell(&["PEXPIRETIME", &meta]));
}

#[test]
fn all_keys_of_a_session_expire_at_the_same_millisecond() {
    let server = Server::new();
    let (store, key) = (opened(&server), SessionKey::new("a", "u", "s"));
    let ttls = [Ttl(60_000), Ttl(70_000), Ttl(80_000)];
    store.create(&key, &Create { ttls, session: delta(&[("x", Some("1"))]), ..create() }).unwrap();
    let partial = NewEvent { payload: None, ..event("p", EventKind::Other) };
    let owners =
        NewEvent { user: delta(&[("u", Some("1"))]), app: delta(&[("a", Some("1"))]), ..event("e", EventKind::User) };
    store.append(&key, &Append { ttls, events: vec![partial, owners], ..Append::default() }).unwrap();
    let covering = summary(&store, &key, 0, 1);
    store.put_summary(&key, &NewSummary { ttl: Ttl(60_000), ..covering }).unwrap();
    let time = |name: &str| server.tell(&["PEXPIRETIME", name]).parse::<i64>().unwrap();
    let own =
        ["meta", "events", "ids", "ops", "state", "summaries"].map(|end| time(&format!("nbctx:{{1:a|1:u}}:s:s:{end}")));
    assert!(own[0] > 0 && own.iter().all(|at| *at == own[0]), "{own:?}");
    let [user, app] = ["nbctx:{1:a|1:u}:state", "nbctx:{1:a}:state"].map(time);
    assert!(user > own[0] && app > user, "{own:?} {user} {app}");
    store.load(&key, &EventWindow { refresh: Some(Ttl(0)), ..EventWindow::default() }).unwrap();
    assert_eq!(time("nbctx:{1:a|1:u}:s:s:events"), -1);
    store.delete(&key).unwrap();
    let left = server.tell(&["KEYS", "*:s:*"]);
    assert_eq!(left, "", "deleting leaves nothing of the session");
}

#[test]
fn sessions_of_8_000_and_100_000_events_are_read_whole_and_by_their_end() {
    let server = Server::new();
    let (store, key) = (opened(&server), key());
    store.create(&key, &create()).unwrap();
    let text = "x".repeat(100);
    for (from, to) in [(0, 8_000), (8_000, 100_000)] {
        for start in (from..to).step_by(1_000) {
            let made = |at: u64| NewEvent {
                id: format!("e{at}"),
                time_ms: i64::try_from(at).unwrap(),
                payload: Some(format!("{at} {text}")),
                ..NewEvent::default()
            };
            let batch = Append { events: (start..start + 1_000).map(made).collect(), ..Append::default() };
            assert_eq!(store.append(&key, &batch).unwrap().head.seq, start + 1_000);
        }
        let begun = Instant::now();
        let loaded = all(&store, &key);
        let whole = begun.elapsed();
        assert_eq!(loaded.events.len() as u64, to);
        assert!(
            loaded.events.iter().zip(1..).all(|(event, seq)| event.seq == seq && event.id == format!("e{}", seq - 1))
        );
        let last = || store.load(&key, &EventWindow { last: Some(50), ..EventWindow::default() }).unwrap().unwrap();
        let end = last();
        // The quickest of five, beside all of them: the end costs what the end is long.
        let quickest = (0..5).map(|_| {
            let begun = Instant::now();
            last();
            begun.elapsed()
        });
        assert!(quickest.min().unwrap() < whole / 2, "{whole:?}");
        assert_eq!(end.events.iter().map(|event| event.seq).collect::<Vec<_>>(), (to - 49..=to).collect::<Vec<_>>());
        let old = EventWindow { since_ms: Some(3_000), last: Some(2_500), after: to - 4_000, ..EventWindow::default() };
        let old = store.load(&key, &old).unwrap().unwrap();
        assert_eq!((old.events[0].seq, old.events.len()), (to - 2_499, 2_500));
    }
    let shorter = Append { eviction: Eviction { max_events: 10, protect: false }, ..batch(&["last"]) };
    let head = store.append(&key, &shorter).unwrap().head;
    assert_eq!((head.first_seq, head.seq), (99_992, 100_001));
    let known: u64 = server
        .tell(&["ZCARD", &format!("nbctx:{{3:app|{}:{}}}:s:{}:ids", key.owner.user.len(), key.owner.user, key.id)])
        .parse()
        .unwrap();
    assert_eq!(known, 1_010, "ids of events that left long ago go too");
}

#[test]
fn a_reading_in_pages_is_one_picture() {
    let server = Server::new();
    let (store, key) = (opened(&server), key());
    store.create(&key, &create()).unwrap();
    let is_over = AtomicBool::new(false);
    thread::scope(|scope| {
        scope.spawn(|| {
            let writer = opened(&server);
            let mut seq = 0;
            while !is_over.load(Ordering::Relaxed) {
                let ids: Vec<String> = (0..300).map(|at| format!("{}", seq + at)).collect();
                let ids: Vec<&str> = ids.iter().map(String::as_str).collect();
                let eviction = Eviction { max_events: 2_500, protect: false };
                seq = writer.append(&key, &Append { eviction, ..batch(&ids) }).unwrap().head.seq;
            }
        });
        for _ in 0..40 {
            let loaded = all(&store, &key);
            let seqs: Vec<u64> = loaded.events.iter().map(|event| event.seq).collect();
            let expected: Vec<u64> = (loaded.head.first_seq..=loaded.head.seq).collect();
            assert!(seqs == expected, "{} to {}: {} events", loaded.head.first_seq, loaded.head.seq, seqs.len());
        }
        is_over.store(true, Ordering::Relaxed);
    });
}

fn openssl(folder: &Path, words: &str) {
    let done = Command::new("openssl").args(words.split(' ')).current_dir(folder).output();
    let done = done.unwrap_or_else(|error| panic!("`openssl` cannot be started: {error}"));
    assert!(done.status.success(), "openssl {words}: {}", String::from_utf8_lossy(&done.stderr));
}

#[test]
fn a_server_with_a_certificate_of_a_private_authority_is_trusted_by_its_file() {
    let plain = Server::new();
    let folder = plain.file("certificates");
    std::fs::create_dir(&folder).unwrap();
    let new_key = "-newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -subj";
    openssl(&folder, &format!("req -x509 {new_key} /CN=authority -keyout ca.key -out ca.pem -days 2"));
    openssl(&folder, &format!("req {new_key} /CN=server -keyout server.key -out server.csr"));
    std::fs::write(folder.join("names"), "subjectAltName=IP:127.0.0.1").unwrap();
    let signing = "-CA ca.pem -CAkey ca.key -CAcreateserial -days 2 -extfile names";
    openssl(&folder, &format!("x509 -req -in server.csr -out server.pem {signing}"));
    let file = |name: &str| folder.join(name).display().to_string();
    let (authority, certificate, private) = (file("ca.pem"), file("server.pem"), file("server.key"));
    let mut server = None;
    for port in (plain.port + 1..plain.port + 50).map(|port| port.to_string()) {
        let listening = ["--tls-port", &port, "--tls-auth-clients", "no", "--requirepass", PASSWORD];
        let own = ["--tls-cert-file", &certificate, "--tls-key-file", &private, "--tls-ca-cert-file", &authority];
        if std::net::TcpListener::bind(format!("127.0.0.1:{port}")).is_ok() {
            server = Some((Server::with(&[listening, own].concat()), port));
            break;
        }
    }
    let (_server, port) = server.unwrap();
    let url = format!("rediss://:{ENCODED}@127.0.0.1:{port}?timeout=3&ca={authority}");
    let (store, key) = (Redis::open(&url).unwrap(), key());
    store.create(&key, &create()).unwrap();
    store.append(&key, &batch(&["a"])).unwrap();
    assert_eq!(ids(&all(&store, &key)), ["a"]);
    assert!(store.describe().starts_with("`rediss://"), "{}", store.describe());
    for untrusted in [
        format!("rediss://:{ENCODED}@127.0.0.1:{port}?timeout=3"),
        format!("rediss://:{ENCODED}@localhost:{port}?timeout=3&ca={authority}"),
        format!("redis://:{ENCODED}@127.0.0.1:{port}?timeout=3"),
        format!("rediss://:{ENCODED}@127.0.0.1:{}?timeout=3", plain.port),
    ] {
        let error = error(&untrusted);
        assert!(matches!(error, StoreError::Unavailable { .. }), "{untrusted}: {error}");
        assert!(!format!("{error} {error:?}").contains(PASSWORD), "{error}");
    }
    let no_certificate = format!("rediss://127.0.0.1:{port}?ca={private}");
    assert!(matches!(error(&no_certificate), StoreError::Invalid { .. }));
}

#[test]
fn a_key_of_another_program_is_left_alone() {
    let server = Server::new();
    let store = opened(&server);
    server.tell(&["SET", "nbctx:{3:app|1:u}:state", "theirs"]);
    let scope = Scope::User(UserKey { app: "app".to_owned(), user: "u".to_owned() });
    assert!(matches!(store.state(&scope), Err(StoreError::Corrupt { .. })));
    assert!(matches!(store.update_state(&scope, &delta(&[("x", Some("1"))]), Ttl(0)), Err(StoreError::Corrupt { .. })));
    assert_eq!(server.tell(&["GET", "nbctx:{3:app|1:u}:state"]), "theirs");
}
