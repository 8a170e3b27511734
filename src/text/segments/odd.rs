//! Finds lines that break the pattern of the lines around them, whatever they say.
//!
//! Most long results repeat one line: an access log, a listing, a file of settings. A person sees at once the line of
//! another shape, the status 502 among 200, the value far outside its range. A sample of the lines gives the usual shapes
//! and the contents of their fields, and every line is compared with these. Lines of a record are told apart by their first
//! word, or by their position among lines of one shape. A text without usual shapes (prose, code) has no odd lines. O(n);
//! keeps at most [`SAMPLE`] lines.

mod column;
mod fields;
mod kinds;
mod order;
mod scripts;
mod sequence;

use std::collections::HashMap;
use std::ops::Range;

use super::units::Unit;
use crate::text::bytes::has_digit;
use crate::text::elision;
use crate::text::excerpt::is_fence;
use crate::tokens::BuildMixedHasher;
use column::{FieldColumn, MAX_VALUES, Sampled, strange};
pub use fields::measured;
use fields::{FieldSpan, FieldValue, Fields, cells_of, has_amounts, read, spread};
use kinds::{Kinds, kinds};
use order::Ordered;
use sequence::{MAX_BREAKS, Once, Runs, ids};

/// Fewer lines than this have no pattern.
const MIN_LINES: usize = 12;
/// Lines of the sample, spread over the text; not at a fixed step, for logs may be periodic. A record of [`super::records::MAX_LINES`]
/// lines has [`MIN_OF_PART`] of each: with a quarter of them, 16 lines of a record were told apart by chance.
const SAMPLE: usize = 1024;
/// Least percentage of the sample in shapes of two lines and more, for a text with a pattern.
const COVERED: usize = 80;
/// Least sampled lines of a shape with known fields, and of one that is of several kinds.
const MIN_OF_COLUMN: usize = 6;
const MIN_OF_SHAPE: usize = 8;
/// Least average of sampled lines for each part of a shape.
const MIN_OF_PART: usize = 12;
/// Most lines of one shape in a row that are positions of a record.
const MAX_PLACES: usize = 8;
/// At most one line in [`ODD_IN`], or [`MIN_ODD`] of a short text, is odd for one reason; a reason for more is ignored.
const ODD_IN: usize = 50;
const MIN_ODD: usize = 4;
/// The same of lines of rare shapes, which are odd together; of a short text so many where it has [`RARE_IN`] times as many. Of two of a
/// kind in 400 like lines of 26 tools 187 of 520 were gone where any shape of two lines was usual, with this none, and of ten 292 of
/// 2,600 in place of 1,655.
const OTHERS_IN: usize = 32;
const MIN_OTHERS: usize = 8;
const RARE_IN: usize = 16;
/// Initial capacity in fields of a line.
const FIELDS: usize = 8;
/// Compared bytes of a line.
const LINE_BYTES: usize = 600;

/// Units of a text with a pattern, in order.
pub struct Pattern {
    /// Those with odd lines.
    pub odd: Vec<usize>,
    /// Those with a usual line: one of a usual shape, each field like the others of its column.
    pub usual: Vec<usize>,
}

/// Returns a hash of a line's separators.
pub fn shape(line: &str) -> u64 {
    read(&line[..line.floor_char_boundary(LINE_BYTES)], Fields::Words, &mut Vec::with_capacity(FIELDS))
}

/// Returns a hash of a line with runs of digits as one, and one of its separators.
pub fn forms(line: &str) -> [u64; 2] {
    let (FieldValue::Form(form) | FieldValue::Number(form)) = FieldValue::form(line);
    [form, shape(line)]
}

/// Returns `None` for a text without a pattern.
pub fn pattern(text: &str, units: &[Unit]) -> Option<Pattern> {
    pattern_of(units.iter().enumerate().filter(|(_, unit)| unit.opens).map(|(i, unit)| (i, unit.said(text))))
}

/// As [`pattern`], of lines with their numbers.
pub fn pattern_of<'t>(lines: impl Iterator<Item = (usize, &'t str)>) -> Option<Pattern> {
    let lines: Vec<(usize, &str)> =
        lines.map(|(nth, said)| (nth, start(said))).filter(|(_, line)| is_compared(line)).collect();
    if lines.len() < MIN_LINES {
        return None;
    }
    let most = [most_of_other_shapes(lines.len()), lines.len() / ODD_IN].map(|most| most.max(MIN_ODD));
    let words = Compared::new(&lines, Fields::Words);
    let mut by_word = Usual::of(&words);
    // Cells of one word or of several are in rows of many shapes.
    let is_mixed = by_word.as_ref().is_none_or(|usual| usual.shapes.len() > 1);
    let cells = if is_mixed { cells_of(&lines).map(|cells| Compared::new(&lines, cells)) } else { None };
    let mut by_cell = cells.as_ref().and_then(Usual::of);
    let named = if is_mixed && by_cell.is_none() { named_columns(&lines) } else { None };
    let named = named.as_ref().map(|lines| Compared::new(lines, Fields::Words));
    let mut by_name = named.as_ref().and_then(Usual::of);
    // The words of the last column make any number of shapes.
    by_word = by_word.filter(|_| by_name.is_none());
    if by_word.is_none() && by_cell.is_none() && by_name.is_none() {
        return None;
    }
    let (mut odd, mut usual_lines, mut all_doubles, mut all_changes) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    let of_rows = by_cell.iter_mut().zip(&cells).chain(by_name.iter_mut().zip(&named));
    for (usual, compared) in of_rows.chain(by_word.iter_mut().zip([&words])) {
        let Differing { of_other_shape, by_column, doubles, changes, usual, body } = usual.compare(compared);
        odd.extend(few_of_each(of_other_shape, by_column, most, &body));
        usual_lines.extend(usual);
        all_doubles.extend(doubles);
        all_changes.extend(changes);
    }
    all_changes.sort_unstable();
    all_changes.dedup();
    if all_changes.len() > 2 * MIN_ODD {
        all_changes.clear();
    }
    // Of many different names a part may still be the same in all: `lib-curl/bookworm`.
    if by_word.is_some_and(|usual| usual.columns.iter().any(FieldColumn::is_open)) {
        let compared = Compared::new(&lines, Fields::Parts);
        if let Some(mut usual) = Usual::of(&compared).filter(|usual| usual.are_few_parts.contains(&true)) {
            let Differing { of_other_shape, mut by_column, body, .. } = usual.compare(&compared);
            let others = by_column.iter_mut().zip(&usual.are_few_parts).filter(|(_, is_few_part)| !**is_few_part);
            others.for_each(|(of_column, _)| of_column.clear());
            odd.extend(few_of_each(of_other_shape, by_column, most, &body));
        }
    }
    odd.extend(
        all_doubles.into_iter().chain(all_changes).chain(sequence::breaks(&lines)).chain(scripts::strangers(&lines)),
    );
    odd.sort_unstable();
    odd.dedup();
    usual_lines.sort_unstable();
    usual_lines.dedup();
    usual_lines.retain(|line| odd.binary_search(line).is_err());
    Some(Pattern { odd, usual: usual_lines })
}

/// Fewest names of columns before a last one, and the share of rows with as many words, in percent.
const MIN_NAMED: usize = 3;
const NAMED_ROWS: usize = 90;

/// Returns the lines up to the last column that the first line names, where that has any number of words: `COMMAND`, `Missing`.
fn named_columns<'t>(lines: &[(usize, &'t str)]) -> Option<Vec<(usize, &'t str)>> {
    let mut names = lines.first()?.1.split_ascii_whitespace();
    let columns = names.clone().count().checked_sub(1).filter(|&columns| columns >= MIN_NAMED)?;
    let up_to_last = |line: &'t str| {
        let last = line.split_ascii_whitespace().nth(columns - 1)?;
        Some(&line[..last.as_ptr().addr() - line.as_ptr().addr() + last.len()])
    };
    if names.any(has_digit) {
        return None;
    }
    let rows: Vec<(usize, &str)> = lines.iter().filter_map(|&(nth, line)| Some((nth, up_to_last(line)?))).collect();
    (rows.len() * 100 >= lines.len() * NAMED_ROWS).then_some(rows)
}

/// The lines of a text, and a sample of them.
struct Compared<'l, 't> {
    lines: &'l [(usize, &'t str)],
    fields: Fields,
    /// One line in so many is in the sample.
    step: usize,
    sample: Sample<'t>,
}

impl<'l, 't> Compared<'l, 't> {
    fn new(lines: &'l [(usize, &'t str)], fields: Fields) -> Self {
        let step = lines.len().div_ceil(SAMPLE);
        let sampled = (0..lines.len().div_ceil(step)).map(|nth| lines[sampled(nth, step, lines.len())].1);
        let fields = if fields == Fields::Words && has_amounts(sampled.clone()) { Fields::Amounts } else { fields };
        Self { lines, fields, step, sample: Sample::of(sampled, fields) }
    }

    /// Returns a line of the sample, which needs no second reading.
    fn sampled(&self, nth: usize) -> Option<Line<'t, '_>> {
        let of_sample = nth / self.step;
        (nth == sampled(of_sample, self.step, self.lines.len())).then(|| self.sample.line(of_sample))
    }

    /// Returns the number of lines of the same shape right before a line of the sample, up to [`MAX_PLACES`].
    fn place(&self, of_sample: usize) -> usize {
        let (shape, nth) = (self.sample.line(of_sample).shape, sampled(of_sample, self.step, self.lines.len()));
        let mut fields = Vec::new();
        let mut shape_at = |nth: usize| {
            fields.clear();
            self.sampled(nth).map_or_else(|| read(self.lines[nth].1, self.fields, &mut fields), |line| line.shape)
        };
        (0..nth).rev().take(MAX_PLACES).take_while(|&before| shape_at(before) == shape).count()
    }
}

/// Returns the line of the sample's `nth`, of `lines` and one in `step`.
fn sampled(nth: usize, step: usize, lines: usize) -> usize {
    let from = nth * step;
    from + usize::try_from(spread(nth as u64 + 1) >> 33).unwrap_or(0) % step.min(lines - from)
}

/// Units by how they differ from the usual.
struct Differing {
    of_other_shape: Vec<usize>,
    by_column: Vec<Vec<OddField>>,
    /// Both of those whose ids are the same, and rows that contradict themselves.
    doubles: Vec<usize>,
    /// Those beside which a field changes for good.
    changes: Vec<usize>,
    /// Those that do not.
    usual: Vec<usize>,
    /// From the first line of a usual shape to the last.
    body: Range<usize>,
}

/// A field unlike the others of its column.
struct OddField {
    /// See [`FieldColumn::compare`].
    distance: f64,
    line: usize,
    value: FieldValue,
}

/// Returns the odd lines. Other shapes of more than `most_others` lines are not odd; of a column of more than `most` only the ends are.
fn few_of_each(
    of_other_shape: Vec<usize>,
    by_column: Vec<Vec<OddField>>,
    [most_others, most]: [usize; 2],
    body: &Range<usize>,
) -> Vec<usize> {
    let mut odd = of_other_shape;
    if odd.len() > most_others {
        // What a tool prints before and behind its rows is the frame of these.
        odd.retain(|line| body.contains(line));
    }
    if odd.len() > most_others {
        odd.clear();
    }
    for mut of_column in by_column {
        if of_column.len() > most_others {
            // A value that recurs is one of the usual that the sample lacks, or said by the first of its kind.
            let mut seen: HashMap<FieldValue, usize, BuildMixedHasher> = HashMap::default();
            of_column.retain(|field| {
                let count = seen.entry(field.value).or_default();
                *count += 1;
                *count <= MIN_ODD
            });
        }
        let far = of_column.iter().filter(|field| field.distance.is_finite()).count();
        if far > most || of_column.len() > most_others {
            // In a column with a long tail only its ends are odd.
            of_column.retain(|field| field.distance.is_finite());
            of_column.sort_by(|a, b| b.distance.total_cmp(&a.distance).then(a.line.cmp(&b.line)));
            of_column.truncate(MIN_ODD);
        }
        odd.extend(of_column.into_iter().map(|field| field.line));
    }
    odd
}

/// The columns of a part with few lines.
const NO_COLUMNS: Range<usize> = 0..0;

/// Returns the compared part of a line, without its end and trailing spaces.
fn start(line: &str) -> &str {
    let line = line.trim_end();
    &line[..line.floor_char_boundary(LINE_BYTES)]
}

/// Returns whether a line counts: fences and earlier marks stand around lines.
fn is_compared(line: &str) -> bool {
    !line.is_empty() && !is_fence(line) && elision::read_gap(line).is_none()
}

/// Lines that were read.
struct Sample<'t> {
    /// Each with its shape and the end of its fields.
    lines: Vec<(&'t str, u64, usize)>,
    /// The fields of all lines.
    fields: Vec<FieldSpan>,
}

/// A line that was read.
#[derive(Clone, Copy)]
struct Line<'t, 'f> {
    text: &'t str,
    shape: u64,
    fields: &'f [FieldSpan],
}

impl<'t> Line<'t, '_> {
    fn field(&self, at: usize) -> Option<&'t str> {
        self.fields.get(at).map(|field| field.of(self.text))
    }

    /// Returns the number of words before the one that a field is in or is a part of.
    fn word(&self, at: usize) -> usize {
        self.fields[..=at].windows(2).filter(|pair| !pair[1].is_joined_to(pair[0], self.text)).count()
    }
}

impl<'t> Sample<'t> {
    fn of(lines: impl Iterator<Item = &'t str>, fields: Fields) -> Self {
        let count = lines.size_hint().0;
        let mut this = Self { lines: Vec::with_capacity(count), fields: Vec::with_capacity(count * FIELDS) };
        for line in lines {
            let shape = read(line, fields, &mut this.fields);
            this.lines.push((line, shape, this.fields.len()));
        }
        this
    }

    /// Returns whether a field is a part of a word: see [`FieldSpan::is_part`].
    fn is_part(&self, nth: usize, at: usize) -> bool {
        let line = self.line(nth);
        line.fields.get(at).is_some_and(|field| field.is_part(line.text))
    }

    fn line(&self, nth: usize) -> Line<'t, '_> {
        let (text, shape, end) = self.lines[nth];
        let start = nth.checked_sub(1).map_or(0, |before| self.lines[before].2);
        Line { text, shape, fields: &self.fields[start..end] }
    }
}

/// The usual shapes of a text's lines.
struct Usual {
    shapes: HashMap<u64, Shape, BuildMixedHasher>,
    columns: Vec<FieldColumn>,
    /// By column: whether it has parts of words, of a few values, or few values of a kind that such a part tells.
    are_few_parts: Vec<bool>,
    /// Whether a part of a word tells the kind of the columns that are added.
    is_by_part: bool,
}

/// What the lines of a shape have.
struct Shape {
    columns: ShapeColumns,
    /// The fields that are ids, whatever the kind of the line.
    ids: Vec<(usize, Once)>,
    /// Values that are in order in each row, with the lines where they are not.
    ordered: Vec<(Ordered, Vec<usize>)>,
}

/// The columns of a shape; none for few lines.
enum ShapeColumns {
    Whole(Range<usize>),
    /// By a word, each with columns of its own: `admin = no` and `shell = /bin/sh`.
    ByWord(Box<ByWord>),
    /// By position among lines of the shape: `<td>12</td>` and `<td>paid</td>`.
    ByPlace(Vec<Range<usize>>),
}

/// Lines of a shape by the word in one field.
struct ByWord {
    at: usize,
    column: usize,
    kinds: Vec<(FieldValue, ShapeColumns)>,
    /// For other words.
    rest: ShapeColumns,
}

impl Usual {
    /// Returns `None` if the sampled lines have no pattern.
    fn of(compared: &Compared<'_, '_>) -> Option<Self> {
        let Compared { sample, step, .. } = compared;
        let step = *step;
        let mut by_shape: Vec<(u64, usize)> =
            sample.lines.iter().enumerate().map(|(nth, &(_, shape, _))| (shape, nth)).collect();
        by_shape.sort_unstable();
        let of_shapes = || by_shape.chunk_by(|one, other| one.0 == other.0);
        let of_several: usize = of_shapes().map(<[_]>::len).filter(|&lines| lines > 1).sum();
        if of_several * 100 < sample.lines.len() * COVERED {
            return None;
        }
        let rare = rare(of_shapes().map(<[_]>::len), sample.lines.len());
        let same = || of_shapes().filter(|same| same.len() > rare);
        let is_only = same().nth(1).is_none();
        let mut usual =
            Self { shapes: HashMap::default(), columns: Vec::new(), are_few_parts: Vec::new(), is_by_part: false };
        for same in same() {
            let (shape, lines) = (same[0].0, same.iter().map(|&(_, nth)| nth).collect::<Vec<_>>());
            let word = |nth: usize| match FieldValue::of(sample.line(nth).field(0)?) {
                FieldValue::Number(_) => None,
                form @ FieldValue::Form(_) => Some(form),
            };
            let place = |nth: usize| (!is_only).then(|| compared.place(nth)).filter(|&place| place < MAX_PLACES);
            let columns = if let Some(kinds) = kinds(sample, &lines) {
                usual.by_word(sample, &lines, kinds, step)
            } else if let Some(by_word) = parts(&lines, word) {
                usual.by_word(sample, &lines, Kinds { at: 0, by_word, rest: Vec::new() }, step)
            } else if let Some(parts) = parts(&lines, place).filter(|parts| is_record(parts)) {
                let mut by_place = vec![NO_COLUMNS; 1 + parts.iter().map(|(place, _)| *place).max().unwrap_or(0)];
                for (place, lines) in parts {
                    by_place[place] = usual.columns_of(sample, &lines, 1, step);
                }
                ShapeColumns::ByPlace(by_place)
            } else {
                ShapeColumns::Whole(usual.columns_of(sample, &lines, 0, step))
            };
            let field = |at: usize| lines.iter().filter_map(move |&nth| sample.line(nth).field(at));
            // A part of an id is none.
            let fields = 0..if compared.fields == Fields::Parts { 0 } else { sample.line(lines[0]).fields.len() };
            let ids = fields.filter_map(|at| Some((at, ids(field(at))?))).collect();
            let ordered = order::ordered(sample, &lines).into_iter().map(|ordered| (ordered, Vec::new())).collect();
            usual.shapes.insert(shape, Shape { columns, ids, ordered });
        }
        Some(usual)
    }

    /// Compares each line with the usual ones.
    fn compare(&mut self, compared: &Compared<'_, '_>) -> Differing {
        let (mut of_other_shape, mut usual_lines, mut fields) = (Vec::new(), Vec::new(), Vec::new());
        let mut by_column: Vec<Vec<OddField>> = self.columns.iter().map(|_| Vec::new()).collect();
        // By column: the last regular field; mostly the next is the same.
        let mut last = vec![""; self.columns.len()];
        let (mut of_rare_shape, mut values) = (Vec::new(), Vec::new());
        let mut runs: Vec<Runs> = self.columns.iter().map(|_| Runs::default()).collect();
        let (mut shape_before, mut place, mut body) = (None, 0, None);
        for (nth, &(i, text)) in compared.lines.iter().enumerate() {
            let line = compared.sampled(nth).unwrap_or_else(|| {
                fields.clear();
                Line { text, shape: read(text, compared.fields, &mut fields), fields: &fields }
            });
            place = if shape_before == Some(line.shape) { place + 1 } else { 0 };
            shape_before = Some(line.shape);
            let mut is_usual = true;
            let mut compare = |column: usize, field| {
                runs[column].see(field, i);
                self.columns[column].compare(field, i, &mut last[column], &mut |distance, line| {
                    is_usual = false;
                    by_column[column].push(OddField { distance, line, value: FieldValue::of(field) });
                });
            };
            let Some(shape) = self.shapes.get_mut(&line.shape) else {
                of_other_shape.push(i);
                of_rare_shape.push(i);
                continue;
            };
            body = Some(body.map_or(i, |body: Range<usize>| body.start)..i + 1);
            let mut known = &shape.columns;
            while let ShapeColumns::ByWord(by) = known {
                let word = line.field(by.at).unwrap_or_default();
                compare(by.column, word);
                let value = FieldValue::of(word);
                known = by.kinds.iter().find(|(known, _)| *known == value).map_or(&by.rest, |(_, kind)| kind);
            }
            let columns = match known {
                ShapeColumns::Whole(columns) => Some(columns),
                ShapeColumns::ByPlace(parts) => parts.get(place),
                ShapeColumns::ByWord(_) => None,
            };
            let Some(columns) = columns else {
                of_other_shape.push(i);
                continue;
            };
            if columns.is_empty() {
                of_rare_shape.push(i);
            }
            for (field, column) in line.fields.iter().zip(columns.clone()) {
                compare(column, field.of(line.text));
            }
            if !shape.ordered.is_empty() {
                order::values(line, &mut values);
                let broken = shape.ordered.iter_mut().filter(|(ordered, _)| ordered.is_broken(&values));
                broken.for_each(|(_, broken)| broken.push(i));
            }
            for (at, ids) in &mut shape.ids {
                line.field(*at).into_iter().for_each(|field| ids.see(field, i));
            }
            if is_usual {
                usual_lines.push(i);
            }
        }
        let ids = self.shapes.values().flat_map(|shape| &shape.ids);
        let ordered = self.shapes.values().flat_map(|shape| &shape.ordered);
        let contradictions = ordered.map(|(_, broken)| broken).filter(|broken| broken.len() <= MAX_BREAKS).flatten();
        let doubles = ids.flat_map(|(_, ids)| ids.doubles()).chain(contradictions).copied().collect();
        // A line of another shape between them opens a section.
        let is_apart =
            |[before, behind]: &[usize; 2]| of_rare_shape.iter().any(|other| (*before..*behind).contains(other));
        let changes = runs.iter().flat_map(Runs::changes).filter(|pair| !is_apart(pair)).flatten().collect();
        Differing { of_other_shape, by_column, doubles, changes, usual: usual_lines, body: body.unwrap_or_default() }
    }

    /// Adds the columns of lines of one shape, by kind if they are of several; a kind may be of several again.
    fn by_kind(&mut self, sample: &Sample<'_>, lines: &[usize], least_strange: usize, step: usize) -> ShapeColumns {
        match kinds(sample, lines) {
            Some(kinds) => self.by_word(sample, lines, kinds, step),
            None => ShapeColumns::Whole(self.columns_of(sample, lines, least_strange, step)),
        }
    }

    /// Adds the columns of lines of one shape by a word.
    fn by_word(&mut self, sample: &Sample<'_>, lines: &[usize], kinds: Kinds, step: usize) -> ShapeColumns {
        let Kinds { at, by_word, rest } = kinds;
        let column = self.column(sample, lines, at, strange(lines.len()), step);
        let was_by_part = self.is_by_part;
        self.is_by_part |= sample.is_part(lines[0], at);
        let of_kind = |(word, lines): (FieldValue, Vec<usize>)| (word, self.by_kind(sample, &lines, 1, step));
        let kinds = by_word.into_iter().map(of_kind).collect();
        self.is_by_part = was_by_part;
        let rest = ShapeColumns::Whole(self.columns_of(sample, &rest, 1, step));
        ShapeColumns::ByWord(Box::new(ByWord { at, column, kinds, rest }))
    }

    /// Adds the columns of lines of one shape, of which so many may be odd, and returns their indices.
    fn columns_of(&mut self, sample: &Sample<'_>, lines: &[usize], least_strange: usize, step: usize) -> Range<usize> {
        let start = self.columns.len();
        if lines.len() >= MIN_OF_COLUMN {
            let strange = strange(lines.len()).max(least_strange);
            for at in 0..sample.line(lines[0]).fields.len() {
                self.column(sample, lines, at, strange, step);
            }
        }
        start..self.columns.len()
    }

    /// Adds a column and returns its index.
    fn column(&mut self, sample: &Sample<'_>, lines: &[usize], at: usize, strange: usize, step: usize) -> usize {
        let fields = lines.iter().filter_map(|&nth| sample.line(nth).field(at));
        let column = FieldColumn::of(Sampled { count: lines.len(), strange, step }, &fields);
        self.are_few_parts.push(column.has_few() && (self.is_by_part || sample.is_part(lines[0], at)));
        self.columns.push(column);
        self.columns.len() - 1
    }
}

/// Returns how many of so many lines may be of rare shapes.
fn most_of_other_shapes(lines: usize) -> usize {
    (lines / OTHERS_IN).max(MIN_OTHERS.min(lines / RARE_IN))
}

/// Returns up to how many of so many sampled lines a shape is rare: the lines of all such shapes together are few.
fn rare(of_shapes: impl Iterator<Item = usize>, sampled: usize) -> usize {
    let mut counts: Vec<usize> = of_shapes.collect();
    counts.sort_unstable();
    let (most, mut rare, mut lines) = (most_of_other_shapes(sampled), 1, 0);
    for same in counts.chunk_by(PartialEq::eq) {
        lines += same.iter().sum::<usize>();
        if lines > most.max(MIN_ODD) || same[0] > most {
            break;
        }
        rare = same[0];
    }
    rare
}

/// Parts with as many lines each that make it sure that these are records.
const MIN_EQUAL: usize = 3;

/// Groups the lines of a shape by `part`, if that has few values except for odd ones.
fn parts<K: PartialEq>(lines: &[usize], part: impl Fn(usize) -> Option<K>) -> Option<Vec<(K, Vec<usize>)>> {
    let (mut parts, mut others) = (Vec::<(K, Vec<usize>)>::new(), 0);
    for &nth in lines.iter().take_while(|_| lines.len() >= 2 * MIN_OF_COLUMN) {
        let key = part(nth);
        match parts.iter_mut().find(|(known, _)| Some(known) == key.as_ref()) {
            Some((_, lines)) => lines.push(nth),
            None => match key.filter(|_| parts.len() < MAX_VALUES) {
                Some(key) => parts.push((key, vec![nth])),
                None => others += 1,
            },
        }
        if others > strange(lines.len()) {
            return None;
        }
    }
    parts.retain(|(_, lines)| lines.len() >= MIN_OF_COLUMN);
    let count: usize = parts.iter().map(|(_, lines)| lines.len()).sum();
    let are_equal = are_equal(&parts);
    let is_few = parts.len() > 1 && (lines.len() >= MIN_OF_PART * parts.len() || are_equal);
    // Beside the lines of each record some are of the same shape by chance: "Note: slept well".
    let others = if are_equal && parts.len() >= MIN_EQUAL { lines.len() / 4 } else { strange(lines.len()) };
    (is_few && count + others >= lines.len()).then_some(parts)
}

/// Returns whether each place has as many lines as the others, about: as many are in a row as a record has, not by chance.
fn is_record(parts: &[(usize, Vec<usize>)]) -> bool {
    let counts = || parts.iter().map(|(_, lines)| lines.len());
    counts().max() <= counts().min().map(|least| 2 * least)
}

/// Returns whether each part has as many lines as the others: one in each of a few records, but for one that is odd.
fn are_equal<K>(parts: &[(K, Vec<usize>)]) -> bool {
    let counts = || parts.iter().map(|(_, lines)| lines.len());
    counts().max() <= counts().min().map(|least| least + 1)
}

#[cfg(test)]
mod tests;
