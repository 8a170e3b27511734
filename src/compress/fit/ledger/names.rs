//! Names that are written down of what is left out.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::sync::Arc;

use super::{Listed, MAX_TOO_LONG, MIN_NAME, Name};
use crate::compress::documents::Place;
use crate::compress::fit::Fit;
use crate::select::scoring::{Author, LostName};
use crate::select::selector::{Kept, Selector};
use crate::text::analysis::Analysis;
use crate::text::envelope;
use crate::text::ledger;
use crate::text::names::{is_measure, names};
use crate::text::segments::Kind;

/// Names that are worth less are not worth a line: those that the next step uses once in ten thousand times.
const MIN_WORTH: f32 = 0.01;
/// Bytes of prose in which names are looked for, and of a name.
const MAX_PROSE_BYTES: usize = 64 << 10;
const MAX_NAME_BYTES: usize = 80;
/// Bytes around a term in which the name that it is part of is looked for.
const AROUND: usize = 120;

impl Fit<'_, '_, '_> {
    /// Lists the names of earlier ledgers that nothing else says, in at most half of the room.
    pub fn list_earlier_names(&self, selector: &mut Selector<'_>, listed: &mut Listed) {
        let least = listed.left / 2.0;
        for (at, name) in self.earlier.names.iter().enumerate() {
            if listed.left - least < MIN_NAME {
                break;
            }
            let tokens = self.draft.counter.text(name).as_f32() + 1.0;
            if listed.left - tokens >= least && !selector.is_text_covered(name) {
                listed.left -= tokens;
                selector.cover_text(name);
                listed.names.push(Name { document: None, at, mention: None, text: name.clone(), tokens });
            }
        }
    }

    /// Leaves out the names that stand in texts that were given more.
    pub fn forget_names(&mut self, more: &[usize], selector: &Selector<'_>) {
        let texts = more.iter().map(|&block| (self.candidates[block].entry, self.candidates[block].piece));
        let texts: Vec<&str> = texts.map(|(entry, piece)| self.draft.text(entry, piece)).collect();
        self.listed.names.retain(|name| !texts.iter().any(|text| text.contains(&name.text)));
        self.write_ledger(selector);
    }

    /// Lists names as far as there is room: those that the user wrote, those that are likely to be used, and what else was
    /// written down in prose.
    pub fn list_all_names(&self, selector: &mut Selector<'_>, listed: &mut Listed) {
        self.list_written(selector, listed, &[Author::User]);
        self.list_names(selector, listed);
        self.list_written(selector, listed, &[Author::Assistant, Author::Result]);
    }

    /// Lists the names in prose of some voices that do not stay, the newest first.
    pub fn list_written(&self, selector: &mut Selector<'_>, listed: &mut Listed, of: &[Author]) {
        let mut may_read = MAX_PROSE_BYTES;
        for document in (0..self.places.len()).rev() {
            let (author, analysis) =
                (selector.document(document).author, Arc::clone(&selector.document(document).analysis));
            let Place { entry, piece, block } = self.places[document];
            let is_open = selector.is_open(self.group_of(entry));
            if !of.contains(&author)
                || !is_prose(&analysis)
                || (is_open && block.is_none_or(|block| selector.kept(block) == Kept::Whole))
            {
                continue;
            }
            let text = block.map_or_else(|| self.draft.text(entry, piece), |block| self.before(block));
            if text.len() > may_read {
                continue;
            }
            may_read -= text.len();
            let parts = &analysis.parts;
            let (mut part, mut end) = (0, parts.first().map_or(0, |part| part.bytes as usize));
            let written = written_from(author, text);
            for name in names(text).into_iter().filter(|name| name.start >= written) {
                while end <= name.start && part + 1 < parts.len() {
                    part += 1;
                    end += parts[part].bytes as usize;
                }
                let (at, name) = (name.start, &text[name]);
                let is_known = name.len() > MAX_NAME_BYTES
                    || ledger::is_heading(text, at)
                    || (is_open && block.is_some_and(|block| selector.stays(block, part)))
                    || selector.is_text_covered(name)
                    || listed.names.iter().any(|listed| listed.text.contains(name));
                if is_known {
                    continue;
                }
                let tokens = self.draft.counter.text(name).as_f32() + 1.0;
                if tokens <= listed.left {
                    listed.left -= tokens;
                    selector.cover_text(name);
                    listed.names.push(Name {
                        document: Some(document),
                        at,
                        mention: None,
                        text: name.to_owned(),
                        tokens,
                    });
                }
                if listed.left < MIN_NAME {
                    return;
                }
            }
        }
    }

    /// Lists the names that are lost, the likeliest first, as far as there is room for them.
    pub fn list_names(&self, selector: &mut Selector<'_>, listed: &mut Listed) {
        let lost = selector.lost(MIN_WORTH);
        // Few of many are asked for. A worth is positive, so its bits are in order.
        let order = lost.iter().enumerate().map(|(at, lost)| (lost.worth.to_bits(), Reverse(at)));
        let mut likeliest: BinaryHeap<(u32, Reverse<usize>)> = order.collect();
        let mut too_long = 0;
        while listed.left >= 2.0
            && too_long < MAX_TOO_LONG
            && let Some((_, Reverse(at))) = likeliest.pop()
        {
            let LostName { document, mention, term, nth, .. } = lost[at];
            let Place { entry, piece, block } = self.places[document];
            let text = block.map_or_else(|| self.draft.text(entry, piece), |block| self.before(block));
            let analysis = &selector.document(document).analysis;
            let Some(name) = analysis.name(text, nth, term) else { continue };
            let at = name.as_ptr().addr() - text.as_ptr().addr();
            if ledger::is_heading(text, at) || at < written_from(selector.document(document).author, text) {
                continue;
            }
            let name = match is_prose(analysis) {
                true => as_written(text, at).unwrap_or(name),
                false if is_measure(name) => continue,
                false => name,
            };
            let tokens = self.draft.counter.text(name).as_f32() + 1.0;
            if tokens > listed.left {
                too_long += 1;
            } else if !selector.is_covered(mention) {
                listed.left -= tokens;
                selector.cover_text(name);
                listed.names.push(Name {
                    document: Some(document),
                    at,
                    mention: Some(mention),
                    text: name.to_owned(),
                    tokens,
                });
            }
        }
    }
}

/// Returns where the words of an author begin in a text: a channel puts times and senders before those of the user.
fn written_from(author: Author, text: &str) -> usize {
    if author == Author::User { envelope::start(text) } else { 0 }
}

/// Returns whether a text is prose.
fn is_prose(analysis: &Analysis) -> bool {
    matches!(analysis.kind(), None | Some(Kind::Plain))
}

/// Returns the name around `at` as somebody wrote it.
fn as_written(text: &str, at: usize) -> Option<&str> {
    let start = text.ceil_char_boundary(at.saturating_sub(AROUND));
    let near = &text[start..text.floor_char_boundary(at + AROUND)];
    let name = names(near).into_iter().find(|name| name.contains(&(at - start)))?;
    Some(&near[name]).filter(|name| name.len() <= MAX_NAME_BYTES)
}
