//! Accumulators: events in by the million, small bounded snapshots out.
//!
//! [`Live`] owns all of them: it is a [`Sink`](crate::nettrace::Sink), fed by a decoder at low cost, and returns plain values on request.
//! Memory is bounded for any stream, and an event similar to an earlier one does not allocate. Times are in nanoseconds since the start of the
//! session (the sync point of the trace header). Text from the stream is not sanitized here.
//!
//! Performs no I/O and reads no clock: all times are those of the events and the callers.

mod activities;
mod activity_pairs;
mod activity_path;
mod assemblies;
mod clock;
mod comparison;
mod contention;
mod counters;
mod diagnostic_source;
mod distribution;
mod dominators;
mod event_context;
mod event_count;
mod event_text;
mod event_trigger;
mod exceptions;
mod filter;
mod gc;
mod heap;
mod heap_change;
mod http;
mod images;
mod jit;
mod latest;
mod live;
mod lock_owners;
mod lock_waits;
mod logs;
mod methods;
mod names;
mod occurrences;
mod pending_async;
mod ranking;
mod rates;
mod recent;
mod recorded_cpu;
mod retention;
mod runtime_waits;
mod sampled;
mod snapshot;
mod symbols;
mod thread_pool;
mod throughput;
mod timeline;

pub use crate::nettrace::ThreadId;
pub use activities::{ActivitySnapshot, ActivitySubject, FinishedActivity, OperationSnapshot, OtherActivities, RunningActivity};
pub use activity_pairs::{ActivityPairs, ActivityStep};
pub use assemblies::{Assembly, AssemblySnapshot, MissingAssembly};
pub use comparison::{Compared, ComparedFigure, Section, Subject, Unit, compare};
pub use contention::{ContentionSite, ContentionSnapshot, ThreadLockWaits};
pub use counters::{
    CollectionMarks, CounterKind, CounterReader, CounterSession, CounterSnapshot, CounterSource, CounterTally, CounterValue,
    CountersSnapshot, EventBytes, HistogramReading, MeterLimits, MeterNotice, RequestDurations, RuntimeStats, Spread, without_duplicates,
};
pub use distribution::Distribution;
pub use event_count::{EventCount, KernelSamples};
pub use event_text::{Described, describe};
pub use event_trigger::EventTrigger;
pub use exceptions::{ExceptionSnapshot, ExceptionType, ThrownException};
pub use filter::{Field, Filter, LiveEventFilter, name_rank};
pub use gc::{
    AllocatedType, AllocationSample, AllocationSnapshot, Collection, CollectionCount, FinalizerWait, FullCollection, GcMark, GcSnapshot,
    Heap, PauseSnapshot,
};
pub use heap::{HeapProblem, HeapSnapshot, HeapType};
pub use heap_change::{HeapAmount, HeapChange, growth};
pub use http::{Layer, Outcome};
pub use images::{CodeLocation, Images};
pub use jit::{JitSnapshot, JitTime, SlowMethod, TierBodies};
pub use live::Live;
pub use lock_waits::LockWait;
pub use logs::{LEVELS, LogFilter, LogMessage, LogSnapshot};
#[cfg(test)]
pub(crate) use methods::COUNTED;
pub use methods::{
    CallNode, CallSite, Counts, CpuSamples, CpuStack, MethodCount, MethodTime, Methods, MethodsSnapshot, MissingFrames, OsrCallers,
    OsrSite, Profile, ProfileFrame, Rounds, SampleCount, SampleFilter, StackGroup, StuckThreads, ThreadCpu, ThreadSamples, TypeStacks,
    WaitReason, Waits,
};
pub use occurrences::{NewOccurrences, Occurrence, OccurrenceKind};
pub use pending_async::PendingAsync;
pub use rates::{Gap, RateSnapshot};
pub use recent::{EventName, RecentSnapshot, SingleEvent};
pub use recorded_cpu::{RecordedCpuTime, ThreadTimes};
pub use retention::{ObjectGraph, PathStep, RetainedType, Retention, RootPath};
pub use runtime_waits::{RuntimeWait, RuntimeWaits};
pub use sampled::SampledMethods;
pub use snapshot::{ContainedEvents, Snapshot};
pub use symbols::{MethodId, NativeFunction, Origin, Symbols, module_name};
pub use thread_pool::{Adjustment, ThreadPoolSnapshot};
pub use throughput::{ProblemCount, Throughput, Totals};
pub use timeline::Timeline;

#[cfg(test)]
mod tests;
