//! Finds the rows of a table that differ from the others.

use std::collections::{HashMap, HashSet};

use xxhash_rust::xxh3::xxh3_64;

use crate::text::estimate::count;

use super::Class;

/// The columns of a table, gathered row by row. O(n) in the bytes of cells.
#[derive(Default)]
pub struct Columns {
    rows: u32,
    columns: Vec<Column>,
    shapes: HashMap<u64, Vec<u32>>,
    seen: HashSet<u64>,
    same: Vec<u32>,
    errors: Vec<u32>,
    /// Cells that tell of errors, as (row, column).
    error_cells: Vec<(u32, usize)>,
}

#[derive(Default)]
struct Column {
    cells: u32,
    numbers: Vec<(u32, f64)>,
    /// Numbers in quotes, which are words, too.
    quoted: Vec<(u32, f64)>,
    /// Empty cells.
    empty: Value,
    /// Cells that are not numbers.
    words: Value,
    values: HashMap<u64, Value>,
    /// Whether it has too many values for a category.
    is_free: bool,
}

#[derive(Default)]
struct Value {
    count: u32,
    /// Its first rows.
    rows: Vec<u32>,
}

/// With fewer rows nothing is usual.
const MIN_ROWS: u32 = 4;
/// A value is rare in at most one of so many rows.
const RARE: u32 = 20;
/// Most values of a category: four, or one for every ten rows.
const CATEGORIES: (u32, u32) = (4, 10);
/// Most values of a column that are tracked.
const MAX_VALUES: usize = 4096;
/// Rows of a value that are kept; of 5,000 rows a rare value has no more.
const MAX_ROWS_OF_VALUE: usize = 250;
/// From so many positive numbers on, one that is [`SMALLER`] than the small ones is not small by chance.
const SMALL_IN: usize = 32;
/// Numbers for [`least`].
const LEAST_KNOWN: usize = 3 * SMALL_IN;
/// Numbers whose ends tell how far others lie; and those that are too few for [`least`].
pub const MIN_ENDS: usize = 12;
const FEW: std::ops::Range<usize> = MIN_ENDS..LEAST_KNOWN;
/// Few numbers reach down to zero if the second is at most so many of their usual distances above it: about 2, by chance 4.
const OF_ZERO: f64 = 4.0;
/// Whole numbers from which on zero is no small one.
const NO_COUNT: f64 = 10.0;
/// So many times.
const SMALLER: f64 = 16.0;
/// As far apart as so many small numbers are, they lie above zero by more than chance.
const APART: f64 = 6.0;
/// Cells of free words that tell of errors; if there are more, and one in [`RARE`] rows, they are what these are about.
const FEW_ERRORS: u32 = 2;
/// A reason that marks more than one row in this many is ignored.
const COMMON: usize = 5;

impl Columns {
    /// Adds a row with its source, and whether it reports an error.
    pub fn row(&mut self, source: &[u8], is_error: bool) -> u32 {
        let row = self.rows;
        self.rows += 1;
        if !self.seen.insert(xxh3_64(source)) {
            self.same.push(row);
        }
        if is_error {
            self.errors.push(row);
        }
        row
    }

    /// Notes that a cell tells of an error.
    pub fn tells_error(&mut self, row: u32, column: usize) {
        self.error_cells.push((row, column));
    }

    /// Sets the shape of a row: its keys, or its number of cells.
    pub fn shape(&mut self, row: u32, shape: u64) {
        self.shapes.entry(shape).or_default().push(row);
    }

    /// Adds a cell. Numbers are parsed for comparison only.
    pub fn cell(&mut self, row: u32, column: usize, cell: &[u8]) {
        if column >= self.columns.len() {
            self.columns.resize_with(column + 1, Column::default);
        }
        let column = &mut self.columns[column];
        column.cells += 1;
        if let Some(number) = number(cell) {
            column.numbers.push((row, number));
            return;
        }
        if let [b'"', quoted @ .., b'"'] = cell {
            column.quoted.extend(number(quoted).map(|number| (row, number)));
        }
        if is_empty(cell) { &mut column.empty } else { &mut column.words }.add(row);
        if column.is_free {
            return;
        }
        column.values.entry(xxh3_64(cell)).or_default().add(row);
        // At most a tenth of the rows so far: categories show early.
        if column.values.len() > (row as usize / 4).clamp(64, MAX_VALUES) {
            column.is_free = true;
            column.values = HashMap::default();
        }
    }

    /// Returns whether a column has too many values for a category.
    pub fn is_open(&self, column: usize) -> bool {
        self.columns.get(column).is_some_and(|column| column.is_open(self.rows))
    }

    /// Returns the rows with cells that tell of errors; none of a column of free words that has them often: titles of tickets are about
    /// crashes.
    fn errors_in_cells(&self) -> Vec<u32> {
        let mut by_column: HashMap<usize, u32> = HashMap::new();
        for (_, column) in &self.error_cells {
            *by_column.entry(*column).or_default() += 1;
        }
        let often = (self.rows / RARE).max(FEW_ERRORS);
        let tells = |(_, column): &&(u32, usize)| by_column[column] <= often || !self.is_open(*column);
        let mut rows: Vec<u32> = self.error_cells.iter().filter(tells).map(|(row, _)| *row).collect();
        rows.dedup();
        rows
    }

    /// Returns the class of each row, and the odd cells as (row, column).
    pub fn classes(&self) -> (Vec<Class>, Vec<(u32, usize)>) {
        let mut classes = vec![Class::Plain; self.rows as usize];
        let mut odd = Vec::new();
        for &row in &self.same {
            classes[row as usize] = Class::Repeat;
        }
        if self.rows < MIN_ROWS {
            return (classes, odd);
        }
        let mut mark = |rows: &[u32], column: Option<usize>| {
            if rows.len() * COMMON <= classes.len() || rows.len() == 1 {
                for &row in rows {
                    classes[row as usize] = Class::Outlier;
                    odd.extend(column.map(|column| (row, column)));
                }
            }
        };
        for (at, column) in self.columns.iter().enumerate() {
            mark(&column.rare(self.rows), Some(at));
            mark(&column.sparse(self.rows), Some(at));
            mark(&far(&column.numbers), Some(at));
            mark(&far(&column.quoted), Some(at));
            for rows in column.of_another_kind(self.rows) {
                mark(&rows, Some(at));
            }
        }
        mark(&self.errors, None);
        mark(&self.errors_in_cells(), None);
        let usual = self.shapes.values().map(Vec::len).max().unwrap_or(0);
        if usual * 2 > self.rows as usize {
            let mut others: Vec<u32> =
                self.shapes.values().filter(|rows| rows.len() < usual).flatten().copied().collect();
            others.sort_unstable();
            mark(&others, None);
        }
        (classes, odd)
    }
}

impl Value {
    fn add(&mut self, row: u32) {
        self.count += 1;
        if self.rows.len() < MAX_ROWS_OF_VALUE {
            self.rows.push(row);
        }
    }
}

impl Column {
    /// Returns whether enough rows have the column to say what is usual in it: most of them, or many.
    fn is_known(&self, rows: u32) -> bool {
        self.cells * 2 >= rows || self.cells >= RARE
    }

    fn is_open(&self, rows: u32) -> bool {
        self.is_free || self.values.len() > CATEGORIES.0.max(self.cells.min(rows) / CATEGORIES.1) as usize
    }

    /// Returns the rows with a rare value of a category.
    fn rare(&self, rows: u32) -> Vec<u32> {
        if self.is_open(rows) || self.values.is_empty() || !self.is_known(rows) {
            return Vec::new();
        }
        let limit = (self.cells.min(rows) / RARE).max(1);
        let most = self.values.values().map(|value| value.count).max().unwrap_or(0);
        let rare = self.values.values().filter(|value| value.count <= limit && value.count < most);
        let mut rare: Vec<u32> = rare.flat_map(|value| value.rows.iter().copied()).collect();
        rare.sort_unstable();
        rare
    }

    /// Returns the rows that have the column, where hardly any has.
    fn sparse(&self, rows: u32) -> Vec<u32> {
        if self.cells > (rows / RARE).max(1) || self.cells == rows {
            return Vec::new();
        }
        let numbers = self.numbers.iter().map(|(row, _)| *row);
        let mut sparse: Vec<u32> = numbers.chain(self.empty.rows.iter().chain(&self.words.rows).copied()).collect();
        sparse.sort_unstable();
        sparse.dedup();
        sparse
    }

    /// Returns the rows with a rare kind of cell: an empty one among words, a word among numbers.
    fn of_another_kind(&self, rows: u32) -> [Vec<u32>; 3] {
        let limit = if self.is_known(rows) { (self.cells.min(rows) / RARE).max(1) } else { 0 };
        let numbers = if self.numbers.len() <= limit as usize { &self.numbers[..] } else { &[] };
        let few = |kind: &Value| if kind.count <= limit { kind.rows.clone() } else { Vec::new() };
        let numbers = numbers.iter().map(|(row, _)| *row).take(MAX_ROWS_OF_VALUE).collect();
        [numbers, few(&self.empty), few(&self.words)]
    }
}

/// Returns the rows whose number is more than three standard deviations from the mean, the only one that is negative or zero, or
/// smaller than others are by chance.
fn far(numbers: &[(u32, f64)]) -> Vec<u32> {
    let Some(&(_, base)) = numbers.first() else { return Vec::new() };
    // Welford's method: one pass, and large numbers close together do not cancel out.
    let (mut n, mut mean, mut squares) = (0.0, 0.0, 0.0);
    for (_, number) in numbers {
        n += 1.0;
        let delta = number - base - mean;
        mean += delta / n;
        squares += delta * (number - base - mean);
    }
    let deviation = (squares / n).sqrt();
    if !deviation.is_normal() {
        return Vec::new();
    }
    let mut all: Vec<f64> = numbers.iter().map(|(_, number)| *number).collect();
    let negative = all.iter().filter(|number| **number < 0.0).count();
    let positive = if negative == 1 && all.len() >= MIN_ENDS { 0.0 } else { f64::NEG_INFINITY };
    let bound = lone_zero(&all).max(positive).max(least(&mut all)).max(least_of_few(&mut all));
    let is_far = |number: f64| (number - base - mean).abs() > 3.0 * deviation || number < bound;
    numbers.iter().filter(|(_, number)| is_far(*number)).map(|(row, _)| *row).collect()
}
/// Returns the bound below which a number is not small by chance: 0 is odd among 12 to 480, but not among 1 to 480. Reorders
/// `numbers`. O(n).
pub fn least(numbers: &mut [f64]) -> f64 {
    if numbers.len() < LEAST_KNOWN { f64::NEG_INFINITY } else { least_of(numbers, numbers.len() / SMALL_IN, APART) }
}

/// As [`least`], by the `small` smallest, if the second lies at least so many of their usual distances above zero.
fn least_of(numbers: &mut [f64], small: usize, distances: f64) -> f64 {
    // The first may itself be odd.
    let (smaller, &mut low, _) = numbers.select_nth_unstable_by(small, f64::total_cmp);
    let (_, &mut smallest, _) = smaller.select_nth_unstable_by(1, f64::total_cmp);
    let apart = (low - smallest) / f64::from(count(small - 1));
    if smallest > distances * apart { smallest / SMALLER } else { f64::NEG_INFINITY }
}

/// Returns a bound above zero, where that occurs at most once and the others are not small: "0 bytes" is odd among any sizes; else
/// one below all.
pub fn lone_zero(numbers: &[f64]) -> f64 {
    let is_whole = numbers.iter().all(|number| number.fract() == 0.0);
    let least = if is_whole { NO_COUNT } else { 1.0 };
    let small = numbers.iter().filter(|number| **number < least).count();
    let zeros = numbers.iter().filter(|number| **number == 0.0).count();
    let is_lone = zeros <= 1 && small == zeros && numbers.len() >= MIN_ENDS;
    if is_lone { 1.0 / NO_COUNT } else { f64::NEG_INFINITY }
}

/// Returns [`least`] of few numbers, by the distances of the smaller half: 0 is odd among 1000 to 9000. Reorders `numbers`.
pub fn least_of_few(numbers: &mut [f64]) -> f64 {
    if FEW.contains(&numbers.len()) { least_of(numbers, numbers.len() / 2, OF_ZERO) } else { f64::NEG_INFINITY }
}

/// Returns whether a cell is empty: JSON's `null` and `""`, and what tables have in their place.
fn is_empty(cell: &[u8]) -> bool {
    matches!(cell, b"" | b"\"\"" | b"-")
        || [&b"null"[..], b"none", b"nan", b"n/a"].iter().any(|no| cell.eq_ignore_ascii_case(no))
}

fn number(cell: &[u8]) -> Option<f64> {
    if !matches!(cell.first()?, b'-' | b'0'..=b'9') || cell.len() > 40 {
        return None;
    }
    let number: f64 = std::str::from_utf8(cell).ok()?.parse().ok()?;
    number.is_finite().then_some(number)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn classes(cells: &[&str]) -> Vec<usize> {
        let mut columns = Columns::default();
        for (i, cell) in cells.iter().enumerate() {
            let row = columns.row(format!("{i}").as_bytes(), false);
            columns.cell(row, 0, cell.as_bytes());
        }
        let (classes, _) = columns.classes();
        (0..classes.len()).filter(|&row| classes[row] == Class::Outlier).collect()
    }

    #[test]
    fn a_rare_value_among_few_and_a_number_far_from_the_others_stand_out() {
        let mut cells = vec!["ok"; 30];
        cells[17] = "FAILED-123";
        assert_eq!(classes(&cells), [17]);
        let numbers: Vec<String> =
            (0..30).map(|i| if i == 9 { "1e9".into() } else { format!("{}.5", 100 + i) }).collect();
        let numbers: Vec<&str> = numbers.iter().map(String::as_str).collect();
        assert_eq!(classes(&numbers), [9]);
        let stock: Vec<String> =
            (0..200).map(|i| if i == 9 { "0".into() } else { format!("{}", 40 + i * 37 % 460) }).collect();
        assert_eq!(classes(&stock.iter().map(String::as_str).collect::<Vec<_>>()), [9]);
        for (odd, usual) in [("0", 12), ("-48", 12), ("0.00", 5)] {
            let prices: Vec<String> =
                (0..40).map(|i| if i == 9 { odd.into() } else { format!("{}.50", usual + i * 37 % 290) }).collect();
            assert_eq!(classes(&prices.iter().map(String::as_str).collect::<Vec<_>>()), [9], "{odd}");
        }
        let ratings: Vec<String> = (0..40).map(|i| (i * 7 % 10).to_string()).collect();
        assert!(classes(&ratings.iter().map(String::as_str).collect::<Vec<_>>()).is_empty());
        let names: Vec<String> = (0..30).map(|i| format!("name {i}")).collect();
        assert!(classes(&names.iter().map(String::as_str).collect::<Vec<_>>()).is_empty());
        assert!(classes(&["7"; 30]).is_empty());
        for (usual, odd) in [("\"Ann\"", "null"), ("12", "refunded"), ("ok", "7"), ("\"Ann\"", "\"\""), ("5", "")] {
            let cells: Vec<String> =
                (0..30).map(|i| if i == 9 { odd.into() } else { usual.replace("Ann", &format!("Ann {i}")) }).collect();
            assert_eq!(classes(&cells.iter().map(String::as_str).collect::<Vec<_>>()), [9], "{odd} among {usual}");
        }
        assert!(classes(&["a", "b", "c"]).is_empty());
    }
}
