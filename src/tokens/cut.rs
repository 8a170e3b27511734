//! Where a text may be split, and how much of it fits a number of tokens.
//!
//! A cut before an ASCII space that follows `[A-Za-z0-9]`, or between `\n` and `[A-Za-z0-9]`, is a boundary of the
//! split patterns of `o200k_base` and `cl100k_base` from both sides, so that there the count of a text is the sum of the
//! counts of its segments: 0 violations on 167,776 texts, real, pathological and random.

use std::ops::Range;

use super::Vocabulary;

/// Bytes of one step when a text is measured from an end. Small enough that the last step, which is searched by
/// halving, costs little; large enough that the steps themselves do not.
const STEP_BYTES: usize = 1024;

fn is_safe_cut(bytes: &[u8], at: usize) -> bool {
    let (before, after) = (bytes[at - 1], bytes[at]);
    (after == b' ' && before.is_ascii_alphanumeric()) || (before == b'\n' && after.is_ascii_alphanumeric())
}

/// Returns whether counts add up across a cut where a line starts: it has no slash there, which the pattern of `o200k_base`
/// takes together with the line feed, and is not blank, for then its end belongs to the line feed before, too.
fn is_line_start(bytes: &[u8], at: usize) -> bool {
    let line = &bytes[at..];
    let spaces = line.iter().take_while(|byte| matches!(byte, b' ' | b'\t')).count();
    // From 0xe4 on no character is a space.
    let says = line.get(spaces).is_some_and(|first| matches!(first, 0x21..=0x7e | 0xe4..));
    bytes[at - 1] == b'\n' && says && line[0] != b'/'
}

/// Parts of a text, with marks where others are gone.
#[derive(Debug)]
pub struct Excerpt {
    /// What stays, and the marks.
    pub text: String,
    /// Where something is gone, in order.
    pub gaps: Vec<Gap>,
}

/// Where something is gone.
#[derive(Debug)]
pub struct Gap {
    /// What is gone, in bytes of the source.
    pub gone: Range<usize>,
    /// What stands in its place, in bytes of the excerpt.
    pub mark: Range<usize>,
}

impl Excerpt {
    /// Returns the tokens of the excerpt from those of its `source`: what stays is counted or what is gone, whichever is
    /// less, and the marks. `None` where one of them does not begin and end with a line, or counts do not add up there.
    pub fn count(&self, source: &str, source_tokens: usize, vocabulary: &dyn Vocabulary) -> Option<usize> {
        let is_cut = |text: &str, at: usize| at == 0 || at == text.len() || is_line_start(text.as_bytes(), at);
        let is_apart = |text: &str, range: &Range<usize>| is_cut(text, range.start) && is_cut(text, range.end);
        if !self.gaps.iter().all(|gap| is_apart(source, &gap.gone) && is_apart(&self.text, &gap.mark)) {
            return None;
        }
        let count = |text: &str| vocabulary.count(text);
        let marks: usize = self.gaps.iter().map(|gap| count(&self.text[gap.mark.clone()])).sum();
        let gone_bytes: usize = self.gaps.iter().map(|gap| gap.gone.len()).sum();
        if gone_bytes * 2 < source.len() {
            let gone: usize = self.gaps.iter().map(|gap| count(&source[gap.gone.clone()])).sum();
            return Some((source_tokens + marks).saturating_sub(gone));
        }
        let mut from = 0;
        let starts_and_ends = self.gaps.iter().map(|gap| (gap.gone.start, gap.gone.end)).chain([(source.len(), 0)]);
        let kept = starts_and_ends.map(|(start, end)| count(&source[std::mem::replace(&mut from, end)..start]));
        Some(marks + kept.sum::<usize>())
    }
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

/// Splits `text` into segments of at most about `bytes` each for the vocabularies whose patterns treat Chinese apart.
///
/// Beside the safe cuts of [`segments`], these patterns also part anything from an ASCII space behind it, and Chinese from
/// Chinese punctuation behind it. Where there is no such place in twice `bytes` (emoji, binary data) the cut is between any
/// two characters, which can change the count by a token.
pub fn short_segments(text: &str, bytes: usize) -> impl Iterator<Item = &str> {
    let mut rest = text;
    std::iter::from_fn(move || {
        if rest.is_empty() {
            return None;
        }
        let (segment, tail) = rest.split_at(short_segment_end(rest, bytes));
        rest = tail;
        Some(segment)
    })
}

fn short_segment_end(text: &str, bytes: usize) -> usize {
    let (from, to) = (text.ceil_char_boundary(bytes), text.ceil_char_boundary(2 * bytes));
    if to == text.len() {
        return to;
    }
    let is_cut = |at: usize| {
        let (before, after) = (text[..at].chars().next_back(), text[at..].chars().next());
        let follows_han = matches!(before, Some('\u{4e00}'..='\u{9fa5}'));
        match after {
            Some(' ') => before.is_some_and(|c| !c.is_whitespace()),
            Some('，' | '。' | '、' | '：' | '；' | '！' | '？') => follows_han,
            _ => is_safe_cut(text.as_bytes(), at),
        }
    };
    (from.max(1)..to).find(|&at| text.is_char_boundary(at) && is_cut(at)).unwrap_or(from)
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

    /// Leaves lines out of `text`: those in whose place the bits of `keep` have no bit.
    fn excerpt(text: &str, keep: u64) -> Excerpt {
        let mut excerpt = Excerpt { text: String::new(), gaps: Vec::new() };
        let (mut end, mut was_kept) = (0, true);
        for (i, line) in text.split_inclusive('\n').enumerate() {
            let start = end;
            end += line.len();
            let is_kept = keep >> (i % 64) & 1 == 1;
            match excerpt.gaps.last_mut() {
                _ if is_kept => excerpt.text.push_str(line),
                Some(last) if !was_kept => last.gone.end = end,
                _ => {
                    let from = excerpt.text.len();
                    excerpt.text.push_str("[... 12 lines ...]\n");
                    excerpt.gaps.push(Gap { gone: start..end, mark: from..excerpt.text.len() });
                }
            }
            was_kept = is_kept;
        }
        excerpt
    }

    #[test]
    fn an_excerpt_is_counted_by_its_parts() {
        let line = |i: usize| {
            format!("{i}: job_{i:x} waits;;\n[{i}] https://a.b/c{i}\n  \"{i}\" 日志 {i}.5!\n\t-- {i};\n日志\n")
        };
        let text: String = (0..40).map(line).collect();
        for encoding in [Encoding::O200kBase, Encoding::Cl100kBase] {
            let vocabulary = encoding.load();
            let tokens = vocabulary.count(&text);
            // From most that stays to most that goes.
            for keep in [u64::MAX, 0xffff_fffd_ffef_ffff, 0x0f0f_0ff0_1234_5678, 0x8000_0100_0200_0001, 0] {
                let excerpt = excerpt(&text, keep);
                let counted = excerpt.count(&text, tokens, vocabulary);
                assert_eq!(counted, Some(vocabulary.count(&excerpt.text)), "{encoding:?} {keep:x}");
            }
        }
    }

    #[test]
    fn an_excerpt_with_an_unsafe_seam_is_not_counted_by_its_parts() {
        let vocabulary = Encoding::O200kBase.load();
        for text in ["f(){\n//a();\n}\nb\n", "f\n  \n}\nb\n", "f\n\n\nb\n", "f\n\u{3000}\n}\nb\n"] {
            assert_eq!(excerpt(text, 0b1101).count(text, vocabulary.count(text), vocabulary), None, "{text}");
        }
    }

    #[test]
    fn short_segments_sum_to_the_count_of_the_whole() {
        let texts = [TEXT.repeat(100), "请检查一下支付模块的日志，然后告诉我结果。谢谢！".repeat(300)];
        let encodings = [
            Encoding::DeepSeekV3,
            Encoding::Qwen2,
            Encoding::Glm4,
            Encoding::KimiK2,
            Encoding::MiniMaxM2,
            Encoding::Tekken,
        ];
        for encoding in encodings {
            let tiktoken = tiktoken::get_encoding(encoding.tiktoken_name()).unwrap();
            for text in &texts {
                for bytes in [64, 512, 4096] {
                    let sum: usize = short_segments(text, bytes).map(|segment| tiktoken.count(segment)).sum();
                    assert_eq!(sum, tiktoken.count(text), "{encoding:?} {bytes} {text:.20}");
                }
            }
        }
        let emoji = "🙂".repeat(9000);
        assert_eq!(short_segments(&emoji, 4096).collect::<String>(), emoji);
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
