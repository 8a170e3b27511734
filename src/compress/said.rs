//! Finds what the user says in the groups that may go, and which of it is rare enough to hold.

use std::cmp::Reverse;
use std::collections::{BTreeMap, HashMap, HashSet};
use std::ops::Range;

use xxhash_rust::xxh3::xxh3_64;

use crate::conversation::is_notes;
use crate::message::{Field, Role};
use crate::select::scoring::Author;
use crate::text::bytes::FIRST_WIDE;
use crate::text::commitments::{Certainty, Commitment, EDITED, OPENED, commitments};
use crate::text::edits;
use crate::text::envelope::{is_observation, names_speaker};
use crate::text::estimate::count;
use crate::text::references::chosen_in;
use crate::text::rules::{
    Claim, Said, Sentence, Wanted, agreed_in, answered_in, chosen_again_in, claim_at, raise_corrections, read, said,
};
use crate::tokens::BuildMixedHasher;

use super::documents::SHORT_TOKENS;
use super::draft::{Draft, Entry, Piece, Slot};
use super::protection::{Protection, Tier};

/// Who says the same more often agrees to nothing by it: "sure".
const MOST_AGREED: usize = 2;

/// A user who types at most this share of a conversation says little.
pub const LITTLE: f32 = 0.4;
/// The same beside calls and results; and the share of words from which these are few. With 0.4 for both .49 of what a customer's
/// case needs next stays at 25 % in place of .54.
pub const LITTLE_BESIDE_WORK: f32 = 0.25;
pub const MOSTLY_TALK: f32 = 0.8;
/// Claims above this share of what the user says are usual.
const OFTEN: f32 = 0.03;
/// Factor of that beside a usual claim, as in a meeting: with a quarter in place of an eighth, .617 of the evidence of Chinese
/// meetings stays at 25 %, with this .619.
pub const RARER: f32 = 1.0 / 8.0;
/// Share of routine in what people say to each other; and how much more than [`OFTEN`] may be claims beside more of it: who asks
/// the same things again and again says the rest for good.
const USUAL_ROUTINE: f32 = 0.4;
const OFTEN_BESIDE_ROUTINE: f32 = 0.4;
/// Share of routine from which all else is worth keeping.
const MOSTLY_ROUTINE: f32 = 0.75;
/// Number of sentences of one form from which each is routine.
const REPEATED: usize = 8;
/// Number of sentences that hold by one word, from which it is an everyday one: with every tenth message like "The invoice is still
/// open" in 16 languages ("immer noch", "toujours pas", "only just") 170 of 384 rules and facts went at 10 % without this.
const REMARKED: usize = 16;
/// Claims that no repetition of their form lowers.
const LASTING: [Claim; 2] = [Claim::Rule, Claim::Answer];
/// Claims that hold wherever they are made; and others, in the order in which they may be usual.
const HOLDING: [Claim; 3] = [Claim::Rule, Claim::Order, Claim::Fact];
const OTHERS: [Claim; 4] = [Claim::Trait, Claim::Answer, Claim::Wish, Claim::Brief];

/// Commitments above this share of what the model says are usual.
const COMMITTED: f32 = 0.03;
/// What more of its texts count is no account that it keeps, by one word; by more words one is kept from so many times on, and these
/// are most.
const MOST_COUNTS: usize = 6;
const ACCOUNTED: usize = 3;
const MOST_ACCOUNTS: usize = 6;

/// An entry, and the position of a piece in it.
pub type At = (usize, usize);

/// What the user says in the groups that may go.
pub struct Users {
    /// By text, in order.
    pub said: Vec<(At, Said)>,
    /// Questions and offers of the model that are answered in a few words, likewise; each with its answer.
    pub questions: Vec<(At, Range<usize>, At)>,
    /// Sentences in which the model commits itself, in its longer texts.
    pub commitments: Vec<(At, Commitment)>,
    /// Claims that are rare, or all of a user who says little: in a talk among several people a usual one says nothing.
    pub rare: Vec<Claim>,
    /// The share of what the user says above which claims are usual.
    pub often: f32,
    /// Whether most of it begins with a name, as in a meeting: these are the words of several people.
    pub are_many: bool,
}

impl Users {
    /// Reads every text of the user; O(n).
    pub fn of(draft: &Draft<'_, '_>, protection: &Protection) -> Self {
        let (mut texts, mut all, mut talk, mut typed, mut named) = (Vec::new(), 0, 0, 0, 0);
        let (mut questions, mut before, mut replies) = (Vec::new(), None, Vec::new());
        // What the user has chosen from, and agreed to.
        let mut list: Option<At> = None;
        let mut agreed: Vec<(At, Range<usize>, usize)> = Vec::new();
        for (group, tier) in protection.groups.iter().zip(&protection.tiers) {
            let kept = (group.start..group.end).filter(|&entry| draft.entries[entry].dropped.is_none());
            for (entry, piece) in kept.flat_map(|entry| (0..draft.entries[entry].pieces.len()).map(move |i| (entry, i)))
            {
                let text = draft.text(entry, piece);
                all += text.len();
                let of = &draft.entries[entry];
                let author = author(&of.pieces[piece], of, text);
                if matches!(author, Some(Author::Assistant | Author::User)) {
                    talk += text.len();
                }
                if author == Some(Author::Assistant) {
                    before = Some((entry, piece));
                    // What somebody says under a name, as in a meeting, is not the model's.
                    if !names_speaker(text) {
                        replies.push((entry, piece));
                    }
                }
                if is_said(*tier, author, text) {
                    let mut said = Said::clone(&said(text));
                    let of_model = before.take();
                    if let Some((at, range)) = answered(draft, of_model, &mut list, text) {
                        if said.answer(text) {
                            questions.push((at, range, (entry, piece)));
                        }
                    } else if let Some(at) = of_model
                        && let Some(range) = agreed_in(draft.text(at.0, at.1), text)
                    {
                        agreed.push((at, range, texts.len()));
                    }
                    typed += said.typed_bytes;
                    named += if names_speaker(text) { said.typed_bytes } else { 0 };
                    texts.push(((entry, piece), said));
                }
            }
        }
        let mut times = HashMap::<&str, usize>::new();
        let text_of = |(entry, piece): At| draft.text(entry, piece);
        for (.., index) in &agreed {
            *times.entry(text_of(texts[*index].0).trim()).or_default() += 1;
        }
        for (at, range, index) in agreed {
            let (answer, said): &mut (At, Said) = &mut texts[index];
            let text = text_of(*answer);
            if times[text.trim()] <= MOST_AGREED && said.answer(text) {
                questions.push((at, range, *answer));
            }
        }
        lower_usual_rules(draft, &mut texts);
        let routine = weigh_routine(&mut texts, typed);
        let often = OFTEN + OFTEN_BESIDE_ROUTINE * (routine - USUAL_ROUTINE).max(0.0);
        let says_little = share(typed, all) <= LITTLE;
        let held = |wanted: Claim| {
            let sentences = texts.iter().flat_map(|(_, said)| &said.claims).filter(|(claim, _)| *claim == wanted);
            share(sentences.map(|(_, at)| at.len()).sum(), typed)
        };
        let (rare, are_few) = rare_claims(held, says_little, often);
        let is_talk = share(talk, all) > MOSTLY_TALK;
        if are_few || says_little || is_talk {
            let read = texts.iter_mut().map(|((entry, piece), said)| (draft.text(*entry, *piece), said));
            // A few words beside work hold until they are corrected; where all is talk, they are talk.
            let may_hold = |claim: &Claim| says_little && !is_talk || *claim >= Claim::Wish;
            let claims: Vec<Claim> = rare.iter().copied().filter(may_hold).collect();
            raise_corrections(read, &claims, are_few || says_little, Wanted::Kept);
        }
        // Who chooses again means an earlier list.
        questions.sort_by_key(|(at, range, _)| (*at, range.start));
        let commitments = rare_commitments(draft, &replies, says_little);
        Self { said: texts, questions, commitments, rare, often, are_many: named * 2 > typed }
    }
}

/// Returns what a text of the user answers: something of the model's text `before`, or another item of the `list` that the user has
/// chosen from.
fn answered(
    draft: &Draft<'_, '_>,
    before: Option<At>,
    list: &mut Option<At>,
    text: &str,
) -> Option<(At, Range<usize>)> {
    let of = |(entry, piece): At| draft.text(entry, piece);
    let again = |at: At| Some((at, chosen_again_in(of(at), text)?));
    if before.is_some_and(|at| chosen_in(of(at), text).is_some()) {
        *list = before;
    } else if let Some(found) = list.and_then(again) {
        return Some(found);
    }
    before.and_then(|at| Some((at, answered_in(of(at), text)?)))
}

/// Returns the sentences that may commit the model and are rare in what it says in `texts`, the most certain ones at least beside a
/// user who says little: where people talk as much as each other, no one is the model. And what the texts change, rare or not.
fn rare_commitments(draft: &Draft<'_, '_>, texts: &[At], says_little: bool) -> Vec<(At, Commitment)> {
    let (mut found, mut edited, mut by_certainty, mut all) = (Vec::new(), Vec::new(), BTreeMap::<_, usize>::new(), 0);
    for &(entry, piece) in texts {
        let text = draft.text(entry, piece);
        let edits = edits::in_reply(text);
        if draft.entries[entry].pieces[piece].tokens > SHORT_TOKENS {
            all += text.len();
            let is_committed = |said: &&Commitment| said.certainty > 0 && !is_edited(&edits, &said.range);
            for commitment in commitments(text).iter().filter(is_committed) {
                *by_certainty.entry(commitment.certainty).or_default() += commitment.range.len();
                found.push(((entry, piece), commitment.clone()));
            }
        }
        let edit = |range| Commitment { certainty: EDITED, range, counts: Default::default(), account: 0 };
        edited.extend(edits.into_iter().map(|range| ((entry, piece), edit(range))));
    }
    let mut sum = 0;
    let is_rare = |&(certainty, bytes): &(&Certainty, &usize)| {
        sum += bytes;
        says_little && *certainty >= OPENED || share(sum, all) <= COMMITTED
    };
    let least = by_certainty.iter().rev().take_while(is_rare).last().map(|(certainty, _)| *certainty);
    found.retain(|(_, commitment)| least.is_some_and(|least| commitment.certainty >= least));
    found.extend(edited);
    found.extend(newest_counts(draft, texts));
    found.sort_by_key(|(at, commitment)| (*at, commitment.range.start, Reverse(commitment.certainty)));
    found.dedup_by_key(|(at, commitment)| (*at, commitment.range.start));
    found
}

/// The sentences that count the same: how many they are, in how many texts, and the newest.
struct Counted {
    sentences: usize,
    texts: usize,
    newest: (At, Commitment),
}

/// Returns the sentences of the model's texts by what they count, of which `keys` has hashes, 0 for nothing.
fn counted(draft: &Draft<'_, '_>, texts: &[At], keys: impl Fn(&Commitment) -> &[u64]) -> Vec<Counted> {
    let mut counted = HashMap::<u64, Counted, BuildMixedHasher>::default();
    for &at in texts {
        for sentence in commitments(draft.text(at.0, at.1)).iter() {
            for &key in keys(sentence).iter().filter(|key| **key != 0) {
                let new = || Counted { sentences: 0, texts: 1, newest: (at, sentence.clone()) };
                let of_key = counted.entry(key).or_insert_with(new);
                of_key.sentences += 1;
                of_key.texts += usize::from(of_key.newest.0 != at);
                of_key.newest = (at, sentence.clone());
            }
        }
    }
    counted.into_values().collect()
}

/// Returns the newest sentences that count what a few of the model's texts do: "After that, 260 euros remain." behind "You have 754
/// euros left." And those of the accounts that it keeps most often: "Quiz score: you 349, me 9."
fn newest_counts(draft: &Draft<'_, '_>, texts: &[At]) -> Vec<(At, Commitment)> {
    let mut few = counted(draft, texts, |sentence| &sentence.counts);
    few.retain(|Counted { texts, newest: ((entry, piece), _), .. }| {
        (2..=MOST_COUNTS).contains(texts) && draft.entries[*entry].pieces[*piece].tokens > SHORT_TOKENS
    });
    let mut accounts = counted(draft, texts, |sentence| std::slice::from_ref(&sentence.account));
    accounts.retain(|account| account.sentences >= ACCOUNTED);
    accounts
        .sort_by_key(|Counted { sentences, newest: (at, newest), .. }| (Reverse(*sentences), *at, newest.range.start));
    accounts.truncate(MOST_ACCOUNTS);
    let newest = few.into_iter().chain(accounts).map(|Counted { newest: (at, sentence), .. }| {
        (at, Commitment { certainty: OPENED.max(sentence.certainty), ..sentence })
    });
    newest.collect()
}

/// Returns whether a sentence is in what a text changes.
fn is_edited(edits: &[Range<usize>], said: &Range<usize>) -> bool {
    let next = edits.partition_point(|edit| edit.end <= said.start);
    edits.get(next).is_some_and(|edit| edit.start < said.end)
}

/// Returns the claims that are rare by their shares of what the user says, and whether they are few together.
fn rare_claims(held: impl Fn(Claim) -> f32, says_little: bool, often: f32) -> (Vec<Claim>, bool) {
    let mut rare = HOLDING.to_vec();
    let mut sum: f32 = HOLDING.into_iter().map(&held).sum();
    let rarer = often * RARER;
    let mut often = if sum <= often { often } else { rarer };
    for claim in OTHERS {
        let held = held(claim);
        if says_little || sum + held <= often {
            rare.push(claim);
            sum += held;
        } else {
            often = rarer;
        }
    }
    (rare, sum <= often)
}

/// Makes rules mere wishes that are not said to hold for good, where [`REPEATED`] of them or more start alike and go on differently:
/// "Please make sure the parser builds." And those that hold by one word alone, where [`REMARKED`] of them or more have that word:
/// "The invoice is always late." O(claims).
fn lower_usual_rules(draft: &Draft<'_, '_>, texts: &mut [(At, Said)]) {
    let mut openings: HashMap<u64, HashSet<u64>> = HashMap::new();
    let mut remarks: HashMap<u64, usize> = HashMap::new();
    let mut rules = Vec::new();
    for (index, ((entry, piece), said)) in texts.iter().enumerate() {
        let of_text = said.claims.iter().enumerate();
        for (position, (_, range)) in of_text.filter(|(_, (claim, _))| *claim == Claim::Rule) {
            let sentence = draft.text(*entry, *piece)[range.clone()].trim();
            let opening = xxh3_64(opening(sentence).as_bytes());
            openings.entry(opening).or_default().insert(xxh3_64(sentence.as_bytes()));
            let reading = read(sentence);
            let remark = reading.and_then(|reading| reading.remark);
            if let Some(word) = remark {
                *remarks.entry(word).or_default() += 1;
            }
            rules.push(((index, position), (opening, reading.is_some_and(|reading| reading.is_firm), remark)));
        }
    }
    for ((index, position), (opening, is_firm, remark)) in rules {
        let is_usual = openings[&opening].len() >= REPEATED && !is_firm;
        if is_usual || remark.is_some_and(|word| remarks[&word] >= REMARKED) {
            texts[index].1.claims[position].0 = Claim::Wish;
        }
    }
}

/// Words of a sentence by which it starts as others do; characters in scripts without spaces.
const OPENING_WORDS: usize = 3;
const OPENING_CHARACTERS: usize = 4;

/// Returns the start of a sentence.
fn opening(sentence: &str) -> &str {
    let is_wide = sentence.starts_with(|c: char| c >= FIRST_WIDE);
    let end = if is_wide {
        sentence.char_indices().nth(OPENING_CHARACTERS)
    } else {
        sentence.char_indices().filter(|(_, c)| c.is_whitespace()).nth(OPENING_WORDS - 1)
    };
    &sentence[..end.map_or(sentence.len(), |(at, _)| at)]
}

/// Lowers the claims of routine: sentences of one form, again and again with other names or numbers. Beside hardly anything else, what
/// is no routine is worth as much as if it were brief. Returns the share of routine and of questions. O(sentences).
fn weigh_routine(texts: &mut [(At, Said)], typed: usize) -> f32 {
    let mut routines: HashMap<u64, Routine, BuildMixedHasher> = HashMap::default();
    for Sentence { form, range, .. } in texts.iter().flat_map(|(_, said)| &said.sentences) {
        let new = Routine { names: form.names, times: 0, bytes: 0, differs: false };
        let routine = routines.entry(form.words).or_insert(new);
        routine.differs |= routine.names != form.names;
        (routine.times, routine.bytes) = (routine.times + 1, routine.bytes + range.len());
    }
    routines.retain(|_, routine| routine.times >= REPEATED);
    let others = texts.iter().flat_map(|(_, said)| &said.sentences);
    let asked = others.filter(|sentence| sentence.is_asked && !routines.contains_key(&sentence.form.words));
    let asked: usize = asked.map(|sentence| sentence.range.len()).sum();
    let repeated: usize = routines.values().map(|routine| routine.bytes).sum();
    let routine = share(repeated + asked, typed);
    // "Mondays are off limits How is the weather in Lima?"
    let (raises, raises_asked) = (routine >= MOSTLY_ROUTINE, share(repeated, typed) >= MOSTLY_ROUTINE);
    for (_, Said { claims, sentences, .. }) in texts {
        for Sentence { range, is_asked, form } in sentences {
            let is_routine = routines.get(&form.words).map(|routine| routine.differs);
            let raises = if *is_asked { raises_asked } else { raises };
            match (is_routine, claim_at(claims, range)) {
                (Some(true), Ok(at)) if claims[at].1 == *range && !LASTING.contains(&claims[at].0) => {
                    claims[at].0 = Claim::Stated;
                }
                (None, Ok(at)) if raises => claims[at].0 = Claim::Brief.max(claims[at].0),
                (None, Err(at)) if raises => claims.insert(at, (Claim::Brief, range.clone())),
                _ => {}
            }
        }
    }
    routine
}

/// Sentences of one form.
struct Routine {
    /// The names of the first, and whether some have others.
    names: u64,
    differs: bool,
    times: usize,
    bytes: usize,
}

fn share(part: usize, whole: usize) -> f32 {
    count(part) / count(whole.max(1))
}

/// Returns whether a text is the user's own.
fn is_said(tier: Option<Tier>, author: Option<Author>, text: &str) -> bool {
    tier.is_some() && author == Some(Author::User) && !is_notes(text)
}

/// Returns who brought a piece; `None` where there is nothing to read in it, or nothing that was said.
pub fn author(piece: &Piece, entry: &Entry, text: &str) -> Option<Author> {
    match (piece.slot, entry.role) {
        (Slot::Arguments(_) | Slot::Field(Field::FunctionArguments), _) => Some(Author::Call),
        (Slot::Field(Field::Refusal), _) => Some(Author::Assistant),
        (Slot::Media(_) | Slot::Field(_), _) => None,
        (_, Role::System) => Some(Author::System),
        (_, Role::User) if is_observation(text) => Some(Author::Result),
        (_, Role::User) => Some(Author::User),
        (_, Role::Assistant) => Some(Author::Assistant),
        (_, Role::Tool | Role::Function) => Some(Author::Result),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the claims of texts behind [`weigh_routine`], and the share of routine in them.
    fn lowered(texts: &[String]) -> (Vec<Claim>, f32) {
        let mut all: Vec<(At, Said)> =
            texts.iter().enumerate().map(|(i, text)| ((i, 0), Said::clone(&said(text)))).collect();
        let routine = weigh_routine(&mut all, texts.iter().map(String::len).sum());
        let claims = all.iter().flat_map(|(_, said)| &said.claims).map(|(claim, _)| *claim).collect();
        (claims, routine)
    }

    #[test]
    fn what_is_said_again_and_again_with_other_names_claims_nothing() {
        for of in [
            |city: &str, i: usize| format!("Show me the report for {city}, number {i}."),
            |city: &str, i: usize| format!("Zeig mir {city}, Punkt {i}."),
            |city: &str, i: usize| format!("查一下{city}的天气，第{i}项。"),
            |city: &str, i: usize| format!("{city} 오늘 날씨 어때요? 항목 {i}"),
            |city: &str, i: usize| format!("How is the weather in {city}, {i}?"),
        ] {
            let cities = ["Lima", "Graz", "Oslo"].iter().cycle().take(REPEATED);
            let texts: Vec<String> = cities.enumerate().map(|(i, city)| of(city, i)).collect();
            let (claims, routine) = lowered(&texts);
            assert!(claims.iter().all(|claim| *claim == Claim::Stated), "{texts:?}");
            assert!(routine > 0.9, "{texts:?}");
        }
    }

    #[test]
    fn a_rule_that_is_said_again_and_again_stays_one() {
        let rule = vec!["Never push to main.".to_owned(); REPEATED];
        assert_eq!(lowered(&rule).0, [Claim::Rule; REPEATED]);
        let (claims, routine) = lowered(&[rule[0].clone(), "Show me the report for Lima.".to_owned()]);
        assert_eq!(claims[0], Claim::Rule);
        assert!(routine < 0.1);
    }
}
