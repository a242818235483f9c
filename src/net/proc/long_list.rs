//! Lists of the kernel that can take long to read: the mounts and the memory mappings of a process.
//!
//! In a user namespace of their own, users can mount 100,000 file systems on top of each other. For each path on the last one, the kernel passes
//! through all of them, so that such a list takes minutes of processor time. So reading is limited, and a list that reached the limit is not read again
//! for a while.

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
/// Time for which a list that takes too long is not read again.
const PAUSE: Duration = Duration::from_secs(60);
/// Maximum number of lists remembered.
const MAX_REMEMBERED: usize = 1024;

/// What the lists that take too long have in common.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(in crate::net) enum ListOwner {
    /// A user, by ID.
    User(u32),
    /// A mount namespace, by its name in /proc.
    Namespace(Vec<u8>),
}

/// The owners of lists that take too long, and until when theirs are not read.
#[derive(Debug, Default)]
pub(super) struct SlowLists(Mutex<HashMap<ListOwner, Instant>>);

impl SlowLists {
    /// Reads a list of this owner, with a limit of processor time.
    ///
    /// # Errors
    /// Those of the system; `TimedOut` if it takes too long, or did so within the last minute.
    pub(super) fn read(&self, owner: Option<ListOwner>, file: File, limit: Duration) -> io::Result<Vec<u8>> {
        let slow = || self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if owner.as_ref().is_some_and(|owner| slow().get(owner).is_some_and(|until| Instant::now() < *until)) {
            return Err(io::ErrorKind::TimedOut.into());
        }
        let read = read(file, limit);
        if let (Err(error), Some(owner)) = (&read, owner)
            && error.kind() == io::ErrorKind::TimedOut
        {
            let (mut slow, now) = (slow(), Instant::now());
            if slow.len() >= MAX_REMEMBERED {
                slow.retain(|_, until| now < *until);
            }
            if slow.len() < MAX_REMEMBERED {
                slow.insert(owner, now + PAUSE);
            }
        }
        read
    }
}

/// Reads a list, at most [`MAX_BYTES`] of it.
fn read(mut list: impl Read, limit: Duration) -> io::Result<Vec<u8>> {
    let (began, began_cpu) = (Instant::now(), cpu_time());
    let mut bytes = Vec::new();
    let mut part = vec![0; PART];
    while bytes.len() < MAX_BYTES {
        let count = match list.read(&mut part) {
            Ok(0) => break,
            Ok(count) => count,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) => return Err(error),
        };
        bytes.extend_from_slice(&part[..count]);
        if cpu_time().saturating_sub(began_cpu) > limit || began.elapsed() > limit * MAX_WAIT {
            return Err(io::ErrorKind::TimedOut.into());
        }
    }
    bytes.truncate(MAX_BYTES);
    Ok(bytes)
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
        let length = |parts, limit| read(Slow(parts), Duration::from_millis(limit)).map(|bytes| bytes.len()).map_err(|error| error.kind());
        assert_eq!(length(4, 1000), Ok(3 * PART));
        assert_eq!(length(u32::MAX, 20), Err(io::ErrorKind::TimedOut));
        let endless = read(io::repeat(7), Duration::from_secs(60)).unwrap();
        assert_eq!(endless.len(), MAX_BYTES);
    }

    #[test]
    fn slow_list_is_not_read_again_at_once() {
        let slow = SlowLists::default();
        let open = || File::open("/proc/self/maps").unwrap();
        let read = |owner: &ListOwner, limit| slow.read(Some(owner.clone()), open(), limit).map(drop).map_err(|error| error.kind());
        let (user, namespace) = (ListOwner::User(7), ListOwner::Namespace(b"mnt:[7]".to_vec()));
        let (long, late) = (Duration::from_secs(60), Err(io::ErrorKind::TimedOut));
        assert_eq!((read(&user, long), read(&user, Duration::ZERO)), (Ok(()), late));
        assert_eq!((read(&user, long), read(&namespace, long)), (late, Ok(())));
        // One without an owner is read each time.
        assert!(slow.read(None, open(), Duration::ZERO).is_err() && slow.read(None, open(), long).is_ok());
    }
}
