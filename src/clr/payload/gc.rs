//! Garbage collections, pauses and allocations.

use crate::wire::Utf16;

use super::{Fields, Payload};

/// Mean number of bytes allocated between two [`AllocationTick`] events of a heap, and between two [`AllocationSampled`] events.
pub const BYTES_PER_ALLOCATION_EVENT: u32 = 100 * 1024;

/// A garbage collection starts (event 1).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct GcStart {
    /// Number of the collection in the process, from 1. Pairs start and end: a background collection can end after later collections.
    pub number: u32,
    /// Oldest collected generation.
    pub generation: u32,
    /// Reason of the collection.
    pub reason: GcReason,
    /// Type of the collection.
    pub kind: GcType,
}

impl Payload<'_> for GcStart {
    fn read(mut fields: Fields<'_>) -> Option<Self> {
        let (number, generation) = (fields.u32()?, fields.u32()?);
        Some(Self { number, generation, reason: GcReason(fields.u32()?), kind: GcType(fields.u32()?) })
    }
}

/// Reason of a garbage collection.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct GcReason(pub u32);

impl GcReason {
    /// Returns the runtime's name of the reason.
    pub fn name(self) -> &'static str {
        const NAMES: [&str; 18] = [
            "AllocSmall",
            "Induced",
            "LowMemory",
            "Empty",
            "AllocLarge",
            "OutOfSpaceSOH",
            "OutOfSpaceLOH",
            "InducedNotForced",
            "Internal",
            "InducedLowMemory",
            "InducedCompacting",
            "LowMemoryHost",
            "PMFullGC",
            "LowMemoryHostBlocking",
            "BgcTuningSOH",
            "BgcTuningLOH",
            "BgcStepping",
            "InducedAggressive",
        ];
        NAMES.get(self.0 as usize).copied().unwrap_or("Unknown")
    }

    /// Returns whether large object allocations triggered the collection.
    pub fn is_large_object(self) -> bool {
        matches!(self.0, 4 | 6)
    }

    /// Returns whether the collection was induced.
    pub fn is_induced(self) -> bool {
        matches!(self.0, 1 | 7 | 9 | 10 | 17)
    }
}

/// Type of a garbage collection.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct GcType(pub u32);

impl GcType {
    /// All threads are suspended during the collection.
    pub const BLOCKING: Self = Self(0);
    /// Threads run during most of the collection.
    pub const BACKGROUND: Self = Self(1);
    /// Blocking, during a background collection.
    pub const FOREGROUND: Self = Self(2);

    /// Returns the name of the type.
    pub fn name(self) -> &'static str {
        ["blocking", "background", "foreground"].get(self.0 as usize).copied().unwrap_or("unknown")
    }
}

/// A garbage collection ends (event 2).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct GcEnd {
    /// Number of the collection.
    pub number: u32,
    /// Oldest generation collected.
    pub generation: u32,
}

impl Payload<'_> for GcEnd {
    fn read(mut fields: Fields<'_>) -> Option<Self> {
        Some(Self { number: fields.u32()?, generation: fields.u32()? })
    }
}

/// The runtime starts to suspend all managed threads (event 9).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SuspendBegin {
    /// Reason: 0 other, 1 garbage collection, 2 AppDomain shutdown, 3 code pitching, 4 shutdown, 5 debugger, 6 preparation for a garbage
    /// collection (part of a background one), 7 debugger sweep. The sampling profiler suspends with reason 0, a thousand times a second.
    pub reason: u32,
}

impl SuspendBegin {
    /// Returns whether the threads are suspended for a garbage collection.
    pub fn is_for_gc(self) -> bool {
        matches!(self.reason, 1 | 6)
    }
}

impl Payload<'_> for SuspendBegin {
    fn read(mut fields: Fields<'_>) -> Option<Self> {
        Some(Self { reason: fields.u32()? })
    }
}

/// Heap sizes after a garbage collection (event 4).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HeapStats {
    /// Generations 0, 1 and 2, and the large object heap (LOH).
    pub generations: [GenerationSize; 4],
    /// Pinned object heap (POH; version 2, .NET 5).
    pub pinned_heap: Option<GenerationSize>,
    /// Number of objects ready for finalization.
    pub finalization_promoted_count: u64,
    /// Number of pinned objects.
    pub pinned_objects: u32,
    /// Number of GC handles.
    pub handles: u32,
}

/// Size of a generation after a garbage collection.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct GenerationSize {
    /// Size in bytes.
    pub size: u64,
    /// Promoted bytes.
    pub promoted: u64,
}

impl Payload<'_> for HeapStats {
    fn read(mut fields: Fields<'_>) -> Option<Self> {
        let mut generations = [GenerationSize::default(); 4];
        for generation in &mut generations {
            *generation = generation_size(&mut fields)?;
        }
        let (_finalization_promoted_size, finalization_promoted_count) = (fields.u64()?, fields.u64()?);
        let (pinned_objects, _sink_blocks, handles) = (fields.u32()?, fields.u32()?, fields.u32()?);
        fields.clr_instance()?;
        let pinned_heap = fields.since(2, generation_size)?;
        Some(Self { generations, pinned_heap, finalization_promoted_count, pinned_objects, handles })
    }
}

fn generation_size(fields: &mut Fields<'_>) -> Option<GenerationSize> {
    Some(GenerationSize { size: fields.u64()?, promoted: fields.u64()? })
}

/// About 100 KB were allocated on a heap since its previous event of this kind (event 10, level verbose).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AllocationTick<'a> {
    /// Bytes allocated since the previous event.
    pub amount: u64,
    /// Heap of the allocations.
    pub kind: AllocationKind,
    /// Type of the object whose allocation reached the threshold; stands for all allocations since the previous event.
    pub type_name: Utf16<'a>,
    /// Size of that object (version 4, .NET 6).
    pub object_size: Option<u64>,
}

/// The heap of an allocation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum AllocationKind {
    /// Small object heap.
    #[default]
    Small,
    /// Large object heap.
    Large,
    /// Pinned object heap.
    Pinned,
}

impl From<u32> for AllocationKind {
    fn from(kind: u32) -> Self {
        match kind {
            1 => Self::Large,
            2 => Self::Pinned,
            _ => Self::Small,
        }
    }
}

impl<'a> Payload<'a> for AllocationTick<'a> {
    fn read(mut fields: Fields<'a>) -> Option<Self> {
        let (_amount_32_bits, kind) = (fields.u32()?, fields.u32()?.into());
        fields.clr_instance()?;
        let (amount, _type_id, type_name) = (fields.u64()?, fields.pointer()?, fields.text()?);
        let _heap = fields.u32()?;
        fields.since(3, Fields::pointer)?;
        Some(Self { amount, kind, type_name, object_size: fields.since(4, Fields::u64)? })
    }
}

/// A randomly sampled allocation, on average one per 100 KB (event 303, .NET 10).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AllocationSampled<'a> {
    /// Heap of the allocation.
    pub kind: AllocationKind,
    /// Type of the object.
    pub type_name: Utf16<'a>,
    /// Size of the object in bytes.
    pub object_size: u64,
}

impl AllocationSampled<'_> {
    /// Returns the allocated bytes that the sample represents. Every byte is sampled with the same probability, so an object represents its size
    /// divided by the probability that it is sampled.
    pub fn weight(&self) -> u64 {
        let size = self.object_size.max(1) as f64;
        (size / -(-size / f64::from(BYTES_PER_ALLOCATION_EVENT)).exp_m1()) as u64
    }
}

impl<'a> Payload<'a> for AllocationSampled<'a> {
    fn read(mut fields: Fields<'a>) -> Option<Self> {
        let kind = fields.u32()?.into();
        fields.clr_instance()?;
        let (_type_id, type_name, _address) = (fields.pointer()?, fields.text()?, fields.pointer()?);
        Some(Self { kind, type_name, object_size: fields.u64()? })
    }
}

/// Effect of a garbage collection on one heap (event 204, version 3).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PerHeapHistory {
    /// Total size of all generations before the collection, in bytes.
    pub size_before: u64,
}

impl Payload<'_> for PerHeapHistory {
    fn read(mut fields: Fields<'_>) -> Option<Self> {
        /// Numbers per generation; the first is the size before the collection.
        const OF_GENERATION: u32 = 10;
        fields.clr_instance()?;
        for _allocated in 0..6 {
            fields.pointer()?;
        }
        for _efficiency_and_reasons in 0..6 {
            fields.u32()?;
        }
        let (_extra_commit, generations) = (fields.pointer()?, fields.u32()?);
        let mut size_before = 0_u64;
        for _ in 0..generations {
            size_before = size_before.saturating_add(fields.pointer()?);
            for _ in 1..OF_GENERATION {
                fields.pointer()?;
            }
        }
        Some(Self { size_before })
    }
}
