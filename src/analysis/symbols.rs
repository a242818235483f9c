//! Resolves addresses to methods.

mod copy;
mod native;

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::ops::Range;

use foldhash::{HashMap, HashSet};

use crate::clr::payload::{MethodBody, MethodVerbose, ModuleLoad, Tier};
use crate::clr::{EventKind, method_name, write_parameters};
use crate::nettrace::Stack;
use crate::wire::Utf16;

use super::event_context::EventContext;
use super::names::{NameId, Names};

pub use native::{NativeFunction, Origin};

/// Maximum number of method bodies.
const BODIES: usize = 1 << 18;
/// Maximum number of bodies kept after they were unloaded: their samples may still have to be named. Also that of unload events kept until the
/// load event arrives.
const UNLOADED: usize = 1 << 14;
/// Maximum number of methods.
const METHODS: usize = 1 << 17;
/// Maximum number of modules.
const MODULES: usize = 1 << 14;

/// The methods of a process and their code ranges, from rundowns and from method loads at run time.
///
/// A method has one body per tier in which it was compiled. The latest unloaded bodies are kept until their address range is reused.
#[derive(Debug, Clone, Default)]
pub struct Symbols {
    names: Names,
    /// By start address.
    bodies: BTreeMap<u64, Body>,
    /// Start addresses of the bodies for on-stack replacement.
    osr: BTreeSet<u64>,
    /// Start addresses of unloaded bodies, the oldest first.
    unloaded: VecDeque<u64>,
    /// Times of unload events by start address, if no body is known there: threads write their events separately, and that of the finalizer, which
    /// unloads, may arrive before those of the threads that compile.
    early_unloads: HashMap<u64, i64>,
    methods: Vec<Known>,
    /// The signature being parsed, and its parameters; reused buffers.
    signature: String,
    text: String,
    by_identity: HashMap<Method, MethodId>,
    /// Stands for the part of the runtime that dispatches exceptions.
    exception_dispatch: Option<MethodId>,
    /// Paths by module ID.
    modules: HashMap<u64, NameId>,
    /// Sorted addresses: bodies that contain none of them are skipped.
    selected: Option<Vec<u64>>,
}

/// ID of a method in [`Symbols`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct MethodId(pub(super) u32);

#[derive(Debug, Clone, Copy)]
struct Body {
    size: u32,
    method: MethodId,
    /// When it was loaded, in nanoseconds since the start of the session; [`Body::UNLOADED`] after it was unloaded.
    loaded: i64,
}

impl Body {
    /// Later than any event.
    const UNLOADED: i64 = i64::MAX;

    /// Creates a body loaded at an unknown time.
    fn new(size: u32, method: MethodId) -> Self {
        Self { size, method, loaded: i64::MIN }
    }

    fn is_unloaded(&self) -> bool {
        self.loaded == Self::UNLOADED
    }
}

/// A known method.
#[derive(Debug, Clone, Copy)]
struct Known {
    method: Method,
    parameters: NameId,
    /// Bit mask of the tiers in which it was compiled.
    tiers: u16,
    origin: Origin,
}

/// Identity of a method: generic instantiations of a type have different namespaces. Signatures are not part of it, as they contain addresses
/// if types can be unloaded.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
struct Method {
    module: u64,
    token: u32,
    namespace: NameId,
    name: NameId,
}

impl Symbols {
    /// Returns the number of known method bodies.
    pub fn bodies(&self) -> usize {
        self.bodies.len()
    }

    /// Returns the number of known methods.
    pub fn methods(&self) -> usize {
        self.methods.len()
    }

    pub(super) fn feed(&mut self, context: &EventContext<'_>) -> Option<()> {
        match context.kind {
            EventKind::MethodLoadVerbose | EventKind::MethodRundownVerbose => {
                let body = context.payload()?;
                // Skip the names if they are not needed.
                if self.is_selected(&body) {
                    self.add(&context.payload()?, context.at);
                }
            }
            EventKind::MethodUnload => self.unload(context.payload::<MethodBody>()?.start, context.at),
            EventKind::ModuleLoad | EventKind::ModuleRundown => {
                let load: ModuleLoad<'_> = context.payload()?;
                if self.has_room_for(load.module) {
                    let path = self.names.add(load.path);
                    self.modules.insert(load.module, path);
                }
            }
            _ => {}
        }
        Some(())
    }

    /// From now on, skips all methods that contain none of these sorted addresses.
    pub(super) fn select(&mut self, addresses: Vec<u64>) {
        self.selected = Some(addresses);
    }

    /// Returns whether methods are skipped.
    pub(super) fn selects(&self) -> bool {
        self.selected.is_some()
    }

    /// Returns whether methods of a stack may have been skipped.
    pub(super) fn may_have_skipped(&self, stack: Stack<'_>) -> bool {
        let is_missing = |address: u64| {
            let selected = self.selected.as_ref().is_none_or(|addresses| addresses.binary_search(&address).is_ok());
            !selected && self.find(address).is_none()
        };
        self.selects() && stack.frames().enumerate().any(|(depth, address)| is_missing(address.wrapping_sub(u64::from(depth > 0))))
    }

    fn is_selected(&self, body: &MethodBody) -> bool {
        self.selected.as_ref().is_none_or(|addresses| {
            let next = addresses.get(addresses.partition_point(|address| *address < body.start));
            next.is_some_and(|address| address - body.start < body.size.into())
        })
    }

    fn add(&mut self, load: &MethodVerbose<'_>, at: i64) {
        let body = load.body;
        if body.size == 0 {
            return;
        }
        let (namespace, name) = (self.names.add(load.namespace), self.names.add(load.name));
        let method = Method { module: body.module, token: body.token, namespace, name };
        let Some(id) = self.method(method, Origin::Managed, |symbols| symbols.parameters_of(load.signature)) else { return };
        self.methods[id.0 as usize].tiers |= 1 << body.tier() as u16;
        self.clear(body.start, body.size);
        self.insert(body.start, Body { size: body.size, method: id, loaded: at }, body.tier() == Tier::Osr);
    }

    fn unload(&mut self, start: u64, at: i64) {
        let Some(body) = self.bodies.get_mut(&start) else {
            if self.early_unloads.len() >= UNLOADED {
                self.early_unloads.clear();
            }
            self.early_unloads.insert(start, at);
            return;
        };
        // An event of a former body whose address range is already reused.
        if at < body.loaded {
            return;
        }
        body.loaded = Body::UNLOADED;
        self.unloaded.push_back(start);
        if self.unloaded.len() > UNLOADED
            && let Some(oldest) = self.unloaded.pop_front()
            // Otherwise its address range was reused.
            && self.bodies.get(&oldest).is_some_and(Body::is_unloaded)
        {
            self.bodies.remove(&oldest);
            self.osr.remove(&oldest);
        }
    }

    /// Removes all code ranges, and keeps the methods and functions with their IDs.
    pub fn forget_code(&mut self) {
        self.bodies.clear();
        self.osr.clear();
        self.unloaded.clear();
        self.early_unloads.clear();
    }

    fn parameters_of(&mut self, signature: Utf16<'_>) -> NameId {
        self.signature.clear();
        signature.push_to(&mut self.signature);
        self.text.clear();
        write_parameters(&self.signature, &mut self.text);
        self.names.add_str(&self.text)
    }

    /// Returns the ID of a method, adding it if needed; `None` if there is no room.
    fn method(&mut self, method: Method, origin: Origin, parameters: impl FnOnce(&mut Self) -> NameId) -> Option<MethodId> {
        let next = MethodId(self.methods.len() as u32);
        if let Some(id) = self.by_identity.get(&method) {
            return Some(*id);
        }
        if self.methods.len() >= METHODS {
            return None;
        }
        let parameters = parameters(self);
        self.methods.push(Known { method, parameters, tiers: 0, origin });
        self.by_identity.insert(method, next);
        Some(next)
    }

    fn insert(&mut self, start: u64, body: Body, is_osr: bool) {
        if self.bodies.len() < BODIES {
            self.bodies.insert(start, body);
            if is_osr {
                self.osr.insert(start);
            }
            if let Some(unloaded) = self.early_unloads.remove(&start) {
                self.unload(start, unloaded);
            }
        }
    }

    fn has_room_for(&self, module: u64) -> bool {
        self.modules.len() < MODULES || self.modules.contains_key(&module)
    }

    /// Returns whether a body overlaps this address range.
    fn covers(&self, first: u64, last: u64) -> bool {
        let before = self.bodies.range(..=last).next_back();
        before.is_some_and(|(start, body)| start.saturating_add(u64::from(body.size) - 1) >= first)
    }

    /// Removes the bodies whose address range is reused.
    fn clear(&mut self, start: u64, size: u32) {
        let end = start.saturating_add(size.into());
        while let Some((old, body)) = self.bodies.range(..end).next_back() {
            if old.saturating_add(body.size.into()) <= start {
                break;
            }
            let old = *old;
            self.bodies.remove(&old);
            self.osr.remove(&old);
        }
    }

    /// Returns the method at an address. For a return address, pass the address minus one: a call can be the last instruction.
    pub fn find(&self, address: u64) -> Option<MethodId> {
        self.body_at(address).map(|(_, body)| body.method)
    }

    /// Returns the start addresses of all code, in ascending order.
    pub fn starts(&self) -> impl Iterator<Item = u64> {
        self.bodies.keys().copied()
    }

    /// Returns the code for on-stack replacement and its methods, in ascending order.
    pub(super) fn osr_code(&self) -> impl Iterator<Item = (Range<u64>, MethodId)> {
        self.osr.iter().filter_map(|start| Some(range(start, self.bodies.get(start)?)))
    }

    /// Returns all other code of these methods, in ascending order.
    pub(super) fn other_code(&self, methods: &HashSet<MethodId>) -> impl Iterator<Item = (Range<u64>, MethodId)> {
        let bodies = self.bodies.iter().filter(|(start, body)| methods.contains(&body.method) && !self.osr.contains(start));
        bodies.map(|(start, body)| range(start, body))
    }

    /// Returns the code range at an address: start address and size in bytes.
    pub fn code_at(&self, address: u64) -> Option<(u64, u32)> {
        self.body_at(address).map(|(start, body)| (start, body.size))
    }

    fn body_at(&self, address: u64) -> Option<(u64, Body)> {
        let (start, body) = self.bodies.range(..=address).next_back()?;
        (address - start < body.size.into()).then_some((*start, *body))
    }

    /// Returns the full type name and the name of a method.
    pub(super) fn names(&self, method: MethodId) -> (&str, &str) {
        let Known { method, .. } = &self.methods[method.0 as usize];
        (self.names.get(method.namespace), self.names.get(method.name))
    }

    /// Returns whether this is a stub generated by the runtime for transitions between managed and native code.
    pub fn is_stub(&self, method: MethodId) -> bool {
        self.names(method).1.starts_with("IL_STUB")
    }

    /// Returns type and method name, separated by a dot.
    pub fn full_name(&self, method: MethodId) -> String {
        let (namespace, name) = self.names(method);
        method_name(namespace, name)
    }

    /// Returns the parameters of a method in parentheses, as in `(int, string)`; empty if unknown.
    pub fn parameters(&self, method: MethodId) -> &str {
        self.names.get(self.methods[method.0 as usize].parameters)
    }

    /// Returns the file name of a method's module without extension; empty if unknown.
    pub fn module(&self, method: MethodId) -> &str {
        self.module_name(self.methods[method.0 as usize].method.module)
    }

    /// Returns the file name of a module without extension; empty if unknown.
    pub(super) fn module_name(&self, module: u64) -> &str {
        module_name(self.modules.get(&module).map_or("", |path| self.names.get(*path)))
    }

    /// Returns the tiers in which a method was compiled, according to its bodies seen so far.
    pub(super) fn tiers(&self, method: MethodId) -> Vec<Tier> {
        let tiers = self.methods[method.0 as usize].tiers;
        Tier::ALL.into_iter().filter(|tier| tiers >> *tier as u16 & 1 != 0).collect()
    }

    /// Returns the names of stack frames, leaf first, up to the first 0. All frames but the leaf are return addresses.
    pub(super) fn frame_names(&self, frames: &[u64]) -> impl Iterator<Item = String> {
        let frames = frames.iter().take_while(|address| **address != 0).enumerate();
        frames.map(|(depth, address)| self.frame_name(if depth == 0 { *address } else { address - 1 }))
    }

    /// Returns the full name of the method at an address, or the address.
    fn frame_name(&self, address: u64) -> String {
        self.find(address).map_or_else(|| format!("{address:#x}"), |method| self.full_name(method))
    }
}

fn range(start: &u64, body: &Body) -> (Range<u64>, MethodId) {
    (*start..start.saturating_add(body.size.into()), body.method)
}

/// Returns the module name: the file name without extension.
pub fn module_name(path: &str) -> &str {
    let file = path.rsplit(['/', '\\']).next().unwrap_or_default();
    let name = file.strip_suffix(".dll").or_else(|| file.strip_suffix(".exe")).unwrap_or(file);
    // Precompiled (NGen) code in a separate file next to the module.
    name.strip_suffix(".ni").unwrap_or(name)
}

#[cfg(test)]
pub(in crate::analysis) mod tests;
