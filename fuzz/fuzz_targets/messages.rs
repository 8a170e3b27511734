//! Any list of messages, made shorter in each way: it fits, calls and results pair, and nothing that must stay changes.

#![no_main]

#[allow(dead_code)] // parts that only the tests use
#[path = "../../tests/rust/owned.rs"]
mod owned;
#[allow(dead_code)]
#[path = "../../tests/rust/texts.rs"]
mod texts;

use libfuzzer_sys::arbitrary::{Arbitrary, Result, Unstructured};
use libfuzzer_sys::fuzz_target;
use nanobot_context::compress::{self, Archive, Output, Plan, Request};
use nanobot_context::message::Media;
use nanobot_context::tokens::Tokens;
use nanobot_context::{Error, Field, Role, TokenCounter, conversation, history};

use owned::{Call, Owned, Says, apply, assert_paired, view};

const MODELS: [Option<&str>; 4] = [None, Some("gpt-4o"), Some("claude-opus-4-7"), Some("no-such-model")];
const ROLES: [Role; 5] = [Role::System, Role::User, Role::Assistant, Role::Tool, Role::Function];
const FIELDS: [Field; 8] = [
    Field::ReasoningContent,
    Field::ThinkingBlocks,
    Field::ReasoningDetails,
    Field::Call(0),
    Field::Refusal,
    Field::FunctionName,
    Field::FunctionArguments,
    Field::Audio(Some(Media::Audio)),
];
/// Few, so that calls and results meet, two calls share one, and one is what the repair of another would be.
const IDS: [&str; 7] = ["a", "b", "call_1", "call_1_0", "call_1_0___", "", "调"];
const NAMES: [&str; 6] = ["read_file", "write_file", "exec", "message", "", "x y"];
const TOOLS: &str = r#"[{"type": "function", "function": {"name": "read_file", "parameters": {"type": "object"}}}]"#;

#[derive(Debug)]
struct Case {
    messages: Vec<Owned>,
    model: Option<&'static str>,
    tools: Option<&'static str>,
    archived: bool,
    /// The budget, in thousandths of the tokens that the messages have.
    thousandths: u64,
}

impl<'a> Arbitrary<'a> for Case {
    fn arbitrary(input: &mut Unstructured<'a>) -> Result<Self> {
        let model = *input.choose(&MODELS)?;
        let tools = input.arbitrary::<bool>()?.then_some(TOOLS);
        let (archived, thousandths) = (input.arbitrary()?, input.int_in_range(0..=1200)?);
        let mut messages = Vec::new();
        while !input.is_empty() && messages.len() < 60 {
            messages.push(message(input)?);
        }
        Ok(Self { messages, model, tools, archived, thousandths })
    }
}

fn message(input: &mut Unstructured<'_>) -> Result<Owned> {
    let role = *input.choose(&ROLES)?;
    let mut message = Owned { says: says(input)?, ..Owned::new(role, "") };
    // Most messages have the fields of their role; one in eight has any.
    let any = input.ratio(1, 8)?;
    if role == Role::Assistant || any {
        for _ in 0..input.int_in_range(0..=3)? {
            message.calls.push(call(input)?);
        }
        for field in FIELDS {
            if input.ratio(1, 4)? {
                message = message.with(field, text(input)?);
            }
        }
    }
    if role == Role::Tool || any {
        message.tool_call_id = maybe(input, |input| Ok((*input.choose(&IDS)?).to_owned()))?;
        message.name = maybe(input, |input| Ok((*input.choose(&NAMES)?).to_owned()))?;
    }
    Ok(message)
}

fn maybe<T>(input: &mut Unstructured<'_>, make: impl Fn(&mut Unstructured<'_>) -> Result<T>) -> Result<Option<T>> {
    if input.ratio(3, 4)? { make(input).map(Some) } else { Ok(None) }
}

fn call(input: &mut Unstructured<'_>) -> Result<Call> {
    Ok(Call {
        id: maybe(input, |input| Ok((*input.choose(&IDS)?).to_owned()))?,
        name: maybe(input, |input| Ok((*input.choose(&NAMES)?).to_owned()))?,
        arguments: maybe(input, arguments)?,
        arguments_are_text: input.ratio(7, 8)?,
    })
}

fn arguments(input: &mut Unstructured<'_>) -> Result<String> {
    let value = text(input)?;
    Ok(match input.int_in_range(0..=3)? {
        0 => value,
        1 => serde_json::json!({ "path": value }).to_string(),
        2 => serde_json::json!({ "content": [value.as_str(), value.len()], "n": { "": [null, true] } }).to_string(),
        _ => format!(r#"{{"path": "{value}"#),
    })
}

fn says(input: &mut Unstructured<'_>) -> Result<Says> {
    let parts = |input: &mut Unstructured<'_>| {
        let count = input.int_in_range(0..=3)?;
        (0..count).map(|_| part(input)).collect::<Result<_>>().map(Says::Parts)
    };
    match input.int_in_range(0..=7)? {
        0 => Ok(Says::Nothing),
        1 => parts(input),
        _ => text(input).map(Says::Text),
    }
}

fn part(input: &mut Unstructured<'_>) -> Result<Says> {
    let low_detail = input.arbitrary()?;
    Ok(match input.int_in_range(0..=5)? {
        0 => Says::Media(Media::Image { low_detail }, text(input)?),
        1 => Says::Media(Media::Audio, text(input)?),
        2 => Says::Media(Media::File, text(input)?),
        3 => Says::Other(serde_json::json!({ "type": "new", "value": text(input)? }).to_string()),
        _ => Says::Text(text(input)?),
    })
}

/// One to three texts in a row, each the input's own, or of a kind that has surprised a tokenizer or a cut.
fn text(input: &mut Unstructured<'_>) -> Result<String> {
    let mut text = String::new();
    for _ in 0..input.int_in_range(1..=3)? {
        if input.ratio(1, 2)? {
            text.push_str(input.arbitrary()?);
        } else {
            let kind = input.choose(&texts::KINDS)?;
            text.push_str(&kind.text(input.int_in_range(0..=6000)?, input.arbitrary::<u8>()?.into()));
        }
    }
    Ok(text)
}

fn load() {
    for model in MODELS {
        TokenCounter::new(model).text("a");
    }
}

fuzz_target!(init: load(), |case: Case| {
    let messages = view(&case.messages);
    // The first message of the user that reads as a note of this crate is one: nothing holds for it.
    if messages.iter().any(conversation::is_note) {
        return;
    }
    let archive = case.archived.then(|| Archive::new(".nanobot-context/results").unwrap());
    let request =
        |window_tokens| Request { archive: archive.clone(), ..Request::new(case.model, case.tools, window_tokens) };
    let tokens = request(Tokens::ZERO).counter().prompt(&messages, case.tools).tokens;
    let budget_tokens = tokens.scaled(case.thousandths, 1000);
    let request = request(budget_tokens * 100 / 85);

    check(&case, &request, "fit", budget_tokens, |view| compress::fit(view, &request, budget_tokens).map(Some));
    check(&case, &request, "compress", request.budget_tokens(), |view| compress::compress(view, &request));
    check(&case, &request, "emergency", request.emergency_tokens(), |view| {
        compress::emergency(view, &request).map(Some)
    });
    check(&case, &request, "reduce", budget_tokens, |view| compress::reduce(view, &request, budget_tokens).map(Some));
    let selected = history::select(&messages, budget_tokens, &request.counter());
    assert!(selected.is_sorted_by(|a, b| a < b) && selected.iter().all(|&index| index < messages.len()));
});

fn check(
    case: &Case,
    request: &Request<'_>,
    way: &str,
    budget_tokens: Tokens,
    plan: impl Fn(&[nanobot_context::Message<'_>]) -> nanobot_context::Result<Option<Plan>>,
) {
    let before = view(&case.messages);
    let plan = match plan(&before) {
        Ok(plan) => {
            plan.unwrap_or_else(|| Plan { outputs: (0..before.len()).map(Output::Keep).collect(), ..Plan::default() })
        }
        Err(Error::Overflow { floor }) => {
            assert!(floor.needed_tokens > budget_tokens, "{way}: {floor:?}");
            return;
        }
        Err(other) => panic!("{way}: {other}"),
    };
    let after = apply(&case.messages, &plan);
    assert_paired(&after);
    let tokens = request.counter().prompt(&view(&after), request.tools).tokens;
    assert!(tokens <= budget_tokens, "{way}: {tokens} of {budget_tokens}\n{plan:?}");

    let kept = plan.outputs.iter().filter_map(|output| match output {
        Output::Keep(index) => Some((*index, false)),
        Output::Edit(index, _) => Some((*index, true)),
        Output::New(_) => None,
    });
    let kept: Vec<_> = kept.collect();
    assert!(kept.is_sorted_by(|a, b| a.0 < b.0), "{way}: {kept:?}");
    let system = (0..before.len()).filter(|&index| before[index].role == Role::System);
    for index in system.chain(conversation::last_user_index(&before)) {
        assert!(kept.contains(&(index, false)), "{way} changes {index}");
    }
}
