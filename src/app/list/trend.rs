//! A process's processor time over the last scans, as small bars.

/// How many scans are shown.
const SCANS: usize = 6;
/// Per cent of a core that is at least a whole bar: less is not drawn as if it were much.
const SMALLEST_SCALE: f32 = 20.0;

/// The processor time of the last scans, oldest first, in per cent of one core; negative where it is not known.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Trend {
    percent: [f32; SCANS],
}

impl Trend {
    /// How many columns it takes.
    pub const WIDTH: u16 = SCANS as u16;

    pub(super) fn new(percent: Option<f32>) -> Self {
        let mut trend = Self { percent: [-1.0; SCANS] };
        trend.push(percent);
        trend
    }

    /// Takes in a scan. Returns whether the bars changed.
    pub(super) fn push(&mut self, percent: Option<f32>) -> bool {
        let before = self.levels();
        self.percent.rotate_left(1);
        self.percent[SCANS - 1] = percent.map_or(-1.0, |percent| percent.max(0.0));
        self.levels() != before
    }

    /// The scans as levels, oldest first: 0 is not known, 1 to 8 are eighths of the highest of them.
    pub fn levels(&self) -> [u8; SCANS] {
        let scale = self.percent.iter().copied().fold(SMALLEST_SCALE, f32::max);
        self.percent.map(|percent| if percent < 0.0 { 0 } else { 1 + (percent / scale * 7.99) as u8 })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scans_become_levels_of_their_own_scale() {
        let mut trend = Trend::new(None);
        for (percent, changed, levels) in [
            (Some(0.0), true, [0, 0, 0, 0, 0, 1]),
            (Some(5.0), true, [0, 0, 0, 0, 1, 2]),
            (Some(f32::NAN), true, [0, 0, 0, 1, 2, 1]),
            (Some(20.0), true, [0, 0, 1, 2, 1, 8]),
            (Some(800.0), true, [0, 1, 1, 1, 1, 8]),
            (Some(-1.0), true, [1, 1, 1, 1, 8, 1]),
            (Some(400.0), true, [1, 1, 1, 8, 1, 4]),
        ] {
            assert_eq!((trend.push(percent), trend.levels()), (changed, levels));
        }
        let mut idle = Trend::new(None);
        (0..SCANS).for_each(|_| assert!(idle.push(Some(0.2))));
        assert!(!idle.push(Some(0.3)));
    }
}
