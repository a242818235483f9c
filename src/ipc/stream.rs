//! Settings of a streaming trace session besides its providers: buffer, filters, destination, behavior when the buffer is full.

use std::num::NonZeroU32;

use super::field::{Field, enumeration, structure};
use super::{EventFilter, Hresult, InvalidRequest, Provider, Providers, UserEvents};
use crate::wire::{Put, Reader};

/// Maximum size in MB of a session's unsent events in the target: a limit, not a reservation. Never 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BufferMb(NonZeroU32);

impl BufferMb {
    /// 256 MB, as in the official tools.
    pub const DEFAULT: Self = Self(NonZeroU32::new(256).expect("not 0"));

    /// Creates a buffer size from a number of MB.
    ///
    /// # Errors
    /// [`InvalidRequest::EmptyBuffer`] for 0, which crashes some runtimes.
    pub fn new(megabytes: u32) -> Result<Self, InvalidRequest> {
        NonZeroU32::new(megabytes).map(Self).ok_or(InvalidRequest::EmptyBuffer)
    }

    /// Returns the size in MB.
    pub fn get(self) -> u32 {
        self.0.get()
    }
}

/// Stream format: nettrace. The other one, NetPerf, is not supported here; any other value crashes some runtimes.
const NETTRACE: u32 = 1;

/// On the wire the stream format always follows the buffer size.
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

listed! {
/// Behavior of the target when a session's buffer is full.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum BufferMode {
    /// New events are dropped, visible as gaps in the sequence numbers.
    #[default]
    Drop,
    /// The target's threads wait until there is space: no events are lost, but a slow reader **stalls the target**.
    Block,
}
}

enumeration!(BufferMode, BAD_ENCODING);

/// A provider with an event filter.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FilteredProvider {
    /// The provider.
    pub provider: Provider,
    /// Filter applied after keywords and level.
    pub filter: EventFilter,
}

impl From<Provider> for FilteredProvider {
    fn from(provider: Provider) -> Self {
        Self { provider, filter: EventFilter::ALL }
    }
}

/// Settings of a streaming session of `CollectTracing5` or `CollectTracing6`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StreamingSession {
    /// Maximum size of the event buffer.
    pub buffer: BufferMb,
    /// Keywords of the rundown events at the end; 0 for none.
    pub rundown_keyword: u64,
    /// Whether events include stacks.
    pub stacks: bool,
    /// Providers to enable.
    pub providers: Providers<FilteredProvider>,
}

structure! {
    FilteredProvider { provider, filter }
    StreamingSession { buffer, rundown_keyword, stacks, providers }
}

/// Destination of the events of `CollectTracing5` and `CollectTracing6`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Destination<S> {
    /// Streamed over the connection, as nettrace.
    Stream(S),
    /// Written to the kernel's user_events.
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
