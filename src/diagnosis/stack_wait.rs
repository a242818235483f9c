//! What the threads with a stack wait for.

use super::culprit::is_own;
use super::locks::VERSIONS_HIDING_LOCKS;
use crate::analysis::{StackGroup, WaitReason};

/// What threads wait for that may be blocked by one another.
const LOCK: &str = "lock";
/// A lock, or native code called by the method.
const LOCK_OR_NATIVE: &str = "lock?";

/// Returns what the threads of a stack wait for, given the wait of all of them in the kernel, such as `futex`, and the major version of the
/// runtime; `None` if they run or that is unknown.
pub fn wait_of_stack(group: &StackGroup, kernel: Option<&'static str>, runtime: Option<u32>) -> Option<&'static str> {
    const FUTEX: &str = "futex";
    match group.wait_reason()? {
        WaitReason::Runtime => {
            let hides_locks = runtime.is_none_or(|major| VERSIONS_HIDING_LOCKS.contains(&major));
            let is_hidden = kernel == Some(FUTEX) && hides_locks && group.frames.first().is_some_and(|method| is_own(method));
            if is_hidden { Some(LOCK_OR_NATIVE) } else { kernel }
        }
        reason => Some(reason.name()),
    }
}

/// Returns whether a wait, as returned by [`wait_of_stack`], is or may be one for a lock.
pub fn may_be_lock(wait: Option<&str>) -> bool {
    matches!(wait, Some(LOCK | LOCK_OR_NATIVE))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_are_named_by_stack_and_kernel() {
        for (frames, kernel, runtime, expected) in [
            (&["System.Threading.Monitor.Enter_Slowpath", "App.Run"][..], Some("futex"), 10, Some("lock")),
            (&["System.Threading.Thread.Sleep", "App.Run"], Some("futex"), 9, Some("sleep")),
            (&["App.Run"], Some("futex"), 9, Some("lock?")),
            (&["App.Run"], Some("futex"), 10, Some("futex")),
            (&["App.Run"], Some("disk"), 9, Some("disk")),
            (&["App.Run"], None, 9, None),
            (&["System.IO.File.Open", "App.Run"], Some("futex"), 9, Some("futex")),
            (&["Interop+Sys.Write", "App.Run"], Some("io"), 9, Some("io")),
            (&[], Some("futex"), 9, None),
        ] {
            let frames: Vec<_> = frames.iter().map(|frame| (*frame).to_owned()).collect();
            let group = StackGroup { frames, ..StackGroup::default() };
            let found = wait_of_stack(&group, kernel, Some(runtime));
            assert_eq!(found, expected, "{:?} {kernel:?}", group.frames);
            assert_eq!(may_be_lock(found), found.is_some_and(|wait| wait.starts_with("lock")));
        }
    }
}
