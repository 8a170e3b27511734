//! Classes source code: signatures and comments.

use crate::text::bytes::word_end;

use super::severity::{Level, Scan};
use super::units::Unit;
use super::{Class, log};

/// Returns a line without its number, as `cat -n` and file tools print it: `  12\t`, `  12→`, `12: `, `12|`, `12-`; the tab may be
/// spelled out, in a JSON string.
pub fn without_number(line: &str) -> Option<&str> {
    let spaces = line.bytes().take_while(|byte| matches!(byte, b' ' | b'\t')).count();
    let start = &line[spaces..];
    let digits = start.bytes().take_while(u8::is_ascii_digit).count();
    if digits == 0 || digits > 7 {
        return None;
    }
    let rest = &start[digits..];
    let rest = ["\t", "→", "| ", "|", ": ", ":\t", "\\t"].iter().find_map(|behind| rest.strip_prefix(behind));
    // A search prints `12-` and `12:` around a hit in one file; `12:30` is a time.
    let marked =
        || start[digits..].strip_prefix(['-', ':']).filter(|rest| !rest.starts_with(|c: char| c.is_ascii_digit()));
    rest.or_else(marked).or_else(|| (start.len() == digits || &start[digits..] == ":").then_some(""))
}

/// Returns the number before a line, as [`without_number`] takes it off.
pub fn line_number(line: &str) -> Option<u64> {
    let start = without_number(line)?.len();
    let number = line[..line.len() - start].trim_start();
    number[..number.bytes().take_while(u8::is_ascii_digit).count()].parse().ok()
}

/// Returns whether a numbered line may be a hit of a search, the numbers of which are not those of lines.
pub fn may_be_hit(line: &str) -> bool {
    line.trim_start().trim_start_matches(|c: char| c.is_ascii_digit()).starts_with([':', '-'])
}

/// Returns whether a word starts a signature.
fn opens_signature(word: &str) -> bool {
    matches!(
        word,
        "def"
            | "class"
            | "fn"
            | "func"
            | "impl"
            | "struct"
            | "interface"
            | "export"
            | "enum"
            | "trait"
            | "type"
            | "function"
            | "module"
            | "package"
            | "namespace"
            | "public"
            | "private"
            | "protected"
            | "static"
            | "pub"
            | "abstract"
            | "async"
            | "macro_rules!"
            | "mod"
            | "record"
            | "object"
            | "protocol"
            | "extension"
            | "union"
            | "typedef"
            | "template"
            | "CREATE"
            | "defmodule"
            | "message"
    )
}

/// Returns whether a word starts another line of code.
fn opens_statement(word: &str) -> bool {
    matches!(
        word,
        "return"
            | "import"
            | "from"
            | "if"
            | "else"
            | "elif"
            | "for"
            | "while"
            | "let"
            | "const"
            | "var"
            | "use"
            | "try"
            | "except"
            | "catch"
            | "raise"
            | "throw"
            | "switch"
            | "case"
            | "match"
            | "await"
            | "yield"
            | "with"
            | "assert"
            | "#include"
            | "#define"
            | "self."
            | "this."
            | "print("
            | "console."
    )
}

/// Returns whether a word alone makes a line code.
fn opens_bare_statement(word: &str) -> bool {
    matches!(word, "return" | "import" | "raise" | "let" | "const" | "var" | "use")
}

/// Returns whether sampled lines, without numbers, are code.
pub fn is_code(lines: &[&str]) -> bool {
    if lines.len() < 2 {
        return false;
    }
    let (mut code, mut quotes, mut signatures) = (0, 0, 0);
    for (i, line) in lines.iter().enumerate() {
        let trimmed = line.trim();
        let is_signature = is_signature(trimmed);
        signatures += usize::from(is_signature);
        code += usize::from(is_signature || is_code_line(line, trimmed));
        // Pretty-printed JSON also ends lines with brackets.
        quotes += usize::from(trimmed.starts_with('"') || trimmed.ends_with("\","));
        let left = lines.len() - i - 1;
        if (code + left) * 10 < lines.len() * 4 || quotes * 2 >= lines.len() {
            return false;
        }
    }
    signatures > 0 || code * 10 >= lines.len() * 6
}

/// Returns whether a line without a signature is code.
fn is_code_line(line: &str, trimmed: &str) -> bool {
    let word = first_word(trimmed);
    trimmed.ends_with(['{', '}', ';', '('])
        || trimmed.ends_with("),")
        || trimmed.ends_with("):")
        || matches!(trimmed, ")" | "]" | "],")
        || (opens_bare_statement(word) && trimmed.split(' ').count() <= 4)
        || (opens_statement(word)
            && !trimmed.ends_with('.')
            && trimmed.contains(['(', '=', ':', ';', '"', '\'', '.', '{']))
        || is_comment(trimmed)
        || (line.starts_with([' ', '\t'])
            // "- call Ann (at noon)"
            && !trimmed.starts_with("- ")
            && (trimmed.ends_with(')') && trimmed.contains('(') || trimmed.contains(" = ")))
}

fn first_word(trimmed: &str) -> &str {
    let mut end = word_end(trimmed.as_bytes(), 0);
    while let Some(b'#' | b'!') = trimmed.as_bytes().get(end) {
        end = word_end(trimmed.as_bytes(), end + 1);
    }
    match trimmed.as_bytes().get(end) {
        Some(b'.' | b'(') if end > 0 => &trimmed[..=end],
        _ => &trimmed[..end],
    }
}

/// Returns whether a line, trimmed, opens a definition.
pub fn is_signature(trimmed: &str) -> bool {
    let word = first_word(trimmed).trim_end_matches('(');
    if opens_signature(word) && trimmed.len() > word.len() {
        let after = trimmed[word.len()..].trim_start();
        let names = after.starts_with(|c: char| c.is_alphanumeric() || matches!(c, '_' | '(' | '<' | '{' | '*' | '$'));
        let is_sentence =
            trimmed.ends_with('.') || (after.split(' ').count() > 6 && !trimmed.contains(['(', '{', '=', ':']));
        return names && !is_sentence;
    }
    // const f = (a) => {, let g = async function
    (word == "const" || word == "let") && (trimmed.ends_with("=> {") || trimmed.contains("function"))
}

fn is_comment(trimmed: &str) -> bool {
    matches!(
        trimmed.as_bytes(),
        [b'/', b'/' | b'*', ..]
            | [b'*', b' ' | b'/', ..]
            | [b'#', b' ', ..]
            | [b'-', b'-', ..]
            | [b';', b';', ..]
            | b"#"
            | b"*"
    ) || trimmed.starts_with("<!--")
}

/// Classes the units of code. Code that names an error reports none; a compiler's line in between does.
pub fn classes(text: &str, units: &[Unit], scans: &[Scan]) -> Vec<Class> {
    let mut class = Class::Plain;
    let mut classes: Vec<Class> = units
        .iter()
        .zip(scans)
        .map(|(unit, scan)| {
            if unit.opens {
                class = of_line(unit.line(text), scan);
            }
            class
        })
        .collect();
    log::neighbours(&mut classes);
    log::edges(&mut classes, (2, 2));
    classes
}

fn of_line(line: &str, scan: &Scan) -> Class {
    let trimmed = line.trim();
    match () {
        () if trimmed.is_empty() => Class::Noise,
        () if is_signature(trimmed) || trimmed.starts_with('@') => Class::Header,
        () if is_comment(trimmed) => {
            let is_note = ["TODO", "FIXME", "XXX", "HACK", "SAFETY", "NOTE"].iter().any(|note| trimmed.contains(note));
            if is_note { Class::Plain } else { Class::Noise }
        }
        () if is_report(line, scan) => Class::Error,
        () => Class::Plain,
    }
}

/// `error[E0308]: …`, `Traceback …`, `E   …`: what a compiler or a test prints at the start of a line.
fn is_report(line: &str, scan: &Scan) -> bool {
    let starts = ["error", "Error", "ERROR", "warning", "Traceback", "E  ", "FAIL", "fatal", "panic"];
    scan.level == Level::Leading && starts.iter().any(|start| line.starts_with(start))
}
