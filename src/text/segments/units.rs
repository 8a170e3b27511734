//! Splits a text into lines and long lines into parts, and joins short ones.

use memchr::memmem;

use crate::text::bytes::{is_word, lines};
use crate::text::elision;

use super::odd::shape;
use super::{Class, Span, at};

/// A line, or a part of a long one.
#[derive(Copy, Clone, Debug)]
pub struct Unit {
    pub start: u32,
    /// Its first byte behind a line number or the place of a hit.
    pub says: u32,
    pub end: u32,
    /// Whether it starts a line.
    pub opens: bool,
}

impl Unit {
    /// Returns a line as a unit.
    pub fn of_line(line: std::ops::Range<usize>) -> Self {
        Self { start: at(line.start), says: at(line.start), end: at(line.end), opens: true }
    }

    pub fn of(self, text: &str) -> &str {
        &text[self.start as usize..self.end as usize]
    }

    /// Returns its words.
    pub fn said(self, text: &str) -> &str {
        &text[self.says as usize..self.end as usize]
    }

    /// Returns its words without the line end.
    pub fn line(self, text: &str) -> &str {
        self.said(text).trim_end_matches(['\n', '\r'])
    }
}

/// Most and least bytes of a part of a long line.
///
/// A sentence of English (about 120) or Chinese (about 40 characters) is a part of its own.
pub const PART_BYTES: (usize, usize) = (120, 300);

/// A shorter piece is joined with a neighbour of its class: a mark would cost more than the piece.
pub const SHORT_BYTES: u32 = 40;

/// Pieces of a text beyond one for every [`SHORT_BYTES`].
const FREE_PIECES: usize = 8;

/// Splits a text into lines, and long lines into parts, with `tags` also between tags. `before` returns the bytes before the
/// words of a line.
pub fn units(text: &str, tags: bool, before: impl Fn(&str) -> usize) -> Vec<Unit> {
    let mut units = Vec::with_capacity(text.len() / 64);
    let mut start = 0;
    for line in lines(text) {
        let end = start + line.len();
        let first = units.len();
        let mut from = start;
        let mut records = match line.len() > PART_BYTES.1 {
            true if tags => records(line),
            true => match tuples(line) {
                // Lines of a log may be long and of like items, too.
                starts if starts.is_empty() && line.len() * 2 > text.len() => items(line),
                starts => starts,
            },
            false => Vec::new(),
        };
        if !records.is_empty() && elision::may_have_note(line) {
            part_marks(line, &mut records);
        }
        for to in records.into_iter().map(|at| start + at).chain([end]) {
            if to - from <= PART_BYTES.1 {
                units.push(Unit::of_line(from..to));
            } else {
                parts(text, from..to, tags, &mut units);
            }
            from = to;
        }
        units[first].says = at(start + before(line)).min(units[first].end);
        start = end;
    }
    units
}

/// Makes each mark of an earlier cut a record of its own.
fn part_marks(line: &str, starts: &mut Vec<usize>) {
    let mut from = 0;
    let next = || {
        let (start, end) = elision::find_gap(&line[from..])?;
        let mark = from + start..from + end;
        from = mark.end;
        Some(mark)
    };
    let marks: Vec<_> = std::iter::from_fn(next).collect();
    let is_within = |at: usize| {
        let next = marks.partition_point(|mark| mark.end <= at);
        marks.get(next).is_some_and(|mark| mark.contains(&at))
    };
    starts.retain(|&at| !is_within(at));
    starts.extend(marks.iter().flat_map(|mark| [mark.start, mark.end]));
    starts.retain(|at| (1..line.len()).contains(at));
    starts.sort_unstable();
    starts.dedup();
}

/// Returns where the elements of a long line of markup begin that are its records: the outermost that are many. O(n).
fn records(line: &str) -> Vec<usize> {
    let mut names: Vec<(&str, Vec<usize>)> = Vec::new();
    for (at, _) in line.match_indices('<') {
        let name = line[at + 1..].split(|c: char| !c.is_alphanumeric() && !matches!(c, '_' | '-')).next();
        let Some(name) = name.filter(|name| !name.is_empty()) else { continue };
        match names.iter().position(|(other, _)| *other == name) {
            Some(known) => names[known].1.push(at),
            None if names.len() < MAX_ELEMENTS => names.push((name, vec![at])),
            None => {}
        }
    }
    names.into_iter().map(|(_, places)| places).find(|places| places.len() >= MIN_RECORDS).unwrap_or_default()
}

/// Returns where the tuples of a long line begin, but for the first: the rows of an INSERT. O(n).
fn tuples(line: &str) -> Vec<usize> {
    let behind = line.match_indices("),").map(|(at, sign)| at + sign.len());
    let start = |at: usize| line.len() - line[at..].trim_start_matches(' ').len();
    let starts: Vec<usize> = behind.map(start).filter(|&at| line[at..].starts_with('(')).collect();
    if starts.len() < MIN_RECORDS { Vec::new() } else { starts }
}

/// Returns where the items of a long line begin, but for the first: a text without line ends may have other separators. They
/// are the strongest ones between which the text is alike: words of one shape are words. O(n).
fn items(line: &str) -> Vec<usize> {
    let word = shape("a");
    let starts = |separator: &'static str| memmem::find_iter(line.as_bytes(), separator).map(|at| at + separator.len());
    let separates = |separator: &&'static str| {
        let sample: Vec<usize> = starts(separator).take(SAMPLED_PLACES).collect();
        let item = |pair: &[usize]| line[pair[0]..pair[1] - separator.len()].trim();
        let (mut shapes, mut items, mut words) = (Vec::new(), 0, 0);
        for shape in sample.windows(2).map(item).filter(|item| !item.is_empty()).map(shape) {
            items += 1;
            words += usize::from(shape == word);
            if !shapes.contains(&shape) {
                shapes.push(shape);
            }
            if shapes.len() > MAX_SHAPES || words * 2 > SAMPLED_PLACES {
                return false;
            }
        }
        items >= MIN_RECORDS && words * 2 < items && shapes.len() <= 1 + items / MIN_RECORDS
    };
    SEPARATORS.into_iter().find(separates).map_or(Vec::new(), |separator| starts(separator).collect())
}

/// What separates the items of a text in one line, the strongest first.
const SEPARATORS: [&str; 25] = [
    "\r", "\\n", "<br>", "。", "।", ". ", "；", "; ", " | ", " • ", " / ", "\t", "&", "，", "、", "،", ", ", ";", "|",
    "•", ",", "・", "~", "'", " ",
];
/// Places of a separator that are looked at.
const SAMPLED_PLACES: usize = 32;
/// Most shapes of items; with more no other is read.
const MAX_SHAPES: usize = 1 + SAMPLED_PLACES / MIN_RECORDS;

/// Fewest elements that are records, and most names of elements that are looked at.
const MIN_RECORDS: usize = 8;
const MAX_ELEMENTS: usize = 32;

/// Splits units at ordered character boundaries.
pub fn cut(units: &[Unit], places: &[usize]) -> Vec<Unit> {
    let mut places = places.iter().map(|&place| at(place)).peekable();
    let mut cut = Vec::with_capacity(units.len() + places.len());
    for &unit in units {
        let mut rest = unit;
        while places.next_if(|&place| place <= rest.start).is_some() {}
        while let Some(place) = places.next_if(|&place| place < rest.end) {
            cut.push(Unit { end: place, says: rest.says.min(place), ..rest });
            rest = Unit { start: place, says: rest.says.max(place), opens: false, ..rest };
        }
        cut.push(rest);
    }
    cut
}

/// Splits a line into parts, with `tags` also between tags; an earlier mark is a part of its own.
fn parts(text: &str, line: std::ops::Range<usize>, tags: bool, units: &mut Vec<Unit>) {
    let find = |from: usize| {
        elision::find_gap(&text[from..line.end]).map_or(line.end..line.end, |(start, end)| from + start..from + end)
    };
    let (mut from, mut mark) = (line.start, find(line.start));
    while from < line.end {
        let end = match from {
            _ if from == mark.start => mark.end,
            _ => next_cut(text.as_bytes(), from, mark.start, tags),
        };
        // A line end is not a part of its own, nor behind a mark.
        let is_end = line.end - end <= 2 && text[end..line.end].trim().is_empty();
        let end = if is_end { line.end } else { end };
        units.push(Unit { opens: from == line.start, ..Unit::of_line(from..end) });
        from = end;
        if from == mark.end && from < line.end {
            mark = find(from);
        }
    }
}

/// Returns the end of the part at `from`: `end`, or the best place within [`PART_BYTES`].
///
/// The last of the best places wins. A place inside a word, number, path or URL is the last resort.
fn next_cut(bytes: &[u8], from: usize, end: usize, tags: bool) -> usize {
    let (least, most) = PART_BYTES;
    if end - from <= most {
        return end;
    }
    let limit = from + most;
    let (mut best, mut best_rank) = (None, 0);
    for position in (from + least..=limit).rev() {
        if bytes[position] & 0xc0 == 0x80 {
            continue;
        }
        let rank = rank(bytes, position, tags);
        if best.is_none() || rank > best_rank {
            (best, best_rank) = (Some(position), rank);
        }
        // The end of a sentence: nothing before it is better.
        if rank >= 4 {
            break;
        }
    }
    best.unwrap_or(end)
}

/// Rates a cut between two characters, from 0 to 5.
fn rank(bytes: &[u8], position: usize, tags: bool) -> u8 {
    let before = &bytes[..position];
    let next = bytes[position];
    // Within a word, as most places are.
    if before.last().is_some_and(|last| is_word(*last)) {
        return 0;
    }
    match before {
        [.., b'\n' | b'\r'] if next != b'\n' => 5,
        // 。 ！ ？
        [.., 0xe3, 0x80, 0x82] | [.., 0xef, 0xbc, 0x81 | 0x9f] | [.., b'.' | b'!' | b'?', b' '] if next != b' ' => 4,
        [.., b'>'] if tags && next == b'<' => 4,
        // ； ， 、
        [.., 0xef, 0xbc, 0x9b | 0x8c]
        | [.., 0xe3, 0x80, 0x81]
        | [.., b',' | b';' | b':' | b'}' | b']' | b')', b' ' | b'\t'] => 3,
        [.., b' ' | b'\t'] if !matches!(next, b' ' | b'\t') => 2,
        [.., b'}' | b']' | b')' | b';' | b'|'] => 1,
        [.., b','] => u8::from(!next.is_ascii_digit()),
        // Scripts without spaces.
        [.., last] => u8::from(*last >= 0x80 && next >= 0xe3),
        [] => 0,
    }
}

/// Joins units to pieces: short neighbours of one class, blank lines with the line before them, and in a text of very short
/// lines neighbours of any class. Joins nothing across `cuts` as long as there are few pieces, nor across `starts` of records
/// and groups, and never an earlier mark: in a gap it counts for what it says.
pub fn join(text: &str, units: &[Unit], classes: &[Class], cuts: &[usize], starts: &[usize]) -> Vec<Span> {
    let mut starts = starts.iter().copied().peekable();
    let is_cut = |start: u32| cuts.binary_search(&(start as usize)).is_ok();
    let mut pieces: Vec<Span> = Vec::with_capacity(units.len().min(text.len() / SHORT_BYTES as usize + FREE_PIECES));
    let mut last_is_mark = false;
    for (nth, (unit, &class)) in units.iter().zip(classes).enumerate() {
        let source = unit.of(text);
        let is_start = starts.next_if_eq(&nth).is_some();
        let is_mark = elision::read_gap(source).is_some();
        let is_full = pieces.len() >= unit.start as usize / SHORT_BYTES as usize + FREE_PIECES;
        let joined = pieces.last_mut().filter(|last| {
            let bytes = last.end - last.start;
            let is_blank = source.len() <= 2 && class == Class::Noise && bytes < at(PART_BYTES.1);
            let is_short = bytes < SHORT_BYTES && last.class == class && unit.end - last.start <= at(PART_BYTES.1);
            // No cut of ours leaves two marks behind each other.
            is_mark == last_is_mark
                && !is_start
                && (is_full || (!is_mark && !is_cut(unit.start) && (is_blank || is_short)))
        });
        if let Some(last) = joined {
            last.end = unit.end;
            last.class = last.class.or(class);
        } else {
            pieces.push(Span { start: unit.start, end: unit.end, class });
            last_is_mark = is_mark;
        }
    }
    pieces
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_line_falls_into_the_items_that_are_alike() {
        let name = |i: usize| ["auth", "cart", "mail", "queue"][i * i % 7 % 4];
        let joined =
            |separator: &str| (0..60).map(|i| format!("{}={i}ms", name(i))).collect::<Vec<_>>().join(separator);
        for separator in SEPARATORS {
            let text = joined(separator);
            let items: Vec<&str> = units(&text, false, |_| 0).into_iter().map(|unit| unit.of(&text)).collect();
            let expected = |i| format!("{}={i}ms{separator}", name(i));
            assert!((0..59).all(|i| items[i] == expected(i)) && items.len() == 60, "{separator:?} {items:?}");
        }
        // A mark is one item, with all that is like one in it.
        let text = format!("{}[... 1 line, 345 characters left out ...] {}", joined(", "), joined(", "));
        let marks = units(&text, false, |_| 0).into_iter().filter(|unit| elision::read_gap(unit.of(&text)).is_some());
        assert_eq!(marks.count(), 1, "{text}");
        let clause = |i: usize| format!("{} there{}", "and he went ".repeat(i * i % 11), [", ", "; ", ". "][i % 3]);
        let prose = (1..60).map(clause).collect::<String>();
        // Among lines of a log it is one of them.
        let log = format!("{0}\n{0}\n{0}\n", joined(" "));
        for text in [prose.as_str(), &log] {
            let units = units(text, false, |_| 0);
            let is_last = |unit: &Unit| unit.end == at(text.len()) || unit.of(text).ends_with('\n');
            assert!(units.iter().all(|unit| is_last(unit) || unit.of(text).len() >= PART_BYTES.0), "{text}");
        }
    }
}
