//! What a question names that no term tells: codes in part or in another spelling ("the car ending in F87519", "IMO6274953" of `IMO
//! 6274953`), and signs: "C++", "R&D", "π", "No. 5".

use super::analysis::Analysis;
use super::bytes::FIRST_WIDE;
use super::rules::normal;
use super::sentences::QUESTION_BYTES;
use super::terms::is_han;

/// Fewest letters and digits of such a code, and most codes of a question.
const MIN_LENGTH: usize = 4;
const MOST: usize = 4;

/// A word of a question that may be a code.
#[derive(Debug, PartialEq, Eq)]
pub struct Code<'q> {
    pub word: &'q str,
    /// As [`normal`] has it.
    pub bare: String,
}

/// Returns the words of a question that may be codes: those with a digit, or in capitals.
pub fn codes(question: &str) -> Vec<Code<'_>> {
    if question.len() > QUESTION_BYTES {
        return Vec::new();
    }
    let bare = |word: &str| normal(&word.chars().map(narrow).collect::<String>());
    // "DURUR", where not all is in capitals.
    let has_small = question.contains(char::is_lowercase);
    let is_capital = |c: char| c.is_ascii_uppercase() || !c.is_alphabetic();
    let may_be =
        |word: &str| word.contains(|c| narrow(c).is_ascii_digit()) || has_small && word.chars().all(is_capital);
    let ends_word = |c: char| c.is_whitespace() || is_han(c);
    let is_code = |code: &Code<'_>| code.bare.len() >= MIN_LENGTH && may_be(code.word);
    question.split(ends_word).map(|word| Code { word, bare: bare(word) }).filter(is_code).take(MOST).collect()
}

/// Most bytes of a sign, and of a word that a short number goes on: "No. 5".
const MAX_SIGN_BYTES: usize = 16;
/// Most letters and digits beside a sign: others are terms.
const MAX_LETTERS: usize = 3;
/// Most letters of an abbreviation, and digits of a number, that are no term by themselves.
const MAX_SHORT: usize = 2;

/// Returns what a question names by a sign, a letter or a short number.
pub fn signs(question: &str) -> Vec<&str> {
    if question.len() > QUESTION_BYTES {
        return Vec::new();
    }
    let outer =
        |c: char| matches!(c, '?' | '!' | '.' | ',' | ';' | ':' | '"' | '\'' | '(' | ')' | '[' | ']') || is_mark(c);
    let ends_word = |c: char| c.is_whitespace() || c >= FIRST_WIDE && c.is_alphanumeric();
    let (mut found, mut before): (Vec<&str>, Option<&str>) = (Vec::new(), None);
    for whole in question.split(ends_word).filter(|word| !word.is_empty()) {
        let word = whole.trim_matches(outer);
        let heads = |before: &&str| {
            before.len() <= MAX_SIGN_BYTES && (before.ends_with('.') || !before.contains(char::is_alphanumeric))
        };
        let head = before.replace(whole).filter(heads);
        if let Some(head) = head.filter(|_| is_short_number(word)) {
            found.retain(|sign| *sign != head);
            let at = |word: &str| word.as_ptr().addr() - question.as_ptr().addr();
            found.push(&question[at(head)..at(word) + word.len()]);
        } else if is_by_sign(word) && !found.contains(&word) {
            found.push(word);
        }
    }
    found.truncate(MOST);
    found
}

fn is_short_number(word: &str) -> bool {
    (1..=MAX_SHORT).contains(&word.len()) && word.bytes().all(|byte| byte.is_ascii_digit())
}

/// Returns whether a word is a name by its sign, a letter of another script, or a short Roman number.
fn is_by_sign(word: &str) -> bool {
    let is_letter = |c: char| !c.is_ascii() && c.is_alphabetic() && c < FIRST_WIDE;
    let letters = word.chars().filter(|c| c.is_alphanumeric()).count();
    let is_signed = word.len() <= MAX_SIGN_BYTES && letters <= MAX_LETTERS && word.contains(is_sign);
    let is_roman = word.len() == MAX_SHORT && word.bytes().all(|byte| matches!(byte, b'I' | b'V' | b'X'));
    let mut characters = word.chars();
    let is_alone = characters.next().is_some_and(is_letter) && characters.next().is_none();
    is_signed && !word.starts_with(['$', '£', '€', '¥', '￥']) || is_alone || is_roman
}

/// Returns whether a character is a quotation mark or other punctuation around words.
fn is_mark(c: char) -> bool {
    matches!(c, '“' | '”' | '„' | '«' | '»' | '‘' | '’' | '…' | '–' | '—' | '¿' | '¡')
        || c >= FIRST_WIDE && !c.is_alphanumeric() && !is_picture(c)
}

/// Returns whether a character is an emoji or the like.
fn is_picture(c: char) -> bool {
    matches!(c, '\u{1f000}'..='\u{1faff}')
}

/// Returns whether a character in a word makes it a sign: what stands within words and numbers does not.
fn is_sign(c: char) -> bool {
    let is_fraction = c.is_numeric() && !c.is_ascii() && c < FIRST_WIDE;
    is_fraction
        || is_picture(c)
        || !c.is_alphanumeric()
            && !matches!(c, '-' | '\'' | '’' | '.' | '/' | ',' | ':' | '_' | '@' | '%')
            && !is_mark(c)
}

/// Iterates over the parts of a text that have a sign apart from other letters and digits. O(n).
pub fn parts_with_sign<'t>(
    sign: &'t str,
    text: &'t str,
    analysis: &'t Analysis,
) -> impl Iterator<Item = usize> + use<'t> {
    let parts = text.contains(sign).then(|| analysis.byte_ranges().enumerate()).into_iter().flatten();
    let has_sign = move |part: &str| {
        part.match_indices(sign).any(|(at, _)| {
            let (before, behind) = (&part[..at], &part[at + sign.len()..]);
            let is_word = |c: char| c.is_alphanumeric();
            let goes_on = before.ends_with(is_word) && sign.starts_with(is_word)
                || behind.starts_with(is_word) && sign.ends_with(is_word);
            !goes_on
        })
    };
    parts.filter(move |(_, (_, range))| has_sign(&text[range.clone()])).map(|(part, _)| part)
}

/// Returns the character of ASCII for one in full width, as Chinese input methods write it.
fn narrow(c: char) -> char {
    match c {
        '！'..='～' => char::from_u32(u32::from(c) - u32::from('！') + u32::from('!')).unwrap_or(c),
        _ => c,
    }
}

/// Iterates over the parts of a text that have a code; `all` is the text as [`normal`] has it. O(n).
pub fn parts_with<'t>(
    code: &'t str,
    all: &str,
    text: &'t str,
    analysis: &'t Analysis,
) -> impl Iterator<Item = usize> + use<'t> {
    let parts = all.contains(code).then(|| analysis.byte_ranges().enumerate()).into_iter().flatten();
    parts.filter(move |(_, (_, range))| normal(&text[range.clone()]).contains(code)).map(|(part, _)| part)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sign_or_a_letter_is_what_a_question_names_by_it() {
        for (question, sign) in [
            ("What was it about C++ again?", "C++"),
            ("What was it about \"R&D\"?", "R&D"),
            ("Who is π?", "π"),
            ("And the one with 🦉?", "🦉"),
            ("What is ½ for?", "½"),
            ("Where does x² end?", "x²"),
            ("Who lives in No. 5?", "No. 5"),
            ("And what says § 5 of it?", "§ 5"),
            ("What hangs in room IX?", "IX"),
            ("C++是谁的？", "C++"),
        ] {
            assert_eq!(signs(question), [sign], "{question}");
        }
        for question in [
            "What is in .env and /etc/a.txt, at 7:30?",
            "WHERE IS IT?",
            "It's 5 or so – isn't it?",
            "见 https://a.b/?x=1&y",
        ] {
            assert_eq!(signs(question), [""; 0], "{question}");
        }
    }

    #[test]
    fn what_has_a_digit_may_be_a_code() {
        let found = |question| codes(question).into_iter().map(|code| code.bare).collect::<Vec<_>>();
        assert_eq!(found("Where is the car ending in F87-519?"), ["f87519"]);
        assert_eq!(found("And IMO6274953, or 3c:dd (not 12)?"), ["imo6274953", "3cdd"]);
        assert_eq!(found("Where is DURUR now?"), ["durur"]);
        assert_eq!(found("关于４０７１，之前怎么说的？"), ["4071"]);
        assert_eq!(found("关于ＨＴ－２０２４－沪－０１９３"), ["ht2024", "0193"]);
        assert_eq!(found("WHERE IS IT NOW?"), [""; 0]);
        assert_eq!(found("Where is it?"), [""; 0]);
    }
}
