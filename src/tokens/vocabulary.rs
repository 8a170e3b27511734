//! Vocabularies that ship in the crate, loaded on first use.

use std::cell::{Cell, RefCell};
use std::sync::OnceLock;

use crate::checkpoint;

use super::cut;

/// Counts the tokens of a text under one vocabulary.
///
/// Implementations agree with the reference tokenizer on every text but two kinds, where a count is a token or two more or
/// less: `'ſ`, which the pattern of `o200k_base` takes for a contraction and the crates here do not, and characters that
/// are new in Unicode 17, which are letters to newer tables only (16 of 44,000 random strings). They treat text that spells
/// a special token as ordinary text, never fail, and may be used from many threads at once.
pub trait Vocabulary: Send + Sync {
    /// Returns the tokens of `text`; O(n) in its bytes.
    fn count(&self, text: &str) -> usize;
}

/// The vocabularies by their usual names.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Encoding {
    /// OpenAI, from GPT-4o on
    O200kBase,
    /// OpenAI, GPT-3.5 and GPT-4
    Cl100kBase,
    /// `DeepSeek` V3 and V4
    DeepSeekV3,
    /// Qwen 1 to 3
    Qwen2,
    /// Qwen 3.5 and later
    Qwen35,
    /// GLM 4
    Glm4,
    /// GLM 5
    Glm5,
    /// Kimi K2 and K3
    KimiK2,
    /// `MiniMax` M2
    MiniMaxM2,
    /// Mistral's Tekken
    Tekken,
}

const ENCODINGS: [Encoding; 10] = [
    Encoding::O200kBase,
    Encoding::Cl100kBase,
    Encoding::DeepSeekV3,
    Encoding::Qwen2,
    Encoding::Qwen35,
    Encoding::Glm4,
    Encoding::Glm5,
    Encoding::KimiK2,
    Encoding::MiniMaxM2,
    Encoding::Tekken,
];

static LOADED: [OnceLock<Box<dyn Vocabulary>>; ENCODINGS.len()] = [const { OnceLock::new() }; ENCODINGS.len()];

impl Encoding {
    /// Returns the vocabularies that this process has loaded.
    pub fn loaded() -> impl Iterator<Item = Self> {
        ENCODINGS.into_iter().filter(|encoding| encoding.is_loaded())
    }

    /// Returns whether counting costs no load.
    pub fn is_loaded(self) -> bool {
        LOADED[self as usize].get().is_some()
    }

    /// Returns the vocabulary; the first call of a process loads it (40 to 470 ms), later ones cost nothing.
    pub fn load(self) -> &'static dyn Vocabulary {
        LOADED[self as usize]
            .get_or_init(|| match self {
                Self::O200kBase | Self::Cl100kBase | Self::Qwen35 => openai(self.name()),
                other => family(other.tiktoken_name()),
            })
            .as_ref()
    }

    /// Returns whether the count of every text is the sum of those of its segments: see [`cut`].
    pub(super) fn adds_up(self) -> bool {
        matches!(self, Self::O200kBase | Self::Cl100kBase)
    }

    /// Returns a name that no other has.
    pub fn name(self) -> &'static str {
        if self == Self::Qwen35 { "qwen3.5" } else { self.tiktoken_name() }
    }

    /// Returns the vocabulary's name in the `tiktoken` crate.
    pub(super) fn tiktoken_name(self) -> &'static str {
        match self {
            Self::O200kBase => "o200k_base",
            Self::Cl100kBase => "cl100k_base",
            Self::DeepSeekV3 => "deepseek_v3",
            Self::Qwen2 | Self::Qwen35 => "qwen2",
            Self::Glm4 => "glm4",
            Self::Glm5 => "glm5",
            Self::KimiK2 => "kimi_k2",
            Self::MiniMaxM2 => "minimax_m2",
            Self::Tekken => "mistral_v3",
        }
    }
}

/// The vocabularies that `toktok` embeds.
fn openai(name: &str) -> Box<dyn Vocabulary> {
    #[allow(clippy::expect_used)] // the crate embeds these three; `every_vocabulary_loads` proves it
    let tokenizer = toktok::Tokenizer::builtin(name).expect("the vocabulary is embedded");
    Box::new(Toktok(tokenizer))
}

/// The vocabularies that `tiktoken` embeds, by the features of `Cargo.toml`.
fn family(name: &str) -> Box<dyn Vocabulary> {
    #[allow(clippy::expect_used)] // as above
    Box::new(Tiktoken(tiktoken::get_encoding(name).expect("the vocabulary is embedded")))
}

struct Toktok(toktok::Tokenizer);

/// Bytes of padding behind a text: `toktok` 0.3.0 reads a block of 16 bytes at the start of each word of at most 15
/// (`pcache.rs`, `pack_key`) and masks what is behind the word. With the padding that is memory of this buffer, and
/// initialised, wherever the last word ends. A slice with the padding in it would be no safer: the crate reads past the
/// slice of the word itself, inside of a text, too.
const PADDING: usize = 16;

/// Bytes counted in one go. Larger texts are split where the count of the whole is the sum of the counts, which keeps
/// the copy below and the list of ids in the processor's cache.
const SEGMENT_BYTES: usize = 1 << 16;

thread_local! {
    static COUNTED_BYTES: Cell<u64> = const { Cell::new(0) };
    static BUFFERS: RefCell<(Vec<u8>, Vec<u32>)> = const { RefCell::new((Vec::new(), Vec::new())) };
}

/// Returns the bytes that vocabularies have counted on this thread: what counting costs, whatever a clock says.
pub fn counted_bytes() -> u64 {
    COUNTED_BYTES.get()
}

/// Marks a segment as the next to be counted.
fn begin(segment: &str) {
    checkpoint::reached();
    COUNTED_BYTES.set(COUNTED_BYTES.get() + segment.len() as u64);
}

impl Vocabulary for Toktok {
    fn count(&self, text: &str) -> usize {
        let count = |segment: &str| {
            BUFFERS.with_borrow_mut(|(bytes, ids)| {
                bytes.clear();
                bytes.extend_from_slice(segment.as_bytes());
                bytes.resize(segment.len() + PADDING, 0);
                ids.clear();
                self.0.encode_into(&bytes[..segment.len()], ids);
                let tokens = ids.len();
                // One huge text must not keep its buffers for the life of the thread.
                if bytes.capacity() > 16 * SEGMENT_BYTES {
                    *bytes = Vec::new();
                    *ids = Vec::new();
                }
                tokens
            })
        };
        cut::segments(text, SEGMENT_BYTES).inspect(|segment| begin(segment)).map(count).sum()
    }
}

struct Tiktoken(&'static tiktoken::CoreBpe);

/// Bytes counted in one go by `tiktoken` 4.1.2, which for `DeepSeek` checks all that is left of a text behind every piece
/// that does not start with ASCII: a megabyte of emoji would take minutes.
const SHORT_SEGMENT_BYTES: usize = 1 << 12;

impl Vocabulary for Tiktoken {
    fn count(&self, text: &str) -> usize {
        let segments = cut::short_segments(text, SHORT_SEGMENT_BYTES).inspect(|segment| begin(segment));
        segments.map(|segment| self.0.count(segment)).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_vocabulary_loads() {
        for (place, encoding) in ENCODINGS.into_iter().enumerate() {
            assert_eq!(encoding as usize, place);
            assert_eq!(encoding.load().count(""), 0, "{encoding:?}");
            assert!((2..=4).contains(&encoding.load().count("hello world")), "{encoding:?}");
        }
    }

    #[test]
    fn special_tokens_count_as_ordinary_text() {
        assert_eq!(Encoding::O200kBase.load().count("<|endoftext|>"), 7);
        assert_eq!(Encoding::Cl100kBase.load().count("<|endoftext|>"), 7);
    }
}
