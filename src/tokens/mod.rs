//! Counts the tokens of texts, messages and requests.
//!
//! [`TokenCounter`] is made for a model. Where the model's family publishes its vocabulary the count is that
//! vocabulary's; for the others it is `o200k_base`'s count times a factor measured for the family and the class of text.

mod cache;
mod characters;
mod class;
mod count;
mod cut;
mod family;
mod media;
mod merges;
mod pieces;
mod recount;
mod seams;
mod table;
mod tools;
mod vocabulary;
mod words;

use crate::message::{Field, Media, Message, Text};

pub(crate) use cache::{BuildMixedHasher, ContentMemory, caches, content_seed, cut_by_content};
pub use cache::{IdentityCache, Key, Way};
pub use class::{Script, TextClass};
pub use count::{Count, Source, Tokens};
pub use cut::{prefix_within, segments, suffix_within};
pub use family::{Family, SAFETY_FACTOR};
pub use pieces::counted_bytes;
pub use recount::Recount;
pub use vocabulary::{Encoding, Vocabulary};

// Framing of chat messages: OpenAI cookbook, "How to count tokens with tiktoken", `num_tokens_from_messages`.
/// Tokens of framing of a message.
const MESSAGE: Tokens = Tokens(3);
/// Tokens of a role: its name is one in every vocabulary here.
const ROLE: Tokens = Tokens(1);
/// Tokens of framing of a `name`.
const NAME: Tokens = Tokens(1);
/// Tokens of the start of the reply, once a request.
pub const REPLY: Tokens = Tokens(3);
/// Tokens of framing of a tool call.
///
/// The cookbook has no figure. OpenAI's Harmony format spends `<|start|>`, `<|channel|>`, `commentary`, `to=functions.`,
/// `<|constrain|>`, `json`, `<|message|>` and `<|call|>` on one.
const CALL: Tokens = Tokens(8);

/// Counts tokens as one model's provider does.
#[derive(Debug, Clone, Copy)]
pub struct TokenCounter {
    family: &'static Family,
    /// Added to each message's count.
    overhead_tokens: Tokens,
}

impl TokenCounter {
    /// Returns the counter for `model`; without one, `o200k_base` as it is.
    ///
    /// Costs nothing: a vocabulary is loaded by the first count that needs it.
    pub fn new(model: Option<&str>) -> Self {
        Self { family: Family::of(model), overhead_tokens: Tokens::ZERO }
    }

    /// Returns a counter that adds `overhead_tokens` to each message, for a provider that does.
    #[must_use]
    pub fn with_overhead(self, overhead_tokens: Tokens) -> Self {
        Self { overhead_tokens, ..self }
    }

    /// Returns a key of this way of counting.
    pub fn id(&self) -> (u8, Tokens) {
        (self.family.id, self.overhead_tokens)
    }

    /// Returns the cache key of what this counter finds about a text.
    pub fn key(&self, way: Way) -> Key {
        Key { family: self.family.id, way }
    }

    /// Returns how this model is counted.
    pub fn family(&self) -> &'static Family {
        self.family
    }

    /// Returns whether counts are the model's own.
    pub fn source(&self) -> Source {
        if self.family.is_exact() { Source::Exact } else { Source::Estimated }
    }

    /// Returns the tokens of `text`, cached by content; O(n) in its bytes.
    ///
    /// Text that spells a special token (`<|endoftext|>`) counts as ordinary text.
    pub fn text(&self, text: &str) -> Tokens {
        self.cached(text).into()
    }

    fn cached(&self, text: &str) -> u32 {
        if text.is_empty() {
            return 0;
        }
        cache::by_content(text, self.key(Way::Text), || self.count_now(text))
    }

    fn count_now(&self, text: &str) -> u32 {
        scaled(self.vocabulary().count(text), self.family.factor(text))
    }

    /// As [`Self::text`], for one of several variants of a text: segments in `recount` are not counted again.
    pub fn variant(&self, text: &str, recount: &mut Recount) -> Tokens {
        if !self.family.encoding.adds_up() {
            return self.text(text);
        }
        cache::by_content(text, self.key(Way::Text), || {
            scaled(recount.count(text, self.vocabulary()), self.family.factor(text))
        })
        .into()
    }

    /// Returns the tokens of the bare vocabulary that count as `tokens` in a text such as `like`, rounded down.
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, clippy::cast_precision_loss)] // tokens are < 2^53
    pub(crate) fn bare(&self, tokens: usize, like: &str) -> usize {
        self.family.factor(like).map_or(tokens, |factor| (tokens as f64 / f64::from(factor)) as usize)
    }

    /// Returns the vocabulary that texts are counted with, before any factor.
    pub fn vocabulary(&self) -> &'static dyn Vocabulary {
        self.family.encoding.load()
    }

    /// Returns the tokens of a message's text, which remembers them.
    pub fn known(&self, text: &Text<'_>, media: Option<Media>) -> Tokens {
        let tokens = text.facts().tokens.unwrap_or_else(|| {
            let tokens = match media {
                None => self.cached(text.as_str()),
                Some(media) => media::count(media, text.as_str(), self.family),
            };
            text.set_tokens(tokens);
            tokens
        });
        tokens.into()
    }

    /// Returns the tokens of a message's framing and role: those of the message with empty texts.
    pub fn framing(&self, message: &Message<'_>) -> Tokens {
        let name = if message.name.is_some() { NAME } else { Tokens::ZERO };
        let calls = message.tool_calls.len() as u64 + u64::from(message.field(Field::FunctionName).is_some());
        MESSAGE + ROLE + name + CALL * calls + self.overhead_tokens
    }

    /// Returns the tokens of one message, framing included.
    pub fn message(&self, message: &Message<'_>) -> Tokens {
        let mut tokens = self.framing(message);
        message.each_text(|text, media| tokens += self.known(text, media));
        tokens
    }

    /// Returns the tokens of a request: messages, framing, tool schemas (JSON text) and the start of the reply.
    pub fn prompt(&self, messages: &[Message<'_>], tools: Option<&str>) -> Count {
        let messages: Tokens = messages.iter().map(|message| self.message(message)).sum();
        let tokens = messages + REPLY + tools.map_or(Tokens::ZERO, |tools| self.tools(tools));
        Count { tokens, source: self.source() }
    }

    /// Returns whether a request has at most `max_tokens`; see [`Self::prompt`].
    ///
    /// Reads no text if bounds decide, and otherwise only as much as it takes.
    pub fn prompt_fits(&self, messages: &[Message<'_>], tools: Option<&str>, max_tokens: Tokens) -> bool {
        let bound = self.messages_bound(messages);
        let within = |overhead: Tokens| bound.is_some_and(|bound| bound + overhead <= max_tokens);
        if within(REPLY + tools.map_or(Tokens::ZERO, |tools| self.tools_bound(tools))) {
            return true;
        }
        let overhead = REPLY + tools.map_or(Tokens::ZERO, |tools| self.tools(tools));
        if overhead > max_tokens {
            return false;
        }
        if within(overhead) {
            return true;
        }
        let mut left = max_tokens - overhead;
        for message in messages {
            let mut needed = Some(self.framing(message));
            message.each_text(|text, media| {
                needed = needed.filter(|needed| *needed <= left).and_then(|needed| {
                    let tokens = match (text.facts().tokens, media) {
                        (None, None) => self.text_within(text.as_str(), left - needed)?,
                        _ => self.known(text, media),
                    };
                    Some(needed + tokens)
                });
            });
            match needed.filter(|needed| *needed <= left) {
                Some(needed) => left -= needed,
                None => return false,
            }
        }
        true
    }

    /// Returns an upper bound of a request's tokens; `None` if there is none. Reads no text of its messages.
    pub fn prompt_bound(&self, messages: &[Message<'_>], tools: Option<&str>) -> Option<Tokens> {
        let messages = self.messages_bound(messages);
        messages.map(|messages| messages + REPLY + tools.map_or(Tokens::ZERO, |tools| self.tools_bound(tools)))
    }

    fn messages_bound(&self, messages: &[Message<'_>]) -> Option<Tokens> {
        messages.iter().map(|message| self.upper_bound(message)).sum()
    }

    /// Returns the tokens of `text`, or `None` if they exceed `max_tokens`.
    fn text_within(&self, text: &str, max_tokens: Tokens) -> Option<Tokens> {
        /// Bytes between two looks at the limit.
        const STEP_BYTES: usize = 4096;
        let factor = self.family.factor(text);
        let mut raw = 0;
        for segment in segments(text, STEP_BYTES) {
            raw += self.vocabulary().count(segment);
            if Tokens::from(scaled(raw, factor)) > max_tokens {
                return None;
            }
        }
        Some(scaled(raw, factor).into())
    }

    /// Returns an upper bound of a message's tokens; `None` if there is none. Reads no text of it.
    pub fn upper_bound(&self, message: &Message<'_>) -> Option<Tokens> {
        let mut bound = Some(self.framing(message));
        message.each_text(|text, media| {
            let tokens = match (text.facts().tokens, media) {
                (Some(tokens), _) => Some(tokens.into()),
                (None, None) => Some(self.text_bound(text.as_str())),
                (None, Some(_)) => None,
            };
            bound = bound.zip(tokens).map(|(sum, tokens)| sum + tokens);
        });
        bound
    }

    fn text_bound(&self, text: &str) -> Tokens {
        scaled(text.len(), Some(self.family.tokens_per_byte())).into()
    }
}

/// Returns a count of the vocabulary as the family counts it, rounded up.
#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, clippy::cast_precision_loss)] // positive, saturating
fn scaled(tokens: usize, factor: Option<f32>) -> u32 {
    match factor {
        None => u32::try_from(tokens).unwrap_or(u32::MAX),
        Some(factor) => (tokens as f64 * f64::from(factor)).ceil() as u32,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::message::{Content, Part, Role};

    #[test]
    fn framing_is_the_cookbooks() {
        // The cookbook's own example and its published counts.
        let example = || {
            let names = [None, Some("example_user"), Some("example_assistant")];
            let lines = [
                (
                    0,
                    "You are a helpful, pattern-following assistant that translates corporate jargon into plain English.",
                ),
                (1, "New synergies will help drive top-line growth."),
                (2, "Things working well together will increase revenue."),
                (
                    1,
                    "Let's circle back when we have more bandwidth to touch base on opportunities for increased leverage.",
                ),
                (2, "Let's talk later when we're less busy about how to do better."),
            ];
            let mut messages: Vec<Message<'_>> = lines
                .into_iter()
                .map(|(name, text)| Message { name: names[name].map(Into::into), ..Message::new(Role::System, text) })
                .collect();
            let pivot = "This late pivot means we don't have time to boil the ocean for the client deliverable.";
            messages.push(Message::new(Role::User, pivot));
            messages
        };
        assert_eq!(TokenCounter::new(Some("gpt-4o")).prompt(&example(), None).tokens, Tokens(124));
        assert_eq!(TokenCounter::new(Some("gpt-4")).prompt(&example(), None).tokens, Tokens(129));
    }

    #[test]
    fn other_families_never_get_the_raw_number() {
        let text = "The quick brown fox explains importers to everybody who wants to listen. ".repeat(20);
        let raw = TokenCounter::new(Some("gpt-4o")).text(&text);
        let claude = TokenCounter::new(Some("claude-opus-4-5")).text(&text);
        assert!(claude > raw.share(1.13));
        assert_eq!(TokenCounter::new(Some("claude-opus-4-5")).source(), Source::Estimated);
    }

    #[test]
    fn a_prompt_fits_exactly_when_its_count_does() {
        let long = "2026-05-01 worker 3: batch done\n".repeat(900);
        for model in ["gpt-4o", "claude-opus-4-5", "deepseek-chat"] {
            let counter = TokenCounter::new(Some(model));
            let messages = || [Message::new(Role::System, "be exact"), Message::new(Role::User, &long)];
            let tokens = counter.prompt(&messages(), Some("[]")).tokens;
            let limits = [(Tokens::ZERO, false), (Tokens(20), false), (tokens - Tokens(1), false)];
            for (max_tokens, fits) in limits.into_iter().chain([(tokens, true), (Tokens::MAX, true)]) {
                assert_eq!(counter.prompt_fits(&messages(), Some("[]"), max_tokens), fits, "{model} {max_tokens}");
            }
        }
    }

    #[test]
    fn the_bound_is_never_below_the_count() {
        for model in ["gpt-4o", "gpt-4", "claude-opus-4-7", "deepseek-chat", "no-such-model"] {
            let counter = TokenCounter::new(Some(model));
            for text in ["", "a", "日本語🙂", "\u{0}\u{1}", "1234567890", "����"] {
                let bound = counter.upper_bound(&Message::new(Role::User, text));
                assert!(bound >= Some(counter.message(&Message::new(Role::User, text))), "{model} {text:?}");
            }
        }
        let image = Message {
            content: Content::Parts(vec![Part::Media(Media::Image { low_detail: false }, "x".into())]),
            ..Message::empty(Role::User)
        };
        assert_eq!(TokenCounter::new(None).upper_bound(&image), None);
    }

    #[test]
    fn the_bound_of_tool_schemas_is_never_below_their_count() {
        let long = format!(r#"[{{"name": "f", "description": "{}"}}]"#, "Reads. ".repeat(30));
        let enums = r#"[{"function": {"name": "f", "parameters": {"properties": {
            "a": {"type": "integer", "enum": [1, 2, 3, "", "four"]}, "b": {}, "c": {"type": "array", "items": [1e300]}}}}}]"#;
        for model in ["gpt-4o", "gpt-4", "claude-opus-4-7", "deepseek-chat", "no-such-model"] {
            let counter = TokenCounter::new(Some(model));
            for schemas in ["[]", "no json", r#"[{"name": "x"}]"#, r#"[{"no": "name"}]"#, enums, &long] {
                let bound = counter.tools_bound(schemas);
                assert!(bound >= counter.tools(schemas), "{model} {schemas}");
            }
            assert_eq!(counter.tools_bound(&long), counter.tools(&long), "a count that is known is the bound");
        }
    }
}
