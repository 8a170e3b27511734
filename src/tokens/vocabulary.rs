//! The vocabularies of the crate, used in place.

use std::sync::atomic::{AtomicBool, Ordering};

use super::pieces::{self, Cl100k, Glm, Kimi, O200k, Qwen2, Qwen35, Tekken};
use super::table::Table;
use super::words::Counter;

/// Counts the tokens of a text under one vocabulary.
///
/// Implementations agree with the reference tokenizer on every text, treat text that spells a special token as ordinary text, never
/// fail, and may be used from many threads at once.
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

/// A vocabulary that lies in the crate.
struct Own {
    table: Table,
    id: u8,
    count: fn(&[u8], &mut Counter<'_>) -> usize,
    is_used: AtomicBool,
}

/// Which of two vocabularies in one table is meant: the bits of merges that it has not, and of its whole characters.
const FIRST: (u8, u8) = (0x80, 0x20);
const SECOND: (u8, u8) = (0x40, 0x10);

macro_rules! own {
    ($encoding:ident, $merges:literal, $seams:literal, $which:expr, $count:expr) => {
        Own {
            table: Table::new(
                include_bytes!(concat!("tables/", $merges, ".merges")),
                include_bytes!(concat!("tables/", $seams, ".seams")),
                $which,
            ),
            id: Encoding::$encoding as u8,
            count: $count,
            is_used: AtomicBool::new(false),
        }
    };
}

// `cl100k_base` and Qwen's share a table, and GLM's two do; GLM 4's pairs of characters are those of GLM 5.
static VOCABULARIES: [Own; ENCODINGS.len()] = [
    own!(O200kBase, "o200k_base", "o200k_base", FIRST, pieces::count::<O200k>),
    own!(Cl100kBase, "qwen2", "cl100k_base", FIRST, pieces::count::<Cl100k>),
    own!(DeepSeekV3, "deepseek_v3", "deepseek_v3", FIRST, pieces::count_deepseek),
    own!(Qwen2, "qwen2", "qwen2", SECOND, pieces::count::<Qwen2>),
    own!(Qwen35, "qwen35", "qwen35", FIRST, pieces::count::<Qwen35>),
    own!(Glm4, "glm5", "glm5", FIRST, pieces::count::<Glm>),
    own!(Glm5, "glm5", "glm5", SECOND, pieces::count::<Glm>),
    own!(KimiK2, "kimi_k2", "kimi_k2", FIRST, pieces::count::<Kimi>),
    own!(MiniMaxM2, "minimax_m2", "minimax_m2", FIRST, pieces::count::<O200k>),
    own!(Tekken, "mistral_v3", "mistral_v3", FIRST, pieces::count::<Tekken>),
];

impl Vocabulary for Own {
    fn count(&self, text: &str) -> usize {
        self.is_used.store(true, Ordering::Relaxed);
        Counter::with(&self.table, self.id, |counter| (self.count)(text.as_bytes(), counter))
    }
}

impl Encoding {
    /// Returns the vocabularies that this process has counted with.
    pub fn loaded() -> impl Iterator<Item = Self> {
        ENCODINGS.into_iter().filter(|encoding| encoding.is_loaded())
    }

    /// Returns whether this process has counted with the vocabulary.
    pub fn is_loaded(self) -> bool {
        VOCABULARIES[self as usize].is_used.load(Ordering::Relaxed)
    }

    /// Returns the vocabulary; costs nothing.
    pub fn load(self) -> &'static dyn Vocabulary {
        &VOCABULARIES[self as usize]
    }

    /// Returns whether the count of every text is the sum of those of its segments: see [`cut`].
    pub(super) fn adds_up(self) -> bool {
        matches!(self, Self::O200kBase | Self::Cl100kBase)
    }

    /// Returns a name that no other has.
    pub fn name(self) -> &'static str {
        match self {
            Self::O200kBase => "o200k_base",
            Self::Cl100kBase => "cl100k_base",
            Self::DeepSeekV3 => "deepseek_v3",
            Self::Qwen2 => "qwen2",
            Self::Qwen35 => "qwen3.5",
            Self::Glm4 => "glm4",
            Self::Glm5 => "glm5",
            Self::KimiK2 => "kimi_k2",
            Self::MiniMaxM2 => "minimax_m2",
            Self::Tekken => "mistral_v3",
        }
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
