//! Requests of a watched process, from its counters: the histogram `http.server.request.duration` of ASP.NET Core 8 and later has one
//! series per method, route and status; the counters of earlier versions have totals only.

use super::live::rate;
use super::{Cell, Figure, Fit, Head, Role, TabList, Table, View};
use crate::analysis::{CounterSnapshot, CountersSnapshot, MeterNotice, RequestDurations};
use crate::app::health::hosting_counter;
use crate::app::{State, Tab};
use crate::model::{Count, CountRate, Nanoseconds};
use crate::sorting::CompactSort;

/// Requests served with one method, route and status.
#[derive(Clone, Copy)]
struct Served<'a> {
    counter: &'a CounterSnapshot,
    method: &'a str,
    route: &'a str,
    status: &'a str,
}

impl<'a> Served<'a> {
    /// Returns `None` for other counters.
    fn of(counter: &'a CounterSnapshot) -> Option<Self> {
        if (counter.group.as_str(), counter.name.as_str()) != RequestDurations::SERVED {
            return None;
        }
        let [method, route, status] = ["http.request.method", "http.route", "http.response.status_code"].map(|key| tag(&counter.tags, key));
        Some(Self { counter, method, route, status })
    }

    fn has_failed(&self) -> bool {
        self.status.starts_with('5')
    }

    /// Formats the exception type of failed requests, if known.
    fn error(&self) -> String {
        let error = tag(&self.counter.tags, "error.type");
        if error.is_empty() || error == self.status { String::new() } else { format!(" · {error}") }
    }

    /// Returns the number of requests since the watch started.
    fn count(&self) -> u64 {
        self.counter.histogram.as_ref().map_or(0, |histogram| histogram.total_count)
    }

    /// Returns one of the quantiles 0.5, 0.95 and 0.99 of the latest interval in which requests ended.
    fn quantile_ns(&self, quantile: usize) -> Option<Nanoseconds> {
        let (_, seconds) = self.counter.histogram.as_ref()?.history.last()?;
        Some(Nanoseconds((seconds[quantile].max(0.0) * 1e9) as u64))
    }
}

/// Returns the value of a tag; empty if missing. Tags are not escaped and routes can contain commas, so a value ends where a known tag
/// begins.
fn tag<'a>(tags: &'a str, key: &str) -> &'a str {
    const GROUPS: [&str; 5] = ["http.", "url.", "network.", "error.", "aspnetcore."];
    let begins_tag = |rest: &str| GROUPS.iter().any(|group| rest.starts_with(group));
    let starts = std::iter::once(0).chain(tags.match_indices(',').map(|(at, _)| at + 1).filter(|at| begins_tag(&tags[*at..])));
    let value = |start: usize| tags[start..].strip_prefix(key)?.strip_prefix('=');
    let Some(value) = starts.into_iter().find_map(value) else { return "" };
    let end = value.match_indices(',').map(|(at, _)| at).find(|at| begins_tag(&value[at + 1..]));
    &value[..end.unwrap_or(value.len())]
}

/// Returns why routes are missing, if known.
fn missing(counters: &CountersSnapshot) -> Option<&'static str> {
    counters.notices.iter().find_map(|notice| match notice {
        MeterNotice::OtherSession(_) => Some("Routes are missing: another session reads the meters."),
        MeterNotice::HistogramLimit | MeterNotice::TimeSeriesLimit => {
            Some("Some routes are missing: there are more than the session's limit.")
        }
        _ => None,
    })
}

/// Lists served requests by method, route and status.
pub(super) fn view<'a>(state: &'a State, counters: Option<&'a CountersSnapshot>) -> View<'a> {
    let value = |name| counters.and_then(|counters| hosting_counter(counters, name)).and_then(|counter| counter.value);
    let rate = counters.and_then(|counters| hosting_counter(counters, "requests-per-second")).and_then(rate);
    let mut figures = Vec::new();
    figures.extend(rate.map(|rate| Figure::new("requests", CountRate(rate), Role::Strong)));
    figures.extend(value("total-requests").map(|count| Figure::new("total", Count(count as u64), Role::Text)));
    figures.extend(value("current-requests").map(|count| Figure::new("in flight", Count(count as u64), Role::Text)));
    let failed = value("failed-requests").filter(|count| *count > 0.0);
    figures.extend(failed.map(|count| Figure::new("failed", Count(count as u64), Role::Bad)));

    let mut rows: Vec<_> = counters.into_iter().flat_map(|counters| &counters.counters).filter_map(Served::of).collect();
    rows.compact_sort_by_key(|served| std::cmp::Reverse(served.count()));
    let quantile = |quantile| move |served: &Served<'_>| Cell::known(served.quantile_ns(quantile), Role::Text);
    let empty = match (counters, rows.is_empty(), figures.is_empty()) {
        (None, _, _) => "No counters so far.",
        (_, false, _) => "Nothing matches the filter.",
        (_, true, true) => "No counters of ASP.NET Core so far. They do not include outgoing requests.",
        (_, true, false) => "No routes so far: ASP.NET Core 8 and later publish them when requests end.",
    };
    let mut head = vec![Head::Figures(figures)];
    head.extend(counters.and_then(missing).map(|text| Head::text(text, Role::Warning)));
    let TabList { list, cursor, selected } = Table::new(rows, |served| served.counter.tags.clone())
        .column("REQUEST", 0, Fit::Left, |served| match served.route {
            "" => Cell::new(format!("{} (no route){}", served.method, served.error()), Role::Dim),
            route => Cell::new(format!("{} {route}{}", served.method, served.error()), Role::Text),
        })
        .column("STATUS", 6, Fit::Right, |served| Cell::new(served.status, if served.has_failed() { Role::Bad } else { Role::Text }))
        .column("COUNT", 7, Fit::Right, |served| Cell::new(Count(served.count()), Role::Strong))
        .column("P50", 7, Fit::Right, quantile(0))
        .column("P95", 7, Fit::Right, quantile(1))
        .column("P99", 7, Fit::Right, quantile(2))
        .column("P99 HISTORY", 24, Fit::Right, |served| {
            Cell::Bars(served.counter.history.iter().map(|(_, value)| *value).collect(), Role::Bytes)
        })
        .place(state, Tab::Http);
    let copy = selected.map(|served| ("request", format!("{} {} {}", served.method, served.route, served.status)));
    View { head, copy, ..View::new(list, cursor, empty) }
}

#[cfg(test)]
mod tests {
    use super::tag;

    #[test]
    fn routes_may_have_commas() {
        let tags = "http.request.method=GET,http.route=/orders/{id:range(1,100)},url.scheme=http";
        assert_eq!(
            ["http.request.method", "http.route", "url.scheme", "http", ""].map(|key| tag(tags, key)),
            ["GET", "/orders/{id:range(1,100)}", "http", "", ""]
        );
        assert_eq!((tag("", "http.route"), tag("http.route=,,", "http.route")), ("", ",,"));
    }
}
