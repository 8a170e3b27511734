//! Hashes everything that determines a plan.

use xxhash_rust::xxh3::Xxh3;

use crate::message::{BlockKind, Content, Field, Media, Message, Part, Role, Text};
use crate::tokens::content_seed;

/// A 128-bit hash being computed, seeded per process.
#[derive(Clone)]
pub struct Digest(Xxh3);

impl Default for Digest {
    fn default() -> Self {
        Self(Xxh3::with_seed(content_seed()))
    }
}

impl Digest {
    pub fn finish(&self) -> u128 {
        self.0.digest128()
    }

    pub fn number(&mut self, number: u64) {
        self.0.update(&number.to_ne_bytes());
    }

    pub fn text(&mut self, text: &str) {
        // The length separates two texts from their concatenation.
        self.number(text.len() as u64 + 1);
        self.0.update(text.as_bytes());
    }

    fn optional(&mut self, text: Option<&Text<'_>>) {
        match text {
            None => self.number(0),
            Some(text) => self.text(text.as_str()),
        }
    }

    /// Adds a message; a system message without its text.
    pub fn message(&mut self, message: &Message<'_>) {
        self.number(message.role as u64);
        if message.role == Role::System {
            return;
        }
        match &message.content {
            Content::Empty => self.number(u64::MAX),
            Content::Text(text) => self.text(text.as_str()),
            Content::Parts(parts) => {
                self.number(u64::MAX - 1);
                self.number(parts.len() as u64);
                for part in parts {
                    self.number(match part {
                        Part::Text(_) => 0,
                        Part::Media(Media::Image { low_detail: false }, _) => 1,
                        Part::Media(Media::Image { low_detail: true }, _) => 2,
                        Part::Media(Media::Audio, _) => 3,
                        Part::Media(Media::File, _) => 4,
                        Part::Other(_) => 5,
                        Part::Block(BlockKind::Thought, _) => 6,
                        Part::Block(BlockKind::Call, _) => 7,
                    });
                    self.text(part.text().as_str());
                }
            }
        }
        self.number(message.tool_calls.len() as u64);
        for call in &message.tool_calls {
            for text in [&call.id, &call.name, &call.arguments] {
                self.optional(text.as_ref());
            }
            self.number(u64::from(call.arguments_are_text));
        }
        for text in [&message.tool_call_id, &message.name] {
            self.optional(text.as_ref());
        }
        self.number(message.fields.len() as u64);
        for (field, text) in &message.fields {
            self.number(match field {
                Field::ReasoningContent => 0,
                Field::Reasoning => 1,
                Field::ThinkingBlocks => 2,
                Field::ReasoningDetails => 3,
                Field::ExtraContent => 4,
                Field::ProviderFields => 5,
                Field::Refusal => 6,
                Field::FunctionArguments => 7,
                Field::FunctionName => 8,
                Field::Audio(media) => 9 + u64::from(media.is_some()),
                Field::Call(index) => 11 + *index as u64,
            });
            self.text(text.as_str());
        }
    }
}
