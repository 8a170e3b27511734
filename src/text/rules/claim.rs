//! What one sentence of the user is to those that follow it.
//!
//! Single words decide, not whole phrases: words that make something hold for good, a verb that asks at the start, the first
//! person. `rules.tsv` has them by language.

use std::collections::HashMap;
use std::sync::LazyLock;

use xxhash_rust::xxh3::xxh3_64;

use super::MAX_RULE_BYTES;
use crate::text::bytes::Filter;

/// What a sentence is to those that follow it. What matters more comes last.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Claim {
    /// Said in the first person.
    Told,
    /// Said in a few words, whatever they are: "Metric units."
    Brief,
    /// Asks for something, maybe once.
    Wish,
    /// What the user is, has, needs or cannot do, maybe for now.
    Trait,
    /// Who the user is, lives and works as, what the user prefers or cannot stand.
    Fact,
    /// Asks for something in words that rules have, too, maybe once: "Tell me all that it says."
    Order,
    /// Holds for good.
    Rule,
}

/// What a word says of its sentence.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Sign {
    Claims(Claim),
    /// Asks for how something is done.
    Manner,
    /// A wish with this in it is a rule: it says for what it holds.
    Bound,
    /// A wish with this in it is an order, and a rule where it asks for how something is done.
    Hint,
}

/// Where a word is a sign.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Place {
    Anywhere,
    /// Where a sentence starts.
    Start,
    /// Where it ends.
    End,
    /// Where a part of a sentence starts, in a script without spaces.
    Clause,
}

/// The words behind the first of a phrase, and what it is a sign of.
type Phrase = (Vec<&'static str>, Sign, Place);

/// The words of `rules.tsv`.
struct Lexicon {
    /// By first word.
    spaced: HashMap<&'static str, Vec<Phrase>>,
    /// Tells most other words from these.
    known: Filter<256>,
    /// Of scripts without spaces, by first character.
    wide: HashMap<char, Vec<(&'static str, Sign, Place)>>,
}

static LEXICON: LazyLock<Lexicon> = LazyLock::new(|| {
    let mut lexicon = Lexicon { spaced: HashMap::new(), known: Filter::of([]), wide: HashMap::new() };
    for row in include_str!("../rules.tsv").lines().filter(|row| !row.starts_with('#')) {
        let mut cells = row.split('\t');
        let (Some(kind), Some(place), Some(phrases)) = (cells.next(), cells.next(), cells.next()) else { continue };
        let sign = match kind {
            "rule" => Sign::Claims(Claim::Rule),
            "fact" => Sign::Claims(Claim::Fact),
            "trait" => Sign::Claims(Claim::Trait),
            "wish" => Sign::Claims(Claim::Wish),
            "tells" => Sign::Claims(Claim::Told),
            "manner" => Sign::Manner,
            "hint" => Sign::Hint,
            _ => Sign::Bound,
        };
        for phrase in phrases.split(", ") {
            match place {
                "in" | "clause" => {
                    let place = if place == "in" { Place::Anywhere } else { Place::Clause };
                    if let Some(first) = phrase.chars().next() {
                        lexicon.wide.entry(first).or_default().push((phrase, sign, place));
                    }
                }
                _ => {
                    let place = match place {
                        "start" => Place::Start,
                        "end" => Place::End,
                        _ => Place::Anywhere,
                    };
                    let mut words = words(phrase).map(|(_, word)| word);
                    if let Some(first) = words.next() {
                        lexicon.spaced.entry(first).or_default().push((words.collect(), sign, place));
                    }
                }
            }
        }
    }
    lexicon.known = Filter::of(lexicon.spaced.keys().map(|word| xxh3_64(word.as_bytes())));
    lexicon
});

/// Words before the first that says something: "And one more thing: …".
const FILLERS: &str = "and also so then but ok okay oh hey hi hello well btw yes und aber außerdem et aussi mais y e pero también now again just \
    thanks please fyi ps";

/// Who is told of, and the most characters between them and what they did.
const PRONOUNS: [&str; 11] = ["i", "he", "she", "they", "it", "er", "il", "elle", "ils", "ella", "ellos"];
const MAX_TOLD_CHARS: usize = 24;

/// Most characters of a heading that say what its rule is for.
const MAX_HEADING_CHARS: usize = 40;

/// Most words of a sentence that is brief, and how many characters it has in a script without spaces, which begins with the
/// last of these; a word of another script counts as two.
const MAX_BRIEF_WORDS: usize = 8;
const MIN_BRIEF_CHARACTERS: usize = 4;
const MAX_BRIEF_CHARACTERS: usize = 16;
const FIRST_WIDE: char = '\u{2e80}';

/// Returns what a sentence is to those that follow it.
pub fn claim(sentence: &str) -> Option<Claim> {
    let said = sentence.trim();
    let is_short = said.is_ascii() && !said.contains(' ');
    if said.len() > MAX_RULE_BYTES || is_short || is_asked(said) {
        return None;
    }
    let said = said.to_lowercase().replace('’', "'");
    let words: Vec<(usize, &str)> = words(&said).collect();
    let (mut best, mut signs) = (None, Vec::new());
    let mut meet = |sign| {
        let claim = match sign {
            Sign::Claims(claim) => Some(claim),
            Sign::Manner => Some(Claim::Wish),
            Sign::Bound | Sign::Hint => None,
        };
        best = best.max(claim);
        signs.push(sign);
    };
    let mut is_start = true;
    for (i, &(at, word)) in words.iter().enumerate() {
        // Behind a heading something starts anew.
        is_start |= (1..8).contains(&i) && said[..at].trim_end().ends_with([':', '–', '—']);
        let known = LEXICON.known.may_have(xxh3_64(word.as_bytes())).then(|| LEXICON.spaced.get(word)).flatten();
        for (rest, sign, place) in known.into_iter().flatten() {
            let follows =
                rest.iter().zip(&words[i + 1..]).filter(|(want, (_, word))| *want == word).count() == rest.len();
            // "At most of them" is no limit.
            let is_part_of = || rest == &["most"] && words.get(i + 2).is_some_and(|(_, word)| *word == "of");
            if !follows
                || is_part_of()
                || (*place == Place::Start && !is_start)
                || (*place == Place::End && i + rest.len() + 1 < words.len())
                || (matches!(sign, Sign::Bound | Sign::Hint) && is_start)
            {
                continue;
            }
            let is_rule = *sign == Sign::Claims(Claim::Rule);
            if is_rule && *place == Place::End && PRONOUNS.contains(&words[0].1.trim_end_matches('\'')) {
                continue;
            }
            if is_rule && *place == Place::Anywhere && is_told(&said[..at]) {
                // "I never eat meat" is told of the user, "she never said so" of nobody who is here.
                if !matches!(words[0].1, "i" | "i'" | "ich" | "we") {
                    return None;
                }
                continue;
            }
            meet(*sign);
        }
        is_start = is_start
            && (word.bytes().all(|byte| byte.is_ascii_digit()) || FILLERS.split(' ').any(|filler| filler == word));
        if matches!(word, "rule" | "rules") && is_heading(&said[at + word.len()..]) {
            meet(Sign::Claims(Claim::Rule));
        }
    }
    if !said.is_ascii() {
        for (at, c) in said.char_indices().filter(|(_, c)| !c.is_ascii()) {
            for (phrase, sign, place) in LEXICON.wide.get(&c).into_iter().flatten() {
                if said[at..].starts_with(phrase) && (*place == Place::Anywhere || starts_clause(&said, at, phrase)) {
                    meet(*sign);
                }
            }
        }
    }
    let has = |sign| signs.contains(&sign);
    match best {
        None | Some(Claim::Told) if is_brief(&said, &words) => Some(Claim::Brief),
        Some(Claim::Wish) if has(Sign::Bound) || has(Sign::Manner) && has(Sign::Hint) => Some(Claim::Rule),
        Some(Claim::Wish) if has(Sign::Hint) => Some(Claim::Order),
        best => best,
    }
}

/// Returns whether a sentence has a few words.
fn is_brief(said: &str, words: &[(usize, &str)]) -> bool {
    let wide = if said.is_ascii() { 0 } else { said.chars().filter(|&c| c >= FIRST_WIDE).count() };
    if wide == 0 {
        return (2..=MAX_BRIEF_WORDS).contains(&words.len());
    }
    let others = words.iter().filter(|(_, word)| word.is_ascii()).count();
    (MIN_BRIEF_CHARACTERS..=MAX_BRIEF_CHARACTERS).contains(&(wide + 2 * others))
}

/// Returns whether a sentence asks.
fn is_asked(sentence: &str) -> bool {
    sentence.ends_with(['?', '？'])
        || ["吗", "呢", "か。", "嗎"]
            .iter()
            .any(|end| sentence.trim_end_matches(['。', '！']).ends_with(end) || sentence.ends_with(end))
}

/// Returns whether a phrase opens a part of a Chinese sentence, as it does behind "你" and the like.
fn starts_clause(said: &str, at: usize, phrase: &str) -> bool {
    let before = said[..at]
        .trim_end_matches(['你', '您', '就', '也', '还', '都', '再', '那', '么', '要', '另', '外', '对', '了', ' ']);
    let is_start = before.is_empty() || before.ends_with(|c: char| !c.is_alphanumeric());
    // 别人, 只是, 请问, 先生, 用户: other words.
    let behind = &said[at + phrase.len()..];
    let goes_on = |words: &[&str]| words.iter().any(|word| behind.starts_with(word));
    is_start
        && !match phrase {
            "别" | "別" => goes_on(&["人", "的", "处", "墅", "名", "说"]),
            "只" => goes_on(&["是", "有", "好", "见", "不过"]),
            "请" | "請" => goes_on(&["问", "問", "教", "假", "客", "帖"]),
            "先" => goes_on(&["生", "前", "后", "天", "进"]),
            "用" => goes_on(&["户", "戶", "途", "过", "了"]),
            "让" => goes_on(&["我们看", "人"]),
            _ => false,
        }
}

/// Returns the words of a text in lower case; an apostrophe ends one: "don'" and "t".
fn words(text: &str) -> impl Iterator<Item = (usize, &str)> {
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

/// Returns whether a word behind `before` tells what somebody does: "she says they never".
fn is_told(before: &str) -> bool {
    let clause = before.rsplit([',', '.', ';', ':']).next().unwrap_or(before);
    words(clause).any(|(at, word)| {
        let word_end = at + word.len();
        // "they've"
        let behind = clause[word_end..].trim_start_matches(|c: char| word.ends_with('\'') && c.is_ascii_alphabetic());
        PRONOUNS.contains(&word.trim_end_matches('\'')) && behind.chars().count() <= MAX_TOLD_CHARS
    })
}

/// Returns whether what stands behind "rule" makes it a heading, with something behind that on its line.
fn is_heading(text: &str) -> bool {
    let said = match text.strip_prefix(" for ") {
        Some(what) => {
            let mut near = what.char_indices().take(MAX_HEADING_CHARS + 1);
            near.find(|(_, c)| *c == ':').filter(|(at, _)| *at > 0).map(|(at, _)| &what[at + 1..])
        }
        None => text.strip_prefix(':'),
    };
    said.is_some_and(|said| said.trim_start_matches([' ', '\t']).starts_with(|c: char| !c.is_whitespace()))
}
