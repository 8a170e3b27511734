//! Spends what the selection leaves of the budget on shortened texts.

use std::ops::Range;

use crate::message::Field;
use crate::select::selector::{Kept, Selector};
use crate::select::within::within;
use crate::text::analysis::{Analysis, TextPart};
use crate::text::elision::Marks;
use crate::text::estimate::count;
use crate::text::segments::Kind;

use super::Fit;
use crate::compress::candidates::Candidate;
use crate::compress::draft::Slot;
use crate::compress::plan::Reason;
use crate::tokens::Tokens;

/// Most texts that are tried for what is left.
const TRIES: usize = 8;

impl Fit<'_, '_, '_> {
    /// Gives what is left beside `used` to shortened texts, newest first; returns their candidates.
    pub(super) fn top_up(&mut self, selector: &Selector<'_>, mut used: Tokens) -> Vec<usize> {
        let mut more = Vec::new();
        for (block, candidate) in self.candidates.iter().enumerate().rev() {
            let left = self.budget_tokens - used;
            if left * 32 <= self.budget_tokens {
                break;
            }
            let (entry, piece) = (candidate.entry, candidate.piece);
            let now = &self.draft.entries[entry].pieces[piece];
            let is_text = match now.slot {
                Slot::Content | Slot::Part(_) | Slot::Field(Field::Refusal) => true,
                Slot::Field(field) => field.is_reasoning(),
                _ => false,
            };
            if !selector.is_open(candidate.group) || !is_text || now.tokens >= candidate.full {
                continue;
            }
            let (before, may_have) = (&self.before[block], now.tokens + left);
            let (text, tokens) = if before.tokens <= may_have {
                (before.text.clone(), before.tokens)
            } else {
                let short = self.with_more(block, may_have, left, selector);
                let Some((text, tokens)) = short.filter(|(_, tokens)| *tokens > now.tokens) else { continue };
                (Some(text), tokens)
            };
            used = used - now.tokens + tokens;
            let reason = if text == before.text { before.reason } else { Reason::Budget };
            let piece = &mut self.draft.entries[entry].pieces[piece];
            (piece.text, piece.tokens, piece.reason) = (text, tokens, reason);
            more.push(block);
        }
        more
    }

    /// Returns the text of a block within `may_have` tokens, `left` more than now: the selected parts, which may be what is asked
    /// for, and some of the longest gap, or the first of the others; its ends where none is selected.
    fn with_more(
        &self,
        block: usize,
        may_have: Tokens,
        left: Tokens,
        selector: &Selector<'_>,
    ) -> Option<(String, Tokens)> {
        let Candidate { entry, piece, .. } = self.candidates[block];
        let archive_path = self.archive_paths.path(self.draft, entry, piece);
        let marks = self.draft.marks(archive_path.as_deref());
        match (selector.kept(block), &self.before[block].analysis) {
            (Kept::Some, Some(analysis)) if analysis.kind() == Some(Kind::Json) => {
                self.with_parts(block, analysis, (may_have, left), marks, selector)
            }
            (Kept::Some, Some(analysis)) => {
                let mut more = [left, left * 3 / 4, left / 2].into_iter();
                let of_gap = more.find_map(|left| {
                    self.with_gap(block, analysis, left, marks, selector).filter(|(_, tokens)| *tokens <= may_have)
                });
                if of_gap.as_ref().is_some_and(|(_, tokens)| may_have - *tokens <= left / 2) {
                    return of_gap;
                }
                // Of many short gaps the longest holds little.
                let of_parts = self.with_parts(block, analysis, (may_have, left), marks, selector);
                of_gap.into_iter().chain(of_parts).max_by_key(|(_, tokens)| *tokens)
            }
            _ => within(self.before(block), may_have, self.draft.counter, marks),
        }
    }

    /// Returns the selected parts of a block with as many of the others, from the start, as `left` tokens have room for: JSON that is
    /// cut within a part is none.
    fn with_parts(
        &self,
        block: usize,
        analysis: &Analysis,
        (may_have, left): (Tokens, Tokens),
        marks: Marks<'_>,
        selector: &Selector<'_>,
    ) -> Option<(String, Tokens)> {
        let (source, of_all) = (self.before(block), self.before[block].tokens);
        let others = analysis.parts.iter().enumerate().filter(|&(part, _)| !selector.stays(block, part));
        let others: Vec<(usize, &TextPart)> = others.collect();
        let fitting = |from: usize, left: Tokens| {
            let mut room = count(source.len()) * left.as_f32() / of_all.as_f32().max(1.0);
            let fits = |&&(_, part): &&(usize, &TextPart)| {
                room -= count(part.bytes as usize);
                room >= 0.0
            };
            others[from..].iter().take_while(fits).count()
        };
        let (mut more, mut kept, mut best) = (fitting(0, left), 0, None);
        for _ in 0..TRIES {
            let Some(&(last, _)) = more.checked_sub(1).and_then(|last| others.get(last)) else { break };
            let text = analysis.excerpt(source, &|part| part <= last || selector.stays(block, part), marks);
            let tokens = self.draft.variant_tokens(&text);
            if tokens <= may_have {
                // Each mark that goes leaves room for more.
                (kept, best) = (more, Some((text, tokens)));
                more += fitting(more, may_have - tokens);
            } else {
                more = kept.midpoint(more);
            }
            if more == kept {
                break;
            }
        }
        best
    }

    /// Returns the selected parts of a block with `left` tokens of the longest gap.
    fn with_gap(
        &self,
        block: usize,
        analysis: &Analysis,
        left: Tokens,
        marks: Marks<'_>,
        selector: &Selector<'_>,
    ) -> Option<(String, Tokens)> {
        let source = self.before(block);
        let ranges: Vec<Range<usize>> = analysis.byte_ranges().map(|(_, range)| range).collect();
        let parts: Vec<usize> = (0..ranges.len()).collect();
        let stays = |part: usize| selector.stays(block, part);
        let gaps = parts.chunk_by(|&one, &next| stays(one) == stays(next)).filter(|run| !stays(run[0]));
        let gaps = gaps.map(|run| run[0]..run[0] + run.len());
        let bytes = |gap: &Range<usize>| ranges[gap.start].start..ranges[gap.end - 1].end;
        let longest = gaps.max_by_key(|gap| bytes(gap).len())?;
        let gap = &source[bytes(&longest)];
        let with_all = analysis.excerpt(source, &|part| stays(part) || longest.contains(&part), marks);
        let (short, _) = within(gap, left, self.draft.counter, marks)?;
        let text = with_all.replacen(gap, &short, 1);
        let tokens = self.draft.variant_tokens(&text);
        (text.len() < with_all.len()).then_some((text, tokens))
    }
}
