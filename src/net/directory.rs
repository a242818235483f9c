//! The process list: what a scan finds, with what the processes say of themselves.

use std::collections::hash_map::Entry;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use rustc_hash::{FxHashMap, FxHashSet};
use tokio::sync::{Semaphore, watch};
use tokio::task::JoinSet;
use tokio::time::{Instant, timeout};

use super::client::{Client, SharedSupport};
use super::discovery::{Scanner, Sources};
use super::endpoint::{Endpoint, SocketName};
use super::error::ExchangeError;
use super::inquiry::Inquiry;
use super::port::{Guest, Port, PortError};
use super::proc::{Proc, Threads, entry_name};
use super::target::{self, TargetError};
use crate::ipc::{Command, ProcessInfo};
use crate::model::{Contact, Process, ProcessKey, RunState, sanitise_bytes};

/// How many processes are asked at the same time.
const ASKED_AT_ONCE: usize = 16;
/// How long all processes together may take to say their names. Who is later goes by the name that /proc gives, which is seldom another one.
const NAMES: Duration = Duration::from_secs(1);

/// A client for each process, shared by all who talk to it, so that they take turns.
#[derive(Debug, Clone)]
pub struct Clients {
    proc: Arc<Proc>,
    known: Arc<Mutex<FxHashMap<ProcessKey, Client>>>,
    /// What the answers of each process have shown, whichever way they came.
    support: Arc<Mutex<FxHashMap<ProcessKey, SharedSupport>>>,
    /// Where ports look for who connects to them.
    sources: Arc<Sources>,
    /// The port that we serve. It stays for as long as somebody may talk over it.
    port: Arc<Mutex<Option<Port>>>,
}

impl Clients {
    /// The client for a process: over our port if it is connected to that, else over its socket; `None` where it has none.
    pub fn of(&self, process: &Process) -> Option<Client> {
        self.calling(process).or_else(|| self.dialling(process))
    }

    /// The client that goes over our port, where the process is connected to it.
    fn calling(&self, process: &Process) -> Option<Client> {
        let client = self.port().as_ref()?.client(process.key)?;
        Some(client.learning(self.support_of(process.key)))
    }

    /// What all clients of a process learn together. A socket without a pid may be any process's.
    fn support_of(&self, key: ProcessKey) -> SharedSupport {
        if key.pid == 0 {
            return Arc::default();
        }
        Arc::clone(self.support.lock().unwrap_or_else(PoisonError::into_inner).entry(key).or_default())
    }

    fn port(&self) -> MutexGuard<'_, Option<Port>> {
        self.port.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Serves a port from now on, until it is closed or all clients are gone: who connects to it is in the next list.
    ///
    /// # Errors
    /// [`PortError`]; also where one is served already.
    pub fn serve(&self, path: &Path) -> Result<(), PortError> {
        let mut port = self.port();
        if let Some(port) = &*port {
            return Err(PortError::Second(port.path().to_owned()));
        }
        *port = Some(Port::serve(path, &self.sources)?);
        Ok(())
    }

    /// Takes the port down, if one is served. Its socket goes, and who is connected looks for it in vain; who waits at start-up goes on waiting.
    pub fn close_port(&self) {
        let port = self.port().take();
        drop(port);
    }

    /// Lets a process run that waits at start-up for us: on our port, on its own socket, or on both. `None` where it has neither.
    pub async fn resume(&self, process: &Process) -> Option<Result<(), ExchangeError>> {
        let ways = self.calling(process).into_iter().chain(self.dialling(process));
        let mut resumed = None;
        for client in ways {
            resumed = Some(client.run(&Command::ResumeRuntime).await);
            if let Some(Err(_)) = resumed {
                break;
            }
        }
        resumed
    }

    /// The client that connects to a process's own socket.
    fn dialling(&self, process: &Process) -> Option<Client> {
        let ours = |endpoint: &Endpoint| self.port().as_ref().is_some_and(|port| endpoint.socket == port.path());
        let endpoint = Endpoint::of(process).filter(|endpoint| !ours(endpoint))?;
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        Some(match known.entry(process.key) {
            Entry::Occupied(client) if *client.get().endpoint() == endpoint => client.get().clone(),
            entry => {
                let client = Client::watched(endpoint, Arc::clone(&self.proc)).learning(self.support_of(process.key));
                entry.insert_entry(client).get().clone()
            }
        })
    }

    /// Forgets processes that are not listed any more. Who holds a client may go on using it.
    fn keep(&self, listed: &FxHashSet<ProcessKey>) {
        self.known.lock().unwrap_or_else(PoisonError::into_inner).retain(|key, _| listed.contains(key));
        self.support.lock().unwrap_or_else(PoisonError::into_inner).retain(|key, _| listed.contains(key));
    }
}

/// Keeps the list of .NET processes: scans, asks each new one once who it is, and remembers.
#[derive(Debug)]
pub struct Directory {
    scanner: Scanner,
    clients: Clients,
    inquiries: FxHashMap<ProcessKey, Inquiry>,
    questions: JoinSet<(ProcessKey, Result<Option<ProcessInfo>, ExchangeError>)>,
    slots: Arc<Semaphore>,
}

impl Directory {
    /// Opens the proc file system.
    ///
    /// # Errors
    /// When it cannot be read; the error names it.
    pub fn new(sources: Sources) -> io::Result<Self> {
        let scanner = Scanner::new(sources.clone())?;
        Ok(Self {
            clients: Clients {
                proc: scanner.proc(),
                known: Arc::default(),
                support: Arc::default(),
                sources: Arc::new(sources),
                port: Arc::default(),
            },
            scanner,
            inquiries: FxHashMap::default(),
            questions: JoinSet::new(),
            slots: Arc::new(Semaphore::new(ASKED_AT_ONCE)),
        })
    }

    /// Lists those who connect to this port as well, and talks to them over it. One is served at the most: another goes.
    pub fn serve(&mut self, port: Port) {
        self.clients.port().get_or_insert(port);
    }

    /// Says when runtimes came to the port or left it; `None` without a port.
    pub fn changes(&self) -> Option<watch::Receiver<()>> {
        self.clients.port().as_ref().map(Port::changes)
    }

    /// Clients for the processes that are listed.
    pub fn clients(&self) -> Clients {
        self.clients.clone()
    }

    /// The processes as they are now, by pid. Asks those that are new, or whose pause is over, and waits for their answers, but not longer than
    /// `patience`: later answers are in the next list. A dashboard is not patient; a command that prints once is.
    ///
    /// # Errors
    /// When the proc file system cannot be listed.
    pub async fn refresh(&mut self, patience: Duration) -> io::Result<Vec<Process>> {
        let mut rows = self.scan()?;
        while let Some(heard) = self.questions.try_join_next() {
            self.hear(heard);
        }
        let listed: FxHashSet<_> = rows.iter().map(|row| row.key).collect();
        self.clients.keep(&listed);
        self.inquiries.retain(|key, _| listed.contains(key));
        if self.ask(&rows) {
            self.listen(patience, None).await;
        }
        rows.iter_mut().for_each(|row| self.tell(row));
        Ok(rows)
    }

    /// The process that a person means by `text`, as [`resolve`](Self::resolve) finds it, but nobody is asked anything: names are those of /proc.
    ///
    /// # Errors
    /// [`TargetError`] says why it is none, or which there are.
    pub fn locate(&mut self, text: &str) -> Result<Process, TargetError> {
        let rows = self.scan().map_err(TargetError::List)?;
        self.pick(text, &rows)
    }

    /// The process that a person means by `text`: a pid, the name of an entry assembly, or the path of a socket, listed or not, alone or as `PATH,connect`. It is asked who it
    /// is and waited for, but not longer than `patience`. Only a name takes asking others.
    ///
    /// # Errors
    /// [`TargetError`] says why it is none, or which there are.
    pub async fn resolve(&mut self, text: &str, patience: Duration) -> Result<Process, TargetError> {
        let mut rows = self.scan().map_err(TargetError::List)?;
        if target::is_name(text) {
            self.ask(&rows);
            self.listen(NAMES.min(patience), None).await;
            rows.iter_mut().for_each(|row| self.tell(row));
        }
        let row = self.pick(text, &rows)?;
        Ok(self.meet(row, patience).await)
    }

    /// Which of the rows is meant, or who listens at a path that none of them has.
    fn pick(&self, text: &str, rows: &[Process]) -> Result<Process, TargetError> {
        // As DOTNET_DiagnosticPorts writes the path of a socket that we dial.
        let text = text.strip_suffix(",connect").filter(|path| path.contains('/')).unwrap_or(text);
        match target::find(text, rows) {
            Err(TargetError::NotDotnet(pid)) if self.clients.proc.stat(pid).is_err() => Err(TargetError::NoProcess(pid)),
            Err(TargetError::NoSocket(path)) if path.exists() => Ok(unlisted(path)),
            found => found.cloned(),
        }
    }

    /// Asks one process who it is.
    async fn meet(&mut self, mut row: Process, patience: Duration) -> Process {
        self.ask(std::slice::from_ref(&row));
        self.listen(patience, Some(row.key)).await;
        self.tell(&mut row);
        row
    }

    /// Scans on the task's own thread: it takes well under a millisecond for fifty processes, and a thread of its own would be woken every second,
    /// and wake this one again, for nothing.
    fn scan(&mut self) -> io::Result<Vec<Process>> {
        let mut rows = self.scanner.scan(std::time::Instant::now())?;
        self.add_guests(&mut rows);
        Ok(rows)
    }

    /// Adds who is connected to our port. Most are listed already, for their own sockets.
    fn add_guests(&self, rows: &mut Vec<Process>) {
        let port = self.clients.port();
        let Some(port) = &*port else { return };
        for guest in port.guests() {
            let key = guest.key();
            let at = rows.binary_search_by_key(&key, |row| row.key).unwrap_or_else(|at| {
                rows.insert(at, self.guest_row(&guest));
                at
            });
            let row = &mut rows[at];
            row.on_port = true;
            if !row.contact.is_attachable() {
                row.contact = Contact::Unknown;
            }
            row.socket.get_or_insert_with(|| port.path().to_owned());
        }
    }

    /// What is known of a process that only our port shows.
    fn guest_row(&self, guest: &Guest) -> Process {
        let (key, proc) = (guest.key(), &self.clients.proc);
        let arguments = proc.arguments(key.pid).unwrap_or_default();
        let waits = proc.threads(key.pid).is_ok_and(Threads::waits);
        Process {
            ns_pid: guest.ns_pid,
            name: sanitise_bytes(entry_name(&arguments).unwrap_or_default()),
            command_line: sanitise_bytes(&arguments.join(&b' ')),
            uid: proc.identity(key.pid).map_or(0, |identity| identity.uid),
            run_state: if waits { RunState::Suspended } else { RunState::Running },
            ..Process::new(key)
        }
    }

    /// Sends the questions that are due; whether there were any.
    fn ask(&mut self, rows: &[Process]) -> bool {
        let now = Instant::now();
        let mut any = false;
        for row in rows {
            let Some(client) = self.clients.of(row) else { continue };
            let inquiry = self.inquiries.entry(row.key).or_insert_with(|| Inquiry::new(now));
            if inquiry.is_due(row, client.busy().is_some(), now) {
                inquiry.ask(now);
                any = true;
                let (key, slots) = (row.key, Arc::clone(&self.slots));
                self.questions.spawn(async move {
                    let _slot = slots.acquire().await;
                    (key, client.process_info().await)
                });
            }
        }
        any
    }

    /// Waits for the answers to all open questions, or to those to one process.
    async fn listen(&mut self, patience: Duration, to: Option<ProcessKey>) {
        let answers = async {
            while to.is_none_or(|key| self.inquiries.get(&key).is_some_and(Inquiry::is_open))
                && let Some(heard) = self.questions.join_next().await
            {
                self.hear(heard);
            }
        };
        // Who is late is heard at the next refresh.
        let _ = timeout(patience, answers).await;
    }

    fn hear(&mut self, heard: Result<(ProcessKey, Result<Option<ProcessInfo>, ExchangeError>), tokio::task::JoinError>) {
        if let Ok((key, answer)) = heard
            && let Some(inquiry) = self.inquiries.get_mut(&key)
        {
            inquiry.hear(answer);
        }
    }

    fn tell(&self, row: &mut Process) {
        if let Some(inquiry) = self.inquiries.get(&row.key) {
            let client = self.clients.of(row);
            row.support = client.as_ref().map(Client::support).unwrap_or_default();
            inquiry.tell(row, client.and_then(|client| client.busy()), Instant::now());
        }
    }
}

/// Whoever listens on a socket that no directory lists.
fn unlisted(socket: PathBuf) -> Process {
    let name = socket.file_name().and_then(|name| SocketName::parse(name.as_encoded_bytes()));
    let key = name.map_or(ProcessKey { pid: 0, started: 0 }, |name| ProcessKey { pid: name.pid, started: name.key });
    // Its owner is the user whose process made it.
    let uid = socket.metadata().map_or(0, |metadata| metadata.uid());
    Process { socket: Some(socket), uid, ..Process::new(key) }
}

#[cfg(test)]
mod tests;
