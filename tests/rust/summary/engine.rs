//! How a run goes with models that refuse, fail, and say nothing or too much.

use nanobot_context::summary::{Format, Options, Policy, Previous, Run, Structured, SummaryDraft};
use nanobot_context::tokens::Tokens;
use nanobot_context::{Message, Role, TokenCounter};

use crate::views::call;

/// A model with a window of so many bytes, that answers what `answer` makes of its prompt.
struct Model<'m> {
    window_bytes: usize,
    limit_tokens: Option<u64>,
    answer: &'m dyn Fn(&str) -> String,
    prompts: Vec<String>,
}

impl<'m> Model<'m> {
    fn new(window_bytes: usize, answer: &'m dyn Fn(&str) -> String) -> Self {
        Self { window_bytes, limit_tokens: None, answer, prompts: Vec::new() }
    }

    fn summarise(&mut self, view: &[Message<'_>], previous: Option<Previous>, options: Options) -> SummaryDraft {
        let mut run = Run::new(view, previous, options, TokenCounter::new(None));
        while let Some(call) = run.next_call() {
            let text = call.messages.last().map(|(_, text)| text.clone()).unwrap_or_default();
            if text.len() > self.window_bytes {
                run.refused(self.limit_tokens.map(Tokens));
            } else {
                run.answered(&(self.answer)(&text));
                self.prompts.push(text);
            }
            assert!(self.prompts.len() < 2_000, "it does not end");
        }
        run.finish(view)
    }
}

fn talk(texts: &[String]) -> Vec<Message<'_>> {
    let roles = [Role::User, Role::Assistant];
    texts.iter().enumerate().map(|(at, text)| Message::new(roles[at % 2], text)).collect()
}

fn texts(count: usize, bytes: usize) -> Vec<String> {
    (0..count).map(|at| format!("message-{at} {}", "x".repeat(bytes))).collect()
}

fn short(_: &str) -> String {
    "short".to_owned()
}

#[test]
fn what_fits_is_summarised_in_one_call() {
    let texts = texts(8, 10);
    let mut model = Model::new(10_000, &short);
    let draft = model.summarise(&talk(&texts), None, Options::default());
    assert_eq!((model.prompts.len(), draft.calls, draft.chunks, draft.max_depth), (1, 1, 1, 0));
    assert!(draft.by_model && !draft.truncated && draft.error.is_none() && draft.text.starts_with("short"));
}

#[test]
fn a_target_without_bounds_keeps_what_the_model_wrote() {
    let policy = Policy {
        target_tokens: Tokens::MAX,
        merge_target_tokens: Tokens(u64::MAX / 2 + 1),
        bisect_max_depth: u32::MAX,
        ..Policy::default()
    };
    let texts = texts(8, 500);
    for (window_bytes, window_tokens) in [(2_500, None), (usize::MAX, None), (usize::MAX, Some(Tokens::MAX))] {
        let options = Options { window_tokens, policy: policy.clone(), ..Options::default() };
        let draft = Model::new(window_bytes, &short).summarise(&talk(&texts), None, options);
        assert!(draft.by_model && !draft.truncated && draft.text.starts_with("short"), "{draft:?}");
    }
}

#[test]
fn what_the_model_refuses_is_summarised_in_halves_and_merged() {
    let texts = texts(8, 500);
    let mut model = Model::new(2_500, &|text| format!("<{}>", text.matches("message-").count()));
    let draft = model.summarise(&talk(&texts), None, Options::default());
    assert_eq!(model.prompts.len(), 3, "two halves and the merge");
    assert!(model.prompts[2].contains("Summary of the earlier part:\n<4>"), "{}", model.prompts[2]);
    assert_eq!((draft.chunks, draft.max_depth, draft.truncated), (2, 1, false));
}

#[test]
fn a_stated_limit_says_how_much_the_next_call_may_have() {
    let texts = texts(40, 500);
    let mut model = Model::new(10_000, &short);
    model.limit_tokens = Some(4_000);
    let draft = model.summarise(&talk(&texts), None, Options::default());
    assert!(draft.chunks >= 3 && draft.max_depth == 1 && !draft.truncated, "{draft:?}");
}

#[test]
fn the_depth_ends_halving_and_what_is_left_is_cut_and_marked() {
    let texts = texts(64, 500);
    let mut model = Model::new(600, &short);
    let policy = Policy { bisect_max_depth: 2, ..Policy::default() };
    let draft = model.summarise(&talk(&texts), None, Options { policy, ..Options::default() });
    assert!(draft.truncated && draft.max_depth == 2 && draft.chunks == 4, "{draft:?}");
    assert!(draft.text.contains("Cut by force"), "{}", draft.text);
}

#[test]
fn a_model_that_refuses_every_call_wrote_nothing() {
    for count in [1, 4, 40] {
        let texts = texts(count, 500);
        let draft = Model::new(10, &short).summarise(&talk(&texts), None, Options::default());
        assert!(!draft.by_model && draft.truncated, "{draft:?}");
        assert!(draft.error.as_deref().is_some_and(|error| error.contains("refused every call")), "{draft:?}");
        assert!(draft.text.contains("Cut by force"), "{}", draft.text);
    }
}

#[test]
fn few_messages_are_not_halved() {
    let texts = texts(4, 500);
    let draft = Model::new(100, &short).summarise(&talk(&texts), None, Options::default());
    assert_eq!((draft.chunks, draft.max_depth, draft.truncated), (1, 0, true));
}

#[test]
fn without_halving_an_overflow_is_a_failure_that_is_told() {
    let texts = texts(40, 100);
    let policy = Policy { bisect_enabled: false, ..Policy::default() };
    let draft = Model::new(100, &short).summarise(&talk(&texts), None, Options { policy, ..Options::default() });
    assert!(!draft.by_model && draft.error.is_some_and(|error| error.contains("switched off")));
    assert!(draft.text.contains("message-0"), "told by rules: {}", draft.text);
}

#[test]
fn a_known_window_parts_the_conversation_before_anything_is_refused_and_every_message_is_read() {
    for (count, bytes) in [(60, 300), (7, 9_000), (1, 40_000), (3, 1)] {
        let texts = texts(count, bytes);
        let mut model = Model::new(usize::MAX, &short);
        let options = Options { window_tokens: Some(Tokens(4_000)), ..Options::default() };
        let draft = model.summarise(&talk(&texts), None, options);
        let all = model.prompts.join("");
        assert!((0..count).all(|at| all.contains(&format!("message-{at} "))));
        assert_eq!(all.matches('x').count(), count * bytes, "to the last character");
        assert!(model.prompts.iter().all(|prompt| prompt.len() < 4_000 * 3) && !draft.truncated);
    }
}

#[test]
fn halves_part_no_call_from_its_results() {
    let filler = "y".repeat(300);
    let mut view = vec![Message::new(Role::User, "go")];
    for id in ["a", "b", "c", "d", "e", "f", "g"] {
        let calls = [id, "z"].into_iter().flat_map(|id| call(id, "f", "{}").tool_calls);
        view.push(Message { tool_calls: calls.collect(), ..Message::empty(Role::Assistant) });
        view.push(Message { tool_call_id: Some(id.into()), ..Message::new(Role::Tool, &filler) });
        view.push(Message { tool_call_id: Some("z".into()), ..Message::new(Role::Tool, &filler) });
    }
    let mut model = Model::new(1_500, &short);
    model.summarise(&view, None, Options::default());
    for prompt in model.prompts.iter().filter(|prompt| !prompt.contains("Summary of")) {
        assert_eq!(2 * prompt.matches("assistant called").count(), 2 * prompt.matches("f returned").count());
        assert!(!prompt.starts_with("f returned"));
    }
}

#[test]
fn the_previous_summary_goes_with_the_first_part_and_is_told_once() {
    let texts = texts(40, 500);
    let previous = Previous { text: "PREVIOUSLY".to_owned(), data: Structured::default() };
    for window_bytes in [usize::MAX, 6_000] {
        let mut model = Model::new(window_bytes, &short);
        model.summarise(&talk(&texts), Some(previous.clone()), Options::default());
        let telling: Vec<usize> =
            (0..model.prompts.len()).filter(|&at| model.prompts[at].contains("PREVIOUSLY")).collect();
        assert_eq!(telling, [0]);
    }
    let forced = Model::new(10, &short).summarise(&talk(&texts[..3]), Some(previous), Options::default());
    assert!(forced.text.starts_with("PREVIOUSLY"), "cut by force, it still says what was before");
}

#[test]
fn rules_and_names_that_the_model_drops_are_added_back_for_ever() {
    let view = [Message::new(Role::User, "Never push to main. The order is ORD-4711.")];
    let first = Model::new(usize::MAX, &short).summarise(&view, None, Options::default());
    assert_eq!(first.text, "short\n\nAlso said:\nRules of the user:\n- Never push to main.\nNames: ORD-4711");
    let kept = |_: &str| "The user said: never push to main. ORD-4711 is the order.".to_owned();
    let kept = Model::new(usize::MAX, &kept).summarise(&view, None, Options::default());
    assert!(!kept.text.contains("Also said"), "{}", kept.text);
    let later = [Message::new(Role::User, "Thanks.")];
    let previous = Previous { text: first.text, data: first.data };
    let second = Model::new(usize::MAX, &short).summarise(&later, Some(previous), Options::default());
    assert!(second.text.contains("Never push to main.") && second.text.contains("ORD-4711"), "{}", second.text);
}

#[test]
fn an_empty_answer_and_a_failure_end_in_what_rules_tell() {
    let view = [Message::new(Role::User, "Build it in src/a.py. Never push.")];
    for answer in ["", " \n", "<think>hm", "<think>hm</think> "] {
        let answer = |_: &str| answer.to_owned();
        let draft = Model::new(usize::MAX, &answer).summarise(&view, None, Options::default());
        assert_eq!(draft.error.as_deref(), Some("the model's answer is empty"));
        assert!(!draft.by_model && draft.text.starts_with("Goal: Build it in src/a.py."), "{}", draft.text);
    }
    let previous = Previous { text: "The model wrote this.".to_owned(), data: Structured::default() };
    let mut run = Run::new(&view, Some(previous), Options::default(), TokenCounter::new(None));
    run.failed("down");
    assert!(run.next_call().is_none());
    let draft = run.finish(&view);
    assert!(draft.text.contains("The model wrote this.") && draft.text.contains("Never push."), "{}", draft.text);
}

#[test]
fn parts_that_were_answered_before_a_failure_are_not_lost() {
    let texts = texts(8, 500);
    let view = talk(&texts);
    let mut run = Run::new(&view, None, Options::default(), TokenCounter::new(None));
    run.next_call();
    run.refused(None);
    run.next_call();
    run.answered("The first half was fine.");
    run.failed("down");
    assert!(run.finish(&view).text.contains("The first half was fine."));
}

#[test]
fn an_answer_that_is_no_summary_is_cut() {
    let view = [Message::new(Role::User, "hello")];
    let long = |_: &str| "All is well and nothing happens. ".repeat(2_000);
    let draft = Model::new(usize::MAX, &long).summarise(&view, None, Options::default());
    assert!(draft.truncated && draft.output_tokens <= Tokens(2 * 700 + 200), "{}", draft.output_tokens);
}

#[test]
fn no_text_makes_a_summary_without_bounds() {
    let texts = texts(8, 500);
    let answers: [&dyn Fn(&str) -> String; 5] = [
        &|_| "All is well and nothing happens. ".repeat(2_000),
        &|_| "- a thing\n".repeat(6_000),
        &|_| "我们讨论了数据库。".repeat(6_000),
        &|_| format!("{{\"thoughts\": \"{}\"}}", "hm ".repeat(9_000)),
        &|_| format!("{{\"decisions\": [{}\"last\"]}}", "\"one\",".repeat(9_000)),
    ];
    for (at, answer) in answers.iter().enumerate() {
        for window_bytes in [usize::MAX, 3_500, 0] {
            for format in [Format::Text, Format::Structured] {
                let long = Previous { text: "said before ".repeat(9_000), data: Structured::default() };
                let options = Options { format, ..Options::default() };
                let draft = Model::new(window_bytes, answer).summarise(&talk(&texts), Some(long), options);
                let tokens = draft.output_tokens;
                assert!(tokens <= Tokens(5 * 700), "answer {at}, window {window_bytes}: {tokens}");
            }
        }
    }
}

#[test]
fn json_of_the_model_is_merged_by_rules_and_asked_for_once() {
    let texts = texts(8, 500);
    let json = |text: &str| {
        let number = text.matches("message-").count();
        format!(r#"{{"decisions": ["use port 808{number}"], "context": "half of {number}"}}"#)
    };
    let options = Options { format: Format::Structured, ..Options::default() };
    let mut model = Model::new(3_500, &json);
    let draft = model.summarise(&talk(&texts), None, options.clone());
    assert_eq!((model.prompts.len(), draft.chunks), (2, 2), "no call to merge");
    assert!(draft.text.contains("Decisions:\n- use port 8084\nNames") || draft.text.contains("use port 8084"));
    assert!(draft.text.contains("Context: half of 4"), "{}", draft.text);
    let free = |_: &str| "It went well.".to_owned();
    let draft = Model::new(usize::MAX, &free).summarise(&talk(&texts), None, options);
    assert!(draft.text.starts_with("It went well.") && draft.by_model, "free text is taken as it is");
}

#[test]
fn nothing_to_say_asks_no_model() {
    for view in [vec![], vec![Message::empty(Role::Assistant), Message::new(Role::User, " ")]] {
        let mut model = Model::new(usize::MAX, &short);
        let draft = model.summarise(&view, None, Options::default());
        assert_eq!((model.prompts.len(), draft.calls), (0, 0));
        assert!(!draft.text.is_empty());
    }
}

#[test]
fn a_summary_is_asked_for_in_the_language_of_the_user() {
    let log = "error: could not open the file orders.csv\n".repeat(100);
    let asked = |users: &[&str], answer, previous: &str| {
        let mut view: Vec<Message<'_>> = users.iter().map(|text| Message::new(Role::User, text)).collect();
        view.extend([Message::new(Role::Tool, &log), Message::new(Role::Assistant, answer)]);
        let previous = Previous { text: previous.to_owned(), ..Previous::default() };
        let mut run = Run::new(&view, Some(previous), Options::default(), TokenCounter::new(None));
        let prompt = run.next_call().unwrap().messages.remove(0).1;
        prompt.lines().next().unwrap().to_owned()
    };
    let trace = "Traceback (most recent call last):\n  File \"a.py\", line 1, in <module>\n    import foo\nModuleNotFoundError: No module named 'foo'";
    let english_text = "The importer reads the rows of the table and writes them to the other one.\n".repeat(60);
    let [english, chinese] = ["The following messages", "请将以下对话历史"];
    let [japanese, korean] = ["以下の会話履歴", "다음 대화 기록"];
    for (users, answer, previous, expected) in [
        (&["请帮我看看 orders.csv 为什么导入失败了？"][..], "The file is missing.", "", chinese),
        (&["请继续", "请继续", &log], "", "", chinese),
        (&["このログを見て、失敗した理由を教えてください。"], "", "", japanese),
        (&["コマンドラインツール導入手順書作成"], "", "", japanese),
        (&["이 로그를 보고 실패한 이유를 알려 주세요."], "", "", korean),
        (&["What does 你好 mean in this sentence?"], "文件打不开。", "", english),
        (&["Warum schlägt der Import fehl?"], "", "", english),
        (&[], "The file is missing.", "用户要求导入订单。", chinese),
        (&["[12 messages left out]", "123"], "文件打不开。", "", chinese),
        (&[], "", "", english),
        // What has no language of its own goes on in that of before.
        (&["ok", "1", "/continue", "https://example.com/a/b", "yes", "go on"], "", "用户要求导入订单。", chinese),
        (&["ok", "1"], "The file is missing.", "", english),
        // Commands, names and errors are in no language.
        (&["帮我 review 这个 PR: https://github.com/HKUDS/nanobot/pull/1234"], "", "", chinese),
        (&["npm install 之后 node server.js 报 Cannot find module express"], "", "", chinese),
        (&["run pytest -q tests && git push origin main 然后告诉我结果"], "", "", chinese),
        (&["看日志 /var/log/app/current/production.log"], "", "", chinese),
        (&["What is 你好?"], "", "", english),
        (&["障害報告確認", "至急", "ログ確認してください"], "", "", japanese),
        (&["障害報告確認", "至急"], "", "", chinese),
        // What is typed stands before or behind what is pasted.
        (&[&*format!("报错了\n{trace}")], "", "", chinese),
        (&[&*format!("{trace}\n怎么办")], "", "", chinese),
        (&[&*format!("帮我翻译成中文：\n{english_text}")], "", "", chinese),
        (
            &[&*format!("What does this say? Answer in English please.\n{}", "文件打不开。\n".repeat(300))],
            "",
            "",
            english,
        ),
        (&["Fix this please:\n文件打不开。\n"], "", "", english),
        (&["看看这个：the server is down and nothing works, please look at it"], "", "", chinese),
        (&["What does this mean? 数据库连接失败，请检查网络配置。"], "", "", english),
        (&["> 数据库连接失败，请检查网络\n> 请重试\nWhat does it mean?"], "", "", english),
        (&["> the disk of the server is full\n这是什么意思"], "", "", chinese),
        (&["> 帮我看看日志"], "", "", chinese),
        (&["これを日本語に翻訳してください：\n数据库连接失败，请检查网络配置。请检查网络配置。"], "", "", japanese),
        (&["请把这段翻译成中文：\nデータベースに接続できません。設定を確認してください。"], "", "", chinese),
        (&["不具合報告\nデータベースに接続できません。設定を確認してください。"], "", "", japanese),
        (&["[Reply to bot: The server is down, the disk of node seven is full]\n怎么办？"], "", "", chinese),
        (&["[Forwarded from Ada Lovelace]\n看一下"], "", "", chinese),
        (&["ช่วยส่งอีเมลถึง 王小明 เรื่องใบแจ้งหนี้เดือนพฤษภาคม"], "", "", english),
        (&["Напиши письмо 王小明 о встрече в 北京 завтра"], "", "", english),
        (&["用 β 版本的 λ 函数"], "", "", chinese),
        // A name is no sentence.
        (&["My friend 王小明 lives in 北京, write a letter"], "", "", english),
        (&["Look at log number 5, any errors? for 王小明"], "", "", english),
        (&["Where can I meet 김철수 and 田中さん tomorrow?"], "", "", english),
        (&["deploy staging environment 失败"], "", "", chinese),
        (&["Error in file orders.csv: 帮我修复这个问题"], "", "", chinese),
        (&["OrderListContainer を React Query の useInfiniteQuery で書き直して"], "", "", japanese),
    ] {
        let prompt = asked(users, answer, previous);
        assert!(prompt.starts_with(expected), "{users:?} {answer} {previous}: {prompt}");
    }
}

#[test]
fn chinese_is_cut_between_characters() {
    let view = [Message::new(Role::User, "请帮我写一个导入程序，订单在数据库里。")];
    for target_tokens in 1..60 {
        let policy = Policy {
            target_tokens: Tokens(target_tokens),
            merge_target_tokens: Tokens(target_tokens),
            ..Policy::default()
        };
        let answer = |_: &str| "这是一个很长的摘要，包含很多内容。".repeat(40);
        let draft = Model::new(usize::MAX, &answer).summarise(&view, None, Options { policy, ..Options::default() });
        assert!(draft.truncated);
    }
}
