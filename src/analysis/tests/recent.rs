//! Individual events: which ones are kept, and how they are shown.

use super::script::{MS, RUNTIME};
use super::{Bytes, Script};
use crate::analysis::{Live, LiveEventFilter};
use crate::clr::SAMPLE_PROFILER;
use crate::nettrace::{Field, FieldType, Metadata};

fn own(name: &str) -> Metadata {
    let field = |name: &str, kind| Field { name: name.into(), kind };
    let fields = vec![field("id", FieldType::Int32), field("what", FieldType::String)];
    Metadata { provider: "Shop".into(), event_id: 7, name: name.into(), fields, ..Metadata::default() }
}

fn play(script: &mut Script, filter: &str) -> Live {
    let mut live = Live::default().with_recent_events();
    live.set_event_filter(LiveEventFilter::new(filter));
    script.play_to(&mut live);
    live
}

#[test]
fn fields_come_from_stream_metadata_or_the_manifest() {
    let mut script = Script::new();
    script.method(0x1000, 0x100, "Shop.Orders", "Create");
    script.stack(&[0x1010]).event(own("Bought"), 5 * MS, 3, 3, Bytes::default().u32(42).text("a book"));
    let thrown = Metadata { provider: RUNTIME.into(), event_id: 80, version: 1, ..Metadata::default() };
    script.event(thrown, 6 * MS, 4, 4, Bytes::default().text("E").text("m").u64(0x10).u32(5).u16(0).u16(0));
    let other = Metadata { provider: "Raw".into(), event_id: 1, ..Metadata::default() };
    script.event(other, 7 * MS, 4, 4, Bytes::default().u16(0x0201));
    let recent = play(&mut script, "!method").recent();
    let texts: Vec<_> = recent
        .events
        .iter()
        .map(|(event, stack)| {
            let fields: Vec<_> = event.payload.fields().map(|(name, value)| format!("{name}={value}")).collect();
            format!("{} {} {} {} {}", event.at / MS, event.thread, event.kind.name, fields.join(" "), stack.join(" "))
        })
        .collect();
    let expected = [
        "7 4  bytes=01 02 Shop.Orders.Create",
        "6 4 ExceptionThrown ExceptionType=E ExceptionMessage=m ExceptionEIP=0x10 ExceptionHRESULT=0x5 ExceptionFlags=0 Shop.Orders.Create",
        "5 3 Bought id=42 what=a book Shop.Orders.Create",
    ];
    assert_eq!(texts, expected);
    assert_eq!((recent.seen, recent.skipped), (3, 0));
}

#[test]
fn events_are_kept_up_to_a_maximum_rate() {
    let mut script = Script::new();
    // Ten thousand in one second, then a few.
    for number in 0..10_000 {
        script.event(own("Flood"), i64::from(number) * MS / 10, 1, 1, Bytes::default().u32(number).text(""));
    }
    for number in 0..5 {
        script.event(own("Late"), 60_000 * MS + number * MS, 1, 1, Bytes::default().u32(0).text(""));
    }
    let recent = play(&mut script, "").recent();
    assert_eq!((recent.events.len(), recent.seen), (500, 10_005));
    assert!((9_400..=9_600).contains(&recent.skipped), "{}", recent.skipped);
    assert!(recent.events[..5].iter().all(|(event, _)| event.kind.name == "Late"));
}

/// Otherwise no more events would be kept, or all of them.
#[test]
fn maximum_rate_applies_after_a_large_step_back_of_the_clock() {
    let mut script = Script::new();
    script.event(own("Early"), 900_000 * MS, 1, 1, Bytes::default().u32(0).text(""));
    for number in 0..10_000 {
        script.event(own("Flood"), i64::from(number) * MS / 10, 1, 1, Bytes::default().u32(number).text(""));
    }
    let recent = play(&mut script, "").recent();
    assert!((9_400..=9_600).contains(&recent.skipped), "{}", recent.skipped);
}

#[test]
fn filter_applies_to_kept_and_new_events() {
    let script = || {
        let mut script = Script::new();
        for name in ["Bought", "Sold", "Bought"] {
            script.event(own(name), MS, 1, 1, Bytes::default().u32(0).text(""));
        }
        script
    };
    let mut live = play(&mut script(), "");
    let names = |live: &mut Live| live.recent().events.iter().map(|(event, _)| event.kind.name.clone()).collect::<Vec<_>>();
    assert_eq!(names(&mut live), ["Bought", "Sold", "Bought"]);
    live.set_event_filter(LiveEventFilter::new("shop !sold"));
    assert_eq!(names(&mut live), ["Bought", "Bought"]);
    assert_eq!(names(&mut play(&mut script(), "SOLD")), ["Sold"]);
    assert!(names(&mut Live::default()).is_empty());
}

#[test]
fn suspensions_are_left_out_if_the_runtime_samples_its_threads() {
    let names = |is_sampled: bool, filter: &str| {
        let mut script = Script::new();
        let runtime = |event_id| Metadata { provider: RUNTIME.into(), event_id, version: 1, ..Metadata::default() };
        for at in 0..3 {
            script.event(runtime(9), at * MS, 1, 1, Bytes::default().u32(0).u32(0));
            if is_sampled {
                let sample = Metadata { provider: SAMPLE_PROFILER.into(), ..Metadata::default() };
                script.event(sample, at * MS, 1, 1, Bytes::default().u32(2));
            }
        }
        script.event(own("Bought"), 5 * MS, 1, 1, Bytes::default().u32(0).text(""));
        let recent = play(&mut script, filter).recent();
        recent.events.iter().map(|(event, _)| event.kind.name.clone()).collect::<Vec<_>>().join(" ")
    };
    assert_eq!(names(true, ""), "Bought");
    assert_eq!(names(true, "!sold"), "Bought");
    assert_eq!(names(true, "suspend"), "GCSuspendEEBegin GCSuspendEEBegin GCSuspendEEBegin");
    assert_eq!(names(false, ""), "Bought GCSuspendEEBegin GCSuspendEEBegin GCSuspendEEBegin");
}

#[test]
fn a_truncated_payload_is_shown_as_far_as_possible() {
    let mut script = Script::new();
    script.event(own("Bought"), MS, 1, 1, Bytes::default().u32(42).u8(7));
    let recent = play(&mut script, "").recent();
    let payload = &recent.events[0].0.payload;
    assert_eq!((payload.fields().collect(), payload.is_cut), (vec![("id", "42")], true));
}
