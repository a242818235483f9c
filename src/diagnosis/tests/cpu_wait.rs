//! Waiting for a CPU, which prolongs all other times.

use super::*;

/// A convoy remains one on a machine without other load, however long the threads in it wait for a CPU.
#[test]
fn cpu_wait_is_named_together_with_a_problem_of_the_program() {
    let causes = |lock_seconds: u64, full: u64, cpu_ms, runnable_ms| {
        let analysis = analysis(|snapshot| {
            set_lock_waits(snapshot, lock_seconds);
            snapshot.gc.collections[2] = full;
        });
        let threads = &[main_thread(Duration::from_millis(cpu_ms), Some(Duration::from_millis(runnable_ms)))];
        let cpu_constraints = CpuConstraints { machine: Some(Duration::from_secs(40)), ..CpuConstraints::default() };
        slowdowns(&Evidence { threads, cpu_constraints, ..evidence(&analysis, &Thresholds::default()) })
    };
    let titles = |lock_seconds, full, cpu_ms, runnable_ms| -> Vec<&str> {
        verdict(&causes(lock_seconds, full, cpu_ms, runnable_ms)).1.into_iter().map(|slowdown| slowdown.cause.title()).collect()
    };
    // Three of four threads wait for the lock all the time, and the one that holds it waits for a CPU much of the time.
    assert_eq!(titles(60, 0, 2_000, 12_000), ["Lock contention", "Waiting for CPU"]);
    // More threads wait for a CPU.
    assert_eq!(titles(60, 0, 5_000, 70_000), ["Waiting for CPU", "Lock contention"]);
    assert_eq!(titles(0, 30, 5_000, 15_000), ["Waiting for CPU", "GC and heap"]);
    assert_eq!(titles(0, 0, 19_000, 15_000), ["Waiting for CPU"], "of the CPU time that it got, nothing is a problem");
    assert_eq!(titles(60, 0, 19_000, 100), ["Lock contention"]);
    // A worse convoy does not make the wait for CPUs worse.
    let severity = |lock_seconds, cause| found(causes(lock_seconds, 0, 5_000, 15_000), cause).severity;
    assert!(severity(6000, Cause::Locks) > severity(0, Cause::CpuWait));
    assert_eq!(severity(6000, Cause::CpuWait), severity(0, Cause::CpuWait));
}

/// A thread that ran for part of 20 s, and was runnable for part of it.
#[test]
fn threads_waiting_for_a_cpu_are_distinguished_from_other_waits() {
    let analysis = analysis(|_| ());
    let limited = |cpu_ms, runnable_ms: u64, machine_ms, limit| {
        let threads = &[main_thread(Duration::from_millis(cpu_ms), Some(Duration::from_millis(runnable_ms)))];
        let cpu_constraints = CpuConstraints { limit, machine: Some(Duration::from_millis(machine_ms)), ..CpuConstraints::default() };
        let all = slowdowns(&Evidence { threads, cpu_constraints, ..evidence(&analysis, &Thresholds::default()) });
        found(all, Cause::CpuWait)
    };
    let cpu_wait = |cpu_ms, runnable_ms, machine_ms| limited(cpu_ms, runnable_ms, machine_ms, None);
    let starved = cpu_wait(5_000, 15_000, 40_000);
    assert_eq!((starved.share, starved.is_problem()), (Some(0.75), true), "{starved:?}");
    assert_eq!(starved.text, "Runnable threads wait for a CPU 75 % of the time; the process uses 0.2 CPUs, all others 1.8.");
    let mostly_running = cpu_wait(19_000, 1_000, 40_000);
    assert_eq!((mostly_running.share, mostly_running.is_problem()), (Some(0.05), false));
    // It could use more CPUs than available, all the time or in bursts, and nothing else uses them.
    let own = cpu_wait(36_000, 100_000, 39_000);
    assert!(!own.is_problem() && own.text.ends_with("; the process uses 1.8 CPUs, all others 0.1."), "{own:?}");
    // No CPU is busy for long.
    let idle_machine = cpu_wait(2_000, 10_000, 12_000);
    assert!(!idle_machine.is_problem() && idle_machine.text.ends_with("; the process uses 0.1 CPUs, all others 0.5."), "{idle_machine:?}");
    // It runs briefly, and waits about as long for each run.
    let short_runs = cpu_wait(1_740, 3_400, 8_000);
    assert!(!short_runs.is_problem() && short_runs.share < Some(0.18), "{short_runs:?}");
    assert_eq!(short_runs.text, "Runnable threads wait for a CPU for at most 17 % of the time; the process uses 0.1 CPUs, all others 0.3.");
    let with_cpu_limit = |throttled| limited(5_000, 15_000, 5_100, Some(CpuLimit { group: 1, cores: 0.5, periods: 40, throttled }));
    assert!(with_cpu_limit(38).is_problem(), "{:?}", with_cpu_limit(38));
    assert!(
        with_cpu_limit(38).text.ends_with(": the CPU limit of its control group, 0.5 CPUs, throttled it in 95 % of periods."),
        "{:?}",
        with_cpu_limit(38)
    );
    assert!(!with_cpu_limit(3).is_problem() && with_cpu_limit(3).text.ends_with(", all others 0.0."), "{:?}", with_cpu_limit(3));
    let idle = cpu_wait(10, 90, 40_000);
    let rare = "Threads are rarely runnable, and then wait for a CPU 90 % of the time.";
    assert_eq!((idle.share, idle.severity, idle.text.as_str()), (Some(0.9), Some(0.0), rare));
    assert_eq!(found(slowdowns_with(|_| (), 100, &[], 9), Cause::CpuWait).severity, None);
    // The threads that record it are the only ones that wait.
    for (name, expected) in
        [(".NET EventPipe", "Threads are rarely runnable, "), ("worker", "Runnable threads wait for a CPU 75 % of the time; ")]
    {
        let recording = ThreadUse { thread: 2, name: name.into(), ..main_thread(Duration::from_secs(5), Some(Duration::from_secs(15))) };
        let threads = &[main_thread(Duration::ZERO, Some(Duration::ZERO)), recording];
        let cpu_constraints = CpuConstraints { machine: Some(Duration::from_secs(40)), ..CpuConstraints::default() };
        let all = slowdowns(&Evidence { threads, cpu_constraints, ..evidence(&analysis, &Thresholds::default()) });
        assert!(found(all, Cause::CpuWait).text.starts_with(expected), "{name}");
    }
}
