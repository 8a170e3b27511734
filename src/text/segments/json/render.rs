//! Writes what stays of a JSON text.

use std::collections::HashSet;

use crate::text::elision::{self, Elements, Marks};
use crate::text::json_string::Unescaped;
use crate::text::segments::Span;
use crate::text::segments::render::{LineEnd, Rendering, absorb_marks};

use super::build::body;
use super::parse::{opens, value_start};
use super::{Node, Shape, Tree};

/// Most spaces kept between two elements beside a gap.
const MAX_SPACES: usize = 80;

/// A gap this short is kept: its mark would be longer.
const SHOWN_GAP_BYTES: usize = 24;

/// Joins kept pieces with the brackets, keys and commas that JSON needs.
pub fn render(tree: &Tree, pieces: &[Span], text: &str, mut kept: Vec<bool>, marks: Marks<'_>) -> String {
    if kept.iter().all(|kept| *kept) {
        return text.to_owned();
    }
    let (last, end) = tree.behind;
    let mut kept_behind = kept.split_off(last);
    let (pieces, behind) = pieces.split_at(last);
    let (mut out, is_explained) = render_json(tree, pieces, &text[..end], kept, marks);
    if kept_behind.first() == Some(&false) {
        out.push('\n');
    }
    absorb_marks(behind, text, &(end..text.len()), &mut kept_behind);
    let mut run = Rendering::new(text, LineEnd::Feed, marks).after(out, is_explained);
    run.push(behind, &kept_behind, end..text.len());
    run.out
}

/// Renders the JSON and the lines before it; also returns whether a mark was written.
fn render_json(tree: &Tree, pieces: &[Span], text: &str, mut kept: Vec<bool>, marks: Marks<'_>) -> (String, bool) {
    let Some(&root) = tree.nodes.first() else { return (text.to_owned(), false) };
    // Before marks are merged: a string reduced to its mark is a mark, not a lost member.
    let mut until = Vec::with_capacity(kept.len() + 1);
    let mut count = 0_u32;
    until.push(count);
    for &is_kept in &kept {
        count += u32::from(is_kept);
        until.push(count);
    }
    for (index, node) in tree.nodes.iter().enumerate() {
        if node.shape == Shape::Text && tree.inner(index).is_none() {
            let range = node.piece as usize..tree.pieces_end(index, pieces.len());
            let span = body(text, *node);
            absorb_marks(&pieces[range.clone()], text, &span, &mut kept[range]);
        }
    }
    let escaped = marks.archive_path.map(elision::escaped);
    let archive_path = marks.archive_path;
    let mut writer =
        Writer { tree, pieces, text, kept, until, marks, archive_path, is_explained: false, out: String::new() };
    let ends = |at: usize| writer.until.get(at).copied().unwrap_or(0);
    let is_first = ends(tree.before + 1) > ends(tree.before);
    let is_last = ends(pieces.len()) > ends(pieces.len().saturating_sub(1));
    let lines = writer.before();
    writer.marks.archive_path = escaped.as_deref();
    writer.spaces(lines, root.start as usize, is_first);
    if root.shape == Shape::Leaf && !is_first {
        // An empty container, maybe with much space in it.
        writer.out.push_str(if text[root.start as usize..].starts_with('{') { "{}" } else { "[]" });
    } else {
        writer.all();
    }
    writer.spaces(root.end as usize, text.len(), is_last);
    (writer.out, writer.is_explained)
}

impl Tree {
    /// Returns the index behind the last piece of a node.
    fn pieces_end(&self, index: usize, pieces: usize) -> usize {
        self.nodes.get(self.nodes[index].skip as usize).map_or(pieces, |next| next.piece as usize)
    }
}

struct Writer<'t> {
    tree: &'t Tree,
    pieces: &'t [Span],
    text: &'t str,
    kept: Vec<bool>,
    /// By piece: number of kept pieces before it.
    until: Vec<u32>,
    marks: Marks<'t>,
    /// As it is; `marks` has it as a string of JSON has it.
    archive_path: Option<&'t str>,
    is_explained: bool,
    out: String,
}

impl<'t> Writer<'t> {
    /// Adds the lines before the JSON; returns where they end.
    fn before(&mut self) -> usize {
        let pieces = &self.pieces[..self.tree.before];
        let Some(last) = pieces.last() else { return 0 };
        let end = last.end as usize;
        absorb_marks(pieces, self.text, &(0..end), &mut self.kept[..pieces.len()]);
        let mut run = Rendering::new(self.text, LineEnd::Feed, self.marks);
        run.push(pieces, &self.kept[..pieces.len()], 0..end);
        self.is_explained = run.is_explained();
        self.out = run.out;
        end
    }

    fn has_kept(&self, index: usize) -> bool {
        let end = self.tree.pieces_end(index, self.pieces.len());
        self.until[end] > self.until[self.tree.nodes[index].piece as usize]
    }

    fn source(&self, start: usize, end: usize) -> &'t str {
        &self.text[start..end]
    }

    /// Adds white space, all of it if `whole`.
    fn spaces(&mut self, start: usize, end: usize, whole: bool) {
        let source = self.source(start, end);
        if whole || source.len() <= MAX_SPACES {
            self.out.push_str(source);
        } else {
            // Values are separated by a comma, or JSON lines by a line end.
            self.out.push_str(if source.contains(',') { ", " } else { "\n" });
        }
    }

    /// Adds the root and what is in it; nesting costs no stack.
    fn all(&mut self) {
        let mut open: Vec<Open> = self.node(0).into_iter().collect();
        while let Some(container) = open.last_mut() {
            match self.go_on(container) {
                Some(child) => open.extend(self.node(child)),
                None => drop(open.pop()),
            }
        }
    }

    /// Adds a node; returns it if it is a container with more to add.
    fn node(&mut self, index: usize) -> Option<Open> {
        let node = self.tree.nodes[index];
        match node.shape {
            Shape::Leaf => self.out.push_str(self.source(node.start as usize, node.end as usize)),
            Shape::Text => self.string(index, node),
            Shape::Array | Shape::Object | Shape::Lines => return Some(self.container(index, node)),
        }
        None
    }

    fn string(&mut self, index: usize, node: Node) {
        let body = body(self.text, node);
        let end = body.end;
        let range = node.piece as usize..self.tree.pieces_end(index, self.pieces.len());
        self.out.push_str(self.source(node.start as usize, body.start));
        let inner = self.tree.inner(index).filter(|_| self.kept[range.clone()].contains(&false));
        if let Some(inner) = inner {
            let said = Unescaped::of(&self.text[body]).text;
            let marks = Marks { archive_path: self.archive_path.filter(|_| !self.is_explained), ..self.marks };
            let short = inner.excerpt(&said, &|piece| self.kept[range.start + piece], marks);
            self.is_explained = true;
            let literal = serde_json::Value::from(short).to_string();
            self.out.push_str(&literal[1..]);
            return;
        }
        let mut run = Rendering::new(self.text, LineEnd::Escape, self.marks)
            .after(std::mem::take(&mut self.out), self.is_explained);
        run.push(&self.pieces[range.clone()], &self.kept[range], body);
        self.is_explained = run.is_explained();
        self.out = run.out;
        self.out.push_str(self.source(end, end + 1));
    }

    fn container(&mut self, index: usize, node: Node) -> Open {
        let children = self.children(index, node.shape);
        let behind = self.open(node);
        let bytes = self.text.as_bytes();
        let is_row = |child: &Child| opens(bytes[self.tree.nodes[child.index].start as usize]);
        let what = match node.shape {
            Shape::Object => Elements::Keys,
            _ if children.iter().any(is_row) => Elements::Rows,
            _ => Elements::Items,
        };
        let total = children.iter().map(|child| child.stands_for).sum();
        let has_any = children.iter().any(|child| child.is_kept);
        Open { node, children, behind, what, total, has_any, next: 0, is_told: false }
    }

    /// Adds the contents of a container up to the next kept child, and returns that; at the end closes it.
    fn go_on(&mut self, open: &mut Open) -> Option<usize> {
        let tree = self.tree;
        let Open { node, ref children, behind, what, total, has_any, ref mut next, ref mut is_told } = *open;
        let end_of = |i: usize| children.get(i).map(|child| tree.nodes[child.index].end as usize);
        let start_of = |i: usize| tree.nodes[children[i].index].start as usize;
        while *next < children.len() {
            let first = *next;
            let separator = first.checked_sub(1).and_then(end_of).unwrap_or(behind)..start_of(first);
            if children[first].is_kept {
                let child = children[first].index;
                self.spaces(separator.start, separator.end, self.kept[tree.nodes[child].piece as usize]);
                *next += 1;
                return Some(child);
            }
            let gap = children[first..].iter().take_while(|child| !child.is_kept).count();
            *next += gap;
            let source = self.source(start_of(first), end_of(*next - 1).unwrap_or(behind));
            if has_any && source.len() <= SHOWN_GAP_BYTES && node.shape != Shape::Object {
                self.spaces(separator.start, separator.end, false);
                self.out.push_str(source);
            } else if !*is_told {
                self.spaces(separator.start, separator.end, false);
                // An object has one mark for all members: keys are unique.
                *is_told = node.shape == Shape::Object;
                let run = if *is_told { &children[..] } else { &children[first..*next] };
                let gone = run.iter().filter(|child| !child.is_kept).map(|child| child.stands_for).sum();
                self.gap(children, what, gone, total);
            }
        }
        if let Some(last) = children.last() {
            let last_piece = tree.pieces_end(last.index, self.pieces.len()) - 1;
            let (from, to) = (end_of(children.len() - 1).unwrap_or(behind), node.end as usize);
            let close = if node.shape == Shape::Lines || !node.is_closed { to } else { to - 1 };
            self.spaces(from, close, self.kept[last_piece]);
            self.out.push_str(self.source(close, to));
        }
        None
    }

    /// Opens a container; returns the position behind it.
    fn open(&mut self, node: Node) -> usize {
        let start = node.start as usize;
        if node.shape == Shape::Lines {
            return start;
        }
        let bracket = value_start(self.text.as_bytes(), start).unwrap_or(start);
        self.out.push_str(self.source(start, bracket + 1));
        bracket + 1
    }

    fn children(&self, index: usize, shape: Shape) -> Vec<Child> {
        let nodes = &self.tree.nodes;
        let (mut children, mut at, mut has_marks) = (Vec::new(), index + 1, false);
        while at < nodes[index].skip as usize {
            let Node { start, end, count, skip, shape, .. } = nodes[at];
            let source = || self.source(start as usize, end as usize);
            let earlier = if shape == Shape::Leaf { elision::read_json_gap(source()) } else { None };
            let stands_for = earlier.map_or(u64::from(count), |(gone, _)| gone);
            has_marks |= earlier.is_some();
            children.push(Child { index: at, is_kept: self.has_kept(at), is_mark: earlier.is_some(), stands_for });
            at = skip as usize;
        }
        if has_marks {
            absorb(&mut children, shape == Shape::Object);
        }
        children
    }

    /// Adds the mark for `gone` of `total` elements.
    fn gap(&mut self, children: &[Child], what: Elements, gone: u64, total: u64) {
        let archive_path = self.marks.archive_path.filter(|_| !self.is_explained);
        self.is_explained = true;
        let mark = elision::json_gap(gone, total, what, Marks { archive_path, ..self.marks });
        let ellipsis = elision::GAP_KEY;
        let literal = match what {
            Elements::Keys => format!("\"{}\": \"{mark}\"", self.free_key(children)),
            _ => format!("\"{ellipsis} {mark} {ellipsis}\""),
        };
        self.out.push_str(&literal);
    }

    /// Returns a key that no kept member has.
    fn free_key(&self, children: &[Child]) -> String {
        let taken: HashSet<&str> = children
            .iter()
            .filter(|child| child.is_kept)
            .filter_map(|child| {
                let Node { start, end, .. } = self.tree.nodes[child.index];
                let body = elision::json_gap_body(self.source(start as usize, end as usize))?;
                body.split('"').next()
            })
            .collect();
        let mut key = String::new();
        let mut number = 1;
        while taken.contains(&*key) {
            number += 1;
            key = number.to_string();
        }
        [elision::GAP_KEY, &key].concat()
    }
}

/// A container being written.
struct Open {
    node: Node,
    children: Vec<Child>,
    /// End of its opening bracket.
    behind: usize,
    /// The name of its children in a mark, and their number.
    what: Elements,
    total: u64,
    /// Whether any child stays.
    has_any: bool,
    /// The next child.
    next: usize,
    /// Whether its only mark was written.
    is_told: bool,
}

/// A kept child of a container.
struct Child {
    index: usize,
    is_kept: bool,
    /// The mark of an earlier call.
    is_mark: bool,
    /// Number of elements that it is or marks.
    stands_for: u64,
}

/// Merges earlier marks beside a gap, or anywhere in an object with one.
fn absorb(children: &mut [Child], is_object: bool) {
    let has_gap = children.iter().any(|child| !child.is_kept);
    if is_object {
        for child in children.iter_mut().filter(|child| child.is_mark) {
            child.is_kept &= !has_gap;
        }
        return;
    }
    for i in 1..children.len() {
        children[i].is_kept &= children[i - 1].is_kept || !children[i].is_mark;
    }
    for i in (1..children.len()).rev() {
        children[i - 1].is_kept &= children[i].is_kept || !children[i - 1].is_mark;
    }
}
