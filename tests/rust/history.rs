//! Which messages of a session go into the next request.

use nanobot_context::history::select;
use nanobot_context::tokens::REPLY;
use nanobot_context::tokens::Tokens;
use nanobot_context::{Message, Role, TokenCounter};

use crate::views::{call, result};

#[test]
fn whole_rounds_within_the_budget_and_no_orphans() {
    let counter = TokenCounter::new(None);
    let view = [
        result("lost", "ok"),
        Message::new(Role::Assistant, "left from before"),
        Message::new(Role::User, "one"),
        call("a", "f", "{}"),
        result("a", "ok"),
        Message::new(Role::Assistant, "done"),
        Message::new(Role::User, "two"),
        call("b", "f", "{}"),
        Message::new(Role::User, "three"),
        result("b", "ok"),
        Message::new(Role::Assistant, "ok"),
    ];
    assert_eq!(select(&view, Tokens::MAX, &counter), [2, 3, 4, 5, 6, 8, 10]);
    assert_eq!(select(&view, Tokens::ZERO, &counter), Vec::<usize>::new());
    assert_eq!(select(&[], Tokens(100), &counter), Vec::<usize>::new());
    for max_tokens in 0..120 {
        let picked = select(&view, Tokens(max_tokens), &counter);
        let tokens: u64 = picked.iter().map(|&i| counter.message(&view[i]).0).sum();
        assert!(picked.is_empty() || tokens + REPLY.0 <= max_tokens);
        assert!(picked.first().is_none_or(|&i| view[i].role == Role::User));
    }
}
