//! Splits text into sentences.

use std::ops::Range;

/// Returns the sentences of `text` with their punctuation; a line end ends one, too. O(n).
pub fn sentences(text: &str) -> impl Iterator<Item = Range<usize>> {
    let mut start = 0;
    let may_stop = |at: &usize| MAY_STOP[usize::from(text.as_bytes()[*at])];
    let stops = (0..text.len()).filter(may_stop).filter_map(|at| stop(text, at));
    stops.chain([text.len()]).map(move |stop| std::mem::replace(&mut start, stop)..stop)
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
        // Hindi's danda and double danda.
        0xe0 => matches!(bytes[at..], [0xe0, 0xa5, 0xa4 | 0xa5, ..]).then_some(at + 3),
        // The question mark of Arabic, the full stop of Urdu.
        0xd8 | 0xdb => matches!(bytes[at..], [0xd8, 0x9f, ..] | [0xdb, 0x94, ..]).then_some(at + 2),
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
}
