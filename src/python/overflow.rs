//! `Overflow`, and the reading of an error.

use std::borrow::Cow;

use pyo3::prelude::*;
use pyo3::types::PyString;

use crate::overflow::{ErrorView, detect_overflow};

use super::convert::without_surrogates;

/// What a provider said was too large.
#[pyclass(frozen, get_all, eq, skip_from_py_object, module = "nanobot_context")]
#[derive(Clone, PartialEq)]
pub struct Overflow {
    /// `input`, `output_cap`, `request_bytes`, `rate_ceiling` or `silent`.
    kind: &'static str,
    /// Tokens that are allowed, where the provider said it.
    limit_tokens: Option<u64>,
    /// Tokens that the request had, where the provider said it.
    used_tokens: Option<u64>,
}

#[pymethods]
impl Overflow {
    fn __repr__(&self) -> String {
        let number = |tokens: Option<u64>| tokens.map_or_else(|| "None".to_owned(), |tokens| tokens.to_string());
        let (limit, used) = (number(self.limit_tokens), number(self.used_tokens));
        format!("Overflow(kind='{}', limit_tokens={limit}, used_tokens={used})", self.kind)
    }
}

/// Return what an error's text says was too large, or `None` when it says something else.
#[pyfunction]
#[pyo3(signature = (text, *, status=None, code=None, error_type=None, provider=None))]
pub fn classify_error(
    text: &Bound<'_, PyString>,
    status: Option<u16>,
    code: Option<&str>,
    error_type: Option<&str>,
    provider: Option<&str>,
) -> Option<Overflow> {
    let text = text.to_str().map_or_else(|_| Cow::Owned(without_surrogates(text)), Cow::Borrowed);
    let found = detect_overflow(&ErrorView { text: &text, status, code, error_type, provider })?;
    Some(Overflow { kind: found.kind.name(), limit_tokens: found.limit_tokens, used_tokens: found.used_tokens })
}
