//! Request durations over all routes: the histograms `http.server.request.duration` of ASP.NET Core and `http.client.request.duration` of
//! `HttpClient`, both since .NET 8.

use std::collections::VecDeque;

use super::super::ranking::push_latest;
use super::series::Reading;

use crate::clr::{HOSTING_PROVIDER, HTTP_CLIENT_PROVIDER};
use crate::sorting::CompactSort;

/// The quantiles published by the library.
const QUANTILES: [f64; 3] = [0.5, 0.95, 0.99];
/// Share of requests by which a merged quantile may be off, so that a few requests of one combination do not raise it to the next step.
const TOLERANCE: f64 = 0.005;
/// Maximum number of intervals kept.
const HISTORY: usize = 300;
/// Maximum number of combinations in an interval; a library publishes each once.
const COMBINATIONS: usize = super::SERIES;

/// Durations of the requests of one interval.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct RequestDurations {
    /// End of the interval, in nanoseconds since the start of the session.
    pub at: i64,
    /// Quantiles 0.5, 0.95 and 0.99 in seconds; `None` if no request ended.
    pub quantiles: Option<[f64; 3]>,
    /// Number of requests that ended.
    pub count: u64,
    /// Number of combinations of route, method and status code among these requests. With two or more, the quantiles are estimates: each
    /// combination publishes its own three, and a value between two of them counts as the higher one.
    pub combinations: usize,
}

impl RequestDurations {
    /// Meter and histogram of incoming requests; the unit is seconds.
    pub const SERVED: (&str, &str) = (HOSTING_PROVIDER, "http.server.request.duration");
    /// Meter and histogram of outgoing requests; the unit is seconds.
    pub const SENT: (&str, &str) = (HTTP_CLIENT_PROVIDER, "http.client.request.duration");
    /// The first major version of the runtime with these histograms.
    pub const SINCE: u32 = 8;
}

/// Merges the combinations of each interval.
#[derive(Debug, Default)]
pub(super) struct Durations {
    current: Vec<(u64, [f64; 3])>,
    history: VecDeque<RequestDurations>,
    is_published: bool,
}

impl Durations {
    /// Adds a combination.
    pub(super) fn add(&mut self, reading: &Reading) {
        self.is_published = true;
        if let (Some(count @ 1..), Some(quantiles)) = (reading.count, reading.published_quantiles())
            && self.current.len() < COMBINATIONS
        {
            self.current.push((count, quantiles));
        }
    }

    /// Ends the current interval.
    pub(super) fn end(&mut self, at: i64) {
        if !self.is_published {
            return;
        }
        let count = self.current.iter().fold(0_u64, |sum, (count, _)| sum.saturating_add(*count));
        let (quantiles, combinations) = (merge(&self.current), self.current.len());
        push_latest(&mut self.history, HISTORY, RequestDurations { at, quantiles, count, combinations });
        self.current.clear();
    }

    pub(super) fn history(&self) -> Vec<RequestDurations> {
        self.history.iter().copied().collect()
    }
}

/// Returns the quantiles of all combinations together.
fn merge(combinations: &[(u64, [f64; 3])]) -> Option<[f64; 3]> {
    let weights = [QUANTILES[0], QUANTILES[1] - QUANTILES[0], 1.0 - QUANTILES[1]];
    let steps = |(count, values): &(u64, [f64; 3])| {
        let count = *count as f64;
        [0, 1, 2].map(|step| (values[step], weights[step] * count))
    };
    let mut steps: Vec<(f64, f64)> = combinations.iter().flat_map(steps).collect();
    steps.compact_sort_by(|a, b| a.0.total_cmp(&b.0));
    let total: f64 = steps.iter().map(|(_, weight)| weight).sum();
    let quantile = |share: f64| {
        let mut sum = 0.0;
        let reached = steps.iter().find(|(_, weight)| {
            sum += weight;
            sum >= (share - TOLERANCE) * total
        });
        reached.map(|(value, _)| *value)
    };
    let [p50, p95, p99] = QUANTILES.map(quantile);
    Some([p50?, p95?, p99?])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn interval_that_never_ends_is_bounded() {
        let mut durations = Durations::default();
        let reading = Reading { count: Some(1), quantiles: QUANTILES.map(|share| (share, 1.0)).to_vec(), ..Reading::default() };
        (0..=COMBINATIONS).for_each(|_| durations.add(&reading));
        assert_eq!(durations.current.len(), COMBINATIONS);
    }

    #[test]
    fn quantiles_are_weighted_by_request_count() {
        assert_eq!(merge(&[]), None);
        assert_eq!(merge(&[(7, [1.0, 2.0, 3.0])]), Some([1.0, 2.0, 3.0]));
        assert_eq!(merge(&[(7, [1.0, 2.0, 3.0]), (70, [1.0, 2.0, 3.0])]), Some([1.0, 2.0, 3.0]));
        // One slow request in a thousand makes no difference, one in ten does.
        assert_eq!(merge(&[(1, [9.0; 3]), (999, [1.0, 2.0, 3.0])]), Some([1.0, 2.0, 3.0]));
        assert_eq!(merge(&[(100, [9.0; 3]), (900, [1.0, 2.0, 3.0])]), Some([2.0, 9.0, 9.0]));
    }
}
