//! Field numbers of Perfetto's messages, by message.

#![allow(missing_docs, reason = "each is the field or the value of that name in the schema")]

/// `Trace` and `TracePacket`.
pub mod packet {
    /// Of `Trace`: a packet.
    pub const PACKET: u32 = 1;
    pub const CLOCK_SNAPSHOT: u32 = 6;
    pub const TIMESTAMP: u32 = 8;
    pub const TRUSTED_PACKET_SEQUENCE_ID: u32 = 10;
    pub const TRACK_EVENT: u32 = 11;
    pub const INTERNED_DATA: u32 = 12;
    pub const SEQUENCE_FLAGS: u32 = 13;
    pub const PROFILE_PACKET: u32 = 37;
    pub const PREVIOUS_PACKET_DROPPED: u32 = 42;
    /// In the published messages of version 59, this is an extension with the same number.
    pub const HEAP_GRAPH: u32 = 56;
    pub const TRACE_PACKET_DEFAULTS: u32 = 59;
    pub const TRACK_DESCRIPTOR: u32 = 60;
    pub const MODULE_SYMBOLS: u32 = 61;
    pub const PERF_SAMPLE: u32 = 66;
    pub const FIRST_PACKET_ON_SEQUENCE: u32 = 87;
    /// Of `TracePacketDefaults`.
    pub const TIMESTAMP_CLOCK_ID: u32 = 58;
    /// `SequenceFlags`: the packet does not depend on the state of earlier packets.
    pub const INCREMENTAL_STATE_CLEARED: u64 = 1;
    /// `SequenceFlags`: the packet depends on the state of earlier packets.
    pub const NEEDS_INCREMENTAL_STATE: u64 = 2;
}

/// `ClockSnapshot` and `BuiltinClock`.
pub mod clock {
    pub const CLOCKS: u32 = 1;
    pub const PRIMARY_TRACE_CLOCK: u32 = 2;
    /// Of `Clock`.
    pub const CLOCK_ID: u32 = 1;
    /// Of `Clock`: nanoseconds.
    pub const TIMESTAMP: u32 = 2;
    pub const REALTIME: u64 = 1;
    pub const MONOTONIC: u64 = 3;
    pub const MONOTONIC_COARSE: u64 = 4;
    pub const BOOTTIME: u64 = 6;
}

/// `TrackDescriptor`, `ProcessDescriptor`, `ThreadDescriptor` and `CounterDescriptor`.
pub mod track {
    pub const UUID: u32 = 1;
    pub const NAME: u32 = 2;
    pub const PROCESS: u32 = 3;
    pub const THREAD: u32 = 4;
    pub const PARENT_UUID: u32 = 5;
    pub const COUNTER: u32 = 8;
    pub const CHILD_ORDERING: u32 = 11;
    pub const SIBLING_ORDER_RANK: u32 = 12;
    /// `ChildTracksOrdering`: by rank.
    pub const EXPLICIT: u64 = 3;
    /// Of `ProcessDescriptor` and `ThreadDescriptor`.
    pub const PID: u32 = 1;
    /// Of `ProcessDescriptor`.
    pub const CMDLINE: u32 = 2;
    /// Of `ProcessDescriptor`.
    pub const PROCESS_NAME: u32 = 6;
    /// Of `ProcessDescriptor`.
    pub const PROCESS_LABELS: u32 = 8;
    /// Of `ThreadDescriptor`.
    pub const TID: u32 = 2;
    /// Of `ThreadDescriptor`.
    pub const THREAD_NAME: u32 = 5;
    /// Of `CounterDescriptor`.
    pub const UNIT: u32 = 3;
    /// Of `CounterDescriptor`.
    pub const UNIT_NAME: u32 = 6;
    /// `CounterDescriptor.Unit`.
    pub const COUNT: u64 = 2;
    /// `CounterDescriptor.Unit`.
    pub const SIZE_BYTES: u64 = 3;
}

/// `TrackEvent` and `DebugAnnotation`.
pub mod event {
    pub const CATEGORY_IIDS: u32 = 3;
    pub const DEBUG_ANNOTATIONS: u32 = 4;
    pub const TYPE: u32 = 9;
    pub const NAME_IID: u32 = 10;
    pub const TRACK_UUID: u32 = 11;
    pub const NAME: u32 = 23;
    pub const DOUBLE_COUNTER_VALUE: u32 = 44;
    pub const FLOW_IDS: u32 = 47;
    pub const CALLSTACK_IID: u32 = 56;
    pub const SLICE_BEGIN: u64 = 1;
    pub const SLICE_END: u64 = 2;
    pub const INSTANT: u64 = 3;
    pub const COUNTER: u64 = 4;
    /// Of `DebugAnnotation`.
    pub const ANNOTATION_NAME_IID: u32 = 1;
    pub const BOOL_VALUE: u32 = 2;
    pub const UINT_VALUE: u32 = 3;
    pub const DOUBLE_VALUE: u32 = 5;
    pub const STRING_VALUE: u32 = 6;
}

/// `InternedData` and nested messages.
pub mod interned {
    pub const EVENT_CATEGORIES: u32 = 1;
    pub const EVENT_NAMES: u32 = 2;
    pub const DEBUG_ANNOTATION_NAMES: u32 = 3;
    pub const FUNCTION_NAMES: u32 = 5;
    pub const FRAMES: u32 = 6;
    pub const CALLSTACKS: u32 = 7;
    pub const MAPPING_PATHS: u32 = 17;
    pub const MAPPINGS: u32 = 19;
    /// Of all interned values.
    pub const IID: u32 = 1;
    /// Of `EventName`, `EventCategory`, `DebugAnnotationName` and `InternedString`.
    pub const STRING: u32 = 2;
    /// Of `Mapping`.
    pub const PATH_STRING_IDS: u32 = 7;
    /// Of `Frame`.
    pub const FUNCTION_NAME_ID: u32 = 2;
    /// Of `Frame`.
    pub const MAPPING_ID: u32 = 3;
    /// Of `Frame`.
    pub const REL_PC: u32 = 4;
    /// Of `Callstack`: from the root to the leaf.
    pub const FRAME_IDS: u32 = 2;
}

/// `ModuleSymbols`, `AddressSymbols` and `Line`.
pub mod symbols {
    pub const PATH: u32 = 1;
    pub const ADDRESS_SYMBOLS: u32 = 3;
    /// Of `AddressSymbols`.
    pub const ADDRESS: u32 = 1;
    /// Of `AddressSymbols`.
    pub const LINES: u32 = 2;
    /// Of `Line`.
    pub const FUNCTION_NAME: u32 = 1;
}

/// `PerfSample`.
pub mod sample {
    pub const PID: u32 = 2;
    pub const TID: u32 = 3;
    pub const CALLSTACK_IID: u32 = 4;
    pub const CPU_MODE: u32 = 5;
    /// `CpuMode`.
    pub const USER: u64 = 2;
}

/// `ProfilePacket`, `ProcessHeapSamples` and `HeapSample`.
pub mod profile {
    pub const PROCESS_DUMPS: u32 = 5;
    pub const INDEX: u32 = 7;
    /// Of `ProcessHeapSamples`.
    pub const PID: u32 = 1;
    /// Of `ProcessHeapSamples`.
    pub const SAMPLES: u32 = 2;
    /// Of `ProcessHeapSamples`: nanoseconds of `CLOCK_MONOTONIC_COARSE`.
    pub const TIMESTAMP: u32 = 9;
    /// Of `ProcessHeapSamples`.
    pub const HEAP_NAME: u32 = 11;
    /// Of `ProcessHeapSamples`.
    pub const SAMPLING_INTERVAL_BYTES: u32 = 12;
    /// Of `HeapSample`.
    pub const CALLSTACK_ID: u32 = 1;
    /// Of `HeapSample`: bytes since the sequence began.
    pub const SELF_ALLOCATED: u32 = 2;
    /// Of `HeapSample`: nanoseconds of `CLOCK_MONOTONIC_COARSE`.
    pub const SAMPLE_TIMESTAMP: u32 = 4;
    /// Of `HeapSample`: allocations since the sequence began.
    pub const ALLOC_COUNT: u32 = 5;
}

/// `HeapGraph` and nested messages.
pub mod heap {
    pub const PID: u32 = 1;
    pub const OBJECTS: u32 = 2;
    pub const CONTINUED: u32 = 5;
    pub const INDEX: u32 = 6;
    pub const ROOTS: u32 = 7;
    pub const TYPES: u32 = 9;
    /// Of `HeapGraphObject`.
    pub const OBJECT_ID: u32 = 1;
    /// Of `HeapGraphObject`.
    pub const OBJECT_TYPE_ID: u32 = 2;
    /// Of `HeapGraphObject`: bytes.
    pub const SELF_SIZE: u32 = 3;
    /// Of `HeapGraphObject`: one per reference.
    pub const REFERENCE_FIELD_ID: u32 = 4;
    /// Of `HeapGraphObject`.
    pub const REFERENCE_OBJECT_ID: u32 = 5;
    /// Of `HeapGraphRoot`.
    pub const ROOT_OBJECT_IDS: u32 = 1;
    /// Of `HeapGraphRoot`.
    pub const ROOT_TYPE: u32 = 2;
    /// Of `HeapGraphType`.
    pub const TYPE_ID: u32 = 1;
    /// Of `HeapGraphType`.
    pub const CLASS_NAME: u32 = 3;
    /// `HeapGraphRoot.Type`.
    pub const ROOT_UNKNOWN: u64 = 0;
    pub const ROOT_JNI_GLOBAL: u64 = 1;
    pub const ROOT_JAVA_FRAME: u64 = 3;
    pub const ROOT_STICKY_CLASS: u64 = 5;
    pub const ROOT_FINALIZING: u64 = 10;
}
