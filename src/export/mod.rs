//! Events and analyses in the file formats of other tools.
//!
//! Converts events or analyses to bytes for a writer; for heaps also bytes to analyses. No input, no files, no clock: times and names are
//! arguments.

mod address_index;
mod cpu_trace;
mod gcdump;
mod graph;
mod heap_trace;
mod trace;

pub use cpu_trace::CpuTrace;
pub use gcdump::{DumpError, DumpInfo, GraphError, HeapDump};
pub use graph::HeapGraph;
pub use trace::{
    Batch, Export, Finished, JoinCounts, LivePackets, LiveProcess, LiveTrace, Options, Overview, Part, Processes, SampleStream, Scratch,
    Written, notices,
};
