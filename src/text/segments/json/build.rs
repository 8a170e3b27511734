//! Splits JSON into pieces.

use std::ops::Range;

use crate::text::json_string::escape_end;
use crate::text::segments::log::{self, Rules};
use crate::text::segments::severity::{Level, Scan, scan};
use crate::text::segments::units::{self, Style, Unit};
use crate::text::segments::{Class, Span, at};

use super::parse::{parse, value_start};
use super::rows::{Rows, class_of};
use super::{Node, Shape, Tree};

/// Larger rows are opened; in smaller ones the cells mean more together.
const OPENED_ROW_BYTES: u32 = 400;

/// Most bytes before JSON on the first line: a line number, a status.
const MAX_LEAD_BYTES: usize = 40;
/// Brackets there that are tried, each at O(n): the last one in `[INFO] [worker] {"id": 1}`.
const MAX_LEADS: usize = 3;
/// Most lines before JSON, which may be of another tool.
const MAX_LINES_BEFORE: usize = 12;
/// The same in bytes.
const MAX_BYTES_BEFORE: usize = 1000;

/// Splits JSON, perhaps behind a few words or lines; `None` for other text.
pub fn tree(text: &str) -> Option<(Tree, Vec<Span>)> {
    let (from, (found, end)) = match parse(text, 0) {
        Some(found) => (0, found),
        None => after_words(text).or_else(|| after_lines(text))?,
    };
    let pieces = lines_around(&text[..from], 0);
    let before = pieces.len();
    let mut build = Build { text, found: &found, nodes: Vec::with_capacity(found.len()), pieces };
    build.all();
    let mut pieces = build.pieces;
    // Nothing but space behind it is a part of it.
    let end = if text[end..].trim().is_empty() { text.len() } else { end };
    if let Some(last) = pieces.last_mut() {
        last.end = at(end);
    }
    let behind = (pieces.len(), end);
    pieces.extend(lines_around(text, end));
    Some((Tree { nodes: build.nodes, before, behind }, pieces))
}

/// Finds JSON that begins on the first line, as in `1| {"id": 1}` and `HTTP 200: [1, 2]`.
fn after_words(text: &str) -> Option<(usize, (Vec<Node>, usize))> {
    let lead = text.as_bytes().iter().take(MAX_LEAD_BYTES).take_while(|&&byte| byte != b'\n');
    let starts = lead.enumerate().skip(1).filter(|(_, byte)| matches!(byte, b'{' | b'[')).map(|(at, _)| at);
    starts.take(MAX_LEADS).find_map(|from| Some((from, parse(text, from)?)))
}

/// Finds JSON that begins on a line of its own behind the first few.
fn after_lines(text: &str) -> Option<(usize, (Vec<Node>, usize))> {
    let ends = text.match_indices('\n').map(|(at, _)| at + 1).take(MAX_LINES_BEFORE);
    let mut starts = ends.take_while(|&at| at < MAX_BYTES_BEFORE && at < text.len() / 2);
    let from = starts.find(|&at| text[at..].starts_with(['{', '[']))?;
    Some((from, parse(text, from)?))
}

/// Makes pieces of the lines around JSON, in `text[from..]`.
fn lines_around(text: &str, from: usize) -> Vec<Span> {
    let mut units = units::units(&text[from..], false, |_| 0);
    for unit in &mut units {
        unit.start += at(from);
        unit.says += at(from);
        unit.end += at(from);
    }
    let rules = Rules {
        least: Level::Weak,
        mask_quotes: false,
        is_search: false,
        has_headings: false,
        edges: (MAX_LINES_BEFORE, 0),
    };
    units::join(text, &units, &log::classes(text, &units, &scans(text, &units), &rules), &[])
}

fn scans(text: &str, units: &[Unit]) -> Vec<Scan> {
    units.iter().map(|unit| scan(unit.said(text), false)).collect()
}

/// Depth to which rows are compared: each level reads everything in it once more.
const MAX_ROWS_DEPTH: usize = 64;

/// Tasks to do, the next one last: nesting costs no stack.
enum Task {
    /// Add a node with its contents; the class is for a leaf or the first piece of a row.
    Node(usize, Class),
    /// Add a row as one piece.
    Row(usize, Class),
    /// Finish a node.
    Close(usize, Class),
}

struct Build<'t> {
    text: &'t str,
    /// What the parser found.
    found: &'t [Node],
    nodes: Vec<Node>,
    pieces: Vec<Span>,
}

impl Build<'_> {
    fn all(&mut self) {
        let mut tasks = vec![Task::Node(0, Class::Plain)];
        let mut depth = 0;
        while let Some(task) = tasks.pop() {
            match task {
                Task::Node(index, class) => {
                    let node = Node { piece: at(self.pieces.len()), ..self.found[index] };
                    tasks.push(Task::Close(self.nodes.len(), class));
                    self.nodes.push(node);
                    depth += 1;
                    let inside = match node.shape {
                        Shape::Leaf => {
                            self.piece(node.end, class);
                            Vec::new()
                        }
                        Shape::Text => {
                            self.parts(node);
                            Vec::new()
                        }
                        Shape::Array | Shape::Lines if depth <= MAX_ROWS_DEPTH && self.has_rows(index) => {
                            self.rows(index)
                        }
                        Shape::Array | Shape::Object | Shape::Lines => self.values(index, node.shape),
                    };
                    tasks.extend(inside.into_iter().rev());
                }
                Task::Row(index, class) => {
                    let (node, piece) = (self.found[index], at(self.pieces.len()));
                    self.nodes.push(Node { piece, skip: at(self.nodes.len() + 1), shape: Shape::Leaf, ..node });
                    self.piece(node.end, class);
                }
                Task::Close(here, class) => {
                    depth -= 1;
                    let node = self.nodes[here];
                    // Closing brackets belong to the last piece inside.
                    if let Some(last) = self.pieces.last_mut() {
                        last.end = last.end.max(node.end);
                        let first = &mut self.pieces[node.piece as usize];
                        first.class = first.class.or(if class == Class::Repeat { Class::Noise } else { class });
                    }
                    self.nodes[here].skip = at(self.nodes.len());
                }
            }
        }
    }

    /// Returns the task for the contents of a container without rows.
    fn values(&self, index: usize, shape: Shape) -> Vec<Task> {
        let children: Vec<usize> = self.children(index).collect();
        let mut classes: Vec<Class> = children.iter().map(|&child| self.leaf_class(child, shape)).collect();
        if shape == Shape::Array {
            log::edges(&mut classes, (1, 1));
        }
        children.into_iter().zip(classes).map(|(child, class)| Task::Node(child, class)).collect()
    }

    fn children(&self, index: usize) -> impl Iterator<Item = usize> {
        let (found, end) = (self.found, self.found[index].skip as usize);
        let mut child = index + 1;
        std::iter::from_fn(move || {
            let this = child;
            child = found.get(child)?.skip as usize;
            (this < end).then_some(this)
        })
    }

    fn leaf_class(&self, index: usize, parent: Shape) -> Class {
        match self.found[index] {
            Node { shape: Shape::Leaf, start, end, .. } => class_of(&self.text[start as usize..end as usize], parent),
            _ => Class::Plain,
        }
    }

    fn piece(&mut self, end: u32, class: Class) {
        let start = self.pieces.last().map_or(0, |last| last.end);
        self.pieces.push(Span { start, end, class });
    }

    /// Returns whether the elements of an array are rows: two containers or more, and otherwise only marks.
    fn has_rows(&self, index: usize) -> bool {
        let (mut rows, mut others) = (0, 0);
        for child in self.children(index) {
            let Node { start, count, .. } = self.found[child];
            if matches!(self.text.as_bytes()[start as usize], b'{' | b'[') { rows += count } else { others += count }
        }
        rows > 1 && others * 4 <= rows
    }

    /// Returns the task for the rows of an array.
    fn rows(&self, index: usize) -> Vec<Task> {
        let mut rows = Rows::default();
        let children: Vec<usize> = self.children(index).collect();
        let mut numbers: Vec<Range<usize>> = Vec::with_capacity(children.len());
        for &child in &children {
            let Node { start, end, count, .. } = self.found[child];
            let first = rows.add(self.text, start as usize..end as usize) as usize;
            numbers.push(first..first + count as usize);
        }
        let kinds = rows.classes();
        let of_rows = |rows: Range<usize>| kinds[rows].iter().copied().reduce(Class::or).unwrap_or(Class::Plain);
        let mut classes: Vec<Class> = numbers.into_iter().map(of_rows).collect();
        log::edges(&mut classes, (2, 2));
        if let Some(first) = classes.first_mut() {
            *first = Class::Header.or(*first);
        }
        let task = |(child, class): (usize, Class)| {
            let node = self.found[child];
            let is_small = node.shape != Shape::Leaf && node.end - node.start <= OPENED_ROW_BYTES;
            if is_small { Task::Row(child, class) } else { Task::Node(child, class) }
        };
        children.into_iter().zip(classes).map(task).collect()
    }

    /// Opens a long string: its lines, and the parts of long ones.
    fn parts(&mut self, node: Node) {
        let body = body(self.text, node);
        let mut units: Vec<Unit> = Vec::new();
        for line in lines(self.text, body.clone()) {
            if line.len() <= units::PART_BYTES.1 {
                units.push(Unit::of_line(line));
            } else {
                units::parts(self.text, line, Style { escaped: true, tags: false }, &mut units);
            }
        }
        let is_listing = units.len() as u64 * 200 > body.len() as u64 * 3 / 2;
        let least = if is_listing { Level::Weak } else { Level::Strong };
        let rules = Rules { least, mask_quotes: false, is_search: false, has_headings: false, edges: (2, 2) };
        let classes = log::classes(self.text, &units, &scans(self.text, &units), &rules);
        let first = self.pieces.len();
        self.pieces.extend(units::join(self.text, &units, &classes, &[]));
        // The key and opening brackets before it belong to the first part.
        let start = if first == 0 { 0 } else { self.pieces[first - 1].end };
        self.pieces[first].start = start;
    }
}

/// Returns the body of the string literal that a node is, or has as its value.
pub fn body(text: &str, node: Node) -> Range<usize> {
    let start = node.start as usize;
    // Only a key has a colon behind it.
    value_start(text.as_bytes(), start).unwrap_or(start) + 1..node.end as usize - 1
}

/// Iterates over the lines of a string's body, split behind `\n` escapes.
fn lines(text: &str, body: Range<usize>) -> impl Iterator<Item = Range<usize>> {
    let bytes = &text.as_bytes()[..body.end];
    let mut start = body.start;
    std::iter::from_fn(move || {
        let first = start;
        let mut position = start;
        while let Some(step) = bytes.get(position..)?.iter().position(|&byte| byte == b'\\') {
            let escape = position + step;
            position = escape_end(bytes, escape).min(bytes.len());
            if bytes.get(escape + 1) == Some(&b'n') {
                start = position;
                return Some(first..start);
            }
        }
        start = bytes.len();
        (first < start).then_some(first..start)
    })
}
