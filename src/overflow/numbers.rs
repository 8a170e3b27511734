//! Reads the limit and the used tokens that an error states.
//!
//! Each form has other words around the two numbers, so they are found by role: first the limit, whose number is then struck
//! out, then the used tokens, then the numbers that are left.

use std::ops::Range;
use std::sync::LazyLock;

use regex::bytes::Regex;

use super::patterns::compile;

/// Smaller numbers are indexes and statuses, larger ones bytes and ids (hermes).
const PLAUSIBLE: std::ops::RangeInclusive<u64> = 1_024..=10_000_000;

/// The smallest window of a local server; from here on a number counts if the words beside it say what it is.
const SMALLEST: u64 = 256;

/// Plausible body limits; a smaller number means something else.
const BODY_BYTES: std::ops::RangeInclusive<f64> = 8_192.0..=1e12;

/// Plausible limits on the number of messages.
const MESSAGES: std::ops::RangeInclusive<u64> = 2..=1_000_000;

/// Codes that zhipu and `MiniMax` print behind the message, as "context window exceeds limit (2013)".
const ERROR_CODES: &[u64] = &[1039, 1210, 1213, 1214, 1261, 2013];

/// `limit_tokens` and `used_tokens`.
pub(super) type LimitAndUsed = (Option<u64>, Option<u64>);

const LIMITS: &[&str] = &[
    r"(?:>|<=|≤) ?(\d+)",
    // Behind the parts of a sum: "(prompt 68996 + max_tokens 8192) exceeds model context 65536".
    r"(?:>|\bexceed\w*)[^\d\n:]{1,40}\b(?:context|sequence|window|max_(?:model|seq)_len)[^\d\n:]{0,16}(\d+)",
    r"\bmax(?:imum)?(?: \w+){0,4}?(?: (?:is|of|for|at|to))?(?: only)?:? ?[(\[]?(\d+)",
    r"limit(?: (?:is|of|to))?:? ?\(?(\d+)",
    r"limit for this model is (\d+)",
    r"context[ _](?:length|window|size|limit)(?: (?:is|of))?(?: only)?:? ?\(?(\d+)",
    r"context (?:window |length )?is full:? \(?(\d+)",
    r"\bslot context:? (\d+)",
    r"\bn_ctx\w*\W{1,4}(\d+)",
    r"\bmax_(?:model|seq)_len\W{1,4}(\d+)",
    r"\bsession[ _]len(?:gth)?(?: (?:is|of))?:? ?\(?(\d+)",
    r"\bmax_length is set to (\d+)",
    r"(\d+)(?:[ -]tokens?)?[ -](?:max|limit|context|window)",
    r"(?:less|fewer|lower|smaller|shorter) (?:than )?(?:or equal (?:to )?)?\(?(\d+)",
    r"(?:at most|up to|not exceed|exceeds|exceeded|allowed:?|capacity of|supports?) \(?(\d+)",
    r"\[\d+, ?(\d+)\]",
    r"(?:最大|上限|限制|不超过|不能超过|最多|超过|超出|大于)[^\d\n]{0,40}?(\d+)",
    r"(?:лимит|максимум|предел)[^\d\n]{0,40}?(\d+)",
    r"\bfits (\d+)",
    r"(?:\blimite|kontextfenster|fenêtre|finestra|ventana|janela)[^\d\n]{0,40}?(\d+)",
    r"максимальн[^\d\n]{0,80}?(\d+)",
    r"(?:최대|제한|한도|コンテキスト長)[^\d\n]{0,60}?(\d+)",
    r"(\d+) ?(?:토큰|トークン)?(?:을|를)? ?(?:초과|を超え)",
    r"\b(?:max|máx)[^\d\n]{0,40}?(\d+)",
];
const USED: &[&str] = &[
    r"(\d+) in (?:the )?(?:messages|prompt|input)",
    r"(\d+) \+ ",
    r"\b(?:input_tokens|n_prompt_tokens|prompt_tokens|total_tokens|n_keep)\W{1,4}(\d+)",
    r"\binput_ids is (\d+)",
    r"\bprompt (?:is|of) (\d+) tokens",
    r"\b\w*prompt_len\W{1,4}(\d+)",
    r"\binput_token_len\W{1,4}(\d+)",
    r"\bn_tokens\W{1,4}(\d+)",
    r"\btoo long:? \(?(\d+)",
    r"(?:token count|length|prompt tokens|input tokens)(?: of| is|:)? ?\(?(\d+)",
    r"(?:passed|resulted in|contains?|has|have|had|totals?|used|uses|sent|provided|given:?|got|received)(?: (?:at least|about|approximately|around|over))? (\d+)",
    r"(\d+) (?:input |prompt |inputs )?tokens? >",
    r"requested:?(?: (?:at least|about|approximately|around|over))? (\d+)",
    r"\b(?:input|prompt|request|messages|conversation|context|history)\b[^\d\n]{0,30}?(\d+) tokens?\b",
    r"(\d+) >",
    r"(\d+) ?(?:токен|토큰|トークン)",
    r"(?:当前|实际|输入|传入|请求|共)[^\d\n]{0,30}?(\d+)",
];

static CONTEXT_LIMIT: LazyLock<Regex> = LazyLock::new(|| {
    compile(
        r"(?:context[ _](?:length|window|size|limit)(?: (?:is|of))?(?: only)?:? ?\(?|max_(?:model|seq)_len(?: is)?\W{1,4})(\d+)",
    )
});
/// Prompt and answer in one number: Cloudflare.
static SUM: LazyLock<Regex> =
    LazyLock::new(|| compile(r"\b(?:input|prompt) and (?:max(?:imum)? )?output tokens \(?(\d+)"));
static LIMIT: LazyLock<Vec<Regex>> = LazyLock::new(|| LIMITS.iter().map(|p| compile(p)).collect());
static USE: LazyLock<Vec<Regex>> = LazyLock::new(|| USED.iter().map(|p| compile(p)).collect());
/// By how much the limit was exceeded: Cohere.
static EXCEEDED_BY: LazyLock<Regex> = LazyLock::new(|| compile(r"exceeded by (\d+) tokens"));
/// Inclusive in the first group, exclusive in the second.
static ROOM: LazyLock<Regex> = LazyLock::new(|| {
    compile(
        r"(?:available_tokens:?|[\[(]\d+,|at most|up to|less (?:than )?or equal to|(?:limit|maximum|tokens|model) (?:of|is|von)|, max:?|<=|\d >|tokens >|exceeds?(?: (?:the )?(?:limit|max(?:imum)?):?)?|maximum|between \d+ and|\d+ (?:\(inclusive\) )?(?:to|到|至)|(?:above|greater|larger|higher|more)[^\d\n]{1,40}|(?:最大|上限|不超过|不能超过|不能大于|小于等于)[^\d\n]{0,30}) ?(\d+)|(?:less|lower|fewer|smaller) than (\d+)",
    )
});
/// Each names the input, so that a small number is none of the status or of an index.
static INPUT_PARTS: LazyLock<Regex> =
    LazyLock::new(|| compile(r"(\d+) (?:of \w+ input|in (?:the|your) (?:messages|prompt|functions|tools))"));
static INPUT: LazyLock<Regex> =
    LazyLock::new(|| compile(r"(\d+) (?:input|inputs|prompt) tokens\b|(\d+) tokens from the input|(\d+) \+ \d+ >"));
static NUMBER: LazyLock<Regex> = LazyLock::new(|| compile(r"\b(\d+)\b"));

/// Returns the numbers of an overflow of the input.
pub(super) fn input(text: &str) -> LimitAndUsed {
    let (numbers, rest) = in_roles(text);
    match numbers {
        // Two numbers in words we don't know: of an overflow, the larger one is what was sent.
        (None, None) => match left_over(&rest).as_slice() {
            &[a, b] if a != b => (Some(a.min(b)), Some(a.max(b))),
            _ => (None, None),
        },
        (Some(limit), None) => (Some(limit), left_over(&rest).into_iter().filter(|&value| value > limit).max()),
        (None, Some(used)) => {
            match left_over(&rest).into_iter().filter(|&value| value != used).collect::<Vec<_>>().as_slice() {
                &[limit] if limit < used => (Some(limit), Some(used)),
                _ => (None, Some(used)),
            }
        }
        known => known,
    }
}

/// Returns whether the text states a limit and a larger number that was used, whatever else it says.
pub(super) fn states_excess(text: &str) -> bool {
    matches!(in_roles(text).0, (Some(limit), Some(used)) if used > limit)
}

/// Finds the numbers beside words that give them a role; returns them and the text without the limit.
fn in_roles(text: &str) -> (LimitAndUsed, Vec<u8>) {
    let mut rest = text.as_bytes().to_vec();
    let limit = first(&LIMIT, &rest).map(|(value, range)| {
        // Wherever it stands: LiteLLM says what it was told twice.
        let digits = rest[range].to_vec();
        let numbers = NUMBER.find_iter(&rest).filter(|number| number.as_bytes() == digits);
        for range in numbers.map(|number| number.range()).collect::<Vec<_>>() {
            rest[range].fill(b' ');
        }
        value
    });
    if let Some(sum) = SUM.captures(&rest).and_then(|found| found.get(1)).map(|digits| digits.range()) {
        rest[sum].fill(b' ');
    }
    let beyond = || limit?.checked_add(value(EXCEEDED_BY.captures(&rest)?.get(1)?.as_bytes())?);
    let used = beyond().or_else(|| input_tokens(&rest));
    ((limit, used), rest)
}

/// Returns the numbers of an output cap: only those of the context, because a cap says nothing about the window.
pub(super) fn output(text: &str) -> LimitAndUsed {
    let mut rest = text.as_bytes().to_vec();
    let Some((limit, range)) = find(&CONTEXT_LIMIT, &rest) else {
        return (None, None);
    };
    rest[range].fill(b' ');
    (Some(limit), input_tokens(&rest))
}

/// Returns the largest output that an output cap's text states.
pub(super) fn output_cap(text: &str) -> Option<u64> {
    ROOM.captures_iter(text.as_bytes())
        .find_map(|found| {
            let digits = found.get(1).or(found.get(2))?;
            let is_exclusive = found.get(2).is_some() || text[digits.end()..].starts_with(" (exclusive)");
            value(digits.as_bytes())?.checked_sub(u64::from(is_exclusive))
        })
        .filter(|room| (1..=*PLAUSIBLE.end()).contains(room))
}

/// Returns the bytes that a request may have, as an error of its size states them: "exceeds the limit: 20971520 bytes", "maximum
/// size of 32 MB".
pub(super) fn limit_bytes(text: &str) -> Option<u64> {
    static LIMIT_BYTES: LazyLock<Regex> = LazyLock::new(|| {
        compile(
            r"(?:limit|max(?:imum)?|allowed|at most|exceeds?|larger than|greater than|more than|up to|>|最大|上限|超过|超出|限制)[^\n\d]{0,40}(\d+(?:\.\d+)?)[ -]?(bytes?|字节|[kmg]i?b|[kmg])?(?:[^a-z0-9_]|$)",
        )
    });
    let stated = LIMIT_BYTES.captures_iter(text.as_bytes()).filter_map(|found| {
        let number: f64 = std::str::from_utf8(found.get(1)?.as_bytes()).ok()?.parse().ok()?;
        let unit = match found.get(2).map_or(&b""[..], |unit| unit.as_bytes()).first() {
            Some(b'k') => 1024.0,
            Some(b'm') => 1024.0 * 1024.0,
            Some(b'g') => 1024.0 * 1024.0 * 1024.0,
            _ => 1.0,
        };
        #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // plausible
        (BODY_BYTES.contains(&(number * unit))).then_some((number * unit) as u64)
    });
    stated.min()
}

/// Returns how many messages a request may have, as "array with maximum length 2048", "at most 100 items".
pub(super) fn limit_messages(text: &str) -> Option<u64> {
    static LIMIT_MESSAGES: LazyLock<Regex> = LazyLock::new(|| {
        compile(
            r"(?:limit|max(?:imum)?|allowed|at most|exceeds?|more than|up to|>|最大|最多|上限|超过|超出|限制)[^\n\d]{0,40}(\d+)",
        )
    });
    let stated = LIMIT_MESSAGES.captures_iter(text.as_bytes()).filter_map(|found| value(found.get(1)?.as_bytes()));
    stated.filter(|number| MESSAGES.contains(number)).min()
}

/// Returns the numbers of a rate limit, as "Limit 30000, Requested 41000". By hand: rate limits are common.
pub(super) fn rate(text: &str) -> LimitAndUsed {
    let after = |word: &str| {
        text.match_indices(word).find_map(|(at, _)| {
            let rest = text[at + word.len()..].trim_start_matches([':', ' ']);
            let digits = rest.bytes().take_while(u8::is_ascii_digit).count();
            rest[..digits].parse().ok().filter(|value| PLAUSIBLE.contains(value))
        })
    };
    (after("limit"), after("requested"))
}

/// Returns the number that the text says is the input's, the output left out.
pub(super) fn named_prompt(text: &[u8]) -> Option<u64> {
    input_parts(text).or_else(|| named_input(text))
}

/// Returns the tokens of the input, apart from the output where the text tells them apart.
fn input_tokens(text: &[u8]) -> Option<u64> {
    named_prompt(text).or_else(|| first(&USE, text).map(|(value, _)| value))
}

/// The input as it is itemised by `OpenRouter`, "(8963 of text input, 13176 of tool input, 262144 in the output)", and by
/// OpenAI, "(10979 in the messages, 3572 in the functions)".
fn input_parts(text: &[u8]) -> Option<u64> {
    let parts = INPUT_PARTS.captures_iter(text).filter_map(|found| value(found.get(1)?.as_bytes()));
    let total = parts.fold(0_u64, u64::saturating_add);
    (1..=*PLAUSIBLE.end()).contains(&total).then_some(total)
}

fn named_input(text: &[u8]) -> Option<u64> {
    let found = INPUT.captures(text)?;
    let tokens = value(found.iter().skip(1).flatten().next()?.as_bytes())?;
    (1..=*PLAUSIBLE.end()).contains(&tokens).then_some(tokens)
}

fn first(patterns: &[Regex], text: &[u8]) -> Option<(u64, Range<usize>)> {
    patterns.iter().find_map(|pattern| find(pattern, text))
}

/// Returns the first number that `pattern` captures, that counts tokens and that is plausible.
fn find(pattern: &Regex, text: &[u8]) -> Option<(u64, Range<usize>)> {
    pattern.captures_iter(text).find_map(|found| {
        let digits = found.get(1)?;
        let value = value(digits.as_bytes())?;
        is_count(text, value, digits.range()).then(|| (value, digits.range()))
    })
}

fn left_over(text: &[u8]) -> Vec<u64> {
    if !text.windows(5).any(|word| word == b"token") {
        return Vec::new();
    }
    let mut values: Vec<u64> = NUMBER
        .captures_iter(text)
        .filter_map(|found| {
            let digits = found.get(1)?;
            let value = value(digits.as_bytes())?;
            is_count(text, value, digits.range()).then_some(value)
        })
        .collect();
    values.dedup();
    values
}

fn value(digits: &[u8]) -> Option<u64> {
    std::str::from_utf8(digits).ok()?.parse().ok()
}

/// Returns whether the number at `range` counts tokens of input, as far as its surroundings tell.
fn is_count(text: &[u8], value: u64, range: Range<usize>) -> bool {
    static OTHER_UNIT: LazyLock<Regex> = LazyLock::new(|| {
        compile(
            r"^\)? ?(?:char|byte|[kmg]i?b\b|word|pixel|字符|字节|字\b|output|completion|in the (?:completion|output)|seconds|ms\b|of \w+ output)|^[\w-]*[a-z_]",
        )
    });
    let is_code = ERROR_CODES.contains(&value) && text[..range.start].ends_with(b"(");
    let is_excess = text[..range.start].ends_with(b"by ");
    // ERNIE limits the characters of a message.
    let is_characters =
        [&b"question is "[..], b"chars is ", b"characters is "].iter().any(|&word| text[..range.start].ends_with(word));
    let rest = &text[range.end..];
    let is_other = !rest.starts_with(b"-token") && OTHER_UNIT.is_match(rest);
    let is_plausible =
        PLAUSIBLE.contains(&value) || (SMALLEST..*PLAUSIBLE.start()).contains(&value) && is_named(text, range);
    is_plausible && !is_code && !is_excess && !is_characters && !is_other
}

/// Returns whether the words around the small number at `range` say that it counts tokens or is a window.
fn is_named(text: &[u8], range: Range<usize>) -> bool {
    static BEFORE: LazyLock<Regex> = LazyLock::new(|| {
        compile(
            r"(?:(?:context|model|prompt|input|maximum)[ _](?:length|window|size|limit)|max_(?:model|seq)_len|n_ctx\w*)(?: is| of|:)?(?: only)? ?\(?$",
        )
    });
    static BEHIND: LazyLock<Regex> = LazyLock::new(|| compile(r"^ (?:(?:input|prompt) )?tokens?\b|^ max"));
    BEFORE.is_match(&text[..range.start]) || BEHIND.is_match(&text[range.end..])
}
