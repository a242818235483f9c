//! Directories with facts of simulated processes, for the tests of this module.

use std::fs;
use std::path::PathBuf;

use super::discovery::Sources;
use super::endpoint::SocketName;
use super::stream::address_in;

/// A start time long before now, in seconds since the Unix epoch.
pub(super) const OLD: u64 = 1_700_000_000;

/// A directory with facts of processes.
pub(super) struct FakeProc {
    root: tempfile::TempDir,
}

pub(super) struct Fake {
    pid: u32,
    started: u64,
    is_dotnet: bool,
}

pub(super) fn fake(pid: u32) -> Fake {
    Fake { pid, started: OLD, is_dotnet: true }
}

impl Fake {
    /// Removes the runtime.
    pub(super) fn without_runtime(self) -> Self {
        Self { is_dotnet: false, ..self }
    }
}

impl FakeProc {
    pub(super) fn new() -> Self {
        let fake_proc = Self { root: tempfile::tempdir().unwrap() };
        fs::create_dir_all(fake_proc.path("proc")).unwrap();
        fake_proc
    }

    pub(super) fn path(&self, path: &str) -> PathBuf {
        self.root.path().join(path)
    }

    /// Returns an address with this name, unique to this directory.
    pub(super) fn address(&self, name: &str) -> PathBuf {
        address_in(self.root.path(), name)
    }

    /// Returns the address at which the runtime of a process is expected.
    pub(super) fn usual_address(&self, pid: u32) -> PathBuf {
        self.address(&SocketName { pid, key: OLD }.to_string())
    }

    pub(super) fn add(&self, fake: &Fake) {
        let pid = fake.pid;
        let path = |extension: &str| self.path("proc").join(format!("{pid}.{extension}"));
        let socket = if fake.is_dotnet { format!("socket = {:?}\n", self.usual_address(pid).to_str().unwrap()) } else { String::new() };
        let facts = format!(
            "started = {}\nns_pid = {pid}\nuid = 1000\nuser = \"alice\"\nthreads = 4\ncontainer = \"\"\n\
             command = [\"dotnet\", \"/srv/shop.dll\", \"--urls\", \"*\"]\n{socket}",
            fake.started
        );
        fs::write(path("running"), "").unwrap();
        fs::write(path("toml"), facts).unwrap();
    }

    /// Ends the process.
    pub(super) fn remove(&self, pid: u32) {
        fs::remove_file(self.path("proc").join(format!("{pid}.toml"))).unwrap();
    }

    pub(super) fn sources(&self) -> Sources {
        Sources { proc: self.path("proc"), ..Sources::machine() }
    }
}
