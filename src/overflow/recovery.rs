//! Decides what to send after a refusal: a state machine without I/O.
//!
//! The caller sends a request, tells [`Recovery`] how it was refused, does what the [`Step`] says and tells the outcome,
//! until a step gives up: after three attempts, or four if a shorter answer alone was one of them. Each attempt is smaller
//! than the one before, except one that sends reasoning back. No step needs a model.

use super::detect::Overflow;
use super::kind::OverflowKind;
use crate::tokens::Tokens;

/// Requests sent after the first refusal, with smaller prompts or shorter answers. Source: hermes and openclaw stop after
/// three.
const MAX_ATTEMPTS: usize = 3;

/// Percentages of the room within a stated limit that successive attempts use: our count and the provider's differ.
///
/// Source: counts of families without a public vocabulary are off by a tenth; further attempts shrink as openclaw's.
const OF_STATED_PERCENT: [u64; MAX_ATTEMPTS] = [90, 70, 50];

/// A prompt above this percentage of the refused one is not smaller: counts are noisy.
const SMALLER_PERCENT: u64 = 95;

/// If what is never cut leaves no more, the first prompt after a refusal comes so close to the limit, for the essential
/// tokens beside it. Source: system prompts within 150 to 1,200 tokens of 8,192, counted by the provider up to a tenth
/// differently: in 900 repairs no rule or call was lost that stayed with the margin of 5 %, with fewer refusals.
const CLOSE_PERCENT: u64 = 98;
const MOST_ESSENTIAL_TOKENS: Tokens = Tokens(192);

/// A provider's count below ours is accepted down to this fraction: it may have left tools out.
const MAX_MORE: u64 = 10;

/// Compressions in a row without effect before giving up.
const MAX_USELESS: u32 = 2;

/// No shorter answer is requested, unless the provider's own limit is lower.
pub const MIN_OUTPUT_TOKENS: Tokens = Tokens(256);

/// A prompt that leaves as much, or half of the requested answer, is not cut for a longer one: an answer can be continued.
const SHORT_OUTPUT_TOKENS: Tokens = Tokens(1_024);

/// An answer above this part of the prompt may be the cause of a refusal without a number: some providers add both up, and
/// some do not say so.
const ANSWER_PART: u64 = 4;

/// Longer than most answers.
const USUAL_OUTPUT_TOKENS: Tokens = Tokens(4_096);

/// Tokens for rules of the user, the newest call in its shortest form, the ledger and a mark.
pub const ESSENTIAL_TOKENS: Tokens = Tokens(512);

/// Returns the tokens to reserve for an answer of at most `asked_tokens` where what is never cut leaves `left_tokens` of a
/// window: a quarter, or a usual answer, but at most half.
#[must_use]
pub fn answer_reserve(left_tokens: Tokens, asked_tokens: Tokens) -> Tokens {
    asked_tokens.min((left_tokens / 4).max((left_tokens / 2).min(USUAL_OUTPUT_TOKENS)))
}

/// What the caller must do next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Step {
    /// Send the messages, compressed if they were, with this limit for the answer.
    Send {
        /// `None` if the request has none.
        output_tokens: Option<Tokens>,
    },
    /// Compress, then call [`Recovery::compressed`], or [`Recovery::floor`] if the target cannot be reached.
    Compress {
        /// Most tokens of the prompt, tool schemas and framing included, by the caller's count.
        prompt_tokens: Tokens,
    },
    /// Send the same with the model's reasoning put back, or a mark where there is none.
    Restore,
    /// Send nothing more.
    GiveUp(GiveUpReason),
}

/// Why nothing more is sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum GiveUpReason {
    /// A smaller request does not help: the provider's error stands.
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

/// Whether one limit holds for prompt and answer together.
#[derive(Debug, Clone, Copy, Default)]
struct Sum {
    /// It may: no number was stated.
    is_likely: bool,
    /// A shorter answer alone was tried.
    is_tried: bool,
}

/// The repair of one request, from its first refusal on.
#[derive(Debug, Clone)]
pub struct Recovery {
    /// Of the request sent last.
    prompt_tokens: Tokens,
    output_tokens: Option<Tokens>,
    /// Its tokens that are never cut; 0 if unknown.
    fixed_tokens: Tokens,
    /// The model's listed output limit, for caps without a number.
    listed_output_tokens: Tokens,
    emergency_ratio: f64,
    /// By the caller's count.
    stated_limit: Option<Tokens>,
    attempts: usize,
    useless: u32,
    is_at_floor: bool,
    is_restored: bool,
    sum: Sum,
    /// Size of the request sent last, in bytes or messages, if the limit is.
    sent: Option<u64>,
}

impl Recovery {
    /// Starts with a request of `prompt_tokens`, by the caller's count, that asked for `output_tokens` of answer.
    ///
    /// `fixed_tokens` of it are never cut: system messages, tool schemas, the last message of the user; 0 if unknown.
    /// `listed_output_tokens` is the model's listed output limit. `emergency_ratio` is the share of a prompt that remains
    /// after a refusal without a number.
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

    /// Sets the size of the refused request in bytes or messages: a limit in these is a share of it.
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
            // A request within the rate may be sent again later.
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

    /// Returns what to do after the messages were compressed to `prompt_tokens`.
    pub fn compressed(&mut self, prompt_tokens: Tokens) -> Step {
        // At the floor only the answer may get shorter.
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

    /// Returns what to do if what must stay needs `needed_tokens`, more than the step allowed.
    ///
    /// An attempt is worth it if that is less than what was refused, or if a shorter answer makes room.
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
        // The used tokens may include the requested answer, which is not the prompt's.
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
        // If less may be cut than a shorter answer saves, the answer is shortened.
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

    /// Compresses to `prompt_tokens`, or to [`Self::least`] as long as that is smaller than what was refused and leaves a
    /// short answer.
    fn compress_to(&self, prompt_tokens: Tokens) -> Step {
        let least = self.least().min(match self.stated_limit {
            Some(limit) => self.most_with_short_answer().max(self.closest(limit)),
            None => Tokens::MAX,
        });
        Step::Compress { prompt_tokens: prompt_tokens.max(least).min(self.smaller()) }
    }

    /// Returns the tokens of a prompt as close to the `limit` as possible, with what is never cut and essential tokens
    /// beside it; 0 if not even half of these fit. For the first attempt only: if our count is too low, it is refused.
    fn closest(&self, limit: Tokens) -> Tokens {
        let most = self.beside_short_answer(limit.percent(CLOSE_PERCENT));
        if self.attempts > 0 || most < self.fixed_tokens + MOST_ESSENTIAL_TOKENS / 2 {
            return Tokens::ZERO;
        }
        (self.fixed_tokens + MOST_ESSENTIAL_TOKENS).min(most)
    }

    /// Returns the tokens of what is never cut and of what should stay beside it.
    fn least(&self) -> Tokens {
        let others = self.prompt_tokens - self.fixed_tokens;
        self.fixed_tokens + ESSENTIAL_TOKENS.min(others / 2)
    }

    /// Returns the tokens of the prompt, with a margin, if they are below a stated limit: then it is one for prompt and
    /// answer together. Once, for our count may be wrong.
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

    /// Returns the tokens of the longest prompt that leaves a short answer within the stated limit.
    fn most_with_short_answer(&self) -> Tokens {
        self.beside_short_answer(self.free(Tokens::ZERO))
    }

    fn beside_short_answer(&self, tokens: Tokens) -> Tokens {
        if self.output_tokens.is_some() { tokens - MIN_OUTPUT_TOKENS } else { tokens }
    }

    /// Replaces an answer of more than `tokens` by a short one, once, if one limit may hold for both; returns whether it
    /// did.
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

    /// Returns the tokens for the prompt within the stated limit.
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

    /// Converts `tokens` of a provider that counted `used` for the prompt to our count.
    fn as_ours(&self, tokens: Tokens, used: Option<Tokens>, kind: OverflowKind) -> Tokens {
        // The provider may count more than we do, or a little less. `used` may be misread: no vocabulary is off by more than
        // a factor of two. A provider that cut the prompt in silence counts as we do.
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
            // Without a stated cap: the listed limit, else half, then half of that.
            let current = self.output_tokens?;
            Some(if self.listed_output_tokens < current { self.listed_output_tokens } else { current / 2 })
        })?;
        // A cap by the prompt's size can grow with a shorter prompt; the model's own cannot.
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
