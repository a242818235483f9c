//! Tests of a simulated runtime over its socket, using only the codec: a client might hide faults.

#[cfg(target_os = "linux")]
mod linux;
#[cfg(target_os = "linux")]
mod tracing_consumer;
#[cfg(target_os = "linux")]
mod tracing_service;

use std::path::PathBuf;
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::time::{sleep, timeout};

#[cfg(target_os = "linux")]
pub(crate) use tracing_consumer::{ConsumerBehavior, ConsumerFault, ConsumerPort};
#[cfg(target_os = "linux")]
pub(crate) use tracing_service::{TracingBehavior, TracingFault, TracingSeen, TracingService};

use super::{Fault, Simulated, Spec};
use crate::analysis::Throughput;
use crate::ipc::{
    Command, CommandCode, DumpFlags, DumpKind, Hresult, Level, Message, PerfMapKind, Provider, Providers, Reply, ReplyError, SessionConfig,
    SessionId, TargetPath,
};
use crate::net::stream::{Stream, address_in};
use crate::nettrace::{Decoder, Ending, Limits};

struct Bench {
    _dir: tempfile::TempDir,
    runtime: Simulated,
}

fn start(spec: Spec) -> Bench {
    let dir = tempfile::tempdir().unwrap();
    let runtime = Simulated::start(address_in(dir.path(), "socket"), spec).unwrap();
    Bench { _dir: dir, runtime }
}

fn spec(version: &str) -> Spec {
    Spec::new("Web", version, 77)
}

impl Bench {
    async fn connect(&self) -> Stream {
        Stream::connect(self.runtime.socket()).await.unwrap()
    }

    /// Sends raw bytes and returns everything received until the runtime closes the connection, or 200 ms have passed.
    async fn raw(&self, bytes: &[u8]) -> Vec<u8> {
        let mut connection = self.connect().await;
        // The runtime may have closed the connection already.
        let _ = connection.write_all(bytes).await;
        let mut answer = Vec::new();
        // A connection that is leaked after an error has been answered before.
        let _ = timeout(Duration::from_millis(200), connection.read_to_end(&mut answer)).await;
        answer
    }

    async fn ask(&self, command: Command) -> Result<Reply, ReplyError> {
        let mut connection = self.connect().await;
        connection.write_all(&command.encode().unwrap()).await.unwrap();
        let mut answer = Vec::new();
        let read = async {
            loop {
                if let Some((message, _)) = Message::decode(&answer).unwrap() {
                    return Reply::decode(command.code(), &message);
                }
                assert_ne!(connection.read_buf(&mut answer).await.unwrap(), 0, "the answer is cut off: {answer:?}");
            }
        };
        timeout(Duration::from_secs(20), read).await.expect("an answer")
    }

    /// Opens a session and returns its id and the connection after the reply.
    async fn open(&self, config: &SessionConfig) -> (SessionId, Stream) {
        let mut connection = self.connect().await;
        connection.write_all(&config.command().encode().unwrap()).await.unwrap();
        let mut reply = [0; 28];
        connection.read_exact(&mut reply).await.unwrap();
        let (message, _) = Message::decode(&reply).unwrap().unwrap();
        match Reply::decode(config.command().code(), &message).unwrap() {
            Reply::Session(id) => (id, connection),
            other => panic!("{other:?}"),
        }
    }
}

fn hresult(answer: Result<Reply, ReplyError>) -> Hresult {
    match answer {
        Err(ReplyError::Failure(failure)) => failure.hresult,
        other => panic!("{other:?}"),
    }
}

fn everything() -> SessionConfig {
    let providers = [("Microsoft-Windows-DotNETRuntime", u64::MAX), ("Microsoft-DotNETCore-SampleProfiler", 0), ("Demo-Web", u64::MAX)];
    let mut providers: Vec<_> = providers.map(|(name, keywords)| Provider::new(name, keywords, Level::Verbose).unwrap()).into();
    let counters = Provider::new("System.Runtime", u64::MAX, Level::Verbose).unwrap();
    providers.push(counters.with_arguments("EventCounterIntervalSec=1").unwrap());
    SessionConfig::new(Providers::new(providers).unwrap())
}

#[tokio::test]
async fn every_version_supports_only_its_own_commands() {
    for (version, newest) in [
        ("3.1.23", None),
        ("5.0.17", Some(CommandCode::ProcessInfo)),
        ("7.0.20", Some(CommandCode::ProcessInfo2)),
        ("9.0.7", Some(CommandCode::ProcessInfo3)),
    ] {
        let bench = start(spec(version));
        for command in [Command::ProcessInfo, Command::ProcessInfo2, Command::ProcessInfo3] {
            let code = command.code();
            let answer = bench.ask(command).await;
            if newest.is_some_and(|newest| code as u16 <= newest as u16) {
                let Ok(Reply::Info(info)) = answer else { panic!("{version} {code}: {answer:?}") };
                assert_eq!(info.pid, 77);
                assert_eq!(info.command_line, "/usr/bin/dotnet /srv/Web.dll");
            } else {
                assert_eq!(hresult(answer), Hresult::UNKNOWN_COMMAND, "{version} {code}");
            }
        }
        assert!(bench.runtime.is_alive());
    }
    let older = SessionConfig { stacks: false, ..everything() };
    for (version, knows) in [("8.0.33", false), ("9.0.7", true)] {
        let answer = start(spec(version)).ask(older.command()).await;
        assert_eq!(answer.is_ok(), knows, "{version}: {answer:?}");
    }
}

fn counted(tally: &Throughput, provider: &str, id: u32) -> u64 {
    let counts = tally.counts();
    counts.iter().find(|count| count.provider == provider && count.event_id == id).map_or(0, |count| count.count)
}

/// The session is stopped once the requested events have been received.
#[tokio::test]
async fn session_streams_requested_events_and_ends_complete() {
    for (version, answer_first) in [("3.1.23", true), ("9.0.7", false)] {
        let bench = start(spec(version));
        let (id, mut stream) = bench.open(&everything()).await;
        let (begun, has_begun) = tokio::sync::oneshot::channel();
        let reader = tokio::spawn(async move {
            let (mut bytes, mut begun) = (Vec::new(), Some(begun));
            while stream.read_buf(&mut bytes).await.unwrap() > 0 {
                let (mut decoder, mut tally) = (Decoder::new(Limits::default()), Throughput::default());
                decoder.feed(&bytes, &mut tally).unwrap();
                if counted(&tally, "Microsoft-DotNETCore-SampleProfiler", 0) >= 60 && counted(&tally, "Demo-Web", 1) >= 15 {
                    begun.take().map(|begun| begun.send(()));
                }
            }
            (bytes, std::time::Instant::now())
        });
        timeout(Duration::from_secs(30), has_begun).await.unwrap().unwrap();
        assert_eq!(bench.ask(Command::StopTracing { session: id }).await, Ok(Reply::Session(id)), "{version}");
        let answered = std::time::Instant::now();
        let (bytes, ended) = reader.await.unwrap();
        // `ask` also waits for the end of its own connection, so only one order can be checked.
        assert!(answer_first || ended <= answered + Duration::from_millis(50));

        let (mut decoder, mut tally) = (Decoder::new(Limits::default()), Throughput::default());
        decoder.feed(&bytes, &mut tally).unwrap();
        assert_eq!(decoder.finish(&mut tally), Ending::Complete, "{version}");
        let totals = tally.snapshot();
        assert_eq!((totals.dropped, totals.problems), (0, 0), "{version}");
        assert_eq!(counted(&tally, "Microsoft-Windows-DotNETRuntimeRundown", 144), 8);
        assert_eq!(counted(&tally, "Microsoft-DotNETCore-EventPipe", 1), 1);
    }
}

#[tokio::test]
async fn stop_waits_for_the_reader_and_blocks_other_commands() {
    let bench = start(Spec { script: super::Script::Canned(vec![7; 4 << 20].into()), ..spec("9.0.7") });
    let (id, mut stream) = bench.open(&everything()).await;
    let mut stop = bench.connect().await;
    stop.write_all(&Command::StopTracing { session: id }.encode().unwrap()).await.unwrap();
    let mut byte = [0];
    assert!(timeout(Duration::from_millis(200), stop.read(&mut byte)).await.is_err());
    assert!(bench.raw(&Command::ProcessInfo.encode().unwrap()).await.is_empty());

    let mut bytes = Vec::new();
    stream.read_to_end(&mut bytes).await.unwrap();
    assert_eq!(bytes.len(), 4 << 20);
    assert!(timeout(Duration::from_secs(5), stop.read(&mut byte)).await.unwrap().unwrap() > 0);
}

#[tokio::test]
async fn at_most_64_sessions_are_open_and_ids_are_reused() {
    let bench = start(spec("9.0.7"));
    let mut open = Vec::new();
    for _ in 0..64 {
        open.push(bench.open(&everything()).await);
    }
    assert_eq!(hresult(bench.ask(everything().command()).await), Hresult::FAIL);
    let (id, mut stream) = open.swap_remove(17);
    let drain = tokio::spawn(async move { stream.read_to_end(&mut Vec::new()).await });
    bench.ask(Command::StopTracing { session: id }).await.unwrap();
    drain.await.unwrap().unwrap();
    assert_eq!(bench.open(&everything()).await.0, id);
    // No session has this id; real runtimes report success.
    let unknown = SessionId(5);
    assert_eq!(bench.ask(Command::StopTracing { session: unknown }).await, Ok(Reply::Session(unknown)));
}

#[tokio::test]
async fn a_suspended_runtime_streams_nothing_until_it_is_resumed() {
    let bench = start(Spec { suspended: true, ..spec("9.0.7") });
    let Ok(Reply::Info(info)) = bench.ask(Command::ProcessInfo3).await else { panic!() };
    assert_eq!(info.command_line, "/usr/bin/dotnet");
    let (_, mut stream) = bench.open(&everything()).await;
    let mut bytes = [0; 8];
    assert!(timeout(Duration::from_millis(250), stream.read(&mut bytes)).await.is_err());
    assert_eq!(bench.ask(Command::ResumeRuntime).await, Ok(Reply::Done));
    stream.read_exact(&mut bytes).await.unwrap();
    assert_eq!(&bytes, b"Nettrace");
}

#[tokio::test]
async fn malformed_messages_are_answered_as_by_real_runtimes() {
    let bench = start(spec("9.0.7"));
    let code = |answer: Vec<u8>| {
        let (message, _) = Message::decode(&answer).unwrap().expect("an answer");
        hresult(Reply::decode(CommandCode::ProcessInfo, &message))
    };
    let request = Command::ProcessInfo.encode().unwrap();
    let mut magic = request.clone();
    magic[13] = b'X';
    assert_eq!(code(bench.raw(&magic).await), Hresult::UNKNOWN_MAGIC);
    let mut short = request.clone();
    short[14] = 19;
    assert_eq!(code(bench.raw(&short).await), Hresult::BAD_ENCODING);
    let mut unknown = request.clone();
    unknown[17] = 0x42;
    assert_eq!(code(bench.raw(&unknown).await), Hresult::UNKNOWN_COMMAND);

    // In two pieces: newer runtimes wait for the rest, 3.1 refuses.
    for (version, works) in [("9.0.7", true), ("3.1.23", false)] {
        let bench = start(spec(version));
        let mut connection = bench.connect().await;
        let stop = Command::StopTracing { session: SessionId(1) }.encode().unwrap();
        connection.write_all(&stop[..24]).await.unwrap();
        sleep(Duration::from_millis(100)).await;
        // The runtime may have closed the connection already.
        let _ = connection.write_all(&stop[24..]).await;
        let mut answer = Vec::new();
        // 3.1 closes with bytes unread, which resets the connection after the answer.
        let _ = connection.read_to_end(&mut answer).await;
        let (message, _) = Message::decode(&answer).unwrap().expect("an answer");
        assert_eq!(Reply::decode(CommandCode::StopTracing, &message).is_ok(), works, "{version}");
    }
}

#[tokio::test]
async fn requests_that_crash_a_real_runtime_crash_this_one() {
    let bench = start(spec("9.0.7"));
    let header_only = Message { set: 2, id: 3, payload: &[] }.encode().unwrap();
    assert!(bench.raw(&header_only).await.is_empty());
    assert!(!bench.runtime.is_alive());
    let refused = Stream::connect(bench.runtime.socket()).await.unwrap_err().kind();
    // A pipe disappears with its server.
    assert!(matches!(refused, std::io::ErrorKind::ConnectionRefused | std::io::ErrorKind::NotFound), "{refused}");

    let bench = start(Spec { suspended: true, ..spec("9.0.7") });
    bench.raw(&Command::EnablePerfMap { kind: PerfMapKind::PerfMap }.encode().unwrap()).await;
    assert!(!bench.runtime.is_alive());
}

#[tokio::test]
async fn dump_is_written_to_the_requested_path() {
    let bench = start(spec("9.0.7"));
    let dump = |path: PathBuf| Command::GenerateCoreDump3 {
        path: TargetPath::new(path.to_str().unwrap()).unwrap(),
        kind: DumpKind::Mini,
        flags: DumpFlags::default(),
    };
    let mut connection = bench.connect().await;
    connection.write_all(&dump(bench._dir.path().join("core")).encode().unwrap()).await.unwrap();
    let mut answer = Vec::new();
    connection.read_to_end(&mut answer).await.unwrap();
    assert!(bench._dir.path().join("core").exists());
}

#[tokio::test]
async fn faults_have_the_documented_effect() {
    let ask = |fault: Fault| async {
        let bench = start(Spec { fault: Some(fault), ..spec("9.0.7") });
        bench.raw(&Command::ProcessInfo.encode().unwrap()).await
    };
    assert!(ask(Fault::Silent).await.is_empty());
    assert!(ask(Fault::HangUp).await.is_empty());
    assert_eq!(ask(Fault::Garbage(b"HTTP/1.1 400".to_vec())).await, b"HTTP/1.1 400");
    assert_eq!(ask(Fault::CutReply(21)).await.len(), 21);
    let text = ask(Fault::HostileText).await;
    assert!(text.windows(2).any(|unit| unit == [0x1b, 0]));
    let whole = ask(Fault::Late(Duration::from_millis(20))).await;
    assert!(Message::decode(&whole).unwrap().is_some());
}

#[tokio::test]
async fn simulated_crash_truncates_the_stream() {
    let bench = start(Spec { fault: Some(Fault::CutStream(3000)), ..spec("9.0.7") });
    let (_, mut stream) = bench.open(&everything()).await;
    let mut bytes = Vec::new();
    stream.read_to_end(&mut bytes).await.unwrap();
    assert_eq!(bytes.len(), 3000);
}
