//! Runtimes that connect to a diagnostic port served by dn-top.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use dn_top::ipc::{Command, EnvironmentName, EnvironmentValue, Level, PerfMapKind, Provider, SessionConfig, TargetPath};
use dn_top::model::{Contact, Process, RunState};
use dn_top::net::discovery::Sources;
use dn_top::net::port::{ConnectedRuntime, Port};
use dn_top::net::{Cause, Directory};
use tokio::io::AsyncReadExt as _;

use crate::support::runtimes;
use crate::support::screen::{ENTER, RIGHT, ctrl};
use crate::support::{Invocation, Launch, Signal, TIMEOUT, folder};

fn serve(path: &Path) -> Port {
    Port::serve(path, &Sources::machine()).unwrap()
}

fn connecting(program: Launch, port: &Path, tag: &str) -> Launch {
    program.env("DOTNET_DiagnosticPorts", format!("{},{tag},connect", port.display()))
}

/// Waits until exactly these processes are connected.
async fn runtimes(port: &Port, pids: &[u32]) -> Vec<ConnectedRuntime> {
    let began = Instant::now();
    loop {
        let mut runtimes = port.runtimes();
        runtimes.sort_by_key(|runtime| pids.iter().position(|pid| *pid == runtime.key().pid));
        if runtimes.iter().map(|runtime| runtime.key().pid).eq(pids.iter().copied()) {
            return runtimes;
        }
        assert!(began.elapsed() < TIMEOUT, "{pids:?}: {runtimes:?}");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

async fn row(list: &mut Directory, pid: u32, is: impl Fn(&Process) -> bool) -> Process {
    let began = Instant::now();
    loop {
        let rows = list.refresh(Duration::from_secs(1)).await.unwrap();
        match rows.into_iter().find(|row| row.key.pid == pid) {
            Some(row) if is(&row) => return row,
            other => assert!(began.elapsed() < TIMEOUT, "{other:#?}"),
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

#[test]
fn dashboard_lists_processes_of_served_port() {
    runtimes::each(runtimes::since(5, runtimes::with("known")), |runtime| {
        let place = folder();
        let path = place.path().join("port");
        let mut screen = Invocation::new(["--watch", "never", "--filter", "known"]).screen(120, 40);
        screen.wait_for("Processes");
        screen.keys("P");
        screen.wait_for("Serve a diagnostic port");
        screen.keys(&format!("{}{}", ctrl('u'), path.display()));
        screen.wait_for(&format!("DOTNET_DiagnosticPorts={} connects here", path.display()));
        screen.keys(&format!("{ENTER}{RIGHT}{ENTER}"));
        screen.wait_for("port done");
        let mut program = runtime.program("known").env("DOTNET_DiagnosticPorts", &path).start();
        let row =
            |shown: &str, state: &str| shown.lines().any(|line| line.contains(&format!(" {} ", program.pid())) && line.contains(state));
        screen.wait_until("the program waits", |shown| row(shown, "◐ suspended"));
        screen.keys(&format!(":known {}", program.pid()));
        screen.wait_until("the palette finds it", |shown| shown.contains(&format!("known {}", program.pid())));
        screen.keys(ENTER);
        screen.keys("R");
        screen.wait_for("runs its first instructions");
        screen.keys(&format!("{RIGHT}{ENTER}"));
        screen.wait_until("the program runs", |shown| row(shown, "● running"));
        assert!(program.answers() && program.is_alive());
        // The port is closed, and served again.
        screen.keys("P");
        screen.wait_for("Close the diagnostic port");
        screen.wait_for(&format!("Connected: known ({}).", program.pid()));
        screen.keys(&format!("y{ENTER}"));
        screen.wait_for("close port done");
        assert!(!path.exists() && program.answers() && program.is_alive());
        screen.keys("P");
        screen.wait_for("Serve a diagnostic port");
        screen.keys(&format!("{}{}", ctrl('u'), path.display()));
        screen.wait_for(&format!("DOTNET_DiagnosticPorts={} connects here", path.display()));
        screen.keys(&format!("{ENTER}{RIGHT}{ENTER}"));
        // Below the message that it was closed, as long as that is shown.
        let is_served = |shown: &str| shown.rfind("port done: DOTNET_") > shown.find("close port done");
        screen.wait_until("it is served again", |shown| path.exists() && is_served(shown));
        screen.quit();
        assert!(!path.exists(), "the socket stays");
        assert!(program.answers() && program.is_alive());
    });
}

#[test]
fn a_suspended_program_is_listed_changed_and_resumed() {
    runtimes::each_async(runtimes::since(5, runtimes::all_and_single_files()), async |runtime| {
        let place = folder();
        let path = place.path().join("port");
        let mut list = Directory::new(Sources::machine()).unwrap();
        list.serve(serve(&path));
        let clients = list.clients();
        let mut program = connecting(runtime.any(), &path, "suspend").start();
        let suspended = row(&mut list, program.pid(), |row| {
            row.contact == Contact::Ok
                && row.run_state == RunState::Suspended
                && clients.of(row).is_some_and(|to| to.endpoint().socket == path)
        })
        .await;
        assert_eq!(suspended.key.started, program.start_time(), "{runtime}");
        let client = clients.of(&suspended).unwrap();
        let error = client.run(&Command::EnablePerfMap { kind: PerfMapKind::PerfMap }).await.unwrap_err();
        assert!(matches!(error.cause, Cause::Suspended), "{runtime} {error}");
        let name = || EnvironmentName::new("DN_TOP_SET").unwrap();
        let set = Command::SetEnvironmentVariable { name: name(), value: Some(EnvironmentValue::new("seen").unwrap()) };
        client.run(&set).await.unwrap();
        let seen = place.path().join("seen");
        let file = EnvironmentValue::new(seen.to_str().unwrap()).unwrap();
        let name = EnvironmentName::new("DN_TOP_HOOK").unwrap();
        client.run(&Command::SetEnvironmentVariable { name, value: Some(file) }).await.unwrap();
        let hook = Command::ApplyStartupHook { path: TargetPath::new(runtime.hook().to_str().unwrap()).unwrap() };
        client.run(&hook).await.unwrap();
        // A resume over its own socket does not affect the port that it waits for.
        let resumed = Invocation::new(["resume", &program.pid().to_string()]).run();
        assert!(resumed.code == 1 && resumed.stderr.contains("is still suspended"), "{runtime} {resumed:?}");
        let without_port = Directory::new(Sources::machine()).unwrap().clients();
        let own_socket = Process { on_port: false, socket: Some(program.socket()), ..suspended.clone() };
        let error = without_port.resume(&own_socket).await.unwrap().unwrap_err();
        assert!(matches!(error.cause, Cause::StillSuspended), "{runtime} {error}");

        let runtime_events = Provider::new("Microsoft-Windows-DotNETRuntime", 8, Level::Informational).unwrap();
        let mut session = client.start_session(&SessionConfig::new(runtime_events.into())).await.unwrap();
        clients.resume(&suspended).await.unwrap().unwrap();
        row(&mut list, program.pid(), |row| row.run_state == RunState::Running).await;
        // A program published as a single trimmed file has no hook support.
        if !runtime.is_trimmed() {
            let began = Instant::now();
            while std::fs::read_to_string(&seen).unwrap_or_default() != "DN_TOP_SET=seen" {
                assert!(began.elapsed() < TIMEOUT, "{runtime} {}", program.stderr());
                tokio::time::sleep(Duration::from_millis(50)).await;
            }
        }
        let drain = tokio::spawn(async move {
            let mut bytes = Vec::new();
            session.stream.read_to_end(&mut bytes).await.unwrap();
            bytes
        });
        client.stop_session(session.id).await.unwrap();
        let bytes = drain.await.unwrap();
        assert!(bytes.starts_with(b"Nettrace") && bytes.ends_with(&[6, 1]), "{runtime}: {} bytes", bytes.len());
        let variables = client.environment().await.unwrap();
        assert!(variables.iter().any(|variable| variable.name == "DN_TOP_SET" && variable.value == "seen"), "{runtime}");
        assert!(program.is_alive() && program.answers(), "{runtime}");
    });
}

#[test]
fn variable_set_at_startup_is_inherited_by_children() {
    runtimes::each_async(runtimes::since(5, runtimes::with("parent")), async |runtime| {
        let place = folder();
        let port = serve(&place.path().join("port"));
        let child = runtime.any();
        let parent = child.words()[1..].iter().fold(runtime.program("parent"), |parent, word| parent.arg(word));
        let parent = connecting(parent, port.path(), "suspend").spawn();
        let runtime = runtimes(&port, &[parent.pid()]).await.remove(0);
        let set = |name: &str, value: &str| Command::SetEnvironmentVariable {
            name: EnvironmentName::new(name).unwrap(),
            value: Some(EnvironmentValue::new(value).unwrap()),
        };
        runtime.client.run(&set("DN_TOP_SET", "seen")).await.unwrap();
        runtime.client.run(&set("DOTNET_DiagnosticPorts", &format!("{},nosuspend,connect", port.path().display()))).await.unwrap();
        runtime.client.run(&Command::ResumeRuntime).await.unwrap();
        let child: u32 = parent.line().strip_prefix("child ").unwrap().parse().unwrap();
        let connected = runtimes(&port, &[parent.pid(), child]).await.remove(1);
        let environ = std::fs::read_to_string(format!("/proc/{child}/environ")).unwrap();
        assert!(environ.split('\0').any(|variable| variable == "DN_TOP_SET=seen"), "{environ}");
        // It is not suspended: the command line is available only once a runtime is running.
        let began = Instant::now();
        while !connected.client.process_info().await.unwrap().unwrap().command_line.contains(' ') {
            assert!(began.elapsed() < TIMEOUT);
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    });
}

#[test]
fn processes_share_port_after_one_is_killed() {
    runtimes::each_async(runtimes::since(5, runtimes::all()), async |runtime| {
        let place = folder();
        let port = serve(&place.path().join("port"));
        let mut programs: Vec<_> = (0..3).map(|_| connecting(runtime.any(), port.path(), "suspend").start()).collect();
        let pids: Vec<u32> = programs.iter().map(|program| program.pid()).collect();
        runtimes(&port, &pids).await;
        for runtime in port.runtimes() {
            runtime.client.run(&Command::ResumeRuntime).await.unwrap();
        }
        programs[1].signal(Signal::KILL);
        programs[1].wait();
        for runtime in runtimes(&port, &[pids[0], pids[2]]).await {
            let info = runtime.client.process_info().await.unwrap().unwrap();
            assert_eq!((info.pid, info.cookie), (runtime.key().pid.into(), runtime.cookie));
        }
        assert!(programs[0].is_alive() && programs[2].is_alive());
    });
}

#[test]
fn processes_reconnect_to_reopened_port() {
    runtimes::each_async(runtimes::since(5, runtimes::all()), async |runtime| {
        let place = folder();
        let path = place.path().join("port");
        let port = serve(&path);
        let program = connecting(runtime.any(), &path, "suspend").start();
        let before = runtimes(&port, &[program.pid()]).await.remove(0);
        drop(port);
        tokio::time::sleep(Duration::from_secs(1)).await;
        let port = serve(&path);
        let after = runtimes(&port, &[program.pid()]).await.remove(0);
        assert_eq!(after.cookie, before.cookie, "{runtime}");
        after.client.run(&Command::ResumeRuntime).await.unwrap();
        assert!(after.client.process_info().await.unwrap().is_some(), "{runtime}");
    });
}

#[test]
fn containerized_process_has_host_pid() {
    if !runtimes::namespaces() {
        return;
    }
    runtimes::each_async(runtimes::since(5, runtimes::all()), async |runtime| {
        let place = folder();
        let port = serve(&place.path().join("port"));
        let program = connecting(runtime.any(), port.path(), "nosuspend").contained().spawn();
        let runtime = runtimes(&port, &[program.pid()]).await.remove(0);
        assert_eq!((runtime.ns_pid, runtime.key().started), (1, program.start_time()));
        assert_eq!(runtime.client.process_info().await.unwrap().unwrap().pid, 1);
    });
}

/// Also programs that connect later run: they are resumed.
#[test]
fn first_program_on_a_port_is_recorded_from_its_start() {
    runtimes::each(runtimes::since(5, runtimes::with("known")), |runtime| {
        let place = folder();
        let (port, file) = (place.path().join("port"), place.path().join("a.nettrace"));
        let words =
            ["trace", "collect", "--diagnostic-port", port.to_str().unwrap(), "--clrevents", "loader", "-o", file.to_str().unwrap()];
        let recording = Invocation::new(words).start();
        recording.wait_for_stderr(&format!("DOTNET_DiagnosticPorts={}", port.display()));
        let mut first = runtime.program("known").env("DOTNET_DiagnosticPorts", &port).start();
        recording.wait_for_stderr("from its start");
        let mut second = runtime.program("known").env("DOTNET_DiagnosticPorts", &port).start();
        for program in [&mut first, &mut second] {
            program.carry_out("throw 1");
        }
        let (pid, output) = (first.pid(), recording.interrupt());
        let announced = format!("recording process {pid} (known) from its start: loader; Ctrl-C stops it");
        assert!(output.code == 130 && output.stderr.contains(&announced), "{runtime}: {output:?}");
        assert!(first.answers() && second.answers() && !port.exists(), "{runtime}");
        let events = Invocation::new(["events".as_ref(), file.as_os_str(), "--json".as_ref()]).run().json();
        // The core library is loaded at the very beginning.
        let stats = Invocation::new(["stats".as_ref(), file.as_os_str(), "--json".as_ref()]).run().json();
        assert!(events["events"].as_u64() > Some(10) && stats["process_id"] == pid, "{runtime}: {events} {stats}");
        let canceled = Invocation::new(["trace", &format!("{},listen", place.path().join("other").display())]).start();
        canceled.wait_for_stderr("Ctrl-C cancels");
        let canceled = canceled.interrupt();
        assert!(canceled.code == 130 && canceled.stderr.contains("no program has connected"), "{canceled:?}");
    });
}

/// A program that runs already connects to the port as soon as it is served.
#[test]
fn program_that_runs_already_is_not_announced_as_recorded_from_its_start() {
    runtimes::each(runtimes::since(5, runtimes::with("known")), |runtime| {
        let place = folder();
        let port = place.path().join("port");
        let mut program = runtime.program("known").env("DOTNET_DiagnosticPorts", format!("{},nosuspend", port.display())).start();
        program.carry_out("throw 1");
        let listen = format!("{},listen", port.display());
        let words = ["trace", &listen, "--clr-events", "gc", "--duration", "1s", "--json"];
        let output = Invocation::new(words).current_dir(place.path()).run();
        let announced = format!("recording process {} (known): gc; Ctrl-C stops it", program.pid());
        assert!(output.code == 0 && output.stderr.contains(&announced), "{runtime}: {output:?}");
        assert!(program.answers(), "{runtime}");
    });
}

#[test]
fn socket_with_port_suffix_is_a_target() {
    runtimes::each(runtimes::all(), |runtime| {
        let program = runtime.any().start();
        let target = PathBuf::from(format!("{},connect", program.socket().display()));
        let info = Invocation::new(["info", "--json", target.to_str().unwrap()]).run();
        let document: serde_json::Value = serde_json::from_str(&info.stdout).unwrap_or_else(|error| panic!("{error} {info:?}"));
        assert_eq!((document["pid"].as_u64(), document["contact"].as_str()), (Some(program.pid().into()), Some("ok")));
    });
}
