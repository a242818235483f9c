//! Changes to a runtime from the command line: environment variables, startup hooks, profilers.

use std::fs;
use std::path::Path;

use crate::fatal_requests::suspended;
use crate::support::runtimes;
use crate::support::{Invocation, Output, Program, TIMEOUT, folder, poll};

const CLASS: &str = "{123e4567-e89b-12d3-a456-426614174000}";

fn run(program: &Program, words: &[&str]) -> Output {
    let pid = program.pid().to_string();
    let words: Vec<&str> = words.iter().map(|word| if *word == "PID" { &pid } else { *word }).collect();
    Invocation::new(words).run()
}

/// Panics unless the command succeeded and reported it.
fn done(program: &Program, words: &[&str], message: &str) {
    let output = run(program, words);
    assert!(output.code == 0 && output.stderr.contains(message), "{words:?} {output:?}");
}

fn refused(program: &Program, words: &[&str], code: i32, message: &str) {
    let output = run(program, words);
    assert!(output.code == code && output.stderr.contains(message) && output.stdout.is_empty(), "{words:?} {output:?}");
}

/// Waits until a file has this text.
fn wait_for_text(file: &Path, text: &str) {
    let found = || (fs::read_to_string(file).unwrap_or_default() == text).then_some(());
    assert!(poll(TIMEOUT, found).is_some(), "{}: {:?}", file.display(), fs::read_to_string(file));
}

#[test]
fn startup_hook_runs_in_running_process() {
    runtimes::each(runtimes::since(8, runtimes::all()), |runtime| {
        let place = folder();
        let seen = place.path().join("seen");
        let mut program = runtime.any().env("DN_TOP_HOOK", &seen).start();
        let text = place.path().join("text.dll");
        fs::write(&text, "MZ, and no assembly").unwrap();
        for (path, why) in [
            ("/no/such.dll", "/no/such.dll does not exist in the process's file system"),
            ("relative.dll", "relative.dll does not exist in the process's file system"),
            (place.path().to_str().unwrap(), "is not a regular file"),
            (text.to_str().unwrap(), "text.dll is not a .NET assembly"),
            (runtime.host().to_str().unwrap(), "dotnet is not a .NET assembly"),
        ] {
            refused(&program, &["startup-hook", "PID", path], 1, why);
        }
        assert!(program.is_alive() && program.answers() && !seen.exists());
        done(&program, &["startup-hook", "PID", runtime.hook().to_str().unwrap()], "startup hook accepted");
        wait_for_text(&seen, "DN_TOP_SET=");
        assert!(program.is_alive() && program.answers());
    });
}

#[test]
fn suspended_process_accepts_profiler_hook_and_variable() {
    runtimes::each(runtimes::since(8, runtimes::all()), |runtime| {
        let place = folder();
        let (seen, loaded) = (place.path().join("seen"), place.path().join("loaded"));
        let mut program = suspended(runtime.any().env("DN_TOP_PROFILER", &loaded).env("DN_TOP_HOOK", &seen));
        let profiler = runtime.profiler();
        let library = ["--guid", CLASS, "--path", profiler.to_str().unwrap()];
        refused(
            &program,
            &[&["profiler", "attach", "PID"], &library[..]].concat(),
            1,
            "not sent, because the process is suspended at startup",
        );
        refused(&program, &["perfmap", "PID", "on"], 1, "not sent, because the process is suspended at startup");
        refused(&program, &["startup-hook", "PID", "/no/such.dll"], 1, "does not exist in the process's file system");
        done(&program, &["set-env", "PID", "DN_TOP_SET=seen"], "DN_TOP_SET was set");
        done(&program, &["startup-hook", "PID", runtime.hook().to_str().unwrap()], "it runs when the process is resumed");
        done(&program, &[&["profiler", "startup", "PID"], &library[..]].concat(), "profiler set; it is loaded when the process is resumed");
        assert!(!seen.exists() && !loaded.exists());
        done(&program, &["resume", "PID"], "was resumed");
        wait_for_text(&seen, "DN_TOP_SET=seen");
        wait_for_text(&loaded, "started");
        refused(&program, &[&["profiler", "startup", "PID"], &library[..]].concat(), 1, "is not suspended at startup");
        done(&program, &["resume", "PID"], "was not suspended; nothing changed");
        assert!(program.is_alive() && program.answers());
    });
}

#[test]
fn a_profiler_is_attached_to_every_runtime() {
    runtimes::each(runtimes::all_and_single_files(), |runtime| {
        let place = folder();
        let (data, attached) = (place.path().join("data"), place.path().join("attached"));
        fs::write(&data, attached.to_str().unwrap()).unwrap();
        let profiler = runtime.profiler();
        let attach = |path: &str, program: &Program| {
            run(program, &["profiler", "attach", "PID", "--guid", CLASS, "--path", path, "--data", data.to_str().unwrap()])
        };
        let mut program = runtime.any().start();
        // It responds shortly before a profiler can be attached.
        let is_starting = |output: &Output| ["starting up", "suspended at startup"].iter().any(|words| output.stderr.contains(words));
        let missing = poll(TIMEOUT, || Some(attach("/no/such.so", &program)).filter(|output| !is_starting(output))).unwrap();
        assert!(missing.code == 1 && missing.stderr.contains("ERROR_MOD_NOT_FOUND (0x8007007e)"), "{runtime} {missing:?}");
        let output = attach(profiler.to_str().unwrap(), &program);
        assert!(output.code == 0 && output.stderr.contains("profiler loaded"), "{runtime} {output:?}");
        wait_for_text(&attached, "attached");
        let again = attach(profiler.to_str().unwrap(), &program);
        assert!(again.code == 1 && again.stderr.contains("a profiler is already loaded in this process"), "{runtime} {again:?}");
        assert!(program.is_alive() && program.answers(), "{runtime}");
    });
}

#[test]
fn net31_explains_unsupported_commands() {
    let Some(net31) = runtimes::net31() else { return };
    let mut program = net31.any().start();
    let (profiler, hook) = (net31.profiler(), net31.hook());
    let place = folder();
    let file = place.path().join("a.nettrace");
    let trace =
        |words: &[&'static str]| [&["trace", "PID", "-o", file.to_str().unwrap()], words].concat().into_iter().map(str::to_owned).collect();
    let cases: [(Vec<String>, &str); 8] = [
        (["set-env", "PID", "A=1"].map(str::to_owned).into(), "setting environment variables needs .NET 6"),
        (["set-env", "PID", "--unset", "A"].map(str::to_owned).into(), "setting environment variables needs .NET 6"),
        (["startup-hook", "PID", hook.to_str().unwrap()].map(str::to_owned).into(), "a startup hook needs .NET 8"),
        (
            ["profiler", "startup", "PID", "--guid", CLASS, "--path", profiler.to_str().unwrap()].map(str::to_owned).into(),
            "attach the profiler instead",
        ),
        (["resume", "PID"].map(str::to_owned).into(), "resuming at startup needs .NET 5"),
        (["dump", "PID", "--crash-report", "-o", "/tmp/dn-top-no-dump"].map(str::to_owned).into(), "a crash report needs .NET 6"),
        (trace(&["--rundown", "0x38"]), "selecting the rundown needs .NET 9"),
        (
            trace(&["--clr-events", "gc", "--event-ids", "Microsoft-Windows-DotNETRuntime/1"]),
            "filtering by event id, or recording into user_events, needs .NET 10",
        ),
    ];
    for (words, message) in &cases {
        refused(&program, &words.iter().map(String::as_str).collect::<Vec<_>>(), 1, message);
    }
    assert!(!file.exists() && program.is_alive() && program.answers());
}

#[test]
fn invalid_arguments_are_rejected_before_connecting() {
    for (words, message) in [
        (&["set-env", "1", "NAME"][..], "'NAME' has no '=': give NAME=VALUE, or --unset NAME"),
        (&["set-env", "1", "=VALUE"], "must not be empty or contain"),
        (&["set-env", "1", "--unset", "A=B"], "must not be empty or contain '='"),
        (&["profiler", "attach", "1", "--guid", "1234", "--path", "/p.so"], "'1234' is not a GUID: expected 8-4-4-4-12"),
        (&["profiler", "startup", "1", "--guid", "123e4567-e89b-12d3-a456-42661417400g", "--path", "/p.so"], "is not a GUID"),
        (&["profiler", "attach", "1", "--guid", CLASS, "--path", "/p.so", "--timeout", "90days"], "--timeout is 49 days at most"),
        (&["trace", "1", "--event-ids", "A"], "expected PROVIDER/ID,ID"),
        (&["trace", "1", "--event-ids", "A/x"], "expected PROVIDER/ID,ID"),
        (&["trace", "1", "--event-ids", "Nobody/1"], "event ids of Nobody: this provider is not enabled"),
        (&["trace", "1", "--user-events", "a/b"], "is not a tracepoint name"),
        (&["trace", "1", "--user-events", "a", "--rundown", "full"], "cannot be used with '--rundown"),
        (&["trace", "1", "--user-events", "a", "--buffer-mb", "8"], "cannot be used with '--buffer-mb"),
    ] {
        let output = Invocation::new(words).run();
        assert!(output.code == 2 && output.stderr.contains(message) && output.stdout.is_empty(), "{words:?} {output:?}");
    }
}

#[test]
fn missing_user_events_prerequisites_are_reported() {
    runtimes::each(runtimes::all(), |runtime| {
        let mut program = runtime.any().start();
        let output = run(&program, &["trace", "PID", "--clr-events", "gc", "--user-events", "dn_top_test", "--duration", "100ms"]);
        // A new runtime supports it if the kernel does and we have permission.
        let kernel = Path::new("/proc/sys/kernel/user_events_max").exists();
        let may = fs::File::options().read(true).write(true).open("/sys/kernel/tracing/user_events_data").is_ok();
        let old = runtime.major() < 10;
        if old || !may {
            let is_denied =
                output.stderr.ends_with("it cannot write to user_events: this user may not register events: run dn-top with sudo\n");
            let code = if is_denied { 4 } else { 1 };
            assert!(output.code == code && output.stderr.contains("it cannot write to user_events: "), "{runtime} {output:?}");
        } else {
            assert!(output.code == 0 && output.stderr.contains(" to user_events:dn_top_test; Ctrl-C"), "{runtime} {output:?}");
            let registered = fs::read_to_string("/sys/kernel/tracing/user_events_status").unwrap();
            assert!(!registered.contains("dn_top_test"), "{runtime} {registered}");
        }
        assert_eq!(output.stderr.contains("the runtime is too old: it needs .NET 10"), old, "{runtime} {output:?}");
        assert_eq!(output.stderr.contains("needs Linux 6.4 or newer, built with CONFIG_USER_EVENTS"), !kernel, "{runtime} {output:?}");
        assert!(program.is_alive() && program.answers(), "{runtime}");
    });
}

#[test]
fn releases_are_not_mistaken_for_previews() {
    runtimes::each(runtimes::all(), |runtime| {
        let (mut program, place) = (runtime.any().start(), folder());
        let file = place.path().join("a.nettrace");
        let output = run(&program, &["trace", "PID", "--legacy", "-o", file.to_str().unwrap()]);
        output.assert_refused(1, "this runtime is not a preview of .NET Core 3.0: omit --legacy");
        assert!(!file.exists() && program.is_alive() && program.answers(), "{runtime}");
    });
}
