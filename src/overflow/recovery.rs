//! What to send after a refusal: a state machine that sends nothing itself.
//!
//! The caller sends a request, tells [`Recovery`] how it was refused, does what the [`Step`] says and tells the outcome,
//! until a step says to give up: after three attempts at the latest, and one more where a shorter answer might have been all
//! that it took. Each asks for less than the one before, but for one that sends reasoning back. No step needs a model.

use super::detect::Overflow;
use super::kind::OverflowKind;
use crate::tokens::Tokens;

/// Requests that are sent after the first was refused, smaller prompts and shorter answers together. Source: hermes and
/// openclaw stop after three.
const MAX_ATTEMPTS: usize = 3;

/// Of the room that the stated limit leaves for the prompt, what each attempt uses: our count and the provider's differ.
///
/// Source: a tenth is what the counts of the families without a public vocabulary are off by; then as openclaw shrinks.
const OF_STATED_PERCENT: [u64; MAX_ATTEMPTS] = [90, 70, 50];

/// A prompt above this share of the refused one is not smaller by more than the noise of counting.
const SMALLER_PERCENT: u64 = 95;

/// For the most essential of it the first prompt after a refusal comes as close to the limit, where what is never cut leaves no more.
/// Source: system prompts within 150 to 1,200 tokens of 8,192, counted by the provider up to a tenth differently: 900 repairs, in
/// none of which a rule or call went that stayed with the margin of 5 %, with fewer refusals.
const CLOSE_PERCENT: u64 = 98;
const MOST_ESSENTIAL_TOKENS: Tokens = Tokens(192);

/// A provider that says that it counted less than we did is believed up to this part of it: it may have left tools out.
const MAX_MORE: u64 = 10;

/// Compressions in a row that left the prompt as large as it was, after which no other is tried.
const MAX_USELESS: u32 = 2;

/// An answer of fewer tokens is of no use, unless the provider itself says that it has no longer one.
pub const MIN_OUTPUT_TOKENS: Tokens = Tokens(256);

/// A prompt that leaves as much, or half of what was asked for, is not cut for a longer answer: less is lost by an answer that is
/// asked to go on.
const SHORT_OUTPUT_TOKENS: Tokens = Tokens(1_024);

/// An answer that is as large a part of the prompt may be what a refusal without a number was for: some providers add both up,
/// some say nothing of it.
const ANSWER_PART: u64 = 4;

/// Most answers are shorter.
const USUAL_OUTPUT_TOKENS: Tokens = Tokens(4_096);

/// What rules of the user, the newest call in its shortest form, the ledger and a mark take in a prompt of little else.
pub const ESSENTIAL_TOKENS: Tokens = Tokens(512);

/// Returns what to keep free for an answer of at most `asked_tokens` where `left_tokens` of a window are not taken by what is never
/// cut: a quarter, or as much as most answers have, but at most half.
#[must_use]
pub fn answer_reserve(left_tokens: Tokens, asked_tokens: Tokens) -> Tokens {
    asked_tokens.min((left_tokens / 4).max((left_tokens / 2).min(USUAL_OUTPUT_TOKENS)))
}

/// What the caller does next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Step {
    /// Send the messages, as they were compressed or else as they were refused, with this limit for the answer.
    Send {
        /// `None` where the request has none.
        output_tokens: Option<Tokens>,
    },
    /// Compress, then tell [`Recovery::compressed`] or, where so little cannot be reached, [`Recovery::floor`].
    Compress {
        /// Tokens that the prompt may have at most, tool schemas and framing included, by the caller's own count.
        prompt_tokens: Tokens,
    },
    /// Send the same with the reasoning of the model put back, or with a mark in its place where there is none.
    Restore,
    /// Send nothing more.
    GiveUp(GiveUpReason),
}

/// Why nothing more is sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum GiveUpReason {
    /// A smaller request is no help: the provider's error stands.
    Unrelated,
    /// What must stay is as large as what was refused.
    Floor,
    /// Three smaller requests were refused as well.
    Refused,
    /// Two compressions in a row freed next to nothing.
    Useless,
}

impl GiveUpReason {
    /// Returns the name that Python and the logs use.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Unrelated => "unrelated",
            Self::Floor => "floor",
            Self::Refused => "refused",
            Self::Useless => "useless",
        }
    }
}

/// What is known of a limit for prompt and answer together.
#[derive(Debug, Clone, Copy, Default)]
struct Sum {
    /// No number was stated, so that it may be one.
    is_likely: bool,
    /// A shorter answer alone was tried for that.
    is_tried: bool,
}

/// The repair of one request, from its first refusal on.
#[derive(Debug, Clone)]
pub struct Recovery {
    /// Of the request that is out or was refused.
    prompt_tokens: Tokens,
    output_tokens: Option<Tokens>,
    /// What is never cut of it, as far as that is known.
    fixed_tokens: Tokens,
    /// What the model is listed with, for caps that no number comes with.
    listed_output_tokens: Tokens,
    emergency_ratio: f64,
    /// By the caller's own count.
    stated_limit: Option<Tokens>,
    attempts: usize,
    useless: u32,
    is_at_floor: bool,
    is_restored: bool,
    sum: Sum,
    /// Size of the request that is out or was refused, where a limit is in bytes or messages.
    sent: Option<u64>,
}

impl Recovery {
    /// Starts with a request of `prompt_tokens`, by the caller's own count, that asked for `output_tokens` of answer.
    ///
    /// `fixed_tokens` of it are never cut: system messages, tool schemas, the last message of the user; 0 where that is not known.
    /// `listed_output_tokens` is the longest answer that the model is known for. `emergency_ratio` is what is left of a
    /// prompt that was refused without a number, as a share of it.
    ///
    /// # Source
    ///
    /// 0.6 of what was refused recovered 39 of 39 recorded overflows; 0.6 of a configured window that was wrong, none of 22.
    #[must_use]
    pub fn new(
        prompt_tokens: Tokens,
        output_tokens: Option<Tokens>,
        fixed_tokens: Tokens,
        listed_output_tokens: Tokens,
        emergency_ratio: f64,
    ) -> Self {
        Self {
            prompt_tokens,
            output_tokens,
            fixed_tokens,
            listed_output_tokens,
            emergency_ratio,
            stated_limit: None,
            attempts: 0,
            useless: 0,
            is_at_floor: false,
            is_restored: false,
            sum: Sum::default(),
            sent: None,
        }
    }

    /// Takes note of the bytes that the refused request had, or of its messages: a limit in these is a share of them.
    pub fn weighs(&mut self, size: u64) {
        self.sent = Some(size);
    }

    /// Returns what to do after the provider refused what was sent last.
    pub fn refused(&mut self, overflow: &Overflow) -> Step {
        let numbers = overflow.limit_tokens.zip(overflow.used_tokens);
        match overflow.kind {
            OverflowKind::OutputCap => match self.lower_output(overflow) {
                Some(output_tokens) => self.answer_within(output_tokens),
                // The prompt leaves next to nothing for an answer.
                None if numbers.is_some() => self.compress(overflow),
                None => Step::GiveUp(GiveUpReason::Unrelated),
            },
            // Any request that is not above what a minute allows may be sent again later.
            OverflowKind::RateCeiling if numbers.is_none_or(|(limit, used)| used <= limit) => {
                Step::GiveUp(GiveUpReason::Unrelated)
            }
            OverflowKind::Reasoning if self.is_restored || self.attempts == MAX_ATTEMPTS => {
                Step::GiveUp(GiveUpReason::Unrelated)
            }
            OverflowKind::Reasoning => {
                self.is_restored = true;
                self.attempts += 1;
                Step::Restore
            }
            _ => self.compress(overflow),
        }
    }

    /// Returns what to do with messages that were compressed to `prompt_tokens`.
    pub fn compressed(&mut self, prompt_tokens: Tokens) -> Step {
        // At the floor a shorter answer may be all that makes the request smaller.
        let is_smaller = prompt_tokens < self.prompt_tokens && prompt_tokens <= self.smaller();
        if !is_smaller && !self.is_at_floor {
            self.useless += 1;
            if self.useless == MAX_USELESS {
                return Step::GiveUp(GiveUpReason::Useless);
            }
            return self.compress_to(prompt_tokens.min(self.prompt_tokens).percent(OF_STATED_PERCENT[1]));
        }
        self.useless = 0;
        self.is_at_floor = false;
        self.prompt_tokens = prompt_tokens;
        if let Some(output) = self.output_tokens.filter(|_| self.stated_limit.is_some()) {
            self.output_tokens = Some(output.min(self.free(prompt_tokens).max(MIN_OUTPUT_TOKENS)));
        } else if let Some(output) = self.output_tokens.filter(|_| self.sum.is_likely) {
            self.output_tokens = Some(output.min((prompt_tokens / ANSWER_PART).max(SHORT_OUTPUT_TOKENS)));
        }
        self.send()
    }

    /// Returns what to do where what must stay needs `needed_tokens`, which is more than the step allowed.
    ///
    /// It is worth an attempt where it is less than what was refused, or where a shorter answer makes room for it.
    pub fn floor(&mut self, needed_tokens: Tokens) -> Step {
        let shortened = self.shorten_answer(SHORT_OUTPUT_TOKENS);
        let most = if shortened { self.prompt_tokens } else { self.most_with_short_answer() };
        let has_shorter = shortened
            || self.output_tokens.is_some_and(|output| needed_tokens <= most && self.free(needed_tokens) < output);
        if self.is_at_floor || !has_shorter && needed_tokens > self.smaller() {
            return Step::GiveUp(GiveUpReason::Floor);
        }
        self.is_at_floor = true;
        self.fixed_tokens = needed_tokens;
        let most = if has_shorter { most } else { self.smaller() };
        Step::Compress { prompt_tokens: self.least().min(most).max(needed_tokens) }
    }

    fn compress(&mut self, overflow: &Overflow) -> Step {
        if self.attempts == MAX_ATTEMPTS {
            return Step::GiveUp(GiveUpReason::Refused);
        }
        // What was used may include the answer that was asked for: then no more of it counts as the prompt's.
        let answer = self.output_tokens.filter(|_| !overflow.used_is_prompt).unwrap_or_default();
        let ours = self.prompt_tokens;
        let prompt = overflow.used_tokens.map(|used| used.min(ours.max(used - answer)));
        self.stated_limit = overflow.limit_tokens.map(|limit| self.as_ours(limit, prompt, overflow.kind));
        let used = overflow.used_tokens.or_else(|| self.prompt_of_sum(overflow));
        if let (Some(limit), Some(used), Some(output)) = (overflow.limit_tokens, used, self.output_tokens) {
            let room = (limit - used).min(limit / 2);
            if room < output && room >= (output / 2).min(SHORT_OUTPUT_TOKENS) {
                return self.answer_within(room);
            }
        }
        let has_number =
            overflow.limit_tokens.is_some() || overflow.limit_bytes.is_some() || overflow.limit_messages.is_some();
        self.sum.is_likely = overflow.kind == OverflowKind::Input && !has_number;
        // What may be cut of the prompt is less than the answer may give.
        let others = self.prompt_tokens - self.fixed_tokens;
        if self.shorten_answer((self.prompt_tokens / ANSWER_PART).min(others).max(SHORT_OUTPUT_TOKENS)) {
            return Step::Send { output_tokens: self.output_tokens };
        }
        let emergency = self.prompt_tokens.share(self.emergency_ratio);
        let of_size = overflow.limit_bytes.or(overflow.limit_messages).zip(self.sent.filter(|&sent| sent > 0));
        let stated = match of_size {
            Some((limit, sent)) => Some(self.of_stated(self.prompt_tokens.scaled(limit.min(sent), sent))),
            None => self.stated_prompt_tokens(overflow),
        };
        let stated = stated.filter(|&stated| stated <= self.smaller());
        self.compress_to(stated.unwrap_or(emergency))
    }

    /// Compresses to `prompt_tokens`, or to what is needed beside what is never cut, as long as that is less than what was refused
    /// and a short answer fits beside it.
    fn compress_to(&self, prompt_tokens: Tokens) -> Step {
        let least = self.least().min(match self.stated_limit {
            Some(limit) => self.most_with_short_answer().max(self.closest(limit)),
            None => Tokens::MAX,
        });
        Step::Compress { prompt_tokens: prompt_tokens.max(least).min(self.smaller()) }
    }

    /// Returns the tokens of a prompt of what is never cut with the most essential beside it, as close to the `limit` as may be; 0 where
    /// not even half of that fits. Only once: where our count of it is too low, it is refused.
    fn closest(&self, limit: Tokens) -> Tokens {
        let most = self.beside_short_answer(limit.percent(CLOSE_PERCENT));
        if self.attempts > 0 || most < self.fixed_tokens + MOST_ESSENTIAL_TOKENS / 2 {
            return Tokens::ZERO;
        }
        (self.fixed_tokens + MOST_ESSENTIAL_TOKENS).min(most)
    }

    /// Returns the tokens of what is never cut with those of what should stay beside it.
    fn least(&self) -> Tokens {
        let others = self.prompt_tokens - self.fixed_tokens;
        self.fixed_tokens + ESSENTIAL_TOKENS.min(others / 2)
    }

    /// Returns the tokens of the prompt, with a margin, where it is below a limit that was stated without it: then that is one for
    /// prompt and answer together. Once: our count may be what is wrong.
    fn prompt_of_sum(&mut self, overflow: &Overflow) -> Option<Tokens> {
        let limit = overflow.limit_tokens.filter(|_| overflow.kind == OverflowKind::Input)?;
        let prompt = self.prompt_tokens.scaled(100, SMALLER_PERCENT);
        let sum = prompt + self.output_tokens.unwrap_or_default();
        let is_sum = !self.sum.is_tried && prompt < limit && limit < sum;
        self.sum.is_tried |= is_sum;
        is_sum.then_some(prompt)
    }

    /// Returns the tokens that the stated limit leaves beside a prompt.
    fn free(&self, prompt_tokens: Tokens) -> Tokens {
        self.stated_limit.unwrap_or_default().percent(SMALLER_PERCENT) - prompt_tokens
    }

    /// Returns the tokens of the longest prompt beside which the stated limit leaves room for a short answer.
    fn most_with_short_answer(&self) -> Tokens {
        self.beside_short_answer(self.free(Tokens::ZERO))
    }

    fn beside_short_answer(&self, tokens: Tokens) -> Tokens {
        if self.output_tokens.is_some() { tokens - MIN_OUTPUT_TOKENS } else { tokens }
    }

    /// Asks for a short answer in place of one of more than `tokens`, once, where the limit may be one for both; returns whether.
    fn shorten_answer(&mut self, tokens: Tokens) -> bool {
        let is_longer = self.output_tokens.is_some_and(|output| output > tokens);
        let shortens = self.sum.is_likely && !self.sum.is_tried && is_longer;
        if shortens {
            self.sum.is_tried = true;
            self.output_tokens = Some(SHORT_OUTPUT_TOKENS);
        }
        shortens
    }

    fn answer_within(&mut self, output_tokens: Tokens) -> Step {
        self.output_tokens = Some(output_tokens);
        self.send()
    }

    fn send(&mut self) -> Step {
        self.attempts += 1;
        Step::Send { output_tokens: self.output_tokens }
    }

    /// Returns the tokens of the prompt that the stated limit leaves room for.
    fn stated_prompt_tokens(&self, overflow: &Overflow) -> Option<Tokens> {
        let limit = overflow.limit_tokens?;
        let left = limit - self.fixed_tokens;
        let answer = self.output_tokens.map_or(Tokens::ZERO, |output| answer_reserve(left, output));
        let room = self.of_stated(limit - answer);
        Some(self.as_ours(room, overflow.used_tokens, overflow.kind))
    }

    fn of_stated(&self, tokens: Tokens) -> Tokens {
        tokens.percent(OF_STATED_PERCENT[self.attempts.min(MAX_ATTEMPTS - 1)])
    }

    /// Returns `tokens` of a provider that counted `used` for the prompt by our own count.
    fn as_ours(&self, tokens: Tokens, used: Option<Tokens>, kind: OverflowKind) -> Tokens {
        // The provider may count more than we do, or a little less. `used` may also be misread: no vocabulary is wrong by more
        // than a factor of two. One that read less than we sent cut it, and counts as we do.
        let counted = kind != OverflowKind::Silent;
        match used.filter(|&used| counted && used > Tokens::ZERO) {
            Some(used) => {
                let ours = self.prompt_tokens.clamp(used / 2, used + used / MAX_MORE);
                tokens.scaled(ours.0, used.0)
            }
            None => tokens,
        }
    }

    fn lower_output(&self, overflow: &Overflow) -> Option<Tokens> {
        let lower = overflow.output_tokens.or_else(|| {
            // Not every provider says what it accepts: what the model is known for, else half, then half of that.
            let current = self.output_tokens?;
            Some(if self.listed_output_tokens < current { self.listed_output_tokens } else { current / 2 })
        })?;
        // What a prompt happens to leave can grow with a shorter prompt; a cap of the model's own cannot.
        let is_own = overflow.output_tokens.is_some() && overflow.used_tokens.is_none();
        let least = if is_own { Tokens(1) } else { MIN_OUTPUT_TOKENS };
        let is_lower = self.output_tokens.is_none_or(|current| lower < current);
        (is_lower && lower >= least && self.attempts < MAX_ATTEMPTS).then_some(lower)
    }

    /// Returns the most tokens that count as smaller than what was refused.
    fn smaller(&self) -> Tokens {
        self.prompt_tokens.percent(SMALLER_PERCENT)
    }
}
