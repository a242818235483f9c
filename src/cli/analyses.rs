//! `gc`, `exceptions`, `allocations`, `contention`, `jit`, `http`, `logs` and `events`: one analysis of a nettrace file, or of a process for some time.

use std::io::Write;
use std::path::Path;

use anyhow::Context;
use serde::ser::SerializeMap;
use serde::{Serialize, Serializer};
use tokio::time::sleep;

use super::args;
use super::exit::{Exit, Failure};
use super::host::Host;
use super::print;
use super::target::{called, connect_running, not_started};
use crate::analysis::{EventCount, LEVELS, Live, Snapshot};
use crate::clr::select;
use crate::model::{Bytes, Count, Nanoseconds, SafeText, Stopwatch};
use crate::net::interrupts::Interrupts;
use crate::session::{Listener, Recorded, StopLimit};

/// What is analysed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Analysis {
    Gc,
    Exceptions,
    Allocations,
    Contention,
    Jit,
    Http,
    Logs,
    Events,
}

/// A figure or a text, by its name in JSON.
type Field = (&'static str, Value);

#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(untagged)]
enum Value {
    Count(u64),
    Bytes(u64),
    Nanoseconds(u64),
    Text(SafeText),
    Missing,
}

struct Fields(Vec<Field>);

impl Serialize for Fields {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(self.0.len()))?;
        self.0.iter().try_for_each(|(name, value)| map.serialize_entry(name, value))?;
        map.end()
    }
}

/// The document of the command line contract. Sizes are bytes where the name ends in `_bytes`, and times nanoseconds where it ends in `_ns`.
#[derive(Serialize)]
struct Document {
    duration_ms: u64,
    dropped_events: u64,
    /// Whether all of the recording could be read.
    complete: bool,
    #[serde(flatten)]
    totals: Fields,
    rows: Vec<Fields>,
}

impl Analysis {
    /// The profile that records what it needs.
    fn profile(self) -> &'static str {
        match self {
            Self::Gc => "gc-collect",
            Self::Exceptions => "exceptions",
            Self::Allocations => "gc-verbose",
            Self::Contention => "contention",
            Self::Jit => "startup",
            Self::Http => "http",
            Self::Logs => "logs",
            Self::Events => "dotnet-common",
        }
    }

    fn totals(self, found: &Snapshot) -> Vec<Field> {
        match self {
            Self::Gc => {
                let (gc, pauses) = (&found.gc, &found.gc.pauses);
                let [gen0, gen1, gen2] = gc.collections.map(Value::Count);
                let heap = gc.heap.as_ref().map_or(Value::Missing, |heap| Value::Bytes(heap.size()));
                let [.., p95, p99] =
                    pauses.quantiles_ns.map_or([Value::Missing, Value::Missing, Value::Missing], |all| all.map(Value::Nanoseconds));
                vec![
                    ("gen0", gen0),
                    ("gen1", gen1),
                    ("gen2", gen2),
                    ("induced", Value::Count(gc.induced)),
                    ("pauses", Value::Count(pauses.count)),
                    ("total_pause_ns", Value::Nanoseconds(pauses.total_ns)),
                    ("max_pause_ns", Value::Nanoseconds(pauses.longest_ns)),
                    ("p95_pause_ns", p95),
                    ("p99_pause_ns", p99),
                    ("heap_bytes", heap),
                ]
            }
            Self::Exceptions => {
                vec![("thrown", Value::Count(found.exceptions.thrown)), ("rethrown", Value::Count(found.exceptions.rethrown))]
            }
            Self::Allocations => match &found.gc.allocations {
                Some(allocations) => {
                    let [small, large, pinned] = allocations.by_kind.map(Value::Bytes);
                    vec![
                        ("allocated_bytes", Value::Bytes(allocations.bytes)),
                        ("small_bytes", small),
                        ("large_bytes", large),
                        ("pinned_bytes", pinned),
                    ]
                }
                None => vec![("allocated_bytes", Value::Missing)],
            },
            Self::Contention => {
                let contention = &found.contention;
                vec![
                    ("contentions", Value::Count(contention.count)),
                    ("waiting", Value::Count(contention.waiting as u64)),
                    ("wait_ns", Value::Nanoseconds(contention.wait_ns)),
                    ("max_wait_ns", Value::Nanoseconds(contention.longest_ns)),
                ]
            }
            Self::Jit => {
                let time = found.jit.time.as_ref();
                vec![
                    ("methods", Value::Count(found.jit.bodies)),
                    ("compiled", Value::Count(found.jit.jitted)),
                    ("time_ns", time.map_or(Value::Missing, |time| Value::Nanoseconds(time.total_ns))),
                    ("il_bytes", time.map_or(Value::Missing, |time| Value::Bytes(time.il_bytes))),
                ]
            }
            Self::Http => vec![("requests", Value::Count(found.activities.requests()))],
            Self::Logs => LEVELS.iter().copied().zip(found.logs.by_level.map(Value::Count)).collect(),
            Self::Events => vec![("events", Value::Count(found.totals.events)), ("event_bytes", Value::Bytes(found.totals.payload_bytes))],
        }
    }

    fn rows(self, found: &Snapshot, events: Vec<EventCount>, most: usize) -> Vec<Vec<Field>> {
        let text = |text: &str| Value::Text(SafeText::new(text));
        let bytes = |known: Option<u64>| known.map_or(Value::Missing, Value::Bytes);
        let ns = |known: Option<u64>| known.map_or(Value::Missing, Value::Nanoseconds);
        let at = |at: i64| Value::Nanoseconds(at.max(0).unsigned_abs());
        match self {
            Self::Gc => take(&found.gc.recent, most, |gc| {
                vec![
                    ("at_ns", at(gc.start)),
                    ("generation", Value::Count(gc.generation.into())),
                    ("pause_ns", ns(gc.pause_ns)),
                    ("before_bytes", bytes(gc.heap_before)),
                    ("after_bytes", bytes(gc.heap_after)),
                    ("promoted_bytes", bytes(gc.promoted)),
                    ("type", text(gc.kind.name())),
                    ("reason", text(gc.reason.name())),
                ]
            }),
            Self::Exceptions => take(&found.exceptions.types, most, |kind| {
                vec![("count", Value::Count(kind.count)), ("type", text(&kind.name)), ("last_message", text(&kind.last.message))]
            }),
            Self::Allocations => take(found.gc.allocations.as_ref().map_or(&[], |allocations| &allocations.top), most, |kind| {
                vec![("bytes", Value::Bytes(kind.bytes)), ("largest_bytes", Value::Bytes(kind.largest)), ("type", text(&kind.name))]
            }),
            Self::Contention => take(&found.contention.sites, most, |site| {
                vec![
                    ("count", Value::Count(site.count)),
                    ("wait_ns", Value::Nanoseconds(site.wait_ns)),
                    ("max_wait_ns", Value::Nanoseconds(site.longest_ns)),
                    ("method", text(&site.method)),
                ]
            }),
            Self::Jit => take(found.jit.time.as_ref().map_or(&[], |time| &time.slowest), most, |method| {
                vec![
                    ("time_ns", Value::Nanoseconds(method.time_ns)),
                    ("il_bytes", Value::Bytes(method.il_size.into())),
                    ("tier", text(method.tier.name())),
                    ("method", text(&method.name)),
                ]
            }),
            Self::Http => take(&found.activities.operations, most, |operation| {
                let [p50, p95, p99] =
                    operation.quantiles_ns.map_or([Value::Missing, Value::Missing, Value::Missing], |all| all.map(Value::Nanoseconds));
                vec![
                    ("started", Value::Count(operation.started)),
                    ("failed", Value::Count(operation.failed)),
                    ("running", Value::Count(operation.running)),
                    ("p50_ns", p50),
                    ("p95_ns", p95),
                    ("p99_ns", p99),
                    ("max_ns", Value::Nanoseconds(operation.longest_ns)),
                    ("provider", text(&operation.provider)),
                    ("operation", text(&operation.name)),
                ]
            }),
            Self::Logs => take(&found.logs.recent, most, |message| {
                vec![
                    ("at_ns", at(message.at)),
                    ("level", text(LEVELS.get(message.level).copied().unwrap_or_default())),
                    ("logger", text(&message.logger)),
                    ("message", text(&message.text)),
                ]
            }),
            Self::Events => take(&events, most, |event| {
                vec![
                    ("count", Value::Count(event.count)),
                    ("bytes", Value::Bytes(event.bytes)),
                    ("id", Value::Count(event.event_id.into())),
                    ("provider", text(&event.provider)),
                    ("event", text(&event.title())),
                ]
            }),
        }
    }
}

fn take<T>(all: &[T], most: usize, row: impl Fn(&T) -> Vec<Field>) -> Vec<Vec<Field>> {
    all.iter().take(most).map(row).collect()
}

pub(super) async fn run(host: &Host, analysis: Analysis, arguments: &args::Analyze) -> Result<Exit, Failure> {
    let (live, complete, exit) = match arguments.file() {
        Some(path) => read(path)?,
        None => record(host, analysis, arguments).await?,
    };
    let found = live.snapshot(live.end());
    let mut events = live.throughput().counts();
    events.sort_by_key(|event| std::cmp::Reverse(event.count));
    let rows = analysis.rows(&found, events, arguments.count);
    let document = Document {
        duration_ms: found.recorded_ns / 1_000_000,
        dropped_events: found.totals.dropped,
        complete,
        totals: Fields(analysis.totals(&found)),
        rows: rows.into_iter().map(Fields).collect(),
    };
    if arguments.output.json {
        print::json(&document)?;
    } else {
        print::text(|out| write_text(out, &document))?;
    }
    if document.rows.is_empty() {
        print::say(format_args!("{} has nothing of this; profile {} records it", arguments.source, analysis.profile()));
    }
    if document.dropped_events > 0 {
        print::say(format_args!("the runtime dropped {} events", Count(document.dropped_events)));
    }
    Ok(exit)
}

/// Everything in a file.
fn read(path: &Path) -> Result<(Live, bool, Exit), Failure> {
    let mut live = Live::default();
    let pass = Recorded::open(path).and_then(|mut recorded| recorded.read(&mut live)).map_err(Failure::failed)?;
    if let Some(trouble) = pass.trouble() {
        print::say(format_args!("{}: {trouble}", path.display()));
    }
    let complete = pass.ending.is_complete() && !live.throughput().loses_content();
    Ok((live, complete, Exit::Done))
}

/// What a process does for some time, or until Ctrl-C.
async fn record(host: &Host, analysis: Analysis, arguments: &args::Analyze) -> Result<(Live, bool, Exit), Failure> {
    let (process, client) = connect_running(host, &arguments.source).await?;
    let config = select(&[analysis.profile()], &[] as &[&str], None).map_err(Failure::usage)?.config;
    let mut interrupts = Interrupts::new().context("signals cannot be waited for")?;
    let mut listener = Listener::start(client, &config, Live::default(), u64::MAX).await.map_err(not_started)?;
    let name = called(&process);
    print::say(format_args!("recording {name} for {}; Ctrl-C stops it", humantime::format_duration(arguments.duration)));
    let exit = tokio::select! {
        () = sleep(arguments.duration) => Exit::Done,
        () = ended(&listener) => Exit::Done,
        () = interrupts.next() => Exit::Interrupted,
    };
    let stopped = tokio::select! {
        stopped = listener.stop(StopLimit::RUNDOWN) => stopped,
        // The session ends with its connection.
        () = interrupts.next() => return Err(Failure::new(Exit::Interrupted, anyhow::anyhow!("stopped before the rundown was complete"))),
    };
    if let Err(why) = &stopped {
        print::say(format_args!("{name}: {why}"));
    }
    Ok((listener.take(), stopped.is_ok(), exit))
}

async fn ended(listener: &Listener<Live>) {
    while !listener.is_over() {
        sleep(std::time::Duration::from_millis(100)).await;
    }
}

fn write_text(out: &mut dyn Write, document: &Document) -> std::io::Result<()> {
    writeln!(out, "recorded {}", Stopwatch(std::time::Duration::from_millis(document.duration_ms)))?;
    for (name, value) in &document.totals.0 {
        writeln!(out, "{:<18}{}", title(name), shown(value))?;
    }
    let Some(first) = document.rows.first() else { return Ok(()) };
    let mut table = vec![first.0.iter().map(|(name, _)| title(name).to_uppercase()).collect::<Vec<_>>()];
    table.extend(document.rows.iter().map(|row| row.0.iter().map(|(_, value)| shown(value)).collect()));
    let columns: Vec<(bool, usize)> = first
        .0
        .iter()
        .enumerate()
        .map(|(at, (_, value))| (matches!(value, Value::Text(_)), table.iter().map(|row| row[at].chars().count()).max().unwrap_or(0)))
        .collect();
    writeln!(out)?;
    for row in &table {
        let cells = row
            .iter()
            .zip(&columns)
            .map(|(cell, (is_text, width))| if *is_text { format!("{cell:<width$}") } else { format!("{cell:>width$}") });
        writeln!(out, "{}", cells.collect::<Vec<_>>().join("  ").trim_end())?;
    }
    Ok(())
}

fn title(name: &str) -> String {
    let name = name.strip_suffix("_ns").or_else(|| name.strip_suffix("_bytes")).unwrap_or(name);
    name.replace('_', " ")
}

fn shown(value: &Value) -> String {
    match value {
        Value::Count(count) => Count(*count).to_string(),
        Value::Bytes(bytes) => Bytes(*bytes).to_string(),
        Value::Nanoseconds(ns) => Nanoseconds(*ns).to_string(),
        Value::Text(text) => text.to_string(),
        Value::Missing => "-".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clr::profile;

    #[test]
    fn every_analysis_has_its_profile() {
        use Analysis::{Allocations, Contention, Events, Exceptions, Gc, Http, Jit, Logs};
        for analysis in [Gc, Exceptions, Allocations, Contention, Jit, Http, Logs, Events] {
            assert!(profile(analysis.profile()).is_ok(), "{analysis:?}");
        }
    }

    #[test]
    fn tables_are_aligned() {
        let row = |count, name: &str| {
            Fields(vec![("count", Value::Count(count)), ("wait_ns", Value::Missing), ("method", Value::Text(name.into()))])
        };
        let totals = Fields(vec![("max_wait_ns", Value::Nanoseconds(1_500_000))]);
        let document =
            Document { duration_ms: 61_000, dropped_events: 0, complete: true, totals, rows: vec![row(7, "A.B"), row(123, "C")] };
        let mut out = Vec::new();
        write_text(&mut out, &document).unwrap();
        let expected = "recorded 1:01\nmax wait          1.5 ms\n\nCOUNT  WAIT  METHOD\n    7     -  A.B\n  123     -  C\n";
        assert_eq!(String::from_utf8(out).unwrap(), expected);
    }
}
