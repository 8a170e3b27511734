//! Classes logs, output of commands, search hits and text without structure.

use std::collections::HashMap;

use memchr::memchr;
use xxhash_rust::xxh3::xxh3_64;

use crate::tokens::BuildMixedHasher;

use super::Class;
use super::severity::{Level, Scan};
use super::units::Unit;

/// Rules for classing lines.
#[derive(Debug)]
pub struct Rules {
    /// The least level at which an error counts: people write "cannot" and "failed" without reporting one.
    pub least: Level,
    /// Whether quoted strings vary within a template.
    pub mask_quotes: bool,
    /// Whether lines start with the path of a hit.
    pub is_search: bool,
    /// Whether it has headings, as Markdown does.
    pub has_headings: bool,
    /// Number of pieces that are edges at the start and at the end.
    pub edges: (usize, usize),
}

/// Lines of one template that count as errors; the rest repeat them.
const SAME_ERRORS: u32 = 8;
/// Least words of a line outside of logs that is compared without numbers.
const TEMPLATE_WORDS: u32 = 6;
/// Longest line outside of logs in which a weak word is a report: about what a terminal shows on two rows.
const LINE_BYTES: usize = 160;
/// Initial capacity in lines; longer texts mostly repeat themselves.
const SEEN: usize = 256;
/// Lines before and behind an error that belong to it.
const AROUND: (usize, usize) = (2, 3);
/// Most lines of a traceback behind an error; a recursion that overflows prints a thousand.
const FRAMES: usize = 40;
/// Lines of a frame of Python's: where, what, and what of that.
const FRAME_LINES: usize = 3;
/// If more than one line in this many is an error, their neighbours count for nothing.
const DENSE: usize = 3;

/// Classes the units of a text by their words. O(n).
pub fn classes(text: &str, units: &[Unit], scans: &[Scan], rules: &Rules) -> Vec<Class> {
    let mut seen: HashMap<u64, u32, BuildMixedHasher> =
        HashMap::with_capacity_and_hasher(units.len().min(SEEN), BuildMixedHasher);
    let (mut path, mut frames) = ("", Frames::None);
    let mut classes: Vec<Class> = Vec::with_capacity(units.len());
    for (&unit, scan) in units.iter().zip(scans) {
        let line = unit.of(text);
        let hit = if rules.is_search && unit.opens { is_hit(line).map(|(path, _)| path) } else { None };
        // A long line outside of logs is prose, and so are its parts.
        let is_said = rules.mask_quotes || unit.said(text).len() <= LINE_BYTES;
        let least = if is_said { rules.least } else { rules.least.max(Level::Strong) };
        let class = match () {
            () if scan.words == 0 => Class::Noise,
            () if scan.level >= least || frames.is_end(line) => {
                let count = seen.entry(scan.template).or_default();
                *count += 1;
                if *count > SAME_ERRORS { Class::Repeat } else { Class::Error }
            }
            // The one behind an error says where.
            () if frames.is_frame(line) && matches!(frames, Frames::Other(0)) => Class::Error,
            () if frames.is_frame(line) => Class::NearError,
            () if hit.is_some_and(|hit| hit != path) => Class::Header,
            () if rules.has_headings && unit.opens && heading(line).is_some() => Class::Header,
            () if unit.opens && is_changed_file(line) => Class::Outlier,
            () if is_noise(line) => Class::Noise,
            () => {
                // `"value": 7.1,` is only its number: a template needs words.
                let is_template = rules.mask_quotes || scan.words >= TEMPLATE_WORDS;
                let form = if is_template { scan.template } else { xxh3_64(line.trim().as_bytes()) };
                let count = seen.entry(form).or_default();
                *count += 1;
                if *count > 1 { Class::Repeat } else { Class::Plain }
            }
        };
        path = hit.unwrap_or(path);
        if frames.is_end(line) && class == Class::Error {
            // And so does the last of a traceback.
            let opens_frame = |&at: &usize| units[at].of(text).trim_start().starts_with("File \"");
            if let Some(at) = (0..classes.len()).rev().take(FRAME_LINES).find(opens_frame) {
                classes[at] = Class::Error;
            }
        }
        frames = frames.next(line, class);
        classes.push(class);
    }
    neighbours(&mut classes);
    if rules.is_search {
        verdict(text, units, scans, &mut classes);
    }
    edges(&mut classes, rules.edges);
    // A log has its subject in its first line, and its outcome in its last.
    let ends = [0, classes.len().saturating_sub(1)];
    for end in ends.into_iter().filter(|_| rules.mask_quotes) {
        if let Some(class) = classes.get_mut(end).filter(|class| **class == Class::Edge) {
            *class = Class::Header;
        }
    }
    classes
}

/// Most lines behind the last hit that say how many there are.
const VERDICT_LINES: usize = 3;

/// Sets the few lines behind the last hit, as `Found 148 errors in 14 files`, to [`Class::Outlier`].
fn verdict(text: &str, units: &[Unit], scans: &[Scan], classes: &mut [Class]) {
    let is_behind = |line: &usize| is_hit(units[*line].of(text)).is_none();
    let behind: Vec<usize> = (0..units.len()).rev().take_while(is_behind).take(VERDICT_LINES + 1).collect();
    if behind.len() <= VERDICT_LINES {
        behind.into_iter().filter(|&line| scans[line].words > 0).for_each(|line| classes[line] = Class::Outlier);
    }
}

/// Sets lines around errors to [`Class::NearError`].
pub fn neighbours(classes: &mut [Class]) {
    let errors: Vec<usize> = (0..classes.len()).filter(|&i| classes[i] == Class::Error).collect();
    if errors.len() * DENSE > classes.len() && classes.len() > 8 {
        return;
    }
    for i in errors {
        let end = classes.len().min(i + 1 + AROUND.1);
        for class in &mut classes[i.saturating_sub(AROUND.0)..end] {
            if matches!(class, Class::Plain | Class::Repeat) {
                *class = Class::NearError;
            }
        }
    }
}

/// Sets the first and last few to [`Class::Edge`] if they are nothing better.
pub fn edges(classes: &mut [Class], (first, last): (usize, usize)) {
    let end = classes.len();
    let is_edge = |i: usize| i < first || i + last >= end;
    for i in (0..first.min(end)).chain(end.saturating_sub(last)..end) {
        if is_edge(i) && matches!(classes[i], Class::Plain | Class::Repeat) {
            classes[i] = Class::Edge;
        }
    }
}

/// State in the frames behind an error.
#[derive(Copy, Clone)]
enum Frames {
    None,
    /// Behind "Traceback": indented lines, then the exception.
    Python(usize),
    /// Behind any other error: lines that look like frames.
    Other(usize),
}

impl Frames {
    fn is_frame(self, line: &str) -> bool {
        match self {
            Self::None => false,
            Self::Python(_) => line.starts_with([' ', '\t']),
            Self::Other(_) => {
                let start = line.trim_start();
                ["at ", "File \"", "Caused by", "... ", "--> ", "|", "goroutine ", "from "]
                    .iter()
                    .any(|f| start.starts_with(f))
                    || (line.starts_with("> ") || line.starts_with(">  "))
            }
        }
    }

    /// Returns whether the line is the exception that ends a traceback.
    fn is_end(self, line: &str) -> bool {
        matches!(self, Self::Python(_)) && !self.is_frame(line)
    }

    fn next(self, line: &str, class: Class) -> Self {
        match self {
            _ if class == Class::Error && line.contains("Traceback (most") => Self::Python(0),
            Self::Python(n) if self.is_frame(line) && n < FRAMES => Self::Python(n + 1),
            Self::Other(n) if self.is_frame(line) && n < FRAMES => Self::Other(n + 1),
            _ if class == Class::Error => Self::Other(0),
            _ => Self::None,
        }
    }
}

/// Returns whether `git status` lists a file in a line that is not merely untracked.
fn is_changed_file(line: &str) -> bool {
    let changes = ["modified:  ", "deleted:  ", "renamed:  ", "new file:  ", "both modified:  ", "both added:  "];
    line.starts_with('\t') && changes.iter().any(|change| line[1..].starts_with(change))
}

/// Levels of Markdown headings.
pub const HEADING_LEVELS: usize = 6;

/// Returns the level of a Markdown heading.
pub fn heading(line: &str) -> Option<usize> {
    let level = line.bytes().take_while(|&byte| byte == b'#').count();
    ((1..=HEADING_LEVELS).contains(&level) && line[level..].starts_with(' ')).then_some(level)
}

/// Progress bars, and long strings without a word (base64).
fn is_noise(line: &str) -> bool {
    let bytes = line.as_bytes();
    let is_bar = || ["█", "━━", "#####", "=====>"].iter().any(|bar| line.contains(bar));
    let is_blob = bytes.len() > 100 && is_base64(line.trim_end_matches(['\n', '\r']));
    is_blob || (memchr(b'%', bytes).is_some() && is_bar())
}

/// Returns whether a text has only characters of Base64.
pub fn is_base64(text: &str) -> bool {
    text.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/' | b'='))
}

/// Returns the path of a hit such as `src/a.rs:12:` or `src/a.rs-12-`, and what follows.
pub fn is_hit(line: &str) -> Option<(&str, &str)> {
    let bytes = line.as_bytes();
    let mut end = 0;
    while let Some(&byte) = bytes.get(end).filter(|_| end < 256) {
        // 2026-11-03 is a date.
        let is_within_date = byte == b'-' && end > 0 && bytes[end - 1].is_ascii_digit();
        if matches!(byte, b':' | b'-') && !is_within_date {
            let number = bytes[end + 1..].iter().take_while(|byte| byte.is_ascii_digit()).count();
            let behind = end + 1 + number;
            if number > 0 && bytes.get(behind) == Some(&byte) {
                let path = &line[..end];
                return (path.contains(['.', '/'])).then(|| (path, &line[behind + 1..]));
            }
        }
        // No path, but cells: `12.50,10:41:07`.
        if byte.is_ascii_whitespace() || matches!(byte, b'"' | b',' | b';' | b'|') {
            return None;
        }
        end += 1;
    }
    None
}
