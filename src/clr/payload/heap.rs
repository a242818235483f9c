//! Bulk events of a heap snapshot: objects, references and types.

use std::marker::PhantomData;

use crate::wire::Utf16;

use super::{Fields, Payload};

/// Types not yet named in any session of this process (event 15).
#[derive(Debug, Clone, Copy)]
pub struct BulkType<'a> {
    left: u32,
    fields: Fields<'a>,
}

/// A type and its name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TypeName<'a> {
    /// Type ID.
    pub id: u64,
    /// Module ID.
    pub module: u64,
    /// Full name; for some nested types without the declaring type.
    pub name: Utf16<'a>,
}

impl<'a> Payload<'a> for BulkType<'a> {
    fn read(mut fields: Fields<'a>) -> Option<Self> {
        let left = fields.u32()?;
        fields.clr_instance()?;
        Some(Self { left, fields })
    }
}

impl<'a> Iterator for BulkType<'a> {
    type Item = TypeName<'a>;

    /// Ends early if the payload is truncated.
    fn next(&mut self) -> Option<TypeName<'a>> {
        self.left = self.left.checked_sub(1)?;
        let fields = &mut self.fields;
        let (id, module) = (fields.u64()?, fields.u64()?);
        let (_token, _flags, _element_type) = (fields.u32()?, fields.u32()?, fields.u8()?);
        let name = fields.text()?;
        for _parameter in 0..fields.u32()? {
            fields.u64()?;
        }
        Some(TypeName { id, module, name })
    }
}

/// A bulk event whose rows all have the same size.
#[derive(Debug, Clone, Copy)]
pub struct Bulk<'a, R> {
    /// Index of this event among those of its kind in this heap walk.
    pub index: u32,
    /// Number of rows according to the header.
    pub count: u32,
    pointer: usize,
    bytes: &'a [u8],
    row: PhantomData<R>,
}

/// A row of a bulk event.
pub trait Row {
    /// Number of its fields that have the size of a pointer.
    const POINTERS: usize;
    /// Size of its other fields in bytes.
    const OTHERS: usize;

    /// Decodes a row of a process with pointers of this size.
    fn read(row: &[u8], pointer: usize) -> Self;
}

impl<'a, R: Row> Payload<'a> for Bulk<'a, R> {
    fn read(mut fields: Fields<'a>) -> Option<Self> {
        let (index, count) = (fields.u32()?, fields.u32()?);
        fields.clr_instance()?;
        let pointer = usize::from(fields.pointer_size());
        Some(Self { index, count, pointer, bytes: fields.rest(), row: PhantomData })
    }
}

impl<'a, R: Row + 'a> Bulk<'a, R> {
    /// Returns the rows that are present in the payload.
    pub fn rows(self) -> impl ExactSizeIterator<Item = R> + 'a {
        let rows = self.bytes.chunks_exact(R::POINTERS * self.pointer + R::OTHERS);
        rows.take(self.count as usize).map(move |row| R::read(row, self.pointer))
    }
}

/// Objects on the heap (event 18). The references of each object are the next [`Node::edges`] references of the [`BulkEdge`] events, in the
/// same order.
pub type BulkNode<'a> = Bulk<'a, Node>;

/// An object on the heap.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Node {
    /// Address of the object.
    pub address: u64,
    /// Size in bytes.
    pub size: u64,
    /// Type ID.
    pub type_id: u64,
    /// Number of references that the object holds.
    pub edges: u64,
}

impl Row for Node {
    const POINTERS: usize = 1;
    const OTHERS: usize = 24;

    fn read(row: &[u8], pointer: usize) -> Self {
        let (address, rest) = row.split_at(pointer);
        Self { address: number(address), size: number(&rest[..8]), type_id: number(&rest[8..16]), edges: number(&rest[16..]) }
    }
}

/// References between objects (event 19).
pub type BulkEdge<'a> = Bulk<'a, Edge>;

/// A reference to an object.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Edge {
    /// Address of the referenced object.
    pub target: u64,
}

impl Row for Edge {
    const POINTERS: usize = 1;
    const OTHERS: usize = 4;

    fn read(row: &[u8], pointer: usize) -> Self {
        Self { target: number(&row[..pointer]) }
    }
}

/// Decodes a little-endian number of at most eight bytes.
pub(super) fn number(bytes: &[u8]) -> u64 {
    let mut whole = [0; 8];
    whole[..bytes.len()].copy_from_slice(bytes);
    u64::from_le_bytes(whole)
}
