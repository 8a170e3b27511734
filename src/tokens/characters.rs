//! Classes of characters, as the patterns of the vocabularies name them.
//!
//! They are those of the regex engine of tiktoken 0.14.0 (Unicode 16), read out of it character by character:
//! `scripts/character_classes.py`.

/// `[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]`
pub(super) const UPPER: u8 = 1;
/// `[\p{Ll}\p{Lm}\p{Lo}\p{M}]`
pub(super) const LOWER: u8 = 1 << 1;
/// `\p{L}`
pub(super) const LETTER: u8 = 1 << 2;
/// `\p{N}`
pub(super) const NUMBER: u8 = 1 << 3;
/// `\s`
pub(super) const SPACE: u8 = 1 << 4;
/// `\p{Han}`
pub(super) const HAN: u8 = 1 << 5;
/// `[\p{P}\p{S}]`
pub(super) const SYMBOL: u8 = 1 << 6;
/// `[\r\n]`
pub(super) const LINE: u8 = 1 << 7;

/// `[\p{L}\p{M}]`
pub(super) const WORD: u8 = UPPER | LOWER | LETTER;

/// Characters of a page of the table of classes: first the page of each 128 characters, then the pages.
const PAGE: usize = 128;
const CLASSES: (&[u8], &[u8]) = include_bytes!("tables/classes.bin").split_at(0x11_0000 / PAGE);
static PAGES: &[u8] = CLASSES.0;
static FLAGS: &[u8] = CLASSES.1;
pub(super) static ASCII: [u8; PAGE] = match CLASSES.1.first_chunk() {
    Some(page) => *page,
    None => panic!("the first page is ASCII"),
};

/// Returns the class of the character at `at`, and its length in bytes; 0 and 0 at the end of the text.
#[inline]
pub(super) fn class_of(text: &[u8], at: usize) -> (u8, usize) {
    match text.get(at) {
        None => (0, 0),
        Some(&byte) if byte < 0x80 => (ASCII[usize::from(byte)], 1),
        Some(_) => {
            let (character, length) = wide(text, at);
            let page = PAGES.get(character / PAGE).map_or(0, |&page| usize::from(page));
            (FLAGS.get(page * PAGE + character % PAGE).copied().unwrap_or(0), length)
        }
    }
}

/// Decodes a character that is not ASCII.
#[inline]
pub(super) fn wide(text: &[u8], at: usize) -> (usize, usize) {
    let byte = |offset: usize| text.get(at + offset).map_or(0, |&byte| usize::from(byte));
    let tail = |offset: usize| byte(offset) & 0x3f;
    match byte(0) {
        first @ ..0xe0 => ((first & 0x1f) << 6 | tail(1), 2),
        first @ 0xe0..0xf0 => ((first & 0x0f) << 12 | tail(1) << 6 | tail(2), 3),
        first => ((first & 0x07) << 18 | tail(1) << 12 | tail(2) << 6 | tail(3), 4),
    }
}
