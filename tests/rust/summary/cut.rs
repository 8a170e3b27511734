//! Which messages a summary covers.

use nanobot_context::summary::cut::{keep_last, middle, rolling, static_buffer};

use crate::views::conversation;

#[test]
fn what_is_kept_begins_with_the_call_of_its_results() {
    let view = conversation("uacttua");
    assert_eq!(keep_last(&view, 0, 2), Some(5));
    assert_eq!(keep_last(&view, 0, 3), Some(2), "from the second result back to the call");
    assert_eq!(keep_last(&view, 0, 0), Some(7), "nothing is kept");
    assert_eq!(keep_last(&view, 0, 7), None);
    assert_eq!(keep_last(&view, 0, 99), None);
    assert_eq!(keep_last(&view, 5, 2), None, "nothing new");
    assert_eq!(keep_last(&[], 0, 0), None);
    assert_eq!(keep_last(&conversation("ttt"), 0, 1), None);
    assert_eq!(keep_last(&conversation("uac"), 0, 0), Some(2), "a call that waits for its result");
}

#[test]
fn a_static_buffer_is_cut_at_a_message_of_the_user() {
    let view = conversation(&"ua".repeat(30));
    assert_eq!(static_buffer(&view[..50], 0, 50, 10), None, "fifty are not above fifty");
    assert_eq!(static_buffer(&view[..51], 0, 50, 10), Some(40), "back from 41 to the user's message");
    assert_eq!(static_buffer(&view, 40, 50, 10), None, "of those that no summary covers");
    assert_eq!(static_buffer(&view, 40, 15, 10), Some(50));
    let long_round = conversation(&format!("u{}ua", "ct".repeat(40)));
    assert_eq!(static_buffer(&long_round, 0, 50, 10), Some(81), "forward, where there is none before");
    assert_eq!(static_buffer(&long_round[..80], 0, 50, 10), None, "one round stays whole");
    assert_eq!(static_buffer(&view, 0, 50, 0), Some(58));
    assert_eq!(static_buffer(&view, 90, 0, 0), None);
}

#[test]
fn a_rolling_summary_covers_whole_rounds() {
    let view = conversation(&"uact".repeat(12));
    assert_eq!(rolling(&view, 0, 10, 2), Some(40));
    assert_eq!(rolling(&view[..44], 0, 10, 2), None, "eleven rounds, nine of them to cover");
    assert_eq!(rolling(&view, 40, 2, 0), Some(48));
    assert_eq!(rolling(&view, 0, 0, 12), None);
    assert_eq!(rolling(&[], 0, 0, 0), None);
    assert_eq!(rolling(&conversation("uauc"), 0, 1, 0), Some(3));
}

#[test]
fn the_middle_parts_no_call_from_its_results() {
    let behind = |roles: &'static str| move |at: usize| roles.as_bytes()[at] == b't';
    assert_eq!(middle(5, 1, |_| false), Some(2));
    assert_eq!(middle(7, 1, |_| false), Some(3));
    assert_eq!(middle(9, 4, |_| false), Some(4));
    assert_eq!(middle(8, 2, behind("uacttttt")), Some(2));
    assert_eq!(
        middle(8, 4, behind("uctttttu")),
        Some(1),
        "small parts where there is no better place, the earlier of two"
    );
    assert_eq!(middle(4, 1, behind("cttt")), None);
    assert_eq!(middle(1, 1, |_| false), None);
    assert_eq!(middle(0, 1, |_| false), None);
}
