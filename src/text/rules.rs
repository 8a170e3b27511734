//! Sentences of the user that state a rule: they stay, to the letter.

use std::ops::Range;
use std::sync::LazyLock;

use super::bytes::{Filter, hash_of_name, is_word, word};

/// What makes a sentence a rule.
#[derive(Debug, Clone, Copy)]
enum Sign {
    /// The word, unless it is told of somebody: "I never said that".
    Word,
    /// The word with one of these behind it.
    With(&'static [&'static str]),
    /// Likewise, where the sentence begins with it.
    First(&'static [&'static str]),
    /// The word as the heading of what follows it: "Rule for all answers: no tables".
    Heading,
    /// One of [`CHINESE`].
    Chinese,
}

const ANSWER: Sign = Sign::With(&[" answer", " reply", " response"]);

/// Words of the plan's list, with the forms that people use for them.
const WORDS: [(&str, Sign); 14] = [
    ("never", Sign::Word),
    ("always", Sign::Word),
    ("must", Sign::Word),
    ("remember", Sign::Word),
    ("mustn", Sign::With(&["'t"])),
    ("from", Sign::With(&[" now on"])),
    ("please", Sign::With(&[" do not", " don't"])),
    ("every", ANSWER),
    ("each", ANSWER),
    ("whole", Sign::With(&[" conversation"])),
    ("do", Sign::First(&[" not"])),
    ("don", Sign::First(&["'t"])),
    ("rule", Sign::Heading),
    ("rules", Sign::Heading),
];

/// The same in Chinese, which has no words between spaces.
const CHINESE: [&str; 9] = ["禁止", "不要", "必须", "请记住", "以后都", "从现在起", "规则：", "每次回答", "每次回复"];

/// Tells most other words from [`WORDS`].
static KNOWN: LazyLock<Filter<64>> = LazyLock::new(|| Filter::of(WORDS.map(|(word, _)| hash_of_name(word.as_bytes()))));

/// Who is told of, and the most characters between them and what they did.
const PRONOUNS: [&str; 5] = ["i", "he", "she", "they", "it"];
const MAX_TOLD_CHARS: usize = 24;

/// Most characters of a heading that say what its rule is for.
const MAX_HEADING_CHARS: usize = 40;

/// Longest sentence that is a rule; longer ones are texts that someone pasted.
const MAX_RULE_BYTES: usize = 400;

/// Returns the sentences of `text` that state a rule. O(n).
pub fn rules(text: &str) -> Vec<Range<usize>> {
    let mut rules = Vec::new();
    let mut behind = 0;
    for (at, _) in signs(text) {
        if at >= behind {
            let sentence = sentence_at(text, behind, at);
            behind = sentence.end;
            if states_rule(&text[sentence.clone()]) {
                rules.push(sentence);
            }
        }
    }
    rules
}

fn states_rule(sentence: &str) -> bool {
    if sentence.len() > MAX_RULE_BYTES {
        return false;
    }
    let mut is_rule = false;
    for (at, sign) in signs(sentence) {
        let before = &sentence[..at];
        match sign {
            Sign::Word if is_told(before) => return false,
            Sign::First(_) => is_rule |= before.chars().all(|c| c.is_whitespace() || matches!(c, '*' | '•' | '-')),
            _ => is_rule = true,
        }
    }
    is_rule && !sentence.trim_end().ends_with(['?', '？']) && !sentence.contains(['吗', '呢'])
}

/// Returns whether a word behind `before` tells what somebody does: "she says they never".
fn is_told(before: &str) -> bool {
    let mut rest = before.rsplit([',', '.', ';']).next().unwrap_or(before);
    while !rest.is_empty() {
        let end = word(rest.as_bytes(), 0).end;
        let (word, behind) = rest.split_at(end);
        if PRONOUNS.iter().any(|pronoun| word.eq_ignore_ascii_case(pronoun)) {
            // "they've"
            let short =
                behind.strip_prefix('\'').map(|short| short.trim_start_matches(|c: char| c.is_ascii_alphabetic()));
            if short.unwrap_or(behind).chars().count() <= MAX_TOLD_CHARS {
                return true;
            }
        }
        rest = behind.char_indices().nth(1).map_or("", |(next, _)| &behind[next..]);
    }
    false
}

/// Returns where in `text` there is a sign of a rule, and which. O(n).
fn signs(text: &str) -> impl Iterator<Item = (usize, Sign)> {
    let (bytes, known) = (text.as_bytes(), &*KNOWN);
    let mut at = 0;
    std::iter::from_fn(move || {
        while at < bytes.len() {
            let start = at;
            if !bytes[start].is_ascii() {
                at += 1;
                if CHINESE.iter().any(|sign| bytes[start..].starts_with(sign.as_bytes())) {
                    return Some((start, Sign::Chinese));
                }
                continue;
            }
            let read = word(bytes, start);
            // The byte behind a word begins none.
            at = read.end + usize::from(bytes.get(read.end).is_some_and(u8::is_ascii));
            if known.may_have(read.hash)
                && let Some(sign) = sign(&text[start..read.end], &text[read.end..])
            {
                return Some((start, sign));
            }
        }
        None
    })
}

/// Returns what sign of a rule a word is, before the text `behind` it.
fn sign(word: &str, behind: &str) -> Option<Sign> {
    let (_, sign) = WORDS.into_iter().find(|(known, _)| word.eq_ignore_ascii_case(known))?;
    let is_sign = match sign {
        Sign::With(ways) | Sign::First(ways) => ways.iter().any(|way| goes_on(behind, way)),
        Sign::Heading => is_heading(behind),
        Sign::Word | Sign::Chinese => true,
    };
    is_sign.then_some(sign)
}

/// Returns whether a text begins with words.
fn goes_on(text: &str, words: &str) -> bool {
    behind(text, words).is_some_and(|rest| !rest.as_bytes().first().is_some_and(|&byte| is_word(byte)))
}

/// Returns what stands behind the words that a text begins with, in any case.
fn behind<'t>(text: &'t str, words: &str) -> Option<&'t str> {
    let (start, rest) = text.split_at_checked(words.len())?;
    start.eq_ignore_ascii_case(words).then_some(rest)
}

/// Returns whether what stands behind "rule" makes it a heading, with something behind that on its line.
fn is_heading(text: &str) -> bool {
    let said = match behind(text, " for ") {
        Some(what) => {
            let mut near = what.char_indices().take(MAX_HEADING_CHARS + 1);
            near.find(|(_, c)| *c == ':').filter(|(at, _)| *at > 0).map(|(at, _)| &what[at + 1..])
        }
        None => text.strip_prefix(':'),
    };
    said.is_some_and(|said| said.trim_start_matches([' ', '\t']).starts_with(|c: char| !c.is_whitespace()))
}

/// Returns the sentence of `text` around `at`, where one begins at `from`. O(n) in it and what is between.
fn sentence_at(text: &str, from: usize, at: usize) -> Range<usize> {
    let start = (from..at).rev().find_map(|before| stop(text, before).filter(|&stop| stop <= at));
    start.unwrap_or(from)..(at..text.len()).find_map(|behind| stop(text, behind)).unwrap_or(text.len())
}

/// Returns the sentences of `text`, with what ends them; a line ends one too. O(n).
pub fn sentences(text: &str) -> impl Iterator<Item = Range<usize>> {
    let mut start = 0;
    let stops = (0..text.len()).filter_map(|at| stop(text, at));
    stops.chain([text.len()]).map(move |stop| std::mem::replace(&mut start, stop)..stop)
}

/// Returns where a sentence ends whose last character is at `at`.
fn stop(text: &str, at: usize) -> Option<usize> {
    let bytes = text.as_bytes();
    match bytes[at] {
        b'\n' => Some(at + 1),
        b'.' | b'!' | b'?' => text[at + 1..].chars().next().is_none_or(char::is_whitespace).then_some(at + 1),
        // 。 ！ ？ ；
        0xe3 | 0xef => {
            matches!(bytes[at..], [0xe3, 0x80, 0x82, ..] | [0xef, 0xbc, 0x81 | 0x9f | 0x9b, ..]).then_some(at + 3)
        }
        _ => None,
    }
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
    fn a_text_without_an_end_is_read_once() {
        for word in ["rule for ", "rule: ", "must ", "he must ", "不要"] {
            assert_eq!(found(&word.repeat(1 << 17)), Vec::<&str>::new(), "{word}");
        }
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
            "They've never asked.",
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
        for told_of_nobody_near in ["If they ask, never push.", "When it is done with all of the tests, you must push."]
        {
            assert_eq!(found(told_of_nobody_near), [told_of_nobody_near]);
        }
        assert_eq!(
            found("When it is done with all of the tests you must push."),
            ["When it is done with all of the tests you must push."]
        );
        let (heading, long) = (format!("Rule for {}: be brief", "x".repeat(40)), "x".repeat(41));
        assert_eq!(found(&heading), [&heading]);
        for none in [format!("Rule for {long}: be brief"), "Rule for : be brief".to_owned(), "Rules: ".to_owned()] {
            assert_eq!(found(&none), Vec::<&str>::new());
        }
        assert_eq!(found("1. Look\n- don't push\n* Do not rebase"), ["- don't push", "* Do not rebase"]);
    }
}
