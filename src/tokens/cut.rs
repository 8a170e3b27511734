//! Finds where a text may be split, and how much of it fits a number of tokens.
//!
//! A cut before an ASCII space that follows a visible ASCII character, or between `\n` and a visible ASCII character other
//! than `/`, is a boundary of the split patterns of `o200k_base` and `cl100k_base` from both sides: in no piece of theirs does
//! a space stand behind anything but space, or anything but a line feed or a slash behind a line feed. So the count of a text
//! is the sum of the counts of its segments.

use super::Vocabulary;

/// Bytes of one step when a text is measured from an end. Small enough that the last step, which is searched by
/// halving, costs little; large enough that the steps themselves do not.
const STEP_BYTES: usize = 1024;

fn is_safe_cut(bytes: &[u8], at: usize) -> bool {
    let (before, after) = (bytes[at - 1], bytes[at]);
    // `o200k_base` takes a slash together with the line feeds before it.
    (after == b' ' && before.is_ascii_graphic()) || (before == b'\n' && after.is_ascii_graphic() && after != b'/')
}

/// Splits `text` at safe cuts into segments of at least `min_bytes` each, the last one excepted.
///
/// Text without a safe cut stays in one segment, however long.
pub fn segments(text: &str, min_bytes: usize) -> impl Iterator<Item = &str> {
    let mut rest = text;
    std::iter::from_fn(move || {
        if rest.is_empty() {
            return None;
        }
        let bytes = rest.as_bytes();
        let end = (min_bytes.max(1)..bytes.len()).find(|&at| is_safe_cut(bytes, at)).unwrap_or(bytes.len());
        let (segment, tail) = rest.split_at(end);
        rest = tail;
        Some(segment)
    })
}

/// Bytes of a segment of [`own_segments`] at least, and where there are safe cuts at most about.
const OWN_BYTES: (usize, usize) = (128, 2048);
/// One safe cut in so many ends a segment.
const OWN_CUTS: u64 = 16;

/// Splits `text` at those safe cuts that the bytes before them choose, so that texts which share a passage share its segments,
/// but for the first and the last, wherever it stands in them.
pub fn own_segments(text: &str) -> impl Iterator<Item = &str> {
    let mut rest = text;
    std::iter::from_fn(move || {
        if rest.is_empty() {
            return None;
        }
        let bytes = rest.as_bytes();
        let is_chosen = |at: usize| {
            let before = bytes[..at].last_chunk().map_or(0, |before| u64::from_le_bytes(*before));
            before.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32 & (OWN_CUTS - 1) == 0
        };
        let mut cuts = (OWN_BYTES.0..bytes.len()).filter(|&at| is_safe_cut(bytes, at));
        let end = cuts.find(|&at| at >= OWN_BYTES.1 || is_chosen(at)).unwrap_or(bytes.len());
        let (segment, tail) = rest.split_at(end);
        rest = tail;
        Some(segment)
    })
}

/// Returns the length in bytes of a prefix of `text` that has about `max_tokens` tokens and not much less.
///
/// O(`max_tokens`), whatever the length of the text. The prefix ends between two characters; its count may be off by
/// a few tokens for each kilobyte without a safe cut, so a caller with a hard limit counts what it has put together.
pub fn prefix_within(text: &str, max_tokens: usize, vocabulary: &dyn Vocabulary) -> usize {
    let mut used = 0;
    let mut start = 0;
    while start < text.len() {
        let end = step_end(text, start);
        let tokens = vocabulary.count(&text[start..end]);
        if used + tokens > max_tokens {
            let step = &text[start..end];
            return start
                + largest(step.len(), max_tokens - used, |at| {
                    let at = step.floor_char_boundary(at);
                    (at, vocabulary.count(&step[..at]))
                });
        }
        used += tokens;
        start = end;
    }
    text.len()
}

/// Returns where a suffix of `text` starts that has about `max_tokens` tokens and not much less; see [`prefix_within`].
pub fn suffix_within(text: &str, max_tokens: usize, vocabulary: &dyn Vocabulary) -> usize {
    let mut used = 0;
    let mut end = text.len();
    while end > 0 {
        let start = step_start(text, end);
        let tokens = vocabulary.count(&text[start..end]);
        if used + tokens > max_tokens {
            let step = &text[start..end];
            return end
                - largest(step.len(), max_tokens - used, |length| {
                    let at = step.ceil_char_boundary(step.len() - length);
                    (step.len() - at, vocabulary.count(&step[at..]))
                });
        }
        used += tokens;
        end = start;
    }
    0
}

fn step_end(text: &str, start: usize) -> usize {
    let bytes = text.as_bytes();
    let wanted = start + STEP_BYTES;
    if wanted >= bytes.len() {
        return bytes.len();
    }
    (wanted..bytes.len().min(wanted + STEP_BYTES))
        .find(|&at| is_safe_cut(bytes, at))
        .unwrap_or_else(|| text.ceil_char_boundary(wanted))
}

fn step_start(text: &str, end: usize) -> usize {
    let bytes = text.as_bytes();
    if end <= STEP_BYTES {
        return 0;
    }
    let wanted = end - STEP_BYTES;
    (wanted.saturating_sub(STEP_BYTES).max(1)..=wanted)
        .rev()
        .find(|&at| is_safe_cut(bytes, at))
        .unwrap_or_else(|| text.floor_char_boundary(wanted))
}

/// Returns the largest length for which `measure` (length, rounded to a character, and its tokens) stays within
/// `max_tokens`, by halving; tokens grow with length but for a token or two.
fn largest(length: usize, max_tokens: usize, measure: impl Fn(usize) -> (usize, usize)) -> usize {
    let (mut low, mut high, mut best) = (0, length, 0);
    while low <= high {
        let middle = usize::midpoint(low, high);
        let (rounded, tokens) = measure(middle);
        if tokens <= max_tokens {
            best = best.max(rounded);
            low = middle + 1;
        } else if middle == 0 {
            break;
        } else {
            high = middle - 1;
        }
    }
    best
}

#[cfg(test)]
mod tests {
    use super::super::Encoding;
    use super::*;

    const TEXT: &str = "def read(path):\n    return open(path).read()\n中文句子没有空格，一直写下去。\n1 2 3 🙂 end\n";

    #[test]
    fn segment_counts_sum_to_the_count_of_the_whole() {
        let text = TEXT.repeat(200);
        for encoding in [Encoding::O200kBase, Encoding::Cl100kBase] {
            let vocabulary = encoding.load();
            for min_bytes in [1, 7, 64, 4096] {
                let sum: usize = segments(&text, min_bytes).map(|s| vocabulary.count(s)).sum();
                assert_eq!(sum, vocabulary.count(&text), "{encoding:?} {min_bytes}");
            }
        }
    }

    #[test]
    fn counts_add_up_wherever_a_cut_is_safe() {
        let pieces = [
            "{\"a\": [1, 2.5], \"b\": \"c d\"}",
            "it's",
            "HTTPServer",
            "x",
            " ",
            "  ",
            "\n",
            "\r\n",
            "\n\n",
            "\n/",
            "/\n",
            "\t",
            "// c",
            "1234",
            "日志",
            "。",
            "\u{a0}",
            "\u{3000}",
            "🙂",
            "é",
            "ſ",
            "'",
            "'s",
            "\"",
            "$",
            "!=",
            "\u{1f}",
            "'ll",
            "A",
            "0",
        ];
        // Each pair with each on either side of it, and so every two characters beside every other two.
        let mut state = 1_u64;
        for encoding in [Encoding::O200kBase, Encoding::Cl100kBase, Encoding::Qwen35] {
            let vocabulary = encoding.load();
            for _ in 0..4_000 {
                let mut text = String::new();
                for _ in 0..12 {
                    state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                    text.push_str(pieces[(state >> 33) as usize % pieces.len()]);
                }
                let whole = vocabulary.count(&text);
                for at in (1..text.len()).filter(|&at| text.is_char_boundary(at) && is_safe_cut(text.as_bytes(), at)) {
                    let (before, behind) = text.split_at(at);
                    let sum = vocabulary.count(before) + vocabulary.count(behind);
                    assert_eq!(sum, whole, "{encoding:?} {before:?} {behind:?}");
                }
            }
        }
    }

    #[test]
    fn texts_that_share_a_passage_share_its_segments() {
        let line = |i: usize| format!("{{\"job\": {i}, \"state\": \"done in {} ms\"}}\n", i * 37 % 991);
        let passage: String = (0..900).map(line).collect();
        let all = |text: &str| own_segments(text).map(str::to_owned).collect::<Vec<_>>();
        let alone = all(&passage);
        assert_eq!(alone.concat(), passage);
        let longest = alone.iter().map(String::len).max().unwrap();
        assert!(alone.len() > passage.len() / 1024 && longest < 2 * OWN_BYTES.1, "{} {longest}", alone.len());
        let other = all(&format!("something else {}, \"a\": 7 and more", &passage[13..]));
        let shared = alone.iter().filter(|segment| other.contains(segment)).count();
        assert!(shared + 3 >= alone.len(), "{shared} of {}", alone.len());
    }

    #[test]
    fn prefix_and_suffix_fill_what_they_may_use() {
        let text = TEXT.repeat(300);
        let vocabulary = Encoding::O200kBase.load();
        for max_tokens in [0, 1, 10, 333, 5000] {
            let head = vocabulary.count(&text[..prefix_within(&text, max_tokens, vocabulary)]);
            let tail = vocabulary.count(&text[suffix_within(&text, max_tokens, vocabulary)..]);
            for tokens in [head, tail] {
                assert!(tokens <= max_tokens + 2 && tokens + 5 >= max_tokens, "{tokens} of {max_tokens}");
            }
        }
        assert_eq!(prefix_within(TEXT, 10_000, vocabulary), TEXT.len());
        assert_eq!(suffix_within(TEXT, 10_000, vocabulary), 0);
    }
}
