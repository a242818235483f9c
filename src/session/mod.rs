//! Long-running operations on a process: recordings, counters, heap walks, stacks, profiles, dumps, perf maps; and starting a program to
//! record it. The command line and the dashboard only parse, print, and convert to messages.
//!
//! All sessions are opened, drained, stopped and abandoned in one place (`trace_session`). A recording reads its stream on a thread of its
//! own, writes, counts and publishes; its file is renamed when it is complete. Recorded files can be read again. Results are plain values;
//! the only user-visible texts made here are error messages.

mod backlog;
mod client_data;
mod count;
mod counters;
mod cpu;
mod cpu_beside;
mod cpu_use;
mod dump;
mod export;
mod found;
mod heap;
mod heap_file;
mod launch;
mod listener;
mod names;
mod no_port;
mod observation;
mod observe;
mod orphans;
mod output;
mod perf_map;
mod perfetto;
mod pieces;
mod plan;
mod progress;
mod pump;
mod read;
mod recorded;
mod recorder;
mod salvage;
mod segments;
mod stacks;
mod threads;
mod trace_session;
mod user_events;
mod watch;

pub use crate::export::{Options as ExportOptions, Part as ExportPart};
pub use client_data::{ClientDataError, client_data};
pub use counters::{CounterError, CounterEvent, CounterMonitor, CounterOptions, CounterSelection};
pub use cpu::{CpuError, CpuProfile, CpuRequest, profile_cpu};
pub use cpu_beside::cpu_beside;
pub use dump::{DUMP_LIMIT, DumpError, Dumped, dump};
pub use export::{Destination, ExportError, Exported, GoOn, export};
pub use found::recorded_files;
pub use heap::{HeapError, HeapWalk, walk_heap};
pub use heap_file::{HeapFile, HeapFileError, is_heap_file, read_heap};
pub use launch::{ChildOutput, Launch, LaunchError, LaunchEvent, Launched, Orphans, USUAL_START};
pub use names::append_names;
pub use observation::{Observation, Observed, SlowObserved};
pub use orphans::{RESUME_ORPHANS, resume_orphans};
pub use output::{OutputError, OutputFile, default_file, file_stamp, free_name_beside, numbered};
pub use perf_map::perf_map;
pub use perfetto::{Serve, Settings, serve, service_state};
pub use plan::{Plan, StartError};
pub use progress::Slot;
pub use read::{read_trace, trace_file};
pub use recorded::{Pass, ReadError, Recorded};
pub use recorder::{Recorder, StopRequest};
pub use salvage::{SalvageError, salvage};
pub use stacks::{StacksError, ThreadStacks, thread_stacks};
pub use trace_session::{Cut, StopLimit, Unfinished};
pub use user_events::{KernelSession, user_events_data, user_events_missing};
pub use watch::{Watch, watch};

#[cfg(test)]
mod tests;
