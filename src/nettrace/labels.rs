//! Labels of events (V6): activity ids, trace ids and what else a collector ties to an event.

use crate::wire::{Reader, WireError};

use super::rows::Rows;
use super::stacks::Loaded;

/// Marks the last label of a list.
const LAST: u8 = 0x80;
/// Most labels of a list that are read, each time an event refers to it. Collectors write a handful.
const LABELS: u8 = 32;

/// One label.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Label<'a> {
    /// The activity that the event is part of.
    ActivityId([u8; 16]),
    /// The activity that caused its own.
    RelatedActivityId([u8; 16]),
    /// W3C trace id.
    TraceId([u8; 16]),
    /// W3C span id.
    SpanId(u64),
    /// Key and value; UTF-8 as a rule.
    Text(&'a [u8], &'a [u8]),
    /// Key and number.
    Number(&'a [u8], i64),
    /// Instead of the opcode of the metadata.
    Opcode(u8),
    /// Instead of the keywords of the metadata.
    Keywords(u64),
    /// Instead of the level of the metadata.
    Level(u8),
    /// Instead of the version of the metadata.
    Version(u8),
}

/// The labels of an event: the first 32. Ends early where one is malformed.
#[derive(Debug, Clone)]
pub struct Labels<'a> {
    list: Reader<'a>,
    left: u8,
}

impl<'a> Labels<'a> {
    pub(super) fn new(list: &'a [u8]) -> Self {
        Self { list: Reader::new(list), left: LABELS }
    }

    /// The list as it stands on the wire, where none of it was read yet.
    pub(super) fn as_bytes(&self) -> &'a [u8] {
        self.list.rest()
    }

    pub(super) fn activity_id(self) -> [u8; 16] {
        self.filter_map(|label| if let Label::ActivityId(id) = label { Some(id) } else { None }).next().unwrap_or_default()
    }

    pub(super) fn related_activity_id(self) -> [u8; 16] {
        self.filter_map(|label| if let Label::RelatedActivityId(id) = label { Some(id) } else { None }).next().unwrap_or_default()
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

/// A UTF-8 text with its length before it.
pub(super) fn text<'a>(reader: &mut Reader<'a>) -> Result<&'a [u8], WireError> {
    let size = reader.varu32()? as usize;
    reader.take(size)
}

/// The next label and whether it is the last of its list; `None` where its kind is not known.
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

/// The signed number behind its unsigned form on the wire.
pub(super) fn zigzag(value: u64) -> i64 {
    (value >> 1) as i64 ^ -((value & 1) as i64)
}

/// Reads a label list block into the table.
pub(super) fn load(block: &[u8], rows: &mut Rows) -> Loaded {
    let mut loaded = Loaded { count: 0, kept: true, damage: None };
    let mut reader = Reader::new(block);
    if !matches!(read(&mut reader, rows, &mut loaded), Ok(true)) {
        loaded.damage = Some(reader.at());
    }
    loaded
}

fn read(reader: &mut Reader<'_>, rows: &mut Rows, loaded: &mut Loaded) -> Result<bool, WireError> {
    let (first_id, count) = (reader.u32()?, reader.u32()?);
    loaded.kept = rows.begin(first_id, reader.remaining());
    for _ in 0..count {
        let list = reader.rest();
        let start = reader.at();
        loop {
            match parse(reader)? {
                Some((_, false)) => {}
                Some((_, true)) => break,
                None => return Ok(false),
            }
        }
        loaded.kept &= rows.push(&list[..reader.at() - start]);
        loaded.count += 1;
    }
    Ok(true)
}
