//! Finds what a host says of a message in the message itself: nanobot's block about the channel, `<system-reminder>` and the like.

use std::borrow::Cow;
use std::ops::Range;

use super::{RUNTIME_CONTEXT, stamp};

/// Most tags of a text that are looked at, and bytes of a name.
const MAX_TAGS: usize = 16;
const MAX_TAG_BYTES: usize = 40;

/// How the names of tags end in which a host hands the user's words over: `<user_query>` of Cursor, `<user_instructions>` of Codex.
const OF_USER: [&str; 10] =
    ["query", "message", "request", "input", "prompt", "question", "answer", "task", "instruction", "instructions"];

/// Returns the range of nanobot's block before or behind the user's text.
///
/// Source: nanobot 0.1.4.post1 to 0.3.5, `ContextBuilder`; from 0.1.5.post2 on it has a closing line.
fn runtime_context(text: &str) -> Option<Range<usize>> {
    let start = text.find(RUNTIME_CONTEXT)?;
    let mut ends = ["[/Runtime Context]", "\n\n"].iter();
    let end = ends.find_map(|end| text[start..].find(end).map(|at| start + at + end.len()));
    Some(start..end.unwrap_or(text.len()))
}

/// Returns the ranges of the blocks of a host in a text, in order: nanobot's, and between tags whose names have several words
/// (`<environment_details>`), but those with the user's words. O(n).
pub fn host_blocks(text: &str) -> Vec<Range<usize>> {
    let mut blocks = Vec::from_iter(runtime_context(text));
    let mut end = 0;
    let lines = text.match_indices('<').map(|(at, _)| at).filter(|&at| at == 0 || text[..at].ends_with('\n'));
    for at in lines.take(MAX_TAGS) {
        let block = tagged(text, at).filter(|block| block.start >= end);
        let is_apart =
            |block: &Range<usize>| blocks.iter().all(|other| other.end <= block.start || block.end <= other.start);
        if let Some(block) = block.filter(is_apart) {
            end = block.end;
            blocks.push(block);
        }
    }
    blocks.sort_unstable_by_key(|block| block.start);
    blocks
}

/// Returns the range of the block whose tag opens at `at`.
fn tagged(text: &str, at: usize) -> Option<Range<usize>> {
    let behind = text[at..].strip_prefix('<')?;
    let length = behind.bytes().take(MAX_TAG_BYTES).take_while(|byte| is_of_name(*byte)).count();
    let (name, behind) = behind.split_at(length);
    let inside = behind.strip_prefix('>')?;
    let is_of_user = name.rsplit(['-', '_']).next().is_some_and(|last| OF_USER.contains(&last));
    // An element of a page has no "_", and others in it.
    let is_of_host = name.contains('_') || name.contains('-') && !inside.trim_start().starts_with('<');
    if !is_of_host || is_of_user {
        return None;
    }
    let close = format!("</{name}>");
    let end = text.len() - inside.len() + inside.find(&close)? + close.len();
    Some(at..end)
}

fn is_of_name(byte: u8) -> bool {
    byte.is_ascii_lowercase() || byte.is_ascii_digit() || matches!(byte, b'-' | b'_')
}

/// Returns the end of the block of a host with which a text begins. O(bytes of the block).
pub(super) fn block_before(text: &str) -> Option<usize> {
    let context = || runtime_context(text).filter(|_| text.starts_with(RUNTIME_CONTEXT));
    tagged(text, 0).or_else(context).map(|block| block.end)
}

/// Returns a text without the blocks of its host, which are mostly in English. O(n).
pub fn without_host_blocks(text: &str) -> Cow<'_, str> {
    let blocks = host_blocks(text);
    if blocks.is_empty() {
        return Cow::Borrowed(text);
    }
    let starts = std::iter::once(0).chain(blocks.iter().map(|block| block.end));
    let ends = blocks.iter().map(|block| block.start).chain([text.len()]);
    Cow::Owned(starts.zip(ends).map(|(start, end)| &text[start..end]).collect())
}

/// Returns a text with spaces in place of what its host says of it, its blocks and `[Message Time: …]`, so that all else stands where it
/// did. O(n).
pub fn blank_host_notes(text: &str) -> Cow<'_, str> {
    let mut blank = Cow::Borrowed(text);
    for block in host_blocks(text) {
        fill(&mut blank, block);
    }
    if let Some(stamp) = stamp(&blank) {
        fill(&mut blank, stamp);
    }
    blank
}

fn fill(text: &mut Cow<'_, str>, range: Range<usize>) {
    let spaces = " ".repeat(range.len());
    text.to_mut().replace_range(range, &spaces);
}

#[cfg(test)]
mod tests {
    use super::*;

    const NANOBOTS: &str = "[Runtime Context — x]\nCurrent Time: 2026-10-12 09:30\n[/Runtime Context]";
    const REMINDER: &str = "<system-reminder>\nNever mention it.\n\nBe brief.\n</system-reminder>";
    const DETAILS: &str = "<environment_details>\n<cwd>/repo</cwd>\n</environment_details>";

    #[test]
    fn the_blocks_of_a_host_are_found_wherever_they_stand() {
        for block in [NANOBOTS, REMINDER, DETAILS] {
            for (before, behind) in [("", "\nHi."), ("Hi.\n\n", ""), ("Hi.\n", "\nThere.")] {
                let text = format!("{before}{block}{behind}");
                let range = before.len()..before.len() + block.len();
                assert_eq!(host_blocks(&text).first(), Some(&range), "{text}");
                assert_eq!(without_host_blocks(&text), format!("{before}{behind}"));
            }
        }
        assert_eq!(without_host_blocks("[Runtime Context]\nChannel: cli\n\nHi."), "Hi.");
        let both = format!("{REMINDER}\nHi.\n{DETAILS}\n{NANOBOTS}");
        assert_eq!(without_host_blocks(&both).trim(), "Hi.");
    }

    #[test]
    fn what_a_user_writes_or_pastes_is_no_block_of_a_host() {
        for text in [
            "Hi.",
            "<user_query>\nFix it.\n</user_query>",
            "<task>\nFix it.\n</task>",
            "<user-card>\n  <b>Ada</b>\n</user-card>",
            "What is a <system-reminder> good for? </system-reminder>",
            "<system-reminder>\nIt does not end.",
            "<a_b",
            "<",
            "",
        ] {
            assert!(host_blocks(text).is_empty(), "{text}");
        }
    }

    #[test]
    fn what_a_host_says_of_a_text_is_blank() {
        for (before, behind) in [
            ("[Message Time: 2026-11-25T10:11:11.975363]\n", ""),
            ("[Mon 2026-11-25 10:11 UTC] ", ""),
            ("2026-11-25T10:42:03Z ", ""),
            ("", NANOBOTS),
            (NANOBOTS, ""),
            (REMINDER, NANOBOTS),
            ("[Message Time: 2026-11-25T10:11:11]\n", NANOBOTS),
            ("<system-reminder>x</system-reminder>\n[Message Time: 2026-11-25T10:11:11]\n", ""),
        ] {
            let text = format!("{before}When is the 5th lesson?\n{behind}");
            let blank = blank_host_notes(&text);
            assert_eq!(blank.trim(), "When is the 5th lesson?", "{text}");
            assert_eq!((blank.len(), blank.find("When")), (text.len(), text.find("When")), "{text}");
        }
        for text in [
            "2026-11-25 is free?",
            "[Reply to Omar: see you on 2026-11-25] I can't.",
            "[Lena]: On 2026-11-25?",
            "[image: /media/2026-11-25.jpg] What is it?",
            "[image: 2026-11-25.jpg]\nWhat is it?",
        ] {
            assert_eq!(blank_host_notes(text), text);
        }
    }
}
