//! Finds sentences of the user that hold from then on: rules, requests, and facts about the user. They stay verbatim.
//!
//! A sentence's claim (`claim`) follows from its words (`lexicon`) and their places (`signs`). Pasted text (logs, code,
//! quotations, tables) is recognised by the form of its lines and claims nothing (`typed`).

mod answers;
mod changes;
mod claim;
mod corrections;
mod forms;
mod lexicon;
mod others;
mod signs;
mod typed;

use std::borrow::Cow;
use std::collections::HashSet;
use std::ops::Range;
use std::sync::{Arc, LazyLock};

use super::bytes::{FIRST_WIDE, has_digit};
use super::envelope::{is_observation, member, named, names_speaker};
use super::sentences::{clauses, sentences};
use crate::cache::{Allowance, SAID};
use crate::tokens::ContentMemory;
use changes::raise_changes;
use claim::claim;
use forms::Form;
use lexicon::words;
use others::{before_quotation, quotations};

pub use answers::{agreed_in, answered_in, chosen_again_in};
pub use claim::{Claim, is_asked, is_firm, read};
pub use corrections::{Wanted, raise_corrections};
pub use typed::typed;

/// Longest rule; longer sentences are pasted.
const MAX_RULE_BYTES: usize = 400;

/// A sentence that runs on is shown whole for what it claims up to so many bytes, and a clause of it with its neighbours.
const MAX_WHOLE_BYTES: usize = 240;
const MAX_WITH_NEIGHBOURS_BYTES: usize = 160;

/// Most bytes of a speaker's name before a sentence.
const MAX_SPEAKER_BYTES: usize = 48;

/// Bytes at each end of a text that may be typed; the middle is pasted, except for rules in it.
const TYPED_BYTES: usize = 32 << 10;

/// Rule-like sentences in pasted text are ignored if they make up more than one byte in this many.
const RARE_BYTES: usize = 64;

/// Returns by text of the user, oldest first, the sentences that hold from then on: rules, facts about the user, and what corrects
/// one of an earlier text; in a group with who says it. O(n).
#[must_use]
pub fn standing_rules<'t>(texts: &[&'t str]) -> Vec<Vec<Cow<'t, str>>> {
    const STANDING: [Claim; 2] = [Claim::Rule, Claim::Fact];
    let said = |text: &&str| if is_observation(text) { Said::default() } else { Said::clone(&said(text)) };
    let mut all: Vec<Said> = texts.iter().map(said).collect();
    let are_many = of_many(texts);
    raise_corrections(texts.iter().copied().zip(&mut all), &STANDING, true, Wanted::Standing { of_many: are_many });
    raise_changes(texts.iter().copied().zip(&mut all), &STANDING, are_many);
    let standing = |(text, said): (&&'t str, Said)| {
        let mut kept: Vec<Range<usize>> = Vec::new();
        for (_, sentence) in said.claims.iter().filter(|(claim, _)| STANDING.contains(claim)) {
            let whole = with_speaker(text, said.with_antecedent(text, sentence));
            match kept.last_mut().filter(|last| whole.start < last.end) {
                Some(last) => last.end = whole.end,
                None => kept.push(whole),
            }
        }
        kept.into_iter().map(|sentence| in_name_of(text, sentence, are_many)).collect()
    };
    texts.iter().zip(all).map(standing).collect()
}

/// Returns whether most texts say who speaks. O(n).
fn of_many(texts: &[&str]) -> bool {
    let says = |text: &&&str| names_speaker(text) || text.lines().any(|line| member(line).is_some());
    let saying = texts.iter().filter(says).count();
    saying >= MIN_SAYING && saying * 2 > texts.len()
}

/// Returns a sentence of a text with who says it: of `[Lena]: hi all. Call me Jo.` it is `[Lena]: Call me Jo.` Where texts of `many` begin
/// with a name, that of `Lena: hi all` says so, too.
fn in_name_of(text: &str, sentence: Range<usize>, many: bool) -> Cow<'_, str> {
    let near = text.ceil_char_boundary(sentence.start.saturating_sub(MAX_MEMBERS_BYTES));
    let said = text[sentence.clone()].trim();
    let starts = text[near..sentence.start].rmatch_indices('\n').map(|(end, _)| near + end + 1);
    let mut starts = starts.chain((near == 0).then_some(0));
    let speaks = |line: usize| member(&text[line..]).or_else(|| named(&text[line..]).filter(|_| many));
    match starts.find_map(speaks).filter(|speaker| !said.starts_with(speaker)) {
        Some(speaker) => Cow::Owned(format!("{speaker} {}", said.trim_start_matches(['-', '*', '•', ' ']))),
        None => Cow::Borrowed(said),
    }
}

/// Fewest texts that say who speaks in a talk of several people.
const MIN_SAYING: usize = 3;

/// Most bytes between who speaks and what is said.
const MAX_MEMBERS_BYTES: usize = 2_048;

/// Returns a sentence with who says it before it on its line: `[Bob]`, `<Bob>`, `@bob`.
fn with_speaker(text: &str, sentence: Range<usize>) -> Range<usize> {
    // No further back than the longest tag: one line may hold many sentences.
    let near = text.ceil_char_boundary(sentence.start.saturating_sub(2 * MAX_SPEAKER_BYTES));
    let start = text[near..sentence.start].rfind('\n').map(|end| near + end + 1);
    let Some(line) = start.or((near == 0).then_some(0)) else { return sentence };
    let tag = text[line..sentence.start].trim().trim_end_matches(':');
    let is_between = |open, close| tag.starts_with(open) && tag.ends_with(close) && tag.matches(open).count() == 1;
    let is_tag = is_between('[', ']') || is_between('<', '>') || tag.starts_with('@') && !tag.contains(' ');
    if is_tag && tag.len() <= MAX_SPEAKER_BYTES { line..sentence.end } else { sentence }
}

/// Returns the `rules` that no text of `shown` has, in order, each once at its last place, of at most `max_bytes` together: first
/// those that say that they hold for good, then others, of both the newest. O(n) in both.
#[must_use]
pub fn rules_left_out<'r>(rules: &[&'r str], shown: &[&str], max_bytes: usize) -> Vec<&'r str> {
    let shown: Vec<String> = shown.iter().map(|text| normal(text)).collect();
    let mut seen = HashSet::new();
    let is_left = |(_, rule): &(usize, &&str)| {
        let speaker = member(rule).or_else(|| named(rule)).unwrap_or_default();
        let (speaker, said) = (normal(speaker), normal(&rule[speaker.len()..]));
        // In the message it may be behind other sentences.
        let is_shown = shown.iter().any(|text| text.contains(&said) && text.contains(&speaker));
        !said.is_empty() && !is_shown && seen.insert(speaker + &said)
    };
    let newest: Vec<(usize, &&str)> = rules.iter().enumerate().rev().filter(is_left).collect();
    // Where all have room none is read again.
    let have_room = newest.iter().map(|(_, rule)| rule.len()).sum::<usize>() <= max_bytes;
    let (firm, others): (Vec<_>, Vec<_>) = newest.into_iter().partition(|(_, rule)| have_room || says_firmly(rule));
    let (mut room, mut kept) = (max_bytes, Vec::new());
    for (at, rule) in firm.into_iter().chain(others) {
        let Some(rest) = room.checked_sub(rule.len()) else { break };
        room = rest;
        kept.push((at, *rule));
    }
    kept.sort_unstable_by_key(|(at, _)| *at);
    kept.into_iter().map(|(_, rule)| rule).collect()
}

/// Returns whether a sentence of a rule says that it holds for good, or the user pins it.
fn says_firmly(rule: &str) -> bool {
    is_pinned(rule) || sentences_in(rule, 0..rule.len()).into_iter().any(|sentence| is_firm(&rule[sentence]))
}

/// Returns the sentences of `text` that state a rule. O(n).
pub fn rules(text: &str) -> Vec<Range<usize>> {
    let said = said(text);
    let rules = said.claims.iter().filter(|(claim, _)| *claim == Claim::Rule);
    rules.map(|(_, sentence)| sentence.clone()).collect()
}

/// Returns whether a line of `text` starts with `#pin` or `#固定`: the user pins it. The first line may be indented. O(n).
pub fn is_pinned(text: &str) -> bool {
    text[head(text)..].split('\n').any(is_pinned_line)
}

/// Returns the start of a text behind blanks and a byte order mark.
fn head(text: &str) -> usize {
    let is_blank = |c: char| c.is_whitespace() || c == '\u{feff}';
    text.len() - text.trim_start_matches(is_blank).len()
}

fn is_pinned_line(line: &str) -> bool {
    let Some(word) = line.strip_prefix(['#', '＃']) else { return false };
    let is_end = |rest: &str| rest.is_empty() || rest.starts_with([' ', '\t', '\r', ':', '：']);
    let is_pin = |start: &str| start.eq_ignore_ascii_case("pin");
    word.starts_with("固定") || word.split_at_checked(3).is_some_and(|(start, rest)| is_pin(start) && is_end(rest))
}

/// What the user says in a text.
#[derive(Debug, Default, Clone)]
pub struct Said {
    /// The sentences that hold from then on, in order.
    pub claims: Vec<(Claim, Range<usize>)>,
    /// Typed bytes; the others are pasted.
    pub typed_bytes: usize,
    /// The typed sentences, in order.
    pub sentences: Vec<Sentence>,
}

impl Said {
    /// Gives a sentence a claim of at least `claim`.
    fn raise(&mut self, sentence: Range<usize>, claim: Claim) {
        match claim_at(&self.claims, &sentence) {
            Ok(at) => self.claims[at].0 = claim.max(self.claims[at].0),
            Err(at) => self.claims.insert(at, (claim, sentence)),
        }
    }
}

/// Returns the index of the claim in a sentence, else the index that one would have.
///
/// # Errors
///
/// The latter.
pub fn claim_at(claims: &[(Claim, Range<usize>)], sentence: &Range<usize>) -> Result<usize, usize> {
    let at = claims.partition_point(|(_, claim)| claim.end <= sentence.start);
    if claims.get(at).is_some_and(|(_, claim)| claim.start < sentence.end) { Ok(at) } else { Err(at) }
}

/// A sentence of the user.
#[derive(Debug, Clone)]
pub struct Sentence {
    pub range: Range<usize>,
    /// Whether it asks and claims nothing.
    pub is_asked: bool,
    pub form: Form,
}

pub static MEMORY: LazyLock<ContentMemory<Said>> = LazyLock::new(|| ContentMemory::new(Allowance::Share(&SAID)));

/// Returns what the user says in `text`; O(n) the first time.
pub fn said(text: &str) -> Arc<Said> {
    MEMORY.get_or_make(text, 0, || {
        let said = hear(text);
        let bytes = size_of_val(&*said.claims) + size_of_val(&*said.sentences);
        (said, bytes)
    })
}

fn hear(text: &str) -> Said {
    let mut this = Said::default();
    let (middle, mut far, mut far_from) = (middle(text), Far::default(), None);
    let head = head(text);
    // In a record of a meeting all sentences run on: cut at clauses, of its evidence .619 stays in Chinese at 25 % in place of .623.
    let may_run_on = !names_speaker(text);
    for line in typed(text) {
        let is_far = middle.start <= line.start && line.end <= middle.end;
        let is_apart = is_far && stands_alone(text, &line);
        if is_far {
            far_from.get_or_insert(this.claims.len());
            if !far.is_rare(middle.len()) && !is_apart {
                continue;
            }
        } else {
            this.typed_bytes += line.len();
        }
        let of_others = quotations(text, &text[line.clone()]);
        let from = if line.start <= head && head < line.end { head } else { line.start };
        if is_pinned_line(&text[from..line.end]) && line.len() <= MAX_RULE_BYTES {
            if text[from..line.end].trim().len() <= "#固定".len() {
                continue;
            }
            this.claims.push((Claim::Rule, line.start..line.start + text[line.clone()].trim_end().len()));
            continue;
        }
        for sentence in sentences_in(text, line.clone()) {
            let own = before_quotation(&of_others, line.start, &text[sentence.clone()], sentence.start);
            let most = (own.len() < sentence.len()).then(|| claim(own));
            for Claimed { claim, clause, shown } in claims_in(text, sentence, may_run_on) {
                let claim = most.map_or(claim, |most| claim.min(most));
                if !is_far {
                    this.add_sentence(text, &clause, claim);
                }
                let Some(claim) = claim else { continue };
                if !is_far {
                    this.claims.push((claim, shown));
                } else if matches!(claim, Claim::Rule | Claim::Fact) {
                    far.push(claim, shown, is_apart);
                }
            }
        }
    }
    let at = far_from.unwrap_or_default();
    this.claims.splice(at..at, far.of_user(middle.len()));
    this
}

/// A sentence or a clause with what it claims.
struct Claimed {
    claim: Option<Claim>,
    clause: Range<usize>,
    /// What is shown for it.
    shown: Range<usize>,
}

/// Returns what a sentence claims: one that runs on by its clauses, each shown with its neighbours.
fn claims_in(text: &str, sentence: Range<usize>, may_run_on: bool) -> Vec<Claimed> {
    let whole = Claimed { claim: claim(&text[sentence.clone()]), clause: sentence.clone(), shown: sentence.clone() };
    let is_short = whole.claim >= Some(Claim::Fact) && sentence.len() <= MAX_WHOLE_BYTES;
    let clauses = if may_run_on && !is_short { clauses(text, sentence.clone()) } else { Vec::new() };
    if clauses.len() < 2 {
        return vec![whole];
    }
    let mut from = sentence.start;
    let mut claimed = Vec::with_capacity(clauses.len());
    for (nth, clause) in clauses.iter().enumerate() {
        let claim = claim(&text[clause.clone()]).filter(|claim| *claim >= Claim::Wish && clause.start >= from);
        let start = nth.checked_sub(1).map_or(clause.start, |before| clauses[before].start.max(from));
        let end = clauses.get(nth + 1).map_or(clause.end, |behind| behind.end);
        let mut wider = [start..end, start..clause.end].into_iter();
        let shown = wider.find(|range| range.len() <= MAX_WITH_NEIGHBOURS_BYTES).unwrap_or(clause.clone());
        from = if claim.is_some() { shown.end } else { from };
        claimed.push(Claimed { claim, clause: clause.clone(), shown });
    }
    if claimed.iter().any(|clause| clause.claim.is_some()) { claimed } else { vec![whole] }
}

impl Said {
    /// Returns a sentence, with those before it that tell what it is about: it is shown without the others later.
    fn with_antecedent(&self, text: &str, sentence: &Range<usize>) -> Range<usize> {
        let at = self.sentences.partition_point(|known| known.range.start < sentence.start);
        let (mut first, mut start) = (sentence.clone(), sentence.start);
        for Sentence { range: before, .. } in self.sentences[..at].iter().rev().take(MAX_ANTECEDENTS) {
            let is_near = sentence.end - before.start <= MAX_RULE_BYTES && !text[before.start..start].contains('\n');
            let said = &text[first];
            if !(is_near && (points_back(said) || is_bare(said) && introduces(&text[before.clone()]))) {
                break;
            }
            (first, start) = (before.clone(), before.start);
        }
        start..sentence.end
    }

    fn add_sentence(&mut self, text: &str, range: &Range<usize>, claim: Option<Claim>) {
        let said = text[range.clone()].trim();
        if let Some(form) = Form::of(said) {
            let is_asked = claim.is_none() && is_asked(said);
            self.sentences.push(Sentence { range: range.clone(), is_asked, form });
        }
    }
}

/// Claims in pasted text.
#[derive(Default)]
struct Far {
    /// Claims, and whether each is on a line of its own.
    claims: Vec<(Claim, Range<usize>, bool)>,
    bytes: usize,
    apart_bytes: usize,
}

impl Far {
    fn push(&mut self, claim: Claim, sentence: Range<usize>, is_apart: bool) {
        self.bytes += sentence.len();
        self.apart_bytes += if is_apart { sentence.len() } else { 0 };
        self.claims.push((claim, sentence, is_apart));
    }

    fn is_rare(&self, all_bytes: usize) -> bool {
        self.bytes * RARE_BYTES <= all_bytes
    }

    /// Returns the user's own: all if few sentences are claims, else those on lines of their own.
    fn of_user(self, all_bytes: usize) -> impl Iterator<Item = (Claim, Range<usize>)> {
        let is_rare = self.is_rare(all_bytes);
        let is_rare_apart = self.apart_bytes * RARE_BYTES <= all_bytes;
        let is_of_user = move |is_apart| is_rare || is_apart && is_rare_apart;
        self.claims.into_iter().filter(move |(.., is_apart)| is_of_user(*is_apart)).map(|(claim, at, _)| (claim, at))
    }
}

/// Pronouns for somebody, and for something that a few words do not name.
const SOMEBODY: [&str; 24] = [
    "he", "him", "she", "her", "they", "them", "er", "ihn", "ihm", "lui", "elle", "il", "él", "ella", "ele", "ela",
    "он", "она", "его", "её", "ему", "ей", "niego", "niej",
];
const SOMETHING: [&str; 14] =
    ["it", "that", "this", "these", "those", "das", "es", "ça", "cela", "eso", "isso", "это", "этого", "isto"];
const IN_CHINESE: [char; 6] = ['他', '她', '它', '这', '那', '這'];

/// Most sentences before one that tell what it is about: "Our client is Huber. He is deaf. Never call him."
const MAX_ANTECEDENTS: usize = 2;

/// Most words of a sentence that may leave out what it is about, and most bytes in Chinese: "Our client is Huber. Never call, only mail."
const MAX_BARE_WORDS: usize = 4;
const MAX_BARE_BYTES: usize = 30;
const COPULAS: [&str; 14] =
    ["is", "are", "named", "called", "ist", "sind", "heißt", "est", "sont", "es", "son", "é", "è", "jest"];

/// Most words of a sentence whose "that" is named before it, and most bytes in Chinese.
const MAX_POINTING_WORDS: usize = 6;
const MAX_POINTING_BYTES: usize = 60;

/// Returns whether a sentence needs the one before it: it has a pronoun and no name.
fn points_back(sentence: &str) -> bool {
    let said = sentence.trim();
    let lower = said.to_lowercase();
    let words: Vec<&str> = words(&lower).map(|(_, word)| word).collect();
    let has = |of: &[&str]| words.iter().any(|word| of.contains(word));
    if has_name(said) {
        return false;
    }
    // "the full one"
    let is_one = words.iter().skip_while(|word| **word != "the").any(|word| matches!(*word, "one" | "ones"));
    has(&SOMEBODY)
        || is_one
        || words.len() <= MAX_POINTING_WORDS && has(&SOMETHING)
        || said.len() <= MAX_POINTING_BYTES && said.contains(IN_CHINESE)
}

/// Returns whether a word behind the first is written as a name.
fn has_name(sentence: &str) -> bool {
    let is_name = |word: &str| word.len() > 1 && word.starts_with(char::is_uppercase) && !word.starts_with("I'");
    sentence.trim().split(' ').skip(1).any(is_name)
}

/// Returns whether a sentence is so short that what it is about may stand before it.
fn is_bare(sentence: &str) -> bool {
    let said = sentence.trim();
    let is_short = !said.contains(|c| c >= FIRST_WIDE) || said.len() <= MAX_BARE_BYTES;
    is_short && words(said).count() <= MAX_BARE_WORDS && !has_name(said)
}

/// Returns whether a sentence says who or what something is.
fn introduces(sentence: &str) -> bool {
    let lower = sentence.to_lowercase();
    let is_named = has_name(sentence) || has_digit(sentence);
    is_named && words(&lower).any(|(_, word)| COPULAS.contains(&word)) || sentence.contains(['是', '叫', '姓'])
}

/// Iterates over the sentences in a range of `text`.
fn sentences_in(text: &str, range: Range<usize>) -> impl Iterator<Item = Range<usize>> {
    sentences(&text[range.clone()]).map(move |sentence| range.start + sentence.start..range.start + sentence.end)
}

/// Returns whether a line or a sentence is a paragraph of its own, as somebody types what matters among what is pasted.
pub fn stands_alone(text: &str, said: &Range<usize>) -> bool {
    let end = text[..said.end].trim_end().len();
    let (before, behind) = (text[..said.start].trim_end(), text[end..].trim_start());
    let is_gap = |gap: &str| gap.matches('\n').count() > 1;
    (before.is_empty() || is_gap(&text[before.len()..said.start]))
        && (behind.is_empty() || is_gap(&text[end..text.len() - behind.len()]))
}

/// Returns the range that is too far from both ends of `text` to be typed.
fn middle(text: &str) -> Range<usize> {
    if text.len() <= 2 * TYPED_BYTES {
        return text.len()..text.len();
    }
    text.floor_char_boundary(TYPED_BYTES)..text.ceil_char_boundary(text.len() - TYPED_BYTES)
}

/// Returns a rule normalised for comparison: letters and digits, in lower case.
pub fn normal(rule: &str) -> String {
    if rule.is_ascii() {
        let mut normal = rule.to_ascii_lowercase();
        normal.retain(|c| c.is_ascii_alphanumeric());
        return normal;
    }
    rule.chars().filter(|c| c.is_alphanumeric()).flat_map(char::to_lowercase).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(text: &str) -> Vec<&str> {
        rules(text).into_iter().map(|range| text[range].trim()).collect()
    }

    #[test]
    fn what_corrects_a_rule_of_an_earlier_text_holds_too() {
        for (rule, correction) in [
            ("From now on use ruff with line length 110.", "Line length back to 100, the team voted."),
            ("Never call before 9.", "You may call from 8 on now."),
            ("From now on reply with one line only.", "Forget the one-line thing, longer is fine."),
        ] {
            assert_eq!(standing_rules(&[rule, "The cat sleeps.", correction]), [vec![rule], vec![], vec![correction]]);
        }
    }

    #[test]
    fn a_rule_on_somebody_comes_with_who_that_is() {
        for (text, rules) in [
            (
                "Daan and I broke up last night. I don't want to talk about him any more, don't bring him up.",
                vec!["Daan and I broke up last night. I don't want to talk about him any more, don't bring him up."],
            ),
            ("You pushed to main. Never do that again.", vec!["You pushed to main. Never do that again."]),
            ("The sky is blue. Never push to main.", vec!["Never push to main."]),
            ("Never push to main. Never do that.", vec!["Never push to main. Never do that."]),
            ("Hi there. Ask Anna first, always; she knows.", vec!["Ask Anna first, always; she knows."]),
            (
                "Our client is Huber. He is deaf. Never call him.",
                vec!["Our client is Huber. He is deaf. Never call him."],
            ),
            (
                "The IBAN ends in 7719. Never put the full one in a chat.",
                vec!["The IBAN ends in 7719. Never put the full one in a chat."],
            ),
            (
                "Kundin ist Fr. Öztürk. Nie anrufen, nur mailen.",
                vec!["Kundin ist Fr. Öztürk. Nie anrufen, nur mailen."],
            ),
            ("I met Anna at 9. Never push to main.", vec!["Never push to main."]),
            ("客户是聋人。不要打电话。", vec!["客户是聋人。不要打电话。"]),
            ("小王是我前男友。不要再提他。", vec!["小王是我前男友。不要再提他。"]),
        ] {
            assert_eq!(standing_rules(&[text]), [rules], "{text}");
        }
    }

    #[test]
    fn a_rule_in_a_group_comes_with_who_stated_it() {
        for (text, rule) in [
            ("[Bob] I am allergic to peanuts.", "[Bob] I am allergic to peanuts."),
            ("<Bob> Never call before 9.", "<Bob> Never call before 9."),
            ("[Bob (12345)]: I am allergic to eggs.", "[Bob (12345)]: I am allergic to eggs."),
            ("[see the log] fine. Never push to main.", "Never push to main."),
            ("[Bob]: hi all. Never call before 9.", "[Bob]: Never call before 9."),
            ("[Bob]: two things:\n\n- the train is late\n- I am vegan.", "[Bob]: I am vegan."),
            ("[Bob]: [Reply to Eva: hi]\nI am allergic to eggs.", "[Bob]: I am allergic to eggs."),
            ("[Recent group messages for context:]\nEva: lol\n---\n[Bob]: I am vegan.", "[Bob]: I am vegan."),
            ("[ERROR]: it fails\nNever restart it.", "Never restart it."),
        ] {
            assert_eq!(standing_rules(&[text]), [[rule]]);
        }
        let named = ["Bob: hi all. Never call before 9.", "Eva: ok", "Tom: what a day"];
        let rules = standing_rules(&named).concat();
        assert_eq!(rules, ["Bob: Never call before 9."]);
        assert_eq!(standing_rules(&["Budget: 500 euros.\nNever call before 9."]).concat(), ["Never call before 9."]);
        // Shown where the message is, behind another sentence.
        let rules: Vec<&str> = rules.iter().map(|rule| &**rule).collect();
        assert_eq!((rules_left_out(&rules, &named, 99).len(), rules_left_out(&rules, &named[1..], 99).len()), (0, 1));
    }

    #[test]
    fn what_others_of_a_group_say_behind_a_rule_changes_nothing() {
        for (bob, eva) in [("Bob", "Eva"), ("[Bob]", "[Eva]")] {
            let rule = format!("{bob}: Never call before 9.");
            for said in ["haha", "the train is late again", "ok"] {
                let texts = [rule.clone(), format!("{eva}: {said}"), format!("{bob}: {said}"), format!("{eva}: hi")];
                let texts = texts.each_ref().map(|text| &**text);
                assert_eq!(standing_rules(&texts).concat(), [&*rule], "{said}");
            }
            let change = format!("{bob}: you may call from 8 on now");
            let texts = [&*rule, "[Eva]: hi", &change];
            assert_eq!(standing_rules(&texts).concat(), [&*rule, &change]);
        }
    }

    #[test]
    fn what_is_quoted_or_forwarded_in_a_group_is_not_the_speakers() {
        for text in [
            "[Bob]: [Reply to Eva: Never call before 9.]\nlol why",
            "[Bob]: Forwarded from Chess Club:\nMembers must not smoke.",
            "Bob: FW: Landlord\nNever park in the yard.",
            "FW: Landlord\nNever park in the yard.",
            "[Fwd]\nNever park in the yard.",
            "[Weitergeleitet von Hanna]\nNever park in the yard.",
            "[Document]\nNever park in the yard.",
            "[Quote] Never park in the yard.",
            "[Bob]: [Document]\nNever park in the yard.",
        ] {
            assert_eq!(standing_rules(&[text]).concat(), [""; 0], "{text}");
        }
    }

    #[test]
    fn what_is_asked_for_the_work_at_hand_does_not_stand() {
        for text in [
            "Don't run the tests yet, just show me the diff.",
            "Only three lines this time.",
            "先别提交。",
            "Hi all",
            "Translate: 'Never give up'",
            "#pin",
        ] {
            assert_eq!(standing_rules(&[text]), [[""; 0]], "{text}");
        }
        assert_eq!(standing_rules(&["From now on always show the diff first, for now in German."])[0].len(), 1);
    }

    #[test]
    fn what_says_that_it_holds_for_good_has_room_before_newer_rules() {
        let orders: Vec<String> = (0..40).map(|i| format!("Only list the files of part {i}.")).collect();
        let rules: Vec<&str> = ["Never push to main.", "I am allergic to peanuts."]
            .into_iter()
            .chain(orders.iter().map(String::as_str))
            .collect();
        let left = rules_left_out(&rules, &[], 200);
        assert_eq!((left[0], left[1], left.last()), (rules[0], rules[1], rules.last()));
        assert!(left.len() < 10 && left.iter().map(|rule| rule.len()).sum::<usize>() <= 200, "{left:?}");
    }

    #[test]
    fn sentences_that_state_a_rule_are_found_whole() {
        assert_eq!(found("Hi. Never push to main! Look at a.b now."), ["Never push to main!"]);
        assert_eq!(found("你好。以后都用中文回答。今天天气不错"), ["以后都用中文回答。"]);
        assert_eq!(found("Use v1.2, and you must not touch\nthe rest"), ["Use v1.2, and you must not touch"]);
        for text in ["a mustard recipe", "I never said that.", "Do you remember it?", "你记得必须做什么吗？"]
        {
            assert_eq!(found(text), Vec::<&str>::new(), "{text}");
        }
        assert_eq!(found(&format!("always {}", "x".repeat(900))), Vec::<&str>::new());
    }

    #[test]
    fn what_is_shown_no_more_is_told_once_and_newest_last() {
        let text = "My name is Ada. Call me Captain from now on. What a day! Never push to main.";
        let rules = standing_rules(&[text]).remove(0);
        let rules: Vec<&str> = rules.iter().map(|rule| &**rule).collect();
        assert_eq!(rules, ["My name is Ada.", "Call me Captain from now on.", "Never push to main."]);
        assert_eq!(rules_left_out(&rules, &["never push to MAIN, as I said"], 100), rules[..2]);
        assert_eq!(rules_left_out(&[rules[0], rules[2], rules[0]], &[], 100), [rules[2], rules[0]]);
        assert_eq!(rules_left_out(&rules, &[], 30), rules[2..]);
        assert_eq!(rules_left_out(&["…"], &[], 30), Vec::<&str>::new());
    }

    /// Returns what each sentence is, in order; without those that are only stated.
    fn claims(text: &str) -> Vec<Claim> {
        hear(text).claims.into_iter().map(|(claim, _)| claim).filter(|claim| *claim > Claim::Stated).collect()
    }

    #[test]
    fn what_holds_from_then_on_is_told_by_words_in_many_languages() {
        let rows = include_str!("../../tests/rust/rules.tsv").lines().filter(|row| !row.starts_with('#'));
        for (kind, text) in rows.filter_map(|row| row.split_once('\t')) {
            let expected: &[Claim] = match kind {
                "rule" => &[Claim::Rule],
                "order" => &[Claim::Order],
                "fact" => &[Claim::Fact],
                "trait" => &[Claim::Trait],
                "wish" => &[Claim::Wish],
                "told" => &[Claim::Told],
                "brief" => &[Claim::Brief],
                "none" => &[],
                _ => {
                    assert_eq!(found(text), Vec::<&str>::new(), "{text}");
                    continue;
                }
            };
            assert_eq!(claims(text), expected, "{text}");
        }
    }

    #[test]
    fn what_holds_is_listed_in_many_languages() {
        let rows = include_str!("../../tests/rust/standing.tsv").lines().filter(|row| !row.starts_with('#'));
        let is_wrong = |(kind, text): &(&str, &str)| standing_rules(&[text])[0].is_empty() != (*kind == "passes");
        let wrong: Vec<_> = rows.filter_map(|row| row.split_once('\t')).filter(is_wrong).collect();
        assert_eq!(wrong, [("", ""); 0]);
    }

    #[test]
    fn what_was_pasted_says_nothing_of_the_user() {
        let text = "Look at this.\n```\nNever push to main.\n```\n> Always ask.\n12:30:01 never mind\n  12| Do not edit\n\
            2026-05-01 must be late\nif (never) { return always(); }\n| always | never |\nDon't restart it.";
        assert_eq!(found(text), ["Don't restart it."]);
        assert_eq!(said(text).typed_bytes, "Look at this.\nDon't restart it.".len());
        let listing = "Look.\nnever 0 must 12 always 3\nnever 4 must 12 always 5\n\nIt costs 3 or 4 euros, not 5.";
        assert_eq!(said(listing).typed_bytes, "Look.\nIt costs 3 or 4 euros, not 5.".len());
        let log = "never push this line of a log ok\n".repeat(1 << 14);
        assert!(found(&log).len() < 1 << 12, "what is far from both ends was pasted");
    }

    #[test]
    fn a_line_in_words_that_stands_alone_was_typed() {
        for alone in ["2014-04-05 was the day we married.", "> my aunt sings."] {
            assert_eq!(said(alone).typed_bytes, alone.len(), "{alone}");
            assert!(said(&format!("Look.\n{alone}\nBye.")).typed_bytes < alone.len(), "{alone}");
        }
        for other in ["$ npm install --save-dev", "{x: ok=3 err=0}", "{ \"a\": 1 }"] {
            assert_eq!(said(other).typed_bytes, 0, "{other}");
        }
    }

    #[test]
    fn a_number_or_a_time_in_a_sentence_was_typed() {
        for sentence in [
            "$5 is my limit.",
            "10-15 people come.",
            "30/11 is my last day.",
            "1234-5678 is the code.",
            "The train got in at 9:08.",
            "Our day is 2014-04-05.",
            "闹钟6:45就响了。",
            "기차가 9:08에 도착했어.",
            "Lunch, 12:15, was late.",
        ] {
            let text = format!("{sentence} Never touch the vendor folder.");
            assert_eq!(said(&format!("Look.\n{text}\nBye.")).typed_bytes, text.len() + 11, "{sentence}");
        }
        for stamp in ["Kim 9:08: ", "Kim Ito (9:08) ", "12:30:01 ", "Nov 28 12:05:03 ", "2026-03-02 ", "12-"] {
            let line = format!("{stamp}Never touch the vendor folder.");
            assert_eq!(said(&format!("Look.\n{line}\nBye.")).typed_bytes, 10, "{line}");
        }
    }

    #[test]
    fn what_stands_in_a_mail_is_not_the_users() {
        let mail = "Always be polite.\nFrom: Karin <k@a.example>\nSubject: Rooms\n\nNever leave the windows open.\nI am allergic to dust.\n\nDon't tell her.";
        assert_eq!(standing_rules(&[mail]), [["Always be polite.", "Don't tell her."]]);
        let received = "Email received.\nFrom: ada@b.example\nSubject: Rooms\nDate: Fri\n\nNever push to main.\n\nBye";
        assert_eq!(standing_rules(&[received]), [["Never push to main."]]);
        let journey = "From: Berlin\nTo: Hamburg\nDate: Friday\nNever by bus.";
        assert_eq!(standing_rules(&[journey]), [["Never by bus."]]);
    }

    #[test]
    fn what_a_compiler_says_is_not_the_users() {
        let text = "Look.\nsrc/a.c:3:5: warning: you must not ignore it\n    3 |     f();\n      |     ^\nDon't change main.c.";
        assert_eq!(found(text), ["Don't change main.c."]);
    }

    #[test]
    fn a_rule_far_from_both_ends_is_found_where_few_sentences_read_like_one() {
        let of = |line: &str| line.repeat((1 << 20) / line.len());
        for (line, is_found) in [("the job ran for ten seconds\n", true), ("never mind the job, it ran\n", false)] {
            let text = [&of(line), "Thanks. Never run rm. I never eat meat.\n", &of(line)].concat();
            let found = standing_rules(&[&text]).remove(0);
            assert_eq!(found.contains(&Cow::Borrowed("Never run rm.")), is_found, "{line}");
            assert_eq!(found.contains(&Cow::Borrowed("I never eat meat.")), is_found, "{line}");
            let apart = [&of(line), "\n \r\nNever run rm.\n\n", &of(line)].concat();
            assert!(standing_rules(&[&apart])[0].contains(&Cow::Borrowed("Never run rm.")), "{line}");
            assert!(standing_rules(&[&apart])[0].len() < 3_000, "{line}");
            assert!(said(&text).typed_bytes < 3 * TYPED_BYTES, "what is between the rules was pasted");
        }
    }

    #[test]
    fn a_text_without_an_end_is_read_once() {
        for word in ["rule for ", "rule: ", "must ", "he must ", "不要"] {
            assert_eq!(found(&word.repeat(1 << 17)), Vec::<&str>::new(), "{word}");
        }
    }

    #[test]
    fn rules_are_compared_by_their_letters() {
        assert_eq!(normal("Never push, OK?"), normal("never push ok"));
    }

    #[test]
    fn a_rule_is_no_more_than_its_sentence() {
        for (text, rule) in [
            ("Fine. Do not touch main. Thanks.", "Do not touch main."),
            ("Notes\nDon't use tabs\nBye", "Don't use tabs"),
            ("Great! Please don't rename files! OK", "Please don't rename files!"),
            ("From now on, reply in French. Look at a.b.", "From now on, reply in French."),
            ("看日志。禁止删除数据；谢谢", "禁止删除数据；"),
            ("先看看\n请记住：端口是 8080\n再说", "请记住：端口是 8080"),
            ("你好！从现在起不要自动提交。", "从现在起不要自动提交。"),
        ] {
            assert_eq!(found(text), [rule], "{text}");
        }
    }

    #[test]
    fn every_rule_of_a_text_is_found_once() {
        let text = "Always test. Hello.\nNever push. You must, must rebase.";
        assert_eq!(found(text), ["Always test.", "Never push.", "You must, must rebase."]);
        let list = "Rules:\nDon't push\nDo not rebase\nDon't squash. Don't ask! Please do not merge.";
        let rules = ["Don't push", "Do not rebase", "Don't squash.", "Don't ask!", "Please do not merge."];
        assert_eq!(found(list), rules);
        assert_eq!(found("I never said that. Don't push."), ["Don't push."]);
        assert_eq!(
            found("Rule for the whole conversation: end with X-1.\nGo."),
            ["Rule for the whole conversation: end with X-1."]
        );
        assert_eq!(found("规则：每次回答都要简短。好"), ["规则：每次回答都要简短。"]);
        assert_eq!(found("The rules are in a.md. See each file."), Vec::<&str>::new());
        for told_of_nobody_near in ["If they ask, never push.", "When it is done with all of the tests, you must push."]
        {
            assert_eq!(found(told_of_nobody_near), [told_of_nobody_near]);
        }
        assert_eq!(
            found("When it is done with all of the tests you must push."),
            ["When it is done with all of the tests you must push."]
        );
        let (heading, long) = (format!("Rule for {}: be brief", "x".repeat(40)), "x".repeat(41));
        assert_eq!(found(&heading), [&heading]);
        for none in
            [format!("Rule for {long}: end with X-1"), "Rule for : end with X-1".to_owned(), "Rules: ".to_owned()]
        {
            assert_eq!(found(&none), Vec::<&str>::new());
        }
        assert_eq!(found("1. Look\n- don't push\n* Do not rebase"), ["- don't push", "* Do not rebase"]);
    }

    #[test]
    fn a_rule_in_a_sentence_that_runs_on_is_found_by_its_clause() {
        for (between, rule) in [
            (", ", "from now on never call me before ten"),
            (" and ", "please never call me before ten"),
            ("，", "以后都不要给我发语音"),
            (" ", "以后都不要给我发语音"),
            ("、", "これからは絵文字を使わないで"),
        ] {
            let chat = match between {
                "、" => "今日もバスがとても遅れました",
                _ if rule.is_ascii() => "the bus was late again in the rain today",
                _ => "今天公交车又晚点了很久",
            };
            for side in [3, 6, 12] {
                let side = [chat].repeat(side).join(between);
                let text = [&*side, rule, &*side].join(between);
                let said = said(&text);
                let shown: Vec<&str> = said
                    .claims
                    .iter()
                    .filter(|(claim, _)| *claim == Claim::Rule)
                    .map(|(_, at)| &text[at.clone()])
                    .collect();
                assert!(
                    matches!(&shown[..], [shown] if shown.contains(rule) && shown.len() <= MAX_WHOLE_BYTES),
                    "{shown:?}"
                );
            }
        }
        // What everybody says in a meeting stays as it is.
        let text = format!(
            "Ann: {}",
            ["we looked at it all", "we should never push on Fridays", "so it goes"].repeat(5).join(", ")
        );
        assert!(matches!(&said(&text).claims[..], [(_, at)] if *at == (0..text.len())));
        assert!(said(&text["Ann: ".len()..]).claims.iter().all(|(_, at)| at.len() <= MAX_WITH_NEIGHBOURS_BYTES));
    }
}
