//! Heap contents, retention and comparison, in the dashboard and on the command line.

use std::os::unix::fs::PermissionsExt;

use serde_json::json;

use crate::support::runtimes;
use crate::support::screen::{CTRL_ENTER, ENTER, ESC};
use crate::support::{Invocation, Program, Screen, TIMEOUT, folder, gcdump, poll};

/// Returns a dashboard with this process selected.
pub(crate) fn dashboard(dn_top: Invocation, name: &str, program: &Program) -> Screen {
    let screen = dn_top.screen(120, 40);
    screen.wait_for("COMMAND");
    let title = format!("{name} {}", program.pid());
    screen.keys(&format!(":{title}"));
    screen.keys(ENTER);
    screen.wait_for(&format!(" {title} ─"));
    screen
}

/// Walks the heap, and waits until this text is shown.
fn walk(screen: &Screen, found: &str) -> String {
    screen.keys("M");
    screen.wait_for("The runtime does a full, blocking GC");
    screen.keys(&format!("y{ENTER}"));
    screen.wait_for(found)
}

#[test]
fn the_heap_is_walked_compared_and_written_from_the_dashboard() {
    runtimes::each(runtimes::with("known"), |runtime| {
        let mut program = runtime.program("known").start();
        program.carry_out("hold 1000");
        let mut screen = dashboard(Invocation::new(["--watch", "never"]), runtime.name_of("known"), &program);
        walk(&screen, "RETAINED");
        screen.keys("/type:Grain");
        screen.keys(ENTER);
        let row = |shown: &str, words: &[&str]| shown.lines().any(|line| words.iter().all(|word| line.contains(word)));
        screen.keys(ENTER);
        let shown = screen.wait_for("static variable held (Held[])");
        assert!(row(&shown, &["124 kB", "Grain[]", "known"]), "{runtime}:\n{shown}");
        for words in ["at least 124 kB would be freed", "→ Held[]", "→ Held", "→ Grain[]"] {
            assert!(shown.contains(words), "{runtime}, {words}:\n{shown}");
        }
        // Three times as many; the second walk is compared to the first.
        program.carry_out("hold 3000");
        walk(&screen, "372 kB");
        screen.keys("f");
        let shown = screen.wait_for("CHANGE");
        assert!(row(&shown, &["+248 kB", "124 kB", "372 kB", "Grain[]"]), "{runtime}:\n{shown}");
        screen.keys("o");
        screen.wait_for("Write the heap");
        screen.keys(CTRL_ENTER);
        screen.wait_for("heap file done");
        let files = std::fs::read_dir(screen.folder()).unwrap().map(|entry| entry.unwrap().path());
        let file = files.filter(|path| path.extension().is_some_and(|extension| extension == "gcdump")).last().unwrap();
        assert_eq!(file.metadata().unwrap().permissions().mode() & 0o777, 0o600, "{runtime}");
        let dump = gcdump::read(&std::fs::read(&file).unwrap());
        assert_eq!(dump.nodes.iter().filter(|node| node.kind == "Grain[]").count(), 3000, "{runtime}");
        // Opens the written file, and closes it again.
        screen.keys("L");
        screen.wait_for("Open a recorded file");
        screen.keys(ENTER);
        screen.wait_for("file written");
        let shown = screen.wait_for("static variable held (Held[])");
        assert!(row(&shown, &["372 kB", "Grain[]", "known"]), "{runtime}:\n{shown}");
        // Close the retention paths, then the details, then the file.
        screen.keys(ESC);
        screen.keys(ESC);
        screen.wait_for("Esc processes");
        screen.keys(ESC);
        screen.wait_for("walks it again");
        // Close the retention paths and the details, then quit.
        screen.keys("qqq");
        assert!(screen.wait_exit().success(), "{runtime}");
        assert!(program.answers(), "{runtime}");
    });
}

/// After a canceled walk, the process continues to run, and its heap can be walked again.
#[test]
fn a_walk_is_canceled() {
    runtimes::each_in_turn(runtimes::with("known"), |runtime| {
        let mut program = runtime.program("known").start();
        program.carry_out("hold 300000");
        let mut screen = dashboard(Invocation::new(["--watch", "never"]), runtime.name_of("known"), &program);
        screen.keys("M");
        screen.wait_for("The runtime does a full, blocking GC");
        screen.keys(&format!("y{ENTER}M"));
        screen.wait_for("heap walk canceled");
        assert!(program.answers(), "{runtime}");
        let shown = walk(&screen, "RETAINED");
        assert!(shown.contains("Grain[]"), "{runtime}:\n{shown}");
        screen.keys("qq");
        assert!(screen.wait_exit().success(), "{runtime}");
        assert!(poll(TIMEOUT, || program.answers().then_some(())).is_some(), "{runtime}");
    });
}

#[test]
fn unavailable_heap_walk_is_explained() {
    if let Some(runtime) = runtimes::native_aot() {
        let program = runtime.any().start();
        let screen = dashboard(Invocation::new(["--watch", "never"]), runtime.name_of("work"), &program);
        screen.keys("M");
        screen.wait_for("has no heap walk");
    }
    if let Some(runtime) = runtimes::net9() {
        let program = runtime.any().start();
        let screen = dashboard(Invocation::new(["--watch", "never", "--readonly"]), runtime.name_of("work"), &program);
        screen.keys("M");
        screen.wait_for("started with --readonly");
    }
}

#[test]
fn heap_command_shows_retained_sizes_and_paths() {
    runtimes::each(runtimes::with("known"), |runtime| {
        let mut program = runtime.program("known").start();
        program.carry_out("hold 1000");
        let place = folder();
        let pid = program.pid().to_string();
        let run = |words: &[&str]| Invocation::new([&["heap", &pid, "--yes"], words].concat()).current_dir(place.path()).run();
        let heap = run(&["--retained", "--paths", "Grain[]", "--json", "-n", "1000"]).json();
        let types = heap["types"].as_array().unwrap();
        let retained = |name: &str| types.iter().find(|named| named["name"] == name).unwrap()["retained_bytes"].as_u64();
        // An array of 8024 bytes, 1000 objects of 24 bytes, and for each an array of 124.
        assert_eq!([retained("Grain[]"), retained("Held"), retained("Held[]")], [Some(124_000), Some(148_000), Some(156_024)], "{runtime}");
        let order: Vec<_> = types.iter().filter_map(|named| named["retained_bytes"].as_u64()).collect();
        assert!(order.is_sorted_by(|a, b| a >= b), "{runtime}: {order:?}");
        let step = |name: &str| json!({"name": name, "objects": 1});
        assert_eq!(
            heap["paths"][0]["paths"][0],
            json!({
                "root": "static variable held (Held[])",
                "objects": 1000,
                "bytes": 124_000,
                "steps": [step("Held[]"), step("Held"), step("Grain[]")],
            }),
            "{runtime}"
        );
        let unreached = heap["unreached"].as_u64().unwrap();
        eprintln!("{runtime}: no root leads to {unreached} of {} objects", heap["objects"]);
        assert!(unreached * 10 < heap["objects"].as_u64().unwrap(), "{runtime}: {unreached}");
        let text = run(&["--retained", "--paths", "Held"]).stdout;
        for words in [
            "RETAINED",
            "148000        24000       1000  Held  [known]",
            "static variable held (Held[]): 24.0 kB in 1000 objects\n    -> Held[]\n    -> Held\n",
        ] {
            assert!(text.contains(words), "{runtime}, {words}:\n{text}");
        }
        let none = run(&["--paths", "NoSuchType"]);
        assert!(none.stderr.contains("is named NoSuchType"), "{runtime}: {none:?}");
        assert!(program.is_alive() && program.answers(), "{runtime}");
    });
}

/// No thread runs them, so that no stack shows them.
#[test]
fn heap_names_pending_async_methods() {
    runtimes::each(runtimes::with("known"), |runtime| {
        let mut program = runtime.program("known").start();
        program.carry_out("suspend 23");
        let heap = Invocation::new(["heap", &program.pid().to_string(), "--yes", "--json"]).run().json();
        let first = &heap["pending_async"][0];
        assert_eq!(json!([first["name"], first["calls"], heap["semaphore_waits"]]), json!(["Known.Suspend", 23, 23]), "{runtime}");
        let mut screen = dashboard(Invocation::new(["--watch", "never"]), runtime.name_of("known"), &program);
        walk(&screen, "pending async methods: 23 Known.Suspend; 23 waits for a SemaphoreSlim");
        screen.keys("qq");
        assert!(screen.wait_exit().success(), "{runtime}");
    });
}
