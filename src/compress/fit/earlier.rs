//! Reads the ledgers of earlier fits, and carries them over into the new one.

use std::collections::HashSet;

use serde_json::json;

use crate::conversation::is_notes;
use crate::text::ledger;
use crate::tools::{Action, Effect};

use crate::compress::draft::{Draft, Slot};
use crate::compress::plan::Reason;
use crate::compress::protection::{Protection, Tier};

/// The contents of earlier ledgers, in order.
#[derive(Default)]
pub(super) struct Earlier {
    pub(super) names: Vec<String>,
    /// Calls that changed something, and what was said beside calls, with the entry that had their line.
    pub(super) changes: Vec<(usize, String)>,
    /// Calls that changed nothing, likewise, one line each.
    pub(super) lookups: Vec<(usize, String)>,
    /// Number of calls without a line.
    pub(super) unlisted: usize,
}

impl Earlier {
    /// Removes ledgers from the messages before the newest group; drops messages that say nothing else.
    pub(super) fn lift(draft: &mut Draft<'_, '_>, protection: &Protection) -> Self {
        let mut this = Self::default();
        let groups = [Tier::Older, Tier::LastRound].into_iter().flat_map(|tier| protection.tier(tier));
        for entry in groups.flat_map(|(_, group)| group.start..group.end) {
            let pieces = &draft.entries[entry].pieces;
            let Some(piece) = pieces.iter().position(|piece| piece.slot == Slot::Content) else { continue };
            if draft.entries[entry].dropped.is_some() {
                continue;
            }
            let Some((rest, said)) = ledger::lift(draft.text(entry, piece)) else { continue };
            this.take(entry, &said);
            if rest.is_empty() || is_notes(&rest) {
                draft.entries[entry].dropped = Some(Reason::Joined);
            } else {
                let tokens = draft.counter.text(&rest);
                draft.set(entry, piece, rest, tokens, Reason::Joined);
            }
        }
        let mut seen = HashSet::new();
        this.names.retain(|name| seen.insert(name.clone()));
        this
    }

    fn take(&mut self, entry: usize, said: &ledger::LedgerText<'_>) {
        self.unlisted = self.unlisted.saturating_add(said.unlisted);
        self.names.extend(said.names.iter().map(|name| (*name).to_owned()));
        for line in &said.calls {
            let (call, _) = ledger::times_of(line);
            let (tool, rest) = call.split_once(' ').unwrap_or((call, ""));
            if ledger::is_said(call) || is_change(tool, rest) {
                self.changes.push((entry, (*line).to_owned()));
            } else {
                self.lookups
                    .extend(rest.split(", ").map(|what| (entry, format!("{tool} {what}").trim_end().to_owned())));
            }
        }
    }
}

/// Returns whether the call in a line may have changed something. A command that only looks would be carried on as a change for
/// ever; one that was cut may do anything.
fn is_change(tool: &str, rest: &str) -> bool {
    match Effect::of(tool) {
        Effect::RunsCommand if rest.ends_with('…') || rest.contains("… (") => true,
        Effect::RunsCommand => Action::of(tool, &json!({ "command": rest })).effect.is_changing(),
        other => other.is_changing(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_that_only_looks_stays_a_lookup() {
        for (line, changed) in [
            ("exec kubectl get pods, date -u", false),
            ("exec make", true),
            ("exec cd /srv/a && git log…", true),
            ("exec cat a.log… (failed)", true),
            ("write_file a.py", true),
            ("read_file a.py", false),
        ] {
            let mut earlier = Earlier::default();
            earlier.take(1, &ledger::LedgerText { calls: vec![line], ..Default::default() });
            assert_eq!((earlier.changes.len() == 1, earlier.lookups.is_empty()), (changed, changed), "{line}");
        }
    }
}
