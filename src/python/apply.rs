//! A plan carried out on Python messages, copy on write.

use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList};

use crate::compress::{CallEdit, Edit, NewMessage, Output, Plan};

/// Returns the messages of a request: untouched ones are the very same objects, edited ones new dicts with every other
/// key kept. The list that came in is not changed.
pub fn apply<'py>(messages: &Bound<'py, PyList>, plan: &Plan) -> PyResult<Bound<'py, PyList>> {
    let py = messages.py();
    let out = PyList::empty(py);
    for output in &plan.outputs {
        match output {
            Output::Keep(index) => out.append(messages.get_item(*index)?)?,
            Output::Edit(index, edit) => out.append(edited(messages.get_item(*index)?.cast::<PyDict>()?, edit)?)?,
            Output::New(message) => out.append(new(py, message)?)?,
        }
    }
    Ok(out)
}

fn edited<'py>(message: &Bound<'py, PyDict>, edit: &Edit) -> PyResult<Bound<'py, PyDict>> {
    let new = message.copy()?;
    if let Some(content) = &edit.content {
        new.set_item("content", content)?;
    }
    if !edit.parts.is_empty() {
        new.set_item("content", parts(message, &edit.parts)?)?;
    }
    if !edit.calls.is_empty() {
        new.set_item("tool_calls", calls(message, &edit.calls)?)?;
    }
    if let Some(id) = &edit.tool_call_id {
        new.set_item("tool_call_id", id)?;
    }
    match edit.reasoning.as_deref() {
        None => {}
        Some("") => new.del_item("reasoning_content")?,
        Some(text) => new.set_item("reasoning_content", text)?,
    }
    if edit.remove_thinking {
        new.del_item("thinking_blocks")?;
    }
    Ok(new)
}

fn parts<'py>(message: &Bound<'py, PyDict>, edits: &[(usize, String)]) -> PyResult<Bound<'py, PyList>> {
    let py = message.py();
    let content = message.as_any().get_item("content")?;
    let parts = match content.cast::<PyList>() {
        Ok(list) => list.get_slice(0, list.len()),
        // a single part without its list
        Err(_) => PyList::new(py, [content])?,
    };
    for (index, text) in edits {
        let part = parts.get_item(*index)?;
        let is_text = |part: &Bound<'_, PyDict>| part.contains("text").unwrap_or(false);
        let replaced = match part.cast::<PyDict>() {
            Ok(dict) if is_text(dict) => {
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

fn calls<'py>(message: &Bound<'py, PyDict>, edits: &[(usize, CallEdit)]) -> PyResult<Bound<'py, PyList>> {
    let calls = message.as_any().get_item("tool_calls")?.cast_into::<PyList>()?;
    let calls = calls.get_slice(0, calls.len());
    for (index, edit) in edits {
        let call = calls.get_item(*index)?.cast_into::<PyDict>()?.copy()?;
        if let Some(id) = &edit.id {
            call.set_item("id", id)?;
        }
        if call.contains("custom")? {
            custom(&call, edit)?;
        } else if call.contains("function")? {
            let function = call.as_any().get_item("function")?.cast_into::<PyDict>()?.copy()?;
            set_function(&function, edit)?;
            call.set_item("function", function)?;
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

fn new<'py>(py: Python<'py>, message: &NewMessage) -> PyResult<Bound<'py, PyDict>> {
    let new = PyDict::new(py);
    new.set_item("role", message.role.name())?;
    if let Some(id) = &message.tool_call_id {
        new.set_item("tool_call_id", id)?;
    }
    if let Some(name) = &message.name {
        new.set_item("name", name)?;
    }
    new.set_item("content", &message.content)?;
    Ok(new)
}
