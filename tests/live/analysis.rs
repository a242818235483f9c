//! The analyses against the runtimes: programs that do a known number of things show these numbers.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use dn_top::analysis::{CounterSession, CounterSnapshot, Live, MeterNotice, SampleFilter, Snapshot};
use dn_top::ipc::{Level, Provider, Providers, Rundown, SessionConfig};
use dn_top::model::Contact;
use dn_top::net::Directory;
use dn_top::net::client::Client;
use dn_top::net::discovery::Sources;
use dn_top::nettrace::{Decoder, Limits};
use tokio::io::AsyncReadExt as _;
use tokio::task::JoinHandle;

use crate::support::runtimes;
use crate::support::{PATIENCE, Program, poll};

const RUNTIME: &str = "Microsoft-Windows-DotNETRuntime";
const SAMPLER: &str = "Microsoft-DotNETCore-SampleProfiler";
/// Collections, loads, compilation, contention, exceptions, threads, tiers.
const KEYWORDS: u64 = 0x10_0000_c019;

async fn client(program: &Program) -> Client {
    let mut directory = Directory::new(Sources::machine()).unwrap();
    loop {
        let rows = directory.refresh(Duration::from_secs(1)).await.unwrap();
        let ready = |row: &&dn_top::model::Process| row.key.pid == program.pid() && row.contact == Contact::Ok;
        if let Some(row) = rows.iter().find(ready) {
            return directory.clients().of(row).unwrap();
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

/// A session whose stream is analysed while it comes.
struct Watch {
    client: Client,
    id: dn_top::ipc::SessionId,
    live: Arc<Mutex<Live>>,
    reader: JoinHandle<()>,
}

impl Watch {
    async fn start(program: &Program, providers: Vec<Provider>, rundown: Rundown, live: Live) -> Self {
        let client = client(program).await;
        let config = SessionConfig { rundown, ..SessionConfig::new(Providers::new(providers).unwrap()) };
        let mut session = client.start_session(&config).await.unwrap();
        let live = Arc::new(Mutex::new(live));
        let shared = Arc::clone(&live);
        let reader = tokio::spawn(async move {
            let (mut decoder, mut bytes) = (Decoder::new(Limits::default()), vec![0; 64 * 1024]);
            loop {
                match session.stream.read(&mut bytes).await.unwrap() {
                    0 => break,
                    count => decoder.feed(&bytes[..count], &mut *shared.lock().unwrap()).unwrap(),
                }
            }
            assert!(decoder.finish(&mut *shared.lock().unwrap()).is_complete());
        });
        // The runtime answers before it lets events into the session.
        tokio::time::sleep(Duration::from_millis(300)).await;
        Self { client, id: session.id, live, reader }
    }

    /// What there is to say while it goes on.
    fn look(&self) -> Snapshot {
        let live = self.live.lock().unwrap();
        live.snapshot(live.newest())
    }

    async fn stop(self) -> Live {
        self.client.stop_session(self.id).await.unwrap();
        self.reader.await.unwrap();
        let live = Arc::into_inner(self.live).unwrap().into_inner().unwrap();
        let snapshot = live.snapshot(live.newest());
        assert_eq!((snapshot.unreadable, snapshot.totals.dropped, snapshot.totals.troubles), (0, 0, 0));
        live
    }
}

fn provider(name: &str, keywords: u64, level: Level) -> Provider {
    Provider::new(name, keywords, level).unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn known_numbers_are_shown() {
    for runtime in [runtimes::net31(), runtimes::net9()].into_iter().flatten() {
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
            .find(|site| site.method.contains("Known.<Contend>"))
            .unwrap_or_else(|| panic!("{runtime}: {:?}", snapshot.contention));
        assert_eq!(site.count, 7, "{runtime}");
        // The holder lets go 20 ms after it saw the other wait; when it gets the processor for it is another matter.
        assert!((7 * 15_000_000..snapshot.totals.duration_ns).contains(&site.wait_ns), "{runtime}: {site:?}");
        assert!(program.finish().success(), "{runtime}: {}", program.stderr());
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn time_is_where_it_was_spent() {
    for runtime in [runtimes::net31(), runtimes::net9()].into_iter().flatten() {
        let mut program = runtime.program("known").start();
        // On a machine that is busy with other things the program itself does not get its time as it wants it.
        let mut shares = Vec::new();
        while shares.len() < 5 && !shares.last().is_some_and(is_as_asked) {
            shares.push(spent(&mut program, &runtime.to_string()).await);
        }
        assert!(shares.last().is_some_and(is_as_asked), "{runtime}: {shares:?}");
    }
}

/// Within 3 points of 70, 20 and 10 %.
fn is_as_asked(shares: &[f64; 3]) -> bool {
    shares.iter().zip([70.0, 20.0, 10.0]).all(|(share, asked)| (share - asked).abs() < 3.0)
}

/// Percent of the samples that three methods have.
async fn spent(program: &mut Program, runtime: &str) -> [f64; 3] {
    let sampler = vec![provider(SAMPLER, 0, Level::Informational)];
    let watch = Watch::start(program, sampler, Rundown::Default, Live::default()).await;
    program.carry_out("spend 6000");
    let live = watch.stop().await;
    let methods = live.methods(SampleFilter::BUSY, usize::MAX);
    let total = |name: &str| methods.methods.iter().find(|method| method.name == name).map_or(0, |method| method.total.all()) as f64;
    let spend = total("Known.Spend");
    assert!(spend > 500.0, "{runtime}: {spend} samples");
    let burn = methods.methods.iter().find(|method| method.name == "Known.Burn").unwrap();
    assert!(burn.own.all() as f64 > spend * 0.95, "{runtime}: tiers of a method are one: {burn:?}");
    ["Known.Seventy", "Known.Twenty", "Known.Ten"].map(|name| total(name) / spend * 100.0)
}

#[tokio::test(flavor = "multi_thread")]
async fn objects_on_the_heap_are_counted_exactly() {
    for runtime in [runtimes::net31(), runtimes::net9()].into_iter().flatten() {
        let mut program = runtime.program("known").start();
        program.carry_out("hold 1000");
        let walk = vec![provider(RUNTIME, 0x198_0001, Level::Verbose)];
        let watch = Watch::start(&program, walk, Rundown::None, Live::default()).await;
        tokio::time::sleep(Duration::from_secs(1)).await;
        let heap = watch.stop().await.heap().unwrap();
        assert!(heap.is_exact(), "{runtime}: {:?}", heap.problems);
        let of = |name: &str| heap.types.iter().find(|named| named.name == name).map(|named| (named.objects, named.bytes));
        assert_eq!(of("Held"), Some((1000, 24_000)), "{runtime}");
        assert_eq!(of("Held[]"), Some((1, 24 + 8 * 1000)), "{runtime}");
        assert!(of("System.Byte[]").unwrap().0 >= 1000, "{runtime}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn methods_are_known_by_a_short_second_session() {
    for runtime in runtimes::all() {
        let program = runtime.any().start();
        let providers = vec![provider(SAMPLER, 0, Level::Informational), provider(RUNTIME, 0x38, Level::Informational)];
        let watch = Watch::start(&program, providers, Rundown::None, Live::default()).await;
        tokio::time::sleep(Duration::from_secs(2)).await;
        let nothing = vec![provider("X", 0, Level::LogAlways)];
        let rundown = Watch::start(&program, nothing, Rundown::Default, Live::only_symbols()).await.stop().await;
        let mut live = watch.stop().await;
        let before = live.methods(SampleFilter::ALL, 1);
        live.add_symbols(&rundown.into_symbols());
        let after = live.methods(SampleFilter::ALL, usize::MAX);
        let all = after.samples.all();
        assert!(before.unresolved * 2 > all && all > 100, "{runtime}: {before:?}");
        // A few are in code that no rundown tells: stubs, and methods that went.
        assert!(after.unresolved * 20 < all || runtime.version.starts_with('9'), "{runtime}: {} of {all}", after.unresolved);
        assert!(after.methods.iter().any(|method| method.name.starts_with("System.")), "{runtime}: {:?}", after.methods);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn counters_and_meters_have_the_values_that_the_program_set() {
    let Some(net9) = runtimes::net9() else { return };
    let program = net9.program("meters").start();
    let meters = |id: &str| {
        let arguments = format!("SessionId={id};Metrics=DnTop.Meter,System.Runtime;RefreshInterval=1;MaxTimeSeries=100;MaxHistograms=10");
        provider("System.Diagnostics.Metrics", 7, Level::Informational).with_arguments(arguments).unwrap()
    };
    let session = |id: &str| CounterSession { meter_session: Some(id.into()), interval_ms: Some(1000), ..CounterSession::default() };
    let mut live = Live::default();
    live.set_counter_session(session("first"));
    let runtime = provider("System.Runtime", 0, Level::LogAlways).with_arguments("EventCounterIntervalSec=1").unwrap();
    let first = Watch::start(&program, vec![meters("first"), runtime], Rundown::None, live).await;
    tokio::time::sleep(Duration::from_secs(5)).await;
    let mut refused = Live::default();
    refused.set_counter_session(session("second"));
    let second = Watch::start(&program, vec![meters("second")], Rundown::None, refused).await;
    tokio::time::sleep(Duration::from_millis(500)).await;
    let refused = second.stop().await;
    // The last interval is cut short when the session stops.
    let counters = first.look().counters;
    first.stop().await;

    let of = |name: &str, tags: &str| -> &CounterSnapshot {
        counters.counters.iter().find(|counter| counter.name == name && counter.tags == tags).unwrap_or_else(|| panic!("{name} {tags}"))
    };
    assert_eq!((of("g", "").value, counters.notices.len(), counters.all_instruments_told), (Some(42.0), 0, true));
    let [a, b] = ["route=/a", "route=/b"].map(|tags| of("hits", tags));
    assert!((a.value.unwrap() - b.value.unwrap()).abs() <= 1.0, "in turn: {a:?} {b:?}");
    let latency = of("lat", "").histogram.as_ref().unwrap();
    // Of 0 to 99 in turn, as many as there were in the interval.
    let [p50, p95, p99] = [0, 1, 2].map(|index| latency.quantiles[index].1);
    assert!((40.0..60.0).contains(&p50) && (90.0..=99.0).contains(&p95) && (95.0..=99.0).contains(&p99), "{latency:?}");
    let mean = latency.total_sum / latency.total_count as f64;
    assert!((45.0..54.0).contains(&mean), "{latency:?}");
    let rate = a.rate.unwrap() + b.rate.unwrap();
    assert!((latency.count.unwrap() as f64 - rate).abs() < 5.0, "one is recorded for every hit: {latency:?} {rate}");
    let vitals = counters.vitals;
    assert!(vitals.working_set.unwrap() > 1e7 && vitals.heap.unwrap() > 1e4 && vitals.cpu_percent.is_some() && vitals.exceptions.is_some());
    assert!(of("dotnet.assembly.count", "").value.unwrap() > 5.0 && of("assembly-count", "").value.unwrap() > 5.0);
    assert_eq!(refused.snapshot(0).counters.notices, [MeterNotice::OtherSession("first".into())]);
    assert_eq!(refused.snapshot(0).counters.counters.len(), 0, "the values of others are not taken");
    // The program went on.
    assert!(poll(PATIENCE, || program.answers().then_some(())).is_some());
}
