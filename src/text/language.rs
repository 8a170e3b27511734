//! Detects the language that an answer should be in.

use std::ops::RangeInclusive;

use super::bytes::FIRST_WIDE;
use super::envelope;

/// The languages with texts of their own.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Language {
    /// Chinese
    Chinese,
    /// Japanese
    Japanese,
    /// Korean
    Korean,
    /// English, and every language without texts of its own.
    #[default]
    Other,
}

/// Number of newest texts that vote, so that one pasted log in English does not outvote a conversation.
const VOTES: usize = 5;
/// Bytes read at each end of a text: enough to see the language around a pasted log.
const SAMPLE_BYTES: usize = 6_000;

/// Words of English sentences; commands and errors have few of them.
const ENGLISH: [&str; 36] = [
    "the", "is", "are", "was", "be", "to", "of", "in", "on", "it", "this", "that", "what", "how", "why", "where",
    "which", "who", "please", "can", "could", "would", "should", "you", "your", "we", "my", "me", "and", "for", "with",
    "from", "do", "does", "not", "have",
];
/// Characters of Chinese but not of Japanese.
const CHINESE_ALONE: &str = "们这吗呢吧请帮么给让过还说对为个时问没开关运报错误无动务认嗎麼這們妳您";
/// Characters of Chinese sentences that are rare in names and terms.
const CHINESE_SENTENCES: &str = "的了是我你他她把在不就也都要会能看什";
/// English words in a sentence for each name in other letters.
const WORDS_TO_A_NAME: usize = 2;
/// With fewer words a text has no language: "ok", "go on".
const FEW_WORDS: usize = 2;
/// The same for letters of scripts without spaces: Thai, Khmer.
const FEW_LETTERS: usize = 8;
/// Blocks from Greek to Greek Extended.
const OTHER_SCRIPTS: RangeInclusive<char> = '\u{370}'..='\u{1fff}';
/// Starts of a quotation that a chat channel puts before an answer or a forwarded message; it ends with `]`.
const PREFIXES: [&str; 2] = ["[Reply to", "[Forwarded from"];
/// From so many lines on the last may be typed behind a paste.
const PASTED_LINES: usize = 3;

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

    /// Returns the language of most of the newest texts; ties go to a language other than `Other`. `None` without a word, or
    /// with only a few that all languages use.
    pub fn of(newest_first: impl IntoIterator<Item = impl AsRef<str>>) -> Option<Self> {
        let (mut votes, mut either) = ([0; Self::ALL.len()], 0);
        let texts = newest_first.into_iter().filter_map(|text| Self::of_text(text.as_ref()));
        for (language, is_sure) in texts.take(VOTES) {
            votes[language as usize] += 1;
            either += usize::from(!is_sure);
        }
        // Ambiguous texts are Japanese if others are.
        if votes[Self::Japanese as usize] > 0 {
            votes[Self::Chinese as usize] -= either;
            votes[Self::Japanese as usize] += either;
        }
        // The last of equals is the maximum.
        let most = Self::ALL.into_iter().rev().max_by_key(|&language| votes[language as usize])?;
        (votes[most as usize] > 0).then_some(most)
    }

    /// Returns the language that a text is typed in, and whether it is certain. Typed text is before or behind pasted text.
    fn of_text(text: &str) -> Option<(Self, bool)> {
        let text = envelope::without_host_blocks(text);
        let text = without_prefix(&text);
        let head = &text[..text.floor_char_boundary(SAMPLE_BYTES)];
        let tail = &text[text.ceil_char_boundary(text.len().saturating_sub(SAMPLE_BYTES)).max(head.len())..];
        let lines = head.lines().chain(tail.lines()).map(|line| (line, Letters::of(line)));
        let (quoted, own): (Vec<_>, Vec<_>) =
            lines.filter(|(_, letters)| letters.has_any()).partition(|(line, _)| line.trim_start().starts_with('>'));
        let lines = if own.is_empty() { quoted } else { own };
        let all = lines.iter().fold(Letters::default(), |all, (_, letters)| all.and(letters));
        let whole = all.language()?;
        let ((first, letters), (_, last)) = (lines.first()?, lines.last()?);
        let opening = Letters::of(opening(first));
        let first = if opening.is_said() { &opening } else { letters };
        let is_other = |letters: &Letters| letters.language().is_none_or(|language| language == Self::Other);
        let is_sure = |letters: &Letters| letters.language() != Some(Self::Chinese) || letters.chinese_alone > 0;
        let typed = if whole != Self::Other {
            if first.is_said() && is_sure(first) { first } else { &all }
        } else if !is_other(first) {
            first
        } else if !is_other(last) && (first.english == 0 || lines.len() >= PASTED_LINES) {
            last
        } else {
            &all
        };
        Some((typed.language()?, is_sure(typed)))
    }
}

/// Evidence for the language of a text.
#[derive(Debug, Clone, Copy, Default)]
struct Letters {
    han: usize,
    kana: usize,
    hangul: usize,
    /// Of Chinese only.
    chinese_alone: usize,
    /// Of Chinese sentences.
    chinese_sentences: usize,
    /// Pieces in these letters.
    pieces: usize,
    /// Letters of scripts that are neither these nor Latin: Cyrillic, Arabic, Thai.
    others: usize,
    /// Words of letters alone: no paths, addresses, options and names of code.
    words: usize,
    /// Of these, those of English sentences.
    english: usize,
}

impl Letters {
    fn of(line: &str) -> Self {
        let mut found = Self::default();
        let mut before = 0;
        for c in line.chars() {
            match c {
                '\u{3400}'..='\u{4dbf}' | '\u{4e00}'..='\u{9fff}' => {
                    let is_alone = CHINESE_ALONE.contains(c);
                    found.han += 1;
                    found.chinese_alone += usize::from(is_alone);
                    found.chinese_sentences += usize::from(is_alone || CHINESE_SENTENCES.contains(c));
                }
                '\u{3040}'..='\u{30ff}' => found.kana += 1,
                '\u{1100}'..='\u{11ff}' | '\u{3130}'..='\u{318f}' | '\u{ac00}'..='\u{d7af}' => found.hangul += 1,
                _ => {
                    found.others += usize::from(OTHER_SCRIPTS.contains(&c) && c.is_alphabetic());
                    before = found.east_asian();
                    continue;
                }
            }
            found.pieces += usize::from(before + 1 == found.east_asian());
        }
        let between = |c: char| c.is_whitespace() || c >= FIRST_WIDE || ",;!?()\"'“”‘’".contains(c);
        for word in line.split(between).map(|word| word.trim_matches(['.', ':'])) {
            let is_word = word.len() > 1 && word.chars().all(char::is_alphabetic);
            found.words += usize::from(is_word);
            found.english += usize::from(is_word && ENGLISH.iter().any(|english| word.eq_ignore_ascii_case(english)));
        }
        found
    }

    fn and(self, other: &Self) -> Self {
        Self {
            han: self.han + other.han,
            kana: self.kana + other.kana,
            hangul: self.hangul + other.hangul,
            chinese_alone: self.chinese_alone + other.chinese_alone,
            chinese_sentences: self.chinese_sentences + other.chinese_sentences,
            pieces: self.pieces + other.pieces,
            others: self.others + other.others,
            words: self.words + other.words,
            english: self.english + other.english,
        }
    }

    const fn east_asian(&self) -> usize {
        self.han + self.kana + self.hangul
    }

    const fn has_any(&self) -> bool {
        self.east_asian() + self.words + self.others > 0
    }

    /// Whether it is part of a sentence rather than a name or a heading.
    const fn is_said(&self) -> bool {
        self.english > 1 || self.chinese_sentences + self.kana + self.hangul > 0
    }

    fn language(&self) -> Option<Language> {
        let Self { han, kana, hangul, words, pieces, .. } = *self;
        let east_asian = self.east_asian();
        if east_asian == 0 {
            return (words > FEW_WORDS || self.others > FEW_LETTERS).then_some(Language::Other);
        }
        // A Chinese sentence names things in English, an English one quotes a word.
        let has_names = self.english > 0 && self.chinese_sentences == 0 && words >= WORDS_TO_A_NAME * pieces;
        if has_names || self.others >= east_asian || self.english * 2 > east_asian || east_asian * 3 < words {
            return Some(Language::Other);
        }
        // A text in one of these has more of its own letters than a Chinese text that quotes a name.
        let for_each_kana = if self.chinese_alone == 0 { 10 } else { 4 };
        Some(match (for_each_kana * kana >= han, 4 * hangul >= han + kana) {
            (_, true) => Language::Korean,
            (true, _) => Language::Japanese,
            _ => Language::Chinese,
        })
    }
}

/// Returns the start of a line, which asks something of the rest, as in "看看这个：…" and "What does this mean? …".
fn opening(line: &str) -> &str {
    line.split(['?', '？', ':', '：']).next().unwrap_or(line)
}

/// Returns a text without the quotation before it.
fn without_prefix(text: &str) -> &str {
    let is_prefixed = PREFIXES.iter().any(|prefix| text.trim_start().starts_with(prefix));
    text.split_once("]\n").filter(|_| is_prefixed).map_or(text, |(_, said)| said)
}
