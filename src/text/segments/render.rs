//! Joins pieces, with a mark for each gap.

use std::cell::OnceCell;
use std::ops::Range;

use crate::text::elision::{self, Gone, Marks};
use crate::text::json_string::escapes;
use crate::text::language::Language;

use super::{Class, Span, code};

/// How lines end: a line feed, or `\n` spelled out in the body of a JSON string.
#[derive(Copy, Clone, PartialEq, Eq)]
pub enum LineEnd {
    Feed,
    Escape,
}

impl LineEnd {
    fn as_str(self) -> &'static str {
        if self == Self::Feed { "\n" } else { "\\n" }
    }

    fn count(self, text: &str) -> u64 {
        match self {
            Self::Feed => text.bytes().filter(|&byte| byte == b'\n').count() as u64,
            Self::Escape => escapes(text).filter(|escape| &text[escape.clone()] == "\\n").count() as u64,
        }
    }
}

/// A gap this short is kept: its mark would be longer, and that of the first, which explains itself.
const SHOWN_GAP_BYTES: usize = 8;
const SHOWN_FIRST_GAP_BYTES: usize = 32;

/// Bytes of a line in which its number is searched.
const MAX_LINE_BYTES: usize = 2000;

/// Joins the `kept` pieces of a flat text.
pub fn render(pieces: &[Span], text: &str, mut kept: Vec<bool>, marks: Marks<'_>) -> String {
    let mut run = Rendering::new(text, LineEnd::Feed, marks);
    absorb_marks(pieces, text, &(0..text.len()), &mut kept);
    run.push(pieces, &kept, 0..text.len());
    run.out
}

/// Drops kept marks of earlier calls beside a gap, so that one mark counts both.
///
/// All within `span`: the first piece of a JSON string has its key, too.
pub fn absorb_marks(pieces: &[Span], text: &str, span: &Range<usize>, kept: &mut [bool]) {
    let is_mark = |i: usize| elision::read_gap(&text[within(pieces[i], span)]).is_some();
    for i in 1..pieces.len() {
        kept[i] = kept[i] && (kept[i - 1] || !is_mark(i));
    }
    for i in (1..pieces.len()).rev() {
        kept[i - 1] = kept[i - 1] && (kept[i] || !is_mark(i - 1));
    }
}

fn within(piece: Span, span: &Range<usize>) -> Range<usize> {
    piece.range().start.max(span.start)..piece.range().end.min(span.end)
}

/// A text being written.
pub struct Rendering<'t> {
    text: &'t str,
    line_end: LineEnd,
    language: Language,
    /// The file with the whole text; named once.
    archive_path: Option<&'t str>,
    /// Whether the mark that explains itself was written.
    is_explained: bool,
    /// Whether any mark was written by this rendering.
    has_mark: bool,
    was_cut: OnceCell<bool>,
    pub out: String,
}

impl<'t> Rendering<'t> {
    pub fn new(text: &'t str, line_end: LineEnd, Marks { language, archive_path }: Marks<'t>) -> Self {
        Self {
            text,
            line_end,
            language,
            archive_path,
            is_explained: false,
            has_mark: false,
            was_cut: OnceCell::new(),
            out: String::new(),
        }
    }

    /// Continues the output of another, with its marks counted.
    pub fn after(mut self, out: String, is_explained: bool) -> Self {
        self.out = out;
        self.is_explained = is_explained;
        self
    }

    pub fn is_explained(&self) -> bool {
        self.is_explained
    }

    /// Adds the kept ones of `pieces`, and marks for the others; all within `span`.
    pub fn push(&mut self, pieces: &[Span], kept: &[bool], span: Range<usize>) {
        let mut i = 0;
        while i < pieces.len() {
            let first = i;
            while i < pieces.len() && kept[i] == kept[first] {
                i += 1;
            }
            let range = within(pieces[first], &span).start..within(pieces[i - 1], &span).end;
            let shown = if self.is_explained { SHOWN_GAP_BYTES } else { SHOWN_FIRST_GAP_BYTES };
            // If the whole text goes, its mark stays.
            if kept[first] || (range.len() <= shown && i - first < pieces.len()) {
                self.out.push_str(&self.text[range]);
            } else {
                self.push_gap(&pieces[first..i], range, &span);
            }
        }
    }

    fn push_gap(&mut self, pieces: &[Span], gap: Range<usize>, span: &Range<usize>) {
        let (mut gone, earlier) = self.gone(pieces, gap.clone(), span);
        let archive_path = self.archive_path.or(earlier);
        let explains = !self.is_explained || (archive_path.is_some() && self.archive_path.is_none());
        if let Some(beside) = self.numbers_beside(&gap, span) {
            let inside = &self.text[gap.clone()];
            if gone.lines > 0 && !code::may_be_hit(inside) && self.was_cut() {
                // Lines that an earlier cut left out without a mark.
                let missing = self.missing_numbers(inside, beside).filter(|&missing| missing > gone.lines);
                gone = missing.map_or(gone, |lines| Gone { lines, chars: 0, ..gone });
            }
            let between = |(before, behind): (u64, u64)| behind.checked_sub(before + 1);
            if self.has_mark && !explains && beside.0.zip(beside.1).and_then(between) == Some(gone.lines) {
                return;
            }
        }
        let mark = if explains {
            elision::first_gap(gone, Marks { language: self.language, archive_path })
        } else {
            elision::later_gap(gone, self.language)
        };
        (self.is_explained, self.has_mark) = (true, true);
        let before = &self.text[span.start..gap.start];
        let line_end = self.line_end.as_str();
        if !before.is_empty() && !before.ends_with(line_end) && !before.ends_with(' ') {
            self.out.push(' ');
        }
        self.out.push_str(&mark);
        if self.text[gap.clone()].ends_with(line_end) {
            self.out.push_str(line_end);
        } else if gap.end < span.end && !self.text[gap.end..].starts_with(' ') {
            self.out.push(' ');
        }
    }

    /// Returns the numbers of the lines before and behind a gap; `None` if that ends within a line.
    fn numbers_beside(&self, gap: &Range<usize>, span: &Range<usize>) -> Option<(Option<u64>, Option<u64>)> {
        let line_end = self.line_end.as_str();
        let (before, behind) = (&self.text[span.start..gap.start], &self.text[gap.end..span.end]);
        if !self.text[gap.clone()].ends_with(line_end) && !behind.is_empty() {
            return None;
        }
        let before = before.strip_suffix(line_end).unwrap_or(before);
        let near = before.floor_char_boundary(before.len().saturating_sub(MAX_LINE_BYTES));
        let line = before[near..].rsplit_once(line_end).map_or(before, |(_, line)| line);
        let before = Some(line).filter(|line| line.len() <= MAX_LINE_BYTES).and_then(line_number);
        let behind = behind[..behind.floor_char_boundary(MAX_LINE_BYTES)].split(line_end).next();
        Some((before, behind.and_then(line_number)))
    }

    /// Returns how many lines a gap has by the numbers beside it, or in it where none is.
    fn missing_numbers(&self, gap: &str, (before, behind): (Option<u64>, Option<u64>)) -> Option<u64> {
        let line_end = self.line_end.as_str();
        let inside = gap.strip_suffix(line_end).unwrap_or(gap);
        let from = match before {
            Some(before) => before + 1,
            None => numbered(inside.split(line_end)).and_then(|(number, lines)| number.checked_sub(lines))?,
        };
        let to = match behind {
            Some(behind) => behind,
            None => numbered(inside.rsplit(line_end)).map(|(number, lines)| number + lines + 1)?,
        };
        to.checked_sub(from)
    }

    /// Returns whether the text has a mark of an earlier call.
    fn was_cut(&self) -> bool {
        *self.was_cut.get_or_init(|| elision::may_have_note(self.text))
    }

    /// Returns the size of a gap with earlier marks in it, and the archive path that they name.
    fn gone(&self, pieces: &[Span], gap: Range<usize>, span: &Range<usize>) -> (Gone, Option<&'t str>) {
        let text: &'t str = self.text;
        let (mut feeds, mut chars, mut earlier, mut archive_path) = (0, 0, None::<Gone>, None);
        let mut count = |part: &str| {
            feeds += self.line_end.count(part);
            chars += part.chars().count() as u64;
        };
        let mut from = gap.start;
        for piece in pieces {
            let range = within(*piece, span);
            if let Some((gone, named)) = elision::read_gap(&text[range.clone()]) {
                count(&text[from..range.start]);
                earlier = Some(earlier.map_or(gone, |earlier| earlier.and(gone)));
                archive_path = archive_path.or(named);
                from = range.end;
            }
        }
        count(&text[from..gap.end]);
        let line_end = self.line_end.as_str();
        let (before, inside) = (&text[span.start..gap.start], &text[gap.clone()]);
        let is_open = !inside.ends_with(line_end);
        let is_whole = (before.is_empty() || before.ends_with(line_end)) && (!is_open || gap.end == span.end);
        let lines = match feeds {
            feeds if is_whole => feeds + u64::from(is_open && from < gap.end),
            0 | 1 => 0,
            feeds => feeds,
        };
        let similar = pieces.iter().all(|piece| matches!(piece.class, Class::Repeat | Class::Noise))
            && pieces.iter().any(|piece| piece.class == Class::Repeat);
        let gone = Gone { lines, chars, similar };
        let gone = match earlier {
            None => gone,
            Some(earlier) if chars == 0 => earlier,
            Some(earlier) => gone.and(earlier),
        };
        (gone, archive_path)
    }
}

/// Returns the number before a line; that of a table's row with `|` between its columns is data.
fn line_number(line: &str) -> Option<u64> {
    if line.matches('|').count() > 1 { None } else { code::line_number(line) }
}

/// Returns the number of the first numbered line, and how many lines come before it, those of marks among them.
fn numbered<'t>(lines: impl Iterator<Item = &'t str>) -> Option<(u64, u64)> {
    let mut before = 0;
    for line in lines {
        if let Some(number) = line_number(line) {
            return Some((number, before));
        }
        before += elision::read_gap(line).map_or(1, |(gone, _)| gone.lines);
    }
    None
}
