//! A value of a process to wait for: `cpu>80 for 10s`, `memory>2GB`, `gc-heap-size>500MB`.

use std::fmt;
use std::time::Duration;

use super::{Bytes, Number, format_size, parse_size, safe};
use crate::clr::COUNTERS_PROVIDER;

pub(super) const EXPECTED: &str = "expected NAME>VALUE or NAME<VALUE, with \" for TIME\" if it must last, such as \"cpu>80 for 10s\", memory>2GB or \
     exception-count>100; NAME is cpu, memory, threads, open-files or a counter, with [TAG=VALUE] if only one of its series counts; or an event: \
     exception, exception:TEXT or PROVIDER/EVENT, with \" N times in TIME\" if once is not enough; any of several: \"cpu>80 or memory>2GB\"";

/// A figure of a process, and the value that it must reach.
#[derive(Debug, Clone, PartialEq)]
pub struct Threshold {
    /// The figure to read.
    pub figure: Figure,
    comparison: Comparison,
    limit: Limit,
    /// How long every reading must be beyond the limit.
    pub lasting: Duration,
}

/// The number is finite.
impl Eq for Threshold {}

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
        /// Tags that a series must have, as `TAG=VALUE`.
        tags: Vec<String>,
    },
}

listed! {
/// Those whose sign is the beginning of another come after it.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Comparison {
    AtLeast => ">=",
    Above => ">",
    AtMost => "<=",
    Below => "<",
}
fn sign(self) -> &'static str;
}

impl Comparison {
    fn holds(self, value: f64, limit: f64) -> bool {
        match self {
            Self::Above => value > limit,
            Self::AtLeast => value >= limit,
            Self::Below => value < limit,
            Self::AtMost => value <= limit,
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum Limit {
    /// In the unit of the figure.
    Number(f64),
    /// In bytes.
    Size(u64),
}

impl Threshold {
    /// Parses `[PROVIDER/]NAME[[TAG=VALUE,..]]>VALUE`, or with another sign, followed by ` for TIME` if it must last.
    ///
    /// # Errors
    /// Returns a sentence with the expected syntax.
    pub(super) fn parse(text: &str) -> Result<Self, String> {
        let (condition, lasting) = match text.split_once(" for ") {
            Some((condition, time)) => (condition, humantime::parse_duration(time.trim()).map_err(|error| error.to_string())?),
            None => (text, Duration::ZERO),
        };
        // A tag may contain anything.
        let after_tags = condition.find(']').map_or(0, |end| end + 1);
        let at = after_tags + condition[after_tags..].find(['>', '<']).ok_or(EXPECTED)?;
        let (name, comparison) = (condition[..at].trim(), &condition[at..]);
        let comparison = Comparison::ALL.into_iter().find(|known| comparison.starts_with(known.sign())).ok_or(EXPECTED)?;
        let value = condition[at + comparison.sign().len()..].trim();
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
                let (name, tags) = match name.strip_suffix(']') {
                    Some(tagged) => tagged.split_once('[').ok_or(EXPECTED)?,
                    None => (name, ""),
                };
                let tags: Vec<_> = tags.split(',').map(|tag| tag.trim().to_owned()).filter(|tag| !tag.is_empty()).collect();
                let (provider, name) = name.rsplit_once('/').unwrap_or((COUNTERS_PROVIDER, name));
                // Both are part of a list of counters in the request. With a colon, it is an event with a text.
                let is_wrong = |name: &str| name.is_empty() || name.contains(['[', ']', ',', ' ', '*', ':', '=']);
                if is_wrong(provider) || is_wrong(name) || !tags.iter().all(|tag| tag.contains('=')) {
                    return Err(EXPECTED.to_owned());
                }
                Figure::Counter { provider: provider.to_owned(), name: name.to_owned(), tags }
            }
        };
        let has_no_size = matches!(figure, Figure::Cpu | Figure::Threads | Figure::OpenFiles);
        if has_no_size && matches!(limit, Limit::Size(_)) {
            return Err(format!("{name} is a number, not a size"));
        }
        match figure {
            Figure::Memory if value.ends_with('%') => {
                return Err("memory is compared with a size, such as 2GB, not with a percentage".to_owned());
            }
            Figure::Threads | Figure::OpenFiles if value.ends_with('%') => return Err(format!("{name} is a number, not a percentage")),
            _ => {}
        }
        Ok(Self { figure, comparison, limit, lasting })
    }

    /// Returns whether a value in this unit meets the condition; `None` if the condition has a size, and this is not a unit of sizes.
    pub fn is_met(&self, value: f64, unit: &str) -> Option<bool> {
        let (value, limit) = match self.limit {
            Limit::Number(limit) => (value, limit),
            Limit::Size(limit) => (value * bytes_of(unit)?, limit as f64),
        };
        Some(self.comparison.holds(value, limit))
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

/// Formats the threshold as it is parsed.
impl fmt::Display for Threshold {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let sign = self.comparison.sign();
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
            Self::Counter { provider, name, tags } => {
                if provider != COUNTERS_PROVIDER {
                    write!(f, "{provider}/")?;
                }
                f.write_str(name)?;
                if tags.is_empty() { Ok(()) } else { write!(f, "[{}]", tags.join(",")) }
            }
        }
    }
}

impl Figure {
    /// Returns whether a series of the counter with these tags (`TAG=VALUE,..`) counts.
    pub fn has_tags(&self, found: &str) -> bool {
        let Self::Counter { tags, .. } = self else { return true };
        tags.iter().all(|wanted| found.split(',').any(|tag| tag == wanted))
    }

    /// Returns a value of this figure as text; a counter has this unit, which need not be sanitized.
    pub fn text(&self, value: f64, unit: &str) -> String {
        match self {
            // Rounded to an integer, a value below 1 could look like 1.
            Self::Cpu => format!("{value:.1} %"),
            Self::Memory => Bytes(value as u64).to_string(),
            Self::Threads | Self::OpenFiles => Number(value).to_string(),
            Self::Counter { .. } => format!("{} {}", Number(value), safe(unit)).trim_end().to_owned(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_compared_in_the_unit_of_the_limit() {
        for (text, value, unit, expected) in [
            ("cpu>80", 80.0, "", Some(false)),
            ("cpu>80", 80.1, "", Some(true)),
            ("cpu>=80", 80.0, "", Some(true)),
            ("cpu<80", 80.0, "", Some(false)),
            ("cpu<80", 79.9, "", Some(true)),
            ("cpu<=80", 80.0, "", Some(true)),
            ("memory>1GB", 1e9, "B", Some(false)),
            ("memory>1GB", 1.1e9, "B", Some(true)),
            ("gc-heap-size>500MB", 501.0, "MB", Some(true)),
            ("gc-heap-size>500", 501.0, "MB", Some(true)),
            ("gc-heap-size>500MB", 501.0, "By", Some(false)),
            ("gc-heap-size>500MB", 501.0, "%", None),
        ] {
            assert_eq!(Threshold::parse(text).unwrap().is_met(value, unit), expected, "{text} {value} {unit}");
        }
    }

    /// As a number of bytes it would be met at once.
    #[test]
    fn percentage_of_a_figure_without_one_is_refused() {
        for text in ["memory>80%", "memory > 80 %", "threads>5%", "open-files>80% for 10s"] {
            assert!(Threshold::parse(text).unwrap_err().ends_with(" a percentage"), "{text}");
        }
        for text in ["cpu>80%", "time-in-gc>5%"] {
            assert!(Threshold::parse(text).is_ok(), "{text}");
        }
    }

    /// The value would contradict its condition if it were rounded to an integer.
    #[test]
    fn shown_cpu_time_has_a_decimal() {
        assert_eq!([Figure::Cpu.text(0.63, "B"), Figure::Cpu.text(153.0, "B")], ["0.6 %", "153.0 %"]);
    }

    #[test]
    fn unit_of_a_counter_is_one_line() {
        let figure = Threshold::parse("a>1").unwrap().figure;
        assert_eq!([figure.text(1.5, ""), figure.text(2.0, "MB\n\x1b[2J")], ["1.5", "2 MB \u{fffd}[2J"]);
    }

    #[test]
    fn series_count_if_they_have_the_tags() {
        for (text, tags, expected) in [
            ("a>1", "", true),
            ("a>1", "x=1", true),
            ("a[x=1]>1", "", false),
            ("a[x=1]>1", "x=12", false),
            ("a[x=1]>1", "y=2,x=1", true),
            ("a[x=1,y=2]>1", "y=2,x=1", true),
            ("a[x=1,y=3]>1", "y=2,x=1", false),
            ("cpu>1", "", true),
        ] {
            assert_eq!(Threshold::parse(text).unwrap().figure.has_tags(tags), expected, "{text} {tags}");
        }
    }
}
