//! Lists of the kernel that can take long to read: the mounts and the memory mappings of a process.
//!
//! In a user namespace of their own, users can mount 100,000 file systems on top of each other. For each path on the last one, the kernel passes
//! through all of them, so that such a list takes minutes of processor time, for each of any number of processes. So the time is limited: for each
//! list, for each user, and for all together.

use std::fs::File;
use std::io::{self, Read};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use foldhash::HashMap;
use rustix::time::{ClockId, clock_gettime};

/// Maximum bytes read of a list.
const MAX_BYTES: usize = 16 << 20;
/// Size of a read. The kernel returns one page at a time.
const PART: usize = 16 << 10;
/// Factor by which reading may take longer than its processor time: on a busy machine, or while the list is locked.
const MAX_WAIT: u32 = 10;
/// Time after which the limits of a user and of all users start again.
const PERIOD: Duration = Duration::from_secs(60);

/// Limits of the processor time for lists of one kind.
#[derive(Debug, Clone, Copy)]
pub(super) struct Limits {
    /// For a list.
    pub(super) list: Duration,
    /// For the lists of a user in a minute.
    pub(super) user: Duration,
    /// For the lists of all users in a minute.
    pub(super) all: Duration,
}

/// Reads lists of one kind within limits.
#[derive(Debug)]
pub(super) struct LongLists {
    limits: Limits,
    spent: Mutex<Spent>,
}

/// Processor time since the begin of a period.
#[derive(Debug)]
struct Spent {
    since: Instant,
    by_user: HashMap<u32, Duration>,
    all: Duration,
}

impl Spent {
    fn new(since: Instant) -> Self {
        Self { since, by_user: HashMap::default(), all: Duration::ZERO }
    }
}

impl LongLists {
    pub(super) fn new(limits: Limits) -> Self {
        Self { limits, spent: Mutex::new(Spent::new(Instant::now())) }
    }

    /// Reads a list. The limits of users apply to one of this user.
    ///
    /// # Errors
    /// Those of the system; `TimedOut` if a limit was reached.
    pub(super) fn read(&self, user: Option<u32>, file: File) -> io::Result<Vec<u8>> {
        let Some(user) = user else { return read(file, self.limits.list).0 };
        let left = self.left(user, Instant::now());
        if left.is_zero() {
            return Err(io::ErrorKind::TimedOut.into());
        }
        let (read, cost) = read(file, left);
        let mut spent = self.spent.lock().unwrap_or_else(PoisonError::into_inner);
        spent.all += cost;
        *spent.by_user.entry(user).or_default() += cost;
        read
    }

    /// Returns how long the next list of a user may take.
    fn left(&self, user: u32, now: Instant) -> Duration {
        let Limits { list, user: of_user, all } = self.limits;
        let mut spent = self.spent.lock().unwrap_or_else(PoisonError::into_inner);
        if now.saturating_duration_since(spent.since) >= PERIOD {
            *spent = Spent::new(now);
        }
        let by_user = spent.by_user.get(&user).copied().unwrap_or_default();
        list.min(of_user.saturating_sub(by_user)).min(all.saturating_sub(spent.all))
    }
}

/// Reads a list, at most [`MAX_BYTES`] of it. Also returns the time that counts.
fn read(mut list: impl Read, limit: Duration) -> (io::Result<Vec<u8>>, Duration) {
    let (began, began_cpu) = (Instant::now(), cpu_time());
    // Waiting counts in part.
    let cost = || cpu_time().saturating_sub(began_cpu).max(began.elapsed() / MAX_WAIT);
    let mut bytes = Vec::new();
    let mut part = vec![0; PART];
    let result = loop {
        match list.read(&mut part) {
            Ok(0) => break Ok(()),
            Ok(count) => bytes.extend_from_slice(&part[..count]),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => break Err(error),
        }
        if bytes.len() >= MAX_BYTES {
            bytes.truncate(MAX_BYTES);
            break Ok(());
        }
        if cost() > limit {
            break Err(io::ErrorKind::TimedOut.into());
        }
    };
    (result.map(|()| bytes), cost())
}

/// Returns the processor time of this thread.
fn cpu_time() -> Duration {
    clock_gettime(ClockId::ThreadCPUTime).try_into().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A list that takes a millisecond of processor time for each part.
    struct Slow(u32);

    impl Read for Slow {
        fn read(&mut self, to: &mut [u8]) -> io::Result<usize> {
            let began = cpu_time();
            while cpu_time() - began < Duration::from_millis(1) {}
            self.0 = self.0.saturating_sub(1);
            Ok(if self.0 == 0 { 0 } else { to.len() })
        }
    }

    #[test]
    fn reading_is_limited_by_processor_time_and_size() {
        let length =
            |parts, limit| read(Slow(parts), Duration::from_millis(limit)).0.map(|bytes| bytes.len()).map_err(|error| error.kind());
        assert_eq!(length(4, 1000), Ok(3 * PART));
        assert_eq!(length(u32::MAX, 20), Err(io::ErrorKind::TimedOut));
        let (endless, cost) = read(io::repeat(7), Duration::from_secs(60));
        assert!(endless.unwrap().len() == MAX_BYTES && !cost.is_zero());
    }

    /// While the list is locked, reading takes no processor time.
    #[test]
    fn waiting_counts_in_part() {
        struct Locked(usize);
        impl Read for Locked {
            fn read(&mut self, _to: &mut [u8]) -> io::Result<usize> {
                std::thread::sleep(Duration::from_millis(5));
                self.0 = self.0.saturating_sub(1);
                Ok(self.0.min(1))
            }
        }
        let (read, cost) = read(Locked(40), Duration::from_millis(5));
        assert!(read.is_err_and(|error| error.kind() == io::ErrorKind::TimedOut) && cost >= Duration::from_millis(5), "{cost:?}");
    }

    #[test]
    fn each_user_and_all_together_have_a_limit_in_a_minute() {
        let ms = Duration::from_millis;
        let lists = LongLists::new(Limits { list: ms(30), user: ms(100), all: ms(170) });
        let now = Instant::now();
        let left = |user| lists.left(user, now);
        let spend = |user, time| {
            let mut spent = lists.spent.lock().unwrap();
            spent.all += time;
            *spent.by_user.entry(user).or_default() += time;
        };
        assert_eq!(left(1), ms(30));
        spend(1, ms(80));
        assert_eq!((left(1), left(2)), (ms(20), ms(30)));
        spend(1, ms(80));
        assert_eq!((left(1), left(2)), (ms(0), ms(10)));
        spend(2, ms(10));
        assert_eq!((left(2), left(3)), (ms(0), ms(0)));
        let open = || File::open("/proc/self/maps").unwrap();
        assert_eq!(lists.read(Some(3), open()).unwrap_err().kind(), io::ErrorKind::TimedOut);
        assert!(!lists.read(None, open()).unwrap().is_empty(), "our own are read in any case");
        assert_eq!(lists.left(1, now + 2 * PERIOD), ms(30));
    }

    #[test]
    fn reading_counts() {
        let lists = LongLists::new(Limits { list: Duration::from_secs(1), user: Duration::from_secs(1), all: Duration::from_secs(1) });
        assert!(!lists.read(Some(1), File::open("/proc/self/maps").unwrap()).unwrap().is_empty());
        assert!(lists.left(1, Instant::now()) < Duration::from_secs(1));
    }
}
