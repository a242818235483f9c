//! What is mapped into the processes of a machine, and which functions are in it, as recordings of the whole machine say (`Universal.System`).

use std::collections::BTreeMap;

use foldhash::HashMap;

use crate::clr::EventKind;
use crate::clr::payload::{Fields, Payload, ProcessMapping, ProcessName, ProcessSymbol};
use crate::nettrace::Event;

use super::names::{NameId, Names};

/// Most mappings and functions of all processes.
const RANGES: usize = 1 << 18;
/// Most processes.
const PROCESSES: usize = 1 << 14;
/// Bytes of all names.
const TEXT: usize = 8 << 20;
const POINTER_SIZE: u8 = 8;

/// The processes of a machine: their names, their mapped files and the functions whose names are known.
///
/// A process id that is used again is one process here, of which the latest word counts.
#[derive(Debug)]
pub struct Images {
    names: Names,
    processes: HashMap<u32, Process>,
    ranges: usize,
}

#[derive(Debug, Default)]
struct Process {
    name: NameId,
    /// By first address.
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
}

/// What is at an address of a process.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Place {
    path: NameId,
    /// The function; the empty text where none is known.
    function: NameId,
    /// Where in the file it is; 0 where the function is known.
    offset: u64,
}

impl Default for Images {
    fn default() -> Self {
        Self { names: Names::new(TEXT), processes: HashMap::default(), ranges: 0 }
    }
}

impl Images {
    /// Takes an event. `None` where its payload makes no sense, or there is no room for more.
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
                let new = process.symbols.insert(start, Symbol { last: end, name: text(name) });
                *ranges += usize::from(new.is_none());
            }
            _ => {}
        }
        Some(())
    }

    /// The processes whose names are known. Not sanitised.
    pub fn process_names(&self) -> impl Iterator<Item = (u32, &str)> {
        self.processes.iter().map(|(pid, process)| (*pid, self.names.get(process.name))).filter(|(_, name)| !name.is_empty())
    }

    /// What is at an address of a process.
    pub fn find(&self, pid: u32, address: u64) -> Option<Place> {
        let process = self.processes.get(&pid)?;
        let mapping = process.mappings.range(..=address).next_back().filter(|(_, mapping)| address <= mapping.last);
        let symbol = process.symbols.range(..=address).next_back().filter(|(_, symbol)| address <= symbol.last);
        let path = mapping.map_or_else(NameId::default, |(_, mapping)| mapping.path);
        match (symbol, mapping) {
            (Some((_, symbol)), _) => Some(Place { path, function: symbol.name, offset: 0 }),
            (None, Some((start, mapping))) => {
                Some(Place { path, function: NameId::default(), offset: (address - start).saturating_add(mapping.file_offset) })
            }
            (None, None) => None,
        }
    }

    /// The function at a place, or where it is in its file. Not sanitised.
    pub fn function(&self, place: Place) -> String {
        match self.names.get(place.function) {
            "" => format!("{}+{:#x}", self.file(place), place.offset),
            function => function.to_owned(),
        }
    }

    /// The name of the file at a place; empty where it is not known. Not sanitised.
    pub fn file(&self, place: Place) -> &str {
        self.names.get(place.path).rsplit('/').next().unwrap_or_default()
    }
}

fn read<'a, P: Payload<'a>>(event: &Event<'a>) -> Option<P> {
    P::read(Fields::of(event, POINTER_SIZE))
}
