use std::fs;

use super::status::{Identity, MAX_MEMORY_GROWTH};
use super::*;

fn tree(files: &[(&str, &[u8])]) -> (tempfile::TempDir, Proc) {
    let root = tempfile::tempdir().unwrap();
    for (file, content) in files {
        let path = root.path().join(file);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, content).unwrap();
    }
    let proc = Proc::open(root.path()).unwrap();
    (root, proc)
}

#[test]
fn own_process_has_all_details() {
    let proc = Proc::open(Path::new("/proc")).unwrap();
    let pid = std::process::id();
    let mut inode = None;
    proc.pids(|each, number| inode = if each == pid { Some(number) } else { inode }).unwrap();
    assert!(inode.is_some());
    let stat = proc.stat(pid).unwrap();
    assert!(stat.rss > 0 && stat.num_threads > 0 && stat.starttime > 0);
    let (machine, age) = (proc.uptime().unwrap(), proc.uptime_of(pid).unwrap());
    assert!(age < machine.min(std::time::Duration::from_secs(3600)), "{age:?}");
    assert_eq!(proc.identity(pid).unwrap(), Identity { uid: rustix::process::geteuid().as_raw(), ns_pid: pid });
    assert_eq!(proc.environ(pid).unwrap().get("PATH").is_some(), std::env::var_os("PATH").is_some());
    assert_eq!(proc.arguments(pid).unwrap().len(), std::env::args_os().count());
    assert_eq!(proc.threads(pid).unwrap(), Threads::default());
    assert_eq!(proc.runtime_library(pid).unwrap(), None);
}

#[test]
fn hostile_process_names_do_not_shift_fields() {
    let stat = b"42 (a) R 7 7 ) (b\xff) S 1 42 42 0 -1 4194560 1 2 3 4 150 50 0 0 20 0 11 0 256818 1000000 2500 18446744073709551615 \
        1 1 0 0 0 0 0 4096 0 0 0 0 17 1 0 0 0 0 0\n";
    let status = b"Name:\ta) Uid: \xff:\nUmask:\t0022\nState:\tS\nUid:\t1000\t1001\t0\t0\nNSpid:\t42\t7\t1\nThreads:\t11\n";
    let (_root, proc) = tree(&[("42/stat", stat), ("42/status", status), ("7/status", b"Name:\tx\n"), ("7/stat", b"")]);
    let stat = proc.stat(42).unwrap();
    assert_eq!((stat.state, stat.starttime, stat.utime + stat.stime, stat.num_threads, stat.rss), ('S', 256_818, 200, 11, 2500));
    assert_eq!(proc.cpu_time(42).unwrap(), ticks(200));
    assert_eq!(proc.identity(42).unwrap(), Identity { uid: 1001, ns_pid: 1 });
    assert!(proc.cpu_time(7).is_err() && proc.identity(7).is_err() && proc.stat(7).is_err() && proc.stat(8).is_err());
}

#[test]
fn arguments_may_be_empty_and_long() {
    let long = [vec![b'x'; 100_000], vec![0]].concat();
    let (_root, proc) = tree(&[("1/cmdline", b""), ("2/cmdline", b"dotnet\0\0a b\0"), ("3/cmdline", b"one title"), ("4/cmdline", &long)]);
    assert_eq!(proc.arguments(1).unwrap(), Vec::<Vec<u8>>::new());
    assert_eq!(proc.arguments(2).unwrap(), [b"dotnet".to_vec(), b"".to_vec(), b"a b".to_vec()]);
    assert_eq!(proc.arguments(3).unwrap(), [b"one title".to_vec()]);
    assert!(proc.arguments(4).unwrap()[0].len() < 70_000);
}

#[test]
fn suspended_runtime_is_detected_by_thread_names() {
    let named = |names: &[&str]| {
        let mut threads = Threads::default();
        names.iter().for_each(|name| threads.add(name.as_bytes()));
        (threads.runtime, threads.server, threads.is_suspended())
    };
    assert_eq!(named(&["dotnet", "dotnet"]), (false, false, false));
    assert_eq!(named(&["dotnet", ".NET SynchManag"]), (true, false, false));
    assert_eq!(named(&["azmcp", ".NET SynchManag", ".NET EventPipe"]), (true, true, true));
    assert_eq!(named(&["azmcp", ".NET SynchManag", ".NET EventPipe", ".NET Finalizer"]), (true, true, false));
    assert_eq!(named(&["azmcp", ".NET SynchManag", ".NET Finalizer"]), (true, false, false));

    let (_root, proc) =
        tree(&[("5/task/5/comm", b"app\n"), ("5/task/6/comm", b".NET SynchManag\n"), ("5/task/nonsense/comm", b".NET EventPipe\n")]);
    assert_eq!(proc.threads(5).unwrap(), Threads { runtime: true, server: false, started: false });
}

#[test]
fn runtime_library_is_found_in_maps() {
    let line = |path: &str| format!("7f00-7f01 r-xp 00000000 08:01 1234   {path}\n");
    let library = "/usr/share/my dotnet/shared/Microsoft.NETCore.App/3.1.23/libcoreclr.so";
    let decoys = line("/lib/notlibcoreclr.so") + &line("[heap]") + "7f00-7f01 rw-p 00000000 00:00 0 \n";
    for (maps, found) in [
        (decoys.clone(), None),
        (decoys.clone() + &line(library), Some(library)),
        (decoys.clone() + &line(&format!("{library} (deleted)")), Some(library)),
        (line("/opt/libmonosgen-2.0.so"), Some("/opt/libmonosgen-2.0.so")),
    ] {
        let (_root, proc) = tree(&[("9/maps", maps.as_bytes())]);
        assert_eq!(proc.runtime_library(9).unwrap(), found.map(PathBuf::from), "{maps}");
    }
}

#[test]
fn code_mappings_are_the_executable_ones() {
    let maps =
        b"1000-2000 r-xp 00000000 08:01 1234 /lib/a (deleted)\n2000-3000 rw-p 00000000 00:00 0 [xheap]\nnonsense\n\n7f00-7f01 rwxs 0 0 0\n";
    let (_root, proc) = tree(&[("9/maps", maps)]);
    let mappings = proc.code_mappings(9).unwrap();
    assert_eq!([&mappings[0].range, &mappings[1].range], [&(0x1000..0x2000), &(0x7f00..0x7f01)]);
    let path = |at: usize| (String::from_utf8(mappings[at].path.clone()).unwrap(), mappings[at].is_deleted);
    assert_eq!((path(0), path(1)), (("/lib/a".to_owned(), true), (String::new(), false)));
}

#[test]
fn thread_ids_are_those_of_the_pid_namespace() {
    let inside = b"Uid:\t0\t0\t0\t0\nNSpid:\t42\t1\n";
    let beside = b"Uid:\t0\t0\t0\t0\nNSpid:\t57\t9\n";
    let (_root, proc) = tree(&[
        ("42/task/42/comm", b"dotnet\n"),
        ("42/task/42/status", inside),
        ("42/task/57/comm", b".NET TP Worker\n"),
        ("42/task/57/status", beside),
        ("42/task/58/comm", b"gone\n"),
    ]);
    let mut names = proc.thread_names(42).unwrap();
    names.sort();
    assert_eq!(names, [(1, b"dotnet".to_vec()), (9, b".NET TP Worker".to_vec())]);
    assert!(proc.thread_names(43).is_err());
}

#[test]
fn mapped_files_do_not_count_as_memory() {
    let memory = |lines: &str| {
        let (_root, proc) = tree(&[("9/status", format!("Uid:\t0\t0\t0\t0\n{lines}").as_bytes())]);
        proc.peak_memory(9).map(|bytes| bytes >> 10).map_err(|error| error.kind())
    };
    let growth = MAX_MEMORY_GROWTH >> 10;
    assert_eq!(memory("VmHWM:\t  900 kB\nRssAnon:\t 10 kB\nVmSwap:\t 0 kB\n"), Ok(900));
    assert_eq!(memory("VmHWM:\t 99000000 kB\nRssAnon:\t 10 kB\nVmSwap:\t 5 kB\n"), Ok(30 + growth));
    assert_eq!(memory("VmHWM:\t 99000000 kB\n"), Ok(99_000_000));
    assert_eq!(memory(""), Err(io::ErrorKind::InvalidData));
}

#[test]
fn environment_that_is_cut_off_ends_with_a_whole_variable() {
    let long = format!("A=1\0LONG={}", "x".repeat(2 * MAX_FILE_BYTES));
    let (_root, proc) = tree(&[("1/environ", long.as_bytes()), ("2/environ", b"A=1\0B=2")]);
    let names = |pid| proc.initial_environment(pid).unwrap().into_iter().map(|variable| variable.name).collect::<Vec<_>>();
    assert_eq!((names(1), names(2)), (vec!["A".to_owned()], vec!["A".to_owned(), "B".to_owned()]));
}

#[test]
fn program_whose_file_is_not_readable_may_be_native_aot() {
    let core_clr = b"7f00-7f01 r-xp 00000000 08:01 1234 /lib/libcoreclr.so\n";
    let (root, proc) = tree(&[("1/maps", b""), ("2/maps", core_clr), ("3/maps", b""), ("4/stat", b"")]);
    std::os::unix::fs::symlink(std::env::current_exe().unwrap(), root.path().join("3/exe")).unwrap();
    assert_eq!([1, 2, 3, 4].map(|pid| proc.is_native_aot(pid)), [None, Some(false), Some(false), None]);
}

#[test]
fn own_program_in_memory_is_inspected() {
    use std::os::fd::AsRawFd;
    let mut memory = File::from(rustix::fs::memfd_create("sleep", rustix::fs::MemfdFlags::CLOEXEC).unwrap());
    io::copy(&mut File::open("/bin/sleep").unwrap(), &mut memory).unwrap();
    let program = File::open(format!("/proc/self/fd/{}", memory.as_raw_fd())).unwrap();
    drop(memory);
    let mut child = std::process::Command::new(format!("/proc/self/fd/{}", program.as_raw_fd())).arg("600").spawn().unwrap();
    let is_native_aot = Proc::open(Path::new("/proc")).unwrap().is_native_aot(child.id());
    child.kill().unwrap();
    child.wait().unwrap();
    assert_eq!(is_native_aot, Some(false));
}
