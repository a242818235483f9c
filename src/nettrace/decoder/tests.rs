//! Handmade streams: valid ones that no runtime writes, and invalid ones.

mod limits;
mod v6;

use std::io::Read;

use proptest::collection::vec;
use proptest::prelude::*;

use self::v6::{v6, v6_trace, v6_whole};
use super::super::trace::tests::HEADER;
use super::super::{Encoder, Event, Field, FieldType, Loss, Metadata, NewEvent, Problem, SequencePoint, StreamBuffer, Thread};
use super::*;
use crate::wire::Put;

/// A textual log of all calls to a sink.
#[derive(Debug, Default, PartialEq)]
struct Log(Vec<String>);

impl Log {
    fn lines(&self, start: &str) -> Vec<&str> {
        self.0.iter().map(String::as_str).filter(|line| line.starts_with(start)).collect()
    }
}

impl Sink for Log {
    fn trace(&mut self, header: &TraceHeader) {
        self.0.push(format!("{header:?}"));
    }

    fn metadata(&mut self, metadata: &Metadata) {
        self.0.push(format!("{metadata:?}"));
    }

    fn event(&mut self, event: &Event<'_>) {
        let stack: Option<Vec<_>> = event.stack().map(|stack| stack.frames().collect());
        let labels: Vec<_> = event.labels().collect();
        let (thread, payload) = (event.thread(), event.payload);
        let (name, number, at) = (&event.metadata.name, event.sequence_number(), event.timestamp());
        self.0.push(format!("event {name} #{number} at {at} of {thread} {stack:?} {labels:?} {payload:?}"));
    }

    fn stacks(&mut self, count: u32) {
        self.0.push(format!("{count} stacks"));
    }

    fn thread(&mut self, thread: &Thread) {
        self.0.push(format!("{thread:?}"));
    }

    fn loss(&mut self, loss: &Loss) {
        self.0.push(format!("{loss:?}"));
    }

    fn sequence_point(&mut self, point: &SequencePoint) {
        self.0.push(format!("{point:?}"));
    }

    fn problem(&mut self, problem: &Problem) {
        self.0.push(problem.to_string());
    }
}

fn decode(bytes: &[u8], piece: usize) -> (Log, Ending) {
    decode_within(Limits::default(), bytes, piece)
}

fn decode_within(limits: Limits, bytes: &[u8], piece: usize) -> (Log, Ending) {
    let (mut decoder, mut log) = (Decoder::new(limits), Log::default());
    for piece in bytes.chunks(piece) {
        if decoder.feed(piece, &mut log).is_err() {
            break;
        }
    }
    let ending = decoder.finish(&mut log);
    (log, ending)
}

/// Decodes as a stream is read from a socket.
fn decode_buffered(bytes: &[u8], piece: usize) -> (Log, Ending) {
    let (mut decoder, mut log, mut buffer) = (Decoder::new(Limits::default()), Log::default(), StreamBuffer::default());
    let mut rest = bytes;
    while let Ok(count @ 1..) = rest.by_ref().take(piece as u64).read(buffer.space()) {
        match decoder.feed_blocks(buffer.filled(count), &mut log) {
            Ok(used) => buffer.consume(used),
            Err(_) => break,
        }
    }
    let _ = decoder.feed(buffer.unused(), &mut log);
    let ending = decoder.finish(&mut log);
    (log, ending)
}

fn put(write: impl FnOnce(&mut Vec<u8>)) -> Vec<u8> {
    let mut out = Vec::new();
    write(&mut out);
    out
}

/// A V4 object that starts at offset `at`.
fn object(at: usize, name: &str, body: &[u8]) -> Vec<u8> {
    put(|out| {
        out.put(&[5, 5, 1, 2, 0, 0, 0, 2, 0, 0, 0]);
        out.put_u32(name.len() as u32);
        out.put(name.as_bytes());
        out.put_u8(6);
        out.put_u32(body.len() as u32);
        out.resize((at + out.len()).next_multiple_of(4) - at, 0);
        out.put(body);
        out.put_u8(6);
    })
}

/// A small stream with two kinds of events, stacks, a loss and several blocks, without end marker.
fn small() -> Encoder {
    let mut encoder = Encoder::new(HEADER);
    let fields = vec![Field { name: "Value".into(), kind: FieldType::Int32 }];
    let a = encoder.metadata(&Metadata { provider: "Demo".into(), name: "A".into(), fields, ..Metadata::default() });
    let b = encoder.metadata(&Metadata { provider: "Demo".into(), name: "B".into(), opcode: Some(1), ..Metadata::default() });
    for i in 0..12 {
        let stack = encoder.stack(&[0x1000, 0x2000 + i % 3][..(i % 3) as usize]);
        let (metadata, payload) = if i % 2 == 0 { (a, &[1, 2, 3, 4][..]) } else { (b, &[][..]) };
        let (timestamp, thread) = (1_000 + 300 * i as i64, 70 + i % 2);
        encoder.event(&NewEvent { metadata, timestamp, thread, capture_thread: thread, stack, payload, ..NewEvent::default() });
        match i {
            3 => encoder.flush(),
            5 => encoder.add_loss(71, 3),
            7 => encoder.sequence_point(3_200),
            _ => {}
        }
    }
    encoder
}

fn small_whole() -> Vec<u8> {
    let mut encoder = small();
    encoder.end();
    encoder.take()
}

fn event_block(flags: u16, rows: impl FnOnce(&mut Vec<u8>)) -> Vec<u8> {
    put(|out| {
        out.put_u16(22);
        out.put_u16(flags);
        out.put(&[0xee; 18]);
        rows(out);
    })
}

#[test]
fn input_that_is_not_nettrace_is_reported() {
    let reply = put(|out| {
        out.put(b"DOTNET_IPC_V1\0\x18\0\xff\xff\0\0");
        out.put_u32(0x8013_1384);
    });
    let newer = b"Nettrace\0\0\0\0\x07\0\0\0\0\0\0\0";
    let odd = b"Nettrace\x14\0\0\0!FastSerialization.9";
    let cases: [(&[u8], &str); 5] = [
        (b"\x14\0\0\0!FastSerialization.1", "NetPerf stream"),
        (&reply, "error 0x80131384"),
        (newer, "unsupported nettrace version 7"),
        (odd, "damaged at byte 8"),
        (b"\x7fELF\x02\x01\x01\0", "begins with the bytes [7f, 45"),
    ];
    for (bytes, words) in cases {
        for piece in [1, bytes.len()] {
            let (log, ending) = decode(bytes, piece);
            let Ending::Broken { error, complete_bytes: 0 } = ending else { panic!("{ending:?}") };
            assert!(error.to_string().contains(words), "{error}");
            assert_eq!(log, Log::default());
        }
    }
    for bytes in [&b"Nettr"[..], b"Nettrace\x14\0\0\0", &reply[..23], b""] {
        let trailing_bytes = bytes.len() as u64;
        assert_eq!(decode(bytes, 3).1, Ending::Truncated { complete_bytes: 0, trailing_bytes });
    }
}

#[test]
fn result_is_independent_of_chunk_sizes() {
    let bytes = small_whole();
    let whole = decode(&bytes, bytes.len());
    assert_eq!(whole.1, Ending::Complete);
    assert_eq!((whole.0.lines("event").len(), whole.0.lines("Loss").len()), (12, 1));
    for piece in 1..bytes.len() {
        assert_eq!(decode(&bytes, piece), whole, "pieces of {piece}");
    }
}

#[test]
fn truncated_stream_yields_its_complete_events() {
    let bytes = small_whole();
    let whole = decode(&bytes, bytes.len()).0;
    let mut before = 0;
    for end in 0..bytes.len() {
        let (log, ending) = decode(&bytes[..end], 1000);
        let Ending::Truncated { complete_bytes, trailing_bytes } = ending else { panic!("{ending:?} at {end}") };
        assert_eq!(complete_bytes + trailing_bytes, end as u64);
        assert!(log.0.len() >= before && whole.0.starts_with(&log.0), "at {end}: {log:?}");
        before = log.0.len();
    }
    assert_eq!(before, whole.0.len());
}

#[test]
fn truncated_streams_can_be_repaired() {
    let streams = [small_whole(), v6_whole()];
    for bytes in streams {
        for end in 0..bytes.len() {
            let (mut decoder, mut log) = (Decoder::new(Limits::default()), Log::default());
            decoder.feed(&bytes[..end], &mut log).unwrap();
            decoder.finish(&mut log);
            let Some(repair) = decoder.repair() else {
                assert_eq!(log, Log::default());
                continue;
            };
            let mut repaired = bytes[..repair.keep as usize].to_vec();
            if let Some((at, patch)) = repair.patch {
                repaired[at as usize..at as usize + 4].copy_from_slice(&patch);
            }
            repaired.extend_from_slice(repair.append);
            assert_eq!(decode(&repaired, 4096), (log, Ending::Complete), "cut at {end}");
        }
    }
}

#[test]
fn unknown_blocks_are_skipped() {
    let mut bytes = small().take();
    let at = bytes.len();
    bytes.extend(object(at, "FutureBlock", &[7; 101]));
    bytes.push(1);
    for piece in [1, 7, 50, bytes.len()] {
        let (log, ending) = decode(&bytes, piece);
        assert_eq!(ending, Ending::Complete);
        assert_eq!(log.lines("an unknown block").len(), 1, "{log:?}");
    }
    // Even a block larger than the limit is not an error, but it is incomplete.
    let mut long = small().take();
    let at = long.len();
    long.extend(object(at, "FutureBlock", &[]));
    let size_at = at + 15 + "FutureBlock".len() + 1;
    long[size_at..size_at + 4].copy_from_slice(&u32::MAX.to_le_bytes());
    long.extend([0; 1000]);
    let (_, ending) = decode(&long, 100);
    assert_eq!(ending, Ending::Truncated { complete_bytes: at as u64, trailing_bytes: (long.len() - at) as u64 });
    let (log, ending) = decode(&v6(&[v6_trace(), (99, vec![1; 9]), (0, vec![])]), 5);
    assert_eq!((log.lines("an unknown block").len(), ending), (1, Ending::Complete));
}

#[test]
fn invalid_block_framing_ends_decoding() {
    let bytes = small_whole();
    let end = bytes.len() - 1;
    for (at, wrong, words) in [(end - 1, 9, "end marker of a block is missing"), (end, 9, "expected the start of a block")] {
        let mut bytes = bytes.clone();
        bytes[at] = wrong;
        let Ending::Broken { error, .. } = decode(&bytes, 64).1 else { panic!("not noticed") };
        assert!(error.to_string().contains(words), "{error}");
    }
    let mut long = small().take();
    let at = long.len();
    long.extend(object(at, "EventBlock", &[]));
    let size_at = at + 15 + "EventBlock".len() + 1;
    long[size_at..size_at + 4].copy_from_slice(&u32::MAX.to_le_bytes());
    let error = DecodeError::BlockTooLong { at: at as u64, size: u32::MAX.into(), limit: 64 << 20 };
    assert_eq!(decode(&long, 64).1, Ending::Broken { error, complete_bytes: at as u64 });
    let no_trace = [&b"Nettrace\x14\0\0\0!FastSerialization.1"[..], &object(32, "SPBlock", &[0; 12])].concat();
    assert!(matches!(decode(&no_trace, 64).1, Ending::Broken { error: DecodeError::Damaged { .. }, .. }));
}

#[test]
fn damaged_block_loses_only_its_remaining_events() {
    let mut bytes = small().take();
    let before = decode(&bytes, 4096).0.lines("event").len();
    // One complete event of 20 ticks, then one with an unterminated variable-length integer.
    let block = event_block(1, |out| {
        out.put(&[0x00, 20]);
        out.put(&[0x00, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff]);
    });
    let at = bytes.len();
    bytes.extend(object(at, "EventBlock", &block));
    let at = bytes.len();
    bytes.extend(object(at, "SPBlock", &[0; 12]));
    bytes.push(1);
    let (log, ending) = decode(&bytes, 4096);
    assert_eq!(ending, Ending::Complete);
    let events = log.lines("event");
    assert_eq!(events.len(), before + 1);
    assert_eq!(events[before], "event  #0 at 20 of 0 None [] []");
    assert_eq!(log.lines("a damaged event block").len(), 1);
    assert_eq!(log.lines("SequencePoint").len(), 2, "what comes behind it is read");
}

#[test]
fn block_with_too_short_a_header_is_damaged() {
    let mut bytes = small().take();
    let before = decode(&bytes, 4096).0.lines("event").len();
    let mut block = event_block(1, |out| out.put(&[0x00, 20]));
    // The rest of it would be events.
    block[4..22].fill(0);
    block[0] = 16;
    let at = bytes.len();
    bytes.extend(object(at, "EventBlock", &block));
    bytes.push(1);
    let (log, ending) = decode(&bytes, 4096);
    assert_eq!((ending, log.lines("event").len(), log.lines("a damaged event block").len()), (Ending::Complete, before, 1));
}

/// The format pads events to a multiple of four bytes, which not all writers do.
#[test]
fn uncompressed_event_headers_are_read() {
    for multiple in [4, 1] {
        let mut bytes = small().take();
        let before = decode(&bytes, 4096).0.lines("event").len();
        let mut block = event_block(0, |out| {
            out.put(&[0; 2]);
            for (number, payload) in [(1, &b"abc"[..]), (2, b"defg")] {
                out.put_u32(76 + payload.len() as u32);
                out.put_u32(2 | 1 << 31);
                out.put_u32(number);
                out.put_u64(5);
                out.put_u64(6);
                out.put_u32(1);
                out.put_u32(0);
                out.put_i64(-9);
                out.put(&[0xaa; 16]);
                out.put(&[0xbb; 16]);
                out.put_u32(payload.len() as u32);
                out.put(payload);
                out.resize(out.len().next_multiple_of(multiple), 0);
            }
        });
        // A header of 24 bytes instead of 22, so that the rows start at a multiple of four.
        block[0] = 24;
        let at = bytes.len();
        bytes.extend(object(at, "EventBlock", &block));
        bytes.push(1);
        let (log, ending) = decode(&bytes, 4096);
        assert_eq!(ending, Ending::Complete);
        assert_eq!(log.lines("a damaged"), Vec::<&str>::new());
        let rest = "at -9 of 5 None []";
        assert_eq!(
            log.lines("event")[before..],
            [format!("event B #1 {rest} [97, 98, 99]"), format!("event B #2 {rest} [100, 101, 102, 103]")]
        );
    }
}

/// Blocks of all sizes around that of the buffer, also several times its size.
#[test]
fn blocks_of_any_size_are_decoded_from_a_buffer() {
    let mut encoder = Encoder::new(HEADER);
    let metadata = encoder.metadata(&Metadata { provider: "Demo".into(), name: "A".into(), ..Metadata::default() });
    for (sequence, kilobytes) in (1..).zip([1, 90, 200, 255, 256, 257, 300, 511, 512, 513, 1700, 3, 100]) {
        let payload = vec![sequence as u8; kilobytes << 10];
        encoder.event(&NewEvent { metadata, timestamp: sequence, payload: &payload, ..NewEvent::default() });
        encoder.flush();
    }
    encoder.end();
    let bytes = encoder.take();
    let whole = decode(&bytes, bytes.len());
    assert_eq!((whole.1, whole.0.lines("event").len()), (Ending::Complete, 13));
    let whole = whole.0;
    for piece in [1 << 10, 10_007, 64 << 10] {
        assert!(decode_buffered(&bytes, piece) == (Log(whole.0.clone()), Ending::Complete), "in pieces of {piece} bytes");
    }
}

#[test]
fn decode_error_is_returned_again() {
    let (mut decoder, mut log) = (Decoder::new(Limits::default()), Log::default());
    let error = decoder.feed(b"garbage!", &mut log).unwrap_err();
    assert_eq!(decoder.feed(&small_whole(), &mut log), Err(error));
    assert_eq!(log, Log::default());
    assert_eq!(decoder.repair(), None);
}

proptest! {
    #[test]
    fn damaged_streams_decode_alike_with_any_chunk_size(changes in vec((any::<prop::sample::Index>(), any::<u8>()), 1..6), v6: bool, piece in 1..300_usize) {
        let mut bytes = if v6 { v6_whole() } else { small_whole() };
        for (at, byte) in changes {
            let at = at.index(bytes.len());
            bytes[at] = byte;
        }
        let whole = decode(&bytes, bytes.len());
        prop_assert_eq!(&decode(&bytes, piece), &whole);
        prop_assert_eq!(decode_buffered(&bytes, piece), whole);
    }

    #[test]
    fn random_bytes_after_a_valid_start_do_not_panic(noise in vec(any::<u8>(), 0..500), v6: bool) {
        let mut bytes = if v6 { v6_whole() } else { small_whole() };
        bytes.truncate(bytes.len() - if v6 { 4 } else { 1 });
        bytes.extend(noise);
        decode(&bytes, 100);
    }
}
