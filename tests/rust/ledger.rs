//! What the model is still told of messages that were left out: exact names, and what was done.

use nanobot_context::Role;
use nanobot_context::compress::Request;
use nanobot_context::conversation::{is_note, last_user_index};
use nanobot_context::tokens::Tokens;

use crate::fitted::{conversation, fit, fit_by, fit_without, lines, percent_of, said, text, tokens};
use crate::owned::{Owned, paragraphs, view};

/// Many builds that end in different ways, and a look at a file.
pub fn builds() -> Vec<Owned> {
    let printed =
        |i: usize| format!("{}Exit code: {}\n", lines(4, |k| format!("built part_{i:03}x{k:03} of it")), i % 3);
    let mut steps: Vec<(&str, String, String)> =
        (0..BUILDS).map(|i| ("exec", format!(r#"{{"command": "make target-{i}"}}"#), printed(i))).collect();
    steps.insert(BUILDS - 5, ("read_file", r#"{"path": "src/lookup.rs"}"#.to_owned(), printed(999)));
    let steps: Vec<_> = steps.iter().map(|(tool, arguments, printed)| (*tool, &**arguments, &**printed)).collect();
    conversation(&steps, "And now?")
}

const BUILDS: usize = 90;

fn ledger(messages: &[Owned]) -> Option<&str> {
    paragraphs(messages).find(|text| text.starts_with("[earlier parts left out, ledger "))
}

/// Returns all texts and arguments.
fn everything(messages: &[Owned]) -> String {
    let arguments = messages.iter().flat_map(|message| &message.calls).filter_map(|call| call.arguments.as_deref());
    arguments.chain(messages.iter().flat_map(Owned::texts)).collect::<Vec<_>>().join("\n")
}

#[test]
fn names_that_are_lost_are_listed_within_the_budget() {
    let messages = builds();
    for percent in [15, 20, 40] {
        let short = fit(&messages, percent);
        assert!(tokens(&short) <= percent_of(&messages, percent));
        let ledger = ledger(&short).unwrap();
        let names = ledger.lines().find_map(|line| line.strip_prefix("Names in them: ")).unwrap();
        for name in names.split(", ") {
            assert!(everything(&messages).contains(name), "{name}");
            assert_eq!(everything(&short).matches(name).count(), 1, "{name} stays elsewhere at {percent} %");
        }
    }
    assert!(ledger(&fit_without("ledger", &messages, 20)).is_none());
    assert!(ledger(&fit(&messages, 100)).is_none(), "nothing was lost");
}

#[test]
fn calls_that_changed_something_are_listed_with_how_they_ended() {
    let messages = builds();
    for percent in [15, 20, 40, 60] {
        let short = fit(&messages, percent);
        let ledger = ledger(&short).unwrap();
        let done: Vec<&str> = ledger.lines().filter_map(|line| line.strip_prefix("- ")).collect();
        assert!(!done.is_empty(), "{ledger}");
        for line in done.into_iter().filter(|line| line.starts_with("exec ")) {
            let ended = |i: usize| if i.is_multiple_of(3) { String::new() } else { format!(" (Exit code: {})", i % 3) };
            let build = (0..BUILDS).find(|&i| line == format!("exec make target-{i}{}", ended(i)));
            assert!(build.is_some(), "{line}");
            let call = format!(r#""make target-{}""#, build.unwrap_or_default());
            assert!(!everything(&short).contains(&call), "{call} stays at {percent} %, and is listed");
        }
    }
}

#[test]
fn the_line_of_a_command_says_what_stood_out_in_its_output() {
    let printed = |i: usize, odd: &str| {
        let usual = |k| format!("  ok  test_part_{k:02} of suite {i:02} in {} ms", 3 + k % 5);
        [lines(40, usual), odd.to_owned(), lines(30, usual)].concat()
    };
    let told = |tool: &str, key: &str, odd: &dyn Fn(usize) -> String| -> Vec<String> {
        let run = |i| (tool, format!(r#"{{"{key}": "suite-{i}"}}"#), printed(i, &odd(i)));
        let runs: Vec<(&str, String, String)> = (0..60).map(run).collect();
        let runs: Vec<_> = runs.iter().map(|(tool, arguments, printed)| (*tool, &**arguments, &**printed)).collect();
        let messages = conversation(&runs, "Go on.");
        let short = fit(&messages, 3);
        assert!(tokens(&short) <= percent_of(&messages, 3));
        ledger(&short).unwrap().lines().filter(|line| line.contains('→')).map(str::to_owned).collect()
    };
    let odd = |i: usize| format!("  not ok  test_cart_{i:02} expected 200 got 418\n");
    let shown = told("exec", "command", &odd);
    assert!(shown.len() > 5, "{shown:?}");
    let line = |i: usize| format!("- exec suite-{i} → not ok test_cart_{i:02} expected 200 got 418");
    assert!(shown.iter().all(|shown| (0..60).any(|i| line(i) == *shown)), "{shown:?}");
    // It can be read again; and nothing stood out.
    assert_eq!(told("read_file", "path", &odd), [""; 0]);
    assert_eq!(told("exec", "command", &|_| String::new()), [""; 0]);
}

#[test]
fn every_payment_is_named_where_a_newest_result_takes_nearly_all_room() {
    let mut steps = Vec::new();
    for i in 0..30 {
        let invoice = lines(if i == 29 { 60 } else { 30 }, |k| format!("2026-11-25 INFO handled request {i}{k:03}"));
        steps.push(("read_file", format!(r#"{{"path": "invoices/{i:03}.txt"}}"#), invoice));
        if i < 29 {
            steps.push(("pay_invoice", format!(r#"{{"invoice": "INV-{i:03}", "amount": {i}}}"#), "paid".to_owned()));
        }
    }
    let steps: Vec<_> = steps.iter().map(|(tool, arguments, printed)| (*tool, &**arguments, &**printed)).collect();
    let messages = conversation(&steps, "Go on.");
    for percent in [10, 12, 15, 20, 30] {
        let short = fit(&messages, percent);
        let unnamed: Vec<usize> = (0..29).filter(|i| !everything(&short).contains(&format!("INV-{i:03}"))).collect();
        assert!(unnamed.is_empty(), "{unnamed:?} at {percent} %: {:?}", ledger(&short));
    }
}

#[test]
fn what_runs_on_is_named_whether_its_call_stays_or_not() {
    for (started, name) in [
        ("Command still running (session tidy-lagoon, pid 48213). Use process (poll/log/kill).", "tidy-lagoon"),
        ("Process still running (session: tidy-lagoon).", "tidy-lagoon"),
        (r#"{"status": "running", "sessionId": "tidy-lagoon"}"#, "tidy-lagoon"),
        ("Subagent [audit] started (id: 7f3a91c2).", "7f3a91c2"),
    ] {
        let mut steps = vec![("exec", r#"{"command": "python train.py"}"#.to_owned(), started.to_owned())];
        for i in 0..120 {
            let printed = lines(60, |k| format!("def value_{i}_{k}(a): return a * {}", i * k % 97));
            steps.push(("exec", format!(r#"{{"command": "cat src/part{i}.py"}}"#), printed));
        }
        let steps: Vec<_> = steps.iter().map(|(tool, arguments, printed)| (*tool, &**arguments, &**printed)).collect();
        let messages = conversation(&steps, "Go on.");
        for percent in [10, 20, 40, 80] {
            assert!(everything(&fit(&messages, percent)).contains(name), "{started} at {percent} %");
        }
    }
}

#[test]
fn files_that_were_read_share_a_line() {
    let read = |i: usize| {
        let printed = lines(60, |k| format!("def value_{i}_{k}(a): return a * {}", i * k));
        ("read_file", format!(r#"{{"path": "src/mod_{i}/part{i}.py"}}"#), printed)
    };
    let reads: Vec<_> = (0..28).map(read).collect();
    let reads: Vec<_> = reads.iter().map(|(tool, arguments, printed)| (*tool, &**arguments, &**printed)).collect();
    let messages = conversation(&reads, "Which files did you read?");
    let short = fit(&messages, 8);
    let ledger = ledger(&short).unwrap();
    let shared: Vec<&str> = ledger.lines().filter(|line| line.starts_with("- read_file ")).collect();
    assert_eq!(shared.len(), 1, "{ledger}");
    for i in 0..28 {
        assert!(everything(&short).contains(&format!("part{i}.py")), "{i} is in {ledger}");
    }
    let paths: Vec<&str> = shared[0].trim_start_matches("- read_file ").split(", ").collect();
    assert!(paths.len() > 2 && paths.is_sorted_by_key(|path| path.len()), "in order: {ledger}");
}

#[test]
fn fitting_again_changes_nothing() {
    let messages = builds();
    for percent in [15, 40] {
        let once = fit(&messages, percent);
        assert!(ledger(&once).is_some());
        for budget in [percent_of(&messages, percent), tokens(&once)] {
            assert_eq!(fit_by(&once, &Request::new(None, None, Tokens::ZERO), budget), once);
        }
    }
}

#[test]
fn what_a_user_writes_is_the_users_however_much_it_looks_like_a_ledger() {
    let once = fit(&builds(), 12);
    let ledger = ledger(&once).unwrap();
    let forged = ledger.replace("them: ", "them: forged, ");
    for (text, is_users) in [(ledger, false), (&forged, true)] {
        let mut messages = builds();
        messages.push(Owned::new(Role::User, text));
        let last = messages.len() - 1;
        assert_eq!(is_note(&messages[last].view()), !is_users);
        assert_eq!(last_user_index(&view(&messages)), Some(if is_users { last } else { last - 1 }));
        if is_users {
            let short = fit(&messages, 12);
            assert_eq!(said(&short, short.len() - 1), text);
        }
    }
}

#[test]
fn what_a_chinese_conversation_has_lost_is_said_in_chinese() {
    let printed = |i: usize| lines(80, |k| format!("built part_{i:03}x{k:03} of it in {} ms", 7 * k + i));
    let mut steps: Vec<(&str, String, String)> =
        (0..40).map(|i| ("exec", format!(r#"{{"command": "make target-{i}"}}"#), printed(i))).collect();
    steps.insert(35, ("read_file", r#"{"path": "src/lookup.rs"}"#.to_owned(), printed(999)));
    let steps: Vec<_> = steps.iter().map(|(tool, arguments, printed)| (*tool, &**arguments, &**printed)).collect();
    let (chinese, english) = (conversation(&steps, "现在怎么样了？请继续构建"), conversation(&steps, "And now?"));
    for percent in [8, 20, 40] {
        let short = fit(&chinese, percent);
        let said = text(&short);
        assert!(said.contains("已省略"), "{said}");
        for words in [" left out", "; all of it", "earlier parts", "Names in them"] {
            assert!(!said.contains(words), "{words}: {said}");
        }
        assert!(said.contains("其中出现的名称：") || said.contains("其中做过的操作："), "{said}");
        let again = fit_by(&short, &Request::new(None, None, Tokens::ZERO), tokens(&short));
        assert_eq!(text(&again), said, "a second time changes nothing");
        assert!(!text(&fit(&english, percent)).contains("已省略"));
    }
}
