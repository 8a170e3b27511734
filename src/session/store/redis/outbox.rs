//! Applies changes of an app's state by sessions of its users, exactly once.
//!
//! The app's state is on a slot of its own, which no script reaches from a user's. So the write of a session leaves an entry
//! with the change in the user's outbox, in the same script: it exists if, and only if, the batch was appended. Then the
//! app's slot applies the entry, and last the entry is acknowledged. Each step can be repeated: a repeated event leaves no
//! second entry, and the app knows the last entry that it applied of each user. After a crash in between, the next write or
//! read of any session of that user continues. An acknowledged write has taken all three steps. Cost: two more exchanges for
//! a write that changes the app's state, and a field for each user who ever did.
//!
//! The other order, first the app and then the session, would leave the app's state changed by batches that are refused.

use redis::Value;

use super::super::{Delta, StoreResult, Ttl, UserKey};
use super::reply::{Odd, Reply};
use super::scripts::{ACK, APPLY};
use super::{Redis, packed};

/// A pending change of an app's state.
struct OutboxEntry {
    id: String,
    time: u64,
    order: u64,
    deltas: Vec<(Ttl, Delta)>,
}

impl OutboxEntry {
    fn read(value: Value) -> Result<Self, Odd> {
        let mut reply = Reply::of(value)?;
        let id = reply.text()?;
        let (time, order) = id.split_once('-').ok_or(Odd)?;
        let (time, order) = (time.parse().map_err(|_| Odd)?, order.parse().map_err(|_| Odd)?);
        let mut fields = reply.list()?.skip(1);
        let Some(Value::BulkString(packed)) = fields.next() else { return Err(Odd) };
        Ok(Self { id, time, order, deltas: packed::deltas(&packed).ok_or(Odd)? })
    }
}

impl Redis {
    /// Applies the changes in the `outbox` of a user, with those left from before.
    pub(super) fn apply(&self, owner: &UserKey, mut outbox: Reply) -> StoreResult<()> {
        let (app, own) = (self.keys.app(&owner.app), [self.keys.outbox(owner)]);
        while let Some(entry) = outbox.next() {
            let entry = self.odd(OutboxEntry::read(entry))?;
            self.write(&APPLY, &app, &|arguments| {
                arguments.text(&owner.user).number(entry.time).number(entry.order).number(entry.deltas.len() as u64);
                for (ttl, delta) in &entry.deltas {
                    arguments.ttl(*ttl).delta(delta);
                }
            })?;
            let (_, mut reply) = self.write(&ACK, &own, &|arguments| {
                arguments.text(&entry.id);
            })?;
            outbox = self.odd(reply.list())?;
        }
        Ok(())
    }
}
