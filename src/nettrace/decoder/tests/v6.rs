//! Handmade streams of format 6.

use super::*;

pub(super) fn v6(blocks: &[(u8, Vec<u8>)]) -> Vec<u8> {
    put(|out| {
        out.put(b"Nettrace\0\0\0\0\x06\0\0\0\x07\0\0\0");
        for (kind, body) in blocks {
            out.put_u32(body.len() as u32 | u32::from(*kind) << 24);
            out.put(body);
        }
    })
}

fn text(out: &mut Vec<u8>, text: &str) {
    out.put_varint(text.len() as u64);
    out.put(text.as_bytes());
}

fn row(out: &mut Vec<u8>, write: impl FnOnce(&mut Vec<u8>)) {
    let body = put(write);
    out.put_u16(body.len() as u16);
    out.put(&body);
}

pub(super) fn v6_trace() -> (u8, Vec<u8>) {
    let body = put(|out| {
        HEADER.sync_utc.unwrap().system_time().iter().for_each(|word| out.put_u16(*word));
        out.put_i64(1_000);
        out.put_i64(1_000_000_000);
        out.put_u32(8);
        out.put_u32(4);
        for (key, value) in [("HardwareThreadCount", "2"), ("Other", "x"), ("ProcessId", "4242"), ("ExpectedCPUSamplingRate", "1000000")] {
            text(out, key);
            text(out, value);
        }
    });
    (1, body)
}

/// A V6 stream with every kind of block.
pub(super) fn v6_whole() -> Vec<u8> {
    let threads = put(|out| {
        row(out, |out| {
            out.put(&[7, 1]);
            text(out, "main");
            out.put(&[2, 42, 3, 43, 4]);
            text(out, "key");
            text(out, "value");
        });
        // Fields added by later versions are ignored.
        row(out, |out| out.put(&[8, 3, 44, 200, 1, 2, 3]));
    });
    let metadata = put(|out| {
        out.put(&[2, 0, 0xee, 0xee]);
        row(out, |out| {
            out.put_varint(300);
            text(out, "Universal.Events");
            out.put_u8(1);
            text(out, "cpu");
            out.put_u16(2);
            row(out, |out| {
                text(out, "Value");
                out.put_u8(21);
            });
            row(out, |out| {
                text(out, "Names");
                // A list of three UTF-8 arrays.
                out.put(&[22, 19, 23, 3, 0]);
            });
            row(out, |out| {
                out.put(&[1, 9, 8, 4, 9, 2, 3]);
                out.put_u64(0xf0);
                out.put_u8(5);
                text(out, "why");
            });
        });
    });
    let stacks = put(|out| {
        [5, 2, 8].iter().for_each(|value| out.put_u32(*value));
        out.put_u64(0x1000);
        out.put_u32(16);
        out.put_u64(0x2000);
        out.put_u64(0x3000);
    });
    let labels = put(|out| {
        [1, 2].iter().for_each(|value| out.put_u32(*value));
        out.put_u8(1);
        out.put(&[0xaa; 16]);
        out.put_u8(0x80 | 5);
        text(out, "key");
        text(out, "value");
        out.put_u8(0x80 | 6);
        text(out, "number");
        out.put_varint(3);
    });
    let events = event_block(1, |out| {
        // All fields, then only a timestamp.
        out.put(&[0xdf, 0xac, 0x02, 0, 7, 1, 7, 6, 100, 1, 2, 0x55, 0x66]);
        out.put(&[0x00, 10, 0x77, 0x88]);
        // Three sequence numbers later, on another thread.
        out.put(&[0x16, 2, 8, 0, 8, 10, 2, 0x99, 0xaa]);
    });
    let whole = event_block(0, |out| {
        out.put_u32(48 + 1);
        out.put_u32(300);
        out.put_u32(3);
        out.put_u64(7);
        out.put_u64(7);
        out.put(&[0; 8]);
        out.put_i64(150);
        out.put_u32(0);
        out.put_u32(1);
        out.put_u8(0xcc);
    });
    let gone = put(|out| out.put(&[7, 5]));
    let point = put(|out| {
        out.put_i64(200);
        [3, 1].iter().for_each(|value| out.put_u32(*value));
        out.put(&[8, 10]);
    });
    let after = event_block(1, |out| out.put(&[0xcf, 0xac, 0x02, 0, 7, 1, 7, 6, 0, 0]));
    v6(&[
        v6_trace(),
        (6, threads),
        (3, metadata),
        (5, stacks),
        (8, labels),
        (2, events),
        (2, whole),
        (7, gone),
        (4, point),
        (2, after),
        (0, vec![]),
    ])
}

#[test]
fn v6_stream_is_decoded() {
    let (log, ending) = decode(&v6_whole(), 3);
    assert_eq!(ending, Ending::Complete);
    assert_eq!(log.0[0], format!("{:?}", TraceHeader { format_version: 6, ..HEADER }));
    let expected = [
        r#"Thread { id: ThreadId { process: 42, thread: 43, reuse_count: 0 }, name: "main" }"#,
        r#"Thread { id: ThreadId { process: 0, thread: 44, reuse_count: 0 }, name: "" }"#,
        r#"Metadata { index: 1, id: 300, provider: "Universal.Events", event_id: 1, name: "cpu", keywords: 240, version: 2, level: 4, opcode: Some(9), fields: [Field { name: "Value", kind: VarUInt }, Field { name: "Names", kind: FixedLengthArray(3, Array(Utf8CodeUnit)) }] }"#,
        "2 stacks",
        "event cpu #1 at 100 of 42/43 Some([8192, 12288]) [ActivityId([170, 170, 170, 170, 170, 170, 170, 170, 170, 170, 170, 170, 170, 170, 170, 170]), Text([107, 101, 121], [118, 97, 108, 117, 101])] [85, 102]",
        "event cpu #2 at 110 of 42/43 Some([8192, 12288]) [ActivityId([170, 170, 170, 170, 170, 170, 170, 170, 170, 170, 170, 170, 170, 170, 170, 170]), Text([107, 101, 121], [118, 97, 108, 117, 101])] [119, 136]",
        "Loss { count: 4, kind: Gap, capture_thread: ThreadId { process: 0, thread: 44, reuse_count: 0 }, timestamp: 120 }",
        "event cpu #5 at 120 of 44 Some([8192, 12288]) [Number([110, 117, 109, 98, 101, 114], -2)] [153, 170]",
        "event cpu #3 at 150 of 42/43 None [] [204]",
        "Loss { count: 2, kind: Tail, capture_thread: ThreadId { process: 42, thread: 43, reuse_count: 0 }, timestamp: 150 }",
        "Loss { count: 5, kind: Tail, capture_thread: ThreadId { process: 0, thread: 44, reuse_count: 0 }, timestamp: 200 }",
        "SequencePoint { timestamp: 200, threads: 1 }",
        "an event with an undefined metadata id",
        "an event with an undefined stack id",
        "an undefined thread index",
        "event  #1 at 0 of ? None [] []",
    ];
    let found: Vec<_> = log.0[1..].iter().map(|line| line.split(", at byte").next().unwrap()).collect();
    assert_eq!(found, expected);
}

/// The index of a thread may be that of another one afterwards, and a sequence point ends the meaning of labels.
#[test]
fn removed_threads_and_labels_are_forgotten() {
    let thread = |id| (6, put(|out| row(out, |out| out.put(&[7, 3, id]))));
    let metadata = put(|out| {
        out.put(&[2, 0, 0, 0]);
        row(out, |out| out.put(&[9, 1, b'P', 1, 1, b'E', 0, 0]));
    });
    let labels = put(|out| {
        [1, 1].iter().for_each(|value| out.put_u32(*value));
        out.put_u8(0x80 | 5);
        text(out, "key");
        text(out, "value");
    });
    let event = |number: u8| (2, event_block(1, |out| out.put(&[0xdf, 9, number - 1, 7, 1, 7, 0, 100, 1, 1, 0x55])));
    let removed = (7, put(|out| out.put(&[7, 2])));
    let point = (4, put(|out| out.put(&[0; 16])));
    let first = [v6_trace(), thread(43), (3, metadata), (8, labels), event(1), event(2)];
    let rest = [removed, thread(44), event(3), thread(45), event(4), point, event(5), (0, vec![])];
    let (log, ending) = decode(&v6(&[&first[..], &rest].concat()), 4096);
    assert_eq!(ending, Ending::Complete);
    let events: Vec<_> = log.lines("event").iter().map(|line| (line.contains(" of 45 "), line.contains("Text("))).collect();
    assert_eq!(events, [(false, true), (false, true), (false, true), (true, true), (true, false)]);
    let losses = log.lines("Loss");
    assert!(losses.len() == 2 && losses[0].contains("count: 2") && losses[1].contains("count: 3"), "{losses:?}");
}

#[test]
fn label_overrides_the_version_of_the_metadata() {
    struct Versions(Vec<(u32, usize)>);
    impl Sink for Versions {
        fn event(&mut self, event: &Event<'_>) {
            self.0.push((event.version(), event.labels().count()));
        }
    }
    let metadata = put(|out| {
        out.put(&[2, 0, 0, 0]);
        row(out, |out| {
            out.put(&[9, 1, b'P', 1, 1, b'E', 0, 0]);
            // The version.
            row(out, |out| out.put(&[9, 2]));
        });
    });
    let labels = put(|out| {
        [1, 1].iter().for_each(|value| out.put_u32(*value));
        out.put(&[7, 1, 8]);
        out.put_u64(0xf0);
        out.put(&[9, 5, 0x8a, 3]);
    });
    let events = event_block(1, |out| {
        out.put(&[0xdf, 9, 0, 7, 1, 7, 0, 100, 1, 1, 0x55]);
        out.put(&[0x10, 10, 0, 0x66]);
    });
    let bytes = v6(&[v6_trace(), (3, metadata), (8, labels), (2, events), (0, vec![])]);
    let (mut decoder, mut versions) = (Decoder::new(Limits::LIVE), Versions(Vec::new()));
    decoder.feed(&bytes, &mut versions).unwrap();
    decoder.finish(&mut versions);
    assert_eq!(versions.0, [(3, 4), (2, 0)]);
}
