//! Tests of the socket file.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::{UnixListener as Listener, UnixStream as Stream};

use super::*;

#[tokio::test]
async fn socket_is_private_and_foreign_files_are_not_replaced() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("port");
    let serve = |path: &Path| Port::serve(path, &Sources::machine());
    let port = serve(&path).unwrap();
    assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
    let refused = |path: &Path, words: &str| {
        let error = serve(path).unwrap_err().to_string();
        assert!(error.contains(words), "{error}");
    };
    refused(&path, "is served by another program");
    assert!(Stream::connect(&path).is_ok(), "the live one goes on");
    drop(port);
    assert!(!path.exists());

    drop(Listener::bind(&path).unwrap());
    let port = serve(&path).unwrap();
    assert_eq!(fs::metadata(port.path()).unwrap().permissions().mode() & 0o777, 0o600);
    // If another file takes its place, it is not ours to remove.
    fs::remove_file(&path).unwrap();
    fs::write(&path, "mine").unwrap();
    drop(port);
    refused(&path, "is not a socket that this user left behind");
    assert_eq!(fs::read(&path).unwrap(), b"mine");

    std::os::unix::fs::symlink(dir.path().join("elsewhere"), dir.path().join("link")).unwrap();
    refused(&dir.path().join("link"), "is not a socket");
    refused(&dir.path().join("n".repeat(120)), "107 bytes at most");
    refused(&dir.path().join("a,b"), "cannot be written into DOTNET_DiagnosticPorts");
    refused(&dir.path().join("no/port"), "cannot be served");
    if rustix::process::geteuid().is_root() {
        let theirs = dir.path().join("theirs");
        drop(Listener::bind(&theirs).unwrap());
        std::os::unix::fs::chown(&theirs, Some(65_533), None).unwrap();
        refused(&theirs, "is not a socket that this user left behind");
        assert!(theirs.exists());
    }
}

#[test]
fn a_process_that_has_exited_or_has_a_reused_pid_is_not_running() {
    let proc = Proc::open(Path::new("/proc")).unwrap();
    let is_running = |key| is_running(key, &proc, &Client::new(Endpoint { key, socket: "port".into() }));
    let key = |pid| ProcessKey { pid, started: proc.stat(pid).unwrap().starttime };
    let own = key(std::process::id());
    assert!(is_running(own) && !is_running(ProcessKey { started: own.started - 1, ..own }));
    let mut child = std::process::Command::new("cat").stdin(std::process::Stdio::piped()).spawn().unwrap();
    let running = key(child.id());
    assert!(is_running(running));
    drop(child.stdin.take());
    while proc.stat(child.id()).unwrap().state != 'Z' {
        std::thread::sleep(Duration::from_millis(1));
    }
    assert!(!is_running(running));
    child.wait().unwrap();
}

/// A stopped program still listens, but accepts nothing.
#[tokio::test]
async fn listener_with_a_full_queue_blocks_nothing() {
    use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType, bind, connect, listen, socket_with};

    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("port");
    let at = SocketAddrUnix::new(&path).unwrap();
    let socket = || socket_with(AddressFamily::UNIX, SocketType::STREAM, SocketFlags::NONBLOCK | SocketFlags::CLOEXEC, None).unwrap();
    let listener = socket();
    bind(&listener, &at).unwrap();
    listen(&listener, 0).unwrap();
    let waiting: Vec<_> = std::iter::repeat_with(socket).take_while(|socket| connect(socket, &at).is_ok()).collect();
    assert!(!waiting.is_empty());
    let serve = tokio::task::spawn_blocking({
        let (path, runtime) = (path.clone(), tokio::runtime::Handle::current());
        move || {
            let _entered = runtime.enter();
            Port::serve(&path, &Sources::machine()).map(drop)
        }
    });
    let served = timeout(Duration::from_secs(10), serve).await;
    // Ends a thread that is blocked.
    drop((listener, waiting));
    let error = served.expect("it blocks").unwrap().unwrap_err();
    assert!(matches!(error, PortError::InUse(_)) && path.exists(), "{error}");
}
