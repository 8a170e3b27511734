//! `Compressor`.

use std::sync::Mutex;

use pyo3::prelude::*;
use pyo3::types::PyList;

use crate::compress::Limits;

use super::arguments::{limits, model, tools, whole};
use super::functions::Call;
use super::receipt::Receipt;

/// The compression of one conversation.
#[pyclass(frozen, module = "nanobot_context")]
pub struct Compressor {
    /// The window in tokens.
    #[pyo3(get)]
    context_window: u64,
    /// The model whose tokens are counted.
    #[pyo3(get)]
    model: Option<String>,
    tools: Option<String>,
    limits: Limits,
    receipt: Mutex<Option<Py<Receipt>>>,
}

#[pymethods]
impl Compressor {
    #[new]
    #[pyo3(signature = (context_window, model=None, *, tools=None, settings=None))]
    fn new(
        context_window: &Bound<'_, PyAny>,
        model: Option<&Bound<'_, PyAny>>,
        tools: Option<&Bound<'_, PyAny>>,
        settings: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Self> {
        Ok(Self {
            context_window: whole(context_window, "context_window")?,
            model: self::model(model)?,
            tools: self::tools(tools)?,
            limits: limits(settings)?,
            receipt: Mutex::new(None),
        })
    }

    /// Return the messages for the next call: see `compress_messages`.
    fn compress<'py>(&self, messages: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyList>> {
        let call = self.call(messages);
        let (messages, receipt) = call.compress(&call.request(self.context_window, self.limits.clone()))?;
        self.keep(receipt);
        Ok(messages)
    }

    /// Return messages below 60 % of the window: see `emergency_compress`.
    fn emergency(&self, messages: &Bound<'_, PyAny>) -> PyResult<Py<PyList>> {
        let call = self.call(messages);
        let fitted = call.emergency(&call.request(self.context_window, self.limits.clone()))?;
        self.keep(Some(fitted.receipt));
        Ok(fitted.messages)
    }

    /// What the last call cut; `None` before the first one, and where nothing was to be done.
    #[getter]
    fn receipt(&self, py: Python<'_>) -> Option<Py<Receipt>> {
        self.receipt.lock().ok()?.as_ref().map(|receipt| receipt.clone_ref(py))
    }
}

impl Compressor {
    fn call<'py>(&self, messages: &Bound<'py, PyAny>) -> Call<'py> {
        Call { messages: messages.clone(), model: self.model.clone(), tools: self.tools.clone() }
    }

    fn keep(&self, receipt: Option<Py<Receipt>>) {
        // The old receipt is let go after the lock.
        let old = self.receipt.lock().map(|mut kept| std::mem::replace(&mut *kept, receipt));
        drop(old);
    }
}
