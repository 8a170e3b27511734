//! The known forms of provider errors, as one automaton.
//!
//! All patterns run over [`reading::read`](super::reading::read)'s text in one pass. In a pattern `…` stands for anything
//! within the sentence and `@` for the parameter that limits the answer. Unbounded gaps are cheap in a DFA; bounded ones
//! (`.{0,80}`) multiply its states.
//!
//! # Source
//!
//! The forms named beside the patterns: public code and issue threads of openclaw, pi, hermes, opencode, cline, strands
//! and litellm, read in 2026; not the providers' own documents.

use std::sync::LazyLock;

use regex::bytes::{Regex, RegexBuilder, RegexSet, RegexSetBuilder};

/// What a matching pattern is evidence of.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Symptom {
    /// Names the context window: an overflow even where the text also speaks of rates.
    Strong,
    /// An overflow unless the text is about something else.
    Specific,
    /// An overflow only when the call is known to have failed, or nothing is known.
    Weak,
    /// The output asked for is too large.
    Output,
    /// Input and output together are too large; outweighs `Output`.
    Combined,
    /// The request has too many bytes.
    Bytes,
    /// The number of messages.
    Count,
    /// One request above what a minute or a day allows.
    RateTooLarge,
    /// Tokens over time.
    Rate,
    /// About something else, except beside a strong sign.
    Other,
    /// Somebody else's words: the prompt was blocked, or people talk about overflows.
    Quoted,
    /// The model's reasoning, or a signature of it, is missing or was changed.
    Reasoning,
    /// Half of the last resort: what is too large.
    Subject,
    /// The other half: that it is too large.
    Excess,
    /// What it is measured in.
    Measure,
}

use Symptom::{
    Bytes, Combined, Count, Excess, Measure, Other, Output, Quoted, Rate, RateTooLarge, Reasoning, Specific, Strong,
    Subject, Weak,
};

const PATTERNS: &[(Symptom, &str)] = &[
    // Codes of OpenAI, LiteLLM, z.ai, llama.cpp, Copilot, GitHub Models, wherever they stand.
    (
        Strong,
        r"context_length_exceeded|context_?window_?exceeded|exceed_context_size|prompt_tokens_exceeded|tokens_limit_reached|(?:prompt|input)_too_long",
    ),
    // Anthropic, Ollama.
    (Strong, r"\bprompt (?:is |was )?(?:\w+ )?too (?:long|large|big)\b"),
    (Strong, r"\d tokens? > \d|\d \+ \d+ > \d"),
    // Bedrock, Mistral.
    (Strong, r"\binput is too long for|too large for model with"),
    // LiteLLM, MiniMax, llama.cpp, generic.
    (Strong, r"context[ _-]?(?:length|window|size|limit|budget)…(?:exceed|reached)"),
    // OpenAI, llama.cpp, Anthropic, Ollama, LiteLLM.
    (Strong, r"exceed…\b(?:context[ _-]?(?:length|window|size|limit|budget)|n_ctx\b)"),
    (Strong, r">=? n_ctx\b|\bn_ctx (?:is |was )?(?:overflow|exceeded|full|reached)|\boverflow…\bn_ctx\b"),
    // TensorRT-LLM: "default_max_tokens (-1000) = max_seq_len (8192) - splited_prompt_len (9192) - query_token_len (0)".
    (Strong, r"\bmax_seq_len\W{1,3}\d+\W{1,5}\w*prompt_len\b"),
    (
        Strong,
        r"supports? (?:at most|up to|only|a maximum of) \d+ tokens of context|max(?:imum)? context \(?\d+\)? (?:tokens? )?(?:was |has been |is )?(?:reached|exceeded|full)|context (?:window |length )?is full",
    ),
    // SambaNova: "The provided prompt is 6000 tokens long, so … requires a sequence length of 10096".
    (Strong, r"prompt is \d+ tokens long…\b(?:sequence|context) length"),
    (Strong, r"> (?:the )?(?:model |max(?:imum)? )?context\b|ctx_overflow\b|exceed…\bsession[ _]len"),
    (Strong, r"exceeds? (?:the |this )?model(?:'s)? context\b"),
    (Strong, r"\bprompt \d+ tokens…context (?:length|window|size|limit)"),
    // LM Studio, Together, Aleph Alpha, vLLM.
    (Strong, r"(?:longer|greater|larger|bigger|more) than…(?:context|model)[ _-](?:length|window|size|limit)"),
    // OpenAI, OpenRouter, xAI, DeepSeek, vLLM, DS4.
    (Strong, r"max(?:imum)? (?:context|prompt|model) (?:length|window|size|limit)(?: is| of|:)? \(?\d"),
    (Strong, r"prompt (?:contains|has) (?:\w+ )*\d+ tokens…(?:too large|context|maximum|limit)"),
    // TGI, Cerebras, Codex.
    (Strong, r"inputs? tokens? \+ max_new_tokens must be"),
    (Strong, r"current length is \d+ while limit is \d"),
    (Strong, r"(?:out of|no|not enough|insufficient) (?:room|space)…context"),
    (Strong, r"(?:not|n't|cannot|never|longer) fit…(?:context|window)"),
    (Strong, r"^context overflow\b|context overflow ?[:(-]"),
    // Paraphrases of "too long"; "request" and "content" too large are bytes.
    (
        Specific,
        r"\b(?:input|context|conversation|history|messages|query|document|chat|transcript)(?: \w+)? (?:is |are |was |were |has become )?(?:\w+ )?too (?:long|large|big)\b",
    ),
    // Alone it is what Telegram says of an answer that nanobot sends.
    (
        Specific,
        r"\b(?:message|text)\b…too (?:long|large|big)\b…(?:token|context|model|window|conversation)|(?:token|context|model|window)…\b(?:message|text)\b…too (?:long|large|big)\b",
    ),
    // Anthropic, of one text: the numbers say of what there is too much.
    (
        Specific,
        r"\b(?:messages?|prompt|inputs?|contents?|context|conversation|text)\b…too (?:long|large|big)\b[^\n]{0,20}\d > \d",
    ),
    (Specific, r"exceed…\b(?:input|prompt|sequence)[ _-](?:length|window|size|limit|budget)"),
    (Specific, r"(?:longer|greater|larger|bigger|more) than…\b(?:input|prompt|sequence)[ _-](?:length|size|limit)"),
    (
        Specific,
        r"\b(?:input|prompt|messages?|conversation|request)\b…\bexceed…(?:max(?:imum)?|limit|allowed)\b…\b(?:tokens?|length)\b",
    ),
    // Google, Mantle, Cohere, Copilot, OpenAI Responses, Kimi.
    (Specific, r"\btokens?\b…\bexceed…(?:max|limit|allow|capacit|permitted)"),
    (Specific, r"\b(?:max|limit)…\btokens?\b…\bexceeded"),
    (Specific, r"exceed…\b(?:token limit|\d+ tokens|tokens allowed|max(?:imum)? (?:number of )?(?:\w+ )?tokens)"),
    // z.ai.
    (
        Specific,
        r"more than (?:the )?max(?:imum)?(?: number of)? tokens|(?:longer|greater|larger|bigger|more) than…\btokens? (?:limit|max)",
    ),
    (Specific, r"context (?:length|window|size) is (?:only )?\d"),
    (Specific, r"context (?:length|window|size) of \d…(?:but|however|while|request|supplied|given|received)"),
    // Groq, vLLM, and advice alone.
    (
        Specific,
        r"(?:reduce|decrease|shorten) …\b(?:length|size|number)\b…\b(?:messages?|prompt|input|context|conversation|tokens)\b",
    ),
    (Specific, r"(?:reduce|shorten|trim|truncate) (?:your|the) (?:prompt|input|context|conversation|messages)\b"),
    (Specific, r"\b(?:prompt|context|conversation) exceeds? (?:the |its |your )?(?:max|limit|allowed)"),
    (Specific, r"failed to find a kv slot|\bn_ctx\W\d+ exceeded"),
    (Specific, r"\bkv[ -]cache (?:is |was )?(?:full|exhausted|exceeded)|\bout of kv[ -]cache"),
    (
        Specific,
        r"\b(?:ran|run|running) out of context|^out of context\b|max(?:imum)? context (?:was |has been )?reached",
    ),
    // TGI, DashScope, NLP Cloud, Anthropic, LiteLLM, AI21, Bedrock, GitHub Models.
    (Specific, r"must have (?:less|fewer) than \d+ tokens"),
    (
        Specific,
        r"(?:token count|number of tokens|(?:prompt|input|total)_tokens)…must be (?:less|lower|fewer|at most|<)",
    ),
    (Specific, r"range of input length should be|\binput (?:text )?length should (?:be|not)\b"),
    // SGLang, Xinference, TGI: rules for what the prompt may be at most, with and without what it was.
    (
        Specific,
        r"\b(?:input|prompt|sequence|messages)(?: (?:text|token|sequence|prompt|total))? length (?:must|should|can|may|has to|cannot)(?: not|not)? (?:be )?(?:less|lower|smaller|shorter|fewer|at most|no more|no longer|within|exceed|<|(?:greater|larger|longer|more) than (?:the |max))",
    ),
    (
        Specific,
        r"\blength of (?:the )?(?:input_ids|inputs?|prompt|messages|sequence)\b…(?:must|should) be (?:less|lower|smaller|shorter|at most|<)",
    ),
    (
        Specific,
        r"\b(?:input|prompt|sequence) length(?: of| is|:)? ?\(?\d+\)? ?(?:tokens\)? )?(?:>|(?:is |was )?(?:longer|greater|larger|more) than|(?:is )?(?:above|over)\b)",
    ),
    (Specific, r"\bmax_total_tokens\b…(?:must|should) be (?:less|lower|at most|<)"),
    (Specific, r"\btokens?\b…\bonly supports? up to \d"),
    (
        Specific,
        r"max(?:imum)? (?:allowed )?(?:input|prompt|sequence)(?: token)? (?:length|limit) (?:is|of)\b|context limit (?:is|of) \d|maximum context limit",
    ),
    (
        Specific,
        r"too many (?:input|prompt|total) tokens|prompt has too many tokens|too many tokens (?:in|for|per) (?:the|this|your|request|prompt)",
    ),
    (Specific, r"max(?:imum)? size:? \d+ tokens|prompt: length: 1\.\."),
    // ERNIE, transformers.
    (
        Specific,
        r"max(?:imum)? length of (?:the )?(?:current )?(?:question|prompt|input)|max input char(?:s|acters)\b|predefined max|length of input_ids is \d",
    ),
    // The servers' own words: vLLM, SiliconFlow, llama.cpp.
    (Specific, r"\bmax_model_len\b|\bmax_seq_len\b|\bn_ctx_slot\b|\bslot context\b"),
    // Gateways that know no number. "Model at capacity" and "requests exceed" are about load.
    (
        Specific,
        r"\b(?:request|input|prompt|entity|payload|conversation|messages|context|query)\b…(?:exceed|beyond|surpass|over the|(?:larger|longer|bigger|more) than)…\bmodel(?:'s|s')? (?:\w+ )?(?:capacity|capabilit|limit|can (?:handle|take|process|accept))|\b(?:request|input|prompt|entity|payload|conversation|messages|context|query)\b…(?:exceed|beyond|surpass)…\b(?:capacity|capabilities|limits?) of (?:the|this|your) (?:\w+ )?model",
    ),
    // Chinese, Japanese, Korean, Russian, German, French, Spanish, Portuguese, Italian.
    (
        Strong,
        r"上下文(?:长度|窗口|大小|限制|上限)(?:已|已经)?(?:过长|超长|太长|超过|超出|超限|溢出|达到)|(?:超过|超出|大于|超限)…上下文(?:长度|窗口|大小|限制|上限)",
    ),
    (
        Specific,
        r"(?:上下文|窗口)(?:长度|窗口|大小|空间|容量)?(?:已经|已|都|快)?(?:满|用尽|用完|耗尽|占满|不足|不够|爆)|(?:放|装|容纳|塞)不下…(?:上下文|对话|输入|内容|消息)|(?:上下文|对话|输入|内容|消息|窗口)…(?:放|装|容纳|塞)不下",
    ),
    (
        Specific,
        r"(?:上下文|输入|提示词|提示|prompt|tokens?|对话|消息|文本|内容|字数|请求内容|请求长度)…(?:过长|超长|太长|超过|超出|超限|溢出|大于|达到)",
    ),
    (
        Specific,
        r"(?:上下文|輸入|提示詞|提示|prompt|tokens?|對話|訊息|文本|內容|字數)…(?:過長|超長|太長|超過|超出|超限|溢出|大於|達到)|(?:壓縮|縮短|減少|精簡)(?:一下)?(?:上下文|輸入|對話|提示|訊息)",
    ),
    (
        Specific,
        r"(?:超过|超出|大于|超限|达到)…(?:上下文|最大长度|最大输入|长度限制|长度上限|最大…tokens?|tokens?…(?:限制|上限))",
    ),
    // OpenAI's words, translated.
    (
        Specific,
        r"(?:最大上下文|最大长度限制|最大コンテキスト|최대 컨텍스트|максимальн[^ \n]* (?:длина |размер |объем )?контекст|maximale[rs]? (?:größe des )?kontext|(?:longueur|taille|fenêtre) maximale (?:du|de) contexte|contexte maximal|(?:longitud|tamaño|ventana) máxim[ao] (?:del|de) contexto|(?:comprimento|tamanho|janela) máxim[ao] (?:do|de) contexto|contexto máximo|(?:lunghezza|dimensione|finestra) massima (?:del|di) contesto|contesto massimo)…\d…\d",
    ),
    // Not how often one may talk: 对话次数已达上限.
    (
        Specific,
        r"(?:会话|對話|对话|上下文|输入|提示词)(?:长度|長度|大小|窗口|tokens?数?)?(?:已经|已)?(?:达|達)(?:到)?(?:最大|上限|限制)|(?:対話|会話|コンテキスト)の?(?:長さ|長)…上限に達",
    ),
    (Weak, r"长度(?:已|已经)?(?:超过|超出|大于)[^\d\n]{0,9}\d{4}"),
    (Specific, r"(?:压缩|缩短|减少|精简)(?:一下)?(?:上下文|输入|对话|提示|消息|prompt)"),
    (Specific, r"(?:トークン|コンテキスト|プロンプト|入力)…(?:超え|超過|長すぎ|上回)"),
    (Specific, r"(?:토큰|컨텍스트|프롬프트|입력)…(?:초과|너무 길|깁니다)"),
    (
        Specific,
        r"(?:контекст|токен|запрос|промпт|ввод)…(?:превы|слишком длин|(?:больше|длиннее|выше) (?:допустим|разреш|максим|лимит|предел))|слишком (?:длин|много)…(?:контекст|токен|запрос|промпт|ввод)",
    ),
    (
        Specific,
        r"\b(?:demasiado (?:larg|long|grand|extens)|muito (?:long|grand|extens)|troppo (?:lung|grand)|trop (?:long|grand|volumin)|zu (?:lang|groß|umfangreich))…\b(?:tokens?|jetons)\b|\btrop de (?:jetons|tokens)|\bzu viele tokens?\b|\bdemasiados tokens|\bmuitos tokens|\btokens demais|\btroppi token",
    ),
    (Specific, r"(?:kontext|eingabe|prompt|token)…(?:überschr|zu lang|zu groß)"),
    (Specific, r"(?:contexte|entrée|prompt|invite|jetons|tokens)…(?:dépass|trop long)"),
    (
        Specific,
        r"(?:превы|überschr|dépass|exced|supera|ultrapass)…(?:контекст|токен|kontext|contexte|contexto|contesto|tokens?\b)",
    ),
    (
        Specific,
        r"(?:contexto|entrada|prompt|tokens|contesto|input)…(?:exced|excede|supera|demasiado larg|muito long|troppo lung|ultrapass)",
    ),
    (
        Weak,
        r"\btoo many tokens\b|\btokens? limit (?:was |has been )?(?:exceeded|reached)|\blength limit (?:was )?exceeded",
    ),
    (Weak, r"\b(?:prompt|tokens?|input)\b…exceed…limit of \d|\btruncating input\b|max(?:imum)? input token"),
    // Anthropic, OpenAI, vLLM, DashScope, DeepSeek, Groq, Google, Bedrock, Volcengine. A gap ends at `=`: wrappers list
    // parameters.
    (
        Output,
        r"@[^\n=]*(?:\d > (?:\d|context)|too (?:large|high|big|many)|exceed|above (?:the )?max|out of range|(?:valid|supported|allowed) range|between|less (?:than )?or equal)",
    ),
    (
        Output,
        r"@[^\n=]*(?:must|should|can|may|is|are)(?: ?not)? (?:be )?(?:less|smaller|lower|fewer|at most|<|in \[|in (?:the )?range|within|\[|no more|(?:greater|larger|higher) than (?:the |max))",
    ),
    (Output, r"@[^\n=]*\b(?:cannot|not) be (?:greater|larger|higher|more) than"),
    // DeepInfra, Perplexity; Fireworks, to a request that is not streamed.
    (Output, r"@=\d+ (?:cannot be|must be|is above|is too|exceed)|@ > \d+ must"),
    // Mistral, NVIDIA: a validator's list of places and messages.
    (Output, r"@\W*\n[^\n]*less than or equal"),
    // Cohere.
    (
        Output,
        r"max tokens must be…maximum output|max(?:imum)? output (?:length|size|limit)…\d…(?:got|requested|received) \d",
    ),
    (Output, r"range (?:of|for) max_?(?:\w+_)?tokens|maximum value (?:for|of) max_?(?:\w+_)?tokens"),
    (Output, r"(?:at most|maximum|up to)[^\n]*\b(?:completion|output) tokens\b|maximum tokens you requested exceeds"),
    (
        Output,
        r"\b(?:output|completion) tokens? (?:\(?\d[\d,]*\)? )?(?:exceeds? (?:the )?(?:model'?s )?(?:max|limit|allow|number)|(?:is|are) too (?:large|many|high)|limit (?:was |has been )?(?:exceeded|reached))",
    ),
    // "The requested output length 8192 exceeds the maximum of 4096 tokens", "Generation exceeded max tokens limit of 4096".
    (
        Output,
        r"\b(?:output|completion|generation|generated) length (?:\(?\d[\d,]*\)? )?(?:exceed|is too)|\bgeneration exceed\w* (?:the )?(?:max|limit)",
    ),
    (
        Output,
        r#"(?:^|[ \n"':,.(\[{]|，|。|：|！|模型|本次|当前|您的|的|错误)(?:输出|生成|补全|回复|回答|思考)(?:的)? ?(?:tokens?|长度) ?(?:数|数量|总数)?(?:超过|超出|大于|超限)"#,
    ),
    (Output, r"max_?(?:\w+_)?tokens…(?:范围|超过|超出|大于|过大|超限|非法|不合法|无效|最大|上限|不能|小于|以下)"),
    (
        Output,
        r"最大(?:输出|生成|补全|回复)…(?:超过|超出|大于|不能|限制|上限)|(?:输出|生成|补全)长度(?:不能|不得|不可|不应)(?:超过|大于)",
    ),
    (Output, r"(?:出力|生成)(?:トークン|長)…(?:超え|超過|上回)|\bausgabe\w*…(?:überschr|zu (?:groß|lang|hoch))"),
    (Output, r"\b(?:output|completion) tokens? must not exceed"),
    (
        Combined,
        r"(?:(?:input|prompt|inputs)\b|\b(?:input|prompt)_token)…(?:and|\+|plus) (?:the |max(?:imum)? )?(?:max_?(?:new_|output_|completion_)?tokens|output|completion)",
    ),
    // Anthropic, Google, nginx, Go, FastAPI.
    (Bytes, r"(?:request|entity|payload|body)(?: \w+)? (?:is )?too large|413 (?:content )?too large|content too large"),
    (Bytes, r"\b(?:payload|request|body|content)(?: \w+){0,2} exceed…(?:\bbytes\b|\b[kmg]i?b\b|\bsize\b)"),
    // Moonshot: "total message size 2100954 exceeds limit 2097152".
    (
        Bytes,
        r"\b(?:messages?|request|body|payload) size(?: of| is|:)? ?\(?\d+[^\n]*(?:exceed|larger than|greater than|>)",
    ),
    // Anthropic: "too many total text bytes: 5000000 > 4000000".
    (Bytes, r"too many (?:total )?(?:text )?bytes"),
    // Bedrock, of the characters of a body: "expected maxLength: 2000000, actual: 2300000".
    (Bytes, r"expected maxlength:? \d+, actual:? \d"),
    (Bytes, r"(?:请求体|报文|请求大小|请求包)…(?:过大|太大|超过|超出)"),
    // OpenAI, Groq: "Request too large for gpt-4o in organization … on tokens per min (TPM): Limit 30000, Requested 41000".
    (RateTooLarge, r"request too large for…(?:per (?:min|day|hour)|\btp[md]\b)"),
    (Rate, r"tokens per (?:min|day|hour|second)|\btp[md]\b|token rate"),
    (
        Other,
        r"rate[ _-]?limit|request rate|too many requests|throttl|\bquota|per (?:min|day|hour|second|month)|\b(?:dai|month)ly\b|\btoday\b|this (?:month|week|day|hour)|\b[tr]p[md]\b|concurren",
    ),
    (
        Other,
        r"please wait|slow down|short period|(?:try|retry) again (?:in|later|tomorrow)|please retry after|overloaded|service unavailable",
    ),
    (
        Other,
        r"billing|credit|payment|balance|usage limit|\bplan\b|subscription|insufficient_quota|extra usage|\btrial\b|allowance|spend",
    ),
    (
        Other,
        r"(?:limit|exceed|reach|allow|number)…\bfree[ -](?:tier|account)|\bfree[ -](?:tier|account)…(?:limit|exceed|reach|allow|at most)",
    ),
    (
        Other,
        r"\b(?:your|this|the|for|of) (?:account|organi[sz]ation|workspace|project|team|tenant|wallet|company|licen[sc]e|seat)\b|\bupgrade\b",
    ),
    (
        Other,
        r"un(?:supported|known|recognized|expected) (?:parameter|argument|keyword|request|value)|not supported (?:with|by|for) this model",
    ),
    (
        Other,
        r"string_above_max_length|array_above|array too long|invalid (?:user|metadata|tools?|functions?|stop|model|name)\b|user id\b|\b(?:names?|titles?|descriptions?)\b…(?:length|too long|exceed)",
    ),
    (
        Other,
        r"\b(?:image|audio|video|pdf|file|attachment)s?\b(?: \w+)?(?: is| are)? (?:exceed|too (?:large|long|many|big)|size|dimension|format|url|length|duration|page)",
    ),
    (
        Other,
        r"too many (?:image|audio|video|pdf|file|attachment)|\bpixels?\b|\b(?:image|audio|video|pdf|file|attachment)…\b(?:[kmg]b|bytes)\b",
    ),
    (
        Other,
        r"tool_use|tool_result|tool_call_id|tool_calls\b|tool calls?\b…(?:must|followed|respon)|number of tools|too many tools",
    ),
    (
        Other,
        r"api[ _]key|unauthori[sz]ed|authenticat|forbidden|access denied|permission|(?:access|auth|bearer|refresh|id|security|csrf|invalid|expired) token|token (?:has |is )?(?:expired|invalid|revoked)|\bjwt\b|\b(?:your|this|provided|device|push|session|api|reset) token (?:exceed|is\b|has\b|must|size)|\btoken exceed…\b(?:char|bytes)",
    ),
    (
        Other,
        r"\bssl\b|\btls\b|certificate|time[d]? ?out|timeout|deadline|recursion|max retries|prompt template|jinja|connection (?:error|reset|refused)",
    ),
    (
        Other,
        r"minimum|at least one|(?:greater|more|larger) than (?:or equal to )?(?:0|1|zero)\b|start caching|too small|reasoning (?:is mandatory|to be enabled)|requires reasoning",
    ),
    (Other, r"(?:higher|increas\w+|raise|larger) (?:the |your )?max|no output"),
    (
        Other,
        r"model…(?:not found|does not exist|is not available)|no such model|batch size|stop sequences?|temperature|top_p",
    ),
    (
        Other,
        r"频率|限流|并发|速率|配额|余额|每分钟|每天|每日|欠费|稍后|次数|密钥|鉴权|图片|图像|音频|视频|文件|超时|用户名|密码|名称|标题|函数名|工具名",
    ),
    // What a channel says of an answer that is sent there, and rates in other languages.
    (Other, r"飞书|企业微信|钉钉|\b(?:telegram|feishu|lark|dingtalk|wecom|discord|slack|whatsapp)\b"),
    (Other, r"毎分|分あたり|분당|в минуту|pro minute|par minute|por minuto|al minuto"),
    // Something else is too long: "The user field is too long (maximum 64 tokens)", "Request header too large".
    (
        Other,
        r"\b(?:pass ?(?:word|phrase|code)s?|(?:file|path|user|host|nick|display|folder) ?names?|names?|titles?|descriptions?|captions?|labels?|tags?|comments?|e-?mail(?: address(?:es)?)?|addresses|ur[il]s?|headers?|cookies?|(?:\w+_)?(?:keys?|ids?|identifiers?)|metadata|secrets?|signatures?|user|stop sequences?|seeds?|patterns?|regex|schemas?|(?:commit|error|status) messages?|slugs?|subjects?)(?: `[^`\n]*`)?(?: (?:field|value|string|parameter|property|line|text|length|size)s?)? (?:is |are |was |were |has |have )?(?:too (?:long|large|big)|exceed|(?:longer|larger|greater) than|(?:over|above) the)",
    ),
    // What was bought is used up.
    (
        Other,
        r"购买|套餐|充值|续费|额度|付费|订阅|资源包|流量包|试用|会员|(?:本|当|今)(?:日|月|周|天)|(?:账户|账号|用户|您的|你的|剩余|可用|免费)(?:的)? ?tokens?",
    ),
    (
        Count,
        r"(?:number of|too many|\d) (?:chat |input )?messages\b|\bmessages?[ _](?:count|number)\b|\bmessages\b…at most \d+ (?:items|elements|entries)",
    ),
    (Count, r"(?:消息|信息|message)s? ?(?:的)?(?:数量|总数|条数|个数|数目|数)|(?:条|个)消息"),
    // The length of an answer: "输出内容过长".
    (
        Other,
        r#"(?:^|[ \n"':,.(\[{]|，|。|：|！|模型|本次|当前|您的|的|错误)(?:输出|回复|回答|生成|响应)(?:的)?(?:内容|文本|结果|长度|消息|文字)*(?:过|超|太|已超|达到)"#,
    ),
    // Content filters; they may echo the prompt.
    (
        Quoted,
        r"content[ _]filter|content management policy|responsibleai|content[ _]policy|moderation|\bflagged\b|safety system|usage polic|inappropriate|content exists risk|data_inspection|was blocked|blocked by",
    ),
    (Quoted, r"敏感|违规|审核|不合规|不安全"),
    // A client's guesses about an answer without content.
    (Quoted, r"empty response|returned (?:an? )?(?:empty|no )"),
    // A tool that failed for the same reason, in a log that a tool printed.
    (Quoted, r"\btool exec\w* failed|\blog line \d"),
    // Validators that print what they were given.
    (Quoted, r"input should be a|input_value|input_type="),
    // People.
    (
        Quoted,
        r"(?:^|[ \n(,])(?:how (?:do|can|should|would) (?:i|we)|what (?:should|do|can) i|here(?:'s| is) (?:the|my|an?)|(?:the )?logs? (?:say|show)s?|why (?:do|does|did|am|is|are)|what (?:does|causes|is causing|is a)|i(?:'m| am| was| keep| just)? (?:get|got|getting|see|saw|seeing|hit)|let's|we're|can you|could you|explain|the user (?:asked|said|wrote|reports?|pasted|is)|users? (?:asked|said|wrote|pasted)|you (?:asked|said|mentioned)|debugging|investigat\w+)\b",
    ),
    (Quoted, r"怎么|为什么|什么意思|帮我|请解释|如何解决"),
    // DeepSeek, MiMo: "The `reasoning_content` in the thinking mode must be passed back to the API." Kimi: "thinking is enabled
    // but reasoning_content is missing in assistant tool call message at index 7". Source: opencode#24722, pi#4602, new-api#3121.
    (
        Reasoning,
        r"\breasoning_(?:content|details)\b…(?:must (?:not )?be|missing|required|passed back|not found|cannot be empty)",
    ),
    (
        Reasoning,
        r"(?:missing|without|requires?|lacks?)…\breasoning_content\b|(?:回传|传回|携带|带上|保留|缺失|缺少)…reasoning_content|reasoning_content…(?:缺失|缺少|必须|必填|不能为空)|(?:回传|传回|携带|带上)…思考内容|思考内容…(?:回传|传回)|\b(?:thinking|reasoning) content\b…\bmust be (?:passed|sent|given) back",
    ),
    // Anthropic: "Expected `thinking` or `redacted_thinking`, but found `tool_use`", "`thinking` … blocks in the latest assistant
    // message cannot be modified", "Invalid `signature` in `thinking` block".
    (
        Reasoning,
        r"expected `?thinking`?|\bthinking\b…\bblocks?\b…cannot be modified|invalid `?signature`? in `?thinking|thinking\.signature: field required|each thinking block must contain|\bthinking\b…\bsignature\b…(?:invalid|not valid|missing|required|corrupt)",
    ),
    // OpenAI Responses: "Item 'fc_1' of type 'function_call' was provided without its required 'reasoning' item". Google: "Function
    // call is missing a thought_signature", "Thought signature is not valid", "Corrupted thought signature."
    (
        Reasoning,
        r"without its required '?reasoning|'?reasoning'? was provided without its|missing a `?thought_signature|\bthought[ _]signature`?(?: is| was)? (?:not valid|invalid|missing|corrupt)|(?:corrupt|invalid|malformed|bad)(?:ed)? `?(?:value at )?(?:thought|thinking)[ _]signature|\breasoning item signature|\breasoning[ _]content must be (?:preserved|kept|included)|encrypted content\b…\n?…\n?…could not be (?:verified|decrypted)",
    ),
    (
        Subject,
        r"\b(?:prompt|input|inputs|context|conversation|messages?|history|request|requested|chat|transcript|window)\b|\d tokens\b…(?:too |exceed|surpass|overflow|beyond|over|than|above|fit\b|past)",
    ),
    (
        Excess,
        r"too (?:long|large|big|many)|exceed|surpass|overflow(?:s|ed|ing)\b|beyond|over the|longer than|greater than|larger than|more than|above the|bigger than|not fit|n't fit|outgrow|out of room|went past|goes past",
    ),
    (Measure, r"\btokens?\b|\bcontext (?:length|window|size|limit)|\bmax(?:imum)? context\b|\bwindow\b|\blength\b"),
];

/// Any overflow has one of these, or a character that is not ASCII: most other errors are told apart by this alone.
/// Pieces in lower case, literals all of them: those are found many bytes at a time.
const HINT: &str = r"token|context|too l|too b|too m|at m|length|exceed|er than|beyond|surpass|413|no body|max input|payload|quest size|sage size|ody size|entity|max_|maxoutput|predict|reduce|reasoning|thinking|encrypted c|trop l|kv slot|maxlength|sequence l|ctx_|thought_s|thought s|n_ctx|n't fit|trim |kv cache|jetons|\\u|\\x";

/// `max_tokens`, as each provider calls it.
const OUTPUT_PARAMETER: &str = r"\b(?:max_?(?:output_?|completion_?|new_?)?token(?:s|count)|max(?:imum)? new tokens|max_gen_len|tokens_to_generate|max_tokens_to_sample|n(?:um)?_predict)\b";

static SET: LazyLock<RegexSet> = LazyLock::new(|| {
    let sources = PATTERNS.iter().map(|(_, pattern)| pattern.replace('…', r"[^\n]*").replace('@', OUTPUT_PARAMETER));
    // A literal table; `every_pattern_compiles` compiles it.
    RegexSetBuilder::new(sources).unicode(false).size_limit(1 << 24).dfa_size_limit(1 << 23).build().unwrap_or_default()
});
static HINTS: LazyLock<Regex> = LazyLock::new(|| compile(HINT));

/// Compiles a pattern of this module's family: bytes, so that the search never needs Unicode tables.
pub(super) fn compile(pattern: &str) -> Regex {
    #[allow(clippy::expect_used, reason = "every caller passes a literal, and a test compiles all of them")]
    RegexBuilder::new(pattern).unicode(false).build().expect("a literal pattern")
}

/// Returns whether `text` is worth reading.
pub(super) fn hints(text: &str) -> bool {
    !text.is_ascii() || HINTS.is_match(text.to_ascii_lowercase().as_bytes())
}

/// The symptoms found in a text.
#[derive(Clone, Copy, Default)]
pub(super) struct Symptoms(u32);

impl Symptoms {
    /// Finds the symptoms in a text that was read. O(n).
    pub(super) fn of(text: &str) -> Self {
        Self(SET.matches(text.as_bytes()).iter().fold(0, |symptoms, at| symptoms | 1 << PATTERNS[at].0 as u32))
    }

    pub(super) fn has(self, sign: Symptom) -> bool {
        self.0 & 1 << sign as u32 != 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_pattern_compiles() {
        assert_eq!(SET.len(), PATTERNS.len());
        assert!(hints("max_tokens"));
    }
}
