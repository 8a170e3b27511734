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
    let mut finished = Finished { outputs: Vec::with_capacity(items.len()), cuts: Vec::new(), last_index: 0 };
    let mut entries: Vec<Option<Entry>> = draft.entries.into_iter().map(Some).collect();
    for item in items {
        let (position, joined, is_merged) = match item {
            Placed::New(message) => {
                finished.outputs.push(Output::New(message));
                continue;
            }
            Placed::Entry(position, joined) => (position, joined, false),
            Placed::Merged(position) => (position, None, true),
        };
        let Some(entry) = entries[position].take() else { continue };
        match entry.dropped {
            Some(reason) => {
                let index = entry.index();
                let before = |index: usize| draft.counter.message(&draft.view[index]);
                finished.cuts.extend(index.map(|index| cut(index, reason, before(index), Tokens::ZERO)));
            }
            None => finished.keep(entry, joined, is_merged),
        }
    }
    let receipt = Receipt {
        tokens_before: Some(draft.before),
        tokens_after: Some(after),
        source: Some(draft.counter.source()),
        cuts: finished.cuts,
    };
    Plan { outputs: finished.outputs, receipt, archived }
}

/// The messages of a request so far, and their cuts.
struct Finished {
    outputs: Vec<Output>,
    cuts: Vec<Cut>,
    /// Index of the last kept message.
    last_index: usize,
}

impl Finished {
    /// Adds a kept entry: with the text `joined` in place of its own, or none where that is merged into another's.
    fn keep(&mut self, entry: Entry, joined: Option<String>, is_merged: bool) {
        let tokens = entry.tokens();
        let index = match entry.origin {
            Origin::View(index) => index,
            Origin::Backfill(message) => {
                self.cuts.push(cut(self.last_index, Reason::MissingResult, Tokens::ZERO, tokens));
                self.outputs.push(Output::New(message));
                return;
            }
        };
        self.last_index = index;
        if !entry.calls.is_empty() || entry.tool_call_id.is_some() {
            self.cuts.push(cut(index, Reason::MalformedCall, Tokens::ZERO, Tokens::ZERO));
        }
        let changed = entry.pieces.iter().filter(|piece| piece.text.is_some() || piece.repaired.is_some());
        self.cuts.extend(changed.map(|piece| cut(index, piece.reason, piece.original_tokens, piece.tokens)));
        if is_merged || joined.is_some() {
            self.cuts.push(cut(index, Reason::Joined, tokens, tokens));
        }
        if is_merged {
            return;
        }
        let is_list = entry.pieces.iter().any(|piece| matches!(piece.slot, Slot::Part(_)));
        let mut edit = edit(entry.pieces, entry.calls, entry.tool_call_id);
        match joined {
            Some(text) if is_list => edit.parts = vec![(0, text)],
            joined => edit.content = joined.or(edit.content),
        }
        self.outputs.push(if edit == Edit::default() { Output::Keep(index) } else { Output::Edit(index, edit) });
    }
}

fn cut(index: usize, reason: Reason, tokens_before: Tokens, tokens_after: Tokens) -> Cut {
    Cut { index, reason, tokens_before, tokens_after }
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
