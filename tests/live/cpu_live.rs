//! `dn-top cpu --live` in a terminal.

use std::io::Write;
use std::time::Duration;

use serde_json::{Value, json};

use crate::cpu::{number, profile, total};
use crate::support::{Invocation, Signal, TIMEOUT, folder, poll, runtimes};

/// The live view is redrawn in place.
#[test]
fn live_view_is_redrawn_in_place() {
    runtimes::each(runtimes::with("known"), |runtime| {
        let mut program = runtime.program("known").start();
        program.command("spend 600000");
        let pid = program.pid().to_string();
        if profile(&program, &["--duration", "100ms"]).is_none() {
            return;
        }
        let mut screen = Invocation::new(["cpu", &pid, "--live"]).screen(100, 12);
        let header = |shown: &str| shown.lines().find(|line| line.contains(" of one core now; ")).map(str::to_owned);
        let first = header(&screen.wait_until("a moment", |shown| header(shown).is_some()));
        let second = screen.wait_until("another moment", |shown| header(shown).is_some_and(|line| Some(line) != first));
        assert_eq!(second.matches(" of one core now; ").count(), 1, "{runtime}: {second}");
        assert!(second.matches("METHOD").count() <= 1, "{runtime}: {second}");
        // The summary of all samples follows the last update. It may be longer than this screen.
        screen.resize(100, 100);
        screen.signal(Signal::INT);
        screen.wait_for("OFF CPU");
        assert_eq!(screen.wait_exit().exit_code(), 130, "{runtime}");
        assert!(program.is_alive(), "{runtime}");
    });
}

#[test]
fn second_signal_skips_method_names() {
    runtimes::each(runtimes::with("known"), |runtime| {
        let mut program = runtime.program("known").start();
        program.command("spend 600000");
        if profile(&program, &["--duration", "100ms"]).is_none() {
            return;
        }
        let running = Invocation::new(["cpu", &program.pid().to_string(), "--live", "--json"]).start();
        assert!(poll(TIMEOUT, || running.stdout().contains('\n').then_some(())).is_some(), "{runtime}: {}", running.stderr());
        // A stopped process does not respond, and sends no names.
        program.signal(Signal::STOP);
        running.signal(Signal::INT);
        running.wait_for_stderr("stopping");
        running.signal(Signal::INT);
        let output = running.wait();
        program.signal(Signal::CONT);
        assert_eq!(output.code, 130, "{runtime}: {}", output.stderr);
        assert!(output.stderr.contains("method names may be missing: interrupted"), "{runtime}: {}", output.stderr);
        let summary: Value = serde_json::from_str(output.stdout.lines().last().unwrap()).unwrap();
        assert!(summary["type"] == "summary" && number(&summary["samples"]) > 0.0, "{runtime}: {summary}");
        assert!(program.is_alive() && program.answers(), "{runtime}");
    });
}

#[test]
fn reader_that_pauses_does_not_delay_a_signal() {
    runtimes::each(runtimes::with("known"), |runtime| {
        let mut program = runtime.program("known").start();
        program.command("spend 600000");
        if profile(&program, &["--duration", "100ms"]).is_none() {
            return;
        }
        let (_reader, mut writer) = std::io::pipe().unwrap();
        // A pipe holds 64 KiB.
        writer.write_all(&[b' '; 60 << 10]).unwrap();
        let mut running = Invocation::new(["cpu", &program.pid().to_string(), "--live", "--json", "-n", "1000"]).stdout(writer).start();
        std::thread::sleep(Duration::from_secs(6));
        assert!(running.is_alive(), "{runtime}: {}", running.stderr());
        running.signal(Signal::TERM);
        assert_eq!(running.wait().code, 130, "{runtime}");
        assert!(program.is_alive() && program.answers(), "{runtime}");
    });
}

#[test]
fn live_view_shows_current_hot_methods() {
    runtimes::each_in_turn(runtimes::with("known"), |runtime| {
        let mut program = runtime.program("known").start();
        program.command("spend 600000");
        if profile(&program, &["--duration", "100ms"]).is_none() {
            return;
        }
        let pid = program.pid().to_string();
        let place = folder();
        let file = place.path().join("a.nettrace");
        let running = Invocation::new(["cpu", &pid, "--live", "--json", "-n", "5", "-o", file.to_str().unwrap()]).start();
        let show = |count| {
            let is_shown = poll(TIMEOUT * 2, || (running.stdout().lines().count() >= count).then_some(())).is_some();
            assert!(is_shown, "{runtime}: {} {}", running.stdout(), running.stderr());
        };
        show(1);
        let before = program.cpu_time();
        show(4);
        // On a busy machine it gets only a part of a core.
        let used_ms = (program.cpu_time() - before).as_secs_f64() * 1e3;
        let output = running.interrupt();
        let mut documents: Vec<Value> = output.stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        let summary = documents.pop().unwrap();
        assert_eq!((&summary["type"], &summary["schema"]), (&json!("summary"), &json!(1)), "{runtime}: {summary}");
        assert!(total(&summary, "Known.Burn(int)") > used_ms * 0.7 && summary["complete"] == true && file.exists(), "{runtime}: {summary}");
        let mut before = 0.0;
        for moment in &documents {
            assert_eq!((&moment["type"], &moment["schema"]), (&json!("interval"), &json!(1)), "{runtime}: {moment}");
            let hottest = &moment["methods"][0];
            assert_eq!((&hottest["name"], &hottest["kind"]), (&json!("Known.Burn(int)"), &json!("managed")), "{runtime}: {moment}");
            let (now, rate) = (number(&hottest["now_percent"]), number(&hottest["now_ms_per_s"]));
            assert!((now * 10.0 - rate).abs() < 0.01 && now > 0.0 && now < 110.0, "{runtime}: {moment}");
            assert!(now <= number(&hottest["now_total_percent"]) && now <= number(&moment["now_percent"]) + 0.01, "{runtime}: {moment}");
            let methods = moment["methods"].as_array().unwrap();
            let of_caller = methods.iter().find(|method| method["name"] == "Known.Main()");
            assert!(methods.len() <= 5 && of_caller.is_none_or(|main| number(&main["now_total_percent"]) >= now), "{runtime}: {moment}");
            let (elapsed, window) = (number(&moment["elapsed_ms"]), number(&moment["window_ms"]));
            assert!(elapsed > before && window <= elapsed.min(2100.0) + 1.0, "{runtime}: {moment}");
            before = elapsed;
        }
        assert!(before > 900.0 * documents.len() as f64, "{runtime}: {} in {before} ms", documents.len());
        // It ends when its reader closes the pipe.
        let head = Invocation::of("sh", ["-c", "\"$@\" | head -n 1", "sh", env!("CARGO_BIN_EXE_dn-top"), "cpu", &pid, "--live"]).start();
        let stopped = Invocation::new(["cpu", &pid, "--live", "--duration", "3500ms"]).run();
        assert_eq!(stopped.code, 0, "{runtime}: {}", stopped.stderr);
        let moments = stopped.stdout.matches(" % of one core now; ").count();
        assert!((2..=4).contains(&moments) && stopped.stdout.contains("METHOD\n"), "{runtime}: {}", stopped.stdout);
        // The summary of all samples follows at the end, and without a terminal there are no escape sequences.
        assert!(stopped.stdout.contains(" % of one core; ") && !stopped.stdout.contains('\x1b'), "{runtime}: {}", stopped.stdout);
        let head = head.wait();
        assert!(head.code == 0 && head.stdout.lines().count() == 1, "{runtime}: {} {}", head.stdout, head.stderr);
        assert!(program.is_alive(), "{runtime}");
    });
}
