//! Distribution of values in bounded memory.

/// Buckets between consecutive powers of two: a quantile is off by at most half of 1/32.
const STEPS: u64 = 32;

/// Distribution of values. Count, sum, minimum and maximum are exact, quantiles within 2 %.
#[derive(Debug, Clone, Default)]
pub struct Distribution {
    counts: Vec<u32>,
    count: u64,
    sum: u128,
    smallest: u64,
    largest: u64,
}

impl Distribution {
    pub(super) fn add(&mut self, value: u64) {
        let bucket = bucket(value);
        if bucket >= self.counts.len() {
            self.counts.resize(bucket + 1, 0);
        }
        self.counts[bucket] = self.counts[bucket].saturating_add(1);
        self.smallest = if self.count == 0 { value } else { self.smallest.min(value) };
        self.largest = self.largest.max(value);
        self.count += 1;
        self.sum += u128::from(value);
    }

    /// Returns the number of values.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// Returns the sum, saturated at `u64::MAX`.
    pub fn sum(&self) -> u64 {
        self.sum.try_into().unwrap_or(u64::MAX)
    }

    /// Returns the largest value; 0 if there are none.
    pub fn largest(&self) -> u64 {
        self.largest
    }

    /// Returns the mean; `None` if there are no values.
    pub fn mean(&self) -> Option<f64> {
        (self.count > 0).then(|| self.sum as f64 / self.count as f64)
    }

    /// Returns the quantile for a share of 0 to 1; `None` if there are no values.
    pub fn quantile(&self, share: f64) -> Option<u64> {
        let rank = (share.clamp(0.0, 1.0) * self.count as f64).ceil().max(1.0) as u64;
        let mut seen = 0;
        let bucket = self.counts.iter().position(|count| {
            seen += u64::from(*count);
            seen >= rank
        })?;
        Some(middle(bucket).clamp(self.smallest, self.largest))
    }

    /// Returns the quantiles 0.5, 0.95 and 0.99; `None` if there are no values.
    pub fn quantiles(&self) -> Option<[u64; 3]> {
        Some([self.quantile(0.5)?, self.quantile(0.95)?, self.quantile(0.99)?])
    }
}

/// Returns the bucket of a value: one each for small values, 32 per power of two for larger ones.
fn bucket(value: u64) -> usize {
    if value < STEPS {
        return value as usize;
    }
    let power = value.ilog2() - STEPS.ilog2();
    (u64::from(power) * STEPS + (value >> power)) as usize
}

fn middle(bucket: usize) -> u64 {
    let bucket = bucket as u64;
    if bucket < 2 * STEPS {
        return bucket;
    }
    let power = bucket / STEPS - 1;
    ((bucket % STEPS + STEPS) << power) + (1 << (power - 1))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn quantiles_are_accurate_within_two_percent() {
        let mut spread = Distribution::default();
        assert_eq!((spread.quantile(0.5), spread.mean()), (None, None));
        (1..=100).for_each(|value| spread.add(value * 1000));
        assert_eq!((spread.count(), spread.sum(), spread.largest(), spread.mean()), (100, 5_050_000, 100_000, Some(50_500.0)));
        for (share, exact) in [(0.0, 1000.0), (0.5, 50_000.0), (0.95, 95_000.0), (0.99, 99_000.0), (1.0, 100_000.0)] {
            let found = spread.quantile(share).unwrap() as f64;
            assert!((found / exact - 1.0).abs() < 0.02, "{share}: {found}");
        }
    }

    proptest! {
        #[test]
        fn any_value_falls_into_a_close_bucket(values in proptest::collection::vec(any::<u64>(), 1..50)) {
            let mut spread = Distribution::default();
            values.iter().for_each(|value| spread.add(*value));
            prop_assert!(spread.counts.len() <= 60 * STEPS as usize);
            prop_assert_eq!(spread.largest(), *values.iter().max().unwrap());
            prop_assert_eq!(spread.quantile(1.0).unwrap().max(spread.largest()), spread.largest());
            for value in values {
                let near = middle(bucket(value)) as f64;
                prop_assert!((near - value as f64).abs() <= value as f64 / 64.0 + 1.0);
            }
        }
    }
}
