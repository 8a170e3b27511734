//! What a lock guards, let go of outside of it.

use std::sync::MutexGuard;

/// Takes out what a lock guards and lets go of it after the lock: that may free a whole conversation.
pub fn take_out<T>(guarded: Option<MutexGuard<'_, T>>, empty: T) {
    let taken = guarded.map(|mut guarded| std::mem::replace(&mut *guarded, empty));
    drop(taken);
}
