//! Reads a `.gcdump` file according to its format, independently of dn-top's writer: nothing here needs the library.

/// Contents of a file.
pub(crate) struct Dump {
    pub(crate) nodes: Vec<Node>,
    /// Index of the node from which all others are reached.
    pub(crate) root: usize,
    /// Total bytes of all objects.
    pub(crate) total: i64,
    pub(crate) is_64_bit: bool,
    /// Units of 100 ns since the year 1.
    pub(crate) ticks: i64,
    pub(crate) process_name: String,
    pub(crate) process_id: i32,
    /// Name of the tool that wrote the file.
    pub(crate) tool: String,
}

/// An object, or a group of roots.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Node {
    pub(crate) kind: String,
    /// Path of the module of the type.
    pub(crate) module: Option<String>,
    pub(crate) size: i32,
    /// Indexes of the referenced nodes.
    pub(crate) children: Vec<usize>,
    pub(crate) address: u64,
}

/// Panics if the file is malformed.
pub(crate) fn read(file: &[u8]) -> Dump {
    let mut reader = Reader { file, at: 0 };
    assert_eq!(reader.string().as_deref(), Some("!FastSerialization.1"));
    assert_eq!(reader.begin("GCHeapDump"), (10, 8));
    assert_eq!(reader.begin("Graphs.MemoryGraph"), (1, 0));
    let (total, root) = (reader.i64(), reader.i32() as usize);
    let types: Vec<_> = (0..reader.i32()).map(|_| (reader.string().unwrap(), reader.i32(), reader.string())).collect();
    let places: Vec<_> = (0..reader.i32()).map(|_| reader.i32() as usize).collect();
    let length = reader.i32() as usize;
    let text = reader.take(length);
    let addresses: Vec<_> = (0..reader.i32()).map(|_| reader.i64() as u64).collect();
    assert_eq!(reader.u8(), 8, "a tagged byte");
    let is_64_bit = reader.u8() == 1;
    assert_eq!(reader.u8(), 6, "the end of the graph");
    assert_eq!(places.len(), addresses.len());
    let nodes = places.iter().zip(addresses).enumerate().map(|(number_of_node, (place, address))| {
        let mut text = &text[*place..];
        let described = number(&mut text);
        let (kind, of_type, module) = &types[(described >> 1) as usize];
        let size = if described & 1 == 1 { number(&mut text) } else { *of_type };
        let child = |distance: i32| usize::try_from(number_of_node as i64 + i64::from(distance)).unwrap();
        let children: Vec<_> = (0..number(&mut text)).map(|_| child(number(&mut text))).collect();
        assert!(children.iter().all(|child| *child < places.len()));
        Node { kind: kind.clone(), module: module.clone(), size, children, address }
    });
    let nodes = nodes.collect();

    assert_eq!(reader.u8() == 1, is_64_bit);
    assert_eq!([reader.i32(), reader.i32()], [1.0_f32.to_bits() as i32; 2], "nothing was sampled");
    assert_eq!([reader.u8(), reader.u8()], [1; 2], "nothing else follows the heap");
    assert_eq!(reader.string(), None, "no log");
    let ticks = reader.i64();
    let _machine = reader.string();
    let (process_name, process_id) = (reader.string().unwrap(), reader.i32());
    assert_eq!((reader.i64(), reader.i64(), reader.i32()), (0, 0, 0));
    assert_eq!((reader.u8(), reader.i32(), reader.u8()), (12, 0, 1), "a region to skip, numbered, with nothing in it");
    let behind = reader.at as i32;
    assert_eq!(reader.u8(), 13, "a tagged text");
    let tool = reader.string().unwrap();
    assert_eq!([reader.u8(), reader.u8()], [6; 2], "the end of the object and of all");
    let table = reader.at as i32;
    assert_eq!([reader.i32(), reader.i32()], [1, behind], "where the region ends");
    let trailer = reader.at as i32;
    assert_eq!([reader.i32(), reader.i32()], [table, trailer]);
    assert_eq!(reader.at, file.len());
    Dump { nodes, root, total, is_64_bit, ticks, process_name, process_id, tool }
}

/// Reads a number with 7 bits per byte, most significant first: the first byte contains the sign, and all except the last have the high bit set.
pub(crate) fn number(text: &mut &[u8]) -> i32 {
    let mut value = i64::from(text[0] & 0x7f) - i64::from(text[0] & 0x40) * 2;
    while text[0] & 0x80 != 0 {
        *text = &text[1..];
        value = value << 7 | i64::from(text[0] & 0x7f);
    }
    *text = &text[1..];
    value as i32
}

struct Reader<'a> {
    file: &'a [u8],
    at: usize,
}

impl<'a> Reader<'a> {
    fn take(&mut self, length: usize) -> &'a [u8] {
        self.at += length;
        &self.file[self.at - length..self.at]
    }

    fn u8(&mut self) -> u8 {
        self.take(1)[0]
    }

    fn i32(&mut self) -> i32 {
        i32::from_le_bytes(self.take(4).try_into().unwrap())
    }

    fn i64(&mut self) -> i64 {
        i64::from_le_bytes(self.take(8).try_into().unwrap())
    }

    /// The length is in UTF-16 units, each of which is encoded separately in UTF-8.
    fn string(&mut self) -> Option<String> {
        let length = usize::try_from(self.i32()).ok()?;
        let unit = |reader: &mut Self| {
            let first = u16::from(reader.u8());
            let mut more = || u16::from(reader.u8() & 0x3f);
            match first {
                0..0x80 => first,
                0x80..0xe0 => (first & 0x1f) << 6 | more(),
                _ => (first & 0xf) << 12 | more() << 6 | more(),
            }
        };
        let units: Vec<_> = (0..length).map(|_| unit(self)).collect();
        Some(String::from_utf16(&units).unwrap())
    }

    /// Reads the start of an object, whose type is an object without a type. Returns its version, and that of the oldest compatible reader.
    fn begin(&mut self, name: &str) -> (i32, i32) {
        assert_eq!(self.take(3), [4, 4, 1]);
        let versions = (self.i32(), self.i32());
        assert_eq!((self.string().as_deref(), self.u8()), (Some(name), 6));
        versions
    }
}
