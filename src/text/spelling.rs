//! Finds names that people spell in several ways, as they are in the plainest of them: `+49 171 5550 123` is `491715550123`, `LH 2451`
//! is `LH2451`, `1,400` is `1400`, `Siobhán` is `Siobhan`, `Анной` is `Анн`.
//!
//! The plainest spelling is a term of the text besides its words ([`super::terms`]), so either spelling finds the other.

use super::bytes::{is_escape_letter, is_word};

/// Most characters of a name in groups: those of the longest account number, with blanks. Source: ISO 13616 (34 characters).
const MAX_NAME: usize = 42;
/// Digits of a telephone, card or book number. Source: ITU-T E.164 (at most 15), ISO/IEC 7812 (at most 19); local numbers have seven.
const NUMBER: std::ops::RangeInclusive<usize> = 7..=19;
/// Digits behind the letters of a flight, a train, a course or a number plate.
const CODE: std::ops::RangeInclusive<usize> = 2..=5;

/// Most groups of digits behind letters that dashes join: `AB-1234-56`.
const MAX_DASHED: usize = 3;

/// A name in groups.
#[derive(Debug)]
pub struct Grouped {
    /// Behind its last group.
    pub end: usize,
    /// Its letters and digits.
    pub name: Vec<u8>,
    /// Of a telephone number with the code of its country: what is dialled at home, or abroad without zeros.
    pub other: Option<Vec<u8>>,
}

/// Returns the name in groups that begins with the word at `start`, which may end in digits only; O(1).
pub fn grouped(bytes: &[u8], start: usize) -> Option<Grouped> {
    let first = bytes[start];
    let may_be = first.is_ascii_digit() && !continues_number(bytes, start) || first.is_ascii_uppercase();
    if !may_be {
        return None;
    }
    thousands(bytes, start).or_else(|| groups(bytes, start))
}

/// Returns whether digits before `start` belong to the number there.
fn continues_number(bytes: &[u8], start: usize) -> bool {
    let before = bytes[..start].iter().rev().take(2).find(|byte| !b" -/.,)'".contains(byte));
    start > 0 && !is_word(bytes[start - 1]) && before.is_some_and(u8::is_ascii_digit)
}

fn digits(bytes: &[u8], start: usize) -> usize {
    bytes[start.min(bytes.len())..].iter().take(MAX_NAME).take_while(|byte| byte.is_ascii_digit()).count()
}

/// Returns the letters and digits of a name in groups, without the zero that is dialled at home: `+49 (0)171`.
fn joined(groups: &[u8]) -> Vec<u8> {
    let home = memchr::memmem::find(groups, b"(0)").unwrap_or(groups.len());
    let (before, behind) = groups.split_at(home);
    let behind = behind.strip_prefix(b"(0)").unwrap_or(behind);
    before.iter().chain(behind).copied().filter(u8::is_ascii_alphanumeric).collect()
}

/// Returns the number before the point of an amount with marks between thousands: `12,345.60`, `1.234.567`, `12'345`.
fn thousands(bytes: &[u8], start: usize) -> Option<Grouped> {
    let first = digits(bytes, start);
    let mut end = start + first;
    let mark = *bytes.get(end)?;
    if !(1..=3).contains(&first) || bytes[start] == b'0' || !b",.'".contains(&mark) {
        return None;
    }
    let mut marks = 0;
    while bytes.get(end) == Some(&mark) && digits(bytes, end + 1) == 3 {
        (end, marks) = (end + 4, marks + 1);
    }
    // One point may be that of a fraction.
    let is_amount = marks > usize::from(mark == b'.' && bytes.get(end) != Some(&b','));
    let is_whole = !bytes.get(end).is_some_and(|&byte| is_word(byte));
    (is_amount && is_whole).then(|| Grouped { end, name: joined(&bytes[start..end]), other: None })
}

/// Returns a number whose groups stand apart, or letters and a number.
fn groups(bytes: &[u8], start: usize) -> Option<Grouped> {
    let is_account = is_country(&bytes[start..]);
    // Lengths of the groups of letters in front, and of those of digits.
    let (mut letters, mut lengths) = (0, Vec::new());
    let (mut at, mut end) = (start, start);
    loop {
        let length = bytes[at..].iter().take(MAX_NAME).take_while(|byte| is_word(**byte)).count();
        let group = &bytes[at..at + length];
        let is_number = group.iter().all(u8::is_ascii_digit);
        let is_upper = group.iter().all(|byte| byte.is_ascii_digit() || byte.is_ascii_uppercase());
        match () {
            () if length == 0 || at - start > MAX_NAME => break,
            () if is_number || is_account && is_upper && length <= 4 => lengths.push(length),
            () if length <= 3 && lengths.is_empty() && group.iter().all(u8::is_ascii_uppercase) => letters += 1,
            () => break,
        }
        end = at + length;
        let Some(next) = next_group(bytes, end) else { break };
        at = next;
    }
    let is_name = match lengths[..] {
        _ if goes_on(bytes, end) => false,
        _ if is_account => end - start >= 15,
        [number] => (1..=2).contains(&letters) && CODE.contains(&number),
        // A date, and measures side by side.
        [] | [4, 2, 2, ..] | [2, 2, 4, ..] => false,
        _ if letters > 0 => letters <= 2 && lengths.len() <= MAX_DASHED && !bytes[start..end].contains(&b' '),
        _ => NUMBER.contains(&lengths.iter().sum()) && lengths.iter().sum::<usize>() >= 2 * lengths.len(),
    };
    is_name.then(|| {
        let name = joined(&bytes[start..end]);
        let is_abroad = letters == 0 && bytes[..start].ends_with(b"+") && (1..=3).contains(&lengths[0]);
        let at_home = is_abroad.then(|| [b"0", &name[lengths[0]..]].concat());
        let other = at_home.or_else(|| name.strip_prefix(b"00").map(<[u8]>::to_vec));
        Grouped { end, name, other }
    })
}

/// Returns where the group behind the one that ends at `end` begins.
fn next_group(bytes: &[u8], end: usize) -> Option<usize> {
    let next = match bytes[end..] {
        [b' ', b'(', b'0', b')', b' ', ..] => end + 5,
        [b' ', b'(', b'0', b')', ..] => end + 4,
        [b' ' | b'-' | b'/', b'(', ..] | [b')', b' ' | b'-', ..] => end + 2,
        [b' ' | b'-' | b'/' | b'.', ..] => end + 1,
        _ => return None,
    };
    bytes.get(next).is_some_and(|&byte| is_word(byte)).then_some(next)
}

/// Returns whether what ends at `end` is the beginning of a clock, a fraction or a longer word.
fn goes_on(bytes: &[u8], end: usize) -> bool {
    match bytes[end..] {
        [b':' | b',', next, ..] => next.is_ascii_digit(),
        [b'-' | b'_' | b'/' | b'.', next, ..] | [next, ..] => is_word(next),
        [] => false,
    }
}

/// Returns whether an account number in groups of four begins: two letters of a country and two digits. Source: ISO 13616.
fn is_country(bytes: &[u8]) -> bool {
    matches!(bytes, [a, b, c, d, b' ', ..] if a.is_ascii_uppercase() && b.is_ascii_uppercase() && c.is_ascii_digit() && d.is_ascii_digit())
}

/// The letters without accents of U+00C0 to U+017F; `*` is none. Source: the decompositions of Unicode 16, and for letters without
/// one the letter they are written with where it is missing.
const LATIN: &str = "AAAAAAACEEEEIIIIDNOOOOO*OUUUUYTsaaaaaaaceeeeiiiidnooooo*ouuuuyty\
AaAaAaCcCcCcCcDdDdEeEeEeEeEeGgGgGgGgHhHhIiIiIiIiIiIiJjKkkLlLlLlLlLlNnNnNnnNnOoOoOoOoRrRrRrSsSsSsSsTtTtTtUuUuUuUuUuUuWwYyYZzZzZzs";
/// Those of U+1EA0 to U+1EF9, of Vietnamese.
const VIETNAMESE: &str = "AaAaAaAaAaAaAaAaAaAaAaAaEeEeEeEeEeEeEeEeIiIiOoOoOoOoOoOoOoOoOoOoOoOoUuUuUuUuUuUuUuYyYyYyYy";

/// Returns the letter of the Latin alphabet that is `c` without its accent; `*` for other letters with one.
fn without_accent(c: char) -> Option<u8> {
    let among = |letters: &str, first: u32| letters.as_bytes().get((c as u32).checked_sub(first)? as usize).copied();
    match c {
        'Ơ' | 'ơ' => Some(b'o'),
        'Ư' | 'ư' => Some(b'u'),
        _ => among(LATIN, 0xc0).or_else(|| among(VIETNAMESE, 0x1ea0)).filter(|&letter| letter != b'*'),
    }
}

/// Returns whether `c` is an accent by itself, behind its letter.
fn is_accent(c: char) -> bool {
    ('\u{300}'..='\u{36f}').contains(&c)
}

/// Returns the word around the first accent of a word, at `accent`, in ASCII, and once more as it is typed where a keyboard has no
/// umlauts, if it has some; `None` for another character, or where the word has an accent before.
pub fn in_ascii(text: &str, accent: usize) -> Option<(usize, [Vec<u8>; 2])> {
    let is_latin = |c: char| c.is_ascii_alphabetic() || without_accent(c).is_some() || is_accent(c);
    let c = text[accent..].chars().next().filter(|&c| is_latin(c))?;
    debug_assert!(!c.is_ascii());
    let before = text[..accent].chars().rev().take_while(|&c| is_latin(c)).take(MAX_NAME);
    if before.clone().any(|c| !c.is_ascii()) {
        return None;
    }
    let start = accent - before.count();
    // The letter of the escape of a line break is no part of the word.
    let start = start + usize::from(start < accent && is_escape_letter(text.as_bytes(), start));
    let (mut plain, mut typed) = (Vec::new(), Vec::new());
    for c in text[start..].chars().take(MAX_NAME).take_while(|&c| is_latin(c)) {
        let letters: (&[u8], &[u8]) = match c {
            'ä' | 'Ä' | 'æ' | 'Æ' => (b"a", b"ae"),
            'ö' | 'Ö' | 'ø' | 'Ø' | 'œ' | 'Œ' => (b"o", b"oe"),
            'ü' | 'Ü' => (b"u", b"ue"),
            'ß' => (b"ss", b"ss"),
            'å' | 'Å' => (b"a", b"aa"),
            _ => (&[], &[]),
        };
        if !letters.0.is_empty() {
            plain.extend(letters.0);
            typed.extend(letters.1);
        } else if !is_accent(c) {
            let letter = if c.is_ascii() { c as u8 } else { without_accent(c).unwrap_or(b'*') };
            plain.push(letter);
            typed.push(letter);
        }
    }
    if typed == plain {
        typed.clear();
    }
    Some((start, [plain, typed]))
}

/// Letters that endings of Russian, Ukrainian, Bulgarian and Serbian words consist of, and the two before which a vowel stands in some:
/// Анна, Анной, Анне; Иваном, Иванах.
const ENDING: &str = "аеёиоуыэюяйьіїєј";
const ENDING_CONSONANTS: &str = "мхг";

/// Returns the letters of a word in small letters without its ending, at least three; all of it in another alphabet.
pub fn cyrillic_stem(word: &[char]) -> &[char] {
    let is_vowel = |c: &char| ENDING.contains(*c);
    let vowels = |word: &[char]| word.iter().rev().take_while(|c| is_vowel(c)).count();
    let cut = |word: &[char], length: usize| word.len().saturating_sub(length).max(3.min(word.len()));
    let mut stem = &word[..cut(word, vowels(word))];
    // …ами, …ого, …ом: a vowel and one of these, and no letter that a stem needs.
    if let [.., vowel, last] = stem
        && is_vowel(vowel)
        && ENDING_CONSONANTS.contains(*last)
        && stem.len() > 4
    {
        let shorter = &stem[..stem.len() - 1];
        stem = &shorter[..cut(shorter, vowels(shorter))];
    }
    stem
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plain(text: &str) -> Option<String> {
        let name = grouped(text.as_bytes(), text.find(|c: char| c.is_ascii_alphanumeric())?)?;
        Some(String::from_utf8(name.name).unwrap())
    }

    #[test]
    fn a_name_in_groups_is_one_without_them() {
        for (text, name) in [
            ("+49 171 5550 123", "491715550123"),
            ("+49 (0)171 5550123, after six", "491715550123"),
            ("(415) 555-0132", "4155550132"),
            ("06 12 34 56 78.", "0612345678"),
            ("138 0013 8000", "13800138000"),
            ("4111 1111 1111 1111", "4111111111111111"),
            ("978-3-16-148410-0", "9783161484100"),
            ("DE89 3704 0044 0532 0130 00", "DE89370400440532013000"),
            ("GB29 NWBK 6016 1331 9268 19", "GB29NWBK60161331926819"),
            ("LH 2451 leaves", "LH2451"),
            ("B-AB 1234", "BAB1234"),
            ("AB-1234-56", "AB123456"),
            ("ICE 582", "ICE582"),
            ("1,400", "1400"),
            ("12,345.60 in all", "12345"),
            ("1.234.567", "1234567"),
            ("1.400,00 €", "1400"),
            ("12'345", "12345"),
        ] {
            assert_eq!(plain(text).as_deref(), Some(name), "{text}");
        }
        for text in [
            "2026-11-27 14:35",
            "27.11.2026",
            "3.142",
            "12 of 40",
            "12:34:56",
            "A 4",
            "I am",
            "1 2 3",
            "400",
            "1,40",
            "LH 2451-x",
            "10.0.0.7",
        ] {
            assert_eq!(plain(text), None, "{text}");
        }
    }

    #[test]
    fn a_number_with_the_code_of_its_country_is_one_at_home() {
        let other = |text: &str| grouped(text.as_bytes(), text.find(|c: char| c.is_ascii_digit())?)?.other;
        for (text, at_home) in [
            ("+44 7370 479475", "07370479475"),
            ("+49 (0)171 5550123", "01715550123"),
            ("0049 171 5550123", "491715550123"),
        ] {
            assert_eq!(other(text).as_deref(), Some(at_home.as_bytes()), "{text}");
        }
        assert_eq!(other("0171 5550123"), None);
    }

    #[test]
    fn a_group_within_a_name_begins_none() {
        let text = b"+49 171 5550 123";
        assert!(
            (4..text.len()).all(|at| !text[at].is_ascii_digit() || grouped(text, at).is_none() || text[at - 1] != b' ')
        );
    }

    #[test]
    fn a_word_with_accents_is_one_without() {
        let plain = |text: &str| {
            let accent = text.find(|c: char| !c.is_ascii())?;
            let (_, [plain, typed]) = in_ascii(text, accent)?;
            Some([plain, typed].map(|name| String::from_utf8(name).unwrap()))
        };
        for (text, name, typed) in [
            ("Siobhán", "Siobhan", ""),
            ("Siobha\u{301}n", "Siobhan", ""),
            ("Müller", "Muller", "Mueller"),
            ("Straße", "Strasse", ""),
            ("Łódź", "Lodz", ""),
            ("Nguyễn", "Nguyen", ""),
            ("Çelik", "Celik", ""),
            ("Søren", "Soren", "Soeren"),
        ] {
            assert_eq!(plain(text), Some([name.to_owned(), typed.to_owned()]), "{text}");
        }
        assert_eq!(plain("日志"), None);
        assert!(in_ascii("élève", 3).is_none());
        assert_eq!((LATIN.len(), VIETNAMESE.len()), (0x180 - 0xc0, 0x1efa - 0x1ea0));
        assert_eq!(
            ['ſ', 'ž', 'ł', 'ÿ', 'đ', 'ỹ', 'ễ'].map(without_accent),
            [b's', b'z', b'l', b'y', b'd', b'y', b'e'].map(Some)
        );
    }

    #[test]
    fn a_cyrillic_word_is_found_by_its_stem() {
        for forms in [
            "анна анной анне анну анны",
            "воронова вороновой воронову",
            "иван ивана ивану иваном ивану",
            "мария марии марией марию",
            "сергей сергея сергеем сергею",
            "толстой толстого толстому",
            "договор договора договором договоры договорами",
        ] {
            let stems: Vec<String> = forms
                .split(' ')
                .map(|word| cyrillic_stem(&word.chars().collect::<Vec<_>>()).iter().collect())
                .collect();
            assert!(stems.iter().all(|stem| *stem == stems[0]), "{stems:?}");
        }
        assert_eq!(cyrillic_stem(&['и', 'я']).len(), 2);
    }
}
