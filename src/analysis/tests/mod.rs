//! Scripted sessions: the analyses must find what the script wrote.

mod comparison;
mod counter_session;
mod counters;
mod events;
mod gc;
mod heap;
mod hostile;
mod locks;
mod methods;
mod occurrences;
mod recent;
mod requests;
mod retention;
mod runtime_waits;
mod script;
mod thread_times;

use crate::nettrace::Metadata;
use script::{Bytes, Script};
/// The analyses pass only kinds that they handle to an analysis, which the routing checks.
#[test]
fn every_analyzed_kind_has_an_analysis() {
    let mut script = Script::new();
    let providers =
        [script::RUNTIME, script::RUNDOWN, "Microsoft-DotNETCore-EventPipe", "Universal.System", "Microsoft-DotNETCore-SampleProfiler"];
    for (provider, event_id) in providers.into_iter().flat_map(|provider| (0..400).map(move |id| (provider, id))) {
        let record = Metadata { provider: provider.into(), event_id, version: 3, ..Metadata::default() };
        script.event(record, script::MS, 1, 1, Bytes::default());
    }
    let live = script.play();
    assert_eq!(live.snapshot(live.newest()).totals.events, 2000);
}
