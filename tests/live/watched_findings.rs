//! Findings on the first screen: their causes are made in real programs.

use std::fs::{self, File};
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _};
use std::time::Instant;

use rustix::fs::OFlags;
use tempfile::TempDir;

use crate::requests::{serve, url_in};
use crate::slowdown::{LimitedGroup, config_without_cpu_wait};
use crate::support::runtimes::{self, Runtime};
use crate::support::screen::ENTER;
use crate::support::{BusyProcessors, Invocation, TIMEOUT, folder, poll};
use crate::watched_screen::dashboard;

/// The first screen shows the cause, without a key press.
#[test]
fn overview_shows_health_issues() {
    let at_work: &[_] =
        &[("throw 100000000", "/s exceptions"), ("churn 60000", "/s gen 2 collections"), ("compile 3600000", " of a core is spent in JIT")];
    let in_locks: &[_] = &[("convoy 10 60000", " threads at a time wait for locks"), ("leak 100", "! gen 2 GCs leave more: ")];
    // In the second case, thread pool threads wait for tasks that need these threads themselves.
    let in_pools: &[_] =
        &[("occupy 2000 3000", " work items wait"), ("await 2000", " work items wait"), ("occupy 100 60000", ", none has completed for ")];
    let in_collections: &[_] = &[("induce 100000 100", "/s induced GCs"), ("fragment 2000", " of the GC heap is free: ")];
    // Growth is determined over 20 s, that of open files and timers over 50 s.
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
    // Growth of some resources is determined over a minute.
    let shown = screen.try_wait_until(TIMEOUT * 2, |shown| line(shown).is_some());
    let shown = shown.unwrap_or_else(|shown| panic!("timed out waiting for {finding}; the screen shows\n{shown}"));
    let line = line(&shown).unwrap_or_default();
    eprintln!("{runtime}: {command}: {:.1} s, no key: {}", began.elapsed().as_secs_f64(), line.trim_matches(['│', ' ', '┃']));
    screen.quit();
}

/// The server writes each line of its log synchronously, to a disk that is made slow: more and more requests block a thread of the pool. They come
/// slowly enough for the pool to grow, so that none of them waits for a thread.
#[test]
fn overview_shows_slow_disk_and_growing_pool() {
    runtimes::each(runtimes::before(10, runtimes::since(9, runtimes::with("web"))), |runtime| {
        let place = folder();
        let path = place.path().join("log");
        let log = File::options().write(true).create_new(true).custom_flags(OFlags::SYNC.bits() as i32).open(&path).unwrap();
        let device = log.metadata().unwrap().dev();
        let Some(group) = LimitedGroup::disk_writes(&format!("disk-{}", runtime.version), device, 20) else {
            return runtimes::skip("no control group with a disk limit can be made here");
        };
        let server = runtime.program("web").stdout(log).start();
        let url = poll(TIMEOUT, || url_in(&fs::read_to_string(&path).unwrap())).unwrap();
        group.add(&server);
        let mut client = runtime.program("fetch").start();
        client.command(&format!("start 200 700 {url}/log/3600000"));
        let began = Instant::now();
        let mut screen = dashboard(&server, &[], 120, 40);
        for finding in [" wait for a disk", "! the thread pool grew from "] {
            let shown = screen.wait_for(finding);
            let line = shown.lines().find(|line| line.contains(finding)).unwrap_or_default();
            eprintln!("{runtime}: {:.1} s, no key: {}", began.elapsed().as_secs_f64(), line.trim_matches(['│', ' ', '┃']));
            assert!(line.contains("│ ! "), "{line}");
        }
        screen.quit();
    });
}

/// They may have lasted for long when the dashboard is opened: the pool and the other threads no longer grow in number.
#[test]
fn overview_shows_many_threads_and_generated_assemblies() {
    runtimes::each(runtimes::with("known"), |runtime| {
        let mut program = runtime.program("known").start();
        assert_eq!(program.line(), "ready");
        for command in ["block 200", "threads 600 0", "emit 1000 0"] {
            program.carry_out(command);
        }
        program.command("emit 100000 20");
        let mut screen = dashboard(&program, &[], 120, 40);
        let began = Instant::now();
        for finding in ["! the thread pool has 20", " threads outside the pool", "! loaded assemblies grew from "] {
            let shown = screen.wait_for(finding);
            let line = shown.lines().find(|line| line.contains(finding)).unwrap_or_default();
            eprintln!("{runtime}: {:.1} s, no key: {}", began.elapsed().as_secs_f64(), line.trim_matches(['│', ' ', '┃']));
        }
        screen.quit();
    });
}

/// The times of the threads are read one by one.
#[test]
fn overview_shows_cpu_wait_of_a_process_with_many_threads() {
    runtimes::each(runtimes::before(10, runtimes::since(9, runtimes::with("known"))), |runtime| {
        let mut program = runtime.program("known").start();
        program.carry_out("threads 700 0");
        let _busy = BusyProcessors::start();
        program.command("spend 3600000");
        let mut screen = dashboard(&program, &[], 120, 40);
        screen.wait_for("! runnable threads wait for a CPU ");
        screen.quit();
    });
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
    fs::create_dir(home.path().join("dn-top")).unwrap();
    fs::write(home.path().join("dn-top/config.toml"), "[thresholds]\ncpu-wait = 100.0\ncpu = 5.0\n").unwrap();
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

/// Durations are only known of requests that have ended: those that never do are found by their number, by the server and by its client.
#[test]
fn overview_shows_requests_that_do_not_end() {
    runtimes::each(runtimes::before(10, runtimes::since(9, runtimes::with("web"))), |runtime| {
        let (server, url) = serve(runtime);
        let mut client = runtime.program("fetch").start();
        let screens = [(&server, " requests in progress"), (&client, " outgoing requests in progress")].map(|(program, what)| {
            let screen = dashboard(program, &[], 160, 40);
            // The HTTP client library is loaded while the program is watched.
            screen.wait_for("GC heap ");
            (screen, what)
        });
        // Otherwise it could be the first requests of long polling.
        client.carry_out(&format!("get 200 {url}/status/200"));
        let began = Instant::now();
        client.command(&format!("start 400 300 {url}/slow/3600000"));
        for (mut screen, what) in screens {
            let found = format!("{what}, none ended for ");
            let shown = screen.try_wait_until(TIMEOUT, |shown| shown.contains(&found));
            let shown = shown.unwrap_or_else(|shown| panic!("timed out waiting for {found}; the screen shows\n{shown}"));
            let line = shown.lines().find(|line| line.contains("none ended for")).unwrap_or_default();
            eprintln!("{runtime}: {:.1} s, no key: {}", began.elapsed().as_secs_f64(), line.trim_matches(['│', ' ', '┃']));
            screen.quit();
        }
    });
}

/// What grows is no cause of slowness yet, and is found as on the first screen of the dashboard.
#[test]
fn growth_and_limits_are_found() {
    runtimes::each(runtimes::with("known"), |runtime| {
        std::thread::scope(|scope| {
            let grows = |command: &'static str, name: &'static str, text: &'static str| {
                let mut program = runtime.program("known").start();
                let pid = program.pid().to_string();
                program.settle();
                program.command(command);
                let found = Invocation::new(["slow", &pid, "--duration", "35s", "--json"]).run().json();
                let findings = found["findings"].as_array().unwrap_or_else(|| panic!("{runtime}: {found:#}"));
                let is_it =
                    |finding: &&serde_json::Value| finding["finding"] == name && finding["text"].as_str().unwrap().starts_with(text);
                let is_found = findings.iter().any(|finding| is_it(&finding) && finding["severity"].as_f64() > Some(1.0));
                assert!(is_found, "{runtime}: {command}: {found:#}");
                assert!(program.is_alive(), "{runtime}");
            };
            scope.spawn(move || grows("threads 3000 50", "threads", "threads outside the pool grew from "));
            scope.spawn(move || grows("allocate 300 1000", "RSS growth", "memory outside the GC heap grew by "));
            // Nothing grows.
            let mut program = runtime.program("known").start();
            program.command("throw 1");
            let text = Invocation::new(["slow", &program.pid().to_string(), "--duration", "25s"]).run().stdout;
            assert!(text.contains("FOUND") && !text.contains("Other findings:"), "{runtime}: {text}");
        });
    });
}

/// Events show the start of a request, and nothing before its end.
#[test]
fn requests_that_never_end_are_found() {
    runtimes::each(runtimes::before(10, runtimes::since(9, runtimes::with("web"))), |runtime| {
        let (server, url) = serve(runtime);
        let (home, mut client) = (config_without_cpu_wait(), runtime.program("fetch").start());
        client.command(&format!("start 30 300 {url}/slow/3600000"));
        let slow = ["slow", &server.pid().to_string(), "--duration", "25s"].map(str::to_owned);
        let text = Invocation::new(slow).env("XDG_CONFIG_HOME", home.path()).run().stdout;
        assert!(text.contains("Possibly slow because of: HTTP\n") && text.contains(" Requests served: none of "), "{runtime}: {text}");
    });
}
