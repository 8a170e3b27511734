//! URLs of session stores: any text is read or refused, and no error repeats a password.

#![no_main]

use libfuzzer_sys::fuzz_target;
use nanobot_context::session::store;

const PASSWORD: &str = "hunter2-Xq";

fuzz_target!(|case: (u8, &str, &str)| {
    let (form, before, behind) = case;
    if before.contains(PASSWORD) || behind.contains(PASSWORD) {
        return;
    }
    let url = match form % 4 {
        0 => format!("{before}{behind}"),
        1 => format!("sqlite:///{before}{behind}"),
        2 => format!("redis://{before}:{PASSWORD}@{behind}"),
        _ => format!("rediss://{before}{PASSWORD}{behind}"),
    };
    match store::read_url(&url) {
        Ok(described) if form % 4 == 2 && !before.contains('@') => {
            assert!(!described.contains(PASSWORD), "{described}");
        }
        Err(error) if form % 4 != 0 => assert!(!error.to_string().contains(PASSWORD), "{error}"),
        _ => {}
    }
});
