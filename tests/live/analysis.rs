//! The analyses against real runtimes: the figures match programs that perform known numbers of operations.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use dn_top::analysis::{CounterKind, CounterSession, CounterSnapshot, Live, MeterNotice, SampleFilter, Snapshot, ThreadId};
use dn_top::ipc::{Level, Provider, Providers, Rundown, SessionConfig};
use dn_top::model::{Contact, Process};
use dn_top::net::Directory;
use dn_top::net::client::Client;
use dn_top::net::discovery::Sources;
use dn_top::nettrace::{Decoder, Limits};
use tokio::io::AsyncReadExt as _;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

use crate::cpu::number;
use crate::support::runtimes;
use crate::support::{Invocation, Program, TIMEOUT, folder, poll};
use crate::trace;

const RUNTIME: &str = "Microsoft-Windows-DotNETRuntime";
const SAMPLER: &str = "Microsoft-DotNETCore-SampleProfiler";
/// Collections, loads, compilation, contention, exceptions, threads, tiers.
const KEYWORDS: u64 = 0x10_0000_c019;

/// Returns a program as discovered, and its client.
pub(crate) async fn process(program: &Program) -> (Process, Client) {
    let mut directory = Directory::new(Sources::machine()).unwrap();
    loop {
        let rows = directory.refresh(Duration::from_secs(1)).await.unwrap();
        let ready = |row: &&Process| row.key.pid == program.pid() && row.contact == Contact::Ok;
        if let Some(row) = rows.iter().find(ready) {
            return (row.clone(), directory.clients().of(row).unwrap());
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

/// A session whose stream is analyzed live.
struct Watch {
    client: Client,
    id: dn_top::ipc::SessionId,
    live: Arc<Mutex<Live>>,
    reader: JoinHandle<()>,
}

impl Watch {
    async fn start(program: &Program, providers: Vec<Provider>, rundown: Rundown, live: Live) -> Self {
        let (_, client) = process(program).await;
        let config = SessionConfig { rundown, ..SessionConfig::new(Providers::new(providers).unwrap()) };
        let mut session = client.start_session(&config).await.unwrap();
        let live = Arc::new(Mutex::new(live));
        let shared = Arc::clone(&live);
        let (begun, has_begun) = oneshot::channel();
        let reader = tokio::spawn(async move {
            let (mut decoder, mut bytes, mut begun) = (Decoder::new(Limits::default()), vec![0; 64 * 1024], Some(begun));
            loop {
                match session.stream.read(&mut bytes).await.unwrap() {
                    0 => break,
                    count => decoder.feed(&bytes[..count], &mut *shared.lock().unwrap()).unwrap(),
                }
                begun.take().map(|begun| begun.send(()));
            }
            assert!(decoder.finish(&mut *shared.lock().unwrap()).is_complete());
        });
        // The runtime sends the header, and delivers events to the session before it handles the next request.
        has_begun.await.unwrap();
        assert!(program.answers());
        Self { client, id: session.id, live, reader }
    }

    /// Returns the current snapshot of the running session.
    fn snapshot(&self) -> Snapshot {
        let live = self.live.lock().unwrap();
        live.snapshot(live.newest())
    }

    /// Returns the number of samples of a thread so far.
    fn samples_of(&self, thread: u32) -> u64 {
        let methods = self.live.lock().unwrap().profile().methods(SampleFilter::ALL, 0);
        methods.threads.iter().find(|found| found.thread == ThreadId::of(thread.into())).map_or(0, |found| found.samples.all())
    }

    async fn stop(self) -> Live {
        self.client.stop_session(self.id).await.unwrap();
        self.reader.await.unwrap();
        let live = Arc::into_inner(self.live).unwrap().into_inner().unwrap();
        let snapshot = live.snapshot(live.newest());
        assert_eq!((snapshot.unreadable, snapshot.totals.dropped, snapshot.totals.problems), (0, 0, 0));
        live
    }
}

fn provider(name: &str, keywords: u64, level: Level) -> Provider {
    Provider::new(name, keywords, level).unwrap()
}

#[test]
fn analysis_counts_match_program_activity() {
    runtimes::each_async(runtimes::with("known"), async |runtime| {
        let mut program = runtime.program("known").start();
        let providers = vec![provider(RUNTIME, KEYWORDS, Level::Verbose), provider(SAMPLER, 0, Level::Informational)];
        let watch = Watch::start(&program, providers, Rundown::Default, Live::default()).await;
        for command in ["throw 25", "collect 4 2", "collect 3 1", "collect 2 0", "contend 7"] {
            program.carry_out(command);
        }
        let live = watch.stop().await;
        let snapshot = live.snapshot(live.newest());
        let thrown = snapshot.exceptions.types.iter().find(|named| named.name == "System.InvalidOperationException").unwrap();
        assert_eq!((thrown.count, thrown.last.message.as_str()), (25, "number 24"), "{runtime}");
        assert_eq!(thrown.last.frames[..2], ["Known.Throw", "Known.Main"], "{runtime}");
        let induced = |generation| {
            let of = |collection: &&dn_top::analysis::Collection| collection.generation == generation && collection.reason.is_induced();
            snapshot.gc.recent.iter().filter(of).count()
        };
        assert_eq!([0, 1, 2].map(induced), [2, 3, 4], "{runtime}");
        assert_eq!(snapshot.gc.pauses.count, snapshot.gc.collections.iter().sum::<u64>(), "{runtime}: all of them were blocking");
        assert!(snapshot.gc.recent.iter().all(|collection| collection.pause_ns.is_some() && collection.heap_after.is_some()), "{runtime}");
        let site = snapshot
            .contention
            .sites
            .iter()
            .find(|site| site.method.contains("Known.Contend.lambda_"))
            .unwrap_or_else(|| panic!("{runtime}: {:?}", snapshot.contention));
        assert_eq!(site.count, 7, "{runtime}");
        // The holder releases the lock 20 ms after it has seen the other thread wait; when it is scheduled for that is another matter.
        assert!((7 * 15_000_000..snapshot.totals.duration_ns).contains(&site.wait_ns), "{runtime}: {site:?}");
        assert!(program.finish().success(), "{runtime}: {}", program.stderr());
    });
}

/// Number of samples of a thread for which shares are accurate to 3 points, even if the sampler itself has to wait for a processor.
const MIN_SAMPLES: u64 = 8000;

/// In a session that is analyzed live, and in the report of a recording made at the same time.
#[test]
fn sample_shares_match_time_spent() {
    runtimes::each_async_in_turn(runtimes::with("known"), async |runtime| {
        let mut program = runtime.program("known").start();
        // Lets the methods reach their final tier.
        program.spend(1000);
        let place = folder();
        let file = place.path().join("a.nettrace");
        let recording = trace::start(&program, &file, &["--profile", "dotnet-sampled-thread-time"]);
        let sampler = vec![provider(SAMPLER, 0, Level::Informational)];
        let watch = Watch::start(&program, sampler, Rundown::Default, Live::default()).await;
        // The sampling rate depends on the machine.
        let (mut spent, before) = ([0.0; 3], program.cpu_time());
        while watch.samples_of(program.pid()) < MIN_SAMPLES {
            assert!(program.cpu_time() - before < Duration::from_secs(100), "{runtime}: no samples come");
            let times = program.spend(1000);
            spent.iter_mut().zip(times).for_each(|(sum, time)| *sum += time);
        }
        recording.interrupt();
        let report = Invocation::new(["report", file.to_str().unwrap(), "--inclusive", "-n", "1000", "--json"]).run().json();
        let total = |name: &str| {
            let method = report["methods"].as_array().unwrap().iter().find(|method| method["name"] == format!("Known.{name}"));
            number(&method.unwrap_or_else(|| panic!("no {name} in {report:#}"))["total"])
        };
        let times = ["Seventy()", "Twenty()", "Ten()"].map(total);
        let (all, spend): (f64, f64) = (times.iter().sum(), total("Spend(int)"));
        assert!(all > 500.0 && spend >= all && spend < all * 1.2, "{runtime}: {spend} in all, {times:?}");
        // The runtime does not report its stubs, which are hit occasionally.
        assert!(number(&report["unresolved"]) <= number(&report["samples"]) / 1000.0, "{report:#}");
        assert_shares(times, spent, &runtime.to_string());

        let live = watch.stop().await;
        let methods = live.profile().methods(SampleFilter::BUSY, usize::MAX);
        let total = |name: &str| methods.methods.iter().find(|method| method.name == name).map_or(0, |method| method.total.all()) as f64;
        let sampled = ["Known.Seventy", "Known.Twenty", "Known.Ten"].map(total);
        assert_shares(sampled, spent, &runtime.to_string());
        let burn = methods.methods.iter().find(|method| method.name == "Known.Burn").unwrap();
        let all: f64 = sampled.iter().sum();
        assert!(burn.own.all() as f64 > all * 0.98, "{runtime}: tiers of a method are one: {burn:?}");
    });
}

/// Panics unless the samples of three methods have the same proportions as the times measured by the program's own clock, within 3 points.
///
/// The work is split 70 to 20 to 10, but on a busy machine the time is not: a method in which the thread has waited for a processor for 30
/// ms has taken them, and the samples show that.
fn assert_shares(samples: [f64; 3], spent: [f64; 3], runtime: &str) {
    let percent = |of: [f64; 3]| of.map(|one| one / of.iter().sum::<f64>() * 100.0);
    let (shown, truth) = (percent(samples), percent(spent));
    eprintln!("{runtime}: {shown:.1?} % of {:?} samples, {truth:.1?} % of the time", samples.iter().sum::<f64>());
    let is_near = |(share, truth): (&f64, &f64)| (share - truth).abs() < 3.0;
    assert!(shown.iter().zip(&truth).all(is_near), "{runtime}: {shown:?} % of the samples, {truth:?} % of the time");
}

#[test]
fn objects_on_the_heap_are_counted_exactly() {
    runtimes::each_async(runtimes::with("known"), async |runtime| {
        let mut program = runtime.program("known").start();
        program.carry_out("hold 1000");
        let walk = vec![provider(RUNTIME, 0x198_0001, Level::Verbose)];
        let watch = Watch::start(&program, walk, Rundown::None, Live::default()).await;
        let over = || watch.live.lock().unwrap().heap().is_some_and(|heap| heap.is_finished).then_some(());
        assert!(poll(TIMEOUT, over).is_some(), "{runtime}: no walk over the heap");
        let heap = watch.stop().await.heap().unwrap();
        assert!(heap.is_exact(), "{runtime}: {:?}", heap.problems);
        let of = |name: &str| heap.types.iter().find(|named| named.name == name).map(|named| (named.objects, named.bytes));
        // A header, the method table pointer and a field; a length, and references or 25 numbers. The reported sizes exclude alignment padding.
        assert_eq!(of("Held"), Some((1000, 24 * 1000)), "{runtime}");
        assert_eq!(of("Held[]"), Some((1, 24 + 8 * 1000)), "{runtime}");
        assert_eq!(of("Grain[]"), Some((1000, 124 * 1000)), "{runtime}");
        let sum = |of: fn(&dn_top::analysis::HeapType) -> u64| heap.types.iter().map(of).sum::<u64>();
        let (objects, bytes) = (sum(|named| named.objects) + heap.others.1, sum(|named| named.bytes) + heap.others.2);
        assert_eq!((objects, bytes), (heap.objects, heap.bytes), "{runtime}: the parts are the whole");
    });
}

#[test]
fn second_session_resolves_method_names() {
    runtimes::each_async(runtimes::all(), async |runtime| {
        let program = runtime.any().start();
        let providers = vec![provider(SAMPLER, 0, Level::Informational), provider(RUNTIME, 0x38, Level::Informational)];
        let watch = Watch::start(&program, providers, Rundown::None, Live::default()).await;
        let samples = || watch.live.lock().unwrap().profile().methods(SampleFilter::ALL, 0).samples.all();
        assert!(poll(TIMEOUT, || (samples() > 1000).then_some(())).is_some(), "{runtime}: {} samples", samples());
        let nothing = vec![provider("X", 0, Level::LogAlways)];
        let rundown = Watch::start(&program, nothing, Rundown::Default, Live::symbols_only()).await.stop().await;
        let mut live = watch.stop().await;
        let before = live.profile().methods(SampleFilter::ALL, 1);
        live.add_symbols(&rundown.into_symbols());
        let after = live.profile().methods(SampleFilter::ALL, usize::MAX);
        let all = after.samples.all();
        assert!(before.unresolved * 2 > all && all > 100, "{runtime}: {before:?}");
        // A few are in code missing from every rundown: stubs, and methods that were unloaded.
        assert!(after.unresolved * 20 < all || runtime.version.starts_with('9'), "{runtime}: {} of {all}", after.unresolved);
        assert!(after.methods.iter().any(|method| method.name.starts_with("System.")), "{runtime}: {:?}", after.methods);
    });
}

#[test]
fn counters_and_meters_report_published_values() {
    runtimes::each_async(runtimes::with("meters"), async |runtime| {
        let program = runtime.program("meters").start();
        let meters = |id: &str| {
            let arguments =
                format!("SessionId={id};Metrics=DnTop.Meter,System.Runtime;RefreshInterval=1;MaxTimeSeries=100;MaxHistograms=10");
            provider("System.Diagnostics.Metrics", 7, Level::Informational).with_arguments(arguments).unwrap()
        };
        let session = |id: &str| CounterSession { meter_session: Some(id.into()), interval_ms: Some(1000), ..CounterSession::default() };
        let mut live = Live::default();
        live.set_counter_session(session("first"));
        let event_counters = provider("System.Runtime", 0, Level::LogAlways).with_arguments("EventCounterIntervalSec=1").unwrap();
        let first = Watch::start(&program, vec![meters("first"), event_counters], Rundown::None, live).await;
        assert!(poll(TIMEOUT, || first.snapshot().counters.counters.iter().any(|counter| counter.name == "g").then_some(())).is_some());
        let mut refused = Live::default();
        refused.set_counter_session(session("second"));
        let second = Watch::start(&program, vec![meters("second")], Rundown::None, refused).await;
        assert!(poll(TIMEOUT, || (!second.snapshot().counters.notices.is_empty()).then_some(())).is_some());
        let refused = second.stop().await;
        // An interval that contains all values from 0 to 99. The last interval is cut short when the session stops.
        let is_full = |counter: &CounterSnapshot| counter.histogram.as_ref().is_some_and(|latency| latency.count >= Some(100));
        let full = || Some(first.snapshot().counters).filter(|counters| counters.counters.iter().any(is_full));
        let counters = poll(TIMEOUT, full).unwrap_or_else(|| panic!("{:?}", first.snapshot().counters));
        first.stop().await;

        let of = |name: &str, tags: &str| -> &CounterSnapshot {
            counters.counters.iter().find(|counter| counter.name == name && counter.tags == tags).unwrap_or_else(|| panic!("{name} {tags}"))
        };
        assert_eq!((of("g", "").value, counters.notices.len(), counters.all_instruments_reported), (Some(42.0), 0, true));
        let [a, b] = ["route=/a", "route=/b"].map(|tags| of("hits", tags));
        assert!((a.value.unwrap() - b.value.unwrap()).abs() <= 1.0, "in turn: {a:?} {b:?}");
        let latency = of("lat", "").histogram.as_ref().unwrap();
        // Values from 0 to 99 in turn, as many as fit in the interval: up to half of them may occur once more than the others.
        let [p50, p95, p99] = [0, 1, 2].map(|index| latency.quantiles[index].1);
        assert!((36.0..64.0).contains(&p50) && (90.0..=99.0).contains(&p95) && (95.0..=99.0).contains(&p99), "{latency:?}");
        let mean = latency.total_sum / latency.total_count as f64;
        assert!((45.0..54.0).contains(&mean), "{latency:?}");
        let rate = a.rate.unwrap() + b.rate.unwrap();
        assert!((latency.count.unwrap() as f64 - rate).abs() < 5.0, "one is recorded for every hit: {latency:?} {rate}");
        let stats = counters.stats;
        assert!(stats.heap.unwrap() > 1e4 && stats.cpu_percent.is_some() && stats.exceptions.is_some());
        assert!(of("working-set", "").value.unwrap() > 10.0 && of("assembly-count", "").value.unwrap() > 5.0);
        // Older versions have no meter of their own.
        assert!(runtime.major() < 9 || of("dotnet.assembly.count", "").value.unwrap() > 5.0);
        assert_eq!(refused.snapshot(0).counters.notices, [MeterNotice::OtherSession("first".into())]);
        assert_eq!(refused.snapshot(0).counters.counters.len(), 0, "the values of others are not taken");
        // The program continues.
        assert!(poll(TIMEOUT, || program.answers().then_some(())).is_some());
    });
}

/// Returns the state of an instrument in a session for `DnTop.Told`.
fn reported(live: &Snapshot, name: &str, tags: &str) -> Option<CounterSnapshot> {
    live.counters.counters.iter().find(|counter| counter.group == "DnTop.Told" && counter.name == name && counter.tags == tags).cloned()
}

#[test]
fn instruments_report_exact_values() {
    runtimes::each_async(runtimes::with("meters"), async |runtime| {
        let mut program = runtime.program("meters").start();
        let arguments = "SessionId=told;Metrics=DnTop.Told;RefreshInterval=1;MaxTimeSeries=100;MaxHistograms=10";
        let meters = provider("System.Diagnostics.Metrics", 7, Level::Informational).with_arguments(arguments).unwrap();
        let mut live = Live::default();
        live.set_counter_session(CounterSession {
            meter_session: Some("told".into()),
            interval_ms: Some(1000),
            ..CounterSession::default()
        });
        let watch = Watch::start(&program, vec![meters], Rundown::None, live).await;
        // An instrument records values once a listener is attached.
        assert!(
            poll(TIMEOUT, || watch.snapshot().counters.all_instruments_reported.then_some(())).is_some(),
            "{:?}",
            watch.snapshot().counters
        );
        for command in ["count 7", "change 5", "change -3", "record 40 25", "gauge 17"] {
            program.carry_out(command);
        }
        let value = |name: &str, tags: &str| reported(&watch.snapshot(), name, tags).and_then(|counter| counter.value);
        let reaches = |name: &str, tags: &str, expected: f64| {
            let reached = poll(TIMEOUT, || (value(name, tags) == Some(expected)).then_some(()));
            assert!(reached.is_some(), "{name} {tags}: {:?} and not {expected}", reported(&watch.snapshot(), name, tags));
        };
        reaches("sold", "fruit=apple", 7.0);
        reaches("sold", "fruit=pear", 14.0);
        reaches("stock", "", 2.0);
        reaches("level", "", 17.0);
        let recorded = |count: u64| {
            let size = || reported(&watch.snapshot(), "size", "").and_then(|size| size.histogram).filter(|size| size.total_count == count);
            poll(TIMEOUT, size).unwrap_or_else(|| panic!("{:?}", reported(&watch.snapshot(), "size", "")))
        };
        assert_eq!(recorded(40).total_sum, 40.0 * 25.0);
        // Cumulative values are added up; values of an interval are reported for that interval alone.
        for command in ["count 3", "change 10", "record 60 50", "gauge 4"] {
            program.carry_out(command);
        }
        reaches("sold", "fruit=apple", 10.0);
        reaches("sold", "fruit=pear", 20.0);
        reaches("stock", "", 12.0);
        reaches("level", "", 4.0);
        let size = recorded(100);
        assert_eq!(size.total_sum, 40.0 * 25.0 + 60.0 * 50.0);
        let counters = watch.stop().await.snapshot(0).counters;
        let shape = |name: &str| {
            let found = counters.counters.iter().find(|counter| counter.name == name).unwrap();
            (found.kind, found.unit.clone())
        };
        let expected = [
            ("sold", CounterKind::Counter, "{piece}"),
            ("stock", CounterKind::UpDownCounter, ""),
            ("size", CounterKind::Histogram, "By"),
            ("level", CounterKind::Gauge, ""),
        ];
        for (name, kind, unit) in expected {
            assert_eq!(shape(name), (kind, unit.to_owned()), "{name}");
        }
        assert_eq!((counters.dropped, counters.notices.len()), (0, 0));
        assert!(program.finish().success(), "{}", program.stderr());
    });
}
