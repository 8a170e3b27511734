//! Sentences of the user that hold from then on: rules, requests, and what the user tells of himself. They stay, to the letter.
//!
//! Single words decide, not whole phrases: words that make something hold for good, a verb that asks at the start, the first
//! person. `rules.tsv` has them by language. What was pasted (logs, code, quotations, tables) is told apart by the form of its
//! lines and says nothing of the user.

use std::collections::{HashMap, HashSet};
use std::ops::Range;
use std::sync::LazyLock;

use xxhash_rust::xxh3::xxh3_64;

use super::bytes::{Filter, has_time};
use super::envelope;
use super::excerpt::is_fence;

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
    for row in include_str!("rules.tsv").lines().filter(|row| !row.starts_with('#')) {
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

/// Longest sentence that is a rule; longer ones are texts that someone pasted.
const MAX_RULE_BYTES: usize = 400;

/// Most words of a sentence that is brief, and how many characters it has in a script without spaces, which begins with the
/// last of these; a word of another script counts as two.
const MAX_BRIEF_WORDS: usize = 8;
const MIN_BRIEF_CHARACTERS: usize = 4;
const MAX_BRIEF_CHARACTERS: usize = 16;
const FIRST_WIDE: char = '\u{2e80}';

/// Bytes at the start and at the end of a text in which somebody may have typed; what is between was pasted, but for rules in it.
const TYPED_BYTES: usize = 32 << 10;

/// What was pasted has no rules of the user where more than one byte in so many is of a sentence that reads like one.
const RARE_BYTES: usize = 64;

/// Returns the sentences of `text` that hold for good: rules, and facts about the user. O(n).
#[must_use]
pub fn standing_rules(text: &str) -> Vec<&str> {
    claimed(text, &[Claim::Rule, Claim::Fact]).map(|sentence| text[sentence].trim()).collect()
}

/// Returns those of `rules` that no text of `shown` has, in their order, each once where it stands last: the newest that have
/// at most `max_bytes` together. O(n) in the rules and in what is shown.
#[must_use]
pub fn rules_left_out<'r>(rules: &[&'r str], shown: &[&str], max_bytes: usize) -> Vec<&'r str> {
    let shown = shown.iter().map(|text| normal(text)).collect::<Vec<_>>().join("\n");
    let (mut seen, mut room) = (HashSet::new(), max_bytes);
    let mut left: Vec<&str> = Vec::new();
    for &rule in rules.iter().rev() {
        let normal = normal(rule);
        if normal.is_empty() || shown.contains(&normal) || !seen.insert(normal) {
            continue;
        }
        let Some(rest) = room.checked_sub(rule.len()) else { break };
        room = rest;
        left.push(rule);
    }
    left.reverse();
    left
}

/// Returns the sentences of `text` that state a rule. O(n).
pub fn rules(text: &str) -> Vec<Range<usize>> {
    claimed(text, &[Claim::Rule]).collect()
}

/// Iterates over the sentences of `text` that are one of `claims`.
fn claimed(text: &str, claims: &[Claim]) -> impl Iterator<Item = Range<usize>> {
    said(text).claims.into_iter().filter(|(claim, _)| claims.contains(claim)).map(|(_, sentence)| sentence)
}

/// Returns whether a line of `text` begins with `#pin` or `#固定`: the user wants it to stay. O(n).
pub fn is_pinned(text: &str) -> bool {
    text.split('\n').any(is_pinned_line)
}

fn is_pinned_line(line: &str) -> bool {
    let Some(word) = line.strip_prefix(['#', '＃']) else { return false };
    let is_end = |rest: &str| rest.is_empty() || rest.starts_with([' ', '\t', '\r', ':', '：']);
    let is_pin = |start: &str| start.eq_ignore_ascii_case("pin");
    word.starts_with("固定") || word.split_at_checked(3).is_some_and(|(start, rest)| is_pin(start) && is_end(rest))
}

/// What the user says in a text.
#[derive(Debug, Default)]
pub struct Said {
    /// The sentences that hold from then on, in order.
    pub claims: Vec<(Claim, Range<usize>)>,
    /// Bytes that somebody typed; the others were pasted.
    pub typed_bytes: usize,
}

/// Returns what the user says in `text`. O(n).
pub fn said(text: &str) -> Said {
    let mut this = Said::default();
    let (middle, mut far, mut far_from) = (middle(text), Far::default(), None);
    for line in typed(text) {
        let is_far = middle.start <= line.start && line.end <= middle.end;
        let is_apart = is_far && is_paragraph(text, &line);
        if is_far {
            far_from.get_or_insert(this.claims.len());
            if !far.is_rare(middle.len()) && !is_apart {
                continue;
            }
        } else {
            this.typed_bytes += line.len();
        }
        if is_pinned_line(&text[line.clone()]) && line.len() <= MAX_RULE_BYTES {
            this.claims.push((Claim::Rule, line.start..line.start + text[line.clone()].trim_end().len()));
            continue;
        }
        for sentence in sentences(&text[line.clone()]) {
            let sentence = line.start + sentence.start..line.start + sentence.end;
            let Some(claim) = claim(&text[sentence.clone()]) else { continue };
            if !is_far {
                this.claims.push((claim, sentence));
            } else if matches!(claim, Claim::Rule | Claim::Fact) {
                far.push(claim, sentence, is_apart);
            }
        }
    }
    let at = far_from.unwrap_or_default();
    this.claims.splice(at..at, far.of_user(middle.len()));
    this
}

/// Claims in what was pasted.
#[derive(Default)]
struct Far {
    /// Each with whether it stands apart.
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

    /// Returns those of the user: all where few sentences read like claims, else those that stand apart.
    fn of_user(self, all_bytes: usize) -> impl Iterator<Item = (Claim, Range<usize>)> {
        let is_rare = self.is_rare(all_bytes);
        let is_rare_apart = self.apart_bytes * RARE_BYTES <= all_bytes;
        let is_of_user = move |is_apart| is_rare || is_apart && is_rare_apart;
        self.claims.into_iter().filter(move |(.., is_apart)| is_of_user(*is_apart)).map(|(claim, at, _)| (claim, at))
    }
}

/// Returns whether a line has a blank line before and behind it.
fn is_paragraph(text: &str, line: &Range<usize>) -> bool {
    let blank = [' ', '\t', '\r'];
    let before = text[..line.start].strip_suffix('\n').map(|before| before.trim_end_matches(blank));
    before.is_some_and(|before| before.ends_with('\n')) && text[line.end..].trim_start_matches(blank).starts_with('\n')
}

/// Returns what is too far from both ends of `text` to have been typed.
fn middle(text: &str) -> Range<usize> {
    if text.len() <= 2 * TYPED_BYTES {
        return text.len()..text.len();
    }
    text.floor_char_boundary(TYPED_BYTES)..text.ceil_char_boundary(text.len() - TYPED_BYTES)
}

/// Iterates over the lines of `text` that somebody typed, as far as their form tells; of the first without what a channel put
/// around it. O(n).
fn typed(text: &str) -> impl Iterator<Item = Range<usize>> {
    let (start, context) = (envelope::start(text), envelope::runtime_context(text).unwrap_or_default());
    let (mut at, mut is_fenced) = (0, false);
    text.split_inclusive('\n').filter_map(move |line| {
        let mut range = at..at + line.len();
        at = range.end;
        if range.contains(&start) && start > range.start {
            range = start..start + without_tag(&text[start..range.end]).len();
        }
        let line = &text[range.clone()];
        let is_fence = is_fence(line);
        is_fenced ^= is_fence;
        let is_users = range.start >= start && !context.contains(&range.start);
        (is_users && !is_fence && !is_fenced && !is_material(line)).then_some(range)
    })
}

/// Returns a line without a tag that closes what was opened before it.
fn without_tag(line: &str) -> &str {
    let bare = line.trim_end();
    match bare.rfind("</") {
        Some(tag) if bare.ends_with('>') => &line[..tag],
        _ => line,
    }
}

/// Returns whether a line was pasted: a quotation, a table, markup, code, a line of a log, a numbered line of a file.
fn is_material(line: &str) -> bool {
    let bare = line.trim();
    let Some(&first) = bare.as_bytes().first() else { return true };
    if matches!(first, b'>' | b'|' | b'<' | b'{' | b'}' | b'[' | b'$' | b'@' | b'+' | b'/')
        || line.starts_with(['\t'])
        || line.starts_with("    ")
    {
        return true;
    }
    let digits = bare.bytes().take_while(u8::is_ascii_digit).count();
    let behind = &bare[digits..];
    if digits > 0 && (behind.starts_with(['|', '\t', '→']) || behind.starts_with(['-', ':', '/']) && digits > 1) {
        return true;
    }
    if bare.ends_with(['{', '}', ';', '\\', '=', '(']) || bare.ends_with("=>") {
        return true;
    }
    let symbols = bare.bytes().filter(|byte| IS_SYMBOL[usize::from(*byte)]).count();
    symbols * 8 > bare.len() && bare.len() > 16 || has_time(&bare.as_bytes()[..bare.len().min(24)])
}

/// Whether a byte is more usual in code, markup and paths than in what people write.
static IS_SYMBOL: [bool; 256] = {
    let (mut table, symbols, mut i) = ([false; 256], b"{}[]<>=_/\\|$#@&*^~", 0);
    while i < symbols.len() {
        table[symbols[i] as usize] = true;
        i += 1;
    }
    table
};

/// Returns what a sentence is to those that follow it.
fn claim(sentence: &str) -> Option<Claim> {
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

/// Returns the sentences of `text`, with what ends them; a line ends one too. O(n).
pub fn sentences(text: &str) -> impl Iterator<Item = Range<usize>> {
    let mut start = 0;
    let stops = (0..text.len()).filter_map(|at| stop(text, at));
    stops.chain([text.len()]).map(move |stop| std::mem::replace(&mut start, stop)..stop)
}

/// Returns where a sentence ends whose last character is at `at`.
fn stop(text: &str, at: usize) -> Option<usize> {
    let bytes = text.as_bytes();
    match bytes[at] {
        b'\n' => Some(at + 1),
        b'.' if is_abbreviated(&text[..at]) => None,
        b'.' | b'!' | b'?' => text[at + 1..].chars().next().is_none_or(char::is_whitespace).then_some(at + 1),
        // 。 ！ ？ ；
        0xe3 | 0xef => {
            matches!(bytes[at..], [0xe3, 0x80, 0x82, ..] | [0xef, 0xbc, 0x81 | 0x9f | 0x9b, ..]).then_some(at + 3)
        }
        _ => None,
    }
}

/// Returns whether the full stop behind `before` ends a word: "Dr. Meier".
fn is_abbreviated(before: &str) -> bool {
    const WORDS: [&str; 9] = ["Dr", "Mr", "Mrs", "Ms", "Prof", "St", "e.g", "i.e", "vs"];
    WORDS.iter().any(|word| {
        before.strip_suffix(word).is_some_and(|before| !before.ends_with(|c: char| c.is_alphanumeric() || c == '.'))
    })
}

/// Returns a rule as it is compared with others: letters and digits only, in lower case.
pub fn normal(rule: &str) -> String {
    rule.chars().filter(|c| c.is_alphanumeric()).flat_map(char::to_lowercase).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(text: &str) -> Vec<&str> {
        rules(text).into_iter().map(|range| text[range].trim()).collect()
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
        let rules = standing_rules(text);
        assert_eq!(rules, ["My name is Ada.", "Call me Captain from now on.", "Never push to main."]);
        assert_eq!(rules_left_out(&rules, &["never push to MAIN, as I said"], 100), rules[..2]);
        assert_eq!(rules_left_out(&[rules[0], rules[2], rules[0]], &[], 100), [rules[2], rules[0]]);
        assert_eq!(rules_left_out(&rules, &[], 30), rules[2..]);
        assert_eq!(rules_left_out(&["…"], &[], 30), Vec::<&str>::new());
    }

    /// Returns what each sentence is, in order.
    fn claims(text: &str) -> Vec<Claim> {
        said(text).claims.into_iter().map(|(claim, _)| claim).collect()
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
    fn what_was_pasted_says_nothing_of_the_user() {
        let text = "Look at this.\n```\nNever push to main.\n```\n> Always ask.\n12:30:01 never mind\n  12| Do not edit\n\
            2026-05-01 must be late\nif (never) { return always(); }\n| always | never |\nDon't restart it.";
        assert_eq!(found(text), ["Don't restart it."]);
        assert_eq!(said(text).typed_bytes, "Look at this.\nDon't restart it.".len());
        let log = "never push this line of a log ok\n".repeat(1 << 14);
        assert!(found(&log).len() < 1 << 12, "what is far from both ends was pasted");
    }

    #[test]
    fn a_rule_far_from_both_ends_is_found_where_few_sentences_read_like_one() {
        let of = |line: &str| line.repeat((1 << 20) / line.len());
        for (line, is_found) in [("the job ran for ten seconds\n", true), ("never mind the job, it ran\n", false)] {
            let text = [&of(line), "Thanks. Never run rm. I never eat meat.\n", &of(line)].concat();
            let found = standing_rules(&text);
            assert_eq!(found.contains(&"Never run rm."), is_found, "{line}");
            assert_eq!(found.contains(&"I never eat meat."), is_found, "{line}");
            let apart = [&of(line), "\n \r\nNever run rm.\n\n", &of(line)].concat();
            assert!(standing_rules(&apart).contains(&"Never run rm."), "{line}");
            assert!(standing_rules(&apart).len() < 3_000, "{line}");
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
        for none in [format!("Rule for {long}: be brief"), "Rule for : be brief".to_owned(), "Rules: ".to_owned()] {
            assert_eq!(found(&none), Vec::<&str>::new());
        }
        assert_eq!(found("1. Look\n- don't push\n* Do not rebase"), ["- don't push", "* Do not rebase"]);
    }
}
