//! `gc`, `exceptions` and the other analysis commands, on files and on processes.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use crate::requests::serve;
use crate::support::runtimes;
use crate::support::{Invocation, folder};
use crate::trace;

#[test]
fn file_and_live_analysis_agree() {
    runtimes::each(runtimes::with("known"), |runtime| {
        let (mut program, place) = (runtime.program("known").start(), folder());
        let (pid, file) = (program.pid().to_string(), place.path().join("a.nettrace"));
        let file = file.to_str().unwrap();
        let recording = Invocation::new(["trace", &pid, "--clr-events", "gc+exception", "-o", file]).start();
        let recorded = Invocation::new(["exceptions", &pid, "--duration", "1h", "--json"]).start();
        for running in [&recording, &recorded] {
            running.wait_for_stderr("recording ");
        }
        program.carry_out("collect 5 2");
        program.carry_out("throw 4");
        let [_, live] = [recording, recorded].map(|running| running.interrupt().stdout);
        let live: Value = serde_json::from_str(&live).unwrap();
        let analyzed = |name: &str| Invocation::new([name, file, "--json"]).run().json();
        let (gc, exceptions, events) = (analyzed("gc"), analyzed("exceptions"), analyzed("events"));
        assert!(gc["induced"].as_u64() >= Some(5) && gc["gen2"].as_u64() >= Some(5), "{runtime}: {gc}");
        assert!(gc["rows"][0]["generation"].is_u64() && gc["rows"].as_array().unwrap().len() >= 5, "{runtime}: {gc}");
        let sizes = ["gen0_size_bytes", "gen1_size_bytes", "gen2_size_bytes", "loh_bytes", "poh_bytes"].map(|part| gc[part].as_u64());
        assert_eq!(sizes.iter().flatten().sum::<u64>(), gc["heap_bytes"].as_u64().unwrap(), "{runtime}: {gc}");
        assert_eq!(sizes.map(|size| size.is_some()), [true, true, true, true, runtime.major() >= 5], "{runtime}: {gc}");
        assert!(gc["gc_handles"].as_u64() > Some(10) && gc["pinned_objects"].is_u64(), "{runtime}: {gc}");
        for found in [&exceptions, &live] {
            assert_eq!((&found["schema"], &found["complete"]), (&1.into(), &true.into()), "{runtime}: {found}");
            assert_eq!((&found["thrown"], &found["rows"][0]["count"]), (&4.into(), &4.into()), "{runtime}: {found}");
            let stack = &found["stacks"][0];
            assert_eq!(
                (&stack["count"], &stack["types"]),
                (&4.into(), &json!({ "System.InvalidOperationException": 4 })),
                "{runtime}: {found:#}"
            );
            assert_eq!((&stack["frames"][0], &stack["frames"][1]), (&"Known.Throw".into(), &"Known.Main".into()), "{runtime}: {found:#}");
        }
        assert!(events["events"].as_u64() >= Some(14), "{runtime}: {events}");
        for name in ["allocations", "contention", "jit", "http", "logs"] {
            let output = Invocation::new([name, file, "-n", "3"]).run();
            assert_eq!(output.code, 0, "{runtime}: {name}: {}", output.stderr);
            assert!(output.stdout.starts_with("recorded 0:0"), "{runtime}: {name}: {}", output.stdout);
        }
        assert!(program.is_alive() && program.answers());
    });
}

/// In a convoy, each thread both holds the lock and waits for it.
#[test]
fn contention_has_the_threads_that_hold_the_lock() {
    runtimes::each(runtimes::since(8, runtimes::with("known")), |runtime| {
        let (mut program, place) = (runtime.program("known").start(), folder());
        let file = place.path().join("a.nettrace");
        let recording = trace::start(&program, &file, &["--profile", "contention"]);
        program.carry_out("convoy 3 500");
        recording.interrupt();
        let path = file.to_str().unwrap();
        let events = Invocation::new(["export", path, "--format", "csv", "-o", "-"]).run().stdout;
        let starts = events.lines().filter(|line| line.contains(",ContentionStart,"));
        let waiting: BTreeSet<_> = starts.map(|line| line.split(',').nth(2).unwrap().to_owned()).collect();
        let found = Invocation::new(["contention", path, "--json"]).run().json();
        let rows = found["rows"].as_array().unwrap();
        let row = rows.iter().find(|row| row["method"].to_string().contains("Convoy")).unwrap_or_else(|| panic!("{runtime}: {found:#}"));
        let owners = row["owner_threads"].as_object().unwrap();
        assert!(owners.len() >= 2 && owners.keys().all(|thread| waiting.contains(thread)), "{runtime}: {waiting:?} {row:#}");
        let waits = owners.values().map(|waits| waits.as_u64().unwrap()).sum::<u64>();
        assert!(waits > 0 && waits <= row["count"].as_u64().unwrap(), "{runtime}: {row:#}");
        let text = Invocation::new(["contention", path]).run().stdout;
        assert!(text.contains("OWNER THREADS"), "{runtime}: {text}");
    });
}

/// A log message has its text and its structured fields, with every version of the logging library.
#[test]
fn log_messages_have_their_fields() {
    runtimes::each(runtimes::with("web"), |runtime| {
        let (server, url) = serve(runtime);
        let (mut client, place) = (runtime.program("fetch").start(), folder());
        let file = place.path().join("a.nettrace");
        let recording = trace::start(&server, &file, &["--profile", "logs"]);
        client.carry_out(&format!("get 1 {url}/log/1"));
        recording.interrupt();
        let logs = Invocation::new(["logs", file.to_str().unwrap(), "-n", "500", "--json"]).run().json();
        let rows = logs["rows"].as_array().unwrap();
        let order = rows.iter().find(|row| row["logger"] == "Orders").unwrap_or_else(|| panic!("{runtime}: {logs:#}"));
        let fields: serde_json::Value = serde_json::from_str(order["arguments"].as_str().unwrap()).unwrap();
        let number = fields["Number"].as_str().unwrap();
        assert_eq!(order["message"], format!("Order {number} was not found"), "{runtime}: {order:#}");
        assert_eq!(fields["{OriginalFormat}"], "Order {Number} was not found", "{runtime}: {order:#}");
        assert!(server.answers());
    });
}
