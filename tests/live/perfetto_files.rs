//! Several recordings in one Perfetto trace: a process has one row, and so has each of its threads, in however many recordings it is.

use std::path::Path;

use crate::exports::done;
use crate::support::{Program, folder, runtimes};
use crate::trace_processor::{Counted, Engine};

const RECORD: [&str; 6] = ["--profile", "dotnet-common", "--profile", "dotnet-sampled-thread-time", "--duration", "500ms"];

fn record(program: &mut Program, file: &Path, more: &[&str]) {
    let pid = program.pid().to_string();
    done(&[&["trace", &pid, "-o", file.to_str().unwrap()][..], more].concat());
}

/// Exports files into one trace, and returns the number of rows per process, by the PID in the files.
fn rows(engine: &Engine, files: &[&Path], trace: &Path) -> Vec<(u64, u64)> {
    let mut words = vec!["export"];
    words.extend(files.iter().map(|file| file.to_str().unwrap()));
    words.extend(["--format", "perfetto", "-o", trace.to_str().unwrap()]);
    done(&words);
    engine.assert_no_errors(trace, "");
    // Every thread appears once, and belongs to a process.
    let twice = "select upid, tid, count(*) as n from thread where tid != 0 group by 1, 2 having n > 1 or upid is null";
    assert_eq!(engine.query(trace, twice), [] as [serde_json::Value; 0], "{}", trace.display());
    let processes = engine.query(trace, "select pid, count(*) as n from process where pid != 0 group by pid order by pid");
    processes.iter().map(|row| (row["pid"].as_u64().unwrap(), row["n"].as_u64().unwrap())).collect()
}

#[test]
fn recordings_share_one_row_per_process() {
    let Some(engine) = Engine::newest() else { return };
    let place = folder();
    runtimes::each(runtimes::with("known"), |runtime| {
        let [first, second, other, trace] =
            ["1", "2", "3", "4"].map(|name| place.path().join(format!("{}-{name}.nettrace", runtime.version)));
        let [mut program, mut another] = [0; 2].map(|_| runtime.program("known").start());
        program.command("spend 600000");
        record(&mut program, &first, &RECORD);
        record(&mut program, &second, &RECORD);
        record(&mut another, &other, &RECORD);
        let (pid, other_pid) = (u64::from(program.pid()), u64::from(another.pid()));
        // They have worked enough.
        drop((program, another));
        let one = trace.with_extension("one");
        assert_eq!(rows(&engine, &[&first, &second], &one), [(pid, 1)], "{runtime}");
        let samples: u64 = [&first, &second].map(|file| Counted::of(file).samples.values().sum::<u64>()).into_iter().sum();
        assert_eq!(engine.query(&one, "select count(*) as n from perf_sample")[0]["n"], samples, "{runtime}");
        let mut both = vec![(pid, 1), (other_pid, 1)];
        both.sort_unstable();
        assert_eq!(rows(&engine, &[&first, &other, &second], &trace.with_extension("two")), both, "{runtime}");
    });
}

/// Both have PID 1 in their namespace, run the same program and were recorded since the same boot of the machine.
#[test]
fn processes_in_two_containers_have_two_rows() {
    let Some(engine) = Engine::newest() else { return };
    if !runtimes::namespaces() {
        return;
    }
    let place = folder();
    runtimes::each(runtimes::with("known"), |runtime| {
        let [first, second] = ["1", "2"].map(|name| place.path().join(format!("{}-{name}.nettrace", runtime.version)));
        let trace = first.with_extension("perfetto-trace");
        let [mut one, mut other] = [0; 2].map(|_| runtime.program("known").contained().start());
        record(&mut one, &first, &RECORD);
        record(&mut other, &second, &RECORD);
        let mut words = vec!["export"];
        words.extend([&first, &second].map(|file| file.to_str().unwrap()));
        words.extend(["--format", "perfetto", "-o", trace.to_str().unwrap()]);
        done(&words);
        engine.assert_no_errors(&trace, "");
        assert_eq!(engine.query(&trace, "select count(*) as n from process where pid = 1")[0]["n"], 2, "{runtime}");
    });
}

/// The kernel's samples are in a separate file in another format.
#[test]
fn a_recording_and_its_cpu_samples_have_one_row() {
    let Some(engine) = Engine::newest() else { return };
    let place = folder();
    runtimes::each_in_turn(runtimes::with("known"), |runtime| {
        let file = place.path().join(format!("{}.nettrace", runtime.version));
        let mut program = runtime.program("known").start();
        program.command("spend 600000");
        record(&mut program, &file, &["--profile", "cpu", "--profile", "dotnet-common", "--separate", "--duration", "1s"]);
        let samples = file.with_extension("cpu.nettrace");
        if !samples.exists() {
            return runtimes::skip("the kernel does not sample");
        }
        let pid = u64::from(program.pid());
        // It has worked enough.
        drop(program);
        for (number, files) in [&[file.as_path()][..], &[&samples, &file]].into_iter().enumerate() {
            let trace = file.with_extension(format!("{number}.trace"));
            assert_eq!(rows(&engine, files, &trace), [(pid, 1)], "{runtime}");
            assert!(engine.query(&trace, "select count(*) as n from perf_sample")[0]["n"].as_u64().unwrap() > 100, "{runtime}");
            // The application name is known from the recording only, not from the kernel.
            assert_eq!(engine.query(&trace, &format!("select name from process where pid = {pid}"))[0]["name"], "known", "{runtime}");
        }
    });
}
