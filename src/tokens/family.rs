//! Maps model names to ways of counting.

use super::class::classify;
use super::media::ImageRule;
use super::vocabulary::Encoding;

/// How the tokens of one family of models are counted.
#[derive(Debug)]
pub struct Family {
    /// A short name, shown to users.
    pub name: &'static str,
    /// Tells the families apart in caches.
    pub id: u8,
    /// The family's own vocabulary, or the one that its factors refer to.
    pub encoding: Encoding,
    /// What the count is multiplied with, by class of text; `None` where the vocabulary is the family's own.
    factors: Option<&'static Factors>,
    /// How images are counted.
    pub images: ImageRule,
    /// Tokens of a second of sound.
    ///
    /// OpenAI's guide on audio: 1 token for 100 ms of the user's speech. Google's guide on audio: 32 a second, which
    /// also serves, as the largest published figure, where a provider publishes none.
    pub audio_tokens_per_second: u32,
    /// Whether the provider may refuse a message with calls that lacks the thoughts, in plain text, that it gave them with.
    ///
    /// | provider | of `reasoning_content` | source |
    /// |---|---|---|
    /// | DeepSeek, V3.2 and later, thinking on | has to be there in every message of the assistant's in a round with calls, else 400 | api-docs.deepseek.com, "Thinking mode"; opencode#24722 (April 2026) |
    /// | Kimi, K2 thinking and later | has to be there in every message with calls, else 400; an empty one is none, a space is enough | new-api#3121 (March 2026), openhanako#1667 (June 2026); LiteLLM 1.82.6, `fill_reasoning_content` |
    /// | Kimi with `thinking.keep=all` | has to be there in every message of the assistant's, else 400 | kimi-cli#2498 (July 2026) |
    /// | `MiMo`, V2 and later | has to be there in every message with calls, else 400 | notice to developers of 12 May 2026: chatbox#3716 |
    /// | GLM, MiniMax, Qwen | is wanted back for quality, not demanded | docs.z.ai, "Thinking mode" |
    /// | OpenAI, Claude, Gemini, Mistral | not read; what they demand back is signed or encrypted, and stands in other fields | |
    ///
    /// All of them look whether something is there; a mark is enough. A model that is not known may be any of the first three.
    pub wants_reasoning: bool,
}

/// Median of real tokens to `o200k_base` tokens over chunks of 4 KB, by class: prose, code, JSON, logs, Chinese,
/// Japanese, mixed, dense, emoji.
type Factors = [f32; 9];

/// The factor on top of an estimate, so that it seldom falls short of what the provider counts.
///
/// Source: plan V3.1, `count_tokens`, which lowered it from 1.15.
pub const SAFETY_FACTOR: f32 = 1.10;

// Measured on 4,201 chunks against o200k_base; Claude against a public reconstruction of its counts (`ctok` 1.3.0),
// Gemini by the vocabulary of Gemma 3 and 4, which Google documents as the same family.
const CLAUDE: Factors = [1.13, 1.26, 1.18, 1.16, 1.46, 1.21, 1.33, 1.27, 1.43];
const CLAUDE_4_7: Factors = [1.51, 1.58, 1.49, 1.38, 1.50, 1.24, 1.51, 1.39, 1.50];
const GEMINI: Factors = [1.06, 1.18, 1.17, 1.24, 0.90, 0.75, 0.94, 1.27, 0.72];
const LLAMA_3: Factors = [1.00, 1.00, 0.99, 1.00, 1.02, 0.94, 1.01, 1.00, 1.28];
const LLAMA_4: Factors = [0.99, 1.00, 0.99, 0.99, 0.84, 0.77, 0.90, 1.00, 1.06];
const MISTRAL_SPM: Factors = [1.22, 1.27, 1.28, 1.33, 1.40, 1.44, 1.33, 1.35, 1.39];
/// A model of an unknown family: the largest median of the measured families that publish their vocabulary, Mistral's
/// older one left out.
const UNKNOWN: Factors = [1.06, 1.18, 1.19, 1.24, 1.25, 1.02, 1.14, 1.27, 1.69];

const fn family(
    id: u8,
    name: &'static str,
    encoding: Encoding,
    factors: Option<&'static Factors>,
    images: ImageRule,
) -> Family {
    let audio_tokens_per_second = if matches!(encoding, Encoding::O200kBase) && factors.is_none() { 10 } else { 32 };
    // OpenAI, Mistral, Claude, Gemini.
    let wants_reasoning = !matches!(id, 0..=7 | 15..=19);
    Family { name, id, encoding, factors, images, audio_tokens_per_second, wants_reasoning }
}

use Encoding::{Cl100kBase, DeepSeekV3, Glm4, Glm5, KimiK2, MiniMaxM2, O200kBase, Qwen2, Qwen35, Tekken};

// Image rules of the OpenAI models: OpenAI's guide "Images and vision", "Calculating costs".
static GPT_4O: Family = family(0, "o200k_base", O200kBase, None, ImageRule::Tiles { base: 85, tile: 170 });
static GPT_4O_MINI: Family = family(1, "o200k_base", O200kBase, None, ImageRule::Tiles { base: 2833, tile: 5667 });
static GPT_5: Family = family(2, "o200k_base", O200kBase, None, ImageRule::Tiles { base: 70, tile: 140 });
static O_SERIES: Family = family(3, "o200k_base", O200kBase, None, ImageRule::Tiles { base: 75, tile: 150 });
static SMALL: Family = family(4, "o200k_base", O200kBase, None, ImageRule::Patches { percent: 162 });
static NANO: Family = family(5, "o200k_base", O200kBase, None, ImageRule::Patches { percent: 246 });
static O4_MINI: Family = family(6, "o200k_base", O200kBase, None, ImageRule::Patches { percent: 172 });
static GPT_4: Family = family(7, "cl100k_base", Cl100kBase, None, ImageRule::Tiles { base: 85, tile: 170 });
static DEEPSEEK: Family = family(8, "deepseek", DeepSeekV3, None, ImageRule::Unknown);
static QWEN: Family = family(9, "qwen", Qwen2, None, ImageRule::Qwen);
static QWEN_3_5: Family = family(10, "qwen3.5", Qwen35, None, ImageRule::Qwen);
static GLM_4: Family = family(11, "glm4", Glm4, None, ImageRule::Unknown);
static GLM_5: Family = family(12, "glm5", Glm5, None, ImageRule::Unknown);
static KIMI: Family = family(13, "kimi", KimiK2, None, ImageRule::Unknown);
static MINIMAX: Family = family(14, "minimax", MiniMaxM2, None, ImageRule::Unknown);
static MISTRAL: Family = family(15, "mistral tekken", Tekken, None, ImageRule::Unknown);
static MISTRAL_OLD: Family = family(16, "mistral spm", O200kBase, Some(&MISTRAL_SPM), ImageRule::Unknown);
static CLAUDE_3: Family = family(17, "claude", O200kBase, Some(&CLAUDE), ImageRule::Claude);
static CLAUDE_NEW: Family = family(18, "claude 4.7", O200kBase, Some(&CLAUDE_4_7), ImageRule::Claude);
static GEMINI_ANY: Family = family(19, "gemini", O200kBase, Some(&GEMINI), ImageRule::Gemini);
static LLAMA_3_X: Family = family(20, "llama 3", O200kBase, Some(&LLAMA_3), ImageRule::Unknown);
static LLAMA_4_X: Family = family(21, "llama 4", O200kBase, Some(&LLAMA_4), ImageRule::Unknown);
static OTHER: Family = family(22, "unknown", O200kBase, Some(&UNKNOWN), ImageRule::Unknown);
/// Nobody said which model.
static UNNAMED: Family = family(23, "o200k_base", O200kBase, None, ImageRule::Tiles { base: 85, tile: 170 });

/// Name fragments in the order in which they are tried: the first that the model's name holds decides.
static FRAGMENTS: &[(&str, &Family)] = &[
    // before the vendors whose models they were distilled into
    ("deepseek-r1-distill-qwen", &QWEN),
    ("deepseek-r1-distill-llama", &LLAMA_3_X),
    ("gpt-4o-mini", &GPT_4O_MINI),
    ("gpt-4o", &GPT_4O),
    ("gpt-4.1-mini", &SMALL),
    ("gpt-4.1-nano", &NANO),
    ("gpt-4.1", &GPT_4O),
    ("gpt-4.5", &GPT_4O),
    ("gpt-5-mini", &SMALL),
    ("gpt-5-nano", &NANO),
    ("gpt-5", &GPT_5),
    ("gpt-oss", &GPT_4O),
    ("chatgpt-4o", &GPT_4O),
    ("codex", &GPT_5),
    ("gpt-4", &GPT_4),
    ("gpt-3.5", &GPT_4),
    ("gpt-35", &GPT_4),
    ("o4-mini", &O4_MINI),
    ("deepseek", &DEEPSEEK),
    ("qwen3.5", &QWEN_3_5),
    ("qwen3.6", &QWEN_3_5),
    ("qwen", &QWEN),
    ("qwq", &QWEN),
    ("glm-5", &GLM_5),
    ("glm5", &GLM_5),
    ("glm", &GLM_4),
    ("kimi", &KIMI),
    ("moonshot", &KIMI),
    ("minimax", &MINIMAX),
    ("abab", &MINIMAX),
    // models of Mistral that still use its SentencePiece vocabulary
    ("mixtral", &MISTRAL_OLD),
    ("mistral-7b", &MISTRAL_OLD),
    ("mistral-tiny", &MISTRAL_OLD),
    ("mistral-large", &MISTRAL_OLD),
    ("codestral-22b", &MISTRAL_OLD),
    ("mathstral", &MISTRAL_OLD),
    ("mistral", &MISTRAL),
    ("ministral", &MISTRAL),
    ("magistral", &MISTRAL),
    ("codestral", &MISTRAL),
    ("devstral", &MISTRAL),
    ("pixtral", &MISTRAL),
    ("voxtral", &MISTRAL),
    ("gemini", &GEMINI_ANY),
    ("gemma", &GEMINI_ANY),
    ("llama-4", &LLAMA_4_X),
    ("llama4", &LLAMA_4_X),
    ("llama-3", &LLAMA_3_X),
    ("llama3", &LLAMA_3_X),
];

impl Family {
    /// Returns how `model` is counted; without a model, by `o200k_base` as it is.
    pub fn of(model: Option<&str>) -> &'static Self {
        let Some(model) = model else { return &UNNAMED };
        // A model's name is short; whatever else comes in here is not one.
        let model = model[..model.floor_char_boundary(256)].to_lowercase();
        if model.contains("claude") {
            return if claude_version(&model) >= (4, 7) { &CLAUDE_NEW } else { &CLAUDE_3 };
        }
        if let Some((_, family)) = FRAGMENTS.iter().find(|(fragment, _)| model.contains(fragment)) {
            return family;
        }
        // `o1`, `o3`: too short to be looked for inside other names
        match model.rsplit('/').next().unwrap_or_default().split('-').next() {
            Some("o1" | "o3") => &O_SERIES,
            _ => &OTHER,
        }
    }

    /// Returns the factor for a text, by its class, safety included; `None` where the vocabulary is the family's own.
    pub fn factor(&self, text: &str) -> Option<f32> {
        self.factors.map(|factors| factors[classify(text) as usize] * SAFETY_FACTOR)
    }

    /// Returns the most tokens that a byte of any text counts as: a byte-level vocabulary spends at least one on a token.
    pub fn tokens_per_byte(&self) -> f32 {
        self.factors
            .map_or(1.0, |factors| factors.iter().fold(1.0, |most: f32, &factor| most.max(factor * SAFETY_FACTOR)))
    }

    /// Returns whether counts of text are those of the family's own vocabulary.
    pub fn is_exact(&self) -> bool {
        self.factors.is_none()
    }
}

/// Returns the version in a name such as `claude-opus-4-7`, `claude-4.7-sonnet`, `claude-3-5-haiku-20241022`: the first
/// number of one or two digits and the one behind it; (0, 0) without any.
fn claude_version(model: &str) -> (u32, u32) {
    let name = &model[model.find("claude").unwrap_or_default()..];
    let mut numbers = name
        .split(|c: char| !c.is_ascii_alphanumeric())
        .skip_while(|part| part.len() > 2 || part.parse::<u32>().is_err())
        .map(|part| if part.len() <= 2 { part.parse().unwrap_or(0) } else { 0 });
    (numbers.next().unwrap_or(0), numbers.next().unwrap_or(0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn models_find_their_family() {
        let cases = [
            ("gpt-4o", "o200k_base"),
            ("openai/gpt-5.1-mini", "o200k_base"),
            ("azure/gpt-4", "cl100k_base"),
            ("gpt-3.5-turbo-0613", "cl100k_base"),
            ("o3-mini", "o200k_base"),
            ("deepseek/deepseek-chat", "deepseek"),
            ("openrouter/qwen/qwen3-coder:free", "qwen"),
            ("qwen3.5-plus", "qwen3.5"),
            ("zai/glm-4.7", "glm4"),
            ("moonshot/kimi-k2.5", "kimi"),
            ("MiniMax-M2", "minimax"),
            ("mistral/mistral-small-latest", "mistral tekken"),
            ("mixtral-8x7b", "mistral spm"),
            ("anthropic/claude-opus-4-5", "claude"),
            ("claude-3-5-haiku-20241022", "claude"),
            ("anthropic/claude-opus-4-7", "claude 4.7"),
            ("bedrock/us.anthropic.claude-opus-5-v1:0", "claude 4.7"),
            ("claude-sonnet-4-20250514", "claude"),
            ("gemini/gemini-2.5-pro", "gemini"),
            ("meta-llama/Llama-3.3-70B-Instruct", "llama 3"),
            ("groq/llama-4-scout", "llama 4"),
            ("my-own-model", "unknown"),
            ("", "unknown"),
        ];
        for (model, family) in cases {
            assert_eq!(Family::of(Some(model)).name, family, "{model}");
        }
        assert_eq!(Family::of(None).name, "o200k_base");
    }

    #[test]
    fn family_ids_are_unique() {
        let mut ids: Vec<u8> = FRAGMENTS.iter().map(|(_, family)| family.id).collect();
        ids.extend([O_SERIES.id, CLAUDE_3.id, CLAUDE_NEW.id, OTHER.id, UNNAMED.id]);
        ids.sort_unstable();
        ids.dedup();
        assert_eq!(ids, (0..=23).collect::<Vec<_>>());
    }
}
