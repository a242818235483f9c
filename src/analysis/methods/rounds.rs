//! The time a sample represents. The sampler suspends all threads, samples each once, resumes them, and sleeps. The length of such a round
//! varies: with many running threads, rounds are late.

/// Maximum length of a round in multiples of the mean of previous rounds: a process that was stopped for a second did not spend it in one
/// method.
const MAX_ROUND_FACTOR: u64 = 4;
/// Approximate number of rounds in the mean. With fewer, a stall would have a large effect; with more, it would not follow an application that
/// becomes busy: its rounds become ten times as long, and would be taken for stalls.
const MEAN_ROUNDS: u64 = 32;
/// Length of a round before any are known: the runtime's sampling period (reference: nettrace, sample profiler).
const NOMINAL_NS: u64 = 1_000_000;

/// Detects the rounds of the sampler and their lengths.
#[derive(Debug)]
pub struct Rounds {
    /// Number of the current round, starting at 1.
    number: u32,
    /// Start of the current round, in nanoseconds.
    start: i64,
    /// Time represented by each of its samples, in nanoseconds.
    weight_ns: u64,
    /// Mean of the latest rounds, in nanoseconds.
    mean_ns: u64,
}

impl Default for Rounds {
    fn default() -> Self {
        Self { number: 0, start: 0, weight_ns: NOMINAL_NS, mean_ns: NOMINAL_NS }
    }
}

impl Rounds {
    /// Round of a thread that was not sampled yet.
    pub const NEVER: u32 = 0;

    /// Returns the round of a sample of a thread last seen in round `seen`, and the time it represents in nanoseconds, which is the time
    /// before it.
    ///
    /// Each thread is sampled once per round: a thread that occurs again starts the next round.
    #[inline]
    pub fn sample(&mut self, seen: u32, at: i64) -> (u32, u64) {
        if seen == self.number {
            self.begin(at);
        }
        (self.number, self.weight_ns)
    }

    fn begin(&mut self, at: i64) {
        self.number = self.number.wrapping_add(1);
        let start = std::mem::replace(&mut self.start, at);
        if self.number != 1 {
            let gap = u64::try_from(at.saturating_sub(start)).unwrap_or(0);
            self.weight_ns = gap.min(self.mean_ns.saturating_mul(MAX_ROUND_FACTOR));
            // A mean of 0 would stay 0.
            self.mean_ns = (self.mean_ns.saturating_mul(MEAN_ROUNDS - 1).saturating_add(self.weight_ns) / MEAN_ROUNDS).max(MEAN_ROUNDS);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: i64 = 1_000_000;

    /// Returns the weights of the samples of two threads, in rounds starting at these milliseconds, the second thread a little after the
    /// first.
    fn weights(starts: impl IntoIterator<Item = i64>) -> Vec<u64> {
        let (mut rounds, mut seen) = (Rounds::default(), [Rounds::NEVER; 2]);
        let mut round = |at: i64| {
            let (number, weight) = rounds.sample(seen[0], at);
            let (same, weight_of_second) = rounds.sample(seen[1], at + MS / 3);
            assert_eq!((number, weight), (same, weight_of_second), "one round");
            seen = [number; 2];
            weight
        };
        starts.into_iter().map(|start| round(start * MS)).collect()
    }

    #[test]
    fn round_weight_is_time_since_previous_round() {
        assert_eq!(weights([0, 1, 3, 4]), [1_000_000, 1_000_000, 2_000_000, 1_000_000]);
        // Late rounds count in full; a stall does not.
        let late = weights((0..100).map(|round| round * 10).chain([1020, 2020, 2030]));
        let capped = late.iter().skip(1).take_while(|weight| **weight < 10_000_000).count();
        assert!(late[1] == 4_000_000 && capped < 20, "{late:?}");
        let near = |weight: u64, expected: u64| assert!(weight.abs_diff(expected) < expected / 10, "{weight} and not {expected}");
        near(late[100], 30_000_000);
        near(late[101], 42_000_000);
        near(late[102], 10_000_000);
    }

    #[test]
    fn backward_clock_gives_zero_weight() {
        assert_eq!(weights([5, 3, 4]), [1_000_000, 0, 1_000_000]);
        assert_eq!(weights([i64::MIN / MS, i64::MAX / MS])[1], 4_000_000);
    }
}
