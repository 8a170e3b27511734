//! When a summary is due.

use nanobot_context::summary::Comparison::{Above, AtLeast};
use nanobot_context::summary::{Observed, Trigger};
use nanobot_context::tokens::Tokens;

const SEEN: Observed = Observed { messages: 20, tokens: Tokens(4_000), idle_seconds: 300.0 };

#[test]
fn the_comparison_is_part_of_the_check() {
    assert_eq!(Trigger::Messages(Above, 20).fires(&SEEN), None);
    assert_eq!(Trigger::Messages(AtLeast, 20).fires(&SEEN), Some("message_limit"));
    assert_eq!(Trigger::Tokens(Above, Tokens(4_000)).fires(&SEEN), None);
    assert_eq!(Trigger::Tokens(AtLeast, Tokens(4_000)).fires(&SEEN), Some("token_limit"));
    assert_eq!(Trigger::Idle(Above, 300.0).fires(&SEEN), None);
    assert_eq!(Trigger::Idle(Above, 299.0).fires(&SEEN), Some("idle"));
}

#[test]
fn checks_are_joined_by_any_all_and_not() {
    let (yes, no) = (Trigger::Tokens(AtLeast, Tokens(1)), Trigger::Messages(Above, 100));
    let any = Trigger::Any(vec![no.clone(), yes.clone()]);
    assert_eq!(any.fires(&SEEN), Some("token_limit"));
    assert_eq!(Trigger::All(vec![yes.clone(), no.clone()]).fires(&SEEN), None);
    assert_eq!(Trigger::All(vec![yes.clone(), !no.clone()]).fires(&SEEN), Some("token_limit"));
    assert_eq!((!yes).fires(&SEEN), None);
    assert_eq!((!no).fires(&SEEN), Some("not"));
}

#[test]
fn all_of_none_is_always_and_any_of_none_never() {
    assert_eq!(Trigger::All(vec![]).fires(&SEEN), Some("always"));
    assert_eq!(Trigger::Any(vec![]).fires(&SEEN), None);
    assert_eq!(Trigger::All(vec![]).fires(&Observed::default()), None, "no message, no summary");
}
