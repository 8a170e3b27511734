//! The plan of a conversation's next request, and the last steps remembered.

use std::sync::{Arc, LazyLock, Mutex, PoisonError};

use crate::error::Result;
use crate::message::Message;

use super::digest::Digest;
use super::plan::{Output, Plan};
use super::steps::{Arrived, Made, Step, last_step};
use super::{Request, gate, is_settled};

/// Bytes of text in the steps that all stateless calls remember together.
const SHARED_BYTES: usize = 16 << 20;

/// Steps remembered for all stateless calls.
static SHARED: LazyLock<Steady> = LazyLock::new(|| Steady::holding(SHARED_BYTES));

/// Compression of conversations that remembers their last steps.
///
/// What it remembers saves work and decides nothing: steps follow from the messages alone, so that a new `Steady`, one
/// that has seen another conversation, and none at all come to the same plan. A step is known by the content it was
/// made of, whatever system messages say: these always stay, and may hold a clock.
#[derive(Debug)]
pub struct Steady {
    /// Newest use first.
    made: Mutex<Vec<(u128, Arc<Made>)>>,
    max_bytes: usize,
}

impl Default for Steady {
    /// Returns one for a single conversation: it remembers the last step only.
    fn default() -> Self {
        Self::holding(0)
    }
}

impl Steady {
    /// Returns one that remembers steps as long as their texts have at most `max_bytes` together, and the last one.
    pub fn holding(max_bytes: usize) -> Self {
        Self { made: Mutex::default(), max_bytes }
    }

    /// As [`super::compress`].
    ///
    /// # Errors
    ///
    /// As [`super::compress`].
    pub fn compress(&self, view: &[Message<'_>], request: &Request<'_>) -> Result<Option<Plan>> {
        if is_settled(view, request) {
            return Ok(None);
        }
        let counter = request.counter();
        for message in view {
            counter.message(message);
        }
        if is_settled(view, request) {
            return Ok(None);
        }
        let arrived = Arrived::of(view, request);
        let mut plan = match last_step(view, &arrived, request) {
            None => arrived.plan,
            Some(step) => step.join(&*self.made(&step, view, request)?, arrived, view, request),
        };
        gate::weigh(&mut plan, view, request);
        Ok((!plan.receipt.cuts.is_empty()).then_some(plan))
    }

    fn made(&self, step: &Step, view: &[Message<'_>], request: &Request<'_>) -> Result<Arc<Made>> {
        let key = key(step, view, request);
        // A panic elsewhere cannot leave a list of finished plans half-changed, so a poisoned lock is still good.
        let all = || self.made.lock().unwrap_or_else(PoisonError::into_inner);
        let known = {
            let mut all = all();
            let found = all.iter().position(|(other, _)| *other == key);
            found.map(|position| {
                all[..=position].rotate_right(1);
                all[0].1.clone()
            })
        };
        if let Some(made) = known {
            return Ok(made);
        }
        // Not under the lock: this is where the work is. Two threads that do it twice come to the same.
        let made = Arc::new(step.make(view, request)?);
        let mut all = all();
        all.insert(0, (key, made.clone()));
        let mut bytes = 0;
        let within = all.iter().take_while(|(_, made)| {
            bytes += made.bytes();
            bytes <= self.max_bytes
        });
        let kept = within.count().max(1);
        let dropped = all.split_off(kept);
        drop(all);
        // Let go after the lock.
        drop(dropped);
        Ok(made)
    }
}

/// As [`Steady::compress`] with what all stateless calls remember.
pub fn compress(view: &[Message<'_>], request: &Request<'_>) -> Result<Option<Plan>> {
    SHARED.compress(view, request)
}

impl Made {
    /// Returns about how many bytes it holds.
    fn bytes(&self) -> usize {
        let bytes = |output: &Output| match output {
            Output::Keep(_) => 0,
            Output::Edit(_, edit) => {
                let calls = edit.calls.iter().filter_map(|(_, call)| call.arguments.as_ref());
                let texts = edit.content.iter().chain(edit.parts.iter().map(|(_, text)| text)).chain(calls);
                texts.chain(&edit.reasoning).map(String::len).sum()
            }
            Output::New(new) => new.content.len(),
        };
        let outputs = &self.plan.outputs;
        outputs.iter().map(bytes).sum::<usize>() + outputs.len() * size_of::<Output>()
    }
}

/// Returns a hash of everything that a step follows from, the text of system messages left out.
fn key(step: &Step, view: &[Message<'_>], request: &Request<'_>) -> u128 {
    let mut hash = Digest::default();
    let limits = &request.limits;
    let family = u64::from(request.counter().family().id);
    hash.number(family);
    for number in [step.at as u64, step.room, request.single_tokens(), request.all_tokens()] {
        hash.number(number);
    }
    for number in [limits.reasoning_keep_chars, limits.max_user_message_chars, limits.max_assistant_message_chars] {
        hash.number(number as u64);
    }
    if let Some(archive) = &request.archive {
        archive.names().for_each(|name| hash.text(name));
    }
    for message in &view[..step.at] {
        hash.message(message, false);
    }
    hash.finish()
}
