//! Tests with files, devices and sockets of Linux.

use std::os::unix::fs::PermissionsExt;

use super::*;
use crate::ipc::PerfMapKind;
use crate::net::Directory;
use crate::net::discovery::Sources;
use crate::session::cpu_sample_file::CpuSampleFile;
use crate::session::cpu_use::CpuMonitor;
use crate::session::perf_map;
use crate::session::threads::Threads;
use crate::sim::Fleet;

#[tokio::test]
async fn recording_is_accessible_only_to_its_owner() {
    let bench = bench(spec());
    let recorder = bench.start(bench.plan()).await;
    assert!(outcome(&stop_recording(recorder).await).complete);
    assert_eq!(bench.file().metadata().unwrap().permissions().mode() & 0o777, 0o600);
}

#[tokio::test]
async fn full_disk_is_reported_and_the_stream_is_drained() {
    let (pumped, mut writing, progress) = pump(File::options().write(true).open("/dev/full").unwrap(), None).await;
    // More than a socket buffer holds: this blocks unless the pump drains it.
    writing.write_all(&vec![7; 4 << 20]).unwrap();
    drop(writing);
    let pumped = pumped.join().unwrap();
    assert!(!pumped.complete && pumped.broken);
    assert!(pumped.trouble.0.unwrap().contains("the disk is full"));
    assert_eq!(progress.totals().bytes, 0);
}

/// Nothing can be flushed to this device.
#[tokio::test]
async fn recording_that_cannot_be_flushed_is_incomplete() {
    let (pumped, mut writing, _) = pump(File::options().read(true).write(true).open("/dev/null").unwrap(), None).await;
    writing.write_all(&empty_trace(TraceHeader::default())).unwrap();
    drop(writing);
    let pumped = pumped.join().unwrap();
    assert!(!pumped.complete && pumped.trouble.0.unwrap().contains("could not be flushed to disk"));
}

/// A process that exits before it has read everything resets its connections.
#[tokio::test]
async fn reset_of_a_stream_is_its_end() {
    let (ours, theirs) = std::os::unix::net::UnixStream::pair().unwrap();
    (&ours).write_all(b"unread").unwrap();
    drop(theirs);
    ours.set_nonblocking(true).unwrap();
    let stream = tokio::net::UnixStream::from_std(ours).unwrap();
    let (_, mut stream) = TraceSession::of(nowhere(), Session { id: SessionId(1), stream, downgrades: Vec::new() }, u64::MAX).unwrap();
    assert_eq!(stream.read(&mut [0; 8]).await.unwrap(), 0);
}

#[tokio::test]
async fn perf_map_files_are_found() {
    let dir = tempfile::tempdir().unwrap();
    let fleet = Fleet::uniform(dir.path(), 1).unwrap();
    let mut directory = Directory::new(Sources::below(dir.path())).unwrap();
    let process = directory.resolve("Service000", Duration::from_secs(5)).await.unwrap();
    let client = directory.clients().of(&process).unwrap();
    let files = perf_map(&client, &process, Some(PerfMapKind::PerfMap)).await.unwrap();
    let names = ["perf", "perfinfo"].map(|kind| dir.path().join("tmp").join(format!("{kind}-{}.map", process.ns_pid)));
    assert_eq!(files, names);
    perf_map(&client, &process, None).await.unwrap();
    assert_eq!(fleet.alive(), 1);
}

/// If the process refuses the stop, the stream gets a moment to end, not the full time limit.
#[tokio::test]
async fn a_refused_stop_is_reported() {
    let bench = bench(Spec { script: limits::flood(), ..spec() });
    let recorder = bench.start(bench.plan()).await;
    until(&recorder, |recording| recording.bytes > 0).await;
    std::fs::remove_file(bench.runtime.socket()).unwrap();
    std::os::unix::net::UnixListener::bind(bench.runtime.socket())
        .map(|listener| {
            std::thread::spawn(move || {
                // Another server answers there.
                let (mut stream, _) = listener.accept().unwrap();
                let _ = stream.write_all(b"HTTP/1.1 400 Bad Request\r\n\r\n");
            })
        })
        .unwrap();
    let recording = stop_recording(recorder).await;
    limits::assert_incomplete(
        &recording,
        &bench,
        "the session could not be stopped: StopTracing to process 77: the peer is not a .NET diagnostic server",
    );
}

/// The path of a file is resolved through links, so that it is not compared with itself.
#[test]
fn links_to_a_file_resolve_to_one_path() {
    let folder = tempfile::tempdir().unwrap();
    let [real, link] = ["real", "link"].map(|name| folder.path().join(name));
    std::fs::create_dir(&real).unwrap();
    std::os::unix::fs::symlink(&real, &link).unwrap();
    std::fs::write(real.join("a.nettrace"), empty_trace(TraceHeader::default())).unwrap();
    let [listed] = &crate::session::recorded_files(&[], &real)[..] else { panic!() };
    for name in [link.join("a.nettrace"), link.join("../real/a.nettrace")] {
        assert_eq!(&crate::session::trace_file(&name).unwrap(), listed);
    }
    assert_eq!(&crate::session::recorded_files(&[], &link)[0], listed);
}

/// In a shared folder, anyone may create a file with the name of a recording's sample file.
#[test]
fn sample_file_behind_a_link_is_not_read() {
    let folder = tempfile::tempdir().unwrap();
    let [recording, samples, elsewhere] = ["a.nettrace", "a.cpu.nettrace", "b"].map(|name| folder.path().join(name));
    let header = TraceHeader::default();
    std::fs::write(&samples, empty_trace(header)).unwrap();
    assert!(CpuSampleFile::open(&recording, &header).is_ok());
    std::fs::rename(&samples, &elsewhere).unwrap();
    std::os::unix::fs::symlink(&elsewhere, &samples).unwrap();
    assert!(CpuSampleFile::open(&recording, &header).is_err());
}

/// Reading /proc takes long if the process has many threads or its memory map is locked.
#[tokio::test]
async fn slow_proc_stalls_no_other_task() {
    let bench = bench(spec());
    let stat = bench.dir.path().join("77/stat");
    std::fs::create_dir(stat.parent().unwrap()).unwrap();
    rustix::fs::mkfifoat(rustix::fs::CWD, &stat, rustix::fs::Mode::RWXU).unwrap();
    let client = bench.client.clone().with_proc(bench.dir.path()).unwrap();
    // Opening the pipe waits until it is removed.
    let (remove, removal) = std::sync::mpsc::channel();
    let remover = std::thread::spawn(move || {
        let in_time = removal.recv_timeout(Duration::from_secs(10)).is_ok();
        let pipe = File::options().read(true).write(true).open(&stat).unwrap();
        std::fs::remove_file(&stat).unwrap();
        drop(pipe);
        in_time
    });
    let watched = client.clone();
    let reading = tokio::spawn(async move { CpuMonitor::default().read(&watched).await });
    let mut threads = Threads::default();
    assert_eq!(threads.read_if_due(&client), None);
    tokio::task::yield_now().await;
    assert!(!reading.is_finished());
    remove.send(()).unwrap();
    assert_eq!(reading.await.unwrap(), None);
    assert!(remover.join().unwrap(), "this task waited for /proc");
    let shown = loop {
        match threads.read_if_due(&client) {
            Some(shown) => break shown,
            None => tokio::task::yield_now().await,
        }
    };
    assert!(shown.is_empty(), "{shown:?}");
}
