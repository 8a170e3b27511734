//! Detects an overflow in one error.

use super::kind::{OverflowKind, code_kind};
use super::numbers::{self, LimitAndUsed};
use super::patterns::{self, Symptom, Symptoms};
use super::reading;
use crate::tokens::Tokens;

/// An overflow, with the numbers that the provider stated.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Overflow {
    /// What was too large.
    pub kind: OverflowKind,
    /// Tokens allowed, between 1,024 and 10,000,000 when an error states them; from 256 where the words beside the number say
    /// that it is a window or counts tokens. Of a rate ceiling, tokens per minute or day.
    pub limit_tokens: Option<Tokens>,
    /// Tokens of input that were sent; without the output, if the error separates them.
    pub used_tokens: Option<Tokens>,
    /// Whether the error says that `used_tokens` are the prompt's alone, as "14989 in the messages, 4096 in the completion".
    pub used_is_prompt: bool,
    /// For [`OutputCap`](OverflowKind::OutputCap): the longest answer that is possible, if stated.
    pub output_tokens: Option<Tokens>,
    /// For [`RequestBytes`](OverflowKind::RequestBytes): the bytes that are allowed, if stated.
    pub limit_bytes: Option<u64>,
    /// For [`Messages`](OverflowKind::Messages): how many are allowed, if stated.
    pub limit_messages: Option<u64>,
}

impl Overflow {
    /// Returns an overflow with these numbers only.
    #[must_use]
    pub const fn new(kind: OverflowKind, limit_tokens: Option<Tokens>, used_tokens: Option<Tokens>) -> Self {
        Self {
            kind,
            limit_tokens,
            used_tokens,
            used_is_prompt: false,
            output_tokens: None,
            limit_bytes: None,
            limit_messages: None,
        }
    }
}

/// A failed call. Only errors are read, never what a user, a tool or the model wrote.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ErrorView<'a> {
    /// The message or the whole body: prose, JSON, a Python repr, cut off or not.
    pub text: &'a str,
    /// The HTTP status; if unknown, one that the text names is used.
    pub status: Option<u16>,
    /// The error's `code`.
    pub code: Option<&'a str>,
    /// The error's `type`, or the class of the exception.
    pub error_type: Option<&'a str>,
    /// The provider's name as configured, for forms that only mean an overflow with one provider.
    pub provider: Option<&'a str>,
}

/// Returns the overflow that an error reports, or `None` for every other error.
///
/// Codes decide first. Then look-alikes are excluded: blocked prompts and people's words about overflows always; rates,
/// quotas, images, tool pairing and the like unless the text names the context window. Then come known forms of providers,
/// and last a sentence that says that something of the prompt is too large. Of a long text the first and last 8 KB are read.
/// An error without any hint of an overflow costs well under a microsecond.
#[must_use]
pub fn detect_overflow(error: &ErrorView<'_>) -> Option<Overflow> {
    let named = [error.code, error.error_type].into_iter().flatten().find_map(code_kind);
    let (head, tail) = reading::ends(error.text);
    if named.is_none() && error.status != Some(413) && !patterns::hints(head) && !patterns::hints(tail) {
        return None;
    }
    let read = reading::read(error.text);
    let symptoms = Symptoms::of(&read.text);
    let named = named.or_else(|| read.codes.iter().find_map(|code| code_kind(code)));
    let kind = match named {
        // LiteLLM files an output cap under `ContextWindowExceededError`; the text knows better.
        Some(OverflowKind::Input) if symptoms.has(Symptom::Output) && !symptoms.has(Symptom::Combined) => {
            OverflowKind::OutputCap
        }
        Some(kind) => kind,
        None => Case { error, text: &read.text, codes: &read.codes, symptoms }.kind()?,
    };
    let (limit_tokens, used_tokens) = stated(kind, &read.text);
    let kind = match (kind, limit_tokens.zip(used_tokens)) {
        // "max_tokens: 32768 > context_window: 200000 - input_tokens: 250000": no output cap helps here.
        (OverflowKind::OutputCap, Some((limit, used))) if used >= limit => OverflowKind::Input,
        // "4097 tokens, however you requested 4182 (182 in your prompt; 4000 for the completion)": the answer is what is
        // too long. Above half, the prompt takes its share of the blame.
        (OverflowKind::Input, Some((limit, used))) if used <= limit / 2 && names_output(&read.text) => {
            OverflowKind::OutputCap
        }
        _ => kind,
    };
    let output_tokens = match (kind, limit_tokens.zip(used_tokens)) {
        (OverflowKind::OutputCap, Some((limit, used))) => limit.checked_sub(used),
        (OverflowKind::OutputCap, None) => numbers::output_cap(&read.text),
        _ => None,
    };
    let limit_bytes = if kind == OverflowKind::RequestBytes { numbers::limit_bytes(&read.text) } else { None };
    // Without a number it is unknown how many would be accepted.
    let limit_messages = if kind == OverflowKind::Messages { Some(numbers::limit_messages(&read.text)?) } else { None };
    let used_is_prompt = used_tokens.is_some() && numbers::named_prompt(read.text.as_bytes()) == used_tokens;
    let numbers = Overflow::new(kind, limit_tokens.map(Tokens), used_tokens.map(Tokens));
    let output_tokens = output_tokens.map(Tokens);
    Some(Overflow { used_is_prompt, output_tokens, limit_bytes, limit_messages, ..numbers })
}

fn names_output(text: &str) -> bool {
    ["completion", "output", "max_tokens", "max_new_tokens"].iter().any(|name| text.contains(name))
}

fn stated(kind: OverflowKind, text: &str) -> LimitAndUsed {
    match kind {
        OverflowKind::Input => numbers::input(text),
        OverflowKind::OutputCap => numbers::output(text),
        OverflowKind::RateCeiling => numbers::rate(text),
        OverflowKind::RequestBytes | OverflowKind::Messages | OverflowKind::Silent | OverflowKind::Reasoning => {
            (None, None)
        }
    }
}

/// An error whose codes alone decide nothing.
struct Case<'a> {
    error: &'a ErrorView<'a>,
    text: &'a str,
    codes: &'a [String],
    symptoms: Symptoms,
}

impl Case<'_> {
    /// The HTTP status, also where only the text names it.
    fn status(&self) -> Option<u16> {
        self.error.status.or_else(|| status_in(self.text))
    }

    fn kind(&self) -> Option<OverflowKind> {
        use OverflowKind::{Input, Messages, OutputCap, RateCeiling, Reasoning, RequestBytes};
        let has = |sign| self.symptoms.has(sign);
        if has(Symptom::Quoted) {
            return None;
        }
        if has(Symptom::Reasoning) {
            return matches!(self.status(), None | Some(400 | 422)).then_some(Reasoning);
        }
        if has(Symptom::Rate) && self.is_above_the_rate() {
            return Some(RateCeiling);
        }
        let is_other = has(Symptom::Other) || matches!(self.status(), Some(401..=404 | 408 | 429));
        if has(Symptom::Output) && !has(Symptom::Combined) && !is_other {
            return Some(OutputCap);
        }
        if has(Symptom::Strong) {
            return Some(Input);
        }
        if let Some(is_message) = self.string_too_long() {
            return is_message.then_some(Input);
        }
        if let Some(is_messages) = self.array_too_long() {
            return is_messages.then_some(Messages);
        }
        if !is_other && has(Symptom::Count) && self.has_too_many_messages() {
            return Some(Messages);
        }
        if is_other {
            return None;
        }
        if has(Symptom::Specific) || self.is_scoped() {
            return Some(Input);
        }
        if has(Symptom::Bytes) {
            return Some(RequestBytes);
        }
        let has_failed = self.status().is_none_or(|status| status >= 400);
        if has_failed && (has(Symptom::Weak) || self.has_telling_sentence() || self.has_telling_numbers()) {
            return Some(Input);
        }
        (self.status() == Some(413)).then_some(RequestBytes)
    }

    /// Returns whether this single request exceeds the rate, so that waiting does not help.
    fn is_above_the_rate(&self) -> bool {
        let (limit, requested) = numbers::rate(self.text);
        self.symptoms.has(Symptom::RateTooLarge)
            || requested.zip(limit).is_some_and(|(requested, limit)| requested > limit)
    }

    /// `OpenAI` limits the characters of every string: "Invalid 'user': string too long. Expected a string with maximum
    /// length 64". Returns whether the string is part of the conversation, `None` when the error is another.
    fn string_too_long(&self) -> Option<bool> {
        let (before, _) = self.text.split_once("string too long")?;
        // "prompt_cache_key: string too long."
        let named = before.trim_end().strip_suffix(':').and_then(|before| before.rsplit([' ', '\n']).next());
        let invalid = before.rsplit_once("invalid ").map(|(_, parameter)| parameter);
        let Some(parameter) = invalid.or(named) else {
            return Some(self.error.code.is_none_or(|code| !code.contains("above_max_length")));
        };
        let field = parameter.trim_end_matches([':', ' ']).rsplit('.').next()?.split('[').next()?;
        Some(["content", "text", "output", "input", "prompt", "instructions", "messages"].contains(&field))
    }

    /// `OpenAI` limits the items of every array, too: "Invalid 'messages': array too long. Expected an array with maximum
    /// length 2048". Returns whether the array is the conversation, `None` when the error is another.
    fn array_too_long(&self) -> Option<bool> {
        let (before, _) = self.text.split_once("array too long")?;
        let name = before.trim_end_matches([':', ' ', '\n']).rsplit([' ', '\n']).next()?;
        Some(["messages", "input", "contents", "history"].contains(&name))
    }

    /// Returns whether a text about the number of messages says that there are too many, and measures nothing else.
    fn has_too_many_messages(&self) -> bool {
        let has = |words: &[&str]| words.iter().any(|word| self.text.contains(word));
        has(&["exceed", "too many", "at most", "more than", "up to", "超", "最多", "过多"])
            && !has(&["token", "context", "上下文"])
    }

    /// Forms that mean an overflow with one provider only.
    fn is_scoped(&self) -> bool {
        let provider = self.error.provider.unwrap_or_default().to_ascii_lowercase();
        let is = |names: &[&str]| names.iter().any(|name| provider.contains(name));
        if is(&["cerebras"]) && matches!(self.status(), Some(400 | 413)) && self.text.contains("(no body)") {
            return true;
        }
        let codes = self.error.code.into_iter().chain(self.codes.iter().map(String::as_str));
        // The first two are zhipu's "prompt too long" and `MiniMax`'s "token limit"; the others are "invalid parameter", so
        // the text must point to length.
        codes.into_iter().any(|code| match code {
            "1261" => is(ZHIPU),
            "1039" => is(&["minimax"]) || self.text.contains("token limit"),
            "1210" => is(ZHIPU) && self.points_to_length(),
            "2013" => is(&["minimax"]) && self.points_to_length(),
            _ => false,
        })
    }

    fn points_to_length(&self) -> bool {
        ["token", "context", "length", "too long", "长", "超"].iter().any(|word| self.text.contains(word))
    }

    /// The last resort, for words not seen before: one sentence that says what is too large, that it is, and in what.
    fn has_telling_sentence(&self) -> bool {
        let wanted = [Symptom::Subject, Symptom::Excess, Symptom::Measure];
        wanted.iter().all(|&sign| self.symptoms.has(sign))
            && self.text.lines().any(|sentence| {
                let symptoms = Symptoms::of(sentence);
                wanted.iter().all(|&sign| symptoms.has(sign))
                    && !symptoms.has(Symptom::Output)
                    && !sentence.contains("output token")
            })
    }

    /// "Your request has 140000 input tokens, but the maximum is 131072."
    fn has_telling_numbers(&self) -> bool {
        self.symptoms.has(Symptom::Subject) && self.text.contains("token") && numbers::states_excess(self.text)
    }
}

const ZHIPU: &[&str] = &["zhipu", "z.ai", "zai", "z-ai", "glm", "bigmodel"];

/// Returns the status that a text names: "Error code: 413 - …", "HTTP 400", "<400> …", "429 {…".
fn status_in(text: &str) -> Option<u16> {
    let start = text.trim_start_matches("error: ").trim_start_matches(['<', '(']);
    let named = ["error code: ", "status code: ", "status code ", "status: ", "http ", "api error ("];
    let named = named.iter().filter_map(|name| text.find(name).map(|at| &text[at + name.len()..]));
    std::iter::once(start).chain(named).find_map(|rest| {
        let digits = rest.get(..3)?;
        let is_number = digits.bytes().all(|byte| byte.is_ascii_digit())
            && !rest[3..].starts_with(|c: char| c.is_ascii_alphanumeric());
        digits.parse().ok().filter(|status| is_number && (400..600).contains(status))
    })
}
