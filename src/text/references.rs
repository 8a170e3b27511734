//! Finds what a user points to in what the model said, by its place or form: "the second one", "plan B", "your table".

mod days;
mod lists;
mod rows;
mod sections;
mod shapes;
mod words;

use std::ops::Range;

use crate::text::sentences::QUESTION_BYTES;
pub use days::{days_meant, today_in};
use lists::{Choice, Label};
pub use rows::RowReference;
use sections::Section;
use words::{Shape, Sign, WORDS};

/// Most bytes and words of an answer that chooses; with a letter, which may be a word.
const MAX_CHOICE_BYTES: usize = 48;
const MAX_CHOICE_WORDS: usize = 5;
const MAX_LETTER_WORDS: usize = 2;

/// What a question points to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reference {
    /// The sections that it may name by their numbers; with these it points to nothing else.
    sections: Vec<Section>,
    choice: Option<Choice>,
    shape: Option<Shape>,
}

impl Reference {
    /// Returns what a question points to: "Let's take the second option.", "Show me the table from before." O(n).
    pub fn of(question: &str) -> Option<Self> {
        if question.len() > QUESTION_BYTES {
            return None;
        }
        let lower = question.to_lowercase();
        let words: Vec<&str> = split(&lower).collect();
        let has = |word: &str, wanted: Sign| WORDS.of_word(word).any(|sign| sign == wanted);
        let mut this = Self { sections: Section::named(&lower), choice: None, shape: None };
        for (i, word) in words.iter().enumerate() {
            let next = words.get(i + 1).copied().unwrap_or_default();
            // "First, read it.", "last week".
            let is_place = || !has(next, Sign::Span) && !lower.contains(&format!("{word},"));
            for sign in WORDS.of_word(word).filter(|sign| !matches!(sign, Sign::Place(_)) || is_place()) {
                this.add(sign, || Label::of(next));
            }
        }
        for (at, sign) in WORDS.wide_in(&lower) {
            this.add(sign, || Label::at_start(&lower[at.end..]));
        }
        (this.names_section() || this.points()).then_some(this)
    }

    /// Returns whether it points to something by its place or form.
    fn points(&self) -> bool {
        self.choice.is_some() || self.shape.is_some()
    }

    /// Returns what `search` finds for its sections, or for what else it points to where a conversation has none of these.
    pub fn first_found<T>(&self, search: impl Fn(&Self) -> Option<T>) -> Option<T> {
        search(self).or_else(|| search(&self.without_sections()?))
    }

    fn without_sections(&self) -> Option<Self> {
        let Self { choice, shape, .. } = *self;
        (self.names_section() && self.points()).then_some(Self { sections: Vec::new(), choice, shape })
    }

    /// Returns whether it names a section, which the user may have written, too.
    pub fn names_section(&self) -> bool {
        !self.sections.is_empty()
    }

    /// Adds what a word says, and the `label` behind it; of several the first counts.
    fn add(&mut self, sign: Sign, label: impl Fn() -> Option<Label>) {
        match sign {
            Sign::Place(place) => self.choice = self.choice.or(Some(Choice::Place(place))),
            Sign::Item => self.choice = self.choice.or_else(|| label().map(Choice::Labelled)),
            Sign::Shape(shape) => self.shape = self.shape.or(Some(shape)),
            _ => {}
        }
    }

    /// Returns what is meant in a text, the most wanted of it first: the item and its list, or the last thing of that shape. O(n).
    pub fn find(&self, text: &str) -> Vec<Range<usize>> {
        if self.names_section() {
            return self.sections.iter().find_map(|section| section.find(text)).into_iter().collect();
        }
        match (self.shape, self.choice) {
            (None | Some(Shape::List), Some(choice)) => {
                lists::items(text, choice).map(|(item, list)| vec![item, list]).unwrap_or_default()
            }
            (Some(Shape::List), None) => lists::last(text).into_iter().collect(),
            (Some(shape), _) => shapes::last(text, shape).into_iter().collect(),
            (None, None) => Vec::new(),
        }
    }
}

/// Returns the item of a text that a short answer chooses: "2", "b)", "The second one.", "Nummer 3 bitte.", "第二个". O(n).
pub fn chosen_in(text: &str, answer: &str) -> Option<Range<usize>> {
    Some(lists::items(text, chosen(answer)?)?.0)
}

/// Returns whether an answer chooses one of two, however these stand: "the latter", "B", but not "Tell me about part 3."
pub fn chooses(answer: &str) -> bool {
    let is_few = || answer.split_whitespace().count() <= MAX_LETTER_WORDS;
    chosen(answer).is_some_and(|choice| match choice {
        Choice::Place(_) => true,
        Choice::Labelled(label) => matches!(label, Label::Number(1 | 2) | Label::Letter(b'a' | b'b')) && is_few(),
    })
}

/// What turns a choice: the one behind it holds.
const TURNS: [&str; 17] = [
    "wait",
    "no",
    "actually",
    "rather",
    "instead",
    "doch",
    "lieber",
    "nein",
    "espera",
    "mejor",
    "attends",
    "plutôt",
    "等等",
    "还是",
    "不对",
    "いや",
    "やっぱり",
];

fn chosen(answer: &str) -> Option<Choice> {
    let said = answer.trim();
    if said.len() > MAX_CHOICE_BYTES {
        return None;
    }
    let lower = said.to_lowercase();
    let words: Vec<&str> = split(&lower).collect();
    // "B. Love it."
    let is_first = words.first().is_some_and(|first| {
        Label::of(first).is_some()
            && lower.strip_prefix(first).is_some_and(|behind| behind.starts_with(['.', ',', ':', ')', '!']))
    });
    if words.len() > if is_first { 2 * MAX_CHOICE_WORDS } else { MAX_CHOICE_WORDS } {
        return None;
    }
    let is_few = words.len() <= MAX_LETTER_WORDS;
    let place = |sign| if let Sign::Place(place) = sign { Some(Choice::Place(place)) } else { None };
    // "B. Wait. C, B is too neat": what comes behind the last turn.
    let turn =
        words.iter().rposition(|word| TURNS.iter().any(|turn| word == turn || !turn.is_ascii() && word.contains(turn)));
    let is_item = |word: &str| WORDS.of_word(word).any(|sign| sign == Sign::Item);
    let label = |at: usize| {
        let is_named = is_few || turn.is_some() || at == 0 && is_first || at > 0 && is_item(words[at - 1]);
        let label = Label::of(words[at]).or_else(|| Label::within(words[at]))?;
        Some(label).filter(|label| is_named || matches!(label, Label::Number(_)))
    };
    // "No, 4 it is. The second is gone."
    let of_word = |at: usize| WORDS.of_word(words[at]).find_map(place).or_else(|| label(at).map(Choice::Labelled));
    let of_wide = || WORDS.wide_in(&lower).find_map(|(_, sign)| place(sign));
    (turn.unwrap_or(0)..words.len())
        .find_map(of_word)
        .or_else(|| (0..words.len()).find_map(of_word))
        .filter(|choice| matches!(choice, Choice::Place(_)) || of_wide().is_none())
        .or_else(of_wide)
}

/// Returns the item of a list that a message chooses later, among other words: "We changed our minds: number 4." O(n).
pub fn chosen_later(list: &str, message: &str) -> Option<Range<usize>> {
    let named = || Reference::of(message).filter(|of| matches!(of.shape, None | Some(Shape::List)))?.choice;
    Some(lists::items(list, chosen(message).or_else(named)?)?.0)
}

fn split(lower: &str) -> impl Iterator<Item = &str> {
    lower.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty())
}

/// Returns whether digits with this ending are a place in order: "12th", "1er", "45º".
fn is_ordinal(ending: &str) -> bool {
    matches!(ending, "st" | "nd" | "rd" | "th" | "º" | "ª" | "e" | "er" | "ème")
}

#[cfg(test)]
mod tests;
