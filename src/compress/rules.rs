//! Sentences of the user that state a rule: they stay, to the letter.

use std::ops::Range;
use std::sync::LazyLock;

use regex::Regex;

use super::bytes::{Filter, hash_of_name, word};

/// Words that make a sentence a rule: those of the plan's list, with the forms that people use for them.
const RULE: &str = r"(?i)(?-u:\b)(?:never|always|must|mustn't|remember|from now on|please (?:do not|don't)|(?:every|each) (?:answer|reply|response)|whole conversation)(?-u:\b)|(?-u:\b)rules?(?: for [^:]{1,40})?:[ \t]*\S|^[\s*•-]*(?:do not|don't)(?-u:\b)|禁止|不要|必须|请记住|以后都|从现在起|规则：|每次回[答复]";

/// What makes it a report or a question instead.
const REPORT: &str = r"(?i)(?-u:\b)(?:I|he|she|they|it)(?:'[a-z]+)?(?-u:\b)[^,.;]{0,24}(?-u:\b)(?:never|always|must|remember)(?-u:\b)|[?？]\s*$|[吗呢]";

/// Both patterns, compiled by the first text of a user: to compile them takes as long as 2,000 sentences.
#[allow(clippy::expect_used)] // the patterns are literals, and a test compiles them
static PATTERNS: LazyLock<[Regex; 2]> =
    LazyLock::new(|| [RULE, REPORT].map(|pattern| Regex::new(pattern).expect("the pattern is a literal")));

/// Longest sentence that is a rule; longer ones are texts that someone pasted.
const MAX_RULE_BYTES: usize = 400;

/// Returns the sentences of `text` that state a rule. O(n).
pub fn rules(text: &str) -> Vec<Range<usize>> {
    let mut openings = openings(text).peekable();
    if openings.peek().is_none() && text.is_ascii() {
        return Vec::new();
    }
    let [rule, report] = &*PATTERNS;
    let is_rule = |at: &Range<usize>| {
        let sentence = &text[at.clone()];
        while openings.next_if(|&opening| opening < at.start).is_some() {}
        sentence.len() <= MAX_RULE_BYTES
            && (openings.peek().is_some_and(|&opening| opening < at.end) || has_other_opening(sentence))
            && rule.is_match(sentence)
            && !report.is_match(sentence)
    };
    sentences(text).filter(is_rule).collect()
}

/// Returns the sentences of `text`, with what ends them; a line ends one too. O(n).
pub fn sentences(text: &str) -> impl Iterator<Item = Range<usize>> {
    let bytes = text.as_bytes();
    let stops = (0..bytes.len()).filter_map(move |at| match bytes[at] {
        b'\n' => Some(at + 1),
        b'.' | b'!' | b'?' => text[at + 1..].chars().next().is_none_or(char::is_whitespace).then_some(at + 1),
        // 。 ！ ？ ；
        0xe3 | 0xef => {
            matches!(bytes[at..], [0xe3, 0x80, 0x82, ..] | [0xef, 0xbc, 0x81 | 0x9f | 0x9b, ..]).then_some(at + 3)
        }
        _ => None,
    });
    let mut start = 0;
    stops.chain([text.len()]).map(move |stop| std::mem::replace(&mut start, stop)..stop)
}

/// Words of [`RULE`], each with the ways in which it goes on; any way where there is none.
const OPENINGS: [(&str, &[&str]); 14] = [
    ("never", &[]),
    ("always", &[]),
    ("must", &[]),
    ("mustn", &[]),
    ("remember", &[]),
    ("rule", &[]),
    ("rules", &[]),
    ("from", &[" now on"]),
    ("please", &[" do"]),
    ("every", &[" answer", " reply", " response"]),
    ("each", &[" answer", " reply", " response"]),
    ("whole", &[" conversation"]),
    ("do", &[" not"]),
    ("don", &["'t"]),
];

/// Tells most other words from [`OPENINGS`].
static OPENING: LazyLock<Filter<64>> =
    LazyLock::new(|| Filter::of(OPENINGS.map(|(word, _)| hash_of_name(word.as_bytes()))));

/// Returns where words of [`RULE`] stand in a text, so that most sentences need no more than this look.
fn openings(text: &str) -> impl Iterator<Item = usize> {
    let bytes = text.as_bytes();
    let starts = move |at: usize, start: &str| {
        bytes.get(at..at + start.len()).is_some_and(|bytes| bytes.eq_ignore_ascii_case(start.as_bytes()))
    };
    let opens = move |at: usize, end: usize| {
        OPENINGS.iter().any(|(word, ways)| {
            word.len() == end - at && starts(at, word) && (ways.is_empty() || ways.iter().any(|way| starts(end, way)))
        })
    };
    let known = &*OPENING;
    let mut at = 0;
    std::iter::from_fn(move || {
        while at < bytes.len() {
            let (start, read) = (at, word(bytes, at));
            at = read.end + 1;
            if known.may_have(read.hash) && opens(start, read.end) {
                return Some(start);
            }
        }
        None
    })
}

/// Returns whether there is something of [`RULE`] in a sentence that is no word of ASCII; `ſ` is an `s` where case is
/// ignored.
fn has_other_opening(sentence: &str) -> bool {
    let others = ["禁止", "不要", "必须", "请记住", "以后都", "从现在起", "规则", "每次回", "ſ"];
    !sentence.is_ascii() && others.iter().any(|other| sentence.contains(other))
}

/// Returns a rule as it is compared with others: letters and digits only, in lower case.
pub fn normal(rule: &str) -> String {
    rule.chars().filter(|c| c.is_alphanumeric()).flat_map(char::to_lowercase).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(text: &str) -> Vec<&str> {
        rules(text).into_iter().map(|range| text[range].trim()).collect()
    }

    #[test]
    fn sentences_that_state_a_rule_are_found_whole() {
        assert_eq!(found("Hi. Never push to main! Look at a.b now."), ["Never push to main!"]);
        assert_eq!(found("你好。以后都用中文回答。今天天气不错"), ["以后都用中文回答。"]);
        assert_eq!(found("Use v1.2, and you must not touch\nthe rest"), ["Use v1.2, and you must not touch"]);
        for text in ["a mustard recipe", "I never said that.", "Do you remember it?", "你记得必须做什么吗？"]
        {
            assert_eq!(found(text), Vec::<&str>::new(), "{text}");
        }
        assert_eq!(found(&format!("always {}", "x".repeat(900))), Vec::<&str>::new());
    }

    #[test]
    fn rules_are_compared_by_their_letters() {
        assert_eq!(normal("Never push, OK?"), normal("never push ok"));
    }

    #[test]
    fn a_rule_is_no_more_than_its_sentence() {
        for (text, rule) in [
            ("Fine. Do not touch main. Thanks.", "Do not touch main."),
            ("Notes\nDon't use tabs\nBye", "Don't use tabs"),
            ("Great! Please don't rename files! OK", "Please don't rename files!"),
            ("From now on, reply in French. Look at a.b.", "From now on, reply in French."),
            ("看日志。禁止删除数据；谢谢", "禁止删除数据；"),
            ("先看看\n请记住：端口是 8080\n再说", "请记住：端口是 8080"),
            ("你好！从现在起不要自动提交。", "从现在起不要自动提交。"),
        ] {
            assert_eq!(found(text), [rule], "{text}");
        }
    }

    #[test]
    fn what_is_told_or_asked_is_no_rule() {
        for text in [
            "The build is green.",
            "She said they must leave.",
            "Why does it never finish?",
            "I don't know what it does.",
            "今天的报告写好了。",
            "为什么不要缓存呢",
        ] {
            assert_eq!(found(text), Vec::<&str>::new(), "{text}");
        }
    }

    #[test]
    fn every_rule_of_a_text_is_found_once() {
        let text = "Always test. Hello.\nNever push. You must, must rebase.";
        assert_eq!(found(text), ["Always test.", "Never push.", "You must, must rebase."]);
        let list = "Rules:\nDon't push\nDo not rebase\nDon't squash. Don't ask! Please do not merge.";
        let rules = ["Don't push", "Do not rebase", "Don't squash.", "Don't ask!", "Please do not merge."];
        assert_eq!(found(list), rules);
        assert_eq!(found("I never said that. Don't push."), ["Don't push."]);
        assert_eq!(
            found("Rule for the whole conversation: end with X-1.\nGo."),
            ["Rule for the whole conversation: end with X-1."]
        );
        assert_eq!(found("规则：每次回答都要简短。好"), ["规则：每次回答都要简短。"]);
        assert_eq!(found("The rules are in a.md. See each file."), Vec::<&str>::new());
        assert_eq!(found("1. Look\n- don't push\n* Do not rebase"), ["- don't push", "* Do not rebase"]);
    }
}
