//! What is sent after a refusal.

use nanobot_context::overflow::{GiveUpReason, Overflow, OverflowKind, Recovery, Step};
use nanobot_context::tokens::Tokens;

fn overflow(kind: OverflowKind, limit: Option<u64>, used: Option<u64>) -> Overflow {
    Overflow::new(kind, limit.map(Tokens), used.map(Tokens))
}

fn input(limit: Option<u64>, used: Option<u64>) -> Overflow {
    overflow(OverflowKind::Input, limit, used)
}

fn recovery(prompt_tokens: u64, output_tokens: Option<u64>) -> Recovery {
    Recovery::new(Tokens(prompt_tokens), output_tokens.map(Tokens), Tokens::ZERO, Tokens(8_192), 0.6)
}

fn compress(prompt_tokens: u64) -> Step {
    Step::Compress { prompt_tokens: Tokens(prompt_tokens) }
}

fn send(output_tokens: u64) -> Step {
    Step::Send { output_tokens: Some(Tokens(output_tokens)) }
}

#[test]
fn a_stated_limit_is_the_target_with_the_answer_left_out() {
    let mut recovery = recovery(20_000, Some(4_000));
    assert_eq!(recovery.refused(&input(Some(16_000), None)), compress(10_800));
    assert_eq!(recovery.compressed(Tokens(10_500)), send(4_000));
}

#[test]
fn without_a_number_the_target_is_a_share_of_what_was_refused() {
    let mut recovery = recovery(100_000, None);
    assert_eq!(recovery.refused(&input(None, None)), compress(60_000));
    assert_eq!(recovery.compressed(Tokens(50_000)), Step::Send { output_tokens: None });
    assert_eq!(recovery.refused(&overflow(OverflowKind::RequestBytes, None, None)), compress(30_000));
}

#[test]
fn without_a_number_a_long_answer_is_shortened_before_the_prompt() {
    let mut recovery = recovery(11_605, Some(8_192));
    assert_eq!(recovery.refused(&input(None, None)), send(1_024));
    // That was not what it was for.
    assert_eq!(recovery.refused(&input(None, None)), compress(6_963));
    assert_eq!(recovery.compressed(Tokens(6_900)), send(1_024));
    for prompt_tokens in [4_140, 2_484] {
        assert_eq!(recovery.refused(&input(None, None)), compress(prompt_tokens));
        assert_eq!(recovery.compressed(Tokens(prompt_tokens)), send(1_024));
    }
    assert_eq!(recovery.refused(&input(None, None)), Step::GiveUp(GiveUpReason::Refused));
}

#[test]
fn without_a_number_an_answer_shrinks_with_the_prompt() {
    let mut recovery = recovery(40_000, Some(8_192));
    assert_eq!(recovery.refused(&input(None, None)), compress(24_000));
    assert_eq!(recovery.compressed(Tokens(24_000)), send(6_000));
    let mut of_bytes = Recovery::new(Tokens(40_000), Some(Tokens(8_192)), Tokens::ZERO, Tokens(8_192), 0.6);
    assert_eq!(of_bytes.refused(&overflow(OverflowKind::RequestBytes, None, None)), compress(24_000));
    assert_eq!(of_bytes.compressed(Tokens(24_000)), send(8_192));
}

#[test]
fn without_a_number_a_prompt_of_what_must_stay_goes_out_with_a_shorter_answer() {
    let mut recovery = Recovery::new(Tokens(20_000), Some(Tokens(2_400)), Tokens(19_800), Tokens(8_192), 0.6);
    assert_eq!(recovery.refused(&input(None, None)), send(1_024));
    // Where it is not known what that is.
    let mut recovery = Recovery::new(Tokens(20_000), Some(Tokens(2_400)), Tokens::ZERO, Tokens(8_192), 0.6);
    assert_eq!(recovery.refused(&input(None, None)), compress(12_000));
    assert_eq!(recovery.floor(Tokens(19_900)), compress(19_950));
    assert_eq!(recovery.compressed(Tokens(19_900)), send(1_024));
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
        assert_eq!(recovery.compressed(Tokens(prompt_tokens)), Step::Send { output_tokens: None });
    }
    assert_eq!(recovery.refused(&input(None, None)), Step::GiveUp(GiveUpReason::Refused));
}

#[test]
fn a_prompt_that_is_named_apart_from_the_answer_says_how_the_provider_counts() {
    // 10,254 of ours are 14,989 of its own, and 8,192 of its own 5,604 of ours.
    let mut named = recovery(10_254, Some(4_096));
    let overflow = Overflow { used_is_prompt: true, ..input(Some(8_192), Some(14_989)) };
    assert_eq!(named.refused(&overflow), compress(2_521));
    assert_eq!(named.compressed(Tokens(3_286)), send(2_037));
    // It may be both.
    let mut both = recovery(10_254, Some(4_096));
    assert_eq!(both.refused(&input(Some(8_192), Some(14_989))), compress(2_521));
    assert_eq!(both.compressed(Tokens(3_286)), send(4_039));
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
fn of_a_small_window_the_answer_gets_what_the_prompt_leaves() {
    let mut recovery = recovery(20_000, Some(32_000));
    assert_eq!(recovery.refused(&input(Some(16_000), None)), compress(10_713));
    assert_eq!(recovery.compressed(Tokens(10_000)), send(5_200));
}

#[test]
fn a_prompt_with_room_for_half_a_window_of_answer_stays_whole() {
    // OpenRouter adds up what the prompt has and the answer may have.
    let mut recovery = recovery(22_000, Some(262_144));
    let step = recovery.refused(&input(Some(262_144), Some(22_139)));
    assert_eq!(step, send(131_072));
}

#[test]
fn a_prompt_with_room_for_a_short_answer_stays_whole() {
    let lowered = |output, used| recovery(9_979, Some(output)).refused(&input(Some(200_000), Some(used)));
    assert_eq!(lowered(64_000, 189_979), send(10_021));
    assert_eq!(lowered(2_000, 199_000), send(1_000), "half of what was asked for");
    assert_eq!(lowered(64_000, 198_900), send(1_100));
    assert!(matches!(lowered(64_000, 199_000), Step::Compress { .. }));
    assert!(matches!(lowered(2_000, 199_001), Step::Compress { .. }));
}

#[test]
fn an_output_cap_lowers_the_output_limit_only() {
    let cap = |output_tokens| Overflow { output_tokens, ..overflow(OverflowKind::OutputCap, None, None) };
    let lowered = |first, error| recovery(10_000, first).refused(&error);
    let send = |output_tokens| send(output_tokens);
    assert_eq!(lowered(Some(32_000), cap(Some(Tokens(4_096)))), send(4_096));
    assert_eq!(lowered(None, cap(Some(Tokens(4_096)))), send(4_096));
    assert_eq!(lowered(Some(32_000), cap(None)), send(8_192), "what the model is listed with");
    assert_eq!(lowered(Some(8_192), cap(None)), send(4_096), "half");
    assert_eq!(lowered(None, cap(None)), Step::GiveUp(GiveUpReason::Unrelated));
    assert_eq!(lowered(Some(4_096), cap(Some(Tokens(8_192)))), Step::GiveUp(GiveUpReason::Unrelated));
}

#[test]
fn an_output_cap_is_lowered_three_times_at_most() {
    let mut recovery = recovery(10_000, Some(8_192));
    let cap = overflow(OverflowKind::OutputCap, None, None);
    for output_tokens in [4_096, 2_048, 1_024] {
        assert_eq!(recovery.refused(&cap), send(output_tokens));
    }
    assert_eq!(recovery.refused(&cap), Step::GiveUp(GiveUpReason::Unrelated));
}

#[test]
fn a_cap_that_a_model_has_of_its_own_may_be_small() {
    let cap = Overflow { output_tokens: Some(Tokens(100)), ..overflow(OverflowKind::OutputCap, None, None) };
    assert_eq!(recovery(10_000, Some(4_000)).refused(&cap), send(100));
}

#[test]
fn a_cap_that_leaves_no_room_for_an_answer_is_too_long_a_prompt() {
    let cap = overflow(OverflowKind::OutputCap, Some(16_000), Some(15_900));
    let cap = Overflow { output_tokens: Some(Tokens(100)), ..cap };
    assert_eq!(recovery(15_900, Some(4_000)).refused(&cap), compress(10_800));
}

#[test]
fn a_rate_that_time_heals_is_no_reason_to_cut() {
    let rate = |limit, used| overflow(OverflowKind::RateCeiling, limit, used);
    assert_eq!(recovery(9_000, None).refused(&rate(Some(30_000), Some(9_000))), Step::GiveUp(GiveUpReason::Unrelated));
    assert_eq!(recovery(9_000, None).refused(&rate(None, None)), Step::GiveUp(GiveUpReason::Unrelated));
    assert_eq!(recovery(40_000, None).refused(&rate(Some(30_000), Some(40_000))), compress(27_000));
}

#[test]
fn what_must_stay_is_tried_once_where_it_is_smaller() {
    let mut recovery = recovery(100_000, None);
    recovery.refused(&input(None, None));
    assert_eq!(recovery.floor(Tokens(80_000)), compress(80_512));
    assert_eq!(recovery.compressed(Tokens(80_400)), Step::Send { output_tokens: None });
    recovery.refused(&input(None, None));
    assert_eq!(recovery.floor(Tokens(80_000)), Step::GiveUp(GiveUpReason::Floor));
}

#[test]
fn a_floor_that_cannot_be_reached_either_ends_it() {
    let mut recovery = recovery(100_000, None);
    recovery.refused(&input(None, None));
    recovery.floor(Tokens(80_000));
    assert_eq!(recovery.floor(Tokens(80_001)), Step::GiveUp(GiveUpReason::Floor));
}

#[test]
fn a_shorter_answer_makes_room_for_what_must_stay() {
    let mut recovery = recovery(8_000, Some(4_000));
    assert_eq!(recovery.refused(&input(Some(10_000), Some(8_000))), send(2_000));
    assert_eq!(recovery.refused(&input(Some(10_000), Some(8_000))), compress(5_600));
    assert_eq!(recovery.floor(Tokens(7_900)), compress(7_950));
    assert_eq!(recovery.compressed(Tokens(7_950)), send(1_550));
}

#[test]
fn a_limit_above_the_prompt_is_one_for_prompt_and_answer() {
    let mut recovery = recovery(15_256, Some(8_192));
    assert_eq!(recovery.refused(&input(Some(17_500), None)), send(1_442));
    // Our count was what was wrong.
    assert_eq!(recovery.refused(&input(Some(17_500), None)), compress(11_240));
}

#[test]
fn beside_what_is_never_cut_every_attempt_has_room_for_rules_and_the_newest_call() {
    // nanobot's defaults: 7,400 tokens of system prompt and tools, 8,192 for the answer, 16,000 where 200,000 were told.
    let fixed = 7_400;
    let mut recovery = Recovery::new(Tokens(38_460), Some(Tokens(8_192)), Tokens(fixed), Tokens(8_192), 0.6);
    assert_eq!(recovery.refused(&input(Some(16_000), Some(38_460))), compress(10_713));
    assert_eq!(recovery.compressed(Tokens(10_700)), send(4_500));
    assert_eq!(recovery.refused(&input(Some(16_000), None)), compress(8_332));
    assert_eq!(recovery.compressed(Tokens(8_300)), send(4_500));
    let Step::Compress { prompt_tokens } = recovery.refused(&input(Some(16_000), None)) else { panic!() };
    assert_eq!(prompt_tokens, Tokens(fixed + 450));
}

#[test]
fn a_refusal_without_a_number_leaves_room_beside_what_is_never_cut_too() {
    let fixed = 9_000;
    let mut recovery = Recovery::new(Tokens(12_000), None, Tokens(fixed), Tokens(8_192), 0.6);
    let mut last = Tokens(12_000);
    for _ in 0..2 {
        let Step::Compress { prompt_tokens } = recovery.refused(&input(None, None)) else { panic!() };
        assert!(prompt_tokens > Tokens(fixed) && prompt_tokens < last, "{prompt_tokens}");
        last = prompt_tokens;
        assert_eq!(recovery.compressed(prompt_tokens), Step::Send { output_tokens: None });
    }
}

#[test]
fn a_limit_in_bytes_is_a_share_of_what_was_sent() {
    let bytes = Overflow { limit_bytes: Some(5_000_000), ..overflow(OverflowKind::RequestBytes, None, None) };
    let mut known = recovery(100_000, None);
    known.weighs(5_500_000);
    assert_eq!(known.refused(&bytes), compress(81_818));
    assert_eq!(recovery(100_000, None).refused(&bytes), compress(60_000), "nobody said how many there were");
}

#[test]
fn a_limit_in_messages_is_a_share_of_what_was_sent() {
    let messages = Overflow { limit_messages: Some(2_000), ..overflow(OverflowKind::Messages, None, None) };
    let mut known = recovery(100_000, None);
    known.weighs(4_000);
    assert_eq!(known.refused(&messages), compress(45_000));
    assert_eq!(recovery(100_000, None).refused(&messages), compress(60_000), "nobody said how many there were");
}

#[test]
fn reasoning_that_is_asked_for_is_sent_back_once_and_nothing_is_cut() {
    let mut recovery = recovery(10_000, Some(8_192));
    let reasoning = overflow(OverflowKind::Reasoning, None, None);
    assert_eq!(recovery.refused(&reasoning), Step::Restore);
    assert_eq!(recovery.refused(&reasoning), Step::GiveUp(GiveUpReason::Unrelated));
}

#[test]
fn two_compressions_that_free_nothing_end_it() {
    let mut recovery = recovery(100_000, None);
    recovery.refused(&input(None, None));
    assert_eq!(recovery.compressed(Tokens(99_000)), compress(69_300));
    assert_eq!(recovery.compressed(Tokens(99_000)), Step::GiveUp(GiveUpReason::Useless));
}

#[test]
fn whatever_is_refused_every_prompt_is_smaller_and_there_is_an_end() {
    use OverflowKind::{Input, Messages, OutputCap, RateCeiling, RequestBytes, Silent};
    let numbers = [None, Some(0), Some(1), Some(255), Some(9_000), Some(1 << 40), Some(u64::MAX)];
    for kind in [Input, OutputCap, RequestBytes, Messages, RateCeiling, Silent] {
        for (limit, used) in numbers.into_iter().flat_map(|limit| numbers.map(|used| (limit, used))) {
            for (prompt, output) in [(0, None), (7, Some(1)), (10_000, Some(u64::MAX)), (1 << 53, Some(8_192))] {
                ends(prompt, output, &overflow(kind, limit, used));
            }
        }
    }
}

#[test]
fn refusals_that_alternate_end_after_three_attempts_and_one_shorter_answer() {
    let cap = |output_tokens| Overflow { output_tokens, ..overflow(OverflowKind::OutputCap, None, None) };
    let errors = [
        input(None, None),
        input(Some(16_000), Some(20_000)),
        input(Some(262_144), Some(22_139)),
        cap(None),
        cap(Some(Tokens(900))),
        cap(Some(Tokens(90))),
        overflow(OverflowKind::Silent, Some(4_096), Some(20_000)),
        overflow(OverflowKind::RateCeiling, Some(3_000), Some(4_000)),
    ];
    for order in 0..errors.len().pow(4) {
        let refusals = (0..4).map(|at| &errors[order / errors.len().pow(at) % errors.len()]);
        let mut recovery = recovery(100_000, Some(262_144));
        let mut attempts = 0;
        for error in refusals {
            let mut step = recovery.refused(error);
            if let Step::Compress { prompt_tokens } = step {
                step = recovery.compressed(prompt_tokens);
            }
            match step {
                Step::Send { .. } => attempts += 1,
                Step::GiveUp(_) => break,
                Step::Compress { .. } => panic!("compressed as asked for, and not sent"),
                Step::Restore => panic!("nobody asked for reasoning"),
            }
        }
        assert!(attempts <= 4, "{attempts} attempts");
    }
}

fn ends(mut sent: u64, mut output: Option<u64>, error: &Overflow) {
    let mut recovery = recovery(sent, output);
    let mut waiting = sent;
    let mut step = recovery.refused(error);
    for _ in 0..32 {
        step = match step {
            Step::Compress { prompt_tokens } => {
                waiting = prompt_tokens.0;
                recovery.compressed(prompt_tokens)
            }
            Step::Send { output_tokens } => {
                let output_tokens = output_tokens.map(|tokens| tokens.0);
                assert!(waiting < sent || output_tokens < output || output.is_none(), "the same again: {error:?}");
                (sent, output) = (waiting, output_tokens);
                recovery.refused(error)
            }
            Step::Restore | Step::GiveUp(_) => return,
        };
    }
    panic!("no end: {error:?}");
}
