//! Summaries: what they cover, when they are due, how one is made.

mod policy;
mod trigger;

use pyo3::prelude::*;
use pyo3::types::{PyList, PyString};
use pyo3::{PyTraverseError, PyVisit};

use crate::Error;
use crate::message::Message;
use crate::summary::{self, Cause, Format, Options, Previous, Prompt, Structured, cut};
use crate::tokens::{TokenCounter, Tokens};

use super::arguments::{model, optional_tokens, optional_whole, whole};
use super::call::Call;
use super::convert::without_surrogates;
use super::errors::OrRaise;
use super::view::{detached, detached_whole};

pub use policy::SummaryPolicy;
pub use trigger::Trigger;

type Any<'a, 'py> = Option<&'a Bound<'py, PyAny>>;

/// What the model is to be asked for a summary.
#[pyclass(frozen, get_all, skip_from_py_object, module = "nanobot_context.summary")]
pub struct SummaryCall {
    /// Roles and texts.
    messages: Vec<(&'static str, String)>,
    /// The longest answer, in tokens.
    max_tokens: Tokens,
    /// The temperature.
    temperature: f64,
    /// How often what it is about has been parted.
    depth: u32,
}

/// A summary that was made.
#[pyclass(frozen, get_all, skip_from_py_object, module = "nanobot_context.summary")]
pub struct SummaryDraft {
    /// The summary.
    text: String,
    /// Its fields as JSON text.
    data: String,
    /// Whether a model wrote it.
    by_model: bool,
    /// Why no model wrote it although one was asked.
    error: Option<String>,
    /// The name of the prompt, or the whole of a caller's own.
    prompt: String,
    /// Whether a part was cut by force.
    truncated: bool,
    /// Parts that were summarised one by one.
    chunks: u32,
    /// How often they were parted.
    max_depth: u32,
    /// Calls of the model that it took.
    calls: u32,
    /// Tokens of what was summarised.
    input_tokens: Tokens,
    /// Tokens of the summary.
    output_tokens: Tokens,
}

/// The making of one summary: it says which model call it wants and is told the answer.
///
/// `messages` are those behind the previous summary. It calls nothing itself: ask the model for what
/// `next_call` returns and tell `answered`, `refused` or `failed`, until it returns `None`; then `finish`.
/// Planning is O(bytes) and counts no token.
///
/// Raises:
///     InvalidMessageError: A message is of a shape that no provider accepts.
///     InvalidArgumentError: Another argument cannot be used: a prompt with an unknown placeholder.
#[pyclass(module = "nanobot_context.summary")]
pub struct SummaryRun {
    run: Option<summary::Run>,
    /// A copy of the list: its owner may append to it before the summary is there.
    messages: Py<PyList>,
    model: Option<String>,
}

fn data_of(py: Python<'_>, text: Option<&str>, name: &str) -> PyResult<Structured> {
    let Some(text) = text else { return Ok(Structured::default()) };
    let read = serde_json::from_str(text).ok().and_then(|value| Structured::from_json(&value));
    read.ok_or_else(|| Error::argument(name, "must be the fields of a summary")).or_raise(py)
}

#[pymethods]
impl SummaryRun {
    #[new]
    #[pyo3(signature = (
        messages, *, previous=None, previous_data=None, model=None, policy=None, format="text", prompt=None, max_words=None,
        window_tokens=None, max_result_tokens=None
    ))]
    #[allow(clippy::too_many_arguments)] // keywords, for those who call it
    fn new(
        messages: &Bound<'_, PyAny>,
        previous: Option<&Bound<'_, PyString>>,
        previous_data: Option<&Bound<'_, PyString>>,
        model: Any<'_, '_>,
        policy: Option<&Bound<'_, SummaryPolicy>>,
        format: &str,
        prompt: Option<&str>,
        max_words: Any<'_, '_>,
        window_tokens: Any<'_, '_>,
        max_result_tokens: Any<'_, '_>,
    ) -> PyResult<Self> {
        let py = messages.py();
        let words = optional_whole(max_words, "max_words")?.map(|words| u32::try_from(words).unwrap_or(u32::MAX));
        let format = match format {
            "text" => Ok(Format::Text),
            "structured" => Ok(Format::Structured),
            other => Err(Error::argument("format", format!("must be `text` or `structured`, got `{other}`"))),
        };
        let default = Options::default();
        let options = Options {
            format: format.or_raise(py)?,
            prompt: prompt.map(|prompt| Prompt::custom(prompt, words)).transpose().or_raise(py)?,
            max_words: words,
            policy: policy.map_or(default.policy, |policy| policy.get().core()),
            window_tokens: optional_tokens(window_tokens, "window_tokens")?,
            max_result_tokens: optional_tokens(max_result_tokens, "max_result_tokens")?
                .unwrap_or(default.max_result_tokens),
        };
        let previous_data = previous_data.map(without_surrogates);
        let data = data_of(py, previous_data.as_deref(), "previous_data")?;
        let previous = previous.map(|text| Previous { text: without_surrogates(text), data });
        let call = Call::new(messages, model, None)?;
        let run = call.with_view(|view, counter| {
            let (messages, counter) = (view.messages.clone(), *counter);
            detached(py, move || summary::Run::new(&messages, previous, options, counter))
        })??;
        Ok(Self { run: Some(run), messages: call.messages.unbind(), model: call.model })
    }

    #[allow(clippy::needless_pass_by_value)] // as pyo3 hands it over
    fn __traverse__(&self, visit: PyVisit<'_>) -> std::result::Result<(), PyTraverseError> {
        visit.call(&self.messages)
    }

    /// Return the call that it waits for; `None` when nothing is left to ask.
    fn next_call(&mut self, py: Python<'_>) -> Option<SummaryCall> {
        let run = self.run.as_mut()?;
        let summary::ModelCall { messages, max_tokens, temperature, depth } = detached_whole(py, || run.next_call())?;
        Some(SummaryCall { messages, max_tokens, temperature, depth })
    }

    /// Take the model's answer; an empty one is a failure.
    fn answered(&mut self, text: &Bound<'_, PyString>) {
        if let Some(run) = &mut self.run {
            run.answered(&without_surrogates(text));
        }
    }

    /// Take that the model refused the call as too long, with the limit in tokens that it named.
    #[pyo3(signature = (limit_tokens=None))]
    fn refused(&mut self, limit_tokens: Any<'_, '_>) -> PyResult<()> {
        let limit = optional_tokens(limit_tokens, "limit_tokens")?;
        if let Some(run) = &mut self.run {
            run.refused(limit);
        }
        Ok(())
    }

    /// Ask no model: the summary is told by rules.
    fn by_rules(&mut self) {
        if let Some(run) = &mut self.run {
            run.by_rules();
        }
    }

    /// Take that the model cannot be asked: the summary is told by rules.
    fn failed(&mut self, error: &Bound<'_, PyString>) {
        if let Some(run) = &mut self.run {
            run.failed(&without_surrogates(error));
        }
    }

    /// Return the summary. What is left to ask counts as failed; a second call is an error.
    ///
    /// Raises:
    ///     InvalidArgumentError: It was finished before.
    fn finish(&mut self, py: Python<'_>) -> PyResult<SummaryDraft> {
        let wrong = || Error::argument("finish", "was called before");
        let mut run = self.run.take().ok_or_else(wrong).or_raise(py)?;
        if run.next_call().is_some() {
            run.failed("it was not finished");
        }
        let mut call = Call::new(self.messages.bind(py).as_any(), None, None)?;
        call.model.clone_from(&self.model);
        let draft = call.with_view(|view, _| {
            view.count(py, &TokenCounter::new(self.model.as_deref()))?;
            let messages = view.messages.clone();
            detached(py, move || run.finish(&messages))
        })??;
        Ok(SummaryDraft {
            data: draft.data.to_json().to_string(),
            text: draft.text,
            by_model: draft.by_model,
            error: draft.error,
            prompt: draft.prompt,
            truncated: draft.truncated,
            chunks: draft.chunks,
            max_depth: draft.max_depth,
            calls: draft.calls,
            input_tokens: draft.input_tokens,
            output_tokens: draft.output_tokens,
        })
    }
}

fn with_messages<T>(messages: &Bound<'_, PyAny>, work: impl FnOnce(&[Message<'_>]) -> T) -> PyResult<T> {
    Call::new(messages, None, None)?.with_view(|view, _| work(&view.messages))
}

fn count(value: &Bound<'_, PyAny>, name: &str) -> PyResult<usize> {
    Ok(usize::try_from(whole(value, name)?).unwrap_or(usize::MAX))
}

fn count_or(value: Any<'_, '_>, name: &str, default: usize) -> PyResult<usize> {
    value.map_or(Ok(default), |value| count(value, name))
}

/// Return how many messages the next summary covers, and why it is due; `None` while it is not.
///
/// `cause` is `proactive`: due when `trigger` fires, or without one the policy's own limits; the policy's
/// last messages stay. Or `overflow_retry`: the model refused the conversation; or `force`: both cover all.
/// Costs a count of the messages behind the `covered` ones, of which most are known.
///
/// Raises:
///     InvalidMessageError: A message is of a shape that no provider accepts.
///     InvalidArgumentError: Another argument cannot be used.
#[pyfunction]
#[pyo3(signature = (messages, covered=None, *, policy=None, trigger=None, cause="proactive", idle_seconds=0.0, model=None))]
#[allow(clippy::too_many_arguments)] // keywords, for those who call it
pub fn summary_due(
    messages: &Bound<'_, PyAny>,
    covered: Any<'_, '_>,
    policy: Option<&Bound<'_, SummaryPolicy>>,
    trigger: Option<&Bound<'_, Trigger>>,
    cause: &str,
    idle_seconds: f64,
    model: Any<'_, '_>,
) -> PyResult<Option<(usize, &'static str)>> {
    let covered = count_or(covered, "covered", 0)?;
    let cause = match cause {
        "proactive" => Ok(Cause::Proactive),
        "overflow_retry" => Ok(Cause::OverflowRetry),
        "force" => Ok(Cause::Forced),
        other => {
            Err(Error::argument("cause", format!("must be `proactive`, `overflow_retry` or `force`, got `{other}`")))
        }
    };
    let cause = cause.or_raise(messages.py())?;
    let policy = policy.map_or_else(summary::Policy::default, |policy| policy.get().core());
    let trigger = trigger.map(|trigger| &trigger.get().0);
    Call::new(messages, model, None)?
        .with_view(|view, counter| policy.due(&view.messages, covered, cause, trigger, idle_seconds, *counter))
}

/// Return how many messages a summary covers that leaves the last `keep` as they are; `None` where that
/// is nothing new behind the `covered` ones. What is kept begins with no tool result: its call comes along.
///
/// Raises:
///     InvalidMessageError: A message is of a shape that no provider accepts.
///     InvalidArgumentError: A number is negative.
#[pyfunction]
#[pyo3(signature = (messages, covered=None, *, keep))]
pub fn keep_last_cut(
    messages: &Bound<'_, PyAny>,
    covered: Any<'_, '_>,
    keep: &Bound<'_, PyAny>,
) -> PyResult<Option<usize>> {
    let (covered, keep) = (count_or(covered, "covered", 0)?, count(keep, "keep")?);
    with_messages(messages, |view| cut::keep_last(view, covered, keep))
}

/// Return how many messages the next summary of a static buffer covers; `None` while there are `limit`
/// or fewer behind the `covered` ones.
///
/// All but the last `keep`, moved back to a message of the user, or forward where there is none before.
///
/// Raises:
///     InvalidMessageError: A message is of a shape that no provider accepts.
///     InvalidArgumentError: A number is negative.
#[pyfunction]
#[pyo3(signature = (messages, covered=None, *, limit=None, keep=None))]
pub fn static_buffer_cut(
    messages: &Bound<'_, PyAny>,
    covered: Any<'_, '_>,
    limit: Any<'_, '_>,
    keep: Any<'_, '_>,
) -> PyResult<Option<usize>> {
    let covered = count_or(covered, "covered", 0)?;
    let (limit, keep) = (count_or(limit, "limit", cut::BUFFER_LIMIT)?, count_or(keep, "keep", cut::BUFFER_KEEP)?);
    with_messages(messages, |view| cut::static_buffer(view, covered, limit, keep))
}

/// Return how many messages the next rolling summary covers; `None` while there are fewer than
/// `interval` rounds before the newest `keep_rounds`.
///
/// Raises:
///     InvalidMessageError: A message is of a shape that no provider accepts.
///     InvalidArgumentError: A number is negative.
#[pyfunction]
#[pyo3(signature = (messages, covered=None, *, interval=None, keep_rounds=None))]
pub fn rolling_cut(
    messages: &Bound<'_, PyAny>,
    covered: Any<'_, '_>,
    interval: Any<'_, '_>,
    keep_rounds: Any<'_, '_>,
) -> PyResult<Option<usize>> {
    let covered = count_or(covered, "covered", 0)?;
    let interval = count_or(interval, "interval", cut::ROLLING_INTERVAL)?;
    let keep_rounds = count_or(keep_rounds, "keep_rounds", cut::ROLLING_KEEP)?;
    with_messages(messages, |view| cut::rolling(view, covered, interval, keep_rounds))
}

/// Return the section for the end of a system prompt that shows a summary; document 000's words.
#[pyfunction]
pub fn summary_section(text: &Bound<'_, PyString>) -> String {
    summary::section(&without_surrogates(text))
}

/// Return the content of a system message that shows a summary, with a safety prefix.
#[pyfunction]
pub fn wrap_summary(text: &Bound<'_, PyString>) -> String {
    summary::wrapped(&without_surrogates(text))
}

/// Return the fields of a summary that a model wrote, as JSON text; free text is its context.
#[pyfunction]
pub fn parse_structured(raw: &Bound<'_, PyString>) -> String {
    let raw = without_surrogates(raw);
    let free = || Structured { context: raw.trim().to_owned(), ..Structured::default() };
    Structured::parse(&raw).unwrap_or_else(free).to_json().to_string()
}

/// Return two summaries, given as the JSON text of their fields, as one; the newer one wins.
///
/// Raises:
///     InvalidArgumentError: One of them is no such JSON, or `max_tokens` is negative.
#[pyfunction]
#[pyo3(signature = (older, newer, *, max_tokens=None, model=None))]
pub fn merge_structured(
    py: Python<'_>,
    older: &Bound<'_, PyString>,
    newer: &Bound<'_, PyString>,
    max_tokens: Any<'_, '_>,
    model: Any<'_, '_>,
) -> PyResult<String> {
    let merged = data_of(py, Some(&without_surrogates(older)), "older")?.merged(data_of(
        py,
        Some(&without_surrogates(newer)),
        "newer",
    )?);
    let counter = TokenCounter::new(self::model(model)?.as_deref());
    let merged = optional_tokens(max_tokens, "max_tokens")?.map_or(merged.clone(), |max| merged.within(max, counter));
    Ok(merged.to_json().to_string())
}

/// Return the fields of a summary, given as JSON text, written for a model.
///
/// Raises:
///     InvalidArgumentError: It is no such JSON.
#[pyfunction]
pub fn format_structured(py: Python<'_>, fields: &Bound<'_, PyString>) -> PyResult<String> {
    data_of(py, Some(&without_surrogates(fields)), "fields").map(|read| read.to_string())
}
