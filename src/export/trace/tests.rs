//! Exports of streams that were made or damaged.

use std::io::{self, Cursor, Write};

use proptest::prelude::*;

use super::*;
use crate::nettrace::{Decoder, Limits};

/// Exports a stream, and gives what was written.
fn export(bytes: &[u8], format: TraceFormat) -> Vec<u8> {
    let mut overview = Overview::default();
    read(bytes, &mut overview);
    let mut out = Vec::new();
    let options = Options { format, part: Part::default(), calls: true, tasks: true, number: 0 };
    let mut export = Export::new(options, overview, Box::new(&mut out), Box::new(Cursor::new(Vec::new()))).unwrap();
    read(bytes, &mut export);
    export.finish().unwrap();
    out
}

fn read(bytes: &[u8], sink: &mut dyn Sink) {
    let (mut decoder, mut sink) = (Decoder::new(Limits::default()), sink);
    let _ = decoder.feed(bytes, &mut sink);
    decoder.finish(&mut sink);
}

/// A capture with samples.
fn capture() -> Vec<u8> {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/captures/net31-heavy.nettrace.xz");
    let mut bytes = Vec::new();
    io::Read::read_to_end(&mut xz2::read::XzDecoder::new(std::fs::File::open(path).unwrap()), &mut bytes).unwrap();
    bytes
}

#[test]
fn what_holds_nothing_is_exported_as_nothing() {
    for format in TraceFormat::ALL {
        let out = export(b"", format);
        match format {
            TraceFormat::Speedscope | TraceFormat::Chromium => {
                let json: serde_json::Value = serde_json::from_slice(&out).unwrap();
                assert!(json.is_object(), "{format:?}");
            }
            TraceFormat::Folded => assert_eq!(out, b""),
            TraceFormat::Csv => assert_eq!(out, b"seconds,process,thread,provider,event,stack_depth,payload\n"),
            TraceFormat::Perfetto | TraceFormat::Pprof => assert!(!out.is_empty()),
        }
    }
}

#[test]
fn an_output_that_fails_is_said() {
    struct Full(usize);
    impl Write for Full {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            let count = bytes.len().min(self.0);
            self.0 -= count;
            if count == 0 { Err(io::ErrorKind::StorageFull.into()) } else { Ok(count) }
        }
        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }
    let bytes = capture();
    for format in TraceFormat::ALL {
        for room in [0, 100] {
            let mut overview = Overview::default();
            read(&bytes, &mut overview);
            let options = Options { format, part: Part::default(), calls: false, tasks: false, number: 0 };
            let error = match Export::new(options, overview, Box::new(Full(room)), Box::new(Cursor::new(Vec::new()))) {
                Ok(mut export) => {
                    read(&bytes, &mut export);
                    export.finish().unwrap_err()
                }
                Err(error) => error,
            };
            assert_eq!(error.kind(), io::ErrorKind::StorageFull, "{format:?} with room for {room} bytes");
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, ..ProptestConfig::default() })]

    /// Whatever is wrong with a recording, JSON is JSON and nothing panics.
    #[test]
    fn damaged_recordings_are_exported_as_far_as_they_go(flips in proptest::collection::vec((0.0..1.0, any::<u8>()), 1..60), end in 0.1..1.0) {
        let mut bytes = capture();
        bytes.truncate((bytes.len() as f64 * end * 0.2) as usize);
        for (place, value) in flips {
            let at = (bytes.len() as f64 * place) as usize;
            bytes[at] = value;
        }
        for format in TraceFormat::ALL {
            let out = export(&bytes, format);
            if matches!(format, TraceFormat::Speedscope | TraceFormat::Chromium) {
                prop_assert!(serde_json::from_slice::<serde_json::Value>(&out).is_ok());
            }
        }
    }
}
