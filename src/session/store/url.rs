//! Opens stores by URL.

use std::sync::Arc;

use super::{Memory, SessionStore, StoreError, StoreResult};

/// Opens the store that `url` names: `memory:`, `sqlite:///path`, `sqlite:///:memory:`, `redis://…` or `rediss://…`.
///
/// # Errors
///
/// [`StoreError::Invalid`] for a URL of another form, or of a store that was left out of this build; else what the store says.
/// No error holds a password.
pub fn open(url: &str) -> StoreResult<Arc<dyn SessionStore>> {
    let scheme = url.split_once(':').map_or("", |(scheme, _)| scheme);
    match scheme {
        "memory" => Ok(Arc::new(Memory::new())),
        #[cfg(feature = "sqlite")]
        "sqlite" => Ok(Arc::new(super::Sqlite::open(url)?)),
        #[cfg(not(feature = "sqlite"))]
        "sqlite" => Err(StoreError::invalid("url", "names a store that this build leaves out: `sqlite`")),
        #[cfg(feature = "redis")]
        "redis" | "rediss" => Ok(Arc::new(super::Redis::open(url)?)),
        #[cfg(not(feature = "redis"))]
        "redis" | "rediss" => Err(StoreError::invalid("url", "names a store that this build leaves out: `redis`")),
        _ => Err(StoreError::invalid(
            "url",
            "must begin with `memory:`, `sqlite:///`, `redis://` or `rediss://`\nhint: `sqlite:///sessions.db` is a file",
        )),
    }
}

/// Parses `url` as [`open`] does, and returns its location without credentials. Opens nothing.
///
/// # Errors
///
/// [`StoreError::Invalid`], as [`open`].
#[cfg(fuzzing)]
pub fn read(url: &str) -> StoreResult<String> {
    if url.starts_with("sqlite:") {
        return super::sqlite::parse(url).map(|(path, _)| path.display().to_string());
    }
    super::redis::Options::parse(url).map(|(options, _)| options.describe())
}

/// Returns a store's URL without user, password and options; `***` replaces what may be one of them.
#[must_use]
pub fn without_credentials(url: &str) -> String {
    let url = url.trim();
    if starts_file(url) {
        return url.split('?').next().unwrap_or_default().to_owned();
    }
    let Some(colon) = url.find(':') else {
        return if url.contains('@') { "***".to_owned() } else { url.to_owned() };
    };
    let scheme = &url[..colon];
    let is_server = matches!(scheme.to_ascii_lowercase().as_str(), "redis" | "rediss");
    let place = url[colon..].strip_prefix("://").filter(|_| is_server).and_then(server);
    match place {
        Some(place) => format!("{scheme}://{place}"),
        None if colon + 1 == url.len() => url.to_owned(),
        None => format!("{scheme}:***"),
    }
}

/// Returns a text, which may contain a URL, without credentials: `***` replaces what is between a scheme and the last `@`.
///
/// Greedy: removes all of a password with a space, an `@` or a `/` that was not escaped.
#[must_use]
pub fn mask_credentials(text: &str) -> String {
    let Some(at) = text.rfind('@') else { return text.to_owned() };
    let is_scheme = |c: char| c.is_ascii_alphanumeric() || matches!(c, '+' | '.' | '-' | '_');
    let begins = text[..at].match_indices(':').find_map(|(colon, _)| {
        let start = text[..colon].rfind(|c| !is_scheme(c)).map_or(0, |before| before + char_width(text, before));
        let rest = &text[colon + 1..];
        let is_url = start < colon && !rest.starts_with(char::is_whitespace) && !starts_file(&text[start..]);
        let slashes = rest.bytes().take_while(|&byte| byte == b'/').count();
        is_url.then_some(colon + 1 + slashes)
    });
    begins
        .filter(|&begins| begins < at)
        .map_or_else(|| text.to_owned(), |begins| format!("{}***{}", &text[..begins], &text[at..]))
}

fn char_width(text: &str, at: usize) -> usize {
    text[at..].chars().next().map_or(0, char::len_utf8)
}

fn starts_file(url: &str) -> bool {
    url.starts_with("sqlite:///")
}

/// Returns host, port and number of the database, where what follows the scheme has them and nothing that may be a secret.
fn server(rest: &str) -> Option<&str> {
    let place = rest.rsplit('@').next()?.split('?').next()?;
    let (address, database) = place.split_once('/').unwrap_or((place, ""));
    let port = match address.rsplit_once(':') {
        Some((_, port)) if !address.ends_with(']') => port,
        _ => "",
    };
    let is_number = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    (is_number(port) && is_number(database) && !address.contains(['#', ' '])).then_some(place)
}
