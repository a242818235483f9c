//! Explains why a process cannot be attached to: the problem and a remedy.

use std::path::Path;

use rustix::fs::{StatVfsMountFlags, fstatvfs};
use rustix::process::geteuid;

use super::processes::{ScannedProcess, SocketDir};
use super::sockets::Candidate;
use crate::model::{Contact, SafeText, Trouble};
use crate::net::endpoint::SocketName;
use crate::net::peer::PeerError;
use crate::net::proc::{Proc, container};
use crate::net::resolve::{self, Found};
use crate::net::stream::MAX_PATH_LENGTH;
use crate::net::tracing::ADD_SYS_PTRACE;

fn trouble(kind: Trouble, reason: String) -> Contact {
    Contact::Trouble { kind, reason: reason.into() }
}

/// The user of this process, and where it runs: what it can do about a denial.
#[derive(Debug, Clone, Copy)]
pub(super) struct Observer {
    pub(super) uid: u32,
    pub(super) is_in_container: bool,
}

impl Observer {
    pub(super) fn new() -> Self {
        Self { uid: geteuid().as_raw(), is_in_container: container::in_initial_pid_namespace().is_ok_and(|initial| !initial) }
    }

    /// Reports a process owned by another user, to which this one has no access.
    pub(super) fn denied(self, uid: u32, user: Option<&SafeText>) -> Contact {
        let who = match user {
            _ if uid == 0 => "root".to_owned(),
            Some(user) => format!("user {user}"),
            None => format!("user id {uid}"),
        };
        let how = match user {
            _ if self.uid == 0 => {
                format!("this root lacks CAP_SYS_PTRACE: run dn-top as that user, with `--user {uid}`, or {ADD_SYS_PTRACE}")
            }
            _ if uid == 0 => "only root may attach: run `sudo dn-top`".to_owned(),
            // Most containers have no `sudo`.
            _ if self.is_in_container => {
                format!(
                    "only that user and root may attach: run dn-top with `--user {uid}` (docker, podman), or with {uid} as securityContext.runAsUser (Kubernetes)"
                )
            }
            Some(user) => format!("only that user and root may attach: run `sudo -u {user} dn-top` or `sudo dn-top`"),
            None => format!("only that user and root may attach: run `sudo -u '#{uid}' dn-top` or `sudo dn-top`"),
        };
        trouble(Trouble::Denied, format!("it belongs to {who}, and {how}"))
    }

    /// Its files are not accessible although it belongs to our user: another namespace, or a process that protects itself.
    fn inaccessible(self, pid: u32) -> Contact {
        let how = match self.uid {
            0 => format!("this root lacks CAP_SYS_PTRACE: run dn-top outside of its container, or {ADD_SYS_PTRACE}"),
            _ => "it is in other namespaces or has more rights: run `sudo dn-top`".to_owned(),
        };
        trouble(Trouble::Denied, format!("its socket directory cannot be reached through /proc/{pid}/root; {how}"))
    }
}

/// Reports a socket whose process has exited, or was never visible to us.
pub(super) fn stale(name: SocketName, is_pid_reused: bool) -> Contact {
    let pid = name.pid;
    let what = if is_pid_reused { format!("process {pid} is a different process by now") } else { format!("there is no process {pid}") };
    trouble(Trouble::Stale, format!("{what}; this socket was left behind by a killed process, and its file can be deleted"))
}

/// Reports a file with the name of the process's socket that belongs to another user or is not a socket.
pub(super) fn foreign(path: &Path, candidate: Candidate, uid: u32) -> Contact {
    let why = if candidate.is_socket { PeerError::File { file: candidate.uid, process: uid } } else { PeerError::NotASocket };
    trouble(Trouble::Unverified, format!("{why} (socket {})", path.display()))
}

/// Reports a process that hosts a runtime but owns none of the sockets.
pub(super) fn without_socket(proc: &Proc, known: &ScannedProcess, observer: Observer, user: Option<&SafeText>) -> Contact {
    let (directory, obstacle) = match &known.socket_dir {
        SocketDir::Hidden if known.uid != observer.uid => return observer.denied(known.uid, user),
        SocketDir::Hidden => return observer.inaccessible(known.key.pid),
        SocketDir::Directory { path, process_path, .. } => {
            (process_path.as_path(), resolve::locate(path, Some(proc)).ok().and_then(|found| obstacle(&found, known.uid)))
        }
        SocketDir::Missing { process_path } => (process_path.as_path(), Some(MISSING)),
        SocketDir::Linked { process_path, link } => {
            let [directory, link] = [process_path, link].map(|path| path.display());
            let reason = format!(
                "its temporary directory {directory} is not searched, because users other than root could have put the link {link} there"
            );
            return trouble(Trouble::Unverified, reason);
        }
        SocketDir::Blockable { process_path, why } => {
            let how = "run dn-top as the user of the process";
            return trouble(
                Trouble::Unverified,
                format!("its temporary directory {} is not searched: {why}; {how}", process_path.display()),
            );
        }
    };
    let shown = directory.display();
    if proc.is_under_wine(known.key.pid) {
        let reason =
            "it is a program for Windows, whose runtime serves a pipe in place of a socket: run dn-top for Windows under the same Wine";
        return trouble(Trouble::Unsupported, reason.to_owned());
    }
    if let Some(switch) = proc.environ(known.key.pid).ok().and_then(|environ| environ.diagnostics_off()) {
        return trouble(Trouble::Disabled, format!("diagnostics are switched off by {switch} in its environment: restart it without"));
    }
    let length = directory.join(known.socket_name().to_string()).as_os_str().len();
    if length > MAX_PATH_LENGTH {
        let reason = format!(
            "its TMPDIR makes the socket's path {length} bytes long, and {MAX_PATH_LENGTH} is the limit for a socket: restart it with a shorter TMPDIR than {shown}"
        );
        return trouble(Trouble::Unsupported, reason);
    }
    let reason = match obstacle {
        _ if known.is_exiting(proc) => format!(
            "its socket was removed from {shown}, but not its debugger pipes: it is probably exiting, and something such as a finalizer keeps it \
             from ending, which a native debugger shows. If it is to run on, restart it to create the socket again"
        ),
        // The thread is only started after the socket has been created.
        _ if known.threads.server => {
            format!("its socket was removed from {shown}, perhaps by a clean-up of temporary files: restart the process to create it again")
        }
        Some((problem, remedy)) => format!(
            "its temporary directory {shown} {problem}, so the runtime could not create its socket: restart it with a TMPDIR that {remedy}"
        ),
        None => {
            format!(
                "it serves no socket in {shown}: diagnostics are switched off in its configuration, or it is a native build without them"
            )
        }
    };
    trouble(Trouble::Disabled, reason)
}

/// Why no file can be created in a temporary directory, and what the directory must be instead.
type Obstacle = (&'static str, &'static str);

const MISSING: Obstacle = ("does not exist", "exists");
const READ_ONLY: Obstacle = ("is read-only", "is on a writable volume (Kubernetes: an emptyDir)");
const NOT_PERMITTED: Obstacle = ("is not writable by its user", "its user may write to");

/// Returns what certainly prevents a user from creating a file in a directory.
fn obstacle(directory: &Found, uid: u32) -> Option<Obstacle> {
    if fstatvfs(&directory.handle).is_ok_and(|system| system.f_flag.contains(StatVfsMountFlags::RDONLY)) {
        return Some(READ_ONLY);
    }
    // The user may be a member of the group, and an access control list shows in the group's bits.
    let allows = |shift: u32| directory.stat.st_mode >> shift & 0o3 == 0o3;
    let is_permitted = uid == 0 || directory.stat.st_uid == uid && allows(6) || allows(3) || allows(0);
    (!is_permitted).then_some(NOT_PERMITTED)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_denial_has_a_remedy_that_exists_there() {
        let alice = SafeText::from("alice");
        let reason = |our_uid, is_in_container, uid, user| {
            let observer = Observer { uid: our_uid, is_in_container };
            let Contact::Trouble { kind: Trouble::Denied, reason } = observer.denied(uid, user) else { panic!("not denied") };
            reason.to_string()
        };
        for (our_uid, is_in_container, uid, user, who, how) in [
            (1000, false, 1654, Some(&alice), "user alice", "`sudo -u alice dn-top` or `sudo dn-top`"),
            (1000, false, 1654, None, "user id 1654", "`sudo -u '#1654' dn-top` or `sudo dn-top`"),
            (1000, true, 1654, Some(&alice), "user alice", "`--user 1654` (docker, podman)"),
            (1000, true, 0, None, "root", "`sudo dn-top`"),
            (0, true, 1654, None, "user id 1654", "`--cap-add SYS_PTRACE`"),
            (0, false, 1654, Some(&alice), "user alice", "`--user 1654`, or start its container"),
        ] {
            let reason = reason(our_uid, is_in_container, uid, user);
            assert!(reason.starts_with(&format!("it belongs to {who}, and ")) && reason.contains(how), "{reason}");
            assert_eq!(reason.contains("sudo"), !is_in_container && our_uid != 0 || uid == 0, "{reason}");
        }
    }
}
