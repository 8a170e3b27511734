//! Finds rows of a JSON array that differ from the others.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::ops::Range;

use xxhash_rust::xxh3::{xxh3_64, xxh3_64_with_seed};

use crate::text::json_string;
use crate::text::segments::columns::Columns;
use crate::text::segments::odd;
use crate::text::segments::records::{DIFFERENT, is_wordy};
use crate::text::segments::severity::{Level, scan};
use crate::text::segments::{Class, at};

use super::Shape;
use super::build::OPENED_ROW_BYTES;
use super::parse::{closes, opens, skip_spaces, value_start};

/// Most columns that are compared; a map from ids to values has as many keys as entries.
const MAX_COLUMNS: usize = 256;

/// Deeper containers within a row are not compared.
const MAX_DEPTH: usize = 8;

/// Collects the rows of one array, or the values of an object that has one for each name.
#[derive(Default)]
pub struct Rows {
    columns: Columns,
    /// By hash of the keys that lead to a cell.
    paths: HashMap<u64, usize>,
    /// The keys of the last row, in order: mostly the next row has the same.
    order: Vec<Known>,
    /// The cells of large rows.
    cells: Vec<Cell>,
    /// By column: what its strings say, with their rows.
    strings: Vec<Vec<(u32, Range<usize>)>>,
}

/// What is to be said of rows.
pub struct Classes {
    /// By row.
    pub classes: Vec<Class>,
    /// Where odd cells of large rows start, with those that name these rows.
    pub odd_cells: Vec<usize>,
    /// Large rows with where cells start that name them, in order.
    pub names: Vec<(u32, usize)>,
}

/// A cell of a large row.
struct Cell {
    row: u32,
    column: usize,
    source: Range<usize>,
}

/// A key that was seen.
struct Known {
    key: Range<usize>,
    /// Hash of the keys that lead to its object.
    outside: u64,
    path: u64,
    column: usize,
}

/// An open container of a row.
struct Open {
    /// Hash of the keys that lead to it.
    path: u64,
    is_object: bool,
    /// Whether it is or is in an array, of which rows have more or less.
    is_listed: bool,
    /// Number of elements so far.
    place: usize,
}

impl Rows {
    /// Adds the consecutive values or members in `text[range]`, valid JSON; returns the number of the first. Containers
    /// in them that start at `apart` are compared by themselves.
    pub fn add(&mut self, text: &str, range: Range<usize>, apart: &HashSet<usize>) -> u32 {
        let text = &text[..range.end];
        let bytes = text.as_bytes();
        let (mut position, mut first) = (range.start, None);
        while position < range.end {
            position = value_start(bytes, position).unwrap_or(position);
            let end = value_end(bytes, position);
            let row = self.row(text, position..end, apart);
            first = first.or(Some(row));
            position = behind_comma(bytes, end);
        }
        first.unwrap_or(0)
    }

    fn row(&mut self, text: &str, range: Range<usize>, apart: &HashSet<usize>) -> u32 {
        let bytes = text.as_bytes();
        let mut cells: Vec<(usize, Range<usize>)> = Vec::with_capacity(self.order.len());
        let (mut shape, mut errors, mut nth) = (0_u64, Vec::new(), 0);
        let mut open: Vec<Open> = Vec::new();
        let (mut position, mut path, mut column) = (range.start, 0, MAX_COLUMNS);
        let is_container = |position: usize| opens(bytes[position]);
        // An empty container is a value: elements have columns of their own.
        let is_empty = |position: usize| bytes.get(skip_spaces(bytes, position + 1)).is_some_and(|byte| closes(*byte));
        while position < range.end && (is_container(position) || !open.is_empty()) {
            if is_container(position) && open.len() < MAX_DEPTH && !is_empty(position) && !apart.contains(&position) {
                let is_object = bytes[position] == b'{';
                let is_listed = open.last().is_some_and(|outside| outside.is_listed || !is_object);
                open.push(Open { path, is_object, is_listed, place: 0 });
                position = skip_spaces(bytes, position + 1);
            } else {
                let end = value_end(bytes, position);
                let is_string = matches!(bytes[position], b'"' | b'\'') && end > position + 1;
                if is_string && scan(&text[position + 1..end - 1], false).level >= Level::Weak {
                    errors.push(column);
                }
                if column < MAX_COLUMNS && (!is_container(position) || is_empty(position)) {
                    cells.push((column, position..end));
                }
                position = behind_comma(bytes, end);
            }
            while position < range.end && closes(bytes[position]) {
                let closed = open.pop();
                if open.is_empty() && closed.as_ref().is_some_and(|root| !root.is_object) {
                    shape = closed.map_or(0, |root| root.place as u64);
                }
                position = behind_comma(bytes, position + 1);
            }
            let depth = open.len();
            let Some(outside) = open.last_mut().filter(|_| position < range.end) else { break };
            if outside.is_object {
                let key = position..json_string::end_in_any_quotes(bytes, position).unwrap_or(range.end);
                position = skip_spaces(bytes, skip_spaces(bytes, key.end) + 1);
                (path, column) = self.column(bytes, key, outside.path, nth);
                if !outside.is_listed {
                    // A sum: the order of keys makes no difference.
                    shape = shape.wrapping_add(path);
                }
            } else {
                // Elements of the row itself are columns, those of a list in it are alike.
                let place = if depth == 1 { outside.place as u64 + 1 } else { 0 };
                path = mixed(outside.path, place);
                column = self.column_of(path);
            }
            outside.place += 1;
            nth += 1;
        }
        let row = self.columns.row(&bytes[range.clone()], false);
        for column in errors {
            self.columns.tells_error(row, column);
        }
        self.columns.shape(row, shape);
        let is_large = range.len() > OPENED_ROW_BYTES as usize;
        for (column, cell) in cells {
            if is_large {
                self.cells.push(Cell { row, column, source: cell.clone() });
            }
            if matches!(bytes[cell.start], b'"' | b'\'') {
                if column >= self.strings.len() {
                    self.strings.resize_with(column + 1, Vec::new);
                }
                self.strings[column].push((row, cell.start + 1..cell.end - 1));
            }
            self.columns.cell(row, column, &bytes[cell]);
        }
        row
    }

    /// Returns the path and the column of a key in the object at path `outside`.
    fn column(&mut self, bytes: &[u8], key: Range<usize>, outside: u64, nth: usize) -> (u64, usize) {
        if let Some(known) = self.order.get(nth)
            && known.outside == outside
            && bytes[known.key.clone()] == bytes[key.clone()]
        {
            return (known.path, known.column);
        }
        let path = xxh3_64_with_seed(&bytes[key.clone()], outside);
        let column = self.column_of(path);
        let known = Known { key, outside, path, column };
        if nth < self.order.len() {
            self.order[nth] = known;
        } else if nth < MAX_COLUMNS {
            self.order.push(known);
        }
        (path, column)
    }

    /// Returns the column of a path; [`MAX_COLUMNS`] for those that are too many.
    fn column_of(&mut self, path: u64) -> usize {
        let next = self.paths.len();
        if next < MAX_COLUMNS {
            return *self.paths.entry(path).or_insert(next);
        }
        self.paths.get(&path).copied().unwrap_or(MAX_COLUMNS)
    }

    /// Returns what is to be said of the rows of `text`.
    pub fn classes(&self, text: &str) -> Classes {
        let (mut classes, mut odd) = self.columns.classes();
        for (column, strings) in self.strings.iter().enumerate().filter(|(column, _)| self.columns.is_open(*column)) {
            let said = strings.iter().map(|(row, said)| (*row as usize, &text[said.clone()]));
            for row in odd::pattern_of(said).map_or_else(Vec::new, |pattern| pattern.odd) {
                classes[row] = classes[row].or(Class::Outlier);
                odd.push((at(row), column));
            }
        }
        let odd: HashSet<(u32, usize)> = odd.into_iter().collect();
        let rows: HashSet<u32> = odd.iter().map(|(row, _)| *row).collect();
        let naming = self.naming(text);
        let names = || self.cells.iter().filter(|cell| naming.contains(&cell.column));
        let is_wanted = |cell: &&Cell| {
            odd.contains(&(cell.row, cell.column)) || (naming.contains(&cell.column) && rows.contains(&cell.row))
        };
        let odd_cells = self.cells.iter().filter(is_wanted).map(|cell| cell.source.start).collect();
        Classes { classes, odd_cells, names: names().map(|cell| (cell.row, cell.source.start)).collect() }
    }

    /// Returns the columns that name large rows: the first of which hardly two have the same value, and the first such in
    /// words.
    fn naming(&self, text: &str) -> Vec<usize> {
        // By column: its cells, those in words, and the different ones.
        let mut columns: BTreeMap<usize, (usize, usize, HashSet<u64>)> = BTreeMap::new();
        let mut rows = HashSet::new();
        for cell in &self.cells {
            let source = &text[cell.source.clone()];
            let (cells, wordy, different) = columns.entry(cell.column).or_default();
            *cells += 1;
            *wordy += usize::from(is_wordy(source));
            different.insert(xxh3_64(source.as_bytes()));
            rows.insert(cell.row);
        }
        columns
            .retain(|_, (cells, _, different)| *cells <= rows.len() && different.len() * 100 >= rows.len() * DIFFERENT);
        let first = columns.keys().next();
        let in_words = columns.iter().find(|(_, (cells, wordy, _))| wordy * 2 > *cells).map(|(column, _)| column);
        first.into_iter().chain(in_words).copied().collect()
    }
}

/// Returns the path of an element of the array at `path`.
fn mixed(path: u64, place: u64) -> u64 {
    (path ^ (place + 1)).wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(29)
}

/// Returns the next position behind a value that ends at `position`, and a comma.
pub fn behind_comma(bytes: &[u8], position: usize) -> usize {
    let position = skip_spaces(bytes, position);
    if bytes.get(position) == Some(&b',') { skip_spaces(bytes, position + 1) } else { position }
}

/// Returns the position behind the value at `position`, valid JSON.
pub fn value_end(bytes: &[u8], position: usize) -> usize {
    let mut depth = 0_usize;
    let mut position = position;
    while let Some(&byte) = bytes.get(position) {
        match byte {
            b'"' | b'\'' => {
                position = json_string::end_in_any_quotes(bytes, position).unwrap_or(bytes.len()).max(1) - 1;
            }
            open if opens(open) => depth += 1,
            close if depth == 0 && (closes(close) || matches!(close, b',' | b' ' | b'\n' | b'\r' | b'\t')) => {
                return position;
            }
            close if closes(close) => depth -= 1,
            _ => {}
        }
        position += 1;
        if depth == 0 && (matches!(byte, b'"' | b'\'') || closes(byte)) {
            return position;
        }
    }
    position
}

/// Returns the class of a leaf of an object or an array of plain values.
///
/// A string may report an error, and so may a key such as `error` with a value.
pub fn class_of(source: &str, parent: Shape) -> Class {
    let is_error = |(inner, value): (&str, Option<&[u8]>)| match value {
        Some(value) if parent == Shape::Object => is_failure(inner.as_bytes(), value),
        // "description": "what to do when it cannot be found" is prose; one or two words are a verdict.
        _ => scan(inner, false).level >= if inner.len() > 60 { Level::Strong } else { Level::Weak },
    };
    if strings(source).any(is_error) { Class::Error } else { Class::Plain }
}

/// Returns whether members say that what their object tells of has failed.
pub fn tell_failure(members: &str) -> bool {
    strings(members).any(|(key, value)| value.is_some_and(|value| is_failure(key.as_bytes(), value)))
}

/// Iterates over the strings of a leaf; with what follows behind the colon of a key.
fn strings(source: &str) -> impl Iterator<Item = (&str, Option<&[u8]>)> {
    let bytes = source.as_bytes();
    let mut position = 0;
    std::iter::from_fn(move || {
        position += bytes.get(position..)?.iter().position(|byte| matches!(byte, b'"' | b'\''))?;
        let end = json_string::end_in_any_quotes(bytes, position).unwrap_or(bytes.len());
        let inner = source.get(position + 1..end - 1).unwrap_or_default();
        let behind = skip_spaces(bytes, end);
        let is_key = bytes.get(behind) == Some(&b':');
        position = if is_key { skip_spaces(bytes, behind + 1) } else { end };
        Some((inner, bytes.get(position..).filter(|_| is_key)))
    })
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
        || (is(&[b"status", b"code", b"status_code", b"statusCode", b"http_status", b"httpStatus"])
            && is_refusal(value))
}

/// `403`, `"503 Service Unavailable"`.
fn is_refusal(value: &[u8]) -> bool {
    let code = value.strip_prefix(b"\"").unwrap_or(value);
    matches!(code, [b'4' | b'5', b'0'..=b'9', b'0'..=b'9', rest @ ..] if !rest.first().is_some_and(u8::is_ascii_alphanumeric))
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
