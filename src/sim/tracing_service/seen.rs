//! What a simulated tracing service was sent.

use std::collections::BTreeMap;

use crate::perfetto::chunk::{CHUNK_HEADER, ChunkHeader, flag};
use crate::wire::Reader;

/// What a service was sent.
#[derive(Debug, Clone, Default)]
pub struct TracingSeen {
    /// Names of methods in the order of their calls.
    pub calls: Vec<&'static str>,
    pub started: Vec<u64>,
    pub stopped: Vec<u64>,
    pub flushed: Vec<u64>,
    /// Chunks by writer, and how many of them came in commits.
    pub chunks: BTreeMap<u16, Vec<Vec<u8>>>,
    /// Chunks that came in commits.
    pub sent: usize,
}

impl TracingSeen {
    /// The packets of all writers.
    ///
    /// # Errors
    /// What is wrong with the chunks of a writer.
    pub fn packets(&self) -> Result<Vec<Vec<u8>>, String> {
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
