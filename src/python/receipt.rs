//! `Receipt`, `Cut`, `Lost` and `Fitted`.

use std::borrow::Cow;
use std::sync::OnceLock;

use pyo3::prelude::*;
use pyo3::types::PyList;
use pyo3::{PyTraverseError, PyVisit};

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
    source: Option<Cow<'static, str>>,
    /// Everything that was cut or changed.
    #[pyo3(get)]
    cuts: Vec<Cut>,
    before: Py<PyList>,
    after: Py<PyList>,
    lost: OnceLock<Vec<Lost>>,
}

impl PartialEq for Receipt {
    fn eq(&self, other: &Self) -> bool {
        let numbers = |receipt: &Self| (receipt.tokens_before, receipt.tokens_after);
        numbers(self) == numbers(other) && self.source == other.source && self.cuts == other.cuts
    }
}

impl Receipt {
    /// Returns the receipt of a plan that made `after` of `before`.
    pub fn new(receipt: &compress::Receipt, before: &Bound<'_, PyList>, after: &Bound<'_, PyList>) -> Self {
        Self {
            tokens_before: receipt.tokens_before,
            tokens_after: receipt.tokens_after,
            source: receipt.source.map(|source| match source {
                Source::Exact => "exact".into(),
                Source::Estimated => "estimated".into(),
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

    fn __reduce__<'py>(slf: &Bound<'py, Self>) -> Reduced<'py, impl IntoPyObject<'py>> {
        let Self { tokens_before, tokens_after, source, cuts, before, after, lost: _ } = slf.get();
        let (before, after) = (before.bind(slf.py()).clone(), after.bind(slf.py()).clone());
        reduced(slf, (*tokens_before, *tokens_after, source.clone(), cuts.clone(), before, after))
    }

    #[staticmethod]
    #[allow(clippy::needless_pass_by_value)] // as pyo3 hands it over
    fn _restored(
        tokens_before: Option<u64>,
        tokens_after: Option<u64>,
        source: Option<String>,
        cuts: Vec<Bound<'_, Cut>>,
        before: Py<PyList>,
        after: Py<PyList>,
    ) -> Self {
        let cuts = cuts.iter().map(|cut| cut.get().clone()).collect();
        let source = source.map(Cow::Owned);
        Self { tokens_before, tokens_after, source, cuts, before, after, lost: OnceLock::new() }
    }

    /// A message may hold the receipt that holds it. The lists in between clear themselves.
    #[allow(clippy::needless_pass_by_value)] // as pyo3 hands it over
    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        visit.call(&self.before)?;
        visit.call(&self.after)
    }
}

/// What `__reduce__` returns: a function and its arguments.
pub type Reduced<'py, T> = PyResult<(Bound<'py, PyAny>, T)>;

/// Returns how pickle makes an object anew: by `_restored` of its class, from `state`.
pub fn reduced<'py, C, T>(object: &Bound<'py, C>, state: T) -> Reduced<'py, T> {
    Ok((object.as_any().get_type().getattr("_restored")?, state))
}

/// One cut.
#[pyclass(frozen, get_all, eq, skip_from_py_object, module = "nanobot_context")]
#[derive(Clone, PartialEq)]
pub struct Cut {
    /// The message's index in the list that came in.
    index: usize,
    /// Why: `orphan_result`, `missing_result`, `malformed_call`, `reasoning`, `large_result`,
    /// `many_results`, `long_message`, `budget` or `joined`: then nothing of it is gone, and the two counts are the same.
    reason: Cow<'static, str>,
    /// Tokens of what was cut, before.
    tokens_before: u64,
    /// Tokens of what stands there now.
    tokens_after: u64,
}

impl From<&compress::Cut> for Cut {
    fn from(cut: &compress::Cut) -> Self {
        let compress::Cut { index, reason, tokens_before, tokens_after } = *cut;
        Self { index, reason: reason.name().into(), tokens_before, tokens_after }
    }
}

#[pymethods]
impl Cut {
    fn __repr__(&self) -> String {
        let Self { index, reason, tokens_before, tokens_after } = self;
        format!("Cut(index={index}, reason='{reason}', tokens_before={tokens_before}, tokens_after={tokens_after})")
    }

    fn __reduce__<'py>(slf: &Bound<'py, Self>) -> Reduced<'py, impl IntoPyObject<'py>> {
        let Self { index, reason, tokens_before, tokens_after } = slf.get();
        reduced(slf, (*index, reason.clone(), *tokens_before, *tokens_after))
    }

    #[staticmethod]
    fn _restored(index: usize, reason: String, tokens_before: u64, tokens_after: u64) -> Self {
        Self { index, reason: reason.into(), tokens_before, tokens_after }
    }
}

/// A name or an error line that a request no longer says.
#[pyclass(frozen, get_all, eq, skip_from_py_object, module = "nanobot_context")]
#[derive(Clone, PartialEq)]
pub struct Lost {
    /// The index of the last message that said it, in the list that came in.
    index: usize,
    /// What it is: `path`, `url`, `id`, `number` or `error`.
    kind: Cow<'static, str>,
    /// Its text.
    text: String,
}

impl From<compress::Lost> for Lost {
    fn from(lost: compress::Lost) -> Self {
        let compress::Lost { index, kind, text } = lost;
        Self { index, kind: kind.name().into(), text }
    }
}

#[pymethods]
impl Lost {
    fn __repr__(&self) -> String {
        let Self { index, kind, text } = self;
        format!("Lost(index={index}, kind='{kind}', text={text:?})")
    }

    fn __reduce__<'py>(slf: &Bound<'py, Self>) -> Reduced<'py, impl IntoPyObject<'py>> {
        let Self { index, kind, text } = slf.get();
        reduced(slf, (*index, kind.clone(), text.clone()))
    }

    #[staticmethod]
    fn _restored(index: usize, kind: String, text: String) -> Self {
        Self { index, kind: kind.into(), text }
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

    fn __reduce__<'py>(slf: &Bound<'py, Self>) -> Reduced<'py, impl IntoPyObject<'py>> {
        let (py, Self { messages, tokens, receipt }) = (slf.py(), slf.get());
        reduced(slf, (messages.clone_ref(py), *tokens, receipt.clone_ref(py)))
    }

    #[staticmethod]
    fn _restored(messages: Py<PyList>, tokens: u64, receipt: Py<Receipt>) -> Self {
        Self { messages, tokens, receipt }
    }

    #[allow(clippy::needless_pass_by_value)] // as pyo3 hands it over
    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        visit.call(&self.messages)?;
        visit.call(&self.receipt)
    }
}
