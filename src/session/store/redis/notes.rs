//! Changes of an app's state by sessions of its users.
//!
//! The app's state is on a slot of its own, which no script reaches from a user's. So the write of a session leaves a note of
//! the change beside it, in the same script: it is made if, and only if, the batch was taken. Then the app's slot takes
//! the note, and last the note is struck. Each step can be repeated: an event that was taken leaves no second note, and the app
//! knows the last note of each user that it took. After a crash in between, the next write or reading of any session of
//! that user goes on where it stopped. An acknowledged write has taken all three steps. What it costs: two exchanges more for a
//! write that changes the app's state, and a field for each user who ever did.
//!
//! The other order, first the app and then the session, would leave the app's state changed by batches that are refused.

use redis::Value;

use super::super::{Delta, StoreResult, Ttl, UserKey};
use super::reply::{Odd, Reply};
use super::scripts::{SETTLE, STRIKE};
use super::{Redis, packed};

/// A change of an app's state that is to be made.
struct Note {
    id: String,
    time: u64,
    order: u64,
    deltas: Vec<(Ttl, Delta)>,
}

impl Note {
    fn read(value: Value) -> Result<Self, Odd> {
        let mut entry = Reply::of(value)?;
        let id = entry.text()?;
        let (time, order) = id.split_once('-').ok_or(Odd)?;
        let (time, order) = (time.parse().map_err(|_| Odd)?, order.parse().map_err(|_| Odd)?);
        let mut fields = entry.list()?.skip(1);
        let Some(Value::BulkString(packed)) = fields.next() else { return Err(Odd) };
        Ok(Self { id, time, order, deltas: packed::deltas(&packed).ok_or(Odd)? })
    }
}

impl Redis {
    /// Makes the changes that `notes` of a user tell, and those that were left meanwhile.
    pub(super) fn settle(&self, owner: &UserKey, mut notes: Reply) -> StoreResult<()> {
        let (app, own) = (self.keys.app(&owner.app), [self.keys.notes(owner)]);
        while let Some(note) = notes.next() {
            let note = self.odd(Note::read(note))?;
            self.write(&SETTLE, &app, &|arguments| {
                arguments.text(&owner.user).number(note.time).number(note.order).number(note.deltas.len() as u64);
                for (ttl, delta) in &note.deltas {
                    arguments.ttl(*ttl).delta(delta);
                }
            })?;
            let (_, mut reply) = self.write(&STRIKE, &own, &|arguments| {
                arguments.text(&note.id);
            })?;
            notes = self.odd(reply.list())?;
        }
        Ok(())
    }
}
