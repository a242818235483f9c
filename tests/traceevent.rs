//! The figures of Microsoft's TraceEvent 4.0.0 for the captures, in `captures/traceevent.json`: ours are the same, except where listed here.

#[path = "support/captures.rs"]
mod captures;
#[path = "support/figures.rs"]
mod figures;
#[path = "support/reader.rs"]
mod reader;

use std::collections::BTreeMap;

use serde_json::Value;

/// Figures that are wrong in TraceEvent: capture, figure, TraceEvent's value, the right value, and the reason.
const KNOWN_TRACE_EVENT_ERRORS: [(&str, &str, &str, &str, &str); 5] = [
    (
        "net9-heavy-drops",
        "collections",
        r#"{"gen1":10,"gen2":2}"#,
        r#"{"gen1":11,"gen2":3}"#,
        "the stream has 14 GCStart events, from number 95 to 307; those whose GCEnd was dropped (236 and 247) are left out by TraceEvent",
    ),
    (
        "net9-heavy-drops",
        "collection_kinds",
        r#"{"BackgroundGC":2,"NonConcurrentGC":10}"#,
        r#"{"BackgroundGC":3,"NonConcurrentGC":11}"#,
        "the same: 236 is a background collection, 247 is not",
    ),
    (
        "net9-heavy-drops",
        "pauses_ms",
        "71.174",
        "98.484",
        "TraceEvent leaves out pauses of collections whose GCStart was dropped, as that of thread 11069 from 7.297 ms (GCSuspendEEBegin) to 12.468 ms \
         (GCRestartEEEnd). All such pairs together are 1570.714 ms, 1472.227 ms of these across dropped events of thread 11063.",
    ),
    (
        "net9-heavy",
        "pauses_ms",
        "244.664",
        "246.034",
        "34 pairs of GCSuspendEEBegin for a collection and GCRestartEEEnd are 236.163 ms, 16 pairs of background collections 9.870 ms: TraceEvent \
         leaves out 0.17 ms of each of the 8 background collections",
    ),
    (
        "v6-record-trace-oncpu-offcpu",
        "threads",
        "280",
        "463",
        "TraceEvent counts thread ids; the thread blocks of the stream describe 463 pairs of a process id and a thread id that have events",
    ),
];

/// Returns a decompressed capture; `None` if it does not exist.
fn capture(name: &str) -> Option<Vec<u8>> {
    let packed = captures::captures().join(format!("{name}.nettrace.xz"));
    packed.exists().then(|| captures::unpack(&packed))
}

#[test]
fn figures_match_trace_event() {
    let expected: BTreeMap<String, BTreeMap<String, Value>> =
        serde_json::from_str(&std::fs::read_to_string(captures::in_repository().join("traceevent.json")).expect("figures")).expect("JSON");
    let (mut compared, mut differ, mut unused) = (Vec::new(), Vec::new(), Vec::from(KNOWN_TRACE_EVENT_ERRORS));
    for (name, expected) in expected {
        let Some(bytes) = capture(&name) else { continue };
        compared.push(name.clone());
        let found = figures::of(&bytes);
        let second = reader::figures(&bytes);
        differ.extend(figures::differences(&found, "the second reader", &second).into_iter().map(|words| format!("{name}: {words}")));
        for (figure, expected) in expected {
            let words = (expected.to_string(), found[&figure].to_string());
            let named =
                unused.iter().position(|(of, what, theirs, ours, _)| (*of, *what, *theirs, *ours) == (&name, &figure, &words.0, &words.1));
            match named {
                Some(place) => _ = unused.remove(place),
                // 0 and 0.0 are equal.
                None if expected.as_f64().is_some() && expected.as_f64() == found[&figure].as_f64() => {}
                None if found[&figure] != expected => {
                    differ.push(format!("{name}: {figure}: {} of ours, {} of TraceEvent", words.1, words.0));
                }
                None => {}
            }
        }
    }
    assert!(compared.len() >= 4, "{compared:?}");
    assert!(differ.is_empty(), "{differ:#?}");
    unused.retain(|(of, ..)| compared.iter().any(|name| name == of));
    assert!(unused.is_empty(), "no longer so: {unused:#?}");
}
