//! Finds the items of the lists in a text of the model, by their labels or places.

use std::mem::take;
use std::ops::Range;

use super::words::{Sign, WORDS};
use crate::text::bytes::{FIRST_WIDE, lines};
use crate::text::sentences::{paragraph_end, sentences};

/// An item of a list, as it is chosen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Choice {
    Labelled(Label),
    /// By its place, from 1 on; 0 is the last.
    Place(usize),
}

/// What stands before an item.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Label {
    Bullet,
    Number(u8),
    Letter(u8),
}

/// Digits of Chinese and Japanese, from one on.
pub(super) const DIGITS: [&str; 9] = ["一", "二", "三", "四", "五", "六", "七", "八", "九"];

impl Label {
    /// Returns the label that `word` is: at most two digits, or a letter.
    pub fn of(word: &str) -> Option<Self> {
        if let Some(digit) = DIGITS.iter().zip(1..).find(|(digit, _)| **digit == word) {
            return Some(Self::Number(digit.1));
        }
        match *word.as_bytes() {
            [letter] if letter.is_ascii_alphabetic() => Some(Self::Letter(letter.to_ascii_lowercase())),
            [_] | [_, _] => word.parse().ok().map(Self::Number),
            _ => None,
        }
    }

    /// Returns the label with which a text in a script without spaces starts: its first word, or the first character of that.
    pub fn at_start(text: &str) -> Option<Self> {
        let word = &text[..text.find(|c: char| !c.is_alphanumeric()).unwrap_or(text.len())];
        Self::of(word).or_else(|| Self::of(&word[..word.chars().next()?.len_utf8()]))
    }

    /// Returns the label in a word of a script without spaces: 方案二, B案, 还是C.
    pub fn within(word: &str) -> Option<Self> {
        if word.is_ascii() {
            return None;
        }
        let mut letters = word.chars().filter(char::is_ascii_alphabetic);
        let letter = letters.next().filter(|_| letters.next().is_none());
        letter.and_then(|letter| Self::of(letter.encode_utf8(&mut [0; 4]))).or_else(|| Some(wide_label(word)?.1))
    }

    /// Returns the label of a line that is an item: `2.`, `**b)`, `(3)`, `-`.
    fn of_line(line: &str) -> Option<Self> {
        let bare = line.trim_start();
        if ["- ", "* ", "• ", "– "].iter().any(|mark| bare.starts_with(mark)) {
            return Some(Self::Bullet);
        }
        let bare = bare.trim_start_matches(['*', '(']);
        let end = bare.find(|c: char| !c.is_alphanumeric())?;
        Self::of(&bare[..end]).filter(|_| ends_label(&bare[end..]))
    }

    /// Returns the label of a line that heads an item: `## 2. Rowing`, `**Option B: rowing**`, `Plan B`, `方案二：`.
    fn of_heading(line: &str) -> Option<Self> {
        let bare = line.trim_start_matches(['#', ' ', '*']);
        if line.starts_with('#')
            && let Some(label) = Self::of_line(bare)
        {
            return Some(label);
        }
        let lower = bare[..bare.floor_char_boundary(MAX_HEAD_BYTES)].to_lowercase();
        let behind = match lower.split_once(|c: char| !c.is_alphanumeric()) {
            Some((word, behind)) if is_item(word) => behind,
            _ => WORDS.wide_in(&lower).find_map(|(at, sign)| {
                (sign == Sign::Item && lower[..at.end].chars().count() < 4).then_some(&lower[at.end..])
            })?,
        };
        let end = behind.find(|c: char| !c.is_alphanumeric()).unwrap_or(behind.len());
        let (label, behind) = behind.split_at(end);
        let behind = behind.trim_start_matches(['*', ' ']);
        let is_head = behind.is_empty() || ends_label(behind) || behind.starts_with(['-', '–', '—', '(']);
        Self::of(label).filter(|_| is_head)
    }
}

/// Most bytes that say what a line heads.
const MAX_HEAD_BYTES: usize = 32;

fn ends_label(behind: &str) -> bool {
    behind.starts_with(['.', ')', ':', '、', '：'])
}

fn is_item(word: &str) -> bool {
    WORDS.of_word(word).any(|sign| sign == Sign::Item)
}

/// The items of a list, each with what belongs to it.
type List = Vec<(Label, Range<usize>)>;

/// Returns the items of the last list of a text that has the choice, that one first. O(n).
pub fn items(text: &str, choice: Choice) -> Option<(Range<usize>, Range<usize>)> {
    let lists = lists(text);
    let whole = |list: &List| list[0].1.start..list[list.len() - 1].1.end;
    match choice {
        Choice::Labelled(wanted) => {
            let found =
                lists.iter().rev().find_map(|list| Some((list.iter().find(|(label, _)| *label == wanted)?, list)));
            found.map(|((_, item), list)| (item.clone(), whole(list))).or_else(|| within(text, wanted))
        }
        Choice::Place(place) => {
            let is_labelled = |list: &&List| list.iter().any(|(label, _)| *label != Label::Bullet);
            let list = lists.iter().rev().find(is_labelled).or(lists.last())?;
            let (_, item) = list.get(place.checked_sub(1).unwrap_or(list.len() - 1))?;
            Some((item.clone(), whole(list)))
        }
    }
}

/// Returns the last list of a text. O(n).
pub fn last(text: &str) -> Option<Range<usize>> {
    lists(text).last().map(|list| list[0].1.start..list[list.len() - 1].1.end)
}

/// Returns the lists of a text of two items and more, those whose items have headings last. O(n).
fn lists(text: &str) -> Vec<List> {
    let (mut lists, mut open, mut headed): (Vec<List>, List, List) = Default::default();
    let (mut at, mut goes_on) = (0, false);
    for line in lines(text) {
        let range = at..at + line.trim_end().len();
        at += line.len();
        if let Some(label) = Label::of_heading(line) {
            headed.push((label, range));
            goes_on = false;
        } else if let Some(label) = Label::of_line(line) {
            if !goes_on {
                lists.push(take(&mut open));
            }
            open.push((label, range));
            goes_on = true;
        } else if !range.is_empty() {
            // What is indented belongs to the item before it.
            goes_on &= line.starts_with([' ', '\t']);
            if let Some((_, last)) = open.last_mut().filter(|_| goes_on) {
                last.end = range.end;
            }
        }
    }
    // What stands below a heading belongs to it, below the last one a paragraph.
    let starts: Vec<usize> = headed.iter().map(|(_, at)| at.start).collect();
    for (i, (_, at)) in headed.iter_mut().enumerate() {
        let end = starts.get(i + 1).copied().unwrap_or_else(|| paragraph_end(text, at.end));
        at.end = at.start + text[at.start..end].trim_end().len();
    }
    lists.extend([open, headed]);
    lists.retain(|list| list.len() > 1);
    if lists.is_empty() {
        lists.extend(in_prose(text).or_else(|| labelled(text)));
    }
    lists
}

/// Returns the list whose items a word with a label names within a line: "Plan A puts them here, plan B there", 方案一…，方案二…. O(n).
fn labelled(text: &str) -> Option<List> {
    let mut named: Vec<(String, Label, usize)> = Vec::new();
    let mut before = 0..0;
    let is_word = |c: char| c.is_alphanumeric();
    let mut at = 0;
    while let Some(start) = text[at..].find(is_word).map(|found| at + found) {
        let end = text[start..].find(|c: char| !is_word(c)).map_or(text.len(), |end| start + end);
        let word = &text[start..end];
        if word.starts_with(|c: char| c >= FIRST_WIDE) || word.chars().nth(1).is_some_and(|c| c >= FIRST_WIDE) {
            named.extend(wide_label(word).map(|(noun, label)| (noun, label, start)));
        } else if let Some(label) = Label::of(word).filter(|_| !word.starts_with(char::is_lowercase))
            && before.end + 1 == start
            && text[before.end..].starts_with(' ')
        {
            named.push((text[before.clone()].to_lowercase(), label, before.start));
        }
        (before, at) = (start..end, end);
    }
    let second = named.iter().rev().find(|(_, label, _)| matches!(label, Label::Letter(b'b') | Label::Number(2)))?;
    let alike = named.iter().filter(|(noun, ..)| *noun == second.0);
    let mut list = List::new();
    for &(_, label, start) in alike {
        let nth = u8::try_from(list.len()).ok()?;
        if label == Label::Letter(b'a' + nth) || label == Label::Number(1 + nth) {
            if let Some((_, before)) = list.last_mut() {
                before.end = before.start + text[before.start..start].trim_end().len();
            }
            list.push((label, start..paragraph_end(text, start)));
        }
    }
    // The last one is its sentence.
    let (_, at) = list.last_mut()?;
    let sentence = sentences(&text[at.clone()]).next().map_or(at.len(), |sentence| sentence.end);
    at.end = at.start + text[at.start..at.start + sentence].trim_end().len();
    (list.len() > 1).then_some(list)
}

/// Returns the noun and the label with which a word of a script without spaces begins: 方案二, B案.
fn wide_label(word: &str) -> Option<(String, Label)> {
    let chars: Vec<char> = word.chars().take(3).collect();
    let label = |at: usize| chars.get(at).and_then(|c| Label::of(c.encode_utf8(&mut [0; 4])));
    let wide = |range: Range<usize>| chars.get(range).filter(|of| of.iter().all(|c| *c >= FIRST_WIDE));
    match (label(0), label(2)) {
        (Some(label), _) => wide(1..2).map(|noun| (noun.iter().collect(), label)),
        (None, Some(label)) => wide(0..2).map(|noun| (noun.iter().collect(), label)),
        _ => None,
    }
}

/// What goes on with a list in sentences, behind its first.
const GOING_ON: [&str; 24] = [
    "then",
    "next",
    "finally",
    "lastly",
    "dann",
    "danach",
    "schließlich",
    "zuletzt",
    "ensuite",
    "puis",
    "enfin",
    "luego",
    "después",
    "finalmente",
    "poi",
    "infine",
    "depois",
    "затем",
    "потом",
    "наконец",
    "然后",
    "接着",
    "最后",
    "最後",
];

/// Returns the list that sentences of a text make: "First, a farm. Second, a barn. Then there is a mill." O(n).
fn in_prose(text: &str) -> Option<List> {
    let mut list = List::new();
    for at in sentences(text) {
        let said = text[at.clone()].trim_start();
        let first = said.split(|c: char| !c.is_alphanumeric()).next().unwrap_or_default().to_lowercase();
        let places = WORDS.of_word(&first).chain(WORDS.wide_in(&first).map(|(_, sign)| sign));
        let is_place = |wanted: usize| places.into_iter().any(|sign| sign == Sign::Place(wanted));
        let goes_on = !list.is_empty()
            && GOING_ON.iter().any(|word| first == *word || first.starts_with(word) && !word.is_ascii());
        if goes_on || is_place(list.len() + 1) {
            list.push((Label::Number(u8::try_from(list.len() + 1).ok()?), at));
        } else if let Some((_, last)) = list.last_mut() {
            last.end = at.end;
        }
    }
    (list.len() > 1).then_some(list)
}

/// Returns the item with a letter within a line, and all from the first: "either (a) print ads or (b) influencers".
fn within(text: &str, wanted: Label) -> Option<(Range<usize>, Range<usize>)> {
    let Label::Letter(letter) = wanted else { return None };
    let lower = text.to_ascii_lowercase();
    let find = |letter: u8, from: usize| {
        let letter = char::from(letter);
        let marked = [format!("({letter})"), format!(" {letter}) ")];
        marked.iter().find_map(|mark| Some(from + lower[from..].find(mark)?))
    };
    let start = find(letter, 0)?;
    let line = text[start..].find('\n').map_or(text.len(), |end| start + end);
    let item = start..find(letter + 1, start).map_or(line, |next| next.min(line));
    let first = text[..start].rfind('\n').map_or(0, |end| end + 1);
    Some((item, first..line))
}
