//! Requests by direction, method and route.

use std::io::Write;

use serde::Serialize;

use super::fields::{Counts, Fields, Value, write_table};
use crate::analysis::{ActivitySnapshot, ActivitySubject, Layer, OperationSnapshot, Outcome};
use crate::model::{Count, Counted, SafeText};

/// The part of a document about requests.
#[derive(Debug, Serialize)]
pub(in crate::cli) struct Routes {
    /// The routes with the highest total time.
    routes: Vec<Fields>,
    /// Ended requests that are in none of `routes`, by direction.
    other_routes: Vec<Others>,
}

#[derive(Debug, Serialize)]
struct Others {
    direction: &'static str,
    count: u64,
    failed: u64,
    total_ns: u64,
}

impl Routes {
    /// Lists at most `most` routes.
    pub(in crate::cli) fn new(activities: &ActivitySnapshot, most: usize) -> Self {
        let all = activities.routes();
        let (listed, more) = all.split_at(most.min(all.len()));
        let others = |operation: &OperationSnapshot| {
            let more = more.iter().filter(|(of, _)| std::ptr::eq(*of, operation)).map(|(_, route)| route);
            let others = Others {
                direction: operation.layer.direction(),
                count: operation.others.count,
                failed: operation.others.failed,
                total_ns: operation.others.total_ns,
            };
            more.fold(others, |others, route| Others {
                count: others.count + route.count,
                failed: others.failed + route.failed,
                total_ns: others.total_ns.saturating_add(route.total_ns),
                ..others
            })
        };
        let requests = activities.operations.iter().filter(|operation| !operation.layer.direction().is_empty());
        Self { routes: listed.iter().map(row).collect(), other_routes: requests.map(others).collect() }
    }

    pub(in crate::cli) fn is_empty(&self) -> bool {
        self.routes.is_empty()
    }

    pub(in crate::cli) fn write_text(&self, out: &mut dyn Write) -> std::io::Result<()> {
        write_table(out, &self.routes)?;
        for Others { direction, count, failed, .. } in self.other_routes.iter().filter(|others| others.count > 0) {
            writeln!(out, "other routes, {direction}: {}, {} failed", Counted(*count, "request"), Count(*failed))?;
        }
        Ok(())
    }
}

/// Returns a remark on served requests whose failures are not all known.
pub(in crate::cli) fn missing_status(activities: &ActivitySnapshot) -> Option<String> {
    let served = || activities.operations.iter().filter(|operation| operation.layer == Layer::Server);
    if let Some(operation) = served().find(|operation| operation.lacks_status()) {
        let provider = SafeText::new(&operation.provider);
        return Some(format!(
            "{provider} has no status of served requests: only those that ended with an exception count as failed; profile http records it (.NET 5 and later)"
        ));
    }
    let outcomes = served().flat_map(|operation| &operation.subjects).flat_map(|subject| &subject.outcomes);
    let unknown: u64 = outcomes.filter(|(outcome, _)| *outcome == Outcome::Unknown).map(|(_, count)| count).sum();
    (unknown > 0).then(|| {
        let requests = Counted(unknown, "served request");
        format!("no status of {requests:#}, not counted as failed: another session that records statuses has ended, or events were lost")
    })
}

fn row((operation, route): &(&OperationSnapshot, &ActivitySubject)) -> Fields {
    let [p50, p95, p99] = route.quantiles_ns.map(Value::Nanoseconds);
    let statuses = route.outcomes.iter().map(|(outcome, count)| (outcome.to_string(), *count)).collect();
    Fields(vec![
        ("direction", Value::text(operation.layer.direction())),
        ("count", Value::Count(route.count)),
        ("failed", Value::Count(route.failed)),
        ("p50_ns", p50),
        ("p95_ns", p95),
        ("p99_ns", p99),
        ("max_ns", Value::Nanoseconds(route.longest_ns)),
        ("total_ns", Value::Nanoseconds(route.total_ns)),
        ("request", Value::text(&route.text)),
        ("statuses", Value::Counts(Counts(statuses))),
    ])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::analysis::OtherActivities;

    /// Otherwise, requests that were not recorded as failed would look successful.
    #[test]
    fn unknown_status_of_served_requests_is_reported() {
        let served = |outcomes: &[(Outcome, u64)]| ActivitySubject {
            text: "GET /orders".to_owned(),
            count: 3,
            failed: 0,
            outcomes: outcomes.to_vec(),
            rate: 0.0,
            total_ns: 3,
            quantiles_ns: [1; 3],
            longest_ns: 1,
        };
        let remark = |layer, outcomes: &[(Outcome, u64)]| {
            let operation = OperationSnapshot {
                provider: "Microsoft.AspNetCore.Hosting".to_owned(),
                name: "Request".to_owned(),
                layer,
                started: 3,
                failed: 0,
                ended: 3,
                running: 0,
                rate: 0.0,
                mean_ns: None,
                quantiles_ns: None,
                longest_ns: 1,
                subjects: vec![served(outcomes)],
                others: OtherActivities::default(),
            };
            missing_status(&ActivitySnapshot { operations: vec![operation], running: Vec::new() })
        };
        let expected = "Microsoft.AspNetCore.Hosting has no status of served requests: ";
        let (known, unknown) = ((Outcome::Status(200), 2), (Outcome::Unknown, 1));
        assert!(remark(Layer::Server, &[unknown]).is_some_and(|remark| remark.starts_with(expected)));
        assert_eq!([remark(Layer::Server, &[known]), remark(Layer::Client, &[unknown])], [None, None]);
        let some = remark(Layer::Server, &[known, unknown]).unwrap();
        assert!(some.starts_with("no status of 1 served request, not counted as failed: "), "{some}");
    }
}
