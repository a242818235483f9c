//! What keeps the objects of a heap alive, and what they retain: paths from roots, and retained sizes by type.

use std::borrow::Cow;

use super::dominators::{Dominators, Edges, NONE};

/// Maximum number of paths per type.
const PATHS: usize = 3;
/// Number of objects per type, closest to the roots first, whose paths are compared to find different ones.
const MAX_CANDIDATES: u32 = 64;
/// Number of steps kept at each end of a path; consecutive objects of one type are a single step.
const STEPS: usize = 12;
/// Maximum total length of all paths, in objects, before they are shortened.
const MAX_PATH_OBJECTS: usize = 1 << 26;
/// Memory limit of the computation, in bytes.
const MAX_MEMORY_BYTES: u64 = 2 << 30;

/// Objects by index, with their references, and the roots.
#[derive(Debug, Default)]
pub struct ObjectGraph {
    /// Type names by type index.
    pub types: Vec<String>,
    /// Size in bytes and type of each object.
    objects: Vec<(u32, u32)>,
    edges: Edges,
    /// Objects referenced by roots, with the index of the root.
    roots: Vec<(u32, u32)>,
    root_names: Vec<Cow<'static, str>>,
    is_full: bool,
}

/// What the objects of each type keep alive, and what keeps them alive.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Retention {
    /// In the order of the requested types; `None` for a type that is unknown by this name.
    pub types: Vec<Option<RetainedType>>,
    /// Number of objects not reachable from any known root.
    pub unreached: u64,
}

/// What the objects of a type keep alive, and what keeps them alive.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct RetainedType {
    /// Bytes that would be freed with these objects: their own size, and that of objects reachable only through a single one of them. Objects
    /// shared by several of them are not included, so this is a lower bound.
    pub bytes: u64,
    /// The shortest distinct paths from roots to objects of the type, shortest first.
    pub paths: Vec<RootPath>,
}

/// A path from a root to an object.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RootPath {
    /// Kind of the root, or name of the static variable. Not sanitized.
    pub root: String,
    /// Steps from the root to the object.
    pub steps: Vec<PathStep>,
}

/// A step of a root path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PathStep {
    /// Consecutive objects of one type.
    Objects {
        /// Type name; empty if unknown. Not sanitized.
        name: String,
        /// Number of objects.
        count: u32,
    },
    /// Number of objects left out.
    Omitted(u32),
}

impl ObjectGraph {
    /// Creates an empty graph for this many objects and references; `None` if the computation would need too much memory.
    pub fn new(objects: usize, references: usize) -> Option<Self> {
        // Per object: size, type, position, path, 8 integers for the dominators. Per reference: both directions.
        let bytes = (objects as u64).saturating_mul(52).saturating_add((references as u64).saturating_mul(8));
        (bytes <= MAX_MEMORY_BYTES).then(Self::default)
    }

    /// Adds an object with its type and references. The first object has index 0.
    pub fn push(&mut self, size: u32, kind: u32, targets: impl Iterator<Item = u32>) {
        self.is_full |= !self.edges.push(targets);
        self.objects.push((size, kind));
    }

    /// Adds a root with its name. If several roots lead to an object, the first is shown.
    pub fn root(&mut self, name: impl Into<Cow<'static, str>>, objects: impl Iterator<Item = u32>) {
        let number = self.root_names.len() as u32;
        self.root_names.push(name.into());
        self.roots.extend(objects.filter(|object| (*object as usize) < self.objects.len()).map(|object| (object, number)));
    }

    /// Computes what the first `types` types keep alive, and what keeps them alive; `None` if the graph has too many references for 32-bit
    /// indexes.
    pub fn retention(&self, types: usize) -> Option<Retention> {
        if self.is_full {
            return None;
        }
        let found = Dominators::new(&self.edges, self.roots.iter().map(|(object, _)| *object));
        let unreached = found.places.iter().filter(|place| **place == NONE).count() as u64;
        let mut bytes = self.retained(&found);
        bytes.truncate(types);
        drop(found);
        let paths = self.paths(types);
        let types = bytes.into_iter().zip(paths).map(|(bytes, paths)| Some(RetainedType { bytes, paths })).collect();
        Some(Retention { types, unreached })
    }

    /// Returns the retained bytes by type.
    fn retained(&self, Dominators { nodes, dominators, places }: &Dominators) -> Vec<u64> {
        let mut of_type = vec![0_u64; self.types.len()];
        let mut of_place: Vec<u64> = vec![0; nodes.len()];
        // A node dominates only nodes after it. The lists of children are built in the same pass.
        let (mut first, mut next) = (vec![NONE; nodes.len()], vec![NONE; nodes.len()]);
        for place in (1..nodes.len()).rev() {
            let above = dominators[place] as usize;
            of_place[place] += u64::from(self.objects[nodes[place] as usize].0);
            of_place[above] += of_place[place];
            next[place] = std::mem::replace(&mut first[above], place as u32);
        }
        // Objects dominated by two objects of the same type, one of which dominates the other, are counted once.
        let mut around = vec![0_u32; self.types.len()];
        let kind = |place: u32| self.objects[nodes[place as usize] as usize].1 as usize;
        let mut stack = vec![0_u32];
        while let Some(place) = stack.last().copied() {
            let child = first[place as usize];
            if child == NONE {
                stack.pop();
                if let Some(around) = around.get_mut(if place == 0 { usize::MAX } else { kind(place) }) {
                    *around -= 1;
                }
                continue;
            }
            first[place as usize] = next[child as usize];
            stack.push(child);
            let kind = kind(child);
            if let (Some(around), Some(bytes)) = (around.get_mut(kind), of_type.get_mut(kind)) {
                *bytes += if *around == 0 { of_place[child as usize] } else { 0 };
                *around += 1;
            }
        }
        // An unreachable object is only known to retain itself.
        for ((size, kind), _) in self.objects.iter().zip(places).filter(|(_, place)| **place == NONE) {
            if let Some(bytes) = of_type.get_mut(*kind as usize) {
                *bytes += u64::from(*size);
            }
        }
        of_type
    }

    /// Returns the shortest paths by type.
    fn paths(&self, types: usize) -> Vec<Vec<RootPath>> {
        let mut paths = vec![Vec::new(); types];
        let mut tried = vec![0; types];
        let mut left = MAX_PATH_OBJECTS;
        // The preceding object on the path; for the first object, the root index plus the number of objects.
        let mut before = vec![NONE; self.objects.len()];
        let mut queue: Vec<u32> = Vec::new();
        for ((object, _), root) in self.roots.iter().zip(self.objects.len() as u32..NONE) {
            if before[*object as usize] == NONE {
                before[*object as usize] = root;
                queue.push(*object);
            }
        }
        let mut at = 0;
        while let Some(object) = queue.get(at).copied() {
            at += 1;
            let kind = self.objects[object as usize].1 as usize;
            if kind < types && paths[kind].len() < PATHS && tried[kind] < MAX_CANDIDATES && left > 0 {
                tried[kind] += 1;
                let path = self.path(object, &before, &mut left);
                if !paths[kind].contains(&path) {
                    paths[kind].push(path);
                }
            }
            for target in self.edges.of(object) {
                if let Some(before) = before.get_mut(*target as usize).filter(|before| **before == NONE) {
                    *before = object;
                    queue.push(*target);
                }
            }
        }
        paths
    }

    fn path(&self, object: u32, before: &[u32], left: &mut usize) -> RootPath {
        // From the object to the root: types, with the number of consecutive objects.
        let mut rows: Vec<(u32, u32)> = Vec::new();
        let mut at = object;
        while let Some((_, kind)) = self.objects.get(at as usize) {
            match rows.last_mut() {
                Some((last, count)) if last == kind => *count += 1,
                _ => rows.push((*kind, 1)),
            }
            *left = left.saturating_sub(1);
            at = before[at as usize];
        }
        let root = self.roots.get(at as usize - self.objects.len()).and_then(|(_, root)| self.root_names.get(*root as usize));
        let step = |(kind, count): &(u32, u32)| PathStep::Objects {
            name: self.types.get(*kind as usize).cloned().unwrap_or_default(),
            count: *count,
        };
        rows.reverse();
        let steps = if rows.len() <= 2 * STEPS {
            rows.iter().map(step).collect()
        } else {
            let between = &rows[STEPS..rows.len() - STEPS];
            let omitted = PathStep::Omitted(between.iter().map(|(_, count)| count).sum());
            rows[..STEPS].iter().map(step).chain([omitted]).chain(rows[rows.len() - STEPS..].iter().map(step)).collect()
        };
        RootPath { root: root.map(ToString::to_string).unwrap_or_default(), steps }
    }
}
