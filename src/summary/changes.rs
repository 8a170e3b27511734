//! Lists the calls of a conversation that changed something.

use crate::message::{Message, Text, ToolCall};
use crate::text::ledger::call_line;

use super::cut::is_result;
use super::transcript::{answers, said};

/// Ends the line of a call without a result.
const NO_RESULT: &str = " (no result)";

/// A call that changed something, and its line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Change<'m> {
    /// Index of its message.
    pub index: usize,
    /// Empty for a call without one.
    pub id: &'m str,
    /// Empty for a call without any.
    pub arguments: &'m str,
    /// The tool, its subject, and its outcome if it failed.
    pub line: String,
}

/// Returns the calls of `view` that changed something, in order. O(bytes of calls and their results).
pub fn changes<'m>(view: &'m [Message<'_>]) -> Vec<Change<'m>> {
    (0..view.len()).flat_map(|index| changes_of(view, index)).collect()
}

/// Returns the changes of the message at `index`.
pub fn changes_of<'m>(view: &'m [Message<'_>], index: usize) -> Vec<Change<'m>> {
    let (message, following) = (&view[index], &view[index + 1..]);
    let of_call = |call: &'m ToolCall<'_>| {
        let [name, arguments, id] =
            [&call.name, &call.arguments, &call.id].map(|text| text.as_ref().map_or("", Text::as_str));
        call.effect().is_changing().then(|| {
            let mut results = following.iter().take_while(|message| is_result(message));
            let result = results.find(|result| answers(result, call)).map(said);
            let mut line = call_line(name, arguments, result.as_deref());
            if result.is_none() {
                line.push_str(NO_RESULT);
            }
            Change { index, id, arguments, line }
        })
    };
    message.tool_calls.iter().filter_map(of_call).collect()
}
