//! Finds what stands out in prose: a date, a sum or a code among friendly words.

use crate::text::bytes::has_digit;
use crate::text::sentences::sentences;

use super::Class;
use super::units::Unit;

/// Fewest sentences in which one with a number is odd, and fewest of a mail.
const MIN_SENTENCES: usize = 8;
const MIN_OF_MAIL: usize = 4;
/// One sentence in so many may have a number, and so many of a short text.
const FIGURED_IN: usize = 8;
const FEW_FIGURED: usize = 2;
/// Fewest bytes of a code: where many sentences have a number, one with a code is odd.
const MIN_CODE_BYTES: usize = 4;
/// Most bytes of a header: "Date: 4 May".
const MAX_HEADER_BYTES: usize = 80;

/// Returns the units with the sentences that have a number, in order, if few have one; of a mail without those that say nothing. O(n).
pub fn figured(text: &str, units: &[Unit], classes: &[Class], is_mail: bool) -> Vec<usize> {
    let (mut count, mut figured, mut coded) = (0, Vec::new(), Vec::new());
    for sentence in sentences(text) {
        let said = text[sentence.clone()].trim();
        if !said.contains(char::is_alphanumeric) || is_header(said) {
            continue;
        }
        let unit = units.partition_point(|unit| unit.end as usize <= sentence.start);
        if is_mail && matches!(classes[unit], Class::Noise | Class::Header) {
            continue;
        }
        count += 1;
        if has_digit(said) {
            figured.push(unit);
            coded.extend(said.split_whitespace().any(is_code).then_some(unit));
        }
    }
    let least = if is_mail { MIN_OF_MAIL } else { MIN_SENTENCES };
    let are_few = |those: &Vec<usize>| count >= least && those.len() <= (count / FIGURED_IN).max(FEW_FIGURED);
    [figured, coded].into_iter().find(are_few).unwrap_or_default()
}

/// Returns whether a word is a code: capitals and digits, not only the latter first, as in `12PM`.
fn is_code(word: &str) -> bool {
    let behind = word.trim_start_matches(|c: char| c.is_ascii_digit());
    word.len() >= MIN_CODE_BYTES && has_digit(behind) && behind.bytes().any(|byte| byte.is_ascii_uppercase())
}

/// Returns whether a line is a header, of a mail or a page.
fn is_header(said: &str) -> bool {
    let name = said.split_once([':', '：']).map(|(name, _)| name);
    said.len() <= MAX_HEADER_BYTES && name.is_some_and(|name| !name.contains(' '))
}

#[cfg(test)]
mod tests {
    use crate::text::segments::{Class, Segments};

    #[test]
    fn a_date_among_friendly_words_stands_out() {
        const WORDS: [&str; 4] = [
            "It was lovely to see so many of you at the picnic.",
            "The children talked about the ducks all the way home.",
            "Nadia brought her famous plum cake again.",
            "We hope that the weather stays as kind as it was.",
        ];
        let head = "From: Dan <dan@hollis.example>\nDate: 4 May 2026\n\nDear all,\n\n";
        let mail = |key: &str| {
            let sentences: Vec<&str> = (0..12).map(|i| if i == 7 { key } else { WORDS[i % 4] }).collect();
            head.to_owned() + &sentences.chunks(3).map(|said| said.join(" ")).collect::<Vec<_>>().join("\n\n")
        };
        let outliers = |text: &str| {
            let segments = Segments::of(text);
            let odd = segments.pieces().iter().filter(|piece| piece.class == Class::Outlier);
            odd.map(|piece| text[piece.range()].to_owned()).collect::<String>()
        };
        let found = outliers(&mail("Please send the form back by 14 June."));
        assert!(found.contains("by 14 June") && !found.contains("Dear all"), "{found}");
        assert_eq!(outliers(&mail(WORDS[0])), "");
        // Where many have a number, none is odd for it.
        let many = mail("It starts at 9.").replace("again.", "again, 3 of them.").replace("home.", "home for 2 hours.");
        assert!(!outliers(&many).contains("starts at 9"));
        let code = mail("Without form EAJ3Q8 it lapses.")
            .replace("again.", "again, at 12PM.")
            .replace("home.", "home for 2 hours.");
        assert!(outliers(&code).contains("EAJ3Q8"));
        // A mail of a few sentences.
        let short = format!("{head}Subject: Walk\n\n{} Bring form 7 by Monday. {} {}", WORDS[0], WORDS[1], WORDS[2]);
        assert!(outliers(&short.replace("\n\nDear all,\n\nSubject", "\nSubject")).contains("form 7"));
    }
}
