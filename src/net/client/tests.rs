#[cfg(target_os = "linux")]
mod linux;
mod sessions;

use std::sync::Arc;

use tokio::io::AsyncWriteExt;
use tokio::time::{Instant, sleep};

use super::*;
use crate::ipc::{
    BufferMb, BufferMode, Cookie, Downgrade, DumpFlags, DumpKind, Failure, Level, MAX_MESSAGE, Provider, Providers, Rundown,
    RuntimeVersion, SessionConfig, Support, TargetPath, Variable as Sent, encode_environment,
};
use crate::model::{ProcessKey, Trouble};
#[cfg(target_os = "linux")]
use crate::net::fake_proc::{Fake, FakeProc, fake};
use crate::net::stream::{Listener, Stream, address_in};
use crate::sim::{Fault, Simulated, Spec};

/// A socket with a server behind it that need not be a runtime.
struct Server {
    _folder: tempfile::TempDir,
    client: Client,
}

impl Server {
    /// Reads each request and passes its code and the connection to `answer`, one client at a time.
    fn start<F: Future<Output = ()> + Send>(mut answer: impl FnMut(CommandCode, Stream) -> F + Send + 'static) -> Self {
        let server = Self::not_listening();
        let listener = Listener::simulated(&server.client.endpoint().socket).unwrap();
        tokio::spawn(async move {
            loop {
                let mut stream = listener.accept().await.unwrap();
                let mut request = vec![0; HEADER_BYTES];
                stream.read_exact(&mut request).await.unwrap();
                request.resize(usize::from(u16::from_le_bytes([request[14], request[15]])), 0);
                stream.read_exact(&mut request[HEADER_BYTES..]).await.unwrap();
                answer(CommandCode::of(request[16], request[17]).unwrap(), stream).await;
            }
        });
        server
    }

    /// Answers every request with the same bytes, then closes.
    fn replying_with(bytes: impl Into<Vec<u8>>) -> Self {
        let bytes: Arc<[u8]> = bytes.into().into();
        Self::start(move |_, mut stream| {
            let bytes = bytes.clone();
            async move { stream.write_all(&bytes).await.unwrap() }
        })
    }

    /// Nothing listens on the socket.
    fn not_listening() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let endpoint =
            Endpoint { key: ProcessKey { pid: 4242, started: 7 }, socket: address_in(folder.path(), "dotnet-diagnostic-4242-7-socket") };
        Self { client: Client::new(endpoint), _folder: folder }
    }
}

fn info() -> ProcessInfo {
    ProcessInfo {
        pid: 4242,
        cookie: Cookie([7; 16]),
        command_line: "dotnet shop.dll".to_owned(),
        os: "Linux".to_owned(),
        arch: "x64".to_owned(),
        entry_assembly: Some("shop".to_owned()),
        clr_version: Some(RuntimeVersion::new("9.0.7")),
        rid: Some("linux-x64".to_owned()),
    }
}

fn ok(reply: &Reply, to: CommandCode) -> Vec<u8> {
    reply.encode(to).unwrap()
}

fn error_reply(hresult: Hresult) -> Vec<u8> {
    Failure::from(hresult).encode().unwrap()
}

fn provider() -> Providers {
    Provider::new("P", 1, Level::Verbose).unwrap().into()
}

#[tokio::test]
async fn process_info_commands_are_tried_newest_first() {
    for (supported, generations) in [(CommandCode::ProcessInfo3, 1), (CommandCode::ProcessInfo2, 2), (CommandCode::ProcessInfo, 3)] {
        let (sender, count) = tokio::sync::watch::channel(0);
        let server = Server::start(move |code, mut stream| {
            sender.send_modify(|count| *count += 1);
            let answer = if code == supported { ok(&Reply::Info(Box::new(info())), code) } else { error_reply(Hresult::UNKNOWN_COMMAND) };
            async move { stream.write_all(&answer).await.unwrap() }
        });
        let reply = server.client.process_info().await.unwrap().unwrap();
        assert_eq!((reply.cookie, reply.command_line.as_str(), *count.borrow()), (Cookie([7; 16]), "dotnet shop.dll", generations));
        assert_eq!(reply.rid.is_some(), generations == 1);
    }
    let old = Server::replying_with(error_reply(Hresult::UNKNOWN_COMMAND));
    assert_eq!(old.client.process_info().await.unwrap(), None);
    let error = old.client.environment().await.unwrap_err();
    assert_eq!((error.hresult(), error.trouble()), (Some(Hresult::UNKNOWN_COMMAND), None));
    assert!(
        error.to_string().starts_with("ProcessEnvironment to process 4242: the runtime answered DS_IPC_E_UNKNOWN_COMMAND (0x80131385): ")
    );
}

/// Checks the kind of trouble that a bad server leads to, and the error text.
async fn assert_trouble(server: &Server, trouble: Trouble, words: &str) {
    for error in [server.client.process_info().await.map(drop), server.client.environment().await.map(drop)] {
        let error = error.unwrap_err();
        assert_eq!(error.trouble(), Some(trouble), "{error}");
        assert!(error.to_string().contains(words), "{words}: {error}");
        assert!(error.to_string().contains(" to process 4242: "), "{error}");
        assert!(error.is_sanitized(), "{error}");
    }
    assert_eq!(server.client.busy(), None);
}

impl ExchangeError {
    /// Whether the text contains no control characters.
    fn is_sanitized(&self) -> bool {
        !self.to_string().chars().any(char::is_control)
    }
}

#[tokio::test]
async fn each_bad_reply_has_its_own_error_message() {
    let ended = Server::not_listening();
    assert_trouble(&ended, Trouble::Stale, "no process listens on this socket: the process has ended (socket ").await;

    assert_trouble(&Server::replying_with([]), Trouble::Refused, "closed without an answer").await;
    assert_trouble(&Server::replying_with(*b"HTTP/1.1 400 Bad Request\r\n\r\n"), Trouble::Unsupported, "is not a .NET diagnostic server")
        .await;
    assert_trouble(&Server::replying_with(*b"\x1b[2J"), Trouble::Unsupported, "is not a .NET diagnostic server").await;
    assert_trouble(&Server::replying_with(*b"DOTNET_IPC_V2\0\x14\0\xff\0\0\0"), Trouble::Unsupported, "is not a .NET diagnostic server")
        .await;
    assert_trouble(&Server::replying_with(*b"DOTNET_IPC_V1\0\x13\0\xff\0\0\0"), Trouble::Unsupported, "invalid size of 19 bytes").await;
    assert_trouble(
        &Server::replying_with(*b"DOTNET_IPC_V1\0\x14\0\x04\x00\0\0"),
        Trouble::Unsupported,
        "not part of the protocol (0x0400)",
    )
    .await;
    assert_trouble(&Server::replying_with(*b"DOTNET_IPC_V1\0\x14\0\xff\0\0\0"), Trouble::Unsupported, "cannot be read").await;
    let whole = ok(&Reply::Info(Box::new(info())), CommandCode::ProcessInfo3);
    assert_trouble(&Server::replying_with(&whole[..10]), Trouble::Unsupported, "cut off after 10 bytes").await;
    assert_trouble(&Server::replying_with(&whole[..100]), Trouble::Unsupported, "cut off after 100 bytes").await;
}

#[tokio::test]
async fn longest_reply_is_read_without_trailing_bytes() {
    let long = ProcessInfo { command_line: "x".repeat((MAX_MESSAGE - 140) / 2), ..info() };
    let mut bytes = ok(&Reply::Info(Box::new(long.clone())), CommandCode::ProcessInfo3);
    assert!(bytes.len() > MAX_MESSAGE - 200);
    bytes.extend_from_slice(&[0xee; 100_000]);
    let server = Server::start(move |_, mut stream| {
        let bytes = bytes.clone();
        // The client closes before everything is written.
        async move { drop(stream.write_all(&bytes).await) }
    });
    assert_eq!(server.client.process_info().await.unwrap().unwrap().command_line, long.command_line);
}

/// A runtime without a free file descriptor cannot accept a connection.
#[cfg(target_os = "linux")]
#[tokio::test(start_paused = true)]
async fn timeout_names_exhausted_file_descriptors() {
    let server = Server::start(|_, stream| async move {
        sleep(Duration::from_secs(3600)).await;
        drop(stream);
    });
    let (place, key) = (FakeProc::new(), server.client.endpoint.key);
    place.add(&Fake { started: key.started, ..fake(key.pid) });
    let folder = place.path("proc").join(key.pid.to_string());
    std::fs::create_dir(folder.join("fd")).unwrap();
    std::fs::write(folder.join("limits"), "Max open files            3                    9                    files\n").unwrap();
    let client = server.client.clone().with_proc(&place.path("proc")).unwrap();
    for (number, expected) in [("0", false), ("1", false), ("2", true)] {
        std::fs::write(folder.join("fd").join(number), "").unwrap();
        let error = client.process_info().await.unwrap_err();
        let is_named = error.to_string().contains("no answer within 5 s: the process has 3 open files, as many as it may have, so ");
        assert_eq!((error.trouble(), is_named), (Some(Trouble::Timeout), expected), "{error}");
    }
}

#[tokio::test(start_paused = true)]
async fn silent_server_times_out_after_five_seconds() {
    let server = Server::start(|_, stream| async move {
        sleep(Duration::from_secs(3600)).await;
        drop(stream);
    });
    let began = Instant::now();
    let error = server.client.process_info().await.unwrap_err();
    assert_eq!((error.trouble(), began.elapsed()), (Some(Trouble::Timeout), REPLY_TIMEOUT));
    assert!(error.to_string().contains("ProcessInfo3 to process 4242: no answer within 5 s: "), "{error}");

    // The next one has to wait in the queue of a server that does not accept; a partial answer does not count.
    let began = Instant::now();
    assert_eq!(server.client.environment().await.unwrap_err().trouble(), Some(Trouble::Timeout));
    assert_eq!(began.elapsed(), REPLY_TIMEOUT);
    let half = Server::start(|_, mut stream| async move {
        stream.write_all(b"DOTNET_IPC_V1\0\xff\xff").await.unwrap();
        sleep(Duration::from_secs(3600)).await;
    });
    assert_eq!(half.client.process_info().await.unwrap_err().trouble(), Some(Trouble::Timeout));
}

#[tokio::test(start_paused = true)]
async fn stop_waits_for_a_dump_and_reports_a_long_wait() {
    let server = Server::start(|code, mut stream| async move {
        match code {
            CommandCode::GenerateCoreDump3 => {
                sleep(Duration::from_secs(90)).await;
                drop(stream.write_all(&ok(&Reply::Done, code)).await);
            }
            _ => drop(stream.write_all(&ok(&Reply::Session(SessionId(9)), code)).await),
        }
    });
    let request = DumpRequest { path: TargetPath::new("/tmp/d").unwrap(), kind: DumpKind::Mini, flags: DumpFlags::default() };
    let dump = tokio::spawn({
        let (client, request) = (server.client.clone(), request.clone());
        async move { client.dump(&request, Duration::from_secs(600)).await }
    });
    sleep(Duration::from_secs(1)).await;
    assert_eq!(server.client.busy().unwrap().command, CommandCode::GenerateCoreDump3);
    let began = Instant::now();
    let error = server.client.stop_session(SessionId(9)).await.unwrap_err();
    assert_eq!((error.trouble(), began.elapsed()), (Some(Trouble::Slow), STOP_TIMEOUT));
    assert!(error.to_string().contains("not sent, because GenerateCoreDump3 has been in progress for 61 s"), "{error}");
    server.client.stop_session(SessionId(9)).await.unwrap();
    assert_eq!(began.elapsed().as_secs(), 89);
    dump.await.unwrap().unwrap();
    // A caller that gives up lets the next command pass.
    assert_eq!(server.client.dump(&request, Duration::from_secs(2)).await.unwrap_err().trouble(), Some(Trouble::Timeout));
    assert_eq!(server.client.busy(), None);
}

#[tokio::test]
async fn long_and_malformed_environments_are_handled() {
    let sent: Vec<_> = (0..5000).map(|i| Sent { name: format!("N{i}"), value: "\x1b[31m".repeat(4) }).collect();
    let block = encode_environment(&sent);
    assert!(block.len() > 3 * MAX_MESSAGE);
    let answer = [ok(&Reply::Environment { bytes: block.len() as u32 }, CommandCode::ProcessEnvironment), block].concat();
    // The runtime may keep the connection.
    let server = Server::start({
        let answer = answer.clone();
        move |_, mut stream| {
            let answer = answer.clone();
            async move {
                stream.write_all(&answer).await.unwrap();
                std::future::pending().await
            }
        }
    });
    let got = server.client.environment().await.unwrap();
    assert_eq!((got.len(), got[4999].name.as_str(), got[0].value.as_str()), (5000, "N4999", sent[0].value.as_str()));
    let error = Server::replying_with(&answer[..100_000]).client.environment().await.unwrap_err();
    assert!(error.to_string().contains("bytes are missing"), "{error}");
    let huge = ok(&Reply::Environment { bytes: u32::MAX }, CommandCode::ProcessEnvironment);
    let error = Server::replying_with(huge).client.environment().await.unwrap_err();
    assert!(error.to_string().contains("announced an environment of 4294967295 bytes"), "{error}");
}

#[tokio::test]
async fn runtime_error_messages_are_sanitized() {
    let message = "[createdump] \x1b[31mPermission denied\r\nsecond line".to_owned();
    let failure = Failure { hresult: Hresult::FAIL, message: Some(message) }.encode().unwrap();
    let request = DumpRequest { path: TargetPath::new("/closed/d").unwrap(), kind: DumpKind::Full, flags: DumpFlags::default() };
    let error = Server::replying_with(failure).client.dump(&request, REPLY_TIMEOUT).await.unwrap_err();
    assert_eq!(error.details(), ["[createdump] \u{fffd}[31mPermission denied", "second line"]);
    assert!(error.to_string().contains("E_FAIL (0x80004005)"), "{error}");
}

#[tokio::test]
async fn a_dropped_call_closes_its_connection() {
    let (closed, mut seen) = tokio::sync::mpsc::channel(1);
    let server = Server::start(move |_, mut stream| {
        let closed = closed.clone();
        async move {
            let rest = stream.read_to_end(&mut Vec::new()).await.unwrap();
            closed.send(rest).await.unwrap();
        }
    });
    tokio::select! {
        biased;
        _ = server.client.process_info() => panic!("it does not answer"),
        () = sleep(Duration::from_millis(50)) => {}
    }
    assert_eq!(seen.recv().await, Some(0));
    assert_eq!(server.client.busy(), None);
}

#[tokio::test]
async fn a_readonly_client_sends_no_changes() {
    let (sender, requests) = std::sync::mpsc::channel();
    let server = Server::start(move |code, mut stream| {
        sender.send(code).unwrap();
        async move { stream.write_all(&ok(&Reply::Info(Box::new(info())), CommandCode::ProcessInfo3)).await.unwrap() }
    });
    let client = server.client.clone().with_access(Access::ReadOnly);
    let path = || TargetPath::new("/a").unwrap();
    let request = DumpRequest { path: path(), kind: DumpKind::Mini, flags: DumpFlags::default() };
    let config = SessionConfig::new(Provider::new("A", 1, Level::Verbose).unwrap().into());
    let mut errors = vec![
        client.dump(&request, REPLY_TIMEOUT).await.unwrap_err(),
        client.start_session(&config).await.unwrap_err(),
        client.clone().legacy().start_session(&config).await.unwrap_err(),
        client.stop_session(SessionId(1)).await.unwrap_err(),
        client.clone().legacy().stop_session(SessionId(1)).await.unwrap_err(),
    ];
    for command in [
        Command::ResumeRuntime,
        Command::DisablePerfMap,
        Command::StartupProfiler { profiler: "123e4567-e89b-12d3-a456-426614174000".parse().unwrap(), path: path() },
        Command::SetEnvironmentVariable { name: crate::ipc::EnvironmentName::new("A").unwrap(), value: None },
    ] {
        errors.push(client.run(&command).await.unwrap_err());
    }
    for error in errors {
        assert!(matches!(error.cause, Cause::ReadOnly), "{error}");
        assert_eq!(error.trouble(), None);
    }
    assert!(requests.try_recv().is_err(), "a request was sent");
    assert_eq!(client.process_info().await.unwrap().unwrap(), info());
    assert_eq!(requests.try_recv(), Ok(CommandCode::ProcessInfo3));
}
