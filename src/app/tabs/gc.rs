//! Garbage collection: pauses, heap size, and allocations.

use super::quantity::{bytes, nanoseconds};
use super::{Cell, Descriptor, Figure, Fit, Head, Live, Look, Recorded, Role, Rows, Shows, Side, Table, View, allocations, at, live};
use crate::analysis::{AllocatedType, Collection, CollectionCount, GcSnapshot};
use crate::app::Tab;
use crate::app::action::{Action, Context};
use crate::diagnosis::Source;
use crate::model::{ByteRate, Bytes, Count, Nanoseconds, Percent};

pub(super) const TAB: Descriptor = Descriptor {
    context: |state| match (state.allocation_tree().is_some(), state.lists_allocations()) {
        (true, _) => Context::AllocationTree,
        (false, true) => Context::Allocations,
        (false, false) => Context::Collections,
    },
    actions: allocations::ACTIONS,
    ..Descriptor::new(["GC"; 3], Shows::Recording(Recorded { view, sources: &[Source::Allocations], live: Some(LIVE) }))
};

const LIVE: Live = Live {
    view: live::gc,
    needs_counters: true,
    graphs: &["GC heap", "Time in GC", "GC pauses", "Collections", "Allocation rate"],
    recording_adds: "pauses and allocated types",
};

pub(super) fn view(look: Look<'_>) -> View<'_> {
    if let Some(view) = allocations::view(look) {
        return view;
    }
    let gc = &look.analysis.snapshot.gc;
    let is_missing = gc.collections.iter().sum::<u64>() == 0 && gc.pauses.count == 0 && gc.allocations.is_none();
    let unmatched = if gc.recent.is_empty() { "No collection has ended yet." } else { "No collection matches the filter." };
    let empty = look.empty(is_missing, Source::Collections, unmatched);
    // Before the first collection, only the runtime's counters are known.
    if is_missing && let Some(counters) = look.counters() {
        return live::below(look, &LIVE, Some(counters), empty);
    }
    let view = View { empty, ..collections(gc).place(look.state, Tab::Gc).view("") };
    if is_missing {
        return view;
    }
    let heap = look.level_chart("GC heap size", bytes, &gc.heap_size);
    let pause = look.sum_chart("max pause", Role::Events, nanoseconds, &gc.pauses.longest);
    View {
        head: vec![Head::Figures(figures(look, gc))],
        summary: parts(look, gc),
        // The heap size is known only after a collection.
        charts: if gc.heap.is_some() { vec![heap, pause] } else { vec![pause] },
        side: Some(allocated(look, gc)),
        ..view
    }
}

fn figures(look: Look<'_>, gc: &GcSnapshot) -> Vec<Figure> {
    let pauses = &gc.pauses;
    let [gen0, gen1, gen2] = gc.collections.map(Count);
    let mut all = vec![
        look.gc_time(),
        Figure::new("pauses", Count(pauses.count), Role::Strong),
        Figure::new("gen 0/1/2", format!("{gen0}/{gen1}/{gen2}"), Role::Text),
    ];
    if let Some(quantiles) = pauses.quantiles_ns {
        all.push(Figure::new("max", Nanoseconds(pauses.longest_ns), Role::Strong));
        all.extend(Figure::quantiles(quantiles));
    }
    all.extend(Figure::if_any("induced", gc.induced, Role::Warning));
    if let Some(allocations) = &gc.allocations {
        all.push(Figure::new("allocated", ByteRate(look.rate(allocations.bytes, allocations.rate)), Role::Strong));
        all.push(Figure::new("total", Bytes(allocations.bytes), Role::Text));
    }
    if let Some(heap) = &gc.heap {
        all.push(Figure::new("heap", Bytes(heap.size()), Role::Strong));
        all.push(Figure::new("promoted", Bytes(heap.promoted), Role::Text));
        all.push(Figure::new("GC handles", Count(heap.handles.into()), Role::Text));
        all.push(Figure::new("pinned objects", Count(heap.pinned_objects.into()), Role::Text));
        all.push(Figure::new("awaiting finalization", Count(heap.finalization), Role::Text));
    }
    all
}

/// Lists the generations with their current size and its history over the last five minutes, second by second.
fn parts<'a>(look: Look<'a>, gc: &'a GcSnapshot) -> Option<Rows<'a>> {
    const NAMES: [&str; 5] = ["gen 0", "gen 1", "gen 2", "LOH", "POH"];
    let heap = gc.heap.as_ref()?;
    let known = if heap.pinned.is_some() { 5 } else { 4 };
    let table = Table::new((0..known).collect(), |part: &usize| part.to_string())
        .column("HEAP", 5, Fit::Left, |part| Cell::new(NAMES[*part], Role::Dim))
        .column("SIZE", 8, Fit::Right, |part| Cell::new(Bytes(heap.parts()[*part]), Role::Text))
        // A size remains valid until the next collection.
        .column("HISTORY", 0, Fit::Right, move |part| Cell::Bars(look.levels(&gc.parts_over_time[*part]), Role::Bytes));
    Some(table.finish())
}

fn collections(gc: &GcSnapshot) -> Table<'_, &Collection> {
    let (before, promoted) = (gc.recent.iter().any(|gc| gc.heap_before.is_some()), gc.recent.iter().any(|gc| gc.promoted.is_some()));
    Table::new(gc.recent.iter().collect(), |collection: &&Collection| collection.number.to_string())
        .column("AT", 7, Fit::Right, |collection| Cell::new(at(collection.start), Role::Dim))
        .column("GEN", 3, Fit::Right, |collection| {
            Cell::new(collection.generation, if collection.generation >= 2 { Role::Strong } else { Role::Text })
        })
        .column("PAUSE", 7, Fit::Right, |collection| Cell::known(collection.pause_ns.map(Nanoseconds), Role::Events))
        .column_if(before, "BEFORE", 7, Fit::Right, |collection| Cell::known(collection.heap_before.map(Bytes), Role::Text))
        .column("AFTER", 7, Fit::Right, |collection| Cell::known(collection.heap_after.map(Bytes), Role::Bytes))
        .column("REASON", 0, Fit::Left, |collection| {
            Cell::new(collection.reason.name(), if collection.reason.is_induced() { Role::Warning } else { Role::Text })
        })
        .column_if(promoted, "PROMOTED", 8, Fit::Right, |collection| Cell::known(collection.promoted.map(Bytes), Role::Text))
        .column("TYPE", 10, Fit::Left, |collection| Cell::new(collection.kind.name(), Role::Dim))
}

/// Lists the allocated types or, if unknown, the reasons for collections.
fn allocated<'a>(look: Look<'a>, gc: &'a GcSnapshot) -> Side<'a> {
    const WIDE: u16 = 90;
    let Some(allocations) = &gc.allocations else {
        let causes = Table::new(gc.causes.iter().collect(), |cause: &&CollectionCount| format!("{:?}", cause.reason))
            .column("COUNT", 6, Fit::Right, |cause| Cell::new(Count(cause.count), Role::Strong))
            .column("GEN", 3, Fit::Right, |cause| Cell::new(cause.generation, Role::Text))
            .column("REASON", 0, Fit::Left, |cause| Cell::new(cause.reason.name(), Role::Text))
            .column("TYPE", 10, Fit::Left, |cause| Cell::new(cause.kind.name(), Role::Dim))
            .finish();
        let key = look.state.key(Action::Profiles);
        let records = || format!("Profile {} ({key}) records allocations by type.", Source::Allocations.profile());
        let note = look.state.gap(Source::Allocations).map_or_else(records, |gap| format!("{gap}."));
        return Side { text: vec![vec![(note, Role::Dim)]], wide: WIDE, below: false, ..Side::list(causes) };
    };
    let all = allocations.all();
    let types = Table::new(allocations.top.iter().collect(), |kind: &&AllocatedType| kind.name.clone())
        .column("BYTES", 7, Fit::Right, |kind| Cell::new(Bytes(kind.bytes), Role::Strong))
        .column("SHARE", 6, Fit::Right, move |kind| Cell::new(Percent(kind.bytes as f64 / all.max(1) as f64), Role::Bytes))
        .column("ALLOCATED TYPE", 0, Fit::Name, |kind| Cell::new(&kind.name, Role::Text))
        .finish();
    Side { wide: WIDE, below: false, ..Side::list(types) }
}
