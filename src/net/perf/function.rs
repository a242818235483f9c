//! What is known of an address.

/// What kind of code it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum CodeKind {
    /// A library or a program of native code.
    Image,
    /// A .NET assembly that was compiled ahead of time (ReadyToRun).
    Assembly,
    /// Memory that the process wrote itself: JIT-compiled methods and stubs.
    Generated,
    /// The kernel.
    Kernel,
}

/// Code with a name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CodeFunction {
    /// Its first address.
    pub start: u64,
    /// Bytes.
    pub size: u32,
    /// Its name; empty where it is not known. Not sanitised.
    pub name: String,
    /// The file that it is of, without folder; empty for what is of no file. Not sanitised.
    pub image: String,
    /// What it is.
    pub kind: CodeKind,
}

/// The frames of a call chain that are code.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CodeChain<'a> {
    /// Innermost first.
    pub frames: &'a [u64],
    /// Whether it ends before the function that a thread begins with: code that uses the frame pointer for something else is in the way.
    pub broken: bool,
}
