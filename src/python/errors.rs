//! The one place where errors of the core become exceptions of `nanobot_context.errors`.

use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyDict, PyModule};

use crate::Error;

/// Returns the exception for an error of the core.
pub fn to_python(py: Python<'_>, error: &Error) -> PyErr {
    exception(py, error).unwrap_or_else(|failure| failure)
}

fn exception(py: Python<'_>, error: &Error) -> PyResult<PyErr> {
    static MODULE: PyOnceLock<Py<PyModule>> = PyOnceLock::new();
    let module = MODULE.get_or_try_init(py, || py.import("nanobot_context.errors").map(Bound::unbind))?.bind(py);
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
            "ContextOverflowError"
        }
    };
    let exception = module.getattr(class)?.call((error.to_string(),), Some(&fields))?;
    Ok(PyErr::from_value(exception))
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
