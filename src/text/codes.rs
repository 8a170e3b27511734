//! Codes that a question names in part, or in another spelling: "the car ending in F87519", "IMO6274953" of `IMO 6274953`.

use super::analysis::Analysis;
use super::rules::normal;
use super::sentences::QUESTION_BYTES;

/// Fewest letters and digits of such a code, and most codes of a question.
const MIN_LENGTH: usize = 4;
const MOST: usize = 4;

/// A word of a question that may be a code.
#[derive(Debug, PartialEq, Eq)]
pub struct Code<'q> {
    pub word: &'q str,
    /// As [`normal`] has it.
    pub bare: String,
}

/// Returns the words of a question that may be codes: those with a digit, or in capitals.
pub fn codes(question: &str) -> Vec<Code<'_>> {
    if question.len() > QUESTION_BYTES {
        return Vec::new();
    }
    let code = |word| Code { word, bare: normal(word) };
    // "DURUR", where not all is in capitals.
    let has_small = question.contains(char::is_lowercase);
    let is_capital = |c: char| c.is_ascii_uppercase() || !c.is_alphabetic();
    let may_be = |word: &str| word.contains(|c: char| c.is_ascii_digit()) || has_small && word.chars().all(is_capital);
    let is_code = |code: &Code<'_>| code.bare.len() >= MIN_LENGTH && may_be(code.word);
    question.split_whitespace().map(code).filter(is_code).take(MOST).collect()
}

/// Iterates over the parts of a text that have a code; `all` is the text as [`normal`] has it. O(n).
pub fn parts_with<'t>(
    code: &'t str,
    all: &str,
    text: &'t str,
    analysis: &'t Analysis,
) -> impl Iterator<Item = usize> + use<'t> {
    let parts = all.contains(code).then(|| analysis.byte_ranges().enumerate()).into_iter().flatten();
    parts.filter(move |(_, (_, range))| normal(&text[range.clone()]).contains(code)).map(|(part, _)| part)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_has_a_digit_may_be_a_code() {
        let found = |question| codes(question).into_iter().map(|code| code.bare).collect::<Vec<_>>();
        assert_eq!(found("Where is the car ending in F87-519?"), ["f87519"]);
        assert_eq!(found("And IMO6274953, or 3c:dd (not 12)?"), ["imo6274953", "3cdd"]);
        assert_eq!(found("Where is DURUR now?"), ["durur"]);
        assert_eq!(found("WHERE IS IT NOW?"), [""; 0]);
        assert_eq!(found("Where is it?"), [""; 0]);
    }
}
