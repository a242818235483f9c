use proptest::prelude::*;

use super::*;
use crate::ipc::{Cookie, RuntimeVersion};
use CommandCode as Code;

fn decode(to: CommandCode, bytes: &[u8]) -> Result<Reply, ReplyError> {
    let (message, used) = Message::decode(bytes).unwrap().unwrap();
    assert_eq!(used, bytes.len());
    Reply::decode(to, &message)
}

fn ok(payload: &[u8]) -> Vec<u8> {
    Message { set: 0xff, id: 0, payload }.encode().unwrap()
}

fn failed(payload: &[u8]) -> Vec<u8> {
    Message { set: 0xff, id: 0xff, payload }.encode().unwrap()
}

/// A string: number of UTF-16 code units, units, NUL.
fn string(text: &str) -> Vec<u8> {
    let units = text.bytes().chain([0]).flat_map(|byte| [byte, 0]);
    (text.len() as u32 + 1).to_le_bytes().into_iter().chain(units).collect()
}

fn info() -> ProcessInfo {
    ProcessInfo {
        pid: 4242,
        cookie: Cookie([1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16]),
        command_line: "d w".to_owned(),
        os: "Linux".to_owned(),
        arch: "x64".to_owned(),
        entry_assembly: Some("w".to_owned()),
        clr_version: Some(RuntimeVersion::new("9.0.7")),
        rid: Some("linux-x64".to_owned()),
    }
}

/// The three layouts as sent by runtimes: the cookie is the second field, `ProcessInfo3` starts with a version.
#[test]
fn process_info_byte_for_byte() {
    let first = [
        b"\x92\x10\0\0\0\0\0\0\x01\x02\x03\x04\x05\x06\x07\x08\x09\x0a\x0b\x0c\x0d\x0e\x0f\x10".as_slice(),
        &string("d w"),
        &string("Linux"),
        &string("x64"),
    ]
    .concat();
    let second = [&first[..], &string("w"), &string("9.0.7")].concat();
    let third = [b"\x01\0\0\0", &second[..], &string("linux-x64")].concat();

    let info_v2 = ProcessInfo { rid: None, ..info() };
    let info_v1 = ProcessInfo { entry_assembly: None, clr_version: None, ..info_v2.clone() };
    assert_eq!((info_v1.runtime_version().major(), info_v2.runtime_version().major()), (5, 9));
    for (code, expected, payload) in
        [(Code::ProcessInfo, info_v1, first), (Code::ProcessInfo2, info_v2, second), (Code::ProcessInfo3, info(), third)]
    {
        let reply = Reply::Info(Box::new(expected));
        assert_eq!(reply.encode(code).unwrap(), ok(&payload), "{code}");
        assert_eq!(decode(code, &ok(&payload)).as_ref(), Ok(&reply), "{code}");
        assert_eq!(decode(code, &ok(&[&payload[..], b"appended by a newer runtime"].concat())).as_ref(), Ok(&reply));
        for end in 0..payload.len() {
            assert!(matches!(decode(code, &ok(&payload[..end])), Err(ReplyError::Malformed { .. })), "{code} cut at {end}");
        }
    }
    let attempts: Vec<_> = ProcessInfo::attempts().iter().map(|attempt| attempt.command.code()).collect();
    assert_eq!(attempts, [Code::ProcessInfo3, Code::ProcessInfo2, Code::ProcessInfo]);
}

#[test]
fn success_replies_are_decoded() {
    let table: Vec<(CommandCode, Vec<u8>, Reply)> = vec![
        (Code::ResumeRuntime, ok(&[0; 4]), Reply::Done),
        (Code::GenerateCoreDump3, ok(&[0; 4]), Reply::Done),
        (Code::StopTracing, ok(&[0x60, 0x11, 0, 0xb0, 0x7f, 0x7f, 0, 0]), Reply::Session(SessionId(0x7f7f_b000_1160))),
        (Code::CollectTracing, ok(&[1, 0, 0, 0, 0, 0, 0, 0]), Reply::Session(SessionId(1))),
        (Code::CollectTracing6, ok(&[1, 0, 0, 0, 0, 0, 0, 0]), Reply::Session(SessionId(1))),
        (Code::ProcessEnvironment, ok(&[0xda, 0x0f, 0, 0, 0, 0]), Reply::Environment { bytes: 4058 }),
    ];
    for (code, bytes, reply) in table {
        assert_eq!(reply.encode(code).unwrap(), bytes);
        assert_eq!(decode(code, &bytes), Ok(reply), "{code}");
    }
    assert_eq!(decode(Code::DisablePerfMap, &ok(&[])), Ok(Reply::Done));
}

#[test]
fn error_replies_are_decoded() {
    let failure = |hresult, message: Option<&str>| Err(ReplyError::Failure(Failure { hresult, message: message.map(str::to_owned) }));
    let unknown = &[0x85, 0x13, 0x13, 0x80];
    let fail = &[0x05, 0x40, 0x00, 0x80];
    let table: Vec<(Vec<u8>, Result<Reply, ReplyError>)> = vec![
        (failed(unknown), failure(Hresult::UNKNOWN_COMMAND, None)),
        (ok(fail), failure(Hresult::FAIL, None)),
        (failed(&[&fail[..], b"\x03\0\0\0n\0o\0\0\0"].concat()), failure(Hresult::FAIL, Some("no"))),
        // The reply to an invalid dump kind has an empty message.
        (failed(&[&fail[..], b"\x01\0\0\0\0\0"].concat()), failure(Hresult::FAIL, None)),
        (failed(&[&fail[..], b"\0\0\0\0"].concat()), failure(Hresult::FAIL, None)),
        // A truncated message is kept as far as present.
        (failed(&[&fail[..], b"\x09\0\0\0n\0o\0"].concat()), failure(Hresult::FAIL, Some("no"))),
        (failed(&[&fail[..], b"\x09\0\0\0n\0o"].concat()), failure(Hresult::FAIL, Some("n"))),
        (failed(&[&fail[..], b"\x01\0\0"].concat()), failure(Hresult::FAIL, None)),
        (
            failed(&fail[..3]),
            Err(ReplyError::Malformed { command: Code::GenerateCoreDump3, source: WireError::Short { at: 0, needed: 4, left: 3 } }),
        ),
        (Message { set: 4, id: 0, payload: fail }.encode().unwrap(), Err(ReplyError::NotAReply { set: 4, id: 0 })),
        (Message { set: 0xff, id: 1, payload: fail }.encode().unwrap(), Err(ReplyError::NotAReply { set: 0xff, id: 1 })),
    ];
    for (bytes, expected) in table {
        assert_eq!(decode(Code::GenerateCoreDump3, &bytes), expected, "{bytes:?}");
    }
    assert_eq!(Failure::from(Hresult::UNKNOWN_COMMAND).encode().unwrap(), failed(unknown));
    // 3.1 cannot read a command of the profiler set that it does not know.
    let unreadable = failed(&[0x84, 0x13, 0x13, 0x80]);
    for (code, hresult) in [(Code::StartupProfiler, Hresult::UNKNOWN_COMMAND), (Code::AttachProfiler, Hresult::BAD_ENCODING)] {
        assert_eq!(decode(code, &unreadable), failure(hresult, None), "{code}");
    }
}

#[test]
fn failure_text_omits_the_runtimes_message() {
    let failure = Failure { hresult: Hresult::UNKNOWN_COMMAND, message: Some("\x1b[2J".to_owned()) };
    assert_eq!(
        ReplyError::from(failure).to_string(),
        "the runtime answered DS_IPC_E_UNKNOWN_COMMAND (0x80131385): this runtime is too old for the request"
    );
}

proptest! {
    #[test]
    fn process_info_round_trips(pid: u64, cookie: [u8; 16], text: [String; 5]) {
        let [command_line, os, arch, entry, rid] = text;
        let info = ProcessInfo { pid, cookie: Cookie(cookie), command_line, os, arch, entry_assembly: Some(entry), rid: Some(rid), ..info() };
        let reply = Reply::Info(Box::new(info));
        prop_assert_eq!(decode(Code::ProcessInfo3, &reply.encode(Code::ProcessInfo3).unwrap()), Ok(reply));
    }

    #[test]
    fn failures_round_trip(hresult: u32, message in proptest::option::of("[^\0]+")) {
        let failure = Failure { hresult: Hresult(hresult), message };
        prop_assert_eq!(decode(Code::GenerateCoreDump3, &failure.encode().unwrap()), Err(failure.into()));
    }

    #[test]
    fn any_payload_is_safe(code in 0..CommandCode::ALL.len(), is_success: bool, payload: Vec<u8>) {
        let bytes = if is_success { ok(&payload) } else { failed(&payload) };
        let _ = decode(CommandCode::ALL[code], &bytes);
    }
}
