//! The producer's port: what a data source sends and receives.
//!
//! Source: the specification "Tracing API and ABI", and `protos/perfetto/ipc/producer_port.proto`, `common/commit_data_request.proto`,
//! `common/data_source_descriptor.proto`, `config/data_source_config.proto`. Configurations are passed on as they came: what this program does not know
//! stays in them.

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
    const ALL: &'static [Self] = &[
        Self::InitializeConnection,
        Self::RegisterDataSource,
        Self::CommitData,
        Self::GetAsyncCommand,
        Self::NotifyDataSourceStarted,
        Self::NotifyDataSourceStopped,
    ];

    fn name(self) -> &'static str {
        match self {
            Self::InitializeConnection => "InitializeConnection",
            Self::RegisterDataSource => "RegisterDataSource",
            Self::CommitData => "CommitData",
            Self::GetAsyncCommand => "GetAsyncCommand",
            Self::NotifyDataSourceStarted => "NotifyDataSourceStarted",
            Self::NotifyDataSourceStopped => "NotifyDataSourceStopped",
        }
    }
}

/// The argument of `InitializeConnection`: the producer, and the memory that it would like.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Initialize {
    /// Shown by `perfetto --query`; configurations may name it.
    pub name: String,
    /// The program's version, for people.
    pub version: String,
    /// Bytes of a page.
    pub page: PageSize,
    /// Bytes of the shared memory.
    pub memory: u32,
}

impl Initialize {
    /// The message.
    pub fn encode(&self) -> Vec<u8> {
        message(|message| {
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
    /// The service uses memory that the producer made. This program never makes any.
    pub uses_memory_of_producer: bool,
    /// There is no shared memory: chunks are sent in the commits.
    pub without_memory: bool,
}

impl Initialized {
    /// From the message.
    ///
    /// # Errors
    /// [`Malformed`]
    pub fn decode(bytes: &[u8]) -> Result<Self, Malformed> {
        let mut this = Self::default();
        for field in fields(bytes) {
            match field? {
                (1, value) => this.uses_memory_of_producer = value.flag()?,
                (3, value) => this.without_memory = value.flag()?,
                _ => {}
            }
        }
        Ok(this)
    }
}

/// A data source as it is registered. It reports when it has started and stopped, and describes everything again when it is asked to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DataSource {
    /// What configurations call it.
    pub name: String,
    /// What it can record: name and description.
    pub categories: Vec<(String, String)>,
}

impl DataSource {
    /// The argument of `RegisterDataSource`.
    pub fn encode(&self) -> Vec<u8> {
        message(|request| {
            request.message(1, |descriptor| {
                descriptor.text(1, &self.name);
                // will_notify_on_stop, will_notify_on_start, handles_incremental_state_clear
                [2, 3, 4].into_iter().for_each(|flag| descriptor.uint(flag, 1));
                descriptor.message(6, |events| {
                    for (name, description) in &self.categories {
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

/// What of the configuration of a data source matters here.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Configuration {
    /// The data source.
    pub name: String,
    /// The buffer of the service that its chunks go to.
    pub target_buffer: u32,
    /// Milliseconds until the service stops to wait for the data source to stop; 0 where it is not given.
    pub stop_timeout_ms: u32,
    /// Writers are to wait where the memory is full (`buffer_exhausted_policy`).
    pub stalls: bool,
    /// Text for the data source alone (`legacy_config`); not sanitised.
    pub text: String,
}

impl Configuration {
    fn decode(bytes: &[u8]) -> Result<Self, Malformed> {
        let mut this = Self::default();
        for field in fields(bytes) {
            match field? {
                (1, value) => this.name = value.text()?,
                (2, value) => this.target_buffer = value.small()?,
                (7, value) => this.stop_timeout_ms = value.small()?,
                // BUFFER_EXHAUSTED_STALL_THEN_ABORT, BUFFER_EXHAUSTED_STALL_THEN_DROP
                (9, value) => this.stalls = matches!(value.number()?, 2 | 3),
                (1000, value) => this.text = value.text()?,
                _ => {}
            }
        }
        Ok(this)
    }
}

/// What a service has a producer do: the replies to `GetAsyncCommand`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Command {
    /// Map the memory whose file comes with it.
    SetupTracing {
        /// Bytes of a page; `None` for a size that no page has.
        page: Option<PageSize>,
    },
    /// Get ready to record.
    Setup {
        /// What the recording is called from now on.
        instance: u64,
        /// What to record.
        configuration: Configuration,
    },
    /// Record.
    Start {
        /// As in [`Setup`](Self::Setup).
        instance: u64,
        /// The same again.
        configuration: Configuration,
    },
    /// End the recording.
    Stop {
        /// Which.
        instance: u64,
    },
    /// Commit all that there is, and acknowledge.
    Flush {
        /// Of which recordings.
        instances: Vec<u64>,
        /// To be named in the acknowledgement.
        request: u64,
    },
    /// Describe everything again: what was described before may be overwritten.
    ClearState {
        /// In which recordings.
        instances: Vec<u64>,
    },
    /// Something newer than this program.
    Unknown,
}

impl Command {
    /// From the message.
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
                (2, value) => Self::Stop { instance: first_number(value)? },
                (3, value) => setup_tracing(value)?,
                (5, value) => flush(value)?,
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
    // A service that names no size has pages of the smallest.
    let mut page = Some(PageSize::DEFAULT);
    for field in fields(value.bytes()?) {
        if let (1, value) = field? {
            page = value.small()?.checked_mul(1024).and_then(PageSize::new);
        }
    }
    Ok(Command::SetupTracing { page })
}

fn instance(value: Value<'_>) -> Result<(u64, Configuration), Malformed> {
    let (mut instance, mut configuration) = (0, Configuration::default());
    for field in fields(value.bytes()?) {
        match field? {
            (1, value) => instance = value.number()?,
            (2, value) => configuration = Configuration::decode(value.bytes()?)?,
            _ => {}
        }
    }
    Ok((instance, configuration))
}

fn first_number(value: Value<'_>) -> Result<u64, Malformed> {
    Ok(numbers(value.bytes()?, 1)?.last().copied().unwrap_or(0))
}

fn flush(value: Value<'_>) -> Result<Command, Malformed> {
    let bytes = value.bytes()?;
    let request = numbers(bytes, 2)?.last().copied().unwrap_or(0);
    Ok(Command::Flush { instances: numbers(bytes, 1)?, request })
}

/// The values of a repeated field, packed or not.
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

/// The argument of `NotifyDataSourceStarted` and `NotifyDataSourceStopped`.
pub fn notify(instance: u64) -> Vec<u8> {
    message(|message| message.uint(1, instance))
}

/// The argument of `CommitData`: which chunks are complete.
#[derive(Debug, Default)]
pub struct Commit {
    bytes: Vec<u8>,
}

impl Commit {
    /// A chunk in the shared memory.
    pub fn move_chunk(&mut self, page: u32, chunk: u32, buffer: u32) {
        Message::new(&mut self.bytes).message(1, |moved| {
            moved.uint(1, page.into());
            moved.uint(2, chunk.into());
            moved.uint(3, buffer.into());
        });
    }

    /// A chunk that is sent in the commit itself.
    pub fn send_chunk(&mut self, image: &[u8], buffer: u32) {
        Message::new(&mut self.bytes).message(1, |moved| {
            moved.uint(3, buffer.into());
            moved.bytes(4, image);
        });
    }

    /// Four bytes of a chunk that was committed before, at an offset behind its header. This program's own chunks never need it.
    pub fn patch(&mut self, buffer: u32, writer: u16, chunk: u32, offset: u32, data: [u8; 4]) {
        Message::new(&mut self.bytes).message(2, |patched| {
            patched.uint(1, buffer.into());
            patched.uint(2, writer.into());
            patched.uint(3, chunk.into());
            patched.message(4, |patch| {
                patch.uint(1, offset.into());
                patch.bytes(2, &data);
            });
        });
    }

    /// Acknowledges a flush and all before it.
    pub fn acknowledge(&mut self, request: u64) {
        Message::new(&mut self.bytes).uint(3, request);
    }

    /// Bytes so far.
    pub fn len(&self) -> usize {
        self.bytes.len()
    }

    /// Whether it commits nothing.
    pub fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    /// The message.
    pub fn into_bytes(self) -> Vec<u8> {
        self.bytes
    }
}

/// The packets of a trace file, one after the other, without what is around each. What follows bytes that are no packet is left out.
pub fn packets(trace: &[u8]) -> impl Iterator<Item = &[u8]> {
    fields(trace).map_while(Result::ok).filter_map(|field| match field {
        (super::field::packet::PACKET, Value::Bytes(packet)) => Some(packet),
        _ => None,
    })
}

fn message(fill: impl FnOnce(&mut Message<'_>)) -> Vec<u8> {
    let mut bytes = Vec::new();
    fill(&mut Message::new(&mut bytes));
    bytes
}
