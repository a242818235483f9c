//! Sessions: requested options, options that a runtime declines, and streams.

use super::*;
use tokio::time::timeout;

#[tokio::test(start_paused = true)]
async fn heap_dump_session_gets_a_longer_start_timeout() {
    let server = Server::start(|code, mut stream| async move {
        sleep(Duration::from_secs(90)).await;
        drop(stream.write_all(&ok(&Reply::Session(SessionId(9)), code)).await);
    });
    let config = |keywords| SessionConfig::new(Provider::new("Microsoft-Windows-DotNETRuntime", keywords, Level::Verbose).unwrap().into());
    assert_eq!(server.client.start_session(&config(0x198_0001)).await.unwrap().id, SessionId(9));
    assert_eq!(server.client.start_session(&config(1)).await.unwrap_err().trouble(), Some(Trouble::Timeout));
}

#[tokio::test]
async fn session_stream_starts_at_the_first_byte() {
    let server = Server::start(|code, mut stream| async move {
        match code {
            // Like the 3.0 previews.
            CommandCode::ProcessInfo => stream.write_all(&error_reply(Hresult::UNKNOWN_COMMAND)).await.unwrap(),
            CommandCode::CollectTracing2 => stream.write_all(&error_reply(Hresult::UNKNOWN_COMMAND)).await.unwrap(),
            CommandCode::CollectTracing => {
                let reply = [ok(&Reply::Session(SessionId(0x7f00)), code), b"Nettrace".to_vec()].concat();
                stream.write_all(&reply).await.unwrap();
            }
            other => panic!("{other}"),
        }
    });
    let mut session = server.client.start_session(&SessionConfig::new(provider())).await.unwrap();
    assert_eq!((session.id, server.client.busy()), (SessionId(0x7f00), None));
    let mut bytes = Vec::new();
    session.stream.read_to_end(&mut bytes).await.unwrap();
    assert_eq!(bytes, b"Nettrace");
    // CollectTracing cannot omit the rundown.
    let config = SessionConfig { rundown: Rundown::None, buffer: BufferMb::new(1).unwrap(), ..SessionConfig::new(provider()) };
    assert_eq!(server.client.start_session(&config).await.unwrap().downgrades, [Downgrade::RundownIncluded]);
}

#[tokio::test]
async fn declined_options_are_reported_and_not_requested_again() {
    let (sender, codes) = tokio::sync::watch::channel(Vec::new());
    let server = Server::start(move |code, mut stream| {
        sender.send_modify(|codes| codes.push(code));
        // Like .NET 8.
        let answer = match code {
            CommandCode::ProcessInfo => ok(&Reply::Info(Box::new(info())), code),
            CommandCode::CollectTracing2 => ok(&Reply::Session(SessionId(1)), code),
            _ => error_reply(Hresult::UNKNOWN_COMMAND),
        };
        async move { stream.write_all(&answer).await.unwrap() }
    });
    let client = &server.client;
    let bare = SessionConfig { stacks: false, rundown: Rundown::None, ..SessionConfig::new(provider()) };
    let own = SessionConfig { rundown: Rundown::Keyword(0x38), ..SessionConfig::new(provider()) };
    let names = SessionConfig { rundown: Rundown::AtLeast(0x38), ..SessionConfig::new(provider()) };
    for _ in 0..2 {
        assert_eq!(client.start_session(&bare).await.unwrap().downgrades, [Downgrade::StacksIncluded]);
        let error = client.start_session(&own).await.unwrap_err();
        assert!(error.to_string().contains("(0x80131385)") && error.to_string().ends_with("selecting the rundown needs .NET 9"), "{error}");
        assert_eq!(client.start_session(&names).await.unwrap().downgrades, [], "the default rundown holds more");
        assert_eq!(client.environment().await.unwrap_err().hresult(), Some(Hresult::UNKNOWN_COMMAND));
    }
    use CommandCode::{CollectTracing2, CollectTracing3, CollectTracing4, ProcessEnvironment, ProcessInfo};
    assert_eq!(
        *codes.borrow(),
        [
            ProcessInfo,
            CollectTracing3,
            CollectTracing2,
            CollectTracing4,
            CollectTracing2,
            ProcessEnvironment,
            CollectTracing2,
            CollectTracing2
        ]
    );
    let shown = [CollectTracing2, CollectTracing3].map(|code| client.support().get(code));
    assert_eq!(shown, [Some(Support::Yes), Some(Support::UnknownCommand)]);
}

#[tokio::test]
async fn only_previews_use_the_legacy_protocol() {
    let folder = tempfile::tempdir().unwrap();
    let endpoint = |version: &str| Endpoint { key: ProcessKey { pid: 7, started: 1 }, socket: address_in(folder.path(), version) };
    let runtime = |version: &str| Simulated::start(endpoint(version).socket, Spec::new("Web", version, 7)).unwrap();
    let config = || SessionConfig::new(Provider::new("P", 1, Level::Verbose).unwrap().into());
    let (preview, release) = ("3.0.0-preview5-27622-01", "3.1.23");
    let _runtimes = [runtime(preview), runtime(release)];

    let client = Client::new(endpoint(preview)).legacy();
    let mut session = client.start_session(&config()).await.unwrap();
    let drain = tokio::spawn(async move {
        let mut bytes = Vec::new();
        session.stream.read_to_end(&mut bytes).await.unwrap();
        bytes
    });
    client.stop_session(session.id).await.unwrap();
    let bytes = drain.await.unwrap();
    assert!(bytes.starts_with(b"Nettrace") && bytes.ends_with(&[6, 1]), "{} bytes", bytes.len());
    for (config, what) in [
        (SessionConfig { stacks: false, ..config() }, "sessions without stacks"),
        (SessionConfig { rundown: Rundown::None, ..config() }, "choice of rundown"),
        (SessionConfig { rundown: Rundown::Keyword(8), ..config() }, "choice of rundown"),
        (SessionConfig { mode: BufferMode::Block, ..config() }, "sessions that block"),
    ] {
        let error = client.start_session(&config).await.unwrap_err();
        assert!(matches!(error.cause, Cause::UnsupportedByLegacy(lack) if lack == what), "{error}");
    }
    assert!(matches!(client.process_info().await.unwrap_err().cause, Cause::UnsupportedByLegacy(_)));
    // The preview closes the connection of a client that uses the regular protocol.
    let error = Client::new(endpoint(preview)).process_info().await.unwrap_err();
    assert!(matches!(error.cause, Cause::Closed), "{error}");
    let error = Client::new(endpoint(release)).legacy().start_session(&config()).await.unwrap_err();
    assert!(matches!(error.cause, Cause::NotLegacy) && error.to_string().contains("omit --legacy"), "{error}");
}

/// Otherwise 3.1 would crash, and the simulation does.
#[tokio::test]
async fn session_start_on_3_1_goes_on_without_its_caller() {
    let folder = tempfile::tempdir().unwrap();
    let endpoint = Endpoint { key: ProcessKey { pid: 7, started: 1 }, socket: address_in(folder.path(), "old") };
    let delay = Duration::from_millis(100);
    let spec = Spec { fault: Some(Fault::Late(delay)), ..Spec::new("Web", "3.1.23", 7) };
    let runtime = Simulated::start(endpoint.socket.clone(), spec).unwrap();
    let client = Client::new(endpoint);
    assert_eq!(client.process_info().await.unwrap(), None);
    let config = SessionConfig::new(provider());
    // Before the answer to the probe, and after it.
    for caller_waits in [delay / 2, delay * 3 / 2] {
        timeout(caller_waits, client.start_session(&config)).await.unwrap_err();
        wait_until_answered().await;
        assert_eq!(client.process_info().await.unwrap(), None, "answered from what is known");
        assert_eq!(client.start_session(&config).await.unwrap().downgrades, []);
        assert!(runtime.is_alive());
    }
}

#[tokio::test]
async fn session_is_not_requested_of_a_runtime_that_does_not_answer() {
    let (sender, codes) = tokio::sync::watch::channel(Vec::new());
    let server = Server::start(move |code, stream| {
        sender.send_modify(|codes| codes.push(code));
        async move {
            sleep(Duration::from_secs(1000)).await;
            drop(stream);
        }
    });
    let config = SessionConfig::new(provider());
    timeout(Duration::from_millis(50), server.client.start_session(&config)).await.unwrap_err();
    assert_eq!(*codes.borrow(), [CommandCode::ProcessInfo]);
    assert_eq!(server.client.busy(), None);
}
