//! Requests and other operations that start and stop: DNS, TLS, sockets, commands to a database.

use super::cell::Cell;
use super::list::{Fit, Placed, Table};
use super::look::Look;
use super::view::{Figure, Head, Role, Side, View};
use crate::analysis::{ActivitySubject, OperationSnapshot, Outcome};
use crate::app::pane::Tab;
use crate::app::source::Source;
use crate::model::{Count, CountRate, Nanoseconds};

pub(super) fn view(look: Look<'_>) -> View<'_> {
    let activities = &look.analysis.snapshot.activities;
    let mut operations: Vec<&OperationSnapshot> = activities.operations.iter().collect();
    let time = |operation: &OperationSnapshot| operation.mean_ns.unwrap_or(0.0) * operation.ended as f64;
    operations.sort_by(|a, b| time(b).total_cmp(&time(a)).then(b.started.cmp(&a.started)));

    let (failed, running) =
        operations.iter().fold((0, 0), |(failed, running), operation| (failed + operation.failed, running + operation.running));
    let mut figures = Vec::new();
    // What was not recorded is not shown as zero.
    if !activities.operations.is_empty() {
        figures.push(Figure::new("requests", Count(activities.requests()), Role::Strong));
        figures.push(Figure::new("in progress", running, if running > 0 { Role::Accent } else { Role::Text }));
    }
    if failed > 0 {
        figures.push(Figure::new("failed", Count(failed), Role::Bad));
    }

    let mut head = vec![Head::Figures(figures)];
    if let Some(operation) = operations.iter().find(|operation| operation.lacks_status()) {
        let provider = &operation.provider;
        let text =
            format!("Requests served, by {provider}: its events have no status, and those that ended with an exception count as failed.");
        head.push(Head::text(text, Role::Dim));
    }

    // Several providers publish requests, and there is not always room for their column.
    let shared: Vec<&str> = operations.iter().map(|operation| operation.name.as_str()).collect();
    let is_shared = move |name: &str| shared.iter().filter(|other| **other == name).count() > 1;
    let duration = |quantile: usize| {
        move |operation: &&OperationSnapshot| Cell::known(operation.quantiles_ns.map(|all| Nanoseconds(all[quantile])), Role::Text)
    };
    let Placed { list, cursor, selected } = Table::new(operations, |operation| format!("{} {}", operation.provider, operation.name))
        .column("OPERATION", 0, Fit::Left, move |operation| {
            let short = operation.provider.rsplit(['.', '-']).next().unwrap_or_default();
            let name = if is_shared(&operation.name) { format!("{} ({short})", operation.name) } else { operation.name.clone() };
            Cell::new(name, Role::Text)
        })
        .column("RATE", 8, Fit::Right, move |operation| Cell::new(CountRate(look.rate(operation.started, operation.rate)), Role::Events))
        .column("STARTED", 7, Fit::Right, |operation| Cell::new(Count(operation.started), Role::Strong))
        .column_if(failed > 0, "FAILED", 6, Fit::Right, |operation| match operation.failed {
            0 => Cell::EMPTY,
            failed => Cell::new(Count(failed), Role::Bad),
        })
        .column("NOW", 4, Fit::Right, |operation| {
            Cell::new(operation.running, if operation.running > 0 { Role::Accent } else { Role::Dim })
        })
        .column("P50", 7, Fit::Right, duration(0))
        .column("P95", 7, Fit::Right, duration(1))
        .column("MAX", 7, Fit::Right, |operation| {
            Cell::known(operation.quantiles_ns.map(|_| Nanoseconds(operation.longest_ns)), Role::Strong)
        })
        .column("PROVIDER", 30, Fit::Left, |operation| Cell::new(&operation.provider, Role::Dim))
        .place(look.state, Tab::Http);

    View {
        head,
        empty: look.empty(activities.operations.is_empty(), Source::Activities, "No operation matches the filter."),
        side: selected.map(subjects),
        copy: selected.map(|operation| ("operation", operation.name.clone())),
        ..View::new(list, cursor, "")
    }
}

/// What the requests of an operation were about: URLs, hosts, statements.
fn subjects(operation: &OperationSnapshot) -> Side<'_> {
    if operation.subjects.is_empty() {
        let text = "Durations need activity ids: profiles http and database record them.";
        return Side::text(vec![vec![(text.to_owned(), Role::Dim)]]);
    }
    let has_status = operation.subjects.iter().any(|subject| subject.outcome != Outcome::Unknown);
    let layer = operation.layer;
    let list = Table::new(operation.subjects.iter().collect(), |subject: &&ActivitySubject| subject.text.clone())
        .column("REQUEST", 0, Fit::Left, |subject| {
            let text = if subject.text.is_empty() { "(not in its events)" } else { &subject.text };
            Cell::new(text, Role::Text)
        })
        .column_if(has_status, "STATUS", 6, Fit::Right, move |subject| {
            let role = if layer.is_failure(subject.outcome) { Role::Bad } else { Role::Text };
            match subject.outcome {
                Outcome::Unknown => Cell::EMPTY,
                Outcome::Status(status) => Cell::new(status, role),
                Outcome::Failed => Cell::new("failed", role),
            }
        })
        .column("COUNT", 6, Fit::Right, |subject| Cell::new(Count(subject.count), Role::Strong))
        .column("TOTAL", 7, Fit::Right, |subject| Cell::new(Nanoseconds(subject.total_ns), Role::Events))
        .column("MEAN", 7, Fit::Right, |subject| Cell::new(Nanoseconds(subject.total_ns / subject.count.max(1)), Role::Text))
        .column("MAX", 7, Fit::Right, |subject| Cell::new(Nanoseconds(subject.longest_ns), Role::Text));
    Side::list(list.finish())
}
