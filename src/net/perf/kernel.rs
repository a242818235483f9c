//! The functions of the kernel.

use std::io::{self, BufRead, BufReader, Read as _};

use crate::net::proc::Proc;

/// Maximum bytes read of the symbol list. That of a kernel with many modules has 20 MB.
const MAX_LIST_BYTES: u64 = 64 << 20;
/// Maximum assumed size of a function, in bytes: what follows it may not be code. Exceeded only to include a looked-up address.
const MAX_FUNCTION_BYTES: u64 = 1 << 20;

/// The functions by address; empty if the kernel hides their addresses (`kernel.kptr_restrict`).
#[derive(Debug, Default)]
pub(super) struct KernelFunctions {
    /// Their names, each with a line break.
    names: Vec<u8>,
    /// Address, and offset of the name; sorted by address.
    functions: Vec<(u64, u32)>,
}

impl KernelFunctions {
    pub(super) fn read(proc: &Proc) -> Self {
        let list = proc.kernel_functions().map(|list| BufReader::new(list.take(MAX_LIST_BYTES)));
        list.and_then(Self::new).unwrap_or_default()
    }

    /// Parses lines of address, type and name; the name may be followed by that of a module.
    fn new(mut list: impl BufRead) -> io::Result<Self> {
        let (mut names, mut functions, mut line) = (Vec::new(), Vec::new(), Vec::new());
        while list.read_until(b'\n', &mut line)? > 0 {
            let mut words = line.splitn(3, |byte| *byte == b' ');
            let address = words.next().and_then(|word| u64::from_str_radix(std::str::from_utf8(word).ok()?, 16).ok());
            // Other types are data.
            let is_code = words.next().is_some_and(|kind| matches!(kind, b"t" | b"T" | b"w" | b"W"));
            if let (Some(address @ 1..), true, Some(name)) = (address, is_code, words.next()) {
                functions.push((address, names.len() as u32));
                names.extend(name.iter().take_while(|byte| !byte.is_ascii_whitespace()));
                names.push(b'\n');
            }
            line.clear();
        }
        functions.sort_unstable();
        Ok(Self { names, functions })
    }

    /// Returns the start of the function at an address, its size in bytes, and its name. The list has no sizes: a function extends to the next one.
    pub(super) fn find(&self, address: u64) -> Option<(u64, u32, String)> {
        let next = self.functions.partition_point(|(start, _)| *start <= address);
        let (start, name) = *self.functions.get(next.checked_sub(1)?)?;
        let name = self.names[name as usize..].split(|byte| *byte == b'\n').next().unwrap_or_default();
        let until_next = self.functions.get(next).map_or(MAX_FUNCTION_BYTES, |(next, _)| (next - start).min(MAX_FUNCTION_BYTES));
        let size = u32::try_from(until_next.max((address - start).saturating_add(1))).unwrap_or(u32::MAX);
        Some((start, size, String::from_utf8_lossy(name).into_owned()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn functions_are_found_by_address() {
        let list = b"ffffffff81000200 T second\nffffffff81000000 T first\nnonsense\n0000000000000000 T hidden\nffffffff81000100 d data\nffffffffc0000000 t of_module\t[module]";
        let functions = KernelFunctions::new(&list[..]).unwrap();
        let name = |address: u64| functions.find(address).map(|(.., name)| name);
        assert_eq!(name(0xffff_ffff_8100_0150).as_deref(), Some("first"));
        assert_eq!(functions.find(0xffff_ffff_8100_0200), Some((0xffff_ffff_8100_0200, 1 << 20, "second".to_owned())));
        // An address anywhere in a function yields the whole function.
        assert_eq!(functions.find(0xffff_ffff_8100_0001), Some((0xffff_ffff_8100_0000, 0x200, "first".to_owned())));
        assert_eq!(name(u64::MAX).as_deref(), Some("of_module"));
        assert_eq!(name(5), None);
        assert_eq!(KernelFunctions::default().find(5), None);
    }
}
