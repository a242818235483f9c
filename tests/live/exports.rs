//! Exports of recordings of real runtimes, read by Perfetto's trace processor.

use std::collections::BTreeMap;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::time::Duration;

use dn_top::analysis::SampleFilter;
use dn_top::model::RecordingAnalysis;
use dn_top::nettrace::{Event, Loss, Metadata, Sink};
use dn_top::session::{RecordedFile, read_trace};
use serde_json::json;

use crate::support::{Invocation, folder, runtimes};
use crate::trace_contents::assert_contents;
use crate::trace_processor::{Engine, assert_known_fields, assert_matches_recording};

/// All events that exports draw: samples, collections, allocations, exceptions, waits, compilation, loading.
const RECORD: [&str; 8] =
    ["--profile", "dotnet-common", "--profile", "dotnet-sampled-thread-time", "--profile", "gc-verbose", "--profile", "contention"];

pub(crate) fn done(words: &[&str]) {
    let output = Invocation::new(words).run();
    assert_eq!(output.code, 0, "{words:?}: {}", output.stderr);
}

#[test]
fn perfetto_trace_matches_recording() {
    let Some(engine) = Engine::newest() else { return };
    let place = folder();
    runtimes::each(runtimes::with("work"), |runtime| {
        let program = runtime.program("work").start();
        let pid = program.pid().to_string();
        let file = place.path().join(format!("{}.nettrace", runtime.version));
        let words = ["trace", &pid, "--duration", "2s", "-o", file.to_str().unwrap()];
        done(&[&words[..], &RECORD].concat());
        let trace = file.with_extension("perfetto-trace");
        done(&["export", file.to_str().unwrap(), "--format", "perfetto", "--flows"]);
        assert_matches_recording(&engine, &trace, &file);
        assert_contents(&engine, &trace, &file);
        let main =
            engine.query(&trace, "select thread.name as name, pid from thread join process using (upid) where tid = pid and pid > 0");
        assert_eq!((main[0]["name"].as_str(), main[0]["pid"].as_u64()), (Some(".NET Main"), Some(program.pid().into())), "{runtime}");
    });
}

/// Number of events of each kind, by provider, event ID and name.
#[derive(Default)]
struct Kinds {
    names: Vec<(String, u32, String)>,
    counts: BTreeMap<(String, u32, String), u64>,
    lost: u64,
}

impl Kinds {
    fn of(files: &[&Path]) -> Self {
        let mut kinds = Self::default();
        for file in files {
            kinds.names = vec![Default::default()];
            assert!(RecordedFile::open(file).unwrap().read(&mut kinds).unwrap().ending.is_complete(), "{}", file.display());
        }
        kinds
    }
}

impl Sink for Kinds {
    fn metadata(&mut self, metadata: &Metadata) {
        self.names.push((metadata.provider.clone(), metadata.event_id, metadata.name.clone()));
    }

    fn event(&mut self, event: &Event<'_>) {
        *self.counts.entry(self.names[event.metadata.index as usize].clone()).or_default() += 1;
    }

    fn loss(&mut self, loss: &Loss) {
        self.lost += u64::from(loss.count);
    }
}

/// A recording of a runtime and the kernel's samples of it, in one file: nothing is missing, and the results are the same as from two files.
#[test]
fn a_recording_and_its_cpu_samples_become_one_file() {
    let place = folder();
    runtimes::each_in_turn(runtimes::with("known"), |runtime| {
        let mut program = runtime.program("known").start();
        program.command("spend 600000");
        let pid = program.pid().to_string();
        let file = place.path().join(format!("{}.nettrace", runtime.version));
        let path = file.to_str().unwrap();
        let before = program.cpu_time();
        done(&["trace", &pid, "--profile", "cpu", "--profile", "dotnet-common", "--separate", "--duration", "2s", "-o", path]);
        let got = program.cpu_time() - before;
        let samples = file.with_extension("cpu.nettrace");
        if !samples.exists() {
            return runtimes::skip("the kernel does not sample");
        }
        assert!(program.is_alive() && program.answers(), "{runtime}");
        // It has worked enough.
        drop(program);
        let both = place.path().join(format!("{}-both.nettrace", runtime.version));
        let one = both.to_str().unwrap();
        let output = Invocation::new(["export", path, "--format", "nettrace", "-o", one, "--json"]).run();
        assert_eq!(output.code, 0, "{runtime}: {}", output.stderr);
        let [two, joined] = [&[file.as_path(), &samples][..], &[&both]].map(Kinds::of);
        assert_eq!((&two.counts, two.lost), (&joined.counts, joined.lost), "{runtime}");
        let document = output.json();
        let cpu = joined.counts[&("Universal.Events".to_owned(), 1, "cpu".to_owned())];
        assert_eq!((document["cpu_samples"].as_u64(), document["lost_events"].as_u64()), (Some(cpu), Some(joined.lost)), "{runtime}");
        // One per millisecond of CPU time. What the program got includes the time before and after the recording, which other tests can prolong.
        assert!(u128::from(cpu) > got.min(Duration::from_secs(2)).as_millis() / 8, "{runtime}: {got:?}: {document:#}");
        assert!(document["events"].as_u64().unwrap() > 100, "{runtime}: {document:#}");
        // Also in reports and comparisons.
        let [report, report_of_one] = [path, one].map(|path| Invocation::new(["report", path, "--json", "-n", "1000"]).run().json());
        assert_eq!((&report, &report["source"]), (&report_of_one, &json!("cpu")), "{runtime}");
        let [read, read_one] = [&file, &both].map(|file| read_trace(file, None, |_| true).unwrap().unwrap().analysis);
        let methods = |analysis: &RecordingAnalysis| {
            let methods = analysis.cpu.as_ref().unwrap().profile.methods(SampleFilter::ALL, usize::MAX);
            let mut methods: Vec<_> = methods.methods.iter().map(|method| (method.name.clone(), method.own, method.total)).collect();
            methods.sort_by(|a, b| (&a.0, a.1.running).cmp(&(&b.0, b.1.running)));
            methods
        };
        assert_eq!(methods(&read), methods(&read_one), "{runtime}");
        let rest = |analysis: &RecordingAnalysis| {
            (analysis.snapshot.jit.bodies, analysis.snapshot.gc.collections, analysis.snapshot.totals.dropped)
        };
        assert_eq!(rest(&read), rest(&read_one), "{runtime}");
        let stacks = |path: &str, out: &str| {
            let out = place.path().join(format!("{}-{out}", runtime.version));
            done(&["export", path, "--format", "folded", "-o", out.to_str().unwrap()]);
            std::fs::read_to_string(out).unwrap().lines().map(|line| line.rsplit_once(' ').unwrap().1.parse::<u64>().unwrap()).sum::<u64>()
        };
        assert_eq!(stacks(path, "two.folded"), stacks(one, "one.folded"), "{runtime}");
        // Never overwrites another file, and is readable only by its owner.
        let again = Invocation::new(["export", path, "--format", "nettrace", "-o", one]).run();
        assert!(again.code != 0 && again.stderr.contains("exists already"), "{runtime}: {}", again.stderr);
        assert_eq!(both.metadata().unwrap().permissions().mode() & 0o777, 0o600, "{runtime}");
    });
}

#[test]
fn perfetto_heap_graph_matches_heap_walk() {
    let Some(engine) = Engine::newest() else { return };
    let place = folder();
    runtimes::each(runtimes::with("known"), |runtime| {
        let mut program = runtime.program("known").start();
        program.carry_out("hold 1000");
        let file = place.path().join(format!("{}.perfetto-trace", runtime.version));
        let (pid, path) = (program.pid().to_string(), file.to_str().unwrap());
        let heap = Invocation::new(["heap", &pid, "--yes", "--json", "-n", "1000", "-o", path]).run().json();
        engine.assert_no_errors(&file, "");
        assert_known_fields(&file, &[]);
        let all = engine.query(&file, "select count(*) as objects, sum(self_size) as bytes from heap_graph_object");
        assert_eq!((&all[0]["objects"], &all[0]["bytes"]), (&heap["objects"], &heap["bytes"]), "{runtime}");
        let types = "select c.name as name, count(*) as objects, sum(o.self_size) as bytes
            from heap_graph_object o join heap_graph_class c on o.type_id = c.id group by 1";
        let mut found = BTreeMap::<String, (u64, u64)>::new();
        for row in engine.query(&file, types) {
            let number = |column: &str| row[column].as_u64().unwrap();
            found.insert(row["name"].as_str().unwrap().to_owned(), (number("objects"), number("bytes")));
        }
        for (kind, objects, bytes) in [("Held", 1000, 24_000), ("Grain[]", 1000, 124_000), ("Held[]", 1, 8024)] {
            assert_eq!(found.get(kind), Some(&(objects, bytes)), "{runtime}: {kind}");
        }
        let held = "select count(*) as n from heap_graph_reference r join heap_graph_object o on r.owner_id = o.id
            join heap_graph_class c on o.type_id = c.id where c.name = 'Held[]'";
        assert_eq!(engine.query(&file, held)[0]["n"], 1000, "{runtime}: references of the array");
        let alive = "select count(*) as n from heap_graph_object o join heap_graph_class c on o.type_id = c.id where c.name = 'Grain[]' and reachable";
        assert_eq!(engine.query(&file, alive)[0]["n"], 1000, "{runtime}: something keeps them alive");
        assert!(program.is_alive() && program.answers(), "{runtime}");
    });
}
