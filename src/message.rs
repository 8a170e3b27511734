//! A conversation as the core sees it: parsed once at the edge, borrowed, typed from then on.
//!
//! A [`Text`] remembers what is known of it (its tokens, whether it is JSON), so that a caller with a cache can hand
//! that knowledge in and take it out again; the text itself is read only when something must be counted or cut.

use std::cell::Cell;

use serde::de::IgnoredAny;

use crate::tools::Effect;

/// Who speaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// `system`, and OpenAI's later name for it, `developer`.
    System,
    /// `user`
    User,
    /// `assistant`
    Assistant,
    /// `tool`: the answer to a tool call.
    Tool,
    /// `function`: OpenAI's older form of an answer; it has no id and goes with the message before it.
    Function,
}

impl Role {
    /// Returns the role that a provider's name for it stands for.
    pub fn parse(name: &str) -> Option<Self> {
        match name {
            "system" | "developer" => Some(Self::System),
            "user" => Some(Self::User),
            "assistant" => Some(Self::Assistant),
            "tool" => Some(Self::Tool),
            "function" => Some(Self::Function),
            _ => None,
        }
    }

    /// Returns the name that this role goes by in a request.
    pub fn name(self) -> &'static str {
        match self {
            Self::System => "system",
            Self::User => "user",
            Self::Assistant => "assistant",
            Self::Tool => "tool",
            Self::Function => "function",
        }
    }
}

/// Facts about a text that need no reading.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Facts {
    /// Its tokens under the counter in use: a text is made for one counter.
    pub tokens: Option<u32>,
    /// Whether it is one valid JSON value.
    pub json: Option<bool>,
}

/// A string of a message.
///
/// Small on purpose: a conversation has thousands, and a call that changes nothing does little else than make them.
#[derive(Debug, Clone)]
pub struct Text<'a> {
    text: &'a str,
    facts: Cell<Facts>,
    /// The caller's own number for this string, to find it again after planning.
    pub tag: u32,
}

impl<'a> Text<'a> {
    /// Returns a text of which nothing is known yet.
    pub fn new(text: &'a str) -> Self {
        Self::with_facts(text, Facts::default(), u32::MAX)
    }

    /// Returns a text with what the caller's cache knows of it, and the caller's number for it.
    pub fn with_facts(text: &'a str, facts: Facts, tag: u32) -> Self {
        Self { text, facts: Cell::new(facts), tag }
    }

    /// Returns the string itself.
    pub fn as_str(&self) -> &'a str {
        self.text
    }

    /// Returns its length in UTF-8 bytes.
    pub fn len(&self) -> usize {
        self.text.len()
    }

    /// Returns whether it holds nothing.
    pub fn is_empty(&self) -> bool {
        self.text.is_empty()
    }

    /// Returns what is known so far.
    pub fn facts(&self) -> Facts {
        self.facts.get()
    }

    /// Remembers the tokens.
    pub fn set_tokens(&self, tokens: u32) {
        self.facts.set(Facts { tokens: Some(tokens), ..self.facts.get() });
    }

    /// Returns whether the text is one valid JSON value of any depth; O(n) the first time.
    pub fn is_json(&self) -> bool {
        let facts = self.facts.get();
        facts.json.unwrap_or_else(|| {
            // `IgnoredAny` is skipped without recursion, so nesting cannot exhaust the stack.
            let valid = serde_json::from_str::<IgnoredAny>(self.text).is_ok();
            self.facts.set(Facts { json: Some(valid), ..facts });
            valid
        })
    }
}

impl<'a> From<&'a str> for Text<'a> {
    fn from(text: &'a str) -> Self {
        Self::new(text)
    }
}

/// The kinds of content that are not text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Media {
    /// An image; `low_detail` is OpenAI's `"detail": "low"`.
    Image {
        /// Whether the provider is asked to look at a small version only.
        low_detail: bool,
    },
    /// Sound.
    Audio,
    /// A document.
    File,
}

/// One part of a list content.
#[derive(Debug, Clone)]
pub enum Part<'a> {
    /// `{"type": "text", "text": …}` and a bare string.
    Text(Text<'a>),
    /// An image, sound or file, with its URL, data URL or base64 data.
    Media(Media, Text<'a>),
    /// A block of Anthropic's form, as compact JSON text. It is counted, and never cut by itself.
    Block(BlockKind, Text<'a>),
    /// Anything else, as compact JSON text.
    Other(Text<'a>),
}

/// The kinds of blocks of Anthropic's form that no other form has a field for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BlockKind {
    /// `thinking` and `redacted_thinking`: signed.
    Thought,
    /// `tool_use`, `tool_result` and those of the provider's own tools: one needs the other.
    Call,
}

impl<'a> Part<'a> {
    /// Returns the string that the part's size comes from.
    pub fn text(&self) -> &Text<'a> {
        match self {
            Self::Text(text) | Self::Media(_, text) | Self::Block(_, text) | Self::Other(text) => text,
        }
    }
}

/// What a message says.
#[derive(Debug, Clone, Default)]
pub enum Content<'a> {
    /// `None`, or no `content` at all.
    #[default]
    Empty,
    /// A string.
    Text(Text<'a>),
    /// A list of parts.
    Parts(Vec<Part<'a>>),
}

/// A call of a tool by the model. Fields that are missing or broken are `None`, and repaired by the plan.
#[derive(Debug, Clone)]
pub struct ToolCall<'a> {
    /// The id that the result must name.
    pub id: Option<Text<'a>>,
    /// The tool's name.
    pub name: Option<Text<'a>>,
    /// The arguments as JSON text, whatever form they came in.
    pub arguments: Option<Text<'a>>,
    /// Whether `arguments` were text in the message, as providers require.
    pub arguments_are_text: bool,
}

impl ToolCall<'_> {
    /// Returns what the call does: see [`Effect::of_call`].
    pub fn effect(&self) -> Effect {
        let arguments = self.arguments.as_ref().map_or("", Text::as_str);
        self.name.as_ref().map_or(Effect::Unknown, |name| Effect::of_call(name.as_str(), arguments))
    }
}

/// One message, borrowed from its owner.
#[derive(Debug, Clone)]
pub struct Message<'a> {
    /// Who speaks.
    pub role: Role,
    /// What is said.
    pub content: Content<'a>,
    /// The calls of an assistant message.
    pub tool_calls: Vec<ToolCall<'a>>,
    /// Which call a tool message answers.
    pub tool_call_id: Option<Text<'a>>,
    /// The speaker's or the tool's name.
    pub name: Option<Text<'a>>,
    /// What else providers read of it, each field once; most messages have none.
    pub fields: Vec<(Field, Text<'a>)>,
}

/// A field of a message that providers read beside content, calls, ids and names. What is not text is JSON text here.
///
/// What nobody reads has no place here and costs nothing: bookkeeping of the caller, such as `timestamp`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Field {
    /// `reasoning_content`: what the model thought, as text. DeepSeek, Kimi, GLM, Qwen and others.
    ReasoningContent,
    /// `reasoning`: the same, of OpenRouter, vLLM and others.
    Reasoning,
    /// `thinking_blocks`: Anthropic's signed thoughts, as LiteLLM has them.
    ThinkingBlocks,
    /// `reasoning_details`: OpenRouter's, signed or encrypted.
    ReasoningDetails,
    /// `extra_content`: Google's signature of a text.
    ExtraContent,
    /// `provider_specific_fields`: signatures, as LiteLLM has them.
    ProviderFields,
    /// Those of the call at this index, of itself and of its function, with `thought_signature`.
    Call(usize),
    /// `refusal`: what the model said in place of content.
    Refusal,
    /// The arguments of `function_call`, which is OpenAI's older form of a call.
    FunctionArguments,
    /// The rest of it.
    FunctionName,
    /// `audio`: what the model said aloud. Its id stands for it, so that nothing of it can be cut.
    Audio(Option<Media>),
}

impl Field {
    /// Returns whether it is thoughts in plain text, which may be cut: whether all of them may go is the family's to say.
    pub fn is_reasoning(self) -> bool {
        matches!(self, Self::ReasoningContent | Self::Reasoning)
    }

    /// Returns whether it may only go from rounds that are over: Anthropic, Gemini and others refuse calls of the round under way
    /// that come without their signatures.
    ///
    /// Sources: Google, "Thought signatures": validation is strict for the current turn only; Anthropic, "Extended thinking", "Preserving
    /// thinking blocks": from the last message of the user on that is no tool result.
    pub fn is_signature(self) -> bool {
        matches!(
            self,
            Self::ThinkingBlocks | Self::ReasoningDetails | Self::ExtraContent | Self::ProviderFields | Self::Call(_)
        )
    }

    /// Returns whether it may be cut without its message.
    pub fn is_cuttable(self) -> bool {
        !matches!(self, Self::FunctionName | Self::Audio(_))
    }
}

impl<'a> Message<'a> {
    /// Returns a message with text content and nothing else.
    pub fn new(role: Role, content: &'a str) -> Self {
        Self { content: Content::Text(Text::new(content)), ..Self::empty(role) }
    }

    /// Returns a message without content.
    pub fn empty(role: Role) -> Self {
        Self {
            role,
            content: Content::Empty,
            tool_calls: Vec::new(),
            tool_call_id: None,
            name: None,
            fields: Vec::new(),
        }
    }

    /// Returns a field.
    pub fn field(&self, field: Field) -> Option<&Text<'a>> {
        self.fields.iter().find(|(other, _)| *other == field).map(|(_, text)| text)
    }

    /// Iterates over what the model thought, in plain text.
    pub fn reasoning(&self) -> impl Iterator<Item = (Field, &Text<'a>)> {
        self.fields.iter().filter(|(field, _)| field.is_reasoning()).map(|(field, text)| (*field, text))
    }

    /// Iterates over the texts of the content.
    pub fn texts(&self) -> impl Iterator<Item = &'a str> {
        let (whole, parts) = match &self.content {
            Content::Empty => (None, [].as_slice()),
            Content::Text(text) => (Some(text.as_str()), [].as_slice()),
            Content::Parts(parts) => (None, parts.as_slice()),
        };
        let of_parts = parts.iter().filter_map(|part| match part {
            Part::Text(text) => Some(text.as_str()),
            _ => None,
        });
        whole.into_iter().chain(of_parts)
    }

    /// Returns the text of a content that is nothing else: a string, or a list of one text part.
    pub fn sole_text(&self) -> Option<&Text<'a>> {
        match &self.content {
            Content::Text(text) => Some(text),
            Content::Parts(parts) => match parts.as_slice() {
                [Part::Text(text)] => Some(text),
                _ => None,
            },
            Content::Empty => None,
        }
    }

    /// Calls `visit` with every string that costs tokens, and whether it is media.
    pub fn each_text<'s>(&'s self, mut visit: impl FnMut(&'s Text<'a>, Option<Media>)) {
        match &self.content {
            Content::Empty => {}
            Content::Text(text) => visit(text, None),
            Content::Parts(parts) => {
                for part in parts {
                    match part {
                        Part::Media(media, text) => visit(text, Some(*media)),
                        Part::Text(text) | Part::Block(_, text) | Part::Other(text) => visit(text, None),
                    }
                }
            }
        }
        for call in &self.tool_calls {
            for text in [&call.id, &call.name, &call.arguments].into_iter().flatten() {
                visit(text, None);
            }
        }
        for text in [&self.tool_call_id, &self.name].into_iter().flatten() {
            visit(text, None);
        }
        for (field, text) in &self.fields {
            visit(text, if let Field::Audio(media) = field { *media } else { None });
        }
    }
}
