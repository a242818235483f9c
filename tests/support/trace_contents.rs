//! Compares the tracks of a Perfetto trace to the analyses of the same recording.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use dn_top::analysis::{Live, Snapshot};
use dn_top::clr::payload::GcType;
use serde_json::Value;

use crate::trace_processor::{Counted, Engine, read};

/// Number of counter values kept by the analyses.
const HISTORY: usize = 300;

pub(crate) fn analyzed(recording: &Path) -> Snapshot {
    let mut live = Live::default();
    read(&fs::read(recording).unwrap(), &mut live);
    live.snapshot(live.end())
}

fn text<'a>(row: &'a Value, column: &str) -> &'a str {
    row[column].as_str().unwrap_or_default()
}

fn number(row: &Value, column: &str) -> u64 {
    row[column].as_u64().unwrap_or_else(|| panic!("{column} of {row}"))
}

/// Panics unless the trace has as many slices and values of every kind as the analyses count. Returns the numbers by kind.
pub(crate) fn assert_contents(engine: &Engine, trace: &Path, recording: &Path) -> BTreeMap<&'static str, u64> {
    let (name, snapshot, counted) = (recording.display(), analyzed(recording), Counted::of(recording));
    let mut found = BTreeMap::new();
    let count = |sql: &str| {
        number(&engine.query(trace, &format!("select count(*) as n from slice join track on track_id = track.id where {sql}"))[0], "n")
    };
    let mut compare = |kind: &'static str, is: u64, expected: u64| {
        assert_eq!(is, expected, "{name}: {kind}");
        found.insert(kind, is);
    };
    compare("log messages", count("category = 'log'"), snapshot.logs.by_level.iter().sum());
    compare("starvation", count("slice.name = 'Thread pool starvation'"), snapshot.thread_pool.starvations);
    let background = snapshot.gc.causes.iter().filter(|cause| cause.kind == GcType::BACKGROUND).map(|cause| cause.count).sum();
    compare("background GC", count("track.name = 'Background'"), background);
    if counted.lost == 0 {
        compare("compilations", count("category = 'jit'"), snapshot.jit.time.as_ref().map_or(0, |time| time.count));
    }
    // Requests and other operations, each on the tracks of its name.
    let rows = engine.query(
        trace,
        "select track.name as name, count(*) as n, sum(extract_arg(slice.arg_set_id, 'debug.unfinished') is not null) as unfinished
         from slice join track on track_id = track.id where category = 'activity' group by 1",
    );
    let shown: BTreeMap<_, _> =
        rows.iter().map(|row| (text(row, "name").to_owned(), (number(row, "n"), number(row, "unfinished")))).collect();
    let operations = snapshot.activities.operations.iter().filter(|operation| operation.ended + operation.running > 0);
    let expected = operations
        .map(|operation| (format!("{} {}", operation.provider, operation.name), (operation.ended + operation.running, operation.running)))
        .collect();
    assert_eq!(shown, expected, "{name}: operations, all and unfinished");
    found.insert("operations", shown.values().map(|(all, _)| all).sum());
    let overlaps = "select count(*) as n from (select ts, lag(ts + dur) over (partition by track_id order by ts) as before from slice where category = 'activity')
        where before > ts";
    assert_eq!(number(&engine.query(trace, overlaps)[0], "n"), 0, "{name}: operations of one lane overlap");
    // Counters: all values of those published by the program, and the last value of those of the runtime.
    let rows = engine.query(
        trace,
        "select p.name as parent, t.name as name, c.ts as ts, c.value as value from counter c join track t on c.track_id = t.id
         left join track p on t.parent_id = p.id order by c.ts, c.id",
    );
    let mut values = BTreeMap::<(String, String), Vec<f64>>::new();
    for row in &rows {
        values.entry((text(row, "parent").to_owned(), text(row, "name").to_owned())).or_default().push(row["value"].as_f64().unwrap());
    }
    let of = |parent: &str, name: &str| values.get(&(parent.to_owned(), name.to_owned())).cloned().unwrap_or_default();
    let mut published = 0;
    for counter in &snapshot.counters.counters {
        let title = if counter.tags.is_empty() { counter.name.clone() } else { format!("{} {{{}}}", counter.name, counter.tags) };
        let expected: Vec<f64> = counter.history.iter().map(|(_, value)| *value).filter(|value| value.is_finite()).collect();
        let shown = of(&counter.group, &title);
        if counter.history.len() < HISTORY {
            // Numbers are transferred as text, with the last digit rounded.
            let same = |(one, other): (&f64, &f64)| (one - other).abs() <= other.abs() * 1e-12;
            let are_same = shown.len() == expected.len() && shown.iter().zip(&expected).all(same);
            assert!(are_same, "{name}: {} {title}: {shown:?} and not {expected:?}", counter.group);
        }
        published += shown.len() as u64;
    }
    found.insert("counter values", published);
    if let Some(heap) = &snapshot.gc.heap {
        let sizes = heap.generations.iter().copied().chain([heap.large]).chain(heap.pinned);
        for (title, size) in ["Gen 0", "Gen 1", "Gen 2", "Large object heap", "Pinned object heap"].into_iter().zip(sizes) {
            assert_eq!(of("Heap", title).last(), Some(&(size as f64)), "{name}: {title}");
        }
        found.insert("heap sizes", of("Heap", "Gen 0").len() as u64);
    }
    assert_eq!(of("Thread pool", "Workers").last().copied(), snapshot.thread_pool.workers.map(f64::from), "{name}: workers");
    found.insert("worker counts", of("Thread pool", "Workers").len() as u64);
    found
}

/// Panics unless the calls of `--slices` match the stacks of ten samples, or of all if there are fewer. Returns the number of samples compared.
pub(crate) fn assert_calls(engine: &Engine, trace: &Path, recording: &Path) -> usize {
    let counted = Counted::of(recording);
    let some: Vec<_> = counted.stacks().iter().take(10).collect();
    if some.is_empty() {
        return 0;
    }
    let moments: Vec<_> = some.iter().map(|((at, thread), _)| format!("({at}, {thread})")).collect();
    // A call that begins after the sample belongs to the next sample.
    let sql = format!(
        "with asked (at, of) as (values {}) select at, of, s.name as name from asked join thread on tid = of
         join track t on utid = extract_arg(t.dimension_arg_set_id, 'utid') and t.name = 'Calls (sampled)'
         join slice s on s.track_id = t.id and s.ts < at and s.ts + s.dur >= at order by at, of, s.depth",
        moments.join(", ")
    );
    let mut calls = BTreeMap::<(i64, u64), Vec<String>>::new();
    for row in engine.query(trace, &sql) {
        calls.entry((row["at"].as_i64().unwrap(), number(&row, "of"))).or_default().push(text(&row, "name").to_owned());
    }
    for (moment, stack) in &some {
        let stack: Vec<_> = stack.iter().filter(|frame| *frame != "(native code)").cloned().collect();
        assert_eq!(calls.remove(moment).unwrap_or_default(), stack, "{}: the calls at {moment:?}", recording.display());
    }
    some.iter().filter(|(_, stack)| !stack.is_empty()).count()
}
