//! Display of processes in the dashboard that are watched but not recorded.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use crate::requests::serve;
use crate::slowdown::config_without_cpu_wait;
use crate::support::runtimes;
use crate::support::screen::{ENTER, Screen, ctrl};
use crate::support::{Invocation, Program, TIMEOUT, poll};
use crate::watching::sessions;

/// Returns a dashboard that shows only this program.
pub(crate) fn dashboard(program: &Program, options: &[&str], columns: u16, rows: u16) -> Screen {
    Invocation::new([options, &["--filter", &format!("pid:{}", program.pid())]].concat()).screen(columns, rows)
}

/// The same, with the details of the program open.
fn details(program: &Program) -> Screen {
    let screen = dashboard(program, &[], 120, 40);
    screen.wait_for("GC heap ");
    screen.keys(ENTER);
    screen.wait_for("Esc back");
    screen
}

/// Panics unless all sessions have ended, and the program is not affected.
fn assert_unaffected(program: &mut Program) {
    let gone = poll(TIMEOUT, || (sessions(program) == 0).then_some(()));
    assert!(gone.is_some(), "{} sessions stay", sessions(program));
    assert!(program.is_alive() && program.answers());
}

#[test]
fn watched_process_is_shown_and_left_unchanged() {
    runtimes::each(runtimes::all(), |runtime| {
        for leave in ["q", &ctrl('c')] {
            let mut program = runtime.any().start();
            let pid = program.pid().to_string();
            let mut screen = dashboard(&program, &["--watch", "never"], 160, 40);
            let row =
                |shown: &str| shown.lines().find(|line| line.contains(&format!(" {pid} {} ", runtime.name_of("work")))).map(str::to_owned);
            screen.wait_until("its row", |shown| row(shown).is_some_and(|row| row.contains(runtime.version) && row.contains("● running")));
            screen.keys("w");
            screen.wait_until("its figures", |shown| {
                shown.contains("EXC/S")
                    && row(shown).is_some_and(|row| row.contains("◎ watched") || row.contains("! "))
                    && !row(shown).unwrap().contains('–')
            });
            screen.keys(leave);
            assert!(screen.wait_exit().success());
            screen.assert_restored();
            assert_unaffected(&mut program);
        }
    });
}

/// The first screen has the figures of the selected process, for every runtime, and the program is not affected afterwards.
#[test]
fn overview_has_figures_without_key_press() {
    runtimes::each(runtimes::all(), |runtime| {
        let mut program = runtime.any().start();
        let home = config_without_cpu_wait();
        let mut screen =
            Invocation::new(["--filter", &format!("pid:{}", program.pid())]).env("XDG_CONFIG_HOME", home.path()).screen(120, 40);
        // Titles followed by their newest values.
        let graph =
            |shown: &str, title: &str| shown.split_once(title).is_some_and(|(_, value)| value.starts_with(|c: char| c.is_ascii_digit()));
        let graphs = ["CPU ", "GC heap ", "Time in GC ", "Allocation rate ", "Exceptions ", "Thread pool queue ", "Lock contention "];
        for title in graphs {
            screen.wait_until(title, |shown| graph(shown, title));
        }
        screen.wait_for("GC pauses ");
        screen.wait_until("findings", |shown| shown.contains("no findings") || shown.contains("/s exceptions"));
        // One session, and no row that shows more than "running".
        // A runtime ends a session whose connection was closed at its next event.
        let one = poll(TIMEOUT, || (sessions(&program) <= 1).then_some(()));
        assert!(one.is_some(), "{} sessions", sessions(&program));
        assert!(!screen.contents().contains("◎ watched"));
        screen.quit();
        assert_unaffected(&mut program);
    });
}

/// The tabs of a process that was not recorded, for every runtime.
#[test]
fn tabs_have_figures_without_recording() {
    runtimes::each(runtimes::all(), |runtime| {
        let mut program = runtime.any().start();
        let pid = program.pid().to_string();
        let mut screen = details(&program);
        for (tab, shown) in [
            ("4", &["Enter records pauses", "Time in GC ", "COLLECTIONS", "gen 2", "LOH"][..]),
            ("5", &["Enter records types, messages and stacks", "Exceptions "]),
            ("6", &["Enter records locks", "Thread pool queue ", "STATE", "sleeping", ".NET"]),
        ] {
            screen.keys(tab);
            for text in shown {
                // 3.1 does not name its threads.
                if runtime.major() > 3 || *text != ".NET" {
                    screen.wait_for(text);
                }
            }
        }
        // The main thread, whose ID is the PID, has been sampled twice.
        let main = |shown: &str| {
            let line = shown.lines().find(|line| line.contains(&format!(" {pid} ")) && line.contains("ing "))?.to_owned();
            line.trim_start_matches(['│', ' ']).split_whitespace().next()?.parse::<f64>().ok()
        };
        screen.wait_until("its share of a core", |shown| main(shown).is_some());
        // HTTP, Logs, JIT, Assemblies.
        screen.keys("9\t\t\t");
        screen.wait_for("Enter records methods and tiers");
        if runtime.major() > 5 {
            screen.wait_for("JIT-compiled ");
            screen.wait_for("Time in JIT ");
        } else {
            screen.wait_for(".NET Core 3.1 has no JIT counters.");
        }
        screen.keys("\t");
        screen.wait_for(" System.Private.CoreLib.dll ");
        screen.wait_for(" work.dll ");
        screen.keys("5");
        screen.wait_for("Enter records types");
        screen.keys(ENTER);
        screen.wait_for("◉ recording");
        screen.keys("9\t\t\t");
        screen.wait_for("Not in this recording: T, then profile startup, records it.");
        if runtime.major() > 5 {
            screen.wait_for("JIT-compiled ");
        }
        screen.keys("\t");
        screen.wait_for("Not in this recording: T, then profile dotnet-common, records it.");
        screen.wait_for(" System.Private.CoreLib.dll ");
        screen.keys("q");
        screen.wait_for("Enter details");
        screen.keys("t");
        screen.wait_for("✓ done");
        screen.quit();
        assert!(program.is_alive() && program.answers());
    });
}

/// Generation sizes are those after a collection, and unknown before the first, for which the runtime publishes 0.
#[test]
fn generation_sizes_are_unknown_before_first_gc() {
    runtimes::each(runtimes::with("known"), |runtime| {
        let mut program = runtime.program("known").start();
        let mut screen = details(&program);
        screen.keys("4");
        let size = |shown: &str| {
            let row = |line: &str| {
                let mut words = line.split_whitespace().skip_while(|word| *word == "│");
                (words.next() == Some("gen") && words.next() == Some("2")).then(|| words.next().unwrap_or_default().to_owned())
            };
            shown.lines().find_map(row)
        };
        let shown = screen.wait_until("no size", |shown| size(shown).as_deref() == Some("–"));
        assert!(!shown.contains("committed") && !shown.contains("fragmentation"), "{runtime}: {shown}");
        program.carry_out("collect 2 2");
        screen.wait_until("a size", |shown| size(shown).is_some_and(|size| size.parse::<f64>().is_ok_and(|size| size > 0.0)));
        screen.keys("q");
        screen.quit();
        assert!(program.answers(), "{runtime}");
    });
}

/// Requests, failed requests, and durations, as far as each runtime publishes them.
#[test]
fn request_durations_are_shown_if_published() {
    runtimes::each(runtimes::with("web"), |runtime| {
        let (server, url) = serve(runtime);
        let address = url.strip_prefix("http://").unwrap().to_owned();
        let mut screen = dashboard(&server, &[], 160, 50);
        screen.wait_for("Requests ");
        let over = Arc::new(std::sync::atomic::AtomicBool::new(false));
        let client = std::thread::spawn({
            let over = Arc::clone(&over);
            move || {
                for number in 0.. {
                    let path = if number % 4 == 0 { "status/503" } else { "a" };
                    let mut stream = std::net::TcpStream::connect(&address).unwrap();
                    std::io::Write::write_all(&mut stream, format!("GET /{path} HTTP/1.0\r\n\r\n").as_bytes()).unwrap();
                    std::io::read_to_string(stream).unwrap();
                    if over.load(std::sync::atomic::Ordering::Relaxed) {
                        return;
                    }
                    std::thread::sleep(Duration::from_millis(5));
                }
            }
        });
        let has = |shown: &str, title: &str, words: &[&str]| {
            shown.split_once(title).is_some_and(|(_, rest)| {
                let line = rest.lines().next().unwrap_or_default();
                words.iter().all(|word| line.contains(word))
            })
        };
        screen.wait_until("failures", |shown| has(shown, "Requests ", &[" failed"]));
        if runtime.major() >= 8 {
            let shown = screen.wait_until("durations", |shown| has(shown, "p50/p95/p99 ", &["≈ ", "s, "]));
            assert!(!shown.contains("need .NET 8"), "{shown}");
        } else {
            let shown = screen.wait_until("why there are none", |shown| shown.contains("durations need .NET 8"));
            assert!(!shown.contains("p50/p95/p99"), "{shown}");
        }
        over.store(true, std::sync::atomic::Ordering::Relaxed);
        client.join().unwrap();
        screen.quit();
        assert!(server.answers(), "{runtime}");
    });
}

/// The dashboard continues when the watched process ends.
#[test]
fn automatically_watched_process_may_exit() {
    runtimes::each(runtimes::all(), |runtime| {
        let program = runtime.any().start();
        let mut screen = dashboard(&program, &[], 120, 40);
        screen.wait_for("GC heap ");
        drop(program);
        screen.wait_gone("GC heap ");
        screen.quit();
        screen.assert_restored();
    });
}

#[test]
fn watching_all_meters_needs_net9() {
    runtimes::each(runtimes::before(9, runtimes::all()), |runtime| {
        let mut program = runtime.any().start();
        let mut screen = dashboard(&program, &["--watch", "never"], 120, 40);
        screen.wait_for(runtime.version);
        screen.keys("w");
        screen.wait_for("◎ watched");
        screen.keys(ENTER);
        screen.wait_for("Esc back");
        screen.keys("9");
        screen.wait_for("- System.Runtime (");
        screen.keys("m");
        screen.wait_for(&format!("Watching all meters needs .NET 9; {} runs an older version.", runtime.name_of("work")));
        screen.keys("qq");
        assert!(screen.wait_exit().success());
        assert!(program.is_alive() && program.answers());
    });
}

#[test]
fn dashboard_shows_instrument_values() {
    runtimes::each(runtimes::since(9, runtimes::with("meters")), |runtime| {
        let mut program = runtime.program("meters").start();
        let pid = program.pid().to_string();
        let mut screen = dashboard(&program, &["--watch", "never"], 120, 40);
        screen.wait_until("its row", |shown| {
            shown.lines().any(|line| {
                line.contains(&format!(" {pid} {} ", runtime.name_of("meters")))
                    && line.contains(runtime.version)
                    && line.contains("● running")
            })
        });
        screen.keys("w");
        screen.wait_for("◎ watched");
        screen.keys(ENTER);
        screen.wait_for("Esc back");
        screen.keys("9");
        screen.wait_for("- System.Runtime (");
        screen.keys("m");
        screen.wait_for("- DnTop.Told (");
        screen.keys("/DnTop");
        screen.keys(ENTER);
        screen.wait_gone("System.Runtime");
        // Words after the name, starting with the value.
        let values_after = |shown: &str, name: &str| {
            let line = shown.lines().find(|line| line.trim_start_matches(['│', ' ']).starts_with(&format!("{name} ")))?.to_owned();
            Some(line.split_once(name)?.1.split_whitespace().map(str::to_owned).collect::<Vec<_>>())
        };
        let reaches = |name: &str, value: &str| {
            screen.wait_until(&format!("{name} {value}"), |shown| values_after(shown, name).is_some_and(|words| words[0] == value))
        };
        reaches("g", "42");
        // By then, the other instruments have a listener.
        reaches("level", "0");
        for command in ["count 7", "change 5", "change -3", "record 40 25", "gauge 17"] {
            program.carry_out(command);
        }
        for (name, value) in [("sold fruit=apple", "7"), ("sold fruit=pear", "14"), ("stock", "2"), ("level", "17")] {
            reaches(name, value);
        }
        assert_eq!(values_after(&screen.contents(), "sold fruit=pear").unwrap()[1], "piece");
        // The histogram's total is shown: its figures of the last second are already gone.
        screen.keys("G");
        for _ in 0..3 {
            screen.keys("k");
        }
        screen.wait_until("the histogram", |shown| shown.contains("(40 in all)") && shown.contains("(1.0 kB in all)"));
        // Its quantiles over time.
        screen.wait_for("p50/p95/p99 25 B, 25 B, 25 B");
        program.carry_out("count 3");
        reaches("sold fruit=apple", "10");
        screen.keys("m");
        screen.wait_gone("fruit=apple");
        screen.keys("q");
        screen.wait_for("Enter details");
        screen.quit();
        screen.assert_restored();
        assert!(program.is_alive() && program.answers());
    });
}

#[test]
fn counters_have_one_name_everywhere() {
    runtimes::each(runtimes::all(), |runtime| {
        let program = runtime.any().start();
        let pid = program.pid().to_string();
        let printed = |format: &str| {
            let words = ["counters", &pid, "--counters", r"EventCounters\System.Runtime", "--duration", "3s", "--format", format];
            let output = Invocation::new(words).run();
            assert_eq!(output.code, 0, "{runtime}: {}", output.stderr);
            output.stdout
        };
        // Without its unit in parentheses.
        let name = |text: &str| text.rsplit_once(" (").filter(|(_, unit)| unit.ends_with(')')).map_or(text, |(name, _)| name).to_owned();
        let text = printed("text");
        let listed: BTreeSet<_> =
            text.lines().filter_map(|line| line.trim_start().split_once("  ")).map(|(_, counter)| name(counter)).collect();
        let csv = printed("csv");
        let in_csv: BTreeSet<_> = csv.lines().skip(1).map(|line| name(line.split(',').nth(2).unwrap())).collect();
        assert!(listed.len() > 10 && listed == in_csv, "{runtime}: {listed:?} {in_csv:?}");
        let screen = dashboard(&program, &["--watch", "all"], 200, 60);
        screen.wait_for("GC heap ");
        screen.keys(&format!("{ENTER}9"));
        screen.wait_until("all counters", |shown| listed.iter().all(|name| shown.contains(name.as_str())));
    });
}
