//! Display of processes in the dashboard that are watched but not recorded.

use std::collections::BTreeSet;
use std::io::Write;
use std::net::TcpStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use tempfile::TempDir;

use crate::requests::serve;
use crate::slowdown::config_without_cpu_wait;
use crate::support::runtimes::{self, Runtime};
use crate::support::screen::{ENTER, Screen, ctrl};
use crate::support::{Invocation, Program, TIMEOUT, folder, poll};
use crate::watching::sessions;

/// Returns a dashboard that shows only this program.
fn dashboard(program: &Program, options: &[&str], columns: u16, rows: u16) -> Screen {
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
        assert!(sessions(&program) <= 1, "{} sessions", sessions(&program));
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
            screen.wait_for(".NET Core 3.1 and NativeAOT have no JIT counters.");
        }
        screen.keys("\t");
        screen.wait_for(" System.Private.CoreLib.dll ");
        screen.wait_for(" work.dll ");
        screen.keys("5");
        screen.wait_for("Enter records types");
        screen.keys(ENTER);
        screen.wait_for("◉ recording");
        screen.keys("9\t\t\t\t");
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

/// The first screen shows the cause, without a key press.
#[test]
fn overview_shows_health_issues() {
    let at_work: &[_] =
        &[("throw 100000000", "/s exceptions"), ("churn 60000", "/s gen 2 collections"), ("compile 3600000", " of a core is spent in JIT")];
    let in_locks: &[_] = &[("convoy 10 60000", " threads at a time wait for locks"), ("leak 100", "! gen 2 grew from ")];
    // In the second case, thread pool threads wait for tasks that need these threads themselves.
    let in_pools: &[_] =
        &[("occupy 2000 3000", " work items wait"), ("await 2000", " work items wait"), ("occupy 100 60000", ", none has completed for ")];
    let in_collections: &[_] = &[("induce 100000 100", "/s induced GCs"), ("fragment 2000", " of the GC heap is free: ")];
    // Growth is determined over 20 s.
    let in_threads: &[_] = &[("threads 3000 50", "threads outside the pool grew from ")];
    let in_files: &[_] = &[("open 3000 50", "open files grew from ")];
    let in_timers: &[_] = &[("timers 100000 10", "active timers grew from ")];
    let in_memory: &[_] = &[("allocate 100 1000", "memory outside the GC heap grew by ")];
    let in_finalizers: &[_] = &[("finalize 3000", "the finalizer thread is blocked or busy, ")];
    runtimes::each(runtimes::before(10, runtimes::since(9, runtimes::with("known"))), |runtime| {
        // Only the first ones use much CPU time.
        std::thread::scope(|scope| {
            for cases in [at_work, in_locks, in_pools, in_collections, in_threads, in_files, in_timers, in_memory, in_finalizers] {
                scope.spawn(|| cases.iter().for_each(|(command, finding)| assert_on_overview(runtime, command, finding)));
            }
        });
    });
}

fn assert_on_overview(runtime: &Runtime, command: &str, finding: &str) {
    let mut program = runtime.program("known").start();
    assert_eq!(program.line(), "ready");
    program.command(command);
    let mut screen = dashboard(&program, &[], 120, 40);
    let began = Instant::now();
    let line = |shown: &str| shown.lines().find(|line| line.contains("│ ! ") && line.contains(finding)).map(str::to_owned);
    // Growth of timers is determined over a minute.
    let shown = screen.try_wait_until(TIMEOUT * 2, |shown| line(shown).is_some());
    let shown = shown.unwrap_or_else(|shown| panic!("timed out waiting for {finding}; the screen shows\n{shown}"));
    let line = line(&shown).unwrap_or_default();
    eprintln!("{runtime}: {command}: {:.1} s, no key: {}", began.elapsed().as_secs_f64(), line.trim_matches(['│', ' ', '┃']));
    screen.quit();
}

/// A wait that began before the watch has no event.
#[test]
fn overview_shows_long_lock_wait() {
    runtimes::each(runtimes::with("known"), |runtime| {
        let mut program = runtime.program("known").start();
        let mut screen = dashboard(&program, &[], 120, 40);
        screen.wait_for("GC heap ");
        program.command("hold-lock 3600000");
        screen.wait_for("! a thread has been waiting for a lock for ");
        screen.quit();
    });
}

/// On a busy machine, a thread that is always running uses little of a core: here that suffices for a finding, and waiting for CPU is no finding.
fn config_for_busy_machine() -> TempDir {
    let home = folder();
    std::fs::create_dir(home.path().join("dn-top")).unwrap();
    std::fs::write(home.path().join("dn-top/config.toml"), "[thresholds]\ncpu-wait = 100.0\ncpu = 5.0\n").unwrap();
    home
}

/// A thread that is always running is on the first screen; its hot code is two keys away.
#[test]
fn overview_shows_busy_thread() {
    runtimes::each(runtimes::before(10, runtimes::since(9, runtimes::with("known"))), |runtime| {
        let (mut program, home) = (runtime.program("known").start(), config_for_busy_machine());
        program.command("spend 3600000");
        let words = ["--filter", &format!("pid:{}", program.pid())];
        let mut screen = Invocation::new(words).env("XDG_CONFIG_HOME", home.path()).screen(120, 40);
        let began = Instant::now();
        let is_named = |line: &&str| line.contains("│ ! CPU ") && line.contains(" of a core");
        let shown = screen.wait_until("a busy thread", |shown| shown.lines().any(|line| is_named(&line)));
        let line = shown.lines().find(is_named).unwrap_or_default();
        eprintln!("{runtime}: spend: {:.1} s, no key: {}", began.elapsed().as_secs_f64(), line.trim_matches(['│', ' ', '┃']));
        screen.keys(ENTER);
        screen.wait_for("Esc back");
        screen.keys(ENTER);
        screen.wait_for("No recording of this process.");
        screen.keys("q");
        screen.quit();
    });
}

/// A program that does little except write log messages: it is shown as busy on the first screen, and one key shows the cause.
#[test]
fn one_key_shows_log_message_flood() {
    runtimes::each(runtimes::before(10, runtimes::since(9, runtimes::with("web"))), |runtime| {
        let ((mut server, url), home) = (serve(runtime), config_for_busy_machine());
        let mut client = runtime.program("fetch").start();
        client.command(&format!("get 1 {url}/log/3600000"));
        let words = ["--filter", &format!("pid:{}", server.pid())];
        let mut screen = Invocation::new(words).env("XDG_CONFIG_HOME", home.path()).screen(120, 40);
        let began = Instant::now();
        screen.wait_until("a busy thread", |shown| shown.lines().any(|line| line.contains("│ ! CPU ") && line.contains(" of a core")));
        let busy = began.elapsed().as_secs_f64();
        screen.keys("F");
        let shown = screen.wait_for("Slow because of: Logging");
        let line = shown.lines().find(|line| line.contains("log messages")).unwrap_or_default();
        let seconds = began.elapsed().as_secs_f64();
        eprintln!("{runtime}: log: busy after {busy:.1} s, no key; {seconds:.1} s, F: {}", line.trim_matches(['│', ' ', '┃']));
        screen.keys("t");
        screen.wait_until("it is done", |shown| !shown.contains(" 1 recording "));
        screen.keys("qq");
        assert!(screen.wait_exit().success());
        assert!(server.is_alive());
    });
}

/// A slow dependency is also shown, if the runtime publishes the duration of outgoing requests.
#[test]
fn overview_shows_slow_dependency() {
    runtimes::each(runtimes::since(8, runtimes::with("web")), |runtime| {
        let (_server, url) = serve(runtime);
        let mut program = runtime.program("fetch").start();
        let pid = program.pid().to_string();
        let mut screen = Invocation::new(["--filter", &format!("pid:{pid}")]).screen(120, 40);
        // The HTTP client library is loaded while the program is watched, and requests are sent until they are found.
        screen.wait_for("GC heap ");
        program.command(&format!("get 1000 {url}/slow/1500"));
        let began = Instant::now();
        let shown = screen.wait_for("p95 of outgoing requests ");
        let line = shown.lines().find(|line| line.contains("p95 of outgoing")).unwrap_or_default();
        // Longer on a busy machine.
        let (_, p95) = line.split_once("requests ").unwrap_or_default();
        let seconds = p95.split_once(" s").and_then(|(number, _)| number.parse::<f64>().ok());
        assert!(seconds >= Some(1.5), "{line}");
        eprintln!("{runtime}: {:.1} s, no key: {}", began.elapsed().as_secs_f64(), line.trim_matches(['│', ' ', '┃']));
        screen.keys("q");
        assert!(screen.wait_exit().success());
    });
}

/// Durations are only known of requests that have ended: those that never do are found by their number.
#[test]
fn overview_shows_requests_that_do_not_end() {
    runtimes::each(runtimes::before(10, runtimes::since(9, runtimes::with("web"))), |runtime| {
        let (server, url) = serve(runtime);
        let mut screen = dashboard(&server, &[], 120, 40);
        screen.wait_for("GC heap ");
        let (began, is_found) = (Instant::now(), AtomicBool::new(false));
        let shown = std::thread::scope(|scope| {
            // More requests start all the time.
            scope.spawn(|| {
                let mut clients = Vec::new();
                while !is_found.load(Ordering::Relaxed) && clients.len() < 300 {
                    let mut client = TcpStream::connect(url.trim_start_matches("http://")).unwrap();
                    client.write_all(b"GET /slow/3600000 HTTP/1.1\r\nHost: localhost\r\n\r\n").unwrap();
                    clients.push(client);
                    std::thread::sleep(Duration::from_millis(300));
                }
            });
            let shown = screen.try_wait_until(TIMEOUT, |shown| shown.contains(" requests are in progress, none has ended for "));
            is_found.store(true, Ordering::Relaxed);
            shown.unwrap_or_else(|shown| panic!("no stuck requests; the screen shows\n{shown}"))
        });
        let line = shown.lines().find(|line| line.contains("none has ended")).unwrap_or_default();
        eprintln!("{runtime}: {:.1} s, no key: {}", began.elapsed().as_secs_f64(), line.trim_matches(['│', ' ', '┃']));
        screen.quit();
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
