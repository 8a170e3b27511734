//! Maps errors of Redis.

use redis::{ErrorKind, RedisError};

use super::super::StoreError;
use super::options::RedisOptions;

/// Codes anywhere in the text of an error: before Redis 7 a script's error wraps its cause.
fn names(text: &str, codes: &[&str]) -> bool {
    text.split(|c: char| !c.is_ascii_alphanumeric()).any(|word| codes.contains(&word))
}

/// Whether the server is not ready: it starts, fails over, or moves the slot.
pub fn is_passing(error: &RedisError) -> bool {
    // A script that reads keys of its user which are being moved away.
    let is_moving = || error.detail().is_some_and(|detail| detail.contains("non local key"));
    names(error.code().unwrap_or_default(), &["LOADING", "TRYAGAIN", "CLUSTERDOWN", "MASTERDOWN"]) || is_moving()
}

/// Whether the connection is broken, and it is unknown if the request arrived.
pub fn is_broken(error: &RedisError) -> bool {
    matches!(error.kind(), ErrorKind::Io | ErrorKind::Parse | ErrorKind::Client | ErrorKind::UnexpectedReturnType)
}

/// Whether the server is a replica.
pub fn is_read_only(error: &RedisError) -> bool {
    names(&text(error), &["READONLY"])
}

fn text(error: &RedisError) -> String {
    match (error.code(), error.detail()) {
        (Some(code), Some(detail)) => format!("{code} {detail}"),
        _ => error.to_string(),
    }
}

/// Returns the store error of `error`, without the password, whatever the server repeated.
pub fn told(error: &RedisError, options: &RedisOptions) -> StoreError {
    let store = options.describe();
    let mut problem =
        if error.is_timeout() { format!("no answer within {} s", options.timeout.as_secs_f64()) } else { text(error) };
    if let Some(password) = options.password().filter(|password| !password.is_empty()) {
        problem = problem.replace(password, "…");
    }
    let is = |codes: &[&str]| names(&problem, codes);
    if error.kind() == ErrorKind::AuthenticationFailed || is(&["NOAUTH", "WRONGPASS"]) {
        StoreError::Unauthorized { store, problem }
    } else if is(&["NOPERM", "DENIED"]) {
        StoreError::Forbidden { store, problem }
    } else if is(&["OOM", "MISCONF"]) {
        StoreError::Full { store, problem }
    } else if is(&["READONLY"]) {
        StoreError::ReadOnly { store, problem }
    } else if is(&["WRONGTYPE"]) {
        StoreError::Corrupt { store, problem }
    } else if is_broken(error)
        || is_passing(error)
        || is(&["NOREPLICAS", "BUSY"])
        || problem.contains("max number of clients")
    {
        StoreError::Unavailable { store, problem }
    } else {
        StoreError::Failed { store, problem }
    }
}
