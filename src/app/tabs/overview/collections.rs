//! The graph of garbage collections: individual marks, or counts if they are not recorded individually.

use super::graphs::{Graph, Layer, Mark, history, seconds};
use crate::analysis::{CollectionMarks, CounterSnapshot, CountersSnapshot, GcMark};
use crate::app::health::runtime_counter;
use crate::app::tabs::quantity::{milliseconds, rate};
use crate::app::tabs::view::Role;
use crate::model::Nanoseconds;
use crate::sorting::CompactSort;

/// Maximum number of seconds shown.
const MAX_SECONDS: usize = 300;
const SECOND: i64 = 1_000_000_000;
/// Roles of generations 0, 1 and 2, the same as in the heap graph.
const ROLES: [Role; 3] = [Role::Part(4), Role::Part(3), Role::Part(0)];

/// Creates the graph of the session's collections.
pub(super) fn collections(counters: &CountersSnapshot) -> Option<Graph> {
    match &counters.collections {
        CollectionMarks::Recorded(marks) => pauses(counters, marks),
        CollectionMarks::NotRecorded => count(counters, ""),
        CollectionMarks::TooMany(_) => count(counters, "  not marked"),
    }
}

/// Draws pauses as marks labeled with their generation. They are drawn in milliseconds, as the axis spans at least 1: shorter pauses are negligible.
fn pauses(counters: &CountersSnapshot, marks: &[GcMark]) -> Option<Graph> {
    let newest = counters.counters.iter().map(|counter| counter.at).max()?;
    let len = usize::try_from(newest / SECOND).unwrap_or(0).clamp(1, MAX_SECONDS);
    let mut longest = vec![f64::NAN; len];
    let mut drawn = Vec::new();
    // The newest pauses can be more recent than the newest counter values.
    for mark in marks.iter().filter(|mark| mark.at <= newest) {
        let (ago, value) = (newest.saturating_sub(mark.at) as f64 / SECOND as f64, mark.pause_ns as f64 / 1e6);
        let Some(second) = longest.iter_mut().rev().nth(ago as usize) else { continue };
        *second = second.max(value);
        let generation = mark.generation.min(2);
        drawn.push(Mark { ago, value, sign: char::from(b'0' + generation as u8), role: ROLES[generation as usize] });
    }
    // Of overlapping marks, the one of the oldest generation is visible.
    drawn.compact_sort_by_key(|mark| mark.sign);
    let now = match marks.last() {
        None => "none yet".to_owned(),
        Some(last) => format!("{} last, gen {}", Nanoseconds(last.pause_ns), last.generation.min(2)),
    };
    let layers = vec![Layer { label: String::new(), role: Role::Border, values: longest }];
    Some(Graph { title: "GC pauses", now, unit: milliseconds, layers, marks: drawn })
}

/// Draws collections per second by generation. The counter of each generation includes the collections of older ones.
fn count(counters: &CountersSnapshot, more: &str) -> Option<Graph> {
    let of = |name: &str| runtime_counter(counters, name).map(|counter: &CounterSnapshot| seconds(&history(counter)));
    let (gen0, gen1, gen2) = (of("gen-0-gc-count")?, of("gen-1-gc-count")?, of("gen-2-gc-count")?);
    let less = |all: &[f64], older: &[f64]| -> Vec<f64> { all.iter().zip(older).map(|(all, older)| (all - older).max(0.0)).collect() };
    if gen0.len() != gen1.len() || gen1.len() != gen2.len() {
        return None;
    }
    let now = format!("{}{more}", rate(*gen0.last()?));
    let parts = [("gen 2", less(&gen2, &vec![0.0; gen2.len()])), ("gen 1", less(&gen1, &gen2)), ("gen 0", less(&gen0, &gen1))];
    let layers = parts.into_iter().zip(ROLES.into_iter().rev()).map(|((name, values), role)| Layer {
        label: format!("{name} {}", rate(values.last().copied().unwrap_or(0.0))),
        role,
        values,
    });
    Some(Graph { title: "Collections", now, unit: rate, layers: layers.collect(), marks: Vec::new() })
}
