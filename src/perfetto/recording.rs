//! A recording that the service makes for a consumer: its configuration, its packets, and what was lost.
//!
//! Source: `protos/perfetto/ipc/consumer_port.proto`, `config/trace_config.proto`, `config/ftrace/ftrace_config.proto`,
//! `config/process_stats/process_stats_config.proto`, `trace/ftrace/ftrace_event_bundle.proto`, `common/trace_stats.proto`.

use thiserror::Error;

use super::Message;
use super::field::packet::PACKET;
use super::read::{Malformed, Value, fields};

/// Data source of kernel events, as named by `traced_probes`.
pub const FTRACE: &str = "linux.ftrace";
/// Data source of the names of processes and threads.
const PROCESS_STATS: &str = "linux.process_stats";
/// Kernel events to record: context switches, wake-ups, and the start, exit and name of threads.
const FTRACE_EVENTS: [&str; 5] =
    ["sched/sched_switch", "sched/sched_waking", "sched/sched_process_exit", "task/task_newtask", "task/task_rename"];
/// Size of each of the two buffers, in kilobytes.
const BUFFER_KB: u64 = 32 << 10;
/// `FillPolicy`: the oldest data is overwritten.
const RING_BUFFER: u64 = 1;
/// Flush interval in milliseconds: a truncated recording lacks at most this much of its end.
const FLUSH_PERIOD_MS: u64 = 1000;
/// Number of buffers.
const BUFFERS: usize = 2;
/// Maximum size of a packet in bytes: the service keeps it in one buffer. (The format allows 256 MB.)
const MAX_PACKET_BYTES: usize = (BUFFER_KB as usize) << 10;

/// Maximum bytes of all replies to one `ReadBuffers`: what the buffers hold, and three times as much that arrives in the meantime.
pub const MAX_READ_BYTES: usize = 4 * BUFFERS * MAX_PACKET_BYTES;

/// Why packets cannot be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum PacketError {
    /// A reply cannot be decoded.
    #[error("cannot decode its message: {0}")]
    Malformed(#[from] Malformed),
    /// A packet is longer than a buffer.
    #[error("it sent a packet of more than {}, the size of its buffers", mebibytes(*.0))]
    TooLong(usize),
    /// The replies to one request hold more than the buffers.
    #[error("it sent more than {} for one request, although its buffers hold {}", mebibytes(*.0), mebibytes(BUFFERS * MAX_PACKET_BYTES))]
    TooMuch(usize),
}

fn mebibytes(bytes: usize) -> String {
    format!("{} MiB", bytes >> 20)
}

/// Encodes the arguments of `EnableTracing`: the kernel's scheduling and processes, and a data source of .NET events. Each half has its own
/// buffer, so that neither overwrites the other.
pub fn enable(dotnet: &str) -> Vec<u8> {
    Message::encode(|arguments| {
        arguments.message(1, |config| {
            for _ in 0..BUFFERS {
                config.message(1, |buffer| {
                    buffer.uint(1, BUFFER_KB);
                    buffer.uint(4, RING_BUFFER);
                });
            }
            source(config, FTRACE, 0, |config| {
                config.message(100, |ftrace| FTRACE_EVENTS.iter().for_each(|event| ftrace.text(1, event)));
            });
            source(config, PROCESS_STATS, 0, |config| {
                // scan_all_processes_on_start
                config.message(103, |stats| stats.uint(2, 1));
            });
            source(config, dotnet, 1, |_| {});
            config.uint(13, FLUSH_PERIOD_MS);
            config.text(22, dotnet);
        })
    })
}

fn source(config: &mut Message<'_>, name: &str, buffer: u64, fill: impl FnOnce(&mut Message<'_>)) {
    config.message(2, |source| {
        source.message(1, |config| {
            config.text(1, name);
            config.uint(2, buffer);
            fill(config);
        });
    });
}

/// Encodes the arguments of `Flush`.
pub fn flush(timeout_ms: u64) -> Vec<u8> {
    Message::encode(|arguments| arguments.uint(1, timeout_ms))
}

/// Returns the error that ended a recording, from the reply to `EnableTracing`; `None` if it ended as requested. Not sanitized.
///
/// # Errors
/// [`Malformed`]
pub fn disabled(reply: &[u8]) -> Result<Option<String>, Malformed> {
    Ok(Some(fields(reply).text(3)?).filter(|error| !error.is_empty()))
}

/// Reassembles packets from slices.
#[derive(Debug, Default)]
pub struct Packets {
    open: Vec<u8>,
    /// Bytes of the replies to the present request.
    read: usize,
    /// Whether any packet had kernel events since this was last cleared.
    pub has_kernel_events: bool,
    /// Whether the kernel overwrote events before they were read.
    pub lost_kernel_events: bool,
}

impl Packets {
    /// Begins a request for packets. One may continue a packet of an earlier request.
    pub fn begin_read(&mut self) {
        self.read = 0;
    }

    /// Adds a reply to `ReadBuffers`. Complete packets are appended to `trace`, each as a `packet` field of a `Trace`.
    ///
    /// # Errors
    /// [`PacketError`]
    pub fn add(&mut self, reply: &[u8], trace: &mut Vec<u8>) -> Result<(), PacketError> {
        self.read += reply.len();
        if self.read > MAX_READ_BYTES {
            return Err(PacketError::TooMuch(MAX_READ_BYTES));
        }
        for field in fields(reply) {
            let (2, slice) = field? else { continue };
            let mut is_last = false;
            for field in fields(slice.bytes()?) {
                match field? {
                    (1, data) => self.open.extend_from_slice(data.bytes()?),
                    (2, last) => is_last = last.flag()?,
                    _ => {}
                }
            }
            if self.open.len() > MAX_PACKET_BYTES {
                return Err(PacketError::TooLong(MAX_PACKET_BYTES));
            }
            if is_last {
                self.inspect();
                Message::new(trace).bytes(PACKET, &self.open);
                self.open.clear();
            }
        }
        Ok(())
    }

    /// Checks a packet for kernel events. A packet that cannot be decoded is passed on all the same, as written by the service.
    fn inspect(&mut self) {
        // FtraceEventBundle
        let bundle = fields(&self.open).map_while(Result::ok).find_map(|field| match field {
            (1, Value::Bytes(bundle)) => Some(bundle),
            _ => None,
        });
        for (number, value) in fields(bundle.unwrap_or_default()).map_while(Result::ok) {
            match number {
                2 | 4 => self.has_kernel_events = true,
                3 => self.lost_kernel_events |= value.flag().unwrap_or(false),
                _ => {}
            }
        }
    }
}

/// Losses of a buffer of the service.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct BufferLoss {
    /// Bytes overwritten before they were read.
    pub overwritten: u64,
    /// Number of chunks discarded by the buffer.
    pub discarded: u64,
    /// Number of packets that their writer dropped, since the shared memory was full (`trace_writer_packet_loss`).
    pub dropped: u64,
}

/// Returns the losses of each buffer, from the reply to `GetTraceStats`.
///
/// # Errors
/// [`Malformed`]
pub fn losses(reply: &[u8]) -> Result<Vec<BufferLoss>, Malformed> {
    let mut losses = Vec::new();
    for field in fields(reply) {
        let (1, stats) = field? else { continue };
        for field in fields(stats.bytes()?) {
            let (1, buffer) = field? else { continue };
            let buffer = fields(buffer.bytes()?);
            losses.push(BufferLoss { overwritten: buffer.number(13)?, discarded: buffer.number(18)?, dropped: buffer.number(19)? });
        }
    }
    Ok(losses)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reply(slices: &[(&[u8], bool)]) -> Vec<u8> {
        Message::encode(|reply| {
            for (data, is_last) in slices {
                reply.message(2, |slice| {
                    slice.bytes(1, data);
                    slice.uint(2, (*is_last).into());
                });
            }
        })
    }

    #[test]
    fn packets_are_joined_across_replies() {
        let (mut packets, mut trace) = (Packets::default(), Vec::new());
        packets.add(&reply(&[(b"ab", true), (b"c", false)]), &mut trace).unwrap();
        assert_eq!(trace, b"\x0a\x02ab");
        packets.add(&reply(&[]), &mut trace).unwrap();
        packets.add(&reply(&[(b"d", false)]), &mut trace).unwrap();
        packets.add(&reply(&[(b"", true), (b"e", true)]), &mut trace).unwrap();
        assert_eq!(trace, b"\x0a\x02ab\x0a\x02cd\x0a\x01e");
        assert_eq!(packets.add(&[0x12, 2, 0x0a, 9], &mut trace), Err(PacketError::Malformed(Malformed)));
    }

    #[test]
    fn packets_are_as_large_as_a_buffer_at_most() {
        let (mut packets, mut trace, whole) = (Packets::default(), Vec::new(), vec![b'x'; MAX_PACKET_BYTES]);
        packets.add(&reply(&[(&whole, true), (&whole, false)]), &mut trace).unwrap();
        // Its key and its length take five bytes.
        assert_eq!(trace.len(), 5 + MAX_PACKET_BYTES);
        let error = packets.add(&reply(&[(b"x", true)]), &mut trace).unwrap_err();
        assert_eq!(error.to_string(), "it sent a packet of more than 32 MiB, the size of its buffers");
    }

    #[test]
    fn replies_to_one_request_are_limited() {
        let (mut packets, mut trace) = (Packets::default(), Vec::new());
        let part = reply(&[(&vec![b'x'; 16 << 20], true)]);
        let mut add = |packets: &mut Packets| {
            trace.clear();
            packets.add(&part, &mut trace)
        };
        for _ in 0..3 {
            packets.begin_read();
            (0..MAX_READ_BYTES / part.len()).for_each(|_| add(&mut packets).unwrap());
        }
        let error = add(&mut packets).unwrap_err();
        assert_eq!(error.to_string(), "it sent more than 256 MiB for one request, although its buffers hold 64 MiB");
    }

    #[test]
    fn kernel_events_and_their_losses_are_detected() {
        let seen = |fill: &dyn Fn(&mut Message<'_>)| {
            let mut packets = Packets::default();
            let packet = Message::encode(|message| {
                message.uint(8, 1);
                fill(message);
            });
            packets.add(&reply(&[(&packet, true)]), &mut Vec::new()).unwrap();
            (packets.has_kernel_events, packets.lost_kernel_events)
        };
        assert_eq!(seen(&|packet| packet.message(11, |event| event.uint(2, 1))), (false, false));
        assert_eq!(seen(&|packet| packet.message(1, |bundle| bundle.uint(1, 3))), (false, false));
        assert_eq!(seen(&|packet| packet.message(1, |bundle| bundle.message(4, |_| {}))), (true, false));
        let lost = |bundle: &mut Message<'_>| {
            bundle.message(2, |event| event.uint(1, 5));
            bundle.uint(3, 1);
        };
        assert_eq!(seen(&|packet| packet.message(1, lost)), (true, true));
    }

    /// P13: the request to the service, field by field.
    #[test]
    fn p13_configuration_names_kernel_and_dotnet_sources() {
        let bytes = enable("dotnet.1");
        let Some(Ok((1, config))) = fields(&bytes).next() else { panic!("no configuration") };
        let config: Vec<_> = fields(config.bytes().unwrap()).map(Result::unwrap).collect();
        let of = |number: u32| config.iter().filter(move |(found, _)| *found == number).map(|(_, value)| *value);
        assert_eq!(of(1).count(), 2, "buffers");
        let sources: Vec<(String, u64)> = of(2)
            .map(|source| {
                let Some(Ok((1, config))) = fields(source.bytes().unwrap()).next() else { panic!("no configuration") };
                let mut fields = fields(config.bytes().unwrap()).map(Result::unwrap);
                (fields.next().unwrap().1.text().unwrap(), fields.next().unwrap().1.number().unwrap())
            })
            .collect();
        let expected = [(FTRACE, 0), (PROCESS_STATS, 0), ("dotnet.1", 1)].map(|(name, buffer)| (name.to_owned(), buffer));
        assert_eq!(sources, expected);
        assert_eq!(of(3).count() + of(8).count(), 0, "it ends when it is asked to, and comes over the socket");
    }

    #[test]
    fn session_end_and_buffer_losses_are_decoded() {
        let mut bytes = Message::encode(|reply| reply.uint(1, 1));
        assert_eq!(disabled(&bytes), Ok(None));
        Message::new(&mut bytes).text(3, "no buffers");
        assert_eq!(disabled(&bytes), Ok(Some("no buffers".to_owned())));
        let bytes = Message::encode(|reply| {
            reply.message(1, |stats| {
                stats.message(1, |buffer| buffer.uint(13, 5));
                stats.message(1, |buffer| {
                    buffer.uint(18, 6);
                    buffer.uint(19, 7);
                });
            });
        });
        let expected = [BufferLoss { overwritten: 5, ..BufferLoss::default() }, BufferLoss { overwritten: 0, discarded: 6, dropped: 7 }];
        assert_eq!(losses(&bytes).as_deref(), Ok(&expected[..]));
    }
}
