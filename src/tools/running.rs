//! Finds what names a process that runs on after its call: a session, a job, a process ID.

use super::words;
use crate::text::bytes::{FIRST_WIDE, has_digit};

/// Returns what a short result names that runs on, as `session tidy-lagoon, pid 48213`; `None` if nothing.
///
/// A name stands behind a word that says what it names. Behind a sign or in quotes any word is a name, behind a space one that
/// no text has: with a digit, or of several words.
pub fn running(result: &str) -> Option<String> {
    let said = result.trim();
    if said.len() > MAX_BYTES {
        return None;
    }
    let first = said.lines().next().unwrap_or_default();
    if is_job(first) || (is_name(said) && has_digit(said)) {
        return Some(first.to_owned());
    }
    let mut named: Vec<(&str, &str)> = Vec::new();
    let mut rest = said;
    while let Some((key, behind)) = next_word(rest) {
        rest = behind;
        let Some(name) = name(behind).filter(|name| names(key) || (may_name(key) && is_code(name))) else { continue };
        if named.len() < MOST_NAMES && !named.iter().any(|(_, other)| *other == name) {
            named.push((key, name));
        }
    }
    let named: Vec<String> = named.into_iter().map(|(key, name)| format!("{key} {name}")).collect();
    (!named.is_empty()).then(|| named.join(", "))
}

/// Bytes of a result that says little more than that something runs.
const MAX_BYTES: usize = 400;
/// Longest name; an UUID has 36 bytes.
const MAX_NAME_BYTES: usize = 48;
const MOST_NAMES: usize = 3;

/// Least bytes of a code.
const MIN_CODE_BYTES: usize = 6;

/// Returns whether a line is a shell's for a job: `[1] 28117`.
fn is_job(line: &str) -> bool {
    let is_number = |word: &str| !word.is_empty() && word.bytes().all(|byte| byte.is_ascii_digit());
    let job = line.strip_prefix('[').and_then(|line| line.split_once("] "));
    job.is_some_and(|(nth, process)| is_number(nth) && is_number(process.trim()))
}

fn is_name(word: &str) -> bool {
    word.len() <= MAX_NAME_BYTES && word.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-')
}

/// Returns whether a word may say that a code follows, as `gid 2089b05e` and `编号 ZR-3317`.
fn may_name(key: &str) -> bool {
    (key.len() == 3 && key.ends_with("id")) || key.chars().all(|c| c >= FIRST_WIDE)
}

/// Returns whether a name is one that no text has: with two digits and more, and letters.
fn is_code(name: &str) -> bool {
    let count = |test: fn(&u8) -> bool| name.as_bytes().iter().filter(|byte| test(byte)).count();
    is_name(name) && name.len() >= MIN_CODE_BYTES && count(u8::is_ascii_digit) > 1 && count(u8::is_ascii_alphabetic) > 0
}

/// What runs on, and what ends the names of its identifiers.
const RUNNING: [&str; 12] =
    ["session", "job", "task", "process", "pid", "container", "shell", "agent", "会话", "任务", "进程", "容器"];
const IDENTIFIER: [&str; 3] = ["id", "name", "key"];

/// Returns the next word, and what is behind it.
fn next_word(text: &str) -> Option<(&str, &str)> {
    let is_part = |c: char| c.is_alphanumeric() || matches!(c, '_' | '-' | '.');
    let text = &text[text.find(|c: char| c.is_alphanumeric())?..];
    Some(text.split_at(text.find(|c| !is_part(c)).unwrap_or(text.len())))
}

/// Returns whether a word says that what follows is the name of something that runs.
fn names(key: &str) -> bool {
    let words = words(key);
    match words.as_slice() {
        [.., before, last] if IDENTIFIER.contains(&last.as_str()) => RUNNING.contains(&before.as_str()),
        [last] if last == "id" => true,
        [.., last] => RUNNING.iter().any(|word| last == word || (!word.is_ascii() && last.ends_with(word))),
        [] => false,
    }
}

/// Returns the name at the start of what stands behind such a word.
fn name(behind: &str) -> Option<&str> {
    let (word, rest) = next_word(behind)?;
    let between = behind.strip_suffix(rest)?.strip_suffix(word)?;
    let name = word.trim_end_matches(['.', '-', '_']);
    let is_alone = name.len() < word.len() || !rest.starts_with([' ', '/', '=', '(', ':']);
    let is_near =
        between.chars().count() <= MAX_BETWEEN && !between.contains(['\n', ',', '.', ')', '}', ']', '，', '。']);
    let is_marked = between.contains([':', '=', '：', '"', '\'', '`', '#', '[']) && is_alone;
    let is_unlike_text = has_digit(name) || name.contains(['-', '_']);
    let is_name = is_near && (is_marked || is_unlike_text) && name.len() <= MAX_NAME_BYTES;
    (is_name && !matches!(name, "null" | "None" | "true" | "false")).then_some(name)
}

/// Most characters between such a word and the name: `": "`.
const MAX_BETWEEN: usize = 5;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_runs_on_is_named_whatever_it_is_called() {
        for (result, named) in [
            (
                "Command still running (session tidy-lagoon, pid 48213). Use process (list/poll/kill) for follow-up.",
                "session tidy-lagoon, pid 48213",
            ),
            ("Process still running (session: lagoon). Use process(action='poll').", "session lagoon"),
            (r#"{"status": "running", "sessionId": "lagoon"}"#, "sessionId lagoon"),
            (r#"{"status":"running","task_id":"tidy-lagoon","pid":48213}"#, "task_id tidy-lagoon, pid 48213"),
            ("created tmux session tidy-lagoon", "session tidy-lagoon"),
            ("Started container 'web'.", "container web"),
            ("Command running in background with ID: bash_3f", "ID bash_3f"),
            ("Subagent [audit] started (id: 7f3a91c2).", "id 7f3a91c2"),
            ("Submitted batch job 4821", "job 4821"),
            ("Job <8812> is submitted to queue <normal>.", "Job 8812"),
            ("job-name: nightly\nstate: RUNNING", "job-name nightly"),
            ("48213", "48213"),
            ("[1] 28117", "[1] 28117"),
            ("[2] 28117\nnohup: ignoring input", "[2] 28117"),
            ("gid 2089b05e, 41 GiB, ETA 3h12m", "gid 2089b05e"),
            ("子任务已启动，编号 ZR-3317", "编号 ZR-3317"),
            ("进程仍在运行（会话：tidy-lagoon）", "会话 tidy-lagoon"),
            ("已在后台启动会话 tidy-lagoon", "已在后台启动会话 tidy-lagoon"),
        ] {
            assert_eq!(running(result).as_deref(), Some(named), "{result}");
        }
    }

    #[test]
    fn a_text_about_processes_names_none() {
        for result in [
            "",
            "ok",
            "The job is done.",
            "session started",
            "Process finished with exit code 0",
            "Task: train the model",
            r#"{"session": null, "ok": true}"#,
            "uid=1000(me) gid=1000(me)",
            "paid: 5, valid: yes",
            "Killed the process, 3 files left",
            "Successfully edited src/p.py",
            "Wrote 18230 bytes to out/part-0017/a.txt",
            "done in 3h12m, 41 GiB",
            &format!("session tidy-lagoon\n{}", "x".repeat(400)),
        ] {
            assert_eq!(running(result), None, "{result}");
        }
    }
}
