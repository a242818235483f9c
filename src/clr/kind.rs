//! The kind of event that a metadata record describes. Determined once per record, so that handling an event costs one index and one match.

use crate::nettrace::Metadata;

use super::providers::{
    DIAGNOSTIC_SOURCE_PROVIDER, EVENT_PIPE_PROVIDER, LOGGING_PROVIDER, METRICS_PROVIDER, RUNDOWN_PROVIDER, RUNTIME_PROVIDER,
    SAMPLE_PROFILER,
};

const TASKS: &str = "System.Threading.Tasks.TplEventSource";
/// Kernel events of collectors outside the runtime: CPU samples and context switches.
pub const UNIVERSAL_EVENTS: &str = "Universal.Events";
/// Processes, mappings and symbols, from the same collectors.
pub const UNIVERSAL_SYSTEM: &str = "Universal.System";
/// Written by dn-top itself in its CPU trace files: how long each thread was in each state.
pub const THREAD_TIMES: &str = "DnTop.Threads";
/// Written by dn-top itself in its CPU trace files: losses of samples.
pub const SAMPLE_LOSSES: &str = "DnTop.Samples";
/// Their start and stop events do not belong to requests, and are very frequent.
const NO_ACTIVITIES: [&str; 2] = ["System.Buffers.ArrayPoolEventSource", "System.Diagnostics.Eventing.FrameworkEventSource"];

/// The events that the analyses handle. Events of the native runtime are identified by provider and ID: a newer version only has a longer
/// payload, and the rundown provider uses the same IDs for other events. EventSource events whose ID is assigned at run time are identified by
/// name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum EventKind {
    /// Not handled by any analysis.
    #[default]
    Other,
    /// [`GcStart`](super::payload::GcStart).
    GcStart,
    /// [`GcEnd`](super::payload::GcEnd).
    GcEnd,
    /// All managed threads are suspended. No payload.
    SuspendEnd,
    /// All threads are resumed. No relevant payload.
    RestartEnd,
    /// [`HeapStats`](super::payload::HeapStats).
    HeapStats,
    /// [`SuspendBegin`](super::payload::SuspendBegin).
    SuspendBegin,
    /// The finalizer thread begins to run the finalizers of queued objects. No relevant payload.
    FinalizersBegin,
    /// The finalizer thread has run the finalizers of all queued objects. No relevant payload.
    FinalizersEnd,
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
    /// A worker thread starts, stops, retires, unretires or waits: [`Workers`](super::payload::Workers).
    Workers,
    /// [`AdjustmentSample`](super::payload::AdjustmentSample).
    AdjustmentSample,
    /// [`Adjustment`](super::payload::Adjustment).
    Adjustment,
    /// [`MinMaxThreads`](super::payload::MinMaxThreads).
    MinMaxThreads,
    /// A work item is queued to the thread pool. No relevant payload.
    WorkEnqueue,
    /// A work item is dequeued from the thread pool. No relevant payload.
    WorkDequeue,
    /// A managed thread is created.
    ThreadCreated,
    /// A method is loaded: [`MethodBody`](super::payload::MethodBody), without names.
    MethodLoad,
    /// A method is loaded: [`MethodVerbose`](super::payload::MethodVerbose).
    MethodLoadVerbose,
    /// A method is unloaded: [`MethodBody`](super::payload::MethodBody), with or without names after it.
    MethodUnload,
    /// A method in the rundown: [`MethodVerbose`](super::payload::MethodVerbose).
    MethodRundownVerbose,
    /// [`JittingStarted`](super::payload::JittingStarted).
    JittingStarted,
    /// [`ModuleLoad`](super::payload::ModuleLoad).
    ModuleLoad,
    /// A module in the rundown: [`ModuleLoad`](super::payload::ModuleLoad).
    ModuleRundown,
    /// [`AssemblyLoad`](super::payload::AssemblyLoad).
    AssemblyLoad,
    /// An assembly is unloaded: [`AssemblyLoad`](super::payload::AssemblyLoad).
    AssemblyUnload,
    /// An assembly in the rundown: [`AssemblyLoad`](super::payload::AssemblyLoad).
    AssemblyRundown,
    /// [`AssemblyLoadStop`](super::payload::AssemblyLoadStop).
    AssemblyLoadStop,
    /// [`BackgroundJit`](super::payload::BackgroundJit) begins.
    BackgroundJitStart,
    /// [`BackgroundJit`](super::payload::BackgroundJit) ends.
    BackgroundJitStop,
    /// [`RuntimeInformation`](super::payload::RuntimeInformation).
    RuntimeInformation,
    /// [`SampleType`](super::payload::SampleType).
    ThreadSample,
    /// [`ProcessInfo`](super::payload::ProcessInfo).
    ProcessInfo,
    /// An EventCounter value of any provider, described by its metadata.
    EventCounter,
    /// Any event of `System.Diagnostics.Metrics`, described by its metadata.
    Metrics,
    /// An `ILogger` message, described by its metadata.
    LogMessage,
    /// Start of an activity, such as a request; described by its metadata.
    ActivityStart,
    /// End of an activity; described by its metadata.
    ActivityStop,
    /// Failure of an activity, before its end; described by its metadata.
    ActivityFailure,
    /// A library event within an activity, forwarded by `DiagnosticSource`; described by its metadata.
    ActivityDetail,
    /// A task or `await` continuation is scheduled; described by its metadata.
    TaskScheduled,
    /// A task or `await` continuation starts to run; described by its metadata.
    TaskStarted,
    /// A CPU sample (`Universal.Events`); its stack is the sampled one.
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
    /// Returns whether any analysis handles these events; the others only matter for exports.
    #[inline]
    pub fn is_analyzed(self) -> bool {
        !matches!(
            self,
            Self::Other
                | Self::BulkRootEdge
                | Self::BulkRootStaticVariable
                | Self::BulkWeakTableEdge
                | Self::ContextSwitch
                | Self::CpuSample
                | Self::ProcessInfo
                | Self::ProcessMapping
                | Self::ProcessName
                | Self::ProcessSymbol
                | Self::RuntimeInformation
                | Self::SampleLosses
                | Self::SuspendEnd
                | Self::TaskScheduled
                | Self::TaskStarted
                | Self::ThreadTime
        )
    }

    /// Returns whether these events contain addresses and names of methods.
    #[inline]
    pub fn locates_methods(self) -> bool {
        matches!(self, Self::MethodLoadVerbose | Self::MethodRundownVerbose | Self::ModuleLoad | Self::ModuleRundown)
    }

    /// Returns whether events of this metadata record are written only after the session is stopped: they describe the process and are not
    /// part of the recorded activity.
    pub fn is_written_at_stop(metadata: &Metadata) -> bool {
        matches!(metadata.provider.as_str(), RUNDOWN_PROVIDER | EVENT_PIPE_PROVIDER)
    }

    /// Returns whether the events of a provider only describe the process and the recording: rundown, mappings, symbols, thread times.
    pub fn only_describes(provider: &str) -> bool {
        matches!(provider, RUNDOWN_PROVIDER | EVENT_PIPE_PROVIDER | UNIVERSAL_SYSTEM | THREAD_TIMES | SAMPLE_LOSSES)
    }

    /// Returns the kind of the events that a metadata record describes.
    pub fn of(metadata: &Metadata) -> Self {
        match (metadata.provider.as_str(), metadata.event_id) {
            (RUNTIME_PROVIDER, id) => Self::of_runtime(id),
            (RUNDOWN_PROVIDER, id) => Self::of_rundown(id),
            (SAMPLE_PROFILER, 0) => Self::ThreadSample,
            (EVENT_PIPE_PROVIDER, 1) => Self::ProcessInfo,
            (METRICS_PROVIDER, _) => Self::Metrics,
            (TASKS, 7 | 10 | 12) => Self::TaskScheduled,
            (TASKS, 8 | 19) => Self::TaskStarted,
            (UNIVERSAL_EVENTS, _) if metadata.name == "cpu" => Self::CpuSample,
            (UNIVERSAL_EVENTS, _) if metadata.name == "cswitch" => Self::ContextSwitch,
            (UNIVERSAL_SYSTEM, 0 | 1) => Self::ProcessName,
            (UNIVERSAL_SYSTEM, 3) => Self::ProcessMapping,
            (UNIVERSAL_SYSTEM, 4) => Self::ProcessSymbol,
            (TASKS | UNIVERSAL_EVENTS | UNIVERSAL_SYSTEM, _) => Self::Other,
            (THREAD_TIMES, 1) => Self::ThreadTime,
            (SAMPLE_LOSSES, 1) => Self::SampleLosses,
            _ if metadata.name == "EventCounters" => Self::EventCounter,
            // Depending on the keywords, the same message is logged as text, as text with arguments, and as JSON.
            (LOGGING_PROVIDER, _) if ["FormattedMessage", "MessageJson"].contains(&metadata.name.as_str()) => Self::LogMessage,
            (LOGGING_PROVIDER, _) => Self::Other,
            (provider, _) if NO_ACTIVITIES.contains(&provider) => Self::Other,
            (DIAGNOSTIC_SOURCE_PROVIDER, _) if metadata.name == "Event" => Self::ActivityDetail,
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
            13 => Self::FinalizersEnd,
            14 => Self::FinalizersBegin,
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
            143 | 144 => Self::MethodRundownVerbose,
            153 | 154 => Self::ModuleRundown,
            155 | 156 => Self::AssemblyRundown,
            187 => Self::RuntimeInformation,
            _ => Self::Other,
        }
    }

    fn of_activity(metadata: &Metadata) -> Self {
        match metadata.opcode {
            Some(1) => Self::ActivityStart,
            Some(2) => Self::ActivityStop,
            Some(0) | None if metadata.name.ends_with("Failed") || metadata.name == "UnhandledException" => Self::ActivityFailure,
            Some(_) => Self::Other,
            // Before .NET 5 the metadata has no opcode; .NET derives it from the name in the same way.
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
    fn event_kind_depends_on_provider_and_id() {
        let kind = |provider: &str, event_id, name: &str, opcode| {
            EventKind::of(&Metadata { provider: provider.into(), event_id, name: name.into(), opcode, ..Metadata::default() })
        };
        let table = [
            (RUNTIME_PROVIDER, 144, "", None, EventKind::MethodUnload),
            (RUNDOWN_PROVIDER, 144, "", None, EventKind::MethodRundownVerbose),
            (RUNTIME_PROVIDER, 9999, "", None, EventKind::Other),
            (SAMPLE_PROFILER, 0, "", None, EventKind::ThreadSample),
            (SAMPLE_PROFILER, 1, "", None, EventKind::Other),
            ("System.Runtime", 5, "EventCounters", None, EventKind::EventCounter),
            ("Demo", 7, "EventCounters", Some(0), EventKind::EventCounter),
            (METRICS_PROVIDER, 99, "Base2ExponentialHistogramValuePublished", None, EventKind::Metrics),
            (LOGGING_PROVIDER, 1, "FormattedMessage", None, EventKind::LogMessage),
            (LOGGING_PROVIDER, 3, "ActivityStart", Some(1), EventKind::Other),
            ("System.Net.Http", 1, "RequestStart", Some(1), EventKind::ActivityStart),
            ("System.Net.Http", 2, "RequestStop", Some(2), EventKind::ActivityStop),
            ("Old", 2, "RequestStop", None, EventKind::ActivityStop),
            ("Old", 2, "HeadStart", Some(0), EventKind::Other),
            ("System.Net.Http", 3, "RequestFailed", Some(0), EventKind::ActivityFailure),
            ("Microsoft.AspNetCore.Hosting", 5, "UnhandledException", Some(0), EventKind::ActivityFailure),
            (DIAGNOSTIC_SOURCE_PROVIDER, 3, "Event", Some(0), EventKind::ActivityDetail),
            (DIAGNOSTIC_SOURCE_PROVIDER, 4, "Activity1Start", Some(1), EventKind::ActivityStart),
            ("System.Net.Http", 15, "RequestFailedDetailed", Some(0), EventKind::Other),
            (NO_ACTIVITIES[0], 2, "BufferStart", Some(1), EventKind::Other),
            (TASKS, 7, "TaskScheduled", Some(1), EventKind::TaskScheduled),
            (TASKS, 2, "TaskStart", Some(1), EventKind::Other),
            (UNIVERSAL_EVENTS, 3, "cswitch", None, EventKind::ContextSwitch),
            (UNIVERSAL_SYSTEM, 4, "ProcessSymbol", None, EventKind::ProcessSymbol),
            (THREAD_TIMES, 1, "ThreadTime", None, EventKind::ThreadTime),
            (SAMPLE_LOSSES, 1, "SampleLosses", None, EventKind::SampleLosses),
            ("", 0, "", None, EventKind::Other),
        ];
        for (provider, id, name, opcode, expected) in table {
            assert_eq!(kind(provider, id, name, opcode), expected, "{provider} {id} {name}");
        }
    }
}
