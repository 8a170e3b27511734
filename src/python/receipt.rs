//! `Receipt`, `Cut`, `Lost` and `Fitted`.

use std::sync::OnceLock;

use pyo3::prelude::*;
use pyo3::types::PyList;

use crate::compress;
use crate::tokens::{Source, TokenCounter};

use super::convert::{Strings, View, snapshot};

/// What was cut, and how large the request was and is.
#[pyclass(frozen, eq, skip_from_py_object, module = "nanobot_context")]
pub struct Receipt {
    /// Tokens of the request before.
    #[pyo3(get)]
    tokens_before: Option<u64>,
    /// Tokens of the request now.
    #[pyo3(get)]
    tokens_after: Option<u64>,
    /// How they were counted: `exact` or `estimated`.
    #[pyo3(get)]
    source: Option<&'static str>,
    /// Everything that was cut or changed.
    #[pyo3(get)]
    cuts: Vec<Cut>,
    before: Py<PyList>,
    after: Py<PyList>,
    lost: OnceLock<Vec<Lost>>,
}

impl PartialEq for Receipt {
    fn eq(&self, other: &Self) -> bool {
        let told = |receipt: &Self| (receipt.tokens_before, receipt.tokens_after, receipt.source);
        told(self) == told(other) && self.cuts == other.cuts
    }
}

impl Receipt {
    /// Returns the receipt of a plan that made `after` of `before`.
    pub fn new(receipt: &compress::Receipt, before: &Bound<'_, PyList>, after: &Bound<'_, PyList>) -> Self {
        Self {
            tokens_before: receipt.tokens_before,
            tokens_after: receipt.tokens_after,
            source: receipt.source.map(|source| match source {
                Source::Exact => "exact",
                Source::Estimated => "estimated",
            }),
            cuts: receipt.cuts.iter().map(Cut::from).collect(),
            before: before.clone().unbind(),
            // The caller's to change.
            after: snapshot(after).unbind(),
            lost: OnceLock::new(),
        }
    }
}

#[pymethods]
impl Receipt {
    /// Names and error lines that came in and stand nowhere in the request, in the order of the messages.
    ///
    /// Looked for when asked for the first time, in the messages as they are then: some 10 ms for 100,000 tokens.
    #[getter]
    fn lost(&self, py: Python<'_>) -> PyResult<Vec<Lost>> {
        if let Some(lost) = self.lost.get() {
            return Ok(lost.clone());
        }
        let (strings, counter) = (Strings::default(), TokenCounter::new(None));
        let read = |list: &Py<PyList>| View::of(list.bind(py), &counter, &strings);
        let (before, after) = (read(&self.before)?, read(&self.after)?);
        let lost = compress::lost(&before.messages, &after.messages).into_iter().map(Lost::from).collect();
        Ok(self.lost.get_or_init(|| lost).clone())
    }

    fn __repr__(&self) -> String {
        let number = |tokens: Option<u64>| tokens.map_or_else(|| "None".to_owned(), |tokens| tokens.to_string());
        format!(
            "Receipt(tokens_before={}, tokens_after={}, cuts=<{}>)",
            number(self.tokens_before),
            number(self.tokens_after),
            self.cuts.len()
        )
    }
}

/// One cut.
#[pyclass(frozen, get_all, eq, skip_from_py_object, module = "nanobot_context")]
#[derive(Clone, PartialEq)]
pub struct Cut {
    /// The message's index in the list that came in.
    index: usize,
    /// Why: `orphan_result`, `missing_result`, `malformed_call`, `reasoning`, `large_result`,
    /// `many_results`, `long_message` or `budget`.
    reason: &'static str,
    /// Tokens of what was cut, before.
    tokens_before: u64,
    /// Tokens of what stands there now.
    tokens_after: u64,
}

impl From<&compress::Cut> for Cut {
    fn from(cut: &compress::Cut) -> Self {
        let compress::Cut { index, reason, tokens_before, tokens_after } = *cut;
        Self { index, reason: reason.name(), tokens_before, tokens_after }
    }
}

#[pymethods]
impl Cut {
    fn __repr__(&self) -> String {
        let Self { index, reason, tokens_before, tokens_after } = self;
        format!("Cut(index={index}, reason='{reason}', tokens_before={tokens_before}, tokens_after={tokens_after})")
    }
}

/// A name or an error line that a request no longer says.
#[pyclass(frozen, get_all, eq, skip_from_py_object, module = "nanobot_context")]
#[derive(Clone, PartialEq)]
pub struct Lost {
    /// The index of the last message that said it, in the list that came in.
    index: usize,
    /// What it is: `path`, `url`, `id`, `number` or `error`.
    kind: &'static str,
    /// Its text.
    text: String,
}

impl From<compress::Lost> for Lost {
    fn from(lost: compress::Lost) -> Self {
        let compress::Lost { index, kind, text } = lost;
        Self { index, kind: kind.name(), text }
    }
}

#[pymethods]
impl Lost {
    fn __repr__(&self) -> String {
        let Self { index, kind, text } = self;
        format!("Lost(index={index}, kind='{kind}', text={text:?})")
    }
}

/// Messages that fit.
#[pyclass(frozen, get_all, module = "nanobot_context")]
pub struct Fitted {
    /// The messages.
    pub messages: Py<PyList>,
    /// Their tokens, tool schemas included.
    pub tokens: u64,
    /// What was cut.
    pub receipt: Py<Receipt>,
}

#[pymethods]
impl Fitted {
    fn __repr__(&self, py: Python<'_>) -> String {
        format!("Fitted(messages=<{}>, tokens={})", self.messages.bind(py).len(), self.tokens)
    }
}
