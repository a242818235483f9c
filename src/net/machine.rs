//! Checks of what determines which processes are visible on this machine, and what can be requested from them.

use std::fs;
use std::path::Path;

use super::discovery::Sources;
use super::perf::CpuSampler;
use super::proc::Proc;
use super::proc::container::in_initial_pid_namespace;
use super::tracing::{ADD_SYS_PTRACE, may_trace_others, untraceable};
use super::user_events::Kernel;
use crate::model::{Check, Obstacle, SafeText};

/// Checks permissions, namespaces, folders and kernel settings. Blocks on the file system.
pub fn machine_checks(sources: &Sources) -> Vec<Check> {
    let root = rustix::process::geteuid().is_root();
    let mut checks: Vec<_> = sources.usual_directories().map(folder).collect();
    checks.extend([user(root), process_list(sources), namespace(), perf_events(sources, root), core_dumps(), user_events()]);
    checks
}

fn folder(path: &Path) -> Check {
    let shown = SafeText::from_path(path);
    match fs::read_dir(path) {
        Ok(_) => Check::good("sockets", format!("{shown} is searched, and the TMPDIR of each process")),
        Err(error) => Check::bad("sockets", format!("{shown} cannot be listed: {error}"), "check TMPDIR and the folder's permissions"),
    }
}

fn user(root: bool) -> Check {
    if root && !may_trace_others() {
        return Check::bad(
            "user",
            "dn-top runs as root without CAP_SYS_PTRACE: processes of other users and in other containers cannot be attached to".to_owned(),
            ADD_SYS_PTRACE,
        );
    }
    if root {
        return Check::good("user", "root: processes of all users can be attached to".to_owned());
    }
    let uid = rustix::process::geteuid().as_raw();
    Check::bad("user", format!("uid {uid}: processes of other users are listed and cannot be attached to"), "run `sudo dn-top`")
}

fn process_list(sources: &Sources) -> Check {
    match Proc::open(&sources.proc) {
        Err(error) => Check::bad("/proc", format!("cannot be read: {error}"), "mount it: without it, no processes are found"),
        Ok(proc) if proc.stat(1).is_err() => Check::bad(
            "/proc",
            "hides the processes of other users (mount option hidepid)".to_owned(),
            "run `sudo dn-top`, or mount it with hidepid=0",
        ),
        Ok(_) => Check::good("/proc", "shows the processes of all users".to_owned()),
    }
}

fn namespace() -> Check {
    match in_initial_pid_namespace() {
        Ok(true) => Check::good("namespace", "host pid namespace: processes in containers are visible".to_owned()),
        Ok(false) => Check::bad(
            "namespace",
            "container pid namespace: only its own processes are visible".to_owned(),
            "run dn-top on the host, or the container with `--pid=host`",
        ),
        Err(error) => Check::bad("namespace", format!("unknown: {error}"), "mount /proc"),
    }
}

fn perf_events(sources: &Sources, root: bool) -> Check {
    const NAME: &str = "CPU samples";
    let setting = Proc::open(&sources.proc).ok().and_then(|proc| proc.setting("sys/kernel/perf_event_paranoid"));
    match setting {
        None => Check::bad(NAME, "the kernel has no perf events".to_owned(), "`dn-top report` and traces use the runtime's own sampler"),
        // What the setting means depends on the kernel, and there are other reasons.
        Some(paranoid) if !CpuSampler::may_sample_own() => match paranoid {
            3.. if !root => Check::bad(
                NAME,
                format!("denied to users without CAP_PERFMON (kernel.perf_event_paranoid is {paranoid})"),
                "`sudo sysctl kernel.perf_event_paranoid=2`, or sudo",
            ),
            _ => Check::bad(
                NAME,
                format!("denied by missing capabilities, a seccomp filter or a security module (kernel.perf_event_paranoid is {paranoid})"),
                "run dn-top outside of the container",
            ),
        },
        Some(_) if root => Check::good(NAME, "all processes and the kernel can be sampled".to_owned()),
        Some(paranoid) if paranoid > 1 => {
            Check::good(NAME, format!("own processes can be sampled, the kernel cannot (kernel.perf_event_paranoid is {paranoid})"))
        }
        Some(paranoid) => {
            Check::good(NAME, format!("own processes and the kernel can be sampled (kernel.perf_event_paranoid is {paranoid})"))
        }
    }
}

fn core_dumps() -> Check {
    // A dump is written by a program that the target itself starts. Processes of this user are taken to have the same restrictions as this one.
    match untraceable(std::process::id()) {
        Some(&Obstacle { what, remedy }) => Check::bad("core dumps", what.to_owned(), remedy),
        None => Check::good("core dumps", "dump programs may trace their processes".to_owned()),
    }
}

fn user_events() -> Check {
    let missing = Kernel::machine().missing();
    if missing.is_empty() {
        return Check::good("user_events", "available to .NET 10 and later".to_owned());
    }
    Check::optional("user_events", missing.iter().map(ToString::to_string).collect::<Vec<_>>().join("; "))
}
