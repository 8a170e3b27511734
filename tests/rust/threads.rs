//! Many threads at once: the caches are shared, the results are not.

use std::thread;

use nanobot_context::compress::{self, Limits, Plan, Request};
use nanobot_context::tokens::Tokens;
use nanobot_context::{Role, TokenCounter};

use crate::owned::{Owned, view};
use crate::texts::KINDS;

const THREADS: u64 = 8;

fn conversation(seed: u64) -> Vec<Owned> {
    let mut messages = vec![Owned::new(Role::System, "rules")];
    for (i, kind) in KINDS.iter().enumerate() {
        let id = format!("call_{i}");
        messages.push(Owned::new(Role::User, kind.text(200, seed)));
        messages.push(Owned::calling(&[&id], "read_file", r#"{"path": "a.py"}"#));
        messages.push(Owned::result(&id, "read_file", kind.text(3_000, seed + 1)));
    }
    messages
}

fn work(seed: u64) -> Vec<(u64, Plan)> {
    let messages = conversation(seed);
    let models = [None, Some("gpt-4"), Some("claude-opus-4-5")];
    let done = models.into_iter().map(|model| {
        let view = view(&messages);
        let tokens = TokenCounter::new(model).prompt(&view, None).tokens.0;
        let limits = Limits::default();
        let request = Request { limits, ..Request::new(model, None, Tokens(tokens / 2)) };
        (tokens, compress::compress(&view, &request).unwrap().unwrap())
    });
    done.collect()
}

#[test]
fn counting_and_compressing_at_once_gives_the_same_results() {
    thread::scope(|scope| {
        // Two threads on each conversation, so that they race for the same entries of the caches.
        let running: Vec<_> = (0..THREADS).map(|i| scope.spawn(move || (i / 2, work(i / 2)))).collect();
        for thread in running {
            let (seed, plans) = thread.join().unwrap();
            assert_eq!(plans, work(seed));
        }
    });
}
