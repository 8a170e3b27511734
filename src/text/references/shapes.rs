//! Finds tables, code, letters and verses in a text of the model.

use std::ops::Range;

use super::words::{Shape, WORDS};
use crate::text::bytes::lines;
use crate::text::excerpt::is_fence;

/// Fewest lines of a table and of verses, and most characters of a line of these.
const MIN_LINES: usize = 3;
const MAX_VERSE_CHARS: usize = 60;

/// Returns the last thing of a shape in a text. O(n).
pub fn last(text: &str, shape: Shape) -> Option<Range<usize>> {
    match shape {
        Shape::Table => last_run(text, |line| line.trim_start().starts_with('|')),
        Shape::Code => last_code(text),
        Shape::Letter => last_letter(text),
        Shape::Verse => last_run(text, is_verse),
        Shape::List => None,
    }
}

/// Returns the last lines in a row that are wanted, at least [`MIN_LINES`].
fn last_run(text: &str, is_wanted: impl Fn(&str) -> bool) -> Option<Range<usize>> {
    let (mut found, mut run, mut many, mut at) = (None, 0..0, 0, 0);
    for line in lines(text) {
        if is_wanted(line) {
            run.start = if many == 0 { at } else { run.start };
            (run.end, many) = (at + line.trim_end().len(), many + 1);
            if many >= MIN_LINES {
                found = Some(run.clone());
            }
        } else {
            many = 0;
        }
        at += line.len();
    }
    found
}

/// Returns whether a line is short and neither a heading nor an item.
fn is_verse(line: &str) -> bool {
    let bare = line.trim();
    let is_marked = bare.starts_with(['#', '-', '*', '|', '`', '>']) || bare.starts_with(|c: char| c.is_ascii_digit());
    !bare.is_empty() && !is_marked && bare.chars().count() <= MAX_VERSE_CHARS
}

/// Returns the last fenced block, with its fences.
fn last_code(text: &str) -> Option<Range<usize>> {
    let (mut found, mut open, mut at) = (None, None, 0);
    for line in lines(text) {
        if is_fence(line) {
            match open.take() {
                Some(start) => found = Some(start..at + line.trim_end().len()),
                None => open = Some(at),
            }
        }
        at += line.len();
    }
    found
}

/// Returns the last letter: from its subject or salutation on.
fn last_letter(text: &str) -> Option<Range<usize>> {
    let (mut found, mut before_opens, mut at) = (None, false, 0);
    for line in lines(text) {
        let head = line[..line.floor_char_boundary(32)].trim_start_matches(['>', '*', ' ']).to_lowercase();
        let opens = WORDS.openings.iter().any(|word| {
            let behind = head.strip_prefix(word);
            behind.is_some_and(|behind| {
                !word.ends_with(char::is_alphanumeric) || !behind.starts_with(char::is_alphanumeric)
            })
        });
        // A salutation may stand below the subject.
        if opens && !before_opens {
            found = Some(at);
        }
        before_opens = opens || before_opens && line.trim().is_empty();
        at += line.len();
    }
    found.map(|start| start..text.trim_end().len())
}
