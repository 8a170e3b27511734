//! Classes what a compiler reports with the code that it is about: an error comes with its excerpt, before all warnings.

use super::Class;
use super::log::is_hit;
use super::units::Unit;

/// With more errors an excerpt is one of many.
const MAX_ERRORS: usize = 8;
/// Most lines of an error's excerpt, with its notes.
const MAX_LINES: usize = 40;

/// What a line starts.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Message {
    Error,
    Warning,
}

/// Returns whether a line shows code of a report: `12 | let x`, `| ^^^`, `--> src/a.rs:1:2`.
pub fn is_excerpt(line: &str) -> bool {
    let start = line.trim_start();
    let behind = start.trim_start_matches(|c: char| c.is_ascii_digit()).trim_start_matches(' ');
    let is_bar = behind.starts_with('|') && (start.len() < line.len() || behind.len() < start.len());
    is_bar || start.starts_with("--> ") || start.starts_with("::: ")
}

/// Returns whether a line is one of a report: an excerpt, the place of a message, a message or a note.
pub fn is_of_report(line: &str) -> bool {
    let said = without_place(line);
    is_excerpt(line) || said.len() < line.trim_start().len() || started_by(said).is_some() || explains(said)
}

/// Returns whether a line starts a message.
pub fn is_message(line: &str) -> bool {
    started_by(without_place(line)).is_some()
}

/// Returns the message that a line without its place starts: `error[E0382]: …`, `warning: …`.
fn started_by(said: &str) -> Option<Message> {
    let said = said.strip_prefix("fatal ").unwrap_or(said);
    let is = |word: &str| said.strip_prefix(word).is_some_and(|behind| behind.starts_with([':', '[']));
    if is("error") { Some(Message::Error) } else { is("warning").then_some(Message::Warning) }
}

/// Returns whether a line without its place explains the message above it.
fn explains(said: &str) -> bool {
    ["note:", "help:", "= "].iter().any(|start| said.starts_with(start))
}

/// Returns a line without `path:line:column: ` and spaces.
fn without_place(line: &str) -> &str {
    let said = is_hit(line).map_or(line, |(_, said)| said);
    let column = said.trim_start_matches(|c: char| c.is_ascii_digit());
    let said = if column.len() < said.len() { column.strip_prefix(':').unwrap_or(said) } else { said };
    said.trim_start()
}

/// Sets the excerpts and notes of errors to [`Class::Error`], and warnings beside errors to lines like others, if there are
/// errors, but few. Returns whether there are. O(n).
pub fn errors_first(text: &str, units: &[Unit], classes: &mut [Class]) -> bool {
    let messages: Vec<Option<Message>> = units.iter().map(|unit| started_by(without_place(unit.line(text)))).collect();
    let errors = messages.iter().filter(|message| **message == Some(Message::Error)).count();
    if errors == 0 || errors > MAX_ERRORS {
        return false;
    }
    let (mut of, mut lines) = (None, 0);
    for ((unit, message), class) in units.iter().zip(messages).zip(classes) {
        let line = unit.line(text);
        let goes_on = is_excerpt(line) || explains(without_place(line));
        if message.is_some() || !goes_on {
            (of, lines) = (message, 0);
        }
        lines += 1;
        match of {
            Some(Message::Error) if lines <= MAX_LINES => {
                // A bar alone says nothing.
                let says = message.is_some() || line.contains(|c: char| c.is_alphanumeric() || c == '^');
                *class = if says { Class::Error } else { Class::NearError };
            }
            Some(Message::Warning) if matches!(class, Class::Error | Class::NearError) => *class = Class::Plain,
            _ => {}
        }
    }
    true
}

#[cfg(test)]
mod tests {
    use crate::text::segments::{Class, Segments};

    /// Returns the lines of a text that stand out.
    fn standing_out(text: &str) -> Vec<&str> {
        let segments = Segments::of(text);
        let pieces = segments.pieces().iter().filter(|piece| piece.class == Class::Error);
        pieces.flat_map(|piece| text[piece.range()].lines()).collect()
    }

    #[test]
    fn an_error_comes_with_the_code_that_it_is_about_and_before_warnings() {
        let of = |message: &dyn Fn(usize) -> String| (0..30).map(message).collect::<String>();
        let warnings = of(&|i| {
            let place = format!("  --> src/main.rs:{i}:9\n   |\n{i} |     let x_{i} = 1;\n   |         ^^^\n\n");
            format!("warning: unused variable: `x_{i}`\n{place}")
        });
        let error = "error[E0382]: borrow of moved value: `names`\n  --> src/main.rs:99:2\n   |\n98 |     take(names);\n   |          ----- value moved here\n99 |     names\n   |     ^^^^^ value borrowed here after move\n";
        let found = standing_out(&[&warnings, error, "\n", &warnings].concat()).join("\n");
        assert!(found.contains("value moved here") && found.contains("E0382"), "{found}");
        assert!(!found.contains("unused"), "{found}");
        let gcc = of(&|i| format!("src/a.c:{i}:8: warning: unused variable\n   {i} |     int x;\n      |         ^\n"));
        let error = "src/b.c:15:29: error: no member named 'prize'\n   15 |     return o->prize;\n      |               ^~~~~\n";
        let found = standing_out(&[&gcc, error, &gcc].concat()).join("\n");
        assert!(
            found.contains("no member") && found.contains("return o->prize") && !found.contains("unused"),
            "{found}"
        );
    }

    #[test]
    fn the_progress_of_a_build_and_errors_of_one_kind_hide_no_error() {
        let of = |line: &dyn Fn(usize) -> String, count| (0..count).map(line).collect::<String>();
        let progress = of(&|i| format!("   Compiling crate_{i} v0.{i}.1\n"), 30);
        let message = |head: &str, i: usize, label: &str| {
            format!(
                "{head}\n  --> src/m{i}.rs:{i}:9\n   |\n{i} |     let x_{i} = f();\n   |         ^^^ {label}{i}\n\n"
            )
        };
        let warnings = of(&|i| message(&format!("warning: unused variable: `x_{i}`"), i, "help: use _x"), 12);
        let errors = of(&|i| message("error[E0308]: mismatched types", 50 + i, "expected T, found U"), 5);
        let end = "error: could not compile `acme` (lib) due to 5 previous errors; 24 warnings emitted\n";
        let found = standing_out(&[&progress, &warnings, &errors, &warnings, end].concat()).join("\n");
        for i in 50..55 {
            assert!(found.contains(&format!("let x_{i} =")) && found.contains(&format!("found U{i}")), "{i}: {found}");
        }
        assert!(!found.contains("unused"), "{found}");
    }
}
