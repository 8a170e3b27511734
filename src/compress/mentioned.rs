//! Finds what was said of the names that stand in a message without being asked for: the entry of a glossary for a term in the paragraph
//! to translate, who it is that stands at the door when the user says "Continue."

mod set;

use std::cmp::Reverse;
use std::collections::{HashMap, HashSet};
use std::ops::Range;
use std::sync::LazyLock;

use regex::Regex;

use crate::message::Role;
use crate::select::Asked;
use crate::text::analysis::Analysis;
use crate::text::bytes::lines;
use crate::text::references::chosen_in;
use crate::text::sentences::{last_sentences, sentences};
use crate::text::stop_words::names_one;
use crate::text::terms::{ShortTerm, scan};

use set::set_meant;

/// Most bytes of a message whose names are looked for, and most names.
const MAX_BYTES: usize = 4_000;
const MAX_NAMES: usize = 12;

/// Most other texts that have a name: the subject of a talk is in more.
const RARELY: usize = 4;

/// Most bytes of a line that is an entry, and of what it is about.
const MAX_ENTRY: usize = 160;
const MAX_HEAD: usize = 48;
/// An entry is one of at most so many lines about the same: more are what a speaker says. And the newest of them that are found.
const MAX_ALIKE: usize = 4;
const NEWEST: usize = 2;

/// Characters of a word in which a digit makes it a code.
const MAX_WORD: usize = 24;

/// A message with more terms says what it is about.
const FEW_TERMS: usize = 3;

/// What stands between the thing that an entry is about and what it says of it.
#[allow(clippy::expect_used)] // a test reads it
static SEPARATOR: LazyLock<Regex> =
    LazyLock::new(|| Regex::new(": |：| = |→|->| [–—-] |——|\\||\t").expect("SEPARATOR is a pattern"));
const AROUND: [char; 20] =
    [' ', '\t', '-', '*', '_', '`', '#', '>', '|', '•', '"', '“', '”', '„', '«', '»', '「', '」', '(', '（'];

/// A text of a conversation other than the message.
pub struct Other<'t, K> {
    pub key: K,
    /// The index of its message.
    pub message: usize,
    pub role: Role,
    pub text: &'t str,
    pub analysis: &'t Analysis,
}

/// Whose names are looked for, and where.
#[derive(Debug, Clone, Copy)]
enum Mentioning<'t> {
    /// A message: what it names has an entry of its own, a short line.
    Message(&'t str),
    /// The end of the reply from which the user goes on, or the item of it that the user chooses: any sentence may say more of these.
    Reply(&'t str),
}

/// A name in a text: terms that follow each other.
type Name = Vec<ShortTerm>;

/// Finds what the other texts of a conversation say of the names that stand in a message, or, where it `names_nothing` and says nothing
/// of its own, of those in the reply before it; of each the newest. Where that is nothing, too, the members of a set that it asks for.
/// O(terms), and O(bytes) of the texts with a name.
///
/// Of 440 terms of glossaries, in paragraphs to translate, 371, 351 and 279 were gone at 10, 25 and 50 % without it, with it 104, 19 and 12;
/// of 80 facts about somebody in the last reply 78, 69 and 48, with it none.
pub fn mentioned<K: Copy>(
    (index, message): (usize, &str),
    names_nothing: bool,
    mut texts: Vec<Other<'_, K>>,
) -> Vec<(K, Range<usize>)> {
    let last_before = |index: usize| texts.iter().rev().find(|of| of.message < index);
    let reply = last_before(index).filter(|of| names_nothing && of.role == Role::Assistant);
    // What ends work with tools is no talk that goes on.
    let reply = reply.filter(|of| last_before(of.message).is_some_and(|before| before.role == Role::User));
    let going_on = reply.and_then(|of| Some((of.message, Mentioning::going_on(message, of.text)?)));
    let found = match going_on {
        Some((reply, mentioning)) => {
            texts.retain(|of| of.message != reply);
            mentioning.find(&texts)
        }
        None => Mentioning::Message(message).find(&texts),
    };
    if found.is_empty() && names_nothing { set_meant(message, &texts) } else { found }
}

impl<'t> Mentioning<'t> {
    /// Returns the item of a reply that a message chooses, or the end of it from which the user goes on; `None` where the message says
    /// what it is about.
    fn going_on(message: &str, reply: &'t str) -> Option<Self> {
        if terms(message).len() > FEW_TERMS {
            return None;
        }
        let last = last_sentences(reply).first()?.start;
        Some(Self::Reply(&reply[chosen_in(reply, message).unwrap_or(last..reply.len())]))
    }

    /// Finds what `texts` say of the names, with their keys.
    fn find<K: Copy>(self, texts: &[Other<'_, K>]) -> Vec<(K, Range<usize>)> {
        let (Self::Message(said) | Self::Reply(said)) = self;
        let said_terms = if said.len() <= MAX_BYTES { terms(said) } else { Vec::new() };
        if said_terms.is_empty() {
            return Vec::new();
        }
        let asked = Asked::of(said_terms.iter().map(|(_, term)| *term));
        let of_text: Vec<HashSet<ShortTerm>> = texts.iter().map(|of| asked_in(&asked, of.analysis)).collect();
        let mut having: HashMap<ShortTerm, usize> = HashMap::new();
        of_text.iter().flatten().for_each(|term| *having.entry(*term).or_default() += 1);
        let is_rare = |term: ShortTerm| having.get(&term).is_some_and(|texts| *texts <= RARELY);
        let names = names(said, &said_terms, is_rare);
        let mut found: HashMap<Name, Vec<(usize, Range<usize>)>> = HashMap::new();
        for (nth, of) in texts.iter().enumerate().filter(|(nth, _)| !of_text[*nth].is_empty()) {
            let has_all = |name: &&Name| name.iter().all(|term| of_text[nth].contains(term));
            let known: Vec<&Name> = names.iter().filter(has_all).collect();
            let places = match self {
                Self::Message(_) => entries(of, &asked, &known),
                Self::Reply(_) => sentences_with(of.text, &known),
            };
            for (name, range) in places {
                found.entry(name).or_default().push((nth, range));
            }
        }
        found.retain(|_, places| places.len() <= MAX_ALIKE);
        let mut found: Vec<(usize, Range<usize>)> = found.into_values().flat_map(newest).collect();
        // The newest first.
        found.sort_unstable_by_key(|(nth, range)| (Reverse(*nth), range.start, range.end));
        found.dedup();
        found.truncate(MAX_NAMES);
        found.into_iter().map(|(nth, range)| (texts[nth].key, range)).collect()
    }
}

fn newest(mut places: Vec<(usize, Range<usize>)>) -> Vec<(usize, Range<usize>)> {
    places.split_off(places.len().saturating_sub(NEWEST))
}

/// Returns the words of a text that may name something, with their places, in order. Codes and numbers ask by themselves.
fn terms(text: &str) -> Vec<(usize, ShortTerm)> {
    let mut terms = Vec::new();
    scan(text, |term, start| {
        let term = term.short().as_word();
        let mut word = text[start..].chars().take(MAX_WORD).take_while(|c| c.is_alphanumeric());
        let mut has_digit = || word.any(|c| c.is_ascii_digit());
        terms.extend((names_one(term) && !has_digit()).then_some((start, term)));
    });
    terms.sort_by_key(|(start, _)| *start);
    terms
}

fn bare(text: &str) -> HashSet<ShortTerm> {
    terms(text).into_iter().map(|(_, term)| term).collect()
}

fn asked_in(asked: &Asked, analysis: &Analysis) -> HashSet<ShortTerm> {
    analysis.terms.iter().map(|term| term.as_word()).filter(|term| asked.contains(*term)).collect()
}

/// Returns the names in a text, the last first: rare terms with nothing but a space or a hyphen between them.
fn names(text: &str, terms: &[(usize, ShortTerm)], is_rare: impl Fn(ShortTerm) -> bool) -> Vec<Name> {
    let mut names: Vec<Name> = Vec::new();
    let mut before: Option<usize> = None;
    for &(start, term) in terms.iter().filter(|(_, term)| is_rare(*term)) {
        let follows = |before: usize| {
            let word = text[before..start].strip_suffix([' ', '-']).unwrap_or(&text[before..start]);
            word.chars().all(char::is_alphanumeric)
        };
        match names.last_mut().filter(|_| before.is_some_and(follows)) {
            Some(name) => name.push(term),
            None => names.push(vec![term]),
        }
        before = Some(start);
    }
    names.reverse();
    names.truncate(MAX_NAMES);
    names
}

/// Returns the sentences of a text with some of the `names`, by these.
fn sentences_with(text: &str, names: &[&Name]) -> Vec<(Name, Range<usize>)> {
    let mut found = Vec::new();
    for range in sentences(text).filter(|_| !names.is_empty()) {
        let terms = bare(&text[range.clone()]);
        let said = names.iter().filter(|name| name.iter().all(|term| terms.contains(term)));
        found.extend(said.map(|&name| (name.clone(), range.clone())));
    }
    found
}

/// Returns the short lines of a text, by what they are about: what stands before a separator, if that was asked, or one of the `names`.
fn entries<K>(of: &Other<'_, K>, asked: &Asked, names: &[&Name]) -> Vec<(Name, Range<usize>)> {
    let text = of.text;
    let whole = text.trim().len();
    let (mut found, mut at) = (Vec::new(), 0);
    // Most parts have no term of the message, and none of their lines need be read.
    let mut asked_parts = asked_parts(asked, of.analysis).peekable();
    for line in lines(text) {
        let range = at..at + line.len();
        at = range.end;
        while asked_parts.next_if(|part| part.end <= range.start).is_some() {}
        let Some(part) = asked_parts.peek() else { break };
        // A text of one line is a message, no list.
        if range.end <= part.start || line.len() > MAX_ENTRY || line.trim().len() == whole {
            continue;
        }
        let mut about: Name = head(line).map(terms).unwrap_or_default().into_iter().map(|(_, term)| term).collect();
        if !about.is_empty() && about.iter().all(|term| asked.contains(*term)) {
            about.sort_unstable_by_key(|term| term.hash());
            found.push((about, range));
        } else if !names.is_empty() {
            let of_line = bare(line);
            let first = names.iter().find(|name| name.iter().all(|term| of_line.contains(term)));
            found.extend(first.map(|&name| (name.clone(), range)));
        }
    }
    found
}

/// Iterates over the ranges of the parts that have an asked term.
fn asked_parts(asked: &Asked, analysis: &Analysis) -> impl Iterator<Item = Range<usize>> {
    let parts = analysis.ranges().zip(analysis.byte_ranges());
    let has_some = |terms: Range<usize>| analysis.terms[terms].iter().any(|term| asked.contains(term.as_word()));
    parts.filter(move |((_, terms), _)| has_some(terms.clone())).map(|(_, (_, bytes))| bytes)
}

/// Returns what an entry is about: `Raven` of `- **Raven** – der Rabe`, `| Raven | der Rabe |`.
fn head(line: &str) -> Option<&str> {
    let bare = line.trim_start_matches(AROUND);
    let start = &bare[..bare.floor_char_boundary(MAX_HEAD)];
    let end = SEPARATOR.find(start)?.start();
    Some(start[..end].trim_matches(AROUND)).filter(|head| !head.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::text::analysis::Form;

    fn found<'t>(of: Mentioning<'_>, texts: &[&'t str]) -> Vec<&'t str> {
        let analyses: Vec<_> = texts.iter().map(|text| Analysis::of(text, Form::Outlined)).collect();
        let other = |nth: usize| Other {
            key: nth,
            message: nth,
            role: Role::Assistant,
            text: texts[nth],
            analysis: &analyses[nth],
        };
        let others: Vec<Other<'_, usize>> = (0..texts.len()).map(other).collect();
        of.find(&others).into_iter().map(|(nth, range)| texts[nth][range].trim()).collect()
    }

    #[test]
    fn an_entry_is_about_what_stands_before_its_separator() {
        for (line, about) in [
            ("- Windrift: Windscheid", Some("Windrift")),
            ("| Windrift | Windscheid |", Some("Windrift")),
            ("**Windrift** = Windscheid", Some("Windrift")),
            ("Windrift → Windscheid", Some("Windrift")),
            ("「雾议会」——Mistcouncil", Some("雾议会")),
            ("They reached Windrift.", None),
            ("---", None),
            ("", None),
        ] {
            assert_eq!(head(line), about, "{line}");
        }
    }

    #[test]
    fn entries_for_the_names_of_a_message_are_found() {
        let list = "Agreed:\n- Windrift: Windscheid\n- Ashwarden: Aschehüter\n- Brinemother: Salzmutter";
        let others = ["They went to the Windrift and came back.", "And then it was noon."];
        let message = Mentioning::Message("Beyond Windrift they met an Ashwarden and nobody else at all.");
        let entries = ["- Windrift: Windscheid", "- Ashwarden: Aschehüter"];
        assert_eq!(found(message, &[list, others[0], others[1]]), entries);
        // What a speaker says is no entry.
        let chat = "Windrift: hello\nWindrift: again\nWindrift: so\nWindrift: and\nWindrift: bye";
        assert_eq!(found(message, &[chat, others[1]]), Vec::<&str>::new());
    }

    #[test]
    fn the_user_goes_on_from_the_end_of_a_reply_or_its_item() {
        let reply = "It rained. What do you do?\n1. Visit Halda Brook\n2. Wake Edwin Sorrel";
        let said = ["Halda Brook lost two fingers. It rained.", "Edwin Sorrel owes him a boat."];
        let of = |message| Mentioning::going_on(message, reply).map(|of| found(of, &said));
        assert_eq!(of("1"), Some(vec!["Halda Brook lost two fingers."]));
        assert_eq!(of("Go on."), Some(vec!["Edwin Sorrel owes him a boat.", "Halda Brook lost two fingers."]));
        assert_eq!(of("Tell me which of the old harbour taxes were raised by whom."), None);
    }
}
