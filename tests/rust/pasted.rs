//! Output of programs in messages of the user and the assistant is weighed like a result.

use nanobot_context::Role;

use crate::fitted::{conversation, fit, lines, text};
use crate::owned::{Owned, paragraphs};

/// Returns the line of a number.
type Line = fn(usize) -> String;

/// A message of the user or the assistant, an answer to it and a question.
fn shown(role: Role, shown: String) -> Vec<Owned> {
    let wish = if role == Role::User { Vec::new() } else { vec![Owned::new(Role::User, "Print it.")] };
    let answer = if role == Role::User { vec![Owned::new(Role::Assistant, "I look at it.")] } else { Vec::new() };
    let said = vec![Owned::new(role, shown)];
    [wish, said, answer, vec![Owned::new(Role::User, "So what went wrong?")]].concat()
}

#[test]
fn what_the_user_pasted_is_weighed_like_a_result() {
    let log = || lines(300, |i| format!("2026-05-01 10:10:{:02} INFO worker_{} finished job_{i:04}", i % 60, i % 7));
    let pasted = format!("Here is the log:\n```\n{}\n```\nNever restart the old host.", log());
    let mut messages = conversation(&[("exec", "{}", &log()), ("exec", "{}", &log())], "Continue.");
    messages.insert(1, Owned::new(Role::Assistant, "I see."));
    messages.insert(1, Owned::new(Role::User, pasted));
    let short = fit(&messages, 15);
    let user: Vec<&str> = paragraphs(&short).filter(|text| text.starts_with("Here is the log:")).collect();
    assert!(user[0].contains("Never restart the old host."), "{}", user[0]);
    assert!(user[0].matches("finished job_").count() < 100, "{}", user[0]);
}

/// Lines without a time or a level are no log by their words; a pattern tells them.
#[test]
fn the_odd_line_of_a_block_stays_whoever_shows_it_with_the_words_beside_it() {
    let blocks: [(Line, &str); 4] = [
        (|i| format!("node-{i:04}   Ready   {}d   v1.29.3", 10 + i % 80), "node-0233   NotReady   41d   v1.29.3"),
        (|i| format!("{i} state={}", ["idle", "busy"][i * 37 % 91 % 2]), "233 state=zombie"),
        (|i| format!("EXT4-fs (sd{i}): mounted filesystem"), "EXT4-fs (sd233): remounting read-only"),
        (|i| format!("read({i}, \"\", 4096) = {}", 100 + i * 37 % 900), "read(233, \"\", 4096) = -1 EAGAIN"),
    ];
    let own = "By the way, the customer saw this only on the tablet in the Lyon office.";
    for (line, odd) in blocks {
        for at in [5, 233, 690] {
            let block = lines(700, |i| if i == at { odd.to_owned() } else { line(i) });
            for role in [Role::User, Role::Assistant] {
                for said in [format!("{own}\n\n{block}"), format!("```\n{block}```\n{own}")] {
                    for percent in [6, 25, 50] {
                        let short = text(&fit(&shown(role, said.clone()), percent));
                        assert!(short.contains(odd), "{role:?}, {odd} at {at}, {percent} %: {short}");
                        assert!(short.contains(own), "{role:?}, {odd} at {at}, {percent} %: {short}");
                    }
                }
            }
        }
    }
}

/// What the user says about a paste asks for something, and states nothing.
#[test]
fn the_words_above_what_many_messages_show_stay() {
    let mut messages = Vec::new();
    let own = |i: usize| format!("Can the {} lamp of hall {i} be seen from the door?", ["old", "red"][i % 2]);
    for i in 0..40 {
        let rows = if i % 4 == 1 {
            lines(40, |row| format!("| item {} | {} |", row * i % 17, row * 37 % 89))
        } else {
            String::new()
        };
        messages.push(Owned::new(Role::User, format!("{}\n\n{rows}", own(i)).trim_end()));
        messages.push(Owned::new(Role::Assistant, lines(12, |line| format!("Hall {i} has {} doors.", line * 7 % 11))));
    }
    messages.push(Owned::new(Role::User, "Ok."));
    let short = text(&fit(&messages, 60));
    let lost: Vec<String> = (5..40).step_by(4).map(own).filter(|own| !short.contains(own)).collect();
    assert_eq!(lost, [""; 0]);
}
