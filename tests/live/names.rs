//! Live names of methods that were compiled before the recording started.

use dn_top::analysis::SampleFilter;
use dn_top::ipc::{Level, Provider, SessionConfig};
use dn_top::model::{MethodNameResolution, Outcome, Phase, Recording};
use dn_top::session::{Plan, Recorder};
use tokio::time::timeout;

use crate::analysis::process;
use crate::support::runtimes;
use crate::support::{Program, TIMEOUT, folder};

/// Checks a method that each program is executing, and that was compiled long before.
async fn assert_named_during_recording(program: &Program, method: &str) {
    let (_, client) = process(program).await;
    let sampler = Provider::new("Microsoft-DotNETCore-SampleProfiler", 0, Level::Informational).unwrap();
    let folder = folder();
    let file = folder.path().join("a.nettrace");
    let config = SessionConfig::new(sampler.into());
    let plan = Plan { analyzed: true, ..Plan::new(client.endpoint().key, "any".into(), config, file.clone()) };
    let recorder = Recorder::start(client, plan).await.unwrap();
    let is_named = |recording: &Recording| {
        let has = |analysis: &std::sync::Arc<dn_top::model::RecordingAnalysis>| {
            let counts = analysis.profile.count(SampleFilter::ALL);
            let mut frames = counts.by_method().into_iter().filter_map(|method| analysis.profile.frame_at(method.frame));
            frames.any(|frame| frame.name.contains(method))
        };
        let is_found = matches!(recording.names, MethodNameResolution::Found { methods, .. } if methods > 90);
        // Threads are read beside the stream.
        let has_threads = recording.threads.iter().any(|thread| thread.thread == u64::from(program.pid()));
        recording.phase == Phase::Recording && is_found && has_threads && recording.analysis.as_ref().is_some_and(has)
    };
    let mut progress = recorder.progress();
    // Starts as soon as there are unresolved samples.
    let asked = progress.wait_for(|recording| recording.names != MethodNameResolution::NotStarted);
    timeout(TIMEOUT, asked).await.unwrap().unwrap();
    let named = timeout(TIMEOUT * 2, progress.wait_for(is_named)).await;
    assert!(named.is_ok(), "{:?}", recorder.progress().borrow().names);
    drop(named);
    // The recording itself continues, and its file is a single complete stream with its own rundown.
    recorder.stop();
    let recording = recorder.finished().await;
    assert!(matches!(&recording.phase, Phase::Done(Outcome { complete: true, .. })), "{:?}", recording.phase);
    let whole = crate::trace::Recorded::of(&file);
    assert_eq!(whole.rundown_events("DCEndComplete"), 1);
}

#[test]
fn method_names_are_resolved_during_recording() {
    runtimes::each_async(runtimes::all_and_single_files(), async |runtime| {
        assert_named_during_recording(&runtime.any().start(), if runtime.is_trimmed() { "System.Threading" } else { "Main" }).await;
    });
}

/// With a profile that has no samples.
#[test]
fn throw_and_wait_sites_are_named_during_recording() {
    runtimes::each_async(runtimes::with("known"), async |runtime| {
        for (command, keyword) in [("throw 100000000", 0x8000), ("convoy 4 600000", 0x4000)] {
            let mut program = runtime.program("known").start();
            // Compiles the methods.
            program.carry_out("throw 100");
            program.carry_out("convoy 2 50");
            let (_, client) = process(&program).await;
            let folder = folder();
            let runtime_provider = Provider::new("Microsoft-Windows-DotNETRuntime", keyword, Level::Informational).unwrap();
            let config = SessionConfig::new(runtime_provider.into());
            let file = folder.path().join("a.nettrace");
            let plan = Plan { analyzed: true, ..Plan::new(client.endpoint().key, "known".into(), config, file) };
            let recorder = Recorder::start(client, plan).await.unwrap();
            program.command(command);
            let is_named = |recording: &Recording| {
                let Some(analysis) = recording.analysis.as_ref().filter(|_| recording.phase == Phase::Recording) else { return false };
                let snapshot = &analysis.snapshot;
                let thrown = snapshot.exceptions.recent.iter().flat_map(|exception| &exception.frames);
                let mut methods = thrown.chain(snapshot.contention.sites.iter().map(|site| &site.method));
                methods.any(|method| method.starts_with("Known."))
            };
            let mut progress = recorder.progress();
            let named = timeout(TIMEOUT, progress.wait_for(is_named)).await;
            assert!(named.is_ok(), "{runtime}, {command}: {:?}", recorder.progress().borrow().names);
            drop(named);
            recorder.stop();
            assert!(matches!(recorder.finished().await.phase, Phase::Done(Outcome { complete: true, .. })), "{runtime}, {command}");
        }
    });
}
