//! Reads the state of a process from /proc, cheaply.
//!
//! Every read is of one pid, and may fail for benign reasons: the process has exited, belongs to another user, or is hidden. Callers treat a
//! failure as unknown, never as the end of a list. Text is returned raw; it is sanitized where it becomes a value of [`crate::model`].

pub(super) mod container;
mod control_group;
mod cpu_limit;
mod entry;
mod environ;
mod long_list;
mod mapping;
mod memory_limit;
mod resources;
mod stack;
mod status;
mod threads;
mod times;
mod version_text;

use std::ffi::OsString;
use std::fs::File;
use std::io;
use std::mem::MaybeUninit;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};
use std::time::Duration;

use procfs::FromRead;
use procfs::process::Stat;
use rustix::fs::{CWD, Mode, OFlags, PROC_SUPER_MAGIC, RawDir, fstatfs, openat, readlinkat};
use rustix::io::fcntl_dupfd_cloexec;
use rustix::process::geteuid;

use crate::model::{CpuLimit, ProcessKey, RunState};

use super::elf;
use super::file::{open_program, open_regular_in};
use crate::ipc::{RuntimeVersion, Variable};

pub(crate) use entry::{entry_name, version_of};
pub(crate) use environ::Environ;
use long_list::LongLists;
pub(crate) use mapping::{CodeMapping, MappedFile, ReadableMemory, is_assembly};
pub(crate) use stack::BlockedStack;
pub(crate) use threads::Threads;

/// Maximum bytes read of a file whose length is under the control of its owner.
const MAX_FILE_BYTES: usize = 1 << 20;
/// Maximum number of threads whose names are read.
const MAX_THREADS: usize = 65_536;

/// A proc file system: the machine's own, or a directory with the same structure.
#[derive(Debug)]
pub(crate) struct Proc {
    path: PathBuf,
    directory: OwnedFd,
    is_real: bool,
    maps: LongLists,
    mounts: LongLists,
}

impl Proc {
    /// Opens the proc file system mounted at `path`.
    pub(crate) fn open(path: &Path) -> io::Result<Self> {
        let directory = openat(CWD, path, OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty())?;
        let is_real = fstatfs(&directory).is_ok_and(|system| system.f_type == PROC_SUPER_MAGIC);
        Ok(Self { path: path.to_owned(), directory, is_real, maps: LongLists::new(mapping::MAPS), mounts: LongLists::new(mapping::MOUNTS) })
    }

    /// Checks that this many more files can be open at the same time.
    pub(crate) fn check_open_files(&self, count: usize) -> io::Result<()> {
        let duplicates = (0..count).map(|_| Ok(fcntl_dupfd_cloexec(&self.directory, 0)?)).collect::<io::Result<Vec<_>>>();
        duplicates.map(drop)
    }

    /// Whether this is the kernel's proc file system. Processes in any other directory are simulated.
    pub(crate) fn is_real(&self) -> bool {
        self.is_real
    }

    /// Whether the process exists.
    pub(crate) fn exists(&self, key: ProcessKey) -> bool {
        self.stat(key.pid).is_ok_and(|stat| stat.starttime == key.started)
    }

    /// Splits a path through the root directory of a process, `/proc/PID/root/..`, into its PID and the path below that directory. Resolved as a
    /// whole, it would leave the mount namespace of the process at the first absolute link.
    pub(crate) fn split_root(&self, path: &Path) -> Option<(u32, PathBuf)> {
        let mut below = path.strip_prefix(&self.path).ok()?.components();
        let pid = parse::<u32>(below.next()?.as_os_str().as_bytes())?;
        (below.next()?.as_os_str() == "root").then(|| (pid, below.as_path().to_owned()))
    }

    /// Returns the path of a file of a process.
    pub(crate) fn path_of(&self, pid: u32, file: &str) -> PathBuf {
        self.path.join(pid.to_string()).join(file)
    }

    /// Calls `each` with the pid and the inode number of every process.
    ///
    /// The kernel allocates a new inode for a new process, so a pid with a different inode number is a different process. (The same process may
    /// also get another number, which costs only a lookup.) The number is part of the listing and takes no further system call.
    pub(crate) fn pids(&self, mut each: impl FnMut(u32, u64)) -> io::Result<()> {
        for_each_entry(&self.directory, ".", &mut |name, inode| {
            if let Some(pid) = parse(name) {
                each(pid, inode);
            }
            true
        })
    }

    /// Returns state, start time, processor time, number of threads and memory.
    pub(crate) fn stat(&self, pid: u32) -> io::Result<Stat> {
        self.stat_of(&pid.to_string())
    }

    /// Returns the same of a process or a thread, given its directory.
    fn stat_of(&self, folder: &str) -> io::Result<Stat> {
        let bytes = self.read(&format!("{folder}/stat"), 8192)?;
        Stat::from_read(bytes.as_slice()).map_err(io::Error::other)
    }

    /// Returns the private writable memory including the stack, in bytes: the sixth number of `statm`.
    pub(crate) fn data_bytes(&self, pid: u32) -> io::Result<u64> {
        let bytes = self.read(&format!("{pid}/statm"), 256)?;
        let pages = words(&bytes).nth(5).and_then(parse::<u64>);
        pages.map(|pages| pages.saturating_mul(procfs::page_size())).ok_or_else(|| io::ErrorKind::InvalidData.into())
    }

    /// Returns the initial environment; readable by the owner and root. Empty between fork and exec. Of one longer than [`MAX_FILE_BYTES`],
    /// it is the first variables.
    pub(crate) fn environ(&self, pid: u32) -> io::Result<Environ> {
        let mut block = self.read(&format!("{pid}/environ"), MAX_FILE_BYTES)?;
        if block.len() >= MAX_FILE_BYTES {
            // The last one may be cut off.
            block.truncate(block.iter().rposition(|byte| *byte == 0).map_or(0, |end| end + 1));
        }
        Ok(Environ::new(block))
    }

    /// Returns the variables of the initial environment.
    pub(crate) fn initial_environment(&self, pid: u32) -> io::Result<Vec<Variable>> {
        Ok(self.environ(pid)?.variables())
    }

    /// Returns the working directory, as seen by the process.
    pub(crate) fn working_directory(&self, pid: u32) -> io::Result<PathBuf> {
        let target = readlinkat(&self.directory, format!("{pid}/cwd"), Vec::new())?;
        Ok(PathBuf::from(OsString::from_vec(target.into_bytes())))
    }

    /// Returns the owner of the sockets of a process of user `uid`. The sockets of simulated processes are our own.
    pub(crate) fn owner_of_sockets(&self, uid: u32) -> u32 {
        if self.is_real { uid } else { geteuid().as_raw() }
    }

    /// Returns the arguments, starting with the program's name. Empty for a zombie.
    pub(crate) fn arguments(&self, pid: u32) -> io::Result<Vec<Vec<u8>>> {
        let mut bytes = self.read(&format!("{pid}/cmdline"), 1 << 16)?;
        if bytes.last() == Some(&0) {
            bytes.pop();
        }
        Ok(if bytes.is_empty() { Vec::new() } else { bytes.split(|byte| *byte == 0).map(<[u8]>::to_vec).collect() })
    }

    /// Returns the text of `/proc/PID/cgroup`; empty if it cannot be read.
    fn control_groups(&self, pid: u32) -> Vec<u8> {
        self.read(&format!("{pid}/cgroup"), 1 << 16).unwrap_or_default()
    }

    /// Returns the container ID, if the control group contains one.
    pub(crate) fn container(&self, pid: u32) -> Option<String> {
        container::id(&self.control_groups(pid))
    }

    /// Returns the CPU limits of the control groups of the process, innermost first.
    pub(crate) fn cpu_limits(&self, pid: u32) -> Vec<CpuLimit> {
        cpu_limit::limits(Path::new(control_group::ROOT), &self.control_groups(pid))
    }

    /// Whether the runtime is suspended at startup.
    pub(crate) fn run_state(&self, pid: u32) -> RunState {
        let waits = self.threads(pid).is_ok_and(Threads::is_suspended);
        if waits { RunState::Suspended } else { RunState::Running }
    }

    /// Returns what the thread names of a process show about a runtime.
    pub(crate) fn threads(&self, pid: u32) -> io::Result<Threads> {
        let mut threads = Threads::default();
        let mut left = Threads::MAX_NAMES;
        self.each_thread(pid, &mut |_, folder| {
            threads.add(&self.thread_name(folder).unwrap_or_default());
            left -= 1;
            left > 0 && !(threads.server && threads.started)
        })?;
        Ok(threads)
    }

    /// Returns the names of threads by their ID in the innermost pid namespace, which is the one that they use themselves.
    pub(crate) fn thread_names(&self, pid: u32) -> io::Result<Vec<(u64, Vec<u8>)>> {
        // A thread that has exited has no name.
        self.map_threads(pid, MAX_THREADS, |tid, folder| Some((self.inner_thread_id(folder, tid)?, self.thread_name(folder).ok()?)))
    }

    /// Returns the kernel functions that threads sleep in, by thread ID in the innermost pid namespace.
    pub(crate) fn thread_waits(&self, pid: u32) -> io::Result<Vec<(u64, Vec<u8>)>> {
        self.map_threads(pid, MAX_THREADS, |tid, folder| Some((self.inner_thread_id(folder, tid)?, self.wait_channel(pid, tid).ok()?)))
    }

    /// Returns at most `most` thread IDs, in our pid namespace.
    pub(crate) fn thread_ids(&self, pid: u32, most: usize) -> io::Result<Vec<u32>> {
        self.map_threads(pid, most, |tid, _| Some(tid))
    }

    /// Returns the name of a thread, given its directory.
    pub(crate) fn thread_name(&self, folder: &str) -> io::Result<Vec<u8>> {
        self.read(&format!("{folder}/comm"), 64).map(|name| name.trim_ascii_end().to_vec())
    }

    /// Returns the kernel function that a thread sleeps in; `0` if it does not sleep, or the function is not visible.
    pub(crate) fn wait_channel(&self, pid: u32, thread: u32) -> io::Result<Vec<u8>> {
        self.read(&format!("{pid}/task/{thread}/wchan"), 128)
    }

    /// Returns a numeric kernel setting, such as `sys/kernel/perf_event_paranoid`.
    pub(crate) fn setting(&self, file: &str) -> Option<i64> {
        parse(self.read(file, 64).ok()?.trim_ascii())
    }

    /// Whether all threads of a process are dead. A dead thread remains until reaped by its tracer, and its process does not count as exited
    /// until then.
    pub(crate) fn is_dead(&self, pid: u32) -> io::Result<bool> {
        let is_dead = |stat: &Stat| matches!(stat.state, 'Z' | 'X');
        // The main thread rarely exits before the others.
        let mut dead = is_dead(&self.stat(pid)?);
        if dead {
            self.each_thread(pid, &mut |_, folder| {
                dead = self.stat_of(folder).is_ok_and(|stat| is_dead(&stat));
                dead
            })?;
        }
        Ok(dead)
    }

    /// Calls `each` with the ID and the directory of every thread, until it returns `false`.
    fn each_thread(&self, pid: u32, each: &mut dyn FnMut(u32, &str) -> bool) -> io::Result<()> {
        let tasks = format!("{pid}/task");
        for_each_entry(&self.directory, &tasks, &mut |name, _| parse::<u32>(name).is_none_or(|tid| each(tid, &format!("{tasks}/{tid}"))))
    }

    /// Collects what `read` returns for the ID and the directory of a thread, for at most `most` threads.
    fn map_threads<T>(&self, pid: u32, most: usize, read: impl Fn(u32, &str) -> Option<T>) -> io::Result<Vec<T>> {
        let mut found = Vec::new();
        self.each_thread(pid, &mut |tid, folder| {
            found.extend(read(tid, folder));
            found.len() < most
        })?;
        Ok(found)
    }

    /// Returns the child processes, if listed by the kernel (`CONFIG_PROC_CHILDREN`).
    pub(crate) fn children(&self, pid: u32) -> io::Result<Vec<u32>> {
        let mut children = Vec::new();
        self.each_thread(pid, &mut |_, folder| {
            let listed = self.read(&format!("{folder}/children"), MAX_FILE_BYTES).unwrap_or_default();
            children.extend(words(&listed).filter_map(parse::<u32>));
            true
        })?;
        Ok(children)
    }

    /// Returns the path of the runtime's library, if mapped. Nothing is mapped if runtime and application are a single file.
    pub(crate) fn runtime_library(&self, pid: u32) -> io::Result<Option<PathBuf>> {
        let is_library = |path: &PathBuf| path.ends_with("libcoreclr.so") || path.ends_with("libmonosgen-2.0.so");
        Ok(self.mapped_files(pid)?.into_iter().map(|file| file.path).find(is_library))
    }

    /// Returns the version in the text of a library of the process, for a path without one.
    pub(crate) fn version_in(&self, pid: u32, library: &Path) -> Option<RuntimeVersion> {
        version_text::find(self.regular_file(pid, library).ok()?).ok().flatten()
    }

    /// Whether the program was compiled by NativeAOT, including the runtime. A program that also loads CoreCLR does not count. `None` if neither
    /// its file nor its mappings show that.
    pub(crate) fn is_native_aot(&self, pid: u32) -> Option<bool> {
        let is_compiled = open_program(self, pid).ok().map(|file| elf::is_native_aot(&file));
        if is_compiled == Some(false) || self.runtime_library(pid).ok()?.is_some() { Some(false) } else { is_compiled }
    }

    /// Whether it is a Windows program running under Wine.
    pub(crate) fn is_under_wine(&self, pid: u32) -> bool {
        let program = readlinkat(&self.directory, format!("{pid}/exe"), Vec::new());
        program.is_ok_and(|path| path.as_bytes().rsplit(|byte| *byte == b'/').next().is_some_and(|name| name.starts_with(b"wine")))
    }

    /// Opens a file as seen by a process for reading, if it is a regular file.
    pub(crate) fn regular_file(&self, pid: u32, path: &Path) -> io::Result<File> {
        open_regular_in(self, pid, path)
    }

    /// Opens `kallsyms`, which lists the kernel's functions.
    pub(crate) fn kernel_functions(&self) -> io::Result<File> {
        self.open_file("kallsyms").map(File::from)
    }

    /// Reads a file that the kernel returns whole: a short read is the end.
    fn read(&self, file: &str, longest: usize) -> io::Result<Vec<u8>> {
        let file = self.open_file(file)?;
        let mut bytes = Vec::with_capacity(2048);
        while bytes.len() < longest {
            bytes.reserve(1024);
            let room = bytes.capacity() - bytes.len();
            if rustix::io::read(&file, rustix::buffer::spare_capacity(&mut bytes))? < room {
                break;
            }
        }
        Ok(bytes)
    }

    fn open_file(&self, file: &str) -> io::Result<OwnedFd> {
        Ok(openat(&self.directory, file, OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty())?)
    }
}

/// Calls `each` with the name and the inode number of the entries of a directory, until it returns `false`. A relative path begins at `at`.
pub(crate) fn for_each_entry(at: &OwnedFd, path: &str, each: &mut dyn FnMut(&[u8], u64) -> bool) -> io::Result<()> {
    let directory = openat(at, path, OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty())?;
    let mut buffer = [MaybeUninit::uninit(); 8192];
    let mut entries = RawDir::new(directory, &mut buffer);
    while let Some(entry) = entries.next() {
        let entry = entry?;
        if !each(entry.file_name().to_bytes(), entry.ino()) {
            break;
        }
    }
    Ok(())
}

/// Converts clock ticks.
pub(crate) fn ticks(count: u64) -> Duration {
    Duration::from_secs_f64(count as f64 / procfs::ticks_per_second() as f64)
}

fn parse<T: std::str::FromStr>(bytes: &[u8]) -> Option<T> {
    std::str::from_utf8(bytes).ok()?.parse().ok()
}

fn words(line: &[u8]) -> impl DoubleEndedIterator<Item = &[u8]> {
    line.split(u8::is_ascii_whitespace).filter(|word| !word.is_empty())
}

#[cfg(test)]
mod tests;
