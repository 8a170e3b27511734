//! Finds sentences in which the model commits itself: it promises, decides, corrects itself, or leaves something open.
//!
//! By their starts and words (`commitments.tsv`), by the first person, or because a sentence is a paragraph of its own among others.

use std::collections::{HashMap, HashSet};
use std::ops::Range;
use std::sync::{Arc, LazyLock};

use xxhash_rust::xxh3::{xxh3_64, xxh3_64_with_seed};

use super::bytes::{FIRST_WIDE, has_digit};
use super::conclusions::announces;
use super::phrases::Phrases;
use super::rules::{is_asked, stands_alone};
use super::sentences::{paragraph_end, sentences};
use super::stop_list::stop_words;
use crate::cache::{Allowance, COMMITMENTS};
use crate::tokens::ContentMemory;

/// Most bytes of such a sentence.
const MAX_BYTES: usize = 400;

/// Most bytes of one that only stands apart, and fewest paragraphs beside it.
const MAX_APART_BYTES: usize = 200;
const MIN_PARAGRAPHS: usize = 3;

/// How certain it is that a sentence commits the model: the sum of what tells so.
pub type Certainty = u8;

/// The model's work, and no sentence: what a reply changes.
pub const EDITED: Certainty = Certainty::MAX;
/// Its start tells: "I promise".
pub const OPENED: Certainty = 8;
/// It sets the user a task: "Your turn. Translate the first line."
const TASK: Certainty = 9;
/// Most words of what says so.
const MAX_TASK_WORDS: usize = 5;
/// A word in it: "so it's settled".
const WORDED: Certainty = 2;
/// It is said in the first person, or of what is the user's.
const TOLD: Certainty = 1;
/// It is a paragraph of its own.
const APART: Certainty = 2;
/// The first person alone tells little.
const LEAST: Certainty = 2;
/// It tells of the user or the model with a number, or of a code: "Your table is booked for 20:15, reference QX7-44Z."
const FIGURED: Certainty = 1;

/// What a phrase is.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Start,
    /// As a start, to the end of its paragraph.
    Task,
    Anywhere,
    First,
    /// What is done or left, and for how long: both together are a start anywhere.
    Vow,
    Frame,
    /// Says nothing, though other words would.
    Nothing,
    Filler,
}

/// A phrase: the words behind its first, and those that come later.
struct Phrase {
    kind: Kind,
    next: Vec<&'static str>,
    later: Vec<&'static str>,
}

impl Phrase {
    /// Returns whether the words behind the first are the phrase's.
    fn goes_on(&self, behind: &[&str]) -> bool {
        behind.starts_with(&self.next)
            && (self.later.is_empty()
                || behind[self.next.len()..].windows(self.later.len()).any(|words| words == self.later))
    }
}

/// The phrases of `commitments.tsv`.
struct Lexicon {
    phrases: Phrases<Phrase>,
    /// Starts in scripts without spaces, those that may stand anywhere, words anywhere in these, and starts of tasks.
    wide: Vec<&'static str>,
    wide_within: Vec<&'static str>,
    wide_anywhere: Vec<&'static str>,
    wide_tasks: Vec<&'static str>,
}

static LEXICON: LazyLock<Lexicon> = LazyLock::new(|| {
    let mut by_first = HashMap::<_, Vec<_>, _>::default();
    let (mut wide, mut wide_within) = (Vec::new(), Vec::new());
    let (mut wide_anywhere, mut wide_tasks) = (Vec::new(), Vec::new());
    for (kind, phrases) in include_str!("commitments.tsv").lines().filter_map(|row| row.split_once('\t')) {
        let phrases = phrases.split(", ");
        let kind = match kind {
            "start" => Kind::Start,
            "task" => Kind::Task,
            "any" => Kind::Anywhere,
            "first" => Kind::First,
            "vow" => Kind::Vow,
            "frame" => Kind::Frame,
            "filler" => Kind::Filler,
            "wide" => {
                wide.extend(phrases);
                continue;
            }
            "wide-within" => {
                wide_within.extend(phrases);
                continue;
            }
            "wide-task" => {
                wide_tasks.extend(phrases);
                continue;
            }
            "wide-any" => {
                wide_anywhere.extend(phrases);
                continue;
            }
            _ => Kind::Nothing,
        };
        for phrase in phrases {
            let (next, later) = phrase.split_once(" ~ ").unwrap_or((phrase, ""));
            let (first, next) = next.split_once(' ').unwrap_or((next, ""));
            let words = |text: &'static str| text.split(' ').filter(|word| !word.is_empty()).collect();
            let phrase = Phrase { kind, next: words(next), later: words(later) };
            by_first.entry(xxh3_64(first.as_bytes())).or_default().push(phrase);
        }
    }
    Lexicon { phrases: Phrases::new(by_first), wide, wide_within, wide_anywhere, wide_tasks }
});

/// A sentence that may commit the model.
#[derive(Debug, Clone)]
pub struct Commitment {
    /// 0 for one that only counts something.
    pub certainty: Certainty,
    pub range: Range<usize>,
    /// What it counts: hashes of the words beside its first numbers, "euros" of "That leaves 688 euros."; 0 for none.
    pub counts: [u64; MAX_COUNTS],
    /// A hash of the words around its first number: "Quiz score: you 349, me 9." counts what "Quiz score: you 279, me 9." does; 0
    /// for none.
    pub account: u64,
}

/// Most things that a sentence counts.
pub const MAX_COUNTS: usize = 2;

pub static MEMORY: LazyLock<ContentMemory<Box<[Commitment]>>> =
    LazyLock::new(|| ContentMemory::new(Allowance::Share(&COMMITMENTS)));

/// Returns the sentences of a text of the model that may commit it; O(n) the first time.
pub fn commitments(text: &str) -> Arc<Box<[Commitment]>> {
    MEMORY.get_or_make(text, 0, || {
        let found: Box<[Commitment]> = find(text).collect();
        let bytes = size_of_val(&*found);
        (found, bytes)
    })
}

fn find(text: &str) -> impl Iterator<Item = Commitment> {
    let has_paragraphs = text.matches("\n\n").take(MIN_PARAGRAPHS).count() == MIN_PARAGRAPHS;
    sentences(text).filter(|at| at.len() <= MAX_BYTES).filter_map(move |range| {
        let said = text[range.clone()].trim();
        if said.starts_with('#') {
            return None;
        }
        let (worded, counts, account) = (worded(said), counts(said), account(said));
        if worded >= OPENED {
            let line = if worded == TASK { paragraph_end(text, range.start) } else { range.end };
            let end = text.floor_char_boundary(line.min(range.start + MAX_BYTES)).max(range.end);
            return Some(Commitment { certainty: worded, range: range.start..end, counts, account });
        }
        let is_apart = has_paragraphs && said.len() <= MAX_APART_BYTES && ends(said) && stands_alone(text, &range);
        let certainty = match worded + if is_apart { APART } else { 0 } {
            certainty if certainty >= LEAST && !announces(said) => certainty,
            _ if is_figured(said, worded == TOLD) => FIGURED,
            _ if counts == [0; MAX_COUNTS] && account == 0 => return None,
            _ => 0,
        };
        (!is_asked(said)).then_some(Commitment { certainty, range, counts, account })
    })
}

static STOP_WORDS: LazyLock<HashSet<&str>> = LazyLock::new(|| stop_words().collect());

/// Returns what a sentence counts: the words right behind its numbers, else those before them.
fn counts(said: &str) -> [u64; MAX_COUNTS] {
    let mut found = [0; MAX_COUNTS];
    // Code counts nothing.
    if !has_digit(said) || said.contains(['=', '{', '`', '|', '<', ';', '_']) {
        return found;
    }
    let words: Vec<&str> = said.split(|c: char| !c.is_alphanumeric() && !matches!(c, '.' | ',')).collect();
    let is_number = |word: &str| {
        word.starts_with(|c: char| c.is_ascii_digit())
            && word.bytes().all(|b| b.is_ascii_digit() || matches!(b, b'.' | b','))
    };
    let unit = |word: Option<&&str>| {
        let bare = word?.trim_end_matches(['.', ',']).to_lowercase();
        let is_unit =
            bare.chars().count() >= 3 && bare.chars().all(char::is_alphabetic) && !STOP_WORDS.contains(&*bare);
        is_unit.then(|| xxh3_64(bare.strip_suffix('s').unwrap_or(&bare).as_bytes()))
    };
    let numbers = words.iter().enumerate().filter(|(_, word)| is_number(word));
    let units = numbers.filter_map(|(i, word)| {
        // "in 1998.": a sentence ends behind it.
        let behind = if word.ends_with(['.', ',']) { None } else { unit(words.get(i + 1)) };
        behind.or_else(|| unit(i.checked_sub(1).and_then(|before| words.get(before))))
    });
    let wide = wide_units(said);
    for (slot, unit) in found.iter_mut().zip(units.chain(wide)) {
        *slot = unit;
    }
    found
}

/// Most words before the first number of an account.
const MAX_ACCOUNT_WORDS: usize = 4;

/// Returns a hash of the last words before the first number of a sentence, and of the first one behind it; 0 without words before.
pub fn account(said: &str) -> u64 {
    // Code keeps none.
    let number = said.find(|c: char| c.is_ascii_digit()).filter(|_| !said.contains(['=', '{', '`', '<', '_']));
    let Some(number) = number else { return 0 };
    let before: Vec<&str> = words(&said[..number]).collect();
    let before = &before[before.len().saturating_sub(MAX_ACCOUNT_WORDS)..];
    let behind = words(&said[number..]).next();
    // One short word is said of anything: "Of 40". In brackets it is a label.
    let bytes = before.iter().map(|word| word.len()).sum::<usize>();
    if bytes < MIN_ACCOUNT_BYTES && !(said.starts_with(['[', '(', '*']) && bytes > 0) {
        return 0;
    }
    let hash = |all: u64, word: &&str| xxh3_64_with_seed(word.to_lowercase().as_bytes(), all);
    before.iter().chain(&behind).fold(1, hash)
}

fn words(text: &str) -> impl Iterator<Item = &str> {
    text.split(|c: char| !c.is_alphabetic()).filter(|word| !word.is_empty())
}

/// Least bytes of the words before the number.
const MIN_ACCOUNT_BYTES: usize = 4;

/// Returns the hashes of the two characters right behind numbers in scripts without spaces: 还剩260欧元.
fn wide_units(said: &str) -> impl Iterator<Item = u64> {
    let ends = said
        .char_indices()
        .zip(said.chars().skip(1))
        .filter(|((_, c), next)| c.is_ascii_digit() && *next >= FIRST_WIDE);
    ends.map(|((at, _), _)| {
        let behind = &said[at + 1..];
        let end = behind.char_indices().nth(2).map_or(behind.len(), |(end, _)| end);
        xxh3_64(&behind.as_bytes()[..end])
    })
}

/// Fewest bytes of a code.
const MIN_CODE_BYTES: usize = 5;

/// Returns whether a sentence that is told has a number, or any has a code of digits, or of these and capitals.
fn is_figured(said: &str, is_told: bool) -> bool {
    let is_code = |word: &str| {
        word.len() >= MIN_CODE_BYTES
            && has_digit(word)
            && (word.bytes().all(|byte| byte.is_ascii_digit()) || word.bytes().any(|byte| byte.is_ascii_uppercase()))
    };
    let is_told = is_told || said.contains(['我', '你', '您']);
    has_digit(said) && (is_told || said.split(|c: char| !c.is_ascii_alphanumeric() && c != '-').any(is_code))
}

/// Returns whether a line ends as a sentence of prose does.
fn ends(said: &str) -> bool {
    let is_marked = said.starts_with(['|', '`', '>', '-', '*', '_']);
    !is_marked && said.ends_with(['.', '!', '。', '！', '।'])
}

/// Returns how certain the words of a sentence make it.
fn worded(said: &str) -> Certainty {
    let said = said.trim_start_matches(|c: char| "*_-#>• ".contains(c));
    let is_wide = said.contains(|c: char| c >= FIRST_WIDE);
    let begins = |starts: &[&str]| is_wide && starts.iter().any(|start| said.starts_with(start));
    if begins(&LEXICON.wide_tasks) {
        return TASK;
    }
    if begins(&LEXICON.wide) || is_wide && LEXICON.wide_within.iter().any(|words| said.contains(words)) {
        return OPENED;
    }
    let lower = said.to_lowercase().replace('’', "'");
    let is_within = |c: char| c.is_alphanumeric() || matches!(c, '\'' | '-');
    let mut words: Vec<&str> = lower.split(|c: char| !is_within(c)).filter(|word| !word.is_empty()).collect();
    let has = |words: &[&str], kind: Kind| {
        let Some((first, behind)) = words.split_first() else { return false };
        LEXICON.phrases.of(xxh3_64(first.as_bytes())).iter().any(|phrase| phrase.kind == kind && phrase.goes_on(behind))
    };
    if has(&words, Kind::Filler) {
        words.remove(0);
    }
    let lead = lower.split([':', '.', '!', '：']).next().unwrap_or_default();
    if has(&words, Kind::Task) && lead.len() < lower.len() && lead.split(' ').count() <= MAX_TASK_WORDS {
        return TASK;
    }
    if has(&words, Kind::Start) {
        return OPENED;
    }
    let any = |kind: Kind| (0..words.len()).any(|at| has(&words[at..], kind));
    if any(Kind::Frame) && any(Kind::Vow) && !any(Kind::Nothing) {
        return OPENED;
    }
    let is_worded = any(Kind::Anywhere) || is_wide && LEXICON.wide_anywhere.iter().any(|word| said.contains(word));
    let told = if has(&words, Kind::First) { TOLD } else { 0 };
    match told + if is_worded { WORDED } else { 0 } {
        certainty if certainty > 0 && any(Kind::Nothing) => 0,
        certainty => certainty,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_model_commits_itself_to_is_found() {
        for said in [
            "I promise to check the tide tables for you next time.",
            "I will send you a shorter version tomorrow.",
            "**So the decision is:** oak floor, laid diagonally.",
            "We agreed that Dov burned the boat.",
            "- Open question: who pays for the shuttle bus?",
            "I was wrong earlier: the answer is 42, not 36.",
            "To summarise our plan: algebra on Mondays.",
            "Wir haben uns auf Eiche geeinigt.",
            "Je me suis trompé : c'est 42.",
            "我之前说错了，答案是42。",
            "訂正：締め切りは5月14日です。",
            "Your table at Osteria Nonna is booked for 20:15, reference QX7-44Z.",
            "Done, I'll remind you on Friday to call Vera.",
            "Before each exercise I will first ask how the shoulder feels.",
            "Bis das Knie untersucht ist, schlage ich nur Radfahren vor.",
            "No volveré a mencionar el divorcio salvo que lo saques tú.",
            "As agreed, the villain keeps his limp.",
            "膝盖检查之前我只建议骑车和游泳。",
            "膝の検査が済むまでは水泳だけを提案します。",
            "I'll nudge you at 7 pm about the medication.",
            "The flight is paid, record locator K7TQ2M.",
            "晚上7点我会叫你吃药。",
        ] {
            let text = format!("It is late. {said}\nThe sun sets.");
            let found: Vec<&str> = find(&text).map(|found| text[found.range].trim()).collect();
            assert_eq!(found, [said]);
        }
    }

    #[test]
    fn a_task_is_its_whole_paragraph() {
        for task in [
            "**Exercise.** Translate: \"Agricola hastas vidit.\" Take your time.",
            "Your turn. How many moles are in 40 g of chalk?",
            "Here is your exercise: A shop sells 90 pencils. How many boxes?",
            "Aufgabe: Setze den Satz ins Passiv. Du hast Zeit.",
            "轮到你了：把第一句翻译成英文。不用急。",
        ] {
            let text = format!("It is late.\n\n{task}\n\nThe sun sets.");
            let found =
                find(&text).find(|found| found.certainty == TASK).map(|found| text[found.range].trim().to_owned());
            assert_eq!(found.as_deref(), Some(task));
        }
        assert!(find("Your turn to pay comes on the fifth day of each month.").all(|found| found.certainty < TASK));
    }

    #[test]
    fn an_account_is_known_by_the_words_around_its_first_number() {
        for (one, other) in [
            ("Correct! Quiz score: you 349, me 9.", "Correct! Quiz score: you 279, me 12."),
            ("You have 754 gold now.", "You have 31 gold left."),
            ("[HP 7/60, 546 gold, carrying: rope]", "[HP 9/60, 12 gold, carrying: rope; torch]"),
            ("你现在有231枚金币。", "你现在有40枚金币。"),
        ] {
            assert_ne!(account(one), 0, "{one}");
            assert_eq!(account(one), account(other), "{one}");
        }
        assert_ne!(account("You have 754 gold now."), account("You have 31 apples."));
        assert_eq!(["Of 40 rows.", "No number.", "total = base * rate + 21"].map(account), [0; 3]);
    }

    #[test]
    fn what_a_sentence_counts_is_told_by_the_word_beside_the_number() {
        for (one, other) in [
            ("You have 754 euros left.", "After that, 1,260.50 euros remain."),
            ("You are on page 112.", "So you are on page 340 now."),
            ("还剩754欧元。", "之后剩下260欧元。"),
            ("Es bleiben 754 Euro.", "Damit sind noch 12 Euro übrig."),
        ] {
            assert_ne!(counts(one), [0; MAX_COUNTS], "{one}");
            assert_eq!(counts(one), counts(other), "{one}");
        }
        assert_eq!(counts("It was built in 1998. The door is red."), [0; MAX_COUNTS]);
    }

    #[test]
    fn what_it_explains_is_none() {
        for said in [
            "## Next steps",
            "I will explain each of the steps.",
            "The plan of the house has three rooms.",
            "We use a loop here.",
            "So it goes.",
            "建筑有三层。",
            "The house has 3 floors and 2 doors.",
            "I'll explain each of the 3 steps.",
            "",
        ] {
            assert_eq!(find(said).filter(|found| found.certainty > 0).count(), 0, "{said}");
        }
    }
}
