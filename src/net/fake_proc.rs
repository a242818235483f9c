//! Directory trees that look like /proc, for tests in this module.

use std::fs;
use std::os::unix::net::UnixListener;
use std::path::PathBuf;

use super::discovery::Sources;
use super::endpoint::SocketName;

/// Seconds since boot.
pub(super) const UPTIME: u64 = 10_000;
/// A start time long before now, in ticks.
pub(super) const OLD: u64 = 256_818;
/// The threads of a runtime that is suspended at startup.
pub(super) const SUSPENDED: &[&str] = &["dotnet", ".NET SynchManag", ".NET EventPipe"];

/// A tree that looks like /proc, and a directory for sockets.
pub(super) struct FakeProc {
    root: tempfile::TempDir,
}

pub(super) struct Fake<'a> {
    pub(super) pid: u32,
    pub(super) started: u64,
    pub(super) status: String,
    pub(super) environ: &'a str,
    pub(super) cmdline: &'a str,
    pub(super) threads: &'a [&'a str],
    pub(super) maps: &'a str,
    pub(super) ticks: u64,
    pub(super) state: char,
}

pub(super) fn own_uid() -> u32 {
    rustix::process::geteuid().as_raw()
}

pub(super) fn fake(pid: u32) -> Fake<'static> {
    let status = format!("Name:\tdotnet\nUid:\t{0}\t{0}\t{0}\t{0}\nNSpid:\t{pid}\n", own_uid());
    let threads = &["dotnet", ".NET SynchManag", ".NET EventPipe", ".NET Finalizer"];
    Fake {
        pid,
        started: OLD,
        status,
        environ: "PATH=/bin",
        cmdline: "dotnet\0/srv/shop.dll\0--urls\0*",
        threads,
        maps: "",
        ticks: 0,
        state: 'S',
    }
}

impl Fake<'_> {
    /// Makes it suspended at startup.
    pub(super) fn suspended(self) -> Self {
        Self { threads: SUSPENDED, ..self }
    }

    /// Makes it a process without a runtime.
    pub(super) fn without_runtime(self) -> Self {
        Self { threads: &["bash"], ..self }
    }
}

impl FakeProc {
    pub(super) fn new() -> Self {
        let fake_proc = Self { root: tempfile::tempdir().unwrap() };
        fs::create_dir_all(fake_proc.path("proc")).unwrap();
        fs::create_dir_all(fake_proc.path("tmp")).unwrap();
        fs::write(fake_proc.path("proc/uptime"), format!("{UPTIME}.00 1.0\n")).unwrap();
        fs::write(fake_proc.path("passwd"), "alice:x:12345:1::/:\n").unwrap();
        fake_proc
    }

    pub(super) fn path(&self, path: &str) -> PathBuf {
        self.root.path().join(path)
    }

    /// Returns an address with this name, unique to this tree.
    pub(super) fn address(&self, name: &str) -> PathBuf {
        self.path(name)
    }

    /// Returns the usual path of a process's diagnostic socket.
    pub(super) fn usual_address(&self, pid: u32) -> PathBuf {
        self.path("tmp").join(SocketName { pid, key: OLD }.to_string())
    }

    /// Removes the process, as if it had exited.
    pub(super) fn remove(&self, pid: u32) {
        fs::remove_dir_all(self.path("proc").join(pid.to_string())).unwrap();
    }

    pub(super) fn add(&self, fake: &Fake<'_>) {
        let write = |file: String, content: &str| {
            let path = self.path("proc").join(fake.pid.to_string()).join(file);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, content).unwrap();
        };
        let (pid, state, ticks, count, started) = (fake.pid, fake.state, fake.ticks, fake.threads.len(), fake.started);
        let tail = "1000000 2500 18446744073709551615 1 1 0 0 0 0 0 4096 0 0 0 0 17 1";
        write("stat".into(), &format!("{pid} (dotnet) {state} 1 1 1 0 -1 4194560 1 2 3 4 {ticks} 0 0 0 20 0 {count} 0 {started} {tail}"));
        write("status".into(), &fake.status);
        write("environ".into(), &fake.environ.replace(' ', "\0"));
        write("cmdline".into(), fake.cmdline);
        write("maps".into(), fake.maps);
        for (i, name) in fake.threads.iter().enumerate() {
            write(format!("task/{}/comm", pid as usize + i), &format!("{name}\n"));
        }
    }

    pub(super) fn socket(&self, directory: &str, pid: u32, key: u64) -> PathBuf {
        let path = self.path(directory).join(SocketName { pid, key }.to_string());
        // The path may be too long to bind, so the socket is bound elsewhere and moved.
        let short = self.path("s");
        drop(UnixListener::bind(&short).unwrap());
        fs::rename(&short, &path).unwrap();
        path
    }

    pub(super) fn sources(&self) -> Sources {
        Sources { proc: self.path("proc"), tmp: self.path("tmp"), tmpdir: None, passwd: self.path("passwd") }
    }
}
