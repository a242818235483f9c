//! Tests that depend on sockets and /proc.

use rustix::fs::{CWD, Mode, mkfifoat};
use tokio::net::UnixListener;

use super::*;
use crate::model::RunState;
use crate::net::endpoint::SocketName;
use crate::net::fake_proc::{Fake, OLD, SUSPENDED};
use crate::sim::ConnectPort;

#[tokio::test]
async fn replies_are_cached_per_process() {
    let fake_proc = FakeProc::new();
    let library = "7f00-7f01 r-xp 0 08:01 12   /opt/Microsoft.NETCore.App/3.1.23/libcoreclr.so\n";
    fake_proc.add(&fake(1));
    fake_proc.add(&Fake { threads: &["dotnet", "dotnet"], maps: library, ..fake(2) });
    fake_proc.add(&fake(3).without_runtime());
    let (new, old) = (serve(&fake_proc, 1, Some("9.0.7"), true), serve(&fake_proc, 2, None, true));
    // Two in a namespace that we cannot see, and one that does not exist.
    let (unseen, unseen_old) = (serve(&fake_proc, 70, Some("8.0.1"), true), serve(&fake_proc, 72, None, true));
    fake_proc.socket("tmp", 71, OLD);

    let mut directory = Directory::new(fake_proc.sources()).unwrap();
    for _ in 0..3 {
        let rows = directory.refresh(TIMEOUT).await.unwrap();
        assert_eq!(rows.iter().map(|row| row.key.pid).collect::<Vec<_>>(), [1, 2, 70, 71, 72]);
        let facts = |pid| {
            let row = row(&rows, pid);
            (row.name.as_str(), row.runtime.as_ref().map(RuntimeVersion::as_str), row.cookie.is_some(), row.contact == Contact::Ok)
        };
        assert_eq!(facts(1), ("shop1", Some("9.0.7"), true, true));
        assert_eq!(facts(2), ("shop", Some("3.1.23"), false, true));
        assert_eq!(facts(70), ("shop70", Some("8.0.1"), true, true));
        assert_eq!(facts(72), ("(unknown)", None, false, true));
        assert!(matches!(row(&rows, 71).contact, Contact::Trouble { kind: Trouble::Stale, .. }));
    }
    let times = [new, old, unseen, unseen_old].map(|requests| requests.load(Ordering::Relaxed));
    assert_eq!(times, [1, 3, 1, 3], "each once, and 3.1 once for each generation");

    let rows = directory.refresh(TIMEOUT).await.unwrap();
    let clients = directory.clients();
    assert!(clients.of(row(&rows, 1)).unwrap().process_info().await.unwrap().is_some());
    assert_eq!([clients.known.lock().unwrap().len(), clients.support.lock().unwrap().len()], [5; 2]);
    std::fs::remove_dir_all(fake_proc.path("proc/1")).unwrap();
    std::fs::remove_file(row(&rows, 1).socket.as_ref().unwrap()).unwrap();
    assert_eq!(directory.refresh(TIMEOUT).await.unwrap().len(), 4);
    let kept = [clients.known.lock().unwrap().len(), clients.support.lock().unwrap().len(), directory.inquiries.len()];
    assert_eq!(kept, [4; 3]);
}

#[tokio::test]
async fn targets_are_found_by_the_path_of_their_socket() {
    let fake_proc = FakeProc::new();
    let mut directory = Directory::new(fake_proc.sources()).unwrap();
    let error = directory.resolve("/no/such", TIMEOUT).await.unwrap_err().to_string();
    assert!(error.starts_with("there is no socket /no/such"), "{error}");
    // A runtime's socket in a directory that is not searched, and a socket that belongs to no runtime.
    std::fs::create_dir(fake_proc.path("elsewhere")).unwrap();
    serve(&fake_proc, 50, Some("8.0.0"), true);
    let name = SocketName { pid: 50, key: OLD }.to_string();
    std::fs::rename(fake_proc.path("tmp").join(&name), fake_proc.path("elsewhere").join(&name)).unwrap();
    let found = directory.resolve(fake_proc.path("elsewhere").join(&name).to_str().unwrap(), TIMEOUT).await.unwrap();
    assert_eq!((found.key.pid, found.name.as_str(), found.contact), (50, "shop50", Contact::Ok));
    let found = directory.resolve(&format!("{},connect", fake_proc.path("elsewhere").join(&name).display()), TIMEOUT).await.unwrap();
    assert_eq!((found.key.pid, found.contact), (50, Contact::Ok));
    std::fs::write(fake_proc.path("elsewhere/file"), "").unwrap();
    drop(UnixListener::bind(fake_proc.path("elsewhere/dead")).unwrap());
    let dead = fake_proc.path("elsewhere/dead");
    let found = directory.resolve(dead.to_str().unwrap(), TIMEOUT).await.unwrap();
    let Contact::Trouble { kind: Trouble::Stale, reason } = &found.contact else { panic!("{found:?}") };
    assert!(reason.starts_with("no process listens on this socket: the process has ended"), "{reason}");
    // Opening a pipe would wait for a writer.
    mkfifoat(CWD, fake_proc.path("elsewhere/pipe"), Mode::RUSR).unwrap();
    for path in ["elsewhere", "elsewhere/file", "elsewhere/pipe"] {
        let path = fake_proc.path(path);
        let error = directory.resolve(path.to_str().unwrap(), TIMEOUT).await.unwrap_err().to_string();
        assert!(error.starts_with(&format!("{} is not a socket: ", path.display())), "{error}");
    }
}

#[tokio::test]
async fn cached_reply_is_dropped_when_the_process_exits() {
    let fake_proc = FakeProc::new();
    let (lives, dies) = (100_u32, 1..100_u32);
    let kill = |pid: u32| std::fs::remove_dir_all(fake_proc.path(&format!("proc/{pid}"))).unwrap();
    let start = |pid: u32| {
        fake_proc.add(&fake(pid));
        Simulated::start(fake_proc.path("tmp").join(SocketName { pid, key: OLD }.to_string()), Spec::new("Shop", "9.0.7", pid)).unwrap()
    };
    let mut directory = Directory::new(fake_proc.sources()).unwrap();
    let _lives = start(lives);
    for pid in dies.clone() {
        let dies = start(pid);
        let rows = directory.refresh(TIMEOUT).await.unwrap();
        assert_eq!(row(&rows, pid).contact, Contact::Ok);
        // It is also killed during a query.
        let client = directory.clients().of(row(&rows, pid)).unwrap();
        let late = tokio::spawn(async move { client.process_info().await.is_ok() });
        kill(pid);
        dies.kill();
        let rows = directory.refresh(TIMEOUT).await.unwrap();
        let gone = row(&rows, pid);
        assert!(gone.is_stale_socket() && gone.cookie.is_none() && gone.runtime.is_none(), "{gone:#?}");
        late.await.unwrap();
        let attachable: Vec<_> = rows.iter().filter(|row| row.contact.is_attachable()).map(|row| row.key.pid).collect();
        assert_eq!(attachable, [lives]);
    }
    let listed = directory.refresh(TIMEOUT).await.unwrap().len();
    assert_eq!(listed + directory.more_stale_sockets(), 100);
    assert!(listed < 100 && directory.inquiries.len() <= listed && directory.clients.known.lock().unwrap().len() <= listed);
}

#[tokio::test]
async fn excess_stale_sockets_are_counted_but_not_listed() {
    let fake_proc = FakeProc::new();
    fake_proc.add(&fake(1));
    let requests = serve(&fake_proc, 1, Some("9.0.7"), true);
    for pid in 2..3002 {
        fake_proc.socket("tmp", pid, OLD);
    }
    let mut directory = Directory::new(fake_proc.sources()).unwrap();
    for _ in 0..3 {
        let rows = directory.refresh(TIMEOUT).await.unwrap();
        assert!(rows.len() < 100 && row(&rows, 1).contact == Contact::Ok, "{}", rows.len());
        assert_eq!(rows.len() - 1 + directory.more_stale_sockets(), 3000);
    }
    assert_eq!(requests.load(Ordering::Relaxed), 1);
}

#[tokio::test]
async fn processes_connected_to_our_port_are_listed_and_use_it() {
    let fake_proc = FakeProc::new();
    let port = fake_proc.path("port");
    let connect = |pid, suspend| Spec { port: Some(ConnectPort { path: port.clone(), suspend }), ..Spec::new("Web", "9.0.7", pid) };
    fake_proc.add(&Fake { environ: "DOTNET_DiagnosticPorts=/port", threads: SUSPENDED, ..fake(1) });
    // Its own socket cannot be found.
    fake_proc.add(&fake(2).suspended());
    let both = Spec { suspended: true, ..connect(1, true) };
    let _one = Simulated::start(fake_proc.path("tmp").join(SocketName { pid: 1, key: OLD }.to_string()), both).unwrap();
    let two = Simulated::start(fake_proc.path("2"), connect(2, true)).unwrap();

    let mut directory = Directory::new(fake_proc.sources()).unwrap();
    let serving = Port::serve(&port, &fake_proc.sources()).unwrap();
    directory.serve(serving);
    let clients = directory.clients();
    let began = Instant::now();
    let rows = loop {
        let rows = directory.refresh(TIMEOUT).await.unwrap();
        if rows.iter().all(|row| row.cookie.is_some() && clients.of(row).is_some_and(|client| client.endpoint().socket == port)) {
            break rows;
        }
        assert!(began.elapsed() < TIMEOUT, "{rows:#?}");
        tokio::time::sleep(Duration::from_millis(10)).await;
    };
    assert_eq!(
        rows.iter().map(|row| (row.key.pid, row.key.started, row.run_state)).collect::<Vec<_>>(),
        [(1, OLD, RunState::Suspended), (2, OLD, RunState::Suspended)]
    );
    assert_eq!((rows[0].name.as_str(), &rows[0].contact, rows[1].socket.as_deref()), ("Web", &Contact::Ok, Some(port.as_path())));
    for row in &rows {
        // Its files in /proc do not change, so it appears to be held by another port.
        let held = clients.resume(row).await.unwrap().unwrap_err();
        assert!(matches!(held.cause, Cause::StillSuspended), "{held}");
        let line = clients.of(row).unwrap().process_info().await.unwrap().unwrap().command_line;
        assert!(line.contains("Web.dll"), "{line}: resumed on every way that it waits for");
    }
    let mut changes = directory.changes().unwrap();
    std::fs::remove_dir_all(fake_proc.path("proc/2")).unwrap();
    two.kill();
    changes.changed().await.unwrap();
    assert!(clients.of(&rows[1]).is_none(), "no client for a socket that runtimes connect to");
    assert_eq!(directory.refresh(TIMEOUT).await.unwrap().len(), 1);

    assert!(directory.refresh(TIMEOUT).await.unwrap()[0].on_port);
    assert!(clients.serve(&port).is_err(), "there is one");
    clients.close_port();
    assert!(!port.exists() && directory.changes().is_none());
    let rows = directory.refresh(TIMEOUT).await.unwrap();
    assert!(!rows[0].on_port && clients.of(&rows[0]).is_some_and(|client| client.endpoint().socket != port), "it has its own socket");
    clients.close_port();
    clients.serve(&port).unwrap();
    directory.changes().unwrap().changed().await.unwrap();
    assert!(directory.refresh(TIMEOUT).await.unwrap()[0].on_port, "it has connected again");
}

#[tokio::test]
async fn user_of_a_process_that_is_not_visible_is_known_from_its_connection() {
    let fake_proc = FakeProc::new();
    let port = fake_proc.path("port");
    let spec = Spec { port: Some(ConnectPort { path: port.clone(), suspend: false }), ..Spec::new("Web", "9.0.7", 9) };
    let _runtime = Simulated::start(fake_proc.path("9"), spec).unwrap();
    let mut directory = Directory::new(fake_proc.sources()).unwrap();
    directory.serve(Port::serve(&port, &fake_proc.sources()).unwrap());
    let began = Instant::now();
    let row = loop {
        if let Some(row) = directory.refresh(TIMEOUT).await.unwrap().pop() {
            break row;
        }
        assert!(began.elapsed() < TIMEOUT, "the process is not listed");
        tokio::time::sleep(Duration::from_millis(10)).await;
    };
    // Run as root, the test cannot tell it from an unknown user.
    assert_eq!((row.key.pid, row.key.started, row.uid), (9, 0, rustix::process::geteuid().as_raw()));
}
