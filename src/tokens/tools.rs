//! Counts tool schemas.

use serde_json::{Map, Value};

use super::{TokenCounter, Tokens, Way, cache};

// The framing of a function, its properties and enums: OpenAI cookbook, "How to count tokens with tiktoken",
// `num_tokens_for_tools`, the figures for gpt-4o. Older models have 10 in place of 7; the larger of both is taken.
const FUNCTION: Tokens = Tokens(10);
const PROPERTIES: Tokens = Tokens(3);
const PROPERTY: Tokens = Tokens(3);
const ENUM: i64 = -3;
const ENUM_ITEM: Tokens = Tokens(3);
const TOOLS_END: Tokens = Tokens(12);

impl TokenCounter {
    /// Returns the tokens of tool schemas, given as the JSON text of a list of OpenAI tools.
    ///
    /// Names, descriptions, property types and enums as the OpenAI cookbook counts them. What the cookbook leaves out
    /// (nested schemas, `required`, formats, provider keys) is counted as its JSON text, since it is sent too.
    /// JSON that is no list of tools is counted as text.
    ///
    /// Cached by content: an agent sends the same schemas with every request.
    pub fn tools(&self, schemas: &str) -> Tokens {
        self.by_content(schemas, Way::Tools, |text| self.text(text))
    }

    /// Returns a bound that [`Self::tools`] does not exceed, which is that count where it is known. Counts no text.
    pub fn tools_bound(&self, schemas: &str) -> Tokens {
        cache::known(schemas, self.key(Way::Tools))
            .map_or_else(|| self.by_content(schemas, Way::ToolsBound, |text| self.text_bound(text)), Tokens::from)
    }

    /// Returns the `most` largest of tool schemas by name, the largest first.
    pub fn largest_tools(&self, schemas: &str, most: usize) -> Vec<(String, Tokens)> {
        let Ok(Value::Array(tools)) = serde_json::from_str(schemas) else { return Vec::new() };
        let schemas = Schemas { text: |text: &str| self.text(text) };
        let name = |tool: &Value| Some(tool.get("function").unwrap_or(tool).get("name")?.as_str()?.to_owned());
        let mut sizes: Vec<(String, Tokens)> =
            tools.iter().filter_map(|tool| Some((name(tool)?, schemas.tool(tool)))).collect();
        sizes.sort_by_key(|&(_, tokens)| std::cmp::Reverse(tokens));
        sizes.truncate(most);
        sizes
    }

    fn by_content(&self, schemas: &str, way: Way, text: impl Fn(&str) -> Tokens) -> Tokens {
        let count = || u32::try_from(Schemas { text }.all(schemas).0).unwrap_or(u32::MAX);
        cache::by_content(schemas, self.key(way), count).into()
    }
}

/// Counts tool schemas, with texts counted by `text`.
struct Schemas<F> {
    text: F,
}

impl<F: Fn(&str) -> Tokens> Schemas<F> {
    fn all(&self, schemas: &str) -> Tokens {
        let Ok(Value::Array(tools)) = serde_json::from_str(schemas) else {
            return (self.text)(schemas);
        };
        if tools.is_empty() {
            return Tokens::ZERO;
        }
        TOOLS_END + tools.iter().map(|tool| self.tool(tool)).sum::<Tokens>()
    }

    fn tool(&self, tool: &Value) -> Tokens {
        let function = tool.get("function").unwrap_or(tool);
        let (Some(name), Some(function)) = (function.get("name").and_then(Value::as_str), function.as_object()) else {
            return self.json(tool);
        };
        let description = function.get("description").and_then(Value::as_str).unwrap_or_default();
        let head = FUNCTION + (self.text)(&format!("{name}:{}", description.trim_end_matches('.')));
        let rest = function.iter().filter(|(key, _)| !["name", "description", "parameters", "type"].contains(&&***key));
        head + rest.map(|(key, value)| self.entry(key, value)).sum::<Tokens>()
            + function.get("parameters").map_or(Tokens::ZERO, |parameters| self.schema(parameters))
    }

    fn schema(&self, schema: &Value) -> Tokens {
        let Some(schema) = schema.as_object() else { return self.json(schema) };
        let empty = Map::new();
        let properties = schema.get("properties").and_then(Value::as_object).unwrap_or(&empty);
        let mut tokens = if properties.is_empty() { Tokens::ZERO } else { PROPERTIES };
        for (name, property) in properties {
            tokens += PROPERTY + self.property(name, property);
        }
        let rest = schema.iter().filter(|(key, _)| !["properties", "type"].contains(&&***key));
        tokens + rest.map(|(key, value)| self.entry(key, value)).sum::<Tokens>()
    }

    fn property(&self, name: &str, property: &Value) -> Tokens {
        let Some(fields) = property.as_object() else { return self.entry(name, property) };
        let field = |key| fields.get(key).and_then(Value::as_str).unwrap_or_default();
        let line = format!("{name}:{}:{}", field("type"), field("description").trim_end_matches('.'));
        let mut tokens = (self.text)(&line).0.cast_signed();
        for (key, value) in fields {
            tokens += match (key.as_str(), value) {
                ("type" | "description", Value::String(_)) => 0,
                ("enum", Value::Array(items)) => {
                    ENUM + items.iter().map(|item| (ENUM_ITEM + self.json(item)).0.cast_signed()).sum::<i64>()
                }
                _ => self.entry(key, value).0.cast_signed(),
            };
        }
        Tokens(tokens.max(0).cast_unsigned())
    }

    fn entry(&self, key: &str, value: &Value) -> Tokens {
        (self.text)(key) + self.json(value)
    }

    fn json(&self, value: &Value) -> Tokens {
        match value {
            Value::String(text) => (self.text)(text),
            other => (self.text)(&other.to_string()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The cookbook's example, with its published result for gpt-4o; messages and reply priming taken off.
    #[test]
    fn tools_cost_at_least_what_the_cookbook_says() {
        let tools = r#"[{"type": "function", "function": {"name": "get_current_weather",
            "description": "Get the current weather in a given location",
            "parameters": {"type": "object", "properties": {
                "location": {"type": "string", "description": "The city and state, e.g. San Francisco, CA"},
                "unit": {"type": "string", "description": "The unit of temperature to return", "enum": ["celsius", "fahrenheit"]}},
                "required": ["location"]}}}]"#;
        let counter = TokenCounter::new(Some("gpt-4o"));
        let messages = Tokens(3 * 3)
            + Tokens(3)
            + counter.text("system")
            + counter.text("You are a helpful assistant that can answer to questions about the weather.")
            + counter.text("user")
            + counter.text("What's the weather like in San Francisco?");
        let published = Tokens(101);
        let tokens = counter.tools(tools);
        assert!(tokens + messages >= published && tokens + messages <= published + Tokens(10), "{tokens} + {messages}");
    }

    #[test]
    fn nothing_costs_nothing_and_nesting_costs_its_text() {
        let counter = TokenCounter::new(Some("gpt-4o"));
        assert_eq!(counter.tools("[]"), Tokens::ZERO);
        let flat = counter.tools(r#"[{"name": "f", "parameters": {"properties": {"a": {"type": "object"}}}}]"#);
        let deep = counter.tools(
            r#"[{"name": "f", "parameters": {"properties": {"a": {"type": "object", "properties": {"b": {"type": "string"}}}}}}]"#,
        );
        assert!(deep > flat);
        assert!(counter.tools("not json") > Tokens::ZERO);
    }
}
