//! The limit on all tool results together.

use crate::message::Role;
use crate::tokens::Tokens;

use super::archive_paths::ArchivePaths;
use super::candidates::{Candidate, candidates, shortest};
use super::draft::{Draft, Origin, Slot};
use super::plan::Reason;
use super::protection::{Protection, Tier};

/// Returns the highest level at which at most `room` tokens are used, or 0.
pub fn highest(room: Tokens, used_at: impl Fn(Tokens) -> Tokens) -> Tokens {
    let (mut low, mut high) = (0, room.0);
    while low < high {
        let middle = low + (high - low).div_ceil(2);
        if used_at(Tokens(middle)) <= room { low = middle } else { high = middle - 1 }
    }
    Tokens(low)
}

/// Share of the limit that results before the last round may have in any case: what a fit left of them is mostly their odd lines.
const EARLIER: f64 = 0.2;

/// Shortens tool results before the last round until all results have at most `max_tokens` together.
///
/// Results of the last round stay, and with [`EARLIER`] they may keep the sum above that.
pub fn shrink_results(draft: &mut Draft<'_, '_>, archive_paths: &ArchivePaths<'_>, max_tokens: Tokens) {
    let protection = Protection::of(draft);
    let mut candidates = candidates(draft, archive_paths, &protection, &[]);
    candidates.retain(|candidate| {
        let entry = &draft.entries[candidate.entry];
        entry.role == Role::Tool && !entry.is_pinned && protection.tiers[candidate.group] == Some(Tier::Older)
    });
    let total = result_tokens(draft);
    let may_go: Tokens = candidates.iter().map(|candidate| candidate.full).sum();
    let room = (max_tokens - (total - may_go)).max(max_tokens.share(EARLIER));
    let at = |candidate: &Candidate, level: Tokens| level.clamp(candidate.floor, candidate.full);
    let level = highest(room, |level| candidates.iter().map(|candidate| at(candidate, level)).sum());
    for candidate in &candidates {
        if at(candidate, level) < candidate.full {
            cut(draft, archive_paths, candidate, at(candidate, level));
        }
    }
}

/// Returns the tokens of all tool results, with backfilled ones: in the next request they are results like others.
pub fn result_tokens(draft: &Draft<'_, '_>) -> Tokens {
    let kept = draft.entries.iter().filter(|entry| entry.role == Role::Tool && entry.dropped.is_none());
    kept.map(|entry| match &entry.origin {
        Origin::View(_) => entry.pieces.iter().map(|piece| piece.tokens).sum(),
        Origin::Backfill(message) => draft.counter.text(&message.content),
    })
    .sum()
}

/// Shortens a result to at most `share` tokens, or to its shortest form.
fn cut(draft: &mut Draft<'_, '_>, archive_paths: &ArchivePaths<'_>, candidate: &Candidate, share: Tokens) {
    let (entry, piece) = (candidate.entry, candidate.piece);
    // An attachment stays whole or goes.
    let is_text = !matches!(draft.entries[entry].pieces[piece].slot, Slot::Media(_));
    let short =
        if is_text && share > candidate.floor { archive_paths.within(draft, entry, piece, share) } else { None };
    let (short, tokens) = short.unwrap_or_else(|| shortest(draft, archive_paths, candidate));
    draft.set(entry, piece, short, tokens, Reason::ManyResults);
}
