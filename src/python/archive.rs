//! The archive of a call: a Python object that writes files, asked before a plan is carried out.

use std::collections::{BTreeMap, BTreeSet};

use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::compress::{self, Archived, Plan, Request};
use crate::message::Message;
use crate::{Error, Result};

use super::errors::OrRaise;
use super::errors::format_value;
use super::view::View;

/// Where the originals of shortened results are kept.
pub struct Archive {
    /// Asked for what is missing, and to write it.
    pub object: Py<PyAny>,
    /// As the core names it.
    pub place: compress::Archive,
}

impl Archive {
    /// Reads the argument `archive`.
    pub fn of(value: Option<&Bound<'_, PyAny>>) -> PyResult<Option<Self>> {
        let Some(value) = value.filter(|value| !value.is_none()) else { return Ok(None) };
        let directory = value.getattr("shown").and_then(|shown| shown.extract::<String>()).or_else(|_: PyErr| {
            let problem = format!("must be an `Archive` or None, got {}", format_value(value));
            Err(Error::argument("archive", problem)).or_raise(value.py())
        })?;
        let place = compress::Archive::new(&directory).or_raise(value.py())?;
        Ok(Some(Self { object: value.clone().unbind(), place }))
    }

    pub fn clone_ref(&self, py: Python<'_>) -> Self {
        Self { object: self.object.clone_ref(py), place: self.place.clone() }
    }

    /// Makes sure that every file which `plan` names is there; returns the names, where not all are.
    ///
    /// Only what is missing is handed over: in the calls of one conversation that is nothing, most of the time.
    fn keep(&self, py: Python<'_>, plan: &Plan, view: &[Message<'_>]) -> PyResult<Option<BTreeSet<String>>> {
        let object = self.object.bind(py);
        let named: BTreeMap<&str, &Archived> =
            plan.archived.iter().map(|archived| (archived.name.as_str(), archived)).collect();
        let text = |archived: &Archived| archived.text(view).filter(|_| !archived.is_earlier);
        let sizes = PyDict::new(py);
        for (name, archived) in &named {
            sizes.set_item(name, text(archived).map(str::len))?;
        }
        let mut missing = names(&object.call_method1("missing", (sizes,))?)?;
        let texts = PyDict::new(py);
        for name in &missing {
            if let Some(text) = named.get(name.as_str()).and_then(|archived| text(archived)) {
                texts.set_item(name, text)?;
            }
        }
        if !texts.is_empty() {
            // What this request names must not make room for what else it names.
            let mut in_use = compress::names_in(view);
            in_use.extend(named.keys().map(|name| (*name).to_owned()));
            let written = names(&object.call_method1("write", (texts, in_use))?)?;
            missing.retain(|name| !written.contains(name));
        }
        let there = || named.keys().filter(|name| !missing.contains(**name)).map(|name| (*name).to_owned()).collect();
        Ok((!missing.is_empty()).then(there))
    }
}

/// Reads a collection of names as Python iterates it: a `set` extracted as one panics where its `__iter__` raises.
fn names(value: &Bound<'_, PyAny>) -> PyResult<BTreeSet<String>> {
    value.try_iter()?.map(|name| name?.extract()).collect()
}

/// Plans so that every file which a mark names is there: the originals are written before the plan is carried out, and
/// where that fails it is made once more, with the names of those that are there only.
pub fn planned(
    py: Python<'_>,
    archive: Option<&Archive>,
    view: &mut View<'_, '_>,
    request: &Request<'_>,
    plan: impl Fn(&[Message<'_>], &Request<'_>) -> Result<Option<Plan>> + Sync,
) -> PyResult<Result<Option<Plan>>> {
    let first = view.run(py, |messages| plan(messages, request))?;
    let (Some(archive), Ok(Some(made))) = (archive, &first) else { return Ok(first) };
    if made.archived.is_empty() {
        return Ok(first);
    }
    let Some(there) = archive.keep(py, made, &view.messages)? else { return Ok(first) };
    let request = Request { archive: Some(archive.place.clone().only(there)), ..request.clone() };
    view.run(py, |messages| plan(messages, &request))
}

/// Return `path` as marks in messages name an archive's directory: with `/` between its parts.
///
/// Raises:
///     InvalidArgumentError: The path cannot stand in a mark: it is empty or longer than 256 bytes, or
///         has quotes, line breaks or what ends a mark in it.
#[pyfunction]
pub fn archive_directory(py: Python<'_>, path: &str) -> PyResult<String> {
    compress::Archive::new(path).map(|archive| archive.directory().to_owned()).or_raise(py)
}

/// Return the name of the file that an archive keeps `text` in: a hash of it.
#[pyfunction]
pub fn archive_name(text: &str) -> String {
    compress::archive_name(text)
}
