//! Reads a list that a program prints, for questions that name none of its records: where each begins, and the numbers of each column.
//!
//! The fields of a record have labels (`"rent": 940`, `rent: 940`, `<rent>940</rent>`), or they are the cells of a row, whose labels
//! stand above them or before the number (`rent 940`).

use std::collections::HashMap;
use std::ops::Range;

use super::bytes::{has_digit, lines};
use super::dates::stated_day;
use super::segments::{measured, without_number};

/// Fewest records of a list, and share of them with a number for a column to have numbers, in percent.
const MIN_RECORDS: usize = 4;
const NUMERIC: usize = 70;

/// Share of the lines that are fields with labels, or rows with as many cells, in percent.
const ALIKE: usize = 60;

/// What may stand between the cells of a row, with the fewest cells; then two spaces, then one.
const SEPARATORS: [(&str, usize); 5] = [("<td", 2), ("\t", 2), ("|", 2), (";", 2), (",", 3)];
const GAPS: [(&str, usize); 2] = [("  ", 2), (" ", 4)];

/// Most bytes of a label, and of a line that is read.
const MAX_LABEL: usize = 48;
const MAX_LINE: usize = 4_096;

/// What stands around labels and values in the forms of lists.
const AROUND: [char; 9] = [' ', '"', '\'', '*', '`', '-', '{', '[', '\t'];

/// A list of records.
#[derive(Debug)]
pub struct Listing<'t> {
    /// Where each record begins, in order.
    pub records: Vec<usize>,
    pub columns: Vec<Column<'t>>,
}

/// The fields of one kind.
#[derive(Debug)]
pub struct Column<'t> {
    /// Empty where it has none.
    pub label: &'t str,
    /// The fields that are numbers, with their places.
    pub numbers: Vec<(f64, usize)>,
    /// Where all of its fields stand.
    fields: Vec<usize>,
}

/// A label with its value, or a cell.
struct Field<'t> {
    label: &'t str,
    value: &'t str,
}

impl<'t> Listing<'t> {
    /// Reads a list; `None` where the text is none of so many records. O(bytes).
    pub fn of(text: &'t str) -> Option<Self> {
        let lines: Vec<&str> = split(text).collect();
        let labelled: Vec<Vec<Field<'_>>> = lines.iter().map(|line| labelled(line)).collect();
        let are_labelled = labelled.iter().filter(|fields| !fields.is_empty()).count() * 100 >= lines.len() * ALIKE;
        let at = |part: &str| part.as_ptr().addr() - text.as_ptr().addr();
        if are_labelled {
            let fields = labelled.into_iter().flatten();
            return Self::of_fields(fields.map(|field| (field.label, at(field.label), field)), at);
        }
        let rows = rows(&lines)?;
        let header = Some(&rows[0]).filter(|header| !header.iter().any(|cell| has_digit(cell)));
        let body = &rows[usize::from(header.is_some())..];
        let cells = body.iter().flat_map(|cells| cells.iter().enumerate());
        let fields = cells.map(|(nth, cell)| {
            let field = match header {
                Some(names) => Field { label: names[nth], value: cell },
                None => named(cell),
            };
            (nth, at(cell), field)
        });
        Self::of_fields(fields, at)
    }

    /// Gathers fields by their kinds; the first kind that recurs opens the records.
    fn of_fields<K: std::hash::Hash + Eq>(
        fields: impl Iterator<Item = (K, usize, Field<'t>)>,
        at: impl Fn(&str) -> usize,
    ) -> Option<Self> {
        let mut known: HashMap<K, usize> = HashMap::new();
        let mut columns: Vec<Column<'t>> = Vec::new();
        for (kind, start, Field { label, value }) in fields {
            let column = *known.entry(kind).or_insert(columns.len());
            if column == columns.len() {
                columns.push(Column { label, numbers: Vec::new(), fields: Vec::new() });
            }
            let column = &mut columns[column];
            column.fields.push(start);
            column.numbers.extend(number(value).map(|number| (number, at(value))));
        }
        let records = columns.iter().find(|column| column.fields.len() >= MIN_RECORDS)?.fields.clone();
        columns.retain(|column| {
            let numbers = column.numbers.len();
            numbers >= MIN_RECORDS && numbers * 100 >= column.fields.len() * NUMERIC
        });
        Some(Self { records, columns })
    }
}

/// Iterates over the lines of a text without their numbers; of one long line over the members of its list.
fn split(text: &str) -> impl Iterator<Item = &str> {
    let is_one_line = text.trim_end().matches('\n').take(MIN_RECORDS).count() < MIN_RECORDS;
    let members = text.split_inclusive("},").take_while(move |_| is_one_line);
    let lines = lines(text).take_while(move |_| !is_one_line);
    let bare = |line| without_number(line).unwrap_or(line).trim_end();
    let lines = members
        .chain(lines)
        .map(bare)
        .filter(|line| line.bytes().any(|byte| byte.is_ascii_alphanumeric() || byte >= 0x80));
    lines.map(|line| &line[..line.floor_char_boundary(MAX_LINE)])
}

/// Returns the fields of a line that begins with a label; none of another.
fn labelled(line: &str) -> Vec<Field<'_>> {
    if let Some((label, value)) = element(line) {
        return vec![Field { label, value }];
    }
    let mut fields = Vec::new();
    let mut from = 0;
    while let Some(label) = next_label(line, from) {
        let is_first = line[..label.start].chars().all(|c| AROUND.contains(&c) || c == '#');
        if fields.is_empty() && !is_first {
            break;
        }
        let value = value(line, label.end);
        from = value.end.max(label.end + 1);
        fields.push(Field { label: &line[label], value: &line[value] });
    }
    fields
}

/// Returns the label and the value of an element of XML on one line: `<rent>940</rent>`.
fn element(line: &str) -> Option<(&str, &str)> {
    let (label, rest) = line.trim_start().strip_prefix('<')?.split_once('>')?;
    let value = &rest[..rest.find("</")?];
    let is_label = !label.is_empty() && label.len() <= MAX_LABEL && !value.contains('<');
    (is_label && !matches!(label, "td" | "th" | "tr" | "li" | "p")).then_some((label, value))
}

/// Returns the next label of a line behind `from`, before its colon or equals sign.
fn next_label(line: &str, from: usize) -> Option<Range<usize>> {
    let bytes = line.as_bytes();
    let mut marks = (from..bytes.len()).filter(|&at| matches!(bytes[at], b':' | b'='));
    marks.find_map(|at| {
        let before = line[from..at].trim_end_matches(AROUND);
        let letters = |c: char| c.is_alphanumeric() || matches!(c, '_' | '-' | '.' | ' ' | '/' | '&' | '(' | ')');
        let start = before.char_indices().rev().take_while(|(_, c)| letters(*c)).last()?.0;
        let label = before[start..].trim_start_matches(AROUND);
        let start = label.as_ptr().addr() - line.as_ptr().addr();
        let next = bytes.get(at + 1).copied().unwrap_or(b' ');
        // No time, no address.
        let is_label =
            label.contains(char::is_alphabetic) && label.len() <= MAX_LABEL && !matches!(next, b'/' | b':' | b'=');
        let is_time = next.is_ascii_digit() && label.ends_with(|c: char| c.is_ascii_digit());
        (is_label && !is_time).then(|| start..start + label.len())
    })
}

/// Returns the value behind the label that ends at `at`: in quotation marks, or up to what ends it.
fn value(line: &str, at: usize) -> Range<usize> {
    let behind = &line[at..];
    let start = at + behind.len() - behind.trim_start_matches([' ', '"', '\'', '*', ':', '=', '\t']).len();
    let bytes = line.as_bytes();
    if matches!(bytes.get(start), Some(b'{' | b'[')) {
        return start..start;
    }
    let is_quoted = start > at && matches!(bytes[start - 1], b'"' | b'\'');
    let ends = |&end: &usize| match bytes[end] {
        quote @ (b'"' | b'\'') => is_quoted && quote == bytes[start - 1],
        b';' | b'}' | b'|' => !is_quoted,
        b',' => !is_quoted && !bytes.get(end + 1).is_some_and(u8::is_ascii_digit),
        _ => false,
    };
    start..(start..line.len()).find(ends).unwrap_or(line.len())
}

/// Returns the cells of the rows, if most lines have as many.
fn rows<'t>(lines: &[&'t str]) -> Option<Vec<Vec<&'t str>>> {
    SEPARATORS.into_iter().chain(GAPS).find_map(|(separator, least)| {
        let mut rows: Vec<Vec<&str>> = lines.iter().map(|line| cells(line, separator)).collect();
        let mut counts: Vec<usize> = rows.iter().map(Vec::len).collect();
        counts.sort_unstable();
        let usual = *counts.get(counts.len() / 2)?;
        rows.retain(|cells| cells.len() == usual);
        (usual >= least && rows.len() > MIN_RECORDS && rows.len() * 100 >= lines.len() * ALIKE).then_some(rows)
    })
}

/// Returns the cells of a row; a separator in quotation marks is none.
fn cells<'t>(line: &'t str, separator: &str) -> Vec<&'t str> {
    let (mut cells, mut start, mut is_quoted) = (Vec::new(), 0, false);
    let mut add = |cell: &'t str| {
        let cell = if separator == "<td" { within_tags(cell) } else { cell };
        let cell = cell.trim_matches([' ', '"', '\t']);
        if !(cell.is_empty() && matches!(separator, "|" | "  " | " " | "<td")) {
            cells.push(cell);
        }
    };
    for (at, byte) in line.bytes().enumerate() {
        is_quoted ^= byte == b'"';
        let rest = &line.as_bytes()[at..];
        let separates = rest.starts_with(separator.as_bytes()) || separator == "<td" && rest.starts_with(b"<th");
        if at >= start && !is_quoted && separates {
            add(&line[start..at]);
            start = at + separator.len();
        }
    }
    add(&line[start..]);
    cells
}

/// Returns a cell with the word before its number as its label.
fn named(cell: &str) -> Field<'_> {
    let (label, value) = cell.split_at(cell.find(|c: char| c.is_ascii_digit()).unwrap_or(0));
    let is_label = label.ends_with(' ') && label.trim().chars().all(char::is_alphabetic);
    if is_label { Field { label: label.trim(), value } } else { Field { label: "", value: cell } }
}

/// Returns what stands between the end of a tag and the start of the next one.
fn within_tags(cell: &str) -> &str {
    let value = cell.split_once('>').map_or("", |(_, value)| value);
    &value[..value.find('<').unwrap_or(value.len())]
}

/// Returns the number that a field is, a day as one, too: `£940`, `9.80 €`, `45天`, `EUR 12`, `2026-05-08`.
fn number(value: &str) -> Option<f64> {
    let value = value.trim_matches(|c| c != '-' && AROUND.contains(&c) || matches!(c, ',' | '}' | ']'));
    if let Some(day) = stated_day(value) {
        return Some(day);
    }
    let sign = value.strip_prefix('-').map_or("", |_| "-");
    let number = value[sign.len()..]
        .trim_start_matches(|c: char| c.is_alphabetic() && c.is_ascii_uppercase() || "$€£¥￥₹ ".contains(c));
    let end = number.find(|c: char| !(c.is_ascii_digit() || matches!(c, '.' | ','))).unwrap_or(number.len());
    let (digits, unit) = (number[..end].trim_end_matches(['.', ',']), number[end..].trim());
    let is_unit = unit.chars().count() <= MAX_UNIT && !has_digit(unit);
    let scaled = || measured(&[digits, unit].concat());
    let (number, _) = scaled().or_else(|| measured(digits)).filter(|_| is_unit && !digits.is_empty())?;
    Some(if sign.is_empty() { number } else { -number })
}

/// Most characters of a unit.
const MAX_UNIT: usize = 8;

#[cfg(test)]
mod tests {
    use super::*;

    const ROWS: [(&str, &str, &str); 5] = [
        ("Heron Glass", "940", "2026-05-08"),
        ("Birch Foods", "1,250.50", "2026-01-30"),
        ("Ember & Sons", "87.20", "2025-11-02"),
        ("Alder Optics", "2,300", "2026-02-14"),
        ("Quill Press", "655", "2026-03-01"),
    ];

    /// Returns the forms of a list in which programs print these rows.
    fn forms() -> Vec<String> {
        let of = |row: fn((&str, &str, &str)) -> String, between: &str| ROWS.map(row).join(between);
        let json = |(name, rent, day): (&str, &str, &str)| {
            format!("{{\"name\": \"{name}\", \"rent\": \"{rent}\", \"from\": \"{day}\"}}")
        };
        vec![
            format!("{{\"total\": 5, \"items\": [{}]}}", of(json, ", ")),
            of(json, "\n"),
            format!(
                "[\n{}\n]",
                of(
                    |(name, rent, day)| format!(
                        "  {{\n    \"name\": \"{name}\",\n    \"rent\": \"{rent}\",\n    \"from\": \"{day}\"\n  }}"
                    ),
                    ",\n"
                )
            ),
            format!("name,rent,from\n{}", of(|(name, rent, day)| format!("{name},\"{rent}\",{day}"), "\n")),
            format!("1\tname\trent\tfrom\n{}", of(|(name, rent, day)| format!("2\t{name}\t{rent}\t{day}"), "\n")),
            format!(
                "| name | rent | from |\n|---|---|---|\n{}",
                of(|(name, rent, day)| format!("| {name} | £{rent} | {day} |"), "\n")
            ),
            format!(
                "NAME           RENT      FROM\n{}",
                of(|(name, rent, day)| format!("{name:<15}{rent:<10}{day}"), "\n")
            ),
            format!(
                "<table>\n<tr><th>name</th><th>rent</th></tr>\n{}\n</table>",
                of(|(name, rent, day)| format!("<tr><td>{name}</td><td>{rent}</td><td>{day}</td></tr>"), "\n")
            ),
            of(|(name, rent, day)| format!("name: {name}\nrent: {rent}\nfrom: {day}\n"), "\n"),
            format!(
                "items:\n{}",
                of(|(name, rent, day)| format!("  - name: {name}\n    rent: {rent} EUR\n    from: {day}"), "\n")
            ),
            of(
                |(name, rent, day)| {
                    format!(
                        "  <flat>\n    <name>{name}</name>\n    <rent>{rent}</rent>\n    <from>{day}</from>\n  </flat>"
                    )
                },
                "\n",
            ),
            of(|(name, rent, day)| format!("- {name}; rent {rent}; from {day}"), "\n"),
            of(|(name, rent, day)| format!("## {name}\n\n- **rent:** {rent}\n- **from:** {day}"), "\n\n"),
        ]
    }

    #[test]
    fn the_records_and_numbers_of_a_list_are_found_in_each_form() {
        for text in forms() {
            let listing = Listing::of(&text).unwrap_or_else(|| panic!("{text}"));
            assert_eq!(listing.records.len(), ROWS.len(), "{text}");
            let rents = listing
                .columns
                .iter()
                .find(|column| column.numbers.iter().any(|(number, _)| (number - 940.0).abs() < 0.1));
            let mut rents = rents.unwrap_or_else(|| panic!("{text}")).numbers.clone();
            rents.sort_by(|one, other| one.0.total_cmp(&other.0));
            let numbers: Vec<f64> = rents.iter().map(|(number, _)| *number).collect();
            assert_eq!(numbers, [87.2, 655.0, 940.0, 1250.5, 2300.0], "{text}");
            assert!(text[rents[0].1..].trim_start_matches('£').starts_with("87.20"), "{text}");
            let last = listing.columns.last().map(|column| column.numbers[0].0);
            assert_eq!(last, Some(20_260_508.0), "{text}");
        }
    }

    #[test]
    fn prose_is_no_list() {
        for text in
            ["", "One line: 12.", "He came at 10:30.\nShe left.\nThe rain, the wind and the snow.\nNobody saw it.\n"]
        {
            assert!(Listing::of(text).is_none_or(|listing| listing.columns.is_empty()), "{text}");
        }
    }
}
