//! Sequential reading of payload fields.

use crate::nettrace::Event;
use crate::wire::{Reader, Utf16};

/// The unread fields of a payload.
#[derive(Debug, Clone, Copy)]
pub struct Fields<'a> {
    reader: Reader<'a>,
    version: u32,
    pointer_size: u8,
}

/// A decodable payload.
pub trait Payload<'a>: Sized {
    /// Decodes the payload; `None` if it is too short for its version.
    fn read(fields: Fields<'a>) -> Option<Self>;
}

impl<'a> Fields<'a> {
    /// Creates a reader for a payload of the given event version, from a process with pointers of 4 or 8 bytes.
    pub fn new(payload: &'a [u8], version: u32, pointer_size: u8) -> Self {
        Self { reader: Reader::new(payload), version, pointer_size }
    }

    /// Creates a reader for the payload of an event, from a process with pointers of 4 or 8 bytes.
    pub fn of(event: &Event<'a>, pointer_size: u8) -> Self {
        Self::new(event.payload, event.version(), pointer_size)
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

    /// Reads an address or another pointer-sized number.
    pub(super) fn pointer(&mut self) -> Option<u64> {
        if self.pointer_size == 4 { self.u32().map(u64::from) } else { self.u64() }
    }

    pub(super) fn text(&mut self) -> Option<Utf16<'a>> {
        self.reader.utf16z().ok()
    }

    /// Reads a variable-length integer.
    pub(super) fn varuint(&mut self) -> Option<u64> {
        self.reader.varu64().ok()
    }

    /// Reads UTF-8 text with a two-byte length prefix.
    pub(super) fn short_utf8(&mut self) -> Option<&'a [u8]> {
        let length = self.reader.u16().ok()?;
        self.reader.take(length.into()).ok()
    }

    /// Skips the CLR instance ID; a process has only one runtime.
    pub(super) fn clr_instance(&mut self) -> Option<()> {
        self.u16().map(drop)
    }

    /// Returns the remaining bytes.
    pub(super) fn rest(self) -> &'a [u8] {
        self.reader.rest()
    }

    /// Reads fields that were added in `version`: `Some(None)` if this payload has an earlier version.
    pub(super) fn since<T>(&mut self, version: u32, read: impl FnOnce(&mut Self) -> Option<T>) -> Option<Option<T>> {
        if self.version < version { Some(None) } else { read(self).map(Some) }
    }

    pub(super) fn pointer_size(&self) -> u8 {
        self.pointer_size
    }
}
