//! What the words of a sentence say of it.

use super::Claim;
use super::lexicon::{LEXICON, Place, Sign, words};

/// Who is told of, and the most characters between them and what they did.
const PRONOUNS: [&str; 11] = ["i", "he", "she", "they", "it", "er", "il", "elle", "ils", "ella", "ellos"];
const MAX_TOLD_CHARS: usize = 24;

/// Most characters of a heading that say what its rule is for.
const MAX_HEADING_CHARS: usize = 40;

/// What the words of a sentence say of it.
#[derive(Default)]
pub struct Signs {
    signs: Vec<Sign>,
    best: Option<Claim>,
}

impl Signs {
    /// Returns what the sentence is.
    pub fn claim(self, is_brief: impl Fn() -> bool) -> Option<Claim> {
        let has = |sign| self.signs.contains(&sign);
        match self.best {
            None | Some(Claim::Told) if is_brief() => Some(Claim::Brief),
            Some(Claim::Wish) if has(Sign::Bound) || has(Sign::Manner) && has(Sign::Hint) => Some(Claim::Rule),
            Some(Claim::Wish) if has(Sign::Hint) => Some(Claim::Order),
            best => best,
        }
    }

    fn meet(&mut self, sign: Sign) {
        let claim = match sign {
            Sign::Claims(claim) => Some(claim),
            Sign::Manner => Some(Claim::Wish),
            _ => None,
        };
        self.best = self.best.max(claim);
        self.signs.push(sign);
    }

    /// Reads words of scripts that have spaces; `None` where the sentence is told of others.
    pub fn read_words(&mut self, said: &str, words: &[(usize, &str)]) -> Option<()> {
        let (mut is_start, mut word_end) = (true, 0);
        for (i, &(at, word)) in words.iter().enumerate() {
            let gap = said[word_end..at].trim_end();
            word_end = at + word.len();
            // Behind a heading something starts anew.
            is_start |= (1..8).contains(&i) && gap.ends_with([':', '–', '—']);
            let mut is_filler = false;
            for (rest, sign, place) in LEXICON.phrases(word, is_start) {
                let end = i + 1 + rest.len();
                let is_in_place = match place {
                    Place::Start => is_start,
                    Place::End => end == words.len(),
                    Place::Anywhere | Place::Clause => true,
                };
                let follows = || rest.iter().zip(&words[i + 1..]).all(|(want, (_, word))| want == word);
                if !is_in_place || end > words.len() || !follows() {
                    continue;
                }
                match sign {
                    Sign::Plain => break,
                    Sign::Filler => is_filler = true,
                    Sign::Claims(Claim::Rule)
                        if *place == Place::End && PRONOUNS.contains(&words[0].1.trim_end_matches('\'')) => {}
                    Sign::Claims(Claim::Rule) if *place == Place::Anywhere && is_told(&said[..at]) => {
                        // "I never eat meat" is told of the user, "she never said so" of nobody who is here.
                        if !matches!(words[0].1, "i" | "i'" | "ich" | "we") {
                            return None;
                        }
                    }
                    Sign::Bound | Sign::Hint if is_start => {}
                    _ => self.meet(*sign),
                }
            }
            is_start = is_start && (is_filler || word.bytes().all(|byte| byte.is_ascii_digit()));
            if matches!(word, "rule" | "rules") && is_heading(&said[at + word.len()..]) {
                self.meet(Sign::Claims(Claim::Rule));
            }
        }
        Some(())
    }

    /// Reads words of scripts without spaces.
    pub fn read_wide(&mut self, said: &str) {
        for (at, c) in said.char_indices().filter(|(_, c)| !c.is_ascii()) {
            for (phrase, sign, place) in LEXICON.wide.get(&c).into_iter().flatten() {
                if said[at..].starts_with(phrase) && (*place == Place::Anywhere || starts_clause(said, at, phrase)) {
                    self.meet(*sign);
                }
            }
        }
    }
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
