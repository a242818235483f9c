//! Copies methods from one symbol table to another.

use foldhash::HashMap;

use super::{Body, Known, Method, MethodId, Symbols};
use crate::analysis::names::{NameId, Names};

impl Symbols {
    /// Adds everything from another table that is missing here. Where both cover an address range, this table wins.
    pub(in crate::analysis) fn merge(&mut self, other: &Self) {
        // Each text is added once, however many methods share it.
        let mut copies = HashMap::default();
        let mut copy = |names: &mut Names, id| *copies.entry(id).or_insert_with(|| names.add_str(other.names.get(id)));
        for (module, path) in &other.modules {
            if self.has_room_for(*module) {
                let path = copy(&mut self.names, *path);
                self.modules.insert(*module, path);
            }
        }
        for (start, body) in &other.bodies {
            let Some(id) = self.copy(other, body.method, &mut copy) else { return };
            let last = start.saturating_add(u64::from(body.size) - 1);
            if !self.covers(*start, last) {
                self.insert(*start, Body::new(body.size, id), other.osr.contains(start));
            }
        }
    }

    /// Returns the ID in this table of a method of another table; `None` if there is no room.
    fn copy(&mut self, other: &Self, of: MethodId, copy: &mut impl FnMut(&mut Names, NameId) -> NameId) -> Option<MethodId> {
        let Known { method: Method { module, token, namespace, name }, parameters, tiers, origin } = other.methods[of.0 as usize];
        let method = Method { module, token, namespace: copy(&mut self.names, namespace), name: copy(&mut self.names, name) };
        let id = self.method(method, origin, |symbols| copy(&mut symbols.names, parameters))?;
        self.methods[id.0 as usize].tiers |= tiers;
        Some(id)
    }

    /// Copies the .NET method at an address from another table. Returns whether there is one.
    pub fn add_method_at(&mut self, address: u64, other: &Self) -> bool {
        let Some((start, Body { size, method, .. })) = other.body_at(address) else { return false };
        let module = other.methods[method.0 as usize].method.module;
        if let Some(path) = other.modules.get(&module).filter(|_| self.has_room_for(module)) {
            let path = self.names.add_str(other.names.get(*path));
            self.modules.insert(module, path);
        }
        let mut copy = |names: &mut Names, id| names.add_str(other.names.get(id));
        let Some(method) = self.copy(other, method, &mut copy) else { return false };
        self.insert(start, Body::new(size, method), other.osr.contains(&start));
        true
    }
}
