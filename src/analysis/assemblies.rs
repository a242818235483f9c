//! Assemblies: loaded ones and failed lookups.

use std::collections::VecDeque;

use foldhash::HashMap;

use crate::clr::EventKind;
use crate::clr::payload::{AssemblyLoad, AssemblyLoadStop};
use crate::sorting::CompactSort;

use super::event_context::EventContext;
use super::ranking::push_latest;

/// Maximum number of assemblies.
const ASSEMBLIES: usize = 4096;
/// Maximum length of a name, in characters.
const NAME: usize = 300;
/// Maximum number of failed lookups.
const MISSING: usize = 64;

/// Tracks assembly loads, unloads and failed lookups.
#[derive(Debug, Default)]
pub(super) struct Assemblies {
    loaded: HashMap<u64, Assembly>,
    loads: u64,
    unloads: u64,
    searches: u64,
    failures: u64,
    missing: VecDeque<MissingAssembly>,
}

/// Loaded assemblies and failed lookups.
#[derive(Debug, Clone)]
pub struct AssemblySnapshot {
    /// Loaded assemblies, sorted by name; at most 4096.
    pub loaded: Vec<Assembly>,
    /// Number of loads during the session.
    pub loads: u64,
    /// Number of unloads during the session.
    pub unloads: u64,
    /// Number of completed lookups (requires keyword assemblyloader).
    pub searches: u64,
    /// Number of these that failed. Some failures are expected: for satellite resource assemblies, or before the application finds the
    /// assembly elsewhere.
    pub failures: u64,
    /// The latest failed lookups, newest first; at most 64.
    pub missing: Vec<MissingAssembly>,
}

/// An assembly.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Assembly {
    /// Name, version, culture and public key token; not sanitized.
    pub full_name: String,
    /// Load time, in nanoseconds since the start of the session; `None` if it was loaded before.
    pub at: Option<i64>,
    /// Whether the assembly is dynamic (created at run time).
    pub is_dynamic: bool,
}

/// A failed assembly lookup.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MissingAssembly {
    /// Time, in nanoseconds since the start of the session.
    pub at: i64,
    /// Name of the requested assembly; not sanitized.
    pub name: String,
    /// The requesting assembly; may be empty. Not sanitized.
    pub requested_by: String,
}

impl Assemblies {
    fn add(&mut self, load: &AssemblyLoad<'_>, at: Option<i64>) {
        const DYNAMIC: u32 = 2;
        if self.loaded.len() >= ASSEMBLIES && !self.loaded.contains_key(&load.assembly) {
            return;
        }
        let known = self.loaded.get(&load.assembly).and_then(|loaded| loaded.at);
        let assembly = Assembly { full_name: load.full_name.prefix(NAME), at: at.or(known), is_dynamic: load.flags & DYNAMIC != 0 };
        self.loaded.insert(load.assembly, assembly);
    }

    pub(super) fn feed(&mut self, context: &EventContext<'_>) -> Option<()> {
        match context.kind {
            EventKind::AssemblyLoad => {
                self.add(&context.payload()?, Some(context.at));
                self.loads += 1;
            }
            EventKind::AssemblyRundown => self.add(&context.payload()?, None),
            EventKind::AssemblyUnload => {
                let unload: AssemblyLoad<'_> = context.payload()?;
                self.loaded.remove(&unload.assembly);
                self.unloads += 1;
            }
            EventKind::AssemblyLoadStop => {
                let stop: AssemblyLoadStop<'_> = context.payload()?;
                self.searches += 1;
                if !stop.found {
                    self.failures += 1;
                    let (name, requested_by) = (stop.name.prefix(NAME), stop.requested_by.prefix(NAME));
                    push_latest(&mut self.missing, MISSING, MissingAssembly { at: context.at, name, requested_by });
                }
            }
            _ => {}
        }
        Some(())
    }

    pub(super) fn snapshot(&self) -> AssemblySnapshot {
        let mut loaded: Vec<_> = self.loaded.values().cloned().collect();
        loaded.compact_sort_by(|a, b| (&a.full_name, a.at, a.is_dynamic).cmp(&(&b.full_name, b.at, b.is_dynamic)));
        AssemblySnapshot {
            loaded,
            loads: self.loads,
            unloads: self.unloads,
            searches: self.searches,
            failures: self.failures,
            missing: self.missing.iter().rev().cloned().collect(),
        }
    }
}
