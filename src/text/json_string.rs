//! Finds the ends of JSON strings and their escapes, and reads them.

use std::borrow::Cow;

/// Returns the position behind the string literal at `position`; `None` if it violates RFC 8259.
pub fn end(bytes: &[u8], position: usize) -> Option<usize> {
    let mut position = position + 1;
    loop {
        let rest = bytes.get(position..)?;
        position += rest.iter().position(|&byte| byte < 0x20 || byte == b'"' || byte == b'\\')?;
        match bytes[position] {
            b'"' => return Some(position + 1),
            b'\\' => match bytes.get(position + 1)? {
                b'u' if bytes.get(position + 2..position + 6)?.iter().all(u8::is_ascii_hexdigit) => position += 6,
                b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't' => position += 2,
                _ => return None,
            },
            _ => return None,
        }
    }
}

/// As [`end`], also of a literal of Python's in single quotes; of that only the end is checked.
pub fn end_in_any_quotes(bytes: &[u8], position: usize) -> Option<usize> {
    if bytes.get(position) != Some(&b'\'') {
        return end(bytes, position);
    }
    let mut position = position + 1;
    loop {
        position += bytes.get(position..)?.iter().position(|byte| matches!(byte, b'\'' | b'\\' | b'\n'))?;
        match bytes[position] {
            b'\'' => return Some(position + 1),
            b'\\' if bytes.get(position + 1)?.is_ascii_graphic() => position += 2,
            _ => return None,
        }
    }
}

/// Returns the position of the quote that closes `body`, whatever is in it: models write line breaks in strings.
pub fn closing_quote(body: &str) -> Option<usize> {
    let bytes = body.as_bytes();
    let mut position = 0;
    loop {
        position += bytes.get(position..)?.iter().position(|byte| matches!(byte, b'"' | b'\\'))?;
        if bytes[position] == b'"' {
            return Some(position);
        }
        position += 2;
    }
}

/// Returns whether a literal's body ends with the start of an escape: it was cut there.
pub fn ends_in_escape(body: &str) -> bool {
    body.bytes().rev().take_while(|byte| *byte == b'\\').count() % 2 == 1
}

/// Returns the end of the escape at `position`; a surrogate pair is one. It may be behind a text that was cut.
pub fn escape_end(bytes: &[u8], position: usize) -> usize {
    let is_unicode = |at: usize| bytes.get(at) == Some(&b'\\') && bytes.get(at + 1) == Some(&b'u');
    if !is_unicode(position) {
        return position + 2;
    }
    let is_high =
        matches!(bytes.get(position + 2..position + 4), Some([b'd' | b'D', b'8' | b'9' | b'a' | b'b' | b'A' | b'B']));
    if is_high && is_unicode(position + 6) { position + 12 } else { position + 6 }
}

/// Iterates over the ranges of escapes in a literal's body.
pub fn escapes(body: &str) -> impl Iterator<Item = std::ops::Range<usize>> {
    let bytes = body.as_bytes();
    let mut at = 0;
    std::iter::from_fn(move || {
        let start = at + bytes.get(at..)?.iter().position(|byte| *byte == b'\\')?;
        at = escape_end(bytes, start);
        Some(start..at.min(bytes.len()))
    })
}

/// Returns `position`, or the start of the character or escape that it is in. O(n).
pub fn floor_escape(body: &str, position: usize) -> usize {
    let position = body.floor_char_boundary(position);
    let over = escapes(body).take_while(|escape| escape.start < position).find(|escape| escape.end > position);
    over.map_or(position, |escape| escape.start)
}

/// A string of JSON.
pub struct Literal {
    /// What is between its quotes.
    pub body: std::ops::Range<usize>,
    pub is_key: bool,
}

/// Iterates over the strings of `json`, valid or not: one that was cut ends with it.
pub fn literals(json: &str) -> impl Iterator<Item = Literal> {
    let mut at = 0;
    std::iter::from_fn(move || {
        let start = at + json.get(at..)?.find('"')? + 1;
        let end = closing_quote(&json[start..]).map_or(json.len(), |close| start + close);
        at = end + 1;
        let is_key = json.get(at..).is_some_and(|rest| rest.trim_start().starts_with(':'));
        Some(Literal { body: start..end, is_key })
    })
}

/// What the body of a literal says.
pub struct Unescaped {
    pub text: String,
    /// Behind each escape: the position in the text and in the body.
    places: Vec<(usize, usize)>,
}

impl Unescaped {
    /// Half of a surrogate pair is U+FFFD. O(n).
    pub fn of(body: &str) -> Self {
        let mut this = Self { text: String::with_capacity(body.len()), places: Vec::new() };
        let mut from = 0;
        for escape in escapes(body) {
            this.text.push_str(&body[from..escape.start]);
            this.text.push_str(&escaped_char(&body[escape.clone()]));
            from = escape.end;
            this.places.push((this.text.len(), from));
        }
        this.text.push_str(&body[from..]);
        this
    }

    /// Returns the position in the body of one in the text.
    pub fn in_body(&self, position: usize) -> usize {
        let behind = self.places.partition_point(|(in_text, _)| *in_text <= position);
        let (in_text, in_body) = behind.checked_sub(1).map_or((0, 0), |last| self.places[last]);
        in_body + (position - in_text)
    }
}

/// Returns what an escape stands for.
fn escaped_char(escape: &str) -> Cow<'static, str> {
    match escape {
        r"\n" => "\n".into(),
        r"\t" => "\t".into(),
        "\\\"" => "\"".into(),
        r"\'" => "'".into(),
        r"\\" => r"\".into(),
        _ => serde_json::from_str::<String>(&["\"", escape, "\""].concat()).map_or("\u{fffd}".into(), Cow::Owned),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_literal_says_is_found_in_it() {
        let body = r"a\n\u4e2d\ud83d\ude00b\\n\ud800c";
        let said = Unescaped::of(body);
        assert_eq!(said.text, "a\n中😀b\\n\u{fffd}c");
        for (shown, at) in [("a", 0), ("\n", 1), ("中", 3), ("😀", 9), ("b", 21), ("\\", 22), ("n", 24), ("c", 31)] {
            assert_eq!(said.in_body(said.text.find(shown).unwrap()), at, "{shown}");
        }
        assert_eq!(said.in_body(said.text.len()), body.len());
    }

    #[test]
    fn a_literal_ends_at_the_first_quote_that_is_not_escaped() {
        for (literal, at) in [(r#""a", 1"#, 3), (r#""a\"b""#, 6), (r#""\\""#, 4), (r#""\u00e9\n""#, 10), (r#""""#, 2)] {
            assert_eq!(end(literal.as_bytes(), 0), Some(at), "{literal}");
            assert_eq!(closing_quote(&literal[1..]), Some(at - 2), "{literal}");
        }
        for literal in [r#""a"#, r#""a\"#, r#""a\""#, r#"""#] {
            assert_eq!((end(literal.as_bytes(), 0), closing_quote(&literal[1..])), (None, None), "{literal}");
        }
        for literal in ["\"a\nb\"", r#""\x""#, r#""\u12g4""#] {
            assert_eq!(end(literal.as_bytes(), 0), None, "{literal}");
            assert_eq!(closing_quote(&literal[1..]), Some(literal.len() - 2), "{literal}");
        }
        assert!(ends_in_escape(r"a\") && ends_in_escape(r"\\\") && !ends_in_escape(r"a\\") && !ends_in_escape(""));
    }

    #[test]
    fn the_halves_of_a_surrogate_pair_are_one_escape() {
        let of = |body: &str| escapes(body).map(|at| body[at].to_owned()).collect::<Vec<_>>();
        assert_eq!(of(r"a\n\\\ud83d\ude00\u00e9b"), [r"\n", r"\\", r"\ud83d\ude00", r"\u00e9"]);
        assert_eq!(of(r"\ud83d\n\u12"), [r"\ud83d", r"\n", r"\u12"]);
        assert_eq!(of(r"a\"), [r"\"]);
    }
}
