//! Reads a `.gcdump` file of dn-top, dotnet-gcdump or PerfView.
//!
//! Nodes with an address are objects; nodes without one group the roots, and keep alive what they reference. Nodes of the first type are objects
//! that were never described. Of the part after the graph only the sampling rate is needed. (Sources: those of the parent module, and
//! `DotNetHeapDumpGraphReader.cs` of dotnet-gcdump for the names of groups.)

use foldhash::HashMap;
use thiserror::Error;

use super::tag;
use crate::analysis::{HeapProblem, HeapSnapshot, HeapType, ObjectGraph, Retention, module_name};
use crate::export::graph::static_variable;
use crate::wire::{Reader, WireError};

/// The first bytes: the name of the format, preceded by its length.
const FORMAT: &[u8] = b"\x14\0\0\0!FastSerialization.1";
/// The oldest version that stores the graph first and tags its further fields.
const MIN_VERSION: i32 = 9;
/// Maximum length of a text that is kept, in UTF-16 units.
const MAX_TEXT_UNITS: usize = 1024;
/// Minimum size of a type, in bytes.
const MIN_TYPE_BYTES: usize = 12;
/// Maximum number of types, including groups of roots.
const MAX_TYPES: usize = 1 << 20;
/// Marks a node that is not an object.
const NONE: u32 = u32::MAX;

/// The heap in a file.
#[derive(Debug)]
pub struct HeapDump {
    /// The objects, by type.
    pub heap: HeapSnapshot,
    /// `None` if there are too many objects for the computations on the graph.
    graph: Option<ObjectGraph>,
}

/// Error of reading a `.gcdump` file.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum DumpError {
    /// The file has another format.
    #[error("it is not a .gcdump file: it does not begin with the object GCHeapDump of the format FastSerialization")]
    NotGcDump,
    /// The file was written before 2013.
    #[error("it has version {0} of the format, and versions before {MIN_VERSION} are not supported: open it with PerfView")]
    Version(i32),
    /// The type names are numbers, which only the symbol files of .NET Native resolve.
    #[error("it was written by a .NET Native program, whose type names are in symbol files: open it with PerfView")]
    Native,
    /// The file ends too soon, or a length exceeds its end.
    #[error("it is cut off or damaged: {0}")]
    Wire(#[from] WireError),
    /// The file is inconsistent.
    #[error("it is damaged: {0}")]
    Damaged(&'static str),
}

/// The parts of the graph, as stored in the file.
struct Parts<'a> {
    types: Vec<SizedType>,
    /// Types with the same name and module merged, to be filled with counts.
    named: Vec<HeapType>,
    /// Position of each node's description in `text`, 4 bytes each.
    places: &'a [u8],
    text: &'a [u8],
    /// 8 bytes per node.
    addresses: &'a [u8],
}

/// A type of the file: there is one per size class.
struct SizedType {
    /// Index into the merged types.
    named: u32,
    size: i32,
}

/// The description of a node.
struct Node<'a> {
    /// Index of the type.
    kind: usize,
    size: u32,
    targets: u32,
    /// Distances to the referenced nodes.
    text: Reader<'a>,
}

impl HeapDump {
    /// Whether a file that starts with these bytes may be a `.gcdump` file.
    pub fn is_gcdump(start: &[u8]) -> bool {
        version(&mut Reader::new(start)).is_ok()
    }

    /// Reads a whole file.
    ///
    /// # Errors
    /// See [`DumpError`].
    pub fn read(file: &[u8]) -> Result<Self, DumpError> {
        let reader = &mut Reader::new(file);
        let version = version(reader)?;
        if version < MIN_VERSION {
            return Err(DumpError::Version(version));
        }
        let parts = Parts::read(reader)?;
        let mut dump = parts.dump()?;
        // Whether pointers are 64 bits wide, repeated; then the sampling rate of the objects.
        reader.u8()?;
        let objects = reader.f32()?;
        if objects.is_finite() && objects > 1.0 {
            dump.heap.problems.push(HeapProblem::Sampled((100.0 / objects).round() as u32));
        }
        Ok(dump)
    }

    /// Returns what keeps the objects of each type alive, and what they retain, in the order of [`HeapSnapshot::types`]. Takes seconds for millions
    /// of objects. `None` if there are too many.
    pub fn retention(&self) -> Option<Retention> {
        self.graph.as_ref()?.retention(self.heap.types.len())
    }
}

/// Reads the start of a file, and returns the version of its format.
fn version(reader: &mut Reader<'_>) -> Result<i32, DumpError> {
    if reader.take(FORMAT.len()).ok() != Some(FORMAT) {
        return Err(DumpError::NotGcDump);
    }
    begin(reader)?.filter(|(name, ..)| name == "GCHeapDump").map(|(_, version, _)| version).ok_or(DumpError::NotGcDump)
}

/// Reads the start of an object, and returns its type name, its version and the oldest reader version. `None` if something else follows.
fn begin(reader: &mut Reader<'_>) -> Result<Option<(String, i32, i32)>, WireError> {
    if reader.array()? != [tag::BEGIN_OBJECT, tag::BEGIN_OBJECT, tag::NULL_REFERENCE] {
        return Ok(None);
    }
    let (version, oldest_reader) = (reader.i32()?, reader.i32()?);
    let name = text(reader)?.unwrap_or_default();
    Ok((reader.u8()? == tag::END_OBJECT).then_some((name, version, oldest_reader)))
}

/// Reads a text: the number of its UTF-16 units, and each unit as UTF-8. `None` for a null text. Only the start of a long text is kept.
fn text(reader: &mut Reader<'_>) -> Result<Option<String>, WireError> {
    let Ok(count) = u32::try_from(reader.i32()?) else { return Ok(None) };
    let mut units = Vec::new();
    for at in 0..count as usize {
        let first = u16::from(reader.u8()?);
        let mut more = || reader.u8().map(|byte| u16::from(byte & 0x3f));
        let unit = match first {
            0..0x80 => first,
            0x80..0xe0 => (first & 0x1f) << 6 | more()?,
            _ => (first & 0xf) << 12 | more()? << 6 | more()?,
        };
        if at < MAX_TEXT_UNITS {
            units.push(unit);
        }
    }
    Ok(Some(String::from_utf16_lossy(&units)))
}

/// Reads a number of 7 bits per byte, highest first: the first byte has the sign, and all but the last are marked.
fn number(reader: &mut Reader<'_>) -> Result<i32, DumpError> {
    let mut byte = reader.u8()?;
    let mut value = i32::from(byte & 0x7f) - i32::from(byte & 0x40) * 2;
    for _ in 0..4 {
        if byte & 0x80 == 0 {
            return Ok(value);
        }
        byte = reader.u8()?;
        value = value << 7 | i32::from(byte & 0x7f);
    }
    if byte & 0x80 == 0 { Ok(value) } else { Err(DumpError::Damaged("a number is longer than 5 bytes")) }
}

/// Reads the number of entries that follow, and checks that there are enough bytes for them, `size` each.
fn count(reader: &mut Reader<'_>, size: usize) -> Result<usize, DumpError> {
    let count = usize::try_from(reader.i32()?).map_err(|_| DumpError::Damaged("a count is negative"))?;
    let mut ahead = *reader;
    ahead.take(count.saturating_mul(size))?;
    Ok(count)
}

/// Removes the suffixes of PerfView and dotnet-gcdump from a type name: the size class, and the kind of array elements.
fn without_suffix(name: &str) -> &str {
    let is_suffix = |note: &str| ["Bytes > ", "Ptrs,", "NoPtrs,"].iter().any(|start| note.starts_with(start));
    name.rsplit_once(" (").filter(|(_, note)| is_suffix(note)).map_or(name, |(name, _)| name)
}

/// Restores the name of a compiler-generated type, in which dotnet-gcdump replaces `<>` by `[]`: `[]c__DisplayClass1_0`. (Seen in its files.)
fn with_angle_brackets(name: &str) -> String {
    let mut parts = name.split("[]");
    let mut out = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        // No letter follows the brackets of an array.
        out += if part.starts_with(|next: char| next.is_ascii_alphabetic()) { "<>" } else { "[]" };
        out += part;
    }
    out
}

impl<'a> Parts<'a> {
    fn read(reader: &mut Reader<'a>) -> Result<Self, DumpError> {
        match begin(reader)?.filter(|(name, ..)| name == "Graphs.MemoryGraph") {
            Some((_, _, oldest_reader)) if oldest_reader > 0 => return Err(DumpError::Native),
            Some(_) => {}
            None => return Err(DumpError::Damaged("it contains no memory graph")),
        }
        // Total size and root node: both are recomputed.
        reader.take(12)?;
        let (mut types, mut named, mut known) = (Vec::new(), Vec::new(), HashMap::default());
        let all = count(reader, MIN_TYPE_BYTES)?;
        if all > MAX_TYPES {
            return Err(DumpError::Damaged("it has more types than a program can have"));
        }
        for _ in 0..all {
            let name = with_angle_brackets(without_suffix(&text(reader)?.unwrap_or_default()));
            let size = reader.i32()?;
            let module = module_name(&text(reader)?.unwrap_or_default()).to_owned();
            let number = *known.entry((name.clone(), module.clone())).or_insert(named.len() as u32);
            if number as usize == named.len() {
                named.push(HeapType { name, module, objects: 0, bytes: 0 });
            }
            types.push(SizedType { named: number, size });
        }
        let nodes = count(reader, 4)?;
        let places = reader.take(nodes * 4)?;
        let length = count(reader, 1)?;
        let text = reader.take(length)?;
        if count(reader, 8)? != nodes {
            return Err(DumpError::Damaged("its numbers of addresses and of objects differ"));
        }
        let addresses = reader.take(nodes * 8)?;
        // Old versions do not store the pointer size.
        let mut end = reader.u8()?;
        if end == tag::BYTE {
            reader.u8()?;
            end = reader.u8()?;
        }
        if end != tag::END_OBJECT {
            return Err(DumpError::Damaged("the end of its memory graph is missing"));
        }
        Ok(Self { types, named, places, text, addresses })
    }

    fn node(&self, place: u32) -> Result<Node<'a>, DumpError> {
        let text = self.text.get(place as usize..).ok_or(DumpError::Damaged("the description of an object is missing"))?;
        let mut text = Reader::new(text);
        let described = number(&mut text)?;
        let kind = (described >> 1) as usize;
        let of_type = self.types.get(kind).ok_or(DumpError::Damaged("the type of an object is undefined"))?;
        let size = if described & 1 == 1 { number(&mut text)? } else { of_type.size };
        let targets = u32::try_from(number(&mut text)?).map_err(|_| DumpError::Damaged("a count of references is negative"))?;
        // Writers truncate the size of an array of more than 2 GiB to its lower half.
        Ok(Node { kind, size: size as u32, targets, text })
    }

    /// Returns all nodes with their addresses.
    fn nodes(&self) -> impl Iterator<Item = Result<(u64, Node<'a>), DumpError>> {
        let places = self.places.chunks_exact(4).map(|place| u32::from_le_bytes(place.try_into().unwrap_or_default()));
        let addresses = self.addresses.chunks_exact(8).map(|address| u64::from_le_bytes(address.try_into().unwrap_or_default()));
        places.zip(addresses).map(|(place, address)| Ok((address, self.node(place)?)))
    }

    fn dump(mut self) -> Result<HeapDump, DumpError> {
        // Object number of each node.
        let mut numbers = Vec::with_capacity(self.places.len() / 4);
        let (mut objects, mut references, mut named) = (0, 0, std::mem::take(&mut self.named));
        let mut of_roots = 0;
        let mut left = self.text.len();
        for node in self.nodes() {
            let (address, Node { kind, size, targets, .. }) = node?;
            // Each reference takes at least a byte: if there are more, descriptions overlap.
            left = left.checked_sub(targets as usize).ok_or(DumpError::Damaged("there are more references than fit into the file"))?;
            let is_object = address != 0 && kind != 0;
            numbers.push(if is_object { objects } else { NONE });
            if is_object {
                objects += 1;
                references += u64::from(targets);
                let of = &mut named[self.types[kind].named as usize];
                (of.objects, of.bytes) = (of.objects + 1, of.bytes + u64::from(size));
            } else {
                of_roots += targets as usize;
            }
        }
        let found = named.iter().filter(|of| of.objects > 0).cloned().collect();
        let mut heap = HeapSnapshot::new(found, references);
        let unknown: u64 = named.iter().filter(|of| of.name.is_empty()).map(|of| of.objects).sum();
        if unknown > 0 {
            heap.problems.push(HeapProblem::TypesUnnamed(unknown));
        }
        // A reference of a root takes as much memory as four other references.
        let graph = ObjectGraph::new(objects as usize, (references as usize).saturating_add(of_roots.saturating_mul(4)));
        let graph = graph.map(|graph| self.fill(graph, &named, &heap.types, &numbers)).transpose()?;
        Ok(HeapDump { heap, graph })
    }

    /// Adds all objects and roots to a graph, whose first types are the listed ones.
    fn fill(&self, mut graph: ObjectGraph, named: &[HeapType], listed: &[HeapType], numbers: &[u32]) -> Result<ObjectGraph, DumpError> {
        fn key(of: &HeapType) -> (&str, &str) {
            (&of.name, &of.module)
        }
        let places: HashMap<_, u32> = listed.iter().map(key).zip(0..).collect();
        graph.types = listed.iter().map(|of| of.name.clone()).collect();
        let mut kinds = Vec::with_capacity(named.len());
        for of in named {
            kinds.push(places.get(&key(of)).copied().unwrap_or(graph.types.len() as u32));
            if !places.contains_key(&key(of)) {
                graph.types.push(of.name.clone());
            }
        }
        // For each reference of a root: the node, its type, the object.
        let (mut targets, mut roots, mut of_threads) = (Vec::new(), Vec::new(), Vec::new());
        for (node, at) in self.nodes().zip(0_i32..) {
            let (address, mut node) = node?;
            targets.clear();
            for _ in 0..node.targets {
                let target = usize::try_from(at.wrapping_add(number(&mut node.text)?)).ok().filter(|target| *target < numbers.len());
                targets.push(target.ok_or(DumpError::Damaged("a reference has no target object"))?);
            }
            let kind = self.types[node.kind].named as usize;
            let held = targets.iter().map(|target| numbers[*target]).filter(|target| *target != NONE);
            if numbers[at as usize] != NONE {
                graph.push(node.size, kinds[kind], held);
            } else if address == 0 {
                if named[kind].name == "[thread static vars]" {
                    of_threads.extend(&targets);
                }
                roots.extend(held.map(|object| (at as u32, kind as u32, object)));
            }
        }
        of_threads.sort_unstable();
        // There may be a root node per object: merge those of one type, so that each name is stored once.
        for (at, ..) in &mut roots {
            *at = u32::from(of_threads.binary_search(&(*at as usize)).is_ok());
        }
        roots.sort_unstable();
        let alike = roots.chunk_by(|a, b| (a.0, a.1) == (b.0, b.1));
        let mut groups: Vec<_> = alike.map(|held| (root(&named[held[0].1 as usize].name, held[0].0 == 1), held)).collect();
        groups.sort_by_key(|((rank, _), _)| *rank);
        for ((_, words), held) in groups {
            graph.root(words, held.iter().map(|(.., object)| *object));
        }
        Ok(graph)
    }
}

/// Splits the name of a static variable at the last dot outside of angle brackets, which both parts may have: `<N.A>k__BackingField` is a name.
fn split_variable(variable: &str) -> (&str, &str) {
    let mut depth = 0_usize;
    let is_dot = |c: char| {
        match c {
            '>' => depth += 1,
            '<' => depth = depth.saturating_sub(1),
            _ => {}
        }
        c == '.' && depth == 0
    };
    variable.rfind(is_dot).map_or(("", variable), |at| (&variable[..at], &variable[at + 1..]))
}

/// Returns the rank of a group of roots and its display name. Of several roots that lead to an object, the one with the lowest rank is shown.
fn root(group: &str, of_thread: bool) -> (usize, String) {
    const KNOWN: [(&[&str], &str); 8] = [
        (&["local vars"], "local variable"),
        (&["Pinned local vars"], "pinned local variable"),
        (&["StrongHandle", "strong Handles", "Strong handles"], "strong handle"),
        (&["PinnedHandle", "pinning Handles", "Pinned handles"], "pinned handle"),
        (&["COM/WinRT Objects"], "reference-counted handle"),
        (&["other Handles"], "other runtime root"),
        (&["FinalizerQueue", "finalizer Handles", "Finalizer handles"], "finalizer queue"),
        (&["Dependent Handles"], "dependent handle"),
    ];
    let group = group.strip_prefix('[').and_then(|group| group.strip_suffix(']')).unwrap_or(group);
    if let Some(variable) = group.strip_prefix("static var ") {
        let (of_type, name) = split_variable(variable);
        return (0, static_variable(name, of_type, of_thread));
    }
    match KNOWN.iter().position(|(groups, _)| groups.contains(&group)) {
        Some(place) => (1 + place, KNOWN[place].1.to_owned()),
        None => (1 + KNOWN.len(), group.to_owned()),
    }
}

#[cfg(test)]
mod tests;
