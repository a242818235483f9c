use std::fs;
use std::os::unix::fs::symlink;
use std::time::SystemTime;

use super::*;
use crate::model::{Contact, RunState, Stopper, Trouble};
use crate::net::elf::tests::elf;
use crate::net::fake_proc::{Fake, FakeProc, OLD, UPTIME, fake, own_uid};

mod attach_errors;

/// Kind and reason of the only row's trouble.
#[track_caller]
fn only_trouble(rows: &[Process]) -> (Trouble, &str) {
    let [row] = rows else { panic!("one row, not {rows:#?}") };
    match &row.contact {
        Contact::Trouble { kind, reason } => (*kind, reason),
        other => panic!("trouble, not {other:?}"),
    }
}

fn scan(fake_proc: &FakeProc) -> Vec<Process> {
    Scanner::new(fake_proc.sources()).unwrap().scan(Instant::now()).unwrap()
}

#[test]
fn process_with_socket_is_listed_with_details() {
    let fake_proc = FakeProc::new();
    let cgroup = format!("0::/docker/{}", "ab".repeat(32));
    fake_proc.add(&Fake { cmdline: "dotnet\0/srv/sh\x1b[2Jop.dll\0a\nb", ..fake(42) });
    fs::write(fake_proc.path("proc/42/cgroup"), cgroup).unwrap();
    fake_proc.add(&Fake { threads: &["bash"], cmdline: "bash\0", ..fake(43) });
    let socket = fake_proc.socket("tmp", 42, OLD);
    let rows = scan(&fake_proc);
    let [row] = rows.as_slice() else { panic!("{rows:#?}") };
    assert_eq!((row.key, row.ns_pid), (ProcessKey { pid: 42, started: OLD }, 42));
    assert_eq!((row.name.as_str(), row.command_line.as_str()), ("sh\u{fffd}[2Jop", "dotnet /srv/sh\u{fffd}[2Jop.dll a b"));
    assert_eq!((row.container.as_deref(), row.socket.as_ref()), (Some("abababababab"), Some(&socket)));
    assert_eq!((row.uid, row.usage.threads, row.usage.cpu_percent), (own_uid(), 4, None));
    assert_eq!((row.usage.rss_bytes, row.run_state, &row.contact), (2500 * procfs::page_size(), RunState::Running, &Contact::Unknown));
    let age = UPTIME as f64 - OLD as f64 / procfs::ticks_per_second() as f64;
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap().as_secs_f64();
    assert!((row.started_unix_ms as f64 / 1e3 - (now - age)).abs() < 5.0);
}

#[test]
fn error_has_the_limit_of_open_files_only_if_that_is_exceeded() {
    let has_limit = |errno: Errno| with_limit(&errno.into()).contains("`ulimit -n` is ");
    assert_eq!([Errno::MFILE, Errno::NFILE, Errno::ACCESS].map(has_limit), [true, false, false]);
}

#[test]
fn stopped_processes_are_marked() {
    let fake_proc = FakeProc::new();
    fake_proc.socket("tmp", 42, OLD);
    let mut scanner = Scanner::new(fake_proc.sources()).unwrap();
    let mut stopper_with = |state, tracer: u32| {
        fake_proc.add(&Fake { state, status: format!("{}TracerPid:\t{tracer}\n", fake(42).status), ..fake(42) });
        scanner.scan(Instant::now()).unwrap().iter().find(|row| row.key.pid == 42).unwrap().usage.stopper
    };
    let mut stopper = |state| stopper_with(state, 77);
    let write_threads = |states: [char; 4]| {
        for (tid, state) in (42..).zip(states) {
            let tail =
                "1 1 1 0 -1 4194560 1 2 3 4 0 0 0 0 20 0 4 0 256818 1000000 2500 18446744073709551615 1 1 0 0 0 0 0 4096 0 0 0 0 17 1";
            fs::write(fake_proc.path(&format!("proc/42/task/{tid}/stat")), format!("{tid} (dotnet) {state} {tail}")).unwrap();
        }
    };
    for (state, expected) in [('S', None), ('T', Some(Stopper::Signal)), ('R', None), ('D', None)] {
        assert_eq!(stopper(state), expected, "{state}");
    }
    write_threads(['t', 't', 't', 't']);
    assert_eq!(stopper('t'), Some(Stopper::Debugger(Some(77))));
    write_threads(['t', 't', 'S', 't']);
    assert_eq!(stopper('t'), None, "strace stops the main thread alone");
    write_threads(['t', 't', 't', 't']);
    let dump = |parent: u32| {
        fake_proc.add(&fake(77).without_runtime());
        let path = fake_proc.path("proc/77/stat");
        let stat = fs::read_to_string(&path).unwrap();
        fs::write(path, stat.replacen(" S 1 ", &format!(" S {parent} "), 1)).unwrap();
    };
    dump(1);
    assert_eq!(stopper('t'), Some(Stopper::Debugger(Some(77))));
    dump(42);
    assert_eq!(stopper('t'), None, "the runtime's own dump");
    assert_eq!(stopper_with('t', 0), Some(Stopper::Debugger(None)), "one in another pid namespace");
}

#[test]
fn cpu_usage_is_percent_of_one_core_since_last_scan() {
    let fake_proc = FakeProc::new();
    fake_proc.add(&Fake { ticks: 1000, ..fake(42) });
    fake_proc.socket("tmp", 42, OLD);
    let mut scanner = Scanner::new(fake_proc.sources()).unwrap();
    let start = Instant::now();
    let mut cpu_at = |ticks, millis| {
        fake_proc.add(&Fake { ticks, ..fake(42) });
        scanner.scan(start + Duration::from_millis(millis)).unwrap()[0].usage.cpu_percent
    };
    let tick = 100.0 / procfs::ticks_per_second() as f64;
    assert_eq!(cpu_at(1000, 0), None);
    assert_eq!(cpu_at(1050, 1000), Some(50.0 * tick));
    assert_eq!(cpu_at(1090, 1100), Some(50.0 * tick), "too short a span to say more");
    assert_eq!(cpu_at(1450, 3000), Some(200.0 * tick));
    assert_eq!(cpu_at(1450, 4000), Some(0.0));
}

#[test]
fn container_socket_is_reached_through_its_own_process() {
    let fake_proc = FakeProc::new();
    fs::create_dir_all(fake_proc.path("inside/scratch")).unwrap();
    // One in its own pid namespace, and one that only has a different root, as under systemd's PrivateTmp.
    for (pid, ns_pid) in [(42, 1), (43, 43)] {
        for step in (0..100).step_by(10) {
            let (sibling, inner) = (pid + step, ns_pid + step);
            let status = format!("Name:\tdotnet\nUid:\t{0}\t{0}\t{0}\t{0}\nNSpid:\t{sibling}\t{inner}\n", own_uid());
            let threads = if sibling == pid { fake(1).threads } else { &["sh"] };
            fake_proc.add(&Fake { status, threads, environ: "TMPDIR=/scratch", ..fake(sibling) });
            symlink("../../inside", fake_proc.path(&format!("proc/{sibling}/root"))).unwrap();
        }
        fake_proc.socket("inside/scratch", ns_pid, OLD);
    }
    let mut scanner = Scanner::new(fake_proc.sources()).unwrap();
    for _ in 0..2 {
        let rows = scanner.scan(Instant::now()).unwrap();
        let sockets: Vec<_> = rows.iter().map(|row| row.socket.clone().unwrap()).collect();
        let through = |pid, ns_pid| fake_proc.path(&format!("proc/{pid}/root/scratch/dotnet-diagnostic-{ns_pid}-{OLD}-socket"));
        assert_eq!(sockets, [through(42, 1), through(43, 43)]);
    }
}

#[test]
fn tmpdir_root_and_namespace_pid_are_respected() {
    let fake_proc = FakeProc::new();
    let (own, relative, deep) = (fake_proc.path("own"), "inner", "d".repeat(90));
    fs::create_dir_all(&own).unwrap();
    fs::create_dir_all(fake_proc.path("cwd/inner")).unwrap();
    fake_proc.add(&Fake { environ: &format!("TMPDIR={}", own.display()), ..fake(1) });
    let in_own = fake_proc.socket("own", 1, OLD);
    fake_proc.add(&Fake { environ: &format!("TMPDIR={relative}"), ..fake(2) });
    symlink(fake_proc.path("cwd"), fake_proc.path("proc/2/cwd")).unwrap();
    let in_cwd = fake_proc.socket("cwd/inner", 2, OLD);
    // Two containers started at the same tick, with pid 1 in each, under a path too long for a socket address here.
    for pid in [300, 301] {
        fake_proc.add(&Fake { status: format!("Uid:\t5\t5\t5\t5\nNSpid:\t{pid}\t1\n"), environ: &format!("TMPDIR=/{deep}"), ..fake(pid) });
        fs::create_dir_all(fake_proc.path(&format!("proc/{pid}/root/{deep}"))).unwrap();
        fake_proc.socket(&format!("proc/{pid}/root/{deep}"), 1, OLD);
    }
    // A container that shares our socket directory.
    fake_proc.add(&Fake { status: "Uid:\t5\t5\t5\t5\nNSpid:\t400\t7\n".into(), started: OLD + 1, ..fake(400) });
    let shared = fake_proc.socket("tmp", 7, OLD + 1);

    let rows = scan(&fake_proc);
    let found: Vec<_> = rows.iter().map(|row| (row.key.pid, row.ns_pid, row.socket.clone().unwrap())).collect();
    let inside = |pid: u32, directory: &str, inner, key| {
        (pid, inner, fake_proc.path(&format!("proc/{pid}/{directory}")).join(SocketName { pid: inner, key }.to_string()))
    };
    let (a, b) = (inside(300, &format!("root/{deep}"), 1, OLD), inside(301, &format!("root/{deep}"), 1, OLD));
    assert_eq!(found, [(1, 1, in_own), (2, 2, in_cwd), a, b, (400, 7, shared)]);
    assert!(rows.iter().all(|row| row.contact == Contact::Unknown), "{rows:#?}");
}

#[test]
fn ports_in_the_environment_of_other_users_do_not_count() {
    let fake_proc = FakeProc::new();
    let environ = "DOTNET_DiagnosticPorts=/tmp/a/port,suspend";
    fake_proc.add(&Fake { environ, status: "Uid:\t12345\t12345\t12345\t12345\n".into(), ..fake(5) });
    assert!(!fake_proc.sources().any_started_with_port(Path::new("/tmp/a/port")));
    fake_proc.add(&Fake { environ, ..fake(6) });
    assert!(fake_proc.sources().any_started_with_port(Path::new("/tmp/a/port")));
}

#[test]
fn unreadable_processes_do_not_affect_others() {
    let fake_proc = FakeProc::new();
    fake_proc.add(&fake(42));
    fake_proc.socket("tmp", 42, OLD);
    for (pid, file) in [(50, "stat"), (51, "status"), (52, "environ"), (53, "cmdline")] {
        fake_proc.add(&fake(pid));
        fs::remove_file(fake_proc.path(&format!("proc/{pid}/{file}"))).unwrap();
        fs::create_dir_all(fake_proc.path(&format!("proc/{pid}/{file}"))).unwrap();
    }
    fs::create_dir_all(fake_proc.path("proc/54")).unwrap();
    fs::write(fake_proc.path("proc/55"), "").unwrap();
    fs::write(fake_proc.path("tmp/dotnet-diagnostic-x-1-socket"), "").unwrap();
    assert!(scan(&fake_proc).iter().any(|row| row.key.pid == 42 && row.contact == Contact::Unknown));
    assert!(Scanner::new(Sources { proc: "/nonexistent".into(), ..fake_proc.sources() }).unwrap_err().to_string().contains("/nonexistent"));
}

#[test]
fn started_exited_and_reused_pids_are_in_the_next_scan() {
    let fake_proc = FakeProc::new();
    let mut scanner = Scanner::new(fake_proc.sources()).unwrap();
    let mut pids = || scanner.scan(Instant::now()).unwrap().iter().map(|row| (row.key.pid, row.key.started)).collect::<Vec<_>>();
    assert_eq!(pids(), []);
    fake_proc.add(&fake(42));
    let socket = fake_proc.socket("tmp", 42, OLD);
    assert_eq!(pids(), [(42, OLD)]);
    fs::remove_dir_all(fake_proc.path("proc/42")).unwrap();
    fs::remove_file(socket).unwrap();
    assert_eq!(pids(), []);
    fake_proc.add(&Fake { started: OLD + 9, ..fake(42) });
    fake_proc.socket("tmp", 42, OLD + 9);
    assert_eq!(pids(), [(42, OLD + 9)]);
}

#[test]
fn a_pid_reused_between_two_scans_is_another_process() {
    let fake_proc = FakeProc::new();
    let (mut scanner, start) = (Scanner::new(fake_proc.sources()).unwrap(), Instant::now());
    let mut started = |seconds| {
        let rows = scanner.scan(start + Duration::from_secs(seconds)).unwrap();
        rows.iter().filter(|row| !row.is_stale_socket()).map(|row| row.key.started).collect::<Vec<_>>()
    };
    let add = |started| {
        fake_proc.add(&Fake { started, ..fake(42) });
        fake_proc.socket("tmp", 42, started)
    };
    let socket = add(OLD);
    assert_eq!(started(0), [OLD]);
    // Each process has a directory of its own.
    fs::rename(fake_proc.path("proc/42"), fake_proc.path("ended")).unwrap();
    fs::remove_file(socket).unwrap();
    let socket = add(OLD + 9);
    assert_eq!(started(1), [OLD + 9]);
    // The number of its directory can be reused as well.
    fs::remove_file(socket).unwrap();
    add(OLD + 18);
    assert!(started(2).is_empty());
    assert_eq!((started(100), started(101)), (vec![], vec![OLD + 18]));
}

#[test]
fn stale_sockets_in_a_private_tmpdir_are_found() {
    let fake_proc = FakeProc::new();
    fs::create_dir_all(fake_proc.path("own")).unwrap();
    fake_proc.add(&Fake { environ: &format!("TMPDIR={}", fake_proc.path("own").display()), ..fake(42) });
    let socket = fake_proc.socket("own", 42, OLD);
    let mut scanner = Scanner::new(fake_proc.sources()).unwrap();
    assert_eq!(scanner.scan(Instant::now()).unwrap()[0].contact, Contact::Unknown);
    fs::remove_dir_all(fake_proc.path("proc/42")).unwrap();
    for _ in 0..2 {
        assert_eq!(only_trouble(&scanner.scan(Instant::now()).unwrap()).0, Trouble::Stale);
    }
    fs::remove_file(socket).unwrap();
    assert_eq!(scanner.scan(Instant::now()).unwrap(), []);
}

#[test]
fn a_young_process_may_become_a_runtime() {
    let fake_proc = FakeProc::new();
    let started = (UPTIME - 3) * procfs::ticks_per_second();
    let mut scanner = Scanner::new(fake_proc.sources()).unwrap();
    fake_proc.add(&Fake { started, threads: &["sh"], cmdline: "sh", environ: "", ..fake(42) });
    assert_eq!(scanner.scan(Instant::now()).unwrap(), []);
    fs::create_dir_all(fake_proc.path("later")).unwrap();
    let environ = format!("TMPDIR={}", fake_proc.path("later").display());
    fake_proc.add(&Fake { started, environ: &environ, ..fake(42) });
    fake_proc.socket("later", 42, started);
    assert_eq!(scanner.scan(Instant::now()).unwrap().len(), 1);
}

#[test]
fn runtime_waiting_for_resume_is_suspended() {
    let waiting = &["dotnet", ".NET SynchManag", ".NET EventPipe"];
    let ticks = procfs::ticks_per_second();
    let young = (UPTIME - 1) * ticks;
    let suspend_setting = "DOTNET_DefaultDiagnosticPortSuspend=1";
    for (case, state) in [
        (Fake { threads: waiting, environ: suspend_setting, started: young, ..fake(5) }, RunState::Suspended),
        (Fake { threads: waiting, started: young, ..fake(5) }, RunState::Running),
        (Fake { threads: waiting, ..fake(5) }, RunState::Suspended),
        (Fake { environ: suspend_setting, ..fake(5) }, RunState::Running),
        (Fake { threads: &["dotnet", "dotnet"], environ: suspend_setting, ..fake(5) }, RunState::Running),
    ] {
        let fake_proc = FakeProc::new();
        fake_proc.add(&case);
        fake_proc.socket("tmp", 5, case.started);
        assert_eq!(scan(&fake_proc)[0].run_state, state, "{:?} {}", case.threads, case.environ);
    }

    // NativeAOT of .NET 8 does not name its threads.
    for (threads, environ, state) in [
        (&["shop"; 2][..], suspend_setting, RunState::Suspended),
        (&["shop"; 2], "A=1", RunState::Running),
        (&["shop"; 3], suspend_setting, RunState::Running),
    ] {
        let fake_proc = FakeProc::new();
        fake_proc.add(&Fake { threads, environ, ..fake(5) });
        fs::write(fake_proc.path("proc/5/exe"), elf(&["DotNetRuntimeDebugHeader"])).unwrap();
        fake_proc.socket("tmp", 5, OLD);
        let rows = scan(&fake_proc);
        assert_eq!((rows[0].native_aot, rows[0].run_state), (true, state), "{threads:?} {environ}");
    }

    let fake_proc = FakeProc::new();
    fake_proc.add(&Fake { threads: waiting, ..fake(5) });
    fake_proc.socket("tmp", 5, OLD);
    let mut scanner = Scanner::new(fake_proc.sources()).unwrap();
    assert_eq!(scanner.scan(Instant::now()).unwrap()[0].run_state, RunState::Suspended);
    fake_proc.add(&fake(5));
    assert_eq!(scanner.scan(Instant::now()).unwrap()[0].run_state, RunState::Running);
}

#[test]
fn socket_planted_by_another_user_is_not_used() {
    if own_uid() != 0 {
        return;
    }
    let fake_proc = FakeProc::new();
    fs::create_dir(fake_proc.path("own")).unwrap();
    let foreign_socket = |pid| {
        let path = fake_proc.socket("tmp", pid, OLD);
        std::os::unix::fs::chown(&path, Some(65533), None).unwrap();
        path
    };
    // A process whose own socket is elsewhere, one without a socket, one without a runtime, and one whose socket is a link.
    fake_proc.add(&Fake { environ: &format!("TMPDIR={}", fake_proc.path("own").display()), ..fake(1) });
    let own = fake_proc.socket("own", 1, OLD);
    foreign_socket(1);
    fake_proc.add(&fake(2));
    let planted = foreign_socket(2);
    fake_proc.add(&Fake { threads: &["sleep"], ..fake(3) });
    foreign_socket(3);
    fake_proc.add(&fake(4));
    symlink(&own, fake_proc.path("tmp").join(SocketName { pid: 4, key: OLD }.to_string())).unwrap();
    let mut scanner = Scanner::new(fake_proc.sources()).unwrap();
    for _ in 0..2 {
        let rows = scanner.scan(Instant::now()).unwrap();
        assert_eq!(
            rows.iter().map(|row| (row.key.pid, row.socket.clone())).collect::<Vec<_>>(),
            [(1, Some(own.clone())), (2, None), (4, None)]
        );
        assert_eq!(rows[0].contact, Contact::Unknown);
        let words = "the socket is not owned by its process: the file belongs to user 65533, the process to user 0";
        assert_eq!(only_trouble(&rows[1..2]), (Trouble::Unverified, &*format!("{words} (socket {})", planted.display())));
        let (kind, reason) = only_trouble(&rows[2..]);
        assert!(kind == Trouble::Unverified && reason.starts_with("the file is not a socket"), "{reason}");
    }
}

#[test]
fn directory_in_place_of_a_shared_one_hides_no_socket() {
    let fake_proc = FakeProc::new();
    for name in ["own", "empty"] {
        fs::create_dir(fake_proc.path(name)).unwrap();
    }
    fake_proc.add(&Fake { environ: &format!("TMPDIR={}", fake_proc.path("own").display()), ..fake(1) });
    let socket = fake_proc.socket("own", 1, OLD);
    let links: Vec<_> = (2..30).map(|pid| (pid, fake_proc.path(&format!("link{pid}")))).collect();
    for (pid, link) in &links {
        symlink(fake_proc.path("own"), link).unwrap();
        fake_proc.add(&Fake { environ: &format!("TMPDIR={}", link.display()), ..fake(*pid) }.without_runtime());
    }
    let mut scanner = Scanner::new(fake_proc.sources()).unwrap();
    for _ in 0..2 {
        let rows = scanner.scan(Instant::now()).unwrap();
        assert_eq!(rows.iter().map(|row| row.socket.as_ref()).collect::<Vec<_>>(), [Some(&socket)]);
        for (_, link) in &links {
            fs::remove_file(link).unwrap();
            symlink(fake_proc.path("empty"), link).unwrap();
        }
    }
}

#[test]
fn own_and_newest_stale_sockets_are_listed() {
    let fake_proc = FakeProc::new();
    for pid in 1..=100 {
        let path = fake_proc.socket("tmp", pid, OLD);
        if own_uid() == 0 && pid > 10 {
            std::os::unix::fs::chown(&path, Some(65533), None).unwrap();
        }
    }
    let mut scanner = Scanner::new(fake_proc.sources()).unwrap();
    let rows = scanner.scan(Instant::now()).unwrap();
    assert_eq!((rows.len(), scanner.more_stale_sockets()), (MAX_STALE, 100 - MAX_STALE));
    assert_eq!(rows.iter().take(10).map(|row| row.key.pid).collect::<Vec<_>>(), (1..=10).collect::<Vec<_>>());
}
