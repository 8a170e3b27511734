//! The kinds of overflow.

/// What was too large. No overflow is `None` of an `Option<Overflow>`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum OverflowKind {
    /// The prompt, or prompt and output together, against the model's window.
    Input,
    /// The output asked for; a lower `max_tokens` is enough.
    OutputCap,
    /// The body of the request, in bytes.
    RequestBytes,
    /// The number of messages, whatever their size.
    Messages,
    /// One request against the tokens that a minute or a day allows; waiting does not help.
    RateCeiling,
    /// The prompt, without an error: see [`detect_silent`](super::detect_silent).
    Silent,
    /// Nothing was too large: the provider wants the model's reasoning back with the calls that it led to.
    Reasoning,
}

impl OverflowKind {
    /// Returns the name that Python and the logs use.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Input => "input",
            Self::OutputCap => "output_cap",
            Self::RequestBytes => "request_bytes",
            Self::Messages => "messages",
            Self::RateCeiling => "rate_ceiling",
            Self::Silent => "silent",
            Self::Reasoning => "reasoning",
        }
    }

    /// Returns the kind of a name that [`OverflowKind::name`] gave.
    #[must_use]
    pub fn parse(name: &str) -> Option<Self> {
        use OverflowKind::{Input, Messages, OutputCap, RateCeiling, Reasoning, RequestBytes, Silent};
        [Input, OutputCap, RequestBytes, Messages, RateCeiling, Silent, Reasoning]
            .into_iter()
            .find(|kind| kind.name() == name)
    }
}
