//! Splits a text into pieces that may stay or go, and joins them with marks for the gaps.
//!
//! Shortening by content is one mechanism. Logs, JSON and source files differ in how they are split, in the classes of their
//! pieces and in their marks; which pieces stay is decided elsewhere.
//!
//! `detect` finds the kind. Flat kinds are split in [`units`] and classed by one function each; JSON is a tree ([`json`]).
//! `severity` finds errors and templates, `columns` the rows that differ.

mod around;
mod code;
mod columns;
mod detect;
mod diff;
mod headings;
mod html;
mod json;
mod log;
mod mail;
mod marked;
mod odd;
mod parents;
mod prose;
mod records;
mod render;
mod report;
mod severity;
mod table;
mod units;

use std::cell::LazyCell;
use std::ops::Range;

pub use around::{record, record_near};
use json::Tree;

use super::elision::Marks;
use super::excerpt::is_fence;
use super::partners::Rows;
use super::terms::Terms;

use detect::Says;
use headings::Headed;
use parents::Parents;
use records::Records;
use units::Unit;

pub use code::without_number;
pub use log::is_hit;
pub use mail::SUBJECTS;
pub use odd::measured;
pub use report::{is_excerpt, is_of_report};

/// The class of a piece, by its form alone; the fit turns it into weight.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
#[repr(u8)]
pub enum Class {
    /// Nothing in particular.
    Plain,
    /// A line that reports a failure: error, warning, traceback, exit code, failed test.
    Error,
    /// Up to two lines before and three behind an error, and the frames of a traceback.
    NearError,
    /// A name of the rest: signatures, headings, headers of hunks, files and tables, a first row, a log's first and last
    /// line.
    Header,
    /// A row that differs from the others, a changed line of a diff.
    Outlier,
    /// Where a listing goes on: what its next call takes.
    Cursor,
    /// One of the first and last few.
    Edge,
    /// A line or row that repeats an earlier one, except for numbers.
    Repeat,
    /// Blank lines, separators, licence headers and comments, progress bars, the surroundings of a page's text.
    Noise,
}

impl Class {
    /// Returns whether a piece reports a failure, or differs from the others.
    pub fn stands_out(self) -> bool {
        matches!(self, Self::Error | Self::Outlier)
    }

    /// Returns the class of two joined pieces: the one of higher rank.
    fn rank(self) -> u8 {
        match self {
            Self::Error => 8,
            Self::Outlier => 7,
            Self::Cursor => 6,
            Self::Header => 5,
            Self::NearError => 4,
            Self::Edge => 3,
            Self::Plain => 2,
            Self::Repeat => 1,
            Self::Noise => 0,
        }
    }

    fn or(self, other: Self) -> Self {
        if other.rank() > self.rank() { other } else { self }
    }
}

/// The kind of a text, by its form.
///
/// The numbers are part of `src/select/usage_trees.txt`, which was fitted to them: a new variant gets the next one.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum Kind {
    /// Logs and the output of commands.
    Log = 0,
    /// One JSON object or array, or one on each line; perhaps with a few other lines around it.
    Json = 1,
    /// Source code, with or without line numbers before it.
    Code = 2,
    /// A unified diff.
    Diff = 3,
    /// Rows of columns: CSV, TSV, Markdown tables, aligned columns.
    Table = 4,
    /// Hits with file and line number.
    Search = 5,
    /// HTML and XML.
    Html = 6,
    /// Prose and everything else.
    Plain = 7,
}

/// A piece of a text that stays or goes whole; about a line.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct Span {
    /// Its first byte in the text.
    pub start: u32,
    /// Its end.
    pub end: u32,
    /// Its class.
    pub class: Class,
}

impl Span {
    /// Returns its bytes.
    pub fn range(self) -> Range<usize> {
        self.start as usize..self.end as usize
    }
}

/// A text split into pieces.
///
/// The pieces cover the text without gaps (its first 4 GiB; the rest always stays). A flat text has at most one for every 40
/// bytes, two where it has records of several lines, and 8 more; JSON has about as many, and one for each opened container. A piece of JSON includes the key, the comma
/// and the brackets that open before its value, and the brackets that close behind it.
#[derive(Debug)]
pub struct Segments {
    kind: Kind,
    /// Whether most lines repeat the shapes of others.
    has_pattern: bool,
    /// Whether it is one mail with its headers.
    is_mail: bool,
    pieces: Vec<Span>,
    parents: Parents,
    tree: Option<Tree>,
}

impl Segments {
    /// Returns its size on the heap.
    pub fn heap_bytes(&self) -> usize {
        self.pieces.capacity() * size_of::<Span>()
            + self.parents.heap_bytes()
            + self.tree.as_ref().map_or(0, Tree::heap_bytes)
    }

    /// Splits `text`, whatever it is; deterministic. O(n).
    pub fn of(text: &str) -> Self {
        Self::with_terms(text, &[]).0
    }

    /// As [`Segments::of`], with the terms of each piece, in one pass over the words. Text other than JSON is also cut at
    /// `cuts`, ordered character boundaries.
    pub fn with_terms(text: &str, cuts: &[usize]) -> (Self, Terms) {
        let text = addressable(text);
        if let Some((tree, pieces, parents)) = json::tree(text) {
            let terms = Terms::by_part(text, pieces.iter().map(|piece| piece.end as usize), &mut ());
            return (
                Self { kind: Kind::Json, has_pattern: false, is_mail: false, pieces, parents, tree: Some(tree) },
                terms,
            );
        }
        let form = detect::form(text);
        let mut units = units::units(text, form.kind == Kind::Html, |line| form.before(line));
        if !cuts.is_empty() {
            units = units::cut(&units, cuts);
        }
        let rules = form.rules();
        let (scans, mut terms) = severity::scans_and_terms(text, &units, rules.mask_quotes);
        let mut of_diff = Vec::new();
        let mut classes = match form.kind {
            Kind::Log | Kind::Plain | Kind::Search | Kind::Json => log::classes(text, &units, &scans, &rules),
            Kind::Code => code::classes(text, &units, &scans),
            Kind::Diff => {
                let (classes, named) = diff::classes(text, &units);
                of_diff = named;
                classes
            }
            Kind::Table => table::classes(text, &units, &scans),
            Kind::Html => html::classes(text, &units, &scans),
        };
        let is_report = form.says == Says::Report;
        let is_unstructured = matches!(form.kind, Kind::Plain | Kind::Log);
        let are_few_errors = is_report && report::errors_first(text, &units, &mut classes);
        // Around the user's sentences a fence without the other would open or close something else. In all texts: recall at 50 %
        // .900 -> .898.
        let of_cut = units.iter().zip(&mut classes).filter(|_| !cuts.is_empty());
        for (_, class) in of_cut.filter(|(unit, _)| unit.opens && is_fence(unit.line(text))) {
            *class = class.or(Class::Header);
        }
        // Among similar lines a comment is not noise, and only the first header counts.
        let head = classes.iter().position(|class| *class == Class::Header);
        let pattern = odd::pattern(text, &units);
        let records = LazyCell::new(|| Records::of(text, &units));
        let has_pattern = pattern.is_some() || is_report;
        if let Some(pattern) = pattern {
            // The lines of a diff are compared by kind, and its context with nothing.
            for line in pattern.odd.into_iter().filter(|_| form.kind != Kind::Diff) {
                if scans[line].words > 0 && head != Some(line) {
                    classes[line] = classes[line].or(Class::Outlier);
                }
            }
            quiet_usual(form.kind, &pattern.usual, &mut classes);
            // Errors in lines of the pattern, as warnings of each module, hide the others.
            let errors = pattern.usual.into_iter().filter(|&line| !are_few_errors && classes[line] == Class::Error);
            for line in errors.skip(USUAL_ERRORS).collect::<Vec<_>>() {
                classes[line] = Class::NearError;
            }
            let odd: Vec<usize> = (0..units.len()).filter(|&line| classes[line].stands_out()).collect();
            // Of a diff the names of files are found with the changes.
            let names = if form.kind == Kind::Diff { Vec::new() } else { records.names(text, &units, &odd) };
            for line in names {
                classes[line] = classes[line].or(Class::Outlier);
            }
        }
        let of_mail = if is_unstructured { mail::quiet(text, &units, &mut classes) } else { Vec::new() };
        let is_mail = !of_mail.is_empty();
        let is_prose = form.says == Says::Prose || is_mail;
        for part in if is_prose { prose::figured(text, &units, &classes, is_mail) } else { Vec::new() } {
            classes[part] = classes[part].or(Class::Outlier);
        }
        if form.kind != Kind::Diff {
            marked::class(text, &units, &mut classes);
        }
        // It is shown whole, for what it lacks is not in it.
        let may_have_records = matches!(form.kind, Kind::Plain | Kind::Log | Kind::Html);
        for line in if may_have_records { records.lacking() } else { Vec::new() } {
            classes[line] = classes[line].or(Class::Outlier);
        }
        // A tool's line behind the numbered lines of a file: their number, and how to continue.
        let last = units.iter().rposition(|unit| !unit.line(text).trim().is_empty()).filter(|_| form.is_numbered);
        if let Some(last) = last.filter(|&last| units[last].says == units[last].start) {
            classes[last] = Class::Header;
        }
        let mut headed = tables(form.kind, text, &units);
        for line in headed.iter().flat_map(|table| table.heading.clone()) {
            if scans[line].words > 0 {
                classes[line] = classes[line].or(Class::Header);
            }
        }
        let groups = headings::groups(text, &units, &headed);
        let has_named = is_unstructured || form.kind == Kind::Html;
        let named = if has_named { records.named(text, &units) } else { of_diff };
        let mut starts: Vec<usize> = named.iter().map(|record| record.units.start).collect();
        starts.extend(groups.iter().flat_map(|group| [group.heading.start, group.heading.end]));
        headed.extend(groups);
        if is_unstructured && named.is_empty() {
            let groups = records.groups(text, &units);
            starts.extend(groups.iter().map(|group| group.heading.start));
            headed.extend(groups);
        }
        starts.extend(of_mail.iter().flat_map(|mail| [mail.heading.start, mail.heading.end]));
        headed.extend(of_mail);
        let pieces = units::join(text, &units, &classes, cuts, &starts);
        // Every piece ends with a unit.
        let mut ends = units.iter().zip(&terms.ends);
        let end = |piece: &Span| ends.find(|(unit, _)| unit.end == piece.end).map_or(0, |(_, &end)| end);
        terms.ends = pieces.iter().map(end).collect();
        let parents = Parents::of(text, &units, &pieces, &form, &named, &headed);
        (Self { kind: form.kind, has_pattern, is_mail, pieces, parents, tree: None }, terms)
    }

    /// Returns the kind of the text.
    pub fn kind(&self) -> Kind {
        self.kind
    }

    /// Returns whether a program wrote it rather than a person: by its kind, or because its lines repeat each other's shapes.
    pub fn is_material(&self) -> bool {
        self.has_pattern || matches!(self.kind, Kind::Log | Kind::Json | Kind::Table | Kind::Search)
    }

    /// Returns whether it is one mail with its headers.
    pub fn is_mail(&self) -> bool {
        self.is_mail
    }

    /// Returns the pieces in the order of the text.
    pub fn pieces(&self) -> &[Span] {
        &self.pieces
    }

    /// Returns the piece that says whose another one is.
    pub fn parent(&self, piece: usize) -> Option<usize> {
        self.parents.of_piece(piece)
    }

    /// Returns the rows of a list: its lines, of JSON its records.
    pub fn rows(&self, text: &str) -> Option<Rows> {
        if matches!(self.kind, Kind::Code | Kind::Diff | Kind::Html | Kind::Search) {
            return None;
        }
        let Some(tree) = &self.tree else {
            let behind = memchr::memchr_iter(b'\n', text.as_bytes()).map(|at| at + 1);
            return Rows::of(text, std::iter::once(0).chain(behind).take_while(|&start| start < text.len()));
        };
        let mut piece = 0;
        let starts = std::iter::from_fn(|| {
            let start = self.pieces.get(piece as usize)?.start;
            piece = tree.record(piece).map_or(piece + 1, |record| record.end.max(piece + 1));
            Some(start as usize)
        });
        Rows::of(text, starts)
    }

    /// Returns the pieces of the record of JSON that a piece is in.
    pub fn record(&self, piece: u32) -> Option<Range<u32>> {
        self.tree.as_ref()?.record(piece)
    }

    /// Returns whether a piece is part of a long JSON string, other than the first, which has the key.
    pub fn is_within_string(&self, piece: usize) -> bool {
        self.tree.as_ref().is_some_and(|tree| tree.is_within_string(at(piece)))
    }

    /// Returns the first pieces of root members with one of `keys`.
    pub fn members(&self, text: &str, keys: &[&str]) -> Vec<usize> {
        let members = self.tree.iter().flat_map(|tree| tree.members(text));
        let has_key = |source: &str| {
            let start = &source[..source.floor_char_boundary(MAX_KEY_BYTES)];
            keys.iter().any(|key| start.contains(&format!("\"{key}\"")))
        };
        members.filter(|(_, source)| has_key(source)).map(|(piece, _)| piece).take(keys.len()).collect()
    }

    /// Joins the pieces that `keep` picks, byte for byte, with a mark for each gap.
    ///
    /// `text` is the text that was split. The first mark names the archive path of `marks`. Earlier marks beside a gap are
    /// merged into its mark. JSON stays JSON. O(n).
    pub fn excerpt(&self, text: &str, keep: &dyn Fn(usize) -> bool, marks: Marks<'_>) -> String {
        let covered = addressable(text);
        let mut kept: Vec<bool> = (0..self.pieces.len()).map(keep).collect();
        self.parents.keep(&mut kept);
        let mut excerpt = match &self.tree {
            Some(tree) => json::render(tree, &self.pieces, covered, kept, marks),
            None => render::render(&self.pieces, covered, kept, marks),
        };
        excerpt.push_str(&text[covered.len()..]);
        excerpt
    }
}

/// Returns the tables of a text, each with what names its columns.
fn tables(kind: Kind, text: &str, units: &[Unit]) -> Vec<Headed> {
    match kind {
        Kind::Html => html::tables(text, units),
        Kind::Plain | Kind::Log | Kind::Table => headings::headings(text, units),
        _ => Vec::new(),
    }
}

/// Takes back what differs in usual lines. A row of one kind differs from those of the others: see `odd::kinds`. Of many changed files
/// each is usual.
fn quiet_usual(kind: Kind, usual: &[usize], classes: &mut [Class]) {
    let different: Vec<usize> = usual.iter().copied().filter(|&line| classes[line] == Class::Outlier).collect();
    let is_usual = match kind {
        Kind::Table => classes.len() >= MANY_ROWS,
        Kind::Plain | Kind::Log => different.len() > USUAL_CHANGES,
        _ => false,
    };
    for line in different.into_iter().filter(|_| is_usual) {
        classes[line] = Class::Plain;
    }
}

/// Rows of a table of which the pattern says what differs.
const MANY_ROWS: usize = 64;

/// Lines of a text's pattern that count as errors, and most changed files in such lines that stand out.
const USUAL_ERRORS: usize = 8;
const USUAL_CHANGES: usize = 8;

/// Bytes of a member, or of several in one piece, that are searched for keys.
const MAX_KEY_BYTES: usize = 64;

/// Returns which of some texts, each read as a line, break the pattern of the others; none without one. O(n).
pub fn odd_among(texts: &[String]) -> Vec<usize> {
    let lines = texts.iter().enumerate().map(|(nth, text)| (nth, text.as_str()));
    odd::pattern_of(lines).map_or_else(Vec::new, |pattern| pattern.odd)
}

/// Returns whether a line, perhaps numbered, opens a definition in code.
pub fn is_signature(line: &str) -> bool {
    code::is_signature(code::without_number(line).unwrap_or(line).trim())
}

/// Returns whether a line of a result reports an error.
pub fn is_error(line: &str) -> bool {
    severity::scan(line, true).level >= severity::Level::Weak
}

/// Returns the addressable part of a text: below 4 GiB.
fn addressable(text: &str) -> &str {
    let mut end = text.len().min(u32::MAX as usize);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    &text[..end]
}

/// Returns an index into an [`addressable`] text as pieces have it.
fn at(index: usize) -> u32 {
    u32::try_from(index).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests;
