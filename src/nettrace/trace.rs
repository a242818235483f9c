//! Properties of a whole stream: the Trace object of V4, the Trace block of V6.

use crate::wire::{Reader, WireError};

use super::UtcTime;

/// Size of the payload of V4's Trace object, which has no size field.
pub(super) const V4_SIZE: usize = 48;

/// Properties of a whole stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TraceHeader {
    /// Format version: 4 for all runtimes (even if they write V5's tags), 6 for collectors outside the runtime.
    pub format_version: u32,
    /// Calendar time of [`sync_ticks`](Self::sync_ticks); `None` if the stream has no valid time.
    pub sync_utc: Option<UtcTime>,
    /// A timestamp near the start of the session, on the clock of the stream.
    pub sync_ticks: i64,
    /// Frequency of that clock: 1 000 000 000 on Linux. Never 0.
    pub ticks_per_second: u64,
    /// Pointer size of the traced process in bytes: 4 or 8.
    pub pointer_size: u8,
    /// Process ID in its own PID namespace; 0 if the stream has several processes.
    pub process_id: u32,
    /// Number of processors of the machine; 0 if not reported.
    pub processors: u32,
    /// Interval of the sampling profiler in nanoseconds. (The format calls it a rate.)
    pub sampling_interval_ns: u32,
}

impl Default for TraceHeader {
    /// As written by .NET on 64-bit Linux, except for process ID, start time and number of processors.
    fn default() -> Self {
        Self {
            format_version: 4,
            sync_utc: None,
            sync_ticks: 0,
            ticks_per_second: 1_000_000_000,
            pointer_size: 8,
            process_id: 0,
            processors: 1,
            sampling_interval_ns: 1_000_000,
        }
    }
}

/// Number of processors written by NativeAOT programs, which do not determine it (seen on 8.0.33).
const NOT_COUNTED: u32 = 0xffff;

impl TraceHeader {
    pub(super) fn parse_v4(payload: &[u8], format_version: u32) -> Result<Self, WireError> {
        let mut reader = Reader::new(payload);
        let mut header = Self::parse_start(&mut reader, format_version)?;
        header.process_id = reader.u32()?;
        header.processors = match reader.u32()? {
            NOT_COUNTED => 0,
            count => count,
        };
        header.sampling_interval_ns = reader.u32()?;
        Ok(header)
    }

    pub(super) fn parse_v6(payload: &[u8]) -> Result<Self, WireError> {
        let mut reader = Reader::new(payload);
        let mut header = Self::parse_start(&mut reader, 6)?;
        for _ in 0..reader.u32()? {
            let key = reader.varu32()? as usize;
            let key = reader.take(key)?;
            let value = reader.varu32()? as usize;
            let value = reader.take(value)?;
            let number = || std::str::from_utf8(value).ok()?.parse().ok();
            match key {
                b"ProcessId" => header.process_id = number().unwrap_or(0),
                b"HardwareThreadCount" => header.processors = number().unwrap_or(0),
                b"ExpectedCPUSamplingRate" => header.sampling_interval_ns = number().unwrap_or(0),
                _ => {}
            }
        }
        Ok(header)
    }

    fn parse_start(reader: &mut Reader<'_>, format_version: u32) -> Result<Self, WireError> {
        let mut words = [0; 8];
        for word in &mut words {
            *word = reader.u16()?;
        }
        Ok(Self {
            format_version,
            sync_utc: UtcTime::from_system_time(words),
            sync_ticks: reader.i64()?,
            ticks_per_second: u64::try_from(reader.i64()?).unwrap_or(0).max(1),
            // Only 4 and 8 are possible; anything other than 4 is read as 8.
            pointer_size: if reader.u32()? == 4 { 4 } else { 8 },
            process_id: 0,
            processors: 0,
            sampling_interval_ns: 0,
        })
    }

    /// Converts a timestamp to calendar time, in milliseconds since the Unix epoch.
    pub fn unix_ms(&self, timestamp: i64) -> Option<i64> {
        let since = self.nanoseconds(i128::from(timestamp) - i128::from(self.sync_ticks)) / 1_000_000;
        self.sync_utc.map(|utc| utc.unix_ms().saturating_add(saturate(since)))
    }

    /// Returns the time from one timestamp to another in nanoseconds, negative if `to` is before `from`.
    #[inline]
    pub fn nanoseconds_between(&self, from: i64, to: i64) -> i64 {
        // The clock on Linux: avoids a division per event.
        if self.ticks_per_second == 1_000_000_000 {
            return to.saturating_sub(from);
        }
        saturate(self.nanoseconds(i128::from(to) - i128::from(from)))
    }

    fn nanoseconds(&self, ticks: i128) -> i128 {
        ticks * 1_000_000_000 / i128::from(self.ticks_per_second)
    }
}

fn saturate(value: i128) -> i64 {
    value.clamp(i64::MIN.into(), i64::MAX.into()) as i64
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use crate::nettrace::{Decoder, Encoder, Limits, Sink};

    #[test]
    fn unknown_number_of_processors_is_none() {
        let processors = |count: u32| {
            let mut encoder = Encoder::new(TraceHeader { processors: count, ..HEADER });
            encoder.end();
            let (mut decoder, mut found) = (Decoder::new(Limits::default()), Vec::new());
            struct Processors<'a>(&'a mut Vec<u32>);
            impl Sink for Processors<'_> {
                fn trace(&mut self, header: &TraceHeader) {
                    self.0.push(header.processors);
                }
            }
            decoder.feed(&encoder.take(), &mut Processors(&mut found)).unwrap();
            found
        };
        assert_eq!([8, NOT_COUNTED].map(processors), [[8], [0]]);
    }

    /// A header with all fields set.
    pub(in crate::nettrace) const HEADER: TraceHeader = TraceHeader {
        format_version: 4,
        sync_utc: Some(UtcTime { year: 2026, month: 11, day: 21, hour: 7, minute: 31, second: 58, millisecond: 104 }),
        sync_ticks: 1_000,
        ticks_per_second: 1_000_000_000,
        pointer_size: 8,
        process_id: 4242,
        processors: 2,
        sampling_interval_ns: 1_000_000,
    };

    #[test]
    fn timestamps_are_converted_to_time() {
        let slow = TraceHeader { ticks_per_second: 10_000_000, ..HEADER };
        assert_eq!(slow.unix_ms(1_000 + 15_000_000), Some(1_795_246_318_104 + 1_500));
        assert_eq!(slow.nanoseconds_between(20, 10), -1_000);
        assert_eq!(slow.nanoseconds_between(i64::MIN, i64::MAX), i64::MAX, "no overflow");
        assert_eq!(TraceHeader { sync_utc: None, ..HEADER }.unix_ms(0), None);
    }
}
