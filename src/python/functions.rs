//! The functions of the package.

use std::borrow::Cow;

use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList, PyString};

use crate::compress::{self, Request};
use crate::message::{Message, ToolCall};
use crate::tokens::{Encoding, Script, Tokens};
use crate::tools::Effect;
use crate::{Error, Language, conversation, history, summary, window};

use super::arguments::{limits, model, optional_tokens, optional_whole, tokens, whole};
use super::call::Call;
use super::convert::without_surrogates;
use super::errors::{OrRaise, format_value};
use super::receipt::{Fitted, Receipt};

type Any<'a, 'py> = Option<&'a Bound<'py, PyAny>>;

/// Return the tokens that `messages` cost as a prompt for `model`, framing and `tools` included.
///
/// Exact for the families whose vocabulary ships with the package. For the others an estimate: the
/// nearest vocabulary times a factor measured for the family and the kind of text. Without a model,
/// `o200k_base`. Text that spells a special token counts as the text it is. Counts are cached by
/// content, so that a call costs what is new: O(n) in its bytes. Keys of a message that no provider reads
/// cost nothing.
///
/// Raises:
///     InvalidMessageError: A message is of a shape that no provider accepts.
///     InvalidArgumentError: Another argument cannot be used.
#[pyfunction]
#[pyo3(signature = (messages, model=None, *, tools=None))]
pub fn count_tokens<'py>(messages: &Bound<'py, PyAny>, model: Any<'_, 'py>, tools: Any<'_, 'py>) -> PyResult<Tokens> {
    Call::new(messages, model, tools)?.tokens()
}

/// Return a bound that `count_tokens` does not exceed, from lengths alone.
///
/// `None` where the vocabulary of `model` has been loaded, so that counting costs little, and where there
/// is no bound.
///
/// Raises:
///     InvalidMessageError: A message is of a shape that no provider accepts.
///     InvalidArgumentError: Another argument cannot be used.
#[pyfunction]
#[pyo3(signature = (messages, model=None, *, tools=None))]
pub fn token_bound<'py>(
    messages: &Bound<'py, PyAny>,
    model: Any<'_, 'py>,
    tools: Any<'_, 'py>,
) -> PyResult<Option<Tokens>> {
    let call = Call::new(messages, model, tools)?;
    call.with_view(|view, counter| {
        let is_loaded = counter.family().encoding.is_loaded();
        if is_loaded { None } else { counter.prompt_bound(&view.messages, call.tools.as_deref()) }
    })
}

/// Return the names of the vocabularies that this process has loaded.
#[pyfunction]
pub fn loaded_vocabularies() -> Vec<&'static str> {
    Encoding::loaded().map(Encoding::name).collect()
}

/// Return whether a request has at most `max_tokens`, as `count_tokens` counts it.
///
/// Costs less than counting: bounds are tried first, and counting ends where it is decided.
///
/// Raises:
///     InvalidMessageError: A message is of a shape that no provider accepts.
///     InvalidArgumentError: Another argument cannot be used.
#[pyfunction]
#[pyo3(signature = (messages, max_tokens, model=None, *, tools=None))]
pub fn fits<'py>(
    messages: &Bound<'py, PyAny>,
    max_tokens: &Bound<'py, PyAny>,
    model: Any<'_, 'py>,
    tools: Any<'_, 'py>,
) -> PyResult<bool> {
    let call = Call::new(messages, model, tools)?;
    let max_tokens = tokens(max_tokens, "max_tokens")?;
    call.with_view(|view, counter| {
        view.run(messages.py(), |view| counter.prompt_fits(view, call.tools.as_deref(), max_tokens))
    })?
}

/// Return the messages for the next call, with room left for the answer.
///
/// The budget is the window less the reserve: 15 % of it or `max_output_tokens`, whichever is larger;
/// tool schemas count against it. Calls and results are repaired, and what is over a limit of
/// `settings` is shortened: see `Settings`. A conversation is cut in rare large steps, each to about two
/// thirds of the budget, and between them a request begins as the one before did, so that a provider's
/// prompt cache lasts. Steps follow from the messages alone: there is nothing to save or to restore.
/// Untouched messages are the same objects, edited ones new dicts; the list that came in is not
/// changed. Where nothing is to be done, costs one look at each message. With an `archive`, the
/// originals of shortened tool results are written there first, and what stands in their place names
/// the file: see `Archive`.
///
/// Raises:
///     ContextOverflowError: System messages, tool schemas and the last message of the user alone
///         are more than that.
///     InvalidMessageError: A message is of a shape that no provider accepts, or would have to go and
///         has a block of Anthropic's (`tool_use`, `tool_result`) in a list that has `tool_calls`, too.
///     InvalidArgumentError: Another argument cannot be used.
#[pyfunction]
#[pyo3(signature = (
    messages, context_window, model=None, *, tools=None, max_output_tokens=None, settings=None, archive=None
))]
#[allow(clippy::too_many_arguments)] // keywords, for those who call it
pub fn compress_messages<'py>(
    messages: &Bound<'py, PyAny>,
    context_window: &Bound<'py, PyAny>,
    model: Any<'_, 'py>,
    tools: Any<'_, 'py>,
    max_output_tokens: Any<'_, 'py>,
    settings: Any<'_, 'py>,
    archive: Any<'_, 'py>,
) -> PyResult<Bound<'py, PyList>> {
    compress_with_receipt(messages, context_window, model, tools, max_output_tokens, settings, archive)
        .map(|(messages, _)| messages)
}

/// As `compress_messages`, with the receipt; `None` where nothing was to be done.
#[pyfunction]
#[pyo3(signature = (
    messages, context_window, model=None, *, tools=None, max_output_tokens=None, settings=None, archive=None
))]
#[allow(clippy::too_many_arguments)] // keywords, for those who call it
pub fn compress_with_receipt<'py>(
    messages: &Bound<'py, PyAny>,
    context_window: &Bound<'py, PyAny>,
    model: Any<'_, 'py>,
    tools: Any<'_, 'py>,
    max_output_tokens: Any<'_, 'py>,
    settings: Any<'_, 'py>,
    archive: Any<'_, 'py>,
) -> PyResult<(Bound<'py, PyList>, Option<Py<Receipt>>)> {
    let call = Call::new(messages, model, tools)?.with_archive(archive)?;
    let (window_tokens, limits) = (tokens(context_window, "context_window")?, limits(settings)?);
    let max_output_tokens = optional_tokens(max_output_tokens, "max_output_tokens")?;
    call.compress(&Request { max_output_tokens, ..call.request(window_tokens, limits) }, None)
}

/// Return messages below 60 % of the window, for a request that was refused as too long.
///
/// All reasoning goes, but for the signed thoughts of the newest calls; then as `fit_messages`. Below
/// that share where `max_output_tokens` needs more room. `archive` is as in `compress_messages`.
///
/// Raises:
///     ContextOverflowError: System messages, tool schemas and the last message of the user alone
///         are more than that.
///     InvalidMessageError: A message is of a shape that no provider accepts, or would have to go and
///         has a block of Anthropic's (`tool_use`, `tool_result`) in a list that has `tool_calls`, too.
///     InvalidArgumentError: Another argument cannot be used.
#[pyfunction]
#[pyo3(signature = (
    messages, context_window, model=None, *, tools=None, max_output_tokens=None, settings=None, archive=None
))]
#[allow(clippy::too_many_arguments)] // keywords, for those who call it
pub fn emergency_compress<'py>(
    messages: &Bound<'py, PyAny>,
    context_window: &Bound<'py, PyAny>,
    model: Any<'_, 'py>,
    tools: Any<'_, 'py>,
    max_output_tokens: Any<'_, 'py>,
    settings: Any<'_, 'py>,
    archive: Any<'_, 'py>,
) -> PyResult<Py<PyList>> {
    let call = Call::new(messages, model, tools)?.with_archive(archive)?;
    let (window_tokens, limits) = (tokens(context_window, "context_window")?, limits(settings)?);
    let max_output_tokens = optional_tokens(max_output_tokens, "max_output_tokens")?;
    let request = Request { max_output_tokens, ..call.request(window_tokens, limits) };
    call.emergency(&request).map(|fitted| fitted.messages)
}

/// Return `messages` within `max_tokens`, as `count_tokens` counts them.
///
/// Calls and results are repaired; nothing else is changed where that is enough. Otherwise the older
/// rounds are shortened first, the newest group of calls and results last, system messages and the
/// last message of the user never. With `above`, only messages before that index are cut: what comes
/// behind it stays, with the calls that it answers. Of `settings`, `pinned` counts. `archive` is as in
/// `compress_messages`.
///
/// Raises:
///     ContextOverflowError: System messages, tool schemas and the last message of the user alone
///         are more than that.
///     InvalidMessageError: A message is of a shape that no provider accepts, or would have to go and
///         has a block of Anthropic's (`tool_use`, `tool_result`) in a list that has `tool_calls`, too.
///     InvalidArgumentError: Another argument cannot be used.
#[pyfunction]
#[pyo3(signature = (messages, max_tokens, model=None, *, above=None, tools=None, settings=None, archive=None))]
#[allow(clippy::too_many_arguments)] // keywords, for those who call it
pub fn fit_messages<'py>(
    messages: &Bound<'py, PyAny>,
    max_tokens: &Bound<'py, PyAny>,
    model: Any<'_, 'py>,
    above: Any<'_, 'py>,
    tools: Any<'_, 'py>,
    settings: Any<'_, 'py>,
    archive: Any<'_, 'py>,
) -> PyResult<Fitted> {
    let call = Call::new(messages, model, tools)?.with_archive(archive)?;
    let max_tokens = tokens(max_tokens, "max_tokens")?;
    let above = optional_whole(above, "above")?.and_then(|above| usize::try_from(above).ok());
    let request = call.request(max_tokens, limits(settings)?);
    call.with_view(|view, counter| {
        if compress::is_no_op(&view.messages, &request, max_tokens) {
            return Fitted::whole(&call);
        }
        call.planned_for(view, counter, &request, |view, request| {
            compress::fit_above(view, request, max_tokens, above.unwrap_or(view.len()))
        })
    })?
}

/// Return `messages` within `max_tokens` for the next attempt after a refusal.
///
/// Reasoning before the last message of the user goes, as far as the provider does not want it back;
/// then as `fit_messages`. Of `settings`, `pinned` counts.
///
/// Raises:
///     ContextOverflowError: As `fit_messages`.
///     InvalidMessageError: A message is of a shape that no provider accepts.
///     InvalidArgumentError: Another argument cannot be used.
#[pyfunction]
#[pyo3(signature = (messages, max_tokens, model=None, *, tools=None, settings=None, archive=None))]
pub fn reduce_messages<'py>(
    messages: &Bound<'py, PyAny>,
    max_tokens: &Bound<'py, PyAny>,
    model: Any<'_, 'py>,
    tools: Any<'_, 'py>,
    settings: Any<'_, 'py>,
    archive: Any<'_, 'py>,
) -> PyResult<Fitted> {
    let call = Call::new(messages, model, tools)?.with_archive(archive)?;
    let max_tokens = tokens(max_tokens, "max_tokens")?;
    let request = call.request(max_tokens, limits(settings)?);
    call.planned(&request, |view, request| compress::reduce(view, request, max_tokens))
}

/// Return the newest whole rounds that have at most `max_tokens` together, as the same objects.
///
/// A round is a message of the user and everything up to the next one. Results without their call and
/// calls without all their results are left out, and so is what stands before the first message of a
/// user. O(n) in what comes back.
///
/// Raises:
///     InvalidMessageError: A message is of a shape that no provider accepts.
///     InvalidArgumentError: Another argument cannot be used.
#[pyfunction]
#[pyo3(signature = (messages, max_tokens, model=None))]
pub fn select_history<'py>(
    messages: &Bound<'py, PyAny>,
    max_tokens: &Bound<'py, PyAny>,
    model: Any<'_, 'py>,
) -> PyResult<Bound<'py, PyList>> {
    let call = Call::new(messages, model, None)?;
    let max_tokens = tokens(max_tokens, "max_tokens")?;
    let py = messages.py();
    let picked = call.with_view(|view, counter| view.run(py, |view| history::select(view, max_tokens, counter)))??;
    let picked = picked.into_iter().map(|index| call.messages.get_item(index)).collect::<PyResult<Vec<_>>>()?;
    PyList::new(messages.py(), picked)
}

/// Return where the last `keep_last` messages can be cut off without parting a call from its results.
///
/// Counts `keep_last` messages from the end, then goes back to a message of the user or one of the
/// assistant without calls; 0 when there is no such place.
///
/// Raises:
///     InvalidMessageError: A message is of a shape that no provider accepts.
///     InvalidArgumentError: Another argument cannot be used.
#[pyfunction]
pub fn find_safe_cut_point<'py>(messages: &Bound<'py, PyAny>, keep_last: &Bound<'py, PyAny>) -> PyResult<usize> {
    let keep_last = usize::try_from(whole(keep_last, "keep_last")?).unwrap_or(usize::MAX);
    Call::new(messages, None, None)?.with_view(|view, _| conversation::safe_cut_point(&view.messages, keep_last))
}

/// Return the index of the last message that a user wrote, or `len(messages)` where there is none.
///
/// From there to the end is the last round. Notes for messages that were left out are not a user's.
///
/// Raises:
///     InvalidMessageError: A message is of a shape that no provider accepts.
///     InvalidArgumentError: Another argument cannot be used.
#[pyfunction]
pub fn find_last_user_index(messages: &Bound<'_, PyAny>) -> PyResult<usize> {
    Call::new(messages, None, None)?
        .with_view(|view, _| conversation::last_user_index(&view.messages).unwrap_or(view.messages.len()))
}

/// Return how much `message` matters: `high`, `normal` or `low`, by rules alone.
///
/// `call` is the tool call that a result answers, which says what tool and what command it is of.
///
/// Raises:
///     InvalidMessageError: `message` is no dict with a known role.
#[pyfunction]
#[pyo3(signature = (message, call=None))]
pub fn classify_message<'py>(message: &Bound<'py, PyAny>, call: Any<'_, 'py>) -> PyResult<&'static str> {
    let messages = PyList::new(message.py(), [message])?;
    if let Some(call) = call {
        let calling = PyDict::new(message.py());
        calling.set_item("role", "assistant")?;
        calling.set_item("tool_calls", [call])?;
        messages.append(calling)?;
    }
    let priority = Call::new(&messages.into_any(), None, None)?.with_view(|view, _| {
        let result = &view.messages[0];
        let call = view.messages.get(1).and_then(|calling| calling.tool_calls.first());
        let effect = call.filter(|call| call.name.is_some()).map(ToolCall::effect);
        let named = || result.name.as_ref().map_or(Effect::Unknown, |name| Effect::of(name.as_str()));
        compress::classify(result, effect.unwrap_or_else(named))
    })?;
    Ok(match priority {
        compress::Priority::High => "high",
        compress::Priority::Normal => "normal",
        compress::Priority::Low => "low",
    })
}

/// Return `result` cut to at most `max_chars` characters (15,000), the mark for what is gone included.
///
/// A longer one keeps its first 20 and last 10 lines, or where these are too long themselves its first
/// and last characters, two to one. A limit too small for the mark keeps the start without one.
///
/// Raises:
///     InvalidArgumentError: `result` is no string, or a number cannot be used.
#[pyfunction]
#[pyo3(signature = (result, max_chars=None, *, head_lines=None, tail_lines=None))]
pub fn trim_tool_result<'py>(
    result: &Bound<'py, PyAny>,
    max_chars: Any<'_, 'py>,
    head_lines: Any<'_, 'py>,
    tail_lines: Any<'_, 'py>,
) -> PyResult<Bound<'py, PyAny>> {
    /// Source: plan V3.1, `trim_tool_result`.
    const MAX_CHARS: usize = 15_000;
    let size = |value, name, default| -> PyResult<usize> {
        Ok(optional_whole(value, name)?.map_or(default, |number| usize::try_from(number).unwrap_or(usize::MAX)))
    };
    let max_chars = size(max_chars, "max_chars", MAX_CHARS)?;
    let (head, tail) = crate::TRIM_LINES;
    let lines = (size(head_lines, "head_lines", head)?, size(tail_lines, "tail_lines", tail)?);
    let Ok(string) = result.cast::<PyString>() else {
        return Err(Error::argument("result", format!("must be a string, got {}", format_value(result))))
            .or_raise(result.py());
    };
    if string.len()? <= max_chars {
        return Ok(result.clone());
    }
    let text = string.to_str().map_or_else(|_| Cow::Owned(without_surrogates(string)), Cow::Borrowed);
    Ok(PyString::new(result.py(), &crate::trim_tool_result(&text, max_chars, lines)).into_any())
}

/// Return the script that most of `messages` is in: `western`, `east_asian` or `mixed`.
///
/// Raises:
///     InvalidMessageError: A message is of a shape that no provider accepts.
#[pyfunction]
pub fn prevailing_script(messages: &Bound<'_, PyAny>) -> PyResult<&'static str> {
    Call::new(messages, None, None)?.with_view(|view, _| Script::prevailing(&view.messages).name())
}

/// Return the language of most of the newest of a user's texts: `zh`, `ja` or `ko`; `None` for any other, and without a word.
///
/// Five texts have a vote.
#[pyfunction]
#[allow(clippy::needless_pass_by_value)] // as pyo3 hands it over
pub fn spoken_language(newest_first: Vec<Bound<'_, PyString>>) -> Option<&'static str> {
    Language::of(newest_first.iter().map(without_surrogates)).and_then(Language::code)
}

/// Return the tokens that prompt and answer of `model` may have together; 128,000 for unknown models.
///
/// Gateway prefixes (`openrouter/`), dates and suffixes are resolved. `override` wins when it is not
/// `None`, 0 included.
///
/// Raises:
///     InvalidArgumentError: An argument cannot be used.
#[pyfunction]
#[pyo3(signature = (model, r#override=None))]
pub fn get_context_window<'py>(model: &Bound<'py, PyAny>, r#override: Any<'_, 'py>) -> PyResult<Tokens> {
    let name = self::model(Some(model))?.unwrap_or_default();
    Ok(window::get_context_window(&name, optional_tokens(r#override, "override")?))
}

/// Return the window that the model table has for `model`, or `None` for a model that is not in it.
///
/// Raises:
///     InvalidArgumentError: `model` is no string.
#[pyfunction]
pub fn listed_window(model: &Bound<'_, PyAny>) -> PyResult<Option<Tokens>> {
    Ok(window::context_window(&self::model(Some(model))?.unwrap_or_default()))
}

/// Return the tokens that one answer of `model` may have at most.
///
/// Raises:
///     InvalidArgumentError: `model` is no string.
#[pyfunction]
pub fn get_output_limit(model: &Bound<'_, PyAny>) -> PyResult<Tokens> {
    Ok(window::get_output_limit(&self::model(Some(model))?.unwrap_or_default()))
}

/// Return the calls that changed something: the index of the message that makes one, its id, and a line for it.
///
/// Raises:
///     InvalidMessageError: A message is of a shape that no provider accepts.
#[pyfunction]
pub fn list_changes(messages: &Bound<'_, PyAny>) -> PyResult<Vec<(usize, String, String)>> {
    let of_view = |view: &[Message<'_>]| {
        let changes = summary::changes(view).into_iter();
        changes.map(|change| (change.index, change.id.to_owned(), change.line)).collect()
    };
    Call::new(messages, None, None)?.with_view(|view, _| of_view(&view.messages))
}

/// Return the messages that a later one has replaced, as the core has it: the index of each, why, and the index of the later one.
///
/// Of results, `again`: the same call was made again; `changed`: the file that was read was written; `repeated`: a later
/// one says the same. Of replies, `rewritten`: later ones have most of its lines.
///
/// Raises:
///     InvalidMessageError: A message is of a shape that no provider accepts.
#[pyfunction]
pub fn superseded(messages: &Bound<'_, PyAny>) -> PyResult<Vec<(usize, &'static str, usize)>> {
    Call::new(messages, None, None)?
        .with_view(|view, _| view.run(messages.py(), |view| compress::superseded_messages(view)))?
}

/// Return by text of the user, oldest first, the sentences that hold from then on: rules, facts about the user, and what corrects
/// one of an earlier text.
#[pyfunction]
pub fn standing_rules(texts: Vec<Bound<'_, PyString>>) -> Vec<Vec<String>> {
    let texts: Vec<_> = texts.into_iter().map(|text| without_surrogates(&text)).collect();
    let texts: Vec<&str> = texts.iter().map(|text| &**text).collect();
    let owned = |rules: Vec<Cow<'_, str>>| rules.into_iter().map(Cow::into_owned).collect();
    crate::standing_rules(&texts).into_iter().map(owned).collect()
}

/// Return the newest of `rules` that no text of `shown` has, at most `max_bytes` of UTF-8, in their order.
#[pyfunction]
pub fn rules_left_out(
    rules: Vec<Bound<'_, PyString>>,
    shown: Vec<Bound<'_, PyString>>,
    max_bytes: &Bound<'_, PyAny>,
) -> PyResult<Vec<String>> {
    let max_bytes = usize::try_from(whole(max_bytes, "max_bytes")?).unwrap_or(usize::MAX);
    let rules: Vec<_> = rules.into_iter().map(|rule| without_surrogates(&rule)).collect();
    let shown: Vec<_> = shown.into_iter().map(|text| without_surrogates(&text)).collect();
    let rules: Vec<&str> = rules.iter().map(|rule| &**rule).collect();
    let shown: Vec<&str> = shown.iter().map(|text| &**text).collect();
    Ok(crate::rules_left_out(&rules, &shown, max_bytes).into_iter().map(str::to_owned).collect())
}
