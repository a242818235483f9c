//! Objects, references and types, many to an event.

use crate::wire::Utf16;

use super::{Fields, Payload};

/// Types that were not named before in this process's sessions (event 15).
#[derive(Debug, Clone, Copy)]
pub struct BulkType<'a> {
    left: u32,
    fields: Fields<'a>,
}

/// A type.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TypeName<'a> {
    /// The type.
    pub id: u64,
    /// Its module.
    pub module: u64,
    /// Full name; without the outer name for some nested types.
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

    /// Ends early where the payload does.
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

/// Objects on the heap (event 18). Each takes its references off the stream of edges, in the same order.
#[derive(Debug, Clone, Copy)]
pub struct BulkNode<'a> {
    /// How many of these events came before it in this walk of the heap.
    pub index: u32,
    /// The count of objects in its header.
    pub count: u32,
    rows: Rows<'a>,
}

/// An object.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Node {
    /// Where it is.
    pub address: u64,
    /// Bytes that it takes.
    pub size: u64,
    /// Its type.
    pub type_id: u64,
    /// References that it holds.
    pub edges: u64,
}

impl<'a> Payload<'a> for BulkNode<'a> {
    fn read(mut fields: Fields<'a>) -> Option<Self> {
        let (index, count) = (fields.u32()?, fields.u32()?);
        fields.clr_instance()?;
        let size = usize::from(fields.pointer_size()) + 24;
        Some(Self { index, count, rows: Rows::new(fields, count, size) })
    }
}

impl<'a> BulkNode<'a> {
    /// The objects that are there.
    pub fn nodes(self) -> impl ExactSizeIterator<Item = Node> + 'a {
        self.rows.map(|row| {
            let (address, rest) = row.split_at(row.len() - 24);
            Node { address: number(address), size: number(&rest[..8]), type_id: number(&rest[8..16]), edges: number(&rest[16..]) }
        })
    }
}

/// References from object to object (event 19).
#[derive(Debug, Clone, Copy)]
pub struct BulkEdge<'a> {
    /// How many of these events came before it in this walk of the heap.
    pub index: u32,
    /// The count of references in its header.
    pub count: u32,
    rows: Rows<'a>,
}

/// A reference.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Edge {
    /// The object that is referred to.
    pub target: u64,
}

impl<'a> Payload<'a> for BulkEdge<'a> {
    fn read(mut fields: Fields<'a>) -> Option<Self> {
        let (index, count) = (fields.u32()?, fields.u32()?);
        fields.clr_instance()?;
        let size = usize::from(fields.pointer_size()) + 4;
        Some(Self { index, count, rows: Rows::new(fields, count, size) })
    }
}

impl<'a> BulkEdge<'a> {
    /// The references that are there.
    pub fn edges(self) -> impl ExactSizeIterator<Item = Edge> + 'a {
        self.rows.map(|row| Edge { target: number(&row[..row.len() - 4]) })
    }
}

/// Rows of one size.
#[derive(Debug, Clone, Copy)]
pub(super) struct Rows<'a> {
    bytes: &'a [u8],
    size: usize,
}

impl<'a> Rows<'a> {
    pub(super) fn new(fields: Fields<'a>, count: u32, size: usize) -> Self {
        let rest = fields.rest();
        let whole = (rest.len() / size).min(count as usize) * size;
        Self { bytes: &rest[..whole], size }
    }

    pub(super) fn map<T>(self, read: impl Fn(&'a [u8]) -> T + 'a) -> impl ExactSizeIterator<Item = T> + 'a {
        self.bytes.chunks_exact(self.size).map(read)
    }
}

/// A little-endian number of at most eight bytes.
pub(super) fn number(bytes: &[u8]) -> u64 {
    let mut whole = [0; 8];
    whole[..bytes.len()].copy_from_slice(bytes);
    u64::from_le_bytes(whole)
}
