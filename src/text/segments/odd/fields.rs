//! Splits lines into fields, and reads their values.

use crate::text::bytes::has_digit;

/// The identity of a field in its column: the bits of a number, or a hash of the bytes with runs of digits as one.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum FieldValue {
    Number(u64),
    Form(u64),
}

impl FieldValue {
    pub(super) fn of(field: &str) -> Self {
        if let Some(number) = number(field) {
            return Self::Number(number.to_bits());
        }
        Self::form(field)
    }

    /// Returns the identity of a field that is not a number.
    pub(super) fn form(field: &str) -> Self {
        let (mut form, mut before) = (1, 0);
        for byte in field.bytes() {
            let kind = if byte.is_ascii_digit() { b'0' } else { byte };
            if kind != b'0' || before != b'0' {
                form = spread(form ^ (u64::from(kind) << 8));
            }
            before = kind;
        }
        Self::Form(form)
    }
}

/// The range of a field in its line.
#[derive(Clone, Copy)]
pub(super) struct FieldSpan {
    start: u16,
    end: u16,
}

impl FieldSpan {
    pub(super) fn of(self, line: &str) -> &str {
        &line[usize::from(self.start)..usize::from(self.end)]
    }

    /// Returns whether it is a part of the same word as the field before it.
    pub(super) fn is_joined_to(self, before: Self, line: &str) -> bool {
        let between = &line.as_bytes()[usize::from(before.end)..usize::from(self.start)];
        !between.is_empty() && between.iter().all(|byte| JOINING.contains(byte))
    }

    /// Returns whether it is joined to another, and no number of any kind.
    pub(super) fn is_part(self, line: &str) -> bool {
        let is_joining =
            |at: Option<usize>| at.and_then(|at| line.as_bytes().get(at)).is_some_and(|byte| JOINING.contains(byte));
        let is_joined = is_joining(usize::from(self.start).checked_sub(1)) || is_joining(Some(usize::from(self.end)));
        is_joined && !has_digit(self.of(line))
    }
}

/// What a line is split into.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Fields {
    /// Words, numbers, paths, versions.
    Words,
    /// The same, and numbers with commas: `98,220.40`, `84,50`.
    Amounts,
    /// Their parts: `lib`, `curl` and `bookworm` of `lib-curl/bookworm`.
    Parts,
    /// What stands between these bytes: cells of a table with any number of words.
    Cells(u8),
}

impl Fields {
    fn classes(self) -> &'static [u8; 256] {
        match self {
            Self::Words | Self::Amounts | Self::Cells(_) => &CLASSES,
            Self::Parts => &PART_CLASSES,
        }
    }
}

/// Adds the fields of a line; returns its shape, a hash of the separators.
pub(super) fn read(line: &str, of: Fields, fields: &mut Vec<FieldSpan>) -> u64 {
    let (bytes, is_ascii, classes) = (line.as_bytes(), line.is_ascii(), of.classes());
    // A rule below the names of columns is no row of them.
    let is_rule = !bytes.iter().any(|byte| byte.is_ascii_alphanumeric() || *byte >= 0x80);
    let (mut shape, mut at) = (u64::from(is_rule), 0);
    if let Fields::Cells(by) = of {
        let cells = cells(line, by);
        fields.extend(cells.clone());
        return cells.fold(shape, |shape, _| spread(shape ^ 1));
    }
    while at < bytes.len() {
        let start = at;
        let end = |at| {
            if is_ascii { at + run(&bytes[at..], classes, |class| class != 0) } else { field_end(bytes, classes, at) }
        };
        at = end(at);
        while of == Fields::Amounts && at > start && bytes[at - 1].is_ascii_digit() && bytes.get(at) == Some(&b',') {
            match at + behind_comma(&bytes[at..]) {
                same if same == at => break,
                next => at = end(next),
            }
        }
        if at > start {
            fields.push(FieldSpan { start: at16(start), end: at16(at) });
            shape = spread(shape ^ 1);
        }
        let mut is_behind_space = false;
        loop {
            let length = separator(&bytes[at..], classes);
            let Some(&first) = bytes.get(at).filter(|_| length > 0) else { break };
            let is_space = matches!(first, b' ' | b'\t');
            // Any number of spaces is one separator.
            if !(is_space && is_behind_space) {
                let of_separator = &bytes[at..at + length];
                let bytes = if is_space { b" " } else { of_separator };
                shape = bytes.iter().fold(shape, |shape, byte| spread(shape ^ (u64::from(*byte) << 8)));
            }
            (is_behind_space, at) = (is_space, at + length);
        }
    }
    shape
}

/// Iterates over the cells of a line, without the spaces around them; what separates them may stand in quotation marks.
fn cells(line: &str, by: u8) -> impl Iterator<Item = FieldSpan> + Clone {
    let (mut at, mut is_quoted) = (Some(0), false);
    std::iter::from_fn(move || {
        let start = at?;
        let ends = |byte: &u8| {
            is_quoted ^= *byte == b'"';
            *byte == by && !is_quoted
        };
        let end = line.as_bytes()[start..].iter().position(ends).map_or(line.len(), |cell| start + cell);
        at = (end < line.len()).then_some(end + 1);
        let cell = &line[start..end];
        let start = start + cell.len() - cell.trim_start().len();
        Some(FieldSpan { start: at16(start), end: at16(start + cell.trim().len()) })
    })
}

/// What may separate the cells of a row, fewest cells, and the share of rows with as many, in percent.
const SEPARATORS: [u8; 4] = *b"\t|;,";
const MIN_CELLS: usize = 3;
const LIKE_ROWS: usize = 90;

/// Returns what separates the cells of lines, if nearly all have as many.
pub(super) fn cells_of(lines: &[(usize, &str)]) -> Option<Fields> {
    let step = lines.len().div_ceil(SAMPLED_ROWS);
    let sampled: Vec<&str> = lines.iter().step_by(step).map(|(_, line)| *line).collect();
    let cells_in = |line: &&str, by: u8| {
        let separators = memchr::memchr_iter(by, line.as_bytes()).count();
        // In quotation marks they separate nothing.
        if separators > 0 && line.contains('"') { cells(line, by).count() } else { separators + 1 }
    };
    let separates = |by: &u8| {
        let mut counts: Vec<usize> = sampled.iter().map(|line| cells_in(line, *by)).collect();
        counts.sort_unstable();
        let usual = counts[counts.len() / 2];
        let like = counts.iter().filter(|count| **count == usual).count();
        usual >= MIN_CELLS && like * 100 >= counts.len() * LIKE_ROWS
    };
    SEPARATORS.into_iter().find(separates).map(Fields::Cells)
}

/// Rows that are looked at for that.
const SAMPLED_ROWS: usize = 40;

/// Returns the bytes of a comma and the digits behind it, if these may go on a number: a thousand, or a fraction of one or two digits.
fn behind_comma(bytes: &[u8]) -> usize {
    let digits = bytes[1..].iter().take_while(|byte| byte.is_ascii_digit()).count();
    let is_last = bytes.get(1 + digits) != Some(&b',');
    if digits == 3 || (digits == 1 || digits == 2) && is_last { 1 + digits } else { 0 }
}

/// One line in so many with a comma in a number is an odd one.
const ODD_COMMA_IN: usize = 32;
/// Fewest commas of lines that are rows of columns though these could be the thousands of one number.
const MIN_COMMAS_OF_ROW: usize = 2;

/// Returns whether the commas of some lines stand in numbers or before spaces: in others they separate columns.
pub(super) fn has_amounts<'t>(lines: impl Iterator<Item = &'t str>) -> bool {
    let (mut count, mut having, mut rows) = (0, 0, 0);
    let mut commas_of_row = 0;
    for line in lines {
        let bytes = line.as_bytes();
        let mut commas = 0;
        for at in memchr::memchr_iter(b',', bytes).filter(|at| bytes.get(at + 1).is_some_and(|byte| *byte != b' ')) {
            if !(at > 0 && bytes[at - 1].is_ascii_digit() && behind_comma(&bytes[at..]) > 0) {
                return false;
            }
            commas += 1;
        }
        count += 1;
        having += usize::from(commas > 0);
        if commas >= MIN_COMMAS_OF_ROW && bytes.iter().all(|byte| byte.is_ascii_digit() || *byte == b',') {
            commas_of_row = if rows == 0 { commas } else { commas_of_row };
            rows += usize::from(commas == commas_of_row);
        }
    }
    having > count / ODD_COMMA_IN && rows + rows / ODD_COMMA_IN + 1 < count
}

/// Returns the number of bytes of some classes before one of another.
fn run(bytes: &[u8], classes: &[u8; 256], is_of: impl Fn(u8) -> bool) -> usize {
    bytes.iter().take_while(|byte| is_of(classes[usize::from(**byte)])).count()
}

/// Returns the end of the field at `at`. Fields also end between digits and other scripts or currency signs: 耗时12毫秒, ¥12.
fn field_end(bytes: &[u8], classes: &[u8; 256], mut at: usize) -> usize {
    let class_at = |at: usize| {
        let byte = bytes.get(at).filter(|_| separator(&bytes[at..], classes) == 0);
        byte.map_or(0, |byte| classes[usize::from(*byte)])
    };
    let mut class = class_at(at);
    while class != 0 {
        let end = at + run(&bytes[at..], classes, |other| other == class);
        let mark = (at..end).find(|&at| class == WIDE && separator(&bytes[at..], classes) > 0);
        at = mark.unwrap_or(end);
        let next = class_at(at);
        class = if class | next == DIGIT | WIDE { 0 } else { next };
    }
    at
}

/// Returns the bytes of the separator that some bytes start with, of the first character or none.
fn separator(bytes: &[u8], classes: &[u8; 256]) -> usize {
    match bytes {
        [0x80..=0xff, ..] => bytes.first_chunk().filter(|mark| MARKS.contains(mark)).map_or(0, |mark| mark.len()),
        [byte, ..] => usize::from(classes[usize::from(*byte)] == 0),
        [] => 0,
    }
}

/// Blank, comma, colon, semicolon, brackets and line of full width, and what else parts words in Chinese and Japanese.
const MARKS: [[u8; 3]; 18] = [
    *b"\xe3\x80\x80", // U+3000
    *b"\xe3\x80\x81", // 、
    *b"\xe3\x80\x82", // 。
    *b"\xe3\x80\x8c", // 「
    *b"\xe3\x80\x8d", // 」
    *b"\xe3\x80\x90", // 【
    *b"\xe3\x80\x91", // 】
    *b"\xe3\x83\xbb", // ・
    *b"\xef\xbc\x88", // （
    *b"\xef\xbc\x89", // ）
    *b"\xef\xbc\x8c", // ，
    *b"\xef\xbc\x9a", // ：
    *b"\xef\xbc\x9b", // ；
    *b"\xef\xbc\x9d", // ＝
    *b"\xef\xbd\x9c", // ｜
    *b"\xe2\x86\x92", // →
    *b"\xe2\x80\x94", // —
    *b"\xe2\x80\xa6", // …
];

/// Returns a position in a line of at most [`super::LINE_BYTES`].
fn at16(at: usize) -> u16 {
    u16::try_from(at).unwrap_or(u16::MAX)
}

/// Spreads what a byte adds over a hash.
pub(super) fn spread(hash: u64) -> u64 {
    hash.wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(29)
}

const DIGIT: u8 = 1;
const WIDE: u8 = 2;
const OTHER: u8 = 4;

/// Classes of bytes in words, numbers, paths, versions and text that is not ASCII; 0 for separators.
static CLASSES: [u8; 256] = {
    let (mut table, mut byte) = ([0; 256], 0);
    while byte < 256 {
        #[allow(clippy::cast_possible_truncation)] // below 256
        let b = byte as u8;
        table[byte] = match b {
            b'0'..=b'9' => DIGIT,
            0x80.. => WIDE,
            b'a'..=b'z' | b'A'..=b'Z' | b'_' | b'.' | b'-' | b'/' | b'%' | b'@' | b'~' | b'\\' | b'+' => OTHER,
            _ => 0,
        };
        byte += 1;
    }
    table
};

/// Classes where what joins the parts of words and paths separates, too.
static PART_CLASSES: [u8; 256] = {
    let (mut table, mut byte) = (CLASSES, 0);
    while byte < JOINING.len() {
        table[JOINING[byte] as usize] = 0;
        byte += 1;
    }
    table
};

const JOINING: [u8; 6] = *b"/_.-@\\";

/// Returns the value of a numeric field with a unit of at most three letters: `12`, `-0.5`, `30ms`, `45%`, `0xff`.
pub(super) fn number(field: &str) -> Option<f64> {
    measured(field).map(|(number, _)| number)
}

/// Bit of the unit of a number with a decimal comma, beside its letters.
const OF_COMMA: u32 = 1 << 31;

/// Returns the value and the unit of a numeric field: its letters, or the prefix of hexadecimal.
pub fn measured(field: &str) -> Option<(f64, u32)> {
    let bytes = field.as_bytes();
    if let Some(comma) = memchr::memrchr(b',', bytes) {
        let is_fraction = behind_comma(&bytes[comma..]) != 4;
        let (whole, rest) = field.split_at(comma);
        let point = if is_fraction { "." } else { "" };
        let (number, unit) =
            measured(&(whole.replace(if is_fraction { ['.', ','] } else { [','; 2] }, "") + point + &rest[1..]))?;
        // A fraction behind a point is of another kind.
        return Some((number, if is_fraction { unit | OF_COMMA } else { unit }));
    }
    if let [b'0', b'x', hexadecimal @ ..] = bytes {
        let value = |byte: u8| char::from(byte).to_digit(16).map(f64::from);
        let number = hexadecimal.iter().try_fold(0.0, |number, &byte| Some(number * 16.0 + value(byte)?))?;
        return Some((number, u32::from(b'x')));
    }
    let digits = |from: usize| bytes[from..].iter().take_while(|byte| byte.is_ascii_digit()).count();
    let sign = usize::from(matches!(bytes.first(), Some(b'-' | b'+')));
    let mut end = sign + digits(sign);
    if end == sign {
        return None;
    }
    if bytes.get(end) == Some(&b'.') {
        end += 1 + digits(end + 1);
    }
    let unit = &bytes[end..];
    if unit.len() > 3 || !unit.iter().all(|byte| byte.is_ascii_alphabetic() || *byte == b'%') {
        return None;
    }
    // Most are short whole numbers.
    let number = match &bytes[..end] {
        whole if whole.len() < 10 && whole.iter().all(u8::is_ascii_digit) => {
            f64::from(whole.iter().fold(0_u32, |sum, digit| sum * 10 + u32::from(digit - b'0')))
        }
        _ => field[..end].parse().ok()?,
    };
    Some((number * scale(unit), unit.iter().fold(0, |unit, byte| unit << 8 | u32::from(*byte))))
}

/// Returns how much a unit of bytes or of time counts: 301M is no neighbour of 2.4M among 204K.
fn scale(unit: &[u8]) -> f64 {
    match unit {
        b"ns" => 1e-9,
        b"us" => 1e-6,
        b"ms" => 1e-3,
        [prefix] | [prefix, b'B' | b'i'] | [prefix, b'i', b'B'] => of_bytes(*prefix),
        _ => 1.0,
    }
}

/// Returns the factor of a prefix of bytes.
fn of_bytes(prefix: u8) -> f64 {
    match prefix {
        b'k' | b'K' => 1024.0,
        b'M' => 1024.0 * 1024.0,
        b'G' => 1024.0 * 1024.0 * 1024.0,
        b'T' => 1024.0 * 1024.0 * 1024.0 * 1024.0,
        _ => 1.0,
    }
}

/// Iterates over the numbers that the digits of a field make: `worker-12`, `took12ms`, `4.18.0`, `14/88/31`, `800x600`.
pub(super) fn runs(field: &str) -> impl Iterator<Item = f64> {
    let mut bytes = field.bytes();
    std::iter::from_fn(move || {
        let first = bytes.find(u8::is_ascii_digit)?;
        let value = |digit: u8| f64::from(digit - b'0');
        let rest = bytes.by_ref().take_while(u8::is_ascii_digit);
        Some(rest.fold(value(first), |sum, digit| sum * 10.0 + value(digit)))
    })
}
