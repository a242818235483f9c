//! Tests that depend on Linux sockets, /proc and the kernel.

use std::io;
use std::os::unix::process::ExitStatusExt;

use tokio::net::UnixStream;
use tokio::time::timeout;

use super::*;
use crate::assembly::tests::{HOOK, TestAssembly};
use crate::ipc::{ClientData, EventFilter, PerfMapKind, TracepointProvider, Tracepoints};
use crate::net::answer::reply_after;
use crate::net::fake_proc::{Fake, FakeProc, fake};
use crate::net::peer;
use crate::net::stream::Listener;

#[tokio::test]
async fn socket_without_a_listener_is_stale() {
    let ended = Server::not_listening();
    drop(std::os::unix::net::UnixListener::bind(&ended.client.endpoint().socket).unwrap());
    assert_trouble(&ended, Trouble::Stale, "the process has ended").await;
}

#[tokio::test(start_paused = true)]
async fn connect_waits_while_the_backlog_is_full() {
    let server = Server::not_listening();
    let socket = rustix::net::socket_with(
        rustix::net::AddressFamily::UNIX,
        rustix::net::SocketType::STREAM,
        rustix::net::SocketFlags::NONBLOCK,
        None,
    )
    .unwrap();
    rustix::net::bind(&socket, &rustix::net::SocketAddrUnix::new(&server.client.endpoint().socket).unwrap()).unwrap();
    rustix::net::listen(&socket, 0).unwrap();
    let first = UnixStream::connect(&server.client.endpoint().socket).await.unwrap();
    let began = Instant::now();
    let error = server.client.process_info().await.unwrap_err();
    assert_eq!((error.trouble(), began.elapsed()), (Some(Trouble::Timeout), REPLY_TIMEOUT));
    drop(first);
}

#[tokio::test]
async fn commands_that_would_crash_the_process_are_not_sent() {
    let fake_proc = FakeProc::new();
    let waiting = Fake { started: 7, threads: &["dotnet", ".NET SynchManag", ".NET EventPipe"], ..fake(4242) };
    fake_proc.add(&waiting);
    std::fs::create_dir_all(fake_proc.path("proc/4242/root/app")).unwrap();
    std::fs::write(fake_proc.path("proc/4242/root/app/hook.dll"), HOOK.bytes()).unwrap();
    let server = Server::replying_with(ok(&Reply::Done, CommandCode::EnablePerfMap));
    let client = Client::for_process(server.client.endpoint().clone(), Arc::new(Proc::open(&fake_proc.path("proc")).unwrap()));
    let perf_map = Command::EnablePerfMap { kind: PerfMapKind::PerfMap };
    let error = client.run(&perf_map).await.unwrap_err();
    assert!(matches!(error.cause, Cause::Suspended) && error.to_string().contains("fails or crashes it: resume it first"), "{error}");
    // It would be refused as not yet available.
    let profiler = "123e4567-e89b-12d3-a456-426614174000".parse().unwrap();
    let (path, data) = (TargetPath::new("/profiler.so").unwrap(), ClientData::default());
    let error = client.run(&Command::AttachProfiler { timeout_ms: 1, profiler, path, data }).await.unwrap_err();
    assert!(matches!(error.cause, Cause::Suspended), "{error}");
    client.run(&Command::ResumeRuntime).await.unwrap();
    fake_proc.add(&Fake { started: 7, ..fake(4242) });
    client.run(&perf_map).await.unwrap();

    let hook = |path: &str| Command::ApplyStartupHook { path: TargetPath::new(path).unwrap() };
    client.run(&hook("/app/hook.dll")).await.unwrap();
    std::fs::write(fake_proc.path("proc/4242/root/app/service.dll"), TestAssembly { class: "Program", ..HOOK }.bytes()).unwrap();
    for missing in ["/app/hook", "/app", "/app/hook.dll/x", "hook.dll", "/app/service.dll"] {
        let error = client.run(&hook(missing)).await.unwrap_err();
        assert!(matches!(&error.cause, Cause::BadHook { path, .. } if path == missing), "{error}");
    }
    // Without any knowledge of the process it is unknown what it survives.
    let unknown = Client::new(server.client.endpoint().clone());
    assert!(matches!(unknown.run(&hook("/app/hook.dll")).await.unwrap_err().cause, Cause::BadHook { .. }));
    let error = unknown.run(&perf_map).await.unwrap_err();
    assert!(matches!(error.cause, Cause::StateUnknown) && error.to_string().contains("not sent, because it would crash"), "{error}");
    // The same applies to a process whose threads are not named yet.
    fake_proc.add(&Fake { started: 7, threads: &["dotnet"], ..fake(4243) });
    let endpoint = Endpoint { key: ProcessKey { pid: 4243, started: 7 }, ..server.client.endpoint().clone() };
    let early = Client::for_process(endpoint, Arc::new(Proc::open(&fake_proc.path("proc")).unwrap()));
    assert!(matches!(early.run(&perf_map).await.unwrap_err().cause, Cause::StateUnknown));
}

#[tokio::test]
async fn another_process_with_the_same_pid_is_not_inspected() {
    let fake_proc = FakeProc::new();
    let endpoint = Server::not_listening().client.endpoint().clone();
    let client = Client::for_process(endpoint, Arc::new(Proc::open(&fake_proc.path("proc")).unwrap()));
    let found = || [client.cpu_time().is_some(), client.initial_environment().is_some(), client.resources().open_files.is_some()];
    let add = |started| {
        fake_proc.add(&Fake { started, ..fake(4242) });
        std::fs::write(fake_proc.path("proc/4242/limits"), "Max open files            1024                 4096                 files\n")
            .unwrap();
        std::fs::create_dir_all(fake_proc.path("proc/4242/fd")).unwrap();
    };
    add(7);
    assert_eq!(found(), [true; 3]);
    add(8);
    assert_eq!(found(), [false; 3]);
}

/// Until then, the copy may be the one that writes the dump.
#[tokio::test]
async fn copy_of_a_runtime_is_killed_once_the_runtime_has_replied() {
    let fake_proc = FakeProc::new();
    let mut copy = std::process::Command::new("sleep").arg("1000").spawn().unwrap();
    let file = |pid: u32, name: &str| fake_proc.path(&format!("proc/{pid}/{name}"));
    for (fake, stat) in [
        (Fake { started: 7, ..fake(4242) }, None),
        (Fake { threads: &[".NET EventPipe"], ..fake(copy.id()) }, Some("(.NET EventPipe) S 4242 ")),
    ] {
        fake_proc.add(&fake);
        std::os::unix::fs::symlink("/dev/null", file(fake.pid, "exe")).unwrap();
        if let Some(stat) = stat {
            let own = std::fs::read_to_string(file(fake.pid, "stat")).unwrap();
            std::fs::write(file(fake.pid, "stat"), own.replacen("(dotnet) S 1 ", stat, 1)).unwrap();
        }
    }
    std::fs::write(file(4242, "task/4242/children"), copy.id().to_string()).unwrap();
    let request = DumpRequest { path: TargetPath::new("/tmp/d").unwrap(), kind: DumpKind::Mini, flags: DumpFlags::default() };
    let dump = async |reply| {
        let server = Server::replying_with(reply);
        let client = Client::for_process(server.client.endpoint().clone(), Arc::new(Proc::open(&fake_proc.path("proc")).unwrap()));
        client.dump(&request, REPLY_TIMEOUT).await.unwrap_err()
    };
    let closed = dump(Vec::new()).await;
    // A signal takes a moment.
    sleep(Duration::from_millis(200)).await;
    let runs = copy.try_wait().unwrap().is_none();
    let failed = dump(error_reply(Hresult::FAIL)).await;
    assert_eq!((runs, closed.hresult(), failed.hresult()), (true, None, Some(Hresult::FAIL)));
    assert_eq!(copy.wait().unwrap().signal(), Some(9));
}

#[tokio::test]
async fn a_reply_with_another_process_id_is_refused() {
    let fake_proc = FakeProc::new();
    let server = Server::replying_with(ok(&Reply::Info(Box::new(info())), CommandCode::ProcessInfo3));
    let client = Client::for_process(server.client.endpoint().clone(), Arc::new(Proc::open(&fake_proc.path("proc")).unwrap()));
    for (inner, is_same) in [(4242, true), (1, false)] {
        fake_proc.add(&Fake { started: 7, status: format!("Uid:\t0\t0\t0\t0\nNSpid:\t4242\t{inner}\n"), ..fake(4242) });
        match client.process_info().await {
            Ok(found) => assert!(is_same && found.is_some()),
            Err(error) => {
                assert!(!is_same && matches!(error.cause, Cause::Peer(peer::PeerError::Pid { reported: 4242, actual: 1 })), "{error}")
            }
        }
    }
}

#[tokio::test]
async fn user_events_file_is_sent_after_the_request() {
    let folder = tempfile::tempdir().unwrap();
    let runtime = |version: &str| {
        let socket = folder.path().join(version);
        let endpoint = Endpoint { key: ProcessKey { pid: 1, started: 1 }, socket: socket.clone() };
        (Simulated::start(socket, Spec::new("Web", version, 1)).unwrap(), Client::new(endpoint))
    };
    let session = || UserEvents {
        rundown_keyword: 0,
        providers: Providers::from(TracepointProvider {
            provider: Provider::new("P", 1, Level::Verbose).unwrap(),
            filter: EventFilter::ALL,
            tracepoints: Tracepoints::new(Some("p".to_owned()), vec![]).unwrap(),
        }),
    };
    let (_new, client) = runtime("10.0.9");
    let mut started = client.start_user_events(session(), &UserEventsData::simulated(folder.path())).await.unwrap();
    client.stop_session(started.id).await.unwrap();
    assert_eq!(started.stream.read(&mut [0]).await.unwrap(), 0);
    // A runtime refuses another file, and can then serve other requests.
    let error = client.start_user_events(session(), &UserEventsData::arbitrary_file("/dev/null".as_ref())).await.unwrap_err();
    assert!(error.hresult() == Some(Hresult::FAIL) && error.to_string().contains("with other fields, which `cat "), "{error}");
    assert!(client.process_info().await.unwrap().is_some());
    // An older runtime may have closed the connection before the file is sent.
    let (_old, client) = runtime("9.0.7");
    for _ in 0..20 {
        let error = client.start_user_events(session(), &UserEventsData::simulated(folder.path())).await.unwrap_err();
        assert!(error.to_string().contains("needs .NET 10"), "{error}");
    }
}

/// Without the file, a runtime that received the request waits for it, and is blocked until the connection is closed.
#[tokio::test(start_paused = true)]
async fn no_reply_is_awaited_if_the_request_was_not_sent_whole() {
    let server = Server::not_listening();
    let _silent = Listener::simulated(&server.client.endpoint().socket).unwrap();
    let mut stream = peer::connect(server.client.endpoint(), None).await.unwrap();
    let unsent = Err(io::ErrorKind::OutOfMemory.into());
    let answer = timeout(REPLY_TIMEOUT, reply_after(unsent, &mut stream, CommandCode::CollectTracing5)).await;
    assert!(matches!(answer, Ok(Err(Cause::Io(_)))), "{answer:?}");
}
