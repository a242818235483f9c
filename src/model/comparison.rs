//! Comparison of two recordings, and the formatting of its figures.

use std::fmt;

use super::{ByteRate, Bytes, CountRate, Nanoseconds, Number, RecordingAnalysis};
use crate::analysis::{Compared, Section, Unit, compare};

impl RecordingAnalysis {
    /// Compares this recording with a later one.
    pub fn compare(&self, after: &Self) -> Vec<Section> {
        // Thread time and CPU time are not comparable.
        let waiting = self.cpu.is_none() || after.cpu.is_none();
        compare(self.compared(waiting), after.compared(waiting))
    }

    fn compared(&self, waiting: bool) -> Compared<'_> {
        Compared { snapshot: &self.snapshot, profile: self.profile(waiting) }
    }
}

/// A compared figure with its unit: `1.2/s`, `340 kB/s`, `6.1 ms`, `12.5 %`. Sizes and durations are not negative. A nonzero value is never shown
/// as zero: `<0.01/s`, `<0.1 %`.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Amount(pub f64, pub Unit);

/// The signed difference of two such figures: `+1.2/s`, `-12.5 %`, `0`.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Change(pub f64, pub Unit);

impl fmt::Display for Amount {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self(value, unit) = *self;
        match unit {
            Unit::PerSecond if value > 0.0 && value < 0.005 => f.pad("<0.01/s"),
            Unit::PerSecond if value > 0.0 && value < 0.095 => f.pad(&format!("{value:.2}/s")),
            Unit::PerSecond if value > 0.0 && value < 10.0 => f.pad(&format!("{value:.1}/s")),
            Unit::PerSecond => CountRate(value).fmt(f),
            Unit::BytesPerSecond => ByteRate(value).fmt(f),
            Unit::Bytes => Bytes(value as u64).fmt(f),
            Unit::Nanoseconds => Nanoseconds(value as u64).fmt(f),
            Unit::Share if value == 0.0 => f.pad("0 %"),
            Unit::Share if value > 0.0 && value < 0.0005 => f.pad("<0.1 %"),
            Unit::Share => f.pad(&format!("{:.1} %", value * 100.0)),
            Unit::Plain => Number(value).fmt(f),
        }
    }
}

impl fmt::Display for Change {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self(value, unit) = *self;
        if value == 0.0 {
            return f.pad("0");
        }
        let sign = if value < 0.0 { '-' } else { '+' };
        f.pad(&format!("{sign}{}", Amount(value.abs(), unit)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_have_units_and_changes_have_signs() {
        for (value, unit, amount, change) in [
            (0.0, Unit::PerSecond, "0/s", "0"),
            (0.001, Unit::PerSecond, "<0.01/s", "+<0.01/s"),
            (0.048, Unit::PerSecond, "0.05/s", "+0.05/s"),
            (3.33, Unit::PerSecond, "3.3/s", "+3.3/s"),
            (12_345.0, Unit::PerSecond, "12.3k/s", "+12.3k/s"),
            (749_000.0, Unit::BytesPerSecond, "749 kB/s", "+749 kB/s"),
            (331e6, Unit::Bytes, "331 MB", "+331 MB"),
            (6.1e6, Unit::Nanoseconds, "6.1 ms", "+6.1 ms"),
            (0.0, Unit::Share, "0 %", "0"),
            (0.0001, Unit::Share, "<0.1 %", "+<0.1 %"),
            (1.95, Unit::Share, "195.0 %", "+195.0 %"),
            (0.25, Unit::Plain, "0.25", "+0.25"),
        ] {
            assert_eq!((Amount(value, unit).to_string().as_str(), Change(value, unit).to_string().as_str()), (amount, change));
        }
        assert_eq!(Change(-331e6, Unit::Bytes).to_string(), "-331 MB");
    }
}
