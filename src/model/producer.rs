//! Progress of serving Perfetto's tracing service.

use std::fmt;
use std::ops::AddAssign;

use super::{Bytes, Count, Counted, SafeText};

/// A report of a producer for the tracing service.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ProducerReport {
    /// Connected to the service at this socket.
    Connected(SafeText),
    /// There is no service, or it exited: the reason. The connection is retried.
    Waiting(SafeText),
    /// A session of the service started.
    Started {
        /// Id of the data source instance.
        instance: u64,
        /// The recorded processes.
        processes: Vec<SafeText>,
        /// Reasons why other processes are not recorded.
        troubles: Vec<SafeText>,
    },
    /// A session is running.
    Progress {
        /// Id of the data source instance.
        instance: u64,
        /// Packets of the session so far.
        packets: PacketCounts,
    },
    /// A session ended.
    Ended {
        /// Id of the data source instance.
        instance: u64,
        /// All packets of the session.
        packets: PacketCounts,
    },
    /// A problem that was worked around.
    Trouble(SafeText),
}

/// Packet counts of a session.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct PacketCounts {
    /// Packets delivered to the service.
    pub packets: u64,
    /// Their size, in bytes.
    pub bytes: u64,
    /// Packets that the service did not accept in time.
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
            write!(f, "; {} more DROPPED: the service did not accept them in time", Count(self.dropped))?;
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
