//! The policy of summaries: when they are made and how hard is tried.

use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};

use crate::summary;
use crate::tokens::Tokens;

use super::super::arguments::optional_whole;
use super::super::errors::OrRaise;
use super::super::receipt::Reduced;
use super::Any;

/// When to summarise and how hard to try: the knobs of document 003, with its defaults.
///
/// Raises:
///     InvalidArgumentError: A number is negative, or 0 where it must not be.
#[pyclass(frozen, eq, get_all, skip_from_py_object, module = "nanobot_context.summary")]
#[derive(PartialEq)]
#[allow(clippy::struct_excessive_bools)] // switches, each for itself
pub struct SummaryPolicy {
    /// Whether anything is summarised without being asked to.
    enabled: bool,
    /// Messages from which on a summary is due; 0 switches the limit off.
    message_limit: u64,
    /// Tokens from which on a summary is due; 0 switches the limit off.
    max_context_tokens: Tokens,
    /// Messages at the end that stay as they are.
    keep_last: u64,
    /// Tokens that a summary should have.
    target_tokens: Tokens,
    /// Tokens of a summary made of two; the target's where it is not named.
    merge_target_tokens: Tokens,
    /// Handed to the model.
    temperature: f64,
    /// Whether what is too long for the model is summarised in halves.
    bisect_enabled: bool,
    /// How often it is halved.
    bisect_max_depth: u32,
    /// As few messages are not halved again.
    bisect_min_messages: u64,
    /// Whether an overflow of the conversation itself makes a summary due.
    retry_on_overflow: bool,
    /// Messages of history that are shown where no summary stands for them.
    history_limit: u64,
}

impl From<summary::Policy> for SummaryPolicy {
    fn from(policy: summary::Policy) -> Self {
        Self {
            enabled: policy.enabled,
            message_limit: policy.message_limit,
            max_context_tokens: policy.max_context_tokens,
            keep_last: policy.keep_last,
            target_tokens: policy.target_tokens,
            merge_target_tokens: policy.merge_target_tokens,
            temperature: policy.temperature,
            bisect_enabled: policy.bisect_enabled,
            bisect_max_depth: policy.bisect_max_depth,
            bisect_min_messages: policy.bisect_min_messages,
            retry_on_overflow: policy.retry_on_overflow,
            history_limit: policy.history_limit,
        }
    }
}

/// Returns how pickle calls `function` with keywords.
pub(super) fn with_keywords<'py>(
    function: &Bound<'py, PyAny>,
    keywords: &Bound<'py, PyDict>,
) -> Reduced<'py, Bound<'py, PyTuple>> {
    let py = function.py();
    let partial = py.import("functools")?.getattr("partial")?;
    Ok((partial.call((function,), Some(keywords))?, PyTuple::empty(py)))
}

impl SummaryPolicy {
    /// Its fields, which are the keywords that it is made with.
    const FIELDS: [&str; 12] = [
        "enabled",
        "message_limit",
        "max_context_tokens",
        "keep_last",
        "target_tokens",
        "merge_target_tokens",
        "temperature",
        "bisect_enabled",
        "bisect_max_depth",
        "bisect_min_messages",
        "retry_on_overflow",
        "history_limit",
    ];

    pub(super) fn core(&self) -> summary::Policy {
        summary::Policy {
            enabled: self.enabled,
            message_limit: self.message_limit,
            max_context_tokens: self.max_context_tokens,
            keep_last: self.keep_last,
            target_tokens: self.target_tokens,
            merge_target_tokens: self.merge_target_tokens,
            temperature: self.temperature,
            bisect_enabled: self.bisect_enabled,
            bisect_max_depth: self.bisect_max_depth,
            bisect_min_messages: self.bisect_min_messages,
            retry_on_overflow: self.retry_on_overflow,
            history_limit: self.history_limit,
        }
    }
}

#[pymethods]
impl SummaryPolicy {
    #[new]
    #[pyo3(signature = (
        *, enabled=true, message_limit=None, max_context_tokens=None, keep_last=None, target_tokens=None,
        merge_target_tokens=None, temperature=None, bisect_enabled=true, bisect_max_depth=None, bisect_min_messages=None,
        retry_on_overflow=true, history_limit=None
    ))]
    #[allow(clippy::too_many_arguments, clippy::fn_params_excessive_bools)] // keywords, for those who call it
    fn new(
        py: Python<'_>,
        enabled: bool,
        message_limit: Any<'_, '_>,
        max_context_tokens: Any<'_, '_>,
        keep_last: Any<'_, '_>,
        target_tokens: Any<'_, '_>,
        merge_target_tokens: Any<'_, '_>,
        temperature: Option<f64>,
        bisect_enabled: bool,
        bisect_max_depth: Any<'_, '_>,
        bisect_min_messages: Any<'_, '_>,
        retry_on_overflow: bool,
        history_limit: Any<'_, '_>,
    ) -> PyResult<Self> {
        let default = summary::Policy::default();
        let number = |value, name: &str, default| Ok::<_, PyErr>(optional_whole(value, name)?.unwrap_or(default));
        let tokens = |value, name: &str, default: Tokens| number(value, name, default.0).map(Tokens);
        let target_tokens = tokens(target_tokens, "target_tokens", default.target_tokens)?;
        let depth = number(bisect_max_depth, "bisect_max_depth", default.bisect_max_depth.into())?;
        let policy = summary::Policy {
            enabled,
            message_limit: number(message_limit, "message_limit", default.message_limit)?,
            max_context_tokens: tokens(max_context_tokens, "max_context_tokens", default.max_context_tokens)?,
            keep_last: number(keep_last, "keep_last", default.keep_last)?,
            target_tokens,
            merge_target_tokens: tokens(merge_target_tokens, "merge_target_tokens", target_tokens)?,
            temperature: temperature.unwrap_or(default.temperature),
            bisect_enabled,
            bisect_max_depth: u32::try_from(depth).unwrap_or(u32::MAX),
            bisect_min_messages: number(bisect_min_messages, "bisect_min_messages", default.bisect_min_messages)?,
            retry_on_overflow,
            history_limit: number(history_limit, "history_limit", default.history_limit)?,
        };
        policy.checked().map(Self::from).or_raise(py)
    }

    /// Return the policy that `environ` asks for, `os.environ` by default, by the names of document
    /// 003: `SUMMARY_MESSAGE_LIMIT`, `SUMMARY_MAX_CONTEXT_TOKENS`, `SUMMARY_KEEP_LAST_N`,
    /// `SUMMARY_TARGET_TOKENS`, `SUMMARY_MERGE_TARGET_TOKENS`, `SUMMARY_TEMPERATURE`,
    /// `SUMMARY_BISECT_ENABLED`, `SUMMARY_BISECT_MAX_DEPTH`, `SUMMARY_BISECT_MIN_MESSAGES`,
    /// `SUMMARY_RETRY_ON_CONTEXT_OVERFLOW`, `HISTORY_LIMIT`; `SUMMARY_ENABLED` and
    /// `DYNAMIC_SUMMARY_ENABLED` switch it off. A switch is on for everything but `false`.
    ///
    /// `user` has settings of one user by the same names, JSON values or texts, which win.
    ///
    /// Raises:
    ///     InvalidArgumentError: A variable is no number, or too small.
    #[staticmethod]
    #[pyo3(signature = (environ=None, *, user=None))]
    fn from_env(py: Python<'_>, environ: Any<'_, '_>, user: Any<'_, '_>) -> PyResult<Self> {
        let environ = match environ {
            Some(environ) => environ.clone(),
            None => py.import("os")?.getattr("environ")?,
        };
        let value = |settings: &Bound<'_, PyAny>, name: &str| {
            let value = settings.call_method1("get", (name,)).ok().filter(|value| !value.is_none())?;
            value.str().ok().map(|text| text.to_string_lossy().into_owned()).filter(|text| !text.trim().is_empty())
        };
        let lookup = |name: &str| user.and_then(|user| value(user, name)).or_else(|| value(&environ, name));
        summary::Policy::from_env(lookup).map(Self::from).or_raise(py)
    }

    fn __repr__(&self) -> String {
        format!("SummaryPolicy({:?})", self.core())
    }

    fn __reduce__<'py>(slf: &Bound<'py, Self>) -> Reduced<'py, impl IntoPyObject<'py>> {
        let fields = PyDict::new(slf.py());
        for name in Self::FIELDS {
            fields.set_item(name, slf.getattr(name)?)?;
        }
        with_keywords(&slf.get_type(), &fields)
    }
}
