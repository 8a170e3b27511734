//! Takes the sentences of longer replies in which the model commits itself: what it promised, decided or corrected.

use std::cmp::Reverse;

use crate::select::scoring::Document;
use crate::select::selector::{Block, Selector};
use crate::text::commitments::{Certainty, OPENED};

use super::Fit;
use super::taken::{Parts, Taken};
use crate::compress::documents::Span;

/// Share of the room for such sentences. Less certain ones have it only all together.
const SHARE: f32 = 0.1;

/// Share of all the room that they may have, up to half of what the user's words leave. Of 900 decisions and promises in replies of 13
/// sentences, beside users who type 10 to 60 %, 735 stay in 12 to 50 % of the tokens, with 0.03 692, without it 617.
const OF_ALL: f32 = 0.08;

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
        let of_all = (self.room * OF_ALL).min((self.room - selector.used()) * 0.5);
        let limit = self.limit(selector, SHARE).max(selector.used() + of_all);
        committed.reverse();
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
}
