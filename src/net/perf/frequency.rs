//! How often samples are taken.

use std::str::FromStr;

use thiserror::Error;

/// Samples in a second of processor time of a thread: 1 to 999. More than one in a millisecond would cost the target more than they tell.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Frequency(u64);

/// No such frequency.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("a frequency is a number of samples a second from 1 to 999")]
pub struct FrequencyError;

impl Frequency {
    /// The highest. It is not 1000, so that samples are not in step with what a program does every millisecond.
    pub const HIGHEST: Self = Self(999);

    /// # Errors
    /// Where it is 0 or more than 999.
    pub fn new(hertz: u64) -> Result<Self, FrequencyError> {
        if (1..=Self::HIGHEST.0).contains(&hertz) { Ok(Self(hertz)) } else { Err(FrequencyError) }
    }

    /// The processor time that a sample stands for, nanoseconds.
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
    fn only_sensible_frequencies_exist() {
        for wrong in ["0", "1000", "-1", "x", ""] {
            assert_eq!(wrong.parse::<Frequency>(), Err(FrequencyError), "{wrong}");
        }
        assert_eq!("999".parse(), Ok(Frequency::HIGHEST));
        assert_eq!((Frequency::HIGHEST.period_ns(), Frequency(1).period_ns()), (1_001_001, 1_000_000_000));
    }
}
