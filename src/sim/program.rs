//! A simulated program: the events that a runtime would send while a session is open.
//!
//! It is deterministic: the same rates and elapsed times produce the same events. Payload layouts follow the runtime's manifest.

mod heap;
mod kind;
mod methods;

use std::f64::consts::TAU;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use self::kind::Kind;
use self::methods::METHODS;
use super::requested::Requested;
use super::spec::{Rates, Spec};
use crate::clr::RUNTIME_PROVIDER;
use crate::ipc::GC_HEAP_COLLECT_KEYWORD;
use crate::nettrace::{Encoder, NewEvent, TraceHeader, UtcTime};
use crate::wire::Put;

/// Timestamp at the start of a session, in nanoseconds.
const CLOCK: i64 = 777_000_000_000_000;

/// Period after which the program's cache is emptied, in seconds.
const CACHE_LIFE: u64 = 600;

/// Mean GC pause in a program with few collections, in milliseconds.
const MEAN_PAUSE_MS: f64 = 1.25;

/// Number of threads that do the program's work; the first is the main thread.
const WORKERS: u64 = 6;

#[derive(Debug, Clone, Copy, PartialEq)]
enum Activity {
    Gc,
    Exception,
    Contention,
    Jit,
    Sample,
    Custom,
    Counters,
}

/// The program's state, and the encoder of its stream.
pub(super) struct Program {
    encoder: Encoder,
    requested: Requested,
    /// Whether a heap walk was requested and has not begun.
    walks_heap: bool,
    /// Start of the session, in seconds since the Unix epoch.
    unix_s: u64,
    own_provider: String,
    command_line: String,
    pid: u64,
    metadata: [u32; Kind::ALL.len()],
    rates: [(Activity, f64); 7],
    waves: f64,
    /// Time simulated so far; `due` holds the fraction of the next event of each kind.
    now: Duration,
    /// Timestamp of the current event: no later event is older.
    moment: i64,
    due: [f64; 7],
    counts: [u64; 7],
}

/// Factor by which figures deviate from their mean at this many seconds after the start.
fn wave(seconds: f64) -> f64 {
    1.0 + 0.2 * (seconds / 7.0).sin()
}

/// Encodes numbers, followed by the CLR instance id.
fn words(words: &[u32]) -> Vec<u8> {
    let mut payload = Vec::new();
    words.iter().for_each(|word| payload.put_u32(*word));
    payload.put_u16(0);
    payload
}

impl Program {
    pub(super) fn new(spec: &Spec, rates: Rates, requested: Requested) -> Self {
        let unix_ms = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_millis();
        let header = TraceHeader {
            sync_utc: Some(UtcTime::from_unix_ms(unix_ms as i64)),
            sync_ticks: CLOCK,
            process_id: spec.pid,
            processors: 4,
            ..TraceHeader::default()
        };
        let Rates { gc, exception, contention, jit, sample, custom, waves } = rates;
        Self {
            encoder: Encoder::new(header),
            walks_heap: requested.provider(RUNTIME_PROVIDER).is_some_and(|provider| provider.keywords() & GC_HEAP_COLLECT_KEYWORD != 0),
            unix_s: (unix_ms / 1000) as u64,
            requested,
            own_provider: format!("Demo-{}", spec.name),
            command_line: spec.command.join(" "),
            pid: u64::from(spec.pid),
            metadata: [0; Kind::ALL.len()],
            rates: [
                (Activity::Gc, gc),
                (Activity::Exception, exception),
                (Activity::Contention, contention),
                (Activity::Jit, jit),
                (Activity::Sample, sample),
                (Activity::Custom, custom),
                (Activity::Counters, 1.0),
            ],
            waves,
            now: Duration::ZERO,
            moment: CLOCK,
            due: [0.0; 7],
            counts: [0; 7],
        }
    }

    /// Returns the data that the runtime sends for the time from the last call until `elapsed`.
    pub(super) fn run_until(&mut self, elapsed: Duration) -> Vec<u8> {
        let span = elapsed.saturating_sub(self.now);
        let wave = 1.0 + self.waves * (elapsed.as_secs_f64() * TAU / 30.0).sin();
        let mut moments = Vec::new();
        for (i, (activity, rate)) in self.rates.into_iter().enumerate() {
            let rate = if activity == Activity::Counters { rate } else { rate * wave };
            let before = self.due[i];
            let due = before + rate.max(0.0) * span.as_secs_f64();
            self.due[i] = due.fract();
            for n in 1..=due as u64 {
                // Position of the nth event between the two calls.
                moments.push((self.now + span.mul_f64(((n as f64 - before) / (due - before)).clamp(0.0, 1.0)), activity, i));
            }
        }
        moments.sort_by_key(|(time, ..)| *time);
        if self.walks_heap {
            self.walk_heap();
        }
        for (time, activity, i) in moments {
            let count = self.counts[i];
            self.counts[i] += 1;
            self.moment = CLOCK + time.as_nanos() as i64;
            self.write_activity(activity, count, self.moment);
        }
        self.now = elapsed;
        self.encoder.flush();
        self.encoder.take()
    }

    /// Returns the data that the runtime sends when the session is stopped: remaining events, process info, the rundown if requested, and the end.
    pub(super) fn finish(&mut self, elapsed: Duration) -> Vec<u8> {
        let mut bytes = self.run_until(elapsed);
        let time = CLOCK + elapsed.as_nanos() as i64;
        let mut payload = Vec::new();
        for text in [self.command_line.as_str(), "Linux", "x64"] {
            payload.put_utf16z(text);
        }
        // Sent by the runtime's own provider, which cannot be disabled.
        self.write(Kind::ProcessInfo, time, self.pid, 0, &payload);
        if self.requested.rundown {
            for method in 0..METHODS.len() {
                let payload = methods::payload(method);
                self.write(Kind::MethodRundown, time, self.pid, 0, &payload);
            }
            self.write(Kind::ModuleRundown, time, self.pid, 0, &methods::module());
            self.write(Kind::RundownComplete, time, self.pid, 0, &[0, 0]);
        }
        self.encoder.sequence_point(time);
        self.encoder.end();
        bytes.extend(self.encoder.take());
        bytes
    }

    fn write_activity(&mut self, activity: Activity, count: u64, time: i64) {
        let worker = self.pid + 4 + count % WORKERS;
        match activity {
            Activity::Gc => self.collect(count, time),
            Activity::Exception => {
                let (kind, message) = methods::EXCEPTIONS[count as usize % methods::EXCEPTIONS.len()];
                let mut payload = Vec::new();
                payload.put_utf16z(kind);
                payload.put_utf16z(message);
                payload.put_u64(METHODS[3].address + 0x20);
                payload.put_u32(0x8013_1509);
                payload.put_u16(0x10);
                payload.put_u16(0);
                self.write_with_stack(Kind::Exception, time, worker, &[3, 1, 0], &payload);
            }
            Activity::Contention => {
                let waited = 20_000 + 1000 * (count as i64 * 37 % 400);
                self.write_with_stack(Kind::ContentionStart, time, worker, &[5, 2, 0], &[0, 0, 0]);
                let mut payload = vec![0, 0, 0];
                payload.put_f64(waited as f64);
                self.write(Kind::ContentionStop, time + waited, worker, 0, &payload);
            }
            Activity::Jit => {
                let payload = methods::payload(count as usize % METHODS.len());
                self.write(Kind::MethodLoad, time, worker, 0, &payload);
            }
            Activity::Sample => self.sample(count, time),
            Activity::Custom => {
                let mut payload = Vec::new();
                payload.put_i32(count as i32);
                payload.put_utf16z(["checkout", "basket", "search"][count as usize % 3]);
                payload.put_f64(count as f64 * 0.5);
                self.write_with_stack(Kind::Custom, time, worker, &[4, 2, 0], &payload);
            }
            Activity::Counters => {
                let interval = self.requested.provider("System.Runtime").and_then(|provider| provider.arguments());
                if interval.is_some_and(|arguments| arguments.contains("EventCounterIntervalSec")) {
                    self.count(count, time);
                }
            }
        }
    }

    /// Writes the counters that the runtime publishes every second.
    fn count(&mut self, count: u64, time: i64) {
        let wave = wave(count as f64);
        let [(_, gc), (_, exception), ..] = self.rates;
        for (name, display, unit, mean) in methods::COUNTERS {
            let mean = match name {
                "time-in-gc" => gc * MEAN_PAUSE_MS * self.pause_factor() / 10.0,
                _ => mean,
            };
            let value = if name == "gc-heap-size" { self.heap(time) as f64 / 1e6 } else { mean * wave };
            let payload = kind::counter_payload(name, display, unit, value);
            self.write(Kind::Counter, time, self.pid + 3, 0, &payload);
        }
        for (name, display, unit, increment) in [
            ("exception-count", "Exception Count", "", (exception * wave).round()),
            ("alloc-rate", "Allocation Rate", "B", (gc * wave * 14e6).round()),
            ("gen-0-gc-count", "Gen 0 GC Count", "", (gc * wave).round()),
            ("total-pause-time-by-gc", "Time paused by GC", "ms", gc * wave * MEAN_PAUSE_MS * self.pause_factor()),
        ] {
            let payload = kind::sum_payload(name, display, unit, increment);
            self.write(Kind::CounterSum, time, self.pid + 3, 0, &payload);
        }
    }

    /// Heap size in bytes, for counters and collections alike.
    fn heap(&self, time: i64) -> u64 {
        ((61 + self.pid % 7 * 23) as f64 * 1e6 * wave((time - CLOCK) as f64 / 1e9)) as u64
    }

    /// Factor by which GC pauses are longer than in a program with few collections.
    fn pause_factor(&self) -> f64 {
        1.0 + self.rates[0].1 / 6.0
    }

    /// Writes a full collection that reports the objects on the heap.
    fn walk_heap(&mut self) {
        self.walks_heap = false;
        // Induced and blocking.
        let mut start = words(&[1, 2, 1, 0]);
        start.put_u64(0);
        self.write(Kind::GcStart, CLOCK, self.pid + 4, 0, &start);
        let age = self.unix_s % CACHE_LIFE;
        for (kind, payload) in heap::walk(self.heap(CLOCK), 1000 + 10 * age as usize) {
            self.write(kind, CLOCK, self.pid + 4, 0, &payload);
        }
        self.write(Kind::GcEnd, CLOCK, self.pid + 4, 0, &words(&[1, 2]));
    }

    /// Writes a collection, with its events in the order in which runtimes send them. Every eighth is a gen 2 collection.
    fn collect(&mut self, count: u64, time: i64) {
        let generation = if count % 8 == 7 { 2 } else { u32::from(count % 3 == 2) };
        let pause = ([4e5, 9e5, 6e6][generation as usize] * self.pause_factor()) as i64;
        let number = count as u32 + 1;
        let thread = self.pid + 4;
        self.write(Kind::SuspendBegin, time, thread, 0, &words(&[1, number]));
        self.write(Kind::SuspendEnd, time + 30_000, thread, 0, &[0, 0]);
        let mut start = words(&[number, generation, 0, 0]);
        start.put_u64(0);
        self.write(Kind::GcStart, time + 40_000, thread, 0, &start);
        self.write(Kind::GcEnd, time + pause - 60_000, thread, 0, &words(&[number, generation]));
        let heap = kind::heap_stats(self.heap(time));
        self.write(Kind::HeapStats, time + pause - 50_000, thread, 0, &heap);
        self.write(Kind::RestartBegin, time + pause - 20_000, thread, 0, &[0, 0]);
        self.write(Kind::RestartEnd, time + pause, thread, 0, &[0, 0]);
    }

    /// Writes a sample of one thread: most time is spent in a few methods, some threads only wait.
    fn sample(&mut self, count: u64, time: i64) {
        let thread = self.pid + 4 + count % WORKERS;
        let (stack, managed) = match count * 7 % 20 {
            0..=6 => (&[4, 2, 0][..], true),
            7..=10 => (&[5, 4, 2, 0][..], true),
            11..=12 => (&[3, 1, 0][..], true),
            _ => (&[7, 6, 0][..], false),
        };
        let stack = self.stack(stack);
        let payload = if managed { 2_u32 } else { 1 }.to_le_bytes();
        // Samples are written by the sampler's thread, with the id of the sampled thread.
        self.event(Kind::Sample, time, thread, self.pid + 2, stack, &payload);
    }

    fn write_with_stack(&mut self, kind: Kind, time: i64, thread: u64, stack: &[usize], payload: &[u8]) {
        let stack = self.stack(stack);
        self.write(kind, time, thread, stack, payload);
    }

    /// Encodes a stack of these methods.
    fn stack(&mut self, methods: &[usize]) -> u32 {
        let frames: Vec<u64> = methods.iter().map(|method| METHODS[*method].address + 0x18).collect();
        self.encoder.stack(&frames)
    }

    fn write(&mut self, kind: Kind, time: i64, thread: u64, stack: u32, payload: &[u8]) {
        self.event(kind, time, thread, thread, stack, payload);
    }

    /// Writes an event if the session requested it, or if the runtime sends it in every session.
    fn event(&mut self, kind: Kind, timestamp: i64, thread: u64, capture_thread: u64, stack: u32, payload: &[u8]) {
        let record = kind.metadata(&self.own_provider);
        if !kind.is_always_sent() && !self.requested.wants(&record.provider, record.keywords, record.event_id) {
            return;
        }
        let known = &mut self.metadata[kind as usize];
        if *known == 0 {
            *known = self.encoder.metadata(&record);
        }
        let metadata = *known;
        let processor = (thread % 4) as u32;
        let sorted = timestamp == self.moment;
        self.encoder.event(&NewEvent {
            metadata,
            timestamp,
            thread,
            capture_thread,
            processor,
            stack,
            sorted,
            payload,
            ..NewEvent::default()
        });
    }
}
