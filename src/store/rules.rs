//! What stores that keep their events themselves decide alike: times, who may write, what leaves.

use std::time::{SystemTime, UNIX_EPOCH};

use super::{Append, Eviction, Head, Kind, NewSummary, PutSummary, StoreError, StoreResult, Ttl};

/// Returns the milliseconds since 1970.
pub fn now_ms() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_millis()).unwrap_or(i64::MAX)
}

/// Returns when something expires that is written now.
pub fn expires_ms(now: i64, ttl: Ttl) -> Option<i64> {
    (ttl.0 > 0).then(|| now.saturating_add_unsigned(ttl.0))
}

impl Append {
    /// Checks that the batch is for this generation of a session, and for this position.
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

impl NewSummary {
    /// Returns why the summary is not taken, where the newest of its key has this `version` and covers so much.
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

/// Returns how many events at the start leave, by their kinds; the last `unsummarised` of them are not summarised yet.
///
/// Results go with their call, so that a session never begins with one.
pub fn evicted(kinds: &[Kind], unsummarised: usize, eviction: Eviction) -> usize {
    let max = usize::try_from(eviction.max_events).unwrap_or(usize::MAX);
    if max == 0 || kinds.len() <= max {
        return 0;
    }
    let mut keep = max;
    if eviction.protect {
        keep = keep.max(unsummarised.min(max.saturating_mul(2)));
    }
    let mut gone = kinds.len().saturating_sub(keep);
    while gone > 0 && gone < kinds.len() && kinds[gone] == Kind::Result {
        gone += 1;
    }
    gone
}
