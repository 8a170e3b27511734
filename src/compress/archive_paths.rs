//! Chooses the archive path that a mark names: the file that has the original of a shortened result.

use std::cell::RefCell;
use std::collections::BTreeMap;

use crate::archive::{Archive, Archived, SUFFIX, name, text_at};
use crate::message::{Role, Text};
use crate::select::within::{Cut, Question};
use crate::tokens::Tokens;

use super::draft::{Draft, Origin, Slot};

/// Smaller results are not archived: the path costs 19 to 39 tokens in the mark, and the tool is soon called again.
const MIN_TOKENS: Tokens = Tokens(512);

/// The archive files of a draft's texts. Each text is looked up once: that reads all of it.
pub struct ArchivePaths<'r> {
    archive: Option<&'r Archive>,
    /// By (entry, piece).
    known: RefCell<BTreeMap<(usize, usize), Option<Archived>>>,
}

impl<'r> ArchivePaths<'r> {
    /// Returns the paths of an archive; none where there is no archive.
    pub fn of(archive: Option<&'r Archive>) -> Self {
        Self { archive, known: RefCell::default() }
    }

    /// Returns the path that a mark names in place of a text: the file with all of it.
    ///
    /// `None` without an archive, for what is no text of a tool result, and below [`MIN_TOKENS`]. A result that was read
    /// from the archive has the path it was read from, and a text that an earlier call shortened the one in its mark. O(n)
    /// in the text, once for each draft.
    pub fn path(&self, draft: &Draft<'_, '_>, entry: usize, piece: usize) -> Option<String> {
        let archived = self.archived_text(draft, entry, piece)?;
        Some(self.archive?.path(&archived.name))
    }

    /// Returns the texts of a draft whose file is named in the request.
    pub fn archived(&self, draft: &Draft<'_, '_>) -> Vec<Archived> {
        if self.archive.is_none() {
            return Vec::new();
        }
        let mut found = Vec::new();
        for (index, entry) in draft.entries.iter().enumerate() {
            for (i, piece) in entry.pieces.iter().enumerate() {
                if let Some(text) = &piece.text
                    && entry.dropped.is_none()
                    && let Some(archived) = self.archived_text(draft, index, i)
                    && text.contains(&archived.name)
                {
                    found.push(archived);
                }
            }
        }
        found
    }

    /// Cuts a text to at most `max_tokens` as [`Cut`] does for the last message of the user and for the call that it
    /// answers; the first mark names its path, if it has one.
    pub fn within(
        &self,
        draft: &Draft<'_, '_>,
        entry: usize,
        piece: usize,
        max_tokens: Tokens,
    ) -> Option<(String, Tokens)> {
        let source = draft.source(entry, &draft.entries[entry].pieces[piece]);
        let archive_path = self.path(draft, entry, piece);
        let arguments = draft.call(entry).and_then(|call| call.arguments.as_ref()).map_or("", Text::as_str);
        let question = Question { asked: draft.asked(), arguments };
        let marks = draft.marks(archive_path.as_deref());
        Cut { text: source, max_tokens, counter: draft.counter, marks, question }.cached()
    }

    fn archived_text(&self, draft: &Draft<'_, '_>, entry: usize, piece: usize) -> Option<Archived> {
        let archive = self.archive?;
        let mut known = self.known.borrow_mut();
        known.entry((entry, piece)).or_insert_with(|| find(draft, archive, entry, piece)).clone()
    }
}

fn find(draft: &Draft<'_, '_>, archive: &Archive, entry: usize, piece: usize) -> Option<Archived> {
    let Origin::View(index) = draft.entries[entry].origin else { return None };
    let piece = &draft.entries[entry].pieces[piece];
    let part = match piece.slot {
        Slot::Content => None,
        Slot::Part(part) => Some(part),
        _ => return None,
    };
    if draft.entries[entry].role != Role::Tool {
        return None;
    }
    let text = text_at(&draft.view[index], part)?;
    let is_long = piece.original_tokens >= MIN_TOKENS;
    let earlier = archive.named_by(text).map(str::to_owned);
    let earlier = earlier.or_else(|| read_from(draft, entry, archive).filter(|_| is_long));
    let earlier = earlier.filter(|name| archive.may_name(name));
    let is_earlier = earlier.is_some();
    let name = earlier.or_else(|| is_long.then(|| name(text)).filter(|name| archive.may_name(name)))?;
    Some(Archived { index, part, name, is_earlier })
}

/// Returns the name of the archive file that a result was read from.
fn read_from(draft: &Draft<'_, '_>, entry: usize, archive: &Archive) -> Option<String> {
    // Rules out most calls without parsing their arguments.
    draft.call(entry)?.arguments.as_ref().filter(|arguments| arguments.as_str().contains(SUFFIX))?;
    archive.name_in(draft.path(entry)?).map(str::to_owned)
}
