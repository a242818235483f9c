//! The producer port: messages that a data source sends and receives.
//!
//! Source: the specification "Tracing API and ABI", and `protos/perfetto/ipc/producer_port.proto`, `common/commit_data_request.proto`,
//! `common/data_source_descriptor.proto`, `config/data_source_config.proto`. Configurations are passed on unchanged, including unknown fields.

use super::Message;
use super::call::Method;
use super::page::PageSize;
use super::read::{Malformed, Value, fields};

/// The methods that this program uses.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[allow(missing_docs, reason = "each is the method of that name")]
pub enum ProducerMethod {
    InitializeConnection,
    RegisterDataSource,
    CommitData,
    GetAsyncCommand,
    NotifyDataSourceStarted,
    NotifyDataSourceStopped,
}

impl Method for ProducerMethod {
    const PORT: &'static str = "ProducerPort";
    const ALL: &'static [(Self, &'static str)] = &[
        (Self::InitializeConnection, "InitializeConnection"),
        (Self::RegisterDataSource, "RegisterDataSource"),
        (Self::CommitData, "CommitData"),
        (Self::GetAsyncCommand, "GetAsyncCommand"),
        (Self::NotifyDataSourceStarted, "NotifyDataSourceStarted"),
        (Self::NotifyDataSourceStopped, "NotifyDataSourceStopped"),
    ];
}

/// Arguments of `InitializeConnection`: the producer, and its preferred size of the memory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Initialize {
    /// Shown by `perfetto --query`; configurations may refer to it.
    pub name: String,
    /// Version of the program, for display.
    pub version: String,
    /// Page size.
    pub page: PageSize,
    /// Size of the shared memory, in bytes.
    pub memory: u32,
}

impl Initialize {
    /// Encodes the message.
    pub fn encode(&self) -> Vec<u8> {
        Message::encode(|message| {
            message.uint(1, self.page.bytes() as u64);
            message.uint(2, self.memory.into());
            message.text(3, &self.name);
            message.text(8, &self.version);
        })
    }
}

/// The result of `InitializeConnection`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Initialized {
    /// Whether the service uses memory created by the producer. dn-top never creates any.
    pub uses_producer_memory: bool,
    /// Whether there is no shared memory: chunks are sent in the commits.
    pub without_memory: bool,
}

impl Initialized {
    /// Decodes the message.
    ///
    /// # Errors
    /// [`Malformed`]
    pub fn decode(bytes: &[u8]) -> Result<Self, Malformed> {
        let reply = fields(bytes);
        Ok(Self { uses_producer_memory: reply.flag(1)?, without_memory: reply.flag(3)? })
    }
}

/// A data source to be registered. It reports its start and stop, and writes its incremental state again on request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DataSource<'a> {
    /// Name used by configurations.
    pub name: &'a str,
    /// Categories that it can record: name and description.
    pub categories: &'a [(&'a str, &'a str)],
}

impl DataSource<'_> {
    /// Encodes the arguments of `RegisterDataSource`.
    pub fn encode(&self) -> Vec<u8> {
        Message::encode(|request| {
            request.message(1, |descriptor| {
                descriptor.text(1, self.name);
                // will_notify_on_stop, will_notify_on_start, handles_incremental_state_clear
                [2, 3, 4].into_iter().for_each(|flag| descriptor.uint(flag, 1));
                descriptor.message(6, |events| {
                    for (name, description) in self.categories {
                        events.message(1, |category| {
                            category.text(1, name);
                            category.text(2, description);
                        });
                    }
                });
            });
        })
    }
}

/// The relevant part of a data source's configuration.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Configuration {
    /// Name of the data source.
    pub name: String,
    /// Buffer of the service for its chunks.
    pub target_buffer: u32,
    /// Time limit of the service for the stop of the data source, in milliseconds; 0 if not specified.
    pub stop_timeout_ms: u32,
    /// Whether writers should block while the memory is full (`buffer_exhausted_policy`).
    pub stalls: bool,
    /// Whether categories are selected (`track_event_config`).
    pub selects_categories: bool,
    /// Text specific to the data source (`legacy_config`); not sanitized.
    pub text: String,
}

impl Configuration {
    fn decode(bytes: &[u8]) -> Result<Self, Malformed> {
        let config = fields(bytes);
        Ok(Self {
            name: config.text(1)?,
            target_buffer: config.small(2)?,
            stop_timeout_ms: config.small(7)?,
            // BUFFER_EXHAUSTED_STALL_THEN_ABORT, BUFFER_EXHAUSTED_STALL_THEN_DROP
            stalls: matches!(config.number(9)?, 2 | 3),
            selects_categories: config.last_of(113)?.is_some(),
            text: config.text(1000)?,
        })
    }
}

/// Commands of the service to a producer: the replies to `GetAsyncCommand`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Command {
    /// Map the memory whose file is passed with the command.
    SetupTracing {
        /// Page size; `None` if not valid.
        page: Option<PageSize>,
    },
    /// Prepare a recording.
    Setup {
        /// Identifies the recording in later commands.
        instance: u64,
        /// Configuration of the data source.
        configuration: Configuration,
    },
    /// Start recording.
    Start {
        /// As in [`Setup`](Self::Setup).
        instance: u64,
        /// As in [`Setup`](Self::Setup).
        configuration: Configuration,
    },
    /// Stop recording.
    Stop {
        /// The recording.
        instance: u64,
    },
    /// Commit all data and acknowledge.
    Flush {
        /// Recordings to flush.
        instances: Vec<u64>,
        /// Number to be acknowledged.
        request: u64,
    },
    /// Write the incremental state again: earlier packets may be overwritten.
    ClearState {
        /// Affected recordings.
        instances: Vec<u64>,
    },
    /// Not known to this program.
    Unknown,
}

impl Command {
    /// Decodes the message.
    ///
    /// # Errors
    /// [`Malformed`]
    pub fn decode(bytes: &[u8]) -> Result<Self, Malformed> {
        let mut command = Self::Unknown;
        for field in fields(bytes) {
            command = match field? {
                (1, value) => {
                    let (instance, configuration) = instance(value)?;
                    Self::Start { instance, configuration }
                }
                (2, value) => Self::Stop { instance: fields(value.bytes()?).number(1)? },
                (3, value) => setup_tracing(value)?,
                (5, value) => Self::Flush { instances: numbers(value.bytes()?, 1)?, request: fields(value.bytes()?).number(2)? },
                (6, value) => {
                    let (instance, configuration) = instance(value)?;
                    Self::Setup { instance, configuration }
                }
                (7, value) => Self::ClearState { instances: numbers(value.bytes()?, 1)? },
                _ => continue,
            };
        }
        Ok(command)
    }
}

fn setup_tracing(value: Value<'_>) -> Result<Command, Malformed> {
    // Without a specified size, pages have the smallest one.
    let page = match fields(value.bytes()?).last_of(1)? {
        Some(size) => size.small()?.checked_mul(1024).and_then(PageSize::new),
        None => Some(PageSize::DEFAULT),
    };
    Ok(Command::SetupTracing { page })
}

fn instance(value: Value<'_>) -> Result<(u64, Configuration), Malformed> {
    let setup = fields(value.bytes()?);
    Ok((setup.number(1)?, Configuration::decode(setup.bytes(2)?)?))
}

/// Returns the values of a repeated field, packed or not.
fn numbers(bytes: &[u8], number: u32) -> Result<Vec<u64>, Malformed> {
    let mut numbers = Vec::new();
    for field in fields(bytes) {
        match field? {
            (found, Value::Number(value)) if found == number => numbers.push(value),
            (found, Value::Bytes(packed)) if found == number => {
                let mut reader = crate::wire::Reader::new(packed);
                while !reader.is_empty() {
                    numbers.push(reader.varu64().map_err(|_| Malformed)?);
                }
            }
            _ => {}
        }
    }
    Ok(numbers)
}

/// Encodes the arguments of `NotifyDataSourceStarted` and `NotifyDataSourceStopped`.
pub fn notify(instance: u64) -> Vec<u8> {
    Message::encode(|message| message.uint(1, instance))
}

/// Arguments of `CommitData`: the chunks that are complete.
#[derive(Debug, Default)]
pub struct Commit {
    bytes: Vec<u8>,
}

impl Commit {
    /// Adds a chunk in the shared memory.
    pub fn move_chunk(&mut self, page: u32, chunk: u32, buffer: u32) {
        Message::new(&mut self.bytes).message(1, |moved| {
            moved.uint(1, page.into());
            moved.uint(2, chunk.into());
            moved.uint(3, buffer.into());
        });
    }

    /// Adds a chunk that is contained in the commit itself.
    pub fn send_chunk(&mut self, image: &[u8], buffer: u32) {
        Message::new(&mut self.bytes).message(1, |moved| {
            moved.uint(3, buffer.into());
            moved.bytes(4, image);
        });
    }

    /// Acknowledges a flush, and all before it.
    pub fn acknowledge(&mut self, request: u64) {
        Message::new(&mut self.bytes).uint(3, request);
    }

    /// Size in bytes.
    pub fn len(&self) -> usize {
        self.bytes.len()
    }

    /// Whether it commits nothing.
    pub fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    /// Returns the encoded message.
    pub fn into_bytes(self) -> Vec<u8> {
        self.bytes
    }
}

/// Returns the packets of a trace file without their framing. Anything after an invalid packet is dropped.
pub fn packets(trace: &[u8]) -> impl Iterator<Item = &[u8]> {
    fields(trace).map_while(Result::ok).filter_map(|field| match field {
        (super::field::packet::PACKET, Value::Bytes(packet)) => Some(packet),
        _ => None,
    })
}
