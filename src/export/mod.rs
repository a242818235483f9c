//! What runtimes tell, in the file formats of other tools.
//!
//! Events or findings in, bytes out, into whatever takes them; of a heap also bytes in, findings out. No input, no files, no clock: moments and names are arguments.

mod cpu_trace;
mod gcdump;
mod graph;
mod heap_trace;
mod places;
mod trace;

pub use cpu_trace::CpuTrace;
pub use gcdump::{DumpError, Facts, GraphError, HeapDump};
pub use graph::HeapGraph;
pub use trace::{Batch, Export, Joined, LiveProcess, LiveTrace, Options, Overview, Part, Processes, Samples, Scratch, notices};
