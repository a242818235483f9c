use std::io::Read;
use std::os::unix::fs::{chown, symlink};
use std::os::unix::net::UnixListener;
use std::path::PathBuf;

use super::*;

/// A socket served by this very process.
struct ServedSocket {
    folder: tempfile::TempDir,
    listener: UnixListener,
}

impl ServedSocket {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let listener = UnixListener::bind(folder.path().join("s")).unwrap();
        listener.set_nonblocking(true).unwrap();
        Self { folder, listener }
    }

    fn path(&self) -> PathBuf {
        self.folder.path().join("s")
    }

    /// Connects to the socket as if it were that of the given process, and checks that nothing was sent.
    async fn connect(&self, key: ProcessKey, path: &Path) -> Result<(), Cause> {
        let connected = connect(&Endpoint { key, socket: path.to_owned() }, Some(&kernel())).await.map(drop);
        while let Ok((mut client, _)) = self.listener.accept() {
            assert_eq!(client.read(&mut [0]).unwrap(), 0);
        }
        connected
    }

    async fn refused(&self, key: ProcessKey, path: &Path) -> PeerError {
        match self.connect(key, path).await {
            Err(Cause::Peer(error)) => error,
            other => panic!("{other:?}"),
        }
    }
}

fn kernel() -> Proc {
    Proc::open("/proc".as_ref()).unwrap()
}

fn key(pid: u32) -> ProcessKey {
    ProcessKey { pid, started: kernel().stat(pid).unwrap().starttime }
}

fn own_key() -> ProcessKey {
    key(std::process::id())
}

fn uid() -> u32 {
    geteuid().as_raw()
}

#[tokio::test]
async fn only_the_expected_process_is_accepted() {
    let served = ServedSocket::new();
    served.connect(own_key(), &served.path()).await.unwrap();
    let parent = key(std::os::unix::process::parent_id());
    let earlier = ProcessKey { started: own_key().started - 1, ..own_key() };
    for other in [parent, earlier, ProcessKey { pid: 0, started: 0 }] {
        let error = served.refused(other, &served.path()).await;
        // The parent may belong to another user.
        let listens = error == PeerError::Process { pid: own_key().pid, uid: uid() };
        assert!(listens || matches!(error, PeerError::File { .. }), "{other:?}: {error}");
    }
    assert_eq!(identify(&served.path(), None, &kernel()).await.unwrap(), own_key());
    let named = Some(ProcessKey { pid: 1, started: 1 });
    assert_eq!(identify(&served.path(), named, &kernel()).await.unwrap(), own_key(), "the name is a claim");
}

#[tokio::test]
async fn file_must_be_a_socket_owned_by_the_user() {
    let served = ServedSocket::new();
    let at = |name: &str| served.folder.path().join(name);
    std::fs::write(at("file"), "").unwrap();
    assert_eq!(served.refused(own_key(), &at("file")).await, PeerError::NotASocket);
    assert_eq!(served.refused(own_key(), served.folder.path()).await, PeerError::NotASocket);
    assert!(matches!(served.connect(own_key(), &at("absent")).await, Err(Cause::Gone)));
    assert!(matches!(served.connect(own_key(), &at("file/s")).await, Err(Cause::Gone)));
    // Our own link in a directory that only we can write to is as good as its target.
    symlink(at("s"), at("link")).unwrap();
    served.connect(own_key(), &at("link")).await.unwrap();
    if geteuid().is_root() {
        std::os::unix::fs::lchown(at("link"), Some(65533), None).unwrap();
        assert!(matches!(served.refused(own_key(), &at("link")).await, PeerError::Link { owner: 65533, .. }));
        chown(at("s"), Some(65533), None).unwrap();
        assert_eq!(served.refused(own_key(), &at("s")).await, PeerError::File { file: 65533, process: 0 });
        assert!(matches!(identify(&at("s"), None, &kernel()).await, Err(Cause::Peer(PeerError::File { .. }))));
    }
}

#[tokio::test]
async fn long_paths_work_and_each_path_is_resolved_once() {
    let served = ServedSocket::new();
    let deep = served.folder.path().join("d".repeat(200));
    std::fs::create_dir(&deep).unwrap();
    let path = deep.join("n".repeat(200));
    std::fs::rename(served.path(), &path).unwrap();
    served.connect(own_key(), &path).await.unwrap();
    // The opened file is connected to, whatever has its name by then.
    let socket = open(&path, None).unwrap();
    std::fs::rename(&path, served.path()).unwrap();
    let _other = ServedSocket::new();
    symlink(_other.path(), &path).unwrap();
    connect_to(&socket).await.unwrap();
    assert!(served.listener.accept().is_ok() && _other.listener.accept().is_err());
}

#[test]
fn unseen_process_must_run_as_the_socket_owner() {
    let kernel = kernel();
    let unseen = ProcessKey { pid: u32::MAX, started: 1 };
    let of = |uid: u32| Credentials { pid: None, uid };
    assert_eq!(check(unseen, 1654, of(1654), &kernel), Ok(()));
    assert_eq!(check(unseen, 0, of(1654), &kernel), Err(PeerError::Unseen { uid: 1654 }));
    assert_eq!(check(unseen, 1654, of(0), &kernel), Err(PeerError::Unseen { uid: 0 }));
    assert_eq!(check(unseen, OVERFLOW_UID, of(OVERFLOW_UID), &kernel), Err(PeerError::Unseen { uid: OVERFLOW_UID }));
    // A visible process is not at the other end of a connection to one that is not visible.
    assert_eq!(check(own_key(), uid(), of(uid()), &kernel), Err(PeerError::Unseen { uid: uid() }));
    let seen = Credentials { pid: Some(own_key().pid), uid: uid() };
    assert_eq!(check(unseen, uid(), seen, &kernel), Err(PeerError::Process { pid: own_key().pid, uid: uid() }));
    // The user has changed since, or differs from that of the process with this pid.
    assert!(check(own_key(), uid(), Credentials { uid: uid() + 1, ..seen }, &kernel).is_err());
    assert_eq!(check(own_key(), uid(), seen, &kernel), Ok(()));
}

#[test]
fn only_our_own_user_serves_simulated_runtimes() {
    let of = |uid: u32| Credentials { pid: None, uid }.check_simulated();
    assert_eq!((of(uid()), of(uid() + 1)), (Ok(()), Err(PeerError::Unseen { uid: uid() + 1 })));
}

#[test]
fn nothing_behind_a_link_is_identified() {
    let socket = ServedSocket::new();
    // Whatever it leads to is taken for its owner's.
    std::fs::set_permissions(socket.folder.path(), std::os::unix::fs::PermissionsExt::from_mode(0o1777)).unwrap();
    symlink("/no/such", socket.folder.path().join("link")).unwrap();
    let found = SocketIdentity::at(&socket.folder.path().join("link/s"), &kernel()).unwrap();
    assert_eq!((found.id, found.uid), (None, uid()));
    let identity = SocketIdentity::at(&socket.path(), &kernel()).unwrap();
    assert_eq!(identity.id, Some(resolve::locate(&socket.path(), None).unwrap().id()));
    let other = ServedSocket::new();
    assert_eq!([&socket, &other].map(|served| identity.is_at(&served.path(), &kernel())), [true, false]);
}
