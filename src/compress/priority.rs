//! Rates how much a message matters, by rules alone. Source: document 001, stage six.

use std::sync::LazyLock;

use regex::Regex;

use crate::message::{Content, Message, Part, Role};
use crate::tools::Effect;

/// How much a message matters to what comes later.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Priority {
    /// Mere look-ups: listings, reads, searches.
    Low,
    /// Everything else.
    Normal,
    /// Decisions, constraints, to-dos, standing instructions.
    High,
}

/// Bytes that are searched for keywords: rules are stated early, and a paste must cost no more.
const SEARCHED_BYTES: usize = 16_384;

/// Compiled once; the patterns are literals, and `the_patterns_compile` proves them. Word boundaries are those of ASCII:
/// Chinese has no spaces around words, and Unicode boundaries are ten times slower.
#[allow(clippy::expect_used)]
fn pattern(source: &str) -> Regex {
    Regex::new(source).expect("the pattern is a literal")
}

/// Words that make a message matter. Not cached: the counter reads the same bytes, and a cache would hash them as well.
static KEYWORD: LazyLock<Regex> = LazyLock::new(|| {
    pattern(
        r"(?i)决定|注意|重要|规则|约束|不要|必须|请记住|以后都|禁止|(?-u:\b)(?:todo|decide[sd]?|important|constraints?|must|remember|rules?)(?-u:\b)",
    )
});

static ASSISTANT_KEYWORD: LazyLock<Regex> = LazyLock::new(|| {
    pattern(r"(?i)决定|架构|约束|(?-u:\b)(?:todo|decide[sd]?|decision|architecture|constraints?)(?-u:\b)")
});

/// Returns how much `message` matters; `effect` is that of the call it answers. O(1) in its length.
///
/// The effect comes before words: the source of a look-up is still there, whatever it says.
pub fn classify(message: &Message<'_>, effect: Effect) -> Priority {
    match message.role {
        Role::System => Priority::High,
        Role::User => by_keyword(message, &KEYWORD),
        Role::Assistant => by_keyword(message, &ASSISTANT_KEYWORD),
        Role::Tool | Role::Function => {
            match effect {
                Effect::ReadsFile | Effect::LooksUp => Priority::Low,
                // The words of a file do not count.
                Effect::WritesFile | Effect::EditsFile => Priority::Normal,
                _ => by_keyword(message, &KEYWORD),
            }
        }
    }
}

fn by_keyword(message: &Message<'_>, keyword: &Regex) -> Priority {
    let has = |text: &str| keyword.is_match(&text[..text.floor_char_boundary(SEARCHED_BYTES)]);
    let found = match &message.content {
        Content::Empty => false,
        Content::Text(text) => has(text.as_str()),
        Content::Parts(parts) => parts.iter().any(|part| matches!(part, Part::Text(text) if has(text.as_str()))),
    };
    if found { Priority::High } else { Priority::Normal }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn result(content: &'static str) -> Message<'static> {
        Message::new(Role::Tool, content)
    }

    #[test]
    fn the_patterns_compile() {
        for pattern in [&KEYWORD, &ASSISTANT_KEYWORD] {
            LazyLock::force(pattern);
        }
    }

    #[test]
    fn messages_are_classified_as_document_001_says() {
        let exec = |command: &str| Effect::of_call("exec", &serde_json::json!({ "command": command }).to_string());
        let none = Effect::Unknown;
        let cases = [
            (result("# TODO: this must stay"), Effect::ReadsFile, Priority::Low),
            (result("a.py b.py"), Effect::LooksUp, Priority::Low),
            (result("a.py must.py"), exec("ls -la"), Priority::Low),
            (result("a.py must.py"), exec("tree src"), Priority::Low),
            (result("a.py b.py"), exec("lsx -i"), Priority::Normal),
            (result("done"), exec("make"), Priority::Normal),
            (result("重要：备份失败"), exec("make"), Priority::High),
            (result("重要：备份失败"), exec("find . -delete"), Priority::High),
            (result("重要：备份失败"), exec("cat a > b"), Priority::High),
            (result("must"), Effect::WritesFile, Priority::Normal),
            (Message::new(Role::User, "请记住以后都用 TypeScript"), none, Priority::High),
            (Message::new(Role::User, "You must not touch main."), none, Priority::High),
            (Message::new(Role::User, "a mustard recipe, please"), none, Priority::Normal),
            (Message::new(Role::Assistant, "We decided on SQLite."), none, Priority::High),
            (Message::new(Role::Assistant, "Here you are."), none, Priority::Normal),
            (Message::empty(Role::Assistant), none, Priority::Normal),
        ];
        for (message, effect, priority) in cases {
            assert_eq!(classify(&message, effect), priority, "{message:?}");
        }
    }
}
