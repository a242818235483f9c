//! Metadata tables (ECMA-335, II.22 and II.24), up to that of assembly references.

use super::{AssemblyError, StartupHook, Version};
use crate::wire::Reader;

/// Tables that are read, by number.
#[derive(Debug, Clone, Copy)]
pub(super) enum Table {
    Module = 0x00,
    TypeDef = 0x02,
    MethodDef = 0x06,
    Assembly = 0x20,
    AssemblyRef = 0x23,
}

/// Maximum length of a name accepted by a runtime, including its NUL.
const MAX_NAME_BYTES: usize = 1024;
/// Signature of a static method without parameters or result: default calling convention, no parameters, ELEMENT_TYPE_VOID.
const STATIC_VOID: &[u8] = &[0x00, 0x00, 0x01];
/// Method flags.
const STATIC: u32 = 0x0010;
const ABSTRACT: u32 = 0x0400;
const PINVOKE: u32 = 0x2000;
/// Mask of the visibility in a type's flags, and the largest visibility of a type that is not nested.
const VISIBILITY: u32 = 0x7;
const PUBLIC: u32 = 0x1;

/// A column: a number of this many bytes, a heap offset, or a row number in one table or one of several tables.
enum Column {
    Bytes(usize),
    Text,
    Guid,
    Blob,
    Row(usize),
    /// Number of bits that select the table, and the tables.
    OneOf(u32, &'static [usize]),
}
use Column::{Blob, Bytes, Guid, OneOf, Row, Text};

const TYPE_DEF_OR_REF: Column = OneOf(2, &[0x02, 0x01, 0x1b]);
const HAS_CONSTANT: Column = OneOf(2, &[0x04, 0x08, 0x17]);
const HAS_CUSTOM_ATTRIBUTE: Column = OneOf(
    5,
    &[0x06, 0x04, 0x01, 0x02, 0x08, 0x09, 0x0a, 0x00, 0x0e, 0x17, 0x14, 0x11, 0x1a, 0x1b, 0x20, 0x23, 0x26, 0x27, 0x28, 0x2a, 0x2c, 0x2b],
);
const HAS_FIELD_MARSHAL: Column = OneOf(1, &[0x04, 0x08]);
const HAS_DECL_SECURITY: Column = OneOf(2, &[0x02, 0x06, 0x20]);
const MEMBER_REF_PARENT: Column = OneOf(3, &[0x02, 0x01, 0x1a, 0x06, 0x1b]);
const HAS_SEMANTICS: Column = OneOf(1, &[0x14, 0x17]);
const METHOD_DEF_OR_REF: Column = OneOf(1, &[0x06, 0x0a]);
const MEMBER_FORWARDED: Column = OneOf(1, &[0x04, 0x06]);
const CUSTOM_ATTRIBUTE_TYPE: Column = OneOf(3, &[0x06, 0x0a]);
const RESOLUTION_SCOPE: Column = OneOf(2, &[0x00, 0x1a, 0x23, 0x01]);

/// The columns of every table up to the last one read.
const SCHEMA: [&[Column]; Table::AssemblyRef as usize + 1] = [
    &[Bytes(2), Text, Guid, Guid, Guid],                                             // Module
    &[RESOLUTION_SCOPE, Text, Text],                                                 // TypeRef
    &[Bytes(4), Text, Text, TYPE_DEF_OR_REF, Row(0x04), Row(0x06)],                  // TypeDef
    &[Row(0x04)],                                                                    // FieldPtr
    &[Bytes(2), Text, Blob],                                                         // Field
    &[Row(0x06)],                                                                    // MethodPtr
    &[Bytes(4), Bytes(2), Bytes(2), Text, Blob, Row(0x08)],                          // MethodDef
    &[Row(0x08)],                                                                    // ParamPtr
    &[Bytes(2), Bytes(2), Text],                                                     // Param
    &[Row(0x02), TYPE_DEF_OR_REF],                                                   // InterfaceImpl
    &[MEMBER_REF_PARENT, Text, Blob],                                                // MemberRef
    &[Bytes(2), HAS_CONSTANT, Blob],                                                 // Constant
    &[HAS_CUSTOM_ATTRIBUTE, CUSTOM_ATTRIBUTE_TYPE, Blob],                            // CustomAttribute
    &[HAS_FIELD_MARSHAL, Blob],                                                      // FieldMarshal
    &[Bytes(2), HAS_DECL_SECURITY, Blob],                                            // DeclSecurity
    &[Bytes(2), Bytes(4), Row(0x02)],                                                // ClassLayout
    &[Bytes(4), Row(0x04)],                                                          // FieldLayout
    &[Blob],                                                                         // StandAloneSig
    &[Row(0x02), Row(0x14)],                                                         // EventMap
    &[Row(0x14)],                                                                    // EventPtr
    &[Bytes(2), Text, TYPE_DEF_OR_REF],                                              // Event
    &[Row(0x02), Row(0x17)],                                                         // PropertyMap
    &[Row(0x17)],                                                                    // PropertyPtr
    &[Bytes(2), Text, Blob],                                                         // Property
    &[Bytes(2), Row(0x06), HAS_SEMANTICS],                                           // MethodSemantics
    &[Row(0x02), METHOD_DEF_OR_REF, METHOD_DEF_OR_REF],                              // MethodImpl
    &[Text],                                                                         // ModuleRef
    &[Blob],                                                                         // TypeSpec
    &[Bytes(2), MEMBER_FORWARDED, Text, Row(0x1a)],                                  // ImplMap
    &[Bytes(4), Row(0x04)],                                                          // FieldRVA
    &[Bytes(4), Bytes(4)],                                                           // EncLog
    &[Bytes(4)],                                                                     // EncMap
    &[Bytes(4), Bytes(2), Bytes(2), Bytes(2), Bytes(2), Bytes(4), Blob, Text, Text], // Assembly
    &[Bytes(4)],                                                                     // AssemblyProcessor
    &[Bytes(4), Bytes(4), Bytes(4)],                                                 // AssemblyOS
    &[Bytes(2), Bytes(2), Bytes(2), Bytes(2), Bytes(4), Blob, Text, Text, Blob],     // AssemblyRef
];

/// Tables and heaps of the metadata.
#[derive(Debug)]
pub(super) struct Metadata<'a> {
    /// Number of rows of each possible table.
    counts: [u32; 64],
    /// Bytes of each table in the schema.
    tables: Vec<&'a [u8]>,
    texts: &'a [u8],
    guids: &'a [u8],
    blobs: &'a [u8],
    /// Whether offsets into the heaps of texts, GUIDs and blobs have four bytes.
    wide: [bool; 3],
}

impl<'a> Metadata<'a> {
    pub(super) fn parse(bytes: &'a [u8]) -> Result<Self, AssemblyError> {
        let mut root = Reader::new(bytes);
        if root.take(4)? != b"BSJB" {
            return Err(AssemblyError::Malformed("its signature is missing"));
        }
        root.take(8)?;
        let version = root.u32()?;
        root.take(version as usize)?;
        root.u16()?;
        let streams = root.u16()?;
        let (mut tables, mut texts, mut guids, mut blobs) = (&[][..], &[][..], &[][..], &[][..]);
        for _ in 0..streams {
            let (offset, size) = (root.u32()?, root.u32()?);
            let mut stream = Reader::new(bytes);
            stream.take(offset as usize)?;
            let content = stream.take(size as usize)?;
            match name(&mut root)? {
                b"#~" => tables = content,
                b"#Strings" => texts = content,
                b"#GUID" => guids = content,
                b"#Blob" => blobs = content,
                // Tables that are not sorted: edit-and-continue form.
                b"#-" => return Err(AssemblyError::Malformed("it is not in its final form")),
                _ => {}
            }
        }
        Self { counts: [0; 64], tables: Vec::new(), texts, guids, blobs, wide: [false; 3] }.with_tables(tables)
    }

    fn with_tables(mut self, stream: &'a [u8]) -> Result<Self, AssemblyError> {
        let mut reader = Reader::new(stream);
        reader.take(6)?;
        let heaps = reader.u8()?;
        self.wide = [1, 2, 4].map(|bit| heaps & bit != 0);
        reader.u8()?;
        let present = reader.u64()?;
        reader.u64()?;
        for table in (0..64).filter(|table| present & 1 << table != 0) {
            self.counts[table] = reader.u32()?;
        }
        for (table, columns) in SCHEMA.iter().enumerate() {
            let row: usize = columns.iter().map(|column| self.width(column)).sum();
            let bytes = row.checked_mul(self.counts[table] as usize).ok_or(AssemblyError::Malformed("a table has too many rows"))?;
            self.tables.push(reader.take(bytes)?);
        }
        Ok(self)
    }

    /// Returns the width of a column in bytes.
    fn width(&self, column: &Column) -> usize {
        let wide = match column {
            Bytes(count) => return *count,
            Text => self.wide[0],
            Guid => self.wide[1],
            Blob => self.wide[2],
            Row(table) => self.counts[*table] > 0xffff,
            OneOf(bits, tables) => tables.iter().any(|table| self.counts[*table] >> (16 - bits) != 0),
        };
        if wide { 4 } else { 2 }
    }

    /// Returns the number of rows of a table; the first is row 1.
    pub(super) fn rows(&self, table: Table) -> u32 {
        self.counts[table as usize]
    }

    fn cell(&self, table: Table, row: u32, column: usize) -> Result<u32, AssemblyError> {
        let columns = SCHEMA[table as usize];
        let before = |count: usize| columns[..count].iter().map(|column| self.width(column)).sum::<usize>();
        let start = (row as usize).checked_sub(1).and_then(|row| row.checked_mul(before(columns.len()))).unwrap_or(usize::MAX);
        let mut reader = Reader::new(self.tables[table as usize]);
        reader.take(start)?;
        reader.take(before(column))?;
        Ok(match self.width(&columns[column]) {
            2 => reader.u16()?.into(),
            _ => reader.u32()?,
        })
    }

    /// Returns a name of at most [`MAX_NAME_BYTES`] bytes of UTF-8.
    pub(super) fn text(&self, table: Table, row: u32, column: usize) -> Result<&'a [u8], AssemblyError> {
        let rest = self.text_from(table, row, column)?;
        let length = rest.iter().take(MAX_NAME_BYTES).position(|byte| *byte == 0).ok_or(AssemblyError::Malformed("a name has no end"))?;
        Ok(&rest[..length])
    }

    /// Whether a column contains this name.
    pub(super) fn is(&self, table: Table, row: u32, column: usize, name: &[u8]) -> Result<bool, AssemblyError> {
        Ok(self.text_from(table, row, column)?.strip_prefix(name).is_some_and(|rest| rest.starts_with(b"\0")))
    }

    fn text_from(&self, table: Table, row: u32, column: usize) -> Result<&'a [u8], AssemblyError> {
        Ok(self.texts.get(self.cell(table, row, column)? as usize..).unwrap_or_default())
    }

    /// Returns the version in four columns, starting at `column`.
    pub(super) fn version(&self, table: Table, row: u32, column: usize) -> Result<Version, AssemblyError> {
        let mut version = [0; 4];
        for (i, number) in version.iter_mut().enumerate() {
            *number = self.cell(table, row, column + i)? as u16;
        }
        Ok(version)
    }

    /// Returns the module version ID.
    pub(super) fn mvid(&self) -> Result<[u8; 16], AssemblyError> {
        let index = self.cell(Table::Module, 1, 2)? as usize;
        let guid = index.checked_sub(1).and_then(|index| self.guids.get(index.checked_mul(16)?..)?.first_chunk());
        guid.copied().ok_or(AssemblyError::Malformed("its module has no version id"))
    }

    /// Whether the assembly has the class and method called by the runtime.
    pub(super) fn startup_hook(&self) -> Result<StartupHook, AssemblyError> {
        for row in 1..=self.rows(Table::TypeDef) {
            let is_nested = self.cell(Table::TypeDef, row, 0)? & VISIBILITY > PUBLIC;
            if is_nested || !self.is(Table::TypeDef, row, 1, b"StartupHook")? || !self.is(Table::TypeDef, row, 2, b"")? {
                continue;
            }
            let all = self.rows(Table::MethodDef).saturating_add(1);
            let first = self.cell(Table::TypeDef, row, 5)?;
            let end = if row < self.rows(Table::TypeDef) { self.cell(Table::TypeDef, row + 1, 5)? } else { all };
            for method in first..end.min(all) {
                if self.is_initialize(method)? {
                    return Ok(StartupHook::Yes);
                }
            }
            return Ok(StartupHook::NoMethod);
        }
        Ok(StartupHook::NoClass)
    }

    fn is_initialize(&self, method: u32) -> Result<bool, AssemblyError> {
        let flags = self.cell(Table::MethodDef, method, 2)?;
        let called = flags & (STATIC | ABSTRACT | PINVOKE) == STATIC && self.is(Table::MethodDef, method, 3, b"Initialize")?;
        let signature = self.cell(Table::MethodDef, method, 4)? as usize;
        // A blob is preceded by its length, which takes one byte if short.
        let blob = self.blobs.get(signature..).and_then(|blob| blob.split_first());
        Ok(called && blob.is_some_and(|(length, blob)| usize::from(*length) == STATIC_VOID.len() && blob.starts_with(STATIC_VOID)))
    }
}

/// Reads the name of a stream: up to 32 bytes, padded with NULs to a multiple of four.
fn name<'a>(reader: &mut Reader<'a>) -> Result<&'a [u8], AssemblyError> {
    let rest = reader.rest();
    let length = rest.iter().take(32).position(|byte| *byte == 0).ok_or(AssemblyError::Malformed("the name of a stream has no end"))?;
    reader.take((length + 1).next_multiple_of(4))?;
    Ok(&rest[..length])
}
