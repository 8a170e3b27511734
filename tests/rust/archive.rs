//! Where the originals of shortened tool results are to be read, as the plan has it.

use std::collections::BTreeSet;

use nanobot_context::compress::{self, Archive, Plan, Request, names_in};
use nanobot_context::tokens::Tokens;
use nanobot_context::{Message, Role};

use crate::fitted::tokens;
use crate::owned::{Owned, Says, apply, view};
use crate::texts::Kind;

const DIRECTORY: &str = ".nanobot-context/results";

fn archive() -> Archive {
    Archive::new(DIRECTORY).unwrap()
}

fn fit(messages: &[Owned], archive: Option<Archive>, max_tokens: u64) -> Plan {
    let request = Request { archive, ..Request::new(None, None, Tokens::ZERO) };
    compress::fit(&view(messages), &request, Tokens(max_tokens)).unwrap()
}

fn text(message: &Owned) -> &str {
    message.texts()[0]
}

/// A user's wish, and a call of `tool` with the result `text` for each of `calls`.
fn conversation(calls: &[(&str, &str, &str)]) -> Vec<Owned> {
    let mut messages = vec![Owned::new(Role::User, "Find out why it fails.")];
    for (i, (tool, arguments, text)) in calls.iter().enumerate() {
        let id = format!("call_{i}");
        messages.push(Owned::calling(&[&id], tool, arguments));
        messages.push(Owned::result(&id, tool, *text));
    }
    messages.push(Owned::new(Role::User, "And now?"));
    messages
}

fn logs(seed: u64) -> String {
    Kind::Logs.text(20_000, seed)
}

fn path(plan: &Plan, position: usize) -> String {
    format!("{DIRECTORY}/{}", plan.archived[position].name)
}

#[test]
fn a_shortened_result_names_the_file_that_the_plan_wants_written() {
    let (one, two) = (logs(1), logs(2));
    let messages = conversation(&[("exec", "{}", &one), ("exec", "{}", &two), ("exec", "{}", "done")]);
    let plan = fit(&messages, Some(archive()), tokens(&messages) / 2);
    assert_eq!(plan.archived.iter().map(|archived| archived.index).collect::<Vec<_>>(), [2, 4]);
    let (seen, short) = (view(&messages), apply(&messages, &plan));
    for (position, original) in [(0, &one), (1, &two)] {
        let archived = &plan.archived[position];
        assert_eq!(archived.text(&seen), Some(original.as_str()));
        assert!(!archived.is_earlier);
        let mark = format!("left out; all of it: {} ...]", path(&plan, position));
        assert_eq!(text(&short[archived.index]).matches(&mark).count(), 1, "{}", text(&short[archived.index]));
    }
    assert!(tokens(&short) <= tokens(&messages) / 2);
}

#[test]
fn a_name_is_that_of_the_content_in_every_process() {
    // XXH3-128 of the text without a seed, its first 16 hexadecimal digits.
    let text = "worker 17 done\n".repeat(600);
    let messages = conversation(&[("exec", "{}", &text)]);
    let plan = fit(&messages, Some(archive()), 600);
    assert_eq!(plan.archived[0].name, "4e46a44ef5688fee.txt");
}

#[test]
fn a_result_of_which_nothing_is_left_names_the_file_too() {
    let messages = vec![
        Owned::new(Role::User, "Find out why it fails."),
        Owned::calling(&["one", "two"], "read_file", r#"{"path": "a.log"}"#),
        Owned::result("one", "read_file", "sshd refused the key of deploy-17: no such user"),
        Owned::result("two", "read_file", Kind::Base64.text(20_000, 1)),
        Owned::new(Role::User, "Which key was it that sshd refused, that of deploy-17?"),
    ];
    let mut seen = 0;
    for max_tokens in (100..400).step_by(10) {
        let plan = fit(&messages, Some(archive()), max_tokens);
        let short = apply(&messages, &plan);
        let mut texts = short.iter().filter_map(|message| message.texts().first().copied());
        if let Some(mark) = texts.find(|text| text.starts_with("[read_file")) {
            let named = plan.archived.iter().filter(|archived| mark.contains(&archived.name)).count();
            assert!(mark.starts_with("[read_file a.log result") && mark.ends_with(".txt]"), "{mark}");
            assert_eq!(named, 1, "{mark}");
            assert_eq!(fit(&short, Some(archive()), tokens(&short)).outputs.len(), short.len(), "it is not cut again");
            seen += 1;
        }
    }
    assert!(seen > 0);
}

#[test]
fn what_was_read_from_the_archive_keeps_the_path_it_was_read_from() {
    let original = logs(1);
    let name = fit(&conversation(&[("exec", "{}", &original)]), Some(archive()), 1_000).archived[0].name.clone();
    // Line numbers, as nanobot 0.1.4.post5 puts them there, make it another text.
    let numbered: Vec<String> = original.lines().enumerate().map(|(i, line)| format!("{}| {line}", i + 1)).collect();
    let numbered = numbered.join("\n");
    let spellings = ["", "/home/me/.nanobot/workspace/", "~/.nanobot/workspace/"];
    for spelling in spellings {
        let arguments = format!(r#"{{"path": "{spelling}{DIRECTORY}/{name}", "limit": 2000}}"#);
        let messages = conversation(&[("read_file", &arguments, &numbered)]);
        for max_tokens in [1_000, 200] {
            let plan = fit(&messages, Some(archive()), max_tokens);
            assert_eq!(plan.archived.len(), 1, "{spelling}");
            assert!(plan.archived[0].is_earlier && plan.archived[0].name == name);
            assert!(text(&apply(&messages, &plan)[2]).contains(&name));
        }
    }
    for elsewhere in ["/tmp/", "results/", ""] {
        let arguments = format!(r#"{{"path": "{elsewhere}{name}"}}"#);
        let plan = fit(&conversation(&[("read_file", &arguments, &numbered)]), Some(archive()), 1_000);
        assert!(!plan.archived[0].is_earlier && plan.archived[0].name != name, "{elsewhere}");
    }
}

#[test]
fn a_text_shortened_again_keeps_the_origin_in_its_mark() {
    let messages = conversation(&[("exec", "{}", &logs(1))]);
    let first = fit(&messages, Some(archive()), 4_000);
    let short = apply(&messages, &first);
    for max_tokens in [2_000, 150] {
        let again = fit(&short, Some(archive()), max_tokens);
        assert_eq!(again.archived.len(), 1);
        assert!(again.archived[0].is_earlier);
        assert_eq!(again.archived[0].name, first.archived[0].name);
    }
    let foreign = logs(2).replacen('\n', "\n[... 3 lines left out; all of it: /etc/passwd ...]\n", 1);
    let plan = fit(&conversation(&[("exec", "{}", &foreign)]), Some(archive()), 2_000);
    assert!(!plan.archived[0].is_earlier, "a path outside of the archive is text like any other");
}

#[test]
fn nothing_else_is_kept() {
    let (long, short) = (logs(1), Kind::Logs.text(800, 2));
    let mut messages = conversation(&[("exec", "{}", &short)]);
    messages.insert(1, Owned::new(Role::Assistant, long.clone()));
    messages.insert(1, Owned::new(Role::User, long.clone()));
    let plan = fit(&messages, Some(archive()), 1_500);
    assert!(!plan.receipt.cuts.is_empty());
    assert_eq!(plan.archived, []);
    let result = conversation(&[("exec", "{}", &long)]);
    let without = fit(&result, None, 1_000);
    assert_eq!(without.archived, []);
    assert!(!text(&apply(&result, &without)[2]).contains("all of it"));
    let whole = fit(&result, Some(archive()), 100_000);
    assert_eq!(whole.archived, [], "a result that stays whole");
}

#[test]
fn a_part_of_a_list_is_kept_on_its_own() {
    let mut messages = conversation(&[("exec", "{}", "")]);
    messages[2].says = Says::Parts(vec![Says::Text("short".to_owned()), Says::Text(logs(1))]);
    let plan = fit(&messages, Some(archive()), 1_000);
    assert_eq!(plan.archived.len(), 1);
    assert_eq!(plan.archived[0].part, Some(1));
    assert_eq!(plan.archived[0].text(&view(&messages)), Some(messages[2].texts()[1]));
}

#[test]
fn a_file_that_could_not_be_written_is_not_named() {
    let messages = conversation(&[("exec", "{}", &logs(1)), ("exec", "{}", &logs(2))]);
    let all = fit(&messages, Some(archive()), 3_000);
    let kept = BTreeSet::from([all.archived[1].name.clone()]);
    let plan = fit(&messages, Some(archive().only(kept)), 3_000);
    assert_eq!(plan.archived, [all.archived[1].clone()]);
    assert!(!text(&apply(&messages, &plan)[2]).contains("all of it"));
    assert_eq!(
        fit(&messages, Some(archive().only(BTreeSet::new())), 3_000).outputs,
        fit(&messages, None, 3_000).outputs
    );
}

#[test]
fn every_file_that_a_conversation_names_is_found() {
    let read = Owned::calling(&["a"], "read_file", r#"{"path": "C:\\w\\results\\00000000000000aa.txt"}"#);
    let said =
        Owned::new(Role::User, "[... 1 line left out; all of it: x/00000000000000bb.txt ...] 00000000000000cc.txt");
    let names = names_in(&view(&[read, said, Owned::new(Role::User, "日本語日本語日本語.txt a/b.txt .txt")]));
    assert_eq!(names.into_iter().collect::<Vec<_>>(), ["00000000000000aa.txt", "00000000000000bb.txt"]);
    assert!(names_in(&[Message::new(Role::User, "")]).is_empty());
}

#[test]
fn a_directory_that_no_mark_could_name_is_refused() {
    let long = "x".repeat(257);
    for directory in ["", "/", "a\nb", "a\"b", "a ...]/b", "a; all of it: b", long.as_str()] {
        assert!(Archive::new(directory).is_err(), "{directory}");
    }
    assert_eq!(Archive::new(r"C:\w\results\").unwrap().directory(), "C:/w/results");
    assert_eq!(Archive::new("~/工作/results").unwrap().directory(), "~/工作/results");
}
