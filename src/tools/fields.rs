//! Finds the fields of a result, whatever form it is in: JSON, also in a string of JSON, YAML, XML, Python's repr, tables, sentences.

/// A name with its value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Field<'t> {
    /// The key, and what holds it: the object, tag or block.
    pub key: &'t str,
    pub within: &'t str,
    /// Without quotes; of a container its opening bracket, with the closing one if it is empty.
    pub value: &'t str,
    /// Number of containers around it.
    pub depth: usize,
}

/// Iterates over the fields at the start of `text`, in order.
pub fn fields(text: &str) -> impl Iterator<Item = Field<'_>> {
    let text = &text[..text.floor_char_boundary(MAX_BYTES)];
    Fields { text, at: 0, holders: Vec::new(), brackets: 0 }
}

/// Bytes that are read.
const MAX_BYTES: usize = 4_096;

struct Fields<'t> {
    text: &'t str,
    at: usize,
    /// Keys that hold others, with the depth at which they stand.
    holders: Vec<(usize, &'t str)>,
    brackets: usize,
}

/// What stands between a key and its value beside the sign: quotes and their escapes, spaces, emphasis.
const BESIDE: [char; 6] = ['"', '\'', '\\', '*', '`', ' '];

impl<'t> Iterator for Fields<'t> {
    type Item = Field<'t>;

    fn next(&mut self) -> Option<Field<'t>> {
        let bytes = self.text.as_bytes();
        while let Some(&byte) = bytes.get(self.at) {
            match byte {
                b'{' | b'[' => self.brackets += 1,
                b'}' | b']' => self.brackets = self.brackets.saturating_sub(1),
                _ if byte.is_ascii_alphabetic() || byte == b'_' => {
                    if let Some(field) = self.field() {
                        return Some(field);
                    }
                    continue;
                }
                _ => {}
            }
            self.at += 1;
        }
        None
    }
}

impl<'t> Fields<'t> {
    /// Reads the word here; returns the field whose key it is.
    fn field(&mut self) -> Option<Field<'t>> {
        let (text, start) = (self.text, self.at);
        let is_part = |c: char| c.is_alphanumeric() || matches!(c, '_' | '-');
        let key = text[start..].split(|c| !is_part(c)).next().unwrap_or_default();
        self.at += key.len();
        let is_tag = text[..start].ends_with('<');
        let behind = &text[self.at..];
        let bare = behind.trim_start_matches(BESIDE);
        let value = match bare.as_bytes() {
            [b'>', ..] if is_tag => &bare[1..],
            [b':' | b'=' | b'|', next, ..] if !matches!(next, b'=' | b'/' | b':') => &bare[1..],
            _ => return None,
        };
        let line = text[..start].rfind('\n').map_or(0, |end| end + 1);
        let indentation = text[line..start].len() - text[line..start].trim_start_matches([' ', '-']).len();
        let depth = self.brackets + if self.brackets == 0 { indentation } else { 0 };
        self.holders.retain(|(of, _)| *of < depth);
        let within = self.holders.last().map_or("", |(_, key)| *key);
        let value = value.trim_start_matches(BESIDE);
        let start_of_value = text.len() - value.len();
        let opens = value.starts_with(['{', '[']) || (value.starts_with('\n') && self.brackets == 0);
        let value = if opens {
            self.holders.push((depth, key));
            let end = value.starts_with("[]") || value.starts_with("{}");
            &value[..usize::from(!value.starts_with('\n')) + usize::from(end)]
        } else {
            let ends = |c: char| matches!(c, '"' | '\'' | '\\' | ',' | '}' | ']' | '<' | '\n' | '|' | ';' | ')');
            value.split(ends).next().unwrap_or_default().trim_end()
        };
        // A container is read on from its bracket.
        self.at = start_of_value + if opens { 0 } else { value.len() };
        Some(Field { key, within, value, depth })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all(text: &str) -> Vec<(&str, &str, &str)> {
        fields(text).map(|Field { key, within, value, .. }| (within, key, value)).collect()
    }

    #[test]
    fn fields_are_found_in_every_form() {
        let id = ("ticket", "id", "T-555");
        for text in [
            r#"{"ok":true,"ticket":{"id":"T-555","queue":"infra"}}"#,
            r#"{"content": [{"type": "text", "text": "{\"ticket\": {\"id\": \"T-555\"}}"}]}"#,
            "{'ok': True, 'ticket': {'id': 'T-555'}}",
            "ok: true\nticket:\n  id: T-555\n  queue: infra\n",
        ] {
            assert!(all(text).contains(&id), "{text}: {:?}", all(text));
        }
        for text in
            ["<ticket><id>T-555</id></ticket>", r#"<ticket id="T-555"/>"#, "| **id** | T-555 |", "The id: T-555."]
        {
            let found = all(text);
            assert!(
                found.iter().any(|(_, key, value)| *key == "id" && value.trim_end_matches('.') == "T-555"),
                "{text}: {found:?}"
            );
        }
        assert_eq!(all("see https://a.b/c at 10:30, a == b"), []);
        assert_eq!(
            all(r#"{"errors": [], "error": {}, "data": {"a": 1}}"#)[..2],
            [("", "errors", "[]"), ("", "error", "{}")]
        );
        for text in ["", "{", "a:", "a: ", "\"a\":{", "日志：a：1", "a=é", "{\"a\": \"é\\"] {
            let _ = all(text);
        }
    }
}
