//! HTTP requests by method and route, and other start-stop operations: DNS, TLS, sockets, database commands.

use super::{
    Cell, Descriptor, Figure, Fit, Head, Line, Live, Look, Recorded, Role, Rows, Shows, Side, TabList, Table, View, live, live_http,
};
use crate::analysis::{ActivitySnapshot, ActivitySubject, Layer, OperationSnapshot, RunningActivity};
use crate::app::Tab;
use crate::app::text::width;
use crate::diagnosis::Source;
use crate::model::{Count, CountRate, Nanoseconds, Percent};
use crate::sorting::CompactSort;

/// Requests with the same method and route, those of all routes beyond the number that is tracked, or operations other than requests.
#[derive(Clone)]
struct Row<'a> {
    operation: &'a OperationSnapshot,
    /// `None` for other routes and operations.
    route: Option<&'a ActivitySubject>,
    name: String,
    /// Completed requests, or started activities of other operations.
    count: u64,
    failed: u64,
    rate: Option<f64>,
    quantiles_ns: Option<[u64; 3]>,
    longest_ns: Option<u64>,
    /// Current activities of an operation other than a request.
    running: Option<u64>,
}

impl<'a> Row<'a> {
    fn of_route(operation: &'a OperationSnapshot, route: &'a ActivitySubject) -> Self {
        Self {
            route: Some(route),
            name: if route.text.is_empty() { "(not in the events)".to_owned() } else { route.text.clone() },
            count: route.count,
            failed: route.failed,
            rate: Some(route.rate),
            quantiles_ns: Some(route.quantiles_ns),
            longest_ns: Some(route.longest_ns),
            running: None,
            operation,
        }
    }

    fn of_operation(operation: &'a OperationSnapshot) -> Self {
        Self {
            operation,
            route: None,
            name: operation.title(),
            count: operation.started,
            failed: operation.failed,
            rate: Some(operation.rate),
            quantiles_ns: operation.quantiles_ns,
            longest_ns: operation.quantiles_ns.map(|_| operation.longest_ns),
            running: Some(operation.running),
        }
    }

    fn of_other_routes(operation: &'a OperationSnapshot) -> Self {
        Self {
            name: "(other routes)".to_owned(),
            count: operation.others.count,
            failed: operation.others.failed,
            rate: None,
            quantiles_ns: None,
            longest_ns: None,
            running: None,
            ..Self::of_operation(operation)
        }
    }

    fn failures(&self) -> String {
        self.route.map(|route| route.failures(self.operation.layer)).unwrap_or_default()
    }
}

/// Returns the total duration of the completed activities, in nanoseconds.
fn total_ns(operation: &OperationSnapshot) -> f64 {
    operation.mean_ns.unwrap_or(0.0) * operation.ended as f64
}

/// Lists requests by route, then other operations, those with the highest total duration first.
fn rows(activities: &ActivitySnapshot) -> Vec<Row<'_>> {
    let has_routes = |operation: &&OperationSnapshot| !operation.layer.direction().is_empty() && !operation.subjects.is_empty();
    let (requests, mut operations): (Vec<_>, Vec<_>) = activities.operations.iter().partition(has_routes);
    operations.compact_sort_by(|a, b| total_ns(b).total_cmp(&total_ns(a)).then(b.started.cmp(&a.started)));
    let others = requests.into_iter().filter(|operation| operation.others.count > 0).map(Row::of_other_routes);
    let routes = activities.routes().into_iter().map(|(operation, route)| Row::of_route(operation, route));
    routes.chain(others).chain(operations.into_iter().map(Row::of_operation)).collect()
}

pub(super) const TAB: Descriptor =
    Descriptor::new(["HTTP"; 3], Shows::Recording(Recorded { view, sources: &[Source::Activities], live: Some(LIVE) }));

const LIVE: Live =
    Live { view: live_http::view, needs_counters: true, graphs: &["Requests", "p50/p95/p99"], recording_adds: "each path, requests sent" };

pub(super) fn view(look: Look<'_>) -> View<'_> {
    let activities = &look.analysis.snapshot.activities;
    if activities.operations.is_empty()
        && let Some(counters) = look.counters()
    {
        return live::below(look, &LIVE, Some(counters), look.missing(Source::Activities));
    }
    let mut figures = Vec::new();
    // Figures that were not recorded must not be shown as zero.
    if !activities.operations.is_empty() {
        figures.push(Figure::new("requests", Count(activities.requests()), Role::Strong));
    }
    for (label, layer) in [("in flight, in", Layer::Server), ("in flight, out", Layer::Client)] {
        if let Some(operation) = activities.operations.iter().find(|operation| operation.layer == layer) {
            figures.push(Figure::new(label, Count(operation.running), if operation.running > 0 { Role::Accent } else { Role::Text }));
        }
    }
    figures.extend(Figure::if_any("failed", activities.failed(), Role::Bad));
    let mut head = vec![Head::Figures(figures)];
    if let Some(operation) = activities.operations.iter().find(|operation| operation.lacks_status()) {
        let text = format!(
            "Served requests: {} has no status; only requests that ended with an exception count as failed. Profile http records it (.NET 5 and later).",
            operation.provider
        );
        head.push(Head::text(text, Role::Dim));
    }

    let rows = rows(activities);
    let quantile = |quantile: usize| move |row: &Row<'_>| Cell::known(row.quantiles_ns.map(|all| Nanoseconds(all[quantile])), Role::Text);
    // The failures of connections and lookups are not among those of requests.
    let has_failed = rows.iter().any(|row| row.failed > 0);
    let longest_failures = rows.iter().map(|row| width(&row.failures())).max().unwrap_or(0);
    let has_operations = rows.iter().any(|row| row.running.is_some());
    let TabList { list, cursor, selected } = Table::new(rows, |row| format!("{} {}", row.operation.provider, row.name))
        .column("DIR", 3, Fit::Left, |row| Cell::new(row.operation.layer.direction(), Role::Accent))
        .column("REQUEST", 0, Fit::Left, |row| Cell::new(&row.name, if row.route.is_some() { Role::Text } else { Role::Dim }))
        .column("COUNT", 7, Fit::Right, |row| Cell::new(Count(row.count), Role::Strong))
        .column("P50", 7, Fit::Right, quantile(0))
        .column("P95", 7, Fit::Right, quantile(1))
        .column("P99", 7, Fit::Right, quantile(2))
        .column_if(has_failed, "FAILED", 6, Fit::Right, |row| match row.failed {
            0 => Cell::EMPTY,
            failed => Cell::new(Count(failed), Role::Bad),
        })
        .column("RATE", 8, Fit::Right, move |row| Cell::known(row.rate.map(|rate| CountRate(look.rate(row.count, rate))), Role::Events))
        .column("MAX", 7, Fit::Right, |row| Cell::known(row.longest_ns.map(Nanoseconds), Role::Strong))
        .column_if(longest_failures > 0, "FAILURES", longest_failures.clamp(8, 16), Fit::Left, |row| Cell::new(row.failures(), Role::Bad))
        .growing_to(30)
        .column_if(has_operations, "NOW", 4, Fit::Right, |row| {
            Cell::known(row.running, if row.running > Some(0) { Role::Accent } else { Role::Dim })
        })
        .place(look.state, Tab::Http);

    View {
        head,
        empty: look.empty(activities.operations.is_empty(), Source::Activities, "No operation matches the filter."),
        side: selected.as_ref().map(|row| Side { wide: Side::WIDE_FOR_MANY_COLUMNS, ..about(look, row) }),
        copy: selected.map(|row| ("request", row.name)),
        ..View::new(list, cursor, "")
    }
}

/// Shows the outcome of a route's requests and the operation's requests in flight, or the subjects of another operation.
fn about<'a>(look: Look<'a>, row: &Row<'a>) -> Side<'a> {
    let operation = row.operation;
    let Some(route) = row.route else { return subjects(operation) };
    let statuses = route.statuses();
    let ended: Line = match statuses.is_empty() {
        true => vec![("no status recorded".to_owned(), Role::Dim)],
        false => vec![("ended with ".to_owned(), Role::Dim), (statuses, if route.failed > 0 { Role::Bad } else { Role::Good })],
    };
    let [which, all] = if operation.layer == Layer::Server { ["served", "served requests"] } else { ["sent", "sent requests"] };
    let share = Percent(route.total_ns as f64 / total_ns(operation).max(1.0));
    let mean = Nanoseconds(route.total_ns / route.count.max(1));
    let time = format!("{which}, mean {mean}, {share} of the time of all {all}, {}", operation.provider);
    let activities = &look.analysis.snapshot.activities;
    let number = activities.operations.iter().position(|other| std::ptr::eq(other, operation));
    let in_flight: Vec<_> = activities.running.iter().filter(|running| Some(running.operation) == number).collect();
    let text = vec![vec![(row.name.clone(), Role::Strong)], ended, vec![(time, Role::Text)]];
    Side { lists: (!in_flight.is_empty()).then(|| running(look, in_flight)).into_iter().collect(), ..Side::text(text) }
}

/// Lists requests in flight, the longest first.
fn running<'a>(look: Look<'a>, requests: Vec<&'a RunningActivity>) -> Rows<'a> {
    let now = look.analysis.snapshot.now;
    Table::new(requests, |request| format!("{} {}", request.since, request.subject))
        .column("FOR", 7, Fit::Right, move |request| {
            Cell::new(Nanoseconds(u64::try_from(now.saturating_sub(request.since)).unwrap_or(0)), Role::Accent)
        })
        .column("IN FLIGHT", 0, Fit::Left, |request| Cell::new(&request.subject, Role::Text))
        .finish()
}

/// Lists the subjects of an operation: hosts, statements.
fn subjects(operation: &OperationSnapshot) -> Side<'_> {
    if operation.subjects.is_empty() {
        let text = "Durations need activity ids: profiles http and database record them.";
        return Side::text(vec![vec![(text.to_owned(), Role::Dim)]]);
    }
    let list = Table::new(operation.subjects.iter().collect(), |subject: &&ActivitySubject| subject.text.clone())
        .column("ABOUT", 0, Fit::Left, |subject| {
            let text = if subject.text.is_empty() { "(not in the events)" } else { &subject.text };
            Cell::new(text, Role::Text)
        })
        .column("COUNT", 6, Fit::Right, |subject| Cell::new(Count(subject.count), Role::Strong))
        .column("TOTAL", 7, Fit::Right, |subject| Cell::new(Nanoseconds(subject.total_ns), Role::Events))
        .column("P50", 7, Fit::Right, |subject| Cell::new(Nanoseconds(subject.quantiles_ns[0]), Role::Text))
        .column("P95", 7, Fit::Right, |subject| Cell::new(Nanoseconds(subject.quantiles_ns[1]), Role::Text))
        .column("MAX", 7, Fit::Right, |subject| Cell::new(Nanoseconds(subject.longest_ns), Role::Text));
    Side::list(list.finish())
}

#[cfg(test)]
mod tests {
    use crate::analysis::{Layer, Outcome};
    use crate::app::test_app::{TestApp, recording};
    use crate::model::{Phase, Recording};
    use crate::ui::tests::analysis::scripted;
    use crate::ui::tests::screen;

    #[test]
    fn failures_take_only_the_room_that_they_need() {
        const PATH: &str = "https://stock.local/customers/{number}";
        for (outcomes, shown) in [
            (vec![(Outcome::Status(503), 5)], "https://stock.local/customers/{number} "),
            (vec![(Outcome::Status(503), 5), (Outcome::Failed, 3)], "https://stock.local/customers… "),
        ] {
            let mut analysis = (*scripted()).clone();
            let operations = &mut analysis.snapshot.activities.operations;
            let sent = operations.iter_mut().find(|operation| operation.layer == Layer::Client).unwrap();
            (sent.subjects[0].text, sent.subjects[0].outcomes, sent.subjects[0].failed) = (PATH.to_owned(), outcomes.clone(), 5);
            let mut app = TestApp::populated(120, 40);
            app.press("t⏎9⇥");
            app.report(Recording { analysis: Some(analysis.into()), ..recording(1, 42, Phase::Recording) });
            let screen = screen(&app.state);
            assert!(screen.contains(&format!("out  {shown}")) && screen.contains("503 ×5"), "{outcomes:?} {screen}");
        }
    }
}
