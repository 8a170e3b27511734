//! Splits text into sentences.

use std::ops::Range;

use super::bytes::FIRST_WIDE;

/// Returns the sentences of `text` with their punctuation; a line end ends one, too, and so does the number of the next item:
/// "1. Reply in German 2. Never push". O(n).
pub fn sentences(text: &str) -> impl Iterator<Item = Range<usize>> {
    let (mut start, mut line, mut item) = (0, 0, 0);
    let may_stop = |at: &usize| MAY_STOP[usize::from(text.as_bytes()[*at])];
    let stops = (0..text.len()).filter(may_stop).chain([text.len()]);
    stops.filter_map(move |at| {
        let number = Item::before(text, at).filter(|number| number.follows(item, line, start, text));
        let stop = match number {
            Some(Item { at, value }) => {
                item = value;
                text[start..at].contains(char::is_alphanumeric).then_some(at).filter(|_| value > 1)?
            }
            None if at == text.len() => at,
            None => stop(text, start, at)?,
        };
        if text[..stop].ends_with('\n') {
            (line, item) = (stop, 0);
        }
        Some(std::mem::replace(&mut start, stop)..stop)
    })
}

/// Sentences at the end of a reply from which whoever says "Continue." goes on.
const LAST: usize = 4;

/// Returns the last few sentences of a text. O(n).
pub fn last_sentences(text: &str) -> Vec<Range<usize>> {
    let mut all: Vec<Range<usize>> = sentences(text).collect();
    all.split_off(all.len().saturating_sub(LAST))
}

/// Bytes up to which every word of a text asks; more is a task, or material.
pub const QUESTION_BYTES: usize = 240;

/// Fewest bytes of a sentence that may ask for several things.
const MIN_SEVERAL_BYTES: usize = 60;

/// What stands between the parts of such a sentence.
const BETWEEN: [&str; 9] = [", ", "，", "、", "；", " and ", " und ", " et ", " y ", " и "];

/// Returns what a text may ask for one by one: its sentences, and the parts of longer ones; nothing of a text that is no question.
/// O(n).
pub fn questions(text: &str) -> Vec<Range<usize>> {
    let mut questions = Vec::new();
    if text.len() > QUESTION_BYTES {
        return questions;
    }
    for sentence in sentences(text) {
        if sentence.len() < MIN_SEVERAL_BYTES {
            questions.push(sentence);
        } else {
            questions
                .extend(split(text, sentence, |rest| mark(rest, BETWEEN.iter())).into_iter().map(|(part, _)| part));
        }
    }
    questions
}

/// Fewest bytes and clauses of a sentence that somebody types or says without full stops. From 120 bytes and 4 clauses on one
/// answer in a hundred is lost beside a question.
const MIN_RUN_ON_BYTES: usize = 160;
const MIN_RUN_ON_CLAUSES: usize = 5;
/// What stands between its clauses.
const BETWEEN_CLAUSES: [&str; 10] = [", ", "，", "، ", "; ", " - ", " – ", " — ", "... ", "… ", "……"];
/// The same beside kana: in Chinese it stands between the items of a list.
const BETWEEN_IN_JAPANESE: &str = "、";
/// More bytes without any of it are said without punctuation: there a word starts a clause.
const MAX_CLAUSE_BYTES: usize = 96;
const STARTING_CLAUSES: &str = "and but so also oh btw anyway because cause please pls remember never always from dont don't i i'm im my we \
    und aber bitte nie immer ich wir mein meine y pero por nunca siempre mi et mais jamais toujours mon ma je e и \
    но а пожалуйста никогда я";

/// Returns the clauses of a sentence that runs on, as people type and speak; the sentence itself otherwise. O(n).
pub fn clauses(text: &str, sentence: Range<usize>) -> Vec<Range<usize>> {
    if sentence.len() < MIN_RUN_ON_BYTES {
        return vec![sentence];
    }
    let is_japanese = text[sentence.clone()].contains(|c| ('\u{3040}'..='\u{30ff}').contains(&c));
    let marks = BETWEEN_CLAUSES.iter().chain(is_japanese.then_some(&BETWEEN_IN_JAPANESE));
    let starts_clause = |rest: &str| {
        let next = rest.strip_prefix([' ', '\u{3000}'])?;
        let word = next.split([' ', '\u{3000}']).next()?;
        let is_known = |word: String| STARTING_CLAUSES.split(' ').any(|start| start == word);
        (word.starts_with(|c| c >= FIRST_WIDE) || is_known(word.to_lowercase())).then_some(rest.len() - next.len())
    };
    let with_ends = |parts: Vec<(Range<usize>, usize)>| parts.into_iter().map(|(part, end)| part.start..end);
    let mut clauses = Vec::new();
    for clause in with_ends(split(text, sentence.clone(), |rest| mark(rest, marks.clone()))) {
        if clause.len() <= MAX_CLAUSE_BYTES {
            clauses.push(clause);
        } else {
            clauses.extend(with_ends(split(text, clause, starts_clause)));
        }
    }
    if clauses.len() < MIN_RUN_ON_CLAUSES { vec![sentence] } else { clauses }
}

/// Splits a range of a text where `between` finds what parts it at the start of the rest, by its bytes: each part with the start of
/// the next.
fn split(text: &str, range: Range<usize>, between: impl Fn(&str) -> Option<usize>) -> Vec<(Range<usize>, usize)> {
    let (mut parts, mut start) = (Vec::new(), range.start);
    for at in text[range.clone()].char_indices().map(|(at, _)| range.start + at) {
        if let Some(length) = (at >= start).then(|| between(&text[at..range.end])).flatten() {
            parts.push((start..at, at + length));
            start = at + length;
        }
    }
    parts.push((start..range.end, range.end));
    parts
}

/// Returns the bytes of one of `marks` that a text starts with.
fn mark<'m>(text: &str, mut marks: impl Iterator<Item = &'m &'m str>) -> Option<usize> {
    marks.find(|mark| text.starts_with(**mark)).map(|mark| mark.len())
}

/// Most bytes of what stands before a number that starts an item: blanks, a bullet.
const MAX_MARK_BYTES: usize = 16;

/// A number that starts an item of a list.
#[derive(Debug, Clone, Copy)]
struct Item {
    at: usize,
    value: u32,
}

impl Item {
    /// Returns the number before the full stop at `at`, which a blank follows.
    fn before(text: &str, at: usize) -> Option<Self> {
        let bytes = text.as_bytes();
        if !matches!(bytes[at..], [b'.', b' ' | b'\t', ..]) {
            return None;
        }
        let digits = bytes[..at].iter().rev().take(3).take_while(|byte| byte.is_ascii_digit()).count();
        (digits < 3).then_some(Self { at: at - digits, value: text[at - digits..at].parse().ok()? })
    }

    /// Returns whether it starts an item behind number `last` of the line, 0 if it has none yet.
    fn follows(&self, last: u32, line: usize, start: usize, text: &str) -> bool {
        let before = &text[line..self.at];
        let is_first = |from| self.at - from <= MAX_MARK_BYTES && !text[from..self.at].contains(char::is_alphanumeric);
        match last {
            0 if self.value == 1 => is_first(start) || before.trim_end().ends_with([':', '：']),
            0 => is_first(line),
            last => self.value == last + 1 && before.ends_with([' ', '\t', '。', '；', '！']),
        }
    }
}

/// Whether the last character of a sentence may begin with a byte.
static MAY_STOP: [bool; 256] = {
    let (mut table, bytes, mut i) = ([false; 256], *b"\n.!?\xe3\xef\xe0\xd8\xdb", 0);
    while i < bytes.len() {
        table[bytes[i] as usize] = true;
        i += 1;
    }
    table
};

/// Returns the end of the sentence whose last character is at `at`.
fn stop(text: &str, start: usize, at: usize) -> Option<usize> {
    let bytes = text.as_bytes();
    match bytes[at] {
        b'\n' => Some(at + 1),
        b'.' | b'!' | b'?' => {
            let is_end = text[at + 1..].chars().next().is_none_or(char::is_whitespace);
            (is_end && !(bytes[at] == b'.' && goes_on(text, start, at))).then_some(at + 1)
        }
        // 。 ！ ？ ；
        0xe3 | 0xef => {
            matches!(bytes[at..], [0xe3, 0x80, 0x82, ..] | [0xef, 0xbc, 0x81 | 0x9f | 0x9b, ..]).then_some(at + 3)
        }
        // Hindi's danda and double danda.
        0xe0 => matches!(bytes[at..], [0xe0, 0xa5, 0xa4 | 0xa5, ..]).then_some(at + 3),
        // The question mark of Arabic, the full stop of Urdu.
        0xd8 | 0xdb => matches!(bytes[at..], [0xd8, 0x9f, ..] | [0xdb, 0x94, ..]).then_some(at + 2),
        _ => None,
    }
}

/// Words that a full stop shortens, whatever follows; those that a number or a word in lower case follows need none here.
const SHORTENED: [&str; 65] = [
    "dr", "mr", "mrs", "ms", "prof", "st", "vs", "approx", "incl", "excl", "fig", "dept", "e.g", "i.e", "fr", "hr",
    "fa", "nr", "str", "dipl", "ing", "mag", "ca", "aprox", "bzw", "vgl", "ggf", "evtl", "inkl", "exkl", "z.b", "d.h",
    "u.a", "o.ä", "i.d.r", "sr", "sra", "srta", "dra", "ud", "uds", "av", "avda", "núm", "p.ej", "p.ex", "sig", "dott",
    "avv", "ul", "św", "np", "tzn", "godz", "dhr", "mevr", "bijv", "ул", "пр", "пл", "им", "гр", "т.е", "напр", "sn",
];

/// Words that start a sentence behind a letter ("We chose plan B. Then …") or a number.
const STARTING: [&str; 49] = [
    "the", "then", "this", "that", "it", "i", "we", "you", "he", "she", "they", "and", "but", "so", "if", "never",
    "always", "please", "don't", "do", "my", "our", "no", "yes", "use", "ich", "wir", "du", "er", "sie", "es", "dann",
    "das", "die", "der", "und", "aber", "bitte", "nie", "immer", "je", "nous", "il", "elle", "yo", "el", "la", "мы",
    "я",
];

/// Articles before a German ordinal number: "im 2. Stock".
const BEFORE_ORDINALS: [&str; 10] = ["im", "der", "die", "das", "den", "dem", "des", "zum", "vom", "beim"];

/// Months behind the number of a day, in German.
const MONTHS: &str = "jan januar jänner feb februar feber mär märz apr april mai jun juni jul juli \
    aug august sep sept september okt oktober nov november dez dezember";

/// Most letters of a word that is shortened, by its form; most bytes on each side in brackets.
const MAX_SHORTENED: usize = 4;
const MAX_BRACKET_BYTES: usize = 60;

/// Returns whether a sentence goes on behind the full stop at `at`, which a blank follows: it shortens a word, stands behind an
/// ordinal number, or within brackets.
fn goes_on(text: &str, start: usize, at: usize) -> bool {
    let (before, rest) = (&text[start..at], &text[at + 1..]);
    let behind = rest.trim_start_matches([' ', '\t', '\u{a0}']);
    let Some(next) = behind.chars().next().filter(|next| *next != '\n' && *next != '\r') else { return false };
    let is_word = |c: char| c.is_alphanumeric() || matches!(c, '.' | '\'' | '’');
    let word = &before[before.trim_end_matches(is_word).len()..];
    if word.len() > MAX_BRACKET_BYTES {
        return false;
    }
    let follower = behind[..behind.find(|c| !is_word(c) || c == '.').unwrap_or(behind.len())].to_lowercase();
    let is_number = |word: &str| word.len() <= 2 && !word.is_empty() && word.bytes().all(|byte| byte.is_ascii_digit());
    let is_cased = before.chars().take(MAX_BRACKET_BYTES).find(|c| c.is_alphabetic()).is_some_and(char::is_uppercase);
    let goes_on_low = next.is_lowercase() && is_cased;
    if is_number(word) {
        let ahead = before[..before.len() - word.len()].trim_end();
        let article = ahead.rsplit(' ').next().unwrap_or_default().to_lowercase();
        return goes_on_low
            || MONTHS.split(' ').any(|month| month == follower)
            || is_number(&follower) && behind[follower.len()..].starts_with('.')
            || next.is_uppercase() && BEFORE_ORDINALS.contains(&&*article) && !STARTING.contains(&&*follower);
    }
    let letters = word.chars().filter(|c| *c != '.').count();
    let is_letters = word.chars().all(|c| c.is_alphabetic() || c == '.');
    let lower = word.to_lowercase();
    SHORTENED.contains(&&*lower)
        || lower.len() > "str".len() && lower.ends_with("str")
        || is_letters
            && letters <= MAX_SHORTENED
            && (next.is_ascii_digit() || goes_on_low || next.is_lowercase() && word.contains('.'))
        || is_letters && letters == 1 && next.is_alphabetic() && !STARTING.contains(&&*follower)
        || is_in_brackets(before, rest)
}

fn is_in_brackets(before: &str, behind: &str) -> bool {
    let near = &before[before.ceil_char_boundary(before.len().saturating_sub(MAX_BRACKET_BYTES))..];
    let far = &behind[..behind.floor_char_boundary(MAX_BRACKET_BYTES)];
    let is_open = near.rfind(['(', ')']).is_some_and(|at| near[at..].starts_with('('));
    is_open && far.find(['(', ')', '\n']).is_some_and(|at| far[at..].starts_with(')'))
}

/// Returns the end of the paragraph behind `at`.
pub fn paragraph_end(text: &str, at: usize) -> usize {
    let behind = &text[at..];
    let start = behind.len() - behind.trim_start().len();
    behind[start..].find("\n\n").map_or(text.len(), |end| at + start + end)
}

#[cfg(test)]
mod tests {
    use super::sentences;

    #[test]
    fn sentences_end_as_their_scripts_end_them() {
        for text in ["One. Two", "一。二", "एक।दो", "هل؟نعم", "ایک۔دو", "Who? Me", "a\nb"] {
            assert_eq!(sentences(text).filter(|sentence| !sentence.is_empty()).count(), 2, "{text}");
        }
        for text in ["v1.2", "Dr. Meier", "e.g. this", "दुःख", "شكرا"] {
            assert_eq!(sentences(text).filter(|sentence| !sentence.is_empty()).count(), 1, "{text}");
        }
    }

    #[test]
    fn a_sentence_goes_on_behind_what_a_full_stop_shortens() {
        let mut wrong = Vec::new();
        for row in WHOLE.lines().chain(PARTS.lines()).map(str::trim).filter(|row| !row.is_empty()) {
            let text = row.replace(" | ", " ");
            let found: Vec<&str> = sentences(&text).map(|at| text[at].trim()).filter(|said| !said.is_empty()).collect();
            if found.join(" | ") != row {
                wrong.push(found.join(" | "));
            }
        }
        assert_eq!(wrong, Vec::<String>::new());
    }

    const WHOLE: &str = "
        Kundin Frau Öztürk (Nr. 88231) bekommt immer 12 % Rabatt.
        Never send mails to Dr. Smith before 9 a.m. without asking me.
        Never use more than approx. 5 GB.
        From now on invoices go to Fa. Huber, Hauptstr. 5, 8010 Graz.
        Always use version 2.4.x, e.g. 2.4.7, for the client.
        Bitte nie vor 9 Uhr anrufen, d.h. auch keine Erinnerungen.
        Meine Frau hat am 12. Mai Geburtstag.
        - max. 80 chars per line
        - always run make check, incl. the slow tests
        Always reply to P. Müller within 2 hrs. unless I'm on holiday.
        Our office is at 12 St. James St. in Leeds.
        My doctor is Prof. J. S. Bach.
        The flat has no. 7 on the door.
        See Fig. 3 (p. 12) before you answer.
        Unser Büro ist im 2. Stock.
        Das gilt ab dem 1. Jänner 2026, z. B. für Herrn Moser.
        Wir sind am 5. und 6. nicht da.
        Der Termin ist am 3. 4. um 9 Uhr.
        Das betrifft ca. 30 Leute bzw. Firmen.
        J'habite au 5 av. Foch, p.ex. le code est 12.
        Mon médecin est M. Dupont.
        Vivo en la Av. Libertad con la Sra. López.
        El Sr. García tiene un 5 % de descuento, aprox. 20 euros.
        Il Sig. Rossi abita in p. Garibaldi 4.
        Meu chefe é o Sr. Silva, sala nº. 5.
        Мы живём по адресу ул. Ленина, д. 5, кв. 12.
        Отвечай кратко, т.е. не больше двух фраз.
        Mieszkam przy ul. Długiej 5, godz. 9 pasuje, np. w piątek.
        Bel dhr. Jansen nooit vóór 9 uur, bijv. op maandag.
        以后发给 P. Wang 的邮件都用英文。";

    const PARTS: &str = "
        I said no. | Smith agreed.
        We met at 9. | Then we left.
        We chose plan B. | Then we left.
        I like tea. | Never coffee.
        use tabs. | never push to main.
        i live in graz. | my cat is old.
        We open at 9 a.m. | The shop is small.
        He works for Huber Inc. | Never call him.
        It costs 5. | We pay 4.
        I have a cat, a dog etc. | They are old.
        Always test (it is fast). | Never push.
        Ich wohne in Graz. | Nie anrufen.
        Wir treffen uns am 9. | Dann gehen wir.
        Das ist alles für heute. | Im Mai fahren wir.
        Nimm Plan A. | Ich mag ihn.
        Es gibt Brot, Käse usw. | Wir bringen Wein.
        J'ai dit non. | Martin est d'accord.
        On se voit à 9. | Je pars ensuite.
        Vivo en Graz. | No como carne.
        Somos 3. | El gato duerme.
        Abito a Roma. | Non mangio carne.
        Moro em Lisboa. | Não como carne.
        Я живу в Омске. | Не звони мне.
        Нас было 5. | Мы ушли.
        Mieszkam w Łodzi. | Nie jem mięsa.
        Ik woon in Gent. | Bel me nooit.
        我住在成都。 | 不要打电话。
        1. Look at it. | 2. Never push.
        Regeln: 1. Immer auf Deutsch antworten. | 2. Nie mehr als 3 Sätze. | 3. Keine Emojis.
        规则：1. 以后都用中文回答 | 2. 不要用表情 | 3. 每次不超过三句";
}
