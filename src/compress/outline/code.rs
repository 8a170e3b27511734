//! Source code: its signatures, its comments.

use super::Class;
use super::log;
use super::units::Unit;
use super::words::{Level, scan};

/// Returns a line without the number that `cat -n` and tools that read files put before it: `  12\t`, `  12→`, `12: `,
/// `12|`, `12-`.
pub fn without_number(line: &str) -> Option<&str> {
    let start = line.trim_start_matches([' ', '\t']);
    let digits = start.bytes().take_while(u8::is_ascii_digit).count();
    if digits == 0 || digits > 7 {
        return None;
    }
    let rest = &start[digits..];
    let rest =
        rest.strip_prefix(['\t', '→', '|']).or_else(|| rest.strip_prefix(": ")).or_else(|| rest.strip_prefix(":\t"));
    // What a search prints around a hit in one file: `12-`, `12:`; `12:30` is a time.
    let marked =
        || start[digits..].strip_prefix(['-', ':']).filter(|rest| !rest.starts_with(|c: char| c.is_ascii_digit()));
    rest.or_else(marked).or_else(|| (start.len() == digits || &start[digits..] == ":").then_some(""))
}

/// Words that begin the signature of something.
const SIGNATURES: [&str; 34] = [
    "def",
    "class",
    "fn",
    "func",
    "impl",
    "struct",
    "interface",
    "export",
    "enum",
    "trait",
    "type",
    "function",
    "module",
    "package",
    "namespace",
    "public",
    "private",
    "protected",
    "static",
    "pub",
    "abstract",
    "async",
    "macro_rules!",
    "mod",
    "record",
    "object",
    "protocol",
    "extension",
    "union",
    "typedef",
    "template",
    "CREATE",
    "defmodule",
    "message",
];

/// Words that begin other lines of code.
const STATEMENTS: [&str; 30] = [
    "return", "import", "from", "if", "else", "elif", "for", "while", "let", "const", "var", "use", "try", "except",
    "catch", "raise", "throw", "switch", "case", "match", "await", "yield", "with", "assert", "#include", "#define",
    "self.", "this.", "print(", "console.",
];

/// Words that begin a line of code even when nothing else in it looks like code.
const BARE_STATEMENTS: [&str; 7] = ["return", "import", "raise", "let", "const", "var", "use"];

/// Returns whether sampled lines, their numbers taken off, are code.
pub fn is_code(lines: &[&str]) -> bool {
    let is_line = |line: &&&str| {
        let trimmed = line.trim();
        let word = first_word(trimmed);
        trimmed.ends_with(['{', '}', ';'])
            || trimmed.ends_with("),")
            || trimmed.ends_with("):")
            || trimmed.ends_with('(')
            || matches!(trimmed, ")" | ");" | "]" | "],")
            || is_signature(trimmed)
            || (BARE_STATEMENTS.contains(&word) && trimmed.split(' ').count() <= 4)
            || (STATEMENTS.contains(&word)
                && !trimmed.ends_with('.')
                && trimmed.contains(['(', '=', ':', ';', '"', '\'', '.', '{']))
            || is_comment(trimmed)
            || (line.starts_with([' ', '\t'])
                && (trimmed.contains(" = ") || trimmed.contains('(') && trimmed.ends_with(')')))
    };
    let is_quote = |line: &&&str| line.trim_end().ends_with("\",") || line.trim_start().starts_with('"');
    let code = lines.iter().filter(is_line).count();
    let quotes = lines.iter().filter(is_quote).count();
    let signatures = lines.iter().filter(|line| is_signature(line.trim())).count();
    // Pretty-printed JSON has brackets at its ends, too.
    code * 10 >= lines.len() * 4
        && lines.len() >= 2
        && quotes * 2 < lines.len()
        && (signatures > 0 || code * 10 >= lines.len() * 6)
}

fn first_word(trimmed: &str) -> &str {
    let end =
        trimmed.find(|c: char| !(c.is_ascii_alphanumeric() || matches!(c, '_' | '#' | '!'))).unwrap_or(trimmed.len());
    match trimmed.as_bytes().get(end) {
        Some(b'.' | b'(') if end > 0 => &trimmed[..=end],
        _ => &trimmed[..end],
    }
}

/// Returns whether a line, trimmed, opens a definition.
fn is_signature(trimmed: &str) -> bool {
    let word = first_word(trimmed).trim_end_matches('(');
    if SIGNATURES.contains(&word) && trimmed.len() > word.len() {
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
    ["//", "/*", "* ", "*/", "# ", "--", "<!--", ";;"].iter().any(|open| trimmed.starts_with(open))
        || matches!(trimmed, "#" | "*")
}

/// Classes the units of code. A line of code that names an error reports none; a compiler's line between them does.
pub fn classes(text: &str, units: &[Unit], is_numbered: bool) -> Vec<Class> {
    let mut class = Class::Plain;
    let mut classes: Vec<Class> = units
        .iter()
        .map(|unit| {
            let line = unit.line(text);
            if unit.opens {
                let bare = without_number(line).filter(|_| is_numbered).unwrap_or(line);
                class = of_line(bare);
            }
            class
        })
        .collect();
    log::neighbours(&mut classes);
    log::edges(&mut classes, (2, 2));
    classes
}

fn of_line(line: &str) -> Class {
    let trimmed = line.trim();
    match () {
        () if trimmed.is_empty() => Class::Noise,
        () if is_signature(trimmed) || trimmed.starts_with('@') => Class::Header,
        () if is_comment(trimmed) => {
            let is_note = ["TODO", "FIXME", "XXX", "HACK", "SAFETY", "NOTE"].iter().any(|note| trimmed.contains(note));
            if is_note { Class::Plain } else { Class::Noise }
        }
        () if is_report(line) => Class::Error,
        () => Class::Plain,
    }
}

/// `error[E0308]: …`, `Traceback …`, `E   …`: what a compiler or a test prints at the start of a line.
fn is_report(line: &str) -> bool {
    let starts = ["error", "Error", "ERROR", "warning", "Traceback", "E  ", "FAIL", "fatal", "panic"];
    starts.iter().any(|start| line.starts_with(start)) && scan(line.as_bytes(), false).level == Level::Leading
}
