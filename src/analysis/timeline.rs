//! A value over time in bounded memory.

use std::ops::{Deref, DerefMut};

/// Number of seconds kept individually.
const SECONDS: usize = 300;
/// Maximum number of steps for the whole period.
const STEPS: usize = 512;
/// Initial step width, in nanoseconds.
const SHORTEST_STEP: i64 = 100_000_000;
const SECOND: i64 = 1_000_000_000;

/// A value over time: the last five minutes by second, and the whole period in at most 512 steps, whose width doubles when they run out.
/// Negative times count as 0.
#[derive(Debug, Clone)]
pub struct Timeline {
    merge: Merge,
    /// By step.
    steps: Vec<f64>,
    step_ns: i64,
    /// By second, modulo [`SECONDS`].
    seconds: Vec<f64>,
    /// The newest second with a value.
    newest: i64,
    /// The second of the first value.
    oldest: i64,
}

/// The highest values over time.
#[derive(Debug, Clone)]
pub(super) struct Maxima(Timeline);

impl Default for Maxima {
    fn default() -> Self {
        Self(Timeline::new(Merge::Max))
    }
}

impl Deref for Maxima {
    type Target = Timeline;

    fn deref(&self) -> &Timeline {
        &self.0
    }
}

impl DerefMut for Maxima {
    fn deref_mut(&mut self) -> &mut Timeline {
        &mut self.0
    }
}

/// How values in the same step are combined.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Merge {
    /// The sum; 0 without a value.
    Sum,
    /// The maximum; NaN without a value.
    Max,
}

impl Default for Timeline {
    fn default() -> Self {
        Self::new(Merge::Sum)
    }
}

impl Timeline {
    fn new(merge: Merge) -> Self {
        Self { merge, steps: Vec::new(), step_ns: SHORTEST_STEP, seconds: Vec::new(), newest: i64::MIN, oldest: i64::MAX }
    }

    pub(super) fn add(&mut self, at: i64, value: f64) {
        let at = at.max(0);
        let mut step = at / self.step_ns;
        while step >= STEPS as i64 {
            self.widen();
            step = at / self.step_ns;
        }
        let (merge, none) = (self.merge, self.merge.none());
        let step = step as usize;
        if step >= self.steps.len() {
            self.steps.resize(step + 1, none);
        }
        merge.into(&mut self.steps[step], value);

        let second = at / SECOND;
        self.oldest = self.oldest.min(second);
        if second > self.newest {
            self.seconds.resize(SECONDS, none);
            // There were no values in the seconds in between.
            let skipped = second.saturating_sub(self.newest).min(SECONDS as i64);
            for empty in 0..skipped {
                self.seconds[slot(second - empty)] = none;
            }
            self.newest = second;
        }
        if self.newest - second < SECONDS as i64 {
            merge.into(&mut self.seconds[slot(second)], value);
        }
    }

    /// Doubles the width of the steps.
    fn widen(&mut self) {
        let merge = self.merge;
        self.steps = self.steps.chunks(2).map(|pair| pair.iter().fold(merge.none(), |sum, value| merge.of(sum, *value))).collect();
        self.step_ns = self.step_ns.saturating_mul(2);
    }

    /// Returns the width of a step in nanoseconds, and the values of all steps.
    pub fn whole(&self) -> (i64, &[f64]) {
        (self.step_ns, &self.steps)
    }

    /// Returns the values of the last `count` seconds up to and including that of `now`, oldest first; at most the last 300.
    pub fn recent(&self, now: i64, count: usize) -> Vec<f64> {
        let last = now.max(0) / SECOND;
        let count = count.min(SECONDS) as i64;
        (last - count + 1..=last).map(|second| self.second(second)).collect()
    }

    /// Returns the sum over at most the last `seconds` seconds before `now`, divided by the time they span.
    pub fn rate(&self, now: i64, seconds: u32) -> f64 {
        let now = now.max(0);
        let last = now / SECOND;
        let first = (last - i64::from(seconds.clamp(1, SECONDS as u32 - 1)) + 1).max(self.oldest.min(last));
        let sum: f64 = (first..=last).map(|second| self.second(second)).filter(|value| value.is_finite()).sum();
        // A second that has just begun does not count in full, but a rate needs at least one second.
        let time = (now - first * SECOND).max(SECOND) as f64 / SECOND as f64;
        sum / time
    }

    /// Returns the sum over the last `seconds` seconds, including that of `now`.
    pub fn sum(&self, now: i64, seconds: u32) -> f64 {
        self.recent(now, seconds as usize).into_iter().filter(|value| value.is_finite()).sum()
    }

    fn second(&self, second: i64) -> f64 {
        let kept = second <= self.newest && self.newest.saturating_sub(second) < SECONDS as i64 && second >= 0;
        if kept { self.seconds[slot(second)] } else { self.merge.none() }
    }
}

fn slot(second: i64) -> usize {
    second.rem_euclid(SECONDS as i64) as usize
}

impl Merge {
    fn none(self) -> f64 {
        if self == Self::Sum { 0.0 } else { f64::NAN }
    }

    fn of(self, a: f64, b: f64) -> f64 {
        // The maximum of NaN and a number is the number.
        if self == Self::Sum { a + b } else { a.max(b) }
    }

    fn into(self, slot: &mut f64, value: f64) {
        *slot = self.of(*slot, value);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn per_second_values_expire() {
        let mut line = Timeline::new(Merge::Sum);
        for (at, value) in [(-5, 1.0), (0, 1.0), (999_999_999, 1.0), (2_000_000_000, 4.0), (1_500_000_000, 2.0)] {
            line.add(at, value);
        }
        assert_eq!(line.recent(2_000_000_000, 4), [0.0, 3.0, 2.0, 4.0], "before the beginning there was nothing");
        assert_eq!(line.recent(4_000_000_000, 3), [4.0, 0.0, 0.0]);
        assert_eq!(line.rate(3_000_000_000, 60), 3.0, "three seconds so far");
        assert_eq!(line.rate(3_000_000_000, 2), 4.0, "a whole second and the start of one");
        assert_eq!(line.sum(2_500_000_000, 2), 6.0);
        line.add(1_000_000_000_000, 1.0);
        assert_eq!(line.recent(1_000_000_000_000, 300).iter().sum::<f64>(), 1.0);
        for at in [0, (1000 - SECONDS as i64) * 1_000_000_000] {
            line.add(at, 9.0);
            assert_eq!(line.sum(1_000_000_000_000, SECONDS as u32), 1.0, "too old for its second");
        }
        assert_eq!(line.whole().1.iter().sum::<f64>(), 28.0, "and not lost");
        assert_eq!(line.sum(500_000_000_000, 300), 0.0, "no longer known");
        let mut later = Timeline::new(Merge::Sum);
        later.add(100_000_000_000, 30.0);
        assert_eq!(later.rate(102_000_000_000, 10), 15.0, "since the first value");
    }

    #[test]
    fn max_timeline_keeps_the_maximum_of_each_step() {
        let mut line = Timeline::new(Merge::Max);
        line.add(0, 5.0);
        line.add(1, 3.0);
        line.add(1_000_000_000 * 100, 7.0);
        let (step, values) = line.whole();
        assert_eq!((step, values[0], values.last()), (200_000_000, 5.0, Some(&7.0)));
        assert!(values[1].is_nan());
    }

    proptest! {
        #[test]
        fn sum_is_preserved_and_memory_is_bounded(values: Vec<(i64, u8)>, now: i64) {
            let mut line = Timeline::new(Merge::Sum);
            for (at, value) in &values {
                line.add(*at, f64::from(*value));
            }
            let sum: f64 = values.iter().map(|(_, value)| f64::from(*value)).sum();
            prop_assert_eq!(line.whole().1.iter().sum::<f64>(), sum);
            prop_assert!(line.steps.len() <= STEPS && line.seconds.len() <= SECONDS);
            prop_assert!(line.sum(now, 300) <= sum && line.rate(now, 10) <= sum);
            prop_assert!(line.recent(now, 1000).len() <= SECONDS);
        }
    }
}
