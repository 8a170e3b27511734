//! Writes and reads ledgers: exact names, and calls, of what was left out.

use std::borrow::Cow;
use std::collections::HashMap;
use std::fmt::Write;

use serde_json::{Map, Value};
use xxhash_rust::xxh3::xxh3_64;

use crate::tools::{
    Effect, SAID_KEYS, SUBJECT_KEYS, changed_nothing, exit_code, has_failed, made, running, speaks, state,
};

use super::bytes::{FIRST_WIDE, has_digit};
use super::edits::only_changes;
use super::elision;
use super::language::Language;
use super::rules::normal;

/// Arguments that name the object of a call, if none of [`SUBJECT_KEYS`] does.
const ADDRESSEE_KEYS: [&str; 5] = ["cmd", "to", "chat_id", "channel", "id"];

/// Most characters: of a call's subject, of what it tells somebody, of another argument, of all arguments, and of the outcome.
const MAX_SUBJECT_CHARS: usize = 80;
const MAX_WORDS_CHARS: usize = 240;
const MAX_ARGUMENT_CHARS: usize = 24;
const MAX_ARGUMENTS_CHARS: usize = 72;
const MAX_OUTCOME_CHARS: usize = 24;
/// Of what a call changes as many times these: cut, the new value may be the old one.
const OF_CHANGE: usize = 3;
/// Most bytes of a result that is repeated verbatim, and of an address at the end of one.
const MAX_RECEIPT_BYTES: usize = 40;
const MAX_LINK_BYTES: usize = 100;
/// Most bytes of a result that is told as it is, fewest of a word of the call in it, and what says only that it went well, by its
/// letters and digits.
const MAX_TOLD_BYTES: usize = 48;
const MIN_REPEATED_BYTES: usize = 6;
/// Most bytes of a sentence whose start is told, and fewest words or characters of scripts without spaces: of 280 commands that were
/// blocked, queued or skipped, and said so in more than [`MAX_TOLD_BYTES`], 171 stood as done without this in a window of 8,000.
const MAX_SENTENCE_BYTES: usize = 200;
const MIN_WORDS: usize = 5;
const MIN_WIDE: usize = 10;
/// What begins a sentence as what was done does, and says that it was not; and what says that all went well.
const UNDONE: [&str; 22] = [
    "aborted",
    "blocked",
    "cancelled",
    "canceled",
    "deferred",
    "delayed",
    "denied",
    "expired",
    "failed",
    "ignored",
    "limited",
    "locked",
    "needed",
    "postponed",
    "queued",
    "refused",
    "rejected",
    "required",
    "scheduled",
    "skipped",
    "suspended",
    "timed",
];
const SUCCESS: [&str; 6] = ["success", "erfolgreich", "成功", "已完成", "完了しました", "успешно"];
const WENT_WELL: [&str; 24] = [
    "ok",
    "oktrue",
    "done",
    "success",
    "successful",
    "successtrue",
    "succeeded",
    "true",
    "null",
    "none",
    "nooutput",
    "statusok",
    "statussuccess",
    "statusdone",
    "resultok",
    "sent",
    "saved",
    "updated",
    "created",
    "deleted",
    "完成",
    "成功",
    "已完成",
    "已发送",
];

/// Returns the line of a call: tool, subject, arguments, and outcome if the result states it.
///
/// The line must tell two different calls apart. The path is enough for reads and writes of a file, the command for a shell;
/// other calls list their arguments. By the tool's name, not by [`Effect::of_call`]: a tool that views and changes files is
/// not told by its name.
pub fn call_line(tool: &str, source: &str, result: Option<&str>) -> String {
    let shown = only_changes(source);
    // What changes is all that is left of these.
    let times = if matches!(shown, Cow::Owned(_)) { OF_CHANGE } else { 1 };
    let mut arguments: Map<String, Value> = serde_json::from_str(&shown).unwrap_or_default();
    // A call of OpenAI's `custom` kind has its tool's name beside its input.
    arguments.retain(|_, value| value != tool);
    let mut line = tool.to_owned();
    let words = if speaks(tool) { SAID_KEYS.into_iter().find(|key| arguments.contains_key(*key)) } else { None };
    let max_chars = |key: &str, others: usize| if words == Some(key) { MAX_WORDS_CHARS } else { others };
    let key = SUBJECT_KEYS.iter().chain(&ADDRESSEE_KEYS).find(|key| arguments.contains_key(**key)).copied();
    let key = key.or_else(|| arguments.keys().next().filter(|_| arguments.len() == 1).map(String::as_str));
    if let Some(subject) = key.and_then(|key| said(&arguments[key], max_chars(key, MAX_SUBJECT_CHARS * times))) {
        line.push(' ');
        line.push_str(&subject);
    }
    let named = Effect::of(tool);
    if !matches!(named, Effect::ReadsFile | Effect::WritesFile | Effect::RunsCommand) || key.is_none() {
        let mut left = MAX_ARGUMENTS_CHARS * times;
        for (name, value) in arguments.iter().filter(|(name, _)| Some(name.as_str()) != key) {
            let Some(value) = said(value, max_chars(name, MAX_ARGUMENT_CHARS * times)) else { continue };
            // Beside a path it is what an editor does, and part of its name.
            if words != Some(name) && name != "command" {
                let Some(rest) = left.checked_sub(name.chars().count() + value.chars().count() + 2) else { break };
                left = rest;
            }
            let _ = write!(line, " {name}={value}");
        }
    }
    // Success is not stated.
    let ended = result.and_then(|result| outcome(result, named)).filter(|outcome| !is_zero(outcome));
    let made = || match named {
        Effect::Changes => {
            result.and_then(|result| with_state(receipt(tool, source, result).or_else(|| running(result)), result))
        }
        Effect::RunsCommand => result.and_then(|result| link(result).or_else(|| running(result))),
        Effect::Unknown => result.and_then(running),
        _ => None,
    };
    let told =
        || result.filter(|_| !matches!(named, Effect::ReadsFile | Effect::LooksUp)).and_then(|said| told(said, &line));
    if let Some(outcome) = ended.or_else(made).or_else(told) {
        let _ = write!(line, " ({outcome})");
    }
    line
}

/// Returns the line of a call with what stands out in its result.
pub fn told_line(line: &str, odd: Option<&str>) -> String {
    odd.map_or_else(|| line.to_owned(), |odd| [line, " → ", odd].concat())
}

/// Returns an argument on one line; `None` if it is empty.
fn said(value: &Value, max_chars: usize) -> Option<String> {
    let text = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    let text = elision::behind_cut_string(&text);
    // Of a shortened argument only the text before its first mark: half a mark is unreadable.
    let line = match elision::opens_gap(text) {
        Some(end) => on_one_line(&[text[..end].trim_end(), "…"].concat(), max_chars),
        None => on_one_line(text, max_chars),
    };
    Some(line).filter(|text| !text.is_empty() && !value.is_null())
}

/// Returns the outcome of a call as its result states it: an exit code, or a failure. `named` is what the tool's name says.
pub fn outcome(result: &str, named: Effect) -> Option<String> {
    let code = exit_code(result).map(|code| on_one_line(code, MAX_OUTCOME_CHARS));
    let changes = matches!(named, Effect::Changes | Effect::WritesFile | Effect::EditsFile);
    let failed = if changes { changed_nothing } else { has_failed };
    code.or_else(|| failed(result).then(|| "failed".to_owned()))
}

/// Returns what a call made, and the state in which its result leaves that.
pub fn with_state(made: Option<String>, result: &str) -> Option<String> {
    match (made, state(result)) {
        (Some(made), Some(state)) => Some(format!("{made}, {state}")),
        (made, state) => made.or(state),
    }
}

/// Returns a short result that names something, or what of it does: the number of an order.
fn receipt(tool: &str, arguments: &str, result: &str) -> Option<String> {
    let said = result.trim();
    let is_short = said.len() <= MAX_RECEIPT_BYTES && !said.contains(['\n', '(', '[', '{', '<', ':', '=', '|']);
    if is_short && has_digit(said) {
        return Some(said.to_owned());
    }
    made(tool, arguments, said)
}

/// Returns a result in a few words: "Waiting for approval", `{"deleted":0}`, or the start of its one sentence. A model reads what they
/// say, whatever they are. `None` for one that only says that it went well, or repeats the line of its call.
fn told(result: &str, line: &str) -> Option<String> {
    let said = result.trim();
    let is_short = said.len() <= MAX_TOLD_BYTES;
    if said.contains('\n') || !elision::can_show(said) || !is_short && (!is_sentence(said) || went_well(said)) {
        return None;
    }
    let letters = normal(said);
    let is_name = |word: &&str| word.len() >= MIN_REPEATED_BYTES && !word.bytes().all(|byte| byte.is_ascii_lowercase());
    let repeats = || said.split_whitespace().filter(is_name).any(|word| line.contains(word));
    if letters.is_empty() || WENT_WELL.contains(&letters.as_str()) || is_short && repeats() {
        return None;
    }
    let bare = said.strip_prefix('(').and_then(|said| said.strip_suffix(')'));
    Some(start_of(bare.unwrap_or(said)))
}

/// Returns whether a result is one sentence.
fn is_sentence(said: &str) -> bool {
    let is_word =
        |word: &&str| word.trim_end_matches([',', '.', ';', ':', '!']).bytes().all(|byte| byte.is_ascii_alphabetic());
    let (words, all) = (said.split(' ').filter(is_word).count(), said.split(' ').count());
    let wide = said.chars().filter(|&c| c >= FIRST_WIDE).count();
    said.len() <= MAX_SENTENCE_BYTES && (words >= MIN_WORDS && words * 2 > all || wide >= MIN_WIDE)
}

/// Returns whether a sentence begins with what was done, or says that it was a success.
fn went_well(said: &str) -> bool {
    let small = said.to_lowercase();
    let first = small.split(|c: char| !c.is_alphanumeric()).next().unwrap_or_default();
    let is_done = first.len() > 3 && first.ends_with("ed") && !UNDONE.contains(&first) && !small.contains(" not ");
    is_done || SUCCESS.iter().any(|sign| small.contains(sign)) && !small.contains("unsuccess")
}

/// Returns the first words of a sentence.
fn start_of(said: &str) -> String {
    if said.len() <= MAX_TOLD_BYTES {
        return said.to_owned();
    }
    let end = said.floor_char_boundary(MAX_TOLD_BYTES);
    let end =
        said[..end].rfind([' ', '，', '、', '；']).filter(|space| end - space <= MAX_TOLD_BYTES / 2).unwrap_or(end);
    format!("{}…", said[..end].trim_end_matches([' ', ',', ';', ':', '.']))
}

/// Returns the address that is all that a command says at its end: that of a pull request.
fn link(result: &str) -> Option<String> {
    let last = result.trim().lines().next_back()?.trim();
    (last.starts_with("https://") && last.len() <= MAX_LINK_BYTES && !last.contains(' ')).then(|| last.to_owned())
}

/// Returns whether an outcome is a successful exit code.
fn is_zero(outcome: &str) -> bool {
    outcome.ends_with('0') && outcome.bytes().filter(u8::is_ascii_digit).count() == 1
}

/// Returns the words of `text` with single spaces, at most `max_chars` characters and a mark.
pub fn on_one_line(text: &str, max_chars: usize) -> String {
    let words = text.split_whitespace().collect::<Vec<_>>().join(" ");
    match words.char_indices().nth(max_chars) {
        Some((end, _)) => format!("{}…", &words[..end]),
        None => words,
    }
}

/// By language: the first line before its checksum, the introductions of names, calls and quotes, and what stands behind the heading
/// of a quote that may be outdated.
const WORDS: [[&str; 5]; 2] = [
    [
        "[earlier parts left out, ledger ",
        "Names in them: ",
        "Done in them:\n- ",
        "About the next message in them:\n",
        " (older, named again later)",
    ],
    [
        "[前文已省略部分的要点，编号 ",
        "其中出现的名称：",
        "其中做过的操作：\n- ",
        "其中与下一条消息有关的内容：\n",
        "（较早，之后又提到）",
    ],
];

/// Returns the ledger with `names` and the lines of `calls`, behind `unlisted` others; `None` if there is nothing to list.
///
/// A checksum in the first line separates it from what people write.
pub fn message(names: &[&str], calls: &[String], unlisted: usize, language: Language) -> Option<String> {
    if names.is_empty() && calls.is_empty() && unlisted == 0 {
        return None;
    }
    let [_, listing, done, ..] = WORDS[usize::from(language == Language::Chinese)];
    let before = (unlisted > 0).then(|| before_these(unlisted, language));
    let calls: Vec<String> = before.into_iter().chain(once_each(calls)).collect();
    let names = if names.is_empty() { String::new() } else { format!("{listing}{}\n", names.join(", ")) };
    let calls = if calls.is_empty() { String::new() } else { format!("{done}{}\n", calls.join("\n- ")) };
    Some(sealed(format!("{names}{calls}").trim_end(), language))
}

/// Starts the line of what the model said beside calls, by language.
const SAID: [&str; 2] = ["said: ", "说过："];

/// Returns the line of what the model said beside calls.
pub fn said_line(text: &str, language: Language) -> String {
    [SAID[usize::from(language == Language::Chinese)], text].concat()
}

/// Returns whether a line is one of these.
pub fn is_said(line: &str) -> bool {
    SAID.iter().any(|start| line.starts_with(start))
}

/// Between a line and how often its call was done.
const TIMES: &str = " ×";
/// A larger number is none of these.
const MAX_TIMES: usize = 999;

/// Returns each line at its last place, with how often it stands there.
fn once_each(calls: &[String]) -> Vec<String> {
    let mut all: HashMap<&str, usize> = HashMap::new();
    for (call, times) in calls.iter().map(|line| times_of(line)) {
        *all.entry(call).or_default() += times;
    }
    let last = calls.iter().rev().map(|line| times_of(line).0).filter_map(|call| match all.remove(call)? {
        1 => Some(call.to_owned()),
        times => Some(format!("{call}{TIMES}{}", times.min(MAX_TIMES))),
    });
    let mut lines: Vec<String> = last.collect();
    lines.reverse();
    lines
}

/// Returns a line without the number behind it, and that number.
pub fn times_of(line: &str) -> (&str, usize) {
    let said = line.rsplit_once(TIMES);
    let said = said.and_then(|(call, times)| Some((call, times.parse().ok()?)));
    said.filter(|(_, times)| (2..=MAX_TIMES).contains(times)).unwrap_or((line, 1))
}

/// What a message says that was left out.
#[derive(Debug, Clone)]
pub struct Quote {
    /// Who says it, or the call whose result it is.
    pub heading: String,
    /// Whether later messages say more of what it is about.
    pub is_named_later: bool,
    pub text: String,
}

/// Returns the ledger that quotes what the next message asks for.
pub fn quotes(quotes: &[Quote], language: Language) -> String {
    let [.., about, named_later] = WORDS[usize::from(language == Language::Chinese)];
    let mut body = about.to_owned();
    let mut before = String::new();
    for Quote { heading, is_named_later, text } in quotes {
        let later = if *is_named_later { named_later } else { "" };
        let heading = format!("{heading}{later}:");
        if heading != before {
            let _ = writeln!(body, "{heading}");
            before = heading;
        }
        for line in text.lines().filter(|line| !line.trim().is_empty()) {
            let _ = writeln!(body, "{QUOTED}{line}");
        }
    }
    sealed(body.trim_end(), language)
}

/// Starts each quoted line: none is read as a name or a call.
const QUOTED: &str = "> ";

/// Returns a ledger with its first line.
fn sealed(body: &str, language: Language) -> String {
    let [open, ..] = WORDS[usize::from(language == Language::Chinese)];
    format!("{open}{}]\n{body}", checksum(body))
}

/// Returns the line that counts unlisted calls.
fn before_these(unlisted: usize, language: Language) -> String {
    match (unlisted, language) {
        (_, Language::Chinese) => format!("（此前还有 {unlisted} 次操作）"),
        (1, _) => "(1 call before these)".to_owned(),
        _ => format!("({unlisted} calls before these)"),
    }
}

/// The contents of a ledger, in order.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct LedgerText<'t> {
    pub names: Vec<&'t str>,
    pub calls: Vec<&'t str>,
    /// Number of calls without a line.
    pub unlisted: usize,
}

/// Splits a text into the rest and its ledgers; `None` without one. O(n).
pub fn lift(text: &str) -> Option<(String, LedgerText<'_>)> {
    let (mut said, mut rest, mut found) = (LedgerText::default(), String::new(), false);
    if !elision::may_have_note(text) || !WORDS.iter().any(|[open, ..]| text.contains(open)) {
        return None;
    }
    for paragraph in text.split("\n\n") {
        let bare = paragraph.trim_matches('\n');
        if is_ledger(bare) {
            found = true;
            said.read(bare);
        } else {
            rest.push_str(if rest.is_empty() { "" } else { "\n\n" });
            rest.push_str(paragraph);
        }
    }
    found.then_some((rest, said))
}

impl<'t> LedgerText<'t> {
    fn read(&mut self, ledger: &'t str) {
        for line in ledger.lines().skip(1) {
            if let Some(names) = WORDS.iter().find_map(|[_, listing, ..]| line.strip_prefix(listing)) {
                self.names.extend(names.split(", "));
            } else if let Some(call) = line.strip_prefix("- ") {
                let number =
                    || call.split(|c: char| !c.is_ascii_digit()).find(|digits| !digits.is_empty())?.parse().ok();
                let is_of = |&number: &usize| {
                    [Language::Other, Language::Chinese].iter().any(|&language| before_these(number, language) == call)
                };
                match number().filter(is_of) {
                    Some(unlisted) => self.unlisted = self.unlisted.saturating_add(unlisted),
                    None => self.calls.push(call),
                }
            }
        }
    }
}

/// Returns whether `text` is a ledger.
pub fn is_ledger(text: &str) -> bool {
    let rest = WORDS.iter().find_map(|[open, ..]| text.strip_prefix(open)?.split_once("]\n"));
    rest.is_some_and(|(sum, body)| sum == checksum(body))
}

/// Returns whether `at` is in the first line of a ledger, which has no name.
pub fn is_heading(text: &str, at: usize) -> bool {
    let near = &text[text.floor_char_boundary(at.saturating_sub(MAX_HEADING_BYTES))..at];
    let line = &near[near.rfind('\n').map_or(0, |end| end + 1)..];
    !line.is_empty() && WORDS.iter().any(|[open, ..]| open.starts_with(line) || line.starts_with(open))
}

const MAX_HEADING_BYTES: usize = 64;

fn checksum(body: &str) -> String {
    format!("{:04x}", xxh3_64(body.as_bytes()) & 0xffff)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_result_of_one_sentence_is_told_by_its_start() {
        let line = |result: &str| call_line("exec", r#"{"command": "ufw delete allow 3201"}"#, Some(result));
        for (result, outcome) in [
            ("Could not delete non-existent rule", "(Could not delete non-existent rule)"),
            (
                "The attempt to lock it was unsuccessful, so all is as before.",
                "(The attempt to lock it was unsuccessful, so all…)",
            ),
            (
                "Nothing was changed because the maintenance lock is set by greta since 14:02.",
                "(Nothing was changed because the maintenance…)",
            ),
            (
                "Command blocked by policy: destructive verbs need approval.",
                "(Command blocked by policy: destructive verbs…)",
            ),
            (
                "Skipped, since the newest snapshot is younger than the minimum age.",
                "(Skipped, since the newest snapshot is younger…)",
            ),
            ("该操作已提交审批，审批通过之前不会执行任何更改，请等待管理员处理。", "(该操作已提交审批…)"),
        ] {
            assert_eq!(line(result), format!("exec ufw delete allow 3201 {outcome}"));
        }
        for went_well in [
            "Deleted the rule that allowed this port for all hosts of the network.",
            "The rule was removed successfully and the firewall was loaded again.",
            "3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22 23 24 25 26 27 28 29 30",
        ] {
            assert_eq!(line(went_well), "exec ufw delete allow 3201");
        }
    }

    #[test]
    fn a_ledger_is_told_from_what_people_write() {
        let text = message(&["src/a.py"], &["exec make (exit code 1)".to_owned()], 0, Language::Other).unwrap();
        assert!(is_ledger(&text) && !is_ledger(&format!("{text} and more")) && !is_ledger("Names: a"));
        assert!(text.ends_with("Names in them: src/a.py\nDone in them:\n- exec make (exit code 1)"), "{text}");
        assert_eq!(message(&[], &[], 0, Language::Other), None);
    }

    #[test]
    fn a_ledger_in_chinese_is_one() {
        let text = message(&["src/a.py"], &["exec make".to_owned()], 2, Language::Chinese).unwrap();
        assert!(
            text.ends_with("]\n其中出现的名称：src/a.py\n其中做过的操作：\n- （此前还有 2 次操作）\n- exec make"),
            "{text}"
        );
        assert!(is_ledger(&text) && !is_ledger(&format!("{text} 还有")));
        let end = text.find('\n').unwrap();
        let heading: Vec<usize> = text.char_indices().map(|(at, _)| at).filter(|&at| is_heading(&text, at)).collect();
        assert_eq!(heading.len(), text[..end].chars().count());
    }

    #[test]
    fn a_line_stands_once_with_how_often_its_call_was_done() {
        let calls = ["exec make", "exec a ×b", "exec make ×2", "exec go"].map(str::to_owned);
        let text = message(&[], &calls, 0, Language::Other).unwrap();
        assert!(text.ends_with("- exec a ×b\n- exec make ×3\n- exec go"), "{text}");
        let read: Vec<_> = lift(&text).unwrap().1.calls.into_iter().map(times_of).collect();
        assert_eq!(read, [("exec a ×b", 1), ("exec make", 3), ("exec go", 1)]);
    }

    #[test]
    fn a_ledger_in_a_text_is_lifted_out_of_it_and_read() {
        for (language, other) in [(Language::Other, Language::Chinese), (Language::Chinese, Language::Other)] {
            let calls = ["exec make (exit code 1)".to_owned(), "read_file a.py, b.py".to_owned()];
            let one = message(&["src/a.py", "4711"], &calls, 14, language).unwrap();
            let two = message(&["x"], &[], 1, other).unwrap();
            let text = format!("A result.\n\nof two paragraphs\n\n{one}\n\n{two}\n\nIts end.");
            let (rest, said) = lift(&text).unwrap();
            assert_eq!(rest, "A result.\n\nof two paragraphs\n\nIts end.");
            let expected = LedgerText {
                names: vec!["src/a.py", "4711", "x"],
                calls: vec!["exec make (exit code 1)", "read_file a.py, b.py"],
                unlisted: 15,
            };
            assert_eq!(said, expected);
            assert_eq!(lift(&one).unwrap().0, "");
            assert_eq!(lift(&one.replace("4711", "4712")), None, "somebody else wrote it");
        }
        assert_eq!(lift("A result."), None);
    }

    #[test]
    fn quotes_are_a_ledger_in_which_no_line_is_a_name_or_a_call() {
        let quote = |heading: &str, text: &str| Quote {
            heading: heading.to_owned(),
            is_named_later: false,
            text: text.to_owned(),
        };
        for language in [Language::Other, Language::Chinese] {
            let of = [quote("read_file a.txt", "- one\n\nNames in them: two\n"), quote("read_file a.txt", "three")];
            let text = quotes(&[&of[..], &[quote("user", "four")]].concat(), language);
            assert!(
                text.ends_with("\nread_file a.txt:\n> - one\n> Names in them: two\n> three\nuser:\n> four"),
                "{text}"
            );
            assert!(is_ledger(&text));
            let whole = format!("An answer.\n\n{text}");
            assert_eq!(lift(&whole), Some(("An answer.".to_owned(), LedgerText::default())));
        }
    }

    #[test]
    fn a_line_says_what_a_call_has_made() {
        let line = |result: &str| call_line("create_ticket", r#"{"title": "Disk full"}"#, Some(result));
        for (result, made) in [
            ("TCK-88213", "TCK-88213"),
            (r#"{"ok": true, "ticket": {"id": "TCK-88213", "queue": "infra-2"}}"#, "TCK-88213"),
            (r#"{"order": {"lines": [{"id": 1}]}, "orderNumber": 88213}"#, "88213"),
            (r#"{"data": {"result": {"confirmation_code": "Q7XK2"}}}"#, "Q7XK2"),
            (r#"{"id": "T-6", "status": "pending_approval", "approver": "r.o"}"#, "T-6, pending_approval"),
            (r#"{"id": "T-6", "state": "QUEUED", "executed": false}"#, "T-6, QUEUED"),
            (r#"{"result": "dry_run", "would_create": 1}"#, "dry_run"),
            (r#"{"id": "T-6", "status": "created", "committed": false}"#, "T-6, committed: false"),
            (r#"{"title": "Disk full", "order_id": "Disk-7", "confirmation": "EX-4"}"#, "Disk-7"),
        ] {
            assert_eq!(line(result), format!("create_ticket Disk full ({made})"), "{result}");
        }
        for result in ["ok", "{", "{}", r#"{"ok": true}"#, "Done.", &"x".repeat(60)] {
            assert_eq!(line(result), "create_ticket Disk full", "{result}");
        }
    }

    #[test]
    fn what_the_call_names_it_has_not_made() {
        let exchange = r#"{"order_id": "W24", "items": ["7"]}"#;
        let done = r#"{"order_id": "W24", "status": "exchange requested", "confirmation": "EX-4801"}"#;
        let line = call_line("exchange_order_items", exchange, Some(done));
        assert!(line.ends_with("(EX-4801, exchange requested)"), "{line}");
    }

    #[test]
    fn what_a_result_says_in_a_few_words_stands_beside_its_call() {
        let line = |tool: &str, result: &str| call_line(tool, r#"{"to": "kern"}"#, Some(result));
        for result in ["Waiting for approval", r#"{"deleted": 0}"#, "Saved as draft", "等待审批", "rc=2"] {
            assert_eq!(line("send_offer", result), format!("send_offer kern ({result})"));
        }
        assert_eq!(line("send_offer", "(queued)"), "send_offer kern (queued)");
        let edited = call_line("edit_file", r#"{"path": "kernel.py"}"#, Some("Edited kernel.py"));
        assert_eq!(edited, "edit_file kernel.py");
        assert_eq!(line("read_file", "Waiting for approval"), "read_file kern");
    }

    #[test]
    fn a_call_is_one_line() {
        assert_eq!(
            call_line("exec", r#"{"command": "make\n test"}"#, Some("…\nExit code: 2\n")),
            "exec make test (Exit code: 2)"
        );
        assert_eq!(call_line("write_file", r#"{"content": "x", "path": "a.py"}"#, Some("ok")), "write_file a.py");
        assert_eq!(call_line("send", "broken", None), "send");
        let elsewhere = r#"{"cmd": "whctl backfill --table mart.fact_pay", "cwd": "/srv"}"#;
        assert_eq!(call_line("terminal.run", elsewhere, None), "terminal.run whctl backfill --table mart.fact_pay");
        let custom = r#"{"name": "run_sql", "input": "SELECT * FROM t"}"#;
        assert_eq!(call_line("run_sql", custom, None), "run_sql SELECT * FROM t");
        let paid = r#"{"to": "Bob", "amount": 5}"#;
        assert_eq!(call_line("send_payment", paid, Some("ok")), "send_payment Bob amount=5");
        assert_eq!(
            call_line("send_payment", paid, Some("paid, receipt RX7002")),
            "send_payment Bob amount=5 (paid, receipt RX7002)"
        );
    }

    #[test]
    fn calls_that_differ_have_lines_that_differ() {
        let cases = [
            ("transfer", r#"{"from": "A1", "to": "B2", "amount": 150}"#, "transfer B2 from=A1 amount=150"),
            ("search", r#"{"pattern": "TODO_A", "path": "src"}"#, "search src pattern=TODO_A"),
            ("message", r#"{"content": "It is\nfine.", "chat_id": 42}"#, "message 42 content=It is fine."),
            (
                "http_request",
                r#"{"method": "POST", "url": "https://x.y/pay"}"#,
                "http_request https://x.y/pay method=POST",
            ),
            (
                "sql",
                r#"{"query": "DELETE FROM orders", "database": "prod"}"#,
                "sql query=DELETE FROM orders database=prod",
            ),
            (
                "edit_file",
                r#"{"path": "a.py", "old_text": "x = 1", "new_text": "x = 2"}"#,
                "edit_file a.py old_text=x = 1 new_text=x = 2",
            ),
            ("read_file", r#"{"path": "a.py", "offset": 40}"#, "read_file a.py"),
            ("cron", r#"{"action": "add", "every": null, "note": ""}"#, "cron action=add"),
            ("web_search", r#"{"query": "rust"}"#, "web_search rust"),
            ("exec", r#"{"command": "make all [... 58 characters left out ...] -j"}"#, "exec make all…"),
            ("exec", r#"{"command": "echo [... and so on ...]"}"#, "exec echo [... and so on ...]"),
        ];
        for (tool, arguments, line) in cases {
            assert_eq!(call_line(tool, arguments, None), line);
        }
        let told = "The mail went to Ann. ".repeat(9);
        let message = format!(r#"{{"chat_id": "42", "content": "{told}"}}"#);
        assert_eq!(call_line("message", &message, None), format!("message 42 content={}", told.trim()));
        assert!(call_line("create_note", &message, None).chars().count() < 90);
        let many: Vec<String> = (0..40).map(|i| format!(r#""key_{i}": "{}""#, "x".repeat(40))).collect();
        let line = call_line("create", &format!("{{{}}}", many.join(", ")), None);
        assert!(line.chars().count() < 90, "{line}");
    }

    #[test]
    fn a_ledger_that_was_changed_is_no_ledger() {
        let text = message(&["src/a.py", "4711"], &[], 0, Language::Other).unwrap();
        let changed = [text.replace("4711", "4712"), text.trim_end_matches("4711").to_owned(), text.replace('[', "")];
        assert!(is_ledger(&text) && !changed.iter().any(|text| is_ledger(text)));
    }

    #[test]
    fn a_call_that_failed_says_so() {
        assert_eq!(call_line("exec", r#"{"command": "make"}"#, Some("Error: no make")), "exec make (failed)");
        let pull = "Creating pull request\n\nhttps://git.host/a/b/pull/12\n";
        assert_eq!(
            call_line("exec", r#"{"command": "gh pr create"}"#, Some(pull)),
            "exec gh pr create (https://git.host/a/b/pull/12)"
        );
        let late = format!("{}\nexit code: 0", "x".repeat(500));
        assert_eq!(call_line("exec", r#"{"command": "make"}"#, Some(&late)), "exec make");
        let late = late.replace(": 0", ": 10");
        assert_eq!(call_line("exec", r#"{"command": "make"}"#, Some(&late)), "exec make (exit code: 10)");
        // What it printed before the end is not how it ended.
        let early = format!("exit code: 1\n{}", "x".repeat(500));
        assert_eq!(call_line("exec", r#"{"command": "make"}"#, Some(&early)), "exec make");
        let mark = "[exec result (Exit code: 3) left out: 45 tokens]";
        assert_eq!(call_line("exec", r#"{"command": "make"}"#, Some(mark)), "exec make (Exit code: 3)");
        let long = format!(r#"{{"command": "{}"}}"#, "字".repeat(300));
        assert_eq!(call_line("exec", &long, None), format!("exec {}…", "字".repeat(80)));
    }
}
