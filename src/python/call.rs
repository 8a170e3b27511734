//! What the functions share: a view of the messages, a plan, and the plan carried out.

use pyo3::prelude::*;
use pyo3::types::PyList;

use crate::compress::{self, CompactionCache, Plan, Request};
use crate::message::Message;
use crate::tokens::{TokenCounter, Tokens};

use super::apply::apply;
use super::archive::{self, Archive};
use super::arguments::{self, model, tools};
use super::errors::OrRaise;
use super::receipt::{Fitted, Receipt};
use super::unchanged;
use super::view::{Strings, View};

type Any<'a, 'py> = Option<&'a Bound<'py, PyAny>>;

/// A call of a function that reads messages.
pub struct Call<'py> {
    /// The messages that came in, in a list that nobody else can change.
    pub messages: Bound<'py, PyList>,
    pub model: Option<String>,
    pub tools: Option<String>,
    pub archive: Option<Archive>,
}

impl<'py> Call<'py> {
    pub fn new(messages: &Bound<'py, PyAny>, model_name: Any<'_, 'py>, schemas: Any<'_, 'py>) -> PyResult<Self> {
        let (messages, model, tools) = (arguments::messages(messages)?, model(model_name)?, tools(schemas)?);
        Ok(Self { messages, model, tools, archive: None })
    }

    pub fn with_archive(self, archive: Any<'_, 'py>) -> PyResult<Self> {
        Ok(Self { archive: Archive::of(archive)?, ..self })
    }

    pub fn request(&self, window_tokens: Tokens, limits: compress::Limits) -> Request<'_> {
        Request {
            model: self.model.as_deref(),
            tools: self.tools.as_deref(),
            window_tokens,
            max_output_tokens: None,
            limits,
            archive: self.archive.as_ref().map(|archive| archive.place.clone()),
        }
    }

    /// Runs `work` on the view, and remembers what it found out.
    pub fn with_view<T>(&self, work: impl FnOnce(&mut View<'_, 'py>, &TokenCounter) -> T) -> PyResult<T> {
        let strings = Strings::default();
        let counter = TokenCounter::new(self.model.as_deref());
        let mut view = View::of(&self.messages, &counter, &strings)?;
        let result = work(&mut view, &counter);
        view.remember(self.messages.py());
        Ok(result)
    }

    /// Returns the tokens of the messages as a prompt.
    pub fn tokens(&self) -> PyResult<Tokens> {
        self.with_view(|view, counter| {
            view.count(self.messages.py(), counter)?;
            Ok(counter.prompt(&view.messages, self.tools.as_deref()).tokens)
        })?
    }

    /// Plans with everything counted.
    pub fn planned(
        &self,
        request: &Request<'_>,
        plan: impl Fn(&[Message<'_>], &Request<'_>) -> crate::Result<Plan> + Sync,
    ) -> PyResult<Fitted> {
        self.with_view(|view, counter| self.planned_for(view, counter, request, plan))?
    }

    pub fn planned_for(
        &self,
        view: &mut View<'_, 'py>,
        counter: &TokenCounter,
        request: &Request<'_>,
        plan: impl Fn(&[Message<'_>], &Request<'_>) -> crate::Result<Plan> + Sync,
    ) -> PyResult<Fitted> {
        let py = self.messages.py();
        view.count(py, counter)?;
        let plan = |messages: &[Message<'_>], request: &Request<'_>| plan(messages, request).map(Some);
        let plan = archive::planned(py, self.archive.as_ref(), view, request, plan)?.or_raise(py)?;
        self.carry_out(view, &plan.unwrap_or_default())
    }

    fn carry_out(&self, view: &View<'_, 'py>, plan: &Plan) -> PyResult<Fitted> {
        plan.keeps_calls(&view.messages).or_raise(self.messages.py())?;
        let messages = apply(&self.messages, &view.originals, plan)?;
        Ok(Fitted {
            receipt: Py::new(messages.py(), Receipt::new(&plan.receipt, &self.messages, &messages))?,
            messages: messages.unbind(),
        })
    }

    /// Compresses, with what `cache` or else all stateless calls remember; without a receipt where nothing was to be done.
    pub fn compress(
        &self,
        request: &Request<'_>,
        cache: Option<&CompactionCache>,
    ) -> PyResult<(Bound<'py, PyList>, Option<Py<Receipt>>)> {
        let py = self.messages.py();
        if unchanged::still_fits(&self.messages, &request.counter(), request) {
            return Ok((self.messages.clone(), None));
        }
        let fitted = self.with_view(|view, counter| {
            let plan = if compress::is_no_op(&view.messages, request, request.budget_tokens()) {
                None
            } else {
                view.count(py, counter)?;
                let plan = |messages: &[Message<'_>], request: &Request<'_>| match cache {
                    Some(cache) => cache.compress(messages, request),
                    None => compress::compress(messages, request),
                };
                archive::planned(py, self.archive.as_ref(), view, request, plan)?.or_raise(py)?
            };
            match plan {
                None => {
                    unchanged::remember(&self.messages, view, &request.counter());
                    Ok(None)
                }
                Some(plan) => self.carry_out(view, &plan).map(Some),
            }
        })??;
        Ok(match fitted {
            None => (self.messages.clone(), None),
            Some(fitted) => (fitted.messages.into_bound(py), Some(fitted.receipt)),
        })
    }

    pub fn emergency(&self, request: &Request<'_>) -> PyResult<Fitted> {
        self.planned(request, compress::emergency)
    }
}
