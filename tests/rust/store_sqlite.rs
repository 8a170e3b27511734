//! Sessions in a file: the contract, and what only a file can do.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use nanobot_context::session::store::{
    Append, Create, Delta, EventKind, EventWindow, NewEvent, Page, Scope, SessionKey, SessionStore, Sqlite, StoreError,
    SummaryQuery, Ttl, UserKey, open,
};

use super::store_contract::{Open, holds};

/// A folder that goes with the test.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("nanobot-context-{name}-{}", std::process::id()));
        std::fs::create_dir_all(&path).unwrap();
        Self(path)
    }

    fn file(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

fn url(path: &Path) -> String {
    format!("sqlite:///{}", path.display())
}

fn opened(path: &Path) -> Sqlite {
    Sqlite::open(&url(path)).unwrap()
}

#[test]
fn a_file_holds_the_contract() {
    let folder = Folder::new("contract");
    let path = folder.file("deep/er/sessions.db");
    let open: Open = Box::new(move || Arc::new(opened(&path)));
    holds(&open);
}

#[test]
fn a_file_in_memory_holds_the_contract() {
    let store: Arc<dyn SessionStore> = open("sqlite:///:memory:").unwrap();
    holds(&(Box::new(move || Arc::clone(&store)) as Open));
}

#[test]
fn sessions_are_there_when_the_file_is_opened_again() {
    let folder = Folder::new("again");
    let (path, key) = (folder.file("s.db"), SessionKey::new("a", "u", "s"));
    let store = opened(&path);
    store.create(&key, &Create { generation: "g".to_owned(), ..Create::default() }).unwrap();
    let event =
        NewEvent { id: "1".to_owned(), kind: EventKind::User, payload: Some("{}".to_owned()), ..NewEvent::default() };
    store.append(&key, &Append { events: vec![event], ..Append::default() }).unwrap();
    drop(store);
    let loaded = opened(&path).load(&key, &EventWindow::default()).unwrap().unwrap();
    assert_eq!((loaded.events.len(), loaded.head.generation.as_str()), (1, "g"));
}

#[cfg(unix)]
#[test]
fn the_file_is_its_owners_alone() {
    use std::os::unix::fs::PermissionsExt;
    let folder = Folder::new("mode");
    let path = folder.file("s.db");
    let store = opened(&path);
    store.create(&SessionKey::new("a", "u", "s"), &Create::default()).unwrap();
    for name in ["s.db", "s.db-wal", "s.db-shm"] {
        let mode = std::fs::metadata(folder.file(name)).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600, "{name}");
    }
}

#[test]
fn a_file_of_a_later_release_is_refused() {
    let folder = Folder::new("newer");
    let path = folder.file("s.db");
    drop(opened(&path));
    let file = rusqlite::Connection::open(&path).unwrap();
    file.pragma_update(None, "user_version", 99).unwrap();
    drop(file);
    let error = Sqlite::open(&url(&path)).unwrap_err();
    assert!(matches!(error, StoreError::NewerSchema { found: 99, known: 1, .. }), "{error}");
    assert!(error.to_string().contains("s.db"), "{error}");
}

#[test]
fn a_file_of_another_program_is_left_alone() {
    let folder = Folder::new("other");
    let path = folder.file("other.db");
    let file = rusqlite::Connection::open(&path).unwrap();
    file.execute_batch("CREATE TABLE theirs (a)").unwrap();
    drop(file);
    assert!(matches!(Sqlite::open(&url(&path)), Err(StoreError::Corrupt { .. })));
    let text = folder.file("text.db");
    std::fs::write(&text, "no database at all, but long enough to look like one".repeat(40)).unwrap();
    assert!(matches!(Sqlite::open(&url(&text)), Err(StoreError::Corrupt { .. })));
}

#[test]
fn what_the_file_system_says_is_told() {
    let folder = Folder::new("told");
    let file = folder.file("a-file");
    std::fs::write(&file, "").unwrap();
    for path in [file.join("s.db"), folder.0.clone()] {
        let error = Sqlite::open(&url(&path)).unwrap_err().to_string();
        assert!(error.contains(&path.display().to_string()), "{error}");
    }
    for wrong in ["sqlite:", "sqlite://s.db", "sqlite:///", "sqlite:///s.db?durability=none", "mysql://x", ""] {
        assert!(matches!(open(wrong), Err(StoreError::Invalid { .. })), "{wrong}");
    }
}

#[test]
fn a_store_that_was_opened_by_another_thread_serves_all() {
    let folder = Folder::new("threads");
    let store = Arc::new(opened(&folder.file("s.db")));
    let key = SessionKey::new("a", "u", "s");
    store.create(&key, &Create::default()).unwrap();
    std::thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| (0..50).for_each(|_| drop(store.load(&key, &EventWindow::default()).unwrap())));
        }
    });
}

fn append(store: &Sqlite, key: &SessionKey, id: &str) -> Result<(), StoreError> {
    let event = NewEvent { id: id.to_owned(), payload: Some("{}".to_owned()), ..NewEvent::default() };
    store.append(key, &Append { events: vec![event], ..Append::default() }).map(drop)
}

#[cfg(unix)]
#[test]
fn a_file_that_is_deleted_renamed_or_replaced_while_it_is_open_takes_nothing_any_more() {
    let folder = Folder::new("replaced");
    let key = SessionKey::new("a", "u", "s");
    let remove = |path: &Path| std::fs::remove_file(path).unwrap();
    let rename = |path: &Path| std::fs::rename(path, path.with_extension("other")).unwrap();
    let replace = |path: &Path| {
        std::fs::copy(path, path.with_extension("new")).unwrap();
        std::fs::rename(path.with_extension("new"), path).unwrap();
    };
    let remove: &dyn Fn(&Path) = &remove;
    let changes = [("s.db", remove), ("s.db", &rename), ("s.db", &replace), ("s.db-wal", remove), ("s.db-shm", remove)];
    for (number, (name, change)) in changes.into_iter().enumerate() {
        let within = folder.file(&number.to_string());
        let store = opened(&within.join("s.db"));
        store.create(&key, &Create::default()).unwrap();
        append(&store, &key, "1").unwrap();
        change(&within.join(name));
        for error in [append(&store, &key, "2"), store.load(&key, &EventWindow::default()).map(drop)] {
            assert!(matches!(error, Err(StoreError::Replaced { .. })), "{name}: {error:?}");
        }
    }
}

#[cfg(unix)]
#[test]
fn a_file_that_was_renamed_while_it_was_open_has_all_of_it_once_it_has_its_name_again() {
    let folder = Folder::new("renamed");
    let key = SessionKey::new("a", "u", "s");
    let (path, other) = (folder.file("s.db"), folder.file("other.db"));
    let store = opened(&path);
    store.create(&key, &Create::default()).unwrap();
    append(&store, &key, "1").unwrap();
    std::fs::rename(&path, &other).unwrap();
    assert!(matches!(append(&store, &key, "2"), Err(StoreError::Replaced { .. })));
    drop(store);
    // The newest events are in the log beside the old name.
    std::fs::rename(&other, &path).unwrap();
    let found = opened(&path).load(&key, &EventWindow::default()).unwrap().unwrap();
    assert_eq!(found.events.len(), 1);
}

#[cfg(unix)]
#[test]
fn a_database_is_not_begun_beside_the_log_of_one_that_was_renamed() {
    let folder = Folder::new("log-left");
    let key = SessionKey::new("a", "u", "s");
    let (path, link, other) = (folder.file("s.db"), folder.file("link.db"), folder.file("other.db"));
    std::os::unix::fs::symlink("s.db", &link).unwrap();
    let store = opened(&path);
    store.create(&key, &Create::default()).unwrap();
    append(&store, &key, "1").unwrap();
    let log = std::fs::read(folder.file("s.db-wal")).unwrap();
    // As after the process was killed: what closing would have moved out of the log is in it.
    std::mem::forget(store);
    std::fs::rename(&path, &other).unwrap();
    for (name, is_touched) in [(&path, false), (&link, false), (&path, true)] {
        if is_touched {
            std::fs::write(name, "").unwrap();
        }
        let error = Sqlite::open(&url(name)).err().unwrap();
        assert!(matches!(error, StoreError::Corrupt { .. }), "{error:?}");
        assert!(error.to_string().contains("s.db-wal"), "{error}");
        assert_eq!(std::fs::read(folder.file("s.db-wal")).unwrap(), log, "the log is as it was");
    }
    for suffix in ["-wal", "-shm"] {
        std::fs::rename(folder.file(&format!("s.db{suffix}")), folder.file(&format!("other.db{suffix}"))).unwrap();
    }
    let found = opened(&other).load(&key, &EventWindow::default()).unwrap().unwrap();
    assert_eq!(found.events.len(), 1);
    opened(&path).create(&key, &Create::default()).unwrap();
}

#[cfg(unix)]
#[test]
fn a_link_to_a_file_that_is_not_there_yet_makes_it_its_owners_alone() {
    use std::os::unix::fs::{PermissionsExt, symlink};
    let folder = Folder::new("link");
    let (link, target) = (folder.file("link.db"), folder.file("target.db"));
    symlink(&target, &link).unwrap();
    let store = opened(&link);
    let key = SessionKey::new("a", "u", "s");
    store.create(&key, &Create::default()).unwrap();
    append(&store, &key, "1").unwrap();
    for name in ["target.db", "target.db-wal", "target.db-shm"] {
        let mode = std::fs::metadata(folder.file(name)).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600, "{name}");
    }
}

/// Sets the times of expiry of all that a file holds.
fn expire(path: &Path, at: &str) {
    let file = rusqlite::Connection::open(path).unwrap();
    file.execute_batch(&format!("UPDATE session SET expires_ms = {at}; UPDATE state_expiry SET expires_ms = {at}"))
        .unwrap();
}

#[test]
fn what_was_seen_expired_does_not_come_back_when_the_clock_goes_back() {
    let folder = Folder::new("clock");
    let path = folder.file("s.db");
    let store = opened(&path);
    let ttls = [Ttl(3_600_000); 3];
    let user = Scope::User(UserKey { app: "a".to_owned(), user: "u".to_owned() });
    let key = SessionKey::new("a", "u", "s");
    let state = [("x".to_owned(), Some(b"1".to_vec()))];
    let looks: [&dyn Fn(); 4] = [
        &|| assert_eq!(store.load(&key, &EventWindow::default()), Ok(None)),
        &|| assert_eq!(append(&store, &key, "late"), Err(StoreError::NotFound(key.clone()))),
        &|| assert_eq!(store.list(&key.owner, Page::default()), Ok(Vec::new())),
        &|| assert_eq!(store.summaries(&key, &SummaryQuery::default()), Ok(Vec::new())),
    ];
    for (number, look) in looks.into_iter().enumerate() {
        store.create(&key, &Create { user: Delta::from(state.clone()), ttls, ..Create::default() }).unwrap();
        // To the file, a clock that goes forth and back is a time of expiry that goes back and forth.
        expire(&path, "1");
        look();
        assert!(store.state(&user).unwrap().is_empty());
        expire(&path, "9000000000000000");
        assert_eq!(store.load(&key, &EventWindow::default()), Ok(None), "{number}");
        assert!(store.state(&user).unwrap().is_empty(), "{number}");
    }
}
