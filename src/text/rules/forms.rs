//! Forms of sentences, and of verbs that ask for something: imperatives by ending.

use std::hash::Hasher;

use xxhash_rust::xxh3::Xxh3Default;

use crate::text::bytes::FIRST_WIDE;

/// Hashes of a sentence without its names and numbers, and of these: what is said again and again has the same form.
#[derive(Debug, Clone, Copy)]
pub struct Form {
    pub words: u64,
    pub names: u64,
}

impl Form {
    /// Returns the form of a sentence that has words. O(n).
    pub fn of(sentence: &str) -> Option<Self> {
        let (mut words, mut names, mut is_first) = (Xxh3Default::new(), Xxh3Default::new(), true);
        for word in sentence.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty()) {
            // Scripts without spaces have names of others within a word: "Lima今天天气怎么样".
            let is_wide = word.contains(|c: char| c >= FIRST_WIDE);
            let is_name = !is_first && word.starts_with(char::is_uppercase);
            for c in word.chars() {
                let is_word = if is_wide { c >= FIRST_WIDE } else { !is_name && c.is_alphabetic() };
                (if is_word { &mut words } else { &mut names }).write_u32(c.into());
                is_first &= !is_word;
            }
        }
        (!is_first).then(|| Self { words: words.finish(), names: names.finish() })
    }
}

/// Returns the imperatives of a verb, given as a stem (German) or an infinitive; other words stand for themselves.
pub fn forms(language: &str, verb: &str) -> Vec<String> {
    let with = |endings: &[(&str, &[&str])]| {
        let found = endings.iter().find_map(|(ending, new)| Some((verb.strip_suffix(ending)?, *new)));
        found.map(|(stem, new)| new.iter().map(|new| format!("{stem}{new}")).collect::<Vec<_>>())
    };
    let forms = match language {
        "de" if !verb.ends_with('e') => Some(vec![verb.to_owned(), format!("{verb}e")]),
        "ru" => Some(vec![verb.to_owned(), format!("{verb}те")]),
        "fr" => with(&[("yer", &["ie"]), ("er", &["e"])]),
        "es" => with(&[("ar", &["a"]), ("er", &["e"]), ("ir", &["e"])]),
        "pt" => with(&[
            ("gar", &["gue", "ga"]),
            ("car", &["que", "ca"]),
            ("çar", &["ce", "ça"]),
            ("ar", &["e", "a"]),
            ("er", &["a", "e"]),
            ("ir", &["a", "e"]),
        ]),
        "it" => with(&[("are", &["a"]), ("ere", &["i"]), ("ire", &["i"])]),
        _ => None,
    };
    forms.unwrap_or_else(|| vec![verb.to_owned()])
}

/// Pronouns at the end of Spanish and Italian imperatives; longer ones first.
const CLITICS: [&str; 26] = [
    "melo", "mela", "melos", "melas", "selo", "sela", "glielo", "gliela", "meli", "mele", "telo", "celo", "los", "las",
    "les", "nos", "lo", "la", "li", "le", "me", "te", "mi", "ti", "ci", "ne",
];

/// Returns what a verb with a pronoun at its end is without: "explícalo", "avvisami". An accent moves to another syllable.
pub fn verbs_of(word: &str) -> impl Iterator<Item = String> {
    CLITICS.iter().filter_map(move |clitic| {
        let stem = word.strip_suffix(clitic).filter(|stem| stem.len() > 3 && stem.ends_with(['a', 'e', 'i']))?;
        // "verwendete"
        if *clitic == "te" && stem.is_ascii() {
            return None;
        }
        let plain = |c| match c {
            'á' => 'a',
            'é' => 'e',
            'í' => 'i',
            'ó' => 'o',
            'ú' => 'u',
            other => other,
        };
        Some(stem.chars().map(plain).collect())
    })
}

/// Nouns and other words that end as Russian and French imperatives do.
const NO_VERBS: [&str; 24] = [
    "случай",
    "трамвай",
    "урожай",
    "китай",
    "обычай",
    "попугай",
    "каравай",
    "поцелуй",
    "сарай",
    "николай",
    "михай",
    "лишай",
    "горностай",
    "край",
    "чай",
    "рай",
    "май",
    "туй",
    "assez",
    "rendez",
    "chez",
    "nez",
    "давай",
    "давайте",
];

/// Pronouns behind a French imperative.
const BEHIND: [&str; 8] = ["-moi", "-toi", "-le", "-la", "-les", "-lui", "-leur", "-en"];

/// Returns whether a word is a French or Russian imperative by its ending, or by a pronoun in `behind`.
pub fn asks_by_form(word: &str, behind: &str) -> bool {
    if word.is_ascii() || word.starts_with(|c: char| c.is_ascii() || matches!(c, 'é' | 'à' | 'ê')) {
        let is_bound = || {
            BEHIND.iter().any(|pronoun| {
                behind.strip_prefix(pronoun).is_some_and(|rest| !rest.starts_with(char::is_alphanumeric))
            })
        };
        return word.len() > 4 && word.ends_with("ez") && !NO_VERBS.contains(&word)
            || behind.starts_with('-') && is_bound();
    }
    let ends = |endings: &[&str]| endings.iter().any(|ending| word.ends_with(ending));
    word.starts_with(|c: char| ('а'..='я').contains(&c))
        && (ends(&["ай", "яй", "уй", "юй"]) && word.chars().count() > 3 && !NO_VERBS.contains(&word)
            || ends(&["йте", "ьте", "йся", "йтесь"])
            || word.ends_with("ись") && !ends(&["лись", "пись"]))
}
