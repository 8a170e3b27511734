//! Splits a text into parts with their terms; cached by content.

use std::ops::Range;
use std::sync::{Arc, LazyLock};

use crate::cache::{ANALYSES, Allowance};
use crate::checkpoint;
use crate::tokens::ContentMemory;
use crate::tools::SUBJECT_KEYS;

use super::bytes::has_time;
use super::edits::changes;
use super::elision::Marks;
use super::partners::Rows;
use super::segments::{Class, Kind, Segments, Span};
use super::terms::{self, ShortTerm, Terms};

/// How a text is split.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Form {
    /// Not at all: it stays or goes as a whole.
    Whole,
    /// By its content.
    Outlined,
    /// As [`Form::Outlined`], and around sentences of the user that hold from then on.
    Stated,
    /// As [`Form::Outlined`], with parts marked that have a date or a time: for system messages.
    Dated,
    /// JSON that loses only the inside of long strings: the arguments of a call.
    Arguments,
    /// JSON that keeps only members which name something: arguments of many short strings.
    Members,
}

/// A part of a text that stays or goes.
#[derive(Debug, Clone, Copy)]
pub struct TextPart {
    pub bytes: u32,
    pub class: Class,
    /// Whether it stays if anything of the text does.
    pub is_fixed: bool,
    /// Whether it has a date or a time; `false` if that was not asked for.
    pub has_time: bool,
    terms_end: u32,
}

/// The parts and terms of a text.
#[derive(Debug)]
pub struct Analysis {
    segments: Option<Segments>,
    pub parts: Box<[TextPart]>,
    /// The terms of all parts, in order.
    pub terms: Box<[ShortTerm]>,
    /// Where names start in the text: identifiers, paths, numbers, with repetitions.
    names: Box<[u32]>,
    /// Of a list.
    rows: Option<Rows>,
}

pub static MEMORY: LazyLock<ContentMemory<Analysis>> =
    LazyLock::new(|| ContentMemory::new(Allowance::Share(&ANALYSES)));

impl Analysis {
    /// Returns the analysis of `text`; O(n) the first time.
    pub fn of(text: &str, form: Form) -> Arc<Self> {
        Self::cut_at(text, form, &[], 0)
    }

    /// As [`Self::of`], with further cuts; the part before the byte `heading` stays with any other.
    pub fn cut_at(text: &str, form: Form, cuts: &[usize], heading: usize) -> Arc<Self> {
        checkpoint::reached();
        let places = cuts.iter().chain([&heading]);
        let salt = places.fold(form as u64, |salt, &at| (salt ^ at as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15));
        MEMORY.get_or_make(text, salt, || {
            let analysis = Self::make(text, form, cuts, heading);
            let bytes = analysis.segments.as_ref().map_or(0, Segments::heap_bytes)
                + analysis.parts.len() * size_of::<TextPart>()
                + analysis.terms.len() * size_of::<ShortTerm>()
                + analysis.names.len() * size_of::<u32>()
                + analysis.rows.as_ref().map_or(0, Rows::heap_bytes);
            (analysis, bytes)
        })
    }

    fn make(text: &str, form: Form, cuts: &[usize], heading: usize) -> Self {
        let (segments, terms) = if form == Form::Whole {
            (None, Terms::by_part(text, std::iter::once(text.len()), &mut ()))
        } else {
            let mut cuts = cuts.to_vec();
            if heading > 0 {
                cuts.push(heading);
                cuts.sort_unstable();
                cuts.dedup();
            }
            let (segments, terms) = Segments::with_terms(text, &cuts);
            (Some(segments), terms)
        };
        let mut parts: Vec<TextPart> = match &segments {
            None => vec![TextPart {
                bytes: bytes(0..text.len()),
                class: Class::Plain,
                is_fixed: false,
                has_time: false,
                terms_end: 0,
            }],
            Some(segments) => {
                let part = |(start, end, class, is_fixed): (u32, u32, Class, bool)| TextPart {
                    bytes: end - start,
                    class,
                    is_fixed,
                    has_time: form == Form::Dated && has_time(&text.as_bytes()[start as usize..end as usize]),
                    terms_end: 0,
                };
                let members = if form == Form::Members { segments.members(text, &SUBJECT_KEYS) } else { Vec::new() };
                let is_structure =
                    |i| members.contains(&i) || (form == Form::Arguments && !segments.is_within_string(i));
                let is_fixed = |i, end: u32| end as usize <= heading || is_structure(i);
                let changes = if form == Form::Arguments { changes(text) } else { Vec::new() };
                let is_changed = |piece: &Span| {
                    let next = changes.partition_point(|change| change.end <= piece.start as usize);
                    changes.get(next).is_some_and(|change| change.start < piece.end as usize)
                };
                let class = |piece: &Span| if is_changed(piece) { Class::Outlier } else { piece.class };
                let pieces = segments.pieces().iter().enumerate();
                pieces.map(|(i, piece)| part((piece.start, piece.end, class(piece), is_fixed(i, piece.end)))).collect()
            }
        };
        for (part, end) in parts.iter_mut().zip(&terms.ends) {
            part.terms_end = *end;
        }
        let rows = segments.as_ref().filter(|_| form == Form::Outlined).and_then(|segments| segments.rows(text));
        Self { segments, parts: parts.into(), terms: terms.all.into(), names: terms.names.into(), rows }
    }

    /// Returns the kind of text, if it was split.
    pub fn kind(&self) -> Option<Kind> {
        self.segments.as_ref().map(Segments::kind)
    }

    /// Returns whether a program wrote it; see [`Segments::is_material`].
    pub fn is_material(&self) -> bool {
        self.segments.as_ref().is_some_and(Segments::is_material)
    }

    /// Returns whether it is one mail with its headers.
    pub fn is_mail(&self) -> bool {
        self.segments.as_ref().is_some_and(Segments::is_mail)
    }

    /// Returns the rows of a list, to be compared with those of others.
    pub fn rows(&self) -> Option<&Rows> {
        self.rows.as_ref()
    }

    /// Returns the number of names, with repetitions.
    pub fn names(&self) -> usize {
        self.names.len()
    }

    /// Returns the name of the term `term` behind `nth` others, as written in the text; `None` for a piece of an escape, as
    /// `u5317`.
    pub fn name<'t>(&self, text: &'t str, nth: usize, term: ShortTerm) -> Option<&'t str> {
        let start = *self.names.get(nth)? as usize;
        terms::text_at(text, start, term).filter(|_| !text.as_bytes()[..start].ends_with(b"\\"))
    }

    /// Returns the number of terms of a part.
    pub fn terms_in(&self, part: usize) -> usize {
        let start = part.checked_sub(1).map_or(0, |before| self.parts[before].terms_end);
        (self.parts[part].terms_end - start) as usize
    }

    /// Iterates over the parts with the range of their terms.
    pub fn ranges(&self) -> impl Iterator<Item = (TextPart, Range<usize>)> + '_ {
        let mut start = 0;
        self.parts.iter().map(move |&part| {
            let range = start..part.terms_end as usize;
            start = range.end;
            (part, range)
        })
    }

    /// Iterates over the parts with the range of their bytes.
    pub fn byte_ranges(&self) -> impl Iterator<Item = (TextPart, Range<usize>)> + '_ {
        let mut start = 0;
        self.parts.iter().map(move |&part| {
            let range = start..start + part.bytes as usize;
            start = range.end;
            (part, range)
        })
    }

    /// Iterates over the parts that have some of a range of the text.
    pub fn parts_in(&self, range: &Range<usize>) -> impl Iterator<Item = usize> {
        let has_some = |of: &Range<usize>| of.start < range.end && range.start < of.end;
        self.byte_ranges().enumerate().filter(move |(_, (_, of))| has_some(of)).map(|(part, _)| part)
    }

    /// Returns the part that says whose another one is: where that stays, it stays, too.
    pub fn parent(&self, part: usize) -> Option<usize> {
        self.segments.as_ref()?.parent(part)
    }

    /// Returns the parts of the record of JSON that a part is in.
    pub fn json_record(&self, part: usize) -> Option<Vec<usize>> {
        let record = self.segments.as_ref()?.record(u32::try_from(part).ok()?)?;
        Some((record.start as usize..record.end as usize).collect())
    }

    /// Joins the parts that `keep` picks, with a mark for each gap.
    pub fn excerpt(&self, text: &str, keep: &dyn Fn(usize) -> bool, marks: Marks<'_>) -> String {
        match &self.segments {
            Some(segments) => segments.excerpt(text, keep, marks),
            None => text.to_owned(),
        }
    }
}

/// Returns the length of a range; texts have less than 4 GiB.
fn bytes(range: Range<usize>) -> u32 {
    u32::try_from(range.len()).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_term_is_counted_to_the_part_it_starts_in() {
        let line = |i: usize| format!("line {i:02} opens src/part_{i:02}.rs and closes it again\n");
        let text: String = (0..20).map(line).collect();
        let analysis = Analysis::of(&text, Form::Outlined);
        assert_eq!(analysis.parts.len(), 20);
        let (mut start, mut terms, mut nth) = (0, 0, 0..);
        for (part, range) in analysis.ranges() {
            let end = start + part.bytes;
            assert!(range.start == terms && !range.is_empty());
            let part = &text[start as usize..end as usize];
            let mut names = analysis.terms[range.clone()].iter().filter(|term| term.kind().is_name()).zip(&mut nth);
            let name = |(term, nth): (&ShortTerm, usize)| analysis.name(&text, nth, *term);
            assert!(names.all(|named| name(named).is_some_and(|name| part.contains(name))), "{range:?}");
            (start, terms) = (end, range.end);
        }
        assert_eq!((start as usize, terms), (text.len(), analysis.terms.len()));
        // The identifier, the path and its last segment.
        assert_eq!(analysis.names(), 3 * 20);
    }

    #[test]
    fn a_text_that_is_not_taken_apart_is_one_part() {
        let text = "one line\nand another one\n".repeat(20);
        let analysis = Analysis::of(&text, Form::Whole);
        assert_eq!((analysis.parts.len(), analysis.kind()), (1, None));
        assert_eq!(analysis.excerpt(&text, &|_| true, Marks::default()), text);
    }

    #[test]
    fn of_arguments_only_the_inside_of_long_strings_may_go() {
        let line = |i: usize| format!("line {i} of a file that is written\\n");
        let lines: String = (0..30).map(line).collect();
        let text = format!(r#"{{"path": "a.py", "content": "{lines}", "mode": "w"}}"#);
        let analysis = Analysis::of(&text, Form::Arguments);
        let fixed = |kept: &dyn Fn(bool) -> bool| {
            analysis.excerpt(&text, &|i| kept(analysis.parts[i].is_fixed), Marks::default())
        };
        let short: serde_json::Value = serde_json::from_str(&fixed(&|is_fixed| is_fixed)).unwrap();
        assert_eq!((&short["path"], &short["mode"]), (&"a.py".into(), &"w".into()));
        assert!(short["content"].as_str().is_some_and(|content| content.len() < lines.len() / 4), "{short}");
        assert_eq!(fixed(&|_| true), text);
    }

    #[test]
    fn a_string_that_begins_with_a_mark_keeps_its_member() {
        let text = format!(
            r#"{{"name": "apply_patch", "input": "[... 14,700 characters left out ...] {}"}}"#,
            "word ".repeat(200)
        );
        let analysis = Analysis::of(&text, Form::Arguments);
        let short = analysis.excerpt(&text, &|part| analysis.parts[part].is_fixed, Marks::default());
        let short: serde_json::Value = serde_json::from_str(&short).unwrap();
        assert!(
            short["input"].as_str().is_some_and(|input| input.starts_with("[... ") && input.contains("15,7")),
            "{short}"
        );
    }

    #[test]
    fn of_many_short_strings_the_members_that_name_something_stay() {
        let edit = |i: usize| format!(r#"{{"old": "value_{i} = {i}", "new": "value_{i} = 0"}}"#);
        let edits: Vec<String> = (0..60).map(edit).collect();
        let text = format!(r#"{{"dry_run": false, "edits": [{}], "path": "src/a.py"}}"#, edits.join(", "));
        let analysis = Analysis::of(&text, Form::Members);
        let kept = |keep: &dyn Fn(usize) -> bool| {
            let short = analysis.excerpt(&text, &|part| analysis.parts[part].is_fixed || keep(part), Marks::default());
            serde_json::from_str::<serde_json::Value>(&short).unwrap()
        };
        assert_eq!(kept(&|_| false), serde_json::json!({"…": "2 of 3 keys left out", "path": "src/a.py"}));
        let some = kept(&|part| part < 9);
        assert!(some["edits"].as_array().is_some_and(|edits| (3..60).contains(&edits.len())), "{some}");
    }
}
