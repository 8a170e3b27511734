//! Classes tables: CSV, TSV, Markdown's and aligned columns.

use memchr::memchr;

use super::columns::Columns;
use super::severity::{Level, Scan};
use super::units::Unit;
use super::{Class, log};

/// The separator of cells.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
enum Between {
    Tab,
    Comma,
    Semicolon,
    Pipe,
    /// Two spaces or more.
    Spaces,
}

/// Least rows of a table.
const MIN_LINES: usize = 3;

/// Returns whether sampled lines are rows with the same number of cells.
pub fn is_table(lines: &[&str]) -> bool {
    between(lines).is_some()
}

fn between(lines: &[&str]) -> Option<Between> {
    if lines.len() < MIN_LINES {
        return None;
    }
    // The last line of a sample may be cut.
    let lines = if lines.len() > MIN_LINES + 1 { &lines[..lines.len() - 1] } else { lines };
    let fits = |between: Between| {
        let expected = cells(lines[0], between).count();
        let least = if between == Between::Comma { 3 } else { 2 };
        let is_strict = !matches!(between, Between::Spaces);
        let same = || lines.iter().filter(|line| cells(line, between).count() == expected).count();
        expected >= least && same() * 100 >= lines.len() * if is_strict { 85 } else { 70 }
    };
    let all_piped = || lines.iter().filter(|line| line.trim_start().starts_with('|')).count() * 10 > lines.len() * 8;
    match () {
        () if all_piped() => Some(Between::Pipe),
        () if fits(Between::Tab) => Some(Between::Tab),
        () if fits(Between::Comma) && !is_sentences(lines) => Some(Between::Comma),
        () if fits(Between::Semicolon) && lines[0].split(';').count() > 2 => Some(Between::Semicolon),
        () if fits(Between::Spaces) && lines[0].starts_with(|c: char| c.is_alphanumeric()) => Some(Between::Spaces),
        () => None,
    }
}

/// Sentences have spaces behind their commas.
fn is_sentences(lines: &[&str]) -> bool {
    let commas: usize = lines.iter().map(|line| line.matches(',').count()).sum();
    let spaced: usize = lines.iter().map(|line| line.matches(", ").count()).sum();
    spaced * 2 > commas
        || lines.iter().filter(|line| line.trim_end().ends_with([';', '{', ',', '('])).count() * 3 > lines.len()
}

/// Returns the cells of a row. A quoted comma separates cells: that is the same in every row.
fn cells(line: &str, between: Between) -> impl Iterator<Item = &str> {
    let line = line.trim_end_matches(['\n', '\r']);
    let mut rest = Some(if between == Between::Pipe { line.trim().trim_matches('|') } else { line });
    let (separator, width) = match between {
        Between::Tab => (b'\t', 1),
        Between::Comma => (b',', 1),
        Between::Semicolon => (b';', 1),
        Between::Pipe => (b'|', 1),
        Between::Spaces => (b' ', 2),
    };
    std::iter::from_fn(move || {
        let cell = rest?;
        let found = match between {
            Between::Spaces => cell.as_bytes().windows(2).position(|pair| pair == b"  "),
            _ => memchr(separator, cell.as_bytes()),
        };
        rest = found.map(|at| &cell[at + width..]);
        if between == Between::Spaces {
            rest = rest.map(str::trim_start).filter(|rest| !rest.is_empty());
        }
        Some(cell[..found.unwrap_or(cell.len())].trim())
    })
}

/// Classes the units of a table: its head, rows that differ or repeat, the first and last.
pub fn classes(text: &str, units: &[Unit], scans: &[Scan]) -> Vec<Class> {
    let sample: Vec<&str> =
        units.iter().map(|unit| unit.line(text)).filter(|line| !line.trim().is_empty()).take(60).collect();
    let between = between(&sample).unwrap_or(Between::Comma);
    let mut columns = Columns::default();
    let mut rows: Vec<(usize, u32)> = Vec::new();
    let mut classes: Vec<Class> = Vec::with_capacity(units.len());
    for (i, (unit, scan)) in units.iter().zip(scans).enumerate() {
        let line = unit.line(text);
        classes.push(match () {
            () if scan.words == 0 => Class::Noise,
            () if rows.is_empty() && classes.iter().all(|class| *class != Class::Header) && unit.opens => Class::Header,
            () if !unit.opens => Class::Plain,
            () => {
                let row = columns.row(line.as_bytes(), scan.level >= Level::Weak);
                let mut count = 0;
                for (column, cell) in cells(line, between).enumerate().take(MAX_COLUMNS) {
                    columns.cell(row, column, cell.as_bytes());
                    count = column as u64 + 1;
                }
                columns.shape(row, count);
                rows.push((i, row));
                Class::Plain
            }
        });
    }
    let (kinds, _) = columns.classes();
    for (i, row) in rows {
        classes[i] = kinds[row as usize];
    }
    log::edges(&mut classes, (3, 3));
    classes
}

/// Most columns that are compared.
const MAX_COLUMNS: usize = 200;
