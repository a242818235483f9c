//! Explains why a process cannot be attached to: the problem and a remedy.

use std::path::Path;

use super::processes::{ScannedProcess, SocketDir};
use super::sockets::Candidate;
use crate::model::{Contact, SafeText, Trouble};
use crate::net::endpoint::SocketName;
use crate::net::peer::PeerError;
use crate::net::proc::Proc;
use crate::net::stream::MAX_PATH_LENGTH;

fn trouble(kind: Trouble, reason: String) -> Contact {
    Contact::Trouble { kind, reason: reason.into() }
}

/// Reports a process owned by another user when we are not root.
pub(super) fn denied(uid: u32, user: Option<&SafeText>) -> Contact {
    let (who, how) = match (uid, user) {
        (0, _) => ("root".to_owned(), "only root may attach: run `sudo dn-top`".to_owned()),
        (_, Some(user)) => {
            (format!("user {user}"), format!("only that user and root may attach: run `sudo -u {user} dn-top` or `sudo dn-top`"))
        }
        (_, None) => {
            (format!("user id {uid}"), format!("only that user and root may attach: run `sudo -u '#{uid}' dn-top` or `sudo dn-top`"))
        }
    };
    trouble(Trouble::Denied, format!("it belongs to {who}, and {how}"))
}

/// Its files are not accessible although it belongs to our user: another namespace, or a process that protects itself.
fn inaccessible(pid: u32, our_uid: u32) -> Contact {
    let how = match our_uid {
        0 => {
            "this root lacks CAP_SYS_PTRACE: run dn-top outside of its container, or start that with `--cap-add SYS_PTRACE` (docker, podman)"
        }
        _ => "it is in other namespaces or has more rights: run `sudo dn-top`",
    };
    trouble(Trouble::Denied, format!("its socket directory cannot be reached through /proc/{pid}/root; {how}"))
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
pub(super) fn without_socket(proc: &Proc, known: &ScannedProcess, our_uid: u32, user: Option<&SafeText>) -> Contact {
    let (directory, missing) = match &known.socket_dir {
        SocketDir::Hidden if known.uid != our_uid => return denied(known.uid, user),
        SocketDir::Hidden => return inaccessible(known.key.pid, our_uid),
        SocketDir::Directory { process_path, .. } => (process_path.as_path(), false),
        SocketDir::Missing { process_path } => (process_path.as_path(), true),
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
    let reason = if missing {
        format!(
            "its temporary directory {shown} does not exist, so the runtime could not create its socket: restart it with a TMPDIR that exists"
        )
    } else if known.threads.server {
        format!("its socket was removed from {shown}, perhaps by a clean-up of temporary files: restart the process to create it again")
    } else {
        format!("it serves no socket in {shown}: diagnostics are switched off in its configuration, or it is a native build without them")
    };
    trouble(Trouble::Disabled, reason)
}
