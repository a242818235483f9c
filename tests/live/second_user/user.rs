//! The second user, and its processes.

use std::ffi::OsStr;
use std::fs;
use std::io::{Read as _, Write as _};
use std::os::unix::fs::chown;
use std::os::unix::net::{UnixListener, UnixStream};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use dn_top::ipc::{Advertise, CommandCode, Cookie, ProcessInfo, Reply, RuntimeVersion};

use crate::support::{TIMEOUT, folder, poll, runtimes};

pub(super) const UID: u32 = 65533;
/// Exit code of the second user's process if it may not connect.
pub(super) const DENIED: i32 = 7;

/// A user not trusted by root, with a folder of their own.
pub(super) struct SecondUser {
    pub(super) home: tempfile::TempDir,
}

impl SecondUser {
    pub(super) fn new() -> Option<Self> {
        if !rustix::process::geteuid().is_root() {
            runtimes::skip("only root can run programs as a second user");
            return None;
        }
        let home = folder();
        chown(home.path(), Some(UID), Some(UID)).unwrap();
        Some(Self { home })
    }

    pub(super) fn path(&self, name: &str) -> PathBuf {
        self.home.path().join(name)
    }

    /// Starts a program as this user, which creates its socket, if any, in that folder.
    pub(super) fn run(&self, program: &str, arguments: &[&str], tmpdir: &Path) -> Process {
        self.start(Command::new(program).args(arguments), tmpdir)
    }

    pub(super) fn start(&self, command: &mut Command, tmpdir: &Path) -> Process {
        let command = command.env("TMPDIR", tmpdir).uid(UID).gid(UID).current_dir("/");
        Process(command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).process_group(0).spawn().unwrap())
    }

    /// Creates a symbolic link as this user.
    pub(super) fn link(&self, to: &Path, at: &Path) {
        let made = self.run("ln", &["-sfn", to.to_str().unwrap(), at.to_str().unwrap()], self.home.path()).0.wait().unwrap();
        assert!(made.success(), "{}", at.display());
    }

    /// Starts a process of this user that listens at a path, responds like a runtime, and logs everything it receives.
    pub(super) fn serve(&self, path: &Path) -> FakeServer {
        let log = self.path("log");
        let process =
            self.helper(path.parent().unwrap(), &[("SECOND_USER_SERVES", path.as_os_str()), ("SECOND_USER_LOG", log.as_os_str())]);
        poll(TIMEOUT, || UnixStream::connect(path).ok()).expect("it does not serve");
        FakeServer { process, log }
    }

    /// Starts a process of this user whose threads are named like those of a runtime.
    pub(super) fn start_runtime_lookalike(&self, tmpdir: &Path) -> Process {
        let process = self.helper(tmpdir, &[]);
        let threads = || {
            let tasks = fs::read_dir(format!("/proc/{}/task", process.pid())).unwrap();
            let names = tasks.map(|task| fs::read_to_string(task.unwrap().path().join("comm")).unwrap_or_default());
            names.into_iter().find(|name| name == ".NET EventPipe\n")
        };
        poll(TIMEOUT, threads).expect("its thread does not start");
        process
    }

    /// Starts this test binary as a process of this user: see [`second_users_process`].
    pub(super) fn helper(&self, tmpdir: &Path, environment: &[(&str, &OsStr)]) -> Process {
        let mut command = Command::new("/proc/self/exe");
        command.args(["--exact", "second_user::user::second_users_process", "--ignored"]).env("SECOND_USER", "1");
        self.start(command.envs(environment.iter().copied()), tmpdir)
    }
}

#[test]
#[ignore = "no test: what a process of the second user does"]
fn second_users_process() {
    if std::env::var_os("SECOND_USER").is_none() {
        return;
    }
    if std::env::var_os("SECOND_USER_FUSE").is_some() {
        return serve_fuse();
    }
    if let Some(path) = std::env::var_os("SECOND_USER_CONNECTS") {
        let Ok(mut stream) = UnixStream::connect(path) else { std::process::exit(DENIED) };
        let pid = std::env::var("SECOND_USER_ADVERTISES").unwrap().parse().unwrap();
        stream.write_all(&Advertise { cookie: Cookie([6; 16]), pid }.encode()).unwrap();
        // Until it is closed, or a command is received.
        let _ = stream.read(&mut [0]);
        return;
    }
    let thread = std::thread::Builder::new().name(".NET EventPipe".to_owned());
    let thread = thread.spawn(|| match std::env::var_os("SECOND_USER_SERVES") {
        Some(path) => serve(&UnixListener::bind(path).unwrap()),
        None => std::thread::sleep(Duration::from_secs(600)),
    });
    thread.unwrap().join().unwrap();
}

/// Serves an empty file system on standard input, but never answers a lookup in it (`linux/fuse.h`).
fn serve_fuse() {
    const LOOKUP: u32 = 1;
    const GETATTR: u32 = 3;
    const STATFS: u32 = 17;
    const INIT: u32 = 26;
    let (device, mut request) = (std::io::stdin(), vec![0; 256 << 10]);
    while let Ok(40..) = rustix::io::read(&device, &mut request) {
        let operation = u32::from_ne_bytes(request[4..8].try_into().unwrap());
        let put = |length: usize, words: &[(usize, u32)]| {
            let mut body = vec![0; length];
            words.iter().for_each(|(at, word)| body[*at..at + 4].copy_from_slice(&word.to_ne_bytes()));
            body
        };
        let (error, body) = match operation {
            LOOKUP => continue,
            // Version 7.31, and the largest write.
            INIT => (0, put(64, &[(0, 7), (4, 31), (20, 65536)])),
            // Valid for an hour; inode 1, a directory with two links.
            GETATTR => (0, put(104, &[(0, 3600), (16, 1), (16 + 60, 0o40777), (16 + 64, 2)])),
            STATFS => (0, put(80, &[(40, 4096), (44, 255)])),
            _ => (-38, Vec::new()),
        };
        let mut reply = u32::try_from(16 + body.len()).unwrap().to_ne_bytes().to_vec();
        reply.extend(i32::to_ne_bytes(error));
        reply.extend(&request[8..16]);
        reply.extend(body);
        let _ = rustix::io::write(&device, &reply);
    }
}

fn serve(listener: &UnixListener) {
    let mut log = fs::File::create(std::env::var_os("SECOND_USER_LOG").unwrap()).unwrap();
    for stream in listener.incoming() {
        let (mut stream, mut bytes) = (stream.unwrap(), [0; 4096]);
        let count = stream.read(&mut bytes).unwrap_or(0);
        log.write_all(&bytes[..count]).unwrap();
        let _ = stream.write_all(&answer());
    }
}

fn answer() -> Vec<u8> {
    let info = ProcessInfo {
        pid: std::process::id().into(),
        cookie: Cookie([6; 16]),
        command_line: "dotnet planted.dll".to_owned(),
        os: "Linux".to_owned(),
        arch: "x64".to_owned(),
        entry_assembly: Some("planted".to_owned()),
        clr_version: Some(RuntimeVersion::new("9.0.7")),
        rid: None,
    };
    Reply::Info(Box::new(info)).encode(CommandCode::ProcessInfo3).unwrap()
}

pub(super) struct Process(pub(super) Child);

impl Process {
    pub(super) fn pid(&self) -> u32 {
        self.0.id()
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let group = rustix::process::Pid::from_raw(self.0.id() as i32).unwrap();
        let _ = rustix::process::kill_process_group(group, rustix::process::Signal::KILL);
        let _ = self.0.wait();
    }
}

/// A socket served by the second user.
pub(super) struct FakeServer {
    pub(super) process: Process,
    pub(super) log: PathBuf,
}

impl FakeServer {
    pub(super) fn assert_nothing_received(&self) {
        assert_eq!(fs::read(&self.log).unwrap(), b"", "the second user was sent something");
    }
}
