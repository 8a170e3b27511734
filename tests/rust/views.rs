//! Messages as the core reads them, made of little.

use nanobot_context::{Message, Role, ToolCall};

pub fn call(id: &'static str, name: &'static str, arguments: &'static str) -> Message<'static> {
    let [id, name, arguments] = [id, name, arguments].map(|text| Some(text.into()));
    let call = ToolCall { id, name, arguments, arguments_are_text: true };
    Message { tool_calls: vec![call], ..Message::empty(Role::Assistant) }
}

pub fn result(id: &'static str, text: &'static str) -> Message<'static> {
    Message { tool_call_id: Some(id.into()), ..Message::new(Role::Tool, text) }
}

/// A message for each letter: system, user, answer, call, and a result for any other.
pub fn conversation(roles: &str) -> Vec<Message<'static>> {
    let message = |letter| match letter {
        's' => Message::new(Role::System, "rules"),
        'u' => Message::new(Role::User, "question"),
        'a' => Message::new(Role::Assistant, "answer"),
        'c' => call("c", "f", "{}"),
        _ => result("c", "result"),
    };
    roles.chars().map(message).collect()
}
