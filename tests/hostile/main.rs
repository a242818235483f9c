//! dn-top against hostile processes: one clear sentence, an exit code, and limited time, disk and memory. Needs no .NET.

#![allow(clippy::unwrap_used, reason = "clippy knows tests by their attribute, and not what they call")]

mod server;
#[path = "../support/mod.rs"]
mod support;

use std::fs;
use std::path::Path;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use server::{FAULT, Fault, Hostile};
use support::{Invocation, Output, Running, Signal, folder};

/// Maximum peak memory of a command, MB.
const MAX_MEMORY_MB: u64 = 64;
/// Maximum bytes written by a command, MB: the limit it was given, a quarter of that, 64 MB of rundown, and one read.
const MAX_DISK_MB: u64 = 5 + 2 + 64 + 5;
/// Maximum number of its files at a time.
const MAX_FILES: usize = 250;
/// Maximum duration of a command on a machine that is not busy. Most end at once, or after the response timeout of 5 s.
const MAX_SECONDS: u64 = 120;

/// A command and its expected result: its words without the target, its exit code, and its text on standard error.
type Row = (&'static [&'static str], i32, &'static str);

const TRACE: &[&str] = &["trace", "--duration", "1s", "--max-size", "5MB", "-o", "a.nettrace"];
const FLIGHT: &[&str] = &["trace", "--duration", "1s", "--flight", "10s", "-o", "a.nettrace"];
const SMALL_FLIGHT: &[&str] = &["trace", "--duration", "1s", "--flight", "4MB", "-o", "a.nettrace"];
const COUNTERS: &[&str] = &["counters", "--duration", "2s"];
const HEAP: &[&str] = &["heap", "--yes"];
const GRAPH: &[&str] = &["heap", "--yes", "-o", "a.gcdump"];
const EVENTS: &[&str] = &["events", "--provider", "Hostile", "--duration", "1s"];
const GC: &[&str] = &["gc", "--duration", "1s"];
const DUMP: &[&str] = &["dump", "-o", "a.dmp"];
const FOLLOW: &[&str] = &["events", "--follow", "--provider", "Hostile", "--duration", "1s"];
const FOLLOW_JSON: &[&str] = &["events", "--follow", "--json", "--provider", "Hostile", "--duration", "1s"];
const FOLLOW_REQUESTS: &[&str] = &["http", "--follow", "--duration", "1s"];

/// Commands that send one request.
const REQUESTS: [&[&str]; 8] = [&["env"], TRACE, COUNTERS, &["stacks"], HEAP, &["perfmap", "off"], &["resume"], &["set-env", "A=B"]];

/// The hostile program started by the tests.
#[test]
#[ignore = "it is no test: the tests start it"]
fn program() {
    if let Ok(fault) = std::env::var(FAULT) {
        server::run(&fault);
    }
}

/// A running command, its working directory, and the thread that monitors it.
struct Case {
    name: String,
    running: Running,
    place: tempfile::TempDir,
    watched: JoinHandle<PeakUsage>,
}

/// Peak resource usage of a command.
#[derive(Debug, Default)]
struct PeakUsage {
    /// MB.
    memory: u64,
    /// MB, sum of all files.
    disk: u64,
    files: usize,
    seconds: u64,
}

/// Result of a command.
struct Ended {
    name: String,
    output: Output,
    /// Number of files left behind.
    left: usize,
}

impl Case {
    /// Starts a command, with its target after its name.
    fn start(fault: Fault, target: &str, words: &[&str]) -> Self {
        Self::of(fault, words, Invocation::new([&words[..1], &[target], &words[1..]].concat()))
    }

    fn of(fault: Fault, words: &[&str], invocation: Invocation) -> Self {
        let place = folder();
        let running = invocation.current_dir(place.path()).start();
        let (pid, path, began) = (running.pid(), place.path().to_owned(), Instant::now());
        let watched = std::thread::spawn(move || {
            let mut usage = PeakUsage::default();
            // A process that has exited has no memory usage.
            while let Some(memory) = peak_memory(pid)
                && began.elapsed() < Duration::from_secs(MAX_SECONDS)
            {
                usage.memory = usage.memory.max(memory);
                usage.measure_files(&path);
                std::thread::sleep(Duration::from_millis(10));
            }
            usage.measure_files(&path);
            usage.seconds = began.elapsed().as_secs();
            usage
        });
        Self { name: format!("{fault:?} {}", words.join(" ")), running, place, watched }
    }

    /// Waits for the command to exit.
    #[track_caller]
    fn end(self) -> Ended {
        let usage = self.watched.join().unwrap();
        let name = self.name;
        assert!(usage.seconds < MAX_SECONDS, "{name}: does not end: {}", self.running.stderr());
        let output = self.running.wait();
        eprintln!("{name}: {} {usage:?}: {}", output.code, output.stderr.trim());
        assert!(usage.memory <= MAX_MEMORY_MB, "{name}: {} MB of memory", usage.memory);
        let disk = if name.contains("--flight") { 2 * MAX_DISK_MB } else { MAX_DISK_MB };
        assert!(usage.disk <= disk && usage.files < MAX_FILES, "{name}: wrote {} MB in {} files", usage.disk, usage.files);
        let left = fs::read_dir(self.place.path()).unwrap().count();
        Ended { name, output, left }
    }
}

impl PeakUsage {
    fn measure_files(&mut self, folder: &Path) {
        let facts: Vec<_> = fs::read_dir(folder).unwrap().filter_map(|entry| entry.ok()?.metadata().ok()).collect();
        self.disk = self.disk.max(facts.iter().map(|facts| facts.len()).sum::<u64>() >> 20);
        self.files = self.files.max(facts.len());
    }
}

impl Ended {
    #[track_caller]
    fn assert(&self, code: i32, words: &str) {
        let Output { stderr, stdout, .. } = &self.output;
        assert_eq!(self.output.code, code, "{}: {stderr}", self.name);
        assert!(stderr.contains(words), "{}: {words:?} is not in {stderr:?}", self.name);
        let raw = |text: &str| text.chars().any(|c| c.is_control() && c != '\n');
        assert!(!raw(stderr) && !raw(stdout), "{}: {:?}", self.name, self.output);
    }
}

/// Returns the peak memory in MB, without the pages of the executable, which are many in an unoptimized build; `None` if the process has exited.
fn peak_memory(pid: u32) -> Option<u64> {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let kilobytes = |name| status.lines().find_map(|line| line.strip_prefix(name)?.split_whitespace().next()?.parse::<u64>().ok());
    Some(kilobytes("VmHWM:")?.saturating_sub(kilobytes("RssFile:")?) / 1024)
}

/// Runs commands against one process, one after the other.
fn run_commands(fault: Fault, rows: &[Row]) {
    let hostile = Hostile::start(fault);
    for (words, code, said) in rows {
        Case::start(fault, &hostile.pid().to_string(), words).end().assert(*code, said);
    }
}

/// Every command reports what was received instead of a response.
fn assert_reported(faults: &[(Fault, &str)]) {
    for &(fault, words) in faults {
        let hostile = Hostile::start(fault);
        let mut commands = REQUESTS.to_vec();
        // A dump has no timeout, unless the process is already known not to respond.
        let may_wait = matches!(fault, Fault::Silent | Fault::HalfHeader | Fault::Drip);
        commands.extend((!may_wait).then_some(DUMP));
        // All run at once: each has to wait for its own timeout.
        let start = |words: &&[&str]| Case::start(fault, &hostile.pid().to_string(), words);
        let (info, cases) = (start(&&["info"][..]), commands.iter().map(start).collect::<Vec<_>>());
        for ended in cases.into_iter().map(Case::end) {
            ended.assert(1, words);
            assert_eq!(ended.left, 0, "{} left a file behind", ended.name);
        }
        // The others answer this request.
        let (code, words) = if format!("{fault:?}").starts_with("All") { (1, words) } else { (0, "") };
        info.end().assert(code, words);
    }
}

#[test]
fn invalid_responses_are_reported() {
    assert_reported(&[
        (Fault::AllGarbage, "the peer is not a .NET diagnostic server"),
        (Fault::AllClose, "closed without an answer"),
        (Fault::HalfReply, "the answer was cut off after 90 bytes"),
        (Fault::Closes, "closed without an answer"),
        (Fault::Garbage, "the peer is not a .NET diagnostic server"),
        (Fault::WrongMagic, "the peer is not a .NET diagnostic server"),
    ]);
}

#[test]
fn missing_responses_are_reported() {
    let silent = [Fault::AllSilent, Fault::AllDrip, Fault::Silent, Fault::HalfHeader, Fault::Drip];
    assert_reported(&silent.map(|fault| (fault, "no answer within 5 s")));
}

#[test]
fn malformed_success_response_is_reported() {
    // It has the form of a success response.
    run_commands(
        Fault::LongReply,
        &[(&["trace", "-o", "a.nettrace"], 0, "no data received"), (&["env"], 1, "an environment of 1094795585 bytes")],
    );
}

#[test]
fn endless_environment_is_not_read() {
    run_commands(Fault::Environment, &[(&["env"], 1, "announced 2796201 environment variables; dn-top reads up to 65536")]);
}

#[test]
fn invalid_stream_is_rejected_immediately() {
    let words = "cannot decode the event stream: this is not a nettrace stream";
    let endless: &[&str] = &["trace", "-o", "a.nettrace"];
    run_commands(
        Fault::NoNettrace,
        &[(endless, 1, words), (COUNTERS, 1, words), (&["stacks"], 1, words), (HEAP, 1, words), (GRAPH, 1, words)],
    );
}

const CUT: &str = "the runtime kept sending after the stop, and the connection was closed";
const BUDGET: &str = "the runtime sent more than";

/// The number of bytes is limited, whether or not the stop request is answered.
#[test]
fn endless_stream_is_cut_off() {
    let (no_thread, no_object) =
        ("no thread was sampled: the runtime sent more than", "no object was reported: the runtime sent more than");
    let rows: &[Row] = &[
        (TRACE, 1, CUT),
        (SMALL_FLIGHT, 1, CUT),
        (COUNTERS, 1, CUT),
        (GC, 1, CUT),
        (&["stacks"], 1, no_thread),
        (HEAP, 1, no_object),
        (GRAPH, 1, no_object),
    ];
    run_commands(Fault::Endless, rows);
    run_commands(Fault::ContinuesAfterStop, &rows[..5]);
}

/// Memory and files are limited, whatever is in the stream.
#[test]
fn long_block_uses_little_memory() {
    run_commands(Fault::LongBlock, &[(TRACE, 1, CUT), (COUNTERS, 1, CUT), (&["stacks"], 1, BUDGET), (HEAP, 1, BUDGET), (FOLLOW, 1, CUT)]);
}

#[test]
fn endless_threads_use_little_memory() {
    run_commands(Fault::Threads, &[(TRACE, 1, CUT), (COUNTERS, 1, CUT), (&["stacks"], 1, CUT)]);
}

#[test]
fn distant_timestamps_use_little_memory() {
    run_commands(Fault::Timestamps, &[(TRACE, 1, CUT), (FLIGHT, 1, CUT), (COUNTERS, 1, CUT), (FOLLOW, 1, CUT)]);
}

#[test]
fn long_names_use_little_memory() {
    // The rest of the stream may not arrive in time.
    run_commands(Fault::LongNames, &[(TRACE, 1, CUT), (EVENTS, 1, CUT), (FOLLOW, 1, ""), (FOLLOW_JSON, 1, ""), (FOLLOW_REQUESTS, 1, "")]);
}

#[test]
fn endless_heap_uses_little_memory() {
    run_commands(Fault::Heap, &[(TRACE, 1, CUT), (HEAP, 1, BUDGET), (GRAPH, 1, BUDGET)]);
    let no_object = "no object was reported: the runtime";
    run_commands(Fault::Types, &[(TRACE, 1, CUT), (HEAP, 1, no_object), (GRAPH, 1, no_object)]);
}

#[test]
fn closed_stream_is_not_a_failure() {
    let cut = "the target exited or closed the stream";
    run_commands(
        Fault::Cut,
        &[
            (TRACE, 0, cut),
            (COUNTERS, 0, "ended, or closed the session"),
            (GC, 0, cut),
            (&["stacks"], 1, "no thread was sampled"),
            (HEAP, 1, "no object was reported"),
        ],
    );
}

/// A session being stopped, for whatever reason, is abandoned at the first signal.
#[test]
fn signal_abandons_unanswered_stop() {
    for words in [TRACE, COUNTERS] {
        let hostile = Hostile::start(Fault::Trickle);
        let case = Case::start(Fault::Trickle, &hostile.pid().to_string(), words);
        hostile.wait_for_stop();
        case.running.signal(Signal::TERM);
        let ended = case.end();
        ended.assert(130, if words == TRACE { "stopped before the rundown was complete" } else { "" });
    }
}

/// `run` starts the hostile program.
#[test]
fn run_limits_hostile_program() {
    for (fault, code, words) in [
        (Fault::Endless, 1, "the runtime kept sending after the stop"),
        (Fault::NoNettrace, 1, "cannot decode the event stream"),
        (Fault::AllSilent, 1, "no answer within 5 s"),
        (Fault::AllGarbage, 1, "the peer is not a .NET diagnostic server"),
    ] {
        let program = Hostile::command();
        let words_of = |word: &std::ffi::OsStr| word.to_str().unwrap().to_owned();
        let mut arguments: Vec<String> =
            ["run", "--duration", "1s", "--max-size", "5MB", "-o", "a.nettrace", "--"].map(str::to_owned).to_vec();
        arguments.push(words_of(program.get_program()));
        arguments.extend(program.get_args().map(words_of));
        let invocation = Invocation::new(arguments).env(FAULT, format!("{fault:?}"));
        Case::of(fault, &["run"], invocation).end().assert(code, words);
    }
}
