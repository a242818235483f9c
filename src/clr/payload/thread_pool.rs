//! The thread pool.

use super::{Fields, Payload};

/// Number of worker threads (events 50 to 53 and 57).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Workers {
    /// Workers that run or wait for work items.
    pub active: u32,
}

impl Payload<'_> for Workers {
    fn read(mut fields: Fields<'_>) -> Option<Self> {
        Some(Self { active: fields.u32()? })
    }
}

/// Throughput measurement of the hill climbing algorithm (event 54).
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct AdjustmentSample {
    /// Work items completed per second since the previous sample. The first sample of a pool counts from machine startup.
    pub throughput: f64,
}

impl Payload<'_> for AdjustmentSample {
    fn read(mut fields: Fields<'_>) -> Option<Self> {
        Some(Self { throughput: fields.f64()? })
    }
}

/// The thread pool adjusted its target number of workers (event 55).
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Adjustment {
    /// Work items completed per second since the previous adjustment; 0 if not measured.
    pub throughput: f64,
    /// New number of workers.
    pub workers: u32,
    /// Reason of the adjustment.
    pub reason: AdjustmentReason,
}

/// Reason for adjusting the number of workers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct AdjustmentReason(pub u32);

impl AdjustmentReason {
    /// Queued work waited for half a second without a free worker: the pool adds only one worker at a time.
    pub const STARVATION: Self = Self(6);
    /// Workers are added because others are blocked on tasks, or removed again afterwards (.NET 6).
    pub const COOPERATIVE_BLOCKING: Self = Self(8);

    /// Returns the runtime's name of the reason.
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

/// Thread limits set by the program (event 59, .NET 7).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MinMaxThreads {
    /// Number of workers that are created on demand without delay.
    pub min_workers: u16,
    /// Maximum number of workers.
    pub max_workers: u16,
}

impl Payload<'_> for MinMaxThreads {
    fn read(mut fields: Fields<'_>) -> Option<Self> {
        Some(Self { min_workers: fields.u16()?, max_workers: fields.u16()? })
    }
}
