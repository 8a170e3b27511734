//! Python messages to the core's.

use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList, PyString};

use crate::message::{BlockKind, Content, Facts, Field, Media, Message, Part, Role, Text, ToolCall};
use crate::tokens::{Key, TokenCounter, Way};
use crate::{Error, Result};

use super::view::{Originals, Strings, address, known_strings};

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
    reasoning reasoning_details refusal function_call
    extra_content provider_specific_fields thought_signature
    id function arguments custom
    text image_url input_audio file source image audio url data file_data file_url file_id detail
}

impl<'py> Names<'py> {
    /// What calls carry beside their function; `apply` takes these keys out.
    fn signatures(&self) -> [&'py Bound<'py, PyString>; 3] {
        [self.extra_content, self.provider_specific_fields, self.thought_signature]
    }

    /// Where the providers' forms put the URL or the data of an image, sound or file, and its fields.
    fn media(&self) -> ([&'py Bound<'py, PyString>; 6], [&'py Bound<'py, PyString>; 6]) {
        (
            [self.image_url, self.input_audio, self.file, self.source, self.image, self.audio],
            [self.url, self.data, self.file_data, self.file_url, self.file_id, self.image_url],
        )
    }
}

/// Reads messages one by one.
pub struct Reader<'a, 'py> {
    py: Python<'py>,
    names: Names<'py>,
    strings: &'a Strings<'py>,
    counter: TokenCounter,
    pub originals: Originals<'py>,
    /// Fields of the message that is being read.
    read: Vec<(Field, Text<'a>)>,
    pub new: Vec<(&'a Bound<'py, PyString>, Key, Facts)>,
    /// Whether a string was new that is not merely short.
    pub learned: bool,
    /// Of the message that is being read.
    pub index: usize,
}

impl<'a, 'py> Reader<'a, 'py> {
    /// Starts with nothing read.
    pub fn of(py: Python<'py>, strings: &'a Strings<'py>, counter: TokenCounter) -> Self {
        Self {
            py,
            names: Names::of(py),
            strings,
            counter,
            originals: Originals::default(),
            read: Vec::new(),
            new: Vec::new(),
            learned: false,
            index: 0,
        }
    }

    /// Reads the keys that are known one by one. A dict that is iterated must not change, and reading one can run the
    /// caller's code: an `__eq__` of a key, or what writes JSON.
    pub fn message(&mut self, message: &Bound<'py, PyAny>, read: &mut Message<'a>) -> Result<()> {
        let Ok(dict) = message.cast::<PyDict>() else {
            return Err(self.wrong("", "a dict", message));
        };
        let Names { role, content, tool_call_id, name, tool_calls, reasoning_content, thinking_blocks, .. } =
            self.names;
        let mut keys = Keys::of(dict);
        let found = keys.get(role).ok_or_else(|| Error::message(self.index, "", "has no `role`"))?;
        read.role = self.role(&found)?;
        if let Some(value) = keys.value(content) {
            read.content = self.content(&value)?;
        }
        if let Some(value) = keys.value(tool_call_id) {
            read.tool_call_id = self.call_id(value);
        }
        if let Some(value) = keys.value(name) {
            read.name = Some(self.string(value, ".name")?);
        }
        if let Some(value) = keys.value(tool_calls) {
            read.tool_calls = self.tool_calls(&value)?;
        }
        let fields = [(reasoning_content, Field::ReasoningContent), (thinking_blocks, Field::ThinkingBlocks)];
        self.fields(&mut keys, &fields)?;
        if read.role == Role::Assistant && keys.left > 0 {
            self.other_fields(&mut keys)?;
        }
        read.fields = std::mem::take(&mut self.read);
        Ok(())
    }

    fn fields(&mut self, keys: &mut Keys<'_, 'py>, fields: &[(&Bound<'py, PyString>, Field)]) -> Result<()> {
        for (key, field) in fields {
            if let Some(value) = keys.value(key) {
                let text = self.string_or_json(value, &format!(".{key}"))?;
                self.read.push((*field, text));
            }
        }
        Ok(())
    }

    /// Reads what few messages have: see [`Field`].
    fn other_fields(&mut self, keys: &mut Keys<'_, 'py>) -> Result<()> {
        let Names { reasoning, reasoning_details, extra_content, provider_specific_fields, refusal, .. } = self.names;
        let fields = [
            (reasoning, Field::Reasoning),
            (reasoning_details, Field::ReasoningDetails),
            (extra_content, Field::ExtraContent),
            (provider_specific_fields, Field::ProviderFields),
            (refusal, Field::Refusal),
        ];
        self.fields(keys, &fields)?;
        if let Some(call) = keys.value(self.names.function_call) {
            self.function_call(call)?;
        }
        if let Some(audio) = keys.value(self.names.audio) {
            let data = audio.cast::<PyDict>().ok().and_then(|audio| get(audio, self.names.data));
            let media = data.as_ref().filter(|data| data.is_instance_of::<PyString>()).map(|_| Media::Audio);
            let text = match (data.and_then(|data| data.cast_into::<PyString>().ok()), media) {
                (Some(data), Some(media)) => self.text(data, Way::of(media)),
                _ => self.string_or_json(audio, ".audio")?,
            };
            self.read.push((Field::Audio(media), text));
        }
        Ok(())
    }

    /// Reads OpenAI's older form of a call; of what is none, all of it stays with its message.
    fn function_call(&mut self, call: Bound<'py, PyAny>) -> Result<()> {
        let dict = call.cast::<PyDict>().ok();
        let arguments = dict.and_then(|dict| get(dict, self.names.arguments));
        let name = dict.and_then(|dict| get(dict, self.names.name)).and_then(|name| self.id(name));
        let (Some(arguments), Some(name)) = (arguments.and_then(|text| text.cast_into::<PyString>().ok()), name) else {
            let text = self.string_or_json(call, ".function_call")?;
            self.read.push((Field::FunctionName, text));
            return Ok(());
        };
        let arguments = self.text(arguments, Way::Arguments);
        self.read.extend([(Field::FunctionName, name), (Field::FunctionArguments, arguments)]);
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
            let parts = snapshot(parts);
            let read = parts.iter().enumerate().map(|(i, part)| self.part(&part, i));
            let read = read.collect::<Result<_>>().map(Content::Parts);
            self.originals.parts.push((self.index, parts));
            return read;
        }
        // A single part without its list: some clients send that, and nanobot puts the list around it.
        if value.is_instance_of::<PyDict>() {
            let text = self.json(value, ".content")?;
            if let Ok(parts) = PyList::new(self.py, [value]) {
                self.originals.parts.push((self.index, parts));
            }
            return Ok(Content::Parts(vec![Part::Other(text)]));
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
        match kind(dict).as_str() {
            kind if is_text(kind) => match get(dict, self.names.text) {
                Some(text) => self.string(text, &format!("{}.text", field())).map(Part::Text),
                None => Ok(Part::Text(Text::new(""))),
            },
            "image_url" | "input_image" | "image" => {
                Ok(self.media(dict, Media::Image { low_detail: is_low_detail(dict, self.names) }))
            }
            "input_audio" | "audio" => Ok(self.media(dict, Media::Audio)),
            "document" if is_text_document(dict, self.names) => self.json(part, &field()).map(Part::Other),
            "file" | "input_file" | "document" => Ok(self.media(dict, Media::File)),
            "thinking" | "redacted_thinking" => {
                self.json(part, &field()).map(|text| Part::Block(BlockKind::Thought, text))
            }
            kind if kind.ends_with("tool_use") || kind.ends_with("tool_result") => {
                self.json(part, &field()).map(|text| Part::Block(BlockKind::Call, text))
            }
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
            .map_or_else(|| Text::new(""), |data| self.text(data, Way::of(media)));
        Part::Media(media, text)
    }

    fn tool_calls(&mut self, value: &Bound<'py, PyAny>) -> Result<Vec<ToolCall<'a>>> {
        let Ok(calls) = value.cast::<PyList>() else {
            return Err(self.wrong(".tool_calls", "a list or None", value));
        };
        let calls = snapshot(calls);
        let mut read = Vec::with_capacity(calls.len());
        for (position, call) in calls.iter().enumerate() {
            read.push(self.tool_call(&call, position)?);
        }
        self.originals.calls.push((self.index, calls));
        Ok(read)
    }

    fn tool_call(&mut self, call: &Bound<'py, PyAny>, position: usize) -> Result<ToolCall<'a>> {
        let field = || format!(".tool_calls[{position}]");
        let Ok(dict) = call.cast::<PyDict>() else {
            return Err(self.wrong(&field(), "a dict", call));
        };
        let id = get(dict, self.names.id).and_then(|id| self.call_id(id));
        let function = get(dict, self.names.function);
        self.signatures(dict, function.as_ref(), position)?;
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
                Ok(text) => Some(self.text(text, Way::Arguments)),
                Err(other) => Some(self.json(&other.into_inner(), &format!("{}.function.arguments", field()))?),
            },
        };
        Ok(ToolCall { id, name, arguments, arguments_are_text })
    }

    /// Reads what a call and its function carry for the provider that made it.
    fn signatures(
        &mut self,
        call: &Bound<'py, PyDict>,
        function: Option<&Bound<'py, PyAny>>,
        position: usize,
    ) -> Result<()> {
        // A plain call has an id, a type and its function, which has a name and arguments.
        const PLAIN: [usize; 2] = [3, 2];
        let function = function.and_then(|function| function.cast::<PyDict>().ok());
        let mut found: Option<Text<'a>> = None;
        for (dict, plain) in [Some(call), function].into_iter().zip(PLAIN) {
            let Some(dict) = dict.filter(|dict| dict.len() > plain || function.is_none()) else { continue };
            for key in self.names.signatures() {
                let Some(value) = get(dict, key) else { continue };
                let text = self.string_or_json(value, &format!(".tool_calls[{position}].{key}"))?;
                found = Some(match found {
                    None => text,
                    Some(before) => Text::new(self.strings.made.alloc([before.as_str(), text.as_str()].concat())),
                });
            }
        }
        self.read.extend(found.map(|text| (Field::Call(position), text)));
        Ok(())
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

    /// Reads the id of a call. Lone surrogates are told apart by their escapes, and it is written as it came.
    fn call_id(&mut self, value: Bound<'py, PyAny>) -> Option<Text<'a>> {
        let string = value.cast_into::<PyString>().ok()?;
        if string.to_str().is_ok() {
            return Some(self.text(string, Way::Text));
        }
        let escaped = || -> PyResult<String> {
            let bytes = string.call_method1("encode", ("utf-8", "backslashreplace"))?;
            bytes.call_method1("decode", ("utf-8",))?.extract()
        };
        let text = escaped().unwrap_or_else(|_| without_surrogates(&string));
        self.originals.ids.push((text.clone(), string));
        Some(Text::new(self.strings.made.alloc(text)))
    }

    /// Reads a name; what is no string counts as missing, and is repaired.
    fn id(&mut self, value: Bound<'py, PyAny>) -> Option<Text<'a>> {
        value.cast_into::<PyString>().ok().map(|string| self.text(string, Way::Text))
    }

    fn string(&mut self, value: Bound<'py, PyAny>, field: &str) -> Result<Text<'a>> {
        match value.cast_into::<PyString>() {
            Ok(string) => Ok(self.text(string, Way::Text)),
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

    fn text(&mut self, string: Bound<'py, PyString>, way: Way) -> Text<'a> {
        let key = self.counter.key(way);
        // A subclass may run code of its own when it is let go, so it is not held.
        let is_exact = string.is_exact_instance_of::<PyString>();
        let string: &'a Bound<'py, PyString> = self.strings.objects.alloc(string);
        let text = match string.to_str() {
            Ok(text) => text,
            Err(_) => self.strings.made.alloc(without_surrogates(string)),
        };
        // Ids and names: their length bounds them well enough until something must really be counted.
        let is_short = text.len() <= SHORT_BYTES && way == Way::Text;
        let cache = if is_exact && !is_short { known_strings(self.py) } else { None };
        let facts = cache.and_then(|mut cache| cache.get(address(string), key)).unwrap_or_default();
        let mut tag = u32::MAX;
        if is_exact && (facts.tokens.is_none() || (facts.json.is_none() && way == Way::Arguments)) {
            tag = u32::try_from(self.new.len()).unwrap_or(u32::MAX);
            self.new.push((string, key, facts));
            self.learned |= !is_short;
        }
        Text::with_facts(text, facts, tag)
    }

    fn wrong(&self, field: &str, expected: &str, got: &Bound<'_, PyAny>) -> Error {
        let is_model = expected == "a dict" && got.hasattr("model_dump").unwrap_or(false);
        let hint = if is_model { "\nhint: pass what its `model_dump(exclude_none=True)` returns" } else { "" };
        let problem = format!("must be {expected}, got {}{hint}", super::errors::format_value(got));
        Error::message(self.index, field, problem)
    }
}

/// Returns the type of a part, empty where it has none.
pub fn kind(part: &Bound<'_, PyDict>) -> String {
    let kind = get(part, intern!(part.py(), "type"));
    kind.and_then(|kind| kind.extract().ok()).unwrap_or_default()
}

/// Returns whether parts of this type have their text in the field `text`.
pub fn is_text(kind: &str) -> bool {
    matches!(kind, "text" | "input_text" | "output_text")
}

/// Strings up to this length are looked up in the cache only when they must be counted.
pub const SHORT_BYTES: usize = 32;

/// Looks up keys until as many were found as the dict has: most messages have no others than those that are read.
struct Keys<'d, 'py> {
    dict: &'d Bound<'py, PyDict>,
    left: usize,
}

impl<'d, 'py> Keys<'d, 'py> {
    fn of(dict: &'d Bound<'py, PyDict>) -> Self {
        Self { dict, left: dict.len() }
    }

    fn get(&mut self, key: &Bound<'py, PyString>) -> Option<Bound<'py, PyAny>> {
        if self.left == 0 {
            return None;
        }
        // An error here is one of a key's own `__eq__`: then the key is not the one looked for.
        let value = self.dict.get_item(key).ok().flatten()?;
        self.left -= 1;
        Some(value)
    }

    fn value(&mut self, key: &Bound<'py, PyString>) -> Option<Bound<'py, PyAny>> {
        self.get(key).filter(|value| !value.is_none())
    }
}

/// Returns a copy of a list, made at one moment.
pub fn snapshot<'py>(list: &Bound<'py, PyList>) -> Bound<'py, PyList> {
    list.get_slice(0, usize::MAX)
}

fn get<'py>(dict: &Bound<'py, PyDict>, key: &Bound<'py, PyString>) -> Option<Bound<'py, PyAny>> {
    // An error here is one of a key's own `__eq__`: then the key is not the one looked for.
    dict.get_item(key).ok().flatten().filter(|value| !value.is_none())
}

fn is_low_detail<'py>(part: &Bound<'py, PyDict>, names: Names<'py>) -> bool {
    let holder = get(part, names.image_url).and_then(|value| value.cast_into::<PyDict>().ok());
    let detail = holder.as_ref().and_then(|holder| get(holder, names.detail)).or_else(|| get(part, names.detail));
    detail.is_some_and(|detail| detail.extract::<&str>().is_ok_and(|detail| detail == "low"))
}

/// Returns whether a document of Anthropic's form holds nothing but text.
fn is_text_document<'py>(part: &Bound<'py, PyDict>, names: Names<'py>) -> bool {
    let Some(source) = get(part, names.source).and_then(|source| source.cast_into::<PyDict>().ok()) else {
        return false;
    };
    match kind(&source).as_str() {
        "text" => true,
        "content" => get(&source, names.content).is_some_and(|content| match content.cast::<PyList>() {
            Ok(blocks) => snapshot(blocks)
                .iter()
                .all(|block| block.cast::<PyDict>().is_ok_and(|block| is_text(kind(block).as_str()))),
            Err(_) => content.is_instance_of::<PyString>(),
        }),
        _ => false,
    }
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
