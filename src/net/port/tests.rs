#[cfg(target_os = "linux")]
mod linux;
#[cfg(windows)]
mod windows;

use std::io::{Read, Write};
use std::path::PathBuf;

use tokio::io::AsyncReadExt;
use tokio::time::Instant;

use super::*;
use crate::ipc::{Command, EnvironmentName, EnvironmentValue, Level, Provider, SessionConfig};
use crate::net::Cause;
use crate::net::fake_proc::{FakeProc, OLD, fake};
use crate::net::stream::address_in;
use crate::net::test_stream::{self, Peer};
use crate::sim::{ConnectPort, Fault, Simulated, Spec};

/// A port, and simulated processes that connect to it.
struct Fixture {
    fake_proc: FakeProc,
    port: Option<Port>,
}

const TIMEOUT: Duration = Duration::from_secs(20);

fn fixture() -> Fixture {
    let mut fixture = Fixture { fake_proc: FakeProc::new(), port: None };
    fixture.serve();
    fixture
}

impl Fixture {
    fn path(&self) -> PathBuf {
        self.fake_proc.address("port")
    }

    fn serve(&mut self) {
        self.port = Some(Port::serve(&self.path(), &self.fake_proc.sources()).unwrap());
    }

    fn port(&self) -> &Port {
        self.port.as_ref().unwrap()
    }

    /// A runtime with this pid that connects to the port.
    fn start(&self, pid: u32, suspend: bool) -> Simulated {
        self.start_as(Spec { port: Some(ConnectPort { path: self.path(), suspend }), ..Spec::new("Web", "9.0.7", pid) })
    }

    fn start_as(&self, spec: Spec) -> Simulated {
        self.fake_proc.add(&fake(spec.pid));
        Simulated::start(self.fake_proc.address(&spec.pid.to_string()), spec).unwrap()
    }

    /// Waits until exactly these are connected, and returns them in this order.
    async fn runtimes(&self, pids: &[u32]) -> Vec<ConnectedRuntime> {
        let began = Instant::now();
        loop {
            let mut runtimes = self.port().runtimes();
            runtimes.sort_by_key(|runtime| runtime.ns_pid);
            if runtimes.iter().map(|runtime| runtime.ns_pid).eq(pids.iter().copied()) {
                return runtimes;
            }
            assert!(began.elapsed() < TIMEOUT, "{pids:?}: {runtimes:?}");
            sleep(Duration::from_millis(5)).await;
        }
    }

    /// Waits until each of these has a parked connection: without one, only the end of the process would count, and it stays in
    /// the fake tree.
    async fn wait_until_parked(&self, pids: &[u32]) {
        for runtime in self.runtimes(pids).await {
            let stream = runtime.connection.next().await.unwrap();
            runtime.connection.offer(stream);
        }
    }

    async fn connect_and_send(&self, bytes: &[u8]) -> Peer {
        let mut stream = test_stream::connect(&self.path()).await.unwrap();
        stream.write_all(bytes).unwrap();
        stream
    }
}

async fn resume(runtimes: &[ConnectedRuntime]) {
    let resume = |client: Client| async move { client.run(&Command::ResumeRuntime).await.unwrap() };
    runtimes.iter().map(|runtime| resume(runtime.client.clone())).collect::<JoinSet<_>>().join_all().await;
}

fn name(text: &str) -> EnvironmentName {
    EnvironmentName::new(text).unwrap()
}

#[tokio::test]
async fn each_runtime_is_reached_over_its_own_connections() {
    let fixture = fixture();
    let runtimes = [1, 2, 3].map(|pid| fixture.start(pid, false));
    for runtime in fixture.runtimes(&[1, 2, 3]).await {
        let value = Some(EnvironmentValue::new(runtime.ns_pid.to_string()).unwrap());
        runtime.client.run(&Command::SetEnvironmentVariable { name: name("WHO"), value }).await.unwrap();
    }
    for runtime in fixture.runtimes(&[1, 2, 3]).await {
        let info = runtime.client.process_info().await.unwrap().unwrap();
        assert_eq!((info.pid, info.cookie), (runtime.ns_pid.into(), runtime.cookie));
        let variables = runtime.client.environment().await.unwrap();
        assert_eq!(variables.iter().find(|variable| variable.name == "WHO").unwrap().value, runtime.ns_pid.to_string());
        assert_eq!(runtime.key(), ProcessKey { pid: runtime.ns_pid, started: OLD });
    }
    fixture.wait_until_parked(&[1, 2, 3]).await;
    let mut changes = fixture.port().changes();
    let [one, two, three] = runtimes;
    two.kill();
    changes.changed().await.unwrap();
    for runtime in fixture.runtimes(&[1, 3]).await {
        assert!(runtime.client.process_info().await.unwrap().is_some());
    }
    fixture.wait_until_parked(&[1, 3]).await;
    drop((one, three));
    fixture.runtimes(&[]).await;
}

#[tokio::test]
async fn suspended_runtimes_are_resumed_over_their_port() {
    let fixture = fixture();
    let spec = Spec { suspended: true, ..Spec::new("Web", "9.0.7", 1) };
    let both = fixture.start_as(Spec { port: Some(ConnectPort { path: fixture.path(), suspend: true }), ..spec });
    let _others = [2, 3].map(|pid| fixture.start(pid, true));
    let runtimes = fixture.runtimes(&[1, 2, 3]).await;
    // A suspended runtime does not have its arguments yet.
    let is_suspended = async |runtime: &ConnectedRuntime| !runtime.client.process_info().await.unwrap().unwrap().command_line.contains(' ');
    for runtime in &runtimes {
        assert!(is_suspended(runtime).await);
    }
    resume(&runtimes).await;
    assert!(is_suspended(&runtimes[0]).await && !is_suspended(&runtimes[1]).await && !is_suspended(&runtimes[2]).await);
    let direct = Client::new(Endpoint { key: runtimes[0].key(), socket: both.socket().to_owned() });
    direct.run(&Command::ResumeRuntime).await.unwrap();
    assert!(!is_suspended(&runtimes[0]).await);
}

#[tokio::test]
async fn session_keeps_its_connection_and_stop_uses_the_next() {
    let fixture = fixture();
    let _runtime = fixture.start(1, true);
    let client = fixture.runtimes(&[1]).await.remove(0).client;
    let provider = Provider::new("Demo-Web", u64::MAX, Level::Verbose).unwrap();
    let mut session = client.start_session(&SessionConfig::new(provider.into())).await.unwrap();
    client.run(&Command::ResumeRuntime).await.unwrap();
    assert!(client.process_info().await.unwrap().is_some());
    let (begun, has_begun) = tokio::sync::oneshot::channel();
    let drain = tokio::spawn(async move {
        let mut bytes = vec![0; 100];
        session.stream.read_exact(&mut bytes).await.unwrap();
        begun.send(()).unwrap();
        session.stream.read_to_end(&mut bytes).await.unwrap();
        bytes
    });
    has_begun.await.unwrap();
    client.stop_session(session.id).await.unwrap();
    let bytes = drain.await.unwrap();
    assert!(bytes.starts_with(b"Nettrace") && bytes.ends_with(&[6, 1]));
}

#[tokio::test]
async fn runtimes_reconnect_to_a_port_served_again() {
    let mut fixture = fixture();
    let _runtimes = [1, 2].map(|pid| fixture.start(pid, false));
    let before = fixture.runtimes(&[1, 2]).await;
    fixture.port = None;
    assert!(!fixture.path().exists());
    let error = before[0].client.process_info().await.unwrap_err();
    assert!(matches!(error.cause, Cause::Gone), "{error}");
    sleep(Duration::from_millis(300)).await;
    fixture.serve();
    let after = fixture.runtimes(&[1, 2]).await;
    assert_eq!((after[0].cookie, after[1].cookie), (before[0].cookie, before[1].cookie));
    assert!(after[1].client.process_info().await.unwrap().is_some());
}

#[tokio::test]
async fn invalid_clients_do_not_block_runtimes() {
    let fixture = fixture();
    let whole = Advertise { cookie: Cookie([9; 16]), pid: 9 }.encode();
    let mut wrong = fixture.connect_and_send(b"GET / HTTP/1.1\r\n\r\n").await;
    let (mut slow, mut silent) = (Vec::new(), Vec::new());
    for _ in 0..100 {
        slow.push(fixture.connect_and_send(&whole[..20]).await);
        silent.push(fixture.connect_and_send(b"").await);
    }
    drop(fixture.connect_and_send(&whole[..33]).await);
    let _runtime = fixture.start(1, false);
    let began = Instant::now();
    let runtime = fixture.runtimes(&[1]).await.remove(0);
    assert!(runtime.client.process_info().await.unwrap().is_some() && began.elapsed() < ADVERTISE_TIMEOUT);
    // Blocking reads, on a thread other than that of the port.
    let ends = tokio::task::spawn_blocking(move || {
        let is_over = |mut stream: Peer| matches!(stream.read(&mut [0]), Ok(0) | Err(_));
        assert!(is_over(wrong.try_clone().unwrap()) && wrong.write_all(b"x").is_err());
        slow.into_iter().chain(silent).all(is_over)
    });
    assert!(ends.await.unwrap());
    fixture.runtimes(&[1]).await;
}

#[tokio::test]
async fn number_of_clients_that_send_nothing_is_limited() {
    let fixture = fixture();
    let began = Instant::now();
    let mut silent = Vec::new();
    for _ in 0..MAX_ADVERTISING {
        silent.push(fixture.connect_and_send(b"").await);
    }
    let _next = fixture.connect_and_send(&Advertise { cookie: Cookie([9; 16]), pid: 9 }.encode()).await;
    fixture.runtimes(&[9]).await;
    assert!(began.elapsed() >= ADVERTISE_TIMEOUT, "it waits until one of them has timed out");
}

#[tokio::test(start_paused = true)]
async fn invalid_advertise_message_is_rejected_at_its_first_wrong_byte() {
    let advertise = Advertise { cookie: Cookie([9; 16]), pid: 9 };
    let whole = advertise.encode();
    let read = async |bytes: &[u8]| {
        // The other end stays open: without a decision, only the timeout ends the wait.
        let (mut near, mut far) = tokio::io::duplex(64);
        tokio::io::AsyncWriteExt::write_all(&mut far, bytes).await.unwrap();
        let read = timeout(TIMEOUT, read_advertise(&mut near)).await;
        drop(far);
        let mut rest = Vec::new();
        near.read_to_end(&mut rest).await.unwrap();
        (read, rest)
    };
    for bytes in [&b"G"[..], b"ADVR_V2", b"ADVR_V1\n"] {
        assert_eq!(read(bytes).await.0, Ok(None), "{bytes:?}");
    }
    assert!(read(&whole[..33]).await.0.is_err());
    assert_eq!(read(&[&whole[..], b"reply"].concat()).await, (Ok(Some(advertise)), b"reply".to_vec()));
}

#[tokio::test]
async fn a_hundred_simultaneous_runtimes_are_accepted() {
    let fixture = fixture();
    let pids: Vec<u32> = (1..=100).collect();
    let _runtimes: Vec<_> = pids.iter().map(|pid| fixture.start(*pid, true)).collect();
    resume(&fixture.runtimes(&pids).await).await;
    fixture.runtimes(&pids).await;
}

#[tokio::test]
async fn process_that_is_not_visible_runs_while_it_has_a_command() {
    let fixture = fixture();
    let proc = Arc::new(Proc::open(&fixture.fake_proc.sources().proc).unwrap());
    let (connection, _holder) = ReverseConnection::new();
    for (started, runs) in [(0, true), (OLD, false)] {
        let key = ProcessKey { pid: 9, started };
        let client = Client::reverse(Endpoint { key, socket: fixture.path() }, Arc::clone(&proc), connection.clone());
        assert!(!is_running(key, &proc, &client));
        {
            let mut command = std::pin::pin!(client.process_info());
            tokio::select! {
                biased;
                _ = &mut command => panic!("there is no connection to send it over"),
                () = tokio::task::yield_now() => {}
            }
            assert_eq!(is_running(key, &proc, &client), runs);
        }
        assert!(!is_running(key, &proc, &client));
    }
}

#[tokio::test]
async fn one_connection_is_held_for_each_cookie() {
    let fixture = fixture();
    let advertise = Advertise { cookie: Cookie([9; 16]), pid: 9 }.encode();
    let mut older = fixture.connect_and_send(&advertise).await;
    fixture.runtimes(&[9]).await;
    let newer = fixture.connect_and_send(&advertise).await;
    let closed = tokio::task::spawn_blocking(move || older.read(&mut [0]).unwrap());
    assert_eq!(closed.await.unwrap(), 0);
    fixture.runtimes(&[9]).await;
    drop(newer);
    fixture.runtimes(&[]).await;
}

#[tokio::test]
async fn number_of_runtimes_of_a_process_is_limited() {
    let fixture = fixture();
    let mut streams = Vec::new();
    for cookie in 0..=MAX_RUNTIMES_PER_PROCESS as u8 {
        streams.push(fixture.connect_and_send(&Advertise { cookie: Cookie([cookie; 16]), pid: 9 }.encode()).await);
        if usize::from(cookie) < MAX_RUNTIMES_PER_PROCESS {
            fixture.runtimes(&vec![9; streams.len()]).await;
        }
    }
    let mut last = streams.pop().unwrap();
    let closed = tokio::task::spawn_blocking(move || last.read(&mut [0]).unwrap());
    assert_eq!(timeout(TIMEOUT, closed).await.expect("it is held").unwrap(), 0);
    fixture.runtimes(&[9; MAX_RUNTIMES_PER_PROCESS]).await;
    // Neither other processes nor the other runtimes are affected.
    fixture.connect_and_send(&Advertise { cookie: Cookie([1; 16]), pid: 8 }.encode()).await;
    drop(streams.pop());
    fixture.runtimes(&[9; MAX_RUNTIMES_PER_PROCESS - 1]).await;
}

#[tokio::test]
async fn a_command_waits_for_the_next_connection_unless_the_process_has_exited() {
    let fixture = fixture();
    let late = Spec { fault: Some(Fault::Late(Duration::from_millis(200))), ..Spec::new("Web", "9.0.7", 1) };
    let _late = fixture.start_as(Spec { port: Some(ConnectPort { path: fixture.path(), suspend: false }), ..late });
    let client = fixture.runtimes(&[1]).await.remove(0).client;
    let (one, two) = tokio::join!(client.process_info(), client.process_info());
    assert!(one.unwrap().is_some() && two.unwrap().is_some());

    let mut stream = fixture.connect_and_send(&Advertise { cookie: Cookie([9; 16]), pid: 9 }.encode()).await;
    let client = fixture.runtimes(&[1, 9]).await.remove(1).client;
    let dies = tokio::task::spawn_blocking(move || drop(stream.read_exact(&mut [0; 20])));
    let error = client.process_info().await.unwrap_err();
    assert!(matches!(error.cause, Cause::Closed), "{error}");
    dies.await.unwrap();
}

#[tokio::test]
async fn a_process_that_claims_another_pid_is_rejected() {
    let dir = tempfile::tempdir().unwrap();
    let path = address_in(dir.path(), "port");
    let port = Port::serve(&path, &Sources::machine()).unwrap();
    let own_pid = std::process::id();
    let connect_and_send = async |pid: u64| {
        let mut stream = test_stream::connect(&path).await.unwrap();
        stream.write_all(&Advertise { cookie: Cookie([9; 16]), pid }.encode()).unwrap();
        stream
    };
    for pid in [1, u64::from(own_pid) + 1, u64::from(own_pid) | 1 << 32, 0] {
        let mut stream = connect_and_send(pid).await;
        let ended = tokio::task::spawn_blocking(move || matches!(stream.read(&mut [0]), Ok(0) | Err(_)));
        assert!(ended.await.unwrap() && port.runtimes().is_empty(), "{pid}");
    }
    let mut changes = port.changes();
    let _stream = connect_and_send(own_pid.into()).await;
    changes.changed().await.unwrap();
    let key = port.runtimes()[0].key();
    assert!(key.pid == own_pid && key.started > 0, "{key:?}");
}
