//! The `.gcdump` file of a heap, as written by dotnet-gcdump and read by PerfView.
//!
//! It is an object graph in the FastSerialization format: a `GCHeapDump` of version 10 that contains a `Graphs.MemoryGraph` of version 1: a table
//! of types, the position of each node's description, the descriptions, and the addresses. A description consists of the node's type and size, and
//! the distance in node numbers to each referenced node, as numbers of 7 bits per byte, highest bits first. (Source: `GCHeapDump.cs`, `graph.cs`,
//! `MemoryGraph.cs` and `FastSerialization.cs` of PerfView.)

mod read;

use std::io::{self, Write};

use foldhash::HashMap;
use thiserror::Error;

use super::address_index::AddressIndex;
use super::graph::{HeapGraph, Node, Root};

pub use read::{DumpError, HeapDump};

/// Facts about the process besides its heap.
#[derive(Debug, Clone, Default)]
pub struct DumpInfo {
    /// Process id.
    pub process_id: u32,
    /// Process name.
    pub process_name: String,
    /// Time of the heap walk, milliseconds since the Unix epoch.
    pub collected_unix_ms: i64,
}

/// Error of writing a `.gcdump` file.
#[derive(Debug, Error)]
pub enum GraphError {
    /// There are more objects or references than the format can hold, or than fit into memory.
    #[error("the heap has more objects or references than fit into memory or into a .gcdump file")]
    TooLarge,
    /// The file could not be written.
    #[error(transparent)]
    Io(#[from] io::Error),
}

mod tag {
    pub(super) const NULL_REFERENCE: u8 = 1;
    pub(super) const BEGIN_OBJECT: u8 = 4;
    pub(super) const END_OBJECT: u8 = 6;
    pub(super) const BYTE: u8 = 8;
    pub(super) const SKIP_REGION: u8 = 12;
    pub(super) const STRING: u8 = 13;
}

/// Ticks of 100 ns between the year 1 and the Unix epoch.
const UNIX_EPOCH_TICKS: i64 = 621_355_968_000_000_000;

/// A node that is not an object, such as the root of all roots.
struct Group {
    name: String,
    children: Vec<u32>,
}

/// The graph with node numbers instead of addresses. The numbers are assigned to groups, then objects, then objects that are only referenced.
struct NumberedGraph {
    /// The graph; its edges are node numbers, [`NO_TARGET`] if the target does not exist.
    graph: HeapGraph,
    groups: Vec<Group>,
    /// Node numbers of an object and of another one that it keeps alive, sorted.
    dependents: Vec<(u32, u32)>,
    /// Addresses of referenced objects that were not reported.
    unreported: Vec<u64>,
    /// Index into `types`, by object type and size class.
    kinds: Vec<[u32; SIZE_CLASSES.len()]>,
    types: Vec<SizedType>,
}

/// An object type in one size class: readers show the size of the first object as the size of the type.
struct SizedType {
    kind: u32,
    class: usize,
    /// Size of the first object; it is not repeated in the descriptions of objects with the same size.
    size: i32,
}

/// Size classes: exclusive lower bounds in bytes, and the suffixes with which dotnet-gcdump marks the types of larger objects.
const SIZE_CLASSES: [(u32, &str); 5] =
    [(0, ""), (1_000, " (Bytes > 1K)"), (10_000, " (Bytes > 10K)"), (100_000, " (Bytes > 100K)"), (1_000_000, " (Bytes > 1M)")];
/// Memory for a referenced object that was not reported, in bytes: an entry of a hash map that may be half empty, and one of a list.
const UNREPORTED_BYTES: u64 = 64;
/// No type.
const NO_TYPE: u32 = u32::MAX;
/// No node.
const NO_TARGET: u64 = u64::MAX;

fn class(size: u32) -> usize {
    SIZE_CLASSES.iter().rposition(|(bound, _)| size > *bound).unwrap_or(0)
}

impl HeapGraph {
    /// Writes the file. The graph must be complete: if the walk was aborted or lost events, references may lead anywhere.
    ///
    /// # Errors
    /// The file cannot be written, or the format cannot hold the graph.
    pub fn write(self, facts: &DumpInfo, out: &mut impl Write) -> Result<(), GraphError> {
        if self.is_full() {
            return Err(GraphError::TooLarge);
        }
        let is_64_bit = self.is_64_bit();
        let graph = NumberedGraph::new(self)?;
        let mut out = Out { inner: out, at: 0 };
        out.string(Some("!FastSerialization.1"))?;
        out.begin("GCHeapDump", 10, 8)?;
        out.begin("Graphs.MemoryGraph", 1, 0)?;
        graph.write(&mut out)?;
        out.bytes(&[tag::END_OBJECT])?;
        // Whether pointers are 64 bits wide; and sampling rates of 1: every object counts once.
        out.bytes(&[is_64_bit.into()])?;
        out.bytes(&1.0_f32.to_le_bytes())?;
        out.bytes(&1.0_f32.to_le_bytes())?;
        // No JavaScript heap, no segments, no log.
        out.bytes(&[tag::NULL_REFERENCE, tag::NULL_REFERENCE])?;
        out.string(None)?;
        out.i64(facts.collected_unix_ms.saturating_mul(10_000).saturating_add(UNIX_EPOCH_TICKS))?;
        out.string(None)?;
        out.string(Some(&facts.process_name))?;
        out.i32(facts.process_id as i32)?;
        out.i64(0)?;
        out.i64(0)?;
        out.i32(0)?;
        // Additions of later versions: no COM data, behind a forward reference to its end; and the creating program.
        out.bytes(&[tag::SKIP_REGION])?;
        out.i32(0)?;
        out.bytes(&[tag::NULL_REFERENCE])?;
        let skipped = out.at;
        out.bytes(&[tag::STRING])?;
        out.string(Some("dn-top"))?;
        out.bytes(&[tag::END_OBJECT, tag::END_OBJECT])?;
        // The targets of forward references, the position of that table, and the position of this pointer.
        let places = out.at;
        out.i32(1)?;
        out.label(skipped)?;
        let trailer = out.at;
        out.label(places)?;
        out.label(trailer)?;
        Ok(())
    }
}

impl NumberedGraph {
    fn new(mut graph: HeapGraph) -> Result<Self, GraphError> {
        let mut kinds = vec![[NO_TYPE; SIZE_CLASSES.len()]; graph.types.len()];
        let mut types = Vec::new();
        for node in &graph.nodes {
            let class = class(node.size);
            let number = &mut kinds[node.kind as usize][class];
            if *number == NO_TYPE {
                *number = types.len() as u32;
                types.push(SizedType { kind: node.kind, class, size: node.size as i32 });
            }
        }
        let mut groups = vec![Group { name: "[.NET Roots]".to_owned(), children: Vec::new() }];
        groups.extend(Root::ALL.map(|root| Group { name: root.names()[0].to_owned(), children: Vec::new() }));
        let statics = groups.len();
        groups.extend(["[static vars]", "[thread static vars]"].map(|name| Group { name: name.to_owned(), children: Vec::new() }));
        groups[0].children = (1..groups.len() as u32).collect();
        for found in &graph.statics {
            let number = groups.len() as u32;
            groups[statics + usize::from(found.is_thread_static)].children.push(number);
            let name = format!("[static var {}.{}]", graph.types[found.kind as usize].name, found.name);
            groups.push(Group { name, children: Vec::new() });
        }

        let first = groups.len() as u32;
        let mut address_index = AddressIndex::new(&graph.addresses);
        let mut unknown = HashMap::<u64, u32>::default();
        let mut unreported = Vec::new();
        let max_unreported = graph.unused_bytes() / UNREPORTED_BYTES;
        let mut number = |address: u64| {
            let next = first + (graph.addresses.len() + unreported.len()) as u32;
            match address_index.find(address).map(|place| first + place).or_else(|| unknown.get(&address).copied()) {
                Some(known) => Ok(known),
                None if unreported.len() as u64 >= max_unreported => Err(GraphError::TooLarge),
                None => {
                    unknown.insert(address, next);
                    unreported.push(address);
                    Ok(next)
                }
            }
        };
        for (object, root) in &graph.roots {
            groups[1 + *root as usize].children.push(number(*object)?);
        }
        for (found, group) in graph.statics.iter().zip(statics + 2..) {
            groups[group].children.push(number(found.object)?);
        }
        let mut dependents = Vec::with_capacity(graph.dependents.len());
        for (key, value) in &graph.dependents {
            dependents.push((number(*key)?, number(*value)?));
        }
        dependents.sort_unstable();
        for edge in &mut graph.edges {
            *edge = if *edge == 0 { NO_TARGET } else { number(*edge)?.into() };
        }
        Ok(Self { graph, groups, dependents, unreported, kinds, types })
    }

    fn write(&self, out: &mut Out<'_, impl Write>) -> Result<(), GraphError> {
        out.i64(self.graph.nodes.iter().map(|node| i64::from(node.size)).sum())?;
        // Node 0, the first group, is the root.
        out.i32(0)?;
        out.i32(count(1 + self.groups.len() + self.types.len())?)?;
        for name in std::iter::once("UNDEFINED").chain(self.groups.iter().map(|group| group.name.as_str())) {
            out.string(Some(name))?;
            out.i32(0)?;
            out.string(None)?;
        }
        for SizedType { kind, class, size } in &self.types {
            out.string(Some(&format!("{}{}", self.graph.types[*kind as usize].name, SIZE_CLASSES[*class].1)))?;
            out.i32(*size)?;
            out.string(self.graph.module(*kind))?;
        }
        // Position of each node's description. The first description is shared by all objects that were not reported.
        let nodes = self.groups.len() + self.graph.nodes.len() + self.unreported.len();
        out.i32(count(nodes)?)?;
        let mut at = 2_usize;
        self.describe(|text| {
            out.i32(count(at)?)?;
            at += text.len();
            Ok(())
        })?;
        self.unreported.iter().try_for_each(|_| out.i32(0))?;
        out.i32(count(at)?)?;
        out.bytes(&[0, 0])?;
        self.describe(|text| Ok(out.bytes(text)?))?;
        out.i32(count(nodes)?)?;
        let addresses = self.graph.addresses.iter().chain(&self.unreported).copied();
        for address in std::iter::repeat_n(0, self.groups.len()).chain(addresses) {
            out.i64(address as i64)?;
        }
        out.bytes(&[tag::BYTE, self.graph.is_64_bit().into()])?;
        Ok(())
    }

    /// Passes the description of each node to `take`, except those of unreported objects, which have none.
    fn describe(&self, mut take: impl FnMut(&[u8]) -> Result<(), GraphError>) -> Result<(), GraphError> {
        let mut text = Vec::new();
        for (group, number) in self.groups.iter().zip(0..) {
            text.clear();
            put(&mut text, (1 + number) << 1);
            put_children(&mut text, number, group.children.len(), group.children.iter().copied());
            take(&text)?;
        }
        let mut dependents = self.dependents.as_slice();
        let mut edges = self.graph.edges.as_slice();
        for (Node { size, kind, edges: held }, number) in self.graph.nodes.iter().zip(self.groups.len() as i32..) {
            text.clear();
            let sized = self.kinds[*kind as usize][class(*size)];
            let of_type = (1 + self.groups.len() as i32 + sized as i32) << 1;
            if self.types[sized as usize].size == *size as i32 {
                put(&mut text, of_type);
            } else {
                put(&mut text, of_type | 1);
                put(&mut text, *size as i32);
            }
            let (own, rest) = edges.split_at(edges.len().min(*held as usize));
            edges = rest;
            let own = own.iter().filter(|target| **target != NO_TARGET).map(|target| *target as u32);
            let (kept, rest) = dependents.split_at(dependents.iter().take_while(|(key, _)| *key == number as u32).count());
            dependents = rest;
            put_children(&mut text, number, own.clone().count() + kept.len(), own.chain(kept.iter().map(|(_, value)| *value)));
            take(&text)?;
        }
        Ok(())
    }
}

/// Writes the number of children, and the distance to each in node numbers.
fn put_children(text: &mut Vec<u8>, number: i32, count: usize, children: impl Iterator<Item = u32>) {
    put(text, count as i32);
    for child in children {
        put(text, (child as i32).wrapping_sub(number));
    }
}

/// Writes a signed number in as few bytes as possible: 7 bits per byte, highest first, all bytes but the last marked.
fn put(text: &mut Vec<u8>, value: i32) {
    if (-64..64).contains(&value) {
        text.push(value as u8 & 0x7f);
        return;
    }
    let is_wider = |bits: u32| value << (32 - bits) >> (32 - bits) != value;
    for bits in [28, 21, 14, 7] {
        if is_wider(bits) {
            text.push((value >> bits) as u8 | 0x80);
        }
    }
    text.push(value as u8 & 0x7f);
}

/// Converts a count or position to the width of the format.
fn count(count: usize) -> Result<i32, GraphError> {
    i32::try_from(count).map_err(|_| GraphError::TooLarge)
}

/// A writer that counts its bytes.
struct Out<'a, W> {
    inner: &'a mut W,
    at: u64,
}

impl<W: Write> Out<'_, W> {
    fn bytes(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.at += bytes.len() as u64;
        self.inner.write_all(bytes)
    }

    fn i32(&mut self, value: i32) -> io::Result<()> {
        self.bytes(&value.to_le_bytes())
    }

    fn i64(&mut self, value: i64) -> io::Result<()> {
        self.bytes(&value.to_le_bytes())
    }

    /// Writes a position in the file.
    fn label(&mut self, at: u64) -> Result<(), GraphError> {
        let at = u32::try_from(at).map_err(|_| GraphError::TooLarge)?;
        Ok(self.bytes(&at.to_le_bytes())?)
    }

    /// Writes the number of UTF-16 units, and each unit separately as UTF-8; -1 for none.
    fn string(&mut self, text: Option<&str>) -> io::Result<()> {
        let Some(text) = text else { return self.i32(-1) };
        self.i32(text.encode_utf16().count() as i32)?;
        for unit in text.encode_utf16() {
            match unit {
                0..0x80 => self.bytes(&[unit as u8])?,
                0x80..0x800 => self.bytes(&[0xc0 | (unit >> 6) as u8, 0x80 | (unit & 0x3f) as u8])?,
                _ => self.bytes(&[0xe0 | (unit >> 12) as u8, 0x80 | (unit >> 6 & 0x3f) as u8, 0x80 | (unit & 0x3f) as u8])?,
            }
        }
        Ok(())
    }

    /// Begins an object: its type, itself an object without a type, with the version and the oldest reader version.
    fn begin(&mut self, name: &str, version: i32, oldest_reader: i32) -> io::Result<()> {
        self.bytes(&[tag::BEGIN_OBJECT, tag::BEGIN_OBJECT, tag::NULL_REFERENCE])?;
        self.i32(version)?;
        self.i32(oldest_reader)?;
        self.string(Some(name))?;
        self.bytes(&[tag::END_OBJECT])
    }
}

#[cfg(test)]
mod tests;
