//! The dashboard's forms, and stop conditions and flight recordings, on real programs.

use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::support::runtimes::{self, Runtime};
use crate::support::screen::{BACK_TAB, CTRL_ENTER, DOWN, END, ENTER, ESC, TAB, ctrl};
use crate::support::{Invocation, Program, Screen, Signal, TIMEOUT, folder, is_recording, poll};
use crate::trace::{self, assert_complete, stats};

const RUNTIME: &str = "Microsoft-Windows-DotNETRuntime";

/// Returns a dashboard that shows only this program, and selects it.
fn dashboard(runtime: &Runtime, program: &Program, name: &str) -> Screen {
    let screen = Invocation::new(["--filter", &program.pid().to_string()]).screen(120, 40);
    // The PID alone is also part of the program's path.
    screen.wait_for(&format!(".NET {}", runtime.version));
    screen.wait_for(&format!("{} {}", runtime.name_of(name), program.pid()));
    screen
}

fn count(stats: &Value, provider: &str, name: &str) -> u64 {
    let counts = stats["counts"].as_array().unwrap().iter();
    counts.filter(|count| count["provider"] == provider && count["name"] == name).filter_map(|count| count["count"].as_u64()).sum()
}

/// Returns the finished recording in a folder.
fn recording(screen: &Screen) -> PathBuf {
    let found = || {
        let mut files = fs::read_dir(screen.folder()).unwrap().map(|entry| entry.unwrap().path());
        files.find(|file| is_recording(file))
    };
    poll(TIMEOUT, found).unwrap_or_else(|| panic!("nothing was recorded:\n{}", screen.contents()))
}

#[test]
fn trace_form_records_same_as_command_line() {
    runtimes::each(runtimes::with("known"), |runtime| {
        let mut program = runtime.program("known").start();
        let screen = dashboard(runtime, &program, "known");
        let provider = format!("{RUNTIME}:exception:error");
        screen.keys("O");
        screen.wait_for("Record · known");
        screen.keys(&format!("{}{TAB}{provider}", ctrl('u')));
        let shown = screen.wait_for(":exception:error");
        assert!(shown.contains(&format!("dn-top trace {} --provider", program.pid())), "{shown}");
        screen.keys(CTRL_ENTER);
        // The session delivers events once its header has been received and the next request is answered.
        let began = |file: PathBuf| {
            file.extension().is_some_and(|extension| extension == "partial") && file.metadata().is_ok_and(|file| file.len() > 0)
        };
        let begun = || fs::read_dir(screen.folder()).unwrap().any(|entry| began(entry.unwrap().path())).then_some(());
        assert!(poll(TIMEOUT, begun).is_some(), "{}", screen.contents());
        assert!(program.answers());
        program.carry_out("throw 7");
        screen.keys("t");
        screen.wait_for("✓ done");
        let form = stats(&recording(&screen));

        let place = folder();
        let file = place.path().join("a.nettrace");
        let recording = trace::start(&program, &file, &["--provider", &provider]);
        program.carry_out("throw 7");
        trace::stop(recording, &file);
        let line = stats(&file);
        for document in [&form, &line] {
            assert_eq!((count(document, RUNTIME, "ExceptionThrown"), &document["complete"]), (7, &true.into()), "{document}");
        }
        let kinds = |document: &Value| {
            let of = |count: &Value| (count["provider"].as_str() == Some(RUNTIME)).then(|| count["name"].clone());
            document["counts"].as_array().unwrap().iter().filter_map(of).collect::<Vec<_>>()
        };
        assert_eq!(kinds(&form), kinds(&line));
    });
}

#[test]
fn stop_on_event_text_stops_recording() {
    runtimes::each(runtimes::with("known"), |runtime| {
        let mut program = runtime.program("known").start();
        let place = folder();
        let file = place.path().join("a.nettrace");
        let stop_on = format!("{RUNTIME}/ExceptionThrown:number 3");
        let running = trace::start(&program, &file, &["--clr-events", "exception", "--stop-on", &stop_on]);
        // Three with other messages, then one with this message.
        program.carry_out("throw 3");
        program.carry_out("throw 4");
        let output = running.wait();
        assert_eq!(output.code, 0, "{runtime}: {}", output.stderr);
        let result: Value = serde_json::from_str(&output.stdout).unwrap();
        assert_eq!(result["stopped_by"], "event", "{runtime}");
        assert_complete(&file, &result);
        assert_eq!(count(&stats(&file), RUNTIME, "ExceptionThrown"), 7, "{runtime}");
        assert!(program.answers(), "{runtime}");
    });
}

#[test]
fn stop_on_event_field_value_stops_recording() {
    runtimes::each(runtimes::with("known"), |runtime| {
        let mut program = runtime.program("known").start();
        let place = folder();
        let stop_on = format!("{RUNTIME}/GCEnd[Depth=2]");
        let mut running = trace::start(&program, &place.path().join("a.nettrace"), &["--clr-events", "gc", "--stop-on", &stop_on]);
        program.carry_out("collect 3 0");
        assert!(running.is_alive(), "{runtime}");
        program.carry_out("collect 1 2");
        let output = running.wait();
        assert_eq!(output.code, 0, "{runtime}: {}", output.stderr);
        let result: Value = serde_json::from_str(&output.stdout).unwrap();
        assert_eq!(result["stopped_by"], "event", "{runtime}");
    });
}

#[test]
fn flight_recorder_keeps_newest_events() {
    runtimes::each(runtimes::with("known"), |runtime| {
        let mut program = runtime.program("known").start();
        let place = folder();
        let file = place.path().join("a.nettrace");
        let recording = trace::start(&program, &file, &["--clr-events", "exception", "--flight", "1MiB"]);
        program.carry_out("throw 20000");
        let recorded = trace::stop(recording, &file);
        assert!(recorded.stacks > 0 && recorded.rundown_events("MethodDCEnd") > 0, "{runtime}");
        let thrown = count(&stats(&file), RUNTIME, "ExceptionThrown");
        assert!((500..19_000).contains(&thrown), "{runtime}: {thrown}");
        let bytes = fs::read(&file).unwrap();
        let holds = |text: &str| {
            let text: Vec<u8> = format!("{text}\0").encode_utf16().flat_map(u16::to_le_bytes).collect();
            bytes.windows(text.len()).any(|window| window == text)
        };
        assert!(holds("number 19999") && !holds("number 7"), "{runtime}");
        assert!(program.answers(), "{runtime}");
    });
}

#[test]
fn flight_recorder_segments_survive_kill() {
    runtimes::each(runtimes::with("known"), |runtime| {
        let mut program = runtime.program("known").start();
        let place = folder();
        let file = place.path().join("a.nettrace");
        let running = trace::start(&program, &file, &["--clr-events", "exception", "--flight", "1MiB"]);
        program.carry_out("throw 20000");
        let segments = || {
            let files = fs::read_dir(place.path()).unwrap().map(|entry| entry.unwrap().path());
            let mut files: Vec<_> = files.filter(|file| file.to_str().unwrap().contains(".partial.0")).collect();
            files.sort();
            files
        };
        // The first segments have been dropped.
        let full = || (segments().len() >= 8 && !place.path().join("a.nettrace.partial.0001").exists()).then_some(());
        poll(TIMEOUT, full).unwrap_or_else(|| panic!("{:?}\n{}", segments(), running.stderr()));
        running.signal(Signal::KILL);
        running.wait();
        let left = segments();
        assert!((8..=20).contains(&left.len()), "{left:?}");
        // It may have been killed while writing the newest segment.
        for segment in &left[..left.len() - 1] {
            let document = stats(segment);
            assert!(
                document["complete"] == true && count(&document, RUNTIME, "ExceptionThrown") > 0,
                "{}: {document:#}",
                segment.display()
            );
        }
        assert!(program.answers());
        let partial = place.path().join("a.nettrace.partial");
        let advice = format!("is empty; if it is of a flight recorder, `dn-top salvage {}.*` joins", partial.display());
        Invocation::new([OsStr::new("stats"), partial.as_os_str()]).run().assert_refused(1, &advice);
        // They are joined into one file, in whatever order they are given; omitted segments are reported.
        let join = |segments: &[&PathBuf], out: &str| {
            let out = place.path().join(out);
            let words =
                ["salvage".as_ref(), "-o".as_ref(), out.as_os_str()].into_iter().chain(segments.iter().map(|path| path.as_os_str()));
            let output = Invocation::new(words.collect::<Vec<_>>()).run();
            assert_eq!(output.code, 0, "{output:?}");
            (stats(&out), output.stderr)
        };
        let thrown = |document: &Value| count(document, RUNTIME, "ExceptionThrown");
        let whole = &left[..left.len() - 1];
        let (document, _) = join(&whole.iter().rev().collect::<Vec<_>>(), "joined.nettrace");
        assert_eq!(thrown(&document), whole.iter().map(|segment| thrown(&stats(segment))).sum::<u64>(), "{document:#}");
        assert_eq!(document["complete"], true, "{document:#}");
        let (document, words) = join(&[&left[0], &left[2]], "gap.nettrace");
        assert_eq!(thrown(&document), thrown(&stats(&left[0])) + thrown(&stats(&left[2])));
        assert!(words.contains("segments are missing"), "{words}");
    });
}

#[test]
fn a_variable_is_set_from_the_dashboard() {
    runtimes::each(runtimes::since(6, runtimes::with("known")), |runtime| {
        let program = runtime.program("known").start();
        let screen = dashboard(runtime, &program, "known");
        screen.keys("a");
        screen.wait_for("Actions on known");
        screen.keys(&DOWN.repeat(4));
        screen.keys(ENTER);
        screen.wait_for("Set a variable · known");
        screen.keys(&format!("DN_TOP_PROOF{TAB}from the form{TAB}y{ENTER}"));
        screen.wait_for("set variable done");
        let environment = Invocation::new(["env", &program.pid().to_string(), "--json"]).run().json();
        let found = environment["variables"].as_array().unwrap().iter().find(|variable| variable["name"] == "DN_TOP_PROOF");
        assert_eq!(found.unwrap()["value"], "from the form");
        assert!(program.answers());
    });
}

#[test]
fn form_records_tracepoints_or_shows_prerequisites() {
    // A new runtime supports it if the kernel does and we have permission.
    let data = Path::new("/sys/kernel/tracing/user_events_data");
    let possible = fs::File::options().read(true).write(true).open(data).is_ok();
    runtimes::each(runtimes::all(), |runtime| {
        let program = runtime.any().start();
        let screen = Invocation::new(["--filter", &program.pid().to_string()]).screen(120, 40);
        screen.wait_for(&format!(".NET {}", runtime.version));
        screen.keys("O");
        screen.wait_for("Record · ");
        screen.keys(&format!("{BACK_TAB}{BACK_TAB}dn_top_test"));
        screen.wait_for("--user-events dn_top_test");
        let old = runtime.major() < 10;
        if old {
            screen.wait_for("Tracepoints: the runtime is too old: it needs .NET 10.");
        }
        if !Path::new("/proc/sys/kernel/user_events_max").exists() {
            screen.wait_for("Tracepoints: not supported by this kernel: needs Linux 6.4 or newer");
        }
        screen.keys(CTRL_ENTER);
        if old || !possible {
            screen.wait_for("The prerequisites of tracepoints are missing.");
            screen.keys(ESC);
            screen.wait_gone("Record · ");
        } else {
            screen.wait_for("into the kernel");
            screen.wait_for("user_events:dn_top_test   session 0x");
            assert!(program.answers(), "others are served in the meantime");
            screen.keys("t");
            screen.wait_for("wrote to user_events:dn_top_test for");
        }
        assert!(!screen.contents().contains("1 recording"), "{}", screen.contents());
        assert!(program.answers(), "{runtime}");
    });
}

#[test]
fn a_program_is_run_and_recorded_from_the_dashboard() {
    runtimes::each(runtimes::since(5, runtimes::with("known")), |runtime| {
        let screen = Invocation::new(["--filter", "nothing is called this"]).screen(120, 40);
        screen.wait_for("No process matches");
        screen.keys("a");
        screen.wait_for("record it from its start");
        screen.keys(END);
        screen.keys(ENTER);
        screen.wait_for("Run a program");
        // It exits once its standard input is empty, which is at once.
        let launch = runtime.program("known");
        let words: Vec<_> = launch.words().iter().map(|word| word.to_str().unwrap()).collect();
        screen.keys(&format!("{}{TAB}{TAB}out.txt{TAB}y", words.join(" ")));
        screen.wait_for("Output of known (");
        screen.wait_for("│ ready ");
        screen.wait_for("It exited with 0");
        let file = recording(&screen);
        let document = stats(&file);
        // The first thing that a runtime does, and only once.
        assert_eq!(count(&document, RUNTIME, "AppDomainLoad"), 1, "{document:#}");
        assert!(screen.folder().join("out.txt").is_file());
    });
}
