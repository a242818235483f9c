//! The consumer port of a simulated tracing service, well-behaved or faulty: it starts recordings on the producer port, and returns the
//! packets received there.

use std::io;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{UnixListener, UnixStream};
use tokio::sync::watch;
use tokio::task::JoinSet;

use super::TracingService;
use super::tracing_service::wait_until;
use crate::perfetto::Message;
use crate::perfetto::ipc::{Body, Frame, FrameReader};

/// Method names, numbered in this order.
const METHODS: [&str; 8] =
    ["QueryServiceState", "EnableTracing", "DisableTracing", "ReadBuffers", "FreeBuffers", "Flush", "GetTraceStats", "QueryCapabilities"];
/// Id of its data source instance.
const INSTANCE: u64 = 1;
/// Size of a slice in bytes, so small that most packets are split.
const SLICE: usize = 50;
/// Size of a slice of an endless packet.
const LARGE_SLICE: usize = 100_000;

#[derive(Debug, Clone, Default)]
pub(crate) struct ConsumerBehavior {
    /// Whether the kernel's data source is registered.
    pub(crate) has_kernel: bool,
    /// Number of buffer reads in which kernel events are delivered.
    pub(crate) kernel_readings: usize,
    /// Number of overwritten bytes in the buffer of .NET events.
    pub(crate) overwritten: u64,
    /// Number of packets that the producer of kernel events dropped.
    pub(crate) dropped: u64,
    /// Error with which it refuses a recording.
    pub(crate) error: Option<&'static str>,
    /// Method whose call triggers a fault, and the fault.
    pub(crate) fault: Option<(&'static str, ConsumerFault)>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ConsumerFault {
    /// Answers with bytes that are not a frame.
    Garbage,
    /// Answers with a message that cannot be decoded.
    Undecodable,
    Closes,
    Silent,
    /// Answers that the call failed.
    Refuses,
    /// Announces one more reply with each reply.
    Endless,
    /// Answers a read with a packet that never ends, or with packets that never end.
    EndlessPackets {
        /// Whether each reply ends a packet.
        ends: bool,
    },
}

/// Messages that the port received.
#[derive(Debug, Clone, Default)]
pub(crate) struct ConsumerSeen {
    /// Names of the called methods, in order.
    pub(crate) calls: Vec<&'static str>,
    /// Number of recordings whose consumer is connected.
    pub(crate) recordings: usize,
}

/// A listening port. Dropping it stops it.
#[derive(Debug)]
pub(crate) struct ConsumerPort {
    _listening: JoinSet<()>,
    seen: watch::Receiver<ConsumerSeen>,
}

impl ConsumerPort {
    /// Listens at a path; recordings are made by the service.
    ///
    /// # Errors
    /// If the socket cannot be created.
    pub(crate) fn start(path: &Path, service: Arc<TracingService>, behavior: ConsumerBehavior) -> io::Result<Self> {
        let listener = UnixListener::bind(path)?;
        let (sender, seen) = watch::channel(ConsumerSeen::default());
        let sender = Arc::new(sender);
        let mut listening = JoinSet::new();
        listening.spawn(async move {
            let mut connections = JoinSet::new();
            while let Ok((stream, _)) = listener.accept().await {
                let consumer = Consumer {
                    stream,
                    service: service.clone(),
                    behavior: behavior.clone(),
                    seen: sender.clone(),
                    recording: None,
                    sent_packets: 0,
                    readings: 0,
                };
                connections.spawn(consumer.serve());
            }
        });
        Ok(Self { _listening: listening, seen })
    }

    /// Waits until the received messages satisfy a condition.
    pub(crate) async fn until(&self, condition: impl FnMut(&ConsumerSeen) -> bool) -> ConsumerSeen {
        wait_until(&self.seen, condition).await
    }
}

struct Consumer {
    stream: UnixStream,
    service: Arc<TracingService>,
    behavior: ConsumerBehavior,
    seen: Arc<watch::Sender<ConsumerSeen>>,
    /// The request whose reply ends the recording.
    recording: Option<u64>,
    sent_packets: usize,
    readings: usize,
}

impl Drop for Consumer {
    fn drop(&mut self) {
        if self.recording.is_some() {
            self.seen.send_modify(|seen| seen.recordings -= 1);
        }
    }
}

impl Consumer {
    async fn serve(mut self) {
        let (mut frames, mut buffer) = (FrameReader::default(), vec![0; 4096]);
        loop {
            while let Ok(Some(frame)) = frames.frame() {
                if self.answer(frame).await.is_err() {
                    return;
                }
            }
            match self.stream.read(&mut buffer).await {
                Ok(count @ 1..) => frames.push(&buffer[..count]),
                _ => return,
            }
        }
    }

    /// Handles a frame. An error ends the connection.
    async fn answer(&mut self, frame: Frame) -> io::Result<()> {
        let request = frame.request;
        let name = match frame.body {
            Body::Bind(name) => {
                let methods = (10..).zip(METHODS.map(str::to_owned)).collect();
                return self.send(Frame { request, body: Body::BindReply { success: name == "ConsumerPort", service: 7, methods } }).await;
            }
            Body::Invoke { method, .. } => METHODS.get(method.saturating_sub(10) as usize).copied().unwrap_or("?"),
            _ => return Ok(()),
        };
        self.seen.send_modify(|seen| seen.calls.push(name));
        match self.behavior.fault.filter(|(method, _)| *method == name) {
            None => {}
            Some((_, ConsumerFault::Garbage)) => return self.stream.write_all(&[0xff; 64]).await,
            Some((_, ConsumerFault::Undecodable)) => return self.reply(request, true, false, vec![0x0a, 9, 1]).await,
            Some((_, ConsumerFault::Closes)) => return Err(io::ErrorKind::ConnectionAborted.into()),
            Some((_, ConsumerFault::Silent)) => return Ok(()),
            Some((_, ConsumerFault::Refuses)) => return self.reply(request, false, false, Vec::new()).await,
            Some((_, ConsumerFault::Endless)) => loop {
                self.reply(request, true, true, Vec::new()).await?;
                tokio::time::sleep(Duration::from_millis(5)).await;
            },
            Some((_, ConsumerFault::EndlessPackets { ends })) => loop {
                let reply = Message::encode(|reply| {
                    reply.message(2, |slice| {
                        slice.bytes(1, &[0; LARGE_SLICE]);
                        slice.uint(2, ends.into());
                    });
                });
                self.reply(request, true, true, reply).await?;
            },
        }
        match name {
            "QueryServiceState" => {
                let state = Message::encode(|reply| {
                    reply.message(1, |state| {
                        if self.behavior.has_kernel {
                            state.message(2, |source| source.message(1, |descriptor| descriptor.text(1, "linux.ftrace")));
                        }
                    });
                });
                self.reply(request, true, false, state).await
            }
            "EnableTracing" => match self.behavior.error {
                Some(why) => self.ended(request, why).await,
                None => {
                    self.recording = Some(request);
                    self.seen.send_modify(|seen| seen.recordings += 1);
                    self.service.record(INSTANCE, "");
                    Ok(())
                }
            },
            "DisableTracing" => {
                self.reply(request, true, false, Vec::new()).await?;
                self.service.stop(INSTANCE);
                self.service.until(|seen| seen.stopped.contains(&INSTANCE)).await;
                self.ended(self.recording.unwrap_or(0), "").await
            }
            "ReadBuffers" => self.send_packets(request).await,
            "GetTraceStats" => {
                let stats = Message::encode(|reply| {
                    reply.message(1, |stats| {
                        stats.message(1, |buffer| buffer.uint(19, self.behavior.dropped));
                        stats.message(1, |buffer| buffer.uint(13, self.behavior.overwritten));
                    });
                });
                self.reply(request, true, false, stats).await
            }
            _ => self.reply(request, true, false, Vec::new()).await,
        }
    }

    /// Returns the packets not returned yet, one slice per reply.
    async fn send_packets(&mut self, request: u64) -> io::Result<()> {
        let mut packets = self.service.until(|_| true).await.packets().unwrap_or_default();
        let new = packets.split_off(self.sent_packets.min(packets.len()));
        self.sent_packets += new.len();
        let kernel = (self.readings < self.behavior.kernel_readings)
            .then(|| Message::encode(|packet| packet.message(1, |bundle| bundle.message(2, |event| event.uint(1, 5)))));
        self.readings += 1;
        for packet in kernel.iter().chain(&new) {
            let slices = packet.chunks(SLICE).count();
            for (number, slice) in packet.chunks(SLICE).enumerate() {
                let reply = Message::encode(|reply| {
                    reply.message(2, |message| {
                        message.bytes(1, slice);
                        message.uint(2, (number + 1 == slices).into());
                    });
                });
                self.reply(request, true, true, reply).await?;
            }
        }
        self.reply(request, true, false, Vec::new()).await
    }

    /// Reports that a recording has ended.
    async fn ended(&mut self, request: u64, error: &str) -> io::Result<()> {
        let reply = Message::encode(|message| {
            message.uint(1, 1);
            message.text(3, error);
        });
        self.reply(request, true, false, reply).await
    }

    async fn reply(&mut self, request: u64, success: bool, has_more: bool, reply: Vec<u8>) -> io::Result<()> {
        self.send(Frame { request, body: Body::InvokeReply { success, has_more, reply } }).await
    }

    async fn send(&mut self, frame: Frame) -> io::Result<()> {
        self.stream.write_all(&frame.encode().map_err(io::Error::other)?).await
    }
}
