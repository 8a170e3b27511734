//! Splits JSON as a tree, so that it stays JSON whatever is kept.
//!
//! [`parse`] checks the grammar and finds values, [`build`] makes pieces, `rows` finds rows that differ, [`render`] writes
//! what stays. All copy source text: no number is parsed and printed again.

mod build;
mod parse;
mod render;
mod rows;

pub use build::tree;
pub use render::render;

use std::ops::Range;

use super::Segments;

/// Most records before a piece that may be around it, and most pieces of one.
const MAX_RECORDS_BEFORE: usize = 64;
const MAX_PIECES: usize = 128;

/// The shape of a node.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum Shape {
    /// One value or member, or a few short ones, that stay or go together.
    Leaf,
    /// A long string, opened into parts.
    Text,
    Array,
    Object,
    /// Values one a line.
    Lines,
}

/// An element or member; the children of a node follow it.
#[derive(Copy, Clone, Debug)]
pub struct Node {
    pub start: u32,
    pub end: u32,
    /// Index of the first node that is not a descendant.
    pub skip: u32,
    /// Number of values: several for a joined leaf.
    pub count: u32,
    /// Index of its first piece.
    pub piece: u32,
    pub shape: Shape,
    /// Whether its closing bracket is there.
    pub is_closed: bool,
}

/// The opened values of a JSON text, and the leaves between them.
#[derive(Debug)]
pub struct Tree {
    nodes: Vec<Node>,
    /// Number of pieces before the JSON.
    before: usize,
    /// Index of the first piece behind the JSON, and its start.
    behind: (usize, usize),
    /// By node, in order: what a long string says that is JSON itself, as tools wrap it.
    inner: Vec<(usize, Segments)>,
    /// The pieces of each opened row, outer before inner ones; all where nothing has rows.
    records: Vec<Range<u32>>,
}

impl Tree {
    /// Returns the bytes that it has on the heap.
    pub fn heap_bytes(&self) -> usize {
        let inner: usize = self.inner.iter().map(|(_, inner)| size_of_val(inner) + inner.heap_bytes()).sum();
        self.nodes.capacity() * size_of::<Node>() + self.records.capacity() * size_of::<Range<u32>>() + inner
    }

    /// Returns the JSON that the string of a node says.
    fn inner(&self, node: usize) -> Option<&Segments> {
        let at = self.inner.binary_search_by_key(&node, |(node, _)| *node).ok()?;
        Some(&self.inner[at].1)
    }

    /// Returns the pieces of the innermost record that a piece is in.
    pub fn record(&self, piece: u32) -> Option<Range<u32>> {
        let behind = self.nodes.partition_point(|node| node.piece <= piece);
        if let Some(owner) = behind.checked_sub(1).filter(|owner| self.nodes[*owner].shape == Shape::Text)
            && let Some(inner) = self.inner(owner)
        {
            let first = self.nodes[owner].piece;
            let of_inner = inner.record(piece - first)?;
            return Some(of_inner.start + first..of_inner.end + first);
        }
        let before = self.records.partition_point(|record| record.start <= piece);
        let near = self.records[..before].iter().rev().take(MAX_RECORDS_BEFORE);
        near.filter(|record| piece < record.end && record.len() <= MAX_PIECES)
            .min_by_key(|record| record.len())
            .cloned()
    }

    /// Returns whether a piece is a part of a long string, and not its first one.
    pub fn is_within_string(&self, piece: u32) -> bool {
        let behind = self.nodes.partition_point(|node| node.piece <= piece);
        let owner = behind.checked_sub(1).map(|i| self.nodes[i]);
        owner.is_some_and(|node| node.shape == Shape::Text && node.piece < piece)
    }

    /// Iterates over root members: first piece and source. Several short ones may be one.
    pub fn members<'t>(&self, text: &'t str) -> impl Iterator<Item = (usize, &'t str)> {
        let mut at = 1;
        let is_object = self.nodes.first().is_some_and(|root| root.shape == Shape::Object);
        std::iter::from_fn(move || {
            let Node { start, end, skip, piece, .. } = *self.nodes.get(at).filter(|_| is_object)?;
            at = skip as usize;
            Some((piece as usize, &text[start as usize..end as usize]))
        })
    }
}

#[cfg(test)]
mod tests;
