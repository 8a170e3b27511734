//! Moves late results, which other messages separate from their calls, behind their calls.
//!
//! Parallel calls in two messages of the assistant, or a word of the user between two results: no provider accepts results
//! in such a place. They are moved before any other pass, so that none has to know.

use crate::budget::Request;
use crate::conversation::{Late, late_results, with_calls};
use crate::error::Result;
use crate::message::Message;

use super::plan::{Cut, Output, Plan, Reason};

/// Calls `plan` with each result behind its call, and with the first position of a message from `above` on; maps its indices
/// back.
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
    let late = late_results(view);
    if late.is_empty() {
        return plan(view, above);
    }
    let (order, moved) = moved(view, &late);
    let above = order.iter().position(|&index| index >= above).unwrap_or(order.len());
    let mut plan = plan(&moved, above)?;
    let counter = request.counter();
    let cuts = &mut plan.receipt.cuts;
    for cut in cuts.iter_mut() {
        cut.index = order[cut.index];
    }
    for output in &mut plan.outputs {
        let (Output::Keep(index) | Output::Edit(index, _)) = output else { continue };
        *index = order[*index];
        if late.binary_search_by_key(index, |late| late.result).is_ok() {
            let tokens = counter.message(&view[*index]);
            let reason = Reason::LateResult;
            cuts.push(Cut { index: *index, reason, tokens_before: tokens, tokens_after: tokens });
        }
    }
    cuts.sort_by_key(|cut| cut.index);
    for archived in &mut plan.archived {
        archived.index = order[archived.index];
    }
    Ok(plan)
}

/// Returns the messages with late results behind their calls, and the original index of each.
pub fn moved<'a>(view: &[Message<'a>], late: &[Late]) -> (Vec<usize>, Vec<Message<'a>>) {
    let order = with_calls(view, late);
    let moved = order.iter().map(|&index| view[index].clone()).collect();
    (order, moved)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compress::{compress, fit_above};
    use crate::conversation::safe_cut_point;
    use crate::message::{Role, Text, ToolCall};
    use crate::tokens::Tokens;

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
        let of = |view: &[Message<'static>]| with_calls(view, &late_results(view));
        assert_eq!(of(&[user(), calling(&["a", "b"]), result("b"), result("a"), user()]), [0, 1, 2, 3, 4]);
        assert_eq!(of(&[calling(&["a", "b"]), result("a"), user(), result("b")]), [0, 1, 3, 2]);
        assert_eq!(of(&[calling(&["a"]), calling(&["b"]), result("a"), result("b")]), [0, 2, 1, 3]);
        assert_eq!(of(&[calling(&["a"]), user(), result("a"), user()]), [0, 2, 1, 3]);
        // Of an id that is used again, the newest call first.
        let again = [calling(&["x"]), result("x"), calling(&["x"]), user(), result("x")];
        assert_eq!(of(&again), [0, 1, 2, 4, 3]);
        let twice = [calling(&["x"]), user(), calling(&["x"]), result("x"), result("x")];
        assert_eq!(of(&twice), [0, 4, 1, 2, 3]);
        // What answers no call, or one that is answered, stays for `repair`.
        assert_eq!(of(&[result("a"), calling(&["a"]), user()]), [0, 1, 2]);
        assert_eq!(of(&[calling(&["a"]), result("a"), user(), result("a")]), [0, 1, 2, 3]);
    }

    #[test]
    fn no_cut_point_parts_a_late_result_from_its_call() {
        let view = [user(), calling(&["a"]), user(), result("a"), user(), result("x")];
        assert_eq!([1, 2, 3, 4].map(|keep| safe_cut_point(&view, keep)), [4, 4, 0, 0]);
    }

    #[test]
    fn a_result_that_moves_is_neither_left_out_nor_cut_where_there_is_room() {
        let view = [user(), calling(&["a", "b"]), result("a"), user(), result("b"), user()];
        let request = Request::new(None, None, Tokens(1_000));
        let keep = |indices: [usize; 6]| indices.map(Output::Keep).to_vec();
        let plan = compress(&view, &request).unwrap().unwrap();
        assert_eq!(plan.outputs, keep([0, 1, 2, 4, 3, 5]));
        assert_eq!(
            plan.receipt.cuts.iter().map(|cut| (cut.index, cut.reason)).collect::<Vec<_>>(),
            [(4, Reason::LateResult)]
        );
        assert_eq!(plan.receipt.tokens_before, plan.receipt.tokens_after);
        let above = fit_above(&view, &request, Tokens(1_000), 4).unwrap();
        assert_eq!(above.outputs, plan.outputs);
    }
}
