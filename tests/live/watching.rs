//! Watching real processes: figures are received, and no session is left behind.

use std::fs;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use dn_top::analysis::{CollectionMarks, CounterSnapshot, CountersSnapshot, Live, RuntimeStats};
use dn_top::model::{Contact, Process};
use dn_top::net::discovery::Sources;
use dn_top::net::{Clients, Directory};
use dn_top::nettrace::{Decoder, Limits};
use dn_top::session::{WatchOptions, watch};
use tokio::sync::watch::channel;
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep};

use crate::support::runtimes;
use crate::support::{Invocation, Program, TIMEOUT, folder, poll};

/// A watched process, and its last published counters.
struct Watched {
    reported: Arc<Mutex<Option<CountersSnapshot>>>,
    stop: tokio::sync::watch::Sender<bool>,
    task: JoinHandle<Result<(), String>>,
}

/// Returns a process as discovered, once its runtime has responded.
async fn find(program: &Program) -> (Process, Clients) {
    let mut directory = Directory::new(Sources::machine()).unwrap();
    let began = Instant::now();
    loop {
        let rows = directory.refresh(Duration::from_secs(1)).await.unwrap();
        if let Some(process) = rows.into_iter().find(|row| row.key.pid == program.pid() && row.contact == Contact::Ok) {
            return (process, directory.clients());
        }
        assert!(began.elapsed() < TIMEOUT, "{program:?} is not found");
        sleep(Duration::from_millis(100)).await;
    }
}

impl Watched {
    fn start(process: &Process, clients: &Clients, meters: bool) -> Self {
        let (client, reported) = (clients.of(process).unwrap(), Arc::new(Mutex::new(None)));
        let wanted = WatchOptions { process: process.clone(), interval: Duration::from_secs(1), meters };
        let (stop, stopped) = channel(false);
        let tell = Arc::clone(&reported);
        let task = tokio::spawn(async move {
            let publish = |counters, _| {
                *tell.lock().unwrap() = Some(counters);
                std::future::ready(())
            };
            watch(&client, &wanted, stopped, publish).await
        });
        Self { reported, stop, task }
    }

    /// Waits until the counters meet a condition.
    async fn until<T>(&self, what: &str, is: impl Fn(&CountersSnapshot) -> Option<T>) -> T {
        let began = Instant::now();
        loop {
            if let Some(found) = self.reported.lock().unwrap().as_ref().and_then(&is) {
                return found;
            }
            assert!(!self.task.is_finished() && began.elapsed() < TIMEOUT, "timed out waiting for {what}: {:?}", self.figures());
            sleep(Duration::from_millis(20)).await;
        }
    }

    /// Returns the last counters, without their history.
    fn figures(&self) -> Vec<(String, Option<f64>, Option<f64>)> {
        let reported = self.reported.lock().unwrap();
        let counters = reported.iter().flat_map(|reported| &reported.counters);
        counters.map(|counter| (counter.name.clone(), counter.value, counter.rate)).collect()
    }

    async fn end(self) -> Result<(), String> {
        self.stop.send(true).unwrap();
        self.task.await.unwrap()
    }
}

/// Returns the number of threads of a runtime that serve sessions. 3.1 does not name its threads.
pub(crate) fn sessions(program: &Program) -> usize {
    let tasks = fs::read_dir(format!("/proc/{}/task", program.pid())).unwrap();
    let names = tasks.filter_map(|task| fs::read_to_string(task.ok()?.path().join("comm")).ok());
    // The thread that serves the socket has the same name, which it gets slightly later than it first responds.
    names.filter(|name| name.trim() == ".NET EventPipe").count().saturating_sub(1)
}

#[test]
fn every_runtime_is_watched_and_sessions_are_closed() {
    runtimes::each_async(runtimes::all_and_single_files(), async |runtime| {
        let mut program = runtime.any().start();
        let (process, clients) = find(&program).await;
        // The second session starts in the state left behind by the first.
        for _ in 0..2 {
            let watched = Watched::start(&process, &clients, false);
            let reported = |counters: &CountersSnapshot| {
                let RuntimeStats { heap, allocation_rate, gc_time_percent, exceptions, queue_length, .. } = counters.stats;
                Some((heap.filter(|heap| *heap > 1e5)?, allocation_rate?, gc_time_percent?, exceptions?, queue_length?))
            };
            let (heap, allocated, gc, exceptions, queue) = watched.until("all figures", reported).await;
            eprintln!("{runtime}: heap {heap}, {allocated} B/s, {gc} % in collections, {exceptions} exceptions/s, queue {queue}");
            assert!((0.0..=100.0).contains(&gc) && queue >= 0.0, "{runtime}");
            if !runtime.is_trimmed() {
                // The program allocates 10 kB per round and throws in every tenth.
                watched.until("allocation", |counters| counters.stats.allocation_rate.filter(|rate| *rate > 1e4)).await;
                watched.until("exceptions", |counters| counters.stats.exceptions.filter(|rate| *rate > 0.0)).await;
                assert!(sessions(&program) > 0 || runtime.major() == 3, "{runtime}");
            }
            assert_eq!(watched.end().await, Ok(()), "{runtime}");
            let gone = poll(TIMEOUT, || (sessions(&program) == 0).then_some(()));
            assert!(gone.is_some() && program.is_alive() && program.answers(), "{runtime}: a session stays");
        }
    });
}

/// A program that throws constantly never shows a rate of 0. 3.1 publishes twice in each interval, the second time with almost nothing.
#[test]
fn constant_activity_never_has_zero_rate() {
    runtimes::each_async(runtimes::all(), async |runtime| {
        let program = runtime.any().start();
        let (process, clients) = find(&program).await;
        let watched = Watched::start(&process, &clients, false);
        let exceptions = |counters: &CountersSnapshot| {
            let mine = |counter: &&CounterSnapshot| matches!(counter.name.as_str(), "exception-count" | "dotnet.exceptions");
            // The first value covers another interval: since the start of the program, or of the session.
            let history = counters.counters.iter().find(mine)?.history.get(1..)?;
            (history.len() >= 6).then(|| history.to_vec())
        };
        let rates = watched.until("six values", exceptions).await;
        assert!(rates.iter().all(|(_, rate)| *rate > 0.0), "{runtime}: {rates:?}");
        assert_eq!(watched.end().await, Ok(()), "{runtime}");
    });
}

#[test]
fn a_watch_ends_with_its_process() {
    runtimes::each_async(runtimes::all(), async |runtime| {
        let mut program = runtime.any().start();
        let (process, clients) = find(&program).await;
        let watched = Watched::start(&process, &clients, false);
        watched.until("figures", |counters| counters.stats.heap).await;
        program.finish();
        assert_eq!(watched.task.await.unwrap(), Ok(()));
    });
}

#[test]
fn requested_meters_are_reported() {
    runtimes::each_async(runtimes::since(9, runtimes::with("meters")), async |runtime| {
        let program = runtime.program("meters").start();
        let (process, clients) = find(&program).await;
        let watched = Watched::start(&process, &clients, true);
        let gauge = |counters: &CountersSnapshot| {
            let mine = |counter: &&CounterSnapshot| counter.group == "DnTop.Meter" && counter.name == "g";
            counters.counters.iter().find(mine)?.value
        };
        assert_eq!(watched.until("the gauge", gauge).await, 42.0);
        watched.until("the runtime's own figures", |counters| counters.stats.heap).await;
        assert_eq!(watched.end().await, Ok(()));
    });
}

/// Each collection has a mark with its generation, on every runtime.
#[test]
fn each_collection_has_a_mark() {
    runtimes::each_async(runtimes::with("known"), async |runtime| {
        let mut program = runtime.program("known").start();
        assert_eq!(program.line(), "ready");
        let (process, clients) = find(&program).await;
        let watched = Watched::start(&process, &clients, false);
        watched.until("figures", |counters| counters.stats.heap).await;
        for (generation, count) in [(0, 3), (1, 2), (2, 4)] {
            program.carry_out(&format!("collect {count} {generation}"));
        }
        let marked = |counters: &CountersSnapshot| match &counters.collections {
            CollectionMarks::Recorded(marks) if marks.len() >= 9 => Some(marks.clone()),
            _ => None,
        };
        let marks = watched.until("nine marks", marked).await;
        // The GC may choose an older generation than requested.
        let asked = [0, 0, 0, 1, 1, 2, 2, 2, 2];
        assert!(marks.len() == 9 && marks.iter().zip(asked).all(|(mark, asked)| mark.generation >= asked), "{runtime}: {marks:?}");
        assert!(marks.iter().all(|mark| (1_000..1_000_000_000).contains(&mark.pause_ns)), "{runtime}: {marks:?}");
        // Constant collections are marked as long as that is cheap, then the counters continue without marks.
        program.command("collect 100000000 0");
        // .NET 10 omits most of the events.
        if process.runtime.as_ref().is_none_or(|version| version.major() < 10) {
            let rate = |counters: &CountersSnapshot| match counters.collections {
                CollectionMarks::TooMany(rate) => Some(rate),
                _ => None,
            };
            eprintln!("{runtime}: {:.0} B/s of collections, no longer marked", watched.until("too many", rate).await);
            watched.until("figures without marks", |counters| counters.stats.collections[0].filter(|rate| *rate > 10.0)).await;
        }
        assert_eq!(watched.end().await, Ok(()), "{runtime}");
        assert!(program.answers(), "{runtime}");
    });
}

/// Bursts of collections: the latest one usually follows right after another, so that its share of the time since then says little about all.
#[test]
fn time_in_gc_is_that_of_all_pauses() {
    runtimes::each_async(runtimes::since(8, runtimes::with("known")), async |runtime| {
        let mut program = runtime.program("known").start();
        assert_eq!(program.line(), "ready");
        let (process, clients) = find(&program).await;
        let watched = Watched::start(&process, &clients, false);
        watched.until("figures", |counters| counters.stats.heap).await;
        program.command("native 3600000");
        let place = folder();
        let file = place.path().join("gc.nettrace");
        let pid = program.pid().to_string();
        let trace = Invocation::new(["trace", &pid, "--profile", "gc-collect", "--duration", "3s", "-o", file.to_str().unwrap()]).start();
        let traced = tokio::task::spawn_blocking(move || trace.wait()).await.unwrap();
        assert_eq!(traced.code, 0, "{runtime}: {}", traced.stderr);
        let (mut decoder, mut live) = (Decoder::new(Limits::default()), Live::default());
        decoder.feed(&fs::read(file).unwrap(), &mut live).unwrap();
        let recorded = live.snapshot(0).gc.pauses.total_ns as f64 / 3e7;
        let latest = |counters: &CountersSnapshot| {
            let counter = counters.counters.iter().find(|counter| counter.name == "total-pause-time-by-gc")?;
            let percent: Vec<_> = counter.history.iter().rev().take(3).map(|(_, ms)| ms / 10.0).collect();
            Some((percent, counters.stats.gc_time_percent?))
        };
        let (latest, shown) = watched.until("time in GC", latest).await;
        let counted = latest.iter().sum::<f64>() / 3.0;
        assert!(latest.len() == 3 && (latest[0] - shown).abs() < 0.001, "{runtime}: {latest:?} {shown}");
        eprintln!("{runtime}: {counted:.0} % according to counters, {recorded:.0} % according to events");
        // Less beside other programs.
        assert!((1.0..50.0).contains(&recorded) && (counted - recorded).abs() < 15.0, "{runtime}: {counted} {recorded}");
        assert_eq!(watched.end().await, Ok(()), "{runtime}");
    });
}

/// The runtime suspends all threads for each round of samples, a thousand times a second.
#[test]
fn collections_are_marked_while_threads_are_sampled() {
    runtimes::each_async(runtimes::with("known"), async |runtime| {
        let mut program = runtime.program("known").start();
        assert_eq!(program.line(), "ready");
        let (process, clients) = find(&program).await;
        let watched = Watched::start(&process, &clients, false);
        let folder = folder();
        let file = folder.path().join("a.nettrace");
        let (path, pid) = (file.to_str().unwrap(), program.pid().to_string());
        let running = Invocation::new(["trace", &pid, "--profile", "dotnet-sampled-thread-time", "-o", path]).start();
        running.wait_for_stderr("Ctrl-C stops it");
        let marks = |counters: &CountersSnapshot| match &counters.collections {
            CollectionMarks::Recorded(marks) => marks.len(),
            other => panic!("{runtime}: {other:?}"),
        };
        let intervals = |counters: &CountersSnapshot| {
            marks(counters);
            counters.counters.first().map(|counter| counter.history.len())
        };
        let before = watched.until("the first values", intervals).await;
        // More than are tolerated with too many events.
        watched.until("more values", |counters| intervals(counters).filter(|now| *now >= before + 6)).await;
        program.carry_out("collect 3 0");
        watched.until("three marks", |counters| (marks(counters) >= 3).then_some(())).await;
        assert_eq!(watched.end().await, Ok(()), "{runtime}");
        running.interrupt();
        let stats = Invocation::new(["stats", path, "--json"]).run().json();
        let samples = stats["counts"].as_array().unwrap().iter().find(|kind| kind["provider"] == "Microsoft-DotNETCore-SampleProfiler");
        assert!(samples.is_some_and(|samples| samples["count"].as_u64() > Some(1000)), "{runtime}: {stats:#}");
        assert!(program.is_alive() && program.answers(), "{runtime}");
    });
}
