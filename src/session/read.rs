//! Contents of a recorded file, for display.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use super::cpu::known_wait;
use super::heap_file::heap_facts;
use super::live_snapshots::most_frequent;
use super::{RecordedFile, read_cpu_samples, without_idle_waits};
use crate::analysis::{KernelSamples, Live, RecordedCpuTime, SampledMethods, ThreadTimes};
use crate::model::{CpuThread, CpuTime, EventRate, FileContents, FileKind, RecordingAnalysis, SafeText, Span, TraceFile};
use crate::net::files;
use crate::sorting::CompactSort;

/// Reads the header of a file.
///
/// # Errors
/// An error message: the file does not exist, or has another format.
pub fn trace_file(path: &Path) -> Result<TraceFile, String> {
    let facts = match FileKind::of(path) {
        FileKind::Heap => heap_facts(path, files::open_named(path))?,
        FileKind::Trace => RecordedFile::open(path).and_then(RecordedFile::facts).map_err(|error| error.to_string())?,
    };
    // The path identifies the file, however it was specified; a pipe has no real path.
    Ok(TraceFile { path: files::real_path(path).unwrap_or(facts.path), ..facts })
}

/// Reads a file, or a part of it; events outside the part only serve to resolve methods. `should_continue` receives the number of bytes read, and
/// returns whether to continue: if not, the result is `None`.
///
/// # Errors
/// An error message.
pub fn read_trace(path: &Path, span: Option<Span>, mut should_continue: impl FnMut(u64) -> bool) -> Result<Option<FileContents>, String> {
    let mut live = span.map_or_else(Live::default, |(from, to)| Live::within(from..=to)).with_recent_events();
    let mut recorded = RecordedFile::open(path).map_err(|error| error.to_string())?;
    let read = recorded.read_or_cancel(&mut live, &mut should_continue).map_err(|error| error.to_string())?;
    let Some(pass) = read else { return Ok(None) };
    let cpu = match KernelSamples::from_counts(&live.throughput().counts()) {
        Some(_) if recorded.rewind().is_ok() => {
            let mut sampled = span.map_or_else(SampledMethods::default, |(from, to)| SampledMethods::within(from..=to));
            match recorded.read_or_cancel(&mut sampled, &mut |_| should_continue(pass.bytes)) {
                Ok(None) => return Ok(None),
                again => again.ok().and_then(|_| sampled.cpu()),
            }
        }
        _ => read_cpu_samples(path, &pass.header, span),
    };
    let snapshot = live.snapshot(span.map_or(live.end(), |(_, to)| to.min(live.end())));
    let duration = Duration::from_nanos(snapshot.recorded_ns);
    let analysis = RecordingAnalysis {
        snapshot,
        events: events(&live, duration),
        recent: live.recent(),
        profile: live.profile(),
        // Thread times cover the whole recording.
        cpu: cpu.map(|cpu| recorded_cpu_time(cpu, duration, span.is_none())),
    };
    let complete = pass.ending.is_complete() && !live.throughput().loses_content();
    let problems = live.throughput().problems();
    let words: Vec<_> = pass.trouble().into_iter().chain(problems.iter().map(ToString::to_string)).collect();
    let (bytes, trouble) = (pass.bytes, (!words.is_empty()).then(|| words.join("; ")));
    Ok(Some(FileContents {
        analysis: Arc::new(analysis),
        bytes,
        end: live.end(),
        duration,
        complete,
        trouble: trouble.map(SafeText::from),
    }))
}

fn recorded_cpu_time(cpu: RecordedCpuTime, elapsed: Duration, with_threads: bool) -> CpuTime {
    let RecordedCpuTime { profile, waits, threads, cut, broken, losses } = cpu;
    let (waits, idle) = without_idle_waits(waits.as_ref(), &profile);
    let threads = if with_threads { threads.iter().map(recorded_thread).collect() } else { Vec::new() };
    let losses = losses.unwrap_or_default();
    CpuTime { profile, waits, idle, elapsed, threads, cut, broken, losses, ..CpuTime::default() }
}

fn recorded_thread(times: &ThreadTimes) -> CpuThread {
    let (mut runnable, mut waits) = (Duration::ZERO, BTreeMap::<_, Duration>::new());
    for (state, ns) in &times.off_cpu_ns {
        let time = Duration::from_nanos(*ns);
        let sum = match state.as_str() {
            "runnable" => &mut runnable,
            // Files of later versions may have other words.
            wait => waits.entry(known_wait(wait)).or_default(),
        };
        *sum = sum.saturating_add(time);
    }
    let mut waits: Vec<_> = waits.into_iter().collect();
    waits.compact_sort_by_key(|(_, time)| Reverse(*time));
    CpuThread {
        thread: times.thread,
        name: SafeText::new(&times.name),
        cpu: Duration::from_nanos(times.cpu_ns),
        wall: Duration::from_nanos(times.wall_ns()),
        runnable,
        waits,
    }
}

/// The most frequent events, with their rates over the whole duration.
fn events(live: &Live, duration: Duration) -> Vec<EventRate> {
    let seconds = duration.as_secs_f64().max(0.001);
    most_frequent(live).into_iter().map(|event| EventRate { rate: event.count as f64 / seconds, event }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn recorded_threads_have_their_times() {
        let states = [("futex", 30), ("runnable", 5), ("io", 40), ("unheard-of", 1), ("other", 2)];
        let off_cpu_ns = states.map(|(state, ns)| (state.to_owned(), ns)).into();
        let thread = recorded_thread(&ThreadTimes { thread: 7, name: "a\x1bb".to_owned(), cpu_ns: 22, off_cpu_ns });
        let ns = Duration::from_nanos;
        assert_eq!((thread.thread, thread.cpu, thread.wall, thread.runnable), (7, ns(22), ns(100), ns(5)));
        assert_eq!(thread.waits, [("io", ns(40)), ("futex", ns(30)), ("other", ns(3))]);
        assert!(!thread.name.as_str().contains('\x1b'));
    }
}
