//! Containers: IDs in control group paths, and whether this process runs in one.

use std::path::Path;
use std::{fs, io};

/// The initial pid namespace of a machine (Linux, `proc_ns.h`: PROC_PID_INIT_INO).
const INITIAL_PID_NAMESPACE: &str = "pid:[4026531836]";

/// Length of the full ID, as every container engine writes it.
const FULL: usize = 64;
/// Length of the ID as usually shown.
const SHORT: usize = 12;

/// Returns the first 12 characters of the innermost container ID in the text of `/proc/PID/cgroup`.
///
/// Docker, containerd, CRI-O and Podman use different paths around it, on both versions of control groups; the 64 hexadecimal digits are common to
/// all.
pub(super) fn id(cgroup: &[u8]) -> Option<String> {
    let id = cgroup.split(|byte| !byte.is_ascii_hexdigit()).rfind(|word| word.len() == FULL)?;
    Some(String::from_utf8_lossy(&id[..SHORT]).into_owned())
}

/// Returns whether this process is in the pid namespace of the machine, where the processes of all containers are visible.
///
/// # Errors
/// There is no /proc.
pub(in crate::net) fn in_initial_pid_namespace() -> io::Result<bool> {
    Ok(fs::read_link("/proc/self/ns/pid")? == Path::new(INITIAL_PID_NAMESPACE))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn container_ids_of_all_engines_are_found() {
        let full = "3f2a9c0d4e5b".to_owned() + &"0123456789abcdef".repeat(4)[..52];
        for path in [
            format!("0::/system.slice/docker-{full}.scope\n"),
            format!("12:pids:/docker/{full}\n1:name=systemd:/docker/{full}\n"),
            format!("0::/kubepods.slice/kubepods-pod0a1b.slice/cri-containerd-{full}.scope"),
            format!("0::/machine.slice/libpod-{full}.scope/container"),
            format!("0::/docker/{}/docker/{full}", "f".repeat(64)),
        ] {
            assert_eq!(id(path.as_bytes()).as_deref(), Some("3f2a9c0d4e5b"), "{path}");
        }
        for path in ["0::/init.scope\n".to_owned(), format!("0::/x-{}", &full[1..]), format!("0::/{full}a")] {
            assert_eq!(id(path.as_bytes()), None, "{path}");
        }
    }
}
