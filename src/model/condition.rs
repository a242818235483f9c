//! A condition on a figure of a process: `cpu>80 for 10s`, `memory>2GB`, `gc-heap-size>500MB`.

use std::fmt;
use std::time::Duration;

use super::{Bytes, Number, format_size, parse_size};

/// The provider of counters that are given without one.
const RUNTIME: &str = "System.Runtime";
const EXPECTED: &str = "expected NAME>VALUE or NAME<VALUE, with \" for TIME\" if it must last, such as \"cpu>80 for 10s\", memory>2GB or \
     exception-count>100; NAME is cpu, memory, threads, open-files or a counter";

/// Whether a figure of a process is above or below a value.
#[derive(Debug, Clone, PartialEq)]
pub struct Condition {
    /// The figure to read.
    pub figure: Figure,
    is_above: bool,
    limit: Limit,
    /// How long every reading must be above or below it.
    pub lasting: Duration,
}

/// The number of the condition is finite.
impl Eq for Condition {}

/// A figure of a process.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Figure {
    /// CPU time in percent of one core, since the previous reading.
    Cpu,
    /// Resident memory in bytes.
    Memory,
    /// Number of threads.
    Threads,
    /// Number of open file descriptors.
    OpenFiles,
    /// A counter or an instrument of a meter: the value of a gauge, the change of a counter per second, the highest quantile of a histogram.
    Counter {
        /// The provider or meter.
        provider: String,
        /// The counter.
        name: String,
    },
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum Limit {
    /// In the unit of the figure.
    Number(f64),
    /// In bytes.
    Size(u64),
}

impl Condition {
    /// Parses `[PROVIDER/]NAME>VALUE` or `[PROVIDER/]NAME<VALUE`, followed by ` for TIME` if the condition must last.
    ///
    /// # Errors
    /// Returns a sentence with the expected syntax.
    pub fn parse(text: &str) -> Result<Self, String> {
        let (condition, lasting) = match text.split_once(" for ") {
            Some((condition, time)) => (condition, humantime::parse_duration(time.trim()).map_err(|error| error.to_string())?),
            None => (text, Duration::ZERO),
        };
        let at = condition.find(['>', '<']).ok_or(EXPECTED)?;
        let (name, value) = (condition[..at].trim(), condition[at + 1..].trim());
        let number = value.strip_suffix('%').unwrap_or(value).trim_end().parse().ok().filter(|number: &f64| number.is_finite());
        let limit = match number {
            Some(number) => Limit::Number(number),
            None => Limit::Size(parse_size(value).map_err(|_| EXPECTED)?),
        };
        let figure = match name {
            "cpu" => Figure::Cpu,
            "memory" => Figure::Memory,
            "threads" => Figure::Threads,
            "open-files" => Figure::OpenFiles,
            _ => {
                let (provider, name) = name.rsplit_once('/').unwrap_or((RUNTIME, name));
                // Both are part of a list of counters in the request.
                if [provider, name].iter().any(|name| name.is_empty() || name.contains(['[', ']', ',', ' ', '*'])) {
                    return Err(EXPECTED.to_owned());
                }
                Figure::Counter { provider: provider.to_owned(), name: name.to_owned() }
            }
        };
        let has_no_size = matches!(figure, Figure::Cpu | Figure::Threads | Figure::OpenFiles);
        if has_no_size && matches!(limit, Limit::Size(_)) {
            return Err(format!("{name} is a number, not a size"));
        }
        Ok(Self { figure, is_above: condition[at..].starts_with('>'), limit, lasting })
    }

    /// Returns whether a value in this unit meets the condition; `None` if the condition has a size, and this is not a unit of sizes.
    pub fn is_met(&self, value: f64, unit: &str) -> Option<bool> {
        let (value, limit) = match self.limit {
            Limit::Number(limit) => (value, limit),
            Limit::Size(limit) => (value * bytes_of(unit)?, limit as f64),
        };
        Some(if self.is_above { value > limit } else { value < limit })
    }
}

/// Returns the number of bytes in a unit of a counter: EventCounters have `MB` and `B`, meters `By` (OpenTelemetry).
fn bytes_of(unit: &str) -> Option<f64> {
    match unit {
        "B" | "By" | "bytes" => Some(1.0),
        "KB" | "kB" => Some(1e3),
        "MB" => Some(1e6),
        "GB" => Some(1e9),
        _ => None,
    }
}

/// Formats the condition as [`Condition::parse`] accepts it.
impl fmt::Display for Condition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let sign = if self.is_above { '>' } else { '<' };
        match self.limit {
            Limit::Number(number) => write!(f, "{}{sign}{number}", self.figure)?,
            Limit::Size(bytes) => {
                let size = format_size(bytes);
                // Without a unit it would be a number in the unit of the figure.
                let unit = if size.ends_with('B') { "" } else { "B" };
                write!(f, "{}{sign}{size}{unit}", self.figure)?;
            }
        }
        if self.lasting.is_zero() { Ok(()) } else { write!(f, " for {}", humantime::format_duration(self.lasting)) }
    }
}

impl fmt::Display for Figure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Cpu => f.write_str("cpu"),
            Self::Memory => f.write_str("memory"),
            Self::Threads => f.write_str("threads"),
            Self::OpenFiles => f.write_str("open-files"),
            Self::Counter { provider, name } if provider == RUNTIME => f.write_str(name),
            Self::Counter { provider, name } => write!(f, "{provider}/{name}"),
        }
    }
}

impl Figure {
    /// Returns a value of this figure as text; a counter has this unit.
    pub fn text(&self, value: f64, unit: &str) -> String {
        match self {
            Self::Cpu => format!("{value:.0} %"),
            Self::Memory => Bytes(value as u64).to_string(),
            Self::Threads | Self::OpenFiles => Number(value).to_string(),
            Self::Counter { .. } => format!("{} {unit}", Number(value)).trim_end().to_owned(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn conditions_round_trip() {
        for (text, shown) in [
            ("cpu>80", "cpu>80"),
            ("cpu > 80% for 10s", "cpu>80 for 10s"),
            ("memory>2GB for 1m 30s", "memory>2GB for 1m 30s"),
            ("memory<1000", "memory<1000"),
            ("memory<999B", "memory<999B"),
            ("threads>500", "threads>500"),
            ("open-files>900", "open-files>900"),
            ("gc-heap-size>500MB", "gc-heap-size>500MB"),
            ("System.Runtime/exception-count>0.5", "exception-count>0.5"),
            ("Microsoft.AspNetCore.Hosting/current-requests<1 for 1s", "Microsoft.AspNetCore.Hosting/current-requests<1 for 1s"),
        ] {
            assert_eq!(Condition::parse(text).unwrap().to_string(), shown);
            assert_eq!(Condition::parse(shown).unwrap(), Condition::parse(text).unwrap());
        }
        for wrong in [
            "",
            "cpu",
            "cpu>",
            ">80",
            "cpu>x",
            "cpu>NaN",
            "cpu>inf",
            "cpu>80 for",
            "cpu>80 for ever",
            "cpu=80",
            "cpu>>80",
            "cpu>=80",
            "cpu>2GB",
            "a/>1",
            "/a>1",
            "a b>1",
            "a[b]>1",
            "a,b>1",
            "a/b*>1",
        ] {
            assert!(Condition::parse(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn values_are_compared_in_the_unit_of_the_limit() {
        for (text, value, unit, expected) in [
            ("cpu>80", 80.0, "", Some(false)),
            ("cpu>80", 80.1, "", Some(true)),
            ("cpu<80", 80.0, "", Some(false)),
            ("cpu<80", 79.9, "", Some(true)),
            ("memory>1GB", 1e9, "B", Some(false)),
            ("memory>1GB", 1.1e9, "B", Some(true)),
            ("gc-heap-size>500MB", 501.0, "MB", Some(true)),
            ("gc-heap-size>500", 501.0, "MB", Some(true)),
            ("gc-heap-size>500MB", 501.0, "By", Some(false)),
            ("gc-heap-size>500MB", 501.0, "%", None),
        ] {
            assert_eq!(Condition::parse(text).unwrap().is_met(value, unit), expected, "{text} {value} {unit}");
        }
    }
}
