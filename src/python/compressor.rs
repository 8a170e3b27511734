//! `Compressor`.

use std::sync::Mutex;

use pyo3::prelude::*;
use pyo3::types::PyList;
use pyo3::{PyTraverseError, PyVisit};

use crate::compress::{CompactionCache, Limits, Request};
use crate::tokens::Tokens;

use super::archive::Archive;
use super::arguments::{limits, messages, model, optional_tokens, tokens, tools};
use super::call::Call;
use super::receipt::{Receipt, Reduced, reduced};

/// The compression of one conversation.
#[pyclass(frozen, module = "nanobot_context")]
pub struct Compressor {
    /// The window in tokens.
    #[pyo3(get)]
    context_window: Tokens,
    /// The model whose tokens are counted.
    #[pyo3(get)]
    model: Option<String>,
    tools: Option<String>,
    max_output_tokens: Option<Tokens>,
    limits: Limits,
    cache: CompactionCache,
    archive: Option<Archive>,
    receipt: Mutex<Option<Py<Receipt>>>,
}

#[pymethods]
impl Compressor {
    #[new]
    #[pyo3(signature = (
        context_window, model=None, *, tools=None, max_output_tokens=None, settings=None, archive=None
    ))]
    fn new(
        context_window: &Bound<'_, PyAny>,
        model: Option<&Bound<'_, PyAny>>,
        tools: Option<&Bound<'_, PyAny>>,
        max_output_tokens: Option<&Bound<'_, PyAny>>,
        settings: Option<&Bound<'_, PyAny>>,
        archive: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Self> {
        Ok(Self {
            context_window: tokens(context_window, "context_window")?,
            model: self::model(model)?,
            tools: self::tools(tools)?,
            max_output_tokens: optional_tokens(max_output_tokens, "max_output_tokens")?,
            limits: limits(settings)?,
            cache: CompactionCache::default(),
            archive: Archive::of(archive)?,
            receipt: Mutex::new(None),
        })
    }

    /// Return the messages for the next call: see `compress_messages`, which gives the same ones.
    ///
    /// Remembers the conversation's last cut, so that a call costs what is new. `context_window`, `max_output_tokens` and
    /// `message_overhead_tokens` stand in place of the compressor's own, as where a provider has refused more.
    #[pyo3(signature = (messages, *, context_window=None, max_output_tokens=None, message_overhead_tokens=None))]
    fn compress<'py>(
        &self,
        messages: &Bound<'py, PyAny>,
        context_window: Option<&Bound<'py, PyAny>>,
        max_output_tokens: Option<&Bound<'py, PyAny>>,
        message_overhead_tokens: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyList>> {
        let call = self.call(messages)?;
        let window_tokens = optional_tokens(context_window, "context_window")?.unwrap_or(self.context_window);
        let max_output_tokens = optional_tokens(max_output_tokens, "max_output_tokens")?.or(self.max_output_tokens);
        let mut limits = self.limits.clone();
        if let Some(tokens) = optional_tokens(message_overhead_tokens, "message_overhead_tokens")? {
            limits.message_overhead_tokens = tokens;
        }
        let request = Request { max_output_tokens, ..call.request(window_tokens, limits) };
        let (messages, receipt) = call.compress(&request, Some(&self.cache))?;
        self.keep(receipt);
        Ok(messages)
    }

    /// Return messages below 60 % of the window: see `emergency_compress`.
    fn emergency(&self, messages: &Bound<'_, PyAny>) -> PyResult<Py<PyList>> {
        let call = self.call(messages)?;
        let max_output_tokens = self.max_output_tokens;
        let request = Request { max_output_tokens, ..call.request(self.context_window, self.limits.clone()) };
        let fitted = call.emergency(&request)?;
        self.keep(Some(fitted.receipt));
        Ok(fitted.messages)
    }

    /// What the last call cut; `None` before the first one, and where nothing was to be done.
    #[getter]
    fn receipt(&self, py: Python<'_>) -> Option<Py<Receipt>> {
        self.receipt.lock().ok()?.as_ref().map(|receipt| receipt.clone_ref(py))
    }

    /// Without the last cut, which a new one finds again.
    fn __reduce__<'py>(slf: &Bound<'py, Self>) -> Reduced<'py, impl IntoPyObject<'py>> {
        let (py, this) = (slf.py(), slf.get());
        let Limits {
            tool_result_soft_limit,
            tool_result_hard_limit,
            context_reserve_ratio,
            reasoning_keep_chars,
            max_user_message_chars,
            max_assistant_message_chars,
            emergency_ratio,
            message_overhead_tokens,
            ref pinned,
        } = this.limits;
        let ratios = [tool_result_soft_limit, tool_result_hard_limit, context_reserve_ratio, emergency_ratio];
        let chars = [reasoning_keep_chars, max_user_message_chars, max_assistant_message_chars];
        let archive = this.archive.as_ref().map(|archive| archive.object.clone_ref(py));
        let receipt = this.receipt(py);
        let kept = (this.context_window, this.model.clone(), this.tools.clone(), this.max_output_tokens);
        reduced(slf, (kept, ratios, chars, message_overhead_tokens, pinned.to_vec(), archive, receipt))
    }

    #[staticmethod]
    fn _restored(
        kept: (Tokens, Option<String>, Option<String>, Option<Tokens>),
        ratios: [f64; 4],
        chars: [usize; 3],
        message_overhead_tokens: Tokens,
        pinned: Vec<String>,
        archive: Option<&Bound<'_, PyAny>>,
        receipt: Option<Py<Receipt>>,
    ) -> PyResult<Self> {
        let [tool_result_soft_limit, tool_result_hard_limit, context_reserve_ratio, emergency_ratio] = ratios;
        let [reasoning_keep_chars, max_user_message_chars, max_assistant_message_chars] = chars;
        let limits = Limits {
            tool_result_soft_limit,
            tool_result_hard_limit,
            context_reserve_ratio,
            reasoning_keep_chars,
            max_user_message_chars,
            max_assistant_message_chars,
            emergency_ratio,
            message_overhead_tokens,
            pinned: pinned.into(),
        };
        let (context_window, model, tools, max_output_tokens) = kept;
        let (cache, archive, receipt) = (CompactionCache::default(), Archive::of(archive)?, Mutex::new(receipt));
        Ok(Self { context_window, model, tools, max_output_tokens, limits, cache, archive, receipt })
    }

    #[allow(clippy::needless_pass_by_value)] // as pyo3 hands it over
    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        if let Some(archive) = &self.archive {
            visit.call(&archive.object)?;
        }
        // Nothing stops for the collector while it holds the lock, so that this finds the same in each of its passes.
        match self.receipt.try_lock() {
            Ok(receipt) => receipt.as_ref().map_or(Ok(()), |receipt| visit.call(receipt)),
            Err(_) => Ok(()),
        }
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
