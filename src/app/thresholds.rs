//! Thresholds above which a figure is a finding.

/// Share of the time in GC pauses.
pub(super) const GC_TIME_THRESHOLD: f64 = 0.1;
/// Exceptions a second.
pub(super) const EXCEPTION_THRESHOLD: f64 = 50.0;
/// Times the usual rate of exceptions, and exceptions a second at least.
pub(super) const EXCEPTION_INCREASE: (f64, f64) = (5.0, 10.0);
/// Threads that wait for locks at a time, on average.
pub(super) const WAITER_THRESHOLD: f64 = 2.0;
/// Pool threads that wait for tasks at a time.
pub(super) const BLOCKED_THREAD_THRESHOLD: u32 = 5;
/// Full collections in a row that each leave more, and the growth from the first to the last.
pub(super) const HEAP_GROWTH: (usize, f64) = (4, 1.3);
/// The least growth of gen 2, bytes.
pub(super) const HEAP_GROWTH_BYTES: f64 = 10e6;
/// Length of the thread pool's queue, and values in a row: one burst of work is no finding.
pub(super) const QUEUE_LENGTH_THRESHOLD: (f64, usize) = (20.0, 3);
/// Lock contentions a second.
pub(super) const CONTENTION_THRESHOLD: f64 = 100.0;
/// Collections of gen 2 a second.
pub(super) const GEN2_RATE_THRESHOLD: f64 = 1.0;
/// Induced collections a second, and the seconds over which they are counted.
pub(super) const INDUCED_THRESHOLD: (f64, i64) = (1.0, 10);
/// Time spent compiling, milliseconds a second, and values in a row: the start of a program is no finding.
pub(super) const JIT_THRESHOLD: (f64, usize) = (100.0, 5);
/// Share of requests that failed, the seconds over which they are counted, and failed requests at least.
pub(super) const FAILED_REQUEST_THRESHOLD: (f64, usize, f64) = (0.05, 10, 5.0);
/// Quantile 0.95 of the duration of requests, seconds, and intervals in a row.
pub(super) const SLOW_REQUEST_THRESHOLD: (f64, usize) = (1.0, 3);
/// CPU, per cent of one core, and scans in a row.
pub(super) const BUSY_THRESHOLD: (f64, usize) = (90.0, 5);
