//! The runtimes themselves: they start, and the assumptions of the other tests about them hold.

use std::os::unix::fs::{FileTypeExt as _, PermissionsExt as _};

use crate::support::runtimes::{self, Runtime};
use crate::support::{Program, Signal, poll};

fn every() -> Vec<Runtime> {
    runtimes::all_and_single_files().into_iter().chain(runtimes::native_aot()).collect()
}

#[test]
fn every_runtime_listens_and_answers() {
    runtimes::each(every(), |runtime| {
        let mut program = runtime.any().start();
        let socket = std::fs::symlink_metadata(program.socket()).unwrap();
        assert!(socket.file_type().is_socket());
        assert_eq!(socket.permissions().mode() & 0o777, 0o600);
        assert!(program.answers() && program.is_alive());
        // The NativeAOT program does not read its standard input.
        if !runtime.is_native_aot() {
            program.finish();
            assert!(!program.socket().exists(), "it leaves its socket behind");
        }
    });
}

#[test]
fn killed_program_leaves_stale_socket() {
    runtimes::each(every(), |runtime| {
        let mut program = runtime.any().start();
        let socket = program.socket();
        program.signal(Signal::KILL);
        assert!(!program.wait().success());
        assert!(socket.exists());
        assert!(!program.answers());
        let folder = program.folder().to_owned();
        drop(program);
        assert!(!folder.exists());
    });
}

#[test]
fn containerized_program_is_reached_through_proc() {
    if !runtimes::namespaces() {
        return;
    }
    runtimes::each(every(), |runtime| {
        let program = runtime.any().contained().start();
        assert!(program.answers());
        assert_eq!(sockets(&program), 0, "it is not contained");
    });
}

#[test]
fn known_carries_out_commands() {
    let single_file = runtimes::single_file_net8();
    runtimes::each(runtimes::with("known").into_iter().chain(single_file).collect(), |runtime| {
        let mut program = runtime.program("known").start();
        for command in ["throw 3", "collect 2 1", "contend 2", "spend 100", "hold 1000"] {
            program.carry_out(command);
        }
        assert!(program.finish().success(), "{}", program.stderr());
    });
}

#[test]
fn children_have_sockets_and_exit_with_parent() {
    runtimes::each(runtimes::with("parent"), |runtime| {
        let parent = runtime.program("parent").arg(runtime.program("work").words().last().unwrap()).start();
        let child: u32 = parent.line().strip_prefix("child ").unwrap().parse().unwrap();
        let both = || (sockets(&parent) == 2).then_some(());
        assert!(poll(crate::support::TIMEOUT, both).is_some());
        drop(parent);
        let gone = || (!std::path::Path::new(&format!("/proc/{child}")).exists()).then_some(());
        assert!(poll(crate::support::TIMEOUT, gone).is_some());
    });
}

/// Returns the number of sockets in the program's folder, as seen from outside.
fn sockets(program: &Program) -> usize {
    std::fs::read_dir(program.folder()).unwrap().filter(|entry| entry.as_ref().unwrap().file_type().unwrap().is_socket()).count()
}

#[test]
fn programs_with_newer_libraries_run() {
    runtimes::each(runtimes::with("web"), |runtime| {
        for name in ["meters", "store"] {
            assert!(runtime.program(name).start().answers(), "{name}");
        }
        let web = runtime.program("web").start();
        let listening = std::iter::repeat_with(|| web.line()).find_map(|line| Some(line.split_once("listening on: http://")?.1.to_owned()));
        let mut stream = std::net::TcpStream::connect(listening.unwrap()).unwrap();
        std::io::Write::write_all(&mut stream, b"GET / HTTP/1.0\r\n\r\n").unwrap();
        assert!(std::io::read_to_string(stream).unwrap().ends_with("hi"));
    });
}
