//! A .NET program that runs for one test, in its own folder.

use std::ffi::OsStr;
use std::fs;
use std::io::{self, BufRead as _, BufReader, Read as _, Write as _};
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, ExitStatus, Stdio};
use std::sync::mpsc;
use std::time::{Duration, Instant};

use rustix::process::Signal;
use tempfile::TempDir;

use super::{TIMEOUT, folder, poll, send};

/// A program to start. Its environment contains only PATH, HOME, LANG, TMPDIR and the variables added here.
#[derive(Debug)]
pub(crate) struct Launch {
    words: Vec<PathBuf>,
    env: Vec<(String, PathBuf)>,
    stdout: Option<fs::File>,
    /// Options of the mount at its TMPDIR, if contained.
    mount: Option<&'static str>,
}

impl Launch {
    pub(crate) fn new(program: &Path) -> Self {
        Self { words: vec![program.to_owned()], env: Vec::new(), stdout: None, mount: None }
    }

    pub(crate) fn arg(mut self, arg: impl AsRef<OsStr>) -> Self {
        self.words.push(arg.as_ref().into());
        self
    }

    pub(crate) fn env(mut self, name: &str, value: impl AsRef<OsStr>) -> Self {
        self.env.push((name.to_owned(), value.as_ref().into()));
        self
    }

    /// Its output is written to a file instead of being read with [`Program::line`].
    pub(crate) fn stdout(mut self, file: fs::File) -> Self {
        self.stdout = Some(file);
        self
    }

    /// In PID and mount namespaces of its own, as in a container: its PID there is 1, and its TMPDIR is a mount that no other process sees.
    /// Requires [`super::runtimes::namespaces`].
    pub(crate) fn contained(mut self) -> Self {
        self.mount = Some("rw");
        self
    }

    /// Like [`Self::contained`], with a read-only TMPDIR.
    pub(crate) fn contained_read_only(mut self) -> Self {
        self.mount = Some("ro");
        self
    }

    /// Contained, with its runtime at a path that no other process sees.
    pub(crate) fn contained_at_mount(mut self) -> Self {
        let root = self.words[0].ancestors().nth(2).unwrap().to_owned();
        let inside = self.words.iter().map(|word| word.strip_prefix(&root).map_or(word.clone(), |rest| Path::new("/mnt").join(rest)));
        let mount = ["sh", "-euc", r#"mount --bind "$1" /mnt; shift; exec "$@""#, "sh"].map(PathBuf::from);
        self.words = mount.into_iter().chain([root.clone()]).chain(inside).collect();
        self.contained()
    }

    /// The command line, as arguments of `dn-top run`.
    pub(crate) fn words(&self) -> &[PathBuf] {
        &self.words
    }

    /// Additional environment variables.
    pub(crate) fn variables(&self) -> &[(String, PathBuf)] {
        &self.env
    }

    /// Starts it and waits until its runtime listens on its diagnostic socket.
    pub(crate) fn start(self) -> Program {
        let mut program = self.spawn();
        let connected = poll(TIMEOUT, || {
            assert!(program.is_alive(), "{program:?} ended before it opened its socket: {}", program.stderr());
            UnixStream::connect(program.socket()).ok()
        });
        assert!(connected.is_some(), "{program:?} opened no socket {}: {}", program.socket().display(), program.stderr());
        program
    }

    /// Starts it without waiting: for programs that open no socket, or are suspended at startup.
    pub(crate) fn spawn(self) -> Program {
        let folder = folder();
        let mut command = self.mount.map_or_else(|| Command::new("env"), |options| namespaced(folder.path(), options));
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
            .stdout(self.stdout.map_or_else(Stdio::piped, Stdio::from))
            .stderr(fs::File::create(folder.path().join("stderr")).unwrap())
            .process_group(0)
            .spawn()
            .unwrap();
        // `env` becomes the program and keeps its PID; `unshare` stays, and the program is its child.
        let contained = self.mount.is_some();
        let pid = if contained { poll(TIMEOUT, || only_child(child.id())).unwrap() } else { child.id() };
        let (said, lines) = mpsc::channel();
        if let Some(stdout) = child.stdout.take().map(BufReader::new) {
            std::thread::spawn(move || stdout.lines().map_while(Result::ok).try_for_each(|line| said.send(line)));
        }
        Program { stdin: child.stdin.take(), child, pid, contained, lines, folder }
    }
}

/// Returns a command that starts its arguments in new PID and mount namespaces, with a private mount with these options at `private`.
pub(crate) fn namespaced(private: &Path, options: &str) -> Command {
    let mut unshare = Command::new("unshare");
    if !rustix::process::geteuid().is_root() {
        unshare.args(["--user", "--map-root-user"]);
    }
    unshare
        .args(["--pid", "--fork", "--kill-child", "--mount", "--mount-proc", "sh", "-euc"])
        .arg(r#"private=$1 options=$2; shift 2; mount -t tmpfs -o "$options" tmpfs "$private"; exec "$@""#)
        .arg("sh")
        .arg(private)
        .arg(options);
    unshare
}

fn only_child(pid: u32) -> Option<u32> {
    fs::read_to_string(format!("/proc/{pid}/task/{pid}/children")).ok()?.split_whitespace().next()?.parse().ok()
}

/// A running program. Killed on drop, with all of its children.
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
    /// PID as seen by this test.
    pub(crate) fn pid(&self) -> u32 {
        self.pid
    }

    /// TMPDIR, HOME and working directory, as seen by the program.
    pub(crate) fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// Converts a path of the program to the path by which it is reached from here.
    pub(crate) fn reach(&self, path: &Path) -> PathBuf {
        if !self.contained {
            return path.to_owned();
        }
        PathBuf::from(format!("/proc/{}/root", self.pid)).join(path.strip_prefix("/").unwrap())
    }

    /// Path of its diagnostic socket as reached from here (Diagnostic IPC Protocol, "Transport": the PID is that of its own namespace, the
    /// key its start time).
    pub(crate) fn socket(&self) -> PathBuf {
        let pid = if self.contained { 1 } else { self.pid };
        self.reach(&self.folder().join(format!("dotnet-diagnostic-{pid}-{}-socket", self.start_time())))
    }

    /// Start time, in clock ticks since boot.
    pub(crate) fn start_time(&self) -> u64 {
        // `env` may not have become the program yet: that changes the name in the line, but not the time.
        let stat = fs::read_to_string(format!("/proc/{}/stat", self.pid)).unwrap_or_default();
        let after_name = stat.rsplit(')').next().unwrap_or_default();
        after_name.split_whitespace().nth(19).and_then(|ticks| ticks.parse().ok()).unwrap_or(0)
    }

    /// Waits until it has created and ended no threads for a second: 3.1's dump program fails, or does not end, if one is just being created.
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
        poll(TIMEOUT, same_for_a_second).expect("threads come and go");
    }

    /// Returns whether the program has not exited.
    pub(crate) fn is_alive(&mut self) -> bool {
        self.child.try_wait().unwrap().is_none()
    }

    /// Returns whether its runtime responds to a request before the timeout: ProcessInfo, written byte by byte to be independent of dn-top.
    /// A runtime too old for ProcessInfo responds with an error.
    pub(crate) fn answers(&self) -> bool {
        const PROCESS_INFO: &[u8; 20] = b"DOTNET_IPC_V1\0\x14\0\x04\0\0\0";
        let ask = || {
            let mut stream = UnixStream::connect(self.socket())?;
            stream.set_read_timeout(Some(TIMEOUT))?;
            stream.write_all(PROCESS_INFO)?;
            let mut header = [0; 20];
            stream.read_exact(&mut header)?;
            std::io::Result::Ok(header)
        };
        ask().is_ok_and(|header| header.starts_with(b"DOTNET_IPC_V1\0") && header[16] == 0xff)
    }

    /// Returns the next line of its standard output.
    pub(crate) fn line(&self) -> String {
        self.lines.recv_timeout(TIMEOUT).unwrap_or_else(|_| panic!("{self:?} says no more: {}", self.stderr()))
    }

    /// Writes a line to its standard input.
    pub(crate) fn command(&mut self, line: &str) {
        // A single write.
        self.stdin.as_mut().unwrap().write_all(format!("{line}\n").as_bytes()).unwrap();
    }

    /// Sends a command to a program that accepts commands, waits for its completion, and returns its output.
    pub(crate) fn carry_out(&mut self, command: &str) -> Vec<String> {
        self.command(command);
        let done = format!("done {command}");
        std::iter::from_fn(|| Some(self.line()).filter(|line| *line != done)).collect()
    }

    /// Sends several commands at once, and waits for their completion: the program does not wait for input in between, however busy the machine is.
    pub(crate) fn carry_out_at_once(&mut self, commands: &[&str]) {
        self.command(&commands.join("\n"));
        for command in commands {
            let done = format!("done {command}");
            while self.line() != done {}
        }
    }

    /// Makes `known` work for this time, and returns the milliseconds spent in Seventy, Twenty and Ten, by its own clock.
    pub(crate) fn spend(&mut self, milliseconds: u32) -> [f64; 3] {
        let said = self.carry_out(&format!("spend {milliseconds}"));
        let spent = said.iter().find_map(|line| line.strip_prefix("spent ")).unwrap_or_else(|| panic!("{said:?}"));
        let times: Vec<f64> = spent.split(' ').map(|time| time.parse().unwrap()).collect();
        times.try_into().unwrap()
    }

    /// Returns the CPU time that its present threads have got so far, according to the kernel. A busy machine gives it less than the time that passes.
    pub(crate) fn cpu_time(&self) -> Duration {
        cpu_time(self.pid)
    }

    /// Returns its standard error so far.
    pub(crate) fn stderr(&self) -> String {
        fs::read_to_string(self.folder.path().join("stderr")).unwrap_or_default()
    }

    pub(crate) fn signal(&self, signal: Signal) {
        send(self.pid, signal);
    }

    /// Closes its standard input, which ends every program here.
    pub(crate) fn close(&mut self) {
        drop(self.stdin.take());
    }

    /// Ends it, and waits for that.
    pub(crate) fn finish(&mut self) -> ExitStatus {
        self.close();
        self.wait()
    }

    /// Waits for it to exit.
    pub(crate) fn wait(&mut self) -> ExitStatus {
        poll(TIMEOUT, || self.child.try_wait().unwrap()).expect("the program does not end")
    }
}

/// Returns the CPU time of a process, including threads that have ended (`utime` and `stime` in `proc_pid_stat(5)`, in units of 10 ms).
pub(crate) fn cpu_time(pid: u32) -> Duration {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap();
    let (_, after_name) = stat.rsplit_once(')').unwrap();
    let ticks = after_name.split_whitespace().skip(11).take(2).map(|ticks| ticks.parse::<u64>().unwrap()).sum::<u64>();
    Duration::from_millis(10 * ticks)
}

impl Drop for Program {
    fn drop(&mut self) {
        if let Some(group) = rustix::process::Pid::from_raw(self.child.id() as i32) {
            // Its children may have outlived it.
            let _ = rustix::process::kill_process_group(group, Signal::KILL);
        }
        let _ = self.child.wait();
    }
}
