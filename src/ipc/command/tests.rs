use proptest::prelude::*;

use super::*;
use crate::ipc::{
    DumpFlags, EventFilter, FilteredProvider, HEADER_BYTES, Level, Provider, TracepointProvider, TracepointSet, Tracepoints, UserEvents,
};
use crate::wire::Put;

fn decode(bytes: &[u8]) -> Result<Command, Hresult> {
    let (message, used) = Message::decode(bytes).unwrap().unwrap();
    assert_eq!(used, bytes.len());
    Command::decode(&message)
}

fn utf16z(text: &str) -> Vec<u8> {
    let mut out = Vec::new();
    out.put_utf16z(text);
    out
}

fn path(text: &str) -> TargetPath {
    TargetPath::new(text).unwrap()
}

/// The specification's example of `CollectTracing`: 80 bytes, 250 MB, one provider.
#[test]
fn specification_example_round_trips() {
    let provider = Provider::new("MyEventSource", 100, Level::Error).unwrap();
    let command = Command::CollectTracing { buffer: BufferMb::new(250).unwrap(), providers: provider.into() };
    let expected = [
        b"DOTNET_IPC_V1\0\x50\0\x02\x02\0\0".as_slice(),
        b"\xfa\0\0\0\x01\0\0\0\x01\0\0\0\x64\0\0\0\0\0\0\0\x02\0\0\0\x0e\0\0\0",
        &utf16z("MyEventSource"),
        b"\0\0\0\0",
    ]
    .concat();
    assert_eq!(expected.len(), 80);
    assert_eq!(command.encode().unwrap(), expected);
    assert_eq!(decode(&expected), Ok(command));
}

/// Every command byte for byte, in the field order that runtimes read.
#[test]
fn command_payloads_match_byte_for_byte() {
    let provider = || Provider::new("P", 0x1122_3344_5566_7788, Level::Verbose).unwrap().with_arguments("a=b").unwrap();
    let plain = b"\x88\x77\x66\x55\x44\x33\x22\x11\x05\0\0\0\x02\0\0\0P\0\0\0\x04\0\0\0a\0=\0b\0\0\0".as_slice();
    let buffer = BufferMb::new(256).unwrap();
    let stream = || StreamingSession {
        buffer,
        rundown_keyword: 0x38,
        stacks: false,
        providers: FilteredProvider { provider: provider(), filter: EventFilter::only(vec![7]) }.into(),
    };
    let streamed = [b"\0\x01\0\0\x01\0\0\0\x38\0\0\0\0\0\0\0\0\x01\0\0\0", plain, b"\x01\x01\0\0\0\x07\0\0\0"].concat();
    let user_events = UserEvents {
        rundown_keyword: 0x38,
        providers: TracepointProvider {
            provider: provider(),
            filter: EventFilter::ALL,
            tracepoints: Tracepoints::new(Some("T".to_owned()), vec![]).unwrap(),
        }
        .into(),
    };
    let kernel = [b"\x01\0\0\0\x38\0\0\0\0\0\0\0\x01\0\0\0", plain, b"\0\0\0\0\0\x02\0\0\0T\0\0\0\0\0\0\0"].concat();
    let guid = Guid([1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16]);
    let session = Destination::Stream((stream(), BufferMode::Block));
    let flags = DumpFlags { log: true, crash_report: true, ..DumpFlags::default() };
    let name = EnvironmentName::new("A").unwrap();

    let table: Vec<(u16, Command, Vec<u8>)> = vec![
        (
            0x0101,
            Command::GenerateCoreDump { path: path("/d"), kind: DumpKind::Mini, log: DumpLog(true) },
            b"\x03\0\0\0/\0d\0\0\0\x01\0\0\0\x01\0\0\0".to_vec(),
        ),
        (
            0x0102,
            Command::GenerateCoreDump2 { path: path("/d"), kind: DumpKind::Full, flags },
            b"\x03\0\0\0/\0d\0\0\0\x04\0\0\0\x05\0\0\0".to_vec(),
        ),
        (
            0x0103,
            Command::GenerateCoreDump3 { path: path("/d"), kind: DumpKind::Triage, flags: DumpFlags::default() },
            b"\x03\0\0\0/\0d\0\0\0\x03\0\0\0\0\0\0\0".to_vec(),
        ),
        (0x0201, Command::StopTracing { session: SessionId(0x7f7f_b000_1160) }, b"\x60\x11\0\xb0\x7f\x7f\0\0".to_vec()),
        (
            0x0203,
            Command::CollectTracing2 { buffer, rundown: true, providers: provider().into() },
            [b"\0\x01\0\0\x01\0\0\0\x01\x01\0\0\0", plain].concat(),
        ),
        (
            0x0204,
            Command::CollectTracing3 { buffer, rundown: false, stacks: true, providers: provider().into() },
            [b"\0\x01\0\0\x01\0\0\0\0\x01\x01\0\0\0", plain].concat(),
        ),
        (
            0x0205,
            Command::CollectTracing4 { buffer, rundown_keyword: 0x8002_0139, stacks: true, providers: provider().into() },
            [b"\0\x01\0\0\x01\0\0\0\x39\x01\x02\x80\0\0\0\0\x01\x01\0\0\0", plain].concat(),
        ),
        (0x0206, Command::CollectTracing5 { session: Destination::Stream(stream()) }, [b"\0\0\0\0", &streamed[..]].concat()),
        (0x0206, Command::CollectTracing5 { session: Destination::UserEvents(user_events.clone()) }, kernel.clone()),
        (0x0207, Command::CollectTracing6 { session }, [b"\0\0\0\0", &streamed[..], b"\x01\0\0\0"].concat()),
        (0x0207, Command::CollectTracing6 { session: Destination::UserEvents(user_events) }, kernel),
        (
            0x0301,
            Command::AttachProfiler { timeout_ms: 5000, profiler: guid, path: path("p"), data: ClientData(vec![0xaa, 0xbb]) },
            [b"\x88\x13\0\0", &guid.0[..], b"\x02\0\0\0p\0\0\0\x02\0\0\0\xaa\xbb"].concat(),
        ),
        (0x0302, Command::StartupProfiler { profiler: guid, path: path("p") }, [&guid.0[..], b"\x02\0\0\0p\0\0\0"].concat()),
        (0x0400, Command::ProcessInfo, vec![]),
        (0x0401, Command::ResumeRuntime, vec![]),
        (0x0402, Command::ProcessEnvironment, vec![]),
        (
            0x0403,
            Command::SetEnvironmentVariable { name: name.clone(), value: Some(EnvironmentValue::new("").unwrap()) },
            b"\x02\0\0\0A\0\0\0\x01\0\0\0\0\0".to_vec(),
        ),
        (0x0403, Command::SetEnvironmentVariable { name, value: None }, b"\x02\0\0\0A\0\0\0\0\0\0\0".to_vec()),
        (0x0404, Command::ProcessInfo2, vec![]),
        (0x0405, Command::EnablePerfMap { kind: PerfMapKind::PerfMap }, vec![3, 0, 0, 0]),
        (0x0406, Command::DisablePerfMap, vec![]),
        (0x0407, Command::ApplyStartupHook { path: path("h") }, b"\x02\0\0\0h\0\0\0".to_vec()),
        (0x0408, Command::ProcessInfo3, vec![]),
    ];
    for (code, command, payload) in table {
        let bytes = command.encode().unwrap();
        assert_eq!((bytes[16], bytes[17]), ((code >> 8) as u8, code as u8), "{}", command.code().name());
        assert_eq!(&bytes[HEADER_BYTES..], payload, "{}", command.code().name());
        assert_eq!(decode(&bytes).as_ref(), Ok(&command));
        // Runtimes crash on an empty payload where one is required, and on a payload where none is allowed.
        let takes_none = matches!(code, 0x0400 | 0x0401 | 0x0402 | 0x0404 | 0x0406 | 0x0408);
        assert_eq!(payload.is_empty(), takes_none, "{}", command.code().name());
        // Every truncation is detected.
        for end in 0..payload.len() {
            let cut = Message { set: bytes[16], id: bytes[17], payload: &payload[..end] };
            let whole = matches!(command, Command::AttachProfiler { .. }) && end + 2 >= payload.len();
            assert!(whole || Command::decode(&cut).is_err(), "{} cut at {end}", command.code().name());
        }
    }
}

#[test]
fn command_table_is_complete() {
    let codes: Vec<String> = CommandCode::ALL.iter().map(CommandCode::to_string).collect();
    let expected = "0x0101 0x0102 0x0103 0x0201 0x0202 0x0203 0x0204 0x0205 0x0206 0x0207 0x0301 0x0302 \
                    0x0400 0x0401 0x0402 0x0403 0x0404 0x0405 0x0406 0x0407 0x0408";
    assert_eq!(codes.join(" "), expected);
    for set in 0..=u8::MAX {
        for id in 0..=u8::MAX {
            let known = CommandCode::of(set, id);
            assert_eq!(known.is_some(), codes.contains(&format!("0x{set:02x}{id:02x}")));
            assert!(known.is_none_or(|code| (code.set(), code.id()) == (set, id)));
        }
    }
    for code in CommandCode::ALL {
        assert!(code.needs().ends_with(&format!(" {}{}", code.since(), if code.since() == 3 { ".0" } else { "" })), "{code}");
    }
    let queries: Vec<_> = CommandCode::ALL.iter().filter(|code| !code.changes_target()).collect();
    assert_eq!(
        queries,
        [&CommandCode::ProcessInfo, &CommandCode::ProcessEnvironment, &CommandCode::ProcessInfo2, &CommandCode::ProcessInfo3]
    );
    let not_while_suspended: Vec<_> = CommandCode::ALL.iter().filter(|code| !code.may_be_sent_while_suspended()).collect();
    assert_eq!(not_while_suspended, [&CommandCode::AttachProfiler, &CommandCode::EnablePerfMap]);
}

/// Server replies to requests that this module cannot create.
#[test]
fn malformed_requests_are_rejected() {
    let one_provider = |level: u32, name: &[u8]| [&[1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0], &level.to_le_bytes()[..], name, &[0; 4]].concat();
    let good = one_provider(5, b"\x02\0\0\0P\0\0\0");
    let session = |megabytes: u8, format: u8, providers: &[u8]| [&[megabytes, 0, 0, 0, format, 0, 0, 0], providers].concat();
    let dump = |kind: u8| [b"\x02\0\0\0d\0\0\0".as_slice(), &[kind, 0, 0, 0, 0, 0, 0, 0]].concat();
    let table: Vec<(u8, u8, Vec<u8>, Hresult)> = vec![
        (0x00, 0x00, vec![], Hresult::UNKNOWN_COMMAND),
        (0x02, 0x08, vec![], Hresult::UNKNOWN_COMMAND),
        (0x04, 0x09, vec![], Hresult::UNKNOWN_COMMAND),
        (0xff, 0x00, vec![], Hresult::UNKNOWN_COMMAND),
        (0x02, 0x01, vec![0; 7], Hresult::BAD_ENCODING),
        (0x02, 0x02, session(0, 1, &good), Hresult::BAD_ENCODING),
        (0x02, 0x02, session(1, 0, &good), Hresult::BAD_ENCODING),
        (0x02, 0x02, session(1, 2, &good), Hresult::BAD_ENCODING),
        (0x02, 0x02, session(1, 1, &[0; 4]), Hresult::BAD_ENCODING),
        (0x02, 0x02, session(1, 1, &[[0xe9, 3, 0, 0].as_slice(), &good[4..].repeat(1001)].concat()), Hresult::BAD_ENCODING),
        (0x02, 0x02, session(1, 1, &one_provider(6, b"\x02\0\0\0P\0\0\0")), Hresult::BAD_ENCODING),
        (0x02, 0x02, session(1, 1, &one_provider(5, b"\x02\0\0\0 \0\0\0")), Hresult::BAD_ENCODING),
        (0x02, 0x02, session(1, 1, &one_provider(5, b"\0\0\0\0")), Hresult::BAD_ENCODING),
        (0x02, 0x02, session(1, 1, &one_provider(5, b"\x01\0\0\0P\0")), Hresult::BAD_ENCODING),
        (0x02, 0x06, vec![2, 0, 0, 0], Hresult::BAD_ENCODING),
        (0x01, 0x01, vec![0; 12], Hresult::BAD_ENCODING),
        (0x01, 0x03, dump(9), Hresult::FAIL),
        (0x04, 0x05, vec![0, 0, 0, 0], Hresult::INVALID_ARGUMENT),
        (0x04, 0x05, vec![9, 0, 0, 0], Hresult::INVALID_ARGUMENT),
        (0x04, 0x03, vec![0; 8], Hresult::INVALID_ARGUMENT),
    ];
    for (set, id, payload, answer) in table {
        assert_eq!(Command::decode(&Message { set, id, payload: &payload }), Err(answer), "{set:02x}{id:02x} {payload:?}");
    }
    assert!(Command::decode(&Message { set: 0x02, id: 0x02, payload: &session(1, 1, &good) }).is_ok());
    assert!(Command::decode(&Message { set: 0x01, id: 0x03, payload: &dump(4) }).is_ok());
}

#[test]
fn longest_request_is_encoded() {
    let with = |arguments: usize| {
        let provider = Provider::new("P", 0, Level::Verbose).unwrap().with_arguments("x".repeat(arguments)).unwrap();
        Command::CollectTracing { buffer: BufferMb::DEFAULT, providers: provider.into() }.encode()
    };
    let fixed = with(1).unwrap().len() - 2;
    assert_eq!(with((65_535 - fixed) / 2).unwrap().len(), 65_534);
    assert_eq!(with((65_535 - fixed) / 2 + 1), Err(MessageTooLong { bytes: 65_536 }));
}

fn text() -> impl Strategy<Value = String> {
    any::<String>().prop_map(|text| text.replace('\0', ""))
}

fn name() -> impl Strategy<Value = String> {
    text().prop_map(|text| format!("n{}", text.replace('=', "")))
}

fn provider() -> impl Strategy<Value = Provider> {
    (name(), any::<u64>(), 0..=5_u32, text()).prop_map(|(name, keywords, level, arguments)| {
        Provider::new(name, keywords, Level::try_from(level).unwrap()).unwrap().with_arguments(arguments).unwrap()
    })
}

fn providers<P: std::fmt::Debug>(one: impl Strategy<Value = P>) -> impl Strategy<Value = Providers<P>> {
    proptest::collection::vec(one, 1..4).prop_map(|all| Providers::new(all).unwrap())
}

fn filter() -> impl Strategy<Value = EventFilter> {
    (any::<bool>(), any::<Vec<u32>>()).prop_map(|(only, ids)| if only { EventFilter::only(ids) } else { EventFilter::except(ids) })
}

fn stream() -> impl Strategy<Value = StreamingSession> {
    let filtered = (provider(), filter()).prop_map(|(provider, filter)| FilteredProvider { provider, filter });
    (1_u32.., any::<u64>(), any::<bool>(), providers(filtered)).prop_map(|(megabytes, rundown_keyword, stacks, providers)| {
        StreamingSession { buffer: BufferMb::new(megabytes).unwrap(), rundown_keyword, stacks, providers }
    })
}

fn user_events() -> impl Strategy<Value = UserEvents> {
    let name = || "[A-Za-z_][A-Za-z0-9_]{0,30}";
    let tracepoints = (name(), proptest::option::of(name()))
        .prop_map(|(set, default)| Tracepoints::new(default, vec![TracepointSet::new(set, vec![1, 2]).unwrap()]).unwrap());
    let provider = (provider(), filter(), tracepoints).prop_map(|(provider, filter, tracepoints)| TracepointProvider {
        provider,
        filter,
        tracepoints,
    });
    (any::<u64>(), providers(provider)).prop_map(|(rundown_keyword, providers)| UserEvents { rundown_keyword, providers })
}

fn command() -> impl Strategy<Value = Command> {
    let path = || name().prop_map(|text| TargetPath::new(text).unwrap());
    let kind = || (0..4_usize).prop_map(|i| DumpKind::ALL[i]);
    let flags = || {
        any::<[bool; 4]>().prop_map(|[log, verbose, crash_report, crash_report_only]| DumpFlags {
            log,
            verbose,
            crash_report,
            crash_report_only,
        })
    };
    let buffer = || (1_u32..).prop_map(|megabytes| BufferMb::new(megabytes).unwrap());
    let guid = || any::<[u8; 16]>().prop_map(Guid);
    let value = proptest::option::of(text().prop_map(|text| EnvironmentValue::new(text).unwrap()));
    let mode = prop_oneof![Just(BufferMode::Drop), Just(BufferMode::Block)];
    prop_oneof![
        (path(), kind(), any::<bool>()).prop_map(|(path, kind, log)| Command::GenerateCoreDump { path, kind, log: DumpLog(log) }),
        (path(), kind(), flags()).prop_map(|(path, kind, flags)| Command::GenerateCoreDump2 { path, kind, flags }),
        (path(), kind(), flags()).prop_map(|(path, kind, flags)| Command::GenerateCoreDump3 { path, kind, flags }),
        any::<u64>().prop_map(|id| Command::StopTracing { session: SessionId(id) }),
        (buffer(), providers(provider())).prop_map(|(buffer, providers)| Command::CollectTracing { buffer, providers }),
        (buffer(), any::<bool>(), providers(provider())).prop_map(|(buffer, rundown, providers)| Command::CollectTracing2 {
            buffer,
            rundown,
            providers
        }),
        (buffer(), any::<bool>(), any::<bool>(), providers(provider()))
            .prop_map(|(buffer, rundown, stacks, providers)| Command::CollectTracing3 { buffer, rundown, stacks, providers }),
        (buffer(), any::<u64>(), any::<bool>(), providers(provider())).prop_map(|(buffer, rundown_keyword, stacks, providers)| {
            Command::CollectTracing4 { buffer, rundown_keyword, stacks, providers }
        }),
        stream().prop_map(|stream| Command::CollectTracing5 { session: Destination::Stream(stream) }),
        user_events().prop_map(|session| Command::CollectTracing5 { session: Destination::UserEvents(session) }),
        (stream(), mode).prop_map(|session| Command::CollectTracing6 { session: Destination::Stream(session) }),
        user_events().prop_map(|session| Command::CollectTracing6 { session: Destination::UserEvents(session) }),
        (any::<u32>(), guid(), path(), any::<Vec<u8>>()).prop_map(|(timeout_ms, profiler, path, data)| Command::AttachProfiler {
            timeout_ms,
            profiler,
            path,
            data: ClientData(data)
        }),
        (guid(), path()).prop_map(|(profiler, path)| Command::StartupProfiler { profiler, path }),
        (name(), value).prop_map(|(name, value)| Command::SetEnvironmentVariable { name: EnvironmentName::new(name).unwrap(), value }),
        (0..3_usize).prop_map(|i| Command::EnablePerfMap { kind: PerfMapKind::ALL[i] }),
        path().prop_map(|path| Command::ApplyStartupHook { path }),
    ]
}

proptest! {
    #[test]
    fn commands_round_trip(command in command()) {
        let bytes = command.encode().unwrap();
        prop_assert_eq!(decode(&bytes), Ok(command));
    }

    #[test]
    fn any_payload_is_safe(code in 0..CommandCode::ALL.len(), payload: Vec<u8>) {
        let code = CommandCode::ALL[code];
        if let Ok(command) = Command::decode(&Message { set: code.set(), id: code.id(), payload: &payload }) {
            prop_assert_eq!(command.code(), code);
            prop_assert_eq!(decode(&command.encode().unwrap()), Ok(command));
        }
    }

    /// Mutations of a valid request reach deeper than random bytes.
    #[test]
    fn a_damaged_request_is_safe(command in command(), at: proptest::sample::Index, byte: u8) {
        let mut bytes = command.encode().unwrap();
        let at = at.index(bytes.len());
        bytes[at] = byte;
        if let Ok(Some((message, _))) = Message::decode(&bytes) {
            let _ = Command::decode(&message);
        }
    }
}
