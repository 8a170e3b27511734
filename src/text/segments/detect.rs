//! Detects the kind of a text by a sample of its lines.

use memchr::memchr2;

use crate::text::bytes::{self, has_time, is_word};
use crate::text::elision;

use super::log::{Rules, is_hit};
use super::severity::Level;
use super::{Kind, code, diff, html, report, table};

/// The kind of a text, by its sample.
#[derive(Debug)]
pub struct Detected {
    pub kind: Kind,
    /// Whether lines of code are numbered, as `cat -n` prints them.
    pub is_numbered: bool,
    pub says: Says,
}

/// What a text consists of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Says {
    /// Lines of any sort, as of a file that was read with line numbers and is no code.
    Lines,
    Code,
    /// Sentences rather than lines.
    Prose,
    /// What a compiler reports, with the code of that.
    Report,
}

impl Detected {
    /// Returns the bytes before the words of a line: its number, or the place of a hit.
    pub fn before(&self, line: &str) -> usize {
        let line = without_end(line);
        let bare = if self.is_numbered { code::without_number(line).unwrap_or(line) } else { line };
        let said = if self.kind == Kind::Search { is_hit(bare).map_or(bare, |(_, said)| said) } else { bare };
        line.len() - said.len()
    }

    /// Returns the rules for lines of a text without structure.
    pub fn rules(&self) -> Rules {
        let is_log = self.kind == Kind::Log;
        Rules {
            least: match self.kind {
                Kind::Search => Level::Leading,
                _ if self.says == Says::Prose => Level::Strong,
                _ => Level::Weak,
            },
            mask_quotes: is_log,
            is_search: self.kind == Kind::Search,
            has_headings: self.kind == Kind::Plain,
            edges: if is_log { (2, 8) } else { (3, 3) },
        }
    }
}

/// Sampled lines: from the start, the middle and the end.
const SAMPLE: [usize; 3] = [40, 24, 16];
/// From so many lines on, a third of them decides whether any passes.
const MANY: usize = 24;
/// Sampled bytes of a line.
const LINE_BYTES: usize = 400;

/// Returns the kind of a text. Reads at most [`SAMPLE`] lines.
pub fn form(text: &str) -> Detected {
    let lines = sample(text);
    let counts = |by: fn(u64, u64) -> bool| lines.len() >= 3 && goes_up(&lines, by);
    // Where lines were left out before, their numbers say which: see `Rendering`.
    let is_numbered = reaches(&lines, 70, &|line| code::without_number(line).is_some())
        && (counts(|a, b| b == a + 1) || counts(|a, b| b > a) && elision::opens_gap(text).is_some());
    let bare = |line| code::without_number(line).filter(|_| is_numbered).unwrap_or(line);
    let lines: Vec<&str> = lines.into_iter().map(bare).filter(|line| !line.trim_start().is_empty()).collect();
    let is_report = || {
        // Before its first message a compiler says how far it is.
        let Some(first) = lines.iter().position(|line| report::is_message(line)) else { return false };
        let lines = &lines[first..];
        lines.iter().filter(|line| report::is_excerpt(line)).count() * 4 >= lines.len()
            && reaches(lines, 60, &report::is_of_report)
    };
    let form = |kind| Detected { kind, is_numbered, says: Says::Lines };
    let saying = |is_so: bool, says| if is_so { says } else { Says::Lines };
    let Some(first) = lines.first() else { return form(Kind::Plain) };
    let most = |percent: usize, test: &dyn Fn(&str) -> bool| reaches(&lines, percent, test);
    if diff::is_diff(&lines) {
        return form(Kind::Diff);
    }
    if html::is_html(first.trim_start(), &lines) {
        return form(Kind::Html);
    }
    if lines.len() >= 3 && most(60, &|line| is_hit(line).is_some()) {
        return form(Kind::Search);
    }
    if most(30, &is_log_line) {
        return Detected { says: saying(is_report(), Says::Report), ..form(Kind::Log) };
    }
    if is_report() {
        return Detected { says: Says::Report, ..form(Kind::Plain) };
    }
    if code::is_code(&lines) {
        return Detected { says: Says::Code, ..form(Kind::Code) };
    }
    if table::is_table(&lines) {
        return form(Kind::Table);
    }
    if is_numbered {
        // A file that was read: its errors are not reports.
        return form(Kind::Code);
    }
    Detected { says: saying(is_prose(&lines), Says::Prose), ..form(Kind::Plain) }
}

/// Returns whether at least `percent` of the lines pass a test. Stops once that is decided; if none of every third of many
/// passes, no other is tried.
fn reaches(lines: &[&str], percent: usize, test: &dyn Fn(&str) -> bool) -> bool {
    if lines.len() >= MANY && !lines.iter().step_by(3).any(|line| test(line)) {
        return false;
    }
    let needed = (lines.len() * percent).div_ceil(100);
    let (mut passed, mut left) = (0, lines.len());
    for line in lines {
        left -= 1;
        passed += usize::from(test(line));
        if passed >= needed || passed + left < needed {
            break;
        }
    }
    passed >= needed
}

/// Returns whether the numbers before most lines go up as `by` says; those of a column do not.
fn goes_up(lines: &[&str], by: fn(u64, u64) -> bool) -> bool {
    let numbers = |pair: &[&str]| code::line_number(pair[0]).zip(code::line_number(pair[1]));
    let next = lines.windows(2).filter(|pair| numbers(pair).is_some_and(|(a, b)| by(a, b)));
    next.count() * 10 >= (lines.len() - 1) * 6
}

/// Returns lines that are not blank, cut to [`LINE_BYTES`].
fn sample(text: &str) -> Vec<&str> {
    let mut lines: Vec<&str> = Vec::with_capacity(SAMPLE.iter().sum());
    let not_blank = |line: &&str| line.bytes().take(LINE_BYTES).any(|byte| !byte.is_ascii_whitespace());
    let window = |from: usize, count: usize| {
        let (from, to) = (boundary(text, from), boundary(text, from + count * LINE_BYTES));
        let lines = bytes::lines(&text[from..to]).map(without_end);
        lines.map(|line| &line[..boundary(line, LINE_BYTES)]).filter(not_blank).take(count)
    };
    lines.extend(window(0, SAMPLE[0]));
    // For a short text the start is everything.
    if text.len() > SAMPLE[0] * LINE_BYTES {
        lines.extend(window(text.len() / 2, SAMPLE[1] + 1).skip(1));
        lines.extend(window(text.len() - SAMPLE[2] * LINE_BYTES, SAMPLE[2] + 1).skip(1));
    }
    lines
}

fn without_end(line: &str) -> &str {
    line.strip_suffix('\n').map_or(line, |line| line.strip_suffix('\r').unwrap_or(line))
}

/// Returns the last character boundary up to `position`.
fn boundary(text: &str, position: usize) -> usize {
    let mut position = position.min(text.len());
    while !text.is_char_boundary(position) {
        position -= 1;
    }
    position
}

/// Returns whether a word is near the start of log lines, between brackets and spaces.
fn is_level(word: &[u8]) -> bool {
    match word {
        [b'I', ..] => word == b"INFO",
        [b'W', ..] => word == b"WARN" || word == b"WARNING",
        [b'E', ..] => word == b"ERROR",
        [b'D', ..] => word == b"DEBUG",
        [b'T', ..] => word == b"TRACE",
        [b'F', ..] => word == b"FATAL" || word == b"FAILED" || word == b"FAIL",
        [b'P', ..] => word == b"PASSED" || word == b"PASS",
        _ => word == b"ok" || word == b"info" || word == b"warn",
    }
}

/// Returns whether a line looks printed by a program while it runs: a time, a level, a test's verdict, a prompt.
fn is_log_line(line: &str) -> bool {
    let opens = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'$' || !byte.is_ascii();
    let start = &line[line.bytes().position(opens).unwrap_or(line.len())..];
    let start = match start.as_bytes().first() {
        Some(0x80..) => start.trim_start_matches(|c: char| !c.is_alphanumeric() && c != '$' && c != '✓' && c != '✗'),
        _ => start,
    };
    let start = &start[..boundary(start, 80)];
    has_time(start.as_bytes())
        || start.starts_with("$ ")
        || start.starts_with(['✓', '✗'])
        || has_level(start.as_bytes())
        || is_result(line.trim_start())
}

/// Returns whether one of the first five words is a level.
fn has_level(start: &[u8]) -> bool {
    let mut at = 0;
    for _ in 0..5 {
        let Some(space) = start[at..].iter().position(|&byte| is_word(byte)) else { return false };
        let word = at + space;
        at = bytes::word_end(start, word);
        if is_level(&start[word..at]) {
            return true;
        }
    }
    false
}

/// What tests, installers and compilers print.
fn is_result(line: &str) -> bool {
    let starts = || {
        [
            "--- PASS",
            "--- FAIL",
            "=== RUN",
            "test result",
            "Traceback",
            "npm ",
            "Collecting ",
            "Compiling ",
            "Downloading ",
        ]
        .iter()
        .any(|known| line.starts_with(known))
    };
    // The first byte rules out most lines.
    (line.starts_with(['-', '=', 't', 'T', 'n', 'C', 'D']) && starts())
        || line.trim_end().ends_with("... ok")
        || has_verdict(line.as_bytes())
}

/// Returns whether a line has ` PASSED`, ` FAILED` or `error TS`.
fn has_verdict(line: &[u8]) -> bool {
    // Capitals that are rare in other lines.
    memchr2(b'D', b'T', line).is_some()
        && line.iter().enumerate().any(|(at, byte)| match byte {
            b'D' => line[..at].ends_with(b" PASSE") || line[..at].ends_with(b" FAILE"),
            b'T' => line[..at].ends_with(b"error ") && line.get(at + 1) == Some(&b'S'),
            _ => false,
        })
}

/// Sentences: long lines, or lines that end as sentences do.
fn is_prose(lines: &[&str]) -> bool {
    let bytes: usize = lines.iter().map(|line| line.len()).sum();
    let sentences =
        lines.iter().filter(|line| line.trim_end().ends_with(['.', '!', '?', '。', '！', '？', '"', '”'])).count();
    bytes / lines.len() > 160 || sentences * 2 > lines.len()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::text::segments::Segments;

    fn kind(text: &str) -> Kind {
        Segments::of(text).kind()
    }

    #[test]
    fn kinds_are_told_by_content() {
        let log = "2026-05-01T10:10:00 INFO worker-1 processed batch 1 ok\n".repeat(5);
        assert_eq!(kind(&log), Kind::Log);
        assert_eq!(kind("tests/a.py::test_a PASSED [ 50%]\ntests/a.py::test_b FAILED [100%]\n"), Kind::Log);
        assert_eq!(kind(r#" {"a": [1, 2, 3]} "#), Kind::Json);
        assert_eq!(kind("{\"a\": 1}\n{\"a\": 2}\n"), Kind::Json);
        assert_eq!(kind("{'a': 1, 'b': None}"), Kind::Json);
        assert_eq!(kind("def f(a):\n    return a * 2\n\n\nclass A:\n    def g(self):\n        pass\n"), Kind::Code);
        assert_eq!(
            kind(
                "     1\timport time\n     2\t\n     3\tdef f(x):\n     4\t    return x\n     5\t\n     6\tclass B(A):\n"
            ),
            Kind::Code
        );
        assert_eq!(
            kind("     1→use a::b;\n     2→pub fn f() -> u8 {\n     3→    let x = 3;\n     4→    x\n     5→}\n"),
            Kind::Code
        );
        assert_eq!(kind("diff --git a/x b/x\n--- a/x\n+++ b/x\n@@ -1,2 +1,2 @@\n a\n-b\n+c\n"), Kind::Diff);
        assert_eq!(kind("src/a.rs:12: let x = 1;\nsrc/b.rs:14: let y = 1;\nsrc/b.rs:18: x\n"), Kind::Search);
        assert_eq!(kind("id,name,age\n1,ann,3\n2,bob,4\n3,eve,5\n"), Kind::Table);
        for behind in ["2026-11-03", "ABC-12-X", "10:41:07"] {
            let rows = format!("7,cust-1,EUR,12.50,{behind}\n").repeat(5);
            assert!(![kind(&rows), kind(&rows.replace(',', ";"))].contains(&Kind::Search), "{behind}");
        }
        assert_ne!(kind(&"logs/2026-11-03/app.txt\n".repeat(5)), Kind::Search);
        assert_eq!(kind("| a | b |\n|---|---|\n| 1 | 2 |\n| 3 | 4 |\n"), Kind::Table);
        assert_eq!(
            kind("NAME     STATUS   AGE\npod-a    Running  1d\npod-b    Error    2d\npod-c    Running  2d\n"),
            Kind::Table
        );
        assert_eq!(kind("<!DOCTYPE html><html><body><p>hi</p></body></html>"), Kind::Html);
        assert_eq!(kind("I was thinking about this. It is fine."), Kind::Plain);
        assert_eq!(kind("请检查一下支付模块的日志。订单号是 ORD123。"), Kind::Plain);
        assert_eq!(kind(""), Kind::Plain);
    }
}
