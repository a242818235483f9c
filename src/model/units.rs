//! Human-readable quantities, with decimal units, at most three digits before the unit, and uniform width.

use std::fmt;
use std::time::Duration;

/// A number of bytes: `512 B`, `1.2 kB`, `340 MB`.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Bytes(pub u64);

/// Bytes per second: `340 kB/s`.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ByteRate(pub f64);

/// A count: `512`, `12.3k`, `1.2M`.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Count(pub u64);

/// A count with a noun: `1 event`, `12.3k events`, `2 processes`; with `{:#}` in full, `12345 events`. The noun is given in the singular.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Counted<'a>(pub u64, pub &'a str);

/// A rate per second: `0/s`, `<0.1/s`, `0.4/s`, `5/s`, `12.3k/s`. `0/s` is exact.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct CountRate(pub f64);

/// A number of any size and sign, in full: `1234567.25`, `0.012`, `0.0004`, `-2e300`. At most three decimals, but two significant digits for small
/// numbers. Numbers with more than 15 digits before the point or six zeros after it are in scientific notation.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Number(pub f64);

/// A short time: `450 ns`, `12 µs`, `6.1 ms`, `1.2 s`, `125 s`.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Nanoseconds(pub u64);

/// A share, 0 to 1, in percent: `0 %`, `<0.1 %`, `0.4 %`, `12 %`, `100 %`. `0 %` and `100 %` are exact.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Percent(pub f64);

/// An age in its two largest units: `45s`, `12m`, `3h 12m`, `2d 4h`, `3y 20d`.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Age(pub Duration);

/// A duration, to the second: `0:42`, `1:02:03`.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Stopwatch(pub Duration);

/// Scales a number to at most three digits before the point. Returns it with the power of 1000, and whether to show a decimal.
fn scaled(value: f64) -> (f64, usize, bool) {
    let (mut value, mut step) = (value.max(0.0), 0);
    // 999.5 would be rounded to 1000.
    while value >= 999.5 && step < 6 {
        value /= 1000.0;
        step += 1;
    }
    (value, step, step > 0 && value < 99.95)
}

fn write_scaled(f: &mut fmt::Formatter<'_>, value: f64, units: [&str; 7], per: &str) -> fmt::Result {
    let (value, step, decimal) = scaled(value);
    let unit = units[step];
    if decimal { f.pad(&format!("{value:.1}{unit}{per}")) } else { f.pad(&format!("{value:.0}{unit}{per}")) }
}

const BYTES: [&str; 7] = [" B", " kB", " MB", " GB", " TB", " PB", " EB"];
const COUNTS: [&str; 7] = ["", "k", "M", "G", "T", "P", "E"];

/// Implements `Display` for quantities scaled to units, the number of which is per something.
macro_rules! scaled {
    ($($name:ident: $units:ident per $per:literal;)+) => {
        $(impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write_scaled(f, self.0 as f64, $units, $per)
            }
        })+
    };
}

scaled! {
    Bytes: BYTES per "";
    ByteRate: BYTES per "/s";
    Count: COUNTS per "";
}

impl fmt::Display for CountRate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            rate if rate > 0.0 && rate < 0.05 => f.pad("<0.1/s"),
            rate if rate > 0.0 && rate < 0.95 => f.pad(&format!("{rate:.1}/s")),
            rate => write_scaled(f, rate, COUNTS, "/s"),
        }
    }
}

impl fmt::Display for Counted<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self(count, noun) = *self;
        let ending = match count {
            1 => "",
            _ if noun.ends_with('s') => "es",
            _ => "s",
        };
        if f.alternate() { write!(f, "{count} {noun}{ending}") } else { write!(f, "{} {noun}{ending}", Count(count)) }
    }
}

impl fmt::Display for Number {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let value = self.0;
        let text = match value.abs() {
            0.0 => return f.pad("0"),
            // NaN and infinity have no digits.
            size if !size.is_finite() => return f.pad(&value.to_string()),
            1e15.. => return f.pad(&format!("{value:e}")),
            0.1.. => format!("{value:.3}"),
            size if size < 1e-6 => return f.pad(&format!("{value:.1e}")),
            // Up to the digit after the first significant one.
            size => format!("{value:.*}", (1.0 - size.log10().floor()) as usize),
        };
        f.pad(if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.') } else { &text })
    }
}

impl fmt::Display for Nanoseconds {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let value = self.0 as f64;
        let (unit, name) = match value {
            ..999.5 => (1.0, "ns"),
            ..999_500.0 => (1e3, "µs"),
            ..999_500_000.0 => (1e6, "ms"),
            _ => (1e9, "s"),
        };
        let decimals = usize::from(unit > 1.0 && value / unit < 9.95);
        f.pad(&format!("{:.decimals$} {name}", value / unit))
    }
}

impl fmt::Display for Percent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let percent = if self.0.is_finite() { self.0.max(0.0) * 100.0 } else { 0.0 };
        match percent {
            0.0 => f.pad("0 %"),
            ..0.05 => f.pad("<0.1 %"),
            ..9.95 => f.pad(&format!("{percent:.1} %")),
            99.5..100.0 => f.pad(">99 %"),
            _ => f.pad(&format!("{percent:.0} %")),
        }
    }
}

impl fmt::Display for Age {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let seconds = self.0.as_secs();
        let (minutes, hours, days) = (seconds / 60, seconds / 3600, seconds / 86_400);
        match () {
            () if days >= 365 => f.pad(&format!("{}y {}d", days / 365, days % 365)),
            () if days > 0 => f.pad(&format!("{days}d {}h", hours % 24)),
            () if hours > 0 => f.pad(&format!("{hours}h {}m", minutes % 60)),
            () if minutes > 0 => f.pad(&format!("{minutes}m")),
            () => f.pad(&format!("{seconds}s")),
        }
    }
}

impl fmt::Display for Stopwatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let seconds = self.0.as_secs();
        let (minutes, hours) = (seconds / 60 % 60, seconds / 3600);
        if hours > 0 {
            f.pad(&format!("{hours}:{minutes:02}:{:02}", seconds % 60))
        } else {
            f.pad(&format!("{minutes}:{:02}", seconds % 60))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantities_are_abbreviated_at_every_unit_boundary() {
        for (value, text) in [
            (0, "0 B"),
            (999, "999 B"),
            (1000, "1.0 kB"),
            (99_949, "99.9 kB"),
            (99_950, "100 kB"),
            (999_499, "999 kB"),
            (999_500, "1.0 MB"),
            (1_234_000_000, "1.2 GB"),
            (u64::MAX, "18.4 EB"),
        ] {
            assert_eq!(Bytes(value).to_string(), text);
        }
        assert_eq!(Count(12_345).to_string(), "12.3k");
        for (count, noun, text) in
            [(1, "event", "1 event"), (0, "event", "0 events"), (2, "process", "2 processes"), (12_345, "CPU sample", "12.3k CPU samples")]
        {
            assert_eq!(Counted(count, noun).to_string(), text);
        }
        assert_eq!(format!("{:#}", Counted(12_345, "process")), "12345 processes");
        for (rate, text) in [
            (0.0, "0/s"),
            (f64::NAN, "0/s"),
            (0.049, "<0.1/s"),
            (0.05, "0.1/s"),
            (0.94, "0.9/s"),
            (0.95, "1/s"),
            (1.4, "1/s"),
            (12_345.0, "12.3k/s"),
        ] {
            assert_eq!(CountRate(rate).to_string(), text);
        }
        assert_eq!(ByteRate(340_000.0).to_string(), "340 kB/s");
        assert_eq!(ByteRate(f64::NAN).to_string(), "0 B/s");
        assert_eq!(format!("{:>8}|{:<8}|", Bytes(1), Bytes(1)), "     1 B|1 B     |");
    }

    #[test]
    fn small_and_large_numbers_stay_short_and_nonzero() {
        for (value, text) in [
            (0.0, "0"),
            (-0.0, "0"),
            (42.0, "42"),
            (1_234_567.25, "1234567.25"),
            (-1234.5, "-1234.5"),
            (0.012_175_000_000_000_047, "0.012"),
            (0.116_597_699_999_999_97, "0.117"),
            (0.000_4, "0.0004"),
            (0.000_916_000_000_000_000_1, "0.00092"),
            (-0.000_001_23, "-0.0000012"),
            (0.000_000_123, "1.2e-7"),
            (999_999_999_999_999.0, "999999999999999"),
            (-2e300, "-2e300"),
            (f64::NAN, "NaN"),
            (f64::INFINITY, "inf"),
        ] {
            assert_eq!(Number(value).to_string(), text);
        }
        assert_eq!(format!("{:>6}|", Number(1.5)), "   1.5|");
    }

    #[test]
    fn times_and_percentages_are_rounded_at_boundaries() {
        for (value, text) in [
            (0, "0 ns"),
            (999, "999 ns"),
            (1000, "1.0 µs"),
            (9_949, "9.9 µs"),
            (9_960, "10 µs"),
            (999_499, "999 µs"),
            (999_500, "1.0 ms"),
            (6_100_000, "6.1 ms"),
            (999_500_000, "1.0 s"),
            (125_000_000_000, "125 s"),
        ] {
            assert_eq!(Nanoseconds(value).to_string(), text);
        }
        for (share, text) in [
            (0.0, "0 %"),
            (-1.0, "0 %"),
            (f64::NAN, "0 %"),
            (0.0001, "<0.1 %"),
            (0.0041, "0.4 %"),
            (0.0994, "9.9 %"),
            (0.0996, "10 %"),
            (0.994, "99 %"),
            (0.998, ">99 %"),
            (1.0, "100 %"),
        ] {
            assert_eq!(Percent(share).to_string(), text);
        }
    }

    #[test]
    fn durations_have_at_most_two_units() {
        for (seconds, age, watch) in [
            (0, "0s", "0:00"),
            (59, "59s", "0:59"),
            (60, "1m", "1:00"),
            (3600, "1h 0m", "1:00:00"),
            (11_520, "3h 12m", "3:12:00"),
            (187_200, "2d 4h", "52:00:00"),
            (33_264_000, "1y 20d", "9240:00:00"),
        ] {
            assert_eq!(Age(Duration::from_secs(seconds)).to_string(), age);
            assert_eq!(Stopwatch(Duration::from_secs(seconds)).to_string(), watch);
        }
    }
}
