//! A process's processor time over the last looks, as small bars.

/// How many looks are shown.
const LOOKS: usize = 6;

/// The processor time of the last looks, oldest first, each as a level: 0 is not known, 1 to 8 are eighths of one core, and more than one core is 8.
///
/// The scale is the same for all processes, so that rows can be compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Trend {
    levels: [u8; LOOKS],
}

fn level(percent: Option<f32>) -> u8 {
    percent.map_or(0, |percent| 1 + (percent.clamp(0.0, 99.9) / 12.5) as u8)
}

impl Trend {
    /// How many columns it takes.
    pub const WIDTH: u16 = LOOKS as u16;

    pub(super) fn new(percent: Option<f32>) -> Self {
        let mut trend = Self::default();
        trend.push(percent);
        trend
    }

    /// Takes in a look. Says whether the bars changed.
    pub(super) fn push(&mut self, percent: Option<f32>) -> bool {
        let before = self.levels;
        self.levels.rotate_left(1);
        self.levels[LOOKS - 1] = level(percent);
        self.levels != before
    }

    /// The levels, oldest first.
    pub fn levels(&self) -> [u8; LOOKS] {
        self.levels
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn looks_become_levels_and_move_on() {
        let mut trend = Trend::new(None);
        for (percent, changed, levels) in [
            (Some(0.0), true, [0, 0, 0, 0, 0, 1]),
            (Some(12.5), true, [0, 0, 0, 0, 1, 2]),
            (Some(f32::NAN), true, [0, 0, 0, 1, 2, 1]),
            (Some(100.0), true, [0, 0, 1, 2, 1, 8]),
            (Some(800.0), true, [0, 1, 2, 1, 8, 8]),
            (Some(-1.0), true, [1, 2, 1, 8, 8, 1]),
        ] {
            assert_eq!((trend.push(percent), trend.levels()), (changed, levels));
        }
        let mut idle = Trend::default();
        (0..LOOKS).for_each(|_| assert!(idle.push(Some(0.2))));
        assert!(!idle.push(Some(0.3)));
    }
}
