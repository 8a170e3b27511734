//! Finds the bounds of quotations, brackets, sentences and numbers in text that may be cut off anywhere.

/// Returns whether the quote at `at` opens a quotation; an apostrophe as in `model's` and an escaped quote do not.
pub(super) fn opens_quote(bytes: &[u8], at: usize) -> bool {
    at == 0 || !(bytes[at - 1].is_ascii_alphanumeric() || bytes[at - 1] == b'\\')
}

/// Returns whether a key can stand at `at`: `{"key": …`, not "Invalid 'user': …".
pub(super) fn starts_pair(bytes: &[u8], at: usize) -> bool {
    bytes[..at].iter().rfind(|b| !b.is_ascii_whitespace()).is_none_or(|b| matches!(b, b'{' | b',' | b'[' | b'('))
}

/// Returns whether the quotation from `at` to `end` is a part of speech: "the error 'prompt is too long' means …". A name
/// (`` `max_tokens` ``) belongs to the sentence and is none; a code is, unless "code" introduces it.
pub(super) fn is_mentioned(bytes: &[u8], at: usize, end: usize) -> bool {
    let quoted = bytes.get(at + 1..end).unwrap_or_default();
    let is_phrase = quoted.split(|b| *b == b' ').nth(2).is_some() || quoted.ends_with(b"_exceeded");
    let follows_word = matches!(bytes[..at], [.., b'a'..=b'z' | b'A'..=b'Z', b' ']) && !bytes[..at].ends_with(b"code ");
    let precedes_word = matches!(bytes.get(end + 1..), Some([b' ', b'a'..=b'z' | b'A'..=b'Z', ..]));
    is_phrase && follows_word && precedes_word
}

/// Returns the position of the quote that closes the one at `at`, or the length when the text ends first.
pub(super) fn quote_end(bytes: &[u8], at: usize) -> usize {
    let quote = bytes[at];
    let mut end = at + 1;
    while let Some(step) = bytes.get(end..).and_then(|rest| rest.iter().position(|&b| b == quote || b == b'\\')) {
        end += step;
        if bytes[end] == quote {
            return end;
        }
        end += 2;
    }
    bytes.len()
}

/// Returns the position behind the bracket that closes the one at `at`, or the length; brackets in strings don't count.
pub(super) fn bracket_end(bytes: &[u8], at: usize) -> usize {
    let (mut end, mut open) = (at, 0_usize);
    while end < bytes.len() {
        match bytes[end] {
            b'[' | b'{' => open += 1,
            b']' | b'}' => open -= 1,
            b'"' | b'\'' if opens_quote(bytes, end) => end = quote_end(bytes, end),
            _ => {}
        }
        end += 1;
        if open == 0 {
            break;
        }
    }
    end.min(bytes.len())
}

/// Returns the end of the first string or list that was open at the start of `tail`.
pub(super) fn echo_end(tail: &str) -> Option<usize> {
    let bytes = tail.as_bytes();
    (0..bytes.len())
        .find(|&at| {
            matches!(bytes[at], b'"' | b'\'')
                && (at == 0 || bytes[at - 1] != b'\\')
                && matches!(bytes.get(skip_spaces(bytes, at + 1)), Some(b',' | b'}' | b']'))
        })
        .map(|at| at + 1)
}

pub(super) fn skip_spaces(bytes: &[u8], at: usize) -> usize {
    let rest = bytes.get(at..).unwrap_or_default();
    at + rest.iter().take_while(|b| b.is_ascii_whitespace()).count()
}

pub(super) fn ends_sentence(bytes: &[u8], next: usize) -> bool {
    bytes.get(next).is_none_or(|b| b.is_ascii_whitespace() || matches!(b, b'"' | b'\'' | b'`' | b'\\' | b'}' | b'<'))
}

pub(super) fn between_letters(bytes: &[u8], at: usize) -> bool {
    at > 0 && bytes[at - 1].is_ascii_alphanumeric() && bytes.get(at + 1).is_some_and(u8::is_ascii_alphabetic)
}

/// Returns the width of a thousands separator at the front of `bytes`: `1,000` `1_000` `1.000` `1'000` and narrow spaces.
pub(super) fn separator(bytes: &[u8]) -> Option<usize> {
    match bytes {
        [b',' | b'_' | b'.' | b'\'', ..] => Some(1),
        [0xc2, 0xa0, ..] => Some(2),
        [0xe2, 0x80, 0xaf | 0x89 | 0x99, ..] => Some(3),
        _ => None,
    }
}

/// Undoes one level of JSON or Python escapes; a backslash that escapes nothing is removed.
pub(super) fn unescape(text: &str) -> String {
    let bytes = text.as_bytes();
    let mut out = Vec::with_capacity(bytes.len());
    let mut at = 0;
    while at < bytes.len() {
        if bytes[at] != b'\\' {
            out.push(bytes[at]);
            at += 1;
            continue;
        }
        let width = match bytes.get(at + 1) {
            Some(b'n' | b'r' | b't') => {
                out.push(b' ');
                2
            }
            Some(b'u') => match hex(bytes, at + 2, 4).and_then(char::from_u32) {
                Some(c) => {
                    out.extend_from_slice(c.encode_utf8(&mut [0; 4]).as_bytes());
                    6
                }
                None => 2,
            },
            Some(b'x') => match hex(bytes, at + 2, 2).and_then(|code| u8::try_from(code).ok()) {
                Some(byte) => {
                    out.push(byte);
                    4
                }
                None => 2,
            },
            Some(&byte) => {
                out.push(byte);
                2
            }
            None => 1,
        };
        at += width;
    }
    String::from_utf8_lossy(&out).into_owned()
}

fn hex(bytes: &[u8], at: usize, width: usize) -> Option<u32> {
    let digits = std::str::from_utf8(bytes.get(at..at + width)?).ok()?;
    u32::from_str_radix(digits, 16).ok()
}
