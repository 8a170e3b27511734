//! Mechanisms of the selection, which an evaluation may switch off to measure them. In a release all are on.

/// A mechanism of the selection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mechanism {
    /// Learned weights; guessed ones without it.
    #[cfg(feature = "evaluation")]
    Learned,
    /// Relevance to what is asked now.
    Relevance,
    /// The class of a part: errors, headers, outliers, repeats.
    Classes,
    /// Superseded results go first.
    Superseded,
    /// Rules and requests of the user stay.
    Pinning,
    /// Names and calls of what is left out are listed.
    Ledger,
    /// A name is worth less once another kept text has it.
    Coverage,
    /// Short results stand out among those of their tool.
    Striking,
}

/// Returns whether a mechanism is on.
#[cfg(not(feature = "evaluation"))]
pub const fn is_on(_: Mechanism) -> bool {
    true
}

#[cfg(feature = "evaluation")]
pub use switches::{is_on, without};

#[cfg(feature = "evaluation")]
mod switches {
    use std::cell::Cell;

    use super::Mechanism;
    use crate::error::{Error, Result};

    thread_local! {
        /// A bit for each mechanism that is off in this thread.
        static OFF: Cell<u8> = const { Cell::new(0) };
    }

    /// Returns whether a mechanism is on.
    pub fn is_on(mechanism: Mechanism) -> bool {
        OFF.get() & (1 << mechanism as u8) == 0
    }

    /// Runs `act` in this thread without the mechanisms of these names.
    ///
    /// # Errors
    ///
    /// Those of `act`, and [`Error::InvalidArgument`] for a name that no mechanism has.
    pub fn without<'n, T>(names: impl IntoIterator<Item = &'n str>, act: impl FnOnce() -> Result<T>) -> Result<T> {
        struct Restored(u8);
        impl Drop for Restored {
            fn drop(&mut self) {
                OFF.set(self.0);
            }
        }
        let mut off = 0;
        for name in names {
            off |= 1 << named(name)? as u8;
        }
        let _restored = Restored(OFF.replace(off));
        act()
    }

    fn named(name: &str) -> Result<Mechanism> {
        Ok(match name {
            "learned" => Mechanism::Learned,
            "relevance" => Mechanism::Relevance,
            "outline" => Mechanism::Classes,
            "superseded" => Mechanism::Superseded,
            "pinning" => Mechanism::Pinning,
            "ledger" => Mechanism::Ledger,
            "coverage" => Mechanism::Coverage,
            "striking" => Mechanism::Striking,
            _ => return Err(Error::argument("without", format!("no mechanism is called `{name}`"))),
        })
    }
}
