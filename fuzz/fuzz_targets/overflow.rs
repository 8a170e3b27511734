//! What providers say of an overflow: any text, status and code gives a verdict, and the repair that follows ends.

#![no_main]

use libfuzzer_sys::arbitrary::{self, Arbitrary};
use libfuzzer_sys::fuzz_target;
use nanobot_context::overflow::{
    ErrorView, Overflow, OverflowKind, Recovery, Step, UsageView, detect_overflow, detect_silent,
};

#[derive(Debug, Arbitrary)]
struct Refusal<'a> {
    text: &'a str,
    status: Option<u16>,
    code: Option<&'a str>,
    error_type: Option<&'a str>,
    provider: Option<&'a str>,
}

#[derive(Debug, Arbitrary)]
struct Case<'a> {
    prompt_tokens: u64,
    output_tokens: Option<u64>,
    fixed_tokens: u64,
    listed_output_tokens: u64,
    /// What compression makes of the prompt, each time, in 1/255 of what it was asked for; above is its floor.
    reached: u8,
    usage: (Option<u64>, u64, Option<u64>, Option<&'a str>),
    window_tokens: u64,
    refusals: Vec<Refusal<'a>>,
}

fuzz_target!(|case: Case<'_>| {
    let (input_tokens, cache_tokens, output_tokens, finish_reason) = case.usage;
    let usage = UsageView { input_tokens, cache_tokens, output_tokens, finish_reason };
    let silent = detect_silent(&usage, case.window_tokens, case.prompt_tokens);
    let said = case.refusals.iter().filter_map(detected);
    let overflows: Vec<Overflow> = said.chain(silent).collect();
    if !overflows.is_empty() {
        recover(&case, &overflows);
    }
});

fn detected(refusal: &Refusal<'_>) -> Option<Overflow> {
    let Refusal { text, status, code, error_type, provider } = *refusal;
    let view = ErrorView { text, status, code, error_type, provider };
    let overflow = detect_overflow(&view);
    assert_eq!(overflow, detect_overflow(&view));
    let overflow = overflow?;
    if let (OverflowKind::Input | OverflowKind::OutputCap, Some(limit)) = (overflow.kind, overflow.limit_tokens) {
        assert!((256..=10_000_000).contains(&limit), "{overflow:?}");
    }
    assert!(overflow.output_tokens.is_none() || overflow.kind == OverflowKind::OutputCap, "{overflow:?}");
    Some(overflow)
}

/// Repairs a request that is refused for ever: every prompt that is sent is smaller than the one before, and it ends.
fn recover(case: &Case<'_>, overflows: &[Overflow]) {
    let fixed_tokens = case.fixed_tokens.min(case.prompt_tokens);
    let mut recovery =
        Recovery::new(case.prompt_tokens, case.output_tokens, fixed_tokens, case.listed_output_tokens, 0.6);
    let mut refusals = overflows.iter().cycle();
    let mut sent = (case.prompt_tokens, case.output_tokens);
    let mut prompt_tokens = case.prompt_tokens;
    let mut step = refusals.next().map(|overflow| recovery.refused(overflow));
    for _ in 0..64 {
        step = match step {
            None | Some(Step::GiveUp(_)) => return,
            Some(Step::Send { output_tokens }) => {
                let now = (prompt_tokens, output_tokens);
                assert!(now.0 <= sent.0, "{sent:?}, then {now:?}");
                assert!(now != sent, "sent twice: {now:?}");
                sent = now;
                refusals.next().map(|overflow| recovery.refused(overflow))
            }
            // The same prompt, with its reasoning put back.
            Some(Step::Restore) => refusals.next().map(|overflow| recovery.refused(overflow)),
            Some(Step::Compress { prompt_tokens: wanted, .. }) if case.reached == 255 => {
                prompt_tokens = prompt_tokens.min(wanted.saturating_add(1));
                Some(recovery.floor(prompt_tokens))
            }
            Some(Step::Compress { prompt_tokens: wanted, .. }) => {
                assert!(wanted <= sent.0, "{wanted} of {sent:?}");
                let reached = u128::from(wanted) * u128::from(case.reached) / 254;
                prompt_tokens = u64::try_from(reached).unwrap_or(wanted);
                Some(recovery.compressed(prompt_tokens))
            }
        };
    }
    panic!("64 steps and no end");
}
