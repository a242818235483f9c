//! Bulk events of a heap snapshot: objects, references and types.

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

/// Objects on the heap (event 18). The references of each object are the next [`Node::edges`] references of the [`BulkEdge`] events, in the
/// same order.
#[derive(Debug, Clone, Copy)]
pub struct BulkNode<'a> {
    /// Index of this event among those of its kind in this heap walk.
    pub index: u32,
    /// Number of objects according to the header.
    pub count: u32,
    rows: Rows<'a>,
}

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

impl<'a> Payload<'a> for BulkNode<'a> {
    fn read(mut fields: Fields<'a>) -> Option<Self> {
        let (index, count) = (fields.u32()?, fields.u32()?);
        fields.clr_instance()?;
        let size = usize::from(fields.pointer_size()) + 24;
        Some(Self { index, count, rows: Rows::new(fields, count, size) })
    }
}

impl<'a> BulkNode<'a> {
    /// Returns the objects that are present in the payload.
    pub fn nodes(self) -> impl ExactSizeIterator<Item = Node> + 'a {
        self.rows.map(|row| {
            let (address, rest) = row.split_at(row.len() - 24);
            Node { address: number(address), size: number(&rest[..8]), type_id: number(&rest[8..16]), edges: number(&rest[16..]) }
        })
    }
}

/// References between objects (event 19).
#[derive(Debug, Clone, Copy)]
pub struct BulkEdge<'a> {
    /// Index of this event among those of its kind in this heap walk.
    pub index: u32,
    /// Number of references according to the header.
    pub count: u32,
    rows: Rows<'a>,
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
    /// Returns the addresses of the referenced objects that are present in the payload.
    pub fn targets(self) -> impl ExactSizeIterator<Item = u64> + 'a {
        self.rows.map(|row| number(&row[..row.len() - 4]))
    }
}

/// Fixed-size rows.
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

/// Decodes a little-endian number of at most eight bytes.
pub(super) fn number(bytes: &[u8]) -> u64 {
    let mut whole = [0; 8];
    whole[..bytes.len()].copy_from_slice(bytes);
    u64::from_le_bytes(whole)
}
