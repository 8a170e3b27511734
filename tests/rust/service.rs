//! Sessions as a caller sees them, whatever the store.

use std::sync::Arc;

use nanobot_context::session::service::{EventDraft, Routing, Service, ServiceOptions, UserFirst, belongs};
use nanobot_context::session::store::{Delta, EventWindow, Memory, Scope, SessionKey, StoreError};

fn service(options: ServiceOptions) -> Service {
    Service::new(Arc::new(Memory::new()), options)
}

fn key() -> SessionKey {
    SessionKey::new("app", "me", "s")
}

fn delta(pairs: &[(&str, &str)]) -> Delta {
    pairs.iter().map(|(name, value)| ((*name).to_owned(), Some(value.as_bytes().to_vec()))).collect()
}

fn said(id: &str, role: &str) -> EventDraft {
    let payload = Some(format!(r#"{{"role": "{role}", "content": "{id}"}}"#));
    EventDraft { id: id.to_owned(), payload, ..EventDraft::default() }
}

fn shown(service: &Service, last: Option<u64>, user_first: UserFirst) -> Vec<String> {
    let session = service.get(&key(), &EventWindow { last, ..EventWindow::default() }, user_first).unwrap().unwrap();
    session.events.into_iter().map(|event| event.id).collect()
}

#[test]
fn a_session_begins_with_the_user() {
    let service = service(ServiceOptions::default());
    service.create(&key(), "g".to_owned(), Delta::new(), "{}".to_owned(), false).unwrap();
    let mut events = vec![said("hello", "assistant"), said("u1", "user")];
    events.extend((0..200).map(|at| said(&format!("a{at}"), "assistant")));
    service.append(&key(), None, None, events).unwrap();
    assert_eq!(shown(&service, Some(2), UserFirst::Off), ["a198", "a199"]);
    assert_eq!(shown(&service, Some(2), UserFirst::Drop), Vec::<String>::new());
    assert_eq!(shown(&service, Some(2), UserFirst::Prepend), ["u1", "a198", "a199"]);
    assert_eq!(shown(&service, None, UserFirst::Prepend)[0], "u1");
    assert_eq!(shown(&service, None, UserFirst::Off)[0], "hello");
}

#[test]
fn without_a_user_there_is_nothing_to_begin_with() {
    let service = service(ServiceOptions::default());
    service.create(&key(), "g".to_owned(), Delta::new(), "{}".to_owned(), false).unwrap();
    service.append(&key(), None, None, vec![said("a", "assistant")]).unwrap();
    assert_eq!(shown(&service, None, UserFirst::Prepend), Vec::<String>::new());
    assert_eq!(shown(&service, None, UserFirst::Off), ["a"]);
}

#[test]
fn what_says_nothing_changes_state_only() {
    let service = service(ServiceOptions::default());
    service.create(&key(), "g".to_owned(), Delta::new(), "{}".to_owned(), false).unwrap();
    let odd = |id: &str, payload: &str| EventDraft {
        id: id.to_owned(),
        payload: Some(payload.to_owned()),
        state: delta(&[(id, "1")]),
        ..EventDraft::default()
    };
    let events = vec![
        odd("empty", r#"{"role": "assistant", "content": ""}"#),
        odd("broken", "{"),
        EventDraft { partial: true, state: delta(&[("partial", "1")]), ..said("partial", "assistant") },
        odd("calls", r#"{"role": "assistant", "content": null, "tool_calls": [{"id": "1"}]}"#),
        odd("result", r#"{"role": "tool", "tool_call_id": "1", "content": ""}"#),
        odd("refusal", r#"{"role": "assistant", "content": null, "refusal": "I can't help with that."}"#),
        odd("audio", r#"{"role": "assistant", "content": null, "audio": {"id": "a"}}"#),
        odd("thoughts", r#"{"role": "assistant", "content": "", "thinking_blocks": [{"thinking": "t"}]}"#),
        odd("no thoughts", r#"{"role": "assistant", "content": "", "reasoning_content": "", "thinking_blocks": []}"#),
        odd("function", r#"{"role": "assistant", "content": null, "function_call": {"name": "f"}}"#),
        odd("data", r#"{"progress": 0.5, "n": 1, "big": 123456789012345678901234567890, "less": -1}"#),
        odd("half", r#"{"role": "user", "content": "a\ud800b"}"#),
        odd("deep", &format!(r#"{{"role": "user", "content": {}{}}}"#, "[".repeat(500), "]".repeat(500))),
    ];
    service.append(&key(), None, None, events).unwrap();
    assert_eq!(
        shown(&service, None, UserFirst::Off),
        ["calls", "result", "refusal", "audio", "thoughts", "function", "data", "half", "deep"]
    );
    let session = service.get(&key(), &EventWindow::default(), UserFirst::Off).unwrap().unwrap();
    assert_eq!(session.state.len(), 13, "the deltas of all of them");
}

#[test]
fn state_goes_where_its_name_says() {
    let service = service(ServiceOptions::default());
    let start = delta(&[("lang", "zh"), ("app:v", "1"), ("user:theme", "dark"), ("temp:x", "1")]);
    let session = service.create(&key(), "g".to_owned(), start, "{}".to_owned(), false).unwrap();
    assert_eq!(session.state.keys().collect::<Vec<_>>(), ["app:v", "lang", "user:theme"]);
    let app = Scope::App("app".to_owned());
    service.update_state(&app, delta(&[("app:v", "2"), ("w", "3")])).unwrap();
    assert_eq!(service.state(&app).unwrap().keys().collect::<Vec<_>>(), ["v", "w"]);
    for wrong in ["user:x", "temp:x", "app:", ""] {
        let error = service.update_state(&app, delta(&[("a", "1"), (wrong, "1")]));
        assert!(matches!(error, Err(StoreError::Invalid { .. })), "{wrong}");
    }
    assert!(!service.state(&app).unwrap().contains_key("a"), "nothing of it was written");
    let raw = self::service(ServiceOptions { routing: Routing::Raw, ..ServiceOptions::default() });
    let session =
        raw.create(&key(), "g".to_owned(), delta(&[("app:v", "1"), ("temp:x", "1")]), String::new(), false).unwrap();
    assert_eq!(session.state.keys().collect::<Vec<_>>(), ["app:v", "temp:x"]);
}

#[test]
fn a_key_has_no_empty_part() {
    let service = service(ServiceOptions::default());
    for (key, name) in [
        (SessionKey::new("", "u", "s"), "`app`"),
        (SessionKey::new("a", "", "s"), "`user`"),
        (SessionKey::new("a", "u", ""), "`session_id`"),
    ] {
        let error = service.get(&key, &EventWindow::default(), UserFirst::Off).unwrap_err().to_string();
        assert!(error.starts_with(name), "{error}");
    }
}

#[test]
fn filter_keys_belong_to_their_levels_in_both_directions() {
    for (event, wanted, is_in) in [
        ("a/b", "a", true),
        ("a", "a/b", true),
        ("a/b", "a/c", false),
        ("ab", "a", false),
        ("", "a", true),
        ("a", "", true),
    ] {
        assert_eq!(belongs(event, wanted), is_in, "{event} {wanted}");
    }
}
