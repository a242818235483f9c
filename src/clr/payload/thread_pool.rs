//! The thread pool.

use super::{Fields, Payload};

/// How many workers there are (events 50 to 53 and 57).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Workers {
    /// Workers that run or wait for work.
    pub active: u32,
    /// Workers that are put aside.
    pub retired: u32,
}

impl Payload<'_> for Workers {
    fn read(mut fields: Fields<'_>) -> Option<Self> {
        Some(Self { active: fields.u32()?, retired: fields.u32()? })
    }
}

/// What the pool measured to decide how many workers it needs (event 54).
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct AdjustmentSample {
    /// Work items completed per second since the sample before. The first sample of a pool counts from the start of the machine.
    pub throughput: f64,
}

impl Payload<'_> for AdjustmentSample {
    fn read(mut fields: Fields<'_>) -> Option<Self> {
        Some(Self { throughput: fields.f64()? })
    }
}

/// The pool changed its target number of workers (event 55).
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Adjustment {
    /// Work items completed per second since the change before; 0 where that was not measured.
    pub throughput: f64,
    /// Workers from now on.
    pub workers: u32,
    /// Why.
    pub reason: AdjustmentReason,
}

/// Why the pool changed its target number of workers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct AdjustmentReason(pub u32);

impl AdjustmentReason {
    /// Work waited for half a second and no worker came free: the pool adds one, as slowly as that.
    pub const STARVATION: Self = Self(6);
    /// Workers are blocked on tasks, and others are added for them; or no longer are (.NET 6).
    pub const COOPERATIVE_BLOCKING: Self = Self(8);

    /// The runtime's name for it.
    pub fn name(self) -> &'static str {
        const NAMES: [&str; 9] = [
            "Warmup",
            "Initializing",
            "RandomMove",
            "ClimbingMove",
            "ChangePoint",
            "Stabilizing",
            "Starvation",
            "ThreadTimedOut",
            "CooperativeBlocking",
        ];
        NAMES.get(self.0 as usize).copied().unwrap_or("Unknown")
    }
}

impl Payload<'_> for Adjustment {
    fn read(mut fields: Fields<'_>) -> Option<Self> {
        Some(Self { throughput: fields.f64()?, workers: fields.u32()?, reason: AdjustmentReason(fields.u32()?) })
    }
}

/// The bounds that the program set (event 59, .NET 7).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MinMaxThreads {
    /// Workers that are made without hesitation.
    pub min_workers: u16,
    /// Most workers.
    pub max_workers: u16,
}

impl Payload<'_> for MinMaxThreads {
    fn read(mut fields: Fields<'_>) -> Option<Self> {
        Some(Self { min_workers: fields.u16()?, max_workers: fields.u16()? })
    }
}
