//! Rules that stores share which keep their events themselves: times, write checks, eviction.

use std::time::{SystemTime, UNIX_EPOCH};

use super::{
    Append, EventKind, EventWindow, Eviction, Head, NewSummary, PutSummary, SessionEvent, StoreError, StoreResult, Ttl,
};

/// Returns the milliseconds since 1970.
pub fn now_ms() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_millis()).unwrap_or(i64::MAX)
}

/// Returns the time of expiry of something written now.
pub fn expires_ms(now: i64, ttl: Ttl) -> Option<i64> {
    (ttl.0 > 0).then(|| now.saturating_add_unsigned(ttl.0))
}

impl Append {
    /// Checks the generation and the position of a batch.
    ///
    /// # Errors
    ///
    /// [`StoreError::Gone`], [`StoreError::Conflict`].
    pub(super) fn check(&self, head: &Head) -> StoreResult<()> {
        if self.generation.as_ref().is_some_and(|generation| *generation != head.generation) {
            return Err(StoreError::Gone(head.key.clone()));
        }
        match self.expected_seq {
            Some(expected) if expected != head.seq => Err(StoreError::Conflict {
                key: head.key.clone(),
                expected: expected.to_string(),
                actual: head.seq.to_string(),
            }),
            _ => Ok(()),
        }
    }
}

impl EventWindow {
    /// Returns the position of the message of the user before `newest_first`, if one is wanted.
    pub(super) fn lacks_user(&self, newest_first: &[SessionEvent]) -> Option<u64> {
        let is_wanted = self.with_user && newest_first.iter().all(|event| event.kind != EventKind::User);
        newest_first.last().filter(|_| is_wanted).map(|event| event.seq)
    }
}

impl NewSummary {
    /// Returns why a summary is refused, if the newest of its key has this `version` and cover.
    pub(super) fn refusal(&self, head: &Head, version: u64, covered: u64) -> Option<PutSummary> {
        if self.generation != head.generation {
            Some(PutSummary::Gone)
        } else if self.failed {
            None
        } else if self.last_seq > head.seq {
            Some(PutSummary::Beyond)
        } else {
            (version != self.expected_version || covered > self.last_seq).then_some(PutSummary::Stale)
        }
    }
}

/// The eviction of events from the start of a session. Results go with their call, so that no session starts with one.
pub struct Leaving {
    /// How many events the session has.
    pub held: u64,
    /// The last position that is summarised.
    pub covered: u64,
    /// What was asked for.
    pub eviction: Eviction,
}

impl Leaving {
    /// Returns whether the event at place `at` from the start leaves; all before it do.
    pub fn takes(&self, at: u64, seq: u64, kind: EventKind) -> bool {
        let Eviction { max_events, protect } = self.eviction;
        let is_beyond = |limit: u64| at < self.held.saturating_sub(limit);
        let is_shown_elsewhere = !protect || seq <= self.covered || is_beyond(max_events.saturating_mul(2));
        max_events > 0 && (is_beyond(max_events) && is_shown_elsewhere || at > 0 && kind == EventKind::Result)
    }
}
