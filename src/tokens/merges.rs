//! Counts the tokens of a piece of text.
//!
//! Byte pair encoding merges the two neighbours with the lowest rank, the leftmost of several, until none are left that merge.
//! [`Merges`] has levels in place of ranks, which ends in the same tokens.
//!
//! **Long pieces** are merged in windows. Neighbours in a true encoding encode to themselves, and a sequence of tokens is the
//! encoding of its text where every two neighbours are (the `bpe` crate of GitHub's rust-gems has the proof). So two windows that
//! have a token in common join there.
//!
//! **Runs** of one character are merged level by level: all merges of a level at once, since what they make merges at higher levels
//! only, and tokens that repeat are counted and not listed. A run of any length takes as many steps as its length has bits.
#![allow(clippy::cast_possible_truncation, clippy::cast_possible_wrap, clippy::cast_sign_loss)] // places within a window, and keys

use crate::checkpoint;

use super::seams::Character;
use super::table::{Merge, Merges, NEVER};

/// Parts of a block: its lowest merge is one minimum over its keys, four instructions for 16-byte vectors.
const BLOCK: usize = 32;

/// Returns what orders the merges of a block: by level, then by place. Biased, since SSE2 has a minimum of signed words only.
fn key(level: u16, at: usize) -> i16 {
    ((level << 5 | (at % BLOCK) as u16) ^ 0x8000) as i16
}

fn level(key: i16) -> u16 {
    (key as u16 ^ 0x8000) >> 5
}

#[inline]
fn smallest(keys: &[i16; BLOCK]) -> i16 {
    let mut lanes = [i16::MAX; 8];
    for chunk in keys.as_chunks::<8>().0 {
        for (lane, &key) in lanes.iter_mut().zip(chunk) {
            *lane = key.min(*lane);
        }
    }
    lanes.into_iter().fold(i16::MAX, i16::min)
}

/// Merges a piece of at most [`BLOCK`] parts and returns the tokens; `None` if it has more.
///
/// A part keeps its place. `alive` has a bit for each that is left; a key belongs to the merge of a part with the next one.
#[inline]
fn merge_short(merges: Merges<'_>, piece: &[u8]) -> Option<usize> {
    const MASK: usize = BLOCK - 1;
    let mut ids = [0; BLOCK];
    let mut keys = [i16::MAX; BLOCK];
    let mut made = [0; BLOCK];
    let mut parts = 0;
    let taken = merges.cut(piece, BLOCK, |_, id| {
        ids[parts & MASK] = id;
        parts += 1;
    });
    if taken < piece.len() {
        return None;
    }
    for at in 1..parts {
        if let Some(merge) = merges.find(ids[(at - 1) & MASK], ids[at & MASK]) {
            (keys[(at - 1) & MASK], made[(at - 1) & MASK]) = (key(merge.level(), at - 1), merge.made());
        }
    }
    let mut alive = u32::MAX >> (BLOCK - parts.clamp(1, BLOCK));
    loop {
        let lowest = smallest(&keys);
        if level(lowest) == NEVER {
            return Some(alive.count_ones() as usize);
        }
        let at = lowest as usize & MASK;
        let behind = alive & (u32::MAX << at) & !(1 << at);
        let gone = behind.trailing_zeros() as usize & MASK;
        let (behind, before) = (behind & behind.wrapping_sub(1), alive & ((1 << at) - 1));
        alive &= !(1 << gone);
        (ids[at], keys[gone], keys[at]) = (made[at], i16::MAX, i16::MAX);
        let mut renew = |left: usize, right: usize| {
            let merge = merges.find(ids[left], ids[right]);
            (keys[left], made[left]) = merge.map_or((i16::MAX, 0), |merge| (key(merge.level(), left), merge.made()));
        };
        if behind != 0 {
            renew(at, behind.trailing_zeros() as usize & MASK);
        }
        if before != 0 {
            renew((MASK - before.leading_zeros() as usize) & MASK, at);
        }
    }
}

/// Runs of a piece, at most.
const RUNS: usize = 16;

/// Returns the tokens of a piece of few runs, each of one token; `None` of another one.
fn merge_runs(merges: Merges<'_>, piece: &[u8]) -> Option<usize> {
    // most pieces show at once that they are none
    let (_, character) = Character::at(piece, 0);
    let repeats = |(byte, next): (&u8, &u8)| byte == next;
    if piece.len() < 2 * RUNS
        || piece.iter().zip(&piece[character..]).take(RUNS).filter(|&pair| repeats(pair)).count() < RUNS / 2
    {
        return None;
    }
    let (mut runs, mut next_runs): (Vec<(u16, usize)>, _) = (Vec::with_capacity(RUNS), Vec::with_capacity(RUNS));
    let mut at = 0;
    while at < piece.len() {
        let byte = piece[at];
        let (id, times, bytes) = if byte < 0x80 {
            let times = piece[at..].iter().take_while(|&&other| other == byte).count();
            (u16::from(byte), times, times)
        } else {
            let (id, bytes) = merges.part(piece, at);
            (id, 1, bytes)
        };
        let is_full = runs.len() == RUNS;
        match runs.last_mut() {
            Some((last, sum)) if *last == id => *sum += times,
            _ if is_full => return None,
            _ => runs.push((id, times)),
        }
        at += bytes;
    }
    loop {
        let level = |left, right| merges.find(left, right).map_or(NEVER, Merge::level);
        let mut lowest = NEVER;
        for (at, &(id, times)) in runs.iter().enumerate() {
            if times > 1 {
                lowest = lowest.min(level(id, id));
            }
            if let Some(&(next, _)) = runs.get(at + 1) {
                lowest = lowest.min(level(id, next));
            }
        }
        if lowest == NEVER {
            return Some(runs.iter().map(|(_, times)| times).sum());
        }
        let mut add = |id: u16, times: usize| match next_runs.last_mut() {
            _ if times == 0 => (),
            Some((last, sum)) if *last == id => *sum += times,
            _ => next_runs.push((id, times)),
        };
        for at in 0..runs.len() {
            let (id, times) = runs[at];
            let at_lowest = |right| merges.find(id, right).filter(|merge| merge.level() == lowest).map(Merge::made);
            if let (Some(made), 2..) = (at_lowest(id), times) {
                add(made, times / 2);
                add(id, times % 2);
            } else if let (Some((next, left)), 1..) = (runs.get_mut(at + 1), times)
                && let Some(made) = at_lowest(*next)
            {
                *left -= 1;
                add(id, times - 1);
                add(made, 1);
            } else {
                add(id, times);
            }
        }
        std::mem::swap(&mut runs, &mut next_runs);
        next_runs.clear();
    }
}

/// Parts that are merged in one go where a piece is longer than a block.
const WINDOW: usize = 256;
/// Windows that have grown beyond this are not kept.
const KEPT: usize = 16 * WINDOW;

/// What merging a piece takes; used again for the next one.
#[derive(Default)]
pub(super) struct Room {
    window: MergeWindow,
    seams: Vec<u32>,
}

impl Room {
    /// Returns the tokens of `piece`, which has a byte at least.
    pub(super) fn count(&mut self, merges: Merges<'_>, piece: &[u8]) -> usize {
        let tokens = self.merge(merges, piece);
        if tokens > 1 && merges.is_unmade(piece) { 1 } else { tokens }
    }

    /// As [`Self::count`], for a part of a piece.
    pub(super) fn merge(&mut self, merges: Merges<'_>, piece: &[u8]) -> usize {
        if let Some(tokens) = merge_runs(merges, piece) {
            return tokens;
        }
        merge_short(merges, piece).unwrap_or_else(|| self.long(merges, piece))
    }

    fn long(&mut self, merges: Merges<'_>, piece: &[u8]) -> usize {
        let Self { window, seams } = self;
        let (mut start, mut tokens, mut most) = (0, 0, WINDOW);
        loop {
            let mut taken = window.merge(merges, &piece[start..], most);
            // bytes at the end of the window that the text behind it may change
            let mut back = taken / 8;
            loop {
                if start + taken == piece.len() {
                    return tokens + window.tokens.len();
                }
                std::mem::swap(seams, &mut window.tokens);
                let at = seams.partition_point(|&start| start as usize + back <= taken);
                if at < 2 || at >= seams.len() {
                    break;
                }
                let from = seams[at - 1];
                let length = seams[at] - from;
                let more = window.merge(merges, &piece[start + from as usize..], most);
                if window.tokens.get(1).map_or(more, |&end| end as usize) == length as usize {
                    (tokens, start, taken) = (tokens + at - 1, start + from as usize, more);
                    back = taken / 8;
                } else {
                    std::mem::swap(seams, &mut window.tokens);
                    back = back * 2 + 1;
                }
            }
            most *= 2;
        }
    }

    /// Lets go of what a huge piece took.
    pub(super) fn shrink(&mut self) {
        if self.window.ids.capacity() > KEPT {
            *self = Self::default();
        }
    }
}

/// As in [`merge_short`], in several blocks.
#[derive(Default)]
struct MergeWindow {
    alive: Vec<u32>,
    /// The lowest key of each block.
    lowest: Vec<i16>,
    ids: Vec<u16>,
    starts: Vec<u32>,
    keys: Vec<i16>,
    made: Vec<u16>,
    /// Where the tokens start, once all is merged.
    tokens: Vec<u32>,
}

impl MergeWindow {
    /// Merges the start of `bytes`, at most `most` parts of it, and returns the bytes taken.
    fn merge(&mut self, merges: Merges<'_>, bytes: &[u8], most: usize) -> usize {
        checkpoint::reached();
        let Self { alive, lowest, ids, starts, keys, made, tokens } = self;
        ids.clear();
        starts.clear();
        let taken = merges.cut(bytes, most, |at, id| {
            ids.push(id);
            starts.push(at as u32);
        });
        let parts = ids.len();
        let blocks = parts.div_ceil(BLOCK);
        keys.clear();
        keys.resize(blocks * BLOCK, i16::MAX);
        made.clear();
        made.resize(parts, 0);
        alive.clear();
        alive.resize(blocks, u32::MAX);
        if let (Some(last), 1..) = (alive.last_mut(), parts % BLOCK) {
            *last = (1 << (parts % BLOCK)) - 1;
        }
        for at in 1..parts {
            if let Some(merge) = merges.find(ids[at - 1], ids[at]) {
                (keys[at - 1], made[at - 1]) = (key(merge.level(), at - 1), merge.made());
            }
        }
        lowest.clear();
        lowest.extend(keys.as_chunks().0.iter().map(smallest));
        // the first of several blocks with the same level, and so the leftmost merge
        while let Some((block, &best)) = lowest.iter().enumerate().min_by_key(|&(_, &key)| level(key)) {
            if level(best) == NEVER {
                break;
            }
            let at = block * BLOCK + best as usize % BLOCK;
            let Some(gone) = next(alive, at) else { break };
            alive[gone / BLOCK] &= !(1 << (gone % BLOCK));
            (ids[at], keys[gone], keys[at]) = (made[at], i16::MAX, i16::MAX);
            let left = previous(alive, at);
            for (left, right) in [(Some(at), next(alive, at)), (left, Some(at))] {
                if let (Some(left), Some(right)) = (left, right) {
                    let merge = merges.find(ids[left], ids[right]);
                    (keys[left], made[left]) =
                        merge.map_or((i16::MAX, 0), |merge| (key(merge.level(), left), merge.made()));
                }
            }
            let touched = [Some(block), Some(gone / BLOCK), left.map(|left| left / BLOCK)];
            for (place, block) in touched.into_iter().enumerate() {
                if let (Some(block), false) = (block, touched[..place].contains(&block)) {
                    lowest[block] = smallest(&keys.as_chunks().0[block]);
                }
            }
        }
        tokens.clear();
        tokens.extend((0..parts).filter(|at| alive[at / BLOCK] >> (at % BLOCK) & 1 == 1).map(|at| starts[at]));
        taken
    }
}

fn next(alive: &[u32], at: usize) -> Option<usize> {
    let mut block = at / BLOCK;
    let mut bits = alive[block] & (u32::MAX << (at % BLOCK)) & !(1 << (at % BLOCK));
    while bits == 0 {
        block += 1;
        bits = *alive.get(block)?;
    }
    Some(block * BLOCK + bits.trailing_zeros() as usize)
}

fn previous(alive: &[u32], at: usize) -> Option<usize> {
    let mut block = at / BLOCK;
    let mut bits = alive[block] & ((1 << (at % BLOCK)) - 1);
    while bits == 0 {
        block = block.checked_sub(1)?;
        bits = alive[block];
    }
    Some(block * BLOCK + BLOCK - 1 - bits.leading_zeros() as usize)
}
