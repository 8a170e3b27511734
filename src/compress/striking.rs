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

/// A short result: its group and form, and whether its call failed.
struct Short {
    group: usize,
    form: String,
    line: String,
    has_failed: bool,
}

/// Returns by group how much its short results stand out, from 0 to 1: each less, the more there are. O(n) of short results.
pub fn striking(draft: &Draft<'_, '_>, groups: &[Group]) -> Vec<f32> {
    let mut strikes = vec![0.0_f32; groups.len()];
    if !is_on(Mechanism::Striking) {
        return strikes;
    }
    let mut by_tool: HashMap<&str, Vec<Short>> = HashMap::new();
    for (group, range) in groups.iter().enumerate() {
        for entry in (range.start..range.end).filter(|&entry| draft.is_result(entry)) {
            let tool = draft.call(entry).and_then(|call| call.name.as_ref()).map_or("", Text::as_str);
            let text = draft.sole_piece(entry).map(|piece| draft.text(entry, piece));
            if let Some(text) = text.filter(|text| text.len() <= MAX_BYTES) {
                let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
                let short = Short { group, form: form(text), line, has_failed: has_failed(text) };
                by_tool.entry(tool).or_default().push(short);
            }
        }
    }
    for shorts in by_tool.into_values().filter(|shorts| shorts.len() >= MANY) {
        let mut forms: HashMap<&str, usize> = HashMap::new();
        for short in &shorts {
            *forms.entry(&short.form).or_default() += 1;
        }
        let usual: usize = forms.values().filter(|&&of_form| of_form >= MANY).sum();
        let has_usual = count(usual) >= count(shorts.len()) * USUAL;
        let stands_out = |short: &&Short| short.has_failed || has_usual && forms[short.form.as_str()] < MANY;
        let found: Vec<&Short> = shorts.iter().filter(stands_out).collect();
        let mut odd = Vec::new();
        let mut by_form: BTreeMap<&str, Vec<&Short>> = BTreeMap::new();
        for short in shorts.iter().filter(|short| !short.has_failed && forms[short.form.as_str()] >= MANY) {
            by_form.entry(&short.form).or_default().push(short);
        }
        for alike in by_form.into_values() {
            let lines: Vec<String> = alike.iter().map(|short| short.line.clone()).collect();
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
