//! Exceptions, JIT compilation, assemblies and logs.

use super::script::{MS, RUNDOWN};
use super::{Bytes, Script};
use crate::analysis::{Live, SampleCount};
use crate::clr::payload::Tier;
use crate::nettrace::{Event, FieldType, Metadata, Sink, ThreadId, forward_sink};

pub(super) fn throw(script: &mut Script, at: i64, name: &str, message: &str, flags: u16) {
    script.runtime(80, 1, at, 7, Bytes::default().text(name).text(message).u64(0).u32(0x8013_1509).u16(flags).u16(0));
}

#[test]
fn exceptions_by_type() {
    let mut script = Script::new();
    script.method(0x1000, 0x100, "Shop.Order", "Pay").method(0x2000, 0x100, "System.Runtime.EH", "RhThrowEx");
    script.method(0x3000, 0x10, "Shop.Program", "Main");
    // The last frame's return address is just past the last byte of its method.
    script.stack(&[0x2010, 0x1020, 0x3010, 0x9999]);
    for round in 0..70 {
        throw(&mut script, round * 100 * MS, "System.FormatException", &format!("number {round}"), 0);
    }
    throw(&mut script, 7000 * MS, "System.Exception", "", 4);
    let exceptions = script.snapshot().exceptions;
    assert_eq!((exceptions.thrown, exceptions.rethrown, exceptions.others), (71, 1, 0));
    let types: Vec<_> = exceptions.types.iter().map(|named| (named.name.as_str(), named.count, named.last.message.as_str())).collect();
    assert_eq!(types, [("System.FormatException", 70, "number 69"), ("System.Exception", 1, "")]);
    assert_eq!(exceptions.recent.len(), 64);
    let latest = &exceptions.recent[0];
    assert_eq!((latest.at, latest.thread, latest.hresult, latest.rethrown), (7000 * MS, ThreadId::of(7), 0x8013_1509, true));
    assert_eq!(latest.frames, ["Shop.Order.Pay", "Shop.Program.Main", "0x9998"]);
    assert!((exceptions.rate - 71.0 / 7.0).abs() < 1e-9, "{}", exceptions.rate);
}

/// Stacks are counted by type, without the throwing code, and are resolved even if the names arrive later.
#[test]
fn exceptions_by_stack() {
    let mut script = Script::new();
    for (stack, name, count) in
        [(&[0x2010, 0x1020, 0x3010][..], "A", 3), (&[0x1020, 0x3010][..], "B", 2), (&[0x4010, 0x3010][..], "A", 4), (&[][..], "C", 1)]
    {
        script.stack(stack);
        (0..count).for_each(|at| throw(&mut script, at * MS, name, "", 0));
    }
    script.method(0x1000, 0x100, "Shop.Order", "Pay").method(0x2000, 0x100, "System.Runtime.EH", "RhThrowEx");
    script.method(0x3000, 0x100, "Shop.Program", "Main").method(0x4000, 0x100, "Shop.Stock", "Take");
    let stacks = script.snapshot().exceptions.stacks;
    let tree = |name: Option<&str>| {
        let tree = stacks.of(name).call_tree(SampleCount::all, 100);
        tree.into_iter().map(|node| (node.depth, node.name, node.own.all(), node.total.all())).collect::<Vec<_>>()
    };
    let node = |depth, name, own, total| (depth, name, own, total);
    assert_eq!(tree(None), [node(0, "Shop.Program.Main", 0, 9), node(1, "Shop.Order.Pay", 5, 5), node(1, "Shop.Stock.Take", 4, 4)]);
    assert_eq!(tree(Some("B")), [node(0, "Shop.Program.Main", 0, 2), node(1, "Shop.Order.Pay", 2, 2)]);
    assert_eq!((tree(Some("C")), tree(Some("D")), stacks.is_empty()), (Vec::new(), Vec::new(), false));
    let groups: Vec<_> = stacks
        .of(None)
        .stacks(1)
        .into_iter()
        .map(|group| {
            let types: Vec<_> = group.threads.iter().map(|(number, count)| (stacks.type_name(*number).unwrap(), *count)).collect();
            (group.frames, types.iter().map(|(name, count)| format!("{name} {count}")).collect::<Vec<_>>())
        })
        .collect();
    assert_eq!(groups, [(["Shop.Order.Pay", "Shop.Program.Main"].map(str::to_owned).to_vec(), vec!["A 3".to_owned(), "B 2".to_owned()])]);
    assert!(Script::new().snapshot().exceptions.stacks.is_empty());
}

/// The rarest types are evicted if there are too many, and no type gets the stacks of another.
#[test]
fn stacks_of_many_types_are_bounded() {
    let mut script = Script::new();
    script.method(0x1000, 0x100, "Shop.Order", "Pay").method(0x2000, 0x100, "Shop.Stock", "Take");
    script.stack(&[0x1020]);
    (0..2).for_each(|at| throw(&mut script, at * MS, "Early", "", 0));
    (0..5000).for_each(|number| throw(&mut script, number * MS, &format!("Type{number}"), "", 0));
    script.stack(&[0x2020]);
    (0..3).for_each(|at| throw(&mut script, (5000 + at) * MS, "Late", "", 0));
    let stacks = script.snapshot().exceptions.stacks;
    let tree = |name: &str| {
        let tree = stacks.of(Some(name)).call_tree(SampleCount::all, 100);
        tree.into_iter().map(|node| (node.name, node.own.all())).collect::<Vec<_>>()
    };
    assert_eq!(tree("Early"), [("Shop.Order.Pay", 2)]);
    assert_eq!(tree("Late"), [("Shop.Stock.Take", 3)]);
    assert_eq!(tree("Type4999"), [("Shop.Order.Pay", 1)]);
    assert_eq!((tree("Type0"), stacks.of(None).samples().all()), (Vec::new(), 5005));
}

#[test]
fn time_range_of_a_session_resolves_all_methods() {
    let mut script = Script::new();
    script.stack(&[0x1020]);
    (0..10).for_each(|second| throw(&mut script, second * 1000 * MS, "System.Exception", "", 0));
    script.method(0x1000, 0x100, "Shop.Order", "Pay");
    let mut live = crate::analysis::Live::within(2000 * MS..=4000 * MS);
    script.play_to(&mut live);
    let snapshot = live.snapshot(live.newest());
    assert_eq!((snapshot.totals.events, snapshot.exceptions.thrown, live.newest()), (3, 3, 4000 * MS));
    assert_eq!(snapshot.exceptions.recent[0].frames, ["Shop.Order.Pay"]);
}

fn begin(script: &mut Script, at: i64, thread: u64, method: u64) {
    let payload = Bytes::default().u64(method).u64(1).u32(1).u32(10).text("N.T").text("M").text("").u16(0);
    script.runtime(145, 1, at, thread, payload);
}

fn body(script: &mut Script, at: i64, thread: u64, method: u64, name: &str, flags: u32) {
    let payload = Bytes::default().u64(method).u64(1).u64(method << 12).u32(100).u32(1).u32(flags);
    script.runtime(143, 1, at, thread, payload.text("N.T").text(name).text("").u16(0));
}

/// Stacks show the methods that were at their addresses at the time of the event: unloaded code may be replaced.
#[test]
fn stacks_use_methods_loaded_at_the_event_time() {
    let mut script = Script::new();
    script.stack(&[0x1020]);
    body(&mut script, MS, 1, 1, "Old", 0x188);
    throw(&mut script, 2 * MS, "System.Exception", "", 0);
    body(&mut script, 3 * MS, 1, 1, "New", 0x188);
    let stacks = script.snapshot().exceptions.stacks;
    let tree: Vec<_> = stacks.of(None).call_tree(SampleCount::all, 100).into_iter().map(|node| node.name).collect();
    assert_eq!(tree, ["N.T.Old"]);
}

#[test]
fn jit_time_excludes_nested_compilations() {
    let mut script = Script::new();
    begin(&mut script, 0, 1, 1);
    begin(&mut script, 2 * MS, 1, 2);
    begin(&mut script, 3 * MS, 9, 3);
    body(&mut script, 5 * MS, 1, 2, "Inner", 0x188);
    body(&mut script, 10 * MS, 1, 1, "Outer", 0x208);
    body(&mut script, 11 * MS, 1, 4, "Ready", 0x100);
    script.runtime(144, 1, 12 * MS, 1, Bytes::default().u64(4).u64(1).u64(4000).u32(100).u32(4).u32(0x100));
    script.runtime(283, 0, 20 * MS, 5, Bytes::default().u16(0).u32(7));
    script.runtime(284, 0, 26 * MS, 5, Bytes::default().u16(0).u32(1).u32(6));
    let jit = script.snapshot().jit;
    assert_eq!((jit.bodies, jit.jitted, jit.unloaded, jit.background), (3, 2, 1, Some((6_000_000, 1))));
    assert_eq!(
        jit.by_tier.iter().map(|(tier, compiled)| (*tier, compiled.bodies, compiled.code_bytes)).collect::<Vec<_>>(),
        [(Tier::Tier0, 1, 100), (Tier::Tier1, 1, 100), (Tier::ReadyToRun, 1, 100)]
    );
    let time = jit.time.unwrap();
    assert_eq!((time.count, time.total_ns, time.il_bytes), (2, 10_000_000, 20));
    let slowest: Vec<_> = time.slowest.iter().map(|slow| (slow.name.as_str(), slow.time_ns, slow.tier)).collect();
    assert_eq!(slowest, [("N.T.Outer", 7_000_000, Tier::Tier1), ("N.T.Inner", 3_000_000, Tier::Tier0)]);
}

#[test]
fn compilation_whose_end_may_be_lost_has_no_time() {
    let mut script = Script::new();
    begin(&mut script, 0, 1, 1);
    script.lose(1, 2);
    body(&mut script, 5000 * MS, 1, 1, "M", 0x188);
    let jit = script.snapshot().jit;
    assert_eq!((jit.jitted, jit.time.map(|time| time.total_ns)), (1, None));
}

/// The first events of a session are not typical.
#[test]
fn usual_rate_of_exceptions_is_known_after_some_time() {
    let usual = |seconds: i64| {
        let mut script = Script::new();
        (0..=seconds).for_each(|second| throw(&mut script, second * 1000 * MS, "System.Exception", "", 0));
        script.snapshot().exceptions.previous_rate
    };
    assert_eq!((usual(39), usual(60)), (None, Some(1.0)));
}

#[test]
fn assembly_loads_unloads_and_failures_are_counted() {
    let assembly = |id, flags, name| Bytes::default().u64(id).u64(0).u64(0).u32(flags).text(name).u16(0);
    let search =
        |name, found| Bytes::default().u16(0).text(name).text("").text("App").text("").text("").u32(found).text("").text("").u32(0);
    let mut script = Script::new();
    script.runtime(154, 1, MS, 1, assembly(1, 0, "B, Version=1.0.0.0")).runtime(154, 1, MS, 1, assembly(2, 2, "A")).runtime(
        155,
        1,
        MS,
        1,
        assembly(9, 0, ""),
    );
    script.runtime(291, 0, MS, 1, search("B", 1)).runtime(291, 0, 2 * MS, 1, search("A.resources", 0));
    let rundown = Metadata { provider: RUNDOWN.into(), event_id: 156, version: 1, ..Metadata::default() };
    script.event(rundown.clone(), 5 * MS, 1, 1, assembly(3, 0, "Core")).event(rundown, 5 * MS, 1, 1, assembly(1, 0, "B, Version=1.0.0.0"));
    let assemblies = script.snapshot().assemblies;
    let loaded: Vec<_> = assemblies.loaded.iter().map(|one| (one.full_name.as_str(), one.at, one.is_dynamic)).collect();
    assert_eq!(loaded, [("A", Some(MS), true), ("B, Version=1.0.0.0", Some(MS), false), ("Core", None, false)]);
    assert_eq!((assemblies.loads, assemblies.unloads, assemblies.searches, assemblies.failures), (2, 1, 2, 1));
    assert_eq!((assemblies.missing[0].name.as_str(), assemblies.missing[0].requested_by.as_str()), ("A.resources", "App"));
}

#[test]
fn logger_messages_are_decoded() {
    let fields = [
        ("Level", FieldType::Int32),
        ("FactoryID", FieldType::Int32),
        ("LoggerName", FieldType::String),
        ("EventId", FieldType::Int32),
        ("EventName", FieldType::String),
        ("FormattedMessage", FieldType::String),
    ];
    let mut script = Script::new();
    for (round, (level, logger, text)) in [(2, "Web", "hello"), (4, "Db", "broken"), (2, "Web", "bye")].into_iter().enumerate() {
        let payload = Bytes::default().u32(level).u32(1).text(logger).u32(42).text("").text(text);
        script.described("Microsoft-Extensions-Logging", "FormattedMessage", &fields, round as i64 * MS, payload);
    }
    let logs = script.snapshot().logs;
    assert_eq!(logs.by_level, [0, 0, 2, 0, 1, 0, 0]);
    let latest = &logs.recent[1];
    assert_eq!((latest.level, latest.logger.as_str(), latest.event_id, latest.text.as_str()), (4, "Db", 42, "broken"));
}

/// As .NET Core 3.x writes a message without a name: the name has no bytes, and the text takes its place.
#[test]
fn messages_without_an_event_name_keep_their_text() {
    let text = |names: &[&'static str]| names.iter().map(|name| (*name, FieldType::String)).collect::<Vec<_>>();
    let number = |name: &'static str| (name, FieldType::Int32);
    let head = || Bytes::default().u32(2).u32(1).text("Shop.Orders").u32(7);
    let fields = |texts: &[&'static str]| {
        let head = vec![number("Level"), number("FactoryID"), ("LoggerName", FieldType::String), number("EventId")];
        [head, text(texts)].concat()
    };
    let plain = fields(&["EventName", "FormattedMessage"]);
    let json = fields(&["EventName", "ExceptionJson", "ArgumentsJson", "FormattedMessage"]);
    let mut script = Script::new();
    const LOGGING: &str = "Microsoft-Extensions-Logging";
    let mut log = |at: i64, name: &str, fields: &[(&str, FieldType)], payload: Bytes| {
        script.described(LOGGING, name, fields, at * MS, payload);
    };
    log(1, "FormattedMessage", &plain, head().text("paid"));
    log(2, "FormattedMessage", &plain, head().text("Paying").text("is paid"));
    log(3, "FormattedMessage", &plain, head().text("").text("was paid"));
    log(4, "MessageJson", &json, head().text("{}").text("{\"id\":7}").text("json paid"));
    log(5, "MessageJson", &json, head().text("{\"Type\":\"Oops\"}").text("{}").text("not paid"));
    log(6, "MessageJson", &json, head().text("Paying").text("{\"Type\":\"Oops\"}").text("{}").text("never paid"));
    let logs = script.snapshot().logs;
    let reported: Vec<_> =
        logs.recent.iter().rev().map(|message| (message.text.as_str(), message.exception.as_str(), message.event_id)).collect();
    let oops = "{\"Type\":\"Oops\"}";
    let arguments: Vec<_> = logs.recent.iter().rev().map(|message| message.arguments.as_str()).collect();
    assert_eq!(arguments, ["", "", "", "{\"id\":7}", "{}", "{}"]);
    let expected =
        [("paid", "", 7), ("is paid", "", 7), ("was paid", "", 7), ("json paid", "", 7), ("not paid", oops, 7), ("never paid", oops, 7)];
    assert_eq!(reported, expected);
}

#[test]
fn exception_rates_include_the_previous_rate() {
    let throw = |script: &mut Script, at: i64, name: &str| {
        script.runtime(80, 1, at, 1, Bytes::default().text(name).text("").u64(0).u32(0).u16(0).u16(0));
    };
    let mut script = Script::new();
    (0..60).for_each(|second| throw(&mut script, second * 1000 * MS, "Rare"));
    (0..200).for_each(|tick| throw(&mut script, (50_000 + tick * 50) * MS, "Often"));
    let exceptions = script.snapshot().exceptions;
    let rates: Vec<_> = exceptions.types.iter().map(|kind| (kind.name.as_str(), kind.rate.round())).collect();
    assert_eq!(rates, [("Often", 19.0), ("Rare", 1.0)]);
    assert_eq!(exceptions.previous_rate.map(f64::round), Some(1.0));
    let mut young = Script::new();
    (0..20).for_each(|tick| throw(&mut young, tick * 100 * MS, "Often"));
    let exceptions = young.snapshot().exceptions;
    assert!((8.0..=13.0).contains(&exceptions.types[0].rate), "{}", exceptions.types[0].rate);
    assert_eq!(exceptions.previous_rate, None);
}

/// Events that are only counted, as analyses are too slow for them, include those of the rundown.
#[test]
fn counted_events_determine_the_end_of_a_recording() {
    #[derive(Default)]
    struct CountOnly(Live);
    impl Sink for CountOnly {
        forward_sink!(self => [self.0]: trace metadata);
        fn event(&mut self, event: &Event<'_>) {
            self.0.count_only(event);
        }
    }
    let mut script = Script::new();
    throw(&mut script, 1000 * MS, "A", "", 0);
    let rundown = Metadata { provider: RUNDOWN.into(), event_id: 146, ..Metadata::default() };
    script.event(rundown.clone(), 2000 * MS, 1, 1, Bytes::default()).event(rundown, 9000 * MS, 1, 1, Bytes::default());
    let mut counted = CountOnly::default();
    script.play_to(&mut counted);
    assert_eq!((counted.0.end(), counted.0.newest()), (2000 * MS, 9000 * MS));
    let snapshot = counted.0.snapshot(9000 * MS);
    let over_time: f64 = snapshot.rates.events.whole().1.iter().sum();
    assert_eq!((snapshot.totals.events, over_time), (3, 1.0), "the rundown is not part of the recorded activity");
}

/// The runtime announces the stop of each session to all of them.
#[test]
fn stop_of_another_session_is_not_the_end() {
    let played = |stops: &[i64], rundown: Option<i64>| {
        let mut script = Script::new();
        throw(&mut script, 500 * MS, "A", "", 0);
        for at in stops {
            let metadata = Metadata { provider: "Microsoft-DotNETCore-EventPipe".into(), event_id: 1, ..Metadata::default() };
            script.event(metadata, at * MS, 1, 1, Bytes::default());
        }
        if let Some(at) = rundown {
            let metadata = Metadata { provider: RUNDOWN.into(), event_id: 146, ..Metadata::default() };
            script.event(metadata, at * MS, 1, 1, Bytes::default());
        }
        let mut live = Live::default();
        script.play_to(&mut live);
        live
    };
    assert_eq!(played(&[1000], None).snapshot(2000 * MS).now, 2000 * MS, "this session may be running");
    assert_eq!(played(&[1000, 3000], None).end(), 3000 * MS);
    let stopped = played(&[1000, 3000], Some(3100));
    assert_eq!((stopped.end(), stopped.snapshot(9000 * MS).now), (3000 * MS, 3000 * MS));
}
