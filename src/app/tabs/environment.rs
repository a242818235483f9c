//! The environment variables of the selected process.

use super::{Cell, Descriptor, Fit, Head, Role, Shows, TabList, Table, View};
use crate::app::action::Run::Do;
use crate::app::action::{Action, Context, Entry, Status, char, details, places, ready_if};
use crate::app::text::width;
use crate::app::update::panes;
use crate::app::{Answer, RowKind, State, Tab};
use crate::model::{Counted, Environment, EnvironmentSource, Variable};

/// Maximum width of names, and the width they shrink to.
const MAX_NAME_WIDTH: u16 = 40;
const MIN_NAME_WIDTH: u16 = 16;

pub(super) const TAB: Descriptor = Descriptor {
    titles: ["Environment", "Env", "Env"],
    is_shown: RowKind::is_process,
    context: |_| Context::Environment,
    actions: ACTIONS,
    shows: Shows::List(view),
};

const ACTIONS: &[Entry] =
    &[details(Action::Reveal, &[char('v')], "reveal", "Show or hide the selected secret value.", places::ENVIRONMENT, Do(panes::reveal))
        .hint(82)
        .when(|state| ready_if(state.variable().is_some_and(|(_, variable)| variable.is_secret())))
        .label_now(|state| if state.variable().is_some_and(|(index, _)| state.details.is_readable(index)) { "hide" } else { "reveal" })];

pub(super) fn view(state: &State) -> View<'_> {
    let TabList { list, cursor, .. } = placed(state);
    let variables = variables(state);
    let (all, secrets) = (variables.len(), variables.iter().filter(|variable| variable.is_secret()).count());
    let shown = if list.len() < all { format!("{} of ", list.len()) } else { String::new() };
    let mut count = format!("{shown}{:#}", Counted(all as u64, "variable"));
    if secrets > 0 {
        count.push_str(&format!(", {:#}", Counted(secrets as u64, "secret")));
    }
    if state.details.environment.get().is_some_and(|environment| environment.source == EnvironmentSource::Startup) {
        count.push_str("  ·  values at the start of the process: reading the current ones needs .NET 5");
    }
    View {
        heading: Some(Vec::new()),
        head: if all > 0 { vec![Head::text(count, Role::Dim)] } else { Vec::new() },
        empty: empty(state),
        ..View::new(list, cursor, "")
    }
}

/// Returns the text shown instead of an empty list.
fn empty(state: &State) -> (String, Role) {
    match &state.details.environment {
        Answer::Received(Environment { variables, .. }) if variables.is_empty() => ("No environment variables.".to_owned(), Role::Dim),
        Answer::Received(_) => ("No variable matches the filter.".to_owned(), Role::Dim),
        Answer::Failed(reason) => (reason.to_string(), Role::Warning),
        Answer::NotRequested | Answer::Requested(_) => match Action::Environment.status(state) {
            Status::Refused(reason) => (reason, Role::Warning),
            Status::Ready | Status::Idle => ("Reading the environment …".to_owned(), Role::Dim),
        },
    }
}

fn variables(state: &State) -> &[Variable] {
    state.details.environment.get().map(|environment| environment.variables.as_slice()).unwrap_or_default()
}

/// A masked cell cannot be matched by the filter, so a match does not reveal its value.
fn placed(state: &State) -> TabList<'_, (usize, &Variable)> {
    let variables = variables(state);
    let names = variables.iter().map(|variable| width(&variable.name)).max().unwrap_or(0).clamp(8, MAX_NAME_WIDTH);
    Table::new(variables.iter().enumerate().collect(), |(index, variable)| format!("{} {index}", variable.name))
        .column("NAME", names, Fit::Left, |(_, variable)| Cell::new(&variable.name, Role::Accent))
        .shrinking_to(MIN_NAME_WIDTH)
        .column("VALUE", 0, Fit::Left, |(index, variable)| match state.details.is_readable(*index) {
            false => Cell::Masked,
            true => Cell::new(&variable.value, if variable.is_secret() { Role::Warning } else { Role::Text }),
        })
        .place(state, Tab::Environment)
}

impl State {
    /// Returns the selected variable and its index.
    pub fn variable(&self) -> Option<(usize, &Variable)> {
        placed(self).selected
    }
}
