//! The analysis of a made-up session: a program with garbage collections, exceptions, waits and computations.

use std::sync::{Arc, LazyLock};
use std::time::Duration;

use crate::analysis::{CpuSamples, CpuStack, Live, NativeFunction, Origin, Symbols, ThreadId};
use crate::clr::RUNTIME_PROVIDER;
use crate::clr::payload::SampleLosses;
use crate::model::{CpuThread, CpuTime, EventRate, RecordingAnalysis};
use crate::nettrace::{Decoder, Encoder, Field, FieldType, Limits, Metadata, NewEvent, TraceHeader};
use crate::wire::Put;

const MS: i64 = 1_000_000;
/// Length of the session, milliseconds.
const LENGTH: i64 = 42_000;
const SAMPLER: &str = "Microsoft-DotNETCore-SampleProfiler";

/// Methods; the n-th, counted from 1, is at address n * 0x1000.
const METHODS: [(&str, &str); 7] = [
    ("System.Threading.Thread", "StartCallback"),
    ("Shop.Api.OrdersController", "Create"),
    ("Shop.Pricing.PriceEngine", "PriceBasket"),
    ("Shop.Pricing.Discounts", "Apply"),
    ("Shop.Stock.Ledger", "Reserve"),
    ("System.Threading.Monitor", "Enter_Slowpath"),
    ("System.Threading.WaitHandle", "WaitOneNoCheck"),
];

struct Session {
    encoder: Encoder,
    records: Vec<((&'static str, u32, u32), u32)>,
    /// Metadata ids of self-describing events.
    own: Vec<((&'static str, &'static str), u32)>,
}

/// A part of a payload.
enum Part<'a> {
    Byte(u8),
    Short(u16),
    Word(u32),
    Long(u64),
    Real(f64),
    Text(&'a str),
}

use Part::{Byte, Long, Real, Short, Text, Word};

impl Session {
    /// Writes an event of a thread; `stack` contains method numbers from 1, and larger values are addresses without a method.
    fn write(&mut self, provider: &'static str, kind: (u32, u32), (at, thread): (i64, u64), stack: &[u64], parts: &[Part<'_>]) {
        let (event_id, version) = kind;
        let record = (provider, event_id, version);
        let metadata = match self.records.iter().find(|(other, _)| *other == record) {
            Some((_, known)) => *known,
            None => {
                let known = self.encoder.metadata(&Metadata { provider: provider.to_owned(), event_id, version, ..Metadata::default() });
                self.records.push((record, known));
                known
            }
        };
        let frames: Vec<u64> = stack.iter().map(|method| method * 0x1000 + 8).collect();
        let stack = self.encoder.stack(&frames);
        let mut payload = Vec::new();
        for part in parts {
            match part {
                Byte(value) => payload.put_u8(*value),
                Short(value) => payload.put_u16(*value),
                Word(value) => payload.put_u32(*value),
                Long(value) => payload.put_u64(*value),
                Real(value) => payload.put_f64(*value),
                Text(text) => payload.put_utf16z(text),
            }
        }
        self.encoder.event(&NewEvent {
            metadata,
            timestamp: at,
            thread,
            capture_thread: thread,
            stack,
            payload: &payload,
            ..NewEvent::default()
        });
    }

    /// Writes a self-describing event; an activity is a number other than 0.
    fn described(
        &mut self,
        (provider, name): (&'static str, &'static str),
        at: i64,
        activity: u8,
        fields: &[(&str, FieldType)],
        payload: Vec<u8>,
    ) {
        let kind = (provider, name);
        let metadata = match self.own.iter().find(|(other, _)| *other == kind) {
            Some((_, known)) => *known,
            None => {
                let fields = fields.iter().map(|(name, kind)| Field { name: (*name).to_owned(), kind: kind.clone() }).collect();
                let event_id = self.own.len() as u32 + 1;
                let record = Metadata { provider: provider.to_owned(), event_id, name: name.to_owned(), fields, ..Metadata::default() };
                let known = self.encoder.metadata(&record);
                self.own.push((kind, known));
                known
            }
        };
        self.encoder.event(&NewEvent {
            metadata,
            timestamp: at,
            thread: 12,
            capture_thread: 12,
            activity_id: [activity; 16],
            payload: &payload,
            ..NewEvent::default()
        });
    }

    /// Writes the events of a program with libraries for the millisecond `ms`.
    fn write_library_events(&mut self, ms: i64) {
        let at = ms * MS;
        let text = |texts: &[&str]| {
            let mut payload = Vec::new();
            texts.iter().for_each(|text| payload.put_utf16z(text));
            payload
        };
        if ms % 2100 == 400 {
            let (level, words) =
                [(2_u32, "Order 4711 was taken in"), (3, "The payment service is slow: 2.1 s"), (4, "Order 4712 cannot be shipped")]
                    [(ms / 2100 % 3) as usize];
            let mut payload = Vec::new();
            payload.put_u32(level);
            payload.extend(text(&["Shop.Api.OrdersController", words]));
            let fields = [("Level", FieldType::Int32), ("LoggerName", FieldType::String), ("FormattedMessage", FieldType::String)];
            self.described(("Microsoft-Extensions-Logging", "FormattedMessage"), at, 0, &fields, payload);
        }
        let path = ["/stock/4711", "/prices", "/payments/new"][(ms / 700 % 3) as usize];
        let fields = [("scheme", FieldType::String), ("host", FieldType::String), ("pathAndQuery", FieldType::String)];
        if ms % 700 == 10 {
            self.described(("System.Net.Http", "RequestStart"), at, 1 + (ms / 700) as u8, &fields, text(&["https", "stock.local", path]));
        }
        if ms % 700 == 30 + ms / 700 % 3 * 90 {
            self.described(("System.Net.Http", "RequestStop"), at, 1 + (ms / 700) as u8, &[], Vec::new());
        }
        if ms % 5000 == 600 {
            let place = ms as u64 / 5000 % METHODS.len() as u64;
            let (namespace, name) = METHODS[place as usize];
            let begun = [Long(100 + place), Long(1), Word(9), Word(120), Text(namespace), Text(name), Text("void  ()"), Short(0)];
            self.runtime((145, 1), at, 14, &[], &begun);
            let body = [Long(100 + place), Long(1), Long(0x90_0000 + place * 0x1000), Word(640), Word(9), Word(0x188)];
            let names = [Text(namespace), Text(name), Text("void  ()"), Short(0), Long(0)];
            self.runtime((143, 2), at + 900_000 + ms * 40, 14, &[], &body.into_iter().chain(names).collect::<Vec<_>>());
        }
        if ms % 14_000 == 900 {
            let name = [
                "Shop.Pricing, Version=4.2.0.0, Culture=neutral, PublicKeyToken=null",
                "System.Text.Json, Version=9.0.0.0, Culture=neutral",
                "Shop.Stock, Version=1.0.7.0",
            ][(ms / 14_000) as usize];
            self.runtime((154, 1), at, 14, &[], &[Long(ms as u64), Long(1), Long(0), Word(0), Text(name), Short(0)]);
        }
    }

    fn runtime(&mut self, kind: (u32, u32), at: i64, thread: u64, stack: &[u64], parts: &[Part<'_>]) {
        self.write(RUNTIME_PROVIDER, kind, (at, thread), stack, parts);
    }

    /// Writes the runtime events for the millisecond `ms`.
    fn tick(&mut self, ms: i64) {
        let at = ms * MS;
        if ms % 5 == 0 {
            self.write(SAMPLER, (0, 0), (at, 11), if ms % 100 < 70 { &[4, 3, 2, 1] } else { &[5, 2, 1] }, &[Word(2)]);
            self.write(SAMPLER, (0, 0), (at, 12), &[7, 1], &[Word(1)]);
            self.write(SAMPLER, (0, 0), (at, 13), if ms % 200 == 0 { &[0x7f3a1, 1] } else { &[3, 2, 1] }, &[Word(2)]);
        }
        if ms % 1400 == 700 {
            self.collect(ms / 1400, at);
        }
        if ms % 100 == 50 {
            let name = ["System.String", "System.Byte[]", "Shop.Pricing.Basket", "System.Char[]"][(ms / 100 % 7 % 4) as usize];
            let amount = [Word(131_072), Word(0), Short(0), Long(131_072), Long(7), Text(name), Word(0), Long(0), Long(96)];
            let stack: [&[u64]; 3] = [&[4, 3, 2, 1], &[5, 2, 1], &[4, 2, 1]];
            self.runtime((10, 4), at, 11, stack[(ms / 100 % 3) as usize], &amount);
        }
        if ms % 400 == 200 {
            let (name, message) = [
                ("System.InvalidOperationException", "Order 4711 has been shipped already"),
                ("System.TimeoutException", "The payment service did not answer within 3 s"),
            ][usize::from(ms % 1200 == 200)];
            self.runtime((80, 1), at, 11, &[4, 2, 1], &[Text(name), Text(message), Long(0), Word(0x8013_1509), Short(0x10), Short(0)]);
        }
        if ms % 300 == 100 {
            let waited = 40_000 + ms * 37 % 900 * 1000;
            self.runtime((81, 1), at, 12, if ms % 900 == 100 { &[6, 5, 2] } else { &[6, 3] }, &[Byte(0), Short(0)]);
            self.runtime((91, 1), at + waited, 12, &[], &[Byte(0), Short(0), Real(waited as f64)]);
        }
        if ms % 6000 == 3000 {
            let workers = 8 + (ms / 6000) as u32 * 2;
            self.runtime((50, 0), at, 13, &[], &[Word(workers), Word(0), Short(0)]);
            let reason = if ms > 30_000 { 6 } else { 3 };
            self.runtime((55, 0), at, 13, &[], &[Real(118.0), Word(workers), Word(reason), Short(0)]);
        }
    }

    /// Writes the `number`th garbage collection: every sixth is a full one, and leaves a larger heap than the previous.
    fn collect(&mut self, number: i64, at: i64) {
        let generation = if number % 6 == 5 { 2 } else { (number % 3 / 2) as u32 };
        let pause = [600_000, 1_100_000, 190_000_000][generation as usize];
        let number = number as u32 + 1;
        self.runtime((9, 1), at, 14, &[], &[Word(1), Word(number), Short(0)]);
        self.runtime((1, 2), at + 1000, 14, &[], &[Word(number), Word(generation), Word(0), Word(0), Short(0), Long(0)]);
        let mut history = vec![Short(0)];
        history.extend((0..6).map(|_| Long(0)));
        history.extend((0..6).map(|_| Word(0)));
        history.extend([Long(0), Word(1), Long(76_000_000 + u64::from(number) * 9_000_000)]);
        history.extend((0..9).map(|_| Long(0)));
        self.runtime((204, 3), at + pause - 3000, 14, &[], &history);
        self.runtime((2, 1), at + pause - 2000, 14, &[], &[Word(number), Word(generation), Short(0)]);
        let grown = u64::from(number) * 9_000_000;
        let mut sizes = vec![];
        for size in [256_000, 1_200_000, 48_000_000 + grown, 12_000_000] {
            sizes.extend([Long(size), Long(size / 4)]);
        }
        sizes.extend([Long(0), Long(3), Word(17), Word(4), Word(230), Short(0), Long(8_192), Long(0)]);
        self.runtime((4, 2), at + pause - 1000, 14, &[], &sizes);
        self.runtime((3, 1), at + pause, 14, &[], &[Short(0)]);
    }
}

/// Returns the analysis of the session.
pub(crate) fn scripted() -> Arc<RecordingAnalysis> {
    static ANALYSIS: LazyLock<Arc<RecordingAnalysis>> = LazyLock::new(|| Arc::new(analyze_session()));
    ANALYSIS.clone()
}

/// Returns the analysis of an empty session.
pub(crate) fn empty() -> Arc<RecordingAnalysis> {
    Arc::new(found(&mut Live::default()))
}

/// Returns the CPU time of a made-up program: its own code and what it calls.
pub(crate) fn cpu_time() -> CpuTime {
    let functions = [
        ("System.Threading.Thread.StartCallback", "System.Private.CoreLib", Origin::Managed),
        ("Shop.Pricing.PriceEngine.PriceBasket", "Shop", Origin::Managed),
        ("[libcoreclr.so]", "libcoreclr.so", Origin::Native),
        ("WKS::gc_heap::mark_phase", "libcoreclr.so", Origin::Gc),
        ("[libclrjit.so]", "libclrjit.so", Origin::Jit),
        ("do_syscall_64", "kernel", Origin::Kernel),
        ("memmove", "libc.so.6", Origin::Native),
    ];
    let mut symbols = Symbols::default();
    for ((name, image, origin), place) in functions.into_iter().zip(1_u64..) {
        symbols.add_native(&NativeFunction { address: place * 0x1000, start: place * 0x1000, size: 0x1000, name, image, origin });
    }
    let mut samples = CpuSamples::new(1_001_001);
    let stacks: [(u64, &[u64], i64); 6] = [
        (11, &[2, 1], 5000),
        (11, &[7, 2, 1], 1500),
        (11, &[4, 3, 2, 1], 900),
        (13, &[5, 3], 600),
        (13, &[6, 2, 1], 300),
        (13, &[2, 1], 200),
    ];
    for (thread, stack, count) in stacks {
        let user: Vec<_> = stack.iter().map(|place| place * 0x1000 + 8).collect();
        for at in 0..count {
            samples.add(&CpuStack { thread: ThreadId::of(thread), at: at * LENGTH * MS / count, kernel: &[], user: &user, missing: None });
        }
    }
    let mut waits = CpuSamples::of_waits();
    for at in (0..LENGTH).step_by(1000) {
        for (thread, stack) in [(11, &[6, 2, 1][..]), (13, &[7, 4, 3, 2, 1]), (17, &[])] {
            let user: Vec<_> = stack.iter().map(|place| place * 0x1000 + 8).collect();
            let stack = CpuStack { thread: ThreadId::of(thread), at: at * MS, kernel: &[], user: &user, missing: None };
            waits.add_time(&stack, (100 * thread - 600) * MS as u64);
        }
    }
    let recent = Duration::from_secs(2);
    for samples in [&mut samples, &mut waits] {
        samples.forget_recent((LENGTH - 2000) * MS);
    }
    let elapsed = Duration::from_millis(LENGTH as u64);
    let times = |wait| vec![(wait, Duration::from_secs(20)), ("sleep", Duration::from_secs(8))];
    let thread = |thread, name: &str, cpu, wait| CpuThread {
        thread,
        name: name.into(),
        cpu: Duration::from_millis(cpu),
        wall: elapsed,
        runnable: Duration::from_secs(1),
        waits: times(wait),
    };
    let threads = vec![
        thread(11, "OrderService", 7421, "lock"),
        thread(13, ".NET TP Worker", 1103, "signal"),
        thread(17, ".NET Finalizer", 0, "futex"),
    ];
    let mut managed = Symbols::default();
    for ((namespace, name), place) in METHODS.into_iter().zip(1_u64..) {
        let (address, name) = (place * 0x1000 + 8, format!("{namespace}.{name}"));
        managed.add_native(&NativeFunction { address, start: address - 8, size: 64, name: &name, image: "Shop", origin: Origin::Managed });
    }
    let waits = Some(waits.profile(&managed));
    let losses = SampleLosses { lost: 12, includes_kernel: true, ..SampleLosses::default() };
    CpuTime { profile: samples.profile(&symbols), waits, elapsed, recent, threads, losses, ..CpuTime::default() }
}

fn analyze_session() -> RecordingAnalysis {
    let header = TraceHeader { process_id: 4242, ..TraceHeader::default() };
    let mut session = Session { encoder: Encoder::new(header), records: Vec::new(), own: Vec::new() };
    for ((namespace, name), place) in METHODS.into_iter().zip(1_u64..) {
        let start = place * 0x1000;
        let parts = [Long(place), Long(1), Long(start), Word(0x800), Word(place as u32), Word(0x208)];
        let names = [Text(namespace), Text(name), Text("void  ()"), Short(0), Long(0)];
        let parts: Vec<_> = parts.into_iter().chain(names).collect();
        session.runtime((143, 2), 0, 11, &[], &parts);
    }
    for ms in 0..LENGTH {
        session.tick(ms);
        session.write_library_events(ms);
        if ms % 20_000 == 15_000 {
            session.encoder.add_loss(11, 159);
        }
    }
    session.encoder.end();
    let mut live = Live::default().with_recent_events();
    let mut decoder = Decoder::new(Limits::default());
    decoder.feed(&session.encoder.take(), &mut live).unwrap();
    decoder.finish(&mut live);
    let mut found = found(&mut live);
    // As if the process were being recorded.
    found.profile.has_cpu_times = true;
    found
}

fn found(live: &mut Live) -> RecordingAnalysis {
    let seconds = LENGTH as f64 / 1000.0;
    let rate = |event: crate::analysis::EventCount| EventRate { rate: event.count as f64 / seconds, event };
    let mut events: Vec<_> = live.throughput().counts().into_iter().map(rate).collect();
    events.sort_by_key(|rate| std::cmp::Reverse(rate.event.count));
    let snapshot = live.snapshot(live.newest());
    assert_eq!(snapshot.unreadable, 0);
    RecordingAnalysis { snapshot, events, recent: live.recent(), profile: live.profile(), cpu: None }
}
