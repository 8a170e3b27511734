//! Counts pieces, and remembers the tokens of words.
//!
//! Most pieces have been there before. Each thread has room for 65,536 words and 4,096 longer ones: 1.2 MB at most. A word
//! has one place, and the last one stays.
//!
//! Tried and dropped: 4,096 words (prose half as fast), 32,768 (prose and code slower by a twentieth), 131,072 (no faster).
#![allow(clippy::cast_possible_truncation)] // keys

use std::cell::RefCell;

use crate::checkpoint;

use super::merges::Room;
use super::table::{Merges, Table};

/// Words that a thread remembers.
const WORDS: usize = 1 << 16;
/// Longer words that a thread remembers.
const LONGER: usize = 1 << 12;
/// Bytes of a word, at most. Its length, vocabulary and tokens fill up an integer of 128 bits.
pub(super) const WORD_BYTES: usize = 14;
/// Bits for the tokens of a word.
const TOKENS: u32 = 7;
/// Bytes of a longer word, at most; two integers.
const LONGER_BYTES: usize = 30;

/// Bytes between two places where a count can be stopped.
pub(super) const STEP_BYTES: usize = 1 << 16;

thread_local! {
    static MEMORY: RefCell<WordMemory> = RefCell::default();
}

#[derive(Default)]
struct WordMemory {
    words: Vec<u128>,
    longer: Vec<[u128; 2]>,
    room: Room,
}

/// Counts the tokens of pieces, on one thread.
pub(super) struct Counter<'a> {
    merges: Merges<'a>,
    /// Tells the vocabularies apart.
    id: u8,
    words: &'a mut [u128; WORDS],
    longer: &'a mut [[u128; 2]; LONGER],
    room: &'a mut Room,
}

impl Counter<'_> {
    pub(super) fn with<R>(table: &Table, id: u8, work: impl FnOnce(&mut Counter<'_>) -> R) -> R {
        let count = |WordMemory { words, longer, room }: &mut WordMemory| {
            // zeros of the system's: only the pages that are used take memory
            if words.is_empty() {
                (*words, *longer) = (vec![0; WORDS], vec![[0; 2]; LONGER]);
            }
            let (Some(words), Some(longer)) = (words.first_chunk_mut(), longer.first_chunk_mut()) else {
                unreachable!("they have been made as long")
            };
            let result = work(&mut Counter { merges: table.merges(), id, words, longer, room });
            room.shrink();
            result
        };
        // a handler of a signal may count while this thread counts
        MEMORY.with(|memory| match memory.try_borrow_mut() {
            Ok(mut memory) => count(&mut memory),
            Err(_) => count(&mut WordMemory::default()),
        })
    }

    /// Returns the tokens of `piece`, which has at least a byte.
    #[inline]
    pub(super) fn piece(&mut self, piece: &[u8]) -> usize {
        match piece.len() {
            1 => 1,
            length if length <= WORD_BYTES => self.word(block_of(piece), piece),
            length if length <= LONGER_BYTES => self.longer(piece),
            _ => self.parts(piece),
        }
    }

    /// Returns the tokens of a word of at most [`WORD_BYTES`], which `block` holds with zeros behind it.
    #[inline]
    pub(super) fn word(&mut self, block: u128, piece: &[u8]) -> usize {
        self.known(block, piece, Self::parts)
    }

    #[inline]
    fn known(&mut self, block: u128, piece: &[u8], count: impl Fn(&mut Self, &[u8]) -> usize) -> usize {
        let word = block | u128::from(self.id << 4 | piece.len() as u8) << 112;
        let place = mixed(word) % WORDS;
        let known = self.words[place];
        if known << TOKENS >> TOKENS == word {
            return (known >> (128 - TOKENS)) as usize;
        }
        let tokens = count(self, piece);
        self.words[place] = word | (tokens as u128) << (128 - TOKENS);
        tokens
    }

    #[inline(never)]
    fn longer(&mut self, piece: &[u8]) -> usize {
        let mut block = [0; 32];
        block[..piece.len()].copy_from_slice(piece);
        let whose = u16::from(self.id) << 5 | piece.len() as u16;
        block[LONGER_BYTES..].copy_from_slice(&whose.to_le_bytes());
        let [low, high] = [0, 16].map(|at| u128::from_le_bytes(block[at..at + 16].try_into().unwrap_or_default()));
        let place = mixed(low ^ high.rotate_left(59)) % LONGER;
        let [known, rest] = self.longer[place];
        if known == low && rest << TOKENS >> TOKENS == high {
            return (rest >> (128 - TOKENS)) as usize;
        }
        let tokens = self.parts(piece);
        self.longer[place] = [low, high | (tokens as u128) << (128 - TOKENS)];
        tokens
    }

    /// Returns the tokens of a new piece, part by part.
    #[inline(never)]
    fn parts(&mut self, piece: &[u8]) -> usize {
        if piece.is_ascii() {
            return self.merge(piece);
        }
        let mut length = self.merges.seams().first_part(piece);
        if length == piece.len() {
            return self.merge(piece);
        }
        let (mut rest, mut tokens) = (piece, 0);
        let mut step = rest.len();
        while !rest.is_empty() {
            if rest.len() <= step {
                checkpoint::reached();
                step = rest.len().saturating_sub(STEP_BYTES);
            }
            let part;
            (part, rest) = rest.split_at(length);
            tokens += match part.len() {
                1 => 1,
                2..=WORD_BYTES if !self.merges.has_unmade() => self.known(block_of(part), part, Self::merge),
                _ => self.room.merge(self.merges, part),
            };
            length = if rest.is_empty() { 0 } else { self.merges.seams().first_part(rest) };
        }
        tokens
    }

    #[inline(never)]
    fn merge(&mut self, piece: &[u8]) -> usize {
        self.room.count(self.merges, piece)
    }
}

#[inline]
fn block_of(piece: &[u8]) -> u128 {
    let mut block = [0; 16];
    block[..piece.len()].copy_from_slice(piece);
    u128::from_le_bytes(block)
}

fn mixed(word: u128) -> usize {
    let mixed = (word as u64 ^ ((word >> 64) as u64).rotate_left(23)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    (mixed >> 40) as usize
}
