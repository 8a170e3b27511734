//! Finds the record that a line belongs to: what is said of the name that is asked for.
//!
//! By what is further indented below the line, by the line with which all records open ([`Records`]), by what the line is
//! indented under, or between blank lines.

use std::ops::Range;

use super::detect;
use super::log::heading;
use super::records::{MAX_LINES, Records};
use super::units::{Unit, units};

/// Bytes before and behind a line that are looked at: how records open is read from the first ones.
const BEFORE: usize = 64 << 10;
const BEHIND: usize = 8 << 10;

/// Returns the bytes of the record with byte `at`; `None` where a line is a record of its own. O(1).
pub fn record(text: &str, at: usize) -> Option<Range<usize>> {
    record_near(text, at, BEFORE)
}

/// As [`record`], by what stands in so many bytes before it. O(`before`).
pub fn record_near(text: &str, at: usize, before: usize) -> Option<Range<usize>> {
    let start = text.floor_char_boundary(at.saturating_sub(before));
    let start = if start == 0 { 0 } else { start + text[start..at].find('\n').map_or(0, |end| end + 1) };
    let near = &text[start..text.floor_char_boundary(text.len().min(at + BEHIND))];
    let form = detect::form(near);
    let units = units(near, false, |line| form.before(line));
    let records = Records::of(near, &units);
    let unit = units.partition_point(|unit| unit.end as usize <= at - start);
    let line = records.lines.partition_point(|line| line.unit < unit);
    if records.lines.get(line)?.unit != unit {
        return None;
    }
    let lines = section(near, &units, &records, line).or_else(|| records.around(line))?;
    let unit = |line: usize| units[records.lines[line].unit];
    Some(start + unit(lines.start).start as usize..start + unit(lines.end - 1).end as usize)
}

/// Returns a heading with the lines below it, up to the next of its level.
fn section(text: &str, units: &[Unit], records: &Records, line: usize) -> Option<Range<usize>> {
    let level = |line: usize| heading(units[records.lines[line].unit].line(text));
    let of = level(line)?;
    let behind = (line + 1..records.lines.len()).take(MAX_LINES);
    let below = behind.take_while(|&other| level(other).is_none_or(|level| level > of)).count();
    (1..MAX_LINES).contains(&below).then_some(line..line + 1 + below)
}

impl Records {
    /// Returns the lines of the record of one.
    fn around(&self, line: usize) -> Option<Range<usize>> {
        let below = self.below(line);
        let opened = self.opened(line).filter(|lines| lines.start <= below.start && below.end <= lines.end);
        let widest = opened.unwrap_or(below);
        if widest.len() > 1 {
            return Some(widest);
        }
        let parent = self.above(line).map(|above| self.below(above));
        parent.filter(|lines| lines.len() < MAX_LINES).or_else(|| self.between_blanks(line))
    }

    fn indent(&self, line: usize) -> usize {
        self.lines[line].indent
    }

    /// Returns a line with those below it that are further indented.
    fn below(&self, line: usize) -> Range<usize> {
        let others = (line + 1..self.lines.len()).take(MAX_LINES - 1);
        let below = others.take_while(|&other| self.indent(other) > self.indent(line));
        line..line + 1 + below.count()
    }

    /// Returns the nearest line above one that is less indented.
    fn above(&self, line: usize) -> Option<usize> {
        (0..line).rev().take(MAX_LINES).find(|&other| self.indent(other) < self.indent(line))
    }

    /// Returns the record of a line, with what names it above its first line.
    fn opened(&self, line: usize) -> Option<Range<usize>> {
        let opener = self.opener()?;
        let opens = |&other: &usize| self.lines[other].key == opener;
        let first = |opening: usize| self.first(opening, opener);
        let behind = (line..self.lines.len()).take(MAX_LINES).filter(opens).map(first);
        let end = behind.clone().find(|&first| first > line);
        // The line may name the record above its first.
        let named = behind.take(1).find(|&first| first <= line);
        let start = named.or_else(|| (0..=line).rev().take(MAX_LINES).find(opens).map(first))?;
        Some(start..end.unwrap_or((start + MAX_LINES).min(self.lines.len())))
    }

    /// Returns the lines around one up to a blank line on either side, the next ones where it stands alone.
    fn between_blanks(&self, line: usize) -> Option<Range<usize>> {
        let lines = &self.lines;
        let is_beside = |one: usize, next: usize| lines[next].unit - lines[one].unit == 1;
        let end_of = |line: usize| {
            let beside = (line + 1..lines.len()).take(MAX_LINES).take_while(|&next| is_beside(next - 1, next));
            line + 1 + beside.count()
        };
        let start = line - (0..line).rev().take(MAX_LINES).take_while(|&one| is_beside(one, one + 1)).count();
        let end = match end_of(line) {
            end if end - start == 1 && end < lines.len() => end_of(end),
            end => end,
        };
        (end - start > 1 && end - start < MAX_LINES.min(lines.len())).then_some(start..end)
    }
}

#[cfg(test)]
mod tests {
    /// Returns the record around `name`, among forty records.
    fn around(record: impl Fn(usize) -> String, name: &str) -> String {
        let text: String = (0..40).map(record).collect();
        super::record(&text, text.find(name).unwrap()).map_or(String::new(), |range| text[range].to_owned())
    }

    #[test]
    fn a_name_brings_the_lines_of_its_record_and_no_others() {
        let records: [fn(usize) -> String; 11] = [
            |i| format!("subject=CN = n{i}.x\nissuer=CN = Corp CA\nnotAfter=Jun {i} 2027\n"),
            |i| format!("commit {:x}\nAuthor: Ann\n\n    tidy n{i}.x\n", i * 7_919_919),
            |i| format!("*** {i}. row ***\n  User: n{i}.x\n  Host: %\n  Max: {}\n", 5_400 + i),
            |i| format!("[n{i}.x]\nmode = full\nport = {}\n", 5_400 + i),
            |i| format!("  n{i}.x:\n    tls:\n      verify: true\n    port: {}\n", 5_400 + i),
            |i| format!("def n{i}.x(c):\n    row = c.get('x')\n    return row + {i}\n"),
            |i| format!("src/n{i}.x\n  {i}:5  warning  Missing type\n"),
            |i| format!("## n{i}.x\n\nOwned by Ann.\nCall extension {}.\n", 5_400 + i),
            |i| format!("### [n{i}.x](/p/{i})\n\n{} g, by {i} buyers\n{}.95\n[Add](/b/{i})\n", i * 7, i * 3),
            |i| format!("n{i}.x\nFlies LH{}07\nTel. 0{}\nPaid {i},20\n", i + 11, i * 791),
            |i| format!("Name n{i}.x\nsize {i} of {}\n{i} is free\n", i * 7),
        ];
        for record in records {
            let own = record(30);
            assert_eq!(around(|i| record(i) + "\n", "n30.x").trim_end(), own.trim_end());
        }
    }

    #[test]
    fn lines_that_are_records_have_none_around_them() {
        assert_eq!(around(|i| format!("{} /orders/{i} 200\n", ["GET", "PUT"][i * i % 7 % 2]), "/orders/30"), "");
    }
}
