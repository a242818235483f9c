//! Tests of exports: recordings, the CPU samples next to them, and cancellation.

use super::*;
use crate::analysis::{CpuStack, OsrCallers};
use crate::clr::SAMPLE_PROFILER;
use crate::export::CpuTrace;
use crate::nettrace::{Encoder, Metadata, NewEvent, ThreadId, TraceHeader, UtcTime};
use crate::perfetto::field::packet;
use crate::perfetto::read::fields;
use crate::session::tests::empty_trace;

struct FullDisk;

impl Write for FullDisk {
    fn write(&mut self, _bytes: &[u8]) -> io::Result<usize> {
        Err(io::ErrorKind::StorageFull.into())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// A recording of a few megabytes.
fn capture(folder: &Path) -> PathBuf {
    let packed = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/captures/net9-heavy-norundown.nettrace.xz");
    let path = folder.join("a.nettrace");
    let mut packed = xz2::read::XzDecoder::new(std::fs::File::open(packed).unwrap());
    io::copy(&mut packed, &mut std::fs::File::create(&path).unwrap()).unwrap();
    path
}

fn options(format: TraceFormat) -> Options {
    Options::new(format, Part::default())
}

#[test]
fn reading_stops_when_the_output_cannot_be_written() {
    let folder = tempfile::tempdir().unwrap();
    let path = capture(folder.path());
    let size = path.metadata().unwrap().len();
    for format in [TraceFormat::Perfetto, TraceFormat::Csv, TraceFormat::Chromium] {
        let mut bytes = 0;
        let mut reported = |now| {
            bytes = now;
            true
        };
        let [source] = <[_; 1]>::try_from(Source::find(&path, &[], &options(format)).unwrap()).ok().unwrap();
        let recording = source.read(0, &mut reported).unwrap();
        let mut out = BufWriter::with_capacity(4096, FullDisk);
        let written = write(vec![recording], &options(format), &mut out, &mut reported).unwrap();
        assert_eq!(written.unwrap_err().kind(), io::ErrorKind::StorageFull, "{format:?}");
        // The first pass completes.
        assert!(bytes >= size && bytes < size + size / 2, "{format:?}: {bytes} of {size}");
    }
}

#[test]
fn canceled_export_leaves_no_file() {
    let folder = tempfile::tempdir().unwrap();
    let path = capture(folder.path());
    let size = path.metadata().unwrap().len();
    for end in [0, size / 2, size + size / 2] {
        let out = folder.path().join("out");
        let canceled =
            export(std::slice::from_ref(&path), &options(TraceFormat::Perfetto), &Destination::File(out.clone()), &mut |bytes, total| {
                assert_eq!(total, 2 * size);
                bytes < end
            });
        assert!(matches!(canceled, Err(ExportError::Canceled)), "{canceled:?}");
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1, "the recording alone");
    }
}

/// Also cancels while only samples are left to read.
#[test]
fn export_canceled_while_reading_samples_leaves_no_file() {
    let folder = tempfile::tempdir().unwrap();
    let path = with_samples(folder.path(), 0);
    let calls = |most: u32| {
        let mut calls = 0;
        let mut should_continue = |_, _| {
            calls += 1;
            calls <= most
        };
        let out = folder.path().join("out");
        let result = export(std::slice::from_ref(&path), &options(TraceFormat::Nettrace), &Destination::File(out), &mut should_continue);
        (result, calls)
    };
    let (whole, all) = calls(u32::MAX);
    let samples = whole.unwrap().into_iter().map(|exported| exported.samples).collect::<Vec<_>>();
    assert_eq!(samples, [Some(folder.path().join("a.cpu.nettrace"))]);
    std::fs::remove_file(folder.path().join("out")).unwrap();
    for most in 0..all {
        let (canceled, _) = calls(most);
        assert!(matches!(canceled, Err(ExportError::Canceled)), "{most} of {all}: {canceled:?}");
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 2, "the recording and its samples");
    }
}

const STARTED: i64 = 1_000_000_000;

/// Creates a recording with samples of the runtime, and next to it samples of one function by the kernel, both at 1, 2 and 3 s of the recording,
/// in a file that starts this much later.
fn with_samples(folder: &Path, later: i64) -> PathBuf {
    let path = folder.join("a.nettrace");
    let mut encoder = Encoder::new(TraceHeader { sync_ticks: STARTED, process_id: 42, ..TraceHeader::default() });
    let metadata = encoder.metadata(&Metadata { provider: SAMPLE_PROFILER.to_owned(), ..Metadata::default() });
    for second in 1..=3 {
        let timestamp = STARTED + second * 1_000_000_000;
        encoder.event(&NewEvent { metadata, timestamp, thread: 43, capture_thread: 43, payload: &[2, 0, 0, 0], ..NewEvent::default() });
    }
    encoder.end();
    std::fs::write(&path, encoder.take()).unwrap();
    let (sync_utc, sync_ticks) = (Some(UtcTime::from_unix_ms(0)), STARTED + later);
    let header = TraceHeader { sync_utc, sync_ticks, ..TraceHeader::default() };
    let mut trace = CpuTrace::new(&header, 42, "shop");
    trace.mapping(0x1000..0x2000, 0, b"/lib/libz.so", || None);
    let sample = |at| CpuStack { thread: ThreadId::of(43), at, kernel: &[], user: &[0x1010], missing: None };
    (1..=3).for_each(|second| trace.sample(&sample(STARTED + second * 1_000_000_000)));
    let mut bytes = trace.write_until(i64::MAX, &OsrCallers::default());
    trace.function(0x1000, 0x100, "inflate");
    bytes.extend(trace.finish());
    std::fs::write(folder.join("a.cpu.nettrace"), bytes).unwrap();
    path
}

#[test]
fn cpu_samples_beside_a_recording_are_exported_with_it() {
    let read = |paths: &[&Path], options: &Options, out: &Path| {
        let paths: Vec<_> = paths.iter().map(|path| path.to_path_buf()).collect();
        let read = export(&paths, options, &Destination::File(out.to_owned()), &mut |_, _| true).unwrap();
        let bytes = std::fs::read(out).unwrap();
        std::fs::remove_file(out).unwrap();
        (read.into_iter().map(|read| read.path).collect::<Vec<_>>(), bytes)
    };
    for later in [-300_000_000, 0, 300_000_000] {
        let folder = tempfile::tempdir().unwrap();
        let (path, out) = (with_samples(folder.path(), later), folder.path().join("out"));
        let samples = folder.path().join("a.cpu.nettrace");
        let (files, folded) = read(&[&path], &options(TraceFormat::Folded), &out);
        assert_eq!((files, String::from_utf8(folded).unwrap().trim()), (vec![samples.clone()], "thread 42/43;inflate 3"), "{later}");
        // Times are relative to the recording.
        let window = 1_900_000_000..=2_100_000_000;
        let part = Options { part: Part { window, ..Part::default() }, ..options(TraceFormat::Folded) };
        assert_eq!(String::from_utf8(read(&[&path], &part, &out).1).unwrap().trim(), "thread 42/43;inflate 1", "{later}");
        for format in [TraceFormat::Speedscope, TraceFormat::Pprof] {
            assert_eq!(read(&[&path], &options(format), &out).0, std::slice::from_ref(&samples), "{format:?}");
        }
        let perfetto = options(TraceFormat::Perfetto);
        let (files, trace) = read(&[&path], &perfetto, &out);
        assert_eq!(files, [path.clone(), samples.clone()]);
        let packets = fields(&trace).map(|packet| packet.unwrap().1.bytes().unwrap());
        let samples_in_trace = packets.flat_map(fields).filter(|field| field.as_ref().unwrap().0 == packet::PERF_SAMPLE).count();
        assert_eq!(samples_in_trace, 3, "only those of the kernel: {later}");
        // Each sample appears once even if the sample file is listed as well.
        assert_eq!(read(&[&path, &folder.path().join("./a.cpu.nettrace")], &perfetto, &out).1, trace);
        assert_eq!(read(&[&path], &options(TraceFormat::Csv), &out).0, [path]);
    }
    // Samples of another recording are left out.
    let folder = tempfile::tempdir().unwrap();
    let path = with_samples(folder.path(), 61_000_000_000);
    assert_eq!(read(&[&path], &options(TraceFormat::Perfetto), &folder.path().join("out")).0, [path]);
}

/// The message must not be about the recording, which is intact.
#[test]
fn failure_to_write_a_joined_file_is_separate_from_errors_of_the_recording() {
    let folder = tempfile::tempdir().unwrap();
    let path = with_samples(folder.path(), 0);
    let read_only = File::open(&path).unwrap();
    assert!(write_joined(&path, &read_only, &mut |_, _| true).unwrap().is_err());
}

/// The clocks of recordings count from boot; the boot time is derived from the system clock.
#[test]
fn recordings_from_before_and_after_a_restart_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let recording = |name: &str, seconds: i64, unix_ms: Option<i64>| {
        let path = folder.path().join(name);
        let header = TraceHeader {
            sync_ticks: seconds * 1_000_000_000,
            sync_utc: unix_ms.map(UtcTime::from_unix_ms),
            process_id: 42,
            ..TraceHeader::default()
        };
        std::fs::write(&path, empty_trace(header)).unwrap();
        path
    };
    let first = recording("1", 100, Some(1_000_000));
    let export = |paths: &[PathBuf]| {
        let out = folder.path().join("out");
        let result = export(paths, &options(TraceFormat::Perfetto), &Destination::File(out.clone()), &mut |_, _| true);
        let is_made = std::fs::remove_file(out).is_ok();
        assert_eq!(is_made, result.is_ok());
        result
    };
    // A difference of half a second is an adjustment of the system clock.
    for other in [recording("2", 160, Some(1_060_000)), recording("3", 160, Some(1_060_500)), recording("4", 5, None)] {
        assert_eq!(export(&[first.clone(), other]).unwrap().len(), 2);
    }
    let later = recording("5", 50, Some(1_060_000));
    let refused = export(&[first.clone(), later.clone()]).unwrap_err();
    assert!(matches!(&refused, ExportError::OtherBoot { first: one, other } if *one == first && *other == later), "{refused:?}");
    assert!(refused.to_string().contains("were recorded before and after a reboot"), "{refused}");
}
