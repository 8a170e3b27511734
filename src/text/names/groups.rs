//! Names of several words: `LH 454`, `+41 44 555 01 27`, `24 March 2033`, `Prof. Dr. Ilse Quast-Haas`.

use super::words::{Look, NameWord};
use crate::text::terms::is_han;

/// Returns whether a word continues the name that starts at `first`.
pub(super) fn goes_on(text: &str, words: &[NameWord], first: usize, i: usize) -> bool {
    let between = &text[words[i - 1].range.end..words[i].range.start];
    let has_country = text[words[first].range.clone()].starts_with('+');
    let is_near = match between {
        " " => true,
        ". " => words[first..i].iter().all(|word| TITLES.contains(&&text[word.range.clone()])),
        " (" => i == first + 1 && has_country,
        ") " => i == first + 1 + usize::from(has_country) && is_grouped(text, words, first),
        _ => false,
    };
    let (before, look) = (words[i - 1].look, words[i].look);
    let has_digits = |look: Look| matches!(look, Look::Number | Look::LongNumber);
    is_near
        && match look {
            Look::Plain => false,
            Look::Capital => !has_digits(before) || i == first + 1 && is_day(text, words, first),
            Look::Name => {
                before == Look::Capital
                    || is_group(&text[words[i].range.clone()]) && is_code(before, &text[words[i - 1].range.clone()])
            }
            Look::Number | Look::LongNumber => {
                // An account number comes in fours behind its country: "CH93 0076 2011".
                let is_four = i > first + 1 && words[i - 1].range.len() == 4;
                // A sentence begins before a telephone number: "Call +44 20 7946 0958."
                if words[first].opens && i == first + 1 && is_grouped(text, words, i) {
                    return false;
                }
                before == Look::Capital || before == Look::Name || is_four || is_grouped(text, words, first)
            }
        }
}

/// Returns whether a word goes on a code in groups: the 2EL of KW17 2EL, the 3M02 of an account number.
fn is_group(word: &str) -> bool {
    word.starts_with(|c: char| c.is_ascii_digit())
        && word.bytes().all(|byte| byte.is_ascii_digit() || byte.is_ascii_uppercase() || byte == b'-')
}

/// Returns whether a word is a group of a code: digits and capitals.
fn is_code(look: Look, word: &str) -> bool {
    matches!(look, Look::Name | Look::LongNumber)
        && word.len() <= MAX_GROUP_BYTES
        && word.bytes().all(|byte| byte.is_ascii_digit() || byte.is_ascii_uppercase())
}

/// Most bytes of a group of a code.
const MAX_GROUP_BYTES: usize = 7;

/// Returns whether a number is the first group of a longer one: `+41 44 555`, `(415) 555-0132`.
pub(super) fn is_grouped(text: &str, words: &[NameWord], first: usize) -> bool {
    let range = &words[first].range;
    text[range.clone()].starts_with('+')
        || (text[..range.start].ends_with('(') && text[range.end..].starts_with(") "))
        || is_spaced(text, words, first)
}

/// Returns whether a number is the first group of a telephone number or that of a card: `0682 507 6777`, `1637 8210 3361 1843`.
fn is_spaced(text: &str, words: &[NameWord], first: usize) -> bool {
    let is_digits = |word: &&NameWord| text[word.range.clone()].bytes().all(|byte| byte.is_ascii_digit());
    let is_next = |one: &NameWord, other: &NameWord| text[one.range.end..other.range.start] == *" ";
    let before = first.checked_sub(1).map(|at| &words[at]).filter(is_digits);
    if before.is_some_and(|before| is_next(before, &words[first])) {
        return false;
    }
    let mut groups: Vec<&NameWord> = Vec::new();
    for word in words[first..].iter().take(MAX_GROUPS + 1).take_while(is_digits) {
        if groups.last().is_some_and(|last| !is_next(last, word)) {
            break;
        }
        groups.push(word);
    }
    let digits: usize = groups.iter().map(|word| word.range.len()).sum();
    let is_card = groups.len() == 4 && groups.iter().all(|word| word.range.len() == 4);
    let is_telephone = (2..=MAX_GROUPS).contains(&groups.len()) && TELEPHONE_DIGITS.contains(&digits);
    is_card || is_telephone && text[words[first].range.start..].starts_with('0') && words[first].range.len() > 1
}

/// Most groups of a telephone number, and its digits.
const MAX_GROUPS: usize = 6;
const TELEPHONE_DIGITS: std::ops::RangeInclusive<usize> = 8..=12;

/// Returns whether a number is the day of a date that goes on in words: `24 March 2033`.
pub(super) fn is_day(text: &str, words: &[NameWord], first: usize) -> bool {
    let Some([day, month, year]) = words.get(first..first + 3) else { return false };
    let spaces = [day.range.end..month.range.start, month.range.end..year.range.start];
    (day.look, month.look, year.look) == (Look::Number, Look::Capital, Look::LongNumber)
        && day.range.len() <= 2
        && year.range.len() == 4
        && spaces.into_iter().all(|space| text[space] == *" ")
}

/// Returns whether a number behind Chinese characters has a name behind it: 小米 14 Ultra.
pub(super) fn is_model(text: &str, words: &[NameWord], first: usize) -> bool {
    let Some([NameWord { range, look: Look::Number, .. }, NameWord { range: next, look: Look::Capital, .. }]) =
        words.get(first..first + 2)
    else {
        return false;
    };
    text[..range.start].trim_end_matches(' ').ends_with(is_han) && text[range.end..next.start] == *" "
}

/// Titles before a person or a place: "Prof. Lacey". Another short word with a full stop ends a sentence: "Ask Ruth. Sparrows came."
const TITLES: [&str; 16] =
    ["Mr", "Mrs", "Ms", "Dr", "Prof", "St", "Sr", "Fr", "Hr", "Mme", "Lt", "Sgt", "Col", "Gen", "Capt", "Rev"];
