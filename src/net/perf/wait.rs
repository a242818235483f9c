//! What threads do while off a processor.

use std::time::Duration;

use crate::model::CpuThread;

listed! {
/// What a blocked thread waits for, judging by the kernel function that it sleeps in (`wchan` in `proc(5)`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Wait {
    /// A futex: a lock, `Monitor.Wait`, a semaphore, `Thread.Sleep`, or an idle thread pool worker. The runtime uses futexes for all of these.
    Futex => "futex",
    /// Readiness of one of several files: epoll, poll or select.
    Poll => "poll",
    /// A pipe, a socket or a terminal.
    Io => "io",
    /// A block device, or a file on one.
    Disk => "disk",
    /// A sleep in the kernel (`nanosleep`).
    Sleep => "sleep",
    /// Memory management: the lock of the address space.
    Memory => "memory",
    /// Another process, or a signal.
    Process => "process",
    /// Stopped by a debugger or a signal.
    Stopped => "stopped",
    /// Anything else.
    Other => "other",
    /// Not visible.
    Unknown => "unknown",
}
/// Short name.
pub fn word(self) -> &'static str;
}

/// Prefixes of the kernel's function names, Linux 4.14 to 6.18.
const FUNCTIONS: &[(Wait, &[&str])] = &[
    (Wait::Futex, &["futex", "do_futex", "__futex", "rt_mutex"]),
    (Wait::Poll, &["ep_poll", "do_epoll", "poll_schedule", "do_poll", "do_sys_poll", "do_select"]),
    (
        Wait::Io,
        &[
            "pipe_",
            "anon_pipe_",
            "wait_for_partner",
            "fifo_open",
            "unix_",
            "sk_",
            "inet_",
            "tcp_",
            "wait_woken",
            "skb_wait",
            "__skb_wait",
            "n_tty_",
            "io_cqring",
            "eventfd_",
            "signalfd_",
            "inotify_",
        ],
    ),
    (
        Wait::Disk,
        &[
            "io_schedule",
            "folio_wait",
            "wait_on_page",
            "wait_on_buffer",
            "__lock_page",
            "__folio_lock",
            "blk_",
            "rq_qos",
            "jbd2_",
            "ext4_",
            "xfs_",
            "btrfs_",
        ],
    ),
    (Wait::Sleep, &["hrtimer_nanosleep", "do_nanosleep", "common_nsleep"]),
    (Wait::Memory, &["rwsem_", "down_read", "down_write", "membarrier", "userfaultfd"]),
    (Wait::Process, &["do_wait", "kernel_wait", "do_sigtimedwait", "sigsuspend", "do_sigsuspend", "pause"]),
    (Wait::Stopped, &["ptrace_", "do_signal_stop", "get_signal", "do_freezer", "__refrigerator", "do_jobctl"]),
];

/// Prefixes of the functions of system calls: of Linux 4.17 and later, and of earlier versions.
const SYSTEM_CALLS: [&str; 5] = ["__do_sys_", "__x64_sys_", "__arm64_sys_", "sys_", "SyS_"];

impl Wait {
    /// Classifies a thread off its processor by its kernel function, like [`Self::of`]. Until a function of `any` thread has been visible, this
    /// one need not be awake: without the permission to trace a process, the kernel hides them.
    pub(super) fn seen(function: &[u8], any: &mut bool) -> Option<Self> {
        let wait = Self::of(function);
        *any |= wait.is_some();
        if *any { wait } else { Some(Self::Unknown) }
    }

    /// Returns the name of what a thread waits for that sleeps in this kernel function, if it is known.
    pub(in crate::net) fn name_of(function: &[u8]) -> Option<&'static str> {
        Self::of(function).filter(|wait| *wait != Self::Other).map(Self::word)
    }

    /// Classifies a thread sleeping in this kernel function; `None` without a function: it does not sleep, or the function is not visible.
    fn of(function: &[u8]) -> Option<Self> {
        let function = SYSTEM_CALLS.iter().find_map(|prefix| function.strip_prefix(prefix.as_bytes())).unwrap_or(function);
        if function.is_empty() || function == b"0" {
            return None;
        }
        let begins = |starts: &&[&str]| starts.iter().any(|start| function.starts_with(start.as_bytes()));
        Some(FUNCTIONS.iter().find(|(_, starts)| begins(starts)).map_or(Self::Other, |(wait, _)| *wait))
    }

    /// Classifies a thread by its innermost kernel functions.
    pub fn of_functions(innermost_first: &[&str]) -> Option<Self> {
        // The kernel's general sleep functions are `Other`.
        innermost_first.iter().find_map(|function| Self::of(function.as_bytes()).filter(|wait| *wait != Self::Other))
    }
}

/// Accounts the off-CPU time of a thread by its context switches. Times are in nanoseconds on CLOCK_MONOTONIC.
#[derive(Debug)]
pub(super) struct OffCpuClock {
    began: u64,
    /// When it was last switched out.
    left: u64,
    state: State,
    runnable_ns: u64,
    /// Time between observations, by the kind of wait observed.
    seen_ns: [u64; Wait::ALL.len()],
    /// The same, for a thread that was observed awake.
    awake_ns: u64,
    observed_at: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    /// No switch has been recorded yet.
    New,
    Running,
    /// Since this time.
    Runnable(u64),
    /// In this kind of wait, once observed.
    Blocked(Option<Wait>),
}

impl OffCpuClock {
    pub(super) fn new(now: u64) -> Self {
        Self { began: now, left: now, state: State::New, runnable_ns: 0, seen_ns: [0; _], awake_ns: 0, observed_at: now }
    }

    /// Records that the thread is back on a processor; returns since when it was blocked, if it was.
    pub(super) fn switched_in(&mut self, at: u64) -> Option<u64> {
        let since = match self.state {
            State::Runnable(since) => {
                self.runnable_ns += at.saturating_sub(since);
                None
            }
            State::Running => None,
            State::New | State::Blocked(_) => Some(self.left).filter(|since| *since < at),
        };
        self.state = State::Running;
        since
    }

    pub(super) fn switched_out(&mut self, at: u64, is_runnable: bool) {
        self.left = at;
        self.state = if is_runnable { State::Runnable(at) } else { State::Blocked(None) };
    }

    /// Records what the thread waits for now, if anything. `wait` is called until it has identified a wait, but not again during that wait.
    pub(super) fn observe(&mut self, now: u64, wait: impl FnOnce() -> Option<Wait>) {
        let elapsed = now.saturating_sub(std::mem::replace(&mut self.observed_at, now));
        let seen = match self.state {
            State::Running | State::Runnable(_) => return,
            State::Blocked(Some(wait)) => Some(wait),
            State::Blocked(None) | State::New => wait(),
        };
        match seen {
            Some(wait) => {
                self.state = State::Blocked(seen);
                self.seen_ns[wait as usize] += elapsed;
            }
            None if self.state == State::New => {}
            None => self.awake_ns += elapsed,
        }
    }

    /// Returns the times of the thread until now. The sum of the waits is exact; its division is sampled every 20 ms.
    pub(super) fn times(&self, now: u64, cpu: Duration) -> CpuThread {
        let wall = now.saturating_sub(self.began);
        let off = wall.saturating_sub(u64::try_from(cpu.as_nanos()).unwrap_or(u64::MAX));
        let since = if let State::Runnable(since) = self.state { now.saturating_sub(since) } else { 0 };
        let preempted = (self.runnable_ns + since).min(off);
        let others = off - preempted;
        let seen: u64 = self.seen_ns.iter().sum::<u64>() + self.awake_ns;
        let share = |ns: u64| (u128::from(others) * u128::from(ns) / u128::from(seen.max(1))) as u64;
        let runnable = preempted + share(self.awake_ns);
        let blocked = off - runnable;
        let mut waits: Vec<_> = Wait::ALL.into_iter().map(|wait| (wait, share(self.seen_ns[wait as usize]))).collect();
        // The rounding remainder, or everything if no wait was observed.
        let rest = blocked - waits.iter().map(|(_, ns)| ns).sum::<u64>();
        let takes_rest = waits.iter().rposition(|(_, ns)| *ns > 0).unwrap_or(Wait::Unknown as usize);
        waits[takes_rest].1 += rest;
        waits.retain(|(_, ns)| *ns > 0);
        waits.sort_by_key(|(_, ns)| std::cmp::Reverse(*ns));
        let waits = waits.into_iter().map(|(wait, ns)| (wait.word(), Duration::from_nanos(ns))).collect();
        let [wall, runnable] = [wall, runnable].map(Duration::from_nanos);
        CpuThread { cpu, wall, runnable, waits, ..CpuThread::default() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kernel_functions_map_to_wait_kinds() {
        for (function, wait) in [
            ("futex_do_wait", Some(Wait::Futex)),
            ("futex_wait_queue_me", Some(Wait::Futex)),
            ("poll_schedule_timeout.constprop.0", Some(Wait::Poll)),
            ("ep_poll", Some(Wait::Poll)),
            ("anon_pipe_read", Some(Wait::Io)),
            ("hrtimer_nanosleep", Some(Wait::Sleep)),
            ("folio_wait_bit_common", Some(Wait::Disk)),
            ("ptrace_stop", Some(Wait::Stopped)),
            ("__do_sys_pause", Some(Wait::Process)),
            ("sys_pause", Some(Wait::Process)),
            ("__x64_sys_futex", Some(Wait::Futex)),
            ("what_is_new", Some(Wait::Other)),
            ("0", None),
            ("", None),
        ] {
            assert_eq!(Wait::of(function.as_bytes()), wait, "{function}");
        }
    }

    fn times(clock: &OffCpuClock, now: u64, cpu: Duration) -> (Duration, Duration, Vec<(&'static str, Duration)>) {
        let CpuThread { wall, runnable, waits, .. } = clock.times(now, cpu);
        (wall, runnable, waits)
    }

    #[test]
    fn hidden_kernel_functions_do_not_count_as_runnable() {
        let (mut any, mut clock, ms) = (false, OffCpuClock::new(0), Duration::from_millis);
        for at in [10_000_000, 20_000_000] {
            clock.switched_out(at, false);
            clock.observe(at, || Wait::seen(b"0", &mut any));
        }
        assert_eq!(times(&clock, 20_000_000, ms(0)), (ms(20), ms(0), vec![("unknown", ms(20))]));
        assert_eq!(["poll_schedule_timeout", "0"].map(|function| Wait::seen(function.as_bytes(), &mut any)), [Some(Wait::Poll), None]);
    }

    /// Such as a thread that runs from the start, which is not seen to be switched.
    #[test]
    fn new_thread_is_not_awake_before_it_is_known_to_be() {
        let (ms, mut clock) = (Duration::from_millis, OffCpuClock::new(0));
        clock.observe(10_000_000, || None);
        assert_eq!(times(&clock, 20_000_000, ms(0)), (ms(20), ms(0), vec![("unknown", ms(20))]));
    }

    #[test]
    fn wait_without_duration_is_none() {
        let mut clock = OffCpuClock::new(0);
        let mut wait = |out, back| {
            clock.switched_out(out, false);
            clock.switched_in(back)
        };
        assert_eq!([wait(5, 5), wait(6, 9), wait(12, 11)], [None, Some(6), None]);
    }

    #[test]
    fn on_and_off_cpu_times_add_up_to_wall_time() {
        let ms = Duration::from_millis;
        let mut clock = OffCpuClock::new(1_000_000_000);
        let at = |ms: u64| 1_000_000_000 + ms * 1_000_000;
        assert_eq!(times(&clock, at(7), Duration::ZERO), (ms(7), ms(0), vec![("unknown", ms(7))]));
        // Blocked from the start.
        clock.observe(at(10), || Some(Wait::Io));
        clock.observe(at(20), || panic!("it is the same wait"));
        clock.switched_in(at(25));
        clock.observe(at(30), || panic!("it runs"));
        clock.switched_out(at(30), true);
        clock.switched_in(at(40));
        clock.switched_out(at(45), false);
        clock.observe(at(50), || Some(Wait::Futex));
        assert_eq!(times(&clock, at(80), ms(10)), (ms(80), ms(10), vec![("futex", ms(30)), ("io", ms(30))]));
        clock.switched_out(at(80), true);
        assert_eq!(clock.times(at(85), ms(10)).runnable, ms(15));
        // A processor time beyond the wall time is tolerated.
        assert_eq!(times(&clock, at(85), ms(1000)), (ms(85), ms(0), Vec::new()));
        // Awake, but without a processor.
        let mut clock = OffCpuClock::new(at(0));
        clock.switched_out(at(0), false);
        clock.observe(at(10), || Some(Wait::Sleep));
        clock.switched_out(at(10), false);
        clock.observe(at(20), || None);
        assert_eq!(times(&clock, at(20), ms(0)), (ms(20), ms(10), vec![("sleep", ms(10))]));
    }
}
