//! What a fit came to, remembered by everything that it followed from.
//!
//! A caller without a memory of its own sends the same conversation again after a refusal or a restart, and pays for one
//! look at it.

use std::sync::LazyLock;

use crate::cache::{Allowance, FITS};
use crate::tokens::ContentMemory;

use super::digest::Digest;
use super::draft::Draft;
use super::plan::Reason;
use super::superseded::Expired;
use super::{Ablation, archive};

pub(super) static MEMORY: LazyLock<ContentMemory<Outcome>> =
    LazyLock::new(|| ContentMemory::new(Allowance::Share(&FITS)));

/// What a fit made of a draft.
pub(super) struct Outcome {
    /// Entries that are left out.
    dropped: Vec<usize>,
    pieces: Vec<Changed>,
    ledger: Option<String>,
    notes_apart: bool,
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
        fit(draft);
        let outcome = Outcome::of(draft);
        let bytes = outcome.bytes();
        (outcome, bytes)
    });
    if !is_new {
        outcome.apply(draft);
    }
}

impl Outcome {
    fn of(draft: &Draft<'_, '_>) -> Self {
        let entries = || draft.entries.iter().enumerate();
        let dropped = entries().filter(|(_, entry)| entry.dropped == Some(Reason::Budget)).map(|(index, _)| index);
        let pieces = entries().flat_map(|(entry, of)| of.pieces.iter().enumerate().map(move |piece| (entry, piece)));
        // Passes before the fit give other reasons. What it cost before says nothing: a mark may cost as much as its text.
        let changed = pieces.filter(|(_, (_, now))| now.text.is_some() && now.reason == Reason::Budget);
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
            notes_apart: draft.notes_apart,
            expired: draft.expired.clone(),
        }
    }

    fn bytes(&self) -> usize {
        let texts = self.pieces.iter().filter_map(|changed| changed.text.as_ref()).chain(&self.ledger);
        texts.map(String::capacity).sum::<usize>()
            + self.dropped.capacity() * size_of::<usize>()
            + self.pieces.capacity() * size_of::<Changed>()
            + self.expired.capacity() * size_of::<Option<Expired>>()
    }

    fn apply(&self, draft: &mut Draft<'_, '_>) {
        draft.ledger.clone_from(&self.ledger);
        draft.notes_apart = self.notes_apart;
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
    let Ablation { learned, relevance, outline, expired, pinning, ledger, coverage } = draft.mechanisms;
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compress::{Archive, Request, draft};
    use crate::message::{Message, Role};

    const BUDGET: u64 = 100;

    /// Returns whether what became of the messages was remembered; one is cut, one dropped, one listed.
    fn is_remembered(texts: [&str; 2], request: &Request<'_>, budget_tokens: u64) -> bool {
        let view = texts.map(|text| Message::new(Role::User, text));
        let mut draft = draft(&view, request);
        let mut is_new = false;
        remembered(&mut draft, budget_tokens, |draft| {
            is_new = true;
            draft.set(0, 0, "short".to_owned(), 1, Reason::Budget);
            draft.entries[1].dropped = Some(Reason::Budget);
            draft.ledger = Some("names".to_owned());
            draft.expired = vec![None, Some(Expired::Stale)];
        });
        assert_eq!((draft.text(0, 0), draft.entries[0].pieces[0].tokens), ("short", 1));
        assert_eq!(draft.entries[1].dropped, Some(Reason::Budget));
        assert_eq!((draft.ledger.as_deref(), &draft.expired[1]), (Some("names"), &Some(Expired::Stale)));
        !is_new
    }

    #[test]
    fn the_same_fit_is_made_once() {
        let request = Request::new(Some("gpt-4o"), None, 0);
        let texts = ["the first of two texts", "the second of two texts"];
        assert!(!is_remembered(texts, &request, BUDGET) && is_remembered(texts, &request, BUDGET));
        // The window and the limits have done their work before a fit.
        assert!(is_remembered(texts, &Request { window_tokens: 9, ..request }, BUDGET));
    }

    #[test]
    fn a_mark_that_costs_as_much_as_its_text_is_remembered() {
        let view = [Message::new(Role::User, "some words of a text")];
        for _ in 0..2 {
            let mut draft = draft(&view, &Request::new(None, None, 0));
            let tokens = draft.entries[0].pieces[0].tokens;
            remembered(&mut draft, 7, |draft| draft.set(0, 0, "mark".to_owned(), tokens, Reason::Budget));
            assert_eq!(draft.text(0, 0), "mark");
        }
    }

    #[test]
    fn whatever_a_fit_goes_by_makes_it_another_one() {
        let texts = ["one of the texts", "another of the texts"];
        let request = |model| Request::new(model, None, 0);
        let archive = |directory| Archive::new(directory).unwrap();
        let kept_in = |archive| Request { archive: Some(archive), ..request(None) };
        let one = |name: &str| [name.to_owned()].into();
        let requests = [
            request(None),
            request(Some("glm-4.6")),
            Request { tools: Some(r#"[{"type": "function", "function": {"name": "exec"}}]"#), ..request(None) },
            kept_in(archive("results")),
            kept_in(archive("other/results")),
            kept_in(archive("results").only(one("a"))),
            kept_in(archive("results").only(one("b"))),
        ];
        let without = ["learned", "relevance", "outline", "expired", "pinning", "ledger", "coverage"];
        let without = without.map(|name| Request { mechanisms: Ablation::without([name]).unwrap(), ..request(None) });
        for request in requests.iter().chain(&without) {
            assert!(!is_remembered(texts, request, BUDGET), "{request:?}");
        }
        assert!(!is_remembered(texts, &requests[0], BUDGET + 1));
        assert!(!is_remembered(["one of the texts", "another of the texts!"], &requests[0], BUDGET));
        assert!(!is_remembered(["one of the textsanother", " of the texts"], &requests[0], BUDGET));
        assert!(requests.iter().chain(&without).all(|request| is_remembered(texts, request, BUDGET)));
    }

    #[test]
    fn what_was_cut_before_makes_it_another_fit() {
        let view = ["some text to cut", "some text to keep"].map(|text| Message::new(Role::User, text));
        let key_of = |cut: Option<&str>| {
            let mut draft = draft(&view, &Request::new(None, None, 0));
            if let Some(text) = cut {
                draft.set(0, 0, text.to_owned(), 1, Reason::LongMessage);
            }
            key(&draft, BUDGET)
        };
        assert_eq!(key_of(Some("some")), key_of(Some("some")));
        assert_ne!(key_of(Some("some")), key_of(Some("text")));
        assert_ne!(key_of(Some("some")), key_of(None));
    }
}
