//! Block boundaries in a stream.

use std::ops::Range;

use crate::wire::{Reader, WireError};

use super::trace::V4_SIZE;
use super::{BlockKind, DecodeError};

/// Maximum length of an object's type name in V4.
const MAX_TYPE_NAME: usize = 64;
pub(super) const NULL_REFERENCE: u8 = 1;
pub(super) const BEGIN_PRIVATE_OBJECT: u8 = 5;
pub(super) const END_OBJECT: u8 = 6;

/// First bytes of a stream, of a stream of .NET Core 2, and of a Diagnostic IPC Protocol reply.
const MAGICS: [&[u8; 8]; 3] = [b"Nettrace", b"\x14\0\0\0!Fas", b"DOTNET_I"];

/// Container format of a stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Format {
    /// FastSerialization objects, versions 4 and 5.
    V4,
    /// Plain blocks, version 6.
    V6,
}

/// The element at the start of some bytes.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Frame {
    /// Incomplete: at least this many bytes are needed.
    Short(usize),
    /// A block, possibly incomplete.
    Block {
        kind: BlockKind,
        /// Version of the object (V4).
        version: u32,
        /// Offset of the size field.
        size_at: usize,
        /// Range of the content.
        body: Range<usize>,
        /// Total size, from header to footer.
        size: usize,
    },
    /// A block of an unknown kind.
    Unknown { size: u64 },
    /// The end of the stream.
    End { size: usize },
}

/// Detects the format at the start of a stream; returns it with the length of the prologue, or the number of bytes needed.
pub(super) fn prologue(bytes: &[u8]) -> Result<Result<(Format, usize), usize>, DecodeError> {
    let Some(magic) = bytes.first_chunk::<8>() else { return Ok(Err(8)) };
    let [nettrace, netperf, reply] = MAGICS;
    match magic {
        _ if magic == nettrace => {}
        _ if magic == netperf => return Err(DecodeError::NetPerf),
        // The header is followed by the error code.
        _ if magic == reply => {
            let Some(answer) = bytes.first_chunk::<24>() else { return Ok(Err(24)) };
            return Err(DecodeError::ErrorReply(u32::from_le_bytes([answer[20], answer[21], answer[22], answer[23]])));
        }
        _ => return Err(DecodeError::NotNettrace(magic.to_vec())),
    }
    let Some(header) = bytes.first_chunk::<20>() else { return Ok(Err(20)) };
    if header[8..12] == [0; 4] {
        let major = u32::from_le_bytes([header[12], header[13], header[14], header[15]]);
        return if major == 6 { Ok(Ok((Format::V6, 20))) } else { Err(DecodeError::Version(major)) };
    }
    let Some(header) = bytes.first_chunk::<32>() else { return Ok(Err(32)) };
    if header[8..] == *b"\x14\0\0\0!FastSerialization.1" {
        Ok(Ok((Format::V4, 32)))
    } else {
        Err(DecodeError::Damaged { at: 8, what: "unknown stream header" })
    }
}

/// Returns an error if these bytes, at which a stream ends, are too few for a prologue and not the start of one.
pub(super) fn foreign_start(bytes: &[u8]) -> Option<DecodeError> {
    let is_foreign = bytes.len() < 8 && !MAGICS.iter().any(|magic| magic.starts_with(bytes));
    is_foreign.then(|| DecodeError::NotNettrace(bytes.to_vec()))
}

/// Reads the header of the block at the start of `bytes`, which is at stream offset `at`. `limit` is the maximum block size.
pub(super) fn frame(format: Format, bytes: &[u8], at: u64, limit: usize) -> Result<Frame, DecodeError> {
    let mut reader = Reader::new(bytes);
    let read = match format {
        Format::V4 => v4(&mut reader, at),
        Format::V6 => v6(&mut reader),
    };
    let frame = match read {
        Ok(frame) => frame,
        Err(HeaderError::Short(needed)) => return Ok(Frame::Short(needed)),
        Err(HeaderError::Damaged(what)) => return Err(DecodeError::Damaged { at: at + reader.at() as u64, what }),
    };
    match frame {
        Frame::Block { ref body, .. } if body.len() > limit => {
            Err(DecodeError::BlockTooLong { at, size: body.len() as u64, limit: limit as u64 })
        }
        frame => Ok(frame),
    }
}

enum HeaderError {
    Short(usize),
    Damaged(&'static str),
}

impl From<WireError> for HeaderError {
    fn from(error: WireError) -> Self {
        match error {
            WireError::Short { at, needed, .. } => Self::Short(at.saturating_add(needed)),
            WireError::Varint { .. } | WireError::Unterminated { .. } => Self::Damaged("a malformed block header"),
        }
    }
}

fn v4(reader: &mut Reader<'_>, at: u64) -> Result<Frame, HeaderError> {
    if reader.rest().first() == Some(&NULL_REFERENCE) {
        return Ok(Frame::End { size: 1 });
    }
    // The three bytes are checked one by one as they arrive, so that an error is reported at the first wrong byte.
    for expected in [BEGIN_PRIVATE_OBJECT, BEGIN_PRIVATE_OBJECT, NULL_REFERENCE] {
        let mut ahead = *reader;
        if ahead.u8()? != expected {
            return Err(HeaderError::Damaged("expected the start of a block"));
        }
        *reader = ahead;
    }
    let (version, _oldest_reader, name_size) = (reader.u32()?, reader.u32()?, reader.u32()? as usize);
    if name_size > MAX_TYPE_NAME {
        return Err(HeaderError::Damaged("the type name of a block is too long"));
    }
    let name = reader.take(name_size)?;
    if reader.u8()? != END_OBJECT {
        return Err(HeaderError::Damaged("unterminated type name of a block"));
    }
    let kind = match name {
        b"Trace" => {
            let body = reader.at()..reader.at() + V4_SIZE;
            return Ok(Frame::Block { kind: BlockKind::Trace, version, size_at: 0, size: body.end + 1, body });
        }
        b"EventBlock" => Some(BlockKind::Event),
        b"MetadataBlock" => Some(BlockKind::Metadata),
        b"StackBlock" => Some(BlockKind::Stack),
        b"SPBlock" => Some(BlockKind::SequencePoint),
        _ => None,
    };
    let size_at = reader.at();
    let size = reader.u32()?;
    // The content is aligned to four bytes, relative to the start of the stream.
    let padding = (at + reader.at() as u64).wrapping_neg() % 4;
    let start = reader.at() as u64 + padding;
    let Some(kind) = kind else { return Ok(Frame::Unknown { size: start + u64::from(size) + 1 }) };
    let (start, size) = (start as usize, size as usize);
    let body = start..start.saturating_add(size);
    Ok(Frame::Block { kind, version, size_at, size: body.end.saturating_add(1), body })
}

fn v6(reader: &mut Reader<'_>) -> Result<Frame, HeaderError> {
    let header = reader.u32()?;
    let size = (header & 0x00ff_ffff) as usize;
    let kind = match header >> 24 {
        0 => return Ok(Frame::End { size: 4 }),
        1 => BlockKind::Trace,
        2 => BlockKind::Event,
        3 => BlockKind::Metadata,
        4 => BlockKind::SequencePoint,
        5 => BlockKind::Stack,
        6 => BlockKind::Thread,
        7 => BlockKind::RemoveThread,
        8 => BlockKind::LabelList,
        _ => return Ok(Frame::Unknown { size: 4 + size as u64 }),
    };
    Ok(Frame::Block { kind, version: 6, size_at: 0, body: 4..4 + size, size: 4 + size })
}

/// Checks the footer after the content of a block.
pub(super) fn footer(format: Format, footer: &[u8], at: u64) -> Result<(), DecodeError> {
    match (format, footer) {
        (Format::V4, [END_OBJECT]) | (Format::V6, []) => Ok(()),
        _ => Err(DecodeError::Damaged { at, what: "the end marker of a block is missing" }),
    }
}
