//! `stats FILE`: the contents of a nettrace file.

use std::io::Write;

use serde::Serialize;

use super::args;
use super::exit::{Exit, Failure};
use super::print;
use crate::analysis::{EventCount, PartThroughput, ProblemCount, Throughput};
use crate::model::{Bytes, Count, Counted, SafeText};
use crate::nettrace::ThreadId;
use crate::session::{Pass, RecordedFile};
use crate::sorting::CompactSort;

/// The document of the command line contract.
#[derive(Serialize)]
struct Stats {
    format_version: u32,
    /// Whether the stream ends regularly and lost nothing.
    complete: bool,
    #[serde(skip)]
    cut_off: bool,
    pointer_size: u8,
    process_id: u32,
    /// `None` if the runtime does not report it.
    processors: Option<u32>,
    start_utc: Option<String>,
    duration_ms: u64,
    bytes: u64,
    events: u64,
    dropped: u64,
    stacks: u64,
    threads: u64,
    /// Empty if the stream does not contain thread names.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    thread_names: Vec<ThreadName>,
    sequence_points: u64,
    /// Problems in parts of the stream, by position.
    problems: Vec<ProblemStats>,
    counts: Vec<EventStats>,
}

#[derive(Serialize)]
struct ProblemStats {
    kind: &'static str,
    text: String,
    count: u64,
    /// Offset of the first occurrence from the start of the stream, in bytes.
    first_byte: u64,
}

#[derive(Serialize)]
struct ThreadName {
    /// `None` for a thread of the stream's only process.
    process_id: Option<u32>,
    /// Thread id within its process.
    id: u64,
    name: SafeText,
}

#[derive(Serialize)]
struct EventStats {
    provider: SafeText,
    id: u32,
    name: SafeText,
    count: u64,
    bytes: u64,
}

pub(super) fn run(arguments: &args::Stats) -> Result<Exit, Failure> {
    let args::Stats { file, range, output } = arguments;
    let mut recorded = RecordedFile::open(file).map_err(Failure::failed)?;
    let (tally, pass) = match *range {
        Some((from, to)) => {
            let mut part = PartThroughput::within(from..=to);
            let pass = recorded.read(&mut part).map_err(Failure::failed)?;
            (part.into_throughput(), pass)
        }
        None => {
            let mut all = Throughput::default();
            let pass = recorded.read(&mut all).map_err(Failure::failed)?;
            (all, pass)
        }
    };
    print::document(output.json, &stats(&tally, &pass), write_text)?;
    if let Some(trouble) = pass.trouble() {
        print::message(format_args!("{}: {trouble}", file.display()));
    }
    Ok(Exit::Done)
}

fn stats(tally: &Throughput, pass: &Pass) -> Stats {
    let (header, totals) = (pass.header, tally.snapshot());
    let count = |count: EventCount| EventStats {
        provider: SafeText::new(&count.provider),
        id: count.event_id,
        name: SafeText::new(&count.name),
        count: count.count,
        bytes: count.bytes,
    };
    let problem = |problem: ProblemCount| ProblemStats {
        kind: problem.kind.name(),
        text: problem.kind.to_string(),
        count: problem.count,
        first_byte: problem.first,
    };
    let thread_name = |(thread, name): (ThreadId, String)| ThreadName {
        process_id: (thread.process > 0).then_some(thread.process),
        id: thread.thread,
        name: SafeText::new(&name),
    };
    Stats {
        format_version: header.format_version,
        complete: pass.ending.is_complete() && !tally.loses_content(),
        cut_off: !pass.ending.is_complete(),
        pointer_size: header.pointer_size,
        process_id: header.process_id,
        processors: (header.processors > 0).then_some(header.processors),
        start_utc: header.sync_utc.map(|time| time.to_string()),
        duration_ms: totals.duration_ns / 1_000_000,
        bytes: pass.bytes,
        events: totals.events,
        dropped: totals.dropped,
        stacks: totals.stacks,
        threads: totals.threads,
        thread_names: tally.thread_names().into_iter().map(thread_name).collect(),
        sequence_points: totals.sequence_points,
        problems: tally.problems().into_iter().map(problem).collect(),
        counts: tally.counts().into_iter().map(count).collect(),
    }
}

fn write_text(out: &mut dyn Write, stats: &Stats) -> std::io::Result<()> {
    let whole = match stats {
        Stats { cut_off: true, .. } => "CUT OFF",
        Stats { complete: false, .. } => "INCOMPLETE",
        _ => "complete",
    };
    // A recording of the whole machine has no process.
    let process = if stats.process_id == 0 { String::new() } else { format!(" · process {}", stats.process_id) };
    writeln!(out, "nettrace {} · {whole} · {}{process}", stats.format_version, Bytes(stats.bytes))?;
    if let Some(start) = &stats.start_utc {
        let processors = stats.processors.map(|count| format!(", {:#}", Counted(count.into(), "processor"))).unwrap_or_default();
        writeln!(out, "started {start}, {:.3} s of events{processors}", stats.duration_ms as f64 / 1e3)?;
    }
    let [events, stacks, threads, points] = [
        Counted(stats.events, "event"),
        Counted(stats.stacks, "stack"),
        Counted(stats.threads, "thread"),
        Counted(stats.sequence_points, "sequence point"),
    ];
    writeln!(out, "{events:#}, {} dropped, {stacks:#}, {threads:#}, {points:#}", stats.dropped)?;
    for ThreadName { process_id, id, name } in &stats.thread_names {
        let process = process_id.map(|process| format!("{process}/")).unwrap_or_default();
        writeln!(out, "thread {process}{id}: {name}")?;
    }
    for ProblemStats { text, count, first_byte, .. } in &stats.problems {
        writeln!(out, "problem: {text}: {count}, first at byte {first_byte}")?;
    }
    writeln!(out)?;
    writeln!(out, "{:>10} {:>9}  {:>5}  EVENT", "COUNT", "BYTES", "ID")?;
    let mut counts: Vec<_> = stats.counts.iter().collect();
    counts.compact_sort_by_key(|count| std::cmp::Reverse(count.count));
    for EventStats { provider, id, name, count, bytes } in counts {
        writeln!(out, "{:>10} {:>9}  {id:>5}  {provider}/{}", Count(*count), Bytes(*bytes), if name.is_empty() { "-" } else { name })?;
    }
    Ok(())
}
