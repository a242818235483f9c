//! Compares two recordings figure by figure.
//!
//! Recordings differ in length: counts are compared as rates, times as shares of the recording.

use std::collections::HashMap;

use super::{ContainedEvents, Profile, SampleFilter, Snapshot, without_duplicates};
use crate::sorting::CompactSort;

/// Unresolved frames are grouped, because their addresses differ between runs.
const UNRESOLVED: &str = "(unresolved)";

/// One of the two recordings.
#[derive(Debug, Clone, Copy)]
pub struct Compared<'a> {
    /// All results except the samples.
    pub snapshot: &'a Snapshot,
    /// The samples.
    pub profile: &'a Profile,
}

listed! {
/// Unit of a figure.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Unit {
    /// Events per second.
    PerSecond => "1/s",
    /// Bytes per second.
    BytesPerSecond => "bytes/s",
    /// Bytes.
    Bytes => "bytes",
    /// Nanoseconds.
    Nanoseconds => "ns",
    /// Share of the recording's duration, where 1 is all of it; may exceed 1 if several threads are counted.
    Share => "share",
    /// Value in the counter's own unit.
    Plain => "",
}
/// Returns its name in JSON.
pub fn name(self) -> &'static str;
}

listed! {
/// Subject of a section.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Subject {
    /// Garbage collections, pauses and the GC heap.
    Gc => ["GC", "GC", "gc"],
    /// Self time by method, without waiting threads.
    Methods => ["METHODS: self time, as a share of the recording", "self time", "methods"],
    /// Total time by method, callees included, without waiting threads.
    MethodTotals => ["METHODS: total time, as a share of the recording", "total time", "method_totals"],
    /// Allocated bytes by type.
    Allocations => ["ALLOCATIONS by type", "allocations", "allocations"],
    /// Exceptions by type.
    Exceptions => ["EXCEPTIONS by type", "exceptions", "exceptions"],
    /// Time spent waiting for locks, by method.
    Contention => ["LOCK CONTENTION: waiting time by method, as a share of the recording", "contention", "contention"],
    /// JIT compilation.
    Jit => ["JIT", "JIT", "jit"],
    /// Rates and durations of HTTP requests and other operations.
    Operations => ["HTTP REQUESTS and other operations", "operations", "operations"],
    /// Mean values of counters and meters.
    Counters => ["COUNTERS: mean values", "counters", "counters"],
}
/// Returns the heading, a short form of it, and the name in JSON.
fn names(self) -> [&'static str; 3];
}

impl Subject {
    /// Returns the heading.
    pub fn title(self) -> &'static str {
        self.names()[0]
    }

    /// Returns one or two words for it.
    pub fn short_title(self) -> &'static str {
        self.names()[1]
    }

    /// Returns its name in JSON.
    pub fn name(self) -> &'static str {
        self.names()[2]
    }
}

/// A figure with its values in both recordings.
#[derive(Debug, Clone, PartialEq)]
pub struct ComparedFigure {
    /// Name of the figure; not sanitized.
    pub name: String,
    /// Unit of both values.
    pub unit: Unit,
    /// Value in the first recording; `None` if unknown.
    pub before: Option<f64>,
    /// Value in the second recording; `None` if unknown.
    pub after: Option<f64>,
}

/// Figures of one subject.
#[derive(Debug, Clone, PartialEq)]
pub struct Section {
    /// Subject of the figures.
    pub subject: Subject,
    /// The figures, greatest change first; those of [`Subject::Gc`] and [`Subject::Jit`] in a fixed order.
    pub figures: Vec<ComparedFigure>,
}

impl Unit {
    /// Returns whether a missing figure means 0.
    fn is_additive(self) -> bool {
        matches!(self, Self::PerSecond | Self::BytesPerSecond | Self::Share)
    }
}

impl Subject {
    /// Returns whether the figures have a fixed order.
    fn is_ordered(self) -> bool {
        matches!(self, Self::Gc | Self::Jit)
    }

    /// Whether a stream contains such events: then a part of it without any has 0 of them.
    fn is_contained(self, contained: ContainedEvents) -> bool {
        match self {
            Self::Gc => contained.collections,
            Self::Allocations => contained.allocations,
            Self::Exceptions => contained.exceptions,
            Self::Contention => contained.contention,
            Self::Methods | Self::MethodTotals | Self::Jit | Self::Operations | Self::Counters => false,
        }
    }

    /// Returns the figures of one recording; `None` if it contains no data on the subject.
    fn figures(self, of: Compared<'_>) -> Option<Figures> {
        let Compared { snapshot, profile } = of;
        let seconds = snapshot.recorded_ns.max(1) as f64 / 1e9;
        let rate = |count: u64| count as f64 / seconds;
        let share = |ns: u64| ns as f64 / snapshot.recorded_ns.max(1) as f64;
        let mut found = Figures::default();
        let is_contained = snapshot.recorded_ns > 0 && self.is_contained(snapshot.contained);
        match self {
            Self::Gc => {
                let gc = &snapshot.gc;
                if gc.pauses.count == 0 && gc.heap.is_none() && gc.allocations.is_none() && !is_contained {
                    return None;
                }
                for (name, count) in ["gen 0 collections", "gen 1 collections", "gen 2 collections"].into_iter().zip(gc.collections) {
                    found.add(name, Unit::PerSecond, rate(count));
                }
                found.add("time in GC", Unit::Share, share(gc.pauses.total_ns));
                if gc.pauses.count > 0 {
                    found.add("max pause", Unit::Nanoseconds, gc.pauses.longest_ns as f64);
                }
                if let Some([_, p95, _]) = gc.pauses.quantiles_ns {
                    found.add("p95 pause", Unit::Nanoseconds, p95 as f64);
                }
                if let Some(heap) = &gc.heap {
                    found.add("heap after the last GC", Unit::Bytes, heap.size() as f64);
                    let peak = gc.heap_size.whole().1.iter().copied().fold(heap.size() as f64, f64::max);
                    found.add("peak heap", Unit::Bytes, peak);
                }
                if let Some(allocations) = &gc.allocations {
                    found.add("allocated", Unit::BytesPerSecond, rate(allocations.bytes));
                }
            }
            Self::Methods | Self::MethodTotals => {
                if profile.is_empty() {
                    return None;
                }
                for method in profile.count(SampleFilter::BUSY).by_method() {
                    let Some(frame) = profile.frame_at(method.frame) else { continue };
                    let time = if self == Self::Methods { method.own } else { method.total };
                    match frame.is_unresolved() {
                        // Total times of several unresolved frames may include the same samples, so they cannot be added up.
                        true if self == Self::MethodTotals => {}
                        true => found.add(UNRESOLVED, Unit::Share, share(time.running_ns)),
                        false => found.add(&frame.full_name(), Unit::Share, share(time.running_ns)),
                    }
                }
            }
            Self::Allocations => {
                let allocations = snapshot.gc.allocations.as_ref();
                let types = allocations.iter().flat_map(|allocations| &allocations.top);
                types.for_each(|kind| found.add(&kind.name, Unit::BytesPerSecond, rate(kind.bytes)));
                found.missing_is_zero = allocations.is_none_or(|allocations| allocations.others == 0);
            }
            Self::Exceptions => {
                let exceptions = &snapshot.exceptions;
                exceptions.types.iter().for_each(|kind| found.add(&kind.name, Unit::PerSecond, rate(kind.count)));
                found.missing_is_zero = exceptions.others == 0;
            }
            Self::Contention => {
                let contention = &snapshot.contention;
                contention.sites.iter().for_each(|site| found.add(&site.method, Unit::Share, share(site.wait_ns)));
                found.missing_is_zero = contention.others_ns == 0;
            }
            Self::Jit => {
                let jit = &snapshot.jit;
                if jit.bodies == 0 {
                    return None;
                }
                found.add("methods loaded", Unit::PerSecond, rate(jit.bodies));
                found.add("methods compiled", Unit::PerSecond, rate(jit.jitted));
                if let Some(time) = &jit.time {
                    found.add("time compiling", Unit::Share, share(time.total_ns));
                }
            }
            Self::Operations => {
                for operation in &snapshot.activities.operations {
                    let title = operation.title();
                    found.add(&title, Unit::PerSecond, rate(operation.started));
                    if let Some([p50, p95, p99]) = operation.quantiles_ns {
                        for (what, ns) in [("p50", p50), ("p95", p95), ("p99", p99)] {
                            found.add(&format!("{title} {what}"), Unit::Nanoseconds, ns as f64);
                        }
                    }
                }
            }
            Self::Counters => {
                for counter in without_duplicates(&snapshot.counters.counters) {
                    let values = &counter.history;
                    if !values.is_empty() {
                        let tags = if counter.tags.is_empty() { String::new() } else { format!("{{{}}}", counter.tags) };
                        let name = format!("{}/{}{tags}", counter.group, counter.name);
                        found.add(&name, Unit::Plain, values.iter().map(|(_, value)| value).sum::<f64>() / values.len() as f64);
                    }
                }
                // A counter that is missing was not published, which does not mean 0.
                found.missing_is_zero = false;
            }
        }
        (is_contained || !found.all.is_empty()).then_some(found)
    }

    /// Builds the section. A figure found in only one recording counts as 0 in the other if that one has data on the subject and all of its
    /// figures are known.
    fn compare(self, before: Compared<'_>, after: Compared<'_>) -> Option<Section> {
        let (before, after) = (self.figures(before), self.figures(after));
        let is_new = |key: &&(String, Unit)| before.as_ref().is_none_or(|found| !found.all.contains_key(*key));
        let keys = before.iter().flat_map(|found| &found.order).chain(after.iter().flat_map(|found| &found.order).filter(is_new));
        let value = |found: &Option<Figures>, key: &(String, Unit)| {
            let found = found.as_ref()?;
            found.all.get(key).copied().or((found.missing_is_zero && key.1.is_additive() && !self.is_ordered()).then_some(0.0))
        };
        let figure = |key: &(String, Unit)| {
            let (name, unit) = key.clone();
            ComparedFigure { name, unit, before: value(&before, key), after: value(&after, key) }
        };
        let mut figures: Vec<_> = keys.map(figure).collect();
        if !self.is_ordered() {
            // With mixed units, only relative changes are comparable.
            let is_mixed = matches!(self, Self::Operations | Self::Counters);
            let weight = |figure: &ComparedFigure| if is_mixed { figure.relative() } else { figure.change().map(f64::abs) }.unwrap_or(-1.0);
            let order = |figure: &ComparedFigure| (weight(figure), figure.before.or(figure.after).unwrap_or_default());
            figures.compact_sort_by(|a, b| {
                let ((change, value), (other_change, other_value)) = (order(a), order(b));
                other_change.total_cmp(&change).then(other_value.total_cmp(&value)).then_with(|| a.name.cmp(&b.name))
            });
        }
        (!figures.is_empty()).then_some(Section { subject: self, figures })
    }
}

impl ComparedFigure {
    /// Returns the second value minus the first.
    pub fn change(&self) -> Option<f64> {
        Some(self.after? - self.before?)
    }

    /// Returns the change relative to the larger value, 0 to 1.
    fn relative(&self) -> Option<f64> {
        let greater = self.after?.abs().max(self.before?.abs());
        Some(if greater == 0.0 { 0.0 } else { (self.change()?.abs() / greater).min(1.0) })
    }
}

/// Compares two recordings. Subjects found in only one of them have no values for the other.
pub fn compare(before: Compared<'_>, after: Compared<'_>) -> Vec<Section> {
    Subject::ALL.into_iter().filter_map(|subject| subject.compare(before, after)).collect()
}

/// Figures of one recording by name and unit.
#[derive(Debug)]
struct Figures {
    all: HashMap<(String, Unit), f64>,
    /// Keys in insertion order.
    order: Vec<(String, Unit)>,
    /// Whether a missing figure is 0.
    missing_is_zero: bool,
}

impl Default for Figures {
    fn default() -> Self {
        Self { all: HashMap::new(), order: Vec::new(), missing_is_zero: true }
    }
}

impl Figures {
    /// Adds a figure; values with the same name and unit are summed.
    fn add(&mut self, name: &str, unit: Unit, value: f64) {
        let key = (name.to_owned(), unit);
        match self.all.get_mut(&key) {
            Some(sum) => *sum += value,
            None => {
                self.order.push(key.clone());
                self.all.insert(key, value);
            }
        }
    }
}
