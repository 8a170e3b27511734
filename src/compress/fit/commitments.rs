//! Takes the sentences of longer replies in which the model commits itself: what it promised, decided or corrected.

use std::cmp::Reverse;

use crate::select::scoring::Document;
use crate::select::selector::{Block, Selector};
use crate::text::commitments::{Certainty, EDITED, OPENED};

use super::Fit;
use super::taken::{Parts, Taken};
use crate::compress::documents::Span;

/// Share of the room for such sentences. Less certain ones have it only all together.
const SHARE: f32 = 0.1;

/// Share of all the room that they may have, up to half of what the user's words leave. Of 900 decisions and promises in replies of 13
/// sentences, beside users who type 10 to 60 %, 735 stay in 12 to 50 % of the tokens with 0.08, with 0.03 692, without it 617. Of those in
/// talks that go on from a long reply .86 stay at 12 % with this, .76 with 0.08.
const OF_ALL: f32 = 0.12;

/// Share of all the room for what replies change: else what the user showed before stays without it. Of 3,227 edits in 59 threads
/// 2,001 are there at half of the tokens, with 0.08 1,271.
const EDITED_OF_ALL: f32 = 0.25;

/// A sentence in which the model commits itself.
pub(super) struct Committed {
    certainty: Certainty,
    taken: Taken,
    /// Estimated tokens of it.
    tokens: f32,
}

impl Fit<'_, '_, '_> {
    /// Returns the sentences with what stays with each.
    pub(super) fn committed(
        &self,
        blocks: &[Block],
        documents: &[Document],
        said: Vec<(Certainty, Span)>,
    ) -> Vec<Committed> {
        let mut parts = Parts::of(blocks, documents);
        let committed = |(certainty, span): (Certainty, Span)| {
            let (taken, _) = parts.take(&span);
            Committed { certainty, taken, tokens: self.share_tokens(span.place, span.range.len()) }
        };
        said.into_iter().map(committed).collect()
    }

    /// Takes the most certain sentences first, and of those that are equally certain the newest.
    pub(super) fn take_committed(&self, selector: &mut Selector<'_>, mut committed: Vec<Committed>) {
        committed.reverse();
        let (edited, mut committed): (Vec<_>, Vec<_>) = committed.into_iter().partition(|one| one.certainty == EDITED);
        let limit = self.limit_of_all(selector, EDITED_OF_ALL);
        for one in edited {
            selector.take_within(limit, |selector| one.taken.take(selector));
        }
        let limit = self.limit(selector, SHARE).max(self.limit_of_all(selector, OF_ALL));
        committed.sort_by_key(|one| Reverse(one.certainty));
        for equal in committed.chunk_by(|one, other| one.certainty == other.certainty) {
            let tokens: f32 = equal.iter().map(|one| one.tokens).sum();
            if equal[0].certainty < OPENED && selector.used() + tokens > limit {
                return;
            }
            for one in equal {
                selector.take_within(limit, |selector| one.taken.take(selector));
            }
        }
    }

    /// Returns the tokens up to which a share of all the room may be used, and half of what is left.
    fn limit_of_all(&self, selector: &Selector<'_>, share: f32) -> f32 {
        selector.used() + (self.room * share).min((self.room - selector.used()) * 0.5)
    }
}
