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

/// Returns the kind of overflow that a code or error type names by itself.
pub(super) fn code_kind(code: &str) -> Option<OverflowKind> {
    let name: String = code.chars().filter(char::is_ascii_alphanumeric).map(|c| c.to_ascii_lowercase()).collect();
    let has = |part: &str| name.contains(part);
    let exceeds = has("exceed") || has("overflow") || has("toolong") || has("limitreached");
    if has("deadline") || has("rate") || has("quota") || has("output") {
        None
    } else if exceeds
        && (has("context") || has("prompt") || has("inputtoken") || has("inputtoolong") || has("inputlength"))
        || name == "tokenslimitreached"
    {
        Some(OverflowKind::Input)
    } else if has("requesttoolarge") || has("payloadtoolarge") || has("entitytoolarge") || has("bodytoolarge") {
        Some(OverflowKind::RequestBytes)
    } else {
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_code_that_names_the_context_is_an_overflow_and_a_deadline_is_not() {
        assert_eq!(code_kind("context_length_exceeded"), Some(OverflowKind::Input));
        assert_eq!(code_kind("ContextWindowExceededError"), Some(OverflowKind::Input));
        assert_eq!(code_kind("model_max_prompt_tokens_exceeded"), Some(OverflowKind::Input));
        assert_eq!(code_kind("exceed_context_size_error"), Some(OverflowKind::Input));
        assert_eq!(code_kind("request_too_large"), Some(OverflowKind::RequestBytes));
        for other in
            ["context_deadline_exceeded", "rate_limit_exceeded", "insufficient_quota", "invalid_request_error", "400"]
        {
            assert_eq!(code_kind(other), None, "{other}");
        }
    }
}
