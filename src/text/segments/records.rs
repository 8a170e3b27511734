//! Finds the lines that say whose an odd line is, in records of several lines.
//!
//! `replicas: 0` is of no use without the `- name: mail-worker` above it. A record opens with the first kind of line, by its
//! key, behind which others come once each; a time or `[pod/x] ` before every line is none. What names it is a line whose
//! value hardly another record has. Lines of a group (of a file, a shop, a day) are named by the line of another shape that
//! stands alone above them.

use std::cmp::Reverse;
use std::collections::{HashMap, HashSet};
use std::ops::Range;

use xxhash_rust::xxh3::xxh3_64;

use super::headings::Headed;
use super::odd::shape;
use super::units::{SHORT_BYTES, Unit};
use crate::tokens::BuildMixedHasher;

/// Least records of a text, and lines with a key that tell whether their values are names.
const MIN_RECORDS: usize = 5;
/// Least different values of a key whose lines are titles.
const MIN_TITLES: usize = 3;
/// Most lines of a record.
pub const MAX_LINES: usize = 64;
/// Most lines without a key of their own that name a record.
const MAX_ABOVE: usize = 2;
/// Least lines of a group with its header, on average, where blank lines part them, too; and most of them.
const MIN_GROUP: usize = 3;
const MIN_PARAGRAPH: usize = 2;
const MAX_GROUP_LINES: usize = 256;
/// Keys that are tried as that of the first line: others may stand before all records.
const OPENERS: usize = 4;
/// Least percentage of the records that have a line of another key once.
const REGULAR: usize = 80;
/// Least percentage of different values for a key that names.
pub const DIFFERENT: usize = 90;
/// Least percentage of letters in a value that a person would call a name: more than in a hash.
const LETTERS: usize = 50;
/// One in so many records, and one of no fewer, may lack a line that the others have; and most lines of one that does.
const FEW_LACK: usize = 20;
const MAX_LACKING: usize = 16;
/// Most odd lines that are named.
const MAX_NAMED: usize = 24;

/// A line as a key and its value.
pub struct Line {
    pub unit: usize,
    pub indent: usize,
    /// Its index among the keys.
    pub key: usize,
    has_value: bool,
}

/// What is known of the lines with one key.
#[derive(Default)]
struct Key {
    lines: usize,
    different: usize,
    wordy: usize,
}

impl Key {
    fn names(&self) -> bool {
        self.lines >= MIN_RECORDS && self.different * 100 >= self.lines * DIFFERENT
    }

    fn is_wordy(&self) -> bool {
        self.wordy * 2 > self.lines
    }
}

/// A record of several lines.
pub struct Named {
    pub units: Range<usize>,
    /// The unit that says whose it is.
    pub named_by: usize,
    /// Another that says so in words.
    pub titled: Option<usize>,
}

pub struct Records {
    pub lines: Vec<Line>,
    /// In the order of their first lines, but for the one that [`Self::split`] makes.
    keys: Vec<Key>,
    /// The key of the first line of each record.
    opener: Option<usize>,
}

impl Records {
    pub fn of(text: &str, units: &[Unit]) -> Self {
        let mut this = Self { lines: Vec::with_capacity(units.len()), keys: Vec::new(), opener: None };
        let mut known: HashMap<u64, usize, BuildMixedHasher> = HashMap::default();
        let mut values: HashSet<(usize, u64), BuildMixedHasher> = HashSet::default();
        let prefix = prefix(text, units);
        let mut first = Vec::new();
        let is_blank = |unit: &Unit| unit.line(text).trim().is_empty();
        let mut is_first = units.iter().take(MAX_LINES).any(is_blank);
        for (unit, line) in units.iter().enumerate().filter(|(_, unit)| unit.opens) {
            let said = line.line(text);
            if said.trim().is_empty() {
                is_first = true;
                continue;
            }
            let is_first = std::mem::take(&mut is_first);
            let said = &said[behind(said, &prefix)..];
            let indent = said.len() - said.trim_start().len();
            let key = key(&said[indent..]);
            if key == 0 {
                continue;
            }
            let hash = xxh3_64(&said.as_bytes()[..indent + key]);
            let index = *known.entry(hash).or_insert(this.keys.len());
            if index == this.keys.len() {
                this.keys.push(Key::default());
            }
            let value = said[indent + key..].trim_matches([' ', '\t', ':', '=']);
            let key = &mut this.keys[index];
            key.lines += 1;
            let is_new = !value.is_empty() && values.insert((index, xxh3_64(value.as_bytes())));
            key.different += usize::from(is_new);
            key.wordy += usize::from(is_wordy(value));
            first.extend(is_first.then_some(this.lines.len()));
            this.lines.push(Line { unit, indent, key: index, has_value: !value.is_empty() });
        }
        let split = this.split(&first);
        this.opener = this.find_opener(split);
        this
    }

    /// Makes the key of the lines behind blank ones another one, if that is the same of most and stands elsewhere, too: "Name: order-7"
    /// and "Name: Ann" of one record. Returns the new key.
    fn split(&mut self, first: &[usize]) -> Option<usize> {
        let key = self.lines[*first.get(first.len() / 2)?].key;
        let opening = || first.iter().copied().filter(|&line| self.lines[line].key == key);
        let records = opening().count();
        if records < MIN_RECORDS || records * 100 < first.len() * REGULAR || self.keys[key].lines == records {
            return None;
        }
        // Each opens a record, whatever its value.
        let split = self.keys.len();
        for line in opening().collect::<Vec<_>>() {
            self.lines[line].key = split;
        }
        let Key { lines, different, wordy } = &mut self.keys[key];
        *lines -= records;
        (*different, *wordy) = ((*different).min(*lines), (*wordy).min(*lines));
        self.keys.push(Key { lines: records, different: records, wordy: records });
        Some(split)
    }

    /// Returns the units that name the records of some `odd` ones, in order. O(lines).
    pub fn names(&self, text: &str, units: &[Unit], odd: &[usize]) -> Vec<usize> {
        if odd.is_empty() {
            return Vec::new();
        }
        let mut groups: Option<Groups> = None;
        let mut names = Vec::new();
        for &unit in odd.iter().take(MAX_NAMED) {
            let Ok(at) = self.lines.binary_search_by_key(&unit, |line| line.unit) else { continue };
            let before = names.len();
            if let Some(record) = self.opener.and_then(|opener| self.record(at, opener)) {
                let naming = || record.clone().filter(|&line| line != at && self.key(line).names());
                names.extend(naming().next());
                names.extend(naming().find(|&line| self.key(line).is_wordy()));
            }
            let is_outside = |&line: &usize| self.lines[line].indent < self.lines[at].indent;
            if !names[before..].iter().any(is_outside) {
                names.extend(self.parent(at));
            }
            if names.len() == before {
                let groups = groups.get_or_insert_with(|| Groups::of(self, text, units));
                names.extend(groups.header_of(at));
            }
        }
        names.sort_unstable();
        names.dedup();
        names.into_iter().map(|line| self.lines[line].unit).collect()
    }

    fn key(&self, line: usize) -> &Key {
        &self.keys[self.lines[line].key]
    }

    /// Returns the key of the first line of each record.
    pub fn opener(&self) -> Option<usize> {
        self.opener
    }

    fn find_opener(&self, split: Option<usize>) -> Option<usize> {
        let may_open = |&key: &usize| self.keys[key].lines >= MIN_RECORDS;
        let keys = split.into_iter().chain(0..self.keys.len());
        keys.filter(may_open).take(OPENERS).find(|&opener| self.opens(opener))
    }

    /// Returns the first lines of all records, in order.
    fn starts(&self) -> Vec<usize> {
        let Some(opener) = self.opener else { return Vec::new() };
        let opening = (0..self.lines.len()).filter(|&line| self.lines[line].key == opener);
        opening.map(|line| self.first(line, opener)).collect()
    }

    /// Returns whether behind most lines with a key those with another come once, and hardly more than one indented less: a shop below
    /// its day opens nothing.
    fn opens(&self, opener: usize) -> bool {
        let records = self.keys[opener].lines;
        let opening = self.lines.iter().skip_while(|line| line.key != opener);
        let indent = opening.clone().next().map_or(0, |line| line.indent);
        if opening.filter(|line| line.indent < indent).count() * REGULAR > records * 100 {
            return false;
        }
        // By key: the records that have it once, the last one that has it, and how often that does so far.
        let mut seen = vec![(0, 0, 0); self.keys.len()];
        let mut record = 0;
        for line in &self.lines {
            record += usize::from(line.key == opener);
            let (once, last, in_last) = &mut seen[line.key];
            *in_last = if *last == record { *in_last + 1 } else { 1 };
            *last = record;
            match in_last {
                1 => *once += 1,
                2 => *once -= 1,
                _ => {}
            }
        }
        let is_regular = |(key, &(once, ..)): (usize, &(usize, usize, usize))| {
            key != opener && once * 100 >= records * REGULAR && self.keys[key].lines <= 2 * records
        };
        seen.iter().enumerate().any(is_regular)
    }

    /// Returns the first line of the record that the line `opening` opens by its key: one above it, less indented or without a key
    /// of its own, names it.
    pub fn first(&self, opening: usize, opener: usize) -> usize {
        let is_below = |&line: &usize| self.lines[line].indent < self.lines[line + 1].indent;
        let indented = (0..opening).rev().take_while(is_below).last();
        indented.unwrap_or_else(|| {
            // As many as stand above the first record.
            let above = self.lines.iter().take(MAX_ABOVE).take_while(|line| line.key != opener).count();
            let names = |&line: &usize| self.key(line).lines * 100 < self.keys[opener].lines * REGULAR;
            (0..opening).rev().take(above).take_while(names).last().unwrap_or(opening)
        })
    }

    /// Returns the records of several lines, each with what names it. O(lines).
    pub fn named(&self, text: &str, units: &[Unit]) -> Vec<Named> {
        let starts = self.starts();
        // Shorter ones are not cut.
        if self.lines.len() < starts.len() * MIN_GROUP || starts.len() * SHORT_BYTES as usize > text.len() {
            return Vec::new();
        }
        let ends = starts.iter().skip(1).copied().chain([self.lines.len()]);
        let records = starts.iter().copied().zip(ends).filter(|(start, end)| (1..MAX_LINES).contains(&(end - start)));
        let is_regular = |key: &Key| key.lines * 100 >= starts.len() * REGULAR;
        let named = records.map(|(start, end)| {
            let says_nothing = !self.key(start).names() && self.key(start).lines >= MIN_RECORDS;
            // The headers of a mail stand apart from what it says.
            let head = start + 1..(start + 1..end).find(|&line| self.opens_paragraph(text, units, line)).unwrap_or(end);
            let naming =
                |lines: Range<usize>| lines.filter(|&line| self.key(line).names() && is_regular(self.key(line)));
            let in_words = |lines: Range<usize>| naming(lines).find(|&line| self.key(line).is_wordy());
            let all = start..end;
            let named_by = [head.clone(), all.clone()]
                .into_iter()
                .find_map(|lines| in_words(lines.clone()).or_else(|| naming(lines).next()));
            let is_title = |key: &Key| is_regular(key) && key.is_wordy() && key.different >= MIN_TITLES;
            let in_head = (start..head.end).filter(|&line| Some(line) != named_by && is_title(self.key(line)));
            let titled = in_head.max_by_key(|&line| (self.key(line).different, Reverse(line)));
            let unit = |line: usize| self.lines[line].unit;
            Named {
                units: unit(start)..unit(end - 1) + 1,
                named_by: unit(named_by.filter(|_| says_nothing).unwrap_or(start)),
                titled: titled.filter(|_| says_nothing).map(unit),
            }
        });
        named.collect()
    }

    /// Returns the lines that stand alone above groups of others, with these, in a text of paragraphs.
    pub fn groups(&self, text: &str, units: &[Unit]) -> Vec<Headed> {
        if !self.has_paragraphs(text, units) {
            return Vec::new();
        }
        let groups = Groups::of(self, text, units);
        let Some(header) = groups.header else { return Vec::new() };
        let opening =
            (0..self.lines.len()).filter(|&line| groups.shapes[line] == header).map(|line| self.lines[line].unit);
        // A paragraph's first line may say more: "*** Shop ***" above the date of a receipt.
        let headings: Vec<Range<usize>> =
            opening.map(|unit| unit - above(text, units, unit).unwrap_or(0)..unit + 1).collect();
        let ends = headings.iter().skip(1).map(|next| next.start).chain([units.len()]);
        let groups = headings.iter().zip(ends).filter(|(heading, end)| heading.end < *end);
        groups.map(|(heading, end)| Headed { heading: heading.clone(), rows: heading.end..end }).collect()
    }

    /// Returns the units of the few short records that lack a line which all others have.
    pub fn lacking(&self) -> Vec<usize> {
        let starts = self.starts();
        let ends = starts.iter().skip(1).copied().chain([self.lines.len()]);
        let records: Vec<&[Line]> =
            starts.iter().zip(ends).filter_map(|(&start, end)| self.lines.get(start..end)).collect();
        let few = records.len() / FEW_LACK;
        if few == 0 {
            return Vec::new();
        }
        // By key: the records that have it, and the last one that does.
        let mut seen = vec![(0, 0); self.keys.len()];
        for (record, lines) in records.iter().enumerate() {
            for line in *lines {
                let (of_key, last) = &mut seen[line.key];
                *of_key += usize::from(*last <= record);
                *last = record + 1;
            }
        }
        let is_usual = |&key: &usize| (records.len() - few..records.len()).contains(&seen[key].0);
        let usual: Vec<usize> = (0..seen.len()).filter(is_usual).collect();
        let lacks = |lines: &[Line]| {
            lines.len() <= MAX_LACKING && usual.iter().any(|key| lines.iter().all(|line| line.key != *key))
        };
        let lacking: Vec<&[Line]> = records.into_iter().filter(|lines| lacks(lines)).collect();
        if lacking.len() > few {
            return Vec::new();
        }
        lacking.into_iter().flatten().map(|line| line.unit).collect()
    }

    fn has_paragraphs(&self, text: &str, units: &[Unit]) -> bool {
        (1..self.lines.len()).filter(|&line| self.opens_paragraph(text, units, line)).nth(MIN_RECORDS).is_some()
    }

    /// Returns whether a line comes behind a blank one.
    fn opens_paragraph(&self, text: &str, units: &[Unit], line: usize) -> bool {
        self.lines[line].unit.checked_sub(1).is_some_and(|before| is_blank(text, units, before))
    }

    /// Returns the lines of the record that a line is in.
    fn record(&self, at: usize, opener: usize) -> Option<Range<usize>> {
        let opens = |line: &usize| self.lines[*line].key == opener;
        let start = (0..=at).rev().take(MAX_LINES).find(opens)?;
        let end = (at + 1..self.lines.len()).take(MAX_LINES).find(opens);
        Some(start..end.unwrap_or(self.lines.len().min(at + MAX_LINES)))
    }

    /// Returns the nearest line above one, and less indented, that says more than others with its key.
    fn parent(&self, at: usize) -> Option<usize> {
        let mut indent = self.lines[at].indent;
        for line in (0..at).rev().take(MAX_LINES) {
            if self.lines[line].indent >= indent {
                continue;
            }
            let key = self.key(line);
            if key.lines < MIN_RECORDS || (self.lines[line].has_value && key.different > 1) {
                return Some(line);
            }
            indent = self.lines[line].indent;
        }
        None
    }
}

/// Lines in groups.
struct Groups {
    /// By line.
    shapes: Vec<u64>,
    /// The shape of the lines that open groups: of those that stand alone, with other lines between them, that of most.
    header: Option<u64>,
}

/// The lines of a shape: the first, how many there are, how many stand alone, and how many stand first in a paragraph.
struct OfShape {
    first: usize,
    lines: usize,
    alone: usize,
    firsts: usize,
}

impl Groups {
    fn of(records: &Records, text: &str, units: &[Unit]) -> Self {
        let shapes: Vec<u64> = records.lines.iter().map(|line| shape(units[line.unit].line(text))).collect();
        let has_paragraphs = records.has_paragraphs(text, units);
        let mut known: HashMap<u64, OfShape, BuildMixedHasher> = HashMap::default();
        for (at, shape) in shapes.iter().enumerate() {
            let is_other = |at: Option<usize>| at.and_then(|at| shapes.get(at)) != Some(shape);
            let is_first = has_paragraphs && above(text, units, records.lines[at].unit).is_some();
            let of_shape = known.entry(*shape).or_insert(OfShape { first: at, lines: 0, alone: 0, firsts: 0 });
            of_shape.lines += 1;
            of_shape.alone += usize::from(is_other(at.checked_sub(1)) && is_other(at.checked_add(1)));
            of_shape.firsts += usize::from(is_first);
        }
        let least = if has_paragraphs { MIN_PARAGRAPH } else { MIN_GROUP };
        let opens = |(_, of_shape): &(&u64, &OfShape)| {
            let OfShape { lines, alone, firsts, .. } = **of_shape;
            lines >= MIN_RECORDS
                && alone * 100 >= lines * REGULAR
                && lines * least <= shapes.len()
                && (!has_paragraphs || firsts * 100 >= lines * REGULAR)
        };
        let headers = known.iter().filter(opens);
        let header = headers.max_by_key(|(_, of_shape)| (of_shape.lines, Reverse(of_shape.first)));
        let header = header.map(|(shape, _)| *shape);
        Self { shapes, header }
    }

    /// Returns the line that opens the group of one.
    fn header_of(&self, at: usize) -> Option<usize> {
        let header = self.header.filter(|&header| self.shapes[at] != header)?;
        (0..at).rev().take(MAX_GROUP_LINES).find(|&line| self.shapes[line] == header)
    }
}

fn is_blank(text: &str, units: &[Unit], unit: usize) -> bool {
    units[unit].line(text).trim().is_empty()
}

/// Returns how many lines stand between a unit and the blank line, or the start, above it; `None` for more than [`MAX_ABOVE`].
fn above(text: &str, units: &[Unit], unit: usize) -> Option<usize> {
    (0..=MAX_ABOVE).find(|above| unit.checked_sub(above + 1).is_none_or(|before| is_blank(text, units, before)))
}

/// Most lines that are compared for a prefix, and most signs of it.
const COMPARED: usize = 32;
const MAX_PREFIX: usize = 80;

/// Returns what nine in ten lines begin with, as [`signs`]: up to the end of a word.
fn prefix(text: &str, units: &[Unit]) -> Vec<u8> {
    // In a row, for records are periodic.
    let lines = units.iter().skip(units.len().saturating_sub(COMPARED) / 2).take(COMPARED);
    let lines = lines.filter(|unit| unit.opens).map(|unit| unit.line(text)).filter(|line| !line.is_empty());
    let lines: Vec<&str> = lines.collect();
    let Some(one) = lines.get(lines.len() / 2).filter(|_| lines.len() >= MIN_RECORDS) else { return Vec::new() };
    let (mut length, mut others) = (MAX_PREFIX, 0);
    for line in &lines {
        match signs(one).zip(signs(line)).take(length).take_while(|((sign, _), (other, _))| sign == other).count() {
            0 => others += 1,
            same => length = same,
        }
        if others * 10 > lines.len() {
            return Vec::new();
        }
    }
    let mut prefix: Vec<u8> = signs(one).map(|(sign, _)| sign).take(length).collect();
    let end = prefix.iter().rposition(|sign| sign.is_ascii() && !sign.is_ascii_alphanumeric());
    // What is indented is read as it is.
    let end = end.filter(|&end| prefix[..end].iter().any(|sign| !sign.is_ascii_whitespace()));
    prefix.truncate(end.map_or(0, |last| last + 1));
    prefix
}

/// Returns the bytes of a prefix in a line; 0 if it begins otherwise.
fn behind(line: &str, prefix: &[u8]) -> usize {
    let mut signs = signs(line);
    let mut end = 0;
    for &of_prefix in prefix {
        match signs.next() {
            Some((sign, at)) if sign == of_prefix => end = at,
            _ => return 0,
        }
    }
    end
}

/// Returns the bytes of a line, each word with a digit as one, with their ends.
fn signs(line: &str) -> impl Iterator<Item = (u8, usize)> {
    let bytes = line.as_bytes();
    let mut at = 0;
    std::iter::from_fn(move || {
        let sign = *bytes.get(at)?;
        let is_start = at.checked_sub(1).is_none_or(|before| !bytes[before].is_ascii_alphanumeric());
        let word = bytes[at..].iter().take_while(|byte| is_start && byte.is_ascii_alphanumeric());
        let (length, has_digit) = word.fold((0, false), |(n, has), byte| (n + 1, has || byte.is_ascii_digit()));
        at += if has_digit { length } else { 1 };
        Some((if has_digit { b'0' } else { sign }, at))
    })
}

/// Returns the bytes of a line's key: signs, a word, and a separator behind it.
fn key(line: &str) -> usize {
    let is_word = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'.' | b'/' | 0x80..);
    let bytes = line.as_bytes();
    let signs = bytes.iter().take_while(|&byte| !is_word(byte) || matches!(byte, b'-' | b'/')).count();
    // `[db-7.fra]`, `## Ann`: only the signs are the same.
    if matches!(bytes.first(), Some(b'[' | b'#')) {
        return signs;
    }
    let word = bytes[signs..].iter().take_while(|byte| is_word(byte)).count();
    signs + word
}

/// Returns whether a value looks like a name in words rather than a number or a hash.
pub fn is_wordy(value: &str) -> bool {
    let letters = value.chars().filter(|c| c.is_alphabetic()).count();
    letters * 100 >= value.chars().filter(|c| !c.is_whitespace()).count().max(1) * LETTERS
}

#[cfg(test)]
mod tests {
    use super::super::units::units;
    use super::*;

    /// Returns the lines that name the record of the line `odd`, among forty records.
    fn names_of(record: impl Fn(usize) -> String, odd: &str) -> String {
        let text: String = (0..40).map(record).collect();
        let units = units(&text, false, |_| 0);
        let odd = units.iter().position(|unit| unit.line(&text).contains(odd)).unwrap_or_default();
        Records::of(&text, &units).names(&text, &units, &[odd]).into_iter().map(|unit| units[unit].of(&text)).collect()
    }

    #[test]
    fn an_odd_line_has_the_name_of_its_record() {
        let memory = |i| if i == 30 { "64Gi" } else { "256Mi" };
        let list = |i| format!("- name: mail-{i}\n  replicas: 3\n  resources:\n    memory: {}\n", memory(i));
        assert_eq!(names_of(list, "64Gi"), "- name: mail-30\n");
        let map = |i| format!("mail-{i}:\n  replicas: 3\n  memory: {}\n", memory(i));
        assert_eq!(names_of(map, "64Gi"), "mail-30:\n");
        let sections = |i| format!("[mail-{i}]\nport=5432\nmemory={}\n\n", memory(i));
        assert_eq!(names_of(sections, "64Gi"), "[mail-30]\n");
    }

    #[test]
    fn a_key_that_stands_twice_in_a_record_opens_it_behind_a_blank_line() {
        let due = |i| if i == 30 { "never" } else { "in May" };
        let order = |i| format!("Name: order-{i}\nName: Ann {i}\nCity: Bern\nDue: {}\n\n", due(i));
        assert!(names_of(order, "never").starts_with("Name: order-30\n"), "{}", names_of(order, "never"));
    }

    #[test]
    fn a_record_that_lacks_what_all_others_have_is_found() {
        let lacking = |text: String| {
            let units = units(&text, false, |_| 0);
            let found = Records::of(&text, &units).lacking();
            found.into_iter().map(|unit| units[unit].of(&text)).collect::<String>()
        };
        let records = |lacks: fn(usize) -> bool| {
            let due = |i| if lacks(i) { "" } else { "  due: in May\n" };
            let record = |i| format!("- id: {i}\n  city: Bern\n{}  by: Ann\n", due(i));
            lacking((0..40).map(record).collect())
        };
        assert_eq!(records(|i| i == 30), "- id: 30\n  city: Bern\n  by: Ann\n");
        assert_eq!(records(|_| false), "");
        assert_eq!(records(|i| i % 5 == 0), "", "many lack it");
    }

    #[test]
    fn a_record_is_read_behind_what_all_lines_begin_with() {
        let pod = |i: usize, state: &str| {
            format!("Name:      mail-{i}\nNamespace: prod\nRestarts:  0\nState:     {state}\nClass:     free\n\n")
        };
        let prefixes: [fn(usize) -> String; 4] = [
            |i| format!("2026-05-01T10:{:02}:{:02}.{:03}Z ", i / 60, i % 60, i * 791 % 1000),
            |i| format!("[pod/web-7d9f-{}2k/app] ", [3, 5, 8][i % 3]),
            |i| format!("[{}]<stdout>: ", i % 8),
            |i| format!("build\tRun\t2026-05-01T10:10:{:02}Z ", i % 60),
        ];
        for prefix in prefixes {
            let record = |i: usize| {
                let lines = pod(i, if i == 30 { "OOMKilled" } else { "Running" });
                let lines = lines.lines().enumerate().map(|(k, line)| prefix(i * 6 + k) + line + "\n");
                lines.collect::<String>()
            };
            let name = names_of(record, "OOMKilled");
            assert!(name.ends_with(" Name:      mail-30\n") && name.lines().count() == 1, "{name}");
        }
        for text in ["花店\n".repeat(9), "─0─".repeat(40) + "\n" + &"─0─.\n".repeat(40), "a".to_owned()] {
            Records::of(&text, &units(&text, false, |_| 0));
        }
    }

    #[test]
    fn a_name_of_words_goes_with_a_number_and_may_stand_behind() {
        let sold = |i| i != 30;
        let item = |i| format!("<item id=\"{i}\">\n  <name>Lamp no. {i}</name>\n  <sold>{}</sold>\n</item>\n", sold(i));
        assert_eq!(names_of(item, "false"), "<item id=\"30\">\n  <name>Lamp no. 30</name>\n");
        let event = |i: usize| {
            let (id, state) = (i * 7_919_919, if sold(i) { "SOLD" } else { "FREE" });
            format!("BEGIN:VEVENT\nUID:{id:x}\nSTATUS:{state}\nSUMMARY:Tea with Ann {i}\nEND:VEVENT\n")
        };
        assert_eq!(names_of(event, "FREE"), format!("UID:{:x}\nSUMMARY:Tea with Ann 30\n", 30 * 7_919_919));
    }

    #[test]
    fn a_line_of_a_group_has_the_line_that_opens_it() {
        let mode = |i: usize, k: usize| if (i, k) == (30, 5) { "rwxrwxrwx" } else { "rw-r--r--" };
        let directory = |i: usize| {
            let file = |k: usize| format!("-{} 1 app app {} img_{k}.jpg\n", mode(i, k), 1000 + i * 37 % 900);
            format!("./photos/part{i}:\n{}\n", (0..9).map(file).collect::<String>())
        };
        assert_eq!(names_of(directory, "rwxrwxrwx"), "./photos/part30:\n");
        let said = |i: usize, k: usize| if (i, k) == (30, 5) { "I moved to Berlin" } else { ["ok", "see you"][k % 2] };
        let day = |i: usize| {
            let lines = (0..9).map(|k| format!("08:{}: Ann: {}\n", 10 + k, said(i, k)));
            format!("---- {}.{}.2026 ----\n{}", i % 28 + 1, i / 28 + 1, lines.collect::<String>())
        };
        assert_eq!(names_of(day, "Berlin"), "---- 3.2.2026 ----\n");
    }

    #[test]
    fn lines_that_are_records_themselves_have_no_other_name() {
        let log =
            |i: usize| format!("{} /orders/{i} {}\n", ["GET", "PUT"][i * i % 7 % 2], if i == 30 { 502 } else { 200 });
        assert_eq!(names_of(log, "502"), "");
        let table = |i: usize| format!("mail-{i},Berlin,{}\n", if i == 30 { "down" } else { "up" });
        assert_eq!(names_of(table, "down"), "");
    }
}
