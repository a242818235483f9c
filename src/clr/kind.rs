//! What kind of event a metadata record describes: asked once per record, so that an event costs an index and a match.

use crate::nettrace::Metadata;

use super::RUNTIME;

/// The runtime's method and module map, which it writes when a session stops.
const RUNDOWN: &str = "Microsoft-Windows-DotNETRuntimeRundown";
/// The provider of the runtime's own sampler.
pub const SAMPLE_PROFILER: &str = "Microsoft-DotNETCore-SampleProfiler";
const EVENT_PIPE: &str = "Microsoft-DotNETCore-EventPipe";
const METRICS: &str = "System.Diagnostics.Metrics";
const LOGGING: &str = "Microsoft-Extensions-Logging";
const DIAGNOSTIC_SOURCE: &str = "Microsoft-Diagnostics-DiagnosticSource";
const TASKS: &str = "System.Threading.Tasks.TplEventSource";
/// What collectors outside the runtime record: samples and context switches of the kernel, and what is mapped into processes.
pub const UNIVERSAL_EVENTS: &str = "Universal.Events";
const UNIVERSAL_SYSTEM: &str = "Universal.System";
/// Of dn-top itself, in its files of processor time.
const THREAD_TIMES: &str = "DnTop.Threads";
const SAMPLES: &str = "DnTop.Samples";
/// Their starts and stops are not of requests, and come by the thousand.
const NO_ACTIVITIES: [&str; 2] = ["System.Buffers.ArrayPoolEventSource", "System.Diagnostics.Eventing.FrameworkEventSource"];

/// The events that analyses know. One of the native runtime is known by its provider and number: its version changes only how long its payload
/// is, and numbers mean other events at the rundown provider. One of an EventSource whose number is made up at run time is known by its name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum EventKind {
    /// One that no analysis handles.
    #[default]
    Other,
    /// [`GcStart`](super::payload::GcStart).
    GcStart,
    /// [`GcEnd`](super::payload::GcEnd).
    GcEnd,
    /// All managed threads stand. No payload.
    SuspendEnd,
    /// All threads run again. No payload worth reading.
    RestartEnd,
    /// [`HeapStats`](super::payload::HeapStats).
    HeapStats,
    /// [`SuspendBegin`](super::payload::SuspendBegin).
    SuspendBegin,
    /// [`AllocationTick`](super::payload::AllocationTick).
    AllocationTick,
    /// [`AllocationSampled`](super::payload::AllocationSampled).
    AllocationSampled,
    /// [`PerHeapHistory`](super::payload::PerHeapHistory).
    PerHeapHistory,
    /// [`BulkType`](super::payload::BulkType).
    BulkType,
    /// [`BulkNode`](super::payload::BulkNode).
    BulkNode,
    /// [`BulkEdge`](super::payload::BulkEdge).
    BulkEdge,
    /// [`BulkRootEdge`](super::payload::BulkRootEdge).
    BulkRootEdge,
    /// [`BulkWeakTableEdge`](super::payload::BulkWeakTableEdge).
    BulkWeakTableEdge,
    /// [`BulkRootStaticVariable`](super::payload::BulkRootStaticVariable).
    BulkRootStaticVariable,
    /// [`ExceptionThrown`](super::payload::ExceptionThrown).
    ExceptionThrown,
    /// [`ContentionStart`](super::payload::ContentionStart).
    ContentionStart,
    /// [`ContentionStop`](super::payload::ContentionStop).
    ContentionStop,
    /// A worker starts, stops, retires, returns or waits: [`Workers`](super::payload::Workers).
    Workers,
    /// [`AdjustmentSample`](super::payload::AdjustmentSample).
    AdjustmentSample,
    /// [`Adjustment`](super::payload::Adjustment).
    Adjustment,
    /// [`MinMaxThreads`](super::payload::MinMaxThreads).
    MinMaxThreads,
    /// A work item goes into the thread pool's queue. No payload worth reading.
    WorkEnqueue,
    /// A work item comes out of the thread pool's queue. No payload worth reading.
    WorkDequeue,
    /// A managed thread is made.
    ThreadCreated,
    /// A method body appears: [`MethodBody`](super::payload::MethodBody), without names.
    MethodLoad,
    /// A method body appears: [`MethodVerbose`](super::payload::MethodVerbose).
    MethodLoadVerbose,
    /// A method body goes: [`MethodBody`](super::payload::MethodBody), whether or not names follow.
    MethodUnload,
    /// A method body of the rundown: [`MethodBody`](super::payload::MethodBody), without names.
    MethodRundown,
    /// A method body of the rundown: [`MethodVerbose`](super::payload::MethodVerbose).
    MethodRundownVerbose,
    /// [`JittingStarted`](super::payload::JittingStarted).
    JittingStarted,
    /// [`ModuleLoad`](super::payload::ModuleLoad).
    ModuleLoad,
    /// A module of the rundown: [`ModuleLoad`](super::payload::ModuleLoad).
    ModuleRundown,
    /// [`AssemblyLoad`](super::payload::AssemblyLoad).
    AssemblyLoad,
    /// An assembly goes: [`AssemblyLoad`](super::payload::AssemblyLoad).
    AssemblyUnload,
    /// An assembly of the rundown: [`AssemblyLoad`](super::payload::AssemblyLoad).
    AssemblyRundown,
    /// [`AssemblyLoadStop`](super::payload::AssemblyLoadStop).
    AssemblyLoadStop,
    /// [`BackgroundJit`](super::payload::BackgroundJit) begins.
    BackgroundJitStart,
    /// [`BackgroundJit`](super::payload::BackgroundJit) ends.
    BackgroundJitStop,
    /// [`RuntimeInformation`](super::payload::RuntimeInformation).
    RuntimeInformation,
    /// [`ThreadSample`](super::payload::ThreadSample).
    ThreadSample,
    /// [`ProcessInfo`](super::payload::ProcessInfo).
    ProcessInfo,
    /// A value of an EventCounter of any provider; its metadata describe it.
    EventCounter,
    /// Any event of `System.Diagnostics.Metrics`; its metadata describe it.
    Metrics,
    /// A message of an `ILogger`; its metadata describe it.
    LogMessage,
    /// Something begins that has an activity id, such as a request; its metadata describe it.
    ActivityStart,
    /// Something ends that has an activity id; its metadata describe it.
    ActivityStop,
    /// Something that has an activity id fails, before it ends; its metadata describe it.
    ActivityFailure,
    /// An event of a library in an activity, as `DiagnosticSource` hands it on; its metadata describe it.
    ActivityDetail,
    /// A task, or what follows an `await`, is put where it waits; its metadata describe it.
    TaskScheduled,
    /// A task, or what follows an `await`, begins to run; its metadata describe it.
    TaskStarted,
    /// A processor was looked at (`Universal.Events`). Its stack shows where it was.
    CpuSample,
    /// [`ContextSwitch`](super::payload::ContextSwitch).
    ContextSwitch,
    /// [`ProcessName`](super::payload::ProcessName).
    ProcessName,
    /// [`ProcessMapping`](super::payload::ProcessMapping).
    ProcessMapping,
    /// [`ProcessSymbol`](super::payload::ProcessSymbol).
    ProcessSymbol,
    /// [`ThreadTime`](super::payload::ThreadTime).
    ThreadTime,
    /// [`SampleLosses`](super::payload::SampleLosses).
    SampleLosses,
}

impl EventKind {
    /// Whether any analysis looks at such events; the others are for exports alone.
    #[inline]
    pub fn is_analysed(self) -> bool {
        use EventKind::{
            ContextSwitch, CpuSample, Other, ProcessMapping, ProcessName, ProcessSymbol, SampleLosses, SuspendEnd, TaskScheduled,
            TaskStarted, ThreadTime,
        };
        !matches!(
            self,
            Other
                | ContextSwitch
                | CpuSample
                | ProcessMapping
                | ProcessName
                | ProcessSymbol
                | SampleLosses
                | SuspendEnd
                | TaskScheduled
                | TaskStarted
                | ThreadTime
        )
    }

    /// Whether such events have the addresses and names of methods.
    #[inline]
    pub fn locates_methods(self) -> bool {
        matches!(self, Self::MethodLoadVerbose | Self::MethodRundownVerbose | Self::ModuleLoad | Self::ModuleRundown)
    }

    /// Whether the runtime writes the events of a metadata record only once a session is stopped: they describe the process, and are not part of what was
    /// recorded.
    pub fn comes_after_the_stop(metadata: &Metadata) -> bool {
        matches!(metadata.provider.as_str(), RUNDOWN | EVENT_PIPE)
    }

    /// Whether the events of a provider only describe the process and the recording: rundowns, mappings, names of functions, times of threads.
    pub fn only_describes(provider: &str) -> bool {
        matches!(provider, RUNDOWN | EVENT_PIPE | UNIVERSAL_SYSTEM | THREAD_TIMES | SAMPLES)
    }

    /// The kind of the events of a metadata record.
    pub fn of(metadata: &Metadata) -> Self {
        match metadata.provider.as_str() {
            RUNTIME => Self::of_runtime(metadata.event_id),
            RUNDOWN => Self::of_rundown(metadata.event_id),
            SAMPLE_PROFILER if metadata.event_id == 0 => Self::ThreadSample,
            EVENT_PIPE if metadata.event_id == 1 => Self::ProcessInfo,
            METRICS => Self::Metrics,
            TASKS => Self::of_tasks(metadata.event_id),
            UNIVERSAL_EVENTS => Self::of_kernel(&metadata.name),
            UNIVERSAL_SYSTEM => Self::of_system(metadata.event_id),
            THREAD_TIMES if metadata.event_id == 1 => Self::ThreadTime,
            SAMPLES if metadata.event_id == 1 => Self::SampleLosses,
            _ if metadata.name == "EventCounters" => Self::EventCounter,
            // The same message comes as text, as text with its parts, and as JSON, as keywords ask for it.
            LOGGING if ["FormattedMessage", "MessageJson"].contains(&metadata.name.as_str()) => Self::LogMessage,
            LOGGING => Self::Other,
            provider if NO_ACTIVITIES.contains(&provider) => Self::Other,
            DIAGNOSTIC_SOURCE if metadata.name == "Event" => Self::ActivityDetail,
            _ => Self::of_activity(metadata),
        }
    }

    fn of_runtime(id: u32) -> Self {
        match id {
            1 => Self::GcStart,
            2 => Self::GcEnd,
            3 => Self::RestartEnd,
            4 => Self::HeapStats,
            8 => Self::SuspendEnd,
            9 => Self::SuspendBegin,
            10 => Self::AllocationTick,
            15 => Self::BulkType,
            16 => Self::BulkRootEdge,
            17 => Self::BulkWeakTableEdge,
            18 => Self::BulkNode,
            19 => Self::BulkEdge,
            38 => Self::BulkRootStaticVariable,
            50..=53 | 57 => Self::Workers,
            54 => Self::AdjustmentSample,
            55 => Self::Adjustment,
            59 => Self::MinMaxThreads,
            61 => Self::WorkEnqueue,
            62 => Self::WorkDequeue,
            80 => Self::ExceptionThrown,
            81 => Self::ContentionStart,
            85 => Self::ThreadCreated,
            91 => Self::ContentionStop,
            141 => Self::MethodLoad,
            142 | 144 => Self::MethodUnload,
            143 => Self::MethodLoadVerbose,
            145 => Self::JittingStarted,
            152 => Self::ModuleLoad,
            154 => Self::AssemblyLoad,
            155 => Self::AssemblyUnload,
            187 => Self::RuntimeInformation,
            204 => Self::PerHeapHistory,
            283 => Self::BackgroundJitStart,
            284 => Self::BackgroundJitStop,
            291 => Self::AssemblyLoadStop,
            303 => Self::AllocationSampled,
            _ => Self::Other,
        }
    }

    fn of_rundown(id: u32) -> Self {
        match id {
            141 | 142 => Self::MethodRundown,
            143 | 144 => Self::MethodRundownVerbose,
            153 | 154 => Self::ModuleRundown,
            155 | 156 => Self::AssemblyRundown,
            187 => Self::RuntimeInformation,
            _ => Self::Other,
        }
    }

    fn of_tasks(id: u32) -> Self {
        match id {
            7 | 10 | 12 => Self::TaskScheduled,
            8 | 19 => Self::TaskStarted,
            _ => Self::Other,
        }
    }

    fn of_kernel(name: &str) -> Self {
        match name {
            "cpu" => Self::CpuSample,
            "cswitch" => Self::ContextSwitch,
            _ => Self::Other,
        }
    }

    fn of_system(id: u32) -> Self {
        match id {
            0 | 1 => Self::ProcessName,
            3 => Self::ProcessMapping,
            4 => Self::ProcessSymbol,
            _ => Self::Other,
        }
    }

    fn of_activity(metadata: &Metadata) -> Self {
        match metadata.opcode {
            Some(1) => Self::ActivityStart,
            Some(2) => Self::ActivityStop,
            Some(0) | None if metadata.name.ends_with("Failed") || metadata.name == "UnhandledException" => Self::ActivityFailure,
            Some(_) => Self::Other,
            // Runtimes before .NET 5 do not tell it, and make it from the name in the same way.
            None if metadata.name.ends_with("Start") => Self::ActivityStart,
            None if metadata.name.ends_with("Stop") => Self::ActivityStop,
            None => Self::Other,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_number_is_another_event_at_another_provider() {
        let kind = |provider: &str, event_id, name: &str, opcode| {
            EventKind::of(&Metadata { provider: provider.into(), event_id, name: name.into(), opcode, ..Metadata::default() })
        };
        let table = [
            (RUNTIME, 144, "", None, EventKind::MethodUnload),
            (RUNDOWN, 144, "", None, EventKind::MethodRundownVerbose),
            (RUNTIME, 9999, "", None, EventKind::Other),
            (SAMPLE_PROFILER, 0, "", None, EventKind::ThreadSample),
            (SAMPLE_PROFILER, 1, "", None, EventKind::Other),
            ("System.Runtime", 5, "EventCounters", None, EventKind::EventCounter),
            ("Demo", 7, "EventCounters", Some(0), EventKind::EventCounter),
            (METRICS, 99, "Base2ExponentialHistogramValuePublished", None, EventKind::Metrics),
            (LOGGING, 1, "FormattedMessage", None, EventKind::LogMessage),
            (LOGGING, 3, "ActivityStart", Some(1), EventKind::Other),
            ("System.Net.Http", 1, "RequestStart", Some(1), EventKind::ActivityStart),
            ("System.Net.Http", 2, "RequestStop", Some(2), EventKind::ActivityStop),
            ("Old", 2, "RequestStop", None, EventKind::ActivityStop),
            ("Old", 2, "HeadStart", Some(0), EventKind::Other),
            ("System.Net.Http", 3, "RequestFailed", Some(0), EventKind::ActivityFailure),
            ("Microsoft.AspNetCore.Hosting", 5, "UnhandledException", Some(0), EventKind::ActivityFailure),
            (DIAGNOSTIC_SOURCE, 3, "Event", Some(0), EventKind::ActivityDetail),
            (DIAGNOSTIC_SOURCE, 4, "Activity1Start", Some(1), EventKind::ActivityStart),
            ("System.Net.Http", 15, "RequestFailedDetailed", Some(0), EventKind::Other),
            (NO_ACTIVITIES[0], 2, "BufferStart", Some(1), EventKind::Other),
            (TASKS, 7, "TaskScheduled", Some(1), EventKind::TaskScheduled),
            (TASKS, 2, "TaskStart", Some(1), EventKind::Other),
            (UNIVERSAL_EVENTS, 3, "cswitch", None, EventKind::ContextSwitch),
            (UNIVERSAL_SYSTEM, 4, "ProcessSymbol", None, EventKind::ProcessSymbol),
            (THREAD_TIMES, 1, "ThreadTime", None, EventKind::ThreadTime),
            (SAMPLES, 1, "SampleLosses", None, EventKind::SampleLosses),
            ("", 0, "", None, EventKind::Other),
        ];
        for (provider, id, name, opcode, expected) in table {
            assert_eq!(kind(provider, id, name, opcode), expected, "{provider} {id} {name}");
        }
    }
}
