//! Arguments other than messages.

use std::sync::Arc;

use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyBytes, PyDict, PyInt, PyList, PyMapping, PySequence, PyString, PyTuple};

use crate::Error;
use crate::budget::{Limits, check_ratio};
use crate::error::MAX_WHOLE;
use crate::session::store;
use crate::tokens::Tokens;

use super::convert::snapshot;
use super::errors::{OrRaise, format_value};

/// Returns a copy of a list of messages, made at one moment: other threads may change the caller's during the call.
///
/// Of another sequence the items are copied into a list, and each mapping that is no dict into one.
pub fn messages<'py>(value: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyList>> {
    let list = match value.cast::<PyList>() {
        Ok(list) => snapshot(list),
        Err(_) if is_sequence(value) => PyList::new(value.py(), value.try_iter()?.collect::<PyResult<Vec<_>>>()?)?,
        Err(_) => {
            let problem = format!("must be a list of dicts, got {}", format_value(value));
            return Err(Error::argument("messages", problem)).or_raise(value.py());
        }
    };
    for (index, message) in list.iter().enumerate() {
        if !message.is_instance_of::<PyDict>() && message.cast::<PyMapping>().is_ok() {
            list.set_item(index, list.py().get_type::<PyDict>().call1((message,))?)?;
        }
    }
    Ok(list)
}

fn is_sequence(value: &Bound<'_, PyAny>) -> bool {
    let is_text = value.is_instance_of::<PyString>() || value.is_instance_of::<PyBytes>();
    !is_text && value.cast::<PySequence>().is_ok()
}

/// Returns a whole number of tokens, characters or messages.
pub fn whole(value: &Bound<'_, PyAny>, name: &str) -> PyResult<u64> {
    whole_from(0, value, name, "a non-negative integer")
}

fn whole_from(least: u64, value: &Bound<'_, PyAny>, name: &str, expected: &str) -> PyResult<u64> {
    let is_whole = value.is_instance_of::<PyInt>() && !value.is_instance_of::<PyBool>();
    let checked = match value.extract::<u64>() {
        Ok(number) if is_whole && number >= least => Error::check_whole(name, number),
        Err(_) if is_whole && value.gt(0).unwrap_or(false) => {
            Err(Error::argument(name, format!("must be at most {MAX_WHOLE}, got {}", format_value(value))))
        }
        _ => Err(Error::argument(name, format!("must be {expected}, got {}", format_value(value)))),
    };
    checked.or_raise(value.py())
}

/// Return `value` if it is an integer from `least` to `MAX_WHOLE`, or `None` where that is `optional`.
///
/// Raises:
///     InvalidArgumentError: It is not; the message names `argument`.
#[pyfunction]
#[pyo3(signature = (argument, value, *, least=0, optional=false))]
pub fn check_whole(argument: &str, value: &Bound<'_, PyAny>, least: u64, optional: bool) -> PyResult<Option<u64>> {
    if optional && value.is_none() {
        return Ok(None);
    }
    let kind = match least {
        0 => "a non-negative integer".to_owned(),
        1 => "a positive integer".to_owned(),
        _ => format!("an integer of {least} or more"),
    };
    let expected = if optional { kind + " or None" } else { kind };
    whole_from(least, value, argument, &expected).map(Some)
}

/// As [`whole`], for an argument that may be missing.
pub fn optional_whole(value: Option<&Bound<'_, PyAny>>, name: &str) -> PyResult<Option<u64>> {
    value.filter(|value| !value.is_none()).map(|value| whole(value, name)).transpose()
}

/// Returns a number of tokens.
pub fn tokens(value: &Bound<'_, PyAny>, name: &str) -> PyResult<Tokens> {
    whole(value, name).map(Tokens)
}

/// As [`tokens`], for an argument that may be missing.
pub fn optional_tokens(value: Option<&Bound<'_, PyAny>>, name: &str) -> PyResult<Option<Tokens>> {
    Ok(optional_whole(value, name)?.map(Tokens))
}

/// Returns a model's name.
pub fn model(value: Option<&Bound<'_, PyAny>>) -> PyResult<Option<String>> {
    let Some(value) = value.filter(|value| !value.is_none()) else { return Ok(None) };
    value.extract().map(Some).or_else(|_: PyErr| {
        Err(Error::argument("model", format!("must be a string or None, got {}", format_value(value))))
            .or_raise(value.py())
    })
}

/// Returns tool schemas as JSON text.
pub fn tools(value: Option<&Bound<'_, PyAny>>) -> PyResult<Option<String>> {
    let Some(value) = value.filter(|value| !value.is_none()) else { return Ok(None) };
    if !value.is_instance_of::<PyList>() && !value.is_instance_of::<PyTuple>() {
        return Err(Error::argument("tools", format!("must be a list, a tuple or None, got {}", format_value(value))))
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
            let problem = format!("must have the attributes of `Settings`, got {}", format_value(settings));
            Err(Error::argument("settings", problem)).or_raise(py)
        })
    };
    let ratio = |name: &str| -> PyResult<f64> {
        let value = attribute(name)?;
        let number = if value.is_instance_of::<PyBool>() { Err(PyTypeError::new_err(())) } else { value.extract() };
        let number = number.or_else(|_: PyErr| {
            Err(Error::argument(format!("settings.{name}"), format!("must be a number, got {}", format_value(&value))))
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
        message_overhead_tokens: tokens(&attribute("message_overhead_tokens")?, "settings.message_overhead_tokens")?,
        pinned: pinned(&attribute("pinned")?)?,
    })
}

/// Returns the patterns of the files that are pinned.
fn pinned(value: &Bound<'_, PyAny>) -> PyResult<Arc<[String]>> {
    let patterns = if is_sequence(value) { value.extract::<Vec<String>>().ok() } else { None };
    patterns.map(Arc::from).map_or_else(
        || {
            let problem = format!("must be a list of file names or patterns, got {}", format_value(value));
            Err(Error::argument("settings.pinned", problem)).or_raise(value.py())
        },
        Ok,
    )
}

/// Return what of a store's URL may be shown: no user, no password, no options.
#[pyfunction]
pub fn without_credentials(url: &Bound<'_, PyString>) -> String {
    store::without_credentials(&url.to_string_lossy())
}

/// Return a text that may be or hold a URL with `***` in place of user and password.
#[pyfunction]
pub fn mask_credentials(text: &Bound<'_, PyString>) -> String {
    store::mask_credentials(&text.to_string_lossy())
}
