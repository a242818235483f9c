//! CPU time in recordings.

use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::time::{Duration, Instant};

use dn_top::analysis::{Origin, SampleFilter};
use dn_top::clr::{DASHBOARD_PROFILES, select};
use dn_top::model::{Outcome, OutputName, Phase, Recording, RecordingAnalysis, TraceOptions};
use dn_top::net::client::Client;
use dn_top::session::{Plan, Recorder, read_trace};
use serde_json::{Value, json};
use tokio::time::{sleep, timeout};

use crate::cpu::profile;
use crate::cpu_sampler::{client, sampler};
use crate::fatal_requests::suspended;
use crate::support::runtimes;
use crate::support::{Invocation, Signal, TIMEOUT, folder, poll};
use crate::trace::wait_for_session;
use crate::trace_processor::Engine;

/// Returns the CPU time of a method in a recording, and of all code, in nanoseconds; `None` before there are samples.
fn cpu_time(analysis: Option<&RecordingAnalysis>, method: &str) -> Option<(u64, u64)> {
    let methods = analysis?.cpu.as_ref()?.profile.methods(SampleFilter::ALL, usize::MAX);
    let found = methods.methods.iter().find(|found| found.name == method)?;
    Some((found.total.all_ns(), methods.samples.all_ns()))
}

/// Returns the plan of a recording as the dashboard starts it, with these profiles.
fn plan(client: &Client, file: &Path, profiles: &[&str]) -> Plan {
    let options = TraceOptions {
        file: Some(file.to_owned()),
        ..TraceOptions::of_profiles(&profiles.iter().map(ToString::to_string).collect::<Vec<_>>())
    };
    Plan {
        analyzed: true,
        ..Plan::from_options(&options, client.endpoint().key, "known".into(), Path::new("/"), &OutputName::default()).unwrap()
    }
}

#[test]
fn cpu_profile_shows_and_stores_kernel_samples() {
    runtimes::each_async_in_turn(runtimes::with("known"), async |runtime| {
        let mut program = runtime.program("known").start();
        program.spend(500);
        program.command("spend 600000");
        let client = client(&program).await;
        if sampler(&client).is_none() {
            return;
        }
        let folder = folder();
        let file = folder.path().join("a.nettrace");
        let began = Instant::now();
        let recorder = Recorder::start(client.clone(), plan(&client, &file, &DASHBOARD_PROFILES)).await.unwrap();
        let mut progress = recorder.progress();
        let hottest = |recording: &Recording| {
            Some(recording.analysis.as_ref()?.cpu.as_ref()?.profile.methods(SampleFilter::ALL, 1).methods.first()?.name.clone())
        };
        let is_named = |recording: &Recording| hottest(recording).as_deref() == Some("Known.Burn");
        let shown = timeout(TIMEOUT, progress.wait_for(is_named)).await.is_ok();
        assert!(shown, "{runtime}: {:?}", hottest(&recorder.progress().borrow()));
        eprintln!("{runtime}: the hottest method has its name after {:.2} s", began.elapsed().as_secs_f64());
        // One thread keeps a core busy: now, on average, and by the threads' CPU times.
        let is_busy = |recording: &Recording| {
            let cpu = recording.analysis.as_ref().unwrap().cpu.as_ref().unwrap();
            cpu.recent > Duration::from_millis(1900) && cpu.threads.iter().any(|thread| thread.cpu > Duration::from_secs(1))
        };
        let busy = timeout(TIMEOUT * 2, progress.wait_for(is_busy)).await.unwrap().unwrap().clone();
        let cpu = busy.analysis.as_ref().unwrap().cpu.as_ref().unwrap();
        let methods = cpu.profile.methods(SampleFilter::ALL, usize::MAX);
        let main = cpu.threads.iter().find(|thread| thread.thread == u64::from(program.pid())).unwrap();
        let (on, now) = (main.cpu.as_secs_f64() / main.wall.as_secs_f64(), methods.samples.recent_ns as f64 / cpu.recent.as_nanos() as f64);
        let average = methods.samples.all_ns() as f64 / cpu.elapsed.as_nanos() as f64;
        eprintln!("{runtime}: {on:.2} of a core by the kernel's count, {now:.2} now and {average:.2} on average by samples");
        // The last two seconds may differ from the rest if other processes use the CPUs.
        assert!((average - on).abs() < 0.25 && now > 0.0 && now < 1.25, "{runtime}: {on} {now} {average}");
        let off = main.off_cpu().iter().map(|(_, share)| share).sum::<f64>();
        assert!((on + off - 1.0).abs() < 0.05, "{runtime}: {main:?}");
        assert_eq!((cpu.losses.lost, busy.cpu_unavailable.as_ref()), (0, None), "{runtime}");
        assert!(busy.analysis.as_ref().unwrap().profile.is_empty(), "{runtime}: the runtime samples nothing");
        recorder.stop();
        let recording = recorder.finished().await;
        assert!(matches!(&recording.phase, Phase::Done(Outcome { complete: true, trouble: None, .. })), "{runtime}: {:?}", recording.phase);
        assert!(program.is_alive() && program.answers(), "{runtime}");
        // It has worked enough.
        drop(program);
        // Everything is in one file, with the same contents as shown live.
        let facts = std::fs::metadata(&file).unwrap();
        assert_eq!((facts.len(), facts.permissions().mode() & 0o7777), (recording.bytes, 0o600), "{runtime}");
        assert_eq!((&recording.cpu_file, std::fs::read_dir(folder.path()).unwrap().count()), (&None, 1), "{runtime}");
        let live = recording.analysis.as_ref().unwrap().cpu.as_ref().unwrap();
        let shown = live.profile.methods(SampleFilter::ALL, usize::MAX);
        let contents = read_trace(&file, None, |_| true).unwrap().unwrap();
        let stored = contents.analysis.cpu.as_ref().unwrap().profile.methods(SampleFilter::ALL, usize::MAX);
        assert_eq!((stored.samples.all(), &*stored.methods[0].name), (shown.samples.all(), "Known.Burn(int)"), "{runtime}");
        assert!(recording.cpu_samples >= Some(stored.samples.all()), "{runtime}: {:?}", recording.cpu_samples);
        assert_eq!(
            (stored.methods[0].own.all(), stored.methods[0].total.all()),
            (shown.methods[0].own.all(), shown.methods[0].total.all())
        );
        let part = read_trace(&file, Some((0, 500_000_000)), |_| true).unwrap().unwrap();
        let part = part.analysis.cpu.as_ref().unwrap().profile.count(SampleFilter::ALL).samples().all();
        assert!(part > 0 && part < stored.samples.all() / 2, "{runtime}: {part} of {}", stored.samples.all());
        let report = Invocation::new(["report", file.to_str().unwrap(), "--json"]).run().json();
        assert_eq!((&report["source"], report["samples"].as_u64()), (&json!("cpu"), Some(stored.samples.all())), "{runtime}");
    });
}

/// The runtime sends nothing, so there is no recording. CPU samples are kept if there are any: the runtime's server may be sampled while it
/// handles the request.
#[test]
fn recording_of_a_suspended_process_has_only_cpu_samples() {
    runtimes::each_in_turn(runtimes::with("known"), |runtime| {
        // Older runtimes do not wait at startup.
        if runtime.major() < 5 {
            return;
        }
        let program = suspended(runtime.program("known"));
        let leaves_no_file = || {
            let folder = folder();
            let words = ["trace", &program.pid().to_string(), "--profile", "cpu", "--duration", "500ms", "--json"].map(str::to_owned);
            let output = Invocation::new(words).current_dir(folder.path()).run();
            let document: Value = serde_json::from_str(&output.stdout).unwrap();
            assert_eq!((output.code, &document["file"]), (1, &Value::Null), "{runtime}: {}", output.stderr);
            let files: Vec<_> = std::fs::read_dir(folder.path()).unwrap().map(|entry| entry.unwrap().path()).collect();
            let Some(samples) = document.get("cpu_file") else {
                assert_eq!(files, [] as [&Path; 0], "{runtime}: {}", output.stderr);
                return Some(());
            };
            let samples = folder.path().join(samples.as_str().unwrap());
            assert_eq!(files, std::slice::from_ref(&samples), "{runtime}: {}", output.stderr);
            let report = Invocation::new(["report", samples.to_str().unwrap(), "--json"]).run().json();
            assert!(report["samples"].as_u64() > Some(0), "{runtime}: {report:#}");
            None
        };
        assert!(poll(TIMEOUT, leaves_no_file).is_some(), "{runtime}: it is sampled each time, although it does nothing");
    });
}

#[test]
fn trace_separate_stores_cpu_samples_in_own_file() {
    runtimes::each_in_turn(runtimes::with("known"), |runtime| {
        let mut program = runtime.program("known").start();
        program.command("spend 600000");
        if profile(&program, &["--duration", "100ms"]).is_none() {
            return;
        }
        let folder = folder();
        let file = folder.path().join("a.nettrace");
        let path = file.to_str().unwrap();
        let pid = program.pid().to_string();
        let trace = || Invocation::new(["trace", &pid, "--profile", "cpu", "--separate", "--duration", "1s", "-o", path, "--json"]).run();
        let output = trace();
        let document = output.json();
        let samples = folder.path().join("a.cpu.nettrace");
        assert_eq!((&document["complete"], &document["cpu_file"]), (&json!(true), &json!(samples.to_str().unwrap())), "{}", output.stderr);
        assert_eq!(document.get("cpu_samples"), None);
        let report = Invocation::new(["report", path, "--json"]).run().json();
        assert_eq!((&report["source"], &report["methods"][0]["name"]), (&json!("cpu"), &json!("Known.Burn(int)")), "{runtime}: {report:#}");
        assert!(report["samples"].as_u64() > Some(50), "{runtime}: {report:#}");
        // It need not work during the exports, which contain all samples, with native frames.
        program.signal(Signal::STOP);
        let export = |format: &str| {
            let out = folder.path().join(format);
            let said = Invocation::new(["export", path, "--format", format, "-o", out.to_str().unwrap(), "--json"]).run().json();
            (said["files"].clone(), out)
        };
        let (files, folded) = export("folded");
        assert_eq!(files, json!([samples.to_str().unwrap()]));
        let folded = std::fs::read_to_string(folded).unwrap();
        let counts = |part: &str| -> u64 {
            folded.lines().filter(|line| line.contains(part)).map(|line| line.rsplit(' ').next().unwrap().parse::<u64>().unwrap()).sum()
        };
        assert_eq!(counts(""), report["samples"].as_u64().unwrap() + report["waiting"].as_u64().unwrap(), "{runtime}: {folded}");
        let is_below_native_code =
            |line: &str| line.split(';').skip(1).position(|frame| frame.starts_with("Known.")).is_some_and(|at| at > 0);
        assert!(counts("Known.Burn(int)") * 2 > counts("") && folded.lines().any(is_below_native_code), "{runtime}: {folded}");
        let (files, perfetto) = export("perfetto");
        assert_eq!(files, json!([path, samples.to_str().unwrap()]));
        if let Some(engine) = Engine::newest() {
            engine.assert_no_errors(&perfetto, "");
            assert_eq!(engine.query(&perfetto, "select count(*) n from perf_sample")[0]["n"], counts(""), "{runtime}");
        }
        program.signal(Signal::CONT);
        // The runtime's stream is the same as without CPU samples.
        let before = [std::fs::read(&file).unwrap(), std::fs::read(&samples).unwrap()];
        let again = trace();
        assert!(again.code != 0 && again.stderr.contains("exists already"), "{}", again.stderr);
        std::fs::remove_file(&file).unwrap();
        let again = trace();
        assert!(again.code != 0 && again.stderr.contains("a.cpu.nettrace") && !file.exists(), "{}", again.stderr);
        assert_eq!(std::fs::read(&samples).unwrap(), before[1], "{runtime}");
        std::fs::remove_file(&samples).unwrap();
        // Every thread needs an open file for its perf events.
        let limit = "ulimit -n 40; exec \"$@\"";
        let words =
            ["-c", limit, "sh", env!("CARGO_BIN_EXE_dn-top"), "trace", &pid, "--profile", "cpu", "--duration", "1s", "-o", path, "--json"];
        let limited = Invocation::of("sh", words).run();
        let stderr = &limited.stderr;
        assert!(stderr.contains("thread time (managed only, includes waiting)") && stderr.contains("ulimit -n"), "{runtime}: {stderr}");
        assert_eq!((&limited.json()["complete"], limited.json().get("cpu_file"), samples.exists()), (&json!(true), None, false));
        let report = Invocation::new(["report", path, "--json"]).run().json();
        assert_eq!(report["source"], "threads", "{runtime}: {report:#}");
        assert!(report["samples"].as_u64() > Some(50), "{runtime}: {report:#}");
        assert!(program.is_alive(), "{runtime}");
    });
}

/// An existing file with the name of the temporary joined file is left alone, and no data is lost.
#[test]
fn files_that_cannot_be_joined_are_kept_separate() {
    runtimes::each_in_turn(runtimes::with("known"), |runtime| {
        let mut program = runtime.program("known").start();
        program.command("spend 600000");
        if profile(&program, &["--duration", "100ms"]).is_none() {
            return;
        }
        let folder = folder();
        let [file, samples, taken] = ["a.nettrace", "a.cpu.nettrace", "a.cpu.joined"].map(|name| folder.path().join(name));
        std::fs::write(&taken, "another's").unwrap();
        let (pid, path) = (program.pid().to_string(), file.to_str().unwrap());
        let trace = |path: &str| Invocation::new(["trace", &pid, "--profile", "cpu", "--duration", "1s", "-o", path, "--json"]).run();
        let output = trace(path);
        assert!(output.stderr.contains("a.cpu.joined exists already"), "{runtime}: {}", output.stderr);
        let document = output.json();
        assert_eq!((&document["complete"], &document["cpu_file"]), (&json!(true), &json!(samples.to_str().unwrap())), "{runtime}");
        assert_eq!((output.code, std::fs::read_to_string(&taken).unwrap().as_str()), (0, "another's"), "{runtime}");
        let report = Invocation::new(["report", path, "--json"]).run().json();
        assert_eq!(report["source"], "cpu", "{runtime}: {report:#}");
        // One file, whose contents are reported on the command line.
        let one = folder.path().join("b.nettrace");
        let document = trace(one.to_str().unwrap()).json();
        let stats = Invocation::new(["stats", one.to_str().unwrap(), "--json"]).run().json();
        let counts = stats["counts"].as_array().unwrap();
        let kept = counts.iter().filter(|row| row["provider"] == "Universal.Events").map(|row| row["count"].as_u64().unwrap());
        assert_eq!((document.get("cpu_file"), document["bytes"].as_u64()), (None, Some(one.metadata().unwrap().len())), "{runtime}");
        assert!(document["cpu_samples"].as_u64().is_some_and(|samples| samples > 50), "{runtime}: {document:#}");
        assert!(kept.sum::<u64>() >= document["cpu_samples"].as_u64().unwrap(), "{runtime}: {stats:#}");
        assert!(program.is_alive(), "{runtime}");
        // An incomplete recording remains as the runtime has written it.
        let place = folder.path().join("cut");
        std::fs::create_dir(&place).unwrap();
        let cut = place.join("a.nettrace");
        let running = Invocation::new(["trace", &pid, "--profile", "cpu", "-o", cut.to_str().unwrap(), "--json"]).start();
        wait_for_session(&running, &program);
        program.signal(Signal::KILL);
        let output = running.wait();
        let document: Value = serde_json::from_str(&output.stdout).unwrap();
        let [partial, samples] = ["a.nettrace.partial", "a.cpu.nettrace"].map(|name| place.join(name));
        let found = json!([document["complete"], document["file"], document["cpu_file"]]);
        assert_eq!(found, json!([false, partial, samples]), "{runtime}: {}", output.stderr);
    });
}

#[test]
fn analyzed_recording_shows_cpu_time() {
    runtimes::each_async_in_turn(runtimes::with("known"), async |runtime| {
        let mut program = runtime.program("known").start();
        // Lets the methods reach their final tier, also on a busy machine: the caller of a method is missing after on-stack replacement.
        while program.cpu_time() < Duration::from_secs(1) {
            program.spend(500);
        }
        let client = client(&program).await;
        if sampler(&client).is_none() {
            return;
        }
        let folder = folder();
        let config = select(&["dotnet-common", "dotnet-sampled-thread-time"], &[] as &[&str], None).unwrap().config;
        let plan = Plan { analyzed: true, ..Plan::new(client.endpoint().key, "known".into(), config, folder.path().join("a.nettrace")) };
        let recorder = Recorder::start(client, plan).await.unwrap();
        let before = program.cpu_time();
        program.command("spend 600000");
        let mut progress = recorder.progress();
        let is_shown = |recording: &Recording| {
            cpu_time(recording.analysis.as_deref(), "Known.Burn").is_some_and(|(own, all)| own > 2_000_000_000 && own * 2 > all)
        };
        // Two seconds are shown before it has got twice as much, however long a busy machine takes to give it that.
        let has_worked = async {
            while program.cpu_time() - before < Duration::from_secs(4) {
                sleep(Duration::from_millis(100)).await;
            }
            // Snapshots are made once a second, if the machine is not busy.
            sleep(Duration::from_secs(10)).await;
        };
        let is_shown = tokio::select! {
            shown = progress.wait_for(is_shown) => shown.is_ok(),
            () = has_worked => false,
        };
        assert!(is_shown, "{runtime}: {:?}", cpu_time(recorder.progress().borrow().analysis.as_deref(), "Known.Burn"));
        recorder.stop();
        let recording = recorder.finished().await;
        assert!(matches!(&recording.phase, Phase::Done(Outcome { complete: true, .. })), "{:?}", recording.phase);
        assert!(recording.notes.iter().all(|note| !note.contains("CPU time")), "{:?}", recording.notes);
        let analysis = recording.analysis.unwrap();
        let cpu = analysis.cpu.as_ref().unwrap().profile.methods(SampleFilter::ALL, usize::MAX);
        // Names of recompiled methods have been resolved by the stop.
        let times = ["Known.Seventy", "Known.Burn"].map(|method| cpu_time(Some(&analysis), method).unwrap().0 as f64);
        assert!((times[0] / times[1] - 0.7).abs() < 0.1, "{runtime}: {times:?}");
        // Few samples are still unresolved by then: they are not in methods.
        assert!(cpu.unresolved * 50 < cpu.samples.all(), "{runtime}: {} of {}", cpu.unresolved, cpu.samples.all());
        assert!(cpu.methods.iter().any(|method| method.origin == Origin::Native), "{runtime}");
        assert!(program.is_alive() && program.answers(), "{runtime}");
    });
}
