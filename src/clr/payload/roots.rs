//! What keeps objects alive, many to an event.

use crate::wire::Utf16;

use super::heap::{Rows, number};
use super::{Fields, Payload};

/// Roots that refer to objects (event 16).
#[derive(Debug, Clone, Copy)]
pub struct BulkRootEdge<'a> {
    pointer: usize,
    rows: Rows<'a>,
}

/// A root.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RootEdge {
    /// The object, 0 for none: so it is with many of the stack.
    pub object: u64,
    /// Where the root is.
    pub kind: RootKind,
    /// 1 pins the object, 2 does not keep it alive, 4 refers into it, 8 is counted.
    pub flags: u32,
}

/// Where a root is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RootKind {
    /// A local variable.
    Stack,
    /// The queue of the finalizer.
    Finalizer,
    /// A handle.
    Handle,
    /// Elsewhere.
    Other,
}

impl RootEdge {
    /// Whether the object does not move for it.
    pub fn is_pinning(&self) -> bool {
        self.flags & 1 != 0
    }

    /// Whether the object may go.
    pub fn is_weak(&self) -> bool {
        self.flags & 2 != 0
    }

    /// Whether it holds the object while native code holds a reference (COM reference counting).
    pub fn is_counted(&self) -> bool {
        self.flags & 8 != 0
    }
}

impl<'a> Payload<'a> for BulkRootEdge<'a> {
    fn read(mut fields: Fields<'a>) -> Option<Self> {
        let (_index, count) = (fields.u32()?, fields.u32()?);
        fields.clr_instance()?;
        let pointer = usize::from(fields.pointer_size());
        Some(Self { pointer, rows: Rows::new(fields, count, 2 * pointer + 5) })
    }
}

impl<'a> BulkRootEdge<'a> {
    /// The roots that are there.
    pub fn roots(self) -> impl ExactSizeIterator<Item = RootEdge> + 'a {
        self.rows.map(move |row| {
            let (object, rest) = row.split_at(self.pointer);
            let kind = match rest[0] {
                0 => RootKind::Stack,
                1 => RootKind::Finalizer,
                2 => RootKind::Handle,
                _ => RootKind::Other,
            };
            RootEdge { object: number(object), kind, flags: number(&rest[1..5]) as u32 }
        })
    }
}

/// Objects that are alive as long as others are (event 17).
#[derive(Debug, Clone, Copy)]
pub struct BulkWeakTableEdge<'a> {
    pointer: usize,
    rows: Rows<'a>,
}

/// An object that is alive as long as another is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WeakTableEdge {
    /// The other.
    pub key: u64,
    /// The object.
    pub value: u64,
}

impl<'a> Payload<'a> for BulkWeakTableEdge<'a> {
    fn read(mut fields: Fields<'a>) -> Option<Self> {
        let (_index, count) = (fields.u32()?, fields.u32()?);
        fields.clr_instance()?;
        let pointer = usize::from(fields.pointer_size());
        Some(Self { pointer, rows: Rows::new(fields, count, 3 * pointer) })
    }
}

impl<'a> BulkWeakTableEdge<'a> {
    /// Those that are there.
    pub fn edges(self) -> impl ExactSizeIterator<Item = WeakTableEdge> + 'a {
        self.rows.map(move |row| {
            let (key, rest) = row.split_at(self.pointer);
            WeakTableEdge { key: number(key), value: number(&rest[..self.pointer]) }
        })
    }
}

/// Static variables that refer to objects (event 38).
#[derive(Debug, Clone, Copy)]
pub struct BulkRootStaticVariable<'a> {
    left: u32,
    fields: Fields<'a>,
}

/// A static variable.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StaticVariable<'a> {
    /// The object in it, 0 for none.
    pub object: u64,
    /// The type that has it.
    pub type_id: u64,
    /// 1 where every thread has its own.
    pub flags: u32,
    /// Its name.
    pub name: Utf16<'a>,
}

impl StaticVariable<'_> {
    /// Whether every thread has its own.
    pub fn is_of_thread(&self) -> bool {
        self.flags & 1 != 0
    }
}

impl<'a> Payload<'a> for BulkRootStaticVariable<'a> {
    fn read(mut fields: Fields<'a>) -> Option<Self> {
        let (left, _domain) = (fields.u32()?, fields.u64()?);
        fields.clr_instance()?;
        Some(Self { left, fields })
    }
}

impl<'a> Iterator for BulkRootStaticVariable<'a> {
    type Item = StaticVariable<'a>;

    /// Ends early where the payload does.
    fn next(&mut self) -> Option<StaticVariable<'a>> {
        self.left = self.left.checked_sub(1)?;
        let (_root, object, type_id) = (self.fields.u64()?, self.fields.u64()?, self.fields.u64()?);
        Some(StaticVariable { object, type_id, flags: self.fields.u32()?, name: self.fields.text()? })
    }
}
