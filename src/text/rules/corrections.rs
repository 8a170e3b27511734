//! Finds what corrects a rule without words of a rule: "Port 7070 it is." behind "Use port 8080 from now on."
//!
//! It has a word of the rule, of which the user hardly speaks otherwise, in few words.

use std::borrow::Cow;
use std::collections::HashMap;
use std::ops::Range;

use xxhash_rust::xxh3::xxh3_64;

use super::claim::is_asked;
use super::typed::typed;
use super::{Claim, Said, TYPED_BYTES, sentences_in};
use crate::tokens::BuildMixedHasher;

/// The least claim that may be corrected.
const LEAST: Claim = Claim::Wish;

/// Most mentions of a subject by the user, from the rule on: where rules are few, and where they are usual. With 5 for the latter, too,
/// .298 of the evidence of Chinese meetings stays at 25 % in place of .309.
const MAX_MENTIONS: usize = 5;
const MAX_OF_USUAL: usize = 2;
/// Most bytes of a text in the latter case: in mails and articles that are pasted many sentences share a rare word with another.
const MAX_TEXT_OF_USUAL: usize = 400;

/// Fewest bytes of such a word; most bytes of a correction.
const MIN_WORD_BYTES: usize = 3;
const MAX_BYTES: usize = 120;

/// Letters of scripts without spaces, between the punctuation before and the full-width forms behind them.
const WIDE: Range<char> = '\u{3040}'..'\u{ff00}';

/// A word of a rule.
struct Subject {
    claim: Claim,
    mentions: usize,
    /// The newest sentence with it that claims less: its text and range.
    newest: Option<(usize, Range<usize>)>,
}

type Subjects = HashMap<u64, Subject, BuildMixedHasher>;

/// Gives the claim of a rule to the newest sentence that corrects it, in what the user says in `texts`, oldest first. What claims
/// none of `rare` is no rule; `are_few` says whether these are few together. O(n).
pub fn raise_corrections<'t>(texts: impl Iterator<Item = (&'t str, &'t mut Said)>, rare: &[Claim], are_few: bool) {
    let mut texts: Vec<_> = texts.collect();
    let is_rule = |claim: Claim| claim >= LEAST && rare.contains(&claim);
    let states_rules = |said: &Said| said.claims.iter().any(|(claim, _)| is_rule(*claim));
    let Some(first) = texts.iter().position(|(_, said)| states_rules(said)) else { return };
    let (max_mentions, max_bytes) =
        if are_few { (MAX_MENTIONS, 2 * TYPED_BYTES) } else { (MAX_OF_USUAL, MAX_TEXT_OF_USUAL) };
    let is_rare = |subject: &Subject| subject.mentions <= max_mentions;
    let mut subjects = Subjects::default();
    for (index, (text, said)) in texts.iter().enumerate().skip(first).filter(|(_, (text, _))| text.len() <= max_bytes) {
        read(index, text, said, is_rule, is_rare, &mut subjects);
    }
    for Subject { claim, newest, .. } in subjects.into_values().filter(is_rare) {
        let Some((index, sentence)) = newest else { continue };
        let claims = &mut texts[index].1.claims;
        let at = claims.partition_point(|(_, other)| other.end <= sentence.start);
        match claims.get_mut(at) {
            Some((other, range)) if range.start < sentence.end => *other = claim.max(*other),
            _ => claims.insert(at, (claim, sentence)),
        }
    }
}

/// Looks for the subjects in a text, and adds those of its claims.
fn read(
    index: usize,
    text: &str,
    said: &Said,
    is_rule: impl Fn(Claim) -> bool,
    is_rare: impl Fn(&Subject) -> bool,
    subjects: &mut Subjects,
) {
    // Most texts have no subject, and to split them costs as much again.
    let has_subject = || subjects_of(text).any(|word| subjects.get(&word).is_some_and(&is_rare));
    if !said.claims.iter().any(|(claim, _)| is_rule(*claim)) && !has_subject() {
        return;
    }
    let mut claims = said.claims.iter().peekable();
    for sentence in typed(text).flat_map(|line| sentences_in(text, line)) {
        while claims.next_if(|(_, at)| at.end <= sentence.start).is_some() {}
        let claim = claims.peek().filter(|(_, at)| at.start < sentence.end).map(|(claim, _)| *claim);
        let said = text[sentence.clone()].trim();
        let is_correction = said.len() <= MAX_BYTES && !is_asked(said);
        for word in subjects_of(said) {
            if let Some(subject) = subjects.get_mut(&word) {
                subject.mentions += 1;
                if is_correction && claim < Some(subject.claim) {
                    subject.newest = Some((index, sentence.clone()));
                }
            }
            if let Some(claim) = claim.filter(|claim| is_rule(*claim)) {
                let subject = subjects.entry(word).or_insert(Subject { claim, mentions: 1, newest: None });
                subject.claim = subject.claim.max(claim);
            }
        }
    }
}

/// Returns the hashes of the words that may name a subject; in scripts without spaces, of each two characters.
fn subjects_of(said: &str) -> impl Iterator<Item = u64> {
    let named = said.split(|c: char| WIDE.contains(&c) || !c.is_alphanumeric());
    let named = named.filter(|word| word.len() >= MIN_WORD_BYTES).map(|word| {
        let is_lower = word.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit());
        let word = if is_lower { Cow::Borrowed(word) } else { Cow::Owned(word.to_lowercase()) };
        xxh3_64(word.strip_suffix('s').unwrap_or(&word).as_bytes())
    });
    let mut before = '\0';
    let pairs = (if said.is_ascii() { "" } else { said }).chars().filter_map(move |c| {
        let first = std::mem::replace(&mut before, c);
        (WIDE.contains(&first) && WIDE.contains(&c)).then(|| u64::from(first) << 32 | u64::from(c))
    });
    named.chain(pairs)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::text::rules::said;

    /// Returns the sentences of some messages that claim at least [`LEAST`].
    fn held<'t>(texts: &[&'t str]) -> Vec<&'t str> {
        let mut all: Vec<Said> = texts.iter().map(|text| said(text)).collect();
        raise_corrections(texts.iter().copied().zip(&mut all), &[Claim::Rule, Claim::Wish, Claim::Fact], true);
        let held = |(text, said): (&&'t str, Said)| {
            let held = said.claims.into_iter().filter(|(claim, _)| *claim >= LEAST);
            held.map(|(_, at)| text[at].trim()).collect::<Vec<_>>()
        };
        texts.iter().zip(all).flat_map(held).collect()
    }

    #[test]
    fn the_newest_sentence_about_the_subject_of_a_rule_holds_as_the_rule_does() {
        let talk =
            ["Always use port 8080.", "The ports? 9090, it was. Fine.", "What a day. Port 7070 it is. Bye now.", "Go."];
        assert_eq!(held(&talk), ["Always use port 8080.", "Port 7070 it is."]);
        assert_eq!(
            held(&["以后都用8080端口。", "今天不错。还是7070端口吧。"]),
            ["以后都用8080端口。", "还是7070端口吧。"]
        );
    }

    #[test]
    fn what_is_asked_or_often_said_corrects_nothing() {
        assert_eq!(held(&["Always use port 8080.", "Which port is it?"]).len(), 1);
        let often = "The port is crowded today, they say.";
        let mut talk = vec!["Always use port 8080."; 1];
        talk.extend([often; MAX_MENTIONS]);
        assert_eq!(held(&talk).len(), 1);
        assert_eq!(held(&["Port 7070 it is.", "Always use port 8080."]), ["Always use port 8080."]);
    }
}
