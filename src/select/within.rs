//! Shortens a text by its content, whatever conversation it is in.
//!
//! For limits of a single text. The result must be the same in every later call, so other messages do not count, except for a
//! question that is given.

use std::sync::{Arc, LazyLock};

use xxhash_rust::xxh3::xxh3_64;

use crate::cache::{Allowance, SHORTENED};
use crate::text::analysis::{Analysis, Form};
use crate::text::elision::{self, Marks};
use crate::text::excerpt;
use crate::text::segments::{Class, Kind};
use crate::tokens::{ContentMemory, Recount, TokenCounter, Tokens};

use super::scoring::{ANSWERS, Author, Document, Scoring};
use super::selector::{Block, FIRST_MARK, Frame, Kept, Selector, shrink_steps};

/// A large result is shortened in every call that has it.
pub static MEMORY: LazyLock<ContentMemory<Option<(String, Tokens)>>> =
    LazyLock::new(|| ContentMemory::new(Allowance::Share(&SHORTENED)));

/// Returns `text` cut to at most `max_tokens`, and its tokens; `None` if that is too little for any of it.
///
/// The first mark names the archive path. JSON stays JSON. O(n), cached by content.
pub fn within(text: &str, max_tokens: Tokens, counter: TokenCounter, marks: Marks<'_>) -> Option<(String, Tokens)> {
    Cut { text, max_tokens, counter, marks, question: Question::default() }.cached()
}

/// How much the call asks for its words: next to nothing beside its names, of which the shares count.
const BY_NAME: f32 = 0.01;

/// What a text may answer.
#[derive(Debug, Clone, Copy, Default)]
pub struct Question<'t> {
    /// The last message of the user.
    pub asked: &'t str,
    /// The arguments of the call that brought the text.
    pub arguments: &'t str,
}

/// A cut of a text: see [`within`]. What answers the question stays first.
#[derive(Clone, Copy)]
pub struct Cut<'t> {
    pub text: &'t str,
    pub max_tokens: Tokens,
    pub counter: TokenCounter,
    pub marks: Marks<'t>,
    pub question: Question<'t>,
}

/// Returns JSON cut to at most `max_chars` characters, which must be more than its marks need; `None` for other text.
///
/// JSON that cannot be cut that far becomes marks alone. O(n), cached by content.
pub fn json_within_chars(
    text: &str,
    max_chars: usize,
    counter: TokenCounter,
    marks: Marks<'_>,
    question: Question<'_>,
) -> Option<String> {
    if !text.trim_start().starts_with(['{', '[']) {
        return None;
    }
    let analysis = Analysis::of(text, Form::Outlined);
    if analysis.kind() != Some(Kind::Json) {
        return None;
    }
    let share = |tokens: Tokens, chars: usize| tokens * max_chars as u64 / chars.max(1) as u64;
    let mut max_tokens = share(counter.text(text), text.chars().count());
    // Parts differ in characters per token: cut further while it is too long.
    while let Some((short, tokens)) = (Cut { text, max_tokens, counter, marks, question }).cached() {
        let chars = short.chars().count();
        if chars <= max_chars {
            return Some(short);
        }
        max_tokens = share(tokens, chars);
    }
    Some(analysis.excerpt(text, &|_| false, marks))
}

impl Cut<'_> {
    /// Returns the text that is left and its tokens, from memory if it was made before.
    pub fn cached(self) -> Option<(String, Tokens)> {
        let Self { text, max_tokens, counter, marks, question } = self;
        let salt = max_tokens.0 << 10 | (marks.language as u64) << 8 | u64::from(counter.family().id);
        let salt = salt ^ xxh3_64(question.asked.as_bytes()) ^ xxh3_64(question.arguments.as_bytes()).rotate_left(1);
        let key = marks.archive_path.map(|archive_path| [text, "\0", archive_path].concat());
        let made = MEMORY.get_or_make(key.as_deref().unwrap_or(text), salt, || {
            let made = self.make();
            let bytes = made.as_ref().map_or(0, |(text, _)| text.capacity());
            (made, bytes)
        });
        made.as_ref().clone()
    }

    fn make(self) -> Option<(String, Tokens)> {
        let Self { text, max_tokens, counter, marks, .. } = self;
        let analysis = Analysis::of(text, Form::Outlined);
        let (by_content, tells) = self.chosen(&analysis);
        // Few large parts may leave much of the room; then its start and end say more, if none of them does.
        let fills = by_content.as_ref().is_some_and(|&(_, tokens)| tokens * 10 >= max_tokens * 8);
        if fills || tells || analysis.kind() == Some(Kind::Json) {
            return by_content;
        }
        // A cut by place names no archive path, and would cut through earlier marks.
        let by_place = (marks.archive_path.is_none() && elision::find_gap(text).is_none())
            .then(|| excerpt::to_tokens(text, max_tokens, counter, marks.language))
            .flatten();
        [by_content, by_place].into_iter().flatten().max_by_key(|(_, tokens)| *tokens)
    }

    /// Returns the parts of most worth, with marks for the others, and whether one of them answers the question or stands out.
    fn chosen(self, analysis: &Arc<Analysis>) -> (Option<(String, Tokens)>, bool) {
        let Self { text, max_tokens, counter, marks, question } = self;
        let document = |(message, (author, analysis)): (usize, (Author, Arc<Analysis>))| {
            // A call asks by its names: a word of it, as a key, may be in every line.
            let asks = match author {
                Author::User => 1.0,
                Author::Call => BY_NAME,
                _ => 0.0,
            };
            Document { message, author, effect: None, stays: asks > 0.0, asks, analysis }
        };
        let asking = [(Author::User, question.asked), (Author::Call, question.arguments)];
        let asking = asking.into_iter().filter(|(_, text)| !text.is_empty());
        let asking = asking.map(|(author, text)| (author, Analysis::of(text, Form::Whole)));
        // In their order in a conversation.
        let documents: Vec<Document> =
            asking.chain([(Author::Result, Arc::clone(analysis))]).enumerate().map(document).collect();
        let (messages, question) =
            (documents.len(), documents.iter().position(|document| document.author == Author::User));
        let mut scoring = Scoring::new(documents, messages, question);
        scoring.answer_with_records(|_| text);
        let tells = |part: usize| {
            scoring.relevance(messages - 1, part) >= ANSWERS || analysis.parts[part].class == Class::Outlier
        };
        let telling: Vec<usize> = (0..analysis.parts.len()).filter(|&part| tells(part)).collect();
        let mark = FIRST_MARK + marks.archive_path.map_or(0.0, |archive_path| counter.text(archive_path).as_f32());
        let full = counter.text(text).as_f32();
        let block = Block { document: Some(messages - 1), full, weight: 1.0, mark, ..Block::default() };
        let mut selector = Selector::new(&mut scoring, vec![Frame::default()], vec![block], 0.0);
        selector.grow(max_tokens.as_f32(), |_| true);
        let (mut steps, mut recount) = (shrink_steps(), Recount::default());
        while selector.kept(0) != Kept::Nothing {
            let short = analysis.excerpt(text, &|part| selector.stays(0, part), marks);
            let tokens = counter.variant(&short, &mut recount);
            if tokens <= max_tokens {
                return (Some((short, tokens)), telling.iter().any(|&part| selector.stays(0, part)));
            }
            selector.shrink((tokens - max_tokens).as_f32() * steps.next().unwrap_or(1.0), tokens.as_f32());
        }
        (None, false)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counter() -> TokenCounter {
        TokenCounter::new(None)
    }

    fn log() -> String {
        let line =
            |i: usize| format!("2026-05-01 10:{:02}:{:02} worker {} handled request {i}\n", i / 60, i % 60, i % 7);
        let middle: String = (0..600).map(line).collect();
        format!("$ ./serve --port 8080\n{middle}ERROR: out of memory at request 600\nExit code: 137\n")
    }

    fn rows() -> String {
        let row = |i: usize| format!(r#"{{"id": {i}, "state": "ok", "price": 31.10}}"#);
        format!("[{}]", (0..300).map(row).collect::<Vec<_>>().join(", "))
    }

    #[test]
    fn what_comes_out_is_within_the_tokens_and_uses_them() {
        for text in [log(), rows(), "One sentence of a long text. ".repeat(400)] {
            for max_tokens in [60, 150, 700, 1_500].map(Tokens) {
                let (short, tokens) = within(&text, max_tokens, counter(), Marks::default()).unwrap();
                assert_eq!(tokens, counter().text(&short));
                assert!(tokens <= max_tokens && tokens * 10 >= max_tokens * 7, "{tokens} of {max_tokens}: {short}");
            }
        }
    }

    #[test]
    fn the_same_text_comes_out_the_same() {
        let text = log();
        let short = within(&text, Tokens(300), counter(), Marks::default());
        assert_eq!(within(&text.clone(), Tokens(300), counter(), Marks::default()), short);
        // What is remembered decides nothing.
        let analysis = Analysis::of(&text, Form::Outlined);
        let cut = Cut {
            text: &text,
            max_tokens: Tokens(300),
            counter: counter(),
            marks: Marks::default(),
            question: Question::default(),
        };
        assert_eq!(cut.chosen(&analysis).0, short);
    }

    #[test]
    fn another_limit_model_or_origin_is_not_answered_from_memory() {
        let text = log();
        let short = |max_tokens, model, archive_path| {
            within(&text, Tokens(max_tokens), TokenCounter::new(model), Marks { archive_path, ..Marks::default() })
                .unwrap()
                .0
        };
        let first = short(300, None, None);
        assert_ne!(short(200, None, None), first);
        assert!(short(300, None, Some("results/a.txt")).contains("all of it: results/a.txt"));
        assert!(short(300, None, Some("results/b.txt")).contains("all of it: results/b.txt"));
        let (glm, tokens) = within(&text, Tokens(300), TokenCounter::new(Some("glm-4.6")), Marks::default()).unwrap();
        assert_eq!(tokens, TokenCounter::new(Some("glm-4.6")).text(&glm));
    }

    #[test]
    fn a_log_keeps_its_ends_and_its_errors() {
        let (short, _) = within(&log(), Tokens(200), counter(), Marks::default()).unwrap();
        assert!(short.starts_with("$ ./serve --port 8080\n"), "{short}");
        assert!(short.ends_with("ERROR: out of memory at request 600\nExit code: 137\n"), "{short}");
    }

    #[test]
    fn the_record_that_is_asked_for_keeps_its_value_and_others_do_not_take_its_room() {
        let user =
            |i: usize| format!("*** {i}. row ***\n  User: node-{}\n  Host: %\n  Max: {}\n", i * 37 % 991, 5_400 + i);
        let lint = |i: usize| format!("src/node-{}.ts\n  {i}:5  warning  Missing type  explicit\n\n", i * 37 % 991);
        let text_of = |record: &dyn Fn(usize) -> String| (0..150).map(record).collect::<String>();
        for (text, asked, value) in [
            (text_of(&user), "What is Max of the user node-119?", "  Max: 5430\n"),
            (text_of(&lint), "What does it say about src/node-119.ts?", "  30:5  warning"),
        ] {
            let question = Question { asked, ..Question::default() };
            let (counter, marks) = (counter(), Marks::default());
            let cut = Cut { text: &text, max_tokens: Tokens(120), counter, marks, question };
            let short = cut.cached().unwrap().0;
            assert!(short.contains(value), "{short}");
        }
    }

    #[test]
    fn the_odd_line_of_a_numbered_file_stays_before_its_ends() {
        let port = |i: usize| {
            let guard = if i == 125 { " no spanning-tree bpduguard enable" } else { " spanning-tree bpduguard enable" };
            format!(
                "interface GigabitEthernet1/0/{i}\n description port {}\n switchport access vlan {}\n switchport mode access\n{guard}\n spanning-tree portfast\n!\n",
                i * 37 % 250,
                10 + i % 4
            )
        };
        let ports: String = (0..250).map(port).collect();
        let lines: Vec<String> = ports.lines().enumerate().map(|(i, line)| format!("{}| {line}\n", i + 1)).collect();
        let text = lines.concat();
        for max_tokens in [400, 1_400].map(Tokens) {
            let (short, _) = within(&text, max_tokens, counter(), Marks::default()).unwrap();
            assert!(short.contains("|  no spanning-tree bpduguard enable\n"), "{short}");
        }
    }

    #[test]
    fn json_stays_json() {
        for max_tokens in [80, 200, 400].map(Tokens) {
            let (short, _) = within(&rows(), max_tokens, counter(), Marks::at(r"C:\results\a.txt")).unwrap();
            let rows: serde_json::Value = serde_json::from_str(&short).unwrap();
            assert!(rows.as_array().is_some_and(|rows| rows.len() > 1), "{short}");
        }
        assert_eq!(within(&rows(), Tokens(5), counter(), Marks::default()), None, "too few tokens for any of it");
    }

    #[test]
    fn records_whose_brackets_cost_more_than_estimated_do_not_all_go() {
        let record = |i: usize| {
            let condition = |kind: &str, value: usize| serde_json::json!({"type": kind, "value": value});
            serde_json::json!({
                "meta": {"id": 1000 + i, "name": format!("svc-{i:05x}"), "labels": {"region": "eu", "owner": "ann"}},
                "status": {"phase": "active", "conditions": [condition("Ready", 1), condition("Cpu", i % 80)]},
            })
        };
        let records: Vec<_> = (0..400).map(record).collect();
        let text = serde_json::to_string_pretty(&serde_json::json!({"items": records})).unwrap();
        for max_tokens in [1_000, 2_000, 4_000, 8_000].map(Tokens) {
            let (_, tokens) = within(&text, max_tokens, counter(), Marks::default()).unwrap();
            assert!(tokens * 10 >= max_tokens * 7, "{tokens} of {max_tokens}");
        }
    }

    #[test]
    fn json_is_json_within_characters_too() {
        let long = format!(r#"{{"a": "{}", "b": [{}]}}"#, "日志".repeat(3_000), "1, ".repeat(3_000) + "1");
        for text in [rows(), long, format!("[{}]", "1".repeat(9_000))] {
            for max_chars in [320, 2_000, 6_000] {
                let short =
                    json_within_chars(&text, max_chars, counter(), Marks::default(), Question::default()).unwrap();
                serde_json::from_str::<serde::de::IgnoredAny>(&short).unwrap();
                assert!(short.chars().count() <= max_chars, "{max_chars}: {short}");
            }
        }
        assert!(
            json_within_chars(&rows(), 6_000, counter(), Marks::default(), Question::default())
                .is_some_and(|short| short.len() > 4_000)
        );
        assert_eq!(json_within_chars(&log(), 2_000, counter(), Marks::default(), Question::default()), None);
    }
}
