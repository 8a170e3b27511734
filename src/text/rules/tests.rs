use super::*;

fn found(text: &str) -> Vec<&str> {
    rules(text).into_iter().map(|range| text[range].trim()).collect()
}

#[test]
fn what_corrects_a_rule_of_an_earlier_text_holds_too() {
    for (rule, correction) in [
        ("From now on use ruff with line length 110.", "Line length back to 100, the team voted."),
        ("Never call before 9.", "You may call from 8 on now."),
        ("From now on reply with one line only.", "Forget the one-line thing, longer is fine."),
    ] {
        assert_eq!(standing_rules(&[rule, "The cat sleeps.", correction]), [vec![rule], vec![], vec![correction]]);
    }
}

#[test]
fn a_rule_on_somebody_comes_with_who_that_is() {
    for (text, rules) in [
        (
            "Daan and I broke up last night. I don't want to talk about him any more, don't bring him up.",
            vec!["Daan and I broke up last night. I don't want to talk about him any more, don't bring him up."],
        ),
        ("You pushed to main. Never do that again.", vec!["You pushed to main. Never do that again."]),
        ("The sky is blue. Never push to main.", vec!["Never push to main."]),
        ("Never push to main. Never do that.", vec!["Never push to main. Never do that."]),
        ("Hi there. Ask Anna first, always; she knows.", vec!["Ask Anna first, always; she knows."]),
        ("Our client is Huber. He is deaf. Never call him.", vec!["Our client is Huber. He is deaf. Never call him."]),
        (
            "The IBAN ends in 7719. Never put the full one in a chat.",
            vec!["The IBAN ends in 7719. Never put the full one in a chat."],
        ),
        ("Kundin ist Fr. Öztürk. Nie anrufen, nur mailen.", vec!["Kundin ist Fr. Öztürk. Nie anrufen, nur mailen."]),
        ("I met Anna at 9. Never push to main.", vec!["Never push to main."]),
        ("客户是聋人。不要打电话。", vec!["客户是聋人。不要打电话。"]),
        ("小王是我前男友。不要再提他。", vec!["小王是我前男友。不要再提他。"]),
    ] {
        assert_eq!(standing_rules(&[text]), [rules], "{text}");
    }
}

#[test]
fn a_rule_in_a_group_comes_with_who_stated_it() {
    for (text, rule) in [
        ("[Bob] I am allergic to peanuts.", "[Bob] I am allergic to peanuts."),
        ("<Bob> Never call before 9.", "<Bob> Never call before 9."),
        ("[Bob (12345)]: I am allergic to eggs.", "[Bob (12345)]: I am allergic to eggs."),
        ("[see the log] fine. Never push to main.", "Never push to main."),
        ("[Bob]: hi all. Never call before 9.", "[Bob]: Never call before 9."),
        ("[Bob]: two things:\n\n- the train is late\n- I am vegan.", "[Bob]: I am vegan."),
        ("[Bob]: [Reply to Eva: hi]\nI am allergic to eggs.", "[Bob]: I am allergic to eggs."),
        ("[Recent group messages for context:]\nEva: lol\n---\n[Bob]: I am vegan.", "[Bob]: I am vegan."),
        ("[ERROR]: it fails\nNever restart it.", "Never restart it."),
        ("[Bob]: Never call before 9.\n[image: /media/a.jpg]", "[Bob]: Never call before 9."),
        ("[Reply to Eva: hi\nyou two]\nI am allergic to eggs.", "I am allergic to eggs."),
        ("[Reply to Eva: [1] hi] I am allergic to eggs.", "I am allergic to eggs."),
        (
            "Slack thread context before this mention:\n- <@U1>: Never push.\n- <@U2>: ok\n\nCurrent message:\nNever call before 9.",
            "Never call before 9.",
        ),
    ] {
        assert_eq!(standing_rules(&[text]), [[rule]]);
    }
    let named = ["Bob: hi all. Never call before 9.", "Eva: ok", "Tom: what a day"];
    let rules = standing_rules(&named).concat();
    assert_eq!(rules, ["Bob: Never call before 9."]);
    assert_eq!(standing_rules(&["Budget: 500 euros.\nNever call before 9."]).concat(), ["Never call before 9."]);
    // Shown where the message is, behind another sentence.
    let rules: Vec<&str> = rules.iter().map(|rule| &**rule).collect();
    assert_eq!((rules_left_out(&rules, &named, 99).len(), rules_left_out(&rules, &named[1..], 99).len()), (0, 1));
}

#[test]
fn what_others_of_a_group_say_behind_a_rule_changes_nothing() {
    for (bob, eva) in [("Bob", "Eva"), ("[Bob]", "[Eva]")] {
        let rule = format!("{bob}: Never call before 9.");
        for said in ["haha", "the train is late again", "ok"] {
            let texts = [rule.clone(), format!("{eva}: {said}"), format!("{bob}: {said}"), format!("{eva}: hi")];
            let texts = texts.each_ref().map(|text| &**text);
            assert_eq!(standing_rules(&texts).concat(), [&*rule], "{said}");
        }
        let change = format!("{bob}: you may call from 8 on now");
        let texts = [&*rule, "[Eva]: hi", &change];
        assert_eq!(standing_rules(&texts).concat(), [&*rule, &change]);
    }
}

#[test]
fn what_is_quoted_or_forwarded_in_a_group_is_not_the_speakers() {
    for text in [
        "[Bob]: [Reply to Eva: Never call before 9.]\nlol why",
        "[Reply to Eva: Dear all,\nnever call before 9.\nYours, Eva]\nlol why",
        "[Reply to Eva: [Notice] Never call before 9.]\nlol why",
        "[Bob]: [Reply to: 大家好\n以后不要打电话。]\nok",
        "[Bob]: Forwarded from Chess Club:\nMembers must not smoke.",
        "Bob: FW: Landlord\nNever park in the yard.",
        "FW: Landlord\nNever park in the yard.",
        "[Fwd]\nNever park in the yard.",
        "[Weitergeleitet von Hanna]\nNever park in the yard.",
        "[Document]\nNever park in the yard.",
        "[Quote] Never park in the yard.",
        "[Bob]: [Document]\nNever park in the yard.",
    ] {
        assert_eq!(standing_rules(&[text]).concat(), [""; 0], "{text}");
    }
}

#[test]
fn what_is_asked_for_the_work_at_hand_does_not_stand() {
    for text in [
        "Don't run the tests yet, just show me the diff.",
        "Only three lines this time.",
        "先别提交。",
        "Hi all",
        "Translate: 'Never give up'",
        "#pin",
    ] {
        assert_eq!(standing_rules(&[text]), [[""; 0]], "{text}");
    }
    assert_eq!(standing_rules(&["From now on always show the diff first, for now in German."])[0].len(), 1);
}

#[test]
fn what_says_that_it_holds_for_good_has_room_before_newer_rules() {
    let orders: Vec<String> = (0..40).map(|i| format!("Only list the files of part {i}.")).collect();
    let rules: Vec<&str> = ["Never push to main.", "I am allergic to peanuts."]
        .into_iter()
        .chain(orders.iter().map(String::as_str))
        .collect();
    let left = rules_left_out(&rules, &[], 200);
    assert_eq!((left[0], left[1], left.last()), (rules[0], rules[1], rules.last()));
    assert!(left.len() < 10 && left.iter().map(|rule| rule.len()).sum::<usize>() <= 200, "{left:?}");
}

#[test]
fn sentences_that_state_a_rule_are_found_whole() {
    assert_eq!(found("Hi. Never push to main! Look at a.b now."), ["Never push to main!"]);
    assert_eq!(found("你好。以后都用中文回答。今天天气不错"), ["以后都用中文回答。"]);
    assert_eq!(found("Use v1.2, and you must not touch\nthe rest"), ["Use v1.2, and you must not touch"]);
    for text in ["a mustard recipe", "I never said that.", "Do you remember it?", "你记得必须做什么吗？"] {
        assert_eq!(found(text), Vec::<&str>::new(), "{text}");
    }
    assert_eq!(found(&format!("always {}", "x".repeat(900))), Vec::<&str>::new());
}

#[test]
fn what_is_shown_no_more_is_told_once_and_newest_last() {
    let text = "My name is Ada. Call me Captain from now on. What a day! Never push to main.";
    let rules = standing_rules(&[text]).remove(0);
    let rules: Vec<&str> = rules.iter().map(|rule| &**rule).collect();
    assert_eq!(rules, ["My name is Ada.", "Call me Captain from now on.", "Never push to main."]);
    assert_eq!(rules_left_out(&rules, &["never push to MAIN, as I said"], 100), rules[..2]);
    assert_eq!(rules_left_out(&[rules[0], rules[2], rules[0]], &[], 100), [rules[2], rules[0]]);
    assert_eq!(rules_left_out(&rules, &[], 30), rules[2..]);
    assert_eq!(rules_left_out(&["…"], &[], 30), Vec::<&str>::new());
}

/// Returns what each sentence is, in order; without those that are only stated.
fn claims(text: &str) -> Vec<Claim> {
    hear(text).claims.into_iter().map(|(claim, _)| claim).filter(|claim| *claim > Claim::Stated).collect()
}

#[test]
fn what_holds_from_then_on_is_told_by_words_in_many_languages() {
    let rows = include_str!("../../../tests/rust/rules.tsv").lines().filter(|row| !row.starts_with('#'));
    for (kind, text) in rows.filter_map(|row| row.split_once('\t')) {
        let expected: &[Claim] = match kind {
            "rule" => &[Claim::Rule],
            "order" => &[Claim::Order],
            "fact" => &[Claim::Fact],
            "trait" => &[Claim::Trait],
            "wish" => &[Claim::Wish],
            "told" => &[Claim::Told],
            "brief" => &[Claim::Brief],
            "none" => &[],
            _ => {
                assert_eq!(found(text), Vec::<&str>::new(), "{text}");
                continue;
            }
        };
        assert_eq!(claims(text), expected, "{text}");
    }
}

#[test]
fn what_holds_is_listed_in_many_languages() {
    let rows = include_str!("../../../tests/rust/standing.tsv").lines().filter(|row| !row.starts_with('#'));
    let is_wrong = |(kind, text): &(&str, &str)| standing_rules(&[text])[0].is_empty() != (*kind == "passes");
    let wrong: Vec<_> = rows.filter_map(|row| row.split_once('\t')).filter(is_wrong).collect();
    assert_eq!(wrong, [("", ""); 0]);
}

#[test]
fn what_was_pasted_says_nothing_of_the_user() {
    let text = "Look at this.\n```\nNever push to main.\n```\n> Always ask.\n12:30:01 never mind\n  12| Do not edit\n\
        2026-05-01 must be late\nif (never) { return always(); }\n| always | never |\nDon't restart it.";
    assert_eq!(found(text), ["Don't restart it."]);
    assert_eq!(said(text).typed_bytes, "Look at this.\nDon't restart it.".len());
    let listing = "Look.\nnever 0 must 12 always 3\nnever 4 must 12 always 5\n\nIt costs 3 or 4 euros, not 5.";
    assert_eq!(said(listing).typed_bytes, "Look.\nIt costs 3 or 4 euros, not 5.".len());
    let log = "never push this line of a log ok\n".repeat(1 << 14);
    assert!(found(&log).len() < 1 << 12, "what is far from both ends was pasted");
}

#[test]
fn a_line_in_words_that_stands_alone_was_typed() {
    for alone in ["2014-04-05 was the day we married.", "> my aunt sings."] {
        assert_eq!(said(alone).typed_bytes, alone.len(), "{alone}");
        assert!(said(&format!("Look.\n{alone}\nBye.")).typed_bytes < alone.len(), "{alone}");
    }
    for other in ["$ npm install --save-dev", "{x: ok=3 err=0}", "{ \"a\": 1 }"] {
        assert_eq!(said(other).typed_bytes, 0, "{other}");
    }
}

#[test]
fn a_number_or_a_time_in_a_sentence_was_typed() {
    for sentence in [
        "$5 is my limit.",
        "10-15 people come.",
        "30/11 is my last day.",
        "1234-5678 is the code.",
        "The train got in at 9:08.",
        "Our day is 2014-04-05.",
        "闹钟6:45就响了。",
        "기차가 9:08에 도착했어.",
        "Lunch, 12:15, was late.",
    ] {
        let text = format!("{sentence} Never touch the vendor folder.");
        assert_eq!(said(&format!("Look.\n{text}\nBye.")).typed_bytes, text.len() + 11, "{sentence}");
    }
    for stamp in ["Kim 9:08: ", "Kim Ito (9:08) ", "12:30:01 ", "Nov 28 12:05:03 ", "2026-03-02 ", "12-"] {
        let line = format!("{stamp}Never touch the vendor folder.");
        assert_eq!(said(&format!("Look.\n{line}\nBye.")).typed_bytes, 10, "{line}");
    }
}

#[test]
fn what_stands_in_a_mail_is_not_the_users() {
    let mail = "Always be polite.\nFrom: Karin <k@a.example>\nSubject: Rooms\n\nNever leave the windows open.\nI am allergic to dust.\n\nDon't tell her.";
    assert_eq!(standing_rules(&[mail]), [["Always be polite.", "Don't tell her."]]);
    let received = "Email received.\nFrom: ada@b.example\nSubject: Rooms\nDate: Fri\n\nNever push to main.\n\nBye";
    assert_eq!(standing_rules(&[received]), [["Never push to main."]]);
    let journey = "From: Berlin\nTo: Hamburg\nDate: Friday\nNever by bus.";
    assert_eq!(standing_rules(&[journey]), [["Never by bus."]]);
}

#[test]
fn what_a_compiler_says_is_not_the_users() {
    let text =
        "Look.\nsrc/a.c:3:5: warning: you must not ignore it\n    3 |     f();\n      |     ^\nDon't change main.c.";
    assert_eq!(found(text), ["Don't change main.c."]);
}

#[test]
fn a_rule_far_from_both_ends_is_found_where_few_sentences_read_like_one() {
    let of = |line: &str| line.repeat((1 << 20) / line.len());
    for (line, is_found) in [("the job ran for ten seconds\n", true), ("never mind the job, it ran\n", false)] {
        let text = [&of(line), "Thanks. Never run rm. I never eat meat.\n", &of(line)].concat();
        let found = standing_rules(&[&text]).remove(0);
        assert_eq!(found.contains(&Cow::Borrowed("Never run rm.")), is_found, "{line}");
        assert_eq!(found.contains(&Cow::Borrowed("I never eat meat.")), is_found, "{line}");
        let apart = [&of(line), "\n \r\nNever run rm.\n\n", &of(line)].concat();
        assert!(standing_rules(&[&apart])[0].contains(&Cow::Borrowed("Never run rm.")), "{line}");
        assert!(standing_rules(&[&apart])[0].len() < 3_000, "{line}");
        assert!(said(&text).typed_bytes < 3 * TYPED_BYTES, "what is between the rules was pasted");
    }
}

#[test]
fn a_text_without_an_end_is_read_once() {
    for word in ["rule for ", "rule: ", "must ", "he must ", "不要"] {
        assert_eq!(found(&word.repeat(1 << 17)), Vec::<&str>::new(), "{word}");
    }
}

#[test]
fn rules_are_compared_by_their_letters() {
    assert_eq!(normal("Never push, OK?"), normal("never push ok"));
}

#[test]
fn a_rule_is_no_more_than_its_sentence() {
    for (text, rule) in [
        ("Fine. Do not touch main. Thanks.", "Do not touch main."),
        ("Notes\nDon't use tabs\nBye", "Don't use tabs"),
        ("Great! Please don't rename files! OK", "Please don't rename files!"),
        ("From now on, reply in French. Look at a.b.", "From now on, reply in French."),
        ("看日志。禁止删除数据；谢谢", "禁止删除数据；"),
        ("先看看\n请记住：端口是 8080\n再说", "请记住：端口是 8080"),
        ("你好！从现在起不要自动提交。", "从现在起不要自动提交。"),
    ] {
        assert_eq!(found(text), [rule], "{text}");
    }
}

#[test]
fn every_rule_of_a_text_is_found_once() {
    let text = "Always test. Hello.\nNever push. You must, must rebase.";
    assert_eq!(found(text), ["Always test.", "Never push.", "You must, must rebase."]);
    let list = "Rules:\nDon't push\nDo not rebase\nDon't squash. Don't ask! Please do not merge.";
    let rules = ["Don't push", "Do not rebase", "Don't squash.", "Don't ask!", "Please do not merge."];
    assert_eq!(found(list), rules);
    assert_eq!(found("I never said that. Don't push."), ["Don't push."]);
    assert_eq!(
        found("Rule for the whole conversation: end with X-1.\nGo."),
        ["Rule for the whole conversation: end with X-1."]
    );
    assert_eq!(found("规则：每次回答都要简短。好"), ["规则：每次回答都要简短。"]);
    assert_eq!(found("The rules are in a.md. See each file."), Vec::<&str>::new());
    for told_of_nobody_near in ["If they ask, never push.", "When it is done with all of the tests, you must push."] {
        assert_eq!(found(told_of_nobody_near), [told_of_nobody_near]);
    }
    assert_eq!(
        found("When it is done with all of the tests you must push."),
        ["When it is done with all of the tests you must push."]
    );
    let (heading, long) = (format!("Rule for {}: be brief", "x".repeat(40)), "x".repeat(41));
    assert_eq!(found(&heading), [&heading]);
    for none in [format!("Rule for {long}: end with X-1"), "Rule for : end with X-1".to_owned(), "Rules: ".to_owned()] {
        assert_eq!(found(&none), Vec::<&str>::new());
    }
    assert_eq!(found("1. Look\n- don't push\n* Do not rebase"), ["- don't push", "* Do not rebase"]);
}

#[test]
fn a_rule_in_a_sentence_that_runs_on_is_found_by_its_clause() {
    for (between, rule) in [
        (", ", "from now on never call me before ten"),
        (" and ", "please never call me before ten"),
        ("，", "以后都不要给我发语音"),
        (" ", "以后都不要给我发语音"),
        ("、", "これからは絵文字を使わないで"),
    ] {
        let chat = match between {
            "、" => "今日もバスがとても遅れました",
            _ if rule.is_ascii() => "the bus was late again in the rain today",
            _ => "今天公交车又晚点了很久",
        };
        for side in [3, 6, 12] {
            let side = [chat].repeat(side).join(between);
            let text = [&*side, rule, &*side].join(between);
            let said = said(&text);
            let shown: Vec<&str> = said
                .claims
                .iter()
                .filter(|(claim, _)| *claim == Claim::Rule)
                .map(|(_, at)| &text[at.clone()])
                .collect();
            assert!(
                matches!(&shown[..], [shown] if shown.contains(rule) && shown.len() <= MAX_WHOLE_BYTES),
                "{shown:?}"
            );
        }
    }
    // What everybody says in a meeting stays as it is.
    let text = format!(
        "Ann: {}",
        ["we looked at it all", "we should never push on Fridays", "so it goes"].repeat(5).join(", ")
    );
    assert!(matches!(&said(&text).claims[..], [(_, at)] if *at == (0..text.len())));
    assert!(said(&text["Ann: ".len()..]).claims.iter().all(|(_, at)| at.len() <= MAX_WITH_NEIGHBOURS_BYTES));
}
