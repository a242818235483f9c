//! Processes that cannot be attached to, and the reasons given.

use super::*;

#[test]
fn a_socket_without_its_process_is_stale() {
    let fake_proc = FakeProc::new();
    fake_proc.socket("tmp", 42, OLD);
    let rows = scan(&fake_proc);
    assert_eq!(only_trouble(&rows).0, Trouble::Stale);
    assert!(only_trouble(&rows).1.starts_with("there is no process 42; "), "{rows:?}");

    // The pid was reused by a process that is not .NET.
    fake_proc.add(&Fake { started: OLD + 5, threads: &["bash"], ..fake(42) });
    let rows = scan(&fake_proc);
    assert!(only_trouble(&rows).1.starts_with("process 42 is a different process by now; "), "{rows:?}");
    assert_eq!((rows[0].key.started, rows[0].name.as_str()), (OLD, "(gone)"));

    // Killed, but not yet reaped by its parent.
    fake_proc.add(&Fake { state: 'Z', ..fake(42) });
    assert_eq!(only_trouble(&scan(&fake_proc)).0, Trouble::Stale);

    // Too young to distinguish from a socket that is being created; and left over from an earlier boot.
    let fake_proc = FakeProc::new();
    let ticks = procfs::ticks_per_second();
    fake_proc.socket("tmp", 42, UPTIME * ticks - 10);
    assert_eq!(scan(&fake_proc), []);
    fake_proc.socket("tmp", 43, 2 * UPTIME * ticks);
    assert_eq!(only_trouble(&scan(&fake_proc)).0, Trouble::Stale);
}

#[test]
fn runtime_without_socket_shows_the_reason() {
    let old = &["dotnet", "dotnet"];
    let library = "7f00-7f01 r-xp 0 08:01 12   /opt/Microsoft.NETCore.App/3.1.23/libcoreclr.so\n";
    let off = &["app", ".NET SynchManag", ".NET Finalizer"];
    let long = format!("/tmp/{}", "x".repeat(90));
    let long_environ = format!("TMPDIR={long}");
    for (case, kind, words) in [
        (
            Fake { environ: "A=1 DOTNET_EnableDiagnostics=0", threads: off, ..fake(5) },
            Trouble::Disabled,
            "switched off by DOTNET_EnableDiagnostics=0",
        ),
        (
            Fake { environ: "COMPlus_EnableDiagnostics=0", threads: old, maps: library, ..fake(5) },
            Trouble::Disabled,
            "COMPlus_EnableDiagnostics=0",
        ),
        (Fake { threads: off, ..fake(5) }, Trouble::Disabled, "switched off in its configuration"),
        (fake(5), Trouble::Disabled, "its socket was removed from"),
        (Fake { environ: "TMPDIR=/no/such", ..fake(5) }, Trouble::Disabled, "its socket was removed from /no/such"),
        (Fake { environ: "TMPDIR=/no/such", threads: off, ..fake(5) }, Trouble::Disabled, "temporary directory /no/such does not exist"),
        (Fake { environ: &long_environ, ..fake(5) }, Trouble::Unsupported, "bytes long"),
    ] {
        let fake_proc = FakeProc::new();
        fake_proc.add(&case);
        let rows = scan(&fake_proc);
        let (is, reason) = only_trouble(&rows);
        assert!(is == kind && reason.contains(words), "{kind:?} {words}: {reason}");
    }
    // The threads of .NET Core 3.1 have no names. Without the thread that serves the socket, a runtime has pipes if its configuration says so.
    for (case, words) in [
        (fake(5), "probably exiting"),
        (Fake { threads: old, maps: library, ..fake(5) }, "probably exiting"),
        (Fake { threads: off, ..fake(5) }, "switched off in its configuration"),
    ] {
        let fake_proc = FakeProc::new();
        fake_proc.add(&case);
        fs::write(fake_proc.path(&format!("tmp/clr-debug-pipe-5-{OLD}-in")), "").unwrap();
        assert!(matches!(only_trouble(&scan(&fake_proc)), (Trouble::Disabled, reason) if reason.contains(words)), "{words}");
    }
    let fake_proc = FakeProc::new();
    fake_proc.add(&fake(5));
    std::os::unix::fs::symlink("/usr/lib/wine/wine64-preloader", fake_proc.path("proc/5/exe")).unwrap();
    assert!(matches!(only_trouble(&scan(&fake_proc)), (Trouble::Unsupported, reason) if reason.contains("under the same Wine")));
    // No result yet while it may still be starting; not .NET at all.
    let fake_proc = FakeProc::new();
    fake_proc.add(&Fake { started: (UPTIME - 1) * procfs::ticks_per_second(), threads: off, ..fake(5) });
    fake_proc.add(&Fake { threads: old, maps: "7f00-7f01 r-xp 0 08:01 12   /lib/libc.so.6\n", ..fake(6) });
    assert_eq!(scan(&fake_proc), []);
}

#[test]
fn a_temporary_directory_that_its_user_cannot_write_to_is_named() {
    use std::os::unix::fs::PermissionsExt;

    let fake_proc = FakeProc::new();
    let tmp = fake_proc.path("own");
    fs::create_dir(&tmp).unwrap();
    let environ = format!("TMPDIR={}", tmp.display());
    for (mode, uid, named) in [
        (0o555, 12345, true),
        (0o755, 12345, true),
        (0o765, 12345, true),
        // The owner is root, whom no mode stops, or our user, whose bits count.
        (0o755, own_uid(), false),
        (0o555, own_uid(), own_uid() != 0),
        // Members of the group may write, and entries of a list may allow others.
        (0o775, 12345, false),
        (0o1777, 12345, false),
    ] {
        fs::set_permissions(&tmp, fs::Permissions::from_mode(mode)).unwrap();
        let status = format!("Uid:\t{uid}\t{uid}\t{uid}\t{uid}\n");
        fake_proc.add(&Fake { environ: &environ, threads: &["app", ".NET SynchManag", ".NET Finalizer"], status, ..fake(5) });
        let rows = scan(&fake_proc);
        assert_eq!(only_trouble(&rows).1.contains("is not writable by its user"), named, "{mode:o} {uid}: {rows:?}");
    }
}

#[test]
fn tmpdir_too_long_for_a_socket_is_not_resolved() {
    let fake_proc = FakeProc::new();
    let own = fake_proc.path("own");
    fs::create_dir_all(&own).unwrap();
    fake_proc.add(&Fake { environ: &format!("TMPDIR={}{}", own.display(), "/../own".repeat(20)), ..fake(5) });
    fake_proc.socket("own", 5, OLD);
    assert!(matches!(only_trouble(&scan(&fake_proc)), (Trouble::Unsupported, reason) if reason.contains("bytes long")));
}

#[test]
fn unreadable_processes_are_denied_with_a_remedy() {
    let fake_proc = FakeProc::new();
    for (pid, uid) in [(7, 12345), (8, 99999), (9, own_uid())] {
        fake_proc.add(&Fake { status: format!("Uid:\t{uid}\t{uid}\t{uid}\t{uid}\n"), ..fake(pid) });
        fs::remove_file(fake_proc.path(&format!("proc/{pid}/environ"))).unwrap();
    }
    let rows = scan(&fake_proc);
    let reasons: Vec<_> = rows.iter().map(|row| (row.key.pid, only_trouble(std::slice::from_ref(row)))).collect();
    // The remedy depends on who we are.
    let how = if own_uid() == 0 { "CAP_SYS_PTRACE" } else { "run " };
    for ((pid, (kind, reason)), (expected, who)) in reasons.iter().zip([
        (7, "it belongs to user alice, and"),
        (8, "it belongs to user id 99999, and"),
        (9, "its socket directory cannot be reached"),
    ]) {
        assert_eq!((*pid, *kind), (expected, Trouble::Denied));
        assert!(reason.starts_with(who) && reason.contains(how), "{reason}");
    }
}
