//! What stays when not all of a conversation can.

use std::collections::BTreeSet;

use nanobot_context::Role;
use nanobot_context::compress::{self, Archive, Request, evaluation};
use nanobot_context::tokens::Tokens;

use crate::fitted::{conversation, fit, fit_by, fit_without, lines, percent_of, said, text, tokens};
use crate::generate::rule_within;
use crate::owned::{Owned, Says, apply, paragraphs, view};
use crate::talk::talk;
use crate::texts::Kind;

/// A log of 300 lines, three of them of something that went wrong.
fn log() -> String {
    lines(300, |i| match i {
        87 => "2026-05-01 10:11:12 ERROR worker 3: connection to db-17 was refused".to_owned(),
        164 => "2026-05-01 10:13:02 FATAL out of memory in the parser".to_owned(),
        231 => "thread 'main' panicked at src/queue.rs:88: index out of bounds".to_owned(),
        _ => format!(
            "2026-05-01 10:{:02}:{:02} INFO worker_{} finished job_{i:04} of tenant_{}",
            10 + i / 60,
            i % 60,
            i % 7,
            i * 37 % 90
        ),
    })
}

/// Numbers that a parser for floating-point numbers would change.
const NUMBERS: [&str; 4] = ["123456789012345678901234", "31.10", "1.50e-7", "-0.0"];

/// Rows of which one differs from the others.
fn rows() -> String {
    let row = |i: usize| {
        let state = if i == 97 { "unreachable" } else { "ok" };
        let [big, price, share, zero] = NUMBERS;
        format!(
            r#"{{"id": {i}, "big": {big}, "state": "{state}", "price": {price}, "share": {share}, "zero": {zero}}}"#
        )
    };
    format!("[{}]", (0..200).map(row).collect::<Vec<_>>().join(",\n "))
}

/// Something of everything.
fn mixed() -> Vec<Owned> {
    let mut messages = vec![Owned::new(Role::System, "You are nanobot.")];
    messages.extend(conversation(
        &[
            ("exec", r#"{"command": "tail -n 300 server.log"}"#, &log()),
            ("http_get", r#"{"url": "https://example.com/hosts"}"#, &rows()),
            ("read_file", r#"{"path": "src/main.rs"}"#, &Kind::Code.text(9_000, 3)),
            ("web_fetch", r#"{"url": "https://example.com"}"#, &Kind::Prose.text(9_000, 4)),
            ("exec", r#"{"command": "make"}"#, "cc -c a.c\ncc -c b.c\nExit code: 2\n"),
        ],
        "So which worker was it?",
    ));
    messages
}

#[test]
fn every_budget_is_met_and_used() {
    let messages = mixed();
    for percent in (5..100).step_by(5) {
        let (budget, left) = (percent_of(&messages, percent), tokens(&fit(&messages, percent)));
        assert!(left <= budget && left * 10 >= budget * 9, "{left} of {budget} at {percent} %");
    }
}

#[test]
fn the_errors_of_a_log_stay_at_a_fifth() {
    let messages = conversation(&[("exec", r#"{"command": "tail server.log"}"#, &log())], "What happened?");
    let short = text(&fit(&messages, 20));
    for error in log().lines().filter(|line| !line.contains("INFO")) {
        assert!(short.contains(error), "{error} is not in {short}");
    }
    let blind = text(&fit_without("outline", &messages, 20));
    assert!(!log().lines().filter(|line| !line.contains("INFO")).all(|error| blind.contains(error)), "{blind}");
}

/// Returns the line of a number.
type Line = fn(usize) -> String;

/// As files are read, lists are printed and hits are found, in several ways of numbering.
#[test]
fn the_line_that_breaks_the_pattern_stays_however_lines_are_numbered() {
    let closing = "(Showing lines 1-1200 of 2400. Use offset=1201 to continue.)";
    let formats: [(Line, &str); 4] = [
        (
            |i| format!("level=info msg=served path=/o/{i} status=200 ms={}", 3 + i * 7 % 80),
            "level=info msg=served path=/o/77 status=507 ms=4",
        ),
        (|i| format!("flag_{i:04}: enabled"), "flag_0077: disabled"),
        (|i| format!("[{i}/1200] Building C object src/f{i}.c.o"), "src/f77.c:12:5: unknown type name 'foo'"),
        (|i| format!("第{i}号订单 已发货 状态正常"), "第77号订单 磁盘已满 状态异常"),
    ];
    let numberings: [Line; 4] =
        [|_| String::new(), |i| format!("{i}| "), |i| format!("{i:6}\t"), |i| format!("{i:6}→")];
    for (line, odd) in formats {
        for (n, numbering) in numberings.iter().enumerate() {
            for at in [3, 700, 1199] {
                let line = |i: usize| numbering(i + 1) + &if i == at { odd.to_owned() } else { line(i) };
                let read = format!("{}\n{closing}", lines(1200, line));
                let messages = conversation(&[("read_file", r#"{"path": "a"}"#, &read)], "What went wrong?");
                for percent in [5, 40] {
                    let short = text(&fit(&messages, percent));
                    assert!(short.contains(odd), "{odd} at {at}, {n}, {percent} %");
                    assert!(n == 0 || short.contains(closing), "{odd} at {at}, {n}, {percent} %: {short}");
                }
            }
        }
    }
}

/// Calls `visit` with every number of a JSON value.
fn each_number(value: &serde_json::Value, visit: &mut dyn FnMut(String)) {
    match value {
        serde_json::Value::Number(number) => visit(number.to_string()),
        serde_json::Value::Array(values) => values.iter().for_each(|value| each_number(value, visit)),
        serde_json::Value::Object(members) => members.values().for_each(|value| each_number(value, visit)),
        _ => {}
    }
}

#[test]
fn json_stays_json_with_its_outlier_and_exact_numbers() {
    let messages = conversation(&[("http_get", "{}", &rows())], "And now?");
    for percent in [10, 15, 20, 40, 70] {
        let short = fit(&messages, percent);
        let json: serde_json::Value = serde_json::from_str(said(&short, 2)).unwrap();
        assert!(said(&short, 2).contains(r#""id": 97, "big": 123456789012345678901234, "state": "unreachable""#));
        let mut seen = BTreeSet::new();
        each_number(&json, &mut |number| {
            seen.insert(number);
        });
        assert!(NUMBERS.iter().all(|number| seen.remove(*number)), "{percent}: {}", said(&short, 2));
        // What is left are the ids.
        assert!(seen.iter().all(|number| number.parse::<usize>().is_ok_and(|id| id < 200)), "{seen:?}");
    }
}

#[test]
fn the_line_that_is_asked_for_stays_and_its_neighbours_go() {
    // All alike but for their names, which are in no order.
    let name = |i: usize| format!("order_{:05x}", (i * 40_503 + 9_001) % 0xf_ffff);
    let list = lines(400, |i| format!("{} was sent to the northern warehouse", name(i)));
    for asked in [100, 160, 220] {
        let question = format!("Where did {} go?", name(asked));
        let messages = conversation(&[("list_orders", "{}", &list)], &question);
        let short = text(&fit(&messages, 15));
        let stays = |i: usize| short.contains(&format!("{} was sent", name(i)));
        assert!(stays(asked), "{asked}: {short}");
        for other in [100, 160, 220].into_iter().filter(|&other| other != asked) {
            assert!(!stays(other), "{asked} keeps {other}: {short}");
        }
    }
}

/// A question, and a list of orders of `count` lines that the model then asked for.
fn asked_order(count: usize, asked: usize) -> Vec<Owned> {
    let list =
        lines(count, |i| format!("order_{:06} of Ann, {} pieces, left at door {}", 410_000 + i * 7, i % 9, i % 97));
    vec![
        Owned::new(Role::User, format!("What about order_{:06}?", 410_000 + asked * 7)),
        Owned::calling(&["a"], "http_get", r#"{"url": "https://api.example.com/v1/items"}"#),
        Owned::result("a", "http_get", list),
    ]
}

#[test]
fn what_is_asked_for_stays_in_the_result_that_comes_after_the_question() {
    for count in [200, 800] {
        for asked in [60, 100, 140] {
            let messages = asked_order(count, asked);
            for percent in [10, 20, 35, 60] {
                let short = text(&fit(&messages, percent));
                assert!(short.contains(&format!("order_{:06} of", 410_000 + asked * 7)), "{count} {asked} {percent}");
            }
        }
    }
}

#[test]
fn what_is_asked_for_stays_in_a_result_above_its_share_of_the_window() {
    for count in [800, 3_000] {
        let messages = asked_order(count, 333);
        let plan = compress::compress(&view(&messages), &Request::new(None, None, Tokens(12_000))).unwrap().unwrap();
        assert!(text(&apply(&messages, &plan)).contains("order_412331 of"), "{count}");
    }
}

/// Reads of a table's columns and of many others, a file last, and a question.
fn read_before(question: &str) -> Vec<Owned> {
    let mut messages = vec![Owned::new(Role::User, "Build the report.")];
    for i in 0..40 {
        let id = format!("call_{i}");
        let (command, result) = match i {
            5 => (
                "describe".to_owned(),
                format!("Table mart.fact_pay_v23\n{}", lines(30, |k| format!("column_{k:02} | numeric"))),
            ),
            7 => ("cat /srv/rep/agg.py".to_owned(), lines(60, |k| format!("def step_{k}(rows): return rows[{k}:]"))),
            _ => (format!("select {i}"), Kind::Prose.text(1_500, i)),
        };
        messages.push(Owned::calling(&[&id], "exec", &format!(r#"{{"command": "{command}"}}"#)));
        messages.push(Owned::result(&id, "exec", result));
    }
    messages.push(Owned::new(Role::Assistant, "Done."));
    messages.push(Owned::new(Role::User, question));
    messages
}

#[test]
fn all_of_a_result_is_meant_by_the_name_in_its_first_line_or_its_call() {
    for (question, line, count) in [
        ("Which columns does fact_pay_v23 have?", "| numeric", 30),
        ("What is in /srv/rep/agg.py?", "(rows): return", 60),
    ] {
        let messages = read_before(question);
        assert_eq!(text(&fit(&messages, 25)).matches(line).count(), count, "{question}");
        // Whether a step covers it long before the question or at it.
        for window_tokens in (9_000..14_000).step_by(250) {
            let request = Request::new(None, None, Tokens(window_tokens));
            let plan = compress::compress(&view(&messages), &request).unwrap().unwrap();
            let shown = text(&apply(&messages, &plan));
            assert!(shown.matches(line).count() >= count, "{question} in {window_tokens} tokens: {shown}");
        }
    }
}

#[test]
fn short_results_stay_with_their_calls_and_the_one_that_is_asked_for() {
    let disk = |i: usize| format!("/dev/vda1  {}G  {}G  {}%  /", 40 + i * 7 % 30, 11 + i * 5 % 20, 20 + i * 13 % 60);
    let command = |i: usize| format!(r#"{{"command": "ssh web-{i:02} df -h /"}}"#);
    let made: Vec<(String, String)> = (0..24).map(|i| (command(i), disk(i))).collect();
    let calls: Vec<(&str, &str, &str)> = made.iter().map(|(call, result)| ("exec", &**call, &**result)).collect();
    let short = text(&fit(&conversation(&calls, "How full is the disk of web-05?"), 40));
    assert!(short.contains(&disk(5)), "{short}");
    let whole = (0..24).filter(|i| short.contains(&disk(*i))).count();
    assert!(whole > 4 && !short.contains("result left out"), "{short}");
}

#[test]
fn a_short_result_with_another_number_stays_behind_many() {
    let memory = |i: usize| {
        let (used, swap) = if i == 9 { (15_811, 2_040) } else { (3_000 + i * 331 % 2_000, i * 7 % 40) };
        format!("       total   used   free\nMem:   15990   {used}   {}\nSwap:  2047    {swap}   7", 15_990 - used)
    };
    let command = |i: usize| format!(r#"{{"command": "ssh web-{i:02} free -m"}}"#);
    let mut made: Vec<(String, String)> = (0..24).map(|i| (command(i), memory(i))).collect();
    made.extend((0..12).map(|i| (format!(r#"{{"command": "cat part_{i}"}}"#), Kind::Code.text(2_000, i))));
    let calls: Vec<(&str, &str, &str)> = made.iter().map(|(call, result)| ("exec", &**call, &**result)).collect();
    let short = text(&fit(&conversation(&calls, "Thanks. Write the report."), 25));
    assert!(short.contains(&memory(9)), "{short}");
}

#[test]
fn what_is_asked_for_in_words_is_found_by_them() {
    const COLOURS: [&str; 12] =
        ["red", "green", "blue", "black", "white", "grey", "brown", "pink", "golden", "orange", "purple", "silver"];
    const THINGS: [&str; 12] = [
        "anchor", "violin", "teapot", "ladder", "mirror", "candle", "basket", "hammer", "pillow", "saddle", "wagon",
        "kettle",
    ];
    let thing = |i: usize| format!("the {} {} stands", COLOURS[i % 12], THINGS[i / 12]);
    let list = lines(144, |i| format!("in the second hall {} by the wall", thing(i)));
    for asked in [40, 65, 90] {
        let question = format!("Where is the {} {}?", COLOURS[asked % 12], THINGS[asked / 12]);
        let messages = conversation(&[("list_things", "{}", &list), ("exec", "{}", &log())], &question);
        let short = text(&fit(&messages, 12));
        let stays: Vec<bool> = [40, 65, 90].into_iter().map(|i| short.contains(&thing(i))).collect();
        assert_eq!(stays, [asked == 40, asked == 65, asked == 90], "{asked}: {short}");
    }
}

/// Beside a user whose words take most of the room.
#[test]
fn a_row_that_is_asked_for_by_name_stays_in_a_table_of_any_form() {
    type Row = fn(usize) -> String;
    const ROWS: [Row; 3] = [
        |i| format!("| OPS-{i} | {} | {} | Ines |", ITEMS[i % 7], 1 + i * 37 % 90),
        |i| format!("OPS-{i},{},{},Ines", ITEMS[i % 7], 1 + i * 37 % 90),
        |i| format!(r#"{{"ref": "OPS-{i}", "note": "{}", "qty": {}}}"#, ITEMS[i % 7], 1 + i * 37 % 90),
    ];
    const ITEMS: [&str; 7] = ["hinge pin", "wallpaper", "door seal", "lamp oil", "roof tile", "oak board", "wall plug"];
    let name = |table: usize, nth: usize| 6_000 + (table * 24 + nth) * 7;
    for row in ROWS {
        let mut messages = Vec::new();
        for table in 0..10 {
            let talk = lines(12, |i| format!("Day {} of week {table} went as planned, no news of it.", i * 3));
            messages.push(Owned::new(Role::User, format!("{talk}Now list stock {table}.")));
            let id = format!("list{table}");
            messages.push(Owned::calling(&[&id], "list_stock", &format!(r#"{{"page": {table}}}"#)));
            messages.push(Owned::result(&id, "list_stock", lines(24, |nth| row(name(table, nth)))));
            messages.push(Owned::new(Role::Assistant, "Listed."));
        }
        let asked = row(name(4, 11));
        messages.push(Owned::new(Role::User, format!("Tell me about OPS-{}.", name(4, 11))));
        for percent in [10, 25, 50] {
            let short = text(&fit(&messages, percent));
            assert!(short.contains(&asked), "{percent} %: {short}");
        }
    }
}

#[test]
fn what_the_model_says_it_takes_next_stays() {
    let file = |name: &str| {
        let function =
            |i: usize| format!("def plot_{name}{i}(rows):\n    total = {}\n    return total + {i}\n", i * 7_919);
        (0..60).map(function).collect::<String>()
    };
    let mut messages = vec![Owned::new(Role::User, "Tidy up the plots.")];
    for name in ["a", "b", "c", "d"] {
        let arguments = format!(r#"{{"path": "/srv/{name}.py"}}"#);
        messages
            .extend([Owned::calling(&[name], "read_file", &arguments), Owned::result(name, "read_file", file(name))]);
    }
    let says = Says::Text("Now I change the function plot_b41 in /srv/b.py.".to_owned());
    messages.push(Owned { says, ..Owned::calling(&["status"], "exec", r#"{"command": "git status --short"}"#) });
    messages.push(Owned::result("status", "exec", " M b.py"));
    let body = "total = 324679\n    return total + 41";
    assert!(text(&fit(&messages, 15)).contains(body), "{}", text(&fit(&messages, 15)));
    let at = messages.len() - 2;
    messages[at].says = Says::Nothing;
    assert!(!text(&fit(&messages, 15)).contains(body));
}

/// A list whose names the system prompt has and an older one of the same size whose names nothing else has.
fn named_elsewhere() -> Vec<Owned> {
    let list = |name: &str| lines(80, |i| format!("handle_{name}{:04x} is in use", i * 977 + 4_096));
    let mut messages = vec![Owned::new(Role::System, list("known"))];
    messages
        .extend(conversation(&[("list_own", "{}", &list("own")), ("list_known", "{}", &list("known"))], "And now?"));
    messages
}

fn handles(messages: &[Owned], name: &str) -> usize {
    let results = messages.iter().filter(|message| message.role == Role::Tool);
    results.flat_map(Owned::texts).map(|text| text.matches(&format!("handle_{name}")).count()).sum()
}

#[test]
fn a_name_that_stays_elsewhere_need_not_stay_twice() {
    let messages = named_elsewhere();
    let short = fit(&messages, 60);
    assert!(handles(&short, "own") > 3 * handles(&short, "known"), "{}", text(&short[1..]));
    let twice = fit_without("coverage", &messages, 60);
    assert!(handles(&twice, "known") > handles(&twice, "own"), "{}", text(&twice[1..]));
}

/// What most of a long message is about.
const TREES: &str = "where the apple trees that my grandmother planted long ago still carry more fruit than the whole \
    family can eat in one winter, and where the bees of our neighbour come every summer to collect what they need";

/// So long that it does not stay for being cheap.
const RULE: &str = "Never push anything at all to the branch that is called release-7 by the others, not even when \
    the tests are green, the reviewers are asleep, the customer waits on the phone or somebody tells you to.";

/// The same in Chinese.
const CHINESE_RULE: &str = "以后都用中文回答，不要删除任何备份文件，也不要改动配置目录里的任何东西，即使测试全部通过、\
    审阅的人不在、客户在电话里等着，或者有人叫你这样做，都要先问过我再动手。";

/// A long message of the user with `rules` in the middle of it, for each of `all_rules`.
fn with_rules(all_rules: &[&str]) -> Vec<Owned> {
    let mut messages = conversation(&[("exec", "{}", &log()), ("http_get", "{}", &rows())], "Continue.");
    for rule in all_rules.iter().rev() {
        // Lines of one shape are a log, in which a rule would be the odd one.
        let line = |i: usize| format!("Entry {i}{} of my notes is about the garden, {TREES}.", ", now".repeat(i % 40));
        let notes = format!("{}{rule}\n{}", lines(20, line), lines(20, |i| line(20 + i)));
        messages.insert(1, Owned::new(Role::Assistant, "Noted."));
        messages.insert(1, Owned::new(Role::User, notes));
    }
    messages
}

#[test]
fn a_rule_in_the_middle_of_an_old_message_survives() {
    for rule in [RULE, CHINESE_RULE] {
        let messages = with_rules(&[rule]);
        let short = text(&fit(&messages, 15));
        assert!(short.contains(rule) && !short.contains(TREES), "{short}");
        assert!(!text(&fit_without("pinning", &messages, 15)).contains(rule));
    }
}

/// In a talk of which each turn has a wish, and a newest result that nearly fills the room.
#[test]
fn rules_stay_whatever_a_newest_result_takes() {
    const RULES: [&str; 3] = ["Metric units.", "Never pay one twice.", "Always answer in one sentence."];
    let care = "Look at it with care, thank you for the good work so far. ";
    let mut messages = Vec::new();
    for turn in 0..16 {
        let ask = format!("Turn {turn}: check log{turn}.txt and pay INV-{turn:03}. {}", care.repeat(1 + turn % 5));
        messages.push(Owned::new(
            Role::User,
            match turn {
                0 => format!("{}\n{ask}", RULES[0]),
                1 => format!("{ask}\n{}", RULES[1]),
                2 => format!("{}{} {}{ask}", care.repeat(30), RULES[2], care.repeat(30)),
                _ => ask,
            },
        ));
        let log =
            lines(150 + turn, |i| format!("2026-01-01 10:{:02} INFO request {i} served in {} ms", i % 60, 20 + i % 9));
        let (read, pay) = (format!("r{turn}"), format!("p{turn}"));
        messages.push(Owned::calling(&[&read], "read_file", &format!(r#"{{"path": "log{turn}.txt"}}"#)));
        messages.push(Owned::result(&read, "read_file", log));
        if turn < 15 {
            messages.push(Owned::calling(&[&pay], "exec", &format!(r#"{{"command": "pay INV-{turn:03}"}}"#)));
            messages.push(Owned::result(&pay, "exec", "Exit code: 0"));
            messages.push(Owned::new(Role::Assistant, format!("Invoice {turn} is paid.")));
        }
    }
    // The newest result takes nearly all; then there is more and more room beside it.
    let newest = tokens(&messages[messages.len() - 3..]);
    for max_tokens in (newest + 500..newest + 6_000).step_by(20) {
        let short = text(&fit_by(&messages, &Request::new(None, None, Tokens::ZERO), max_tokens));
        let lost: Vec<&str> = RULES.into_iter().filter(|rule| !short.contains(rule)).collect();
        assert!(lost.is_empty(), "{lost:?} at {max_tokens}");
    }
}

#[test]
fn among_the_rules_of_what_is_pasted_one_in_a_paragraph_of_its_own_stays() {
    let rule = "Never use the word journey in a title.";
    let manual = |seed: usize| {
        let line = |i: usize| format!("You must never set option {} of part {seed} without a reason.", i * 7 + seed);
        let paragraph = |i: usize| (4 * i..4 * i + 4).map(line).collect::<Vec<_>>().join(" ");
        (0..4).map(paragraph).collect::<Vec<_>>()
    };
    let mut messages = vec![Owned::new(Role::System, "You are nanobot.")];
    for seed in 0..30 {
        let mut pasted = manual(seed);
        if seed == 9 {
            pasted.insert(2, rule.to_owned());
        }
        messages.push(Owned::new(Role::User, pasted.join("\n\n")));
        messages.push(Owned::new(Role::Assistant, "I see."));
    }
    messages.push(Owned::new(Role::User, "Go on."));
    for percent in [6, 12, 25] {
        assert!(text(&fit(&messages, percent)).contains(rule), "{percent} %");
    }
}

#[test]
fn a_rule_that_was_repeated_is_kept_once() {
    let messages = with_rules(&[RULE, RULE, RULE]);
    assert_eq!(text(&fit(&messages, 15)).matches(RULE).count(), 1);
}

#[test]
fn of_more_rules_than_fit_the_newest_stay() {
    let rules: Vec<String> = (0..40).map(|i| RULE.replace("release-7", &format!("release-{i:02}"))).collect();
    let rules: Vec<&str> = rules.iter().map(String::as_str).collect();
    let short = text(&fit(&with_rules(&rules), 2));
    let kept: Vec<bool> = rules.iter().map(|rule| short.contains(rule)).collect();
    assert!(kept[39] && !kept[0] && kept.is_sorted(), "{kept:?}");
}

#[test]
fn what_is_always_so_of_many_things_pushes_no_rule_out() {
    const THINGS: [&str; 4] = ["invoice", "parcel", "ticket", "order"];
    let rules = ["Amounts with a comma please, not with a point", "Meetings before ten do not work for me"];
    for remark in [
        |i: usize| format!("Jonas always complains about the {} {i}.", THINGS[i % 4]),
        |i: usize| format!("Der Posten {i} ist immer noch offen."),
        |i: usize| format!("La {} {i} n'est toujours pas là.", THINGS[i % 4]),
    ] {
        let mut messages = vec![Owned::new(Role::System, "You are nanobot.")];
        for i in 0..600 {
            let mut said = format!("What about the {} {i}, and {} of it?", THINGS[i * i % 7 % 4], i * 37 % 90);
            if i % 6 == 0 {
                said = remark(i);
            }
            if let Some(rule) = rules.get(i / 40).filter(|_| i % 40 == 20) {
                said = format!("{said} {rule}.");
            }
            messages.push(Owned::new(Role::User, said));
            messages.push(Owned::new(Role::Assistant, format!("Number {i} is on its way, {} are left.", i * 31 % 90)));
        }
        let short = text(&fit(&messages, 6));
        assert!(rules.iter().all(|rule| short.contains(rule)), "{}", remark(0));
    }
}

#[test]
fn what_the_model_decided_comes_before_results() {
    let decided = |i: usize| format!("I decided to move part {} to hall {}; the rest is open.", i * 7, i % 5);
    let mut messages = vec![Owned::new(Role::User, "Tidy up.")];
    for i in 0..40 {
        let id = format!("call_{i}");
        let long = Kind::Prose.text(1_500, i as u64);
        messages.extend([Owned::calling(&[&id], "exec", "{}"), Owned::result(&id, "exec", long)]);
        messages.push(Owned::new(Role::Assistant, decided(i)));
    }
    messages.push(Owned::new(Role::User, "And now?"));
    let short = fit(&messages, 25);
    assert!((0..40).all(|i| paragraphs(&short).any(|text| text == decided(i))));
    assert!(short.iter().any(|message| message.role == Role::Tool), "there is room for others");
}

#[test]
fn what_the_model_concludes_beside_calls_comes_before_what_it_announces() {
    let decided = |i: usize| format!("The root cause of fault {i} is a missing index.");
    let mut messages = vec![Owned::new(Role::User, "Tidy up.")];
    for i in 0..120 {
        let id = format!("call_{i}");
        let said = if i % 30 == 0 { decided(i) } else { format!("Let me look at src/m{i}.py.") };
        let call = Owned::calling(&[&id], "read_file", &format!(r#"{{"path": "src/m{i}.py"}}"#));
        messages.push(Owned { says: Says::Text(said), ..call });
        messages.push(Owned::result(&id, "read_file", Kind::Prose.text(1_500, i as u64)));
    }
    messages.push(Owned::new(Role::User, "And now?"));
    for percent in [10, 15, 25] {
        let short = text(&fit(&messages, percent));
        assert!((0..120).step_by(30).all(|i| short.contains(&decided(i))), "{percent} %");
    }
}

#[test]
fn what_the_model_concludes_beside_calls_that_go_is_listed() {
    let concluded = |i: usize| {
        let from = "Bora Lund Mira Nils Odal Pira".split(' ').nth(i * 7 % 6).unwrap();
        format!("The leak of {from} comes from the pool, not the cache ({}).", i * 7919)
    };
    let mut messages = vec![Owned::new(Role::User, "Find out why.")];
    for i in 0..120 {
        let id = format!("call_{i}");
        let call = Owned::calling(&[&id], "query", &format!(r#"{{"sql": "select * from mart.f{i}"}}"#));
        let says = if i % 3 == 0 { Says::Text(concluded(i)) } else { Says::Nothing };
        messages.extend([Owned { says, ..call }, Owned::result(&id, "query", Kind::Prose.text(700, i as u64))]);
    }
    messages.push(Owned::new(Role::User, "And now?"));
    let first = fit(&messages, 15);
    let stays = |short: &[Owned]| (0..120).step_by(3).filter(|&i| text(short).contains(&concluded(i))).count();
    assert!(stays(&first) >= 36, "{}", stays(&first));
    let listed: Vec<usize> =
        (0..120).step_by(3).filter(|&i| text(&first).contains(&format!("\n- said: {}", concluded(i)))).collect();
    assert!(!listed.is_empty());
    // What is listed once is listed again.
    let newer = (0..60).flat_map(|i| {
        let id = format!("newer_{i}");
        [Owned::calling(&[&id], "query", "{}"), Owned::result(&id, "query", Kind::Prose.text(700, i))]
    });
    let newer: Vec<Owned> = first.iter().cloned().chain(newer).collect();
    let again = text(&fit(&newer, 50));
    assert!(listed.iter().all(|&i| again.contains(&concluded(i))), "{again}");
}

#[test]
fn look_ups_of_a_long_round_leave_conclusions_their_room() {
    let concluded = |i: usize| format!("Table t{} has {} rows too many.", i * 31, i * 7919 + 5);
    let mut messages = vec![Owned::new(Role::User, "Go through the tables.")];
    for i in 0..240 {
        let id = format!("call_{i}");
        let call = Owned::calling(&[&id], "read_file", &format!(r#"{{"path": "export/part{i}/t{i}.csv"}}"#));
        let says = if i % 12 == 0 { Says::Text(concluded(i)) } else { Says::Nothing };
        messages.extend([Owned { says, ..call }, Owned::result(&id, "read_file", Kind::Prose.text(700, i as u64))]);
    }
    let short = text(&fit(&messages, 5));
    let stays = (0..240).step_by(12).filter(|&i| short.contains(&concluded(i))).count();
    assert!(stays >= 15, "{stays} of 20: {short}");
}

#[test]
fn the_newest_plan_stays_however_long_ago_it_was_stated() {
    let mut messages = vec![Owned::new(Role::User, "Move the shop.")];
    let plan = |i: usize| format!(r#"{{"plan": [{{"step": "copy the ledger", "status": "part {i} of 3"}}]}}"#);
    for i in 0..120 {
        let id = format!("call_{i}");
        messages.push(Owned::calling(&[&id], "read_file", &format!(r#"{{"path": "src/m{i}.py"}}"#)));
        messages.push(Owned::result(&id, "read_file", Kind::Prose.text(1_500, i as u64)));
        if i % 20 == 0 && i <= 40 {
            let id = format!("plan_{i}");
            messages.push(Owned::calling(&[&id], "update_plan", &plan(i / 20)));
            messages.push(Owned::result(&id, "update_plan", "Plan updated"));
        }
    }
    messages.push(Owned::calling(&["spawned"], "spawn", r#"{"task": "translate chapter 7"}"#));
    messages.push(Owned::result("spawned", "spawn", "Subagent started (id: 9c1e)."));
    messages.extend(conversation(&[("read_file", "{}", &log()), ("read_file", "{}", &rows())], "And now?"));
    for percent in [10, 25, 50] {
        let short = fit(&messages, percent);
        assert!(short.iter().any(|message| message.calls.iter().any(|call| call.arguments == Some(plan(2)))));
        assert!(text(&short).contains("id: 9c1e"), "{percent} %");
    }
}

#[test]
fn the_newest_checklist_that_was_sent_to_the_user_stays() {
    let list = |done: usize| {
        let boxes = (0..9).map(|i| format!("- [{}] net revenue of region {i}\n", if i < done { "x" } else { " " }));
        serde_json::json!({ "content": boxes.collect::<String>() }).to_string()
    };
    let mut messages = vec![Owned::new(Role::User, "Build the report.")];
    for i in 0..120 {
        let id = format!("call_{i}");
        messages.push(Owned::calling(&[&id], "query", &format!(r#"{{"sql": "select * from f{i}"}}"#)));
        messages.push(Owned::result(&id, "query", Kind::Prose.text(900, i as u64)));
        if i % 20 == 0 && i <= 60 {
            let id = format!("list_{i}");
            messages.extend([Owned::calling(&[&id], "message", &list(i / 20)), Owned::result(&id, "message", "Sent")]);
        }
    }
    for percent in [6, 10, 25] {
        let short = fit(&messages, percent);
        let stays =
            |done| short.iter().any(|message| message.calls.iter().any(|call| call.arguments == Some(list(done))));
        assert!(stays(3), "{percent} %: {}", text(&short));
    }
}

#[test]
fn what_was_written_stays_where_lines_of_much_that_was_shown_do() {
    let written = serde_json::json!({
        "path": "NOTES.md",
        "content": "# Findings\n- callers are listed\n- keep the gateway on the old port\n- billing must be asked first\n- then remove the client\n- both shards are next\n",
    })
    .to_string();
    for (beside, result) in [(false, "Successfully wrote 160 bytes"), (true, "Wrote it")] {
        let mut messages = vec![Owned::new(Role::User, "Move the shop.")];
        for i in 0..60 {
            let id = format!("call_{i}");
            let shown = || lines(60, |j| format!("def f_{i}_{j}(a): return a * {}", j * i % 97));
            if i == 5 {
                let mut calling = Owned::calling(&["written"], "write_file", &written);
                let mut results = vec![Owned::result("written", "write_file", result)];
                if beside {
                    calling.calls.extend(Owned::calling(&["beside"], "exec", r#"{"command": "cat a.py"}"#).calls);
                    results.push(Owned::result("beside", "exec", shown()));
                }
                messages.push(calling);
                messages.extend(results);
            }
            messages.push(Owned::calling(&[&id], "exec", &format!(r#"{{"command": "cat src/m{i}.py"}}"#)));
            messages.push(Owned::result(&id, "exec", shown()));
        }
        for percent in [10, 30, 60] {
            let short = fit(&messages, percent);
            let stays = |message: &Owned| message.calls.iter().any(|call| call.arguments.as_ref() == Some(&written));
            assert!(short.iter().any(stays), "{percent} %, beside another call: {beside}");
        }
    }
}

#[test]
fn notes_give_way_before_the_newest_call_does() {
    let mut messages = vec![Owned::new(Role::System, "You are nanobot.")];
    messages.extend(conversation(&[("read_file", "{}", &log()), ("read_file", "{}", &rows())], "Who owns order 5512?"));
    let newest =
        [Owned::calling(&["newest"], "get_order", r#"{"order": 5512}"#), Owned::result("newest", "get_order", rows())];
    let question = messages.len() - 1;
    messages.extend(newest.clone());
    let whole = [&messages[..1], &messages[question..]].concat();
    for slack in 0..40 {
        let budget_tokens = tokens(&whole) + slack;
        let short = fit_by(&messages, &Request::new(None, None, Tokens::ZERO), budget_tokens);
        assert!(tokens(&short) <= budget_tokens);
        assert!(short.ends_with(&newest), "with {slack} tokens more than it takes");
    }
}

/// What a rule costs that lies deep in JSON is mostly brackets and marks, which no estimate of its own tokens has.
#[test]
fn rules_deep_in_json_stay_within_the_budget() {
    for documents in [40, 100] {
        let said = (0..documents).map(|i| Says::Text(rule_within(i, 14, 60, true)));
        let user = Owned { says: Says::Parts(said.collect()), ..Owned::new(Role::User, "") };
        let mut messages = conversation(&[("exec", "{}", "done")], "And now?");
        messages.insert(1, user);
        for budget_tokens in (300..2_000).step_by(100) {
            let short = fit_by(&messages, &Request::new(None, None, Tokens::ZERO), budget_tokens);
            assert!(tokens(&short) <= budget_tokens, "{} of {budget_tokens}", tokens(&short));
        }
    }
}

#[test]
fn calls_of_many_short_strings_are_cut_and_stay() {
    let edit =
        |i: usize| serde_json::json!({"old": format!("value_{i} = {i}"), "new": format!("value_{i} = {}", i + 1)});
    let arguments = |file: usize| {
        let edits: Vec<_> = (0..60).map(|i| edit(file * 100 + i)).collect();
        serde_json::json!({"path": format!("src/{file}.py"), "edits": edits}).to_string()
    };
    let ids = ["call_0", "call_1", "call_2", "call_3"];
    let mut calling = Owned::calling(&ids, "multi_edit", "");
    for (file, call) in calling.calls.iter_mut().enumerate() {
        call.arguments = Some(arguments(file));
    }
    let mut messages = vec![Owned::new(Role::User, "Rename them."), calling];
    messages.extend(ids.map(|id| Owned::result(id, "multi_edit", "ok")));
    for percent in [90, 50, 20] {
        let short = fit(&messages, percent);
        assert!(tokens(&short) * 10 >= percent_of(&messages, percent) * 8, "{} at {percent} %", tokens(&short));
        let calls = short.iter().flat_map(|message| &message.calls);
        for (file, call) in calls.enumerate() {
            let arguments: serde_json::Value = serde_json::from_str(call.arguments.as_deref().unwrap()).unwrap();
            assert_eq!(arguments["path"], format!("src/{file}.py"));
        }
        assert_eq!(short.len(), messages.len());
    }
}

#[test]
fn a_few_arguments_lose_no_number() {
    for letter in ["漢", "🙂", "p"] {
        for letters in (100..400).step_by(20) {
            let path = letter.repeat(letters);
            for arguments in [
                format!(r#"{{"path": "{path}", "content": "x", "n": 1024}}"#),
                format!(r#"{{"content": "{path}", "flags": ["a", "b"], "path": "{path}", "n": 1024}}"#),
            ] {
                let messages = conversation(&[("write_file", &arguments, "ok"), ("exec", "{}", "done")], "And now?");
                for percent in (10..=100).step_by(5) {
                    for message in fit(&messages, percent) {
                        for call in message.calls.iter().filter(|call| call.name.as_deref() == Some("write_file")) {
                            let left = call.arguments.as_deref().unwrap();
                            assert!(left.ends_with(r#""n": 1024}"#), "{letters} of {letter} at {percent} %: {left}");
                        }
                    }
                }
            }
        }
    }
}

#[test]
fn arguments_of_many_numbers_are_cut() {
    let numbers = (0..3_000).map(|n| (n * 7_919).to_string()).collect::<Vec<_>>().join(", ");
    let arguments = format!(r#"{{"path": "plot.png", "values": [{numbers}]}}"#);
    let messages = conversation(&[("plot", &arguments, "ok"), ("exec", "{}", "done")], "And now?");
    let short = fit(&messages, 20);
    assert!(tokens(&short) <= percent_of(&messages, 20), "{}", tokens(&short));
    let call = short.iter().flat_map(|message| &message.calls).find(|call| call.name.as_deref() == Some("plot"));
    let left: serde_json::Value = serde_json::from_str(call.unwrap().arguments.as_deref().unwrap()).unwrap();
    assert_eq!(left["path"], "plot.png");
}

/// A check of 120 hosts, one of which fails.
fn checks() -> Vec<Owned> {
    let said = |i: usize| if i == 40 { format!("host-{i}: FAILED, refused") } else { format!("host-{i}: fine, 12 ms") };
    let results: Vec<(String, String)> = (0..120).map(|i| (format!(r#"{{"host": "host-{i}"}}"#), said(i))).collect();
    let results: Vec<(&str, &str, &str)> =
        results.iter().map(|(arguments, said)| ("check", &**arguments, &**said)).collect();
    conversation(&results, "And now?")
}

#[test]
fn every_mechanism_changes_what_stays_where_it_has_a_say() {
    let log = conversation(&[("exec", "{}", &log())], "What happened?");
    // What was asked again makes room for what was not.
    let logs = [1, 2].map(|seed| Kind::Logs.text(6_000, seed));
    let results = [("exec", "{}", &*logs[0]), ("exec", r#"{"command": "make"}"#, &*logs[1]), ("exec", "{}", "done")];
    let superseded = conversation(&results, "And now?");
    let rule = with_rules(&[RULE]);
    for (mechanism, messages, percent) in [
        ("learned", mixed(), 20),
        ("relevance", talk(), 20),
        ("outline", log, 20),
        ("superseded", superseded, 50),
        ("pinning", rule, 15),
        ("ledger", crate::ledger::builds(), 15),
        ("coverage", named_elsewhere(), 60),
        ("striking", checks(), 12),
    ] {
        let short = fit(&messages, percent);
        assert_ne!(short, fit_without(mechanism, &messages, percent), "{mechanism}");
        assert!(tokens(&fit_without(mechanism, &messages, percent)) <= percent_of(&messages, percent), "{mechanism}");
    }
    let (messages, request) = (mixed(), Request::new(None, None, Tokens::ZERO));
    assert!(evaluation::fit_without(&view(&messages), &request, Tokens(9_000), ["learned", "luck"]).is_err());
}

#[test]
fn what_is_remembered_of_a_fit_decides_nothing() {
    let messages = mixed();
    let mut other = mixed();
    other[3] = Owned::result("call_0", "exec", log().replace("db-17", "db-18"));
    let archive = |directory: &str| Archive::new(directory).unwrap();
    for messages in [&messages, &other] {
        let plan =
            |request: &Request<'_>, max_tokens| compress::fit(&view(messages), request, Tokens(max_tokens)).unwrap();
        // Which names an archive may give tells requests apart, also where it makes no difference.
        let afresh = |request: &Request<'static>, archive: Archive, names: &[&str]| {
            let only: BTreeSet<String> = names.iter().map(|&name| name.to_owned()).collect();
            Request { archive: Some(archive.only(only)), ..request.clone() }
        };
        for (model, percent) in [(None, 20), (None, 21), (Some("glm-4.6"), 20)] {
            let (request, max_tokens) = (Request::new(model, None, Tokens::ZERO), percent_of(messages, percent));
            let first = plan(&request, max_tokens);
            assert_eq!(plan(&request, max_tokens), first);
            assert_eq!(plan(&afresh(&request, archive("results"), &[]), max_tokens), first, "{model:?} {percent}");
            for directory in ["one/results", "two/results"] {
                let kept = Request { archive: Some(archive(directory)), ..request.clone() };
                let first = plan(&kept, max_tokens);
                assert!(text(&apply(messages, &first)).contains(&format!("all of it: {directory}/")));
                assert_eq!(plan(&kept, max_tokens), first);
                // Of all that may be cut: a mark that names a file costs more, and is weighed where it is not written in the end.
                let small = plan(&kept, percent_of(messages, 10));
                let names: Vec<&str> = [&first, &small]
                    .into_iter()
                    .flat_map(|plan| &plan.archived)
                    .map(|archived| &*archived.name)
                    .collect();
                assert_eq!(plan(&afresh(&kept, archive(directory), &names), max_tokens), first, "{directory}");
            }
        }
    }
    assert!(text(&fit(&other, 20)).contains("db-18") && !text(&fit(&other, 20)).contains("db-17"));
}

/// Sentences of everyday life, none twice.
fn news(i: usize) -> String {
    const WHO: [&str; 7] =
        ["The plumber", "A cousin", "Our teacher", "The choir", "Her brother", "The baker", "Old Mrs Hill"];
    const DOES: [&str; 5] = ["has painted", "forgot", "is looking for", "wants to sell", "photographed"];
    const WHAT: [&str; 6] =
        ["the green fence", "a wooden ladder", "two rackets", "an old sofa", "the cellar door", "some pears"];
    const WHERE: [&str; 4] = ["behind the station", "before breakfast", "at the flea market", "in the rain"];
    format!("{} {} {} {}.", WHO[i % 7], DOES[i % 5], WHAT[i % 6], WHERE[i / 7 % 4])
}

#[test]
fn a_mail_stays_whole_or_goes_and_one_with_a_date_and_a_code_stays() {
    const DEADLINE: &str = "If we have not received form EAJ3Q8 by 12 November, your application lapses.";
    let mail = |i: usize| {
        let body: Vec<String> =
            (0..6).map(|k| if (i, k) == (9, 2) { DEADLINE.to_owned() } else { news(i * 6 + k) }).collect();
        let (name, body) = (["Lena Kim", "Omar Silva", "Tom Haddad"][i % 3], body.join(" "));
        format!(
            "From: {name} <{i}@mail.example>\nDate: 2 May 2026\nSubject: Greetings\n\n{body}\n\n-- \n{name} | Tel. +49 30 4853{i}\n"
        )
    };
    let steps: Vec<(&str, String, String)> =
        (0..50).map(|i| ("read_mail", format!(r#"{{"id": "m{i}"}}"#), mail(i))).collect();
    let steps: Vec<_> = steps.iter().map(|(tool, arguments, printed)| (*tool, &**arguments, &**printed)).collect();
    let messages = conversation(&steps, "Was there a deadline in any of them?");
    for percent in [10, 25, 50] {
        let short = fit(&messages, percent);
        assert!(text(&short).contains(DEADLINE), "{percent} %");
        let shown = short.iter().filter(|message| message.role == Role::Tool).flat_map(Owned::texts);
        for mail in shown.filter(|mail| mail.contains("From: ")) {
            assert!((0..300).any(|i| mail.contains(&news(i))) || mail.contains(DEADLINE), "{percent} %: {mail}");
        }
    }
}

#[test]
fn a_result_is_found_by_what_the_user_asked_for() {
    let page =
        "Cube Kid 240, alloy frame, seven gears, weighs 9.4 kg. Delivery in a week. It is 329 euros with the lights.";
    let mut messages = vec![Owned::new(Role::User, "Hello.")];
    for i in 0..60 {
        let (asked, printed) = match i {
            12 => ("What does the blue bicycle for Nils cost?".to_owned(), page.to_owned()),
            _ => (
                format!("Look up walk number {i} for me."),
                (0..6).map(|k| news(i * 6 + k)).collect::<Vec<_>>().join(" "),
            ),
        };
        let id = format!("c{i}");
        messages.push(Owned::new(Role::User, asked));
        messages.push(Owned::calling(&[&id], "web_fetch", &format!(r#"{{"url": "https://site.example/{i}"}}"#)));
        messages.push(Owned::result(&id, "web_fetch", printed));
        messages.push(Owned::new(Role::Assistant, "There it is."));
    }
    messages.push(Owned::new(Role::User, "How much was the blue bicycle for Nils?"));
    for percent in [10, 25, 50] {
        assert!(text(&fit(&messages, percent)).contains("329 euros"), "{percent} %");
    }
}
