//! A second user cannot attack a dn-top run by root on the same machine. Each test is an attack by UID 65533 on a real runtime of root, or
//! on a process of root that hosts no runtime. Skipped unless run as root: no other user can switch to a second one.

mod user;

use std::fs;
use std::os::unix::fs::{PermissionsExt, chown};
use std::os::unix::net::UnixListener;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use dn_top::net::discovery::Sources;
use dn_top::net::port::Port;
use serde_json::{Value, json};

use crate::support::runtimes::{self, Runtime};
use crate::support::{Invocation, Output, Program, TIMEOUT, folder, poll};
use user::{DENIED, Process, SecondUser, UID};

/// A real runtime of root.
struct Victim<'a> {
    runtime: &'a Runtime,
    program: Program,
    /// Output folder of its startup hook and its perf map.
    place: tempfile::TempDir,
}

impl<'a> Victim<'a> {
    fn new(runtime: &'a Runtime) -> Self {
        let place = folder();
        let program = runtime.any().env("DN_TOP_HOOK", place.path().join("hooked")).env("DOTNET_PerfMapJitDumpPath", place.path()).start();
        Self { runtime, program, place }
    }

    fn pid(&self) -> u32 {
        self.program.pid()
    }

    fn socket(&self) -> PathBuf {
        self.program.socket()
    }

    fn folder(&self) -> &Path {
        self.program.folder()
    }

    fn assert_untouched(&mut self) {
        let runtime = self.runtime;
        assert!(self.program.is_alive() && self.program.answers(), "{runtime}");
        assert_eq!(fs::read_dir(self.place.path()).unwrap().count(), 0, "{runtime} ran a hook, or writes a perf map");
        let environment = run_as_root(&["env", &self.pid().to_string(), "--json"], self.folder());
        assert!(!environment.stdout.contains("DN_TOP_SET"), "{runtime} was changed: {}", environment.stdout);
    }
}

/// Returns the socket name that a process would have as a runtime: with the PID in its own namespace and the start time in ours.
fn socket_name(pid: u32) -> String {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap();
    let started = stat.rsplit(')').next().unwrap().split_whitespace().nth(19).unwrap().to_owned();
    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let inner = status.lines().find_map(|line| line.strip_prefix("NSpid:")).unwrap().split_whitespace().last().unwrap().to_owned();
    format!("dotnet-diagnostic-{inner}-{started}-socket")
}

/// Returns a world-writable folder for sockets, like `/tmp`.
fn shared() -> tempfile::TempDir {
    let shared = folder();
    fs::set_permissions(shared.path(), PermissionsExt::from_mode(0o1777)).unwrap();
    shared
}

/// Starts a process of root that hosts no runtime.
fn sleep_as_root(tmpdir: &Path) -> Process {
    Process(Command::new("sleep").arg("600").env("TMPDIR", tmpdir).process_group(0).spawn().unwrap())
}

/// Runs dn-top as root, which also searches that folder for sockets.
fn run_as_root(words: &[&str], tmpdir: &Path) -> Output {
    Invocation::new(words).env("TMPDIR", tmpdir).run()
}

fn rows(tmpdir: &Path) -> Vec<Value> {
    run_as_root(&["ps", "--json"], tmpdir).json()["processes"].as_array().unwrap().clone()
}

/// Runs every command on a process that the second user tries to pass off as another. None of them must have an effect.
fn assert_no_effect(target: &str, victim: &mut Victim, code: i32, words: &str) {
    let (place, hook) = (folder(), victim.runtime.hook());
    let [core, dump, trace] = ["core", "heap.gcdump", "a.nettrace"].map(|name| place.path().join(name).to_str().unwrap().to_owned());
    for command in [
        &["set-env", target, "DN_TOP_SET=by the second user"][..],
        &["startup-hook", target, hook.to_str().unwrap()],
        &["perfmap", target, "on"],
        &["dump", target, "-o", &core, "--type", "mini"],
        &["trace", target, "-o", &trace, "--duration", "100ms"],
        &["heap", target, "--yes", "-o", &dump],
        &["stacks", target],
        &["counters", target, "--duration", "1s"],
        &["resume", target],
        &["env", target, "--json"],
    ] {
        run_as_root(command, victim.folder()).assert_refused(code, words);
    }
    assert_eq!(fs::read_dir(place.path()).unwrap().count(), 0, "something was written");
    victim.assert_untouched();
}

#[test]
fn link_under_own_pid_does_not_reach_root_runtime() {
    let Some(user) = SecondUser::new() else { return };
    runtimes::each(runtimes::all(), |runtime| {
        let mut victim = Victim::new(runtime);
        let sleeps = user.run("sleep", &["600"], user.home.path());
        user.link(&victim.socket(), &user.path(&socket_name(sleeps.pid())));
        let pid = sleeps.pid().to_string();
        assert_no_effect(&pid, &mut victim, 3, &format!("process {pid} is not a .NET process"));
        // By the path of the link.
        let link = user.path(&socket_name(sleeps.pid()));
        assert_no_effect(link.to_str().unwrap(), &mut victim, 4, "is a link that is not followed");
        // A process that looks like a runtime is listed, with the reason.
        let looks = user.start_runtime_lookalike(user.home.path());
        user.link(&victim.socket(), &user.path(&socket_name(looks.pid())));
        let row = poll(TIMEOUT, || rows(victim.folder()).into_iter().find(|row| row["pid"] == looks.pid())).unwrap();
        assert_eq!((&row["contact"], &row["socket"]), (&json!("unverified"), &Value::Null), "{runtime}: {row}");
        assert_no_effect(&looks.pid().to_string(), &mut victim, 4, "the file is not a socket");
    });
}

#[test]
fn linked_folder_does_not_reach_root_runtime() {
    let Some(user) = SecondUser::new() else { return };
    let Some(runtime) = runtimes::all().into_iter().next() else { return };
    let victim = Victim::new(&runtime);
    user.link(victim.folder(), &user.path("tmp"));
    let looks = user.start_runtime_lookalike(&user.path("tmp"));
    let row = poll(TIMEOUT, || rows(victim.folder()).into_iter().find(|row| row["pid"] == looks.pid())).unwrap();
    assert_eq!(row["contact"], "unverified", "{row}");
    let reason = row["reason"].as_str().unwrap();
    assert!(reason.contains("users other than root could have put the link"), "{reason}");
    let through = user.path("tmp").join(victim.socket().file_name().unwrap());
    run_as_root(&["env", through.to_str().unwrap()], victim.folder()).assert_refused(4, "is a link that is not followed");
}

#[test]
fn container_link_does_not_reach_root_runtime() {
    let Some(user) = SecondUser::new() else { return };
    let private = user.path("private");
    fs::create_dir(&private).unwrap();
    let script = r#"mount -t tmpfs tmpfs "$TMPDIR" && exec sleep 600"#;
    let arguments = ["--user", "--map-root-user", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc", "sh", "-c", script];
    let mut unshare = user.run("unshare", &arguments, &private);
    let parent = unshare.pid();
    let inside = || {
        let child = fs::read_to_string(format!("/proc/{parent}/task/{parent}/children")).ok()?;
        let pid: u32 = child.split_whitespace().next()?.parse().ok()?;
        (fs::read(format!("/proc/{pid}/comm")).ok()? == b"sleep\n").then_some(pid)
    };
    let mut refused = || unshare.0.try_wait().unwrap().map(|_| None);
    let Some(pid) = poll(TIMEOUT, || inside().map(Some).or_else(&mut refused)).expect("neither a program nor a refusal") else {
        return runtimes::skip("users may not make user namespaces here");
    };
    let seen_here = PathBuf::from(format!("/proc/{pid}/root")).join(private.strip_prefix("/").unwrap()).join(socket_name(pid));
    for runtime in runtimes::all() {
        let mut victim = Victim::new(&runtime);
        user.link(&victim.socket(), &seen_here);
        assert_no_effect(&pid.to_string(), &mut victim, 3, &format!("process {pid} is not a .NET process"));
        assert_no_effect(seen_here.to_str().unwrap(), &mut victim, 4, "is a link that is not followed");
    }
}

#[test]
fn overlay_on_fuse_does_not_block_a_scan() {
    let Some(user) = SecondUser::new() else { return };
    let Some(runtime) = runtimes::all().into_iter().next() else { return };
    let victim = Victim::new(&runtime);
    // On most machines, every user may open `/dev/fuse`.
    let (device, place) = (user.path("fuse-device"), user.path("mounts"));
    let number = rustix::fs::makedev(10, 229);
    match rustix::fs::mknodat(rustix::fs::CWD, &device, rustix::fs::FileType::CharacterDevice, 0o666.into(), number) {
        Err(rustix::io::Errno::PERM) => return runtimes::skip("devices cannot be made here"),
        made => made.unwrap(),
    }
    fs::set_permissions(&device, PermissionsExt::from_mode(0o666)).unwrap();
    fs::create_dir(&place).unwrap();
    let script = r#"set -e; exec 9<>"$FUSE_DEVICE"
        mount -t tmpfs tmpfs "$PLACE"; mkdir "$PLACE/fuse" "$PLACE/lower" "$PLACE/overlay"
        mount -i -t fuse -o fd=9,rootmode=40000,user_id=0,group_id=0 fuse "$PLACE/fuse"
        SECOND_USER=1 SECOND_USER_FUSE=1 "$HELPER" --exact second_user::user::second_users_process --ignored <&9 &
        mount -t overlay -o "lowerdir=$PLACE/fuse:$PLACE/lower" overlay "$PLACE/overlay"
        touch "$READY"; exec env SECOND_USER=1 "$HELPER" --exact second_user::user::second_users_process --ignored"#;
    let (ready, helper) = (user.path("ready"), user.path("helper"));
    // The folder of the tests may not be accessible to other users.
    fs::copy(std::env::current_exe().unwrap(), &helper).unwrap();
    let mut command = Command::new("unshare");
    command.args(["--user", "--map-root-user", "--mount", "sh", "-c", script]);
    command.env("FUSE_DEVICE", &device).env("PLACE", &place).env("HELPER", &helper).env("READY", &ready);
    let mut process = user.start(&mut command, &place.join("overlay/unanswered"));
    let mut refused = || process.0.try_wait().unwrap().map(|_| false);
    if !poll(TIMEOUT, || ready.exists().then_some(true).or_else(&mut refused)).expect("it neither mounts nor ends") {
        return runtimes::skip("users may not mount FUSE and overlays in user namespaces here");
    }
    let pid = process.pid();
    let mut process = Some(process);
    let listed = poll(TIMEOUT, || {
        let mut listing = Invocation::new(["ps", "--json"]).env("TMPDIR", victim.folder()).start();
        if poll(TIMEOUT, || (!listing.is_alive()).then_some(())).is_none() {
            // A listing that is blocked cannot be killed before the file system is gone.
            process = None;
            panic!("the listing is blocked");
        }
        let rows = listing.wait().json()["processes"].as_array().unwrap().clone();
        let row = |pid| rows.iter().find(|row| row["pid"] == pid).cloned();
        row(pid).map(|row_of_second_user| (row_of_second_user, row(victim.pid())))
    });
    let (row, other) = listed.unwrap();
    assert_eq!((&row["contact"], &other.unwrap()["contact"]), (&json!("unverified"), &json!("ok")), "{row}");
    let reason = row["reason"].as_str().unwrap();
    assert!(reason.contains("is not searched: it is on a file system (overlay) that another user may have mounted"), "{reason}");
}

#[test]
fn socket_under_pid_of_root_process_is_not_trusted() {
    let Some(user) = SecondUser::new() else { return };
    let shared = shared();
    let sleeps = sleep_as_root(shared.path());
    let planted = shared.path().join(socket_name(sleeps.pid()));
    let served = user.serve(&planted);
    let pid = sleeps.pid().to_string();
    assert!(rows(shared.path()).iter().all(|row| row["pid"] != sleeps.pid()), "sleep is no .NET process");
    run_as_root(&["set-env", &pid, "DB_PASSWORD=secret"], shared.path()).assert_refused(3, &format!("process {pid} is not a .NET process"));
    served.assert_nothing_received();
    // Addressed by its path, it is treated as a socket of the second user, served by that user.
    let info = run_as_root(&["info", planted.to_str().unwrap(), "--json"], shared.path()).json();
    assert_eq!((&info["contact"], &info["pid"], &info["uid"]), (&json!("ok"), &json!(served.process.pid()), &json!(UID)), "{info}");
    // Unless the file is owned by root.
    chown(&planted, Some(0), None).unwrap();
    fs::write(&served.log, "").unwrap();
    for target in [pid.as_str(), planted.to_str().unwrap()] {
        let output = run_as_root(&["set-env", target, "DB_PASSWORD=secret"], shared.path());
        output.assert_refused(4, "the socket is not owned by its process");
    }
    served.assert_nothing_received();
}

#[test]
fn planted_socket_does_not_replace_real_one() {
    let Some(user) = SecondUser::new() else { return };
    for runtime in runtimes::all() {
        let (shared, victim) = (shared(), Victim::new(&runtime));
        let served = user.serve(&shared.path().join(victim.socket().file_name().unwrap()));
        let info = run_as_root(&["info", &victim.pid().to_string(), "--json"], shared.path()).json();
        assert_eq!(info["contact"], "ok", "{runtime}: {info}");
        assert_eq!(info["socket"], victim.socket().to_str().unwrap(), "{runtime}");
        let row = rows(shared.path()).into_iter().filter(|row| row["ns_pid"] == victim.pid()).collect::<Vec<_>>();
        assert!(row.len() == 1 && row[0]["contact"] == "ok", "{runtime}: {row:?}");
        served.assert_nothing_received();
    }
}

#[test]
fn process_with_socket_of_another_process_is_not_attached() {
    let Some(user) = SecondUser::new() else { return };
    let looks = user.start_runtime_lookalike(user.home.path());
    let served = user.serve(&user.path(&socket_name(looks.pid())));
    let pid = looks.pid().to_string();
    let info = run_as_root(&["info", &pid, "--json"], user.home.path()).json();
    assert_eq!(info["contact"], "unverified", "{info}");
    let words = format!("the socket is not owned by its process: process {} of user {UID} is at the other end", served.process.pid());
    assert!(info["reason"].as_str().unwrap().contains(&words), "{info}");
    run_as_root(&["set-env", &pid, "DB_PASSWORD=secret"], user.home.path()).assert_refused(4, &words);
    served.assert_nothing_received();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn port_of_root_does_not_trust_advertised_pid() {
    let Some(user) = SecondUser::new() else { return };
    let place = folder();
    fs::set_permissions(place.path(), PermissionsExt::from_mode(0o755)).unwrap();
    let path = place.path().join("port");
    let port = Port::serve(&path, &Sources::machine()).unwrap();
    let sleeps = sleep_as_root(place.path());
    let advertised_pid = sleeps.pid().to_string();
    let connect = || {
        let mut process =
            user.helper(place.path(), &[("SECOND_USER_CONNECTS", path.as_os_str()), ("SECOND_USER_ADVERTISES", advertised_pid.as_ref())]);
        poll(TIMEOUT, || process.0.try_wait().unwrap().or_else(|| (!port.runtimes().is_empty()).then(Default::default)));
        process.0.try_wait().unwrap().and_then(|status| status.code())
    };
    assert_eq!(connect(), Some(DENIED), "another user does not even reach it");
    // Even if root admits them by mistake, their advertisement is not trusted.
    fs::set_permissions(&path, PermissionsExt::from_mode(0o666)).unwrap();
    assert_eq!((connect(), port.runtimes().len()), (Some(0), 0), "the connection was not closed");
}

#[test]
fn three_thousand_stale_sockets_are_one_line() {
    let Some(_user) = SecondUser::new() else { return };
    let shared = shared();
    for pid in 0..3000 {
        let path = shared.path().join(format!("dotnet-diagnostic-{}-1-socket", 5_000_000 + pid));
        drop(UnixListener::bind(&path).unwrap());
        chown(&path, Some(UID), Some(UID)).unwrap();
    }
    let text = run_as_root(&["ps"], shared.path()).stdout;
    let stale = text.lines().filter(|line| line.contains("stale") || line.contains("(gone)")).collect::<Vec<_>>();
    let count: Vec<_> = stale.iter().map(|line| line.split(' ').next().unwrap().parse::<u32>().unwrap_or(0)).collect();
    assert!(count.len() == 1 && count[0] >= 3000, "{stale:?}");
    assert!(rows(shared.path()).iter().filter(|row| row["contact"] == "stale").count() < 100);
}
