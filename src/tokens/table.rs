//! The merges of a vocabulary: which two tokens become one, and when.
//!
//! A count needs no ids, so nothing else is stored of a vocabulary.
//!
//! **When.** A rank matters only against the ranks of merges that it can meet: those that share a part with it. A table stores
//! levels, which keep the order of every two merges that can meet, and of a merge and its parts: 392 to 1,329 levels in place of
//! 100,000 to 250,000 ranks, and most merges have one of a few. Merging by level ends where merging by rank ends. Say that `e` is
//! the first merge by level that merging by rank does not make. Then merging by rank gave one of its two parts to another merge
//! `f`, whose level is lower, since they share that part. Merging by level has not made `f`, though all that `f` is made of has
//! lower levels than `f`: so there was a merge with a lower level than `e`, and that one would have come first.
//!
//! **Which.** Only 20 to 30 % of the tokens ever merge further. They are numbered, bytes by themselves first, and the number of the
//! right part is the place of the merge in the row of the left part. Rows overlap where their gaps allow (Tarjan and Yao, "Storing
//! a sparse table"); a slot holds the right part, which tells whose it is, since no two rows have the same base. Rows of many
//! merges are split by the low bits of the right part, or they would fit nowhere.
//!
//! A file has right parts, levels and results in planes of bytes, which deflate to 9 % less than slots side by side. The first count
//! puts them side by side, in half a millisecond and two megabytes: a merge that is found is one line of the cache in place of six.
//!
//! Tried and dropped, on `o200k_base`: ranks in place of levels, and levels as low as they can be (a third larger).

#![allow(clippy::cast_possible_truncation)] // parts of a merge

use std::sync::OnceLock;

use super::seams::{self, Seams};

/// A token that merges with nothing.
pub(super) const LAST: u16 = u16::MAX;
/// The level of no merge; above all others.
pub(super) const NEVER: u16 = 2047;

/// In the high byte of a level: its other bits mark merges and characters of one of two vocabularies in the same table.
const LEVEL: u8 = 0x07;

/// A vocabulary as `scripts/tables.rs` lays it out. Numbers are little-endian.
pub(super) struct Table {
    /// For each token that merges further `base << 4`, or `first << 4 | bits` where `bits` low bits of the right part choose a base.
    rows: &'static [[u8; 4]],
    bases: &'static [[u8; 4]],
    right: [&'static [u8]; 2],
    level: [&'static [u8]; 2],
    made: [&'static [u8]; 2],
    /// Tokens that no merges make: a piece that is one of them counts as one. Sorted.
    unmade_ends: &'static [[u8; 4]],
    unmade: &'static [u8],
    /// Bits of the high byte of a level that mark merges of the other vocabulary in the same table.
    absent: u8,
    /// The bit that marks characters which are sure to become one token.
    whole: u8,
    seams: Seams,
    slots: OnceLock<Box<[Merge]>>,
}

/// A merge: its right part, its level, what it makes, and whether that is a whole character. 8 bytes, of which one load is made.
#[derive(Clone, Copy)]
pub(super) struct Merge(u64);

impl Merge {
    const NONE: Self = Self(LAST as u64);

    fn right(self) -> u16 {
        self.0 as u16
    }

    pub(super) fn level(self) -> u16 {
        (self.0 >> 16) as u16
    }

    pub(super) fn made(self) -> u16 {
        (self.0 >> 32) as u16
    }

    /// Returns whether a character becomes this token, byte after byte, whatever stands beside it.
    fn is_whole(self) -> bool {
        self.0 >> 48 != 0
    }
}

/// The merges of one vocabulary, as they are looked up.
#[derive(Clone, Copy)]
pub(super) struct Merges<'a> {
    table: &'a Table,
    slots: &'a [Merge],
}

impl Table {
    pub(super) const fn new(
        data: &'static [u8],
        seams: &'static [u8; seams::BYTES],
        (absent, whole): (u8, u8),
    ) -> Self {
        let (head, data) = data.split_at(16);
        let head = head.as_chunks::<4>().0;
        let [rows, bases, slots, unmade] = [number(head[0]), number(head[1]), number(head[2]), number(head[3])];
        let (rows, data) = data.split_at(4 * rows);
        let (bases, data) = data.split_at(4 * bases);
        let (right_low, data) = data.split_at(slots);
        let (right_high, data) = data.split_at(slots);
        let (level_low, data) = data.split_at(slots);
        let (level_high, data) = data.split_at(slots);
        let (made_low, data) = data.split_at(slots);
        let (made_high, data) = data.split_at(slots);
        let (unmade_ends, unmade) = data.split_at(4 * unmade);
        Self {
            rows: rows.as_chunks().0,
            bases: bases.as_chunks().0,
            right: [right_low, right_high],
            level: [level_low, level_high],
            made: [made_low, made_high],
            unmade_ends: unmade_ends.as_chunks().0,
            unmade,
            absent,
            whole,
            seams: Seams(seams),
            slots: OnceLock::new(),
        }
    }

    pub(super) fn merges(&self) -> Merges<'_> {
        Merges { table: self, slots: self.slots.get_or_init(|| self.side_by_side()) }
    }

    fn side_by_side(&self) -> Box<[Merge]> {
        let plane = |[low, high]: [&'static [u8]; 2]| low.iter().zip(high).map(|(&low, &high)| (low, high));
        plane(self.right)
            .zip(plane(self.level))
            .zip(plane(self.made))
            .map(|((right, level), made)| {
                if level.1 & self.absent != 0 {
                    return Merge::NONE;
                }
                let number = |(low, high)| u64::from(u16::from_le_bytes([low, high]));
                let is_whole = u64::from(level.1 & self.whole != 0);
                Merge(number(right) | number((level.0, level.1 & LEVEL)) << 16 | number(made) << 32 | is_whole << 48)
            })
            .collect()
    }

    /// Returns whether `piece` is a token that no merges make.
    pub(super) fn is_unmade(&self, piece: &[u8]) -> bool {
        let ends = |at: usize| self.unmade_ends.get(at).map_or(0, |end| number(*end));
        let token = |at: usize| &self.unmade[if at == 0 { 0 } else { ends(at - 1) }..ends(at)];
        let (mut low, mut high) = (0, self.unmade_ends.len());
        while low < high {
            let middle = usize::midpoint(low, high);
            if token(middle) < piece { low = middle + 1 } else { high = middle }
        }
        low < self.unmade_ends.len() && token(low) == piece
    }
}

const fn number(bytes: [u8; 4]) -> usize {
    u32::from_le_bytes(bytes) as usize
}

impl Merges<'_> {
    pub(super) fn is_unmade(self, piece: &[u8]) -> bool {
        self.table.is_unmade(piece)
    }

    /// Returns whether any token is unmade.
    pub(super) fn has_unmade(self) -> bool {
        !self.table.unmade_ends.is_empty()
    }

    pub(super) fn seams(self) -> Seams {
        self.table.seams
    }

    /// Returns the merge of two neighbours.
    #[inline]
    pub(super) fn find(self, left: u16, right: u16) -> Option<Merge> {
        let row = u32::from_le_bytes(*self.table.rows.get(usize::from(left))?);
        let bits = row & 15;
        let base = if bits == 0 {
            row >> 4
        } else {
            let place = (row >> 4) + (u32::from(right) & ((1 << bits) - 1));
            u32::from_le_bytes(*self.table.bases.get(place as usize)?)
        };
        // bases are stored that much higher than they are, so as not to be negative
        let slot = (base + u32::from(right)).wrapping_sub(self.table.rows.len() as u32);
        // what an empty slot holds is `LAST`
        self.slots.get(slot as usize).copied().filter(|merge| merge.right() == right && right != LAST)
    }

    /// Cuts the start of `bytes` into at most `most` parts: characters where they are sure to become one token, bytes elsewhere.
    /// Returns the bytes taken.
    #[inline]
    pub(super) fn cut(self, bytes: &[u8], most: usize, mut add: impl FnMut(usize, u16)) -> usize {
        let mut at = 0;
        for _ in 0..most {
            if at >= bytes.len() {
                break;
            }
            let (id, length) = self.part(bytes, at);
            add(at, id);
            at += length;
        }
        at
    }

    /// Returns what merging starts with at `at`, and its bytes.
    #[inline]
    pub(super) fn part(self, bytes: &[u8], at: usize) -> (u16, usize) {
        let byte = bytes[at];
        // only behind another such character is it known what can come before it
        let follows = at == 0 || bytes[at - 1] >= 0x80;
        let whole = if byte >= 0xc2 && follows { self.character(bytes, at) } else { None };
        whole.unwrap_or((u16::from(byte), 1))
    }

    /// Returns the token that the character at `at` is sure to become, and its bytes.
    #[inline]
    fn character(self, bytes: &[u8], at: usize) -> Option<(u16, usize)> {
        let first = bytes[at];
        let length = 2 + usize::from(first >= 0xe0) + usize::from(first >= 0xf0);
        let mut id = u16::from(first);
        let mut is_whole = false;
        for &byte in bytes.get(at + 1..at + length)? {
            let merge = self.find(id, u16::from(byte))?;
            (id, is_whole) = (merge.made(), merge.is_whole());
        }
        is_whole.then_some((id, length))
    }
}
