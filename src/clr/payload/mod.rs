//! Typed views of the payloads of native runtime events, which the stream does not describe. They borrow from the payload and never allocate.
//!
//! Later versions of an event only add fields at the end of the payload. A view therefore reads the fields common to all versions and those
//! added up to the given version; for a newer version than described here, only the described fields. A payload may be longer than its fields,
//! but not shorter: then decoding fails.
//!
//! Source: the runtime's manifest `ClrEtwAll.man`, verified byte by byte against the output of runtimes 3.1, 9 and 10.

mod fields;
mod gc;
mod heap;
mod loader;
mod method;
mod roots;
mod runtime;
mod thread;
mod thread_pool;
mod universal;

pub use fields::{Fields, Payload};
pub use gc::{
    AllocationKind, AllocationSampled, AllocationTick, BYTES_PER_ALLOCATION_EVENT, GcEnd, GcReason, GcStart, GcType, GenerationSize,
    HeapStats, PerHeapHistory, SuspendBegin,
};
pub use heap::{Bulk, BulkEdge, BulkNode, BulkType, Edge, Node, Row, TypeName};
pub use loader::{AssemblyLoad, AssemblyLoadStop, ModuleLoad};
pub use method::{BackgroundJit, JittingStarted, MethodBody, MethodVerbose, Tier};
pub use roots::{BulkRootEdge, BulkRootStaticVariable, BulkWeakTableEdge, RootEdge, RootKind, StaticVariable, WeakTableEdge};
pub use runtime::{ProcessInfo, RuntimeInformation};
pub use thread::{ContentionStart, ContentionStop, ExceptionThrown, SampleType};
pub use thread_pool::{Adjustment, AdjustmentReason, AdjustmentSample, MinMaxThreads, Workers};
pub use universal::{ContextSwitch, ProcessMapping, ProcessName, ProcessSymbol, SampleLosses, ThreadTime};

#[cfg(test)]
pub(crate) mod tests;
