//! A .NET program that runs for one test, in a folder of its own.

use std::ffi::OsStr;
use std::fs;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, ExitStatus, Stdio};
use std::sync::mpsc;
use std::time::{Duration, Instant};

use rustix::process::Signal;
use tempfile::TempDir;

use super::{PATIENCE, folder, poll, send};

/// How to start a program. Its environment is empty but for PATH, HOME, LANG, TMPDIR and what is added here.
#[derive(Debug)]
pub(crate) struct Launch {
    words: Vec<PathBuf>,
    env: Vec<(String, PathBuf)>,
    contained: bool,
}

impl Launch {
    pub(crate) fn new(program: &Path) -> Self {
        Self { words: vec![program.to_owned()], env: Vec::new(), contained: false }
    }

    pub(crate) fn arg(mut self, arg: impl AsRef<OsStr>) -> Self {
        self.words.push(arg.as_ref().into());
        self
    }

    pub(crate) fn env(mut self, name: &str, value: impl AsRef<OsStr>) -> Self {
        self.env.push((name.to_owned(), value.as_ref().into()));
        self
    }

    /// In pid and mount namespaces of its own, as in a container: it is pid 1 there, and its TMPDIR is a mount that nobody
    /// else sees. Ask [`super::runtimes::namespaces`] first.
    pub(crate) fn contained(mut self) -> Self {
        self.contained = true;
        self
    }

    /// The command line, to hand to `dn-top run`.
    pub(crate) fn words(&self) -> &[PathBuf] {
        &self.words
    }

    /// What its environment has besides.
    pub(crate) fn variables(&self) -> &[(String, PathBuf)] {
        &self.env
    }

    /// Starts it and waits until its runtime answers on its diagnostic socket.
    pub(crate) fn start(self) -> Program {
        let mut program = self.spawn();
        let connected = poll(PATIENCE, || {
            assert!(program.is_alive(), "{program:?} ended before it opened its socket: {}", program.stderr());
            UnixStream::connect(program.socket()).ok()
        });
        assert!(connected.is_some(), "{program:?} opened no socket {}: {}", program.socket().display(), program.stderr());
        program
    }

    /// Starts it without waiting: for programs that open no socket, or stand still at start.
    pub(crate) fn spawn(self) -> Program {
        let folder = folder();
        let mut command = if self.contained { namespaced(folder.path()) } else { Command::new("env") };
        let mut child = command
            .args(&self.words)
            .env_clear()
            .env("PATH", std::env::var_os("PATH").unwrap())
            .env("LANG", "C.UTF-8")
            .env("HOME", folder.path())
            .env("TMPDIR", folder.path())
            .envs(self.env)
            .current_dir(folder.path())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(fs::File::create(folder.path().join("stderr")).unwrap())
            .process_group(0)
            .spawn()
            .unwrap();
        // `env` becomes the program, keeping its pid; `unshare` stays, and the program is its child.
        let pid = if self.contained { poll(PATIENCE, || only_child(child.id())).unwrap() } else { child.id() };
        let (said, lines) = mpsc::channel();
        let stdout = BufReader::new(child.stdout.take().unwrap());
        std::thread::spawn(move || stdout.lines().map_while(Result::ok).try_for_each(|line| said.send(line)));
        Program { stdin: child.stdin.take(), child, pid, contained: self.contained, lines, folder }
    }
}

/// A command that starts its arguments in new pid and mount namespaces, with a mount of their own at `private`.
pub(crate) fn namespaced(private: &Path) -> Command {
    let mut unshare = Command::new("unshare");
    if !rustix::process::geteuid().is_root() {
        unshare.args(["--user", "--map-root-user"]);
    }
    unshare
        .args(["--pid", "--fork", "--kill-child", "--mount", "--mount-proc", "sh", "-euc"])
        .arg(r#"private=$1; shift; mount -t tmpfs tmpfs "$private"; exec "$@""#)
        .arg("sh")
        .arg(private);
    unshare
}

fn only_child(pid: u32) -> Option<u32> {
    fs::read_to_string(format!("/proc/{pid}/task/{pid}/children")).ok()?.split_whitespace().next()?.parse().ok()
}

/// A running program. It and whatever it started are killed when this is dropped.
#[derive(Debug)]
pub(crate) struct Program {
    child: Child,
    pid: u32,
    contained: bool,
    stdin: Option<ChildStdin>,
    lines: mpsc::Receiver<String>,
    folder: TempDir,
}

impl Program {
    /// Its pid as this test sees it.
    pub(crate) fn pid(&self) -> u32 {
        self.pid
    }

    /// Its TMPDIR, HOME and working directory, as the program names it.
    pub(crate) fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// A path of the program's as it is reached from here.
    pub(crate) fn reach(&self, path: &Path) -> PathBuf {
        if !self.contained {
            return path.to_owned();
        }
        PathBuf::from(format!("/proc/{}/root", self.pid)).join(path.strip_prefix("/").unwrap())
    }

    /// Its diagnostic socket as it is reached from here (Diagnostic IPC Protocol, "Transport": the pid is that of its own
    /// namespace, the key its start time).
    pub(crate) fn socket(&self) -> PathBuf {
        let pid = if self.contained { 1 } else { self.pid };
        self.reach(&self.folder().join(format!("dotnet-diagnostic-{pid}-{}-socket", self.start_time())))
    }

    /// When it started, in clock ticks since the machine did.
    pub(crate) fn start_time(&self) -> u64 {
        // `env` may not have become the program yet: that changes the name in the line, and not the time.
        let stat = fs::read_to_string(format!("/proc/{}/stat", self.pid)).unwrap_or_default();
        let after_name = stat.rsplit(')').next().unwrap_or_default();
        after_name.split_whitespace().nth(19).and_then(|ticks| ticks.parse().ok()).unwrap_or(0)
    }

    /// Waits until it has created and ended no thread for a second: 3.1's dump program fails, or does not end, where one is just being created.
    pub(crate) fn settle(&self) {
        let folder = format!("/proc/{}/task", self.pid);
        let (mut threads, mut since) = (0, Instant::now());
        let same_for_a_second = || {
            let now = fs::read_dir(&folder).unwrap().count();
            if std::mem::replace(&mut threads, now) != now {
                since = Instant::now();
            }
            (since.elapsed() > Duration::from_secs(1)).then_some(())
        };
        poll(PATIENCE, same_for_a_second).expect("threads come and go");
    }

    /// Whether it has not ended.
    pub(crate) fn is_alive(&mut self) -> bool {
        self.child.try_wait().unwrap().is_none()
    }

    /// Whether its runtime answers a request within five seconds: ProcessInfo, written out here so that dn-top has no
    /// part in the proof. A runtime too old to know it answers too, with an error.
    pub(crate) fn answers(&self) -> bool {
        const PROCESS_INFO: &[u8; 20] = b"DOTNET_IPC_V1\0\x14\0\x04\0\0\0";
        let ask = || {
            let mut stream = UnixStream::connect(self.socket())?;
            stream.set_read_timeout(Some(PATIENCE))?;
            stream.write_all(PROCESS_INFO)?;
            let mut header = [0; 20];
            stream.read_exact(&mut header)?;
            std::io::Result::Ok(header)
        };
        ask().is_ok_and(|header| header.starts_with(b"DOTNET_IPC_V1\0") && header[16] == 0xff)
    }

    /// The next line of its standard output.
    pub(crate) fn line(&self) -> String {
        self.lines.recv_timeout(PATIENCE).unwrap_or_else(|_| panic!("{self:?} says no more: {}", self.stderr()))
    }

    /// Writes a line to its standard input.
    pub(crate) fn command(&mut self, line: &str) {
        writeln!(self.stdin.as_mut().unwrap(), "{line}").unwrap();
    }

    /// Has a program that takes commands carry one out, and returns when it has, with what it said of it.
    pub(crate) fn carry_out(&mut self, command: &str) -> Vec<String> {
        self.command(command);
        let done = format!("done {command}");
        std::iter::from_fn(|| Some(self.line()).filter(|line| *line != done)).collect()
    }

    /// Has `known` work for so long, and returns the milliseconds that Seventy, Twenty and Ten took, by its own clock.
    pub(crate) fn spend(&mut self, milliseconds: u32) -> [f64; 3] {
        let said = self.carry_out(&format!("spend {milliseconds}"));
        let spent = said.iter().find_map(|line| line.strip_prefix("spent ")).unwrap_or_else(|| panic!("{said:?}"));
        let times: Vec<f64> = spent.split(' ').map(|time| time.parse().unwrap()).collect();
        times.try_into().unwrap()
    }

    /// What it wrote to standard error.
    pub(crate) fn stderr(&self) -> String {
        fs::read_to_string(self.folder.path().join("stderr")).unwrap_or_default()
    }

    pub(crate) fn signal(&self, signal: Signal) {
        send(self.pid, signal);
    }

    /// Closes its standard input, which ends every program here, and waits for it.
    pub(crate) fn finish(&mut self) -> ExitStatus {
        drop(self.stdin.take());
        self.wait()
    }

    /// Waits for its end.
    pub(crate) fn wait(&mut self) -> ExitStatus {
        poll(PATIENCE, || self.child.try_wait().unwrap()).expect("the program does not end")
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        if let Some(group) = rustix::process::Pid::from_raw(self.child.id() as i32) {
            // There may be children of its that outlived it.
            let _ = rustix::process::kill_process_group(group, Signal::KILL);
        }
        let _ = self.child.wait();
    }
}
