//! For any stream, the analyses neither panic nor exceed their memory bounds.

use proptest::collection::vec;
use proptest::prelude::*;

use super::script::RUNDOWN;
use super::{Bytes, Script};
use crate::analysis::{SampleCount, SampleFilter};
use crate::nettrace::{Field, FieldType, Metadata};

/// Events of all known kinds, and some unknown ones.
fn kind() -> impl Strategy<Value = Metadata> {
    let runtime = (prop_oneof![0_u32..20, 50_u32..62, 80_u32..92, 141_u32..160, 280_u32..304], 0_u32..5)
        .prop_map(|(event_id, version)| Metadata { provider: super::script::RUNTIME.into(), event_id, version, ..Metadata::default() });
    let rundown = (140_u32..158, 0_u32..3).prop_map(|(event_id, version)| Metadata {
        provider: RUNDOWN.into(),
        event_id,
        version,
        ..Metadata::default()
    });
    let sample = Just(Metadata { provider: "Microsoft-DotNETCore-SampleProfiler".into(), ..Metadata::default() });
    let provider = prop_oneof![Just("System.Diagnostics.Metrics"), Just("Microsoft-Extensions-Logging"), Just("Shop")];
    let name = prop_oneof![
        Just("EventCounters"),
        Just("CounterRateValuePublished"),
        Just("HistogramValuePublished"),
        Just("FormattedMessage"),
        Just("BeginInstrumentReporting"),
        Just("RequestStart"),
        Just("RequestStop"),
    ];
    let described = (provider, name, vec(field(), 0..8)).prop_map(|(provider, name, fields)| {
        let event_id = fields.len() as u32;
        Metadata { provider: provider.into(), event_id, name: name.into(), fields, ..Metadata::default() }
    });
    prop_oneof![4 => runtime, 1 => rundown, 1 => sample, 3 => described]
}

fn field() -> impl Strategy<Value = Field> {
    let names = prop_oneof![
        Just("Name"),
        Just("Mean"),
        Just("Increment"),
        Just("IntervalSec"),
        Just("Series"),
        Just("DisplayRateTimeScale"),
        Just("rate"),
        Just("meterName"),
        Just("instrumentName"),
        Just("tags"),
        Just("quantiles"),
        Just("count"),
        Just("sum"),
        Just("LoggerName"),
        Just("Level"),
    ];
    let kinds = prop_oneof![Just(FieldType::String), Just(FieldType::Double), Just(FieldType::Int32), Just(FieldType::Single)];
    (names, kinds).prop_map(|(name, kind)| Field { name: name.into(), kind })
}

/// Small numbers are more often meaningful than arbitrary bytes.
fn payload() -> impl Strategy<Value = Vec<u8>> {
    prop_oneof![vec(any::<u8>(), 0..120), vec(0_u8..4, 0..120), vec(prop_oneof![Just(0_u8), Just(65)], 60..200)]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]

    #[test]
    fn arbitrary_events_do_not_break_invariants(
        events in vec((kind(), payload(), any::<i64>(), 0_u64..4, vec(0_u64..64, 0..6), 0_u32..50), 1..200),
        now: i64,
    ) {
        let mut script = Script::new();
        for (record, payload, at, thread, frames, other) in events {
            script.stack(&frames);
            script.event(record, at, thread, thread, Bytes(payload));
            match other {
                0 => _ = script.lose(thread, 1),
                1 => _ = script.sequence_point(0),
                _ => {}
            }
        }
        let live = script.play();
        for now in [now, live.newest(), 0] {
            let snapshot = live.snapshot(now);
            let gc = &snapshot.gc;
            prop_assert_eq!(gc.causes.iter().map(|cause| cause.count).sum::<u64>(), gc.collections.iter().sum::<u64>());
            let exceptions = &snapshot.exceptions;
            prop_assert_eq!(exceptions.types.iter().map(|named| named.count).sum::<u64>() + exceptions.others, exceptions.thrown);
            prop_assert!(snapshot.contention.ended <= snapshot.contention.count);
            prop_assert_eq!(snapshot.jit.by_tier.iter().map(|(_, tier)| tier.bodies).sum::<u64>(), snapshot.jit.bodies);
            prop_assert!(snapshot.unreadable <= snapshot.totals.events);
            let methods = live.profile().methods(SampleFilter::ALL, usize::MAX);
            prop_assert_eq!(methods.methods.iter().map(|method| method.own.all()).sum::<u64>() + methods.without_stack, methods.samples.all());
            prop_assert_eq!(methods.threads.iter().map(|thread| thread.samples.all()).sum::<u64>(), methods.samples.all());
            let profile = live.profile();
            let tree = profile.count(SampleFilter::ALL).call_tree(SampleCount::all, usize::MAX);
            let roots = tree.iter().filter(|node| node.depth == 0).map(|node| node.total.all()).sum::<u64>();
            prop_assert_eq!(roots + methods.without_stack, methods.samples.all());
            live.profile().count(SampleFilter::BUSY).stacks(10);
            if let Some(heap) = live.heap() {
                let of_types = heap.types.iter().map(|named| named.objects).sum::<u64>() + heap.others.1;
                prop_assert_eq!(of_types, heap.objects);
            }
        }
    }
}
