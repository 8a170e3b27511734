//! Lists what the model concluded beside calls that are left out.

use std::collections::HashSet;

use super::CallLine;
use crate::compress::fit::Fit;
use crate::conversation::Group;
use crate::message::Role;
use crate::select::selector::Selector;
use crate::select::{Mechanism, is_on};
use crate::text::commitments::{OPENED, commitments};
use crate::text::conclusions::{before_call, conclusions};
use crate::text::elision;
use crate::text::estimate::count;
use crate::text::ledger::{on_one_line, said_line};

/// Share of the room for these lines: of what is left, or what look-ups of a long last round leave them. Of 40 conclusions of 28 tokens
/// beside 120 calls, steps in a window of 16,000 keep 34 to 40 with this, 24 to 35 with 0.15, 14 to 18 without such lines; recall at 25,
/// 50 and 75 % is .754, .910 and .981 with it, .754, .908 and .985 without.
const SHARE: f32 = 0.2;
/// The newest that come before what was corrected, decided or promised: that may not hold any more.
const NEWEST_FIRST: usize = 8;
/// About so many bytes are a token, and so many tokens stand around each.
const BYTES_OF_TOKEN: f32 = 4.0;
const AROUND: f32 = 6.0;
/// Most characters of one.
const MAX_CHARS: usize = 240;

/// What the model concludes in a message with calls.
pub struct Conclusion {
    pub group: usize,
    pub entry: usize,
    /// On one line; `None` if a newer message says the same, or a line cannot show it.
    line: Option<String>,
}

impl Fit<'_, '_, '_> {
    /// Returns what the model concludes in messages with calls before the newest, the newest first.
    pub fn conclusions(&self) -> Vec<Conclusion> {
        let mut seen = HashSet::new();
        let calling =
            self.before_newest().rev().filter(|(_, group)| group.role == Role::Assistant && !self.is_reply(*group));
        let concluded = calling.filter_map(|(group, Group { start: entry, .. })| {
            let is_called = self.draft.is_called_in_words(entry);
            let words = |text| if is_called { before_call(text) } else { text };
            let said = self.draft.contents(entry).map(words).flat_map(conclusions);
            let said = on_one_line(&said.collect::<Vec<_>>().join(" "), MAX_CHARS);
            if said.is_empty() {
                return None;
            }
            let is_shown = elision::can_show(&said) && seen.insert(said.clone());
            Some(Conclusion { group, entry, line: is_shown.then_some(said) })
        });
        concluded.collect()
    }

    /// Returns about how many tokens their lines would have, at most their share of the room.
    pub fn conclusions_tokens(&self, concluded: &[Conclusion]) -> f32 {
        let lines = concluded.iter().filter_map(|conclusion| conclusion.line.as_ref());
        let tokens: f32 = lines.map(|line| count(line.len()) / BYTES_OF_TOKEN + AROUND).sum();
        tokens.min(self.room_beside_newest() * SHARE)
    }

    /// Lists those whose messages are not taken: the newest, then what was corrected, decided or promised, then the rest, newest
    /// first. A line costs a third of the message with its calls and results at their shortest, and says more than the results of a
    /// long last round.
    ///
    /// Its room is not given back where the message is taken after all: calls that were as much cheaper would be taken for it.
    pub fn list_conclusions(&mut self, selector: &mut Selector<'_>, concluded: Vec<Conclusion>) {
        if !is_on(Mechanism::Ledger) {
            return;
        }
        let free = self.room - selector.used();
        let mut left = (free * SHARE).max(self.conclusions_tokens(&concluded).min(free));
        let closed = concluded.into_iter().filter(|conclusion| !selector.is_open(conclusion.group));
        let line = |Conclusion { group, entry, line }: Conclusion| Some((group, entry, line?));
        let mut lines: Vec<(usize, usize, String)> = closed.filter_map(line).collect();
        let commits = |said: &str| commitments(said).iter().any(|one| one.certainty >= OPENED);
        let older = NEWEST_FIRST.min(lines.len());
        lines[older..].sort_by_cached_key(|(.., said)| !commits(said));
        for (group, entry, said) in lines {
            if left <= 0.0 {
                break;
            }
            let text = said_line(&said, self.draft.language());
            let tokens = self.line_tokens(&text);
            if tokens <= left {
                left -= tokens;
                selector.reserve(tokens);
                self.listed.concluded.push(CallLine::new(Some(group), entry, text, tokens));
            }
        }
    }
}
