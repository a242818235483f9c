//! Serves a diagnostic port (specification, "Diagnostic Ports"): runtimes connect to us.
//!
//! Each runtime identifies itself in 34 bytes and then waits for one command; after that it connects again, with the same cookie. A port accepts
//! every runtime, holds one connection of each, and provides a [`Client`] for each, whose commands use successive connections. A trace's event
//! stream keeps the connection of its request.

mod error;
#[cfg_attr(windows, path = "../windows/port_socket.rs")]
mod socket;

use std::collections::BTreeMap;
use std::ops::RangeInclusive;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncReadExt};
use tokio::sync::watch;
use tokio::task::{JoinHandle, JoinSet};
use tokio::time::{sleep, timeout};

pub use self::error::PortError;
use self::socket::SocketFile;
pub use self::socket::raise_file_limit;
use super::client::Client;
use super::discovery::Sources;
use super::endpoint::Endpoint;
use super::peer::{self, VerifiedStream};
use super::proc::Proc;
use super::reverse_connection::ReverseConnection;
use super::stream::{Listener, Stream};
use crate::ipc::{ADVERTISE_BYTES, Advertise, Cookie};
use crate::model::ProcessKey;

/// Time limit for a new connection to identify itself. A runtime does so at once.
const ADVERTISE_TIMEOUT: Duration = Duration::from_secs(1);
/// Maximum number of connections identifying themselves at the same time; the others wait.
const MAX_ADVERTISING: usize = 256;
/// Maximum number of runtimes of one process: a process hosts one, rarely a few. Excess connections are closed.
const MAX_RUNTIMES_PER_PROCESS: usize = 16;
/// Pause after a failed accept, when all file descriptors are in use.
const ACCEPT_RETRY_INTERVAL: Duration = Duration::from_millis(50);

/// A runtime connected to a port.
#[derive(Debug, Clone)]
pub struct ConnectedRuntime {
    /// Runtime instance cookie.
    pub cookie: Cookie,
    /// Pid in the process's own pid namespace.
    pub ns_pid: u32,
    /// User id, according to the kernel.
    pub uid: u32,
    /// Client for the runtime. Its endpoint has the process's key in our pid namespace.
    pub client: Client,
    connection: ReverseConnection,
}

impl ConnectedRuntime {
    /// Returns the key of the process in our pid namespace.
    pub fn key(&self) -> ProcessKey {
        self.client.endpoint().key
    }
}

/// A diagnostic port that we serve. Dropping it removes the socket; runtimes retry until it is served again.
#[derive(Debug)]
pub struct Port {
    registry: Arc<RuntimeRegistry>,
    listening: JoinHandle<()>,
    file: SocketFile,
}

impl Port {
    /// Serves `path`, with mode 0600. Processes are looked up in `sources`.
    ///
    /// Must be called inside a tokio runtime.
    ///
    /// # Errors
    /// [`PortError`]: a live socket is not taken over, and only a stale one of this user is replaced.
    pub fn serve(path: &Path, sources: &Sources) -> Result<Self, PortError> {
        let proc = Proc::open(&sources.proc).map_err(|reason| PortError::Io { path: sources.proc.clone(), reason })?;
        let (file, listener) = SocketFile::listen(path)?;
        let registry = Arc::new(RuntimeRegistry {
            proc: Arc::new(proc),
            port: file.path().into(),
            runtimes: Mutex::default(),
            changes: watch::Sender::new(()),
        });
        let listening = tokio::spawn(Arc::clone(&registry).listen(listener));
        Ok(Self { registry, listening, file })
    }

    /// Returns the absolute path at which the port is served.
    pub fn path(&self) -> &Path {
        self.file.path()
    }

    /// Returns the currently connected runtimes.
    pub fn runtimes(&self) -> Vec<ConnectedRuntime> {
        self.registry.lock().values().filter(|runtime| runtime.connection.is_open()).cloned().collect()
    }

    /// Notifies when runtimes connect or leave.
    pub fn changes(&self) -> watch::Receiver<()> {
        self.registry.changes.subscribe()
    }

    /// Returns the client of a connected process.
    pub(super) fn client(&self, key: ProcessKey) -> Option<Client> {
        let runtimes = self.registry.lock();
        runtimes
            .range(of_process(key))
            .map(|(_, runtime)| runtime)
            .find(|runtime| runtime.connection.is_open())
            .map(|runtime| runtime.client.clone())
    }
}

impl Drop for Port {
    fn drop(&mut self) {
        self.listening.abort();
    }
}

/// Process and cookie: a process may host several runtimes, and two processes may report the same cookie.
type RuntimeId = (ProcessKey, Cookie);

/// Range of the runtimes of a process.
fn of_process(key: ProcessKey) -> RangeInclusive<RuntimeId> {
    (key, Cookie([0; 16]))..=(key, Cookie([u8::MAX; 16]))
}

/// The runtimes connected to a port.
#[derive(Debug)]
struct RuntimeRegistry {
    proc: Arc<Proc>,
    port: Box<Path>,
    runtimes: Mutex<BTreeMap<RuntimeId, ConnectedRuntime>>,
    changes: watch::Sender<()>,
}

/// A process that connected and was verified.
struct VerifiedPeer {
    key: ProcessKey,
    uid: u32,
    advertise: Advertise,
    stream: VerifiedStream,
}

impl RuntimeRegistry {
    fn lock(&self) -> MutexGuard<'_, BTreeMap<RuntimeId, ConnectedRuntime>> {
        self.runtimes.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Runs until aborted, which ends the holders as well.
    async fn listen(self: Arc<Self>, listener: Listener) {
        let (mut advertising, mut holders) = (JoinSet::new(), JoinSet::new());
        loop {
            tokio::select! {
                accepted = listener.accept(), if advertising.len() < MAX_ADVERTISING => match accepted {
                    Ok(stream) => drop(advertising.spawn(accept_advertised(stream, Arc::clone(&self.proc)))),
                    Err(_) => sleep(ACCEPT_RETRY_INTERVAL).await,
                },
                Some(advertised) = advertising.join_next() => if let Ok(Some(verified)) = advertised {
                    self.accept(verified, &mut holders);
                },
                Some(ended) = holders.join_next() => if let Ok(id) = ended {
                    self.remove(id);
                },
            }
        }
    }

    fn accept(&self, VerifiedPeer { key, uid, advertise, stream }: VerifiedPeer, holders: &mut JoinSet<RuntimeId>) {
        let ns_pid = u32::try_from(advertise.pid).unwrap_or(0);
        let id = (key, advertise.cookie);
        let mut runtimes = self.lock();
        if runtimes.get(&id).is_some_and(|runtime| runtime.connection.is_open()) {
            // If the held connection has just ended, the runtime notices and connects again.
            runtimes[&id].connection.offer(stream);
            return;
        }
        // A cookie is any number.
        if runtimes.range(of_process(key)).count() >= MAX_RUNTIMES_PER_PROCESS {
            return;
        }
        let (connection, holder) = ReverseConnection::new();
        connection.offer(stream);
        let endpoint = Endpoint { key, socket: self.port.to_path_buf() };
        let client = Client::reverse(endpoint, Arc::clone(&self.proc), connection.clone());
        let (proc, commands) = (Arc::clone(&self.proc), client.clone());
        holders.spawn(async move {
            holder.hold(|| is_running(key, &proc, &commands)).await;
            id
        });
        runtimes.insert(id, ConnectedRuntime { cookie: advertise.cookie, ns_pid, uid, client, connection });
        drop(runtimes);
        self.changes.send_replace(());
    }

    fn remove(&self, id: RuntimeId) {
        let mut runtimes = self.lock();
        // The runtime may have connected again.
        if runtimes.get(&id).is_some_and(|runtime| !runtime.connection.is_open()) {
            runtimes.remove(&id);
        }
        drop(runtimes);
        self.changes.send_replace(());
    }
}

/// Returns whether a process without a parked connection runs. One that is not visible from here runs while a command is in progress, which its exit
/// would end.
fn is_running(key: ProcessKey, proc: &Proc, client: &Client) -> bool {
    match key.started {
        0 => client.busy().is_some(),
        started => proc.stat(key.pid).is_ok_and(|stat| stat.starttime == started && stat.state != 'Z'),
    }
}

/// Reads and verifies the advertise message; `None` if it is invalid, late, or from a process other than the one it claims.
async fn accept_advertised(mut stream: Stream, proc: Arc<Proc>) -> Option<VerifiedPeer> {
    let advertise = timeout(ADVERTISE_TIMEOUT, read_advertise(&mut stream)).await.ok()??;
    let (key, uid, stream) = peer::accept(stream, &advertise, &proc).ok()?;
    Some(VerifiedPeer { key, uid, advertise, stream })
}

/// Reads an advertise message and not a byte more; `None` at its first wrong byte, or if it is cut off.
async fn read_advertise(stream: &mut (impl AsyncRead + Unpin)) -> Option<Advertise> {
    let mut bytes = Vec::with_capacity(ADVERTISE_BYTES);
    loop {
        if let Some(advertise) = Advertise::decode(&bytes).ok()? {
            return Some(advertise);
        }
        let rest = (ADVERTISE_BYTES - bytes.len()) as u64;
        if (&mut *stream).take(rest).read_buf(&mut bytes).await.ok()? == 0 {
            return None;
        }
    }
}

#[cfg(test)]
mod tests;
