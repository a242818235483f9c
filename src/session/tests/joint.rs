//! Recordings with the kernel's scheduling through a simulated tracing service: all its faults are reported, and data already read is kept.

use std::os::unix::fs::PermissionsExt;

use tokio::task::JoinSet;

use super::*;
use crate::model::Scheduling;
use crate::net::perfetto::{Address, Sockets};
use crate::perfetto::read::fields;
use crate::sim::tests::{ConsumerBehavior, ConsumerFault, ConsumerPort, TracingBehavior, TracingService};

struct Service {
    /// The producer port.
    service: Arc<TracingService>,
    consumer: ConsumerPort,
    bench: Bench,
}

/// A well-behaved service with kernel events.
fn with_kernel_events() -> ConsumerBehavior {
    ConsumerBehavior { has_kernel: true, kernel_readings: usize::MAX, ..ConsumerBehavior::default() }
}

fn service(behavior: ConsumerBehavior) -> Service {
    let bench = bench(spec());
    let path = |name: &str| bench.dir.path().join(name);
    let service = Arc::new(TracingService::start(&path("producer"), TracingBehavior::default()).unwrap());
    let consumer = ConsumerPort::start(&path("consumer"), service.clone(), behavior).unwrap();
    Service { service, consumer, bench }
}

impl Service {
    fn file(&self) -> PathBuf {
        self.bench.dir.path().join("a.perfetto-trace")
    }

    fn partial(&self) -> PathBuf {
        self.bench.dir.path().join("a.perfetto-trace.partial")
    }

    fn plan(&self) -> Plan {
        let address = |name: &str| Address::Path(self.bench.dir.path().join(name));
        let sockets = Sockets { producer: address("producer"), consumer: address("consumer") };
        Plan { file: self.file(), scheduling: Some(sockets), ..self.bench.plan() }
    }

    async fn try_start(&self) -> Result<Recorder, StartError> {
        timeout(STEP_TIMEOUT, Recorder::start(self.bench.client.clone(), self.plan())).await.unwrap()
    }

    async fn start(&self) -> Recorder {
        self.try_start().await.unwrap()
    }
}

/// Whether events of both kinds have arrived, and enough of them.
fn has_both_kinds(recording: &Recording) -> bool {
    recording.scheduling == Some(Scheduling::Recording)
        && recording.phase == Phase::Recording
        && recording.events > 100
        && recording.bytes > 3000
}

/// Field numbers of each packet.
fn packets(file: &Path) -> Vec<Vec<u32>> {
    let trace = std::fs::read(file).unwrap();
    let packets = fields(&trace).map(|packet| packet.unwrap().1.bytes().unwrap());
    packets.map(|packet| fields(packet).map(|field| field.unwrap().0).collect()).collect()
}

#[tokio::test]
async fn runtime_and_kernel_events_are_in_one_file() {
    let service = service(with_kernel_events());
    let recorder = service.start().await;
    let recording = until(&recorder, has_both_kinds).await;
    assert!(recording.analysis.is_some() || recording.events > 0, "what comes is analyzed");
    assert!(!service.file().exists());
    assert_eq!(service.partial().metadata().unwrap().permissions().mode() & 0o777, 0o600);
    let recording = stop_recording(recorder).await;
    let expected = Outcome { stopped_by: StoppedBy::Interrupt, complete: true, file: Some(service.file()), trouble: None };
    assert_eq!(*outcome(&recording), expected);
    assert_eq!(recording.bytes, service.file().metadata().unwrap().len());
    let packets = packets(&service.file());
    let with = |field| packets.iter().filter(|packet| packet.contains(&field)).count();
    assert!(with(1) > 0, "no events of the kernel");
    // Tracks, events or samples, and method names.
    assert!(with(60) >= 2 && with(11) + with(66) > 10 && with(61) > 0, "{} {} {} {}", with(60), with(11), with(66), with(61));
    let seen = service.consumer.until(|seen| seen.recordings == 0).await;
    let calls: Vec<_> = seen.calls.iter().copied().filter(|call| *call != "ReadBuffers").collect();
    assert_eq!(calls, ["QueryServiceState", "EnableTracing", "Flush", "DisableTracing", "GetTraceStats", "FreeBuffers"]);
    assert!(seen.calls.ends_with(&["DisableTracing", "ReadBuffers", "GetTraceStats", "FreeBuffers"]), "the last is read");
    assert!(service.bench.runtime.is_alive());
}

#[tokio::test]
async fn missing_and_lost_data_is_reported_and_the_rest_recorded() {
    let no_source = ConsumerBehavior { has_kernel: false, ..ConsumerBehavior::default() };
    let no_events = ConsumerBehavior { has_kernel: true, ..ConsumerBehavior::default() };
    let table = [(no_source, "start `traced_probes` as root"), (no_events, "tracefs mounted at /sys/kernel/tracing")];
    let rows = table.map(|(behavior, part)| async move {
        let service = service(behavior);
        let recorder = service.start().await;
        let is_reported = |recording: &Recording| {
            matches!(&recording.scheduling, Some(Scheduling::Missing(why)) if why.contains(part)) && recording.bytes > 3000
        };
        until(&recorder, is_reported).await;
        let recording = stop_recording(recorder).await;
        assert!(is_reported(&recording) && outcome(&recording).complete, "{recording:?}");
        assert!(packets(&service.file()).len() > 10);
    });
    JoinSet::from_iter(rows).join_all().await;
    let service = service(ConsumerBehavior { overwritten: 5000, dropped: 3, ..with_kernel_events() });
    let recorder = service.start().await;
    until(&recorder, has_both_kinds).await;
    let recording = stop_recording(recorder).await;
    let trouble = outcome(&recording).trouble.as_deref().unwrap();
    assert!(trouble.contains("events of .NET: 5.0 kB overwritten"), "{trouble}");
    assert!(trouble.contains("3 packets of the kernel dropped"), "{trouble}");
    assert!(outcome(&recording).complete);
}

#[tokio::test]
async fn end_of_kernel_scheduling_data_is_reported() {
    let service = service(ConsumerBehavior { kernel_readings: 2, ..with_kernel_events() });
    let recorder = service.start().await;
    until(&recorder, has_both_kinds).await;
    service.consumer.until(|seen| seen.calls.iter().filter(|call| **call == "ReadBuffers").count() >= 4).await;
    let recording = stop_recording(recorder).await;
    assert!(matches!(recording.scheduling, Some(Scheduling::Ended { after }) if after < STEP_TIMEOUT), "{:?}", recording.scheduling);
    let trouble = outcome(&recording).trouble.as_deref().unwrap();
    assert!(trouble.contains("scheduling is recorded up to about 0:0") && trouble.contains("`tracing_on`"), "{trouble}");
    assert!(outcome(&recording).complete && outcome(&recording).file == Some(service.file()));
}

#[tokio::test]
async fn a_failed_start_is_reported_and_leaves_no_file() {
    let with = |method, fault| ConsumerBehavior { fault: Some((method, fault)), ..with_kernel_events() };
    for (behavior, part) in [
        (ConsumerBehavior { error: Some("no\u{1b} more buffers"), ..with_kernel_events() }, "EnableTracing was refused: no"),
        (with("EnableTracing", ConsumerFault::Garbage), "more than the protocol allows"),
        (with("EnableTracing", ConsumerFault::Undecodable), "cannot be decoded"),
        (with("EnableTracing", ConsumerFault::Closes), "the connection was closed"),
        (with("EnableTracing", ConsumerFault::Silent), "no answer to EnableTracing"),
        (with("EnableTracing", ConsumerFault::Refuses), "EnableTracing was refused"),
    ] {
        let service = service(behavior);
        let error = service.try_start().await.unwrap_err().to_string();
        assert!(error.contains(part) && error.contains("Without kernel scheduling") && !error.contains('\u{1b}'), "{error}");
        assert!(!service.partial().exists() && !service.file().exists());
        timeout(STEP_TIMEOUT, service.consumer.until(|seen| seen.recordings == 0)).await.unwrap();
    }
    let service = service(with_kernel_events());
    std::fs::remove_file(service.bench.dir.path().join("consumer")).unwrap();
    let error = service.try_start().await.unwrap_err().to_string();
    assert!(error.contains("no service listens there; install and start it"), "{error}");
}

#[tokio::test]
async fn a_start_that_is_given_up_leaves_nothing() {
    let service = service(ConsumerBehavior { fault: Some(("EnableTracing", ConsumerFault::Silent)), ..with_kernel_events() });
    tokio::select! {
        biased;
        started = service.try_start() => panic!("{:?}", started.map(drop)),
        _ = service.consumer.until(|seen| seen.calls.contains(&"EnableTracing")) => {}
    }
    assert!(!service.partial().exists() && !service.file().exists());
    timeout(STEP_TIMEOUT, service.consumer.until(|seen| seen.recordings == 0)).await.unwrap();
}

#[tokio::test]
async fn service_fault_on_stop_keeps_the_data_read_so_far() {
    let table = [
        ("Flush", ConsumerFault::Closes, Some("the connection was closed")),
        ("Flush", ConsumerFault::Silent, Some("no answer to Flush")),
        ("Flush", ConsumerFault::Garbage, Some("cannot decode its message")),
        // The flush timed out: the recording continues to its end.
        ("Flush", ConsumerFault::Refuses, None),
        ("DisableTracing", ConsumerFault::Closes, Some("the connection was closed")),
        ("DisableTracing", ConsumerFault::Silent, Some("no answer to DisableTracing")),
        ("DisableTracing", ConsumerFault::Refuses, Some("DisableTracing was refused")),
        ("GetTraceStats", ConsumerFault::Refuses, None),
        ("FreeBuffers", ConsumerFault::Silent, None),
    ];
    let rows = table.map(|(method, fault, part)| async move {
        let service = service(ConsumerBehavior { fault: Some((method, fault)), ..with_kernel_events() });
        let recorder = service.start().await;
        until(&recorder, has_both_kinds).await;
        let recording = stop_recording(recorder).await;
        let outcome = outcome(&recording);
        assert_eq!(outcome.complete, part.is_none(), "{method}: {outcome:?}");
        if let Some(part) = part {
            assert!(outcome.trouble.as_deref().is_some_and(|trouble| trouble.contains(part)), "{method}: {outcome:?}");
            assert_eq!(outcome.file, Some(service.partial()));
            assert!(packets(&service.partial()).len() > 10);
        }
        assert!(service.bench.runtime.is_alive());
    });
    JoinSet::from_iter(rows).join_all().await;
}

#[tokio::test]
async fn service_fault_on_first_read_ends_the_recording() {
    let table = [
        (ConsumerFault::Closes, "the connection was closed"),
        (ConsumerFault::Refuses, "ReadBuffers was refused"),
        (ConsumerFault::Undecodable, ""),
        (ConsumerFault::Garbage, "more than the protocol allows"),
        (ConsumerFault::Silent, "no answer to ReadBuffers"),
    ];
    let rows = table.map(|(fault, part)| async move {
        let service = service(ConsumerBehavior { fault: Some(("ReadBuffers", fault)), ..with_kernel_events() });
        let recorder = service.start().await;
        if part.is_empty() {
            // Fields with other numbers are skipped.
            recorder.stop();
        }
        let recording = finish(recorder).await;
        if !part.is_empty() {
            let outcome = outcome(&recording);
            assert_eq!((outcome.stopped_by, outcome.complete, &outcome.file), (StoppedBy::Error, false, &None), "{outcome:?}");
            assert!(outcome.trouble.as_deref().is_some_and(|trouble| trouble.contains(part)), "{outcome:?}");
        }
    });
    JoinSet::from_iter(rows).join_all().await;
}

#[tokio::test]
async fn service_exit_ends_the_recording_and_keeps_the_data() {
    let service = service(with_kernel_events());
    let recorder = service.start().await;
    until(&recorder, has_both_kinds).await;
    let Service { service: producer, consumer, bench } = service;
    drop(consumer);
    let recording = finish(recorder).await;
    let partial = bench.dir.path().join("a.perfetto-trace.partial");
    assert_eq!((outcome(&recording).stopped_by, &outcome(&recording).file), (StoppedBy::Error, &Some(partial.clone())));
    assert!(packets(&partial).len() > 10 && bench.runtime.is_alive());
    drop(producer);
}

/// Packets arrive in time, and never end.
#[tokio::test]
async fn endless_packets_are_an_error() {
    for (ends, part) in [
        (false, "it sent a packet of more than 32 MiB, the size of its buffers"),
        (true, "it sent more than 256 MiB for one request, although its buffers hold 64 MiB"),
    ] {
        let fault = Some(("ReadBuffers", ConsumerFault::EndlessPackets { ends }));
        let service = service(ConsumerBehavior { fault, ..with_kernel_events() });
        let recorder = service.start().await;
        service.consumer.until(|seen| seen.calls.contains(&"ReadBuffers")).await;
        let recording = finish(recorder).await;
        let outcome = outcome(&recording);
        assert!(outcome.trouble.as_deref().is_some_and(|trouble| trouble.contains(part)), "{outcome:?}");
        assert!(!outcome.complete && service.bench.runtime.is_alive(), "{outcome:?}");
    }
}

/// Each reply arrives in time, and there is always one more.
#[tokio::test]
async fn endless_replies_time_out() {
    let ended = async |method: &'static str, part| {
        let service = service(ConsumerBehavior { fault: Some((method, ConsumerFault::Endless)), ..with_kernel_events() });
        let recorder = service.start().await;
        match method {
            "ReadBuffers" => drop(service.consumer.until(|seen| seen.calls.contains(&method)).await),
            _ => drop(until(&recorder, has_both_kinds).await),
        }
        let recording = stop_recording(recorder).await;
        let outcome = outcome(&recording);
        assert!(outcome.trouble.as_deref().is_some_and(|trouble| trouble.contains(part)), "{outcome:?}");
        assert!(!outcome.complete && service.bench.runtime.is_alive(), "{outcome:?}");
        timeout(STEP_TIMEOUT, service.consumer.until(|seen| seen.recordings == 0)).await.unwrap();
    };
    tokio::join!(
        ended("ReadBuffers", "the answer to ReadBuffers was not complete within 10 s"),
        ended("DisableTracing", "the answer to DisableTracing was not complete within 10 s"),
    );
}

#[tokio::test]
async fn a_service_that_does_not_end_can_be_abandoned() {
    let service = service(ConsumerBehavior { fault: Some(("Flush", ConsumerFault::Silent)), ..with_kernel_events() });
    let recorder = service.start().await;
    until(&recorder, has_both_kinds).await;
    recorder.stop();
    service.consumer.until(|seen| seen.calls.contains(&"Flush")).await;
    recorder.abandon();
    let recording = finish(recorder).await;
    assert_eq!((outcome(&recording).complete, &outcome(&recording).file), (false, &Some(service.partial())));
    timeout(STEP_TIMEOUT, service.consumer.until(|seen| seen.recordings == 0)).await.unwrap();
    assert!(service.service.path().exists());
    let refused = service.try_start().await.unwrap_err().to_string();
    assert!(refused.contains("a.perfetto-trace.partial exists already") && !refused.contains("salvage"), "{refused}");
}

#[tokio::test]
async fn size_duration_and_target_exit_end_the_recording() {
    let timed = service(with_kernel_events());
    let plan = Plan { duration: Some(Duration::from_secs(1)), ..timed.plan() };
    let recording = timed.bench.start(plan).await.finished().await;
    assert_eq!((outcome(&recording).stopped_by, outcome(&recording).complete), (StoppedBy::Duration, true));
    let sized = service(with_kernel_events());
    let plan = Plan { max_bytes: Some(2_000), ..sized.plan() };
    let recording = sized.bench.start(plan).await.finished().await;
    assert_eq!((outcome(&recording).stopped_by, outcome(&recording).complete), (StoppedBy::Size, true));
    let service = service(with_kernel_events());
    let recorder = service.start().await;
    until(&recorder, has_both_kinds).await;
    let Service { service: _producer, consumer, bench: Bench { dir, runtime, .. } } = service;
    drop(runtime);
    let recording = finish(recorder).await;
    assert_eq!(outcome(&recording).stopped_by, StoppedBy::TargetExit);
    // The service ended properly, regardless of the stream.
    assert!(outcome(&recording).file.as_ref().is_some_and(|file| packets(file).len() > 10));
    consumer.until(|seen| seen.recordings == 0 && seen.calls.contains(&"FreeBuffers")).await;
    drop(dir);
}
