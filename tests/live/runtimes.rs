//! The runtimes themselves: that they start, and that what the other tests take for granted about them is so.

use std::os::unix::fs::{FileTypeExt as _, PermissionsExt as _};

use crate::support::runtimes::{self, Runtime};
use crate::support::{Program, Signal, poll};

#[test]
fn net31_listens_and_answers() {
    runtimes::net31().iter().for_each(listens_and_answers);
}

#[test]
fn net9_listens_and_answers() {
    runtimes::net9().iter().for_each(listens_and_answers);
}

#[test]
fn net10_listens_and_answers() {
    runtimes::net10().iter().for_each(listens_and_answers);
}

fn listens_and_answers(runtime: &Runtime) {
    let mut program = runtime.any().start();
    let socket = std::fs::symlink_metadata(program.socket()).unwrap();
    assert!(socket.file_type().is_socket());
    assert_eq!(socket.permissions().mode() & 0o777, 0o600, "{runtime}");
    assert!(program.answers(), "{runtime}");
    assert!(program.is_alive(), "{runtime}");
    program.finish();
    assert!(!program.socket().exists(), "{runtime} leaves its socket behind");
}

#[test]
fn a_killed_program_leaves_a_dead_socket() {
    let Some(net9) = runtimes::net9() else { return };
    let mut program = net9.any().start();
    let socket = program.socket();
    program.signal(Signal::KILL);
    assert!(!program.wait().success());
    assert!(socket.exists());
    assert!(!program.answers());
    let folder = program.folder().to_owned();
    drop(program);
    assert!(!folder.exists());
}

#[test]
fn a_contained_program_is_reached_through_proc() {
    if !runtimes::namespaces() {
        return;
    }
    for runtime in runtimes::all() {
        let program = runtime.any().contained().start();
        assert!(program.answers(), "{runtime}");
        assert_eq!(sockets(&program), 0, "{runtime} is not contained");
    }
}

#[test]
fn known_carries_out_what_it_is_told() {
    for runtime in [runtimes::net31(), runtimes::net9()].into_iter().flatten() {
        let mut program = runtime.program("known").start();
        for command in ["throw 3", "collect 2 1", "contend 2", "spend 100", "hold 1000"] {
            program.carry_out(command);
        }
        assert!(program.finish().success(), "{runtime}: {}", program.stderr());
    }
}

#[test]
fn children_have_sockets_too_and_end_with_their_parent() {
    let Some(net9) = runtimes::net9() else { return };
    let parent = net9.program("parent").arg(net9.program("work").words().last().unwrap()).start();
    let child: u32 = parent.line().strip_prefix("child ").unwrap().parse().unwrap();
    let both = || (sockets(&parent) == 2).then_some(());
    assert!(poll(crate::support::PATIENCE, both).is_some());
    drop(parent);
    let gone = || (!std::path::Path::new(&format!("/proc/{child}")).exists()).then_some(());
    assert!(poll(crate::support::PATIENCE, gone).is_some());
}

/// How many sockets are in the program's folder as it is seen from here.
fn sockets(program: &Program) -> usize {
    std::fs::read_dir(program.folder()).unwrap().filter(|entry| entry.as_ref().unwrap().file_type().unwrap().is_socket()).count()
}

#[test]
fn meters_and_web_run_on_net9() {
    let Some(net9) = runtimes::net9() else { return };
    assert!(net9.program("meters").start().answers());
    let web = net9.program("web").start();
    let listening = std::iter::repeat_with(|| web.line()).find_map(|line| Some(line.split_once("listening on: http://")?.1.to_owned()));
    let mut stream = std::net::TcpStream::connect(listening.unwrap()).unwrap();
    std::io::Write::write_all(&mut stream, b"GET / HTTP/1.0\r\n\r\n").unwrap();
    assert!(std::io::read_to_string(stream).unwrap().ends_with("hi"));
}
