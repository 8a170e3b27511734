//! The one place where errors of the core become exceptions of `nanobot_context.errors`.

use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyDict, PyModule};

use crate::Error;
use crate::session::store::{Retry, StoreError, mask_credentials};

/// Returns the exception for an error of the core.
pub fn to_python(py: Python<'_>, error: &Error) -> PyErr {
    exception(py, error).unwrap_or_else(|failure| failure)
}

/// Returns the exception for an error of a store.
pub fn of_store(py: Python<'_>, error: &StoreError) -> PyErr {
    store_exception(py, error).unwrap_or_else(|failure| failure)
}

fn store_exception(py: Python<'_>, error: &StoreError) -> PyResult<PyErr> {
    let fields = PyDict::new(py);
    if let StoreError::Invalid { name, .. } = error {
        fields.set_item("argument", name)?;
        return raised(py, "InvalidArgumentError", &error.to_string(), &fields);
    }
    let retry = match error.retry() {
        Retry::Later => "later",
        Retry::AfterReading => "after_reading",
        Retry::Never => "never",
    };
    fields.set_item("retry", retry)?;
    let class = match error {
        StoreError::NotFound(_) => "SessionNotFoundError",
        StoreError::AlreadyExists(_) => "SessionExistsError",
        StoreError::Gone(_) => "SessionGoneError",
        StoreError::Conflict { expected, actual, .. } => {
            fields.set_item("expected", expected)?;
            fields.set_item("actual", actual)?;
            "ConflictError"
        }
        StoreError::Unavailable { .. } | StoreError::Locked { .. } => "StoreUnavailableError",
        StoreError::Unauthorized { .. } | StoreError::Forbidden { .. } | StoreError::ReadOnly { .. } => {
            "StoreAccessError"
        }
        StoreError::Full { .. } => "StoreFullError",
        StoreError::Corrupt { .. } | StoreError::Replaced { .. } | StoreError::NewerSchema { .. } => "StoreDataError",
        StoreError::Closed => "StoreClosedError",
        StoreError::Invalid { .. } | StoreError::Failed { .. } => "SessionStoreError",
    };
    raised(py, class, &error.to_string(), &fields)
}

fn raised(py: Python<'_>, class: &str, message: &str, fields: &Bound<'_, PyDict>) -> PyResult<PyErr> {
    static MODULE: PyOnceLock<Py<PyModule>> = PyOnceLock::new();
    let module = MODULE.get_or_try_init(py, || py.import("nanobot_context.errors").map(Bound::unbind))?.bind(py);
    Ok(PyErr::from_value(module.getattr(class)?.call((message,), Some(fields))?))
}

fn exception(py: Python<'_>, error: &Error) -> PyResult<PyErr> {
    let fields = PyDict::new(py);
    let class = match error {
        Error::InvalidMessage { index, field, .. } => {
            fields.set_item("index", index)?;
            fields.set_item("field", field)?;
            "InvalidMessageError"
        }
        Error::InvalidArgument { name, .. } => {
            fields.set_item("argument", name)?;
            "InvalidArgumentError"
        }
        Error::Overflow { floor } => {
            fields.set_item("needed_tokens", floor.needed_tokens)?;
            fields.set_item("limit_tokens", floor.limit_tokens)?;
            fields.set_item("model", &floor.model)?;
            let parts = PyDict::new(py);
            for (name, tokens) in &floor.parts {
                parts.set_item(name, tokens)?;
            }
            fields.set_item("parts", parts)?;
            let largest_tools = PyDict::new(py);
            for (name, tokens) in &floor.largest_tools {
                largest_tools.set_item(name, tokens)?;
            }
            fields.set_item("largest_tools", largest_tools)?;
            "ContextOverflowError"
        }
    };
    raised(py, class, &error.to_string(), &fields)
}

/// Maps the errors of a result.
pub trait OrRaise<T> {
    /// Returns the value, or the exception for the error.
    fn or_raise(self, py: Python<'_>) -> PyResult<T>;
}

impl<T> OrRaise<T> for crate::Result<T> {
    fn or_raise(self, py: Python<'_>) -> PyResult<T> {
        self.map_err(|error| to_python(py, &error))
    }
}

/// Return a value as an error message shows it: its repr, or its type where that is long or cannot be made. Of a URL, user
/// and password are masked.
#[pyfunction]
pub fn format_value(value: &Bound<'_, PyAny>) -> String {
    const MAX_CHARS: usize = 60;
    match value.repr() {
        Ok(repr) if repr.len().is_ok_and(|length| length <= MAX_CHARS) => mask_credentials(&repr.to_string_lossy()),
        _ => value.get_type().name().map_or_else(|_| "an object".to_owned(), |name| format!("`{name}`")),
    }
}
