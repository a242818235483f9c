//! Impossible requests are refused with one sentence and the exit code that scripts rely on. They are all harmless.

use std::fs;
use std::os::unix::fs::{PermissionsExt, chown};

use serde_json::json;

use crate::support::runtimes;
use crate::support::{Invocation, Output, Signal, TIMEOUT, folder, poll};

fn run(arguments: &[&str]) -> Output {
    Invocation::new(arguments).run()
}

/// Commands that connect to a process.
const COMMANDS: [&[&str]; 4] = [&["env"], &["trace"], &["dump"], &["perfmap", "on"]];

fn every_command(target: &str) -> impl Iterator<Item = Output> {
    COMMANDS.into_iter().map(move |words| run(&[&words[..1], &[target], &words[1..]].concat()))
}

#[test]
fn unknown_pid_is_rejected() {
    // Above the kernel's maximum PID.
    for output in every_command("4194305") {
        output.assert_refused(3, "there is no process 4194305");
    }
}

#[test]
fn non_dotnet_process_is_rejected() {
    let pid = std::process::id().to_string();
    for output in every_command(&pid) {
        output.assert_refused(3, &format!("process {pid} is not a .NET process"));
    }
}

#[test]
fn path_that_is_not_a_socket_with_a_listener_is_rejected() {
    let place = folder();
    let at = |name: &str| place.path().join(name).to_str().unwrap().to_owned();
    fs::write(at("file"), "").unwrap();
    fs::create_dir(at("folder")).unwrap();
    // Opening it would block: it has no writer.
    rustix::fs::mkfifoat(rustix::fs::CWD, at("pipe"), rustix::fs::Mode::RUSR).unwrap();
    drop(std::os::unix::net::UnixListener::bind(at("dead")).unwrap());
    for (name, words) in [
        ("file", "/file is not a socket: "),
        ("folder", "/folder is not a socket: "),
        ("pipe", "/pipe is not a socket: "),
        ("dead", "no process listens on this socket: the process has ended"),
        ("missing", "there is no socket /"),
    ] {
        for output in every_command(&at(name)).chain([run(&["info", &at(name)])]) {
            output.assert_refused(3, words);
        }
    }
}

#[test]
fn ambiguous_or_unknown_name_is_rejected() {
    let Some(net9) = runtimes::net9() else { return };
    let programs = [(); 2].map(|()| net9.program("known").start());
    let output = run(&["trace", "known"]);
    output.assert_refused(3, "'known' matches ");
    for program in programs {
        assert!(output.stderr.contains(&program.pid().to_string()), "{}", output.stderr);
    }
    // No confirmation is requested for a process that does not exist.
    for command in ["trace", "heap"] {
        run(&[command, "nobody-is-called-this"]).assert_refused(3, "there is no .NET process named 'nobody-is-called-this'");
    }
}

#[test]
fn stale_socket_of_killed_process_is_reported() {
    let Some(net9) = runtimes::net9() else { return };
    let mut program = net9.any().start();
    let (pid, socket) = (program.pid().to_string(), program.socket());
    program.signal(Signal::KILL);
    program.wait();
    let target = socket.to_str().unwrap();
    for output in every_command(target).chain([run(&["info", target])]) {
        output.assert_refused(3, "no process listens on this socket: the process has ended");
    }
    // It is listed if its folder is searched.
    let beside = |words: &[&str]| Invocation::new(words).env("TMPDIR", program.folder()).run();
    let listed = || {
        let rows = beside(&["ps", "--json"]).json();
        rows["processes"].as_array().unwrap().iter().find(|row| row["socket"] == socket.to_str().unwrap()).cloned()
    };
    let row = poll(TIMEOUT, listed).unwrap();
    assert_eq!(json!([row["pid"].to_string(), row["contact"]]), json!([pid, "stale"]));
    let reason = row["reason"].as_str().unwrap();
    assert!(reason.starts_with(&format!("there is no process {pid}; this socket was left behind")), "{reason}");
    beside(&["trace", &pid]).assert_refused(3, reason);
    assert!(socket.exists(), "it is not ours to delete");
}

#[test]
fn process_of_another_user_is_rejected_with_owner() {
    let (Some(net9), Some(other)) = (runtimes::net9(), OtherUser::new(65533)) else { return };
    let mut program = net9.any().start();
    let pid = program.pid().to_string();
    for (reachable, mode) in [(false, 0o700), (true, 0o755)] {
        // Even if its folder is accessible, its socket is not.
        fs::set_permissions(program.folder(), PermissionsExt::from_mode(mode)).unwrap();
        let run = |words: &[&str]| other.run(words).env("TMPDIR", program.folder()).run();
        // A process without a socket has no contact state in its first two seconds.
        let row = poll(TIMEOUT, || Some(run(&["info", &pid, "--json"])).filter(|output| output.code == 0)).unwrap().json();
        assert_eq!(json!([row["contact"], row["name"], row["uid"]]), json!(["denied", "work", 0]));
        assert_eq!(row["socket"].is_string(), reachable);
        for command in COMMANDS {
            let output = run(&[&command[..1], &[&pid], &command[1..]].concat());
            output.assert_refused(4, &format!("process {pid} (work): it belongs to root, and only root may attach"));
        }
    }
    assert!(program.is_alive() && program.answers());
}

#[test]
fn socket_of_another_user_is_rejected() {
    let (Some(other), Some(owner)) = (OtherUser::new(65533), OtherUser::new(65534)) else { return };
    let place = folder();
    fs::set_permissions(place.path(), PermissionsExt::from_mode(0o755)).unwrap();
    chown(place.path(), Some(owner.uid), None).unwrap();
    let simulated = owner.run(&["sim", "1", place.path().to_str().unwrap()]).start();
    poll(TIMEOUT, || simulated.stdout().contains("1 runtimes").then_some(())).unwrap_or_else(|| panic!("{}", simulated.stderr()));
    let socket = fs::read_dir(place.path().join("tmp")).unwrap().next().unwrap().unwrap().path();
    for command in COMMANDS {
        let output = other.run(&[&command[..1], &[socket.to_str().unwrap()], &command[1..]].concat()).run();
        output.assert_refused(4, "only the owner of its socket and root may attach: run dn-top as that user, or with sudo");
    }
    // Its owner may connect, and sees that the PID of the simulated runtime is not that of the listening process.
    assert_eq!(owner.run(&["info", socket.to_str().unwrap(), "--json"]).run().json()["contact"], "unverified");
}

/// An unprivileged user with its own UID, and a copy of dn-top that this user may run.
struct OtherUser {
    uid: u32,
    folder: tempfile::TempDir,
}

impl OtherUser {
    fn new(uid: u32) -> Option<Self> {
        if !rustix::process::geteuid().is_root() {
            runtimes::skip("only root can run dn-top as another user");
            return None;
        }
        let folder = folder();
        fs::set_permissions(folder.path(), PermissionsExt::from_mode(0o755)).unwrap();
        fs::copy(env!("CARGO_BIN_EXE_dn-top"), folder.path().join("dn-top")).unwrap();
        Some(Self { uid, folder })
    }

    fn run(&self, words: &[&str]) -> Invocation {
        let uid = self.uid;
        let (user, group) = (format!("--reuid={uid}"), format!("--regid={uid}"));
        let program = self.folder.path().join("dn-top");
        Invocation::of("setpriv", [&[user.as_str(), &group, "--clear-groups", program.to_str().unwrap()], words].concat())
    }
}
