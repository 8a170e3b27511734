//! `Receipt`, `Cut` and `Fitted`.

use pyo3::prelude::*;
use pyo3::types::PyList;

use crate::compress;
use crate::tokens::Source;

/// What was cut, and how large the request was and is.
#[pyclass(frozen, get_all, eq, skip_from_py_object, module = "nanobot_context")]
#[derive(Clone, PartialEq, Default)]
pub struct Receipt {
    /// Tokens of the request before.
    tokens_before: Option<u64>,
    /// Tokens of the request now.
    tokens_after: Option<u64>,
    /// How they were counted: `exact` or `estimated`.
    source: Option<&'static str>,
    /// Everything that was cut or changed.
    cuts: Vec<Cut>,
}

impl From<&compress::Receipt> for Receipt {
    fn from(receipt: &compress::Receipt) -> Self {
        Self {
            tokens_before: receipt.tokens_before,
            tokens_after: receipt.tokens_after,
            source: receipt.source.map(|source| match source {
                Source::Exact => "exact",
                Source::Estimated => "estimated",
            }),
            cuts: receipt.cuts.iter().map(Cut::from).collect(),
        }
    }
}

#[pymethods]
impl Receipt {
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
