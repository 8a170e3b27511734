//! Decides what a sentence of the user claims.
//!
//! Single words decide: words that make something hold from then on, a verb that asks at the start, the first person.
//! `rules.tsv` has them by language.

use std::ops::Range;

use super::MAX_RULE_BYTES;
use super::lexicon::{lower, words};
use super::signs::{Reading, Signs, is_own_word};
use crate::text::bytes::{FIRST_WIDE, has_digit};

/// What a sentence claims for those behind it, in ascending order of weight.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Claim {
    /// A sentence that asks nothing.
    Stated,
    /// Said in the first person.
    Told,
    /// A few words, whatever they are: "Metric units."
    Brief,
    /// Asks for something, maybe once.
    Wish,
    /// Answers a question of the model, in a few words: "Postgres."
    Answer,
    /// What the user is, has, needs or cannot do, maybe for now.
    Trait,
    /// Who the user is, lives and works as, what the user prefers or cannot stand.
    Fact,
    /// Asks for something in words of rules, perhaps once: "Tell me all that it says."
    Order,
    /// Holds for good.
    Rule,
}

/// Most words of a brief sentence, and most characters in scripts without spaces, which start with the last of these; a word
/// of another script counts as two.
const MAX_BRIEF_WORDS: usize = 8;
const MIN_BRIEF_CHARACTERS: usize = 4;
const MAX_BRIEF_CHARACTERS: usize = 16;
/// The same for sentences whose words say what they are.
const MAX_SHORT_WORDS: usize = 10;
const MAX_SHORT_CHARACTERS: usize = 24;
/// Most words of a statement; longer ones are cut by their worth.
const MAX_STATED_WORDS: usize = 14;
/// Most words of one with a number, and most characters in scripts without spaces: it counts as brief, as does a shorter one with a name.
/// Of 120 facts said in passing among questions without either 71, 19 and 0 are gone at 5, 10 and 25 % of a talk without this, where the
/// user writes long messages 61, 57 and 3.
const MAX_NUMBERED_WORDS: usize = 18;
const MAX_NUMBERED_CHARACTERS: usize = 28;

/// Returns the claim of a sentence.
pub fn claim(sentence: &str) -> Option<Claim> {
    read(sentence).map(|reading| reading.claim)
}

/// Returns whether a sentence says that it holds for good, or who the user is: "Never push.", but not "Don't push."
pub fn is_firm(sentence: &str) -> bool {
    read(sentence).is_some_and(|reading| reading.is_firm)
}

/// Returns what a sentence claims, and how.
pub fn read(sentence: &str) -> Option<Reading> {
    let said = sentence.trim();
    if said.len() > MAX_RULE_BYTES || said.is_ascii() && !said.contains(' ') {
        return None;
    }
    let (is_asked, has_name, lower) = (is_asked(said), has_name(said), lower(said));
    let whole = read_lower(&lower, is_asked, has_name);
    let since = behind_since(&lower).and_then(|said| read_lower(said, is_asked, has_name));
    since.filter(|since| since.claim == Claim::Fact && whole.is_none_or(|whole| whole.claim < Claim::Fact)).or(whole)
}

/// Reads a sentence in lower case that asks, or has a name inside.
fn read_lower(said: &str, is_asked: bool, has_name: bool) -> Option<Reading> {
    let words: Vec<(usize, &str)> = words(said).collect();
    let is_ascii = said.is_ascii();
    let wide = if is_ascii { 0 } else { said.chars().filter(|&c| c >= FIRST_WIDE).count() };
    let is_short = if wide == 0 { words.len() <= MAX_SHORT_WORDS } else { wide <= MAX_SHORT_CHARACTERS };
    let mut signs = Signs::new(is_asked, is_short, quoted(said));
    signs.read_words(said, &words)?;
    if !is_ascii {
        signs.read_wide(said);
    }
    let is_stated = wide == 0 && (2..=MAX_STATED_WORDS).contains(&words.len());
    let has_room = if wide == 0 { words.len() <= MAX_NUMBERED_WORDS } else { wide <= MAX_NUMBERED_CHARACTERS };
    let is_telling = has_room && has_digit(said) || is_stated && has_name;
    signs.claim(|| is_telling || is_brief(wide, &words), is_stated)
}

/// Words with which a sentence says since when it holds; most words of that: "From the 1st of May on".
const SINCE: [&str; 13] =
    ["since", "from", "as", "starting", "seit", "ab", "desde", "depuis", "dès", "sinds", "vanaf", "dal", "od"];
const MAX_SINCE_WORDS: usize = 6;

/// Returns what stands behind the words that say since when it holds, where there the user speaks of himself: "Since May my address is …".
fn behind_since(lower: &str) -> Option<&str> {
    let mut words = words(lower);
    words.next().filter(|(_, first)| SINCE.contains(first))?;
    let own = words.take(MAX_SINCE_WORDS).skip(1).find(|(_, word)| is_own_word(word));
    own.map(|(at, _)| &lower[at..])
}

/// Returns whether a word behind the first has a capital: "Timo swelled up", in German each noun.
fn has_name(sentence: &str) -> bool {
    let words = sentence.split_whitespace().skip(1);
    words.filter(|word| word.len() > 2).any(|word| word.starts_with(char::is_uppercase))
}

/// Returns the ranges in quotation marks: words there are mentioned. None if all of it is in them.
fn quoted(said: &str) -> Vec<Range<usize>> {
    const MARKS: [char; 8] = ['"', '“', '”', '„', '«', '»', '「', '」'];
    let mut quoted = Vec::new();
    let mut open = None;
    // An apostrophe stands within a word or behind it.
    let is_letter = |c: Option<char>| c.is_some_and(char::is_alphanumeric);
    for (at, _) in said.match_indices('\'') {
        match open {
            None if !is_letter(said[..at].chars().next_back()) && is_letter(said[at + 1..].chars().next()) => {
                open = Some(at + 1);
            }
            Some(from) if !is_letter(said[at + 1..].chars().next()) => {
                quoted.push(from..at);
                open = None;
            }
            _ => {}
        }
    }
    open = None;
    for (at, mark) in said.char_indices().filter(|(_, c)| MARKS.contains(c)) {
        match open.take() {
            Some(from) => quoted.push(from..at),
            None => open = Some(at + mark.len_utf8()),
        }
    }
    let all = |range: &Range<usize>| {
        !said[..range.start].contains(char::is_alphanumeric) && !said[range.end..].contains(char::is_alphanumeric)
    };
    quoted.retain(|range| !all(range));
    quoted
}

/// Returns whether a sentence of so many `wide` characters has a few words.
fn is_brief(wide: usize, words: &[(usize, &str)]) -> bool {
    if wide == 0 {
        return (2..=MAX_BRIEF_WORDS).contains(&words.len());
    }
    let others = words.iter().filter(|(_, word)| word.is_ascii()).count();
    (MIN_BRIEF_CHARACTERS..=MAX_BRIEF_CHARACTERS).contains(&(wide + 2 * others))
}

/// Returns whether a sentence asks.
pub fn is_asked(sentence: &str) -> bool {
    if is_tagged(sentence) {
        return false;
    }
    sentence.ends_with(['?', '？'])
        || ["吗", "呢", "か。", "嗎"]
            .iter()
            .any(|end| sentence.trim_end_matches(['。', '！']).ends_with(end) || sentence.ends_with(end))
}

/// Returns whether a sentence only asks whether that is fine: "Don't use emojis, ok?"
fn is_tagged(sentence: &str) -> bool {
    const ASKING: [&str; 14] = [
        "is",
        "are",
        "was",
        "were",
        "am",
        "would",
        "will",
        "should",
        "shall",
        "can",
        "could",
        "does",
        "do",
        "everything",
    ];
    let bare = sentence.trim_end_matches(['?', '!']);
    let is_tag = |tag: &str| {
        bare.len() < sentence.len()
            && bare.len() >= tag.len()
            && bare.as_bytes()[bare.len() - tag.len()..].eq_ignore_ascii_case(tag.as_bytes())
    };
    let is_asking =
        |word: &&str| sentence.split([' ', '\'']).next().is_some_and(|first| first.eq_ignore_ascii_case(word));
    [" ok", " okay"].into_iter().any(is_tag) && !ASKING.iter().any(is_asking)
}
