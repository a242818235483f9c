//! What threads wait for, according to the stacks in which they wait.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use foldhash::HashMap;

use super::super::Origin;
use super::profile::Cell;
use super::{Profile, ProfileFrame, StackGroup};
use crate::nettrace::ThreadId;

listed! {
/// Why a thread waits for another one (on Linux: in a futex, which the runtime uses for all of these).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum WaitReason {
    /// A lock held by another thread: `Monitor.Enter`, `Lock.Enter`, a reader-writer lock.
    Lock => "lock",
    /// A signal from another thread: `Monitor.Wait`, a wait handle, a semaphore, a task, the end of a thread.
    Signal => "signal",
    /// A period of time: `Thread.Sleep`.
    Sleep => "sleep",
    /// Work: an idle thread of the thread pool or of the library itself.
    Idle => "idle",
    /// The end of a garbage collection. Known from runtime events only, not from stacks.
    Gc => "gc",
    /// Something in the runtime shown neither by the stack nor by an event: before .NET 10 this includes a contended `Monitor.Enter`.
    Runtime => "runtime",
}
/// Returns the name of the reason.
pub fn name(self) -> &'static str;
}

/// Prefixes of the names of waiting methods, by reason. The first match counts.
const METHODS: &[(WaitReason, &[&str])] = &[
    (
        WaitReason::Idle,
        &[
            "System.Threading.LowLevelLifoSemaphore.",
            "System.Threading.PortableThreadPool.GateThread.",
            "System.Threading.PortableThreadPool.WorkerThread.",
            "System.Threading.PortableThreadPool.WaitThread.",
            "System.Threading.TimerQueue.TimerThread",
            "System.Diagnostics.Tracing.CounterGroup.PollForValues",
            "System.Diagnostics.Metrics.AggregationManager.CollectWorker",
        ],
    ),
    (
        WaitReason::Lock,
        &[
            "System.Threading.Monitor.Enter",
            "System.Threading.Monitor.TryEnter",
            "System.Threading.Monitor.ReliableEnter",
            "System.Threading.Lock.",
            "System.Threading.ReaderWriterLock",
            "System.Threading.SpinLock.",
        ],
    ),
    (WaitReason::Sleep, &["System.Threading.Thread.Sleep", "System.Threading.Thread.UninterruptibleSleep"]),
    (
        WaitReason::Signal,
        &[
            "System.Threading.Monitor.",
            "System.Threading.Condition.",
            "System.Threading.WaitHandle.",
            "System.Threading.ManualResetEvent",
            "System.Threading.AutoResetEvent.",
            "System.Threading.SemaphoreSlim.",
            "System.Threading.CountdownEvent.",
            "System.Threading.Barrier.",
            "System.Threading.Thread.Join",
            "System.Threading.Tasks.Task.",
        ],
    ),
];

/// Maximum number of managed frames examined: waiting methods of the library have a few layers.
const CALLERS: usize = 12;

/// Waits of one thread in nanoseconds: by the kind determined from kernel functions, and the reason determined from methods.
pub type Waits<K> = BTreeMap<(Option<K>, Option<WaitReason>), u64>;

/// Threads blocked at the same place for the whole observation period.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StuckThreads {
    /// The waiting method, without those of the lock itself. Not sanitized.
    pub method: String,
    /// Number of threads.
    pub threads: usize,
    /// Whether the stack shows a lock. Before .NET 10 it may not: then it is a lock, or native code called by the method.
    pub is_lock: bool,
}

impl Profile {
    /// Returns the places where threads are blocked, as far as known by locks, for at least this many nanoseconds; most threads first. `counts`
    /// excludes threads whose samples belong to several waits.
    pub fn stuck_threads(&self, least_ns: u64, counts: impl Fn(ThreadId) -> bool) -> Vec<StuckThreads> {
        let mut places = BTreeMap::<(bool, &str), usize>::new();
        let is_stuck = |cell: &&Cell| cell.count.waiting_ns >= least_ns && counts(self.threads[cell.thread as usize]);
        for cell in self.cells.iter().filter(is_stuck) {
            let is_lock = match self.wait_reason(cell.node) {
                Some(WaitReason::Lock) => true,
                Some(WaitReason::Runtime) => false,
                _ => continue,
            };
            let frames = self.frames_from(cell.node).filter(|frame| frame.origin == Origin::Managed);
            let mut callers = frames.skip_while(|frame| is_lock && reason_of(&frame.name).is_some());
            if let Some(caller) = callers.next() {
                *places.entry((is_lock, &caller.name)).or_default() += 1;
            }
        }
        let stuck = |((is_lock, method), threads): ((bool, &str), usize)| StuckThreads { method: method.to_owned(), threads, is_lock };
        let mut stuck_threads: Vec<_> = places.into_iter().map(stuck).collect();
        stuck_threads.sort_by_key(|stuck| Reverse(stuck.threads));
        stuck_threads
    }

    /// Returns each thread's time by what it waits for, in a profile of waits. `kind` receives the kernel functions, innermost first.
    pub fn waits<K: Copy + Ord>(&self, kind: impl Fn(&[&str]) -> Option<K>) -> HashMap<ThreadId, Waits<K>> {
        let mut by_node = vec![None; self.nodes.len()];
        let mut found = HashMap::<ThreadId, Waits<K>>::default();
        for cell in &self.cells {
            let why = *by_node[cell.node as usize].get_or_insert_with(|| {
                let kernel = self.frames_from(cell.node).filter(|frame| frame.origin == Origin::Kernel);
                (kind(&kernel.map(|frame| frame.name.as_str()).collect::<Vec<_>>()), self.wait_reason(cell.node))
            });
            let sum = found.entry(self.threads[cell.thread as usize]).or_default().entry(why).or_default();
            *sum = sum.saturating_add(cell.count.all_ns());
        }
        found
    }

    /// Returns a copy without the waits of idle threads, and the nanoseconds of those.
    #[must_use]
    pub fn without_idle(&self) -> (Self, u64) {
        let mut busy = self.clone();
        let idle = busy.cells.extract_if(.., |cell| self.wait_reason(cell.node) == Some(WaitReason::Idle));
        let idle_ns = idle.fold(0_u64, |sum, cell| sum.saturating_add(cell.count.all_ns()));
        (busy, idle_ns)
    }

    /// Returns the frames of a stack, innermost first.
    fn frames_from(&self, node: u32) -> impl Iterator<Item = &ProfileFrame> {
        self.path(node).filter_map(|node| self.frame_of(node))
    }

    /// Returns the reason for which a thread with this stack waits; `None` if it has no methods.
    fn wait_reason(&self, node: u32) -> Option<WaitReason> {
        reason_in(self.frames_from(node).filter(|frame| frame.origin == Origin::Managed).map(|frame| frame.name.as_str()))
    }
}

impl StackGroup {
    /// Returns the reason for which the threads wait, if they do; `None` if the stack has no methods.
    pub fn wait_reason(&self) -> Option<WaitReason> {
        reason_in(self.frames.iter().map(String::as_str))
    }

    /// Returns what all of the threads wait for, given what each waits for.
    pub fn common_wait(&self, wait: impl Fn(u64) -> Option<&'static str>) -> Option<&'static str> {
        let mut waits = self.threads.iter().map(|(thread, _)| wait(thread.in_process()?));
        let first = waits.next()??;
        waits.all(|wait| wait == Some(first)).then_some(first)
    }
}

/// Returns the reason for which a thread in these methods waits, innermost first, if it does; `None` if there are none.
fn reason_in<'a>(methods: impl Iterator<Item = &'a str>) -> Option<WaitReason> {
    let mut methods = methods.take(CALLERS).peekable();
    methods.peek()?;
    let mut reasons = methods.map_while(reason_of);
    // An idle thread waits for a signal of its own library, which is visible in its callers.
    let Some(first) = reasons.next() else { return Some(WaitReason::Runtime) };
    Some(reasons.fold(first, |reason, of_caller| match (reason, of_caller) {
        (WaitReason::Signal | WaitReason::Sleep, WaitReason::Idle | WaitReason::Lock) => of_caller,
        _ => reason,
    }))
}

/// Returns the reason for which a method waits; `None` if it does not wait.
fn reason_of(method: &str) -> Option<WaitReason> {
    let name = method.replace('+', ".");
    METHODS.iter().find(|(_, starts)| starts.iter().any(|start| name.starts_with(start))).map(|(reason, _)| *reason)
}

#[cfg(test)]
mod tests {
    use super::super::{CpuSamples, CpuStack};
    use super::*;
    use crate::analysis::{NativeFunction, Symbols};

    /// Returns the waits of a thread with this stack: functions with their origins, innermost first.
    fn waits(stack: &[(&str, Origin)]) -> Waits<&'static str> {
        let mut samples = CpuSamples::of_waits();
        let user: Vec<_> = (1..=stack.len() as u64).map(|place| place * 100 + 1).collect();
        samples.add_time(&CpuStack { thread: ThreadId::of(7), at: 0, kernel: &[], user: &user, missing: None }, 500);
        let mut symbols = Symbols::default();
        // The root has no address.
        let addresses: Vec<_> = samples.addresses().into_iter().filter(|address| *address > 0).collect();
        assert_eq!(addresses.len(), stack.len());
        for (address, (name, origin)) in addresses.into_iter().zip(stack) {
            symbols.add_native(&NativeFunction { address, start: address, size: 1, name, image: "", origin: *origin });
        }
        let found = samples.profile(&symbols).waits(|functions| functions.contains(&"futex_wait").then_some("futex"));
        assert_eq!(found.len(), 1);
        found[&ThreadId::of(7)].clone()
    }

    #[test]
    fn wait_reasons_are_derived_from_methods() {
        use WaitReason::{Idle, Lock, Runtime, Signal, Sleep};
        let (kernel, native) = (("futex_wait", Origin::Kernel), ("[libcoreclr.so]", Origin::Native));
        for (methods, reason) in [
            (&["System.Threading.Thread.SleepInternal", "System.Threading.Thread.Sleep", "App.Run"][..], Some(Sleep)),
            (&["System.Threading.Monitor.Enter_Slowpath(Object)", "App.Run"], Some(Lock)),
            (&["System.Threading.Monitor.Wait(object, int)", "App.Run"], Some(Signal)),
            (&["System.Threading.WaitHandle.WaitOneNoCheck", "System.Threading.Lock.TryEnterSlow", "App.Run"], Some(Lock)),
            (
                &[
                    "System.Threading.LowLevelLifoSemaphore.WaitNative",
                    "System.Threading.PortableThreadPool+WorkerThread.WorkerThreadStart",
                ],
                Some(Idle),
            ),
            (&["System.Threading.WaitHandle.WaitOneNoCheck", "System.Threading.PortableThreadPool+GateThread.GateThreadStart"], Some(Idle)),
            // A waiting work item does not make the thread idle.
            (
                &[
                    "System.Threading.Monitor.Wait",
                    "System.Threading.Tasks.Task.SpinThenBlockingWait",
                    "App.Run",
                    "System.Threading.PortableThreadPool+WorkerThread.WorkerThreadStart",
                ],
                Some(Signal),
            ),
            (&["App.Run"], Some(Runtime)),
            (&[], None),
        ] {
            let managed = methods.iter().map(|name| (*name, Origin::Managed));
            let stack: Vec<_> = [kernel, native].into_iter().chain(managed).collect();
            assert_eq!(waits(&stack), Waits::from([((Some("futex"), reason), 500)]), "{methods:?}");
        }
        assert_eq!(waits(&[("App.Run", Origin::Managed)]), Waits::from([((None, Some(Runtime)), 500)]));
    }

    #[test]
    fn idle_threads_are_excluded() {
        let mut samples = CpuSamples::of_waits();
        for (thread, user, ns) in [(7, &[101, 201][..], 500), (8, &[101, 301], 20)] {
            samples.add_time(&CpuStack { thread: ThreadId::of(thread), at: 0, kernel: &[], user, missing: None }, ns);
        }
        let mut symbols = Symbols::default();
        let names = ["", "System.Threading.WaitHandle.WaitOneNoCheck", "System.Threading.TimerQueue.TimerThread", "App.Run"];
        for address in samples.addresses() {
            let name = names[(address / 100) as usize];
            symbols.add_native(&NativeFunction { address, start: address, size: 1, name, image: "", origin: Origin::Managed });
        }
        let (busy, idle_ns) = samples.profile(&symbols).without_idle();
        assert_eq!((busy.count(crate::analysis::SampleFilter::ALL).samples().all_ns(), idle_ns), (20, 500));
    }
}
