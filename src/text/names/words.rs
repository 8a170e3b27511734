//! Parts a text into words and tells them by their form: a name by itself, a capital, a number.

use std::collections::HashSet;
use std::ops::Range;
use std::sync::LazyLock;

use super::values::is_currency;
use crate::text::bytes::has_hump;
use crate::text::stop_words::is_stop_word;
use crate::text::terms::{is_han, scan};

/// The form of a word.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Look {
    Plain,
    /// Starts with a capital.
    Capital,
    /// A number of up to three digits.
    Number,
    /// A longer number, or one with punctuation.
    LongNumber,
    /// A name by itself.
    Name,
}

#[derive(Debug)]
pub(super) struct NameWord {
    pub(super) range: Range<usize>,
    pub(super) look: Look,
    /// Starts a sentence, so a capital means nothing.
    pub(super) opens: bool,
}

/// Returns whether a character is part of a word, or punctuation within names.
pub(super) fn is_part(c: char) -> bool {
    c.is_ascii_alphanumeric()
        || matches!(c, '-' | '_' | '.' | '/' | ':' | '@' | '#' | '+' | '~' | '·' | '\'' | '’' | ',' | '\\' | '%')
        || is_currency(c)
        || (!c.is_ascii() && c.is_alphanumeric() && !is_han(c))
}

/// Returns whether a comma is part of a number that begins at `start`: `98,220.40`, `84,50`, but not between the cells of
/// `P-838,46.00`.
fn is_in_number(text: &str, start: usize, comma: usize) -> bool {
    let whole = text[start..comma].trim_start_matches(|c: char| is_currency(c) || matches!(c, '-' | '+'));
    let behind = text[comma + 1..].bytes().take_while(u8::is_ascii_digit).count();
    let mut groups = whole.split(['.', ',', '\'']);
    let is_number = |group: &str| !group.is_empty() && group.bytes().all(|byte| byte.is_ascii_digit());
    groups.next().is_some_and(is_number)
        && groups.all(|group| is_number(group) && matches!(group.len(), 2 | 3))
        && (1..=3).contains(&behind)
}

/// Returns the words of a text, without Chinese ones.
pub(super) fn words(text: &str) -> Vec<NameWord> {
    let (mut words, mut at, mut opens) = (Vec::new(), 0, true);
    while let Some(start) = text[at..].find(is_part).map(|found| at + found) {
        let gap = &text[at..start];
        opens |= gap.contains(['\n', '。', '！', '？', '*', '"', '“']);
        let ends = |(at, c): (usize, char)| !is_part(c) || c == ',' && !is_in_number(text, start, at);
        let end = text[start..].char_indices().map(|(at, c)| (start + at, c)).find(|&found| ends(found));
        let end = end.map_or(text.len(), |(end, _)| end.max(start + 1));
        let escape = escape_in(&text[start..end]).map(|escape| start + escape);
        at = escape.map_or(end, |escape| escape + r"\n".len());
        let end = escape.unwrap_or(end);
        let bare = text[start..end].trim_end_matches(['-', '.', '/', ':', ',', '\'', '’', '\\', '+', '~']);
        let trimmed = bare.trim_start_matches(['-', '.', ':', ',', '\'', '’', '/']);
        if trimmed.chars().any(char::is_alphanumeric) {
            let from = start + bare.len() - trimmed.len();
            let names_nothing = || is_first_person(trimmed) || opens && (is_stop(trimmed) || is_opener(trimmed));
            let look = match look(trimmed) {
                Look::Capital if names_nothing() => Look::Plain,
                look => look,
            };
            words.push(NameWord { range: from..from + trimmed.len(), look, opens });
            opens = text[start + bare.len()..end].contains(['.', ':']) && !text[start..end].starts_with("Dr");
        }
        opens |= escape.is_some() || text[at..].starts_with(['!', '?']);
    }
    words
}

/// Returns whether a word is "I", "I'm" or the like.
fn is_first_person(word: &str) -> bool {
    word.strip_prefix('I').is_some_and(|rest| rest.is_empty() || rest.starts_with(['\'', '’']))
}

/// Returns whether a word names nothing, whatever its first letter.
fn is_stop(word: &str) -> bool {
    let mut term = None;
    scan(word, |found, _| term = Some(found.short()));
    term.is_some_and(is_stop_word)
}

/// What a sentence begins with before a name: "Past Crow Hill", "Gestern Ruth".
static OPENERS: LazyLock<HashSet<&str>> = LazyLock::new(|| include_str!("openers.txt").lines().collect());

/// Returns whether a word is one of [`OPENERS`].
fn is_opener(word: &str) -> bool {
    OPENERS.contains(&*word.to_lowercase())
}

/// Returns where a name goes on behind an escaped end of line or tab, as in `cache\nRun`, `a.go\nb.go`; a path of Windows has a
/// lower-case letter there behind a folder, or a drive before it.
pub(super) fn escape_in(word: &str) -> Option<usize> {
    let may_be = |at: &usize| {
        let behind = word[at + 1..].strip_prefix(['n', 'r', 't']);
        let ends_file = || word[..*at].rsplit(['\\', '/']).next().is_some_and(|file| file.contains('.'));
        behind.is_some_and(|behind| !behind.starts_with(|c: char| c.is_lowercase()) || ends_file())
    };
    let has_drive = matches!(word.as_bytes(), [drive, b':', b'\\', ..] if drive.is_ascii_alphabetic());
    word.match_indices('\\').map(|(at, _)| at).find(may_be).filter(|_| !has_drive)
}

pub(super) fn look(word: &str) -> Look {
    let digits = word.bytes().filter(u8::is_ascii_digit).count();
    let letters = word.chars().filter(|c| c.is_alphabetic()).count();
    let is_word = |c: char| c.is_alphanumeric();
    let signs = word.chars().filter(|c| !is_word(*c) && !matches!(c, '\'' | '’' | ',' | '-')).count();
    match () {
        () if word.len() > 200 => Look::Plain,
        () if letters == 0 && digits > 3 => Look::LongNumber,
        () if letters == 0 && digits > 0 && word.starts_with(|c| c == '#' || is_currency(c)) => Look::Name,
        () if letters == 0 && digits > 2 && word.contains([':', '.', '-', '/']) => Look::LongNumber,
        () if letters == 0 => Look::Number,
        () if digits > 0 && word.len() > 2 => Look::Name,
        () if signs > 0 && !word.ends_with("'s") => Look::Name,
        () if word.matches('-').count() > 1 => Look::Name,
        () if has_hump(word.as_bytes()) => Look::Name,
        () if word.starts_with(char::is_uppercase) => Look::Capital,
        () => Look::Plain,
    }
}
