//! The requirements of the specification "Tracing API and ABI" on the socket protocol (P), the shared memory (M) and stability (S), as far as
//! they concern encoding. Those on a service are in `net::perfetto` and in the live tests.

mod memory;

use proptest::prelude::*;

use super::Message;
use super::call::{BindError, CallError, Calls, bind};
use super::consumer::ServiceState;
use super::ipc::{Body, Frame, FrameError, FrameReader, MAX_FRAME_BYTES};
use super::page::PageSize;
use super::producer::{Command, Configuration, DataSource, Initialize, Initialized, ProducerMethod, notify, packets};
use super::read::fields;
use super::recording::{Packets, disabled, losses};

fn frame(request: u64, body: Body) -> Frame {
    Frame { request, body }
}

fn frames(bytes: &[u8], piece: usize) -> Result<Vec<Frame>, FrameError> {
    let mut reader = FrameReader::default();
    let mut frames = Vec::new();
    for piece in bytes.chunks(piece) {
        reader.push(piece);
        while let Some(frame) = reader.frame()? {
            frames.push(frame);
        }
    }
    Ok(frames)
}

/// Returns the port of the specification's example, with method numbers that no current service uses.
fn bound() -> Calls<ProducerMethod, &'static str> {
    let methods = [(2, "InitializeConnection"), (5, "RegisterDataSource"), (3, "UnregisterDataSource"), (9, "NotYetInvented")];
    let methods = methods.map(|(id, name)| (id, name.to_owned())).to_vec();
    Calls::bound(frame(1, Body::BindReply { success: true, service: 42, methods })).unwrap()
}

#[test]
fn p3_a_frame_is_a_length_and_a_message() {
    let request = bind::<ProducerMethod>().unwrap();
    assert_eq!(request, [&[18, 0, 0, 0, 0x10, 1, 0x1a, 14, 0x0a, 12][..], b"ProducerPort"].concat());
    // The example of the specification: two frames with unknown content. An empty frame is ignored.
    let example = [4, 0, 0, 0, 0xa0, 0xa1, 0xa2, 0xa3, 0, 0, 0, 0, 5, 0, 0, 0, 0xb0, 0xb1, 0xb2, 0xb3, 0xb4];
    for piece in 1..=example.len() {
        assert_eq!(frames(&example, piece), Ok(vec![frame(0, Body::Unknown); 2]), "in pieces of {piece}");
    }
}

#[test]
fn p3_longest_frame_is_131_068_bytes() {
    let with = |size: usize| {
        let body = Body::InvokeReply { success: true, has_more: false, reply: vec![7; size] };
        frame(1, body)
    };
    let most = (131_000..132_000).rev().find(|size| with(*size).encode().is_ok()).unwrap();
    let longest = with(most).encode().unwrap();
    assert_eq!((longest.len(), MAX_FRAME_BYTES), (131_072, 131_072));
    assert_eq!(frames(&longest, 1000), Ok(vec![with(most)]));
    assert_eq!(with(most + 1).encode().unwrap_err().0, 131_073);
    assert_eq!(frames(&131_069_u32.to_le_bytes(), 4), Err(FrameError::Length(131_069)));
}

#[test]
fn p4_undecodable_frame_is_skipped() {
    let good = frame(3, Body::RequestError("no".to_owned()));
    let bytes = [&[2, 0, 0, 0, 0xff, 0xff][..], &good.encode().unwrap()].concat();
    assert_eq!(frames(&bytes, 3), Ok(vec![frame(0, Body::Unknown), good]));
    assert!(bound().reply(frame(0, Body::Unknown)).is_none());
}

#[test]
fn p5_ports_are_bound_by_name() {
    let refused = Body::BindReply { success: false, service: 0, methods: Vec::new() };
    let bound = |request, body| Calls::<ProducerMethod, ()>::bound(frame(request, body)).map(|_| ());
    assert_eq!(bound(1, refused), Err(BindError::Refused("ProducerPort")));
    assert_eq!(bound(1, Body::Unknown), Err(BindError::NoService));
    assert_eq!(bound(7, Body::BindReply { success: true, service: 1, methods: Vec::new() }), Err(BindError::NoService));
}

#[test]
fn p6_method_ids_are_assigned_by_the_service() {
    let mut calls = bound();
    let invoked = frames(&calls.send(ProducerMethod::RegisterDataSource, vec![1]).unwrap(), 100).unwrap();
    assert_eq!(invoked, [frame(2, Body::Invoke { service: 42, method: 5, arguments: vec![1], drop_reply: true })]);
    let invoked = frames(&calls.call(ProducerMethod::InitializeConnection, vec![], "first").unwrap(), 100).unwrap();
    assert_eq!(invoked, [frame(3, Body::Invoke { service: 42, method: 2, arguments: vec![], drop_reply: false })]);
}

#[test]
fn p7_replies_match_requests_in_any_order_and_streams_end() {
    let mut calls = bound();
    calls.call(ProducerMethod::InitializeConnection, vec![], "stream").unwrap();
    calls.call(ProducerMethod::RegisterDataSource, vec![], "single").unwrap();
    let reply = |request, success, has_more| frame(request, Body::InvokeReply { success, has_more, reply: vec![request as u8] });
    let mut token = |frame| calls.reply(frame).map(|(token, reply)| (token, reply.success));
    assert_eq!(token(reply(2, true, true)), Some(("stream", true)));
    assert_eq!(token(reply(3, false, false)), Some(("single", false)));
    assert_eq!(token(reply(3, true, false)), None, "a reply behind the last");
    assert_eq!(token(reply(99, true, false)), None, "a reply to nothing");
    assert_eq!(token(reply(2, true, false)), Some(("stream", true)));
    assert_eq!(token(reply(2, true, true)), None, "a stream that has ended");
}

#[test]
fn p8_rejected_request_is_a_failed_call() {
    let mut calls = bound();
    calls.call(ProducerMethod::InitializeConnection, vec![], "call").unwrap();
    let (token, reply) = calls.reply(frame(2, Body::RequestError("why".to_owned()))).unwrap();
    assert_eq!((token, reply.success, reply.has_more, reply.error.as_deref()), ("call", false, false, Some("why")));
}

#[test]
fn s4_s5_s7_capabilities_come_only_from_the_method_table() {
    let mut calls = bound();
    // Calls of missing methods are refused locally, and new methods are ignored.
    assert!(bound().send(ProducerMethod::RegisterDataSource, vec![]).is_ok());
    assert_eq!(calls.call(ProducerMethod::CommitData, vec![], "no"), Err(CallError::NoMethod("CommitData")));
    assert_eq!(calls.send(ProducerMethod::CommitData, vec![]), Err(CallError::NoMethod("CommitData")));
    // No version is sent or evaluated, except the text for display.
    let sent = fields(&Initialize { name: "n".to_owned(), version: "v".to_owned(), page: PageSize::MAX, memory: 5 }.encode())
        .map(|field| field.unwrap().0)
        .collect::<Vec<_>>();
    assert_eq!(sent, [1, 2, 3, 8]);
}

#[test]
fn s4_unknown_commands_and_missing_fields_are_accepted() {
    assert_eq!(Command::decode(&[]), Ok(Command::Unknown));
    // Field 77, containing a message.
    assert_eq!(Command::decode(&[0xea, 0x04, 2, 0x08, 1]), Ok(Command::Unknown));
    assert_eq!(Command::decode(&[0x1a, 0]), Ok(Command::SetupTracing { page: Some(PageSize::DEFAULT) }));
    assert_eq!(Command::decode(&[0x12, 0]), Ok(Command::Stop { instance: 0 }));
    assert_eq!(Initialized::decode(&[]), Ok(Initialized::default()));
}

#[test]
fn m2_service_reports_use_of_producer_memory() {
    let decoded = Initialized::decode(&[0x08, 1, 0x10, 1, 0x18, 1]).unwrap();
    assert_eq!(decoded, Initialized { uses_producer_memory: true, without_memory: true });
    // The producer never offers memory: there is no field 6.
    let hello = Initialize { name: String::new(), version: String::new(), page: PageSize::DEFAULT, memory: 0 }.encode();
    assert!(fields(&hello).all(|field| field.unwrap().0 != 6));
}

proptest! {
    /// P10, S4: unknown fields do not affect the decoded command.
    #[test]
    fn p10_unknown_fields_are_skipped(number in 100_u32..500_000, kind in 0_u8..4, payload in prop::collection::vec(any::<u8>(), 8)) {
        let mut bytes = Vec::new();
        let mut message = Message::new(&mut bytes);
        message.message(1, |start| {
            start.uint(1, 9);
            unknown(start, number, kind, &payload);
            start.message(2, |configuration| {
                unknown(configuration, number + 1000, kind, &payload);
                configuration.text(1, "dotnet");
                configuration.uint(2, 7);
                configuration.text(1000, "targets=x");
            });
        });
        unknown(&mut message, number, kind, &payload);
        let configuration = Configuration { name: "dotnet".to_owned(), target_buffer: 7, text: "targets=x".to_owned(), ..Configuration::default() };
        prop_assert_eq!(Command::decode(&bytes), Ok(Command::Start { instance: 9, configuration }));
    }

    #[test]
    fn random_bytes_do_not_panic(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
        let _ = (Command::decode(&bytes), Initialized::decode(&bytes), frames(&bytes, 7), packets(&bytes).count());
        let _ = (ServiceState::default().add(&bytes), Packets::default().add(&bytes, &mut Vec::new()), disabled(&bytes), losses(&bytes));
    }
}

fn unknown(message: &mut Message<'_>, number: u32, kind: u8, payload: &[u8]) {
    match kind {
        0 => message.uint(number, payload[0].into()),
        1 => message.fixed(number, 7),
        2 => message.bytes(number, payload),
        _ => message.message(number, |inner| inner.uint(3, 4)),
    }
}

#[test]
fn s1_s8_data_source_descriptor_lists_its_features() {
    let source = DataSource { name: "dotnet", categories: &[("gc", "pauses")] };
    let bytes = source.encode();
    let (1, descriptor) = fields(&bytes).next().unwrap().unwrap() else { panic!("no descriptor") };
    let numbers: Vec<_> = fields(descriptor.bytes().unwrap()).map(|field| field.unwrap().0).collect();
    // Name; flags for reporting start and stop, and for clearing incremental state; categories.
    assert_eq!(numbers, [1, 2, 3, 4, 6]);
    assert_eq!(notify(300), [0x08, 0xac, 0x02]);
}

#[test]
fn s2_configuration_text_is_passed_on_unchanged() {
    let mut bytes = Vec::new();
    Message::new(&mut bytes).message(6, |setup| {
        setup.uint(1, 5);
        setup.message(2, |configuration| {
            configuration.text(1, "dotnet");
            configuration.uint(2, 1);
            configuration.uint(7, 5000);
            configuration.text(1000, "targets=Shop");
            configuration.text(7777, "of tomorrow");
        });
    });
    let configuration = Configuration {
        name: "dotnet".to_owned(),
        target_buffer: 1,
        stop_timeout_ms: 5000,
        stalls: false,
        selects_categories: false,
        text: "targets=Shop".to_owned(),
    };
    assert_eq!(Command::decode(&bytes), Ok(Command::Setup { instance: 5, configuration }));
}

#[test]
fn m9_configuration_tells_whether_writers_stall() {
    for (policy, stalls) in [(0, false), (1, false), (2, true), (3, true), (4, false)] {
        let mut bytes = Vec::new();
        Message::new(&mut bytes).message(6, |setup| {
            setup.message(2, |configuration| configuration.uint(9, policy));
        });
        let configuration = Configuration { stalls, ..Configuration::default() };
        assert_eq!(Command::decode(&bytes), Ok(Command::Setup { instance: 0, configuration }), "{policy}");
    }
}

#[test]
fn flush_instances_are_read_packed_or_unpacked() {
    for bytes in [&[0x2a, 6, 0x08, 1, 0x08, 2, 0x10, 7][..], &[0x2a, 6, 0x0a, 2, 1, 2, 0x10, 7]] {
        assert_eq!(Command::decode(bytes), Ok(Command::Flush { instances: vec![1, 2], request: 7 }));
    }
    assert_eq!(Command::decode(&[0x3a, 2, 0x08, 4]), Ok(Command::ClearState { instances: vec![4] }));
    assert_eq!(Command::decode(&[0x12, 2, 0x08, 4]), Ok(Command::Stop { instance: 4 }));
}

#[test]
fn s3_packets_are_extracted_from_a_trace() {
    let trace = [0x0a, 2, 1, 2, 0x12, 1, 9, 0x0a, 0, 0x0a, 200, 1];
    assert_eq!(packets(&trace).collect::<Vec<_>>(), [&[1, 2][..], &[]]);
}
