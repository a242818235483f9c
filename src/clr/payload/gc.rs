//! Collections, pauses and allocations.

use crate::wire::Utf16;

use super::{Fields, Payload};

/// A collection begins (event 1).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct GcStart {
    /// Its number in the life of the process, from 1. A background collection ends after collections that began later: pair by this.
    pub number: u32,
    /// The oldest generation that it collects.
    pub generation: u32,
    /// Why.
    pub reason: GcReason,
    /// How.
    pub kind: GcType,
}

impl Payload<'_> for GcStart {
    fn read(mut fields: Fields<'_>) -> Option<Self> {
        let (number, generation) = (fields.u32()?, fields.u32()?);
        Some(Self { number, generation, reason: GcReason(fields.u32()?), kind: GcType(fields.u32()?) })
    }
}

/// Why a collection happens.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct GcReason(pub u32);

impl GcReason {
    /// The runtime's name for it.
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

    /// Whether large objects were allocated.
    pub fn is_large(self) -> bool {
        matches!(self.0, 4 | 6)
    }

    /// Whether the program induced it.
    pub fn is_induced(self) -> bool {
        matches!(self.0, 1 | 7 | 9 | 10 | 17)
    }
}

/// How a collection is done.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct GcType(pub u32);

impl GcType {
    /// All threads stand while it is done.
    pub const BLOCKING: Self = Self(0);
    /// Threads run while most of it is done.
    pub const BACKGROUND: Self = Self(1);
    /// Like blocking, during a background collection.
    pub const FOREGROUND: Self = Self(2);

    /// Its name.
    pub fn name(self) -> &'static str {
        ["blocking", "background", "foreground"].get(self.0 as usize).copied().unwrap_or("unknown")
    }
}

/// A collection ends (event 2).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct GcEnd {
    /// Its number.
    pub number: u32,
    /// The oldest generation that it collected.
    pub generation: u32,
}

impl Payload<'_> for GcEnd {
    fn read(mut fields: Fields<'_>) -> Option<Self> {
        Some(Self { number: fields.u32()?, generation: fields.u32()? })
    }
}

/// The runtime begins to stop all managed threads (event 9).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SuspendBegin {
    /// Why: 0 other, 1 collection, 2 the domain ends, 3 code is thrown away, 4 shutdown, 5 debugger, 6 part of a background collection,
    /// 7 debugger. The sampling profiler suspends for reason 0, a thousand times a second.
    pub reason: u32,
}

impl SuspendBegin {
    /// Whether the threads stop for a collection.
    pub fn is_for_gc(self) -> bool {
        matches!(self.reason, 1 | 6)
    }
}

impl Payload<'_> for SuspendBegin {
    fn read(mut fields: Fields<'_>) -> Option<Self> {
        Some(Self { reason: fields.u32()? })
    }
}

/// Sizes of the heap after a collection (event 4).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HeapStats {
    /// Generations 0, 1 and 2, and the large object heap.
    pub generations: [GenerationSize; 4],
    /// The pinned object heap (version 2, .NET 5).
    pub pinned_heap: Option<GenerationSize>,
    /// Bytes of objects that were kept because they wait for their finalizer.
    pub finalization_promoted_size: u64,
    /// Objects that wait for their finalizer.
    pub finalization_promoted_count: u64,
    /// Objects that could not be moved.
    pub pinned_objects: u32,
    /// Handles.
    pub handles: u32,
}

/// A generation after a collection.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct GenerationSize {
    /// Bytes that it takes.
    pub size: u64,
    /// Bytes that survived in it.
    pub promoted: u64,
}

impl Payload<'_> for HeapStats {
    fn read(mut fields: Fields<'_>) -> Option<Self> {
        let mut generations = [GenerationSize::default(); 4];
        for generation in &mut generations {
            *generation = generation_size(&mut fields)?;
        }
        let (finalization_promoted_size, finalization_promoted_count) = (fields.u64()?, fields.u64()?);
        let (pinned_objects, _sink_blocks, handles) = (fields.u32()?, fields.u32()?, fields.u32()?);
        fields.clr_instance()?;
        let pinned_heap = fields.since(2, generation_size)?;
        Some(Self { generations, pinned_heap, finalization_promoted_size, finalization_promoted_count, pinned_objects, handles })
    }
}

fn generation_size(fields: &mut Fields<'_>) -> Option<GenerationSize> {
    Some(GenerationSize { size: fields.u64()?, promoted: fields.u64()? })
}

/// About 100 KB were allocated since the last of these on the same heap (event 10, level verbose).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AllocationTick<'a> {
    /// Bytes that were allocated since the last.
    pub amount: u64,
    /// On which heap.
    pub kind: AllocationKind,
    /// Type of the object whose allocation made it up, which stands for all of them.
    pub type_name: Utf16<'a>,
    /// Size of that object (version 4, .NET 6).
    pub object_size: Option<u64>,
}

/// The heap of an allocation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum AllocationKind {
    /// Small objects.
    Small,
    /// Large objects.
    Large,
    /// Pinned objects.
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

/// An allocation that was drawn at random, one in about 100 KB (event 303, .NET 10).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AllocationSampled<'a> {
    /// On which heap.
    pub kind: AllocationKind,
    /// Type of the object.
    pub type_name: Utf16<'a>,
    /// Its size.
    pub object_size: u64,
}

impl<'a> Payload<'a> for AllocationSampled<'a> {
    fn read(mut fields: Fields<'a>) -> Option<Self> {
        let kind = fields.u32()?.into();
        fields.clr_instance()?;
        let (_type_id, type_name, _address) = (fields.pointer()?, fields.text()?, fields.pointer()?);
        Some(Self { kind, type_name, object_size: fields.u64()? })
    }
}

/// What a collection did to one heap (event 204, version 3).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PerHeapHistory {
    /// Size of all generations before it, bytes.
    pub size_before: u64,
}

impl Payload<'_> for PerHeapHistory {
    fn read(mut fields: Fields<'_>) -> Option<Self> {
        /// Numbers of a generation; the first is its size before.
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
