//! Conversations that were found to need nothing, so that the next call looks only at what is new.
//!
//! An agent calls with the same messages and a few more, again and again. The objects that such a conversation is made
//! of are remembered, and held alive: a message is the same when it is made of the very same immutable objects in the
//! same order, which is seen without reading any text.

use std::sync::Mutex;

use pyo3::prelude::*;
use pyo3::types::{PyBool, PyDict, PyFloat, PyInt, PyList, PyString};

use crate::compress::{Request, Tally};
use crate::tokens::TokenCounter;

use super::convert::{Strings, View};

/// Conversations remembered: those of a gateway that are answered at the same time, and their subagents.
const MAX_CONVERSATIONS: usize = 8;
/// Bytes of text of a conversation that is held alive; beyond, looking again costs less than holding.
const MAX_BYTES: usize = 8 << 20;
/// Nesting of a message that is followed; deeper ones are looked at every time.
const MAX_DEPTH: usize = 8;

static CONVERSATIONS: Mutex<Vec<Known>> = Mutex::new(Vec::new());

/// A conversation that needed nothing.
struct Known {
    /// The way of counting that the tally comes from.
    family: u8,
    messages: usize,
    bytes: usize,
    objects: Vec<Object>,
    tally: Tally,
}

/// What a message is made of, in the order in which it is walked.
enum Object {
    /// A key, or a value that cannot change.
    Fixed(Py<PyAny>),
    /// A dict of so many entries, which follow.
    Dict(usize),
    /// A list of so many items, which follow.
    List(usize),
}

/// Returns whether `messages` continue a conversation that needed nothing, and still need nothing.
///
/// `false` says nothing: then they must be looked at.
pub fn is_settled(messages: &Bound<'_, PyList>, counter: &TokenCounter, request: &Request<'_>) -> bool {
    // Taken out while Python code may run, so that no lock is held over it.
    let Some(mut known) = take(messages, counter.family().id) else { return false };
    let is_known = known.messages == messages.len() || known.extend(messages, counter);
    let settled = is_known && known.tally.fits(request) && known.tally.is_short(request);
    // What is over its limits will be counted, and then remembered anew.
    if settled {
        put(known);
    }
    settled
}

/// Remembers a conversation that was looked at and needed nothing.
pub fn remember(messages: &Bound<'_, PyList>, view: &View<'_, '_>, counter: &TokenCounter) {
    let mut tally = Tally::default();
    tally.add(&view.messages, counter);
    let mut known = Known { family: counter.family().id, messages: 0, bytes: 0, objects: Vec::new(), tally };
    if known.record(messages, view) {
        put(known);
    }
}

fn take(messages: &Bound<'_, PyList>, family: u8) -> Option<Known> {
    let mut conversations = CONVERSATIONS.try_lock().ok()?;
    let found = conversations.iter().position(|known| known.family == family && known.starts(messages))?;
    Some(conversations.remove(found))
}

fn put(known: Known) {
    let dropped = CONVERSATIONS.try_lock().ok().and_then(|mut conversations| {
        conversations.insert(0, known);
        (conversations.len() > MAX_CONVERSATIONS).then(|| conversations.pop())
    });
    // Let go after the lock: it may free a whole conversation.
    drop(dropped);
}

impl Known {
    fn starts(&self, messages: &Bound<'_, PyList>) -> bool {
        let mut objects = self.objects.iter();
        messages.len() >= self.messages
            && messages.iter().take(self.messages).all(|message| is_same(&message, &mut objects))
    }

    /// Adds the messages behind those that are known, and returns whether they could be.
    fn extend(&mut self, messages: &Bound<'_, PyList>, counter: &TokenCounter) -> bool {
        let new = messages.get_slice(self.messages, messages.len());
        let strings = Strings::default();
        // What is wrong with a message is said by whoever looks at all of them, with its place in the whole.
        let Ok(view) = View::of(new.as_any(), counter, &strings) else { return false };
        self.tally.add(&view.messages, counter);
        self.record(&new, &view)
    }

    fn record(&mut self, messages: &Bound<'_, PyList>, view: &View<'_, '_>) -> bool {
        for message in &view.messages {
            message.each_text(|text, _| self.bytes += text.len());
        }
        self.messages += messages.len();
        self.bytes <= MAX_BYTES && messages.iter().all(|message| record(&message, &mut self.objects, 0))
    }
}

/// Returns whether `value` is made of the next objects.
fn is_same(value: &Bound<'_, PyAny>, objects: &mut std::slice::Iter<'_, Object>) -> bool {
    match objects.next() {
        Some(Object::Fixed(object)) => object.as_ptr() == value.as_ptr(),
        Some(Object::Dict(len)) => value.cast_exact::<PyDict>().is_ok_and(|dict| {
            dict.len() == *len && dict.iter().all(|(key, value)| is_same(&key, objects) && is_same(&value, objects))
        }),
        Some(Object::List(len)) => value
            .cast_exact::<PyList>()
            .is_ok_and(|list| list.len() == *len && list.iter().all(|item| is_same(&item, objects))),
        None => false,
    }
}

/// Adds what `value` is made of, and returns whether all of it is of a kind that can be known again.
fn record(value: &Bound<'_, PyAny>, objects: &mut Vec<Object>, depth: usize) -> bool {
    if value.is_none()
        || value.is_exact_instance_of::<PyString>()
        || value.is_exact_instance_of::<PyBool>()
        || value.is_exact_instance_of::<PyInt>()
        || value.is_exact_instance_of::<PyFloat>()
    {
        objects.push(Object::Fixed(value.clone().unbind()));
        return true;
    }
    if depth >= MAX_DEPTH {
        return false;
    }
    if let Ok(dict) = value.cast_exact::<PyDict>() {
        objects.push(Object::Dict(dict.len()));
        return dict.iter().all(|(key, value)| record(&key, objects, depth + 1) && record(&value, objects, depth + 1));
    }
    if let Ok(list) = value.cast_exact::<PyList>() {
        objects.push(Object::List(list.len()));
        return list.iter().all(|item| record(&item, objects, depth + 1));
    }
    false
}
