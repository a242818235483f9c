//! Typed views of the payloads of the runtime's own events, which the stream does not describe. They borrow and never allocate.
//!
//! A later version of an event only adds fields at the end of its payload. So a view reads the fields that every version has and those that were
//! added up to the version it is given; of a version newer than what is described here, the described ones. A payload may be longer than its fields, and never
//! shorter: then there is no view of it.
//!
//! Source: the runtime's manifest `ClrEtwAll.man`, checked byte by byte against what runtimes 3.1, 9 and 10 write.

mod contention;
mod exception;
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

pub use contention::{ContentionStart, ContentionStop};
pub use exception::ExceptionThrown;
pub use fields::{Fields, Payload};
pub use gc::{
    AllocationKind, AllocationSampled, AllocationTick, GcEnd, GcReason, GcStart, GcType, GenerationSize, HeapStats, PerHeapHistory,
    SuspendBegin,
};
pub use heap::{BulkEdge, BulkNode, BulkType, Edge, Node, TypeName};
pub use loader::{AssemblyLoad, AssemblyLoadStop, ModuleLoad, Symbols};
pub use method::{BackgroundJit, JittingStarted, MethodBody, MethodVerbose, Tier};
pub use roots::{BulkRootEdge, BulkRootStaticVariable, BulkWeakTableEdge, RootEdge, RootKind, StaticVariable, WeakTableEdge};
pub use runtime::{ProcessInfo, RuntimeInformation};
pub use thread::{SampleType, ThreadSample};
pub use thread_pool::{Adjustment, AdjustmentReason, AdjustmentSample, MinMaxThreads, Workers};
pub use universal::{ContextSwitch, ProcessMapping, ProcessName, ProcessSymbol, SampleLosses, ThreadTime};

#[cfg(test)]
mod tests;
