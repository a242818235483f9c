//! The heap of a simulated program, as reported by a heap walk: a static variable holds a growing cache.

use super::kind::Kind;
use super::methods::MODULE;
use crate::wire::Put;

/// Number of objects per event, which is limited to 64 kB.
const CHUNK: usize = 500;
const BYTES_OF_THUMBNAIL: u64 = 85_024;

/// Types, by index.
#[derive(Debug, Clone, Copy)]
enum Type {
    Cache,
    Orders,
    Order,
    Customer,
    Text,
    Thumbnail,
    Worker,
}

/// Type names, and whether the program itself defines them.
const TYPES: [(&str, bool); 7] = [
    ("Demo.OrderCache", true),
    ("Demo.Order[]", true),
    ("Demo.Order", true),
    ("Demo.Customer", true),
    ("System.String", false),
    ("System.Byte[]", false),
    ("Demo.Jobs.Worker", true),
];

impl Type {
    fn id(self) -> u64 {
        0x7f3a_2000_0000 + self as u64 * 0x100
    }
}

#[derive(Debug)]
struct Object {
    kind: Type,
    size: u64,
    /// Indexes of the referenced objects.
    references: Vec<usize>,
}

/// Creates the objects of a heap of about this many bytes, with this many orders in the cache. The first is held by a static variable, the
/// second by a stack.
fn objects(bytes: u64, orders: usize) -> Vec<Object> {
    const EACH: usize = 3;
    let first = 3;
    let array =
        Object { kind: Type::Orders, size: 24 + 8 * orders as u64, references: (0..orders).map(|order| first + order * EACH).collect() };
    let object = |kind, size, references: &[usize]| Object { kind, size, references: references.to_vec() };
    let mut all = vec![object(Type::Cache, 24, &[2]), object(Type::Worker, 64, &[0]), array];
    let thumbnails = (bytes / BYTES_OF_THUMBNAIL) as usize;
    for order in 0..orders {
        let at = all.len();
        // Some orders have a picture, placed after all orders.
        let thumbnail = (order < thumbnails).then_some(first + orders * EACH + order);
        let references: Vec<_> = [at + 1, at + 2].into_iter().chain(thumbnail).collect();
        all.extend([object(Type::Order, 56, &references), object(Type::Customer, 40, &[at + 2]), object(Type::Text, 62, &[])]);
    }
    all.extend((0..thumbnails.min(orders)).map(|_| object(Type::Thumbnail, BYTES_OF_THUMBNAIL, &[])));
    all
}

/// Returns the events of a heap walk, in the order in which runtimes send them.
pub(super) fn walk(bytes: u64, orders: usize) -> Vec<(Kind, Vec<u8>)> {
    let all = objects(bytes, orders);
    let mut addresses = vec![0x7f3a_8000_0000_u64];
    for object in &all {
        addresses.push(addresses[addresses.len() - 1] + object.size.next_multiple_of(8));
    }
    let mut events = vec![
        (Kind::HeapStaticVariables, static_variable(addresses[0])),
        (Kind::HeapTypes, types()),
        (Kind::HeapRoots, roots(addresses[1])),
    ];
    let mut edge_events = 0;
    for (index, (objects, places)) in all.chunks(CHUNK).zip(addresses.chunks(CHUNK)).enumerate() {
        let mut nodes = bulk(index as u32, objects.len());
        for (object, address) in objects.iter().zip(places) {
            nodes.put_u64(*address);
            for field in [object.size, object.kind.id(), object.references.len() as u64] {
                nodes.put_u64(field);
            }
        }
        events.push((Kind::HeapNodes, nodes));
        let references: Vec<usize> = objects.iter().flat_map(|object| object.references.iter().copied()).collect();
        for references in references.chunks(8 * CHUNK) {
            let mut edges = bulk(edge_events, references.len());
            for reference in references {
                edges.put_u64(addresses[*reference]);
                edges.put_u32(0);
            }
            edge_events += 1;
            events.push((Kind::HeapEdges, edges));
        }
    }
    events
}

/// Encodes the common header of these events: an index, and the number of rows.
fn bulk(index: u32, rows: usize) -> Vec<u8> {
    let mut payload = Vec::new();
    payload.put_u32(index);
    payload.put_u32(rows as u32);
    payload.put_u16(0);
    payload
}

fn types() -> Vec<u8> {
    let mut payload = Vec::new();
    payload.put_u32(TYPES.len() as u32);
    payload.put_u16(0);
    for (number, (name, is_own)) in TYPES.into_iter().enumerate() {
        payload.put_u64(Type::Cache.id() + number as u64 * 0x100);
        payload.put_u64(if is_own { MODULE } else { 0 });
        payload.put_u32(0x0200_0002 + number as u32);
        payload.put_u32(0);
        payload.put_u8(0);
        payload.put_utf16z(name);
        payload.put_u32(0);
    }
    payload
}

/// Encodes a root: a local variable.
fn roots(object: u64) -> Vec<u8> {
    let mut payload = bulk(0, 1);
    payload.put_u64(object);
    payload.put_u8(0);
    payload.put_u32(0);
    payload.put_u64(0);
    payload
}

fn static_variable(object: u64) -> Vec<u8> {
    let mut payload = Vec::new();
    payload.put_u32(1);
    payload.put_u64(0);
    payload.put_u16(0);
    for field in [0x7f3a_3000_0000, object, Type::Cache.id()] {
        payload.put_u64(field);
    }
    payload.put_u32(0);
    payload.put_utf16z("s_recent");
    payload
}
