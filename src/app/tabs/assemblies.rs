//! Loaded assemblies, and assemblies that were searched for and not found.

use super::{Cell, Descriptor, Figure, Fit, Head, Live, Look, Recorded, Role, Shows, Side, TabList, Table, View, at, live};
use crate::analysis::{Assembly, CountersSnapshot};
use crate::app::action::Action;
use crate::app::{State, Tab, text};
use crate::diagnosis::Source;
use crate::model::{Count, SafeText};
use crate::sorting::CompactSort;

pub(super) const TAB: Descriptor =
    Descriptor::new(["Assemblies", "Asm", "Asm"], Shows::Recording(Recorded { view, sources: &[Source::Assemblies], live: Some(LIVE) }));

/// The directory gets the rest of the line and needs some space.
const MAX_NAME_WIDTH: u16 = 70;

const LIVE: Live = Live { view: mapped, needs_counters: false, graphs: &[], recording_adds: "versions, and what is loaded or not found" };

/// Lists the assemblies mapped by a process.
fn mapped<'a>(state: &'a State, _: Option<&'a CountersSnapshot>) -> View<'a> {
    let paths = state.details.assemblies.paths.as_deref();
    let figures = paths.filter(|paths| !paths.is_empty()).map(|paths| Figure::new("mapped", Count(paths.len() as u64), Role::Strong));
    let empty = match paths {
        None => "Listing assemblies …",
        Some([]) => "No mapped assembly found: those of a single-file program are not mapped, and only Linux shows them.",
        Some(_) => "Nothing matches the filter.",
    };
    let split = |path: &'a SafeText| path.rsplit_once('/').unwrap_or(("", path));
    let longest = paths.unwrap_or_default().iter().map(|path| text::width(split(path).1)).max().unwrap_or_default();
    let TabList { list, cursor, selected } = Table::new(paths.unwrap_or_default().iter().collect(), |path: &&SafeText| path.to_string())
        .column("ASSEMBLY", longest.clamp(20, MAX_NAME_WIDTH), Fit::Left, move |path| Cell::new(split(path).1, Role::Text))
        .column("FOLDER", 0, Fit::Left, move |path| Cell::new(split(path).0, Role::Dim))
        .place(state, Tab::Assemblies);
    let copy = selected.map(|path| ("path", path.to_string()));
    View { head: vec![Head::Figures(figures.into_iter().collect())], copy, ..View::new(list, cursor, empty) }
}

pub(super) fn view(look: Look<'_>) -> View<'_> {
    let snapshot = &look.analysis.snapshot.assemblies;
    let empty = look.empty(snapshot.loaded.is_empty(), Source::Assemblies, "No assembly matches the filter.");
    // Assemblies loaded before the recording are reported at its end, in the rundown.
    let is_awaited = snapshot.loaded.is_empty() && !look.has_ended();
    if is_awaited && look.state.details.assemblies.paths.as_ref().is_some_and(|paths| !paths.is_empty()) {
        let reason = match empty {
            (_, Role::Dim) => (format!("Versions are known once the recording stops ({}).", look.state.key(Action::Trace)), Role::Dim),
            missing => missing,
        };
        return live::below(look, &LIVE, None, reason);
    }
    // Assemblies loaded during the recording first, the latest on top.
    let mut assemblies: Vec<&Assembly> = snapshot.loaded.iter().collect();
    assemblies.compact_sort_by_key(|assembly| std::cmp::Reverse(assembly.at));

    let is_known = !snapshot.loaded.is_empty() || snapshot.searches > 0;
    let mut figures = Vec::new();
    // The number of assemblies loaded before is known only after the rundown.
    if is_known && (look.has_ended() || snapshot.loaded.iter().any(|assembly| assembly.at.is_none())) {
        figures.push(Figure::new("loaded", Count(snapshot.loaded.len() as u64), Role::Strong));
    }
    if is_known {
        figures.push(Figure::new("new", Count(snapshot.loads), Role::Text));
    }
    figures.extend(Figure::if_any("unloaded", snapshot.unloads, Role::Text));
    if snapshot.searches > 0 {
        figures.push(Figure::new("searches", Count(snapshot.searches), Role::Text));
        figures.push(Figure::new("failed", Count(snapshot.failures), if snapshot.failures > 0 { Role::Warning } else { Role::Text }));
    }

    let TabList { list, cursor, selected } = Table::new(assemblies, |assembly| assembly.full_name.clone())
        .column("LOADED", 7, Fit::Right, |assembly| match assembly.at {
            Some(moment) => Cell::new(at(moment), Role::Text),
            None => Cell::new("before", Role::Dim),
        })
        .column("ASSEMBLY", 0, Fit::Left, |assembly| Cell::new(parts(assembly).0, Role::Text))
        .column("VERSION", 14, Fit::Left, |assembly| Cell::new(parts(assembly).1, Role::Dim))
        .column("", 8, Fit::Left, |assembly| Cell::new(if assembly.is_dynamic { "dynamic" } else { "" }, Role::Dim))
        .place(look.state, Tab::Assemblies);
    let missing = Table::new(snapshot.missing.iter().collect(), |missing: &&crate::analysis::MissingAssembly| missing.name.clone())
        .column("AT", 7, Fit::Right, |missing| Cell::new(at(missing.at), Role::Dim))
        .column("NOT FOUND", 0, Fit::Left, |missing| Cell::new(&missing.name, Role::Warning))
        .column("REQUESTED BY", 40, Fit::Left, |missing| Cell::new(&missing.requested_by, Role::Dim))
        .finish();

    View {
        head: vec![Head::Figures(figures)],
        empty: if is_awaited && empty.1 == Role::Dim {
            let key = look.state.key(Action::Trace);
            (format!("Assemblies that were loaded before are listed once the recording stops ({key})."), Role::Dim)
        } else {
            empty
        },
        side: (!snapshot.missing.is_empty()).then_some(Side::list(missing)),
        copy: selected.map(|assembly| ("assembly", assembly.full_name.clone())),
        ..View::new(list, cursor, "")
    }
}

/// Splits the full name of an assembly into name and version.
fn parts(assembly: &Assembly) -> (&str, &str) {
    let (name, rest) = assembly.full_name.split_once(", ").unwrap_or((&assembly.full_name, ""));
    (name, rest.split(", ").find_map(|part| part.strip_prefix("Version=")).unwrap_or_default())
}
