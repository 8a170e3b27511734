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
mod tests;
