//! Results that a later one has replaced: asked for again, written over, or the same to the letter.

use std::collections::{BTreeMap, HashMap, HashSet};

use xxhash_rust::xxh3::xxh3_128;

use crate::message::{Content, Message, Role, Text};

use super::draft::Draft;

/// Why a result says nothing any more that is not said better below.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Expired {
    /// The same call was made again later.
    Superseded,
    /// The file that was read was written later.
    Stale,
    /// A later result, of the message at this index of the draft, is the same.
    Repeated(usize),
}

impl Expired {
    /// Returns what a mark says of it.
    pub fn word(self) -> &'static str {
        match self {
            Self::Superseded => "superseded below",
            Self::Stale => "changed since",
            Self::Repeated(_) => "same as below",
        }
    }
}

/// Tools that change the file that they name.
const WRITERS: [&str; 8] =
    ["write_file", "edit_file", "create_file", "append_file", "apply_patch", "str_replace", "write", "edit"];

/// Tools that show a file.
const READERS: [&str; 5] = ["read_file", "view_file", "open_file", "cat_file", "read"];

/// Arguments that name a file.
const PATHS: [&str; 5] = ["path", "file_path", "filepath", "filename", "file"];

/// Returns for each entry of the draft whether it is a result that has expired.
///
/// A call that failed replaces nothing. O(n) in the arguments of all calls and in the bytes of all results.
pub fn expired(draft: &Draft<'_, '_>) -> Vec<Option<Expired>> {
    let mut found = vec![None; draft.entries.len()];
    let mut later_calls: HashSet<(&str, String)> = HashSet::new();
    let mut written: HashSet<String> = HashSet::new();
    let mut texts: HashMap<u128, usize> = HashMap::new();
    for (index, entry) in draft.entries.iter().enumerate().rev() {
        if entry.dropped.is_some() || entry.role != Role::Tool {
            continue;
        }
        let Some(text) = draft.message(index).and_then(text_of) else { continue };
        let Some((name, arguments)) = call_of(draft, entry.answers) else { continue };
        let path = path_in(arguments);
        let failed = has_failed(text);
        let is_reader = READERS.contains(&name);
        let call = (name, canonical(arguments));
        let later = *texts.entry(xxh3_128(text.as_bytes())).or_insert(index);
        found[index] = if later != index && text.len() >= MIN_REPEATED_BYTES {
            Some(Expired::Repeated(later))
        } else if is_reader && path.as_ref().is_some_and(|path| written.contains(path)) {
            Some(Expired::Stale)
        } else if later_calls.contains(&call) {
            Some(Expired::Superseded)
        } else {
            None
        };
        if !failed {
            later_calls.insert(call);
            if let Some(path) = path.filter(|_| WRITERS.contains(&name)) {
                written.insert(path);
            }
        }
    }
    found
}

/// A pointer costs more than the text below this.
const MIN_REPEATED_BYTES: usize = 120;

fn text_of<'m>(message: &'m Message<'_>) -> Option<&'m str> {
    match &message.content {
        Content::Text(text) => Some(text.as_str()),
        _ => None,
    }
}

fn call_of<'d>(draft: &'d Draft<'_, '_>, answers: Option<(usize, usize)>) -> Option<(&'d str, &'d str)> {
    let (index, position) = answers?;
    let call = &draft.view[index].tool_calls[position];
    Some((call.name.as_ref()?.as_str(), call.arguments.as_ref().map_or("", Text::as_str)))
}

/// Longer arguments are compared as they are.
const MAX_CANONICAL_BYTES: usize = 4096;

/// Returns arguments with their keys in order and without spaces between values, so that equal ones are equal texts.
fn canonical(arguments: &str) -> String {
    if arguments.len() > MAX_CANONICAL_BYTES {
        return arguments.trim().to_owned();
    }
    match serde_json::from_str::<BTreeMap<String, serde_json::Value>>(arguments) {
        Ok(values) => values.iter().fold(String::new(), |all, (key, value)| format!("{all}{key}={value};")),
        Err(_) => arguments.trim().to_owned(),
    }
}

/// Returns the file that a call names.
pub fn path_in(arguments: &str) -> Option<String> {
    let values: serde_json::Value = serde_json::from_str(arguments).ok()?;
    PATHS.iter().find_map(|key| values.get(key)?.as_str()).map(|path| path.trim_start_matches("./").to_owned())
}

/// Returns whether a result says at its start that the call failed.
pub fn has_failed(result: &str) -> bool {
    let start = result.trim_start();
    let start = &start[..start.floor_char_boundary(16)].to_ascii_lowercase();
    start.starts_with("error") || start.starts_with("failed") || start.starts_with("traceback")
}
