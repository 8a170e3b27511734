//! Narrow numbers for the selector and its tables.

/// Returns a count as a weight.
#[allow(clippy::cast_precision_loss)] // far below 2^24, and nothing hangs on the last digit
pub fn count(n: usize) -> f32 {
    n as f32
}

/// Returns an index in 32 bits.
pub fn index(n: usize) -> u32 {
    u32::try_from(n).unwrap_or(u32::MAX)
}
