//! Sparkline of the CPU usage of a process over the last scans.

/// Number of scans shown.
const SCANS: usize = 6;
/// Minimum range of the bar heights, in percent of one core, so that small fluctuations appear flat.
const MIN_SPAN: f64 = 20.0;

/// CPU usage of the last scans, oldest first, in percent of one core; negative if unknown.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Trend {
    percent: [f64; SCANS],
}

impl Trend {
    /// Width in terminal columns.
    pub const WIDTH: u16 = SCANS as u16;

    pub(super) fn new(percent: Option<f64>) -> Self {
        let mut trend = Self { percent: [-1.0; SCANS] };
        trend.push(percent);
        trend
    }

    /// Adds a scan. Returns whether the bars changed.
    pub(super) fn push(&mut self, percent: Option<f64>) -> bool {
        let before = self.levels();
        self.percent.rotate_left(1);
        self.percent[SCANS - 1] = percent.map_or(-1.0, |percent| percent.max(0.0));
        self.levels() != before
    }

    /// Returns the scans as levels, oldest first: 0 is unknown, 1 the lowest, up to 8 for the highest.
    pub fn levels(&self) -> [u8; SCANS] {
        let known = || self.percent.iter().copied().filter(|percent| *percent >= 0.0);
        let (low, high) = (known().fold(f64::INFINITY, f64::min), known().fold(0.0, f64::max));
        let span = (high - low).max(MIN_SPAN);
        self.percent.map(|percent| if percent < 0.0 { 0 } else { 1 + ((percent - low) / span * 7.99) as u8 })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cpu_trend_bars_are_scaled_to_the_shown_range() {
        let mut trend = Trend::new(None);
        for (percent, changed, levels) in [
            (Some(0.0), true, [0, 0, 0, 0, 0, 1]),
            (Some(5.0), true, [0, 0, 0, 0, 1, 2]),
            (Some(f64::NAN), true, [0, 0, 0, 1, 2, 1]),
            (Some(20.0), true, [0, 0, 1, 2, 1, 8]),
            (Some(800.0), true, [0, 1, 1, 1, 1, 8]),
            (Some(-1.0), true, [1, 1, 1, 1, 8, 1]),
            (Some(400.0), true, [1, 1, 1, 8, 1, 4]),
        ] {
            assert_eq!((trend.push(percent), trend.levels()), (changed, levels));
        }
        let mut steady = Trend::new(Some(96.0));
        [95.0, 96.0, 97.0].into_iter().for_each(|percent| _ = steady.push(Some(percent)));
        assert_eq!(steady.levels(), [0, 0, 1, 1, 1, 1]);
        let mut idle = Trend::new(None);
        (0..SCANS).for_each(|_| assert!(idle.push(Some(0.2))));
        assert!(!idle.push(Some(0.3)));
    }
}
