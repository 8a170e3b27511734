//! Finds short answers of the user, which say nothing without what the model said before them: a question, or what it offers.

use std::ops::Range;

use super::claim::is_asked;
use super::typed::typed;
use super::{Claim, Said};
use crate::text::bytes::lines;
use crate::text::sentences::sentences;

/// Most bytes of an answer, and of a question.
const MAX_ANSWER_BYTES: usize = 80;
const MAX_QUESTION_BYTES: usize = 240;

/// Sentences at the end of a message among which a question is one: "Postgres or SQLite? Both would do."
const LAST_SENTENCES: usize = 2;

impl Said {
    /// Makes all of `text` one sentence, if it is short; what claims nothing else is an answer. Returns whether it is short.
    pub fn answer(&mut self, text: &str) -> bool {
        if self.typed_bytes > MAX_ANSWER_BYTES {
            return false;
        }
        let mut typed = typed(text);
        let Some(first) = typed.next() else { return false };
        let end = typed.last().map_or(first.end, |last| last.end);
        let claim = self.claims.iter().map(|(claim, _)| *claim).max();
        let whole = first.start..first.start + text[first.start..end].trim_end().len();
        self.claims = vec![(claim.unwrap_or(Claim::Answer).max(Claim::Answer), whole)];
        true
    }
}

/// Returns what a short answer is to in a text of the model before it: the item that it chooses, else the question at its end. O(n).
pub fn answered_in(text: &str, answer: &str) -> Option<Range<usize>> {
    chosen(answer).and_then(|choice| item(text, choice)).or_else(|| question_in(text))
}

/// An item of a list, as it is chosen.
#[derive(Clone, Copy)]
enum Choice {
    Labelled(Label),
    /// By its place, from 1 on; 0 is the last.
    Place(usize),
}

/// What stands before an item.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Label {
    Bullet,
    Number(u8),
    Letter(u8),
}

impl Label {
    /// Returns the label that `word` is: at most two digits, or a letter.
    fn of(word: &str) -> Option<Self> {
        match *word.as_bytes() {
            [letter] if letter.is_ascii_alphabetic() => Some(Self::Letter(letter.to_ascii_lowercase())),
            [_] | [_, _] => word.parse().ok().map(Self::Number),
            _ => None,
        }
    }

    /// Returns the label of a line that is an item of a list: `2.`, `**b)`, `(3)`, `-`.
    fn of_line(line: &str) -> Option<Self> {
        let bare = line.trim_start();
        if ["- ", "* ", "• ", "– "].iter().any(|mark| bare.starts_with(mark)) {
            return Some(Self::Bullet);
        }
        let bare = bare.trim_start_matches(['*', '(']);
        let end = bare.find(|c: char| !c.is_ascii_alphanumeric())?;
        Self::of(&bare[..end]).filter(|_| bare[end..].starts_with(['.', ')', ':', '、']))
    }
}

/// Most bytes and words of an answer that chooses; with a letter, which may be a word.
const MAX_CHOICE_BYTES: usize = 48;
const MAX_CHOICE_WORDS: usize = 5;
const MAX_LETTER_WORDS: usize = 2;

/// Starts of words for places, and words of scripts without spaces; by place, the last first.
const PLACES: [&[&str]; 6] = [
    &[
        "last",
        "letzte",
        "dernier",
        "dernière",
        "último",
        "última",
        "ultimo",
        "ultima",
        "последн",
        "最后",
        "最後",
        "الأخير",
    ],
    &[
        "first",
        "1st",
        "erste",
        "premier",
        "première",
        "primer",
        "primeir",
        "primo",
        "prima",
        "перв",
        "第一",
        "第1",
        "1番",
        "الأول",
        "첫",
    ],
    &["second", "2nd", "zweite", "deuxième", "segund", "втор", "第二", "第2", "2番", "الثاني", "두 번째"],
    &[
        "third",
        "3rd",
        "dritte",
        "troisième",
        "tercer",
        "terceir",
        "terz",
        "трет",
        "第三",
        "第3",
        "3番",
        "الثالث",
        "세 번째",
    ],
    &["fourth", "4th", "vierte", "quatrième", "cuart", "quart", "четв", "第四", "第4", "4番", "الرابع", "네 번째"],
    &["fifth", "5th", "fünfte", "cinquième", "quint", "пят", "第五", "第5", "5番", "الخامس", "다섯 번째"],
];

/// Returns what a short answer chooses: "2", "b)", "The second one.", "Nummer 3 bitte.", "第二个".
fn chosen(answer: &str) -> Option<Choice> {
    let said = answer.trim();
    if said.len() > MAX_CHOICE_BYTES {
        return None;
    }
    let lower = said.to_lowercase();
    let words: Vec<&str> = lower.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty()).collect();
    if words.len() > MAX_CHOICE_WORDS {
        return None;
    }
    let is_at = |place: &&str| {
        let is_word = |word: &&str| word.starts_with(place);
        words.iter().any(is_word) || !place.is_ascii() && lower.contains(place)
    };
    if let Some(place) = PLACES.iter().position(|places| places.iter().any(is_at)) {
        return Some(Choice::Place(place));
    }
    let is_few = words.len() <= MAX_LETTER_WORDS;
    let labels = words.iter().filter_map(|word| Label::of(word));
    labels.filter(|label| is_few || matches!(label, Label::Number(_))).map(Choice::Labelled).next()
}

/// Returns the item of a text that is chosen, at most [`MAX_QUESTION_BYTES`]; by its place in the last list with labels, else in the
/// last one. O(n).
fn item(text: &str, choice: Choice) -> Option<Range<usize>> {
    let mut lists: Vec<Vec<(Label, Range<usize>)>> = Vec::new();
    let (mut at, mut goes_on) = (0, false);
    for line in lines(text) {
        let range = at..at + line.trim_end().len();
        at += line.len();
        match Label::of_line(line) {
            Some(label) => {
                if !goes_on {
                    lists.push(Vec::new());
                }
                lists.last_mut()?.push((label, range));
                goes_on = true;
            }
            // What is indented belongs to the item before it.
            None => goes_on &= line.trim().is_empty() || line.starts_with([' ', '\t']),
        }
    }
    let found = match choice {
        Choice::Labelled(wanted) => {
            let found = lists.iter().rev().flatten().find(|(label, _)| *label == wanted);
            found.map(|(_, item)| item.clone()).or_else(|| within(text, wanted))
        }
        Choice::Place(place) => {
            let is_labelled =
                |list: &&Vec<(Label, Range<usize>)>| list.iter().any(|(label, _)| *label != Label::Bullet);
            let list = lists.iter().rev().find(is_labelled).or(lists.last())?;
            list.get(place.checked_sub(1).unwrap_or(list.len() - 1)).map(|(_, item)| item.clone())
        }
    }?;
    Some(found.start..text.floor_char_boundary(found.end.min(found.start + MAX_QUESTION_BYTES)))
}

/// Returns the item with a letter within a line: "either (a) print ads or (b) influencers".
fn within(text: &str, wanted: Label) -> Option<Range<usize>> {
    let Label::Letter(letter) = wanted else { return None };
    let lower = text.to_ascii_lowercase();
    let find = |letter: u8, from: usize| {
        let letter = char::from(letter);
        let marked = [format!("({letter})"), format!(" {letter}) ")];
        marked.iter().find_map(|mark| Some(from + lower[from..].find(mark)?))
    };
    let start = find(letter, 0)?;
    let line = text[start..].find('\n').map_or(text.len(), |end| start + end);
    Some(start..find(letter + 1, start).map_or(line, |next| next.min(line)))
}

/// Returns the question at the end of a text of the model, with what stands behind it. O(n).
fn question_in(text: &str) -> Option<Range<usize>> {
    let start = text.floor_char_boundary(text.len().saturating_sub(MAX_QUESTION_BYTES));
    let is_said = |at: &Range<usize>| !text[at.clone()].trim().is_empty();
    let last: Vec<Range<usize>> =
        sentences(&text[start..]).map(|at| start + at.start..start + at.end).filter(is_said).collect();
    let mut last = last.iter().rev().take(LAST_SENTENCES);
    let asked = last.find(|at| {
        is_asked(text[(*at).clone()].trim_end_matches(|c: char| c.is_whitespace() || "*_\"')".contains(c)))
    })?;
    Some(asked.start..text.trim_end().len())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::text::rules::said;

    #[test]
    fn a_question_ends_a_message_perhaps_with_a_sentence_behind_it() {
        for (text, asked) in [
            ("I read it. Which database should I use?", Some("Which database should I use?")),
            ("Done. **Shall I go on?**\n", Some("**Shall I go on?**")),
            ("Postgres or SQLite? Both would do.", Some("Postgres or SQLite? Both would do.")),
            ("好了。要删掉旧的吗？", Some("要删掉旧的吗？")),
            ("Why is it slow? It has no index. I added one.", None),
            ("", None),
        ] {
            assert_eq!(question_in(text).map(|at| text[at].trim()), asked, "{text}");
        }
    }

    #[test]
    fn an_answer_that_chooses_comes_with_the_item() {
        let list = "Three names:\n\n1. **Kestrel**: short\n2. The customs officer\n   who lies\n10. Heron\n\nAll are free. Which one?";
        let bullets = "You could:\n- take the train\n- fly\n\nBoth take a day.";
        let letters = "Either (a) print ads, (b) influencers or (c) a fair.\nThe rest can wait.";
        for (text, answer, item) in [
            (list, "The second one.", Some("2. The customs officer")),
            (list, "2", Some("2. The customs officer")),
            (list, "Nummer 10 bitte.", Some("10. Heron")),
            (list, "the last", Some("10. Heron")),
            (list, "第一个", Some("1. **Kestrel**: short")),
            (list, "Kestrel", Some("Which one?")),
            (list, "24 minutes", Some("Which one?")),
            (bullets, "Le deuxième.", Some("- fly")),
            (bullets, "The third one", None),
            (bullets, "A train at nine, please, and no flight before the second of May", None),
            (letters, "b", Some("(b) influencers or")),
            (letters, "option c", Some("(c) a fair.")),
            (letters, "a good idea, that", None),
        ] {
            let found = answered_in(text, answer).map(|at| text[at].trim());
            assert_eq!(found, item, "{answer}");
        }
    }

    #[test]
    fn a_short_text_is_an_answer_as_a_whole() {
        for (text, claim) in [
            ("Postgres.", Some(Claim::Answer)),
            ("Yes, keep it. Thanks", Some(Claim::Answer)),
            ("B", Some(Claim::Answer)),
            ("Never push to main. Thanks", Some(Claim::Rule)),
            ("> quoted", None),
            ("Fine, but that is more than a few words, and nobody would take all of it for an answer.", None),
        ] {
            let mut said = said(text);
            assert_eq!(said.answer(text), claim.is_some(), "{text}");
            if let Some(claim) = claim {
                assert_eq!(said.claims, [(claim, 0..text.len())], "{text}");
            }
        }
    }
}
