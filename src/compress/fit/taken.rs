//! Takes the parts of a text that have a sentence.

use std::ops::Range;

use crate::compress::documents::Span;
use crate::select::scoring::Document;
use crate::select::selector::{Block, Selector};

/// What stays with a sentence.
pub(super) enum Taken {
    /// Parts of a block.
    Parts(usize, Range<usize>),
    /// The whole message.
    Group(usize),
}

impl Taken {
    pub(super) fn take(&self, selector: &mut Selector<'_>) {
        match self {
            Self::Parts(block, parts) => parts.clone().for_each(|part| selector.take_part(*block, part)),
            Self::Group(group) => selector.take_whole(*group),
        }
    }
}

/// Finds the parts of texts that have some sentences; these are in order and disjoint, so a search goes on where the last ended.
pub(super) struct Parts<'d> {
    blocks: &'d [Block],
    documents: &'d [Document],
    block: Option<usize>,
    part: usize,
    /// The byte at which it starts.
    start: usize,
}

impl<'d> Parts<'d> {
    pub(super) fn of(blocks: &'d [Block], documents: &'d [Document]) -> Self {
        Self { blocks, documents, block: None, part: 0, start: 0 }
    }

    /// Returns what stays with a sentence, and its bytes; `None` for all of the text.
    pub(super) fn take(&mut self, span: &Span) -> (Taken, Option<usize>) {
        let document = span.place.block.and_then(|block| Some((block, self.blocks[block].document?)));
        let Some((block, document)) = document else { return (Taken::Group(span.group), None) };
        let parts = &self.documents[document].analysis.parts;
        if self.block != Some(block) {
            (self.block, self.part, self.start) = (Some(block), 0, 0);
        }
        while self.part < parts.len() && self.start + parts[self.part].bytes as usize <= span.range.start {
            self.start += parts[self.part].bytes as usize;
            self.part += 1;
        }
        let (mut last, mut end) = (self.part, self.start);
        while last < parts.len() && end < span.range.end {
            end += parts[last].bytes as usize;
            last += 1;
        }
        (Taken::Parts(block, self.part..last), Some(end - self.start))
    }
}
