//! Passes before the fit, one for each limit.

use std::collections::HashSet;
use std::ops::Range;

use crate::conversation::last_user_index;
use crate::message::Role;
use crate::select::within::{Question, json_within_chars};
use crate::text::analysis::{Analysis, Form};
use crate::text::names::names;
use crate::text::rules::{self, Claim};
use crate::text::{elision, excerpt};
use crate::tokens::Tokens;

use super::archive_paths::ArchivePaths;
use super::candidates::{placeholder, thoughts};
use super::draft::{Draft, Entry, Piece, Slot};
use super::plan::Reason;
use super::results::highest;

/// Removes reasoning of more than `keep_chars` characters before message `last_user`; leaves a mark if the provider requires
/// it.
pub fn reasoning(draft: &mut Draft<'_, '_>, last_user: usize, keep_chars: usize) {
    remove(draft, |draft, entry, piece| {
        let is_old = draft.entries[entry].index().is_some_and(|index| index < last_user);
        let Slot::Field(field) = draft.entries[entry].pieces[piece].slot else { return false };
        is_old && field.is_reasoning() && longer_than(draft.text(entry, piece), keep_chars)
    });
}

/// As [`reasoning`], for all messages. Signed reasoning of the last round stays: providers require it with its calls.
pub fn all_reasoning(draft: &mut Draft<'_, '_>) {
    let last_user = last_user_index(draft.view).unwrap_or(0);
    remove(draft, |draft, entry, piece| match draft.entries[entry].pieces[piece].slot {
        Slot::Field(field) if field.is_signature() => {
            draft.entries[entry].index().is_some_and(|index| index < last_user)
        }
        Slot::Field(field) => field.is_reasoning(),
        _ => false,
    });
}

fn remove(draft: &mut Draft<'_, '_>, goes: impl Fn(&Draft<'_, '_>, usize, usize) -> bool) {
    for entry in 0..draft.entries.len() {
        if draft.entries[entry].role != Role::Assistant {
            continue;
        }
        for piece in 0..draft.entries[entry].pieces.len() {
            if goes(draft, entry, piece) && !elision::is_whole(draft.text(entry, piece)) {
                let (text, tokens) = thoughts(draft, entry, piece);
                if tokens < draft.entries[entry].pieces[piece].tokens {
                    draft.set(entry, piece, text, tokens, Reason::Reasoning);
                }
            }
        }
    }
}

/// Shortens each tool result from an entry on to `max_tokens`; of several parts the largest are shortened.
pub fn large_results(draft: &mut Draft<'_, '_>, archive_paths: &ArchivePaths<'_>, max_tokens: Tokens, from: usize) {
    let mut all = texts(draft, |role| role == Role::Tool);
    all.retain(|(entry, _)| *entry >= from);
    for of_result in all.chunk_by(|a, b| a.0 == b.0) {
        let tokens = |&(entry, piece): &(usize, usize)| draft.entries[entry].pieces[piece].tokens;
        let sizes: Vec<Tokens> = of_result.iter().map(tokens).collect();
        if sizes.iter().sum::<Tokens>() <= max_tokens {
            continue;
        }
        let level = highest(max_tokens, |level| sizes.iter().map(|size| level.min(*size)).sum());
        for (&(entry, piece), size) in of_result.iter().zip(sizes) {
            if size > level {
                // In a tiny window a cut may not fit the limit. Then none of it stays: a later pass could cut what is left
                // again in the next call.
                let short = archive_paths.within(draft, entry, piece, level);
                let (short, tokens) = short.unwrap_or_else(|| placeholder(draft, archive_paths, (entry, piece), None));
                if tokens < size {
                    draft.set(entry, piece, short, tokens, Reason::LargeResult);
                }
            }
        }
    }
}

/// Cuts messages before `last_user` of more than (user, assistant) characters to their first 60 % and last 20 %, JSON by its
/// content. Rules of the user in between stay, then what the request asks for by name, errors and odd lines, as far as the rest
/// has room. 0 is no limit; a limit below what a mark needs is raised to it.
///
/// Source: document 001, stage seven; document 004, step 4.
pub fn long_messages(draft: &mut Draft<'_, '_>, last_user: usize, (user, assistant): (usize, usize)) {
    for (role, max_chars) in [(Role::User, user), (Role::Assistant, assistant)] {
        if max_chars == 0 {
            continue;
        }
        let max_chars = max_chars.max(MIN_MESSAGE_CHARS);
        for (entry, piece) in texts(draft, |entry_role| entry_role == role) {
            let is_old = draft.entries[entry].index().is_some_and(|index| index < last_user);
            let text = draft.text(entry, piece);
            if is_old && longer_than(text, max_chars) {
                let source = draft.source(entry, &draft.entries[entry].pieces[piece]);
                let short = long_message(source, max_chars, role, draft);
                let tokens = draft.counter.text(&short);
                draft.set(entry, piece, short, tokens, Reason::LongMessage);
            }
        }
    }
}

/// Returns `text` cut to `max_chars` characters; JSON comes out as JSON.
fn long_message(text: &str, max_chars: usize, role: Role, draft: &Draft<'_, '_>) -> String {
    let tenth = max_chars / 10;
    let question = Question { asked: draft.asked(), arguments: "" };
    json_within_chars(text, tenth * 8, draft.counter, draft.marks(None), question).unwrap_or_else(|| {
        excerpt::head_and_tail_chars(text, tenth * 6, tenth * 2, draft.language(), |between| {
            between_ends(text, role, between, tenth * 2, draft)
        })
    })
}

/// Returns what should stay `between` the two ends of `text`, each once, in order, as far as it and the marks around it have at
/// most `max_chars`: the user's rules, then what is asked for by name, then facts, then errors and odd lines; of each the newest.
fn between_ends(
    text: &str,
    role: Role,
    between: Range<usize>,
    max_chars: usize,
    draft: &Draft<'_, '_>,
) -> Vec<Range<usize>> {
    let mark = elision::gap(&text[between.clone()], draft.language());
    let mark_chars = mark.chars().count() + excerpt::FENCE.len();
    let said = (role == Role::User).then(|| rules::said(text));
    let claims: &[(Claim, Range<usize>)] = said.as_ref().map_or(&[], |said| &said.claims);
    let claimed =
        |wanted: Claim| claims.iter().filter(move |(claim, _)| *claim == wanted).map(|(_, at)| at.clone()).rev();
    let Wanted { named, around, odd } = Wanted::of(text, draft.asked());
    let asked_for = named.into_iter().rev();
    let others = claimed(Claim::Fact).chain(odd.into_iter().rev()).chain(around.into_iter().rev());
    let wanted = claimed(Claim::Rule).chain(asked_for).chain(others);
    let (mut seen, mut kept) = (HashSet::new(), Vec::<Range<usize>>::new());
    let mut room = max_chars.saturating_sub(mark_chars);
    for part in wanted {
        if room <= mark_chars {
            break;
        }
        let (start, end) = (part.start.max(between.start), part.end.min(between.end));
        if start >= end || kept.iter().any(|other| other.start < end && start < other.end) {
            continue;
        }
        let Some(rest) = room.checked_sub(text[start..end].chars().count() + mark_chars) else { continue };
        if seen.insert(rules::normal(&text[part])) {
            room = rest;
            kept.push(start..end);
        }
    }
    kept.sort_by_key(|part| part.start);
    kept
}

/// The parts of a text that its ends should not be without.
struct Wanted {
    /// Those with a name of what is asked, in order.
    named: Vec<Range<usize>>,
    /// What stands around these, the nearest last.
    around: Vec<Range<usize>>,
    /// Those that report an error or differ from the others, in order.
    odd: Vec<Range<usize>>,
}

impl Wanted {
    fn of(text: &str, asked: &str) -> Self {
        let analysis = Analysis::of(text, Form::Outlined);
        let parts: Vec<_> = analysis.byte_ranges().collect();
        let mut has_name = Vec::new();
        let asked_for = if asked.len() <= MAX_ASKED_BYTES { names(asked) } else { Vec::new() };
        for name in asked_for.into_iter().take(MAX_NAMES) {
            let has = |&part: &usize| text[parts[part].1.clone()].contains(&asked[name.clone()]);
            let having: Vec<usize> = (0..parts.len()).filter(has).take(MOST_NAMED + 1).collect();
            if having.len() <= MOST_NAMED {
                has_name.extend(having);
            }
        }
        has_name.sort_unstable();
        let near = |by: usize| has_name.iter().flat_map(move |&part| [part + by, part.wrapping_sub(by)]);
        let around =
            (1..=AROUND_NAMED).rev().flat_map(near).filter_map(|part| Some(parts.get(part)?.1.clone())).collect();
        let named = has_name.iter().map(|&part| parts[part].1.clone()).collect();
        let odd = parts.into_iter().filter(|(part, _)| part.class.stands_out()).map(|(_, range)| range).collect();
        Self { named, around, odd }
    }
}

/// A longer request is material; and most names that are looked for.
const MAX_ASKED_BYTES: usize = 2_000;
const MAX_NAMES: usize = 16;

/// A name in more parts is what the text is about.
const MOST_NAMED: usize = 16;

/// Parts on each side of one with a name that may belong to it, as in a record of several lines.
const AROUND_NAMED: usize = 8;

/// Shorter messages would not get shorter, with a mark.
const MIN_MESSAGE_CHARS: usize = 400;

/// Returns the texts of messages of a role as (entry, piece), except pinned ones.
fn texts(draft: &Draft<'_, '_>, role: impl Fn(Role) -> bool) -> Vec<(usize, usize)> {
    let may_go = |entry: &Entry| entry.dropped.is_none() && !entry.is_pinned && role(entry.role);
    let entries = draft.entries.iter().enumerate().filter(|(_, entry)| may_go(entry));
    entries
        .flat_map(|(index, entry)| {
            let says = |(_, piece): &(usize, &Piece)| piece.slot.is_content();
            entry.pieces.iter().enumerate().filter(says).map(move |(i, _)| (index, i))
        })
        // The mark of an attachment replaced no text, so it does not count as one.
        .filter(|&(entry, piece)| !elision::is_whole(draft.text(entry, piece)))
        .collect()
}

/// Returns whether `text` has more than `chars` characters; decides by its bytes if it can.
pub fn longer_than(text: &str, chars: usize) -> bool {
    text.len() > chars && text.chars().nth(chars).is_some()
}
