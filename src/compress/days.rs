//! Finds the days that a message of the user means without their dates, and today, from which they count.

use jiff::civil::Date;

use crate::conversation::{is_own, own_words, said};
use crate::message::{Message, Role};
use crate::text::dates::first_day;
use crate::text::envelope;
use crate::text::references::{days_meant, today_in};

/// Returns the days that the message at `index` of a view means. Today is what its host says beside its words, or beside those of the
/// newest message of the user, else what the system message says; where nobody says it, there are none. `None` where the message means no
/// day, whatever today is. O(bytes of the message), and of the system message where it means a day.
pub(super) fn days_meant_by(view: &[Message<'_>], index: usize) -> Option<Vec<Date>> {
    let newest = || view.iter().rev().find(|message| is_own(message));
    let system = || view.iter().filter(|message| message.role == Role::System);
    let today = || {
        let beside = host_day(&said(&view[index])).or_else(|| host_day(&said(newest()?)));
        beside.or_else(|| system().find_map(|message| today_in(&said(message))))
    };
    days_meant(&own_words(&view[index]), today)
}

/// Returns the day that the host says before, behind or around the words of a user.
fn host_day(text: &str) -> Option<Date> {
    let blocks = envelope::host_blocks(text);
    let day = blocks.into_iter().find_map(|block| first_day(&text[block]));
    day.or_else(|| first_day(&text[..envelope::start(text)]))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn first_day(messages: &[(Role, &str)], index: usize) -> Option<String> {
        let view: Vec<Message<'_>> = messages.iter().map(|(role, text)| Message::new(*role, text)).collect();
        days_meant_by(&view, index)?.first().map(Date::to_string)
    }

    #[test]
    fn today_is_said_beside_the_words_or_by_the_system_message() {
        const ASKS: &str = "What's on on Thursday?";
        let behind =
            format!("{ASKS}\n\n[Runtime Context — metadata]\nCurrent Time: 2026-10-12 09:30\n[/Runtime Context]");
        let before = format!("[Runtime Context — metadata]\nCurrent Time: 2026-10-12 09:30\n\n{ASKS}");
        let timed = format!("[Message Time: 2026-10-12T09:30:00]\n{ASKS}");
        for asks in [&behind, &before, &timed] {
            let messages = [(Role::System, "Today is 2020-01-01."), (Role::User, asks)];
            assert_eq!(first_day(&messages, 1).as_deref(), Some("2026-10-15"), "{asks}");
        }
        let earlier = [(Role::User, ASKS), (Role::Assistant, "A concert."), (Role::User, &behind)];
        assert_eq!(first_day(&earlier, 0).as_deref(), Some("2026-10-15"));
        let system = [(Role::System, "# Bot\n\n## Current Time\n2026-10-12 09:30 (Monday)"), (Role::User, ASKS)];
        assert_eq!(first_day(&system, 1).as_deref(), Some("2026-10-15"));
        assert_eq!(first_day(&[(Role::User, ASKS)], 0), None);
    }
}
