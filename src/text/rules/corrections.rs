//! Finds what corrects a rule without words of a rule: "Port 7070 it is." behind "Use port 8080 from now on."
//!
//! It has a word of the rule, of which the user hardly speaks otherwise, in few words.

use std::borrow::Cow;
use std::collections::{HashMap, HashSet};
use std::ops::Range;
use std::sync::LazyLock;

use xxhash_rust::xxh3::xxh3_64;

use super::changes::may_change;
use super::claim::{is_asked, is_firm};
use super::typed::typed;
use super::{Claim, Said, TYPED_BYTES, sentences_in};
use crate::text::envelope::without_speaker;
use crate::text::stop_list::stop_words;
use crate::tokens::BuildMixedHasher;

/// Most mentions of a subject by the user, from the rule on: where rules are few, and where they are usual. With 5 for the latter, too,
/// .298 of the evidence of Chinese meetings stays at 25 % in place of .309.
const MAX_MENTIONS: usize = 5;
const MAX_OF_USUAL: usize = 2;
/// Most bytes of a text in the latter case: in mails and articles that are pasted many sentences share a rare word with another. Up to
/// the second a sentence with a word of change may correct: of 384 rules that were corrected or taken back at the end of other
/// sentences the old one stays alone in 117 without that, in 27 with it.
const MAX_TEXT_OF_USUAL: usize = 400;
const MAX_LONG_TEXT_OF_USUAL: usize = 2_000;

/// Fewest bytes of such a word; most bytes of a correction.
const MIN_WORD_BYTES: usize = 3;
const MAX_BYTES: usize = 120;

/// A sentence of more words with one of a rule, and none of change, is listed as no correction.
const FEW_WORDS: usize = 4;

/// Letters of scripts without spaces, between the punctuation before and the full-width forms behind them.
const WIDE: Range<char> = '\u{3040}'..'\u{ff00}';

/// Words of rules that forbid, and of sentences that permit.
const FORBIDDING: [&str; 31] = [
    "never",
    "not",
    "don",
    "dont",
    "no",
    "stop",
    "avoid",
    "without",
    "forbidden",
    "hands",
    "off",
    "nie",
    "niemals",
    "nicht",
    "kein",
    "keine",
    "jamais",
    "pas",
    "nunca",
    "jamás",
    "mai",
    "non",
    "não",
    "niet",
    "nooit",
    "geen",
    "nigdy",
    "не",
    "никогда",
    "ніколи",
    "asla",
];
const FORBIDDING_WIDE: [&str; 8] = ["不", "别", "別", "勿", "禁", "ない", "ません", "금지"];
const PERMITTING: [&str; 32] = [
    "is",
    "are",
    "can",
    "may",
    "ok",
    "okay",
    "fine",
    "allowed",
    "ist",
    "darf",
    "darfst",
    "est",
    "peux",
    "peut",
    "puedes",
    "puede",
    "può",
    "pode",
    "podes",
    "podem",
    "można",
    "możesz",
    "mogen",
    "mag",
    "geht",
    "dürfen",
    "får",
    "må",
    "saa",
    "μπορείς",
    "можеш",
    "можно",
];
const PERMITTING_WIDE: [&str; 5] = ["可以", "允许", "能", "いい", "괜찮"];

/// Words that start rules of any subject.
const STARTING_ANY: [&str; 9] = ["only", "do", "please", "let", "make", "always", "keep", "the", "you"];

/// Words that are no subject of a sentence, besides stop words.
const FILLERS: [&str; 7] = ["okay", "sure", "yeah", "yep", "well", "thanks", "hello"];

static NO_SUBJECTS: LazyLock<HashSet<u64>> = LazyLock::new(|| stop_words().chain(FILLERS).flat_map(words_of).collect());

/// A word of a rule.
struct Subject {
    claim: Claim,
    /// Whether one word tells that a sentence is about the rule.
    is_enough: bool,
    /// Whether the rule forbids: an order with this word is what it forbids, and takes nothing back.
    forbids: bool,
    mentions: usize,
    /// The newest sentence with it that claims less: its text and range.
    newest: Option<(usize, Range<usize>)>,
}

/// What corrections are looked for.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Wanted {
    /// Those to be listed as what holds. One word of a rule tells what is about it if the rule is firm, for others a sentence also
    /// begins as one of them does; and what asks for something is the work at hand. In the talk of many a name before what is said is
    /// no word of it.
    Standing { of_many: bool },
    /// Those that stay in the conversation, where one too many does little harm: one word tells.
    Kept,
}

type Subjects = HashMap<u64, Subject, BuildMixedHasher>;

/// Gives the claim of a rule to the newest sentence that corrects it, in what the user says in `texts`, oldest first. What claims
/// none of `claims` is no rule; `are_few` says whether these are few together. O(n).
pub fn raise_corrections<'t>(
    texts: impl Iterator<Item = (&'t str, &'t mut Said)>,
    claims: &[Claim],
    are_few: bool,
    wanted: Wanted,
) {
    let mut texts: Vec<_> = texts.collect();
    let is_rule = |claim: Claim| claims.contains(&claim);
    let states_rules = |said: &Said| said.claims.iter().any(|(claim, _)| is_rule(*claim));
    let Some(first) = texts.iter().position(|(_, said)| states_rules(said)) else { return };
    let (max_mentions, long_bytes, most_bytes) = if are_few {
        (MAX_MENTIONS, 2 * TYPED_BYTES, 2 * TYPED_BYTES)
    } else {
        (MAX_OF_USUAL, MAX_TEXT_OF_USUAL, MAX_LONG_TEXT_OF_USUAL)
    };
    let is_rare = |subject: &Subject| subject.mentions <= max_mentions;
    let mut subjects = Subjects::default();
    let is_read = |(_, (text, _)): &(usize, &(&str, _))| text.len() <= most_bytes;
    for (index, (text, said)) in texts.iter().enumerate().skip(first).filter(is_read) {
        read((index, text, said), text.len() > long_bytes, (is_rule, wanted), is_rare, &mut subjects);
    }
    for Subject { claim, newest, .. } in subjects.into_values().filter(is_rare) {
        let Some((index, sentence)) = newest else { continue };
        texts[index].1.raise(sentence, claim);
    }
}

/// Looks for the subjects in a text, and adds those of its claims; of a long one only in sentences with a word of change.
fn read(
    (index, text, said): (usize, &str, &Said),
    is_long: bool,
    (is_rule, wanted): (impl Fn(Claim) -> bool, Wanted),
    is_rare: impl Fn(&Subject) -> bool,
    subjects: &mut Subjects,
) {
    // Most texts have no subject, and to split them costs as much again.
    let has_subject = || subjects_of(text).any(|word| subjects.get(&word).is_some_and(&is_rare));
    if !said.claims.iter().any(|(claim, _)| is_rule(*claim)) && !has_subject() {
        return;
    }
    let (mut claims, mut own) = (said.claims.iter().peekable(), Vec::new());
    for sentence in typed(text).flat_map(|line| sentences_in(text, line)) {
        while claims.next_if(|(_, at)| at.end <= sentence.start).is_some() {}
        let claim = claims.peek().filter(|(_, at)| at.start < sentence.end).map(|(claim, _)| *claim);
        let mut said = text[sentence.clone()].trim();
        if wanted == (Wanted::Standing { of_many: true }) {
            said = without_speaker(said);
        }
        let rule = claim.filter(|&claim| is_rule(claim));
        if is_long && rule.is_none() && said.len() > MAX_BYTES {
            continue;
        }
        own.clear();
        own.extend(subjects_of(said));
        let is_known = own.iter().any(|word| subjects.contains_key(word));
        let has_rare = || own.iter().any(|word| subjects.get(word).is_some_and(&is_rare));
        if is_long && rule.is_none() && !(has_rare() && may_change(said)) {
            continue;
        }
        let is_correction = said.len() <= MAX_BYTES && !is_asked(said);
        let about = (is_known && is_correction).then(|| About::of(said, claim, wanted, subjects));
        let new = rule.map(|claim| (claim, wanted == Wanted::Kept || is_firm(said), forbids(said)));
        for word in own.iter().copied() {
            if let Some(subject) = subjects.get_mut(&word) {
                subject.mentions += 1;
                let is_about = about.as_ref().is_some_and(|about| about.corrects(subject));
                if is_about && claim < Some(subject.claim) {
                    subject.newest = Some((index, sentence.clone()));
                }
            }
            if let Some((claim, is_enough, forbids)) = new {
                let new = Subject { claim, is_enough, forbids, mentions: 1, newest: None };
                let subject = subjects.entry(word).or_insert(new);
                subject.claim = subject.claim.max(claim);
            }
        }
    }
}

/// What a sentence asks for.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Order {
    /// Something to be done now: "Print the label", behind what a label must have.
    Work,
    /// Something else, perhaps what a rule forbids.
    Other,
}

/// What a sentence with words of rules is to these.
struct About {
    order: Option<Order>,
    is_same_request: bool,
    permits: bool,
    /// Whether it may say something else with a word of a rule: "Invoice 7 for payments is still open."
    is_passing: bool,
}

impl About {
    fn of(said: &str, claim: Option<Claim>, wanted: Wanted, subjects: &Subjects) -> Self {
        let permits = has_word(said, &PERMITTING, &PERMITTING_WIDE);
        let order = match claim {
            Some(Claim::Wish | Claim::Order) if wanted != Wanted::Kept => Some(Order::Work),
            Some(Claim::Wish | Claim::Order) => Some(Order::Other),
            _ => (!permits && starts_with_forbidden(said, subjects)).then_some(Order::Other),
        };
        let is_passing = wanted != Wanted::Kept
            && !may_change(said)
            && words_of(said).count() > FEW_WORDS
            && subjects_of(said).filter(|word| subjects.contains_key(word)).take(2).count() < 2;
        Self { order, is_same_request: starts_as_known(said, subjects), permits, is_passing }
    }

    fn corrects(&self, subject: &Subject) -> bool {
        let is_about = self.is_same_request
            || !self.is_passing
                && (subject.is_enough && self.order != Some(Order::Work) || subject.forbids && self.permits);
        is_about && !(self.order.is_some() && subject.forbids)
    }
}

/// Returns whether a sentence begins with a word of a rule and has another: "Use tabs after all."
fn starts_as_known(said: &str, subjects: &Subjects) -> bool {
    let first = said.split(|c: char| !c.is_alphanumeric()).next().unwrap_or_default().to_lowercase();
    if STARTING_ANY.contains(&&*first) || FORBIDDING.contains(&&*first) {
        return false;
    }
    let mut words = subjects_of(said).map(|word| subjects.contains_key(&word));
    words.next() == Some(true) && words.any(|is_known| is_known)
}

/// Returns whether a sentence begins with a word of what is forbidden: "push to main again".
fn starts_with_forbidden(said: &str, subjects: &Subjects) -> bool {
    let is_forbidden = |word: u64| subjects.get(&word).is_some_and(|subject| subject.forbids);
    subjects_of(said).next().is_some_and(is_forbidden)
}

fn forbids(rule: &str) -> bool {
    has_word(rule, &FORBIDDING, &FORBIDDING_WIDE)
}

fn has_word(said: &str, words: &[&str], wide: &[&str]) -> bool {
    let mut own = said.split(|c: char| !c.is_alphanumeric()).map(str::to_lowercase);
    own.any(|word| words.contains(&&*word)) || wide.iter().any(|word| said.contains(word))
}

/// Returns the hashes of the words that may name a subject; in scripts without spaces, of each two characters.
pub fn subjects_of(said: &str) -> impl Iterator<Item = u64> {
    let named = words_of(said).filter(|word| !NO_SUBJECTS.contains(word));
    let mut before = '\0';
    let pairs = (if said.is_ascii() { "" } else { said }).chars().filter_map(move |c| {
        let first = std::mem::replace(&mut before, c);
        (WIDE.contains(&first) && WIDE.contains(&c)).then(|| u64::from(first) << 32 | u64::from(c))
    });
    named.chain(pairs)
}

/// Returns the hashes of words with spaces between them, in one case and number.
fn words_of(said: &str) -> impl Iterator<Item = u64> {
    let words = said.split(|c: char| WIDE.contains(&c) || !c.is_alphanumeric());
    words.filter(|word| word.len() >= MIN_WORD_BYTES).map(|word| {
        let is_lower = word.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit());
        let word = if is_lower { Cow::Borrowed(word) } else { Cow::Owned(word.to_lowercase()) };
        xxh3_64(word.strip_suffix('s').unwrap_or(&word).as_bytes())
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::text::rules::{said, standing_rules};

    /// Returns the sentences of some messages that claim at least a wish.
    fn held<'t>(texts: &[&'t str]) -> Vec<&'t str> {
        let mut all: Vec<Said> = texts.iter().map(|text| Said::clone(&said(text))).collect();
        let claims = [Claim::Rule, Claim::Wish, Claim::Fact];
        raise_corrections(texts.iter().copied().zip(&mut all), &claims, true, Wanted::Kept);
        let held = |(text, said): (&&'t str, Said)| {
            let held = said.claims.into_iter().filter(|(claim, _)| *claim >= Claim::Wish);
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
    fn a_word_of_change_corrects_at_the_end_of_other_sentences_too() {
        let chatter = "The harbour was rather quiet this morning, and the bakery had no rolls left. ".repeat(8);
        for (rule, back, is_found) in [
            ("Never use tables.", "Tables are fine again.", true),
            ("Ruf mich nie vor zehn an.", "Vor zehn anrufen geht jetzt doch.", true),
            ("Gebruik nooit tabellen.", "Tabellen mogen weer.", true),
            ("Nunca uses tablas.", "Ya puedes usar tablas otra vez.", true),
            ("Never use tables.", "Tables fill the whole hall.", false),
        ] {
            let texts = [rule.to_owned(), format!("{chatter}{back}")];
            let mut all: Vec<Said> = texts.iter().map(|text| Said::clone(&said(text))).collect();
            let pairs = texts.iter().map(String::as_str).zip(&mut all);
            raise_corrections(pairs, &[Claim::Rule, Claim::Fact], false, Wanted::Kept);
            let holds =
                all[1].claims.iter().any(|(claim, at)| *claim == Claim::Rule && texts[1][at.clone()].trim() == back);
            assert_eq!(holds, is_found, "{back}");
        }
    }

    #[test]
    fn an_order_to_do_what_is_forbidden_takes_nothing_back() {
        let standing = |texts: [&'static str; 2]| standing_rules(&texts).pop().unwrap();
        let bans = "Never push to main. Don't delete anything.";
        for order in ["Push it please.", "Delete the old logs.", "push to main again"] {
            assert_eq!(standing([bans, order]), [""; 0], "{order}");
        }
        for other in ["Main is fine for a push today.", "main can be pushed to"] {
            assert_eq!(standing([bans, other]), [other]);
        }
        let permitted = "You can touch the header now.";
        assert_eq!(standing(["Don't touch the header.", permitted]), [permitted]);
        assert_eq!(standing(["不要删除任何文件。", "删除旧日志。"]), [""; 0]);
    }

    #[test]
    fn an_order_of_another_kind_with_a_word_of_a_rule_corrects_nothing() {
        for (rule, order) in [
            ("Never use more than two labels per parcel.", "Print the labels for parcel 7."),
            ("Always write notes to notes/ with the date.", "Send the invoice to Anna for the file."),
            ("Send the report to Anna every Monday.", "Put the date on the report."),
        ] {
            assert_eq!(standing_rules(&[rule, order])[1], [""; 0], "{order}");
        }
        for (rule, other) in
            [("From now on use two labels.", "Use three labels."), ("Always use port 8080.", "Port 7070 it is.")]
        {
            assert_eq!(standing_rules(&[rule, other])[1], [other]);
        }
    }

    #[test]
    fn what_is_said_in_passing_with_a_word_of_a_rule_is_not_listed() {
        let rule = "Never restart the payments service between 08:00 and 18:00.";
        for passing in [
            "Invoice 7311 for payments is still open, Marta waits for it.",
            "The payments budget for this month is 4711 EUR, Marta signed it.",
            "Yesterday Jonas looked at payments for an hour.",
        ] {
            assert_eq!(standing_rules(&[rule, passing])[1], [""; 0], "{passing}");
        }
        for change in ["Payments can be restarted at noon from now on.", "Payments is frozen until Monday now."] {
            assert_eq!(standing_rules(&[rule, change])[1], [change]);
        }
    }

    #[test]
    fn a_word_before_a_sentence_is_no_subject_of_it() {
        let fact = "Okay, I live in Graz.";
        assert_eq!(held(&[fact, "Okay, thanks."]), [fact]);
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
