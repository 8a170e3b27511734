//! Promise 6: a message once shortened keeps its bytes, and the same history gives the same bytes again.

use nanobot_context::compress::{self, CompactionCache, Plan, Request};
use nanobot_context::tokens::Tokens;
use nanobot_context::{Error, Role, TokenCounter};
use proptest::prelude::*;

use crate::generate::{cases, config};
use crate::owned::{Owned, apply, view};
use crate::texts::Kind;

fn request(window_tokens: u64) -> Request<'static> {
    Request::new(None, None, Tokens(window_tokens))
}

fn tokens(messages: &[Owned]) -> u64 {
    TokenCounter::new(None).prompt(&view(messages), None).tokens.0
}

/// Turns of `rounds` calls each, with results of 400 to 3,000 bytes.
fn conversation(turns: usize, rounds: usize) -> Vec<Owned> {
    let mut messages = vec![Owned::new(Role::System, "You are nanobot. It is 10:01.")];
    for turn in 0..turns {
        messages.push(Owned::new(Role::User, format!("Task {turn}: {}", Kind::Prose.text(200, turn as u64))));
        for round in 0..rounds {
            let id = format!("call_{turn}_{round}");
            let path = serde_json::json!({"path": format!("src/{turn}/{round}.rs")}).to_string();
            messages.push(Owned::calling(&[&id], "read_file", &path));
            let bytes = 400 + (turn * 7 + round * 13) % 27 * 100;
            messages.push(Owned::result(&id, "read_file", Kind::Code.text(bytes, (turn * 100 + round) as u64)));
        }
        messages.push(Owned::new(Role::Assistant, Kind::Prose.text(300, turn as u64)));
    }
    messages
}

/// Where a request is made: before every message of the assistant.
fn requests(messages: &[Owned]) -> Vec<usize> {
    (1..messages.len()).filter(|&at| messages[at].role == Role::Assistant).collect()
}

fn sent(steady: &CompactionCache, messages: &[Owned], window_tokens: u64) -> Vec<Owned> {
    let plan = steady.compress(&view(messages), &request(window_tokens)).unwrap();
    plan.map_or_else(|| messages.to_vec(), |plan| apply(messages, &plan))
}

proptest! {
    #![proptest_config(ProptestConfig { cases: config().cases / 4, ..config() })]

    #[test]
    fn a_restart_at_any_message_gives_the_same_plan(case in cases()) {
        let request = case.request(case.window_tokens());
        let running = CompactionCache::default();
        let plan = |steady: &CompactionCache, at: usize| steady.compress(&view(&case.messages[..at]), &request).ok();
        for at in 0..=case.messages.len() {
            prop_assert_eq!(plan(&running, at), plan(&CompactionCache::default(), at), "at {}", at);
        }
        // And back: a conversation that was cut short is another one.
        for at in (0..=case.messages.len()).rev().step_by(3) {
            prop_assert_eq!(plan(&running, at), plan(&CompactionCache::default(), at), "back at {}", at);
        }
    }

    #[test]
    fn a_receipt_is_true_to_the_request(case in cases()) {
        let request = case.request(case.window_tokens());
        let Ok(Some(plan)) = compress::compress(&view(&case.messages), &request) else { return Ok(()) };
        let Plan { outputs, receipt, .. } = &plan;
        let out = apply(&case.messages, &plan);
        let count = request.counter().prompt(&view(&out), request.tools).tokens.0;
        prop_assert_eq!(receipt.tokens_after, Some(Tokens(count)));
        let input = view(&case.messages);
        let seen: Vec<String> = outputs.iter().map(|output| format!("{:?}", output.message(&input))).collect();
        prop_assert_eq!(seen.len(), out.len());
        for (output, owned) in outputs.iter().zip(&out) {
            let counter = request.counter();
            prop_assert_eq!(counter.message(&output.message(&input)), counter.message(&owned.view()));
        }
    }
}

#[test]
fn requests_grow_at_their_end_between_rare_large_steps() {
    for (turns, rounds) in [(1, 150), (12, 12), (150, 1)] {
        let messages = conversation(turns, rounds);
        let window_tokens = tokens(&messages) / 3;
        let budget = request(window_tokens).budget_tokens().0;
        let steady = CompactionCache::default();
        let (mut previous, mut steps): (Vec<Owned>, Vec<u64>) = (Vec::new(), Vec::new());
        let all = requests(&messages);
        for &at in &all {
            let out = sent(&steady, &messages[..at], window_tokens);
            assert!(tokens(&out) <= budget);
            if !out.starts_with(&previous) {
                steps.push(tokens(&out));
            }
            previous = out;
        }
        // Each step makes room for a third of the budget, and the conversation is 3.5 budgets long.
        assert!((2..=9).contains(&steps.len()), "{steps:?} of {budget} in {} requests", all.len());
        assert!(steps.iter().all(|&left| left * 100 <= budget * 75 && left * 100 >= budget * 45), "{steps:?} {budget}");
    }
}

/// What is left is read anew once, so it is less where the next step comes soon: what each request adds decides, not the
/// length of the conversation.
#[test]
fn a_step_leaves_less_the_more_each_request_adds() {
    let left = |rounds: usize, bytes: usize| {
        let mut messages = vec![Owned::new(Role::System, "You are nanobot."), Owned::new(Role::User, "Read them.")];
        for round in 0..rounds {
            let id = format!("call_{round}");
            messages.push(Owned::calling(&[&id], "read_file", &format!(r#"{{"path": "src/{round}.rs"}}"#)));
            messages.push(Owned::result(&id, "read_file", Kind::Code.text(bytes, round as u64)));
        }
        let window_tokens = tokens(&messages) * 100 / 86;
        let out = sent(&CompactionCache::default(), &messages, window_tokens);
        tokens(&out) * 100 / request(window_tokens).budget_tokens().0
    };
    let shares = [left(400, 500), left(100, 2_000), left(40, 5_000), left(20, 10_000)];
    assert!(shares.windows(2).all(|pair| pair[0] >= pair[1]), "{shares:?}");
    assert!(shares[0] >= 70 && (44..60).contains(&shares[3]), "{shares:?}");
}

#[test]
fn a_step_fills_its_target() {
    let messages = conversation(1, 150);
    let (floor, budget) = (tokens(&messages[..2]), request(tokens(&messages) / 3).budget_tokens().0);
    let out = |at: usize| sent(&CompactionCache::default(), &messages[..at], tokens(&messages) / 3);
    let cut = requests(&messages).into_iter().map(|at| (at, out(at))).find(|(at, out)| *out != messages[..*at]);
    let left = tokens(&cut.unwrap().1);
    // By what its requests add: that of the whole conversation is a little more.
    let target = floor + (budget - floor) * 57 / 100;
    // The step may have been due one request earlier: what is fixed is rounded up.
    assert!(left <= target + 1_000 && left * 10 >= target * 9, "{left} of {target}");
}

#[test]
fn a_clock_in_the_system_prompt_moves_nothing() {
    let messages = conversation(3, 30);
    let window_tokens = tokens(&messages) / 2;
    let (running, budget) = (CompactionCache::default(), request(window_tokens).budget_tokens().0);
    let mut changed = 0;
    for at in requests(&messages) {
        let before = sent(&running, &messages[..at], window_tokens);
        let mut later = messages[..at].to_vec();
        later[0] = Owned::new(Role::System, "You are nanobot. It is 22:47:13 on Saturday.");
        for steady in [&running, &CompactionCache::default()] {
            let after = sent(steady, &later, window_tokens);
            assert_eq!(before[1..], after[1..], "at {at}");
            assert_eq!(after[0], later[0]);
            assert!(tokens(&after) <= budget);
        }
        changed += u64::from(before.len() != at || before != messages[..at]);
    }
    assert!(changed > 20);
}

#[test]
fn what_was_changed_in_the_middle_is_planned_anew() {
    let messages = conversation(3, 30);
    let window_tokens = tokens(&messages) / 2;
    let running = CompactionCache::default();
    let before = sent(&running, &messages, window_tokens);
    let mut changed = 0;
    for index in [3, 40, 100, 180] {
        let mut other = messages.clone();
        other[index] = Owned { name: other[index].name.clone(), ..other[index].clone() };
        other[index].says = crate::owned::Says::Text("something else".to_owned());
        let after = sent(&running, &other, window_tokens);
        assert_eq!(after, sent(&CompactionCache::default(), &other, window_tokens), "{index}");
        // What is left out either way changes nothing.
        changed += u32::from(before != after);
        assert_eq!(before, sent(&running, &messages, window_tokens));
    }
    assert!(changed > 1);
}

#[test]
fn conversations_that_take_turns_are_not_confused() {
    let one = conversation(2, 60);
    // The same beginning, and then another way.
    let mut two = one[..100].to_vec();
    two.push(Owned::new(Role::User, "No, stop. Do this instead."));
    two.extend(conversation(1, 70).split_off(2));
    let window_tokens = tokens(&one) / 2;
    let (shared, apart) = (CompactionCache::holding(1 << 20), [CompactionCache::default(), CompactionCache::default()]);
    for at in requests(&one).into_iter().filter(|&at| at < two.len()) {
        for (messages, alone) in [&one, &two].into_iter().zip(&apart) {
            let out = sent(&shared, &messages[..at], window_tokens);
            assert_eq!(out, sent(alone, &messages[..at], window_tokens));
            assert_eq!(out, sent(&CompactionCache::default(), &messages[..at], window_tokens));
        }
    }
}

#[test]
fn a_lower_window_after_a_refusal_gives_a_smaller_request() {
    let messages = conversation(2, 60);
    let window_tokens = tokens(&messages) / 2;
    let steady = CompactionCache::default();
    let refused = tokens(&sent(&steady, &messages, window_tokens));
    let lower = refused * 9 / 10;
    assert!(tokens(&sent(&steady, &messages, lower)) <= request(lower).budget_tokens().0);
}

#[test]
fn a_large_message_of_the_user_does_not_make_every_request_a_step() {
    let mut messages = conversation(1, 120);
    messages[1] = Owned::new(Role::User, Kind::Prose.text(600_000, 7));
    let protected = tokens(&messages[..2]);
    // What must stay is 90 % of the budget.
    let window_tokens = protected * 100 / 90 * 100 / 85 + 1;
    let (steady, mut previous, mut steps) = (CompactionCache::default(), Vec::new(), 0);
    let all = requests(&messages);
    for &at in &all {
        let out = sent(&steady, &messages[..at], window_tokens);
        steps += usize::from(!out.starts_with(&previous));
        previous = out;
    }
    assert!(steps * 2 <= all.len(), "{steps} steps in {} requests", all.len());
}

#[test]
fn a_step_that_was_remembered_hides_no_overflow() {
    let messages = [Owned::new(Role::Assistant, "The build is green.")];
    let compress = |steady: &CompactionCache, budget_tokens: u64| {
        let request = Request { max_output_tokens: Some(Tokens(100 - budget_tokens)), ..request(100) };
        steady.compress(&view(&messages), &request).map(|plan| plan.is_some_and(|plan| plan.outputs.is_empty()))
    };
    let steady = CompactionCache::default();
    assert!(compress(&steady, 3).unwrap(), "the start of the reply alone");
    assert!(matches!(compress(&steady, 2), Err(Error::Overflow { .. })));
    assert!(compress(&steady, 3).unwrap());
}
