//! What the names of threads show.
//!
//! Runtimes since 6.0 name their threads, and every user may read the names. Seen on 9.0.7 and 10.0.9, single-file included:
//!
//! | thread | there from | shows |
//! |---|---|---|
//! | `.NET SynchManag` | the runtime's first moments | a runtime is in this process |
//! | `.NET EventPipe` | just after | its diagnostic server listens; never there when diagnostics are off |
//! | `.NET Finalizer` | after the wait for a resume | managed code runs, or is about to |
//!
//! 3.1 names none: nothing is known of it from here.

/// What thread names show of a runtime.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Threads {
    /// At least one is a runtime's.
    pub(crate) runtime: bool,
    /// The diagnostic server's is among them.
    pub(crate) server: bool,
    /// The startup wait is over: there is a thread that comes after it.
    pub(crate) started: bool,
}

impl Threads {
    /// How many names are read. The runtime's own threads come first, unless a large native program hosts it.
    pub(crate) const MOST: usize = 64;

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

    /// Whether the runtime has come as far as its diagnostic server and no further.
    pub(crate) fn waits(self) -> bool {
        self.server && !self.started
    }
}
