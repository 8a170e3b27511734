//! `Receipt`, `Cut`, `Lost` and `Fitted`.

use std::borrow::Cow;
use std::sync::OnceLock;

use pyo3::prelude::*;
use pyo3::types::PyList;
use pyo3::{PyTraverseError, PyVisit};

use crate::compress;
use crate::tokens::{Source, TokenCounter, Tokens};

use super::call::Call;
use super::convert::snapshot;
use super::view::{Strings, View};

/// What was cut, and how large the request was and is.
#[pyclass(frozen, skip_from_py_object, module = "nanobot_context")]
pub struct Receipt {
    /// Tokens of the request before and now; nothing where they have not been counted yet.
    tokens: OnceLock<(Option<Tokens>, Option<Tokens>)>,
    /// Model and tool schemas of a request in which nothing was cut, for what bounds have shown: to count it when asked.
    counted_for: (Option<String>, Option<String>),
    /// How tokens are counted: `exact` or `estimated`.
    #[pyo3(get)]
    source: Option<Cow<'static, str>>,
    /// Everything that was cut or changed.
    #[pyo3(get)]
    cuts: Vec<Cut>,
    before: Py<PyList>,
    after: Py<PyList>,
    lost: OnceLock<Vec<Lost>>,
}

impl Receipt {
    /// Returns the receipt of a plan that made `after` of `before`.
    pub fn new(receipt: &compress::Receipt, before: &Bound<'_, PyList>, after: &Bound<'_, PyList>) -> Self {
        Self {
            tokens: (receipt.tokens_before, receipt.tokens_after).into(),
            counted_for: (None, None),
            source: receipt.source.map(name_of),
            cuts: receipt.cuts.iter().map(Cut::from).collect(),
            before: before.clone().unbind(),
            // The caller's to change.
            after: snapshot(after).unbind(),
            lost: OnceLock::new(),
        }
    }

    /// Returns the tokens before and now, of messages as they are when this is asked for the first time.
    fn tokens(&self, py: Python<'_>) -> PyResult<(Option<Tokens>, Option<Tokens>)> {
        if let Some(tokens) = self.tokens.get() {
            return Ok(*tokens);
        }
        let (model, tools) = self.counted_for.clone();
        let tokens = Call { messages: self.before.bind(py).clone(), model, tools, archive: None }.tokens()?;
        Ok(*self.tokens.get_or_init(|| (Some(tokens), Some(tokens))))
    }
}

fn name_of(source: Source) -> Cow<'static, str> {
    match source {
        Source::Exact => "exact".into(),
        Source::Estimated => "estimated".into(),
    }
}

#[pymethods]
impl Receipt {
    /// Tokens of the request before.
    #[getter]
    fn tokens_before(&self, py: Python<'_>) -> PyResult<Option<Tokens>> {
        self.tokens(py).map(|(before, _)| before)
    }

    /// Tokens of the request now.
    #[getter]
    fn tokens_after(&self, py: Python<'_>) -> PyResult<Option<Tokens>> {
        self.tokens(py).map(|(_, after)| after)
    }

    fn __eq__(&self, py: Python<'_>, other: &Bound<'_, Self>) -> PyResult<bool> {
        let other = other.get();
        Ok(self.source == other.source && self.cuts == other.cuts && self.tokens(py)? == other.tokens(py)?)
    }

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

    fn __repr__(&self, py: Python<'_>) -> PyResult<String> {
        let number = |tokens: Option<Tokens>| tokens.map_or_else(|| "None".to_owned(), |tokens| tokens.to_string());
        let (before, after) = self.tokens(py)?;
        Ok(format!(
            "Receipt(tokens_before={}, tokens_after={}, cuts=<{}>)",
            number(before),
            number(after),
            self.cuts.len()
        ))
    }

    fn __reduce__<'py>(slf: &Bound<'py, Self>) -> Reduced<'py, impl IntoPyObject<'py>> {
        let (py, this) = (slf.py(), slf.get());
        let (tokens_before, tokens_after) = this.tokens(py)?;
        let (before, after) = (this.before.bind(py).clone(), this.after.bind(py).clone());
        reduced(slf, (tokens_before, tokens_after, this.source.clone(), this.cuts.clone(), before, after))
    }

    #[staticmethod]
    #[allow(clippy::needless_pass_by_value)] // as pyo3 hands it over
    fn _restored(
        tokens_before: Option<Tokens>,
        tokens_after: Option<Tokens>,
        source: Option<String>,
        cuts: Vec<Bound<'_, Cut>>,
        before: Py<PyList>,
        after: Py<PyList>,
    ) -> Self {
        let cuts = cuts.iter().map(|cut| cut.get().clone()).collect();
        let source = source.map(Cow::Owned);
        let (tokens, counted_for) = ((tokens_before, tokens_after).into(), (None, None));
        Self { tokens, counted_for, source, cuts, before, after, lost: OnceLock::new() }
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
    /// Why: `orphan_result`, `missing_result`, `malformed_call`, `reasoning`, `large_result`, `many_results`,
    /// `long_message`, `budget`; or `joined` or `late_result`: then nothing of it is gone, and the two counts are the same.
    reason: Cow<'static, str>,
    /// Tokens of what was cut, before.
    tokens_before: Tokens,
    /// Tokens of what stands there now.
    tokens_after: Tokens,
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
    fn _restored(index: usize, reason: String, tokens_before: Tokens, tokens_after: Tokens) -> Self {
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
    /// What was cut.
    pub receipt: Py<Receipt>,
}

impl Fitted {
    /// Returns all the messages of a call, of which bounds have shown that they fit; they are counted when that is asked for.
    pub fn whole(call: &Call<'_>) -> PyResult<Self> {
        let py = call.messages.py();
        let receipt = Receipt {
            tokens: OnceLock::new(),
            counted_for: (call.model.clone(), call.tools.clone()),
            source: Some(name_of(TokenCounter::new(call.model.as_deref()).source())),
            cuts: Vec::new(),
            before: call.messages.clone().unbind(),
            after: call.messages.clone().unbind(),
            lost: OnceLock::new(),
        };
        Ok(Self { messages: snapshot(&call.messages).unbind(), receipt: Py::new(py, receipt)? })
    }
}

#[pymethods]
impl Fitted {
    /// Their tokens, tool schemas included.
    #[getter]
    fn tokens(&self, py: Python<'_>) -> PyResult<Tokens> {
        self.receipt.get().tokens(py).map(|(_, after)| after.unwrap_or_default())
    }

    fn __repr__(&self, py: Python<'_>) -> PyResult<String> {
        Ok(format!("Fitted(messages=<{}>, tokens={})", self.messages.bind(py).len(), self.tokens(py)?))
    }

    fn __reduce__<'py>(slf: &Bound<'py, Self>) -> Reduced<'py, impl IntoPyObject<'py>> {
        let (py, Self { messages, receipt }) = (slf.py(), slf.get());
        reduced(slf, (messages.clone_ref(py), receipt.clone_ref(py)))
    }

    #[staticmethod]
    fn _restored(messages: Py<PyList>, receipt: Py<Receipt>) -> Self {
        Self { messages, receipt }
    }

    #[allow(clippy::needless_pass_by_value)] // as pyo3 hands it over
    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        visit.call(&self.messages)?;
        visit.call(&self.receipt)
    }
}
