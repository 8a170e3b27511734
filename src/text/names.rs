//! Finds names as people write them in prose: `OPS-1442`, `14:35`, `Dr. Okafor`, `+41 44 555 01 27`, `订单号88213`, `￥1,400元`.
//!
//! Terms ([`super::terms`]) are for comparing, names for writing down. Words are recognised by form: digits among letters,
//! punctuation within, capitals inside a sentence; adjacent ones are one name.

mod groups;
mod han;
#[cfg(test)]
mod tests;
mod values;
mod words;

use std::ops::Range;

use super::bytes::is_escaped;
use groups::{goes_on, is_day, is_grouped, is_model};
use han::{persons, with_han, with_parts};
use values::{has_unit, value_end};
use words::{Look, NameWord, escape_in, is_part, look, words};

pub use values::{is_bare_number, is_clock, is_measure};

/// Returns the ranges of names in `text`, in order. O(n).
pub fn names(text: &str) -> Vec<Range<usize>> {
    let words = words(text);
    let mut names = persons(text);
    let mut i = 0;
    while i < words.len() {
        let first = i;
        i += 1;
        let is_model = is_model(text, &words, first);
        let has_unit = has_unit(text, &words[first]);
        if words[first].look == Look::Plain
            || words[first].look == Look::Number
                && !has_unit
                && !is_model
                && !is_grouped(text, &words, first)
                && !is_day(text, &words, first)
        {
            continue;
        }
        i += usize::from(is_model);
        while i < words.len() && goes_on(text, &words, first, i) {
            i += 1;
        }
        let span = &words[first..i];
        let is_name = |word: &NameWord| matches!(word.look, Look::Name | Look::LongNumber);
        let capitals = span.iter().filter(|word| word.look == Look::Capital).count();
        let opens_only = span[0].opens && span[0].range.len() <= 3 && capitals < 3;
        let has_number = capitals > 0 && span.iter().any(|word| word.look == Look::Number) && !span[0].opens;
        if is_model
            || has_unit
            || span.iter().any(is_name)
            || (capitals > 1 && !opens_only)
            || has_number
            || span.len() > 2
        {
            let start = if span[0].look == Look::Capital && opens_only && span.len() > 1 { &span[1] } else { &span[0] };
            let is_number =
                !has_unit && span.len() == 1 && text[span[0].range.clone()].bytes().all(|byte| byte.is_ascii_digit());
            let start = match first.checked_sub(1).map(|before| &words[before]) {
                // A number includes the word before it: "port 48211".
                Some(before) if is_number && !before.opens && text[before.range.end..start.range.start] == *" " => {
                    before
                }
                _ => start,
            };
            let name = start.range.start..span[span.len() - 1].range.end;
            let name = whole(text, with_parts(text, with_han(text, name)));
            i += words[i..].iter().take_while(|word| word.range.start < name.end).count();
            names.push(name);
        }
    }
    names.sort_by_key(|name| (name.start, std::cmp::Reverse(name.end)));
    let mut end = 0;
    names.retain(|name| {
        let is_apart = name.start >= end;
        end = end.max(name.end);
        is_apart
    });
    names
}

/// Returns the ranges of words with a capital inside a sentence, apart from those in `names`: "Anna, Bob and Chen".
pub fn capitals_beside(text: &str, names: &[Range<usize>]) -> Vec<Range<usize>> {
    let is_apart = |range: &Range<usize>| names.iter().all(|name| range.end <= name.start || name.end <= range.start);
    let capitals = words(text).into_iter().filter(|word| word.look == Look::Capital && !word.opens);
    capitals.map(|word| word.range).filter(is_apart).collect()
}

/// Most bytes of the signs before a path, and of a query.
const MAX_LEAD_BYTES: usize = 24;
const MAX_QUERY_BYTES: usize = 80;

/// Returns a name with what belongs to it as it was written: the signs before a path or an option, the query of a URL, the unit of
/// a value. Without the slash before it a path is another one.
pub fn whole(text: &str, name: Range<usize>) -> Range<usize> {
    let before = &text[text.ceil_char_boundary(name.start.saturating_sub(MAX_LEAD_BYTES))..name.start];
    let outside = before.trim_end_matches(['.', '/', '~', '-']);
    let lead = &before[outside.len()..];
    let is_lead = matches!(lead, "/" | "//" | "~/" | "--" | ".")
        || (lead.ends_with('/') && lead.trim_start_matches("../").trim_start_matches("./").is_empty());
    // `</b>` is no path, nor is what follows a word: `a + b/c`.
    let is_apart = !outside
        .ends_with(|c: char| c.is_alphanumeric() || matches!(c, '<' | '_' | '\\' | ':' | ')' | ']' | '}' | '%' | '$'));
    let start = if is_lead && is_apart { name.start - lead.len() } else { name.start };
    let is_option = text[start..].starts_with("--");
    let is_address = text[name.clone()].contains("://");
    let is_query = |c: char| is_part(c) && c != ',' || matches!(c, '?' | '&' | '=' | ';' | '!' | '*' | '[' | ']');
    let rest = &text[name.end..];
    let goes_on = (is_address && rest.trim_start_matches('/').starts_with(['?', '#', '=']))
        || (is_option && rest.starts_with('='));
    if !goes_on {
        return start..value_end(text, name.end);
    }
    let query = &rest[..rest.find(|c: char| !is_query(c)).unwrap_or(rest.len())];
    let query =
        query.trim_end_matches(['?', '&', '=', ';', '!', '*', '[', ']', '.', ':', '\'', '’', '-', '+', '~', '\\']);
    start..name.end + if query.len() <= MAX_QUERY_BYTES { query.len() } else { 0 }
}

/// Most bytes of a code in groups: a UUID has 36.
const MAX_CODE_BYTES: usize = 40;

/// Returns the code in groups, or the address of mail, that a name is a part of: a group of a UUID is no name by itself.
pub fn code(text: &str, name: Range<usize>) -> Range<usize> {
    let bytes = text.as_bytes();
    let is_word = |at: usize| bytes.get(at).is_some_and(|&byte| byte.is_ascii_alphanumeric() || byte == b'_');
    let is_between = |at: usize| at > 0 && is_word(at - 1) && is_word(at + 1);
    let joins = |at: usize, by: &[u8]| is_word(at) || by.contains(&bytes[at]) && is_between(at);
    let before = (0..name.start).rev().take(MAX_CODE_BYTES);
    let start = before.take_while(|&at| joins(at, b"-@") && !is_escaped(bytes, at)).last();
    // The end of a path or of a version is no code.
    let start = start.filter(|&start| !text[..start].ends_with(['.', '/', ':'])).unwrap_or(name.start);
    let mut is_host = false;
    let behind = (name.end..bytes.len()).take(MAX_CODE_BYTES).take_while(|&at| {
        let joins = joins(at, if is_host { b"-." } else { b"-@" });
        is_host |= bytes[at] == b'@';
        joins
    });
    let end = behind.last().map_or(name.end, |last| last + 1);
    if end - start <= MAX_CODE_BYTES { start..end } else { name }
}

/// Returns a name up to an escaped end of line; `None` if what stands before that is none.
pub fn without_escape(name: &str) -> Option<&str> {
    let Some(end) = escape_in(name) else { return Some(name) };
    Some(name[..end].trim_end_matches(['.', '/', ':', '-', '\\']))
        .filter(|name| matches!(look(name), Look::Name | Look::LongNumber))
}
