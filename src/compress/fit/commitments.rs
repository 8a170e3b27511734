//! Takes the sentences of longer replies in which the model commits itself: what it promised, decided or corrected.

use std::collections::BTreeMap;

use crate::select::scoring::Document;
use crate::select::selector::{Block, Selector};
use crate::text::commitments::{Certainty, OPENED};

use super::Fit;
use super::own_words::{Parts, Taken};
use crate::compress::documents::Span;

/// Share of the room for such sentences. Less certain ones have it only all together.
const SHARE: f32 = 0.1;

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
    pub(super) fn take_committed(&self, selector: &mut Selector<'_>, committed: &[Committed]) {
        let limit = self.limit(selector, SHARE);
        let mut by_certainty = BTreeMap::<_, Vec<&Committed>>::new();
        for one in committed.iter().rev() {
            by_certainty.entry(one.certainty).or_default().push(one);
        }
        for (certainty, sentences) in by_certainty.into_iter().rev() {
            let tokens: f32 = sentences.iter().map(|one| one.tokens).sum();
            if certainty < OPENED && selector.used() + tokens > limit {
                return;
            }
            for one in sentences {
                selector.take_within(limit, |selector| one.taken.take(selector));
            }
        }
    }
}
