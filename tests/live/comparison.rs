//! The simulation compared to real runtimes: the same requests to both must get the same responses.
//!
//! Requests that kill a real runtime are sent to a process started for that purpose, and to a simulated one, which must die too. Requests
//! are written byte by byte: the codec cannot express most of them.

mod cases;

use std::io::{ErrorKind, IoSlice, Read as _, Write as _};
use std::net::Shutdown;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::Duration;

use dn_top::ipc::{CommandCode, Message, Reply};
use dn_top::sim::{Simulated, Spec};
use rustix::net::{SendAncillaryBuffer, SendAncillaryMessage, SendFlags};

use self::cases::{Case, Crash, NULL, Sent, array, cases, nothing, number, provider, request, session, text};
use crate::support::runtimes::{self, Runtime};
use crate::support::{Program, TIMEOUT, folder, poll};

#[test]
fn simulation_matches_net31() {
    runtimes::net31().iter().for_each(|runtime| compare(runtime, 3));
}

#[test]
fn simulation_matches_net8() {
    runtimes::net8().iter().for_each(|runtime| compare(runtime, 8));
}

#[test]
fn simulation_matches_net9() {
    runtimes::net9().iter().for_each(|runtime| compare(runtime, 9));
}

#[test]
fn simulation_matches_net10() {
    let both = [runtimes::net10(), runtimes::single_file_net10()].into_iter().flatten().collect();
    runtimes::each(both, |runtime| compare(runtime, 10));
}

fn compare(runtime: &Runtime, major: u32) {
    let maps = folder();
    let program = runtime.any().env("DOTNET_PerfMapJitDumpPath", maps.path()).start();
    let tasks = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
    let _inside = tasks.enter();
    let place = folder();
    let spec = spec(runtime, &program, major);
    let simulated = Simulated::start(place.path().join("s"), spec.clone()).unwrap();
    let (mut differences, mut doomed) = (Vec::new(), Vec::new());
    for Case { name, bytes, sent, crash, same } in cases(major) {
        // The trimmed program has no hook support, but reports success.
        if runtime.is_trimmed() && name == "a hook that is not there" {
            continue;
        }
        if crash.affects(major) {
            let simulated = Simulated::start(place.path().join("doomed"), spec.clone()).unwrap();
            let mut connection = UnixStream::connect(simulated.socket()).unwrap();
            connection.write_all(&bytes).unwrap();
            if poll(TIMEOUT, || (!simulated.is_alive()).then_some(())).is_none() {
                differences.push(format!("{name}: the simulation lives"));
            }
            if matches!(crash, Crash::Always(_)) && !runtime.is_trimmed() {
                doomed.push((name, bytes));
            }
            continue;
        }
        let real = exchange(&program.socket(), &bytes, sent, same);
        assert_ne!(real.then, "dead", "{runtime} died of: {name}; before it {}", differences.join("\n"));
        let simulation = exchange(simulated.socket(), &bytes, sent, same);
        if real != simulation {
            differences.push(format!("{name}\n     real: {real}\nsimulated: {simulation}"));
        }
    }
    // Each needs a process of its own, which mostly waits for its start.
    let alive = |doomed: &[(&str, Vec<u8>)]| {
        let alive = doomed.iter().filter(|(_, bytes)| !is_killed_by(runtime, bytes));
        alive.map(|(name, _)| format!("{name}: the runtime lives")).collect::<Vec<_>>()
    };
    std::thread::scope(|scope| {
        let lanes: Vec<_> = doomed.chunks(doomed.len().div_ceil(3).max(1)).map(|lane| scope.spawn(move || alive(lane))).collect();
        lanes.into_iter().for_each(|lane| differences.extend(lane.join().unwrap()));
    });
    assert!(differences.is_empty(), "{runtime}, of {} cases:\n{}", cases(major).len(), differences.join("\n"));
    assert!(program.answers() && simulated.is_alive());
}

/// Returns whether these bytes kill a process of this runtime.
fn is_killed_by(runtime: &Runtime, bytes: &[u8]) -> bool {
    let mut doomed = runtime.program("known").start();
    // A runtime that is still starting does not attach profilers, and does not read the request.
    assert_eq!(doomed.line(), "ready");
    UnixStream::connect(doomed.socket()).unwrap().write_all(bytes).unwrap();
    poll(TIMEOUT, || (!doomed.is_alive()).then_some(())).is_some()
}

/// Returns a simulated runtime that reports the same about itself as the real one.
fn spec(runtime: &Runtime, program: &Program, major: u32) -> Spec {
    let mut spec = Spec::new("work", runtime.version, program.pid());
    let reported = || {
        let answer = exchange(&program.socket(), &request(0x0408, &[]), Sent::Whole, |_| {}).bytes;
        let (message, _) = Message::decode(&answer).unwrap()?;
        let Ok(Reply::Info(info)) = Reply::decode(CommandCode::ProcessInfo3, &message) else { panic!("{message:?}") };
        // The arguments are available slightly later than the first response.
        info.command_line.contains(' ').then_some(info)
    };
    if major >= 5 {
        let info = poll(TIMEOUT, reported).unwrap();
        spec.name = info.entry_assembly.unwrap();
        spec.command = vec![info.command_line];
    }
    spec
}

/// A response, and what happened to the connection.
#[derive(Debug, PartialEq, Eq)]
struct Response {
    bytes: Vec<u8>,
    then: &'static str,
}

impl std::fmt::Display for Response {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.bytes.iter().try_for_each(|byte| write!(f, "{byte:02x}"))?;
        write!(f, ", then {}", self.then)
    }
}

/// Sends a request and reads the response. A runtime serves one connection at a time: once it answers the next one, it is done with this one.
fn exchange(socket: &Path, bytes: &[u8], sent: Sent, same: fn(&mut Vec<u8>)) -> Response {
    let Ok(mut connection) = connect(socket) else { return Response { bytes: Vec::new(), then: "dead" } };
    // It may close the connection before it has read everything.
    let _ = match sent {
        Sent::Split(at) => connection.write_all(&bytes[..at]).and_then(|()| connection.write_all(&bytes[at..])),
        Sent::Whole | Sent::Ended => connection.write_all(bytes),
        Sent::Handle => connection.write_all(bytes).and_then(|()| send_file_descriptor(&connection)),
    };
    if matches!(sent, Sent::Ended) {
        connection.shutdown(Shutdown::Write).unwrap();
    }
    if settle(socket).is_err() {
        return Response { bytes: Vec::new(), then: "dead" };
    }
    let mut answer = Vec::new();
    // The connections of the simulation belong to this process: programs being started by other tests briefly hold copies of them.
    connection.set_read_timeout(Some(Duration::from_millis(300))).unwrap();
    let then = match connection.read_to_end(&mut answer) {
        Ok(_) => "closed",
        Err(error) if error.kind() == ErrorKind::WouldBlock => "left open",
        Err(error) if error.kind() == ErrorKind::ConnectionReset => "reset",
        Err(error) => panic!("{error}"),
    };
    same(&mut answer);
    Response { bytes: answer, then }
}

/// Dumps are slow on a busy machine, and block other requests.
fn connect(socket: &Path) -> std::io::Result<UnixStream> {
    let connection = UnixStream::connect(socket)?;
    connection.set_read_timeout(Some(4 * TIMEOUT))?;
    connection.set_write_timeout(Some(4 * TIMEOUT))?;
    Ok(connection)
}

/// Returns once the server has finished all earlier connections.
fn settle(socket: &Path) -> std::io::Result<()> {
    let mut next = connect(socket)?;
    next.write_all(&request(0x0400, &[]))?;
    next.read_exact(&mut [0; 20])
}

/// Sends a file descriptor of the wrong kind.
fn send_file_descriptor(connection: &UnixStream) -> std::io::Result<()> {
    let null = std::fs::File::open("/dev/null")?;
    let handles = [std::os::fd::AsFd::as_fd(&null)];
    let mut space = [std::mem::MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut control = SendAncillaryBuffer::new(&mut space);
    assert!(control.push(SendAncillaryMessage::ScmRights(&handles)));
    rustix::net::sendmsg(connection, &[IoSlice::new(&[0])], &mut control, SendFlags::empty())?;
    Ok(())
}

#[test]
fn simulated_sessions_start_and_stop_like_real_ones() {
    runtimes::each(runtimes::all_and_single_files(), |runtime| {
        let major = runtime.major();
        let program = runtime.any().start();
        let tasks = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
        let _inside = tasks.enter();
        let place = folder();
        let simulated = Simulated::start(place.path().join("s"), Spec::new("work", runtime.version, 1)).unwrap();
        let good = provider(5, &text("DnTop-Unused"), NULL);
        // A few bytes short of the longest possible message.
        let long = provider(5, &text("DnTop-Unused"), &text(&format!("a={}", "x".repeat(32_690))));
        let mut commands = vec![
            request(0x0202, &[number(16), number(1), array(1, &good)].concat()),
            request(0x0203, &[number(16), number(1), vec![0], array(2, &good)].concat()),
            request(0x0203, &[number(16), number(1), vec![9], array(1, &long)].concat()),
        ];
        if major >= 9 {
            commands.push(request(0x0204, &[number(16), number(1), vec![0, 0], array(1000, &good)].concat()));
            commands.push(request(0x0205, &[number(16), number(1), vec![0x38, 0, 0, 0, 0, 0, 0, 0, 1], array(1, &good)].concat()));
        }
        if major >= 10 {
            let filtered = [&good[..], &[1, 1, 0, 0, 0, 7, 0, 0, 0]].concat();
            commands.push(request(0x0206, &[number(0), number(16), number(1), vec![0; 8], vec![0], array(1, &filtered)].concat()));
        }
        for (at, command) in commands.iter().enumerate() {
            let real = record(&program.socket(), command);
            let simulation = record(simulated.socket(), command);
            assert!(real == simulation, "{runtime}, command {at}\n     real: {real:02x?}\nsimulated: {simulation:02x?}");
        }
        assert_eq!(max_sessions(&program.socket()), max_sessions(simulated.socket()), "{runtime}");
        assert!(program.answers() && simulated.is_alive(), "{runtime}");
    });
}

/// Runs a session: returns the response to the start, the beginning and the end of the stream, and the response to the stop.
fn record(socket: &Path, command: &[u8]) -> [Vec<u8>; 4] {
    // The kernel delivers a message of more than some 48 kB in two parts. The runtime reads once, and sometimes finds only the first part.
    let (id, started, mut stream) = (0..50).find_map(|_| open(socket, command).ok()).expect("fifty times no session");
    // "Nettrace", the name of the serializer, and the start of the trace object up to the time.
    let mut head = vec![0; 8 + 4 + 20 + 2 + 1 + 4 + 4 + 4 + 5 + 1];
    stream.read_exact(&mut head).unwrap();
    let drain = std::thread::spawn(move || {
        let mut rest = Vec::new();
        stream.read_to_end(&mut rest).unwrap();
        rest
    });
    let stopped = exchange(socket, &request(0x0201, &id), Sent::Whole, session);
    assert_eq!(stopped.then, "closed");
    let rest = drain.join().unwrap();
    [started, head, rest[rest.len() - 2..].to_vec(), stopped.bytes]
}

/// Starts a session, and returns its ID, the response without the ID, and the stream. Any other response is an `Err`.
fn open(socket: &Path, command: &[u8]) -> Result<([u8; 8], Vec<u8>, UnixStream), Vec<u8>> {
    let mut stream = connect(socket).unwrap();
    stream.write_all(command).unwrap();
    let mut answer = vec![0; 24];
    stream.read_exact(&mut answer).unwrap();
    if answer[14] == 24 {
        return Err(answer);
    }
    answer.resize(28, 0);
    stream.read_exact(&mut answer[24..]).unwrap();
    let id = answer[20..].try_into().unwrap();
    session(&mut answer);
    Ok((id, answer, stream))
}

/// Returns the maximum number of sessions, and the response to one more.
fn max_sessions(socket: &Path) -> (usize, Vec<u8>) {
    let quiet = request(0x0203, &[number(1), number(1), vec![0], array(1, &provider(5, &text("DnTop-Unused"), NULL))].concat());
    let mut sessions = Vec::new();
    let refusal = loop {
        match open(socket, &quiet) {
            Ok((id, _, stream)) => sessions.push((id, stream)),
            Err(answer) => break answer,
        }
    };
    let count = sessions.len();
    for (id, mut stream) in sessions {
        let drain = std::thread::spawn(move || stream.read_to_end(&mut Vec::new()).unwrap());
        exchange(socket, &request(0x0201, &id), Sent::Whole, nothing);
        drain.join().unwrap();
    }
    (count, refusal)
}

#[test]
fn idle_client_blocks_other_clients() {
    runtimes::each(runtimes::all(), |runtime| {
        let program = runtime.any().start();
        let tasks = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
        let _inside = tasks.enter();
        let place = folder();
        let simulated = Simulated::start(place.path().join("s"), Spec::new("work", runtime.version, 1)).unwrap();
        for socket in [&program.socket(), simulated.socket()] {
            let silent = connect(socket).unwrap();
            let mut next = connect(socket).unwrap();
            next.write_all(&request(0x0400, &[])).unwrap();
            next.set_read_timeout(Some(Duration::from_millis(300))).unwrap();
            assert_eq!(next.read(&mut [0]).unwrap_err().kind(), ErrorKind::WouldBlock, "{runtime} {}", socket.display());
            drop(silent);
            next.set_read_timeout(Some(TIMEOUT)).unwrap();
            next.read_exact(&mut [0; 20]).unwrap();
        }
    });
}
