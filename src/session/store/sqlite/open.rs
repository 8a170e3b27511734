//! Opens a file of sessions: parses its URL, checks its file system, prepares it.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rusqlite::{Connection, OpenFlags};

use super::super::{StoreError, StoreResult};
use super::locks::beside;
use super::problem::classify;
use super::{BUSY_SECONDS, schema};

pub fn parse(url: &str) -> StoreResult<(PathBuf, bool)> {
    let wrong = |problem: &str| StoreError::invalid("url", format!("{problem}\nhint: `sqlite:///sessions.db`"));
    let rest = url.strip_prefix("sqlite:///").ok_or_else(|| wrong("of a file must begin with `sqlite:///`"))?;
    let (path, query) = rest.split_once('?').unwrap_or((rest, ""));
    let full = match query {
        "" | "durability=normal" => false,
        "durability=full" => true,
        _ => return Err(wrong("has an unknown option; known are `durability=normal` and `durability=full`")),
    };
    if path.is_empty() {
        return Err(wrong("names no file"));
    }
    let home = path.strip_prefix("~/").zip(std::env::home_dir());
    Ok((home.map_or_else(|| PathBuf::from(path), |(rest, home)| home.join(rest)), full))
}

/// Returns a connection that writes, to a file with the newest schema.
pub fn prepared(path: &Path, shown: &str, full: bool, is_memory: bool) -> StoreResult<Connection> {
    let failed = |error: rusqlite::Error| classify(&error, shown);
    let mut writer = connect(path, false).map_err(failed)?;
    let level = if full { "FULL" } else { "NORMAL" };
    writer.pragma_update(None, "synchronous", level).map_err(failed)?;
    // Deleted data is overwritten.
    writer.pragma_update(None, "secure_delete", true).map_err(failed)?;
    if !is_memory {
        let mode: String =
            writer.pragma_update_and_check(None, "journal_mode", "WAL", |row| row.get(0)).map_err(failed)?;
        if !mode.eq_ignore_ascii_case("wal") {
            let problem = format!("its journal is `{mode}`, and write-ahead logging cannot be switched on");
            return Err(StoreError::ReadOnly { store: shown.to_owned(), problem });
        }
    }
    schema::migrate(&mut writer, shown)?;
    Ok(writer)
}

pub fn connect(path: &Path, is_reader: bool) -> rusqlite::Result<Connection> {
    let mode = if is_reader {
        OpenFlags::SQLITE_OPEN_READ_ONLY
    } else {
        OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_CREATE
    };
    let connection = Connection::open_with_flags(path, mode | OpenFlags::SQLITE_OPEN_NO_MUTEX)?;
    connection.busy_timeout(Duration::from_secs(BUSY_SECONDS))?;
    connection.pragma_update(None, "foreign_keys", true)?;
    Ok(connection)
}

fn size(path: &Path) -> u64 {
    path.metadata().map_or(0, |data| data.len())
}

/// Refuses to begin a database beside the log of one that was renamed or deleted: SQLite would empty the log, which holds
/// what was written last.
pub fn refuse_foreign_log(path: &Path, shown: &str) -> StoreResult<()> {
    let log = beside(path, "-wal");
    // The log first: who makes a database has written to it before there is one.
    if size(&log) == 0 || size(path) > 0 {
        return Ok(());
    }
    let log = log.display();
    let problem = format!(
        "it is empty, but `{log}` is not: a database was renamed or deleted without it\n\
         hint: put both together again; to begin anew, remove `{log}`"
    );
    Err(StoreError::Corrupt { store: shown.to_owned(), problem })
}

/// Bytes of a file and its log from which on there is a reserve.
const LARGE: u64 = 1 << 20;
/// Bytes that can be given back to a full disk, so that sessions can be deleted: more than what a log of 1,000 pages, SQLite's
/// own measure, adds to the file before both are one.
const RESERVE: usize = 5 << 20;

/// Takes the reserve from the disk where it has the room. Returns whether the file is so large that one is wanted.
pub fn reserve(path: &Path) -> bool {
    if size(path) + size(&beside(path, "-wal")) < LARGE {
        return false;
    }
    let reserve = beside(path, "-reserve");
    if size(&reserve) < RESERVE as u64 && fs::write(&reserve, vec![0; RESERVE]).is_err() {
        free_reserve(path);
    }
    true
}

/// Gives the reserve back to the disk. Returns whether there was one.
pub fn free_reserve(path: &Path) -> bool {
    fs::remove_file(beside(path, "-reserve")).is_ok()
}

/// Makes the file and its folder where they are missing, for their owner alone.
pub fn make_private(path: &Path, shown: &str) -> StoreResult<()> {
    let store = shown.to_owned();
    let failed = |error: std::io::Error| match error.kind() {
        std::io::ErrorKind::PermissionDenied | std::io::ErrorKind::ReadOnlyFilesystem => {
            StoreError::ReadOnly { store: store.clone(), problem: error.to_string() }
        }
        std::io::ErrorKind::StorageFull => StoreError::Full { store: store.clone(), problem: error.to_string() },
        _ => StoreError::Failed { store: store.clone(), problem: error.to_string() },
    };
    if let Some(folder) = path.parent().filter(|folder| !folder.as_os_str().is_empty()) {
        fs::create_dir_all(folder).map_err(failed)?;
    }
    if path.exists() {
        return Ok(());
    }
    // Not `create_new`, which does not follow a link: SQLite does, and would make the file it names for everybody.
    let mut options = fs::OpenOptions::new();
    options.write(true).create(true).truncate(false);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options.open(path).map(drop).map_err(failed)
}

/// File systems on which locks of one machine are not seen by another. Source: Linux, `statfs(2)` and `/proc/mounts`.
#[cfg(target_os = "linux")]
const NETWORK: [&str; 9] = ["nfs", "nfs4", "cifs", "smb3", "smbfs", "9p", "afs", "fuse.sshfs", "ceph"];

#[cfg(target_os = "linux")]
pub fn refuse_network(path: &Path) -> StoreResult<()> {
    let Ok(mounts) = fs::read_to_string("/proc/mounts") else { return Ok(()) };
    let Ok(path) = std::path::absolute(path) else { return Ok(()) };
    let folder = path.ancestors().find_map(|folder| folder.canonicalize().ok()).unwrap_or(path);
    let mounted = mounts.lines().filter_map(|line| {
        let mut fields = line.split(' ').skip(1);
        Some((fields.next()?.replace("\\040", " "), fields.next()?))
    });
    let mount = mounted.filter(|(place, _)| folder.starts_with(place)).max_by_key(|(place, _)| place.len());
    match mount {
        Some((place, kind)) if NETWORK.contains(&kind) => {
            let problem = format!(
                "is on `{place}`, a network file system ({kind}), where locks do not hold\nhint: use a local disk, or Redis"
            );
            Err(StoreError::invalid("url", problem))
        }
        _ => Ok(()),
    }
}

#[cfg(not(target_os = "linux"))]
#[allow(clippy::unnecessary_wraps)] // as on Linux
pub fn refuse_network(_: &Path) -> StoreResult<()> {
    Ok(())
}
