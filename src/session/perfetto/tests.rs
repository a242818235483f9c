//! Tests that serve simulated processes to a simulated tracing service: whatever it does, packets arrive or the reason is reported.

mod faults;

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt, copy_bidirectional};
use tokio::net::{UnixListener, UnixStream};
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio::time::{sleep, timeout};

use super::{ServeOptions, Settings, serve};
use crate::ipc::CommandCode;
use crate::model::{PacketCounts, ProducerReport};
use crate::net::Directory;
use crate::net::discovery::Sources;
use crate::net::perfetto::{Address, Connection, Port};
use crate::perfetto::producer::ProducerMethod;
use crate::perfetto::read::{Value, fields};
use crate::sim::Fleet;
use crate::sim::tests::{TracingBehavior, TracingFault, TracingSeen, TracingService};

/// Time limit of each step, for a busy machine.
const STEP_TIMEOUT: Duration = Duration::from_secs(60);

struct Bench {
    dir: tempfile::TempDir,
    _fleet: Fleet,
    service: Option<TracingService>,
    reports: Arc<Mutex<Vec<ProducerReport>>>,
    stop: watch::Sender<bool>,
    serving: Option<JoinHandle<()>>,
}

impl Bench {
    /// Creates one simulated process, a service with this behavior, and the producer between them.
    fn new(behavior: TracingBehavior) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let fleet = Fleet::uniform(dir.path(), 1).unwrap();
        let socket = dir.path().join("producer");
        let service = TracingService::start(&socket, behavior).unwrap();
        let mut bench =
            Self { dir, _fleet: fleet, service: Some(service), reports: Arc::default(), stop: watch::Sender::new(false), serving: None };
        let settings =
            Settings { clr_events: Some("gc".to_owned()), profiles: vec!["dotnet-sampled-thread-time".to_owned()], ..Settings::default() };
        let serve_this = ServeOptions {
            address: Some(Address::Path(socket)),
            settings,
            directory: Directory::new(Sources::below(bench.dir.path())).unwrap(),
        };
        let (reports, stop) = (bench.reports.clone(), bench.stop.subscribe());
        bench.serving = Some(tokio::spawn(async move {
            serve(serve_this, stop, Box::new(move |report| reports.lock().unwrap().push(report))).await.unwrap();
        }));
        bench
    }

    fn service(&self) -> &TracingService {
        self.service.as_ref().unwrap()
    }

    async fn until(&self, is_so: impl FnMut(&TracingSeen) -> bool) -> TracingSeen {
        let seen = timeout(STEP_TIMEOUT, self.service().until(is_so)).await;
        seen.unwrap_or_else(|_| panic!("{:?}", self.reports.lock().unwrap()))
    }

    async fn report(&self, is_it: impl Fn(&ProducerReport) -> bool) -> ProducerReport {
        let look = async {
            loop {
                if let Some(found) = self.reports.lock().unwrap().iter().find(|report| is_it(report)) {
                    return found.clone();
                }
                sleep(Duration::from_millis(5)).await;
            }
        };
        timeout(STEP_TIMEOUT, look).await.unwrap_or_else(|_| panic!("{:?}", self.reports.lock().unwrap()))
    }

    /// Waits for a report that contains this text.
    async fn message(&self, part: &str) -> String {
        let message = |report: &ProducerReport| match report {
            ProducerReport::Waiting(message) | ProducerReport::Trouble(message) => message.to_string(),
            _ => String::new(),
        };
        message(&self.report(|report| message(report).contains(part)).await)
    }

    /// Records for a while, and returns the packets.
    async fn recorded(&self) -> Vec<Vec<u8>> {
        self.service().record(1, "");
        self.until(|seen| seen.started == [1] && seen.packets().is_ok_and(|packets| packets.len() > 200)).await;
        self.service().stop(1);
        let seen = self.until(|seen| seen.stopped == [1]).await;
        seen.packets().unwrap()
    }

    async fn end(mut self) {
        self.stop.send_replace(true);
        timeout(STEP_TIMEOUT, self.serving.take().unwrap()).await.unwrap().unwrap();
    }
}

/// Field numbers that a producer must not write: the service sets them, or drops the packet.
const FORBIDDEN: [u32; 12] = [3, 10, 33, 35, 36, 50, 69, 79, 98, 124, 125, 133];

/// Checks that apply to every recording.
fn assert_valid_packets(packets: &[Vec<u8>]) {
    let has = |packet: &[u8], number: u32| fields(packet).map_while(Result::ok).any(|(found, _)| found == number);
    assert!(has(&packets[0], 59), "the first packet has no defaults");
    assert_eq!(fields(&packets[0]).map_while(Result::ok).find(|(number, _)| *number == 13), Some((13, Value::Number(1))));
    for packet in packets {
        assert!(fields(packet).all(|field| field.is_ok()));
        assert!(FORBIDDEN.iter().all(|number| !has(packet, *number)), "S3: a field that is the service's");
    }
    let count = |number| packets.iter().filter(|packet| has(packet, number)).count();
    assert!(
        count(60) >= 2 && count(66) > 0 && count(61) > 0,
        "{} tracks, {} samples, {} packets of names",
        count(60),
        count(66),
        count(61)
    );
}

#[tokio::test]
async fn p6_p9_p11_m1_m7_recording_uses_shared_memory() {
    let bench = Bench::new(TracingBehavior { first_method: 900, ..TracingBehavior::default() });
    assert_valid_packets(&bench.recorded().await);
    let seen = bench.until(|_| true).await;
    assert_eq!(seen.calls[..3], ["InitializeConnection", "GetAsyncCommand", "RegisterDataSource"]);
    assert_eq!(seen.sent, 0, "chunks were sent although there is memory");
    assert!(matches!(
        bench.report(|report| matches!(report, ProducerReport::Ended { .. })).await,
        ProducerReport::Ended { packets: PacketCounts { packets: 200.., bytes: 1.., dropped: 0 }, .. }
    ));
    bench.end().await;
}

#[tokio::test]
async fn s4_s5_older_and_newer_services_are_supported() {
    let all = TracingBehavior::default().methods;
    let old: Vec<_> = all.iter().copied().filter(|name| *name != "Sync").collect();
    let new = [&["Invented", "ToMorrow"], &all[..]].concat();
    for (methods, page_kb, unknown_fields) in [(old, None, false), (new, Some(32), true)] {
        let bench = Bench::new(TracingBehavior { methods, page_kb, unknown_fields, ..TracingBehavior::default() });
        if unknown_fields {
            bench.until(|seen| seen.calls.contains(&"RegisterDataSource")).await;
            // A command unknown to this version.
            bench.service().command(99, |command| command.uint(1, 1));
        }
        assert_valid_packets(&bench.recorded().await);
        assert_eq!(bench.until(|_| true).await.sent, 0);
        bench.end().await;
    }
}

/// S5: services that do not wait for the start and stop of a data source.
#[tokio::test]
async fn s5_service_without_notifications_is_supported() {
    let mut behavior = TracingBehavior::default();
    behavior.methods.retain(|name| !name.starts_with("Notify"));
    let bench = Bench::new(behavior);
    bench.until(|seen| seen.calls.contains(&"RegisterDataSource")).await;
    bench.service().record(1, "");
    bench.until(|seen| seen.packets().is_ok_and(|packets| packets.len() > 200)).await;
    bench.service().stop(1);
    bench.report(|report| matches!(report, ProducerReport::Ended { .. })).await;
    let reports = bench.reports.lock().unwrap().clone();
    assert!(!reports.iter().any(|report| matches!(report, ProducerReport::Waiting(_))), "{reports:?}");
    bench.end().await;
}

/// S6: only a flag of the service shows that there is no shared memory. Packets are then sent over the socket, and no fault is reported.
#[tokio::test]
async fn s6_service_flag_reports_missing_shared_memory() {
    let bench = Bench::new(TracingBehavior { without_memory: true, files: 0, ..TracingBehavior::default() });
    assert_valid_packets(&bench.recorded().await);
    let seen = bench.until(|_| true).await;
    assert!(seen.sent > 0 && seen.sent == seen.chunks.values().map(Vec::len).sum::<usize>());
    let reports = bench.reports.lock().unwrap().clone();
    assert!(!reports.iter().any(|report| matches!(report, ProducerReport::Trouble(_))), "{reports:?}");
    bench.end().await;
}

#[tokio::test]
async fn m9_ignored_options_are_noted_in_the_trace() {
    let bench = Bench::new(TracingBehavior::default());
    for field in [6, 1] {
        bench.service().command(field, |command| {
            command.uint(1, 1);
            command.message(2, |configuration| {
                configuration.text(1, "dotnet");
                configuration.uint(2, 1);
                configuration.uint(9, 2);
                configuration.message(113, |events| events.text(1, "*"));
            });
        });
    }
    bench.until(|seen| seen.started == [1] && seen.packets().is_ok_and(|packets| packets.len() > 200)).await;
    bench.service().stop(1);
    let seen = bench.until(|seen| seen.stopped == [1]).await;
    let text = seen.packets().unwrap().concat();
    for part in ["buffer_exhausted_policy: packets are dropped when the shared memory is full", "track_event_config is ignored"] {
        assert!(String::from_utf8_lossy(&text).contains(part), "{part}");
    }
    bench.end().await;
}

#[tokio::test]
async fn packet_counts_are_reported_during_a_recording() {
    let bench = Bench::new(TracingBehavior::default());
    bench.service().record(1, "");
    let grows = |report: &ProducerReport| matches!(report, ProducerReport::Progress { instance: 1, packets } if packets.packets > 200 && packets.bytes > 0);
    bench.report(grows).await;
    bench.service().stop(1);
    bench.until(|seen| seen.stopped == [1]).await;
    bench.end().await;
}

#[tokio::test]
async fn m1_shared_memory_may_arrive_with_the_first_reply() {
    let bench = Bench::new(TracingBehavior { files_at_once: true, page_kb: Some(32), ..TracingBehavior::default() });
    assert_valid_packets(&bench.recorded().await);
    assert_eq!(bench.until(|_| true).await.sent, 0);
    bench.end().await;
}

#[tokio::test]
async fn flush_is_acknowledged_and_incremental_state_is_resent() {
    let bench = Bench::new(TracingBehavior::default());
    bench.service().record(1, "");
    bench.until(|seen| seen.started == [1]).await;
    bench.service().command(5, |flush| {
        flush.uint(1, 1);
        flush.uint(2, 77);
    });
    bench.until(|seen| seen.flushed == [77]).await;
    bench.service().command(7, |clear| clear.uint(1, 1));
    let cleared = |seen: &TracingSeen| {
        let flags = |packet: &Vec<u8>| fields(packet).map_while(Result::ok).any(|field| field == (13, Value::Number(1)));
        seen.packets().is_ok_and(|packets| packets.iter().filter(|packet| flags(packet)).count() >= 2)
    };
    // S8
    bench.until(cleared).await;
    bench.service().stop(1);
    bench.until(|seen| seen.stopped == [1]).await;
    bench.end().await;
}

#[tokio::test]
async fn invalid_configuration_is_reported_in_the_trace() {
    let bench = Bench::new(TracingBehavior::default());
    bench.service().record(1, "profile=x");
    let seen = bench.until(|seen| seen.started == [1] && !seen.chunks.is_empty()).await;
    let text: Vec<u8> = seen.packets().unwrap().concat();
    assert!(String::from_utf8_lossy(&text).contains("configuration refused: 'profile=x' is not one of"));
    bench.service().stop(1);
    bench.until(|seen| seen.stopped == [1]).await;
    bench.end().await;
}

#[tokio::test]
async fn warnings_about_a_configuration_are_noted_in_the_trace() {
    let bench = Bench::new(TracingBehavior::default());
    bench.service().record(1, "profiles=dotnet-common clr-events=exception");
    let text = |seen: &TracingSeen| String::from_utf8_lossy(&seen.packets().unwrap_or_default().concat()).into_owned();
    bench.until(|seen| text(seen).contains("runtime events exception are ignored: a provider or profile already enables")).await;
    bench.service().stop(1);
    bench.until(|seen| seen.stopped == [1]).await;
    bench.end().await;
}

#[tokio::test]
async fn stop_is_honored_while_processes_are_being_found() {
    let bench = Bench::new(TracingBehavior::default());
    let path = bench.dir.path().join("silent");
    // Accepts connections, and answers nothing.
    let _silent = UnixListener::bind(&path).unwrap();
    bench.service().record(1, &format!("targets={}", path.display()));
    bench.service().stop(1);
    bench.until(|seen| seen.stopped == [1]).await;
    let started = bench.report(|report| matches!(report, ProducerReport::Started { .. })).await;
    let ProducerReport::Started { troubles, .. } = started else { panic!("{started:?}") };
    assert_eq!(troubles, ["stopped before the processes were found: nothing is recorded"]);
    bench.end().await;
}

/// Serves a socket of a runtime that does not answer requests for sessions, and reports the first such request. Others are passed on.
async fn without_sessions(listener: UnixListener, runtime: PathBuf, requested: watch::Sender<bool>) {
    let mut unanswered = Vec::new();
    while let Ok((mut client, _)) = listener.accept().await {
        let mut header = [0; 20];
        client.read_exact(&mut header).await.unwrap();
        if header[16] == CommandCode::CollectTracing.set() {
            requested.send_replace(true);
            unanswered.push(client);
            continue;
        }
        let mut server = UnixStream::connect(&runtime).await.unwrap();
        server.write_all(&header).await.unwrap();
        copy_bidirectional(&mut client, &mut server).await.unwrap();
    }
}

#[tokio::test]
async fn stop_is_honored_while_sessions_are_being_opened() {
    let bench = Bench::new(TracingBehavior::default());
    let mut directory = Directory::new(Sources::below(bench.dir.path())).unwrap();
    let runtime = directory.refresh(STEP_TIMEOUT).await.unwrap().pop().unwrap().socket.unwrap();
    let path = bench.dir.path().join("slow");
    let (requested, mut is_requested) = watch::channel(false);
    let relay = tokio::spawn(without_sessions(UnixListener::bind(&path).unwrap(), runtime, requested));
    bench.service().record(1, &format!("targets={}", path.display()));
    timeout(STEP_TIMEOUT, is_requested.wait_for(|is_requested| *is_requested)).await.unwrap().unwrap();
    bench.service().stop(1);
    bench.until(|seen| seen.stopped == [1]).await;
    let started = bench.report(|report| matches!(report, ProducerReport::Started { .. })).await;
    let ProducerReport::Started { processes, troubles, .. } = started else { panic!("{started:?}") };
    assert_eq!((processes.len(), troubles), (0, vec!["stopped before the sessions of 1 process were open".into()]));
    relay.abort();
    bench.end().await;
}

#[tokio::test]
async fn two_recordings_run_at_once_and_unknown_stop_is_answered() {
    let bench = Bench::new(TracingBehavior::default());
    bench.service().record(1, "");
    bench.service().record(2, "clr-events=gc");
    bench.until(|seen| seen.started.len() == 2 && seen.chunks.len() == 2).await;
    [2, 9, 1].into_iter().for_each(|instance| bench.service().stop(instance));
    let seen = bench.until(|seen| seen.stopped.len() == 3).await;
    assert!(seen.packets().is_ok());
    bench.end().await;
}
