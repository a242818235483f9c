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
const MEMORY: u64 = 64;
/// Maximum bytes written by a command, MB: the limit it was given, a quarter of that, 64 MB of rundown, and one read.
const DISK: u64 = 5 + 2 + 64 + 5;
/// Maximum number of its files at a time.
const FILES: usize = 250;
/// Maximum duration of a command on a machine that is not busy. Most end at once, or after the response timeout of 5 s.
const SECONDS: u64 = 120;

/// A command and its expected result: its words without the target, its exit code, and its text on standard error.
type Row = (&'static [&'static str], i32, &'static str);

const TRACE: &[&str] = &["trace", "--duration", "1s", "--max-size", "5MB", "-o", "a.nettrace"];
const FLIGHT: &[&str] = &["trace", "--duration", "1s", "--flight", "10s", "-o", "a.nettrace"];
const SMALL_FLIGHT: &[&str] = &["trace", "--duration", "1s", "--flight", "4MB", "-o", "a.nettrace"];
const COUNTERS: &[&str] = &["counters", "--duration", "2s"];
const HEAP: &[&str] = &["heap", "--yes"];
const GRAPH: &[&str] = &["heap", "--yes", "-o", "a.gcdump"];
const DUMP: &[&str] = &["dump", "-o", "a.dmp"];

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
    watched: JoinHandle<Taken>,
}

/// Peak resource usage of a command.
#[derive(Debug, Default)]
struct Taken {
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
            let mut taken = Taken::default();
            // A process that has exited has no memory usage.
            while let Some(memory) = peak_memory(pid)
                && began.elapsed() < Duration::from_secs(SECONDS)
            {
                taken.memory = taken.memory.max(memory);
                taken.look_at(&path);
                std::thread::sleep(Duration::from_millis(10));
            }
            taken.look_at(&path);
            taken.seconds = began.elapsed().as_secs();
            taken
        });
        Self { name: format!("{fault:?} {}", words.join(" ")), running, place, watched }
    }

    /// Waits for the command to exit.
    #[track_caller]
    fn end(self) -> Ended {
        let taken = self.watched.join().unwrap();
        let name = self.name;
        assert!(taken.seconds < SECONDS, "{name}: does not end: {}", self.running.stderr());
        let output = self.running.wait();
        eprintln!("{name}: {} {taken:?}: {}", output.code, output.stderr.trim());
        assert!(taken.memory <= MEMORY, "{name}: {} MB of memory", taken.memory);
        let disk = if name.contains("--flight") { 2 * DISK } else { DISK };
        assert!(taken.disk <= disk && taken.files < FILES, "{name}: wrote {} MB in {} files", taken.disk, taken.files);
        let left = fs::read_dir(self.place.path()).unwrap().count();
        Ended { name, output, left }
    }
}

impl Taken {
    fn look_at(&mut self, folder: &Path) {
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
fn in_turn(fault: Fault, rows: &[Row]) {
    let hostile = Hostile::start(fault);
    for (words, code, said) in rows {
        Case::start(fault, &hostile.pid().to_string(), words).end().assert(*code, said);
    }
}

/// Every command reports what was received instead of a response. All run at once: each has to wait for its own timeout.
#[test]
fn answers_that_make_no_sense_are_named() {
    for (fault, words) in [
        (Fault::AllSilent, "no answer within 5 s"),
        (Fault::AllGarbage, "the peer is not a .NET diagnostic server"),
        (Fault::AllDrip, "no answer within 5 s"),
        (Fault::AllClose, "closed without an answer"),
        (Fault::Silent, "no answer within 5 s"),
        (Fault::HalfHeader, "no answer within 5 s"),
        (Fault::HalfReply, "the answer was cut off after 90 bytes"),
        (Fault::Closes, "closed without an answer"),
        (Fault::Garbage, "the peer is not a .NET diagnostic server"),
        (Fault::WrongMagic, "the peer is not a .NET diagnostic server"),
        (Fault::Drip, "no answer within 5 s"),
    ] {
        let hostile = Hostile::start(fault);
        let mut commands = REQUESTS.to_vec();
        // A dump has no timeout, unless the process is already known not to respond.
        let may_wait = matches!(fault, Fault::Silent | Fault::HalfHeader | Fault::Drip);
        commands.extend((!may_wait).then_some(DUMP));
        let cases: Vec<_> = commands.iter().map(|words| Case::start(fault, &hostile.pid().to_string(), words)).collect();
        for ended in cases.into_iter().map(Case::end) {
            ended.assert(1, words);
            assert_eq!(ended.left, 0, "{} left a file behind", ended.name);
        }
        // The others answer this request.
        let (code, words) = if format!("{fault:?}").starts_with("All") { (1, words) } else { (0, "") };
        Case::start(fault, &hostile.pid().to_string(), &["info"]).end().assert(code, words);
    }
}

#[test]
fn an_answer_of_nothing_is_named() {
    // It has the form of a success response.
    in_turn(
        Fault::LongReply,
        &[(&["trace", "-o", "a.nettrace"], 0, "no data received"), (&["env"], 1, "an environment of 1094795585 bytes")],
    );
}

#[test]
fn an_environment_without_an_end_is_not_read() {
    in_turn(Fault::Environment, &[(&["env"], 1, "announced 2796201 environment variables; dn-top reads up to 65536")]);
}

#[test]
fn what_is_no_stream_ends_at_once() {
    let words = "cannot decode the event stream: this is not a nettrace stream";
    let endless: &[&str] = &["trace", "-o", "a.nettrace"];
    in_turn(Fault::NoNettrace, &[(endless, 1, words), (COUNTERS, 1, words), (&["stacks"], 1, words), (HEAP, 1, words), (GRAPH, 1, words)]);
}

const CUT: &str = "the runtime kept sending after the stop, and the connection was closed";
const BUDGET: &str = "the runtime sent more than";

/// The number of bytes is limited, whether or not the stop request is answered.
#[test]
fn a_stream_without_an_end_is_cut_off() {
    let (no_thread, no_object) =
        ("no thread was sampled: the runtime sent more than", "no object was reported: the runtime sent more than");
    let rows: &[Row] = &[
        (TRACE, 1, CUT),
        (SMALL_FLIGHT, 1, CUT),
        (COUNTERS, 1, CUT),
        (&["stacks"], 1, no_thread),
        (HEAP, 1, no_object),
        (GRAPH, 1, no_object),
    ];
    in_turn(Fault::Endless, rows);
    in_turn(Fault::GoesOn, &rows[..4]);
}

/// Memory and files are limited, whatever is in the stream.
#[test]
fn a_stream_that_would_take_much_memory_takes_little() {
    in_turn(Fault::LongBlock, &[(TRACE, 1, CUT), (COUNTERS, 1, CUT), (&["stacks"], 1, BUDGET), (HEAP, 1, BUDGET)]);
    in_turn(Fault::Threads, &[(TRACE, 1, CUT), (COUNTERS, 1, CUT), (&["stacks"], 1, CUT)]);
    in_turn(Fault::Timestamps, &[(TRACE, 1, CUT), (FLIGHT, 1, CUT), (COUNTERS, 1, CUT)]);
}

#[test]
fn a_heap_without_an_end_takes_little_memory() {
    in_turn(Fault::Heap, &[(TRACE, 1, CUT), (HEAP, 1, BUDGET), (GRAPH, 1, BUDGET)]);
    let no_object = "no object was reported: the runtime";
    in_turn(Fault::Types, &[(TRACE, 1, CUT), (HEAP, 1, no_object), (GRAPH, 1, no_object)]);
}

#[test]
fn a_stream_that_is_closed_is_no_failure() {
    let cut = "the target exited or closed the stream";
    in_turn(
        Fault::Cut,
        &[
            (TRACE, 0, cut),
            (COUNTERS, 0, "ended, or closed the session"),
            (&["stacks"], 1, "no thread was sampled"),
            (HEAP, 1, "no object was reported"),
        ],
    );
}

/// A session being stopped, for whatever reason, is abandoned at the first signal.
#[test]
fn a_signal_does_not_wait_for_a_stop_that_is_not_answered() {
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
fn a_program_that_means_harm_is_recorded_within_limits() {
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
