//! Lists names of what is left out.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::ops::Range;
use std::sync::Arc;

use super::{Listed, MAX_TOO_LONG, MIN_NAME, Name};
use crate::compress::documents::Place;
use crate::compress::fit::Fit;
use crate::select::scoring::{Author, LostName};
use crate::select::selector::{Kept, Selector};
use crate::text::analysis::Analysis;
use crate::text::envelope;
use crate::text::ledger;
use crate::text::names::{code, is_bare_number, is_clock, is_measure, names, whole, without_escape};
use crate::text::segments::Kind;
use crate::text::snapshot;

/// Names worth less have no line: the next step uses them once in ten thousand times.
const MIN_WORTH: f32 = 0.01;
/// Bytes of prose that are searched for names, and most bytes of a name.
const MAX_PROSE_BYTES: usize = 64 << 10;
const MAX_NAME_BYTES: usize = 80;
/// Bare numbers in prose from which on no name is searched around the next: each search reads what stands around it.
const MAX_WAITING: usize = 1_024;
/// Most times that are listed: where a talk is full of them, none says what it is the time of. Of 60 fits of talk with one in each
/// message 2,263 of 2,352 names were times, 217 tokens a fit.
const MAX_CLOCKS: usize = 3;
/// Bytes around a term that are searched for the name around it.
const AROUND: usize = 120;

impl Fit<'_, '_, '_> {
    /// Lists names of earlier ledgers that nothing else has, in at most half of the room.
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

    /// Removes names that stand in texts which got more room.
    pub fn forget_names(&mut self, more: &[usize], selector: &Selector<'_>) {
        let texts = more.iter().map(|&block| (self.candidates[block].entry, self.candidates[block].piece));
        let texts: Vec<&str> = texts.map(|(entry, piece)| self.draft.text(entry, piece)).collect();
        self.listed.names.retain(|name| !texts.iter().any(|text| text.contains(&name.text)));
        self.write_ledger(selector);
    }

    /// Lists names as far as there is room: the user's, then likely ones, then others in prose, then bare numbers of tables and
    /// the like, which say nothing without their row.
    pub fn list_all_names(&self, selector: &mut Selector<'_>, listed: &mut Listed) {
        self.list_written(selector, listed, &[Author::User]);
        let numbers = self.list_names(selector, listed);
        self.list_written(selector, listed, &[Author::Assistant, Author::Result]);
        self.list_lost(selector, listed, numbers.into_iter(), |_| false);
    }

    /// Lists the lost names in prose of these authors, newest first.
    pub fn list_written(&self, selector: &mut Selector<'_>, listed: &mut Listed, of: &[Author]) {
        let (mut may_read, mut clocks) = (MAX_PROSE_BYTES, clocks(listed));
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
                    || snapshot::is_number(text, at)
                    || (is_open && block.is_some_and(|block| selector.stays(block, part)))
                    || selector.is_text_covered(name)
                    || listed.names.iter().any(|listed| listed.text.contains(name))
                    || is_clock(name) && clocks >= MAX_CLOCKS;
                if is_known {
                    continue;
                }
                let tokens = self.draft.counter.text(name).as_f32() + 1.0;
                if tokens <= listed.left {
                    listed.left -= tokens;
                    clocks += usize::from(is_clock(name));
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

    /// Lists lost names, most likely first, as far as there is room; returns the bare numbers that it met.
    fn list_names(&self, selector: &mut Selector<'_>, listed: &mut Listed) -> Vec<LostName> {
        let lost = selector.lost(MIN_WORTH);
        // Sorts few of many. A worth is positive, so its bits are in order.
        let order = lost.iter().enumerate().map(|(at, lost)| (lost.worth.to_bits(), Reverse(at)));
        let mut likeliest: BinaryHeap<(u32, Reverse<usize>)> = order.collect();
        let in_order = std::iter::from_fn(|| likeliest.pop().map(|(_, Reverse(at))| lost[at]));
        self.list_lost(selector, listed, in_order, is_bare_number)
    }

    /// Lists lost names in their order as far as there is room; returns those that wait.
    fn list_lost(
        &self,
        selector: &mut Selector<'_>,
        listed: &mut Listed,
        mut lost: impl Iterator<Item = LostName>,
        waits: impl Fn(&str) -> bool,
    ) -> Vec<LostName> {
        let (mut waiting, mut too_long, mut clocks) = (Vec::new(), 0, clocks(listed));
        while listed.left >= 2.0
            && too_long < MAX_TOO_LONG
            && let Some(name) = lost.next()
        {
            let LostName { document, mention, term, nth, .. } = name;
            let Place { entry, piece, block } = self.places[document];
            let text = block.map_or_else(|| self.draft.text(entry, piece), |block| self.before(block));
            let analysis = &selector.document(document).analysis;
            let Some(written) = analysis.name(text, nth, term) else { continue };
            // A table has any number of them, and around one in prose is mostly a name.
            if waits(written) && (!is_prose(analysis) || waiting.len() >= MAX_WAITING) {
                waiting.push(name);
                continue;
            }
            let at = written.as_ptr().addr() - text.as_ptr().addr();
            if ledger::is_heading(text, at)
                || snapshot::is_number(text, at)
                || at < written_from(selector.document(document).author, text)
            {
                continue;
            }
            let Some(stands) = without_escape(written) else { continue };
            let stands = whole(text, at..at + stands.len());
            let of_code = || &text[code(text, stands.clone())];
            let written = match analysis.kind() {
                _ if is_prose(analysis) => as_written(text, at).unwrap_or(&text[stands.clone()]),
                Some(Kind::Json | Kind::Table) => cell(text, stands.clone()).unwrap_or_else(of_code),
                _ => of_code(),
            };
            let at = written.as_ptr().addr() - text.as_ptr().addr();
            let is_of_lines = !is_prose(analysis);
            if is_of_lines && is_measure(&written.replace(' ', ""))
                || is_clock(written) && (is_of_lines || clocks >= MAX_CLOCKS)
            {
                continue;
            }
            if waits(written) {
                waiting.push(name);
                continue;
            }
            let tokens = self.draft.counter.text(written).as_f32() + 1.0;
            if tokens > listed.left {
                too_long += 1;
            } else if !selector.is_covered(mention) {
                listed.give_up_within(document, at..at + written.len());
                listed.left -= tokens;
                clocks += usize::from(is_clock(written));
                selector.cover_text(written);
                listed.names.push(Name {
                    document: Some(document),
                    at,
                    mention: Some(mention),
                    text: written.to_owned(),
                    tokens,
                });
            }
        }
        waiting
    }
}

/// Returns how many times are listed.
fn clocks(listed: &Listed) -> usize {
    listed.names.iter().filter(|name| is_clock(&name.text)).count()
}

/// Returns where an author's words start: a channel puts time and sender before those of the user.
fn written_from(author: Author, text: &str) -> usize {
    if author == Author::User { envelope::start(text) } else { 0 }
}

/// Returns whether a text is prose.
fn is_prose(analysis: &Analysis) -> bool {
    matches!(analysis.kind(), None | Some(Kind::Plain))
}

/// Most bytes and words of a cell that is a name.
const MAX_CELL_BYTES: usize = 40;
const MAX_CELL_WORDS: usize = 5;

/// Returns the cell of a row, or the string in JSON, that a name is in, if it is short: `FR14 2004 1010 0505`, `LM 317 T`.
fn cell(text: &str, name: Range<usize>) -> Option<&str> {
    let ends = |c: char| matches!(c, '"' | '|' | '\t' | '\n' | '\\' | ',' | ';');
    let before = &text[text.ceil_char_boundary(name.start.saturating_sub(MAX_CELL_BYTES))..name.start];
    let behind = &text[name.end..text.floor_char_boundary(name.end + MAX_CELL_BYTES)];
    let start = name.start - before.len() + before.rfind(ends)? + 1;
    let cell = text[start..name.end + behind.find(ends)?].trim();
    let is_name = cell.len() <= MAX_CELL_BYTES
        && cell.split(' ').count() <= MAX_CELL_WORDS
        && !cell.contains("  ")
        && !cell.contains([':', '=', '{', '[', '<']);
    Some(cell).filter(|_| is_name)
}

/// Returns the name around `at` as it was written.
fn as_written(text: &str, at: usize) -> Option<&str> {
    let start = text.ceil_char_boundary(at.saturating_sub(AROUND));
    let near = &text[start..text.floor_char_boundary(at + AROUND)];
    let name = names(near).into_iter().find(|name| name.contains(&(at - start)))?;
    Some(&near[name]).filter(|name| name.len() <= MAX_NAME_BYTES)
}
