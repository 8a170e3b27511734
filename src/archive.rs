//! Names the archive files of shortened tool results.
//!
//! A result is kept under the hash of its text, so that every process and every later call names the same file, and a
//! text that was kept is never kept twice. Nothing is written here: a plan lists which texts must stand there before it
//! is sent ([`Archived`]).
//!
//! Results that are left out whole are not kept. Their note could name the folder only, where a name made of a hash tells
//! nothing: every dropped result would cost a file, and none could be found again but by searching them all.

use std::collections::BTreeSet;

use xxhash_rust::xxh3::xxh3_128;

use crate::error::{Error, Result};
use crate::message::{Content, Message, Part};
use crate::text::elision;

/// Hexadecimal digits of a name: 64 of the hash's 128 bits.
///
/// Among the 65,000 smallest results that the default cap holds, two share a name with a probability of 1e-10, and all
/// 128 bits would cost 9 to 13 tokens more in every mark (`o200k_base`, DeepSeek; 50 names).
const DIGITS: usize = 16;
pub(crate) const SUFFIX: &str = ".txt";

/// Longest directory: with it a mark is still found by [`elision::read_gap`].
const MAX_DIRECTORY_BYTES: usize = 256;

/// The directory that originals are kept in, as the model is to name it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Archive {
    directory: String,
    /// The names that may be given, where not all may.
    only: Option<BTreeSet<String>>,
}

impl Archive {
    /// Iterates over all that tells this archive from another: its directory, and the names that may be given.
    pub(crate) fn names(&self) -> impl Iterator<Item = &str> {
        let restricted = self.only.is_some().then_some("only");
        let names = self.only.iter().flatten().map(String::as_str);
        [self.directory.as_str()].into_iter().chain(restricted).chain(names)
    }

    /// Returns the archive in `directory`, relative or absolute, `/` or `\` between its parts.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidArgument`] for a path that cannot stand in a mark: an empty one, one of more than 256 bytes, or one
    /// with line breaks, other control characters, quotes or what ends a mark.
    pub fn new(directory: &str) -> Result<Self> {
        let wrong = |problem: &str| Err(Error::argument("archive", format!("{problem}, got `{directory}`")));
        let shown = directory.replace('\\', "/");
        let shown = shown.trim_end_matches('/');
        if shown.is_empty() {
            return wrong("must be in a directory below the root");
        }
        if shown.len() > MAX_DIRECTORY_BYTES {
            return wrong("must have a path of at most 256 bytes");
        }
        if shown.contains(|c: char| c.is_control() || c == '"') || !elision::can_name(shown) {
            return wrong("must have a path without quotes, control characters and marks");
        }
        Ok(Self { directory: shown.to_owned(), only: None })
    }

    /// Returns the directory as marks name it.
    pub fn directory(&self) -> &str {
        &self.directory
    }

    /// Returns this archive where only `names` may be given: what could not be written must not be named.
    #[must_use]
    pub fn only(self, names: BTreeSet<String>) -> Self {
        Self { only: Some(names), ..self }
    }

    pub(crate) fn may_name(&self, name: &str) -> bool {
        self.only.as_ref().is_none_or(|names| names.contains(name))
    }

    pub(crate) fn path(&self, name: &str) -> String {
        [&self.directory, "/", name].concat()
    }

    /// Returns the name of the file that `path` is of this archive.
    ///
    /// The model may spell the path in full where the mark has it relative to the workspace: the last two parts of the
    /// directory decide.
    pub(crate) fn name_in<'p>(&self, path: &'p str) -> Option<&'p str> {
        let at = path.rfind(['/', '\\'])?;
        let (directory, name) = (path[..at].replace('\\', "/"), &path[at + 1..]);
        let same = |path: &str| path.rsplit('/').take(2).eq(self.directory.rsplit('/').take(2));
        (is_name(name) && (directory == self.directory || same(&directory))).then_some(name)
    }

    /// Returns the name that an earlier mark in a shortened `text` gives.
    pub(crate) fn named_by<'t>(&self, text: &'t str) -> Option<&'t str> {
        let names = |name: &&'t str| is_name(name);
        elision::named_in(text, &self.directory).find_map(|name| name.get(..DIGITS + SUFFIX.len()).filter(names))
    }
}

/// A text that a plan names the file of.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Archived {
    /// The message's index in the view.
    pub index: usize,
    /// The part of a list content.
    pub part: Option<usize>,
    /// The file's name in the archive's directory.
    pub name: String,
    /// Whether the file holds something else than this text, and must be there already: the result was read from it, or is
    /// what an earlier call made of it.
    pub is_earlier: bool,
}

impl Archived {
    /// Returns the text that stands in the view, which is what the file holds unless it is an earlier one.
    pub fn text<'a>(&self, view: &[Message<'a>]) -> Option<&'a str> {
        text_at(view.get(self.index)?, self.part)
    }
}

/// Returns the name that `text` is kept under: the same in every process.
pub fn name(text: &str) -> String {
    let hash = format!("{:032x}", xxh3_128(text.as_bytes()));
    [&hash[..DIGITS], SUFFIX].concat()
}

fn is_name(name: &str) -> bool {
    let is_digit = |byte: u8| matches!(byte, b'0'..=b'9' | b'a'..=b'f');
    name.len() == DIGITS + SUFFIX.len() && name.ends_with(SUFFIX) && name.bytes().take(DIGITS).all(is_digit)
}

pub(crate) fn text_at<'a>(message: &Message<'a>, part: Option<usize>) -> Option<&'a str> {
    match (&message.content, part) {
        (Content::Text(text), None) => Some(text.as_str()),
        (Content::Parts(parts), Some(part)) => match parts.get(part)? {
            Part::Text(text) => Some(text.as_str()),
            _ => None,
        },
        _ => None,
    }
}

/// Returns every name of an archive's file that the texts and arguments of `view` have in a path.
///
/// What a conversation names must not be removed on its behalf. O(n): for the rare call that writes a file.
pub fn names_in(view: &[Message<'_>]) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    for message in view {
        message.each_text(|text, media| {
            if media.is_none() {
                found.extend(names_of(text.as_str()));
            }
        });
    }
    found
}

fn names_of(text: &str) -> impl Iterator<Item = String> + '_ {
    text.match_indices(SUFFIX).filter_map(|(at, _)| {
        let start = at.checked_sub(DIGITS + 1)?;
        let name = text.get(start..at + SUFFIX.len())?.strip_prefix(['/', '\\'])?;
        is_name(name).then(|| name.to_owned())
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::text::elision::Marks;
    use crate::text::segments::Segments;
    use crate::tokens::Tokens;

    #[test]
    fn every_form_of_a_mark_is_read_again() {
        let archive = Archive::new(".nanobot-context/results").unwrap();
        let path = archive.path("0123456789abcdef.txt");
        let log = (0..200).map(|i| format!("12:00:{:02} worker {i} done\n", i % 60)).collect::<Vec<_>>().concat();
        let rows = (0..200).map(|i| format!(r#"{{"id": {i}, "state": "ok"}}"#)).collect::<Vec<_>>();
        let json = format!("[{}]", rows.join(", "));
        let named = |text: &str| archive.named_by(text).map(str::to_owned);
        for text in [&log, &json] {
            let segments = Segments::of(text);
            let short = segments.excerpt(text, &|piece| piece < 3, Marks::at(&path));
            assert_eq!(named(&short).as_deref(), Some("0123456789abcdef.txt"), "{short}");
            // Shortened again with the origin that it names, it names it once.
            let again = Segments::of(&short).excerpt(&short, &|piece| piece < 1, Marks::at(&path));
            assert_eq!(again.matches(&path).count(), 1, "{again}");
        }
        assert!(named(&elision::whole("exec result", Tokens(600), Marks::at(&path))).is_some());
        assert_eq!(named(&format!("see {path}")), None);
        assert_eq!(named(&format!("1 line left out; all of it: {}", archive.path("readme.txt"))), None);
    }

    #[test]
    fn a_path_is_of_the_archive_however_it_is_spelled() {
        let archive = Archive::new("~/.nanobot/workspace/.nanobot-context/results").unwrap();
        for path in [
            "/root/.nanobot/workspace/.nanobot-context/results/",
            r"D:\.nanobot-context\results\",
            "./.nanobot-context/results/",
        ] {
            assert_eq!(archive.name_in(&format!("{path}0123456789abcdef.txt")), Some("0123456789abcdef.txt"), "{path}");
        }
        for path in ["results/0123456789abcdef.txt", "0123456789abcdef.txt", "a/.nanobot-context/results/notes.txt"] {
            assert_eq!(archive.name_in(path), None, "{path}");
        }
    }
}
