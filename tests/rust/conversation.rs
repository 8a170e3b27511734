//! Groups, the last message of the user, and where a conversation may be cut.

use nanobot_context::conversation::{groups, last_user_index, request_index, safe_cut_point};
use nanobot_context::{Message, Role};

use crate::views::conversation;

#[test]
fn a_cut_never_parts_a_call_from_its_results() {
    let messages = conversation("sucttacttua");
    for keep in 0..=messages.len() + 1 {
        let cut = safe_cut_point(&messages, keep);
        assert!(cut == messages.len() || messages[cut].role != Role::Tool, "keep {keep} cuts at {cut}");
        assert!(cut <= messages.len().saturating_sub(keep));
    }
    assert_eq!(safe_cut_point(&messages, 3), 5);
    assert_eq!(safe_cut_point(&messages, 2), 9);
    assert_eq!(safe_cut_point(&[], 2), 0);
}

#[test]
fn the_last_round_starts_at_the_last_message_a_user_wrote() {
    assert_eq!(last_user_index(&conversation("suauctt")), Some(3));
    assert_eq!(last_user_index(&conversation("sa")), None);
    let note = "[3 messages left out]";
    let mut messages = conversation("suctt");
    messages.insert(2, Message::new(Role::User, note));
    assert_eq!(last_user_index(&messages), Some(1));
}

#[test]
fn results_belong_to_the_group_of_their_call() {
    let bounds: Vec<_> =
        groups(conversation("sucttact").iter().map(|m| m.role)).iter().map(|g| (g.start, g.end)).collect();
    assert_eq!(bounds, [(0, 1), (1, 2), (2, 5), (5, 6), (6, 8)]);
}

#[test]
fn who_answers_a_question_goes_on_with_the_request_before() {
    let ask = |role, text| Message::new(role, text);
    let messages = [
        ask(Role::User, "Sort the photos."),
        ask(Role::Assistant, "Done."),
        ask(Role::User, "Exchange the lamp, please."),
        ask(Role::Assistant, "Which variant? It comes in three."),
        ask(Role::User, "Black."),
        ask(Role::Assistant, "支付方式？"),
        ask(Role::User, "My gift card."),
    ];
    assert_eq!(request_index(&messages, 6), 2);
    assert_eq!(request_index(&messages, 2), 2);
    // It asked long before the end.
    let lecture = format!("Which? {}", "It is so. ".repeat(40));
    let messages = [ask(Role::User, "Go on."), ask(Role::Assistant, &lecture), ask(Role::User, "Thanks.")];
    assert_eq!(request_index(&messages, 2), 2);
}
