//! Joins pieces, with a mark for each gap.

use std::ops::Range;

use crate::text::elision::{self, Gone, Marks};
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
            Self::Escape => text.matches("\\n").count() as u64,
        }
    }
}

/// A gap this short is kept: its mark would be longer.
const SHOWN_GAP_BYTES: usize = 8;

/// Joins the pieces of a flat text.
pub fn render(pieces: &[Span], text: &str, keep: &dyn Fn(usize) -> bool, marks: Marks<'_>) -> String {
    let mut kept: Vec<bool> = (0..pieces.len()).map(keep).collect();
    let mut run = Rendering::new(text, LineEnd::Feed, marks);
    absorb_marks(pieces, text, &(0..text.len()), &mut kept);
    run.push(pieces, &kept, 0..text.len());
    run.out
}

/// Drops kept marks of earlier calls beside a gap, so that one mark counts both.
///
/// All within `span`: the first piece of a JSON string has its key, too.
pub fn absorb_marks(pieces: &[Span], text: &str, span: &Range<usize>, kept: &mut [bool]) {
    let is_mark = |i: usize| read_mark(&text[within(pieces[i], span)]).is_some();
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

/// Returns the gap that a piece marks, if it is a mark; a spelled-out line end may follow.
fn read_mark(source: &str) -> Option<(Gone, Option<&str>)> {
    elision::read_gap(source.strip_suffix("\\n").unwrap_or(source))
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
    pub out: String,
}

impl<'t> Rendering<'t> {
    pub fn new(text: &'t str, line_end: LineEnd, Marks { language, archive_path }: Marks<'t>) -> Self {
        Self { text, line_end, language, archive_path, is_explained: false, out: String::new() }
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
            // If the whole text goes, its mark stays.
            if kept[first] || (range.len() <= SHOWN_GAP_BYTES && i - first < pieces.len()) {
                self.out.push_str(&self.text[range]);
            } else {
                self.push_gap(&pieces[first..i], range, &span);
            }
        }
    }

    fn push_gap(&mut self, pieces: &[Span], gap: Range<usize>, span: &Range<usize>) {
        let (gone, earlier) = self.gone(pieces, gap.clone(), span);
        let archive_path = self.archive_path.or(earlier);
        let explains = !self.is_explained || (archive_path.is_some() && self.archive_path.is_none());
        if !explains && self.numbers_tell(gone.lines, &gap, span) {
            return;
        }
        let mark = if explains {
            elision::first_gap(gone, Marks { language: self.language, archive_path })
        } else {
            elision::later_gap(gone, self.language)
        };
        self.is_explained = true;
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

    /// Returns whether the line numbers beside a gap say that these lines are missing, and no others.
    fn numbers_tell(&self, lines: u64, gap: &Range<usize>, span: &Range<usize>) -> bool {
        let line_end = self.line_end.as_str();
        let before = self.text[span.start..gap.start].strip_suffix(line_end);
        let before = before.and_then(|before| code::line_number(before.rsplit(line_end).next()?));
        let is_whole = self.text[gap.clone()].ends_with(line_end);
        let behind =
            self.text[gap.end..span.end].split(line_end).next().filter(|_| is_whole).and_then(code::line_number);
        before.zip(behind).is_some_and(|(before, behind)| before + lines + 1 == behind)
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
            if let Some((gone, named)) = read_mark(&text[range.clone()]) {
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
