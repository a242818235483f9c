//! The connection to the service: registers the data source, starts and stops recordings on command, and commits their packets.

use std::sync::Arc;
use std::sync::atomic::AtomicU16;
use std::time::Duration;

use foldhash::HashMap;
use tokio::sync::{Mutex, mpsc, watch};
use tokio::time::{Instant, sleep, sleep_until};

use super::commits::{Commits, Next, Work};
use super::record::{Control, ServiceRecording};
use super::settings::Settings;
use super::stream::{Inlet, Outlet, Tally};
use crate::model::{PacketCounts, ProducerReport};
use crate::net::Directory;
use crate::net::perfetto::{Address, Cause, Connection, Handle, IncomingReply, PerfettoError, Port, REPLY_TIMEOUT, SharedMemory};
use crate::perfetto::call::{CallError, Method as _};
use crate::perfetto::page::PageSize;
use crate::perfetto::producer::{Command, DataSource, Initialize, Initialized, ProducerMethod as Method, notify};

/// Requested size of the shared memory, in bytes.
const SHARED_MEMORY_BYTES: u32 = 4 << 20;
/// Initial and maximum delay between attempts to reconnect.
const RECONNECT_DELAYS: (Duration, Duration) = (Duration::from_millis(500), Duration::from_secs(10));
/// Delay before free memory is checked again if all is in use.
const MEMORY_POLL_INTERVAL: Duration = Duration::from_millis(5);
/// Interval between reports of packet counts.
const PROGRESS_INTERVAL: Duration = Duration::from_secs(1);
/// Time allowed for recordings to end when dn-top exits.
const SHUTDOWN_TIMEOUT: Duration = Duration::from_secs(10);
/// Maximum number of concurrent recordings. A service has no more.
const MAX_RECORDINGS: usize = 16;
/// Name of the data source.
const DATA_SOURCE: &str = "dotnet";
/// Its categories of events, and their descriptions.
const CATEGORIES: [(&str, &str); 8] = [
    ("gc", "GC pauses, background GCs, heap sizes"),
    ("exception", "Exceptions thrown, with stacks"),
    ("lock", "Lock contention"),
    ("jit", "JIT-compiled methods"),
    ("threadpool", "Thread pool workers and starvation"),
    ("activity", "Requests and other activities, from start to stop"),
    ("log", "ILogger messages"),
    ("loader", "Loaded assemblies"),
];

/// Options of [`serve`].
#[derive(Debug)]
pub struct ServeOptions {
    /// Address of the service; `None` for the default.
    pub address: Option<Address>,
    /// Settings, unless the configuration of a recording overrides them.
    pub settings: Settings,
    /// Locates the processes.
    pub directory: Directory,
}

/// Receives the progress of a producer.
pub(super) type Report = dyn Fn(ProducerReport) + Send + Sync;

/// Purpose of a call, which identifies its reply.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Token {
    Initialized,
    Command,
    Registered,
    Committed,
}

/// Serves until `stop` is true or its sender is dropped. Reconnects if the service goes away.
///
/// # Errors
/// If the environment names no socket.
pub async fn serve(serve: ServeOptions, mut stop: watch::Receiver<bool>, report: Box<Report>) -> Result<(), PerfettoError> {
    let ServeOptions { address, settings, directory } = serve;
    let address = super::address_or_default(address, Port::Producer)?;
    let supply = PacketSource::Sessions { settings, directory: Arc::new(Mutex::new(directory)) };
    let (mut pause, mut last) = (RECONNECT_DELAYS.0, None);
    loop {
        let connected = tokio::select! {
            connected = Producer::connect(address.clone(), DATA_SOURCE, supply.clone()) => connected,
            () = stopped(&mut stop) => return Ok(()),
        };
        let error = match connected {
            Ok(mut producer) => {
                (pause, last) = (RECONNECT_DELAYS.0, None);
                report(ProducerReport::Connected(producer.connection.address().to_string().into()));
                match producer.run(&mut stop, &*report).await {
                    Ok(()) => return Ok(()),
                    Err(error) => error,
                }
            }
            Err(error) => error,
        };
        let words = error.to_string();
        if last.as_ref() != Some(&words) {
            report(ProducerReport::Waiting(words.clone().into()));
            last = Some(words);
        }
        tokio::select! {
            () = sleep(pause) => pause = (pause * 2).min(RECONNECT_DELAYS.1),
            () = stopped(&mut stop) => return Ok(()),
        }
    }
}

/// Waits until the stop is requested, or the sender is dropped.
async fn stopped(stop: &mut watch::Receiver<bool>) {
    let _ = stop.wait_for(|stop| *stop).await;
}

type Channel<T> = (mpsc::UnboundedSender<T>, mpsc::UnboundedReceiver<T>);

/// Source of the packets of a recording.
#[derive(Debug, Clone)]
pub(super) enum PacketSource {
    Sessions {
        /// Settings, unless the configuration of the recording overrides them.
        settings: Settings,
        /// Locates the processes.
        directory: Arc<Mutex<Directory>>,
    },
    /// A stream that is read elsewhere; its reader receives the inlet for packets.
    Stream(mpsc::Sender<Inlet>),
}

/// A connection with the data source registered, which requires `InitializeConnection` first.
pub(super) struct Producer {
    connection: Connection<Method, Token>,
    /// The service has announced that there is no shared memory.
    without_memory: bool,
    supply: PacketSource,
    commits: Commits,
    recordings: HashMap<u64, Running>,
    writers: Arc<AtomicU16>,
    work: Channel<Work>,
    events: Channel<ProducerReport>,
    troubles: Vec<String>,
    /// Start of the service's current silence, once reported.
    silent_since: Option<Instant>,
    /// When to report packet counts next.
    progress: Instant,
}

/// A running recording. Dropping it stops the recording.
#[derive(Debug)]
struct Running {
    stop: watch::Sender<bool>,
    restart: watch::Sender<u64>,
    tally: Arc<Tally>,
    /// Packet counts when last reported.
    reported: PacketCounts,
}

impl Producer {
    /// Connects, and registers a data source of this name.
    pub(super) async fn connect(address: Address, name: &str, supply: PacketSource) -> Result<Self, PerfettoError> {
        let mut connection = Connection::open(address).await?;
        let hello = Initialize {
            name: "dn-top".to_owned(),
            version: concat!("dn-top ", env!("CARGO_PKG_VERSION")).to_owned(),
            page: PageSize::MAX,
            memory: SHARED_MEMORY_BYTES,
        };
        let incoming = connection.ask(Method::InitializeConnection, hello.encode(), Token::Initialized, REPLY_TIMEOUT).await?;
        let initialized = Initialized::decode(&incoming.reply.body).map_err(|error| connection.error(error))?;
        let mut producer = Self {
            connection,
            without_memory: initialized.without_memory,
            supply,
            commits: Commits::default(),
            recordings: HashMap::default(),
            writers: Arc::new(AtomicU16::new(1)),
            work: mpsc::unbounded_channel(),
            events: mpsc::unbounded_channel(),
            troubles: Vec::new(),
            silent_since: None,
            progress: Instant::now(),
        };
        // A file received at this point is the shared memory, whose pages have the requested size.
        if !incoming.files.is_empty() {
            producer.map(incoming.files, Some(PageSize::MAX));
        }
        let connection = &mut producer.connection;
        connection.call(Method::GetAsyncCommand, Vec::new(), Token::Command)?;
        connection
            .ask(Method::RegisterDataSource, DataSource { name, categories: &CATEGORIES }.encode(), Token::Registered, REPLY_TIMEOUT)
            .await?;
        Ok(producer)
    }

    fn map(&mut self, files: Vec<Handle>, page: Option<PageSize>) {
        if self.without_memory {
            return;
        }
        match SharedMemory::map(files, page) {
            Ok(memory) => self.commits.set_memory(memory),
            Err(error) => self.troubles.push(format!("{error}; packets are sent over the socket instead")),
        }
    }

    /// Runs until `stop`, then ends recordings properly. An error ends them, too.
    pub(super) async fn run(&mut self, stop: &mut watch::Receiver<bool>, report: &Report) -> Result<(), PerfettoError> {
        let mut stopping = stop.clone();
        let run = async {
            loop {
                tokio::select! {
                    () = stopped(stop) => break,
                    handled = self.handle_next(report) => handled?,
                }
            }
            self.recordings.values().for_each(|running| {
                running.stop.send_replace(true);
            });
            while !self.recordings.is_empty() {
                self.handle_next(report).await?;
            }
            Ok(())
        };
        // Do not wait for data to be sent to a service that does not read.
        let result = tokio::select! {
            result = run => result,
            () = async { stopped(&mut stopping).await; sleep(SHUTDOWN_TIMEOUT).await } => Ok(()),
        };
        self.recordings.clear();
        result
    }

    /// Waits for the next event and handles it.
    async fn handle_next(&mut self, report: &Report) -> Result<(), PerfettoError> {
        self.commit()?;
        self.troubles.drain(..).for_each(|trouble| report(ProducerReport::Trouble(trouble.into())));
        let waits_since = self.commits.waits_since().filter(|since| self.silent_since != Some(*since));
        let limit = waits_since.map_or_else(Instant::now, |since| since + REPLY_TIMEOUT);
        tokio::select! {
            incoming = self.connection.next() => self.receive(incoming?)?,
            Some(work) = self.work.1.recv() => self.commits.push(work),
            Some(event) = self.events.1.recv() => self.note(event, report)?,
            () = sleep(MEMORY_POLL_INTERVAL), if self.commits.waits_for_memory() => {}
            () = sleep_until(limit), if waits_since.is_some() => self.note_silence(waits_since),
            () = sleep_until(self.progress), if !self.recordings.is_empty() => self.report_progress(report),
        }
        Ok(())
    }

    /// Reports that the service has not answered for too long. The connection is kept: a paused service continues with the data sent to it.
    fn note_silence(&mut self, since: Option<Instant>) {
        self.silent_since = since;
        let silent = self.connection.error(Cause::Timeout { what: Method::CommitData.name(), limit: REPLY_TIMEOUT });
        self.troubles.push(format!("{silent}; packets it does not accept are dropped and counted"));
    }

    fn report_progress(&mut self, report: &Report) {
        self.progress = Instant::now() + PROGRESS_INTERVAL;
        for (instance, running) in &mut self.recordings {
            let packets = running.tally.counts();
            if std::mem::replace(&mut running.reported, packets) != packets {
                report(ProducerReport::Progress { instance: *instance, packets });
            }
        }
    }

    /// Sends as much as possible.
    fn commit(&mut self) -> Result<(), PerfettoError> {
        loop {
            let (next, trouble) = self.commits.next();
            self.troubles.extend(trouble.map(|trouble| format!("{trouble}; packets are sent over the socket from now on")));
            match next {
                Some(Next::Commit(arguments)) => self.connection.call(Method::CommitData, arguments, Token::Committed)?,
                Some(Next::Acknowledge(arguments)) => self.connection.send(Method::CommitData, arguments)?,
                Some(Next::Stopped(instance)) => {
                    self.recordings.remove(&instance);
                    self.notify(Method::NotifyDataSourceStopped, instance)?;
                }
                None if trouble.is_some() => {}
                None => return Ok(()),
            }
        }
    }

    fn receive(&mut self, incoming: IncomingReply<Token>) -> Result<(), PerfettoError> {
        match incoming.token {
            Token::Committed => self.commits.answered(),
            Token::Command if incoming.reply.success => {
                let command = Command::decode(&incoming.reply.body).map_err(|error| self.connection.error(error))?;
                self.handle_command(command, incoming.files)?;
            }
            Token::Command | Token::Initialized | Token::Registered => {}
        }
        Ok(())
    }

    fn handle_command(&mut self, command: Command, files: Vec<Handle>) -> Result<(), PerfettoError> {
        match command {
            Command::SetupTracing { page } => self.map(files, page),
            Command::Start { instance, configuration } => {
                if self.recordings.contains_key(&instance) || self.recordings.len() >= MAX_RECORDINGS {
                    return Ok(());
                }
                let (stop, restart) = (watch::Sender::new(false), watch::Sender::new(0));
                let control = Control { stop: stop.subscribe(), restart: restart.subscribe() };
                let tally = Arc::<Tally>::default();
                self.recordings.insert(instance, Running { stop, restart, tally: tally.clone(), reported: PacketCounts::default() });
                let events = self.events.0.clone();
                match &self.supply {
                    PacketSource::Sessions { settings, directory } => {
                        let recording = ServiceRecording {
                            instance,
                            configuration,
                            settings: settings.clone(),
                            directory: directory.clone(),
                            work: self.work.0.clone(),
                            writers: self.writers.clone(),
                            tally,
                            events,
                        };
                        tokio::spawn(recording.run(control));
                    }
                    PacketSource::Stream(inlets) => {
                        let work = self.work.0.clone();
                        let Some(outlet) = Outlet::new(&self.writers, configuration.target_buffer, work) else { return Ok(()) };
                        let inlet = Inlet { outlet, restart: control.restart, tally: tally.clone() };
                        tokio::spawn(relay(instance, inlet, inlets.clone(), control.stop, events));
                    }
                }
            }
            Command::Stop { instance } => match self.recordings.get(&instance) {
                Some(running) => drop(running.stop.send_replace(true)),
                // It was never started, possibly because there were too many.
                None => self.notify(Method::NotifyDataSourceStopped, instance)?,
            },
            Command::Flush { request, .. } => {
                self.take_work();
                self.commits.push(Work::Flushed(request));
            }
            Command::ClearState { instances } => {
                for running in instances.iter().filter_map(|instance| self.recordings.get(instance)) {
                    running.restart.send_modify(|count| *count += 1);
                }
            }
            Command::Setup { .. } | Command::Unknown => {}
        }
        Ok(())
    }

    /// Reports the start or stop of a recording. A service without the method does not wait for it.
    fn notify(&mut self, method: Method, instance: u64) -> Result<(), PerfettoError> {
        match self.connection.send(method, notify(instance)) {
            Err(PerfettoError { cause: Cause::Call(CallError::NoMethod(_)), .. }) => Ok(()),
            sent => sent,
        }
    }

    /// Queues the work passed on so far.
    fn take_work(&mut self) {
        while let Ok(work) = self.work.1.try_recv() {
            self.commits.push(work);
        }
    }

    /// Handles and passes on the report of a recording.
    fn note(&mut self, event: ProducerReport, report: &Report) -> Result<(), PerfettoError> {
        match event {
            ProducerReport::Started { instance, .. } => self.notify(Method::NotifyDataSourceStarted, instance)?,
            ProducerReport::Ended { instance, .. } => {
                // Its packets have been passed on before.
                self.take_work();
                self.commits.push(Work::Stopped(instance));
            }
            _ => {}
        }
        report(event);
        Ok(())
    }
}

/// Passes the inlet to the stream's reader, and reports the recording's start and stop.
async fn relay(
    instance: u64,
    inlet: Inlet,
    inlets: mpsc::Sender<Inlet>,
    mut stop: watch::Receiver<bool>,
    events: mpsc::UnboundedSender<ProducerReport>,
) {
    let tally = inlet.tally.clone();
    // If the reader has ended, there are no packets.
    let _ = inlets.send(inlet).await;
    // The receiver is gone if the connection is closed.
    let _ = events.send(ProducerReport::Started { instance, processes: Vec::new(), troubles: Vec::new() });
    stopped(&mut stop).await;
    let _ = events.send(ProducerReport::Ended { instance, packets: tally.counts() });
}
