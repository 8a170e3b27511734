//! What to send after a refusal: a state machine that sends nothing itself.
//!
//! The caller sends a request, tells [`Recovery`] how it was refused, does what the [`Step`] says and tells the outcome,
//! until a step says to give up: after three attempts at the latest, of which each asks for less than the one before. No
//! step needs a model.

use super::detect::{Overflow, OverflowKind};
use crate::tokens::share;

/// Requests that are sent after the first was refused, smaller prompts and shorter answers together. Source: hermes and
/// openclaw stop after three.
const MAX_ATTEMPTS: usize = 3;

/// Of the room that the stated limit leaves for the prompt, what each attempt uses: our count and the provider's differ.
///
/// Source: a tenth is what the counts of the families without a public vocabulary are off by; then as openclaw shrinks.
const OF_STATED_PERCENT: [u64; MAX_ATTEMPTS] = [90, 70, 50];

/// A prompt above this share of the refused one is not smaller by more than the noise of counting.
const SMALLER_PERCENT: u64 = 95;

/// Compressions in a row that left the prompt as large as it was, after which no other is tried.
const MAX_USELESS: u32 = 2;

/// An answer of fewer tokens is of no use, unless the provider itself says that it has no longer one.
const MIN_OUTPUT_TOKENS: u64 = 256;

/// Most answers are shorter: a prompt that leaves as much, or half of what was asked for, is not cut for a longer one.
const USUAL_OUTPUT_TOKENS: u64 = 4_096;

/// What the caller does next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Step {
    /// Send the messages, as they were compressed or else as they were refused, with this limit for the answer.
    Send {
        /// `None` where the request has none.
        output_tokens: Option<u64>,
    },
    /// Compress, then tell [`Recovery::compressed`] or, where so little cannot be reached, [`Recovery::floor`].
    Compress {
        /// Tokens that the prompt may have at most, tool schemas and framing included, by the caller's own count.
        prompt_tokens: u64,
        /// Nothing stays but system messages, the last message of the user and the newest group: more does not fit.
        newest_only: bool,
    },
    /// Send nothing more.
    GiveUp(Reason),
}

/// Why nothing more is sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reason {
    /// A smaller request is no help: the provider's error stands.
    Unrelated,
    /// What must stay is as large as what was refused.
    Floor,
    /// Three smaller requests were refused as well.
    Refused,
    /// Two compressions in a row freed next to nothing.
    Useless,
}

impl Reason {
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

/// The repair of one request, from its first refusal on.
#[derive(Debug, Clone)]
pub struct Recovery {
    /// Of the request that is out or was refused.
    prompt_tokens: u64,
    output_tokens: Option<u64>,
    /// What the model is listed with, for caps that no number comes with.
    listed_output_tokens: u64,
    emergency_ratio: f64,
    stated_limit: Option<u64>,
    attempts: usize,
    useless: u32,
    is_at_floor: bool,
}

impl Recovery {
    /// Starts with a request of `prompt_tokens`, by the caller's own count, that asked for `output_tokens` of answer.
    ///
    /// `listed_output_tokens` is the longest answer that the model is known for. `emergency_ratio` is what is left of a
    /// prompt that was refused without a number, as a share of it.
    ///
    /// # Source
    ///
    /// 0.6 of what was refused recovered 39 of 39 recorded overflows; 0.6 of a configured window that was wrong, none of 22.
    #[must_use]
    pub fn new(
        prompt_tokens: u64,
        output_tokens: Option<u64>,
        listed_output_tokens: u64,
        emergency_ratio: f64,
    ) -> Self {
        Self {
            prompt_tokens,
            output_tokens,
            listed_output_tokens,
            emergency_ratio,
            stated_limit: None,
            attempts: 0,
            useless: 0,
            is_at_floor: false,
        }
    }

    /// Returns what to do after the provider refused what was sent last.
    pub fn refused(&mut self, overflow: &Overflow) -> Step {
        let numbers = overflow.limit_tokens.zip(overflow.used_tokens);
        match overflow.kind {
            OverflowKind::OutputCap => match self.lower_output(overflow) {
                Some(output_tokens) => self.answer_within(output_tokens),
                // The prompt leaves next to nothing for an answer.
                None if numbers.is_some() => self.compress(overflow),
                None => Step::GiveUp(Reason::Unrelated),
            },
            // Any request that is not above what a minute allows may be sent again later.
            OverflowKind::RateCeiling if numbers.is_none_or(|(limit, used)| used <= limit) => {
                Step::GiveUp(Reason::Unrelated)
            }
            _ => self.compress(overflow),
        }
    }

    /// Returns what to do with messages that were compressed to `prompt_tokens`.
    pub fn compressed(&mut self, prompt_tokens: u64) -> Step {
        // At the floor a shorter answer may be all that makes the request smaller.
        let is_smaller = prompt_tokens < self.prompt_tokens && prompt_tokens <= self.smaller();
        if !is_smaller && !self.is_at_floor {
            self.useless += 1;
            if self.useless == MAX_USELESS {
                return Step::GiveUp(Reason::Useless);
            }
            return self.compress_to(percent(prompt_tokens.min(self.prompt_tokens), OF_STATED_PERCENT[1]));
        }
        self.useless = 0;
        self.is_at_floor = false;
        self.prompt_tokens = prompt_tokens;
        self.send()
    }

    /// Returns what to do where what must stay needs `needed_tokens`, which is more than the step allowed.
    ///
    /// It is worth an attempt where it is less than what was refused, or where a shorter answer makes room for it.
    pub fn floor(&mut self, needed_tokens: u64) -> Step {
        let room = percent(self.stated_limit.unwrap_or(0), SMALLER_PERCENT).saturating_sub(needed_tokens);
        let shorter = self.output_tokens.filter(|&output| (MIN_OUTPUT_TOKENS..output).contains(&room)).map(|_| room);
        if self.is_at_floor || shorter.is_none() && needed_tokens > self.smaller() {
            return Step::GiveUp(Reason::Floor);
        }
        self.is_at_floor = true;
        self.output_tokens = shorter.or(self.output_tokens);
        Step::Compress { prompt_tokens: needed_tokens, newest_only: true }
    }

    fn compress(&mut self, overflow: &Overflow) -> Step {
        if self.attempts == MAX_ATTEMPTS {
            return Step::GiveUp(Reason::Refused);
        }
        self.stated_limit = overflow.limit_tokens;
        if let (Some(limit), Some(output)) = (overflow.limit_tokens, self.output_tokens) {
            // Half of a small window is the prompt's, however long an answer is asked for.
            self.output_tokens = Some(output.min(limit / 2).max(1));
            let room = overflow.used_tokens.map_or(0, |used| limit.saturating_sub(used)).min(limit / 2);
            if room < output && room >= (output / 2).min(USUAL_OUTPUT_TOKENS) {
                return self.answer_within(room);
            }
        }
        let emergency = share(self.prompt_tokens, self.emergency_ratio, f64::floor);
        let stated = self.stated_prompt_tokens(overflow).filter(|&stated| stated <= self.smaller());
        self.compress_to(stated.unwrap_or(emergency))
    }

    fn compress_to(&self, prompt_tokens: u64) -> Step {
        Step::Compress { prompt_tokens: prompt_tokens.min(self.smaller()), newest_only: false }
    }

    fn answer_within(&mut self, output_tokens: u64) -> Step {
        self.output_tokens = Some(output_tokens);
        self.send()
    }

    fn send(&mut self) -> Step {
        self.attempts += 1;
        Step::Send { output_tokens: self.output_tokens }
    }

    /// Returns the tokens of the prompt, by our own count, that the stated limit leaves room for.
    fn stated_prompt_tokens(&self, overflow: &Overflow) -> Option<u64> {
        let limit = overflow.limit_tokens?;
        let of_room = OF_STATED_PERCENT[self.attempts.min(MAX_ATTEMPTS - 1)];
        let room = percent(limit.saturating_sub(self.output_tokens.unwrap_or(0)), of_room);
        // The provider may count more than we do. `used` may also include the answer, or be misread: no vocabulary is
        // wrong by more than a factor of two. One that read less than we sent cut it, and counts as we do.
        let counts_more = overflow.kind != OverflowKind::Silent;
        Some(match overflow.used_tokens.filter(|&used| counts_more && used > self.prompt_tokens) {
            Some(used) => scaled(room, self.prompt_tokens.max(used / 2), used),
            None => room,
        })
    }

    fn lower_output(&self, overflow: &Overflow) -> Option<u64> {
        let lower = overflow.output_tokens.or_else(|| {
            // Not every provider says what it accepts: what the model is known for, else half, then half of that.
            let current = self.output_tokens?;
            Some(if self.listed_output_tokens < current { self.listed_output_tokens } else { current / 2 })
        })?;
        // What a prompt happens to leave can grow with a shorter prompt; a cap of the model's own cannot.
        let is_own = overflow.output_tokens.is_some() && overflow.used_tokens.is_none();
        let least = if is_own { 1 } else { MIN_OUTPUT_TOKENS };
        let is_lower = self.output_tokens.is_none_or(|current| lower < current);
        (is_lower && lower >= least && self.attempts < MAX_ATTEMPTS).then_some(lower)
    }

    /// Returns the most tokens that count as smaller than what was refused.
    fn smaller(&self) -> u64 {
        percent(self.prompt_tokens, SMALLER_PERCENT)
    }
}

fn percent(tokens: u64, percent: u64) -> u64 {
    scaled(tokens, percent, 100)
}

/// Returns `tokens * part / whole`, where `part` is at most `whole`.
#[allow(clippy::cast_possible_truncation)] // at most `tokens`
fn scaled(tokens: u64, part: u64, whole: u64) -> u64 {
    (u128::from(tokens) * u128::from(part) / u128::from(whole)) as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    fn overflow(kind: OverflowKind, limit: Option<u64>, used: Option<u64>) -> Overflow {
        Overflow::new(kind, limit, used)
    }

    fn input(limit: Option<u64>, used: Option<u64>) -> Overflow {
        overflow(OverflowKind::Input, limit, used)
    }

    fn recovery(prompt_tokens: u64, output_tokens: Option<u64>) -> Recovery {
        Recovery::new(prompt_tokens, output_tokens, 8_192, 0.6)
    }

    fn compress(prompt_tokens: u64) -> Step {
        Step::Compress { prompt_tokens, newest_only: false }
    }

    #[test]
    fn a_stated_limit_is_the_target_with_the_answer_left_out() {
        let mut recovery = recovery(20_000, Some(4_000));
        assert_eq!(recovery.refused(&input(Some(16_000), None)), compress(10_800));
        assert_eq!(recovery.compressed(10_500), Step::Send { output_tokens: Some(4_000) });
    }

    #[test]
    fn without_a_number_the_target_is_a_share_of_what_was_refused() {
        let mut recovery = recovery(100_000, None);
        assert_eq!(recovery.refused(&input(None, None)), compress(60_000));
        assert_eq!(recovery.compressed(50_000), Step::Send { output_tokens: None });
        assert_eq!(recovery.refused(&overflow(OverflowKind::RequestBytes, None, None)), compress(30_000));
    }

    #[test]
    fn a_stated_limit_above_what_was_refused_is_no_target() {
        assert_eq!(recovery(50_000, None).refused(&input(Some(128_000), None)), compress(30_000));
    }

    #[test]
    fn there_are_three_smaller_prompts_and_no_fourth() {
        let mut recovery = recovery(100_000, None);
        for prompt_tokens in [60_000, 36_000, 21_600] {
            assert_eq!(recovery.refused(&input(None, None)), compress(prompt_tokens));
            assert_eq!(recovery.compressed(prompt_tokens), Step::Send { output_tokens: None });
        }
        assert_eq!(recovery.refused(&input(None, None)), Step::GiveUp(Reason::Refused));
    }

    #[test]
    fn a_provider_that_counts_more_gets_less_by_our_count() {
        // It counts 1.5 times ours: 12,000 of ours are 18,000 of its own, over 16,000.
        assert_eq!(recovery(12_000, None).refused(&input(Some(16_000), Some(18_000))), compress(9_600));
        // Five times is a number that was misread.
        assert_eq!(recovery(12_000, None).refused(&input(Some(16_000), Some(60_000))), compress(7_200));
    }

    #[test]
    fn a_prompt_that_was_cut_is_counted_as_ours() {
        let silent = overflow(OverflowKind::Silent, Some(4_096), Some(20_000));
        assert_eq!(recovery(10_000, None).refused(&silent), compress(3_686));
    }

    #[test]
    fn half_of_a_small_window_is_the_prompts() {
        let mut recovery = recovery(20_000, Some(32_000));
        assert_eq!(recovery.refused(&input(Some(16_000), None)), compress(7_200));
        assert_eq!(recovery.compressed(7_000), Step::Send { output_tokens: Some(8_000) });
    }

    #[test]
    fn a_prompt_with_room_for_half_a_window_of_answer_stays_whole() {
        // OpenRouter adds up what the prompt has and the answer may have.
        let mut recovery = recovery(22_000, Some(262_144));
        let step = recovery.refused(&input(Some(262_144), Some(22_139)));
        assert_eq!(step, Step::Send { output_tokens: Some(131_072) });
    }

    #[test]
    fn a_prompt_with_room_for_a_usual_answer_stays_whole() {
        let lowered = |output, used| recovery(9_979, Some(output)).refused(&input(Some(200_000), Some(used)));
        assert_eq!(lowered(64_000, 189_979), Step::Send { output_tokens: Some(10_021) });
        assert_eq!(lowered(2_000, 199_000), Step::Send { output_tokens: Some(1_000) }, "half of what was asked for");
        assert!(matches!(lowered(64_000, 196_000), Step::Compress { .. }));
        assert!(matches!(lowered(2_000, 199_001), Step::Compress { .. }));
    }

    #[test]
    fn an_output_cap_lowers_the_output_limit_only() {
        let cap = |output_tokens| Overflow { output_tokens, ..overflow(OverflowKind::OutputCap, None, None) };
        let lowered = |first, error| recovery(10_000, first).refused(&error);
        let send = |output_tokens| Step::Send { output_tokens: Some(output_tokens) };
        assert_eq!(lowered(Some(32_000), cap(Some(4_096))), send(4_096));
        assert_eq!(lowered(None, cap(Some(4_096))), send(4_096));
        assert_eq!(lowered(Some(32_000), cap(None)), send(8_192), "what the model is listed with");
        assert_eq!(lowered(Some(8_192), cap(None)), send(4_096), "half");
        assert_eq!(lowered(None, cap(None)), Step::GiveUp(Reason::Unrelated));
        assert_eq!(lowered(Some(4_096), cap(Some(8_192))), Step::GiveUp(Reason::Unrelated));
    }

    #[test]
    fn an_output_cap_is_lowered_three_times_at_most() {
        let mut recovery = recovery(10_000, Some(8_192));
        let cap = overflow(OverflowKind::OutputCap, None, None);
        for output_tokens in [4_096, 2_048, 1_024] {
            assert_eq!(recovery.refused(&cap), Step::Send { output_tokens: Some(output_tokens) });
        }
        assert_eq!(recovery.refused(&cap), Step::GiveUp(Reason::Unrelated));
    }

    #[test]
    fn a_cap_that_a_model_has_of_its_own_may_be_small() {
        let cap = Overflow { output_tokens: Some(100), ..overflow(OverflowKind::OutputCap, None, None) };
        assert_eq!(recovery(10_000, Some(4_000)).refused(&cap), Step::Send { output_tokens: Some(100) });
    }

    #[test]
    fn a_cap_that_leaves_no_room_for_an_answer_is_too_long_a_prompt() {
        let cap = overflow(OverflowKind::OutputCap, Some(16_000), Some(15_900));
        let cap = Overflow { output_tokens: Some(100), ..cap };
        assert_eq!(recovery(15_900, Some(4_000)).refused(&cap), compress(10_800));
    }

    #[test]
    fn a_rate_that_time_heals_is_no_reason_to_cut() {
        let rate = |limit, used| overflow(OverflowKind::RateCeiling, limit, used);
        assert_eq!(recovery(9_000, None).refused(&rate(Some(30_000), Some(9_000))), Step::GiveUp(Reason::Unrelated));
        assert_eq!(recovery(9_000, None).refused(&rate(None, None)), Step::GiveUp(Reason::Unrelated));
        assert_eq!(recovery(40_000, None).refused(&rate(Some(30_000), Some(40_000))), compress(27_000));
    }

    #[test]
    fn what_must_stay_is_tried_once_where_it_is_smaller() {
        let mut recovery = recovery(100_000, None);
        recovery.refused(&input(None, None));
        assert_eq!(recovery.floor(80_000), Step::Compress { prompt_tokens: 80_000, newest_only: true });
        assert_eq!(recovery.compressed(80_000), Step::Send { output_tokens: None });
        recovery.refused(&input(None, None));
        assert_eq!(recovery.floor(80_000), Step::GiveUp(Reason::Floor));
    }

    #[test]
    fn a_floor_that_cannot_be_reached_either_ends_it() {
        let mut recovery = recovery(100_000, None);
        recovery.refused(&input(None, None));
        recovery.floor(80_000);
        assert_eq!(recovery.floor(80_001), Step::GiveUp(Reason::Floor));
    }

    #[test]
    fn a_shorter_answer_makes_room_for_what_must_stay() {
        let mut recovery = recovery(8_000, Some(4_000));
        assert_eq!(recovery.refused(&input(Some(10_000), None)), compress(5_400));
        assert_eq!(recovery.floor(7_900), Step::Compress { prompt_tokens: 7_900, newest_only: true });
        assert_eq!(recovery.compressed(7_900), Step::Send { output_tokens: Some(1_600) });
    }

    #[test]
    fn two_compressions_that_free_nothing_end_it() {
        let mut recovery = recovery(100_000, None);
        recovery.refused(&input(None, None));
        assert_eq!(recovery.compressed(99_000), compress(69_300));
        assert_eq!(recovery.compressed(99_000), Step::GiveUp(Reason::Useless));
    }

    #[test]
    fn whatever_is_refused_every_prompt_is_smaller_and_there_is_an_end() {
        use OverflowKind::{Input, OutputCap, RateCeiling, RequestBytes, Silent};
        let numbers = [None, Some(0), Some(1), Some(255), Some(9_000), Some(1 << 40), Some(u64::MAX)];
        for kind in [Input, OutputCap, RequestBytes, RateCeiling, Silent] {
            for (limit, used) in numbers.into_iter().flat_map(|limit| numbers.map(|used| (limit, used))) {
                for (prompt, output) in [(0, None), (7, Some(1)), (10_000, Some(u64::MAX)), (1 << 53, Some(8_192))] {
                    ends(recovery(prompt, output), prompt, &overflow(kind, limit, used));
                }
            }
        }
    }

    #[test]
    fn refusals_that_alternate_end_after_three_attempts() {
        let cap = |output_tokens| Overflow { output_tokens, ..overflow(OverflowKind::OutputCap, None, None) };
        let errors = [
            input(None, None),
            input(Some(16_000), Some(20_000)),
            input(Some(262_144), Some(22_139)),
            cap(None),
            cap(Some(900)),
            cap(Some(90)),
            overflow(OverflowKind::Silent, Some(4_096), Some(20_000)),
            overflow(OverflowKind::RateCeiling, Some(3_000), Some(4_000)),
        ];
        for order in 0..errors.len().pow(4) {
            let refusals = (0..4).map(|at| &errors[order / errors.len().pow(at) % errors.len()]);
            let mut recovery = recovery(100_000, Some(262_144));
            let mut attempts = 0;
            for error in refusals {
                let mut step = recovery.refused(error);
                if let Step::Compress { prompt_tokens, .. } = step {
                    step = recovery.compressed(prompt_tokens);
                }
                match step {
                    Step::Send { .. } => attempts += 1,
                    Step::GiveUp(_) => break,
                    Step::Compress { .. } => panic!("compressed as asked for, and not sent"),
                }
            }
            assert!(attempts <= 3, "{attempts} attempts");
        }
    }

    fn ends(mut recovery: Recovery, mut sent: u64, error: &Overflow) {
        let mut waiting = sent;
        let mut output = recovery.output_tokens;
        let mut step = recovery.refused(error);
        for _ in 0..32 {
            step = match step {
                Step::Compress { prompt_tokens, .. } => {
                    waiting = prompt_tokens;
                    recovery.compressed(prompt_tokens)
                }
                Step::Send { output_tokens } => {
                    assert!(waiting < sent || output_tokens < output || output.is_none(), "the same again: {error:?}");
                    (sent, output) = (waiting, output_tokens);
                    recovery.refused(error)
                }
                Step::GiveUp(_) => return,
            };
        }
        panic!("no end: {error:?}");
    }
}
