//! A `/proc` tree for simulated processes.
//!
//! Simulated runtimes share one process, so the kernel has no entries for them. This writes the few files that discovery reads, in the
//! kernel's format, into a folder of the caller; discovery is then pointed at that folder instead of `/proc`.

use std::fs;
use std::io;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::fleet::{Facts, Member};
use crate::ipc::RuntimeVersion;

/// Threads with a special role, by their index in a process.
const FINALIZER: u32 = 2;
const WORKER: u32 = 4;

#[derive(Debug)]
pub(super) struct ProcTree(PathBuf);

impl ProcTree {
    /// Creates the tree's root, with a boot time in seconds since the Unix epoch.
    pub(super) fn create(root: PathBuf, boot_unix_s: u64) -> io::Result<Self> {
        fs::create_dir_all(&root)?;
        fs::write(root.join("stat"), format!("cpu  0 0 0 0 0 0 0 0 0 0\nbtime {boot_unix_s}\n"))?;
        Ok(Self(root))
    }

    /// Writes the uptime of the machine.
    pub(super) fn uptime(&self, up: Duration) -> io::Result<()> {
        replace(&self.0, "uptime", &format!("{:.2} 0.00\n", up.as_secs_f64()))
    }

    pub(super) fn add(&self, facts: &Facts, tmp: &Path, _: &Path) -> io::Result<()> {
        let dir = self.0.join(facts.pid.to_string());
        fs::create_dir_all(dir.join("ns"))?;
        let Facts { pid, ns_pid, member, .. } = facts;
        let (Member { uid, threads, command, version, container, suspended, .. }, comm) = (member, comm(member));
        // Every simulated process is in our namespaces even if it reports another pid: its socket is in the shared folder.
        for ns in ["pid", "mnt"] {
            symlink(format!("{ns}:[1]"), dir.join("ns").join(ns))?;
        }
        let nspid = if ns_pid == pid { format!("{pid}") } else { format!("{pid}\t{ns_pid}") };
        let status = format!(
            "Name:\t{comm}\nState:\tS (sleeping)\nTgid:\t{pid}\nPid:\t{pid}\nPPid:\t1\nUid:\t{uid}\t{uid}\t{uid}\t{uid}\nNSpid:\t{nspid}\nThreads:\t{threads}\n"
        );
        fs::write(dir.join("status"), status)?;
        fs::write(dir.join("cmdline"), command.iter().fold(String::new(), |line, word| line + word + "\0"))?;
        fs::write(dir.join("comm"), format!("{comm}\n"))?;
        fs::write(dir.join("environ"), format!("TMPDIR={}\0PATH=/usr/bin\0", tmp.display()))?;
        let cgroup = container.as_ref().map_or("/user.slice".to_owned(), |id| format!("/system.slice/docker-{id}.scope"));
        fs::write(dir.join("cgroup"), format!("0::{cgroup}\n"))?;
        let library = format!("/usr/share/dotnet/shared/Microsoft.NETCore.App/{version}/libcoreclr.so");
        fs::write(dir.join("maps"), format!("7f0000000000-7f0000700000 r-xp 00000000 08:01 1 {library}\n"))?;
        symlink(command.first().map_or("/usr/bin/dotnet", String::as_str), dir.join("exe"))?;
        symlink("/", dir.join("root"))?;
        // Runtimes before 6.0 name no threads, and a suspended one has no finalizer thread yet.
        let named = RuntimeVersion::new(version).major() >= 6;
        for number in (0..(*threads).max(WORKER)).filter(|number| *number != FINALIZER || !suspended) {
            let name = match number {
                1 if named => ".NET EventPipe",
                FINALIZER if named => ".NET Finalizer",
                4.. if named => ".NET TP Worker",
                _ => comm.as_str(),
            };
            thread(&dir, facts, number, name)?;
        }
        self.tick(facts, 0, 0)
    }

    /// Adds the thread that exists once managed code is running.
    pub(super) fn run(&self, facts: &Facts) -> io::Result<()> {
        thread(&self.0.join(facts.pid.to_string()), facts, FINALIZER, ".NET Finalizer")
    }

    /// Writes the current CPU time in clock ticks, all of it for the first worker, and resident memory in bytes.
    pub(super) fn tick(&self, facts: &Facts, cpu_ticks: u64, rss_bytes: u64) -> io::Result<()> {
        let dir = self.0.join(facts.pid.to_string());
        let (comm, pages) = (comm(&facts.member), rss_bytes / 4096);
        replace(&dir, "stat", &stat(facts, facts.pid, &comm, cpu_ticks, pages))?;
        let worker = facts.pid + WORKER.min(facts.member.threads.saturating_sub(1));
        let task = dir.join("task").join(worker.to_string());
        if task.is_dir() {
            replace(&task, "stat", &stat(facts, worker, ".NET TP Worker", cpu_ticks, pages))?;
        }
        replace(&dir, "statm", &format!("{pages} {pages} 0 0 0 0 0\n"))
    }
}

/// Creates a thread that has not run yet.
fn thread(dir: &Path, facts: &Facts, number: u32, name: &str) -> io::Result<()> {
    let tid = facts.pid + number;
    let task = dir.join("task").join(tid.to_string());
    fs::create_dir_all(&task)?;
    fs::write(task.join("comm"), format!("{name}\n"))?;
    fs::write(task.join("status"), format!("Name:\t{name}\nUid:\t{0}\t{0}\t{0}\t{0}\nNSpid:\t{tid}\n", facts.member.uid))?;
    fs::write(task.join("stat"), stat(facts, tid, name, 0, 0))
}

/// Returns the `stat` line of a process or thread.
fn stat(facts: &Facts, id: u32, comm: &str, cpu_ticks: u64, pages: u64) -> String {
    let Facts { pid, started, member: Member { threads, .. }, .. } = facts;
    format!(
        "{id} ({comm}) S 1 {pid} {pid} 0 -1 4194304 0 0 0 0 {cpu_ticks} 0 0 0 20 0 {threads} 0 {started} 0 {pages} 18446744073709551615 0 0 0 0 0 0 0 0 0 0 0 0 17 0 0 0 0 0 0 0 0 0 0 0 0 0 0\n"
    )
}

/// Writes a file under another name and renames it, so that readers never see it half written.
fn replace(dir: &Path, name: &str, text: &str) -> io::Result<()> {
    let fresh = dir.join(format!(".{name}"));
    fs::write(&fresh, text)?;
    fs::rename(fresh, dir.join(name))
}

/// Returns the kernel's short name: the first 15 characters of the executable's file name.
fn comm(member: &Member) -> String {
    let program = member.command.first().map_or("dotnet", String::as_str);
    program.rsplit('/').next().unwrap_or(program).chars().take(15).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn process_has_the_stated_number_of_threads() {
        let folder = tempfile::tempdir().unwrap();
        let tree = ProcTree::create(folder.path().to_owned(), 0).unwrap();
        let mut member = Member::quiet("Web");
        (member.threads, member.suspended) = (9, true);
        let facts = Facts { pid: 100, ns_pid: 100, started: 1, member };
        let tasks = || fs::read_dir(folder.path().join("100/task")).unwrap().count();
        tree.add(&facts, folder.path(), folder.path()).unwrap();
        assert_eq!(tasks(), 8, "managed code does not run yet");
        tree.run(&facts).unwrap();
        assert_eq!(tasks(), 9);
        tree.tick(&facts, 77, 4096).unwrap();
        for id in ["100", "100/task/104"] {
            let stat = fs::read_to_string(folder.path().join(id).join("stat")).unwrap();
            assert_eq!(stat.split(' ').rev().nth(38), Some("77"), "{stat}");
        }
    }
}
