//! Allocated types, and the allocation sites of a type as a list or a call tree.

use super::{Cell, Figure, Fit, Head, Line, Look, Role, Side, TabList, Table, View, type_tree};
use crate::analysis::{AllocatedType, AllocationSnapshot, CallSite};
use crate::app::action::Run::Do;
use crate::app::action::{Action, BACKSPACE, ENTER, Entry, char, details, places, ready_if};
use crate::app::{State, Tab};
use crate::model::{ByteRate, Bytes, Count, Counted, Percent};

/// Maximum number of methods listed for a type.
const MAX_SITES: usize = 30;

pub(super) const ACTIONS: &[Entry] = &[
    details(
        Action::Shape,
        &[char('f')],
        "allocations",
        "Switch between collections and allocated types.",
        places::COLLECTIONS,
        Do(State::toggle_allocations),
    )
    .hint(83)
    .when(|state| ready_if(state.allocations().is_some()))
    .label_now(|state| match (state.allocation_tree().is_some(), state.lists_allocations()) {
        (true, _) => "types",
        (false, true) => "collections",
        (false, false) => "allocations",
    }),
    details(
        Action::Open,
        &[ENTER],
        "call tree",
        "Show where the type is allocated.",
        places::ALLOCATED_TYPES,
        Do(State::open_allocation_tree),
    )
    .hint(84),
    details(
        Action::Widen,
        &[BACKSPACE],
        "types",
        "Back to the allocated types.",
        places::ALLOCATION_TREE,
        Do(|state| {
            state.leave_allocation_tree();
        }),
    )
    .hint(83),
];

/// Shows the allocated types, or the call tree of one, if selected.
pub(super) fn view(look: Look<'_>) -> Option<View<'_>> {
    let allocations = look.state.allocations().filter(|_| look.state.lists_allocations())?;
    let Some(kind) = look.state.allocation_tree() else { return Some(types(look, allocations)) };
    let heading = vec![
        (format!(" {} ", kind.name), Role::Chip),
        (format!("  {} in {}   Backspace: all types", Bytes(kind.bytes), Counted(kind.ticks, "event")), Role::Dim),
    ];
    let stacks = look.state.type_stacks(Tab::Gc)?;
    Some(type_tree::view(look, Tab::Gc, &stacks, |bytes, role| Cell::new(Bytes(bytes), role), vec![Head::Text(heading)]))
}

fn figures(look: Look<'_>, allocations: &AllocationSnapshot) -> Vec<Figure> {
    let [small, large, pinned] = allocations.by_kind.map(Bytes);
    vec![
        Figure::new("allocated", ByteRate(look.rate(allocations.bytes, allocations.rate)), Role::Strong),
        Figure::new("total", Bytes(allocations.bytes), Role::Strong),
        Figure::new("small objects", small, Role::Text),
        Figure::new("large", large, Role::Text),
        Figure::new("pinned", pinned, Role::Text),
    ]
}

/// Names the events from which the bytes of a type are estimated.
fn source(allocations: &AllocationSnapshot) -> Head {
    let event = if allocations.is_random { "AllocationSampled" } else { "AllocationTick" };
    Head::text(format!("bytes by type are estimates: one {event} for about 100 kB"), Role::Dim)
}

fn types<'a>(look: Look<'a>, allocations: &'a AllocationSnapshot) -> View<'a> {
    let all = allocations.all().max(1) as f64;
    let TabList { list, cursor, selected } = Table::new(allocations.top.iter().collect(), |kind: &&AllocatedType| kind.name.clone())
        .column("BYTES", 8, Fit::Right, |kind| Cell::new(Bytes(kind.bytes), Role::Strong))
        .column("SHARE", 6, Fit::Right, move |kind| Cell::new(Percent(kind.bytes as f64 / all), Role::Bytes))
        .column("EVENTS", 7, Fit::Right, |kind| Cell::new(Count(kind.ticks), Role::Text))
        .column("LARGEST", 8, Fit::Right, |kind| Cell::known((kind.largest > 0).then_some(Bytes(kind.largest)), Role::Text))
        .column("ALLOCATED TYPE", 0, Fit::Name, |kind| Cell::new(&kind.name, Role::Text))
        .place(look.state, Tab::Gc);
    View {
        head: vec![Head::Figures(figures(look, allocations)), source(allocations)],
        side: selected.map(|kind| call_sites(look, allocations, kind)),
        copy: selected.map(|kind| ("type", kind.name.clone())),
        ..View::new(list, cursor, "No type matches the filter.")
    }
}

fn call_sites<'a>(look: Look<'a>, allocations: &AllocationSnapshot, kind: &AllocatedType) -> Side<'a> {
    let of_type = kind.bytes.max(1) as f64;
    let name: Line = vec![(kind.name.clone(), Role::Strong), ("   Enter: call tree".to_owned(), Role::Dim)];
    let sites = Table::new(allocations.stacks.call_sites(&kind.full_name, MAX_SITES), |site: &CallSite| site.method.clone())
        .column("BYTES", 8, Fit::Right, |site| Cell::new(Bytes(site.bytes), Role::Strong))
        .column("SHARE", 6, Fit::Right, move |site| Cell::new(Percent(site.bytes as f64 / of_type), Role::Bytes))
        .column("ALLOCATED IN", 0, Fit::Name, move |site| look.method(&site.method))
        .finish();
    Side { lists: vec![sites], wide: 120, thirds: 2, ..Side::text(vec![name]) }
}
