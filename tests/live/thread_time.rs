//! Samples of the runtime's own sampler, which include waiting threads: their CPU time is estimated during a recording, but not for a file.

use std::time::Duration;

use dn_top::analysis::{Profile, SampleFilter};
use dn_top::clr::select;
use dn_top::model::{Outcome, Phase, Recording};
use dn_top::net::Directory;
use dn_top::net::discovery::Sources;
use dn_top::session::{Plan, Recorder, read_trace};
use tokio::time::timeout;

use crate::support::runtimes;
use crate::support::{Invocation, TIMEOUT, folder};

/// Returns the estimated CPU time of all threads, in nanoseconds.
fn cpu_ns(profile: &Profile) -> u64 {
    profile.count(SampleFilter::BUSY).samples().running_ns
}

/// Sixteen threads wait on a socket, which the sampler reports as running native code, and one thread runs.
#[test]
fn threads_waiting_on_socket_have_no_cpu_time() {
    runtimes::each_async_in_turn(runtimes::with("known"), async |runtime| {
        let mut program = runtime.program("known").start();
        program.carry_out("receive 16");
        let mut directory = Directory::new(Sources::machine()).unwrap();
        let process = directory.resolve(program.socket().to_str().unwrap(), TIMEOUT).await.unwrap();
        let client = directory.clients().of(&process).unwrap();
        let (folder, sampler) = (folder(), "dotnet-sampled-thread-time");
        let (file, config) = (folder.path().join("a.nettrace"), select(&[sampler], &[] as &[&str], None).unwrap().config);
        let plan = Plan { analyzed: true, ..Plan::new(client.endpoint().key, "known".into(), config, file.clone()) };
        let recorder = Recorder::start(client, plan).await.unwrap();
        program.command("spend 600000");
        let mut progress = recorder.progress();
        let has_cpu_times = |recording: &Recording| {
            let profile = recording.analysis.as_deref().map(|analysis| &analysis.profile);
            profile.is_some_and(|profile| profile.has_cpu_times && cpu_ns(profile) > 3_000_000_000)
        };
        assert!(timeout(TIMEOUT * 2, progress.wait_for(has_cpu_times)).await.is_ok(), "{runtime}");
        recorder.stop();
        let recording = recorder.finished().await;
        assert!(matches!(&recording.phase, Phase::Done(Outcome { complete: true, .. })), "{:?}", recording.phase);
        let profile = &recording.analysis.as_ref().unwrap().profile;
        let busy = profile.methods(SampleFilter::BUSY, usize::MAX);
        let [main, others @ ..] = &busy.threads[..] else { panic!("{runtime}: no thread runs") };
        assert_eq!(main.thread.thread, u64::from(program.pid()), "{runtime}");
        let of_others: u64 = others.iter().map(|thread| thread.samples.running_ns).sum();
        assert!(of_others * 20 < main.samples.running_ns, "{runtime}: {:?}", busy.threads);
        assert_eq!(busy.methods[0].name, "Known.Burn", "{runtime}");
        // The CPU time of the sampled threads is nearly that of the process, whose JIT and GC are not sampled.
        let used: Duration = recording.threads.iter().filter(|thread| thread.thread == main.thread.thread).map(|thread| thread.cpu).sum();
        let share = main.samples.running_ns as f64 / used.as_nanos() as f64;
        assert!((0.7..1.1).contains(&share), "{runtime}: {share}");
        // All samples are still there, as waiting.
        let all = profile.methods(SampleFilter::ALL, usize::MAX);
        let received = all.methods.iter().filter(|method| method.name.contains(".Receive")).map(|method| method.total.waiting_ns).max();
        assert!(received.unwrap() > 10 * main.samples.running_ns, "{runtime}: {received:?}");

        // The file does not contain the CPU times of the threads.
        let read = read_trace(&file, None, |_| true).unwrap().unwrap();
        assert!(!read.analysis.profile.has_cpu_times, "{runtime}");
        let path = file.to_str().unwrap();
        let report = Invocation::new(["report", path, "--json"]).run().json();
        assert_eq!((report["source"].as_str(), &report["may_be_waiting"]), (Some("threads"), &report["samples"]), "{runtime}");
        let text = Invocation::new(["report", path]).run().stdout;
        assert!(text.lines().next().unwrap().contains(" samples of threads that may be waiting"), "{runtime}: {text}");
        assert!(program.is_alive() && program.answers(), "{runtime}");
    });
}
