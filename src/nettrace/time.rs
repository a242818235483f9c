//! Calendar time in the stream format.

use std::fmt;

const MS_PER_DAY: i64 = 86_400_000;

/// A UTC time with millisecond resolution: the SYSTEMTIME of the Trace object without the day of the week.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct UtcTime {
    /// Year, 1601 to 30827.
    pub year: u16,
    /// Month, 1 to 12.
    pub month: u16,
    /// Day of the month, from 1.
    pub day: u16,
    /// Hour, 0 to 23.
    pub hour: u16,
    /// Minute, 0 to 59.
    pub minute: u16,
    /// Second, 0 to 59.
    pub second: u16,
    /// Millisecond, 0 to 999.
    pub millisecond: u16,
}

impl UtcTime {
    /// Converts the eight words of a SYSTEMTIME; `None` if they are not a valid time.
    pub(super) fn from_system_time(words: [u16; 8]) -> Option<Self> {
        let [year, month, _day_of_week, day, hour, minute, second, millisecond] = words;
        let time = Self { year, month, day, hour, minute, second, millisecond };
        // Others, such as a day beyond the end of the month, are converted back to a different time.
        (Self::from_unix_ms(time.unix_ms()) == time).then_some(time)
    }

    /// Returns the eight words of a SYSTEMTIME.
    pub(super) fn system_time(self) -> [u16; 8] {
        // January 1, 1970 was a Thursday, and Sunday is 0.
        let day_of_week = (self.unix_ms().div_euclid(MS_PER_DAY) + 4).rem_euclid(7) as u16;
        [self.year, self.month, day_of_week, self.day, self.hour, self.minute, self.second, self.millisecond]
    }

    /// Returns the milliseconds since the Unix epoch.
    pub fn unix_ms(self) -> i64 {
        // Years start in March, so that the leap day is the last day of a year.
        let (year, month) = (i64::from(self.year) - i64::from(self.month <= 2), (i64::from(self.month) + 9) % 12);
        let day_of_year = (153 * month + 2) / 5 + i64::from(self.day) - 1;
        let days = year * 365 + year / 4 - year / 100 + year / 400 + day_of_year - 719_468;
        let seconds = i64::from(self.hour) * 3600 + i64::from(self.minute) * 60 + i64::from(self.second);
        days * MS_PER_DAY + seconds * 1000 + i64::from(self.millisecond)
    }

    /// Converts milliseconds since the Unix epoch. Times before 1601 or after 30827, which the format cannot represent, are clamped.
    pub fn from_unix_ms(ms: i64) -> Self {
        let ms = ms.clamp(-11_644_473_600_000, 910_670_515_199_999);
        let (days, in_day) = (ms.div_euclid(MS_PER_DAY) + 719_468, ms.rem_euclid(MS_PER_DAY));
        let (era, day_of_era) = (days / 146_097, days % 146_097);
        let year_of_era = (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
        let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
        let month = (5 * day_of_year + 2) / 153;
        let (day, month) = (day_of_year - (153 * month + 2) / 5 + 1, if month < 10 { month + 3 } else { month - 9 });
        Self {
            year: (era * 400 + year_of_era + i64::from(month <= 2)) as u16,
            month: month as u16,
            day: day as u16,
            hour: (in_day / 3_600_000) as u16,
            minute: (in_day / 60_000 % 60) as u16,
            second: (in_day / 1000 % 60) as u16,
            millisecond: (in_day % 1000) as u16,
        }
    }
}

/// RFC 3339 format, such as `2026-11-21T07:31:58.104Z`.
impl fmt::Display for UtcTime {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { year, month, day, hour, minute, second, millisecond } = self;
        write!(f, "{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.{millisecond:03}Z")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn known_dates_are_converted() {
        for (ms, text, day_of_week) in [
            (0, "1970-01-01T00:00:00.000Z", 4),
            (951_782_400_000, "2000-02-29T00:00:00.000Z", 2),
            (1_795_246_318_104, "2026-11-21T07:31:58.104Z", 6),
            (-11_644_473_600_000, "1601-01-01T00:00:00.000Z", 1),
            (910_670_515_199_999, "30827-12-31T23:59:59.999Z", 5),
        ] {
            let time = UtcTime::from_unix_ms(ms);
            assert_eq!((time.to_string().as_str(), time.unix_ms(), time.system_time()[2]), (text, ms, day_of_week));
        }
    }

    #[test]
    fn invalid_dates_are_none() {
        assert!(UtcTime::from_system_time([2026, 2, 0, 28, 23, 59, 59, 999]).is_some());
        for words in [
            [2026, 2, 0, 29, 0, 0, 0, 0],
            [2026, 13, 0, 1, 0, 0, 0, 0],
            [0; 8],
            [u16::MAX; 8],
            [2026, 1, 0, 1, 24, 0, 0, 0],
            [2026, 1, 0, 1, 0, 60, 0, 0],
            [2026, 1, 0, 1, 0, 0, 60, 0],
            [2026, 1, 0, 1, 0, 0, 0, 1000],
            [2026, 0, 0, 1, 0, 0, 0, 0],
            [2026, 1, 0, 0, 0, 0, 0, 0],
            [1600, 12, 0, 31, 0, 0, 0, 0],
            [30828, 1, 0, 1, 0, 0, 0, 0],
        ] {
            assert_eq!(UtcTime::from_system_time(words), None, "{words:?}");
        }
    }

    proptest! {
        #[test]
        fn times_round_trip(ms in -11_644_473_600_000..=910_670_515_199_999_i64) {
            let time = UtcTime::from_unix_ms(ms);
            prop_assert_eq!(time.unix_ms(), ms);
            prop_assert_eq!(UtcTime::from_system_time(time.system_time()), Some(time));
        }
    }
}
