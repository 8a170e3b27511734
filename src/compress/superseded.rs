//! Finds what a later message replaces: a result by the same call, the file written anew or the same text, and a reply, or a draft of
//! the user's, by a new version of what it shows.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::ops::Range;

use serde_json::Value;
use xxhash_rust::xxh3::{xxh3_64, xxh3_128};

use crate::budget::Request;
use crate::conversation::{is_own, late_results};
use crate::message::{Content, Message, Role, Text, ToolCall};
use crate::text::estimate::count;
use crate::text::excerpt::is_fence;
use crate::text::snapshot;
use crate::tokens::Tokens;
use crate::tools::{Action, Effect, has_failed, path_in, refers_back, run_by};

use super::draft::Draft;
use super::late;

/// Why a later message makes one redundant, with its index in the draft.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Superseded {
    /// The same call was made again later, or another one that shows the same page.
    AskedAgain(usize),
    /// The file that was read was written later.
    Stale(usize),
    /// A later result is the same.
    Repeated(usize),
    /// Later replies have most of its lines, or of a draft of the user's another one.
    Rewritten(usize),
}

impl Superseded {
    /// Returns the reason in a mark.
    pub fn word(self) -> &'static str {
        match self {
            Self::AskedAgain(_) | Self::Rewritten(_) => "superseded below",
            Self::Stale(_) => "changed since",
            Self::Repeated(_) => "same as below",
        }
    }

    /// Returns the same in Chinese.
    pub fn chinese(self) -> &'static str {
        match self {
            Self::AskedAgain(_) => "下文有更新的结果",
            Self::Rewritten(_) => "下文有更新的版本",
            Self::Stale(_) => "此后已改动",
            Self::Repeated(_) => "与下文相同",
        }
    }

    /// Returns the new version of a reply that has one.
    pub fn version(self) -> Option<usize> {
        match self {
            Self::Rewritten(later) => Some(later),
            _ => None,
        }
    }

    /// Returns the reason's public name, and the later message.
    fn named(self) -> (&'static str, usize) {
        match self {
            Self::AskedAgain(later) => ("again", later),
            Self::Stale(later) => ("changed", later),
            Self::Repeated(later) => ("repeated", later),
            Self::Rewritten(later) => ("rewritten", later),
        }
    }
}

/// Returns the superseded messages of a conversation, in order: index, reason, and index of the later message. Reasons: of a result
/// `again`, the same call was made again; `changed`, the file was written; `repeated`, the text is the same; of a reply `rewritten`,
/// it has a new version.
///
/// As a fit of the whole conversation finds them. O(n), and counts new texts.
pub fn superseded_messages(view: &[Message<'_>]) -> Vec<(usize, &'static str, usize)> {
    let (order, view) = late::moved(view, &late_results(view));
    let draft = super::draft(&view, &Request::new(None, None, Tokens::ZERO));
    let index = |entry: usize| draft.entries[entry].index().map(|index| order[index]);
    let of_entry = |(entry, why): (usize, Option<Superseded>)| {
        let (why, later) = why?.named();
        Some((index(entry)?, why, index(later)?))
    };
    let mut found: Vec<_> = superseded(&draft).into_iter().enumerate().filter_map(of_entry).collect();
    found.sort_unstable();
    found
}

/// Returns by entry whether it is superseded.
///
/// A failed call replaces nothing, nor does a result that refers back to an earlier one. O(n) in the arguments of all calls and the
/// bytes of all results and replies.
pub fn superseded(draft: &Draft<'_, '_>) -> Vec<Option<Superseded>> {
    let mut found = vec![None; draft.entries.len()];
    let mut later_calls: HashMap<(&str, String), usize> = HashMap::new();
    let mut written: HashMap<String, usize> = HashMap::new();
    let mut texts: HashMap<u128, usize> = HashMap::new();
    let (mut lines, mut users_lines) = (HashMap::<u64, usize>::new(), HashMap::<u64, usize>::new());
    let mut pages: HashMap<&str, usize> = HashMap::new();
    for (index, entry) in draft.entries.iter().enumerate().rev() {
        if entry.dropped.is_some() || entry.role == Role::System {
            continue;
        }
        let Some(text) = draft.message(index).and_then(text_of) else { continue };
        match entry.role {
            Role::Assistant => {
                found[index] = version(&mut lines, index, text);
                continue;
            }
            Role::User => {
                if DRAFT_BYTES.contains(&text.len()) && draft.message(index).is_some_and(is_own) {
                    found[index] = version(&mut users_lines, index, text);
                }
                continue;
            }
            _ => {}
        }
        let Some(call) = draft.call(index) else { continue };
        let Some(name) = call.name.as_ref().map(Text::as_str) else { continue };
        let arguments = call.arguments.as_ref().map_or("", Text::as_str);
        let values: Option<Value> = serde_json::from_str(arguments).ok();
        let Action { effect, files } = Action::of(name, values.as_ref().unwrap_or(&Value::Null));
        let replaces_nothing = has_failed(text) || refers_back(text);
        let call = (name, canonical(arguments, values));
        let later = *texts.entry(xxh3_128(text.as_bytes())).or_insert(index);
        let page = snapshot::page(text).and_then(|page| pages.insert(page, index));
        let write = || files.iter().find_map(|file| written.get(file)).filter(|_| effect == Effect::ReadsFile);
        found[index] = if later != index && text.len() >= MIN_REPEATED_BYTES {
            Some(Superseded::Repeated(later))
        } else if let Some(write) = write() {
            Some(Superseded::Stale(*write))
        } else {
            later_calls.get(&call).copied().or(page).map(Superseded::AskedAgain)
        };
        if !replaces_nothing {
            later_calls.insert(call, index);
            // After an edit the rest of what was read still holds.
            if effect == Effect::WritesFile {
                written.extend(files.into_iter().map(|file| (file, index)));
            }
        }
    }
    found
}

/// Returns by entry, of the result of a command line, the newest one of the same, or else the next of what it runs: other tests may pass
/// than those that failed. O(n) in the arguments of the commands.
pub fn run_again(draft: &Draft<'_, '_>) -> Vec<Option<usize>> {
    let (mut newest, mut next) = (HashMap::<&str, usize>::new(), HashMap::<String, usize>::new());
    let mut found = vec![None; draft.entries.len()];
    for (index, entry) in draft.entries.iter().enumerate().rev() {
        if entry.dropped.is_some() || entry.effect != Effect::RunsCommand {
            continue;
        }
        let Some(arguments) = draft.call(index).and_then(|call| call.arguments.as_ref()).map(Text::as_str) else {
            continue;
        };
        let run = serde_json::from_str(arguments).ok().and_then(|values: Value| run_by(&values));
        let of_run = run.and_then(|run| next.insert(run, index));
        let same = Some(*newest.entry(arguments).or_insert(index)).filter(|same| *same != index);
        found[index] = same.or(of_run);
    }
    found
}

/// Fewest lines of a reply that may have a new version, and fewest bytes of a line that counts.
const MIN_VERSION_LINES: usize = 4;
const MIN_LINE_BYTES: usize = 6;

/// Bytes of a draft of the user's that may have one: of a shorter message every word counts, and what has changed in one is looked for
/// in O(n²).
const DRAFT_BYTES: Range<usize> = 1_200..65_536;

/// Least share of its lines in later replies, and in one of them.
const OF_VERSION: f32 = 0.6;
const OF_NEWEST: f32 = 0.3;

/// Returns whether later replies have a new version of what the one at `index` shows, and adds its lines. `newest` has the newest reply
/// with a line, by its hash.
fn version(newest: &mut HashMap<u64, usize>, index: usize, text: &str) -> Option<Superseded> {
    let lines = text.lines().map(str::trim).filter(|line| line.len() >= MIN_LINE_BYTES && !is_fence(line));
    let lines: HashSet<u64> = lines.map(|line| xxh3_64(line.as_bytes())).collect();
    let later = lines.iter().map(|line| *newest.entry(*line).or_insert(index));
    let mut known: Vec<usize> = later.filter(|later| *later != index).collect();
    known.sort_unstable();
    let by_reply = known.chunk_by(|one, other| one == other).map(|those| (those.len(), those[0]));
    let (most, later) = by_reply.max()?;
    let are_least = |some: usize, share: f32| count(some) >= share * count(lines.len());
    let is_version =
        lines.len() >= MIN_VERSION_LINES && are_least(known.len(), OF_VERSION) && are_least(most, OF_NEWEST);
    is_version.then_some(Superseded::Rewritten(later))
}

/// Below this a pointer costs more than the text.
const MIN_REPEATED_BYTES: usize = 120;

fn text_of<'m>(message: &'m Message<'_>) -> Option<&'m str> {
    match &message.content {
        Content::Text(text) => Some(text.as_str()),
        _ => None,
    }
}

/// Returns which of some earlier results, newest first, the result of a call means that [refers back](refers_back): that of the same call,
/// else of one with the same file.
pub fn referred_to<'m, T>(
    call: &ToolCall<'_>,
    earlier: impl Iterator<Item = (T, &'m ToolCall<'m>, &'m str)> + Clone,
) -> Option<T> {
    let asked = |call: &ToolCall<'_>| {
        let arguments = call.arguments.as_ref().map_or("", Text::as_str);
        let values: Option<Value> = serde_json::from_str(arguments).ok();
        let path = values.as_ref().and_then(path_in).map(str::to_owned);
        (path, canonical(arguments, values))
    };
    let (tool, (path, arguments)) = (call.name.as_ref().map(Text::as_str), asked(call));
    let of_tool = earlier.filter(|(_, of, _)| of.name.as_ref().map(Text::as_str) == tool);
    let shown = of_tool.filter(|(_, _, text)| !refers_back(text) && !has_failed(text));
    let calls = shown.map(|(found, of, _)| (found, asked(of)));
    let same = calls.clone().find(|(_, of)| of.1 == arguments);
    same.or_else(|| calls.clone().find(|(_, of)| path.is_some() && of.0 == path)).map(|(found, _)| found)
}

/// Longer arguments are compared byte by byte.
const MAX_CANONICAL_BYTES: usize = 4096;

/// Returns arguments with sorted keys and no spaces, so that equal ones are equal texts.
fn canonical(arguments: &str, values: Option<Value>) -> String {
    match values.filter(|_| arguments.len() <= MAX_CANONICAL_BYTES) {
        Some(values) => in_order(values).to_string(),
        None => arguments.trim().to_owned(),
    }
}

fn in_order(value: Value) -> Value {
    match value {
        Value::Object(members) => {
            let sorted: BTreeMap<String, Value> =
                members.into_iter().map(|(key, value)| (key, in_order(value))).collect();
            Value::Object(sorted.into_iter().collect())
        }
        Value::Array(items) => Value::Array(items.into_iter().map(in_order).collect()),
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compress::{Request, draft};
    use crate::message::ToolCall;

    const IDS: [&str; 4] = ["call_0", "call_1", "call_2", "call_3"];

    /// Returns for each call, as (tool, arguments, result), whether its result has expired.
    fn of(calls: &[(&str, &str, &str)]) -> Vec<Option<Superseded>> {
        let mut view = vec![Message::new(Role::User, "go")];
        for (&id, &(name, arguments, result)) in IDS.iter().zip(calls) {
            let [id, name, arguments] = [id, name, arguments].map(|text| Some(Text::new(text)));
            let call = ToolCall { id: id.clone(), name: name.clone(), arguments, arguments_are_text: true };
            view.push(Message { tool_calls: vec![call], ..Message::empty(Role::Assistant) });
            view.push(Message { tool_call_id: id, name, ..Message::new(Role::Tool, result) });
        }
        let found = superseded(&draft(&view, &Request::new(None, None, Tokens::ZERO)));
        found.into_iter().skip(2).step_by(2).collect()
    }

    // Results stand at 2, 4, 6 and 8.
    const SUPERSEDED: Option<Superseded> = Some(Superseded::AskedAgain(4));
    const STALE: Option<Superseded> = Some(Superseded::Stale(6));

    #[test]
    fn the_same_call_made_again_supersedes_the_older_result() {
        assert_eq!(
            of(&[("exec", r#"{"command": "make"}"#, "1"), ("exec", r#"{"command": "make"}"#, "2")]),
            [SUPERSEDED, None]
        );
        // Keys in another order, other spaces: what the call asks for is the same.
        let spellings =
            [r#"{"path":"a","in":[{"x":1,"y":2}]}"#, "{ \"in\": [{\"y\": 2, \"x\": 1}],\n \"path\": \"a\" }"];
        assert_eq!(of(&[("grep", spellings[0], "1"), ("grep", spellings[1], "2")]), [SUPERSEDED, None]);
        let broken = "not json";
        assert_eq!(of(&[("exec", broken, "1"), ("exec", "not json ", "2")]), [SUPERSEDED, None]);
    }

    #[test]
    fn a_later_snapshot_of_the_same_page_supersedes_the_older_one() {
        let page = |address: &str, number: usize| {
            format!("### Page state\n- Page URL: {address}\n- button \"Continue\" [ref=e{number}]\n")
        };
        let (form, again, other) =
            (page("https://a.example/form", 4), page("https://a.example/form", 9), page("https://b.example", 4));
        let typed = |text: &'static str| ("browser_type", text);
        let (one, two, three) = (typed(r#"{"ref":"e4"}"#), typed(r#"{"ref":"e7"}"#), typed(r#"{"ref":"e8"}"#));
        let of_page = |(name, arguments): (&'static str, &'static str), text| (name, arguments, text);
        let found = of(&[of_page(one, form.as_str()), of_page(two, again.as_str()), of_page(three, other.as_str())]);
        assert_eq!(found, [SUPERSEDED, None, None]);
        assert_eq!(of(&[of_page(one, "Page URL: a"), of_page(two, "Page URL: a b")]), [None, None]);
    }

    #[test]
    fn another_call_supersedes_nothing() {
        let make = r#"{"command": "make"}"#;
        for other in [("exec", r#"{"command": "make "}"#), ("shell", make), ("exec", r#"{"command": "make", "n": 1}"#)]
        {
            assert_eq!(of(&[("exec", make, "1"), (other.0, other.1, "2")]), [None, None], "{other:?}");
        }
    }

    #[test]
    fn a_call_that_failed_replaces_nothing() {
        let read = ("read_file", r#"{"path": "a.py"}"#);
        for failure in ["Error: no such file", "  failed: timeout", "Traceback (most recent call last):"] {
            assert_eq!(of(&[(read.0, read.1, "x = 1"), (read.0, read.1, failure)]), [None, None], "{failure}");
            assert_eq!(of(&[(read.0, read.1, "x = 1"), ("write_file", read.1, failure)]), [None, None], "{failure}");
        }
        let again = (read.0, read.1, "[File unchanged since last read: a.py]");
        assert_eq!(of(&[(read.0, read.1, "x = 1"), again]), [None, None]);
        // What failed is itself replaced by what worked.
        assert_eq!(of(&[(read.0, read.1, "Error: busy"), (read.0, read.1, "x = 1")]), [SUPERSEDED, None]);
    }

    #[test]
    fn what_was_read_is_stale_once_its_file_was_written() {
        let (read, lines) = (r#"{"path": "./a.py"}"#, r#"{"path": "a.py", "offset": 9}"#);
        let edit = ("Edit", r#"{"file_path": "a.py", "text": "y"}"#, "ok");
        assert_eq!(of(&[("Read", read, "x"), edit]), [None, None]);
        let write = ("write_file", r#"{"file_path": "a.py", "text": "y"}"#, "ok");
        assert_eq!(of(&[("read_file", read, "x"), ("read_file", lines, "z"), write]), [STALE, STALE, None]);
        assert_eq!(of(&[write, ("read_file", read, "x")]), [None, None], "it was read after it was written");
        let elsewhere = r#"{"path": "b.py"}"#;
        assert_eq!(of(&[("read_file", elsewhere, "x"), ("exec", read, "x"), write]), [None, None, None]);
    }

    #[test]
    fn identical_results_point_to_the_last_of_them() {
        let text = "line of a file\n".repeat(8);
        let calls = ["1", "2", "3"].map(|n| ("exec", n, text.as_str()));
        assert_eq!(of(&calls), [Some(Superseded::Repeated(6)), Some(Superseded::Repeated(6)), None]);
        assert_eq!(of(&[("exec", "1", "ok"), ("exec", "2", "ok")]), [None, None], "no shorter than a pointer");
    }

    #[test]
    fn a_reply_is_superseded_by_one_that_has_most_of_its_lines() {
        let shown = |name: &str, lines: std::ops::Range<usize>| {
            lines.map(|line| format!("{name} counts to {line}")).collect::<Vec<_>>().join("\n")
        };
        let replies = [
            shown("alpha", 0..6),
            shown("beta", 0..6),
            shown("alpha", 1..9),
            shown("gamma", 0..2),
            shown("gamma", 0..2),
        ];
        let view: Vec<Message<'_>> = replies
            .iter()
            .flat_map(|said| [Message::new(Role::User, "go on"), Message::new(Role::Assistant, said)])
            .collect();
        let found = superseded(&draft(&view, &Request::new(None, None, Tokens::ZERO)));
        let found: Vec<_> = found.into_iter().skip(1).step_by(2).collect();
        assert_eq!(found, [Some(Superseded::Rewritten(5)), None, None, None, None], "two lines are no version");
    }

    #[test]
    fn a_long_draft_of_the_users_is_superseded_by_one_that_has_most_of_its_lines() {
        let draft_of = |name: &str, changed: usize| {
            let line = |at: usize| {
                format!("{name} {} {}", ["calm", "new"][usize::from(at == changed)], "word ".repeat(40 + at))
            };
            (0..8).map(line).collect::<Vec<_>>().join("\n")
        };
        let said =
            [draft_of("alpha", 9), draft_of("beta", 9), draft_of("alpha", 3), "short\n".repeat(9), "short\n".repeat(9)];
        let view: Vec<Message<'_>> = said.iter().map(|said| Message::new(Role::User, said)).collect();
        let found = superseded(&draft(&view, &Request::new(None, None, Tokens::ZERO)));
        assert_eq!(found, [Some(Superseded::Rewritten(2)), None, None, None, None]);
    }
}
