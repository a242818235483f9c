//! Samples and their stacks.

use super::*;

/// Encodes two samples: of a method of this name, called by another, and of a stub that it calls.
fn named_samples(name: &str) -> Vec<u8> {
    let mut encoder = Encoder::new(TraceHeader { process_id: 7, pointer_size: 8, ..TraceHeader::default() });
    let [load, sample] = [kind(RUNTIME, 143, 1), kind(SAMPLE_PROFILER, 0, 0)].map(|kind| encoder.metadata(&kind));
    let methods = [(1, "T", name), (2, "T", "Outer"), (3, "dynamicClass", "IL_STUB_PInvoke")];
    let loads = methods.map(|(number, namespace, name)| (load, 0, method(number, namespace, name)));
    let stacks = [&[0x1004, 0x2004][..], &[0x3004, 0x1004, 0x2004]].map(|frames| encoder.stack(frames));
    let samples = stacks.map(|stack| (sample, stack, vec![2, 0, 0, 0]));
    for (timestamp, (metadata, stack, payload)) in (1..).zip(loads.into_iter().chain(samples)) {
        let event = NewEvent { metadata, timestamp, thread: 70, capture_thread: 70, stack, payload: &payload, ..NewEvent::default() };
        encoder.event(&event);
    }
    encoder.end();
    encoder.take()
}

#[test]
fn folded_stacks_have_one_line_each_and_no_stubs() {
    let folded = String::from_utf8(export(&named_samples("In;n\ner"), TraceFormat::Folded)).unwrap();
    assert_eq!(folded, "thread 70;T.Outer();T.In_n_er() 2\n");
    let html = String::from_utf8(export(&named_samples("<Inner>"), TraceFormat::Html)).unwrap();
    assert!(html.contains("thread 70;T.Outer();T.&lt;Inner>() 2\n"));
}

/// Nodes and frames are numbered from the start again once there are too many.
#[test]
fn more_stacks_than_are_kept_are_exported() {
    const DEPTH: u64 = 250;
    let mut encoder = Encoder::new(TraceHeader { process_id: 7, pointer_size: 8, ..TraceHeader::default() });
    let sample = encoder.metadata(&kind(SAMPLE_PROFILER, 0, 0));
    let mut stack = |number: u64| encoder.stack(&(0..DEPTH).map(|frame| (number << 20) + frame * 16 + 8).collect::<Vec<_>>());
    let mut stacks: Vec<_> = (1..=300).map(&mut stack).collect();
    // One from before the reset.
    stacks.push(stacks[0]);
    for (timestamp, stack) in (1..).zip(stacks) {
        let event =
            NewEvent { metadata: sample, timestamp, thread: 70, capture_thread: 70, stack, payload: &[2, 0, 0, 0], ..NewEvent::default() };
        encoder.event(&event);
    }
    encoder.end();
    let bytes = encoder.take();
    // All addresses of a stack have its number in their upper part.
    let number_of = |names: Vec<&str>| {
        let addresses = names.iter().map(|name| u64::from_str_radix(name.trim_start_matches("0x"), 16).unwrap());
        let numbers: std::collections::HashSet<u64> = addresses.map(|address| address >> 20).collect();
        assert_eq!((names.len() as u64, numbers.len()), (DEPTH, 1), "{numbers:?}");
        numbers.into_iter().sum::<u64>()
    };
    let expected: std::collections::BTreeMap<_, _> = (1..=300).map(|number| (number, if number == 1 { 2 } else { 1 })).collect();

    let folded = String::from_utf8(export(&bytes, TraceFormat::Folded)).unwrap();
    let mut samples = std::collections::BTreeMap::new();
    for line in folded.lines() {
        let (stack, count) = line.rsplit_once(' ').unwrap();
        *samples.entry(number_of(stack.split(';').skip(1).collect())).or_default() += count.parse::<u64>().unwrap();
    }
    assert_eq!(samples, expected);

    let pprof = export(&bytes, TraceFormat::Pprof);
    let all = |bytes, of| fields(bytes).map(Result::unwrap).filter(move |(number, _)| *number == of).map(|(_, value)| value);
    let number = |bytes, of| all(bytes, of).next().map_or(0, |value| value.number().unwrap());
    let strings: Vec<_> = all(&pprof, 6).map(|text| std::str::from_utf8(text.bytes().unwrap()).unwrap()).collect();
    let functions = all(&pprof, 5).map(|function| function.bytes().unwrap());
    let mut names = std::collections::HashMap::new();
    for function in functions {
        assert_eq!(names.insert(number(function, 1), strings[number(function, 2) as usize]), None, "its number is used once");
    }
    samples.clear();
    for sample in all(&pprof, 2).map(|sample| sample.bytes().unwrap()) {
        let packed = |of| varints(all(sample, of).next().unwrap().bytes().unwrap());
        *samples.entry(number_of(packed(1).iter().map(|id| names[id]).collect())).or_default() += packed(2)[0];
    }
    assert_eq!(samples, expected);
}

fn varints(bytes: &[u8]) -> Vec<u64> {
    let mut reader = crate::wire::Reader::new(bytes);
    std::iter::from_fn(|| (!reader.is_empty()).then(|| reader.varu64().unwrap())).collect()
}

#[test]
fn calls_are_those_of_the_kernel_samples_if_there_are_any() {
    let header = TraceHeader { process_id: 7, sampling_interval_ns: 1_000_000, ..TraceHeader::default() };
    let mut encoder = CollectorEncoder::new(&header);
    let runtime = encoder.metadata(&kind(SAMPLE_PROFILER, 0, 0), true);
    let kernel = encoder.metadata(&Metadata { name: "cpu".to_owned(), ..kind("Universal.Events", 1, 0) }, true);
    for at in 10..20 {
        encoder.event(kernel, (7, 70), at * 1_000_000, &[0x20], None, &[1]);
        encoder.event(runtime, (7, 70), at * 1_000_000 + 1, &[0x10], None, &[2, 0, 0, 0]);
    }
    let bytes = encoder.finish();
    let calls: Vec<_> = chromium(&bytes, "cat", "sample").iter().map(|edge| (edge["ph"].clone(), edge["name"].clone())).collect();
    assert_eq!(calls, [("B".into(), "0x20".into()), ("E".into(), "0x20".into())]);
    let trace = export(&bytes, TraceFormat::Perfetto);
    let count = |field| packets(&trace).flat_map(fields).map(Result::unwrap).filter(|(number, _)| *number == field).count();
    assert_eq!((count(packet::TRACK_EVENT), count(packet::PERF_SAMPLE)), (2, 10));
}

#[test]
fn pprof_profile_of_a_part_has_its_time_and_duration() {
    let mut encoder = Encoder::new(TraceHeader { sync_utc: Some(UtcTime::from_unix_ms(1000)), ..TraceHeader::default() });
    let metadata = encoder.metadata(&kind(SAMPLE_PROFILER, 0, 0));
    for timestamp in [1_000_000_000, 2_000_000_000, 3_000_000_000] {
        encoder.event(&NewEvent { metadata, timestamp, payload: &[2, 0, 0, 0], ..NewEvent::default() });
    }
    encoder.end();
    let part = Part { window: 1_500_000_000..=2_500_000_000, ..Part::default() };
    let profile = export_part(&encoder.take(), TraceFormat::Pprof, part);
    let number = |of| fields(&profile).map(Result::unwrap).find(|(number, _)| *number == of).map(|(_, value)| value);
    assert_eq!([9, 10].map(number), [Some(Value::Number(2_500_000_000)), Some(Value::Number(1_000_000_000))]);
}
