//! A process that uses the diagnostic protocol to do harm. It is this test binary, started again ([`Hostile::start`]), so that it has its
//! own PID, socket and memory. It serves a socket, and connects to the port of `dn-top run`.

use std::fs;
use std::io::{self, Read, Write};
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::Duration;

use dn_top::ipc::{Advertise, CommandCode, Cookie, ProcessInfo, Reply, RuntimeVersion, SessionId};
use dn_top::nettrace::{Encoder, Field, FieldType, Metadata, NewEvent, TraceHeader};
use dn_top::wire::Put as _;

use crate::support::{TIMEOUT, folder, poll};

/// Environment variable with the fault of the program.
pub(crate) const FAULT: &str = "HOSTILE";

/// Fault of a hostile process. All but the first four answer ProcessInfo properly: the fault is in the response to everything else, or in
/// the stream of every session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fault {
    /// Answers nothing, not even ProcessInfo.
    AllSilent,
    /// Answers everything with garbage.
    AllGarbage,
    /// Answers everything with a byte a second.
    AllDrip,
    /// Closes every connection.
    AllClose,
    /// Answers nothing.
    Silent,
    /// Sends half a header and nothing more.
    HalfHeader,
    /// Closes in the middle of the response.
    HalfReply,
    /// Closes without a response.
    Closes,
    /// Sends an endless stream of garbage.
    Garbage,
    /// Sends the header of another protocol.
    WrongMagic,
    /// Sends a message of the maximum length, without meaningful content.
    LongReply,
    /// Sends a byte a second.
    Drip,
    /// Announces 16 MB of environment, with 2.8 million variables.
    Environment,
    /// Streams endless data that is not nettrace, and does not answer the stop request.
    NoNettrace,
    /// Streams endless blocks of 15 MB of zeros, and does not answer the stop request.
    LongBlock,
    /// Streams endless events, and does not answer the stop request: as if its socket were occupied.
    Endless,
    /// Answers the stop request, but continues to stream.
    ContinuesAfterStop,
    /// Closes the stream after some events.
    Cut,
    /// Streams an event a second, and does not answer the stop request.
    Trickle,
    /// Streams endless events with jumping timestamps.
    Timestamps,
    /// Streams endless events, each from another thread.
    Threads,
    /// Streams endless heap objects, each of another type.
    Heap,
    /// Streams endless type names.
    Types,
    /// Streams endless activities, whose provider, events and fields have long names.
    LongNames,
}

impl Fault {
    const ALL: [Self; 24] = [
        Self::AllSilent,
        Self::AllGarbage,
        Self::AllDrip,
        Self::AllClose,
        Self::Silent,
        Self::HalfHeader,
        Self::HalfReply,
        Self::Closes,
        Self::Garbage,
        Self::WrongMagic,
        Self::LongReply,
        Self::Drip,
        Self::Environment,
        Self::NoNettrace,
        Self::LongBlock,
        Self::Endless,
        Self::ContinuesAfterStop,
        Self::Cut,
        Self::Trickle,
        Self::Timestamps,
        Self::Threads,
        Self::Heap,
        Self::Types,
        Self::LongNames,
    ];

    /// Whether the fault is in the stream, and not in responses.
    fn streams(self) -> bool {
        !matches!(
            self,
            Self::Silent
                | Self::HalfHeader
                | Self::HalfReply
                | Self::Closes
                | Self::Garbage
                | Self::WrongMagic
                | Self::LongReply
                | Self::Drip
        )
    }
}

/// A running hostile process. Killed on drop.
pub(crate) struct Hostile {
    child: Child,
    folder: tempfile::TempDir,
}

impl Hostile {
    pub(crate) fn start(fault: Fault) -> Self {
        let folder = folder();
        let child = Self::command()
            .env(FAULT, format!("{fault:?}"))
            .env("TMPDIR", folder.path())
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .spawn()
            .unwrap();
        let hostile = Self { child, folder };
        poll(TIMEOUT, || hostile.has("listens").then_some(())).unwrap();
        hostile
    }

    /// Returns the command of the program, as `dn-top run` may start it.
    pub(crate) fn command() -> Command {
        let mut command = Command::new(std::env::current_exe().unwrap());
        command.args(["program", "--exact", "--ignored", "--nocapture"]);
        command
    }

    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Waits until it has received a stop request.
    pub(crate) fn wait_for_stop(&self) {
        poll(TIMEOUT, || self.has("stop").then_some(())).expect("no stop was asked for");
    }

    fn has(&self, mark: &str) -> bool {
        self.folder.path().join(mark).exists()
    }
}

impl Drop for Hostile {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Runs the hostile program.
pub(crate) fn run(fault: &str) {
    let fault = Fault::ALL.into_iter().find(|known| format!("{known:?}") == fault).unwrap();
    let place = PathBuf::from(std::env::var_os("TMPDIR").unwrap());
    if let Some(ports) = std::env::var_os("DOTNET_DiagnosticPorts") {
        let port = ports.to_str().unwrap().split(',').next().unwrap().to_owned();
        let advertise = Advertise { cookie: Cookie([7; 16]), pid: std::process::id().into() }.encode();
        // Until the port is closed.
        while let Ok(mut stream) = UnixStream::connect(&port) {
            if stream.write_all(&advertise).is_ok() {
                let (request, stream) = (read(&mut stream), stream);
                thread::spawn(move || request.map(|request| answer(stream, &request, fault)));
            }
        }
        return;
    }
    let stat = fs::read_to_string("/proc/self/stat").unwrap();
    let started = stat.rsplit(')').next().unwrap().split_whitespace().nth(19).unwrap().to_owned();
    let socket = place.join(format!("dotnet-diagnostic-{}-{started}-socket", std::process::id()));
    let listener = UnixListener::bind(&socket).unwrap();
    fs::set_permissions(&socket, fs::Permissions::from_mode(0o600)).unwrap();
    fs::write(place.join("listens"), "").unwrap();
    for stream in listener.incoming() {
        let (mut stream, place) = (stream.unwrap(), place.clone());
        thread::spawn(move || {
            let request = read(&mut stream)?;
            if code(&request) == Some(CommandCode::StopTracing) {
                fs::write(place.join("stop"), "")?;
            }
            answer(stream, &request, fault)
        });
    }
}

fn read(stream: &mut UnixStream) -> io::Result<Vec<u8>> {
    let mut request = vec![0; 20];
    stream.read_exact(&mut request)?;
    let size = u16::from_le_bytes([request[14], request[15]]);
    request.resize(size.into(), 0);
    stream.read_exact(&mut request[20..])?;
    Ok(request)
}

fn code(request: &[u8]) -> Option<CommandCode> {
    CommandCode::of(request[16], request[17])
}

fn answer(mut stream: UnixStream, request: &[u8], fault: Fault) -> io::Result<()> {
    let code = code(request).unwrap();
    let is_info = matches!(code, CommandCode::ProcessInfo | CommandCode::ProcessInfo2 | CommandCode::ProcessInfo3);
    let info = || ProcessInfo {
        pid: std::process::id().into(),
        cookie: Cookie([7; 16]),
        command_line: "hostile".to_owned(),
        os: "Linux".to_owned(),
        arch: "x64".to_owned(),
        entry_assembly: Some("Hostile".to_owned()),
        clr_version: Some(RuntimeVersion::new("9.0.7")),
        rid: Some("linux-x64".to_owned()),
    };
    match fault {
        Fault::AllSilent => park_forever(),
        Fault::AllGarbage => write_forever(stream, &[0x55; 4096]),
        Fault::AllDrip => write_slowly(stream, &reply(code, &Reply::Info(Box::new(info())))),
        Fault::AllClose => Ok(()),
        _ if is_info => stream.write_all(&reply(code, &Reply::Info(Box::new(info())))),
        _ if code == CommandCode::StopTracing && fault.streams() => {
            if matches!(fault, Fault::NoNettrace | Fault::Endless | Fault::Trickle | Fault::LongBlock) {
                park_forever();
            }
            stream.write_all(&reply(code, &Reply::Session(SessionId(1))))
        }
        _ if code.starts_session() && fault.streams() => {
            stream.write_all(&reply(code, &Reply::Session(SessionId(1))))?;
            write_stream(stream, fault)
        }
        Fault::Environment if code == CommandCode::ProcessEnvironment => {
            let mut block = Vec::new();
            block.put_u32(2_796_201);
            block.resize(16 << 20, 0);
            // Each is a string of one code unit, the terminator.
            block[4..].chunks_exact_mut(6).for_each(|entry| entry[0] = 1);
            stream.write_all(&reply(code, &Reply::Environment { bytes: block.len() as u32 }))?;
            stream.write_all(&block)
        }
        _ if fault.streams() => stream.write_all(&reply(code, &Reply::Done)),
        Fault::HalfHeader => {
            stream.write_all(&reply(code, &Reply::Done)[..10])?;
            park_forever()
        }
        Fault::HalfReply => stream.write_all(&message(b"DOTNET_IPC_V1\0", 200)[..90]),
        Fault::Closes => Ok(()),
        Fault::Garbage => write_forever(stream, &[0x55; 4096]),
        Fault::WrongMagic => stream.write_all(&message(b"DOTNET_IPC_V9\0", 200)),
        Fault::LongReply => stream.write_all(&message(b"DOTNET_IPC_V1\0", u16::MAX)),
        Fault::Drip => write_slowly(stream, &reply(code, &Reply::Done)),
        _ => park_forever(),
    }
}

fn reply(code: CommandCode, reply: &Reply) -> Vec<u8> {
    reply.encode(code).unwrap()
}

/// Returns a diagnostic IPC message whose header claims this length.
fn message(magic: &[u8; 14], length: u16) -> Vec<u8> {
    let mut bytes = [&magic[..], &length.to_le_bytes(), &[0xff, 0, 0, 0]].concat();
    bytes.resize(length.into(), 0x41);
    bytes
}

fn park_forever() -> ! {
    loop {
        thread::park();
    }
}

fn write_forever(mut stream: UnixStream, bytes: &[u8]) -> io::Result<()> {
    loop {
        stream.write_all(bytes)?;
    }
}

fn write_slowly(mut stream: UnixStream, bytes: &[u8]) -> io::Result<()> {
    for byte in bytes {
        stream.write_all(&[*byte])?;
        thread::sleep(Duration::from_secs(1));
    }
    park_forever()
}

/// Writes the stream of a session.
fn write_stream(mut stream: UnixStream, fault: Fault) -> io::Result<()> {
    if fault == Fault::NoNettrace {
        return write_forever(stream, &[0x55; 65_536]);
    }
    let mut encoder = Encoder::new(TraceHeader { process_id: std::process::id(), pointer_size: 8, ..TraceHeader::default() });
    let kind = |encoder: &mut Encoder, provider: &str, event_id: u32, name: &str| {
        encoder.metadata(&Metadata { provider: provider.to_owned(), event_id, name: name.to_owned(), ..Metadata::default() })
    };
    const RUNTIME: &str = "Microsoft-Windows-DotNETRuntime";
    let ordinary = kind(&mut encoder, "Hostile", 1, "Event");
    let sample = kind(&mut encoder, "Microsoft-DotNETCore-SampleProfiler", 0, "");
    let [types, nodes] = [15, 18].map(|id| kind(&mut encoder, RUNTIME, id, ""));
    let long = "N".repeat(if fault == Fault::LongNames { 400_000 } else { 0 });
    let activity = [(1, "Start"), (2, "Stop")].map(|(event_id, end)| {
        let (provider, name) = (long.clone(), format!("{long}{end}"));
        let fields = (0..16).map(|_| Field { name: "\x1b".repeat(1000), kind: FieldType::Byte }).collect();
        encoder.metadata(&Metadata { provider, event_id, name, fields, ..Metadata::default() })
    });
    // As in a complete heap walk: it begins with a collection, but does not end.
    let start = kind(&mut encoder, RUNTIME, 1, "");
    let mut collection = Vec::new();
    [1, 2, 0, 0].into_iter().for_each(|word| collection.put_u32(word));
    collection.put_u16(0);
    encoder.event(&NewEvent { metadata: start, payload: &collection, ..NewEvent::default() });
    encoder.flush();
    let beginning = encoder.take();
    stream.write_all(&beginning)?;
    if fault == Fault::LongBlock {
        return long_blocks(stream, beginning.len());
    }
    for round in 0_u64.. {
        let events = if fault == Fault::Trickle { 1 } else { 1000 };
        for number in round * events..(round + 1) * events {
            // A permutation in no particular order.
            let random = number.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ number >> 7;
            let mut payload = Vec::new();
            let mut event = NewEvent { metadata: ordinary, timestamp: number as i64, thread: 1, capture_thread: 1, ..NewEvent::default() };
            match fault {
                Fault::Timestamps => {
                    event.timestamp = (random >> 8) as i64;
                    payload.put(&[7; 100]);
                }
                Fault::Threads => {
                    (event.metadata, event.thread, event.capture_thread) = (sample, random, random);
                    event.stack = encoder.stack(&[random, random ^ 1]);
                    payload.put_u32(2);
                    payload.put(&[7; 100]);
                }
                Fault::LongNames => {
                    // Ten milliseconds later each: far fewer than there are at most in a second.
                    (event.metadata, event.timestamp) = (activity[number as usize % 2], number as i64 * 10_000_000);
                    event.activity_id[..8].copy_from_slice(&(number / 2 + 1).to_le_bytes());
                    payload.put(&[7; 16]);
                }
                Fault::Heap => {
                    event.metadata = nodes;
                    payload.put_u32(number as u32);
                    payload.put_u32(50);
                    payload.put_u16(0);
                    for row in number * 50..(number + 1) * 50 {
                        [0x1000 + 24 * row, 24, row, 0].into_iter().for_each(|word| payload.put_u64(word));
                    }
                }
                Fault::Types => {
                    event.metadata = types;
                    payload.put_u32(1);
                    payload.put_u16(0);
                    payload.put_u64(number);
                    payload.put_u64(9);
                    payload.put(&[0; 9]);
                    payload.put_utf16z(&"N".repeat(1000));
                    payload.put_u32(0);
                }
                _ => payload.put(&[7; 100]),
            }
            event.payload = &payload;
            encoder.event(&event);
        }
        encoder.flush();
        stream.write_all(&encoder.take())?;
        match fault {
            Fault::Cut => return Ok(()),
            Fault::Trickle => thread::sleep(Duration::from_secs(1)),
            // Some 10 MB a second; the others send as fast as possible.
            Fault::ContinuesAfterStop | Fault::Timestamps => thread::sleep(Duration::from_millis(1)),
            _ => {}
        }
    }
    Ok(())
}

/// Streams blocks of 15 MB of zeros, after `at` bytes.
fn long_blocks(mut stream: UnixStream, mut at: usize) -> io::Result<()> {
    let zeros = vec![0; 15 << 20];
    loop {
        let mut block = b"\x05\x05\x01\x02\0\0\0\x02\0\0\0\x0a\0\0\0EventBlock\x06".to_vec();
        block.put_u32(zeros.len() as u32);
        // The content is aligned to a multiple of four.
        block.resize(block.len() + (at + block.len()).wrapping_neg() % 4, 0);
        at += block.len() + zeros.len() + 1;
        stream.write_all(&block)?;
        stream.write_all(&zeros)?;
        stream.write_all(b"\x06")?;
    }
}
