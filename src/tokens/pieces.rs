//! Splits a text into pieces, none of which shares a token with another, and counts them.
//!
//! Each vocabulary has a pattern for that. The ten of them are three: `o200k_base`'s, which parts words where lower case ends;
//! `cl100k_base`'s, which does not; and DeepSeek's, which takes numbers and Chinese out of the text first. They are written out
//! here, alternative by alternative; a comment shows each as the vocabulary's own file has it.
//!
//! Words of ASCII are found 16 bytes at once, since a loop over bytes is mispredicted where each word ends.
//!
//! Tried and dropped: the same for numbers and symbols of ASCII (logs, code as fast as before, JSON slower by a tenth).

#![allow(clippy::cast_possible_truncation)] // the first byte of a block

use std::cell::Cell;

use crate::checkpoint;

use super::characters::{ASCII, HAN, LETTER, LINE, LOWER, NUMBER, SPACE, SYMBOL, UPPER, WORD, class_of, wide};
use super::words::{Counter, STEP_BYTES, WORD_BYTES};

/// What a vocabulary's pattern has of its own.
pub(super) trait Pattern {
    /// `\p{N}{1,DIGITS}`
    const DIGITS: usize;
    /// Words end where lower case does.
    const CASED: bool = false;
    /// `(?i:'s|'t|'re|'ve|'m|'ll|'d)`
    const CONTRACTIONS: bool = true;
    /// Symbols take slashes behind them, as they take line ends.
    const SLASHES: bool = false;
    /// `[\p{Han}]+` comes first.
    const HAN: bool = false;
    /// Letters are `[\p{L}\p{M}]`.
    const MARKS: bool = false;
    /// `\s++$`: white space at the end of a text is one piece.
    const TRAILING: bool = false;
}

/// `o200k_base`, `MiniMax` M2.
pub(super) struct O200k;
impl Pattern for O200k {
    const CASED: bool = true;
    const DIGITS: usize = 3;
    const SLASHES: bool = true;
}

/// Mistral's Tekken.
pub(super) struct Tekken;
impl Pattern for Tekken {
    const CASED: bool = true;
    const DIGITS: usize = 1;
    const CONTRACTIONS: bool = false;
    const SLASHES: bool = true;
}

pub(super) struct Kimi;
impl Pattern for Kimi {
    const CASED: bool = true;
    const DIGITS: usize = 3;
    const HAN: bool = true;
}

pub(super) struct Cl100k;
impl Pattern for Cl100k {
    const DIGITS: usize = 3;
    const TRAILING: bool = true;
}

/// GLM 4 and 5.
pub(super) struct Glm;
impl Pattern for Glm {
    const DIGITS: usize = 3;
}

/// Qwen 1 to 3.
pub(super) struct Qwen2;
impl Pattern for Qwen2 {
    const DIGITS: usize = 1;
}

/// Qwen 3.5: `[^\r\n\p{L}\p{N}]?[\p{L}\p{M}]+`, where its predecessors have no marks.
pub(super) struct Qwen35;
impl Pattern for Qwen35 {
    const DIGITS: usize = 1;
    const MARKS: bool = true;
}

/// What the words of `DeepSeek` have in common with the other patterns.
struct DeepSeek;
impl Pattern for DeepSeek {
    const DIGITS: usize = 3;
    const CONTRACTIONS: bool = false;
}

/// Returns the tokens of `text`, split by `P`.
pub(super) fn count<P: Pattern>(text: &[u8], counter: &mut Counter<'_>) -> usize {
    count_pieces(text, counter, word_end::<P>, piece_end::<P>)
}

/// As [`count`], split as `DeepSeek` does.
pub(super) fn count_deepseek(text: &[u8], counter: &mut Counter<'_>) -> usize {
    count_pieces(text, counter, word_end::<DeepSeek>, deepseek_end)
}

thread_local! {
    static COUNTED_BYTES: Cell<u64> = const { Cell::new(0) };
}

/// Returns the bytes that vocabularies have counted on this thread: what counting costs, whatever a clock says.
pub fn counted_bytes() -> u64 {
    COUNTED_BYTES.get()
}

#[inline]
fn count_pieces(
    text: &[u8],
    counter: &mut Counter<'_>,
    word_end: impl Fn(u128) -> usize,
    end: impl Fn(&[u8], usize) -> usize,
) -> usize {
    let (mut at, mut tokens, mut step) = (0, 0, 0);
    while at < text.len() {
        if at >= step {
            checkpoint::reached();
            step = at + STEP_BYTES;
        }
        let Some(block) = text[at..].first_chunk() else {
            let end = end(text, at);
            tokens += counter.piece(&text[at..end]);
            at = end;
            continue;
        };
        let block = u128::from_le_bytes(*block);
        let length = match word_end(block) {
            0 => end(text, at) - at,
            length => length,
        };
        let piece = &text[at..at + length];
        tokens += match length {
            1 => 1,
            // what lies in the text is loaded at once, without a copy
            2..=WORD_BYTES => counter.word(block & ((1 << (8 * length)) - 1), piece),
            _ => counter.piece(piece),
        };
        at += length;
    }
    COUNTED_BYTES.set(COUNTED_BYTES.get() + text.len() as u64);
    tokens
}

/// A byte in each byte of a block of 16.
const fn each(byte: u8) -> u128 {
    u128::from_le_bytes([byte; 16])
}

/// Returns how many bytes of `marked` have their high bit, from the first on.
#[inline]
fn leading(marked: u128) -> usize {
    (!marked & each(0x80)).trailing_zeros() as usize / 8
}

/// Returns the length of the piece at the start of `block`, if it is a word of ASCII that is sure to end within; otherwise 0.
///
/// Most pieces of most texts are, and all bytes of a block are looked at at once: a loop over them would be mispredicted where each
/// word ends.
#[inline]
fn word_end<P: Pattern>(block: u128) -> usize {
    // no sum leaves its byte
    let folded = block & each(0x7f) | each(0x20);
    let from_a = folded + each(0x80 - b'a');
    let from_z = folded + each(0x80 - b'z' - 1);
    let letters = from_a & !from_z & !block & each(0x80);
    let first = block as u8;
    let is_led = letters as u8 == 0;
    if is_led
        && (ASCII.get(usize::from(first)).is_none_or(|class| class & (NUMBER | LINE) != 0)
            || !P::CASED && P::CONTRACTIONS && first == b'\'')
    {
        return 0;
    }
    let start = usize::from(is_led);
    let letters = letters >> (8 * start);
    let length = if P::CASED {
        let lower = letters & ((block >> (8 * start)) << 2);
        let upper = leading(letters & !lower);
        // a block may be all upper case
        upper + leading(lower.checked_shr(8 * upper as u32).unwrap_or(0))
    } else {
        leading(letters)
    };
    let end = start + length;
    if length == 0 || end > WORD_BYTES {
        return 0;
    }
    let behind = (block >> (8 * end)) as u8;
    if behind >= 0x80 || P::CASED && P::CONTRACTIONS && behind == b'\'' { 0 } else { end }
}

/// As [`class_of`], with the letters of `P`.
#[inline]
fn class<P: Pattern>(text: &[u8], at: usize) -> (u8, usize) {
    let (class, length) = class_of(text, at);
    if P::HAN && class & HAN != 0 {
        (class & !(UPPER | LOWER), length)
    } else if P::MARKS && class & WORD != 0 {
        (class | LETTER, length)
    } else {
        (class, length)
    }
}

/// Returns where the characters from `at` on end whose class `is_in`.
#[inline]
fn run<P: Pattern>(text: &[u8], mut at: usize, is_in: impl Fn(u8) -> bool) -> usize {
    loop {
        let (class, length) = class::<P>(text, at);
        if length == 0 || !is_in(class) {
            return at;
        }
        at += length;
    }
}

/// Returns where the piece ends that starts at `at`.
#[inline]
fn piece_end<P: Pattern>(text: &[u8], at: usize) -> usize {
    let (first, length) = class::<P>(text, at);
    let behind = at + length;
    if P::HAN && first & HAN != 0 {
        return run::<P>(text, behind, |class| class & HAN != 0);
    }
    if let Some(end) = if P::CASED { cased::<P>(text, at) } else { uncased::<P>(text, at) } {
        return end;
    }
    // \p{N}{1,DIGITS}
    if first & NUMBER != 0 {
        return (1..P::DIGITS).fold(behind, |at, _| match class::<P>(text, at) {
            (class, length) if class & NUMBER != 0 => at + length,
            _ => at,
        });
    }
    // ` ?[^\s\p{L}\p{N}]+[\r\n]*`
    let start = if text[at] == b' ' { behind } else { at };
    let end = run::<P>(text, start, |class| class & (SPACE | LETTER | NUMBER) == 0);
    if end > start {
        return line_ends::<P>(text, end);
    }
    let (end, last, line) = white_space(text, at, class::<P>);
    if P::TRAILING && end == text.len() {
        return end;
    }
    white_space_end(at, end, last, line, end == text.len())
}

/// `[^\r\n\p{L}\p{N}]?UPPER*LOWER+` with a contraction behind it, else the same with `UPPER+LOWER*`.
#[inline]
fn cased<P: Pattern>(text: &[u8], at: usize) -> Option<usize> {
    let (first, length) = class::<P>(text, at);
    let contracted = |end: usize| if P::CONTRACTIONS { end + contraction(text, end) } else { end };
    if first & LETTER != 0 {
        return cased_word::<P>(text, at).map(|word| contracted(word.0));
    }
    if first & (NUMBER | LINE) != 0 {
        return None;
    }
    let behind = cased_word::<P>(text, at + length);
    let end = match behind {
        // A mark is in front of a word or the start of one: the first alternative comes first, with and without.
        _ if first & WORD != 0 && !behind.is_some_and(|(_, ends_lower)| ends_lower) => cased_word::<P>(text, at)?.0,
        word => word?.0,
    };
    Some(contracted(end))
}

/// Returns where a word ends, and whether the first alternative takes it: it needs one of `LOWER`, for which it gives back what is
/// in both.
#[inline]
fn cased_word<P: Pattern>(text: &[u8], start: usize) -> Option<(usize, bool)> {
    let (mut at, mut both) = (start, None);
    loop {
        let (class, length) = class::<P>(text, at);
        if class & UPPER == 0 {
            if class & LOWER != 0 {
                return Some((run::<P>(text, at + length, |class| class & LOWER != 0), true));
            }
            break;
        }
        at += length;
        if class & LOWER != 0 {
            both = Some(at);
        }
    }
    both.map(|end| (end, true)).or((at > start).then_some((at, false)))
}

/// `(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+`
#[inline]
fn uncased<P: Pattern>(text: &[u8], at: usize) -> Option<usize> {
    if text[at] == b'\'' {
        let length = contraction(text, at);
        if length > 0 {
            return Some(at + length);
        }
    }
    let (first, length) = class::<P>(text, at);
    if first & (NUMBER | LINE) != 0 {
        return None;
    }
    let end = run::<P>(text, at + length, |class| class & LETTER != 0);
    (first & LETTER != 0 || end > at + length).then_some(end)
}

/// Returns the length of the contraction at `at`, or 0. `ſ` is an `s` to a pattern that ignores case.
#[inline]
fn contraction(text: &[u8], at: usize) -> usize {
    if text.get(at) != Some(&b'\'') {
        return 0;
    }
    let lower = |offset: usize| text.get(at + offset).map_or(0, u8::to_ascii_lowercase);
    match [lower(1), lower(2)] {
        [b's' | b't' | b'm' | b'd', _] => 2,
        [b'r' | b'v', b'e'] | [b'l', b'l'] | [0xc5, 0xbf] => 3,
        _ => 0,
    }
}

/// `[\r\n]*`, or `[\r\n/]*`
#[inline]
fn line_ends<P: Pattern>(text: &[u8], mut at: usize) -> usize {
    while text.get(at).is_some_and(|&byte| matches!(byte, b'\r' | b'\n') || P::SLASHES && byte == b'/') {
        at += 1;
    }
    at
}

/// Returns where white space ends, where its last character starts, and where the last line end in it ends, if there is one.
#[inline]
fn white_space(
    text: &[u8],
    start: usize,
    class: impl Fn(&[u8], usize) -> (u8, usize),
) -> (usize, usize, Option<usize>) {
    let (mut at, mut last, mut line) = (start, start, None);
    loop {
        let (class, length) = class(text, at);
        if length == 0 || class & SPACE == 0 {
            return (at, last, line);
        }
        (last, at) = (at, at + length);
        if class & LINE != 0 {
            line = Some(at);
        }
    }
}

/// `\s*[\r\n]+|\s+(?!\S)|\s+`
#[inline]
fn white_space_end(start: usize, end: usize, last: usize, line: Option<usize>, is_last: bool) -> usize {
    match line {
        Some(line) => line,
        None if is_last || last == start => end,
        None => last,
    }
}

/// As [`class_of`], with the end of the text where the first two of `DeepSeek`'s three splits have found something.
#[inline]
fn between(text: &[u8], at: usize) -> (u8, usize) {
    let (class, length) = class_of(text, at);
    if class & NUMBER != 0 || length == 3 && is_ideograph(text, at) { (0, 0) } else { (class, length) }
}

/// `[一-龥\u3040-ゟ゠-ヿ]`
fn is_ideograph(text: &[u8], at: usize) -> bool {
    text.get(at).is_some_and(|byte| (0xe0..0xf0).contains(byte))
        && matches!(wide(text, at).0, 0x4e00..=0x9fa5 | 0x3040..=0x30ff)
}

/// Returns where the piece ends that starts at `at`, under the three splits of `DeepSeek`.
#[inline]
fn deepseek_end(text: &[u8], at: usize) -> usize {
    let (first, length) = class_of(text, at);
    let behind = at + length;
    // \p{N}{1,3}
    if first & NUMBER != 0 {
        return (1..3).fold(behind, |at, _| match class_of(text, at) {
            (class, length) if class & NUMBER != 0 => at + length,
            _ => at,
        });
    }
    // [一-龥\u3040-ゟ゠-ヿ]+
    if is_ideograph(text, at) {
        let mut end = behind;
        while is_ideograph(text, end) {
            end += 3;
        }
        return end;
    }
    let run = |mut at: usize, any: u8| {
        loop {
            let (class, length) = between(text, at);
            if length == 0 || class & any == 0 {
                return at;
            }
            at += length;
        }
    };
    // [!-/:-@\[-`{-~][A-Za-z]+
    let letters = |at: usize| text[at..].iter().take_while(|byte| byte.is_ascii_alphabetic()).count();
    if text[at].is_ascii_punctuation() && letters(behind) > 0 {
        return behind + letters(behind);
    }
    // [^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+
    let is_led_by =
        |class: u8, behind: usize| class & (LINE | LETTER | SYMBOL) == 0 && between(text, behind).0 & WORD != 0;
    if first & WORD != 0 || is_led_by(first, behind) {
        return run(behind, WORD);
    }
    // ` ?[\p{P}\p{S}]+[\r\n]*`
    let start = if text[at] == b' ' { behind } else { at };
    let end = run(start, SYMBOL);
    if end > start {
        return line_ends::<Glm>(text, end);
    }
    if first & SPACE != 0 {
        let (end, last, line) = white_space(text, at, between);
        return white_space_end(at, end, last, line, between(text, end).1 == 0);
    }
    // what no alternative takes stays together
    let mut end = behind;
    loop {
        let (class, length) = between(text, end);
        if length == 0 || class & (SPACE | SYMBOL | WORD) != 0 || is_led_by(class, end + length) {
            return end;
        }
        end += length;
    }
}
