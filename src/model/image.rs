//! Identity of a native library or program.

/// What identifies the build of an ELF file, and converts addresses in the file to those of its debug symbols.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ImageIdentity {
    /// Build ID, by which symbol servers and debuggers find debug symbols; usually 20 bytes.
    pub build_id: Vec<u8>,
    /// Address of the first segment with code (`p_vaddr`).
    pub code_address: u64,
    /// File offset of that segment (`p_offset`).
    pub code_offset: u64,
}
