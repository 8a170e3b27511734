//! `Overflow`, the reading of an error and of a usage report.

use std::borrow::Cow;

use pyo3::prelude::*;
use pyo3::types::PyString;

use crate::Error;
use crate::overflow::{self, ErrorView, UsageView, detect_silent};
use crate::tokens::Tokens;

use super::arguments::{optional_tokens, optional_whole};
use super::convert::without_surrogates;
use super::errors::OrRaise;
use super::receipt::{Reduced, reduced};

type Any<'a, 'py> = Option<&'a Bound<'py, PyAny>>;

/// What a provider said was too large.
#[pyclass(frozen, eq, skip_from_py_object, module = "nanobot_context")]
#[derive(Clone, PartialEq)]
pub struct Overflow(pub overflow::Overflow);

#[pymethods]
impl Overflow {
    /// `input`, `output_cap`, `request_bytes`, `messages`, `rate_ceiling`, `silent` or `reasoning`.
    #[getter]
    fn kind(&self) -> &'static str {
        self.0.kind.name()
    }

    /// Tokens that are allowed, where the provider said it.
    #[getter]
    fn limit_tokens(&self) -> Option<Tokens> {
        self.0.limit_tokens
    }

    /// Tokens that the request had, where the provider said it.
    #[getter]
    fn used_tokens(&self) -> Option<Tokens> {
        self.0.used_tokens
    }

    /// For `output_cap`: the longest answer that the provider said is possible.
    #[getter]
    fn output_tokens(&self) -> Option<Tokens> {
        self.0.output_tokens
    }

    /// For `request_bytes`: the bytes that are allowed, where the provider said it.
    #[getter]
    fn limit_bytes(&self) -> Option<u64> {
        self.0.limit_bytes
    }

    /// For `messages`: how many are allowed, where the provider said it.
    #[getter]
    fn limit_messages(&self) -> Option<u64> {
        self.0.limit_messages
    }

    fn __repr__(&self) -> String {
        format!(
            "Overflow(kind='{}', limit_tokens={}, used_tokens={}, output_tokens={}, limit_bytes={}, limit_messages={})",
            self.kind(),
            or_none(self.0.limit_tokens),
            or_none(self.0.used_tokens),
            or_none(self.0.output_tokens),
            or_none(self.0.limit_bytes),
            or_none(self.0.limit_messages),
        )
    }

    fn __reduce__<'py>(slf: &Bound<'py, Self>) -> Reduced<'py, impl IntoPyObject<'py>> {
        let overflow::Overflow { kind, limit_tokens, used_tokens, used_is_prompt, output_tokens, .. } = slf.get().0;
        let sizes = (slf.get().0.limit_bytes, slf.get().0.limit_messages);
        reduced(slf, (kind.name(), limit_tokens, used_tokens, used_is_prompt, output_tokens, sizes))
    }

    #[staticmethod]
    fn _restored(
        py: Python<'_>,
        kind: &str,
        limit_tokens: Option<Tokens>,
        used_tokens: Option<Tokens>,
        used_is_prompt: bool,
        output_tokens: Option<Tokens>,
        sizes: (Option<u64>, Option<u64>),
    ) -> PyResult<Self> {
        let (limit_bytes, limit_messages) = sizes;
        let unknown = || Error::argument("kind", format!("`{kind}` is none"));
        let kind = overflow::OverflowKind::parse(kind).ok_or_else(unknown).or_raise(py)?;
        let numbers = overflow::Overflow::new(kind, limit_tokens, used_tokens);
        Ok(Self(overflow::Overflow { used_is_prompt, output_tokens, limit_bytes, limit_messages, ..numbers }))
    }
}

/// Returns a number as Python shows it.
fn or_none(number: Option<impl ToString>) -> String {
    number.map_or_else(|| "None".to_owned(), |number| number.to_string())
}

/// Return what an error's text says was too large, or `None` when it says something else.
#[pyfunction]
#[pyo3(signature = (text, *, status=None, code=None, error_type=None, provider=None))]
pub fn classify_error(
    text: &Bound<'_, PyString>,
    status: Option<&Bound<'_, PyAny>>,
    code: Option<&str>,
    error_type: Option<&str>,
    provider: Option<&str>,
) -> PyResult<Option<Overflow>> {
    // More than any status is none that says anything.
    let status = optional_whole(status, "status")?.and_then(|status| u16::try_from(status).ok());
    let text = text.to_str().map_or_else(|_| Cow::Owned(without_surrogates(text)), Cow::Borrowed);
    let found = overflow::detect_overflow(&ErrorView { text: &text, status, code, error_type, provider });
    Ok(found.map(Overflow))
}

/// Return the overflow that the usage of an answered request gives away, or `None`.
///
/// `cache_tokens` are those of the prompt that `input_tokens` leaves out. 0 for a number that is not
/// known.
#[pyfunction]
#[pyo3(signature = (
    *, input_tokens, cache_tokens=None, output_tokens=None, finish_reason=None, window_tokens=None, counted_tokens=None
))]
pub fn classify_usage(
    input_tokens: Any<'_, '_>,
    cache_tokens: Any<'_, '_>,
    output_tokens: Any<'_, '_>,
    finish_reason: Option<&str>,
    window_tokens: Any<'_, '_>,
    counted_tokens: Any<'_, '_>,
) -> PyResult<Option<Overflow>> {
    let known = |value, name| Ok::<_, PyErr>(optional_tokens(value, name)?.unwrap_or_default());
    let usage = UsageView {
        input_tokens: optional_tokens(input_tokens, "input_tokens")?,
        cache_tokens: known(cache_tokens, "cache_tokens")?,
        output_tokens: optional_tokens(output_tokens, "output_tokens")?,
        finish_reason,
    };
    let (window_tokens, counted_tokens) =
        (known(window_tokens, "window_tokens")?, known(counted_tokens, "counted_tokens")?);
    Ok(detect_silent(&usage, window_tokens, counted_tokens).map(Overflow))
}

/// Return the overflow of a prompt of `sent_tokens` of which the provider read only `read_tokens`, in silence.
#[pyfunction]
#[pyo3(signature = (*, read_tokens, sent_tokens))]
pub fn silently_cut(read_tokens: Any<'_, '_>, sent_tokens: Any<'_, '_>) -> PyResult<Overflow> {
    let read = optional_tokens(read_tokens, "read_tokens")?;
    let sent = optional_tokens(sent_tokens, "sent_tokens")?;
    Ok(Overflow(overflow::Overflow::new(overflow::OverflowKind::Silent, read, sent)))
}
