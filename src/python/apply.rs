//! A plan carried out on Python messages, copy on write.

use pyo3::exceptions::PyException;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList};

use crate::Error;

use crate::compress::{CallEdit, Edit, NO_REASONING, NewMessage, Output, Plan};
use crate::message::Field;

use super::convert::{is_text, kind, snapshot};
use super::errors::to_python;
use super::view::Originals;

/// Returns the messages of a request: untouched ones are the very same objects, edited ones new dicts with every other
/// key kept. `messages` and `originals` are what the plan was made of, whatever the caller's lists hold by now.
pub fn apply<'py>(
    messages: &Bound<'py, PyList>,
    originals: &Originals<'py>,
    plan: &Plan,
) -> PyResult<Bound<'py, PyList>> {
    let py = messages.py();
    let out = PyList::empty(py);
    for output in &plan.outputs {
        match output {
            Output::Keep(index) => out.append(messages.get_item(*index)?)?,
            Output::Edit(index, edit) => {
                let message = messages.get_item(*index)?.cast_into::<PyDict>()?;
                let edited = edited(&message, edit, originals.parts(*index), originals.calls(*index));
                out.append(edited.map_err(|error| not_copied(py, *index, error))?)?;
            }
            Output::New(message) => out.append(new(py, originals, message)?)?,
        }
    }
    Ok(out)
}

/// Returns the error for a message whose copy failed: the methods of a subclass of `dict` may raise anything.
fn not_copied(py: Python<'_>, index: usize, error: PyErr) -> PyErr {
    if !error.is_instance_of::<PyException>(py) {
        return error;
    }
    let of_message = to_python(py, &Error::message(index, "", format!("cannot be copied: {}", error.value(py))));
    of_message.set_cause(py, Some(error));
    of_message
}

fn edited<'py>(
    message: &Bound<'py, PyDict>,
    edit: &Edit,
    old_parts: Option<&Bound<'py, PyList>>,
    old_calls: Option<&Bound<'py, PyList>>,
) -> PyResult<Bound<'py, PyDict>> {
    let new = message.copy()?;
    set(&new, edit, old_parts, old_calls)?;
    Ok(new)
}

fn set<'py>(
    new: &Bound<'py, PyDict>,
    edit: &Edit,
    old_parts: Option<&Bound<'py, PyList>>,
    old_calls: Option<&Bound<'py, PyList>>,
) -> PyResult<()> {
    if let Some(content) = &edit.content {
        new.set_item("content", content)?;
    }
    if let Some(old) = old_parts.filter(|_| !edit.parts.is_empty()) {
        new.set_item("content", parts(old, &edit.parts)?)?;
    }
    let unsigned =
        || edit.fields.iter().filter_map(|(field, _)| if let Field::Call(at) = field { Some(*at) } else { None });
    if let Some(old) = old_calls.filter(|_| !edit.calls.is_empty() || unsigned().next().is_some()) {
        let calls = calls(old, &edit.calls)?;
        for index in unsigned() {
            calls.set_item(index, without_signature(&calls.get_item(index)?.cast_into::<PyDict>()?)?)?;
        }
        new.set_item("tool_calls", calls)?;
    }
    if let Some(id) = &edit.tool_call_id {
        new.set_item("tool_call_id", id)?;
    }
    for (field, text) in &edit.fields {
        match field {
            Field::Call(_) => {}
            Field::FunctionArguments => set_in(new, "function_call", "arguments", text)?,
            field => match key(*field) {
                key if text.is_empty() => remove(new, key)?,
                key => new.set_item(key, text)?,
            },
        }
    }
    Ok(())
}

/// Returns the key that a field has in a message.
fn key(field: Field) -> &'static str {
    match field {
        Field::ReasoningContent => "reasoning_content",
        Field::Reasoning => "reasoning",
        Field::ThinkingBlocks => "thinking_blocks",
        Field::ReasoningDetails => "reasoning_details",
        Field::ExtraContent => "extra_content",
        Field::ProviderFields => "provider_specific_fields",
        Field::Refusal => "refusal",
        Field::FunctionArguments | Field::FunctionName => "function_call",
        Field::Audio(_) => "audio",
        Field::Call(_) => "tool_calls",
    }
}

/// Sets a key of the dict at `outer`, which is copied for that.
fn set_in(new: &Bound<'_, PyDict>, outer: &str, key: &str, text: &str) -> PyResult<()> {
    let Some(dict) = new.get_item(outer)?.and_then(|inner| inner.cast_into::<PyDict>().ok()) else { return Ok(()) };
    let dict = dict.copy()?;
    dict.set_item(key, text)?;
    new.set_item(outer, dict)
}

/// What a call and its function carry for the provider that made it.
const SIGNATURES: [&str; 3] = ["extra_content", "provider_specific_fields", "thought_signature"];

fn without_signature<'py>(call: &Bound<'py, PyDict>) -> PyResult<Bound<'py, PyDict>> {
    let call = call.copy()?;
    SIGNATURES.iter().try_for_each(|key| remove(&call, key))?;
    if let Some(function) = call.get_item("function")?.and_then(|function| function.cast_into::<PyDict>().ok()) {
        let function = function.copy()?;
        SIGNATURES.iter().try_for_each(|key| remove(&function, key))?;
        call.set_item("function", function)?;
    }
    Ok(call)
}

/// The key may be gone already: its message is the caller's to change.
fn remove(new: &Bound<'_, PyDict>, key: &str) -> PyResult<()> {
    if new.contains(key)? { new.del_item(key) } else { Ok(()) }
}

fn parts<'py>(old: &Bound<'py, PyList>, edits: &[(usize, String)]) -> PyResult<Bound<'py, PyList>> {
    let py = old.py();
    let parts = snapshot(old);
    for (index, text) in edits {
        let part = parts.get_item(*index)?;
        let replaced = match part.cast::<PyDict>() {
            Ok(dict) if is_text(&kind(dict)) => {
                let new = dict.copy()?;
                new.set_item("text", text)?;
                new.into_any()
            }
            Ok(_) => {
                let new = PyDict::new(py);
                new.set_item("type", "text")?;
                new.set_item("text", text)?;
                new.into_any()
            }
            Err(_) => text.into_pyobject(py)?.into_any(),
        };
        parts.set_item(*index, replaced)?;
    }
    Ok(parts)
}

fn calls<'py>(old: &Bound<'py, PyList>, edits: &[(usize, CallEdit)]) -> PyResult<Bound<'py, PyList>> {
    let calls = snapshot(old);
    for (index, edit) in edits {
        let call = calls.get_item(*index)?.cast_into::<PyDict>()?.copy()?;
        if let Some(id) = &edit.id {
            call.set_item("id", id)?;
        }
        let function = call.get_item("function")?;
        if let Some(function) = function.as_ref().and_then(|function| function.cast::<PyDict>().ok()) {
            let function = function.copy()?;
            set_function(&function, edit)?;
            call.set_item("function", function)?;
        } else if call.contains("custom")? {
            custom(&call, edit)?;
        } else {
            set_function(&call, edit)?;
        }
        calls.set_item(*index, call)?;
    }
    Ok(calls)
}

fn set_function(function: &Bound<'_, PyDict>, edit: &CallEdit) -> PyResult<()> {
    if let Some(name) = &edit.name {
        function.set_item("name", name)?;
    }
    if let Some(arguments) = &edit.arguments {
        function.set_item("arguments", arguments)?;
    }
    Ok(())
}

/// A custom call is read as the JSON of its `custom` field, and written back as that.
fn custom(call: &Bound<'_, PyDict>, edit: &CallEdit) -> PyResult<()> {
    if let Some(arguments) = &edit.arguments {
        let parsed = call.py().import("json")?.call_method1("loads", (arguments,))?;
        call.set_item("custom", parsed)?;
    }
    Ok(())
}

fn new<'py>(py: Python<'py>, originals: &Originals<'py>, message: &NewMessage) -> PyResult<Bound<'py, PyDict>> {
    let new = PyDict::new(py);
    new.set_item("role", message.role.name())?;
    if let Some(id) = &message.tool_call_id {
        match originals.id(id) {
            Some(original) => new.set_item("tool_call_id", original)?,
            None => new.set_item("tool_call_id", id)?,
        }
    }
    if let Some(name) = &message.name {
        new.set_item("name", name)?;
    }
    new.set_item("content", &message.content)?;
    if let Some(field) = message.reasoning {
        new.set_item(key(field), NO_REASONING)?;
    }
    Ok(new)
}
