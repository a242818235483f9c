//! Perfetto's trace processor on exports, and the contents of recordings for comparison. Needs the library.

#![allow(dead_code, reason = "each test binary uses its part")]

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::time::SystemTime;

use dn_top::analysis::{Images, Live};
use dn_top::clr::EventKind;
use dn_top::nettrace::{Decoder, Event, Limits, Loss, Metadata, SequencePoint, Sink, Thread, TraceHeader};
use serde_json::Value;

/// Statistics that are 0 in a correct trace.
const ERROR_STATS: &str = "select name, value from stats where severity in ('error', 'data_loss') and value > 0";

/// A trace processor.
#[derive(Debug, Clone)]
pub(crate) struct Engine(PathBuf);

impl Engine {
    /// The newest one installed by the setup; `None` if not available, which is a failure in CI.
    pub(crate) fn newest() -> Option<Self> {
        Self::found("trace-processor")
    }

    /// The one of the oldest supported Perfetto.
    pub(crate) fn oldest() -> Option<Self> {
        Self::found("perfetto-52")
    }

    fn found(name: &str) -> Option<Self> {
        let engine = crate::support::cache(name, "trace_processor.wasm")?;
        Some(Self(engine))
    }

    /// Returns the rows of a query. A trace stays loaded for the thread's next query.
    pub(crate) fn query(&self, trace: &Path, sql: &str) -> Vec<Value> {
        LOADED.with_borrow_mut(|loaded| {
            let written = fs::metadata(trace).unwrap().modified().unwrap();
            let mut engine =
                loaded.take().filter(|engine| engine.is_of(self, trace, written)).unwrap_or_else(|| Loaded::new(self, trace, written));
            let rows = engine.query(sql);
            *loaded = Some(engine);
            rows
        })
    }

    /// Panics if the trace has errors, except the one named `but`.
    pub(crate) fn assert_no_errors(&self, trace: &Path, but: &str) {
        let mut wrong = self.query(trace, ERROR_STATS);
        wrong.retain(|row| row["name"] != but);
        assert_eq!(wrong, [] as [Value; 0], "{}", trace.display());
    }
}

thread_local! {
    static LOADED: RefCell<Option<Loaded>> = const { RefCell::new(None) };
}

/// A trace processor that has loaded a trace.
#[derive(Debug)]
struct Loaded {
    of: (PathBuf, PathBuf, SystemTime),
    process: Child,
    rows: BufReader<ChildStdout>,
}

impl Loaded {
    fn new(Engine(engine): &Engine, trace: &Path, written: SystemTime) -> Self {
        let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/tools/trace_processor.mjs");
        // Optimizing the engine takes longer than all of its queries.
        let mut command = Command::new("node");
        command.args(["--liftoff-only", script]).arg(engine).arg(trace);
        let mut process = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let rows = BufReader::new(process.stdout.take().unwrap());
        Self { of: (engine.clone(), trace.to_owned(), written), process, rows }
    }

    fn is_of(&self, Engine(engine): &Engine, trace: &Path, written: SystemTime) -> bool {
        (self.of.0.as_path(), self.of.1.as_path(), self.of.2) == (engine, trace, written)
    }

    fn query(&mut self, sql: &str) -> Vec<Value> {
        // If the process has already exited, its standard error has the reason.
        let _ = writeln!(self.process.stdin.as_ref().unwrap(), "{}", Value::from(sql));
        let mut rows = Vec::new();
        loop {
            let mut line = String::new();
            if self.rows.read_line(&mut line).unwrap() == 0 {
                let mut printed = String::new();
                self.process.stderr.take().unwrap().read_to_string(&mut printed).unwrap();
                panic!("{}: {printed}", self.of.1.display());
            }
            match line.trim_end() {
                "" => return rows,
                row => rows.push(serde_json::from_str(row).unwrap()),
            }
        }
    }
}

impl Drop for Loaded {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// Panics if a field of the trace is missing in Perfetto's published messages. Fields in `left_out`, such as `ftrace_events`, are written by
/// other producers, and are not checked.
pub(crate) fn assert_known_fields(trace: &Path, left_out: &[&str]) {
    let Some(schema) = crate::support::cache("perfetto-schema", "perfetto") else { return };
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/tools/perfetto_schema.py");
    let output = Command::new("python3").arg(script).arg(trace).args(left_out).env("PYTHONPATH", &schema).output().unwrap();
    let (printed, name) = (String::from_utf8_lossy(&output.stdout).into_owned(), trace.display());
    assert!(output.status.success() && printed.ends_with(" packets\n"), "{name}: {}", String::from_utf8_lossy(&output.stderr));
    assert!(!printed.contains("unknown") && !printed.starts_with("0 "), "{name}: {printed}");
}

/// Contents of a recording, counted event by event.
#[derive(Debug, Default)]
pub(crate) struct Counted {
    kinds: Vec<EventKind>,
    clock: TraceHeader,
    pub(crate) lost: u64,
    /// Gaps: capture thread, begin, end, and number of missing events. A gap begins at the preceding sequence point, or at the end of the
    /// thread's previous gap.
    gaps: Vec<(u64, i64, i64, u64)>,
    sequence_point: i64,
    /// By process and thread.
    pub(crate) samples: BTreeMap<(u64, u64), u64>,
    pub(crate) exceptions: u64,
    pub(crate) contentions: u64,
    pub(crate) switches: u64,
    pub(crate) allocations: u64,
    /// Times of samples, in nanoseconds since boot.
    pub(crate) first: Option<i64>,
    pub(crate) last: i64,
    pub(crate) pauses: u64,
    pub(crate) pause_ns: u64,
    /// Some samples: time, thread, process, addresses leaf first, and whether in native code.
    some: Vec<(i64, u64, u32, Vec<u64>, bool)>,
    images: Images,
    /// The same with resolved names, root first.
    stacks: BTreeMap<(i64, u64), Vec<String>>,
}

/// One in this many samples is compared frame by frame.
const SAMPLE_STEP: u64 = 397;

impl Counted {
    pub(crate) fn of(recording: &Path) -> Self {
        let bytes = fs::read(recording).unwrap();
        let mut counted = Self { kinds: vec![EventKind::Other], ..Self::default() };
        read(&bytes, &mut counted);
        let mut live = Live::default();
        read(&bytes, &mut live);
        for (at, thread, process, addresses, is_native) in &counted.some {
            let symbols = live.symbols();
            let frames = addresses.iter().enumerate().map(|(depth, address)| address - u64::from(depth > 0)).rev();
            let names = frames.map(|address| match symbols.find(address) {
                Some(method) if symbols.is_stub(method) => String::new(),
                Some(method) => format!("{}{}", symbols.full_name(method), symbols.parameters(method)),
                None => match counted.images.find(*process, address) {
                    Some(place) => counted.images.function(place),
                    None => format!("{address:#x}"),
                },
            });
            let native = is_native.then(|| "(native code)".to_owned());
            counted.stacks.insert((*at, *thread), names.filter(|name| !name.is_empty()).chain(native).collect());
        }
        let pauses = live.snapshot(live.end()).gc.pauses;
        (counted.pauses, counted.pause_ns) = (pauses.count, pauses.total_ns);
        counted
    }
}

impl Counted {
    /// Stacks of some samples by time and thread, as names, root first.
    pub(crate) fn stacks(&self) -> &BTreeMap<(i64, u64), Vec<String>> {
        &self.stacks
    }
}

/// Feeds a recording to a sink, as far as it can be decoded.
pub(crate) fn read(bytes: &[u8], mut sink: &mut dyn Sink) {
    let mut decoder = Decoder::new(Limits::default());
    let _ = decoder.feed(bytes, &mut sink);
    decoder.finish(&mut sink);
}

impl Sink for Counted {
    fn trace(&mut self, header: &TraceHeader) {
        self.clock = *header;
        self.sequence_point = header.nanoseconds_between(0, header.sync_ticks);
    }

    fn metadata(&mut self, metadata: &Metadata) {
        self.kinds.push(EventKind::of(metadata));
    }

    fn event(&mut self, event: &Event<'_>) {
        let kind = self.kinds[event.metadata.index as usize];
        match kind {
            EventKind::ProcessName | EventKind::ProcessMapping | EventKind::ProcessSymbol => {
                self.images.feed(kind, event);
            }
            EventKind::ThreadSample | EventKind::CpuSample => {
                let thread = event.thread();
                let process = if thread.process == 0 { self.clock.process_id } else { thread.process };
                // Perfetto's thread IDs are positive 32-bit numbers.
                let tid = i32::try_from(thread.thread).map_or(0, |tid| tid as u64);
                *self.samples.entry((process.into(), tid)).or_default() += 1;
                let at = self.clock.nanoseconds_between(0, event.timestamp());
                self.first = Some(self.first.map_or(at, |first| first.min(at)));
                self.last = self.last.max(at);
                let number = self.samples.values().sum::<u64>();
                if number % SAMPLE_STEP == 1 {
                    let addresses = event.stack().into_iter().flat_map(|stack| stack.frames()).collect();
                    // 2 is managed code.
                    let is_native = kind == EventKind::ThreadSample && event.payload.first() != Some(&2);
                    self.some.push((at, tid, thread.process, addresses, is_native));
                }
            }
            EventKind::ExceptionThrown => self.exceptions += 1,
            EventKind::ContentionStart => self.contentions += 1,
            EventKind::ContextSwitch => self.switches += 1,
            EventKind::AllocationTick | EventKind::AllocationSampled if event.stack().is_some_and(|stack| !stack.is_empty()) => {
                self.allocations += 1;
            }
            _ => {}
        }
    }

    fn loss(&mut self, loss: &Loss) {
        self.lost += u64::from(loss.count);
        let (thread, end) = (loss.capture_thread.thread, self.clock.nanoseconds_between(0, loss.timestamp));
        let before = self.gaps.iter().filter(|gap| gap.0 == thread).map(|gap| gap.2).max().unwrap_or(0);
        self.gaps.push((thread, before.max(self.sequence_point).min(end), end, loss.count.into()));
    }

    fn thread(&mut self, _thread: &Thread) {}

    fn sequence_point(&mut self, point: &SequencePoint) {
        self.sequence_point = self.clock.nanoseconds_between(0, point.timestamp);
    }
}

/// Panics if the trace processor's results for a Perfetto trace differ from the recording that it was made from.
pub(crate) fn assert_matches_recording(engine: &Engine, trace: &Path, recording: &Path) {
    engine.assert_no_errors(trace, "");
    let counted = Counted::of(recording);
    let name = recording.display();
    let mut samples = BTreeMap::new();
    let threads = "select pid, tid, count(*) as n from perf_sample join thread using (utid) left join process using (upid) group by 1, 2";
    for row in engine.query(trace, threads) {
        let number = |column: &str| row[column].as_u64().unwrap_or(0);
        samples.insert((number("pid"), number("tid")), number("n"));
    }
    assert_eq!(samples, counted.samples, "{name}: samples by process and thread");
    let moments: Vec<_> = counted.stacks.keys().map(|(at, _)| at.to_string()).collect();
    let stacks = format!(
        "with recursive found(ts, tid, id) as (
             select ts, tid, callsite_id from perf_sample join thread using (utid) where ts in ({})
             union all select ts, tid, parent_id from found join stack_profile_callsite c on c.id = found.id where parent_id is not null)
         select ts, tid, f.name as name from found join stack_profile_callsite c on c.id = found.id join stack_profile_frame f on f.id = c.frame_id
         order by ts, tid, depth",
        moments.join(", ")
    );
    let mut found = BTreeMap::<(i64, u64), Vec<String>>::new();
    for row in engine.query(trace, &stacks) {
        let stack = found.entry((row["ts"].as_i64().unwrap(), row["tid"].as_u64().unwrap())).or_default();
        stack.push(row["name"].as_str().unwrap().to_owned());
    }
    for (sample, expected) in &counted.stacks {
        assert_eq!(found.get(sample).cloned().unwrap_or_default(), *expected, "{name}: the stack at {sample:?}");
    }
    let facts = engine.query(
        trace,
        "select (select count(*) from slice where category = 'exception') as exceptions,
                (select count(*) from slice where category = 'lock') as contentions,
                (select count(*) from slice where category = 'sched') as switches,
                (select sum(count) from heap_profile_allocation) as allocations,
                (select min(ts) from perf_sample) as first,
                (select max(ts) from perf_sample) as last,
                (select count(*) from slice join track on slice.track_id = track.id where track.name = 'Pauses') as pauses,
                (select sum(dur) from slice join track on slice.track_id = track.id where track.name = 'Pauses') as pause_ns",
    );
    let fact = |name: &str| facts[0][name].as_i64();
    let number = |name: &str| fact(name).unwrap_or(0) as u64;
    assert_eq!(number("exceptions"), counted.exceptions, "{name}: exceptions");
    assert_eq!(number("switches"), counted.switches, "{name}: context switches");
    assert_eq!(number("allocations"), counted.allocations, "{name}: allocations");
    assert_eq!((fact("first"), number("last") as i64), (counted.first, counted.last), "{name}: first and last sample");
    let gaps =
        "select extract_arg(arg_set_id, 'debug.thread') as thread, ts, ts + dur as end, extract_arg(arg_set_id, 'debug.events') as events
        from slice join track on slice.track_id = track.id where category = 'lost' and track.name like 'Thread %'";
    let number_of = |row: &Value, column: &str| row[column].as_i64().unwrap();
    let mut shown: Vec<_> = engine
        .query(trace, gaps)
        .iter()
        .map(|row| (number_of(row, "thread") as u64, number_of(row, "ts"), number_of(row, "end"), number_of(row, "events") as u64))
        .collect();
    let mut expected = counted.gaps.clone();
    shown.sort_unstable();
    expected.sort_unstable();
    assert_eq!(shown, expected, "{name}: gaps by thread, start, end and lost events");
    assert_eq!(shown.iter().map(|gap| gap.3).sum::<u64>(), counted.lost, "{name}: lost events");
    if counted.lost == 0 {
        assert_eq!(number("contentions"), counted.contentions, "{name}: waits for locks");
        assert_eq!((number("pauses"), number("pause_ns")), (counted.pauses, counted.pause_ns), "{name}: pauses");
    }
}
