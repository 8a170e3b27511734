//! Shortens one text by its place: to characters, to tokens, inside JSON arguments.

use std::borrow::Cow;
use std::ops::Range;

use crate::tokens::{TokenCounter, Tokens, Way, cut_by_content, prefix_within, suffix_within};
use crate::tools::{LOCATOR_KEYS, names_patched_file};

use super::edits::{changes, within};
use super::elision;
use super::json_string::{self, Literal};
use super::language::Language;

/// Lines kept by [`trim_tool_result`] from the start and from the end.
///
/// Source: plan V3.1, `SOFT_TRIM_HEAD_LINES` and `SOFT_TRIM_TAIL_LINES`.
pub const TRIM_LINES: (usize, usize) = (20, 10);

/// Returns `result` cut to at most `max_chars` characters, with its mark.
///
/// A longer result keeps its first and last lines (`lines`: how many of each); if these are too long, its first and last
/// characters, two to one. A limit below the mark's length keeps the start without a mark.
#[must_use]
pub fn trim_tool_result(result: &str, max_chars: usize, lines: (usize, usize)) -> Cow<'_, str> {
    // Bytes bound characters, so most results are not read.
    if result.len() <= max_chars || result.chars().count() <= max_chars {
        return Cow::Borrowed(result);
    }
    // The language of the conversation is unknown here.
    let language = Language::of([result]).unwrap_or_default();
    let by_lines = head_and_tail_lines(result, lines, language);
    if let Some(trimmed) = by_lines.filter(|trimmed| trimmed.chars().count() <= max_chars) {
        return Cow::Owned(trimmed);
    }
    // The length of the mark depends on its number, by a digit at most.
    let room = max_chars.saturating_sub(elision::gap(result, language).chars().count());
    if room == 0 {
        return Cow::Owned(result.chars().take(max_chars).collect());
    }
    Cow::Owned(head_and_tail_chars(result, room - room / 3, room / 3, language, |_| Vec::new()))
}

fn head_and_tail_lines(text: &str, (head, tail): (usize, usize), language: Language) -> Option<String> {
    // The end of the first lines and the start of the last; the ends of the text without such lines.
    let head_end = match head.checked_sub(1) {
        Some(head) => text.match_indices('\n').nth(head)?.0,
        None => 0,
    };
    let tail_start = match tail.checked_sub(1) {
        Some(tail) => text.rmatch_indices('\n').nth(tail)?.0 + 1,
        None => text.len(),
    };
    (head_end < tail_start).then(|| {
        let gone = &text[head_end..tail_start];
        // The line break in front of it ends a line that is kept.
        let lines = if head_end > 0 { &gone[1..] } else { gone }.lines().count() as u64;
        let joined = around(text, (head_end, tail_start), &elision::gap_of(gone, lines, language));
        // A mark has its own line between two others.
        let joined = if head_end == 0 { joined.trim_start_matches('\n') } else { &joined };
        if tail_start == text.len() { joined.trim_end_matches('\n') } else { joined }.to_owned()
    })
}

/// Returns the first `head` and last `tail` characters of `text`, and ranges that `kept` picks in between, with a mark for
/// each gap.
///
/// `text` has more than `head + tail` characters. `kept` must return ordered, disjoint ranges.
pub fn head_and_tail_chars(
    text: &str,
    head: usize,
    tail: usize,
    language: Language,
    kept: impl FnOnce(Range<usize>) -> Vec<Range<usize>>,
) -> String {
    let head_end = text.char_indices().nth(head).map_or(text.len(), |(at, _)| at);
    let tail_start =
        if tail == 0 { text.len() } else { text.char_indices().nth_back(tail - 1).map_or(0, |(at, _)| at) };
    let tail_start = tail_start.max(head_end);
    let kept = kept(head_end..tail_start);
    if kept.is_empty() {
        return join(text, head_end, tail_start, language);
    }
    let (mut out, mut end) = (text[..head_end].to_owned(), head_end);
    for range in kept.into_iter().chain(std::iter::once(tail_start..text.len())) {
        let gap = &text[end..range.start];
        if gap.trim().is_empty() {
            out.push_str(gap);
        } else {
            out.push_str(&elision::gap(gap, language));
            // Text behind a gap is code if it was before.
            if gap.lines().filter(|line| is_fence(line)).count() % 2 == 1 {
                out.push_str(FENCE);
            }
        }
        out.push_str(&text[range.clone()]);
        end = range.end;
    }
    out
}

/// A line that opens or closes a fenced block.
pub const FENCE: &str = "```\n";

/// Returns whether a line opens or closes a fenced block.
pub fn is_fence(line: &str) -> bool {
    let line = line.trim_start();
    line.starts_with("```") || line.starts_with("~~~")
}

fn join(text: &str, head_end: usize, tail_start: usize, language: Language) -> String {
    around(text, (head_end, tail_start), &elision::gap(&text[head_end..tail_start], language))
}

/// Returns the start and the end of `text` with `gap` between them.
fn around(text: &str, (head_end, tail_start): (usize, usize), gap: &str) -> String {
    [&text[..head_end], gap, &text[tail_start..]].concat()
}

/// Returns `text` cut to at most `max_tokens` with its mark: its start and end, two to one.
///
/// Also returns its tokens; `None` if `max_tokens` leaves nothing beside the mark. Counts O(`max_tokens`), not O(n); lines
/// and characters for the mark cost O(n). The cut is cached by content.
pub fn to_tokens(
    text: &str,
    max_tokens: Tokens,
    counter: TokenCounter,
    language: Language,
) -> Option<(String, Tokens)> {
    let find = || {
        let cut = find_cut(text, usize_of(max_tokens), counter, language);
        cut.map_or([0; 3], |(head_end, tail_start, tokens)| [head_end as u64, tail_start as u64, tokens as u64])
    };
    let way = if language == Language::Chinese { Way::CutInChinese } else { Way::Cut };
    let [head_end, tail_start, tokens] = cut_by_content(text, max_tokens.0, counter.key(way), find);
    let (head_end, tail_start) = (usize::try_from(head_end).ok()?, usize::try_from(tail_start).ok()?);
    (tokens > 0).then(|| (join(text, head_end, tail_start, language), Tokens(tokens)))
}

/// Returns a count as vocabularies give it.
fn usize_of(tokens: Tokens) -> usize {
    usize::try_from(tokens.0).unwrap_or(usize::MAX)
}

/// Returns the end of the head, the start of the tail, and their tokens with the mark.
fn find_cut(text: &str, max_tokens: usize, counter: TokenCounter, language: Language) -> Option<(usize, usize, usize)> {
    let vocabulary = counter.vocabulary();
    // Cuts are counted by the bare vocabulary, the result by the counter. For estimates the two differ by a factor, which
    // jumps where the mark changes the class of the text: so the room is searched, by bisection once there is a bound on
    // both sides.
    let mut best: Option<(usize, usize, usize)> = None;
    let (mut room, mut enough, mut too_much) = (counter.bare(max_tokens, text), None, None);
    for _ in 0..ATTEMPTS {
        let Some(body) = room.checked_sub(GAP_TOKENS).filter(|body| *body >= MIN_BODY_TOKENS) else { break };
        let head_end = prefix_within(text, body - body / 3, vocabulary);
        let tail_start = head_end + suffix_within(&text[head_end..], body / 3, vocabulary);
        let (head_end, tail_start) = at_lines(text, head_end, tail_start);
        let tokens = if head_end < tail_start && tail_start - head_end < text.len() {
            usize_of(counter.text(&join(text, head_end, tail_start, language)))
        } else {
            usize::MAX
        };
        if tokens > max_tokens {
            too_much = Some(room);
            let by_share = if tokens == usize::MAX { room / 8 * 7 } else { room * max_tokens / tokens };
            room = enough.map_or(by_share.min(room - 1), |enough| usize::midpoint(enough, room));
        } else {
            if best.is_none_or(|(_, _, most)| tokens > most) {
                best = Some((head_end, tail_start, tokens));
            }
            if counter.family().is_exact() || tokens * 16 >= max_tokens * 15 {
                break;
            }
            enough = Some(room);
            room = too_much.map_or(room * max_tokens / tokens, |too_much| usize::midpoint(room, too_much));
        }
    }
    best
}

/// Most texts take one attempt under their own vocabulary and two under another's.
const ATTEMPTS: usize = 12;
/// Tokens of a [`elision::gap`] with large numbers in it.
const GAP_TOKENS: usize = 20;
/// Least tokens of text that are worth a mark.
const MIN_BODY_TOKENS: usize = 12;

/// Lines up to this stay or go whole, for half a row shows other numbers; a cut moves that far to the end of a word in longer ones.
const WHOLE_LINE_BYTES: usize = 400;

/// Moves a cut to the ends of lines, or of words where these are long.
fn at_lines(text: &str, head_end: usize, tail_start: usize) -> (usize, usize) {
    let line = |at: usize| {
        let start = text[..at].rfind('\n').map_or(0, |end| end + 1);
        let end = if start == at { at } else { text[at..].find('\n').map_or(text.len(), |end| at + end + 1) };
        Some(start..end).filter(|line| line.len() <= WHOLE_LINE_BYTES)
    };
    let before = || text[..head_end].rfind(char::is_whitespace).filter(|at| head_end - at <= WHOLE_LINE_BYTES);
    let behind = || text[tail_start..].find(|c: char| c.is_ascii_whitespace()).filter(|at| *at <= WHOLE_LINE_BYTES);
    let head = line(head_end).map(|line| line.start.saturating_sub(1));
    let tail = line(tail_start).map(|line| line.end);
    let head = head.or_else(before).unwrap_or(head_end);
    (head, tail.unwrap_or_else(|| behind().map_or(tail_start, |at| tail_start + at + 1)))
}

/// Longest argument that names the subject of a call and stays whole; a heredoc in `command` is not a name.
const MAX_PATH_CHARS: usize = 500;

/// Returns JSON `arguments` with every string value cut to `max_chars` characters: its first, or of what a call changes the first that
/// [`changes`] finds of each, behind a mark.
///
/// Changes only the inside of string literals, so valid JSON stays valid, numbers keep their text, keys stay, and nesting
/// costs no stack. O(n).
pub fn arguments(arguments: &str, max_chars: usize) -> String {
    let changes = changes(arguments);
    let mut out = String::with_capacity(arguments.len().min(4096));
    let (mut at, mut key) = (0, "");
    for Literal { body, is_key } in json_string::literals(arguments) {
        out.push_str(&arguments[at..body.start]);
        at = body.end;
        let said = &arguments[body.clone()];
        if is_key {
            key = said;
            out.push_str(said);
            continue;
        }
        let keep = if LOCATOR_KEYS.contains(&key) { max_chars.max(MAX_PATH_CHARS) } else { max_chars };
        let of_body = within(&changes, &body).iter();
        let shown: Vec<Range<usize>> =
            of_body.map(|change| change.start - body.start..change.end - body.start).collect();
        push_short(&mut out, said, keep, &shown);
        key = "";
    }
    out.push_str(&arguments[at..]);
    out
}

/// Returns the number of commas between members and elements of JSON. O(n).
pub fn separators(json: &str) -> usize {
    let (mut count, mut rest) = (0, json);
    while let Some(at) = rest.find(['"', ',']) {
        let is_comma = rest.as_bytes()[at] == b',';
        rest = &rest[at + 1..];
        if is_comma {
            count += 1;
        } else {
            rest = json_string::closing_quote(rest).map_or("", |close| &rest[close + 1..]);
        }
    }
    count
}

/// Pushes the body of a JSON string literal, cut to about `max_chars` characters between two escapes: its first, or of each of
/// `changed` its first, if these do not begin among the former.
fn push_short(out: &mut String, body: &str, max_chars: usize, changed: &[Range<usize>]) {
    let kept = if elision::is_cut_string(body) { max_chars.max(MAX_CUT_CHARS) } else { max_chars };
    if body.len() <= kept || body.chars().count() <= kept {
        out.push_str(body);
        return;
    }
    let head = 0..body.len();
    let begins_in_head = |only: &Range<usize>| body[..only.start].chars().count() <= max_chars / 2;
    let shown = match changed {
        [] => std::slice::from_ref(&head),
        [only] if begins_in_head(only) => std::slice::from_ref(&head),
        _ => changed,
    };
    let mut at = 0;
    for range in shown.iter().take(MAX_CHANGES) {
        let is_name = names_patched_file(&body[range.clone()]).is_some();
        let most = if is_name { MAX_PATH_CHARS } else { max_chars * OF_CHANGE };
        let end = json_string::floor_escape(body, nth_char(body, range.start, most).min(range.end));
        push_cut(out, &body[at..range.start]);
        out.push_str(&body[range.start..end]);
        at = end;
    }
    push_cut(out, &body[at..]);
}

/// Pushes the mark of what is left out, if anything is.
fn push_cut(out: &mut String, gone: &str) {
    if !gone.is_empty() {
        out.push_str(&elision::cut_string(gone.chars().count()));
    }
}

/// Returns the position of the `nth` character behind `start`, or the end.
fn nth_char(text: &str, start: usize, nth: usize) -> usize {
    text[start..].char_indices().nth(nth).map_or(text.len(), |(at, _)| start + at)
}

/// Most changes that cut arguments show of one text: of a patch the names of its files are among them. Each has as many times the
/// characters of a text that is cut at its end: half a line of code says nothing.
const MAX_CHANGES: usize = 4;
const OF_CHANGE: usize = 2;
/// A text that ends or begins in its mark and is no longer was cut before.
const MAX_CUT_CHARS: usize = MAX_CHANGES * (MAX_PATH_CHARS + 40) + MAX_PATH_CHARS;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_trimmed_result_is_never_longer_than_asked() {
        let lines = (0..10_000).map(|i| format!("line {i}\n")).collect::<Vec<_>>().concat();
        let trimmed = trim_tool_result(&lines, 15_000, TRIM_LINES);
        assert!(trimmed.starts_with("line 0\n") && trimmed.ends_with("line 9999\n"));
        assert!((30..=34).contains(&trimmed.lines().count()), "{}", trimmed.lines().count());
        for text in [lines.as_str(), &"中文".repeat(9000), &"x".repeat(40_000)] {
            for max_chars in [0, 1, 40, 100, 1000, 15_000] {
                let trimmed = trim_tool_result(text, max_chars, TRIM_LINES);
                assert!(trimmed.chars().count() <= max_chars, "{} > {max_chars}", trimmed.chars().count());
                assert_eq!(trim_tool_result(&trimmed, max_chars, TRIM_LINES), trimmed);
            }
        }
        assert_eq!(trim_tool_result("short", 5, TRIM_LINES), "short");
        assert_eq!(trim_tool_result("a\nb", 2, (0, 0)), "a\n");
    }

    #[test]
    fn the_mark_of_a_trimmed_result_has_the_number_of_lines_that_went() {
        for end in ["", "\n"] {
            let text = (0..100).map(|i| format!("line {i}")).collect::<Vec<_>>().join("\n") + end;
            for lines in [(5, 5), (1, 0), (0, 3), (20, 10)] {
                let trimmed = trim_tool_result(&text, 500, lines);
                let kept = trimmed.lines().filter(|line| line.starts_with("line")).count();
                assert!(trimmed.contains(&format!("[... {} lines", 100 - kept)), "{end:?} {lines:?} {trimmed}");
            }
        }
    }

    #[test]
    fn a_text_cut_to_tokens_fits_and_fills() {
        let lines = (0..3000).map(|i| format!("2026-05-01 worker {i} done\n")).collect::<Vec<_>>().concat();
        let dense = "QUJDREVGR0hJSktM".repeat(4000);
        let chinese = "请检查一下支付模块的日志".repeat(2000);
        for model in [None, Some("gpt-4"), Some("claude-opus-4-5"), Some("deepseek-chat")] {
            let counter = TokenCounter::new(model);
            for text in [&lines, &dense, &chinese] {
                for max_tokens in [60, 200, 1000, 9000].map(Tokens) {
                    let (short, tokens) = to_tokens(text, max_tokens, counter, Language::Other).unwrap();
                    assert_eq!(tokens, counter.text(&short));
                    assert!(tokens <= max_tokens && tokens * 10 >= max_tokens * 6, "{model:?} {tokens} {max_tokens}");
                    assert!(short.contains("left out"));
                }
            }
            assert_eq!(to_tokens(&lines, Tokens(10), counter, Language::Other), None);
        }
    }

    #[test]
    fn a_text_cut_to_tokens_has_no_half_rows() {
        let row = |i: usize| format!("2026-07-{:02}T13:00Z,freezer-{i},-18.{}\n", i % 28, i % 10);
        let rows = (0..80).map(row).collect::<Vec<_>>().concat();
        for max_tokens in (40..400).map(Tokens) {
            let Some((short, _)) = to_tokens(&rows, max_tokens, TokenCounter::new(None), Language::Other) else {
                continue;
            };
            let shown = short.lines().filter(|line| !line.starts_with("[..."));
            assert!(shown.clone().all(|line| rows.lines().any(|row| row == line)), "{short}");
        }
        // Words of a long line are whole, too.
        let line = "freezer reads -18.25 now, ".repeat(400);
        let (short, _) = to_tokens(&line, Tokens(90), TokenCounter::new(None), Language::Other).unwrap();
        let (head, tail) = short.split_once("[...").unwrap();
        let is_word = |word: &str| ["freezer", "reads", "-18.25", "now,"].contains(&word);
        assert!(
            head.split_whitespace().chain(tail.split("...]").last().unwrap().split_whitespace()).all(is_word),
            "{short}"
        );
    }

    #[test]
    fn of_an_edit_the_arguments_show_what_changes() {
        let code = |limit: u32| {
            format!("def check(rows):\n    {}\n    limit = {limit}\n    return rows\n", "x = 1\n".repeat(40))
        };
        let edit = serde_json::json!({"path": "a.py", "old_text": code(10), "new_text": code(20)}).to_string();
        let patch = format!(
            "*** Begin Patch\n*** Update File: src/{}.py\n@@\n{}-    limit = 10\n+    limit = 20\n*** End Patch",
            "a".repeat(60),
            " x\n".repeat(40)
        );
        let patch = serde_json::json!({ "input": patch }).to_string();
        for text in [&edit, &patch] {
            let short = arguments(text, 40);
            serde_json::from_str::<serde_json::Value>(&short).unwrap();
            assert!(short.contains("limit = 10") && short.contains("limit = 20") && short.contains(".py"), "{short}");
            assert!(short.len() < text.len() && arguments(&short, 40) == short, "{short}");
        }
    }

    #[test]
    fn arguments_stay_json_and_keep_numbers_keys_and_paths() {
        let text = format!(
            r#"{{"path": "{}", "content": "{}", "n": 123456789012345678901231, "x": 1.50e-7, "deep": [{{"a": "{}"}}]}}"#,
            "a/".repeat(100),
            r#"say \"hi\"\n\u4e2d \ud83d\ude00 "#.repeat(50),
            "z".repeat(300),
        );
        for max_chars in 0..60 {
            let short = arguments(&text, max_chars);
            serde_json::from_str::<serde_json::Value>(&short).unwrap();
            assert!(short.contains("123456789012345678901231") && short.contains("1.50e-7"));
            assert!(short.contains(&"a/".repeat(100)));
            assert!(short.len() < text.len());
        }
        assert_eq!(arguments("{}", 10), "{}");
        assert_eq!(arguments(r#"{"a": "b"}"#, 10), r#"{"a": "b"}"#);
        let unclosed = arguments(r#"{"a": "b"#, 10);
        assert_eq!(unclosed, r#"{"a": "b"#);
    }
}
