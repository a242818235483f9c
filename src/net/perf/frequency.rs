//! Sampling frequency.

use std::str::FromStr;

use thiserror::Error;

/// Samples per second of a thread's processor time: 1 to 999. More than one per millisecond would cost the target more than it is worth.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Frequency(u64);

/// The frequency is out of range.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("a frequency is a number of samples a second from 1 to 999")]
pub struct FrequencyError;

impl Frequency {
    /// The highest frequency: not 1000, so that sampling is not in lockstep with work that a program does every millisecond.
    pub const MAX: Self = Self(999);

    /// Creates a frequency.
    ///
    /// # Errors
    /// If it is 0 or more than 999.
    pub fn new(hertz: u64) -> Result<Self, FrequencyError> {
        if (1..=Self::MAX.0).contains(&hertz) { Ok(Self(hertz)) } else { Err(FrequencyError) }
    }

    /// Processor time that one sample represents, in nanoseconds.
    pub fn period_ns(self) -> u64 {
        1_000_000_000 / self.0
    }
}

impl FromStr for Frequency {
    type Err = FrequencyError;

    fn from_str(text: &str) -> Result<Self, FrequencyError> {
        text.parse().map_err(|_| FrequencyError).and_then(Self::new)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn invalid_frequencies_are_rejected() {
        for wrong in ["0", "1000", "-1", "x", ""] {
            assert_eq!(wrong.parse::<Frequency>(), Err(FrequencyError), "{wrong}");
        }
        assert_eq!("999".parse(), Ok(Frequency::MAX));
        assert_eq!((Frequency::MAX.period_ns(), Frequency(1).period_ns()), (1_001_001, 1_000_000_000));
    }
}
