//! Reads the signs in a sentence, and decides its claim.

use std::ops::Range;

use xxhash_rust::xxh3::xxh3_64;

use super::Claim;
use super::forms::{asks_by_form, verbs_of};
use super::lexicon::{LEXICON, Position, Sign, words};

/// Words that make a condition general.
const GENERAL: [&str; 16] = [
    "a", "an", "any", "anything", "anyone", "over", "under", "more", "less", "ein", "eine", "un", "una", "une", "um",
    "uma",
];

/// Words that start a rule, and behind a comma a part of a narration.
const NARRATING: [&str; 5] = ["only", "no", "not", "remember", "all"];

/// Words behind a noun; and behind a verb that might be one.
const BEHIND_NOUNS: [&str; 8] = ["and", "or", "of", "is", "was", "are", "were", "from"];
const OBJECTS: [&str; 18] = [
    "it", "them", "him", "her", "me", "us", "the", "a", "an", "my", "our", "your", "their", "this", "that", "these",
    "those", "all",
];

/// Subjects of narration, and most characters between them and their verb.
const PRONOUNS: [&str; 26] = [
    "i", "he", "she", "they", "it", "er", "il", "elle", "ils", "él", "ella", "ellos", "ele", "ela", "lui", "он", "она",
    "они", "він", "вона", "вони", "hon", "han", "hij", "zij", "ona",
];
/// Words that follow the article "il", no pronoun: "Il database non si tocca."
const ITALIAN: [&str; 8] = ["non", "si", "va", "vanno", "mai", "sempre", "deve", "è"];
/// Starts and ends of a sentence that reminds: "Vergiss die Milch nicht."
const FORGETTING: [&str; 4] = ["vergiss", "vergesst", "vergessen", "vergeet"];
const FORGETTING_NOT: [&str; 2] = ["nicht", "niet"];
/// What somebody is quoted with, before a colon.
const QUOTING: [&str; 24] = [
    "wrote",
    "writes",
    "said",
    "says",
    "asked",
    "asks",
    "answered",
    "replied",
    "schreibt",
    "schrieb",
    "sagt",
    "sagte",
    "écrit",
    "dit",
    "escribió",
    "escribe",
    "dijo",
    "dice",
    "scrive",
    "escreveu",
    "disse",
    "написал",
    "написала",
    "pisze",
];
const SPEAKERS: [&str; 6] = ["we", "you", "that", "who", "wir", "man"];
const MAX_TOLD_CHARS: usize = 24;

/// Words before "always" and "never" in what happened, and verbs of the past that do not end in "ed".
const PERFECT: [&str; 4] = ["have", "has", "had", "ve"];
const TELLERS: [&str; 10] = ["i", "we", "you", "he", "she", "it", "they", "this", "that", "which"];
const HAPPENED: [&str; 21] = [
    "was", "were", "had", "did", "went", "came", "saw", "said", "knew", "thought", "told", "got", "took", "made",
    "found", "felt", "gave", "kept", "left", "lost", "happens",
];

/// What "in this …" is no work at hand.
const PLACES: [&str; 20] = [
    "project",
    "repo",
    "repository",
    "codebase",
    "house",
    "home",
    "team",
    "company",
    "session",
    "chat",
    "conversation",
    "channel",
    "group",
    "thread",
    "account",
    "workspace",
    "family",
    "office",
    "machine",
    "computer",
];

/// Most characters of a heading behind "rule".
const MAX_HEADING_CHARS: usize = 40;

/// Most words of a sentence that asks by [`Sign::Verb`], and most behind a comma in a contrast.
const MAX_ASKING_WORDS: usize = 14;
const MAX_CONTRAST_WORDS: usize = 3;

/// The place of a word in its sentence.
#[derive(Default)]
struct Clause {
    /// It is the first word, perhaps behind a heading.
    is_first: bool,
    /// It starts a clause that asks; fillers may precede.
    is_start: bool,
    /// A comma stands before it.
    is_comma: bool,
    /// What a condition before it makes of a wish.
    lead: Option<Sign>,
    /// The word that starts the clause behind [`Sign::Asks`].
    opens_at: Option<usize>,
    /// The word behind the last plain phrase.
    plain_end: usize,
}

impl Clause {
    /// Advances to word `i`, behind `gap`.
    fn go_to(&mut self, i: usize, gap: &str) {
        self.is_comma = gap.ends_with(',');
        // A clause starts behind a heading, behind what asks, and behind a condition.
        self.is_first = self.is_start && self.is_first || (1..8).contains(&i) && gap.ends_with([':', '–', '—']);
        self.is_start |= self.is_first || self.is_comma && self.lead.is_some() || self.opens_at == Some(i);
    }
}

/// A phrase of the lexicon in a sentence.
struct FoundPhrase<'s> {
    /// The first word of the sentence.
    first: &'s str,
    /// Its first word, and the text before and behind that.
    word: &'s str,
    before: &'s str,
    behind: &'s str,
    /// Its words but the first.
    rest: &'s [&'s str],
    place: Position,
    /// How many words follow.
    words_behind: usize,
}

/// In place of the hash of a word that stands first.
const FIRST: u64 = 0;

/// What the words of a sentence say of it.
#[derive(Default)]
pub struct Signs {
    signs: Vec<Sign>,
    best: Option<Claim>,
    is_asked: bool,
    /// Whether the rest is asked for.
    is_open: bool,
    /// Whether the sentence has so few words that they may be weak signs.
    is_short: bool,
    /// How many words of scripts with spaces it has.
    word_count: usize,
    /// What it mentions in quotation marks.
    quoted: Vec<Range<usize>>,
    /// A hash of the first word that makes it hold for good, wherever it stands; [`FIRST`] at the start: "Never push."
    firm: Option<u64>,
}

/// What a sentence claims.
#[derive(Debug, Clone, Copy)]
pub struct Reading {
    pub claim: Claim,
    /// Whether it says that it holds for good.
    pub is_firm: bool,
    /// For a rule by one word alone, which asks nobody for anything: a hash of that word. "Ann is always late."
    pub remark: Option<u64>,
}

impl Signs {
    pub fn new(is_asked: bool, is_short: bool, quoted: Vec<Range<usize>>) -> Self {
        Self { is_asked, is_short, quoted, ..Self::default() }
    }

    fn is_quoted(&self, at: usize) -> bool {
        self.quoted.iter().any(|quoted| quoted.contains(&at))
    }

    /// Returns what the sentence claims.
    pub fn claim(self, is_brief: impl Fn() -> bool, is_stated: bool) -> Option<Reading> {
        let [is_firm, is_once] = [Sign::Firm, Sign::Once].map(|sign| self.signs.contains(&sign));
        let asks = |sign: &Sign| match sign {
            Sign::Manner | Sign::Verb | Sign::Setting => true,
            Sign::Claims(claim) => *claim != Claim::Rule,
            _ => false,
        };
        let is_remark = !self.is_open && !self.signs.iter().any(asks) && self.are_all_rules_firm();
        let remark = self.firm.filter(|word| is_remark && *word != FIRST);
        let reading = match self.strongest(is_brief, is_stated)? {
            Claim::Rule if is_once && !is_firm => Reading { claim: Claim::Order, is_firm: false, remark: None },
            Claim::Rule => Reading { claim: Claim::Rule, is_firm, remark },
            claim => Reading { claim, is_firm: is_firm || claim == Claim::Fact, remark: None },
        };
        Some(reading)
    }

    fn are_all_rules_firm(&self) -> bool {
        let count = |of: Sign| self.signs.iter().filter(|sign| **sign == of).count();
        count(Sign::Claims(Claim::Rule)) == count(Sign::Firm)
    }

    fn meet_firm(&mut self, before: &str, phrase: &str) {
        let begins = !before.contains(char::is_alphanumeric);
        self.firm.get_or_insert(if begins { FIRST } else { xxh3_64(phrase.as_bytes()) });
        self.meet(Sign::Firm);
    }

    fn strongest(self, is_brief: impl Fn() -> bool, is_stated: bool) -> Option<Claim> {
        let has = |sign| self.signs.contains(&sign);
        if (self.is_asked || has(Sign::Inquires)) && !self.is_open {
            return (self.is_short && has(Sign::May) && has(Sign::Next)).then_some(Claim::Wish);
        }
        let is_due = has(Sign::Due) && has(Sign::Day) && !has(Sign::Past);
        let is_trait = !self.is_asked && self.is_short && (is_due || has(Sign::Short) && !has(Sign::Past));
        if has(Sign::Topic) && has(Sign::Way) && !self.is_asked && !has(Sign::Past) {
            return Some(Claim::Rule);
        }
        let is_manner = has(Sign::Manner) && (has(Sign::Bound) || has(Sign::Hint));
        match self.best {
            Some(_) if self.is_asked && has(Sign::Unsure) => Some(Claim::Wish),
            None | Some(Claim::Told) if self.is_asked => (self.is_short && has(Sign::Next)).then_some(Claim::Wish),
            Some(Claim::Told | Claim::Trait) if has(Sign::Lasting) && has(Sign::Claims(Claim::Told)) => {
                Some(Claim::Fact)
            }
            Some(Claim::Told) if has(Sign::Mine) && has(Sign::Is) => Some(Claim::Trait),
            None | Some(Claim::Told) if is_trait => Some(Claim::Trait),
            None | Some(Claim::Told) if !has(Sign::Question) && is_brief() => Some(Claim::Brief),
            None if is_stated && !has(Sign::Question) => Some(Claim::Stated),
            Some(Claim::Wish | Claim::Order) if is_manner || has(Sign::Bound) && !self.is_open => Some(Claim::Rule),
            Some(Claim::Wish) if has(Sign::Hint) || has(Sign::Bound) => Some(Claim::Order),
            best => best,
        }
    }

    fn meet(&mut self, sign: Sign) {
        let claim = match sign {
            Sign::Claims(claim) => Some(claim),
            Sign::Manner | Sign::Verb => Some(Claim::Wish),
            Sign::Lasting => Some(Claim::Trait),
            Sign::Setting => Some(Claim::Rule),
            _ => None,
        };
        self.best = self.best.max(claim);
        self.signs.push(sign);
    }

    /// Reads words of scripts with spaces; `None` if the sentence is about others.
    pub fn read_words(&mut self, said: &str, words: &[(usize, &str)]) -> Option<()> {
        self.word_count = words.len();
        if let [(_, first), .., (_, last)] = words
            && FORGETTING.contains(first)
            && FORGETTING_NOT.contains(last)
        {
            return Some(());
        }
        let mut clause = Clause { is_first: true, is_start: true, ..Clause::default() };
        let mut word_end = 0;
        for (i, &(at, word)) in words.iter().enumerate() {
            let gap = said[word_end..at].trim_end();
            // "Anna wrote: do not wait for me.", but "I said: never", and "My doctor says: no salt."
            if i > 1 && gap.ends_with([':', '：']) && QUOTING.contains(&words[i - 1].1) && !is_own_word(words[0].1) {
                return None;
            }
            clause.go_to(i, gap);
            word_end = at + word.len();
            if i < clause.plain_end || self.is_quoted(at) {
                continue;
            }
            if self.is_asked
                && !self.is_open
                && !clause.is_start
                && !clause.is_comma
                && !self.signs.contains(&Sign::May)
            {
                continue;
            }
            // "If a test fails, …" is said of all of them.
            if clause.lead.is_some() && !clause.is_comma && GENERAL.contains(&word) {
                clause.lead = Some(Sign::Bound);
            }
            let is_filler = self.read_phrases(said, words, i, &mut clause)?;
            // "…, so keep it short"; "if it fails then ping me"
            if clause.is_comma && word == "so" || clause.lead.is_some() && word == "then" {
                clause.opens_at = Some(i + 1);
            }
            clause.is_start = clause.is_start
                && (is_filler || self.is_open && word == "not" || word.bytes().all(|byte| byte.is_ascii_digit()));
            if matches!(word, "rule" | "rules") && is_heading(&said[word_end..]) {
                self.meet(Sign::Claims(Claim::Rule));
            }
        }
        Some(())
    }

    /// Reads the phrases that start with word `i`; returns whether one is a filler, or `None` if the sentence is about
    /// others.
    fn read_phrases(&mut self, said: &str, words: &[(usize, &str)], i: usize, clause: &mut Clause) -> Option<bool> {
        let (at, word) = words[i];
        let (mut is_known, mut is_filler) = (false, false);
        for (rest, sign, place) in LEXICON.phrases(word, clause.is_start || clause.is_comma) {
            let end = i + 1 + rest.len();
            let (first, before, behind) = (words[0].1, &said[..at], &said[at + word.len()..]);
            let found = FoundPhrase {
                first,
                word,
                before,
                behind,
                rest,
                place: *place,
                words_behind: words.len().saturating_sub(end),
            };
            let follows = || rest.iter().zip(&words[i + 1..]).all(|(want, (_, word))| is_word(want, word));
            if end > words.len() || !self.holds(*sign, &found, clause) || !follows() {
                continue;
            }
            is_known = true;
            is_filler |= *sign == Sign::Filler;
            if *sign == Sign::Plain {
                clause.plain_end = end;
                break;
            }
            match sign {
                Sign::Asking if !words.get(end).is_some_and(|(_, next)| is_auxiliary(next)) => continue,
                // "What is never to be touched: main."
                Sign::Asking | Sign::Inquires if found.behind.contains(": ") => continue,
                Sign::Asks => clause.opens_at = Some(end),
                // "Bei Fehlern brich ab."
                Sign::When if i == 0 && matches!(word, "bei" | "im" | "при") => {
                    clause.opens_at = Some(end + usize::from(rest.is_empty()));
                }
                _ => {}
            }
            self.apply(*sign, &found, clause)?;
            let is_wish = matches!(place, Position::Start | Position::Asked)
                && matches!(sign, Sign::Manner | Sign::Verb | Sign::Claims(_));
            if i > 0 && clause.is_start && is_wish {
                clause.lead.into_iter().for_each(|sign| self.meet(sign));
            }
        }
        if !is_known && clause.is_start {
            if self.is_open {
                self.read_form(word);
            }
            self.read_request(said, words, i, clause);
        }
        Some(is_filler)
    }

    /// Returns whether a phrase is a sign at its place.
    fn holds(&self, sign: Sign, found: &FoundPhrase<'_>, clause: &Clause) -> bool {
        match found.place {
            Position::Start => clause.is_start || sign == Sign::Asks || clause.is_comma && starts_again(sign, found),
            // Not the last word: "Hi all".
            Position::First => clause.is_first && found.words_behind > 0,
            Position::End => found.words_behind == 0,
            Position::Last => (1..=2).contains(&found.words_behind),
            Position::Comma => clause.is_comma && (1..=MAX_CONTRAST_WORDS).contains(&found.words_behind),
            Position::Asked => clause.is_start && (self.is_open || clause.lead.is_some()),
            Position::Behind => self.is_open,
            Position::Anywhere | Position::Clause => true,
        }
    }

    /// Applies the sign of a phrase; `None` if the sentence is about others.
    fn apply(&mut self, sign: Sign, found: &FoundPhrase<'_>, clause: &mut Clause) -> Option<()> {
        let is_anywhere = found.place == Position::Anywhere;
        let is_article =
            ITALIAN.contains(&found.word) && words(found.before).next().is_some_and(|(_, word)| word == "il");
        let is_told = |of: &[&str]| !is_article && is_told(found.before, of);
        match sign {
            Sign::Asks => self.open(),
            Sign::Asking => self.meet(Sign::Inquires),
            Sign::Plain | Sign::Filler | Sign::Auxiliary => {}
            Sign::Claims(_) if is_of_past(found) => {
                if is_told(&PRONOUNS) && !is_own(found) {
                    return None;
                }
            }
            Sign::When => clause.lead = Some(Sign::Hint),
            Sign::Past => {
                clause.lead = None;
                self.meet(sign);
            }
            Sign::Verb if self.word_count > MAX_ASKING_WORDS => {}
            Sign::Once if words(found.behind).nth(found.rest.len()).is_some_and(|(_, next)| PLACES.contains(&next)) => {
            }
            Sign::Setting if !is_set(found.behind, found.rest) => {}
            Sign::Claims(Claim::Rule)
                if found.place == Position::End && PRONOUNS.contains(&found.first.trim_end_matches('\'')) => {}
            // "I never eat meat" is about the user, "she never said so" about somebody else.
            Sign::Claims(Claim::Rule) if is_anywhere && is_told(&PRONOUNS) => {
                if !is_own(found) {
                    return None;
                }
            }
            Sign::Claims(Claim::Trait) if is_anywhere && (is_told(&PRONOUNS) || is_told(&SPEAKERS)) => {}
            Sign::Bound | Sign::Hint if clause.is_start && !self.is_open => {}
            // "No, the second report."
            Sign::Claims(Claim::Rule)
                if clause.is_first && !is_anywhere && found.rest.is_empty() && found.behind.starts_with(',') => {}
            _ => {
                self.meet(sign);
                if is_anywhere && matches!(sign, Sign::Claims(Claim::Rule) | Sign::Setting) {
                    self.meet_firm(found.before, found.word);
                }
            }
        }
        Some(())
    }

    /// The rest is asked for: what a question says before that does not hold.
    fn open(&mut self) {
        if self.is_asked && !self.is_open {
            (self.best, self.signs) = (None, Vec::new());
        }
        self.is_open = true;
    }

    /// Reads a verb that asks by its form: "Explícalo", "Tutoie-moi", "Считай".
    fn read_request(&mut self, said: &str, words: &[(usize, &str)], i: usize, clause: &Clause) {
        let (at, word) = words[i];
        if self.word_count > MAX_ASKING_WORDS || self.is_asked {
            return;
        }
        let is_verb = |verb: &str| {
            LEXICON.phrases(verb, true).any(|(rest, sign, place)| {
                *place == Position::Start
                    && rest.is_empty()
                    && matches!(sign, Sign::Verb | Sign::Manner | Sign::Claims(Claim::Wish))
            })
        };
        if asks_by_form(word, &said[at + word.len()..]) || verbs_of(word).any(|verb| is_verb(&verb)) {
            self.meet(Sign::Verb);
            if i > 0 {
                clause.lead.into_iter().for_each(|sign| self.meet(sign));
            }
        }
    }

    /// Reads an English verb in another form: "would you mind using", "if you showed".
    fn read_form(&mut self, word: &str) {
        let Some(stem) = word.strip_suffix("ing").or_else(|| word.strip_suffix("ed")) else { return };
        let mut letters = stem.chars();
        let once = letters.next_back().is_some_and(|last| letters.as_str().ends_with(last)).then_some(letters.as_str());
        for verb in [Some(stem), once, Some(&format!("{stem}e"))].into_iter().flatten() {
            for (rest, sign, place) in LEXICON.phrases(verb, true) {
                if *place == Position::Start && rest.is_empty() && matches!(sign, Sign::Manner | Sign::Claims(_)) {
                    self.meet(*sign);
                }
            }
        }
    }

    /// Reads words of scripts without spaces.
    pub fn read_wide(&mut self, said: &str) {
        let mut plain_end = 0;
        for (at, c) in said.char_indices().filter(|(_, c)| !c.is_ascii()) {
            for (phrase, sign, place) in LEXICON.wide.get(&c).into_iter().flatten() {
                let end = at + phrase.len();
                let is_in_place = || match place {
                    Position::Clause => starts_clause(said, at, phrase, self.is_open),
                    Position::Behind => self.is_open,
                    Position::End => {
                        said[end..].chars().all(|c| !c.is_alphanumeric() || matches!(c, 'ね' | 'よ' | 'な'))
                    }
                    _ => true,
                };
                if at < plain_end || !said[at..].starts_with(phrase) || !is_in_place() || self.is_quoted(at) {
                    continue;
                }
                match sign {
                    Sign::Plain => plain_end = end,
                    Sign::Inquires if said[..at].contains(char::is_alphanumeric) => {}
                    Sign::Asks => self.is_open |= self.is_asked,
                    _ => {
                        self.meet(*sign);
                        if *place == Position::Anywhere && *sign == Sign::Claims(Claim::Rule) {
                            self.meet_firm(&said[..at], phrase);
                        }
                    }
                }
            }
        }
    }
}

/// Returns whether a word is the one of a phrase, where "0" is any number.
fn is_word(want: &str, word: &str) -> bool {
    want == word || want == "0" && word.bytes().all(|byte| byte.is_ascii_digit())
}

/// Returns whether a word starts what is said in the first person: "I", "my".
pub fn is_own_word(word: &str) -> bool {
    LEXICON.phrases(word, true).any(|(rest, sign, _)| rest.is_empty() && *sign == Sign::Claims(Claim::Told))
}

/// Returns whether a word may follow what starts a question: "what should".
fn is_auxiliary(word: &str) -> bool {
    LEXICON.phrases(word, false).any(|(rest, sign, _)| rest.is_empty() && *sign == Sign::Auxiliary)
}

/// Returns whether "always" or "never" tells of what happened: "I never thought of that."
fn is_of_past(found: &FoundPhrase<'_>) -> bool {
    let last = found.rest.last().unwrap_or(&found.word);
    if !["always", "never"].contains(last) {
        return false;
    }
    let clause = found.before.rsplit([',', '.', ';', ':']).next().unwrap_or(found.before);
    let subject = if found.rest.is_empty() { words(clause).last().map(|(_, word)| word) } else { Some(found.word) };
    let next = words(found.behind).nth(found.rest.len()).map_or("", |(_, next)| next);
    let is_past = HAPPENED.contains(&next) || next.ends_with("ed") && next.len() > 4;
    subject.is_some_and(|subject| PERFECT.contains(&subject) || TELLERS.contains(&subject) && is_past)
}

/// Returns whether a phrase starts a clause behind a comma as it would start a sentence: "Spaces break our scripts, use
/// underscores.", "…, I'm vegetarian now."
fn starts_again(sign: Sign, found: &FoundPhrase<'_>) -> bool {
    let next = found.behind.trim_start().split(|c: char| !c.is_alphanumeric()).next().unwrap_or_default();
    match sign {
        Sign::Claims(Claim::Trait | Claim::Fact) => true,
        Sign::Claims(Claim::Rule) => !NARRATING.contains(&found.word),
        Sign::Manner => !next.is_empty() && !BEHIND_NOUNS.contains(&next),
        // Other verbs may be nouns, too: ", test and", ", answer".
        Sign::Verb | Sign::Claims(Claim::Wish) => OBJECTS.contains(&next),
        _ => false,
    }
}

/// Returns whether the rest of a setting's name and a value follow.
fn is_set(mut behind: &str, rest: &[&str]) -> bool {
    for word in rest {
        let Some(next) = behind.trim_start().strip_prefix(word) else { return false };
        behind = next;
    }
    let value = behind.trim_start().strip_prefix([':', '=']);
    value.is_some_and(|value| value.trim_start().starts_with(char::is_alphanumeric))
}

/// Returns whether a phrase starts a Chinese clause, perhaps behind "你" and the like.
fn starts_clause(said: &str, at: usize, phrase: &str, is_open: bool) -> bool {
    let little = ['你', '您', '就', '也', '还', '都', '再', '那', '么', '要', '另', '外', '对', '了', ' '];
    let mut before = said[..at].trim_end_matches(little);
    let asking = if is_open { LEXICON.asking.as_slice() } else { &[] };
    while let Some(asks) = asking.iter().find_map(|phrase| before.strip_suffix(phrase)) {
        before = asks.trim_end_matches(little);
    }
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

/// Returns whether the sentence, or the clause of the phrase, starts in the first person.
fn is_own(found: &FoundPhrase<'_>) -> bool {
    let clause = found.before.rsplit([',', ';', ':']).next().unwrap_or(found.before);
    let first = words(clause).next().map_or(found.first, |(_, word)| word);
    [found.first, first].iter().any(|first| matches!(*first, "i" | "i'" | "ich" | "we"))
}

/// Returns whether a word behind `before` narrates: "she says they never".
fn is_told(before: &str, of: &[&str]) -> bool {
    let clause = before.rsplit([',', '.', ';', ':']).next().unwrap_or(before);
    words(clause).any(|(at, word)| {
        let word_end = at + word.len();
        // "they've"
        let behind = clause[word_end..].trim_start_matches(|c: char| word.ends_with('\'') && c.is_ascii_alphabetic());
        of.contains(&word.trim_end_matches('\'')) && behind.chars().count() <= MAX_TOLD_CHARS
    })
}

/// Returns whether the text behind "rule" makes it a heading, with text behind it on its line.
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
