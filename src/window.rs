//! Model name to context window and output limit, from an embedded table.
//!
//! The table (`window_table.tsv`) names its date and source in its first lines; `scripts/refresh_windows.py` rewrites
//! it. It is parsed at the first lookup (2,500 lines, about 1 ms) and nothing happens before.
//!
//! # How a name is found
//!
//! Names are compared without case and with `4.5` spelled `4-5`, because Anthropic writes `claude-opus-4-5` and
//! `OpenRouter` `claude-opus-4.5`. The first of these steps that finds an entry decides:
//!
//! 1. The name itself, then what follows each `/`, then that without leading `us.` or `anthropic.`. So a gateway's own,
//!    smaller window wins where one is known (`github_copilot/claude-opus-5`), and the vendor's entry answers otherwise.
//! 2. The same again after each ending that names an edition and not another model is taken off: `:free`, `:latest`,
//!    `@20250929`, `-20250929`, `-2025-08-07`, `-0613`, `-preview`, `-v1:0`. `ft:gpt-4o:org::id` is `gpt-4o`.
//! 3. An edition of the name: `claude-3-opus` is `claude-3-opus-20240229` where only that is listed. The smallest, if
//!    several. Not for a name without a digit: `gemini-pro-latest` is not the `gemini-pro` of 2023.
//! 4. The longest entry that the name continues after `-`, `:`, `@` or `_`: `gpt-4o-mini-my-finetune` is `gpt-4o-mini`.
//!    Not if what follows could name another model (`mini`, `vl`, `32k`, `4-9`), nor if the entry has no digit.
//!
//! A window that is too small costs a few old turns, one that is too large costs the request. So a doubtful name has no
//! entry, and [`DEFAULT_CONTEXT_WINDOW`] is assumed.

use std::borrow::Cow;
use std::sync::OnceLock;

use crate::tokens::Tokens;

/// The window assumed for a model that is not in the table, in tokens.
///
/// # Source
///
/// nanobot compression plan V3.1 (`DEFAULT_CONTEXT_WINDOW`).
pub const DEFAULT_CONTEXT_WINDOW: Tokens = Tokens(128_000);

/// The output limit assumed for a model whose limit is not published, in tokens.
///
/// # Source
///
/// What nanobot asks for when not told otherwise (`LLMProvider.chat`, `max_tokens=4096`, up to 0.1.4.post4), and
/// litellm's `DEFAULT_MAX_TOKENS`.
pub const DEFAULT_OUTPUT_LIMIT: Tokens = Tokens(4_096);

const TABLE: &str = include_str!("window_table.tsv");

/// The longest name of the table has fewer than 120 bytes; a longer one than this is not looked at.
const MAX_NAME_BYTES: usize = 256;

/// Words that make another model of the name before them, usually one with a smaller window.
const VARIANT_WORDS: &str = "air asr audio base chat code coder codex distill embed embedding flash guard her image \
    large light lite live long math max medium micro mini moderation multimodal nano ocr omni \
    plus pro realtime rerank search small sonic tiny transcribe tts turbo ultra vision vl \
    voice x";

/// Tags that a gateway or a local server puts behind `:` or `@` without changing the model.
const EDITION_TAGS: &[&str] = &[
    "batch", "beta", "cloud", "default", "exacto", "extended", "floor", "free", "latest", "nitro", "online", "preview",
    "thinking",
];

/// Returns the tokens that a prompt for `model` may hold, or `None` when the model is not known.
///
/// Where a provider states a limit for the input and one for the output, this is the limit for the input (`gpt-5`:
/// 272,000 of 400,000). The first call parses the table, about 1 ms; later ones are binary searches, 0.5 to 3 µs,
/// whatever the length of `model`.
///
/// # Examples
///
/// ```
/// use nanobot_context::{tokens::Tokens, window::context_window};
///
/// assert_eq!(context_window("anthropic/claude-opus-4-5"), Some(Tokens(200_000)));
/// assert_eq!(context_window("openrouter/anthropic/claude-opus-4.5:free"), Some(Tokens(200_000)));
/// assert_eq!(context_window("my-own-model"), None);
/// ```
#[must_use]
pub fn context_window(model: &str) -> Option<Tokens> {
    resolve(model).map(|entry| entry.window)
}

/// Returns the most tokens that `model` writes in one answer, or `None` when that is not published.
///
/// A cap for `max_tokens`, not an amount to set aside: for some models it is as large as the window itself.
#[must_use]
pub fn output_limit(model: &str) -> Option<Tokens> {
    resolve(model).and_then(|entry| entry.output)
}

/// Returns `override_tokens` where one is given, 0 included, else the window of `model`, else
/// [`DEFAULT_CONTEXT_WINDOW`].
///
/// # Examples
///
/// ```
/// use nanobot_context::{tokens::Tokens, window::get_context_window};
///
/// assert_eq!(get_context_window("my-own-model", None), Tokens(128_000));
/// assert_eq!(get_context_window("claude-opus-4-5", Some(Tokens::ZERO)), Tokens::ZERO);
/// ```
#[must_use]
pub fn get_context_window(model: &str, override_tokens: Option<Tokens>) -> Tokens {
    override_tokens.or_else(|| context_window(model)).unwrap_or(DEFAULT_CONTEXT_WINDOW)
}

/// Returns the output limit of `model`, or [`DEFAULT_OUTPUT_LIMIT`] where it is not published.
#[must_use]
pub fn get_output_limit(model: &str) -> Tokens {
    output_limit(model).unwrap_or(DEFAULT_OUTPUT_LIMIT)
}

/// One line of the table.
struct TableEntry {
    /// Folded, as [`fold`] returns it.
    name: Cow<'static, str>,
    window: Tokens,
    output: Option<Tokens>,
}

/// Returns the table, sorted by folded name.
fn entries() -> &'static [TableEntry] {
    static ENTRIES: OnceLock<Vec<TableEntry>> = OnceLock::new();
    ENTRIES.get_or_init(|| {
        let mut entries: Vec<TableEntry> = TABLE.lines().filter_map(parse_line).collect();
        // The file is sorted by the names as they are spelled, so this has little to do.
        entries.sort_by(|a, b| a.name.cmp(&b.name));
        entries
    })
}

fn parse_line(line: &'static str) -> Option<TableEntry> {
    if line.starts_with('#') {
        return None;
    }
    let mut columns = line.split('\t');
    Some(TableEntry {
        name: fold(columns.next()?),
        window: Tokens(columns.next()?.parse().ok()?),
        output: columns.next()?.parse().ok().map(Tokens),
    })
}

/// Returns `name` in the spelling that is compared: ASCII lower case, a dot between digits as `-`.
fn fold(name: &str) -> Cow<'_, str> {
    let bytes = name.as_bytes();
    let is_decimal_dot = |at: usize| {
        bytes[at] == b'.'
            && at.checked_sub(1).is_some_and(|before| bytes[before].is_ascii_digit())
            && bytes.get(at + 1).is_some_and(u8::is_ascii_digit)
    };
    if !(0..bytes.len()).any(|at| bytes[at].is_ascii_uppercase() || is_decimal_dot(at)) {
        return Cow::Borrowed(name);
    }
    name.char_indices()
        .map(|(at, character)| if is_decimal_dot(at) { '-' } else { character.to_ascii_lowercase() })
        .collect()
}

fn resolve(model: &str) -> Option<&'static TableEntry> {
    let model = model.trim();
    if model.is_empty() || model.len() > MAX_NAME_BYTES {
        return None;
    }
    let folded = fold(model);
    let name = fine_tuned_base(&folded).unwrap_or(&folded);

    let mut edition = Cow::Borrowed(name);
    loop {
        if let Some(entry) = suffixes(&edition).find_map(exact) {
            return Some(entry);
        }
        match without_edition(&edition) {
            Some(shorter) => edition = Cow::Owned(shorter),
            None => break,
        }
    }
    suffixes(&edition).find_map(smallest_edition).or_else(|| suffixes(name).find_map(longest_prefix))
}

/// Returns the model that `ft:MODEL:org:name:id` was tuned from.
fn fine_tuned_base(name: &str) -> Option<&str> {
    name.rsplit('/').next()?.strip_prefix("ft:")?.split(':').next()
}

/// Yields `name`, then what is left after each `/`, and of each what is left after leading `us.` or `anthropic.`.
fn suffixes(name: &str) -> impl Iterator<Item = &str> {
    let after_slashes = std::iter::successors(Some(name), |rest| Some(rest.split_once('/')?.1));
    after_slashes
        .flat_map(|rest| std::iter::successors(Some(rest), |rest| after_vendor(rest)))
        .filter(|suffix| !suffix.is_empty())
}

fn after_vendor(name: &str) -> Option<&str> {
    let (vendor, rest) = name.split_once('.')?;
    let is_word = !vendor.is_empty() && vendor.bytes().all(|b| b.is_ascii_lowercase() || b == b'-' || b == b'_');
    is_word.then_some(rest)
}

fn exact(name: &str) -> Option<&'static TableEntry> {
    let entries = entries();
    let at = entries.binary_search_by(|entry| entry.name.as_ref().cmp(name)).ok()?;
    entries.get(at)
}

/// Returns `name` with the last edition mark taken off, or `None` when it has none.
fn without_edition(name: &str) -> Option<String> {
    let (head, tail) = name.split_at(last_segment(name));
    let shorter = without_tag(tail).or_else(|| {
        ["-latest", "-preview", "-experimental", "-exp", "-beta"]
            .iter()
            .find_map(|word| tail.strip_suffix(word))
            .or_else(|| without_date(tail))
            .map(str::to_owned)
    })?;
    (!shorter.is_empty()).then(|| format!("{head}{shorter}"))
}

/// Returns where the part behind the last `/` begins.
fn last_segment(name: &str) -> usize {
    name.rfind('/').map_or(0, |slash| slash + 1)
}

/// Takes off `:free`, `@latest`, `@20250929` and Bedrock's `-v1:0`; makes Ollama's `gpt-oss:20b` `gpt-oss-20b`.
fn without_tag(name: &str) -> Option<String> {
    let (head, tag) = name.rsplit_once([':', '@'])?;
    if tag.bytes().all(|b| b.is_ascii_digit()) {
        let version = head.rfind("-v").filter(|&at| {
            let number = &head[at + 2..];
            name.as_bytes()[head.len()] == b':' && !number.is_empty() && number.bytes().all(|b| b.is_ascii_digit())
        });
        return Some(head[..version.unwrap_or(head.len())].to_owned());
    }
    if EDITION_TAGS.contains(&tag) {
        return Some(head.to_owned());
    }
    let is_size = tag.as_bytes().first().is_some_and(u8::is_ascii_digit);
    is_size.then(|| format!("{head}-{tag}"))
}

/// Takes off a date, as far as the digits are one: `-20250929`, `-2025-08-07`, `-08-2024`, `-05-20`, `-0613`, `-2507`,
/// or a serial number such as `-001`.
fn without_date(name: &str) -> Option<&str> {
    let (rest, last) = split_number(name)?;
    let day_or_month = |text: &str| text.len() == 2 && in_range(text, 1, 31);
    match last.len() {
        8 => (in_range(&last[..4], 2019, 2099) && in_range(&last[4..6], 1, 12) && in_range(&last[6..], 1, 31))
            .then_some(rest),
        6 => (in_range(&last[..2], 20, 40) && in_range(&last[2..4], 1, 12) && in_range(&last[4..], 1, 31))
            .then_some(rest),
        4 if in_range(last, 2019, 2099) => {
            let (rest, month) = split_number(rest)?;
            day_or_month(month).then_some(rest)
        }
        4 => {
            let month_day = in_range(&last[..2], 1, 12) && in_range(&last[2..], 1, 31);
            let year_month = in_range(&last[..2], 20, 40) && in_range(&last[2..], 1, 12);
            (month_day || year_month).then_some(rest)
        }
        3 => last.starts_with("00").then_some(rest),
        2 if day_or_month(last) => {
            let (rest, month) = split_number(rest)?;
            if !day_or_month(month) {
                return None;
            }
            match split_number(rest) {
                Some((rest, year)) if year.len() == 4 && in_range(year, 2019, 2099) => Some(rest),
                _ => Some(rest),
            }
        }
        _ => None,
    }
}

/// Splits `name-123` into `name` and `123`.
fn split_number(name: &str) -> Option<(&str, &str)> {
    name.rsplit_once('-')
        .filter(|(rest, digits)| !rest.is_empty() && !digits.is_empty() && digits.bytes().all(|b| b.is_ascii_digit()))
}

fn in_range(digits: &str, low: u32, high: u32) -> bool {
    digits.parse().is_ok_and(|number: u32| (low..=high).contains(&number))
}

/// Returns the smallest entry that is `name` and an edition mark.
fn smallest_edition(name: &str) -> Option<&'static TableEntry> {
    if !has_digit(&name[last_segment(name)..]) {
        return None;
    }
    let entries = entries();
    let start = entries.partition_point(|entry| entry.name.as_ref() < name);
    entries[start..]
        .iter()
        .take_while(|entry| entry.name.starts_with(name))
        .filter(|entry| bare_edition(&entry.name).as_deref() == Some(name))
        .min_by_key(|entry| entry.window)
}

/// Returns `name` with all edition marks taken off, or `None` when it has none.
fn bare_edition(name: &str) -> Option<String> {
    std::iter::successors(without_edition(name), |shorter| without_edition(shorter)).last()
}

/// Returns the longest entry that `name` continues, unless the rest could make another model of it.
fn longest_prefix(name: &str) -> Option<&'static TableEntry> {
    let segment = last_segment(name);
    name.char_indices()
        .rev()
        .take_while(|&(at, _)| at > segment)
        .filter(|&(_, character)| is_separator(character))
        .filter(|&(at, _)| has_digit(&name[segment..at]))
        .find_map(|(at, _)| Some((exact(&name[..at])?, &name[at + 1..])))
        .filter(|(_, rest)| rest.split(is_separator).all(|word| !makes_another_model(word)))
        .map(|(entry, _)| entry)
}

fn is_separator(character: char) -> bool {
    matches!(character, '-' | ':' | '@' | '_')
}

/// Whether a word could be a size (`32k`, `8x7b`), a version (`9`, `v2`) or a variant (`mini`); four digits and more
/// are taken for a date.
fn makes_another_model(word: &str) -> bool {
    let is_date = word.len() >= 4 && word.bytes().all(|b| b.is_ascii_digit());
    VARIANT_WORDS.split(' ').any(|variant| variant == word) || (!is_date && has_digit(word))
}

fn has_digit(text: &str) -> bool {
    text.bytes().any(|b| b.is_ascii_digit())
}
