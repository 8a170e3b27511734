//! Finds what a call changes in what its arguments say, or the model in a reply: where the text that is replaced and the new one differ,
//! and the changed lines of a patch.

use std::borrow::Cow;
use std::ops::Range;

use crate::tools::names_patched_file;

use super::elision;
use super::json_string::{self, Literal};

/// Least bytes that two texts share at their starts if one of them replaces the other.
const MIN_SHARED: usize = 16;
/// Most bytes of a line that are shown before the place where two differ.
const MAX_BEFORE: usize = 32;
/// Most bytes of a word that is shown from its start.
const MAX_WORD: usize = 32;

/// Returns the ranges of JSON `arguments` that say what changes, in order: of two neighbouring texts that begin alike, each from the
/// line where they differ to that from which they are alike again; of a patch the names of files and the changed lines, each run of
/// lines a range; of blocks of search and replace as of two texts, with the line between. Empty for other arguments. O(n).
pub fn changes(arguments: &str) -> Vec<Range<usize>> {
    let written = Written { text: arguments, is_json: true };
    let mut found = Vec::new();
    let mut before = 0..0;
    for Literal { body, is_key } in json_string::literals(arguments) {
        if is_key {
            continue;
        }
        // What was cut before begins behind its mark.
        let value = body.end - elision::behind_cut_string(&arguments[body.clone()]).len()..body.end;
        let of_patch = written.patched(&value);
        let pair = if of_patch.is_empty() { written.differing(&before, &value) } else { of_patch };
        // Of three alike the second is the new text of the first.
        before = if pair.is_empty() { value } else { 0..0 };
        found.extend(pair);
    }
    found
}

/// Returns those of some [`changes`] that are within a range.
pub fn within<'c>(changes: &'c [Range<usize>], range: &Range<usize>) -> &'c [Range<usize>] {
    let first = changes.partition_point(|change| change.start < range.start);
    &changes[first..first + changes[first..].partition_point(|change| change.end <= range.end)]
}

/// Returns the ranges of a reply that say what it changes, as [`changes`] does of arguments: patches, and blocks of search and replace,
/// as models write them that have no tool for it, each of these with the lines that open it. O(n).
pub fn in_reply(text: &str) -> Vec<Range<usize>> {
    let written = Written { text, is_json: false };
    let may_have = SEARCH.iter().chain(&PATCHES).any(|mark| text.contains(mark));
    if may_have { written.patched(&(0..text.len())) } else { Vec::new() }
}

/// What a patch has that is no block of search and replace.
const PATCHES: [&str; 2] = ["\n+++ ", "*** Begin Patch"];

/// Opens and ends a block of search and replace, as aider and Cline write it.
const SEARCH: [&str; 2] = ["<<<<<<< SEARCH", "------- SEARCH"];
const REPLACE: [&str; 2] = [">>>>>>> REPLACE", "+++++++ REPLACE"];

/// A text, or JSON whose strings have texts.
struct Written<'t> {
    text: &'t str,
    is_json: bool,
}

impl Written<'_> {
    /// Returns what differs between two texts that begin alike; nothing where they do not, or are the same. Where one only adds to the
    /// other, the line behind that, or else the one before it, is of both: else what is added would seem to replace that line.
    fn differing(&self, one: &Range<usize>, other: &Range<usize>) -> Vec<Range<usize>> {
        let texts = [one, other].map(|range| &self.text[range.clone()]);
        let [a, b] = texts.map(str::as_bytes);
        let shared = a.iter().zip(b).take_while(|(a, b)| a == b).count();
        if shared < MIN_SHARED || (shared == a.len() && shared == b.len()) {
            return Vec::new();
        }
        let line = self.line_start(texts[0], self.floor(texts[0], shared));
        let alike = a[line..].iter().rev().zip(b[line..].iter().rev()).take_while(|(a, b)| a == b).count();
        let ends = texts.map(|text| self.floor(text, text.len() - alike).max(line));
        let line_ends = || [0, 1].map(|of| self.line_end(texts[of], ends[of]));
        let (start, ends) = if !ends.contains(&line) {
            let near = self.word_start(texts[0], self.floor(texts[0], shared.saturating_sub(MAX_BEFORE)));
            let is_start = |of: usize| self.line_start(texts[of], ends[of]) == ends[of];
            (line.max(near), if is_start(0) && is_start(1) { ends } else { line_ends() })
        } else if alike > 0 {
            (line, line_ends())
        } else {
            let end = self.floor(texts[0], line.saturating_sub(1));
            (self.line_start(texts[0], end), ends)
        };
        [one, other].into_iter().zip(ends).map(|(range, end)| range.start + start..range.start + end).collect()
    }

    /// Returns the names of files and the changed lines of a patch, and what differs between the halves of blocks of search and replace.
    fn patched(&self, value: &Range<usize>) -> Vec<Range<usize>> {
        let mut found: Vec<Range<usize>> = Vec::new();
        let (mut is_patch, mut searched, mut replaced) = (false, None, None);
        for range in self.lines(value) {
            let line = &self.text[range.clone()];
            if names_patched_file(line).is_some() {
                is_patch = true;
                found.push(range);
            } else if SEARCH.iter().any(|mark| line.starts_with(mark)) {
                searched = Some(range);
            } else if line.starts_with("=======") {
                replaced = searched.as_ref().map(|_| range);
            } else if REPLACE.iter().any(|mark| line.starts_with(mark)) {
                if let (Some(from), Some(middle)) = (searched.take(), replaced.take()) {
                    let halves = self.differing(&(from.end..middle.start), &(middle.end..range.start));
                    let mut halves = halves.into_iter();
                    if let (Some(old), Some(new)) = (halves.next(), halves.next()) {
                        let head = (!self.is_json).then(|| self.head(&from));
                        // Which of the two is new is told by the line between them.
                        found.extend(head.into_iter().chain([old, middle, new]));
                    }
                }
            } else if is_patch && line.starts_with(['+', '-']) && !line.starts_with("---") {
                let sign = &line[..1];
                let is_next =
                    |last: &&mut Range<usize>| last.end == range.start && self.text[last.start..].starts_with(sign);
                match found.last_mut().filter(is_next) {
                    Some(run) => run.end = range.end,
                    None => found.push(range),
                }
            }
        }
        found
    }

    /// Returns the line that opens a block with those before it that may name the file: a fence, and one without spaces.
    fn head(&self, opening: &Range<usize>) -> Range<usize> {
        let mut start = opening.start;
        for is_wanted in
            [|line: &str| line.starts_with("```"), |line: &str| !line.trim().is_empty() && !line.trim().contains(' ')]
        {
            let Some(before) = start.checked_sub(1) else { break };
            let line = self.line_start(self.text, before);
            if is_wanted(&self.text[line..start]) {
                start = line;
            }
        }
        start..opening.end
    }

    /// Returns `position`, or the start of the character or escape that it is in.
    fn floor(&self, text: &str, position: usize) -> usize {
        if self.is_json { json_string::floor_escape(text, position) } else { text.floor_char_boundary(position) }
    }

    /// Returns the start of the word at `position`, if it is near.
    fn word_start(&self, text: &str, position: usize) -> usize {
        let is_part = |c: char| c.is_alphanumeric() || c == '_';
        let head = &text[..position];
        let word: usize = head.chars().rev().take_while(|c| is_part(*c)).map(char::len_utf8).sum();
        let is_within = word <= MAX_WORD && text[position..].starts_with(is_part);
        if is_within { self.floor(text, position - word) } else { position }
    }

    /// Iterates over the lines of the body of a literal, each with its line break, an escape or not.
    fn lines(&self, value: &Range<usize>) -> impl Iterator<Item = Range<usize>> {
        let (mut start, end) = (value.start, value.end);
        std::iter::from_fn(move || {
            let rest = self.text.get(start..end).filter(|rest| !rest.is_empty())?;
            let line = start..start + self.line_end(rest, 0);
            start = line.end;
            Some(line)
        })
    }

    /// Returns the start of the line at `position`, which is in no escape.
    fn line_start(&self, text: &str, position: usize) -> usize {
        let before = &text[..position];
        let is_escape = |&(at, _): &(usize, &str)| !json_string::ends_in_escape(&before[..at]);
        let escape = self.is_json.then(|| before.rmatch_indices(r"\n").find(is_escape)).flatten();
        let escape = escape.map_or(0, |(at, escape)| at + escape.len());
        before.rfind('\n').map_or(0, |at| at + 1).max(escape)
    }

    /// Returns the position behind the line at `position`, which is in no escape.
    fn line_end(&self, text: &str, position: usize) -> usize {
        let rest = &text[position..];
        let is_break = |escape: &Range<usize>| &rest.as_bytes()[escape.clone()] == br"\n";
        let escape = self.is_json.then(|| json_string::escapes(rest).find(is_break)).flatten();
        let end = escape.map_or(rest.len(), |at| at.end);
        position + rest.as_bytes()[..end].iter().position(|byte| *byte == b'\n').map_or(end, |at| at + 1)
    }
}

/// Returns JSON `arguments` with what changes alone, where they say it: see [`changes`].
pub fn only_changes(arguments: &str) -> Cow<'_, str> {
    let changes = changes(arguments);
    if changes.is_empty() {
        return Cow::Borrowed(arguments);
    }
    let (mut out, mut at) = (String::new(), 0);
    for Literal { body, .. } in json_string::literals(arguments) {
        let of_body = within(&changes, &body);
        if !of_body.is_empty() {
            out.push_str(&arguments[at..body.start]);
            out.extend(of_body.iter().map(|change| &arguments[change.clone()]));
            at = body.end;
        }
    }
    out.push_str(&arguments[at..]);
    Cow::Owned(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(arguments: &serde_json::Value) -> Vec<String> {
        let text = arguments.to_string();
        changes(&text).into_iter().map(|range| text[range].replace(r"\n", "\n")).collect()
    }

    #[test]
    fn of_two_texts_that_begin_alike_the_lines_that_differ() {
        let edit = |old: &str, new: &str| shown(&serde_json::json!({"path": "a.py", "old": old, "new": new}));
        let head = "def limit(value):\n    check(value)\n";
        assert_eq!(
            edit(&format!("{head}    return 1\n    # end\n"), &format!("{head}    return 2\n    # end\n")),
            ["    return 1\n", "    return 2\n"]
        );
        assert_eq!(
            edit(head, &format!("{head}    log()\n")),
            ["    check(value)\n", "    check(value)\n    log()\n"],
            "one only adds to the other, behind a line"
        );
        assert_eq!(
            edit(&format!("{head}    end()\n    # end\n"), &format!("{head}    log()\n    end()\n    # end\n")),
            ["    end()\n", "    log()\n    end()\n"],
            "or before one"
        );
        let line = "x = call_of_something(one, two, three, four, ";
        assert_eq!(
            edit(&format!("{line}5)"), &format!("{line}6)")),
            ["call_of_something(one, two, three, four, 5)", "call_of_something(one, two, three, four, 6)"]
        );
        assert_eq!(edit("return 1", "return 2"), [""; 0], "they are short");
        assert_eq!(edit(head, head), [""; 0]);
    }

    #[test]
    fn of_a_patch_the_files_and_the_changed_lines() {
        let patch = "*** Begin Patch\n*** Update File: src/a.py\n@@\n def f():\n-    a = 1\n-    b = 1\n+    a = 2\n     c = 3\n*** End Patch";
        let files_and_lines = ["*** Update File: src/a.py\n", "-    a = 1\n-    b = 1\n", "+    a = 2\n"];
        assert_eq!(shown(&serde_json::json!({"input": patch})), files_and_lines);
        assert_eq!(shown(&serde_json::json!({"command": ["apply_patch", patch]})), files_and_lines);
        let unified = "--- a/src/a.py\n+++ b/src/a.py\n@@ -1 +1 @@\n-old\n+new\n";
        assert_eq!(shown(&serde_json::json!({"patch": unified})), ["+++ b/src/a.py\n", "-old\n", "+new\n"]);
        assert_eq!(shown(&serde_json::json!({"text": "- one\n- two\n+ three"})), [""; 0], "no patch");
    }

    #[test]
    fn of_blocks_of_search_and_replace_the_lines_that_differ() {
        for [search, replace] in [["<<<<<<< SEARCH", ">>>>>>> REPLACE"], ["------- SEARCH", "+++++++ REPLACE"]] {
            let block = format!(
                "{search}\ndef limit(value):\n    return 1\n=======\ndef limit(value):\n    return 2\n{replace}\n"
            );
            let found = shown(&serde_json::json!({"path": "a.py", "diff": block.repeat(2)}));
            assert_eq!(found, ["    return 1\n", "=======\n", "    return 2\n"].repeat(2));
        }
    }

    #[test]
    fn of_a_reply_its_blocks_with_what_opens_them_and_its_patches() {
        let shown = |text: &str| -> Vec<String> { in_reply(text).into_iter().map(|at| text[at].to_owned()).collect() };
        let head = "def limit(value):\n    print(\"a\\n\", value)\n";
        let block = format!("<<<<<<< SEARCH\n{head}    return 1\n=======\n{head}    return 2\n>>>>>>> REPLACE\n```\n");
        let lines = ["    return 1\n", "=======\n", "    return 2\n"];
        assert_eq!(
            shown(&format!("I change it.\n\nsrc/a.py\n```python\n{block}")),
            [&["src/a.py\n```python\n<<<<<<< SEARCH\n"], &lines[..]].concat()
        );
        assert_eq!(shown(&format!("I change it.\n{block}")), [&["<<<<<<< SEARCH\n"], &lines[..]].concat());
        assert_eq!(
            shown(
                "Here:\n```diff\n--- src/a.py\n+++ src/a.py\n@@ -1 +1 @@\n-print(\"a\\n\", 1)\n+print(\"a\\n\", 2)\n```"
            ),
            ["+++ src/a.py\n", "-print(\"a\\n\", 1)\n", "+print(\"a\\n\", 2)\n"]
        );
        assert_eq!(shown("- one\n+ two\n\nSetext\n=======\n"), [""; 0]);
    }

    #[test]
    fn only_changes_leaves_json() {
        let head = "a \"quoted\" line\nand \\n another é\n".repeat(4);
        let arguments =
            serde_json::json!({"path": "a.py", "old": format!("{head}é"), "new": format!("{head}è"), "n": 1});
        let text = arguments.to_string();
        let only: serde_json::Value = serde_json::from_str(&only_changes(&text)).unwrap();
        assert_eq!(only, serde_json::json!({"path": "a.py", "old": "é", "new": "è", "n": 1}));
        for plain in ["{}", "not json", r#"{"a": "b"#, r#"{"a": "\"#] {
            assert_eq!(only_changes(plain), plain);
        }
    }
}
