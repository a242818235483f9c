//! Discovery and client with real runtimes.

use std::time::{Duration, Instant};

use dn_top::ipc::{Capabilities, Command, CommandCode, Hresult, Level, PerfMapKind, Provider, RuntimeVersion, SessionConfig};
use dn_top::model::{Contact, Process, RunState, Trouble};
use dn_top::net::discovery::Sources;
use dn_top::net::{Cause, Directory};
use tokio::io::AsyncReadExt as _;

use crate::support::runtimes;
use crate::support::{Signal, TIMEOUT, folder};

/// A process list that is refreshed until the row of a process meets a condition.
struct List(Directory);

impl List {
    fn new() -> Self {
        Self(Directory::new(Sources::machine()).unwrap())
    }

    async fn row(&mut self, pid: u32, is: impl Fn(&Process) -> bool) -> Process {
        let began = Instant::now();
        loop {
            let rows = self.0.refresh(Duration::from_secs(1)).await.unwrap();
            // A killed process with the same ID may have left a socket.
            let rows: Vec<_> = rows.into_iter().filter(|row| row.key.pid == pid).collect();
            assert!(began.elapsed() < TIMEOUT || rows.iter().any(&is), "{rows:#?}");
            if let Some(row) = rows.into_iter().find(&is) {
                return row;
            }
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    }

    async fn trouble(&mut self, pid: u32, kind: Trouble) -> String {
        let row = self.row(pid, |row| matches!(&row.contact, Contact::Trouble { kind: is, .. } if *is == kind)).await;
        row.contact.reason().unwrap().to_owned()
    }
}

fn is_ok(row: &Process) -> bool {
    row.contact == Contact::Ok
}

#[test]
fn every_runtime_is_listed_with_details() {
    runtimes::each_async(runtimes::all_and_single_files(), async |runtime| {
        let program = runtime.any().start();
        let mut list = List::new();
        let row = list.row(program.pid(), is_ok).await;
        let name = runtime.name_of("work");
        assert_eq!((row.name.as_str(), row.runtime.as_ref().map(RuntimeVersion::as_str)), (name, Some(runtime.version)));
        assert_eq!((row.run_state, row.ns_pid, row.key.started), (RunState::Running, program.pid(), program.start_time()));
        assert_eq!(row.socket.as_deref(), Some(program.socket().as_path()));
        assert_eq!((row.cookie.is_none(), row.os.is_none()), (runtime.major() == 3, runtime.major() == 3));
        assert!(row.usage.rss_bytes > 1 << 20 && row.usage.threads > 2, "{row:?}");
        let row = list.row(program.pid(), |row| row.usage.cpu_percent.is_some()).await;
        assert_eq!(row.key.pid, list.0.resolve(program.socket().to_str().unwrap(), TIMEOUT).await.unwrap().key.pid);
    });
}

#[test]
fn process_starts_and_exits_are_listed() {
    runtimes::each_async(runtimes::all(), async |runtime| {
        let mut list = List::new();
        list.0.refresh(TIMEOUT).await.unwrap();
        let mut program = runtime.any().start();
        let pid = program.pid();
        let rows = list.0.refresh(Duration::from_millis(500)).await.unwrap();
        assert!(rows.iter().any(|row| row.key.pid == pid), "a scan right after its socket shows it");
        program.signal(Signal::KILL);
        program.wait();
        let reason = list.trouble(pid, Trouble::Stale).await;
        assert!(reason.starts_with(&format!("there is no process {pid}; ")), "{reason}");
        drop(program);
        assert!(list.0.refresh(TIMEOUT).await.unwrap().iter().all(|row| row.key.pid != pid));
    });
}

#[test]
fn sessions_start_and_stop_without_affecting_target() {
    runtimes::each_async(runtimes::all_and_single_files(), async |runtime| {
        let mut program = runtime.any().start();
        let mut list = List::new();
        let row = list.row(program.pid(), is_ok).await;
        let client = list.0.clients().of(&row).unwrap();
        let provider = Provider::new("Microsoft-Windows-DotNETRuntime", 0x1_0000_801d, Level::Informational).unwrap();
        for _ in 0..2 {
            let mut session = client.start_session(&SessionConfig::new(provider.clone().into())).await.unwrap();
            let (begun, has_begun) = tokio::sync::oneshot::channel();
            let drain = tokio::spawn(async move {
                let mut bytes = vec![0; 32];
                session.stream.read_exact(&mut bytes).await.unwrap();
                begun.send(()).unwrap();
                session.stream.read_to_end(&mut bytes).await.unwrap();
                bytes
            });
            has_begun.await.unwrap();
            client.stop_session(session.id).await.unwrap();
            let bytes = drain.await.unwrap();
            assert!(bytes.starts_with(b"Nettrace") && bytes.ends_with(&[6, 1]), "{runtime}: {} bytes", bytes.len());
        }
        match (client.environment().await, runtime.major()) {
            (Err(error), 3) => assert_eq!(error.hresult(), Some(Hresult::UNKNOWN_COMMAND)),
            (variables, _) => {
                let folder = program.folder().to_str().unwrap().to_owned();
                assert!(variables.unwrap().iter().any(|variable| variable.name == "TMPDIR" && variable.value == folder));
            }
        }
        assert!(program.is_alive() && program.answers(), "{runtime}");
    });
}

#[test]
fn suspended_runtime_is_detected_and_resumed() {
    runtimes::each_async(runtimes::since(5, runtimes::all_and_single_files()), async |runtime| {
        let mut program = runtime.any().env("DOTNET_DefaultDiagnosticPortSuspend", "1").start();
        let mut list = List::new();
        let row = list.row(program.pid(), |row| is_ok(row) && row.run_state == RunState::Suspended).await;
        let whole_line = row.command_line.clone();
        assert!(whole_line.contains(' '), "the arguments are known from /proc: {whole_line}");
        let client = list.0.clients().of(&row).unwrap();
        let error = client.run(&Command::EnablePerfMap { kind: PerfMapKind::PerfMap }).await.unwrap_err();
        assert!(matches!(error.cause, Cause::Suspended), "{error}");
        client.run(&Command::ResumeRuntime).await.unwrap();
        list.row(program.pid(), |row| row.run_state == RunState::Running).await;
        client.run(&Command::EnablePerfMap { kind: PerfMapKind::PerfMap }).await.unwrap();
        client.run(&Command::DisablePerfMap).await.unwrap();
        assert!(program.is_alive() && program.answers(), "{runtime}");
    });
}

#[test]
fn starting_runtime_is_not_reported_as_suspended() {
    runtimes::each_async(runtimes::all_and_single_files(), async |runtime| {
        let program = runtime.any().spawn();
        let mut list = List::new();
        let (began, mut answered) = (Instant::now(), None::<Instant>);
        // From before its first answer until a second after it.
        while answered.is_none_or(|at| at.elapsed() < Duration::from_secs(1)) {
            let rows = list.0.refresh(Duration::ZERO).await.unwrap();
            let row = rows.into_iter().find(|row| row.key.pid == program.pid());
            assert!(row.as_ref().is_none_or(|row| row.run_state == RunState::Running), "{runtime} {row:#?}");
            if answered.is_none() && row.as_ref().is_some_and(is_ok) {
                answered = Some(Instant::now());
            }
            assert!(began.elapsed() < TIMEOUT, "{runtime} {row:#?}");
        }
    });
}

#[test]
fn disabled_diagnostics_are_reported() {
    runtimes::each_async(runtimes::all_and_single_files(), async |runtime| {
        let switches: &[&str] = match runtime.major() {
            3 => &["COMPlus_EnableDiagnostics"],
            _ => &["COMPlus_EnableDiagnostics", "DOTNET_EnableDiagnostics", "DOTNET_EnableDiagnostics_IPC"],
        };
        for switch in switches {
            let program = runtime.any().env(switch, "0").spawn();
            let reason = List::new().trouble(program.pid(), Trouble::Disabled).await;
            assert!(reason.contains(&format!("{switch}=0")), "{reason}");
        }
    });
}

#[tokio::test]
async fn missing_socket_is_explained() {
    let Some(net9) = runtimes::net9() else { return };
    let place = folder();
    let long = place.path().join("x".repeat(90));
    std::fs::create_dir(&long).unwrap();
    let program = net9.any().env("TMPDIR", &long).spawn();
    let reason = List::new().trouble(program.pid(), Trouble::Unsupported).await;
    assert!(reason.contains("107 is the limit"), "{reason}");

    let program = net9.any().start();
    std::fs::remove_file(program.socket()).unwrap();
    let reason = List::new().trouble(program.pid(), Trouble::Disabled).await;
    assert!(reason.starts_with("its socket was removed from "), "{reason}");
}

/// As in a pod with `readOnlyRootFilesystem`.
#[test]
fn read_only_temporary_directory_is_named() {
    if !runtimes::namespaces() {
        return;
    }
    // .NET Core 3.1 does not start without a writable temporary directory.
    runtimes::each_async(runtimes::all().into_iter().filter(|runtime| runtime.major() >= 8).collect(), async |runtime| {
        let program = runtime.any().contained_read_only().spawn();
        let reason = List::new().trouble(program.pid(), Trouble::Disabled).await;
        let expected =
            format!("its temporary directory {} is read-only, so the runtime could not create its socket", program.folder().display());
        assert!(reason.starts_with(&expected), "{runtime}: {reason}");
    });
}

/// Its runtime removes the socket before it waits for the finalizer thread.
#[test]
fn blocked_exit_is_explained() {
    runtimes::each_async(runtimes::with("known"), async |runtime| {
        let mut program = runtime.program("known").start();
        program.carry_out("finalize 1");
        program.close();
        let reason = List::new().trouble(program.pid(), Trouble::Disabled).await;
        assert!(reason.contains("it is probably exiting"), "{runtime}: {reason}");
    });
}

#[test]
fn containerized_process_is_attached_through_root() {
    if !runtimes::namespaces() {
        return;
    }
    runtimes::each_async(runtimes::all(), async |runtime| {
        let program = runtime.any().contained().start();
        let mut list = List::new();
        let row = list.row(program.pid(), is_ok).await;
        assert_eq!((row.ns_pid, row.socket.as_deref()), (1, Some(program.socket().as_path())), "{runtime}");
    });
}

#[test]
fn occupied_runtime_is_slow_then_timed_out_then_attachable() {
    runtimes::each_async(runtimes::all(), async |runtime| {
        let program = runtime.any().start();
        // Sends nothing, and thereby occupies the server's only thread.
        let silent = std::os::unix::net::UnixStream::connect(program.socket()).unwrap();
        let mut list = List::new();
        list.trouble(program.pid(), Trouble::Slow).await;
        let reason = list.trouble(program.pid(), Trouble::Timeout).await;
        assert!(reason.contains("no answer within 5 s"), "{reason}");
        drop(silent);
        list.row(program.pid(), is_ok).await;
    });
}

#[test]
fn capability_table_matches_runtime_responses() {
    runtimes::each_async(runtimes::all_and_single_files(), async |runtime| {
        let program = runtime.any().start();
        let mut list = List::new();
        let row = list.row(program.pid(), is_ok).await;
        let capabilities = Capabilities::of(row.runtime.as_ref());
        let is = |command| capabilities.expected(command).is_ok();
        let client = list.0.clients().of(&row).unwrap();
        assert_eq!(client.environment().await.is_ok(), is(CommandCode::ProcessEnvironment), "{runtime}");
        assert_eq!(client.process_info().await.unwrap().is_some(), is(CommandCode::ProcessInfo), "{runtime}");
        assert_eq!(client.run(&Command::DisablePerfMap).await.is_ok(), is(CommandCode::DisablePerfMap), "{runtime}");
    });
}
