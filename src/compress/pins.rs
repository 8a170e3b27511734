//! Finds pinned messages: those with a marker, and the last reads of files that a pattern names, with their edits since.

use std::collections::{BTreeSet, HashMap};

use serde_json::Value;

use crate::conversation::is_own;
use crate::message::{Content, Message, Part, Role, Text, ToolCall};
use crate::text::rules::is_pinned;
use crate::tools::{Action, Effect, has_failed};

/// The pinned messages of a conversation, read message by message: they follow from the messages so far alone.
#[derive(Clone)]
pub struct Pins<'p, 'v> {
    patterns: &'p [String],
    /// The calls of the newest message that has some, with its index.
    calls: (usize, &'v [ToolCall<'v>]),
    /// Messages with a marker, by index.
    said: Vec<usize>,
    /// By file and arguments: the index of the result; for a file written as a whole, that of the call's message.
    reads: HashMap<(String, &'v str), usize>,
    /// Files and the indices of messages whose calls edited them.
    edits: Vec<(String, usize)>,
}

impl<'p, 'v> Pins<'p, 'v> {
    /// Starts before the first message.
    pub fn new(patterns: &'p [String]) -> Self {
        Self { patterns, calls: (0, &[]), said: Vec::new(), reads: HashMap::new(), edits: Vec::new() }
    }

    /// Returns the pins of all of `view`.
    pub fn of(view: &'v [Message<'v>], patterns: &'p [String]) -> Self {
        let mut this = Self::new(patterns);
        view.iter().enumerate().for_each(|(index, message)| this.see(index, message));
        this
    }

    /// Reads the next message.
    pub fn see(&mut self, index: usize, message: &'v Message<'v>) {
        match message.role {
            Role::User if says_so(message) => self.said.push(index),
            Role::Assistant if !message.tool_calls.is_empty() => self.calls = (index, &message.tool_calls),
            Role::Tool if !self.patterns.is_empty() => self.see_result(index, message),
            _ => {}
        }
    }

    fn see_result(&mut self, index: usize, message: &'v Message<'v>) {
        let id = message.tool_call_id.as_ref().map(Text::as_str);
        let (calling, calls) = self.calls;
        let Some(call) = calls.iter().find(|call| call.id.as_ref().map(Text::as_str) == id) else { return };
        let (Some(name), Some(arguments)) = (&call.name, &call.arguments) else { return };
        if matches!(&message.content, Content::Text(text) if has_failed(text.as_str())) {
            return;
        }
        let values: Value = serde_json::from_str(arguments.as_str()).unwrap_or_default();
        let Action { effect, files } = Action::of(name.as_str(), &values);
        for file in files {
            if effect == Effect::WritesFile {
                // Earlier reads are outdated.
                self.reads.retain(|(read, _), _| *read != file);
                self.edits.retain(|(edited, _)| *edited != file);
            }
            if !self.patterns.iter().any(|pattern| is_named(&file, pattern)) {
                continue;
            }
            match effect {
                Effect::ReadsFile => _ = self.reads.insert((file, arguments.as_str()), index),
                Effect::WritesFile if holds_text(&values) => _ = self.reads.insert((file, ""), calling),
                Effect::EditsFile => self.edits.push((file, calling)),
                _ => {}
            }
        }
    }

    /// Iterates over the indices of pinned messages, in order.
    pub fn indices(&self) -> impl Iterator<Item = usize> {
        let mut oldest: HashMap<&str, HashMap<&str, usize>> = HashMap::new();
        for ((file, _), index) in self.reads.iter().filter(|_| !self.edits.is_empty()) {
            let first = oldest.entry(name_of(file)).or_default().entry(file).or_insert(*index);
            *first = *index.min(first);
        }
        let is_since = |(file, edit): &&(String, usize)| {
            let mut reads = oldest.get(name_of(file)).into_iter().flatten();
            reads.any(|(read, index)| index < edit && may_be_same(read, file))
        };
        let edits = self.edits.iter().filter(is_since).map(|(_, index)| index);
        let all: BTreeSet<usize> = self.said.iter().chain(self.reads.values()).chain(edits).copied().collect();
        all.into_iter()
    }
}

/// Returns whether the arguments of a write have all that is in the file.
fn holds_text(arguments: &Value) -> bool {
    ["content", "contents", "text", "file_text"].iter().any(|key| arguments.get(key).is_some_and(Value::is_string))
}

/// Returns the last part of a path.
fn name_of(path: &str) -> &str {
    path.rsplit(['/', '\\']).next().unwrap_or(path)
}

/// Returns whether two paths may name one file: one may be relative to a deeper folder.
fn may_be_same(one: &str, other: &str) -> bool {
    let (long, short) = if one.len() < other.len() { (other, one) } else { (one, other) };
    long.strip_suffix(short).is_some_and(|start| start.is_empty() || start.ends_with(['/', '\\']))
}

fn says_so(message: &Message<'_>) -> bool {
    let is_text = |part: &Part<'_>| matches!(part, Part::Text(text) if is_pinned(text.as_str()));
    match &message.content {
        Content::Empty => false,
        Content::Text(text) => is_pinned(text.as_str()) && is_own(message),
        Content::Parts(parts) => parts.iter().any(is_text),
    }
}

/// Returns whether a pattern (`*` any characters, `?` one) matches a path, or its end from a folder on; with a slash at its
/// end it matches everything in a folder.
fn is_named(path: &str, pattern: &str) -> bool {
    let pattern = pattern.replace('\\', "/").replace("/**/", "/*");
    let in_folder = if pattern.ends_with('/') { "*" } else { "" };
    // The pattern may match in any folder.
    let end = ["./", "**/"].iter().find_map(|start| pattern.strip_prefix(start)).unwrap_or(&pattern);
    let pattern: Vec<char> = end.chars().chain(in_folder.chars()).collect();
    let starts = path.char_indices().filter(|(_, sign)| matches!(sign, '/' | '\\')).map(|(at, _)| at + 1);
    std::iter::once(0).chain(starts).any(|start| is_match(&path[start..], &pattern))
}

/// Backtracks to the last star. O(n m).
fn is_match(text: &str, pattern: &[char]) -> bool {
    let text: Vec<char> = text.chars().map(|sign| if sign == '\\' { '/' } else { sign }).collect();
    let (mut t, mut p, mut star) = (0, 0, None);
    while t < text.len() {
        match pattern.get(p) {
            Some('*') => {
                star = Some((p, t));
                p += 1;
            }
            Some(&sign) if sign == '?' || sign == text[t] => (t, p) = (t + 1, p + 1),
            _ => match &mut star {
                Some((at, from)) => {
                    *from += 1;
                    (t, p) = (*from, *at + 1);
                }
                None => return false,
            },
        }
    }
    pattern[p..].iter().all(|sign| *sign == '*')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pattern_names_a_path_or_its_end() {
        let named = |path, pattern| is_named(path, pattern);
        assert!(named("AGENTS.md", "AGENTS.md") && named("/home/me/AGENTS.md", "AGENTS.md"));
        assert!(named("src/deep/er/a.py", "src/*.py") && named("C:\\work\\docs\\a.md", "docs/*.md"));
        assert!(named("a.py", "?.py") && named("notes.txt", "*") && named("计划.md", "计*"));
        assert!(named("AGENTS.md", "./AGENTS.md") && named("docs/deep/a.md", "docs/") && named("a.md", "**/a.md"));
        assert!(named("docs/a.md", "docs/**/*.md") && named("C:\\w\\docs\\a.md", "C:\\w\\docs\\*.md"));
        assert!(!named("MY_AGENTS.md", "AGENTS.md") && !named("MY_AGENTS.md", "**/AGENTS.md"));
        assert!(!named("MY_AGENTS.md", "*/AGENTS.md") && !named("a.pyc", "*.py") && !named("ab.py", "?.py"));
    }

    #[test]
    fn the_last_read_of_a_file_is_pinned_until_it_is_written() {
        let calls = [
            ("1", "read_file", r#"{"path": "./AGENTS.md"}"#, "old"),
            ("2", "read_file", r#"{"path": "AGENTS.md", "offset": 9}"#, "page two"),
            ("3", "read_file", r#"{"path": "./AGENTS.md"}"#, "new"),
            ("4", "read_file", r#"{"path": "other.md"}"#, "other"),
            ("5", "read_file", r#"{"path": "AGENTS.md", "offset": 9}"#, "Error: no such file"),
        ];
        let write = ("6", "write_file", r#"{"path": "AGENTS.md", "content": "x"}"#, "ok");
        let patterns = ["AGENTS.md".to_owned()];
        let pinned = |calls: &[(&'static str, &'static str, &'static str, &'static str)]| {
            let mut view = Vec::new();
            for &(id, name, arguments, result) in calls {
                let [id, name, arguments] = [id, name, arguments].map(|text| Some(Text::new(text)));
                let call = ToolCall { id: id.clone(), name, arguments, arguments_are_text: true };
                view.push(Message { tool_calls: vec![call], ..Message::empty(Role::Assistant) });
                view.push(Message { tool_call_id: id, ..Message::new(Role::Tool, result) });
            }
            let mut indices: Vec<usize> = Pins::of(&view, &patterns).indices().collect();
            indices.sort_unstable();
            indices
        };
        assert_eq!(pinned(&calls), [3, 5]);
        // The write is all that is in the file.
        assert_eq!(pinned(&[&calls[..], &[write]].concat()), [10]);
        let delete = ("7", "delete_file", r#"{"path": "AGENTS.md"}"#, "ok");
        assert_eq!(pinned(&[&calls[..], &[delete]].concat()), [0_usize; 0]);
        assert_eq!(pinned(&[write, delete]), [0_usize; 0]);
        // What was changed stands beside what was read before it.
        let edit = ("8", "Edit", r#"{"file_path": "/w/AGENTS.md", "old_string": "a", "new_string": "b"}"#, "ok");
        let sed = ("9", "Bash", r#"{"command": "sed -i s/b/c/ AGENTS.md"}"#, "");
        let other = ("10", "Edit", r#"{"file_path": "/w/other.md", "old_string": "a", "new_string": "b"}"#, "ok");
        let refused = ("11", "Edit", r#"{"file_path": "AGENTS.md", "old_string": "a"}"#, "Error: not found");
        assert_eq!(pinned(&[calls[0], edit, other, sed, refused]), [1, 2, 6]);
        assert_eq!(pinned(&[calls[0], edit, calls[2], sed]), [5, 6]);
        assert_eq!(pinned(&[edit, calls[0]]), [3]);
        assert_eq!(pinned(&[write, sed, calls[3]]), [0, 2]);
    }
}
