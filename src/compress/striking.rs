//! Finds short results that stand out among others of their tool: those of calls that failed, those that say something else, and those
//! of which a number or a word breaks the pattern of the others.
//!
//! Within one text the lines are compared (`src/text/segments/odd.rs`); a check of 200 hosts is 200 texts of a line each.

use std::collections::{BTreeMap, HashMap};

use crate::conversation::Group;
use crate::message::Text;
use crate::select::selector::CROWD;
use crate::select::{Mechanism, is_on};
use crate::text::bytes::has_digit;
use crate::text::estimate::count;
use crate::text::segments::odd_among;
use crate::tools::has_failed;

use super::draft::Draft;

/// Longer results are compared by their own lines.
const MAX_BYTES: usize = 600;

/// A tool has at least so many short results, and a form that is usual; and the share of them that have such forms.
const MANY: usize = 8;
const USUAL: f32 = 0.75;

/// How much one of a usual form stands out by its numbers, beside one that failed.
const ODD: f32 = 0.5;

/// A short result: its group and text, and whether its call failed.
struct Short<'t> {
    group: usize,
    text: &'t str,
    has_failed: bool,
}

/// Returns by group how much its short results stand out, from 0 to 1: each less, the more there are. O(n) of short results.
pub fn striking(draft: &Draft<'_, '_>, groups: &[Group]) -> Vec<f32> {
    let mut strikes = vec![0.0_f32; groups.len()];
    if !is_on(Mechanism::Striking) {
        return strikes;
    }
    let mut by_tool: HashMap<&str, Vec<Short<'_>>> = HashMap::new();
    for (group, range) in groups.iter().enumerate() {
        for entry in (range.start..range.end).filter(|&entry| draft.is_result(entry)) {
            let tool = draft.call(entry).and_then(|call| call.name.as_ref()).map_or("", Text::as_str);
            let text = draft.sole_piece(entry).map(|piece| draft.text(entry, piece));
            if let Some(text) = text.filter(|text| text.len() <= MAX_BYTES) {
                by_tool.entry(tool).or_default().push(Short { group, text, has_failed: has_failed(text) });
            }
        }
    }
    for shorts in by_tool.into_values().filter(|shorts| shorts.len() >= MANY) {
        let mut by_form: BTreeMap<String, Vec<&Short<'_>>> = BTreeMap::new();
        for short in &shorts {
            by_form.entry(form(short.text)).or_default().push(short);
        }
        let (usual, others): (Vec<_>, Vec<_>) = by_form.into_values().partition(|alike| alike.len() >= MANY);
        let has_usual = count(usual.iter().map(Vec::len).sum()) >= count(shorts.len()) * USUAL;
        let mut found: Vec<&Short<'_>> = shorts.iter().filter(|short| short.has_failed).collect();
        found.extend(others.into_iter().flatten().filter(|short| has_usual && !short.has_failed));
        let mut odd = Vec::new();
        for mut alike in usual {
            alike.retain(|short| !short.has_failed);
            let line = |short: &&Short<'_>| short.text.split_whitespace().collect::<Vec<_>>().join(" ");
            let lines: Vec<String> = alike.iter().map(line).collect();
            odd.extend(odd_among(&lines).into_iter().map(|nth| alike[nth]));
        }
        for (those, most) in [(found, 1.0), (odd, ODD)] {
            let strike = (CROWD / count(those.len())).min(1.0) * most;
            for Short { group, .. } in those {
                strikes[*group] = strikes[*group].max(strike);
            }
        }
    }
    strikes
}

/// Returns a text without the words that have digits.
fn form(text: &str) -> String {
    let words = text.split_whitespace().filter(|word| !has_digit(word));
    words.collect::<Vec<_>>().join(" ")
}
