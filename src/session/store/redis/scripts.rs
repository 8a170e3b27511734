//! The scripts and their arguments.

use std::sync::LazyLock;

use redis::{Cmd, cmd};

use super::super::{Delta, KEPT_IDS, NewEvent, Ttl};
use super::packed;

/// Larger numbers are clamped to this: Lua's are exact up to 2⁵³.
pub const MOST: u64 = 1 << 52;

/// A script that a server knows by its hash once it has seen it.
pub struct LuaScript {
    code: String,
    hash: String,
}

impl LuaScript {
    fn new(code: &'static str) -> Self {
        let code = format!("local KEPT_IDS = {KEPT_IDS}\n{code}");
        let hash = redis::Script::new(&code).get_hash().to_owned();
        Self { code, hash }
    }

    /// Returns the command that runs it: by hash, or with its text for a server that forgot it.
    pub fn command(&self, with_code: bool) -> Cmd {
        if with_code { cmd("EVAL").arg(&self.code).take() } else { cmd("EVALSHA").arg(&self.hash).take() }
    }
}

macro_rules! script {
    ($($name:ident = $($file:literal),+;)+) => {$(
        #[doc = concat!("See `scripts/", stringify!($name), ".lua`, in lower case.")]
        pub static $name: LazyLock<LuaScript> =
            LazyLock::new(|| LuaScript::new(concat!(include_str!("scripts/common.lua"), $(include_str!($file)),+)));
    )+};
}

script! {
    CREATE = "scripts/session.lua", "scripts/create.lua";
    APPEND = "scripts/session.lua", "scripts/append.lua";
    LOAD = "scripts/session.lua", "scripts/load.lua";
    DELETE = "scripts/session.lua", "scripts/delete.lua";
    UPDATE = "scripts/session.lua", "scripts/update.lua";
    SET_META = "scripts/session.lua", "scripts/set_meta.lua";
    PUT_SUMMARY = "scripts/session.lua", "scripts/put_summary.lua";
    SUMMARIES = "scripts/session.lua", "scripts/summaries.lua";
    LIST = "scripts/list.lua";
    SWEEP = "scripts/sweep.lua";
    OWNER = "scripts/owner.lua";
    APPLY = "scripts/apply.lua";
    ACK = "scripts/ack.lua";
    SCHEMA = "scripts/schema.lua";
}

/// Arguments of a script, in its order.
pub struct Arguments<'a>(pub &'a mut Cmd);

impl Arguments<'_> {
    /// Adds bytes.
    pub fn bytes(&mut self, bytes: &[u8]) -> &mut Self {
        self.0.arg(bytes);
        self
    }

    /// Adds text.
    pub fn text(&mut self, text: &str) -> &mut Self {
        self.bytes(text.as_bytes())
    }

    /// Adds a number.
    pub fn number(&mut self, number: u64) -> &mut Self {
        self.text(&number.min(MOST).to_string())
    }

    /// Adds yes or no.
    pub fn flag(&mut self, flag: bool) -> &mut Self {
        self.text(if flag { "1" } else { "0" })
    }

    /// Adds whether there is a text, and it.
    pub fn maybe(&mut self, text: Option<&str>) -> &mut Self {
        self.flag(text.is_some()).text(text.unwrap_or_default())
    }

    /// Adds a number, or nothing in its place.
    pub fn number_or_nothing(&mut self, number: Option<u64>) -> &mut Self {
        match number {
            Some(number) => self.number(number),
            None => self.text(""),
        }
    }

    /// Adds how long something lives.
    pub fn ttl(&mut self, ttl: Ttl) -> &mut Self {
        // Some three thousand years: time and this are still a time.
        self.number(ttl.0.min(100_000_000_000_000))
    }

    /// Adds a change of state.
    pub fn delta(&mut self, delta: &Delta) -> &mut Self {
        self.number(delta.len() as u64);
        for (name, value) in delta {
            self.text(name).flag(value.is_some()).bytes(value.as_deref().unwrap_or_default());
        }
        self
    }

    /// Adds an event but its id; `app_ttl` is for what it changes of the app's state.
    pub fn event(&mut self, event: &NewEvent, app_ttl: Ttl) -> &mut Self {
        self.flag(event.payload.is_some()).bytes(&packed::of_event(event));
        self.text(event.payload.as_deref().unwrap_or_default());
        self.delta(&event.session).delta(&event.user).bytes(&packed::of_delta(&event.app, app_ttl))
    }
}

/// Returns how many arguments a batch of events is.
pub fn arguments_of(events: &[NewEvent]) -> usize {
    events.iter().map(|event| 7 + 3 * (event.session.len() + event.user.len())).sum()
}
