//! Token counts: the number, and how it was found.

use std::fmt;
use std::iter::Sum;
use std::ops::{Add, AddAssign, Div, Mul, Sub, SubAssign};

/// A token count. Arithmetic saturates; shares round as their names say.
#[derive(Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Tokens(pub u64);

#[allow(clippy::cast_precision_loss, clippy::cast_possible_truncation, clippy::cast_sign_loss)] // tokens are < 2^53
impl Tokens {
    /// No tokens.
    pub const ZERO: Self = Self(0);
    /// The largest count: no limit.
    pub const MAX: Self = Self(u64::MAX);

    /// Returns a share, rounded down.
    #[must_use]
    pub fn share(self, ratio: f64) -> Self {
        Self((self.0 as f64 * ratio).floor() as u64)
    }

    /// Returns a share, rounded up.
    #[must_use]
    pub fn share_up(self, ratio: f64) -> Self {
        Self((self.0 as f64 * ratio).ceil() as u64)
    }

    /// Returns `percent` hundredths, rounded down.
    #[must_use]
    pub fn percent(self, percent: u64) -> Self {
        self.scaled(percent, 100)
    }

    /// Returns `self * part / whole`, rounded down. The product cannot overflow.
    #[must_use]
    pub fn scaled(self, part: u64, whole: u64) -> Self {
        let scaled = u128::from(self.0) * u128::from(part) / u128::from(whole.max(1));
        Self(u64::try_from(scaled).unwrap_or(u64::MAX))
    }

    /// Returns the count as a weight. The selector multiplies tokens by shares and worths, so it adds up `f32`; what it selects
    /// is counted afterwards.
    #[must_use]
    pub fn as_f32(self) -> f32 {
        self.0 as f32
    }
}

impl From<u32> for Tokens {
    fn from(tokens: u32) -> Self {
        Self(tokens.into())
    }
}

impl fmt::Display for Tokens {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// As the number: Python shows settings so.
impl fmt::Debug for Tokens {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl Add for Tokens {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self(self.0.saturating_add(other.0))
    }
}

impl AddAssign for Tokens {
    fn add_assign(&mut self, other: Self) {
        *self = *self + other;
    }
}

impl Sub for Tokens {
    type Output = Self;

    fn sub(self, other: Self) -> Self {
        Self(self.0.saturating_sub(other.0))
    }
}

impl SubAssign for Tokens {
    fn sub_assign(&mut self, other: Self) {
        *self = *self - other;
    }
}

impl Mul<u64> for Tokens {
    type Output = Self;

    fn mul(self, times: u64) -> Self {
        Self(self.0.saturating_mul(times))
    }
}

impl Div<u64> for Tokens {
    type Output = Self;

    fn div(self, parts: u64) -> Self {
        Self(self.0 / parts)
    }
}

impl Sum for Tokens {
    fn sum<I: Iterator<Item = Self>>(counts: I) -> Self {
        counts.fold(Self::ZERO, Add::add)
    }
}

impl<'t> Sum<&'t Self> for Tokens {
    fn sum<I: Iterator<Item = &'t Self>>(counts: I) -> Self {
        counts.copied().sum()
    }
}

/// Where a count comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Source {
    /// The model's own vocabulary.
    Exact,
    /// Another vocabulary's count times a measured factor and [`super::SAFETY_FACTOR`].
    Estimated,
}

/// A token count, and where it comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Count {
    /// The tokens.
    pub tokens: Tokens,
    /// How they were found.
    pub source: Source,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_number_of_tokens_wraps_and_shares_are_exact_where_they_are_fractions() {
        assert_eq!((Tokens(1) - Tokens(2), Tokens::MAX + Tokens(1)), (Tokens::ZERO, Tokens::MAX));
        assert_eq!((Tokens::MAX * 2, [Tokens::MAX, Tokens(1)].iter().sum::<Tokens>()), (Tokens::MAX, Tokens::MAX));
        assert_eq!((Tokens(10).share(0.25), Tokens(10).share_up(0.25)), (Tokens(2), Tokens(3)));
        assert_eq!((Tokens::MAX.percent(50), Tokens(7).scaled(3, 2)), (Tokens(u64::MAX / 2), Tokens(10)));
        assert_eq!((Tokens::MAX.percent(400), Tokens(1).scaled(1, 0)), (Tokens::MAX, Tokens(1)));
    }
}
