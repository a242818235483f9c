use std::sync::atomic::{AtomicUsize, Ordering};

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::UnixListener;

use super::*;
use crate::ipc::{CommandCode, Cookie, Failure, HEADER_BYTES, Hresult, Reply, RuntimeVersion};
use crate::model::{Contact, Trouble};
use crate::net::endpoint::SocketName;
use crate::net::fake_proc::{Fake, FakeProc, OLD, fake};
use crate::sim::{ConnectPort, Simulated, Spec};

/// How often a server was asked.
type Asked = Arc<AtomicUsize>;

/// Puts a server for `pid` where its socket is looked for. It answers every command in the same way: a runtime of that version, one of 3.x, or none.
fn serve(fake_proc: &FakeProc, pid: u32, version: Option<&'static str>, answers: bool) -> Asked {
    let asked = Asked::default();
    let socket = fake_proc.path("tmp").join(SocketName { pid, key: OLD }.to_string());
    let listener = UnixListener::bind(socket).unwrap();
    tokio::spawn({
        let asked = Arc::clone(&asked);
        async move {
            loop {
                let (mut stream, _) = listener.accept().await.unwrap();
                stream.read_exact(&mut [0; HEADER_BYTES]).await.unwrap();
                asked.fetch_add(1, Ordering::Relaxed);
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
    asked
}

const PATIENT: Duration = Duration::from_secs(20);

fn row(rows: &[Process], pid: u32) -> &Process {
    rows.iter().find(|row| row.key.pid == pid).unwrap()
}

#[tokio::test]
async fn answers_are_kept_with_their_rows() {
    let fake_proc = FakeProc::new();
    let library = "7f00-7f01 r-xp 0 08:01 12   /opt/Microsoft.NETCore.App/3.1.23/libcoreclr.so\n";
    fake_proc.add(&fake(1));
    fake_proc.add(&Fake { threads: &["dotnet", "dotnet"], maps: library, ..fake(2) });
    fake_proc.add(&Fake { threads: &["bash"], ..fake(3) });
    let (new, old) = (serve(&fake_proc, 1, Some("9.0.7"), true), serve(&fake_proc, 2, None, true));
    // In a namespace that we cannot see, and nowhere at all.
    let unseen = serve(&fake_proc, 70, Some("8.0.1"), true);
    fake_proc.socket("tmp", 71, OLD);

    let mut directory = Directory::new(fake_proc.sources()).unwrap();
    for _ in 0..3 {
        let rows = directory.refresh(PATIENT).await.unwrap();
        assert_eq!(rows.iter().map(|row| row.key.pid).collect::<Vec<_>>(), [1, 2, 70, 71]);
        let facts = |pid| {
            let row = row(&rows, pid);
            (row.name.as_str(), row.runtime.as_ref().map(RuntimeVersion::as_str), row.cookie.is_some(), row.contact == Contact::Ok)
        };
        assert_eq!(facts(1), ("shop1", Some("9.0.7"), true, true));
        assert_eq!(facts(2), ("shop", Some("3.1.23"), false, true));
        assert_eq!(facts(70), ("shop70", Some("8.0.1"), true, true));
        assert!(matches!(row(&rows, 71).contact, Contact::Trouble { kind: Trouble::Stale, .. }));
    }
    let times = [new, old, unseen].map(|asked| asked.load(Ordering::Relaxed));
    assert_eq!(times, [1, 3, 1], "each once, and 3.1 once for each generation");

    let rows = directory.refresh(PATIENT).await.unwrap();
    let clients = directory.clients();
    assert!(clients.of(row(&rows, 1)).unwrap().process_info().await.unwrap().is_some());
    assert_eq!(clients.known.lock().unwrap().len(), 4);
    std::fs::remove_dir_all(fake_proc.path("proc/1")).unwrap();
    std::fs::remove_file(row(&rows, 1).socket.as_ref().unwrap()).unwrap();
    assert_eq!(directory.refresh(PATIENT).await.unwrap().len(), 3);
    assert_eq!((clients.known.lock().unwrap().len(), directory.inquiries.len()), (3, 3));
}

#[tokio::test]
async fn a_silent_process_holds_nobody_up() {
    let fake_proc = FakeProc::new();
    for pid in 1..40 {
        fake_proc.add(&fake(pid));
        serve(&fake_proc, pid, Some("9.0.7"), pid % 10 != 0);
    }
    let mut directory = Directory::new(fake_proc.sources()).unwrap();
    let patience = Duration::from_millis(300);
    let rows = directory.refresh(patience).await.unwrap();
    assert_eq!(rows.len(), 39);
    assert!(rows.iter().all(|row| row.contact == if row.key.pid % 10 == 0 { Contact::Unknown } else { Contact::Ok }), "{rows:#?}");
    // No process is asked again, so none is waited for.
    let began = Instant::now();
    directory.refresh(PATIENT).await.unwrap();
    assert!(began.elapsed() < patience);
    tokio::time::sleep(Duration::from_secs(1)).await;
    let rows = directory.refresh(patience).await.unwrap();
    assert!(matches!(row(&rows, 10).contact, Contact::Trouble { kind: Trouble::Slow, .. }), "{:?}", row(&rows, 10).contact);
}

#[tokio::test]
async fn a_target_does_not_wait_for_its_silent_neighbours() {
    let fake_proc = FakeProc::new();
    for pid in 1..4 {
        fake_proc.add(&fake(pid));
    }
    let [first, _, silent] = [(1, true), (2, true), (3, false)].map(|(pid, answers)| serve(&fake_proc, pid, Some("9.0.7"), answers));
    let began = Instant::now();
    let found = Directory::new(fake_proc.sources()).unwrap().resolve("2", PATIENT).await.unwrap();
    assert_eq!((found.name.as_str(), &found.contact), ("shop2", &Contact::Ok));
    assert_eq!([first, silent].map(|asked| asked.load(Ordering::Relaxed)), [0, 0], "no other process is asked");
    let found = Directory::new(fake_proc.sources()).unwrap().resolve("shop2", PATIENT).await.unwrap();
    assert_eq!((found.key.pid, &found.contact), (2, &Contact::Ok));
    // The name of the one that is meant is known from /proc alone.
    let found = Directory::new(fake_proc.sources()).unwrap().resolve("shop", PATIENT).await.unwrap();
    assert_eq!(found.key.pid, 3);
    assert!(matches!(found.contact, Contact::Trouble { kind: Trouble::Timeout, .. }), "{:?}", found.contact);
    assert!(began.elapsed() < PATIENT);
}

#[tokio::test]
async fn targets_are_found_listed_or_not() {
    let fake_proc = FakeProc::new();
    fake_proc.add(&fake(1));
    fake_proc.add(&Fake { threads: &["bash"], ..fake(3) });
    serve(&fake_proc, 1, Some("9.0.7"), true);
    let mut directory = Directory::new(fake_proc.sources()).unwrap();
    for text in ["1", "shop1"] {
        assert_eq!(directory.resolve(text, PATIENT).await.unwrap().key.pid, 1);
    }
    for (text, words) in [
        ("2", "there is no process 2"),
        ("3", "process 3 is not a .NET process"),
        ("nobody", "there is no .NET process named 'nobody'"),
        ("/no/such", "there is no socket /no/such"),
    ] {
        let said = directory.resolve(text, PATIENT).await.unwrap_err().to_string();
        assert!(said.starts_with(words), "{said}");
    }
    // A runtime's socket in a directory that is not looked into, and a socket that is no runtime's.
    std::fs::create_dir(fake_proc.path("elsewhere")).unwrap();
    serve(&fake_proc, 50, Some("8.0.0"), true);
    let name = SocketName { pid: 50, key: OLD }.to_string();
    std::fs::rename(fake_proc.path("tmp").join(&name), fake_proc.path("elsewhere").join(&name)).unwrap();
    let found = directory.resolve(fake_proc.path("elsewhere").join(&name).to_str().unwrap(), PATIENT).await.unwrap();
    assert_eq!((found.key.pid, found.name.as_str(), found.contact), (50, "shop50", Contact::Ok));
    let found = directory.resolve(&format!("{},connect", fake_proc.path("elsewhere").join(&name).display()), PATIENT).await.unwrap();
    assert_eq!((found.key.pid, found.contact), (50, Contact::Ok));
    std::fs::write(fake_proc.path("elsewhere/file"), "").unwrap();
    drop(UnixListener::bind(fake_proc.path("elsewhere/dead")).unwrap());
    for (path, trouble, words) in [
        ("elsewhere/file", Trouble::Unverified, "not sent, because the file is no socket"),
        ("elsewhere/dead", Trouble::Stale, "no process listens on this socket: the process has ended"),
    ] {
        let found = directory.resolve(fake_proc.path(path).to_str().unwrap(), PATIENT).await.unwrap();
        let Contact::Trouble { kind, reason } = &found.contact else { panic!("{found:?}") };
        assert!(*kind == trouble && reason.starts_with(words), "{path}: {reason}");
    }
}

#[tokio::test]
async fn a_hundred_silent_processes_do_not_keep_others_waiting() {
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

#[tokio::test]
async fn an_answer_dies_with_its_process() {
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
        let rows = directory.refresh(PATIENT).await.unwrap();
        assert_eq!(row(&rows, pid).contact, Contact::Ok);
        // It is killed while it is asked, too.
        let client = directory.clients().of(row(&rows, pid)).unwrap();
        let late = tokio::spawn(async move { client.process_info().await.is_ok() });
        kill(pid);
        dies.kill();
        let rows = directory.refresh(PATIENT).await.unwrap();
        let gone = row(&rows, pid);
        assert!(gone.is_stale_socket() && gone.cookie.is_none() && gone.runtime.is_none(), "{gone:#?}");
        late.await.unwrap();
        let attachable: Vec<_> = rows.iter().filter(|row| row.contact.is_attachable()).map(|row| row.key.pid).collect();
        assert_eq!(attachable, [lives]);
    }
    let listed = directory.refresh(PATIENT).await.unwrap().len();
    assert_eq!(listed + directory.more_stale_sockets(), 100);
    assert!(listed < 100 && directory.inquiries.len() <= listed && directory.clients.known.lock().unwrap().len() <= listed);
}

#[tokio::test]
async fn stale_sockets_are_counted_and_not_all_listed() {
    let fake_proc = FakeProc::new();
    fake_proc.add(&fake(1));
    let asked = serve(&fake_proc, 1, Some("9.0.7"), true);
    for pid in 2..3002 {
        fake_proc.socket("tmp", pid, OLD);
    }
    let mut directory = Directory::new(fake_proc.sources()).unwrap();
    for _ in 0..3 {
        let rows = directory.refresh(PATIENT).await.unwrap();
        assert!(rows.len() < 100 && row(&rows, 1).contact == Contact::Ok, "{}", rows.len());
        assert_eq!(rows.len() - 1 + directory.more_stale_sockets(), 3000);
    }
    assert_eq!(asked.load(Ordering::Relaxed), 1);
}

#[tokio::test]
async fn who_is_connected_to_our_port_is_listed_and_talked_to_over_it() {
    let fake_proc = FakeProc::new();
    let port = fake_proc.path("port");
    let connect = |pid, suspend| Spec { port: Some(ConnectPort { path: port.clone(), suspend }), ..Spec::new("Web", "9.0.7", pid) };
    let suspended = &["dotnet", ".NET SynchManag", ".NET EventPipe"];
    fake_proc.add(&Fake { environ: "DOTNET_DiagnosticPorts=/port", threads: suspended, ..fake(1) });
    // Its own socket is nowhere to be seen.
    fake_proc.add(&Fake { threads: suspended, ..fake(2) });
    let both = Spec { suspended: true, ..connect(1, true) };
    let _one = Simulated::start(fake_proc.path("tmp").join(SocketName { pid: 1, key: OLD }.to_string()), both).unwrap();
    let two = Simulated::start(fake_proc.path("2"), connect(2, true)).unwrap();

    let mut directory = Directory::new(fake_proc.sources()).unwrap();
    let serving = Port::serve(&port, &fake_proc.sources()).unwrap();
    directory.serve(serving);
    let clients = directory.clients();
    let began = Instant::now();
    let rows = loop {
        let rows = directory.refresh(PATIENT).await.unwrap();
        if rows.iter().all(|row| row.cookie.is_some() && clients.of(row).is_some_and(|client| client.endpoint().socket == port)) {
            break rows;
        }
        assert!(began.elapsed() < PATIENT, "{rows:#?}");
        tokio::time::sleep(Duration::from_millis(10)).await;
    };
    assert_eq!(
        rows.iter().map(|row| (row.key.pid, row.key.started, row.run_state)).collect::<Vec<_>>(),
        [(1, OLD, RunState::Suspended), (2, OLD, RunState::Suspended)]
    );
    assert_eq!((rows[0].name.as_str(), &rows[0].contact, rows[1].socket.as_deref()), ("Web", &Contact::Ok, Some(port.as_path())));
    for row in &rows {
        // Its files in /proc stay what they are, so that it looks as if another port held it.
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
    assert_eq!(directory.refresh(PATIENT).await.unwrap().len(), 1);

    assert!(directory.refresh(PATIENT).await.unwrap()[0].on_port);
    assert!(clients.serve(&port).is_err(), "there is one");
    clients.close_port();
    assert!(!port.exists() && directory.changes().is_none());
    let rows = directory.refresh(PATIENT).await.unwrap();
    assert!(!rows[0].on_port && clients.of(&rows[0]).is_some_and(|client| client.endpoint().socket != port), "it has its own socket");
    clients.close_port();
    clients.serve(&port).unwrap();
    directory.changes().unwrap().changed().await.unwrap();
    assert!(directory.refresh(PATIENT).await.unwrap()[0].on_port, "it has connected again");
}
