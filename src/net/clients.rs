//! One client for each process, shared by all its users.

use std::collections::hash_map::Entry;
use std::io;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use foldhash::{HashMap, HashSet};

use super::access::Access;
use super::client::{Client, SharedSupport};
use super::directory::Directory;
use super::discovery::{Scanner, Sources};
use super::endpoint::Endpoint;
use super::error::ExchangeError;
use super::port::{Port, PortError};
use super::proc::Proc;
use crate::ipc::{Command, CommandSupport};
use crate::model::{Process, ProcessKey};

/// Holds one client per process, shared by all users, so that they take turns.
#[derive(Debug, Clone)]
pub struct Clients {
    pub(super) proc: Arc<Proc>,
    pub(super) known: Arc<Mutex<HashMap<ProcessKey, Client>>>,
    /// Command support learned from each process, over any connection.
    pub(super) support: Arc<Mutex<HashMap<ProcessKey, SharedSupport>>>,
    /// Used by ports to look up the processes that connect to them.
    sources: Arc<Sources>,
    access: Access,
    /// The port that we serve. It stays open as long as a client may use it.
    port: Arc<Mutex<Option<Arc<Port>>>>,
}

impl Clients {
    pub(super) fn new(proc: Arc<Proc>, sources: Sources) -> Self {
        let (known, support, port) = (Arc::default(), Arc::default(), Arc::default());
        Self { proc, known, support, sources: Arc::new(sources), access: Access::Full, port }
    }

    pub(super) fn set_access(&mut self, access: Access) {
        self.access = access;
    }

    /// Returns the client for a process: over our port if the process is connected to it, else over its socket; `None` if it has neither.
    pub fn of(&self, process: &Process) -> Option<Client> {
        self.over_port(process).or_else(|| self.over_socket(process))
    }

    fn over_port(&self, process: &Process) -> Option<Client> {
        let client = self.port().as_ref()?.client(process.key)?;
        Some(client.with_support(self.support_of(process.key)).with_access(self.access))
    }

    /// Returns the command support shared by all clients of a process. A socket without a pid may belong to any process.
    fn support_of(&self, key: ProcessKey) -> SharedSupport {
        if key.pid == 0 {
            return Arc::default();
        }
        Arc::clone(self.support.lock().unwrap_or_else(PoisonError::into_inner).entry(key).or_default())
    }

    pub(super) fn port(&self) -> MutexGuard<'_, Option<Arc<Port>>> {
        self.port.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Creates another list of the same processes that uses these clients.
    ///
    /// # Errors
    /// If the proc file system cannot be read; the error names it.
    pub fn directory(&self) -> io::Result<Directory> {
        Ok(Directory::of(Scanner::new((*self.sources).clone())?, self.clone()))
    }

    /// Serves a port until it is closed or all clients are dropped: processes that connect to it are in the next list.
    ///
    /// # Errors
    /// [`PortError`]; also if a port is served already.
    pub fn serve(&self, path: &Path) -> Result<(), PortError> {
        let mut port = self.port();
        if let Some(port) = &*port {
            return Err(PortError::AlreadyServing(port.path().to_owned()));
        }
        *port = Some(Arc::new(Port::serve(path, &self.sources)?));
        Ok(())
    }

    /// Closes the port, if one is served. Its socket is removed: connected runtimes cannot reconnect, and suspended ones stay suspended.
    pub fn close_port(&self) {
        let port = self.port().take();
        drop(port);
    }

    /// Resumes a process that is suspended at startup, over our port, over its own socket, or over both. `None` if it has neither. It is an error
    /// if the process stays suspended because of another port.
    pub async fn resume(&self, process: &Process) -> Option<Result<(), ExchangeError>> {
        let ways: Vec<Client> = self.over_port(process).into_iter().chain(self.over_socket(process)).collect();
        for client in &ways {
            if let Err(error) = client.run(&Command::ResumeRuntime).await {
                return Some(Err(error));
            }
        }
        Some(ways.last()?.await_start().await)
    }

    fn over_socket(&self, process: &Process) -> Option<Client> {
        let ours = |endpoint: &Endpoint| self.port().as_ref().is_some_and(|port| endpoint.socket == port.path());
        let endpoint = Endpoint::of(process).filter(|endpoint| !ours(endpoint))?;
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        Some(match known.entry(process.key) {
            Entry::Occupied(client) if *client.get().endpoint() == endpoint => client.get().clone(),
            entry => {
                let client = Client::for_process(endpoint, Arc::clone(&self.proc));
                let client = client.with_support(self.support_of(process.key)).with_access(self.access);
                entry.insert_entry(client).get().clone()
            }
        })
    }

    /// Forgets which commands a process supports, so that it is asked again.
    pub(super) fn forget_support(&self, key: ProcessKey) {
        if let Some(support) = self.support.lock().unwrap_or_else(PoisonError::into_inner).get(&key) {
            *support.lock().unwrap_or_else(PoisonError::into_inner) = CommandSupport::default();
        }
    }

    /// Forgets processes that are no longer listed. Clients still held elsewhere remain usable.
    pub(super) fn keep(&self, listed: &HashSet<ProcessKey>) {
        self.known.lock().unwrap_or_else(PoisonError::into_inner).retain(|key, _| listed.contains(key));
        self.support.lock().unwrap_or_else(PoisonError::into_inner).retain(|key, _| listed.contains(key));
    }
}
