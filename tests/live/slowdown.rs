//! Diagnosis of slow processes: the first cause reported is the actual one.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Instant;

use dn_top::clr::{SLOW_PROFILE, select};
use dn_top::diagnosis::{Cause, Evidence, Slowdown, Thresholds, slowdowns};
use dn_top::model::Recording;
use tempfile::TempDir;

use crate::cpu::can_sample;
use crate::heap::dashboard;
use crate::recording_analysis::record;
use crate::requests::serve;
use crate::support::runtimes::{self, Runtime};
use crate::support::screen::ENTER;
use crate::support::{BusyProcessors, Invocation, Program, TIMEOUT, folder, poll};

/// Returns a folder with a configuration in which waiting for CPU is never a problem: other load on this machine is not under test.
pub(crate) fn config_without_cpu_wait() -> TempDir {
    let home = folder();
    fs::create_dir(home.path().join("dn-top")).unwrap();
    fs::write(home.path().join("dn-top/config.toml"), "[thresholds]\ncpu-wait = 100.0\n").unwrap();
    home
}

/// Returns all causes in a recording as it stands, except other load on this machine.
fn current_slowdowns(recording: &Recording, runtime: &Runtime) -> Vec<Slowdown> {
    let analysis = recording.analysis.as_ref();
    analysis.map_or_else(Vec::new, |analysis| {
        let (threads, elapsed, what) = (&recording.threads, recording.elapsed, [SLOW_PROFILE.to_owned()]);
        let (native_aot, runtime, thresholds) = (runtime.is_native_aot(), Some(runtime.major()), &Thresholds::default());
        let mut all = slowdowns(&Evidence {
            analysis,
            threads,
            elapsed,
            recorded: &what,
            runtime,
            native_aot,
            cpu_constraints: recording.cpu_constraints,
            thresholds,
        });
        all.retain(|slowdown| slowdown.cause != Cause::CpuWait);
        all
    })
}

/// Panics unless a problem that is caused in a real program is reported first, with the responsible method, if any.
async fn assert_first_cause(runtime: &Runtime, command: &str, cause: Cause, culprit: &str) {
    let mut program = runtime.program("known").start();
    // Only kernel samples show which methods are compiled, and how long that takes.
    if cause == Cause::Jit && !can_sample(&program) {
        return runtimes::skip("the kernel does not sample");
    }
    let place = folder();
    let config = select(&[SLOW_PROFILE], &[] as &[&str], None).unwrap().config;
    let recording = record(&mut program, config, &place.path().join("a.nettrace"), |program, look| {
        // On a busy machine, a thread that is always running uses less of a core.
        let named = |all: &[Slowdown]| {
            all.first()
                .is_some_and(|first| first.cause == cause && (first.is_problem() || cause == Cause::Cpu) && first.text.contains(culprit))
        };
        let seen = poll(TIMEOUT, || {
            program.carry_out(command);
            Some(current_slowdowns(&look(), runtime)).filter(|all| named(all))
        });
        assert!(seen.is_some(), "{runtime}, {command}: {:#?}", current_slowdowns(&look(), runtime));
    })
    .await;
    // The same is true for the whole recording.
    let all = current_slowdowns(&recording, runtime);
    assert_eq!(all[0].cause, cause, "{runtime}, {command}: {all:#?}");
}

#[test]
fn cause_of_work_is_reported_first() {
    runtimes::each_async_in_turn(runtimes::with("known"), async |runtime| {
        for (command, cause, culprit) in [
            ("throw 2000", Cause::Exceptions, "System.InvalidOperationException"),
            ("churn 2000", Cause::Gc, "large objects"),
            ("spend 2000", Cause::Cpu, "most of it in Known"),
            ("compile 2000", Cause::Jit, " of one core is spent in JIT"),
        ] {
            assert_first_cause(runtime, command, cause, culprit).await;
        }
    });
}

/// These programs use little CPU time, so that the runtimes do not disturb one another.
#[test]
fn cause_of_waiting_or_growth_is_reported_first() {
    runtimes::each_async(runtimes::with("known"), async |runtime| {
        for (command, cause, culprit) in [
            ("convoy 10 2000", Cause::Locks, "Known.Convoy.lambda_0"),
            ("occupy 6 2000", Cause::ThreadPool, "most wait in Known"),
            ("leak 6", Cause::Gc, "The heap grew from "),
        ] {
            assert_first_cause(runtime, command, cause, culprit).await;
        }
    });
}

/// A program that waits for another: the destination of its requests is reported. Outgoing requests are reported since .NET 5.
#[test]
fn a_slow_dependency_is_the_first_cause() {
    runtimes::each_async(runtimes::since(5, runtimes::with("web")), async |runtime| {
        let (_server, url) = serve(runtime);
        let mut program = runtime.program("fetch").start();
        let place = folder();
        let config = select(&[SLOW_PROFILE], &[] as &[&str], None).unwrap().config;
        let recording = record(&mut program, config, &place.path().join("a.nettrace"), |program, look| {
            let seen = poll(TIMEOUT, || {
                program.carry_out(&format!("get 2 {url}/slow/1500"));
                current_slowdowns(&look(), runtime).into_iter().next().filter(|first| first.cause == Cause::Http && first.is_problem())
            });
            assert!(seen.is_some(), "{runtime}: {:#?}", current_slowdowns(&look(), runtime));
        })
        .await;
        let first = &current_slowdowns(&recording, runtime)[0];
        eprintln!("{runtime}: F: {}", first.text);
        assert!(
            first.cause == Cause::Http && first.text.contains(&format!("most time with GET {url}/slow/{{number}}")),
            "{runtime}: {first:#?}"
        );
    });
}

/// A program that does little except write log messages: the writing method is reported.
#[test]
fn a_flood_of_log_messages_is_the_first_cause() {
    runtimes::each_async_in_turn(runtimes::with("web"), async |runtime| {
        let (mut server, url) = serve(runtime);
        let mut client = runtime.program("fetch").start();
        let place = folder();
        let config = select(&[SLOW_PROFILE], &[] as &[&str], None).unwrap().config;
        let recording = record(&mut server, config, &place.path().join("a.nettrace"), |_, look| {
            let seen = poll(TIMEOUT, || {
                client.carry_out(&format!("get 1 {url}/log/1500"));
                current_slowdowns(&look(), runtime).into_iter().next().filter(|first| first.cause == Cause::Logging && first.is_problem())
            });
            assert!(seen.is_some(), "{runtime}: {:#?}", current_slowdowns(&look(), runtime));
        })
        .await;
        let first = &current_slowdowns(&recording, runtime)[0];
        eprintln!("{runtime}: F: {}", first.text);
        assert!(first.cause == Cause::Logging && first.text.contains("most by Web.WriteLog"), "{runtime}: {first:#?}");
    });
}

/// Without the dashboard: for a process, and for the file of a recording made with the profile.
#[test]
fn slow_command_reports_cause() {
    runtimes::each_in_turn(runtimes::with("known"), |runtime| {
        let mut program = runtime.program("known").start();
        let (place, home, pid) = (folder(), config_without_cpu_wait(), program.pid().to_string());
        let command = |words: &[&str]| Invocation::new(words).env("XDG_CONFIG_HOME", home.path());
        let is_sampled = can_sample(&program);
        let file = place.path().join("a.nettrace");
        let file = file.to_str().unwrap();
        let running = [
            command(&["slow", &pid, "--duration", "5s", "--json"]).start(),
            command(&["trace", &pid, "--profile", SLOW_PROFILE, "--duration", "5s", "-o", file]).start(),
        ];
        for running in &running {
            running.wait_for_stderr("recording ");
        }
        assert!(program.answers());
        program.carry_out("throw 20000");
        let [slow, trace] = running;
        let slow = slow.wait();
        assert_eq!(slow.stderr.contains("is recorded instead of CPU time: "), !is_sampled, "{runtime}: {}", slow.stderr);
        let slow = slow.json();
        assert_eq!(trace.wait().code, 0, "{runtime}");
        let of_file = Invocation::new(["slow", file, "--json"]).run().json();
        for found in [&slow, &of_file] {
            assert_eq!((&found["slow_because_of"], &found["complete"]), (&"exceptions".into(), &true.into()), "{runtime}: {found:#}");
            let worst = &found["causes"][0];
            assert_eq!((&worst["cause"], &worst["problem"]), (&"exceptions".into(), &true.into()), "{runtime}: {found:#}");
            let text = worst["text"].as_str().unwrap();
            assert!(text.contains("are System.InvalidOperationException"), "{runtime}: {found:#}");
            // Kernel samples show the native code that throws; runtime samples show throwing methods since .NET 9.
            assert_eq!(worst["share"].as_f64() > Some(0.0), is_sampled || runtime.major() >= 9, "{runtime}: {found:#}");
            assert_eq!(text.contains("of the CPU time is spent throwing them"), is_sampled, "{runtime}: {found:#}");
        }
        for command in ["slow", "report"] {
            let output = Invocation::new([command, file]).run();
            assert!(output.stdout.contains("Slow because of: Exceptions\n"), "{runtime}: {command}: {}", output.stdout);
        }
        assert!(program.answers());
    });
}

/// Threads that were stuck before the recording: no event shows them. Before .NET 10, a lock may not be visible in the stack.
#[test]
fn threads_that_are_stuck_are_found() {
    runtimes::each(runtimes::with("known"), |runtime| {
        let mut program = runtime.program("known").start();
        let (home, pid) = (config_without_cpu_wait(), program.pid().to_string());
        let slow = || Invocation::new(["slow", &pid, "--duration", "3s", "--json"]).env("XDG_CONFIG_HOME", home.path()).run().json();
        let locks = |document: &serde_json::Value| {
            let causes = document["causes"].as_array().unwrap();
            let locks = causes.iter().find(|cause| cause["cause"] == "locks").unwrap();
            (causes[0]["cause"] == "locks", locks["text"].as_str().unwrap().to_owned())
        };
        let (is_first, text) = locks(&slow());
        assert!(!is_first && !text.contains("all the time"), "{runtime}: {text}");
        program.carry_out("wait-in 2");
        let expected = match runtime.major() {
            8 | 9 => "2 threads waited all the time, for a lock or in native code; most in Known.WaitForLock.",
            _ => "2 threads waited for locks all the time; most in Known.WaitForLock.",
        };
        let (is_first, text) = locks(&slow());
        assert!(is_first && text.ends_with(expected), "{runtime}: {is_first} {text}");
        assert!(program.is_alive(), "{runtime}");
    });
}

/// One thread sleeps with the lock, and the others wait for it, in turn: none of them waits all the time.
#[test]
fn waits_of_a_convoy_are_counted_once() {
    runtimes::each(runtimes::with("known"), |runtime| {
        let mut program = runtime.program("known").start();
        program.command("convoy 4 600000");
        let (home, pid) = (config_without_cpu_wait(), program.pid().to_string());
        let run = |command: &[&str]| Invocation::new(command).env("XDG_CONFIG_HOME", home.path()).run().json();
        let slow = run(&["slow", &pid, "--duration", "5s", "--json"]);
        let text = slow["causes"][0]["text"].as_str().unwrap();
        let waiters = text.split(" threads at a time").next().and_then(|before| before.rsplit(' ').next()).unwrap();
        let waiters: f64 = waiters.parse().unwrap_or_else(|_| panic!("{runtime}: {text}"));
        assert!((2.2..3.1).contains(&waiters) && !text.contains("all the time"), "{runtime}: {text}");
        assert!(program.is_alive(), "{runtime}");
    });
}

/// A thread that is ready to run but has no CPU is reported neither as waiting nor as hot code.
#[test]
fn cpu_wait_is_reported() {
    // All runtimes at once: the machine is of little use to other tests while it is this busy.
    let _busy = BusyProcessors::start();
    runtimes::each(runtimes::with("known"), |runtime| {
        let mut program = runtime.program("known").start();
        program.command("spend 600000");
        let found = Invocation::new(["slow", &program.pid().to_string(), "--duration", "5s", "--json"]).run().json();
        assert_eq!(found["slow_because_of"], "cpu-wait", "{runtime}: {found:#}");
        let share = |cause: &str| {
            let found = found["causes"].as_array().unwrap().iter().find(|found| found["cause"] == cause);
            found.and_then(|found| found["share"].as_f64()).unwrap()
        };
        eprintln!(
            "{runtime}: waits for CPU {:.2}, for something else {:.2}, runs {:.2}",
            share("cpu-wait"),
            share("waiting"),
            share("cpu")
        );
        assert!(share("cpu-wait") > 0.4 && share("waiting") < 0.3, "{runtime}: {found:#}");
        assert!(found["causes"][0]["text"].as_str().unwrap().contains(" CPUs, all others "), "{runtime}: {found:#}");
        assert!(program.answers(), "{runtime}");
    });
}

/// Of the threads of a convoy, one waits for a CPU at a time, and the others wait for the lock that it holds.
#[test]
fn lock_contention_is_reported_first_on_a_busy_machine() {
    let _busy = BusyProcessors::start();
    runtimes::each(runtimes::with("known"), |runtime| {
        let mut program = runtime.program("known").start();
        program.command("convoy 4 600000");
        let pid = program.pid().to_string();
        let slow = || Invocation::new(["slow", &pid, "--duration", "5s"]).run().stdout;
        let is_expected = |printed: &String| printed.contains("Slow because of: Lock contention; also: Waiting for CPU\n");
        // Other tests may leave so little CPU time that the threads rarely get as far as the lock.
        let mut printed = slow();
        for _ in 0..3 {
            if is_expected(&printed) {
                break;
            }
            printed = slow();
        }
        assert!(is_expected(&printed), "{runtime}: {printed}");
    });
}

/// A control group with a limit; `None` if it cannot be created.
pub(crate) struct LimitedGroup(PathBuf);

impl LimitedGroup {
    /// Creates a group with this quota in microseconds per 100 ms.
    fn cpu(name: &str, quota: &str) -> Option<Self> {
        Self::new(name, ("cpu", "cpu.cfs_quota_us", quota)).or_else(|| Self::new(name, ("", "cpu.max", &format!("{quota} 100000"))))
    }

    /// Creates a group with this number of bytes.
    pub(crate) fn memory(name: &str, bytes: &str) -> Option<Self> {
        Self::new(name, ("memory", "memory.limit_in_bytes", bytes)).or_else(|| Self::new(name, ("", "memory.max", bytes)))
    }

    /// Creates a group with this number of writes per second to a device.
    pub(crate) fn disk_writes(name: &str, device: u64, writes: u32) -> Option<Self> {
        let device = format!("{}:{}", rustix::fs::major(device), rustix::fs::minor(device));
        Self::new(name, ("blkio", "blkio.throttle.write_iops_device", &format!("{device} {writes}")))
            .or_else(|| Self::new(name, ("", "io.max", &format!("{device} wiops={writes}"))))
    }

    fn new(name: &str, (controller, file, limit): (&str, &str, &str)) -> Option<Self> {
        let folder = Path::new("/sys/fs/cgroup").join(controller).join(format!("dn-top-test-{name}-{}", std::process::id()));
        fs::create_dir(&folder).ok()?;
        let group = Self(folder);
        fs::write(group.0.join(file), limit).ok().map(|()| group)
    }

    pub(crate) fn add(&self, program: &Program) {
        fs::write(self.0.join("cgroup.procs"), program.pid().to_string()).unwrap();
    }
}

impl Drop for LimitedGroup {
    fn drop(&mut self) {
        // Busy until the process in it has exited.
        poll(TIMEOUT, || fs::remove_dir(&self.0).is_ok().then_some(()));
    }
}

#[test]
fn cpu_limit_is_reported() {
    runtimes::each(runtimes::with("known"), |runtime| {
        let Some(group) = LimitedGroup::cpu(&format!("slow-{}", runtime.version), "20000") else {
            return runtimes::skip("no control group with a CPU limit can be made here");
        };
        let mut program = runtime.program("known").start();
        group.add(&program);
        program.command("spend 600000");
        let found = Invocation::new(["slow", &program.pid().to_string(), "--duration", "5s", "--json"]).run().json();
        let first = &found["causes"][0];
        assert_eq!(first["cause"], "cpu-wait", "{runtime}: {found:#}");
        let text = first["text"].as_str().unwrap();
        eprintln!("{runtime}: {text}");
        assert!(text.contains("the CPU limit of its control group, 0.2 CPUs, throttled it in "), "{runtime}: {found:#}");
        let facts = Invocation::new(["info", &program.pid().to_string(), "--json"]).run().json();
        assert_eq!(facts["cpu_limit_cores"], 0.2, "{runtime}: {facts:#}");
        assert!(program.answers(), "{runtime}");
    });
}

/// The first screen shows it without a key press, with the current limit: a process may be moved to a control group with another limit.
#[test]
fn a_cpu_limit_is_on_the_first_screen() {
    runtimes::each(runtimes::with("known"), |runtime| {
        let groups = [("a", "20000"), ("b", "10000")].map(|(name, quota)| LimitedGroup::cpu(&format!("{name}-{}", runtime.version), quota));
        let [Some(group), Some(other)] = groups else { return runtimes::skip("no control group with a CPU limit can be made here") };
        let mut program = runtime.program("known").start();
        let pid = program.pid().to_string();
        program.command("spend 600000");
        let mut screen = Invocation::new(["--filter", &pid]).screen(120, 40);
        for (group, limit) in [(&group, "0.2 CPUs"), (&other, "0.1 CPUs")] {
            group.add(&program);
            let began = Instant::now();
            let finding = format!(" of periods, CPU limit {limit}");
            // As a finding, and in the details.
            let shown =
                screen.wait_until(&finding, |shown| shown.contains(&finding) && shown.matches(&format!("CPU limit {limit}")).count() > 1);
            let line = shown.lines().find(|line| line.contains(&finding)).unwrap_or_default();
            eprintln!("{runtime}: {:.1} s, no key: {}", began.elapsed().as_secs_f64(), line.trim_matches(['│', ' ', '┃']));
        }
        screen.keys("q");
        assert!(screen.wait_exit().success());
        assert!(program.answers(), "{runtime}");
    });
}

/// One key starts the recording and shows it; pressed again, it shows the current recording.
#[test]
fn one_dashboard_key_shows_cause() {
    runtimes::each_in_turn(runtimes::with("known"), |runtime| {
        let mut program = runtime.program("known").start();
        let home = config_without_cpu_wait();
        let dn_top = Invocation::new(["--watch", "never"]).env("XDG_CONFIG_HOME", home.path());
        let mut screen = dashboard(dn_top, runtime.name_of("known"), &program);
        screen.keys("F");
        screen.wait_for("recording  0:0");
        let seen = poll(TIMEOUT, || {
            program.carry_out("throw 2000");
            Some(screen.contents()).filter(|shown| shown.contains("Slow because of: Exceptions"))
        });
        let seen = seen.unwrap_or_else(|| screen.contents());
        for words in ["Slow because of: Exceptions", "stops at 0:30", "are System.InvalidOperationException"] {
            assert!(seen.contains(words), "{runtime}, {words}:\n{seen}");
        }
        screen.keys("1F");
        assert!(screen.wait_for("Slow because of: ").contains(" 1 recording "), "{runtime}");
        // Enter opens the tab of the cause.
        screen.keys(ENTER);
        screen.wait_for("COUNT");
        // Call tree of this exception type, then of all types.
        screen.keys("f");
        let words = ["throw sites of System.InvalidOperationException", "100 %", "Known.Main", "Known.Throw"];
        screen.wait_until("the call tree", |shown| words.iter().all(|words| shown.contains(words)));
        screen.keys("f");
        screen.wait_for("throw sites of all exceptions");
        screen.keys("f");
        screen.wait_for("LAST");
        screen.keys("t");
        screen.wait_until("it is done", |shown| !shown.contains(" 1 recording "));
        screen.keys("qq");
        assert!(screen.wait_exit().success(), "{runtime}");
        assert!(program.answers(), "{runtime}");
    });
}
