//! Conversations that were found to need nothing, so that the next call looks only at what is new.
//!
//! An agent calls with the same messages and a few more, again and again. A copy of such a conversation is kept, of its
//! dicts and lists but not of its strings, and the interpreter's own comparison tells whether it comes again: of strings
//! that are the very same objects it reads nothing, and others it compares faster than they can be hashed.

use std::sync::Mutex;

use pyo3::intern;
use pyo3::prelude::*;
use pyo3::sync::MutexExt;
use pyo3::types::{PyBool, PyDict, PyFloat, PyInt, PyList, PyNone, PyString};

use crate::cache::CONVERSATIONS as SHARE;
use crate::compress::{Bounds, Request};
use crate::tokens::{TokenCounter, Tokens};

use super::lock::take_out;
use super::view::{Strings, View};

/// Conversations remembered: those of a gateway that are answered at the same time, and their subagents.
const MAX_CONVERSATIONS: usize = 8;
/// Nesting of a message that is copied; deeper ones are looked at every time.
const MAX_DEPTH: usize = 8;

static CONVERSATIONS: Mutex<Vec<Known>> = Mutex::new(Vec::new());

/// A conversation that needed nothing.
struct Known {
    /// The way of counting that the bounds come from.
    counter: (u8, Tokens),
    messages: Py<PyList>,
    /// What the copy takes, strings included.
    bytes: usize,
    bounds: Bounds,
    /// Address of the last content when the messages came as equal strings that were other objects.
    others: Option<usize>,
}

/// Returns whether `messages` continue a conversation that needed nothing, and still need nothing.
///
/// `false` says nothing: then they must be looked at.
pub fn still_fits(messages: &Bound<'_, PyList>, counter: &TokenCounter, request: &Request<'_>) -> bool {
    let Some(mut known) = take(messages, counter.id()) else { return false };
    known.follow(messages);
    let is_known = known.extend(messages, counter);
    let settled = is_known && known.bounds.prove_fit(request, request.budget_tokens());
    // What is over its budget will be counted, and then remembered anew.
    if settled {
        put(messages.py(), known);
    }
    settled
}

/// Remembers a conversation that was looked at and needed nothing.
pub fn remember(messages: &Bound<'_, PyList>, view: &View<'_, '_>, counter: &TokenCounter) {
    let mut bytes = 0;
    for message in &view.messages {
        message.each_text(|text, _| bytes += text.len());
    }
    if bytes > SHARE.max_bytes() {
        return;
    }
    let (py, bounds) = (messages.py(), Bounds::default());
    let empty = PyList::empty(py).unbind();
    let mut known = Known { counter: counter.id(), messages: empty, bytes: 0, bounds, others: None };
    if known.record(messages, counter) {
        put(py, known);
    }
}

/// Takes out a conversation that `messages` continue.
///
/// Comparing can run the caller's code, which may call in here: no lock is held over it, and what changed meanwhile is
/// not taken.
fn take(messages: &Bound<'_, PyList>, counter: (u8, Tokens)) -> Option<Known> {
    let py = messages.py();
    let lists: Vec<_> = {
        let conversations = CONVERSATIONS.lock_py_attached(py).ok()?;
        conversations
            .iter()
            .filter(|known| known.counter == counter)
            .map(|known| known.messages.clone_ref(py))
            .collect()
    };
    let (list, count) = lists.iter().find_map(|list| {
        let (list, count) = (list.bind(py), list.bind(py).len());
        // What a comparison of unknown objects raises is not ours to report: they are not what is known.
        let starts = messages.len() >= count && messages.get_slice(0, count).eq(list).unwrap_or(false);
        starts.then_some((list, count))
    })?;
    let mut conversations = CONVERSATIONS.lock_py_attached(py).ok()?;
    let is_it = |known: &Known| known.messages.is(list) && list.len() == count;
    let found = conversations.iter().position(is_it)?;
    Some(conversations.remove(found))
}

fn put(py: Python<'_>, known: Known) {
    let dropped = CONVERSATIONS.lock_py_attached(py).ok().map(|mut conversations| {
        conversations.insert(0, known);
        let (mut bytes, max_bytes) = (0, SHARE.max_bytes());
        let within = conversations.iter().take_while(|known| {
            bytes += known.bytes;
            bytes <= max_bytes
        });
        let kept = within.count().min(MAX_CONVERSATIONS);
        conversations.split_off(kept)
    });
    // Let go after the lock: it may free a whole conversation.
    drop(dropped);
}

impl Known {
    /// Takes equal strings for its own when they come a second time: then they are what the caller has, and the next
    /// comparison need not read them.
    fn follow(&mut self, messages: &Bound<'_, PyList>) {
        let known = self.messages.bind(messages.py());
        let Some(last) = known.len().checked_sub(1) else { return };
        let address = |list: &Bound<'_, PyList>| -> Option<usize> {
            let message = list.get_item(last).ok()?.cast_into::<PyDict>().ok()?;
            message.get_item(intern!(list.py(), "content")).ok()?.map(|content| content.as_ptr() as usize)
        };
        let theirs = address(messages);
        if theirs == address(known) {
            return;
        }
        if self.others != theirs {
            self.others = theirs;
        } else if let Some((copy, bytes)) = copy_of(&messages.get_slice(0, last + 1)) {
            (self.messages, self.bytes) = (copy.unbind(), bytes);
        }
    }

    /// Adds the messages behind those that are known, and returns whether they could be.
    fn extend(&mut self, messages: &Bound<'_, PyList>, counter: &TokenCounter) -> bool {
        let count = self.messages.bind(messages.py()).len();
        if messages.len() == count {
            return true;
        }
        self.record(&messages.get_slice(count, messages.len()), counter)
    }

    /// Adds messages, read from the copy that is kept: theirs may change before they are copied.
    fn record(&mut self, messages: &Bound<'_, PyList>, counter: &TokenCounter) -> bool {
        let Some((new, bytes)) = copy_of(messages) else { return false };
        let strings = Strings::default();
        // What is wrong with a message is said by whoever looks at all of them, with its place in the whole.
        let Ok(view) = View::of(&new, counter, &strings) else { return false };
        self.bytes += bytes;
        self.bounds.add(&view.messages, counter);
        let known = self.messages.bind(messages.py());
        self.bytes <= SHARE.max_bytes() && new.iter().all(|message| known.append(message).is_ok())
    }
}

/// Returns a copy of messages that nobody else can change, and the bytes that it takes; `None` where they are made of more
/// than JSON is.
fn copy_of<'py>(messages: &Bound<'py, PyList>) -> Option<(Bound<'py, PyList>, usize)> {
    let mut bytes = 0;
    let copy = copied(messages.as_any(), 0, &mut bytes)?.cast_into().ok()?;
    Some((copy, bytes))
}

/// Adds what an object takes to `bytes`. The interpreter shares small numbers, and a float is no larger than this.
fn add_size(value: &Bound<'_, PyAny>, bytes: &mut usize) -> Option<()> {
    const TRACKED: usize = 16;
    *bytes += value.call_method0(intern!(value.py(), "__sizeof__")).ok()?.extract::<usize>().ok()? + TRACKED;
    Some(())
}

fn copied<'py>(value: &Bound<'py, PyAny>, depth: usize, bytes: &mut usize) -> Option<Bound<'py, PyAny>> {
    if value.is_exact_instance_of::<PyNone>() || value.is_exact_instance_of::<PyBool>() {
        return Some(value.clone());
    }
    if value.is_exact_instance_of::<PyString>()
        || value.is_exact_instance_of::<PyInt>()
        || value.is_exact_instance_of::<PyFloat>()
    {
        add_size(value, bytes)?;
        return Some(value.clone());
    }
    if depth >= MAX_DEPTH {
        return None;
    }
    if let Ok(dict) = value.cast_exact::<PyDict>() {
        let copy = dict.copy().ok()?;
        // Of the copy: the caller's dict may change, and putting other values to its own keys is no such change.
        for (key, value) in copy.iter() {
            let copied = copied(&value, depth + 1, bytes)?;
            if !key.is_exact_instance_of::<PyString>() {
                return None;
            }
            if !copied.is(&value) {
                copy.set_item(key, copied).ok()?;
            }
        }
        add_size(copy.as_any(), bytes)?;
        return Some(copy.into_any());
    }
    let list = value.cast_exact::<PyList>().ok()?;
    let items = list.iter().map(|item| copied(&item, depth + 1, bytes)).collect::<Option<Vec<_>>>()?;
    let copy = PyList::new(value.py(), items).ok()?.into_any();
    add_size(&copy, bytes)?;
    Some(copy)
}

/// Returns the bytes of the conversations that are remembered.
pub fn bytes(py: Python<'_>) -> usize {
    CONVERSATIONS.lock_py_attached(py).map_or(0, |all| all.iter().map(|known| known.bytes).sum())
}

/// Forgets all conversations.
pub fn clear(py: Python<'_>) {
    take_out(CONVERSATIONS.lock_py_attached(py).ok(), Vec::new());
}
