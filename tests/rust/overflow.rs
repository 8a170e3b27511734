//! What providers say, and what is said by others: the verdict on each.

use nanobot_context::overflow::OverflowKind::{Input, OutputCap, RateCeiling, RequestBytes};
use nanobot_context::overflow::{ErrorView, Overflow, OverflowKind, detect_overflow};

fn failed(status: u16, text: &str) -> ErrorView<'_> {
    ErrorView { text, status: Some(status), ..ErrorView::default() }
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

const INPUT: &[(&str, &str, Option<u64>, Option<u64>)] = &[
    ("anthropic", "prompt is too long: 204857 tokens > 200000 maximum", Some(200_000), Some(204_857)),
    (
        "anthropic",
        "input length and `max_tokens` exceed context limit: 190000 + 32000 > 200000",
        Some(200_000),
        Some(190_000),
    ),
    ("anthropic", "Request size exceeds model context window", None, None),
    ("openai", "Your input exceeds the context window of this model.", None, None),
    (
        "openai",
        "This model's maximum context length is 8192 tokens. However, your messages resulted in 9031 tokens.",
        Some(8_192),
        Some(9_031),
    ),
    (
        "openai",
        "Input tokens exceed the configured limit of 922,000 tokens. Your messages resulted in 1,055,751 tokens.",
        Some(922_000),
        Some(1_055_751),
    ),
    (
        "openai, functions",
        "This model's maximum context length is 8192 tokens. However, your messages resulted in 14551 tokens (10979 in the messages, 3572 in the functions). Please reduce the length of the messages or functions.",
        Some(8_192),
        Some(14_551),
    ),
    (
        "deepseek",
        "This model's maximum context length is 65536 tokens. However, you requested 70503 tokens (66407 in the messages, 4096 in the completion).",
        Some(65_536),
        Some(66_407),
    ),
    (
        "litellm",
        "Requested token count exceeds the model's maximum context length of 131072 tokens.",
        Some(131_072),
        None,
    ),
    (
        "google",
        "The input token count (1200000) exceeds the maximum number of tokens allowed (1048576).",
        Some(1_048_576),
        Some(1_200_000),
    ),
    (
        "xai",
        "This model's maximum prompt length is 256000 but the request contains 300123 tokens.",
        Some(256_000),
        Some(300_123),
    ),
    ("groq", "Please reduce the length of the messages or completion.", None, None),
    (
        "openrouter",
        "This endpoint's maximum context length is 128000 tokens. However, you requested about 131205 tokens (123205 of text input, 8000 in the output).",
        Some(128_000),
        Some(123_205),
    ),
    (
        "poolside",
        "Input length 131393 exceeds the maximum allowed input length of 131040 tokens.",
        Some(131_040),
        Some(131_393),
    ),
    (
        "together",
        "The input (516368 tokens) is longer than the model's context length (262144 tokens).",
        Some(262_144),
        Some(516_368),
    ),
    (
        "tgi",
        "Input validation error: `inputs` tokens + `max_new_tokens` must be <= 8192. Given: 9000 `inputs` tokens and 100 `max_new_tokens`",
        Some(8_192),
        Some(9_000),
    ),
    (
        "llama.cpp",
        "request (66202 tokens) exceeds the available context size (65536 tokens), try increasing it",
        Some(65_536),
        Some(66_202),
    ),
    ("llama.cpp", "Context size has been exceeded.", None, None),
    ("llama.cpp", "slot context: 8192 tokens, prompt 9000 tokens", Some(8_192), Some(9_000)),
    (
        "lm studio",
        "The number of tokens to keep from the initial prompt is greater than the context length (n_keep: 10978 >= n_ctx: 8192).",
        Some(8_192),
        Some(10_978),
    ),
    ("copilot", "prompt token count of 140000 exceeds the limit of 128000", Some(128_000), Some(140_000)),
    ("github", "Request body too large for gpt-4o model. Max size: 8000 tokens.", Some(8_000), None),
    ("minimax", "invalid params, context window exceeds limit (2013)", None, None),
    (
        "kimi",
        "Invalid request: Your request exceeded model token limit: 131072 (requested: 140000)",
        Some(131_072),
        Some(140_000),
    ),
    (
        "ds4",
        "Prompt has 5,958,968 tokens, but the configured context size is 256,000 tokens",
        Some(256_000),
        Some(5_958_968),
    ),
    (
        "mistral",
        "Prompt contains 140000 tokens and 0 draft tokens, too large for model with 131072 maximum context length",
        Some(131_072),
        Some(140_000),
    ),
    ("z.ai", "tokens in request more than max tokens allowed", None, None),
    ("z.ai", "Unhandled stop reason: model_context_window_exceeded", None, None),
    ("zhipu", "Prompt exceeds max length", None, None),
    (
        "dashscope",
        "<400> InternalError.Algo.InvalidParameter: Range of input length should be [1, 30720]",
        Some(30_720),
        None,
    ),
    ("ollama", "prompt too long; exceeded max context length by 100918 tokens", None, None),
    (
        "vllm",
        "The decoder prompt (length 40000) is longer than the maximum model length of 32768.",
        Some(32_768),
        Some(40_000),
    ),
    (
        "vllm",
        "This model's maximum context length is 65536 tokens. However, you requested 4096 output tokens and your prompt contains at least 65537 input tokens.",
        Some(65_536),
        Some(65_537),
    ),
    ("bedrock", "ValidationException: Input is too long for requested model.", None, None),
    ("bedrock", "too many total text bytes", None, None),
    ("mantle", "prompt tokens (300000) exceed model maximum (262144)", Some(262_144), Some(300_000)),
    ("cohere", "total tokens exceeds the model's maximum limit of 4096", Some(4_096), None),
    ("ai21", "Prompt has too many tokens", None, None),
    ("nlp cloud", "Input text length should not exceed 250000 characters", None, None),
    ("aleph alpha", "This is longer than the model's maximum context length.", None, None),
    ("cerebras", "Current length is 9012 while limit is 8192", Some(8_192), Some(9_012)),
    (
        "siliconflow",
        "length of prompt_tokens (68957) must be less than max_seq_len (65536).",
        Some(65_536),
        Some(68_957),
    ),
    (
        "siliconflow",
        "max_total_tokens (33589) must be less than or equal to max_seq_len (32768)",
        Some(32_768),
        Some(33_589),
    ),
    ("fireworks", "The prompt is too long: 140210, model maximum context length: 131071", Some(131_071), Some(140_210)),
    ("ernie", "the max length of current question is 4800", None, None),
    ("ernie", "Prompt tokens too long", None, None),
    (
        "sglang",
        "Input length (160062 tokens) exceeds the maximum allowed length (59862 tokens).",
        Some(59_862),
        Some(160_062),
    ),
    ("transformers", "Input length of input_ids is 2061, but `max_length` is set to 2048.", Some(2_048), Some(2_061)),
    ("openai", "Requested 319487 tokens, max 300000 tokens per request", Some(300_000), Some(319_487)),
    ("spark", "token数量超过上限。对话历史+问题的字数太多，需要精简输入", None, None),
    ("nobody", "The input exceeds the predefined maximum length.", None, None),
    ("codex", "Codex ran out of room in the model's context window.", None, None),
    ("chinese", "错误：上下文过长，请减少输入", None, None),
    ("chinese", "请求的 token 数（140000）超过模型最大上下文长度（131072）", Some(131_072), Some(140_000)),
    (
        "german",
        "Die Eingabe überschreitet die maximale Kontextlänge von 131.072 Token (angefordert: 140.000)",
        Some(131_072),
        Some(140_000),
    ),
    ("japanese", "入力が最大コンテキスト長を超えています", None, None),
    // Near to those above, as other servers and other versions of them say it.
    ("sglang", "Input length must be less than or equal to 32768 tokens", Some(32_768), None),
    ("xinference", "input length should be less than or equal to 32768", Some(32_768), None),
    ("baichuan", "The total length of input_ids must be less than 32768", Some(32_768), None),
    ("generic", "The sequence length 40000 is longer than the maximum 32768", Some(32_768), Some(40_000)),
    ("generic", "Prompt length 40000 > 32768 max", Some(32_768), Some(40_000)),
    ("tgi", "max_total_tokens must be <= 32768", Some(32_768), None),
    (
        "vllm",
        "You passed 32769 input tokens and requested 512 output tokens. However, the model's context length is only 32768 tokens, resulting in a maximum input length of 32256 tokens. Please reduce the length of the input prompt.",
        Some(32_256),
        Some(32_769),
    ),
    ("vllm", "Prompt length of 40000 is longer than the maximum model length of 32768.", Some(32_768), Some(40_000)),
    ("sglang", "The prompt length (40000) is greater than the limit (32768)", Some(32_768), Some(40_000)),
    (
        "lm studio",
        "Trying to keep the first 10978 tokens when context the overflows. However, the model is loaded with context length of only 4096 tokens, which is not enough.",
        Some(4_096),
        Some(10_978),
    ),
    (
        "llama.cpp",
        "the request exceeds the available context size. try increasing the context size or enable context shift",
        None,
        None,
    ),
    ("ollama", "the input length exceeds the context length", None, None),
    (
        "bedrock",
        "Too many input tokens. Max input tokens: 8192, request input token count: 9001",
        Some(8_192),
        Some(9_001),
    ),
    (
        "vertex",
        "Unable to submit request because the input token count is 40000 but model only supports up to 32768. Reduce the input token count and try again.",
        Some(32_768),
        Some(40_000),
    ),
    (
        "cohere",
        "too many tokens: size limit exceeded by 1200 tokens. Try using shorter or fewer inputs. The limit for this model is 4096 tokens.",
        None,
        None,
    ),
    // Nobody's words: these must be understood, not known.
    (
        "paraphrase",
        "The conversation is 230,000 tokens, which does not fit into the 200,000 token context window.",
        Some(200_000),
        Some(230_000),
    ),
    ("paraphrase", "Your request has 140000 input tokens, but the maximum is 131072.", Some(131_072), Some(140_000)),
    (
        "paraphrase",
        "The total number of tokens in your messages (140,123) surpasses the model's window of 131,072.",
        Some(131_072),
        Some(140_123),
    ),
    ("paraphrase", "The input exceeds the model's maximum context", None, None),
    ("paraphrase", "context length exceeded: 150000 > 128000", Some(128_000), Some(150_000)),
    (
        "paraphrase",
        "messages: total token count 250001 must be less than or equal to 200000",
        Some(200_000),
        Some(250_001),
    ),
    (
        "paraphrase",
        "El mensaje supera la longitud máxima de contexto de 8192 tokens (9000 solicitados).",
        Some(8_192),
        Some(9_000),
    ),
    ("paraphrase", "Превышена максимальная длина контекста: 9000 токенов при лимите 8192.", Some(8_192), Some(9_000)),
    ("paraphrase", "Model context window is 128k tokens, you requested 256k tokens", Some(128_000), Some(256_000)),
];

#[test]
fn every_providers_overflow_is_found_with_its_numbers_however_it_is_wrapped() {
    for &(provider, text, limit_tokens, used_tokens) in INPUT {
        for text in wrapped(text) {
            let found = detect_overflow(&failed(400, &text));
            assert_eq!(found, Some(Overflow::new(Input, limit_tokens, used_tokens)), "{provider}: {text}");
            let found = detect_overflow(&ErrorView { text: &text, ..ErrorView::default() });
            assert_eq!(found, Some(Overflow::new(Input, limit_tokens, used_tokens)), "{provider}, no status: {text}");
        }
    }
}

const CAPS: &[(&str, &str, Option<u64>)] = &[
    (
        "anthropic",
        "max_tokens: 32768 > context_window: 200000 - input_tokens: 190000 = available_tokens: 10000",
        Some(10_000),
    ),
    ("anthropic", "max_tokens would exceed context window", None),
    (
        "vllm",
        "'max_tokens' is too large: 4096. This model's maximum context length is 8192 tokens and your request has 5000 input tokens (4096 > 8192 - 5000).",
        Some(3_192),
    ),
    (
        "volcengine",
        "The parameter `max_tokens` specified in the request are not valid: integer above maximum value, expected a value <= 4096, but got 8192 instead.",
        Some(4_096),
    ),
    (
        "openai",
        "Invalid 'max_output_tokens': integer above maximum value. Expected a value <= 128000, but got 200000 instead.",
        Some(128_000),
    ),
    (
        "openai",
        "max_tokens is too large: 6000. This model supports at most 4096 completion tokens, whereas you provided 6000.",
        Some(4_096),
    ),
    (
        "xiaomi",
        "{\"error\":{\"message\":\"Param Incorrect\",\"type\":\"upstream_error\",\"param\":\"max_tokens is too large: 1048576. This model supports at most 131072 completion tokens, whereas you provided 1048576.\",\"code\":\"400\"}}",
        Some(131_072),
    ),
    (
        "gateway",
        "Error code: 400 - {'code': 400, 'reason': 'INVALID_REQUEST_BODY', 'message': 'max_tokens (current value: 4096) must be between 0 and 4000 ', 'metadata': {}}",
        Some(4_000),
    ),
    (
        "spark",
        "Error code: 400 - {'error': {'message': 'field MaxTokens invalid, should be in [1, 65536]', 'type': 'invalid_request_error', 'param': 'max_tokens', 'code': '3'}}",
        Some(65_536),
    ),
    ("deepseek", "Invalid max_tokens value, the valid range of max_tokens is [1, 8192]", Some(8_192)),
    ("deepseek", "Invalid maxtokens value, the valid range of maxtokens is [1, 393216]", Some(393_216)),
    ("zhipu", "{\"error\":{\"code\":\"1214\",\"message\":\"max_tokens参数非法。请检查文档。\"}}", None),
    (
        "groq",
        "`max_completion_tokens` must be less than or equal to `8192`, the maximum value for `max_completion_tokens` is less than the `context_window` for this model",
        Some(8_192),
    ),
    (
        "groq",
        "{\"message\":\"max_completion_tokens must be less than or equal to 40960, the maximum value for max_completion_tokens is less than the context_window for this model\",\"type\":\"invalid_request_error\",\"param\":\"max_completion_tokens\"}",
        Some(40_960),
    ),
    (
        "deepinfra",
        "Upstream error from DeepInfra: max_tokens=131072 cannot be greater than max_model_len=max_total_tokens=28672. Please request fewer output tokens. (parameter=max_tokens, value=131072)",
        Some(28_672),
    ),
    (
        "vllm",
        "'max_tokens' or 'max_completion_tokens' is too large: 65536. This model's maximum context length is 65536 tokens and your request has 10969 input tokens (65536 > 65536 - 10969). (parameter=max_tokens, value=65536)",
        Some(54_567),
    ),
    (
        "vllm",
        "'max_tokens' or 'max_completion_tokens' is too large: 8192. This model's maximum context length is 8192 tokens and your request has 100 input tokens (8192 > 8192 - 100).",
        Some(8_092),
    ),
    (
        "vllm",
        "This model's maximum context length is 32768 tokens. However, you requested 32000 output tokens and your prompt contains at least 4879 input tokens, for a total of at least 36879 tokens. Please reduce the length of the input prompt or the number of requested output tokens.",
        Some(27_889),
    ),
    (
        "cohere",
        "max_tokens must be less than or equal to 4096, the maximum output for this model - received 8192.",
        Some(4_096),
    ),
    (
        "anthropic",
        "max_tokens: 100000 > 64000, which is the maximum allowed number of output tokens for claude-sonnet-4-20250514",
        Some(64_000),
    ),
    (
        "bedrock",
        "An error occurred (ValidationException) when calling the ConverseStream operation: The maximum tokens you requested exceeds the model limit of 2048. Try again with a maximum tokens value that is lower than 2048.",
        Some(2_048),
    ),
    (
        "bedrock",
        "ValidationException: Malformed input request: #/inferenceConfig/maxTokens: 20000 is not less or equal to 10000, please reformat your input and try again.",
        Some(10_000),
    ),
    (
        "bedrock",
        "Malformed input request: #/textGenerationConfig/maxTokenCount: 9000 is not less or equal to 8192, please reformat your input and try again.",
        Some(8_192),
    ),
    (
        "bedrock",
        "Malformed input request: #/max_gen_len: 4096 is not less or equal to 2048, please reformat your input and try again.",
        Some(2_048),
    ),
    (
        "vertex",
        "Unable to submit request because it has a maxOutputTokens value of 655360 but the supported range is from 1 (inclusive) to 8193 (exclusive). Update the value and try again.",
        Some(8_192),
    ),
    (
        "gemini",
        "* GenerateContentRequest.generation_config.max_output_tokens: max_output_tokens 100000 is out of range [1, 65536]",
        Some(65_536),
    ),
    ("dashscope", "<400> InternalError.Algo.InvalidParameter: Range of max_tokens should be [1, 8192]", Some(8_192)),
    ("dashscope", "'max_tokens' must be in range [1,2000]", Some(2_000)),
    ("fireworks", "fireworks: HTTP 400: Requests with max_tokens > 4096 must have stream=true", Some(4_096)),
    (
        "openrouter",
        "{\"message\":\"This endpoint's maximum context length is 262000 tokens. However, you requested about 263390 tokens (658 of text input, 732 of tool input, 262000 in the output). Please reduce the length of either one, or use the context-compression plugin to compress your prompt automatically.\",\"code\":400}",
        Some(260_610),
    ),
    (
        "openai",
        "This model's maximum context length is 4097 tokens, however you requested 4182 tokens (182 in your prompt; 4000 for the completion). Please reduce your prompt; or completion length.",
        Some(3_915),
    ),
    (
        "openai",
        "{\"error\":{\"message\":\"This model's maximum context length is 8192 tokens. However, you requested 8256 tokens (64 in the messages, 8192 in the completion). Please reduce the length of the messages or completion.\",\"type\":\"invalid_request_error\",\"param\":\"messages\",\"code\":\"context_length_exceeded\"}}",
        Some(8_128),
    ),
    (
        "together",
        "Input validation error: `inputs` tokens + `max_new_tokens` must be <= 8193. Given: 60 `inputs` tokens and 8192 `max_new_tokens`",
        Some(8_133),
    ),
    (
        "sglang",
        "Requested token count exceeds the model's maximum context length of 32768 tokens. You requested a total of 40960 tokens: 8192 tokens from the input messages and 32768 tokens for the completion. Please reduce the number of tokens in the input messages or the completion to fit within the limit.",
        Some(24_576),
    ),
    (
        "anthropic",
        "input length and `max_tokens` exceed context limit: 600 + 204000 > 200000, decrease input length or `max_tokens` and try again",
        Some(199_400),
    ),
    (
        "nim",
        "[{'type': 'less_than_equal', 'loc': ('body', 'max_tokens'), 'msg': 'Input should be less than or equal to 1024', 'input': 4096, 'ctx': {'le': 1024}}]",
        Some(1_024),
    ),
    (
        "mistral",
        "{\"object\":\"error\",\"message\":{\"detail\":[{\"type\":\"less_than_equal\",\"loc\":[\"body\",\"max_tokens\"],\"msg\":\"Input should be less than or equal to 32768\",\"input\":262144,\"ctx\":{\"le\":32768}}]},\"type\":\"invalid_request_error\"}",
        Some(32_768),
    ),
    ("ai21", "max_tokens: ensure this value is less than or equal to 4096", Some(4_096)),
    ("replicate", "- input.max_tokens: Must be less than or equal to 4096", Some(4_096)),
    ("perplexity", "Requested max_tokens=8000 exceeds the model's limit of 4000", Some(4_000)),
    ("nobody", "The `max_output_tokens` value 99999 exceeds this model's output limit of 65535.", Some(65_535)),
    ("hunyuan", "参数 max_tokens 的取值范围为 1 到 4096", Some(4_096)),
    ("hunyuan", "max_tokens 不能大于 4096", Some(4_096)),
    ("nobody", "max_tokens 超过模型最大输出长度 8192", Some(8_192)),
    ("nobody", "最大输出 token 数不能超过 8192", Some(8_192)),
    ("nobody", "参数max_tokens必须小于等于4096", Some(4_096)),
    ("nobody", "max_tokens参数错误，取值范围[1,8192]", Some(8_192)),
    ("nobody", "max_tokens 过大，最大值为 16384", Some(16_384)),
    ("nobody", "max_tokens must be less than 8193", Some(8_192)),
    ("minimax", "invalid params, 'max_tokens' param should be in range (0, 196608]", Some(196_608)),
    ("baichuan", "max_tokens must be in [0, 2048]", Some(2_048)),
    ("xai", "max_completion_tokens must be at most 131072", Some(131_072)),
    ("nebius", "max_tokens cannot exceed 8192", Some(8_192)),
    ("novita", "max_tokens should be less than or equal to 16000", Some(16_000)),
    ("stepfun", "max_tokens: value 100000 is greater than the maximum 32768", Some(32_768)),
    (
        "copilot",
        "Requested output tokens 64000 exceeds the maximum output tokens of 16384 for this model",
        Some(16_384),
    ),
    ("watsonx", "the maximum new tokens cannot be larger than 4096, max_new_tokens requested: 8000", Some(4_096)),
    ("japanese", "max_tokens は 4096 以下である必要があります", None),
    ("nobody", "max_output_tokens: Number must be less than or equal to 8192", Some(8_192)),
    ("nobody", "max_tokens=99999 is above the maximum of 8192", Some(8_192)),
];

#[test]
fn an_output_that_is_too_large_only_lowers_max_tokens() {
    for &(provider, text, room) in CAPS {
        assert_eq!(kind(400, text), Some(OutputCap), "{provider}: {text}");
        assert_eq!(
            detect_overflow(&failed(400, text)).and_then(|found| found.output_tokens),
            room,
            "{provider}: {text}"
        );
    }
    assert_eq!(
        kind(400, "max_tokens: 32768 > context_window: 200000 - input_tokens: 250000 = available_tokens: -50000"),
        Some(Input)
    );
    let wrapped = ErrorView { error_type: Some("ContextWindowExceededError"), ..failed(400, CAPS[0].1) };
    assert_eq!(
        detect_overflow(&wrapped),
        Some(Overflow { output_tokens: Some(10_000), ..Overflow::new(OutputCap, Some(200_000), Some(190_000)) })
    );
}

#[test]
fn bytes_are_no_tokens_and_have_no_numbers() {
    let texts = [
        (413, r#"413 {"error":{"type":"request_too_large","message":"Request exceeds the maximum size"}}"#),
        (400, "Request payload size exceeds the limit: 20971520 bytes."),
        (413, "<html><head><title>413 Request Entity Too Large</title></head><body>nginx</body></html>"),
        (413, r#"github-copilot API error (413): {"message":"failed to parse request","code":""}"#),
        (413, ""),
    ];
    for (status, text) in texts {
        let found = detect_overflow(&failed(status, text));
        assert_eq!(found, Some(Overflow::new(RequestBytes, None, None)), "{text}");
    }
}

#[test]
fn a_request_above_the_rate_will_never_pass_and_an_ordinary_rate_limit_will() {
    let ceiling =
        "Request too large for gpt-4o in organization org-1 on tokens per min (TPM): Limit 30000, Requested 41000.";
    for text in wrapped(ceiling) {
        let found = detect_overflow(&failed(429, &text));
        assert_eq!(found, Some(Overflow::new(RateCeiling, Some(30_000), Some(41_000))), "{text}");
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

const OTHERS: &[(u16, &str)] = &[
    (429, "ThrottlingException: Too many tokens, please wait before trying again."),
    (400, "AWS Bedrock: Too many tokens per day. Please try again tomorrow."),
    (400, "This request would exceed your organization's rate limit of 40,000 input tokens per minute"),
    (400, "request reached organization TPD rate limit, current: 1506556, limit: 1500000"),
    (402, "Payment Required: request token limit exceeded for this billing plan"),
    (400, "You requested up to 65536 tokens, but can only afford 3000. Visit settings/credits"),
    (401, "Invalid token: token length exceeds the maximum allowed"),
    (400, "Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens' instead."),
    (400, "max_tokens: Input should be greater than or equal to 1"),
    (400, "max_tokens must be greater than thinking.budget_tokens"),
    (400, "Could not finish the message because max_tokens was reached. Please try again with higher max_tokens."),
    (
        400,
        "Invalid 'user': string too long. Expected a string with maximum length 64, but got a string with length 81 instead.",
    ),
    (400, "Invalid 'messages[2].tool_calls[0].id': string too long. Expected a string with maximum length 40."),
    (
        400,
        "Tool names: array too long. Expected an array with maximum length 128, but got an array with length 140 instead.",
    ),
    (400, "messages.0.content.1.image.source.base64: image exceeds 5 MB maximum: 6297404 bytes > 5242880 bytes"),
    (400, "messages.84.content.1.image: image dimensions exceed max allowed size for many-image requests: 2000 pixels"),
    (400, "messages.2: `tool_use` ids were found without `tool_result` blocks immediately after: toolu_1."),
    (400, "The cached content is of 955 tokens. The minimum token count to start caching is 1024."),
    (400, "Context window too small: minimum is 16000 tokens"),
    (429, "Extra usage is required for long context requests."),
    (400, "Reasoning is mandatory for this endpoint and cannot be disabled."),
    (500, "context deadline exceeded (Client.Timeout exceeded while awaiting headers)"),
    (500, "Error rendering prompt with jinja template: unexpected token"),
    (400, "invalid params, tool result's tool id not found (2013)"),
    (400, "400 status code (no body)"),
    (400, "Bad Request: message is too long"),
    (400, "telegram.error.BadRequest: Message is too long"),
    (400, "Bad Request: message caption is too long"),
    (400, "max_tokens must be greater than 1024"),
    (400, "max_tokens must be at least 1"),
    (400, "The parameter `max_tokens` specified in the request are not valid: expected an integer, but got a string."),
    (
        400,
        "The parameter max_tokens specified in the request are not valid: max_tokens and max_completion_tokens cannot be set at the same time.",
    ),
    (400, "Invalid value at 'generation_config.max_output_tokens' (TYPE_INT32), 99999999999"),
    (429, "当前请求过多，超过并发限制"),
    (400, "输入图片过大，超过 10MB"),
    (500, "Internal server error"),
    (400, ""),
    (400, "Your token exceeds the maximum length of 255"),
    (400, "You have reached the maximum number of tokens for your free trial"),
    (400, "You exceeded the maximum number of tokens allowed for your free trial account."),
    (400, "JWT token is too long: maximum length is 4096"),
    (400, "The access token exceeds the maximum size of 8192 bytes"),
    (400, "Bearer token too long"),
    (400, "The provided token exceeds the maximum allowed length."),
    (400, "Your session token is longer than the limit of 2048 characters"),
    (400, "id_token exceeds max length 8192"),
    (400, "API token length must not exceed 64"),
    (400, "The refresh token has exceeded its maximum lifetime"),
    (400, "Token limit for this API key has been exceeded"),
    (400, "CSRF token length exceeds limit"),
    (400, "Device token exceeds the maximum length of 255"),
    (400, "token exceeds the maximum length of 255 characters"),
    (400, "You have exceeded your monthly token allowance"),
    (400, "Your organization has used 1000000 tokens of its 1000000 token budget for this billing period"),
    (400, "Daily token limit exceeded: 500000 tokens per day"),
    (400, "Free tier users may use at most 10000 tokens; you have exceeded this limit"),
    (400, "Token quota exceeded for model gpt-4o"),
    (400, "You've hit your token limit for this week. Please wait until Monday."),
    (400, "Insufficient tokens: your wallet has 0 tokens left, the request needs 2048 tokens"),
    (400, "You have exceeded the number of tokens included in your subscription"),
    (400, "Token usage exceeds the spending limit of your workspace"),
    (400, "Rate limit exceeded: 40000 tokens in the last 60 seconds"),
    (400, "Too many tokens requested in a short period, slow down"),
    (400, "Invalid 'stop': array too long. Expected an array with maximum length 4, but got 5 instead."),
    (400, "stop sequence exceeds the maximum of 16 tokens"),
    (400, "Stop sequences must have fewer than 64 tokens"),
    (
        400,
        "Invalid 'tools[0].function.name': string too long. Expected a string with maximum length 64, but got a string with length 70 instead.",
    ),
    (400, "function description exceeds the maximum length of 1024 characters"),
    (400, "tool name too long: maximum length is 64"),
    (400, "metadata value exceeds maximum length of 512"),
    (400, "The conversation title is too long (maximum is 200 characters)"),
    (400, "user field is too long: maximum length 64"),
    (400, "image exceeds 5 MB maximum: 6291456 bytes > 5242880 bytes"),
    (400, "The image size exceeds the maximum of 8000 pixels in one dimension"),
    (400, "Audio input exceeds the maximum duration of 1500 seconds"),
    (400, "Too many images in request: 120 > 100"),
    (400, "File is too large: the limit is 512 MB"),
    (400, "batch size 300 is larger than the maximum allowed batch size 256"),
    (400, "The number of inputs exceeds the maximum of 2048 per embedding request"),
    (400, "Token limit exceeded for your account. Upgrade"),
    (400, "Token limit reached for the organization org-1"),
    (400, "Your account has exceeded its token limit"),
    (400, "The maximum number of tokens for this workspace was exceeded"),
    (400, "Token budget of the project alpha exceeded"),
    (400, "Your team has reached its token limit"),
    (400, "Field 'title' exceeds maximum length of 255"),
    (400, "metadata.note: length must be at most 512"),
    (400, "Prompt name length must be less than or equal to 64"),
    (400, "`description` length must be less than 1024"),
    (400, "input length must be greater than 0"),
    (400, "prompt_cache_key length must be at most 64"),
    (400, "Prompt template name length 80 > 64"),
    (400, "Total upload size 2100954 exceeds limit 2097152"),
    (400, "header size 9000 exceeds limit 8192"),
    (400, "The sequence length must be at least 1"),
];

#[test]
fn a_size_in_bytes_is_no_number_of_tokens() {
    for text in [
        "total message size 2100954 exceeds limit 2097152",
        "request size: 33554433 is larger than 33554432",
        "Payload size of 2100954 exceeds the limit",
    ] {
        for text in wrapped(text) {
            let found = detect_overflow(&failed(400, &text));
            assert_eq!(found, Some(Overflow::new(RequestBytes, None, None)), "{text}");
        }
    }
}

#[test]
fn other_errors_are_no_overflow_however_they_are_wrapped() {
    for &(status, text) in OTHERS {
        for text in wrapped(text) {
            assert_eq!(kind(status, &text), None, "{status} {text}");
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
        detect_overflow(&error).map(|overflow| (overflow.kind, overflow.used_tokens, overflow.output_tokens))
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
        assert_eq!(detect_overflow(&failed(400, &text)).and_then(|overflow| overflow.limit_tokens), Some(200_000));
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
        assert_eq!(
            detect_overflow(&failed(502, &text)).and_then(|overflow| overflow.used_tokens),
            Some(213_462),
            "{depth}"
        );
    }
    let nested = r#"{"base_resp":{"status_code":1039,"status_msg":"token limit"}}"#;
    assert_eq!(kind(200, nested), Some(Input));
    let escaped = r#"{"message":"\u8f93\u5165\u8d85\u8fc7\u6700\u5927\u957f\u5ea6"}"#;
    assert_eq!(kind(400, escaped), Some(Input));
}

#[test]
fn implausible_numbers_are_left_out() {
    let found =
        |text| detect_overflow(&failed(400, text)).map(|overflow| (overflow.limit_tokens, overflow.used_tokens));
    assert_eq!(found("prompt is too long: 99999999999999999999999 tokens > 255 maximum"), Some((None, None)));
    assert_eq!(found("prompt is too long: 10000001 tokens > 255 maximum"), Some((None, None)));
    assert_eq!(found("prompt is too long: 10000000 tokens > 1024 maximum"), Some((Some(1_024), Some(10_000_000))));
}

#[test]
fn a_window_below_1024_is_read_where_it_is_named() {
    let found =
        |text| detect_overflow(&failed(400, text)).map(|overflow| (overflow.limit_tokens, overflow.used_tokens));
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
