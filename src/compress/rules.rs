//! Sentences of the user that state a rule: they stay, to the letter.

use std::ops::Range;
use std::sync::LazyLock;

use regex::Regex;

/// Words that make a sentence a rule: those of the plan's list, with the forms that people use for them.
#[allow(clippy::expect_used)] // the pattern is a literal, and a test compiles it
static RULE: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(
        r"(?i)\b(?:never|always|must|mustn't|remember|from now on)\b|(?:^|[.!\n] ?|please )(?:do not|don't)\b|禁止|不要|必须|请记住|以后都|从现在起",
    )
    .expect("the pattern is a literal")
});

/// What makes it a report or a question instead.
#[allow(clippy::expect_used)] // as above
static REPORT: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(r"(?i)\b(?:I|he|she|they|it)(?:'\w+)?\b[^,.;]{0,24}\b(?:never|always|must|remember)\b|[?？]\s*$|[吗呢]")
        .expect("the pattern is a literal")
});

/// Longest sentence that is a rule; longer ones are texts that someone pasted.
const MAX_RULE_BYTES: usize = 400;

/// Returns the sentences of `text` that state a rule. O(n).
pub fn rules(text: &str) -> Vec<Range<usize>> {
    let mut found: Vec<Range<usize>> = Vec::new();
    let mut from = 0;
    while let Some(word) = RULE.find_at(text, from) {
        let start = text[..word.start()].char_indices().rev().find(|&(at, c)| ends(text, at, c));
        let start = start.map_or(0, |(at, c)| at + c.len_utf8());
        let stop = text[word.end()..].char_indices().find(|&(at, c)| ends(text, word.end() + at, c));
        let stop = stop.map_or(text.len(), |(at, c)| word.end() + at + c.len_utf8());
        if stop - start <= MAX_RULE_BYTES && !REPORT.is_match(&text[start..stop]) {
            found.push(start..stop);
        }
        from = stop;
    }
    found
}

/// Returns whether a sentence ends with the character `c` at `at`.
fn ends(text: &str, at: usize, c: char) -> bool {
    match c {
        '\n' | '。' | '！' | '？' | '；' => true,
        '.' | '!' | '?' => text[at + 1..].chars().next().is_none_or(char::is_whitespace),
        _ => false,
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
    fn rules_are_compared_by_their_letters() {
        assert_eq!(normal("Never push, OK?"), normal("never push ok"));
    }
}
