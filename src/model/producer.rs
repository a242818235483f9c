//! How it goes with serving Perfetto's tracing service.

use std::fmt;
use std::ops::AddAssign;

use super::{Bytes, Count, Counted, SafeText};

/// What there is to report of a producer of the tracing service.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ProducerReport {
    /// Connected to the service that listens there.
    Connected(SafeText),
    /// There is no service, or it has gone; why. It is tried again.
    Waiting(SafeText),
    /// A session of the service has begun.
    Started {
        /// Its number.
        instance: u64,
        /// The processes that it records.
        processes: Vec<SafeText>,
        /// Why it does not record others.
        troubles: Vec<SafeText>,
    },
    /// A session is running.
    Progress {
        /// Its number.
        instance: u64,
        /// All packets of it so far.
        packets: PacketCounts,
    },
    /// A session is over.
    Ended {
        /// Its number.
        instance: u64,
        /// All packets of it.
        packets: PacketCounts,
    },
    /// Something is not as it should be, and was got round.
    Trouble(SafeText),
}

/// Packets of a session.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct PacketCounts {
    /// How many went to the service.
    pub packets: u64,
    /// Their bytes.
    pub bytes: u64,
    /// How many the service did not take in time.
    pub dropped: u64,
}

impl AddAssign for PacketCounts {
    fn add_assign(&mut self, more: Self) {
        self.packets += more.packets;
        self.bytes += more.bytes;
        self.dropped += more.dropped;
    }
}

impl fmt::Display for PacketCounts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}, {}", Counted(self.packets, "packet"), Bytes(self.bytes))?;
        if self.dropped > 0 {
            write!(f, "; {} more DROPPED: the service did not take them in time", Count(self.dropped))?;
        }
        Ok(())
    }
}

impl fmt::Display for ProducerReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Connected(address) => write!(f, "connected to the tracing service at {address}"),
            Self::Waiting(why) => write!(f, "{why}; trying again"),
            Self::Started { instance, processes, troubles } => {
                let names = if processes.is_empty() { "nothing".to_owned() } else { processes.join(", ") };
                write!(f, "session {instance} began: {names}")?;
                troubles.iter().try_for_each(|trouble| write!(f, "\n  {trouble}"))
            }
            Self::Progress { instance, packets } => write!(f, "session {instance}: {packets}"),
            Self::Ended { instance, packets } => write!(f, "session {instance} ended: {packets}"),
            Self::Trouble(trouble) => f.write_str(trouble),
        }
    }
}
