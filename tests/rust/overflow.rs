//! What providers say, and what is said by others: the verdict on each.

use nanobot_context::overflow::OverflowKind::{Input, Messages, OutputCap, RateCeiling, Reasoning, RequestBytes};
use nanobot_context::overflow::{ErrorView, Overflow, OverflowKind, detect_overflow};
use nanobot_context::tokens::Tokens;

fn failed(status: u16, text: &str) -> ErrorView<'_> {
    ErrorView { text, status: Some(status), ..ErrorView::default() }
}

fn limit(overflow: &Overflow) -> Option<u64> {
    overflow.limit_tokens.map(|tokens| tokens.0)
}

fn used(overflow: &Overflow) -> Option<u64> {
    overflow.used_tokens.map(|tokens| tokens.0)
}

/// A line of overflow.tsv.
struct Form {
    status: u16,
    limit_tokens: Option<u64>,
    used_tokens: Option<u64>,
    output_tokens: Option<u64>,
    said: &'static str,
}

/// Returns the lines of overflow.tsv that are of `kind`.
fn forms(kind: &str) -> Vec<Form> {
    let lines = include_str!("overflow.tsv").lines().filter(|line| !line.starts_with('#'));
    let lines = lines.map(|line| line.splitn(7, '\t').collect::<Vec<_>>()).filter(|columns| columns[0] == kind);
    let form = |columns: Vec<&'static str>| {
        let tokens = |at: usize| (columns[at] != "-").then(|| columns[at].parse().unwrap());
        let (limit_tokens, used_tokens, output_tokens) = (tokens(2), tokens(3), tokens(4));
        Form { status: columns[1].parse().unwrap(), limit_tokens, used_tokens, output_tokens, said: columns[6] }
    };
    lines.map(form).collect()
}

fn kind(status: u16, text: &str) -> Option<OverflowKind> {
    detect_overflow(&failed(status, text)).map(|overflow| overflow.kind)
}

/// The ways in which one message reaches us: alone, in `LiteLLM`'s words, in nanobot's repr cut at 500, in JSON in JSON.
fn wrapped(text: &str) -> [String; 5] {
    let json = text.replace('\\', r"\\").replace('"', "\\\"");
    let inner = format!(r#"{{"error":{{"message":"{json}","code":400}}}}"#).replace('\\', r"\\").replace('"', "\\\"");
    let repr = text.replace('\\', r"\\").replace('\'', r"\'");
    let repr = format!(
        "Error: {{'error': {{'message': '{repr}', 'type': 'invalid_request_error', 'param': None, 'code': None}}}}"
    );
    [
        text.to_owned(),
        format!("Error calling LLM: litellm.BadRequestError: OpenAIException - {text}"),
        repr.chars().take(500).collect(),
        format!(r#"Upstream error: {{"error":{{"message":"{inner}"}}}}"#),
        text.replace(". ", ".\n").replace(" the ", "\n  the "),
    ]
}

#[test]
fn every_providers_overflow_is_found_with_its_numbers_however_it_is_wrapped() {
    for form in forms("input") {
        let expected = Some((Input, form.limit_tokens, form.used_tokens));
        let said = |found: Option<Overflow>| found.map(|found| (found.kind, limit(&found), used(&found)));
        for text in wrapped(form.said) {
            assert_eq!(said(detect_overflow(&failed(form.status, &text))), expected, "{text}");
            let found = detect_overflow(&ErrorView { text: &text, ..ErrorView::default() });
            assert_eq!(said(found), expected, "no status: {text}");
        }
    }
}

#[test]
fn what_was_used_is_the_prompts_alone_where_the_error_says_so() {
    let head = "This model's maximum context length is 8192 tokens. However, ";
    for (text, is_prompt) in [
        ("you requested 19085 tokens (14989 in the messages, 4096 in the completion).", true),
        ("you requested 19085 tokens (10989 in the messages, 4000 in the functions, 4096 in the completion).", true),
        ("your request has 14989 input tokens.", true),
        ("your messages resulted in 14989 tokens.", false),
        ("you requested 14989 tokens.", false),
    ] {
        let found = detect_overflow(&failed(400, &format!("{head}{text}"))).unwrap();
        assert_eq!((used(&found), found.used_is_prompt), (Some(14_989), is_prompt), "{text}");
    }
}

#[test]
fn an_output_that_is_too_large_only_lowers_max_tokens() {
    for form in forms("output_cap") {
        let found = detect_overflow(&failed(form.status, form.said)).unwrap();
        assert_eq!((found.kind, found.output_tokens), (OutputCap, form.output_tokens.map(Tokens)), "{}", form.said);
    }
    let window = "max_tokens: 32768 > context_window: 200000 - input_tokens: 250000 = available_tokens: -50000";
    assert_eq!(kind(400, window), Some(Input));
    let window = "max_tokens: 32768 > context_window: 200000 - input_tokens: 190000 = available_tokens: 10000";
    assert_eq!(
        detect_overflow(&ErrorView { error_type: Some("ContextWindowExceededError"), ..failed(400, window) }),
        Some(Overflow {
            output_tokens: Some(Tokens(10_000)),
            ..Overflow::new(OutputCap, Some(Tokens(200_000)), Some(Tokens(190_000)))
        })
    );
}

#[test]
fn bytes_are_no_tokens_and_have_a_number_of_their_own() {
    let texts = [
        (413, r#"413 {"error":{"type":"request_too_large","message":"Request exceeds the maximum size"}}"#, None),
        (
            413,
            r#"{"error":{"type":"request_too_large","message":"Request exceeds the maximum size of 32 MB"}}"#,
            Some(32 << 20),
        ),
        (400, "Request payload size exceeds the limit: 20971520 bytes.", Some(20_971_520)),
        (413, "Payload too large: body is 5242881 bytes, max 5mb", Some(5 << 20)),
        (400, "Request body too large. Max size is 10,485,760 bytes", Some(10_485_760)),
        (400, "请求体过大，超过限制 6MB", Some(6 << 20)),
        (413, "<html><head><title>413 Request Entity Too Large</title></head><body>nginx</body></html>", None),
        (413, r#"github-copilot API error (413): {"message":"failed to parse request","code":""}"#, None),
        (413, "", None),
        (400, "too many total text bytes", None),
        (400, "too many total text bytes: 5000000 > 4000000", Some(4_000_000)),
    ];
    for (status, text, limit_bytes) in texts {
        let found = detect_overflow(&failed(status, text));
        assert_eq!(found, Some(Overflow { limit_bytes, ..Overflow::new(RequestBytes, None, None) }), "{text}");
    }
}

#[test]
fn too_many_messages_are_an_overflow_with_a_number_of_its_own() {
    for form in forms("messages") {
        for text in wrapped(form.said) {
            let limit_messages = form.limit_tokens;
            let found = detect_overflow(&failed(form.status, &text));
            assert_eq!(found, Some(Overflow { limit_messages, ..Overflow::new(Messages, None, None) }), "{text}");
        }
    }
}

#[test]
fn a_request_above_the_rate_will_never_pass_and_an_ordinary_rate_limit_will() {
    let ceiling =
        "Request too large for gpt-4o in organization org-1 on tokens per min (TPM): Limit 30000, Requested 41000.";
    for text in wrapped(ceiling) {
        let found = detect_overflow(&failed(429, &text));
        assert_eq!(found, Some(Overflow::new(RateCeiling, Some(Tokens(30_000)), Some(Tokens(41_000)))), "{text}");
    }
    assert_eq!(
        kind(429, "Rate limit reached on tokens per min (TPM): Limit 10000, Used 0, Requested 12000."),
        Some(RateCeiling)
    );
    assert_eq!(
        kind(
            429,
            "Rate limit reached on tokens per min (TPM): Limit 10000, Used 3403, Requested 9031. Please try again in 14s."
        ),
        None
    );
}

#[test]
fn a_size_in_bytes_is_no_number_of_tokens() {
    for (text, limit_bytes) in [
        ("total message size 2100954 exceeds limit 2097152", Some(2_097_152)),
        ("request size: 33554433 is larger than 33554432", Some(33_554_432)),
        ("Payload size of 2100954 exceeds the limit", None),
    ] {
        for text in wrapped(text) {
            let found = detect_overflow(&failed(400, &text));
            assert_eq!(found, Some(Overflow { limit_bytes, ..Overflow::new(RequestBytes, None, None) }), "{text}");
        }
    }
}

#[test]
fn other_errors_are_no_overflow_however_they_are_wrapped() {
    for form in forms("none") {
        for text in wrapped(form.said) {
            assert_eq!(kind(form.status, &text), None, "{} {text}", form.status);
        }
    }
}

#[test]
fn an_overflow_in_words_near_those_of_other_errors_is_one() {
    for text in [
        "This model's maximum context length is 8192 tokens, however you requested 9000 tokens (9000 in your prompt; 0 for the completion).",
        "Your prompt has 9000 tokens, more than the limit of 8192",
        "The request exceeds the model's context window",
        "Input token count 140000 exceeds the maximum of 131072",
        "Your token count exceeds the maximum of 8192 for this model",
        "The number of tokens in your messages exceeds the limit of 32768",
        "The input is too long: 9000 tokens, the maximum is 8192",
        "Total tokens 9000 exceed context size 8192",
        "Requested tokens (9000) exceed context window of 8192",
        "the session has 9000 tokens, which exceeds the context window of 8192",
        "this conversation exceeds the token limit of the model, start a new one",
        "Your session exceeds the context length",
        "input tokens exceed the maximum allowed input tokens of 30720",
        "The free tier of this model has a context window of 8192 tokens; your prompt has 9000 tokens",
        "prompt is too long: 204857 tokens > 200000 maximum",
        "API request failed: the prompt contains 9000 tokens, maximum context is 8192",
        "Your messages are too long for the model: 9000 tokens",
        "tokens in request: 9000, allowed: 8192; reduce the prompt",
        "Input validation error: `inputs` must have less than 4096 tokens. Given: 5000",
    ] {
        assert_eq!(kind(400, text), Some(Input), "{text}");
    }
    for text in [
        "tokens_to_generate should be less than 4096",
        "invalid params, tokens_to_generate should be less than 4096",
        "max_tokens_to_sample: 100000 > 4096, which is the maximum allowed",
        "num_predict must be at most 4096",
        "max_tokens is too large: 100000. This model supports at most 16384 completion tokens",
        "maxOutputTokens must be at most 8192",
        "max_new_tokens must be <= 1024, got 4096",
        "The requested number of output tokens exceeds the maximum of 8192",
        "completion token limit exceeded: max_completion_tokens is 100000, the model allows at most 65536",
    ] {
        assert_eq!(kind(400, text), Some(OutputCap), "{text}");
    }
}

#[test]
fn a_quoted_overflow_is_no_overflow() {
    let quotes = [
        r#"{"error":{"message":"Content filtered","code":"content_filter","prompt":"prompt is too long: 213462 tokens > 200000 maximum"}}"#,
        r#"{"error":{"code":403,"message":"Rejected","metadata":{"flagged_input":"code context_length_exceeded"}}}"#,
        r#"{"error":{"message":"Failed to call a function.","failed_generation":"{\"text\":\"context_length_exceeded\"}"}}"#,
        r#"{"error":{"message":"bad role","messages":[{"role":"x","content":"prompt is too long: 213462 tokens > 200000 maximum"}]}}"#,
        "{'detail': [{'msg': 'not a string', 'input': [{'text': 'prompt is too long: 213462 tokens > 200000 maximum'}]}]}",
        "Invalid type for 'messages[0].content': expected a list, but got 'prompt is too long: 213462 tokens > 200000 maximum'",
        "{'error': {'message': 'bad request', 'input': 'prompt is too long: 213462 tokens > 200000 max",
        "The response was filtered by the content management policy. Prompt: prompt is too long: 213462 tokens > 200000 maximum",
        "I got the error 'prompt is too long: 213462 tokens > 200000 maximum', how do I fix it?",
        "The error message \"prompt is too long: 213462 tokens > 200000 maximum\" means that the conversation is long.",
        "The logs say: context_length_exceeded. What should I do?",
        "grep found 'context_length_exceeded' in errors.py line 12",
        "The model returned an empty response: perhaps the prompt is too long or max_tokens too small.",
        "Tool exec failed: log line 42: This model's maximum context length is 8192 tokens. However, your messages resulted in 9001 tokens.",
        "Let's investigate the context overflow bug",
        "为什么我会看到 prompt is too long 这个错误？",
    ];
    for text in quotes {
        assert_eq!(detect_overflow(&ErrorView { text, ..ErrorView::default() }), None, "{text}");
        assert_eq!(kind(400, text), None, "{text}");
    }
}

#[test]
fn a_code_decides_whatever_the_text_says() {
    let error = ErrorView { code: Some("context_length_exceeded"), ..failed(400, "Rate limit? No: see code.") };
    assert_eq!(detect_overflow(&error).map(|overflow| overflow.kind), Some(Input));
    assert_eq!(kind(400, "{'error': {'message': 'Please wait.', 'code': 'context_length_exceeded'}}"), Some(Input));
    assert_eq!(
        kind(
            400,
            r#"b'{"error": {"message": "Bad", "type": "exceed_context_size_error", "n_prompt_tokens": 66202, "n_ctx": 65536}}'"#
        ),
        Some(Input)
    );
}

#[test]
fn some_forms_mean_an_overflow_with_one_provider_only() {
    let cases = [
        ("cerebras", None, "400 status code (no body)", true),
        ("openai", None, "400 status code (no body)", false),
        ("zhipu", Some("1210"), "tokens in request", true),
        ("zhipu", Some("1210"), "API 调用参数有误，请检查文档。", false),
        ("zhipu", Some("1261"), "context", true),
        ("minimax", Some("1039"), "token limit", true),
        ("openai", Some("1039"), "invalid parameter", false),
    ];
    for (provider, code, text, expected) in cases {
        let error = ErrorView { provider: Some(provider), code, ..failed(400, text) };
        assert_eq!(detect_overflow(&error).is_some(), expected, "{provider} {text}");
    }
}

#[test]
fn a_sum_that_is_too_large_is_blamed_on_its_larger_part() {
    let sum = |input: u64, output: u64| {
        let text = format!(
            "This model's maximum context length is 8192 tokens. However, you requested {} tokens ({input} in the messages, {output} in the completion).",
            input + output
        );
        let error = ErrorView { code: Some("context_length_exceeded"), ..failed(400, &text) };
        detect_overflow(&error)
            .map(|overflow| (overflow.kind, used(&overflow), overflow.output_tokens.map(|tokens| tokens.0)))
    };
    assert_eq!(sum(64, 8_192), Some((OutputCap, Some(64), Some(8_128))));
    assert_eq!(sum(4_096, 4_097), Some((OutputCap, Some(4_096), Some(4_096))));
    assert_eq!(sum(4_097, 4_096), Some((Input, Some(4_097), None)));
    assert_eq!(sum(9_000, 100), Some((Input, Some(9_000), None)));
}

#[test]
fn of_a_long_text_both_ends_are_read_and_an_echoed_prompt_is_not() {
    let padding = "lorem ipsum ".repeat(10_000);
    let overflow = "prompt is too long: 213462 tokens > 200000 maximum";
    for text in [format!("{overflow}. {padding}"), format!("{padding}. {overflow}")] {
        assert_eq!(detect_overflow(&failed(400, &text)).and_then(|overflow| limit(&overflow)), Some(200_000));
    }
    assert_eq!(kind(400, &format!("{padding}. {overflow}. {padding}")), None);
    let echo =
        format!(r#"{{"error":{{"message":"bad token","input":"{padding} {overflow}","code":"invalid_value"}}}}"#);
    assert_eq!(kind(400, &echo), None);
}

#[test]
fn json_in_strings_is_read_eight_deep() {
    let mut text = "prompt is too long: 213462 tokens > 200000 maximum".to_owned();
    for depth in 1..=8 {
        text = format!(r#"{{"error":{{"message":"{}"}}}}"#, text.replace('\\', r"\\").replace('"', "\\\""));
        assert_eq!(detect_overflow(&failed(502, &text)).and_then(|overflow| used(&overflow)), Some(213_462), "{depth}");
    }
    let nested = r#"{"base_resp":{"status_code":1039,"status_msg":"token limit"}}"#;
    assert_eq!(kind(200, nested), Some(Input));
    let escaped = r#"{"message":"\u8f93\u5165\u8d85\u8fc7\u6700\u5927\u957f\u5ea6"}"#;
    assert_eq!(kind(400, escaped), Some(Input));
}

#[test]
fn implausible_numbers_are_left_out() {
    let found = |text| detect_overflow(&failed(400, text)).map(|overflow| (limit(&overflow), used(&overflow)));
    assert_eq!(found("prompt is too long: 99999999999999999999999 tokens > 255 maximum"), Some((None, None)));
    assert_eq!(found("prompt is too long: 10000001 tokens > 255 maximum"), Some((None, None)));
    assert_eq!(found("prompt is too long: 10000000 tokens > 1024 maximum"), Some((Some(1_024), Some(10_000_000))));
}

#[test]
fn a_window_below_1024_is_read_where_it_is_named() {
    let found = |text| detect_overflow(&failed(400, text)).map(|overflow| (limit(&overflow), used(&overflow)));
    let small = Some((Some(512), Some(6_772)));
    assert_eq!(
        found("request (6772 tokens) exceeds the available context size (512 tokens), try increasing it"),
        small
    );
    assert_eq!(found("prompt is too long: 6772 tokens > 512 maximum"), small);
    assert_eq!(
        found("The prompt (length 6772) is longer than the maximum model length of 512. Make it shorter."),
        small
    );
    assert_eq!(found("the prompt is too long: n_ctx: 512, n_prompt_tokens: 6772"), small);
    assert_eq!(
        found("request (900 tokens) exceeds the available context size (256 tokens)"),
        Some((Some(256), Some(900)))
    );
    assert_eq!(found("Error code: 413 - prompt is too long"), Some((None, None)));
    assert_eq!(found("request (900 tokens) exceeds the available context size (128 tokens)"), Some((None, Some(900))));
}

#[test]
fn no_text_makes_it_panic() {
    let pieces = [
        "{",
        "}",
        "[",
        "\"",
        "'",
        "`",
        "\\",
        "\\u12",
        "\\ud83d",
        "\\xff",
        ":",
        "1,0",
        "12k",
        "\u{202f}",
        "。",
        "é",
        "token",
        "'content': [",
        "context exceed",
        " ",
        "\n",
        "(no body)",
        "🙂",
    ];
    let mut state = 0x9e37_79b9_u32;
    for _ in 0..20_000 {
        let mut text = String::new();
        for _ in 0..24 {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            text.push_str(pieces[(state >> 16) as usize % pieces.len()]);
        }
        let _ = detect_overflow(&failed(400, &text));
    }
}

#[test]
fn reasoning_that_is_missed_is_a_kind_of_its_own() {
    for text in [
        "The `reasoning_content` in the thinking mode must be passed back to the API.",
        r#"{"error":{"code":"400","message":"Param Incorrect","param":"The reasoning_content in the thinking mode must be passed back to the API.","type":""}}"#,
        "thinking is enabled but reasoning_content is missing in assistant tool call message at index 7",
        "Missing `reasoning_content` field in the assistant message at message index 2.",
        "缺少 reasoning_content 字段",
        "thinking 模式下 reasoning_content 为必填",
        "reasoning_details is required",
        "messages.1.content.0.thinking.signature: Field required",
        "messages.1.content.0.thinking: each thinking block must contain thinking",
        "preserved thinking (thinking.keep=all) requires reasoning_content on every assistant message, but assistant message \
         at index 6 is missing reasoning_content",
        "messages.1.content.0.type: Expected `thinking` or `redacted_thinking`, but found `tool_use`. When `thinking` is enabled, a final `assistant` message must start with a thinking block.",
        "messages.3.content.0: `thinking` or `redacted_thinking` blocks in the latest assistant message cannot be modified. These blocks must remain as they were in the original response.",
        "messages.1.content.0: Invalid `signature` in `thinking` block",
        "Item 'fc_1' of type 'function_call' was provided without its required 'reasoning' item: 'rs_1'.",
        "Function call is missing a thought_signature in functionCall parts. This is required for tools to work correctly.",
        "Thought signature is not valid",
        "Corrupted thought signature.",
        "messages.1.content.0: thinking block signature is invalid",
        "Reasoning content must be preserved in multi-turn tool calls",
        "messages[3]: reasoning_content must not be empty when thinking is enabled",
        "thinking content of assistant message with tool_calls must be passed back",
        "请在后续请求中传回思考内容",
        "Unable to verify reasoning item signature",
        "Invalid value at thought_signature: Base64 decoding failed",
    ] {
        for text in wrapped(text) {
            let found = detect_overflow(&failed(400, &text));
            assert_eq!(found, Some(Overflow::new(Reasoning, None, None)), "{text}");
        }
    }
    for text in [
        "Reasoning is mandatory for this endpoint and cannot be disabled.",
        "`thinking` is not supported by this model",
        "max_tokens must be greater than thinking.budget_tokens",
        "reasoning_effort must be one of low, medium, high",
    ] {
        assert_ne!(kind(400, text), Some(Reasoning), "{text}");
    }
}
