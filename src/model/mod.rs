//! Plain values shared by the modules: a process and its facts, a recording and its progress.
//!
//! They have a module of their own because `net` and `session` create them, `app` stores them, `ui` displays them and `cli` prints them, and none
//! of those may depend on all the others. No input or output, no clock, and no rules beyond those of a value itself.

mod capability;
mod check;
mod comparison;
mod condition;
mod cpu;
mod cpu_use;
mod image;
mod lines;
mod native_aot;
mod output_name;
mod process;
mod producer;
mod recording;
mod recording_analysis;
mod resources;
mod safe_text;
mod secret;
mod secret_pattern;
mod size;
mod target_paths;
mod text;
mod threshold;
mod trace_file;
mod trace_format;
mod trace_options;
mod units;
mod variable;

pub use capability::Capability;
pub use check::{Check, Grade, Obstacle};
pub use comparison::{Amount, Change};
pub use condition::{Condition, Conditions};
pub use cpu::{CpuThread, CpuTime};
pub use cpu_use::{CpuConstraints, CpuLimit, CpuUse};
pub use image::ImageIdentity;
pub use lines::newest_lines;
pub use native_aot::NativeAotGap;
pub use output_name::OutputName;
pub use process::{Contact, Process, ProcessKey, RunState, Stopper, Trouble, Usage, counters_delay};
pub use producer::{PacketCounts, ProducerReport};
pub use recording::{
    CpuTimeUnavailable, FlightBufferUsage, KernelTrace, MethodNameResolution, Outcome, Phase, Rate, Recording, RecordingId, Scheduling,
    StoppedBy, ThreadUse,
};
pub use recording_analysis::{EventRate, RecordingAnalysis};
pub use resources::{FreeSpace, Limited, OpenFileKind, OpenFiles, ProcessUse, ResourceUse};
pub use safe_text::SafeText;
pub use secret::shown_command_line;
pub use secret_pattern::SecretPatterns;
pub use size::{format_size, parse_size};
pub use target_paths::{FILE_STAMP, default_dump_path, file_stem, has_own_root, reachable_path, temporary_folder};
pub use text::{csv_field, escape_json, is_formula, is_unsafe, safe, sanitize};
pub use threshold::{Figure, Threshold};
pub use trace_file::{FileContents, FileKind, Span, TraceFile};
pub use trace_format::{
    TraceFormat, check_extension, check_file_name, check_heap_file, check_not_stdout, export_stem, finished_path, is_partial_file,
    is_perfetto_file, partial_path,
};
pub use trace_options::{TraceOptions, format_keep, format_time, parse_keep, shell_word};
pub use units::{Age, ByteRate, Bytes, Count, CountRate, Counted, Nanoseconds, Number, Percent, Stopwatch};
pub use variable::{Environment, EnvironmentSource, Variable};
