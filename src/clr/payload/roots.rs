//! GC roots, in bulk events.

use crate::wire::Utf16;

use super::heap::{Bulk, Row, number};
use super::{Fields, Payload};

/// Roots that refer to objects (event 16).
pub type BulkRootEdge<'a> = Bulk<'a, RootEdge>;

/// A GC root.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RootEdge {
    /// Address of the object, 0 for none; frequent for stack roots.
    pub object: u64,
    /// Kind of root.
    pub kind: RootKind,
    /// Flags: 1 pinning, 2 weak, 4 interior pointer, 8 reference-counted.
    pub flags: u32,
}

/// Kind of a GC root.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RootKind {
    /// A local variable.
    Stack,
    /// The finalizer queue.
    Finalizer,
    /// A GC handle.
    Handle,
    /// Any other location.
    Other,
}

impl RootEdge {
    /// Returns whether the root pins the object.
    pub fn is_pinning(&self) -> bool {
        self.flags & 1 != 0
    }

    /// Returns whether the root does not keep the object alive.
    pub fn is_weak(&self) -> bool {
        self.flags & 2 != 0
    }

    /// Returns whether the root keeps the object alive only while native code references it (COM reference counting).
    pub fn is_ref_counted(&self) -> bool {
        self.flags & 8 != 0
    }
}

impl Row for RootEdge {
    const POINTERS: usize = 2;
    const OTHERS: usize = 5;

    fn read(row: &[u8], pointer: usize) -> Self {
        let (object, rest) = row.split_at(pointer);
        let kind = match rest[0] {
            0 => RootKind::Stack,
            1 => RootKind::Finalizer,
            2 => RootKind::Handle,
            _ => RootKind::Other,
        };
        Self { object: number(object), kind, flags: number(&rest[1..5]) as u32 }
    }
}

/// Dependent handles (`ConditionalWeakTable`): values kept alive by their keys (event 17).
pub type BulkWeakTableEdge<'a> = Bulk<'a, WeakTableEdge>;

/// An object that is kept alive by another one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WeakTableEdge {
    /// Address of the key object.
    pub key: u64,
    /// Address of the dependent object.
    pub value: u64,
}

impl Row for WeakTableEdge {
    const POINTERS: usize = 3;
    const OTHERS: usize = 0;

    fn read(row: &[u8], pointer: usize) -> Self {
        Self { key: number(&row[..pointer]), value: number(&row[pointer..2 * pointer]) }
    }
}

/// Static fields that reference objects (event 38).
#[derive(Debug, Clone, Copy)]
pub struct BulkRootStaticVariable<'a> {
    left: u32,
    fields: Fields<'a>,
}

/// A static field.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StaticVariable<'a> {
    /// Address of the referenced object, 0 for none.
    pub object: u64,
    /// ID of the declaring type.
    pub type_id: u64,
    /// Flags: 1 thread-static.
    pub flags: u32,
    /// Field name.
    pub name: Utf16<'a>,
}

impl StaticVariable<'_> {
    /// Returns whether the field is thread-static.
    pub fn is_thread_static(&self) -> bool {
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

    /// Ends early if the payload is truncated.
    fn next(&mut self) -> Option<StaticVariable<'a>> {
        self.left = self.left.checked_sub(1)?;
        let (_root, object, type_id) = (self.fields.u64()?, self.fields.u64()?, self.fields.u64()?);
        Some(StaticVariable { object, type_id, flags: self.fields.u32()?, name: self.fields.text()? })
    }
}
