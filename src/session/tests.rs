//! Recordings of simulated runtimes over real sockets.

use std::fs::File;
use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use tokio::time::timeout;

use super::count::Counting;
use super::progress::Progress;
use super::pump::{Pump, Pumped};
use super::trace_session::TraceSession;
use super::{DumpError, OutputError, Plan, Recorder, StartError, StopLimit, WatchOptions, dump, thread_stacks, walk_heap, watch};
use crate::analysis::{CountersSnapshot, SampleFilter, Throughput};
use crate::clr::Trigger;
use crate::ipc::{
    Downgrade, DumpFlags, DumpKind, DumpRequest, Level, Provider, Providers, RuntimeVersion, SessionConfig, SessionId, TargetPath,
};
use crate::model::{Outcome, Phase, Process, ProcessKey, Recording, RecordingAnalysis, StoppedBy};
use crate::net::client::{Client, Session};
use crate::net::endpoint::Endpoint;
use crate::net::stream::address_in;
use crate::net::test_stream::{self, Peer};
use crate::nettrace::{Decoder, Encoder, Ending, Limits, RetentionLimits, TraceHeader};
use crate::sim::{Fault, Rates, Script, Simulated, Spec};

mod analysis;
mod conditions;
mod flight;
#[cfg(target_os = "linux")]
mod joint;
mod limits;
#[cfg(target_os = "linux")]
mod linux;
mod meters;

/// Time limit of each step, for a busy machine.
const STEP_TIMEOUT: Duration = Duration::from_secs(60);

/// Returns a complete stream without events.
pub(super) fn empty_trace(header: TraceHeader) -> Vec<u8> {
    let mut encoder = Encoder::new(header);
    encoder.end();
    encoder.take()
}

/// Returns the sorted names of the files in a folder.
pub(super) fn file_names(folder: &Path) -> Vec<String> {
    let mut names: Vec<_> = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

struct Bench {
    dir: tempfile::TempDir,
    runtime: Simulated,
    process: Process,
    client: Client,
}

fn bench(spec: Spec) -> Bench {
    let dir = tempfile::tempdir().unwrap();
    let socket = address_in(dir.path(), "socket");
    let runtime = Simulated::start(socket.clone(), spec).unwrap();
    let process = Process { socket: Some(socket), ns_pid: 77, ..Process::new(ProcessKey { pid: 77, started: 1 }) };
    let client = Client::new(Endpoint::of(&process).unwrap());
    Bench { dir, runtime, process, client }
}

fn spec() -> Spec {
    Spec::new("Web", "9.0.7", 77)
}

fn config() -> SessionConfig {
    let runtime = Provider::new("Microsoft-Windows-DotNETRuntime", u64::MAX, Level::Verbose).unwrap();
    let own = Provider::new("Demo-Web", u64::MAX, Level::Verbose).unwrap();
    SessionConfig::new(Providers::new(vec![runtime, own]).unwrap())
}

impl Bench {
    fn file(&self) -> PathBuf {
        self.dir.path().join("a.nettrace")
    }

    fn partial(&self) -> PathBuf {
        self.dir.path().join("a.nettrace.partial")
    }

    fn plan(&self) -> Plan {
        Plan { analyzed: true, ..Plan::new(self.process.key, "Web".into(), config(), self.file()) }
    }

    async fn start(&self, plan: Plan) -> Recorder {
        Recorder::start(self.client.clone(), plan).await.unwrap()
    }
}

/// Waits until a snapshot of the recording satisfies a condition, and returns it.
async fn until(recorder: &Recorder, is_so: impl FnMut(&Recording) -> bool) -> Recording {
    let mut progress = recorder.progress();
    timeout(STEP_TIMEOUT, progress.wait_for(is_so)).await.unwrap().unwrap().clone()
}

async fn has_events(recorder: &Recorder) {
    until(recorder, |recording| recording.events > 0).await;
}

/// Stops a recording, and returns its last state.
async fn stop_recording(recorder: Recorder) -> Recording {
    recorder.stop();
    finish(recorder).await
}

/// Waits for the end of a recording, and returns its last state.
async fn finish(recorder: Recorder) -> Recording {
    timeout(STEP_TIMEOUT, recorder.finished()).await.expect("it goes on for ever")
}

fn outcome(recording: &Recording) -> &Outcome {
    match &recording.phase {
        Phase::Done(outcome) => outcome,
        other => panic!("{other:?}"),
    }
}

/// Reads a file independently: its ending, events and drops.
fn read(file: &Path) -> (Ending, u64, u64) {
    let bytes = std::fs::read(file).unwrap();
    let (mut decoder, mut tally) = (Decoder::new(Limits::default()), Throughput::default());
    decoder.feed(&bytes, &mut tally).unwrap();
    (decoder.finish(&mut tally), tally.snapshot().events, bytes.len() as u64)
}

#[tokio::test]
async fn stopped_recording_is_complete_and_counted() {
    let bench = bench(spec());
    let recorder = bench.start(bench.plan()).await;
    until(&recorder, |recording| recording.phase == Phase::Recording && recording.events > 10).await;
    assert!(!bench.file().exists() && bench.partial().exists());
    let recording = stop_recording(recorder).await;
    let expected = Outcome { stopped_by: StoppedBy::Interrupt, complete: true, file: Some(bench.file()), trouble: None };
    assert_eq!(*outcome(&recording), expected);
    assert_eq!(read(&bench.file()), (Ending::Complete, recording.events, recording.bytes));
    assert!(!recording.history.is_empty() && bench.runtime.is_alive());
}

#[tokio::test]
async fn limits_stop_a_recording() {
    let bench = bench(spec());
    let recording = bench.start(Plan { duration: Some(Duration::from_millis(400)), ..bench.plan() }).await.finished().await;
    assert_eq!(outcome(&recording).stopped_by, StoppedBy::Duration);
    assert!(outcome(&recording).complete && recording.elapsed >= Duration::from_millis(400));

    std::fs::remove_file(bench.file()).unwrap();
    let recording = bench.start(Plan { max_bytes: Some(2_000), ..bench.plan() }).await.finished().await;
    assert_eq!(outcome(&recording).stopped_by, StoppedBy::Size);
    assert!(outcome(&recording).complete && recording.bytes >= 2_000);
}

/// The sum of such a duration and the current time overflows.
#[tokio::test]
async fn a_very_long_duration_is_no_limit() {
    let bench = bench(spec());
    let recorder = bench.start(Plan { duration: Some(Duration::MAX), ..bench.plan() }).await;
    has_events(&recorder).await;
    let recording = stop_recording(recorder).await;
    assert_eq!((outcome(&recording).stopped_by, outcome(&recording).complete), (StoppedBy::Interrupt, true));
}

#[tokio::test]
async fn target_exit_keeps_the_received_data() {
    let bench = bench(Spec { fault: Some(Fault::CutStream(3_000)), ..spec() });
    let recording = bench.start(bench.plan()).await.finished().await;
    let Outcome { stopped_by, complete, file, trouble } = outcome(&recording);
    assert_eq!((*stopped_by, *complete), (StoppedBy::TargetExit, false));
    assert!(trouble.as_ref().unwrap().contains("every complete block is kept"));
    let (ending, events, bytes) = read(file.as_ref().unwrap());
    assert!(matches!(ending, Ending::Truncated { .. }) && events > 0 && bytes == 3_000, "{ending:?} {events}");
    assert!(file.as_ref().unwrap().to_str().unwrap().ends_with(".nettrace.partial") && !bench.file().exists());
}

#[tokio::test]
async fn target_exit_before_the_first_object_or_sample_is_reported() {
    let bench = bench(Spec { fault: Some(Fault::CutStream(40)), ..spec() });
    let walked = timeout(STEP_TIMEOUT, walk_heap(bench.client.clone(), None, false, STEP_TIMEOUT, |_, _| true)).await.unwrap();
    assert_eq!(walked.unwrap_err().to_string(), "no object was reported: the target exited or closed the stream");
    let sampled = timeout(STEP_TIMEOUT, thread_stacks(&bench.client)).await.unwrap();
    assert_eq!(sampled.unwrap_err().to_string(), "no thread was sampled: the target exited or closed the stream");
}

#[tokio::test]
async fn a_session_that_does_not_stop_can_be_abandoned() {
    let bench = bench(Spec { fault: Some(Fault::NeverStop), ..spec() });
    let recorder = bench.start(bench.plan()).await;
    has_events(&recorder).await;
    recorder.stop();
    until(&recorder, |recording| matches!(recording.phase, Phase::Stopping { .. })).await;
    recorder.abandon();
    let recording = timeout(Duration::from_secs(2), recorder.finished()).await.unwrap();
    let Outcome { complete, file, trouble, .. } = outcome(&recording);
    assert!(!complete && trouble.as_ref().unwrap().contains("stopped before the rundown"));
    assert_eq!(read(file.as_ref().unwrap()).1, recording.events);
}

#[tokio::test]
async fn recording_does_not_start_if_the_file_exists() {
    let bench = bench(spec());
    std::fs::write(bench.file(), "mine").unwrap();
    let error = Recorder::start(bench.client.clone(), bench.plan()).await.unwrap_err();
    assert!(matches!(error, StartError::Output(OutputError::Exists(_))), "{error}");
    assert_eq!(std::fs::read(bench.file()).unwrap(), b"mine");
}

/// Recordings that start at the same time may have been given the same name.
#[tokio::test]
async fn taken_default_name_gets_a_number() {
    let bench = bench(spec());
    let plan = || Plan { is_default_file: true, ..bench.plan() };
    let (first, second) = (bench.start(plan()).await, bench.start(plan()).await);
    for recorder in [&first, &second] {
        has_events(recorder).await;
    }
    for (recorder, name) in [(first, "a.nettrace"), (second, "a_2.nettrace")] {
        let recording = stop_recording(recorder).await;
        assert_eq!((outcome(&recording).complete, outcome(&recording).file.clone()), (true, Some(bench.dir.path().join(name))));
    }
}

#[tokio::test]
async fn a_refused_session_leaves_no_file() {
    let bench = bench(Spec { fault: Some(Fault::HangUp), ..spec() });
    let error = Recorder::start(bench.client.clone(), bench.plan()).await.unwrap_err();
    assert!(matches!(error, StartError::Exchange(_)));
    let mut names = std::fs::read_dir(bench.dir.path()).unwrap().map(|entry| entry.unwrap().file_name());
    assert!(names.all(|name| name == "socket"));
}

#[tokio::test]
async fn an_undecodable_stream_is_kept_and_reported() {
    let bench = bench(Spec { script: Script::Canned(vec![0x55; 100_000].into()), ..spec() });
    // It ends without a stop.
    let recording = finish(bench.start(bench.plan()).await).await;
    let Outcome { stopped_by, complete, file, trouble } = outcome(&recording);
    assert_eq!((*stopped_by, *complete), (StoppedBy::Error, false));
    assert!(trouble.as_ref().unwrap().contains("cannot decode the event stream: this is not a nettrace stream"), "{trouble:?}");
    let bytes = std::fs::read(file.as_ref().unwrap()).unwrap();
    assert!(!bytes.is_empty() && bytes.iter().all(|byte| *byte == 0x55));
}

/// A newer version of dn-top may be able to decode it.
#[tokio::test]
async fn a_stream_of_an_unknown_version_is_recorded_to_its_end() {
    let header = [&b"Nettrace"[..], &[0; 4], &7_u32.to_le_bytes(), &[0; 4]].concat();
    let bench = bench(Spec { script: Script::Canned(header.into()), ..spec() });
    let plan = Plan { duration: Some(Duration::from_millis(500)), ..bench.plan() };
    let recording = finish(bench.start(plan).await).await;
    assert_eq!(outcome(&recording).stopped_by, StoppedBy::Duration);
    assert!(outcome(&recording).trouble.as_deref().unwrap().contains("unsupported nettrace version 7"), "{recording:?}");
}

#[test]
fn file_is_kept_even_if_the_recording_cannot_be_finished() {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let bench = runtime.block_on(async {
        let bench = bench(spec());
        has_events(&bench.start(bench.plan()).await).await;
        bench
    });
    runtime.shutdown_timeout(STEP_TIMEOUT);
    assert!(bench.partial().exists());
}

#[tokio::test]
async fn several_recordings_of_one_process_run_in_parallel() {
    let bench = bench(spec());
    let first = bench.start(bench.plan()).await;
    let second = bench.start(Plan { file: bench.dir.path().join("b.nettrace"), ..bench.plan() }).await;
    has_events(&first).await;
    first.stop();
    assert!(outcome(&first.finished().await).complete);
    let so_far = second.progress().borrow().events;
    until(&second, |recording| recording.events > so_far).await;
    let second = stop_recording(second).await;
    assert!(outcome(&second).complete);
}

/// Returns a client of a process that has exited.
fn nowhere() -> Client {
    let socket = PathBuf::from(if cfg!(windows) { r"\\.\pipe\nowhere" } else { "/nowhere" });
    Client::new(Endpoint { key: ProcessKey { pid: 77, started: 1 }, socket })
}

/// Starts a pump into a file, with or without a flight recorder. Returns the other end of its stream.
async fn pump(file: File, keep: Option<(RetentionLimits, PathBuf)>) -> (std::thread::JoinHandle<Pumped>, Peer, Arc<Progress>) {
    let (stream, writing) = test_stream::pair().await;
    let (session, stream) = TraceSession::of(nowhere(), Session { id: SessionId(1), stream, downgrades: Vec::new() }, u64::MAX).unwrap();
    let progress = Arc::new(Progress::default());
    let counting = Counting { analyzed: true, keep, ..Counting::default() };
    let pump = Pump { session, file, max_bytes: None, counting, progress: progress.clone() };
    let stream = stream.into_blocking().unwrap();
    (std::thread::spawn(move || pump.run(stream)), writing, progress)
}

#[tokio::test]
async fn dump_is_found_and_never_overwrites_a_file() {
    let bench = bench(spec());
    let path = bench.dir.path().join("core");
    let request = |path: &Path| DumpRequest {
        path: TargetPath::new(path.to_str().unwrap()).unwrap(),
        kind: DumpKind::Mini,
        flags: DumpFlags::default(),
    };
    let dumped = dump(&bench.client, &bench.process, &request(&path), |_| ()).await.unwrap();
    let mut text = String::new();
    File::open(&dumped.reachable_path).unwrap().read_to_string(&mut text).unwrap();
    assert_eq!((dumped.bytes, dumped.path), (Some(text.len() as u64), path.clone()));

    assert!(matches!(dump(&bench.client, &bench.process, &request(&path), |_| ()).await, Err(DumpError::Exists(_))));
    let missing = bench.dir.path().join("missing");
    let error = dump(&bench.client, &bench.process, &request(&missing.join("core")), |_| ()).await.unwrap_err();
    assert_eq!(error.to_string(), format!("the folder {} does not exist; choose one that does", missing.display()));
    let folder = dump(&bench.client, &bench.process, &request(&missing.join("")), |_| ()).await.unwrap_err();
    assert_eq!(folder.to_string(), format!("the folder {} does not exist; choose one that does", missing.join("").display()));
    // The report of an earlier dump.
    let again = bench.dir.path().join("again");
    std::fs::write(bench.dir.path().join("again.crashreport.json"), "{}").unwrap();
    let flags = DumpFlags { crash_report: true, ..DumpFlags::default() };
    let dumped = dump(&bench.client, &bench.process, &DumpRequest { flags, ..request(&again) }, |_| ()).await.unwrap();
    assert_eq!(dumped.crash_report, None);
    let nowhere = dump(&bench.client, &bench.process, &request(Path::new("/proc/core")), |_| ()).await.unwrap_err();
    assert!(nowhere.to_string().contains("createdump"), "{nowhere}");
}

#[tokio::test]
async fn every_version_can_be_watched_and_reports_downgrades() {
    for (version, downgrades) in [("3.1.23", &[Downgrade::StacksIncluded][..]), ("8.0.33", &[Downgrade::StacksIncluded]), ("9.0.7", &[])] {
        let bench = bench(Spec::new("Web", version, 77));
        let process = Process { runtime: Some(RuntimeVersion::new(version)), ..bench.process.clone() };
        let watched = WatchOptions { process, interval: Duration::from_secs(1), meters: false };
        let (stop, stopped) = tokio::sync::watch::channel(false);
        let publish = |counters: CountersSnapshot, _| {
            let _ = stop.send_replace(!counters.counters.is_empty());
            std::future::ready(())
        };
        assert_eq!(watch(&bench.client, &watched, stopped, publish).await, Ok(()), "{version}");
        assert!(*stop.borrow(), "{version}: no counter came");

        let mut plan = bench.plan();
        plan.config.stacks = false;
        let recorder = bench.start(plan).await;
        assert_eq!(stop_recording(recorder).await.notes, downgrades.iter().map(ToString::to_string).collect::<Vec<_>>(), "{version}");
    }
}

#[tokio::test]
async fn watch_of_a_process_that_has_just_ended_is_no_error() {
    let Bench { runtime, client, process, .. } = bench(spec());
    drop(runtime);
    let watched = WatchOptions { process, interval: Duration::from_secs(1), meters: false };
    let (_stop, stopped) = tokio::sync::watch::channel(false);
    assert_eq!(watch(&client, &watched, stopped, |_, _| std::future::ready(())).await, Ok(()));
}

#[tokio::test]
async fn stop_event_ends_the_recording() {
    let bench = bench(spec());
    let stop_on = Trigger::parse("Microsoft-Windows-DotNETRuntime/ExceptionThrown:Exception").ok();
    let recording = bench.start(Plan { stop_on, ..bench.plan() }).await.finished().await;
    assert_eq!(*outcome(&recording), Outcome { stopped_by: StoppedBy::Event, complete: true, file: Some(bench.file()), trouble: None });
    assert_eq!(read(&bench.file()), (Ending::Complete, recording.events, recording.bytes));
}
