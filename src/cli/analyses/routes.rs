//! Requests by direction, method and route.

use std::io::Write;

use serde::Serialize;

use super::fields::{Counts, Fields, Value, write_table};
use crate::analysis::{ActivitySnapshot, ActivitySubject, OperationSnapshot};
use crate::model::{Count, Counted};

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
