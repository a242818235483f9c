//! Comparison of two recordings.

use super::script::MS;
use super::{Bytes, Script};
use crate::analysis::{Compared, Live, Section, Subject, Unit, compare};

fn throw(script: &mut Script, at: i64, name: &str) {
    script.runtime(80, 1, at, 7, Bytes::default().text(name).text("").u64(0).u32(0).u16(0).u16(0));
}

fn allocate(script: &mut Script, at: i64, bytes: u64, name: &str) {
    let payload = Bytes::default().u32(bytes as u32).u32(0).u16(0).u64(bytes).u64(0).text(name).u32(0).u64(0);
    script.runtime(10, 3, at, 7, payload);
}

fn sections(before: &Live, after: &Live) -> Vec<Section> {
    let [(snapshot, profile), (later, hotter)] = [before, after].map(|live| (live.snapshot(live.newest()), live.profile()));
    compare(Compared { snapshot: &snapshot, profile: &profile }, Compared { snapshot: &later, profile: &hotter })
}

fn figures(sections: &[Section], subject: Subject) -> Vec<(&str, Option<f64>, Option<f64>)> {
    let section = sections.iter().find(|section| section.subject == subject);
    section.map_or(Vec::new(), |section| section.figures.iter().map(|figure| (figure.name.as_str(), figure.before, figure.after)).collect())
}

#[test]
fn counts_are_compared_as_rates() {
    let (mut before, mut after) = (Script::new(), Script::new());
    // Ten in a second, and ten in two.
    (1..=10).for_each(|at| throw(&mut before, at * 100 * MS, "A"));
    (1..=10).for_each(|at| throw(&mut after, at * 200 * MS, "A"));
    (1..=40).for_each(|at| throw(&mut after, at * 50 * MS, "B"));
    let sections = sections(&before.play(), &after.play());
    let expected = [("B", Some(0.0), Some(20.0)), ("A", Some(10.0), Some(5.0))];
    assert_eq!(figures(&sections, Subject::Exceptions), expected, "the greatest change first");
    assert_eq!(sections.len(), 1, "{sections:?}");
    assert_eq!(sections[0].figures[1].change(), Some(-5.0));
}

#[test]
fn data_not_recorded_is_none_and_not_zero() {
    let (mut before, mut after) = (Script::new(), Script::new());
    throw(&mut before, 1000 * MS, "A");
    allocate(&mut after, 1000 * MS, 4000, "Shop.Order");
    let sections = sections(&before.play(), &after.play());
    assert_eq!(figures(&sections, Subject::Exceptions), [("A", Some(1.0), None)]);
    assert_eq!(figures(&sections, Subject::Allocations), [("Shop.Order", None, Some(4000.0))]);
    let gc = sections.iter().find(|section| section.subject == Subject::Gc).unwrap();
    let allocated = gc.figures.iter().find(|figure| figure.name == "allocated").unwrap();
    assert_eq!((allocated.unit, allocated.before, allocated.after), (Unit::BytesPerSecond, None, Some(4000.0)));
}

/// What a file contains elsewhere was recorded here as well.
#[test]
fn parts_of_a_recording_without_events_have_none_of_them() {
    let part = |from: i64, to: i64| {
        let mut script = Script::new();
        throw(&mut script, 1500 * MS, "A");
        allocate(&mut script, 1500 * MS, 4000, "Shop.Order");
        script.runtime(1, 2, 1500 * MS, 7, Bytes::default().u32(1).u32(1).u32(0).u32(0).u16(0).u64(0));
        script.runtime(81, 1, 1500 * MS, 7, Bytes::default().u8(0).u16(0));
        script.runtime(91, 1, 1600 * MS, 7, Bytes::default().u8(0).u16(0).f64(1e8));
        let mut live = Live::within(from * MS..=to * MS);
        script.play_to(&mut live);
        (live.snapshot(live.end().min(to * MS)), live.profile())
    };
    let [empty, full, later] = [part(0, 1000), part(1000, 2000), part(5000, 9000)];
    let [empty, full, later] = [&empty, &full, &later].map(|(snapshot, profile)| Compared { snapshot, profile });
    let sections = compare(empty, full);
    let generations = [("gen 0 collections", Some(0.0), Some(0.0)), ("gen 1 collections", Some(0.0), Some(1.0 / 0.6))];
    assert_eq!(figures(&sections, Subject::Gc)[..2], generations);
    assert_eq!(figures(&sections, Subject::Exceptions), [("A", Some(0.0), Some(1.0 / 0.6))]);
    assert_eq!(figures(&sections, Subject::Allocations), [("Shop.Order", Some(0.0), Some(4000.0 / 0.6))]);
    let waits = figures(&sections, Subject::Contention);
    assert!(!waits.is_empty() && waits.iter().all(|(_, before, _)| *before == Some(0.0)), "{waits:?}");
    assert!(compare(empty, empty).iter().all(|section| !section.figures.is_empty()), "a subject without figures is left out");
    // After the end nothing is known.
    let sections = compare(later, full);
    assert_eq!(figures(&sections, Subject::Exceptions), [("A", None, Some(1.0 / 0.6))]);
    assert_eq!(figures(&sections, Subject::Gc)[0], ("gen 0 collections", None, Some(0.0)));
}

/// It may be one of the others that are not listed.
#[test]
fn what_is_not_listed_is_none_and_not_zero() {
    let play = |names: &[String]| {
        let mut script = Script::new();
        for (name, place) in names.iter().zip(1..) {
            let at = place as i64 * 5 * MS;
            script.stack(&[place * 0x1000]);
            throw(&mut script, at, name);
            allocate(&mut script, at, 4000, name);
            script.runtime(81, 1, at, 7, Bytes::default().u8(0).u16(0));
            script.runtime(91, 0, at + 1000 * place as i64, 7, Bytes::default().u8(0).u16(0));
        }
        script.play()
    };
    for (count, expected) in [(5, Some(0.0)), (6000, None)] {
        let many: Vec<_> = (1..=count).map(|number| format!("Type{number}")).collect();
        let sections = sections(&play(&["A".to_owned(), "B".to_owned(), "C".to_owned()]), &play(&many));
        for subject in [Subject::Exceptions, Subject::Allocations] {
            let found = figures(&sections, subject);
            let (_, before, after) = found.iter().find(|figure| figure.0 == "A").unwrap();
            assert!(before.is_some() && *after == expected, "{subject:?}: {after:?}");
        }
        // The first places have the shortest waits.
        let site = figures(&sections, Subject::Contention);
        let (_, before, after) = site.iter().find(|figure| figure.0 == "0x1000").unwrap();
        assert!(before.is_some() && (count < 100 || after.is_none()), "{after:?}");
    }
}

/// A duration of no requests is not 0, nor are the allocations of a recording without them.
#[test]
fn figures_without_data_are_none_and_not_zero() {
    let play = |has_more: bool| {
        let mut script = Script::new();
        script.runtime(1, 2, 100 * MS, 7, Bytes::default().u32(1).u32(1).u32(0).u32(0).u16(0).u64(0));
        let hosting = "Microsoft.AspNetCore.Hosting";
        script.activity(1).described(hosting, "RequestStart", &[], 0, Bytes::default());
        if has_more {
            script.activity(1).described(hosting, "RequestStop", &[], 30 * MS, Bytes::default());
            allocate(&mut script, 200 * MS, 4000, "Shop.Order");
        }
        throw(&mut script, 1000 * MS, "A");
        script.play()
    };
    let sections = sections(&play(true), &play(false));
    let of = |subject, name: &str| {
        let found = figures(&sections, subject);
        found.into_iter().find(|figure| figure.0 == name).map(|(_, before, after)| (before, after))
    };
    assert_eq!(of(Subject::Operations, "Request (Hosting) p50"), Some((Some(30e6), None)));
    assert_eq!(of(Subject::Gc, "allocated"), Some((Some(4000.0), None)));
}

#[test]
fn methods_are_compared_by_share_of_time() {
    let sampled = |hot: i64| {
        let mut script = Script::new();
        script.method(0x1000, 0x100, "Shop.Order", "Pay").method(0x2000, 0x100, "Shop.Cart", "Add");
        for at in 0..100 {
            // The caller has no name.
            script.stack(if at < hot { &[0x1010, 0x9000] } else { &[0x2010, 0x9000] });
            let record = crate::nettrace::Metadata {
                provider: "Microsoft-DotNETCore-SampleProfiler".into(),
                event_id: 0,
                ..crate::nettrace::Metadata::default()
            };
            script.event(record, (at + 1) * 10 * MS, 7, 7, Bytes::default().u32(2));
        }
        script.play()
    };
    let sections = sections(&sampled(20), &sampled(70));
    let close = |found: Option<f64>, expected: f64| found.is_some_and(|found| (found - expected).abs() < 0.06);
    let methods = figures(&sections, Subject::Methods);
    let of = |name: &str| *methods.iter().find(|(method, ..)| method.starts_with(name)).unwrap();
    let ((_, before, after), (_, cart_before, cart_after)) = (of("Shop.Order.Pay"), of("Shop.Cart.Add"));
    assert!(close(before, 0.2) && close(after, 0.7) && close(cart_before, 0.8) && close(cart_after, 0.3), "{methods:?}");
    let totals = figures(&sections, Subject::MethodTotals);
    assert!(totals.len() == 2 && totals.iter().all(|(method, ..)| method.starts_with("Shop.")), "{totals:?}");
}

/// Both providers call their operation `Request`, and durations cannot be added up.
#[test]
fn operations_of_several_providers_are_compared_separately() {
    let play = |served: i64, sent: i64| {
        let mut script = Script::new();
        for (id, provider, ms) in [(1, "Microsoft.AspNetCore.Hosting", served), (2, "System.Net.Http", sent)] {
            script.activity(id).described(provider, "RequestStart", &[], 0, Bytes::default());
            script.activity(id).described(provider, "RequestStop", &[], ms * MS, Bytes::default());
        }
        script.activity(0).described("Shop", "End", &[], 1000 * MS, Bytes::default());
        script.play()
    };
    let sections = sections(&play(30, 20), &play(50, 20));
    let figures = figures(&sections, Subject::Operations);
    let of = |name: &str| figures.iter().find(|figure| figure.0 == name).map(|(_, before, after)| (*before, *after));
    assert_eq!(of("Request (Hosting)"), Some((Some(1.0), Some(1.0))));
    assert_eq!(of("Request (Hosting) p50"), Some((Some(30e6), Some(50e6))));
    assert_eq!(of("Request (Http) p99"), Some((Some(20e6), Some(20e6))));
}
