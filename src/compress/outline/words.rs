//! What a line says: whether something went wrong, and which template it was printed from.

use crate::compress::bytes::{self, DIGIT};

/// What one look at a line tells.
#[derive(Copy, Clone, Debug)]
pub struct Scan {
    /// Hash of the line without what changes from one printing to the next: every word with a digit in it (numbers,
    /// hashes, UUIDs, times), and quoted strings where asked. Runs of spaces count as one.
    pub template: u64,
    /// How surely the line reports an error.
    pub level: Level,
    /// Words: runs of letters and digits, and Chinese characters.
    pub words: u32,
}

/// How surely a line reports an error.
#[derive(Copy, Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Level {
    None,
    /// A word such as "cannot", "not found" is in it; people who talk use it, too.
    Weak,
    /// "ERROR", "error:", `TypeError`, "exit code 1".
    Strong,
    /// It begins so.
    Leading,
}

/// Looks at a line once. O(n); nothing is allocated.
pub fn scan(line: &[u8], mask_quotes: bool) -> Scan {
    let mut scan = Scan { template: 0, level: Level::None, words: 0 };
    let (mut hash, mut in_quotes, mut position) = (SEED, false, 0);
    while let Some(&byte) = line.get(position) {
        match byte {
            b'0'..=b'9' | b'A'..=b'Z' | b'a'..=b'z' | b'_' => {
                let word = word_at(line, position);
                scan.words += 1;
                if !in_quotes {
                    hash = mix(hash, word.hash);
                }
                if word.is_hint {
                    scan.level = scan.level.max(judge(line, position, word.end));
                }
                position = word.end;
                continue;
            }
            b' ' | b'\t' | b'\r' | b'\n' => {
                while matches!(line.get(position + 1), Some(b' ' | b'\t' | b'\r' | b'\n')) {
                    position += 1;
                }
                hash = if in_quotes || position + 1 == line.len() { hash } else { mix(hash, u64::from(b' ')) };
            }
            b'"' if mask_quotes => {
                in_quotes = !in_quotes;
                hash = mix(hash, u64::from(b'"'));
            }
            b'\\' if matches!(line.get(position + 1), Some(b'n' | b'r' | b't' | b'"' | b'\\')) => position += 1,
            0xe4..=0xe9 => {
                scan.words += 1;
                scan.level = scan.level.max(judge_chinese(line, position));
                hash = if in_quotes { hash } else { mix(hash, u64::from(byte)) };
            }
            _ => {
                scan.words += u32::from(byte >= 0xc0);
                hash = if in_quotes { hash } else { mix(hash, u64::from(byte)) };
            }
        }
        position += 1;
    }
    if line.starts_with(b"E   ") {
        scan.level = Level::Leading;
    }
    scan.template = hash;
    scan
}

/// Odd numbers without pattern, as in `FxHash` of rustc.
const SEED: u64 = 0x517c_c1b7_2722_0a95;

fn mix(hash: u64, value: u64) -> u64 {
    (hash.rotate_left(5) ^ value).wrapping_mul(SEED)
}

struct Word {
    end: usize,
    /// Of its bytes, or of any other with a digit in it.
    hash: u64,
    /// It may be one of the words that [`judge`] knows.
    is_hint: bool,
}

fn word_at(line: &[u8], start: usize) -> Word {
    let bytes::Word { end, classes, hash } = bytes::word::<false>(line, start);
    let (word, has_digit) = (&line[start..end], classes & DIGIT != 0);
    let first = (word[0] | 0x20).wrapping_sub(b'a');
    let lengths = LENGTHS.get(usize::from(first)).copied().unwrap_or(0);
    let by_first = word.len() < 16 && lengths >> word.len() & 1 == 1;
    Word {
        end,
        hash: if has_digit { u64::from(b'#') } else { hash },
        is_hint: !has_digit && (by_first || is_camel_tail(word)),
    }
}

/// `TypeError`, `IOException`, `DeprecationWarning`.
fn is_camel_tail(word: &[u8]) -> bool {
    word.len() > 6
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

/// By first letter: the lengths that words of [`WORDS`] have, a bit each.
const LENGTHS: [u16; 26] = {
    let mut lengths = [0; 26];
    let mut i = 0;
    while i < WORDS.len() {
        lengths[(WORDS[i][0] - b'a') as usize] |= 1 << WORDS[i].len();
        i += 1;
    }
    lengths
};

/// Says whether the word from `start` to `end` reports an error.
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
    // By its first byte a word is told from most others without a call.
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

/// Returns whether nothing but brackets, bullets and spaces stands before.
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

/// Returns the number that follows behind `:`, `=`, `"`, `(` and spaces, all zeros as one.
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

fn judge_chinese(line: &[u8], position: usize) -> Level {
    let Some(word) = line.get(position..position + 6) else { return Level::None };
    if !CHINESE.iter().any(|known| known.as_bytes() == word) {
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
        scan(line.as_bytes(), true).level
    }

    #[test]
    fn lines_that_report_errors_are_told_from_lines_that_mention_them() {
        for line in [
            "E123456: assertion failed in step 7",
            "exit code 1",
            "Process exited with code 127",
            "exit status 2",
            "ValueError: invalid literal",
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
    fn a_template_has_no_numbers_times_and_quotations() {
        let template = |line: &str| scan(line.as_bytes(), true).template;
        assert_eq!(
            template("2026-05-01T10:10:00 INFO worker-1 processed batch 7 of \"a b\""),
            template("2026-11-21T23:59:59 INFO worker-12 processed  batch 1000 of \"cde\"\n")
        );
        assert_eq!(template("id 4f2a-9c1e done"), template("id 00ff-77ab1 done"));
        assert_ne!(template("INFO started"), template("INFO stopped"));
    }
}
