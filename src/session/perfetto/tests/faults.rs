//! Services that are faulty, do not respond, restart, or are not those of an expected user.

use tokio::task::JoinSet;

use super::*;

#[tokio::test]
async fn p12_invalid_shared_memory_is_not_mapped() {
    let table = [
        (TracingBehavior { files: 0, ..TracingBehavior::default() }, "passed 0 files instead of one"),
        (TracingBehavior { files: 2, ..TracingBehavior::default() }, "passed 2 files instead of one"),
        (TracingBehavior { sealed: false, ..TracingBehavior::default() }, "not sealed"),
        (TracingBehavior { memory: 4095, ..TracingBehavior::default() }, "invalid size: 4095 bytes"),
        (TracingBehavior { page_kb: Some(12), ..TracingBehavior::default() }, "page size"),
    ];
    let rows = table.map(|(behavior, part)| async move {
        let bench = Bench::new(behavior);
        let message = bench.message(part).await;
        assert!(message.ends_with("packets are sent over the socket instead"), "{message}");
        assert_valid_packets(&bench.recorded().await);
        let seen = bench.until(|_| true).await;
        assert_eq!(seen.sent, seen.chunks.values().map(Vec::len).sum::<usize>());
        bench.end().await;
    });
    JoinSet::from_iter(rows).join_all().await;
}

#[tokio::test]
async fn m14_overwritten_shared_memory_does_not_stop_the_producer() {
    let bench = Bench::new(TracingBehavior { fault: TracingFault::OverwritesMemory, ..TracingBehavior::default() });
    bench.service().record(1, "");
    // Chunks may be lost or arrive: what matters is that commits continue, and that the recording ends properly.
    bench.until(|seen| seen.started == [1] && seen.calls.iter().filter(|call| **call == "CommitData").count() > 20).await;
    bench.service().stop(1);
    bench.until(|seen| seen.stopped == [1]).await;
    bench.end().await;
}

#[tokio::test]
async fn shared_memory_that_is_never_freed_is_abandoned() {
    let bench = Bench::new(TracingBehavior { fault: TracingFault::KeepsChunks, memory: 4096, ..TracingBehavior::default() });
    assert_valid_packets(&bench.recorded().await);
    bench.message("does not free").await;
    bench.end().await;
}

#[tokio::test]
async fn faulty_service_is_reported() {
    let table = [
        (TracingFault::Garbage, "more than the protocol allows"),
        (TracingFault::Closes, "the connection was closed"),
        (TracingFault::Silent, "no answer to"),
    ];
    let rows = table.map(|(fault, part)| async move {
        let bench = Bench::new(TracingBehavior { fault, ..TracingBehavior::default() });
        let message = bench.message(part).await;
        assert!(message.starts_with("Perfetto's tracing service at "), "{message}");
        bench.end().await;
    });
    JoinSet::from_iter(rows).join_all().await;
}

#[tokio::test]
async fn p15_m8_service_that_does_not_read_stalls_nothing() {
    let bench = Bench::new(TracingBehavior { fault: TracingFault::StopsReading, ..TracingBehavior::default() });
    bench.service().record(1, "");
    bench.until(|seen| seen.started == [1]).await;
    bench.end().await;
}

/// Each stop of an unknown recording is answered at once: the answers fill the socket, then the send queue.
#[tokio::test]
async fn service_that_never_reads_replies_is_disconnected() {
    let bench = Bench::new(TracingBehavior { fault: TracingFault::StopsReading, ..TracingBehavior::default() });
    bench.service().record(1, "");
    bench.until(|seen| seen.started == [1]).await;
    (0..100_000).for_each(|_| bench.service().stop(99));
    let message = bench.message("it is not reading").await;
    assert_eq!(message, format!("Perfetto's tracing service at {}: it is not reading its socket", bench.service().path().display()));
    bench.end().await;
}

/// The service may be paused and continued: the connection stays.
#[tokio::test]
async fn unresponsive_service_is_reported_and_stays_connected() {
    let rows = [TracingFault::StopsAnswering, TracingFault::StopsReading].map(|fault| async move {
        let bench = Bench::new(TracingBehavior { fault, ..TracingBehavior::default() });
        bench.service().record(1, "");
        bench.until(|seen| seen.started == [1]).await;
        let message = bench.message("no answer to CommitData within 5 s").await;
        assert!(
            message.starts_with("Perfetto's tracing service at ")
                && message.ends_with("; packets it does not accept are dropped and counted")
        );
        // Reported once, and packets continue to be produced.
        let packets = |report: &ProducerReport| match report {
            ProducerReport::Progress { packets, .. } => packets.packets + packets.dropped,
            _ => 0,
        };
        let count = bench.reports.lock().unwrap().iter().map(packets).max().unwrap();
        bench.report(|report| packets(report) > count).await;
        let reports = bench.reports.lock().unwrap().clone();
        let count = |is_it: fn(&ProducerReport) -> bool| reports.iter().filter(|report| is_it(report)).count();
        assert_eq!(count(|report| matches!(report, ProducerReport::Trouble(_))), 1, "{reports:?}");
        assert_eq!(count(|report| matches!(report, ProducerReport::Connected(_))), 1, "{reports:?}");
        assert_eq!(count(|report| matches!(report, ProducerReport::Waiting(_))), 0, "{reports:?}");
        bench.end().await;
    });
    JoinSet::from_iter(rows).join_all().await;
}

#[tokio::test]
async fn restarted_service_is_reconnected() {
    let mut bench = Bench::new(TracingBehavior::default());
    bench.service().record(1, "");
    bench.until(|seen| seen.started == [1]).await;
    let path = bench.service().path().to_owned();
    drop(bench.service.take());
    bench.message("").await;
    std::fs::remove_file(&path).unwrap();
    bench.service = Some(TracingService::start(&path, TracingBehavior::default()).unwrap());
    assert_valid_packets(&bench.recorded().await);
    bench.end().await;
}

/// P1, P2, P5, P14: path and owner of the socket.
#[tokio::test]
async fn sockets_are_checked_before_a_byte_is_sent() {
    let dir = tempfile::tempdir().unwrap();
    let open = async |path: &Path| match Connection::<ProducerMethod, ()>::open(Address::Path(path.to_owned())).await {
        Ok(_) => String::new(),
        Err(error) => error.to_string(),
    };
    assert!(open(&dir.path().join("none")).await.contains("no service listens there"));
    std::fs::write(dir.path().join("file"), "").unwrap();
    assert!(open(&dir.path().join("file")).await.contains("the file is not a socket"));
    let _service = TracingService::start(&dir.path().join("socket"), TracingBehavior::default()).unwrap();
    assert_eq!(open(&dir.path().join("socket")).await, "");
    assert!(Address::of(Port::Producer).is_ok());
    if rustix::process::geteuid().is_root() {
        use std::os::unix::fs::{PermissionsExt, chown};
        let theirs = dir.path().join("socket");
        chown(&theirs, Some(65_533), None).unwrap();
        // In a folder that only root can write to, it must have been placed by root.
        assert!(open(&theirs).await.is_empty());
        std::fs::set_permissions(dir.path(), std::fs::Permissions::from_mode(0o1777)).unwrap();
        assert!(open(&theirs).await.contains("belongs to user 65533 and is in a directory that every user can write to"));
    }
}
