//! The checks of when a summary is due.

use pyo3::IntoPyObjectExt;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};

use crate::summary::{self, Comparison, Observed};
use crate::{Error, Result};

use super::super::arguments::{optional_tokens, optional_whole, whole};
use super::super::errors::OrRaise;
use super::super::receipt::Reduced;
use super::Any;
use super::policy::with_keywords;

/// A check of when a summary is due, or several joined by `any`, `all` and `~`.
///
/// The comparison is part of it: `messages(gt=20)` is document 002's, `messages(ge=40)` document 003's.
#[pyclass(frozen, eq, skip_from_py_object, module = "nanobot_context.summary")]
#[derive(Clone, PartialEq)]
pub struct Trigger(pub(super) summary::Trigger);

fn compared<T>(py: Python<'_>, name: &str, gt: Option<T>, ge: Option<T>) -> PyResult<(Comparison, T)> {
    let wrong = || Error::argument(name, "must have one of `gt` and `ge`");
    let found: Result<_> = match (gt, ge) {
        (Some(limit), None) => Ok((Comparison::Above, limit)),
        (None, Some(limit)) => Ok((Comparison::AtLeast, limit)),
        _ => Err(wrong()),
    };
    found.or_raise(py)
}

#[pymethods]
impl Trigger {
    /// Return a check of the number of messages that no summary covers.
    ///
    /// Raises:
    ///     InvalidArgumentError: Not exactly one of `gt` and `ge`, or one that is negative.
    #[staticmethod]
    #[pyo3(signature = (*, gt=None, ge=None))]
    fn messages(py: Python<'_>, gt: Any<'_, '_>, ge: Any<'_, '_>) -> PyResult<Self> {
        let (gt, ge) = (optional_whole(gt, "gt")?, optional_whole(ge, "ge")?);
        compared(py, "messages", gt, ge).map(|(comparison, limit)| Self(summary::Trigger::Messages(comparison, limit)))
    }

    /// Return a check of their tokens, each message counted once.
    ///
    /// Raises:
    ///     InvalidArgumentError: Not exactly one of `gt` and `ge`, or one that is negative.
    #[staticmethod]
    #[pyo3(signature = (*, gt=None, ge=None))]
    fn tokens(py: Python<'_>, gt: Any<'_, '_>, ge: Any<'_, '_>) -> PyResult<Self> {
        let (gt, ge) = (optional_tokens(gt, "gt")?, optional_tokens(ge, "ge")?);
        compared(py, "tokens", gt, ge).map(|(comparison, limit)| Self(summary::Trigger::Tokens(comparison, limit)))
    }

    /// Return a check of the seconds that nobody said anything.
    ///
    /// Raises:
    ///     InvalidArgumentError: Not exactly one of `gt` and `ge`.
    #[staticmethod]
    #[pyo3(signature = (*, gt=None, ge=None))]
    fn idle(py: Python<'_>, gt: Option<f64>, ge: Option<f64>) -> PyResult<Self> {
        compared(py, "idle", gt, ge).map(|(comparison, limit)| Self(summary::Trigger::Idle(comparison, limit)))
    }

    /// Return a check that is true where one of `checks` is; of none it never is.
    #[staticmethod]
    #[pyo3(signature = (*checks))]
    #[allow(clippy::needless_pass_by_value)] // as pyo3 hands it over
    fn any(checks: Vec<Bound<'_, Self>>) -> Self {
        Self(summary::Trigger::Any(checks.iter().map(|check| check.get().0.clone()).collect()))
    }

    /// Return a check that is true where all of `checks` are; of none it always is.
    #[staticmethod]
    #[pyo3(signature = (*checks))]
    #[allow(clippy::needless_pass_by_value)] // as pyo3 hands it over
    fn all(checks: Vec<Bound<'_, Self>>) -> Self {
        Self(summary::Trigger::All(checks.iter().map(|check| check.get().0.clone()).collect()))
    }

    fn __reduce__<'py>(slf: &Bound<'py, Self>) -> Reduced<'py, Bound<'py, PyTuple>> {
        let (py, class) = (slf.py(), slf.get_type());
        let joined = |name: &str, checks: &[summary::Trigger]| {
            Ok((class.getattr(name)?, PyTuple::new(py, checks.iter().cloned().map(Self))?))
        };
        let compared = |name: &str, comparison: Comparison, limit: Bound<'py, PyAny>| {
            let keywords = PyDict::new(py);
            let keyword = if comparison == Comparison::Above { "gt" } else { "ge" };
            keywords.set_item(keyword, limit)?;
            with_keywords(&class.getattr(name)?, &keywords)
        };
        match &slf.get().0 {
            summary::Trigger::Messages(comparison, limit) => {
                compared("messages", *comparison, limit.into_bound_py_any(py)?)
            }
            summary::Trigger::Tokens(comparison, limit) => {
                compared("tokens", *comparison, limit.into_bound_py_any(py)?)
            }
            summary::Trigger::Idle(comparison, limit) => compared("idle", *comparison, limit.into_bound_py_any(py)?),
            summary::Trigger::Any(checks) => joined("any", checks),
            summary::Trigger::All(checks) => joined("all", checks),
            summary::Trigger::Not(check) => {
                let invert = py.import("operator")?.getattr("invert")?;
                Ok((invert, PyTuple::new(py, [Self((**check).clone())])?))
            }
        }
    }

    fn __invert__(&self) -> Self {
        Self(!self.0.clone())
    }

    /// Whether it looks at the seconds of silence, and so may fire because time passes.
    #[getter]
    fn watches_silence(&self) -> bool {
        self.0.watches_silence()
    }

    /// Return why a summary is due: `message_limit`, `token_limit`, `idle`, `not` or `always`; `None`
    /// while it is not, and where there is no message.
    ///
    /// Raises:
    ///     InvalidArgumentError: A number is negative or none.
    #[pyo3(signature = (*, messages, tokens=None, idle_seconds=0.0))]
    fn fires(
        &self,
        messages: &Bound<'_, PyAny>,
        tokens: Any<'_, '_>,
        idle_seconds: f64,
    ) -> PyResult<Option<&'static str>> {
        let tokens = optional_tokens(tokens, "tokens")?.unwrap_or_default();
        Ok(self.0.fires(&Observed { messages: whole(messages, "messages")?, tokens, idle_seconds }))
    }

    fn __repr__(&self) -> String {
        format!("Trigger({:?})", self.0)
    }
}
