//! Finds rows that contradict themselves: an end before its start, more votes than voters.

use super::fields::{FieldValue, measured, spread};
use super::{Line, Sample};
use crate::text::estimate::count;

/// Fewest rows that tell an order.
const MIN_ROWS: usize = 16;
/// Rows that are read to learn what is in order, and the fields of each.
const ROWS: usize = 128;
const FIELDS: usize = 16;
/// All rows but one have two fields in one order by more than chance, if chance has odds of e to this against it.
const BY_CHANCE: f64 = 14.0;
/// Most bytes of a date or an id that is compared: its digits are exact as a number.
const MAX_BYTES: usize = 20;
const MAX_DIGITS: usize = 15;

/// Two values of a row, the first of which is at most as large as the second in all rows but one.
#[derive(Clone, Copy)]
pub(super) struct Ordered {
    small: usize,
    large: usize,
}

impl Ordered {
    /// Returns whether a row has its two values the other way round.
    pub(super) fn is_broken(self, values: &[Value]) -> bool {
        self.is_of_kind(values) && values[self.small].number > values[self.large].number
    }

    fn is_of_kind(self, values: &[Value]) -> bool {
        let pair = values.get(self.small).zip(values.get(self.large));
        pair.is_some_and(|(small, large)| small.kind == large.kind)
    }

    /// Returns whether the first value of a row would often be larger than the second one of another: their order is that of a row, not that
    /// of two columns.
    fn is_of_rows(self, rows: &[Vec<Value>]) -> bool {
        let others = rows.iter().cycle().skip(rows.len() / 2);
        let broken = rows.iter().zip(others).filter(|(row, other)| {
            let pair = row.get(self.small).zip(other.get(self.large));
            pair.is_some_and(|(small, large)| small.number > large.number)
        });
        chance(broken.count(), rows.len()) > BY_CHANCE
    }
}

/// What is compared of a field, or of the fields of a clock: numbers of one unit, or the digits of texts of one form.
#[derive(Clone, Copy)]
pub(super) struct Value {
    kind: u64,
    number: f64,
}

impl Value {
    const NONE: Self = Self { kind: 0, number: f64::NAN };

    fn of(field: &str) -> Self {
        if let Some((number, unit)) = measured(field) {
            return Self { kind: spread(u64::from(unit) | 1 << 32), number };
        }
        let digits = field.bytes().filter(u8::is_ascii_digit).count();
        if field.len() > MAX_BYTES || !(1..=MAX_DIGITS).contains(&digits) {
            return Self::NONE;
        }
        let (FieldValue::Form(form) | FieldValue::Number(form)) = FieldValue::form(field);
        Self { kind: form ^ field.len() as u64, number: with_digits(0.0, field) }
    }
}

/// Returns a number with the digits of a text behind its own.
fn with_digits(number: f64, text: &str) -> f64 {
    let digits = text.bytes().filter(u8::is_ascii_digit).map(|digit| f64::from(digit - b'0'));
    digits.fold(number, |number, digit| number * 10.0 + digit)
}

/// Reads the values of a row, in order.
pub(super) fn values(line: Line<'_, '_>, values: &mut Vec<Value>) {
    values.clear();
    let (mut end, mut is_clock) = (0, false);
    for field in line.fields.iter().take(2 * FIELDS) {
        let text = field.of(line.text);
        let at = text.as_ptr().addr() - line.text.as_ptr().addr();
        let between = &line.text[end..at];
        let is_number = text.bytes().all(|byte| byte.is_ascii_digit() || byte == b',');
        // The hours, minutes and seconds of a clock are one value.
        if let Some(last) = values.last_mut()
            && is_number
            && (between == ":" || is_clock && between == ",")
            && !last.number.is_nan()
        {
            last.number = with_digits(last.number, text);
            last.kind = spread(last.kind ^ 1);
            is_clock = true;
        } else {
            values.push(Value::of(text));
            is_clock = false;
        }
        end = at + text.len();
    }
    values.truncate(FIELDS);
}

/// Returns the pairs of values that are in order in some lines of one shape. O(n) in these; a pair is dropped at its second exception.
pub(super) fn ordered(sample: &Sample<'_>, lines: &[usize]) -> Vec<Ordered> {
    if lines.len() < MIN_ROWS {
        return Vec::new();
    }
    let step = lines.len().div_ceil(ROWS);
    let mut rows: Vec<Vec<Value>> = Vec::new();
    for &nth in lines.iter().step_by(step) {
        let mut row = Vec::new();
        values(sample.line(nth), &mut row);
        rows.push(row);
    }
    let mut found = Vec::new();
    let width = rows[0].len();
    for small in 0..width {
        for large in (0..width).filter(|&large| large != small) {
            let pair = Ordered { small, large };
            let is_exception = |row: &&Vec<Value>| pair.is_broken(row) || !pair.is_of_kind(row);
            if rows.iter().filter(is_exception).take(2).count() <= 1 && pair.is_of_rows(&rows) {
                found.push(pair);
            }
        }
    }
    found
}

/// Returns the odds, as a power of e, against it that of rows of which so many break an order by chance none does.
fn chance(broken: usize, rows: usize) -> f64 {
    let [broken, rows] = [broken, rows].map(|number| f64::from(count(number)));
    -rows * (1.0 - broken / rows).max(f64::MIN_POSITIVE).ln()
}
