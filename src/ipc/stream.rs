//! What a streaming trace session is requested with besides its providers: buffer, filters, destination, what to do when the buffer is full.

use std::num::NonZeroU32;

use super::field::Field;
use super::invalid::Invalid;
use super::{EventFilter, Hresult, Provider, Providers, UserEvents};
use crate::wire::{Put, Reader};

/// The most that a session's events may take in the target while they wait to be sent, in MB: a limit, not memory set aside. Never 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BufferMb(NonZeroU32);

impl BufferMb {
    /// 256 MB, what the official tools take for traces.
    pub const DEFAULT: Self = Self(NonZeroU32::new(256).expect("not 0"));

    /// Takes a number of MB.
    ///
    /// # Errors
    /// [`Invalid::EmptyBuffer`] for 0, which kills some runtimes.
    pub fn new(megabytes: u32) -> Result<Self, Invalid> {
        NonZeroU32::new(megabytes).map(Self).ok_or(Invalid::EmptyBuffer)
    }

    /// The number of MB.
    pub fn get(self) -> u32 {
        self.0.get()
    }
}

/// The format of the stream: nettrace. The other one, NetPerf, is not spoken here, and any third kills some runtimes.
const NETTRACE: u32 = 1;

/// On the wire the stream's format always follows the buffer's size.
impl Field for BufferMb {
    fn write(&self, out: &mut Vec<u8>) {
        out.put_u32(self.get());
        out.put_u32(NETTRACE);
    }

    fn read(reader: &mut Reader<'_>) -> Result<Self, Hresult> {
        let buffer = Self::new(reader.u32()?)?;
        if reader.u32()? == NETTRACE { Ok(buffer) } else { Err(Hresult::BAD_ENCODING) }
    }
}

/// What the target does when a session's buffer is full.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum BufferMode {
    /// It drops the newest events; gaps in the sequence numbers tell.
    #[default]
    Drop,
    /// It makes its own threads wait until there is room: nothing is lost, but a slow reader **stalls the target**.
    Block,
}

impl Field for BufferMode {
    fn write(&self, out: &mut Vec<u8>) {
        out.put_u32(*self as u32);
    }

    fn read(reader: &mut Reader<'_>) -> Result<Self, Hresult> {
        match reader.u32()? {
            0 => Ok(Self::Drop),
            1 => Ok(Self::Block),
            _ => Err(Hresult::BAD_ENCODING),
        }
    }
}

/// A provider and which of its events come.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FilteredProvider {
    /// The provider.
    pub provider: Provider,
    /// Which of its events, after keywords and level.
    pub filter: EventFilter,
}

impl From<Provider> for FilteredProvider {
    fn from(provider: Provider) -> Self {
        Self { provider, filter: EventFilter::ALL }
    }
}

impl Field for FilteredProvider {
    fn write(&self, out: &mut Vec<u8>) {
        self.provider.write(out);
        self.filter.write(out);
    }

    fn read(reader: &mut Reader<'_>) -> Result<Self, Hresult> {
        Ok(Self { provider: Provider::read(reader)?, filter: EventFilter::read(reader)? })
    }
}

/// A streaming session of `CollectTracing5` and `CollectTracing6`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FilteredStream {
    /// The limit of what waits to be sent.
    pub buffer: BufferMb,
    /// Which rundown events come at the end; 0 for none.
    pub rundown_keyword: u64,
    /// Whether events carry their stacks.
    pub stacks: bool,
    /// What is turned on.
    pub providers: Providers<FilteredProvider>,
}

impl Field for FilteredStream {
    fn write(&self, out: &mut Vec<u8>) {
        self.buffer.write(out);
        self.rundown_keyword.write(out);
        self.stacks.write(out);
        self.providers.write(out);
    }

    fn read(reader: &mut Reader<'_>) -> Result<Self, Hresult> {
        Ok(Self {
            buffer: Field::read(reader)?,
            rundown_keyword: Field::read(reader)?,
            stacks: Field::read(reader)?,
            providers: Field::read(reader)?,
        })
    }
}

/// Where the events of `CollectTracing5` and `CollectTracing6` go.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Destination<S> {
    /// Back over the connection, as nettrace.
    Stream(S),
    /// Into the kernel's user_events.
    UserEvents(UserEvents),
}

impl<S: Field> Field for Destination<S> {
    fn write(&self, out: &mut Vec<u8>) {
        match self {
            Self::Stream(stream) => {
                out.put_u32(0);
                stream.write(out);
            }
            Self::UserEvents(session) => {
                out.put_u32(1);
                session.write(out);
            }
        }
    }

    fn read(reader: &mut Reader<'_>) -> Result<Self, Hresult> {
        match reader.u32()? {
            0 => Ok(Self::Stream(Field::read(reader)?)),
            1 => Ok(Self::UserEvents(Field::read(reader)?)),
            _ => Err(Hresult::BAD_ENCODING),
        }
    }
}
