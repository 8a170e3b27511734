//! Lists what the model concluded beside calls that are left out.

use std::collections::HashSet;

use super::CallLine;
use crate::compress::fit::Fit;
use crate::compress::protection::Protection;
use crate::conversation::Group;
use crate::message::Role;
use crate::select::selector::Selector;
use crate::select::{Mechanism, is_on};
use crate::text::commitments::{OPENED, commitments};
use crate::text::conclusions::conclusions;
use crate::text::elision;
use crate::text::estimate::count;
use crate::text::ledger::{on_one_line, said_line};

/// Share of the room left for these lines. Of 40 conclusions of 28 tokens beside 120 calls, steps in a window of 16,000 keep 34 to 40
/// with this, 24 to 35 with 0.15, 14 to 18 without such lines; recall at 25, 50 and 75 % is .755, .913 and .981 with it, .754, .908 and
/// .985 without.
const SHARE: f32 = 0.2;
/// The newest that come before what was corrected, decided or promised: that may not hold any more.
const NEWEST_FIRST: usize = 8;
/// About so many bytes are a token.
const BYTES_OF_TOKEN: f32 = 4.0;
/// Most characters of one.
const MAX_CHARS: usize = 240;

impl Fit<'_, '_, '_> {
    /// Lists what the model concluded in messages with calls that are not taken: the newest, then what it corrected, decided or
    /// promised, then the rest, newest first. A line costs a third of the message with its calls and results at their shortest, and
    /// says more than the results of a long last round.
    ///
    /// Its room is not given back where the message is taken after all: calls that were as much cheaper would be taken for it.
    pub fn list_conclusions(&mut self, selector: &mut Selector<'_>) {
        if !is_on(Mechanism::Ledger) {
            return;
        }
        let mut concluded: Vec<(bool, CallLine)> = Vec::new();
        let mut seen = HashSet::new();
        for (position, group) in self.calling().filter(|(position, _)| !selector.is_open(*position)) {
            let Some(said) = self.concluded(group.start) else { continue };
            if !seen.insert(said.clone()) {
                continue;
            }
            let commits = commitments(&said).iter().any(|commitment| commitment.certainty >= OPENED);
            let text = said_line(&said, self.draft.language());
            concluded.push((
                commits,
                CallLine { group: Some(position), entry: group.start, text, tokens: 0.0, shared: None },
            ));
        }
        let older = NEWEST_FIRST.min(concluded.len());
        concluded[older..].sort_by_key(|(commits, _)| !commits);
        let free = self.room - selector.used();
        let mut left = (free * SHARE).max(self.concluded_tokens().min(free));
        for (_, mut line) in concluded {
            if left <= 0.0 {
                break;
            }
            line.tokens = self.line_tokens(&line.text);
            if line.tokens <= left {
                left -= line.tokens;
                selector.reserve(line.tokens);
                self.listed.concluded.push(line);
            }
        }
    }

    /// Returns about how many tokens the lines of all conclusions would have, at most their share of the room: look-ups of a long last
    /// round leave them that.
    pub fn concluded_tokens(&self) -> f32 {
        let most = self.room_beside_newest() * SHARE;
        let mut tokens = 0.0;
        for (_, group) in self.calling() {
            tokens += self.concluded(group.start).map_or(0.0, |said| count(said.len()) / BYTES_OF_TOKEN);
            if tokens >= most {
                return most;
            }
        }
        tokens
    }

    /// Returns the messages with calls, the newest first.
    fn calling(&self) -> impl Iterator<Item = (usize, Group)> {
        let is_calling = |group: Group| group.role == Role::Assistant && !Protection::is_talk(self.draft, group);
        self.before_newest().rev().filter(move |(_, group)| is_calling(*group))
    }

    /// Returns what the model concludes in a message, on one line.
    fn concluded(&self, entry: usize) -> Option<String> {
        let pieces = self.draft.entries[entry].pieces.iter().enumerate().filter(|(_, piece)| piece.slot.is_content());
        let said: Vec<&str> = pieces.flat_map(|(piece, _)| conclusions(self.draft.text(entry, piece))).collect();
        let line = on_one_line(&said.join(" "), MAX_CHARS);
        (!line.is_empty() && elision::can_show(&line)).then_some(line)
    }
}
