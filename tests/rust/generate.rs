//! Histories as providers, agents and mistakes make them.

use nanobot_context::compress::{Archive, Limits, Request};
use nanobot_context::message::Media;
use nanobot_context::tokens::Tokens;
use nanobot_context::{Field, Role};
use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;
use proptest::sample::select;
use proptest::test_runner::RngSeed;

use crate::owned::{Call, Owned, Says};
use crate::texts::{KINDS, Kind};

/// Cases of a property: 256, the same in every run, so that a red run means a change of the code.
///
/// `NANOBOT_CONTEXT_SLOW=1` tries 10,000 new ones; `PROPTEST_CASES` and `PROPTEST_RNG_SEED` choose others.
pub fn config() -> ProptestConfig {
    let is_slow = std::env::var("NANOBOT_CONTEXT_SLOW").is_ok_and(|value| value == "1");
    let default = ProptestConfig::default();
    let (cases, rng_seed) = match default.rng_seed {
        _ if is_slow => (10_000, RngSeed::Random),
        RngSeed::Random => (default.cases, RngSeed::Fixed(1)),
        seed @ RngSeed::Fixed(_) => (default.cases, seed),
    };
    // Failures are repeated from their seed, not from a file beside the sources.
    ProptestConfig { cases, rng_seed, failure_persistence: None, max_shrink_iters: 2_000, ..default }
}

pub const MODELS: [Option<&str>; 9] = [
    None,
    Some("gpt-4o"),
    Some("gpt-4"),
    Some("claude-opus-4-5"),
    // the largest factors of any family
    Some("claude-opus-4-7"),
    Some("deepseek-chat"),
    Some("qwen3-coder"),
    Some("gemini-2.5-pro"),
    Some("no-such-model"),
];

pub const TOOLS: &str = r#"[{"type": "function", "function": {"name": "read_file", "description": "Read a file.",
    "parameters": {"type": "object", "properties": {"path": {"type": "string", "description": "The file"},
    "mode": {"type": "string", "enum": ["text", "binary"]}}, "required": ["path"]}}}]"#;

/// What a property is asked of.
#[derive(Debug, Clone)]
pub struct Case {
    pub messages: Vec<Owned>,
    pub model: Option<&'static str>,
    pub tools: Option<&'static str>,
    /// The budget, in thousandths of the tokens that the messages have.
    pub thousandths: u64,
    /// The window where it does not follow from `thousandths`.
    pub window_tokens: Option<u64>,
}

impl Case {
    pub fn request(&self, window_tokens: u64) -> Request<'static> {
        // Every promise holds with originals kept and without.
        let archive = (self.thousandths % 2 == 1).then(|| Archive::new(".nanobot-context/results").unwrap());
        let pinned: &[String] = if self.pins_files() { &["*".to_owned()] } else { &[] };
        let limits = Limits { pinned: pinned.into(), ..Limits::default() };
        Request { archive, limits, ..Request::new(self.model, self.tools, Tokens(window_tokens)) }
    }

    /// Returns whether all files are pinned.
    fn pins_files(&self) -> bool {
        self.thousandths.is_multiple_of(5)
    }

    /// Returns whether a file or a message may be pinned.
    pub fn has_pins(&self) -> bool {
        self.pins_files()
            || self.messages.iter().any(|message| message.texts().iter().any(|text| text.starts_with(PIN)))
    }

    /// Returns the tokens of the messages as they came.
    pub fn tokens(&self) -> u64 {
        self.request(0).counter().prompt(&crate::owned::view(&self.messages), self.tools).tokens.0
    }

    /// Returns a budget that follows the size of the messages, so that much, a little or nothing must go.
    pub fn budget_tokens(&self) -> u64 {
        self.tokens() * self.thousandths / 1000
    }

    /// Returns a window of 200 to 300,000 tokens, or one whose budget follows the size of the messages.
    pub fn window_tokens(&self) -> u64 {
        self.window_tokens.unwrap_or(self.budget_tokens() * 100 / 85)
    }
}

/// Any history, broken calls and results included.
pub fn cases() -> impl Strategy<Value = Case> {
    case_of(vec(prop_oneof![4 => sound_turn(), 1 => broken_turn()], 0..14).boxed())
}

/// Histories that a provider accepts, of text and calls alone.
pub fn plain_cases() -> impl Strategy<Value = Case> {
    case_of(vec(plain_turn(), 0..14).boxed())
}

/// Short histories for tight budgets: rules of the user deep in JSON, calls that are made again, results and messages that
/// cost about as much as their marks, keys that look like marks.
pub fn tight_cases() -> impl Strategy<Value = Case> {
    case_of(vec(tight_turn(), 1..12).boxed())
}

fn tight_turn() -> impl Strategy<Value = Vec<Owned>> {
    let documents = vec((0..24_usize, 0..80_usize, any::<bool>()), 1..6);
    let documents = documents.prop_map(|documents| {
        let said =
            documents.iter().enumerate().map(|(i, &(depth, filler, indents))| rule_within(i, depth, filler, indents));
        Owned { says: Says::Parts(said.map(Says::Text).collect()), ..Owned::new(Role::User, "") }
    });
    let says = |role| {
        let text =
            (select(&KINDS[..]), 0..300_usize, any::<u64>()).prop_map(|(kind, bytes, seed)| kind.text(bytes, seed));
        text.prop_map(move |text| vec![Owned::new(role, text)])
    };
    prop_oneof![
        2 => documents.prop_map(|user| vec![user]),
        5 => call_made_again(),
        2 => says(Role::User),
        2 => says(Role::Assistant),
    ]
}

/// JSON with a rule of the user under `depth` arrays and objects, each with some `filler` beside it.
pub fn rule_within(number: usize, depth: usize, filler: usize, indents: bool) -> String {
    let fill = |letter: char| format!("{letter} filler {}", letter.to_string().repeat(filler));
    let mut value = serde_json::json!(format!("never touch table {number}, always ask owner_{number} first"));
    for level in 0..depth {
        value = if level % 2 == 0 {
            serde_json::json!({format!("a{level}"): fill('x'), format!("z{level}"): value, "q": fill('d')})
        } else {
            serde_json::json!([fill('a'), fill('b'), value, fill('c')])
        };
    }
    if indents { format!("{value:#}") } else { value.to_string() }
}

/// One of few calls, so that it is often made again, with a result of any size.
fn call_made_again() -> impl Strategy<Value = Vec<Owned>> {
    let arguments = select(&[r#"{"path": "a.py"}"#, r#"{"path": "b.py"}"#, r#"{"command": "ls"}"#, "{}"][..]);
    let result = prop_oneof![
        4 => (0..60_usize).prop_map(|words| "word ".repeat(words)),
        2 => (select(&KINDS[..]), 0..400_usize, any::<u64>()).prop_map(|(kind, bytes, seed)| kind.text(bytes, seed)),
        1 => vec((0..4_usize, 0..60_usize), 0..12).prop_map(|members| {
            let member = |&(number, bytes): &(usize, usize)| {
                let number = if number < 2 { String::new() } else { number.to_string() };
                format!(r#""…{number}": "{}""#, "v ".repeat(bytes))
            };
            format!("{{{}}}", members.iter().map(member).collect::<Vec<_>>().join(", "))
        }),
    ];
    let edits = (0..40_usize).prop_map(|edits| {
        let edit = |i: usize| serde_json::json!({"old": format!("value_{i} = {i}"), "new": format!("value_{i} = 0")});
        serde_json::json!({"path": "a.py", "edits": (0..edits).map(edit).collect::<Vec<_>>()}).to_string()
    });
    let arguments = prop_oneof![5 => arguments.prop_map(str::to_owned), 1 => edits];
    (select(&["exec", "read_file", "edit_file", "write_file"][..]), arguments, result, any::<u16>()).prop_map(
        |(name, arguments, result, id)| {
            let id = format!("call_{id:x}");
            vec![Owned::calling(&[&id], name, &arguments), Owned::result(&id, name, result)]
        },
    )
}

fn case_of(turns: BoxedStrategy<Vec<Vec<Owned>>>) -> impl Strategy<Value = Case> {
    let windows = prop_oneof![3 => Just(None), 1 => (0_f64..1.0).prop_map(|x| {
        #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
        Some((200.0 * 1500_f64.powf(x)) as u64)
    })];
    (option::weighted(0.8, text(400)), turns, select(&MODELS[..]), any::<bool>(), 5_u64..1100, windows).prop_map(
        |(system, turns, model, has_tools, thousandths, window_tokens)| {
            let system = system.map(|text| Owned::new(Role::System, text));
            let messages = system.into_iter().chain(turns.into_iter().flatten()).collect();
            Case { messages, model, tools: has_tools.then_some(TOOLS), thousandths, window_tokens }
        },
    )
}

/// A text of any kind; most are short, some are long, few are huge.
fn text(usual_bytes: usize) -> BoxedStrategy<String> {
    let bytes = prop_oneof![
        1 => Just(0),
        8 => 0..=usual_bytes,
        4 => 0..=4_000_usize,
        1 => 4_000..=40_000_usize,
    ];
    let made = (select(&KINDS[..]), bytes, any::<u64>()).prop_map(|(kind, bytes, seed)| kind.text(bytes, seed));
    prop_oneof![9 => made, 1 => any::<String>()].boxed()
}

/// What pins a message.
const PIN: &str = "#pin ";

fn user() -> impl Strategy<Value = Owned> {
    let pin = prop_oneof![39 => Just(""), 1 => Just(PIN)];
    (pin, text(200)).prop_map(|(pin, text)| Owned::new(Role::User, format!("{pin}{text}")))
}

fn parts() -> impl Strategy<Value = Says> {
    let media = prop_oneof![
        Just((Media::Image { low_detail: false }, "https://example.com/a.png".to_owned())),
        Just((Media::Image { low_detail: true }, String::new())),
        Just((Media::Audio, "UklGRiQAAABXQVZF".repeat(200))),
        Just((Media::File, "file-abc".to_owned())),
    ];
    let part = prop_oneof![
        3 => text(200).prop_map(Says::Text),
        1 => media.prop_map(|(media, data)| Says::Media(media, data)),
        1 => text(60).prop_map(|text| Says::Other(serde_json::json!({"type": "new", "value": text}).to_string())),
    ];
    vec(part, 0..4).prop_map(Says::Parts)
}

/// JSON arguments with what is easily spoilt in them.
fn arguments() -> impl Strategy<Value = String> {
    let number = select(&["0", "-0", "1e400", "1.50e-7", "123456789012345678901231", "0.1000", "-1E+2"][..]);
    let key = select(&["path", "content", "command", "n", "url", "a\\\"b"][..]);
    let value = prop_oneof![
        3 => text(100).prop_map(|text| serde_json::Value::from(text).to_string()),
        1 => Just(r#""\ud83d\ude00\u4e2d\n\\""#.to_owned()),
        1 => (0..400_usize).prop_map(|n| format!(r#""{}""#, r"\ud83d\ude00\u0041\n".repeat(n))),
        2 => number.prop_map(str::to_owned),
        1 => text(100).prop_map(|text| format!(r#"[{{"deep": [null, true, {}]}}]"#, serde_json::Value::from(text))),
    ];
    vec((key, value), 0..4).prop_map(|fields| {
        let fields: Vec<String> = fields.into_iter().map(|(key, value)| format!(r#""{key}": {value}"#)).collect();
        format!("{{{}}}", fields.join(", "))
    })
}

fn tool() -> impl Strategy<Value = &'static str> {
    select(&["read_file", "write_file", "edit_file", "exec", "web_search", "message", "其他"][..])
}

/// A message with one to four calls, and their results in any order.
fn calls(arguments: BoxedStrategy<String>) -> impl Strategy<Value = Vec<Owned>> {
    let call = (tool(), arguments, text(600));
    (option::weighted(0.3, text(100)), vec(call, 1..4), any::<u32>(), any::<bool>()).prop_map(
        |(says, calls, id, reversed)| {
            let ids: Vec<String> = (0..calls.len()).map(|i| format!("call_{id:x}_{i}")).collect();
            let mut results: Vec<Owned> =
                ids.iter().zip(&calls).map(|(id, (name, _, text))| Owned::result(id, name, text.clone())).collect();
            if reversed {
                results.reverse();
            }
            let calls = ids.into_iter().zip(calls).map(|(id, (name, arguments, _))| Call {
                id: Some(id),
                name: Some(name.to_owned()),
                arguments: Some(arguments),
                arguments_are_text: true,
            });
            let message = Owned {
                says: says.map_or(Says::Nothing, Says::Text),
                calls: calls.collect(),
                ..Owned::new(Role::Assistant, "")
            };
            std::iter::once(message).chain(results).collect()
        },
    )
}

fn plain_turn() -> impl Strategy<Value = Vec<Owned>> {
    let short = (0..100_usize, any::<u64>())
        .prop_map(|(bytes, seed)| serde_json::json!({"path": Kind::Prose.text(bytes, seed)}).to_string());
    prop_oneof![
        2 => user().prop_map(|user| vec![user]),
        2 => text(400).prop_map(|text| vec![Owned::new(Role::Assistant, text)]),
        3 => calls(short.boxed()),
    ]
}

fn sound_turn() -> impl Strategy<Value = Vec<Owned>> {
    let thoughts = (option::of(text(400)), option::weighted(0.3, text(100)));
    let thinking =
        |text: String| serde_json::json!([{"type": "thinking", "thinking": text, "signature": "x"}]).to_string();
    prop_oneof![
        6 => user().prop_map(|user| vec![user]),
        1 => (user(), parts()).prop_map(|(user, says)| vec![Owned { says, ..user }]),
        3 => text(400).prop_map(|text| vec![Owned::new(Role::Assistant, text)]),
        2 => (thoughts, calls(arguments().boxed())).prop_map(move |((reasoning, blocks), mut group)| {
            group[0].fields.extend(reasoning.map(|text| (Field::ReasoningContent, text)));
            group[0].fields.extend(blocks.map(|text| (Field::ThinkingBlocks, thinking(text))));
            group
        }),
        1 => (fields(), calls(arguments().boxed())).prop_map(|(fields, mut group)| {
            group[0].fields = fields;
            group
        }),
        1 => (fields(), text(100)).prop_map(|(fields, text)| {
            vec![Owned { fields, ..Owned::new(Role::Assistant, text) }]
        }),
        5 => calls(arguments().boxed()),
        1 => (calls(arguments().boxed()), parts()).prop_map(|(mut group, says)| {
            group[1].says = says;
            group
        }),
        1 => text(60).prop_map(|text| vec![Owned::new(Role::System, text)]),
        1 => (text(20), user()).prop_map(|(name, user)| vec![Owned { name: Some(name), ..user }]),
    ]
}

/// Some of the fields that few messages have.
fn fields() -> impl Strategy<Value = Vec<(Field, String)>> {
    let signature =
        || text(300).prop_map(|text| serde_json::json!({"google": {"thought_signature": text}}).to_string());
    let some =
        |field, text: BoxedStrategy<String>| option::weighted(0.4, text).prop_map(move |text| Some((field, text?)));
    let all = (
        some(Field::Reasoning, text(400).boxed()),
        some(Field::ReasoningDetails, signature().boxed()),
        some(Field::ExtraContent, signature().boxed()),
        some(Field::Call(0), signature().boxed()),
        some(Field::Refusal, text(200).boxed()),
        option::weighted(0.2, arguments()),
        some(Field::Audio(None), text(30).boxed()),
    );
    all.prop_map(|(reasoning, details, extra, call, refusal, arguments, audio)| {
        let name = arguments.as_ref().map(|_| (Field::FunctionName, "lookup".to_owned()));
        let arguments = arguments.map(|text| (Field::FunctionArguments, text));
        [reasoning, details, extra, call, refusal, name, arguments, audio].into_iter().flatten().collect()
    })
}

/// What is wrong with a group of calls.
#[derive(Debug, Clone, Copy)]
enum Fault {
    LostResult,
    LostCall,
    Twice,
    SameIds,
    NoId,
    EmptyId,
    NoName,
    NoArguments,
    EmptyArguments,
    BrokenArguments,
    ArgumentsNotText,
    ResultWithoutId,
    UserBetween,
    FunctionBehindResult,
    FunctionBehindUser,
}

fn broken_turn() -> impl Strategy<Value = Vec<Owned>> {
    use Fault::*;
    const FAULTS: [Fault; 15] = [
        LostResult,
        LostCall,
        Twice,
        SameIds,
        NoId,
        EmptyId,
        NoName,
        NoArguments,
        EmptyArguments,
        BrokenArguments,
        ArgumentsNotText,
        ResultWithoutId,
        UserBetween,
        FunctionBehindResult,
        FunctionBehindUser,
    ];
    let thoughts = (option::weighted(0.1, text(100)), option::weighted(0.1, text(100)));
    (calls(arguments().boxed()), select(&FAULTS[..]), text(300), thoughts).prop_map(
        |(mut group, fault, text, (reasoning, thinking))| {
            match fault {
                LostResult => drop(group.pop()),
                LostCall => drop(group.remove(0)),
                Twice => group.push(group[1].clone()),
                SameIds => {
                    let id = group[0].calls[0].id.clone();
                    group[0].calls.iter_mut().for_each(|call| call.id.clone_from(&id));
                    group[1..].iter_mut().for_each(|result| result.tool_call_id.clone_from(&id));
                }
                NoId => group[0].calls[0].id = None,
                EmptyId => group[0].calls[0].id = Some(String::new()),
                NoName => group[0].calls[0].name = None,
                NoArguments => group[0].calls[0].arguments = None,
                EmptyArguments => group[0].calls[0].arguments = Some(" ".to_owned()),
                BrokenArguments => group[0].calls[0].arguments = Some(format!("{{\"path\": \"{text}")),
                ArgumentsNotText => group[0].calls[0].arguments_are_text = false,
                ResultWithoutId => group[1].tool_call_id = None,
                UserBetween => group.insert(1, Owned::new(Role::User, text)),
                FunctionBehindResult => group.push(Owned::new(Role::Function, text)),
                FunctionBehindUser => {
                    group = vec![Owned::new(Role::User, "go"), Owned::new(Role::Function, text)];
                }
            }
            // Fields on messages where no provider puts them.
            if let Some(last) = group.last_mut() {
                last.fields.extend(reasoning.map(|text| (Field::ReasoningContent, text)));
                last.fields.extend(thinking.map(|text| (Field::ThinkingBlocks, text)));
            }
            group
        },
    )
}
