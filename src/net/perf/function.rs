//! Functions and call chains of sampled code.

/// Kind of code.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum CodeKind {
    /// A native library or program.
    Image,
    /// A .NET assembly that was compiled ahead of time (ReadyToRun).
    Assembly,
    /// Memory written by the process itself: JIT-compiled methods and stubs.
    Generated,
    /// The kernel.
    Kernel,
}

/// A function.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CodeFunction {
    /// Start address.
    pub start: u64,
    /// Size in bytes.
    pub size: u32,
    /// Name; empty if unknown. Not sanitized.
    pub name: String,
    /// Name of its file without directory; empty if it is not in a file. Not sanitized.
    pub image: String,
    /// Kind of code.
    pub kind: CodeKind,
}

/// The frames of a call chain that are in code.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CodeChain<'a> {
    /// Innermost first.
    pub frames: &'a [u64],
    /// Whether it ends before the thread's entry function, because code in between does not keep the frame pointer.
    pub broken: bool,
}
