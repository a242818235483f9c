//! Kernel samples of a process as a nettrace file of format 6, with the universal providers that PerfView reads: `Universal.Events` for the
//! samples, `Universal.System` for mapped files and functions, and providers of its own, which other readers skip. Source: the output of `record-trace` of microsoft/one-collect, and the parsers of
//! microsoft/perfview.

mod kinds;

use std::collections::BTreeMap;
use std::ops::Range;

use crate::analysis::{CpuStack, MissingFrames, OsrCallers};
use crate::clr::payload::SampleLosses;
use crate::model::ImageIdentity;
use crate::nettrace::{CollectorEncoder, TraceHeader};
use crate::wire::Put;

use kinds::EventKinds;

/// Address range of the kernel mapping, and its name. All kernel addresses have the highest bit set.
const KERNEL_MAPPING: (Range<u64>, &[u8]) = (0xffff_8000_0000_0000..u64::MAX, b"vmlinux");
/// Name of anonymous memory: PerfView takes the module of a .NET method from the method's name only if its mapping has this name, which it has in
/// runtimes that write their code through a second mapping.
const ANONYMOUS_MAPPING: &[u8] = b"/memfd:doublemapper";
/// Maximum length of a text, in bytes.
const MAX_TEXT_BYTES: usize = 4096;

/// Writer for a file with the samples of one process.
#[derive(Debug)]
pub struct CpuTrace {
    encoder: CollectorEncoder,
    kinds: EventKinds,
    pid: u32,
    /// Samples not yet written: older ones may still follow.
    pending: Vec<Pending>,
    /// Current mappings, by start address.
    mappings: BTreeMap<u64, Mapping>,
    /// Number of mappings written: their ids start at 1; that of the kernel is 0.
    written: u64,
    payload: Vec<u8>,
    now: i64,
}

/// A mapping, or what remains of it after later mappings replaced a part.
#[derive(Debug, Clone)]
struct Mapping {
    end: u64,
    /// Id, addresses, offset and file as they were written.
    id: u64,
    whole: Range<u64>,
    file_offset: u64,
    path: Vec<u8>,
}

#[derive(Debug)]
struct Pending {
    at: i64,
    thread: u64,
    stack: Vec<u64>,
    missing: Option<MissingFrames>,
    /// For a wait: its duration from `at` on, nanoseconds. `None` if the thread was running.
    waited_ns: Option<u64>,
}

impl CpuTrace {
    /// Starts a file for one process.
    pub fn new(header: &TraceHeader, pid: u32, name: &str) -> Self {
        let mut encoder = CollectorEncoder::new(header);
        let kinds = EventKinds::define(&mut encoder);
        let mut this = Self {
            encoder,
            kinds,
            pid,
            pending: Vec::new(),
            mappings: BTreeMap::new(),
            written: 0,
            payload: Vec::new(),
            now: header.sync_ticks,
        };
        this.payload.put_varint(pid.into());
        this.put_text(name.as_bytes());
        this.put_text(b"");
        this.system_event(kinds.process);
        this.put_mapping(0, KERNEL_MAPPING.0, 0, KERNEL_MAPPING.1, None);
        this
    }

    /// Adds a mapping of code from now on, unless it exists already. It replaces earlier mappings at its addresses. `identity` returns that of the
    /// file, by which readers find its debug symbols.
    pub fn mapping(&mut self, range: Range<u64>, file_offset: u64, path: &[u8], identity: impl FnOnce() -> Option<ImageIdentity>) {
        let path = if path.is_empty() { ANONYMOUS_MAPPING } else { path };
        let is_same = |known: &Mapping| known.whole == range && known.file_offset == file_offset && known.path == path;
        if range.is_empty() || self.mapping_at(range.start).is_some_and(is_same) {
            return;
        }
        if let Some(known) = self.mapping_at(range.start).cloned() {
            // The parts before and after the new mapping remain.
            if let Some((_, before)) = self.mappings.range_mut(..range.start).next_back() {
                before.end = before.end.min(range.start);
            }
            if known.end > range.end {
                self.mappings.insert(range.end, known);
            }
        }
        while let Some((start, covered)) = self.mappings.range(range.clone()).next().map(|(start, covered)| (*start, covered.clone())) {
            self.mappings.remove(&start);
            if covered.end > range.end {
                self.mappings.insert(range.end, covered);
            }
        }
        self.written += 1;
        let new = Mapping { end: range.end, id: self.written, whole: range.clone(), file_offset, path: path.to_vec() };
        self.mappings.insert(range.start, new);
        self.put_mapping(self.written, range, file_offset, path, identity());
    }

    fn mapping_at(&self, address: u64) -> Option<&Mapping> {
        self.mappings.range(..=address).next_back().map(|(_, mapping)| mapping).filter(|mapping| address < mapping.end)
    }

    /// Adds a function: its start address, its size in bytes, and its name. A function outside all mappings is left out.
    pub fn function(&mut self, start: u64, size: u32, name: &str) {
        let mapping = match self.mapping_at(start) {
            Some(mapping) => mapping.id,
            None if KERNEL_MAPPING.0.contains(&start) => 0,
            None => return,
        };
        let payload = &mut self.payload;
        // Readers do not use the ids of functions.
        [0, mapping, start, start.saturating_add(u64::from(size.max(1)) - 1)].iter().for_each(|number| payload.put_varint(*number));
        self.put_text(name.as_bytes());
        self.system_event(self.kinds.symbol);
    }

    /// Returns the name of a .NET method in the form that runtimes write to perf maps and readers parse: return type (unknown here), module, name
    /// with parameters, and tier.
    pub fn method_name(module: &str, name: &str) -> String {
        format!("? [{}] {name}[?]", if module.is_empty() { "?" } else { module })
    }

    /// Adds the time that a thread spent in a state: `cpu`, `runnable`, or what it waited for.
    pub fn thread_time(&mut self, thread: u64, name: &str, state: &str, duration_ns: u64) {
        self.put_text(name.as_bytes());
        self.put_text(state.as_bytes());
        self.payload.put_varint(duration_ns);
        self.encoder.event(self.kinds.thread_time, (self.pid, thread), self.now, &[], None, &self.payload);
        self.payload.clear();
    }

    /// Adds the counts of missing samples.
    pub fn losses(&mut self, losses: &SampleLosses) {
        let SampleLosses { includes_kernel, lost, unreadable, throttled, missed_threads, short_threads } = *losses;
        let payload = &mut self.payload;
        [includes_kernel.into(), lost, unreadable, throttled, missed_threads, short_threads]
            .iter()
            .for_each(|number| payload.put_varint(*number));
        self.system_event(self.kinds.losses);
    }

    /// Adds a sample.
    pub fn sample(&mut self, stack: &CpuStack<'_>) {
        self.add(stack, stack.at, None);
    }

    /// Adds a wait of `ns` nanoseconds that ended at the time of the stack. The event has the time at which the wait began.
    pub fn wait(&mut self, stack: &CpuStack<'_>, ns: u64) {
        self.add(stack, stack.at.saturating_sub_unsigned(ns), Some(ns));
    }

    fn add(&mut self, &CpuStack { thread, kernel, user, missing, .. }: &CpuStack<'_>, at: i64, waited_ns: Option<u64>) {
        self.pending.push(Pending { at, thread: thread.thread, stack: [kernel, user].concat(), missing, waited_ns });
    }

    /// Writes all samples up to `until`, after which no older ones may follow, with the callers known by now, and returns the bytes to append to
    /// the file.
    pub fn write_until(&mut self, until: i64, callers: &OsrCallers) -> Vec<u8> {
        self.pending.sort_by_key(|sample| sample.at);
        let whole = self.pending.partition_point(|sample| sample.at <= until);
        for Pending { at, thread, mut stack, missing, waited_ns } in self.pending.drain(..whole) {
            self.now = self.now.max(at);
            callers.complete(&mut stack);
            let label = missing.map(|missing| (MissingFrames::LABEL, missing.label_value()));
            let kind = if waited_ns.is_some() { self.kinds.switch } else { self.kinds.sample };
            self.payload.clear();
            self.payload.put_varint(waited_ns.unwrap_or(1));
            self.encoder.event(kind, (self.pid, thread), self.now, &stack, label, &self.payload);
        }
        self.payload.clear();
        self.encoder.sequence_point();
        self.encoder.take()
    }

    /// Finishes the file and returns its last bytes.
    pub fn finish(self) -> Vec<u8> {
        self.encoder.finish()
    }

    fn put_mapping(&mut self, id: u64, range: Range<u64>, file_offset: u64, path: &[u8], identity: Option<ImageIdentity>) {
        // No metadata has the id 0, and every other mapping has its own.
        let metadata = if identity.is_some() { id } else { 0 };
        if let Some(identity) = identity {
            self.payload.put_varint(metadata);
            self.put_text(symbol_metadata(&identity).as_bytes());
            self.put_text(b"");
            self.system_event(self.kinds.mapping_metadata);
        }
        let payload = &mut self.payload;
        [id, range.start, range.end - 1, file_offset].iter().for_each(|number| payload.put_varint(*number));
        self.put_text(path);
        self.payload.put_varint(metadata);
        self.system_event(self.kinds.mapping);
    }

    fn put_text(&mut self, text: &[u8]) {
        let text = &text[..text.len().min(MAX_TEXT_BYTES)];
        self.payload.put_u16(text.len() as u16);
        self.payload.put(text);
    }

    /// Writes an event with the prepared payload.
    fn system_event(&mut self, kind: u32) {
        self.encoder.event(kind, (self.pid, self.pid.into()), self.now, &[], None, &self.payload);
        self.payload.clear();
    }
}

/// Returns the JSON by which PerfView finds debug symbols and converts addresses to theirs.
fn symbol_metadata(ImageIdentity { build_id, code_address, code_offset }: &ImageIdentity) -> String {
    let build_id: String = build_id.iter().map(|byte| format!("{byte:02x}")).collect();
    format!(r#"{{"type": "ELF","build_id": "{build_id}","p_vaddr": "{code_address:#x}","p_offset": "{code_offset:#x}"}}"#)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::analysis::{Origin, RecordedCpuTime, SampleFilter, SampledMethods};
    use crate::nettrace::{Decoder, Limits, ThreadId, UtcTime};

    #[test]
    fn new_mapping_replaces_overlapping_mappings() {
        let mut trace = CpuTrace::new(&TraceHeader::default(), 42, "App");
        let ids = |trace: &CpuTrace| [100, 120, 150, 199, 200, 250, 300].map(|address| trace.mapping_at(address).map(|mapping| mapping.id));
        trace.mapping(100..200, 0, b"/a.so", || None);
        trace.mapping(240..260, 0, b"/b.so", || None);
        // A duplicate is not written.
        trace.mapping(100..200, 0, b"/a.so", || None);
        assert_eq!((ids(&trace), trace.written), ([Some(1), Some(1), Some(1), Some(1), None, Some(2), None], 2));
        // In the middle of a mapping: both of its ends remain.
        trace.mapping(120..150, 0, b"", || None);
        assert_eq!(ids(&trace), [Some(1), Some(3), Some(1), Some(1), None, Some(2), None]);
        // Over the end of one mapping and the whole of another.
        trace.mapping(199..300, 0, b"/c.so", || None);
        assert_eq!(ids(&trace), [Some(1), Some(3), Some(1), Some(4), Some(4), Some(4), None]);
        // A different file at the same addresses.
        trace.mapping(120..150, 0, b"/d.so", || None);
        assert_eq!((ids(&trace)[1], trace.written), (Some(5), 5));
        // The original range again: it gets a new id.
        trace.mapping(100..200, 7, b"/a.so", || None);
        assert_eq!((ids(&trace), trace.mappings.len()), ([Some(6), Some(6), Some(6), Some(6), Some(4), Some(4), None], 2));
    }

    #[test]
    fn time_of_a_late_sample_is_that_of_the_latest_written() {
        let mut trace = CpuTrace::new(&TraceHeader::default(), 42, "App");
        for at in [2000, 1000, 3000] {
            trace.sample(&CpuStack { thread: ThreadId::of(43), at, kernel: &[], user: &[7], missing: None });
            trace.write_until(i64::MAX, &OsrCallers::default());
            assert_eq!(trace.now, at.max(2000));
        }
    }

    #[test]
    fn cpu_trace_round_trips() {
        let header = TraceHeader {
            sync_utc: Some(UtcTime::from_unix_ms(0)),
            sync_ticks: 1000,
            sampling_interval_ns: 1_001_001,
            ..TraceHeader::default()
        };
        let mut trace = CpuTrace::new(&header, 42, "App");
        let identity = ImageIdentity { build_id: vec![0xa9, 0x0f], code_address: 0x7000, code_offset: 0x6000 };
        assert_eq!(symbol_metadata(&identity), r#"{"type": "ELF","build_id": "a90f","p_vaddr": "0x7000","p_offset": "0x6000"}"#);
        for _ in 0..2 {
            trace.mapping(100..200, 0, b"/lib/libcoreclr.so", || Some(identity.clone()));
            trace.mapping(300..400, 0, b"/memfd:doublemapper", || None);
        }
        let kernel = 0xffff_ffff_8100_0000;
        fn stack<'a>(thread: u64, at: i64, kernel: &'a [u64], user: &'a [u64]) -> CpuStack<'a> {
            CpuStack { thread: ThreadId::of(thread), at, kernel, user, missing: None }
        }
        let sample = |trace: &mut CpuTrace, thread, at, kernel: &[u64], user: &[u64]| trace.sample(&stack(thread, at, kernel, user));
        sample(&mut trace, 43, 3000, &[], &[310, 350, 150]);
        sample(&mut trace, 42, 2000, &[kernel + 5], &[330, 150]);
        let mut bytes = trace.write_until(2500, &OsrCallers::default());
        assert_eq!((trace.pending.len(), trace.now), (1, 2000), "the other may be preceded by more");
        // Out of order, and in another part of the stream.
        for at in [9000, 5000] {
            sample(&mut trace, 44, at, &[], &[310, 350, 150]);
        }
        trace.sample(&CpuStack { missing: Some(MissingFrames::Broken), ..stack(44, 9000, &[], &[390]) });
        trace.sample(&CpuStack { missing: Some(MissingFrames::Cut), ..stack(44, 9500, &[], &[315, 350, 150]) });
        // Ended at 9800, but began before the others.
        trace.wait(&stack(43, 9800, &[kernel + 5], &[310, 350, 150]), 1800);
        assert_eq!(trace.pending.last().map(|wait| wait.at), Some(8000));
        bytes.extend(trace.write_until(i64::MAX, &OsrCallers::default()));
        trace.function(300, 20, &CpuTrace::method_name("App", "Work.Inner(int[])"));
        trace.function(340, 20, &CpuTrace::method_name("", "Outer()"));
        trace.function(320, 15, &CpuTrace::method_name("", "IL_STUB_PInvoke()"));
        trace.function(kernel, 10, "do_syscall_64");
        trace.function(9999, 10, "of no mapping");
        trace.thread_time(43, "worker", "cpu", 500);
        trace.thread_time(43, "worker", "futex", 1500);
        trace.thread_time(42, "", "io", 2000);
        let written = SampleLosses { includes_kernel: true, lost: 1, unreadable: 2, throttled: 3, missed_threads: 4, short_threads: 500 };
        trace.losses(&written);
        bytes.extend(trace.finish());

        let mut sampled = SampledMethods::default();
        let mut decoder = Decoder::new(Limits::default());
        decoder.feed(&bytes, &mut sampled).unwrap();
        assert!(decoder.finish(&mut sampled).is_complete());
        let snapshot = sampled.throughput().snapshot();
        assert_eq!((snapshot.events, snapshot.dropped), (7 + 1 + 3 + 1 + 4 + 3 + 1, 0));
        assert!(sampled.throughput().problems().is_empty());
        let RecordedCpuTime { profile, waits, threads, cut, broken, losses } = sampled.cpu().unwrap();
        assert_eq!((cut, broken, losses), (1, 1, Some(written)));
        let times: Vec<_> = threads.iter().map(|thread| (thread.thread, thread.name.as_str(), thread.cpu_ns, thread.wall_ns())).collect();
        assert_eq!(times, [(42, "", 0, 2000), (43, "worker", 500, 2000)]);
        assert_eq!(threads[1].off_cpu_ns.iter().map(|(state, ns)| (state.as_str(), *ns)).collect::<Vec<_>>(), [("futex", 1500)]);
        assert_eq!(profile.interval_ns, Some(1_001_001));
        let waits = waits.unwrap();
        let waiting = waits.methods(SampleFilter::ALL, 1).methods;
        assert_eq!((waiting[0].name.as_str(), waiting[0].own.all_ns(), waits.interval_ns), ("do_syscall_64", 1800, None));
        let found = profile.methods(SampleFilter::BUSY, 10);
        let mut methods: Vec<_> = found
            .methods
            .iter()
            .map(|method| (method.name.as_str(), method.module.as_str(), method.origin, method.own.all(), method.total.all()))
            .collect();
        methods.sort_unstable_by_key(|method| method.0);
        assert_eq!(
            methods,
            [
                ("Outer()", "", Origin::Managed, 0, 4),
                ("Work.Inner(int[])", "App", Origin::Managed, 4, 4),
                ("[libcoreclr.so]", "libcoreclr.so", Origin::Native, 0, 5),
                ("[runtime stubs]", "", Origin::Stub, 1, 1),
                ("do_syscall_64", "kernel", Origin::Kernel, 1, 1),
            ]
        );
        let threads: Vec<_> = found.threads.iter().map(|thread| (thread.thread.thread, thread.samples.all())).collect();
        assert_eq!(threads.iter().map(|(_, samples)| samples).sum::<u64>(), 6);
    }
}
