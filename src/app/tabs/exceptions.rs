//! Exceptions by type, with the latest of the selected type and its stack, or throw sites as a call tree.

use super::{
    Cell, Descriptor, Figure, Fit, Head, Line, Live, Look, Recorded, Role, Shows, Side, TabList, Table, View, at, live, type_tree,
};
use crate::analysis::{ExceptionType, ThrownException};
use crate::app::action::Run::Do;
use crate::app::action::{Action, Context, Entry, char, details, places, ready_if};
use crate::app::type_tree::TypeTree;
use crate::app::{State, Tab};
use crate::diagnosis::Source;
use crate::model::{Count, CountRate};

pub(super) const TAB: Descriptor = Descriptor {
    context: |state| match state.throw_tree() {
        Some(_) => Context::ThrowTree,
        None => Context::Exceptions,
    },
    actions: ACTIONS,
    ..Descriptor::new(
        ["Exceptions", "Exc", "Exc"],
        Shows::Recording(Recorded {
            view,
            sources: &[Source::Exceptions],
            live: Some(Live {
                view: live::exceptions,
                needs_counters: true,
                graphs: &["Exceptions"],
                recording_adds: "types, messages and stacks",
            }),
        }),
    )
};

const ACTIONS: &[Entry] = &[details(
    Action::Shape,
    &[char('f')],
    "call tree",
    "Switch between types, throw sites of the selected type, and of all types.",
    places::EXCEPTIONS,
    Do(State::next_exception_tree),
)
.hint(83)
.when(|state| ready_if(state.analysis().is_some_and(|analysis| !analysis.snapshot.exceptions.stacks.is_empty())))
.label_now(|state| match state.throw_tree() {
    None => "call tree",
    Some(TypeTree::Type(_)) => "all types",
    Some(TypeTree::All) => "types",
})];

pub(super) fn view(look: Look<'_>) -> View<'_> {
    let exceptions = &look.analysis.snapshot.exceptions;
    let mut figures = Vec::new();
    if exceptions.thrown > 0 {
        figures.push(Figure::new("thrown", Count(exceptions.thrown), Role::Strong));
        figures.push(Figure::new("rate", CountRate(look.rate(exceptions.thrown, exceptions.rate)), Role::Strong));
    }
    figures.extend(Figure::if_any("rethrown", exceptions.rethrown, Role::Text));
    figures.extend(Figure::if_any("other types", exceptions.others, Role::Text));
    if let Some(stacks) = look.state.type_stacks(Tab::Exceptions) {
        let what = match &look.state.views.of(Tab::Exceptions).type_tree {
            Some(TypeTree::Type(name)) => format!("throw sites of {name}"),
            Some(TypeTree::All) | None => "throw sites of all exceptions".to_owned(),
        };
        let head = vec![Head::Figures(figures), Head::text(what, Role::Dim)];
        return type_tree::view(look, Tab::Exceptions, &stacks, |count, role| Cell::new(Count(count), role), head);
    }
    let TabList { list, cursor, selected } = Table::new(exceptions.types.iter().collect(), |kind: &&ExceptionType| kind.name.clone())
        .column("COUNT", 6, Fit::Right, |kind| Cell::new(Count(kind.count), Role::Strong))
        .column("RATE", 7, Fit::Right, move |kind| {
            let rate = look.rate(kind.count, kind.rate);
            Cell::new(CountRate(rate), if rate >= 0.1 { Role::Events } else { Role::Dim })
        })
        .column("TYPE", 0, Fit::Name, |kind| Cell::new(&kind.name, Role::Text))
        .column("LAST", 7, Fit::Right, |kind| Cell::new(at(kind.last.at), Role::Dim))
        .place(look.state, Tab::Exceptions);
    let latest = selected.map(|kind| &kind.last);
    View {
        head: vec![Head::Figures(figures)],
        empty: look.empty(exceptions.types.is_empty(), Source::Exceptions, "No exception type matches the filter."),
        side: latest.map(|latest| side(look, latest, &exceptions.recent)),
        copy: latest.map(|latest| ("exception with its stack", to_text(latest))),
        ..View::new(list, cursor, "")
    }
}

/// Shows the latest exception of a type with its stack, then earlier ones.
fn side<'a>(look: Look<'a>, latest: &'a ThrownException, recent: &'a [ThrownException]) -> Side<'a> {
    let ThrownException { at: when, thread, hresult, rethrown, .. } = *latest;
    let again = if rethrown { "   rethrown" } else { "" };
    let facts = format!("latest: at {}   thread {thread}   {hresult:#010x}{again}", at(when));
    let message = if latest.message.is_empty() { "(no message)" } else { &latest.message };
    let mut text: Vec<Line> = vec![vec![(facts, Role::Dim)], vec![(message.to_owned(), Role::Warning)]];
    text.extend(latest.frames.iter().map(|frame| look.frame(frame)));
    if latest.frames.is_empty() {
        text.push(vec![("No stack was recorded.".to_owned(), Role::Dim)]);
    }
    let earlier: Vec<_> = recent.iter().filter(|other| other.type_name == latest.type_name && *other != latest).collect();
    let earlier = (!earlier.is_empty()).then(|| {
        Table::new(earlier, |thrown: &&ThrownException| thrown.at.to_string())
            .column("EARLIER", 8, Fit::Right, |thrown| Cell::new(at(thrown.at), Role::Dim))
            .column("MESSAGE", 0, Fit::Left, |thrown| Cell::new(&thrown.message, Role::Text))
            .finish()
    });
    Side { lists: earlier.into_iter().collect(), wide: 100, ..Side::text(text) }
}

/// Formats an exception as .NET prints it.
fn to_text(thrown: &ThrownException) -> String {
    let head = format!("{}: {}", thrown.type_name, thrown.message);
    [head].into_iter().chain(thrown.frames.clone()).collect::<Vec<_>>().join("\n   at ")
}
