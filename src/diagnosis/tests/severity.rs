//! What makes a cause a problem, and what does not.

use super::*;
use crate::analysis::{FinalizerWait, ThreadLockWaits};

const RUNTIME: Option<u32> = Some(8);

/// The scripted analysis, with methods renamed by the ends of their names.
fn renamed(names: &[(&str, &str)]) -> RecordingAnalysis {
    let mut scripted = RecordingAnalysis::clone(&crate::ui::tests::analysis::scripted());
    scripted.profile.rename(|name| {
        let new = names.iter().find(|(end, _)| name.ends_with(end));
        new.map_or(name, |(_, new)| new).to_owned()
    });
    scripted
}

fn cause_in(analysis: &RecordingAnalysis, threads: &[ThreadUse], cause: Cause) -> Slowdown {
    let thresholds = Thresholds::default();
    found(slowdowns(&Evidence { threads, runtime: RUNTIME, ..evidence(analysis, &thresholds) }), cause)
}

#[test]
fn frequent_full_collections_are_explained_by_most_of_their_reasons() {
    let text = |large: usize| {
        let change = |snapshot: &mut Snapshot| {
            full_collections(snapshot, &[50; 30]);
            snapshot.gc.recent.iter_mut().take(large).for_each(|collection| collection.reason = GcReason(4));
        };
        let gc = found(slowdowns_with(change, 100, &[SLOW_PROFILE], 9), Cause::Gc);
        assert!(gc.is_problem(), "{gc:?}");
        gc.text
    };
    let frequent = "All threads are paused for 0 % of the time; 2/s gen 2 collections";
    assert_eq!(text(14), format!("{frequent}: most are induced (GC.Collect)."));
    assert_eq!(text(15), format!("{frequent}."));
    assert_eq!(text(16), format!("{frequent}: large objects are allocated all the time."));
}

#[test]
fn a_blocked_finalizer_thread_is_a_problem() {
    let gc = |seconds: u64, queued| {
        let change = |snapshot: &mut Snapshot| {
            snapshot.gc.collections[0] = 1;
            snapshot.gc.finalizer_wait = Some(FinalizerWait { waiting_ns: seconds * 1_000_000_000, queued });
        };
        let gc = found(slowdowns_with(change, 100, &[SLOW_PROFILE], 9), Cause::Gc);
        (gc.severity, gc.text)
    };
    let paused = "All threads are paused for 0 % of the time.".to_owned();
    let blocked = "The finalizer thread is blocked or busy for 20 s, 3 objects queued. ";
    assert_eq!(gc(20, 3), (Some(2.0), format!("{blocked}{paused}")));
    assert_eq!(gc(20, 0), (Some(0.0), paused.clone()));
    assert_eq!(gc(9, 3), (Some(0.0), paused));
}

/// However much it grows: what slows down the process comes first.
#[test]
fn growth_of_the_heap_has_a_maximum_severity() {
    let change = |snapshot: &mut Snapshot| full_collections(snapshot, &[20, 50, 70, 90, 2000]);
    assert_eq!(found(slowdowns_with(change, 100, &[SLOW_PROFILE], 9), Cause::Gc).severity, Some(1.5));
}

/// The share of little CPU time is no problem, and not worth a method's name.
#[test]
fn a_nearly_idle_process_has_no_problem_with_cpu_time() {
    for (method, cause) in [("Serilog.Log.Write", Cause::Logging), ("System.Runtime.EH.DispatchEx", Cause::Exceptions)] {
        let mut analysis = renamed(&[("PriceBasket", method)]);
        let busy = cause_in(&analysis, &[], cause);
        analysis.snapshot.recorded_ns *= 1000;
        let idle = cause_in(&analysis, &[], cause);
        assert!(busy.is_problem() && busy.share == idle.share && idle.severity < Some(0.01), "{busy:?} {idle:?}");
    }
    let cpu = |ms| cause_in(&renamed(&[]), &[main_thread(Duration::from_millis(ms), None)], Cause::Cpu).text;
    assert_eq!(cpu(1000), "5.0 % of one core is used.");
    assert!(cpu(10_000).starts_with("50 % of one core is used; most of it in Shop."), "{}", cpu(10_000));
}

/// Requests that are sent without serving another can take longer than all that are served.
#[test]
fn time_of_sent_requests_is_a_share_of_served_ones() {
    let mut analysis = renamed(&[]);
    let any = analysis.snapshot.activities.operations[0].clone();
    for (sent_ns, expected) in [(50e9, "50 % of the time of served requests"), (101e9, "")] {
        let operation = |layer, mean_ns: f64| {
            let mean_ns = Some(mean_ns);
            OperationSnapshot {
                layer,
                started: 9,
                ended: 9,
                failed: 0,
                quantiles_ns: Some([1, 100_000_000_000, 1]),
                mean_ns,
                ..any.clone()
            }
        };
        analysis.snapshot.activities.operations = vec![operation(Layer::Client, sent_ns), operation(Layer::Server, 100e9)];
        let text = cause_in(&analysis, &[], Cause::Http).text;
        assert_eq!(text.contains("of the time of"), !expected.is_empty(), "{text}");
        assert!(text.contains(expected), "{text}");
    }
}

/// They may be long polling.
#[test]
fn requests_of_which_none_ends_are_possibly_a_problem() {
    let any = renamed(&[]).snapshot.activities.operations[0].clone();
    let http = |running: u64, rate: f64, seconds: u64| {
        let change = |snapshot: &mut Snapshot| {
            snapshot.recorded_ns = seconds * 1_000_000_000;
            let (layer, started, ended) = (Layer::Server, 27, 27 - running);
            let stalled =
                OperationSnapshot { layer, started, ended, running, failed: 0, rate, quantiles_ns: None, mean_ns: None, ..any.clone() };
            snapshot.activities.operations = vec![stalled];
        };
        let all = slowdowns_with(change, 100, &[SLOW_PROFILE], 9);
        (verdict(&all).0.starts_with("Possibly "), found(all, Cause::Http).text)
    };
    let none = "Requests served: none of 27 ended.".to_owned();
    assert_eq!(http(27, 1.0, 30), (true, none.clone()));
    assert_eq!(http(27, 2.3, 30), (false, none.clone()), "only 4 of them began more than 10 s ago");
    assert_eq!(http(27, 1.0, 19), (false, none));
    assert!(!http(26, 1.0, 30).0);
}

/// Thread 12 waits all the time.
#[test]
fn waits_exclude_libraries_and_waiting_for_a_cpu() {
    let waiting = |names: &[(&str, &str)], runnable| {
        let ready = ThreadUse { thread: 12, ..main_thread(Duration::ZERO, Some(Duration::from_secs(runnable))) };
        let waiting = cause_in(&renamed(names), &[ready], Cause::Waiting);
        (waiting.share.unwrap(), waiting.text)
    };
    let (of_library, text) = waiting(&[], 0);
    assert!(of_library < 0.05, "{text}");
    let own = &[("StartCallback", "Shop.Worker.Run")];
    let (most, text) = waiting(own, 0);
    assert!(most > 0.3 && text.ends_with("; most in Shop.Worker.Run."), "{text}");
    let (rest, text) = waiting(own, 30);
    assert!(rest < most - 0.2 && rest > 0.05 && text.ends_with(" is spent in other waits."), "{text}");
}

/// Of three threads, number 12 publishes counters.
#[test]
fn threads_that_serve_diagnostic_tools_are_no_part_of_the_program() {
    let publisher = &[("WaitOneNoCheck", "System.Diagnostics.Tracing.CounterGroup.PollForValues")];
    let share = |names| cause_in(&renamed(names), &[], Cause::Locks).share.unwrap();
    let ratio = share(publisher) / share(&[]);
    assert!((ratio - 1.5).abs() < 0.01, "{ratio}");
    let cpu_wait = |names| {
        let ready = ThreadUse { thread: 12, ..main_thread(Duration::from_secs(5), Some(Duration::from_secs(15))) };
        let threads = &[main_thread(Duration::ZERO, Some(Duration::ZERO)), ready];
        cause_in(&renamed(names), threads, Cause::CpuWait).text
    };
    assert!(cpu_wait(&[]).starts_with("Runnable threads wait for a CPU 75 % of the time"));
    assert!(cpu_wait(publisher).starts_with("Threads are rarely runnable, "));
}

/// Thread 12 waits all the time. Before .NET 10, its stack may not show the lock.
#[test]
fn threads_blocked_all_the_time_are_a_problem_if_it_is_by_a_lock() {
    let locks_with = |method: &str, waits: Option<ThreadLockWaits>| {
        let mut analysis = renamed(&[("WaitOneNoCheck", method), ("StartCallback", "Shop.Worker.Run")]);
        analysis.snapshot.contention.threads.extend(waits.map(|waits| (ThreadId::of(12), waits)));
        cause_in(&analysis, &[], Cause::Locks)
    };
    let locks = |method| locks_with(method, None);
    let without = locks("System.Threading.WaitHandle.WaitOneNoCheck");
    assert!(without.severity < Some(0.5) && !without.text.contains("all the time"), "{without:?}");
    let in_lock = locks("System.Threading.Monitor.Enter");
    assert!(
        in_lock.severity == Some(1.0) && in_lock.text.ends_with("1 thread waited for locks all the time; most in Shop.Worker.Run."),
        "{in_lock:?}"
    );
    // The events show that wait already.
    let with_event = locks_with("System.Threading.Monitor.Enter", Some(ThreadLockWaits { total_ns: u64::MAX, longest_ns: u64::MAX }));
    assert!(in_lock.share > with_event.share && with_event.text.contains("all the time"), "{with_event:?}");
    // The events show that it waits again and again.
    for method in ["System.Threading.Monitor.Enter", "Shop.Native.Call"] {
        let convoy = locks_with(method, Some(ThreadLockWaits { total_ns: u64::MAX, longest_ns: 100_000_000 }));
        assert_eq!((convoy.severity, convoy.text), (without.severity, without.text.clone()), "{method}");
    }
    let hidden = locks("Shop.Native.Call");
    assert!(
        hidden.severity == Some(0.95) && hidden.text.contains("1 thread waited all the time, for a lock or in native code"),
        "{hidden:?}"
    );
    let analysis = renamed(&[("WaitOneNoCheck", "Shop.Native.Call"), ("StartCallback", "Shop.Worker.Run")]);
    let all = slowdowns(&Evidence { runtime: Some(10), ..evidence(&analysis, &Thresholds::default()) });
    assert_eq!(found(all, Cause::Locks).severity, without.severity, "this runtime would show a lock");
    let library = locks("System.Net.Sockets.Receive");
    assert_eq!((library.severity, library.text), (without.severity, without.text));
}
