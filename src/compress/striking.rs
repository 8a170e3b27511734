//! Finds short results that stand out among others of their tool: those of calls that failed, and those that say something else.
//!
//! Within one text the lines are compared (`src/text/segments/odd.rs`); a check of 200 hosts is 200 texts of a line each.

use std::collections::HashMap;

use crate::conversation::Group;
use crate::message::Text;
use crate::select::selector::CROWD;
use crate::select::{Mechanism, is_on};
use crate::text::bytes::has_digit;
use crate::text::estimate::count;
use crate::tools::has_failed;

use super::draft::Draft;

/// Longer results are compared by their own lines.
const MAX_BYTES: usize = 400;

/// A tool has at least so many short results, and a form that is usual; and the share of them that have such forms.
const MANY: usize = 8;
const USUAL: f32 = 0.75;

/// A short result: its group and form, and whether its call failed.
struct Short {
    group: usize,
    form: String,
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
                let short = Short { group, form: form(text), has_failed: has_failed(text) };
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
        let strike = (CROWD / count(found.len())).min(1.0);
        for Short { group, .. } in found {
            strikes[*group] = strikes[*group].max(strike);
        }
    }
    strikes
}

/// Returns a text without the words that have digits.
fn form(text: &str) -> String {
    let words = text.split_whitespace().filter(|word| !has_digit(word));
    words.collect::<Vec<_>>().join(" ")
}
