use super::*;
use crate::analysis::{
    Collection, ContentionSite, CpuSamples, CpuStack, ExceptionType, JitTime, Layer, Live, NativeFunction, OperationSnapshot, Origin,
    Profile, RecentSnapshot, Snapshot, Symbols, ThreadId, ThrownException,
};
use crate::clr::SLOW_PROFILE;
use crate::clr::payload::{GcReason, GcType};
use crate::model::{CpuLimit, CpuTime};

mod cpu_wait;
mod severity;

fn analysis(change: impl Fn(&mut Snapshot)) -> RecordingAnalysis {
    let mut snapshot = Live::default().snapshot(20_000_000_000);
    change(&mut snapshot);
    let (events, recent, profile) = (Vec::new(), RecentSnapshot::default(), Profile::default());
    RecordingAnalysis { snapshot, events, recent, profile, cpu: None }
}

/// For a process of which nothing but the recording is known.
fn evidence<'a>(analysis: &'a RecordingAnalysis, thresholds: &'a Thresholds) -> Evidence<'a> {
    let cpu_constraints = CpuConstraints::default();
    Evidence {
        analysis,
        threads: &[],
        elapsed: Duration::from_secs(20),
        recorded: &[],
        runtime: None,
        native_aot: false,
        cpu_constraints,
        thresholds,
    }
}

fn main_thread(cpu: Duration, runnable: Option<Duration>) -> ThreadUse {
    ThreadUse { thread: 1, name: "main".into(), cpu, runnable, state: 'R' }
}

fn found(all: Vec<Slowdown>, cause: Cause) -> Slowdown {
    all.into_iter().find(|slowdown| slowdown.cause == cause).unwrap()
}

/// For a process whose threads used this much CPU time in 20 s.
fn slowdowns_with(change: impl Fn(&mut Snapshot), cpu_ms: u64, what: &[&str], runtime: u32) -> Vec<Slowdown> {
    let what: Vec<_> = what.iter().map(|name| (*name).to_owned()).collect();
    let (analysis, thresholds) = (analysis(change), Thresholds::default());
    let threads = &[main_thread(Duration::from_millis(cpu_ms), None)];
    slowdowns(&Evidence { threads, recorded: &what, runtime: Some(runtime), ..evidence(&analysis, &thresholds) })
}

/// Its counters show lock contention, but no event does, and its threads are not sampled.
#[test]
fn what_native_aot_does_not_report_is_not_measured() {
    let (analysis, thresholds) = (analysis(|_| ()), Thresholds::default());
    let recorded = &["slow".to_owned()];
    for (native_aot, cause, expected) in [
        (false, Cause::Locks, "No lock contention."),
        (true, Cause::Locks, "Not measured: NativeAOT before .NET 9 only counts lock contention: counter monitor-lock-contention-count."),
        (true, Cause::Waiting, "Not measured: NativeAOT does not sample threads."),
    ] {
        let runtime = Some(8);
        let found = found(slowdowns(&Evidence { native_aot, recorded, runtime, ..evidence(&analysis, &thresholds) }), cause);
        assert_eq!((found.text.as_str(), found.severity.is_none()), (expected, native_aot));
    }
    let contended = self::analysis(|snapshot| snapshot.contention.count = 1);
    let all = slowdowns(&Evidence { native_aot: true, recorded, runtime: Some(8), ..evidence(&contended, &thresholds) });
    assert!(found(all, Cause::Locks).severity.is_some(), "it has events");
}

/// Full collections a second apart, the latest now.
fn full_collections(snapshot: &mut Snapshot, megabytes: &[u64]) {
    let end = |number: usize| snapshot.now - (megabytes.len() - 1 - number) as i64 * 1_000_000_000;
    let full = |(number, size): (usize, &u64)| Collection {
        number: number as u32,
        generation: 2,
        reason: GcReason(1),
        kind: GcType::BLOCKING,
        start: end(number),
        end: end(number),
        pause_ns: None,
        heap_before: None,
        heap_after: Some(size * 1_000_000),
        promoted: None,
    };
    snapshot.gc.recent = megabytes.iter().enumerate().map(full).rev().collect();
    snapshot.gc.collections[2] = megabytes.len() as u64;
}

fn set_exceptions(snapshot: &mut Snapshot, count: u64) {
    let (type_name, message) = ("Shop.NotFound".to_owned(), String::new());
    let thread = ThreadId::default();
    let last = ThrownException { at: 0, thread, hresult: 0, rethrown: false, type_name: type_name.clone(), message, frames: Vec::new() };
    snapshot.exceptions.thrown = count;
    snapshot.exceptions.types = vec![ExceptionType { name: type_name, count: count / 4 * 3, rate: 0.0, last }];
}

fn set_lock_waits(snapshot: &mut Snapshot, seconds: u64) {
    let wait_ns = seconds * 1_000_000_000;
    let method = "Shop.Orders.Price".to_owned();
    snapshot.contention.sites = vec![ContentionSite { method, count: 9, unfinished: 0, wait_ns, longest_ns: 1, owners: Vec::new() }];
    (snapshot.contention.count, snapshot.contention.wait_ns) = (9, wait_ns);
}

/// A change to a snapshot, CPU time in milliseconds, and its most severe cause with share and sentence.
type Case = (fn(&mut Snapshot), u64, Cause, Option<f64>, &'static str);

#[test]
fn most_severe_cause_is_first_and_names_its_source() {
    let cases: [Case; 8] = [
        (|_| {}, 19_000, Cause::Cpu, Some(0.95), "95 % of one core is used."),
        // CPU usage includes that of all other causes, which explain it.
        (
            |snapshot| (snapshot.gc.pauses.total_ns, snapshot.gc.collections) = (5_000_000_000, [90, 4, 0]),
            20_000,
            Cause::Gc,
            Some(0.25),
            "All threads are paused for 25 % of the time.",
        ),
        (
            |snapshot| full_collections(snapshot, &[20, 50, 70, 60, 90]),
            100,
            Cause::Gc,
            Some(0.0),
            "The heap grew from 20.0 MB to 90.0 MB: full GCs leave more (leak or cache). All threads are paused for 0 % of the time.",
        ),
        (
            |snapshot| set_lock_waits(snapshot, 90),
            500,
            Cause::Locks,
            None,
            "Threads wait for locks, 4.5 threads at a time; most in Shop.Orders.Price.",
        ),
        (
            |snapshot| snapshot.thread_pool.starvations = 4,
            500,
            Cause::ThreadPool,
            Some(0.1),
            "The thread pool was starved for at least 10 % of the time (4 times).",
        ),
        (
            |snapshot| snapshot.thread_pool.blocked = 9,
            500,
            Cause::ThreadPool,
            None,
            "9 pool threads wait for tasks to complete (sync over async).",
        ),
        (
            |snapshot| set_exceptions(snapshot, 40_000),
            20_000,
            Cause::Exceptions,
            None,
            "2.0k/s exceptions; 75 % are Shop.NotFound. Their CPU time is not measured: profile cpu records it.",
        ),
        // The more severe of two causes.
        (
            |snapshot| {
                set_exceptions(snapshot, 1_200);
                set_lock_waits(snapshot, 400);
            },
            500,
            Cause::Locks,
            None,
            "Threads wait for locks, 20.0 threads at a time; most in Shop.Orders.Price.",
        ),
    ];
    for (change, cpu, cause, share, text) in cases {
        let all = slowdowns_with(change, cpu, &[SLOW_PROFILE], 9);
        assert_eq!((all[0].cause, all[0].share, all[0].text.as_str(), all[0].is_problem()), (cause, share, text, true));
        assert_eq!(all.len(), Cause::ALL.len());
    }
    let (analysis, mut thresholds) = (analysis(|snapshot| snapshot.thread_pool.blocked = 1), Thresholds::default());
    thresholds.set(Threshold::BlockedThreads, 1.0).unwrap();
    let recorded = &[SLOW_PROFILE.to_owned()];
    let one = &slowdowns(&Evidence { recorded, ..evidence(&analysis, &thresholds) })[0];
    assert_eq!(one.text, "1 pool thread waits for tasks to complete (sync over async).");
}

#[test]
fn a_healthy_process_has_no_problem() {
    let small: [fn(&mut Snapshot); 10] = [
        |_| {},
        |snapshot| set_lock_waits(snapshot, 30),
        |snapshot| set_exceptions(snapshot, 900),
        |snapshot| snapshot.gc.pauses.total_ns = 1_900_000_000,
        |snapshot| full_collections(snapshot, &[90, 60, 100, 70, 110]),
        // It grows by too little, by too small a part, or in too few of the collections.
        |snapshot| full_collections(snapshot, &[1, 2, 3, 4, 5]),
        |snapshot| full_collections(snapshot, &[900, 920, 950, 980, 1000]),
        |snapshot| full_collections(snapshot, &[20, 90, 60, 95, 70, 90]),
        // On a busy machine, work occasionally waits that long.
        |snapshot| (snapshot.thread_pool.starvations, snapshot.recorded_ns) = (1, 5_000_000_000),
        // A warm-up that ended six seconds ago.
        |snapshot| {
            full_collections(snapshot, &[20, 50, 70, 60, 90]);
            snapshot.gc.recent.iter_mut().for_each(|collection| collection.end -= 6_000_000_000);
        },
    ];
    for change in small {
        let all = slowdowns_with(change, 10_000, &[SLOW_PROFILE], 9);
        assert!(!all.iter().any(Slowdown::is_problem), "{all:#?}");
    }
}

#[test]
fn nothing_stands_out_only_if_something_was_measured() {
    let cause = |severity| [Slowdown { cause: Cause::Gc, share: None, severity, text: String::new() }];
    let words = [None, Some(0.5)].map(|severity| verdict(&cause(severity)).0);
    assert_eq!(words, ["Nothing was measured that shows a cause.", "No cause stands out: none is above its threshold."]);
}

#[test]
fn causes_without_data_are_not_measured() {
    let not_measured = |what: &[&str], runtime: u32| -> Vec<(Cause, String)> {
        let all = slowdowns_with(|_| {}, 100, what, runtime);
        let missing = all.iter().filter(|slowdown| slowdown.severity.is_none());
        missing.map(|slowdown| (slowdown.cause, slowdown.text.clone())).collect()
    };
    let causes = |what: &[&str], runtime: u32| not_measured(what, runtime).into_iter().map(|(cause, _)| cause).collect::<Vec<_>>();
    assert_eq!(causes(&[SLOW_PROFILE], 9), [Cause::Jit, Cause::Logging, Cause::CpuWait, Cause::Waiting]);
    let (cause, text) = not_measured(&[SLOW_PROFILE], 3).remove(1);
    assert_eq!(cause, Cause::Http);
    assert_eq!(text, "Not measured: outgoing requests are reported by .NET 5 and later, and none was served.");
    assert_eq!(
        causes(&["gc-collect"], 9),
        [Cause::ThreadPool, Cause::Locks, Cause::Jit, Cause::Exceptions, Cause::Http, Cause::Logging, Cause::CpuWait, Cause::Waiting]
    );
    let (_, text) = not_measured(&["gc-collect"], 9).remove(1);
    assert_eq!(text, "Not measured: this recording has no lock contention (recorded by profile slow).");
    // What a file was recorded with is unknown.
    assert_eq!(causes(&[], 9).len(), 9);
    let (_, text) = not_measured(&[], 9).remove(1);
    assert_eq!(text, "Not measured: no lock contention in this recording: none occurred, or they were not recorded.");
    let file = analysis(|_| {});
    let all = slowdowns(&evidence(&file, &Thresholds::default()));
    assert!(all.iter().all(|slowdown| slowdown.severity.is_none()), "{all:#?}");
}

#[test]
fn causes_name_application_code() {
    let scripted = crate::ui::tests::analysis::scripted();
    let (elapsed, threads) = (Duration::from_secs(42), &[main_thread(Duration::from_secs(40), None)]);
    let all = slowdowns(&Evidence { threads, elapsed, runtime: Some(9), ..evidence(&scripted, &Thresholds::default()) });
    let text = |cause| found(all.clone(), cause).text;
    assert_eq!(text(Cause::Cpu), "95 % of one core is used; most of it in Shop.Pricing.PriceEngine.PriceBasket.");
    assert!(text(Cause::Locks).contains("Shop.Pricing.PriceEngine.PriceBasket"), "{}", text(Cause::Locks));
    assert!(text(Cause::Exceptions).ends_with("most thrown in Shop.Pricing.Discounts.Apply."), "{}", text(Cause::Exceptions));
    assert!(text(Cause::Gc).contains("The heap grew from "), "{}", text(Cause::Gc));
    assert!(text(Cause::Http).contains("p95 ") && text(Cause::Http).contains("https://stock.local/"), "{}", text(Cause::Http));
}

/// Uses the most accurate source available: events, kernel samples, or background compilation only.
#[test]
fn jit_time_uses_the_most_accurate_source() {
    let jit = |change: fn(&mut RecordingAnalysis)| {
        let mut analysis = analysis(|_| {});
        change(&mut analysis);
        let recorded = &[SLOW_PROFILE.to_owned()];
        let jit = found(slowdowns(&Evidence { recorded, ..evidence(&analysis, &Thresholds::default()) }), Cause::Jit);
        (jit.is_problem(), jit.text)
    };
    let sampled = |analysis: &mut RecordingAnalysis| analysis.cpu = Some(crate::ui::tests::analysis::cpu_time());
    assert_eq!(jit(sampled), (false, "3.0 % of one core is spent in JIT.".to_owned()));
    let background: fn(&mut RecordingAnalysis) = |analysis| analysis.snapshot.jit.background = Some((5_000_000_000, 0));
    assert_eq!(jit(background), (true, "25 % of one core is spent recompiling methods; other JIT is not measured.".to_owned()));
    let nothing = "Not measured: this recording has neither CPU samples of the kernel (profile cpu) nor times of compiled methods \
                   (profile startup)."
        .to_owned();
    assert_eq!(jit(|_| {}), (false, nothing));
    let measured: fn(&mut RecordingAnalysis) = |analysis| {
        let (over_time, slowest) = (analysis.snapshot.jit.over_time.clone(), Vec::new());
        analysis.snapshot.jit.time = Some(JitTime { count: 1, total_ns: 1, quantiles_ns: None, over_time, il_bytes: 9, slowest });
    };
    assert_eq!(jit(measured), (false, "<0.1 % of one core is spent in JIT: 1 method.".to_owned()));
}

/// Only samples in the runtime's exception handling count, not those in handlers.
#[test]
fn exception_cost_is_measured_from_samples() {
    let cost = |thrower: &str, runtime: Option<u32>| {
        let mut scripted = RecordingAnalysis::clone(&crate::ui::tests::analysis::scripted());
        scripted.profile.rename(|name| if name.ends_with(thrower) { "System.Runtime.EH.DispatchEx".to_owned() } else { name.to_owned() });
        let all = slowdowns(&Evidence { runtime, ..evidence(&scripted, &Thresholds::default()) });
        let found = found(all, Cause::Exceptions);
        (found.share, found.text.split_once(". ").map(|(_, cost)| cost.to_owned()).unwrap_or_default())
    };
    let not_measured = (None, "Their CPU time is not measured: profile cpu records it.".to_owned());
    assert_eq!(cost("nothing", Some(8)), not_measured);
    assert_eq!(cost("nothing", None), not_measured);
    assert_eq!(cost("nothing", Some(9)), (None, String::new()), "no sample of it is no measure of it");
    let (share, text) = cost("PriceBasket", None);
    assert!(share > Some(0.1) && text.contains(" of the sampled time is spent throwing them."), "{share:?} {text}");
    // Its managed callees, which take nearly all of the time, are not part of it.
    assert!(cost("StartCallback", Some(9)).0 < Some(0.1));
}

/// Times of a malformed recording exceed the maximum that can be counted.
#[test]
fn excessive_times_are_capped() {
    let mut samples = CpuSamples::new(u64::MAX);
    let mut symbols = Symbols::default();
    for (address, name) in [(100, "Shop.A"), (200, "Shop.B"), (300, "System.Runtime.EH.A"), (400, "System.Runtime.EH.B")] {
        samples.add(&CpuStack { thread: ThreadId::of(7), at: 0, kernel: &[], user: &[address], missing: None });
        symbols.add_native(&NativeFunction { address, start: address, size: 1, name, image: "", origin: Origin::Managed });
    }
    let mut analysis = analysis(|snapshot| set_exceptions(snapshot, 4));
    analysis.cpu = Some(CpuTime { profile: samples.profile(&symbols), ..CpuTime::default() });
    let exceptions = found(slowdowns(&evidence(&analysis, &Thresholds::default())), Cause::Exceptions);
    assert_eq!(exceptions.share, Some(1.0), "{exceptions:?}");
}

#[test]
fn only_application_methods_are_own_code() {
    for (method, own) in [
        ("Shop.Orders.Check", true),
        ("Systems.Run", true),
        ("System.String.Concat", false),
        ("Windows.Foundation.Uri.ToString", false),
        ("Serilog.Log.Write", false),
        ("0x7f3a1008", false),
        // A file whose methods have no names yet.
        ("[System.Net.Sockets.dll]", false),
        ("[libcoreclr.so]", false),
    ] {
        assert_eq!(is_own(method), own, "{method}");
    }
}

/// A slow incoming request is the symptom to be explained; an error is a problem in itself.
#[test]
fn failed_requests_are_a_problem_and_slow_ones_are_not() {
    let scripted = crate::ui::tests::analysis::scripted();
    let any = &scripted.snapshot.activities.operations[0];
    let http = |failed: u64, p95_ns: u64| {
        let change = |snapshot: &mut Snapshot| {
            let quantiles_ns = Some([1, p95_ns, p95_ns]);
            snapshot.activities.operations =
                vec![OperationSnapshot { layer: Layer::Server, started: 100, failed, quantiles_ns, ..any.clone() }];
        };
        found(slowdowns_with(change, 100, &[SLOW_PROFILE], 9), Cause::Http).is_problem()
    };
    assert_eq!([http(0, 5_000_000_000), http(4, 1), http(20, 1)], [false, false, true]);
}
