//! Limits enforced on real runtimes, whatever else happens to them.

use std::fs;
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt as _;
use std::process::Command;
use std::time::Duration;

use dn_top::ipc::{Level, Provider, Providers, SessionConfig};
use dn_top::model::{Outcome, Phase, StoppedBy};
use dn_top::session::{Plan, Recorder, StopLimit};
use tokio::time::timeout;

use crate::analysis::process;
use crate::fatal_requests::start_settled;
use crate::slowdown::LimitedGroup;
use crate::support::runtimes::{self, Runtime};
use crate::support::{Invocation, Output, Signal, TIMEOUT, folder, poll};

/// An idle client occupies the only thread of the diagnostic server, so that it cannot receive a stop request.
async fn assert_stops_with_occupied_socket(runtime: &Runtime) {
    let program = runtime.any().start();
    let (_, client) = process(&program).await;
    let place = folder();
    let file = place.path().join("a.nettrace");
    let everything = ["Microsoft-Windows-DotNETRuntime", "Microsoft-DotNETCore-SampleProfiler"];
    let providers = everything.map(|name| Provider::new(name, u64::MAX, Level::Verbose).unwrap());
    let config = SessionConfig::new(Providers::new(providers.to_vec()).unwrap());
    let plan = |file, bytes, time| Plan {
        duration: Some(Duration::from_secs(1)),
        stop_limit: StopLimit { time, bytes, ..StopLimit::RUNDOWN },
        ..Plan::new(client.endpoint().key, "any".into(), config.clone(), file)
    };
    for (bytes, time, words) in [(0, TIMEOUT, "the runtime kept sending after the stop"), (u64::MAX, Duration::from_secs(1), "within 1 s")]
    {
        let recorder = Recorder::start(client.clone(), plan(file.clone(), bytes, time)).await.unwrap();
        let idle = UnixStream::connect(program.socket()).unwrap();
        let recording = timeout(2 * TIMEOUT, recorder.finished()).await.expect("it goes on for ever");
        let Phase::Done(Outcome { stopped_by, complete, file: Some(partial), trouble: Some(trouble) }) = &recording.phase else {
            panic!("{:?}", recording.phase)
        };
        assert_eq!((*stopped_by, *complete), (StoppedBy::Duration, false));
        assert!(trouble.contains(words), "{trouble}");
        assert_eq!(partial.to_str(), Some(format!("{}.partial", file.display()).as_str()));
        fs::remove_file(partial).unwrap();
        drop(idle);
        assert!(program.answers(), "{runtime} does not answer any more");
    }
}

#[test]
fn recording_stops_while_socket_is_occupied() {
    runtimes::each_async(runtimes::all(), assert_stops_with_occupied_socket);
}

/// No character in a path is special: createdump would expand `%p` and overwrite `4242`.
#[test]
fn dump_file_name_is_not_expanded() {
    runtimes::each(runtimes::all(), |runtime| {
        let program = runtime.any().start();
        let place = folder();
        let expanded = place.path().join(format!("{}_1", program.pid()));
        fs::write(&expanded, "mine").unwrap();
        for name in ["%p_1", "100%", "%%", "%d%s%e%h%t%x"] {
            let file = place.path().join(name);
            let output = Invocation::new(["dump", &program.pid().to_string(), "--type", "mini", "-o", file.to_str().unwrap()]).run();
            assert_eq!((output.code, output.stdout), (0, format!("{}\n", file.display())), "{runtime}: {}", output.stderr);
            fs::remove_file(&file).unwrap();
        }
        let left: Vec<_> = fs::read_dir(place.path()).unwrap().map(|entry| entry.unwrap().path()).collect();
        assert_eq!((left, fs::read(&expanded).unwrap().as_slice()), (vec![expanded], &b"mine"[..]), "{runtime}");
    });
}

/// The dump program of 3.1 inherits all connections, and may outlive the process that it was to dump.
#[test]
fn kill_during_dump_ends_dump_and_recording() {
    for runtime in runtimes::all() {
        let mut program = runtime.any().start();
        let place = folder();
        let file = place.path().join("core");
        let trace = Invocation::new(["trace", &program.pid().to_string(), "--json"]).current_dir(place.path()).start();
        crate::trace::wait_for_data(&trace, place.path());
        let dump = Invocation::new(["dump", &program.pid().to_string(), "--type", "full", "-o", file.to_str().unwrap()]).start();
        let dumper = poll(TIMEOUT, || child(program.pid())).unwrap_or_else(|| panic!("{runtime} starts no dump program"));
        // From here on, its threads remain after their death until the dump program has handled it.
        poll(TIMEOUT, || is_traced(program.pid()).then_some(()))
            .unwrap_or_else(|| panic!("{runtime}: the dump program attaches to nothing"));
        // The kernel continues stopped processes when the last member of their process group with a parent in the session exits: one remains.
        let mut other = Command::new("sleep").arg("1000").process_group(program.pid().try_into().unwrap()).spawn().unwrap();
        // Stopped: the slowest possible dump.
        rustix::process::kill_process(dumper, Signal::STOP).unwrap();
        program.signal(Signal::KILL);
        let (output, traced) = (dump.wait(), trace.wait());
        rustix::process::kill_process(dumper, Signal::KILL).unwrap();
        other.kill().unwrap();
        other.wait().unwrap();
        program.wait();
        assert_eq!(output.code, 1, "{runtime}: {}", output.stderr);
        let words = ["the process ended before it answered", "closed without an answer", "[createdump]"];
        assert!(words.iter().any(|words| output.stderr.contains(words)), "{runtime}: {}", output.stderr);
        let result: serde_json::Value = serde_json::from_str(&traced.stdout).unwrap();
        assert_eq!((traced.code, &result["stopped_by"]), (0, &"target-exit".into()), "{runtime}: {}", traced.stderr);
    }
}

/// What a process writes to a tmpfs counts as its memory, and the kernel kills a process that exceeds its limit.
#[test]
fn dump_beyond_the_memory_limit_is_not_requested() {
    runtimes::each(runtimes::all(), |runtime| {
        // Less than the expected size, and more than the process takes in the meantime: .NET Core 3.1 does not collect before it has allocated 30 MB.
        let Some(group) = LimitedGroup::memory(&format!("dump-{}", runtime.version), "100663296") else {
            return runtimes::skip("no control group with a memory limit can be made here");
        };
        let place = tempfile::tempdir_in("/dev/shm").unwrap();
        let mut program = start_settled(runtime);
        group.add(&program);
        let file = place.path().join("core");
        let refused = Invocation::new(["dump", &program.pid().to_string(), "-o", file.to_str().unwrap()]).run();
        let words = "the kernel would kill it during this dump of about ";
        assert!(refused.code == 1 && refused.stderr.contains(words) && !refused.stderr.contains("paused"), "{runtime}: {refused:?}");
        assert!(!file.exists() && program.is_alive() && program.answers(), "{runtime}");
    });
}

/// The dump program counts toward the limit, too, wherever it writes. The kernel may indeed kill either.
#[test]
fn dump_program_that_may_exceed_the_memory_limit_is_announced() {
    // A program that allocates nothing; .NET Core 3.1 nevertheless takes more by itself.
    runtimes::each(runtimes::since(8, runtimes::with("known")), |runtime| {
        let Some(group) = LimitedGroup::memory(&format!("createdump-{}", runtime.version), "19000000") else {
            return runtimes::skip("no control group with a memory limit can be made here");
        };
        let place = folder();
        let program = runtime.program("known").start();
        assert_eq!(program.line(), "ready");
        program.settle();
        group.add(&program);
        let file = place.path().join("core");
        let dump = Invocation::new(["dump", &program.pid().to_string(), "--type", "mini", "-o", file.to_str().unwrap()]).run();
        assert!(dump.stderr.starts_with("dn-top: the memory limit of the process leaves "), "{runtime}: {dump:?}");
        assert!(dump.stderr.contains("createdump, to which it also applies, takes about 20.0 MB"), "{runtime}: {dump:?}");
    });
}

/// Runs dn-top with a limit set by the shell.
fn run_limited(limit: &str, words: &[&str]) -> Output {
    let script = format!("ulimit {limit} && exec \"$@\"");
    Invocation::of("sh", [&["-c", &script, "sh", env!("CARGO_BIN_EXE_dn-top")], words].concat()).run()
}

#[test]
fn too_few_open_files_are_not_mistaken_for_no_process() {
    runtimes::each(runtimes::with("known"), |runtime| {
        let program = runtime.program("known").start();
        let pid = program.pid().to_string();
        let listed = |limit: u32| {
            let output = run_limited(&format!("-n {limit}"), &["ps"]);
            (output.stdout.contains(&pid), output)
        };
        for limit in 8..24 {
            let (is_listed, output) = listed(limit);
            assert!(is_listed || output.code == 1 && output.stderr.contains("Too many open files"), "{runtime}, {limit}: {output:?}");
        }
        let (_, least) = listed(12);
        assert!(least.stderr.contains("`ulimit -n` is 12"), "{runtime}: {least:?}");
    });
}

#[test]
fn recording_ends_at_the_maximum_size_of_files() {
    runtimes::each(runtimes::with("known"), |runtime| {
        let mut program = runtime.program("known").start();
        program.command("spend 600000");
        let place = folder();
        let file = place.path().join("a.nettrace");
        let words = ["trace", &program.pid().to_string(), "--profile", "cpu-sampling", "-o", file.to_str().unwrap()];
        let output = run_limited("-f 20", &words);
        assert!(output.code == 1 && output.stderr.contains("File too large"), "{runtime}: {output:?}");
        assert!(output.stderr.contains("NOT complete"), "{runtime}: {output:?}");
        assert!(file.with_extension("nettrace.partial").exists() && program.answers(), "{runtime}");
    });
}

/// Most systems set a low limit, but allow a higher one. Each sampled thread takes an open file.
#[test]
fn limit_of_open_files_is_raised() {
    runtimes::each_in_turn(runtimes::since(9, runtimes::with("known")), |runtime| {
        let mut program = runtime.program("known").start();
        program.command("spend 600000");
        let output = run_limited("-Sn 40", &["cpu", &program.pid().to_string(), "--duration", "500ms", "--json"]);
        if output.stderr.contains("cannot be sampled") && !output.stderr.contains("ulimit -n") {
            return runtimes::skip("the kernel does not allow sampling here");
        }
        assert_eq!((output.code, &output.json()["missed_threads"]), (0, &serde_json::json!(0)), "{runtime}: {}", output.stderr);
    });
}

/// Returns whether every thread is traced.
fn is_traced(pid: u32) -> bool {
    fs::read_dir(format!("/proc/{pid}/task")).unwrap().all(|thread| {
        let status = fs::read_to_string(thread.unwrap().path().join("status")).unwrap_or_default();
        status.lines().any(|line| line.strip_prefix("TracerPid:").is_some_and(|tracer| tracer.trim() != "0"))
    })
}

/// Returns a child of any of its threads.
fn child(pid: u32) -> Option<rustix::process::Pid> {
    let threads = fs::read_dir(format!("/proc/{pid}/task")).ok()?;
    let children: String = threads.filter_map(|thread| fs::read_to_string(thread.ok()?.path().join("children")).ok()).collect();
    children.split_whitespace().next()?.parse().ok().and_then(rustix::process::Pid::from_raw)
}
