//! Possible causes of a slow process, the worst first.

use std::time::Duration;

use super::{Cell, Descriptor, Fit, Head, Line, Look, Recorded, Role, Shows, Side, Sign, TabList, Table, View};
use crate::app::action::Run::Do;
use crate::app::action::{Action, Context, ENTER, Entry, details, places, recorded};
use crate::app::{RowKind, State, Tab};
use crate::diagnosis::{ALSO, Cause, Evidence, Slowdown, slowdowns, verdict};
use crate::ipc::RuntimeVersion;
use crate::model::{Percent, Stopwatch};

/// Before this, a burst or the start of the recording can look like a cause.
const MIN_DURATION: Duration = Duration::from_secs(10);

pub(super) const TAB: Descriptor = Descriptor {
    context: |_| Context::Slowdown,
    actions: ACTIONS,
    ..Descriptor::new(["Slow?", "Slow?", "Why"], Shows::Recording(Recorded { view, sources: &[], live: None }))
};

const ACTIONS: &[Entry] =
    &[details(Action::Open, &[ENTER], "open", "Open the tab of the selected cause.", places::SLOWDOWN, Do(State::open_cause))
        .hint(84)
        .when(recorded)];

pub(super) fn view(look: Look<'_>) -> View<'_> {
    let (state, recording) = (look.state, &look.tracked.value);
    let all = causes(look);
    let is_provisional = recording.elapsed < MIN_DURATION && look.tracked.is_stoppable();
    let (words, worst) = verdict(&all);
    let mut head: Line = match worst.first() {
        worst if is_provisional => {
            let so_far = format!("Provisional until {}: ", Stopwatch(MIN_DURATION));
            let worst = worst.filter(|worst| worst.is_problem()).map_or("no cause stands out", |worst| worst.cause.title());
            vec![(so_far, Role::Dim), (worst.to_owned(), Role::Text)]
        }
        Some(first) => {
            let role = if first.is_problem() { Role::Bad } else { Role::Warning };
            let mut line = vec![(words.to_owned(), Role::Text), (first.cause.title().to_owned(), role)];
            line.extend(worst[1..].iter().flat_map(|other| [(ALSO.to_owned(), Role::Text), (other.cause.title().to_owned(), role)]));
            line
        }
        None => {
            let is_measured = all.iter().any(|slowdown| slowdown.severity.is_some());
            vec![(words.to_owned(), if is_measured { Role::Good } else { Role::Dim })]
        }
    };
    if let Some(limit) = look.tracked.limit.filter(|_| look.tracked.is_stoppable()) {
        head.push((format!("   stops at {}", Stopwatch(limit)), Role::Dim));
    }
    if recording.dropped + recording.unanalyzed > 0 {
        head.push(("   events are missing: figures are too low".to_owned(), Role::Warning));
    }
    let of = state.row_kind();
    let TabList { list, cursor, selected } = placed(look, all);
    let side = selected.as_ref().map(|slowdown| {
        let role = if slowdown.is_problem() { Role::Strong } else { Role::Text };
        let advice = format!("{}: tab {}", key(slowdown, of), tab(slowdown.cause).titles()[0]);
        Side::footer(vec![vec![(slowdown.text.clone(), role)], vec![(advice, Role::Dim)]])
    });
    View {
        head: vec![Head::Text(head)],
        side,
        copy: selected.map(|slowdown| ("cause", slowdown.text)),
        ..View::new(list, cursor, "No cause matches the filter.")
    }
}

fn placed(look: Look<'_>, causes: Vec<Slowdown>) -> TabList<'_, Slowdown> {
    let of = look.state.row_kind();
    Table::new(causes, |slowdown: &Slowdown| slowdown.cause.title().to_owned())
        .column("", 1, Fit::Left, |slowdown| match slowdown.severity {
            Some(_) if slowdown.is_problem() => Cell::Sign(Sign::Trouble, Role::Bad),
            Some(_) => Cell::Sign(Sign::Yes, Role::Good),
            None => Cell::EMPTY,
        })
        .column("CAUSE", 15, Fit::Left, |slowdown| {
            let role = if slowdown.is_problem() { Role::Strong } else { Role::Text };
            Cell::new(slowdown.cause.title(), if slowdown.severity.is_some() { role } else { Role::Dim })
        })
        .column("SHARE", 6, Fit::Right, |slowdown| Cell::known(slowdown.share.map(Percent), Role::Strong))
        .column("", 10, Fit::Left, |slowdown| match slowdown.share {
            Some(share) => Cell::Meter(vec![(share.min(1.0), if slowdown.is_problem() { Role::Bad } else { Role::Events })]),
            None => Cell::EMPTY,
        })
        .column("KEY", 5, Fit::Left, move |slowdown| Cell::new(key(slowdown, of), Role::Accent))
        .column("FOUND", 0, Fit::Left, |slowdown| {
            Cell::new(&slowdown.text, if slowdown.severity.is_some() { Role::Text } else { Role::Dim })
        })
        .place(look.state, Tab::Slowdown)
}

fn tab(cause: Cause) -> Tab {
    match cause {
        Cause::Cpu | Cause::Logging | Cause::Waiting => Tab::Methods,
        Cause::Gc => Tab::Gc,
        Cause::Jit => Tab::Jit,
        Cause::CpuWait | Cause::Locks | Cause::ThreadPool => Tab::Threads,
        Cause::Exceptions => Tab::Exceptions,
        Cause::Http => Tab::Http,
    }
}

/// Returns the key for the tab of a cause; tabs without a digit are opened with Enter on the selected cause.
fn key(slowdown: &Slowdown, of: RowKind) -> &'static str {
    match tab(slowdown.cause).key(of) {
        "Tab" => "Enter",
        digit => digit,
    }
}

fn causes(look: Look<'_>) -> Vec<Slowdown> {
    let recording = &look.tracked.value;
    let process = look.state.selected().map(|row| &row.process);
    slowdowns(&Evidence {
        analysis: look.analysis,
        threads: &recording.threads,
        elapsed: recording.elapsed,
        recorded: &recording.what,
        runtime: process.and_then(|process| process.runtime.as_ref()).map(RuntimeVersion::major),
        native_aot: process.is_some_and(|process| process.native_aot),
        cpu_constraints: recording.cpu_constraints,
        thresholds: &look.state.options.thresholds,
    })
}

impl State {
    /// Opens the tab of the selected cause.
    pub(in crate::app) fn open_cause(&mut self) {
        if let Some(slowdown) = Look::new(self).and_then(|look| placed(look, causes(look)).selected) {
            self.tab = tab(slowdown.cause);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use crate::app::Tab;
    use crate::app::tabs::view::Head;
    use crate::app::test_app::{TestApp, recording};
    use crate::model::Phase;

    #[test]
    fn cause_is_provisional_before_10_s_of_recording() {
        let mut app = TestApp::populated(120, 40);
        app.press("F");
        let mut heading = |seconds: u64| {
            let analysis = Some(crate::ui::tests::analysis::scripted());
            let elapsed = Duration::from_secs(seconds);
            app.report(crate::model::Recording { analysis, elapsed, ..recording(1, 5, Phase::Recording) });
            let view = app.state.view_of(Tab::Slowdown).unwrap();
            let Head::Text(pieces) = &view.head[0] else { panic!("no text") };
            pieces.iter().map(|(text, _)| text.as_str()).collect::<String>()
        };
        assert!(heading(3).starts_with("Provisional until 0:10: GC and heap"), "{}", heading(3));
        assert!(heading(10).starts_with("Slow because of: GC and heap"), "{}", heading(10));
    }
}
