//! Classes unified diffs.

use super::Class;
use super::units::Unit;

/// Returns whether the sampled lines come from a diff.
pub fn is_diff(lines: &[&str]) -> bool {
    let has = |start: &str| lines.iter().any(|line| line.starts_with(start));
    let hunks = lines.iter().filter(|line| is_hunk(line)).count();
    let changes = lines.iter().filter(|line| line.starts_with(['+', '-', ' '])).count();
    (has("diff --git ") || has("--- ") && has("+++ ")) && hunks > 0 && changes * 2 > lines.len()
}

fn is_hunk(line: &str) -> bool {
    line.starts_with("@@ -") || line.starts_with("@@@ ")
}

/// Classes the units of a diff: headers of files and hunks, changed lines, context.
pub fn classes(text: &str, units: &[Unit]) -> Vec<Class> {
    let mut class = Class::Plain;
    let mut in_hunk = false;
    units
        .iter()
        .map(|unit| {
            let line = unit.line(text);
            if unit.opens {
                in_hunk = is_hunk(line) || (in_hunk && !line.starts_with("diff "));
                class = match line {
                    _ if is_hunk(line) || line.starts_with("diff ") => Class::Header,
                    _ if !in_hunk && (line.starts_with("--- ") || line.starts_with("+++ ")) => Class::Header,
                    _ if line.starts_with("--- a/") || line.starts_with("+++ b/") => Class::Header,
                    _ if line.starts_with("index ") => Class::Noise,
                    _ if line.starts_with(['+', '-']) && line.trim_end().len() > 1 => Class::Outlier,
                    _ if line.trim().is_empty() || matches!(line, "+" | "-") => Class::Noise,
                    _ => Class::Plain,
                };
            }
            class
        })
        .collect()
}
