//! Finds what lines around it mark, or words in it: both sides of a merge conflict, the data of certificates, and when these end.

use super::Class;
use super::log::is_base64;
use super::units::Unit;

/// What opens and ends a conflict, as Git writes it, and most lines of one.
const CONFLICT: [&str; 2] = ["<<<<<<< ", ">>>>>>> "];
const MAX_CONFLICT: usize = 60;
/// Most lines of all conflicts of a text that stand out.
const MAX_CONFLICTS: usize = 120;

/// What opens and ends data in Base64. Source: RFC 7468.
const DATA: [&str; 2] = ["-----BEGIN ", "-----END "];
/// Fewest bytes of a line of such data without what opens it.
const MIN_ENCODED: usize = 60;
/// Fewest pairs of hexadecimal digits of a line that is nothing else.
const MIN_PAIRS: usize = 8;

/// How tools name the end of a certificate's time, and most such lines that stand out.
const ENDS: [&str; 4] = ["notafter", "not after", "expire date", "expiry date"];
const MAX_ENDS: usize = 6;

/// Classes the lines of these. O(n).
pub fn class(text: &str, units: &[Unit], classes: &mut [Class]) {
    let has = |sign: &str| memchr::memmem::find(text.as_bytes(), sign.as_bytes()).is_some();
    if has(CONFLICT[0]) && has(CONFLICT[1]) {
        conflicts(text, units, classes);
    }
    let is_certificate = has("After") || has("ertificate") || has("xpir");
    let mut is_data = false;
    let mut ends = Vec::new();
    for (i, unit) in units.iter().enumerate() {
        let line = unit.line(text).trim();
        if line.starts_with(DATA[1]) || line.starts_with(DATA[0]) {
            is_data = line.starts_with(DATA[0]);
        } else if is_data && !line.contains(' ') || is_hexadecimal(line) || is_encoded(line) {
            classes[i] = Class::Noise;
        } else if is_certificate && line.len() <= MAX_END_BYTES && line.contains(|c: char| c.is_ascii_digit()) {
            let small = line.to_ascii_lowercase();
            ends.extend(ENDS.iter().any(|end| small.contains(end)).then_some(i));
        }
    }
    for &line in ends.iter().filter(|_| ends.len() <= MAX_ENDS) {
        classes[line] = classes[line].or(Class::Outlier);
    }
}

/// Most bytes of a line that says when something ends.
const MAX_END_BYTES: usize = 200;

/// Makes both sides of conflicts stand out, with the lines that mark them: one side alone says nothing.
fn conflicts(text: &str, units: &[Unit], classes: &mut [Class]) {
    let (mut start, mut all) = (None, Vec::new());
    for (i, unit) in units.iter().enumerate() {
        let line = unit.line(text);
        if line.starts_with(CONFLICT[0]) {
            start = Some(i);
        } else if line.starts_with(CONFLICT[1])
            && let Some(from) = start.take().filter(|from| i - from < MAX_CONFLICT)
        {
            all.extend(from..=i);
        }
    }
    for &line in all.iter().filter(|_| all.len() <= MAX_CONFLICTS) {
        classes[line] = Class::Outlier;
    }
}

/// Returns whether a line, or a part of a long one, is nothing but data in Base64.
fn is_encoded(line: &str) -> bool {
    let has = |is_of: fn(&u8) -> bool| line.bytes().any(|byte| is_of(&byte));
    line.len() >= MIN_ENCODED
        && is_base64(line)
        && has(u8::is_ascii_uppercase)
        && has(u8::is_ascii_lowercase)
        && has(u8::is_ascii_digit)
}

/// Returns whether a line is pairs of hexadecimal digits: the modulus of a key.
fn is_hexadecimal(line: &str) -> bool {
    let pairs = || line.trim_end_matches(':').split(':');
    line.len() >= 3 * MIN_PAIRS - 1
        && pairs().all(|pair| pair.len() == 2 && pair.bytes().all(|byte| byte.is_ascii_hexdigit()))
}

#[cfg(test)]
mod tests {
    use crate::text::segments::{Class, Segments};

    fn of_class(text: &str, class: Class) -> String {
        let segments = Segments::of(text);
        segments.pieces().iter().filter(|piece| piece.class == class).map(|piece| &text[piece.range()]).collect()
    }

    #[test]
    fn both_sides_of_a_conflict_stand_out() {
        let code = |i: usize| format!("def part_{i}(order):\n    total = order.sum() * {i}\n    return total\n\n");
        let conflict = "<<<<<<< HEAD\nTIMEOUT = 30\nRETRIES = 2\n=======\nTIMEOUT = 45\n>>>>>>> origin/release\n";
        let text = [(0..9).map(code).collect::<String>(), conflict.to_owned(), (9..20).map(code).collect()].concat();
        assert!(of_class(&text, Class::Outlier).contains(conflict));
    }

    #[test]
    fn of_a_certificate_its_end_stands_out_and_its_data_is_noise() {
        let data = "i16RdlERKJHK7gAX0042fEW5aXPa7Ey07EBZi6RZAMX1Me2FqpryQyw\n".repeat(20);
        let text = format!(
            "CONNECTED(00000003)\nCertificate chain\n 0 s:CN = a.example\n   v:NotBefore: Sep  3 2026 GMT; NotAfter: Dec  2 2026 GMT\n\
             -----BEGIN CERTIFICATE-----\n{data}-----END CERTIFICATE-----\nsubject=CN = a.example\n"
        );
        assert!(of_class(&text, Class::Outlier).contains("NotAfter: Dec  2 2026"));
        assert_eq!(of_class(&text, Class::Noise), data);
    }
}
