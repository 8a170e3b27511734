//! Assigns messages to tiers of protection.
//!
//! System messages, the last message of the user and what the caller keeps are never cut. The newest group of calls and
//! results goes last, the rest of the last round before it, and everything older first.

use crate::conversation::{Group, groups, is_note, is_own, request_index};
use crate::message::{Message, Role};
use crate::tokens::Tokens;

use super::draft::{Draft, Entry};

/// The tiers of a draft.
pub struct Protection {
    pub groups: Vec<Group>,
    /// By group: its tier, or `None` if it is never cut.
    pub tiers: Vec<Option<Tier>>,
    pub last_user: Option<usize>,
    /// The entry of the last message that the user wrote: see [`is_own`].
    pub question: Option<usize>,
    /// The first entry since the user asked for what the last message is about.
    pub request: usize,
}

/// In the order in which they are given up.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Tier {
    Older,
    LastRound,
    Newest,
}

impl Protection {
    pub fn of(draft: &Draft<'_, '_>) -> Self {
        let entries = &draft.entries;
        let groups = groups(entries.iter().map(|entry| entry.role));
        let is_user = |&index: &usize| {
            entries[index].role == Role::User && draft.message(index).is_some_and(|message| !is_note(message))
        };
        let last_user = (0..entries.len()).rev().find(is_user);
        let wrote = |&index: &usize| draft.message(index).is_some_and(is_own);
        let question = (0..entries.len()).rev().find(wrote).or(last_user);
        let request = last_user.and_then(|last| entries[last].index()).map(|last| request_index(draft.view, last));
        let is_of_request = |entry: &Entry| request.is_some_and(|from| entry.index().is_some_and(|at| at >= from));
        let request = entries.iter().position(is_of_request).unwrap_or_default();
        let newest = groups.iter().rposition(|group| group.role != Role::System);
        let is_kept = |group: &Group| {
            let index = entries[group.start..group.end].iter().rev().find_map(Entry::index);
            index.is_some_and(|index| index >= draft.kept_from)
        };
        let tiers = groups
            .iter()
            .enumerate()
            .map(|(position, group)| {
                if group.role == Role::System || Some(group.start) == last_user || is_kept(group) {
                    None
                } else if last_user.is_some_and(|last| group.start < last) {
                    Some(Tier::Older)
                } else if Some(position) == newest {
                    Some(Tier::Newest)
                } else {
                    Some(Tier::LastRound)
                }
            })
            .collect();
        Self { groups, tiers, last_user, question, request }
    }

    /// Iterates over the groups of a tier, as (position, group).
    pub fn tier(&self, tier: Tier) -> impl DoubleEndedIterator<Item = (usize, Group)> + '_ {
        self.groups.iter().copied().enumerate().filter(move |(position, _)| self.tiers[*position] == Some(tier))
    }

    /// Returns whether a group is a message in words rather than a call, its results, or both.
    pub fn is_talk(draft: &Draft<'_, '_>, group: Group) -> bool {
        let calls = |message: &Message<'_>| !message.tool_calls.is_empty();
        group.end - group.start == 1
            && !draft.is_result(group.start)
            && !draft.message(group.start).is_some_and(calls)
            && !draft.is_called_in_words(group.start)
    }

    /// Returns the group of what the model said last before the user, where it said that in words.
    pub fn answered(&self, draft: &Draft<'_, '_>) -> Option<usize> {
        let (position, group) = self.tier(Tier::Older).rfind(|(_, group)| group.role != Role::User)?;
        (group.role == Role::Assistant && Self::is_talk(draft, group)).then_some(position)
    }

    /// Returns whether nothing was done yet for the last message of the user.
    pub fn is_asked_now(&self) -> bool {
        self.tier(Tier::Newest).next().is_none()
    }

    /// Returns the tokens of the parts that are never cut.
    pub fn floor(&self, draft: &Draft<'_, '_>) -> Vec<(&'static str, Tokens)> {
        let system = draft.entries.iter().filter(|entry| entry.role == Role::System).map(Entry::tokens).sum();
        let last_user = self.last_user.map_or(Tokens::ZERO, |index| draft.entries[index].tokens());
        let reply = crate::tokens::REPLY;
        let mut parts = vec![
            ("system", system),
            ("last_user", last_user),
            ("tools", draft.overhead_tokens - reply),
            ("framing", reply),
        ];
        if draft.kept_from < draft.view.len() {
            let stays = self.groups.iter().zip(&self.tiers).filter(|(_, tier)| tier.is_none());
            let kept =
                stays.map(|(group, _)| draft.entries[group.start..group.end].iter().map(Entry::tokens).sum::<Tokens>());
            parts.push(("kept", kept.sum::<Tokens>() - system - last_user));
        }
        parts
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compress::{Request, draft};
    use crate::text::elision;

    fn tiers(messages: &[(Role, &str)]) -> Vec<Option<Tier>> {
        let view: Vec<_> = messages.iter().map(|&(role, text)| Message::new(role, text)).collect();
        Protection::of(&draft(&view, &Request::new(None, None, Tokens::ZERO))).tiers
    }

    #[test]
    fn system_messages_and_the_last_message_of_the_user_are_never_cut() {
        use Role::{Assistant, System, User};
        let messages =
            [(System, "s"), (User, "one"), (Assistant, "a"), (User, "two"), (Assistant, "b"), (Assistant, "c")];
        let expected = [None, Some(Tier::Older), Some(Tier::Older), None, Some(Tier::LastRound), Some(Tier::Newest)];
        assert_eq!(tiers(&messages), expected);
        // A note is nobody's message.
        let note = elision::note(3, false, crate::text::language::Language::Other);
        let mut with_note = messages;
        with_note[5] = (User, note.as_str());
        assert_eq!(tiers(&with_note), expected);
    }

    #[test]
    fn without_a_user_only_the_newest_group_is_newer() {
        let tiers = tiers(&[(Role::Assistant, "a"), (Role::Assistant, "b"), (Role::System, "s")]);
        assert_eq!(tiers, [Some(Tier::LastRound), Some(Tier::Newest), None]);
    }
}
