//! CPU samples taken by the kernel.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use dn_top::model::CpuThread;
use dn_top::net::Directory;
use dn_top::net::client::Client;
use dn_top::net::discovery::Sources;
use dn_top::net::perf::{CpuSampler, Frequency, PerfCause, PerfError, SampleLoss};

use crate::support::runtimes;
use crate::support::{Program, Signal, TIMEOUT, poll};

pub(crate) async fn client(program: &Program) -> Client {
    let mut directory = Directory::new(Sources::machine()).unwrap();
    let process = directory.resolve(program.socket().to_str().unwrap(), TIMEOUT).await.unwrap();
    directory.clients().of(&process).unwrap()
}

/// `None` where the kernel denies it, as in most containers.
pub(crate) fn sampler(client: &Client) -> Option<CpuSampler> {
    match client.sample_cpu(Frequency::MAX) {
        Ok(sampler) => Some(sampler),
        Err(error) if error.is_denied() => {
            runtimes::skip(&error.to_string());
            None
        }
        Err(error) => panic!("{error}"),
    }
}

/// Totals of a thread's samples while it ran.
#[derive(Debug, Default)]
struct Seen {
    samples: u64,
    frames: usize,
    first_ns: u64,
    last_ns: u64,
}

/// Samples while the program carries out a command.
fn sample(sampler: &mut CpuSampler, program: &mut Program, command: &str) -> BTreeMap<u64, Seen> {
    let mut seen = BTreeMap::<u64, Seen>::new();
    std::thread::scope(|scope| {
        let work = scope.spawn(|| program.carry_out(command));
        loop {
            let over = work.is_finished();
            sampler.drain(|sample| {
                // Waits are no processor time: a thread of the runtime can have dozens of them.
                if sample.waited_ns.is_some() {
                    return;
                }
                let seen = seen.entry(sample.thread).or_default();
                seen.samples += 1;
                seen.frames += sample.user.len();
                seen.first_ns = if seen.first_ns == 0 { sample.time_ns } else { seen.first_ns };
                seen.last_ns = sample.time_ns;
            });
            if over {
                break;
            }
            std::thread::sleep(Duration::from_millis(5));
        }
    });
    seen
}

fn sampled_ms(sampler: &CpuSampler, seen: Option<&Seen>) -> f64 {
    seen.map_or(0, |seen| seen.samples * sampler.period_ns()) as f64 / 1e6
}

#[test]
fn samples_match_cpu_time_of_each_thread() {
    runtimes::each_async_in_turn(runtimes::with("known"), async |runtime| {
        let mut program = runtime.program("known").start();
        program.spend(300);
        let client = client(&program).await;
        let Some(mut sampler) = sampler(&client) else { return };
        let started = Instant::now();
        let seen = sample(&mut sampler, &mut program, "spend 1500");
        let wall = started.elapsed().as_secs_f64() * 1e3;
        let threads = sampler.threads();
        let main = threads.iter().find(|thread| thread.thread == u64::from(program.pid())).unwrap();
        let (shown, truth) = (sampled_ms(&sampler, seen.get(&main.thread)), main.cpu.as_secs_f64() * 1e3);
        eprintln!("{runtime}: main thread {shown:.0} ms of {truth:.0} ms, {} threads, kernel {}", threads.len(), sampler.includes_kernel());
        // Samples of a processor that several threads share are drawn at random: four standard deviations of their number, of 1 ms each.
        let chance = 4.0 * (truth * (1.0 - truth / wall).max(0.0)).sqrt();
        // While a virtual machine is descheduled, its kernel counts CPU time but takes no samples.
        let is_near = shown > truth * 0.95 - chance && shown < truth * 1.02 + chance;
        assert!(truth > 50.0 && is_near, "{runtime}: {shown} ms sampled, {truth} ms by the kernel");
        let main = &seen[&main.thread];
        assert!(main.frames as u64 > main.samples * 5, "{runtime}: chains go up to main: {main:?}");
        assert!(main.last_ns - main.first_ns > 500_000_000, "{main:?}");
        // All other threads wait, apart from brief activity.
        for thread in threads.iter().filter(|thread| thread.thread != u64::from(program.pid())) {
            let shown = sampled_ms(&sampler, seen.get(&thread.thread));
            assert!((shown - thread.cpu.as_secs_f64() * 1e3).abs() < 20.0, "{runtime}: {shown} ms of {thread:?}");
        }
        assert_eq!(SampleLoss { short_threads: 0, ..sampler.loss() }, SampleLoss::default(), "{runtime}");
        program.signal(Signal::KILL);
        program.wait();
        sampler.drain(|_| {});
    });
}

#[test]
fn threads_started_while_sampling_are_sampled() {
    runtimes::each_async_in_turn(runtimes::with("known"), async |runtime| {
        let mut program = runtime.program("known").start();
        program.spend(100);
        let client = client(&program).await;
        let Some(mut sampler) = sampler(&client) else { return };
        // A virtual machine that is descheduled for a while has CPU time without samples: never more samples than time, and in one round
        // nearly as many.
        let exact = (0..4).any(|_| {
            let before: Vec<u64> = sampler.threads().iter().map(|thread| thread.thread).collect();
            // 64 threads that together work for 600 ms of wall time.
            let seen = sample(&mut sampler, &mut program, "slow 64 600");
            let ended = || {
                sampler.drain(|_| {});
                let new: Vec<CpuThread> = sampler.threads().into_iter().filter(|thread| !before.contains(&thread.thread)).collect();
                (new.iter().filter(|thread| thread.cpu > Duration::from_millis(1)).count() >= 64).then_some(new)
            };
            let new = poll(TIMEOUT, ended).unwrap_or_else(|| panic!("{runtime}: {:?}", sampler.threads()));
            let truth: f64 = new.iter().map(|thread| thread.cpu.as_secs_f64() * 1e3).sum();
            let shown: f64 = new.iter().map(|thread| sampled_ms(&sampler, seen.get(&thread.thread))).sum();
            eprintln!("{runtime}: {} new threads, {shown:.0} ms of {truth:.0} ms", new.len());
            assert!(shown < truth * 1.1, "{runtime}: {shown} ms sampled, {truth} ms by the kernel");
            // Threads of the runtime may be very short-lived. The stack of a wait is not recorded if a thread was busy for a second before it, and
            // blocked only briefly.
            assert_eq!(SampleLoss { short_threads: 0, lost_waits: 0, ..sampler.loss() }, SampleLoss::default(), "{runtime}");
            shown > truth * 0.9
        });
        assert!(exact, "{runtime}: more than a tenth of the time has no samples");
    });
}

#[test]
fn a_process_that_ended_is_not_sampled() {
    runtimes::each_async(runtimes::all(), async |runtime| {
        let mut program = runtime.any().start();
        let client = client(&program).await;
        program.signal(Signal::KILL);
        program.wait();
        assert!(matches!(client.sample_cpu(Frequency::MAX), Err(PerfError { cause: PerfCause::NotShown, .. })), "{runtime}");
    });
}
