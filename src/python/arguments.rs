//! Arguments other than messages.

use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyInt, PyList};

use crate::compress::{Limits, check_ratio};
use crate::error::MAX_WHOLE;
use crate::{Error, Result};

use super::convert::snapshot;
use super::errors::OrRaise;

/// Returns a copy of a list of messages, made at one moment: other threads may change the caller's during the call.
pub fn messages<'py>(value: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyList>> {
    match value.cast::<PyList>() {
        Ok(list) => Ok(snapshot(list)),
        Err(_) => Err(Error::argument("messages", format!("must be a list of dicts, got {}", shown(value))))
            .or_raise(value.py()),
    }
}

/// Returns a whole number of tokens, characters or messages.
pub fn whole(value: &Bound<'_, PyAny>, name: &str) -> PyResult<u64> {
    let py = value.py();
    let wrong = |problem: String| -> Result<u64> { Err(Error::argument(name, problem)) };
    if !value.is_instance_of::<PyInt>() || value.is_instance_of::<PyBool>() {
        return wrong(format!("must be a non-negative integer, got {}", shown(value))).or_raise(py);
    }
    match value.extract::<u64>() {
        Ok(number) => Error::check_whole(name, number).or_raise(py),
        Err(_) if value.lt(0)? => wrong(format!("must be a non-negative integer, got {}", shown(value))).or_raise(py),
        Err(_) => wrong(format!("must be at most {MAX_WHOLE}, got {}", shown(value))).or_raise(py),
    }
}

/// As [`whole`], for an argument that may be missing.
pub fn optional_whole(value: Option<&Bound<'_, PyAny>>, name: &str) -> PyResult<Option<u64>> {
    value.filter(|value| !value.is_none()).map(|value| whole(value, name)).transpose()
}

/// Returns a model's name.
pub fn model(value: Option<&Bound<'_, PyAny>>) -> PyResult<Option<String>> {
    let Some(value) = value.filter(|value| !value.is_none()) else { return Ok(None) };
    value.extract().map(Some).or_else(|_: PyErr| {
        Err(Error::argument("model", format!("must be a string or None, got {}", shown(value)))).or_raise(value.py())
    })
}

/// Returns tool schemas as JSON text.
pub fn tools(value: Option<&Bound<'_, PyAny>>) -> PyResult<Option<String>> {
    let Some(value) = value.filter(|value| !value.is_none()) else { return Ok(None) };
    if !value.is_instance_of::<PyList>() {
        return Err(Error::argument("tools", format!("must be a list or None, got {}", shown(value))))
            .or_raise(value.py());
    }
    super::convert::json(value).map(Some).or_else(|problem| Err(Error::argument("tools", problem)).or_raise(value.py()))
}

/// Returns the knobs of compression from an object with the attributes of `Settings`; the defaults without one.
pub fn limits(settings: Option<&Bound<'_, PyAny>>) -> PyResult<Limits> {
    let Some(settings) = settings.filter(|settings| !settings.is_none()) else { return Ok(Limits::default()) };
    let py = settings.py();
    let attribute = |name: &str| {
        settings.getattr(name).or_else(|_: PyErr| {
            let problem = format!("must have the attributes of `Settings`, got {}", shown(settings));
            Err(Error::argument("settings", problem)).or_raise(py)
        })
    };
    let ratio = |name: &str| -> PyResult<f64> {
        let value = attribute(name)?;
        let number = if value.is_instance_of::<PyBool>() { Err(PyTypeError::new_err(())) } else { value.extract() };
        let number = number.or_else(|_: PyErr| {
            Err(Error::argument(format!("settings.{name}"), format!("must be a number, got {}", shown(&value))))
                .or_raise(py)
        })?;
        check_ratio(&format!("settings.{name}"), number).or_raise(py)
    };
    let chars = |name: &str| -> PyResult<usize> {
        let number = whole(&attribute(name)?, &format!("settings.{name}"))?;
        Ok(usize::try_from(number).unwrap_or(usize::MAX))
    };
    Ok(Limits {
        tool_result_soft_limit: ratio("tool_result_soft_limit")?,
        tool_result_hard_limit: ratio("tool_result_hard_limit")?,
        context_reserve_ratio: ratio("context_reserve_ratio")?,
        reasoning_keep_chars: chars("reasoning_keep_chars")?,
        max_user_message_chars: chars("max_user_message_chars")?,
        max_assistant_message_chars: chars("max_assistant_message_chars")?,
        emergency_ratio: ratio("emergency_ratio")?,
    })
}

/// Returns a value as an error message shows it: its repr, shortened, or its type where that is no help.
pub fn shown(value: &Bound<'_, PyAny>) -> String {
    const MAX_CHARS: usize = 60;
    match value.repr() {
        Ok(repr) if repr.len().is_ok_and(|length| length <= MAX_CHARS) => repr.to_string_lossy().into_owned(),
        _ => value.get_type().name().map_or_else(|_| "an object".to_owned(), |name| format!("`{name}`")),
    }
}
