//! Places in a piece that no token of the vocabulary crosses: what is before and what is behind merge by themselves.
//!
//! Chinese, Japanese and emoji come in long pieces that are seldom seen twice, but half to nine tenths of the places between their
//! characters are seams, and what lies between two seams has mostly been counted before.
//!
//! A filter of bits has each pair of neighbouring characters that some token has. Two pairs may share a bit; then a seam is missed,
//! which costs time and no exactness. Tokens that start or end within a character are few: theirs are pairs of bytes.
#![allow(clippy::cast_possible_truncation)] // bits of a filter

/// Bits for pairs of characters.
const PAIRS: usize = 1 << 17;
/// Bytes of a filter: bits for pairs of characters, then for pairs of bytes.
pub(super) const BYTES: usize = (PAIRS + (1 << 16)) / 8;

/// The filter of a vocabulary, as `scripts/tables.rs` fills it.
#[derive(Clone, Copy)]
pub(super) struct Seams(pub(super) &'static [u8; BYTES]);

/// A character: its bytes in UTF-8, the first one lowest.
#[derive(Clone, Copy)]
pub(super) struct Character(pub(super) u32);

impl Character {
    /// Returns the character at `at`, and its bytes.
    #[inline]
    pub(super) fn at(text: &[u8], at: usize) -> (Self, usize) {
        let first = text[at];
        if first < 0x80 {
            return (Self(u32::from(first)), 1);
        }
        let length = 2 + usize::from(first >= 0xe0) + usize::from(first >= 0xf0);
        let bytes = text.iter().skip(at).take(length);
        (Self(bytes.rev().fold(0, |bytes, &byte| bytes << 8 | u32::from(byte))), length)
    }

    fn is_ascii(self) -> bool {
        self.0 < 0x80
    }
}

/// Returns the bit of a pair of characters.
#[inline]
pub(super) fn bit_of_characters(before: Character, after: Character) -> usize {
    let pair = u64::from(before.0) << 32 | u64::from(after.0);
    let bit = pair.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> (64 - PAIRS.ilog2());
    bit as usize % PAIRS
}

/// Returns the bit of a pair of bytes.
#[inline]
pub(super) fn bit_of_bytes(before: u8, after: u8) -> usize {
    PAIRS + (usize::from(before) << 8 | usize::from(after))
}

impl Seams {
    fn has(self, bit: usize) -> bool {
        self.0.get(bit / 8).is_none_or(|byte| byte >> (bit % 8) & 1 == 1)
    }

    /// Returns the length of `piece` up to its first seam.
    #[inline]
    pub(super) fn first_part(self, piece: &[u8]) -> usize {
        let (mut before, mut at) = Character::at(piece, 0);
        while at < piece.len() {
            let (after, length) = Character::at(piece, at);
            let is_crossed = before.is_ascii() && after.is_ascii()
                || self.has(bit_of_characters(before, after))
                || self.has(bit_of_bytes(piece[at - 1], piece[at]));
            if !is_crossed {
                return at;
            }
            (before, at) = (after, at + length);
        }
        piece.len()
    }
}
