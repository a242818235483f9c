//! Mapped files and functions of the processes of a machine, for machine-wide recordings (`Universal.System`).

use std::collections::BTreeMap;

use foldhash::HashMap;

use crate::clr::EventKind;
use crate::clr::payload::{Fields, Payload, ProcessMapping, ProcessName, ProcessSymbol};
use crate::nettrace::Event;

use super::Origin;
use super::names::{NameId, Names};

/// Maximum number of mappings and functions of all processes.
const RANGES: usize = 1 << 18;
/// Maximum number of processes.
const PROCESSES: usize = 1 << 14;
/// Lowest kernel address. Kernel functions are listed with every process.
pub(super) const KERNEL: u64 = 1 << 63;

/// The processes of a machine: their names, mapped files and functions with known names.
///
/// A reused process ID is treated as a single process, in which the latest event wins.
#[derive(Debug, Default)]
pub struct Images {
    names: Names,
    processes: HashMap<u32, Process>,
    ranges: usize,
}

/// A function and its code range.
#[derive(Debug)]
pub(super) struct NativeCode {
    pub(super) start: u64,
    pub(super) size: u32,
    pub(super) name: String,
    pub(super) image: String,
    pub(super) origin: Origin,
}

#[derive(Debug, Default)]
struct Process {
    name: NameId,
    /// Whether any symbol is a .NET method.
    has_methods: bool,
    /// By start address.
    mappings: BTreeMap<u64, Mapping>,
    symbols: BTreeMap<u64, Symbol>,
}

#[derive(Debug, Clone, Copy)]
struct Mapping {
    last: u64,
    file_offset: u64,
    path: NameId,
}

#[derive(Debug, Clone, Copy)]
struct Symbol {
    last: u64,
    name: NameId,
    /// Module of a .NET method.
    module: Option<NameId>,
}

/// A code location in a process.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct CodeLocation {
    path: NameId,
    /// The function; the empty text if unknown.
    function: NameId,
    /// Offset in the file; 0 if the function is known.
    offset: u64,
}

impl Process {
    /// Returns the mapping at an address, with its start address.
    fn mapping(&self, address: u64) -> Option<(&u64, &Mapping)> {
        self.mappings.range(..=address).next_back().filter(|(_, mapping)| address <= mapping.last)
    }

    /// Returns the symbol at an address, with its start address.
    fn symbol(&self, address: u64) -> Option<(&u64, &Symbol)> {
        self.symbols.range(..=address).next_back().filter(|(_, symbol)| address <= symbol.last)
    }
}

impl Images {
    /// Processes an event. `None` if its payload is malformed or there is no room.
    pub fn feed(&mut self, kind: EventKind, event: &Event<'_>) -> Option<()> {
        let pid = event.thread().process;
        if self.processes.len() >= PROCESSES && !self.processes.contains_key(&pid) {
            return None;
        }
        let Self { names, processes, ranges } = self;
        let mut text = |bytes: &[u8]| names.add_str(&String::from_utf8_lossy(bytes));
        let process = processes.entry(pid).or_default();
        match kind {
            EventKind::ProcessName => {
                let ProcessName { name } = read(event)?;
                if !name.is_empty() {
                    process.name = text(name);
                }
            }
            EventKind::ProcessMapping if *ranges < RANGES => {
                let ProcessMapping { start, end, file_offset, path } = read(event)?;
                let new = process.mappings.insert(start, Mapping { last: end, file_offset, path: text(path) });
                *ranges += usize::from(new.is_none());
            }
            EventKind::ProcessSymbol if *ranges < RANGES => {
                let ProcessSymbol { start, end, name } = read(event)?;
                let (module, name) = method(name).map_or((None, name), |(module, name)| (Some(module), name));
                let new = process.symbols.insert(start, Symbol { last: end, name: text(name), module: module.map(text) });
                process.has_methods |= module.is_some();
                *ranges += usize::from(new.is_none());
            }
            _ => {}
        }
        Some(())
    }

    /// Returns the processes with known names. Not sanitized.
    pub fn process_names(&self) -> impl Iterator<Item = (u32, &str)> {
        self.processes.iter().map(|(pid, process)| (*pid, self.names.get(process.name))).filter(|(_, name)| !name.is_empty())
    }

    /// Returns the location of an address in a process.
    pub fn find(&self, pid: u32, address: u64) -> Option<CodeLocation> {
        let process = self.processes.get(&pid)?;
        let (mapping, symbol) = (process.mapping(address), process.symbol(address));
        let path = mapping.map_or_else(NameId::default, |(_, mapping)| mapping.path);
        match (symbol, mapping) {
            (Some((_, symbol)), _) => Some(CodeLocation { path: symbol.module.unwrap_or(path), function: symbol.name, offset: 0 }),
            (None, Some((start, mapping))) => {
                Some(CodeLocation { path, function: NameId::default(), offset: (address - start).saturating_add(mapping.file_offset) })
            }
            (None, None) => None,
        }
    }

    /// Returns the function at an address of a process or the kernel; if only the file is known, its name in brackets.
    pub(super) fn function_at(&self, pid: u32, address: u64) -> Option<NativeCode> {
        let process = self.processes.get(&pid)?;
        let (mapping, symbol) = (process.mapping(address), process.symbol(address));
        let file = mapping.map_or("", |(_, mapping)| self.names.get(mapping.path));
        let file_name = file.rsplit('/').next().unwrap_or_default();
        let is_assembly = [".dll", ".exe"].iter().any(|end| file.ends_with(end));
        let is_generated = file.is_empty() || ["/memfd:", "/dev/zero", "/SYSV", "//anon"].iter().any(|start| file.starts_with(start));
        let origin = match symbol {
            _ if address >= KERNEL => Origin::Kernel,
            Some((_, Symbol { module: Some(_), .. })) => Origin::Managed,
            None if is_assembly => Origin::Managed,
            None if is_generated && process.has_methods => Origin::Stub,
            _ if is_generated => Origin::Unknown,
            _ => Origin::from_native(file_name, symbol.map_or("", |(_, symbol)| self.names.get(symbol.name))),
        };
        let image = symbol.and_then(|(_, symbol)| symbol.module).map_or(file_name, |module| self.names.get(module));
        let image = match origin {
            Origin::Kernel => "kernel",
            Origin::Stub | Origin::Unknown if symbol.is_none() => "",
            _ => image,
        };
        let (start, size, name) = match (symbol, origin) {
            (Some((start, Symbol { last, name, .. })), _) => {
                (*start, u32::try_from(last - start).unwrap_or(u32::MAX).saturating_add(1), self.names.get(*name).to_owned())
            }
            (None, Origin::Stub) => (address, 1, "[runtime stubs]".to_owned()),
            (None, Origin::Unknown) => (address, 1, "[JIT-compiled code]".to_owned()),
            // The kernel's own images already have brackets: `[vdso]`.
            (None, _) => (address, 1, format!("[{}]", image.trim_matches(['[', ']']))),
        };
        Some(NativeCode { start, size, name, image: image.to_owned(), origin })
    }

    /// Returns the function at a location, or else file and offset. Not sanitized.
    pub fn function(&self, place: CodeLocation) -> String {
        match self.names.get(place.function) {
            "" => format!("{}+{:#x}", self.file(place), place.offset),
            function => function.to_owned(),
        }
    }

    /// Returns the file name of a location; empty if unknown. Not sanitized.
    pub fn file(&self, place: CodeLocation) -> &str {
        self.names.get(place.path).rsplit('/').next().unwrap_or_default()
    }
}

/// Returns module and name with parameters of a .NET method, whose symbol is uniquely formatted as `RETURNS [MODULE] NAME[TIER]`. The module
/// is empty if it is `?`.
fn method(name: &[u8]) -> Option<(&[u8], &[u8])> {
    let position = |text: &[u8], part: &[u8]| text.windows(part.len()).position(|window| window == part);
    let name = name.strip_suffix(b"]")?;
    let begin = position(name, b" [")?;
    let (module, rest) = name[begin + 2..].split_at_checked(position(&name[begin + 2..], b"] ")?)?;
    let tier = rest.iter().rposition(|byte| *byte == b'[')?;
    Some((if module == b"?" { b"" } else { module }, rest.get(2..tier)?))
}

/// Reads the payload of a collector event, which contains no pointers.
pub(super) fn read<'a, P: Payload<'a>>(event: &Event<'a>) -> Option<P> {
    P::read(Fields::of(event, 8))
}
