//! Record of the messages that a simulated tracing service received.

use std::collections::BTreeMap;

use crate::perfetto::chunk::{CHUNK_HEADER, ChunkHeader, flag};
use crate::wire::Reader;

/// Messages that a service received.
#[derive(Debug, Clone, Default)]
pub(crate) struct TracingSeen {
    /// Names of the called methods, in order.
    pub(crate) calls: Vec<&'static str>,
    pub(crate) started: Vec<u64>,
    pub(crate) stopped: Vec<u64>,
    pub(crate) flushed: Vec<u64>,
    /// By writer.
    pub(crate) chunks: BTreeMap<u16, Vec<Vec<u8>>>,
    /// Number of chunks received inside commits.
    pub(crate) sent: usize,
}

impl TracingSeen {
    /// Returns the packets of all writers.
    ///
    /// # Errors
    /// A description of an invalid chunk.
    pub(crate) fn packets(&self) -> Result<Vec<Vec<u8>>, String> {
        let mut packets = Vec::new();
        for images in self.chunks.values() {
            let (mut images, mut open) = (images.clone(), None::<Vec<u8>>);
            images.sort_by_key(|image| image.first_chunk().map(|header| ChunkHeader::decode(*header).chunk));
            for (number, image) in images.iter().enumerate() {
                let (header, mut rest) = image.split_first_chunk::<CHUNK_HEADER>().ok_or("a chunk without header")?;
                let header = ChunkHeader::decode(*header);
                if header.chunk as usize != number || (header.flags & flag::CONTINUES != 0) != open.is_some() {
                    return Err(format!("chunk {number} is {header:?}"));
                }
                for fragment in 1..=header.fragments {
                    let mut reader = Reader::new(rest);
                    let size = reader.varu64().map_err(|error| error.to_string())? as usize;
                    open.get_or_insert_default().extend_from_slice(reader.take(size).map_err(|error| error.to_string())?);
                    rest = reader.rest();
                    if fragment < header.fragments || header.flags & flag::IS_CONTINUED == 0 {
                        packets.extend(open.take());
                    }
                }
            }
        }
        Ok(packets)
    }
}
