//! Parts of the selection that an evaluation may switch off, to show what each is worth.

#[cfg(feature = "evaluation")]
use crate::error::{Error, Result};

/// What selection goes by: all of it, but for evaluation, which shows what each is worth.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(clippy::struct_excessive_bools)] // switches, each for itself
pub struct Ablation {
    /// Learned weights, else guessed ones.
    pub learned: bool,
    /// Relevance to what is asked now.
    pub relevance: bool,
    /// The class of a part: errors, headers, outliers, repeats.
    pub outline: bool,
    /// Results that a later one has replaced go first.
    pub superseded: bool,
    /// Rules and requests of the user stay.
    pub pinning: bool,
    /// Names and calls that were left out are listed.
    pub ledger: bool,
    /// A name that stays once need not stay twice.
    pub coverage: bool,
}

impl Default for Ablation {
    fn default() -> Self {
        Self {
            learned: true,
            relevance: true,
            outline: true,
            superseded: true,
            pinning: true,
            ledger: true,
            coverage: true,
        }
    }
}

#[cfg(feature = "evaluation")]
impl Ablation {
    /// Returns all mechanisms but those in `names`.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidArgument`] for a name that is none.
    pub fn without<'n>(names: impl IntoIterator<Item = &'n str>) -> Result<Self> {
        let mut mechanisms = Self::default();
        for name in names {
            *match name {
                "learned" => &mut mechanisms.learned,
                "relevance" => &mut mechanisms.relevance,
                "outline" => &mut mechanisms.outline,
                "superseded" => &mut mechanisms.superseded,
                "pinning" => &mut mechanisms.pinning,
                "ledger" => &mut mechanisms.ledger,
                "coverage" => &mut mechanisms.coverage,
                _ => return Err(Error::argument("without", format!("`{name}` is no mechanism"))),
            } = false;
        }
        Ok(mechanisms)
    }
}
