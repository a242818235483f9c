//! What occurs, one by one.

use super::Script;
use super::events::throw;
use super::gc::{end, heap, restart, start, suspend};
use super::script::{Bytes, MS};
use crate::analysis::{AllocationSample, FinishedActivity, Layer, Live, LogFilter, NewOccurrences, Occurrence, OccurrenceKind, Outcome};
use crate::nettrace::FieldType;

fn names(new: &NewOccurrences) -> Vec<String> {
    let name = |occurrence: &Occurrence| match occurrence {
        Occurrence::Collection(collection) => format!("{} {:?} {:?}", collection.number, collection.pause_ns, collection.heap_after),
        Occurrence::Exception(thrown) => thrown.message.clone(),
        Occurrence::Activity(finished) => finished.subject.clone(),
        Occurrence::Message(message) => message.text.clone(),
        Occurrence::Allocation(sample) => {
            let AllocationSample { at, thread, kind, bytes, object_bytes, type_name, frames } = sample;
            format!("{} {} {kind:?} {type_name} {bytes} {object_bytes:?} {frames:?}", at / MS, thread.thread)
        }
        Occurrence::LockWait(wait) => format!("{} {:?} {:?}", wait.wait_ns, wait.owner, wait.frames),
        Occurrence::Event(event, _) => event.title(),
    };
    new.occurrences.iter().map(name).collect()
}

#[test]
fn each_exception_is_returned_once_and_those_missed_are_counted() {
    let mut script = Script::new();
    (0..70).for_each(|number| throw(&mut script, number * MS, "A", &format!("number {number}"), 0));
    let live = script.play();
    let mut seen = 0;
    let new = live.occurrences(OccurrenceKind::Exceptions, false, &mut seen, false);
    assert_eq!((new.missed, new.occurrences.len(), seen), (6, 64, 70));
    assert_eq!((&*names(&new)[0], &*names(&new)[63]), ("number 6", "number 69"));
    assert_eq!(live.occurrences(OccurrenceKind::Exceptions, false, &mut seen, true), NewOccurrences::default());
    seen = 68;
    assert_eq!(names(&live.occurrences(OccurrenceKind::Exceptions, false, &mut seen, false)), ["number 68", "number 69"]);
}

/// The heap sizes and the end of the pause follow the end of a collection.
#[test]
fn collection_is_returned_once_it_is_whole() {
    let collect = |script: &mut Script, at: i64, number: u32, is_whole: bool| {
        suspend(script, at * MS, 1, 1);
        start(script, (at + 1) * MS, 1, number, 0, 0, 0);
        end(script, (at + 2) * MS, 1, number, 0);
        if is_whole {
            heap(script, (at + 2) * MS, 1, [1, 2, 3, 4, 5]);
            restart(script, (at + 3) * MS, 1);
        }
    };
    let mut script = Script::new();
    collect(&mut script, 10, 7, true);
    collect(&mut script, 20, 8, false);
    let live = script.play();
    let mut seen = 0;
    let whole = |number: u32| format!("{number} Some(3000000) Some(15)");
    assert_eq!(names(&live.occurrences(OccurrenceKind::Collections, false, &mut seen, false)), [whole(7)]);
    assert_eq!(names(&live.occurrences(OccurrenceKind::Collections, false, &mut seen, false)), [""; 0]);
    assert_eq!(names(&live.occurrences(OccurrenceKind::Collections, false, &mut seen, true)), ["8 None None"]);

    // The heap sizes are missing.
    let mut script = Script::new();
    collect(&mut script, 10, 7, false);
    restart(&mut script, 13 * MS, 1);
    let live = script.play();
    let found = [false, true].map(|is_over| names(&live.occurrences(OccurrenceKind::Collections, false, &mut 0, is_over)));
    assert_eq!(found, [vec![], vec!["7 Some(3000000) None".to_owned()]]);

    // What is missing of one was lost if a later one has it.
    let mut script = Script::new();
    collect(&mut script, 10, 7, false);
    restart(&mut script, 13 * MS, 1);
    collect(&mut script, 20, 8, true);
    let new = script.play().occurrences(OccurrenceKind::Collections, false, &mut 0, false);
    assert_eq!(names(&new), ["7 Some(3000000) None".to_owned(), whole(8)]);
}

#[test]
fn allocation_samples_are_returned_with_their_stacks() {
    let mut script = Script::new();
    script.method(0x1000, 0x100, "Shop", "Load").method(0x2000, 0x100, "Shop", "Main");
    let tick = |script: &mut Script, at: i64, kind: u32, amount: u32, name: &str, object: u64| {
        let payload = Bytes::default().u32(amount).u32(kind).u16(0).u64(amount.into()).u64(0).text(name).u32(0).u64(0).u64(object);
        script.runtime(10, 4, at, 5, payload);
    };
    script.stack(&[0x1004, 0x2008]);
    tick(&mut script, MS, 0, 106_496, "System.Collections.Generic.List`1[System.Int32]", 40);
    script.stack(&[]);
    tick(&mut script, 2 * MS, 1, 2_000_000, "System.Byte[]", 2_000_000);
    let mut live = Live::default().with_allocations();
    script.play_to(&mut live);
    let found = |with_stacks, seen| names(&live.occurrences(OccurrenceKind::Allocations, with_stacks, &mut { seen }, true));
    let list = r#"1 5 Small System.Collections.Generic.List<int> 106496 Some(40) ["Shop.Load", "Shop.Main"]"#;
    let bytes = "2 5 Large System.Byte[] 2000000 Some(2000000) []";
    assert_eq!(found(true, 0), [list, bytes]);
    assert_eq!(found(false, 1), [bytes]);
}

/// Shorter waits would displace those that matter.
#[test]
fn long_lock_waits_are_returned_with_the_stack_of_their_start() {
    let mut script = Script::new();
    script.method(0x1000, 0x100, "System.Threading.Monitor", "Enter").method(0x2000, 0x100, "Bank", "Move");
    let wait = |script: &mut Script, at: i64, thread, owner| {
        script.runtime(81, 2, at, thread, Bytes::default().u8(0).u16(0).u64(0x10c).u64(0).u64(owner));
    };
    let acquired = |script: &mut Script, at: i64, thread, milliseconds: f64| {
        script.runtime(91, 1, at, thread, Bytes::default().u8(0).u16(0).f64(milliseconds * 1e6));
    };
    script.stack(&[0x1004, 0x2008]);
    wait(&mut script, MS, 1, 7);
    wait(&mut script, 2 * MS, 2, 0);
    script.stack(&[]);
    acquired(&mut script, 11 * MS, 1, 10.0);
    acquired(&mut script, 12 * MS, 2, 9.9);
    wait(&mut script, 13 * MS, 2, 7);
    acquired(&mut script, 33 * MS, 2, 20.0);
    // Its start was lost.
    acquired(&mut script, 50 * MS, 3, 30.0);
    wait(&mut script, 51 * MS, 4, 7);
    let mut live = Live::default().with_lock_waits(10_000_000);
    script.play_to(&mut live);
    let found = |with_stacks, seen| names(&live.occurrences(OccurrenceKind::LockWaits, with_stacks, &mut { seen }, true));
    let stack = r#"["System.Threading.Monitor.Enter", "Bank.Move"]"#;
    assert_eq!(found(true, 0), [format!("10000000 Some(7) {stack}"), "20000000 Some(7) []".to_owned(), "30000000 None []".to_owned()]);
    assert_eq!(found(false, 1), ["20000000 Some(7) []", "30000000 None []"]);
    assert_eq!(live.snapshot(live.newest()).contention.count, 5, "all are counted");
}

#[test]
fn log_messages_are_kept_by_level_and_category() {
    let fields = [("Level", FieldType::Int32), ("LoggerName", FieldType::String), ("FormattedMessage", FieldType::String)];
    let kept = |level, categories: &[&str]| {
        let mut script = Script::new();
        let mut log = |at: i64, level: u32, logger: &str, text: &str| {
            script.described(
                "Microsoft-Extensions-Logging",
                "FormattedMessage",
                &fields,
                at,
                Bytes::default().u32(level).text(logger).text(text),
            );
        };
        log(0, 4, "Shop.Orders", "first");
        // More than are kept.
        (1..700).for_each(|at| log(at, 2, "Other", "noise"));
        log(700, 3, "shop.Stock", "second");
        log(701, 4, "Other", "third");
        let mut live = Live::default();
        live.set_log_filter(LogFilter { level, categories: categories.iter().map(|name| (*name).to_owned()).collect() });
        script.play_to(&mut live);
        assert_eq!(live.snapshot(live.newest()).logs.by_level, [0, 0, 699, 1, 2, 0, 0], "all are counted");
        names(&live.occurrences(OccurrenceKind::Messages, false, &mut 0, false))
    };
    assert_eq!(kept(4, &[]), ["first", "third"]);
    assert_eq!(kept(0, &["Shop", "None"]), ["first", "second"]);
    assert_eq!(kept(4, &["SHOP.O"]), ["first"]);
    assert_eq!(kept(0, &[]).len(), 500);
}

#[test]
fn request_is_returned_once_with_its_outcome() {
    const KESTREL: &str = "Microsoft-AspNetCore-Server-Kestrel";
    const HOSTING: &str = "Microsoft.AspNetCore.Hosting";
    let subject = [("method", FieldType::String), ("path", FieldType::String)];
    let reported = [("path", FieldType::String), ("method", FieldType::String)];
    let mut script = Script::new();
    script.activity(1).described(KESTREL, "RequestStart", &reported, MS, Bytes::default().text("/a").text("GET"));
    script.activity(2).described(HOSTING, "RequestStart", &subject, 2 * MS, Bytes::default().text("GET").text("/a"));
    script.activity(3).described("System.Net.Sockets", "ConnectStart", &[], 2 * MS, Bytes::default());
    script.activity(3).described("System.Net.Sockets", "ConnectStop", &[], 3 * MS, Bytes::default());
    script.activity(2).described(HOSTING, "UnhandledException", &[], 4 * MS, Bytes::default());
    script.activity(2).described(HOSTING, "RequestStop", &[], 5 * MS, Bytes::default());
    script.activity(1).described(KESTREL, "RequestStop", &reported, 6 * MS, Bytes::default().text("/a").text("GET"));
    let new = script.play().occurrences(OccurrenceKind::Activities, false, &mut 0, true);
    let expected = FinishedActivity {
        end: 5 * MS,
        duration_ns: 3_000_000,
        layer: Layer::Server,
        operation: "Request".to_owned(),
        subject: "GET /a".to_owned(),
        route: String::new(),
        outcome: Outcome::Failed,
    };
    assert_eq!(new, NewOccurrences { occurrences: vec![Occurrence::Activity(expected)], missed: 0 });
}
