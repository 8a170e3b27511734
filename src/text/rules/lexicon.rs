//! Parses `rules.tsv`: words, and what each says of its sentence.

use std::collections::HashMap;
use std::sync::LazyLock;

use xxhash_rust::xxh3::xxh3_64;

use super::Claim;
use super::forms::forms;
use crate::text::phrases::Phrases;
use crate::tokens::BuildMixedHasher;

/// What a word says of its sentence.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sign {
    Claims(Claim),
    /// Asks for how something is done.
    Manner,
    /// Makes a wish a rule: says for what it holds.
    Bound,
    /// Makes a wish an order, or a rule if it asks for a manner.
    Hint,
    /// Introduces a wish: "could you", "it would be great if you".
    Asks,
    /// A condition; the instruction follows behind a comma: "If it fails, …".
    When,
    /// A possession of the user ("my timezone"); [`Sign::Is`] introduces its value.
    Mine,
    Is,
    /// A setting, if `:` or `=` and a value follow.
    Setting,
    /// A narration rather than a condition: "When the bell rang, …".
    Past,
    /// Asks for an answer: "Can you tell me why …?"
    Unsure,
    /// Starts a question, or stands in one: without its mark it is no few words to keep.
    Question,
    /// Starts a question that claims nothing, also without its mark: "why do I always …"; [`Sign::Asking`] only with one of
    /// [`Sign::Auxiliary`] behind it: "what should I never …", but not "what I never want".
    Inquires,
    Asking,
    Auxiliary,
    /// Said of the user, it holds for long: a name, a diet.
    Lasting,
    /// Holds for good, wherever the word stands: "never", but not "don't".
    Firm,
    /// What is said of all such cases, and what is asked for in them; together they are a rule: "Before you delete anything, ask me."
    Topic,
    Way,
    /// Holds for the work at hand: "yet", "this time".
    Once,
    /// A verb that asks for something, in a sentence of a few words.
    Verb,
    /// Tells of the user, or of what holds, in a brief sentence: "Tables I can do without."
    Short,
    /// A deadline if [`Sign::Day`] says which: "by Friday".
    Due,
    Day,
    /// Starts a question that asks for something if [`Sign::Next`] is in it: "Could it be shorter next time?"
    May,
    Next,
    /// May precede the start of a sentence: "And one more thing: …".
    Filler,
    /// Means nothing, though a part of it would.
    Plain,
}

/// The place at which a word is a sign.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Position {
    Anywhere,
    /// At the start of a sentence, or of a clause that asks.
    Start,
    /// At the start of a sentence.
    First,
    /// At its end.
    End,
    /// At the start of a clause, in a script without spaces.
    Clause,
    /// Right behind [`Sign::Asks`].
    Asked,
    /// Anywhere behind that.
    Behind,
    /// A word or two before the end: "only Marek".
    Last,
    /// Behind a comma, a few words before the end: ", not Bern."
    Comma,
}

/// The words of a phrase behind its first, its sign and place.
pub type Phrase = (Vec<&'static str>, Sign, Position);

/// The words of `rules.tsv`; of those with the same first word plain ones come first.
pub struct Lexicon {
    /// Phrases at the start of a sentence, and others.
    start: Phrases<Phrase>,
    others: Phrases<Phrase>,
    /// Of scripts without spaces, by first character.
    pub wide: HashMap<char, Vec<(&'static str, Sign, Position)>, BuildMixedHasher>,
    /// Those of them that ask for what stands behind them.
    pub asking: Vec<&'static str>,
}

impl Lexicon {
    /// Returns the phrases that start with `word`; those for the start of a sentence if `is_start`.
    pub fn phrases(&self, word: &str, is_start: bool) -> impl Iterator<Item = &Phrase> {
        let hash = xxh3_64(word.as_bytes());
        let start: &[Phrase] = if is_start { self.start.of(hash) } else { &[] };
        start.iter().chain(self.others.of(hash))
    }
}

pub static LEXICON: LazyLock<Lexicon> = LazyLock::new(|| {
    let (mut start, mut others) = (HashMap::<_, Vec<_>, _>::default(), HashMap::<_, Vec<_>, _>::default());
    let (mut wide, mut asking) = (HashMap::<_, Vec<_>, _>::default(), Vec::new());
    for row in include_str!("../rules.tsv").lines().filter(|row| !row.starts_with('#')) {
        let mut cells = row.split('\t');
        let (Some(kind), Some(place), Some(phrases)) = (cells.next(), cells.next(), cells.next()) else { continue };
        if kind == "verb" {
            for form in phrases.split(", ").flat_map(|verb| forms(place, verb)) {
                let mut words = words(&form).map(|(_, word)| xxh3_64(word.as_bytes()));
                if let (Some(hash), None) = (words.next(), words.next()) {
                    start.entry(hash).or_default().push((Vec::new(), Sign::Verb, Position::Start));
                }
            }
            continue;
        }
        let (sign, is_wide) = (sign(kind), matches!(place, "in" | "clause" | "close" | "open"));
        let place = match place {
            "start" => Position::Start,
            "first" => Position::First,
            "end" | "close" => Position::End,
            "clause" => Position::Clause,
            "asked" => Position::Asked,
            "behind" | "open" => Position::Behind,
            "last" => Position::Last,
            "comma" => Position::Comma,
            _ => Position::Anywhere,
        };
        for phrase in phrases.split(", ") {
            if is_wide {
                if let Some(first) = phrase.chars().next() {
                    wide.entry(first).or_default().push((phrase, sign, place));
                }
                if sign == Sign::Asks {
                    asking.push(phrase);
                }
                continue;
            }
            let mut words = words(phrase).map(|(_, word)| word);
            if let Some(first) = words.next() {
                let (hash, rest) = (xxh3_64(first.as_bytes()), words.collect::<Vec<_>>());
                let is_start = matches!(place, Position::Start | Position::First);
                // Before others that start so: what is plain there, too.
                if is_start || sign == Sign::Plain {
                    start.entry(hash).or_default().push((rest.clone(), sign, place));
                }
                if !is_start {
                    others.entry(hash).or_default().push((rest, sign, place));
                }
            }
        }
    }
    for phrases in start.values_mut().chain(others.values_mut()) {
        phrases.sort_by_key(|(_, sign, _)| *sign != Sign::Plain);
    }
    for phrases in wide.values_mut() {
        phrases.sort_by_key(|(_, sign, _)| *sign != Sign::Plain);
    }
    Lexicon { start: Phrases::new(start), others: Phrases::new(others), wide, asking }
});

fn sign(kind: &str) -> Sign {
    match kind {
        "rule" => Sign::Claims(Claim::Rule),
        "fact" => Sign::Claims(Claim::Fact),
        "trait" => Sign::Claims(Claim::Trait),
        "wish" => Sign::Claims(Claim::Wish),
        "tells" => Sign::Claims(Claim::Told),
        "manner" => Sign::Manner,
        "hint" => Sign::Hint,
        "asks" => Sign::Asks,
        "when" => Sign::When,
        "mine" => Sign::Mine,
        "is" => Sign::Is,
        "setting" => Sign::Setting,
        "unsure" => Sign::Unsure,
        "past" => Sign::Past,
        "filler" => Sign::Filler,
        "plain" => Sign::Plain,
        "order" => Sign::Claims(Claim::Order),
        "short" => Sign::Short,
        "due" => Sign::Due,
        "day" => Sign::Day,
        "may" => Sign::May,
        "next" => Sign::Next,
        "question" => Sign::Question,
        "inquires" => Sign::Inquires,
        "asking" => Sign::Asking,
        "auxiliary" => Sign::Auxiliary,
        "lasting" => Sign::Lasting,
        "once" => Sign::Once,
        "topic" => Sign::Topic,
        "way" => Sign::Way,
        _ => Sign::Bound,
    }
}

/// Returns a sentence in lower case, with the apostrophe of the tables.
pub fn lower(sentence: &str) -> String {
    if sentence.is_ascii() { sentence.to_ascii_lowercase() } else { sentence.to_lowercase().replace('’', "'") }
}

/// Returns the words of a lower-case text; an apostrophe ends one: "don'" and "t".
pub fn words(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let mut at = 0;
    std::iter::from_fn(move || {
        let start = at + text[at..].find(|c: char| c.is_alphanumeric())?;
        let rest = &text[start..];
        let mut end = rest.find(|c: char| !c.is_alphanumeric() && !is_mark_of_vowel(c)).unwrap_or(rest.len());
        end += usize::from(rest[end..].starts_with('\''));
        at = start + end;
        Some((start, &rest[..end]))
    })
}

/// Combining marks and vowels of Indic scripts and Thai are not letters by themselves.
fn is_mark_of_vowel(c: char) -> bool {
    matches!(c, '\u{300}'..='\u{36f}' | '\u{900}'..='\u{e7f}')
}
