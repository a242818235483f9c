//! Reading of fields, one behind the other.

use crate::nettrace::Event;
use crate::wire::{Reader, Utf16};

/// The fields of a payload that were not read yet.
#[derive(Debug, Clone, Copy)]
pub struct Fields<'a> {
    reader: Reader<'a>,
    version: u32,
    pointer_size: u8,
}

/// A payload that can be read.
pub trait Payload<'a>: Sized {
    /// The view of a payload; `None` where it is too short for its version.
    fn read(fields: Fields<'a>) -> Option<Self>;
}

impl<'a> Fields<'a> {
    /// The fields of a payload of some version, in a process whose pointers have 4 or 8 bytes.
    pub fn new(payload: &'a [u8], version: u32, pointer_size: u8) -> Self {
        Self { reader: Reader::new(payload), version, pointer_size }
    }

    /// The fields of an event, in a process whose pointers have 4 or 8 bytes.
    pub fn of(event: &Event<'a>, pointer_size: u8) -> Self {
        Self::new(event.payload, event.metadata.version, pointer_size)
    }

    pub(super) fn u8(&mut self) -> Option<u8> {
        self.reader.u8().ok()
    }

    pub(super) fn u16(&mut self) -> Option<u16> {
        self.reader.u16().ok()
    }

    pub(super) fn u32(&mut self) -> Option<u32> {
        self.reader.u32().ok()
    }

    pub(super) fn u64(&mut self) -> Option<u64> {
        self.reader.u64().ok()
    }

    pub(super) fn f64(&mut self) -> Option<f64> {
        self.reader.f64().ok()
    }

    pub(super) fn guid(&mut self) -> Option<[u8; 16]> {
        self.reader.array().ok()
    }

    /// An address or another number of pointer size.
    pub(super) fn pointer(&mut self) -> Option<u64> {
        if self.pointer_size == 4 { self.u32().map(u64::from) } else { self.u64() }
    }

    pub(super) fn text(&mut self) -> Option<Utf16<'a>> {
        self.reader.utf16z().ok()
    }

    /// An integer of variable length.
    pub(super) fn varuint(&mut self) -> Option<u64> {
        self.reader.varu64().ok()
    }

    /// UTF-8 with its length in two bytes before it.
    pub(super) fn short_utf8(&mut self) -> Option<&'a [u8]> {
        let length = self.reader.u16().ok()?;
        self.reader.take(length.into()).ok()
    }

    /// The id of the runtime in its process, of which there is only ever one.
    pub(super) fn clr_instance(&mut self) -> Option<()> {
        self.u16().map(drop)
    }

    /// The bytes that are left.
    pub(super) fn rest(self) -> &'a [u8] {
        self.reader.rest()
    }

    /// What a later version added: `Some(None)` where this payload is of an earlier one.
    pub(super) fn since<T>(&mut self, version: u32, read: impl FnOnce(&mut Self) -> Option<T>) -> Option<Option<T>> {
        if self.version < version { Some(None) } else { read(self).map(Some) }
    }

    pub(super) fn pointer_size(&self) -> u8 {
        self.pointer_size
    }
}
