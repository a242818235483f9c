//! A simulated Perfetto tracing service, as seen by a producer, with options for the behavior of older, newer, faulty or hostile
//! services.

mod seen;

use std::fs::File;
use std::io::{self, IoSlice};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use rustix::fs::{MemfdFlags, SealFlags, fcntl_add_seals, ftruncate, memfd_create};
use rustix::net::{SendAncillaryBuffer, SendAncillaryMessage, SendFlags, sendmsg};
use tokio::io::{AsyncReadExt, AsyncWriteExt, Interest};
use tokio::net::{UnixListener, UnixStream};
use tokio::sync::{mpsc, watch};
use tokio::task::JoinHandle;

pub(crate) use seen::TracingSeen;

use crate::perfetto::Message;
use crate::perfetto::chunk::ChunkHeader;
use crate::perfetto::ipc::{Body, Frame, FrameReader};
use crate::perfetto::page::{ChunkState, PAGE_HEADER, PageSize, PageWord};
use crate::perfetto::read::{Value, fields};

/// Features and faults of a service.
#[derive(Debug, Clone)]
pub(crate) struct TracingBehavior {
    /// Supported methods, numbered in this order.
    pub(crate) methods: Vec<&'static str>,
    pub(crate) first_method: u32,
    /// Page size in KB; `None` if the command does not specify one.
    pub(crate) page_kb: Option<u32>,
    pub(crate) memory: u64,
    pub(crate) sealed: bool,
    /// Number of files sent with the command.
    pub(crate) files: usize,
    /// Whether they are sent with the reply to `InitializeConnection` instead.
    pub(crate) files_at_once: bool,
    /// Whether it announces that there is no shared memory (`use_shmem_emulation`).
    pub(crate) without_memory: bool,
    /// Whether replies contain fields unknown to any schema.
    pub(crate) unknown_fields: bool,
    pub(crate) fault: TracingFault,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TracingFault {
    None,
    /// Answers with bytes that are not a frame.
    Garbage,
    Closes,
    Silent,
    /// Stops reading once a recording has begun.
    StopsReading,
    /// Stops answering commits once a recording has begun.
    StopsAnswering,
    KeepsChunks,
    /// Keeps writing into the shared memory.
    OverwritesMemory,
}

impl Default for TracingBehavior {
    fn default() -> Self {
        Self {
            methods: vec![
                "InitializeConnection",
                "RegisterDataSource",
                "UnregisterDataSource",
                "CommitData",
                "GetAsyncCommand",
                "NotifyDataSourceStarted",
                "NotifyDataSourceStopped",
                "Sync",
            ],
            first_method: 1,
            page_kb: Some(4),
            memory: 256 << 10,
            sealed: true,
            files: 1,
            files_at_once: false,
            without_memory: false,
            unknown_fields: false,
            fault: TracingFault::None,
        }
    }
}

/// A service on a socket. Dropping it stops it.
#[derive(Debug)]
pub(crate) struct TracingService {
    path: PathBuf,
    task: JoinHandle<()>,
    commands: mpsc::UnboundedSender<Vec<u8>>,
    seen: watch::Receiver<TracingSeen>,
}

impl TracingService {
    /// Listens at a path, and serves one producer at a time.
    ///
    /// # Errors
    /// If the socket cannot be created.
    pub(crate) fn start(path: &Path, behavior: TracingBehavior) -> io::Result<Self> {
        let listener = UnixListener::bind(path)?;
        let (commands, commands_to_send) = mpsc::unbounded_channel();
        let (seen, shown) = watch::channel(TracingSeen::default());
        let task = tokio::spawn(listen(listener, behavior, commands_to_send, seen));
        Ok(Self { path: path.to_owned(), task, commands, seen: shown })
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Sends a command of `GetAsyncCommandResponse`, given by its field number.
    pub(crate) fn command(&self, field: u32, fill: impl FnOnce(&mut Message<'_>)) {
        // A service that has ended sends nothing.
        let _ = self.commands.send(Message::encode(|command| command.message(field, fill)));
    }

    /// Sets up and starts a recording whose chunks go to buffer 1.
    pub(crate) fn record(&self, instance: u64, text: &str) {
        for field in [6, 1] {
            self.command(field, |command| {
                command.uint(1, instance);
                command.message(2, |configuration| {
                    configuration.text(1, "dotnet");
                    configuration.uint(2, 1);
                    configuration.text(1000, text);
                });
            });
        }
    }

    pub(crate) fn stop(&self, instance: u64) {
        self.command(2, |command| command.uint(1, instance));
    }

    /// Waits until the received messages satisfy a condition.
    pub(crate) async fn until(&self, condition: impl FnMut(&TracingSeen) -> bool) -> TracingSeen {
        wait_until(&self.seen, condition).await
    }
}

/// Waits until a value satisfies a condition, forever if its sender has ended.
pub(super) async fn wait_until<T: Clone>(seen: &watch::Receiver<T>, condition: impl FnMut(&T) -> bool) -> T {
    let found = seen.clone().wait_for(condition).await.map(|seen| seen.clone());
    match found {
        Ok(seen) => seen,
        Err(_) => std::future::pending().await,
    }
}

impl Drop for TracingService {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn listen(
    listener: UnixListener,
    behavior: TracingBehavior,
    mut commands_to_send: mpsc::UnboundedReceiver<Vec<u8>>,
    seen: watch::Sender<TracingSeen>,
) {
    while let Ok((stream, _)) = listener.accept().await {
        let producer = Producer { stream, behavior: &behavior, seen: &seen, memory: None, commands: None, is_first: true };
        // When one disconnects, the next is served.
        let _ = producer.serve(&mut commands_to_send).await;
    }
}

struct Producer<'a> {
    stream: UnixStream,
    behavior: &'a TracingBehavior,
    seen: &'a watch::Sender<TracingSeen>,
    memory: Option<File>,
    /// The request whose replies are commands.
    commands: Option<u64>,
    is_first: bool,
}

impl Producer<'_> {
    async fn serve(mut self, commands_to_send: &mut mpsc::UnboundedReceiver<Vec<u8>>) -> io::Result<()> {
        let (mut frames, mut buffer) = (FrameReader::default(), vec![0; 64 << 10]);
        let fault = self.behavior.fault;
        loop {
            while let Ok(Some(frame)) = frames.frame() {
                match fault {
                    TracingFault::Garbage => self.stream.write_all(&[0xff; 64]).await?,
                    TracingFault::Closes => return Ok(()),
                    TracingFault::Silent => {}
                    _ => self.answer(frame).await?,
                }
            }
            let stops = fault == TracingFault::StopsReading && !self.seen.borrow().started.is_empty();
            let overwrites = fault == TracingFault::OverwritesMemory && self.memory.is_some();
            tokio::select! {
                read = self.stream.read(&mut buffer), if !stops => match read? {
                    0 => return Ok(()),
                    count => frames.push(&buffer[..count]),
                },
                Some(command) = commands_to_send.recv(), if self.commands.is_some() => {
                    self.reply(self.commands.unwrap_or(0), true, true, command, &[]).await?;
                }
                () = tokio::time::sleep(std::time::Duration::from_micros(100)), if overwrites => self.overwrite_headers()?,
                else => std::future::pending().await,
            }
        }
    }

    async fn answer(&mut self, frame: Frame) -> io::Result<()> {
        let (name, arguments, drop_reply) = match frame.body {
            Body::Bind(name) => {
                let number = |(place, name): (usize, &&str)| (self.behavior.first_method + place as u32, (*name).to_owned());
                let methods = self.behavior.methods.iter().enumerate().map(number).collect();
                let body = Body::BindReply { success: name == "ProducerPort", service: 42, methods };
                return self.send(Frame { request: frame.request, body }, &[]).await;
            }
            Body::Invoke { method, arguments, drop_reply, .. } => {
                let place = method.checked_sub(self.behavior.first_method).unwrap_or(u32::MAX) as usize;
                (self.behavior.methods.get(place).copied().unwrap_or("?"), arguments, drop_reply)
            }
            _ => return Ok(()),
        };
        self.seen.send_modify(|seen| seen.calls.push(name));
        let in_order = (name == "InitializeConnection") == std::mem::replace(&mut self.is_first, false);
        let number = || fields(&arguments).find_map(|field| field.ok().and_then(|(key, value)| (key == 1).then_some(value.number().ok()?)));
        match name {
            "GetAsyncCommand" => {
                self.commands = Some(frame.request);
                if !self.behavior.files_at_once {
                    let setup = Message::encode(|command| {
                        command.message(3, |setup| self.behavior.page_kb.iter().for_each(|size| setup.uint(1, (*size).into())));
                    });
                    let files = self.make_memory()?;
                    self.reply(frame.request, true, true, setup, &files).await?;
                }
                return Ok(());
            }
            "InitializeConnection" if self.behavior.files_at_once => {
                let files = self.make_memory()?;
                return self.reply(frame.request, in_order, false, Vec::new(), &files).await;
            }
            "InitializeConnection" if self.behavior.without_memory => {
                let reply = Message::encode(|reply| reply.uint(3, 1));
                return self.reply(frame.request, in_order, false, reply, &[]).await;
            }
            "CommitData" => {
                self.commit(&arguments);
                if self.behavior.fault == TracingFault::StopsAnswering && !self.seen.borrow().started.is_empty() {
                    return Ok(());
                }
            }
            "NotifyDataSourceStarted" => self.seen.send_modify(|seen| seen.started.extend(number())),
            "NotifyDataSourceStopped" => self.seen.send_modify(|seen| seen.stopped.extend(number())),
            _ => {}
        }
        if drop_reply { Ok(()) } else { self.reply(frame.request, in_order && name != "?", false, Vec::new(), &[]).await }
    }

    fn make_memory(&mut self) -> io::Result<Vec<OwnedFd>> {
        let mut files = Vec::new();
        for _ in 0..self.behavior.files {
            let file = memfd_create("memory", MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING)?;
            ftruncate(&file, self.behavior.memory)?;
            if self.behavior.sealed {
                fcntl_add_seals(&file, SealFlags::SHRINK | SealFlags::GROW | SealFlags::SEAL)?;
            }
            self.memory = Some(File::from(file.try_clone()?));
            files.push(file);
        }
        Ok(files)
    }

    async fn reply(&self, request: u64, success: bool, has_more: bool, mut reply: Vec<u8>, files: &[OwnedFd]) -> io::Result<()> {
        if self.behavior.unknown_fields {
            let mut message = Message::new(&mut reply);
            message.uint(4999, 1);
            message.fixed(5000, 2);
            message.text(5001, "three");
        }
        self.send(Frame { request, body: Body::InvokeReply { success, has_more, reply } }, files).await
    }

    /// Sends a frame, with files attached to its first bytes.
    async fn send(&self, frame: Frame, files: &[OwnedFd]) -> io::Result<()> {
        let bytes = frame.encode().map_err(io::Error::other)?;
        let files: Vec<BorrowedFd<'_>> = files.iter().map(AsFd::as_fd).collect();
        let mut at = 0;
        while at < bytes.len() {
            self.stream.writable().await?;
            let sent = self.stream.try_io(Interest::WRITABLE, || {
                let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(4))];
                let mut control = SendAncillaryBuffer::new(&mut space);
                if at == 0 && !files.is_empty() {
                    control.push(SendAncillaryMessage::ScmRights(&files));
                }
                Ok(sendmsg(&self.stream, &[IoSlice::new(&bytes[at..])], &mut control, SendFlags::NOSIGNAL)?)
            });
            match sent {
                Ok(count) => at += count,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    fn commit(&self, arguments: &[u8]) {
        for (number, value) in fields(arguments).map_while(Result::ok) {
            match (number, value) {
                (1, Value::Bytes(moved)) => {
                    let field = |number| fields(moved).map_while(Result::ok).find(|(found, _)| *found == number).map(|(_, value)| value);
                    let index = |number| field(number).and_then(|value| value.small().ok()).unwrap_or(0);
                    let sent = field(4).and_then(|value| value.bytes().ok()).map(<[u8]>::to_vec);
                    let was_sent = sent.is_some();
                    let Some(image) = sent.or_else(|| self.take(index(1), index(2))) else { continue };
                    let writer = image.first_chunk().map_or(0, |header| ChunkHeader::decode(*header).writer);
                    self.seen.send_modify(|seen| {
                        seen.sent += usize::from(was_sent);
                        seen.chunks.entry(writer).or_default().push(image);
                    });
                }
                (3, Value::Number(request)) => self.seen.send_modify(|seen| seen.flushed.push(request)),
                _ => {}
            }
        }
    }

    fn page(&self) -> PageSize {
        self.behavior.page_kb.and_then(|size| PageSize::new(size * 1024)).unwrap_or(PageSize::DEFAULT)
    }

    /// Takes a chunk from the shared memory, and frees it.
    fn take(&self, page: u32, chunk: u32) -> Option<Vec<u8>> {
        let (memory, size) = (self.memory.as_ref()?, self.page());
        let start = u64::from(page) * size.bytes() as u64;
        let mut word = [0; 4];
        memory.read_exact_at(&mut word, start).ok()?;
        let word = PageWord(u32::from_le_bytes(word));
        let layout = word.layout().filter(|layout| chunk < layout.chunks() && word.state(chunk) == ChunkState::Complete)?;
        let mut image = vec![0; layout.chunk_size(size)];
        let at = start + (PAGE_HEADER + chunk as usize * image.len()) as u64;
        memory.read_exact_at(&mut image, at).ok()?;
        if self.behavior.fault != TracingFault::KeepsChunks {
            let freed = word.with(chunk, ChunkState::Free);
            let freed = if freed == PageWord::divided(layout) { PageWord(0) } else { freed };
            memory.write_all_at(&freed.0.to_le_bytes(), start).ok()?;
        }
        Some(image)
    }

    /// Overwrites the header words of all pages.
    fn overwrite_headers(&self) -> io::Result<()> {
        let Some(memory) = &self.memory else { return Ok(()) };
        let size = self.page().bytes() as u64;
        (0..self.behavior.memory / size)
            .try_for_each(|page| memory.write_all_at(&(0x1234_5678_u32.wrapping_mul(page as u32 + 1)).to_le_bytes(), page * size))
    }
}
