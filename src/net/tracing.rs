//! Explains why a process may not be traced. A dump is written by a program that traces the process, with the process's own rights: an obstacle to
//! that appears neither in the runtime's reply nor in the client's rights.

use std::fs;

use crate::model::Obstacle;

/// The kernel's rule for tracing processes; absent without the Yama module.
const SCOPE: &str = "/proc/sys/kernel/yama/ptrace_scope";

/// Number of the capability to trace other processes (Linux, `capability.h`).
const SYS_PTRACE: u32 = 19;

/// How to obtain the capability, which a root user in a container lacks by default.
pub(super) const ADD_SYS_PTRACE: &str =
    "start its container with `--cap-add SYS_PTRACE` (docker, podman), or with SYS_PTRACE in securityContext.capabilities.add (Kubernetes)";

/// Returns what may prevent a process from being traced by its own child, and a remedy. Best effort: `None` if nothing is found.
pub fn untraceable(pid: u32) -> Option<&'static Obstacle> {
    obstacle(&read(SCOPE), &read(&format!("/proc/{pid}/status")))
}

/// Returns whether this process has `CAP_SYS_PTRACE`, which access to the files of other users' processes requires.
pub(super) fn may_trace_others() -> bool {
    has_sys_ptrace(&read("/proc/self/status"))
}

/// Reads a file, which contains the name of the process: any bytes.
fn read(path: &str) -> String {
    String::from_utf8_lossy(&fs::read(path).unwrap_or_default()).into_owned()
}

fn obstacle(scope: &str, status: &str) -> Option<&'static Obstacle> {
    let is_filtered = || status.lines().any(|line| line.strip_prefix("Seccomp:").is_some_and(|mode| mode.trim() != "0"));
    Some(match scope.trim() {
        // 1 is no obstacle: the runtime declares its dump program as the permitted tracer.
        "2" if !has_sys_ptrace(status) => &Obstacle {
            what: "kernel.yama.ptrace_scope is 2, and only root may trace",
            remedy: "run `sudo sysctl kernel.yama.ptrace_scope=1` for the duration of the dump",
        },
        "3" => &Obstacle { what: "kernel.yama.ptrace_scope is 3, which forbids tracing", remedy: "restart the machine with another value" },
        _ if is_filtered() => &Obstacle {
            what: "the process runs under a seccomp filter, as in a container, which may forbid tracing",
            remedy: ADD_SYS_PTRACE,
        },
        _ => return None,
    })
}

/// Returns whether the process, and so its dump program, has `CAP_SYS_PTRACE`, as root's processes do.
fn has_sys_ptrace(status: &str) -> bool {
    let held = status.lines().find_map(|line| u64::from_str_radix(line.strip_prefix("CapEff:")?.trim(), 16).ok());
    held.is_some_and(|held| held >> SYS_PTRACE & 1 == 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_ptrace_restriction_has_a_remedy() {
        for (scope, status, words) in [
            ("0\n", "Name:\tx\nSeccomp:\t0\n", None),
            ("", "", None),
            ("1\n", "Seccomp:\t0\n", None),
            ("2\n", "Seccomp:\t2\n", Some("sudo sysctl kernel.yama.ptrace_scope=1")),
            ("2\n", "Seccomp:\t0\nCapEff:\t000001fffff7ffff\n", Some("sudo sysctl kernel.yama.ptrace_scope=1")),
            ("2\n", "Seccomp:\t0\nCapEff:\t000001ffffffffff\n", None),
            ("3\n", "CapEff:\t000001ffffffffff\n", Some("restart")),
            ("1\n", "Name:\tx\nSeccomp:\t2\nSeccomp_filters:\t1\n", Some("--cap-add SYS_PTRACE")),
        ] {
            let found = obstacle(scope, status);
            assert_eq!(found.is_some(), words.is_some(), "{scope} {status}");
            assert!(words.is_none_or(|words| found.unwrap().remedy.contains(words)), "{found:?}");
        }
    }

    #[test]
    fn process_name_need_not_be_text() {
        let named = std::thread::spawn(|| {
            rustix::thread::set_name(c"\xff\xfe").unwrap();
            read("/proc/thread-self/status")
        });
        let status = named.join().unwrap();
        assert!(status.starts_with("Name:\t\u{fffd}") && status.contains("\nCapEff:\t"), "{status}");
    }
}
