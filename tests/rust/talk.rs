//! What stays of talk when not all of it can.

use nanobot_context::Role;

use crate::fitted::{fit, fit_without, text, tokens};
use crate::owned::{Owned, messages_in, paragraphs};
use crate::texts::Kind;

/// Chinese small talk, with one turn about visas.
pub fn talk() -> Vec<Owned> {
    const TOPICS: [&str; 6] = ["天气预报", "电影票", "早餐食谱", "跑步计划", "吉他课程", "阳台花草"];
    let mut messages = Vec::new();
    for i in 0..40 {
        let topic = TOPICS[i % TOPICS.len()];
        let (question, answer) = if i == 11 {
            ("办理签证需要哪些材料？".to_owned(), "签证材料：护照、照片、在职证明，还有银行流水。".to_owned())
        } else {
            (format!("聊聊{topic}吧，第{i}次。"), format!("好的，{topic}我们第{i}次聊了，明天继续。"))
        };
        messages.push(Owned::new(Role::User, question));
        messages.push(Owned::new(Role::Assistant, answer));
    }
    messages.push(Owned::new(Role::User, "上次说的签证材料有什么？"));
    messages
}

#[test]
fn a_chinese_question_finds_the_turn_that_answers_it() {
    let answer = "在职证明，还有银行流水";
    assert!(text(&fit(&talk(), 20)).contains(answer));
    assert!(!text(&fit_without("relevance", &talk(), 20)).contains(answer));
}

/// Many turns of a few words, each answered by fewer, with `said` in their midst.
fn small_talk(turns: usize, said: &[&str]) -> Vec<Owned> {
    let word = |i: usize, words: [&'static str; 5]| words[i % 5];
    let mut messages = Vec::new();
    for i in 0..turns {
        let who = word(i, ["A visitor", "The baker", "Our neighbour", "The crew", "Somebody"]);
        let what = word(i / 5, ["sorted", "counted", "described", "moved", "painted"]);
        let chatter = format!(
            "{who} {what} the {} before the rain came.",
            word(i / 25, ["chairs", "shelves", "boxes", "drafts", "jars"])
        );
        let said =
            said.iter().enumerate().find(|(k, _)| i == 10 + k * 20).map_or(chatter, |(_, said)| (*said).to_owned());
        messages.push(Owned::new(Role::User, said));
        messages.push(Owned::new(Role::Assistant, "OK."));
    }
    messages.push(Owned::new(Role::User, "And now?"));
    messages
}

#[test]
fn rules_of_five_words_survive_among_many_turns() {
    let said = [
        "Never push to main.",
        "Use pnpm instead of npm.",
        "My name is Ada and I am allergic to nuts.",
        "别再用表情符号了。",
        "Réponds toujours en français.",
        "Lösche niemals die Sicherungen.",
        "運用中は必ず確認してください。",
        "항상 한국어로 대답해 줘.",
    ];
    let messages = small_talk(600, &said);
    for percent in [5, 10, 25] {
        let short = text(&fit(&messages, percent));
        for said in said {
            assert!(short.contains(said), "{said} at {percent} %");
        }
    }
}

#[test]
fn rules_stay_though_they_are_many() {
    let rule = |i: usize| match i % 3 {
        0 => format!("Never show drawer {i} to Falk."),
        1 => format!("Always ask Holm about lamp {i} first."),
        _ => format!("From now on shelf {i} belongs to Toth."),
    };
    let said: Vec<String> = (0..30).map(rule).collect();
    let messages = small_talk(620, &said.iter().map(String::as_str).collect::<Vec<_>>());
    let short = text(&fit(&messages, 25));
    let lost: Vec<&String> = said.iter().filter(|said| !short.contains(*said)).collect();
    assert_eq!(lost, [""; 0]);
}

#[test]
fn what_corrects_a_rule_stays_though_it_has_no_word_of_a_rule() {
    let said = ["Use port 8080.", "Use port 9090 instead.", "Port 7070 it is, they say, since the move."];
    let messages = small_talk(600, &said);
    for percent in [5, 10, 25] {
        assert!(text(&fit(&messages, percent)).contains(said[2]), "{percent} %");
    }
}

#[test]
fn a_short_answer_stays_with_the_question_of_the_model() {
    let mut messages = small_talk(300, &[]);
    let (asked, answer) = ("Which of the two should hold the orders?", "Postgres.");
    messages[201] = Owned::new(Role::Assistant, format!("{}. {asked}", Kind::Prose.text(120, 7)));
    messages[202] = Owned::new(Role::User, answer);
    for percent in [5, 10, 25] {
        let short = text(&fit(&messages, percent));
        assert!(short.contains(answer) && short.contains(asked), "{percent} %");
    }
    // Nor without the item that it chooses.
    let (offered, answer) = ("2. a letter by the customs officer", "The second one.");
    messages[201] =
        Owned::new(Role::Assistant, format!("1. a map\n{offered}\n3. a key\n\n{}", Kind::Prose.text(1_200, 7)));
    messages[202] = Owned::new(Role::User, answer);
    for percent in [5, 10, 25] {
        let short = text(&fit(&messages, percent));
        assert!(short.contains(answer) && short.contains(offered), "{percent} %");
    }
}

#[test]
fn a_yes_stays_with_the_question_and_a_choice_with_its_item_wherever_they_stand() {
    let question = "Should the speeches come before the soup?";
    let (before, behind) = (Kind::Prose.text(900, 71), Kind::Prose.text(900, 72));
    let halls = "Three halls:\n1. Alder Hall: near\n2. Kestrel Farm: wide\n3. the Old Mint: dry";
    let mut messages = long_answers(8, &[]);
    let said = |role, text: &str| Owned::new(role, text);
    messages.extend([
        said(Role::User, "What about the evening?"),
        said(Role::Assistant, &format!("{before} {question} {behind}")),
        said(Role::User, "Yes."),
        said(Role::Assistant, halls),
        said(Role::User, "Number 2, please."),
    ]);
    messages.extend(long_answers(8, &[]).into_iter().skip(1));
    messages.push(said(Role::User, "We changed our minds: number 3."));
    messages.extend(long_answers(20, &[]).into_iter().skip(1));
    for percent in [10, 25] {
        let sent = text(&fit(&messages, percent));
        assert!(sent.contains(question) && sent.contains("3. the Old Mint: dry"), "{percent} % {sent}");
    }
}

#[test]
fn of_what_the_model_counts_in_longer_replies_the_newest_stays() {
    let prose = |seed| Kind::Prose.text(900, seed);
    let mut messages = long_answers(4, &[("What is left?", "You have 754 euros left.")]);
    messages.extend([
        Owned::new(Role::User, "I paid the band."),
        Owned::new(Role::Assistant, format!("{} That leaves 688 euros. {}", prose(81), prose(82))),
        Owned::new(Role::User, "And the suit."),
        Owned::new(Role::Assistant, format!("{} After that, 260 euros remain. {}", prose(83), prose(84))),
    ]);
    messages.extend(long_answers(20, &[]).into_iter().skip(1));
    for percent in [10, 25] {
        let sent = text(&fit(&messages, percent));
        assert!(sent.contains("260 euros remain"), "{percent} % {sent}");
    }
}

#[test]
fn gaps_near_each_other_share_a_note_and_short_replies_make_room() {
    let messages = small_talk(600, &[]);
    for percent in [10, 25, 50] {
        let short = fit(&messages, percent);
        let notes: Vec<&str> = paragraphs(&short).filter(|text| messages_in(text).is_some()).collect();
        let said = paragraphs(&short).count() - notes.len();
        let replies = short.iter().filter(|message| message.role == Role::Assistant).count();
        assert!(notes.len() * 20 <= said, "{} notes in {said}", notes.len());
        assert!(replies * 10 <= said, "{replies} replies in {said}");
        let gone: usize = notes.iter().filter_map(|note| messages_in(note)).sum();
        assert_eq!(gone, messages.len() - said, "every message is kept or counted");
        assert!(notes.iter().any(|note| note.ends_with(" left out here and below]")));
    }
}

#[test]
fn a_reply_that_is_said_again_and_again_makes_room_however_long_it_is() {
    let said = |i: usize| Kind::Prose.text(60, i as u64);
    let same = |_: usize| "Okay, I have noted that down for you.".to_owned();
    let numbered = |i: usize| format!("已保存，编号{}。", 17 * i);
    let varied =
        |i: usize| ["Alright, I wrote it down.", "Good, that is saved now.", "明白了，我会注意的。"][i % 3].to_owned();
    let replies: [&dyn Fn(usize) -> String; 3] = [&same, &numbered, &varied];
    for reply in replies {
        let turn = |i| [Owned::new(Role::User, said(i)), Owned::new(Role::Assistant, reply(i))];
        let mut messages: Vec<Owned> = (0..300).flat_map(turn).collect();
        messages.push(Owned::new(Role::User, "And now?"));
        let short = text(&fit(&messages, 50));
        let kept = (0..300).filter(|&i| short.contains(said(i).trim())).count();
        assert!(kept > 180, "{kept} of 300 beside {:?}", reply(1));
    }
}

#[test]
fn what_the_user_typed_comes_before_long_answers_and_results() {
    let fact = |i: usize| format!("The order of customer {} goes to hall {}.", i * 7, i % 5);
    for is_call in [false, true] {
        let mut messages = Vec::new();
        for i in 0..40 {
            messages.push(Owned::new(Role::User, fact(i)));
            let long = Kind::Prose.text(1_500, i as u64);
            if is_call {
                let id = format!("call_{i}");
                messages.extend([Owned::calling(&[&id], "exec", "{}"), Owned::result(&id, "exec", long)]);
            } else {
                messages.push(Owned::new(Role::Assistant, long));
            }
        }
        messages.push(Owned::new(Role::User, "And now?"));
        let short = fit(&messages, 25);
        assert!((0..40).all(|i| paragraphs(&short).any(|text| text == fact(i))), "{is_call}");
        assert!(short.iter().any(|message| message.role != Role::User), "there is room for others");
    }
}

/// Long answers of the model, and between them the `short` ones.
fn long_answers(pairs: usize, short: &[(&str, &str)]) -> Vec<Owned> {
    let mut messages = vec![Owned::new(Role::System, "You are nanobot.")];
    for i in 0..pairs {
        messages.push(Owned::new(Role::User, format!("Tell me about part {i}.")));
        messages.push(Owned::new(Role::Assistant, Kind::Prose.text(3_000, i as u64)));
        if let Some((asked, said)) = short.get(i) {
            messages.extend([Owned::new(Role::User, *asked), Owned::new(Role::Assistant, *said)]);
        }
    }
    messages
}

#[test]
fn what_the_model_said_in_a_line_stays_beside_long_answers() {
    let said = [
        ("I attack the ogre.", "Brakka is at 14 hit points."),
        ("Which logo?", "The fox it is."),
        ("We slip a week.", "New release date: 4 June."),
        ("Which day is swimming?", "Geometry moves to Saturday, swimming is on Thursday."),
    ];
    let table = "| Bank | Fee | Interest |\n|---|---|---|\n| Kestrel | 0 | 2.1 % |\n| Union North | 4.90 | 1.4 % |\n| Halden | 2.50 | 2.6 % |";
    for percent in [25, 50, 90, 99] {
        let mut messages = long_answers(12, &said);
        messages.push(Owned::new(Role::User, "Go on."));
        let short = text(&fit(&messages, percent));
        for (_, line) in said {
            assert!(short.contains(line), "{percent} %: {line}");
        }
        let mut messages = long_answers(5, &[("compare the three banks", table)]);
        messages.push(Owned::new(Role::User, "the table with the banks: which of them pays most interest?"));
        assert!(text(&fit(&messages, percent)).contains(table), "{percent} %");
    }
}

#[test]
fn of_what_the_model_says_again_with_another_number_the_newest_stays() {
    let said: Vec<String> = (0..9).map(|i| format!("Brakka is at {} hit points.", 58 - 3 * i)).collect();
    let said: Vec<(&str, &str)> = said.iter().map(|said| ("I attack the ogre again.", said.as_str())).collect();
    let mut messages = long_answers(12, &said);
    messages.push(Owned::new(Role::User, "Go on."));
    for percent in [12, 25, 50, 90] {
        let short = text(&fit(&messages, percent));
        assert!(short.contains("Brakka is at 34 hit points."), "{percent} %");
    }
}

#[test]
fn what_the_user_says_stays_beside_short_replies() {
    let said = [
        "I do not drive, my sister does.",
        "Grandpa had a stroke and cannot climb stairs.",
        "我女儿叫糖糖，今年上二年级",
    ];
    let (mut messages, mut planted) = (Vec::new(), said.iter());
    for i in 0..60 {
        let asked = [
            "why do cats knead their blankets",
            "what rhymes with orange today",
            "show me that again in another way",
            "这句话怎么翻译才好",
        ][i % 4];
        let says =
            if i % 12 == 5 { planted.next().copied().unwrap_or(asked).to_owned() } else { format!("{asked} {i}") };
        messages.push(Owned::new(Role::User, says));
        let word =
            |k: usize| ["harbour", "lantern", "meadow", "copper", "violin", "granite", "pepper"][(i * 3 + k * 5) % 7];
        messages.push(Owned::new(Role::Assistant, format!("{} {} {}.", word(0), word(1), word(2))));
    }
    messages.push(Owned::new(Role::User, "Thanks, and now?"));
    let fitted = fit(&messages, 50);
    for sentence in said {
        assert!(text(&fitted).contains(sentence), "{sentence}");
    }
    let of_user = |messages: &[Owned]| {
        let of = messages.iter().filter(|message| message.role == Role::User);
        of.map(|message| tokens(std::slice::from_ref(message))).sum::<u64>()
    };
    assert!(of_user(&fitted) * 3 > tokens(&fitted) * 2, "replies of three words crowd sentences out");
}

#[test]
fn requests_that_look_like_rules_leave_rules_their_room() {
    let rules = ["Never push to the release branch.", "I'm allergic to penicillin.", "Use tabs, not spaces."];
    let mut messages = small_talk(400, &rules);
    for (k, message) in messages.iter_mut().filter(|message| message.role == Role::User).enumerate().skip(60) {
        if k % 6 == 0 {
            *message = Owned::new(Role::User, format!("Only show the first ten lines of part {k}."));
        }
    }
    for percent in [5, 10, 25] {
        let short = text(&fit(&messages, percent));
        for rule in rules {
            assert!(short.contains(rule), "{rule} at {percent} %");
        }
    }
}

#[test]
fn what_the_model_commits_itself_to_stays_from_the_middle_of_a_long_answer() {
    for said in [
        "We agreed that Dov burned the boat.",
        "Je me suis trompé : la réponse est 42.",
        "那就定了：周二八点在北门见。",
    ] {
        let mut messages = long_answers(20, &[]);
        let prose = Kind::Prose.text(3_000, 77);
        let middle = prose[..1_500].rfind(". ").map_or(0, |end| end + 2);
        messages[14] = Owned::new(Role::Assistant, format!("{}{said}\n{}", &prose[..middle], &prose[middle..]));
        messages.push(Owned::new(Role::User, "Go on."));
        assert!(text(&fit(&messages, 25)).contains(said), "{said}");
    }
}

#[test]
fn what_a_question_points_to_stays_though_it_names_nothing_of_it() {
    let list = "1. **Dov himself**, for the insurance.\n2. **The officer Pell**, to hide the ledgers.\n3. **Nobody**: a lightning strike.";
    let table = "| Place | Price |\n|---|---|\n| Crete | 2,480 |\n| Bornholm | 1,900 |";
    for (meant, question) in
        [(list, "Let's take the second option you gave."), (table, "Go back to the table from before.")]
    {
        let mut messages = long_answers(20, &[]);
        for (at, shown) in [(14, list), (20, table)] {
            messages[at] = Owned::new(
                Role::Assistant,
                format!("{}\n\n{shown}\n\n{}", Kind::Prose.text(1_500, 7), Kind::Prose.text(1_500, 8)),
            );
        }
        messages.push(Owned::new(Role::User, question));
        assert!(text(&fit(&messages, 12)).contains(meant), "{question}");
    }
}

#[test]
fn what_stays_of_a_message_in_a_group_stays_under_who_said_it() {
    let who = |turn: usize| ["Mira", "Oskar", "Selma"][turn % 3];
    let rule = |turn: usize| format!("From now on never ring at flat {turn}.");
    let chat = |seed: usize, count: usize| {
        const WHAT: [&str; 5] =
            ["The lamp in the hall", "My sister's boat", "The bus to Graz", "Our garden", "The old radio"];
        const HOW: [&str; 7] = [
            "was late",
            "looks fine",
            "cost forty euros",
            "made some noise",
            "smelled of rain",
            "went quiet",
            "is green",
        ];
        let sentence =
            |at: usize| format!("{} {} on day {}. ", WHAT[(seed + at) % 5], HOW[(seed * 3 + at) % 7], seed + at);
        (0..count).map(sentence).collect::<String>()
    };
    let said = |turn: usize| {
        let rule = if turn % 20 == 1 { rule(turn) } else { String::new() };
        format!("{}: {}{rule} {}", who(turn), chat(turn, 8), chat(turn + 50, 8))
    };
    let mut messages: Vec<Owned> = (0..40)
        .flat_map(|turn| [Owned::new(Role::User, said(turn)), Owned::new(Role::Assistant, chat(turn + 100, 16))])
        .collect();
    messages.push(Owned::new(Role::User, "And now?"));
    for percent in [6, 10, 20] {
        let text = text(&fit(&messages, percent));
        let found: Vec<(usize, usize)> = (0..40).filter_map(|turn| Some((turn, text.find(&rule(turn))?))).collect();
        assert_eq!(found.len(), 2, "{percent} %: {text}");
        for (turn, found) in found {
            let name = (0..3).map(who).max_by_key(|name| text[..found].rfind(&format!("{name}: ")));
            assert_eq!(name, Some(who(turn)), "{percent} %: {}", &text[..found]);
        }
    }
}

#[test]
fn all_that_a_user_typed_stays_beside_calls_where_it_has_room() {
    let mut messages = Vec::new();
    let typed = |i: usize| Kind::Prose.text(400, i as u64 + 1_000);
    for i in 0..40 {
        let id = format!("call_{i}");
        messages.push(Owned::new(Role::User, typed(i)));
        messages.extend([
            Owned::calling(&[&id], "exec", "{}"),
            Owned::result(&id, "exec", Kind::Prose.text(800, i as u64)),
        ]);
    }
    messages.push(Owned::new(Role::User, "And now?"));
    let short = text(&fit(&messages, 50));
    assert_eq!((0..40).filter(|&i| !short.contains(typed(i).trim())).count(), 0);
}

#[test]
fn a_question_in_a_talk_gets_sentences_for_the_names_that_it_does_not_ask_for() {
    let is_listed = |question: &str| {
        let mut messages = Vec::new();
        for i in 0..60 {
            let said = format!("{} Ask Dr. Abel Nr{i} about OPS-{}.", Kind::Prose.text(300, i), 1_000 + i * 7);
            messages
                .extend([Owned::new(Role::User, said), Owned::new(Role::Assistant, Kind::Prose.text(300, i + 100))]);
        }
        messages.push(Owned::new(Role::User, question));
        text(&fit(&messages, 20)).contains("[earlier parts left out, ledger ")
    };
    assert!(is_listed("Go on."));
    assert!(!is_listed("What was OPS-1070 about?"));
}

#[test]
fn what_the_model_decides_stays_beside_a_user_who_types_more_but_not_what_one_of_many_says() {
    let decided = "So we'll go with Valkey in place of Redis.";
    let found = |user: &str, model: &str| {
        let mut messages = Vec::new();
        for i in 0..40 {
            let said = Kind::Prose.text(500, i + 100);
            let said = if i == 12 { format!("{said}. {decided} {}", Kind::Prose.text(200, i)) } else { said };
            messages.push(Owned::new(Role::User, format!("{user}{}", Kind::Prose.text(800, i))));
            messages.push(Owned::new(Role::Assistant, format!("{model}{said}")));
        }
        messages.push(Owned::new(Role::User, "And now?"));
        [12, 25].into_iter().filter(|&percent| text(&fit(&messages, percent)).contains(decided)).count()
    };
    assert_eq!(found("", ""), 2);
    assert_eq!(found("Mira: ", "Jonas: "), 0);
}

#[test]
fn what_the_model_changes_in_a_reply_stays_of_its_blocks_and_patches() {
    let head = "def limit(value):\n    check(value)\n";
    let block = |old: &str, new: &str| {
        format!("src/a.py\n```python\n<<<<<<< SEARCH\n{head}{old}\n=======\n{head}{new}\n>>>>>>> REPLACE\n```")
    };
    let patch =
        |old: &str, new: &str| format!("```diff\n--- src/a.py\n+++ src/a.py\n@@ -1,3 +1,3 @@\n-{old}\n+{new}\n```");
    for edit in [block("    return 1", "    return 7070"), patch("    return 1", "    return 7070")] {
        let mut messages = long_answers(20, &[]);
        let prose = Kind::Prose.text(3_000, 77);
        messages[14] = Owned::new(Role::Assistant, format!("{prose}\n\n{edit}\n\n{prose}"));
        messages.push(Owned::new(Role::User, "Go on."));
        let sent = text(&fit(&messages, 12));
        assert!(sent.contains("src/a.py\n") && sent.contains("    return 7070\n"), "{edit}\n{sent}");
    }
}

#[test]
fn what_an_agent_without_tool_calls_hands_over_is_no_users() {
    let decided = "I'll keep Valkey and drop Redis, for its licence.";
    let error = "src/a.ts(7,3): error TS2339: Property 'port' does not exist on type 'Pool'.";
    for (call, result) in [
        (|command: &str| format!("```\n{command}\n```"), |out: &str| format!("OBSERVATION:\n{out}")),
        (
            |command: &str| format!("<execute_command>\n<command>{command}</command>\n</execute_command>"),
            |out: &str| format!("[execute_command for 'x'] Result:\nCommand executed.\nOutput:\n{out}"),
        ),
        (
            |command: &str| format!("```\n{command}\n```"),
            |out: &str| format!("{out}\n(Current directory: /repo)\nbash-$"),
        ),
    ] as [(fn(&str) -> String, fn(&str) -> String); 3]
    {
        let mut messages = vec![Owned::new(Role::User, "Make the build pass. Never touch main.")];
        for i in 0..40 {
            let said = if i == 12 { format!("{decided}\n\n") } else { String::new() };
            let of = |kind: Kind| kind.text(1_500, i + 100);
            let out = match i {
                20 => [error, &error.replace("a.ts(7", "b.ts(9"), "Found 2 errors."].join("\n"),
                _ => of(if i % 2 == 0 { Kind::Code } else { Kind::Logs }),
            };
            messages.push(Owned::new(Role::Assistant, format!("{said}{}", call(&format!("cat part_{i}")))));
            messages.push(Owned::new(Role::User, result(&out)));
        }
        let sent = text(&fit(&messages, 20));
        assert!(sent.contains(decided) && sent.contains(error) && sent.contains("Never touch main."), "{sent}");
    }
}
