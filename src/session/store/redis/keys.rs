//! The names of keys: everything of one user is on one slot of a cluster, and the users of an app are spread over all.
//!
//! ```text
//! nbctx:schema                            the number of the schema
//! nbctx:{3:app}:state  :applied           the app's state; the last entry of each user that it took
//! nbctx:{3:app|4:user}:state              the user's state
//! nbctx:{3:app|4:user}:sessions           ids of sessions by the time of the last write
//! nbctx:{3:app|4:user}:outbox             changes of the app's state that are still to be made
//! nbctx:{3:app|4:user}:s:<id>:meta        generation, positions, times, metadata, newest summaries
//! nbctx:{3:app|4:user}:s:<id>:events      a stream whose ids are the positions
//! nbctx:{3:app|4:user}:s:<id>:ids  :ops   ids that were taken, by position; those that only changed state
//! nbctx:{3:app|4:user}:s:<id>:state  :summaries
//! ```
//! The lengths keep names apart that would be one if they were merely joined, whatever characters are in them.

use super::super::{SessionKey, UserKey};

/// What the list of a user's sessions ends with.
pub const LIST: &str = ":sessions";
/// What the metadata of a session ends with.
pub const META: &str = ":meta";

/// Gives keys their names.
#[derive(Debug)]
pub struct Keys {
    /// What all of them begin with.
    pub prefix: String,
}

impl Keys {
    /// Returns the key of the schema's number.
    pub fn schema(&self) -> String {
        format!("{}:schema", self.prefix)
    }

    /// Returns the keys of an app: its state, and the last entry of each user that it took.
    pub fn app(&self, app: &str) -> [String; 2] {
        [":state", ":applied"].map(|end| format!("{}:{{{}:{app}}}{end}", self.prefix, app.len()))
    }

    fn of_user(&self, user: &UserKey, end: &str) -> String {
        let UserKey { app, user } = user;
        format!("{}:{{{}:{app}|{}:{user}}}{end}", self.prefix, app.len(), user.len())
    }

    /// Returns the key of a user's state.
    pub fn user_state(&self, user: &UserKey) -> String {
        self.of_user(user, ":state")
    }

    /// Returns the key of the list of a user's sessions.
    pub fn list(&self, user: &UserKey) -> String {
        self.of_user(user, LIST)
    }

    /// Returns the key of a user's outbox.
    pub fn outbox(&self, user: &UserKey) -> String {
        self.of_user(user, ":outbox")
    }

    /// Returns the keys that the scripts of a session know by number: metadata, events, ids, ops, state, summaries; and of
    /// its user the list, the state, the outbox.
    pub fn session(&self, key: &SessionKey) -> [String; 9] {
        let stem = self.of_user(&key.owner, ":s:");
        let own = |end: &str| format!("{stem}{}{end}", key.id);
        [
            own(META),
            own(":events"),
            own(":ids"),
            own(":ops"),
            own(":state"),
            own(":summaries"),
            self.list(&key.owner),
            self.user_state(&key.owner),
            self.outbox(&key.owner),
        ]
    }
}

/// Returns what the keys of the sessions in a list begin with.
pub fn stem_of(list: &str) -> String {
    format!("{}:s:", list.strip_suffix(LIST).unwrap_or(list))
}
