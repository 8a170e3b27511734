//! Which language somebody writes in, as far as that decides the language of an answer.

use std::borrow::Cow;

use super::envelope;

/// The languages that have texts of their own here.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Language {
    /// Chinese
    Chinese,
    /// Japanese
    Japanese,
    /// Korean
    Korean,
    /// English, and every language that has no texts of its own.
    #[default]
    Other,
}

/// Newest texts that have a vote, so that one pasted log in English does not outvote a conversation.
const VOTES: usize = 5;
/// Bytes read from each end of a text: enough to see the language around a pasted log.
const SAMPLE_BYTES: usize = 6_000;

impl Language {
    const ALL: [Self; 4] = [Self::Chinese, Self::Japanese, Self::Korean, Self::Other];

    /// Returns the code of the language; none for `Other`.
    pub const fn code(self) -> Option<&'static str> {
        match self {
            Self::Chinese => Some("zh"),
            Self::Japanese => Some("ja"),
            Self::Korean => Some("ko"),
            Self::Other => None,
        }
    }

    /// Returns the language of most of the newest texts; one that is not `Other` where it has as many. `None` without a word.
    pub fn of(newest_first: impl IntoIterator<Item = impl AsRef<str>>) -> Option<Self> {
        let mut votes = [0; Self::ALL.len()];
        for language in newest_first.into_iter().filter_map(|text| Self::of_text(text.as_ref())).take(VOTES) {
            votes[language as usize] += 1;
        }
        // Of equals the last is the maximum.
        let most = Self::ALL.into_iter().rev().max_by_key(|&language| votes[language as usize])?;
        (votes[most as usize] > 0).then_some(most)
    }

    fn of_text(text: &str) -> Option<Self> {
        let text = &*without_runtime_context(text);
        let [mut han, mut kana, mut hangul, mut words, mut letters] = [0; 5];
        let head = &text[..text.floor_char_boundary(SAMPLE_BYTES)];
        let tail = &text[text.ceil_char_boundary(text.len().saturating_sub(SAMPLE_BYTES)).max(head.len())..];
        for c in head.chars().chain(tail.chars()) {
            let east_asian = match c {
                '\u{3400}'..='\u{4dbf}' | '\u{4e00}'..='\u{9fff}' => Some(&mut han),
                '\u{3040}'..='\u{30ff}' => Some(&mut kana),
                '\u{1100}'..='\u{11ff}' | '\u{3130}'..='\u{318f}' | '\u{ac00}'..='\u{d7af}' => Some(&mut hangul),
                _ => None,
            };
            letters = if east_asian.is_none() && c.is_alphabetic() { letters + 1 } else { 0 };
            // A word has two letters.
            words += usize::from(letters == 2);
            if let Some(count) = east_asian {
                *count += 1;
            }
        }
        let east_asian = han + kana + hangul;
        if east_asian == 0 || east_asian < words {
            return (words > 0).then_some(Self::Other);
        }
        // A text in one of them has more of its own letters than a Chinese one that quotes a name.
        Some(match (4 * kana >= han, 4 * hangul >= han + kana) {
            (_, true) => Self::Korean,
            (true, _) => Self::Japanese,
            _ => Self::Chinese,
        })
    }
}

/// Returns a text without the block in English that nanobot puts before or behind what the user wrote.
fn without_runtime_context(text: &str) -> Cow<'_, str> {
    let Some(block) = envelope::runtime_context(text) else { return Cow::Borrowed(text) };
    Cow::Owned([&text[..block.start], &text[block.end..]].concat())
}
