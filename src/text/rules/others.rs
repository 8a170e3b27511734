//! Finds what others wrote in a message of the user, by form: forwarded, in a tag, in quotation marks, or behind a lead such as "Here is
//! what my landlord wrote:" and "Translate this:". It claims nothing in the user's name.

use std::collections::HashMap;
use std::iter;
use std::ops::Range;
use std::sync::LazyLock;

use memchr::{memchr, memchr3};

use super::claim::{Claim, claim, is_firm};
use crate::text::bytes::{FIRST_WIDE, lines};
use crate::text::envelope;
use crate::tokens::BuildMixedHasher;

/// Most bytes of a line that hands something over, of the user's question behind it, and of a quotation in a line.
const MAX_LEAD_BYTES: usize = 240;
const MAX_QUESTION_BYTES: usize = 240;
const MAX_QUOTATION_BYTES: usize = 4_096;
/// Most quotations of a line.
const MAX_QUOTATIONS: usize = 256;

/// How a forwarded message begins, in lower case: it goes on to the end.
const FORWARDED: [&str; 22] = [
    "[forwarded from",
    "forwarded from ",
    "forwarded message",
    "fw: ",
    "fwd: ",
    "fwd from ",
    "weitergeleitet von",
    "wg: ",
    "转发自",
    "[fwd",
    "---------- forwarded message",
    "begin forwarded message",
    "-----original message-----",
    "-----ursprüngliche nachricht-----",
    "---------- weitergeleitete nachricht",
    "-----message d'origine-----",
    "---------- mensaje reenviado",
    "[weitergeleitet von",
    "[transféré de",
    "[reenviado de",
    "[转发自",
    "[переслано от",
];

/// Their first bytes.
const FORWARDS: &[u8] = "[-BbFfWw转".as_bytes();

/// What a label in brackets names whose text follows, in lower case: "[file: house.txt]", "[OCR]".
const LABELS: [&str; 10] = ["file", "document", "attachment", "attached", "quote", "ocr", "page", "url", "pdf", "文件"];

/// How a channel begins what a reply quotes, in lower case. Source: nanobot 0.1.4.post5 to 0.3.5, `TelegramChannel`, `FeishuChannel`.
const REPLIED: &str = "[reply to";

/// Tags in which a user writes for the model; all others are around what was pasted.
const OF_USER: [&str; 16] = [
    "rule",
    "instruction",
    "guideline",
    "preference",
    "constraint",
    "requirement",
    "system",
    "task",
    "user",
    "profile",
    "memory",
    "important",
    "goal",
    "style",
    "persona",
    "role",
];

const COLONS: [char; 2] = [':', '：'];
const FENCES: [&str; 2] = ["\"\"\"", "'''"];

/// What a line has of `others.tsv`, in the order of [`KINDS`].
#[derive(Clone, Copy)]
enum Kind {
    Wrote,
    Found,
    Turns,
    Works,
    Text,
    This,
    Heeds,
}

const KINDS: [&str; 7] = ["wrote", "found", "turns", "works", "text", "this", "heeds"];

/// The phrases of `others.tsv` with their kind, by their first two characters; in scripts without spaces by the first.
#[derive(Default)]
struct Lists {
    narrow: HashMap<[char; 2], Vec<(&'static str, usize)>, BuildMixedHasher>,
    wide: HashMap<char, Vec<(&'static str, usize)>, BuildMixedHasher>,
}

static LISTS: LazyLock<Lists> = LazyLock::new(|| {
    let mut lists = Lists::default();
    for row in include_str!("others.tsv").lines().filter(|row| !row.starts_with('#')) {
        let (row, is_wide) = row.strip_prefix("wide\t").map_or((row, false), |row| (row, true));
        let Some((kind, phrases)) = row.split_once('\t') else { continue };
        let Some(kind) = KINDS.iter().position(|name| *name == kind) else { continue };
        for phrase in phrases.split(", ") {
            let mut first = phrase.chars();
            match (first.next(), first.next()) {
                (Some(one), _) if is_wide => lists.wide.entry(one).or_default().push((phrase, kind)),
                (Some(one), Some(two)) => lists.narrow.entry([one, two]).or_default().push((phrase, kind)),
                _ => {}
            }
        }
    }
    lists
});

/// The kinds of phrases that a line has.
#[derive(Default)]
struct Kinds {
    has: [bool; KINDS.len()],
    /// Where the first of [`Kind::Wrote`] starts.
    wrote: Option<usize>,
}

impl Kinds {
    /// Finds those of a line in lower case: at the start of a word that is no part of a path.
    fn of(line: &str) -> Self {
        let (mut this, mut before) = (Self::default(), ' ');
        for (at, c) in line.char_indices() {
            let rest = &line[at..];
            let second = rest.chars().nth(1).unwrap_or(' ');
            let starts_word = !(before.is_alphanumeric() || matches!(before, '_' | '/'));
            let narrow = if starts_word { LISTS.narrow.get(&[c, second]) } else { None };
            let wide = if c >= FIRST_WIDE { LISTS.wide.get(&c) } else { None };
            let phrases = narrow.into_iter().chain(wide).flatten();
            for (_, kind) in phrases.filter(|(phrase, _)| rest.starts_with(phrase)) {
                this.has[*kind] = true;
                if *kind == Kind::Wrote as usize {
                    this.wrote.get_or_insert(at);
                }
            }
            before = c;
        }
        this
    }

    fn has(&self, kind: Kind) -> bool {
        self.has[kind as usize]
    }
}

/// Whose words may stand before "said" and "wrote" without making it another's.
const OWN: [&str; 18] = [
    "i", "we", "you", "ich", "wir", "je", "j'", "nous", "yo", "nosotros", "io", "noi", "eu", "ik", "wij", "я", "мы",
    "jag",
];

/// How a line begins that says for what a rule holds.
const CONDITIONS: [&str; 16] = [
    "when", "whenever", "if", "for", "wenn", "falls", "für", "bei", "quand", "lorsque", "si", "pour", "cuando", "para",
    "quando", "se",
];

/// Most searches for the end of a tag or a label: each may read all that follows.
const MAX_SEARCHES: usize = 64;

/// Returns the ranges of `text` that others wrote, in order. O(n).
pub fn of_others(text: &str) -> Vec<Range<usize>> {
    let body = text.trim_end();
    let mut handed =
        Handed { text, last_gap: body.rfind("\n\n"), is_asked: body.ends_with(['?', '？']), searches: MAX_SEARCHES };
    let thread = envelope::thread_context(text);
    let mut found: Vec<Range<usize>> = Vec::from_iter(thread.map(|end| 0..end));
    let mut at = thread.unwrap_or_default();
    while let Some(line) = lines(&text[at..]).next() {
        let range = at..at + line.len();
        at = range.end;
        let Some(others) = handed.over(range) else { continue };
        at = at.max(others.end);
        // What is said of all above it.
        if found.last().is_some_and(|before| before.end > others.start) {
            found.clear();
        }
        found.push(others);
    }
    found
}

/// A text in which others may have written.
struct Handed<'t> {
    text: &'t str,
    /// Where its last paragraph is set apart, and whether it ends in a question.
    last_gap: Option<usize>,
    is_asked: bool,
    /// Searches that are left.
    searches: usize,
}

impl<'t> Handed<'t> {
    /// Returns what others wrote that begins in a line or behind it.
    fn over(&mut self, line: Range<usize>) -> Option<Range<usize>> {
        let whole = self.text[line.clone()].trim();
        if whole.is_empty() {
            return None;
        }
        // "[Document]" is no name, "FW: " neither.
        let said = envelope::without_speaker(whole);
        let lines = iter::once(whole).chain(Some(said).filter(|said| !said.is_empty() && said.len() < whole.len()));
        for said in lines {
            if let Some(others) = self.marked(said, &line) {
                return Some(others);
            }
        }
        let start = line.start + envelope::start(&self.text[line.clone()]);
        self.led(start..line.end)
    }

    /// Returns what others wrote that a mark at the start of a line announces; `said` is the line, or what is said in it.
    fn marked(&mut self, said: &str, line: &Range<usize>) -> Option<Range<usize>> {
        let lower = || super::lexicon::lower(&said[..said.floor_char_boundary(MAX_LEAD_BYTES)]);
        let first = *said.as_bytes().first()?;
        if FORWARDS.contains(&first) && FORWARDED.iter().any(|start| lower().starts_with(start)) {
            return Some(line.start..self.text.len());
        }
        match first {
            b'^' if points_up(&lower()) => Some(0..line.start),
            b'[' if lower().starts_with(REPLIED) => self.replied(said, line).map(|end| line.start..end),
            b'[' => self.labelled(&lower(), line.end).map(|end| line.start..end),
            b'<' => self.tagged(said, line.end).map(|end| line.start..end),
            b'"' | b'\'' => {
                let fence = FENCES.iter().find(|fence| said.starts_with(**fence))?;
                let from = line.start + self.text[line.clone()].find(fence)? + fence.len();
                let end = self.text[from..].find(fence).map_or(self.text.len(), |end| from + end + fence.len());
                Some(line.start..end)
            }
            _ => None,
        }
    }

    /// Returns what follows a line, where that may be searched.
    fn behind(&mut self, at: usize) -> Option<&'t str> {
        self.searches = self.searches.checked_sub(1)?;
        Some(&self.text[at..])
    }

    /// Returns the end of what stands behind a line with an opening tag alone: `<document name="a.txt">`.
    fn tagged(&mut self, line: &str, at: usize) -> Option<usize> {
        let inner = line.strip_prefix('<')?.strip_suffix('>')?;
        let is_end = |c: char| !c.is_alphanumeric() && !matches!(c, '_' | '-');
        let name = &inner[..inner.find(is_end).unwrap_or(inner.len())];
        let lower = name.to_lowercase();
        if name.is_empty() || inner.contains(['<', '>']) || OF_USER.iter().any(|own| lower.contains(own)) {
            return None;
        }
        let close = format!("</{name}>");
        self.behind(at)?.find(&close).map(|end| at + end + close.len())
    }

    /// Returns the end of what a reply quotes in brackets over several lines, which `said` begins.
    fn replied(&mut self, said: &str, line: &Range<usize>) -> Option<usize> {
        if envelope::closing(said).is_some() {
            return None;
        }
        let opens = line.start + self.text[line.clone()].find(said)?;
        let behind = self.behind(opens)?;
        let near = &behind[..behind.floor_char_boundary(MAX_QUOTATION_BYTES)];
        let end = opens + envelope::closing(near)?;
        Some(self.text[end..].find('\n').map_or(self.text.len(), |line| end + line + 1))
    }

    /// Returns the end of what stands behind a label in brackets: its closing label, or the end of the paragraph.
    fn labelled(&mut self, lower: &str, at: usize) -> Option<usize> {
        let label = lower.strip_prefix('[')?;
        let name = &label[..label.find([':', ']', ' '])?];
        if !LABELS.contains(&name) {
            return None;
        }
        let behind = self.behind(at)?;
        let close = format!("[/{name}]");
        let closed = behind.to_ascii_lowercase().find(&close).map(|end| end + close.len());
        Some(at + closed.or_else(|| behind.find("\n\n")).unwrap_or(behind.len()))
    }

    /// Returns what others wrote behind a line that hands it over, or in it, up to the user's question.
    fn led(&self, line: Range<usize>) -> Option<Range<usize>> {
        let (said, rest) = (&self.text[line.clone()], &self.text[line.end..]);
        // Not that of a URL.
        let ends = |at: usize| said[at..].starts_with(char::is_whitespace) || said[..at].ends_with(COLONS[1]);
        let colons = said.char_indices().filter(|(_, c)| COLONS.contains(c)).map(|(at, c)| at + c.len_utf8());
        let (lead, is_inline) = match colons.filter(|&at| ends(at)).find(|&at| !said[at..].trim().is_empty()) {
            Some(colon) => (&said[..colon], true),
            None => (said.trim_end(), false),
        };
        let has_colon = lead.ends_with(COLONS);
        let is_apart = rest.starts_with('\n') || lead.ends_with(['?', '？']);
        if lead.len() > MAX_LEAD_BYTES || !(is_inline || has_colon || is_apart) {
            return None;
        }
        // The last paragraph may be the user's, behind another one.
        let last = self.last_gap.filter(|&gap| gap > line.end && !self.text[line.end..gap].trim().is_empty());
        let is_headed = || rest.trim_start().starts_with('#');
        let is_document = !is_inline && (is_headed() || has_colon && self.is_asked && last.is_some());
        if !hands_over(lead, is_inline, is_document) {
            return None;
        }
        if is_inline {
            return Some(line.start + lead.len()..line.end);
        }
        let is_alone = || {
            let lower = super::lexicon::lower(lead);
            stands_alone(&lower, &Kinds::of(&lower))
        };
        let is_of_user = |at: usize| {
            let said = self.text[at..].trim();
            said.len() <= MAX_QUESTION_BYTES && !said.contains('\n')
        };
        match last.filter(|at| is_of_user(*at)) {
            Some(at) => Some(line.end..at),
            // Without a colon one paragraph behind most lines is the user's.
            None if has_colon || last.is_some() || rest.trim().contains('\n') || is_alone() => {
                Some(line.end..self.text.len())
            }
            None => None,
        }
        .filter(|others| !self.text[others.clone()].trim().is_empty())
    }
}

/// Returns whether a line says of the text above it that others wrote it: "^ that's what Hanna sent me".
fn points_up(lower: &str) -> bool {
    let kinds = Kinds::of(lower);
    kinds.has(Kind::This) || kinds.has(Kind::Wrote) || lower.contains("that")
}

/// How a letter to others begins, in lower case.
const SALUTATIONS: [&str; 17] = [
    "dear ",
    "sehr geehrte",
    "liebe ",
    "lieber ",
    "cher ",
    "chers ",
    "chère",
    "estimad",
    "querid",
    "prezad",
    "caro ",
    "cara ",
    "gentil",
    "уважаем",
    "дорог",
    "尊敬的",
    "各位",
];

/// Parts of words for whom a user writes to.
const MODEL: [&str; 6] = ["bot", "assist", "claude", "gpt", "gemini", "助手"];

/// Returns whether a line greets somebody as a letter does, not the model.
fn greets(lower: &str) -> bool {
    SALUTATIONS.iter().any(|start| lower.starts_with(start))
        && lower.ends_with([',', '，', ':', '：'])
        && !MODEL.iter().any(|model| lower.contains(model))
}

/// Most bytes and words of a line that names no text; and what makes it one about the answers to come.
const MAX_BARE_BYTES: usize = 32;
const MAX_BARE_WORDS: usize = 3;
const ABOUT_ANSWERS: [&str; 10] = ["your", "my", "all", "every", "always", "dein", "deine", "tus", "tes", "你的"];

/// Returns whether a line in lower case can only be of the text below it: it greets, or says no more than what is asked or what it is.
fn stands_alone(lower: &str, kinds: &Kinds) -> bool {
    let has = |kind| kinds.has(kind);
    (has(Kind::Turns) || has(Kind::Found) && has(Kind::Text)) && is_bare(lower) || greets(lower)
}

/// Returns whether a line names no text: "翻译成英文", "proofread pls".
fn is_bare(lower: &str) -> bool {
    let words = || lower.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty());
    lower.len() <= MAX_BARE_BYTES
        && words().count() <= MAX_BARE_WORDS
        && !ABOUT_ANSWERS.iter().any(|word| words().any(|of| of == *word) || !word.is_ascii() && lower.contains(word))
}

/// Returns whether a line or its part up to a colon says that what follows is a text of others, or a text to work on; less is
/// needed before a document: what has a heading, or is asked about.
fn hands_over(lead: &str, is_inline: bool, is_document: bool) -> bool {
    let lower = super::lexicon::lower(lead);
    let kinds = Kinds::of(&lower);
    let has = |kind| kinds.has(kind);
    let is_condition = CONDITIONS.iter().any(|word| lower.strip_prefix(word).is_some_and(|rest| rest.starts_with(' ')));
    if has(Kind::Heeds) || is_condition {
        return false;
    }
    let is_anothers = |at: usize| {
        let before = lower[..at].split(|c: char| !c.is_alphanumeric() && c != '\'').rfind(|word| !word.is_empty());
        !before.is_some_and(|word| OWN.contains(&word))
    };
    let wrote = kinds.wrote.is_some_and(is_anothers);
    let has_colon = lead.ends_with(COLONS);
    let points = has(Kind::This);
    let hands_over = wrote && (has_colon || points)
        || has(Kind::Found) && points
        || !is_inline && stands_alone(&lower, &kinds)
        || has(Kind::Turns) && (has_colon || points)
        || has(Kind::Text) && (points && !is_inline || has(Kind::Works) && has_colon)
        || has(Kind::Works) && points && (has_colon || is_document)
        || is_document && has_colon && !lower.split(|c: char| !c.is_alphanumeric()).any(|word| OWN.contains(&word));
    hands_over && !is_firm(lead)
}

/// Returns what stands in quotation marks in a line of `text`, unless that is all, or what stands before them claims something: "New rule:
/// “Never push. Ask me first.”"
pub fn quotations(text: &str, line: &str) -> Vec<Range<usize>> {
    const MARKS: [(char, char); 7] =
        [('“', '”'), ('„', '“'), ('«', '»'), ('「', '」'), ('『', '』'), ('‘', '’'), ('"', '"')];
    let mut found: Vec<Range<usize>> = Vec::new();
    // Most lines have none of these bytes, with which a mark begins.
    let bytes = line.as_bytes();
    if memchr3(b'"', 0xe2, 0xe3, bytes).or_else(|| memchr(0xc2, bytes)).is_none() {
        return found;
    }
    let mut at = 0;
    for _ in 0..MAX_QUOTATIONS {
        let opens = line[at..].char_indices().find(|(_, c)| MARKS.iter().any(|(open, _)| open == c));
        let Some((from, open)) = opens else { break };
        let start = at + from + open.len_utf8();
        let closes = |c: char| MARKS.iter().any(|(of, close)| *of == open && *close == c) || open == '„' && c == '”';
        let is_apart = !line[..at + from].ends_with(char::is_alphanumeric);
        let near = &line[start..line.floor_char_boundary(start + MAX_QUOTATION_BYTES)];
        let Some(length) = near.find(closes).filter(|_| is_apart) else {
            at = start;
            continue;
        };
        let end = start + length;
        at = end + line[end..].chars().next().map_or(0, char::len_utf8);
        // A word claims nothing.
        if !line[start..end].trim().contains(|c: char| c.is_whitespace() || c >= FIRST_WIDE) {
            continue;
        }
        let before =
            line[line.ceil_char_boundary(start.saturating_sub(MAX_LEAD_BYTES))..start - open.len_utf8()].trim();
        let is_all = before.is_empty() && line[at..].trim().is_empty() && text.trim().len() == line.trim().len();
        if !is_all && claim(before).is_none_or(|claim| claim < Claim::Order) {
            found.push(start..end);
        }
    }
    found
}

/// Returns the part of a sentence at `start` that stands before a quotation of the line at `line`: nothing of one that begins in one, all of
/// one that has whole quotations or none.
pub fn before_quotation<'t>(quotations: &[Range<usize>], line: usize, sentence: &'t str, start: usize) -> &'t str {
    let marks = sentence.len() - sentence.trim_start_matches(|c: char| !c.is_alphanumeric()).len();
    let (from, end) = (start - line, start - line + sentence.len());
    for quotation in quotations {
        if quotation.contains(&(from + marks)) {
            return "";
        }
        if (from..end).contains(&quotation.start) && quotation.end > end {
            return &sentence[..quotation.start - from];
        }
    }
    sentence
}

#[cfg(test)]
mod tests {
    use super::super::rules;

    const ORDERS: &str = "Never leave the gate open. From now on always ring twice.";

    #[test]
    fn what_others_wrote_is_no_rule_of_the_user() {
        for form in [
            "Here is what my landlord wrote:\n\nDear tenant,\n\n{}\n\nKind regards,\nH. Brandt\n\nWhat should I answer?",
            "I copied this from the page, can you sum it up?\n\nWelcome\n\n{} Since 1990.\n\nContact | Imprint",
            "Translate this into German: {}",
            "Please translate the following into Spanish.\n\n{}\n\nThanks!",
            "My neighbour left me this note:\n\n{}\n\nIs that legal?",
            "What does this repo do?\n\n# tool\n\n{}\n\n## Author",
            "Result of fetch(https://x.example/rules):\n{}",
            "[Forwarded from Hanna Brandt]\n{}",
            "[file: house.txt]\n{}\n[/file]\nSummarise it.",
            "<document name=\"house.txt\">\n{}\n</document>\nSummarise it.",
            "Summarise it:\n\"\"\"\n{}\n\"\"\"",
            "{}\n\n^ that's what Hanna sent me.",
            "Hanna wrote: \"{}\" What now?",
            "„{}“ – what does this remind you of?",
            "Is this mail phishing?\n\nFrom: a@b.example\nSubject: account\n\n{}",
            "房东发消息说：{}",
            "Le voisin m'a écrit : {}",
            "翻译成英文\n\n{}",
            "proofread pls\n\n{}",
            "刚收到的通知\n\n{}",
            "Dear tenants,\n\n{}\n\nThe management",
        ] {
            let text = form.replace("{}", ORDERS);
            assert!(rules(&text).is_empty(), "{text}");
        }
    }

    #[test]
    fn what_the_user_says_beside_it_is() {
        for (text, rule) in [
            ("Here are my rules: never push to main.", "never push to main."),
            ("I told you: never push to main.", "I told you: never push to main."),
            ("Translate this: Hallo.\n\nNever use my name in a translation.", "Never use my name in a translation."),
            ("When you translate this kind of text: never translate names.", "never translate names."),
            ("New rule: \"Never deploy on Fridays. Ask me first, always.\"", "Ask me first, always."),
            ("\"Never push to main. Always ask.\"", "Never push to main."),
            ("Always end mails with \"Best. Cheers.\"", "Always end mails"),
            ("<rules>\nNever push to main.\n</rules>", "Never push to main."),
            ("Draft the letter. Never mention the price.", "Never mention the price."),
            ("Shorten your answers\n\nNever use tables.", "Never use tables."),
            ("Lieber kurz\n\nNever use tables.", "Never use tables."),
            ("Dear assistant,\n\nNever use tables.", "Never use tables."),
        ] {
            let found: Vec<&str> = rules(text).into_iter().map(|range| &text[range]).collect();
            assert!(found.iter().any(|found| found.contains(rule)), "{text}: {found:?}");
        }
    }
}
