//! What is shown of a store's address.

use nanobot_context::session::store::{mask_credentials, without_credentials};

#[test]
fn of_a_store_url_no_login_is_shown() {
    for (url, shown) in [
        ("redis://worker:SECRET@cache:6379/0", "redis://cache:6379/0"),
        ("rediss://:SECRET@[::1]:6379/0?ca=/a.pem", "rediss://[::1]:6379/0"),
        ("redis://cache", "redis://cache"),
        ("redis://[::1]", "redis://[::1]"),
        ("redis://u:SEC@RE/T@cache", "redis://cache"),
        ("redis:/worker:SECRET@cache:6379/0", "redis:***"),
        ("redis:worker:SECRET@cache", "redis:***"),
        ("redis//worker:SECRET@cache", "redis//worker:***"),
        ("Redis://u:SECRET@cache", "Redis://cache"),
        ("redis://worker:SECRET", "redis:***"),
        ("redis://u:SEC?RET@cache", "redis://cache"),
        ("redis://cache/0#SECRET", "redis:***"),
        ("memory:SECRET", "memory:***"),
        ("memory:", "memory:"),
        ("postgres://u:SECRET@db/x", "postgres:***"),
        ("worker:SECRET@cache", "worker:***"),
        ("SECRET@cache", "***"),
        ("yes", "yes"),
        ("sqlite:///home/me@work/s.db?x=SECRET", "sqlite:///home/me@work/s.db"),
        ("sqlite:/u:SECRET@x", "sqlite:***"),
    ] {
        assert_eq!(without_credentials(url), shown, "{url}");
    }
}

#[test]
fn of_a_text_what_logs_in_is_masked() {
    for (text, shown) in [
        ("redis:/worker:SECRET@cache:6379/0", "redis:/***@cache:6379/0"),
        ("['redis://u:SEC RET@h']", "['redis://***@h']"),
        ("“x:SEC@RET@h”", "“x:***@h”"),
        ("a: me@x, redis://u:SECRET@h", "a: me@x, redis://***@h"),
        ("sqlite:///home/me@work/s.db", "sqlite:///home/me@work/s.db"),
        ("cli:direct", "cli:direct"),
        ("me@x", "me@x"),
        ("x:@h", "x:@h"),
    ] {
        assert_eq!(mask_credentials(text), shown, "{text}");
    }
}
