//! Long-running operations on a process: recordings, counters, heap walks, stacks, profiles, dumps, perf maps; and starting a program to
//! record it. The command line and the dashboard only parse, print, and convert to messages.
//!
//! All sessions are opened, drained, stopped and abandoned in one place (`trace_session`). A recording reads its stream on a thread of its
//! own, writes, counts and publishes; its file is renamed when it is complete. Recorded files can be read again. Results are plain values;
//! the only user-visible texts made here are error messages.

mod backlog;
mod blocking;
mod client_data;
mod condition;
mod count;
mod counters;
mod cpu;
mod cpu_sample_file;
mod cpu_use;
mod decoded_stream;
mod dump;
mod export;
mod follow;
mod heap;
mod heap_file;
mod launch;
mod listener;
mod live_snapshots;
mod names;
mod no_port;
mod observation;
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
mod recorded_files;
mod recorder;
mod runtime_port;
mod salvage;
mod segments;
mod stacks;
mod startup;
mod threads;
mod trace_session;
mod user_events;
mod watch;

pub use crate::export::{Options as ExportOptions, Part as ExportPart};
pub use client_data::{ClientDataError, client_data};
pub use condition::{ConditionError, ConditionUpdate, ConditionWait};
pub use counters::{CounterError, CounterEvent, CounterMonitor, CounterOptions, CounterSelection};
pub use cpu::{CpuError, CpuProfile, CpuRequest, profile_cpu, without_idle_waits};
pub use cpu_sample_file::{NoSamples, read_cpu_samples};
pub use dump::{CheckedDump, DumpError, DumpNotice, Dumped, check_dump, dump, free_space, is_folder};
pub use export::{Destination, ExportError, Exported, ShouldContinue, export};
pub use follow::Follower;
pub use heap::{HeapError, HeapWalk, walk_heap};
pub use heap_file::{HeapFile, HeapFileError, is_heap_file, read_heap};
pub use launch::{ChildOutput, Launch, LaunchError, LaunchEvent, Launched, Orphans, RUNTIME_START_TIMEOUT};
pub use names::append_names;
pub use observation::{Observation, Observed, SlowObserved};
pub use orphans::{RESUME_ORPHANS, resume_orphans};
pub use output::{OutputError, OutputFile, default_file, file_stamp, free_target_path, numbered};
pub use perf_map::perf_map;
pub use perfetto::{ServeOptions, Settings, serve, service_state};
pub use plan::{Plan, StartError};
pub use progress::Slot;
pub use read::{read_trace, trace_file};
pub use recorded::{Pass, ReadError, RecordedFile};
pub use recorded_files::recorded_files;
pub use recorder::{Recorder, StopRequest};
pub use runtime_port::RuntimePort;
pub use salvage::{SalvageError, salvage};
pub use stacks::{StacksError, ThreadStacks, thread_stacks};
pub use startup::start_program;
pub use trace_session::{Cut, StopLimit, Unfinished};
pub use user_events::{KernelSession, UserEventsUnavailable, user_events_data, user_events_missing};
pub use watch::{WatchOptions, watch};

#[cfg(test)]
mod tests;
