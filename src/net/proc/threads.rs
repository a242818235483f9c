//! The state of a runtime, derived from the names of threads.
//!
//! Runtimes since 6.0 name their threads, and every user may read the names. Seen on 9.0.7 and 10.0.9, including single-file applications:
//!
//! | thread | exists from | shows |
//! |---|---|---|
//! | `.NET SynchManag` | the start of the runtime | the process has a runtime |
//! | `.NET EventPipe` | shortly after | the diagnostic server listens; never exists if diagnostics are disabled |
//! | `.NET Finalizer` | the end of the suspension at startup | managed code runs, or is about to |
//!
//! 3.1 does not name its threads, so nothing is known about it.

/// What the thread names of a process show about a runtime.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Threads {
    /// At least one thread belongs to a runtime.
    pub(crate) runtime: bool,
    /// The diagnostic server has a thread.
    pub(crate) server: bool,
    /// The runtime is not suspended at startup: there is a thread created after that.
    pub(crate) started: bool,
}

impl Threads {
    /// Maximum number of names read. The runtime's own threads come first, unless it is hosted by a large native program.
    pub(crate) const MAX_NAMES: usize = 64;

    pub(super) fn add(&mut self, name: &[u8]) {
        if let Some(name) = name.strip_prefix(b".NET ") {
            self.runtime = true;
            match name {
                b"EventPipe" => self.server = true,
                b"SynchManag" => {}
                _ => self.started = true,
            }
        }
    }

    /// Whether the runtime is suspended at startup: its diagnostic server runs, but nothing that starts later.
    pub(crate) fn is_suspended(self) -> bool {
        self.server && !self.started
    }
}
