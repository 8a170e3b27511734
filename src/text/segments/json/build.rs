//! Splits JSON into pieces.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::ops::Range;

use xxhash_rust::xxh3::xxh3_64_with_seed;

use crate::text::json_string::Unescaped;
use crate::text::segments::log::{self, Rules};
use crate::text::segments::parents::Parents;
use crate::text::segments::severity::{Level, Scan, scan};
use crate::text::segments::units::{self, Unit};
use crate::text::segments::{Class, Kind, Segments, Span, at};

use super::parse::{opens, parse, parse_string, skip_spaces, value_start};
use super::rows::{Classes, Rows, behind_comma, class_of, tell_failure, value_end};
use super::{Node, Shape, Tree};

/// Larger rows are opened; in smaller ones the cells mean more together.
pub(super) const OPENED_ROW_BYTES: u32 = 400;
/// Most bytes of an indented row for each of these.
const MAX_INDENTED: usize = 4;

/// Fewest containers of an object that are rows by name: fewer are parts of one thing.
const MIN_NAMED_ROWS: u32 = 8;

/// Fewer rows than this are compared with those of like containers only: among six any value is odd.
const FEW_ROWS: usize = 16;

/// Most members of an object with rows and the list of their columns.
const MAX_BESIDE: usize = 16;

/// Fewest values that are read as lines.
const MIN_LINES: usize = 12;

/// Most bytes before JSON on the first line: a line number, a status.
const MAX_LEAD_BYTES: usize = 40;
/// Brackets there that are tried, each at O(n): the last one in `[INFO] [worker] {"id": 1}`.
const MAX_LEADS: usize = 3;
/// Most lines before JSON, which may be of another tool.
const MAX_LINES_BEFORE: usize = 12;
/// The same in bytes.
const MAX_BYTES_BEFORE: usize = 1000;

/// Splits JSON, perhaps behind a few words or lines; `None` for other text.
pub fn tree(text: &str) -> Option<(Tree, Vec<Span>, Parents)> {
    let (from, (found, end)) = match parse(text, 0) {
        Some(found) => (0, found),
        None => {
            parse_string(text).map(|found| (0, found)).or_else(|| after_words(text)).or_else(|| after_lines(text))?
        }
    };
    let pieces = lines_around(&text[..from], 0);
    let before = pieces.len();
    let mut build = Build {
        text,
        found: &found,
        nodes: Vec::with_capacity(found.len()),
        pieces,
        odd_cells: BTreeSet::new(),
        inner: Vec::new(),
        named: Vec::new(),
        headings: HashMap::new(),
        within: Vec::new(),
        apart: HashSet::new(),
        of_groups: HashMap::new(),
        has_rows: false,
    };
    build.compare_groups();
    build.all();
    if !build.has_rows {
        // It is one record.
        let Node { start, end, .. } = found[0];
        build.named.push(NamedValue { bytes: start as usize..end as usize, names: Vec::new(), is_record: true });
    }
    let (parents, records) = build.parents();
    let mut pieces = build.pieces;
    // Nothing but space behind it is a part of it.
    let end = if text[end..].trim().is_empty() { text.len() } else { end };
    if let Some(last) = pieces.last_mut() {
        last.end = at(end);
    }
    let behind = (pieces.len(), end);
    pieces.extend(lines_around(text, end));
    Some((Tree { nodes: build.nodes, before, behind, inner: build.inner, records }, pieces, parents))
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
    units::join(text, &units, &log::classes(text, &units, &scans(text, &units), &rules), &[], &[])
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
    /// Where odd cells of opened rows start.
    odd_cells: BTreeSet<usize>,
    /// See [`Tree`].
    inner: Vec<(usize, Segments)>,
    /// Opened rows, and what stands under a heading, with where that which names them starts; outer before inner ones.
    named: Vec<NamedValue>,
    /// By container of rows without keys: the list of their columns beside it.
    headings: HashMap<usize, usize>,
    /// Pieces within long strings with their parents.
    within: Vec<(u32, u32)>,
    /// Where the values of opened arrays start whose rows are compared with those of like ones.
    apart: HashSet<usize>,
    /// By such an array: the classes of its rows.
    of_groups: HashMap<usize, Vec<Class>>,
    /// Whether any container has rows.
    has_rows: bool,
}

/// A value that says little without its name.
struct NamedValue {
    bytes: Range<usize>,
    /// Where its names start.
    names: Vec<usize>,
    is_record: bool,
}

impl Build<'_> {
    fn all(&mut self) {
        let mut tasks = vec![Task::Node(0, self.leaf_class(0, Shape::Object))];
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
                            let is_odd = self.odd_cells.range(node.start as usize..node.end as usize).next().is_some();
                            self.piece(node.end, if is_odd { class.or(Class::Outlier) } else { class });
                            Vec::new()
                        }
                        Shape::Text => {
                            self.parts(node);
                            Vec::new()
                        }
                        _ if depth <= MAX_ROWS_DEPTH && self.has_rows(index) => self.rows(index),
                        Shape::Array | Shape::Object | Shape::Lines => self.values(index, node.shape, depth),
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

    /// Returns the task for the contents of a container without rows. What stands beside a long value at the root says what that
    /// is: `"total": 300`.
    fn values(&mut self, index: usize, shape: Shape, depth: usize) -> Vec<Task> {
        let children: Vec<usize> = self.children(index).collect();
        if shape == Shape::Object && children.len() <= MAX_BESIDE && depth <= MAX_ROWS_DEPTH {
            self.find_headings(&children);
            self.head_lists(&children);
        }
        let mut classes: Vec<Class> = children.iter().map(|&child| self.leaf_class(child, shape)).collect();
        // Of the members of an object only what is odd counts: their order says nothing.
        let counts = |of_line: &Class| shape == Shape::Array || *of_line == Class::Outlier;
        for (class, of_line) in classes.iter_mut().zip(self.as_lines(&children)).filter(|(_, of_line)| counts(of_line))
        {
            *class = class.or(of_line);
        }
        if shape == Shape::Array {
            log::edges(&mut classes, (1, 1));
        } else if self.has_failed(index, &children) {
            // The sentences beside it say why.
            for (class, _) in classes.iter_mut().zip(&children).filter(|(_, child)| self.is_sentence(**child)) {
                *class = Class::Error;
            }
        }
        let is_root = depth == 1 && !children.iter().all(|&child| self.is_leaf(child));
        for (class, &child) in classes.iter_mut().zip(&children).filter(|_| shape == Shape::Object) {
            if *class == Class::Plain && self.is_empty(child) {
                *class = Class::Noise;
            } else if is_root && self.is_leaf(child) {
                *class = class.or(Class::Header);
            }
        }
        for (class, of_groups) in classes.iter_mut().zip(self.of_groups.remove(&index).unwrap_or_default()) {
            *class = class.or(of_groups);
        }
        for (class, &child) in classes.iter_mut().zip(&children).filter(|_| shape == Shape::Object) {
            let Node { shape, start, end, .. } = self.found[child];
            if shape == Shape::Leaf && says_how_to_go_on(&self.text[start as usize..end as usize]) {
                *class = class.or(Class::Cursor);
            }
        }
        let headings: Vec<usize> = children.iter().filter_map(|child| self.headings.get(child).copied()).collect();
        let is_heading = |child: &usize| headings.contains(child);
        let task = |(child, class)| if is_heading(&child) { Task::Row(child, class) } else { Task::Node(child, class) };
        children.into_iter().zip(classes).map(task).collect()
    }

    /// Returns whether an object is what a failure says, or has a member that says that it failed; not an element of an array, which
    /// lists what may have failed.
    fn has_failed(&self, index: usize, children: &[usize]) -> bool {
        let source = |node: Node| &self.text[node.start as usize..node.end as usize];
        let tells = |&child: &usize| {
            let node = self.found[child];
            node.shape == Shape::Leaf && tell_failure(source(node))
        };
        let is_member = source(self.found[index]).starts_with(['"', '\'']);
        (index == 0 && children.iter().any(tells)) || (is_member && tell_failure(self.head(index)))
    }

    /// Returns the key and the first byte of a member.
    fn head(&self, index: usize) -> &str {
        let Node { start, end, .. } = self.found[index];
        let value = value_start(self.text.as_bytes(), start as usize).unwrap_or(end as usize);
        &self.text[start as usize..(value + 1).min(end as usize)]
    }

    /// Returns whether members say nothing: `"cancel_reason": null`.
    fn is_empty(&self, index: usize) -> bool {
        let Node { start, end, .. } = self.found[index];
        let is_empty = |value: Range<usize>| {
            let value = self.text[value].chars().filter(|c| !c.is_whitespace());
            matches!(&*value.take(5).collect::<String>(), "null" | "None" | "\"\"" | "''" | "[]" | "{}")
        };
        self.is_leaf(index) && values(self.text.as_bytes(), start as usize..end as usize).all(is_empty)
    }

    /// Returns whether a member is a string of several words.
    fn is_sentence(&self, index: usize) -> bool {
        let value = &self.text[self.value(index)..self.found[index].end as usize];
        value.starts_with(['"', '\'']) && value.contains(' ')
    }

    /// Returns the classes of plain values or members, read as the lines of a text; none for few of them, or containers.
    fn as_lines(&self, children: &[usize]) -> Vec<Class> {
        let is_plain = |child: &usize| matches!(self.found[*child].shape, Shape::Leaf | Shape::Text);
        if children.len() < MIN_LINES || !children.iter().all(is_plain) {
            return Vec::new();
        }
        let bytes = self.text.as_bytes();
        let (mut text, mut ends) = (String::new(), Vec::with_capacity(children.len()));
        for &child in children {
            let Node { start, end, .. } = self.found[child];
            let mut position = start as usize;
            while position < end as usize {
                if let Some(value) = value_start(bytes, position) {
                    text.push_str(&self.text[position..value]);
                    position = value;
                }
                let value = position..value_end(bytes, position);
                position = behind_comma(bytes, value.end);
                let source = &self.text[value];
                let quotes = ['"', '\''];
                let body = source.strip_prefix(quotes).and_then(|rest| rest.strip_suffix(quotes));
                text.push_str(
                    &body.map_or_else(|| source.to_owned(), |body| Unescaped::of(body).text.replace('\n', " ")),
                );
                text.push('\n');
            }
            ends.push(text.len());
        }
        let segments = Segments::of(&text);
        let mut pieces = segments.pieces().iter().peekable();
        let class_until = |end: usize| {
            let mut class = Class::Noise;
            while let Some(piece) = pieces.peek().filter(|piece| (piece.start as usize) < end) {
                class = class.or(piece.class);
                if piece.end as usize > end {
                    break;
                }
                pieces.next();
            }
            class
        };
        ends.into_iter().map(class_until).collect()
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

    fn is_leaf(&self, index: usize) -> bool {
        self.found[index].shape == Shape::Leaf
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

    /// Returns whether the elements of an array are rows: two containers or more, and otherwise only marks; or the members of
    /// an object that has many, by name.
    fn has_rows(&self, index: usize) -> bool {
        let least = if self.found[index].shape == Shape::Object { MIN_NAMED_ROWS } else { 2 };
        let (mut rows, mut others) = (0, 0);
        for child in self.children(index) {
            let count = self.found[child].count;
            if self.is_container(child) { rows += count } else { others += count }
        }
        rows >= least && others * 4 <= rows
    }

    /// Returns whether a row is one piece: by its bytes without the spaces of indentation.
    fn is_small(&self, node: Node) -> bool {
        let source = &self.text.as_bytes()[node.start as usize..node.end as usize];
        let is_dense = || {
            source.len() <= MAX_INDENTED * OPENED_ROW_BYTES as usize
                && source.iter().filter(|byte| !byte.is_ascii_whitespace()).count() <= OPENED_ROW_BYTES as usize
        };
        node.shape != Shape::Leaf && (source.len() <= OPENED_ROW_BYTES as usize || is_dense())
    }

    /// Compares the rows of arrays that stand at the same keys: one status in `items` of all groups.
    fn compare_groups(&mut self) {
        let groups = self.groups();
        let opened = groups.iter().flatten().filter(|(_, is_opened)| *is_opened);
        self.apart = opened.map(|&(group, _)| self.value(group)).collect();
        for groups in groups {
            let mut rows = Rows::default();
            let children: Vec<Vec<usize>> = groups.iter().map(|&(group, _)| self.children(group).collect()).collect();
            let numbers: Vec<_> = children.iter().map(|children| self.add(children, &mut rows)).collect();
            let Classes { classes, odd_cells, .. } = rows.classes(self.text);
            self.odd_cells.extend(odd_cells);
            let of_groups = numbers.into_iter().map(|numbers| of_children(&classes, &numbers));
            self.of_groups.extend(groups.into_iter().map(|(group, _)| group).zip(of_groups));
        }
    }

    /// Returns the arrays of containers that stand at the same keys, two or more, and whether each is opened: a small row is not.
    fn groups(&self) -> Vec<Vec<(usize, bool)>> {
        struct Open {
            end: usize,
            /// Hash of the keys that lead to it.
            path: u64,
            has_rows: bool,
            is_opened: bool,
        }
        let mut alike: HashMap<u64, Vec<(usize, bool)>> = HashMap::new();
        let mut open: Vec<Open> = Vec::new();
        let mut next = 0;
        while let Some(&node) = self.found.get(next) {
            let index = next;
            while open.pop_if(|open| open.end <= index).is_some() {}
            if matches!(node.shape, Shape::Leaf | Shape::Text) || open.len() == MAX_ROWS_DEPTH {
                next = node.skip as usize;
                continue;
            }
            next += 1;
            let outside = open.last();
            let is_row = outside.is_some_and(|outside| outside.has_rows);
            let is_opened = outside.is_none_or(|outside| outside.is_opened) && !(is_row && self.is_small(node));
            let key = if is_row { "" } else { &self.text[node.start as usize..self.value(index)] };
            let path = xxh3_64_with_seed(key.as_bytes(), outside.map_or(0, |outside| outside.path));
            let is_array = node.shape == Shape::Array;
            if is_array && self.children(index).any(|child| self.is_container(child)) {
                alike.entry(path).or_default().push((index, is_opened));
            }
            let has_rows = is_array || self.has_rows(index);
            open.push(Open { end: node.skip as usize, path, has_rows, is_opened });
        }
        let mut groups: Vec<_> = alike.into_values().filter(|alike| alike.len() > 1).collect();
        groups.sort();
        groups
    }

    fn is_container(&self, index: usize) -> bool {
        opens(self.text.as_bytes()[self.value(index)])
    }

    /// Returns where the value of an element or a member starts.
    fn value(&self, index: usize) -> usize {
        let start = self.found[index].start as usize;
        value_start(self.text.as_bytes(), start).unwrap_or(start)
    }

    /// Adds children to rows; returns the numbers of each.
    fn add(&self, children: &[usize], rows: &mut Rows) -> Vec<Range<usize>> {
        let numbers = children.iter().map(|&child| {
            let Node { start, end, count, .. } = self.found[child];
            let first = rows.add(self.text, start as usize..end as usize, &self.apart) as usize;
            first..first + count as usize
        });
        numbers.collect()
    }

    /// Returns the task for the rows of an array.
    fn rows(&mut self, index: usize) -> Vec<Task> {
        let mut rows = Rows::default();
        let children: Vec<usize> = self.children(index).collect();
        let numbers = self.add(&children, &mut rows);
        let Classes { classes, odd_cells, names } = rows.classes(self.text);
        self.odd_cells.extend(odd_cells);
        self.has_rows = true;
        self.head_rows(index, &children);
        self.name(&children, &numbers, &names);
        let mut classes = of_children(&classes, &numbers);
        if let Some(of_groups) = self.of_groups.remove(&index) {
            if classes.len() < FEW_ROWS {
                classes = of_groups;
            } else {
                classes.iter_mut().zip(of_groups).for_each(|(class, of_groups)| *class = class.or(of_groups));
            }
        }
        log::edges(&mut classes, (2, 2));
        if let Some(first) = classes.first_mut() {
            *first = Class::Header.or(*first);
        }
        let task = |(child, class): (usize, Class)| {
            if self.is_small(self.found[child]) { Task::Row(child, class) } else { Task::Node(child, class) }
        };
        children.into_iter().zip(classes).map(task).collect()
    }

    /// Notes what names the opened ones of the rows `children`, by their numbers.
    fn name(&mut self, children: &[usize], numbers: &[Range<usize>], names: &[(u32, usize)]) {
        let mut names = names.iter().peekable();
        for (&child, number) in children.iter().zip(numbers) {
            let node = self.found[child];
            let of_row = std::iter::from_fn(|| names.next_if(|(row, _)| (*row as usize) < number.end));
            let names: Vec<usize> = of_row.map(|(_, start)| *start).collect();
            if !names.is_empty() && !self.is_small(node) {
                self.named.push(NamedValue { bytes: node.start as usize..node.end as usize, names, is_record: true });
            }
        }
    }

    /// Notes the heading of the rows `children` of a container, which have no keys: the list of their columns beside it, else the first
    /// of them.
    fn head_rows(&mut self, index: usize, children: &[usize]) {
        let (Some(&first), Some(&last)) = (children.first(), children.last()) else { return };
        let Node { start, end, .. } = self.found[first];
        if !self.text[start as usize..].starts_with('[') {
            return;
        }
        let heading = self.headings.get(&index).map(|heading| self.found[*heading].start as usize);
        let rows = if heading.is_some() { start } else { end } as usize..self.found[last].end as usize;
        if !rows.is_empty() {
            let names = vec![heading.unwrap_or(start as usize)];
            self.named.push(NamedValue { bytes: rows, names, is_record: false });
        }
    }

    /// Notes which members of an object are lists of strings with as many elements as the rows without keys in another one.
    fn find_headings(&mut self, children: &[usize]) {
        let bytes = self.text.as_bytes();
        for &rows in children {
            let value = self.value(rows);
            let first_row = skip_spaces(bytes, value + 1);
            if bytes.get(value) != Some(&b'[') || bytes.get(first_row) != Some(&b'[') {
                continue;
            }
            let columns = elements(bytes, first_row);
            let is_list = |value: Range<usize>| {
                let first = skip_spaces(bytes, value.start + 1);
                bytes[value.start] == b'['
                    && matches!(bytes.get(first), Some(b'"' | b'\''))
                    && elements(bytes, value.start) == columns
            };
            let is_heading = |&child: &usize| {
                let Node { start, end, .. } = self.found[child];
                child != rows && values(bytes, start as usize..end as usize).any(is_list)
            };
            let heading = children.iter().copied().find(is_heading);
            self.headings.extend(heading.map(|heading| (rows, heading)));
        }
    }

    /// Notes the short members beside a list as what says whose its elements are: `"currency": "CHF", "products": [...]`.
    fn head_lists(&mut self, children: &[usize]) {
        let bytes = |child: usize| self.found[child].start as usize..self.found[child].end as usize;
        // `true` and `null` say whose nothing is.
        let says_whose = |child: usize| matches!(self.text.as_bytes()[self.value(child)], b'"' | b'\'' | b'0'..=b'9');
        let is_short = |child: &usize| {
            self.is_leaf(*child) && bytes(*child).len() <= MAX_HEADING_MEMBER_BYTES && says_whose(*child)
        };
        let short: Vec<usize> = children.iter().copied().filter(is_short).collect();
        let (Some(&last), true) = (short.last(), short.len() <= MAX_HEADING_MEMBERS) else { return };
        let under = |child: usize, name: usize| NamedValue {
            bytes: bytes(child),
            names: vec![bytes(name).start],
            is_record: false,
        };
        let lists =
            children.iter().filter(|child| self.has_list(**child, HEADED_DEPTH)).map(|&child| under(child, last));
        let mut named: Vec<NamedValue> = lists.collect();
        if !named.is_empty() {
            named.extend(short.windows(2).map(|pair| under(pair[1], pair[0])));
        }
        self.named.extend(named);
    }

    /// Returns whether the value of a member is a list of several rows, or an object with one, up to so deep.
    fn has_list(&self, index: usize, depth: usize) -> bool {
        if !self.is_container(index) {
            return false;
        }
        match self.text.as_bytes()[self.value(index)] {
            b'[' => self.children(index).nth(MIN_HEADED - 1).is_some(),
            _ => depth > 0 && self.children(index).any(|child| self.has_list(child, depth - 1)),
        }
    }

    /// Returns the parents of the pieces, and the pieces of each record.
    fn parents(&self) -> (Parents, Vec<Range<u32>>) {
        let mut parents = Parents::none(self.pieces.len());
        let piece_at = |byte: usize| at(self.pieces.partition_point(|piece| piece.end as usize <= byte));
        let mut records = Vec::new();
        for NamedValue { bytes, names, is_record } in &self.named {
            let (first, last) = (piece_at(bytes.start), piece_at(bytes.end - 1));
            let names: Vec<u32> = names.iter().map(|&start| piece_at(start)).collect();
            for piece in first..=last {
                let before = names.iter().rev().find(|name| **name < piece);
                if let Some(&name) = before.or(names.first()).filter(|name| **name != piece) {
                    parents.set(piece, name);
                }
            }
            if *is_record {
                records.push(first..last + 1);
            }
        }
        for &(piece, parent) in &self.within {
            parents.set(piece, parent);
        }
        records.sort_by_key(|record| record.start);
        (parents.without_circles(), records)
    }

    /// Opens a long string: what it says is split as any other text.
    fn parts(&mut self, node: Node) {
        let body = body(self.text, node);
        let said = Unescaped::of(&self.text[body.clone()]);
        let first = self.pieces.len();
        // The key and opening brackets before it belong to the first part.
        let mut start = self.pieces.last().map_or(0, |last| last.end);
        let segments = Segments::of(&said.text);
        self.within.extend(segments.parents.iter().map(|(piece, parent)| (piece + at(first), parent + at(first))));
        for piece in segments.pieces() {
            let end = at(body.start + said.in_body(piece.end as usize));
            self.pieces.push(Span { start, end, class: piece.class });
            start = end;
        }
        if segments.kind() == Kind::Json && self.text.as_bytes()[body.start - 1] == b'"' {
            self.inner.push((self.nodes.len() - 1, segments));
        }
        debug_assert!(self.pieces.len() > first, "a long string says something");
    }
}

/// Returns the classes of children, by the numbers of their rows.
fn of_children(classes: &[Class], numbers: &[Range<usize>]) -> Vec<Class> {
    let of_rows = |rows: &Range<usize>| classes[rows.clone()].iter().copied().reduce(Class::or).unwrap_or(Class::Plain);
    numbers.iter().map(of_rows).collect()
}

/// Most members beside a list that head it, most bytes of each, fewest elements of the list, and how deep it may stand.
const MAX_HEADING_MEMBERS: usize = 4;
const MAX_HEADING_MEMBER_BYTES: usize = 64;
const MIN_HEADED: usize = 4;
const HEADED_DEPTH: usize = 2;

/// Ends of the keys whose string is what the next call of a listing takes, in lower case without `_` and `-`; and the longest member
/// that is looked at.
const GOES_ON: [&str; 7] =
    ["cursor", "pagetoken", "nexttoken", "continuationtoken", "\"continue", "\"next", "nextlink"];
const MAX_MEMBER_BYTES: usize = 400;

/// Returns whether a member, or one in it, says where a listing goes on: `"next_cursor": "dXNl"`.
fn says_how_to_go_on(source: &str) -> bool {
    let parts = || source.split("\":").zip(source.split("\":").skip(1));
    source.len() <= MAX_MEMBER_BYTES
        && parts().any(|(before, value)| {
            let value = value.trim_start();
            if !value.starts_with(['"', '{']) || value.starts_with("\"\"") {
                return false;
            }
            let key = before.to_ascii_lowercase().replace(['_', '-'], "");
            GOES_ON.iter().any(|end| key.ends_with(end))
        })
}

/// Iterates over the values in the consecutive elements or members of `range`, valid JSON.
fn values(bytes: &[u8], range: Range<usize>) -> impl Iterator<Item = Range<usize>> {
    let mut position = range.start;
    std::iter::from_fn(move || {
        let start = (position < range.end).then(|| value_start(bytes, position).unwrap_or(position))?;
        let end = value_end(bytes, start);
        position = behind_comma(bytes, end);
        Some(start..end)
    })
}

/// Returns the number of elements of the array at `position`.
fn elements(bytes: &[u8], position: usize) -> usize {
    let end = value_end(bytes, position) - 1;
    values(bytes, skip_spaces(bytes, position + 1)..end).count()
}

/// Returns the body of the string literal that a node is, or has as its value.
pub fn body(text: &str, node: Node) -> Range<usize> {
    let start = node.start as usize;
    // Only a key has a colon behind it.
    value_start(text.as_bytes(), start).unwrap_or(start) + 1..node.end as usize - 1
}
