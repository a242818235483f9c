//! Event labels (V6): activity IDs, trace IDs and other data that a collector attaches to an event.

use crate::wire::{Reader, WireError};

/// Flag of the last label in a list.
const LAST: u8 = 0x80;
/// Maximum number of labels to read per event. Collectors write a handful.
const MAX_LABELS: u8 = 32;

/// An event label.
///
/// Of the four that override the metadata, only the version is applied, since it determines the layout of the payload (see
/// [`Event::version`](super::Event::version)). No known collector writes these four; keywords and level have no effect on the analyses, and
/// neither has an opcode that differs from event to event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Label<'a> {
    /// ID of the event's activity.
    ActivityId([u8; 16]),
    /// ID of the activity that caused it.
    RelatedActivityId([u8; 16]),
    /// W3C trace ID.
    TraceId([u8; 16]),
    /// W3C span ID.
    SpanId(u64),
    /// Key and text value; usually UTF-8.
    Text(&'a [u8], &'a [u8]),
    /// Key and numeric value.
    Number(&'a [u8], i64),
    /// Overrides the opcode of the metadata.
    Opcode(u8),
    /// Overrides the keywords of the metadata.
    Keywords(u64),
    /// Overrides the level of the metadata.
    Level(u8),
    /// Overrides the version of the metadata.
    Version(u8),
}

/// Iterator over the first 32 labels of an event. Ends early at a malformed label.
#[derive(Debug, Clone)]
pub struct Labels<'a> {
    list: Reader<'a>,
    left: u8,
}

impl<'a> Labels<'a> {
    pub(super) fn new(list: &'a [u8]) -> Self {
        Self { list: Reader::new(list), left: MAX_LABELS }
    }

    /// Returns the encoded list, if none of it was read yet.
    pub(super) fn as_bytes(&self) -> &'a [u8] {
        self.list.rest()
    }

    pub(super) fn activity_id(mut self) -> [u8; 16] {
        self.find_map(|label| if let Label::ActivityId(id) = label { Some(id) } else { None }).unwrap_or_default()
    }

    pub(super) fn version(mut self) -> Option<u32> {
        self.find_map(|label| if let Label::Version(version) = label { Some(version.into()) } else { None })
    }

    pub(super) fn related_activity_id(mut self) -> [u8; 16] {
        self.find_map(|label| if let Label::RelatedActivityId(id) = label { Some(id) } else { None }).unwrap_or_default()
    }
}

impl<'a> Iterator for Labels<'a> {
    type Item = Label<'a>;

    fn next(&mut self) -> Option<Label<'a>> {
        self.left = self.left.checked_sub(1)?;
        let label = parse(&mut self.list).ok()??;
        Some(label.0)
    }
}

/// Reads UTF-8 text with a length prefix.
pub(super) fn text<'a>(reader: &mut Reader<'a>) -> Result<&'a [u8], WireError> {
    let size = reader.varu32()? as usize;
    reader.take(size)
}

/// Reads the next label, and whether it is the last one of its list; `None` if its kind is unknown.
fn parse<'a>(reader: &mut Reader<'a>) -> Result<Option<(Label<'a>, bool)>, WireError> {
    let kind = reader.u8()?;
    let label = match kind & !LAST {
        1 => Label::ActivityId(reader.array()?),
        2 => Label::RelatedActivityId(reader.array()?),
        3 => Label::TraceId(reader.array()?),
        4 => Label::SpanId(reader.u64()?),
        5 => Label::Text(text(reader)?, text(reader)?),
        6 => Label::Number(text(reader)?, zigzag(reader.varu64()?)),
        7 => Label::Opcode(reader.u8()?),
        8 => Label::Keywords(reader.u64()?),
        9 => Label::Level(reader.u8()?),
        10 => Label::Version(reader.u8()?),
        _ => return Ok(None),
    };
    Ok(Some((label, kind & LAST != 0)))
}

/// Decodes a zigzag-encoded signed number.
pub(super) fn zigzag(value: u64) -> i64 {
    (value >> 1) as i64 ^ -((value & 1) as i64)
}

/// Reads the next row of a label list block.
pub(super) fn row<'a>(reader: &mut Reader<'a>) -> Option<&'a [u8]> {
    let (list, start) = (reader.rest(), reader.at());
    while let (_, false) = parse(reader).ok()?? {}
    Some(&list[..reader.at() - start])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn number_of_labels_is_limited() {
        let of = |count| Labels::new(&[9, 4].repeat(count)).count();
        assert_eq!([3, 32, 33, 300].map(of), [3, 32, 32, 32]);
    }
}
