#[cfg(target_os = "linux")]
mod linux;

use std::sync::atomic::{AtomicUsize, Ordering};

use tokio::io::{AsyncReadExt, AsyncWriteExt};

use super::*;
use crate::ipc::{CommandCode, Cookie, Failure, HEADER_BYTES, Hresult, Reply, RuntimeVersion};
use crate::model::{Contact, Trouble};
use crate::net::fake_proc::{FakeProc, fake};
use crate::net::stream::Listener;
use crate::sim::{Simulated, Spec};

/// Number of requests that a server received.
type RequestCount = Arc<AtomicUsize>;

/// Starts a server for `pid` at its usual socket. It answers every command alike: as a runtime of that version, as one of 3.x, or not at all.
fn serve(fake_proc: &FakeProc, pid: u32, version: Option<&'static str>, answers: bool) -> RequestCount {
    let requests = RequestCount::default();
    let listener = Listener::simulated(&fake_proc.usual_address(pid)).unwrap();
    tokio::spawn({
        let requests = Arc::clone(&requests);
        async move {
            loop {
                let mut stream = listener.accept().await.unwrap();
                stream.read_exact(&mut [0; HEADER_BYTES]).await.unwrap();
                requests.fetch_add(1, Ordering::Relaxed);
                let info = version.map(|version| ProcessInfo {
                    pid: pid.into(),
                    cookie: Cookie([pid as u8; 16]),
                    command_line: "/usr/bin/dotnet /srv/shop.dll".into(),
                    os: "Linux".into(),
                    arch: "x64".into(),
                    entry_assembly: Some(format!("shop{pid}")),
                    clr_version: Some(RuntimeVersion::new(version)),
                    rid: None,
                });
                let reply = match info {
                    Some(info) => Reply::Info(Box::new(info)).encode(CommandCode::ProcessInfo3).unwrap(),
                    None => Failure::from(Hresult::UNKNOWN_COMMAND).encode().unwrap(),
                };
                if answers {
                    stream.write_all(&reply).await.unwrap();
                } else {
                    tokio::time::sleep(Duration::from_secs(3600)).await;
                }
            }
        }
    });
    requests
}

const TIMEOUT: Duration = Duration::from_secs(20);

fn row(rows: &[Process], pid: u32) -> &Process {
    rows.iter().find(|row| row.key.pid == pid).unwrap()
}

#[tokio::test]
async fn targets_are_found_by_pid_or_name() {
    let fake_proc = FakeProc::new();
    fake_proc.add(&fake(1));
    fake_proc.add(&fake(3).without_runtime());
    serve(&fake_proc, 1, Some("9.0.7"), true);
    let mut directory = Directory::new(fake_proc.sources()).unwrap();
    for text in ["1", "shop1"] {
        assert_eq!(directory.resolve(text, TIMEOUT).await.unwrap().key.pid, 1);
    }
    for (text, words) in [
        ("2", "there is no process 2"),
        ("3", "process 3 is not a .NET process"),
        ("other", "there is no .NET process named 'other'"),
        ("shop1,connect", "there is no .NET process named 'shop1,connect'"),
    ] {
        let error = directory.resolve(text, TIMEOUT).await.unwrap_err().to_string();
        assert!(error.starts_with(words), "{error}");
    }
    let known = directory.resolve("1", TIMEOUT).await.unwrap().key;
    let error = directory.connected(known, TIMEOUT).await.unwrap_err();
    assert!(matches!(error, TargetError::Disconnected(1)), "{error}: it has only its own socket");
    let clients = directory.clients();
    let row = Process { socket: Some(fake_proc.address("moved")), ..directory.resolve("1", TIMEOUT).await.unwrap() };
    assert_eq!(Some(clients.of(&row).unwrap().endpoint().socket.as_path()), row.socket.as_deref());
    let without_pid = Process { key: ProcessKey { pid: 0, started: 0 }, ..row };
    clients.of(&without_pid).unwrap();
    assert_eq!(clients.support.lock().unwrap().keys().map(|key| key.pid).collect::<Vec<_>>(), [1], "any process can be behind it");
    // Another process has the pid.
    let earlier = directory.unlisted(ProcessKey { started: known.started - 1, ..known }, 5, 77);
    assert_eq!((earlier.name.as_str(), earlier.ns_pid, earlier.uid), ("", 5, 77));
    assert_eq!(directory.unlisted(known, 5, 77).ns_pid, 1);
}

/// A name that no process has yet may be looked for during days.
#[tokio::test]
async fn search_for_a_name_keeps_nothing_of_ended_processes() {
    let fake_proc = FakeProc::new();
    let mut directory = Directory::new(fake_proc.sources()).unwrap();
    for pid in 1..=5 {
        fake_proc.add(&fake(pid));
        serve(&fake_proc, pid, Some("9.0.7"), true);
        assert!(matches!(directory.resolve("missing", TIMEOUT).await, Err(TargetError::NoName(_))));
        assert_eq!((directory.inquiries.len(), directory.clients.known.lock().unwrap().len()), (1, 1), "{pid}");
        fake_proc.remove(pid);
        std::fs::remove_file(fake_proc.usual_address(pid)).unwrap();
    }
}

#[tokio::test]
async fn a_process_that_ended_is_not_attachable() {
    let fake_proc = FakeProc::new();
    let start = |pid, version| {
        fake_proc.add(&fake(pid));
        Simulated::start(fake_proc.usual_address(pid), Spec::new("Shop", version, pid)).unwrap()
    };
    let mut directory = Directory::new(fake_proc.sources()).unwrap();
    let _lives = start(100, "9.0.7");
    // It is known that 3.1 lacks the query, which must not count as an answer.
    for (pid, version) in (1..10).zip(["9.0.7", "3.1.23"].into_iter().cycle()) {
        let ends = start(pid, version);
        let rows = directory.refresh(TIMEOUT).await.unwrap();
        assert_eq!(row(&rows, pid).contact, Contact::Ok);
        fake_proc.remove(pid);
        ends.kill();
        let rows = directory.refresh(TIMEOUT).await.unwrap();
        let attachable: Vec<_> = rows.iter().filter(|row| row.contact.is_attachable()).map(|row| row.key.pid).collect();
        assert_eq!(attachable, [100], "{version}");
    }
}

#[tokio::test]
async fn silent_processes_do_not_delay_refresh() {
    let fake_proc = FakeProc::new();
    for pid in 1..40 {
        fake_proc.add(&fake(pid));
        serve(&fake_proc, pid, Some("9.0.7"), pid % 10 != 0);
    }
    let mut directory = Directory::new(fake_proc.sources()).unwrap();
    let short_timeout = Duration::from_millis(300);
    let rows = directory.refresh(short_timeout).await.unwrap();
    assert_eq!(rows.len(), 39);
    assert!(rows.iter().all(|row| row.contact == if row.key.pid % 10 == 0 { Contact::Unknown } else { Contact::Ok }), "{rows:#?}");
    // No process is queried again, so there is nothing to wait for.
    let began = Instant::now();
    directory.refresh(TIMEOUT).await.unwrap();
    assert!(began.elapsed() < short_timeout);
    let is_slow = |rows: &[Process]| matches!(row(rows, 10).contact, Contact::Trouble { kind: Trouble::Slow, .. });
    let slow = async {
        while !is_slow(&directory.refresh(short_timeout).await.unwrap()) {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    timeout(TIMEOUT, slow).await.unwrap();
}

#[tokio::test]
async fn resolving_does_not_wait_for_other_processes() {
    let fake_proc = FakeProc::new();
    for pid in 1..4 {
        fake_proc.add(&fake(pid));
    }
    let [first, _, silent] = [(1, true), (2, true), (3, false)].map(|(pid, answers)| serve(&fake_proc, pid, Some("9.0.7"), answers));
    let began = Instant::now();
    let found = Directory::new(fake_proc.sources()).unwrap().resolve("2", TIMEOUT).await.unwrap();
    assert_eq!((found.name.as_str(), &found.contact), ("shop2", &Contact::Ok));
    assert_eq!([first, silent].map(|requests| requests.load(Ordering::Relaxed)), [0, 0], "no other process is asked");
    let found = Directory::new(fake_proc.sources()).unwrap().resolve("shop2", TIMEOUT).await.unwrap();
    assert_eq!((found.key.pid, &found.contact), (2, &Contact::Ok));
    // The matching name is known without a query.
    let found = Directory::new(fake_proc.sources()).unwrap().resolve("shop", TIMEOUT).await.unwrap();
    assert_eq!(found.key.pid, 3);
    assert!(matches!(found.contact, Contact::Trouble { kind: Trouble::Timeout, .. }), "{:?}", found.contact);
    assert!(began.elapsed() < TIMEOUT);
}

#[tokio::test]
async fn a_hundred_silent_processes_do_not_delay_others() {
    let fake_proc = FakeProc::new();
    let (silent, answers) = (1..=100_u32, 101);
    silent.clone().chain([answers]).for_each(|pid| fake_proc.add(&fake(pid)));
    silent.clone().for_each(|pid| drop(serve(&fake_proc, pid, Some("9.0.7"), false)));
    serve(&fake_proc, answers, Some("9.0.7"), true);
    let mut directory = Directory::new(fake_proc.sources()).unwrap();
    let rows = directory.refresh(Duration::from_millis(1100)).await.unwrap();
    assert_eq!(row(&rows, answers).contact, Contact::Ok);
    for pid in silent {
        let Contact::Trouble { kind, reason } = &row(&rows, pid).contact else { panic!("{:?}", row(&rows, pid)) };
        assert!(*kind == Trouble::Slow && reason.starts_with("it has not answered for 1 s"), "{reason}");
    }
}
