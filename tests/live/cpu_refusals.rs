//! Kernels that refuse to sample a process: each reason is reported with a remedy, and the process is not affected.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use rustix::io::Errno;
use serde_json::{Value, json};

use crate::support::runtimes::{self, Runtime};
use crate::support::{Invocation, Launch, Output, Program, TIMEOUT, folder, poll};

/// Compiles `tests/tools/refuse_perf.c`; `None` without a compiler.
fn refuse_perf(folder: &Path) -> Option<PathBuf> {
    let (source, program) = (Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/tools/refuse_perf.c"), folder.join("refuse_perf"));
    let Ok(compiled) = Command::new("cc").arg("-o").arg(&program).arg(source).status() else {
        runtimes::skip("cc is not installed");
        return None;
    };
    assert!(compiled.success());
    Some(program)
}

const DN_TOP: &str = env!("CARGO_BIN_EXE_dn-top");

/// Runs `cpu` while the kernel returns this error.
fn cpu_refused(refuse: &Path, errno: Errno, program: &Program) -> Output {
    let (errno, pid) = (errno.raw_os_error().to_string(), program.pid().to_string());
    Invocation::of(refuse, [&errno, DN_TOP, "cpu", &pid, "--duration", "200ms"]).run()
}

#[test]
fn each_perf_event_error_is_explained() {
    let place = folder();
    let Some(refuse) = refuse_perf(place.path()) else { return };
    runtimes::each(runtimes::all(), |runtime| {
        let mut program = runtime.any().start();
        for (errno, code, words, remedy) in [
            (Errno::PERM, 4, "perf_event_open is not permitted (EPERM)", "run dn-top outside of the container"),
            (Errno::ACCESS, 4, "the kernel denies perf events", "perf_event_paranoid|security module"),
            (Errno::NOSYS, 1, "no perf events", "seccomp filter"),
            (Errno::MFILE, 1, "take an open file each", "`ulimit -n`"),
            (Errno::NOSPC, 1, "the kernel has no resources for the perf events of", "stop other profilers"),
        ] {
            let output = cpu_refused(&refuse, errno, &program);
            let stderr = &output.stderr;
            assert!(output.code == code && output.stdout.is_empty(), "{runtime}, {errno:?}: {} {stderr}", output.code);
            assert!(stderr.contains(&format!("process {} ", program.pid())) && stderr.contains(words), "{runtime}, {errno:?}: {stderr}");
            assert!(remedy.split('|').any(|remedy| stderr.contains(remedy)), "{runtime}, {errno:?}: {stderr}");
            assert_eq!(stderr.trim_end().lines().count(), 1, "{runtime}, {errno:?}: {stderr}");
        }
        assert!(program.is_alive() && program.answers(), "{runtime}");
    });
}

/// The meaning of `perf_event_paranoid` depends on the kernel, and a container may filter the call: `doctor` tries it.
#[test]
fn doctor_reports_whether_the_kernel_samples() {
    let place = folder();
    let Some(refuse) = refuse_perf(place.path()) else { return };
    let line = |output: Output| output.stdout.lines().find(|line| line.contains("CPU samples")).unwrap().to_owned();
    for errno in [Errno::ACCESS, Errno::PERM, Errno::NOSYS] {
        let refused = line(Invocation::of(&refuse, [&errno.raw_os_error().to_string(), DN_TOP, "doctor"]).run());
        assert!(refused.starts_with("!  CPU samples") && refused.contains("denied"), "{errno:?}: {refused}");
    }
    let allowed = line(Invocation::new(["doctor"]).run());
    assert!(!rustix::process::geteuid().is_root() || allowed.starts_with("ok CPU samples"), "{allowed}");
}

#[test]
fn a_recording_falls_back_to_the_runtimes_samples() {
    let place = folder();
    let Some(refuse) = refuse_perf(place.path()) else { return };
    runtimes::each_in_turn(runtimes::with("known"), |runtime| {
        let mut program = runtime.program("known").start();
        program.command("spend 600000");
        let file = place.path().join(format!("{}.nettrace", program.pid()));
        let (path, pid, errno) = (file.to_str().unwrap(), program.pid().to_string(), Errno::PERM.raw_os_error().to_string());
        // On a busy machine a second may be too short to find out that the program works.
        let while_busy = |words: &[&str]| {
            let found = poll(TIMEOUT, || {
                let before = program.cpu_time();
                let output = Invocation::of(&refuse, words).run();
                let is_busy = program.cpu_time() - before > Duration::from_millis(900);
                if !is_busy && file.exists() {
                    std::fs::remove_file(&file).unwrap();
                }
                is_busy.then_some(output)
            });
            found.unwrap_or_else(|| panic!("{runtime}: the program hardly gets any CPU time"))
        };
        let output = while_busy(&[&errno, DN_TOP, "trace", &pid, "--profile", "cpu", "--duration", "1s", "-o", path, "--json"]);
        assert!(output.code == 0 && output.stderr.contains("thread time (managed only, includes waiting)"), "{runtime}: {}", output.stderr);
        assert!(output.stderr.contains("CAP_PERFMON"), "{runtime}: {}", output.stderr);
        let report = Invocation::new(["report", path, "--json"]).run().json();
        assert_eq!((&report["source"], &report["methods"][0]["name"]), (&json!("threads"), &json!("Known.Burn(int)")), "{runtime}");
        let output = while_busy(&[&errno, DN_TOP, "slow", &pid, "--duration", "1s", "--json"]);
        assert!(output.code == 0 && output.stderr.contains("thread time (managed only, includes waiting)"), "{runtime}: {}", output.stderr);
        let causes = output.json()["causes"].clone();
        let is_named = |cause: &Value| cause["cause"] == "cpu" && cause["text"].as_str().unwrap().contains("Known.");
        assert!(causes.as_array().unwrap().iter().any(is_named), "{runtime}: {causes:#}");
    });
}

/// Returns a command prefix that runs a program as root without any capabilities, which the kernel treats like any other user.
pub(crate) fn without_capabilities() -> Option<[&'static str; 3]> {
    let is_root = rustix::process::geteuid().is_root();
    let can = is_root && Command::new("setpriv").args(["--bounding-set=-all", "true"]).status().is_ok_and(|status| status.success());
    if !can {
        runtimes::skip("only root can give up capabilities, with setpriv");
    }
    can.then_some(["setpriv", "--bounding-set=-all", "--inh-caps=-all"])
}

/// Starts `known` with such a prefix.
pub(crate) fn start_bare(runtime: &Runtime, bare: [&str; 3]) -> Program {
    let known = runtime.program("known");
    let words = bare[1..].iter().map(PathBuf::from).chain(known.words().iter().cloned());
    let launch = words.fold(Launch::new(Path::new(bare[0])), Launch::arg);
    known.variables().iter().fold(launch, |launch, (name, value)| launch.env(name, value)).start()
}

/// Runs the rest of the command as another user.
const SECOND_USER: [&str; 4] = ["setpriv", "--reuid=65533", "--regid=65533", "--clear-groups"];

/// Another user cannot sample a process of root, but root can sample theirs.
#[test]
fn only_root_can_sample_process_of_another_user() {
    let can = Command::new(SECOND_USER[0]).args(&SECOND_USER[1..]).arg("true").status().is_ok_and(|status| status.success());
    if !rustix::process::geteuid().is_root() || !can {
        return runtimes::skip("only root can run programs as a second user, with setpriv");
    }
    if !runtimes::namespaces() {
        return;
    }
    runtimes::each_in_turn(runtimes::with("known"), |runtime| {
        let mut program = runtime.program("known").start();
        program.command("spend 600000");
        let socket = program.socket().to_str().unwrap().to_owned();
        let pid = (program.pid().to_string(), "belongs to another user (uid 0): permission denied");
        for (target, words) in [pid, (socket, "only the owner of its socket and root may attach")] {
            let output =
                Invocation::of(SECOND_USER[0], [&SECOND_USER[1..], &[DN_TOP, "cpu", &target, "--duration", "200ms"]].concat()).run();
            let stderr = &output.stderr;
            assert!(output.code == 4 && stderr.contains(words) && output.stdout.is_empty(), "{runtime}: {} {stderr}", output.code);
        }
        assert!(program.is_alive() && program.answers(), "{runtime}");
        drop(program);

        // The runtimes may be in a folder inaccessible to other users: they are mounted at another path.
        let known = runtime.program("known");
        let root = known.words()[0].ancestors().nth(2).unwrap();
        let script = "chown 65533 . && mount --bind \"$1\" /mnt && shift && exec \"$@\"";
        let seen = known.words().iter().map(|word| word.strip_prefix(root).map_or(word.clone(), |inside| Path::new("/mnt").join(inside)));
        let words = ["-m", "sh", "-c", script, "sh"].map(PathBuf::from).into_iter().chain([root.to_owned()]);
        let words = words.chain(SECOND_USER.map(PathBuf::from)).chain(seen);
        let launch = words.fold(Launch::new(Path::new("unshare")), Launch::arg);
        let mut program = known.variables().iter().fold(launch, |launch, (name, value)| launch.env(name, value)).start();
        program.command("spend 600000");
        let owner = std::os::unix::fs::MetadataExt::uid(&std::fs::metadata(format!("/proc/{}/task", program.pid())).unwrap());
        let pid = program.pid().to_string();
        let output = Invocation::new(["cpu", &pid, "--duration", "1s", "--json"]).run();
        if output.stderr.contains("perf events") && output.code == 4 {
            return runtimes::skip(&output.stderr);
        }
        assert_eq!((owner, output.code), (65533, 0), "{runtime}: {}", output.stderr);
        // With little CPU time, starting to burn it takes the runtime about as much.
        let document = output.json();
        let managed = document["methods"].as_array().unwrap().iter().find(|method| method["kind"] == "managed");
        assert_eq!(managed.unwrap()["name"], "Known.Burn(int)", "{runtime}: {}", output.stdout);
        // Its own user can sample it, with less detail.
        let own = Invocation::of(SECOND_USER[0], [&SECOND_USER[1..], &[DN_TOP, "cpu", &pid, "--duration", "1s", "--json"]].concat()).run();
        if own.stderr.contains("perf events") && own.code == 4 {
            return runtimes::skip(&own.stderr);
        }
        assert_eq!(own.code, 0, "{runtime}: {}", own.stderr);
        let profile = own.json();
        assert_eq!((&profile["methods"][0]["name"], &profile["lost_samples"]), (&json!("Known.Burn(int)"), &json!(0)), "{runtime}");
        if profile["kernel_visible"] == false {
            let waits = (&profile["waiting_methods"], &profile["lost_waits"], &profile["unfollowed_threads"]);
            assert_eq!(waits, (&json!([]), &json!(0), &json!(0)), "{runtime}");
        }
        assert!(program.is_alive() && program.answers(), "{runtime}");
    });
}

fn has_capabilities(pid: u32) -> bool {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    status.lines().any(|line| line.strip_prefix("CapEff:").is_some_and(|set| !set.trim().trim_matches('0').is_empty()))
}

#[test]
fn process_with_more_privileges_is_not_sampled() {
    let Some(bare) = without_capabilities() else { return };
    runtimes::each(runtimes::all(), |runtime| {
        let mut program = runtime.any().start();
        assert!(has_capabilities(program.pid()), "{runtime}");
        let socket = program.socket().to_str().unwrap().to_owned();
        let output = Invocation::of(bare[0], [&bare[1..], &[DN_TOP, "cpu", &socket, "--duration", "200ms"]].concat()).run();
        assert!(output.code == 4 && output.stderr.contains("(EACCES)"), "{runtime}: {} {}", output.code, output.stderr);
        assert!(program.is_alive() && program.answers(), "{runtime}");
    });
}

#[test]
fn perf_event_paranoid_setting_is_explained() {
    let place = folder();
    let Some(refuse) = refuse_perf(place.path()) else { return };
    if !runtimes::namespaces() {
        return;
    }
    let setting = place.path().join("perf_event_paranoid");
    std::fs::write(&setting, "3\n").unwrap();
    runtimes::each(runtimes::all(), |runtime| {
        let program = runtime.any().start();
        let (pid, errno) = (program.pid().to_string(), Errno::ACCESS.raw_os_error().to_string());
        // The machine's setting is not changed: only dn-top sees another value.
        let script = "mount --bind \"$1\" /proc/sys/kernel/perf_event_paranoid && shift && exec \"$@\"";
        let (setting, refuse) = (setting.to_str().unwrap(), refuse.to_str().unwrap());
        let words = ["-m", "sh", "-c", script, "sh", setting, refuse, &errno, DN_TOP, "cpu", &pid, "--duration", "200ms"];
        let output = Invocation::of("unshare", words).run();
        let stderr = &output.stderr;
        assert!(output.code == 4 && stderr.contains("kernel.perf_event_paranoid is 3"), "{runtime}: {} {stderr}", output.code);
        assert!(stderr.contains("`sudo sysctl kernel.perf_event_paranoid=2`"), "{runtime}: {stderr}");
    });
}

#[test]
fn locked_memory_limit_is_explained() {
    let Some(bare) = without_capabilities() else { return };
    runtimes::each_in_turn(runtimes::with("known"), |runtime| {
        let mut program = start_bare(runtime, bare);
        assert!(!has_capabilities(program.pid()), "{runtime}");
        // Even the smallest ring buffers of its threads exceed perf_event_mlock_kb of two processors.
        program.command("convoy 400 600000");
        let task = format!("/proc/{}/task", program.pid());
        let threads = || (std::fs::read_dir(&task).unwrap().count() > 400).then_some(());
        poll(TIMEOUT, threads).unwrap();
        let pid = program.pid().to_string();
        let limited = |kilobytes: &str| {
            let script = format!("ulimit -l {kilobytes} && exec \"$@\"");
            let cpu = [&["-c", &script, "sh"], &bare[..], &[DN_TOP, "cpu", &pid, "--duration", "500ms", "--json"]].concat();
            Invocation::of("bash", cpu).run()
        };
        let output = limited("0");
        let kb = std::fs::read_to_string("/proc/sys/kernel/perf_event_mlock_kb").unwrap().trim().parse::<usize>().unwrap();
        if kb * std::thread::available_parallelism().unwrap().get() > 400 * 12 {
            return runtimes::skip("kernel.perf_event_mlock_kb of all processors is enough for 400 threads");
        }
        let stderr = &output.stderr;
        assert!(output.code == 1 && stderr.contains("exceed the memory that a user may lock"), "{runtime}: {} {stderr}", output.code);
        assert!(stderr.contains("kernel.perf_event_mlock_kb") && stderr.contains("`ulimit -l`"), "{runtime}: {stderr}");
        // The usual limit is sufficient.
        let output = limited("8192");
        assert_eq!((output.code, &output.json()["missed_threads"]), (0, &json!(0)), "{runtime}: {}", output.stderr);
        assert!(output.json()["threads"].as_array().unwrap().len() > 400, "{runtime}");
        assert!(program.is_alive() && program.answers(), "{runtime}");
    });
}
