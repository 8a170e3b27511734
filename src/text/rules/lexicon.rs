//! The words of `rules.tsv`, and what each says of its sentence.

use std::collections::HashMap;
use std::sync::LazyLock;

use xxhash_rust::xxh3::xxh3_64;

use super::Claim;
use crate::text::bytes::Filter;
use crate::tokens::BuildMixedHasher;

/// What a word says of its sentence.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sign {
    Claims(Claim),
    /// Asks for how something is done.
    Manner,
    /// A wish with this in it is a rule: it says for what it holds.
    Bound,
    /// A wish with this in it is an order, and a rule where it asks for how something is done.
    Hint,
    /// Asks for what stands behind it: "could you", "it would be great if you".
    Asks,
    /// Says when something is to be done; what is, stands behind a comma: "If it fails, …".
    When,
    /// Something of the user's, of which [`Sign::Is`] tells what it is.
    Mine,
    Is,
    /// A setting, where `:` or `=` and its value follow.
    Setting,
    /// Is told, and no condition: "When the bell rang, …".
    Past,
    /// What is asked for is an answer: "Can you tell me why …?"
    Unsure,
    /// Stands before what says something: "And one more thing: …".
    Filler,
    /// Says nothing, though a part of it would.
    Plain,
}

/// Where a word is a sign.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Position {
    Anywhere,
    /// Where a sentence starts, or a part of it that asks.
    Start,
    /// Where a sentence starts.
    First,
    /// Where it ends.
    End,
    /// Where a part of a sentence starts, in a script without spaces.
    Clause,
    /// Right behind what asks for it.
    Asked,
    /// Anywhere behind that.
    Behind,
}

/// The words behind the first of a phrase, and what it is a sign of.
pub type Phrase = (Vec<&'static str>, Sign, Position);

/// The words of `rules.tsv`; of those that begin alike what is plain comes first.
pub struct Lexicon {
    /// Of those where a sentence starts, and of the others.
    start: Phrases,
    others: Phrases,
    /// Of scripts without spaces, by first character.
    pub wide: HashMap<char, Vec<(&'static str, Sign, Position)>, BuildMixedHasher>,
    /// Those of them that ask for what stands behind them.
    pub asking: Vec<&'static str>,
}

impl Lexicon {
    /// Returns the phrases that begin with `word`: of those where a sentence starts only where it does.
    pub fn phrases(&self, word: &str, is_start: bool) -> impl Iterator<Item = &Phrase> {
        let hash = xxh3_64(word.as_bytes());
        let start: &[Phrase] = if is_start { self.start.of(hash) } else { &[] };
        start.iter().chain(self.others.of(hash))
    }
}

/// Phrases by the hash of their first word.
struct Phrases {
    phrases: HashMap<u64, Vec<Phrase>, BuildMixedHasher>,
    /// Tells most other words from those that begin one.
    known: Filter<1024>,
}

impl Phrases {
    fn new(phrases: HashMap<u64, Vec<Phrase>, BuildMixedHasher>) -> Self {
        Self { known: Filter::of(phrases.keys().copied()), phrases }
    }

    fn of(&self, hash: u64) -> &[Phrase] {
        let phrases = self.known.may_have(hash).then(|| self.phrases.get(&hash)).flatten();
        phrases.map_or(&[], Vec::as_slice)
    }
}

pub static LEXICON: LazyLock<Lexicon> = LazyLock::new(|| {
    let (mut start, mut others) = (HashMap::<_, Vec<_>, _>::default(), HashMap::<_, Vec<_>, _>::default());
    let (mut wide, mut asking) = (HashMap::<_, Vec<_>, _>::default(), Vec::new());
    for row in include_str!("../rules.tsv").lines().filter(|row| !row.starts_with('#')) {
        let mut cells = row.split('\t');
        let (Some(kind), Some(place), Some(phrases)) = (cells.next(), cells.next(), cells.next()) else { continue };
        let (sign, is_wide) = (sign(kind), matches!(place, "in" | "clause" | "close" | "open"));
        let place = match place {
            "start" => Position::Start,
            "first" => Position::First,
            "end" | "close" => Position::End,
            "clause" => Position::Clause,
            "asked" => Position::Asked,
            "behind" | "open" => Position::Behind,
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
                let of = if matches!(place, Position::Start | Position::First) { &mut start } else { &mut others };
                of.entry(xxh3_64(first.as_bytes())).or_default().push((words.collect(), sign, place));
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
        _ => Sign::Bound,
    }
}

/// Returns the words of a text in lower case; an apostrophe ends one: "don'" and "t".
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

/// Vowels of Indic scripts and Thai are no letters of their own.
fn is_mark_of_vowel(c: char) -> bool {
    matches!(c, '\u{300}'..='\u{36f}' | '\u{900}'..='\u{e7f}')
}
