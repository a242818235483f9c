//! Values of counters, and on the axes of charts and graphs, as text: scaled if their unit has prefixes.

use crate::model::{Bytes, Count, CountRate, Nanoseconds};

/// The unit of durations, by convention.
pub(super) const SECONDS: &str = "s";
/// Above this, seconds are not formatted as a duration.
const MAX_SECONDS: f64 = 1e9;

pub(super) fn is_bytes(unit: &str) -> bool {
    matches!(unit, "B" | "By" | "bytes")
}

/// Formats a value, scaled if its unit has prefixes.
pub(super) fn quantity(value: f64, unit: &str) -> String {
    match unit {
        SECONDS => duration(value),
        _ if is_bytes(unit) => bytes(value),
        _ => plain(value),
    }
}

pub(super) fn duration(seconds: f64) -> String {
    match seconds {
        0.0..MAX_SECONDS => Nanoseconds((seconds * 1e9) as u64).to_string(),
        _ => format!("{} s", plain(seconds)),
    }
}

pub(super) fn bytes(value: f64) -> String {
    match value.abs() {
        // No unit prefix is that large.
        ..HUGE => format!("{}{}", sign(value), Bytes(value.abs() as u64)),
        _ => format!("{} B", plain(value)),
    }
}

pub(super) fn milliseconds(value: f64) -> String {
    nanoseconds(value * 1e6)
}

pub(super) fn nanoseconds(value: f64) -> String {
    Nanoseconds(value as u64).to_string()
}

/// Formats events per second.
pub(super) fn rate(value: f64) -> String {
    format!("{}{}", sign(value), CountRate(value.abs()))
}

fn sign(value: f64) -> &'static str {
    if value < 0.0 { "-" } else { "" }
}

/// Exceeds the largest unit prefix.
const HUGE: f64 = 1e18;

/// Formats a number in about seven columns.
pub(super) fn plain(value: f64) -> String {
    match value.abs() {
        _ if !value.is_finite() => "?".to_owned(),
        HUGE.. => format!("{value:.1e}"),
        1000.0.. => format!("{}{}", sign(value), Count(value.abs() as u64)),
        _ if value.fract() == 0.0 => format!("{value:.0}"),
        100.0.. => format!("{value:.1}"),
        0.1.. => format!("{value:.2}"),
        0.0001.. => format!("{value:.4}"),
        _ => format!("{value:.1e}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counter_values_are_formatted_compactly() {
        for (value, text) in [
            (0.0, "0"),
            (-3.0, "-3"),
            (999.0, "999"),
            (12.345, "12.35"),
            (123.45, "123.5"),
            (12_345.6, "12.3k"),
            (-12_345.6, "-12.3k"),
            (0.0123, "0.0123"),
            (0.000_001_2, "1.2e-6"),
            (f64::NAN, "?"),
            (f64::INFINITY, "?"),
            (1e300, "1.0e300"),
            (-2e300, "-2.0e300"),
            (9e17, "900P"),
        ] {
            assert_eq!(plain(value), text);
        }
        for (value, text) in [(1_500.0, "1.5 kB"), (-1_500.0, "-1.5 kB"), (-912.0, "-912 B"), (0.0, "0 B"), (-2e300, "-2.0e300 B")] {
            assert_eq!(quantity(value, "By"), text);
        }
    }
}
