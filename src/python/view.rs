//! The messages of one call as the core reads them, borrowed from Python's strings.

use std::cell::Cell;
use std::sync::{LazyLock, Mutex, MutexGuard};

use pyo3::exceptions::PyKeyboardInterrupt;
use pyo3::prelude::*;
use pyo3::sync::MutexExt;
use pyo3::types::{PyList, PyString};
use typed_arena::Arena;

use crate::cache::{Allowance, STRINGS};
use crate::checkpoint;
use crate::message::{Facts, Message, Role, Text};
use crate::tokens::{IdentityCache, Key, TokenCounter};

use super::convert::{Reader, SHORT_BYTES};
use super::errors::OrRaise;
use super::lock::take_out;

/// Bytes of new text from which other Python threads are let run while it is counted and planned.
///
/// Letting go of the interpreter costs nothing when nobody waits, but with one busy thread it takes up to its switch
/// interval (5 ms) to get it back: 5,277 µs in place of 152 for a small count. 64 KB are about 2 ms of counting.
const NEW_BYTES: usize = 64 << 10;

/// Bytes of text, known or new, from which other Python threads are let run.
///
/// Planning costs about 3 ms then, with every text known.
const ALL_BYTES: usize = 256 << 10;

/// Runs `work` while other threads use the interpreter; what a signal's handler raises ends it.
pub fn detached<T: Send>(py: Python<'_>, work: impl FnOnce() -> T + Send) -> PyResult<T> {
    thread_local! {
        static RAISED: Cell<Option<PyErr>> = const { Cell::new(None) };
    }
    fn is_interrupted() -> bool {
        let raised = Python::try_attach(|py| py.check_signals().err()).flatten();
        let is_interrupted = raised.is_some();
        RAISED.set(raised);
        is_interrupted
    }
    let done = py.detach(|| checkpoint::run(is_interrupted, work));
    done.ok_or_else(|| RAISED.take().unwrap_or_else(|| PyKeyboardInterrupt::new_err(())))
}

/// As [`detached`], for work that must not be left half done: signals wait for its end.
///
/// Not `Python::detach` alone: a fork would not wait for the locks of the work.
pub fn detached_whole<T: Send + Default>(py: Python<'_>, work: impl FnOnce() -> T + Send) -> T {
    py.detach(|| checkpoint::run(|| false, work)).unwrap_or_default()
}

fn is_much(messages: &[Message<'_>]) -> bool {
    let (mut all, mut new) = (0, 0);
    for message in messages {
        message.each_text(|text, _| {
            all += text.len();
            new += if text.facts().tokens.is_none() { text.len() } else { 0 };
        });
    }
    all >= ALL_BYTES || new >= NEW_BYTES
}

/// What is known of string objects. Never held while the caller's code may run.
pub(super) fn known_strings(py: Python<'_>) -> Option<MutexGuard<'static, IdentityCache<Py<PyString>>>> {
    static KNOWN: LazyLock<Mutex<IdentityCache<Py<PyString>>>> =
        LazyLock::new(|| Mutex::new(IdentityCache::new(Allowance::Share(&STRINGS))));
    KNOWN.lock_py_attached(py).ok()
}

/// Returns the bytes of the string objects that are held, and of what is known of them.
pub fn strings_bytes(py: Python<'_>) -> usize {
    known_strings(py).map_or(0, |known| known.bytes())
}

/// Lets go of all string objects.
pub fn clear_strings(py: Python<'_>) {
    take_out(known_strings(py), IdentityCache::new(Allowance::Share(&STRINGS)));
}

/// Holds the Python strings that a view borrows from.
#[derive(Default)]
pub struct Strings<'py> {
    pub(super) objects: Arena<Bound<'py, PyString>>,
    /// JSON of what was no string, and strings that had lone surrogates.
    pub(super) made: Arena<String>,
}

/// What was inside of messages as they were read: whoever carries out a plan goes by these, since the caller's may have
/// changed by then.
#[derive(Default)]
pub struct Originals<'py> {
    pub(super) parts: Vec<(usize, Bound<'py, PyList>)>,
    pub(super) calls: Vec<(usize, Bound<'py, PyList>)>,
    pub(super) ids: Vec<(String, Bound<'py, PyString>)>,
}

impl<'py> Originals<'py> {
    /// Returns the id that was read as `text`, where it could not be read as it is.
    pub fn id(&self, text: &str) -> Option<&Bound<'py, PyString>> {
        self.ids.iter().find(|(id, _)| id == text).map(|(_, id)| id)
    }

    /// Returns the parts of a message's content; a single part without its list has one here.
    pub fn parts(&self, message: usize) -> Option<&Bound<'py, PyList>> {
        Self::find(&self.parts, message)
    }

    /// Returns the calls of a message.
    pub fn calls(&self, message: usize) -> Option<&Bound<'py, PyList>> {
        Self::find(&self.calls, message)
    }

    fn find<'s>(lists: &'s [(usize, Bound<'py, PyList>)], message: usize) -> Option<&'s Bound<'py, PyList>> {
        let at = lists.binary_search_by_key(&message, |(index, _)| *index).ok()?;
        Some(&lists[at].1)
    }
}

/// The messages of one call, and which of their strings the cache of counts does not know all about.
pub struct View<'a, 'py> {
    /// As the core reads them.
    pub messages: Vec<Message<'a>>,
    /// What they were read from.
    pub originals: Originals<'py>,
    new: Vec<(&'a Bound<'py, PyString>, Key, Facts)>,
    /// Whether something may have been found out that the cache does not know.
    learned: bool,
    /// Whether other threads are let run meanwhile; decided before anything is counted.
    is_much: Option<bool>,
}

impl<'a, 'py> View<'a, 'py> {
    /// Reads a list of message dicts, which nobody else may change. O(messages); no text is read but where it is not
    /// ASCII for the first time.
    pub fn of(
        messages: &Bound<'py, PyList>,
        counter: &TokenCounter,
        strings: &'a Strings<'py>,
    ) -> PyResult<View<'a, 'py>> {
        let py = messages.py();
        if let Some(mut cache) = known_strings(py) {
            cache.begin_call();
        }
        let mut reader = Reader::of(py, strings, *counter);
        let mut read = Vec::with_capacity(messages.len());
        for (index, message) in messages.iter().enumerate() {
            reader.index = index;
            // Filled in its place: a message is too large to be moved about.
            read.push(Message::empty(Role::User));
            if let Some(place) = read.last_mut() {
                reader.message(&message, place).or_raise(py)?;
            }
        }
        let Reader { originals, new, learned, .. } = reader;
        Ok(View { messages: read, originals, new, learned, is_much: None })
    }

    /// Counts what is not known yet.
    pub fn count(&mut self, py: Python<'_>, counter: &TokenCounter) -> PyResult<()> {
        self.look_up(py);
        self.run(py, |messages| {
            for message in messages {
                counter.message(message);
            }
        })
    }

    /// Runs `work`, without the interpreter where it has much to do.
    pub fn run<T: Send>(&mut self, py: Python<'_>, work: impl FnOnce(&[Message<'a>]) -> T + Send) -> PyResult<T> {
        self.learned = true;
        let is_much = *self.is_much.get_or_insert_with(|| is_much(&self.messages));
        if !is_much {
            return Ok(work(&self.messages));
        }
        // Handed over: what is found out about a text is written into it, so that threads cannot share them.
        let messages = std::mem::take(&mut self.messages);
        let (messages, done) = detached(py, move || {
            let done = work(&messages);
            (messages, done)
        })?;
        self.messages = messages;
        Ok(done)
    }

    /// Looks up the strings that were too short to be looked up at once.
    fn look_up(&self, py: Python<'_>) {
        let Some(mut cache) = known_strings(py) else { return };
        for message in &self.messages {
            message.each_text(|text, _| {
                if text.len() <= SHORT_BYTES
                    && text.facts().tokens.is_none()
                    && let Some((object, key, _)) = self.new.get(text.tag as usize)
                    && let Some(Facts { tokens: Some(tokens), .. }) = cache.get(address(object), *key)
                {
                    text.set_tokens(tokens);
                }
            });
        }
    }

    /// Gives what was found out about new strings to the cache.
    pub fn remember(&self, py: Python<'_>) {
        if !self.learned {
            return;
        }
        let Some(mut cache) = known_strings(py) else { return };
        for message in &self.messages {
            message.each_text(|text, _| {
                if let Some((object, key, before)) = self.new.get(text.tag as usize)
                    && text.facts() != *before
                {
                    cache.put(address(object), *key, (*object).clone().unbind(), held_bytes(text), text.facts());
                }
            });
        }
    }
}

/// Returns the bytes that a string object has for its text. One that is not ASCII has it as UTF-8, too, since it was read.
fn held_bytes(text: &Text<'_>) -> usize {
    if text.as_str().is_ascii() { text.len() } else { 2 * text.len() }
}

pub(super) fn address(object: &Bound<'_, PyString>) -> usize {
    object.as_ptr() as usize
}
