//! The heap of a process or of a heap file by type, as of the last walk; the changes since the walk before; and the paths that keep a type
//! alive.

use super::{Cell, Descriptor, Figure, Fit, Head, Line, Role, Shows, Side, TabList, Table, View};
use crate::analysis::{HeapAmount, HeapChange, HeapType, PathStep, PendingAsync, RetainedType, growth};
use crate::app::action::Run::{Do, Emit};
use crate::app::action::{Action, Context, ENTER, Entry, Status, char, details, places, ready_if, status};
use crate::app::heaps::{HeapWalk, ProcessHeap};
use crate::app::{RowKind, State, Tab, WalkedHeap, update};
use crate::model::{Bytes, Count, Counted, FileKind, Percent, Stopwatch};

/// The state of the heap tab.
#[derive(Debug, Default)]
pub struct HeapView {
    /// Whether the difference to the previous walk is shown.
    pub difference: bool,
    /// Whether, of two compared files, the one that was opened first is the earlier one.
    pub swapped: bool,
    /// Whether the paths of the selected type are shown even if they take space from the list.
    pub open: bool,
}

/// Minimum width of a list with the modules, which leaves at least 40 columns for names of types. Beside a narrower list, the details name the module.
const MIN_WIDTH_WITH_MODULE: u16 = 104;

/// A type with its retained size and paths.
type Row<'a> = (&'a HeapType, Option<&'a RetainedType>);

pub(super) const TAB: Descriptor = Descriptor {
    titles: ["Heap"; 3],
    is_shown: |of| of != RowKind::File(FileKind::Trace),
    context: |_| Context::Heap,
    actions: ACTIONS,
    shows: Shows::List(view),
};

const ACTIONS: &[Entry] = &[
    details(
        Action::Open,
        &[ENTER],
        "paths",
        "Show or hide what keeps the type alive.",
        places::HEAP,
        Do(|state| state.views.heap.open ^= true),
    )
    .hint(84)
    .when(status::walked_heap),
    details(
        Action::Shape,
        &[char('f')],
        "difference",
        "Switch between the last walk and its difference to the one before.",
        places::HEAP,
        Do(|state| toggle(state, |heap| &mut heap.difference)),
    )
    .hint(83)
    .when(status::walked_twice)
    .label_now(|state| if state.views.heap.difference { "histogram" } else { "difference" }),
    details(
        Action::Swap,
        &[char('X')],
        "swap",
        "Swap before and after.",
        places::HEAP,
        Do(|state| toggle(state, |heap| &mut heap.swapped)),
    )
    .hint(82)
    .when(compared),
    details(
        Action::WriteHeap,
        &[char('o')],
        "write file",
        "Write the objects of the last walk to a .gcdump file.",
        places::HEAP,
        Emit(update::heap::file_form),
    )
    .hint(82)
    .when(status::write_heap),
];

/// Changes what is listed.
fn toggle(state: &mut State, option: fn(&mut HeapView) -> &mut bool) {
    *option(&mut state.views.heap) ^= true;
    state.views.select_first(Tab::Heap);
}

/// Requires the difference between two files.
fn compared(state: &State) -> Status {
    let before = state.selected_heap().and_then(|heap| heap.before.as_ref());
    ready_if(state.views.heap.difference && before.is_some_and(|before| before.file.is_some()))
}

pub(super) fn view(state: &State) -> View<'_> {
    let heap = state.selected_heap();
    let view = match heap.map(|heap| (&heap.before, &heap.last)) {
        Some((Some(before), Some(last))) if state.views.heap.difference => difference(state, before, last),
        Some((_, Some(last))) => histogram(state, &last.found),
        _ => View::without_rows(""),
    };
    View { heading: Some(vec![heading(state, heap)]), empty: empty(state, heap), ..view }
}

fn heading(state: &State, heap: Option<&ProcessHeap>) -> Line {
    if let Some(file) = state.open_file() {
        let text = match heap.and_then(|heap| heap.last.as_ref()) {
            None if file.progress.is_some() => "Reading the file …".to_owned(),
            None => String::new(),
            Some(last) => format!("file written {}, read in {:.1} s", state.recorded_at(&file.facts), last.found.took.as_secs_f64()),
        };
        return vec![(text, Role::Dim)];
    }
    let dim = |text: String| (text, Role::Dim);
    let key = (format!("   {}", state.key(Action::WalkHeap)), Role::Accent);
    match heap {
        Some(ProcessHeap { walking: Some(walking), .. }) => {
            let so_far = format!("{}, {}", Counted(walking.objects, "object"), Bytes(walking.bytes));
            vec![("Walking the heap … ".to_owned(), Role::Accent), (so_far, Role::Strong), key, dim(" cancels".to_owned())]
        }
        Some(ProcessHeap { last: Some(last), failed, .. }) => {
            let took = last.found.took.as_secs_f64();
            let mut line = vec![dim(format!("walked at {} in {took:.1} s", last.at.clock())), key, dim(" walks it again".to_owned())];
            line.extend(failed.as_ref().map(|why| (format!("   {why}"), Role::Warning)));
            line
        }
        _ => Vec::new(),
    }
}

/// Returns the text shown instead of an empty list.
fn empty(state: &State, heap: Option<&ProcessHeap>) -> (String, Role) {
    match (heap, Action::WalkHeap.status(state)) {
        (Some(ProcessHeap { walking: Some(_), last: None, .. }), _) => (String::new(), Role::Dim),
        (Some(ProcessHeap { last: Some(_), before: Some(_), .. }), _) if state.views.heap.difference => {
            let is_filtered = !state.views.filter(Tab::Heap).is_empty();
            let text = if is_filtered { "No type that changed matches the filter." } else { "No type changed between the two heaps." };
            (text.to_owned(), Role::Dim)
        }
        (Some(ProcessHeap { last: Some(_), .. }), _) => ("No type matches the filter.".to_owned(), Role::Dim),
        (Some(ProcessHeap { failed: Some(why), .. }), _) => (why.to_string(), Role::Warning),
        (_, Status::Refused(reason)) => (reason, Role::Warning),
        _ => {
            let key = state.key(Action::WalkHeap);
            (format!("{key}: walk the heap. A full GC pauses the process while every object is reported."), Role::Text)
        }
    }
}

/// Shows the totals of a walk, and problems with them.
fn head(found: &WalkedHeap) -> Vec<Head> {
    let heap = &found.heap;
    let types = heap.types.len() as u64 + heap.others.0;
    let figures = vec![
        Figure::new("heap", Bytes(heap.bytes), Role::Bytes),
        Figure::new("objects", Count(heap.objects), Role::Strong),
        Figure::new("references", Count(heap.references), Role::Text),
        Figure::new("types", Count(types), Role::Text),
    ];
    let interrupted = (!heap.is_finished).then(|| "the heap walk was interrupted: the figures are incomplete".to_owned());
    let problems = heap.problems.iter().map(ToString::to_string).chain(interrupted).chain(found.trouble.as_ref().map(ToString::to_string));
    let pending = PendingAsync::of(&heap.types).describe().map(|text| Head::text(text, Role::Text));
    let problems = problems.map(|problem| Head::text(problem, Role::Warning));
    std::iter::once(Head::Figures(figures)).chain(pending).chain(problems).collect()
}

fn id(name: &str, module: &str) -> String {
    format!("{name}\n{module}")
}

fn name(name: &str) -> Cell {
    if name.is_empty() { Cell::new("(unknown type)", Role::Dim) } else { Cell::new(name, Role::Text) }
}

fn histogram<'a>(state: &'a State, found: &'a WalkedHeap) -> View<'a> {
    let heap = &found.heap;
    let all = heap.bytes.max(1) as f64;
    let TabList { list, cursor, selected } = Table::new(rows(found).collect(), |(named, _): &Row<'_>| id(&named.name, &named.module))
        .column("BYTES", 8, Fit::Right, |(named, _)| Cell::new(Bytes(named.bytes), Role::Bytes))
        .column("SHARE", 6, Fit::Right, move |(named, _)| Cell::new(Percent(named.bytes as f64 / all), Role::Text))
        .column("OBJECTS", 8, Fit::Right, |(named, _)| Cell::new(Count(named.objects), Role::Strong))
        .column("RETAINED", 8, Fit::Right, |(_, of)| Cell::known(of.map(|of| Bytes(of.bytes)), Role::Bytes))
        .column("TYPE", 0, Fit::Name, |(named, _)| name(&named.name))
        .column("MODULE", 24, Fit::Left, |(named, _)| Cell::new(&named.module, Role::Dim))
        .growing_to(48)
        .in_lists_from(MIN_WIDTH_WITH_MODULE)
        .place(state, Tab::Heap);
    View {
        head: head(found),
        side: selected.map(|row| side(state, found, row)),
        copy: selected.map(|(named, _)| ("type", named.name.clone())),
        ..View::new(list, cursor, "")
    }
}

fn rows(found: &WalkedHeap) -> impl Iterator<Item = Row<'_>> {
    let of = |at: usize| found.retention.as_ref().and_then(|retention| retention.types.get(at)?.as_ref());
    found.heap.types.iter().enumerate().map(move |(at, named)| (named, of(at)))
}

/// Lists the changes from one walk to the next.
fn difference<'a>(state: &'a State, before: &'a HeapWalk, last: &'a HeapWalk) -> View<'a> {
    let is_swapped = state.views.heap.swapped && before.file.is_some();
    let (old, new) = if is_swapped { (last, before) } else { (before, last) };
    let (old, new) = (&old.found.heap, &new.found.heap);
    let amount = |amount: HeapAmount| match amount {
        HeapAmount::Known { bytes, .. } => Cell::new(Bytes(bytes), Role::Bytes),
        HeapAmount::AtMost(bytes) => Cell::Number(bytes as f64, format!("≤ {}", Bytes(bytes)).into(), Role::Dim),
    };
    let TabList { list, cursor, selected } = Table::new(new.changes_since(old), |change: &HeapChange<'_>| id(change.name, change.module))
        .column("CHANGE", 9, Fit::Right, |change| changed(change.bytes(), |bytes| Bytes(bytes).to_string()))
        .column("BEFORE", 9, Fit::Right, move |change| amount(change.before))
        .column("AFTER", 9, Fit::Right, move |change| amount(change.after))
        .column("OBJECTS", 8, Fit::Right, |change| {
            change.objects().map_or(Cell::EMPTY, |objects| changed(objects, |count| Count(count).to_string()))
        })
        .column("TYPE", 0, Fit::Name, |change| name(change.name))
        .column("MODULE", 24, Fit::Left, |change| Cell::new(change.module, Role::Dim))
        .growing_to(48)
        .in_lists_from(MIN_WIDTH_WITH_MODULE)
        .place(state, Tab::Heap);
    let between = last.at.elapsed.saturating_sub(before.at.elapsed);
    let figure = |label, old: u64, new: u64, text: fn(u64) -> String| {
        let (change, role) = signed(growth(old, new), text);
        Figure::new(label, format!("{} → {} ({change})", text(old), text(new)), role)
    };
    let figures = vec![
        match &before.file {
            Some(file) => Figure::new(if is_swapped { "after" } else { "before" }, file, Role::Text),
            None => Figure::new("after", Stopwatch(between), Role::Text),
        },
        figure("heap", old.bytes, new.bytes, |bytes| Bytes(bytes).to_string()),
        figure("objects", old.objects, new.objects, |count| Count(count).to_string()),
    ];
    let row = selected
        .as_ref()
        .and_then(|change| rows(&last.found).find(|(named, _)| named.name == change.name && named.module == change.module));
    View {
        head: vec![Head::Figures(figures)],
        side: row.map(|row| side(state, &last.found, row)),
        copy: selected.map(|change| ("type", change.name.to_owned())),
        ..View::new(list, cursor, "")
    }
}

/// Formats a change with its sign, and returns its role: growth is highlighted.
fn signed(change: i64, text: impl Fn(u64) -> String) -> (String, Role) {
    let amount = text(change.unsigned_abs());
    match change {
        0 => (amount, Role::Dim),
        1.. => (format!("+{amount}"), Role::Warning),
        _ => (format!("-{amount}"), Role::Good),
    }
}

fn changed(change: i64, text: impl Fn(u64) -> String) -> Cell {
    let (text, role) = signed(change, text);
    Cell::Number(change as f64, text.into(), role)
}

/// Shows the paths from roots to the objects of a type, and its retained size.
fn side<'a>(state: &State, found: &WalkedHeap, (named, of): Row<'_>) -> Side<'a> {
    let dim = |text: String| (text, Role::Dim);
    let shown = |name: &str| if name.is_empty() { "(unknown type)".to_owned() } else { name.to_owned() };
    let module = if named.module.is_empty() { String::new() } else { format!("   {}", named.module) };
    let mut text: Vec<Line> = vec![vec![(shown(&named.name), Role::Strong), dim(module)]];
    match of {
        Some(of) => {
            let retained = format!("at least {} would be freed with its {}", Bytes(of.bytes), Counted(named.objects, "object"));
            text.push(vec![(retained, Role::Text)]);
            for path in &of.paths {
                let reached = format!("   {} in {}", Bytes(path.bytes), Counted(path.objects, "object"));
                text.push(vec![dim("held by ".to_owned()), (path.root.clone(), Role::Accent), dim(reached)]);
                text.extend(path.steps.iter().map(|step| match step {
                    PathStep::Objects { name, count: 1 } => vec![dim("  → ".to_owned()), (shown(name), Role::Text)],
                    PathStep::Objects { name, count } => {
                        vec![dim("  → ".to_owned()), (shown(name), Role::Text), dim(format!("   {} in a row", Count(u64::from(*count))))]
                    }
                    PathStep::Omitted(count) => vec![dim(format!("  → … {}", Counted(u64::from(*count), "object")))],
                }));
            }
            if of.paths.is_empty() {
                text.push(vec![dim("No known root leads to any of them.".to_owned())]);
            }
        }
        None => {
            let why = match (&found.retention, found.heap.has_all_references()) {
                (Some(_), _) => "its objects were not distinguished from others",
                (None, false) => "parts of the heap walk are missing",
                (None, true) => "there are too many objects",
            };
            text.push(vec![dim(format!("Paths from roots and retained size are not known: {why}."))]);
        }
    }
    Side { below: state.views.heap.open, thirds: 2, wide: 120, ..Side::text(text) }
}
