//! Targets for input other than event streams: responses of runtimes, system files about processes, text typed by users.

use std::cell::RefCell;
use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

use dn_top::analysis::{LiveEventFilter, Throughput};
use dn_top::clr::{
    Trigger, format_provider, parse_event_ids, parse_level, parse_provider, parse_runtime_keywords, parse_tracepoints, select,
};
use dn_top::ipc::{Advertise, Command, CommandCode, LegacyRequest, Message, Reply, ReplyError, RuntimeVersion, Variable};
use dn_top::ipc::{decode_environment, encode_environment};
use dn_top::model::{SafeText, escape_json, format_size, newest_lines, parse_keep, parse_size, sanitize, shown_command_line};
use dn_top::net::discovery::{Scanner, Sources};
use dn_top::net::endpoint::SocketName;
use dn_top::nettrace::{Decoder, FlightRecorder, Limits, RetentionLimits, SegmentStore, StoreError};
use dn_top::perfetto::consumer::ServiceState;
use dn_top::perfetto::ipc::{Body, Frame, FrameReader};
use dn_top::perfetto::producer::{self, Initialized};
use dn_top::perfetto::recording::{Packets, disabled, enable, flush, losses};

/// The bytes are messages of a runtime or a client: a message, an advertisement, an environment block, a message of the legacy protocol.
/// Everything decoded is encoded again, and must decode to the same.
pub(crate) fn protocol(bytes: &[u8]) {
    if let Ok(Some((message, used))) = Message::decode(bytes) {
        assert!(used <= bytes.len());
        for code in CommandCode::ALL {
            match Reply::decode(*code, &message) {
                Ok(reply) => {
                    // Invalid UTF-16 is replaced, and may then be too long.
                    let Ok(again) = reply.encode(*code) else { continue };
                    let (message, _) = Message::decode(&again).expect("a message").expect("all of it");
                    assert_eq!(Reply::decode(*code, &message), Ok(reply), "{code}");
                }
                Err(ReplyError::Failure(failure)) => is_safe(&sanitize(&failure.message.unwrap_or_default())),
                Err(error) => is_safe(&error.to_string()),
            }
        }
        if let Ok(command) = Command::decode(&message)
            && let Ok(again) = command.encode()
        {
            let (message, _) = Message::decode(&again).expect("a message").expect("all of it");
            assert_eq!(Command::decode(&message), Ok(command));
        }
    }
    if let Ok(Some(advertise)) = Advertise::decode(bytes) {
        assert_eq!(Advertise::decode(&advertise.encode()), Ok(Some(advertise)));
    }
    if let Some(request) = LegacyRequest::decode(bytes) {
        assert_eq!(LegacyRequest::decode(&request.encode(7)), Some(request));
    }
    if let Ok(variables) = decode_environment(bytes, bytes.len()) {
        let again = encode_environment(&variables);
        assert_eq!(decode_environment(&again, again.len()).map(|read| read.len()), Ok(variables.len()));
        for Variable { name, value } in variables {
            is_safe(&sanitize(&name));
            is_safe(&sanitize(&value));
        }
    }
}

/// The bytes are sent by a Perfetto tracing service, as frames and as their contents. Every decoded frame is encoded again, and must decode
/// to the same.
pub(crate) fn service(bytes: &[u8]) {
    let mut frames = FrameReader::default();
    for piece in bytes.chunks(1 + bytes.len() / 3) {
        frames.push(piece);
        while let Ok(Some(frame)) = frames.frame() {
            if let Body::InvokeReply { reply, .. } = &frame.body {
                service_message(reply);
            }
            if frame.body != Body::Unknown
                && let Ok(again) = frame.encode()
            {
                let mut frames = FrameReader::default();
                frames.push(&again);
                assert_eq!(frames.frame(), Ok(Some(frame)));
            }
        }
    }
    service_message(bytes);
}

fn service_message(bytes: &[u8]) {
    let _ = (producer::Command::decode(bytes), Initialized::decode(bytes), disabled(bytes), losses(bytes));
    let _ = ServiceState::default().add(bytes);
    let (mut packets, mut trace) = (Packets::default(), Vec::new());
    let _ = packets.add(bytes, &mut trace);
    assert!(trace.len() <= 2 * bytes.len(), "more is written than came");
}

/// Panics unless the text is safe to print on a terminal.
#[track_caller]
fn is_safe(text: &str) {
    assert!(!text.chars().any(char::is_control), "{text:?}");
}

/// System files of a .NET process, some of which the bytes replace. Of `stat`, only the name is replaced, as the kernel writes the rest.
const FILES: [(&str, &str); 10] = [
    ("proc/77/stat", "dotnet"),
    ("proc/77/status", "Name:\tdotnet\nUid:\t0\t0\t0\t0\nNSpid:\t77\n"),
    ("proc/77/environ", "PATH=/bin\0TMPDIR=/tmp\0"),
    ("proc/77/cmdline", "dotnet\0/srv/shop.dll\0--urls\0*"),
    ("proc/77/cgroup", "0::/system.slice/docker-0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef.scope\n"),
    (
        "proc/77/maps",
        "7f0000000000-7f0000001000 r-xp 00000000 00:01 7 /usr/share/dotnet/shared/Microsoft.NETCore.App/9.0.7/libcoreclr.so\n",
    ),
    ("proc/77/task/77/comm", "dotnet\n"),
    ("proc/77/task/78/comm", ".NET EventPipe\n"),
    ("passwd", "alice:x:0:1::/:\n"),
    ("proc/uptime", "10000.00 1.0\n"),
];

/// Contents of `stat` around the name.
const STAT: [&str; 2] =
    ["77 (", ") S 1 1 1 0 -1 4194560 1 2 3 4 50 0 0 0 20 0 4 0 256818 1000000 2500 18446744073709551615 1 1 0 0 0 0 0 4096 0 0 0 0 17 1"];

thread_local! {
    /// A folder that imitates a machine, and the contents of its files.
    static MACHINE: RefCell<Option<(tempfile::TempDir, [Vec<u8>; FILES.len()])>> = const { RefCell::new(None) };
}

/// The bytes are system files: for each its number, length and content. After the last one follows the name of a socket.
pub(crate) fn machine(bytes: &[u8]) {
    MACHINE.with_borrow_mut(|machine| {
        let (folder, held) = machine.get_or_insert_with(|| {
            let folder = tempfile::tempdir().expect("a folder");
            ["proc/77/task/77", "proc/77/task/78", "tmp"]
                .iter()
                .for_each(|name| fs::create_dir_all(folder.path().join(name)).expect("a folder"));
            (folder, Default::default())
        });
        let mut wanted = FILES.map(|(_, content)| content.as_bytes().to_vec());
        let mut rest = bytes;
        while let [file, low, high, more @ ..] = rest
            && usize::from(*file) < FILES.len()
        {
            let (content, more) = more.split_at(usize::from(u16::from_le_bytes([*low, *high])).min(more.len()));
            wanted[usize::from(*file)] = content.to_vec();
            rest = more;
        }
        wanted[0] = [STAT[0].as_bytes(), &wanted[0], STAT[1].as_bytes()].concat();
        for (((name, _), held), wanted) in FILES.iter().zip(held).zip(wanted) {
            if *held != wanted {
                fs::write(folder.path().join(name), &wanted).expect("a file");
                *held = wanted;
            }
        }
        scan_processes(folder.path(), rest);
    });
}

fn scan_processes(folder: &Path, socket: &[u8]) {
    if let Some(name) = SocketName::parse(socket) {
        assert_eq!(SocketName::parse(name.to_string().as_bytes()), Some(name));
    }
    let Ok(mut scanner) = Scanner::new(Sources::below(folder)) else { return };
    let now = Instant::now();
    for scan in 0..3 {
        let Ok(rows) = scanner.scan(now + Duration::from_secs(scan)) else { return };
        for row in rows {
            let words = [Some(row.name), Some(row.command_line), row.user, row.container, row.contact.reason().map(SafeText::from)];
            words.into_iter().flatten().for_each(|text: SafeText| is_safe(&text));
        }
    }
}

/// The bytes are text: an argument, a filter, the output of a program. Everything parsed is formatted again, and must parse to the same.
pub(crate) fn words(bytes: &[u8]) {
    is_safe(&SafeText::from_bytes(bytes));
    newest_lines(bytes).iter().for_each(|line| is_safe(line));
    let text = String::from_utf8_lossy(bytes);
    is_safe(&sanitize(&text));
    is_safe(&shown_command_line(&text));
    let document = serde_json::json!(text).to_string();
    let escaped = escape_json(&document);
    is_safe(&escaped);
    assert_eq!(serde_json::from_str::<serde_json::Value>(&escaped).expect("JSON"), text.as_ref());
    if let Ok(provider) = parse_provider(&text) {
        assert_eq!(parse_provider(&format_provider(&provider)), Ok(provider), "{text:?}");
    }
    let _ =
        (parse_runtime_keywords(&text), parse_event_ids(&text), parse_level(&text), parse_keep(&text), select(&[&text], &[&text], None));
    if let Ok(size) = parse_size(&text) {
        assert_eq!(parse_size(&format_size(size)), Ok(size), "{text:?}");
    }
    if let Ok(trigger) = Trigger::parse(&text) {
        assert_eq!(Trigger::parse(&trigger.to_string()).as_ref(), Ok(&trigger), "{text:?}");
        trigger.matches_event("Microsoft-Windows-DotNETRuntime", 80, "");
    }
    let _ = parse_tracepoints(&text.split(' ').map(str::to_owned).collect::<Vec<_>>());
    LiveEventFilter::new(&text).passes("Microsoft-Windows-DotNETRuntime", &text);
    let version = RuntimeVersion::new(&text);
    assert_eq!(RuntimeVersion::new(version.as_str()), version);
    let _ = (version.major(), version.minor());
}

/// The bytes are the limits of a flight recording, in size (2) and time (1), followed by a script. The recording of that stream must be a
/// complete stream of its newest events, and of all events if nothing was dropped.
pub(crate) fn flight(bytes: &[u8]) {
    let [low, high, span, script @ ..] = bytes else { return };
    let keep = RetentionLimits {
        bytes: 64 * (1 + u64::from(u16::from_le_bytes([*low, *high]))),
        span: Some(*span).filter(|span| *span != 0).map(|span| Duration::from_millis(span.into())),
    };
    let stream = super::script(script);
    let mut sink = (Throughput::default(), FlightRecorder::new(keep, Box::new(MemoryStore::default())));
    let mut decoder = Decoder::new(Limits::default());
    decoder.feed(&stream, &mut sink).expect("a readable stream");
    assert!(decoder.finish(&mut sink).is_complete());
    let (all, recent) = sink;
    let pieces: Vec<u8> = recent.pieces(true).flatten().collect();
    let (mut decoder, mut again) = (Decoder::new(Limits::default()), Throughput::default());
    decoder.feed(&pieces, &mut again).expect("a readable stream");
    assert!(decoder.finish(&mut again).is_complete());
    let (all, again) = (all.snapshot(), again.snapshot());
    let is_all = keep.span.is_none() && keep.bytes > 100 * stream.len() as u64;
    assert!(if is_all { again.events == all.events } else { again.events <= all.events }, "{again:?} of {all:?}");
}

/// Keeps segments in memory.
#[derive(Debug, Default)]
struct MemoryStore(std::collections::VecDeque<Vec<u8>>);

impl SegmentStore for MemoryStore {
    fn put(&mut self, segment: &[u8]) -> Result<(), StoreError> {
        self.0.push_back(segment.to_vec());
        Ok(())
    }
    fn drop_oldest(&mut self) {
        self.0.pop_front();
    }
    fn take_oldest(&mut self) -> Result<Vec<u8>, String> {
        self.0.pop_front().ok_or_else(|| "there is none".to_owned())
    }
    fn release(&mut self) {}
}

/// Returns the seeds of the targets in this module.
pub(crate) fn seeds(target: &str) -> Vec<Vec<u8>> {
    let files = |files: &[(u8, &[u8])], socket: &str| {
        let file = |(number, content): &(u8, &[u8])| [&[*number][..], &(content.len() as u16).to_le_bytes(), content].concat();
        [files.iter().flat_map(file).collect(), socket.as_bytes().to_vec()].concat()
    };
    match target {
        "protocol" => {
            let string = |text: &str| {
                let units: Vec<u16> = text.encode_utf16().chain([0]).collect();
                [(units.len() as u32).to_le_bytes().to_vec(), units.into_iter().flat_map(u16::to_le_bytes).collect()].concat()
            };
            let message = |set, id, payload: &[u8]| Message { set, id, payload }.encode().expect("short enough");
            let info = [&77_u64.to_le_bytes()[..], &[1; 16], &string("dotnet shop.dll"), &string("Linux"), &string("x64")].concat();
            let info = [&info[..], &string("shop"), &string("9.0.7"), &string("linux-x64")].concat();
            let requests = CommandCode::ALL.iter().map(|code| message(code.set(), code.id(), &[0; 40]));
            let variables = [("PATH", "/bin"), ("=C:", "x")].map(|(name, value)| Variable { name: name.into(), value: value.into() });
            let advertise = Advertise { cookie: dn_top::ipc::Cookie([7; 16]), pid: 77 };
            requests
                .chain([
                    message(0xff, 0, &[0; 4]),
                    message(0xff, 0, &info),
                    message(0xff, 0, &[&[1, 0, 0, 0][..], &info].concat()),
                    message(0xff, 0xff, &[&[0x86, 0x13, 0x13, 0x80][..], &string("it failed")].concat()),
                    encode_environment(&variables),
                    advertise.encode(),
                ])
                .collect()
        }
        "service" => {
            let frame = |request, body| Frame { request, body }.encode().expect("short enough");
            let reply = |reply| Body::InvokeReply { success: true, has_more: false, reply };
            let methods = vec![(1, "EnableTracing".to_owned()), (2, "ReadBuffers".to_owned())];
            // ReadBuffersResponse: a slice of two bytes that ends its packet.
            let slice = [0x12, 6, 0x0a, 2, 8, 1, 0x10, 1];
            // GetTraceStatsResponse: counts of overwritten bytes and of discarded chunks.
            let stats = [0x0a, 7, 0x0a, 5, 0x68, 9, 0x90, 1, 3];
            // GetAsyncCommandResponse: a request to stop an instance.
            let stop = [0x12, 2, 8, 7];
            vec![
                frame(1, Body::Bind("ConsumerPort".to_owned())),
                frame(1, Body::BindReply { success: true, service: 1, methods }),
                [frame(2, reply(slice.to_vec())), frame(3, reply(stats.to_vec()))].concat(),
                frame(4, reply(stop.to_vec())),
                frame(5, Body::RequestError("no such port".to_owned())),
                frame(6, Body::Invoke { service: 1, method: 1, arguments: enable("dotnet"), drop_reply: false }),
                flush(1000),
            ]
        }
        "machine" => vec![
            files(&[], "dotnet-diagnostic-77-256818-socket"),
            files(&[(0, b"a) b) Z 1 1")], ""),
            files(&[(1, b"Uid:\t1\t2\nNSpid:\t77\t5\n"), (2, b"DOTNET_x=\0\xff")], ""),
            files(&[(4, b"12:pids:/kubepods/besteffort/pod1/0123456789abcdef\n"), (5, b"/a/libcoreclr.so (deleted)\n")], ""),
            files(&[(8, b"alice:x:\n:::"), (9, b"1e400 x")], "dotnet-diagnostic-0-99999999999999999999-socket"),
        ],
        "words" => [
            "Microsoft-Windows-DotNETRuntime:0x1,gc:Verbose:EventCounterIntervalSec=1;a=\"b;c\"",
            "System.Runtime::5",
            "gc+exception",
            "Microsoft-Windows-DotNETRuntime/ExceptionThrown:Timeout",
            "all gc=1,2 other=3",
            "64MB",
            "30s",
            "9.0.7-preview.1+abc",
            "a\u{1b}[31mred\u{9b}2J\r\ttab\u{202e}\u{0}",
        ]
        .map(|text| text.as_bytes().to_vec())
        .into(),
        _ => Vec::new(),
    }
}
