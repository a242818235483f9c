//! Object allocations by type.

use crate::clr::payload::{AllocationKind, AllocationSampled, AllocationTick};
use crate::clr::{TypeArguments, type_name};
use crate::wire::Utf16;

use super::super::event_context::EventContext;
use super::super::methods::EventStacks;
use super::super::ranking::{Ranking, Row};
use super::super::{Symbols, Timeline, TypeStacks};

/// Maximum number of types in a snapshot.
const TOP: usize = 100;

/// Counts allocation events.
#[derive(Debug, Default)]
pub(super) struct Allocations {
    /// AllocationTick events: one per about 100 KB on each heap, with the type of the object that crossed the threshold.
    ticks: Amounts,
    /// Random samples.
    samples: Amounts,
    /// Stacks of ticks until the first sample, then of samples.
    stacks: EventStacks,
}

/// Allocations by the events of one kind.
#[derive(Debug, Default)]
struct Amounts {
    events: u64,
    bytes: u64,
    by_kind: [u64; 3],
    types: Ranking<Type>,
    over_time: Timeline,
}

#[derive(Debug, Default)]
struct Type {
    bytes: u64,
    ticks: u64,
    largest: u64,
}

impl Row for Type {
    const LIMIT: usize = 1024;

    fn weight(&self) -> u64 {
        self.bytes
    }

    fn fold(&mut self, row: Self) {
        self.add(row.bytes, row.ticks, row.largest);
    }
}

impl Type {
    fn add(&mut self, bytes: u64, ticks: u64, size: u64) {
        self.bytes = self.bytes.saturating_add(bytes);
        self.ticks += ticks;
        self.largest = self.largest.max(size);
    }
}

/// Allocations of a recording.
#[derive(Debug, Clone)]
pub struct AllocationSnapshot {
    /// Allocated bytes, accurate to 100 KB per heap; without ticks, estimated from samples.
    pub bytes: u64,
    /// Of these, bytes of small, large and pinned objects.
    pub by_kind: [u64; 3],
    /// Number of AllocationTick events.
    pub ticks: u64,
    /// Bytes per second over the last ten seconds.
    pub rate: f64,
    /// Types by bytes, descending; at most 100.
    pub top: Vec<AllocatedType>,
    /// Bytes of types that are not listed.
    pub others: u64,
    /// Whether `top` is based on randomly sampled allocations (.NET 10) instead of ticks, which are biased towards the objects being allocated
    /// when a tick is due.
    pub is_random: bool,
    /// Allocation stacks by type, with [`AllocatedType::full_name`] as the key, weighted by bytes.
    pub stacks: TypeStacks,
}

/// Estimated allocations of one type, extrapolated from events.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AllocatedType {
    /// Name with type arguments without namespaces; not sanitized.
    pub name: String,
    /// Name as reported by the runtime; not sanitized.
    pub full_name: String,
    /// Estimated bytes.
    pub bytes: u64,
    /// Number of events.
    pub ticks: u64,
    /// Size of the largest object, in bytes; 0 if unknown.
    pub largest: u64,
}

impl AllocationSnapshot {
    /// Returns the bytes of all types.
    pub fn all(&self) -> u64 {
        self.top.iter().fold(self.others, |sum, kind| sum.saturating_add(kind.bytes))
    }
}

impl Amounts {
    fn add(&mut self, at: i64, kind: AllocationKind, type_name: Utf16<'_>, bytes: u64, size: u64) {
        self.events += 1;
        self.bytes = self.bytes.saturating_add(bytes);
        let of_kind = &mut self.by_kind[kind as usize];
        *of_kind = of_kind.saturating_add(bytes);
        self.over_time.add(at, bytes as f64);
        self.types.row(type_name.as_bytes()).add(bytes, 1, size);
    }
}

impl Allocations {
    pub(super) fn tick(&mut self, context: &EventContext<'_>, symbols: &Symbols, tick: &AllocationTick<'_>) {
        self.ticks.add(context.at, tick.kind, tick.type_name, tick.amount, tick.object_size.unwrap_or(0));
        if self.samples.events == 0 {
            self.stacks.add(context, symbols, tick.type_name, tick.amount);
        }
    }

    pub(super) fn sampled(&mut self, context: &EventContext<'_>, symbols: &Symbols, sampled: &AllocationSampled<'_>) {
        if self.samples.events == 0 {
            self.stacks = EventStacks::default();
        }
        let bytes = sampled.weight();
        self.samples.add(context.at, sampled.kind, sampled.type_name, bytes, sampled.object_size);
        self.stacks.add(context, symbols, sampled.type_name, bytes);
    }

    pub(super) fn forget_stacks(&mut self) {
        self.stacks.forget_stacks();
    }

    pub(super) fn snapshot(&self, symbols: &Symbols, now: i64) -> Option<AllocationSnapshot> {
        let is_random = self.samples.events > 0;
        // Ticks are measured, and samples an estimate; only samples have an unbiased choice of types.
        let all = if self.ticks.events > 0 { &self.ticks } else { &self.samples };
        let types = if is_random { &self.samples.types } else { &self.ticks.types };
        if all.events == 0 {
            return None;
        }
        let named = |(name, row): (&[u8], &Type)| {
            let full_name = Utf16::new(name).to_string();
            let name = type_name(&full_name, TypeArguments::Short);
            AllocatedType { name, full_name, bytes: row.bytes, ticks: row.ticks, largest: row.largest }
        };
        let top: Vec<_> = types.heaviest(TOP).into_iter().map(named).collect();
        let of_types = types.rows().fold(types.rest().bytes, |sum, (_, row)| sum.saturating_add(row.bytes));
        Some(AllocationSnapshot {
            bytes: all.bytes,
            by_kind: all.by_kind,
            ticks: self.ticks.events,
            rate: all.over_time.rate(now, 10),
            others: top.iter().fold(of_types, |left, named| left.saturating_sub(named.bytes)),
            top,
            is_random,
            stacks: self.stacks.snapshot(symbols),
        })
    }
}
