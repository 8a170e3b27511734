//! What a fit came to, remembered by everything that it followed from.
//!
//! A caller without a memory of its own sends the same conversation again after a refusal or a restart, and pays for one
//! look at it.

use std::sync::LazyLock;

use crate::tokens::ContentMemory;

use super::digest::Digest;
use super::draft::Draft;
use super::expired::Expired;
use super::plan::Reason;
use super::{Mechanisms, archive};

/// Bytes of text in outcomes that are remembered.
const MEMORY_BYTES: usize = 16 << 20;

static MEMORY: LazyLock<ContentMemory<Outcome>> = LazyLock::new(|| ContentMemory::new(MEMORY_BYTES));

/// What a fit made of a draft.
struct Outcome {
    /// Entries that are left out.
    dropped: Vec<usize>,
    pieces: Vec<Changed>,
    ledger: Option<String>,
    expired: Vec<Option<Expired>>,
}

/// A piece that the fit cut.
struct Changed {
    entry: usize,
    piece: usize,
    text: Option<String>,
    tokens: u64,
    reason: Reason,
}

/// Carries out what `fit` does, or what it did to the same draft before.
pub fn remembered(draft: &mut Draft<'_, '_>, budget_tokens: u64, fit: impl FnOnce(&mut Draft<'_, '_>)) {
    let key = key(draft, budget_tokens);
    let mut is_new = false;
    let outcome = MEMORY.get_or_make_by(key, || {
        is_new = true;
        let before: Vec<Vec<u64>> = draft.entries.iter().map(|entry| tokens_of(&entry.pieces)).collect();
        fit(draft);
        let outcome = Outcome::of(draft, &before);
        let bytes = outcome.bytes();
        (outcome, bytes)
    });
    if !is_new {
        outcome.apply(draft);
    }
}

fn tokens_of(pieces: &[super::draft::Piece]) -> Vec<u64> {
    pieces.iter().map(|piece| piece.tokens).collect()
}

impl Outcome {
    fn of(draft: &Draft<'_, '_>, before: &[Vec<u64>]) -> Self {
        let entries = || draft.entries.iter().enumerate();
        let dropped = entries().filter(|(_, entry)| entry.dropped == Some(Reason::Budget)).map(|(index, _)| index);
        let pieces = entries().flat_map(|(entry, of)| of.pieces.iter().enumerate().map(move |piece| (entry, piece)));
        let changed = pieces.filter(|(entry, (piece, now))| now.tokens != before[*entry][*piece]);
        Self {
            dropped: dropped.collect(),
            pieces: changed
                .map(|(entry, (piece, now))| Changed {
                    entry,
                    piece,
                    text: now.text.clone(),
                    tokens: now.tokens,
                    reason: now.reason,
                })
                .collect(),
            ledger: draft.ledger.clone(),
            expired: draft.expired.clone(),
        }
    }

    fn bytes(&self) -> usize {
        let texts = self.pieces.iter().filter_map(|changed| changed.text.as_ref()).map(String::len).sum::<usize>();
        texts + self.pieces.len() * size_of::<Changed>() + self.expired.len() * size_of::<Option<Expired>>()
    }

    fn apply(&self, draft: &mut Draft<'_, '_>) {
        draft.ledger.clone_from(&self.ledger);
        draft.expired.clone_from(&self.expired);
        for &entry in &self.dropped {
            draft.entries[entry].dropped = Some(Reason::Budget);
        }
        for &Changed { entry, piece, ref text, tokens, reason } in &self.pieces {
            // Asked for its effect: the draft remembers which originals its marks name.
            archive::origin(draft, entry, piece);
            let now = &mut draft.entries[entry].pieces[piece];
            (now.text, now.tokens, now.reason) = (text.clone(), tokens, reason);
        }
    }
}

/// Returns a hash of the draft and of everything else that a fit goes by.
fn key(draft: &Draft<'_, '_>, budget_tokens: u64) -> u128 {
    let mut digest = Digest::default();
    digest.number(budget_tokens);
    digest.number(draft.overhead_tokens);
    digest.number(u64::from(draft.counter.family().id));
    let Mechanisms { learned, relevance, outline, expired, pinning, ledger, coverage } = draft.mechanisms;
    for switch in [learned, relevance, outline, expired, pinning, ledger, coverage] {
        digest.number(u64::from(switch));
    }
    if let Some(archive) = &draft.archive {
        archive.names().for_each(|name| digest.text(name));
    }
    for message in draft.view {
        digest.message(message, true);
    }
    // Repairs follow from the messages; cuts that were made before, from limits too.
    for (index, entry) in draft.entries.iter().enumerate() {
        digest.number(entry.dropped.map_or(0, |reason| reason as u64 + 1));
        for (piece, now) in entry.pieces.iter().enumerate().filter(|(_, piece)| piece.text.is_some()) {
            digest.number(index as u64);
            digest.text(draft.text(index, piece));
            digest.number(now.reason as u64);
        }
    }
    digest.finish()
}
