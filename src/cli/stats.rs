//! `stats FILE`: the contents of a nettrace file.

use std::io::Write;

use super::args;
use super::exit::{Exit, Failure};
use super::print::{self, Value, json};
use crate::analysis::{EventCount, ProblemCount, Throughput};
use crate::model::{Bytes, Count, Counted, SafeText};
use crate::nettrace::ThreadId;
use crate::session::{Pass, RecordedFile};
use crate::sorting::CompactSort;

pub(super) fn run(arguments: &args::Stats) -> Result<Exit, Failure> {
    let args::Stats { file, range, output } = arguments;
    let mut recorded = RecordedFile::open(file).map_err(Failure::failed)?;
    let mut tally = range.map_or_else(Throughput::default, |(from, to)| Throughput::within(from..=to));
    let pass = recorded.read(&mut tally).map_err(Failure::failed)?;
    print::result(output.json, || document(&tally, &pass), |out| write_text(out, &tally, &pass))?;
    if let Some(trouble) = pass.trouble() {
        print::message(format_args!("{}: {trouble}", file.display()));
    }
    if range.is_some() && tally.snapshot().events == 0 {
        print::message(format_args!("{}: the range contains no events", file.display()));
    }
    Ok(Exit::Done)
}

fn document(tally: &Throughput, pass: &Pass) -> Value {
    let (header, totals) = (pass.header, tally.snapshot());
    let count = |EventCount { provider, event_id, name, count, bytes, .. }: EventCount| json!({ "provider": SafeText::new(&provider), "id": event_id, "name": SafeText::new(&name), "count": count, "bytes": bytes });
    // The first occurrence is an offset from the start of the stream, in bytes.
    let problem = |ProblemCount { kind, count, first }: ProblemCount| json!({ "kind": kind.name(), "text": kind.to_string(), "count": count, "first_byte": first });
    let mut document = json!({
        "format_version": header.format_version,
        // Whether the stream ends regularly and lost nothing.
        "complete": pass.ending.is_complete() && !tally.loses_content(),
        "pointer_size": header.pointer_size,
        "process_id": header.process_id,
        // Null if the runtime does not report it.
        "processors": (header.processors > 0).then_some(header.processors),
        "start_utc": header.sync_utc.map(|time| time.to_string()),
        "duration_ms": totals.duration_ns / 1_000_000,
        "bytes": pass.bytes,
        "events": totals.events,
        "dropped": totals.dropped,
        "stacks": totals.stacks,
        "threads": totals.threads,
        "sequence_points": totals.sequence_points,
        // Problems in parts of the stream, by position.
        "problems": tally.problems().into_iter().map(problem).collect::<Vec<_>>(),
        "counts": tally.counts().into_iter().map(count).collect::<Vec<_>>(),
    });
    let names: Vec<_> = thread_names(tally).map(|(process, id, name)| json!({ "process_id": process, "id": id, "name": name })).collect();
    if !names.is_empty() {
        document["thread_names"] = names.into();
    }
    document
}

/// Returns the names of threads that the stream contains: process, unless it is the stream's only one, thread ID within it, and name.
fn thread_names(tally: &Throughput) -> impl Iterator<Item = (Option<u32>, u64, SafeText)> {
    let process = |thread: ThreadId| (thread.process > 0).then_some(thread.process);
    tally.thread_names().into_iter().map(move |(thread, name)| (process(thread), thread.thread, SafeText::new(&name)))
}

fn write_text(out: &mut dyn Write, tally: &Throughput, pass: &Pass) -> std::io::Result<()> {
    let (header, totals) = (pass.header, tally.snapshot());
    let whole = match (pass.ending.is_complete(), tally.loses_content()) {
        (false, _) => "CUT OFF",
        (true, true) => "INCOMPLETE",
        (true, false) => "complete",
    };
    let process = if header.process_id == 0 { String::new() } else { format!(" · process {}", header.process_id) };
    writeln!(out, "nettrace {} · {whole} · {}{process}", header.format_version, Bytes(pass.bytes))?;
    let started = header.sync_utc.map_or_else(|| "start time unknown".to_owned(), |start| format!("started {start}"));
    let processors = match header.processors {
        0 => String::new(),
        count => format!(", {:#}", Counted(count.into(), "processor")),
    };
    writeln!(out, "{started}, {:.3} s of events{processors}", (totals.duration_ns / 1_000_000) as f64 / 1e3)?;
    let [events, stacks, threads, points] = [
        Counted(totals.events, "event"),
        Counted(totals.stacks, "stack"),
        Counted(totals.threads, "thread"),
        Counted(totals.sequence_points, "sequence point"),
    ];
    writeln!(out, "{events:#}, {} dropped, {stacks:#}, {threads:#}, {points:#}", totals.dropped)?;
    for (process, id, name) in thread_names(tally) {
        let process = process.map(|process| format!("{process}/")).unwrap_or_default();
        writeln!(out, "thread {process}{id}: {name}")?;
    }
    for ProblemCount { kind, count, first } in tally.problems() {
        writeln!(out, "problem: {kind}: {count}, first at byte {first}")?;
    }
    writeln!(out)?;
    writeln!(out, "{:>10} {:>9}  {:>5}  EVENT", "COUNT", "BYTES", "ID")?;
    let mut counts = tally.counts();
    counts.compact_sort_by_key(|count| std::cmp::Reverse(count.count));
    for EventCount { provider, event_id, name, count, bytes, .. } in counts {
        let (provider, name) = (SafeText::new(&provider), SafeText::new(if name.is_empty() { "-" } else { &name }));
        writeln!(out, "{:>10} {:>9}  {event_id:>5}  {provider}/{name}", Count(count), Bytes(bytes))?;
    }
    Ok(())
}
