//! Counter values as text, CSV or JSON.

use std::fs::File;
use std::io::{self, Write};

use anyhow::Context;
use foldhash::{HashMap, HashSet};
use jiff::Timestamp;
use jiff::tz::TimeZone;

use crate::analysis::{CounterKind, CounterSnapshot, CounterSource, CountersSnapshot, MeterNotice, without_duplicates};
use crate::cli::args::CounterFormat;
use crate::cli::print::{self, json};
use crate::cli::stdout::StdoutWriter;
use crate::model::{Number, csv_field, safe};
use crate::session::CounterSelection;

/// Prints every value once.
pub(super) struct Printer<'a> {
    format: CounterFormat,
    /// Output file; standard output if `None`.
    file: Option<File>,
    pub(super) stdout: &'a StdoutWriter,
    /// The counters to print.
    selection: CounterSelection,
    /// Time of the latest printed value, by group, name and tags.
    printed: HashMap<(String, String, String), i64>,
    /// Notices already printed.
    printed_notices: HashSet<String>,
    /// Whether any value was printed.
    pub(super) any_printed: bool,
    /// Number of intervals that were not printed because the output is not read.
    pub(super) skipped: u64,
}

/// A value as written in text and CSV.
struct Row<'a> {
    counter: &'a CounterSnapshot,
    /// Unit, with the interval for a rate.
    unit: String,
    tags: String,
    kind: &'static str,
    value: Option<f64>,
}

impl<'a> Printer<'a> {
    pub(super) fn new(format: CounterFormat, file: Option<File>, stdout: &'a StdoutWriter, selection: CounterSelection) -> Self {
        Self {
            format,
            file,
            stdout,
            selection,
            printed: HashMap::default(),
            printed_notices: HashSet::default(),
            any_printed: false,
            skipped: 0,
        }
    }

    /// Starts a new session, whose clock differs from that of the previous one.
    pub(super) fn begin(&mut self) {
        self.printed.clear();
    }

    /// Prints a notice about the values, once.
    fn print_notice(&mut self, notice: &MeterNotice) {
        if matches!(notice, MeterNotice::OtherLimits(_)) {
            return;
        }
        let words = notice.to_string();
        if self.printed_notices.insert(words.clone()) {
            print::message(words);
        }
    }

    /// Prints the new values of the selection, and the new notices. Returns whether the output is still open.
    pub(super) fn print(&mut self, snapshot: &CountersSnapshot) -> anyhow::Result<bool> {
        snapshot.notices.iter().for_each(|notice| self.print_notice(notice));
        // A counter that is published both as an EventCounter and by a meter is shown once, as in dotnet-counters.
        let counters = without_duplicates(&snapshot.counters);
        let new: Vec<_> = counters.filter(|counter| self.selection.has(counter) && self.is_new(counter)).collect();
        if new.is_empty() {
            return Ok(true);
        }
        if self.file.is_none() && !self.stdout.has_room() {
            self.skipped += 1;
            return Ok(true);
        }
        let now = Timestamp::now();
        let (format, has_header) = (self.format, std::mem::replace(&mut self.any_printed, true));
        let lines = match format {
            CounterFormat::Json => json_lines(now, &new)?,
            CounterFormat::Csv => csv(now, &new, has_header)?,
            CounterFormat::Text => text(now, &new, has_header)?,
        };
        match &mut self.file {
            None => self.stdout.write(lines),
            Some(file) => file.write_all(&lines).context("cannot write the values to the file")?,
        }
        Ok(!self.stdout.is_closed())
    }

    fn is_new(&mut self, counter: &CounterSnapshot) -> bool {
        let key = (counter.group.clone(), counter.name.clone(), counter.tags.clone());
        self.printed.insert(key, counter.at) != Some(counter.at)
    }
}

fn json_lines(now: Timestamp, counters: &[&CounterSnapshot]) -> io::Result<Vec<u8>> {
    let mut out = Vec::new();
    let time = format!("{now:.3}");
    for counter in counters {
        let mut line = json!({
            "schema": print::SCHEMA,
            "time": time,
            "source": counter.source.name(),
            "provider": counter.group,
            "name": counter.name,
            "display_name": counter.display_name,
            "unit": counter.unit,
            "tags": counter.tags,
            "kind": counter.kind.name(),
            "value": counter.value.map(exact),
            // Change in the interval.
            "delta": counter.delta.map(exact),
            // Change per second.
            "rate": counter.rate.map(exact),
            "interval_s": counter.interval_s.map(exact),
        });
        if let Some(reading) = &counter.histogram {
            // Quantiles (0 to 1) and their values.
            let quantiles: Vec<_> = reading.quantiles.iter().map(|(share, value)| (share, exact(*value))).collect();
            line["histogram"] = json!({ "quantiles": quantiles, "count": reading.count, "sum": reading.sum.map(exact) });
        }
        out.extend(print::json_line(&line).map_err(io::Error::other)?.into_bytes());
    }
    Ok(out)
}

/// Writes the columns of dotnet-counters.
fn csv(now: Timestamp, counters: &[&CounterSnapshot], has_header: bool) -> io::Result<Vec<u8>> {
    let mut out = Vec::new();
    if !has_header {
        writeln!(out, "Timestamp,Provider,Counter Name,Counter Type,Mean/Increment")?;
    }
    let time = now.to_zoned(TimeZone::system()).strftime("%m/%d/%Y %H:%M:%S").to_string();
    for Row { counter, unit, tags, kind, value } in counters.iter().flat_map(|counter| total(counter).into_iter().chain(rows(counter))) {
        let name = format!("{}{}{}", counter.display_name, bracketed(" (", &unit, ")"), bracketed("[", &tags, "]"));
        // No row instead of 0 if nothing was measured.
        if let Some(value) = value {
            writeln!(out, "{time},{},{},{kind},{}", csv_field(&counter.group), csv_field(&name), Number(value))?;
        }
    }
    Ok(print::safe_lines(&out).into_bytes())
}

fn text(now: Timestamp, counters: &[&CounterSnapshot], has_header: bool) -> io::Result<Vec<u8>> {
    let mut out = Vec::new();
    let gap = if has_header { "\n" } else { "" };
    writeln!(out, "{gap}{}", now.to_zoned(TimeZone::system()).strftime("%H:%M:%S"))?;
    let mut group = None;
    for Row { counter, unit, tags, value, .. } in counters.iter().flat_map(|counter| rows(counter)) {
        if group != Some(&counter.group) {
            group = Some(&counter.group);
            writeln!(out, "[{}]", safe(&counter.group))?;
        }
        let value = value.map_or("-".to_owned(), plain);
        let name = format!("{}{}{}", counter.display_name, bracketed(" (", &unit, ")"), bracketed(" [", &tags, "]"));
        writeln!(out, "    {value:>15}  {}", safe(&name))?;
    }
    Ok(out)
}

/// Returns a row for the total of a counter of a meter, which is what dotnet-counters writes; [`rows`] has it in the first interval.
fn total(counter: &CounterSnapshot) -> Option<Row<'_>> {
    let has_both = counter.source == CounterSource::Meter && counter.kind == CounterKind::Counter && counter.scaled_rate.is_some();
    let row = || Row { counter, unit: counter.unit.clone(), tags: counter.tags.clone(), kind: "Metric", value: counter.value };
    has_both.then(row)
}

/// Returns one row for the rate of a counter, one for the value of a gauge, and one per quantile of a histogram. In the first interval of an
/// observable counter the rate is unknown, so its total is shown.
fn rows(counter: &CounterSnapshot) -> Vec<Row<'_>> {
    let row = |unit: String, tags: String, kind, value| Row { counter, unit, tags, kind, value };
    let (unit, tags) = (counter.unit.clone(), counter.tags.clone());
    match (counter.kind, &counter.histogram) {
        (CounterKind::Histogram, Some(reading)) => {
            let percentile = |share: f64| format!("Percentile={}", (share * 1e4).round() / 100.0);
            let tagged = |share| if tags.is_empty() { percentile(share) } else { format!("{tags},{}", percentile(share)) };
            reading.quantiles.iter().map(|(share, value)| row(unit.clone(), tagged(*share), "Metric", Some(*value))).collect()
        }
        (CounterKind::Counter, _) => vec![match counter.scaled_rate {
            Some((rate, seconds)) => {
                let unit = if unit.is_empty() { "Count" } else { &unit };
                row(format!("{unit} / {} sec", Number(seconds)), tags, "Rate", Some(rate))
            }
            None => row(unit, tags, "Metric", counter.value),
        }],
        _ => vec![row(unit, tags, "Metric", counter.value)],
    }
}

fn bracketed(open: &str, inside: &str, close: &str) -> String {
    if inside.is_empty() { String::new() } else { format!("{open}{inside}{close}") }
}

/// Formats a number with thousands separators.
fn plain(value: f64) -> String {
    let text = Number(value).to_string();
    let (whole, rest) = text.split_at(text.find('.').unwrap_or(text.len()));
    let (sign, digits) = whole.strip_prefix('-').map_or(("", whole), |digits| ("-", digits));
    // A power of ten, or not a number.
    if !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return text;
    }
    let groups: Vec<_> = digits.as_bytes().rchunks(3).rev().map(|group| String::from_utf8_lossy(group)).collect();
    format!("{sign}{}{rest}", groups.join(","))
}

/// Removes rounding errors from the last digits of a number: 0.012175 instead of 0.012175000000000047. An integer, such as a total in bytes, has none.
fn exact(value: f64) -> f64 {
    if value.fract() == 0.0 { value } else { format!("{value:.11e}").parse().unwrap_or(value) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::analysis::HistogramReading;

    fn counter(kind: CounterKind, name: &str, tags: &str) -> CounterSnapshot {
        CounterSnapshot {
            source: CounterSource::Meter,
            kind,
            group: "App".into(),
            name: name.into(),
            display_name: name.into(),
            unit: String::new(),
            tags: tags.into(),
            value: Some(1_234_567.25),
            delta: Some(3.0),
            rate: Some(1.5),
            scaled_rate: Some((3.0, 2.0)),
            spread: None,
            histogram: (kind == CounterKind::Histogram).then(|| HistogramReading {
                quantiles: vec![(0.5, 49.0), (0.95, 94.0)],
                count: Some(200),
                sum: Some(9900.0),
                total_count: 200,
                total_sum: 9900.0,
                history: Vec::new(),
            }),
            interval_s: Some(2.0),
            at: 7,
            history: Vec::new(),
        }
    }

    fn written(write: impl FnOnce(&[&CounterSnapshot]) -> io::Result<Vec<u8>>) -> String {
        let counters = [
            counter(CounterKind::Counter, "hits", "route=/a,\"b\""),
            CounterSnapshot { unit: "ms".into(), ..counter(CounterKind::Histogram, "lat", "") },
            CounterSnapshot { value: None, ..counter(CounterKind::Gauge, "g\u{1b}[2J\u{9b}\u{202e}\n1  h", "") },
            counter(CounterKind::UpDownCounter, "u", ""),
        ];
        String::from_utf8(write(&counters.each_ref()).unwrap()).unwrap()
    }

    #[test]
    fn counters_are_written_as_csv_text_and_json() {
        let now = Timestamp::from_second(1_700_000_000).unwrap();
        let csv = written(|counters| csv(now, counters, false));
        let rows: Vec<_> = csv.lines().map(|line| line.split_once(',').unwrap().1).collect();
        let expected = [
            "Provider,Counter Name,Counter Type,Mean/Increment",
            "App,\"hits[route=/a,\"\"b\"\"]\",Metric,1234567.25",
            "App,\"hits (Count / 2 sec)[route=/a,\"\"b\"\"]\",Rate,3",
            "App,lat (ms)[Percentile=50],Metric,49",
            "App,lat (ms)[Percentile=95],Metric,94",
            "App,u,Metric,1234567.25",
        ];
        assert_eq!(rows, expected, "what has no value has no row");
        let text = written(|counters| text(now, counters, true));
        let rows: Vec<_> = text.lines().skip(2).map(str::trim).collect();
        assert_eq!(rows[..3], ["[App]", "3  hits (Count / 2 sec) [route=/a,\"b\"]", "49  lat (ms) [Percentile=50]"]);
        assert_eq!(rows[4..], ["-  g\u{fffd}[2J\u{fffd}\u{fffd} 1  h", "1,234,567.25  u"]);
        let json = written(|counters| json_lines(now, counters));
        let lines: Vec<serde_json::Value> = json.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        assert_eq!(lines.len(), 4);
        assert_eq!(lines[2]["name"], "g\u{1b}[2J\u{9b}\u{202e}\n1  h");
        assert!(!json.contains(['\u{1b}', '\u{9b}', '\u{202e}']), "{json}");
        assert_eq!((&lines[0]["time"], &lines[0]["delta"]), (&"2023-11-14T22:13:20.000Z".into(), &3.0.into()));
        assert_eq!(lines[1]["histogram"]["quantiles"], serde_json::json!([[0.5, 49.0], [0.95, 94.0]]));
        assert_eq!((&lines[2]["value"], lines[2].get("histogram")), (&serde_json::Value::Null, None));
    }

    #[test]
    fn counter_without_a_rate_shows_its_total() {
        let first = CounterSnapshot { delta: None, rate: None, scaled_rate: None, ..counter(CounterKind::Counter, "hits", "") };
        let nothing = CounterSnapshot { value: None, ..first.clone() };
        let noisy = CounterSnapshot {
            scaled_rate: Some((0.012_175_000_000_000_047, 1.0)),
            rate: Some(0.012_175_000_000_000_047),
            value: Some(-2e300),
            delta: Some(12_345_678_901_234.0),
            ..counter(CounterKind::Counter, "noisy", "")
        };
        let counters = [&first, &nothing, &noisy];
        let text = String::from_utf8(csv(Timestamp::UNIX_EPOCH, &counters, true).unwrap()).unwrap();
        let rows: Vec<_> = text.lines().map(|line| line.split_once(',').unwrap().1).collect();
        assert_eq!(rows, ["App,hits,Metric,1234567.25", "App,noisy,Metric,-2e300", "App,noisy (Count / 1 sec),Rate,0.012"]);
        let text = String::from_utf8(json_lines(Timestamp::UNIX_EPOCH, &[&noisy]).unwrap()).unwrap();
        assert!(
            text.contains("\"rate\":0.012175,") && text.contains("\"value\":-2e+300,") && text.contains("\"delta\":12345678901234.0,"),
            "{text}"
        );
    }

    #[test]
    fn numbers_are_formatted_with_thousands_separators() {
        for (value, text) in [
            (0.0, "0"),
            (42.0, "42"),
            (-1234.5, "-1,234.5"),
            (1e6, "1,000,000"),
            (0.0004, "0.0004"),
            (f64::NAN, "NaN"),
            (999.0, "999"),
            (-2e300, "-2e300"),
        ] {
            assert_eq!(plain(value), text);
        }
    }
}
