//! The simulation against the runtimes: the same bytes to both, and the same answers from both.
//!
//! What the real one would not survive goes to the simulated one alone, which must not survive it either. Bytes are written out here: the codec has
//! no words for most of this.

use std::io::{ErrorKind, IoSlice, Read as _, Write as _};
use std::net::Shutdown;
use std::os::unix::net::UnixStream;
use std::path::Path;

use dn_top::ipc::{CommandCode, Message, Reply};
use dn_top::sim::{Simulated, Spec};
use rustix::net::{SendAncillaryBuffer, SendAncillaryMessage, SendFlags};

use crate::support::runtimes::{self, Runtime};
use crate::support::{PATIENCE, Program, folder, poll};

#[test]
fn the_simulation_answers_as_net31() {
    runtimes::net31().iter().for_each(|runtime| compare(runtime, 3));
}

#[test]
fn the_simulation_answers_as_net9() {
    runtimes::net9().iter().for_each(|runtime| compare(runtime, 9));
}

#[test]
fn the_simulation_answers_as_net10() {
    runtimes::net10().iter().for_each(|runtime| compare(runtime, 10));
}

fn compare(runtime: &Runtime, major: u32) {
    let maps = folder();
    let program = runtime.any().env("DOTNET_PerfMapJitDumpPath", maps.path()).start();
    let tasks = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
    let _inside = tasks.enter();
    let place = folder();
    let spec = spec(runtime, &program, major);
    let simulated = Simulated::start(place.path().join("s"), spec.clone()).unwrap();
    let mut differences = Vec::new();
    for Case { name, bytes, sent, deadly, same } in cases(major) {
        if deadly.contains(&major) {
            let doomed = Simulated::start(place.path().join("doomed"), spec.clone()).unwrap();
            let mut connection = UnixStream::connect(doomed.socket()).unwrap();
            connection.write_all(&bytes).unwrap();
            if poll(PATIENCE, || (!doomed.is_alive()).then_some(())).is_none() {
                differences.push(format!("{name}: .NET {major} would die of this, and the simulation lives"));
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
    assert!(differences.is_empty(), "{runtime}, of {} cases:\n{}", cases(major).len(), differences.join("\n"));
    assert!(program.answers() && simulated.is_alive());
}

/// A simulated runtime that says of itself what the real one says.
fn spec(runtime: &Runtime, program: &Program, major: u32) -> Spec {
    let mut spec = Spec::new("work", runtime.version, program.pid());
    let told = || {
        let answer = exchange(&program.socket(), &request(0x0408, &[]), Sent::Whole, |_| {}).bytes;
        let (message, _) = Message::decode(&answer).unwrap()?;
        let Ok(Reply::Info(info)) = Reply::decode(CommandCode::ProcessInfo3, &message) else { panic!("{message:?}") };
        // It learns its arguments a little later than it answers.
        info.command_line.contains(' ').then_some(info)
    };
    if major >= 5 {
        let info = poll(PATIENCE, told).unwrap();
        spec.name = info.entry_assembly.unwrap();
        spec.command = vec![info.command_line];
    }
    spec
}

/// What is sent, and how the answers are compared.
struct Case {
    name: &'static str,
    bytes: Vec<u8>,
    sent: Sent,
    /// The versions that die of it.
    deadly: &'static [u32],
    /// Takes out what is different by nature.
    same: fn(&mut Vec<u8>),
}

/// How bytes go out.
#[derive(Clone, Copy)]
enum Sent {
    Whole,
    /// And nothing will follow.
    Ended,
    /// In two pieces.
    Split(usize),
    /// And behind it a file descriptor of /dev/null.
    Handle,
}

/// An answer, and what became of the connection.
#[derive(Debug, PartialEq, Eq)]
struct Heard {
    bytes: Vec<u8>,
    then: &'static str,
}

impl std::fmt::Display for Heard {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.bytes.iter().try_for_each(|byte| write!(f, "{byte:02x}"))?;
        write!(f, ", then {}", self.then)
    }
}

/// Sends a request and takes what comes. A runtime serves one connection after the other: when it answers the next one it has done with this.
fn exchange(socket: &Path, bytes: &[u8], sent: Sent, same: fn(&mut Vec<u8>)) -> Heard {
    let Ok(mut connection) = connect(socket) else { return Heard { bytes: Vec::new(), then: "dead" } };
    // It may hang up before it has read all.
    let _ = match sent {
        Sent::Split(at) => connection.write_all(&bytes[..at]).and_then(|()| connection.write_all(&bytes[at..])),
        Sent::Whole | Sent::Ended => connection.write_all(bytes),
        Sent::Handle => connection.write_all(bytes).and_then(|()| hand_over(&connection)),
    };
    if matches!(sent, Sent::Ended) {
        connection.shutdown(Shutdown::Write).unwrap();
    }
    if settle(socket).is_err() {
        return Heard { bytes: Vec::new(), then: "dead" };
    }
    let mut answer = Vec::new();
    connection.set_nonblocking(true).unwrap();
    let then = match connection.read_to_end(&mut answer) {
        Ok(_) => "closed",
        Err(error) if error.kind() == ErrorKind::WouldBlock => "left open",
        Err(error) if error.kind() == ErrorKind::ConnectionReset => "reset",
        Err(error) => panic!("{error}"),
    };
    same(&mut answer);
    Heard { bytes: answer, then }
}

/// Dumps are slow on a busy machine, and others wait for them.
fn connect(socket: &Path) -> std::io::Result<UnixStream> {
    let connection = UnixStream::connect(socket)?;
    connection.set_read_timeout(Some(4 * PATIENCE))?;
    connection.set_write_timeout(Some(4 * PATIENCE))?;
    Ok(connection)
}

/// Returns when the server has done with every connection before.
fn settle(socket: &Path) -> std::io::Result<()> {
    let mut next = connect(socket)?;
    next.write_all(&request(0x0400, &[]))?;
    next.read_exact(&mut [0; 20])
}

fn request(code: u16, payload: &[u8]) -> Vec<u8> {
    let size = u16::try_from(20 + payload.len()).unwrap().to_le_bytes();
    [&b"DOTNET_IPC_V1\0"[..], &size, &code.to_be_bytes(), &[0; 2], payload].concat()
}

fn number(number: u32) -> Vec<u8> {
    number.to_le_bytes().into()
}

fn text(text: &str) -> Vec<u8> {
    let units: Vec<u8> = text.encode_utf16().chain([0]).flat_map(u16::to_le_bytes).collect();
    [number(units.len() as u32 / 2), units].concat()
}

/// A count and as many of the same.
fn array(count: u32, element: &[u8]) -> Vec<u8> {
    [number(count), element.repeat(count as usize)].concat()
}

fn provider(level: u32, name: &[u8], arguments: &[u8]) -> Vec<u8> {
    [&[0; 8], number(level).as_slice(), name, arguments].concat()
}

const NULL: &[u8] = &[0; 4];

fn nothing(_: &mut Vec<u8>) {}

/// The cookie at this place, of a payload that has one.
#[expect(clippy::ptr_arg, reason = "others of its kind shorten the answer")]
fn cookie<const AT: usize>(answer: &mut Vec<u8>) {
    if let Some(bytes) = answer.get_mut(20 + AT..20 + AT + 16) {
        bytes.fill(0);
    }
}

/// A session's id.
#[expect(clippy::ptr_arg, reason = "others of its kind shorten the answer")]
fn session(answer: &mut Vec<u8>) {
    if answer.len() >= 28 && answer[17] == 0 {
        answer[20..28].fill(0);
    }
}

/// How many bytes an environment block takes, if that is what it says.
fn environment(answer: &mut Vec<u8>) {
    if answer.len() > 26 && answer[20..24] == number(answer.len() as u32 - 26) {
        answer.truncate(20);
    }
}

/// What a dump program says, if it says anything.
fn words(answer: &mut Vec<u8>) {
    if answer.len() > 30 {
        answer.truncate(24);
        answer[14..16].fill(0);
    }
}

/// What memory happened to hold behind the 6 bytes that were sent.
fn echo(answer: &mut Vec<u8>) {
    if answer.starts_with(b"abcdef") {
        answer.truncate(26);
        answer[6..].fill(0);
    }
}

fn cases(major: u32) -> Vec<Case> {
    let mut cases = Vec::new();
    let mut add = |name, bytes: Vec<u8>, sent, deadly, same| cases.push(Case { name, bytes, sent, deadly, same });
    let stop = || request(0x0201, &5_u64.to_le_bytes());
    let mut frame = |name, change: &dyn Fn(&mut Vec<u8>), sent| {
        let mut bytes = stop();
        change(&mut bytes);
        add(name, bytes, sent, &[], nothing as fn(&mut Vec<u8>));
    };
    frame("a stop of what does not exist", &|_| {}, Sent::Whole);
    frame("magic without its NUL", &|bytes| bytes[13] = b'X', Sent::Whole);
    frame("magic in lower case", &|bytes| bytes[..13].make_ascii_lowercase(), Sent::Whole);
    frame("text of another protocol", &|bytes| *bytes = b"GET / HTTP/1.1\r\n\r\n\r\n\r\n".to_vec(), Sent::Ended);
    frame("size 0", &|bytes| bytes[14] = 0, Sent::Whole);
    frame("size 19", &|bytes| bytes[14] = 19, Sent::Whole);
    frame(
        "a header alone, of size 19",
        &|bytes| {
            bytes[14] = 19;
            bytes.truncate(20);
        },
        Sent::Whole,
    );
    frame("nothing at all", &|bytes| bytes.clear(), Sent::Ended);
    frame("half a header", &|bytes| bytes.truncate(10), Sent::Ended);
    frame("half a payload", &|bytes| bytes.truncate(24), Sent::Ended);
    frame("a header of what has a payload", &|bytes| bytes.truncate(20), Sent::Ended);
    frame(
        "a header of what has a payload, and its size",
        &|bytes| {
            bytes[14] = 20;
            bytes.truncate(20);
        },
        Sent::Whole,
    );
    frame("reserved bytes that are set", &|bytes| bytes[18..20].fill(0xff), Sent::Whole);
    frame("a second message behind the first", &|bytes| bytes.extend_from_slice(&stop()), Sent::Whole);
    frame(
        "a byte more than fields",
        &|bytes| {
            bytes.push(7);
            bytes[14] += 1;
        },
        Sent::Whole,
    );
    for (name, at) in [("a header in two pieces", 10), ("a payload in two pieces", 24)] {
        // 3.1 answers the first one. The second would come before it hangs up, or after.
        match major {
            3 => frame(name, &|bytes| bytes.truncate(at), Sent::Whole),
            _ => frame(name, &|_| {}, Sent::Split(at)),
        }
    }
    frame("header and payload apart", &|_| {}, Sent::Split(20));

    add("half an id", request(0x0201, &[5, 0, 0, 0]), Sent::Whole, &[], session);
    for code in [0x0000, 0x0001, 0x0100, 0x0104, 0x0200, 0x0208, 0x0300, 0x0303, 0x0409, 0x04ff, 0x0500, 0xff00, 0xffff] {
        add("an unknown command", request(code, &[]), Sent::Whole, &[], nothing);
        add("an unknown command with a payload", request(code, &[1, 2, 3, 4]), Sent::Whole, &[], nothing);
    }
    for (name, code) in [
        ("an empty dump", 0x0101),
        ("an empty dump 3", 0x0103),
        ("an empty session", 0x0202),
        ("an empty session 2", 0x0203),
        ("an empty attachment", 0x0301),
        ("an empty start-up profiler", 0x0302),
        ("an empty variable", 0x0403),
        ("an empty perf map", 0x0405),
        ("an empty hook", 0x0407),
    ] {
        add(name, request(code, &[]), Sent::Whole, &[9, 10], nothing);
    }
    add("an empty session 5", request(0x0206, &[]), Sent::Whole, &[10], nothing);

    add("who are you", request(0x0400, &[]), Sent::Whole, &[], cookie::<8>);
    add("who are you 2", request(0x0404, &[]), Sent::Whole, &[], cookie::<8>);
    add("who are you 3", request(0x0408, &[]), Sent::Whole, &[], cookie::<12>);
    for (name, code) in [
        ("who are you, and a payload", 0x0400),
        ("an environment and a payload", 0x0402),
        ("who are you 2, and a payload", 0x0404),
        ("who are you 3, and a payload", 0x0408),
    ] {
        add(name, request(code, b"abcdef"), Sent::Whole, &[], echo);
    }
    add("the environment", request(0x0402, &[]), Sent::Whole, &[], environment);
    add("a resume", request(0x0401, &[]), Sent::Whole, &[], nothing);
    add("a resume and a payload", request(0x0401, b"abcdef"), Sent::Whole, &[], nothing);
    add("a perf map that ends", request(0x0406, &[]), Sent::Whole, &[], nothing);
    for kind in [0, 1, 2, 3, 4, 9] {
        add("a perf map of some kind", request(0x0405, &number(kind)), Sent::Whole, &[], nothing);
    }
    add("a perf map that ends", request(0x0406, &[]), Sent::Whole, &[], nothing);

    for (name, variable, value) in [
        ("a variable", text("DN_TOP_A"), text("1")),
        ("a variable of no length", text("DN_TOP_A"), text("")),
        ("a variable that goes", text("DN_TOP_A"), NULL.to_vec()),
        ("a variable that is not there", text("DN_TOP_B"), NULL.to_vec()),
        ("a variable without a name", text(""), text("1")),
        ("a variable with a null name", NULL.to_vec(), text("1")),
        ("a variable with = in its name", text("DN=TOP"), text("1")),
        ("a variable without its NUL", [number(2), b"A\0B\0".to_vec()].concat(), text("1")),
        ("a variable longer than what there is", number(1000), text("1")),
    ] {
        add(name, request(0x0403, &[variable, value].concat()), Sent::Whole, &[], nothing);
    }
    add("a variable without a value", request(0x0403, &text("DN_TOP_A")), Sent::Whole, &[9, 10], nothing);

    let dump = |code, path: &[u8], kind, flags| request(code, &[path, &number(kind), &number(flags)].concat());
    for (code, path) in [(0x0101, "/no/such/folder/core"), (0x0102, "/no/such/folder/core"), (0x0103, "/no/such/folder/core")] {
        add("a dump into a folder that is not there", dump(code, &text(path), 4, 0), Sent::Whole, &[], words);
        add("a dump of no kind", dump(code, &text(path), 9, 0), Sent::Whole, &[], nothing);
        add("a dump without its NUL", request(code, &[number(1), vec![1; 10]].concat()), Sent::Whole, &[], nothing);
    }
    add("a dump to nowhere", dump(0x0101, NULL, 1, 0), Sent::Whole, &[3, 9, 10], nothing);
    add("a dump 3 to nowhere", dump(0x0103, NULL, 1, 0), Sent::Whole, &[9, 10], nothing);

    let class = [7; 16];
    let attachment = |data: &[u8]| request(0x0301, &[&number(1000), &class[..], &text("/no/such.so"), data].concat());
    add("a profiler that is not there", attachment(NULL), Sent::Whole, &[], nothing);
    add("a profiler that is not there, and its data", attachment(&[3, 0, 0, 0, 1, 2, 3]), Sent::Whole, &[], nothing);
    add("a profiler with more data than it says", attachment(&[1, 0, 0, 0, 1, 2, 3]), Sent::Whole, &[], nothing);
    add("a profiler with less data than it says", attachment(&[9, 0, 0, 0, 1, 2, 3]), Sent::Whole, &[], nothing);
    add("half a profiler", request(0x0301, &[&number(1000), &class[..9]].concat()), Sent::Whole, &[9, 10], nothing);
    add("a profiler without data", attachment(&[]), Sent::Whole, &[], nothing);
    add("a profiler without a path", request(0x0301, &[&number(1000), &class[..]].concat()), Sent::Whole, &[9, 10], nothing);
    add("half a start-up profiler", request(0x0302, &class[..9]), Sent::Whole, &[9, 10], nothing);
    add("a start-up profiler without a path", request(0x0302, &class), Sent::Whole, &[9, 10], nothing);
    add(
        "a start-up profiler of a program that runs",
        request(0x0302, &[&class[..], &text("/no/such.so")].concat()),
        Sent::Whole,
        &[],
        nothing,
    );

    let hook = request(0x0407, &text("/no/such.dll"));
    add("a hook that is not there", hook, Sent::Whole, &[9], nothing);
    add("a hook without its NUL", request(0x0407, &[number(2), b"A\0B\0".to_vec()].concat()), Sent::Whole, &[], nothing);

    let good = provider(5, &text("DnTop-Nobody"), NULL);
    let collect = |code: u16, buffer, format, providers: Vec<u8>| {
        let switches: &[u8] = match code {
            0x0202 => &[],
            0x0203 => &[0],
            0x0204 => &[0, 1],
            _ => &[0, 0, 0, 0, 0, 0, 0, 0, 1],
        };
        request(code, &[number(buffer), number(format), switches.to_vec(), providers].concat())
    };
    for code in [0x0202, 0x0203, 0x0204, 0x0205] {
        add("a session of no provider", collect(code, 1, 1, array(0, &[])), Sent::Whole, &[], session);
        add("a session without a buffer", collect(code, 0, 1, array(1, &good)), Sent::Whole, &[9], nothing);
        add("a session of format 2", collect(code, 1, 2, array(1, &good)), Sent::Whole, &[9], nothing);
        add("a session of 1001 providers", collect(code, 1, 1, array(1001, &provider(5, &text("P"), NULL))), Sent::Whole, &[9], nothing);
        for (name, bad) in [
            ("a session of level 6", provider(6, &text("P"), NULL)),
            ("a session of a provider without a name", provider(5, &text(""), NULL)),
            ("a session of a provider with a null name", provider(5, NULL, NULL)),
            ("a session of a provider without its NUL", provider(5, &[2, 0, 0, 0, 65, 0, 66, 0], NULL)),
            ("a session of half a provider", vec![0; 10]),
        ] {
            add(name, collect(code, 1, 1, array(1, &bad)), Sent::Whole, &[], session);
        }
    }
    if major < 10 {
        return cases;
    }

    let mut add = |name, bytes: Vec<u8>, sent| cases.push(Case { name, bytes, sent, deadly: &[], same: nothing });
    let all: &[u8] = &[0; 5];
    let stream = |buffer, format, providers: Vec<u8>| {
        request(0x0206, &[number(0), number(buffer), number(format), vec![0; 8], vec![1], providers].concat())
    };
    let filtered = |filter: &[u8]| array(1, &[&good, filter].concat());
    add("a session 5 without a buffer", stream(0, 1, filtered(all)), Sent::Whole);
    add("a session 5 of format 2", stream(1, 2, filtered(all)), Sent::Whole);
    add("a session 5 of no provider", stream(1, 1, array(0, &[])), Sent::Whole);
    add("a session 5 of no kind", request(0x0206, &number(2)), Sent::Whole);
    let events = |tracepoints: &[u8]| request(0x0206, &[number(1), vec![0; 8], filtered(&[all, tracepoints].concat())].concat());
    let set = |name: &str, ids: &[u32]| [text(name), number(ids.len() as u32), ids.iter().flat_map(|id| number(*id)).collect()].concat();
    add("user events for no tracepoint", events(&[NULL, &number(0)].concat()), Sent::Ended);
    add("user events for a tracepoint without events", events(&[NULL, &number(1), &set("Set", &[])].concat()), Sent::Ended);
    add("user events for a tracepoint without a name", events(&[NULL, &number(1), &set("", &[1])].concat()), Sent::Ended);
    let good = events(&[text("DnTop"), number(0)].concat());
    add("user events and a byte", [&good[..], &[0]].concat(), Sent::Whole);
    add("user events and the end", good.clone(), Sent::Ended);
    add("user events and some other file", good, Sent::Handle);
    cases
}

/// Sends a file descriptor that is not what is wanted.
fn hand_over(connection: &UnixStream) -> std::io::Result<()> {
    let null = std::fs::File::open("/dev/null")?;
    let handles = [std::os::fd::AsFd::as_fd(&null)];
    let mut space = [std::mem::MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut control = SendAncillaryBuffer::new(&mut space);
    assert!(control.push(SendAncillaryMessage::ScmRights(&handles)));
    rustix::net::sendmsg(connection, &[IoSlice::new(&[0])], &mut control, SendFlags::empty())?;
    Ok(())
}

#[test]
fn sessions_begin_and_end_alike() {
    for runtime in runtimes::all() {
        let major: u32 = runtime.version.split('.').next().unwrap().parse().unwrap();
        let program = runtime.any().start();
        let tasks = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
        let _inside = tasks.enter();
        let place = folder();
        let simulated = Simulated::start(place.path().join("s"), Spec::new("work", runtime.version, 1)).unwrap();
        let good = provider(5, &text("DnTop-Nobody"), NULL);
        // The longest message that fits, but for a few bytes.
        let long = provider(5, &text("DnTop-Nobody"), &text(&format!("a={}", "x".repeat(32_690))));
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
        assert_eq!(many(&program.socket()), many(simulated.socket()), "{runtime}");
        assert!(program.answers() && simulated.is_alive(), "{runtime}");
    }
}

/// A session from its start to its end: the answer to the start, how the stream begins and ends, the answer to the stop.
fn record(socket: &Path, command: &[u8]) -> [Vec<u8>; 4] {
    let (id, started, mut stream) = open(socket, command).unwrap();
    // "Nettrace", the name of the serializer, and the head of the trace object up to the time.
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

/// Starts a session: its id, the answer without it, and the stream. `Err` has another answer.
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

/// How many sessions there is room for, and the answer to one more.
fn many(socket: &Path) -> (usize, Vec<u8>) {
    let quiet = request(0x0203, &[number(1), number(1), vec![0], array(1, &provider(5, &text("DnTop-Nobody"), NULL))].concat());
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
fn a_silent_client_keeps_all_others_waiting() {
    for runtime in runtimes::all() {
        let program = runtime.any().start();
        let tasks = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
        let _inside = tasks.enter();
        let place = folder();
        let simulated = Simulated::start(place.path().join("s"), Spec::new("work", runtime.version, 1)).unwrap();
        for socket in [&program.socket(), simulated.socket()] {
            let silent = connect(socket).unwrap();
            let mut next = connect(socket).unwrap();
            next.write_all(&request(0x0400, &[])).unwrap();
            next.set_read_timeout(Some(std::time::Duration::from_millis(300))).unwrap();
            assert_eq!(next.read(&mut [0]).unwrap_err().kind(), ErrorKind::WouldBlock, "{runtime} {}", socket.display());
            drop(silent);
            next.set_read_timeout(Some(PATIENCE)).unwrap();
            next.read_exact(&mut [0; 20]).unwrap();
        }
    }
}
