//! Finds the members of a set that a question asks for: "List all the clues we have." Many messages have that word, so that it names none
//! of them, and all of them answer.

use std::cmp::Reverse;
use std::ops::Range;

use crate::message::Role;
use crate::text::envelope::names_speaker;
use crate::text::sentences::{QUESTION_BYTES, sentences};
use crate::text::terms::{ShortTerm, is_han, scan};

use super::{Other, terms};

/// Messages that have the word: fewer are found by it, and of more than this share of all it is the subject.
const FEWEST: usize = 4;
const MOST_OF_ALL: usize = 4;

/// Most words of such a question, and most bytes of a sentence with a member.
const MAX_TERMS: usize = 12;
const MAX_SENTENCE: usize = 240;

/// Least letters of a stem, and most of an ending.
const MIN_STEM: usize = 5;
const MAX_ENDING: usize = 2;
const ENDINGS: [&str; 6] = ["en", "er", "es", "e", "n", "s"];

/// Most stems that are looked for, and most bytes in which they are: each is compared with all words.
const MAX_STEMS: usize = 4;
const MAX_BYTES: usize = 1 << 20;

/// Most members.
const MAX_MEMBERS: usize = 40;

/// Returns the sentences with the word of a question that many of `texts` have, newest first, by the keys of these: of several such words
/// the rarest, and one of several terms first. O(terms), and O(bytes) of the texts with it, or of all where no term is such a word.
///
/// Of 180 clues and things in replies of a talk 132, 66 and 26 were gone at 10, 25 and 50 % without it, with it 66, 18 and 7.
pub(super) fn set_meant<K: Copy>(question: &str, texts: &[Other<'_, K>]) -> Vec<(K, Range<usize>)> {
    let words = if question.len() <= QUESTION_BYTES && asks(question) { terms(question) } else { Vec::new() };
    if words.len() > MAX_TERMS {
        return Vec::new();
    }
    let said: Vec<&Other<'_, K>> = texts.iter().filter(|of| of.role != Role::Tool).collect();
    // In a talk of several people what is asked about is in all that they say of it.
    if said.iter().filter(|of| names_speaker(of.text)).count() * 2 > said.len() {
        return Vec::new();
    }
    let sets = words.iter().map(|(_, term)| Word::Term(*term));
    let set = rarest(sets, &said).or_else(|| {
        let bytes: usize = said.iter().map(|of| of.text.len()).sum();
        let stems = words.iter().filter_map(|(start, _)| stem(&question[*start..])).take(MAX_STEMS);
        if bytes <= MAX_BYTES { rarest(stems.map(Word::Stem), &said) } else { None }
    });
    let Some((word, having)) = set else { return Vec::new() };
    let of_text = |nth: usize| {
        let Other { key, text, .. } = *said[nth];
        let is_short = |range: &Range<usize>| range.len() <= MAX_SENTENCE;
        let having = sentences(text).filter(is_short).filter(|range| word.is_in(&text[range.clone()]));
        having.map(move |range| (key, range)).collect::<Vec<_>>()
    };
    having.into_iter().rev().flat_map(of_text).take(MAX_MEMBERS).collect()
}

/// Returns whether a message asks something, or for all of something.
fn asks(message: &str) -> bool {
    let is_all = |word: &str| ALL.contains(&&*word.to_lowercase());
    message.contains(['?', '？'])
        || message.split(|c: char| !c.is_alphabetic()).any(is_all)
        || ALL_WIDE.iter().any(|all| message.contains(all))
}

/// Words for all of something.
const ALL: [&str; 25] = [
    "all",
    "every",
    "each",
    "list",
    "everything",
    "alle",
    "alles",
    "jede",
    "jeden",
    "jedes",
    "sämtliche",
    "todos",
    "todas",
    "todo",
    "tous",
    "toutes",
    "tout",
    "tutti",
    "tutte",
    "все",
    "всех",
    "wszystkie",
    "tüm",
    "bütün",
    "alla",
];
const ALL_WIDE: [&str; 11] = ["所有", "全部", "都", "列出", "一遍", "すべて", "全て", "一覧", "みんな", "모든", "모두"];

/// A word of a question.
enum Word {
    Term(ShortTerm),
    /// Its first letters, in lower case: the plural of "Hinweis" is no term of it.
    Stem(String),
}

impl Word {
    fn is_in(&self, text: &str) -> bool {
        match self {
            Self::Term(word) => {
                let mut is_in = false;
                scan(text, |term, _| is_in |= term.short().as_word() == *word);
                is_in
            }
            Self::Stem(stem) => {
                let lengths = stem.len()..=stem.len() + MAX_ENDING;
                let has_stem = |word: &str| lengths.contains(&word.len()) && word.to_lowercase().starts_with(stem);
                text.split(|c: char| !c.is_alphabetic()).any(has_stem)
            }
        }
    }

    /// Returns the texts with the word.
    fn having<K>(&self, said: &[&Other<'_, K>]) -> Vec<usize> {
        let has = |of: &Other<'_, K>| match self {
            Self::Term(word) => of.analysis.terms.iter().any(|term| term.as_word() == *word),
            Self::Stem(_) => self.is_in(of.text),
        };
        (0..said.len()).filter(|&nth| has(said[nth])).collect()
    }
}

/// Returns the word that fewest texts have of those that many have, with these; before it one of which there are several, as a word of
/// Chinese is several pairs.
fn rarest<K>(words: impl Iterator<Item = Word>, said: &[&Other<'_, K>]) -> Option<(Word, Vec<usize>)> {
    let is_set = |(_, having): &(Word, Vec<usize>)| (FEWEST..=said.len() / MOST_OF_ALL).contains(&having.len());
    let mut sets: Vec<(Word, Vec<usize>)> = words
        .map(|word| {
            let having = word.having(said);
            (word, having)
        })
        .filter(is_set)
        .collect();
    let times = |having: &Vec<usize>| sets.iter().filter(|(_, other)| other == having).count();
    let best = (0..sets.len()).min_by_key(|&at| (Reverse(times(&sets[at].1)), sets[at].1.len()))?;
    Some(sets.swap_remove(best))
}

/// Returns the first letters of a long word, without an ending of its plural.
fn stem(text: &str) -> Option<String> {
    let word: String = text.chars().take_while(|c| c.is_alphabetic()).collect::<String>().to_lowercase();
    let without = ENDINGS.iter().find_map(|ending| word.strip_suffix(ending)).unwrap_or(&word);
    Some(without.to_owned()).filter(|stem| stem.chars().count() >= MIN_STEM && !stem.contains(is_han))
}

#[cfg(test)]
mod tests {
    use std::iter;

    use super::*;
    use crate::text::analysis::{Analysis, Form};

    /// Returns what a question means of replies, each fourth of which says `members`.
    fn meant(question: &str, members: &[&str]) -> Vec<String> {
        let others = ["It rained.", "The lamp went out.", "Nobody spoke."];
        let of = |member: &&str| {
            let with = format!("The bells rang. {member} Then it was still.");
            iter::once(with).chain(others.map(str::to_owned))
        };
        let texts: Vec<String> = members.iter().flat_map(of).collect();
        let analyses: Vec<_> = texts.iter().map(|text| Analysis::of(text, Form::Outlined)).collect();
        let other = |nth: usize| Other {
            key: nth,
            message: nth,
            role: Role::Assistant,
            text: &texts[nth],
            analysis: &analyses[nth],
        };
        let others: Vec<Other<'_, usize>> = (0..texts.len()).map(other).collect();
        set_meant(question, &others).into_iter().map(|(nth, range)| texts[nth][range].trim().to_owned()).collect()
    }

    #[test]
    fn the_members_of_a_set_are_found_by_its_word() {
        let clues = ["Clue: a boot.", "That was a clue: a glove.", "Clue: a ticket.", "The next clue is a spoon."];
        let newest_first: Vec<&str> = clues.iter().rev().copied().collect();
        assert_eq!(meant("List all the clues we have so far.", &clues), newest_first);
        assert_eq!(meant("Why did he leave?", &clues), Vec::<String>::new());
        // Few messages with a word are found by it.
        assert_eq!(meant("List all the clues.", &clues[..3]), Vec::<String>::new());
        let clues = ["线索：靴子。", "这是一条线索：手套。", "线索：车票。", "线索：勺子。"];
        assert_eq!(meant("列出到现在为止的所有线索。", &clues).len(), 4);
    }

    #[test]
    fn a_plural_is_found_by_its_stem() {
        let clues = ["Hinweis: ein Stiefel.", "Hinweis: ein Glas.", "Hinweis: eine Uhr.", "Das war ein Hinweis."];
        assert_eq!(meant("Geh alle Hinweise durch.", &clues).len(), 4);
        assert_eq!(stem("Hinweise durch"), Some("hinweis".to_owned()));
        assert_eq!(stem("Uhren"), None);
    }
}
