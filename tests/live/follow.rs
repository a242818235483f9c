//! `--follow`: what occurs in a process appears while it runs, one line each.

use std::io::Write;
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::requests::serve;
use crate::support::runtimes::{self, Runtime};
use crate::support::{Invocation, Running, Signal};

pub(crate) fn follow(arguments: &[&str]) -> Running {
    let running = Invocation::new(arguments).start();
    running.wait_for_stderr("following ");
    running
}

/// Waits until the command, which continues, has printed this many lines.
fn lines(running: &Running, count: usize, runtime: &Runtime) -> Vec<String> {
    lines_with(running, "", count, runtime)
}

/// Waits until the command, which continues, has printed this many lines with a text, and returns them.
pub(crate) fn lines_with(running: &Running, text: &str, count: usize, runtime: &Runtime) -> Vec<String> {
    let deadline = Instant::now() + Duration::from_secs(20);
    loop {
        let lines: Vec<_> = running.stdout().lines().filter(|line| line.contains(text)).map(str::to_owned).collect();
        if lines.len() >= count {
            return lines;
        }
        assert!(Instant::now() < deadline, "{runtime}: {lines:#?} {}", running.stderr());
        std::thread::sleep(Duration::from_millis(50));
    }
}

fn parsed(lines: &[String]) -> Vec<Value> {
    let parsed: Vec<Value> = lines.iter().map(|line| serde_json::from_str(line).unwrap()).collect();
    parsed.iter().for_each(|line| assert!(line["schema"] == 1 && line["time"].as_str().unwrap().ends_with('Z'), "{line}"));
    parsed
}

#[test]
fn exceptions_are_followed_with_their_stacks() {
    runtimes::each(runtimes::with("known"), |runtime| {
        let mut program = runtime.program("known").start();
        let pid = program.pid().to_string();
        let [objects, text, without] = [&["--stacks", "--json"][..], &["--stacks"], &["--json"]]
            .map(|more| follow(&[&["exceptions", &pid, "--follow"], more].concat()));
        // The method that throws is compiled after the start, the one that calls it was compiled before.
        program.carry_out("throw 2");
        for thrown in parsed(&lines(&objects, 2, runtime)) {
            assert_eq!(thrown["frames"], serde_json::json!(["Known.Throw", "Known.Main"]), "{runtime}: {thrown}");
        }
        let lines = [lines(&text, 6, runtime), lines(&without, 2, runtime)];
        assert_eq!(lines[0][1..3], ["    at Known.Throw", "    at Known.Main"], "{runtime}: {lines:#?}");
        assert!(parsed(&lines[1]).iter().all(|thrown| thrown["frames"].is_null()), "{runtime}: {lines:#?}");
        for output in [objects, text, without].map(Running::interrupt) {
            assert_eq!((output.code, output.stderr.lines().count()), (130, 1), "{runtime}: {}", output.stderr);
        }
        assert!(program.answers(), "{runtime}");
    });
}

/// Each of these waits takes 20 ms, for a thread that sleeps with the lock.
#[test]
fn lock_waits_are_followed_with_their_stacks() {
    runtimes::each(runtimes::with("known"), |runtime| {
        let mut program = runtime.program("known").start();
        let pid = program.pid().to_string();
        let [objects, text, without, longer] = [&["--stacks", "--json"][..], &["--stacks"], &["--json"], &["--min-wait", "10s"]]
            .map(|more| follow(&[&["contention", &pid, "--follow"], more].concat()));
        program.carry_out("contend 2");
        // The runtime itself has waited when the other sessions were opened.
        for wait in parsed(&lines_with(&objects, "Known.Contend.", 2, runtime)) {
            // The methods of the lock come first, which some versions do not show.
            let frames = wait["frames"].as_array().unwrap();
            let own = frames.iter().find(|frame| !frame.as_str().unwrap().starts_with("System.Threading."));
            assert!(own.unwrap().as_str().unwrap().starts_with("Known.Contend."), "{runtime}: {wait}");
            assert!(wait["wait_ns"].as_u64() > Some(10_000_000), "{runtime}: {wait}");
            let owner = wait["owner_thread"].as_u64();
            assert_eq!(owner, (runtime.major() >= 8).then_some(program.pid().into()), "{runtime}: {wait}");
        }
        lines_with(&text, "    at Known.Contend.", 2, runtime);
        let is_whole = objects.stdout().contains(".StartCallback\"") || objects.stdout().contains(".ThreadStart\"");
        let is_explained = text.stderr().contains("only the method that takes a lock, without its callers");
        assert_eq!((is_whole, is_explained), if matches!(runtime.major(), 8 | 9) { (false, true) } else { (true, false) }, "{runtime}");
        assert!(text.stdout().lines().next().unwrap().contains("  waited "), "{runtime}: {}", text.stdout());
        assert!(parsed(&lines(&without, 2, runtime)).iter().all(|wait| wait["frames"].is_null()), "{runtime}");
        assert_eq!(longer.stdout(), "", "{runtime}");
        let ended = without.interrupt();
        assert_eq!((ended.code, ended.stderr.lines().count()), (130, 1), "{runtime}: {}", ended.stderr);
        program.carry_out("hold-lock 60000");
        std::thread::sleep(Duration::from_secs(1));
        let unfinished = longer.interrupt();
        assert!(unfinished.stderr.contains("1 thread still waiting for a lock"), "{runtime}: {}", unfinished.stderr);
        assert!([objects, text].map(|running| running.interrupt().code) == [130; 2] && program.answers(), "{runtime}");
    });
}

/// Each of these arrays is large, so that each has a sample.
#[test]
fn allocations_are_followed_with_their_stacks() {
    runtimes::each(runtimes::with("known"), |runtime| {
        let mut program = runtime.program("known").start();
        let pid = program.pid().to_string();
        let [objects, text] = [&["--stacks", "--json"][..], &[]].map(|more| follow(&[&["allocations", &pid, "--follow"], more].concat()));
        program.carry_out("churn 300");
        for sample in parsed(&lines_with(&objects, "Known.Churn", 3, runtime)) {
            assert_eq!(
                (&sample["heap"], &sample["type"], &sample["frames"][0]),
                (&"LOH".into(), &"System.Byte[]".into(), &"Known.Churn".into())
            );
            assert!((1_000_000..1_200_000).contains(&sample["bytes"].as_u64().unwrap()), "{runtime}: {sample}");
            let object = sample["object_bytes"].as_u64();
            assert_eq!(object.is_some(), runtime.major() >= 6, "{runtime}: {sample}");
            assert!(object.is_none_or(|bytes| (1_000_000..1_000_100).contains(&bytes)), "{runtime}: {sample}");
        }
        assert!(text.stderr().contains("each line is a sample: "), "{runtime}: {}", text.stderr());
        let line = &lines_with(&text, "  LOH  1.0 MB  System.Byte[]", 3, runtime)[0];
        assert_eq!(line.ends_with("Byte[] of 1.0 MB"), runtime.major() >= 6, "{runtime}: {line}");
        assert!([objects, text].map(|running| running.interrupt().code) == [130; 2] && program.answers(), "{runtime}");
    });
}

#[test]
fn provider_that_may_be_misspelled_is_reported() {
    const WRONG: &str = "Microsoft-Windows-DotNETRuntme";
    const HINT: &str = "no event of Microsoft-Windows-DotNETRuntme in the first 5 s; did you mean Microsoft-Windows-DotNETRuntime?\n";
    let folder = tempfile::tempdir().unwrap();
    runtimes::each(runtimes::with("known"), |runtime| {
        let mut program = runtime.program("known").start();
        let pid = program.pid().to_string();
        let wait = format!("{WRONG}/GCStart");
        let file = |name: &str| folder.path().join(format!("{name}-{pid}.nettrace")).to_str().unwrap().to_owned();
        let (own, dump) = (file("own"), file("dump").replace(".nettrace", ".dmp"));
        let commands: [&[&str]; 5] = [
            &["events", &pid, "--follow", "--json", "--provider", WRONG],
            &["trace", &pid, "--json", "--provider", WRONG, "-o", &file("wrong")],
            &["trace", &pid, "--json", "--profile", "gc-collect", "--stop-when", &wait, "-o", &file("when")],
            &["dump", &pid, "--when", &wait, "-o", &dump],
            // Unlike the others, this one exists.
            &["trace", &pid, "--json", "--provider", "DnTop-Known", "--provider", "System.Net.Http", "-o", &own],
        ];
        let [wrong @ .., right] = commands.map(|command| Invocation::new(command).start());
        right.wait_for_stderr("recording ");
        program.carry_out("flood 1");
        for running in wrong {
            running.wait_for_stderr(HINT);
            let output = running.interrupt();
            assert_eq!(output.stderr.matches(HINT).count(), 1, "{runtime}: {}", output.stderr);
        }
        let output = right.interrupt();
        assert!(!output.stderr.contains("in the first"), "{runtime}: {}", output.stderr);
        let document: Value = serde_json::from_str(&output.stdout).unwrap();
        assert_eq!(document["notes"].as_array().map(Vec::len), Some(1), "{runtime}: {document:#}");
        let notes = Invocation::new(["events", &pid, "--duration", "1s", "--provider", WRONG]).run().stderr;
        assert!(notes.contains(&format!("no event of {WRONG} was recorded; did you mean ")), "{runtime}: {notes}");
        assert!(program.answers(), "{runtime}");
    });
}

#[test]
fn events_are_followed_with_their_stacks() {
    runtimes::each(runtimes::with("known"), |runtime| {
        let mut program = runtime.program("known").start();
        let events = ["events", &program.pid().to_string(), "--follow", "--clr-events", "gc", "--filter", "GCTriggered", "--stacks"];
        let running = follow(&[&events[..], &["--json"]].concat());
        program.carry_out("collect 2 1");
        for event in parsed(&lines(&running, 2, runtime)) {
            let frames = event["frames"].as_array().unwrap();
            assert!(frames.contains(&"System.GC.Collect".into()) && frames.contains(&"Known.Main".into()), "{runtime}: {event}");
        }
        assert_eq!(running.interrupt().code, 130, "{runtime}");
    });
}

#[test]
fn missing_stacks_of_native_aot_are_explained() {
    let Some(aot) = runtimes::native_aot() else { return };
    let program = aot.any().start();
    let follow = |command: &str| follow(&[command, &program.pid().to_string(), "--follow", "--stacks", "--json"]);
    let running = follow("exceptions");
    let thrown = parsed(&lines(&running, 1, &aot));
    assert!(thrown[0]["frames"].is_null() && running.stderr().contains("sends no stacks"), "{thrown:?} {}", running.stderr());
    assert_eq!(running.interrupt().code, 130);
    let locks = follow("contention");
    locks.wait_for_stderr("NativeAOT before .NET 9 only counts lock contention");
    assert_eq!(locks.interrupt().code, 130);
}

#[test]
fn result_that_is_not_read_does_not_outlive_a_signal() {
    runtimes::each(runtimes::with("known"), |runtime| {
        let mut program = runtime.program("known").start();
        let (_reader, mut writer) = std::io::pipe().unwrap();
        // The rest of the pipe's 64 KiB is too small for the result.
        writer.write_all(&[b' '; 60 << 10]).unwrap();
        let arguments = ["gc", &*program.pid().to_string(), "--json", "-n", "100", "--duration", "3s"];
        let mut running = Invocation::new(arguments).stdout(writer).start();
        std::thread::sleep(Duration::from_secs(1));
        program.carry_out("collect 60 2");
        std::thread::sleep(Duration::from_secs(5));
        assert!(running.is_alive(), "{runtime}: {}", running.stderr());
        running.signal(Signal::TERM);
        assert_eq!(running.wait().code, 130, "{runtime}");
        assert!(program.answers(), "{runtime}");
    });
}

#[test]
fn collections_and_exceptions_appear_as_they_occur() {
    runtimes::each(runtimes::with("known"), |runtime| {
        let mut program = runtime.program("known").start();
        let pid = program.pid().to_string();
        let [collections, exceptions] = [follow(&["gc", &pid, "--follow", "--json"]), follow(&["exceptions", &pid, "-f"])];
        program.carry_out("collect 3 2");
        for collection in parsed(&lines(&collections, 3, runtime)) {
            assert_eq!((&collection["generation"], &collection["reason"]), (&2.into(), &"Induced".into()), "{runtime}: {collection}");
            assert!(collection["pause_ns"].as_u64() > Some(0) && collection["after_bytes"].as_u64() > Some(0), "{runtime}: {collection}");
        }
        program.carry_out("throw 2");
        let thrown = lines(&exceptions, 2, runtime);
        assert!(thrown[0].ends_with("  System.InvalidOperationException: number 0"), "{runtime}: {thrown:#?}");
        assert!(thrown[1].ends_with("  System.InvalidOperationException: number 1"), "{runtime}: {thrown:#?}");
        // Those that are too many to show are counted.
        program.carry_out("throw 20000");
        let output = exceptions.interrupt();
        let missed = output.stdout.lines().filter_map(|line| line.strip_prefix('(')?.strip_suffix(" more: too many to show)"));
        let missed: usize = missed.map(|count| count.parse::<usize>().unwrap()).sum();
        let shown = output.stdout.lines().filter(|line| line.contains("InvalidOperationException")).count();
        assert_eq!((output.code, missed + shown), (130, 20_002), "{runtime}: {}", output.stderr);
        assert_eq!(collections.interrupt().code, 130, "{runtime}");
        assert!(program.is_alive() && program.answers(), "{runtime}");
    });
}

#[test]
fn log_messages_have_the_level_and_category_that_were_asked_for() {
    runtimes::each(runtimes::with("web"), |runtime| {
        let (server, url) = serve(runtime);
        let mut client = runtime.program("fetch").start();
        let pid = server.pid().to_string();
        let logs = |more: &[&str]| follow(&[&["logs", &pid, "--follow"], more].concat());
        let orders = logs(&["--level", "trace", "--category", "Orders", "--category", "microsoft.AspNetCore.Routing*", "--json"]);
        client.carry_out(&format!("get 1 {url}/orders/7"));
        let found = parsed(&lines(&orders, 3, runtime));
        let begins = |of: &str| found.iter().all(|message| message["logger"].as_str().unwrap().starts_with(of));
        assert!(begins("Microsoft.AspNetCore.Routing"), "{runtime}: {found:#?}");
        assert!(found.iter().any(|message| message["level"] == "trace" || message["level"] == "debug"), "{runtime}: {found:#?}");
        orders.interrupt();

        let errors = logs(&["--level", "error"]);
        client.carry_out(&format!("get 1 {url}/orders/7"));
        client.carry_out(&format!("get 1 {url}/throw"));
        let found = lines(&errors, 3, runtime);
        assert!(found[0].contains("  error     Microsoft.AspNetCore.Server.Kestrel: Connection id "), "{runtime}: {found:#?}");
        assert_eq!(found[1], "    System.InvalidOperationException: as it was asked to", "{runtime}");
        assert!(found[2].starts_with("       at Web.Answer("), "{runtime}: {found:#?}");
        errors.interrupt();

        // The runtime sends the messages of both to both.
        let (all, usual) = (logs(&["--level", "debug"]), logs(&["--json"]));
        client.carry_out(&format!("get 1 {url}/orders/7"));
        assert!(lines(&all, 8, runtime).iter().any(|line| line.contains("  debug ")), "{runtime}");
        let found = parsed(&lines(&usual, 2, runtime));
        assert!(found.iter().all(|message| message["level"] == "info"), "{runtime}: {found:#?}");
        all.interrupt();
        usual.interrupt();
        assert!(server.answers(), "{runtime}");
    });
}

#[test]
fn requests_and_selected_events_appear_as_they_occur() {
    runtimes::each(runtimes::with("web"), |runtime| {
        let (server, url) = serve(runtime);
        let mut client = runtime.program("fetch").start();
        let pid = server.pid().to_string();
        let requests = follow(&["http", &pid, "--follow", "--json"]);
        let events = follow(&["events", &pid, "--follow", "--provider", "Microsoft.AspNetCore.Hosting", "--filter", "request !stop"]);
        client.carry_out(&format!("get 2 {url}/status/500"));
        client.carry_out(&format!("get 1 {url}/orders/0"));
        for (request, (subject, route, outcome, failed)) in parsed(&lines(&requests, 3, runtime)).iter().zip([
            ("GET /status/500", Value::Null, "500", true),
            ("GET /status/500", Value::Null, "500", true),
            ("GET /orders/0", "GET /orders/{id}".into(), "404", false),
        ]) {
            let found = ["subject", "route", "outcome", "direction", "failed"].map(|name| request[name].clone());
            assert_eq!(found, [subject.into(), route, outcome.into(), "in".into(), failed.into()], "{runtime}");
        }
        let started = lines(&events, 3, runtime);
        let is_start = |line: &String| line.contains("  Microsoft.AspNetCore.Hosting/RequestStart  method=GET path=/");
        assert!(started.iter().all(is_start), "{runtime}: {started:#?}");
        for running in [requests, events] {
            assert_eq!(running.interrupt().code, 130, "{runtime}");
        }
    });
}

/// A process has one filter of these events: it is removed with the session that set it last.
#[test]
fn status_that_is_lost_with_another_session_is_unknown() {
    runtimes::each(runtimes::with("web"), |runtime| {
        let (server, url) = serve(runtime);
        let mut client = runtime.program("fetch").start();
        let pid = server.pid().to_string();
        let table = Invocation::new(["http", &pid, "--duration", "1m", "--json"]).start();
        table.wait_for_stderr("recording ");
        let [requests, other] = [follow(&["http", &pid, "--follow", "--json"]), follow(&["http", &pid, "--follow"])];
        client.carry_out(&format!("get 1 {url}/status/500"));
        lines(&requests, 1, runtime);
        other.interrupt();
        client.carry_out(&format!("get 1 {url}/status/500"));
        let found = parsed(&lines(&requests, 2, runtime));
        let outcomes: Vec<_> = found.iter().map(|request| (&request["outcome"], &request["failed"])).collect();
        assert_eq!(outcomes, [(&"500".into(), &true.into()), (&"unknown".into(), &Value::Null)], "{runtime}: {found:#?}");
        let output = table.interrupt();
        assert!(output.stderr.contains("no status of 1 served request, not counted as failed: "), "{runtime}: {}", output.stderr);
        requests.interrupt();
    });
}

#[test]
fn following_ends_with_the_process_or_after_a_time() {
    runtimes::each(runtimes::with("known"), |runtime| {
        let program = runtime.program("known").start();
        let pid = program.pid().to_string();
        let timed = Invocation::new(["gc", &pid, "--follow", "--duration", "1s"]).run();
        assert_eq!((timed.code, &*timed.stdout, timed.stderr.lines().count()), (0, "", 1), "{runtime}: {}", timed.stderr);
        let commands = ["exceptions", "gc"];
        let running = commands.map(|command| follow(&[command, &pid, "--follow"]));
        drop(program);
        for (command, output) in commands.into_iter().zip(running.map(Running::wait)) {
            assert_eq!(output.code, 0, "{runtime}: {}", output.stderr);
            assert!(output.stderr.contains(" ended, or closed the session\n"), "{runtime}: {}", output.stderr);
            let has_advice = output.stderr.contains("an unhandled exception is not shown");
            assert_eq!(has_advice, command == "exceptions", "{runtime}: {}", output.stderr);
        }
        let mut program = runtime.program("known").start();
        let running = follow(&["exceptions", &program.pid().to_string(), "--follow"]);
        assert!(program.finish().success(), "{runtime}");
        let output = running.wait();
        assert_eq!(output.code, 0, "{runtime}: {}", output.stderr);
        // A busy runtime exits before it has ended its stream.
        assert!(output.stderr.contains("(known) ended"), "{runtime}: {}", output.stderr);
    });
}

/// A reader that pauses, such as `less`, keeps neither the process from exiting nor dn-top from ending at a signal.
#[test]
fn reader_that_pauses_delays_neither_the_process_nor_a_signal() {
    runtimes::each(runtimes::with("known"), |runtime| {
        let mut program = runtime.program("known").start();
        let pid = &*program.pid().to_string();
        let start = |command: &[&str]| {
            let (reader, writer) = std::io::pipe().unwrap();
            let running = Invocation::new([&command[..1], &[pid], &command[1..]].concat()).stdout(writer).start();
            (running, reader)
        };
        const EVENTS: &[&str] = &["events", "--follow", "--provider", "DnTop-Known"];
        let ended_by_signal = start(EVENTS);
        let ended_by_exit = [start(EVENTS), start(&["counters", "--interval", "100ms", "--format", "json"])];
        [&ended_by_signal, &ended_by_exit[0]].iter().for_each(|(running, _)| running.wait_for_stderr("following "));
        // Much more than pipes and sockets hold.
        program.carry_out("flood 20000");
        std::thread::sleep(Duration::from_secs(8));
        ended_by_signal.0.signal(Signal::TERM);
        assert_eq!(ended_by_signal.0.wait().code, 130, "{runtime}");
        assert!(program.finish().success(), "{runtime}");
        // They wait until their output is read.
        std::thread::sleep(Duration::from_secs(1));
        for (mut running, _reader) in ended_by_exit {
            assert!(running.is_alive(), "{runtime}: {}", running.stderr());
            running.signal(Signal::TERM);
            assert_eq!(running.wait().code, 130, "{runtime}");
        }
    });
}
