//! What a model should still know of what was left out: the exact names, and what was done.

use std::fmt::Write;

use xxhash_rust::xxh3::xxh3_64;

use crate::tools::{SUBJECT_KEYS, exit_code, has_failed};

/// Arguments that say whom or what a call was for, where none of [`SUBJECT_KEYS`] does.
const ADDRESSEE_KEYS: [&str; 4] = ["to", "chat_id", "channel", "id"];

/// Characters of a call's argument and of its outcome that are repeated.
const MAX_ARGUMENT_CHARS: usize = 80;
const MAX_OUTCOME_CHARS: usize = 24;

/// Returns one line for a call: the tool, what it was about, and how it ended where the result says so.
pub fn call_line(tool: &str, arguments: &str, result: Option<&str>) -> String {
    let values: serde_json::Value = serde_json::from_str(arguments).unwrap_or_default();
    let mut keys = SUBJECT_KEYS.iter().chain(&ADDRESSEE_KEYS);
    let subject = keys.find_map(|key| values.get(key)).or_else(|| values.as_object()?.values().next());
    let subject =
        subject.map(|value| value.as_str().map_or_else(|| value.to_string(), str::to_owned)).unwrap_or_default();
    let mut line = tool.to_owned();
    if !subject.is_empty() {
        line.push(' ');
        line.push_str(&on_one_line(&subject, MAX_ARGUMENT_CHARS));
    }
    if let Some(outcome) = result.and_then(outcome) {
        let _ = write!(line, " ({outcome})");
    }
    line
}

/// Returns what a result says of how the call ended: its exit code, or that it failed.
fn outcome(result: &str) -> Option<String> {
    let code = exit_code(result).map(|code| on_one_line(code, MAX_OUTCOME_CHARS));
    code.or_else(|| has_failed(result).then(|| "failed".to_owned()))
}

/// Returns the words of `text` with single spaces, at most `max_chars` characters and a mark.
pub fn on_one_line(text: &str, max_chars: usize) -> String {
    let words = text.split_whitespace().collect::<Vec<_>>().join(" ");
    match words.char_indices().nth(max_chars) {
        Some((end, _)) => format!("{}…", &words[..end]),
        None => words,
    }
}

const OPEN: &str = "[earlier parts left out, ledger ";
const DONE: &str = "Done in them:\n- ";

/// Returns the message that keeps `names` and the lines of `calls`; nothing for neither.
///
/// A checksum in its first line tells it from anything that people write.
pub fn message(names: &[&str], calls: &[&str]) -> Option<String> {
    if names.is_empty() && calls.is_empty() {
        return None;
    }
    let names = if names.is_empty() { String::new() } else { format!("Names in them: {}\n", names.join(", ")) };
    let calls = if calls.is_empty() { String::new() } else { format!("{DONE}{}\n", calls.join("\n- ")) };
    let body = format!("{names}{calls}");
    let body = body.trim_end();
    Some(format!("{OPEN}{}]\n{body}", checksum(body)))
}

/// Returns whether `text` is such a message.
pub fn is_ledger(text: &str) -> bool {
    let rest = text.strip_prefix(OPEN).and_then(|rest| rest.split_once("]\n"));
    rest.is_some_and(|(sum, body)| sum == checksum(body))
}

fn checksum(body: &str) -> String {
    format!("{:04x}", xxh3_64(body.as_bytes()) & 0xffff)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_ledger_is_told_from_what_people_write() {
        let text = message(&["src/a.py"], &["exec make (exit code 1)"]).unwrap();
        assert!(is_ledger(&text) && !is_ledger(&format!("{text} and more")) && !is_ledger("Names: a"));
        assert!(text.ends_with("Names in them: src/a.py\nDone in them:\n- exec make (exit code 1)"), "{text}");
        assert_eq!(message(&[], &[]), None);
    }

    #[test]
    fn a_call_is_one_line() {
        assert_eq!(
            call_line("exec", r#"{"command": "make\n test"}"#, Some("…\nExit code: 2\n")),
            "exec make test (Exit code: 2)"
        );
        assert_eq!(call_line("write_file", r#"{"content": "x", "path": "a.py"}"#, Some("ok")), "write_file a.py");
        assert_eq!(call_line("send", "broken", None), "send");
    }

    #[test]
    fn a_ledger_that_was_changed_is_no_ledger() {
        let text = message(&["src/a.py", "4711"], &[]).unwrap();
        let changed = [text.replace("4711", "4712"), text.trim_end_matches("4711").to_owned(), text.replace('[', "")];
        assert!(is_ledger(&text) && !changed.iter().any(|text| is_ledger(text)));
    }

    #[test]
    fn a_call_that_failed_says_so() {
        assert_eq!(call_line("exec", r#"{"command": "make"}"#, Some("Error: no make")), "exec make (failed)");
        let late = format!("{}\nexit code: 0", "x".repeat(500));
        assert_eq!(call_line("exec", r#"{"command": "make"}"#, Some(&late)), "exec make (exit code: 0)");
        // What it printed before the end is not how it ended.
        let early = format!("exit code: 1\n{}", "x".repeat(500));
        assert_eq!(call_line("exec", r#"{"command": "make"}"#, Some(&early)), "exec make");
        let long = format!(r#"{{"command": "{}"}}"#, "字".repeat(300));
        assert_eq!(call_line("exec", &long, None), format!("exec {}…", "字".repeat(80)));
    }
}
