//! Statements about the service in the specification "Tracing API and ABI", tested on the real service by a client that implements only
//! frames and messages.

use std::collections::{HashMap, VecDeque};
use std::fs::File;
use std::io::{IoSliceMut, Write};
use std::mem::MaybeUninit;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::path::Path;

use dn_top::perfetto::Message;
use dn_top::perfetto::chunk::{ChunkHeader, ChunkWriter, WriterId};
use dn_top::perfetto::ipc::{Body, Frame, FrameReader};
use dn_top::perfetto::page::PageSize;
use dn_top::perfetto::producer::{Commit, DataSource, Initialize, notify, packets};
use dn_top::perfetto::recording::Packets;
use rustix::net::{RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, recvmsg};

use crate::protobuf::{all, field};
use crate::support::TIMEOUT;
use crate::tracing_service::{Traced, sockets};

/// A field number unknown to all versions of the service.
const UNKNOWN: u32 = 7777;

/// A port of the service, bound by its name.
struct Client {
    stream: UnixStream,
    frames: FrameReader,
    service: u32,
    methods: HashMap<String, u32>,
    last: u64,
    /// Replies to other requests, in order of arrival.
    early: VecDeque<(u64, Reply)>,
    files: Vec<OwnedFd>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Reply {
    success: bool,
    has_more: bool,
    body: Vec<u8>,
}

impl Client {
    /// `None` if the service refuses.
    fn bind(socket: &Path, port: &str) -> Option<Self> {
        let stream = UnixStream::connect(socket).unwrap();
        stream.set_read_timeout(Some(TIMEOUT)).unwrap();
        let (methods, early, files) = Default::default();
        let mut client = Self { stream, frames: FrameReader::default(), service: 0, methods, last: 1, early, files };
        client.send(&Frame { request: 1, body: Body::Bind(port.to_owned()) });
        let Body::BindReply { success, service, methods } = client.frame().body else { panic!("no reply to the binding") };
        (client.service, client.methods) = (service, methods.into_iter().map(|(id, name)| (name, id)).collect());
        success.then_some(client)
    }

    fn send(&mut self, frame: &Frame) {
        self.stream.write_all(&frame.encode().unwrap()).unwrap();
    }

    fn frame(&mut self) -> Frame {
        loop {
            if let Some(frame) = self.frames.frame().unwrap() {
                return frame;
            }
            let (mut bytes, mut space) = ([0; 65_536], [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))]);
            let mut control = RecvAncillaryBuffer::new(&mut space);
            let came = recvmsg(&self.stream, &mut [IoSliceMut::new(&mut bytes)], &mut control, RecvFlags::CMSG_CLOEXEC).unwrap();
            assert!(came.bytes > 0, "the service closed the connection");
            self.frames.push(&bytes[..came.bytes]);
            for message in control.drain() {
                if let RecvAncillaryMessage::ScmRights(files) = message {
                    self.files.extend(files);
                }
            }
        }
    }

    fn invoke(&mut self, service: u32, method: u32, arguments: Vec<u8>) -> u64 {
        self.last += 1;
        self.send(&Frame { request: self.last, body: Body::Invoke { service, method, arguments, drop_reply: false } });
        self.last
    }

    fn call(&mut self, method: &str, arguments: Vec<u8>) -> u64 {
        self.invoke(self.service, self.methods[method], arguments)
    }

    /// Returns the next reply to a request.
    fn reply(&mut self, request: u64) -> Reply {
        if let Some(at) = self.early.iter().position(|(of, _)| *of == request) {
            return self.early.remove(at).unwrap().1;
        }
        loop {
            let frame = self.frame();
            let Body::InvokeReply { success, has_more, reply } = frame.body else { panic!("{frame:?}") };
            let reply = Reply { success, has_more, body: reply };
            if frame.request == request {
                return reply;
            }
            self.early.push_back((frame.request, reply));
        }
    }

    fn ask(&mut self, method: &str, arguments: Vec<u8>) -> Reply {
        let request = self.call(method, arguments);
        self.reply(request)
    }

    /// Returns all packets in the buffers.
    fn read(&mut self) -> Vec<Vec<u8>> {
        let request = self.call("ReadBuffers", Vec::new());
        let (mut trace, mut gathered) = (Vec::new(), Packets::default());
        loop {
            let reply = self.reply(request);
            assert!(reply.success);
            gathered.add(&reply.body, &mut trace).unwrap();
            if !reply.has_more {
                return packets(&trace).map(<[u8]>::to_vec).collect();
            }
        }
    }
}

const DONE: Reply = Reply { success: true, has_more: false, body: Vec::new() };
const REFUSED: Reply = Reply { success: false, has_more: false, body: Vec::new() };

fn message(fill: impl FnOnce(&mut Message<'_>)) -> Vec<u8> {
    let mut bytes = Vec::new();
    fill(&mut Message::new(&mut bytes));
    bytes
}

fn consumer(traced: &Traced) -> Client {
    Client::bind(&sockets(traced.place())[1].1, "ConsumerPort").unwrap()
}

/// Returns a producer with a data source, and the request whose replies are commands.
fn producer(traced: &Traced, source: &str, page: u64, memory: u64) -> (Client, u64) {
    let mut client = Client::bind(&sockets(traced.place())[0].1, "ProducerPort").unwrap();
    let hello = message(|hello| {
        hello.uint(1, page);
        hello.uint(2, memory);
        hello.text(3, source);
    });
    assert!(client.ask("InitializeConnection", hello).success);
    let commands = client.call("GetAsyncCommand", Vec::new());
    assert!(client.ask("RegisterDataSource", DataSource { name: source, categories: &[] }.encode()).success);
    (client, commands)
}

/// Returns the argument of `EnableTracing` for one data source, and a buffer of this size in KB.
fn recording(source: &str, size_kb: u64) -> Vec<u8> {
    message(|request| {
        request.message(1, |config| {
            config.message(1, |buffer| buffer.uint(1, size_kb));
            config.message(2, |entry| {
                entry.message(1, |config| {
                    config.text(1, source);
                    config.text(1000, "targets=orders, in \u{dc}");
                    config.text(UNKNOWN, "from the future");
                });
            });
        });
    })
}

/// Waits for the start of a recording, and returns the setup of the shared memory and the configuration of the data source.
fn started(client: &mut Client, commands: u64) -> (Vec<u8>, Vec<u8>) {
    let mut setup = Vec::new();
    loop {
        let reply = client.reply(commands);
        assert!(reply.success && reply.has_more);
        if let Some(command) = field(&reply.body, 3) {
            setup = command.bytes().to_vec();
        }
        if let Some(command) = field(&reply.body, 1) {
            let start = command.bytes().to_vec();
            let instance = field(&start, 1).unwrap().number();
            assert!(client.ask("NotifyDataSourceStarted", notify(instance)).success);
            return (setup, field(&start, 2).unwrap().bytes().to_vec());
        }
    }
}

/// Stops a recording of the producer's data source.
fn stop(consumer: &mut Client, producer: &mut Client, commands: u64) {
    let disabled = consumer.call("DisableTracing", Vec::new());
    let instance = loop {
        let reply = producer.reply(commands);
        if let Some(stop) = field(&reply.body, 2) {
            break field(stop.bytes(), 1).unwrap().number();
        }
    };
    assert!(producer.ask("NotifyDataSourceStopped", notify(instance)).success);
    assert_eq!(consumer.reply(disabled), DONE);
}

/// Returns a packet whose payload no reader understands.
fn payload(bytes: &[u8]) -> Vec<u8> {
    message(|packet| packet.bytes(UNKNOWN, bytes))
}

/// Returns the payloads of packets, in order.
fn payloads(packets: &[Vec<u8>]) -> Vec<Vec<u8>> {
    packets.iter().filter_map(|packet| field(packet, UNKNOWN.into()).map(|bytes| bytes.bytes().to_vec())).collect()
}

/// P1: producers and consumers have separate sockets, and each socket has only its own port.
#[test]
fn p1_each_socket_has_its_port() {
    let Some(traced) = Traced::start() else { return };
    let [(_, producers), (_, consumers)] = sockets(traced.place());
    for (socket, port, other) in [(&producers, "ProducerPort", "ConsumerPort"), (&consumers, "ConsumerPort", "ProducerPort")] {
        assert!(Client::bind(socket, port).is_some() && Client::bind(socket, other).is_none(), "{port}");
    }
}

/// P8: a call with an unknown method or service number fails without a result; the connection stays open.
#[test]
fn p8_unknown_services_and_methods_are_rejected() {
    let Some(traced) = Traced::start() else { return };
    let mut client = consumer(&traced);
    let (service, method) = (client.service, client.methods["QueryCapabilities"]);
    for (service, method) in [(service, 9999), (service + 77, method), (service + 77, 9999)] {
        let request = client.invoke(service, method, Vec::new());
        assert_eq!(client.reply(request), REFUSED, "{service} {method}");
    }
    assert!(client.ask("QueryCapabilities", Vec::new()).success);
}

/// P9: `InitializeConnection` is the first call of a producer, and must not be repeated.
#[test]
fn p9_a_producer_is_initialized_first_and_once() {
    let Some(traced) = Traced::start() else { return };
    let mut client = Client::bind(&sockets(traced.place())[0].1, "ProducerPort").unwrap();
    let source = DataSource { name: "early", categories: &[] }.encode();
    let hello = Initialize { name: "p9".to_owned(), version: String::new(), page: PageSize::DEFAULT, memory: 262_144 }.encode();
    assert_eq!(client.ask("RegisterDataSource", source.clone()), REFUSED);
    assert!(client.ask("InitializeConnection", hello.clone()).success);
    assert!(client.ask("RegisterDataSource", source).success);
    assert_eq!(client.ask("InitializeConnection", hello), REFUSED);
    assert!(traced.query().contains("early"));
}

/// P13: a consumer starts, flushes, stops, reads and frees; there can be several, each with one recording at a time.
#[test]
fn p13_a_consumer_controls_its_recording() {
    let Some(traced) = Traced::start() else { return };
    let [mut one, mut other] = [consumer(&traced), consumer(&traced)];
    let (mut source, commands) = producer(&traced, "p13", 4096, 262_144);
    let ended = one.call("EnableTracing", recording("p13", 1024));
    started(&mut source, commands);
    other.call("EnableTracing", recording("p13", 1024));
    started(&mut source, commands);
    // A second recording of the same consumer ends immediately.
    let again = other.ask("EnableTracing", recording("p13", 1024));
    let why = field(&again.body, 3).map(|why| String::from_utf8(why.bytes().to_vec()).unwrap()).unwrap_or_default();
    assert!(field(&again.body, 1).is_some() && why.contains("another tracing session is already active"), "{again:?} {why}");
    let flushed = one.call("Flush", message(|flush| flush.uint(1, 10_000)));
    let request = loop {
        let reply = source.reply(commands);
        if let Some(flush) = field(&reply.body, 5) {
            break field(flush.bytes(), 2).unwrap().number();
        }
    };
    let mut commit = Commit::default();
    commit.acknowledge(request);
    assert!(source.ask("CommitData", commit.into_bytes()).success);
    assert_eq!(one.reply(flushed), DONE);
    stop(&mut one, &mut source, commands);
    let over = one.reply(ended);
    assert!(over.success && field(&over.body, 3).is_none_or(|why| why.bytes().is_empty()), "{over:?}");
    // The service's own packets, such as clocks and configuration; after freeing there are none.
    assert!(one.read().len() > 2);
    assert_eq!(one.ask("FreeBuffers", Vec::new()), DONE);
    assert!(one.read().is_empty());
    stop(&mut other, &mut source, commands);
    assert!(other.read().len() > 2);
}

/// M3: page and memory sizes are as requested if possible, and otherwise as announced by the service.
#[test]
fn m3_service_decides_page_and_memory_size() {
    let Some(traced) = Traced::start() else { return };
    const KB: u64 = 1 << 10;
    for (number, (page, memory, expected)) in [
        (4 * KB, 256 * KB, (4, 256)),
        (8 * KB, 512 * KB, (8, 512)),
        (16 * KB, 1024 * KB, (16, 1024)),
        (32 * KB, 4096 * KB, (32, 4096)),
        (64 * KB, 1024 * KB, (32, 1024)),
        (12 * KB, 1200 * KB, (4, 256)),
        (1000, 256 * KB, (4, 256)),
        (4 * KB, 64 << 20, (4, 32 << 10)),
        (0, 0, (4, 256)),
    ]
    .into_iter()
    .enumerate()
    {
        let name = format!("m3.{number}");
        let (mut source, commands) = producer(&traced, &name, page, memory);
        let mut consumer = consumer(&traced);
        consumer.call("EnableTracing", recording(&name, 1024));
        let (setup, _) = started(&mut source, commands);
        let size = File::from(source.files.pop().unwrap()).metadata().unwrap().len();
        assert_eq!((field(&setup, 1).unwrap().number(), size / KB), expected, "page {page}, memory {memory}");
        stop(&mut consumer, &mut source, commands);
    }
}

/// M10: a packet may be larger than a chunk, a page and the memory.
#[test]
fn m10_packets_span_chunks_and_pages() {
    let Some(traced) = Traced::start() else { return };
    let (mut source, commands) = producer(&traced, "m10", 4096, 262_144);
    let mut consumer = consumer(&traced);
    consumer.call("EnableTracing", recording("m10", 65_536));
    let (_, config) = started(&mut source, commands);
    let buffer = field(&config, 2).unwrap().number() as u32;
    let large: Vec<Vec<u8>> = [1_usize, 5000, 1 << 20, 5 << 20].map(|size| (0..size).map(|at| (at * 31 + size) as u8).collect()).to_vec();
    let mut chunks = ChunkWriter::new(WriterId::new(1).unwrap());
    chunks.push(message(|trace| large.iter().for_each(|bytes| trace.bytes(1, &payload(bytes)))));
    let mut count = 0;
    while let Some(image) = chunks.chunk(4088) {
        let mut commit = Commit::default();
        commit.send_chunk(&image, buffer);
        assert!(source.ask("CommitData", commit.into_bytes()).success);
        count += 1;
    }
    assert!(count > 1500, "{count} chunks");
    stop(&mut consumer, &mut source, commands);
    assert!(payloads(&consumer.read()) == large, "packets are not as they were written");
}

/// M12: a chunk waits for its patch, and only its producer can patch it.
#[test]
fn m12_only_the_owner_patches_a_chunk() {
    let Some(traced) = Traced::start() else { return };
    let (mut source, commands) = producer(&traced, "m12", 4096, 262_144);
    let (mut stranger, _) = producer(&traced, "m12.other", 4096, 262_144);
    let mut consumer = consumer(&traced);
    consumer.call("EnableTracing", recording("m12", 1024));
    let (_, config) = started(&mut source, commands);
    let buffer = field(&config, 2).unwrap().number() as u32;
    // The flag of a chunk that must not be read before it is patched. The chunks of dn-top never need it.
    const NEEDS_PATCHING: u16 = 4;
    // The last four bytes of the packet are still missing.
    let packet = payload(b"patch____");
    let mut image = ChunkHeader { chunk: 0, writer: 3, fragments: 1, flags: NEEDS_PATCHING }.encode().to_vec();
    image.push(packet.len() as u8);
    image.extend_from_slice(&packet);
    let mut commit = Commit::default();
    commit.send_chunk(&image, buffer);
    assert!(source.ask("CommitData", commit.into_bytes()).success);
    let mut patch = |client: &mut Client, data: &[u8; 4]| {
        // Of writer 3, chunk 0.
        let commit = message(|commit| {
            commit.message(2, |patched| {
                [(1, buffer.into()), (2, 3), (3, 0)].into_iter().for_each(|(field, value)| patched.uint(field, value));
                patched.message(4, |patch| {
                    patch.uint(1, packet.len() as u64 - 3);
                    patch.bytes(2, data);
                });
            });
        });
        let is_done = client.ask("CommitData", commit).success;
        (is_done, payloads(&consumer.read()))
    };
    // The service may or may not report failure for an ineffective patch.
    assert_eq!(patch(&mut stranger, b"evil").1, [] as [Vec<u8>; 0]);
    assert_eq!(patch(&mut source, b"good"), (true, vec![b"patchgood".to_vec()]));
}

/// S2: a data source receives its configuration unchanged, including fields unknown to the service.
#[test]
fn s2_a_configuration_is_passed_through() {
    let Some(traced) = Traced::start() else { return };
    let (mut source, commands) = producer(&traced, "s2", 4096, 262_144);
    let mut consumer = consumer(&traced);
    consumer.call("EnableTracing", recording("s2", 1024));
    let (_, config) = started(&mut source, commands);
    let text = |number: u64| String::from_utf8(field(&config, number).unwrap().bytes().to_vec()).unwrap();
    assert_eq!([text(1), text(1000), text(UNKNOWN.into())], ["s2", "targets=orders, in \u{dc}", "from the future"]);
    // Filled in by the service: its own buffer number, and the stop timeout.
    assert!(field(&config, 2).unwrap().number() > 0 && field(&config, 7).unwrap().number() == 5000);
}

/// S6: capabilities beyond the service's methods are flags that a consumer can query.
#[test]
fn s6_capabilities_are_flags() {
    let Some(traced) = Traced::start() else { return };
    let mut client = consumer(&traced);
    let capabilities = client.ask("QueryCapabilities", Vec::new());
    assert!(capabilities.success);
    let capabilities = field(&capabilities.body, 1).unwrap().bytes().to_vec();
    let observable: Vec<_> = all(&capabilities, 2).map(|kind| kind.number()).collect();
    assert_eq!((field(&capabilities, 1).map(|flag| flag.number()), observable), (Some(1), vec![1, 2, 4]));
}
