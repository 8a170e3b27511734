//! `Compressor`.

use std::sync::Mutex;

use pyo3::prelude::*;
use pyo3::types::PyList;

use crate::compress::{Limits, Steady};

use super::archive::Archive;
use super::arguments::{limits, messages, model, optional_whole, tools, whole};
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
    steady: Steady,
    archive: Option<Archive>,
    receipt: Mutex<Option<Py<Receipt>>>,
}

#[pymethods]
impl Compressor {
    #[new]
    #[pyo3(signature = (context_window, model=None, *, tools=None, settings=None, archive=None))]
    fn new(
        context_window: &Bound<'_, PyAny>,
        model: Option<&Bound<'_, PyAny>>,
        tools: Option<&Bound<'_, PyAny>>,
        settings: Option<&Bound<'_, PyAny>>,
        archive: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Self> {
        Ok(Self {
            context_window: whole(context_window, "context_window")?,
            model: self::model(model)?,
            tools: self::tools(tools)?,
            limits: limits(settings)?,
            steady: Steady::default(),
            archive: Archive::of(archive)?,
            receipt: Mutex::new(None),
        })
    }

    /// Return the messages for the next call: see `compress_messages`, which gives the same ones.
    ///
    /// Remembers the conversation's last cut, so that a call costs what is new. `context_window` in
    /// place of the compressor's own is for a provider that has refused more than a lower one.
    #[pyo3(signature = (messages, *, context_window=None))]
    fn compress<'py>(
        &self,
        messages: &Bound<'py, PyAny>,
        context_window: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyList>> {
        let call = self.call(messages)?;
        let window_tokens = optional_whole(context_window, "context_window")?.unwrap_or(self.context_window);
        let request = call.request(window_tokens, self.limits.clone());
        let (messages, receipt) = call.compress(&request, Some(&self.steady))?;
        self.keep(receipt);
        Ok(messages)
    }

    /// Return messages below 60 % of the window: see `emergency_compress`.
    fn emergency(&self, messages: &Bound<'_, PyAny>) -> PyResult<Py<PyList>> {
        let call = self.call(messages)?;
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
    fn call<'py>(&self, messages: &Bound<'py, PyAny>) -> PyResult<Call<'py>> {
        let archive = self.archive.as_ref().map(|archive| archive.clone_ref(messages.py()));
        let messages = self::messages(messages)?;
        Ok(Call { messages, model: self.model.clone(), tools: self.tools.clone(), archive })
    }

    fn keep(&self, receipt: Option<Py<Receipt>>) {
        // The old receipt is let go after the lock.
        let old = self.receipt.lock().map(|mut kept| std::mem::replace(&mut *kept, receipt));
        drop(old);
    }
}
