//! Turns a finished draft into its plan.

use std::collections::BTreeMap;

use crate::tokens::Tokens;

use super::archive_paths::ArchivePaths;
use super::draft::{Draft, Entry, Origin, Piece, Slot};
use super::notes::{LeftOut, Notes, Placed};
use super::plan::{CallEdit, Cut, Edit, Output, Plan, Reason, Receipt};

/// Returns the plan of a draft, with notes where messages were left out for the budget.
pub fn plan(draft: Draft<'_, '_>, left_out: &LeftOut, archive_paths: &ArchivePaths<'_>) -> Plan {
    let archived = archive_paths.archived(&draft);
    let tokens = draft.tokens() + left_out.ledger_tokens(&draft);
    let max_tokens = tokens + left_out.max_note_tokens;
    let (items, after) = Notes::of(&draft, left_out).carry_out(&draft, max_tokens);
    let mut outputs = Vec::with_capacity(items.len());
    let mut cuts = Vec::new();
    let mut entries: Vec<Option<Entry>> = draft.entries.into_iter().map(Some).collect();
    // Index of the last kept message.
    let mut last_index = 0;
    for item in items {
        let (position, joined, is_merged) = match item {
            Placed::New(message) => {
                outputs.push(Output::New(message));
                continue;
            }
            Placed::Entry(position, joined) => (position, joined, false),
            Placed::Merged(position) => (position, None, true),
        };
        let Some(entry) = entries[position].take() else { continue };
        if let Some(reason) = entry.dropped {
            if let Some(index) = entry.index() {
                let tokens_before = draft.counter.message(&draft.view[index]);
                cuts.push(Cut { index, reason, tokens_before, tokens_after: Tokens::ZERO });
            }
            continue;
        }
        let tokens = entry.tokens();
        match entry.origin {
            Origin::View(index) => {
                last_index = index;
                let malformed = !entry.calls.is_empty() || entry.tool_call_id.is_some();
                if malformed {
                    let reason = Reason::MalformedCall;
                    cuts.push(Cut { index, reason, tokens_before: Tokens::ZERO, tokens_after: Tokens::ZERO });
                }
                for piece in entry.pieces.iter().filter(|piece| piece.text.is_some() || piece.repaired.is_some()) {
                    let (tokens_before, tokens_after) = (piece.original_tokens, piece.tokens);
                    cuts.push(Cut { index, reason: piece.reason, tokens_before, tokens_after });
                }
                if is_merged || joined.is_some() {
                    cuts.push(Cut { index, reason: Reason::Joined, tokens_before: tokens, tokens_after: tokens });
                }
                if is_merged {
                    continue;
                }
                let mut edit = edit(entry.pieces, entry.calls, entry.tool_call_id);
                edit.content = joined.or(edit.content);
                outputs.push(if edit == Edit::default() { Output::Keep(index) } else { Output::Edit(index, edit) });
            }
            Origin::Backfill(message) => {
                let reason = Reason::MissingResult;
                cuts.push(Cut { index: last_index, reason, tokens_before: Tokens::ZERO, tokens_after: tokens });
                outputs.push(Output::New(message));
            }
        }
    }
    let receipt = Receipt {
        tokens_before: Some(draft.before),
        tokens_after: Some(after),
        source: Some(draft.counter.source()),
        cuts,
    };
    Plan { outputs, receipt, archived }
}

fn edit(pieces: Vec<Piece>, calls: Vec<(usize, CallEdit)>, tool_call_id: Option<String>) -> Edit {
    let mut edit = Edit { tool_call_id, ..Edit::default() };
    let mut calls: BTreeMap<usize, CallEdit> = calls.into_iter().collect();
    for piece in pieces {
        let Some(text) = piece.text.or(piece.repaired) else { continue };
        match piece.slot {
            Slot::Content => edit.content = Some(text),
            Slot::Part(i) | Slot::Media(i) => edit.parts.push((i, text)),
            Slot::Arguments(i) => calls.entry(i).or_default().arguments = Some(text),
            Slot::Field(field) => edit.fields.push((field, text)),
        }
    }
    edit.calls = calls.into_iter().collect();
    edit
}
