//! Normalises error texts: the message alone, lower case, a sentence a line, numbers in plain digits.
//!
//! Error texts are prose, JSON, the Python repr of a dict or JSON in a string in JSON, cut off anywhere. One tolerant walk
//! reads all of them: it needs only `key: value` pairs with quoted keys, not a valid document. Echoes of the request
//! (`"messages": …`, `input_value='…'`) are skipped, because a user or a tool may have quoted an overflow there.

use super::scan::{
    between_letters, bracket_end, echo_end, ends_sentence, is_mentioned, opens_quote, quote_end, separator,
    skip_spaces, starts_pair, unescape,
};

/// Bytes read at each end of a text: the message is at the front, codes are often at the end.
const END_BYTES: usize = 8 * 1024;
/// JSON inside strings is followed this deep, as cline does.
const MAX_DEPTH: u8 = 8;
/// Longer sentences are split, so that words far apart don't make one statement.
const SENTENCE_BYTES: usize = 400;
/// Longest quoted text that is a key.
const KEY_BYTES: usize = 40;

/// Keys whose strings, lists and objects repeat what was sent or generated.
const ECHO_KEYS: &[&str] = &[
    "arguments",
    "choices",
    "completion",
    "content",
    "contents",
    "failed_generation",
    "generated_text",
    "history",
    "input",
    "inputs",
    "instructions",
    "messages",
    "output",
    "parts",
    "prompt",
    "query",
    "question",
    "system",
    "text",
    "user_message",
    "value",
];
const ECHO_KEY_ENDINGS: &[&str] = &["_content", "_input", "_prompt", "_text", "_value"];
/// Words that, directly before a quotation, say that somebody else's words follow.
const ECHO_WORDS: &[&str] = &[
    "argument",
    "arguments",
    "asked",
    "content",
    "got",
    "input",
    "input_value",
    "pasted",
    "prompt",
    "query",
    "quoted",
    "received",
    "said",
    "says",
    "text",
    "value",
    "wrote",
];
const CODE_KEYS: &[&str] = &[
    "__type",
    "code",
    "err_code",
    "error",
    "error_code",
    "error_type",
    "errorcode",
    "finish_reason",
    "reason",
    "status_code",
    "stop_reason",
    "type",
];

/// An error text as the patterns see it.
pub(super) struct Reading {
    /// Sentences, one a line.
    pub(super) text: String,
    /// Values of `code`, `type` and their like, in lower case.
    pub(super) codes: Vec<String>,
}

/// Returns the first and the last 8 KB of `text`, the second empty when the first is everything.
pub(super) fn ends(text: &str) -> (&str, &str) {
    if text.len() <= 2 * END_BYTES {
        return (text, "");
    }
    let (mut head, mut tail) = (END_BYTES, text.len() - END_BYTES);
    while !text.is_char_boundary(head) {
        head -= 1;
    }
    while !text.is_char_boundary(tail) {
        tail += 1;
    }
    (&text[..head], &text[tail..])
}

/// Reads both ends of an error text. O(n) in at most 16 KB.
pub(super) fn read(text: &str) -> Reading {
    let (head, mut tail) = ends(text);
    let mut reader = ErrorReader { out: String::with_capacity(head.len() + tail.len() + 16), ..ErrorReader::default() };
    let in_echo = reader.walk(head, 0);
    if in_echo {
        // The cut fell into an echoed prompt: the tail counts from where that string ends.
        tail = echo_end(tail).map_or("", |at| &tail[at..]);
    }
    if !tail.is_empty() {
        reader.end_sentence();
        reader.walk(tail, 0);
    }
    Reading { text: reader.out, codes: reader.codes }
}

/// Bytes that are copied as they are, in lower case.
const WORD: [bool; 256] = {
    let mut table = [false; 256];
    let mut byte = 0;
    while byte < 128_u8 {
        table[byte as usize] = byte.is_ascii_alphabetic()
            || matches!(byte, b'_' | b'-' | b',' | b':' | b'(' | b')' | b'[' | b']' | b'/' | b'=' | b'<' | b'>' | b'+');
        byte += 1;
    }
    table
};

#[derive(Default)]
struct ErrorReader {
    out: String,
    codes: Vec<String>,
    sentence_start: usize,
}

impl ErrorReader {
    /// Appends what `text` says; returns whether it ended inside something echoed.
    fn walk(&mut self, text: &str, depth: u8) -> bool {
        let bytes = text.as_bytes();
        let mut at = 0;
        while let Some(&byte) = bytes.get(at) {
            match byte {
                b'"' | b'\'' | b'`' if opens_quote(bytes, at) => match self.quote(text, at, depth) {
                    Some(next) => at = next,
                    None => return true,
                },
                b'\\' if depth < MAX_DEPTH => return self.walk(&unescape(&text[at..]), depth + 1),
                b'0'..=b'9' => at = self.number(bytes, at),
                b'.' | b'!' | b'?' if ends_sentence(bytes, at + 1) => {
                    self.end_sentence();
                    at += 1;
                }
                b'{' | b'}' => {
                    self.end_sentence();
                    at += 1;
                }
                b'\'' if !between_letters(bytes, at) => at += 1,
                b'"' | b'`' | b'*' | b'\\' => at += 1,
                0..=0x7f => {
                    // A word at a time: character by character, this was half the cost of a verdict.
                    let word = bytes[at..].iter().take_while(|b| WORD[usize::from(**b)]).count();
                    if word == 0 {
                        self.push(char::from(byte));
                    } else {
                        self.push_word(&text[at..at + word]);
                    }
                    at += word.max(1);
                }
                _ => {
                    let Some(c) = text[at..].chars().next() else { break };
                    self.push_wide(c);
                    at += c.len_utf8();
                }
            }
        }
        false
    }

    /// Reads what is quoted at `at`; returns where to go on, or `None` if the text ended inside something echoed.
    fn quote(&mut self, text: &str, at: usize, depth: u8) -> Option<usize> {
        let bytes = text.as_bytes();
        let end = quote_end(bytes, at);
        let colon = skip_spaces(bytes, end + 1);
        let may_be_key = bytes[at] != b'`' && end - at <= KEY_BYTES && bytes.get(colon) == Some(&b':');
        if may_be_key && starts_pair(bytes, at) {
            return self.pair(text, &text[at + 1..end], skip_spaces(bytes, colon + 1), depth);
        }
        if self.announces_echo() || is_mentioned(bytes, at, end) {
            return (end < bytes.len()).then_some(end + 1);
        }
        Some(at + 1)
    }

    /// Reads the value of `key` at `at`; returns where to go on, or `None` if the text ended in an echoed value.
    fn pair(&mut self, text: &str, key: &str, at: usize, depth: u8) -> Option<usize> {
        let bytes = text.as_bytes();
        let key = key.to_ascii_lowercase();
        let is_echo = ECHO_KEYS.contains(&key.as_str()) || ECHO_KEY_ENDINGS.iter().any(|ending| key.ends_with(ending));
        match bytes.get(at) {
            Some(b'"' | b'\'') => {
                let end = quote_end(bytes, at);
                let next = (end + 1).min(bytes.len());
                if is_echo {
                    return (end < bytes.len()).then_some(next);
                }
                let value = &text[at + 1..end];
                if CODE_KEYS.contains(&key.as_str()) && value.len() <= KEY_BYTES * 2 {
                    self.codes.push(value.to_ascii_lowercase());
                }
                self.end_sentence();
                if depth < MAX_DEPTH {
                    if value.contains('\\') {
                        self.walk(&unescape(value), depth + 1);
                    } else {
                        self.walk(value, depth + 1);
                    }
                }
                self.end_sentence();
                Some(next)
            }
            Some(b'[' | b'{') if is_echo => Some(bracket_end(bytes, at)).filter(|end| *end < bytes.len()),
            Some(b'[' | b'{') | None => Some(at),
            Some(_) => {
                // A number means something by its key: `"n_ctx": 65536`.
                self.end_sentence();
                self.out.push_str(&key);
                self.out.push_str(": ");
                if CODE_KEYS.contains(&key.as_str()) {
                    let end =
                        bytes[at..].iter().position(|b| !b.is_ascii_alphanumeric()).map_or(bytes.len(), |n| at + n);
                    self.codes.push(text[at..end].to_ascii_lowercase());
                }
                Some(at)
            }
        }
    }

    /// Appends the number at `at` without its thousands separators, `128k` as `128000`.
    fn number(&mut self, bytes: &[u8], at: usize) -> usize {
        let start = self.out.len();
        let digits = |from: usize| bytes[from.min(bytes.len())..].iter().take_while(|b| b.is_ascii_digit()).count();
        let stands_alone = at == 0 || !matches!(bytes[at - 1], b'a'..=b'z' | b'A'..=b'Z' | b'_' | b'-' | b'.');
        let mut end = at + digits(at);
        self.out.push_str(std::str::from_utf8(&bytes[at..end]).unwrap_or_default());
        if stands_alone && (1..=3).contains(&(end - at)) && bytes[at] != b'0' {
            // A blank parts thousands, but also a status from what comes next.
            let is_status = self.out[..start].trim_end().rsplit(' ').next().is_none_or(|word| {
                ["", "http", "code", "code:", "status", "status:", "error", "error:"].contains(&word)
            });
            let blank = |at: usize| (bytes.get(at) == Some(&b' ') && !is_status).then_some(1);
            while let Some(width) = separator(&bytes[end..]).or_else(|| blank(end)) {
                if digits(end + width) != 3 {
                    break;
                }
                let group = &bytes[end + width..end + width + 3];
                self.out.push_str(std::str::from_utf8(group).unwrap_or_default());
                end += width + 3;
            }
        }
        let is_thousands =
            matches!(bytes.get(end), Some(b'k' | b'K')) && !bytes.get(end + 1).is_some_and(u8::is_ascii_alphanumeric);
        if stands_alone && is_thousands && self.out.len() - start <= 5 {
            self.out.push_str("000");
            end += 1;
        }
        end
    }

    /// Appends a character that is not ASCII; full-width digits, letters and punctuation become their ASCII forms.
    fn push_wide(&mut self, c: char) {
        match c {
            '。' | '！' | '？' => self.end_sentence(),
            '、' => self.push(','),
            '’' => self.push('\''),
            // The block repeats ASCII from `!` on, in its order.
            '！'..='～' => {
                let ascii = char::from_u32(u32::from(c) - u32::from('！') + u32::from('!'));
                self.push(ascii.unwrap_or(c).to_ascii_lowercase());
            }
            '“' | '”' | '‘' | '「' | '」' => {}
            _ if c.is_whitespace() => self.push(' '),
            _ => c.to_lowercase().for_each(|lower| self.push(lower)),
        }
    }

    fn push(&mut self, c: char) {
        if c.is_whitespace() || c.is_control() {
            if !self.out.is_empty() && !self.out.ends_with([' ', '\n']) {
                self.out.push(' ');
            }
        } else {
            self.out.push(c);
        }
        if self.out.len() - self.sentence_start > SENTENCE_BYTES {
            self.end_sentence();
        }
    }

    fn push_word(&mut self, word: &str) {
        let start = self.out.len();
        self.out.push_str(word);
        self.out[start..].make_ascii_lowercase();
        if self.out.len() - self.sentence_start > SENTENCE_BYTES {
            self.end_sentence();
        }
    }

    fn end_sentence(&mut self) {
        if self.out.ends_with(' ') {
            self.out.pop();
        }
        if !self.out.is_empty() && !self.out.ends_with('\n') {
            self.out.push('\n');
        }
        self.sentence_start = self.out.len();
    }

    fn announces_echo(&self) -> bool {
        let before = self.out.trim_end_matches([' ', ':', '=', '(', ',']);
        let word = before.rsplit(|c: char| !c.is_ascii_alphanumeric() && c != '_').next().unwrap_or_default();
        ECHO_WORDS.contains(&word)
    }
}
