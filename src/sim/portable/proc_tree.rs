//! Facts about simulated processes, as discovery reads them: a file `PID.toml` for each, `PID.usage` with its CPU time in milliseconds and
//! its memory in bytes, and `PID.running` once it runs managed code.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::fleet::{Facts, Member, TICKS};

#[derive(Debug)]
pub(super) struct ProcTree {
    folder: PathBuf,
    boot_unix_s: u64,
}

impl ProcTree {
    /// Creates the folder, with a boot time in seconds since the Unix epoch.
    pub(super) fn create(folder: PathBuf, boot_unix_s: u64) -> io::Result<Self> {
        fs::create_dir_all(&folder)?;
        Ok(Self { folder, boot_unix_s })
    }

    /// The uptime is not written on this platform.
    pub(super) fn uptime(&self, _: Duration) -> io::Result<()> {
        Ok(())
    }

    pub(super) fn add(&self, facts: &Facts, _: &Path, socket: &Path) -> io::Result<()> {
        let Facts { ns_pid, member: Member { uid, threads, command, container, suspended, .. }, .. } = facts;
        let user = match uid {
            0 => "Administrator",
            1001 => "batch",
            _ => "app",
        };
        let (started, socket) = (self.boot_unix_s + facts.started / TICKS, socket.to_string_lossy());
        let container = container.as_deref().map(|id| id.get(..12).unwrap_or(id)).unwrap_or_default();
        let text = format!(
            "started = {started}\nns_pid = {ns_pid}\nuid = {uid}\nuser = \"{user}\"\nthreads = {threads}\ncommand = {command:?}\ncontainer = {container:?}\nsocket = {socket:?}\n"
        );
        self.tick(facts, 0, 0)?;
        if !suspended {
            self.run(facts)?;
        }
        fs::write(self.path(facts, "toml"), text)
    }

    /// Marks a process as running managed code.
    pub(super) fn run(&self, facts: &Facts) -> io::Result<()> {
        fs::write(self.path(facts, "running"), "")
    }

    /// Writes the current CPU time in clock ticks and resident memory in bytes.
    pub(super) fn tick(&self, facts: &Facts, cpu_ticks: u64, rss_bytes: u64) -> io::Result<()> {
        fs::write(self.path(facts, "usage"), format!("{} {rss_bytes}", cpu_ticks * 1000 / TICKS))
    }

    fn path(&self, facts: &Facts, extension: &str) -> PathBuf {
        self.folder.join(format!("{}.{extension}", facts.pid))
    }
}
