use std::path::Path;
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc;
use std::thread;

use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

use super::*;

/// Samples this process by its threads; `None` if the kernel forbids it, as in most containers.
fn sample_own_process() -> Option<CpuSampler> {
    sample_own_process_by(false)
}

fn sample_own_process_by(by_processor: bool) -> Option<CpuSampler> {
    let (proc, pid) = (Proc::open(Path::new("/proc")).unwrap(), std::process::id());
    let key = ProcessKey { pid, started: proc.stat(pid).unwrap().starttime };
    CpuSampler::start(Arc::new(proc), key, Frequency::MAX, by_processor).inspect_err(|error| eprintln!("skipped: {error}")).ok()
}

#[test]
fn threads_exited_before_sampling_are_counted() {
    let Some(mut sampler) = sample_own_process() else { return };
    assert_eq!(sampler.loss().short_threads, 0);
    for _ in 0..20 {
        thread::spawn(|| {}).join().unwrap();
    }
    sampler.drain(|_| {});
    assert!(sampler.loss().short_threads >= 20, "{:?}", sampler.loss());
}

#[test]
fn processors_are_sampled_if_permitted() {
    let Some(mut sampler) = sample_own_process_by(true).filter(|sampler| sampler.processors.is_some()) else { return };
    let spin = || {
        let began = Instant::now();
        while began.elapsed() < Duration::from_millis(50) {}
        rustix::thread::gettid().as_raw_nonzero().get().unsigned_abs()
    };
    // These end before their events could be opened.
    let short: Vec<_> = (0..4).map(|_| u64::from(thread::spawn(spin).join().unwrap())).collect();
    let mut other = Command::new("sh").args(["-c", "i=0; while [ $i -lt 50000 ]; do i=$((i+1)); done"]).spawn().unwrap();
    assert!(other.wait().unwrap().success());
    let mut samples = BTreeMap::new();
    sampler.drain(|sample| *samples.entry(sample.thread).or_insert(0) += u64::from(sample.waited_ns.is_none()));
    assert!(short.iter().all(|thread| samples.get(thread).is_some_and(|count| (1..=60).contains(count))), "{short:?} {samples:?}");
    assert_eq!((sampler.loss().short_threads, sampler.loss().lost), (0, 0));
    assert!(!samples.contains_key(&u64::from(other.id())), "another process was sampled: {samples:?}");
}

#[test]
#[cfg(target_arch = "x86_64")]
fn raw_stack_of_a_running_thread_is_recorded_on_request() {
    let Some(mut sampler) = sample_own_process() else { return };
    let is_busy = Arc::new(AtomicBool::new(true));
    let (started, thread) = mpsc::channel();
    let busy = thread::spawn({
        let is_busy = is_busy.clone();
        move || {
            // More than the samples of a thread contain.
            let words = [0x5eed_0000_0000_5eed_u64; 1024];
            started.send(rustix::thread::gettid().as_raw_nonzero().get().unsigned_abs().into()).unwrap();
            while is_busy.load(Ordering::Relaxed) && std::hint::black_box(&words)[7] > 0 {}
        }
    });
    let thread: u64 = thread.recv().unwrap();
    sampler.drain(|_| {});
    assert!(sampler.record_stack(thread) && !sampler.record_stack(thread), "it is being recorded already");
    assert!(!sampler.record_stack(u64::MAX), "no such thread");
    let mut found = Vec::new();
    while !sampler.stacks.is_empty() {
        thread::sleep(Duration::from_millis(5));
        sampler.take_stacks(|stack| {
            let words = stack.bytes.chunks_exact(8).filter(|word| *word == 0x5eed_0000_0000_5eed_u64.to_ne_bytes());
            found.push(words.count());
        });
    }
    // With the samples, less of it is recorded.
    let mut longest = 0;
    sampler.drain(|sample| longest = longest.max(sample.stack.filter(|_| sample.waited_ns.is_none()).map_or(0, |stack| stack.bytes.len())));
    is_busy.store(false, Ordering::Relaxed);
    busy.join().unwrap();
    assert!(found.len() == 1 && found[0] >= 1024, "{found:?}");
    assert_eq!(longest, 1 << 10);
}

#[test]
fn thread_that_is_only_preempted_records_its_next_wait() {
    let is_full = |sampler: &CpuSampler| sampler.threads.values().all(|thread| thread.waits.is_some());
    let Some(mut sampler) = sample_own_process().filter(is_full) else { return };
    let is_busy = Arc::new(AtomicBool::new(true));
    let rival = thread::spawn({
        let is_busy = is_busy.clone();
        move || spin_on_first_processor(&is_busy)
    });
    let (numbers, number) = mpsc::channel();
    let (release, released) = mpsc::channel::<()>();
    let thread = thread::spawn({
        let is_busy = is_busy.clone();
        move || {
            numbers.send(rustix::thread::gettid().as_raw_nonzero().get().unsigned_abs()).unwrap();
            spin_on_first_processor(&is_busy);
            released.recv().unwrap_err();
        }
    });
    let number = number.recv().unwrap();
    let mut waits = 0;
    let mut drain_until = |holds: &dyn Fn(&WaitStacks, u64) -> bool| {
        while !sampler.threads.get(&number).is_some_and(|thread| holds(thread.waits.as_ref().unwrap(), waits)) {
            sampler.drain(|sample| waits += u64::from(sample.thread == u64::from(number) && sample.waited_ns.is_some()));
            thread::sleep(Duration::from_millis(1));
        }
        waits
    };
    let before = drain_until(&|stacks, _| stacks.is_paused());
    is_busy.store(false, Ordering::Relaxed);
    drain_until(&|stacks, waits| waits > before && !stacks.is_paused());
    drop(release);
    thread.join().unwrap();
    rival.join().unwrap();
}

/// Competes for a processor with the other threads that do.
fn spin_on_first_processor(is_busy: &AtomicBool) {
    let allowed = sched_getaffinity(None).unwrap();
    let mut first = CpuSet::new();
    first.set((0..CpuSet::MAX_CPU).find(|number| allowed.is_set(*number)).unwrap());
    sched_setaffinity(None, &first).unwrap();
    while is_busy.load(Ordering::Relaxed) {}
}

#[test]
fn thread_reusing_the_id_of_a_refused_one_is_sampled() {
    let Some(mut sampler) = sample_own_process() else { return };
    let (numbers, number) = mpsc::channel();
    let (end, ended) = mpsc::channel::<()>();
    let waiting = thread::spawn(move || {
        numbers.send(rustix::thread::gettid().as_raw_nonzero().get().unsigned_abs()).unwrap();
        ended.recv().unwrap_err();
    });
    let number = number.recv().unwrap();
    // One entry has the ID of a live thread, as if refused before; the other thread is gone.
    sampler.refused.extend([number, u32::MAX]);
    sampler.next_list = Instant::now();
    sampler.drain(|_| {});
    assert!(sampler.threads.contains_key(&number) && sampler.refused.is_empty(), "{:?}", sampler.refused);
    drop(end);
    waiting.join().unwrap();
}
