//! Numbers that are shown, against programs of which the truth is known.

use std::collections::{BTreeMap, BTreeSet};

use crate::support::runtimes;
use crate::support::{Invocation, PATIENCE, Program, Signal, poll};

/// A row of `counters --format csv`.
#[derive(Debug)]
struct Row {
    counter: String,
    kind: String,
    value: String,
}

/// The rows of `counters` of a program, once there are so many of the counter that is named last.
fn counters(program: &Program, names: &str, awaited: (&str, usize)) -> Vec<Row> {
    let running = Invocation::new(["counters", &program.pid().to_string(), "--counters", names, "--format", "csv"]).start();
    let is_awaited = |line: &&str| line.contains(awaited.0);
    let enough = || (running.stdout().lines().filter(is_awaited).count() >= awaited.1).then_some(());
    assert!(poll(PATIENCE, enough).is_some(), "{}{}", running.stdout(), running.stderr());
    running.signal(Signal::INT);
    let output = running.wait();
    let row = |line: &str| {
        let columns: Vec<_> = line.split(',').collect();
        let [_, _, counter @ .., kind, value] = &columns[..] else { panic!("{line}") };
        Row { counter: counter.join(","), kind: (*kind).to_owned(), value: (*value).to_owned() }
    };
    output.stdout.lines().skip(1).map(row).collect()
}

/// The queue of the thread pool only gets shorter here: its length is shown, not how much shorter it became.
#[test]
fn amounts_of_the_thread_pool_are_shown_and_not_their_changes() {
    // Meters of the runtime are new in .NET 9.
    for runtime in runtimes::with("known").into_iter().filter(|runtime| runtime.major() >= 9) {
        let mut program = runtime.program("known").start();
        program.tell("occupy 300 100");
        let names = "System.Runtime[dotnet.thread_pool.queue.length,dotnet.thread_pool.thread.count]";
        let rows = counters(&program, names, ("thread_pool.thread.count", 3));
        let of = |name: &str| {
            let rows: Vec<_> = rows.iter().filter(|row| row.counter.contains(name)).collect();
            assert!(rows.iter().all(|row| row.kind == "Metric" && !row.counter.contains(" / ")), "{runtime}: {rows:?}");
            rows.iter().map(|row| row.value.parse::<f64>().unwrap()).collect::<Vec<_>>()
        };
        let (queue, threads) = (of("queue.length"), of("thread.count"));
        assert!(queue.len() >= 2 && queue.is_sorted_by(|before, after| before >= after && *after > 0.0), "{runtime}: {queue:?}");
        assert!(threads.iter().all(|count| *count >= 1.0), "{runtime}: {threads:?}");
    }
}

/// Every interval has the same rows, each with a value that has no digits which only calculation left there.
#[test]
fn counters_keep_their_names_and_have_values() {
    for runtime in runtimes::all() {
        let program = runtime.any().start();
        // Of the first some are meters since .NET 9; the others are EventCounters everywhere. One of them asks for no time that its rate is for.
        for names in ["System.Runtime", "System.Runtime[alloc-rate,exception-count,gen-0-gc-count,working-set,total-pause-time-by-gc]"] {
            let rows = counters(&program, names, (if names.contains('[') { "Allocation Rate" } else { "System.Runtime" }, 4));
            let rows = if names.contains('[') { rows } else { counters(&program, names, (&rows[0].counter, 4)) };
            let mut labels = BTreeMap::<_, BTreeSet<_>>::new();
            for Row { counter, kind, value } in &rows {
                let number: f64 = value.parse().unwrap_or_else(|_| panic!("{runtime}: {counter} {kind} {value:?}"));
                let decimals = value.split_once('.').map_or("", |(_, decimals)| decimals);
                assert!(
                    decimals.len() <= 3 || number.abs() < 0.1 && decimals.trim_start_matches('0').len() <= 2,
                    "{runtime}: {counter} {value}"
                );
                // With its tags.
                let tags = counter.split_once('[').map_or("", |(_, tags)| tags);
                labels.entry((counter.split(" (").next().unwrap(), tags, kind)).or_default().insert(counter);
            }
            assert!(labels.len() >= 4, "{runtime}: {rows:?}");
            assert!(labels.values().all(|names| names.len() == 1), "{runtime}: {labels:?}");
        }
    }
}
