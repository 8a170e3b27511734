//! Finds rows of a JSON array that differ from the others.

use std::collections::HashMap;
use std::ops::Range;

use xxhash_rust::xxh3::xxh3_64;

use crate::text::json_string;
use crate::text::segments::Class;
use crate::text::segments::columns::Columns;
use crate::text::segments::severity::{Level, scan};

use super::Shape;
use super::parse::skip_spaces;

/// Most columns that are compared; a map from ids to values has as many keys as entries.
const MAX_COLUMNS: usize = 256;

/// Collects the rows of one array.
#[derive(Default)]
pub struct Rows {
    columns: Columns,
    /// By hash of the key, quotes included.
    names: HashMap<u64, usize>,
    /// The columns of the last row, in order: mostly the next row has the same.
    order: Vec<(Range<usize>, usize)>,
}

impl Rows {
    /// Adds the consecutive values in `text[range]`, valid JSON; returns the number of the first.
    pub fn add(&mut self, text: &str, range: Range<usize>) -> u32 {
        let text = &text[..range.end];
        let bytes = text.as_bytes();
        let (mut position, mut first) = (range.start, None);
        while position < range.end {
            let end = value_end(bytes, position);
            let row = self.row(text, position..end);
            first = first.or(Some(row));
            position = skip_spaces(bytes, end);
            if bytes.get(position) == Some(&b',') {
                position = skip_spaces(bytes, position + 1);
            }
        }
        first.unwrap_or(0)
    }

    fn row(&mut self, text: &str, range: Range<usize>) -> u32 {
        let bytes = text.as_bytes();
        let is_object = bytes[range.start] == b'{';
        let is_container = is_object || bytes[range.start] == b'[';
        let mut cells: Vec<(usize, Range<usize>)> = Vec::with_capacity(self.order.len());
        let (mut shape, mut is_error, mut place) = (0_u64, false, 0);
        let mut position = if is_container { skip_spaces(bytes, range.start + 1) } else { range.end };
        while position < range.end && !matches!(bytes[position], b'}' | b']') {
            let mut column = place;
            if is_object {
                let key_end = json_string::end(bytes, position).unwrap_or(range.end);
                let (index, hash) = self.column(bytes, position..key_end, place);
                column = index;
                // A sum: the order of keys makes no difference.
                shape = shape.wrapping_add(hash);
                position = skip_spaces(bytes, skip_spaces(bytes, key_end) + 1);
            }
            let end = value_end(bytes, position);
            if bytes[position] == b'"' {
                is_error |= scan(&text[position + 1..end - 1], false).level >= Level::Weak;
            }
            if column < MAX_COLUMNS && !matches!(bytes[position], b'{' | b'[') {
                cells.push((column, position..end));
            }
            place += 1;
            position = skip_spaces(bytes, end);
            if bytes.get(position) == Some(&b',') {
                position = skip_spaces(bytes, position + 1);
            }
        }
        let row = self.columns.row(&bytes[range.clone()], is_error);
        self.columns.shape(row, if is_object { shape } else { place as u64 });
        for (column, cell) in cells {
            self.columns.cell(row, column, &bytes[cell]);
        }
        row
    }

    /// Returns the column of a key, and the key's hash.
    fn column(&mut self, bytes: &[u8], key: Range<usize>, place: usize) -> (usize, u64) {
        let hash = xxh3_64(&bytes[key.clone()]);
        if let Some((known, column)) = self.order.get(place)
            && bytes[known.clone()] == bytes[key.clone()]
        {
            return (*column, hash);
        }
        let next = self.names.len();
        let column = *self.names.entry(hash).or_insert(next);
        if place < self.order.len() {
            self.order[place] = (key, column);
        } else if place < MAX_COLUMNS {
            self.order.push((key, column));
        }
        (column, hash)
    }

    pub fn classes(&self) -> Vec<Class> {
        self.columns.classes()
    }
}

/// Returns the position behind the value at `position`, valid JSON.
fn value_end(bytes: &[u8], position: usize) -> usize {
    let mut depth = 0_usize;
    let mut position = position;
    while let Some(&byte) = bytes.get(position) {
        match byte {
            b'"' => position = json_string::end(bytes, position).unwrap_or(bytes.len()) - 1,
            b'{' | b'[' => depth += 1,
            b'}' | b']' | b',' | b' ' | b'\n' | b'\r' | b'\t' if depth == 0 => return position,
            b'}' | b']' => depth -= 1,
            _ => {}
        }
        position += 1;
        if depth == 0 && matches!(byte, b'"' | b'}' | b']') {
            return position;
        }
    }
    position
}

/// Returns the class of a leaf of an object or an array of plain values.
///
/// A string may report an error, and so may a key such as `error` with a value.
pub fn class_of(source: &str, parent: Shape) -> Class {
    let bytes = source.as_bytes();
    let mut position = 0;
    while let Some(&byte) = bytes.get(position) {
        if byte != b'"' {
            position += 1;
            continue;
        }
        let end = json_string::end(bytes, position).unwrap_or(bytes.len());
        let inner = source.get(position + 1..end - 1).unwrap_or_default();
        let behind = skip_spaces(bytes, end);
        if parent == Shape::Object && bytes.get(behind) == Some(&b':') {
            position = skip_spaces(bytes, behind + 1);
            if is_failure(inner.as_bytes(), &bytes[position.min(bytes.len())..]) {
                return Class::Error;
            }
            continue;
        }
        // "description": "what to do when it cannot be found" is prose; one or two words are a verdict.
        let least = if inner.len() > 60 { Level::Strong } else { Level::Weak };
        if scan(inner, false).level >= least {
            return Class::Error;
        }
        position = end;
    }
    Class::Plain
}

/// `"error": "…"`, `"exit_code": 1`, `"success": false`.
fn is_failure(key: &[u8], value: &[u8]) -> bool {
    let is = |keys: &[&[u8]]| keys.iter().any(|known| key.eq_ignore_ascii_case(known));
    let is_empty =
        matches!(value, [b'n' | b'f' | b'0', ..] | [b'"', b'"', ..] | [b'[', b']', ..] | [b'{', b'}', ..] | []);
    (is(&[b"error", b"errors", b"exception", b"traceback", b"stderr", b"failure"]) && !is_empty)
        || (is(&[b"exit_code", b"exitcode", b"exitstatus", b"returncode", b"exit"])
            && matches!(value, [b'1'..=b'9' | b'-', ..]))
        || (is(&[b"success", b"ok", b"passed"]) && value.starts_with(b"false"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn members_that_report_errors_are_known() {
        for source in [r#""error": "boom""#, r#""a": 1, "exit_code": 2"#, r#""ok": false"#, r#""state": "FAILED""#] {
            assert_eq!(class_of(source, Shape::Object), Class::Error, "{source}");
        }
        for source in
            [r#""error": null"#, r#""errors": []"#, r#""exit_code": 0"#, r#""state": "ok""#, r#""error_rate": 3"#]
        {
            assert_eq!(class_of(source, Shape::Object), Class::Plain, "{source}");
        }
    }
}
