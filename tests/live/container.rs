//! Programs in separate PID and mount namespaces, as in a container: discovered, recorded and dumped from outside.

use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use crate::cpu::{profile, total};
use crate::support::{Invocation, Program, folder, runtimes};
use crate::{table, trace};

fn run(program: &Program, command: &str, arguments: &[&str]) -> Value {
    let pid = program.pid().to_string();
    Invocation::new([&[command, &pid], arguments, &["--json"]].concat()).run().json()
}

#[test]
fn containerized_process_is_reachable_from_host() {
    if !runtimes::namespaces() {
        return;
    }
    runtimes::each(runtimes::all().into_iter().chain(runtimes::single_file_net10()).collect(), |runtime| {
        // A folder with the same path on both sides.
        let place = folder();
        let mut program = runtime.any().env("DOTNET_PerfMapJitDumpPath", place.path()).contained().start();
        let info = run(&program, "info", &[]);
        let root = format!("/proc/{}/root", program.pid());
        let socket = program.socket();
        assert!(socket.starts_with(&root), "{runtime} is not contained");
        let facts = json!([info["ns_pid"], info["contact"], info["runtime_version"], info["socket"]]);
        assert_eq!(facts, json!([1, "ok", runtime.version, socket.to_str().unwrap()]));

        let file = place.path().join("a.nettrace");
        let result = run(&program, "trace", &["-o", file.to_str().unwrap(), "--duration", "300ms"]);
        // It reports its PID in its own namespace.
        assert_eq!(trace::assert_complete(&file, &result).process_id, 1);

        let result = run(&program, "dump", &["--type", "full"]);
        let inside = PathBuf::from(result["path"].as_str().unwrap());
        let outside = Path::new(result["path_seen_here"].as_str().unwrap());
        assert_eq!((inside.parent(), outside), (Some(program.folder()), program.reach(&inside).as_path()), "{runtime}");
        table::assert_core(outside, &result);
        assert!(!inside.exists(), "{runtime} wrote it on this side");
        // A folder behind a link that leads to it only in the file system of the process.
        let [dumps, link] = ["dumps", "link"].map(|name| program.folder().join(name));
        std::fs::create_dir(program.reach(&dumps)).unwrap();
        std::os::unix::fs::symlink(&dumps, program.reach(&link)).unwrap();
        let result = run(&program, "dump", &["--type", "full", "-o", link.to_str().unwrap()]);
        let inside = PathBuf::from(result["path"].as_str().unwrap());
        assert_eq!(inside.parent(), Some(link.as_path()), "{runtime}");
        assert!(program.reach(&dumps.join(inside.file_name().unwrap())).exists(), "{runtime}");
        let relative = Invocation::new(["dump", &program.pid().to_string(), "-o", "core"]).run();
        relative.assert_refused(2, "the target has a file system of its own: give an absolute path");

        if info["capabilities"]["perf_map"] == true {
            let files: Vec<_> = table::perf_map_files(runtime, 1).map(|file| format!("{root}{}/{file}", place.path().display())).collect();
            assert_eq!(run(&program, "perfmap", &["on"])["files"], json!(files));
            run(&program, "perfmap", &["off"]);
        }
        assert!(program.is_alive() && program.answers(), "{runtime}");
    });
}

/// Names of native functions are from the files that the process has mapped, which are at another path here.
#[test]
fn containerized_process_is_sampled() {
    if !runtimes::namespaces() {
        return;
    }
    runtimes::each_in_turn(runtimes::with("known"), |runtime| {
        let mut program = runtime.program("known").contained_at_mount().start();
        program.command("spend 600000");
        let Some((profile, output)) = profile(&program, &["--duration", "2s"]) else { return };
        let [managed, native] = ["Known.Main()", "coreclr_execute_assembly"].map(|name| total(&profile, name));
        assert!(managed > 100.0 && native > 0.9 * managed, "{runtime}: {managed} ms, {native} ms: {}", output.stdout);
        let caller = profile["methods"].as_array().unwrap().iter().find(|method| method["name"] == "coreclr_execute_assembly");
        assert_eq!(caller.unwrap()["module"], "libcoreclr.so", "{runtime}");
        assert!(program.is_alive() && program.answers(), "{runtime}");
    });
}
