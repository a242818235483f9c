//! The process list: the results of a scan combined with the replies of the processes.

use std::io;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use foldhash::{HashMap, HashSet};
use tokio::sync::{Semaphore, watch};
use tokio::task::JoinSet;
use tokio::time::{Instant, timeout};

use super::access::Access;
use super::client::{Client, REPLY_TIMEOUT};
use super::clients::Clients;
use super::discovery::{Scanner, Sources};
use super::endpoint::Endpoint;
use super::error::{Cause, ExchangeError};
use super::inquiry::Inquiry;
use super::peer::{self, SocketIdentity};
use super::port::Port;
use super::proc::entry_name;
use super::target::{self, TargetError};
use super::user;
use crate::ipc::{CommandCode, ProcessInfo};
use crate::model::{Contact, Process, ProcessKey, SafeText, shown_command_line};

/// Maximum number of processes queried at the same time. Unresponsive ones keep a connection open for seconds, and must not delay others.
const MAX_CONCURRENT_QUERIES: usize = 256;
/// Time limit for all processes together to report their names. Later ones are listed by the name from /proc, which rarely differs.
const NAMES_TIMEOUT: Duration = Duration::from_secs(1);

/// The target of a ProcessInfo request. A socket that a killed process left behind has the same key as the process had, but shares none of its
/// replies.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
struct Subject {
    key: ProcessKey,
    without_process: bool,
}

/// Maintains the list of .NET processes: scans, requests the ProcessInfo of each new process once, and keeps the reply for as long as the process
/// runs.
#[derive(Debug)]
pub struct Directory {
    scanner: Scanner,
    clients: Clients,
    /// Rows of the last scan that are sockets without a process.
    sockets_without_process: HashSet<ProcessKey>,
    inquiries: HashMap<Subject, Inquiry>,
    queries: JoinSet<(Subject, Result<Option<ProcessInfo>, ExchangeError>)>,
    slots: Arc<Semaphore>,
}

impl Directory {
    /// Opens the proc file system.
    ///
    /// # Errors
    /// If it cannot be read; the error names it.
    pub fn new(sources: Sources) -> io::Result<Self> {
        let scanner = Scanner::new(sources.clone())?;
        let clients = Clients::new(scanner.proc(), sources);
        Ok(Self::of(scanner, clients))
    }

    pub(super) fn of(scanner: Scanner, clients: Clients) -> Self {
        Self {
            clients,
            scanner,
            sockets_without_process: HashSet::default(),
            inquiries: HashMap::default(),
            queries: JoinSet::new(),
            slots: Arc::new(Semaphore::new(MAX_CONCURRENT_QUERIES)),
        }
    }

    /// Restricts the requests that the clients of this list may send.
    #[must_use]
    pub fn with_access(mut self, access: Access) -> Self {
        self.clients.set_access(access);
        self
    }

    /// Also lists the processes that connect to this port, and uses the port for them. At most one port is served: another is dropped.
    pub fn serve(&mut self, port: impl Into<Arc<Port>>) {
        self.clients.port().get_or_insert_with(|| port.into());
    }

    /// Notifies when runtimes connect to the port or leave it; `None` without a port.
    pub fn changes(&self) -> Option<watch::Receiver<()>> {
        self.clients.port().as_ref().map(|port| port.changes())
    }

    /// Returns the clients for the listed processes.
    pub fn clients(&self) -> Clients {
        self.clients.clone()
    }

    /// Lists the current processes, by pid. Queries those that are new or due, and waits at most `patience` for their replies: later ones are in
    /// the next list. A dashboard passes a short time; a command that prints once, a long one.
    ///
    /// # Errors
    /// If the proc file system cannot be listed.
    pub async fn refresh(&mut self, patience: Duration) -> io::Result<Vec<Process>> {
        let mut rows = self.scan()?;
        while let Some(answered) = self.queries.try_join_next() {
            self.apply(answered);
        }
        self.forget_others(&rows);
        if self.query(&rows) {
            self.await_replies(patience, None).await;
        }
        rows.iter_mut().for_each(|row| self.publish(row));
        Ok(rows)
    }

    /// Returns the number of stale sockets omitted from the last list.
    pub fn more_stale_sockets(&self) -> usize {
        self.scanner.more_stale_sockets()
    }

    /// Finds the process that `text` denotes, like [`resolve`](Self::resolve), but sends nothing: names are those of /proc.
    ///
    /// # Errors
    /// [`TargetError`]: why there is no match, or which processes match.
    pub async fn locate(&mut self, text: &str) -> Result<Process, TargetError> {
        let rows = self.scan().map_err(TargetError::List)?;
        self.select(text, &rows).await
    }

    /// Finds the process that `text` denotes: a pid, the name of an entry assembly, or the path of a socket, listed or not, alone or as
    /// `PATH,connect`. Requests its ProcessInfo and waits at most `patience` for the reply. Other processes are queried only for a name.
    ///
    /// # Errors
    /// [`TargetError`]: why there is no match, or which processes match.
    pub async fn resolve(&mut self, text: &str, patience: Duration) -> Result<Process, TargetError> {
        let mut rows = self.scan().map_err(TargetError::List)?;
        if target::is_name(text) {
            // The name may be looked for until a process has it, and others end until then.
            self.forget_others(&rows);
            self.query(&rows);
            self.await_replies(NAMES_TIMEOUT.min(patience), None).await;
            rows.iter_mut().for_each(|row| self.publish(row));
        }
        let row = self.select(text, &rows).await?;
        Ok(self.described(row, patience).await)
    }

    /// Finds a process that is connected to the port. Requests its ProcessInfo and waits at most `patience` for the reply.
    ///
    /// # Errors
    /// [`TargetError`], if it is no longer connected.
    pub async fn connected(&mut self, key: ProcessKey, patience: Duration) -> Result<Process, TargetError> {
        let rows = self.scan().map_err(TargetError::List)?;
        let row = rows.into_iter().find(|row| row.key == key && row.on_port).ok_or(TargetError::Disconnected(key.pid))?;
        Ok(self.described(row, patience).await)
    }

    async fn described(&mut self, mut row: Process, patience: Duration) -> Process {
        self.query(std::slice::from_ref(&row));
        self.await_replies(patience, Some(row.key)).await;
        self.publish(&mut row);
        row
    }

    /// Selects the matching row, or the process that listens at a path that no row has.
    async fn select(&self, text: &str, rows: &[Process]) -> Result<Process, TargetError> {
        // The form in which DOTNET_DiagnosticPorts gives a socket that we connect to.
        let text = text.strip_suffix(",connect").filter(|path| target::is_path(path)).unwrap_or(text);
        if target::is_path(text) {
            return self.at_path(Path::new(text), rows).await;
        }
        match target::find(text, rows) {
            Err(TargetError::NotDotnet(pid)) if self.clients.proc.stat(pid).is_err() => Err(TargetError::NoProcess(pid)),
            Err(TargetError::NotDotnet(pid)) => Err(match self.clients.proc.identity(pid) {
                Ok(identity) if !user::may_inspect(identity.uid) => TargetError::OtherUser { pid, uid: identity.uid },
                _ => TargetError::NotDotnet(pid),
            }),
            found => found.cloned(),
        }
    }

    /// Finds the process whose socket is at a path: that of a row, or else the process that listens there.
    async fn at_path(&self, path: &Path, rows: &[Process]) -> Result<Process, TargetError> {
        let proc = &self.clients.proc;
        let failed = |reason| TargetError::of_path(path, reason);
        let socket = std::path::absolute(path).map_err(failed)?;
        let file = SocketIdentity::at(&socket, proc).map_err(failed)?;
        if let Some(row) = rows.iter().find(|row| row.socket.as_deref().is_some_and(|listed| file.is_at(listed, proc))) {
            return Ok(row.clone());
        }
        let claimed = peer::claimed_process(&socket, proc);
        let listens = timeout(REPLY_TIMEOUT, peer::identify(&socket, claimed, proc)).await;
        match listens.unwrap_or(Err(Cause::Timeout(REPLY_TIMEOUT))) {
            Ok(key) => {
                let mut row = rows.iter().find(|row| row.key == key).cloned().unwrap_or_else(|| self.unlisted(key, key.pid, file.uid));
                row.socket = Some(socket);
                if !row.contact.is_attachable() {
                    row.contact = Contact::Unknown;
                }
                Ok(row)
            }
            Err(Cause::Peer(why)) if why.is_not_a_socket() => Err(TargetError::NotASocket(path.to_owned())),
            Err(cause) => {
                let key = claimed.unwrap_or(ProcessKey { pid: 0, started: 0 });
                let endpoint = Endpoint { key, socket: socket.clone() };
                let error = ExchangeError { command: CommandCode::ProcessInfo3, endpoint, cause };
                let contact = error.trouble().map_or(Contact::Unknown, |kind| Contact::Trouble { kind, reason: error.reason().into() });
                Ok(Process { socket: Some(socket), uid: file.uid, contact, ..Process::new(key) })
            }
        }
    }

    /// Scans on the current thread: this takes well under a millisecond for fifty processes, while a separate thread would be woken every second,
    /// and wake this one again, for nothing.
    pub(super) fn scan(&mut self) -> io::Result<Vec<Process>> {
        let mut rows = self.scanner.scan(std::time::Instant::now())?;
        let before = std::mem::take(&mut self.sockets_without_process);
        self.sockets_without_process = rows.iter().filter(|row| row.is_stale_socket()).map(|row| row.key).collect();
        // A runtime that is known to lack the query counts as reached without being asked.
        self.sockets_without_process.difference(&before).for_each(|key| self.clients.forget_support(*key));
        self.add_connected(&mut rows);
        Ok(rows)
    }

    /// Adds the processes that are connected to our port. Most are already listed because of their own sockets.
    fn add_connected(&self, rows: &mut Vec<Process>) {
        let port = self.clients.port();
        let Some(port) = &*port else { return };
        for runtime in port.runtimes() {
            let key = runtime.key();
            let at = rows.binary_search_by_key(&key, |row| row.key).unwrap_or_else(|at| {
                rows.insert(at, self.unlisted(key, runtime.ns_pid, runtime.uid));
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

    /// Builds the row of a process that the scan did not find, or of one in another pid namespace, with that pid there and the owner of its socket.
    pub(super) fn unlisted(&self, key: ProcessKey, ns_pid: u32, owner: u32) -> Process {
        let proc = &self.clients.proc;
        if !proc.exists(key) {
            return Process { ns_pid, uid: owner, ..Process::new(key) };
        }
        let identity = proc.identity(key.pid).ok();
        let arguments = proc.arguments(key.pid).unwrap_or_default();
        Process {
            ns_pid: identity.map_or(ns_pid, |identity| identity.ns_pid),
            name: SafeText::from_bytes(entry_name(&arguments).unwrap_or_default()),
            command_line: shown_command_line(&String::from_utf8_lossy(&arguments.join(&b' '))),
            uid: identity.map_or(owner, |identity| identity.uid),
            native_aot: proc.is_native_aot(key.pid).unwrap_or_default(),
            run_state: proc.run_state(key.pid),
            ..Process::new(key)
        }
    }

    /// Forgets the processes that are no longer listed.
    fn forget_others(&mut self, rows: &[Process]) {
        let listed: HashSet<_> = rows.iter().map(|row| self.subject(row.key)).collect();
        self.clients.keep(&rows.iter().map(|row| row.key).collect());
        self.inquiries.retain(|subject, _| listed.contains(subject));
    }

    /// Queries the processes that are due; returns whether there were any.
    fn query(&mut self, rows: &[Process]) -> bool {
        let now = Instant::now();
        let mut any = false;
        for row in rows {
            let Some(client) = self.clients.of(row) else { continue };
            let subject = self.subject(row.key);
            let inquiry = self.inquiries.entry(subject).or_insert_with(|| Inquiry::new(subject.without_process, now));
            if inquiry.is_due(row, client.busy().is_some(), now) {
                inquiry.query_sent(now);
                any = true;
                let slots = Arc::clone(&self.slots);
                self.queries.spawn(async move {
                    let _slot = slots.acquire().await;
                    (subject, client.process_info().await)
                });
            }
        }
        any
    }

    /// Waits for the replies to all open queries, or to those to one process.
    async fn await_replies(&mut self, patience: Duration, to: Option<ProcessKey>) {
        let to = to.map(|key| self.subject(key));
        let answers = async {
            while to.is_none_or(|subject| self.inquiries.get(&subject).is_some_and(Inquiry::is_open))
                && let Some(answered) = self.queries.join_next().await
            {
                self.apply(answered);
            }
        };
        // A late reply is in the next list.
        let _ = timeout(patience, answers).await;
    }

    fn subject(&self, key: ProcessKey) -> Subject {
        Subject { key, without_process: self.sockets_without_process.contains(&key) }
    }

    fn apply(&mut self, answered: Result<(Subject, Result<Option<ProcessInfo>, ExchangeError>), tokio::task::JoinError>) {
        if let Ok((subject, answer)) = answered
            && let Some(inquiry) = self.inquiries.get_mut(&subject)
        {
            inquiry.apply(answer);
        }
    }

    fn publish(&self, row: &mut Process) {
        if let Some(inquiry) = self.inquiries.get(&self.subject(row.key)) {
            let client = self.clients.of(row);
            row.support = client.as_ref().map(Client::support).unwrap_or_default();
            inquiry.publish(row, client.and_then(|client| client.busy()), Instant::now());
        }
    }
}

#[cfg(test)]
mod tests;
