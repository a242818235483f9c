//! `gc`, `exceptions`, `allocations`, `contention`, `jit`, `http`, `logs` and `events`: one analysis of a nettrace file or of a live process.

mod document;
mod fields;
mod follow;
mod observe;
mod occurrence;
mod request;
mod routes;
mod stacks;

use std::path::Path;
use std::time::Duration;

use self::document::Found;
pub(super) use self::document::print_analysis;
use self::fields::{Counts, Field, Fields, Value};
pub(super) use self::observe::observe;
use self::occurrence::{collection_fields, message_fields};
pub(super) use self::request::Request;
pub(super) use self::routes::{Routes, missing_status};
use super::args;
use super::exit::{Exit, Failure};
use super::host::Host;
use super::print::{self, json};
use super::target::connect_running;
use crate::analysis::{AllocationSnapshot, CallSite, EventCount, Heap, LEVELS, Layer, Live, Snapshot};
use crate::clr::{unrecorded_provider_note, without_events};
use crate::model::Span;
use crate::session::{Observation, RecordedFile};
use crate::sorting::CompactSort;

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

const CALL_SITES: usize = 10;
/// How long a process is recorded by default.
const DEFAULT_DURATION: Duration = Duration::from_secs(10);

impl Analysis {
    /// The profile that records the events this analysis needs.
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
                // After the latest collection.
                let heap = |value: fn(&Heap) -> Option<Value>| gc.heap.as_ref().and_then(value).unwrap_or(Value::Missing);
                let [.., p95, p99] = quantiles(pauses.quantiles_ns);
                vec![
                    ("gen0", gen0),
                    ("gen1", gen1),
                    ("gen2", gen2),
                    ("induced", Value::Count(gc.induced)),
                    ("pauses", Value::Count(pauses.count)),
                    ("total_pause_ns", Value::Nanoseconds(pauses.total_ns)),
                    ("max_pause_ns", longest(pauses.count, pauses.longest_ns)),
                    ("p95_pause_ns", p95),
                    ("p99_pause_ns", p99),
                    ("heap_bytes", heap(|heap| Some(Value::Bytes(heap.size())))),
                    ("gen0_size_bytes", heap(|heap| Some(Value::Bytes(heap.generations[0])))),
                    ("gen1_size_bytes", heap(|heap| Some(Value::Bytes(heap.generations[1])))),
                    ("gen2_size_bytes", heap(|heap| Some(Value::Bytes(heap.generations[2])))),
                    ("loh_bytes", heap(|heap| Some(Value::Bytes(heap.large)))),
                    ("poh_bytes", heap(|heap| heap.pinned.map(Value::Bytes))),
                    ("gc_handles", heap(|heap| Some(Value::Count(heap.handles.into())))),
                    ("pinned_objects", heap(|heap| Some(Value::Count(heap.pinned_objects.into())))),
                    ("awaiting_finalization", heap(|heap| Some(Value::Count(heap.finalization)))),
                ]
            }
            Self::Exceptions => {
                let exceptions = &found.exceptions;
                vec![
                    ("thrown", Value::Count(exceptions.thrown)),
                    ("rethrown", Value::Count(exceptions.rethrown)),
                    // Not in any row, whatever their number.
                    ("other_types", Value::Count(exceptions.others)),
                ]
            }
            Self::Allocations => {
                let allocations = found.gc.allocations.as_ref();
                let bytes = |of: fn(&AllocationSnapshot) -> u64| allocations.map_or(Value::Missing, |all| Value::Bytes(of(all)));
                vec![
                    ("allocated_bytes", bytes(|all| all.bytes)),
                    ("small_bytes", bytes(|all| all.by_kind[0])),
                    ("large_bytes", bytes(|all| all.by_kind[1])),
                    ("pinned_bytes", bytes(|all| all.by_kind[2])),
                ]
            }
            Self::Contention => {
                let contention = &found.contention;
                vec![
                    ("contentions", Value::Count(contention.count)),
                    ("waiting", Value::Count(contention.waiting as u64)),
                    ("wait_ns", Value::Nanoseconds(contention.wait_ns)),
                    ("max_wait_ns", longest(contention.ended + contention.waiting as u64, contention.longest_ns)),
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
            Self::Http => {
                let of = |layer| found.activities.operations.iter().find(move |operation| operation.layer == layer);
                let running = |layer| of(layer).map_or(Value::Missing, |operation| Value::Count(operation.running));
                vec![
                    ("requests", Value::Count(found.activities.requests())),
                    ("failed", Value::Count(found.activities.failed())),
                    ("in_flight_in", running(Layer::Server)),
                    ("in_flight_out", running(Layer::Client)),
                ]
            }
            Self::Logs => LEVELS.iter().copied().zip(found.logs.by_level.map(Value::Count)).collect(),
            Self::Events => vec![("events", Value::Count(found.totals.events)), ("event_bytes", Value::Bytes(found.totals.payload_bytes))],
        }
    }

    /// Returns the totals of a process that does not report such events: unknown, unless it is known that there is nothing to report.
    fn totals_without_events(self, found: &Snapshot) -> Vec<Field> {
        let known = self == Self::Jit;
        self.totals(found).into_iter().map(|(name, value)| (name, if known { value } else { Value::Missing })).collect()
    }

    fn rows(self, found: &Snapshot, events: Vec<EventCount>, most: usize) -> Vec<Vec<Field>> {
        let text = Value::text;
        let bytes = |known: Option<u64>| known.map_or(Value::Missing, Value::Bytes);
        match self {
            Self::Gc => take(&found.gc.recent, most, collection_fields),
            Self::Exceptions => take(&found.exceptions.types, most, |kind| {
                vec![("count", Value::Count(kind.count)), ("type", text(&kind.name)), ("last_message", text(&kind.last.message))]
            }),
            Self::Allocations => take(found.gc.allocations.as_ref().map_or(&[], |allocations| &allocations.top), most, |kind| {
                let sites = found.gc.allocations.as_ref().map(|allocations| allocations.stacks.call_sites(&kind.full_name, CALL_SITES));
                let site = |site: CallSite| {
                    let method = if site.method.is_empty() { Value::Missing } else { text(&site.method) };
                    Fields(vec![("method", method), ("bytes", Value::Bytes(site.bytes)), ("events", Value::Count(site.events))])
                };
                let sites = sites.into_iter().flatten().map(site).collect();
                vec![
                    ("bytes", Value::Bytes(kind.bytes)),
                    ("largest_bytes", bytes((kind.largest > 0).then_some(kind.largest))),
                    ("type", text(&kind.name)),
                    ("call_sites", Value::Rows(sites)),
                ]
            }),
            Self::Contention => take(&found.contention.sites, most, |site| {
                vec![
                    ("count", Value::Count(site.count)),
                    ("wait_ns", Value::Nanoseconds(site.wait_ns)),
                    ("max_wait_ns", Value::Nanoseconds(site.longest_ns)),
                    ("owner_threads", owners(&site.owners)),
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
                let [p50, p95, p99] = quantiles(operation.quantiles_ns);
                vec![
                    ("started", Value::Count(operation.started)),
                    ("failed", Value::Count(operation.failed)),
                    ("running", Value::Count(operation.running)),
                    ("p50_ns", p50),
                    ("p95_ns", p95),
                    ("p99_ns", p99),
                    ("max_ns", longest(operation.ended, operation.longest_ns)),
                    ("provider", text(&operation.provider)),
                    ("operation", text(&operation.name)),
                ]
            }),
            Self::Logs => take(&found.logs.recent, most, message_fields),
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

fn quantiles(known: Option<[u64; 3]>) -> [Value; 3] {
    known.map_or([Value::Missing, Value::Missing, Value::Missing], |all| all.map(Value::Nanoseconds))
}

/// Returns the number of waits by the thread that held the lock.
fn owners(threads: &[(u64, u64)]) -> Value {
    let counts = threads.iter().map(|(thread, waits)| (thread.to_string(), *waits)).collect();
    if threads.is_empty() { Value::Missing } else { Value::Counts(Counts(counts)) }
}

/// Returns the maximum of `count` times; missing if there were none.
fn longest(count: u64, longest_ns: u64) -> Value {
    if count > 0 { Value::Nanoseconds(longest_ns) } else { Value::Missing }
}

fn take<T>(all: &[T], most: usize, row: impl Fn(&T) -> Vec<Field>) -> Vec<Vec<Field>> {
    all.iter().take(most).map(row).collect()
}

pub(super) async fn run(host: &Host, request: &Request<'_>) -> Result<Exit, Failure> {
    let Request { analysis, arguments, .. } = *request;
    let file = recording(&arguments.source, arguments.range)?;
    let mut gap = None;
    let (live, complete, exit) = match (file, request.follow) {
        (Some(path), _) => {
            request.check_file()?;
            read(path, request)?
        }
        (None, Some(kind)) => return follow::follow(host, request, kind).await,
        (None, None) => {
            let config = request.config().map_err(Failure::usage)?;
            let (process, client) = connect_running(host, &arguments.source).await?;
            let observation = async {
                let observation = Observation::start(client, &config, request.filtered(Live::default())).await?;
                host.resume_program().await?;
                Ok(observation)
            };
            let (observed, exit) = observe(&process, arguments.duration.unwrap_or(DEFAULT_DURATION), observation).await?;
            let complete = observed.is_complete();
            gap = analysis.native_aot_gap(&process);
            (observed.live, complete, exit)
        }
    };
    let snapshot = live.snapshot(arguments.range.map_or(live.end(), |(_, to)| to.min(live.end())));
    let mut events = live.throughput().counts();
    events.compact_sort_by_key(|event| std::cmp::Reverse(event.count));
    let rows = analysis.rows(&snapshot, events, arguments.count);
    let found = Found {
        totals: Fields(if gap.is_some() { analysis.totals_without_events(&snapshot) } else { analysis.totals(&snapshot) }),
        rows: rows.into_iter().map(Fields).collect(),
        stacks: (analysis == Analysis::Exceptions).then(|| stacks::rows(&snapshot.exceptions.stacks, arguments.count)),
        messages: if analysis == Analysis::Logs {
            snapshot.logs.recent.iter().take(arguments.count).cloned().collect()
        } else {
            Vec::new()
        },
        routes: (analysis == Analysis::Http).then(|| Routes::new(&snapshot.activities, arguments.count)),
    };
    if found.rows.is_empty() && arguments.count > 0 {
        match (file, arguments.range) {
            _ if analysis == Analysis::Logs && snapshot.logs.by_level.iter().any(|count| *count > 0) => {
                print::message("no log message has this level and category");
            }
            _ if analysis == Analysis::Gc && snapshot.gc.collections.iter().any(|count| *count > 0) => {
                print::message("no garbage collection ended: those that began are counted");
            }
            (Some(file), None) => {
                print::message(format_args!("{} contains no such events; profile {} records them", file.display(), analysis.profile()))
            }
            (Some(file), Some((from, _))) if from < live.end() => {
                print::message(format_args!("{}: the range contains no such events", file.display()))
            }
            (Some(_), Some(_)) => {}
            (None, _) => print::message(gap.unwrap_or("no such events were recorded")),
        }
    }
    print_analysis(&arguments.output, &snapshot, complete, || json!(found), |out| found.write_text(out))?;
    if file.is_none() {
        let providers = live.throughput().providers();
        without_events(request.specified_providers(), &providers).map(unrecorded_provider_note).for_each(print::message);
    }
    if analysis == Analysis::Http {
        missing_status(&snapshot.activities).iter().for_each(print::message);
    }
    Ok(exit)
}

/// Returns the recording that `source` names, unless it is a process.
pub(super) fn recording(source: &str, range: Option<Span>) -> Result<Option<&Path>, Failure> {
    match args::recording(source) {
        None if range.is_some() => Err(Failure::usage(format!("--range selects a part of a file, and {source} is none"))),
        file => Ok(file),
    }
}

/// Rejects the recording time of a process for a file.
pub(super) fn check_duration(duration: Option<Duration>, file: &str) -> Result<(), Failure> {
    let refusal = || format!("--duration is the time to record a process, and {file} is a file; --range selects a part of it");
    duration.map_or(Ok(()), |_| Err(Failure::usage(refusal())))
}

/// Reports a range in which there is nothing, because the recording is shorter.
pub(super) fn note_range(path: &Path, range: Option<Span>, end: i64) {
    if range.is_some_and(|(from, _)| from >= end) {
        print::message(format_args!("{}: the range is after the end of the recording", path.display()));
    }
}

/// Analyses a file, or a part of it.
fn read(path: &Path, request: &Request<'_>) -> Result<(Live, bool, Exit), Failure> {
    let range = request.arguments.range;
    let mut live = request.filtered(range.map_or_else(Live::default, |(from, to)| Live::within(from..=to)));
    let pass = RecordedFile::open(path).and_then(|mut recorded| recorded.read(&mut live)).map_err(Failure::failed)?;
    if let Some(trouble) = pass.trouble() {
        print::message(format_args!("{}: {trouble}", path.display()));
    }
    note_range(path, range, live.end());
    let complete = pass.ending.is_complete() && !live.throughput().loses_content();
    Ok((live, complete, Exit::Done))
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

    /// 0 would look like a measured time.
    #[test]
    fn maximum_is_missing_if_nothing_has_ended() {
        let found = Live::default().snapshot(0);
        for (analysis, name) in [(Analysis::Gc, "max_pause_ns"), (Analysis::Contention, "max_wait_ns")] {
            assert!(analysis.totals(&found).contains(&(name, Value::Missing)), "{name}");
        }
        assert_eq!((longest(0, 0), longest(1, 0)), (Value::Missing, Value::Nanoseconds(0)));
    }

    /// A script finds the same fields, whether or not there were such events.
    #[test]
    fn totals_of_a_recording_without_allocations_have_all_fields() {
        let totals = Analysis::Allocations.totals(&Live::default().snapshot(0));
        let missing = ["allocated_bytes", "small_bytes", "large_bytes", "pinned_bytes"].map(|name| (name, Value::Missing));
        assert_eq!(totals, missing);
    }
}
