//! Resources of a process that can be exhausted, and their limits.

use super::{Bytes, CpuUse};

/// Memory, threads and open files of a process at one moment. Unknown values are `None`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ResourceUse {
    /// Resident memory, in bytes.
    pub resident: Option<u64>,
    /// Memory not backed by a file, resident or swapped, in bytes.
    pub anonymous: Option<u64>,
    /// Number of threads.
    pub threads: Option<u64>,
    /// Threads in an uninterruptible wait, usually for a disk or a network file system.
    pub disk_waiters: Option<u64>,
    /// Open file descriptors.
    pub open_files: Option<OpenFiles>,
    /// Memory used by a control group of the process, without page cache that can be dropped, and the limit of that group, in bytes; `None` if
    /// there is no limit. Of several limits, the one that is closest.
    pub memory: Option<Limited>,
    /// Maximum size of the GC heap in bytes, if it is configured or follows from the memory limit.
    pub heap_limit: Option<u64>,
}

/// What the system shows about a watched process.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct ProcessUse {
    /// CPU use over the last seconds; `None` if unknown.
    pub cpu: Option<CpuUse>,
    /// Memory, threads and open files now.
    pub resources: ResourceUse,
}

/// A value that cannot exceed its limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limited {
    /// The current value.
    pub used: u64,
    /// The limit.
    pub limit: u64,
}

impl Limited {
    /// Returns the used share of the limit.
    pub fn share(self) -> f64 {
        self.used as f64 / self.limit.max(1) as f64
    }

    /// Returns the rest up to the limit, which may have been lowered below the current value.
    pub fn left(self) -> u64 {
        self.limit.saturating_sub(self.used)
    }
}

/// Space for new files in a folder.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FreeSpace {
    /// Bytes that can be written.
    pub bytes: u64,
    /// Whether the folder is in memory (tmpfs), of which a limit of the writing process leaves no more: the kernel kills the process if it writes
    /// more.
    pub is_memory: bool,
    /// Memory that a limit of the writing process leaves, in bytes; `None` without a limit.
    pub memory_left: Option<u64>,
}

impl FreeSpace {
    /// Memory that createdump takes, in bytes: at most that much for every type of dump of .NET 9 with a heap of 1 GB, whether of few large
    /// objects or of ten million small ones.
    const DUMP_PROGRAM_BYTES: u64 = 20_000_000;

    /// Returns a warning, without its article, if a memory limit may not leave enough for a dump program.
    pub fn dump_warning(self) -> Option<String> {
        let left = self.memory_left.filter(|left| *left < Self::DUMP_PROGRAM_BYTES)?;
        let (left, needed) = (Bytes(left), Bytes(Self::DUMP_PROGRAM_BYTES));
        Some(format!(
            "memory limit of the process leaves {left}, and createdump, to which it also applies, takes about {needed}: the kernel may kill either"
        ))
    }
}

/// Open file descriptors of a process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OpenFiles {
    /// Their number, and the highest one that the process may open.
    pub count: Limited,
    /// Kind of most of those that were opened last, if they were examined.
    pub kind: Option<OpenFileKind>,
}

listed! {
/// Kind of an open file descriptor.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum OpenFileKind {
    /// Files and folders.
    File => "files",
    /// Sockets.
    Socket => "sockets",
    /// Pipes.
    Pipe => "pipes",
    /// Anything else, such as inotify instances.
    Other => "other objects",
}
/// Returns the name of several of this kind.
pub fn name(self) -> &'static str;
}

impl OpenFileKind {
    /// Returns the kind of the object with this name, the target of a link in `/proc/PID/fd`.
    pub fn of_target(target: &[u8]) -> Self {
        match target {
            [b'/', ..] => Self::File,
            _ if target.starts_with(b"socket:") => Self::Socket,
            _ if target.starts_with(b"pipe:") => Self::Pipe,
            _ => Self::Other,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_dump_program_is_only_warned_of_if_memory_is_scarce() {
        let warning = |memory_left| FreeSpace { bytes: 1, is_memory: false, memory_left }.dump_warning();
        assert_eq!([None, Some(20_000_000)].map(warning), [None, None]);
        assert!(warning(Some(19_999_999)).is_some_and(|text| text.starts_with("memory limit of the process leaves 20.0 MB, ")));
    }
}
