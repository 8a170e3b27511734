//! Results that came late: messages of others stand between them and their calls.
//!
//! Two messages of the assistant's before the results of both, or a word of the user between two results: what the model was
//! given is there, and no provider takes it in that place. Each is read behind its call before anything else is decided, so
//! that no other pass knows of it.

use std::collections::HashMap;

use crate::budget::Request;
use crate::error::Result;
use crate::message::{Message, Role, Text};
use crate::tokens::TokenCounter;

use super::plan::{Cut, Output, Plan, Reason};

/// The order in which messages are read.
struct Order {
    /// By new place: the index in the conversation that came in.
    indices: Vec<usize>,
    /// The indices of results that have moved.
    moved: Vec<usize>,
}

/// Returns the order in which each result stands behind its call, or `None` where it does already.
///
/// A result answers the newest call of its id that none has answered. One that stands before all calls of its id answers none.
/// O(messages and calls).
fn order(view: &[Message<'_>]) -> Option<Order> {
    let mut waiting: HashMap<&str, Vec<usize>> = HashMap::new();
    let mut behind: HashMap<usize, Vec<usize>> = HashMap::new();
    let mut moved = Vec::new();
    let mut opening = None;
    for (index, message) in view.iter().enumerate() {
        if message.role == Role::Tool {
            let call = waiting.get_mut(id(message.tool_call_id.as_ref())).and_then(Vec::pop);
            if let Some(call) = call.filter(|call| opening != Some(*call)) {
                behind.entry(call).or_default().push(index);
                moved.push(index);
            }
            continue;
        }
        opening = Some(index);
        if message.role == Role::Assistant {
            for call in &message.tool_calls {
                waiting.entry(id(call.id.as_ref())).or_default().push(index);
            }
        }
    }
    if moved.is_empty() {
        return None;
    }
    let mut indices = Vec::with_capacity(view.len());
    let mut results: Vec<usize> = Vec::new();
    for (index, message) in view.iter().enumerate() {
        if message.role != Role::Tool {
            indices.append(&mut results);
            results = behind.remove(&index).unwrap_or_default();
            indices.push(index);
        } else if moved.binary_search(&index).is_err() {
            indices.push(index);
        }
    }
    indices.append(&mut results);
    Some(Order { indices, moved })
}

fn id<'t>(text: Option<&'t Text<'_>>) -> &'t str {
    text.map_or("", Text::as_str)
}

impl Order {
    fn of<'a>(&self, view: &[Message<'a>]) -> Vec<Message<'a>> {
        self.indices.iter().map(|&index| view[index].clone()).collect()
    }

    fn place(&self, index: usize) -> usize {
        self.indices.iter().position(|&other| other >= index).unwrap_or(self.indices.len())
    }

    /// Returns the plan for messages in this order as one for those that came in, and says which results have moved.
    fn undo(&self, mut plan: Plan, view: &[Message<'_>], counter: &TokenCounter) -> Plan {
        let cuts = &mut plan.receipt.cuts;
        for cut in cuts.iter_mut() {
            cut.index = self.indices[cut.index];
        }
        for output in &mut plan.outputs {
            let (Output::Keep(index) | Output::Edit(index, _)) = output else { continue };
            *index = self.indices[*index];
            if self.moved.binary_search(index).is_ok() {
                let tokens = counter.message(&view[*index]);
                let reason = Reason::LateResult;
                cuts.push(Cut { index: *index, reason, tokens_before: tokens, tokens_after: tokens });
            }
        }
        cuts.sort_by_key(|cut| cut.index);
        for archived in &mut plan.archived {
            archived.index = self.indices[archived.index];
        }
        plan
    }
}

/// Plans with each result behind its call. `plan` gets the messages in that order, and of these the first place from `above` on.
///
/// # Errors
///
/// Those of `plan`.
pub fn planned(
    view: &[Message<'_>],
    request: &Request<'_>,
    above: usize,
    plan: impl FnOnce(&[Message<'_>], usize) -> Result<Plan>,
) -> Result<Plan> {
    let Some(order) = order(view) else { return plan(view, above) };
    let plan = plan(&order.of(view), order.place(above))?;
    Ok(order.undo(plan, view, &request.counter()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compress::{compress, fit_above};
    use crate::message::ToolCall;

    fn calling(ids: &[&'static str]) -> Message<'static> {
        let call = |id: &&'static str| {
            let text = |text: &'static str| Some(Text::new(text));
            ToolCall { id: text(id), name: text("f"), arguments: text("{}"), arguments_are_text: true }
        };
        Message { tool_calls: ids.iter().map(call).collect(), ..Message::empty(Role::Assistant) }
    }

    fn result(id: &'static str) -> Message<'static> {
        Message { tool_call_id: Some(id.into()), ..Message::new(Role::Tool, id) }
    }

    fn user() -> Message<'static> {
        Message::new(Role::User, "quick")
    }

    #[test]
    fn a_late_result_moves_behind_its_call() {
        let of = |view: &[Message<'static>]| order(view).map(|order| order.indices);
        assert_eq!(of(&[user(), calling(&["a", "b"]), result("b"), result("a"), user()]), None);
        assert_eq!(of(&[calling(&["a", "b"]), result("a"), user(), result("b")]), Some(vec![0, 1, 3, 2]));
        assert_eq!(of(&[calling(&["a"]), calling(&["b"]), result("a"), result("b")]), Some(vec![0, 2, 1, 3]));
        assert_eq!(of(&[calling(&["a"]), user(), result("a"), user()]), Some(vec![0, 2, 1, 3]));
        // Of an id that is used again, the newest call first.
        let again = [calling(&["x"]), result("x"), calling(&["x"]), user(), result("x")];
        assert_eq!(of(&again), Some(vec![0, 1, 2, 4, 3]));
        let twice = [calling(&["x"]), user(), calling(&["x"]), result("x"), result("x")];
        assert_eq!(of(&twice), Some(vec![0, 4, 1, 2, 3]));
        // What answers no call, or one that is answered, stays for `repair`.
        assert_eq!(of(&[result("a"), calling(&["a"]), user()]), None);
        assert_eq!(of(&[calling(&["a"]), result("a"), user(), result("a")]), None);
    }

    #[test]
    fn a_result_that_moves_is_neither_left_out_nor_cut_where_there_is_room() {
        let view = [user(), calling(&["a", "b"]), result("a"), user(), result("b"), user()];
        let request = Request::new(None, None, 1_000);
        let keep = |indices: [usize; 6]| indices.map(Output::Keep).to_vec();
        let plan = compress(&view, &request).unwrap().unwrap();
        assert_eq!(plan.outputs, keep([0, 1, 2, 4, 3, 5]));
        assert_eq!(
            plan.receipt.cuts.iter().map(|cut| (cut.index, cut.reason)).collect::<Vec<_>>(),
            [(4, Reason::LateResult)]
        );
        assert_eq!(plan.receipt.tokens_before, plan.receipt.tokens_after);
        let above = fit_above(&view, &request, 1_000, 4).unwrap();
        assert_eq!(above.outputs, plan.outputs);
    }
}
