//! Reads lines: whether each reports an error, and which template it was printed from.

use std::sync::LazyLock;

use crate::text::bytes::{DIGIT, Filter, UPPER, Word, hash_of_name};
use crate::text::terms::{Terms, TextReader, read};

use super::units::Unit;

/// The result of reading a line.
#[derive(Copy, Clone, Debug)]
pub struct Scan {
    /// Hash of the line's template: its words without those with a digit (numbers, hashes, UUIDs, times), and without quoted
    /// strings if asked; separators do not count.
    pub template: u64,
    /// The level of its report.
    pub level: Level,
    /// Words: runs of letters and digits, and Chinese characters.
    pub words: u32,
}

/// How certain the report of an error is.
#[derive(Copy, Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Level {
    None,
    /// It has "cannot", "not found" or the like; people in a talk use these, too.
    Weak,
    /// "ERROR", "error:", `TypeError`, "exit code 1".
    Strong,
    /// It starts so.
    Leading,
}

/// Reads a line. O(n); allocates nothing.
pub fn scan(line: &str, mask_quotes: bool) -> Scan {
    let mut looking = Looking::at(line, 0, mask_quotes);
    read(line, &mut looking);
    looking.scan()
}

/// Reads the units of a text, and gathers their terms. O(n).
pub fn scans_and_terms(text: &str, units: &[Unit], mask_quotes: bool) -> (Vec<Scan>, Terms) {
    let scans = Vec::with_capacity(units.len());
    let mut lines = Lines { text, units: units.iter(), mask_quotes, now: Looking::at("", 0, mask_quotes), scans };
    lines.open();
    let terms = Terms::by_part(text, units.iter().map(|unit| unit.end as usize), &mut lines);
    (lines.scans, terms)
}

/// Reads a text unit by unit.
struct Lines<'t> {
    text: &'t str,
    /// End of the current unit.
    units: std::slice::Iter<'t, Unit>,
    mask_quotes: bool,
    now: Looking<'t>,
    scans: Vec<Scan>,
}

impl Lines<'_> {
    fn open(&mut self) {
        if let Some(unit) = self.units.next() {
            self.now = Looking::at(unit.said(self.text), unit.says as usize, self.mask_quotes);
        }
    }
}

impl TextReader for Lines<'_> {
    fn word(&mut self, start: usize, word: &Word) {
        self.now.word(start, word);
    }

    fn character(&mut self, at: usize, c: char) {
        self.now.character(at, c);
    }

    fn part_ends(&mut self) {
        self.scans.push(self.now.scan());
        self.open();
    }
}

/// The line being read.
struct Looking<'t> {
    line: &'t str,
    /// Its start in the text; earlier bytes do not count.
    from: usize,
    mask_quotes: bool,
    in_quotes: bool,
    hash: u64,
    level: Level,
    words: u32,
    known: &'static Filter<64>,
}

impl<'t> Looking<'t> {
    fn at(line: &'t str, from: usize, mask_quotes: bool) -> Self {
        Self { line, from, mask_quotes, in_quotes: false, hash: SEED, level: Level::None, words: 0, known: &KNOWN }
    }

    /// Judges a word that is in [`KNOWN`] or has a capital.
    fn judge_word(&mut self, start: usize, word: &Word) {
        let line = self.line.as_bytes();
        // A unit may end within a long word.
        let end = (word.end - self.from).min(line.len());
        if self.known.may_have(word.hash) || is_camel_tail(&line[start..end]) {
            self.level = self.level.max(judge(line, start, end));
        }
    }

    fn scan(&self) -> Scan {
        let level = if self.line.starts_with("E   ") { Level::Leading } else { self.level };
        Scan { template: self.hash, level, words: self.words }
    }
}

impl TextReader for Looking<'_> {
    const TERMS: bool = false;

    fn word(&mut self, start: usize, word: &Word) {
        let Some(start) = start.checked_sub(self.from) else { return };
        self.words += 1;
        let has_digit = word.classes & DIGIT != 0;
        if !self.in_quotes {
            self.hash = mix(self.hash, if has_digit { u64::from(b'#') } else { word.hash });
        }
        if self.known.may_have(word.hash) || word.classes & UPPER != 0 {
            self.judge_word(start, word);
        }
    }

    fn character(&mut self, at: usize, c: char) {
        let Some(at) = at.checked_sub(self.from) else { return };
        if c == '"' {
            self.in_quotes ^= self.mask_quotes;
            return;
        }
        self.words += 1;
        if is_chinese(c) {
            self.level = self.level.max(judge_chinese(self.line.as_bytes(), at));
        }
        if !self.in_quotes {
            self.hash = mix(self.hash, u64::from(c));
        }
    }
}

/// Odd numbers without pattern, as in `FxHash` of rustc.
const SEED: u64 = 0x517c_c1b7_2722_0a95;

fn mix(hash: u64, value: u64) -> u64 {
    (hash.rotate_left(5) ^ value).wrapping_mul(SEED)
}

/// `TypeError`, `IOException`, `DeprecationWarning`.
fn is_camel_tail(word: &[u8]) -> bool {
    word.len() > 6
        && word[0].is_ascii_uppercase()
        && matches!(word, [.., b'r', b'r', b'o', b'r'] | [.., b't', b'i', b'o', b'n'] | [.., b'n', b'i', b'n', b'g'])
}

/// The words that [`judge`] knows.
const WORDS: [&[u8]; 47] = [
    b"error",
    b"errors",
    b"err",
    b"fail",
    b"fails",
    b"failed",
    b"failing",
    b"failure",
    b"failures",
    b"fatal",
    b"panic",
    b"panicked",
    b"exception",
    b"exceptions",
    b"traceback",
    b"warning",
    b"warnings",
    b"warn",
    b"denied",
    b"found",
    b"such",
    b"refused",
    b"out",
    b"timeout",
    b"timeouts",
    b"abort",
    b"aborted",
    b"aborting",
    b"segfault",
    b"undefined",
    b"cannot",
    b"code",
    b"status",
    b"exit_code",
    b"exitcode",
    b"returncode",
    b"unable",
    b"killed",
    b"dumped",
    b"rejected",
    b"forbidden",
    b"unauthorized",
    b"unreachable",
    b"crashed",
    b"segmentation",
    b"conflict",
    b"critical",
];

/// Rejects most words outside of [`WORDS`].
static KNOWN: LazyLock<Filter<64>> = LazyLock::new(|| Filter::of(WORDS.map(hash_of_name)));

/// Returns the level of the word from `start` to `end`.
#[cold]
fn judge(line: &[u8], start: usize, end: usize) -> Level {
    let word = &line[start..end];
    let (before, after) = (&line[..start], &line[end..]);
    let is_camel = [&b"Error"[..], b"Exception", b"Warning"]
        .iter()
        .any(|tail| word.len() > tail.len() && word.ends_with(tail) && word[0].is_ascii_uppercase());
    if is_camel {
        // `new TypeError(…)`, `errors: ValidationError[]` are code.
        return match after {
            [] | [b':' | b' ' | b'\t' | b'\r' | b'\n' | b'"', ..] if is_lead(before) => Level::Leading,
            [] | [b':' | b' ' | b'\t' | b'\r' | b'\n' | b'"', ..] => Level::Strong,
            [b'(', ..] if is_lead(before) => Level::Strong,
            _ => Level::None,
        };
    }
    let mut lower = [0; 16];
    let Some(lower) = lower.get_mut(..word.len()) else { return Level::None };
    lower.copy_from_slice(word);
    lower.make_ascii_lowercase();
    let lower: &[u8] = lower;
    // The first byte rules out most words without a call.
    let is_known = WORDS.iter().any(|known| known[0] == lower[0] && *known == lower);
    if !is_known || is_part_of_name(before, after) {
        return Level::None;
    }
    match lower {
        b"code" | b"status" | b"exit_code" | b"exitcode" | b"returncode" => {
            let is_exit =
                lower.len() > 6 || ends_in_word(before, &[b"exit", b"exited", b"with", b"return", b"returned"]);
            return if is_exit && number_after(after).is_some_and(|n| n != b"0") { Level::Strong } else { Level::None };
        }
        b"found" | b"such" | b"out" | b"dumped" | b"segmentation" => {
            let is_phrase = match lower {
                b"found" => ends_in_word(before, &[b"not"]),
                b"such" => ends_in_word(before, &[b"no"]),
                b"out" => ends_in_word(before, &[b"timed", b"times"]),
                b"dumped" => ends_in_word(before, &[b"core"]),
                _ => after.starts_with(b" fault"),
            };
            return if is_phrase { Level::Weak } else { Level::None };
        }
        // `x !== undefined`
        b"undefined" if before.trim_ascii_end().ends_with(b"=") => return Level::None,
        // `timeout: 10000` is a setting.
        b"timeout" | b"timeouts" if number_after(after).is_some() => return Level::None,
        b"err" if !matches!(after, [b'!' | b':', ..]) => return Level::None,
        _ => {}
    }
    if ends_in_word(before, &[b"0", b"no", b"without", b"zero", b"non", b"any"]) || number_after(after) == Some(b"0") {
        return Level::None;
    }
    let is_upper = word.iter().all(u8::is_ascii_uppercase);
    let is_opening = matches!(after, [b':' | b'!' | b'[' | b']', ..]);
    match (is_lead(before), is_upper || is_opening) {
        (true, true) => Level::Leading,
        (true, false) if lower == b"traceback" => Level::Leading,
        (false, true) => Level::Strong,
        _ if matches!(lower, b"traceback" | b"panicked" | b"segfault" | b"fatal") => Level::Strong,
        _ => Level::Weak,
    }
}

/// `errors.py`, `src/error/mod.rs`, `--fail-fast`, `console.error`, `'error'`: names, not reports.
fn is_part_of_name(before: &[u8], after: &[u8]) -> bool {
    matches!((before, after), ([.., b'\''], [b'\'', ..]) | ([.., b'`'], [b'`', ..]))
        || matches!(before, [.., b'.' | b'/' | b'-' | b'\\' | b'$' | b'@' | b'#'] | [.., b':', b':'])
        || matches!(after, [b'.', next, ..] if next.is_ascii_alphanumeric())
        || matches!(after, [b'/' | b'(', ..] | [b'-', b'a'..=b'z', ..] | [b':', b':', ..])
}

/// Returns whether only brackets, bullets and spaces precede.
fn is_lead(before: &[u8]) -> bool {
    before.len() < 16 && before.iter().all(|byte| !byte.is_ascii_alphanumeric() && *byte < 0x80)
}

/// Returns whether the word before, behind at most two spaces, is one of `words`.
fn ends_in_word(before: &[u8], words: &[&[u8]]) -> bool {
    let trimmed = before.trim_ascii_end();
    words.iter().any(|word| {
        let Some(at) = trimmed.len().checked_sub(word.len()) else { return false };
        trimmed[at..].eq_ignore_ascii_case(word)
            && !at.checked_sub(1).is_some_and(|last| trimmed[last].is_ascii_alphanumeric() || trimmed[last] == b'.')
    })
}

/// Returns the number behind `:`, `=`, `"`, `(` and spaces; all zeros are one.
fn number_after(after: &[u8]) -> Option<&[u8]> {
    let skipped =
        after.iter().take(6).take_while(|byte| matches!(byte, b':' | b'=' | b'"' | b' ' | b'(' | b'\'')).count();
    let digits = after[skipped..].iter().take_while(|byte| byte.is_ascii_digit()).count();
    let number = &after[skipped..skipped + digits];
    if skipped == 0 || digits == 0 {
        return None;
    }
    Some(if number.iter().all(|&digit| digit == b'0') { b"0" } else { number })
}

const CHINESE: [&str; 12] =
    ["错误", "失败", "异常", "警告", "拒绝", "超时", "无法", "崩溃", "报错", "致命", "出错", "中断"];

/// Returns whether a character may start one of [`CHINESE`].
fn is_chinese(c: char) -> bool {
    matches!(c, '\u{4000}'..='\u{9fff}')
}

fn judge_chinese(line: &[u8], position: usize) -> Level {
    let Some(word) = line.get(position..position + 6) else { return Level::None };
    // Its middle byte rules out most characters without a call.
    if !CHINESE.iter().any(|known| known.as_bytes()[1] == word[1] && known.as_bytes() == word) {
        return Level::None;
    }
    let before = &line[..position];
    // 没有错误, 无异常, 0 个错误
    if before.ends_with("有".as_bytes()) || before.ends_with("无".as_bytes()) || before.ends_with("0 个".as_bytes())
    {
        return Level::None;
    }
    let after = &line[position + 6..];
    let is_opening = after.starts_with(b":") || after.starts_with("：".as_bytes());
    match (is_opening, is_lead(before)) {
        (true, true) => Level::Leading,
        (true, false) => Level::Strong,
        _ => Level::Weak,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn level(line: &str) -> Level {
        scan(line, true).level
    }

    #[test]
    fn lines_that_report_errors_are_told_from_lines_that_mention_them() {
        for line in [
            "E123456: assertion failed in step 7",
            "exit code 1",
            "Process exited with code 127",
            "exit status 2",
            "ValueError: invalid literal",
            "OAuth2Error: token has expired",
            "npm ERR! missing script",
            "E   assert 1 == 2",
            "FAILED tests/test_a.py::test_b - KeyError",
            "cat: x: No such file or directory",
            "bash: foo: command not found",
            "connect: connection refused",
            "connection timed out",
            "2026-01-01 WARN disk nearly full",
            "3 errors, 0 warnings",
            "thread 'main' panicked at src/main.rs:1:2",
            "java.lang.NullPointerException: x",
            "连接失败",
            "错误：找不到文件",
            "status=FAILED-77",
            r#"{"level":"error","msg":"boom"}"#,
            "error[E0308]: mismatched types",
        ] {
            assert!(level(line) > Level::None, "{line}");
        }
        for line in [
            "0 errors, 0 warnings",
            "no errors found",
            "error: 0",
            "errors=0 failed=0",
            "exit code 0",
            "Process exited with code 0",
            "found 3 files",
            "src/errors.py",
            "use crate::error::Error;",
            "terrors of flight",
            "没有错误",
            "all tests passed without failure",
            "error_count 7",
            "if (raw.workers !== undefined) {",
            "errors.push(new ValidationError(x))",
            "severity: 'error',",
            "waitFor({ state: 'visible', timeout: 10000 });",
            "checked out branch main",
        ] {
            assert_eq!(level(line), Level::None, "{line}");
        }
        assert_eq!(level("error: cannot open"), Level::Leading);
        assert_eq!(level("we cannot say that it failed"), Level::Weak);
    }

    #[test]
    fn an_escape_is_no_part_of_the_word_behind_it() {
        for line in [r"a\nerror: no space", r"a\tValueError: x", r"a\r\nfatal: gone"] {
            assert!(level(line) > Level::None, "{line}");
        }
        assert_eq!(level(r"a\\nerror: no space"), Level::None, "a backslash, spelled out, and then a letter");
        assert_eq!(scan(r"x\n12", false).words, 2);
    }

    #[test]
    fn what_stands_between_words_makes_no_other_template() {
        let template = |line: &str, mask_quotes| scan(line, mask_quotes).template;
        assert_eq!(template("batch done, took 3 ms", false), template("batch done took 12 ms\n", false));
        assert_ne!(template(r#"key "a b""#, false), template(r#"key "c""#, false));
        assert_eq!(template(r#"key "a b""#, true), template(r#"key "c \" d""#, true));
    }

    #[test]
    fn units_are_looked_at_as_lines_by_themselves() {
        let text = "1: error: no space\n2: \"half a quotation\n错误：x\n\nwaits at src/a.rs";
        let mut units = super::super::units::units(text, false, |line| line.find(": ").map_or(0, |at| at + 2));
        units[0].end -= 4;
        units.insert(1, Unit { opens: false, ..Unit::of_line(15..19) });
        let (scans, terms) = scans_and_terms(text, &units, true);
        let alone: Vec<Scan> = units.iter().map(|unit| scan(unit.said(text), true)).collect();
        let known = |scans: &[Scan]| scans.iter().map(|scan| (scan.level, scan.words)).collect::<Vec<_>>();
        // Of the word that is cut in two the first half has all.
        let mut expected = known(&alone);
        expected[1].1 = 0;
        assert_eq!(known(&scans), expected);
        assert_eq!(terms.ends.len(), units.len());
        assert_eq!(terms.ends.last().copied(), u32::try_from(terms.all.len()).ok());
    }

    #[test]
    fn a_template_has_no_numbers_times_and_quotations() {
        let template = |line: &str| scan(line, true).template;
        assert_eq!(
            template("2026-05-01T10:10:00 INFO worker-1 processed batch 7 of \"a b\""),
            template("2026-11-21T23:59:59 INFO worker-12 processed  batch 1000 of \"cde\"\n")
        );
        assert_eq!(template("id 4f2a-9c1e done"), template("id 00ff-77ab1 done"));
        assert_ne!(template("INFO started"), template("INFO stopped"));
    }
}
