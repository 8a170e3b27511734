//! Python messages to the core's view of them, borrowed.

use std::cell::Cell;
use std::sync::Mutex;

use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList, PyString};
use typed_arena::Arena;

use crate::message::{Content, Facts, Media, Message, Part, Role, Text, ToolCall};
use crate::tokens::{IdentityCache, TokenCounter};
use crate::{Error, Result};

use super::errors::OrRaise;

/// Bytes of Python strings that the cache of counts may keep alive.
const MAX_HELD_BYTES: usize = 64 << 20;

/// Bytes to be counted from which other Python threads are let run meanwhile.
///
/// Letting go of the interpreter costs nothing when nobody waits, but with one busy thread it takes up to its switch
/// interval (5 ms) to get it back: 5,277 µs in place of 152 for a small count. 256 KB are about 7 ms of counting.
const DETACH_BYTES: usize = 256 << 10;

static STRINGS: Mutex<Option<IdentityCache<Py<PyString>>>> = Mutex::new(None);

/// Holds the Python strings that a view borrows from.
#[derive(Default)]
pub struct Strings<'py> {
    objects: Arena<Bound<'py, PyString>>,
    /// JSON of what was no string, and strings that had lone surrogates.
    made: Arena<String>,
}

/// The messages of one call, and which of their strings the cache of counts does not know all about.
pub struct View<'a, 'py> {
    /// As the core reads them.
    pub messages: Vec<Message<'a>>,
    new: Vec<(&'a Bound<'py, PyString>, u8, Facts)>,
    /// Whether something may have been found out that the cache does not know.
    learned: Cell<bool>,
}

impl<'a, 'py> View<'a, 'py> {
    /// Reads a list of message dicts. O(messages); no text is read but where it is not ASCII for the first time.
    pub fn of(
        messages: &Bound<'py, PyAny>,
        counter: &TokenCounter,
        strings: &'a Strings<'py>,
    ) -> PyResult<View<'a, 'py>> {
        let py = messages.py();
        let Ok(list) = messages.cast::<PyList>() else {
            let got = super::arguments::shown(messages);
            return Err(Error::argument("messages", format!("must be a list of dicts, got {got}"))).or_raise(py);
        };
        // Reading a dict can run Python code (keys with an `__eq__` of their own), which may call in here again: then
        // the cache is taken, and the inner call does without.
        let mut cache = STRINGS.try_lock().ok();
        if let Some(cache) = &mut cache {
            cache.get_or_insert_with(|| IdentityCache::new(MAX_HELD_BYTES)).begin_call();
        }
        let cache = cache.as_mut().and_then(|cache| cache.as_mut());
        let names = Names::of(py);
        let mut reader =
            Reader { names, strings, cache, salt: counter.family().id, new: Vec::new(), learned: false, index: 0 };
        let mut read = Vec::with_capacity(list.len());
        for (index, message) in list.iter().enumerate() {
            reader.index = index;
            // Filled in its place: a message is too large to be moved about.
            read.push(Message::empty(Role::User));
            if let Some(place) = read.last_mut() {
                reader.message(&message, place).or_raise(py)?;
            }
        }
        let (new, learned) = (reader.new, Cell::new(reader.learned));
        Ok(View { messages: read, new, learned })
    }

    /// Counts what is not known yet, without the interpreter where that is much.
    pub fn count(&self, py: Python<'py>, counter: &TokenCounter) {
        self.learned.set(true);
        self.look_up();
        let mut due: Vec<&Text<'_>> = Vec::new();
        for message in &self.messages {
            message.each_text(|text, media| {
                if text.facts().tokens.is_none() && media.is_none() {
                    due.push(text);
                }
            });
        }
        if due.iter().map(|text| text.len()).sum::<usize>() >= DETACH_BYTES {
            let texts: Vec<&str> = due.iter().map(|text| text.as_str()).collect();
            let counts = py.detach(|| texts.iter().map(|text| counter.text(text)).collect::<Vec<_>>());
            for (text, tokens) in due.iter().zip(counts) {
                text.set_tokens(tokens);
            }
        } else {
            for message in &self.messages {
                counter.message(message);
            }
        }
    }

    /// Looks up the strings that were too short to be looked up at once.
    fn look_up(&self) {
        let Ok(mut cache) = STRINGS.try_lock() else { return };
        let Some(cache) = cache.as_mut() else { return };
        for message in &self.messages {
            message.each_text(|text, _| {
                if text.len() <= SHORT_BYTES
                    && text.facts().tokens.is_none()
                    && let Some((object, salt, _)) = self.new.get(text.tag as usize)
                    && let Some(Facts { tokens: Some(tokens), .. }) = cache.get(address(object), *salt)
                {
                    text.set_tokens(tokens);
                }
            });
        }
    }

    /// Gives what was found out about new strings to the cache.
    pub fn remember(&self) {
        if !self.learned.get() {
            return;
        }
        let Ok(mut cache) = STRINGS.try_lock() else { return };
        let Some(cache) = cache.as_mut() else { return };
        for message in &self.messages {
            message.each_text(|text, _| {
                if let Some((object, salt, before)) = self.new.get(text.tag as usize)
                    && text.facts() != *before
                {
                    cache.put(address(object), *salt, (*object).clone().unbind(), text.len(), text.facts());
                }
            });
        }
    }
}

fn address(object: &Bound<'_, PyString>) -> usize {
    object.as_ptr() as usize
}

/// The keys that are read, interned: the keys of most dicts are these very objects.
macro_rules! names {
    ($($name:ident $(= $key:literal)?)*) => {
        #[derive(Clone, Copy)]
        struct Names<'py> { $($name: &'py Bound<'py, PyString>,)* }

        impl<'py> Names<'py> {
            fn of(py: Python<'py>) -> Self {
                Self { $($name: names!(@intern py $name $($key)?),)* }
            }
        }
    };
    (@intern $py:ident $name:ident) => { intern!($py, stringify!($name)) };
    (@intern $py:ident $name:ident $key:literal) => { intern!($py, $key) };
}

names! {
    role content tool_calls tool_call_id name reasoning_content thinking_blocks
    id function arguments custom
    kind = "type" text image_url input_audio file source image audio url data file_data file_url file_id detail
}

impl<'py> Names<'py> {
    fn key(&self, key: &Bound<'_, PyAny>) -> Option<Key> {
        let pairs = [
            (self.role, Key::Role),
            (self.content, Key::Content),
            (self.tool_call_id, Key::ToolCallId),
            (self.name, Key::Name),
            (self.tool_calls, Key::ToolCalls),
            (self.reasoning_content, Key::Reasoning),
            (self.thinking_blocks, Key::Thinking),
        ];
        if let Some((_, found)) = pairs.iter().find(|(name, _)| name.as_ptr() == key.as_ptr()) {
            return Some(*found);
        }
        match key.cast::<PyString>().ok()?.to_str().ok()? {
            "role" => Some(Key::Role),
            "content" => Some(Key::Content),
            "tool_calls" => Some(Key::ToolCalls),
            "tool_call_id" => Some(Key::ToolCallId),
            "name" => Some(Key::Name),
            "reasoning_content" => Some(Key::Reasoning),
            "thinking_blocks" => Some(Key::Thinking),
            _ => None,
        }
    }

    /// Where the providers' forms put the URL or the data of an image, sound or file, and its fields.
    fn media(&self) -> ([&'py Bound<'py, PyString>; 6], [&'py Bound<'py, PyString>; 6]) {
        (
            [self.image_url, self.input_audio, self.file, self.source, self.image, self.audio],
            [self.url, self.data, self.file_data, self.file_url, self.file_id, self.image_url],
        )
    }
}

#[derive(Clone, Copy)]
enum Key {
    Role,
    Content,
    ToolCalls,
    ToolCallId,
    Name,
    Reasoning,
    Thinking,
}

struct Reader<'a, 'py, 'c> {
    names: Names<'py>,
    strings: &'a Strings<'py>,
    cache: Option<&'c mut IdentityCache<Py<PyString>>>,
    /// Tells ways of counting apart in the cache.
    salt: u8,
    new: Vec<(&'a Bound<'py, PyString>, u8, Facts)>,
    /// Whether a string was new that is not merely short.
    learned: bool,
    /// Of the message that is being read.
    index: usize,
}

impl<'a, 'py> Reader<'a, 'py, '_> {
    fn message(&mut self, message: &Bound<'py, PyAny>, read: &mut Message<'a>) -> Result<()> {
        let Ok(dict) = message.cast::<PyDict>() else {
            return Err(self.wrong("", "a dict", message));
        };
        let mut role = None;
        for (key, value) in dict.iter() {
            let Some(key) = self.names.key(&key) else { continue };
            match key {
                Key::Role => role = Some(self.role(&value)?),
                _ if value.is_none() => {}
                Key::Content => read.content = self.content(&value)?,
                Key::ToolCalls => read.tool_calls = self.tool_calls(&value)?,
                Key::ToolCallId => read.tool_call_id = self.id(value),
                Key::Name => read.name = Some(self.string(value, ".name")?),
                Key::Reasoning => {
                    let text = self.string_or_json(value, ".reasoning_content")?;
                    read.thoughts.get_or_insert_default().reasoning = Some(text);
                }
                Key::Thinking => {
                    let text = self.string_or_json(value, ".thinking_blocks")?;
                    read.thoughts.get_or_insert_default().thinking = Some(text);
                }
            }
        }
        read.role = role.ok_or_else(|| Error::message(self.index, "", "has no `role`"))?;
        Ok(())
    }

    fn role(&self, value: &Bound<'py, PyAny>) -> Result<Role> {
        let role = value.cast::<PyString>().ok().and_then(|name| name.to_str().ok().and_then(Role::parse));
        role.ok_or_else(|| self.wrong(".role", "one of system, developer, user, assistant, tool, function", value))
    }

    fn content(&mut self, value: &Bound<'py, PyAny>) -> Result<Content<'a>> {
        if value.is_instance_of::<PyString>() {
            return self.string(value.clone(), ".content").map(Content::Text);
        }
        if let Ok(parts) = value.cast::<PyList>() {
            let parts = parts.iter().enumerate().map(|(i, part)| self.part(&part, i));
            return parts.collect::<Result<_>>().map(Content::Parts);
        }
        // A single part without its list: some clients send that, and nanobot puts the list around it.
        if value.is_instance_of::<PyDict>() {
            return self.json(value, ".content").map(|text| Content::Parts(vec![Part::Other(text)]));
        }
        Err(self.wrong(".content", "a string, a list of parts or None", value))
    }

    fn part(&mut self, part: &Bound<'py, PyAny>, position: usize) -> Result<Part<'a>> {
        let field = || format!(".content[{position}]");
        if part.is_instance_of::<PyString>() {
            return self.string(part.clone(), &field()).map(Part::Text);
        }
        let Ok(dict) = part.cast::<PyDict>() else {
            return Err(self.wrong(&field(), "a string or a dict", part));
        };
        let kind = get(dict, self.names.kind).and_then(|kind| kind.extract::<String>().ok()).unwrap_or_default();
        match kind.as_str() {
            "text" | "input_text" | "output_text" => match get(dict, self.names.text) {
                Some(text) => self.string(text, &format!("{}.text", field())).map(Part::Text),
                None => Ok(Part::Text(Text::new(""))),
            },
            "image_url" | "input_image" | "image" => {
                Ok(self.media(dict, Media::Image { low_detail: is_low_detail(dict, self.names) }))
            }
            "input_audio" | "audio" => Ok(self.media(dict, Media::Audio)),
            "file" | "input_file" | "document" => Ok(self.media(dict, Media::File)),
            _ => self.json(part, &field()).map(Part::Other),
        }
    }

    /// Reads the URL or the data of an image, sound or file, wherever the providers' forms put it.
    fn media(&mut self, part: &Bound<'py, PyDict>, media: Media) -> Part<'a> {
        let (holders, fields) = self.names.media();
        let holder = holders.iter().find_map(|key| get(part, key));
        let data = match &holder {
            Some(value) if value.is_instance_of::<PyString>() => Some(value.clone()),
            Some(value) => value.cast::<PyDict>().ok().and_then(|dict| fields.iter().find_map(|key| get(dict, key))),
            None => fields.iter().find_map(|key| get(part, key)),
        };
        let text = data
            .and_then(|data| data.cast_into::<PyString>().ok())
            .map_or_else(|| Text::new(""), |data| self.text(data, self.salt | MEDIA));
        Part::Media(media, text)
    }

    fn tool_calls(&mut self, value: &Bound<'py, PyAny>) -> Result<Vec<ToolCall<'a>>> {
        let Ok(calls) = value.cast::<PyList>() else {
            return Err(self.wrong(".tool_calls", "a list or None", value));
        };
        let mut read = Vec::with_capacity(calls.len());
        for (position, call) in calls.iter().enumerate() {
            read.push(self.tool_call(&call, position)?);
        }
        Ok(read)
    }

    fn tool_call(&mut self, call: &Bound<'py, PyAny>, position: usize) -> Result<ToolCall<'a>> {
        let field = || format!(".tool_calls[{position}]");
        let Ok(dict) = call.cast::<PyDict>() else {
            return Err(self.wrong(&field(), "a dict", call));
        };
        let id = get(dict, self.names.id).and_then(|id| self.id(id));
        let function = get(dict, self.names.function);
        let function = match &function {
            Some(function) => function
                .cast::<PyDict>()
                .map_err(|_| self.wrong(&format!("{}.function", field()), "a dict", function))?,
            None => match get(dict, self.names.custom) {
                Some(custom) => return self.custom_call(id, &custom, &field()),
                None => dict,
            },
        };
        let name = get(function, self.names.name).and_then(|name| self.id(name));
        let arguments = get(function, self.names.arguments);
        let arguments_are_text = arguments.as_ref().is_some_and(PyAnyMethods::is_instance_of::<PyString>);
        let arguments = match arguments {
            None => None,
            Some(arguments) => match arguments.cast_into::<PyString>() {
                Ok(text) => Some(self.text(text, self.salt | ARGUMENTS)),
                Err(other) => Some(self.json(&other.into_inner(), &format!("{}.function.arguments", field()))?),
            },
        };
        Ok(ToolCall { id, name, arguments, arguments_are_text })
    }

    /// Reads a call of OpenAI's `custom` kind: its input is free text, and nothing in it is repaired.
    fn custom_call(&mut self, id: Option<Text<'a>>, custom: &Bound<'py, PyAny>, field: &str) -> Result<ToolCall<'a>> {
        let Ok(custom) = custom.cast::<PyDict>() else {
            return Err(self.wrong(&format!("{field}.custom"), "a dict", custom));
        };
        let name = get(custom, self.names.name).and_then(|name| self.id(name));
        let input = self.json(custom, &format!("{field}.custom"))?;
        Ok(ToolCall { id, name, arguments: Some(input), arguments_are_text: true })
    }

    /// Reads an id or a name; what is no string counts as missing, and is repaired.
    fn id(&mut self, value: Bound<'py, PyAny>) -> Option<Text<'a>> {
        value.cast_into::<PyString>().ok().map(|string| self.text(string, self.salt))
    }

    fn string(&mut self, value: Bound<'py, PyAny>, field: &str) -> Result<Text<'a>> {
        match value.cast_into::<PyString>() {
            Ok(string) => Ok(self.text(string, self.salt)),
            Err(error) => Err(self.wrong(field, "a string or None", &error.into_inner())),
        }
    }

    fn string_or_json(&mut self, value: Bound<'py, PyAny>, field: &str) -> Result<Text<'a>> {
        if value.is_instance_of::<PyString>() { self.string(value, field) } else { self.json(&value, field) }
    }

    fn json(&self, value: &Bound<'py, PyAny>, field: &str) -> Result<Text<'a>> {
        let text = json(value).map_err(|problem| Error::message(self.index, field, problem))?;
        let facts = Facts { json: Some(true), tokens: None };
        Ok(Text::with_facts(self.strings.made.alloc(text), facts, u32::MAX))
    }

    fn text(&mut self, string: Bound<'py, PyString>, salt: u8) -> Text<'a> {
        // A subclass may run code of its own when it is let go, so it is not held.
        let is_exact = string.is_exact_instance_of::<PyString>();
        let string: &'a Bound<'py, PyString> = self.strings.objects.alloc(string);
        let text = match string.to_str() {
            Ok(text) => text,
            Err(_) => self.strings.made.alloc(without_surrogates(string)),
        };
        // Ids and names: their length bounds them well enough until something must really be counted.
        let is_short = text.len() <= SHORT_BYTES && salt == self.salt;
        let facts = match &mut self.cache {
            Some(cache) if is_exact && !is_short => cache.get(address(string), salt),
            _ => None,
        };
        let facts = facts.unwrap_or_default();
        let mut tag = u32::MAX;
        if is_exact && (facts.tokens.is_none() || (facts.json.is_none() && salt & ARGUMENTS != 0)) {
            tag = u32::try_from(self.new.len()).unwrap_or(u32::MAX);
            self.new.push((string, salt, facts));
            self.learned |= !is_short;
        }
        Text::with_facts(text, facts, tag)
    }

    fn wrong(&self, field: &str, expected: &str, got: &Bound<'_, PyAny>) -> Error {
        Error::message(self.index, field, format!("must be {expected}, got {}", super::arguments::shown(got)))
    }
}

/// Strings up to this length are looked up in the cache only when they must be counted.
const SHORT_BYTES: usize = 32;
/// Marks the entries of the cache that are costs of media, not counts of text.
const MEDIA: u8 = 0x80;
/// Marks the entries of the cache of which it matters whether they are JSON.
const ARGUMENTS: u8 = 0x40;

fn get<'py>(dict: &Bound<'py, PyDict>, key: &Bound<'py, PyString>) -> Option<Bound<'py, PyAny>> {
    // An error here is one of a key's own `__eq__`: then the key is not the one looked for.
    dict.get_item(key).ok().flatten().filter(|value| !value.is_none())
}

fn is_low_detail<'py>(part: &Bound<'py, PyDict>, names: Names<'py>) -> bool {
    let holder = get(part, names.image_url).and_then(|value| value.cast_into::<PyDict>().ok());
    let detail = holder.as_ref().and_then(|holder| get(holder, names.detail)).or_else(|| get(part, names.detail));
    detail.is_some_and(|detail| detail.extract::<&str>().is_ok_and(|detail| detail == "low"))
}

/// Returns the text of a string, which may have lone surrogates, each replaced by U+FFFD, halves that stand together joined.
pub fn without_surrogates(string: &Bound<'_, PyString>) -> String {
    let joined = || -> PyResult<String> {
        let bytes = string.call_method1("encode", ("utf-16-le", "surrogatepass"))?;
        bytes.call_method1("decode", ("utf-16-le", "replace"))?.extract()
    };
    joined().unwrap_or_else(|_| string.to_string_lossy().into_owned())
}

/// Returns a value as compact JSON text, or what is wrong with it.
pub fn json(value: &Bound<'_, PyAny>) -> std::result::Result<String, String> {
    let py = value.py();
    let dump = || -> PyResult<String> {
        let options = PyDict::new(py);
        options.set_item("ensure_ascii", false)?;
        // `NaN` and `Infinity` are no JSON.
        options.set_item("allow_nan", false)?;
        options.set_item("separators", (",", ":"))?;
        let text = py.import("json")?.call_method("dumps", (value,), Some(&options))?.cast_into::<PyString>()?;
        Ok(text.to_str().map_or_else(|_| without_surrogates(&text), str::to_owned))
    };
    dump().map_err(|error| format!("cannot be written as JSON: {}", error.value(py)))
}
